"""The hoglake destination between real parts: Kafka, hoglaked over PostgreSQL, S3; judged by the real
pyhoglake and pyarrow."""
import json
import os
import subprocess
import time

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import gen_events
import hoglakes
import lakes
import services
import test_main_job

WRITTEN, FLUSHED = "millpond_records_written_total", "millpond_batches_flushed_total"
PARTITIONS = 4

# Scans a table as a reader does: the client says which files, pyarrow reads them from the store.
SCAN = """
import json, sys
import pyarrow as pa, pyarrow.parquet as pq
from pyhoglake import HoglakeClient, S3Config
url, catalog, namespace, table, endpoint, region, key, secret = sys.argv[1:]
s3 = S3Config(access_key=key, secret_key=secret, region=region, endpoint_override=endpoint)
with HoglakeClient(url, s3=s3) as client:
    table = client.catalog(catalog).namespace(namespace).table(table)
    rows = pa.concat_tables(pq.read_table(f.path[len("s3://"):], filesystem=s3.filesystem())
                            for f in table.files())
    plan = table.scan_plan()
print(json.dumps({"n": rows["n"].to_pylist(), "team_id": rows["team_id"].to_pylist(),
                  "plan_files": len(plan), "columns": [c.name for c in table.columns]}))
"""


def scan(lake):
    done = subprocess.run(
        [os.path.join(services.ENV, "pyhoglake/bin/python"), "-c", SCAN, lake.server.url,
         lake.catalog, hoglakes.NAMESPACE, hoglakes.TABLE, lake.s3.endpoint, lake.s3.region,
         lake.s3.access_key, lake.s3.secret_key], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def numbered(low, high, pad=20):
    return ['{"n":%d,"team_id":%d,"pad":"%s"}' % (n, n % 2, "x" * pad) for n in range(low, high)]


def months_since_1970(us):
    when = time.gmtime(us // 1000000)
    return (when.tm_year - 1970) * 12 + when.tm_mon - 1


def test_600_events_in_a_partitioned_sorted_table(kafka, hog_lake):
    topic = lakes.unique("six")
    kafka.create_topic(topic, partitions=PARTITIONS)
    services.produce(kafka.bootstrap, topic, numbered(0, 600), PARTITIONS)
    env = services.environment(kafka, topic, MILLPOND_SORT_BY="team_id", **hog_lake.env(
        HOGLAKE_PARTITION_BY="team_id, month(_inserted_at)"))
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 600)
        assert millpond.metric(WRITTEN) == 600
        assert millpond.metric("millpond_hoglake_files_written_total") == len(hog_lake.files())
        assert millpond.metric("millpond_hoglake_orphaned_files_total") == 0
    seen = scan(hog_lake)
    assert sorted(seen["n"]) == list(range(600)) and seen["plan_files"] == len(hog_lake.files())
    assert sorted(seen["team_id"]) == [0] * 300 + [1] * 300
    assert seen["columns"] == ["n", "team_id", "pad", "_inserted_at"]
    info = hog_lake.info()
    ids = {column["name"]: column["field_id"] for column in info["columns"]}
    assert [(f["source_field_id"], f["transform"]) for f in info["partition_spec"]["fields"]] == \
        [(ids["team_id"], "identity"), (ids["_inserted_at"], "month")]
    assert [(f["source_field_id"], f["direction"], f["null_order"])
            for f in info["sort_spec"]["fields"]] == [(ids["team_id"], "asc", "nulls_last")]
    for file in hog_lake.files():
        table = hog_lake.read(file)
        team, month = file["partition_values"]
        assert set(table["team_id"].to_pylist()) == {int(team)}
        stamps = set(table["_inserted_at"].cast(pa.int64()).to_pylist())
        assert {str(months_since_1970(us)) for us in stamps} == {month}
        assert file["record_count"] == table.num_rows
        assert file["path"].startswith(hog_lake.data_path + "data/analytics/events/")
        assert [int(table.schema.field(i).metadata[b"PARQUET:field_id"])
                for i in range(table.num_columns)] == [ids[name] for name in table.column_names]
    assert hog_lake.objects() == {file["path"] for file in hog_lake.files()}, "no orphan"
    hoglakes.check_offsets(kafka, topic, PARTITIONS)


def test_300000_events(kafka, hog_lake):
    events = test_main_job.EVENTS
    generator = gen_events.Generator(seed=11)
    lines = [generator.event(index).encode() for index in range(events)]
    expected = test_main_job.expected_of(lines)
    topic = lakes.unique("events")
    kafka.create_topic(topic, partitions=PARTITIONS)
    services.produce(kafka.bootstrap, topic, lines, PARTITIONS)
    env = services.environment(kafka, topic, FLUSH_SIZE=events * 200, FLUSH_INTERVAL_MS=3000,
                               MILLPOND_TYPED_COLUMNS="timestamp:timestamptz",
                               **hog_lake.env(HOGLAKE_PARTITION_BY="day(timestamp)"))
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, events, 180)
        assert millpond.metric(WRITTEN) == events and millpond.metric("millpond_errors_total") == 0
        print("peak RSS %.0f MB" % (millpond.peak_rss() / 1e6))
    assert hog_lake.rows() == events
    paths = [hog_lake.on_disk(file["path"]) for file in hog_lake.files()]
    columns = {column["name"]: column["type"] for column in hog_lake.info()["columns"]}
    odd = expected.pop("$session_id")  # a name that no column of a hoglake may have
    assert set(columns) == set(expected) | {"_inserted_at", "_rescued_data"}
    assert columns["timestamp"] == "timestamptz" and columns["team_id"] == "long"
    connection = services.duckdb_plain()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("CREATE VIEW events AS SELECT * FROM read_parquet(%s, union_by_name=true)" %
                       json.dumps(paths).replace('"', "'"))
    assert connection.execute("SELECT count(*), count(DISTINCT _rescued_data->>'$.$session_id') FROM "
                              "events WHERE _rescued_data IS NOT NULL").fetchone() == \
        (odd.count, len(odd.distinct))
    for name, column in expected.items():
        test_main_job.check_column(connection, "events", name, column)
    connection.close()
    hoglakes.check_offsets(kafka, topic, PARTITIONS)


def test_five_steady_flushes_are_five_commits_and_nothing_else(kafka, hog_proxied):
    """Also while the offsets of filtered stretches move on, which asks the catalog nothing."""
    lake, proxy = hog_proxied, hog_proxied.catalog_proxy
    topic = lakes.unique("steady")
    kafka.create_topic(topic, partitions=2)
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=300, MILLPOND_FILTER_KEEP_FIELD_NAME="team_id",
                               MILLPOND_FILTER_VALUES="0,1", **lake.env())
    with services.run_millpond(env) as millpond:
        services.produce(kafka.bootstrap, topic, numbered(0, 10))
        millpond.wait_metric(WRITTEN, 10)
        proxy.forget()
        for flush in range(1, 6):
            services.produce(kafka.bootstrap, topic, numbered(flush * 10, flush * 10 + 10),
                             partition=0)
            services.produce(kafka.bootstrap, topic, ['{"n":-1,"team_id":7}'], partition=1)
            millpond.wait_metric(WRITTEN, flush * 10 + 10)
            services.wait_until(lambda: kafka.committed(hoglakes.group_of(topic), topic, 1)[0] ==
                                kafka.watermarks(topic, 1)[1], 120, "offsets of what is left out")
        assert proxy.requests == [("POST", "/v1%s/commit/prepared" % lake.path)] * 5
    lake.check_numbers(range(60))


def test_messages_name_the_offsets(kafka, hog_lake):
    topic = lakes.unique("message")
    kafka.create_topic(topic, partitions=2)
    services.produce(kafka.bootstrap, topic, numbered(0, 20), 2)
    env = services.environment(kafka, topic, OTEL_SERVICE_VERSION=None, **hog_lake.env())
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 20)
    first, second = hog_lake.messages()[-1].split("\n")
    uuid = hog_lake.info()["table_uuid"]
    assert first.startswith("records=20 files=1 partitions=0 arrow_bytes=") and \
        first.endswith(" table=%s" % uuid), first
    assert second == "offsets %s p0:0-9 p1:0-9 (2)" % topic
    snapshots = hog_lake.ok("GET", hog_lake.path + "/snapshots?after=0")["snapshots"]
    assert snapshots[-1]["author"] == "millpond/events/0"


def test_new_keys_make_columns_in_one_alter(kafka, hog_proxied):
    lake, proxy = hog_proxied, hog_proxied.catalog_proxy
    topic = lakes.unique("columns")
    kafka.create_topic(topic)
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=300, **lake.env())
    with services.run_millpond(env) as millpond:
        services.produce(kafka.bootstrap, topic, ['{"n":0}'])
        millpond.wait_metric(WRITTEN, 1)
        proxy.forget()
        services.produce(kafka.bootstrap, topic, ['{"n":1,"a":"x","b":true,"c":1.5,"N":2}'])
        millpond.wait_metric(WRITTEN, 2)
        assert proxy.asked("POST", "/alter") == 1
        services.produce(kafka.bootstrap, topic, ['{"n":2.5,"a":7}', '{"n":3.0,"bad name":1}'])
        millpond.wait_metric(WRITTEN, 4)
    kinds = {column["name"]: column["type"] for column in lake.info()["columns"]}
    assert kinds == {"n": "long", "_inserted_at": "timestamptz", "a": "string", "b": "boolean",
                     "c": "double", "N": "long", "_rescued_data": "string"}
    rows = []
    for file in lake.files():
        rows += lake.read(file).to_pylist()
    rescued = sorted((row.get("_rescued_data") for row in rows if row.get("_rescued_data")))
    assert [json.loads(text) for text in rescued] == [{"bad name": 1}, {"n": 2.5}]
    assert sorted(row["n"] for row in rows if row["n"] is not None) == [0, 1, 3]
    assert [row["a"] for row in rows if row.get("a")] in (["x", "7"], ["7", "x"])


def test_a_table_laid_out_otherwise_stops_the_start(kafka, hog_lake):
    topic = lakes.unique("layout")
    kafka.create_topic(topic)
    services.produce(kafka.bootstrap, topic, numbered(0, 10))
    env = services.environment(kafka, topic, **hog_lake.env(HOGLAKE_PARTITION_BY="bucket(n, 4)"))
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 10)
    services.produce(kafka.bootstrap, topic, numbered(10, 20))
    env["HOGLAKE_PARTITION_BY"] = "team_id"
    with services.run_millpond(env, ready=False) as millpond:
        assert millpond.wait_exit(120) != 0
        assert "bucket(n, 4)" in millpond.log() and "team_id" in millpond.log()
    env["HOGLAKE_PARTITION_BY"] = "bucket( n ,4 )"
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 10)
    hog_lake.check_numbers(range(20))


def test_load_keeps_its_plan_in_a_state_file(hog_lake, tmp_path):
    path, state = str(tmp_path / "in.ndjson"), str(tmp_path / "state.json")
    with open(path, "w") as out:
        out.write("\n".join(numbered(0, 5000)) + "\n")
    env = {key: value for key, value in hog_lake.env(FLUSH_SIZE="100000").items()
           if value is not None}
    code, out, err = services.millpond_once(env, "load", path)
    assert code == 2 and "--state" in out + err
    for lines, want in ((0, 5000), (0, 5000), (1000, 6000)):
        with open(path, "a") as out:
            out.writelines(line + "\n" for line in numbered(5000, 5000 + lines))
        code, out, err = services.millpond_once(env, "load", "--state", state, path)
        assert code == 0, out + err
        hog_lake.check_numbers(range(want))


def test_load_once_more_and_a_state_that_is_gone(hog_lake, tmp_path):
    path, state = str(tmp_path / "in.ndjson"), str(tmp_path / "state.json")
    with open(path, "w") as out:
        out.write("\n".join(numbered(0, 1000)) + "\n")
    env = {key: value for key, value in hog_lake.env().items() if value is not None}

    def load(*arguments):
        return services.millpond_once(env, "load", "--state", state, *arguments, path)

    assert load()[0] == 0
    assert load("--again")[0] == 0
    assert hog_lake.rows() == 2000
    assert load()[0] == 0  # goes on where the newer one ended
    assert hog_lake.rows() == 2000
    os.unlink(state)
    code, out, err = load()
    assert code == 4 and "MILLPOND_HOGLAKE_LOST_OFFSETS" in out + err, out + err
    assert hog_lake.rows() == 2000


def test_a_bucket_that_is_not_there_makes_no_catalog(kafka, hog, hog_lake):
    """Its data path would be fixed for ever."""
    topic, name = lakes.unique("nobucket"), lakes.unique("nobucket")
    kafka.create_topic(topic)
    env = {key: value for key, value in services.environment(
        kafka, topic, **hog_lake.env(HOGLAKE_CATALOG=name,
                                     HOGLAKE_DATA_PATH="s3://no-such-bucket/x")).items()
        if value is not None}
    code, out, err = services.millpond_once(env, "check")
    assert code == 4 and "look at HOGLAKE_S3_ENDPOINT" in out and "DUCK" not in out, out + err
    code, out, err = services.millpond_once(env, "run")
    assert code == 4 and "NoSuchBucket" in err, out + err
    status, body = services.http_get("http://127.0.0.1:%d/v1/catalogs/%s" % (hog.port, name))
    assert status == 404, body
    code, out, err = services.millpond_once(dict(env, HOGLAKE_URL=env["HOGLAKE_URL"] + "/x"), "check")
    assert code == 2 and "knows no catalogs" in out, out + err  # the first fault
