#!/usr/bin/env python3
"""build/hoglaked over HTTP: the contract, refusals, concurrency, faults, hostile input.

Every case is a function test_*(server); they share one server unless they start their own.
Arguments choose cases by a part of their name. HOGLAKED_SEED repeats a run of the fuzzers.
"""
import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
import uuid

import described
import hoglaked
import pg_proxy
import services

SEED = int(os.environ.get("HOGLAKED_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
DB = None
URL = "postgresql://127.0.0.1:%d/hoglake"
DOCUMENT = described.Document()


def call(server, method, path, body=None, **kwargs):
    status, answer, _ = hoglaked.request(server.url + "/v1" + path, method, body, **kwargs)
    DOCUMENT.check(method, "/v1" + path.split("?")[0], body, status, answer)
    return status, answer


def ok(server, method, path, body=None, want=(200, 201)):
    status, answer = call(server, method, path, body)
    assert status in want, (method, path, status, answer)
    return answer


def refused(server, status, code, method, path, body=None, **kwargs):
    got, answer = call(server, method, path, body, **kwargs)
    assert (got, answer.get("error")) == (status, code), (method, path, body, got, answer)
    return answer


def lake(server, columns=None, **alter):
    """A new catalog with namespace n and table t; gives (catalog path, table path, table)."""
    name = "c" + uuid.uuid4().hex[:12]
    ok(server, "POST", "/catalogs", {"name": name, "data_path": "s3://b/%s/" % name})
    ok(server, "POST", "/catalogs/%s/namespaces" % name, {"name": "n"})
    table = ok(server, "POST", "/catalogs/%s/namespaces/n/tables" % name,
               {"name": "t", "columns": columns or [{"name": "id", "type": "long"},
                                                    {"name": "x", "type": "double"}]})
    return "/catalogs/" + name, "/catalogs/%s/namespaces/n/tables/t" % name, table


def file(catalog, name=None, rows=10, **more):
    path = "s3://b%s/data/n/t/%s.parquet" % (catalog[len("/catalogs"):], name or uuid.uuid4())
    return dict({"path": path, "record_count": rows, "file_size_bytes": 1000}, **more)


def append(catalog, *files, **more):
    group = {"namespace": "n", "table": "t", "files": list(files) or [file(catalog)]}
    return dict({"appends": [group]}, **more)


def prepared(catalog, **more):
    return append(catalog, idempotency_key=str(uuid.uuid4()), **more)


# --- contract ---------------------------------------------------------------------------------

def test_catalog_names_paths_and_capabilities(server):
    catalog, _, _ = lake(server)
    name = catalog[len("/catalogs/"):]
    assert "atomic-sorted-table-creation-v1" in ok(server, "GET", catalog)["capabilities"]
    refused(server, 409, "already_exists", "POST", "/catalogs", {"name": name, "data_path": "s3://b/q"})
    refused(server, 422, "validation", "POST", "/catalogs",
            {"name": "other-" + name, "data_path": "s3://b/%s/inside" % name})
    for bad in ("Abc", "", "-a", "a" * 64, "a.b", "ä"):
        refused(server, 422, "validation", "POST", "/catalogs", {"name": bad, "data_path": "s3://q/q"})
    refused(server, 400, "bad_request", "POST", "/catalogs",
            {"name": "q", "data_path": "s3://q/q", "unknown": 1})
    refused(server, 400, "bad_request", "POST", "/catalogs", {"name": "q"})
    refused(server, 404, "not_found", "GET", "/catalogs/nope")


def test_bodies_must_be_json_objects(server):
    for raw in (b"", b"null", b"[]", b"{", b'{"name":1e999}', b"\xff\xfe"):
        refused(server, 400, "bad_request", "POST", "/catalogs", raw=raw)
    refused(server, 400, "bad_request", "POST", "/catalogs", raw=b"{}",
            headers={"Content-Type": "text/plain"})
    refused(server, 400, "bad_request", "POST", "/catalogs", raw=b"[" * 100000)


def test_request_ids_are_echoed_or_made(server):
    _, _, headers = hoglaked.request(server.url + "/livez", headers={"X-Request-Id": "a.b-C_1"})
    assert headers["X-Request-Id"] == "a.b-C_1"
    _, _, headers = hoglaked.request(server.url + "/livez", headers={"X-Request-Id": "a b"})
    assert headers["X-Request-Id"] != "a b"
    assert hoglaked.request(server.url + "/healthz/")[0] == 404


def test_openapi_lists_what_is_served(server):
    """Each listed operation has a route, and every route of the table is listed."""
    text = hoglaked.request(server.url + "/openapi.yaml")[1]
    with open(os.path.join(services.TOP, "src/server/openapi.yaml")) as document:
        assert text == document.read()
    with open(os.path.join(services.TOP, "src/server/route.c")) as source:
        routes = source.read().split("enum { ROUTES")[0].count(" mp_route_")
    listed = [(method.upper(), path) for path, item in DOCUMENT.tree["paths"].items() for method in item
              if method != "parameters"]
    assert len(set(listed)) == len(listed) == routes, (len(listed), routes)
    for method, path in listed:
        asked = re.sub(r"\{[a-z_]+\}", str(uuid.UUID(int=7)), path)
        status, answer, _ = hoglaked.request(server.url + asked, method, {} if method != "GET" else None)
        assert status != 405 and "nothing at this path" not in str(answer), (method, path, answer)
    for name in ("/livez", "/healthz", "/readyz", "/metrics", "/openapi.yaml"):
        DOCUMENT.check("GET", name, None, *hoglaked.request(server.url + name)[:2])


def test_what_no_other_case_asks_for(server):
    """Each operation's answer is as described; see the last case."""
    catalog, table, made = lake(server)
    ok(server, "GET", "/info")
    assert ok(server, "GET", "/database/health")["server"]["version"]
    got = ok(server, "POST", "/debug/decode-bound", {"type": "decimal", "value": "BNI=", "type_params": {"scale": 2}})
    assert got == {"type": "decimal", "value": 12.34}
    assert ok(server, "GET", "/maintenance/runs?limit=1")["runs"] is not None
    mine = [c for c in ok(server, "GET", "/catalogs") if c["name"] == catalog[10:]][0]
    assert mine["oldest_snapshot_time"] == ok(server, "GET", catalog + "/snapshots?after=-1")["snapshots"][0]["snapshot_time"]
    assert ok(server, "GET", catalog + "/namespaces") == [ok(server, "GET", catalog + "/namespaces/n")]
    assert [t["name"] for t in ok(server, "GET", catalog + "/namespaces/n/tables")] == ["t"]
    assert ok(server, "GET", table + "/partitions/values") == {"spec_id": -1, "fields": []}
    ok(server, "POST", table + "/alter", {"ops": [{"op": "set_partition_spec", "fields": [
        {"source_field_id": 1, "transform": "bucket", "transform_param": 4}]}]})
    ok(server, "POST", catalog + "/commit", append(catalog, file(catalog, partition_values=["3"]),
                                                   file(catalog, partition_values=[None]), read_snapshot=3))
    values = ok(server, "GET", table + "/partitions/values")["fields"][0]
    assert values["values"] in (["3", None], [None, "3"]) and values["transform_param"] == 4, values
    view = {"name": "v", "sql": "s"}
    ok(server, "POST", catalog + "/namespaces/n/views", view)
    assert ok(server, "GET", catalog + "/namespaces/n/views/v")["dialect"] == "trino"
    assert ok(server, "GET", catalog + "/options") == {"consumer_floor": True, "earliest_snapshot_id": 0}
    offset = catalog + "/consumers/c/offsets/" + made["table_uuid"]
    refused(server, 404, "not_found", "GET", offset)
    put = ok(server, "PUT", offset, {"snapshot_id": 2})
    assert ok(server, "GET", offset) == put and ok(server, "GET", catalog + "/consumers/c/offsets") == [put]
    assert ok(server, "POST", catalog + "/maintenance/compact?batch=1")["groups_compacted"] == 0
    assert ok(server, "POST", catalog + "/maintenance/rehydrate") == {"requeued": 0}
    owner, upload = str(uuid.uuid4()), str(uuid.uuid4())
    claim = ok(server, "PUT", catalog + "/uploads/" + upload, {
        "owner": owner, "prefix": "s3://b%s/data" % catalog[9:], "file_kind": "data"})
    assert ok(server, "POST", catalog + "/uploads/renew", {"owner": owner}) == {"renewed": 1}
    assert ok(server, "POST", catalog + "/uploads/abandon", {"owner": owner, "paths": [claim["path"]]}) == {"abandoned": 1}
    refused(server, 422, "validation", "POST", catalog + "/uploads/abandon", {"owner": owner, "paths": ["a\0"]})
    assert ok(server, "POST", catalog + "/uploads/schedule-expired") == {"scheduled": 1}
    deletes = {"idempotency_key": str(uuid.uuid4()), "read_snapshot": 4, "deletes": [
        {"namespace": "n", "table": "t", "expected_table_uuid": made["table_uuid"], "files": []}]}
    assert ok(server, "POST", catalog + "/commit/deletes/prepared", deletes)["snapshot_id"] == 6
    definition = {"namespace": "n", "name": "w", "columns": [{"name": "a", "type": "int", "comment": "c"}],
                  "comment": "t", "properties": {"k": "v"}}
    creation = catalog + "/table-creations/"
    done = ok(server, "PUT", creation + str(uuid.uuid4()) + "/metadata", definition)
    assert ok(server, "GET", creation + done["operation_id"]) == done
    sort = [{"source_field_id": 1, "direction": "asc", "null_order": "nulls_last"}]
    del definition["comment"], definition["properties"], definition["columns"][0]["comment"]
    assert ok(server, "PUT", creation + str(uuid.uuid4()) + "/sorted", dict(definition, sort_fields=sort))["state"] == "prepared"
    operation = str(uuid.uuid4())
    plain = ok(server, "PUT", creation + operation, definition)
    claimed = ok(server, "PUT", catalog + "/uploads/" + str(uuid.uuid4()), {
        "owner": operation, "prefix": plain["write_path"].rstrip("/"), "file_kind": "data"})
    done = ok(server, "POST", creation + operation + "/commit/uploads", {"files": [
        {"path": claimed["path"], "record_count": 1, "file_size_bytes": 99, "footer_size": 9}]})
    assert done["state"] == "committed", done


def test_query_parameters_are_read_strictly_or_not_at_all(server):
    catalog, table, _ = lake(server)
    for name, path in (("snapshot", table), ("limit", catalog + "/snapshots"), ("before", catalog + "/maintenance/runs"),
                       ("limit", table + "/partitions"), ("limit", catalog + "/stats/partitions")):
        for bad in ("", "%201", "1%20", "1.0", "1e0", "0x1", "x", "9223372036854775808"):
            refused(server, 400, "bad_request", "GET", path + "?%s=%s" % (name, bad))
    for path in (catalog, catalog + "/namespaces/n", catalog + "/namespaces/n/views", table + "/partitions",
                 catalog + "/options", catalog + "/consumers"):  # they know no snapshot
        ok(server, "GET", path + "?snapshot=999&at_timestamp=x&unheard=of")


def test_refusals_are_json_whatever_they_quote(server):
    """A name that is shown cut does not leave half a character behind."""
    catalog, table, _ = lake(server)
    for ascii in range(4):
        name = "a" * ascii + "\U0001f600" * 400
        quoted = urllib.parse.quote(name)
        for method, path, body in (
                ("POST", "/catalogs", {"name": name, "data_path": "s3://q/q"}),
                ("POST", "/catalogs", {"name": "q", "data_path": name}),
                ("POST", catalog + "/namespaces", {name: 1}),
                ("POST", table[:-2], {"name": "q", "columns": [{"name": name, "type": "int"}]}),
                ("POST", table[:-2], {"name": "q", "columns": [{"name": "a", "type": name}]}),
                ("POST", table + "/alter", {"ops": [{"op": "drop_column", "name": name}]}),
                ("POST", catalog + "/commit", append(catalog, *[dict(file(catalog), path=name)] * 6)),
                ("GET", "/catalogs/" + quoted, None), ("GET", catalog + "/namespaces/n/views/" + quoted, None)):
            status, answer = call(server, method, path, body)
            assert status in (400, 404, 422) and isinstance(answer, dict) and answer["detail"], (path, status, answer)


def test_numbers_at_the_end_of_their_range(server):
    """Sums that do not fit are refused, and one catalog's do not spoil what others ask."""
    catalog, table, _ = lake(server)
    most = 2 ** 63 - 1
    ok(server, "POST", catalog + "/commit", append(catalog, file(catalog, file_size_bytes=most)))
    refused(server, 422, "validation", "POST", catalog + "/commit", append(catalog, file(catalog, file_size_bytes=1)))
    ok(server, "POST", catalog + "/commit", append(catalog, file(catalog, file_size_bytes=0)))
    half = append(catalog, *[file(catalog, rows=2 ** 48, file_size_bytes=0) for _ in range(2 ** 14)])
    ok(server, "POST", catalog + "/commit", half)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:  # those in one transaction are summed first
        got = list(pool.map(lambda _: call(server, "POST", catalog + "/commit", half)[0], range(8)))
    assert got == [422] * 8, got
    ok(server, "POST", catalog + "/namespaces/n/tables", {"name": "u", "columns": [{"name": "a", "type": "int"}]})
    ok(server, "POST", catalog + "/commit", {"appends": [{"namespace": "n", "table": "u", "files": [
        file(catalog, file_size_bytes=most)]}]})
    mine = [c for c in ok(server, "GET", "/catalogs") if c["name"] == catalog[10:]][0]
    assert mine["live_size_bytes"] == most and mine["live_rows"] == 2 ** 62 + 30, mine
    assert ok(server, "GET", table)["record_count"] == 2 ** 62 + 20
    assert ok(server, "GET", table + "/partitions")["partitions"][0]["total_bytes"] == most
    ok(server, "PATCH", catalog + "/options", {"snapshot_retention_seconds": most})
    assert ok(server, "POST", catalog + "/maintenance/expire")["snapshots_expired"] == 0
    ok(server, "POST", catalog + "/maintenance/cleanup")


def test_bounds_are_decoded_or_refused_by_name(server):
    def decode(status, **body):
        got, answer = call(server, "POST", "/debug/decode-bound", body)
        assert got == status, (body, got, answer)
        return answer
    assert decode(200, type="INT", value="AQAAAA==") == {"type": "int", "value": 1}
    assert decode(200, type="decimal", value="BNI=", type_params={"precision": 9, "scale": None})["value"] == 1234
    assert decode(200, type="binary", value="A" * 1364 + "AA==")["type"] == "binary"  # 1024 bytes
    for bad in (dict(type="decimal", value="BNI=", type_params={"scale": 39}),
                dict(type="decimal", value="BNI=", type_params={"scale": -1}),
                dict(type="decimal", value="BNI=", type_params={"scale": "2"}),
                dict(type="decimal", value="BNI=", type_params={"precision": 5, "scale": 6}),
                dict(type="int", value="AQ=="), dict(type="int", value="!"), dict(type="double", value="AAAAAAAA+H8="),
                dict(type="string", value="/w=="), dict(type="list", value="AQ=="), dict(type="variant", value="AQ=="),
                dict(type="timetz", value="AQ=="), dict(type="binary", value="A" * 1364 + "AAA=")):
        assert decode(422, **bad)["detail"]
    for bad in (dict(type="int"), dict(value="AQ=="), dict(type="int", value=1), dict(type="int", value="AQ==", more=1)):
        decode(400, **bad)


def test_docs_list_every_setting(_):
    """Name, default and meaning, as the program prints them where nothing is set."""
    text = subprocess.run([hoglaked.HOGLAKED, "--settings"], env={}, capture_output=True, text=True, check=True).stdout
    printed = [re.fullmatch(r"(\w+)=(.*?)  # (.*)", line).groups() for line in text.splitlines()]
    with open(os.path.join(services.TOP, "docs/hoglaked.md")) as docs:
        listed = re.findall(r"^\| `(HOGLAKE_\w+)` \| (?:`(.*?)`)? ?\| (.*) \|$", docs.read(), re.M)
    assert [(n, "" if v == "(hidden)" else v, m) for n, v, m in printed] == listed, set(printed) ^ set(listed)


def test_catalog_drop_names_what_is_in_the_way(server):
    catalog, table, _ = lake(server)
    answer = refused(server, 409, "catalog_not_empty", "DELETE", catalog)
    assert answer["reason"] == "live_namespaces" and "(n)" in answer["detail"], answer
    refused(server, 409, "namespace_not_empty", "DELETE", catalog + "/namespaces/n")
    ok(server, "DELETE", table + "?author=a+b&message=c%20d")
    refused(server, 409, "commit_conflict", "DELETE", catalog + "/namespaces/n?expected_namespace_id=9")
    ok(server, "DELETE", catalog + "/namespaces/n?expected_namespace_id=1")
    assert ok(server, "DELETE", catalog)["data_path"].endswith("/")
    refused(server, 404, "not_found", "DELETE", catalog)


def test_all_types_and_nesting_come_back(server):
    types = ("boolean int8 int16 int long uint8 uint16 uint32 uint64 float double date time timestamp_s "
             "timestamp_ms timestamp timestamp_ns timestamptz string json uuid binary variant").split()
    columns = [{"name": "c_" + t, "type": t.upper()} for t in types]
    columns += [{"name": "d", "type": "decimal", "type_params": {"precision": 10, "scale": 2}},
                {"name": "l", "type": "list", "children": [
                    {"name": "element", "type": "struct", "children": [{"name": "a", "type": "int"}]}]},
                {"name": "m", "type": "map", "children": [
                    {"name": "key", "type": "string", "nullable": False},
                    {"name": "value", "type": "double"}]}]
    _, table, made = lake(server, columns)
    assert [c["type"] for c in made["columns"]] == types + ["decimal", "list", "map"]
    assert made["columns"][24]["children"][0]["children"][0]["field_id"] == 27
    assert made["snapshot_id"] == made["read_snapshot_id"] == 2
    read = ok(server, "GET", table + "?totals=false")
    assert "snapshot_id" not in read and read["columns"] == made["columns"]
    refused(server, 400, "bad_request", "GET", table + "?totals=maybe")


def test_alter_is_one_snapshot_and_all_or_nothing(server):
    catalog, table, made = lake(server)
    ops = [{"op": "add_column", "column": {"name": "s", "type": "struct", "children": [
               {"name": "a", "type": "int"}]}},
           {"op": "add_column", "parent": "s", "column": {"name": "b", "type": "int"}},
           {"op": "rename_column", "from": "s.a", "to": "aa"},
           {"op": "promote_column", "name": "s.b", "to": "long"},
           {"op": "set_table_comment", "comment": "c"},
           {"op": "set_column_comment", "name": "id", "comment": "key"},
           {"op": "set_properties", "properties": {"owner": "x"}},
           {"op": "set_partition_spec", "fields": [{"source_field_id": 1, "transform": "bucket",
                                                    "transform_param": 8}]},
           {"op": "set_sort_order", "sort_fields": [{"source_field_id": 1, "direction": "asc",
                                                     "null_order": "nulls_first"}]},
           {"op": "rename_table", "new_name": "u"}]
    after = ok(server, "POST", table + "/alter", {"ops": ops, "author": "me"})
    assert after["name"] == "u" and after["snapshot_id"] == made["snapshot_id"] + 1
    assert [c["name"] for c in after["columns"][2]["children"]] == ["aa", "b"]
    assert after["partition_spec"]["spec_id"] == after["sort_spec"]["sort_id"] == 1
    table = table[:-1] + "u"
    assert ok(server, "GET", table)["columns"] == after["columns"]
    for bad in ([{"op": "drop_column", "name": "id"}], [{"op": "drop_column", "name": "nope"}],
                [{"op": "promote_column", "name": "x", "to": "int"}],
                [{"op": "rename_column", "from": "id", "to": "x"}],
                [{"op": "rename_column", "from": "id", "to": "_hog"}],
                [{"op": "add_column", "column": {"name": "id", "type": "int"}}],
                [{"op": "add_column", "column": {"name": "q", "type": "int", "nullable": False}}],
                [{"op": "set_table_comment", "comment": "z"},
                 {"op": "set_partition_spec", "fields": [{"source_field_id": 99, "transform": "identity"}]}]):
        refused(server, 422, "validation", "POST", table + "/alter", {"ops": bad})
    for bad in ([], [{"op": "explode"}], [{"op": "drop_column"}], [None],
                [{"op": "drop_column", "name": "x", "more": 1}]):
        refused(server, 400, "bad_request", "POST", table + "/alter", {"ops": bad})
    assert ok(server, "GET", table)["comment"] == "c"
    assert ok(server, "GET", catalog)["head_snapshot_id"] == after["snapshot_id"]


def test_alter_guards(server):
    catalog, table, made = lake(server)
    comment = {"ops": [{"op": "set_table_comment", "comment": "c"}]}
    ok(server, "POST", table + "/alter?read_snapshot=2&expected_table_uuid=" + made["table_uuid"], comment)
    answer = refused(server, 409, "ddl_since_read_snapshot", "POST", table + "/alter?read_snapshot=2",
                     comment)
    assert answer["tables"] == ["n.t"] and answer["retry"] == "re-prepare"
    answer = refused(server, 409, "table_recreated", "POST",
                     table + "/alter?expected_table_uuid=" + str(uuid.uuid4()), comment)
    assert answer["tables"] == ["n.t"]
    refused(server, 422, "validation", "POST", table + "/alter?read_snapshot=99", comment)


def test_receipts_answer_replays_in_any_order_of_files(server):
    catalog, table, made = lake(server)
    body = prepared(catalog, author="a", read_snapshot=2)
    body["appends"][0]["files"].append(file(catalog, rows=5))
    body["appends"][0]["expected_table_uuid"] = made["table_uuid"]
    first = ok(server, "POST", catalog + "/commit/prepared", body)
    body["appends"][0]["files"].reverse()
    assert ok(server, "POST", catalog + "/commit/prepared", body) == first
    assert ok(server, "POST", catalog + "/commit", body) == first
    assert ok(server, "GET", catalog + "/commit/receipts/" + body["idempotency_key"])["snapshot_id"] == 3
    body["author"] = "b"
    answer = refused(server, 422, "validation", "POST", catalog + "/commit/prepared", body)
    assert answer["detail"] == "idempotency_key reused with a different request"
    ok(server, "DELETE", table)
    body["author"] = "a"
    assert ok(server, "POST", catalog + "/commit/prepared", body) == first
    refused(server, 409, "table_dropped", "POST", catalog + "/commit/prepared", prepared(catalog))
    refused(server, 422, "validation", "POST", catalog + "/commit/prepared", append(catalog))
    refused(server, 404, "not_found", "GET", catalog + "/commit/receipts/" + str(uuid.uuid4()))
    refused(server, 400, "bad_request", "GET", catalog + "/commit/receipts/nope")


def test_refused_commits_use_no_snapshot(server):
    catalog, table, made = lake(server)
    stats = {"field_id": 1, "value_count": 10, "null_count": 0}
    bad = [file(catalog, rows=-1), file(catalog, rows=2 ** 48 + 1), file(catalog, file_size_bytes=-1),
           file(catalog, footer_size=993), file(catalog, partition_values=["1"]),
           file(catalog, column_stats=[dict(stats, field_id=9)]), file(catalog, column_stats=[stats, stats]),
           file(catalog, column_stats=[dict(stats, value_count=-1)]), file(catalog, split_offsets=[]),
           file(catalog, split_offsets=[5, 5]), file(catalog, split_offsets=[1000]),
           dict(file(catalog), path="s3://b/elsewhere/x"), dict(file(catalog), path="s3://b%s/a/../b" % catalog[9:]),
           dict(file(catalog), path="s3://b%s/" % catalog[9:])]
    for one in bad:
        refused(server, 422, "validation", "POST", catalog + "/commit", append(catalog, one))
    for body in ({}, {"appends": []}, {"appends": [{"namespace": "n", "table": "t", "files": []}]},
                 {"appends": [{"namespace": "n", "table": "zz", "files": [file(catalog)]}]},
                 append(catalog, read_snapshot=-1), append(catalog, read_snapshot=99)):
        refused(server, 422, "validation", "POST", catalog + "/commit", body)
    for body in ({"appends": [None]}, {"appends": {}}, append(catalog, idempotency_key="x"),
                 append(catalog, dict(file(catalog), more=1)), {"what": 1},
                 append(catalog, dict(file(catalog), record_count="1"))):
        refused(server, 400, "bad_request", "POST", catalog + "/commit", body)
    wrong = append(catalog)
    wrong["appends"][0]["expected_table_uuid"] = str(uuid.uuid4())
    refused(server, 409, "table_recreated", "POST", catalog + "/commit", wrong)
    assert ok(server, "GET", catalog)["head_snapshot_id"] == 2


def test_statistics_are_repaired(server):
    catalog, table, _ = lake(server)
    one = file(catalog, column_stats=[
        {"field_id": 2, "value_count": 4, "null_count": 9, "nan_count": 3, "size_bytes": -1,
         "lower_bound": "AAAAAAAAAAA=", "upper_bound": "AAAAAAAA8D8="},
        {"field_id": 1, "value_count": 4, "null_count": 0, "nan_count": 1,
         "lower_bound": "AgAAAAAAAAA=", "upper_bound": "AQAAAAAAAAA="}])
    ok(server, "POST", catalog + "/commit", append(catalog, one))
    listed = ok(server, "GET", table + "/scan?include=column_stats")[0]["data_file"]
    assert listed["column_stats"] == [
        {"field_id": 1, "value_count": 4, "null_count": 0, "lower_bound": None, "upper_bound": None},
        {"field_id": 2, "value_count": 4, "null_count": 4, "nan_count": 0, "lower_bound": None,
         "upper_bound": None}], listed
    refused(server, 422, "validation", "GET", table + "/scan?stats_fields=1")
    refused(server, 400, "bad_request", "GET", table + "/scan?include=")
    columns = ok(server, "GET", table + "/files/%d/stats" % listed["data_file_id"])["columns"]
    assert [c["path"] for c in columns] == ["id", "x"]


def test_promotion_widens_stored_bounds(server):
    catalog, table, _ = lake(server, [{"name": "a", "type": "int"}])
    ok(server, "POST", catalog + "/commit", append(catalog, file(catalog, column_stats=[
        {"field_id": 1, "value_count": 2, "null_count": 0, "lower_bound": "/////w==",
         "upper_bound": "AQAAAA=="}])))
    ok(server, "POST", table + "/alter", {"ops": [{"op": "promote_column", "name": "a", "to": "long"}]})
    stats = ok(server, "GET", table + "/scan?include=column_stats")[0]["data_file"]["column_stats"][0]
    assert (stats["lower_bound"], stats["upper_bound"]) == (-1, 1)
    catalog, table, _ = lake(server, [{"name": "a", "type": "int8"}] + [
        {"name": "f%d" % i, "type": "float"} for i in range(200)])
    ok(server, "POST", catalog + "/commit", append(catalog, file(catalog, column_stats=[
        {"field_id": 1, "value_count": 2, "null_count": 0, "lower_bound": "gP///w==", "upper_bound": "AQAAAA=="},
        {"field_id": 201, "value_count": 2, "null_count": 0, "lower_bound": "AAAgwA==", "upper_bound": "AAAgQA=="}])))
    ok(server, "POST", table + "/alter", {"ops": [
        {"op": "promote_column", "name": "a", "to": t} for t in ("int16", "int", "long")] + [
        {"op": "promote_column", "name": "f%d" % i, "to": "double"} for i in range(200)]})
    stats = ok(server, "GET", table + "/scan?include=column_stats")[0]["data_file"]["column_stats"]
    assert [(s["field_id"], s["lower_bound"], s["upper_bound"]) for s in stats] == [(1, -128, 1), (201, -2.5, 2.5)]


def test_conflict_window(server):
    catalog, table, made = lake(server)
    ok(server, "POST", catalog + "/commit", append(catalog))
    ok(server, "POST", catalog + "/commit", append(catalog, read_snapshot=2))
    ok(server, "POST", table + "/alter", {"ops": [{"op": "set_table_comment", "comment": "x"}]})
    answer = refused(server, 409, "ddl_since_read_snapshot", "POST", catalog + "/commit",
                     append(catalog, file(catalog, column_stats=[{"field_id": 77, "value_count": 1,
                                                                  "null_count": 0}]), read_snapshot=4))
    assert answer["read_snapshot"] == 4 and answer["tables"] == ["n.t"]
    ok(server, "POST", catalog + "/commit", append(catalog, read_snapshot=5))


def test_partition_values_and_filters(server):
    catalog, table, _ = lake(server)
    ok(server, "POST", table + "/alter", {"ops": [{"op": "set_partition_spec", "fields": [
        {"source_field_id": 1, "transform": "identity"}, {"source_field_id": 2, "transform": "identity"}]}]})
    odd = 'a"b\\c,{}NULL'
    files = [file(catalog, partition_values=["1", None]), file(catalog, partition_values=["1", odd]),
             file(catalog, partition_values=["", "NULL"])]
    ok(server, "POST", catalog + "/commit", append(catalog, *files, read_snapshot=3))
    listed = ok(server, "GET", table + "/files")
    assert [f["partition_values"] for f in listed] == [["1", None], ["1", odd], ["", "NULL"]], listed
    assert len(ok(server, "GET", table + "/files?partition=0:1")) == 2
    assert len(ok(server, "GET", table + "/files?partition=1:" + urllib.parse.quote(odd))) == 1
    refused(server, 400, "bad_request", "GET", table + "/files?partition=x")
    refused(server, 422, "validation", "GET", table + "/files?partition=2:x")
    refused(server, 400, "bad_request", "GET", table + "/files?sort=color")
    assert [f["data_file_id"] for f in ok(server, "GET", table + "/files?sort=id&order=desc&limit=2")] == [3, 2]
    refused(server, 422, "validation", "POST", catalog + "/commit", append(catalog))
    assert ok(server, "GET", table + "/partitions")["total"] == 3


def test_partitions_are_listed_filtered_and_decoded(server):
    catalog, table, _ = lake(server, [{"name": "at", "type": "timestamp"}, {"name": "s", "type": "struct", "children": [
        {"name": "k", "type": "string"}]}, {"name": "n", "type": "long"}])
    def spec(*fields):
        ok(server, "POST", table + "/alter", {"ops": [{"op": "set_partition_spec", "fields": [
            dict({"source_field_id": f, "transform": t}, **({"transform_param": p} if p else {}))
            for f, t, p in fields]}]})
    def listed(query=""):
        got = ok(server, "GET", table + "/partitions" + query)
        return got, [[v["decoded"] for v in p["values"]] for p in got["partitions"]]
    assert ok(server, "GET", table + "/partitions")["total"] == 0
    ok(server, "POST", catalog + "/commit", append(catalog))
    spec((1, "year", None), (1, "month", None))
    ok(server, "POST", catalog + "/commit", append(
        catalog, file(catalog, partition_values=["56", "680"]), file(catalog, partition_values=["-70", "-839"]),
        read_snapshot=ok(server, "GET", catalog)["head_snapshot_id"]))
    got, decoded = listed()
    assert decoded == [["1900", "1900-02"], ["2026", "2026-09"], []], got
    assert got["stale_spec_groups"] == 1 and got["spec"] == {"spec_id": 1, "fields": [
        {"field": "at", "transform": "year", "source_field_id": 1},
        {"field": "at", "transform": "month", "source_field_id": 1}]}, got
    spec((1, "day", None), (1, "hour", None), (3, "identity", None), (4, "bucket", 8))
    files = [["20701", "496825", 'a"b', "3"], ["20701", "496825", "abc", "7"], ["-1", "-1", None, "0"],
             [None, "x", "", "1"]]
    ok(server, "POST", catalog + "/commit", append(
        catalog, *[file(catalog, partition_values=f) for f in files],
        read_snapshot=ok(server, "GET", catalog)["head_snapshot_id"]))
    got, decoded = listed("?sort=files")
    assert got["stale_spec_groups"] == 3 and got["total"] == 7, got
    at = ["2026-09-05", "2026-09-05T01:00"]
    want = [at + ['a"b', 3], at + ["abc", 7], ["1969-12-31", "1969-12-31T23:00", None, 0], [None, None, "", 1]]
    assert all(w in decoded for w in want), decoded
    raw = [p["values"] for p in got["partitions"] if p.get("spec_id") == 2]
    assert {"field": "s.k", "raw": 'a"b', "decoded": 'a"b'} in [v for values in raw for v in values], raw
    assert listed("?filter=2:a")[1] == sorted(want[:2]) and listed("?filter=2:a&filter=3:7")[1] == [want[1]]
    assert listed("?filter=2:")[1] == [want[2]] and listed("?filter=0:207&limit=1")[0]["total"] == 2
    behind = listed("?offset=7")  # behind the last page, and a filter that nothing passes
    assert (behind[0]["total"], behind[0]["stale_spec_groups"], behind[1]) == (7, 3, []), behind
    assert listed("?offset=%d&limit=1000" % (2 ** 63 - 1))[0]["total"] == 7
    nothing = listed("?filter=2:zz")[0]
    assert (nothing["total"], nothing["stale_spec_groups"]) == (0, 3), nothing
    assert listed("?sort=rows&limit=3&offset=2")[1] + listed("?sort=rows&limit=3&offset=5")[1] == listed("?sort=rows")[1][2:]
    refused(server, 422, "validation", "GET", table + "/partitions?filter=4:x")
    refused(server, 400, "bad_request", "GET", table + "/partitions?filter=x:1")
    report = ok(server, "GET", catalog + "/stats/partitions?namespace=n")["partitions"]
    assert {"field": "k", "value": "abc"} in [v for p in report for v in p["partition_values"]], report


def test_partition_report_counts_vectors_and_stale_groups(server):
    catalog, table, _ = lake(server)
    ok(server, "POST", catalog + "/namespaces", {"name": "m"})
    ok(server, "POST", catalog + "/namespaces/m/tables", {"name": "u", "columns": [{"name": "a", "type": "int"}]})
    ok(server, "POST", catalog + "/commit", {"appends": [{"namespace": "m", "table": "u", "files": [
        file(catalog, file_size_bytes=2 ** 30), file(catalog)]}]})
    ok(server, "POST", catalog + "/commit", append(catalog, file(catalog)))
    def spec(*fields):
        ok(server, "POST", table + "/alter", {"ops": [{"op": "set_partition_spec", "fields": [
            {"source_field_id": f, "transform": "identity"} for f in fields]}]})
    def report(query=""):
        got = ok(server, "GET", catalog + "/stats/partitions" + query)
        return got["stale_spec_groups"], got["truncated"], [
            (p["table"], [v["value"] for v in p["partition_values"]], p["file_count"], p["small_file_count"],
             p["dv_count"], p["debt_score"]) for p in got["partitions"]]
    assert report() == (0, False, [("u", [], 2, 1, 0, 1), ("t", [], 1, 1, 0, 1)]), report()
    spec(1)
    head = ok(server, "GET", catalog)["head_snapshot_id"]
    files = [file(catalog, partition_values=[v]) for v in ("a", "a", "a", "b", None)]
    ok(server, "POST", catalog + "/commit", append(catalog, *files, read_snapshot=head))
    ids = {f["path"]: f["data_file_id"] for f in ok(server, "GET", table + "/files")}
    for count in (3, 4):  # the second takes the place of the first
        ok(server, "POST", catalog + "/commit", {"read_snapshot": ok(server, "GET", catalog)["head_snapshot_id"],
            "deletes": [{"namespace": "n", "table": "t", "files": [
                {"data_file_id": ids[f["path"]], "path": f["path"] + ".%d.puffin" % count, "delete_count": count,
                 "file_size_bytes": 9} for f in (files[0], files[1], files[3])]}]})
    a, b, none, old, u = (("t", ["a"], 3, 3, 2, 3), ("t", ["b"], 1, 1, 1, 1), ("t", [None], 1, 1, 0, 1),
                          ("t", [], 1, 1, 0, 1), ("u", [], 2, 1, 0, 1))
    assert report() == (1, False, [a, u, b, none, old]), report()
    assert report("?limit=1") == (1, True, [a]) and report("?namespace=m") == (0, False, [u])
    assert report("?namespace=n&table=t&limit=4") == (1, False, [a, b, none, old])
    assert report("?namespace=m&table=t") == (0, False, [])
    spec(2)
    assert report()[0] == 4 and report("?namespace=n")[0] == 4 and report("?namespace=m")[0] == 0
    spec()  # of files without a partition now none is stale
    assert report()[0] == 3 and ok(server, "GET", table + "/partitions")["stale_spec_groups"] == 3
    refused(server, 422, "validation", "GET", catalog + "/stats/partitions?table=t")
    refused(server, 404, "not_found", "GET", "/catalogs/nope/stats/partitions")


def test_files_tell_the_bounds_of_the_order(server):
    catalog, table, _ = lake(server)
    ok(server, "POST", catalog + "/commit", append(
        catalog, file(catalog, "a", column_stats=[{"field_id": 2, "value_count": 2, "null_count": 0, "lower_bound":
                                                   "AAAAAAAA4D8=", "upper_bound": "AAAAAAAA+D8="}]),
        file(catalog, "b", column_stats=[{"field_id": 2, "value_count": 2, "null_count": 2}]),
        file(catalog, "c", column_stats=[]), file(catalog, "d")))
    assert not any("ordering_bounds" in f for f in ok(server, "GET", table + "/files"))
    ok(server, "POST", table + "/alter", {"ops": [{"op": "set_sort_order", "sort_fields": [
        {"source_field_id": 2, "direction": "desc", "null_order": "nulls_last"}]}]})
    assert [f.get("ordering_bounds") for f in ok(server, "GET", table + "/files")] == [
        {"field_id": 2, "lower_bound": 0.5, "upper_bound": 1.5},
        {"field_id": 2, "lower_bound": None, "upper_bound": None}, None, None]


def test_deletion_vectors(server):
    catalog, table, _ = lake(server)
    ok(server, "POST", catalog + "/commit", append(catalog))
    def delete(count, snapshot=None, target=1, **more):
        body = dict({"deletes": [dict({"namespace": "n", "table": "t", "files": [
            {"data_file_id": target, "path": file(catalog)["path"] + ".puffin", "delete_count": count,
             "file_size_bytes": 9}]}, **more)]}, **({"read_snapshot": snapshot} if snapshot else {}))
        return body
    refused(server, 422, "validation", "POST", catalog + "/commit", delete(1))
    refused(server, 422, "validation", "POST", catalog + "/commit", delete(11, 3))
    refused(server, 422, "validation", "POST", catalog + "/commit", delete(1, 3, target=99))
    ok(server, "POST", catalog + "/commit", delete(5, 3))
    refused(server, 409, "commit_conflict", "POST", catalog + "/commit", delete(6, 3))
    refused(server, 422, "validation", "POST", catalog + "/commit", delete(4, 4))
    ok(server, "POST", catalog + "/commit", delete(10, 4))
    plan = ok(server, "GET", table + "/scan")
    assert plan[0]["delete_file"]["delete_count"] == 10
    assert ok(server, "GET", table + "/scan?snapshot=4")[0]["delete_file"]["delete_count"] == 5
    changes = ok(server, "GET", table + "/changes?from_snapshot=0")
    assert [d["delete_count"] for d in changes["delete_files"]] == [5, 10] and len(changes["files"]) == 1
    live = ok(server, "GET", table)
    body = dict(delete(10, 5, expected_table_uuid=live["table_uuid"]), idempotency_key=str(uuid.uuid4()))
    first = ok(server, "POST", catalog + "/commit/mutations/prepared", body)
    assert ok(server, "POST", catalog + "/commit/mutations/prepared", body) == first
    ok(server, "POST", catalog + "/commit", append(catalog))
    body["idempotency_key"] = str(uuid.uuid4())
    refused(server, 409, "commit_conflict", "POST", catalog + "/commit/mutations/prepared", body)
    new = file(catalog)
    both = append(catalog, new, idempotency_key=str(uuid.uuid4()), read_snapshot=7)
    both["appends"][0]["expected_table_uuid"] = live["table_uuid"]
    both["deletes"] = delete(1, expected_table_uuid=live["table_uuid"])["deletes"]
    both["deletes"][0]["files"][0].update(data_file_id=0, data_file_path=new["path"])
    refused(server, 422, "validation", "POST", catalog + "/commit/mutations/prepared", both)
    ok(server, "POST", catalog + "/commit/transaction", both)
    assert [i.get("delete_file", {}).get("delete_count") for i in ok(server, "GET", table + "/scan")] == [10, None, 1]


def test_truncate_is_a_barrier(server):
    catalog, table, made = lake(server)
    ok(server, "POST", catalog + "/commit", append(catalog))
    refused(server, 400, "bad_request", "POST", table + "/truncate")
    guard = table + "/truncate?expected_table_uuid=" + made["table_uuid"]
    ok(server, "POST", guard, {"author": "a", "message": "b"})
    assert ok(server, "GET", table + "/files") == []
    refused(server, 409, "reconciliation_required", "GET", table + "/changes?from_snapshot=3")
    assert ok(server, "GET", table + "/changes?from_snapshot=4")["files"] == []
    ok(server, "POST", catalog + "/commit", append(catalog))
    assert ok(server, "GET", table + "/files")[0]["row_id_start"] == 10
    assert ok(server, "GET", table)["record_count"] == 10


def test_time_travel_and_snapshots(server):
    catalog, table, _ = lake(server)
    for _ in range(5):
        ok(server, "POST", catalog + "/commit", append(catalog))
    page = ok(server, "GET", catalog + "/snapshots?after=-1")["snapshots"]
    assert [s["snapshot_id"] for s in page] == list(range(8)) and page[0]["changes"] == []
    times = [s["snapshot_time"] for s in page]
    for s in page:
        got = ok(server, "GET", catalog + "/snapshots/resolve?at_timestamp=" +
                 urllib.parse.quote(s["snapshot_time"]))
        assert got == {"snapshot_id": s["snapshot_id"], "snapshot_time": s["snapshot_time"]}
    assert len(set(times)) == 8
    back = ok(server, "GET", catalog + "/snapshots?before=7&limit=2")
    assert [s["snapshot_id"] for s in back["snapshots"]] == [6, 5] and back["has_more"]
    refused(server, 422, "validation", "GET", catalog + "/snapshots?after=1&before=3")
    refused(server, 404, "not_found", "GET", table + "?snapshot=1")
    refused(server, 422, "validation", "GET", table + "?snapshot=%d" % 2 ** 62)
    refused(server, 410, "expired", "GET", table + "?at_timestamp=1970-01-01T00:00:00Z")
    refused(server, 400, "bad_request", "GET", table + "?at_timestamp=2026-01-01T00:00:00")
    refused(server, 422, "validation", "GET", table + "?snapshot=3&at_timestamp=2026-01-01T00:00:00Z")
    assert ok(server, "GET", table + "?snapshot=4")["record_count"] == 20


def test_expiry_cleanup_and_consumers(server):
    catalog, table, made = lake(server)
    for _ in range(4):
        ok(server, "POST", catalog + "/commit", append(catalog))
    offsets = catalog + "/consumers/con%2F1/offsets/"
    ok(server, "PUT", offsets + made["table_uuid"], {"snapshot_id": 4})
    refused(server, 409, "offset_regression", "PUT", offsets + made["table_uuid"], {"snapshot_id": 3})
    refused(server, 422, "validation", "PUT", offsets + str(uuid.uuid4()), {"snapshot_id": 3})
    refused(server, 422, "validation", "PUT", offsets + made["table_uuid"], {"snapshot_id": 99})
    refused(server, 422, "validation", "PATCH", catalog + "/options", {"snapshot_retention_seconds": 0})
    refused(server, 400, "bad_request", "PATCH", catalog + "/options", {"consumer_floor": None})
    ok(server, "PATCH", catalog + "/options", {"snapshot_retention_seconds": 1})
    time.sleep(2.1)
    done = ok(server, "POST", catalog + "/maintenance/expire")
    assert done["new_earliest_snapshot_id"] == 4 and done["floored_by_consumer"] == "con/1", done
    ok(server, "PATCH", catalog + "/options", {"consumer_floor": False})
    done = ok(server, "POST", catalog + "/maintenance/expire?batch=1")
    assert (done["snapshots_expired"], done["new_earliest_snapshot_id"]) == (1, 5), done
    refused(server, 410, "expired", "GET", table + "?snapshot=4")
    refused(server, 410, "expired", "POST", catalog + "/commit", append(catalog, read_snapshot=4))
    refused(server, 410, "expired", "GET", table + "/changes?from_snapshot=3")
    refused(server, 422, "validation", "POST", catalog + "/maintenance/expire?batch=0")
    assert ok(server, "POST", catalog + "/maintenance/cleanup")["still_referenced"] == 0
    assert ok(server, "GET", catalog + "/maintenance/runs")["runs"]
    assert ok(server, "GET", catalog + "/consumers")["consumers"][0]["offsets"][0]["table_name"] == "t"


def test_views(server):
    catalog, _, _ = lake(server)
    views = catalog + "/namespaces/n/views"
    ok(server, "POST", views, {"name": "v", "sql": "SELECT 'é'"})
    refused(server, 409, "already_exists", "POST", views, {"name": "v", "sql": "x"})
    for blank in ("", " \n", "\u00a0\u2003", "\u3000"):
        refused(server, 422, "validation", "POST", views, {"name": "w", "sql": blank})
        refused(server, 422, "validation", "POST", views, {"name": "w", "sql": "s", "dialect": blank})
    refused(server, 422, "validation", "POST", views, {"name": "w", "sql": "a\0b"})
    assert ok(server, "GET", views)[0]["sql"] == "SELECT 'é'"
    ok(server, "DELETE", views + "/v")
    refused(server, 404, "not_found", "GET", views + "/v")


def test_two_phase_creation(server):
    catalog, table, _ = lake(server)
    def definition(name, **more):
        return dict({"namespace": "n", "name": name, "columns": [{"name": "a", "type": "long"}]}, **more)
    keys = dict(partition_fields=[{"source_field_id": 1, "transform": "identity"}])
    base = catalog + "/table-creations/"
    op = base + str(uuid.uuid4())
    made = ok(server, "PUT", op + "/partitioned", definition("p", **keys))
    assert made["state"] == "prepared"
    assert ok(server, "PUT", op + "/partitioned", definition("p", **keys)) == made
    refused(server, 409, "commit_conflict", "PUT", op + "/partitioned", definition("q", **keys))
    refused(server, 422, "validation", "PUT", base + str(uuid.uuid4()), definition("p", **keys))
    refused(server, 422, "validation", "PUT", base + str(uuid.uuid4()) + "/sorted", definition("p", **keys))
    for same in (dict(sort_fields=[]), dict(comment=None, properties=None, replacement=None), dict(author=None),
                 dict(columns=[{"type": "long", "nullable": True, "comment": None, "name": "a"}])):
        assert ok(server, "PUT", op + "/partitioned", dict(definition("p", **keys), **same)) == made
    refused(server, 409, "commit_conflict", "PUT", op + "/partitioned", definition("p", author="a", **keys))
    commented = definition("p", columns=[{"name": "a", "type": "struct", "children": [
        {"name": "b", "type": "int", "comment": "c"}]}])
    refused(server, 422, "validation", "PUT", "/catalogs/nope/table-creations/" + str(uuid.uuid4()), commented)
    kept = definition("k", columns=[{"name": "a", "type": "int", "type_params": {"nullable": True, "x": None}}])
    assert ok(server, "PUT", base + str(uuid.uuid4()), kept)["columns"][0]["type_params"] == {"nullable": True, "x": None}
    one = {"path": made["write_path"] + "x.parquet", "record_count": 3, "file_size_bytes": 100,
           "partition_values": ["1"]}
    refused(server, 422, "validation", "POST", op + "/commit", {"files": [one]})
    one["footer_size"] = 50
    done = ok(server, "POST", op + "/commit", {"files": [one]})
    assert done["state"] == "committed" and done["snapshot_id"] == 3, done
    assert ok(server, "POST", op + "/commit", {"files": [one]}) == done
    assert ok(server, "POST", op + "/commit", {"files": [dict(one, column_stats=None)]}) == done
    refused(server, 409, "commit_conflict", "POST", op + "/commit", {"files": []})
    live = ok(server, "GET", catalog + "/namespaces/n/tables/p")
    assert live["partition_spec"]["spec_id"] == 1 and live["record_count"] == 3
    op = base + str(uuid.uuid4())
    ok(server, "PUT", op, definition("t"))
    assert ok(server, "POST", op + "/commit", {"files": []})["reason"] == "target_exists"
    op = base + str(uuid.uuid4())
    ok(server, "PUT", op, definition("z"))
    assert ok(server, "POST", op + "/abort")["reason"] == "client_abort"
    assert ok(server, "POST", op + "/commit", {"files": []})["state"] == "aborted"
    refused(server, 404, "not_found", "GET", base + str(uuid.uuid4()))


def test_creations_end_in_each_of_their_states(server):
    catalog, table, made = lake(server)
    columns = [{"name": "a", "type": "long"}]
    def prepare(name, namespace="n", **more):
        path = catalog + "/table-creations/" + str(uuid.uuid4())
        done = ok(server, "PUT", path, dict({"namespace": namespace, "name": name, "columns": columns}, **more))
        assert (done["state"], "reason" in done, "snapshot_id" in done) == ("prepared", False, False), done
        return path
    def ends(path, state, reason, *files):
        done = ok(server, "POST", path + "/commit", {"files": list(files)})
        assert (done["state"], done.get("reason")) == (state, reason), done
        assert ok(server, "GET", path) == ok(server, "POST", path + "/abort") == done  # for good
        assert ok(server, "POST", path + "/commit", {"files": list(files)}) == done
        return done
    def sql(statement, path):
        DB.query("hoglake", statement + " WHERE operation_id = %s", path.split("/")[-1])
    ok(server, "POST", catalog + "/namespaces", {"name": "m"})
    moved = prepare("p", "m")
    ok(server, "DELETE", catalog + "/namespaces/m")
    ok(server, "POST", catalog + "/namespaces", {"name": "m"})
    ends(moved, "rejected", "namespace_changed")
    ends(prepare("t"), "rejected", "target_exists")
    head = ok(server, "GET", catalog)["head_snapshot_id"]
    replaces = prepare("t", replacement={"expected_table_uuid": made["table_uuid"], "read_snapshot": head})
    ok(server, "POST", catalog + "/commit", append(catalog))
    ends(replaces, "rejected", "target_changed")
    late = prepare("late")
    sql("UPDATE hog_table_creation SET expires_us = 1", late)
    assert ok(server, "GET", late)["reason"] == "expired"
    ends(late, "aborted", "expired")
    stopped = prepare("stopped")
    assert ok(server, "POST", stopped + "/abort")["state"] == "aborted"
    ends(stopped, "aborted", "client_abort")
    old = prepare("old")  # by rules that have become stricter since
    sql("UPDATE hog_table_creation SET definition = replace(definition, '\"a\"', '\"_hog\"')", old)
    ends(old, "rejected", "definition_invalid")
    broken = prepare("broken")
    sql("UPDATE hog_table_creation SET definition = '{'", broken)
    refused(server, 500, "corrupt_definition", "GET", broken)
    refused(server, 500, "corrupt_definition", "POST", broken + "/commit", {"files": []})
    head = ok(server, "GET", catalog)["head_snapshot_id"]
    done = ends(prepare("made", author="a", message="b"), "committed", None)
    last = ok(server, "GET", catalog + "/snapshots?after=%d" % head)["snapshots"]
    assert [(s["snapshot_id"], s["schema_version"], s["author"], s["message"], [c["kind"] for c in s["changes"]])
            for s in last] == [(done["snapshot_id"], done["schema_version"], "a", "b", ["table_created"])], last


def test_replacement_is_a_barrier(server):
    catalog, table, made = lake(server)
    ok(server, "POST", catalog + "/commit", append(catalog))
    body = {"namespace": "n", "name": "t", "columns": [{"name": "b", "type": "int"}],
            "replacement": {"expected_table_uuid": made["table_uuid"], "read_snapshot": 3}}
    op = catalog + "/table-creations/" + str(uuid.uuid4())
    new = ok(server, "PUT", op, body)
    one = {"path": new["write_path"] + "x.parquet", "record_count": 3, "file_size_bytes": 100, "footer_size": 50}
    done = ok(server, "POST", op + "/commit", {"files": [one]})
    assert (done["state"], done["snapshot_id"]) == ("committed", 4), done
    live = ok(server, "GET", table)
    assert live["table_uuid"] == new["table_uuid"] != made["table_uuid"] and live["record_count"] == 3
    changes = {(c["kind"], c["object_id"]) for c in
               ok(server, "GET", catalog + "/snapshots?after=3")["snapshots"][0]["changes"]}
    assert changes == {("table_created", 2), ("table_dropped", 1), ("table_inserted_into", 2), ("table_altered", 2),
                       ("table_deleted_from", 2)}, changes
    refused(server, 409, "reconciliation_required", "GET", table + "/changes?from_snapshot=3")
    assert len(ok(server, "GET", table + "/changes?from_snapshot=4")["files"]) == 0
    assert len(ok(server, "GET", table + "/changes?from_snapshot=0&to_snapshot=3")["files"]) == 1
    again = catalog + "/table-creations/" + str(uuid.uuid4())
    ok(server, "PUT", again, dict(body, name="u", replacement=None))
    refused(server, 409, "commit_conflict", "PUT", catalog + "/table-creations/" + str(uuid.uuid4()), body)
    fresh = append(catalog, dict(one, path=one["path"] + "2"), read_snapshot=4)
    ok(server, "POST", catalog + "/commit", fresh)  # its own creation is no conflict
    refused(server, 409, "ddl_since_read_snapshot", "POST", catalog + "/commit", dict(fresh, read_snapshot=3))


def test_status_tells_the_last_runs(server):
    catalog, _, _ = lake(server)
    def last(where, name):
        status = ok(server, "GET", where)
        status = status if "tasks" in status else [c for c in status["catalogs"] if c["catalog"] == catalog[10:]][0]
        return [t for t in status["tasks"] if t["task"] == name][0]["last_run"]
    here = catalog + "/maintenance/status"
    assert last(here, "expiry") is None and last(here, "cleanup") is None
    ok(server, "POST", catalog + "/maintenance/expire")
    ok(server, "POST", catalog + "/maintenance/expire")
    runs = ok(server, "GET", catalog + "/maintenance/runs?task=expiry")["runs"]
    assert len(runs) == 2 and last(here, "expiry") == runs[0] and runs[0]["trigger"] == "manual", runs
    after = "/maintenance/status?limit=1&after=" + catalog[10:-1]
    assert last(after, "expiry") == runs[0] and last(after, "cleanup") is None


def test_retirement_stops_at_its_ceiling(_):
    """And goes on when there is room again; each run takes one batch here, since its budget is spent at once."""
    with hoglaked.started("postgresql://127.0.0.1:%d/hoglake" % DB.port, HOGLAKE_RETIREMENT_INTERVAL_MS="50",
                          HOGLAKE_RETIREMENT_BATCH="3", HOGLAKE_RETIREMENT_RUN_BUDGET_MS="1",
                          HOGLAKE_RETIREMENT_QUEUE_CEILING="5") as server:
        catalog, table, _ = lake(server)
        ok(server, "POST", catalog + "/commit", append(catalog, *[file(catalog) for _ in range(10)]))
        ok(server, "DELETE", table)
        ok(server, "PATCH", catalog + "/options", {"snapshot_retention_seconds": 1})
        time.sleep(1.1)
        ok(server, "POST", catalog + "/namespaces", {"name": "m"})
        left = lambda: [t for t in ok(server, "GET", catalog + "/maintenance/status")["tasks"]
                        if t["task"] == "cleanup"][0]["backlog"]["queued_removals"]
        def runs():
            return [r["result"] for r in ok(server, "GET", catalog + "/maintenance/runs?task=retirement")["runs"]]
        services.wait_until(lambda: ok(server, "POST", catalog + "/maintenance/expire") and len(runs()) >= 2, 60,
                            "two runs are told of", 0.1)
        assert left() == 6 and [r["rows_retired"] for r in runs()] == [3, 3], runs()
        assert all(r["budget_spent"] and not r["queue_full"] for r in runs()), runs()
        name = catalog[len("/catalogs/"):]
        DB.query("hoglake", "DELETE FROM hog_file_removal r USING hog_catalog c WHERE c.catalog_id = r.catalog_id"
                            " AND c.name = %s", name)
        services.wait_until(lambda: left() == 4, 60, "the rest is queued", 0.1)


def test_claims_fence_their_paths(server):
    catalog, table, made = lake(server)
    upload, owner = str(uuid.uuid4()), str(uuid.uuid4())
    body = {"owner": owner, "prefix": "s3://b%s/data/n/t" % catalog[9:], "file_kind": "data"}
    claim = ok(server, "PUT", catalog + "/uploads/" + upload, body)
    refused(server, 409, "commit_conflict", "PUT", catalog + "/uploads/" + upload, dict(body, owner=upload))
    one = dict(file(catalog), path=claim["path"])
    refused(server, 409, "commit_conflict", "POST", catalog + "/commit", append(catalog, one))
    request = append(catalog, one, idempotency_key=owner, read_snapshot=2)
    request["appends"][0]["expected_table_uuid"] = made["table_uuid"]
    ok(server, "POST", catalog + "/commit/uploads", request)
    assert ok(server, "POST", catalog + "/uploads/renew", {"owner": owner})["renewed"] == 0


def test_definitions_are_read_as_of_their_snapshot(server):
    catalog, table, first = lake(server)
    alter = lambda path, *ops: ok(server, "POST", path + "/alter", {"ops": list(ops)})
    second = alter(
        table, {"op": "add_column", "column": {"name": "y", "type": "int"}}, {"op": "set_table_comment", "comment": "c"},
        {"op": "set_properties", "properties": {"a": "1"}}, {"op": "set_column_comment", "name": "id", "comment": "k"},
        {"op": "set_partition_spec", "fields": [{"source_field_id": 1, "transform": "identity"}]},
        {"op": "set_sort_order", "sort_fields": [
            {"source_field_id": 1, "direction": "asc", "null_order": "nulls_last"}]})
    third = alter(
        table, {"op": "rename_column", "from": "y", "to": "z"}, {"op": "drop_column", "name": "x"},
        {"op": "set_table_comment"}, {"op": "set_properties", "properties": {}},
        {"op": "set_partition_spec", "fields": []}, {"op": "set_sort_order", "sort_fields": []},
        {"op": "rename_table", "new_name": "u"})
    for made, name in ((first, "/t"), (second, "/t"), (third, "/u")):
        snapshot = made.pop("snapshot_id")
        assert ok(server, "GET", table[:-2] + name + "?snapshot=%d" % snapshot) == made, made
        assert [t["name"] for t in ok(server, "GET", table[:-2] + "?snapshot=%d" % snapshot)] == [name[1:]]
    refused(server, 404, "not_found", "GET", table)
    refused(server, 404, "not_found", "GET", table[:-1] + "u?snapshot=3")
    assert [(c["name"], c["field_id"], c["ordinal"]) for c in third["columns"]] == [("id", 1, 0), ("z", 3, 2)]
    refused(server, 422, "validation", "POST", catalog + "/commit", append(catalog))  # renamed, not dropped
    ok(server, "DELETE", table[:-1] + "u")
    again = ok(server, "POST", table[:-2], {"name": "u", "columns": [{"name": "a", "type": "int"}]})
    assert ok(server, "GET", table[:-1] + "u?snapshot=4")["table_uuid"] == first["table_uuid"] != again["table_uuid"]


def test_catalog_drop_names_each_reason_in_turn(server):
    catalog, table, made = lake(server)
    name = catalog[len("/catalogs/"):]
    def sql(statement):
        DB.query("hoglake", statement.replace("$c", "(SELECT catalog_id FROM hog_catalog WHERE name = '%s')" % name))
    def stopped(reason):
        assert refused(server, 409, "catalog_not_empty", "DELETE", catalog)["reason"] == reason
    ok(server, "POST", catalog + "/commit", append(catalog))
    owner = str(uuid.uuid4())
    claims = [ok(server, "PUT", catalog + "/uploads/" + str(uuid.uuid4()), {
        "owner": owner, "prefix": "s3://b/%s/x" % name, "file_kind": "data"}) for _ in range(2)]
    ok(server, "POST", catalog + "/uploads/abandon", {"owner": owner, "paths": [claims[0]["path"]]})
    ok(server, "PUT", catalog + "/consumers/c/offsets/" + made["table_uuid"], {"snapshot_id": 1})
    sql("INSERT INTO hog_compaction_claim (catalog_id, table_id, data_file_ids, expires_us)"
        " VALUES ($c, 1, '{}', hog_now_us() + 1000000000)")
    stopped("live_namespaces")
    ok(server, "DELETE", table)
    ok(server, "DELETE", catalog + "/namespaces/n")
    stopped("tables_pending_retirement")
    sql("UPDATE hog_data_file SET end_snapshot = 4 WHERE catalog_id = $c")
    stopped("files_pending_expiry")
    sql("DELETE FROM hog_data_file WHERE catalog_id = $c")
    sql("INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason, scheduled_us)"
        " VALUES ($c, 'p', 'data', 'snapshot_expiry', 0)")
    stopped("removals_pending")
    sql("UPDATE hog_file_removal SET drained_us = 1, drained_outcome = 'deleted' WHERE catalog_id = $c")
    stopped("active_compaction_claims")
    sql("UPDATE hog_compaction_claim SET expires_us = 1 WHERE catalog_id = $c")
    stopped("consumer_offsets")
    sql("DELETE FROM hog_consumer_offset WHERE catalog_id = $c")
    stopped("active_uploads")
    ok(server, "POST", catalog + "/uploads/abandon", {"owner": owner, "paths": [claims[1]["path"]]})
    stopped("abandoned_uploads_unsettled")
    ok(server, "POST", catalog + "/uploads/schedule-expired")
    stopped("removals_pending")
    sql("UPDATE hog_file_removal SET drained_us = 1, drained_outcome = 'absent' WHERE catalog_id = $c")
    sql("UPDATE hog_upload SET expires_us = 1 WHERE catalog_id = $c")
    assert ok(server, "DELETE", catalog) == {"name": name, "data_path": "s3://b/%s/" % name}
    refused(server, 404, "not_found", "GET", catalog)
    ok(server, "POST", "/catalogs", {"name": name, "data_path": "s3://b/%s/" % name})  # both are free again
    assert ok(server, "GET", catalog + "/snapshots?after=-1")["snapshots"][0]["changes"] == []


def test_strict_settings(_):
    with hoglaked.started("postgresql://127.0.0.1:%d/hoglake" % DB.port, HOGLAKE_REQUIRE_ATTRIBUTION="true",
                          HOGLAKE_REFUSE_BLIND_PARTITIONED_APPENDS="true") as server:
        catalog, table, made = lake(server)
        ok(server, "POST", catalog + "/namespaces/n/views", {"name": "v", "sql": "s"})
        ok(server, "POST", table + "/alter", {"ops": [{"op": "set_partition_spec", "fields": [
            {"source_field_id": 1, "transform": "identity"}]}]})
        blind = append(catalog, file(catalog, partition_values=["1"]))
        refused(server, 422, "validation", "POST", catalog + "/commit", blind)
        ok(server, "POST", catalog + "/commit", dict(blind, read_snapshot=4))
        truncate = table + "/truncate?expected_table_uuid=" + made["table_uuid"]
        for body in (None, {}, {"author": "a"}, {"author": " \u00a0\u2003", "message": "m"}, {"author": "a", "message": ""}):
            refused(server, 422, "validation", "POST", truncate, body)
        ok(server, "POST", truncate, {"author": "a", "message": "m"})
        for path in (table, catalog + "/namespaces/n/views/v", catalog + "/namespaces/n", catalog):
            for query in ("", "?author=a", "?message=m", "?author=a&message=%20", "?author=%C2%85&message=m"):
                refused(server, 422, "validation", "DELETE", path + query)
        ok(server, "DELETE", table + "?author=a&message=b+c")
        last = ok(server, "GET", catalog + "/snapshots?before=99&limit=1")["snapshots"][0]
        assert (last["author"], last["message"], last["changes"][0]["kind"]) == ("a", "b c", "table_dropped"), last


# --- concurrency and faults -------------------------------------------------------------------

def check_history(server, catalog, table, rows):
    """No gap in snapshot ids or row ids, nothing doubled."""
    head = ok(server, "GET", catalog)["head_snapshot_id"]
    ids, after = [], -1
    while True:
        page = ok(server, "GET", catalog + "/snapshots?after=%d&limit=10000" % after)
        ids += [s["snapshot_id"] for s in page["snapshots"]]
        if not page["has_more"]:
            break
        after = ids[-1]
    assert ids == list(range(head + 1)), "snapshot ids have a gap"
    files = sorted(ok(server, "GET", table + "/files"), key=lambda f: f["row_id_start"])
    at = 0
    for f in files:
        assert f["row_id_start"] == at, (f, at)
        at += f["record_count"]
    assert len({f["path"] for f in files}) == len(files), "a commit is in twice"
    live = ok(server, "GET", table)
    assert (live["record_count"], live["file_count"]) == (at, len(files))
    assert rows is None or at == rows, (at, rows)
    return {f["path"] for f in files}


class Writer:
    """Sends prepared appends on one connection; repeats each until it is answered for good."""

    def __init__(self, server, catalog):
        self.server, self.catalog, self.connection = server, catalog, None
        self.replays, self.paths = 0, []

    def once(self, body):
        if not self.connection:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        self.connection.request("POST", "/v1" + self.catalog + "/commit/prepared", body,
                                {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def commit(self, seconds=300):
        body = prepared(self.catalog)
        text, end = json.dumps(body), time.monotonic() + seconds
        while True:
            try:
                status, answer = self.once(text)
                if status == 200:
                    self.paths.append(body["appends"][0]["files"][0]["path"])
                    return json.loads(answer)["snapshot_id"]
                assert status in (500, 503), (status, answer)
            except (OSError, http.client.HTTPException):
                self.connection = None
            assert time.monotonic() < end, "no good answer within %d s" % seconds
            self.replays += 1
            time.sleep(0.02)


def write_until(server, catalog, writers, stop, count=None):
    """Runs writers; gives them when stop() holds or each has made `count` commits."""
    made = [Writer(server, catalog) for _ in range(writers)]
    def work(writer):
        snapshots = []
        while not stop() and (count is None or len(snapshots) < count):
            snapshots.append(writer.commit())
        return snapshots
    with concurrent.futures.ThreadPoolExecutor(writers) as pool:
        snapshots = [s for part in pool.map(work, made) for s in part]
    assert len(set(snapshots)) == len(snapshots), "two commits got one snapshot"
    return made, snapshots


def test_eight_writers_on_one_catalog(server):
    catalog, table, _ = lake(server)
    _, snapshots = write_until(server, catalog, 8, lambda: False, 500)
    assert sorted(snapshots) == list(range(3, 4003))
    check_history(server, catalog, table, 40000)


def test_four_catalogs_at_once(server):
    lakes = [lake(server) for _ in range(4)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda l: write_until(server, l[0], 3, lambda: False, 50), lakes))
    for catalog, table, _ in lakes:
        check_history(server, catalog, table, 1500)


def test_one_key_at_once_lands_once(server):
    catalog, table, _ = lake(server)
    body = prepared(catalog)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        got = list(pool.map(lambda _: ok(server, "POST", catalog + "/commit/prepared", body), range(64)))
    assert len({g["snapshot_id"] for g in got}) == 1
    check_history(server, catalog, table, 10)


def under_load(server, disturb, writers=6):
    """Disturbs while writers write; nothing is lost, doubled or half done."""
    catalog, table, _ = lake(server)
    done = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        load = pool.submit(write_until, server, catalog, writers, done.is_set)
        try:
            time.sleep(0.3)
            disturb()
            time.sleep(0.3)
        finally:
            done.set()
        made, snapshots = load.result()
    paths = check_history(server, catalog, table, 10 * len(snapshots))
    assert paths == {p for writer in made for p in writer.paths}
    for one, column in (("hog_snapshot", "snapshot_id"), ("hog_snapshot_change", "snapshot_id"),
                        ("hog_commit_receipt", "snapshot_id"), ("hog_data_file", "begin_snapshot")):
        found = DB.query("hoglake", "SELECT %s FROM %s JOIN hog_catalog USING (catalog_id) WHERE name = '%s'"
                                    " ORDER BY 1" % (column, one, catalog[len("/catalogs/"):]))
        assert [n for (n,) in found if n > 2] == list(range(3, 3 + len(snapshots))), "half commits in " + one


def test_backends_killed_at_commit(server):
    def disturb():
        for _ in range(50):
            services.wait_until(lambda: DB.query(
                "hoglake", "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity"
                " WHERE application_name = 'hoglaked' AND state = 'active' LIMIT 1) a")[0][0], 60,
                "a backend at work", 0.001)
    under_load(server, disturb)


def outcomes(server):
    """What became of commits whose connection was lost, as the server counts it."""
    text = hoglaked.request(server.url + "/metrics")[1]
    return {outcome: int(float(count)) for outcome, count in re.findall(
        r'^hoglake_commit_outcomes_total\{outcome="(\w+)"\} (\S+)$', text, re.M)}


def through_proxy(**settings):
    """A server whose connections can be cut at a COMMIT; gives (server, proxy)."""
    @contextlib.contextmanager
    def made():
        with pg_proxy.proxy(DB.port) as proxy, hoglaked.started(
                "postgresql://127.0.0.1:%d/hoglake?sslmode=disable&gssencmode=disable" % proxy.port,
                HOGLAKE_HYDRATOR_INTERVAL_MS="0", **settings) as server:
            yield server, proxy
    return made()


def test_connections_cut_at_commit_are_followed_up(_):
    with through_proxy() as (server, proxy):
        catalog, table, _ = lake(server)
        for turn in range(50):
            body = prepared(catalog)
            proxy.arm("after" if turn % 2 else "before")
            made = ok(server, "POST", catalog + "/commit/prepared", body)
            assert made["snapshot_id"] == 3 + turn and proxy.cuts == turn + 1, (turn, made)
            receipt = ok(server, "GET", catalog + "/commit/receipts/" + body["idempotency_key"])
            assert receipt["snapshot_id"] == made["snapshot_id"]
            assert ok(server, "POST", catalog + "/commit/prepared", body) == made
        assert outcomes(server) == {"committed": 25, "not_committed": 25}, outcomes(server)
        assert check_history(server, catalog, table, 500)
        for turn in range(10):  # what makes a snapshot without a receipt is followed up as well
            proxy.arm("after" if turn % 2 else "before")
            altered = ok(server, "POST", table + "/alter", {"ops": [
                {"op": "set_table_comment", "comment": str(turn)}]})
            assert altered["snapshot_id"] == 53 + turn and altered["comment"] == str(turn), altered
        assert outcomes(server) == {"committed": 30, "not_committed": 30}, outcomes(server)


def test_replays_after_an_unknown_outcome(_):
    """The server may not follow up: it says that it does not know, and the replay is told."""
    with through_proxy(HOGLAKE_DB_RECOVERY_MS="0") as (server, proxy):
        catalog, table, _ = lake(server)
        for turn in range(20):
            body = prepared(catalog)
            proxy.arm("after" if turn % 2 else "before")
            refused(server, 500, "internal_error", "POST", catalog + "/commit/prepared", body)
            receipt, _ = call(server, "GET", catalog + "/commit/receipts/" + body["idempotency_key"])
            assert receipt == (200 if turn % 2 else 404), (turn, receipt)
            assert ok(server, "POST", catalog + "/commit/prepared", body)["snapshot_id"] == 3 + turn
        check_history(server, catalog, table, 200)


def test_connections_cut_at_commit_under_load(_):
    with through_proxy() as (server, proxy):
        def disturb():
            for turn in range(50):
                proxy.arm("after" if turn % 2 else "before")
                services.wait_until(lambda: proxy.cuts == turn + 1, 60, "a commit comes", 0.001)
        under_load(server, disturb)
        found = outcomes(server)
        assert found["committed"] == found["not_committed"] == 25 and len(found) == 2, found


def test_postgres_restarted_under_load(server):
    def disturb():
        for crash in (False, True):
            (DB.kill if crash else DB.stop)()
            DB.start()
            time.sleep(0.5)
    under_load(server, disturb)
    services.wait_until(lambda: hoglaked.request(server.url + "/healthz")[0] == 200, 60, "healthy")


def test_server_killed_under_load(_):
    with hoglaked.started("postgresql://127.0.0.1:%d/hoglake" % DB.port) as server:
        def disturb():
            for _ in range(3):
                server.kill()
                server.start()
                time.sleep(0.3)
        under_load(server, disturb)


def test_graceful_stop_finishes_what_runs(_):
    with hoglaked.started("postgresql://127.0.0.1:%d/hoglake" % DB.port) as server:
        def disturb():
            server.process.signal(signal.SIGTERM)
            services.wait_until(lambda: not server.process.running(), 120, "the server stops")
            assert server.process.child.returncode == 0
            server.start()
        under_load(server, disturb)


def test_stop_is_heard_before_the_database_is_there(_):
    server = hoglaked.Hoglaked("postgresql://127.0.0.1:%d/hoglake" % services.free_port())
    server.process = services.Process("hoglaked", [hoglaked.HOGLAKED], server.directory, env=server.env)
    try:
        services.wait_until(lambda: "not yet" in server.process.log(), 120, "it waits for the database")
        server.process.signal(signal.SIGTERM)
        services.wait_until(lambda: not server.process.running(), 120, "the server stops")
        assert server.process.child.returncode == 0, server.process.log()
    finally:
        server.stop()
        shutil.rmtree(server.directory, ignore_errors=True)


def test_token_and_limits(_):
    with hoglaked.started("postgresql://127.0.0.1:%d/hoglake" % DB.port, HOGLAKE_BEARER_TOKEN="s3cret",
                          HOGLAKE_REQUEST_BYTES_MAX="2000") as server:
        refused(server, 401, "unauthorized", "GET", "/catalogs")
        assert call(server, "GET", "/catalogs", headers={"Authorization": "Bearer s3cret"})[0] == 200
        status, answer = call(server, "POST", "/catalogs", raw=b" " * 3000)
        assert (status, answer["error"]) == (413, "bad_request")
        status, _, headers = hoglaked.request(server.url + "/v1/catalogs", "POST", raw=b" " * 3000,
                                              headers={"X-Request-Id": "mine"})
        assert (status, headers["X-Request-Id"]) == (413, "mine")
        assert "s3cret" not in server.process.log()


def test_bodies_are_held_within_a_bound(_):
    with hoglaked.started("postgresql://127.0.0.1:%d/hoglake" % DB.port,
                          HOGLAKE_REQUEST_BYTES_MAX="100000", HOGLAKE_REQUEST_BODIES_BYTES_MAX="150000",
                          HOGLAKE_REQUEST_BODY_TIMEOUT_MS="3000") as server:
        held = lambda: hoglaked.metric(server, "hoglake_request_body_bytes")
        slow = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        slow.putrequest("POST", "/v1/catalogs")
        slow.putheader("Content-Length", "100000")
        slow.endheaders(b" " * 90000)
        services.wait_until(lambda: held() >= 90000, 60, "the body is held", 0.01)
        status, answer, headers = hoglaked.request(server.url + "/v1/catalogs", "POST", raw=b" " * 80000)
        assert (status, answer["error"], headers["Retry-After"]) == (503, "commit_queue_timeout", "1"), answer
        def trickles():  # until the server has had enough
            with contextlib.suppress(ConnectionError):
                slow.send(b" ")
            return held() < 90000
        services.wait_until(trickles, 60, "the slow client is cut off", 0.02)
        refused(server, 400, "bad_request", "POST", "/catalogs", raw=b" " * 80000)


# --- hostile input ----------------------------------------------------------------------------

def mutated(chance, value):
    """A JSON value with something wrong in it."""
    odd = [None, True, -1, 0, 2 ** 63 - 1, 1.5, "", "\0", "'; DROP TABLE hog_catalog; --", "\ud7ff" * 3,
           [], {}, [None], {"a": 1}, "x" * 3000, "00000000-0000-0000-0000-000000000000"]
    if chance.random() < 0.15:
        return chance.choice(odd)
    if isinstance(value, dict):
        made = {k: mutated(chance, v) for k, v in value.items() if chance.random() > 0.05}
        if chance.random() < 0.05:
            made[chance.choice(["extra", "", "\0", "name"])] = chance.choice(odd)
        return made
    if isinstance(value, list):
        return [mutated(chance, v) for v in value for _ in range(chance.choice([1, 1, 1, 2, 0]))]
    return value


def test_fuzzed_requests_never_break_it(server):
    chance = random.Random(SEED)
    catalog, table, made = lake(server)
    stats = [{"field_id": 1, "value_count": 1, "null_count": 0, "lower_bound": "AQAAAAAAAAA="}]
    bodies = [
        ("POST", "/catalogs", {"name": "fuzz", "data_path": "s3://fuzz/x"}),
        ("POST", catalog + "/namespaces", {"name": "m", "author": "a", "message": "b"}),
        ("POST", table[:-2], {"name": "u", "columns": [{"name": "a", "type": "list", "children": [
            {"name": "element", "type": "decimal", "type_params": {"precision": 9, "scale": 1}}]}]}),
        ("POST", table + "/alter", {"ops": [{"op": "add_column", "column": {"name": "q", "type": "int"}},
            {"op": "set_partition_spec", "fields": [{"source_field_id": 1, "transform": "identity"}]},
            {"op": "set_properties", "properties": {"a": "b"}}, {"op": "rename_table", "new_name": "t"}]}),
        ("POST", catalog + "/commit", append(catalog, file(catalog, column_stats=stats, footer_size=9,
            split_offsets=[4], partition_values=["1"]), read_snapshot=2, author="a")),
        ("POST", catalog + "/commit/transaction", dict(prepared(catalog, read_snapshot=2), deletes=[
            {"namespace": "n", "table": "t", "expected_table_uuid": made["table_uuid"], "files": [
                {"data_file_id": 1, "path": "s3://b/x", "delete_count": 1, "file_size_bytes": 1}]}])),
        ("PATCH", catalog + "/options", {"snapshot_retention_seconds": 99999, "consumer_floor": True}),
        ("PUT", catalog + "/consumers/c/offsets/" + made["table_uuid"], {"snapshot_id": 2}),
        ("POST", catalog + "/namespaces/n/views", {"name": "v", "sql": "s", "dialect": "d"}),
        ("PUT", catalog + "/uploads/" + str(uuid.uuid4()), {"owner": str(uuid.uuid4()), "prefix": "s3://b/x",
                                                            "file_kind": "data"}),
        ("PUT", catalog + "/table-creations/" + str(uuid.uuid4()) + "/sorted", {"namespace": "n", "name": "z",
            "columns": [{"name": "a", "type": "int"}], "sort_fields": [
                {"source_field_id": 1, "direction": "asc", "null_order": "nulls_last"}]}),
        ("POST", "/debug/decode-bound", {"type": "decimal", "value": "AQ==", "type_params": {"scale": 2}}),
    ]
    parts = ["catalogs", catalog[10:], "namespaces", "n", "tables", "t", "files", "scan", "changes", "%00", "%ff",
             "..", "%2e%2e", "1", "-1", "views", "snapshots", "resolve", "a" * 300, "%27%3b--", "consumers",
             "options", "stats", "partitions", "values", "maintenance", "runs", "%c3%28", "%", "receipts", "commit"]
    names = ["snapshot", "at_timestamp", "limit", "offset", "sort", "order", "partition", "include", "stats_fields",
             "from_snapshot", "to_snapshot", "after", "before", "totals", "batch", "filter", "task"]
    values = ["1", "-1", "", "x", "9" * 30, "2026-01-01T00:00:00Z", "true", "0:1", "column_stats", "%00", "%",
              "1,2,,", "+", "1_0", "id", "desc"]
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    bad = []
    for turn in range(100000):
        text = None
        if turn % 2:
            method, path, body = chance.choice(bodies)
            text = json.dumps(mutated(chance, body)).encode("utf-8", "surrogatepass")
            if chance.random() < 0.1:
                at = chance.randrange(len(text) + 1)
                text = text[:at] + bytes([chance.randrange(256)]) + text[at + chance.randrange(2):]
        else:
            method = chance.choice(["GET"] * 8 + ["DELETE", "POST", "PUT", "OPTIONS"])
            path = "/" + "/".join(chance.choice(parts) for _ in range(chance.randrange(1, 8)))
            if chance.random() < 0.5:
                path = table + chance.choice(["", "/files", "/scan", "/changes", "/partitions"])
                method = "GET"
            path += "?" + "&".join("%s=%s" % (chance.choice(names), chance.choice(values))
                                   for _ in range(chance.randrange(4)))
        connection.request(method, "/v1" + path, text, {"Content-Type": "application/json"} if text else {})
        answer = connection.getresponse()
        got = answer.read()
        if answer.status >= 500 and answer.status != 501:
            bad.append((method, path, text, answer.status, got))
    assert not bad, (SEED, len(bad), bad[:3])
    assert server.process.running()
    ok(server, "GET", catalog)


def test_changes_are_audited(server):
    catalog, table, made = lake(server)
    name, by = catalog[len("/catalogs/"):], {"author": 'a"\n', "message": "why é"}
    ok(server, "POST", catalog + "/namespaces", dict(by, name="m"))
    body = prepared(catalog, **by)
    ok(server, "POST", catalog + "/commit/prepared", body)
    ok(server, "POST", table + "/alter", dict(by, ops=[{"op": "set_table_comment", "comment": "secret text"},
                                                       {"op": "drop_column", "name": "x"}]))
    ok(server, "PATCH", catalog + "/options", {"snapshot_retention_seconds": 77})
    ok(server, "DELETE", table + "?author=bob&message=bye")
    refused(server, 404, "not_found", "DELETE", table)
    seen = [(l["action"], l["object"], l["outcome"], l["detail"], l["author"], l["message"])
            for l in server.lines("hoglake.audit") if l["catalog"] == name]
    who = (by["author"], by["message"])
    assert seen == [
        ("catalog_create", "", "created", "data_path s3://b/%s/" % name, "", ""),
        ("namespace_create", "n", "created", "namespace_id 1", "", ""),
        ("table_create", "n.t", "created", "table_uuid %s, snapshot 2" % made["table_uuid"], "", ""),
        ("namespace_create", "m", "created", "namespace_id 2") + who,
        ("commit", body["idempotency_key"], "committed", "snapshot 4, 1 appends, 0 deletes") + who,
        ("table_alter", "n.t", "altered", "snapshot 5, 2 operations: set_table_comment, drop_column") + who,
        ("options_patch", "", "changed", '{"consumer_floor":true,"earliest_snapshot_id":0,"snapshot_retention_seconds":77}',
         "", ""),
        ("table_drop", "n.t", "dropped", "snapshot 6", "bob", "bye")], seen


# --- last ---------------------------------------------------------------------------------------

def test_every_operation_was_seen_to_be_as_described(_):
    assert not DOCUMENT.unseen(), DOCUMENT.unseen()


def main(names):
    """Runs the cases among the names of a module, for this and the other judges of one server."""
    global DB
    cases = [(name, value) for name, value in names.items() if name.startswith("test_")]
    cases = [c for c in cases if not sys.argv[1:] or any(a in c[0] for a in sys.argv[1:])]
    print("seed %d" % SEED)
    with services.postgres() as DB:
        DB.create_database("hoglake")
        with hoglaked.started(URL % DB.port) as server:
            passed, failed = hoglaked.run_cases(cases, lambda: server)
            if failed:
                print(server.process.log_end(15))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(globals()))
