#!/usr/bin/env python3
"""build/hoglaked over HTTP: every limit, exactly at it and one above, and what each type may be used for."""
import contextlib
import resource
import socket
import sys
import urllib.parse
import uuid

import hoglaked
import services
from judge_rest import append, call, file, lake, ok, refused

TYPES = ("boolean int8 int16 int long uint8 uint16 uint32 uint64 float double decimal date time timestamp_s timestamp_ms"
         " timestamp timestamp_ns timestamptz string json uuid binary variant").split()
REFUSED_TYPES = ("int128 uint128 timetz interval point linestring polygon multipoint multilinestring multipolygon"
                 " linestring_z geometrycollection uuid_t bigint text").split() + ["", "int ", "list<int>"]


def bounded(server, good, bad, method, path, body):
    """body(value) is taken for what is good and refused with 422 for what is bad."""
    for value in good:
        ok(server, method, path, body(value))
    for value in bad:
        refused(server, 422, "validation", method, path, body(value))


def test_names_and_texts_have_their_limits(server):
    catalog, table, made = lake(server)
    names = ("a" * 128, "_", "A-9_"), ("a" * 129, "", "9a", "-a", "a.b", "a/b", "\u00e9", "a b", "a\n", "a\0")
    columns = [{"name": "a", "type": "int"}]
    bounded(server, *names, "POST", catalog + "/namespaces", lambda n: {"name": n})
    bounded(server, *names, "POST", table[:-2], lambda n: {"name": n, "columns": columns})
    bounded(server, *names, "POST", catalog + "/namespaces/n/views", lambda n: {"name": n, "sql": "s"})
    alter = lambda op, **more: {"ops": [dict(more, op=op)]}
    bounded(server, names[0], names[1] + ("_hog", "_hogx"), "POST", table + "/alter",
            lambda n: alter("add_column", column={"name": n, "type": "int"}))
    bounded(server, (), names[1] + ("_hog", "id"), "POST", table + "/alter",
            lambda n: alter("rename_column", **{"from": "x", "to": n}))
    bounded(server, ("\u00e9" * 16384, "", None), ("\u00e9" * 16385, "a\0"), "POST", table + "/alter",
            lambda c: alter("set_table_comment", comment=c))
    bounded(server, ("\u00e9" * 16384, None), ("\u00e9" * 16385,), "POST", table + "/alter",
            lambda c: alter("set_column_comment", name="id", comment=c))
    some = lambda count: {"k%d" % i: "v" for i in range(count)}
    keys = ("a" * 129, "", "A", "9a", "_a", "hoglake.x", "trino.x", "partitioning", "sorted_by", "location", "format",
            "comment")
    bounded(server, ({}, some(100), {"a" * 128: "\u00e9" * 4096}, {"hoglake": "v", "b.c-d_9": ""}),
            [some(101), {"a": "\u00e9" * 4097}, {"a": "\0"}] + [{key: "v"} for key in keys],
            "POST", table + "/alter", lambda p: alter("set_properties", properties=p))
    place = lambda consumer: catalog + "/consumers/%s/offsets/%s" % (
        urllib.parse.quote(consumer, safe=""), made["table_uuid"])
    for consumer in ("c" * 128, "\u00e9" * 128, "a/b c%?#+\n", ".."):
        assert ok(server, "PUT", place(consumer), {"snapshot_id": 1})["consumer_id"] == consumer
    refused(server, 422, "validation", "PUT", place("\u00e9" * 129), {"snapshot_id": 1})
    unique = lambda: uuid.uuid4().hex
    bounded(server, ("0" + unique(), (unique() * 2)[:63]), ("a" * 64, "_a", "-a", "A", "a.b", "\u00e9"),
            "POST", "/catalogs", lambda n: {"name": n, "data_path": "s3://" + unique()})
    root = "s3://%s/" % unique()
    bounded(server, (root + "a" * (512 - len(root)), "s3://" + unique(), "s3://%s/\u00e9/" % unique()),
            (root + "b" * (513 - len(root)), "", " ", "s3://", "s3:///x", "s3://b c", "s3://q/../x", "s3://q/.",
             "http://q/x", "S3://q/x", "s3://q/\u00a0", "s3://q/\t"),
            "POST", "/catalogs", lambda p: {"name": "p" + unique(), "data_path": p})
    long = {"name": "z", "author": "a" * 100000, "message": "\u00e9\n%&=+# \U0001f600"}
    ok(server, "POST", catalog + "/namespaces", long)
    last = ok(server, "GET", catalog + "/snapshots?before=%d&limit=1" % 2 ** 62)["snapshots"][0]
    assert (last["author"], last["message"]) == (long["author"], long["message"])


def test_files_have_their_limits(server):
    catalog, _, _ = lake(server)
    path = lambda name: "s3://b/%s/%s" % (catalog[10:], name)
    stats = lambda **more: [dict({"field_id": 1, "value_count": 1, "null_count": 0}, **more)]
    bounded(server,
            (dict(record_count=0), dict(record_count=2 ** 48), dict(file_size_bytes=0), dict(footer_size=0),
             dict(footer_size=992), dict(footer_size=None), dict(split_offsets=[0, 999]), dict(column_stats=[]),
             dict(file_size_bytes=100000, split_offsets=list(range(100000))), dict(path=path("\u00e9/...")),
             dict(path=path(".a")), dict(column_stats=stats(nan_count=-1, size_bytes=-1, lower_bound="AA=="))),
            (dict(record_count=-1), dict(record_count=2 ** 48 + 1), dict(file_size_bytes=-1), dict(footer_size=-1),
             dict(footer_size=993), dict(file_size_bytes=7, footer_size=0), dict(split_offsets=[]),
             dict(split_offsets=[-1]), dict(split_offsets=[1000]), dict(split_offsets=[3, 3]), dict(split_offsets=[3, 2]),
             dict(file_size_bytes=100001, split_offsets=list(range(100001))), dict(path=""), dict(path=path("")),
             dict(path=path("a//b")), dict(path=path("a/")), dict(path=path("./a")), dict(path=path("a/..")),
             dict(path=path("a b")), dict(path=path("a\u3000")), dict(path="s3://b/elsewhere"), dict(partition_values=[]), dict(file_format="orc"),
             dict(column_stats=stats(field_id=3)), dict(column_stats=stats(field_id=0)), dict(column_stats=stats() * 2),
             dict(column_stats=stats(value_count=-1)), dict(column_stats=stats(null_count=-1))),
            "POST", catalog + "/commit", lambda more: append(catalog, dict(file(catalog), **more)))
    for more in (dict(record_count=1.0), dict(record_count="1"), dict(record_count=True), dict(record_count=None),
                 dict(record_count=2 ** 63), dict(path=None), dict(path=1), dict(footer_size=1.5),
                 dict(split_offsets=[None]), dict(split_offsets={}), dict(column_stats=[None]), dict(column_stats={}), dict(partition_values=[1]),
                 dict(column_stats=stats(null_count=None)), dict(column_stats=stats(lower_bound="?")),
                 dict(column_stats=stats(more=1)), dict(checksum="x")):
        refused(server, 400, "bad_request", "POST", catalog + "/commit", append(catalog, dict(file(catalog), **more)))
    same = file(catalog)  # a path may come again, in a commit and in the next
    ok(server, "POST", catalog + "/commit", append(catalog, same, same))
    ok(server, "POST", catalog + "/commit", append(catalog, same))


def test_columns_have_their_limits(server):
    catalog, table, _ = lake(server)
    def nested(depth, kind):
        column = {"name": "a", "type": "int"}
        for _ in range(depth - 1):
            column = {"name": "a", "type": kind, "children": [dict(column, name="element" if kind == "list" else "a")]}
        return column
    many = lambda count: [{"name": "c%d" % i, "type": "int"} for i in range(count)]
    element, key, value = ({"name": "element", "type": "int"}, {"name": "key", "type": "int", "nullable": False},
                           {"name": "value", "type": "int"})
    of = lambda kind, children, **more: [dict({"name": "a", "type": kind, "children": children}, **more)]
    decimal = lambda **params: [{"name": "a", "type": "decimal", "type_params": params}]
    bounded(server,
            [many(10000), of("struct", many(9999)), [nested(8, "list")], [nested(8, "struct")], of("LIST", [element]),
             of("map", [key, value]), of("map", [key, value], type_params=None),
             [{"name": "a", "type": "int"}, {"name": "A", "type": "int"}], decimal(precision=38, scale=38), decimal(precision=1, scale=0), decimal(scale=38), decimal()],
            [[], many(10001), of("struct", many(10000)), [nested(9, "list")], [nested(9, "struct")], many(1) * 2,
             of("struct", many(1) * 2), of("list", [{"name": "element", "type": "struct", "children": many(1) * 2}]),
             of("list", None), of("list", []), of("list", [element, element]), of("list", [value]), of("struct", []),
             of("map", [key]), of("map", [value, key]), of("map", [dict(key, nullable=True), value]),
             of("map", [key, value, value]), of("int", []), of("string", [element]), of("list", [element], type_params={}),
             of("struct", [element], type_params={"a": 1}), of("struct", [{"name": "_hog_a", "type": "int"}]),
             decimal(precision=0, scale=0), decimal(precision=39, scale=0),
             decimal(precision=5, scale=6), decimal(precision=5, scale=-1), decimal(precision=2 ** 31, scale=0),
             decimal(precision="5", scale=0), decimal(precision=5.0, scale=0), decimal(scale=39)],
            "POST", table[:-2], lambda columns: {"name": "t" + uuid.uuid4().hex, "columns": columns})
    for columns in (None, {}, [None], ["a"], of("list", [None]), of("list", {}), many(1)[0], [{"name": "a"}],
                    [{"type": "int"}], [{"name": "a", "type": None}], [{"name": "a", "type": "int", "nullable": 1}],
                    [{"name": "a", "type": "int", "type_params": []}], [{"name": "a", "type": "int", "field_id": 1}]):
        refused(server, 400, "bad_request", "POST", table[:-2], {"name": "u", "columns": columns})
    deep = b'{"name":"u","columns":[' + b'{"name":"a","type":"list","children":[' * 5000 + b"]}" * 5000 + b"]}"
    refused(server, 400, "bad_request", "POST", table[:-2], raw=deep)  # the parser's own limit comes first


def test_idle_connections_keep_nobody_out(server):
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with contextlib.ExitStack() as idle:
        for i in range(1500):
            idle.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            if i % 100 == 99:
                assert hoglaked.request(server.url + "/livez")[0] == 200, i
                assert call(server, "GET", "/catalogs")[0] == 200


def test_types_transforms_and_promotions_are_the_listed_ones(server):
    bucketed = "int8 int16 int long uint8 uint16 decimal date time timestamp timestamptz string uuid binary".split()
    dated = "date timestamp_s timestamp_ms timestamp timestamp_ns timestamptz".split()
    promoted = {"int8": "int16 int long", "int16": "int long", "int": "long", "uint8": "uint16 uint32",
                "uint16": "uint32", "float": "double"}
    nested = [{"name": "l", "type": "list", "children": [{"name": "element", "type": "int"}]},
              {"name": "s", "type": "struct", "children": [{"name": "a", "type": "date"}]},
              {"name": "m", "type": "map", "children": [{"name": "key", "type": "int", "nullable": False},
                                                        {"name": "value", "type": "int"}]}]
    catalog, table, made = lake(server, [{"name": t, "type": t} for t in TYPES] + nested)
    inside = {"l": 25, "l.element": 26, "s": 27, "s.a": 28, "m": 29, "m.key": 30, "m.value": 31}
    def partition(good, field, transform, **param):
        body = {"ops": [{"op": "set_partition_spec", "fields": [
            dict({"source_field_id": field, "transform": transform}, **param)]}]}
        (ok(server, "POST", table + "/alter", body) if good else
         refused(server, 422, "validation", "POST", table + "/alter", body))
    def sort(good, *fields):
        body = {"ops": [{"op": "set_sort_order", "sort_fields": [
            {"source_field_id": f, "direction": d, "null_order": n} for f, d, n in fields]}]}
        (ok(server, "POST", table + "/alter", body) if good else
         refused(server, 422, "validation", "POST", table + "/alter", body))
    for field, kind in enumerate(TYPES, 1):
        partition(kind != "variant", field, "Identity")
        partition(kind in bucketed, field, "bucket", transform_param=2 ** 31 - 1)
        for transform in ("year", "month", "day", "hour"):
            partition(kind in dated, field, transform)
        sort(kind != "variant", (field, "ASC", "Nulls_First"))
    for path, field in inside.items():
        partition(path == "s.a", field, "identity")
        sort(path == "s.a", (field, "desc", "nulls_last"))
    for field, transform in ((4, "truncate"), (4, "void"), (4, ""), (4, "bucket"), (0, "identity"), (99, "identity")):
        partition(False, field, transform)
    for field, transform, param in ((4, "identity", 1), (13, "day", 1), (4, "bucket", 0), (4, "bucket", -1)):
        partition(False, field, transform, transform_param=param)
    sort(False, (4, "up", "nulls_last"))
    sort(False, (4, "asc", "last"))
    sort(False, (4, "asc", "nulls_last"), (4, "desc", "nulls_last"))
    for source in TYPES:
        for to in TYPES + ["list", "struct", "map", "bigint", "int128"]:
            if to not in promoted.get(source, "").split():
                refused(server, 422, "validation", "POST", table + "/alter", {"ops": [
                    {"op": "promote_column", "name": source, "to": to}]})
    for source, targets in promoted.items():
        for to in targets.split():
            _, other, _ = lake(server, [{"name": "s", "type": "struct", "children": [{"name": "a", "type": source}]}])
            after = ok(server, "POST", other + "/alter", {"ops": [
                {"op": "promote_column", "name": "s.a", "to": to.upper()}]})
            assert after["columns"][0]["children"][0]["type"] == to
    for kind in REFUSED_TYPES:
        refused(server, 422, "validation", "POST", table[:-2], {"name": "u", "columns": [{"name": "a", "type": kind}]})


def main():
    cases = [(name, value) for name, value in globals().items() if name.startswith("test_")]
    with services.postgres() as db:
        db.create_database("hoglake")
        with hoglaked.started("postgresql://127.0.0.1:%d/hoglake" % db.port) as server:
            passed, failed = hoglaked.run_cases(cases, lambda: server)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
