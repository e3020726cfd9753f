"""Records and values that broke programs of this kind, each with the right outcome. The numbers are
those of the list of cases; where Kafka plays no part the records come by `millpond load`."""
import bz2
import datetime
import gzip
import json
import lzma
import math
import os
import random
import re
import subprocess
import time

import duckdb
import pyarrow.parquet
import pytest

import lakes
import services

UTC = datetime.timezone.utc
QUARANTINE = {"MILLPOND_QUARANTINE_TABLE": "bad"}


def rescued(lake, table="events", where="true"):
    """The rescued texts that are there, as objects whose numbers keep their spelling."""
    return [json.loads(row[0], parse_float=str, parse_int=str) for row in lake.query(
        "SELECT _rescued_data FROM lake.%s WHERE _rescued_data IS NOT NULL AND %s" % (table, where))]


def payloads(lake):
    return [bytes(row[0]) for row in lake.query("SELECT payload FROM lake.bad ORDER BY \"offset\"")]


def rows(lake, columns, order="_inserted_at"):
    return lake.query("SELECT %s FROM lake.events ORDER BY %s" % (columns, order))


def partitions(lake):
    """The directory of each live file below the table's own."""
    return sorted(os.path.dirname(path) for path in lake.files())


# --- records that are no JSON object -------------------------------------------------------------

def test_c20_one_bad_record_does_not_block_its_neighbours(kafka, local_lake):
    topic = lakes.unique("c20")
    kafka.create_topic(topic)
    lines = ['{"mid":%d,"name":"x"}' % n for n in range(1000)]
    lines[980] = '{"mid":980,"name":"caf\\u00"}'
    services.produce(kafka.bootstrap, topic, lines)
    env = services.environment(kafka, topic, **QUARANTINE, **local_lake.env())
    with services.run_millpond(env) as millpond:
        millpond.wait_metric("millpond_records_written_total", 999)
        services.wait_until(lambda: kafka.committed("millpond-%s-events" % topic, topic, 0)[0]
                            == 1000, 120, "offset 1000")
        # C21: where and what, in the log and in the table
        text = [line for line in millpond.log().splitlines() if "980" in line and "caf" in line]
        assert text and topic in text[0] and len(text[0]) < 1000
    assert local_lake.value("SELECT count(*) FROM lake.events") == 999
    assert local_lake.value("SELECT count(*) FROM lake.events WHERE mid = 980") == 0
    bad = local_lake.query('SELECT topic, partition, "offset", payload, reason FROM lake.bad')
    assert len(bad) == 1 and bad[0][:3] == (topic, 0, 980)
    assert bytes(bad[0][3]) == lines[980].encode() and bad[0][4]


def test_c21_sample_is_bounded_and_escaped(local_lake, tmp_path):
    bad = b'{"a":"\x01\x02\x1b[31m\xff' + b"y" * 5000
    out = lakes.load(local_lake, [b'{"a":"good"}', bad], tmp_path, **QUARANTINE)
    assert "\x1b" not in out and "\x01" not in out
    assert "y" * 201 not in out, "the sample has at most 200 bytes"
    assert payloads(local_lake) == [bad], "the table keeps all of it"


def test_c22_tombstones_and_empty_values_are_told_apart(kafka, local_lake):
    topic = lakes.unique("c22")
    kafka.create_topic(topic)
    services.produce(kafka.bootstrap, topic, [("k1", None), ("k2", b""), ("k3", b'{"a":1}')])
    env = services.environment(kafka, topic, **QUARANTINE, **local_lake.env())
    with services.run_millpond(env) as millpond:
        millpond.wait_metric("millpond_records_written_total", 1)
        assert millpond.metric("millpond_records_consumed_total") == 3
        assert millpond.metric("millpond_records_skipped_total", reason="tombstone") == 1
        assert millpond.metric("millpond_records_quarantined_total") == 1
    assert local_lake.value("SELECT count(*) FROM lake.events") == 1
    bad = local_lake.query('SELECT key, payload, "offset" FROM lake.bad')
    assert [(bytes(key), bytes(payload), offset) for key, payload, offset in bad] == \
        [(b"k2", b"", 1)]


@pytest.mark.parametrize("name, bad, good", [
    ("c23_not_an_object", [b'[{"a":1},{"a":2}]', b"42", b'"x"', b"null"], [b'{"a":7}']),
    ("c25_unpaired_surrogate", [br'{"s":"a\ud800b"}', br'{"s":"\udc00\ud800"}'],
     [br'{"s":"\ud83d\ude00"}']),
    ("c26_invalid_utf8", [b'{"s":"\xff"}', b'{"s":"\xc0\x80"}', b'{"s":"\xe2\x82"}',
                          b'{"s":"\xed\xa0\x80"}'], [b'{"s":"\xe2\x82\xac"}', b'{"s":"b"}']),
    ("c36_number_spellings", [b'{"v":1e400}', b'{"v":NaN}', b'{"v":01}', b'{"o":{"v":1e400}}'],
     [b'{"v":1}']),
    ("c37_framing", [b'\xef\xbb\xbf{"a":1}', b'{"a":1} x', b'{"a":1}{"a":2}', b'{"s":"a\tb"}',
                     b'{"a":1,}', b'// no', b'{"a":1} // no'], [b' {"a":1}\t']),
    ("depth", [b'{"a":' + b"[" * 1024 + b"]" * 1024 + b"}"],
     [b'{"a":' + b"[" * 1023 + b"]" * 1023 + b"}"]),
])
def test_quarantined(local_lake, tmp_path, name, bad, good):
    """The bad ones between good ones: the good land, the bad are kept as they were."""
    lines = [good[0]] + bad + good[1:]
    lakes.load(local_lake, lines, tmp_path, **QUARANTINE)
    assert local_lake.value("SELECT count(*) FROM lake.events") == len(good)
    assert payloads(local_lake) == bad
    offsets = [sum(len(line) + 1 for line in lines[:1 + n]) for n in range(len(bad))]
    assert local_lake.query('SELECT "offset" FROM lake.bad ORDER BY 1') == \
        [(offset,) for offset in offsets], "a line's offset is the place of its first byte"
    assert all(row[0] for row in local_lake.query("SELECT reason FROM lake.bad"))
    for path in local_lake.file_paths():
        for column in pyarrow.parquet.read_table(path).columns:
            column.validate(full=True)  # no file holds invalid UTF-8


def test_a_load_of_bad_records_only(local_lake, tmp_path):
    lakes.load(local_lake, ["no", "nor this"], tmp_path, **QUARANTINE)
    assert payloads(local_lake) == [b"no", b"nor this"]


# --- values --------------------------------------------------------------------------------------

def test_c24_integer_beyond_a_double_beside_a_fraction(local_lake, tmp_path):
    lakes.load(local_lake, ['{"v":0.5}', '{"v":9007199254740993}', '{"v":9007199254740992}'],
               tmp_path)
    assert local_lake.columns()["v"] == "float64"
    assert rows(local_lake, "v", "v") == [(0.5,), (9007199254740992.0,), (9007199254740992.0,)]
    assert rescued(local_lake) == [{"v": "9007199254740993"}]


def test_c27_duplicate_keys(local_lake, tmp_path):
    lakes.load(local_lake, [r'{"a":1,"b":2,"a":3}', r'{"a":1,"\u0061":2}'], tmp_path)
    assert sorted(rows(local_lake, "a, b"), key=repr) == [(2, None), (3, 2)]
    assert set(local_lake.columns()) == {"a", "b", "_inserted_at"}


def test_c28_empty_containers(local_lake, tmp_path):
    lakes.load(local_lake, ['{"x":{},"y":[],"z":{"k":{ } } }'], tmp_path)
    assert rows(local_lake, "x, y, z") == [("{}", "[]", '{"k":{}}')]


def test_c29_only_nulls_first(local_lake, tmp_path):
    lakes.load(local_lake, ['{"project_id":null}'], tmp_path, "one")
    assert "project_id" not in local_lake.columns()
    assert local_lake.value("SELECT count(*) FROM lake.events") == 1
    lakes.load(local_lake, ['{"project_id":42}'], tmp_path, "two")
    assert local_lake.columns()["project_id"] == "int64"
    assert rows(local_lake, "project_id") == [(None,), (42,)]
    lakes.load(local_lake, ['{"other":null}', '{"other":42}'], tmp_path, "three")
    assert local_lake.columns()["other"] == "int64"
    assert local_lake.value("SELECT sum(other) FROM lake.events") == 42


def test_c30_timestamp_spellings(local_lake, tmp_path):
    spellings = {
        "2026-03-31T03:17:37.260514+00:00": datetime.datetime(2026, 3, 31, 3, 17, 37, 260514),
        "2026-03-31 03:17:37": datetime.datetime(2026, 3, 31, 3, 17, 37),
        "2026-03-31T03:17:37Z": datetime.datetime(2026, 3, 31, 3, 17, 37),
        "2026-03-31T03:17:37.1+0530": datetime.datetime(2026, 3, 30, 21, 47, 37, 100000),
        "2026-03-31T03:17:37.123456789Z": datetime.datetime(2026, 3, 31, 3, 17, 37, 123456),
        "2026-03-31": datetime.datetime(2026, 3, 31),
        "2026-02-30 00:00:00": None,
    }
    lines = ['{"n":%d,"ts":"%s"}' % item for item in enumerate(spellings)]
    lines.append('{"n":99,"ts":1774926000000001}')
    lakes.load(local_lake, lines, tmp_path, MILLPOND_TYPED_COLUMNS="ts:timestamptz")
    want = [value and value.replace(tzinfo=UTC) for value in spellings.values()]
    want.append(datetime.datetime(2026, 3, 31, 3, 0, 0, 1, tzinfo=UTC))
    assert [row[0] for row in rows(local_lake, "ts", "n")] == want
    assert rescued(local_lake) == [{"ts": "2026-02-30 00:00:00"}]


def test_c31_with_and_without_a_zone(local_lake, tmp_path):
    local_lake.execute("CREATE TABLE lake.events (plain TIMESTAMP, zoned TIMESTAMPTZ)")
    lakes.load(local_lake, ['{"plain":"2026-03-31 03:17:37","zoned":"2026-03-31 03:17:37"}'],
               tmp_path)
    assert local_lake.columns()["plain"] == "timestamp"
    assert local_lake.columns()["zoned"] == "timestamptz"
    schema = pyarrow.parquet.ParquetFile(local_lake.file_paths()[0]).schema
    kinds = {schema.column(n).name: json.loads(schema.column(n).logical_type.to_json())
             for n in range(len(schema))}
    assert kinds["plain"]["isAdjustedToUTC"] is False
    assert kinds["zoned"]["isAdjustedToUTC"] is True
    instant = datetime.datetime(2026, 3, 31, 3, 17, 37)
    assert rows(local_lake, "plain, zoned") == [(instant, instant.replace(tzinfo=UTC))]
    table = pyarrow.parquet.read_table(local_lake.file_paths()[0])
    assert table["plain"].to_pylist() == [instant]
    assert [value.astimezone(UTC) for value in table["zoned"].to_pylist()] == \
        [instant.replace(tzinfo=UTC)]


def test_c32_times_out_of_range(local_lake, tmp_path):
    texts = ["infinity", "0000-00-00 00:00:00", "294247-01-10 04:00:54.775808",
             "9999-12-31 23:59:59"]
    lakes.load(local_lake, ['{"n":%d,"ts":"%s"}' % item for item in enumerate(texts)], tmp_path,
               MILLPOND_TYPED_COLUMNS="ts:timestamptz")
    assert rows(local_lake, "epoch_us(ts)", "n") == [
        (None,), (None,), (None,), (lakes.timestamp_us("9999-12-31T23:59:59Z"),)]
    assert sorted(value["ts"] for value in rescued(local_lake)) == sorted(texts[:3])


KINDS = ['{"n":0,"p":1}', '{"n":1,"p":true}', '{"n":2,"p":"x"}', '{"n":3,"p":{"k":1}}',
         '{"n":4,"p":0.5}']


def test_c33_one_key_many_types_in_one_flush(local_lake, tmp_path):
    shuffled = list(KINDS)
    random.Random(3).shuffle(shuffled)
    for turn, lines in enumerate([KINDS, KINDS[::-1], shuffled]):
        lakes.load(local_lake, lines, tmp_path, table="t%d" % turn)
        assert local_lake.columns("t%d" % turn)["p"] == "varchar"
        assert local_lake.query("SELECT p FROM lake.t%d ORDER BY n" % turn) == \
            [("1",), ("true",), ("x",), ('{"k":1}',), ("0.5",)]


def test_c33_one_key_many_types_one_flush_each(local_lake, tmp_path):
    for turn, line in enumerate(KINDS):
        lakes.load(local_lake, [line], tmp_path, "file%d" % turn)
    assert local_lake.columns()["p"] == "float64", "every live integer fits a double"
    assert rows(local_lake, "p", "n") == [(1.0,), (1.0,), (None,), (None,), (0.5,)]
    # an object stays one inside the rescued object
    assert rescued(local_lake, where="n = 2") == [{"p": "x"}]
    assert rescued(local_lake, where="n = 3") == [{"p": {"k": "1"}}]


def test_live_bigint_beyond_doubles_is_not_widened(local_lake, tmp_path):
    lakes.load(local_lake, ['{"n":0,"p":9007199254740993}'], tmp_path, "one")
    lakes.load(local_lake, ['{"n":1,"p":0.5}', '{"n":2,"p":3}'], tmp_path, "two")
    assert local_lake.columns()["p"] == "int64"
    assert rows(local_lake, "p", "n") == [(9007199254740993,), (None,), (3,)]
    assert rescued(local_lake) == [{"p": "0.5"}]


def test_integers_beyond_int64(local_lake, tmp_path):
    lakes.load(local_lake, ['{"n":0,"new":18446744073709551616}', '{"n":1,"new":5,"live":1}'],
               tmp_path, "one")
    assert local_lake.columns()["new"] == "varchar"
    assert rows(local_lake, "new", "n") == [("18446744073709551616",), ("5",)]
    lakes.load(local_lake, ['{"n":2,"live":9223372036854775808}'], tmp_path, "two")
    assert rescued(local_lake) == [{"live": "9223372036854775808"}]


def test_c34_unsafe_names(local_lake, tmp_path):
    long_name = "x" * 129
    record = {"": 1, "month-of-year": 2, 'a"b': 3, "_hog_x": 4, long_name: 5, "select": 6,
              "naïve": 7, "nul\0l": 8, "_ducklake_internal_row_id": 9, "y" * 256: 10, "$session": 11}
    lakes.load(local_lake, [json.dumps(record, ensure_ascii=False)], tmp_path)
    columns = local_lake.columns()
    good = ["month-of-year", 'a"b', "_hog_x", long_name, "select", "naïve", "$session"]
    assert set(columns) == set(good) | {"_inserted_at", "_rescued_data"}
    values = rows(local_lake, ", ".join('"%s"' % name.replace('"', '""') for name in good))
    assert values == [tuple(record[name] for name in good)]
    left = [name for name in record if name not in good]
    assert rescued(local_lake) == [{name: str(record[name]) for name in left}]


def test_c35_reserved_names(local_lake, tmp_path):
    lakes.load(local_lake, ['{"_inserted_at":"x","month":3,"_rescued_data":"mine"}'], tmp_path)
    assert local_lake.columns()["month"] == "int64"
    assert rows(local_lake, "month") == [(3,)]
    assert rescued(local_lake) == [{"_inserted_at": "x", "_rescued_data": "mine"}]
    assert local_lake.value("SELECT _inserted_at BETWEEN now() - INTERVAL 1 HOUR AND now() "
                            "FROM lake.events")


def test_c36_negative_zeros(local_lake, tmp_path):
    lakes.load(local_lake, ['{"i":-0,"d":-0.0}'], tmp_path)
    assert local_lake.columns()["i"] == "int64" and local_lake.columns()["d"] == "float64"
    (integer, double), = rows(local_lake, "i, d")
    assert integer == 0 and double == 0 and math.copysign(1, double) == -1


def test_two_spellings_of_one_column(local_lake, tmp_path):
    lakes.load(local_lake, ['{"Name":"a"}', '{"name":"b","NAME":"c"}'], tmp_path)
    names = [name for name in local_lake.columns() if name.lower() == "name"]
    assert len(names) == 1
    assert sorted(row[0] for row in rows(local_lake, '"%s"' % names[0])) in (["a", "b"], ["a", "c"])
    (lost,) = rescued(local_lake)
    assert lost in ({"name": "b"}, {"NAME": "c"})


def test_c38_unbounded_keys(local_lake, tmp_path):
    lakes.load(local_lake, ['{"k_%d":%d}' % (n, n) for n in range(5000)], tmp_path)
    columns = local_lake.columns()
    assert 990 <= len(columns) <= 1000
    names = [name for name in columns if name.startswith("k_")]
    connection = local_lake.duckdb()
    stored = connection.execute("SELECT %s FROM lake.events" % ", ".join(
        "sum(%s)" % name for name in names)).fetchone()
    connection.close()
    assert [int(value) for value in stored] == [int(name[2:]) for name in names]
    kept = set(names)
    for value in rescued(local_lake):
        (name, number), = value.items()
        assert name == "k_" + number and name not in kept
        kept.add(name)
    assert len(kept) == 5000, "nothing is lost"


def child_peak(lake, path, **settings):
    """Peak resident bytes of a load, read from its own memory map: the rusage of a child also
    counts what its parent held when it forked."""
    env = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    env.update(lake.env(), DUCKLAKE_TABLE="events", **{k: str(v) for k, v in settings.items()})
    peak = 0
    child = subprocess.Popen([services.MILLPOND, "load", path], env=env,
                             stderr=subprocess.DEVNULL)
    while child.poll() is None:
        with open("/proc/%d/status" % child.pid) as status:
            found = re.search(r"VmHWM:\s+(\d+) kB", status.read())
        # until exec it is the parent's
        if found and os.readlink("/proc/%d/exe" % child.pid) == os.path.realpath(services.MILLPOND):
            peak = max(peak, int(found[1]) * 1024)
        time.sleep(0.01)
    assert child.returncode == 0 and peak
    return peak


def test_c39_wide_rows_in_bounded_memory(local_lake, tmp_path):
    columns, count, flush_size = 2000, 5000, 32 << 20
    path = str(tmp_path / "wide.ndjson")
    with open(path, "w") as out:
        for n in range(count):
            out.write("{%s}\n" % ",".join('"c%d":%d' % (c, n + c) for c in range(columns)))
    peak = child_peak(local_lake, path, FLUSH_SIZE=flush_size, MILLPOND_MAX_COLUMNS=columns + 10)
    assert local_lake.query("SELECT count(*), sum(c0), sum(c1999) FROM lake.events") == \
        [(count, sum(range(count)), sum(range(count)) + 1999 * count)]
    assert peak <= 1.5 * flush_size + (64 << 20), "%.0f MB" % (peak / 1e6)


def test_c39_many_flushes_do_not_grow(kafka, local_lake):
    topic = lakes.unique("c39")
    kafka.create_topic(topic)
    line = "{%s}" % ",".join('"c%d":%d' % (c, c) for c in range(300))
    env = services.environment(kafka, topic, FLUSH_SIZE=0, CONSUME_BATCH_SIZE=10,
                               FLUSH_INTERVAL_MS=100, **local_lake.env())
    with services.run_millpond(env) as millpond:
        resident = []
        for target in (2000, 6000, 10000):
            services.produce(kafka.bootstrap, topic, [line] * (target - (0, 2000, 6000)[len(resident)]))
            millpond.wait_metric("millpond_records_written_total", target, 240)
            resident.append(millpond.metric("process_resident_memory_bytes"))
        assert millpond.metric("millpond_batches_flushed_total") >= 500
    assert resident[2] - resident[1] < 8 << 20, resident


# --- statistics and layout -----------------------------------------------------------------------

def stats(lake, column):
    """[(value_count, null_count, min, max, contains_nan)] of a column, one per live file."""
    return lake.sql(
        "SELECT s.value_count, s.null_count, s.min_value, s.max_value, s.contains_nan "
        "FROM ducklake_file_column_stats s JOIN ducklake_column c ON c.column_id = s.column_id "
        "AND c.table_id = s.table_id JOIN ducklake_table t ON t.table_id = c.table_id "
        "JOIN ducklake_data_file f ON f.data_file_id = s.data_file_id "
        "WHERE t.table_name = 'events' AND c.column_name = %s AND c.end_snapshot IS NULL "
        "AND f.end_snapshot IS NULL ORDER BY s.data_file_id", column)


def test_c50_nan_and_infinity(local_lake, tmp_path):
    settings = {"MILLPOND_TYPED_COLUMNS": "x:double"}
    lakes.load(local_lake, ['{"x":"NaN"}'], tmp_path, "one", **settings)
    lakes.load(local_lake, ['{"x":"-inf"}'], tmp_path, "two", **settings)
    lakes.load(local_lake, ['{"x":"NaN"}', '{"x":1.0}', '{"x":"-inf"}'], tmp_path, "three",
               **settings)
    found = stats(local_lake, "x")
    assert [bool(row[4]) for row in found] == [True, False, True]
    assert not [row for row in found for bound in row[2:4] if bound and "nan" in bound.lower()]
    # to DuckDB NaN is greater than every number
    assert local_lake.value("SELECT count(*) FROM lake.events WHERE x > 0 AND NOT isnan(x)") == 1
    assert local_lake.value("SELECT count(*) FROM lake.events WHERE isnan(x)") == 2
    assert local_lake.value("SELECT count(*) FROM lake.events WHERE x < 0") == 2
    table = pyarrow.parquet.read_table(local_lake.file_paths(), filters=[("x", ">", 0)])
    assert table["x"].to_pylist() == [1.0]
    for path in local_lake.file_paths():
        for group in range(pyarrow.parquet.ParquetFile(path).num_row_groups):
            column = next(c for c in (pyarrow.parquet.ParquetFile(path).metadata.row_group(group)
                                      .column(n) for n in range(8)) if c.path_in_schema == "x")
            if column.statistics and column.statistics.has_min_max:
                assert not math.isnan(column.statistics.min) | math.isnan(column.statistics.max)


def test_c51_signed_zeros(local_lake, tmp_path):
    lakes.load(local_lake, ['{"x":-0.0}'], tmp_path, "one")
    lakes.load(local_lake, ['{"x":0.0}'], tmp_path, "two")
    for row in stats(local_lake, "x"):
        assert math.copysign(1, float(row[2])) == -1 and math.copysign(1, float(row[3])) == 1
    for zero in ("0", "-0.0::DOUBLE", "0.0::DOUBLE"):
        assert local_lake.value("SELECT count(*) FROM lake.events WHERE x = %s" % zero) == 2
    assert pyarrow.parquet.read_table(local_lake.file_paths(),
                                      filters=[("x", "==", 0.0)]).num_rows == 2


def test_c52_statistics_of_nulls_and_of_long_texts(local_lake, tmp_path):
    long_text = "long " + "ä" * 4000
    lakes.load(local_lake, ['{"a":1,"s":"short"}'], tmp_path, "one")
    lakes.load(local_lake, ['{"a":null,"s":"%s"}' % long_text, '{"s":"%sb"}' % long_text], tmp_path,
               "two")
    assert [row[:2] for row in stats(local_lake, "a")] == [(1, 0), (0, 2)]
    low, high = stats(local_lake, "s")[1][2:4]
    assert low is None or low <= long_text
    assert high is None or high >= long_text + "b"
    for text, count in ((long_text, 1), (long_text + "b", 1), ("short", 1), ("none", 0)):
        assert local_lake.query("SELECT count(*) FROM lake.events WHERE s = ?", text) == [(count,)]
    assert local_lake.value("SELECT count(*) FROM lake.events WHERE a IS NULL") == 2
    assert local_lake.value("SELECT count(*) FROM lake.events WHERE a = 1") == 1
    assert local_lake.value("SELECT count(*) FROM lake.events WHERE s > 'm'") == 1


def test_c53_float_widened(local_lake, tmp_path):
    # DuckDB's own file would not be found again: it keeps the bound 0.1, which is no double of it
    local_lake.execute("CREATE TABLE lake.events (x FLOAT)")
    lakes.load(local_lake, ['{"x":0.10000000149011612}', '{"x":0.1}', '{"x":0.123456789012}'],
               tmp_path)
    # 0.1 is how that FLOAT is spelled, so the first two are stored
    assert rescued(local_lake) == [{"x": "0.123456789012"}], "a FLOAT has fewer digits"
    local_lake.execute("ALTER TABLE lake.events ALTER COLUMN x SET DATA TYPE DOUBLE")
    bounds = local_lake.sql("SELECT min_value, max_value FROM ducklake_file_column_stats "
                            "WHERE column_id = 1")
    assert [(float(low), float(high)) for low, high in bounds] == [(0.10000000149011612,) * 2]
    # DuckDB 1.5.5 itself drops row groups of a widened FLOAT for x > 0.1 (its own files too)
    for condition, count in (("x = 0.10000000149011612", 2), ("x >= 0.1", 2), ("x < 0.1", 0)):
        assert local_lake.value("SELECT count(*) FROM lake.events WHERE %s::DOUBLE" % condition) \
            == count, condition


def test_column_absent_from_some_files_is_widened_and_prunes(local_lake, tmp_path):
    """A flush whose records never name a column still tells the catalog that it is null there."""
    for number, line in enumerate(['{"a":1,"v":5}', '{"a":2}', '{"a":3,"v":2.5}']):
        lakes.load(local_lake, [line], tmp_path, name="%d.ndjson" % number)
    assert local_lake.columns()["v"] == "float64"
    assert "_rescued_data" not in local_lake.columns()
    assert local_lake.query("SELECT a, v FROM lake.events ORDER BY a") == \
        [(1, 5.0), (2, None), (3, 2.5)]
    plan = local_lake.query("EXPLAIN ANALYZE SELECT * FROM lake.events WHERE v = 5")[0][1]
    assert "Total Files Read: 1" in plan, plan


def test_c54_plain_and_dictionary_only(local_lake, tmp_path):
    lakes.load(local_lake, ['{"s":"%s","n":%d,"x":%d.5,"b":true,"u":"%x"}' %
                            ("abc"[n % 3], n, n, n * 7919) for n in range(5000)], tmp_path)
    metadata = pyarrow.parquet.ParquetFile(local_lake.file_paths()[0]).metadata
    for group in range(metadata.num_row_groups):
        for n in range(metadata.num_columns):
            column = metadata.row_group(group).column(n)
            assert set(column.encodings) <= {"PLAIN", "RLE", "RLE_DICTIONARY"}, column
            assert column.compression == "ZSTD"


def test_c55_null_empty_and_text_as_partition_values(local_lake, tmp_path):
    lakes.load(local_lake, ['{"region":null,"n":1}', '{"region":"","n":2}', '{"region":"x","n":3}',
                            '{"n":4}'], tmp_path, DUCKLAKE_PARTITION_BY="region")
    assert len(local_lake.files()) == 3
    for condition, values in (("region IS NULL", [1, 4]), ("region = ''", [2]),
                              ("region = 'x'", [3]), ("region IS NOT NULL", [2, 3])):
        assert local_lake.query("SELECT n FROM lake.events WHERE %s ORDER BY n" % condition) == \
            [(value,) for value in values], condition


def test_c56_no_file_per_record(local_lake, tmp_path):
    lines = ['{"n":%d,"ts":"2026-03-01T%02d:00:00Z"%s}' %
             (n, 10 + n % 2, ',"extra":%d' % n if n % 4 < 2 else "") for n in range(10000)]
    lakes.load(local_lake, lines, tmp_path, MILLPOND_TYPED_COLUMNS="ts:timestamptz",
               DUCKLAKE_PARTITION_BY="year(ts),month(ts),day(ts),hour(ts)")
    assert len(local_lake.files()) == 2
    assert local_lake.query("SELECT hour(ts), count(*), count(extra) FROM lake.events GROUP BY 1 "
                            "ORDER BY 1") == [(10, 5000, 2500), (11, 5000, 2500)]
    assert partitions(local_lake)[0].endswith("year=2026/month=3/day=1/hour=10")


def test_c57_junk_event_time(local_lake, tmp_path):
    lines = ['{"n":%d,"ts":"2026-03-01T00:00:00Z"}' % n for n in range(9999)]
    lines.insert(5000, '{"n":9999,"ts":"2099-12-31T00:00:00Z"}')
    lakes.load(local_lake, lines, tmp_path, MILLPOND_TYPED_COLUMNS="ts:timestamptz",
               DUCKLAKE_PARTITION_BY="year(ts),month(ts)")
    assert len(local_lake.files()) == 2
    assert local_lake.value("SELECT n FROM lake.events WHERE ts > '2098-01-01'") == 9999


# --- load itself ---------------------------------------------------------------------------------

def test_load_twice_adds_nothing_and_resumes(local_lake, tmp_path):
    lines = ['{"n":%d,"pad":"%s"}' % (n, "x" * 100) for n in range(2000)]
    lakes.load(local_lake, lines, tmp_path)
    lakes.load(local_lake, lines, tmp_path)
    assert local_lake.value("SELECT count(*) FROM lake.events") == 2000
    more = lines + ['{"n":%d,"pad":"y"}' % n for n in range(2000, 2100)]
    lakes.load(local_lake, more, tmp_path)
    assert local_lake.query("SELECT count(*), count(DISTINCT n), max(n) FROM lake.events") == \
        [(2100, 2100, 2099)]


def test_load_of_a_file_with_a_byte_order_mark(local_lake, tmp_path):
    """Before the first line it is no part of it; before another it is (C37). The second run resumes."""
    lines = [b'\xef\xbb\xbf{"n":0}\r', b'{"n":1}\r', b'\xef\xbb\xbf{"n":2}\r', b'{"n":3}\r']
    lakes.load(local_lake, lines, tmp_path, **QUARANTINE)
    assert local_lake.query("SELECT n FROM lake.events ORDER BY n") == [(0,), (1,), (3,)]
    lakes.load(local_lake, lines + [b'{"n":4}\r'], tmp_path, **QUARANTINE)
    assert local_lake.query("SELECT n FROM lake.events ORDER BY n") == [(0,), (1,), (3,), (4,)]
    assert local_lake.value("SELECT count(*) FROM lake.bad") == 1


def test_load_refuses_a_file_that_became_another(local_lake, tmp_path):
    lakes.load(local_lake, ['{"n":%d}' % n for n in range(1000)], tmp_path)
    out = lakes.load(local_lake, ['{"n":%d}' % n for n in range(10)], tmp_path, code=2)
    assert "input.ndjson" in out
    out = lakes.load(local_lake, ['{"m":%d}' % n for n in range(1000)], tmp_path, code=2)
    assert "input.ndjson" in out
    assert local_lake.value("SELECT count(*) FROM lake.events") == 1000


def test_load_of_last_line_without_newline(local_lake, tmp_path):
    path = tmp_path / "open.ndjson"
    path.write_bytes(b'{"n":1}\n\r\n{"n":2}\r\n{"n":3}')
    env = dict(local_lake.env(), DUCKLAKE_TABLE="events")
    code, out, err = services.millpond_once(env, "load", str(path))
    assert code == 0, out + err
    assert rows(local_lake, "n", "n") == [(1,), (2,), (3,)]


def test_load_of_a_file_that_is_being_written(local_lake, tmp_path):
    """However the writer's pieces fall: a line is read when it is whole, and once."""
    path = tmp_path / "growing.ndjson"
    env = dict(local_lake.env(), DUCKLAKE_TABLE="events", MILLPOND_QUARANTINE_TABLE="bad")
    data = b"".join(b'{"n":%d,"t":"{\\"}"}\n' % n for n in range(12))
    left = 0
    for end in range(0, len(data) + 1, 5):
        path.write_bytes(data[:end])
        code, out, err = services.millpond_once(env, "load", str(path))
        assert code == 0, out + err
        left += "left for the next run" in err
    path.write_bytes(data)
    code, out, err = services.millpond_once(env, "load", str(path))
    assert code == 0, out + err
    assert left > 10
    assert rows(local_lake, "n", "n") == [(n,) for n in range(12)]
    assert "bad" not in [row[0] for row in local_lake.query("SELECT table_name FROM duckdb_tables()")]


def test_load_looks_at_its_arguments_before_it_opens_anything(local_lake, tmp_path):
    good = tmp_path / "good.ndjson"
    good.write_bytes(b'{"n":1}\n')
    packed = {"zcat": gzip.compress(b'{"n":1}\n'), "bzcat": bz2.compress(b'{"n":1}\n'),
              "xzcat": lzma.compress(b'{"n":1}\n'), "zstdcat": b"\x28\xb5\x2f\xfd\x00"}
    for how, data in packed.items():
        (tmp_path / how).write_bytes(data)
    os.mkfifo(tmp_path / "fifo")
    odd = os.fsencode(tmp_path) + b"/\xff.ndjson"
    with open(odd, "wb") as out:
        out.write(b'{"n":1}\n')
    env = dict(local_lake.env(), DUCKLAKE_TABLE="events")
    for arguments, says in (
            ([tmp_path / "missing"], "No such file"), ([tmp_path], "no regular file"),
            ([tmp_path / "fifo"], "standard input"), (["/dev/null"], "standard input"),
            ([odd.decode("utf-8", "surrogateescape")], "UTF-8"),
            (["--name", "\udcff", "-"], "UTF-8"), (["--name", "n" * 1025, "-"], "1024"), (["--name", "x", good], "standard input"),
            *(([tmp_path / how], how + " ") for how in packed)):
        arguments = [str(argument) for argument in arguments]
        if arguments[0] != "--name":
            arguments.insert(0, str(good))
        code, out, err = services.millpond_once(env, "load", *arguments)
        assert code == 2 and says in err, (arguments, code, out, err)
    assert local_lake.snapshot() == -1  # not even the good file before it


def test_long_partition_values_stop_nothing(s3_lake, tmp_path):
    """Together they are longer than S3 takes a key; a name and a value longer than a directory."""
    rows_in = [{**{c: "%s%d" % (c, n) * 100 for c in "abcdefgh"}, "n": n} for n in range(3)]
    lakes.load(s3_lake, [json.dumps(row) for row in rows_in], tmp_path,
               DUCKLAKE_PARTITION_BY="a,b,c,d,e,f,g,h")
    assert s3_lake.query("SELECT a, h, n FROM lake.events ORDER BY n") == \
        [(row["a"], row["h"], row["n"]) for row in rows_in]
    assert s3_lake.query("SELECT n FROM lake.events WHERE c = ?", rows_in[1]["c"]) == [(1,)]
    assert len(s3_lake.files()) == 3


def test_long_partition_names_stop_nothing(local_lake, tmp_path):
    name = "k" * 200
    lakes.load(local_lake, [json.dumps({name: "v" * 180, "n": n}) for n in range(2)], tmp_path,
               DUCKLAKE_PARTITION_BY=name)
    assert local_lake.query("SELECT count(*) FROM lake.events WHERE %s = ?" % name, "v" * 180) == [(2,)]


def test_not_null_columns_may_be_null_from_the_first_row_that_lacks_one(local_lake, tmp_path):
    """DuckDB does not merge or update a table that holds what it forbids."""
    nullable = "SELECT column_name, nulls_allowed FROM __ducklake_metadata_lake.ducklake_column WHERE end_snapshot IS NULL"
    local_lake.execute("CREATE TABLE lake.events(n BIGINT NOT NULL, s VARCHAR NOT NULL, m BIGINT)",
                       "ALTER TABLE lake.events SET SORTED BY (n)")
    for number, lines in enumerate((['{"n":0,"s":"z"}'], ['{"n":1,"s":"a"}', '{"s":"b","m":2}', '{"n":"x","s":"c"}'],
                                    ['{"n":4,"s":"d"}'])):
        out = lakes.load(local_lake, lines, tmp_path, name="%d.ndjson" % number)
        assert ('column \\"n\\" may be NULL from now on' in out) == (number == 1), out
        assert dict(local_lake.query(nullable))["n"] == (number > 0)
        assert not dict(local_lake.query(nullable))["s"]
    expected = [(0, "z"), (1, "a"), (None, "b"), (None, "c"), (4, "d")]
    assert sorted(rows(local_lake, "n, s", "s"), key=str) == sorted(expected, key=str)
    assert local_lake.query("SELECT count(*), count(n), count(s), count(*) FILTER (n IS NULL), sum(_rescued_data = "
                            "'{\"n\":\"x\"}') FROM lake.events") == [(5, 3, 5, 2, 1)]
    local_lake.execute("CALL ducklake_merge_adjacent_files('lake')",
                       "UPDATE lake.events SET m = 7 WHERE n IS NULL")
    assert local_lake.query("SELECT s, m FROM lake.events WHERE n IS NULL ORDER BY s") == [("b", 7), ("c", 7)]
    assert sorted(rows(local_lake, "n, s", "s"), key=str) == sorted(expected, key=str)
    with pytest.raises(duckdb.ConstraintException):
        local_lake.execute("INSERT INTO lake.events(n, m) VALUES (9, 9)")


def test_load_of_standard_input(local_lake):
    env = dict(local_lake.env(), DUCKLAKE_TABLE="events")
    data = b"".join(b'{"n":%d}\n' % n for n in range(500))
    code, out, err = services.millpond_once(env, "load", "--name", "feed", "-", data=data)
    assert code == 0, out + err
    assert local_lake.value("SELECT count(*) FROM lake.events") == 500
    code, out, err = services.millpond_once(env, "load", "--name", "feed", "-",
                                            data=data + b'{"n":500}\n')
    assert code == 0, out + err
    assert local_lake.query("SELECT count(*), max(n) FROM lake.events") == [(501, 500)]


def test_sort_by_holds_for_a_table_that_is_there(local_lake, tmp_path):
    """The setting sorts each flush, nulls last, whatever order the table declares; a flush that
    lacks the column stays as it came, and says so."""
    lakes.load(local_lake, ['{"n":3}', '{"n":1}'], tmp_path, name="first.ndjson")
    lakes.load(local_lake, ['{"n":9,"s":"b"}', '{"s":"a"}', '{"n":7,"s":"c"}', '{"n":9,"s":"a"}'],
               tmp_path, name="second.ndjson", MILLPOND_SORT_BY="n,s")
    out = lakes.load(local_lake, ['{"s":"z"}', '{"s":"y"}'], tmp_path, name="third.ndjson",
                     MILLPOND_SORT_BY="n")
    orders = [pyarrow.parquet.read_table(path, columns=["n"] if number == 0 else ["n", "s"]
                                         if number == 1 else ["s"]).to_pylist()
              for number, path in enumerate(local_lake.file_paths())]
    assert orders == [[{"n": 3}, {"n": 1}],
                      [{"n": 7, "s": "c"}, {"n": 9, "s": "a"}, {"n": 9, "s": "b"},
                       {"n": None, "s": "a"}],
                      [{"s": "z"}, {"s": "y"}]]
    assert "is not sorted" in out and '\\"n\\"' in out
