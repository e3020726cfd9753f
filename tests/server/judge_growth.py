#!/usr/bin/env python3
"""What a request costs the database must not grow with the catalog's history.

Each operation is run against a small catalog, and again when the same catalog has tens of thousands of
receipts, snapshots, files, queued removals and claims, and thousands of tables, views, offsets and
neighbours, none of which it asks for. The rows that its statements read (by index or not, as PostgreSQL
counts them) must stay the same but for a little. This holds whatever the planner believes at first: nothing,
that the tables are nearly empty, or the truth. Autovacuum is off.
"""
import sys
import traceback
import urllib.parse
import uuid

import hoglaked
import judge_rest
import services
from judge_rest import append, file, ok, prepared

MANY, SOME, REPEATS = 20000, 2000, 5
SLACK_ROWS = 60  # a request; a handful of index entries more is no growth

GROW = """
UPDATE hog_catalog SET last_snapshot_id = last_snapshot_id + {many}, next_file_id = next_file_id + 10 * {many},
    next_table_id = next_table_id + {many}, next_namespace_id = next_namespace_id + {many},
    next_view_id = next_view_id + {many} WHERE catalog_id = {c};
INSERT INTO hog_snapshot SELECT {c}, {head} + i, {time} + i, 5, NULL, NULL, i FROM generate_series(1, {many}) i;
INSERT INTO hog_snapshot_change SELECT {c}, {head} + i, 'table_inserted_into', 900000 FROM generate_series(1, {many}) i;
INSERT INTO hog_snapshot_change SELECT {c}, {head} + i, 'table_altered', 900000 FROM generate_series(1, {many}) i;
INSERT INTO hog_commit_receipt SELECT {c}, gen_random_uuid(), '\\x01', {head}, 5, {time} + i FROM generate_series(1, {many}) i;
INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason, scheduled_us)
    SELECT {c}, 's3://b/removed/' || i, 'data', 'snapshot_expiry', {time} FROM generate_series(1, {many}) i;
INSERT INTO hog_upload SELECT {c}, gen_random_uuid(), gen_random_uuid(), 's3://b', 's3://b/claimed/' || i, 'data',
    'active', 9000000000000000, NULL FROM generate_series(1, {many}) i;
INSERT INTO hog_namespace SELECT {c}, 900000 + i, 'other' || i, {head}, NULL FROM generate_series(1, {some}) i;
INSERT INTO hog_table SELECT {c}, 900000 + i, gen_random_uuid(), {head}, NULL, 3, NULL FROM generate_series(0, {some}) i;
INSERT INTO hog_table_version SELECT {c}, 900000 + i, {head}, NULL, 1, 'other' || i, NULL, '{{}}' FROM generate_series(0, {some}) i;
INSERT INTO hog_table_stats SELECT {c}, 900000 + i FROM generate_series(0, {some}) i;
INSERT INTO hog_column SELECT {c}, 900000 + i, f, {head}, NULL, NULL, f, 'c' || f, 'long', NULL, true, NULL
    FROM generate_series(0, {some}) i, generate_series(1, 3) f;
INSERT INTO hog_partition_spec SELECT {c}, 900000 + i, 1, {head}, NULL FROM generate_series(0, {some}) i;
INSERT INTO hog_partition_field SELECT {c}, 900000 + i, 1, 0, 1, 'identity', NULL FROM generate_series(0, {some}) i;
INSERT INTO hog_sort_spec SELECT {c}, 900000 + i, 1, {head}, NULL FROM generate_series(0, {some}) i;
INSERT INTO hog_sort_field SELECT {c}, 900000 + i, 1, 0, 1, 'asc', 'nulls_last' FROM generate_series(0, {some}) i;
INSERT INTO hog_data_file SELECT {c}, 900000 + i, 900000, {head}, CASE WHEN i % 2 = 0 THEN {head} + 5 END,
    's3://b/many/' || i, 1, 100, NULL, i, 'provided', NULL, NULL, false, false, false, NULL FROM generate_series(1, {many}) i;
INSERT INTO hog_file_stats SELECT {c}, 900000 + i, '[]' FROM generate_series(1, {many}) i;
INSERT INTO hog_delete_file SELECT {c}, 2000000 + i, 900000, 900000 + i, {head}, NULL, 's3://b/dv/' || i, 1, 1
    FROM generate_series(1, {many}) i;
INSERT INTO hog_view SELECT {c}, 900000 + i, gen_random_uuid(), 1, 'other' || i, 'd', 's', {head}, NULL FROM generate_series(1, {some}) i;
INSERT INTO hog_consumer_offset SELECT {c}, 'other' || i, gen_random_uuid(), {head}, {time} FROM generate_series(1, {some}) i;
INSERT INTO hog_table_creation SELECT {c}, gen_random_uuid(), 1, '{{}}', gen_random_uuid(), 's3://b/w', 'prepared',
    9000000000000000 FROM generate_series(1, {some}) i;
INSERT INTO hog_catalog (name, data_path, last_snapshot_time_us)
    SELECT 'other' || i, 's3://other/' || i, {time} FROM generate_series(1, {some}) i;
"""


class Case:
    """One lake and the operations on it."""

    def __init__(self, server):
        self.server = server
        self.catalog, self.table, self.made = judge_rest.lake(server)
        self.namespace = self.catalog + "/namespaces/n"
        self.kept = prepared(self.catalog, read_snapshot=2)
        self.time = None

    def prepare(self):
        server = self.server
        ok(server, "POST", self.catalog + "/commit/prepared", self.kept)
        for _ in range(2):
            ok(server, "POST", self.catalog + "/commit", append(self.catalog, file(self.catalog, column_stats=[])))
        ok(server, "POST", self.catalog + "/commit", {"read_snapshot": 5, "deletes": [{
            "namespace": "n", "table": "t", "files": [{"data_file_id": 1, "path": file(self.catalog)["path"] + ".dv",
                                                       "delete_count": 1, "file_size_bytes": 9}]}]})
        ok(server, "POST", self.namespace + "/views", {"name": "v", "sql": "s"})
        ok(server, "PUT", self.offset(), {"snapshot_id": 3})
        page = ok(server, "GET", self.catalog + "/snapshots?after=3&limit=1")["snapshots"]
        self.time = urllib.parse.quote(page[0]["snapshot_time"])

    def offset(self):
        return self.catalog + "/consumers/c/offsets/" + self.made["table_uuid"]

    def get(self, path):
        return lambda: ok(self.server, "GET", path)

    def operations(self):
        ask = lambda *arguments: ok(self.server, *arguments)
        def create_and_drop():
            name = "t" + uuid.uuid4().hex
            ask("POST", self.namespace + "/tables", {"name": name, "columns": [{"name": "a", "type": "long"}]})
            ask("DELETE", self.namespace + "/tables/" + name)
        def two_phases():
            op = self.catalog + "/table-creations/" + str(uuid.uuid4())
            ask("PUT", op, {"namespace": "n", "name": "t" + uuid.uuid4().hex, "columns": [{"name": "a", "type": "long"}]})
            ask("GET", op)
            ask("POST", op + "/commit", {"files": []})
        def claim():
            ask("PUT", self.catalog + "/uploads/" + str(uuid.uuid4()), {
                "owner": str(uuid.uuid4()), "prefix": "s3://b%s/data" % self.catalog[9:], "file_kind": "data"})
            ask("POST", self.catalog + "/uploads/renew", {"owner": str(uuid.uuid4())})
        def delete():
            made = ask("POST", self.catalog + "/commit", append(self.catalog))["snapshot_id"]
            target = ask("GET", self.table + "/changes?from_snapshot=%d&to_snapshot=%d" % (made - 1, made))["files"][0]
            ask("POST", self.catalog + "/commit", {"read_snapshot": made, "deletes": [{
                "namespace": "n", "table": "t", "files": [{
                    "data_file_id": target["data_file_id"], "path": target["path"] + ".dv", "delete_count": 1,
                    "file_size_bytes": 9}]}]})
        return {
            "append, then delete": delete,
            "commit": lambda: ask("POST", self.catalog + "/commit/prepared", prepared(self.catalog)),
            "commit with a window": lambda: ask("POST", self.catalog + "/commit", append(
                self.catalog, read_snapshot=ask("GET", self.catalog)["head_snapshot_id"])),
            "replay": lambda: ask("POST", self.catalog + "/commit/prepared", self.kept),
            "receipt": self.get(self.catalog + "/commit/receipts/" + self.kept["idempotency_key"]),
            "catalog": self.get(self.catalog),
            "namespace": self.get(self.namespace),
            "table": self.get(self.table + "?totals=false"),
            "table with totals at a snapshot": self.get(self.table + "?snapshot=6"),
            "table at a time": self.get(self.table + "?totals=false&at_timestamp=" + self.time),
            "resolve": self.get(self.catalog + "/snapshots/resolve?at_timestamp=" + self.time),
            "files": self.get(self.table + "/files?snapshot=6"),
            "file statistics": self.get(self.table + "/files/2/stats"),
            "scan": self.get(self.table + "/scan?snapshot=6&include=column_stats"),
            "changes": self.get(self.table + "/changes?from_snapshot=2&to_snapshot=6"),
            "snapshots, first page": self.get(self.catalog + "/snapshots?after=1&limit=5"),
            "snapshots, last page": self.get(self.catalog + "/snapshots?before=9&limit=5"),
            "options": self.get(self.catalog + "/options"),
            "offset": lambda: ask("PUT", self.offset(), {"snapshot_id": 3}),
            "offset read": self.get(self.offset()),
            "view": self.get(self.namespace + "/views/v"),
            "alter": lambda: ask("POST", self.table + "/alter", {"ops": [
                {"op": "set_table_comment", "comment": uuid.uuid4().hex},
                {"op": "set_column_comment", "name": "id", "comment": uuid.uuid4().hex}]}),
            "add and drop a column": lambda: ask("POST", self.table + "/alter", {"ops": [
                {"op": "add_column", "column": {"name": "q", "type": "int"}}, {"op": "drop_column", "name": "q"}]}),
            "create and drop a table": create_and_drop,
            "two-phase creation": two_phases,
            "claim an upload": claim,
        }


def rows_read(db):
    return db.query("hoglake", "SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)"
                               " + (SELECT sum(seq_tup_read) FROM pg_stat_user_tables)")[0][0]


def measure(db, server, act):
    """Rows read so far, and by these calls. A backend tells its counts when it ends."""
    server.start()
    if act:
        act()  # what a new server reads once
        for _ in range(REPEATS):
            act()
    server.stop_with_backends(db)
    return rows_read(db)


def costs(db, server, case):
    made = {}
    before = measure(db, server, None)
    start = measure(db, server, None) - before
    before += start
    for name, act in case.operations().items():
        after = measure(db, server, act)
        made[name] = (after - before - start) / (REPEATS + 1)
        before = after
    return made


def run(db, regime):
    """Gives (passed, failed) of one regime."""
    with hoglaked.started("postgresql://127.0.0.1:%d/hoglake" % db.port) as server:
        case = Case(server)
        case.prepare()
        server.stop_with_backends(db)
        if regime == "of nearly empty tables":
            db.query("hoglake", "ANALYZE")
        small = costs(db, server, case)
        catalog, head, time = db.query(
            "hoglake", "SELECT catalog_id, last_snapshot_id, last_snapshot_time_us FROM hog_catalog WHERE name = %s",
            case.catalog[len("/catalogs/"):])[0]
        for statement in GROW.format(c=catalog, head=head, time=time, many=MANY, some=SOME).split(";\n"):
            if statement.strip():
                db.query("hoglake", statement)
        if regime == "true":
            db.query("hoglake", "ANALYZE")
        if regime == "of nearly empty tables":  # the server itself sees that they have grown
            server.start()
            services.wait_until(lambda: db.query(
                "hoglake", "SELECT relpages FROM pg_class WHERE relname = 'hog_commit_receipt'")[0][0] > 50, 120,
                "the server tells the planner")
            server.stop_with_backends(db)
        large = costs(db, server, case)
        server.start()
    bad = {name: (small[name], large[name]) for name in small if large[name] > 2 * small[name] + SLACK_ROWS}
    for name, (few, many) in sorted(bad.items()):
        print("statistics %s: %s reads %.0f rows, was %.0f" % (regime, name, many, few))
    print("statistics %s: %d operations cost the same, %d grew" % (regime, len(small) - len(bad), len(bad)), flush=True)
    return len(small) - len(bad), len(bad)


def main():
    passed = failed = 0
    for regime in ("none", "of nearly empty tables", "true"):
        try:
            with services.postgres(autovacuum="off") as db:
                db.create_database("hoglake")
                good, bad = run(db, regime)
            passed, failed = passed + good, failed + bad
        except Exception:
            failed += 1
            traceback.print_exc()
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
