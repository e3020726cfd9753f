"""kill -9, two owners at once, and another REPLICA_COUNT right after a crash: every record is in the
hoglake once."""
import contextlib
import os
import random
import threading
import time

import hoglakes
import lakes
import services
from test_kill import kill_at_next_snapshot, random_sizes

RECORDS, ROUNDS, PARTITIONS = 200000, 50, 4
SEED = int(os.environ.get("E2E_SEED", "20261201"))


def numbered(low, high, chance):
    return [b'{"n":%d,"pad":"%s"}' % (n, b"x" * chance.randrange(20, 100))
            for n in range(low, high)]


def finish(kafka, lake, topic, records, env):
    """Lets a process publish what is left, and looks at everything."""
    with services.run_millpond(env):
        services.wait_until(lambda: lake.rows() >= records, 120, "all records", 0.5)
        services.wait_until(lambda: all(
            kafka.committed(hoglakes.group_of(topic), topic, p)[0] == kafka.watermarks(topic, p)[1]
            for p in range(PARTITIONS)), 120, "offsets", 0.5)
    lake.check_numbers(range(records))


def test_each_record_once_through_fifty_kills(kafka, hog_lake, tmp_path):
    chance = random.Random(SEED)
    print("E2E_SEED=%d" % SEED)
    topic = lakes.unique("kill")
    kafka.create_topic(topic, partitions=PARTITIONS)
    share = RECORDS // (ROUNDS + 1)
    newest = hog_lake.watch()
    for turn in range(ROUNDS):
        services.produce(kafka.bootstrap, topic,
                         numbered(turn * share, (turn + 1) * share, chance), PARTITIONS)
        env = services.environment(kafka, topic, **random_sizes(chance), **hog_lake.env())
        process = services.start_millpond(env, str(tmp_path), name="turn-%d" % turn)
        try:
            if turn % 2 == 0:
                kill_at_next_snapshot(newest, process, 120)
            else:
                time.sleep(chance.uniform(0.05, 1.5))
                assert process.running(), process.log_end()
                process.kill()
        finally:
            process.kill()
    services.produce(kafka.bootstrap, topic, numbered(ROUNDS * share, RECORDS, chance), PARTITIONS)
    finish(kafka, hog_lake, topic, RECORDS, services.environment(
        kafka, topic, FLUSH_SIZE=1000000, FLUSH_INTERVAL_MS=500, **hog_lake.env()))


class Load(threading.Thread):
    """Sends numbered records until it is told to stop."""

    def __init__(self, kafka, topic, per_second):
        super().__init__(daemon=True)
        self.kafka, self.topic, self.per_second = kafka, topic, per_second
        self.sent, self.error, self.over = 0, None, threading.Event()
        self.start()

    def run(self):
        chance = random.Random(SEED)
        try:
            while not self.over.wait(0.25):
                count = self.per_second // 4
                services.produce(self.kafka.bootstrap, self.topic,
                                 numbered(self.sent, self.sent + count, chance), PARTITIONS)
                self.sent += count
        except Exception as error:
            self.error = error

    def end(self):
        self.over.set()
        self.join()
        assert not self.error, self.error
        return self.sent


def test_two_owners_for_half_a_minute_under_load(kafka, hog_lake, tmp_path):
    """Each new owner fences the one before; which is started again, as a scheduler would."""
    topic = lakes.unique("owners")
    kafka.create_topic(topic, partitions=PARTITIONS)
    load, processes, fenced = Load(kafka, topic, 2000), {}, 0

    def start(name):
        env = services.environment(kafka, topic, FLUSH_SIZE=200000, FLUSH_INTERVAL_MS=200,
                                   **hog_lake.env())
        processes[name] = services.start_millpond(env, str(tmp_path), name=name)

    try:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            for name in ("one", "two"):
                process = processes.get(name)
                if not process or not process.running():
                    if process:
                        assert process.child.returncode == 3, process.log_end()
                        fenced += 1
                    start(name)
            time.sleep(0.2)
        records = load.end()
    finally:
        load.over.set()
        for process in processes.values():
            process.kill()
    assert fenced >= 2, "the owners fenced each other"
    finish(kafka, hog_lake, topic, records, services.environment(
        kafka, topic, FLUSH_INTERVAL_MS=500, **hog_lake.env()))


def test_another_replica_count_right_after_a_kill(kafka, hog_lake, tmp_path):
    """2 processes, killed at the instant of a snapshot; then 3, which own other partitions."""
    chance = random.Random(SEED)
    topic = lakes.unique("replicas")
    kafka.create_topic(topic, partitions=PARTITIONS)
    newest, records = hog_lake.watch(), 0

    def start(stack, count, ordinal, **sizes):
        env = services.environment(kafka, topic, REPLICA_COUNT=count,
                                   POD_NAME="millpond-%d" % ordinal, **sizes, **hog_lake.env())
        process = services.start_millpond(env, str(tmp_path),
                                          name="r%d-%d-%d" % (records, count, ordinal))
        stack.callback(process.kill)
        return process

    for turn in range(6):
        with contextlib.ExitStack() as stack:
            services.produce(kafka.bootstrap, topic, numbered(records, records + 4000, chance),
                             PARTITIONS)
            records += 4000
            count = 2 + turn % 2
            processes = [start(stack, count, ordinal, **random_sizes(chance))
                         for ordinal in range(count)]
            kill_at_next_snapshot(newest, processes[chance.randrange(count)], 120)
    finish(kafka, hog_lake, topic, records, services.environment(
        kafka, topic, FLUSH_INTERVAL_MS=500, **hog_lake.env()))
