"""Faults between millpond, the hoglake catalog and the store, each met by several flushes: every
record is there once, the offsets are right, and what was uploaded for nothing is counted."""
import json
import time

import pytest

import hoglakes
import http_proxy
import lakes
import services
from http_proxy import is_post, is_put

WRITTEN, ORPHANED = "millpond_records_written_total", "millpond_hoglake_orphaned_files_total"
REPLAYS, ERRORS = "millpond_hoglake_commit_replays_total", "millpond_errors_total"
COMMIT = is_post("/commit/prepared")
PARTITIONS, BATCH, ROUNDS = 2, 40, 3


def numbered(low, high):
    return ['{"n":%d,"pad":"%s"}' % (n, "x" * 30) for n in range(low, high)]


class Rig:
    """One process behind the proxies; every round is a flush of records of its own."""

    def __init__(self, kafka, lake):
        self.kafka, self.lake = kafka, lake
        self.catalog, self.store = lake.catalog_proxy, lake.store_proxy
        self.topic = lakes.unique("faults")
        kafka.create_topic(self.topic, partitions=PARTITIONS)
        self.sent = 0

    def env(self, **more):
        return services.environment(self.kafka, self.topic, FLUSH_INTERVAL_MS=300,
                                    HOGLAKE_REQUEST_TIMEOUT_S=5, **self.lake.env(**more))

    def send(self, count=BATCH):
        services.produce(self.kafka.bootstrap, self.topic,
                         numbered(self.sent, self.sent + count), PARTITIONS)
        self.sent += count

    def settled(self, seconds=60):
        """Waits until everything sent is published and its offsets are committed."""
        def done():
            return all((self.kafka.committed(hoglakes.group_of(self.topic), self.topic, p)[0] or 0) ==
                       self.kafka.watermarks(self.topic, p)[1] for p in range(PARTITIONS))
        services.wait_until(done, seconds, "all offsets committed", 0.2)

    def round(self, millpond, seconds=60):
        self.send()
        self.settled(seconds)
        assert millpond.running(), millpond.log_end()

    def check(self, low=0):
        self.lake.check_numbers(range(low, self.sent))
        hoglakes.check_offsets(self.kafka, self.topic, PARTITIONS)
        assert not self.catalog.left() and not self.store.left(), "every fault was played"


@pytest.fixture
def rig(kafka, hog_proxied):
    return Rig(kafka, hog_proxied)


def unknown_objects(lake):
    return lake.objects() - {file["path"] for file in lake.files()}


def test_the_answer_of_a_commit_is_lost(rig):
    with services.run_millpond(rig.env()) as millpond:
        for _ in range(ROUNDS):
            rig.catalog.fault(COMMIT, http_proxy.lose_answer)
            rig.round(millpond)
        rig.check()
        assert millpond.metric(REPLAYS, outcome="replayed") == ROUNDS
        assert millpond.metric(ORPHANED) == 0 and not unknown_objects(rig.lake)
    bodies = [body for method, path, body in rig.catalog.bodies if COMMIT(method, path)]
    assert len(bodies) == 2 * ROUNDS and len(set(bodies)) == ROUNDS, "sent again byte for byte"


def test_the_request_of_a_commit_is_lost(rig):
    with services.run_millpond(rig.env()) as millpond:
        for _ in range(ROUNDS):
            rig.catalog.fault(COMMIT, http_proxy.lose_request, times=2)
            rig.round(millpond)
        rig.check()
        assert millpond.metric(ORPHANED) == 0 and not unknown_objects(rig.lake)


def test_a_storm_of_500(rig):
    with services.run_millpond(rig.env()) as millpond:
        for _ in range(ROUNDS):
            rig.catalog.fault(COMMIT, http_proxy.answer(500, {"error": "internal"}), times=3)
            rig.round(millpond)
        rig.check()
        assert millpond.metric(ORPHANED) == 0 and not unknown_objects(rig.lake)
        assert millpond.metric(ERRORS, type="write_retry") >= 3 * ROUNDS


def test_503_with_retry_after(rig):
    with services.run_millpond(rig.env()) as millpond:
        rig.round(millpond)
        for _ in range(ROUNDS):
            rig.catalog.fault(COMMIT, http_proxy.answer(
                503, {"error": "commit_queue_timeout", "detail": "busy"}, Retry_After="3"))
            began = time.monotonic()
            rig.round(millpond)
            assert time.monotonic() - began >= 3, "Retry-After is the least to be waited"
        rig.check()
        assert millpond.metric(ORPHANED) == 0 and not unknown_objects(rig.lake)


def test_the_table_is_altered_in_mid_flight(rig):
    """409 ddl_since_read_snapshot: what was uploaded still fits and is used."""
    with services.run_millpond(rig.env()) as millpond:
        rig.round(millpond)
        for turn in range(ROUNDS):
            rig.catalog.fault(COMMIT, http_proxy.after(lambda: rig.lake.alter(
                {"op": "add_column", "column": {"name": "other%d" % turn, "type": "string",
                                                "nullable": True}})))
            rig.round(millpond)
        rig.check()
        assert not unknown_objects(rig.lake), "the objects were used"
        assert millpond.metric(ORPHANED) == 0


def test_a_used_column_is_dropped_in_mid_flight(rig):
    """409 ddl_since_read_snapshot: the files do not fit any more, and are made again."""
    with services.run_millpond(rig.env()) as millpond:
        rig.round(millpond)
        for _ in range(ROUNDS):
            rig.catalog.fault(COMMIT, http_proxy.after(
                lambda: rig.lake.alter({"op": "drop_column", "name": "pad"})))
            rig.round(millpond)
        rig.check()
        orphans = unknown_objects(rig.lake)
        assert len(orphans) == ROUNDS
        assert millpond.metric(ORPHANED, reason="ddl_since_read_snapshot") == ROUNDS
        for path in orphans:
            assert path in millpond.log(), "each is named"


def test_the_table_is_made_anew_in_mid_flight(rig):
    columns = [{"name": "n", "type": "long", "nullable": True}]

    def again():
        rig.lake.drop()
        rig.lake.ok("POST", rig.lake.path + "/namespaces/%s/tables" % hoglakes.NAMESPACE,
                    {"name": hoglakes.TABLE, "columns": columns})

    with services.run_millpond(rig.env()) as millpond:
        rig.round(millpond)
        for _ in range(ROUNDS):
            low = rig.sent
            rig.catalog.fault(COMMIT, http_proxy.after(again))
            rig.round(millpond)
            rig.lake.check_numbers(range(low, rig.sent))
        assert millpond.metric(ORPHANED, reason="table_recreated") == ROUNDS
        rig.check(low)


def test_the_read_snapshot_expires_in_mid_flight(rig):
    """410: the floor goes past what the shape was read at."""
    def expire():
        rig.lake.alter({"op": "set_table_comment", "comment": "one more snapshot"})
        rig.lake.options(snapshot_retention_seconds=1)
        time.sleep(1.2)  # what expires must be older than the retention
        rig.lake.ok("POST", rig.lake.path + "/maintenance/expire")
        rig.lake.options(snapshot_retention_seconds=1800)

    with services.run_millpond(rig.env()) as millpond:
        rig.round(millpond)
        for _ in range(ROUNDS):
            rig.catalog.fault(COMMIT, http_proxy.after(expire))
            rig.round(millpond)
        rig.check()
        assert not unknown_objects(rig.lake) and millpond.metric(ORPHANED) == 0


def test_a_conflict_of_no_special_kind(rig):
    with services.run_millpond(rig.env()) as millpond:
        for _ in range(ROUNDS):
            rig.catalog.fault(COMMIT, http_proxy.answer(
                409, {"error": "commit_conflict", "detail": "path is taken"}))
            rig.round(millpond)
        rig.check()
        assert len(unknown_objects(rig.lake)) == \
            millpond.metric(ORPHANED, reason="commit_refused") == ROUNDS
        assert millpond.metric(ERRORS, type="hoglake_commit_contention") == ROUNDS


def test_the_key_was_used_with_another_body(rig):
    """Somebody published the same ranges: their rows are there, ours must not come too."""
    def publish_first(exchange):
        body = json.loads(exchange.body)
        body["message"] = "another body under the same key"
        path = exchange.path[len("/v1"):]
        assert rig.lake.ask("POST", path, body)[0] in (200, 201)
        exchange.pass_on()

    with services.run_millpond(rig.env()) as millpond:
        written = 0
        for turn in range(ROUNDS):
            rig.catalog.fault(COMMIT, publish_first)
            rig.round(millpond)
            assert millpond.metric(WRITTEN) == written, "not written by us"
            rig.round(millpond)
            written += BATCH
            assert millpond.metric(WRITTEN) == written
        rig.check()
        assert millpond.metric(REPLAYS, outcome="already_published") == ROUNDS
        assert millpond.metric(ORPHANED, reason="already_published") >= ROUNDS


def test_the_server_is_away_for_a_minute(rig, hog):
    with services.run_millpond(rig.env()) as millpond:
        rig.round(millpond)
        hog.kill()
        try:
            rig.send()
            services.wait_until(lambda: millpond.get("/readyz")[0] == 503, 120, "not ready")
            for _ in range(12):  # a minute
                time.sleep(5)
                assert millpond.running() and millpond.get("/healthz")[0] == 200
            rig.send()
        finally:
            hog.start()
        rig.settled(90)
        services.wait_until(lambda: millpond.get("/readyz")[0] == 200, 120, "ready again")
        rig.check()
        assert not unknown_objects(rig.lake)


def through_uploads(rig, play, times):
    """Each flush's upload meets the fault so often; in the end no object is there in vain."""
    with services.run_millpond(rig.env()) as millpond:
        rig.round(millpond)
        for _ in range(ROUNDS):
            rig.store.fault(is_put("/data/"), play, times)
            rig.round(millpond)
        rig.check()
        assert not unknown_objects(rig.lake)


def test_the_store_asks_to_slow_down(rig):
    through_uploads(rig, http_proxy.answer(
        503, b"<?xml version='1.0'?><Error><Code>SlowDown</Code>"
             b"<Message>Please reduce your request rate.</Message></Error>",
        Content_Type="application/xml"), 3)


def test_an_upload_is_cut_half_way(rig):
    through_uploads(rig, "half", 2)


def test_the_answer_of_an_upload_is_lost(rig):
    through_uploads(rig, http_proxy.lose_answer, 1)


def test_two_make_catalog_namespace_and_table_at_once(kafka, hog_proxied):
    for turn in range(ROUNDS):
        lake = hoglakes.HogLake(hog_proxied.server, hog_proxied.s3)
        topic = lakes.unique("creators")
        kafka.create_topic(topic, partitions=PARTITIONS)
        services.produce(kafka.bootstrap, topic, numbered(0, BATCH), PARTITIONS)
        env = services.environment(kafka, topic, REPLICA_COUNT=2, FLUSH_INTERVAL_MS=200,
                                   MILLPOND_SORT_BY="n",
                                   **lake.env(HOGLAKE_PARTITION_BY="bucket(n, 2)"))
        other = dict(env, POD_NAME="millpond-1", MILLPOND_HTTP_PORT=str(services.free_port()))
        with services.run_millpond(env, ready=False) as one, \
                services.run_millpond(other, ready=False, name="other") as two:
            services.wait_until(lambda: lake.rows() == BATCH, 120, "all rows")
            one.wait_ready()
            two.wait_ready()
        lake.check_numbers(range(BATCH))
        hoglakes.check_offsets(kafka, topic, PARTITIONS)
        info = lake.info()
        assert info["partition_spec"]["fields"] and info["sort_spec"]["fields"]


def test_the_store_is_probed_at_start(kafka, hog_proxied):
    topic = lakes.unique("probe")
    kafka.create_topic(topic)
    env = services.environment(kafka, topic, MILLPOND_OUTAGE_MS_MAX=3000, **hog_proxied.env(
        HOGLAKE_DATA_PATH="s3://no-such-bucket/data/"))
    with services.run_millpond(env, ready=False) as millpond:
        assert millpond.wait_exit(60) != 0
        assert "no-such-bucket" in millpond.log() and "bucket" in millpond.log_end()
