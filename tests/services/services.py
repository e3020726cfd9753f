"""Real services for tests, each on free ports of 127.0.0.1 with its data in a folder of its own.

    with kafka_broker() as kafka, postgres() as db, versitygw() as s3:
        kafka.create_topic("events", partitions=4)
        produce(kafka.bootstrap, "events", lines)
        with run_millpond(environment(kafka, "events", ...)) as millpond:
            wait_until(lambda: millpond.metric("millpond_records_written_total") == 1000, 30)
        lake = duckdb_lake("postgres:" + db.conninfo("lake"), "s3://bucket/lake/", s3)

Every service is a child process: it is ended by its process id, and by the kernel when the test
dies. Its log stays (and its end is printed) when the test fails. `tools/setup test` installs all.
"""
import contextlib
import ctypes
import glob
import json
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENV = os.path.join(TOP, "build/env")
sys.path.insert(0, os.path.join(TOP, "tools"))
MILLPOND = os.environ.get("MILLPOND", os.path.join(TOP, "build/millpond"))


# --- small helpers -----------------------------------------------------------------------------

_reserved = []  # names that are held as long as this process runs


def free_port():
    """A port that no other test gets while this process runs, below those that the kernel gives to
    connections: it is still free when a service comes to it."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as ports:
        first = int(ports.read().split()[0])
    if first < 12000 or first > 32768:  # a kernel that was told otherwise; connections may then take one
        first = 32768
    while True:
        port = random.randrange(10000, first)
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind("\0millpond-port-%d" % port)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            name.close()
            continue
        _reserved.append(name)
        return port


def wait_until(condition, seconds, what="condition", every=0.05):
    """Gives the first true answer of condition(); one that raises OSError counts as false."""
    end = time.monotonic() + seconds
    while True:
        try:
            answer = condition()
        except OSError:
            answer = None
        if answer:
            return answer
        if time.monotonic() > end:
            raise TimeoutError("%s: not within %g s" % (what, seconds))
        time.sleep(every)


def http_get(url, timeout=60):
    """Gives (status, body); a refused connection raises OSError."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


_libc = ctypes.CDLL(None)  # loaded here: between fork and exec, other threads may hold any lock


def _die_with_parent():
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _stat(pid):
    """Gives (state, parent) of a process; a zombie is as good as gone: ("Z", 0), as are those."""
    try:
        with open("/proc/%d/stat" % pid) as stat:
            # "pid (name) state ppid ...", and a name may hold blanks and ')'
            state, parent = stat.read().rsplit(")", 1)[1].split()[:2]
    except OSError:
        return "Z", 0
    return (state, int(parent)) if state not in "ZX" else ("Z", 0)


def children(pid):
    """Process ids of what a process has started, of those that still run."""
    pids = [int(path.split("/")[2]) for path in glob.glob("/proc/[0-9]*/stat")]
    return [child for child in pids if _stat(child)[1] == pid]


class Process:
    """A child process with a log file."""

    def __init__(self, name, command, directory, env=None, user=None, stop_signal=signal.SIGTERM):
        self.name, self.stop_signal = name, stop_signal
        self.log_path = os.path.join(directory, name + ".log")
        extra = dict(user=user, group=pwd.getpwnam(user).pw_gid, extra_groups=[]) if user else {}
        with open(self.log_path, "ab") as log:
            self.child = subprocess.Popen(command, cwd=directory, env=env, stdin=subprocess.DEVNULL,
                                          stdout=log, stderr=subprocess.STDOUT,
                                          preexec_fn=_die_with_parent, **extra)

    @property
    def pid(self):
        return self.child.pid

    def running(self):
        return self.child.poll() is None

    def log(self):
        with open(self.log_path, "r", errors="replace") as log:
            return log.read()

    def log_end(self, lines=40):
        return "\n".join(self.log().splitlines()[-lines:])

    def ready(self, condition, seconds):
        def check():
            if not self.running():
                raise RuntimeError("%s ended with %s:\n%s" %
                                   (self.name, self.child.returncode, self.log_end()))
            return condition()
        wait_until(check, seconds, self.name + " is ready", 0.1)

    def signal(self, number):
        if self.running():
            self.child.send_signal(number)

    def stop(self, seconds=120):
        self.signal(self.stop_signal)
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        return self.child.returncode

    def kill(self):
        self.signal(signal.SIGKILL)
        return self.child.wait()


@contextlib.contextmanager
def _folder(name):
    """A new folder; it stays when the test fails."""
    path = tempfile.mkdtemp(prefix="millpond-%s-" % name)
    os.chmod(path, 0o755)
    try:
        yield path
    except BaseException:
        print("kept for a look: %s" % path, file=sys.stderr)
        raise
    else:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _started(service):
    """Starts a service, tells its last lines when the test fails, and stops it."""
    try:
        service.start()
        yield service
    except BaseException:
        if service.process:
            print("--- end of the log of %s\n%s" % (service.process.name, service.process.log_end()),
                  file=sys.stderr)
        raise
    finally:
        service.stop()


# --- Kafka -------------------------------------------------------------------------------------

class _Rdkafka:
    """Committed offsets by librdkafka itself: confluent_kafka reads metadata to a NUL byte, which
    librdkafka does not promise behind it, and so reads past its end."""

    class Partition(ctypes.Structure):
        _fields_ = [("topic", ctypes.c_char_p), ("partition", ctypes.c_int32),
                    ("offset", ctypes.c_int64), ("metadata", ctypes.c_void_p),
                    ("metadata_size", ctypes.c_size_t), ("opaque", ctypes.c_void_p),
                    ("err", ctypes.c_int), ("private", ctypes.c_void_p)]

    @classmethod
    def committed(cls, bootstrap, group, topic, partition):
        rd = ctypes.CDLL("librdkafka.so.1")
        for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_topic_partition_list_new"):
            getattr(rd, name).restype = ctypes.c_void_p
        rd.rd_kafka_topic_partition_list_add.restype = ctypes.POINTER(cls.Partition)
        rd.rd_kafka_err2str.restype = ctypes.c_char_p
        text, conf = ctypes.create_string_buffer(512), ctypes.c_void_p(rd.rd_kafka_conf_new())
        for key, value in (("bootstrap.servers", bootstrap), ("group.id", group),
                           ("log_level", "2")):
            if rd.rd_kafka_conf_set(conf, key.encode(), value.encode(), text, 512):
                raise RuntimeError(text.value.decode())
        kafka = ctypes.c_void_p(rd.rd_kafka_new(1, conf, text, 512))  # 1: a consumer
        if not kafka:
            raise RuntimeError(text.value.decode())
        wanted = ctypes.c_void_p(rd.rd_kafka_topic_partition_list_new(1))
        try:
            found = rd.rd_kafka_topic_partition_list_add(wanted, topic.encode(), partition)
            error = rd.rd_kafka_committed(kafka, wanted, 60000)
            if error or found[0].err:
                raise RuntimeError(rd.rd_kafka_err2str(error or found[0].err).decode())
            metadata = ctypes.string_at(found[0].metadata, found[0].metadata_size) \
                if found[0].metadata else b""
            return found[0].offset if found[0].offset >= 0 else None, metadata.decode()
        finally:
            rd.rd_kafka_topic_partition_list_destroy(wanted)
            rd.rd_kafka_destroy(kafka)


class _KafkaClient:
    """What tests ask of brokers that can be reached at `bootstrap`."""
    bootstrap, replicas, _admin = None, 1, None

    def admin(self):
        """One client for all calls: a client that is collected takes its requests with it."""
        from confluent_kafka.admin import AdminClient
        if not self._admin:
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
        return self._admin

    def create_topic(self, topic, partitions=1, replicas=None, **config):
        """replicas: how many, or the nodes that have each partition, the preferred leader first."""
        from confluent_kafka.admin import NewTopic
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        replicas = replicas or self.replicas
        where = {"replica_assignment": replicas} if isinstance(replicas, list) else \
            {"replication_factor": replicas}
        new = NewTopic(topic, num_partitions=partitions, config=settings, **where)
        for future in self.admin().create_topics([new]).values():
            future.result(60)
        wait_until(lambda: len(self.admin().list_topics(topic, 60).topics[topic].partitions)
                   == partitions, 60, "topic " + topic)

    def watermarks(self, topic, partition):
        from confluent_kafka import Consumer, TopicPartition
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "tests", "log_level": 2})
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=60)
        finally:
            consumer.close()

    def committed(self, group, topic, partition):
        """Gives (offset, metadata); offset is None where nothing was committed."""
        return _Rdkafka.committed(self.bootstrap, group, topic, partition)

    def commit(self, group, offsets, topic):
        """Commits plain offsets, {partition: next}, as the Python program does."""
        from confluent_kafka import Consumer, TopicPartition
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group,
                             "enable.auto.commit": False, "log_level": 2})
        try:
            consumer.commit(offsets=[TopicPartition(topic, p, o) for p, o in offsets.items()],
                            asynchronous=False)
        finally:
            consumer.close()

    def delete_group(self, group):
        for future in self.admin().delete_consumer_groups([group]).values():
            future.result(60)

    def delete_records(self, topic, offsets):
        """Deletes what lies before {partition: offset}, as retention does."""
        from confluent_kafka import TopicPartition
        answers = self.admin().delete_records([TopicPartition(topic, p, o)
                                               for p, o in offsets.items()])
        for future in answers.values():
            future.result(60)


class Kafka(_KafkaClient):
    """One broker (KRaft). A second listener can be advertised at a port where a proxy stands:
    clients that begin at the proxy then stay behind it."""

    heap = "768m"

    def __init__(self, directory, proxied_port=None, more=None, node=1):
        self.directory, self.process, self.node = directory, None, node
        self.port, controller = free_port(), free_port()
        self.voter = "%d@127.0.0.1:%d" % (node, controller)
        self.proxied_listener = free_port() if proxied_port else None
        self.bootstrap = "127.0.0.1:%d" % self.port
        listeners = {"PLAINTEXT": (self.port, self.port)}
        if proxied_port:
            listeners["PROXIED"] = (self.proxied_listener, proxied_port)
        names = list(listeners)
        self.settings = {
            "process.roles": "broker,controller",
            "node.id": node,
            "controller.quorum.voters": self.voter,
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listeners": ",".join(["%s://127.0.0.1:%d" % (n, listeners[n][0]) for n in names] +
                                  ["CONTROLLER://127.0.0.1:%d" % controller]),
            "advertised.listeners": ",".join("%s://127.0.0.1:%d" % (n, listeners[n][1])
                                             for n in names),
            "listener.security.protocol.map": ",".join("%s:PLAINTEXT" % n
                                                       for n in names + ["CONTROLLER"]),
            "log.dirs": os.path.join(directory, "data"),
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.num.partitions": 4,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "min.insync.replicas": 1,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false",
            "log.retention.check.interval.ms": 1000,
            "log.segment.delete.delay.ms": 1000,
            "num.partitions": 1,
            "message.max.bytes": 33554432,
        }
        self.settings.update(more or {})
        self.settings_path = os.path.join(directory, "server.properties")

    def _java(self, *options):
        return ["java"] + list(options) + ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                                           "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                                           "-cp", os.path.join(ENV, "kafka/lib/*")]

    def format(self, cluster):
        """Makes the data folder of a member of that cluster; gives the process that does it."""
        with open(self.settings_path, "w") as out:
            out.writelines("%s=%s\n" % item for item in self.settings.items())
        return Process("format", self._java("-Xmx256m") + ["kafka.tools.StorageTool", "format", "-t",
                                                           cluster, "-c", self.settings_path],
                       self.directory)

    def launch(self):
        self.process = Process("kafka", self._java("-Xmx" + self.heap) +
                               ["kafka.Kafka", self.settings_path], self.directory)

    def wait_ready(self):
        self.process.ready(self._answers, 180)

    def start(self):
        if not os.path.exists(self.settings["log.dirs"]):
            formatted(self.format(new_cluster()))
        self.launch()
        self.wait_ready()

    def _answers(self):
        from confluent_kafka import KafkaException
        try:
            with socket.create_connection(("127.0.0.1", self.port), 0.5):
                pass
            return self.node in self.admin().list_topics(timeout=2).brokers
        except KafkaException:
            return False

    def running(self):
        return self.process.running()

    def stop(self):
        if self.process:
            self.process.stop()

    def kill(self):
        self.process.kill()


class KafkaCluster(_KafkaClient):
    """Three brokers, each a controller too, of which any one may be away: topics have three replicas
    and take records while two of them are in step. brokers[i] is node i + 1; each may be stopped,
    killed and started again. A broker that dies loses its partitions within three seconds. Clients
    that begin at `proxied` stay behind the proxies of a Toxiproxy, broker.proxy each."""
    replicas = 3

    def __init__(self, directory, toxi=None, more=None):
        settings = {
            "offsets.topic.replication.factor": 3,
            "transaction.state.log.replication.factor": 3,
            "transaction.state.log.min.isr": 2,
            "min.insync.replicas": 2,
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            "log.cleaner.dedupe.buffer.size": 4194304,
        }
        settings.update(more or {})
        self.brokers = []
        for node in (1, 2, 3):
            folder, port = os.path.join(directory, "broker-%d" % node), free_port() if toxi else None
            os.mkdir(folder)
            self.brokers.append(Kafka(folder, port, settings, node))
            if toxi:
                self.brokers[-1].proxy = toxi.proxy(
                    "broker-%d" % node, "127.0.0.1:%d" % self.brokers[-1].proxied_listener, port)
        for broker in self.brokers:
            broker.heap = "256m"
            broker.settings["controller.quorum.voters"] = ",".join(b.voter for b in self.brokers)
        self.bootstrap = ",".join(broker.bootstrap for broker in self.brokers)
        self.proxied = ",".join(b.proxy.address for b in self.brokers) if toxi else None

    @property
    def process(self):
        return self.brokers[0].process

    def start(self):
        cluster = new_cluster()
        for process in [broker.format(cluster) for broker in self.brokers]:
            formatted(process)
        for broker in self.brokers:
            broker.launch()
        for broker in self.brokers:
            broker.wait_ready()

    def mend(self):
        """Starts those that are not running."""
        away = [broker for broker in self.brokers if not broker.running()]
        for broker in away:
            broker.launch()
        for broker in away:
            broker.wait_ready()

    def stop(self):
        """All at once: the last one alone would wait for the others."""
        for broker in self.brokers:
            if broker.process:
                broker.process.kill()

    def leaders(self, topic):
        """{partition: the node that leads it, -1: nobody does}."""
        found = self.admin().list_topics(topic, 10).topics[topic].partitions
        return {number: partition.leader for number, partition in found.items()}

    def in_step(self, topic):
        """Whether every replica of every partition has all records and a leader has them."""
        found = self.admin().list_topics(topic, 10).topics[topic].partitions.values()
        return all(p.leader >= 0 and len(p.isrs) == len(p.replicas) for p in found)

    def leader(self, topic, partition):
        return self.brokers[self.leaders(topic)[partition] - 1]

    def _coordinator(self, topic, name):
        """Who leads the partition of an internal topic that keeps what belongs to a name: its hash as
        Java's String.hashCode. (Kafka, partitionFor in GroupCoordinator, TransactionStateManager)"""
        number = 0
        for letter in name:
            number = (number * 31 + ord(letter)) & 0xffffffff
        leaders = self.leaders(topic)
        return self.brokers[leaders[(number & 0x7fffffff) % len(leaders)] - 1]

    def group_coordinator(self, group):
        return self._coordinator("__consumer_offsets", group)

    def transaction_coordinator(self, transactional_id):
        return self._coordinator("__transaction_state", transactional_id)

    def elect_preferred(self, topic):
        from confluent_kafka import ElectionType, TopicPartition
        partitions = [TopicPartition(topic, p) for p in self.leaders(topic)]
        self.admin().elect_leaders(ElectionType.PREFERRED, partitions).result(30)


def new_cluster():
    """The name of a new Kafka cluster."""
    return uuid.uuid4().hex[:22]


def formatted(process):
    """Waits for a broker's data folder."""
    if process.child.wait(180):
        raise RuntimeError("the broker's data folder: " + process.log_end())


@contextlib.contextmanager
def kafka_broker(proxied_port=None, more=None):
    """more: further settings of the broker."""
    with _folder("kafka") as directory, _started(Kafka(directory, proxied_port, more)) as service:
        yield service


@contextlib.contextmanager
def kafka_cluster(toxi=None, more=None):
    """Three brokers; toxi: with proxies before them; more: further settings of each."""
    with _folder("kafka") as directory, _started(KafkaCluster(directory, toxi, more)) as service:
        yield service


def produce(bootstrap, topic, values, partitions=None, partition=None, seconds=120):
    """Sends values (bytes, text, None for a tombstone, or (key, value)), value i to partition
    i mod partitions, or all to one. Returns when the broker has all; gives {partition: count}."""
    from confluent_kafka import Producer
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "acks": "all",
                         "batch.num.messages": 50000, "queue.buffering.max.messages": 400000,
                         "queue.buffering.max.kbytes": 262144, "message.max.bytes": 33000000,
                         "enable.idempotence": True, "log_level": 2})
    if partitions is None and partition is None:
        partitions = len(producer.list_topics(topic, 60).topics[topic].partitions)
    counts, errors = {}, []

    def delivered(error, message):
        if error:
            errors.append(str(error))

    for index, value in enumerate(values):
        key = None
        if isinstance(value, tuple):
            key, value = value
        target = index % partitions if partition is None else partition
        while True:
            try:
                producer.produce(topic, value, key, target, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.2)
        counts[target] = counts.get(target, 0) + 1
        if index % 10000 == 0:
            producer.poll(0)
    left = producer.flush(seconds)
    if left or errors:
        producer.purge()
        raise RuntimeError("%d records not sent, %d refused: %s" % (left, len(errors), errors[:3]))
    return counts


# --- PostgreSQL --------------------------------------------------------------------------------

def _postgres_binary(name):
    """PG_BIN names the directory where it is none of the usual ones."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/" + name)) or [shutil.which(name)]
    if os.environ.get("PG_BIN"):
        found = [shutil.which(name, path=os.environ["PG_BIN"])]
    if not found[-1]:
        raise RuntimeError("%s is not installed: tools/setup test" % name)
    return found[-1]


class Postgres:
    """A cluster of its own. It runs as a user that is not root, which PostgreSQL insists on."""

    def __init__(self, directory, settings=None):
        self.directory, self.port, self.process = directory, free_port(), None
        self.data = os.path.join(directory, "data")
        self.settings = dict({"listen_addresses": "127.0.0.1", "port": self.port, "fsync": "off",
                              "unix_socket_directories": directory, "max_connections": 200},
                             **(settings or {}))
        self.user = None
        if os.getuid() == 0:
            self.user = "postgres"
            os.chown(directory, pwd.getpwnam(self.user).pw_uid, -1)

    def start(self):
        if not os.path.exists(self.data):
            done = subprocess.run(
                [_postgres_binary("initdb"), "-D", self.data, "-U", "millpond", "-A", "trust",
                 "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"],
                user=self.user, cwd=self.directory, stdin=subprocess.DEVNULL, capture_output=True,
                text=True, env={"PATH": "/usr/bin:/bin"})
            if done.returncode:
                raise RuntimeError("initdb: " + done.stdout + done.stderr)
        options = [part for item in self.settings.items() for part in ("-c", "%s=%s" % item)]
        self.process = Process("postgres", [_postgres_binary("postgres"), "-D", self.data] + options,
                               self.directory, env={"PATH": "/usr/bin:/bin"}, user=self.user,
                               stop_signal=signal.SIGINT)
        self.process.ready(self._answers, 120)

    def _answers(self):
        import psycopg2
        try:
            self.connect("postgres").close()
            return True
        except psycopg2.OperationalError:
            return False

    def stop(self):
        if self.process:
            self.process.stop()

    def kill(self):
        """As a crash: at once, and what it had started too. It may start nothing more meanwhile, and
        the memory they share is free when this returns."""
        self.process.signal(signal.SIGSTOP)
        wait_until(lambda: _stat(self.process.pid)[0] in "TtZ", 60, "it stands still", 0.01)
        backends = children(self.process.pid)
        self.process.kill()
        for child in backends:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        for child in backends:
            wait_until(lambda: _stat(child)[0] == "Z", 60, "a backend is gone", 0.01)

    def conninfo(self, database, port=None):
        return "host=127.0.0.1 port=%d dbname=%s user=millpond" % (port or self.port, database)

    def connect(self, database):
        import psycopg2
        connection = psycopg2.connect(self.conninfo(database), connect_timeout=60)
        connection.autocommit = True
        return connection

    def create_database(self, database):
        connection = self.connect("postgres")
        connection.cursor().execute('CREATE DATABASE "%s"' % database)
        connection.close()

    def query(self, database, sql, *arguments):
        connection = self.connect(database)
        try:
            cursor = connection.cursor()
            cursor.execute(sql, arguments or None)
            return cursor.fetchall() if cursor.description else None
        finally:
            connection.close()


@contextlib.contextmanager
def postgres(**settings):
    with _folder("postgres") as directory, _started(Postgres(directory, settings)) as service:
        yield service


# --- S3 ----------------------------------------------------------------------------------------

class Versitygw:
    access_key, secret_key, region = "hoglake", "hoglake123", "us-east-1"

    def __init__(self, directory):
        self.directory, self.port, self.process = directory, free_port(), None
        self.endpoint = "http://127.0.0.1:%d" % self.port
        self.host = "127.0.0.1:%d" % self.port
        self.root, self.sidecar = (os.path.join(directory, name) for name in ("root", "sidecar"))

    def start(self):
        for path in (self.root, self.sidecar):
            os.makedirs(path, exist_ok=True)
        env = {"PATH": "/usr/bin:/bin", "ROOT_ACCESS_KEY": self.access_key,
               "ROOT_SECRET_KEY": self.secret_key, "HOME": self.directory}
        self.process = Process("versitygw", [os.path.join(ENV, "bin/versitygw"), "--port", self.host,
                                             "--region", self.region, "posix", "--sidecar",
                                             self.sidecar, self.root], self.directory, env=env)
        self.process.ready(self.answers, 120)

    def answers(self):
        from botocore.exceptions import BotoCoreError
        try:
            self.client().list_buckets()
        except BotoCoreError:  # which is no OSError, whatever went wrong
            return False
        return True

    def stop(self):
        if self.process:
            self.process.stop()

    def client(self, endpoint=None):
        import boto3
        from botocore.config import Config
        return boto3.client("s3", endpoint_url=endpoint or self.endpoint, region_name=self.region,
                              aws_access_key_id=self.access_key,
                              aws_secret_access_key=self.secret_key,
                              config=Config(s3={"addressing_style": "path"},
                                            retries={"max_attempts": 1}))

    def create_bucket(self, bucket):
        self.client().create_bucket(Bucket=bucket)

    def keys(self, bucket, prefix=""):
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return {item["Key"]: item["Size"] for page in pages for item in page.get("Contents", [])}

    def ducklake_env(self, endpoint=None):
        """The settings with which millpond reaches it."""
        return {"DUCKDB_S3_ENDPOINT": endpoint or self.host, "DUCKDB_S3_REGION": self.region,
                "DUCKDB_S3_ACCESS_KEY_ID": self.access_key,
                "DUCKDB_S3_SECRET_ACCESS_KEY": self.secret_key,
                "DUCKDB_S3_USE_SSL": "false", "DUCKDB_S3_URL_STYLE": "path"}


@contextlib.contextmanager
def versitygw():
    with _folder("s3") as directory, _started(Versitygw(directory)) as service:
        yield service


# --- TCP faults --------------------------------------------------------------------------------

class Proxy:
    def __init__(self, service, name, port, upstream):
        self.service, self.name, self.port = service, name, port
        self.address = "127.0.0.1:%d" % port
        service.call("POST", "/proxies", {"name": name, "listen": self.address, "enabled": True,
                                          "upstream": upstream})

    def down(self):
        """Refuses new connections and cuts those that are there."""
        self.service.call("POST", "/proxies/" + self.name, {"enabled": False})

    def up(self):
        self.service.call("POST", "/proxies/" + self.name, {"enabled": True})

    def toxic(self, kind, stream="downstream", toxicity=1.0, **attributes):
        """latency(latency, jitter) bandwidth(rate) timeout(timeout) reset_peer(timeout)
        limit_data(bytes) slow_close(delay): see toxiproxy. Times in milliseconds."""
        self.service.call("POST", "/proxies/%s/toxics" % self.name,
                          {"name": kind + "_" + stream, "type": kind, "stream": stream,
                           "toxicity": toxicity, "attributes": attributes})

    def heal(self):
        for toxic in self.service.call("GET", "/proxies/%s/toxics" % self.name):
            self.service.call("DELETE", "/proxies/%s/toxics/%s" % (self.name, toxic["name"]))
        self.up()


class Toxiproxy:
    def __init__(self, directory):
        self.directory, self.port, self.process = directory, free_port(), None

    def start(self):
        self.process = Process("toxiproxy", [os.path.join(ENV, "bin/toxiproxy"), "-host",
                                             "127.0.0.1", "-port", str(self.port)], self.directory)
        self.process.ready(lambda: self.call("GET", "/version"), 120)

    def stop(self):
        if self.process:
            self.process.stop()

    def call(self, method, path, body=None):
        request = urllib.request.Request("http://127.0.0.1:%d%s" % (self.port, path), method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else True

    def proxy(self, name, upstream, port=None):
        """A proxy in front of "host:port"."""
        return Proxy(self, name, port or free_port(), upstream)


@contextlib.contextmanager
def toxiproxy():
    with _folder("toxiproxy") as directory, _started(Toxiproxy(directory)) as service:
        yield service


# --- DuckDB ------------------------------------------------------------------------------------

def duckdb_plain(s3=None):
    """A connection with the extensions loaded, without a network."""
    import duckdb_offline
    connection = duckdb_offline.connect()
    if s3:
        connection.execute("CREATE SECRET s3 (TYPE s3, KEY_ID '%s', SECRET '%s', REGION '%s', "
                           "ENDPOINT '%s', USE_SSL false, URL_STYLE 'path')" %
                           (s3.access_key, s3.secret_key, s3.region, s3.host))
    return connection


def duckdb_lake(catalog, data_path=None, s3=None, **options):
    """DuckDB with the lake of "sqlite:PATH" or "postgres:CONNINFO" attached as `lake`. Further
    options go to ATTACH: duckdb_lake(..., READ_ONLY=True, SNAPSHOT_VERSION=3)."""
    import duckdb_offline
    connection = duckdb_plain(s3)
    if data_path:
        options = dict(options, DATA_PATH=data_path)
    duckdb_offline.attach(connection, catalog, **options)
    return connection


# --- millpond ----------------------------------------------------------------------------------

_sample = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
_label = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')


def parse_metrics(text):
    """[(name, {label: value}, number)] of a Prometheus text page."""
    samples = []
    for line in text.splitlines():
        match = _sample.match(line)
        if match and not line.startswith("#"):
            labels = {key: value.replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")
                      for key, value in _label.findall(match[2] or "")}
            samples.append((match[1], labels, float(match[3])))
    return samples


class Millpond(Process):
    def __init__(self, arguments, env, directory, name="millpond"):
        self.port = int(env.get("MILLPOND_HTTP_PORT") or 0)
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "ASAN_OPTIONS", "UBSAN_OPTIONS",
                                                 "TSAN_OPTIONS") if key in os.environ}
        super().__init__(name, [MILLPOND] + list(arguments), directory, env=dict(kept, **env))

    def get(self, path):
        return http_get("http://127.0.0.1:%d%s" % (self.port, path))

    def metrics(self):
        return parse_metrics(self.get("/metrics")[1])

    def metric(self, name, **labels):
        """The sum of the series of that name whose labels fit; 0 where there is none."""
        return sum(value for found, has, value in self.metrics()
                   if found == name and all(has.get(key) == text for key, text in labels.items()))

    def is_ready(self):
        return self.running() and self.get("/readyz")[0] == 200

    def wait_ready(self, seconds=30):
        self.ready(self.is_ready, seconds)

    def wait_metric(self, name, at_least, seconds=60, **labels):
        def reached():
            if not self.running():
                raise RuntimeError("millpond ended with %s:\n%s" %
                                   (self.child.returncode, self.log_end()))
            return self.metric(name, **labels) >= at_least
        wait_until(reached, seconds, "%s %s >= %s" % (name, labels or "", at_least))

    def wait_exit(self, seconds=30):
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise TimeoutError("millpond did not end within %g s:\n%s" % (seconds, self.log_end()))

    def log_lines(self, logger=None):
        """The JSON lines of its log."""
        lines = []
        for line in self.log().splitlines():
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict) and (not logger or entry.get("logger") == logger):
                    lines.append(entry)
        return lines

    def logged(self, part):
        return [entry for entry in self.log_lines() if part in entry.get("msg", "")]

    def peak_rss(self):
        with open("/proc/%d/status" % self.pid) as status:
            return int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) * 1024


def environment(kafka, topic, table="events", **more):
    """Settings for one process of one replica that reads a topic into DuckLake; the rest of the
    destination (catalog, data path) comes in `more`. None takes a setting out."""
    env = {"KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap if kafka else "", "KAFKA_TOPIC": topic,
           "REPLICA_COUNT": "1", "POD_NAME": "millpond-0", "DUCKLAKE_TABLE": table,
           "MILLPOND_HTTP_PORT": str(free_port()), "FLUSH_INTERVAL_MS": "1000",
           "FETCH_MAX_WAIT_MS": "50"}
    env.update({key: str(value) for key, value in more.items() if value is not None})
    for key, value in more.items():
        if value is None:
            env.pop(key, None)
    return env


def start_millpond(env, directory, *arguments, name="millpond"):
    """A running process; the caller ends it."""
    return Millpond(arguments, env, directory, name)


@contextlib.contextmanager
def run_millpond(env, *arguments, ready=True, name="millpond"):
    """A process that is ready, and ended in good order afterwards; one that is then still there
    after 30 s, or ends with another code than 0, fails the test."""
    with _folder(name) as directory:
        process = Millpond(arguments, env, directory, name)
        try:
            if ready:
                process.wait_ready()
            yield process
            if process.running():
                process.signal(signal.SIGTERM)
                code = process.wait_exit(30)
                if code:
                    raise RuntimeError("millpond ended with %d:\n%s" % (code, process.log_end()))
        except BaseException:
            print("--- end of the log of %s\n%s" % (name, process.log_end(80)), file=sys.stderr)
            raise
        finally:
            if process.running():
                process.kill()


def millpond_once(env, *arguments, seconds=120, data=None):
    """Runs a verb to its end: gives (exit code, standard output, standard error)."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "ASAN_OPTIONS", "UBSAN_OPTIONS")
            if key in os.environ}
    done = subprocess.run([MILLPOND] + list(arguments), env=dict(kept, **env), input=data or b"",
                          capture_output=True, timeout=seconds)
    return (done.returncode, done.stdout.decode("utf-8", "replace"),
            done.stderr.decode("utf-8", "replace"))
