#!/usr/bin/env python3
"""Judges the values that we read in Parquet files, and the files that we merge, by pyarrow and DuckDB.

    judge_reader.py PARQUET_MERGE_TOOL PARQUET_RANDOM [FILES]

Files are written by pyarrow with every encoding, codec and page version, by DuckDB and by our own
writer; every value that we read must be the one that they read, as the bytes of its physical type.
Merged files must hold the rows that this file computes from their inputs: deleted rows gone, in
order, columns widened, added and left out, row ids kept. Damaged files must be refused or read,
never end the program. Ends with "N passed, N failed".
"""
import datetime as dt
import decimal
import functools
import math
import os
import random
import struct
import subprocess
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from judge_tools import as_float32, ask, check, equal, run, text

TOOL, RANDOM = sys.argv[1:3]
FILES = int(sys.argv[3]) if len(sys.argv) > 3 else 100
ROW_ID = "_hog_row_id"
CODECS = ["none", "snappy", "gzip", "zstd", "lz4"]
DECIMAL, UTC = decimal.Decimal, dt.timezone.utc


def tool(*arguments):
    return ask(TOOL, *arguments)


# ---- values of every physical type, and their bytes -----------------------------------------
def some_bytes(r):
    return r.randbytes(r.choice([0, 1, 2, 9, 40, 300]))


def alike(r):
    """Texts that begin alike: what DELTA_BYTE_ARRAY is for."""
    return b"https://example.org/%d/%d" % (r.randrange(4), r.randrange(10 ** r.randrange(1, 9)))


def fixed(size):
    return lambda r: r.randbytes(size)


def number(bits):
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return lambda r: r.choice([low, high, 0, 1, -1, r.randint(low, high), r.randint(-50, 50)])


def some_float(r):
    return r.choice([0.0, -0.0, 1.5, math.inf, -math.inf, r.gauss(0, 1e6)])


ALWAYS = ["PLAIN", None]  # None: with a dictionary
KINDS = {  # name: Arrow type, a value, its bytes, encodings
    "boolean": (pa.bool_(), lambda r: r.random() < 0.3, lambda v: bytes([v]), ["PLAIN", "RLE"]),
    "int32": (pa.int32(), number(32), lambda v: struct.pack("<i", v),
              ALWAYS + ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"]),
    "int64": (pa.int64(), number(64), lambda v: struct.pack("<q", v),
              ALWAYS + ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"]),
    "rising": (pa.int64(), None, lambda v: struct.pack("<q", v),
               ALWAYS + ["DELTA_BINARY_PACKED"]),
    "float": (pa.float32(), lambda r: as_float32(some_float(r)), lambda v: struct.pack("<f", v),
              ALWAYS + ["BYTE_STREAM_SPLIT"]),
    "double": (pa.float64(), some_float, lambda v: struct.pack("<d", v),
               ALWAYS + ["BYTE_STREAM_SPLIT"]),
    "binary": (pa.binary(), some_bytes, lambda v: v,
               ALWAYS + ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]),
    "urls": (pa.binary(), alike, lambda v: v,
             ALWAYS + ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]),
    "fixed5": (pa.binary(5), fixed(5), lambda v: v,
               ALWAYS + ["DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"]),
    "fixed999": (pa.binary(999), fixed(999), lambda v: v, ALWAYS + ["DELTA_BYTE_ARRAY"]),
}


def some_values(r, name, rows):
    make, nulls = KINDS[name][1], r.choice([0, 0, 0.02, 0.5, 1])
    few = [make(r) for _ in range(r.choice([1, 3, 200]))] if make and r.random() < 0.5 else None
    out, at = [], r.randrange(1 << 40)
    for _ in range(rows):
        at += r.randrange(1 << r.choice([0, 3, 20]))
        value = at if not make else r.choice(few) if few else make(r)
        out.append(None if r.random() < nulls else value)
    return out


def one_file(directory, seed):
    r = random.Random(seed)
    rows = r.choice([0, 1, 7, 100, 1023, 1025, 5000, 12000])
    names = list(KINDS) if rows < 6000 else r.sample(list(KINDS), 5)
    values = {name: some_values(r, name, rows) for name in names}
    encodings = {name: r.choice(KINDS[name][3]) for name in names}
    required = {name for name in names if None not in values[name] and r.random() < 0.5}
    schema = pa.schema([pa.field(name, KINDS[name][0], nullable=name not in required)
                        for name in names])
    table = pa.Table.from_arrays([pa.array(values[n], KINDS[n][0]) for n in names], schema=schema)
    path = os.path.join(directory, "%d.parquet" % seed)
    pq.write_table(
        table, path, compression=r.choice(CODECS), data_page_version=r.choice(["1.0", "2.0"]),
        data_page_size=r.choice([1, 300, 20000, 1 << 20]), write_batch_size=r.choice([7, 100, 1024]),
        row_group_size=r.choice([5000, 977]), use_dictionary=[n for n in names if not encodings[n]],
        column_encoding={n: e for n, e in encodings.items() if e},
        dictionary_pagesize_limit=r.choice([200, 1 << 20]), version=r.choice(["1.0", "2.6"]),
        write_page_checksum=r.random() < 0.5, write_page_index=r.random() < 0.3)
    answer, = tool("values", path)
    for name, got in zip(names, answer["columns"]):
        check(isinstance(got, list), name, encodings[name], text(got))
        want = [None if v is None else KINDS[name][2](v).hex() for v in values[name]]
        equal(got, want, name, encodings[name], "rows")
    judge_damage(directory, r, path, names, answer)


def judge_damage(directory, r, path, names, answer):
    """Some byte of a page is another one: an error that names the column, or other values."""
    with open(path, "rb") as file:
        whole = bytearray(file.read())
    pages = len(whole) - 8 - struct.unpack("<I", whole[-8:-4])[0]
    if pages < 20:
        return
    paths = []
    for i in range(6):
        bad = bytearray(whole)
        for _ in range(r.choice([1, 3, 20])):
            bad[r.randrange(4, pages)] = r.choice([0, 1, 0x7f, 0x80, 0xff, r.randrange(256)])
        paths.append(os.path.join(directory, "bad-%d" % i))
        with open(paths[-1], "wb") as file:
            file.write(bad)
    for bad in tool("values", *paths):
        for name, got, good in zip(names, bad["columns"], answer["columns"]):
            if isinstance(got, list):
                equal(len(got), len(good), "rows of a damaged column")
            else:
                check('column "%s": row group' % name in text(got), text(got))


def one_of_duckdb(directory, seed):
    r = random.Random(seed)
    path, rows = os.path.join(directory, "duck.parquet"), r.choice([1, 5000, 130000])
    select = """SELECT i::INTEGER AS a, (i * 7919) %% 100003 AS b, i / 3 AS c, 'text ' || (i %% 9) AS d,
        'u' || hash(i) AS e, i %% 3 = 0 AS f, CASE WHEN i %% 5 > 0 THEN (i // 1000)::FLOAT END AS g,
        gen_random_uuid() AS u, (i * 1.25)::DECIMAL(30, 3) AS h FROM range(%d) AS r(i)""" % rows
    duckdb.execute("COPY (%s) TO '%s' (FORMAT parquet, CODEC '%s', PARQUET_VERSION %s, "
                   "ROW_GROUP_SIZE 20480)" %
                   (select, path, r.choice(["snappy", "zstd", "uncompressed", "gzip", "lz4_raw"]),
                    ["V1", "V2"][seed % 2]))
    table = pq.read_table(path)
    pack = {"a": "<i", "b": "<q", "c": "<d", "f": "?", "g": "<f"}
    for name, got in zip(table.column_names, tool("values", path)[0]["columns"]):
        check(isinstance(got, list), name, text(got))
        column = table.column(name).to_pylist()
        if name in pack:
            want = [None if v is None else struct.pack(pack[name], v).hex() for v in column]
        elif name in ("d", "e"):
            want = [v.encode().hex() for v in column]
        elif name == "u":
            want = [(v if isinstance(v, bytes) else v.bytes).hex() for v in column]
        else:
            want = [int(v.scaleb(3)).to_bytes(16, "big", signed=True).hex() for v in column]
        equal(got, want, name, "of DuckDB")


def one_of_ours(directory, seed):
    """Whatever our writer makes, our reader reads as DuckDB does: merged, it is the same table."""
    subprocess.run([RANDOM, directory, str(seed), "1"], check=True, stdout=subprocess.DEVNULL)
    for name in sorted(os.listdir(directory)):
        if not name.endswith(".parquet"):
            continue
        for column in tool("values", os.path.join(directory, name))[0]["columns"]:
            check(isinstance(column, list), name, text(column))


def refusals(directory, _):
    path = os.path.join(directory, "x.parquet")
    nested = pa.table({"l": [[1], None], "s": [{"x": 1}, None]})
    pq.write_table(nested, path)
    for got in tool("values", path)[0]["columns"]:
        check("nested" in text(got), text(got))
    pq.write_table(pa.table({"b": ["x"]}), path, compression="brotli")
    check("codec 4 is not read" in text(tool("values", path)[0]["columns"][0]))
    # A checksum that is not that of the page.
    pq.write_table(pa.table({"b": pa.array(range(99), pa.int32())}), path, compression="none",
                   use_dictionary=False, write_page_checksum=True)
    with open(path, "rb") as file:
        data = bytearray(file.read())
    at = data.index(struct.pack("<iii", 5, 6, 7))
    data[at] ^= 1
    with open(path, "wb") as file:
        file.write(data)
    got = text(tool("values", path)[0]["columns"][0])
    check('column "b": row group 0, page 0: its checksum is' in got, got)


# ---- merges -----------------------------------------------------------------------------------
def field(name, kind, number, nullable=True):
    return pa.field(name, kind, nullable, metadata={b"PARQUET:field_id": b"%d" % number})


def stamp(unit, zone=None):
    return pa.timestamp(unit, zone)


def days(r):
    return dt.date(2020, 1, 1) + dt.timedelta(r.randrange(9999))


def micros(zone=None):
    return lambda r: dt.datetime(2020, 1, 1, tzinfo=zone) + dt.timedelta(microseconds=r.randrange(10**15))


def millis(r):
    return dt.datetime(2020, 1, 1) + dt.timedelta(milliseconds=r.randrange(10**12))


def money(precision, scale):
    return lambda r: DECIMAL(r.randrange(-10**precision + 1, 10**precision)).scaleb(-scale)


def words(r):
    return r.choice(["", "a", "b", "Zürich", "x" * r.randrange(400), "z%d" % r.randrange(9999)])


# type of the column: what it is in DuckLake's words, as Arrow, the Arrow types that a file may have
# (the last column: what such a file holds), a value of the narrowest.
TARGETS = {
    "boolean": (pa.bool_(), [pa.bool_()], lambda r: r.random() < 0.5),
    "int8": (pa.int8(), [pa.int8()], lambda r: r.randrange(-128, 128)),
    "int16": (pa.int16(), [pa.int8(), pa.int16()], lambda r: r.randrange(-128, 128)),
    "int32": (pa.int32(), [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()],
              lambda r: r.randrange(0, 128)),
    "int64": (pa.int64(), [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint32()],
              lambda r: r.randrange(0, 128)),
    "uint8": (pa.uint8(), [pa.uint8()], lambda r: r.randrange(256)),
    "uint16": (pa.uint16(), [pa.uint8(), pa.uint16()], lambda r: r.randrange(256)),
    "uint32": (pa.uint32(), [pa.uint8(), pa.uint16(), pa.uint32()], lambda r: r.randrange(256)),
    "uint64": (pa.uint64(), [pa.uint64()], lambda r: r.randrange(1 << 64)),
    "float32": (pa.float32(), [pa.float32()], lambda r: as_float32(r.gauss(0, 1e6))),
    "float64": (pa.float64(), [pa.float32(), pa.float64()], lambda r: as_float32(r.gauss(0, 9))),
    "decimal(9,2)": (pa.decimal128(9, 2), [pa.decimal128(9, 2), pa.decimal128(5, 2)], money(5, 2)),
    "decimal(18,4)": (pa.decimal128(18, 4), [pa.decimal128(18, 4), pa.decimal128(38, 4)],
                      money(18, 4)),
    "decimal(38,10)": (pa.decimal128(38, 10), [pa.decimal128(38, 10), pa.decimal128(18, 10)],
                       money(18, 10)),
    "date": (pa.date32(), [pa.date32()], days),
    "time": (pa.time64("us"), [pa.time64("us"), pa.time32("ms")],
             lambda r: dt.time(r.randrange(24), 5, 7, 1000 * r.randrange(1000))),
    "timestamp_ms": (stamp("ms"), [stamp("ms"), stamp("us")], millis),
    "timestamp": (stamp("us"), [stamp("us"), stamp("ms")], millis),
    "timestamp_ns": (stamp("ns"), [stamp("ns")], micros()),
    "timestamptz": (stamp("us", "UTC"), [stamp("us", "UTC")], micros(UTC)),
    "varchar": (pa.string(), [pa.string()], words),
    "json": (pa.string(), [pa.string()], lambda r: '{"a":%d}' % r.randrange(99)),
    "blob": (pa.binary(), [pa.binary(), pa.binary(7), pa.string()], lambda r: r.randbytes(7)),
    "uuid": (pa.binary(16), [pa.binary(16)], lambda r: r.randbytes(16)),
}


def value_for(r, target, kind):
    make = TARGETS[target][2]
    value = make(r)
    if kind == pa.string() and target == "blob":
        return value.hex()[:7]
    return value


def order_of(value):
    """How values of one column order: bytes for texts, False before True."""
    return value.encode() if isinstance(value, str) else value


def sorted_rows(rows, sort):
    def compare(a, b):
        for name, descending, first in sort:
            x, y = a[name], b[name]
            if x is None or y is None:
                if (x is None) != (y is None):
                    return (1 if x is None else -1) * (-1 if first else 1)
                continue
            x, y = order_of(x), order_of(y)
            if x != y:
                return (-1 if x < y else 1) * (-1 if descending else 1)
        return 0
    return sorted(rows, key=functools.cmp_to_key(compare))


def merge_input(directory, r, i, columns, first_id):
    """A file of some of the columns, in any order and of any type that goes; gives what the merge
    is told and the rows that it must keep."""
    rows = r.choice([0, 1, 50, 700])
    own_ids = r.random() < 0.3
    there = [c for c in columns if r.random() < 0.8]
    r.shuffle(there)
    fields, arrays, data = [], [], {}
    for name, target, number in there:
        kind = r.choice(TARGETS[target][1])
        nulls = r.choice([0, 0.3])
        values = [None if r.random() < nulls else value_for(r, target, kind) for _ in range(rows)]
        fields.append(field(name if r.random() < 0.7 else name + "_old", kind, number))
        arrays.append(pa.array(values, kind))
        data[name] = [v.encode() if kind == pa.string() and target == "blob" and v is not None
                      else v for v in values]
    fields.append(field("gone", pa.list_(pa.int64()), 900))  # a column that was dropped: not read
    arrays.append(pa.array([[1]] * rows, pa.list_(pa.int64())))
    ids = list(range(first_id, first_id + rows))
    if own_ids:
        ids = sorted(r.sample(range(first_id, first_id + 3 * rows + 1), rows))
        fields.append(field(ROW_ID, pa.int64(), 2147483646, r.random() < 0.5))
        arrays.append(pa.array(ids, pa.int64()))
    path = os.path.join(directory, "in-%d.parquet" % i)
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path,
                   compression=r.choice(CODECS), row_group_size=r.choice([13, 100, 1000]),
                   data_page_version=r.choice(["1.0", "2.0"]),
                   use_dictionary=r.random() < 0.5, store_decimal_as_integer=r.random() < 0.5)
    deleted = set(r.sample(range(rows), r.choice([0, rows // 3, rows]))) if r.random() < 0.5 else None
    told = "%s:%d" % (path, first_id)
    if deleted is not None:
        told += ":" + ",".join(map(str, sorted(deleted)))
    kept = [dict({name: data[name][row] if name in data else None for name, _, _ in columns},
                 **{ROW_ID: ids[row]}) for row in range(rows) if row not in (deleted or ())]
    return told, kept


def one_merge(directory, seed):
    r = random.Random(seed)
    names = r.sample(list(TARGETS), r.choice([1, 4, len(TARGETS)]))
    columns = [("c%d" % i, name, i + 1) for i, name in enumerate(names)]
    inputs, rows, first_id = [], [], r.randrange(1000)
    for i in range(r.choice([1, 2, 5])):
        told, kept = merge_input(directory, r, i, columns, first_id)
        inputs.append(told)
        rows += kept
        first_id += 3000
    sort = [(c, r.random() < 0.5, r.random() < 0.5)
            for c in r.sample([c[0] for c in columns], min(len(columns), r.choice([0, 1, 3])))]
    numbers = {c: n for c, _, n in columns}
    out, options = os.path.join(directory, "out.parquet"), []
    for name, descending, first in sort:
        options += ["--sort", "%d%s%s" % (numbers[name], ":desc" * descending, ":first" * first)]
    group_bytes = r.choice([500, 20000, 1 << 27])
    answer, = tool("merge", out, *options, "--group-bytes", group_bytes, "--codec", r.randrange(4),
                   *["%d:%s:%s" % (n, t, c) for c, t, n in columns], "--", *inputs)
    check("error" not in answer, text(answer.get("error", "")))
    equal(answer["rows"], len(rows), "rows told")
    if not rows:
        return equal(os.path.getsize(out), 0, "a file of no rows")
    rows = sorted_rows(rows, sort)
    equal(answer["bytes"], os.path.getsize(out), "bytes told")
    got = pq.read_table(out)
    equal(got.column_names, [c[0] for c in columns] + [ROW_ID], "columns")
    judge_schema(out, columns)
    equal(got.column(ROW_ID).to_pylist(), [row[ROW_ID] for row in rows], "row ids")
    for name, target, _ in columns:
        column = got.column(name)
        column = column.cast(TARGETS[target][0]) if target not in ("json", "uuid") else column
        found = column.to_pylist()
        if target == "uuid":
            found = [v if v is None or isinstance(v, bytes) else v.bytes for v in found]
        want = pa.array([row[name] for row in rows], TARGETS[target][0]).to_pylist()
        equal(repr(found), repr(want), target)
    listed = ", ".join('"%s"' % c[0] for c in columns)
    count, = duckdb.execute("SELECT count(*) FROM (SELECT %s FROM read_parquet('%s'))" %
                            (listed, out)).fetchone()
    equal(count, len(rows), "rows of DuckDB")
    judge_groups(out, len(rows), group_bytes, inputs)


def judge_schema(path, columns):
    schema = pq.read_schema(path)
    for i, (name, _, number) in enumerate(columns):
        equal(schema.field(i).metadata[b"PARQUET:field_id"], b"%d" % number, name, "field id")
    equal(schema.field(len(columns)).metadata[b"PARQUET:field_id"], b"2147483646", "row ids")


def judge_groups(path, rows, group_bytes, inputs):
    """Small row groups were put together: one is left where all fit."""
    meta = pq.read_metadata(path)
    if group_bytes > 1 << 26:
        equal(meta.num_row_groups, 1, "row groups")
    equal(sum(meta.row_group(g).num_rows for g in range(meta.num_row_groups)), rows)


def refused_merges(directory, _):
    path = lambda name: os.path.join(directory, name)

    def refused(why, code, column, kind, values, *options, nullable=True):
        schema = pa.schema([field("a", kind, 1, nullable)])
        pq.write_table(pa.Table.from_arrays([pa.array(values, kind)], schema=schema), path("in"))
        answer, = tool("merge", path("out"), *options, column, "--", path("in"))
        check("error" in answer, "merged what must be refused for", why)
        equal((answer["code"], why in text(answer["error"])), (code, True), text(answer["error"]))

    cannot = "has values that its type cannot hold"
    refused(cannot, "refused", "1:int32:a", pa.int64(), [1])
    refused(cannot, "refused", "1:int8:a", pa.int32(), [1])
    refused(cannot, "refused", "1:uint32:a", pa.int32(), [1])
    refused(cannot, "refused", "1:int32:a", pa.uint32(), [1])
    refused(cannot, "refused", "1:float32:a", pa.float64(), [1])
    refused(cannot, "refused", "1:varchar:a", pa.int32(), [1])
    refused(cannot, "refused", "1:date:a", pa.int32(), [1])
    refused(cannot, "refused", "1:timestamp:a", stamp("us", "UTC"), [1])
    refused(cannot, "refused", "1:timestamp:a", stamp("ns"), [1])
    refused(cannot, "refused", "1:decimal(9,2):a", pa.decimal128(9, 3), [DECIMAL("1.000")])
    refused(cannot, "refused", "1:uuid:a", pa.binary(15), [b"x" * 15])
    refused("does not fit", "bad data", "1:decimal(5,2):a", pa.decimal128(9, 2), [DECIMAL("1000.00")])
    refused("does not fit", "bad data", "1:timestamp_ms:a", stamp("us"), [1001])
    refused("at most 100000", "full", "1:varchar:a", pa.string(), ["x%d" % i * 30 for i in range(9999)],
            "--bytes-max", 100000)


def damaged_merges(directory, seed):
    """Any byte of a file may be another, its footer's too: refused or merged, the tool goes on."""
    r = random.Random(seed)
    columns = [("c%d" % i, name, i + 1) for i, name in enumerate(r.sample(list(TARGETS), 6))]
    asked = ["%d:%s:%s" % (number, target, name) for name, target, number in columns]
    path, bad = os.path.join(directory, "in-0.parquet"), os.path.join(directory, "bad")
    told, out = [], os.path.join(directory, "out")
    while len(told) < 20:
        merge_input(directory, r, 0, columns, 0)
        with open(path, "rb") as file:
            data = bytearray(file.read())
        footer = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
        for _ in range(r.choice([1, 2, 5])):
            at = r.randrange(footer if r.random() < 0.7 else 4, len(data) - 8)
            data[at] = r.choice([0, 1, 0x7f, 0x80, 0xff, data[at] ^ 1 << r.randrange(8)])
        with open(bad, "wb") as file:
            file.write(data)
        tool("values", bad)
        told += tool("merge", out, "--sort", r.randrange(1, 7), *asked, "--", bad)
        if "error" not in told[-1] and told[-1]["rows"]:
            tool("values", out)
    check(any("error" in answer for answer in told), "no damage was seen")


def main():
    return run([(one_file, seed) for seed in range(FILES)] +
               [(one_of_duckdb, seed) for seed in range(6)] +
               [(one_of_ours, seed) for seed in range(1, 1 + FILES // 5)] + [(refusals, 0)] +
               [(one_merge, seed) for seed in range(FILES)] + [(refused_merges, 0)] +
               [(damaged_merges, seed) for seed in range(1 + FILES // 20)])


if __name__ == "__main__":
    sys.exit(main())
