#!/usr/bin/env python3
"""Splits NDJSON into columns for parquet-bench.

    parquet_columns.py EVENTS.ndjson COLUMNS.bin [--rows N]

Integers become int64, fractions float64, strings varchar, objects and arrays compact JSON text;
"timestamp" becomes timestamptz, so that such a column is there too. The output is, for each column:
u32 length of its name, the name, u32 length of its type's name, that name, u32 rows, and for each row
u32 length (0xffffffff: null) and the value as PLAIN lays it out. Little-endian.
"""
import argparse
import datetime
import json
import struct

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def plain(value):
    if isinstance(value, bool):
        return "boolean", bytes([value])
    if isinstance(value, int):
        return "int64", struct.pack("<q", value)
    if isinstance(value, float):
        return "float64", struct.pack("<d", value)
    if isinstance(value, str):
        return "varchar", value.encode()
    return "varchar", json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def timestamp(text):
    when = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    if when.tzinfo is None:
        when = when.replace(tzinfo=datetime.timezone.utc)
    return "timestamptz", struct.pack("<q", (when - EPOCH) // datetime.timedelta(microseconds=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events")
    parser.add_argument("columns")
    parser.add_argument("--rows", type=int, default=1 << 31)
    args = parser.parse_args()
    columns, types, rows = {}, {}, 0
    with open(args.events, encoding="utf-8") as lines:
        for line in lines:
            if rows == args.rows:
                break
            for name, value in json.loads(line).items():
                if value is None:
                    continue
                cells = columns.setdefault(name, [])
                cells.extend([None] * (rows - len(cells)))
                types[name], cell = timestamp(value) if name == "timestamp" else plain(value)
                cells.append(cell)
            rows += 1
    with open(args.columns, "wb") as out:
        for name, cells in columns.items():
            cells.extend([None] * (rows - len(cells)))
            for text in (name, types[name]):
                out.write(struct.pack("<I", len(text.encode())) + text.encode())
            out.write(struct.pack("<I", rows))
            out.write(b"".join(b"\xff\xff\xff\xff" if c is None else struct.pack("<I", len(c)) + c for c in cells))


if __name__ == "__main__":
    main()
