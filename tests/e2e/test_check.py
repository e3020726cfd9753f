"""`millpond check` on set-ups that are broken on purpose: one run names every fault, each in one line
with what to do, and leaves everything as it was."""
import contextlib
import http.server
import os
import re
import sqlite3
import threading
import time

import pytest

import lakes
import services
from test_include_values import endpoint

PASSWORD, TOKEN = "hunter2-pg", "hunter2-otlp"
HOUR = 3600


class Answers:
    """An HTTP server that answers everything alike, with the time it is told; keeps what it saw."""

    def __init__(self, status, body=b"", ahead_s=0):
        self.seen = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.seen.append((self.command, self.path, dict(self.headers)))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer

            def date_time_string(self, timestamp=None):
                return super().date_time_string((timestamp or time.time()) + ahead_s)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = "127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@contextlib.contextmanager
def answering(status, body=b"", ahead_s=0):
    answers = Answers(status, body, ahead_s)
    try:
        yield answers
    finally:
        answers.server.shutdown()
        answers.server.server_close()


def closed():
    return "127.0.0.1:%d" % services.free_port()


def run_check(env, code):
    """{part: text behind it} of the lines that name a fault, and the parts that are fine."""
    done, out, err = services.millpond_once(env, "check", seconds=120)
    faults, fine = {}, []
    for line in out.splitlines():
        kind, part, text = re.fullmatch(r"(ok|note|FAULT) +(\w+) +(.*)", line).groups()
        if kind == "FAULT":
            assert part not in faults, "two lines for one part:\n" + out
            faults[part] = text
        elif kind == "ok":
            fine.append(part)
    assert done == code, (done, out, err)
    assert not err and PASSWORD not in out and TOKEN not in out
    return faults, fine


def check_faults(env, code, want):
    """want: {part: what its line has to say}."""
    faults, fine = run_check(env, code)
    assert set(faults) == set(want), faults
    for part, texts in want.items():
        for text in texts:
            assert text in faults[part], (part, text, faults[part])
    return fine


def include(served):
    return {"MILLPOND_FILTER_KEEP_FIELD_NAME": "team", "MILLPOND_FILTER_VALUES": "1",
            "MILLPOND_INCLUDE_VALUES_URL": served, "MILLPOND_INCLUDE_VALUES_REQUEST_TIMEOUT_S": "5"}


def logs(url):
    return {"POSTHOG_PROJECT_TOKEN": TOKEN, "POSTHOG_LOGS_ENDPOINT": url}


def tables(db, database):
    return db.query(database, "SELECT table_schema, table_name FROM information_schema.tables "
                              "WHERE table_schema NOT IN ('pg_catalog', 'information_schema')")


def groups(kafka):
    return {group.group_id for group in kafka.admin().list_consumer_groups().result(20).valid}


def test_a_good_set_up_has_no_fault(kafka, db, tmp_path):
    """And none of the directories that the probe needed stays."""
    topic = lakes.unique("good")
    kafka.create_topic(topic)
    database = lakes.unique("good")
    db.create_database(database)
    with endpoint([1, 2]) as served, answering(200) as collector:
        env = services.environment(
            kafka, topic, MILLPOND_CATALOG="postgres:" + db.conninfo(database),
            DUCKLAKE_DATA_PATH="%s/not/there/yet/" % tmp_path, **include(served.url),
            **logs("http://%s/v1/logs" % collector.host))
        faults, fine = run_check(env, 0)
        assert faults == {}
        assert fine == ["settings", "kafka", "catalog", "store", "clock", "include", "logs"]
        (method, path, headers), = collector.seen
        assert (method, path) == ("POST", "/v1/logs")
        assert headers["Authorization"] == "Bearer " + TOKEN
    assert os.listdir(str(tmp_path)) == []
    assert tables(db, database) == []
    assert not [group for group in groups(kafka) if topic in group]


def test_wrong_password_no_topic_no_bucket_and_refusing_endpoints(kafka, db, s3):
    database, topic = lakes.unique("locked"), lakes.unique("missing")
    db.create_database(database)
    db.query("postgres", "CREATE ROLE picky LOGIN PASSWORD 'another one'")
    with open(os.path.join(db.data, "pg_hba.conf"), "r+") as rules:
        text = rules.read()
        rules.seek(0)
        rules.write("host all picky 127.0.0.1/32 scram-sha-256\n" + text)
    db.query("postgres", "SELECT pg_reload_conf()")
    before = s3.client().list_buckets()["Buckets"]
    with endpoint([], status=403) as served, answering(401) as collector:
        env = services.environment(
            kafka, topic, DUCKLAKE_RDS_HOST="127.0.0.1", DUCKLAKE_RDS_PORT=db.port,
            DUCKLAKE_RDS_DATABASE=database, DUCKLAKE_RDS_USERNAME="picky",
            DUCKLAKE_RDS_PASSWORD=PASSWORD, DUCKLAKE_CONNECTION=":memory:",
            DUCKLAKE_DATA_PATH="s3://no-such-bucket/lake/", **s3.ducklake_env(),
            **include(served.url), **logs("http://%s/v1/logs" % collector.host))
        # the reload of the rules is not waited for by PostgreSQL
        services.wait_until(lambda: "catalog" in run_check(env, 2)[0], 120, "the rule")
        check_faults(env, 2, {
            "kafka": [topic, "make the topic"],
            "catalog": ["picky", "look at user and password"],
            "store": ["no-such-bucket", "make the bucket"],
            "include": ["MILLPOND_INCLUDE_VALUES_URL", "403", "look at it"],
            "logs": ["POSTHOG_LOGS_ENDPOINT", "401", "look at POSTHOG_PROJECT_TOKEN"],
        })
    assert topic not in kafka.admin().list_topics(timeout=60).topics
    assert s3.client().list_buckets()["Buckets"] == before
    assert tables(db, database) == []


def test_newer_catalog_and_a_file_where_a_directory_should_be(kafka, local_lake, tmp_path):
    topic = lakes.unique("newer")
    kafka.create_topic(topic)
    lakes.load(local_lake, ['{"n":1}'], tmp_path)
    catalog = local_lake.catalog.split(":", 1)[1]
    connection = sqlite3.connect(catalog)
    connection.execute("UPDATE ducklake_metadata SET value = '9.9' WHERE key = 'version'")
    connection.commit()
    connection.close()
    (tmp_path / "file").write_text("in the way")
    with open(catalog, "rb") as file:
        before = file.read()
    with endpoint({"no": "list"}) as served:
        env = services.environment(
            kafka, topic, **dict(local_lake.env(), DUCKLAKE_DATA_PATH="%s/file/data/" % tmp_path),
            **include(served.url), **logs("http://%s/v1/logs" % closed()))
        fine = check_faults(env, 2, {
            "catalog": ["9.9", "1.0", "use a millpond that knows this version"],
            "store": ["%s/file" % tmp_path, "name a directory in DUCKLAKE_DATA_PATH"],
            "include": ["MILLPOND_INCLUDE_VALUES_URL", "array"],
            "logs": ["POSTHOG_LOGS_ENDPOINT", "the way there"],
        })
    assert fine == ["settings", "kafka"]
    with open(catalog, "rb") as file:
        assert file.read() == before
    assert (tmp_path / "file").read_text() == "in the way"


def test_clock_off_by_an_hour_and_a_prefix_that_may_not_be_written(kafka, db):
    """The database's now() and the store's Date are an hour behind ours. One line names both."""
    topic, database = lakes.unique("clock"), lakes.unique("clock")
    kafka.create_topic(topic)
    db.create_database(database)
    db.query(database, "CREATE SCHEMA shifted")
    db.query(database, "CREATE FUNCTION shifted.now() RETURNS timestamptz LANGUAGE sql AS "
                       "$$ SELECT pg_catalog.now() - interval '1 hour' $$")
    db.query("postgres", 'ALTER DATABASE "%s" SET search_path = shifted, pg_catalog' % database)
    denied = b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"
    with answering(403, denied, -HOUR) as store:
        env = services.environment(
            kafka, topic, MILLPOND_CATALOG="postgres:" + db.conninfo(database),
            DUCKLAKE_DATA_PATH="s3://lake/kept/for/others/", DUCKDB_S3_ENDPOINT=store.host,
            DUCKDB_S3_USE_SSL="false", DUCKDB_S3_ACCESS_KEY_ID="key",
            DUCKDB_S3_SECRET_ACCESS_KEY=PASSWORD, DUCKDB_S3_REGION="us-east-1")
        faults, fine = run_check(env, 4)
        assert {method for method, _, _ in store.seen} == {"PUT"}
        assert all(path.startswith("/lake/kept/for/others/_millpond/check-")
                   for _, path, _ in store.seen)
    assert set(faults) == {"store", "clock"} and fine == ["settings", "kafka", "catalog"]
    assert "403 AccessDenied" in faults["store"] and "let them put and delete" in faults["store"]
    ahead = re.findall(r"(\d+) s ahead of the (catalog's|store's)", faults["clock"])
    assert {whose for _, whose in ahead} == {"catalog's", "store's"}, faults["clock"]
    assert all(abs(int(seconds) - HOUR) < 30 for seconds, _ in ahead), faults["clock"]
    assert "set it right" in faults["clock"]


def test_nothing_answers(db, tmp_path):
    """A broker, a database and an endpoint that are not there, and no partition to read."""
    broker = closed()
    env = services.environment(
        None, "t", KAFKA_BOOTSTRAP_SERVERS=broker,
        MILLPOND_CATALOG="postgres:" + db.conninfo(lakes.unique("nowhere")),
        DUCKLAKE_DATA_PATH="s3://lake/x/", DUCKDB_S3_ENDPOINT=closed(), DUCKDB_S3_USE_SSL="false",
        DUCKDB_S3_ACCESS_KEY_ID="key", DUCKDB_S3_SECRET_ACCESS_KEY=PASSWORD,
        **include("http://%s/values" % closed()))
    check_faults(env, 5, {
        "kafka": [broker, "look at KAFKA_BOOTSTRAP_SERVERS"],
        "catalog": ["nowhere", "make the database"],
        "store": ["DUCKDB_S3_ENDPOINT", "the way there"],
        "include": ["MILLPOND_INCLUDE_VALUES_URL", "look at it"],
    })


def test_more_pods_than_partitions(kafka, local_lake):
    topic = lakes.unique("pods")
    kafka.create_topic(topic, partitions=2)
    env = services.environment(kafka, topic, REPLICA_COUNT=3, POD_NAME="millpond-2",
                               **local_lake.env())
    fine = check_faults(env, 2, {"kafka": ["no partition is ours", "POD_NAME and REPLICA_COUNT"]})
    assert fine == ["settings", "catalog", "store"]


@pytest.mark.parametrize("made, part", [
    ("CREATE TABLE lake.bad(topic INT, payload BIGINT)", "MILLPOND_QUARANTINE_TABLE.*int32.*varchar"),
    ("CREATE TABLE lake.events(n INT, _Rescued_Data BIGINT)",
     "MILLPOND_RESCUED_COLUMN.*_Rescued_Data.*int64.*varchar"),
    ("CREATE VIEW lake.bad AS SELECT 1 AS one", '"bad" is a view'),
    ("CREATE VIEW lake.events AS SELECT 1 AS one", '"events" is a view'),
], ids=["quarantine", "rescued", "quarantine_view", "view"])
def test_tables_that_cannot_take_our_own_columns(kafka, local_lake, made, part, tmp_path):
    """check names what run would end with, before a record is read."""
    topic = lakes.unique("own")
    kafka.create_topic(topic)
    services.produce(kafka.bootstrap, topic, ['{"n":"x"}', "no JSON"])
    local_lake.execute(made)
    env = services.environment(kafka, topic, MILLPOND_QUARANTINE_TABLE="bad", **local_lake.env())
    code = 2 if "VIEW" in made else 4
    faults, _ = run_check(env, code)
    assert set(faults) == {"catalog"} and re.search(part, faults["catalog"]), faults
    process = services.start_millpond(env, str(tmp_path))
    try:
        assert process.wait_exit(120) == code
        assert re.search(part, process.logged("Fatal error")[0]["msg"])
    finally:
        process.kill()
    snapshot = local_lake.snapshot()
    assert local_lake.rows() == local_lake.rows("bad") == 0
    assert local_lake.snapshot() == snapshot


@pytest.mark.parametrize("where, says", [
    ("", "is a directory"), ("/not/there/lake.sqlite", "directory does not exist"),
], ids=["directory", "missing"])
def test_places_where_no_catalog_can_be(kafka, tmp_path, where, says):
    topic = lakes.unique("place")
    kafka.create_topic(topic)
    env = services.environment(kafka, topic, DUCKLAKE_DATA_PATH="%s/data/" % tmp_path,
                               MILLPOND_CATALOG="sqlite:%s%s" % (tmp_path, where))
    check_faults(env, 2, {"catalog": [says]})
    code, out, err = services.millpond_once(env, "run")
    assert code == 2 and says in err, out + err
