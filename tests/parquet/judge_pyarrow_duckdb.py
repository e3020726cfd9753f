#!/usr/bin/env python3
"""Judges Parquet files of ours by what pyarrow, DuckDB and a reader of the metadata find in them.

    judge_pyarrow_duckdb.py PARQUET_RANDOM [FIRST_SEED [COUNT]]   makes files, then judges them
    judge_pyarrow_duckdb.py DIRECTORY                             judges files that are there

Every *.expect file says what its *.parquet file must hold (see parquet_random.c). Checked are all
values and nulls in both readers, types, field ids, codecs and row groups; statistics, page index
and the numbers for the catalog are compared with what the expected values say, bytes and flags
taken from the file by the small Thrift reader below. Ends with "N passed, N failed".
"""
import decimal
import functools
import os
import random
import struct
import subprocess
import sys
import tempfile

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

TEXT_CHUNK_MAX, TEXT_PAGE_MAX, TEXT_STATS_MAX = 256, 64, 4096


# ---- Thrift compact protocol, reading --------------------------------------------------------
class Thrift:
    """Structs as {field id: value}, lists as lists; enough to look at Parquet metadata."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            b = self.byte()
            value |= (b & 0x7F) << shift
            shift += 7
            if b < 0x80:
                return value

    def zigzag(self):
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def value(self, kind, element=False):
        if kind in (1, 2):
            return self.byte() == 1 if element else kind == 1
        if kind == 3:
            return struct.unpack("b", bytes([self.byte()]))[0]
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 8:
            size = self.varint()
            self.at += size
            return bytes(self.data[self.at - size:self.at])
        if kind == 9:
            head = self.byte()
            count = head >> 4 if head >> 4 != 15 else self.varint()
            return [self.value(head & 15, True) for _ in range(count)]
        if kind == 12:
            return self.struct()
        raise ValueError("thrift type %d" % kind)

    def struct(self):
        fields, last = {}, 0
        while True:
            head = self.byte()
            if head == 0:
                return fields
            last = last + (head >> 4) if head >> 4 else self.zigzag()
            assert last not in fields
            fields[last] = self.value(head & 15)


# ---- expectations ----------------------------------------------------------------------------
class Column:
    def __init__(self, type_name, field_id, name, stats):
        self.type, self.field_id, self.name, self.stats = type_name, field_id, name, stats
        self.values = []


def cell(text):
    return None if text == "-" else b"" if text == "." else bytes.fromhex(text)


def read_expectation(path):
    codec, groups, footer, stats, columns = None, None, None, None, []
    with open(path) as lines:
        for line in lines:
            line = line.rstrip("\n")
            word, _, rest = line.partition(" ")
            if word == "codec":
                codec = rest
            elif word == "groups":
                groups = [int(n) for n in rest.split()]
            elif word == "footer":
                footer = int(rest)
            elif word == "stats":
                *numbers, low, high = rest.split(" ")
                stats = [int(n) for n in numbers] + [cell(low), cell(high)]
            elif word == "column":
                type_name, field_id, name = rest.split(" ")
                columns.append(Column(type_name, int(field_id), bytes.fromhex(name).decode(), stats))
            else:
                columns[-1].values.append(cell(line))
    return codec, groups, footer, columns


def precision_scale(type_name):
    return [int(n) for n in type_name[8:-1].split(",")]


# type -> physical, converted, logical as {union field: its struct}, DuckDB's name, Arrow's type
INT = lambda bits, sign: {10: {1: bits, 2: sign}}
STAMP = lambda unit, utc: {8: {1: utc, 2: {unit: {}}}}
TYPES = {
    "boolean": (0, None, None, "BOOLEAN", pa.bool_()),
    "int8": (1, 15, INT(8, True), "TINYINT", pa.int8()),
    "int16": (1, 16, INT(16, True), "SMALLINT", pa.int16()),
    "int32": (1, 17, INT(32, True), "INTEGER", pa.int32()),
    "int64": (2, 18, INT(64, True), "BIGINT", pa.int64()),
    "uint8": (1, 11, INT(8, False), "UTINYINT", pa.uint8()),
    "uint16": (1, 12, INT(16, False), "USMALLINT", pa.uint16()),
    "uint32": (1, 13, INT(32, False), "UINTEGER", pa.uint32()),
    "uint64": (2, 14, INT(64, False), "UBIGINT", pa.uint64()),
    "int128": (5, None, None, "DOUBLE", pa.float64()),
    "float32": (4, None, None, "FLOAT", pa.float32()),
    "float64": (5, None, None, "DOUBLE", pa.float64()),
    "date": (1, 6, {6: {}}, "DATE", pa.date32()),
    "time": (2, 8, {7: {1: False, 2: {2: {}}}}, "TIME", pa.time64("us")),
    "timestamp_s": (2, 10, STAMP(2, False), "TIMESTAMP", pa.timestamp("us")),
    "timestamp": (2, 10, STAMP(2, False), "TIMESTAMP", pa.timestamp("us")),
    "timestamp_ms": (2, 9, STAMP(1, False), "TIMESTAMP", pa.timestamp("ms")),
    "timestamp_ns": (2, None, STAMP(3, False), "TIMESTAMP_NS", pa.timestamp("ns")),
    "timestamptz": (2, 10, STAMP(2, True), "TIMESTAMP WITH TIME ZONE", pa.timestamp("us", "UTC")),
    "varchar": (6, 0, {1: {}}, "VARCHAR", pa.string()),
    "json": (6, 19, {12: {}}, "JSON", None),
    "blob": (6, None, None, "BLOB", pa.binary()),
    "uuid": (7, None, {14: {}}, "UUID", None),
}


def traits(type_name):
    if not type_name.startswith("decimal"):
        return TYPES[type_name]
    p, s = precision_scale(type_name)
    physical = 1 if p <= 9 else 2 if p <= 18 else 7
    return physical, 5, {5: {1: s, 2: p}}, "DECIMAL(%d,%d)" % (p, s), pa.decimal128(p, s)


def is_text(type_name):
    return type_name in ("varchar", "json", "blob")


def to_key(type_name, plain):
    """A value as Python orders it, by the column order of its type; None for NaN."""
    if is_text(type_name) or type_name == "uuid":
        return plain
    if type_name in ("float32", "float64", "int128"):
        value = struct.unpack("<f" if type_name == "float32" else "<d", plain)[0]
        return None if value != value else value
    if type_name.startswith("decimal"):
        return int.from_bytes(plain, "big" if len(plain) == 16 else "little", signed=True)
    return int.from_bytes(plain, "little", signed=not type_name.startswith(("uint", "boolean")))


# ---- readers -> PLAIN bytes ------------------------------------------------------------------
def plain_of_array(array, type_name):
    """An Arrow array as a list of PLAIN bytes; bits come from its buffers, untouched."""
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    kind = array.type
    valid = array.is_valid().to_pylist()
    if pa.types.is_boolean(kind):
        return [None if v is None else bytes([v]) for v in array.to_pylist()]
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind):
        return [None if v is None else v for v in array.cast(pa.large_binary()).to_pylist()]
    width = kind.bit_width // 8
    data = memoryview(array.buffers()[1]) if array.buffers()[1] else memoryview(b"")
    raw = [bytes(data[(array.offset + i) * width:(array.offset + i + 1) * width]) if ok else None
           for i, ok in enumerate(valid)]
    if type_name.startswith("decimal"):
        p, _ = precision_scale(type_name)
        size, order = (4, "little") if p <= 9 else (8, "little") if p <= 18 else (16, "big")
        return [None if v is None else
                int.from_bytes(v, "little", signed=True).to_bytes(size, order, signed=True) for v in raw]
    if width < 4:
        sign = not type_name.startswith("uint")
        return [None if v is None else
                int.from_bytes(v, "little", signed=sign).to_bytes(4, "little", signed=sign) for v in raw]
    return raw


def plain_of_column(chunked, type_name):
    return [v for chunk in chunked.chunks for v in plain_of_array(chunk, type_name)]


class Failed(Exception):
    pass


def check(condition, text, *args):
    if not condition:
        raise Failed(text % args)


def check_values(reader, column, got):
    check(len(got) == len(column.values), "%s: %s has %d rows, not %d", reader, column.name, len(got),
          len(column.values))
    for row, (a, b) in enumerate(zip(got, column.values)):
        check(a == b, "%s: %s %s row %d is %s, not %s", reader, column.type, column.name, row,
              a and a.hex()[:80], b and b.hex()[:80])


def judge_pyarrow(path, columns):
    table = pq.ParquetFile(path).read()
    check(table.schema.names == [c.name for c in columns], "pyarrow: names %s", table.schema.names)
    table.validate(full=True)
    for column, field, data in zip(columns, table.schema, table.columns):
        want = traits(column.type)[4]
        check(want is None or field.type == want, "pyarrow: %s is %s", column.type, field.type)
        check(field.metadata[b"PARQUET:field_id"] == b"%d" % column.field_id, "field id %s", field.metadata)
        check_values("pyarrow", column, plain_of_column(data, column.type))


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def duckdb_plain(column, data):
    if column.type == "uuid":
        return [None if v is None else bytes.fromhex(v.replace("-", "")) for v in data.to_pylist()]
    if column.type == "timestamp_ms":  # DuckDB gives microseconds
        whole = plain_of_column(data, column.type)
        scale = 1 if data.type.unit == "ms" else 1000
        out = []
        for v in whole:
            n = None if v is None else int.from_bytes(v, "little", signed=True)
            check(n is None or n % scale == 0, "fraction of a millisecond")
            out.append(None if v is None else (n // scale).to_bytes(8, "little", signed=True))
        return out
    return plain_of_column(data, column.type)


def judge_duckdb(con, path, columns):
    kinds = con.execute("DESCRIBE SELECT * FROM read_parquet(?)", [path]).fetchall()
    for column, kind in zip(columns, kinds):
        check(kind[0] == column.name and kind[1] == traits(column.type)[3], "duckdb: %s is %s", column.type,
              kind[:2])
    select = ", ".join("CAST(%s AS VARCHAR)" % quoted(c.name) if c.type in ("uuid", "json") else quoted(c.name)
                       for c in columns)
    table = con.execute("SELECT %s FROM read_parquet(?)" % select, [path]).to_arrow_table()
    for column, data in zip(columns, table.columns):
        check_values("duckdb", column, duckdb_plain(column, data))
    ids = con.execute("SELECT name, field_id FROM parquet_schema(?) WHERE field_id IS NOT NULL", [path]).fetchall()
    check(ids == [(c.name, c.field_id) for c in columns], "duckdb: field ids %s", ids)


def literal(column, plain):
    """SQL for a value, where DuckDB has one that is exact."""
    t = column.type
    if t.startswith(("int", "uint")) and t != "int128":
        return str(to_key(t, plain))
    if t == "boolean":
        return "true" if plain[0] else "false"
    if t.startswith("decimal"):
        p, s = precision_scale(t)
        exact = decimal.Decimal(to_key(t, plain)).scaleb(-s, decimal.Context(prec=40))
        return "CAST('%s' AS DECIMAL(%d,%d))" % (format(exact, "f"), p, s)
    return None


def judge_pruning(con, path, columns, rng):
    """Filters that DuckDB answers with the help of statistics find what is there."""
    for column in columns:
        nulls = sum(v is None for v in column.values)
        got = con.execute("SELECT count(*) FROM read_parquet(?) WHERE %s IS NULL" % quoted(column.name),
                          [path]).fetchone()[0]
        check(got == nulls, "duckdb: IS NULL finds %d, not %d", got, nulls)
        some = [v for v in column.values if v is not None]
        if not some:
            continue
        for plain in {rng.choice(some), max(some), min(some)}:
            want = sum(v == plain for v in some)
            parameter = None
            if column.type in ("float64", "int128", "float32"):
                value = to_key(column.type, plain)
                if value is None:
                    continue
                want = sum(to_key(column.type, v) == value for v in some)
                parameter = value
                sql = "CAST(? AS %s)" % traits(column.type)[3]
            elif column.type == "varchar":
                parameter, sql = plain.decode(), "?"
            elif column.type == "blob":
                parameter, sql = plain, "?"
            else:
                sql = literal(column, plain)
            if sql is None:
                continue
            args = [path] if parameter is None else [path, parameter]
            got = con.execute("SELECT count(*) FROM read_parquet(?) WHERE %s = %s" % (quoted(column.name), sql),
                              args).fetchone()[0]
            check(got == want, "duckdb: %s = %s finds %d, not %d", column.type, plain.hex()[:60], got, want)


def judge_float_pruning(con, path, columns, rng):
    """NaN and the two zeros, with both readers: DuckDB orders NaN last, Arrow compares it false."""
    for column in columns:
        if column.type not in ("float32", "float64", "int128"):
            continue
        keys = [to_key(column.type, v) for v in column.values if v is not None]
        nans = sum(k is None for k in keys)
        keys = [k for k in keys if k is not None]
        for limit in {0.0, rng.choice(keys or [1.0])}:
            above, equal = sum(k > limit for k in keys), sum(k == limit for k in keys)
            name, sql = quoted(column.name), "CAST(? AS %s)" % traits(column.type)[3]
            for operator, want in ((">", above + nans), ("=", equal), ("<=", len(keys) - above)):
                got = con.execute("SELECT count(*) FROM read_parquet(?) WHERE %s %s %s" % (name, operator, sql),
                                  [path, limit]).fetchone()[0]
                check(got == want, "duckdb: %s %s %r finds %d, not %d", column.type, operator, limit, got, want)
            scalar = pa.scalar(limit, traits(column.type)[4])
            for operator, want in ((">", above), ("==", equal)):
                got = pq.read_table(path, filters=[(column.name, operator, scalar)]).num_rows
                check(got == want, "pyarrow: %s %s %r finds %d, not %d", column.type, operator, limit, got, want)


# ---- metadata --------------------------------------------------------------------------------
def utf8_or_none(data):
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def max_must_exist(column, value, limit):
    """Whether a bound above the value fits: some code point or byte, but for the last, can grow."""
    if column.type == "blob":
        return value[:limit].strip(b"\xff") != b""
    text = value[:limit].decode(errors="ignore")
    return any(ord(c) != 0x10FFFF for c in text[:-1])


def check_bound(column, what, which, bound, exact, value, limit):
    """bound (bytes or None) stands for `value`, the true extreme of what it covers."""
    long = is_text(column.type) and len(value) > limit
    if column.type in ("float32", "float64", "int128") and to_key(column.type, value) == 0:
        value = value[:-1] + (b"\x80" if which == 0 else b"\x00")  # -0.0 below, +0.0 above
    if not long:
        check(bound == value, "%s: bound %s, not %s", what, bound and bound.hex()[:40], value.hex()[:40])
        check(exact is None or exact, "%s: an exact bound is not said to be", what)
        return
    check(exact is None or not exact, "%s: a cut bound is said to be exact", what)
    if bound is None:
        check(which == 1 and not max_must_exist(column, value, limit), "%s: no bound", what)
        return
    check(0 < len(bound) <= limit, "%s: %d bytes", what, len(bound))
    check(column.type == "blob" or utf8_or_none(bound) is not None, "%s: not UTF-8: %s", what, bound.hex())
    if which == 0:
        check(value.startswith(bound) and len(bound) > limit - 4, "%s: %s is no prefix", what, bound.hex()[:40])
    else:
        check(bound > value, "%s: %s is not above", what, bound.hex()[:40])


def extremes(column, values):
    keys = [(to_key(column.type, v), v) for v in values if v is not None]
    nans = sum(k is None for k, _ in keys)
    keys = [p for p in keys if p[0] is not None]
    if not keys:
        return None, None, nans
    return min(keys, key=lambda p: p[0])[1], max(keys, key=lambda p: p[0])[1], nans


def judge_chunk_statistics(column, values, stats):
    low, high, nans = extremes(column, values)
    check(stats[3] == sum(v is None for v in values), "null_count %s", stats.get(3))
    check(1 not in stats and 2 not in stats, "deprecated statistics")
    if low is None or nans:  # bounds beside a NaN mislead readers that order NaN last
        check(5 not in stats and 6 not in stats, "bounds of nothing or beside a NaN")
        return
    check_bound(column, "min of " + column.type, 0, stats.get(6), stats.get(8), low, TEXT_CHUNK_MAX)
    check_bound(column, "max of " + column.type, 1, stats.get(5), stats.get(7) if 5 in stats else False, high,
                TEXT_CHUNK_MAX)


def judge_boundary_order(column, index, order):
    for which in (2, 3):
        keys = [to_key(column.type, v) for v, null in zip(index[which], index[1]) if not null]
        check(order != 1 or keys == sorted(keys), "boundary order is not ascending")
        check(order != 2 or keys == sorted(keys, reverse=True), "boundary order is not descending")
    if order == 0:
        both = [[to_key(column.type, v) for v, null in zip(index[w], index[1]) if not null] for w in (2, 3)]
        check(not all(k == sorted(k) for k in both), "boundary order could be ascending")
        check(not all(k == sorted(k, reverse=True) for k in both), "boundary order could be descending")


def judge_column_index(column, pages, index):
    """pages: the values of each page."""
    possible = True
    for values in pages:
        _, high, nans = extremes(column, values)
        if nans:
            possible = False
        if high is not None and is_text(column.type) and len(high) > TEXT_PAGE_MAX \
                and not max_must_exist(column, high, TEXT_PAGE_MAX):
            possible = index is not None and possible
    check((index is not None) == possible, "%s: column index %s", column.type, "is there" if index else "is missing")
    if index is None:
        return
    check(len(index[1]) == len(index[2]) == len(index[3]) == len(index[5]) == len(pages), "index of other length")
    for i, values in enumerate(pages):
        nulls = sum(v is None for v in values)
        check(index[5][i] == nulls, "page %d: %d nulls, not %d", i, index[5][i], nulls)
        check(index[1][i] == (nulls == len(values)), "page %d: null_pages", i)
        low, high, _ = extremes(column, values)
        if low is None:
            check(index[2][i] == b"" and index[3][i] == b"", "page %d: bounds of nothing", i)
            continue
        check_bound(column, "page min", 0, index[2][i], None, low, TEXT_PAGE_MAX)
        check_bound(column, "page max", 1, index[3][i], None, high, TEXT_PAGE_MAX)
    judge_boundary_order(column, index, index[4])


CODEC_NUMBERS = {"none": 0, "snappy": 1, "zstd": 6, "lz4_raw": 7, "gzip": 2}


def judge_codec(data, meta, codec):
    """The codec is the one asked for; none where it saves less than an eighth of the first page, which is
    PLAIN and of 64 KiB at least."""
    reader = Thrift(data, meta.get(11, meta[9]))
    head = reader.struct()
    large = head[1] == 0 and head[2] >= 65536
    if meta[4] == CODEC_NUMBERS[codec]:
        check(codec == "none" or not large or head[3] <= head[2] * 7 / 8 + 1, "%s does not pay", codec)
        return
    check(meta[4] == 0 and large, "codec %d", meta[4])
    body = data[reader.at:reader.at + head[3]]
    packed = pa.Codec(codec, compression_level=1 if codec == "zstd" else None).compress(body)
    check(len(packed) > len(body) * 0.86, "no codec, though %s makes %d bytes of %d", codec, len(packed), len(body))


def judge_chunk(data, column, values, chunk, codec):
    meta = chunk[3]
    physical, _, _, _, _ = traits(column.type)
    check(meta[1] == physical and meta[3] == [column.name.encode()], "column meta of another column")
    judge_codec(data, meta, codec)
    check(meta[5] == len(values), "%d values, not %d", meta[5], len(values))
    check(chunk[2] == 0, "file_offset %d", chunk[2])
    judge_chunk_statistics(column, values, meta[12])
    # the pages, one after the other
    start = meta.get(11, meta[9])
    at, raw, rows, pages, locations = start, 0, 0, [], []
    encodings = {}
    while at < start + meta[7]:
        reader = Thrift(data, at)
        head = reader.struct()
        size = reader.at - at + head[3]
        raw += reader.at - at + head[2]
        body = head[5] if head[1] == 0 else head[7]
        encodings[(head[1], body[2])] = encodings.get((head[1], body[2]), 0) + 1
        if head[1] == 0:
            locations.append({1: at, 2: size, 3: rows})
            pages.append(values[rows:rows + body[1]])
            rows += body[1]
            check(body[3] == 3 and body[4] == 3, "level encodings")
        else:
            check(head[1] == 2 and at == start and 11 in meta, "a dictionary page out of place")
        at += size
    check(at == start + meta[7] and rows == len(values), "pages do not fill the chunk")
    check(raw == meta[6], "uncompressed size %d, not %d", meta[6], raw)
    check(sorted((e[1], e[2], e[3]) for e in meta[13]) == sorted((k[0], k[1], n) for k, n in encodings.items()),
          "encoding stats %s", meta[13])
    check(set(meta[2]) == {e for _, e in encodings} | {0, 3}, "encodings %s", meta[2])
    offsets = Thrift(data, chunk[4]).struct()
    check(offsets[1] == locations, "offset index %s, not %s", offsets[1][:3], locations[:3])
    reader = Thrift(data, chunk[4])
    reader.struct()
    check(reader.at - chunk[4] == chunk[5], "length of the offset index")
    index = None
    if 6 in chunk:
        reader = Thrift(data, chunk[6])
        index = reader.struct()
        check(reader.at - chunk[6] == chunk[7], "length of the column index")
    judge_column_index(column, pages, index)
    return start


def judge_catalog(column, compressed):
    rows, nulls, nans, size, has, min_exact, max_exact, low, high = column.stats
    true_low, true_high, true_nans = extremes(column, column.values)
    check(rows == len(column.values) and nulls == sum(v is None for v in column.values), "catalog: rows, nulls")
    check(nans == true_nans, "catalog: %d NaNs, not %d", nans, true_nans)
    check(size == compressed, "catalog: %d bytes, not %d", size, compressed)
    if true_low is None or not has:
        check(not has, "catalog: bounds of nothing")
        check(true_low is None or not max_must_exist(column, true_high, TEXT_STATS_MAX), "catalog: no bounds")
        return
    check_bound(column, "catalog min", 0, low, bool(min_exact), true_low, TEXT_STATS_MAX)
    check_bound(column, "catalog max", 1, high, bool(max_exact), true_high, TEXT_STATS_MAX)


def judge_schema(schema, columns):
    check(schema[0][5] == len(columns) == len(schema) - 1, "%d columns", len(schema) - 1)
    for element, column in zip(schema[1:], columns):
        physical, converted, logical, _, _ = traits(column.type)
        check(element[1] == physical and element[3] == 1, "physical type %s", element)
        check(element[4] == column.name.encode() and element[9] == column.field_id, "name, field id %s", element)
        check(element.get(6) == converted and element.get(10) == logical, "%s: %s", column.type, element)
        check(element.get(2) == (16 if physical == 7 else None), "type_length %s", element)
        if column.type.startswith("decimal"):
            check([element[8], element[7]] == precision_scale(column.type), "decimal %s", element)


def judge_metadata(path, codec, groups, footer_bytes, columns):
    with open(path, "rb") as file:
        data = file.read()
    check(data[:4] == data[-4:] == b"PAR1", "magic")
    size = int.from_bytes(data[-8:-4], "little")
    check(size == footer_bytes, "footer of %d bytes, not %d", size, footer_bytes)
    reader = Thrift(data, len(data) - 8 - size)
    meta = reader.struct()
    check(reader.at == len(data) - 8, "footer length")
    judge_schema(meta[2], columns)
    check(meta[3] == sum(groups) and [g[3] for g in meta[4]] == groups, "row groups %s", [g[3] for g in meta[4]])
    check(meta[7] == [{1: {}}] * len(columns), "column orders")
    compressed = [0] * len(columns)
    first = 0
    place = 4
    for number, group in enumerate(meta[4]):
        check(group[7] == number and group[5] == place, "group ordinal, offset")
        for i, (column, chunk) in enumerate(zip(columns, group[1])):
            start = judge_chunk(data, column, column.values[first:first + group[3]], chunk, codec)
            check(start == place, "a gap before a chunk")
            place += chunk[3][7]
            compressed[i] += chunk[3][7]
        check(group[2] == sum(c[3][6] for c in group[1]) and group[6] == sum(c[3][7] for c in group[1]), "sizes")
        first += group[3]
    for column, size in zip(columns, compressed):
        judge_catalog(column, size)


def judge_file(con, path, rng):
    codec, groups, footer, columns = read_expectation(path)
    parquet = path[:-len("expect")] + "parquet"
    judge_metadata(parquet, codec, groups, footer, columns)
    judge_pyarrow(parquet, columns)
    judge_duckdb(con, parquet, columns)
    judge_pruning(con, parquet, columns, rng)
    judge_float_pruning(con, parquet, columns, rng)


def judge_directory(directory):
    con = duckdb.connect(config={"threads": 1})
    con.execute("SET TimeZone = 'UTC'")
    rng = random.Random(1)
    passed = failed = 0
    for name in sorted(os.listdir(directory)):
        if not name.endswith(".expect"):
            continue
        try:
            judge_file(con, os.path.join(directory, name), rng)
            passed += 1
        except Exception as error:
            failed += 1
            print("FAILED %s: %s: %s" % (name, type(error).__name__, error))
    return passed, failed


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if os.path.isdir(sys.argv[1]):
        passed, failed = judge_directory(sys.argv[1])
    else:
        first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
        count = int(sys.argv[3]) if len(sys.argv) > 3 else 40
        passed = failed = 0
        for seed in range(first, first + count):
            with tempfile.TemporaryDirectory() as directory:
                subprocess.run([sys.argv[1], directory, str(seed)], check=True)
                good, bad = judge_directory(directory)
            passed, failed = passed + good, failed + bad
    print("%d passed, %d failed" % (passed, failed))
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
