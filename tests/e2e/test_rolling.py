"""The documented deployment, a StatefulSet of three pods on twelve partitions, rolled pod by pod from
the highest ordinal down while records keep coming, twice, and two pods killed in between: each of
500,000 numbered records is in the table once."""
import signal
import threading

import lakes
import services

PODS, PARTITIONS = 3, 12
CHUNKS, CHUNK = 10, 50000
RECORDS = CHUNKS * CHUNK
# what happens while a chunk is on its way
STEPS = [("roll", 2), ("roll", 1), ("roll", 0), ("kill", 1), ("roll", 2), ("roll", 1), ("roll", 0),
         ("kill", 2), None, None]


class StatefulSet:
    def __init__(self, kafka, topic, lake, directory):
        self.kafka, self.topic, self.lake, self.directory = kafka, topic, lake, directory
        self.pods, self.starts = {}, 0

    def start(self, ordinal):
        self.starts += 1
        env = services.environment(
            self.kafka, self.topic, REPLICA_COUNT=PODS, POD_NAME="millpond-events-%d" % ordinal,
            FLUSH_INTERVAL_MS=200, FLUSH_SIZE=400000, **self.lake.env())
        self.pods[ordinal] = services.start_millpond(
            env, self.directory, name="pod-%d-%d" % (ordinal, self.starts))

    def wait_ready(self, ordinal):
        self.pods[ordinal].wait_ready()

    def roll(self, ordinal):
        """As Kubernetes does: the old one ends in good order before the new one starts."""
        self.pods[ordinal].signal(signal.SIGTERM)
        code = self.pods[ordinal].wait_exit(120)
        assert code == 0, self.pods[ordinal].log_end()
        self.start(ordinal)
        self.wait_ready(ordinal)

    def kill(self, ordinal):
        self.pods[ordinal].kill()
        self.start(ordinal)
        self.wait_ready(ordinal)

    def end(self):
        for pod in self.pods.values():
            pod.kill()


def numbers(chunk):
    return (b'{"n":%d}' % n for n in range(chunk * CHUNK, (chunk + 1) * CHUNK))


def fed(kafka, topic, chunk):
    """A thread that sends a chunk; its `failure` says what went wrong."""
    def send():
        try:
            services.produce(kafka.bootstrap, topic, numbers(chunk), PARTITIONS)
        except Exception as error:  # told by the main thread
            thread.failure = error

    thread = threading.Thread(target=send, daemon=True)
    thread.failure = None
    thread.start()
    return thread


def test_each_record_once_through_two_rolling_updates(kafka, pg_lake, tmp_path):
    topic = lakes.unique("rolling")
    kafka.create_topic(topic, partitions=PARTITIONS)
    pods = StatefulSet(kafka, topic, pg_lake, str(tmp_path))
    try:
        for ordinal in range(PODS):
            pods.start(ordinal)
        for ordinal in range(PODS):
            pods.wait_ready(ordinal)
        for chunk, step in enumerate(STEPS):
            before = pg_lake.rows()
            feeder = fed(kafka, topic, chunk)
            # the first records of the chunk have landed, the others are on their way
            services.wait_until(lambda: pg_lake.rows() > before, 120, "a flush of chunk %d" % chunk)
            if step:
                getattr(pods, step[0])(step[1])
            feeder.join(60)
            assert not feeder.is_alive() and not feeder.failure, feeder.failure
        services.wait_until(lambda: pg_lake.rows() >= RECORDS, 120, "all records")
        for ordinal, pod in pods.pods.items():
            # each pod reads its own partitions and no others
            partitions = {int(labels["partition"]) for name, labels, value in pod.metrics()
                          if name == "millpond_records_consumed_total"}
            assert partitions == {p for p in range(PARTITIONS) if p % PODS == ordinal}
            assert pod.peak_rss() < 100 << 20
        for pod in pods.pods.values():
            pod.signal(signal.SIGTERM)
        for pod in pods.pods.values():
            assert pod.wait_exit(120) == 0, pod.log_end()
    finally:
        pods.end()
    assert pods.starts == PODS + len([step for step in STEPS if step])
    assert pg_lake.query("SELECT count(*), count(DISTINCT n), min(n), max(n), sum(n) "
                         "FROM lake.events") == \
        [(RECORDS, RECORDS, 0, RECORDS - 1, RECORDS * (RECORDS - 1) // 2)]
    # and Kafka's own book says so too: whoever takes over from here starts at the end
    group = "millpond-%s-events" % topic
    assert [kafka.committed(group, topic, p)[0] for p in range(PARTITIONS)] == \
        [kafka.watermarks(topic, p)[1] for p in range(PARTITIONS)]
    authors = pg_lake.sql("SELECT DISTINCT author FROM ducklake_snapshot_changes "
                          "WHERE author IS NOT NULL ORDER BY author")
    assert [author for author, in authors] == ["millpond/events/%d" % n for n in range(PODS)]
