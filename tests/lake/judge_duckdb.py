#!/usr/bin/env python3
"""judge_duckdb.py LAKE_TOOL [CASE...] - lets the real DuckDB extension judge what we write.

LAKE_TOOL is the built tests/lake/lake-tool. PostgreSQL cases use the server that the connection
string MP_TEST_POSTGRES names; without one the judge starts itself again beside a server of its own
(tests/lake/pg_server.sh).

Each case runs once per catalog kind, in a temporary directory of its own. CASE arguments choose
cases by a part of their name, such as "types" or "types/sqlite". The last line is
"N passed, N failed"; the exit status is 1 when anything failed.
"""
import collections
import datetime as dt
import decimal
import multiprocessing
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import services  # noqa: E402
from judge_tools import UTC, Catalog, Duck, Proxy, Refused, Tool, write_file  # noqa: E402

BASIC = (("id", "int64"), ("name", "varchar"), ("ts", "timestamptz"), ("v", "float64"))
CASES = []


def case(*kinds):
    def keep(function):
        for kind in kinds or ("sqlite", "postgres"):
            CASES.append((f"{function.__name__}/{kind}", function, kind))
        return function
    return keep


def equal(got, want, what=""):
    assert got == want, f"{what}: got {got!r}, want {want!r}"


def refused(code, call, *arguments, text="", **named):
    """call must fail with this code, and its text must hold text."""
    try:
        got = call(*arguments, **named)
    except Refused as error:
        equal(error.code, code, error.text)
        assert text in error.text, f"{text!r} is not in {error.text!r}"
        return error
    raise AssertionError(f"succeeded with {got!r}, not refused with {code}")


def rows_of(first, count, **more):
    """Rows of BASIC: a null name every fifth, times within one day."""
    made = []
    for i in range(first, first + count):
        row = {"id": i, "name": f"n{i % 7}" if i % 5 else None, "v": i * 0.5,
               "ts": dt.datetime(2024, 1, 5, i % 24, i % 60, i % 60, i, tzinfo=UTC)}
        row.update(more)
        made.append(row)
    return made


def healthy(duck, catalog, table, count, orphan_count=0):
    """What must hold of any table, whatever was done to it. Orphans: files of refused commits."""
    equal(duck.one(f"SELECT count(*) FROM {table}"), count, "count(*)")
    equal(duck.one(f"SELECT count(DISTINCT rowid) FROM {table}"), count, "distinct row ids")
    equal(duck.one(f"SELECT sum(1) FROM (SELECT * FROM {table})") or 0, count, "rows scanned")
    duck.run("SELECT snapshot_id, changes FROM ducklake_snapshots('lake')")  # parses every changes_made
    orphans = duck.run("CALL ducklake_delete_orphaned_files('lake', dry_run => true,"
                       " cleanup_all => true)")
    equal(len(orphans), orphan_count, f"orphans {orphans}")
    # DuckDB's own times are those of its transaction's start, which may be before ours
    times = catalog.sql("SELECT s.snapshot_time, c.author FROM ducklake_snapshot s"
                        " JOIN ducklake_snapshot_changes c ON c.snapshot_id = s.snapshot_id"
                        " ORDER BY s.snapshot_id")
    for (before, _), (after, author) in zip(times, times[1:]):
        assert author is None or before < after, f"{before} comes before {after}"


def append_again(tool, table, rows, partition=None):
    """Appends; where the table has changed under us, reads it again first. True: it had."""
    file = tool.write(table, rows, partition)
    try:
        tool.commit([(table, [file])], records=len(rows))
        return False
    except Refused as error:
        equal(error.code, "destination changed", error.text)
    os.unlink(tool.catalog.data + file["key"])
    tool.resolve(table)
    tool.append(table, rows, partition)
    return True


# --- one table's life ----------------------------------------------------------------------------

@case()
def life(catalog):
    """We append after everything that DuckDB can do to the table."""
    tool = Tool(catalog)
    tool.evolve("ev", BASIC)
    tool.append("ev", rows_of(0, 50))
    tool.append("ev", rows_of(100, 50))
    last = tool.append("ev", rows_of(200, 50))["snapshot"]
    want = {i: i * 0.5 for n in (0, 100, 200) for i in range(n, n + 50)}
    open_one = Duck(catalog.duck, catalog.data)
    equal([open_one.one(f"SELECT count(*) FROM ev AT (VERSION => {last - i})") for i in range(4)],
          [150, 100, 50, 0], "time travel")
    for where, files in (("id = 3", 1), ("id >= 200", 1), ("id BETWEEN 100 AND 120", 1),
                         ("name = 'n3'", 3), ("v > 50 AND v < 70", 1), ("id = 77", 0),
                         ("ts > '2025-01-01'", 0), ("name IS NULL", 3)):
        equal(open_one.files_read(f"SELECT * FROM ev WHERE {where}"), files, f"files of {where}")
    first = 1000

    def step(sql="SELECT 1", changed=False, partition=None):
        nonlocal first
        open_one.run(sql)
        equal(append_again(tool, "ev", rows_of(first, 10), partition), changed, "changed by " + sql)
        want.update({i: i * 0.5 for i in range(first, first + 10)})
        first += 1000
        connections = [open_one]
        if first % 4000 == 0:
            connections.append(Duck(catalog.duck, catalog.data))
        for duck in connections:
            equal(dict(duck.run("SELECT id, v FROM ev")), want, "values after " + sql)
            equal(duck.run(f"SELECT id FROM ev WHERE id = {first - 999}"), [(first - 999,)], "=")
            equal(duck.one("SELECT max(id) FROM ev"), max(want), "max after " + sql)
            equal(duck.one("SELECT min(id) FROM ev"), min(want), "min after " + sql)
            equal(duck.one("SELECT count(*) FROM ev"), len(want), "count after " + sql)

    step()
    want.update({i + 500000: i * 0.5 for i in range(20)})
    step("INSERT INTO ev SELECT * REPLACE (id + 500000 AS id) FROM ev WHERE id < 20")
    want[-7] = 1.25
    step("INSERT INTO ev (id, v) VALUES (-7, 1.25)")
    want.update({i: -1.0 for i in range(10, 15)})
    step("UPDATE ev SET v = -1 WHERE id BETWEEN 10 AND 14")
    for i in range(120, 131):
        del want[i]
    step("DELETE FROM ev WHERE id BETWEEN 120 AND 130")
    for i in range(200, 250):
        del want[i]
    step("DELETE FROM ev WHERE id BETWEEN 200 AND 249")  # a whole file
    step("ALTER TABLE ev ADD COLUMN extra INTEGER DEFAULT 42")  # ours lands without it
    equal(open_one.one("SELECT count(*) FROM ev WHERE extra = 42"), len(want), "default")
    tool.resolve("ev")
    step("ALTER TABLE ev RENAME COLUMN name TO label")
    step("ALTER TABLE ev ALTER COLUMN extra SET DATA TYPE BIGINT", changed=True)
    step("ALTER TABLE ev DROP COLUMN extra", changed=True)
    step("COMMENT ON TABLE ev IS 'hello'")
    step("CALL ducklake_merge_adjacent_files('lake')")
    step("CALL ducklake_rewrite_data_files('lake', 'ev', delete_threshold => 0.0)")
    step("SELECT count(*) FROM ducklake_expire_snapshots('lake', older_than => now())")
    step("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
    step("CALL ducklake_flush_inlined_data('lake')")
    step("ALTER TABLE ev SET SORTED BY (v DESC, label)")
    equal(tool.resolve("ev")["sort"], [[4, True, False], [2, False, False]], "sort")
    step("ALTER TABLE ev SET PARTITIONED BY (year(ts))", changed=True, partition=["2024"])
    step("CALL ducklake_merge_adjacent_files('lake')", partition=["2024"])
    step("ALTER TABLE ev RESET PARTITIONED BY", changed=True)
    step("CHECKPOINT lake")
    healthy(open_one, catalog, "ev", len(want))
    equal(catalog.value("SELECT count(*) FROM ducklake_table_column_stats"), "0", "column stats")
    open_one.close()
    tool.close()


@case()
def adopted(catalog):
    """A table that DuckDB made and filled: inlined rows, statistics of its own."""
    duck = Duck(catalog.duck, catalog.data)
    duck.run("CREATE TABLE ev (id BIGINT, name VARCHAR, v DOUBLE, b BOOLEAN, d DECIMAL(18,4))")
    duck.run("INSERT INTO ev SELECT i, 'n' || i, i * 0.5, true, i FROM range(100, 200) t(i)")
    duck.run("INSERT INTO ev VALUES (150, 'in', 1.5, false, 7)")  # inlined
    duck.run("CREATE TABLE empty_one (id BIGINT)")
    duck.run("CREATE TABLE other (id BIGINT)")
    duck.run("INSERT INTO other SELECT i FROM range(100) t(i)")
    open_one = Duck(catalog.duck, catalog.data)
    equal(open_one.run("SELECT min(id), max(id) FROM ev"), [(100, 199)], "before")
    assert int(catalog.value("SELECT count(*) FROM ducklake_table_column_stats")) > 5
    tool = Tool(catalog)
    equal([c["name"] for c in tool.resolve("EV")["columns"]], ["id", "name", "v", "b", "d"])
    tool.append("ev", [{"id": -5, "name": None, "v": -9.5, "b": None, "d": decimal.Decimal("-1.5")},
                       {"id": 900, "name": "zz", "v": float("nan"), "b": True, "d": None}])
    for connection in (duck, open_one, Duck(catalog.duck, catalog.data)):
        equal(connection.run("SELECT min(id), max(id), count(*), count(name), count(b), min(v),"
                             " min(d), max(d) FROM ev"),
              [(-5, 900, 103, 102, 102, -9.5, decimal.Decimal("-1.5"), 199)], "aggregates")
        equal(connection.one("SELECT min(id) FROM ev"), -5, "min alone")
        equal(connection.one("SELECT max(id) FROM ev"), 900, "max alone")
        equal(connection.one("SELECT count(b) FROM ev"), 102, "count of a column")
        for where, count in (("id = -5", 1), ("id > 500", 1), ("name IS NULL", 1), ("b IS NULL", 1),
                             ("id < 0", 1), ("name = 'in'", 1), ("d IS NULL", 1), ("isnan(v)", 1),
                             ("name >= 'zz'", 1), ("id = 150", 2)):
            equal(connection.one(f"SELECT count(*) FROM ev WHERE {where}"), count, where)
    table_id = tool.tables["ev"]["id"]
    ours = f"SELECT count(*) FROM ducklake_table_column_stats WHERE table_id = {table_id}"
    equal(catalog.value(ours), "0", "column stats of ours")
    assert int(catalog.value("SELECT count(*) FROM ducklake_table_column_stats")) > 0, "others'"
    duck.run("INSERT INTO ev (id) SELECT i FROM range(1000, 1100) t(i)")
    duck.run("INSERT INTO ev (id) VALUES (-77)")
    duck.run("UPDATE ev SET v = 3 WHERE id = 150")
    duck.run("CALL ducklake_flush_inlined_data('lake')")
    tool.append("ev", [{"id": 5000}])
    equal(catalog.value(ours), "0", "column stats stay away")
    equal(open_one.run("SELECT min(id), max(id), count(*) FROM ev"), [(-77, 5000, 205)], "later")
    healthy(duck, catalog, "ev", 205)
    # never written before: its first statistics row is ours, while DuckDB holds a transaction
    # that is about to make one
    tool.close()
    tool = Tool(catalog, statement_ms_max=5000)
    tool.resolve("empty_one")
    duck.run("BEGIN")
    duck.run("INSERT INTO empty_one SELECT i FROM range(100) t(i)")
    files = [tool.write("empty_one", [{"id": -1}])]
    if catalog.kind == "sqlite":  # DuckDB's file is not in WAL mode: its readers hold us up
        error = refused("io", tool.commit, [("empty_one", files)], records=1, text="readers hold")
        assert error.retriable
        duck.run("COMMIT")
        tool.commit([("empty_one", files)], records=1)
    else:
        tool.commit([("empty_one", files)], records=1)
        duck.run("COMMIT")
    tool.append("empty_one", [{"id": 101}])
    for connection in (duck, open_one, Duck(catalog.duck, catalog.data)):
        equal(connection.one("SELECT min(id) FROM empty_one"), -1, "min")
        equal(connection.one("SELECT max(id) FROM empty_one"), 101, "max")
        equal(connection.one("SELECT count(*) FROM empty_one WHERE id < 0"), 1, "below")
    healthy(duck, catalog, "empty_one", 102)
    tool.close()


@case()
def inlined(catalog):
    """Column changes of ours on a table that has inlined tables already."""
    duck = Duck(catalog.duck, catalog.data)
    duck.run("CREATE TABLE ev (id BIGINT, name VARCHAR)")
    duck.run("INSERT INTO ev VALUES (1, 'one'), (2, 'two')")
    open_one = Duck(catalog.duck, catalog.data)
    equal(open_one.one("SELECT count(*) FROM ev"), 2)
    assert int(catalog.value("SELECT count(*) FROM ducklake_inlined_data_tables")) > 0
    tool = Tool(catalog)
    tool.resolve("ev")
    tool.append("ev", [{"id": 3}])
    duck.run("INSERT INTO ev VALUES (4, 'four')")
    tool.evolve("ev", [("row_id", "int64"), ("extra", "float64")])
    tool.append("ev", [{"id": 5, "row_id": 7, "extra": 1.5}])
    fresh = Duck(catalog.duck, catalog.data)
    for at, connection in enumerate((duck, open_one, fresh)):
        connection.run(f"INSERT INTO ev VALUES ({10 + at}, 'small', {at}, 0.5)")
        connection.run(f"UPDATE ev SET name = 'changed' WHERE id = {10 + at}")
        connection.run(f"INSERT INTO ev (id, row_id) SELECT i, i FROM range({100 * at + 100},"
                       f" {100 * at + 150}) t(i)")
    tool.evolve("ev", widen=[1])
    assert tool.tables["ev"]["columns"][0]["type"] == "float64"
    tool.append("ev", [{"id": 6.5}])
    for at, connection in enumerate((duck, open_one, fresh)):
        connection.run(f"INSERT INTO ev (id) VALUES ({20 + at}.25)")
    duck.run("DELETE FROM ev WHERE id = 2")
    duck.run("CALL ducklake_flush_inlined_data('lake')")
    duck.run("CALL ducklake_merge_adjacent_files('lake')")
    want = [1, 3, 4, 5, 6.5, 10, 11, 12, 20.25, 21.25, 22.25] + [
        i for at in range(3) for i in range(100 * at + 100, 100 * at + 150)]
    for connection in (duck, open_one, Duck(catalog.duck, catalog.data)):
        equal([r[0] for r in connection.run("SELECT id FROM ev ORDER BY id")], want, "ids")
        equal(connection.one("SELECT max(id) FROM ev"), 349, "max")
    healthy(duck, catalog, "ev", len(want))
    tool.close()


# --- values -----------------------------------------------------------------------------------------

D = decimal.Decimal
VALUES = {
    "boolean": [True, False, None], "int8": [-128, 127, None], "int16": [-32768, 5, 32767],
    "int32": [-2**31, 2**31 - 1, 0], "int64": [-2**63, 2**63 - 1, 12], "uint8": [0, 255, None],
    "uint16": [1, 65535, 2], "uint32": [0, 2**32 - 1, 7], "uint64": [0, 2**64 - 1, None],
    "float64": [-1.5, 1e300, 0.1], "decimal(9,2)": [D("-12.34"), D("0.05"), D("7")],
    "decimal(18,4)": [D("-1"), D("12345678901234.5678"), None],
    "decimal(38,10)": [D("-0.0000000001"), D("1234567890123456789012345678.0123456789"), D("1")],
    "date": [dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31)],
    "time": [dt.time(0), dt.time(10, 11, 12, 500000), dt.time(23, 59, 59, 999999)],
    "timestamp_s": [dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2024, 1, 5), None],
    "timestamp_ms": [dt.datetime(2024, 1, 5, 10, 11, 12, 120000), dt.datetime(1950, 1, 1), None],
    "timestamp": [dt.datetime(2024, 1, 5, 10, 11, 12, 123450), dt.datetime(1, 1, 1), None],
    "timestamp_ns": [dt.datetime(2024, 1, 5, 10, 11, 12, 123456), dt.datetime(1970, 1, 1), None],
    "timestamptz": [dt.datetime(2024, 2, 1, 11, 0, 0, 123456, UTC),
                    dt.datetime(1969, 1, 1, tzinfo=UTC), None],
    "varchar": ["", "caf\u00e9 \U0001f600", "z'\"\\{},NULL"], "json": ['{"a":1}', "[]", None],
    "blob": [b"\xab\x00", b"", b"\xff\x10"],
    "uuid": [uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), uuid.UUID(int=1), None],
}


def parquet_only(duck):
    duck.run("CALL lake.set_option('data_inlining_row_limit', 0)")


@case()
def types(catalog):
    """Every type: values read back, and bounds are spelled as the extension spells them."""
    tool = Tool(catalog)
    columns = [(f"c_{t}", t) for t in VALUES]
    tool.evolve("ours", columns)
    rows = [{f"c_{t}": v[i] for t, v in VALUES.items()} for i in range(3)]
    tool.append("ours", rows)
    duck = Duck(catalog.duck, catalog.data)
    parquet_only(duck)
    equal(duck.one("SELECT count(*) FROM ours"), 3)
    names = [f'"{c}"' for c, _ in columns]
    duck.run("CREATE TABLE theirs AS SELECT * FROM ours WHERE false")
    duck.run("INSERT INTO theirs SELECT * FROM ours")
    texts = ", ".join(f"{n}::VARCHAR" for n in names)
    equal(duck.run(f"SELECT {texts} FROM ours ORDER BY ALL"),
          duck.run(f"SELECT {texts} FROM theirs ORDER BY ALL"), "values")
    got, want = ([dict((r[0], r[1:]) for r in catalog.sql(
        "SELECT c.column_name, s.value_count, s.null_count, s.min_value, s.max_value,"
        " CASE WHEN s.contains_nan IS NULL THEN 'null' ELSE CAST(s.contains_nan AS VARCHAR) END"
        " FROM ducklake_file_column_stats s JOIN ducklake_table t ON t.table_id = s.table_id"
        " JOIN ducklake_column c ON c.table_id = t.table_id AND c.column_id = s.column_id"
        f" WHERE t.table_name = '{name}'")) for name in ("ours", "theirs")])
    equal(set(got), {c for c, _ in columns}, "columns with statistics")
    for name in sorted(got):
        equal(got[name], want[name], f"statistics of {name}")
    for (name, type_), quoted in zip(columns, names):
        for value in VALUES[type_]:
            if value is None:
                continue
            literal = duck.con.execute(f"SELECT count(*) FROM ours o JOIN theirs t USING ({quoted})"
                                       ).fetchone()[0]
            assert literal >= 1, name
    tool.close()


@case()
def floats(catalog):
    """NaN, infinities, signed zeros, FLOAT promoted to DOUBLE, only nulls, long texts."""
    tool = Tool(catalog)
    tool.evolve("f", [("x", "float64"), ("y", "float32"), ("s", "varchar"), ("b", "blob")])
    nan, inf = float("nan"), float("inf")
    long_text = "x" + "\u00e9" * 300
    files = [
        [{"x": nan}, {"x": nan}],
        [{"x": nan}, {"x": 1.0}, {"x": -inf}],
        [{"x": -0.0, "y": 0.1}],
        [{"x": 0.0, "y": 1e30}],
        [{"x": 5e-324, "s": long_text, "b": b"\xff" * 300}, {"x": 1.7976931348623157e308}],
        [{"x": inf, "s": "\U0010ffff" * 100, "b": b"\x01" * 257}],
        [{"x": 3.0, "s": "a\0b"}],
        [{"s": "\ud7ff" * 90}],
    ]
    for rows in files:
        tool.append("f", rows)
    duck = Duck(catalog.duck, catalog.data)
    for where, count, at_most in (
            ("x > 0", 8, 8), ("x = 0", 2, 4), ("x < 0", 1, 2), ("isnan(x)", 3, 8),
            ("x IS NULL", 1, 8), ("x = 'inf'", 1, 3), ("x = '-inf'", 1, 2),
            ("x >= 5e-324", 8, 8), ("y >= 0.1", 2, 2), (f"s = '{long_text}'", 1, 3),
            ("s IS NOT NULL", 4, 8), ("s < 'b'", 1, 2), ("s > 'z'", 2, 4),
            ("s LIKE 'a_b'", 1, 3), ("b = '\\xFF'::BLOB", 0, 8),
            ("s = repeat(chr(55295), 90)", 1, 3), ("s = repeat(chr(1114111), 100)", 1, 4)):
        equal(duck.one(f"SELECT count(*) FROM f WHERE {where}"), count, where)
        read = duck.files_read(f"SELECT * FROM f WHERE {where}")
        assert read <= at_most, f"{where} reads {read} files, not at most {at_most}"
    duck.run("ALTER TABLE f ALTER COLUMN y SET DATA TYPE DOUBLE")
    # not y > 0.1: the extension's Parquet reader answers that wrongly, for its own files too
    equal(duck.one("SELECT count(*) FROM f WHERE y >= 0.10000000149011612 AND y < 1"), 1, "promoted")
    equal(duck.one("SELECT count(*) FROM f WHERE y = 0.10000000149011612"), 1, "promoted")
    equal(duck.one("SELECT count(*) FROM f"), 12)
    duck.run("CALL ducklake_merge_adjacent_files('lake')")
    equal(duck.one("SELECT count(*) FROM f WHERE x > 0"), 8, "after merge")
    tool.close()


# --- partitions ---------------------------------------------------------------------------------------

def murmur3(data):
    h = 0
    whole = len(data) // 4
    for i in range(whole + (len(data) % 4 > 0)):
        k = int.from_bytes(data[4 * i:4 * i + 4], "little") * 0xcc9e2d51 & 0xffffffff
        k = (k << 15 | k >> 17) * 0x1b873593 & 0xffffffff
        h ^= k
        if i < whole:
            h = ((h << 13 | h >> 19) & 0xffffffff) * 5 + 0xe6546b64 & 0xffffffff
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85ebca6b & 0xffffffff
    h = (h ^ h >> 13) * 0xc2b2ae35 & 0xffffffff
    return h ^ h >> 16


def bucket(data, n):
    return str((murmur3(data) & 0x7fffffff) % n)


@case()
def partitions(catalog):
    """Directories and values of every transform; both writers' files merge."""
    tool = Tool(catalog)
    assert bucket((34).to_bytes(8, "little"), 16) == "3"  # the sheet's own vector
    texts = [None, "", "x", "a b/c=1%&\u00e9", "..", "na\u00efve'\"\\", "x" * 300, "\u00e9" * 90]
    tool.evolve("ev", list(BASIC) + [("odd name\u00e9", "varchar")],
                partition_by="year(ts), month(ts), day(ts), hour(ts), bucket(4, id),"
                             ' "odd name\u00e9"', sort_by=["ts", "id"])
    equal(len(tool.tables["ev"]["partition"]), 6)
    duck = Duck(catalog.duck, catalog.data)
    parquet_only(duck)
    groups = collections.defaultdict(list)
    for i, text in enumerate(texts * 2):
        row = rows_of(i, 1)[0]
        row["odd name\u00e9"] = text
        if i % 8 == 7:
            row["ts"] = None
        stamp = row["ts"]
        key = tuple(str(getattr(stamp, part)) if stamp else None
                    for part in ("year", "month", "day", "hour"))
        groups[key + (bucket(i.to_bytes(8, "little"), 4), text)].append(row)
    tool.commit([("ev", [tool.write("ev", rows, list(key)) for key, rows in groups.items()])],
                records=16)
    equal(duck.one("SELECT count(*) FROM ev"), 16)
    # The extension writes the same rows: same partitions, same directories (but for values that
    # no file system can name).
    duck.run("""INSERT INTO ev SELECT * FROM ev WHERE length("odd name\u00e9") < 50
                OR "odd name\u00e9" IS NULL""")
    paths = [r[0] for r in catalog.sql("SELECT path FROM ducklake_data_file")]
    directories = collections.Counter(p.rsplit("/", 1)[0] for p in paths)
    equal(sorted(directories.values()), [1] * 4 + [2] * 12, "directories of both")
    values = collections.Counter(tuple(r[0].split("|")) for r in catalog.sql(
        "SELECT string_agg(COALESCE(partition_value, '<null>'), '|' ORDER BY partition_key_index)"
        " FROM ducklake_file_partition_value GROUP BY data_file_id")) if (
            catalog.kind == "postgres") else None
    if values:
        equal(sorted(values.values()), [1] * 4 + [2] * 12, "values of both")
    for where, count in (("id = 3", 2), ("id IN (1, 2)", 4), ("ts IS NULL", 2),
                         ('"odd name\u00e9" IS NULL', 4), ("\"odd name\u00e9\" = ''", 4),
                         ("\"odd name\u00e9\" = 'x'", 4), ("id = 6", 1)):
        equal(duck.one(f"SELECT count(*) FROM ev WHERE {where}"), count, where)
    equal(duck.files_read("SELECT * FROM ev WHERE id = 3"), 2, "files of one bucket and bounds")
    duck.run("CALL ducklake_merge_adjacent_files('lake')")
    equal(int(catalog.value("SELECT count(*) FROM ducklake_data_file WHERE end_snapshot IS NULL")),
          16, "files after merge")
    append_again(tool, "ev", [rows_of(40, 1)[0]],
                 ["2024", "1", "5", "16", bucket((40).to_bytes(8, "little"), 4), None])
    healthy(duck, catalog, "ev", 29)
    # a NUL byte goes into no database's text
    tool.append("ev", [dict(rows_of(41, 1)[0], **{"odd name\u00e9": "a\0b"})],
                ["2024", "1", "5", "17", bucket((41).to_bytes(8, "little"), 4), "a\0b"])
    equal(duck.one("SELECT count(*) FROM ev WHERE \"odd name\u00e9\" LIKE 'a_b'"), 1)
    tool.close()


@case()
def flat(catalog):
    """hive_file_pattern false; the same transform of two columns; a partition key of each type."""
    tool = Tool(catalog)
    tool.evolve("two", [("a", "date"), ("b", "timestamp"), ("n", "int32")],
                partition_by="Year(a), YEAR (b), n")
    key = tool.ask("key", table="two", partition=["2023", "2024", "5"])["key"]
    assert key.startswith("main/two/year=2023/year_b=2024/n=5/ducklake-"), key
    row = {"a": dt.date(2023, 1, 1), "b": dt.datetime(2024, 1, 1), "n": 5}
    tool.append("two", [row], ["2023", "2024", "5"])
    duck = Duck(catalog.duck, catalog.data)
    parquet_only(duck)
    duck.run("INSERT INTO two SELECT * FROM two")
    duck.run("CALL ducklake_merge_adjacent_files('lake')")
    healthy(duck, catalog, "two", 2)
    duck.run("CALL lake.set_option('hive_file_pattern', false)")
    tool.evolve("flat", [("n", "int32")], partition_by="n")
    key = tool.ask("key", table="flat", partition=["5"])["key"]
    assert key.startswith("main/flat/ducklake-"), key
    tool.append("flat", [{"n": 5}], ["5"])
    duck.run("INSERT INTO flat SELECT * FROM flat")
    duck.run("CALL ducklake_merge_adjacent_files('lake')")
    healthy(duck, catalog, "flat", 2)
    duck.run("ALTER TABLE flat RENAME COLUMN n TO m")
    tool.resolve("flat")
    tool.append("flat", [{"m": 5}], ["5"])
    refused("bad configuration", tool.evolve, "bad", [("s", "varchar")], partition_by="day(s)",
            text="day of column \"s\"")
    refused("bad configuration", tool.evolve, "bad", [("s", "varchar")], partition_by="hour(t)",
            text="\"t\"")
    refused("bad configuration", tool.evolve, "bad", [("s", "varchar")], partition_by="week(s)")
    tool.evolve("made", [("s", "varchar")], partition_by="s, bucket(8, region)")
    equal(tool.tables["made"]["columns"][1]["type"], "varchar")
    warning = tool.evolve("flat", partition_by="bucket(4,m)")["table"]["warning"]
    assert "bucket(4,m)" in warning and '"m"' in warning, warning
    equal(tool.evolve("flat", partition_by=" M ")["table"]["warning"], "")
    tool.close()


# --- columns ---------------------------------------------------------------------------------------------

@case()
def widening(catalog):
    """BIGINT to DOUBLE only where every live value is known to be exact."""
    tool = Tool(catalog)
    tool.evolve("w", [("a", "int64"), ("b", "int64"), ("c", "int64"), ("p", "int64"),
                      ("s", "int32")], partition_by="p", sort_by=["a", "b"])
    edge = 2**53
    tool.append("w", [{"a": -edge, "b": edge + 1, "c": None, "p": 1}, {"a": edge, "b": 0, "p": 1}],
                ["1"])
    before = tool.append("w", [{"a": 7, "p": 2}], ["2"])["snapshot"]
    equal(tool.evolve("w", widen=[1, 2, 3, 4, 5])["widened"], [True, False, True, False, False])
    equal([c["type"] for c in tool.tables["w"]["columns"]],
          ["float64", "int64", "float64", "int64", "int32"])
    equal(tool.tables["w"]["sort"], [[1, False, False], [2, False, False]], "sort stays")
    tool.append("w", [{"a": 0.5, "b": 1, "c": 2.5, "p": 1}], ["1"])
    duck = Duck(catalog.duck, catalog.data)
    equal(duck.run("SELECT a FROM w ORDER BY a"),
          [(-float(edge),), (0.5,), (7.0,), (float(edge),)], "values")
    equal(duck.one("SELECT count(*) FROM w WHERE a = 0.5"), 1)
    equal(duck.one("SELECT count(*) FROM w WHERE a = 7"), 1)
    equal(duck.run(f"SELECT typeof(a) FROM w AT (VERSION => {before}) LIMIT 1"), [("BIGINT",)])
    duck.run("INSERT INTO w SELECT * FROM w")
    duck.run("CALL ducklake_merge_adjacent_files('lake')")
    healthy(duck, catalog, "w", 8)
    equal(tool.evolve("w", widen=[1])["widened"], [True], "is one already")
    # a file that says nothing of the column, and a file from before the column
    tool.evolve("u", [("a", "int64"), ("b", "int64")])
    files = [write_file(catalog.data, tool.ask("key", table="u")["key"], tool.tables["u"],
                        [{"b": 1}], leave_out=("a",))]
    tool.commit([("u", files)], records=1)
    tool.evolve("u", [("late", "int64")])
    tool.append("u", [{"late": 5, "b": 6}])
    late = tool.tables["u"]["columns"][2]["id"]
    equal(tool.evolve("u", widen=[1, 2, late])["widened"], [False, True, True], "unknown")
    # rows inlined in the catalog, and deleted ones
    duck.run("CREATE TABLE i (a BIGINT, b BIGINT, c BIGINT)")
    duck.run(f"INSERT INTO i VALUES (1, {edge + 1}, {edge + 1}), (NULL, 4, 4)")
    assert int(catalog.value("SELECT count(*) FROM ducklake_inlined_data_tables")) > 0
    tool.resolve("i")
    equal(tool.evolve("i", widen=[1, 2])["widened"], [True, False], "inlined")
    duck.run("UPDATE i SET c = 3 WHERE b > 4")
    duck.run("ALTER TABLE i ADD COLUMN d BIGINT DEFAULT 9007199254740993")
    tool.resolve("i")
    equal(tool.evolve("i", widen=[2, 4])["widened"], [False, False], "default")
    equal(duck.run("SELECT a, b, c, d FROM i ORDER BY b"),
          [(None, 4, 4, edge + 1), (1.0, edge + 1, 3, edge + 1)])
    tool.close()


def race_columns(arguments):
    """Adds the same 50 columns as seven others, one at a time."""
    exe, catalog, barrier = arguments
    Tool.exe = exe
    tool = Tool(catalog)
    tool.resolve("ev")
    for i in range(50):
        barrier.wait(600)
        tool.evolve("ev", [(f"Col_{i}" if os.getpid() % 2 else f"cOL_{i}", "int64")])
    ids = [c["id"] for c in tool.tables["ev"]["columns"]]
    tool.close()
    return ids


def in_processes(count, function, arguments):
    """function(arguments_i) in processes of their own, which share nothing with this one."""
    with multiprocessing.get_context("spawn").Pool(count) as pool:
        return pool.map(function, arguments, chunksize=1)


@case()
def same_column(catalog):
    """Eight processes add the same new column at once, fifty times."""
    tool = Tool(catalog)
    tool.evolve("ev", BASIC)
    with multiprocessing.get_context("spawn").Manager() as manager:
        barrier = manager.Barrier(8)
        lists = in_processes(8, race_columns, [(Tool.exe, catalog, barrier)] * 8)
    table = tool.resolve("ev")
    equal([c["id"] for c in table["columns"]], list(range(1, 55)), "ids")
    equal([ids == list(range(1, 55)) for ids in lists], [True] * 8, "ids as each saw them")
    equal(sorted(c["name"].lower() for c in table["columns"][4:]),
          sorted(f"col_{i}" for i in range(50)), "names")
    equal(catalog.value("SELECT count(*) FROM ducklake_schema_versions"), "51", "schema versions")
    tool.append("ev", rows_of(0, 5, **{table["columns"][50]["name"]: 9}))
    duck = Duck(catalog.duck, catalog.data)
    equal(duck.one(f'SELECT sum("{table["columns"][50]["name"]}") FROM ev'), 45)
    healthy(duck, catalog, "ev", 5)
    tool.close()


# --- races ----------------------------------------------------------------------------------------------------

def race_open(arguments):
    exe, catalog, barrier, schema = arguments
    Tool.exe = exe
    barrier.wait(600)
    tool = Tool(catalog, schema=schema)
    tool.evolve("ev", [("id", "int64")], partition_by="id")
    table = tool.tables["ev"]
    tool.close()
    return table["uuid"], table["id"]


@case()
def found(catalog):
    """Eight processes start at once on nothing: one lake, one schema, one table."""
    with multiprocessing.get_context("spawn").Manager() as manager:
        barrier = manager.Barrier(8)
        made = in_processes(8, race_open, [(Tool.exe, catalog, barrier, "app s")] * 8)
    equal(len(set(made)), 1, "tables")
    equal(catalog.value("SELECT count(*) FROM ducklake_schema"), "2")
    equal(catalog.value("SELECT count(*) FROM ducklake_table"), "1")
    if catalog.kind == "sqlite":
        equal(catalog.value("PRAGMA journal_mode"), "wal")
    duck = Duck(catalog.duck, catalog.data)
    duck.run('INSERT INTO "app s".ev VALUES (1)')
    tool = Tool(catalog, schema="APP S")
    tool.resolve("ev")
    tool.append("ev", [{"id": 1}], ["1"])
    healthy(duck, catalog, '"app s".ev', 2)
    tool.close()


def patiently(tool, file, number):
    """A commit among many; one that did not get its turn may come again."""
    while True:
        try:
            return tool.commit([("ev", [file])], number, 1)
        except Refused as error:
            assert error.retriable, error


def race_append(arguments):
    """Appends `count` one-row files; every file is hard-linked from one template."""
    exe, catalog, barrier, number, count = arguments
    Tool.exe = exe
    tool = Tool(catalog)
    table = tool.resolve("ev")
    template = write_file(catalog.data, f"main/ev/template-{number}.parquet", table,
                          rows_of(number, 1))
    tool.claim(number)
    barrier.wait(600)
    times, memory = [], 0
    for i in range(count):
        key = tool.ask("key", table="ev")["key"]
        os.link(catalog.data + template["key"], catalog.data + key)
        times.append(patiently(tool, dict(template, key=key), number)["us"])
        if i == count // 4:
            memory = tool.ask("memory")["kb"]
    grown = tool.ask("memory")["kb"] - memory
    tool.close()
    os.unlink(catalog.data + template["key"])
    return times, grown


def race_duck(arguments):
    """DuckDB's side of a race; gives how many inserts it could do."""
    catalog, barrier, number, count = arguments
    duck = Duck(catalog.duck, catalog.data, threads=1)
    duck.con.execute("SET ducklake_max_retry_count=1000; SET ducklake_retry_backoff=1")
    barrier.wait(600)
    done = 0
    for i in range(count):
        try:
            duck.run(f"INSERT INTO ev (id) SELECT {number} FROM range(20)")
            done += 1
        except Exception as error:
            assert "locked" in str(error) or "conflict" in str(error).lower(), error
    duck.close()
    return done


@case()
def append_race(catalog):
    """Eight writers, 200 commits each, one table, all at once."""
    tool = Tool(catalog)
    tool.evolve("ev", BASIC)
    count = 200
    with multiprocessing.get_context("spawn").Manager() as manager:
        barrier = manager.Barrier(8)
        start = time.monotonic()
        done = in_processes(8, race_append,
                            [(Tool.exe, catalog, barrier, n, count) for n in range(8)])
        seconds = time.monotonic() - start
    times = sorted(t for list_, _ in done for t in list_)
    grown = max(g for _, g in done)
    print(f"    {8 * count} commits, {seconds:.1f} s with the start; a commit takes "
          f"{times[len(times) // 2] / 1000:.1f} ms in the middle, {times[-1] / 1000:.0f} ms at most;"
          f" memory grew by {grown} kB")
    assert grown < 2000, f"memory grew by {grown} kB"
    equal(catalog.value("SELECT count(*) FROM ducklake_data_file"), str(8 * count), "files")
    equal(catalog.value("SELECT count(DISTINCT path) FROM ducklake_data_file"), str(8 * count))
    equal(catalog.value("SELECT max(snapshot_id) + 1 - count(*) FROM ducklake_snapshot"), "0",
          "gaps in snapshots")
    equal(catalog.sql("SELECT record_count, next_row_id FROM ducklake_table_stats"),
          [[str(8 * count)] * 2], "table stats")
    equal(catalog.sql("SELECT partition, next_offset FROM millpond_offsets ORDER BY partition"),
          [[str(n), str(count)] for n in range(8)], "offsets")
    duck = Duck(catalog.duck, catalog.data)
    healthy(duck, catalog, "ev", 8 * count)
    equal(duck.run("SELECT id, count(*) FROM ev GROUP BY id ORDER BY id"),
          [(n, count) for n in range(8)], "rows of each")
    tool.close()


@case()
def mixed_race(catalog):
    """Four of us and four of DuckDB."""
    tool = Tool(catalog)
    tool.evolve("ev", BASIC)
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(8) as pool:
        barrier = manager.Barrier(8)
        ours = pool.map_async(race_append, [(Tool.exe, catalog, barrier, n, 20) for n in range(4)],
                              chunksize=1)
        theirs = pool.map(race_duck, [(catalog, barrier, 100 + n, 10) for n in range(4)],
                          chunksize=1)
        ours.get(600)
    print(f"    DuckDB could do {sum(theirs)} of 40 inserts, we 80 of 80")
    if catalog.kind == "postgres":
        equal(sum(theirs), 40, "DuckDB's inserts")
    duck = Duck(catalog.duck, catalog.data)
    equal(duck.one("SELECT count(*) FROM ev WHERE id < 100"), 80, "ours")
    healthy(duck, catalog, "ev", 80 + 20 * sum(theirs))
    tool.close()


@case("postgres")
def killed(catalog):
    """The backend is ended again and again, at COMMIT too; nothing is lost, nothing doubled."""
    tool = Tool(catalog)
    tool.evolve("ev", BASIC)
    tool.claim(0)
    stop, kills, pause = threading.Event(), [0], [0.006]

    def killer():
        out = subprocess.Popen([os.path.join(os.environ.get("PG_BIN", ""), "psql"),
                                catalog.conninfo, "-qAt"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
        while not stop.is_set():
            out.stdin.write("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE"
                            " application_name = 'millpond' AND datname = current_database();\n")
            out.stdin.flush()
            kills[0] += int(out.stdout.readline())
            time.sleep(random.random() * pause[0])
        out.stdin.close()
        out.wait()

    thread = threading.Thread(target=killer)
    thread.start()
    already = retried = commits = 0
    try:
        while kills[0] < 60 or commits < 200:
            files = [tool.write("ev", rows_of(commits, 1))]
            while True:
                try:
                    answer = tool.commit([("ev", files)], 0, 1)
                    break
                except Refused as error:
                    assert error.retriable and error.code in ("io", "timeout"), error
                    retried += 1
                    pause[0] *= 2  # a slow machine comes to its COMMIT too
            pause[0] = 0.006
            already += answer["already"]
            commits += 1
    finally:
        stop.set()
        thread.join()
    print(f"    {commits} commits under {kills[0]} kills: {already} had landed without an answer,"
          f" {retried} errors went up")
    duck = Duck(catalog.duck, catalog.data)
    equal(duck.run("SELECT count(*), count(DISTINCT id), max(id) FROM ev"),
          [(commits, commits, commits - 1)], "rows")
    equal(catalog.value("SELECT next_offset FROM millpond_offsets"), str(commits), "offset")
    healthy(duck, catalog, "ev", commits)
    tool.close()


def round_trips(proxy, most, commit):
    """How many a commit takes: a round trip too many is there each time, a delay is not."""
    found = most + 1
    for _ in range(8):
        found = min(found, commit()["us"] / 1e6 / proxy.delay)
        if found < most + 0.5:
            break
    return found


@case("postgres")
def cut(catalog):
    """The line is cut before, in and after COMMIT, and elsewhere; then it is gone for a while."""
    proxy = Proxy(catalog)
    tool = Tool(proxy.catalog, connect_ms_max=20000)
    tool.evolve("ev", BASIC)
    tool.claim(0)
    seen = collections.Counter()
    for i in range(60):
        mode = ("before", "after", "anywhere")[i % 3] if i % 10 else "through"
        proxy.mode = mode
        answer = tool.append("ev", rows_of(i, 1))
        seen[mode, answer["already"]] += 1
        assert proxy.mode == "through" or mode == "anywhere", "it was not cut"
        proxy.mode = "through"
    print("    " + ", ".join(f"cut {m}: {n} {'had landed' if a else 'ran again'}"
                             for (m, a), n in sorted(seen.items()) if m != "through"))
    equal(seen["after", False] + seen["before", True], 0, "outcomes that were not recognised")
    assert seen["after", True] >= 15 and seen["before", False] >= 15, seen
    proxy.mode = "refuse"
    proxy.drop()
    files = [tool.write("ev", rows_of(60, 1))]
    for _ in range(3):
        error = refused("io", tool.commit, [("ev", files)], records=1)
        assert error.retriable
    proxy.mode = "through"
    tool.commit([("ev", files)], records=1)
    duck = Duck(catalog.duck, catalog.data)
    equal(duck.run("SELECT count(*), count(DISTINCT id) FROM ev"), [(61, 61)], "rows")
    healthy(duck, catalog, "ev", 61)
    # what it costs where the catalog is far away
    proxy.delay = 0.5
    times = round_trips(proxy, 3, lambda: tool.append("ev", rows_of(100, 1)))
    offsets = round_trips(proxy, 2, lambda: tool.commit([], records=1, trigger="time"))
    print(f"    a commit is {times:.2f} round trips, of offsets only {offsets:.2f}")
    assert times < 3.5 and offsets < 2.5
    proxy.delay = 0
    tool.close()
    proxy.close()


@case("postgres")
def held_up(catalog):
    """Somebody holds the lock, or the claim; the server does not answer; it is not there."""
    tool = Tool(catalog, statement_ms_max=5000)
    tool.evolve("ev", BASIC)
    tool.append("ev", rows_of(0, 2))
    holder = subprocess.Popen([os.path.join(os.environ.get("PG_BIN", ""), "psql"),
                               catalog.conninfo, "-qAt"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    for hold in ("SELECT 1 FROM pg_advisory_xact_lock(hashtextextended('ducklake public', 0))",
                 "INSERT INTO ducklake_snapshot SELECT max(snapshot_id) + 1 FROM ducklake_snapshot"
                 " RETURNING 1"):
        holder.stdin.write(f"BEGIN; {hold};\n")
        holder.stdin.flush()
        equal(holder.stdout.readline(), "1\n")
        start = time.monotonic()
        error = refused("timeout", tool.append, "ev", rows_of(2, 2))
        assert error.retriable and time.monotonic() - start < 60, "waited too long"
        holder.stdin.write("ROLLBACK;\n")
        holder.stdin.flush()
    holder.stdin.close()
    holder.wait()
    tool.append("ev", rows_of(2, 2))
    tool.close()
    # accepts and never answers
    silent = socket.socket()
    port = services.free_port()
    silent.bind(("127.0.0.1", port))
    silent.listen(5)
    mute = Catalog.__new__(Catalog)
    mute.ours, mute.data = (f"postgres:postgresql://u:secret%20word@127.0.0.1:{port}/db",
                            catalog.data)
    start = time.monotonic()
    error = refused("timeout", Tool, mute, connect_ms_max=600)
    assert error.retriable and time.monotonic() - start < 20, "waited too long"
    silent.close()
    error = refused("io", Tool, mute)
    assert error.retriable and "secret" not in error.text, error.text
    # who we are and where we want to go
    error = refused("bad configuration", bad_login, catalog, "dbname=nowhere_at_all")
    assert "nowhere_at_all" in error.text and not error.retriable
    error = refused("bad configuration", bad_login, catalog, "user=nobody_at_all")
    assert not error.retriable
    error = refused("bad configuration", bad_login, catalog, "password='secret word nonsense=1")
    assert "secret" not in error.text, error.text


def bad_login(catalog, words):
    other = Catalog.__new__(Catalog)
    other.ours, other.data = f"postgres:{catalog.conninfo} {words}", catalog.data
    return Tool(other)


# --- the book of record -------------------------------------------------------------------------------------------

@case()
def fencing(catalog):
    """A second owner fences the first; a batch lands once."""
    one = Tool(catalog)
    one.evolve("ev", BASIC)
    one.claim(0, 1)
    one.append("ev", rows_of(0, 5), part=0)
    two = Tool(catalog)
    two.resolve("ev")
    equal(two.ask("positions", partitions=[0, 1, 2])["positions"][0][:3], [0, 5, 1])
    two.claim(0)
    refused("fenced", one.append, "ev", rows_of(5, 5), part=0, text="epoch 2")
    one.append("ev", rows_of(100, 5), part=1)
    two.append("ev", rows_of(5, 5), part=0)
    # the old owner's claim, made from what it read long ago
    refused("conflict", one.ask, "claim", claims=[[0, 5, 1, 5]])
    refused("conflict", one.ask, "claim", claims=[[0, -1, 0, 0]])
    # both ranges or none
    files = [one.write("ev", rows_of(500, 1))]
    refused("fenced", one.ask, "append", appends=[{"table": "ev", "files": files}],
            ranges=[[0, 5, 9, 4, 4, 0, 0], [1, 5, 6, 1, 1, 0, 0]], trigger="size")
    equal([p[1] for p in one.ask("positions", partitions=[0, 1])["positions"]], [10, 5])
    # offsets only: no snapshot
    before = catalog.value("SELECT max(snapshot_id) FROM ducklake_snapshot")
    answer = one.ask("append", appends=[], ranges=[[1, 5, 9, 4, 0, 4, 0]], trigger="time")
    equal(answer["snapshot"], -1)
    equal(catalog.value("SELECT max(snapshot_id) FROM ducklake_snapshot"), before)
    equal(one.ask("positions", partitions=[1])["positions"][0][1], 9)
    other = Tool(catalog, group="other")
    equal(other.ask("positions", partitions=[0])["positions"], [[0, -1, 0, ""]])
    duck = Duck(catalog.duck, catalog.data)
    extra = duck.one("SELECT commit_extra_info FROM ducklake_snapshots('lake') WHERE"
                     " commit_extra_info IS NOT NULL ORDER BY snapshot_id LIMIT 1")
    equal(extra, '{"millpond":"0.1.0","group":"g","topic":"t","ranges":[{"partition":0,"first":0,'
                 '"next":5,"records":5,"rows":5,"skipped":0,"quarantined":0}]}')
    equal(duck.run("SELECT author, commit_message FROM ducklake_snapshots('lake') ORDER BY"
                   " snapshot_id DESC LIMIT 1"),
          [("millpond/test/0", "records=5 files=1 trigger=size millpond=0.1.0")])
    orphans = duck.run("CALL ducklake_delete_orphaned_files('lake', dry_run => true,"
                       " cleanup_all => true)")
    equal(len(orphans), 2, "files of the refused commits")
    for tool in (one, two, other):
        tool.close()


@case()
def two_tables(catalog):
    """The main table and the quarantine in one snapshot."""
    tool = Tool(catalog)
    tool.evolve("ev", BASIC)
    tool.evolve("bad", [("topic", "varchar"), ("offset", "int64"), ("payload", "blob")])
    bad = tool.write("bad", [{"topic": "t", "offset": 5, "payload": b"\x00\xff"}])
    before = int(catalog.value("SELECT max(snapshot_id) FROM ducklake_snapshot"))
    tool.append("ev", rows_of(0, 5), more=[("bad", [bad])])
    tool.commit([("ev", []), ("bad", [tool.write("bad", [{"offset": 6}])])], records=1)
    equal(int(catalog.value("SELECT max(snapshot_id) FROM ducklake_snapshot")), before + 2)
    equal(catalog.sql("SELECT changes_made FROM ducklake_snapshot_changes ORDER BY snapshot_id"
                      " DESC LIMIT 2"),
          [["inserted_into_table:2"], ["inserted_into_table:1,inserted_into_table:2"]])
    duck = Duck(catalog.duck, catalog.data)
    equal(duck.run('SELECT "offset", payload FROM bad ORDER BY 1'), [(5, b"\x00\xff"), (6, None)])
    healthy(duck, catalog, "ev", 5)
    healthy(duck, catalog, "bad", 2)
    tool.close()


@case()
def recreated(catalog):
    """Dropped and made again between resolve and append; altered; renamed."""
    tool = Tool(catalog)
    old = tool.evolve("ev", BASIC)["table"]
    tool.append("ev", rows_of(0, 5))
    duck = Duck(catalog.duck, catalog.data)
    files = [tool.write("ev", rows_of(5, 5))]
    duck.run("DROP TABLE ev")
    Duck(catalog.duck, catalog.data).close()  # our option of a table that is gone does no harm
    refused("destination changed", tool.commit, [("ev", files)], records=5, text="gone")
    duck.run("CREATE TABLE ev (id BIGINT, name VARCHAR, ts TIMESTAMPTZ, v DOUBLE)")
    refused("destination changed", tool.commit, [("ev", files)], records=5, text="another one")
    new = tool.evolve("ev", BASIC)["table"]
    assert new["uuid"] != old["uuid"] and new["id"] != old["id"]
    equal(tool.ask("positions", partitions=[0])["positions"], [[0, 5, 1, old["uuid"]]])
    tool.append("ev", rows_of(5, 5))
    equal(tool.ask("positions", partitions=[0])["positions"], [[0, 10, 1, new["uuid"]]])
    equal(duck.one("SELECT count(*) FROM ev"), 5)
    files = [tool.write("ev", rows_of(10, 5))]
    duck.run("ALTER TABLE ev ADD COLUMN more VARCHAR")  # another writer's column: ours lands
    tool.commit([("ev", files)], records=5)
    equal(duck.one("SELECT count(*) FROM ev WHERE more IS NULL"), 10)
    files = [tool.write("ev", rows_of(15, 5))]
    duck.run("ALTER TABLE ev DROP COLUMN v")
    refused("destination changed", tool.commit, [("ev", files)], records=5, text="column id 4 is gone")
    duck.run("ALTER TABLE ev RENAME TO moved")
    tool.evolve("ev", BASIC)
    tool.append("ev", rows_of(15, 5))
    equal(duck.one("SELECT count(*) FROM moved"), 10)
    healthy(duck, catalog, "ev", 5, orphan_count=2)
    duck.run("CREATE VIEW seen AS SELECT 1 AS one")
    refused("bad configuration", tool.evolve, "SEEN", BASIC, text="is a view")
    refused("bad configuration", tool.evolve, "ok", [("a\tb", "int64")])
    tool.close()


@case()
def opening(catalog):
    """What open refuses, and that looking changes nothing."""
    refused("not found", Tool, catalog, read_only=True)
    if catalog.kind == "sqlite":
        assert not os.path.exists(catalog.path), "looking made a file"
    kept, catalog.data = catalog.data, catalog.data + "/./x/..//"
    Tool(catalog).close()
    catalog.data = kept
    equal(catalog.value("SELECT value FROM ducklake_metadata WHERE key = 'data_path'"), kept)
    duck = Duck(catalog.duck, catalog.data)
    duck.run("CREATE SCHEMA \"We\"\"ird\"")
    duck.run("CREATE TABLE \"We\"\"ird\".\"odd table\" (i INTEGER, s STRUCT(a INTEGER, b VARCHAR),"
             " l INTEGER[], m MAP(VARCHAR, BIGINT), t TIMETZ, iv INTERVAL, u UHUGEINT,"
             " d DATE DEFAULT '2024-01-01', j JSON, n BIGINT NOT NULL)")
    look = Tool(catalog, schema='we"IRD', read_only=True)
    table = look.resolve("ODD table")
    equal([(c["name"], c["type"], c["id"], c["required"], c["default"]) for c in table["columns"]],
          [("i", "int32", 1, False, False), ("s", "other", 2, False, False),
           ("l", "other", 5, False, False), ("m", "other", 7, False, False),
           ("t", "other", 10, False, False), ("iv", "other", 11, False, False),
           ("u", "other", 12, False, False), ("d", "date", 13, False, True),
           ("j", "json", 14, False, False), ("n", "int64", 15, True, False)])
    look.ask("ping")
    refused("not found", look.resolve, "nothing")
    look.close()
    tool = Tool(catalog, schema='We"ird')
    tool.evolve("odd table", [("k", "int8"), ("I", "varchar")])
    table = tool.tables["odd table"]
    equal([(c["name"], c["id"]) for c in table["columns"]][-1], ("k", 16))
    equal(table["columns"][0]["type"], "int32", "left alone")
    tool.append("odd table", [{"i": 5, "d": None, "j": '{"a":[1]}', "n": 9, "k": -3}])
    equal(duck.run("SELECT i, s, l, m, d, j, n, k FROM \"We\"\"ird\".\"odd table\""),
          [(5, None, None, None, None, '{"a":[1]}', 9, -3)])
    healthy(duck, catalog, '"We""ird"."odd table"', 1)
    tool.close()
    kept, catalog.data = catalog.data, "/elsewhere"
    error = refused("bad configuration", Tool, catalog, text="/elsewhere/")
    assert kept in error.text, error.text
    catalog.data = kept
    duck.close()
    for key, value, text in (("version", "1.1", "1.1"), ("encrypted", "true", "encrypted")):
        old = catalog.value(f"SELECT value FROM ducklake_metadata WHERE key = '{key}'")
        change = "UPDATE ducklake_metadata SET value = '{}' WHERE key = '{}'"
        catalog.sql(change.format(value, key))
        refused("bad configuration", Tool, catalog, text=text)
        catalog.sql(change.format(old, key))
    catalog.sql("INSERT INTO ducklake_partition_info VALUES (900, 2, 1, NULL)")
    catalog.sql("INSERT INTO ducklake_partition_column VALUES (900, 2, 0, 1, 'epoch_day')")
    tool = Tool(catalog, schema='We"ird')
    refused("bad configuration", tool.resolve, "odd table", text="epoch_day")
    tool.close()
    nowhere = Catalog.__new__(Catalog)
    nowhere.data = catalog.data
    for text in ("sqlite:/no/such/directory/x.sqlite", "mysql:x", "sqlite:", "postgres:"):
        nowhere.ours = text
        refused("bad configuration", Tool, nowhere)


@case()
def many_columns(catalog):
    """1,000 columns, and names that would hurt if they were not quoted."""
    tool = Tool(catalog)
    names = ["row_id", "begin_snapshot", "end_snapshot", "$session_id", "month-of-year", "select",
             'a"b', "a'b", "a\\b", "\u00fcber", "x" * 255, " ", "{}", "year", "%s", "a,b"]
    names += [f"c{i}" for i in range(1000 - len(names))]
    tool.evolve("wide", [(n, "int64") for n in names])
    tool.append("wide", [{n: i for i, n in enumerate(names)}])
    answer = tool.append("wide", [{n: i + 1 for i, n in enumerate(names)}])
    print(f"    a commit of one file of 1,000 columns takes {answer['us'] / 1000:.1f} ms")
    duck = Duck(catalog.duck, catalog.data)
    equal(duck.run("SELECT * FROM wide ORDER BY row_id"),
          [tuple(range(1000)), tuple(range(1, 1001))])
    duck.run("INSERT INTO wide SELECT * FROM wide LIMIT 1")
    duck.run("CALL ducklake_merge_adjacent_files('lake')")
    healthy(duck, catalog, "wide", 3)
    tool.close()


@case()
def many_files(catalog):
    """What a commit costs: 271 files of 16 columns, then one file of one, in a lake of 3,000 tables."""
    tool = Tool(catalog)
    tool.evolve("ev", [(f"c{i}", "int64" if i % 2 else "varchar") for i in range(15)] +
                [("p", "int64")], partition_by="p")
    row = {f"c{i}": i if i % 2 else "text" * 20 for i in range(15)}
    files = [tool.write("ev", [dict(row, p=i)], [str(i)]) for i in range(271)]
    answer = tool.commit([("ev", files)], records=271)
    tool.evolve("one", [("i", "int64")])
    tool.append("one", [{"i": 0}])
    few = sorted(tool.append("one", [{"i": i}])["us"] for i in range(20))[10]
    generate = ("generate_series(10, 3009) g(i)" if catalog.kind == "postgres" else
                "(WITH RECURSIVE g(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM g WHERE i < 3009)"
                " SELECT i FROM g) g")
    for insert in ("ducklake_table_stats SELECT i, 0, 0, 0",
                   "ducklake_table (table_id, begin_snapshot, schema_id, table_name, path)"
                   " SELECT i, 1, 0, 't' || i, 't/'",
                   "ducklake_column (table_id, column_id, begin_snapshot, column_name, column_type)"
                   " SELECT i, 1, 1, 'c', 'int64'"):
        catalog.sql(f"INSERT INTO {insert} FROM {generate}")
    many = sorted(tool.append("one", [{"i": i}])["us"] for i in range(20))[10]
    print(f"    271 files of 16 columns: {answer['us'] / 1000:.0f} ms; one file of one column:"
          f" {few / 1000:.1f} ms, beside 3,000 tables {many / 1000:.1f} ms")
    assert answer["us"] < 10_000_000
    tool.close()


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0].startswith("-"):
        print(__doc__)
        return 2
    Tool.exe = os.path.abspath(arguments[0])
    postgres = os.environ.get("MP_TEST_POSTGRES")
    if not postgres:  # half of the cases need a server: once more, beside one
        server = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pg_server.sh")
        sys.stdout.flush()
        os.execv(server, [server, sys.executable, os.path.abspath(__file__)] + arguments)
    passed = failed = 0
    extensions = tempfile.TemporaryDirectory(prefix="lake-judge-")
    Duck.prepare(extensions.name)
    for name, function, kind in CASES:
        if arguments[1:] and not any(a in name for a in arguments[1:]):
            continue
        directory = tempfile.mkdtemp(prefix="lake-judge-")
        start = time.monotonic()
        try:
            function(Catalog(kind, directory, postgres))
            passed += 1
            print(f"ok     {name} ({time.monotonic() - start:.1f} s)", flush=True)
        except Exception:
            failed += 1
            traceback.print_exc(file=sys.stdout)
            print(f"FAILED {name}", flush=True)
        shutil.rmtree(directory, ignore_errors=True)
    extensions.cleanup()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
