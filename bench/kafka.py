#!/usr/bin/env python3
"""bench/kafka.py [--events N] [--rounds N] [--codec none|lz4|zstd|snappy] - what Kafka to DuckLake costs, in
one run on one topic: millpond, and a Python consumer that does the same work with the libraries that
such programs are made of.

    millpond   run, SQLite catalog and local files, every setting at its default
    python     confluent-kafka (librdkafka) -> orjson -> pyarrow -> DuckDB's ducklake extension, batches of
               1,000 messages, nested values as JSON text, a flush at 100 MiB of Arrow buffers, Snappy

A broker of its own holds the topic, four partitions, all produced before the first round. Each program
runs as a process of its own from start to end; CPU seconds are the kernel's account of it (user +
system, all threads) without the broker's; peak memory is its own peak. Rounds alternate; medians are
printed, and the ratio to millpond within the same round.
"""
import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TOP, "tests", room) for room in ("services", "data")]
import compare  # noqa: E402
import gen_events  # noqa: E402
import services  # noqa: E402

FOLDER = os.path.join(TOP, "build/bench/kafka")
PARTITIONS = 4  # and so it stands below

PYTHON = """
import sys
sys.path.insert(0, sys.argv[5])
import confluent_kafka, duckdb_offline, orjson, pyarrow
bootstrap, topic, count, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
lake = duckdb_offline.connect()
duckdb_offline.attach(lake, "sqlite:%s/lake.sqlite" % folder, DATA_PATH=folder + "/data/")
consumer = confluent_kafka.Consumer({
    "bootstrap.servers": bootstrap, "group.id": "python", "enable.auto.commit": False,
    "fetch.min.bytes": 1048576, "fetch.wait.max.ms": 500, "queued.max.messages.kbytes": 16384})
consumer.assign([confluent_kafka.TopicPartition(topic, p, 0) for p in range(4)])
tables, pending, ends, seen, made = [], 0, {}, 0, False

def as_column(value):
    return orjson.dumps(value).decode() if isinstance(value, (dict, list)) else value

def flush():
    global tables, pending, made
    table = pyarrow.concat_tables(tables, promote_options="permissive")
    lake.register("batch", table)
    select = "SELECT *, now() AS _inserted_at FROM batch"
    if not made:
        lake.execute("CREATE TABLE lake.events AS %s WHERE false" % select)
        made = True
    lake.execute("INSERT INTO lake.events BY NAME (%s)" % select)
    lake.unregister("batch")
    consumer.commit(asynchronous=False, offsets=[
        confluent_kafka.TopicPartition(topic, p, end) for p, end in ends.items()])
    tables, pending = [], 0

while seen < count:
    rows = []
    for message in consumer.consume(1000, 1.0):
        rows.append({key: as_column(value) for key, value in orjson.loads(message.value()).items()})
        ends[message.partition()] = message.offset() + 1
    if rows:
        seen += len(rows)
        names = dict.fromkeys(name for row in rows for name in row)
        tables.append(pyarrow.table({name: [row.get(name) for row in rows] for name in names}))
        pending += tables[-1].nbytes
    if pending >= 100 << 20:
        flush()
if tables:
    flush()
consumer.close()
"""


def ended(child):
    """Waits; gives (CPU seconds, peak bytes)."""
    child.returncode, cpu, peak = compare.waited(child.pid)
    if child.returncode:
        sys.exit("%s ended with %d" % (child.args[0], child.returncode))
    return cpu, peak


def run_millpond(kafka, topic, count, folder):
    env = services.environment(
        kafka, topic, FLUSH_INTERVAL_MS=None, FETCH_MAX_WAIT_MS=None, MILLPOND_CATALOG="sqlite:%s/lake.sqlite" % folder,
        DUCKLAKE_DATA_PATH=folder + "/data/", GROUP_ID=os.path.basename(folder))
    millpond = services.Millpond([], env, folder)
    millpond.wait_metric("millpond_records_consumed_total", count, 600)
    millpond.signal(signal.SIGTERM)
    return ended(millpond.child)


def run_python(kafka, topic, count, folder):
    return ended(subprocess.Popen([sys.executable, "-c", PYTHON, kafka.bootstrap, topic, str(count), folder,
                                   os.path.join(TOP, "tools")]))


PROGRAMS = [("millpond", run_millpond), ("python", run_python)]


def measured(run, kafka, topic, count, number):
    """Gives (CPU seconds, peak bytes, wall seconds, bytes of Parquet); the lake has every row."""
    folder = os.path.join(FOLDER, "lake-%d" % number)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    began = time.monotonic()
    cpu, peak = run(kafka, topic, count, folder)
    seconds = time.monotonic() - began
    lake = services.duckdb_lake("sqlite:%s/lake.sqlite" % folder)
    rows = lake.execute("SELECT count(*) FROM lake.events").fetchone()[0]
    lake.close()
    if rows != count:
        sys.exit("%d rows of %d in %s" % (rows, count, folder))
    size = compare.bytes_below(folder)
    shutil.rmtree(folder)
    return cpu, peak, seconds, size


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--events", type=int, default=300000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--codec", default="none", help="of the topic's batches")
    args = parser.parse_args()
    os.makedirs(FOLDER, exist_ok=True)
    generator, size = gen_events.Generator(seed=7), 0

    def events():
        nonlocal size
        for index in range(args.events):
            line = generator.event(index).encode()
            size += len(line)
            yield line

    with services.kafka_broker() as kafka:
        kafka.create_topic("events", PARTITIONS, compression_type=args.codec.replace("none", "uncompressed"))
        services.produce(kafka.bootstrap, "events", events())
        rounds = []
        for number in range(args.rounds):
            rounds.append([measured(run, kafka, "events", args.events, 2 * number + at)
                           for at, (_, run) in enumerate(PROGRAMS)])
    print("%d records, %.1f MB of JSON, %d rounds; medians" % (args.events, size / 1e6, args.rounds))
    print("%-9s %12s %14s %10s %8s %8s %8s %8s" % ("", "CPU-s a M", "MB/s and core", "peak MB", "seconds", "out MB",
                                                 "x CPU", "x memory"))
    for at, (name, _) in enumerate(PROGRAMS):
        cpu, peak, seconds, out = (statistics.median(r[at][key] for r in rounds) for key in range(4))
        ratios = [statistics.median(r[at][key] / r[0][key] for r in rounds) for key in range(2)]
        print("%-9s %12.2f %14.0f %10.0f %8.1f %8.1f %7.1fx %7.1fx" % (
            name, cpu / args.events * 1e6, size / 1e6 / cpu, peak / 1e6, seconds, out / 1e6, *ratios))


if __name__ == "__main__":
    main()
