"""Eight processes, one table, and in each of fifty rounds a property that none has seen before
arrives at all of them at once: one of them adds the column, all rows land under it."""
import collections
import contextlib

import lakes
import services

WRITERS, ROUNDS = 8, 50


def value_of(turn, writer):
    """Another kind of value each round, the same for all writers of a round."""
    number = turn * WRITERS + writer
    return [number, '"v%d"' % number, "%d.5" % number, ["false", "true"][writer % 2]][turn % 4]


def test_new_columns_by_eight_writers_at_once(kafka, pg_lake, tmp_path):
    topic = lakes.unique("eight")
    kafka.create_topic(topic, partitions=WRITERS)
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(services.run_millpond(
            services.environment(kafka, topic, REPLICA_COUNT=WRITERS, POD_NAME="w-%d" % writer,
                                 FLUSH_INTERVAL_MS=100, **pg_lake.env()),
            ready=False, name="writer-%d" % writer)) for writer in range(WRITERS)]
        for writer in writers:
            writer.wait_ready(60)
        for turn in range(ROUNDS):
            lines = ['{"turn":%d,"writer":%d,"k_%d":%s}' % (turn, writer, turn,
                                                            value_of(turn, writer))
                     for writer in range(WRITERS)]
            services.produce(kafka.bootstrap, topic, lines, WRITERS)
            services.wait_until(lambda: pg_lake.rows() >= WRITERS * (turn + 1), 120,
                                "round %d" % turn)
    check_columns(pg_lake)
    check_rows(pg_lake)


def check_columns(lake):
    names = [row[0] for row in lake.sql(
        "SELECT lower(c.column_name) FROM ducklake_column c JOIN ducklake_table t "
        "ON t.table_id = c.table_id WHERE c.end_snapshot IS NULL AND t.end_snapshot IS NULL "
        "AND t.table_name = 'events'")]
    doubled = [name for name, count in collections.Counter(names).items() if count > 1]
    assert not doubled
    assert {"k_%d" % turn for turn in range(ROUNDS)} <= set(names)
    types = lake.columns()
    assert [types["k_%d" % turn] for turn in range(4)] == ["int64", "varchar", "float64", "boolean"]
    assert "_rescued_data" not in types, "no value was out of place"


def check_rows(lake):
    connection = lake.duckdb()
    cursor = connection.execute("SELECT * EXCLUDE (_inserted_at) FROM lake.events "
                                "ORDER BY turn, writer")
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row)) for row in cursor.fetchall()]
    connection.close()
    assert [(row["turn"], row["writer"]) for row in rows] == \
        [(turn, writer) for turn in range(ROUNDS) for writer in range(WRITERS)]
    for row in rows:
        turn, writer = row["turn"], row["writer"]
        number = turn * WRITERS + writer
        want = [number, "v%d" % number, number + 0.5, writer % 2 == 1][turn % 4]
        filled = {name: value for name, value in row.items()
                  if name.startswith("k_") and value is not None}
        assert filled == {"k_%d" % turn: want}
