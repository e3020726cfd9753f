"""Random tables and rows, written by pyhoglake and by hoglake-tool. Run by judge_hoglake_values.py.

For each table, pyhoglake groups the rows by its own transforms, writes its own files and prepares
its own request; the tool does the same with our cut, our writer and our body. Then

    bodies    are the same: order of files, partition values, counts, bounds, members and their
              order; but for paths, sizes, and columns that no row names, which are not in our files
    files     of ours, given to pyhoglake, get the entries that our body has, sizes included; pass
              its check of schema and field ids; and pyarrow reads back the rows from them
    commit    our body is taken by the catalog, and is already there when it comes again
    key       and message are what the Python program of the same name makes
"""
import base64
import decimal
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import traceback
import uuid

import boto3
import httpx
import pyarrow as pa
import pyarrow.parquet as pq
from botocore.config import Config
from pyhoglake import HoglakeClient, S3Config
from pyhoglake.client import _partition_groups
from pyhoglake.stats import extract_column_stats
from pyhoglake.types import columns_to_arrow_schema

KEYS = uuid.UUID("6f1b6d2e-4c5a-5f3e-9b7a-2d8c1e0a4f77")
BUCKET = "values"
DAY = 86400
# 0001-01-01 and 9999-12-31, in days; what Python can spell
FIRST_DAY, LAST_DAY = -719162, 2932896

TEMPORAL = ("year", "month", "day", "hour")
TYPES = ["boolean", "int8", "int16", "int", "long", "uint8", "uint16", "uint32", "uint64", "float",
         "double", "decimal", "date", "time", "timestamp_s", "timestamp_ms", "timestamp",
         "timestamp_ns", "timestamptz", "string", "json", "uuid", "binary"]
BUCKETS = {"int8", "int16", "int", "long", "uint8", "uint16", "decimal", "date", "time", "timestamp",
           "timestamptz", "string", "uuid", "binary"}
INSTANTS = {"timestamp_s": 1, "timestamp_ms": 10 ** 3, "timestamp": 10 ** 6, "timestamptz": 10 ** 6,
            "timestamp_ns": 10 ** 9}
INTEGERS = {"int8": (-2 ** 7, "<i"), "int16": (-2 ** 15, "<i"), "int": (-2 ** 31, "<i"),
            "long": (-2 ** 63, "<q"), "uint8": (2 ** 8, "<i"), "uint16": (2 ** 16, "<i"),
            "uint32": (2 ** 32, "<q"), "uint64": (2 ** 64, "<Q")}


# --- values: (what pyarrow is given, the bytes as they lie in memory) --------------------------

def integer(rng, name):
    edge, form = INTEGERS[name]
    low, high = (edge, -edge - 1) if edge < 0 else (0, edge - 1)
    value = rng.choice([low, high, 0, 1, rng.randint(low, high), rng.randint(max(low, -5), 5)])
    return value, struct.pack(form, value)


def floating(rng, name):
    value = rng.choice([0.0, -0.0, 1.0, 0.1, -2.5, 1e16, 1e-5, 123456789.125, math.inf, -math.inf,
                        math.nan, rng.uniform(-1e6, 1e6), rng.uniform(-1, 1) * 10 ** rng.randint(-30, 30)])
    if name == "float":
        raw = struct.pack("<f", value)
        return struct.unpack("<f", raw)[0], raw
    return value, struct.pack("<d", value)


def scaled(rng, precision, scale):
    edge = 10 ** precision - 1
    value = rng.choice([0, 1, -1, edge, -edge, 127, 128, -128, -129, rng.randint(-edge, edge),
                        rng.randint(-9, 9)])
    value = max(-edge, min(edge, value))
    with decimal.localcontext() as context:
        context.prec = 60
        number = decimal.Decimal(value).scaleb(-scale)
    if precision <= 18:
        return number, struct.pack("<i" if precision <= 9 else "<q", value)
    return number, value.to_bytes(16, "big", signed=True)


def date(rng):
    value = rng.choice([0, -1, FIRST_DAY, LAST_DAY, 17486, rng.randint(FIRST_DAY, LAST_DAY),
                        rng.randint(-800, 800)])
    return value, struct.pack("<i", value)


def time(rng):
    value = rng.choice([0, 1, DAY * 10 ** 6 - 1, 3723 * 10 ** 6, 81068000000,
                        rng.randrange(DAY * 10 ** 6)])
    return value, struct.pack("<q", value)


def instant(rng, name):
    unit = INSTANTS[name]
    first, last = FIRST_DAY * DAY * unit, (LAST_DAY + 1) * DAY * unit - 1
    if name == "timestamp_ns":
        first, last = -2 ** 63, 2 ** 63 - 1
    value = rng.choice([0, 1, -1, first, last, 1704067200 * unit, 1510871468 * unit,
                        -3600 * unit - 1, rng.randint(first, last), rng.randint(-10 ** 5, 10 ** 5) * unit])
    return value, struct.pack("<q", value * 1000 if name == "timestamp_s" else value)


def text(rng):
    value = rng.choice(["", "a", "iceberg", "héllo", "é", "日本", "a\"b\\c\n\t", "\U0001f994", " x ",
                        "\x7f", "z" * 4096, "z" * 4097, "".join(rng.choices("abcé日", k=rng.randint(1, 12)))])
    return value, value.encode()


def document(rng):
    value = json.dumps(rng.choice([{}, [], {"a": rng.randint(0, 3)}, "é", 1.5, {"k": "v" * 5000}]),
                       ensure_ascii=False)
    return value, value.encode()


def octets(rng):
    value = rng.choice([b"", b"\0", b"\0\1\xff", b"\xff" * 5000, rng.randbytes(rng.randint(1, 9))])
    return value, value


def unique(rng):
    value = rng.choice([bytes(16), b"\xff" * 16, uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes,
                        rng.randbytes(16)])
    return value, value


def value_of(rng, column):
    name = column["type"]
    if name == "boolean":
        value = rng.random() < 0.5
        return value, bytes([value])
    if name in INTEGERS:
        return integer(rng, name)
    if name in ("float", "double"):
        return floating(rng, name)
    if name == "decimal":
        return scaled(rng, column["type_params"]["precision"], column["type_params"]["scale"])
    if name in INSTANTS:
        return instant(rng, name)
    return {"date": date, "time": time, "string": text, "json": document, "binary": octets,
            "uuid": unique}[name](rng)


def arrow_column(values, kind):
    """Values as given above, as an array of the type."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
    if pa.types.is_date32(kind):
        return pa.array(values, pa.int32()).cast(kind)
    if pa.types.is_time64(kind) or pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


# --- tables ------------------------------------------------------------------------------------

def random_columns(rng, number):
    kinds = TYPES if number == 0 else rng.sample(TYPES, rng.randint(1, 8))
    columns = []
    for i, kind in enumerate(kinds):
        column = {"name": "c%d_%s" % (i, kind), "type": kind, "nullable": True}
        if kind == "decimal":
            precision = rng.choice([1, 9, 10, 18, 19, 38, rng.randint(1, 38)])
            column["type_params"] = {"precision": precision, "scale": rng.randint(0, precision)}
        columns.append(column)
    return columns


def random_spec(rng, columns, number):
    """Transforms of the live columns; every table of the first ones has one of its own."""
    fields = []
    for column in rng.sample(columns, min(len(columns), number % 4)):
        kind, transforms = column["type"], ["identity"]
        if kind in BUCKETS:
            transforms.append("bucket")
        if kind in INSTANTS or kind == "date":
            transforms += [name for name in TEMPORAL if kind != "date" or name != "hour"]
        field = {"source_field_id": column["field_id"], "transform": rng.choice(transforms)}
        if field["transform"] == "bucket":
            field["transform_param"] = rng.choice([1, 2, 7, 16, 128])
        fields.append(field)
    return fields


class World:
    def __init__(self, tool, url, endpoint, access_key, secret_key):
        self.tool = tool
        self.s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1",
                               aws_access_key_id=access_key, aws_secret_access_key=secret_key,
                               config=Config(s3={"addressing_style": "path"}))
        client = HoglakeClient(url, s3=S3Config(access_key=access_key, secret_key=secret_key,
                                                endpoint_override=endpoint, region="us-east-1"))
        self.name = "v" + uuid.uuid4().hex[:12]
        self.data_path = "s3://%s/%s/" % (BUCKET, self.name)
        self.catalog = client.create_catalog(self.name, self.data_path)
        self.namespace = self.catalog.create_namespace("n")
        self.http = httpx.Client(base_url="%s/v1/catalogs/%s/namespaces/n" % (url, self.name), timeout=60)

    def call(self, method, path, body=None):
        answer = self.http.request(method, path, json=body)
        answer.raise_for_status()
        return answer.json()

    def table(self, rng, number):
        """A new table; gives its state on the wire."""
        path = "/tables/t%d" % number
        made = self.call("POST", "/tables", {"name": "t%d" % number,
                                             "columns": random_columns(rng, number)})
        fields = random_spec(rng, made["columns"], number)
        if fields:
            self.call("POST", path + "/alter", {"ops": [{"op": "set_partition_spec", "fields": fields}]})
        return self.call("GET", path + "?totals=false")


def random_rows(rng, columns):
    """Rows as lists of pairs or None; pools are small, so that partitions have several rows."""
    pools = [[value_of(rng, column) for _ in range(rng.randint(1, 3))] for column in columns]
    nulls = [rng.choice([0, 0, 0.2, 0.7, 1]) for _ in columns]
    return [[None if rng.random() < nulls[i] else rng.choice(pools[i] + [value_of(rng, column)])
             if rng.random() < 0.1 else None if rng.random() < nulls[i] else rng.choice(pools[i])
             for i, column in enumerate(columns)] for _ in range(rng.randint(1, 40))]


# --- what must be the same ---------------------------------------------------------------------

def shape(value):
    """Members and their order, without values."""
    if isinstance(value, dict):
        return [(name, shape(item)) for name, item in value.items()]
    return [shape(item) for item in value] if isinstance(value, list) else None


def texts_of(column):
    """The values of a column of texts or bytes, as bytes; [] for other types."""
    kind = column.type.storage_type if isinstance(column.type, pa.BaseExtensionType) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        return []
    return [value.encode() if isinstance(value, str) else value
            for value in column.to_pylist() if value is not None]


def long_bounds(texts):
    """pyarrow keeps no bound at all where one of the two is too long; ours keeps the other, unless
    there is no upper one to be had."""
    if not max(texts)[:4096].strip(b"\xff"):
        return {}
    bounds = [("lower_bound", min(texts)), ("upper_bound", max(texts))]
    return {name: base64.b64encode(value).decode() for name, value in bounds if len(value) <= 4096}


def compare_stats(theirs, ours, empty, group, schema, what):
    """Columns that no row names are not in our files; all else is the same, but for sizes."""
    wanted = [stats for stats in theirs if stats["field_id"] not in empty]
    assert [s["field_id"] for s in wanted] == [s["field_id"] for s in ours], what
    columns = {int(field.metadata[b"PARQUET:field_id"]): group.column(field.name) for field in schema}
    for want, got in zip(wanted, ours):
        texts = texts_of(columns[want["field_id"]])
        if texts and max(len(min(texts)), len(max(texts))) > 4096:
            assert "lower_bound" not in want and "upper_bound" not in want, (what, want)
            want = dict(want, **long_bounds(texts))
        assert list(want) == list(got), (what, want, got)
        assert got["size_bytes"] > 0, (what, got)
        assert dict(want, size_bytes=0) == dict(got, size_bytes=0), (what, want, got)
    for stats in theirs:
        if stats["field_id"] in empty:
            assert stats["value_count"] == stats["null_count"], (what, stats)


def bounds_differ(column):
    """Whether the footer has other bounds than the catalog: none where a NaN is, cut ones of long
    texts, which the catalog does not get."""
    if pa.types.is_floating(column.type):
        return any(value is not None and math.isnan(value) for value in column.to_pylist())
    return any(len(value) > 4000 for value in texts_of(column))


def without_bounds(stats):
    return {name: item for name, item in stats.items() if name not in ("lower_bound", "upper_bound")}


def compare_file(world, path, entry, info, schema, group, empty):
    """One of our files, as pyhoglake and pyarrow see it."""
    metadata = pq.read_metadata(path)
    fields = pq.read_schema(path)
    wanted = [field for field in schema if int(field.metadata[b"PARQUET:field_id"]) not in empty]
    assert fields.names == [field.name for field in wanted]
    for got, want in zip(fields, wanted):
        assert got.metadata[b"PARQUET:field_id"] == want.metadata[b"PARQUET:field_id"]
        assert got.nullable
    assert entry["file_size_bytes"] == os.path.getsize(path)
    assert entry["record_count"] == metadata.num_rows == group.num_rows
    with open(path, "rb") as file:
        file.seek(-8, os.SEEK_END)
        assert entry["footer_size"] == struct.unpack("<I", file.read(4))[0]
    odd = {int(field.metadata[b"PARQUET:field_id"]) for field in wanted
           if bounds_differ(group.column(field.name))}
    for want, got in zip((s.to_wire() for s in extract_column_stats(metadata, info.columns)),
                         entry["column_stats"]):
        if want["field_id"] in odd:
            want, got = without_bounds(want), without_bounds(got)
        assert want == got, (want, got)
    rows = pq.read_table(path)
    for field in wanted:
        want, got = group.column(field.name), rows.column(field.name)
        storage = want.type.storage_type if isinstance(want.type, pa.BaseExtensionType) else want.type
        if isinstance(got.type, pa.BaseExtensionType):
            assert got.type == want.type, (field, got.type)
            got = pa.chunked_array([chunk.storage for chunk in got.chunks], storage)
            want = pa.chunked_array([chunk.storage for chunk in want.chunks], storage)
        got, want = got.cast(storage).combine_chunks(), want.combine_chunks()
        assert repr_all(got) == repr_all(want), field


def repr_all(array):
    """Values that compare as they are: NaN with NaN, -0.0 not with 0.0, instants as numbers."""
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    return [repr(value) for value in array.to_pylist()]


def message_of(ranges, topic, counts, table_uuid):
    """As the Python program writes it."""
    lines = ["records=%d files=%d partitions=%d arrow_bytes=%d trigger=%s millpond=%s table=%s" %
             (counts + (table_uuid,))]
    if ranges:
        lines.append("offsets %s %s (%d)" % (topic, " ".join("p%d:%d-%d" % r for r in ranges), len(ranges)))
    return "\n".join(lines)


def commit(world, body, directory, number):
    """Our request is taken once and answered the same the second time."""
    for index, entry in enumerate(body["appends"][0]["files"]):
        key = entry["path"][len("s3://%s/" % BUCKET):]
        world.s3.upload_file(os.path.join(directory, str(index)), BUCKET, key)
    first, second = world.catalog.commit_prepared(body), world.catalog.commit_prepared(body)
    assert first.snapshot_id == second.snapshot_id
    files = world.call("GET", "/tables/t%d/files" % number)
    files = {file["path"]: file for file in (files["files"] if isinstance(files, dict) else files)}
    assert set(files) == {entry["path"] for entry in body["appends"][0]["files"]}
    for entry in body["appends"][0]["files"]:
        assert files[entry["path"]].get("partition_values") == entry.get("partition_values")
        assert files[entry["path"]]["stats_state"] == "provided"


def one_table(world, rng, number):
    wire = world.table(rng, number)
    table = world.namespace.table("t%d" % number)
    info = table.info()
    schema = columns_to_arrow_schema(info.columns)
    rows = random_rows(rng, wire["columns"])
    data = pa.table([arrow_column([None if row[i] is None else row[i][0] for row in rows], field.type)
                     for i, field in enumerate(schema)], schema=schema)
    absent = [i for i in range(len(wire["columns"]))
              if all(row[i] is None for row in rows) and rng.random() < 0.5]
    absent = absent[:len(wire["columns"]) - 1]  # a file has a column
    empty = {wire["columns"][i]["field_id"] for i in absent}
    spec = info.partition_spec
    groups = _partition_groups(data, info, spec) if spec and spec.fields else [(None, data)]
    ranges = sorted((rng.randint(0, 40), first, first + rng.randint(0, 99))
                    for first in rng.sample(range(10 ** 6), rng.randint(0, 3)))
    ranges = [r for i, r in enumerate(ranges) if not i or ranges[i - 1][0] != r[0]]
    topic = rng.choice(["events", "a.b-c_d", "x" * 200])
    trigger = rng.choice(["size", "time", "final"])
    lines = ["%s/n/t%d/%s" % (world.name, number, table.table_uuid)]
    lines += ["%s:%d:%d-%d" % ((topic,) + r) for r in ranges]
    key = str(uuid.uuid5(KEYS, "\n".join(lines)))
    theirs = table.prepare_append_tables([(group, values) for values, group in groups],
                                         idempotency_key=key)
    question = {"catalog": world.name, "data_path": world.catalog.data_path, "topic": topic,
                "version": "1.2.3", "author": "millpond/t/0", "trigger": trigger, "table": wire,
                "arrow_bytes": data.nbytes, "group_rows": rng.choice([1, 3, 1000]), "ranges": ranges, "absent": absent,
                "rows": [[None if value is None else value[1].hex() for value in row] for row in rows]}
    with tempfile.TemporaryDirectory(prefix="hoglake-values-") as directory:
        done = subprocess.run([world.tool, directory], input=json.dumps(question).encode(),
                              capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr.decode()
        ours = json.loads(done.stdout)
        assert list(ours) == list(theirs) + ["author", "message"]
        assert ours["idempotency_key"] == key
        assert ours["read_snapshot"] == theirs["read_snapshot"]
        assert ours["author"] == "millpond/t/0"
        counts = (len(rows), len(groups), len(groups) if groups[0][0] is not None else 0, data.nbytes,
                  {"time": "interval"}.get(trigger, trigger), "1.2.3")
        assert ours["message"] == message_of(ranges, topic, counts, table.table_uuid)
        assert [shape(dict(a, files=[])) for a in ours["appends"]] == \
            [shape(dict(a, files=[])) for a in theirs["appends"]]
        assert dict(ours["appends"][0], files=0) == dict(theirs["appends"][0], files=0)
        got, want = ours["appends"][0]["files"], theirs["appends"][0]["files"]
        assert [f.get("partition_values") for f in got] == [f.get("partition_values") for f in want]
        for index, (a, b) in enumerate(zip(got, want)):
            assert list(a) == list(b), (list(a), list(b))
            assert a["record_count"] == b["record_count"]
            head, tail = a["path"].rsplit("/", 1)
            assert head == b["path"].rsplit("/", 1)[0]
            assert uuid.UUID(tail[:36]).version == 4 and tail[36:] == "-%d.parquet" % index
            compare_stats(b["column_stats"], a["column_stats"], empty, groups[index][1], schema,
                          (number, index))
            compare_file(world, os.path.join(directory, str(index)), a, info, schema,
                         groups[index][1], empty)
        if not empty:  # pyhoglake wants every column; it checks names, types, order and field ids
            again = table.prepare_append_files(
                [(os.path.join(directory, str(i)), values) for i, (values, _) in enumerate(groups)],
                idempotency_key=str(uuid.uuid4()))
            for a, b in zip(got, again["appends"][0]["files"]):
                assert {k: v for k, v in a.items() if k not in ("path", "column_stats")} == \
                    {k: v for k, v in b.items() if k not in ("path", "column_stats")}
        commit(world, ours, directory, number)
    return bool(empty), len(groups)


def main():
    tool, url, endpoint, access_key, secret_key, seed, tables = sys.argv[1:]
    world = World(tool, url, endpoint, access_key, secret_key)
    passed = failed = files = whole = 0
    for number in range(int(tables)):
        rng = random.Random("%s-%d" % (seed, number))
        try:
            lacking, count = one_table(world, rng, number)
            passed, files, whole = passed + 1, files + count, whole + (not lacking)
        except Exception:  # whatever it is, it is this table's
            failed += 1
            print("table %d of seed %s:\n%s" % (number, seed, traceback.format_exc(limit=-4)[-4000:]))
    print("%d files, %d tables with a value in every column" % (files, whole))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
