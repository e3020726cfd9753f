"""Three real brokers, of which one dies, is cut off or is started anew while records keep coming: each record is
in the lake once, and nobody waits for a broker that he does not need."""
import signal
import threading
import time

import pytest

import hoglakes
import lakes
import services
from test_kill import kill_at_next_snapshot

PARTITIONS = 6
PAUSE_MAX = 8  # seconds; it was 11 and more where a leader or the group's coordinator was waited for
CONSUMED, WRITTEN = "millpond_records_consumed_total", "millpond_records_written_total"


@pytest.fixture(scope="module")
def cluster(toxi):
    with services.kafka_cluster(toxi) as service:
        yield service


@pytest.fixture
def brokers(cluster):
    cluster.mend()
    return cluster


class Feed(threading.Thread):
    """Sends numbered records, a hundred a second to each of these partitions, until it is told to stop."""

    def __init__(self, brokers, topic, partitions):
        from confluent_kafka import Producer
        super().__init__(daemon=True)
        self.topic, self.partitions = topic, partitions
        self.sent, self.errors, self.over = 0, [], threading.Event()
        self.producer = Producer({"bootstrap.servers": brokers.bootstrap, "linger.ms": 5, "acks": "all",
                                  "enable.idempotence": True, "log_level": 2})
        self.start()

    def run(self):
        while not self.over.wait(0.05):
            for _ in range(5):
                for partition in self.partitions:
                    self.producer.produce(self.topic, b'{"n":%d}' % self.sent, None, partition,
                                          on_delivery=self.delivered)
                    self.sent += 1
            self.producer.poll(0)

    def delivered(self, error, message):
        if error:
            self.errors.append(str(error))

    def end(self):
        """Gives how many were sent, when the brokers have all of them."""
        self.over.set()
        self.join()
        assert self.producer.flush(120) == 0 and not self.errors, self.errors[:3]
        return self.sent


def consumed(process, partitions):
    counts = {labels["partition"]: value for name, labels, value in process.metrics()
              if name == CONSUMED}
    return [counts.get(str(partition), 0) for partition in partitions]


def longest_pause(process, partitions, seconds):
    """The longest time in which no record of one of the partitions was taken."""
    began = now = time.monotonic()
    counts, since, longest = consumed(process, partitions), [began] * len(partitions), 0
    while now < began + seconds:
        time.sleep(0.05)
        found, now = consumed(process, partitions), time.monotonic()
        longest = max([longest] + [now - then for then in since])
        since = [now if new > old else then for new, old, then in zip(found, counts, since)]
        counts = found
    return longest


def goes_on(processes, partitions, seconds=120):
    """Each process takes new records of each of the partitions, and publishes some of them."""
    before = [consumed(process, partitions) for process in processes]

    def moved(process, counts):
        assert process.running(), process.log_end()
        return process.metric(WRITTEN) > sum(counts) and \
            all(new > old for new, old in zip(consumed(process, partitions), counts))

    services.wait_until(lambda: all(map(moved, processes, before)), seconds, "new records", 0.1)


def started(brokers, topic, lake, directory, name, bootstrap=None):
    """A process that tries a broker that was away again within a second, not ten."""
    return services.start_millpond(
        services.environment(brokers, topic, FLUSH_INTERVAL_MS=200,
                             KAFKA_BOOTSTRAP_SERVERS=bootstrap or brokers.bootstrap,
                             KAFKA_CONSUMER_RECONNECT_BACKOFF_MAX_MS=1000, **lake.env()),
        str(directory), name=name)


def ended(process):
    process.signal(signal.SIGTERM)
    assert process.wait_exit(60) == 0, process.log_end()


def check_numbers(lake, records):
    assert lake.query("SELECT count(*), count(DISTINCT n), min(n), max(n) FROM lake.events") == \
        [(records, records, 0, records - 1)]


def check_away(process, partition):
    status, text = process.get("/readyz")
    assert status == 503 and "partition %d: no leader answers for 1 of ours" % partition in text, text
    assert consumed(process, (partition,)) == [0]


def check_committed(brokers, group, topic, partitions):
    """The group's offsets stand at the end of each partition."""
    for partition in range(partitions):
        services.wait_until(lambda: brokers.committed(group, topic, partition)[0] ==
                            brokers.watermarks(topic, partition)[1], 60, "the group's offset", 0.5)


def test_each_record_once_while_brokers_die_and_return(brokers, local_lake, hog_lake, tmp_path):
    """One after the other goes and comes back: a transactions' coordinator, killed between commit and
    offset; the group's coordinator, killed; who is left, in good order. Each leads a third of the topic,
    and has it again afterwards."""
    topic, partitions = lakes.unique("brokers"), range(PARTITIONS)
    brokers.create_topic(topic, partitions=PARTITIONS)
    group, groups = hoglakes.group_of(topic), ("millpond-%s-events" % topic, hoglakes.group_of(topic))
    left = list(brokers.brokers)
    turns = [(lambda: brokers.transaction_coordinator("%s/%s/0" % (group, topic)),
              lambda broker: kill_at_next_snapshot(hog_lake.watch(), broker.process, 60)),
             (lambda: brokers.group_coordinator(group), services.Kafka.kill),
             (lambda: left[0], services.Kafka.stop)]
    feed = Feed(brokers, topic, partitions)
    processes = [started(brokers, topic, lake, tmp_path, name)
                 for name, lake in (("ducklake", local_lake), ("hoglake", hog_lake))]
    try:
        for process in processes:
            process.wait_ready(120)
        for coordinator, end in turns:
            broker = coordinator() if coordinator() in left else left[0]
            left.remove(broker)
            led = [p for p, node in brokers.leaders(topic).items() if node == broker.node]
            assert led
            goes_on(processes, partitions)
            end(broker)
            goes_on(processes, partitions)
            assert not any(brokers.leader(topic, p) is broker for p in led)
            broker.start()
            services.wait_until(lambda: brokers.in_step(topic), 60, "replicas in step")
            brokers.elect_preferred(topic)
            services.wait_until(lambda: all(brokers.leader(topic, p) is broker for p in led), 60, "leaders")
        goes_on(processes, partitions)
        records = feed.end()
        for lake in (local_lake, hog_lake):
            services.wait_until(lambda: lake.rows() >= records, 120, "all records")
        for name in groups:
            check_committed(brokers, name, topic, PARTITIONS)
        for process in processes:
            ended(process)
    finally:
        feed.over.set()
        for process in processes:
            process.kill()
    check_numbers(local_lake, records)
    hog_lake.check_numbers(range(records))


def test_a_partition_whose_only_replica_is_away(brokers, local_lake, tmp_path):
    """It holds up no other, neither while it is read nor at a start, and goes on where it was; though the broker
    coordinates the group as well."""
    topic = lakes.unique("single")
    brokers.create_topic(topic, partitions=3, replicas=[[1], [2], [3]])
    group, feed = "millpond-%s-events" % topic, Feed(brokers, topic, range(3))
    processes = [started(brokers, topic, local_lake, tmp_path, "one")]
    try:
        processes[0].wait_ready(120)
        goes_on(processes, range(3))
        broker = brokers.group_coordinator(group)
        away = broker.node - 1
        others = [partition for partition in range(3) if partition != away]
        broker.kill()
        assert longest_pause(processes[0], others, 6) < PAUSE_MAX
        ended(processes[0])
        processes[0] = started(brokers, topic, local_lake, tmp_path, "two")
        services.wait_until(lambda: processes[0].metric(WRITTEN), 120, "the others' records")
        check_away(processes[0], away)
        broker.start()
        goes_on(processes, range(3))
        processes[0].wait_ready(60)
        records = feed.end()
        services.wait_until(lambda: local_lake.rows() >= records, 120, "all records")
        check_committed(brokers, group, topic, 3)
        ended(processes[0])
    finally:
        feed.over.set()
        processes[0].kill()
    check_numbers(local_lake, records)


def test_a_leader_that_cannot_be_reached(brokers, local_lake, tmp_path):
    """As far as the others know it is well, so it stays the leader: it is waited for, but not by those who
    read the others' partitions."""
    topic = lakes.unique("cut")
    brokers.create_topic(topic, partitions=3, replicas=[[1], [2], [3]])
    group, feed = "millpond-%s-events" % topic, Feed(brokers, topic, range(3))
    brokers.committed(group, topic, 0)  # from here on somebody coordinates the group, whom a start needs
    coordinator = brokers.group_coordinator(group)
    broker = next(one for one in brokers.brokers if one is not coordinator)
    away = broker.node - 1
    broker.proxy.down()
    process = started(brokers, topic, local_lake, tmp_path, "millpond", brokers.proxied)
    try:
        services.wait_until(lambda: process.metric(WRITTEN), 120, "the others' records")
        others = [partition for partition in range(3) if partition != away]
        assert longest_pause(process, others, 12) < PAUSE_MAX  # a look is in it
        assert brokers.leaders(topic)[away] == broker.node
        check_away(process, away)
        broker.proxy.up()
        goes_on([process], range(3))
        records = feed.end()
        services.wait_until(lambda: local_lake.rows() >= records, 120, "all records")
        ended(process)
    finally:
        broker.proxy.up()
        feed.over.set()
        process.kill()
    check_numbers(local_lake, records)


def test_two_owners_while_a_coordinator_dies(brokers, hog_lake, tmp_path):
    """Each process fences the one before it, by transactions whose coordinator is killed meanwhile and stays
    away: what the first had planned is settled by the second."""
    topic = lakes.unique("owners")
    brokers.create_topic(topic, partitions=3)
    group, feed = hoglakes.group_of(topic), Feed(brokers, topic, range(3))
    processes = [started(brokers, topic, hog_lake, tmp_path, "owner-0")]
    try:
        processes[0].wait_ready(120)
        goes_on(processes, range(3))
        kill_at_next_snapshot(hog_lake.watch(),
                              brokers.transaction_coordinator("%s/%s/0" % (group, topic)).process, 60)
        for turn in (1, 2):
            processes.append(started(brokers, topic, hog_lake, tmp_path, "owner-%d" % turn))
            assert processes[-2].wait_exit(120) == 3, processes[-2].log_end()
            processes[-1].wait_ready(120)
            goes_on(processes[-1:], range(3))
        records = feed.end()
        services.wait_until(lambda: hog_lake.rows() >= records, 120, "all records")
        check_committed(brokers, group, topic, 3)
        ended(processes[-1])
    finally:
        feed.over.set()
        for process in processes:
            process.kill()
    hog_lake.check_numbers(range(records))
