"""What an operator sees and does: probes and pages, refused settings, outages, restarts, two owners,
lost offsets, and changing over between this program and the one it replaces."""
import json
import os
import random
import resource
import signal
import socket
import subprocess
import time

import lakes
import services

SKIPPED = "millpond_records_skipped_total"
WRITTEN = "millpond_records_written_total"


def group_of(topic):
    return "millpond-%s-events" % topic


def numbered(low, high, pad=20):
    return ['{"n":%d,"pad":"%s"}' % (n, "x" * pad) for n in range(low, high)]


def check_numbers(lake, want):
    """Each of these numbers is in the table once, and no other."""
    found = [row[0] for row in lake.query("SELECT n FROM lake.events ORDER BY n")]
    want = sorted(want)
    assert len(found) == len(set(found)), "a record is there twice"
    assert found == want, "%d rows, not %d" % (len(found), len(want))


# --- pages ---------------------------------------------------------------------------------------

def test_pages(kafka, local_lake):
    topic = lakes.unique("pages")
    kafka.create_topic(topic, partitions=2)
    services.produce(kafka.bootstrap, topic, numbered(0, 500), 2)
    env = services.environment(kafka, topic, BROKER_SOURCE="Test", **local_lake.env())
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 500)
        status, body = millpond.get("/healthz")
        assert status == 200 and body.startswith("ok poll=") and "flush=" in body
        status, body = millpond.get("/readyz")
        assert status == 200 and body.startswith("ok ")
        assert millpond.get("/nothing")[0] == 404
        assert millpond.get("/metrics?x=1")[0] == 404, "paths must fit exactly"
        status, body = millpond.get("/status.json")
        page = json.loads(body)
        assert status == 200 and page["alive"] is True and page["ready"] is True
        assert topic in body
        status, body = millpond.get("/")
        assert status == 200 and body.lower().startswith("<!doctype html>")
        names = {name for name, labels, value in millpond.metrics()}
        for name in ("millpond_records_consumed_total", WRITTEN, "millpond_batches_flushed_total",
                     "millpond_flush_duration_seconds_bucket", "millpond_flush_size_bytes_sum",
                     "millpond_pending_bytes", "millpond_consumer_lag",
                     "millpond_last_committed_offset", "millpond_schema_columns_added_total",
                     "process_resident_memory_bytes"):
            assert name in names, name
        for name, labels, value in millpond.metrics():
            if name.startswith("millpond_"):
                assert labels["pipeline"] == topic + "-events", name
                assert labels["broker_source"] == "test", name
        assert millpond.metric("millpond_records_consumed_total", partition="0") == 250
        assert millpond.metric("millpond_last_committed_offset", partition="1") == 250
        assert millpond.metric("millpond_consumer_lag") == 0
        for text in ("starting", "Config: destination=ducklake", "ready, entering main loop",
                     "Flush: "):
            assert millpond.logged(text), text
        millpond.signal(signal.SIGTERM)
        assert millpond.wait_exit(120) == 0
        assert millpond.logged("millpond shutdown complete")


def test_log_lines_hold_no_secret(kafka, db, tmp_path):
    database = lakes.unique("secret")
    db.create_database(database)
    lake = lakes.Lake("postgres:" + db.conninfo(database), "%s/data/" % tmp_path, db=db)
    topic = lakes.unique("secret")
    kafka.create_topic(topic)
    services.produce(kafka.bootstrap, topic, numbered(0, 5))
    env = services.environment(kafka, topic, DUCKLAKE_RDS_HOST="127.0.0.1",
                               DUCKLAKE_RDS_PORT=db.port, DUCKLAKE_RDS_DATABASE=database,
                               DUCKLAKE_RDS_USERNAME="millpond",
                               DUCKLAKE_RDS_PASSWORD="hunter2'\\ x", LOG_LEVEL="DEBUG",
                               DUCKLAKE_DATA_PATH=lake.data_path, DUCKLAKE_CONNECTION=":memory:")
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 5)
        assert "hunter2" not in millpond.log()
        assert "hunter2" not in millpond.get("/status.json")[1] + millpond.get("/")[1]
    check_numbers(lake, range(5))


# --- settings ------------------------------------------------------------------------------------

def test_bad_settings_end_with_2_before_anything_is_opened(tmp_path):
    """The addresses are those of listeners of ours: nobody may knock."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    for listener in listeners:
        listener.setblocking(False)
    kafka, postgres = ("127.0.0.1:%d" % listener.getsockname()[1] for listener in listeners)
    good = {"KAFKA_BOOTSTRAP_SERVERS": kafka, "KAFKA_TOPIC": "t", "REPLICA_COUNT": "2",
            "POD_NAME": "millpond-0", "DUCKLAKE_TABLE": "events", "MILLPOND_HTTP_PORT": "0",
            "DUCKLAKE_RDS_HOST": "127.0.0.1", "DUCKLAKE_RDS_PORT": postgres.split(":")[1],
            "DUCKLAKE_RDS_PASSWORD": "pw", "DUCKLAKE_DATA_PATH": "%s/data/" % tmp_path}
    for name, value in (("FLUSH_SIZE", "-1"), ("FLUSH_SIZE", "many"), ("REPLICA_COUNT", "0"),
                        ("POD_NAME", "events3"), ("POD_NAME", "millpond-2"),
                        ("DUCKLAKE_TABLE", "a-b"), ("MILLPOND_DESTINATION", "iceberg"),
                        ("MILLPOND_TYPED_COLUMNS", "a:int"), ("MILLPOND_HTTP_PORT", "70000"),
                        ("MILLPOND_SORT_BY", "a b"), ("MILLPOND_COMPRESSION", "gzip"),
                        ("DUCKLAKE_PARTITION_BY", "truncate(2, a)"),
                        ("MILLPOND_FILTER_VALUES", "1"), ("KAFKA_AUTO_OFFSET_RESET", "error")):
        for verb in ([], ["run"], ["check"]):
            code, out, err = services.millpond_once(dict(good, **{name: value}), *verb, seconds=20)
            assert code == 2, (name, value, verb, code, out, err)
            assert name in out + err and value in out + err, (name, value, out, err)
    for listener in listeners:
        try:
            listener.accept()
            raise AssertionError("somebody connected")
        except BlockingIOError:
            pass
        listener.close()
    assert os.listdir(str(tmp_path)) == [], "nothing was made"


def test_check_changes_nothing(kafka, pg_lake):
    topic = lakes.unique("check")
    kafka.create_topic(topic)
    services.produce(kafka.bootstrap, topic, numbered(0, 10))
    env = services.environment(kafka, topic, **pg_lake.env())
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 10)
    before = (pg_lake.snapshot(), pg_lake.objects(), kafka.committed(group_of(topic), topic, 0))
    code, out, err = services.millpond_once(env, "check")
    assert code == 0, out + err
    assert before == (pg_lake.snapshot(), pg_lake.objects(),
                      kafka.committed(group_of(topic), topic, 0))
    code, out, err = services.millpond_once(dict(env, KAFKA_TOPIC="no-such-topic"), "check")
    assert code != 0 and "no-such-topic" in out + err
    closed = "127.0.0.1:%d" % services.free_port()
    code, out, err = services.millpond_once(dict(env, KAFKA_BOOTSTRAP_SERVERS=closed), "check")
    assert code == 5 and closed in out + err


# --- outages -------------------------------------------------------------------------------------

def not_ready_with(millpond, part, seconds=120):
    """/readyz says 503 and why, while /healthz says 200."""
    def check():
        status, body = millpond.get("/readyz")
        return status == 503 and part in body and body
    body = services.wait_until(check, seconds, "/readyz names " + part)
    assert millpond.get("/healthz")[0] == 200
    assert len(body) > len("not ready ") + len(part)


def test_start_without_kafka(local_lake):
    env = services.environment(None, "t", KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:%d" %
                               services.free_port(), **local_lake.env())
    with services.run_millpond(env, ready=False) as millpond:
        not_ready_with(millpond, "source")


def test_start_without_catalog(kafka, tmp_path):
    topic = lakes.unique("nocat")
    kafka.create_topic(topic)
    env = services.environment(
        kafka, topic, DUCKLAKE_DATA_PATH="%s/data/" % tmp_path,
        MILLPOND_CATALOG="postgres:host=127.0.0.1 port=%d dbname=x user=x" % services.free_port())
    with services.run_millpond(env, ready=False) as millpond:
        not_ready_with(millpond, "lake")


def test_start_without_store(kafka, s3_lake):
    topic = lakes.unique("nos3")
    kafka.create_topic(topic)
    env = services.environment(kafka, topic, **s3_lake.env("127.0.0.1:%d" % services.free_port()))
    with services.run_millpond(env, ready=False) as millpond:
        not_ready_with(millpond, "store")
    assert s3_lake.snapshot() == -1


def test_a_bucket_that_is_not_there_makes_no_lake(kafka, s3_lake, tmp_path):
    """A lake names its data path for ever, so the store is asked first; and not ready is said before
    anything has to be written."""
    topic = lakes.unique("nobucket")
    kafka.create_topic(topic)
    env = services.environment(kafka, topic,
                               **dict(s3_lake.env(), DUCKLAKE_DATA_PATH="s3://no-such-bucket/x/"))
    path = tmp_path / "in.ndjson"
    path.write_text('{"n":1}\n')
    for arguments in (["run"], ["load", str(path)]):
        code, out, err = services.millpond_once(env, *arguments)
        assert code == 4 and "NoSuchBucket" in err, out + err
        assert s3_lake.snapshot() == -1
    with services.run_millpond(dict(env, **s3_lake.env())):
        assert s3_lake.snapshot() == 0
        assert s3_lake.objects() == set()  # what was put to see is taken away again


def test_the_query_tool_reads_files_in_s3(s3_lake, tmp_path):
    """With the settings that millpond has, and nothing else."""
    lakes.load(s3_lake, ['{"n":%d}' % n for n in range(10)], tmp_path)
    done = subprocess.run([os.path.join(services.TOP, "tools/query"), s3_lake.catalog,
                           "SELECT sum(n) AS s FROM lake.events"], capture_output=True, timeout=120,
                          env=dict(s3_lake.env(), PATH=os.environ["PATH"]))
    assert done.returncode == 0 and b" 45 " in done.stdout, (done.stdout, done.stderr)


def test_outage_that_lasts_ends_with_5(kafka, local_lake, tmp_path):
    env = services.environment(None, "t", KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:%d" %
                               services.free_port(), MILLPOND_OUTAGE_MS_MAX=3000,
                               **local_lake.env())
    process = services.start_millpond(env, str(tmp_path))
    try:
        began = time.monotonic()
        assert process.wait_exit(120) == 5
        assert time.monotonic() - began >= 2.5
    finally:
        process.kill()


def ridden_out(kafka, lake, env, part, cut, heal, seconds=120):
    """Rows go on landing after an outage of a part, each once."""
    topic = env["KAFKA_TOPIC"]
    kafka.create_topic(topic)
    services.produce(kafka.bootstrap, topic, numbered(0, 100))
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 100)
        cut()
        services.produce(kafka.bootstrap, topic, numbered(100, 200))
        not_ready_with(millpond, part, seconds)
        # the lag is told while nothing can be published
        services.wait_until(lambda: millpond.metric("millpond_consumer_lag") == 100, 120, "the lag")
        assert lake.rows() == 100
        heal()
        millpond.wait_metric(WRITTEN, 200, 120)
        services.wait_until(millpond.is_ready, 120, "ready again")
    check_numbers(lake, range(200))


def test_catalog_goes_and_comes_back(kafka, db, pg_lake, toxi):
    proxy = toxi.proxy("catalog", "127.0.0.1:%d" % db.port)
    catalog = "postgres:" + db.conninfo(pg_lake.database(), proxy.port)
    env = services.environment(kafka, lakes.unique("catalog"),
                               **dict(pg_lake.env(), MILLPOND_CATALOG=catalog))
    ridden_out(kafka, pg_lake, env, "lake", proxy.down, proxy.heal)


def test_what_is_published_ages_while_nothing_is(kafka, local_lake):
    """As the lag does, the age moves without a flush."""
    topic = lakes.unique("age")
    kafka.create_topic(topic)
    services.produce(kafka.bootstrap, topic, numbered(0, 10))
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=100, **local_lake.env())
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 10)
        age = millpond.metric("millpond_partition_freshness_seconds", partition="0")
        assert age < 60
        millpond.wait_metric("millpond_partition_freshness_seconds", age + 3, 120, partition="0")


def test_catalog_that_never_answers(kafka, db, pg_lake, toxi):
    """Connections stay open and nothing comes back: a time-out has to tell."""
    proxy = toxi.proxy("mute", "127.0.0.1:%d" % db.port)
    catalog = "postgres:" + db.conninfo(pg_lake.database(), proxy.port)
    env = services.environment(kafka, lakes.unique("mute"),
                               **dict(pg_lake.env(), MILLPOND_CATALOG=catalog))
    ridden_out(kafka, pg_lake, env, "lake", lambda: proxy.toxic("timeout", timeout=0), proxy.heal,
               seconds=180)


def test_store_goes_and_comes_back(kafka, s3, s3_lake, toxi):
    proxy = toxi.proxy("store", s3.host)
    env = services.environment(kafka, lakes.unique("store"), **s3_lake.env(proxy.address))
    ridden_out(kafka, s3_lake, env, "store", proxy.down, proxy.heal)


def test_backends_ended_during_commits(kafka, db, pg_lake):
    """PostgreSQL sessions are ended all the time: landed commits are recognised (C61)."""
    topic, chance = lakes.unique("ended"), random.Random(5)
    kafka.create_topic(topic)
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=50, FLUSH_SIZE=2000,
                               **pg_lake.env())
    with services.run_millpond(env) as millpond:
        for turn in range(50):
            services.produce(kafka.bootstrap, topic, numbered(turn * 20, turn * 20 + 20))
            time.sleep(chance.uniform(0, 0.1))
            db.query("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                                 "WHERE datname = %s", pg_lake.database())
        services.wait_until(lambda: pg_lake.rows() >= 1000, 120, "all rows")
        assert millpond.running()
    check_numbers(pg_lake, range(1000))


# --- stopping ------------------------------------------------------------------------------------

def test_sigterm_flushes_and_ends_with_0(kafka, local_lake):
    topic = lakes.unique("term")
    kafka.create_topic(topic)
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=3600000, **local_lake.env())
    with services.run_millpond(env) as millpond:
        services.produce(kafka.bootstrap, topic, numbered(0, 1000))
        millpond.wait_metric("millpond_records_consumed_total", 1000)
        assert millpond.metric(WRITTEN) == 0
        began = time.monotonic()
        millpond.signal(signal.SIGTERM)
        assert millpond.wait_exit(120) == 0
        assert time.monotonic() - began < 60, "it does not wait for the interval"
    check_numbers(local_lake, range(1000))
    assert kafka.committed(group_of(topic), topic, 0)[0] == 1000


def test_sigterm_at_any_moment_also_twice(kafka, pg_lake, tmp_path):
    topic, chance = lakes.unique("terms"), random.Random(11)
    kafka.create_topic(topic)
    for turn in range(12):
        services.produce(kafka.bootstrap, topic, numbered(turn * 100, turn * 100 + 100))
        env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=100,
                                   FLUSH_SIZE=chance.choice([0, 500, 5000]), **pg_lake.env())
        process = services.start_millpond(env, str(tmp_path), name="turn-%d" % turn)
        try:
            process.wait_ready()
            time.sleep(chance.uniform(0, 0.4))
            process.signal(signal.SIGTERM)
            if turn % 3 == 2:
                time.sleep(chance.uniform(0, 0.05))
                process.signal(signal.SIGTERM)
                process.wait_exit(120)
            else:
                assert process.wait_exit(120) == 0, process.log_end()
        finally:
            process.kill()
    with services.run_millpond(services.environment(kafka, topic, **pg_lake.env())):
        services.wait_until(lambda: pg_lake.rows() >= 1200, 120, "all rows")
        time.sleep(1.5)
    check_numbers(pg_lake, range(1200))


def no_files():
    """For a child: whatever it writes to a file fails."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def test_c68_no_file_is_written(kafka, s3_lake):
    """No disk is needed: each write to a file would fail, and the one for temporary files is not
    there."""
    topic = lakes.unique("nodisk")
    kafka.create_topic(topic)
    services.produce(kafka.bootstrap, topic, numbered(0, 5000, 300))
    env = services.environment(kafka, topic, FLUSH_SIZE=200000, TMPDIR="/nowhere",
                               MILLPOND_QUARANTINE_TABLE="bad", **s3_lake.env())
    child = subprocess.Popen([services.MILLPOND], env=env, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, preexec_fn=no_files)
    try:
        services.wait_until(lambda: s3_lake.rows() >= 5000, 120, "all rows")
        child.send_signal(signal.SIGTERM)
        output, _ = child.communicate(timeout=30)
        assert child.returncode == 0, output
    finally:
        child.kill()
    check_numbers(s3_lake, range(5000))


def test_idle_process_stops_at_once(kafka, local_lake):
    topic = lakes.unique("idle")
    kafka.create_topic(topic)
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=60000, **local_lake.env())
    with services.run_millpond(env) as millpond:
        time.sleep(1)
        began = time.monotonic()
        millpond.signal(signal.SIGINT)
        assert millpond.wait_exit(120) == 0
        assert time.monotonic() - began < 60


# --- owners and offsets --------------------------------------------------------------------------

def test_second_owner_fences_the_first(kafka, pg_lake, tmp_path):
    """Two pods of one ordinal: the newer goes on, the older ends with 3 and writes nothing more."""
    topic = lakes.unique("fence")
    kafka.create_topic(topic, partitions=2)
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=200, **pg_lake.env())
    first = services.start_millpond(env, str(tmp_path), name="first")
    try:
        first.wait_ready()
        services.produce(kafka.bootstrap, topic, numbered(0, 200), 2)
        first.wait_metric(WRITTEN, 200)
        with services.run_millpond(dict(env, MILLPOND_HTTP_PORT=str(services.free_port())),
                                   name="second") as second:
            services.produce(kafka.bootstrap, topic, numbered(200, 400), 2)
            assert first.wait_exit(120) == 3, first.log_end()
            services.produce(kafka.bootstrap, topic, numbered(400, 600), 2)
            services.wait_until(lambda: pg_lake.rows() >= 600, 120, "all rows")
            assert second.running()
    finally:
        first.kill()
    check_numbers(pg_lake, range(600))


def test_stopped_owner_wakes_up_fenced(kafka, pg_lake, tmp_path):
    """A process that slept through its succession neither writes nor moves an offset (C03)."""
    topic = lakes.unique("sleep")
    kafka.create_topic(topic)
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=300, **pg_lake.env())
    first = services.start_millpond(env, str(tmp_path), name="first")
    try:
        first.wait_ready()
        services.produce(kafka.bootstrap, topic, numbered(0, 100))
        first.wait_metric(WRITTEN, 100)
        services.produce(kafka.bootstrap, topic, numbered(100, 150))
        first.signal(signal.SIGSTOP)
        second_env = dict(env, MILLPOND_HTTP_PORT=str(services.free_port()))
        with services.run_millpond(second_env, name="second"):
            services.produce(kafka.bootstrap, topic, numbered(150, 250))
            services.wait_until(lambda: pg_lake.rows() >= 250, 120, "the successor's rows")
            first.signal(signal.SIGCONT)
            services.produce(kafka.bootstrap, topic, numbered(250, 300))
            assert first.wait_exit(120) == 3, first.log_end()
            services.wait_until(lambda: pg_lake.rows() >= 300, 120, "all rows")
        assert kafka.committed(group_of(topic), topic, 0)[0] == 300
    finally:
        first.signal(signal.SIGCONT)
        first.kill()
    check_numbers(pg_lake, range(300))


def test_group_deleted_while_stopped(kafka, pg_lake):
    """The lake's offsets win: nothing is read again (C11)."""
    topic = lakes.unique("group")
    kafka.create_topic(topic, partitions=2)
    env = services.environment(kafka, topic, **pg_lake.env())
    services.produce(kafka.bootstrap, topic, numbered(0, 100), 2)
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 100)
    kafka.delete_group(group_of(topic))
    services.produce(kafka.bootstrap, topic, numbered(100, 150), 2)
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 50)
        time.sleep(1.5)
        assert millpond.metric(WRITTEN) == 50
    check_numbers(pg_lake, range(150))


def test_committed_offset_expired(kafka, local_lake):
    """The log begins behind the recorded offset: by policy, and the gap is told (C06)."""
    topic = lakes.unique("expired")
    kafka.create_topic(topic)
    env = services.environment(kafka, topic, **local_lake.env())
    services.produce(kafka.bootstrap, topic, numbered(0, 1000))
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 1000)
    services.produce(kafka.bootstrap, topic, numbered(1000, 9000))
    kafka.delete_records(topic, {0: 5000})
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 4000)
        assert millpond.metric("millpond_offset_gap_total") == 4000
        assert [line for line in millpond.log().splitlines() if "1000" in line and "5000" in line]
    check_numbers(local_lake, list(range(1000)) + list(range(5000, 9000)))


def test_one_record_and_restarts(kafka, local_lake):
    """Offset 0 is an offset (C04)."""
    topic = lakes.unique("one")
    kafka.create_topic(topic)
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=100, **local_lake.env())
    with services.run_millpond(env):
        pass
    services.produce(kafka.bootstrap, topic, ['{"n":0}'])
    for _ in range(3):
        with services.run_millpond(env):
            services.wait_until(lambda: local_lake.rows() >= 1, 120, "the record")
            time.sleep(0.5)
    assert local_lake.query("SELECT n FROM lake.events") == [(0,)]


def test_gaps_in_offsets(kafka, local_lake):
    """Aborted transactions leave offsets without records (C05)."""
    from confluent_kafka import Producer
    topic = lakes.unique("gaps")
    kafka.create_topic(topic)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic,
                         "log_level": 2})
    producer.init_transactions(120)
    for turn in range(6):
        producer.begin_transaction()
        for n in range(turn * 10, turn * 10 + 10):
            producer.produce(topic, '{"n":%d}' % n)
        producer.flush(30)
        producer.commit_transaction(120) if turn % 2 == 0 else producer.abort_transaction(120)
    want = [n for n in range(60) if n // 10 % 2 == 0]
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=200, **local_lake.env())
    for _ in range(2):
        with services.run_millpond(env):
            services.wait_until(lambda: local_lake.rows() >= len(want), 120, "all rows")
            time.sleep(0.6)
    check_numbers(local_lake, want)


def test_one_record_above_the_fetch_limit(kafka, local_lake):
    """12 MB among small ones, with a small FLUSH_SIZE (C07)."""
    topic = lakes.unique("large")
    kafka.create_topic(topic, max_message_bytes=20000000)
    large = '{"n":500,"pad":"%s"}' % ("y" * 12000000)
    services.produce(kafka.bootstrap, topic,
                     numbered(0, 500, 1000) + [large] + numbered(501, 1000, 1000))
    env = services.environment(kafka, topic, FLUSH_SIZE=1 << 20, **local_lake.env())
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 1000)
        assert millpond.peak_rss() < 256 << 20
    check_numbers(local_lake, range(1000))
    assert local_lake.value("SELECT max(length(pad)) FROM lake.events") == 12000000


def test_new_partitions_are_seen(kafka, local_lake):
    from confluent_kafka.admin import NewPartitions
    topic = lakes.unique("grown")
    kafka.create_topic(topic, partitions=1)
    services.produce(kafka.bootstrap, topic, numbered(0, 10))
    env = services.environment(kafka, topic, KAFKA_CONSUMER_TOPIC_METADATA_REFRESH_INTERVAL_MS=1000,
                               **local_lake.env())
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 10)
        for future in kafka.admin().create_partitions([NewPartitions(topic, 3)]).values():
            future.result(120)
        services.wait_until(lambda: len(kafka.admin().list_topics(topic, 60).topics[topic].partitions)
                            == 3, 120, "the broker tells of them")
        services.produce(kafka.bootstrap, topic, numbered(10, 40), partition=1)
        services.produce(kafka.bootstrap, topic, numbered(40, 70), partition=2)
    with services.run_millpond(env):  # at the latest after a restart
        services.wait_until(lambda: local_lake.rows() >= 70, 120, "all rows")
    check_numbers(local_lake, range(70))


# --- changing over -------------------------------------------------------------------------------

def python_writes(kafka, lake, topic, low, high):
    """What the Python program does: inserts the rows, then commits a plain offset."""
    lake.execute("INSERT INTO lake.events (n, pad, _inserted_at) "
                 "SELECT range, 'python', now() FROM range(%d, %d)" % (low, high))
    kafka.commit(group_of(topic), {0: high}, topic)


def test_over_to_python_and_back(kafka, pg_lake):
    topic = lakes.unique("over")
    kafka.create_topic(topic)
    services.produce(kafka.bootstrap, topic, numbered(0, 3000))
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=200, **pg_lake.env())
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 3000)
    offset, marker = kafka.committed(group_of(topic), topic, 0)
    assert offset == 3000 and marker.startswith("mp1"), "our commits carry a marker"
    services.produce(kafka.bootstrap, topic, numbered(3000, 5000))
    python_writes(kafka, pg_lake, topic, 3000, 4000)
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 1000)
        time.sleep(1)
        assert millpond.metric(WRITTEN) == 1000
        assert [line for line in millpond.log().splitlines() if "3000" in line and "4000" in line], \
            "the adopted offset is told"
    check_numbers(pg_lake, range(5000))


class PythonProgram:
    """What the program that is replaced does with offsets and rows, played with the same client: it
    assigns its partitions at their stored offsets, reads to their ends, inserts the rows with
    DuckDB, and then commits, for each partition that gave it a record with a value, the offset behind the last
    of these. Tombstones are not tracked; a partition without a record is not committed."""

    def __init__(self, kafka, lake, topic, partitions):
        self.kafka, self.lake, self.topic, self.partitions = kafka, lake, topic, partitions
        # on a fresh broker it would never read a thing: the coordinator has to be there
        services.wait_until(self.coordinated, 120, "the group's coordinator")

    def coordinated(self):
        from confluent_kafka import KafkaException
        try:
            return self.kafka.committed(group_of(self.topic), self.topic, 0)
        except KafkaException:
            return None

    def read(self):
        """{partition: (first offset read, offset behind the last value)}, and the numbers read."""
        from confluent_kafka import OFFSET_STORED, Consumer, TopicPartition
        ends = {p: self.kafka.watermarks(self.topic, p)[1] for p in range(self.partitions)}
        consumer = Consumer({"bootstrap.servers": self.kafka.bootstrap, "log_level": 2,
                             "group.id": group_of(self.topic), "enable.auto.commit": False,
                             "enable.auto.offset.store": False, "auto.offset.reset": "earliest",
                             "enable.partition.eof": True})
        first, behind, numbers, done = {}, {}, [], set()
        try:
            consumer.assign([TopicPartition(self.topic, p, OFFSET_STORED) for p in ends])
            while len(done) < len(ends):
                message = consumer.poll(30)
                assert message is not None, "nothing came"
                if message.error():
                    done.add(message.partition())  # the end of the partition
                    continue
                first.setdefault(message.partition(), message.offset())
                if message.value() is not None:
                    behind[message.partition()] = message.offset() + 1
                    numbers.append(json.loads(message.value())["n"])
        finally:
            consumer.close()
        return first, behind, numbers

    def run(self):
        first, behind, numbers = self.read()
        if numbers:
            self.lake.execute(
                "CREATE TABLE IF NOT EXISTS lake.events (n BIGINT, pad VARCHAR, "
                "_inserted_at TIMESTAMPTZ)",
                "INSERT INTO lake.events (n, pad, _inserted_at) SELECT unnest(%s), 'python', now()"
                % numbers)
            self.kafka.commit(group_of(self.topic), behind, self.topic)
        return first, sorted(numbers)


def test_over_and_back_twice_from_pythons_offsets(kafka, pg_lake):
    """Python, this program, Python, this program: each goes on exactly where the other ended, with
    a partition that is empty at first, one that ends in a tombstone, and one that rests."""
    topic, group, partitions = lakes.unique("overback"), None, 3
    group = group_of(topic)
    kafka.create_topic(topic, partitions=partitions)
    python = PythonProgram(kafka, pg_lake, topic, partitions)
    committed = lambda: [kafka.committed(group, topic, p) for p in range(partitions)]
    ends = lambda: [kafka.watermarks(topic, p)[1] for p in range(partitions)]
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=200, **pg_lake.env())

    # it was here first: partition 2 has nothing, partition 0 ends in a tombstone it did not track
    services.produce(kafka.bootstrap, topic, numbered(0, 100), partition=0)
    services.produce(kafka.bootstrap, topic, [("k", None)], partition=0)
    services.produce(kafka.bootstrap, topic, numbered(100, 200), partition=1)
    assert python.run() == ({0: 0, 1: 0}, list(range(200)))
    assert [offset for offset, _ in committed()] == [100, 100, None]

    # over to this program, with records that came meanwhile and while it runs
    services.produce(kafka.bootstrap, topic, numbered(200, 300), partition=2)
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 100)
        services.produce(kafka.bootstrap, topic, numbered(300, 600), partitions)
        millpond.wait_metric(WRITTEN, 400)
        assert millpond.metric("millpond_records_consumed_total") == 401, "and one tombstone"
    check_numbers(pg_lake, range(600))
    assert [offset for offset, _ in committed()] == ends() == [201, 200, 200]

    # back: it starts where we ended, and leaves partition 1 alone, which keeps our marker
    services.produce(kafka.bootstrap, topic, numbered(600, 700), partition=0)
    services.produce(kafka.bootstrap, topic, numbered(700, 800), partition=2)
    first, numbers = python.run()
    assert first == {0: 201, 2: 200} and numbers == list(range(600, 800))
    assert [offset for offset, _ in committed()] == ends()
    assert [(marker or "")[:3] == "mp1" for _, marker in committed()] == [False, True, False]

    # forward again
    services.produce(kafka.bootstrap, topic, numbered(800, 1100), partitions)
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 300)
        services.produce(kafka.bootstrap, topic, numbered(1100, 1103), partitions)
        millpond.wait_metric(WRITTEN, 303)
    check_numbers(pg_lake, range(1103))
    assert [offset for offset, _ in committed()] == ends()
    assert [marker[:3] for _, marker in committed()] == ["mp1"] * 3
    # and once more back finds nothing left to do
    assert python.run() == ({}, [])


def test_back_after_a_kill_that_left_kafka_behind(kafka, pg_lake, tmp_path):
    """Killed before Kafka heard of a flush that the lake holds; a start and a stop, with no record to
    read, put that right."""
    topic = lakes.unique("behindkill")
    kafka.create_topic(topic, partitions=2)
    python = PythonProgram(kafka, pg_lake, topic, 2)
    services.produce(kafka.bootstrap, topic, numbered(0, 200), 2)
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=200, **pg_lake.env())
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 200)
    # as if the last mirror had not been written: our own marker at an earlier offset, and none
    kafka.delete_group(group_of(topic))
    from confluent_kafka import Consumer, TopicPartition
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group_of(topic)})
    earlier = TopicPartition(topic, 0, 60, "mp1 1 60")
    consumer.commit(offsets=[earlier], asynchronous=False)
    consumer.close()
    with services.run_millpond(env):
        pass
    assert [kafka.committed(group_of(topic), topic, p)[0] for p in range(2)] == [100, 100]
    assert python.run() == ({}, [])
    check_numbers(pg_lake, range(200))


def test_kafka_behind_the_lake(kafka, pg_lake):
    """Somebody reset the group: the lake wins with a warning, unless told otherwise."""
    topic = lakes.unique("behind")
    kafka.create_topic(topic)
    services.produce(kafka.bootstrap, topic, numbered(0, 100))
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=200, **pg_lake.env())
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 100)
    kafka.commit(group_of(topic), {0: 40}, topic)
    services.produce(kafka.bootstrap, topic, numbered(100, 110))
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 10)
        time.sleep(1)
        assert millpond.metric(WRITTEN) == 10
        warnings = [line for line in millpond.log_lines() if line["level"].startswith("WARN")]
        assert [line for line in warnings if "40" in json.dumps(line)]
    check_numbers(pg_lake, range(110))
    kafka.commit(group_of(topic), {0: 70}, topic)
    with services.run_millpond(dict(env, MILLPOND_OFFSETS_FROM="kafka")) as millpond:
        millpond.wait_metric(WRITTEN, 40)  # 70 to 109 once more, because that was asked for
    assert pg_lake.value("SELECT count(*) FROM lake.events") == 150


# --- filters and order ---------------------------------------------------------------------------

def test_filters_are_counted_and_move_offsets(kafka, local_lake):
    topic = lakes.unique("filter")
    kafka.create_topic(topic)
    lines = ['{"team":%d,"event":"%s"}' % (n % 4, "ab"[n % 8 // 4]) for n in range(800)]
    services.produce(kafka.bootstrap, topic, lines + ['{"event":"a"}', '{"team":9}'])
    env = services.environment(kafka, topic, MILLPOND_FILTER_KEEP_FIELD_NAME="team",
                               MILLPOND_FILTER_VALUES="1, 2", MILLPOND_FILTER_DROP_FIELD_NAME="event",
                               MILLPOND_FILTER_DROP_VALUES="b", MILLPOND_SORT_BY="team",
                               **local_lake.env())
    with services.run_millpond(env) as millpond:
        millpond.wait_metric("millpond_records_consumed_total", 802)
        services.wait_until(lambda: kafka.committed(group_of(topic), topic, 0)[0] == 802, 120,
                            "offsets of filtered records")
        assert millpond.metric(SKIPPED, reason="filter_excluded") == 401
        assert millpond.metric(SKIPPED, reason="filter_field_missing") == 1
        assert millpond.metric(SKIPPED, reason="filter_dropped") == 200
        assert millpond.metric("millpond_filter_matched_total", value="1") == 200
        assert millpond.metric(WRITTEN) == 200
    assert local_lake.query("SELECT team, event, count(*) FROM lake.events GROUP BY ALL "
                            "ORDER BY ALL") == [(1, "a", 100), (2, "a", 100)]
