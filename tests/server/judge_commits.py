#!/usr/bin/env python3
"""build/hoglaked: commits that wait for the catalog's lock, share a transaction, or lose their connection in
it, and numbers at the ends of what fits. What is expected is the contract's, none of it our own output.

Every case is a function test_*(server). Arguments choose cases by a part of their name.
"""
import base64
import concurrent.futures
import contextlib
import math
import re
import struct
import sys
import time
import uuid

import hoglaked
import judge_rest
import services
from judge_rest import append, call, file, lake, ok, prepared, refused, through_proxy

LARGEST = (1 << 63) - 1


@contextlib.contextmanager
def locked(catalog):
    """Somebody else holds the catalog's lock; gives a function that lets it go."""
    connection = judge_rest.DB.connect("hoglake")
    cursor = connection.cursor()
    cursor.execute("SELECT pg_advisory_lock((4740871::bigint << 32) | (catalog_id & 4294967295))"
                   " FROM hog_catalog WHERE name = %s", (catalog[len("/catalogs/"):],))
    try:
        yield lambda: cursor.execute("SELECT pg_advisory_unlock_all()")
    finally:
        connection.close()


def waiters():
    return judge_rest.DB.query("hoglake", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                                          " AND NOT granted")[0][0]


def timed(server, catalog, body):
    began = time.monotonic()
    status, answer = call(server, "POST", catalog + "/commit/prepared", body)
    return status, answer, time.monotonic() - began


def unknown_table(catalog):
    body = prepared(catalog)
    body["appends"][0]["table"] = "none"
    return body


def grouped(server, proxy, catalog, bodies):
    """The answers to commits that share one transaction, whose COMMIT is cut."""
    with locked(catalog) as unlock, concurrent.futures.ThreadPoolExecutor(8) as pool:
        first = pool.submit(timed, server, catalog, unknown_table(catalog))
        services.wait_until(lambda: waiters() == 1, 60, "the first commit waits for the lock")
        others = [pool.submit(timed, server, catalog, body) for body in bodies]
        services.wait_until(lambda: hoglaked.metric(server, "hoglake_request_pool_active") == len(bodies) + 1, 60,
                            "all have a handler")
        for _ in range(50):  # and stand in the queue behind the first: a second in which the server ran
            hoglaked.request(server.url + "/livez")
            time.sleep(0.02)
        proxy.arm("before")
        unlock()
        assert first.result()[0] == 422, first.result()
        return [other.result()[:2] for other in others]


def test_a_replay_beside_its_commit_is_answered_as_that_is(_):
    """Nothing is acknowledged that is not in: not the second of two equal requests, nor a refusal that says
    that the key was used."""
    with through_proxy(HOGLAKE_DB_RECOVERY_MS="0") as (server, proxy):
        catalog, _, _ = lake(server)
        body = prepared(catalog)
        other = dict(body, message="another request")
        for bodies in ([body, body, body], [body, other]):
            head = ok(server, "GET", catalog)["head_snapshot_id"]
            answers = grouped(server, proxy, catalog, bodies)
            assert [a[0] for a in answers] == [500] * len(bodies), answers
            assert ok(server, "GET", catalog)["head_snapshot_id"] == head
            refused(server, 404, "not_found", "GET", catalog + "/commit/receipts/" + body["idempotency_key"])
        assert ok(server, "POST", catalog + "/commit/prepared", other)["snapshot_id"] == head + 1
        refused(server, 422, "validation", "POST", catalog + "/commit/prepared", body)


def test_a_lost_commit_is_followed_up_however_long_the_lock_took(_):
    with through_proxy(HOGLAKE_DB_RECOVERY_MS="5000") as (server, proxy):
        catalog, table, _ = lake(server)
        for turn, how in enumerate(("after", "before")):
            with locked(catalog) as unlock, concurrent.futures.ThreadPoolExecutor(2) as pool:
                commit = pool.submit(timed, server, catalog, prepared(catalog))
                services.wait_until(lambda: waiters() == 1, 60, "the commit waits for the lock")
                time.sleep(5.5)
                proxy.arm(how)
                unlock()
                status, answer, _ = commit.result()
            # the time of the recovery is over, so what is known not to be in is not tried again
            assert status == (200 if how == "after" else 503), (how, status, answer)
            assert ok(server, "GET", catalog)["head_snapshot_id"] == 3, how


def test_the_wait_for_the_lock_counts_from_the_request(_):
    with hoglaked.started(judge_rest.URL % judge_rest.DB.port, HOGLAKE_COMMIT_LOCK_TIMEOUT_MS="12000") as server:
        catalog, _, _ = lake(server)
        with locked(catalog) as unlock, concurrent.futures.ThreadPoolExecutor(4) as pool:
            first = pool.submit(timed, server, catalog, prepared(catalog))
            time.sleep(1)
            second = pool.submit(timed, server, catalog, prepared(catalog))
            time.sleep(7)
            late = pool.submit(timed, server, catalog, prepared(catalog))
            for waits in (first, second):
                status, answer, seconds = waits.result()
                assert (status, answer["error"]) == (503, "commit_queue_timeout"), answer
                assert "lock" in answer["detail"], answer
                assert 11.8 < seconds < 19, seconds  # counted from the lock: 23 for the second
            assert not late.done()
            unlock()
            assert late.result()[0] == 200, late.result()
        text = hoglaked.request(server.url + "/metrics")[1]
        counted = dict(re.findall(r'^hoglake_commits_total\{catalog="%s",result="(\w+)"\} (\S+)$' %
                                  catalog[len("/catalogs/"):], text, re.M))
        assert {k: float(v) for k, v in counted.items()} == {"timeout": 2, "committed": 1}, counted


def test_catalogs_made_and_dropped_on_a_lost_connection(_):
    with through_proxy() as (server, proxy):
        for turn in range(10):
            name = "lost%d" % turn
            how = "after" if turn % 2 else "before"
            proxy.arm(how)
            made = ok(server, "POST", "/catalogs", {"name": name, "data_path": "s3://lost/%d/" % turn}, [201])
            assert made["data_path"] == "s3://lost/%d/" % turn and made["head_snapshot_id"] == 0, made
            assert ok(server, "GET", "/catalogs/" + name) == made
            proxy.arm(how)
            dropped = ok(server, "DELETE", "/catalogs/" + name)
            assert dropped == {"name": name, "data_path": made["data_path"]}, dropped
            refused(server, 404, "not_found", "DELETE", "/catalogs/" + name)
        assert proxy.cuts == 20, proxy.cuts


def test_reads_are_of_one_moment(server):
    """What expiry takes away between two statements of one read is still in its answer."""
    catalog, table, _ = lake(server)
    ok(server, "POST", catalog + "/commit", append(catalog, file(catalog, column_stats=[])))
    for path, count in (("/files?snapshot=3", len), ("/scan?snapshot=3", len), ("?snapshot=3", lambda t: t["file_count"]),
                        ("/scan?include=column_stats", len), ("/changes?from_snapshot=2", lambda c: len(c["files"])),
                        ("/changes?from_snapshot=2&snapshot=2", lambda c: len(c["files"]))):
        connection = judge_rest.DB.connect("hoglake")
        connection.autocommit = False
        with contextlib.closing(connection), concurrent.futures.ThreadPoolExecutor(1) as pool:
            cursor = connection.cursor()
            cursor.execute("LOCK TABLE hog_data_file IN ACCESS EXCLUSIVE MODE")
            reads = pool.submit(ok, server, "GET", table + path)
            services.wait_until(lambda: judge_rest.DB.query(  # the planner's refresh may wait for it as well
                "hoglake", "SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE query NOT LIKE 'DO %'"
                " AND relation = 'hog_data_file'::regclass AND NOT granted"), 60, "the read waits for the table")
            cursor.execute("CREATE TEMP TABLE kept AS SELECT * FROM hog_data_file")
            cursor.execute("DELETE FROM hog_data_file")
            connection.commit()
            assert count(reads.result()) == 1, (path, reads.result())
            assert count(ok(server, "GET", table + path)) == 0, path
            cursor.execute("INSERT INTO hog_data_file SELECT * FROM kept")
            connection.commit()


def test_more_readers_than_connections_wait(_):
    with hoglaked.started(judge_rest.URL % judge_rest.DB.port, HOGLAKE_DB_POOL_SIZE="2") as server:
        catalog, table, _ = lake(server)
        connection = judge_rest.DB.connect("hoglake")
        connection.autocommit = False
        with contextlib.closing(connection), concurrent.futures.ThreadPoolExecutor(64) as pool:
            connection.cursor().execute("LOCK TABLE hog_data_file IN ACCESS EXCLUSIVE MODE")
            reads = [pool.submit(call, server, "GET", table + "/files") for _ in range(64)]
            time.sleep(6)
            connection.commit()
            assert [r.result()[0] for r in reads] == [200] * 64, reads[0].result()


def test_statistics_come_back_repaired(server):
    """Section "statistics repair": each rule alone, and what it leaves as it was."""
    columns = [{"name": "f", "type": "float"}, {"name": "d", "type": "double"}, {"name": "i", "type": "int"}]
    catalog, table, _ = lake(server, columns)
    zeros = {1: (struct.pack("<f", 0.0), struct.pack("<f", -0.0)), 2: (struct.pack("<d", 0.0), struct.pack("<d", -0.0))}
    plain = {"value_count": 10, "null_count": 4, "size_bytes": 70}
    cases = [  # field, what is sent, what comes back
        (1, {}, {}), (2, {"size_bytes": -1}, {"size_bytes": None}), (2, {"nan_count": 9}, {"nan_count": 6}),
        (2, {"nan_count": 6}, {"nan_count": 6}), (2, {"nan_count": -1}, {"nan_count": None}),
        (3, {"nan_count": 0}, {"nan_count": None}), (3, {"null_count": 11}, {"null_count": 10}),
        (3, {"value_count": 0, "null_count": 0, "size_bytes": 0}, {"value_count": 0, "null_count": 0, "size_bytes": 0})]
    for field, sent, want in cases:
        stats = {"field_id": field} | plain | sent
        for bound, value in zip(("lower_bound", "upper_bound"), zeros.get(field, ())):
            stats[bound] = base64.b64encode(value).decode()
        ok(server, "POST", catalog + "/commit", append(catalog, file(catalog, column_stats=[stats])))
        number = max(f["data_file_id"] for f in ok(server, "GET", table + "/files"))
        [got] = ok(server, "GET", table + "/files/%d/stats" % number)["columns"]
        expected = plain | {"nan_count": None} | want
        assert {name: got.get(name) for name in expected} == expected, (sent, got)
        if field in zeros:  # the zero that takes in the other: below as a lower bound, above as an upper one
            assert [math.copysign(1, got[b]) for b in ("lower_bound", "upper_bound")] == [-1, 1], (sent, got)
            assert got["lower_bound"] == got["upper_bound"] == 0
        else:
            assert got["lower_bound"] is None and got["upper_bound"] is None, got


def test_sums_that_no_number_holds_are_refused(server):
    catalog, table, _ = lake(server)
    huge = file(catalog, file_size_bytes=LARGEST)
    ok(server, "POST", catalog + "/commit", append(catalog, huge))
    detail = refused(server, 422, "validation", "POST", catalog + "/commit", append(catalog))["detail"]
    assert "2^63" in detail, detail
    ok(server, "POST", catalog + "/namespaces/n/tables", {"name": "u", "columns": [{"name": "a", "type": "int"}]})
    body = append(catalog, huge)
    body["appends"][0]["table"] = "u"
    ok(server, "POST", catalog + "/commit", body)
    [listed] = [c for c in ok(server, "GET", "/catalogs") if c["name"] == catalog[len("/catalogs/"):]]
    assert listed["live_size_bytes"] == LARGEST and listed["live_rows"] == 20, listed
    assert [t["file_size_bytes"] for t in ok(server, "GET", catalog + "/namespaces/n/tables")] == [LARGEST] * 2
    with concurrent.futures.ThreadPoolExecutor(8) as pool:  # in a group the others are not harmed
        good = dict(append(catalog, file(catalog, rows=0, file_size_bytes=0)))
        bodies = [append(catalog) if turn % 2 else good for turn in range(32)]
        answers = list(pool.map(lambda b: call(server, "POST", catalog + "/commit", b)[0], bodies))
    assert answers == [422 if turn % 2 else 200 for turn in range(32)], answers


def test_retention_and_batches_of_any_size(server):
    catalog, _, _ = lake(server)
    ok(server, "POST", catalog + "/commit/prepared", prepared(catalog))
    for seconds in (LARGEST, LARGEST // 1000000, 1 << 40):
        ok(server, "PATCH", catalog + "/options", {"snapshot_retention_seconds": seconds})
        assert ok(server, "POST", catalog + "/maintenance/expire")["snapshots_expired"] == 0
        assert ok(server, "POST", catalog + "/maintenance/cleanup")["receipts_purged"] == 0
    ok(server, "PATCH", catalog + "/options", {"snapshot_retention_seconds": 1})
    time.sleep(1.2)
    ok(server, "POST", catalog + "/commit", append(catalog))
    assert ok(server, "POST", catalog + "/maintenance/expire?batch=1")["new_earliest_snapshot_id"] == 1
    gone = ok(server, "POST", catalog + "/maintenance/expire?batch=%d" % LARGEST)
    assert gone["new_earliest_snapshot_id"] == 4 and gone["snapshots_expired"] == 3, gone
    for task in ("expire", "cleanup"):
        refused(server, 422, "validation", "POST", catalog + "/maintenance/%s?batch=0" % task)
        refused(server, 400, "bad_request", "POST", catalog + "/maintenance/%s?batch=%d" % (task, LARGEST + 1))


def test_a_prepared_definition_is_the_same_however_it_is_written(server):
    catalog, _, _ = lake(server)
    operation = catalog + "/table-creations/" + str(uuid.uuid4())
    plain = {"namespace": "n", "name": "p", "columns": [{"name": "id", "type": "long"}]}
    made = ok(server, "PUT", operation, plain)
    for same in (dict(plain, partition_fields=[]), dict(plain, sort_fields=[], comment=None, replacement=None),
                 dict(reversed(plain.items())), dict(plain, columns=[{"type": "long", "name": "id", "children": None}]),
                 dict(plain, properties=None, author=None)):
        assert ok(server, "PUT", operation, same) == made, same
    for other in (dict(plain, name="q"), dict(plain, author="a"),
                  dict(plain, columns=[{"name": "id", "type": "long", "nullable": False}])):
        refused(server, 409, "commit_conflict", "PUT", operation, other)
    refused(server, 422, "validation", "PUT", operation, dict(plain, properties={}))
    # a file that cannot be is the request's fault, whatever else there is to say
    bad = {"path": made["write_path"] + "a.parquet", "record_count": 1, "file_size_bytes": 100, "footer_size": 93}
    ok(server, "POST", catalog + "/namespaces/n/tables", {"name": "p", "columns": plain["columns"]})
    refused(server, 422, "validation", "POST", operation + "/commit", {"files": [bad]})
    assert ok(server, "GET", operation)["state"] == "prepared"
    answer = ok(server, "POST", operation + "/commit", {"files": [bad | {"footer_size": 92}]})
    assert (answer["state"], answer["reason"]) == ("rejected", "target_exists"), answer
    again = {"files": [dict(reversed((bad | {"footer_size": 92, "split_offsets": None}).items()))]}
    assert ok(server, "POST", operation + "/commit", again) == answer
    refused(server, 409, "commit_conflict", "POST", operation + "/commit", {"files": []})


def test_an_offset_that_is_refused_releases_none(server):
    catalog, table, old = lake(server)
    head = ok(server, "GET", catalog)["head_snapshot_id"]
    operation = catalog + "/table-creations/" + str(uuid.uuid4())
    new = ok(server, "PUT", operation, {
        "namespace": "n", "name": "t", "columns": [{"name": "id", "type": "long"}],
        "replacement": {"expected_table_uuid": old["table_uuid"], "read_snapshot": head}})
    at = ok(server, "POST", operation + "/commit", {"files": []})["snapshot_id"]
    ok(server, "POST", catalog + "/commit", append(catalog))
    offsets = catalog + "/consumers/c/offsets"
    ok(server, "PUT", offsets + "/" + new["table_uuid"], {"snapshot_id": at + 1})
    ok(server, "PUT", offsets + "/" + old["table_uuid"], {"snapshot_id": at})
    refused(server, 409, "offset_regression", "PUT", offsets + "/" + new["table_uuid"], {"snapshot_id": at})
    assert len(ok(server, "GET", offsets)) == 2
    ok(server, "PUT", offsets + "/" + new["table_uuid"], {"snapshot_id": at + 1})
    assert [o["table_uuid"] for o in ok(server, "GET", offsets)] == [new["table_uuid"]]


def test_the_catalog_comes_before_its_snapshots(server):
    both = "?snapshot=1&at_timestamp=2026-01-01T00:00:00Z"
    catalog, table, _ = lake(server)
    for path in ("/namespaces", "/namespaces/n/tables", "/namespaces/n/tables/t", "/namespaces/n/tables/t/files",
                 "/namespaces/n/tables/t/scan"):
        refused(server, 404, "not_found", "GET", "/catalogs/nope" + path + both)
        refused(server, 422, "validation", "GET", catalog + path + both)


def test_of_two_faults_the_earlier_is_told(server):
    """Section by section in the order of the contract: a request that breaks two rules is told of the first."""
    catalog, _, made = lake(server)
    name = catalog[len("/catalogs/"):]
    for other in ("dropped", "again"):
        ok(server, "POST", catalog + "/namespaces/n/tables", {"name": other, "columns": [{"name": "a", "type": "int"}]})
    ok(server, "DELETE", catalog + "/namespaces/n/tables/dropped")
    ok(server, "POST", catalog + "/commit", append(catalog, file(catalog, "target")))
    used = ok(server, "POST", catalog + "/commit/prepared", prepared(catalog))  # snapshot 7, of which t knows
    key = str(uuid.uuid4())
    ok(server, "POST", catalog + "/commit/prepared", append(catalog, idempotency_key=key))
    ok(server, "POST", catalog + "/namespaces/n/tables/again/alter", {"ops": [{"op": "set_table_comment", "comment": "x"}]})
    head = ok(server, "GET", catalog)["head_snapshot_id"]
    claim = ok(server, "PUT", catalog + "/uploads/" + str(uuid.uuid4()), {
        "owner": str(uuid.uuid4()), "prefix": "s3://b/%s/claims" % name, "file_kind": "data"})
    judge_rest.DB.query("hoglake", "INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason, scheduled_us)"
                                   " SELECT catalog_id, 's3://b/' || name || '/queued', 'data', 'snapshot_expiry', 0"
                                   " FROM hog_catalog WHERE name = %s", name)
    assert used["snapshot_id"] == 7 and head == 9
    vector = {"data_file_id": 1, "path": "s3://b/%s/v.puffin" % name, "delete_count": 1, "file_size_bytes": 1}

    def add(table="t", **more):  # another table or file for the request
        return lambda body: body["appends"].append(dict({"namespace": "n", "table": table, "files": [file(catalog)]}, **more))

    def put(**more):  # a file into the group of t
        return lambda body: body["appends"][0]["files"].append(file(catalog) | more)

    def remove(**more):
        return lambda body: body.setdefault("deletes", []).append(
            {"namespace": "n", "table": "t", "files": [vector | more]})

    faults = [  # in order; those of one rank are not put together
        (1, (422, "reused"), lambda body: body.update(idempotency_key=key)),
        (2, (422, "data_path"), put(path="s3://elsewhere/x")),
        (3, (422, "negative"), lambda body: body.update(read_snapshot=-1)),
        (4, (422, "unknown table"), add("none")),
        (4, (409, "dropped"), add("dropped")),
        (4, (409, "incarnation"), add("again", expected_table_uuid=made["table_uuid"])),
        (5, (422, "above the head"), lambda body: body.update(read_snapshot=head + 1)),
        (5, (409, "altered"), lambda body: (body.update(read_snapshot=6), add("again")(body))),
        (6, (422, "record_count"), put(record_count=-1)),
        (6, (422, "split_offsets"), put(split_offsets=[])),
        (6, (422, "partition_values"), put(partition_values=["1"])),
        (6, (422, "field id 77"), put(column_stats=[{"field_id": 77, "value_count": 1, "null_count": 0}])),
        (7, (422, "delete_count"), remove(delete_count=0)),
        (8, (409, "claimed"), put(path=claim["path"])),
        (9, (409, "queued"), put(path="s3://b/%s/queued" % name)),
        (10, (422, "unknown data file"), remove(data_file_id=999)),
        (10, (422, "above the 10 records"), remove(delete_count=11)),
    ]
    for first in faults:
        for second in [None] + faults:
            if second and second[0] <= first[0] and second is not first:
                continue
            body = append(catalog, read_snapshot=head)
            # the later one first, so that it is not the place in the request that decides
            for fault in (second, first) if second and second is not first else (first,):
                fault[2](body)
            status, answer = call(server, "POST", catalog + "/commit", body)
            assert status == first[1][0] and first[1][1] in answer["detail"], (first[:2], second and second[:2], answer)
    refused(server, 404, "not_found", "POST", "/catalogs/none/commit", append(catalog, file(catalog, path="s3://x/y")))
    assert ok(server, "GET", catalog)["head_snapshot_id"] == head


def test_creations_on_a_lost_connection(_):
    """Prepared, published, aborted and asked for again, each with its COMMIT lost on the way there or back."""
    with through_proxy() as (server, proxy):
        catalog, _, _ = lake(server)
        for turn in range(6):
            how = "after" if turn % 2 else "before"
            operation = catalog + "/table-creations/" + str(uuid.uuid4())
            definition = {"namespace": "n", "name": "c%d" % turn, "columns": [{"name": "a", "type": "long"}]}
            made = ok(server, "PUT", operation, definition)
            one = {"path": made["write_path"] + "x", "record_count": 3, "file_size_bytes": 100, "footer_size": 8}
            proxy.arm(how)
            done = ok(server, "POST", operation + "/commit", {"files": [one]})
            assert done["state"] == "committed" and done["snapshot_id"] == 3 + turn, done
            for again in (("PUT", operation, definition), ("GET", operation, None),
                          ("POST", operation + "/commit", {"files": [one]}), ("POST", operation + "/abort", None)):
                assert ok(server, *again) == done, again
            assert ok(server, "GET", catalog + "/namespaces/n/tables/c%d" % turn)["record_count"] == 3
        assert proxy.cuts == 6
        text = hoglaked.request(server.url + "/metrics")[1]
        counted = {tuple(found[:2]): float(found[2]) for found in re.findall(
            r'^hoglake_table_creation_total\{catalog="%s",action="(\w+)",outcome="(\w+)"\} (\S+)$' % catalog[10:], text, re.M)}
        assert counted == {("prepare", "prepared"): 6, ("prepare", "replayed"): 6, ("publish", "committed"): 6,
                           ("publish", "replayed"): 6, ("abort", "replayed"): 6}, counted
        assert 'hoglake_commits_total{catalog="%s",result="committed"} 6' % catalog[10:] in text


def test_claims_and_their_leases(server):
    catalog, _, made = lake(server)
    owner = str(uuid.uuid4())

    def claimed(kind="data"):
        return ok(server, "PUT", catalog + "/uploads/" + str(uuid.uuid4()),
                  {"owner": owner, "prefix": "s3://b%s/p/" % catalog[9:], "file_kind": kind})["path"]

    def commit(*paths):
        body = append(catalog, *[file(catalog) | {"path": p} for p in paths], idempotency_key=owner, read_snapshot=2)
        body["appends"][0]["expected_table_uuid"] = made["table_uuid"]
        return call(server, "POST", catalog + "/commit/uploads", body)

    def late(path):
        judge_rest.DB.query("hoglake", "UPDATE hog_upload SET expires_us = 1 WHERE path = %s", path)

    def cleaned():
        return ok(server, "POST", catalog + "/maintenance/cleanup")

    one, two, other = claimed(), claimed(), claimed("delete")
    assert commit(one, other)[0] == 409  # of the wrong kind; nothing of the request is in
    late(one)
    assert commit(one, two)[1]["error"] == "commit_conflict"
    assert ok(server, "POST", catalog + "/uploads/renew", {"owner": owner})["renewed"] == 3
    late(two)
    late(other)
    assert ok(server, "POST", catalog + "/uploads/schedule-expired?limit=1")["scheduled"] == 1
    assert ok(server, "POST", catalog + "/uploads/schedule-expired")["scheduled"] == 1
    assert ok(server, "POST", catalog + "/uploads/renew", {"owner": owner})["renewed"] == 1
    assert commit(one, two)[0] == 409
    done = commit(one)
    assert done[0] == 200, done
    assert commit(one) == done and commit(two)[0] == 422  # the key is used
    assert ok(server, "POST", catalog + "/uploads/abandon", {"owner": owner, "paths": [one, two, other]})["abandoned"] == 0
    reasons = refused(server, 409, "catalog_not_empty", "DELETE", catalog)
    assert reasons["reason"] == "live_namespaces" and "queued for removal" in reasons["detail"], reasons


def test_many_targets_in_one_commit(server):
    """Time under the catalog's lock grows with the request, not with its square."""
    catalog, table, _ = lake(server)
    count = 3000
    files = [file(catalog, str(i), column_stats=[]) for i in range(count)]
    head = ok(server, "POST", catalog + "/commit", append(catalog, *files))["snapshot_id"]
    ids = [f["data_file_id"] for f in ok(server, "GET", table + "/files")]
    body = {"read_snapshot": head, "deletes": [{"namespace": "n", "table": "t", "files": [
        {"data_file_id": i, "path": files[0]["path"] + ".%d" % i, "delete_count": 1, "file_size_bytes": 1} for i in ids]}]}
    began = time.monotonic()
    refused(server, 422, "validation", "POST", catalog + "/commit",
            body | {"deletes": body["deletes"] + [{"namespace": "n", "table": "t", "files": [body["deletes"][0]["files"][7]]}]})
    ok(server, "POST", catalog + "/commit", body)
    assert time.monotonic() - began < 30, time.monotonic() - began
    plan = ok(server, "GET", table + "/scan")
    assert len(plan) == count and all(p["delete_file"]["data_file_id"] == p["data_file"]["data_file_id"] for p in plan)
    # a queue that holds the paths of another large commit
    judge_rest.DB.query("hoglake", "INSERT INTO hog_upload (catalog_id, upload_id, owner, prefix, path, file_kind, state,"
                                   " expires_us) SELECT catalog_id, gen_random_uuid(), %s::uuid, 'p', 's3://b/' || name ||"
                                   " '/claimed/' || i, 'data', 'active', 9e18 FROM hog_catalog CROSS JOIN"
                                   " generate_series(1, 10000) i WHERE name = %s", str(uuid.UUID(int=5)), catalog[10:])
    mine = append(catalog, *[file(catalog, path="s3://b%s/claimed/%d" % (catalog[9:], i), column_stats=[])
                             for i in range(1, 10001)])
    refused(server, 409, "commit_conflict", "POST", catalog + "/commit", mine)
    ok(server, "POST", catalog + "/commit", mine | {"idempotency_key": str(uuid.UUID(int=5))})


def test_many_large_commits_in_little_memory(server):
    stats = [{"field_id": 1, "value_count": 9, "null_count": 0, "size_bytes": 90, "lower_bound": "AQAAAAAAAAA=",
              "upper_bound": "AgAAAAAAAAA="}, {"field_id": 2, "value_count": 9, "null_count": 0, "size_bytes": 90}]
    with hoglaked.started(server.env["HOGLAKE_JDBC_URL"], HOGLAKE_LOG_LEVEL="WARNING") as fresh:
        catalog = lake(fresh)[0]
        for n in range(40):  # each thread has had its turn
            files = [file(catalog, "%d-%d" % (n, i), column_stats=stats) for i in range(1000)]
            ok(fresh, "POST", catalog + "/commit", append(catalog, *files))
        with open("/proc/%d/status" % fresh.process.pid) as status:
            peak = int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) / 1024
    assert peak < 40, "%.0f MiB" % peak


if __name__ == "__main__":
    sys.exit(judge_rest.main(globals()))
