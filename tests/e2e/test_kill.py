"""kill -9, thirty times, at the instant a new snapshot becomes visible and at any moment, with other
sizes at each restart: every record is in the lake exactly once."""
import os
import random
import time

import lakes
import services

RECORDS, ROUNDS, PARTITIONS = 40000, 30, 4
SEED = int(os.environ.get("E2E_SEED", "20261130"))


def random_sizes(chance):
    return {"FLUSH_SIZE": chance.choice([0, 5000, 20000, 100000, 1000000]),
            "FLUSH_INTERVAL_MS": chance.choice([50, 200, 500, 1000]),
            "CONSUME_BATCH_SIZE": chance.choice([10, 50, 200, 1000])}


def kill_at_next_snapshot(newest, process, seconds):
    """Ends the process as soon as newest(), the catalog's newest snapshot, is another."""
    before, end = newest(), time.monotonic() + seconds
    while newest() <= before:
        assert process.running(), process.log_end()
        assert time.monotonic() < end, "no snapshot in %d s:\n%s" % (seconds, process.log_end())
    process.kill()


def test_each_record_once_through_thirty_kills(kafka, pg_lake, tmp_path):
    chance = random.Random(SEED)
    print("E2E_SEED=%d" % SEED)
    topic = lakes.unique("kill")
    kafka.create_topic(topic, partitions=PARTITIONS)
    values = [b'{"n":%d,"pad":"%s"}' % (n, b"x" * chance.randrange(50, 250))
              for n in range(RECORDS)]
    share = RECORDS // (ROUNDS + 1)
    for turn in range(ROUNDS):
        # each turn has records of its own to work at, so that every kill hits a running flush
        services.produce(kafka.bootstrap, topic, values[turn * share:(turn + 1) * share], PARTITIONS)
        env = services.environment(kafka, topic, **random_sizes(chance), **pg_lake.env())
        process = services.start_millpond(env, str(tmp_path), name="turn-%d" % turn)
        try:
            if turn % 2 == 0:
                with pg_lake.watch() as newest:
                    kill_at_next_snapshot(newest, process, 120)
            else:
                time.sleep(chance.uniform(0.05, 1.5))
                assert process.running(), process.log_end()
                process.kill()
        finally:
            process.kill()
    services.produce(kafka.bootstrap, topic, values[ROUNDS * share:], PARTITIONS)
    env = services.environment(kafka, topic, FLUSH_SIZE=500000, FLUSH_INTERVAL_MS=500,
                               **pg_lake.env())
    with services.run_millpond(env):
        services.wait_until(lambda: pg_lake.rows() >= RECORDS, 120, "all records")
        time.sleep(2)  # anything that comes twice would come now
    count, distinct, low, high = pg_lake.query(
        "SELECT count(*), count(DISTINCT n), min(n), max(n) FROM lake.events")[0]
    assert (count, distinct, low, high) == (RECORDS, RECORDS, 0, RECORDS - 1)
    assert pg_lake.value("SELECT sum(length(pad)) FROM lake.events") == \
        sum(len(value) - len(b'{"n":%d,"pad":""}' % n) for n, value in enumerate(values))
