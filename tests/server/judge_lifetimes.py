#!/usr/bin/env python3
"""build/hoglaked: what outlives what. Receipts and names against renames, drops and expiry; the floor against
consumers; files of dropped tables, and the catalog that has to be empty before it goes.

Every case is a function test_*(server). Arguments choose cases by a part of their name.
"""
import json
import sys
import time
import uuid

import hoglaked
import judge_rest
import services
from judge_rest import append, call, file, lake, ok, prepared, refused

ID = [{"name": "id", "type": "long"}]


def expire(server, catalog):
    """After a second everything that was committed before it is old."""
    ok(server, "PATCH", catalog + "/options", {"snapshot_retention_seconds": 1})
    time.sleep(1.2)
    return ok(server, "POST", catalog + "/maintenance/expire")


def vector(catalog, count, snapshot, table="t", target=1):
    return {"read_snapshot": snapshot, "deletes": [{"namespace": "n", "table": table, "files": [
        {"data_file_id": target, "path": file(catalog)["path"] + ".puffin", "delete_count": count,
         "file_size_bytes": 1}]}]}


def test_receipts_outlive_names_tables_and_snapshots(server):
    catalog, table, _ = lake(server)
    body = prepared(catalog)

    def replayed():
        assert ok(server, "POST", catalog + "/commit/prepared", body) == first
        detail = refused(server, 422, "validation", "POST", catalog + "/commit/prepared", dict(body, message="x"))
        assert detail["detail"] == "idempotency_key reused with a different request"

    first = ok(server, "POST", catalog + "/commit/prepared", body)
    assert first == {"snapshot_id": 3, "schema_version": 2}
    ok(server, "POST", table + "/alter", {"ops": [{"op": "rename_table", "new_name": "u"}]})
    replayed()
    # a name that was given up is unknown, one whose table was dropped is not
    assert "unknown" in refused(server, 422, "validation", "POST", catalog + "/commit", append(catalog))["detail"]
    ok(server, "POST", catalog + "/namespaces/n/tables", {"name": "t", "columns": ID})
    replayed()
    ok(server, "DELETE", table)
    assert "snapshot 6" in refused(server, 409, "table_dropped", "POST", catalog + "/commit", append(catalog))["detail"]
    replayed()
    assert expire(server, catalog)["new_earliest_snapshot_id"] == 6
    replayed()
    assert ok(server, "GET", catalog + "/commit/receipts/" + body["idempotency_key"])["snapshot_id"] == 3


def test_what_makes_two_requests_the_same(server):
    """Everything in a request counts; the order of append groups, of their files and of statistics does not."""
    catalog, table, made = lake(server)
    other = ok(server, "POST", catalog + "/namespaces/n/tables", {"name": "u", "columns": ID})
    ok(server, "POST", table + "/alter", {"ops": [{"op": "set_partition_spec", "fields": [
        {"source_field_id": 1, "transform": "identity"}, {"source_field_id": 2, "transform": "identity"}]}]})
    old = [ok(server, "POST", catalog + "/commit", {"appends": [{"namespace": "n", "table": "u", "files": [file(catalog)]}]})
           ["snapshot_id"] for _ in range(2)][-1]
    stats = [{"field_id": i, "value_count": 10, "null_count": 0, "size_bytes": 80, "lower_bound": "AAAAAAAAAAA=",
              "upper_bound": "AQAAAAAAAAA="} for i in (1, 2)]
    body = {"idempotency_key": str(uuid.uuid4()), "read_snapshot": old, "author": "a", "message": "m", "appends": [
        {"namespace": "n", "table": "t", "expected_table_uuid": made["table_uuid"], "files": [
            file(catalog, partition_values=["1", None], column_stats=stats, footer_size=80, split_offsets=[4, 50]),
            file(catalog, partition_values=[None, "1"])]},
        {"namespace": "n", "table": "u", "expected_table_uuid": other["table_uuid"], "files": [file(catalog)]}],
        "deletes": [{"namespace": "n", "table": "u", "expected_table_uuid": other["table_uuid"], "files": [
            {"data_file_id": i, "path": file(catalog)["path"], "delete_count": 1, "file_size_bytes": 1} for i in (1, 2)]}]}
    first = ok(server, "POST", catalog + "/commit/prepared", body)

    def changed(*path, to=None, by=None):
        copy = json.loads(json.dumps(body))
        place = copy
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = by(place[path[-1]]) if by else to
        if to is None and not by:
            del place[path[-1]]
        return copy

    backwards = lambda items: items[::-1]
    one, gone = ("appends", 0, "files", 0), ("deletes", 0, "files")
    for same in (changed("appends", by=backwards), changed("appends", 0, "files", by=backwards),
                 changed(*one, "column_stats", by=backwards), dict(reversed(body.items()))):
        assert ok(server, "POST", catalog + "/commit/prepared", same) == first, same
    differ = [changed("author", to="b"), changed("author"), changed("message", to="n"), changed("message", to=""),
              changed("read_snapshot", to=old - 1), changed("deletes"), changed("appends", by=lambda a: a[:1]),
              changed("appends", 0, "table", to="v"), changed("appends", 0, "namespace", to="v"),
              changed("appends", 0, "expected_table_uuid"), changed("appends", 0, "files", by=lambda f: f + f),
              changed(*one, "partition_values", by=backwards), changed(*one, "partition_values", to=["1", ""]),
              changed(*one, "split_offsets", to=[4, 51]), changed(*one, "split_offsets"), changed(*one, "footer_size"),
              changed(*one, "path", by=lambda p: p + "x"), changed(*one, "record_count", to=11),
              changed(*one, "file_size_bytes", to=1001), changed(*one, "column_stats", to=[]), changed(*one, "column_stats"),
              changed(*gone, by=backwards), changed(*gone, 0, "delete_count", to=2), changed(*gone, 0, "data_file_id", to=3),
              changed(*gone, 0, "path", by=lambda p: p + "x"), changed(*gone, 0, "file_size_bytes", to=2)]
    differ += [changed(*one, "column_stats", 0, name, to=to) for name, to in (
        ("field_id", 3), ("value_count", 11), ("null_count", 1), ("nan_count", 0), ("size_bytes", 81), ("size_bytes", None),
        ("lower_bound", "AAAAAAAAAAE="), ("lower_bound", None), ("upper_bound", "AAAAAAAAAAE="), ("upper_bound", None))]
    for number, other in enumerate(differ):
        status, answer = call(server, "POST", catalog + "/commit/prepared", other)
        assert (status, answer.get("detail")) == (422, "idempotency_key reused with a different request"), (number, answer)
    assert ok(server, "GET", catalog)["head_snapshot_id"] == first["snapshot_id"]


def test_receipts_go_when_no_replay_is_due(_):
    """The setting, or twice the retention of snapshots, 30 days at most, whichever is longer; 0: never."""
    hour, day = 3600, 86400
    for setting, retention, age, purged in (
            ("3600", None, 2 * hour, 1), ("3600", None, hour // 2, 0), ("3600", 2 * hour, 3 * hour, 0),
            ("3600", 2 * hour, 5 * hour, 1), ("3600", 60 * day, 29 * day, 0), ("3600", 60 * day, 31 * day, 1),
            ("0", None, 400 * day, 0), ("-1", hour, 400 * day, 0), ("604800", hour, 6 * day, 0), ("604800", hour, 8 * day, 1)):
        with hoglaked.started(judge_rest.URL % judge_rest.DB.port, HOGLAKE_RECEIPT_RETENTION_SECONDS=setting) as server:
            catalog, _, _ = lake(server)
            body = prepared(catalog)
            first = ok(server, "POST", catalog + "/commit/prepared", body)
            ok(server, "PATCH", catalog + "/options", {"snapshot_retention_seconds": retention})
            judge_rest.DB.query("hoglake", "UPDATE hog_commit_receipt SET created_us = hog_now_us() - %s * 1000000::bigint"
                                           " WHERE idempotency_key = %s", age, body["idempotency_key"])
            done = ok(server, "POST", catalog + "/maintenance/cleanup")
            assert done["receipts_purged"] == purged, (setting, retention, age, done)
            again = ok(server, "POST", catalog + "/commit/prepared", body)  # after the purge a commit like any other
            assert again["snapshot_id"] == first["snapshot_id"] + purged, (setting, retention, age, again)


def test_the_floor_and_who_holds_it(server):
    catalog, table, made = lake(server)
    for _ in range(4):
        ok(server, "POST", catalog + "/commit", append(catalog))  # 3 to 6
    offset = catalog + "/consumers/me/offsets/" + made["table_uuid"]
    ok(server, "PUT", offset, {"snapshot_id": 4})
    gone = expire(server, catalog)
    assert (gone["floored_by_consumer"], gone["new_earliest_snapshot_id"], gone["snapshots_expired"]) == ("me", 4, 4)
    gone = ok(server, "POST", catalog + "/maintenance/expire")
    assert (gone["floored_by_consumer"], gone["snapshots_expired"]) == ("me", 0), gone
    refused(server, 410, "expired", "PUT", catalog + "/consumers/x/offsets/" + made["table_uuid"], {"snapshot_id": 3})
    ok(server, "PATCH", catalog + "/options", {"consumer_floor": False})
    gone = ok(server, "POST", catalog + "/maintenance/expire")
    assert gone["new_earliest_snapshot_id"] == 6 and "floored_by_consumer" not in gone, gone  # the head stays
    assert ok(server, "GET", catalog)["earliest_snapshot_time"]
    assert ok(server, "POST", catalog + "/commit", append(catalog, read_snapshot=6))["snapshot_id"] == 7
    refused(server, 410, "expired", "POST", catalog + "/commit", append(catalog, read_snapshot=5))
    # the first snapshot of a window of changes is not in it
    assert len(ok(server, "GET", table + "/changes?from_snapshot=5")["files"]) == 2
    refused(server, 410, "expired", "GET", table + "/changes?from_snapshot=4")
    same = ok(server, "GET", table + "/changes?from_snapshot=7&to_snapshot=7")
    assert same["files"] == same["delete_files"] == []
    refused(server, 422, "validation", "GET", table + "/changes?from_snapshot=7&to_snapshot=6")


def test_a_catalog_goes_when_nothing_is_left(_):
    """Each reason in its order, as one thing after the other is taken away."""
    with hoglaked.started(judge_rest.URL % judge_rest.DB.port, HOGLAKE_RETIREMENT_INTERVAL_MS="200",
                          HOGLAKE_HYDRATOR_INTERVAL_MS="0") as server:
        catalog, table, made = lake(server)
        name = catalog[len("/catalogs/"):]

        def why():
            return refused(server, 409, "catalog_not_empty", "DELETE", catalog)

        ok(server, "POST", catalog + "/commit", append(catalog))
        ok(server, "POST", catalog + "/commit", vector(catalog, 1, 3))
        ok(server, "PUT", catalog + "/consumers/me/offsets/" + made["table_uuid"], {"snapshot_id": 4})
        owner = str(uuid.uuid4())
        path = ok(server, "PUT", catalog + "/uploads/" + str(uuid.uuid4()), {
            "owner": owner, "prefix": "s3://b/%s/p" % name, "file_kind": "data"})["path"]
        judge_rest.DB.query("hoglake", "INSERT INTO hog_compaction_claim (catalog_id, table_id, data_file_ids, expires_us)"
                                       " SELECT catalog_id, 1, '{1}', 9e18 FROM hog_catalog WHERE name = %s", name)
        first = why()
        assert first["reason"] == "live_namespaces" and "(n)" in first["detail"], first
        for part in ("consumer offsets", "active uploads", "compactions"):
            assert part in first["detail"], first
        ok(server, "DELETE", table)
        ok(server, "DELETE", catalog + "/namespaces/n")
        assert why()["reason"] == "tables_pending_retirement", why()
        time.sleep(1)  # nothing is retired while a retained snapshot shows the table
        assert why()["reason"] == "tables_pending_retirement", why()
        ok(server, "PUT", catalog + "/consumers/me/offsets/" + made["table_uuid"], {"snapshot_id": 6})
        expire(server, catalog)
        services.wait_until(lambda: why()["reason"] == "removals_pending", 60, "the table is retired")
        assert "2 objects" in why()["detail"], why()
        for reason, statement in (
                ("active_compaction_claims", "UPDATE hog_file_removal SET drained_us = 1, drained_outcome = 'deleted'"),
                ("consumer_offsets", "UPDATE hog_compaction_claim SET expires_us = 1"),
                ("active_uploads", "DELETE FROM hog_consumer_offset")):
            judge_rest.DB.query("hoglake", statement + " WHERE catalog_id = (SELECT catalog_id FROM hog_catalog"
                                                       " WHERE name = %s)", name)
            assert why()["reason"] == reason, (reason, why())
        ok(server, "POST", catalog + "/uploads/abandon", {"owner": owner, "paths": [path]})
        assert why()["reason"] == "abandoned_uploads_unsettled"
        ok(server, "POST", catalog + "/uploads/schedule-expired")
        assert why()["reason"] == "removals_pending"
        judge_rest.DB.query("hoglake", "UPDATE hog_file_removal SET drained_us = 1, drained_outcome = 'absent'")
        assert why()["reason"] == "abandoned_uploads_unsettled"  # its lease is still ahead
        judge_rest.DB.query("hoglake", "UPDATE hog_upload SET expires_us = 1 WHERE path = %s", path)
        number = judge_rest.DB.query("hoglake", "SELECT catalog_id FROM hog_catalog WHERE name = %s", name)[0][0]
        assert ok(server, "DELETE", catalog) == {"name": name, "data_path": "s3://b/%s/" % name}
        tables = judge_rest.DB.query("hoglake", "SELECT relname FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid"
                                                " WHERE relkind = 'r' AND attname = 'catalog_id'")
        left = [t for (t,) in tables
                if judge_rest.DB.query("hoglake", "SELECT 1 FROM %s WHERE catalog_id = %d LIMIT 1" % (t, number))]
        assert len(tables) > 15 and not left, left
        ok(server, "POST", "/catalogs", {"name": name, "data_path": "s3://b/%s/inside" % name})


def test_transactions_are_whole(server):
    catalog, table, made = lake(server)
    guards = {"t": made["table_uuid"]}
    for name in "ab":
        guards[name] = ok(server, "POST", catalog + "/namespaces/n/tables",
                          {"name": name, "columns": ID})["table_uuid"]
    head = ok(server, "POST", catalog + "/commit", append(catalog))["snapshot_id"]
    body = vector(catalog, 11, head) | {"idempotency_key": str(uuid.uuid4()), "appends": [
        {"namespace": "n", "table": name, "expected_table_uuid": guards[name], "files": [file(catalog)]} for name in "ab"]}
    target = body["deletes"][0]["files"][0]
    body["deletes"][0]["expected_table_uuid"] = guards["t"]
    for bad in ({"delete_count": 11}, {"data_file_id": 99}, {"delete_count": 0}, {"path": "s3://elsewhere/x"}):
        assert call(server, "POST", catalog + "/commit/transaction",
                    body | {"deletes": [body["deletes"][0] | {"files": [target | {"delete_count": 1} | bad]}]})[0] == 422
    assert ok(server, "GET", catalog)["head_snapshot_id"] == head
    assert ok(server, "GET", catalog + "/namespaces/n/tables/a/files") == []
    target["delete_count"] = 2  # the key is free: nothing of it was in
    assert ok(server, "POST", catalog + "/commit/transaction", body)["snapshot_id"] == head + 1
    [snapshot] = ok(server, "GET", catalog + "/snapshots?after=%d" % head)["snapshots"]
    assert sorted(c["kind"] for c in snapshot["changes"]) == ["table_deleted_from"] + ["table_inserted_into"] * 2


def test_targets_that_changed_since_they_were_read(server):
    """Appends do not disturb deletes, but where the route guards its targets; what came later is no target."""
    catalog, table, made = lake(server)
    ok(server, "POST", catalog + "/commit", append(catalog, file(catalog), file(catalog)))  # 3: files 1 and 2
    ok(server, "POST", catalog + "/commit", append(catalog))  # 4: file 3
    later = refused(server, 409, "commit_conflict", "POST", catalog + "/commit", vector(catalog, 1, 3, target=3))
    assert "added after" in later["detail"], later

    def prepared_delete(route, snapshot, target):
        body = vector(catalog, 1, snapshot, target=target) | {"idempotency_key": str(uuid.uuid4())}
        body["deletes"][0]["expected_table_uuid"] = made["table_uuid"]
        return call(server, "POST", catalog + "/commit/" + route, body)

    guarded = ("mutations/prepared", "transaction", "uploads")
    for route in guarded:
        status, answer = prepared_delete(route, 3, 1)
        assert (status, answer["error"]) == (409, "commit_conflict") and "changed after" in answer["detail"], answer
    assert prepared_delete("deletes/prepared", 3, 1)[1]["snapshot_id"] == 5
    for route in guarded:  # a delete counts as an append does
        status, answer = prepared_delete(route, 4, 2)
        assert (status, answer["error"]) == (409, "commit_conflict") and "changed after" in answer["detail"], answer
    status, answer = prepared_delete("deletes/prepared", 4, 1)
    assert (status, answer["error"]) == (409, "commit_conflict") and "got a deletion vector" in answer["detail"], answer
    for number, route in enumerate(guarded):
        assert prepared_delete(route, 5 + number, (2, 3, 1)[number])[1]["snapshot_id"] == 6 + number


def test_a_queued_path_that_is_in_use_stays(server):
    catalog, table, made = lake(server)
    name = catalog[len("/catalogs/"):]
    one, delete = file(catalog), vector(catalog, 1, 3)
    ok(server, "POST", catalog + "/commit", append(catalog, one))
    ok(server, "POST", catalog + "/commit", delete)
    ok(server, "POST", table + "/truncate?expected_table_uuid=" + made["table_uuid"], {})  # ended, not forgotten
    claim = ok(server, "PUT", catalog + "/uploads/" + str(uuid.uuid4()), {
        "owner": str(uuid.uuid4()), "prefix": "s3://b/%s/p" % name, "file_kind": "data"})["path"]
    for path in (one["path"], delete["deletes"][0]["files"][0]["path"], claim):
        judge_rest.DB.query("hoglake", "INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason, scheduled_us)"
                                       " SELECT catalog_id, %s, 'data', 'snapshot_expiry', 0 FROM hog_catalog"
                                       " WHERE name = %s", path, name)
    done = ok(server, "POST", catalog + "/maintenance/cleanup")
    assert (done["still_referenced"], done["removed"], done["missing"]) == (3, 0, 0), done
    assert ok(server, "POST", catalog + "/maintenance/cleanup")["still_referenced"] == 0


def test_vectors_of_files_that_ended(server):
    catalog, table, made = lake(server)
    ok(server, "POST", catalog + "/namespaces/n/tables", {"name": "a", "columns": ID})
    head = ok(server, "POST", catalog + "/commit", append(catalog))["snapshot_id"]
    head = ok(server, "POST", catalog + "/commit", vector(catalog, 2, head))["snapshot_id"]
    other = refused(server, 422, "validation", "POST", catalog + "/commit", vector(catalog, 3, head, table="a"))
    assert "another table" in other["detail"], other
    head = ok(server, "POST", catalog + "/commit", vector(catalog, 2, head))["snapshot_id"]  # equal is no shrinking
    end = ok(server, "POST", table + "/truncate?expected_table_uuid=" + made["table_uuid"], {})["snapshot_id"]
    refused(server, 409, "ddl_since_read_snapshot", "POST", catalog + "/commit", vector(catalog, 2, head))
    gone = refused(server, 422, "validation", "POST", catalog + "/commit", vector(catalog, 2, end))
    assert "retired" in gone["detail"], gone
    refused(server, 409, "reconciliation_required", "GET", table + "/changes?from_snapshot=%d" % (end - 1))
    ok(server, "GET", table + "/changes?from_snapshot=%d" % end)
    ok(server, "POST", catalog + "/commit", append(catalog))
    assert ok(server, "GET", table + "/files")[0]["row_id_start"] == 10  # ids are never given twice


def test_partition_values_are_kept_to_the_letter(server):
    catalog, table, _ = lake(server, [{"name": "d", "type": "date"}])
    spec = ok(server, "POST", table + "/alter", {"ops": [
        {"op": "set_partition_spec", "fields": [{"source_field_id": 1, "transform": "HOUR"}]}]})["partition_spec"]
    assert spec["fields"] == [{"source_field_id": 1, "transform": "hour"}], spec
    values = [None, "-1", "-719162", "", "NULL", "null", 'a"b\\,{} c', "\u00e9\U0001f418", "x" * 5000]
    for value in values:
        ok(server, "POST", catalog + "/commit", append(catalog, file(catalog, partition_values=[value])))
    assert [f["partition_values"] for f in ok(server, "GET", table + "/files")] == [[v] for v in values]


if __name__ == "__main__":
    sys.exit(judge_rest.main(globals()))
