"""DuckDB works on our table and we go on: after each thing it can do to a table our next flush lands
and the whole table is what a model in Python says, seen from a new connection and from one that
was open all the time. And the other way: tables that DuckDB made, appended to by us."""
import datetime
import decimal
import json
import re
import uuid

import pytest

import lakes
import services


class Model:
    """The table as it should be: a list of rows, each {column: value}; a missing key is NULL."""

    def __init__(self):
        self.rows = []

    def insert(self, rows):
        self.rows += [dict(row) for row in rows]

    def update(self, where, change):
        for row in self.rows:
            if where(row):
                change(row)

    def delete(self, where):
        self.rows = [row for row in self.rows if not where(row)]

    def rename(self, old, new):
        for row in self.rows:
            if old in row:
                row[new] = row.pop(old)

    def drop(self, column):
        for row in self.rows:
            row.pop(column, None)


def sorted_rows(rows):
    kept = [tuple(sorted((key, value) for key, value in row.items()
                         if value is not None and key != "_inserted_at")) for row in rows]
    return sorted(kept, key=repr)


def rows_of(connection, table):
    cursor = connection.execute("SELECT * FROM lake.%s" % table)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor.fetchall()]


def id_in(row, modulus, rest=0):
    return row.get("id") is not None and row["id"] % modulus == rest


# What DuckDB does, as SQL (T is the table), and what that does to the model.
STEPS = [
    ("insert", ["INSERT INTO T (id, name, score) SELECT 100000 + range, 'duck', range / 2.0 "
                "FROM range(50)"],
     lambda m: m.insert([{"id": 100000 + n, "name": "duck", "score": n / 2} for n in range(50)])),
    ("insert of few rows, which may be inlined",
     ["INSERT INTO T (id, name) VALUES (200000, 'few'), (200001, NULL)"],
     lambda m: m.insert([{"id": 200000, "name": "few"}, {"id": 200001}])),
    ("update", ["UPDATE T SET name = 'updated' WHERE id % 3 = 0"],
     lambda m: m.update(lambda r: id_in(r, 3), lambda r: r.update(name="updated"))),
    ("delete", ["DELETE FROM T WHERE id % 5 = 1"], lambda m: m.delete(lambda r: id_in(r, 5, 1))),
    ("add a column", ["ALTER TABLE T ADD COLUMN note VARCHAR"], lambda m: None),
    ("add a column with a default", ["ALTER TABLE T ADD COLUMN level INTEGER DEFAULT 7"],
     lambda m: m.update(lambda r: True, lambda r: r.update(level=7))),
    ("update the new column", ["UPDATE T SET note = 'n' || id::VARCHAR WHERE id % 7 = 0"],
     lambda m: m.update(lambda r: id_in(r, 7), lambda r: r.update(note="n%d" % r["id"]))),
    ("widen a column", ["ALTER TABLE T ALTER COLUMN level SET DATA TYPE BIGINT"], lambda m: None),
    ("merge", ["CALL ducklake_merge_adjacent_files('lake')"], lambda m: None),
    ("rename a column", ["ALTER TABLE T RENAME COLUMN note TO remark"],
     lambda m: m.rename("note", "remark")),
    ("drop a column", ["ALTER TABLE T DROP COLUMN level"], lambda m: m.drop("level")),
    ("rewrite deleted rows away",
     ["DELETE FROM T WHERE id % 11 = 2",
      "CALL ducklake_rewrite_data_files('lake', 'NAME', delete_threshold => 0.0)"],
     lambda m: m.delete(lambda r: id_in(r, 11, 2))),
    ("set a partition", ["ALTER TABLE T SET PARTITIONED BY (bucket(4, id))"], lambda m: None),
    ("insert into partitions", ["INSERT INTO T (id, name) SELECT 300000 + range, 'part' "
                                "FROM range(40)"],
     lambda m: m.insert([{"id": 300000 + n, "name": "part"} for n in range(40)])),
    ("reset the partition", ["ALTER TABLE T RESET PARTITIONED BY"], lambda m: None),
    ("sort", ["ALTER TABLE T SET SORTED BY (id DESC)"], lambda m: None),
    ("flush inlined rows", ["CALL ducklake_flush_inlined_data('lake')"], lambda m: None),
    ("expire", ["CALL ducklake_expire_snapshots('lake', older_than => now())"], lambda m: None),
    ("clean up", ["CALL ducklake_cleanup_old_files('lake', cleanup_all => true)"], lambda m: None),
    ("merge again", ["CALL ducklake_merge_adjacent_files('lake')"], lambda m: None),
    ("checkpoint", ["CHECKPOINT lake"], lambda m: None),
    ("rename the column back", ["ALTER TABLE T RENAME COLUMN remark TO note"],
     lambda m: m.rename("remark", "note")),
]


@pytest.mark.parametrize("kind", ["postgres", "sqlite"])
def test_after_each_thing_duckdb_does(kafka, db, tmp_path, kind):
    catalog = (lakes.new_database(db) if kind == "postgres"
               else "sqlite:%s/lake.sqlite" % tmp_path)
    lake = lakes.Lake(catalog, "%s/data/" % tmp_path, db=db)
    topic, model, sent = lakes.unique("after"), Model(), 0
    kafka.create_topic(topic)

    def flush(millpond):
        """Seven events, among them one without a name; they land before this returns."""
        nonlocal sent
        rows = [{"id": sent + n, "name": "event %d" % (sent + n), "score": (sent + n) / 4 + 0.125}
                for n in range(7)]
        del rows[3]["name"]
        lines = ["{%s}" % ",".join('"%s":%s' % (key, '"%s"' % value if key == "name" else value)
                                   for key, value in row.items()) for row in rows]
        services.produce(kafka.bootstrap, topic, lines)
        sent += len(rows)
        millpond.wait_metric("millpond_records_written_total", sent, 120)
        model.insert(rows)

    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=200, **lake.env())
    with services.run_millpond(env) as millpond:
        flush(millpond)
        opened = lake.duckdb()
        for name, statements, change in STEPS:
            for statement in statements:
                lake.execute(re.sub(r"\bT\b", "lake.events", statement).replace("'NAME'", "'events'"))
            change(model)
            fresh = lake.duckdb()
            assert sorted_rows(rows_of(fresh, "events")) == sorted_rows(model.rows), \
                "the model of: " + name
            fresh.close()
            flush(millpond)
            for connection in (lake.duckdb(), opened):
                assert sorted_rows(rows_of(connection, "events")) == sorted_rows(model.rows), \
                    "our flush after: " + name
                assert connection.execute("SELECT count(*), count(id) FROM lake.events "
                                          "WHERE id < 100000").fetchall() == [
                    (sum(row["id"] < 100000 for row in model.rows),) * 2], name
                if connection is not opened:
                    connection.close()
        opened.close()


def test_table_dropped_and_made_again(kafka, pg_lake):
    """Never written to the old one; the new one goes on from the recorded offset."""
    topic = lakes.unique("again")
    kafka.create_topic(topic)
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=200, **pg_lake.env())
    with services.run_millpond(env) as millpond:
        services.produce(kafka.bootstrap, topic, ['{"n":%d}' % n for n in range(10)])
        millpond.wait_metric("millpond_records_written_total", 10, 120)
        old = pg_lake.sql("SELECT table_id FROM ducklake_table WHERE table_name = 'events'")[0][0]
        files = "SELECT count(*) FROM ducklake_data_file WHERE table_id = %s"
        before = pg_lake.sql(files, old)
        pg_lake.execute("DROP TABLE lake.events",
                        "CREATE TABLE lake.events (n BIGINT, _inserted_at TIMESTAMPTZ)")
        services.produce(kafka.bootstrap, topic, ['{"n":%d}' % n for n in range(10, 20)])
        services.wait_until(lambda: pg_lake.rows() == 10, 120, "rows in the new table")
    assert pg_lake.query("SELECT n FROM lake.events ORDER BY n") == [(n,) for n in range(10, 20)]
    assert pg_lake.sql(files, old) == before


def test_table_made_by_duckdb(local_lake, tmp_path):
    local_lake.execute(
        "CREATE TABLE lake.made (i INTEGER, big UBIGINT, d DECIMAL(18,4), f FLOAT, x DOUBLE, "
        "day DATE, t TIMESTAMP, tz TIMESTAMPTZ, u UUID, s VARCHAR, b BOOLEAN, small SMALLINT)",
        "INSERT INTO lake.made SELECT 1, 2, 3.5, 0.5, 0.25, '2026-01-02', '2026-01-02 03:04:05', "
        "'2026-01-02 03:04:05+00', '0e0b6c8e-0000-0000-0000-00000000000a', 'duck', true, 7")
    out = lakes.load(local_lake, [
        '{"i":41,"big":18446744073709551615,"d":1234.5678,"f":0.25,"x":0.1,"day":"2026-03-01",'
        '"t":"2026-03-01 10:11:12.123456","tz":"2026-03-01T10:11:12.123456Z",'
        '"u":"0E0B6C8E-0000-0000-0000-00000000000B","s":"us","b":false,"small":-8}',
        '{"i":2147483648,"d":0.00001,"f":0.123456789012,"day":"2026-02-30","u":"none","small":40000,"b":2}'],
        tmp_path, table="made")
    utc = datetime.timezone.utc
    rows = local_lake.query("SELECT i, big, d, f, x, day, t, tz, u, s, b, small, _rescued_data "
                            "FROM lake.made ORDER BY s NULLS LAST, i")
    stamp = datetime.datetime(2026, 3, 1, 10, 11, 12, 123456)
    assert rows[0][9] == "duck" and rows[0][12] is None
    assert rows[1][:6] == (41, 18446744073709551615, decimal.Decimal("1234.5678"), 0.25, 0.1,
                           datetime.date(2026, 3, 1))
    assert rows[1][6] == stamp and rows[1][7] == stamp.replace(tzinfo=utc)
    assert rows[1][8:] == (uuid.UUID("0e0b6c8e-0000-0000-0000-00000000000b"), "us", False, -8, None)
    assert rows[2][:12] == (None,) * 12, out
    assert json.loads(rows[2][12], parse_float=str, parse_int=str) == {
        "i": "2147483648", "d": "0.00001", "f": "0.123456789012", "day": "2026-02-30", "u": "none",
        "small": "40000", "b": "2"}


def test_bounds_stay_right_on_a_table_with_old_statistics(local_lake, tmp_path):
    """DuckDB fills a table and keeps its bounds; we append outside of them."""
    local_lake.execute("CREATE TABLE lake.events (n BIGINT, s VARCHAR)",
                       "INSERT INTO lake.events SELECT range, 'm' FROM range(100, 200)")
    opened = local_lake.duckdb()
    assert opened.execute("SELECT min(n), max(n) FROM lake.events").fetchall() == [(100, 199)]
    lakes.load(local_lake, ['{"n":5,"s":"a"}', '{"n":9000,"s":"z"}', '{"s":"only s"}'], tmp_path)
    for connection in (local_lake.duckdb(), opened):
        assert connection.execute("SELECT min(n), max(n), min(s), max(s) FROM lake.events"
                                  ).fetchall() == [(5, 9000, "a", "z")]
        assert connection.execute("SELECT count(*) FROM lake.events WHERE n = 9000"
                                  ).fetchall() == [(1,)]
        assert connection.execute("SELECT count(*) FROM lake.events WHERE n < 100"
                                  ).fetchall() == [(1,)]
        assert connection.execute("SELECT s FROM lake.events WHERE n IS NULL"
                                  ).fetchall() == [("only s",)]
        connection.close()
