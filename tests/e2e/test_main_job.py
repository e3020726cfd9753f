"""The main job: generated events from Kafka into a lake, judged by DuckDB against an independent
reading of the same lines: counts, sums, bounds and distinct values of every column; every snapshot
on its own; and that a filter on the partition column reads only its files."""
import collections
import hashlib
import os
import re

import pytest

import gen_events
import lakes
import services

EVENTS = int(os.environ.get("E2E_EVENTS", "300000"))
PARTITIONS = 4
DATES = [b"2025-12-31", b"2026-01-01", b"2026-01-31", b"2026-02-28", b"2026-03-01"]


class Column:
    """What can be said of a column without keeping its values."""

    def __init__(self):
        self.count = self.total = 0
        self.distinct = set()
        self.low = self.high = None

    def add(self, value, text):
        self.count += 1
        digest = hashlib.md5(text.encode()).digest()[:6]
        self.total += int.from_bytes(digest, "big")
        self.distinct.add(digest)
        if self.low is None or value < self.low:
            self.low = value
        if self.high is None or value > self.high:
            self.high = value


def expected_of(lines):
    columns = collections.defaultdict(Column)
    for line in lines:
        for key, value, raw in lakes.top_level(line.decode().rstrip("\n")):
            if value is None:
                continue
            if key == "timestamp":
                value = lakes.timestamp_us(value)
            elif isinstance(value, (dict, list)):
                value = raw  # the events are compact already, so their text is kept as it is
            if isinstance(value, str):
                columns[key].add(value.encode(), value)
            else:
                columns[key].add(value, str(value))
    return columns


@pytest.fixture(scope="module")
def events():
    """Generated events, spread over days of several months and years."""
    generator = gen_events.Generator(seed=7)
    lines = []
    for index in range(EVENTS):
        line = generator.event(index).encode()
        lines.append(line.replace(b'"timestamp":"2026-03-01',
                                  b'"timestamp":"' + DATES[index % len(DATES)], 1))
    return lines, expected_of(lines)


def text_of(name):
    quoted = '"%s"' % name
    return "epoch_us(%s)::VARCHAR" % quoted if name == "timestamp" else "%s::VARCHAR" % quoted


def check_column(connection, relation, name, column):
    value = "epoch_us(timestamp)" if name == "timestamp" else '"%s"' % name
    found = connection.execute(
        "SELECT count(%s), count(DISTINCT %s), min(%s), max(%s), "
        "sum(('0x' || md5(%s)[1:12])::BIGINT)::HUGEINT FROM %s" %
        (value, value, value, value, text_of(name), relation)).fetchone()
    low, high = (bound.decode() if isinstance(bound, bytes) else bound
                 for bound in (column.low, column.high))
    assert found == (column.count, len(column.distinct), low, high, column.total), name


def check_columns(lake, expected, table):
    live = lake.columns(table)
    assert set(live) == set(expected) | {"_inserted_at"}, "only keys that had a value are columns"
    assert live["timestamp"] == "timestamptz" and live["team_id"] == "int64"
    assert live["properties"] == "varchar" and live["event"] == "varchar"
    connection = lake.duckdb()
    for name, column in expected.items():
        check_column(connection, "lake." + table, name, column)
    connection.close()


def check_snapshots(lake, table):
    """Each snapshot holds what its predecessor held and its own files, and no record twice."""
    counted = dict(lake.sql("SELECT f.begin_snapshot, sum(f.record_count) FROM ducklake_data_file f "
                            "JOIN ducklake_table t ON t.table_id = f.table_id "
                            "WHERE t.table_name = %s GROUP BY f.begin_snapshot", table))
    created = lake.sql("SELECT begin_snapshot FROM ducklake_table WHERE table_name = %s",
                       table)[0][0]
    connection = lake.duckdb()
    snapshots = [row[0] for row in connection.execute(
        "SELECT snapshot_id FROM ducklake_snapshots('lake') ORDER BY snapshot_id").fetchall()]
    assert snapshots == list(range(snapshots[-1] + 1)), "no gap"
    rows = 0
    for snapshot in snapshots:
        if snapshot < created:
            continue
        rows += counted.get(snapshot, 0)
        distinct = "count(DISTINCT uuid)" if rows else "0"  # no uuid column before the first file
        found = connection.execute("SELECT count(*), %s FROM lake.%s AT (VERSION => %d)" %
                                   (distinct, table, snapshot)).fetchone()
        assert found == (rows, rows), "snapshot %d" % snapshot
    connection.close()
    assert rows == EVENTS
    assert len(counted) >= 3, "the test wants several flushes"


def check_pruning(lake, table):
    """One day of the five: its files are read and no other."""
    connection = lake.duckdb()
    plan = connection.execute(
        "EXPLAIN ANALYZE SELECT count(*), max(uuid) FROM lake.%s WHERE timestamp >= "
        "'2026-01-31 00:00:00+00' AND timestamp < '2026-02-01 00:00:00+00'" % table).fetchall()[0][1]
    connection.close()
    read = int(re.search(r"Total Files Read: (\d+)", plan)[1])
    of_the_day = [path for path in lake.files(table) if "year=2026/month=1/day=31/" in path]
    assert read == len(of_the_day) > 0
    assert len(lake.files(table)) == len(DATES) * len(of_the_day), "each flush makes a file a day"


def run_main_job(kafka, lake, events):
    lines, expected = events
    topic = lakes.unique("events")
    kafka.create_topic(topic, partitions=PARTITIONS)
    services.produce(kafka.bootstrap, topic, lines, PARTITIONS)
    env = services.environment(kafka, topic, FLUSH_SIZE=EVENTS * 100, FLUSH_INTERVAL_MS=3000,
                               MILLPOND_TYPED_COLUMNS="timestamp:timestamptz",
                               DUCKLAKE_PARTITION_BY="year(timestamp),month(timestamp),"
                                                     "day(timestamp)", **lake.env())
    with services.run_millpond(env) as millpond:
        millpond.wait_metric("millpond_records_written_total", EVENTS, 180)
        assert millpond.metric("millpond_records_written_total") == EVENTS
        assert millpond.metric("millpond_records_consumed_total") == EVENTS
        assert millpond.metric("millpond_batches_flushed_total") >= 3
        assert not millpond.logged("Traceback") and millpond.metric("millpond_errors_total") == 0
    check_columns(lake, expected, "events")
    check_snapshots(lake, "events")
    check_pruning(lake, "events")
    assert len(lake.objects()) == len(lake.files()), "every object is a file of the lake"
    for partition in range(PARTITIONS):
        offset, _ = kafka.committed("millpond-%s-events" % topic, topic, partition)
        assert offset == kafka.watermarks(topic, partition)[1], "Kafka mirrors the offsets"


def test_postgres_and_s3(kafka, s3_lake, events):
    run_main_job(kafka, s3_lake, events)


def test_sqlite_and_local_files(kafka, local_lake, events):
    run_main_job(kafka, local_lake, events)
