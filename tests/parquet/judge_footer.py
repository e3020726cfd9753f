#!/usr/bin/env python3
"""Judges what we read in Parquet footers, and the files that we join, by pyarrow and DuckDB.

    judge_footer.py PARQUET_FOOTER_TOOL PARQUET_RANDOM [FILES]

Files of every type, nested too, are written by pyarrow, DuckDB and our own writer, with and without
dictionaries, statistics, page indexes and bloom filters, in several codecs and page versions. For
each, our facts (footer_tool.c) must be those of pyarrow's metadata, and our bounds must be what the
values themselves say, encoded by this file. Joined files must read back as the rows of their inputs
in order. Damaged footers must be refused or read, never end the program. Ends with
"N passed, N failed".
"""
import datetime as dt
import decimal
import json
import math
import os
import random
import struct
import subprocess
import sys
import uuid

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from judge_tools import as_float32, ask, check, equal, run, text

FOOTER, RANDOM = sys.argv[1:3]
FILES = int(sys.argv[3]) if len(sys.argv) > 3 else 120
ROW_ID, ROW_ID_FIELD = "_hog_row_id", 2147483646
D = decimal.Decimal
decimal.getcontext().prec = 60
PHYSICAL = ["BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY",
            "FIXED_LEN_BYTE_ARRAY"]
LOGICAL = {0: "NONE", 1: "STRING", 2: "MAP", 3: "LIST", 4: "ENUM", 5: "DECIMAL", 6: "DATE",
           7: "TIME", 8: "TIMESTAMP", 10: "INT", 11: "NULL", 12: "JSON", 13: "BSON", 14: "UUID",
           15: "FLOAT16"}
CODEC = {0: "UNCOMPRESSED", 1: "SNAPPY", 2: "GZIP", 4: "BROTLI", 5: "LZ4", 6: "ZSTD", 7: "LZ4"}


def tool(*arguments):
    return ask(FOOTER, *arguments)


# ---- values of every type, and what a bound of them is --------------------------------------
def int4(value):
    return struct.pack("<i", value)


def int8(value):
    return struct.pack("<q", value)


def big(value):
    size = 1
    while not -(1 << (8 * size - 1)) <= value < 1 << (8 * size - 1):
        size += 1
    return value.to_bytes(size, "big", signed=True)


def days(value):
    return int4((value - dt.date(1970, 1, 1)).days)


def unscaled(value):
    return big(int(value.scaleb(-value.as_tuple().exponent)))


def number(low, high):
    return lambda r: r.choice([low, high, r.randint(low, high), 0])


def some_float(r):
    return r.choice([0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, r.gauss(0, 1e6)])


def some_text(r):
    return "".join(r.choice("abcé漢z~") for _ in range(r.choice([0, 1, 3, 12, 300])))


def some_bytes(r):
    return bytes(r.randrange(256) for _ in range(r.choice([0, 1, 3, 20])))


def some_decimal(precision, scale):
    def make(r):
        digits = r.choice([0, 1, -1, r.randrange(-10 ** precision + 1, 10 ** precision)])
        return D(digits).scaleb(-scale)
    return make


def some_ticks(low, high):
    return lambda r: r.choice([0, -1, 1, low, high, r.randint(low, high)])


# name: Arrow type, a value, its bound's bytes, its order. Timestamps are made from their ticks.
DECADE = 10 * 366 * 86400
TYPES = {
    "boolean": (pa.bool_(), lambda r: r.random() < 0.5, lambda v: bytes([v]), None),
    "int8": (pa.int8(), number(-128, 127), int4, None),
    "int16": (pa.int16(), number(-2**15, 2**15 - 1), int4, None),
    "int": (pa.int32(), number(-2**31, 2**31 - 1), int4, None),
    "long": (pa.int64(), number(-2**63, 2**63 - 1), int8, None),
    "uint8": (pa.uint8(), number(0, 255), int4, None),
    "uint16": (pa.uint16(), number(0, 65535), int4, None),
    "uint32": (pa.uint32(), number(0, 2**32 - 1), int8, None),
    "uint64": (pa.uint64(), number(0, 2**64 - 1), big, None),
    "float": (pa.float32(), lambda r: as_float32(some_float(r)), lambda v: struct.pack("<f", v), None),
    "double": (pa.float64(), some_float, lambda v: struct.pack("<d", v), None),
    "decimal4": (pa.decimal128(5, 2), some_decimal(5, 2), unscaled, None),
    "decimal8": (pa.decimal128(18, 4), some_decimal(18, 4), unscaled, None),
    "decimal16": (pa.decimal128(38, 10), some_decimal(38, 10), unscaled, None),
    "date": (pa.date32(), lambda r: dt.date(1970, 1, 1) + dt.timedelta(r.randint(-9999, 9999)),
             days, None),
    "time": (pa.time64("us"), number(0, 86399999999), int8, None),
    "time_ms": (pa.time32("ms"), number(0, 86399999), lambda v: int8(v * 1000), None),
    "timestamp_s": (pa.timestamp("s"), some_ticks(-DECADE, DECADE), lambda v: int8(v * 10**6), None),
    "timestamp_ms": (pa.timestamp("ms"), some_ticks(-DECADE * 1000, DECADE * 1000),
                     lambda v: int8(v * 1000), None),
    "timestamp": (pa.timestamp("us"), some_ticks(-DECADE * 10**6, DECADE * 10**6), int8, None),
    "timestamp_ns": (pa.timestamp("ns"), some_ticks(-DECADE * 10**9, DECADE * 10**9), int8, None),
    "timestamptz": (pa.timestamp("us", "UTC"), some_ticks(-DECADE * 10**6, DECADE * 10**6), int8,
                    None),
    "string": (pa.string(), some_text, str.encode, str.encode),
    "json": (pa.json_(), lambda r: json.dumps({"a": r.randrange(99)}), str.encode, str.encode),
    "binary": (pa.binary(), some_bytes, bytes, None),
    "uuid": (pa.uuid(), lambda r: uuid.UUID(int=r.getrandbits(128), version=4).bytes, bytes, None),
}


def array(name, values):
    kind = TYPES[name][0]
    if name in ("json", "uuid"):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
    if pa.types.is_time(kind) or pa.types.is_timestamp(kind):
        plain = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(values, plain).cast(kind) if not pa.types.is_time(kind) else pa.array(
            values, plain).view(kind)
    return pa.array(values, kind)


def bounds_wanted(name, groups):
    """From the values of each row group; None where there may be none. NaN counts as no value."""
    _, _, encode, order = TYPES[name]
    key = order or (lambda v: v)
    low, high = [], []
    for values in groups:
        real = [v for v in values if v is not None]
        if not real:
            continue
        real = [v for v in real if v == v]
        if not real:
            return None, None
        low.append(min(real, key=key))
        high.append(max(real, key=key))
    if not low:
        return None, None
    low, high = min(low, key=key), max(high, key=key)
    if name in ("float", "double"):
        low, high = low if low else -0.0, high if high else 0.0
    return encode(low), encode(high)


def field(name, kind, ids, nullable=True):
    """An Arrow field with field ids all the way down, in the order of hoglake: parent first."""
    number = next(ids)
    if pa.types.is_list(kind):
        kind = pa.list_(field("element", kind.value_type, ids))
    elif pa.types.is_struct(kind):
        kind = pa.struct([field(f.name, f.type, ids) for f in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(field("key", kind.key_type, ids, False), field("value", kind.item_type, ids))
    return pa.field(name, kind, nullable, {b"PARQUET:field_id": str(number).encode()})


def numbers():
    at = 0
    while True:
        at += 1
        yield at


NESTED = {
    "tags": (pa.list_(pa.string()), lambda r: [some_text(r) for _ in range(r.randrange(4))]),
    "addr": (pa.struct([("city", pa.string()), ("zip", pa.int32())]),
             lambda r: {"city": r.choice([None, some_text(r)]), "zip": r.randrange(99999)}),
    "props": (pa.map_(pa.string(), pa.int64()),
              lambda r: [(some_text(r) + str(i), r.choice([None, 5])) for i in range(r.randrange(3))]),
    "deep": (pa.list_(pa.struct([("p", pa.list_(pa.int64())),
                                 ("m", pa.map_(pa.int32(), pa.list_(pa.float64())))])),
             lambda r: [{"p": [r.randrange(9)] * r.randrange(3), "m": [(1, [0.5, None]), (2, None)]}
                        for _ in range(r.randrange(3))]),
}


def make_table(r, rows):
    """A table of every type, with the values that went in by column."""
    ids, fields, arrays, values = numbers(), [], [], {}
    for name, (kind, make, _, _) in TYPES.items():
        nulls, column = r.choice([0, 0, 0.3, 1]), []
        for _ in range(rows):
            column.append(None if r.random() < nulls else make(r))
        if name in ("float", "double") and r.random() < 0.3:
            column = [math.nan if r.random() < 0.2 else v for v in column]
        if name == "string" and rows and r.random() < 0.2:
            column[0] = "x" * 5000
        values[name] = column
        required = rows > 0 and None not in column and r.random() < 0.3
        fields.append(field(name, kind, ids, not required))
        arrays.append(array(name, column))
    for name, (kind, make) in NESTED.items():
        fields.append(field(name, kind, ids))
        column = [None if r.random() < 0.2 else make(r) for _ in range(rows)]
        arrays.append(pa.array(column, kind).cast(fields[-1].type))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields)), values


def some_options(r):
    return dict(compression=r.choice(["snappy", "zstd", "gzip", "none", "lz4", "brotli"]),
                use_dictionary=r.random() < 0.5, write_statistics=r.random() < 0.85,
                data_page_version=r.choice(["1.0", "2.0"]), write_page_index=r.random() < 0.3,
                data_page_size=r.choice([200, 1 << 20]),
                row_group_size=r.choice([3, 17, 100, 1 << 20]),
                store_decimal_as_integer=r.random() < 0.3, store_schema=r.random() < 0.8)


# ---- facts against pyarrow's metadata ---------------------------------------------------------
def judge_facts(path, facts):
    with pq.ParquetFile(path) as file:
        judge_metadata(path, facts, file.metadata)


def judge_metadata(path, facts, meta):
    check("error" not in facts, "refused:", facts.get("error") and text(facts["error"]))
    equal(facts["rows"], meta.num_rows, "rows")
    equal(facts["footer_bytes"], meta.serialized_size, "footer bytes")
    equal(text(facts["created_by"]), meta.created_by, "created_by")
    equal({bytes.fromhex(k): bytes.fromhex(v) for k, v in facts["pairs"]}, meta.metadata or {},
          "key-value pairs")
    leaves = [node for node in facts["nodes"] if node["leaf"] >= 0]
    equal(len(leaves), meta.num_columns, "leaves")
    for i, leaf in enumerate(leaves):
        judge_leaf(leaf, meta.schema.column(i))
    equal(len(facts["groups"]), meta.num_row_groups, "row groups")
    for g, group in enumerate(facts["groups"]):
        theirs = meta.row_group(g)
        equal((group["rows"], group["raw"]), (theirs.num_rows, theirs.total_byte_size), "group")
        for i, chunk in enumerate(group["chunks"]):
            judge_chunk(chunk, theirs.column(i))
    misses = any(b"PARQUET:field_id" not in (f.metadata or {})
                 for f in leaf_fields(meta.schema.to_arrow_schema()))
    equal(facts["misses_ids"], misses, "missing field ids")


def leaf_fields(fields):
    for f in fields:
        kind = f.type
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            yield from leaf_fields([kind.value_field])
        elif pa.types.is_struct(kind):
            yield from leaf_fields(list(kind))
        elif pa.types.is_map(kind):
            yield from leaf_fields([kind.key_field, kind.item_field])
        else:
            yield f


def judge_leaf(leaf, column):
    equal(text(leaf["path"]), column.path, "path")
    equal(PHYSICAL[leaf["physical"]], column.physical_type, column.path, "physical type")
    equal((leaf["def"], leaf["rep"]), (column.max_definition_level, column.max_repetition_level),
          column.path, "levels")
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        equal(leaf["length"], column.length, column.path, "length")
    told = json.loads(column.logical_type.to_json())
    kind = {"Int": "INT"}.get(told["Type"], told["Type"].upper())
    if kind == "INT" and told["isSigned"] and told["bitWidth"] in (32, 64):
        kind = "NONE"  # we take the annotation for what it says: nothing
    equal(LOGICAL[leaf["logical"]], kind, column.path, "logical type")
    if kind == "INT":
        equal((leaf["bits"], bool(leaf["signed"])), (told["bitWidth"], told["isSigned"]),
              column.path)
    if kind == "DECIMAL":
        equal((leaf["precision"], leaf["scale"]), (told["precision"], told["scale"]), column.path)
    if kind in ("TIME", "TIMESTAMP"):
        unit = ["", "milliseconds", "microseconds", "nanoseconds"][leaf["unit"]]
        equal((unit, bool(leaf["utc"])), (told["timeUnit"], told["isAdjustedToUTC"]), column.path)


def judge_chunk(chunk, theirs):
    equal(CODEC[chunk["codec"]], theirs.compression, "codec")
    equal(chunk["values"], theirs.num_values, "values")
    equal(chunk["bytes"], theirs.total_compressed_size, "bytes")
    equal(chunk["raw"], theirs.total_uncompressed_size, "raw bytes")
    equal(chunk["data"], theirs.data_page_offset, "data page offset")
    equal(chunk["dictionary"] or None, theirs.dictionary_page_offset or None, "dictionary offset")
    statistics = theirs.statistics
    if statistics is not None and statistics.has_null_count:
        equal(chunk["nulls"], statistics.null_count, "null count")


# ---- statistics -------------------------------------------------------------------------------
def judge_stats(path, facts, values, row_group_size):
    meta = pq.read_metadata(path)
    leaves = [node for node in facts["nodes"] if node["leaf"] >= 0]
    equal(len(facts["stats"]), len(leaves), "leaves with statistics")
    for i, stats in enumerate(facts["stats"]):
        columns = [meta.row_group(g).column(i) for g in range(meta.num_row_groups)]
        name = meta.schema.column(i).path
        equal(stats["values"], sum(c.num_values for c in columns), name, "values")
        equal(stats["size"], sum(c.total_compressed_size for c in columns), name, "size")
        told = [c.statistics for c in columns]
        if any(s is None for s in told):
            if any(c.num_values for c in columns):
                equal((stats["nulls"], stats["lower"], stats["upper"]), (None,) * 3, name)
            continue
        equal(stats["nulls"], sum(s.null_count for s in told), name, "nulls")
        if name not in TYPES:
            judge_nested(stats, told, name)
            continue
        column = values[name]
        groups = [column[at:at + row_group_size] for at in range(0, len(column), row_group_size)]
        low, high = bounds_wanted(name, groups)
        # A writer leaves out one side or both where a text is long or a group has only NaN.
        left_out = any(not s.has_min_max and s.num_values for s in told)
        for side, want in (("lower", low), ("upper", high)):
            got = None if stats[side] is None else bytes.fromhex(stats[side])
            if not (left_out and got is None):
                equal(got, want, name, side)


def judge_nested(stats, told, name):
    """Nested leaves are texts and numbers: pyarrow's own merged bounds."""
    real = [s for s in told if s.has_min_max]
    if any(not s.has_min_max and s.num_values for s in told):
        real = []
    for side, pick in (("lower", min), ("upper", max)):
        want = None
        if real:
            found = [getattr(s, {"lower": "min", "upper": "max"}[side]) for s in real]
            kind = real[0].physical_type
            if kind == "BYTE_ARRAY":
                want = pick(v.encode() for v in found)
            else:
                code = {"INT32": "<i", "INT64": "<q", "DOUBLE": "<d"}[kind]
                want = struct.pack(code, pick(found))
        got = None if stats[side] is None else bytes.fromhex(stats[side])
        equal(got, want, name, side)


# ---- joins ------------------------------------------------------------------------------------
def comparable(table):
    """NaN equals NaN, -0.0 does not equal 0.0; nanoseconds are more than Python's datetime holds."""
    columns = [c.cast(pa.int64()) if c.type == pa.timestamp("ns") else c for c in table.columns]
    return repr([c.to_pylist() for c in columns])


def read(path):
    with pq.ParquetFile(path) as file:
        return file.read()


def judge_join(directory, r, paths, row_ids, want_ids=None):
    out = os.path.join(directory, "joined.parquet")
    starts, at, ids = [], 1000, []
    for path in paths:
        rows = pq.read_metadata(path).num_rows
        starts.append("%s:%d" % (path, at))
        ids += range(at, at + rows)
        at += rows + r.randrange(5)
    extra = ["--ids", ROW_ID, ROW_ID_FIELD] if row_ids else []
    facts = tool("join", out, *extra, "--window", r.choice([64, 1000, 1 << 20]), *starts)[0]
    check("error" not in facts, "join refused:", text(facts.get("error", "")))
    judge_facts(out, facts)
    equal(tool("facts", out)[0], facts, "facts of the joined file")
    got = read(out)
    if row_ids:
        equal(got.column(ROW_ID).to_pylist(), want_ids or ids, "row ids")
        stats = facts["stats"][-1]
        if ids:
            equal((stats["lower"], stats["upper"]),
                  (int8(min(want_ids or ids)).hex(), int8(max(want_ids or ids)).hex()), "id bounds")
    data = [name for name in got.column_names if name != ROW_ID]
    parts = [read(path).select(data) for path in paths]
    equal(comparable(got.select(data)),
          comparable(pa.concat_tables([part.cast(got.select(data).schema) for part in parts])),
          "rows read by pyarrow")
    judge_join_stats([tool("facts", path)[0] for path in paths], facts)
    if sum(part.num_rows for part in parts):
        names = ", ".join('"%s"' % name for name in data)
        listed = ", ".join("'%s'" % path for path in paths if pq.read_metadata(path).num_rows)
        ours = duckdb.execute("SELECT %s FROM read_parquet('%s')" % (names, out)).fetchall()
        theirs = duckdb.execute("SELECT %s FROM read_parquet([%s])" % (names, listed)).fetchall()
        equal(repr(ours), repr(theirs), "rows read by DuckDB")
    return out, ids


def judge_join_stats(inputs, joined):
    for i in range(min(len(facts["stats"]) for facts in inputs)):
        parts = [facts["stats"][i] for facts in inputs]
        equal(joined["stats"][i]["values"], sum(p["values"] for p in parts), "joined values")
        sizes = [group["chunks"][i]["bytes"] for facts in inputs for group in facts["groups"]
                 if group["rows"]]  # empty row groups are left out
        equal(joined["stats"][i]["size"], sum(sizes), "joined size")
        nulls = None if any(p["nulls"] is None for p in parts) else sum(p["nulls"] for p in parts)
        equal(joined["stats"][i]["nulls"], nulls, "joined nulls")


def refused(directory, why, *arguments):
    facts = tool("join", os.path.join(directory, "refused.parquet"), *arguments)[0]
    check("error" in facts, "joined what must be refused for its", why)
    equal(facts["code"], "refused", text(facts["error"]))
    check(why in text(facts["error"]), text(facts["error"]), "does not say", why)


# ---- the tests --------------------------------------------------------------------------------
def one_file(directory, seed):
    r = random.Random(seed)
    rows = r.choice([0, 1, 5, 50, 400])
    table, values = make_table(r, rows)
    path, options = os.path.join(directory, "%d.parquet" % seed), some_options(r)
    pq.write_table(table, path, **options)
    facts = tool("facts", path)[0]
    judge_facts(path, facts)
    if rows:
        judge_stats(path, facts, values, options["row_group_size"])
    else:
        check(all(s["lower"] is None for s in facts["stats"]), "bounds of no rows")


def one_join(directory, seed):
    r = random.Random(seed)
    table, _ = make_table(r, r.choice([1, 30, 200]))
    paths = []
    for i in range(r.choice([1, 2, 3, 7])):
        path = os.path.join(directory, "in-%d.parquet" % i)
        some = table.slice(r.randrange(len(table)), r.choice([0, 1, len(table)]))
        options = some_options(r)
        options["store_decimal_as_integer"] = False
        options["store_schema"] = seed % 2 == 0
        pq.write_table(some, path, **options)
        paths.append(path)
    out, ids = judge_join(directory, r, paths, r.random() < 0.7)
    if ROW_ID in pq.read_schema(out).names:
        again = os.path.join(directory, "again.parquet")
        os.rename(out, again)  # compacted before: it keeps its ids
        count = pq.read_metadata(again).num_rows
        later = pq.read_metadata(paths[0]).num_rows
        judge_join(directory, r, [again, paths[0]], True, ids + list(later_ids(count, later, r)))


def later_ids(count, later, r):
    state = r.getstate()
    first = 1000 + count + r.randrange(5)
    r.setstate(state)
    return range(first, first + later)


def one_of_ours(directory, seed):
    subprocess.run([RANDOM, directory, str(seed), "1"], check=True, stdout=subprocess.DEVNULL)
    paths = sorted(os.path.join(directory, name) for name in os.listdir(directory)
                   if name.endswith(".parquet"))
    wanted = {}
    for path in paths:
        facts = tool("facts", path)[0]
        judge_facts(path, facts)
        with open(path[:-len("parquet")] + "expect") as expect:
            told = [line.split() for line in expect if line.startswith("stats ")]
        for stats, line in zip(facts["stats"], told):
            equal((stats["values"], stats["nulls"], stats["size"]),
                  (int(line[1]), int(line[2]), int(line[4])), path, "counts")
    judge_join(directory, random.Random(seed), paths, True)


def one_of_duckdb(directory, seed):
    r = random.Random(seed)
    paths = []
    for i in range(2):
        path = os.path.join(directory, "duck-%d.parquet" % i)
        duckdb.execute("""COPY (SELECT i::TINYINT AS a, i AS b, i::UBIGINT AS c, 'text ' || (i %% 7) AS d,
            i / 3 AS e, (i * 1.25)::DECIMAL(12, 3) AS f, DATE '2020-01-01' + i::INT AS g,
            TIMESTAMP '2020-01-01 00:00:00' + INTERVAL (i) SECOND AS h, [i, NULL] AS l,
            {'x': i, 'y': [i]} AS s, gen_random_uuid() AS u, i %% 2 = 0 AS t
            FROM range(%d) AS r(i)) TO '%s' (FORMAT parquet, CODEC '%s', ROW_GROUP_SIZE 2048,
            PARQUET_VERSION %s, FIELD_IDS {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8,
            l: {__duckdb_field_id: 9, element: 10}, s: {__duckdb_field_id: 11, x: 12,
            y: {__duckdb_field_id: 13, element: 14}}, u: 15, t: 16})""" %
                       (r.choice([1, 100]), path, r.choice(["snappy", "zstd", "uncompressed"]),
                        r.choice(["V1", "V2"])))
        judge_facts(path, tool("facts", path)[0])
        paths.append(path)
    judge_join(directory, r, paths, r.random() < 0.5)


def refusals(directory, _):
    ids = b"PARQUET:field_id"
    path = lambda name: os.path.join(directory, name)

    def write(name, column, kind, number, values=(1, 2)):
        metadata = {ids: str(number).encode()} if number else None
        pq.write_table(pa.table([pa.array(values, kind)],
                                schema=pa.schema([pa.field(column, kind, metadata=metadata)])),
                       path(name))
        return path(name)

    a = write("a", "a", pa.int32(), 1)
    refused(directory, "physical type", a, write("b", "a", pa.int64(), 1))
    refused(directory, "logical type", a, write("c", "a", pa.int16(), 1))
    refused(directory, "field id", a, write("d", "a", pa.int32(), 2))
    refused(directory, "no field id", a, write("e", "a", pa.int32(), None))
    refused(directory, "sort order", "--sorted", a, a)
    refused(directory, "at the end", "--ids", ROW_ID, 1, write("f", "a", pa.int32(), 1))
    two = pa.table([pa.array([1], pa.int32())] * 2, schema=pa.schema(
        [pa.field(n, pa.int32(), metadata={ids: k}) for n, k in (("a", b"1"), ("b", b"2"))]))
    pq.write_table(two, path("g"))
    refused(directory, "columns", a, path("g"))
    # renamed in between: the ids say what is meant, the first file gives the names
    renamed = write("h", "z", pa.int32(), 1, (7,))
    facts = tool("join", path("i"), a, renamed)[0]
    check("error" not in facts, facts)
    equal(read(path("i")).to_pydict(), {"a": [1, 2, 7]}, "renamed column")
    equal(duckdb.execute("SELECT * FROM read_parquet('%s')" % path("i")).fetchall(), [(1,), (2,), (7,)])


def damaged(directory, seed):
    """Every outcome is good but a dead program: the tool checks its own asserts."""
    r = random.Random(seed)
    table, _ = make_table(r, 20)
    path = os.path.join(directory, "whole.parquet")
    pq.write_table(table, path, row_group_size=7)
    with open(path, "rb") as file:
        whole = file.read()
    size = struct.unpack("<I", whole[-8:-4])[0]
    paths = []
    for i in range(60):
        bad = bytearray(whole)
        for _ in range(r.choice([1, 1, 4])):
            bad[len(whole) - 8 - r.randrange(size + 4) + 4 - 1] = r.randrange(256)
        if r.random() < 0.2:
            bad = bad[:r.randrange(len(bad))] + whole[-8:]
        paths.append(os.path.join(directory, "bad-%d" % i))
        with open(paths[-1], "wb") as file:
            file.write(bad)
    equal(len(tool("facts", *paths)), len(paths), "answers")
    for bad in paths[:20]:
        tool("join", os.path.join(directory, "out"), "--ids", ROW_ID, ROW_ID_FIELD, bad, path)


def main():
    return run([(one_file, seed) for seed in range(FILES)] +
               [(one_join, seed) for seed in range(FILES // 2)] +
               [(one_of_ours, seed) for seed in range(1, 1 + FILES // 4)] +
               [(one_of_duckdb, seed) for seed in range(8)] + [(refusals, 0)] +
               [(damaged, seed) for seed in range(5)])


if __name__ == "__main__":
    sys.exit(main())
