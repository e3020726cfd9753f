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
    answer, = tool("merge", out, *options, "--group-bytes", group_bytes, "--codec", r.randrange(5),
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


# ---- nested columns ---------------------------------------------------------------------------
def leaf(name, kind, number, nullable=True):
    return field(name, kind, number, nullable)


def nested_kinds(n):
    """{name: (Arrow type, a value)}; field ids from n on."""
    def maybe(r, make):
        return None if r.random() < 0.2 else make(r)

    def some(r, make, most=4):
        return [make(r) for _ in range(r.choice([0, 1, 1, 2, most]))]

    def number_or_null(r):
        return maybe(r, lambda r: r.randrange(-99, 99))

    def pair(r):
        return {"x": number_or_null(r), "y": maybe(r, words)}

    struct = pa.struct([leaf("x", pa.int32(), n + 1), leaf("y", pa.string(), n + 2)])
    return {
        "ints": (pa.list_(leaf("element", pa.int64(), n + 1)), lambda r: some(r, number_or_null)),
        "long ints": (pa.list_(leaf("element", pa.int16(), n + 1)),
                      lambda r: some(r, number_or_null, r.choice([4, 4, 4, 3000]))),
        "whole ints": (pa.list_(leaf("element", pa.int64(), n + 1, False)),
                       lambda r: some(r, lambda r: r.randrange(9))),
        "structs": (pa.list_(leaf("element", struct, n + 3)),
                    lambda r: some(r, lambda r: maybe(r, pair))),
        "map": (pa.map_(pa.string(), leaf("value", pa.string(), n + 2)),
                lambda r: [(k, maybe(r, words)) for k in {words(r) for _ in range(r.randrange(4))}]),
        "struct": (struct, pair),
        "struct of structs": (pa.struct([leaf("in", struct, n + 3), leaf("b", pa.bool_(), n + 4)]),
                              lambda r: {"in": maybe(r, pair), "b": maybe(r, lambda r: r.random() < 0.5)}),
        "lists of lists": (pa.list_(leaf("element", pa.list_(leaf("element", pa.string(), n + 1)),
                                         n + 2)),
                           lambda r: some(r, lambda r: maybe(r, lambda r: some(r, lambda r: maybe(r, words))))),
        "many types": (pa.struct([leaf(name.replace("(", "_").replace(",", "_").replace(")", ""),
                                       TARGETS[name][0], n + 1 + i)
                                  for i, name in enumerate(MANY)]),
                       lambda r: {name.replace("(", "_").replace(",", "_").replace(")", ""):
                                  maybe(r, TARGETS[name][2]) for name in MANY}),
    }


MANY = ["boolean", "int8", "uint16", "uint64", "float64", "decimal(9,2)", "decimal(38,10)", "date",
        "time", "timestamp_ms", "timestamp", "timestamp_ns", "timestamptz", "blob", "uuid"]


def with_map_ids(kind, n):
    """A map's key is a field too; pyarrow takes its id from the field, as of any other."""
    if not pa.types.is_map(kind):
        return kind
    return pa.map_(leaf("key", pa.string(), n + 1, False), kind.item_field)


def asked(name, number, kind):
    """A column as the tool is asked for it."""
    def inner(at):
        one = kind.field(at)
        return asked(one.name, int(one.metadata[b"PARQUET:field_id"]), one.type)
    if pa.types.is_list(kind):
        words = "list<%s>" % inner(0)
    elif pa.types.is_map(kind):
        words = "map<%s,%s>" % tuple(
            asked(one.name, int(one.metadata[b"PARQUET:field_id"]), one.type)
            for one in (kind.key_field, kind.item_field))
    elif pa.types.is_struct(kind):
        words = "struct<%s>" % ",".join(inner(i) for i in range(kind.num_fields))
    elif pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        words = "blob"
    else:
        words, = {t for t, (k, _, _) in TARGETS.items() if k == kind and t not in ("json", "uuid")}
    return "%d:%s:%s" % (number, words, name)


def nested_input(directory, r, i, columns, first_id):
    rows = r.choice([1, 30, 300, 900])
    fields, arrays = [field("k", pa.int64(), 1)], [pa.array(
        [None if r.random() < 0.1 else r.randrange(20) for _ in range(rows)], pa.int64())]
    for name, kind, make, number in columns:
        if r.random() < 0.15 and i:
            continue
        required = r.random() < 0.3
        nulls = 0 if required else r.choice([0, 0.2, 1])
        values = [None if r.random() < nulls else make(r) for _ in range(rows)]
        fields.append(field(name, kind, number, not required))
        arrays.append(pa.array(values, kind))
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    path = os.path.join(directory, "nested-%d.parquet" % i)
    pq.write_table(table, path, compression=r.choice(CODECS), row_group_size=r.choice([13, 100, 1000]),
                   data_page_version=r.choice(["1.0", "2.0"]), data_page_size=r.choice([1, 200, 1 << 20]),
                   write_batch_size=r.choice([3, 100, 1024]), use_dictionary=r.random() < 0.5)
    deleted = sorted(r.sample(range(rows), r.choice([0, 1, rows // 3, rows // 2])))
    told = "%s:%d" % (path, first_id)
    if deleted:
        told += ":" + ",".join(map(str, deleted))
    gone = set(deleted)
    kept = table.append_column(ROW_ID, pa.array(range(first_id, first_id + rows), pa.int64()))
    return told, kept.take(pa.array([row for row in range(rows) if row not in gone], pa.int64()))


def one_nested_merge(directory, seed):
    """Deleted rows gone, sorted by a flat column: what pyarrow's own take makes of the same rows."""
    r = random.Random(seed)
    columns = []
    for i, name in enumerate(r.sample(list(nested_kinds(0)), r.choice([1, 3, 5]))):
        number = 100 * (i + 1)
        kind, make = nested_kinds(number)[name]
        columns.append((name, with_map_ids(kind, number), make, number))
    inputs, tables, first_id = [], [], 0
    for i in range(r.choice([1, 2, 4])):
        told, kept = nested_input(directory, r, i, columns, first_id)
        inputs.append(told)
        tables.append(kept)
        first_id += 1000
    names = ["k"] + [c[0] for c in columns] + [ROW_ID]
    whole = pa.concat_tables(
        [t.select([n for n in names if n in t.column_names]).replace_schema_metadata(None)
         for t in tables], promote_options="permissive").select(names)
    options = []
    if r.random() < 0.6:
        options = ["--sort", "1"]
        order = sorted(range(whole.num_rows), key=lambda row: (
            whole.column("k")[row].as_py() is None, whole.column("k")[row].as_py() or 0))
        whole = whole.take(pa.array(order, pa.int64()))
    out = os.path.join(directory, "out.parquet")
    answer, = tool("merge", out, *options, "--group-bytes", r.choice([500, 20000, 1 << 27]), "--codec",
                   r.randrange(5), "1:int64:k", *[asked(c[0], c[3], c[1]) for c in columns],
                   "--", *inputs)
    check("error" not in answer, text(answer.get("error", "")))
    equal(answer["rows"], whole.num_rows, "rows told")
    if not whole.num_rows:
        return
    got = pq.read_table(out)
    equal(got.column_names, names, "columns")
    for name in names:
        equal(got.column(name).to_pylist(), whole.column(name).to_pylist(), name)
    judge_nested_schema(out, columns)
    judge_nested_chunks(out, whole, columns)
    for name, _, _, _ in columns:
        count, = duckdb.execute("SELECT count(\"%s\") FROM read_parquet('%s')" % (name, out)).fetchone()
        equal(count, whole.num_rows - whole.column(name).null_count, "DuckDB", name)
    # and once more: what we wrote is read as it stands
    again, = tool("merge", os.path.join(directory, "again"), "1:int64:k",
                  *[asked(c[0], c[3], c[1]) for c in columns], "--", out)
    equal(again.get("rows"), whole.num_rows, "read again")
    equal(pq.read_table(os.path.join(directory, "again")).select(names).to_pylist(),
          got.to_pylist(), "read again")


def field_ids(kind):
    out = []
    for i in range(kind.num_fields):
        inner = kind.field(i)
        out.append((inner.name, (inner.metadata or {}).get(b"PARQUET:field_id"), inner.nullable))
        out += field_ids(inner.type)
    return out


def judge_nested_schema(path, columns):
    """As pyarrow reads what it writes; but bytes of one length are bytes of any."""
    schema, other = pq.read_schema(path), path + ".schema"
    pq.write_table(pa.schema([pa.field(c[0], c[1]) for c in columns]).empty_table(), other,
                   store_schema=False)
    for name, _, _, number in columns:
        kind = pq.read_schema(other).field(name).type
        equal(schema.field(name).metadata[b"PARQUET:field_id"], b"%d" % number, name, "field id")
        check(schema.field(name).nullable, name, "is optional")
        equal(str(schema.field(name).type), str(kind).replace("fixed_size_binary[16]", "binary"),
              name, "type")
        equal(field_ids(schema.field(name).type), field_ids(kind), name, "field ids inside")


def judge_nested_chunks(path, whole, columns):
    """Counts and bounds that pyarrow finds when it writes the same rows."""
    other = path + ".pyarrow"
    pq.write_table(whole, other, row_group_size=whole.num_rows)
    ours, theirs = pq.read_metadata(path), pq.read_metadata(other)

    def of_path(meta, at, group):
        for i in range(meta.num_columns):
            if meta.row_group(group).column(i).path_in_schema == at:
                return meta.row_group(group).column(i)
        raise AssertionError(at)

    for i in range(theirs.num_columns):
        want = theirs.row_group(0).column(i)
        chunks = [of_path(ours, want.path_in_schema, g) for g in range(ours.num_row_groups)]
        equal(sum(c.num_values for c in chunks), want.num_values, want.path_in_schema, "values")
        equal(sum(c.statistics.null_count for c in chunks), want.statistics.null_count,
              want.path_in_schema, "nulls")
        check(all(c.has_offset_index for c in chunks), "offset index", want.path_in_schema)
        if want.statistics.has_min_max and want.physical_type in ("INT32", "INT64"):
            bounds = [(c.statistics.min, c.statistics.max) for c in chunks if c.statistics.has_min_max]
            equal((min(b[0] for b in bounds), max(b[1] for b in bounds)),
                  (want.statistics.min, want.statistics.max), want.path_in_schema, "bounds")


def nested_refusals(directory, _):
    """Inputs that are not of the column's shape; those whose leaves are of different types."""
    def write(name, kind, values, number=5):
        path = os.path.join(directory, name)
        schema = pa.schema([field("c", kind, number)])
        pq.write_table(pa.Table.from_arrays([pa.array(values, kind)], schema=schema), path)
        return path

    def merge(*paths, column="5:list<6:int32:element>:c"):
        return tool("merge", os.path.join(directory, "out"), column, "--", *paths)[0]

    ints = pa.list_(leaf("element", pa.int32(), 6))
    a = write("a", ints, [[1], None, []])
    for why, kind, values in (
            ("another field id", pa.list_(leaf("element", pa.int32(), 7)), [[1]]),
            ("has no field id", pa.list_(pa.int32()), [[1]]),
            ("another shape", pa.list_(leaf("element", pa.string(), 6)), [["x"]]),
            ("another kind", pa.struct([leaf("element", pa.int32(), 6)]), [{"element": 1}]),
            ("another kind", pa.map_(leaf("key", pa.int32(), 6, False), leaf("value", ints, 9)), [[]]),
            ("is a group", pa.list_(leaf("element", pa.struct([leaf("x", pa.int32(), 8)]), 6)), [[]])):
        answer = merge(write("b", kind, values), a)
        check("error" in answer and why in text(answer["error"]), str(kind), answer)
    both = pa.struct([leaf("x", pa.int32(), 6), leaf("y", pa.int32(), 7)])
    for why, kind in (("has no field id", pa.struct([leaf("x", pa.int32(), 6), ("y", pa.int32())])),
                      ("there twice", pa.struct([leaf("x", pa.int32(), 6), leaf("z", pa.int32(), 6)]))):
        answer = merge(write("b", kind, [None]), write("c", both, [None]),
                       column="5:struct<6:int32:x,7:int32:y>:c")
        check("error" in answer and why in text(answer["error"]), str(kind), answer)
    # narrower leaves are widened, optional and required ones go together
    for kind, values in ((pa.int16(), [[7, None]]), (pa.int8(), [[7, 8]])):
        path = write("b", pa.list_(leaf("element", kind, 6, None in values[0])), values)
        for paths, want in (((path, a), values + [[1], None, []]), ((a, path), [[1], None, []] + values)):
            answer = merge(*paths)
            equal(answer.get("rows"), 4, answer)
            got = pq.read_table(os.path.join(directory, "out")).column("c")
            equal((got.type, got.to_pylist()), (ints, want))
    # a nested column that all lack is null
    answer = merge(a, column="9:map<10:varchar:key,11:list<12:int64:element>:value>:z")
    equal(answer.get("rows"), 3)
    got = pq.read_table(os.path.join(directory, "out"))
    equal((got.column_names, got.column("z").to_pylist()), (["z", ROW_ID], [None] * 3))
    want = pa.map_(leaf("key", pa.string(), 10, False), leaf("value", pa.list_(leaf("element", pa.int64(), 12)), 11))
    equal([str(got.schema.field("z").type)], as_written(directory, [field("z", want, 9)]))


# ---- nested columns whose fields changed ------------------------------------------------------
# A column as a table has it: {"id", "name", "kind", "inside"}, where kind is list, map, struct or a
# scalar of EVOLVES.
EVOLVES = {"int8": (pa.int8(), "int64"), "int64": (pa.int64(), None), "float32": (pa.float32(), "float64"),
           "float64": (pa.float64(), None), "varchar": (pa.string(), None), "boolean": (pa.bool_(), None),
           "date": (pa.date32(), None), "decimal(9,2)": (pa.decimal128(9, 2), None),
           "int16": (pa.int16(), "int32"), "int32": (pa.int32(), "int64")}


class History:
    """Random columns, and what is done to them over time."""

    def __init__(self, r):
        self.r, self.next_id = r, 10

    def new(self, name, depth, kinds=("struct", "struct", "list", "map")):
        kind = self.r.choice(kinds if depth else list(EVOLVES))
        if depth and depth < 3 and self.r.random() < 0.4:
            kind = self.r.choice(list(EVOLVES))
        column = {"id": self.next_id, "name": name, "kind": kind, "inside": []}
        self.next_id += 1
        if kind == "struct":
            column["inside"] = [self.new("f%d" % self.next_id, depth - 1)
                                for _ in range(self.r.choice([1, 2, 3]))]
        elif kind == "list":
            column["inside"] = [self.new("element", depth - 1)]
        elif kind == "map":
            column["inside"] = [self.new("key", 0, ()), self.new("value", depth - 1)]
            column["inside"][0]["kind"] = "varchar"
        return column

    def change(self, column):
        """The same column later: fields added, dropped, renamed, promoted, moved."""
        r = self.r
        column = dict(column, inside=[self.change(c) for c in column["inside"]])
        inside = column["inside"]
        if column["kind"] == "struct":
            if len(inside) > 1 and r.random() < 0.4:
                del inside[r.randrange(len(inside))]
            if r.random() < 0.5:
                inside.append(self.new("f%d" % self.next_id, r.choice([0, 0, 1, 2])))
            if len(inside) > 1 and r.random() < 0.2:  # all that was there goes, what is new stays
                inside[:] = [inside[-1]]
            if r.random() < 0.2:
                inside[0] = dict(inside[0], name="g%d" % self.next_id)
            if r.random() < 0.2:
                r.shuffle(inside)
        elif column["kind"] in EVOLVES and EVOLVES[column["kind"]][1] and r.random() < 0.4:
            column["kind"] = EVOLVES[column["kind"]][1]
        return column


def arrow_of(column, required=()):
    inside = [leaf(c["name"], arrow_of(c, required), c["id"],
                   c["id"] not in required and not (column["kind"] == "map" and c["name"] == "key"))
              for c in column["inside"]]
    return {"struct": lambda: pa.struct(inside), "list": lambda: pa.list_(inside[0]),
            "map": lambda: pa.map_(*inside)}.get(column["kind"], lambda: EVOLVES[column["kind"]][0])()


def value_of(r, column, required, key=False):
    if column["id"] not in required and not key and r.random() < 0.25:
        return None
    inside = column["inside"]
    if column["kind"] == "struct":
        return {c["name"]: value_of(r, c, required) for c in inside}
    if column["kind"] == "list":
        return [value_of(r, inside[0], required) for _ in range(r.choice([0, 0, 1, 2, 3, 7]))]
    if column["kind"] == "map":
        return [("k%d" % i, value_of(r, inside[1], required)) for i in range(r.choice([0, 0, 1, 2, 4]))]
    return TARGETS[column["kind"]][2](r)


def seen_as(value, old, new):
    """What a reader by field ids makes of an older value."""
    if value is None:
        return None
    if new["kind"] == "struct":
        was = {c["id"]: c for c in old["inside"]}
        return {c["name"]: seen_as(value[was[c["id"]]["name"]], was[c["id"]], c) if c["id"] in was
                else None for c in new["inside"]}
    if new["kind"] == "list":
        return [seen_as(v, old["inside"][0], new["inside"][0]) for v in value]
    if new["kind"] == "map":
        return [(k, seen_as(v, old["inside"][1], new["inside"][1])) for k, v in value]
    return value


def of_duckdb(value, column):
    """DuckDB's maps are dictionaries in Python."""
    if value is None:
        return None
    if column["kind"] == "struct":
        return {c["name"]: of_duckdb(value[c["name"]], c) for c in column["inside"]}
    if column["kind"] == "list":
        return [of_duckdb(v, column["inside"][0]) for v in value]
    if column["kind"] == "map":
        return [(k, of_duckdb(v, column["inside"][1])) for k, v in value.items()]
    return value


def as_written(directory, fields):
    """The types of a file's columns, had pyarrow written it."""
    path = os.path.join(directory, "as-written")
    pq.write_table(pa.schema(fields).empty_table(), path, store_schema=False)
    return [str(kind).replace(" not null", "") for kind in pq.read_schema(path).types]


def one_evolution(directory, seed):
    """Files of a table whose nested columns changed, merged to the columns of now: the rows that a
    reader by field ids sees in the files."""
    r = random.Random(seed)
    history = History(r)
    columns = [history.new("c%d" % i, r.choice([1, 2, 3])) for i in range(r.choice([1, 2, 3]))]
    inputs, rows, first_id = [], [], 0
    for i in range(r.choice([2, 3, 6])):
        if i and r.random() < 0.7:
            columns = [history.change(c) for c in columns]
        required = {n for n in range(history.next_id) if r.random() < 0.15}
        there = [c for c in columns if not i or r.random() < 0.85]
        count = r.choice([1, 20, 200])
        table = [{c["id"]: value_of(r, c, required) for c in there} for _ in range(count)]
        keys = [r.randrange(9) for _ in range(count)]
        path = os.path.join(directory, "evolution-%d.parquet" % i)
        schema = pa.schema([field("k", pa.int64(), 1)] + [
            field(c["name"], arrow_of(c, required), c["id"], c["id"] not in required) for c in there])
        pq.write_table(pa.Table.from_arrays(
            [pa.array(keys, pa.int64())] +
            [pa.array([row[c["id"]] for row in table], arrow_of(c, required)) for c in there],
            schema=schema), path, compression=r.choice(CODECS), row_group_size=r.choice([7, 100]),
            data_page_version=r.choice(["1.0", "2.0"]), data_page_size=r.choice([1, 200, 1 << 20]),
            write_batch_size=r.choice([3, 1024]), use_dictionary=r.random() < 0.5)
        gone = sorted(r.sample(range(count), r.choice([0, count // 3])))
        inputs.append("%s:%d:%s" % (path, first_id, ",".join(map(str, gone))))
        rows += [(keys[row], first_id + row, table[row], there) for row in range(count)
                 if row not in gone]
        first_id += 1000
    want = [dict({c["name"]: None for c in columns}, k=k, **{ROW_ID: row_id}) for k, row_id, _, _ in rows]
    for row, (_, _, values, there) in zip(want, rows):
        for old in there:
            for new in (c for c in columns if c["id"] == old["id"]):
                row[new["name"]] = seen_as(values[old["id"]], old, new)
    options = ["--sort", "1"] if r.random() < 0.5 else []
    want.sort(key=lambda row: row["k"] if options else 0)
    out = os.path.join(directory, "out.parquet")
    answer, = tool("merge", out, *options, "--group-bytes", r.choice([500, 20000, 1 << 27]),
                   "1:int64:k", *[asked(c["name"], c["id"], arrow_of(c)) for c in columns], "--", *inputs)
    check("error" not in answer, text(answer.get("error", "")))
    got = pq.read_table(out)
    kinds = as_written(directory, [field(c["name"], arrow_of(c), c["id"]) for c in columns])
    for column, kind in zip(columns, kinds):
        name, found = column["name"], got.schema.field(column["name"]).type
        equal(got.column(name).to_pylist(), [row[name] for row in want], name)
        equal(str(found).replace(" not null", ""), kind, name)
        equal([(n, i) for n, i, _ in field_ids(found) if i],
              [(n, i) for n, i, _ in field_ids(arrow_of(column)) if i], name, "field ids")
        found = duckdb.execute("SELECT \"%s\" FROM read_parquet('%s')" % (name, out)).fetchall()
        equal([of_duckdb(v, column) for v, in found], [row[name] for row in want], "DuckDB", name)
    equal(got.column(ROW_ID).to_pylist(), [row[ROW_ID] for row in want], "row ids")
    judge_nested_chunks(out, got, [])


# ---- lists in their older form ----------------------------------------------------------------
def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def fields_of(data, at):
    """(field id, where its value begins, where it ends) of a struct of Thrift's compact protocol, and
    then where the struct ends."""
    number = 0
    while data[at]:
        number, kind, at = number + (data[at] >> 4), data[at] & 15, at + 1
        begin, at = at, after_value(data, at, kind)
        yield number, begin, at
    yield 0, at, at + 1


def after_value(data, at, kind):
    if kind in (1, 2):  # a bool is its header
        return at
    if kind == 8:
        size, at = varint(data, at)
        return at + size
    if kind == 12:
        return list(fields_of(data, at))[-1][2]
    assert kind in (5, 6), kind
    return varint(data, at)[1]


def make_older(path):
    """Takes the repeated group out of every list of required elements: the element is repeated."""
    with open(path, "rb") as file:
        data = file.read()
    begin = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    fields = {1: varint(data, begin + 1)[1]}
    at = fields[1] + 1  # behind the list's header of one byte that says its field
    count, at = (data[at] >> 4, at + 1) if data[at] >> 4 < 15 else varint(data, at + 1)
    elements, end = [], at
    for _ in range(count):
        parts = {number: (a, b) for number, a, b in fields_of(data, end)}
        elements.append((bytearray(data[end:parts[0][1]]), {n: (a - end, b - end)
                                                                for n, (a, b) in parts.items()}))
        end = parts[0][1]
    kept = []
    for element, parts in elements:
        if kept and kept[-1] is None:  # what was in the repeated group
            assert element[parts[3][0]] == 0, "it is required"
            element[parts[3][0]] = 4
            kept.pop()
        name = bytes(element[parts[4][0] + 1:parts[4][1]])
        kept.append(None if name == b"list" and element[parts[3][0]] == 4 else element)
    head = bytes([len(kept) << 4 | 12]) if len(kept) < 15 else bytes([0xfc, len(kept)])
    footer = data[begin:fields[1] + 1] + head + b"".join(kept) + data[end:-8]
    with open(path, "wb") as file:
        file.write(data[:begin] + footer + struct.pack("<I", len(footer)) + b"PAR1")


def older_lists(directory, seed):
    """Lists whose repeated node is the element itself go with those of the form of today."""
    r = random.Random(seed)
    pair = pa.struct([leaf("x", pa.int32(), 7), leaf("y", pa.string(), 8)])
    one = pa.struct([leaf("x", pa.int32(), 7)])

    def of(element, number=6, required=True):
        return pa.list_(leaf("element", element, number, not required))

    def some(make, most=3):
        return [make() for _ in range(r.randrange(most + 1))]

    maybe = lambda: r.choice([None, r.randrange(99)])
    cases = [(of(pa.int32()), lambda: some(lambda: r.randrange(99))),
             (of(pair), lambda: some(lambda: {"x": maybe(), "y": r.choice([None, "", "t"])})),
             (of(one), lambda: some(lambda: {"x": maybe()})),
             (of(of(pa.int32(), 9)), lambda: some(lambda: some(lambda: r.randrange(9))))]
    kind, make = cases[seed % len(cases)]
    inputs, want, paths = [], [], [os.path.join(directory, "older-%d" % i) for i in range(3)]
    for i, path in enumerate(paths):
        values = [r.choice([None, make(), make()]) for _ in range(r.choice([1, 50, 300]))]
        pq.write_table(pa.Table.from_arrays([pa.array(values, kind)], schema=pa.schema([field("c", kind, 5)])),
                       path, store_schema=False, row_group_size=100, data_page_size=r.choice([200, 1 << 20]))
        if i < 2:
            make_older(path)
            nodes = duckdb.execute("SELECT count(*) FROM parquet_schema('%s')" % path).fetchone()[0]
            check(nodes < len(str(kind)), nodes)
        if kind != of(one):  # without field ids that one could be a list of numbers
            equal(pq.read_table(path).column(0).to_pylist(), values, "pyarrow of the older form")
        gone = set(r.sample(range(len(values)), len(values) // 5))
        inputs.append("%s:0:%s" % (path, ",".join(map(str, sorted(gone)))))
        want += [v for at, v in enumerate(values) if at not in gone]
    out = os.path.join(directory, "out")
    for asked_for in (kind, of(pa.struct([leaf("y", pa.string(), 8), leaf("z", pa.int64(), 10)]))
                      if pa.types.is_struct(kind.value_type) else kind):
        answer, = tool("merge", out, asked("c", 5, asked_for), "--", *inputs)
        check("error" not in answer, text(answer.get("error", "")))
        got = pq.read_table(out).column(0)
        if asked_for == kind:
            equal(got.to_pylist(), want)
        else:
            equal(got.to_pylist(), [v and [{"y": e.get("y"), "z": None} for e in v] for v in want])
        equal(str(got.type).replace(" not null", ""), str(asked_for).replace(" not null", ""))


# ---- columns that are carried -----------------------------------------------------------------
class Wkb(pa.ExtensionType):
    """What pyarrow writes as GEOMETRY."""

    def __init__(self):
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self):
        return b"{}"

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        return cls()


pa.register_extension_type(Wkb())


def point(r):
    return bytes.fromhex("0101000000") + struct.pack("<dd", r.randrange(99), r.gauss(0, 9))


def half(r):
    return r.choice([0.0, -0.0, 1.5, -2.25, 65504.0, 2.0 ** -24, math.inf, r.randrange(-999, 999) / 4])


CARRIED = [  # what the column is, what the file has, a value, whether it has an order
    ("float32", pa.float16(), half, True),
    ("float64", pa.float16(), half, True),
    ("timestamptz", stamp("ns", "UTC"), number(62), True),
    ("timestamp_ns", stamp("us", "UTC"), number(60), True),
    ("timestamp", stamp("ns"), number(62), True),
    ("time", pa.time64("ns"), lambda r: r.randrange(86400 * 10**9), True),
    ("int32", pa.int64(), number(64), True),
    ("int8", pa.uint32(), lambda r: r.randrange(1 << 32), True),
    ("varchar", pa.int32(), number(32), True),
    ("date", pa.bool_(), lambda r: r.random() < 0.5, True),
    ("boolean", pa.float64(), some_float, True),
    ("blob", Wkb(), point, False),
    ("uuid", pa.binary(15), fixed(15), False),
    ("decimal(9,2)", pa.decimal128(9, 3), money(9, 3), False),
    ("int64", pa.string(), words, True),
]


def storage(values, kind):
    """An array of numbers as the type has them, of extensions by what they lie in."""
    inner = kind.storage_type if isinstance(kind, pa.ExtensionType) else kind
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.int64()).cast(kind)
    made = pa.array(values, inner)
    return pa.ExtensionArray.from_storage(kind, made) if isinstance(kind, pa.ExtensionType) else made


def nest(array, number):
    """{a: value} and [value, null], of every value."""
    inner = pa.StructArray.from_arrays([array], fields=[leaf("a", array.type, number + 1)])
    both = pa.concat_arrays([array, array]).take(
        pa.array([i + k * len(array) for i in range(len(array)) for k in (0, 1)], pa.int64()))
    lists = pa.ListArray.from_arrays(
        pa.array(range(0, 2 * len(array) + 1, 2), pa.int32()), both,
        type=pa.list_(leaf("element", array.type, number + 3)))
    return [array, inner, lists]


def chunk_types(path):
    schema = pq.ParquetFile(path).schema
    return [(c.path, c.physical_type, str(c.logical_type), c.converted_type, c.length)
            for c in (schema.column(i) for i in range(len(schema)))][:3]


def carried(directory, seed):
    """Leaves of types that their column does not have keep bytes, type and annotation."""
    r, (target, kind, make, ordered) = random.Random(seed), CARRIED[seed % len(CARRIED)]
    inputs, tables = [], []
    plain = kind.storage_type if isinstance(kind, pa.ExtensionType) else kind
    for i in range(3):
        rows, nulls = r.choice([1, 40, 300]), r.choice([0, 0.3, 1])
        array = storage([None if r.random() < nulls else make(r) for _ in range(rows)], kind)
        arrays, path = nest(array, 10), os.path.join(directory, "carried-%d.parquet" % i)
        schema = pa.schema([field(n, a.type, at) for n, a, at in zip("xyz", arrays, (9, 10, 12))])
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path, store_schema=False,
                       row_group_size=r.choice([30, 1000]), data_page_version=r.choice(["1.0", "2.0"]),
                       store_decimal_as_integer=False)
        gone = set(r.sample(range(rows), rows // 4))
        inputs.append("%s:0:%s" % (path, ",".join(map(str, sorted(gone)))))
        tables.append(pq.read_table(path).take(
            pa.array([row for row in range(rows) if row not in gone], pa.int64())))
    whole, out = pa.concat_tables(tables), os.path.join(directory, "out.parquet")
    told = ["9:%s:x" % target, "10:struct<11:%s:a>:y" % target, "12:list<13:%s:element>:z" % target]
    answer, = tool("merge", out, "--codec", r.randrange(5), *told, "--", *inputs)
    check("error" not in answer, text(answer.get("error", "")))
    got = pq.read_table(out).drop_columns([ROW_ID])
    equal(str(got.schema.types), str(whole.schema.types), "types")
    check(got.equals(whole), target, kind, "values")
    equal(chunk_types(out), chunk_types(inputs[0].split(":")[0]), target, kind)
    other = os.path.join(directory, "other.parquet")
    pq.write_table(whole, other, store_schema=False, store_decimal_as_integer=False)
    for i in range(3):
        ours, theirs = (pq.read_metadata(p).row_group(0).column(i).statistics for p in (out, other))
        if not i:
            equal(ours.null_count, got.column(i).null_count, "nulls")
        equal(ours.has_min_max, ordered and theirs.has_min_max, target, kind, "bounds")
        if ours.has_min_max:
            equal(repr((ours.min_raw, ours.max_raw)), repr((theirs.min_raw, theirs.max_raw)), target, kind)
    found, want = (duckdb.execute("SELECT x, y, z FROM read_parquet('%s')" % p).fetchall()
                   for p in (out, other))
    equal(repr(found), repr(want), "DuckDB", target, kind)
    # not by these: their order is not the column's
    answer, = tool("merge", out, "--sort", 9, *told, "--", *inputs)
    check("cannot be sorted" in text(answer.get("error", "")) or plain == pa.null(), answer)
    # and not with others
    path = os.path.join(directory, "of-the-type.parquet")
    proper = TARGETS[target][0]
    schema = pa.schema([field("x", proper, 9)])
    pq.write_table(pa.Table.from_arrays([pa.array([None], proper)], schema=schema), path)
    answer, = tool("merge", out, told[0], "--", path, inputs[0])
    check("another shape" in text(answer.get("error", "")), answer)


def carried_others(directory, _):
    """INT96, INTERVAL and always-null columns, which pyarrow writes by an option, DuckDB by itself,
    and pyarrow as INT32."""
    path, out = os.path.join(directory, "in.parquet"), os.path.join(directory, "out.parquet")

    def merged(column, *paths):
        answer, = tool("merge", out, column, "--", *paths)
        check("error" not in answer, text(answer.get("error", "")))
        return pq.read_table(out).column(0)

    times = pa.array([0, None, -1, 1 << 60, -(1 << 60)], stamp("ns"))
    both = [times, pa.StructArray.from_arrays([times], fields=[leaf("a", times.type, 11)])]
    schema = pa.schema([field("x", both[0].type, 9), field("y", both[1].type, 10)])
    pq.write_table(pa.Table.from_arrays(both, schema=schema), path, store_schema=False,
                   use_deprecated_int96_timestamps=True)
    for column in ("9:timestamp:x", "10:struct<11:timestamptz:a>:y"):
        got = merged(column, path + ":0:0", path)
        was = pq.read_table(path).column(got.type.num_fields)
        check(got.equals(pa.chunked_array(was.slice(1).chunks + was.chunks)), column)
        chunk = pq.read_metadata(out).row_group(0).column(0)
        equal((chunk.physical_type, chunk.statistics.null_count), ("INT96", 2))
        check(not chunk.statistics.has_min_max, "bounds of INT96")
    duckdb.execute("COPY (SELECT CASE WHEN i != 3 THEN to_days(i::INT) + to_months(i::INT * 7) END AS x"
                   " FROM range(9) t(i)) TO '%s' (FORMAT parquet, FIELD_IDS {'x': 9})" % path)
    got = merged("9:blob:x", path + ":0:5", path)
    values = pq.read_table(path).column(0).to_pylist()
    equal(got.to_pylist(), values[:5] + values[6:] + values)
    equal(chunk_types(out)[0][1:], ("FIXED_LEN_BYTE_ARRAY", "Interval", "INTERVAL", 12))
    check(not pq.read_metadata(out).row_group(0).column(0).statistics.has_min_max, "bounds of INTERVAL")
    equal(duckdb.execute("SELECT x FROM '%s'" % out).fetchall(),
          duckdb.execute("SELECT x FROM '%s' WHERE x IS NULL OR x <> to_days(5) + to_months(35) UNION ALL"
                         " SELECT x FROM '%s'" % (path, path)).fetchall(), "DuckDB")
    for target, (kind, _, make) in TARGETS.items():  # nulls of no type go with any
        value = [make(random.Random(1))]
        pq.write_table(pa.Table.from_arrays([pa.nulls(3)], schema=pa.schema([field("x", pa.null(), 9)])), path)
        equal(merged("9:%s:x" % target, path).to_pylist(), [None] * 3)
        of_type = os.path.join(directory, "typed.parquet")
        schema = pa.schema([field("x", kind, 9)])
        pq.write_table(pa.Table.from_arrays([pa.array(value, kind)], schema=schema), of_type)
        for files, at in ((path, of_type), 3), ((of_type, path), 0):
            got = merged("9:%s:x" % target, *files)
            equal([v is None for v in got.to_pylist()], [i != at for i in range(4)], target)
    inside = pa.list_(leaf("element", pa.null(), 10))
    pq.write_table(pa.Table.from_arrays([pa.array([[None, None], None, []], inside)],
                                        schema=pa.schema([field("x", inside, 9)])), path)
    got = merged("9:list<10:timestamptz:element>:x", path)
    equal((str(got.type.value_type), got.to_pylist()), ("timestamp[us, tz=UTC]", [[None, None], None, []]))


def variants(directory, seed):
    """VARIANTs of DuckDB, with members stored apart, lists among them: DuckDB sees the same values."""
    r, inputs, want = random.Random(seed), [], []
    out, db = os.path.join(directory, "out.parquet"), duckdb.connect()

    def write(i, value):
        path = os.path.join(directory, "%d.parquet" % i)
        db.execute("COPY (SELECT (i * 7) %% 50 AS k, %s AS v FROM range(200) t(i)) TO '%s' "
                   "(FORMAT parquet, FIELD_IDS {'k': 1, 'v': 2})" % (value, path))
        return path

    value = ("CASE WHEN i % 5 = 0 THEN NULL WHEN i % 7 = 0 THEN 'text'::VARIANT ELSE "
             "{'a': i, 'b': [i, NULL, 2], 'c': 'x' || i, 'd': i * 0.25::DOUBLE}::VARIANT END")
    for i in range(3):
        path = write(i, value)
        gone = sorted(r.sample(range(200), 20))
        inputs.append("%s:%d:%s" % (path, 1000 * i, ",".join(map(str, gone))))
        rows = db.execute("SELECT k, v::VARCHAR FROM '%s'" % path).fetchall()
        want += [row for at, row in enumerate(rows) if at not in gone]
    answer, = tool("merge", out, "--sort", 1, "1:int64:k", "2:variant:v", "--", *inputs)
    check("error" not in answer, text(answer.get("error", "")))
    got = db.execute("SELECT k, v::VARCHAR FROM '%s'" % out).fetchall()
    equal(got, sorted(want, key=lambda row: row[0]), "variants")
    kinds = [db.execute("SELECT name, type, repetition_type, num_children, field_id, logical_type IS NULL"
                        " FROM parquet_schema('%s') WHERE name NOT IN ('k', '%s') OFFSET 1" %
                        (path, ROW_ID)).fetchall() for path in (out, inputs[0].split(":")[0])]
    equal([k[:5] for k in kinds[0]], [k[:5] for k in kinds[1]], "schema")
    answer, = tool("merge", out, "1:int64:k", "2:variant:v", "--", inputs[0],
                   write(9, "{'z': i}::VARIANT"))
    check("has another shape" in text(answer.get("error", "")), answer)


LEVELS = [  # a table and, for each leaf, [repetition, definition, value], by the format's own rules
    (pa.list_(pa.int32()), [[1, None], None, [], [2]],
     [[[0, 3, 1], [1, 2, None], [0, 0, None], [0, 1, None], [0, 3, 2]]]),
    (pa.list_(pa.list_(pa.int32())), [[[1, 2], [], None], None, [], [[3]]],
     [[[0, 5, 1], [2, 5, 2], [1, 3, None], [1, 2, None], [0, 0, None], [0, 1, None], [0, 5, 3]]]),
    (pa.struct([("x", pa.int32()), ("y", pa.list_(pa.int32()))]),
     [{"x": 1, "y": [2, 3]}, {"x": None, "y": None}, None, {"x": 4, "y": []}],
     [[[0, 2, 1], [0, 1, None], [0, 0, None], [0, 2, 4]],
      [[0, 4, 2], [1, 4, 3], [0, 1, None], [0, 0, None], [0, 2, None]]]),
    (pa.map_(pa.int32(), pa.int32()), [[(1, None), (2, 5)], None, []],
     [[[0, 2, 1], [1, 2, 2], [0, 0, None], [0, 1, None]],
      [[0, 2, None], [1, 3, 5], [0, 0, None], [0, 1, None]]]),
]


def levels(directory, _):
    path = os.path.join(directory, "levels")
    for kind, values, want in LEVELS:
        for version in ("1.0", "2.0"):
            pq.write_table(pa.table({"c": pa.array(values, kind)}), path, data_page_version=version,
                           data_page_size=1, write_batch_size=1)
            got = [[[e[0], e[1], None if e[2] is None else struct.unpack("<i", bytes.fromhex(e[2]))[0]]
                    for e in column] for column in tool("values", path)[0]["columns"]]
            equal(got, want, kind, version)


def refused_merges(directory, _):
    path = lambda name: os.path.join(directory, name)

    def refused(why, code, column, kind, values, *options, nullable=True):
        schema = pa.schema([field("a", kind, 1, nullable)])
        pq.write_table(pa.Table.from_arrays([pa.array(values, kind)], schema=schema), path("in"))
        answer, = tool("merge", path("out"), *options, column, "--", path("in"))
        check("error" in answer, "merged what must be refused for", why)
        equal((answer["code"], why in text(answer["error"])), (code, True), text(answer["error"]))

    for column, kind, value in (
            ("int32", pa.int64(), 1), ("int8", pa.int32(), 1), ("uint32", pa.int32(), 1),
            ("int32", pa.uint32(), 1), ("float32", pa.float64(), 1), ("varchar", pa.int32(), 1),
            ("date", pa.int32(), 1), ("timestamp", stamp("us", "UTC"), 1), ("timestamp", stamp("ns"), 1),
            ("decimal(9,2)", pa.decimal128(9, 3), DECIMAL("1.000")), ("uuid", pa.binary(15), b"x" * 15)):
        refused("cannot be sorted by", "refused", "1:%s:a" % column, kind, [value], "--sort", 1)
    refused("does not fit", "bad data", "1:decimal(5,2):a", pa.decimal128(9, 2), [DECIMAL("1000.00")])
    refused("does not fit", "bad data", "1:timestamp_ms:a", stamp("us"), [1001])
    refused("at most 100000", "full", "1:varchar:a", pa.string(), ["x%d" % i * 30 for i in range(9999)],
            "--bytes-max", 100000)


def damaged(r, path, bad, share):
    """Copies a file with some bytes changed, a share of the times in its footer alone."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    footer = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    for _ in range(r.choice([1, 2, 5])):
        at = r.randrange(footer if r.random() < share else 4, len(data) - 8)
        data[at] = r.choice([0, 1, 0x7f, 0x80, 0xff, data[at] ^ 1 << r.randrange(8)])
    with open(bad, "wb") as file:
        file.write(data)


def damaged_merges(directory, seed):
    """Any byte of a file may be another, its footer's too: refused or merged, the tool goes on."""
    r = random.Random(seed)
    columns = [("c%d" % i, name, i + 1) for i, name in enumerate(r.sample(list(TARGETS), 6))]
    asked = ["%d:%s:%s" % (number, target, name) for name, target, number in columns]
    path, bad = os.path.join(directory, "in-0.parquet"), os.path.join(directory, "bad")
    told, out = [], os.path.join(directory, "out")
    while len(told) < 20:
        merge_input(directory, r, 0, columns, 0)
        damaged(r, path, bad, 0.7)
        tool("values", bad)
        told += tool("merge", out, "--sort", r.randrange(1, 7), *asked, "--", bad)
        if "error" not in told[-1] and told[-1]["rows"]:
            tool("values", out)
    check(any("error" in answer for answer in told), "no damage was seen")


def damaged_nested_merges(directory, seed):
    r = random.Random(seed)
    name = list(nested_kinds(0))[seed % len(nested_kinds(0))]
    kind, make = nested_kinds(100)[name]
    path, bad = os.path.join(directory, "nested-0.parquet"), os.path.join(directory, "bad")
    told, out = [], os.path.join(directory, "out")
    while len(told) < 20:
        nested_input(directory, r, 0, [("c", kind, make, 100)], 0)
        damaged(r, path, bad, 0.4)
        tool("values", bad)
        told += tool("merge", out, "--sort", 1, "--bytes-max", 256 << 20, "1:int64:k",
                     asked("c", 100, with_map_ids(kind, 100)), "--", bad)
        if "error" not in told[-1] and told[-1]["rows"]:
            for column in tool("values", out)[0]["columns"]:
                check(isinstance(column, list), "what was made can be read")
    check(any("error" in answer for answer in told), "no damage was seen")


def main():
    return run([(one_file, seed) for seed in range(FILES)] +
               [(one_of_duckdb, seed) for seed in range(6)] +
               [(one_of_ours, seed) for seed in range(1, 1 + FILES // 5)] + [(refusals, 0)] +
               [(one_merge, seed) for seed in range(FILES)] + [(refused_merges, 0)] +
               [(one_nested_merge, seed) for seed in range(FILES)] + [(nested_refusals, 0)] +
               [(one_evolution, seed) for seed in range(2 * FILES)] +
               [(older_lists, seed) for seed in range(12)] +
               [(carried, seed) for seed in range(4 * len(CARRIED))] + [(carried_others, 0)] +
               [(levels, 0)] + [(variants, seed) for seed in range(2)] +
               [(damaged_merges, seed) for seed in range(1 + FILES // 20)] +
               [(damaged_nested_merges, seed) for seed in range(9)])


if __name__ == "__main__":
    sys.exit(main())
