#!/usr/bin/env python3
"""Judges the rdkafka driver against a real Apache Kafka broker.

    KAFKA_LIB=/path/to/jars judge_broker.py SOURCE_TOOL [--kafka-lib DIR] [TEST]...

Starts one broker (KRaft) on free loopback ports with its data in a temporary folder, makes topics
with confluent-kafka, lets the tool read them and compares. Ends with "N passed, N failed".
"""
import argparse
import base64
import glob
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (AclBinding, AclBindingFilter, AclOperation, AclPermissionType,
                                   AdminClient, NewPartitions, NewTopic, ResourcePatternType,
                                   ResourceType)

import services

SMALL = 1300  # bytes of an ordinary record
# A broker holds a fetch back for up to 500 ms where less than fetch.min.bytes is there, and a
# partition that is begun meanwhile waits for the next one: nothing for 2.5 s is the end, once what
# must come is there (least).


class Broker:
    """One broker that may be stopped and started again with its data."""

    def __init__(self, lib):
        self.lib = lib
        self.folder = tempfile.mkdtemp(prefix="judge-broker-")
        self.port, self.sasl_port, self.controller_port = (services.free_port() for _ in range(3))
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.sasl_bootstrap = f"127.0.0.1:{self.sasl_port}"
        self.process = None
        users = 'user_admin="admin-secret" user_reader="reader-secret"'
        self.config = os.path.join(self.folder, "server.properties")
        with open(self.config, "w") as f:
            f.write(f"""
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{self.controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{self.port},SASL://127.0.0.1:{self.sasl_port},CONTROLLER://127.0.0.1:{self.controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{self.port},SASL://127.0.0.1:{self.sasl_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required {users};
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:admin
log.dirs={self.folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.cleaner.backoff.ms=300
log.retention.check.interval.ms=1000
message.max.bytes=20971520
replica.fetch.max.bytes=20971520
controlled.shutdown.enable=false
""")
        cluster = "-"
        while cluster.startswith("-"):  # would be taken for an option
            cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", self.config, wait=True)

    def java(self, main, *arguments, wait=False, memory="512m"):
        command = ["java", f"-Xmx{memory}", "-XX:+UseSerialGC",
                   "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                   "-cp", os.path.join(self.lib, "*"), main, *arguments]
        log = open(os.path.join(self.folder, "broker.log"), "a")
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        if wait and process.wait() != 0:
            text = open(log.name).read()[-2000:]
            self.close()
            raise RuntimeError(f"{main} failed: {text}")
        return process

    def start(self, ready=True):
        self.process = self.java("kafka.Kafka", self.config)
        while ready:
            try:
                AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0}).list_topics(
                    timeout=1)
                return
            except KafkaException:
                if self.process.poll() is not None:
                    raise RuntimeError("the broker ended")

    def stop(self, hard=False):
        if self.process:
            self.process.send_signal(signal.SIGKILL if hard else signal.SIGTERM)
            self.process.wait()
            self.process = None

    def close(self):
        self.stop(hard=True)
        shutil.rmtree(self.folder, ignore_errors=True)


class Judge:
    def __init__(self, broker, tool):
        self.broker, self.tool = broker, tool
        self.admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        self.number = 0

    def topic(self, partitions, **config):
        self.number += 1
        name = f"topic-{self.number}"
        config = {k.replace("_", "."): str(v) for k, v in config.items()}
        self.admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(60)
        self.wait_partitions(name, partitions)
        return name

    def wait_partitions(self, topic, count):
        """The broker tells its clients of partitions after the controller has made them."""
        services.wait_until(
            lambda: len(self.admin.list_topics(topic, 60).topics[topic].partitions) == count, 60,
            "partitions of " + topic)

    def delete_records(self, topic, before):
        for future in self.admin.delete_records([TopicPartition(topic, 0, before)]).values():
            future.result(60)

    def allow(self, kind, name, operation):
        """Returns when the broker itself goes by it."""
        what = (kind, name, ResourcePatternType.LITERAL, "User:reader", "*", operation,
                AclPermissionType.ALLOW)
        for future in self.admin.create_acls([AclBinding(*what)]).values():
            future.result(60)
        services.wait_until(lambda: self.admin.describe_acls(AclBindingFilter(*what)).result(60), 60,
                            "a rule")

    def producer(self, **config):
        config = {k.replace("_", "."): v for k, v in config.items()}
        return Producer({"bootstrap.servers": self.broker.bootstrap, "linger.ms": 5,
                         "message.max.bytes": 20000000, "queue.buffering.max.messages": 100000,
                         "log_level": 0, **config})

    def fill(self, topic, counts, size=SMALL, producer=None):
        """counts: partition -> how many."""
        producer = producer or self.producer()
        block = os.urandom(size + 4096)
        errors = []

        def delivered(error, _):
            if error:
                errors.append(error)

        for partition, count in counts.items():
            for i in range(count):
                at = i % 4096
                while True:
                    try:
                        producer.produce(topic, block[at:at + size], partition=partition,
                                         on_delivery=delivered)
                        break
                    except BufferError:
                        producer.poll(0.1)
        same((producer.flush(180), errors), (0, []))

    def command(self, topic, group, *arguments, bootstrap=None):
        return [self.tool, bootstrap or self.broker.bootstrap, topic, group, *arguments]

    def read(self, topic, group, *arguments, bootstrap=None, ok=True, least=0):
        """To the end of the topic, which does not come before `least` records; or records=N."""
        command = self.command(topic, group, f"least={least}", "idle_ms=2500", *arguments,
                               bootstrap=bootstrap)
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if ok and done.returncode:
            raise AssertionError(f"exit {done.returncode}: {done.stdout[-500:]} {done.stderr[-1500:]}")
        return Outcome(done.stdout, done.stderr, done.returncode)

    # Fresh group coordinator: the stored offsets are asked for before anything made it ready.
    def fresh_coordinator_is_waited_for(self):
        topic = self.topic(2)
        self.fill(topic, {0: 100, 1: 100})
        seen = self.read(topic, "fresh", "start=committed", "committed=1", least=200)
        same(seen.total["count"], 200)
        same([c["offset"] for c in seen.committed], [-1, -1])

    def reads_everything_once(self):
        topic = self.topic(4)
        self.fill(topic, {p: 50000 for p in range(4)})
        seen = self.read(topic, "all", least=200000)
        same(seen.total["count"], 200000)
        for p in range(4):
            same((seen.parts[p]["count"], seen.parts[p]["first"], seen.parts[p]["last"]),
                 (50000, 0, 49999))
            same(seen.parts[p]["bytes"], 50000 * SMALL)
        again = self.read(topic, "all", "batch=77", least=200000)
        same([seen.parts[p]["digest"] for p in range(4)],
             [again.parts[p]["digest"] for p in range(4)])
        print("    reading alone: %.2f CPU-s and %.2f s wall (2.5 s of it idle) for 200,000 records "
              "of %d bytes, %d MB resident" % (seen.total["cpu_s"], seen.total["wall_s"], SMALL,
                                               seen.total["rss_max_kb"] // 1024))

    def seeks_exactly_under_prefetch(self):
        topic = self.topic(3)
        self.fill(topic, {p: 40000 for p in range(3)}, size=300)
        seen = self.read(topic, "seeks", "seeks=3000")
        print("    3000 seeks, %d records between them" % seen.total["count"])
        assert seen.total["count"] > 100000, seen.total

    def keeps_within_the_prefetch_limit(self):
        """C08: many partitions, much in each, and records of which most are bookkeeping."""
        for partitions, size, count in ((64, SMALL, 1500), (2, 40, 100000)):
            topic = self.topic(partitions)
            self.fill(topic, {p: count for p in range(partitions)}, size=size)
            slow = self.read(topic, "slow", "records=10000", "batch=100", "pause_us=20000")
            print("    slow reader, %d bytes a record: %d MB resident" %
                  (size, slow.total["rss_max_kb"] // 1024))
            assert slow.total["rss_max_kb"] < 48 * 1024, slow.total

    def a_steady_reader_never_starves(self):
        """The client must fetch on while records are taken away, whatever their size."""
        for size, count, batch in ((SMALL, 150000, 500), (40, 450000, 1500)):
            topic = self.topic(2)
            self.fill(topic, {0: count // 2, 1: count // 2}, size=size)
            for _ in range(8):  # a client that starves waits for 1 s, several times in each of them
                seen = self.read(topic, "steady", f"records={count}", f"batch={batch}",
                                 "pause_us=8000")
                waited = seen.total["wall_s"] - seen.total["paused_s"]
                print("    %d bytes a record: %.2f s beside %.2f s of pauses" %
                      (size, waited, seen.total["paused_s"]))
                if waited < 2:
                    break
            assert waited < 2, seen.total

    def shares_partitions_by_ordinal(self):
        topic = self.topic(7)
        self.fill(topic, {p: 100 + p for p in range(7)})
        for ordinal in range(3):
            want = {p: 100 + p for p in range(ordinal, 7, 3)}
            seen = self.read(topic, "share", f"ordinal={ordinal}", "replicas=3",
                             least=sum(want.values()))
            same({p: part["count"] for p, part in seen.parts.items()}, want)

    def tells_tombstones_keys_and_times(self):
        topic = self.topic(1, retention_ms=-1)  # their time is long ago
        producer = self.producer()
        for key, value in ((b"k", None), (b"k", b""), (None, b"x"), (b"", b"y")):
            producer.produce(topic, value, key, partition=0, timestamp=1700000000123)
        same(producer.flush(180), 0)
        seen = self.read(topic, "kinds", "print=1", least=4)
        same([(r["key"], r["value"], r["size"], r["text"], r["time"]) for r in seen.records],
             [(True, False, 0, "", 1700000000123), (True, True, 0, "", 1700000000123),
              (False, True, 1, "x", 1700000000123), (True, True, 1, "y", 1700000000123)])

    def follows_compacted_gaps(self):
        topic = self.topic(1, cleanup_policy="compact", segment_ms=200, segment_bytes=1048576,
                           min_cleanable_dirty_ratio=0.01, max_compaction_lag_ms=500,
                           min_compaction_lag_ms=0)
        producer = self.producer()
        for i in range(20000):
            key = b"k%d" % (i % 50 if i % 100 else 1000 + i)  # every 100th stays
            producer.produce(topic, b"v%d" % i, key, partition=0)
            if i % 1000 == 0:
                producer.flush(180)

        def compacted():
            time.sleep(1)
            producer.produce(topic, b"tick", b"tick", partition=0)
            same(producer.flush(180), 0)
            seen = self.read(topic, "compact", "print=1", least=1)
            whole = seen.records[-1]["text"] == "tick"  # a tick follows all others
            return whole and seen.total["count"] < 1000 and seen

        seen = services.wait_until(compacted, 300, "the broker compacts")
        offsets = [r["offset"] for r in seen.records]
        assert offsets == sorted(set(offsets)), "out of order"
        gaps = sum(1 for a, b in zip(offsets, offsets[1:]) if b > a + 1)
        assert gaps > 100, gaps
        values = {r["text"] for r in seen.records}
        assert {"v%d" % i for i in range(19950, 20000)} <= values
        print(f"    {len(offsets)} records with {gaps} gaps up to offset {offsets[-1]}")

    def leaves_out_aborted_transactions(self):
        topic = self.topic(2)
        producer = self.producer(transactional_id="judge")
        producer.init_transactions(120)
        for turn in range(20):
            producer.begin_transaction()
            for i in range(50):
                producer.produce(topic, b"t%d.%d" % (turn, i), partition=i % 2)
            if turn % 4 == 3:
                producer.abort_transaction(120)
            else:
                producer.commit_transaction(120)
        seen = self.read(topic, "txn", "print=1", "commit=1", least=750)
        same(sorted(r["text"] for r in seen.records),
             sorted("t%d.%d" % (t, i) for t in range(20) if t % 4 != 3 for i in range(50)))
        offsets = [r["offset"] for r in seen.records if r["partition"] == 0]
        assert any(b > a + 1 for a, b in zip(offsets, offsets[1:]))
        again = self.read(topic, "txn", "start=committed")
        same(again.total["count"], 0)

    def takes_one_large_record_among_small_ones(self):
        """C07: above every limit of a fetch."""
        topic = self.topic(1, max_message_bytes=20000000)
        producer = self.producer()
        self.fill(topic, {0: 20000}, producer=producer)
        self.fill(topic, {0: 1}, size=12 * 1024 * 1024, producer=producer)
        self.fill(topic, {0: 20000}, producer=producer)
        seen = self.read(topic, "large", "records=40001", "batch=200", "pause_us=2000")
        same(seen.parts[0]["last"], 40000)
        same(seen.parts[0]["bytes"], 40000 * SMALL + 12 * 1024 * 1024)
        print("    with a 12 MB record: %d MB resident" % (seen.total["rss_max_kb"] // 1024))
        assert seen.total["rss_max_kb"] < 96 * 1024, seen.total

    def names_a_record_above_the_hard_limit(self):
        topic = self.topic(1, max_message_bytes=20000000)
        self.fill(topic, {0: 1}, size=12 * 1024 * 1024)
        seen = self.read(topic, "hard", "receive.message.max.bytes=4000000", "idle_ms=4000")
        if "receive.message.max.bytes" not in seen.log:  # a slow broker
            seen = self.read(topic, "hard", "receive.message.max.bytes=4000000", "idle_ms=60000")
        same(seen.total["count"], 0)
        assert "receive.message.max.bytes" in seen.log, seen.log
        assert seen.total["cpu_s"] < seen.total["wall_s"] / 2, seen.total

    def goes_on_from_stored_offsets(self):
        topic = self.topic(3)
        self.fill(topic, {0: 5000, 1: 6000, 2: 7000})
        first = self.read(topic, "restart", "start=committed", "records=7777", "commit=1")
        second = self.read(topic, "restart", "start=committed", "committed=1", "commit=1",
                           least=18000 - first.total["count"])
        for p in range(3):
            stored = next(c for c in second.committed if c["committed"] == p)
            following = first.parts[p]["count"]
            same((stored["offset"], stored["metadata"]),
                 (following, f"mp1 7 {following}") if following else (-1, ""))
            same((second.parts[p]["first"], second.parts[p]["last"]), (following, 4999 + 1000 * p))
        same(first.total["count"] + second.total["count"], 18000)
        third = self.read(topic, "restart", "start=committed")
        same(third.total["count"], 0)

    def finds_partitions_added_while_running(self):
        topic = self.topic(2)
        self.fill(topic, {0: 100, 1: 100})
        running = Running(self.command(topic, "grow", "watch=1", "records=800"))
        time.sleep(2)
        self.admin.create_partitions([NewPartitions(topic, 4)])[topic].result(60)
        self.wait_partitions(topic, 4)
        self.fill(topic, {2: 300, 3: 300})
        seen = running.outcome()
        same({p: part["count"] for p, part in seen.parts.items()}, {0: 100, 1: 100, 2: 300, 3: 300})
        same([seen.parts[p]["first"] for p in (2, 3)], [0, 0])

    def tells_of_records_deleted_before_they_were_read(self):
        """C06: committed 1000, log begins at 5000."""
        topic = self.topic(1)
        self.fill(topic, {0: 9000})
        self.read(topic, "expired", "records=1000", "commit=1", "batch=100")
        self.delete_records(topic, 5000)
        seen = self.read(topic, "expired", "start=committed", "committed=1", least=4000)
        stored = seen.committed[0]["offset"]
        assert 1000 <= stored < 1100
        same(seen.lost, [{"lost": 0, "offset": stored, "low": 5000, "high": 9000}])
        same((seen.parts[0]["count"], seen.parts[0]["first"], seen.parts[0]["last"]),
             (4000, 5000, 8999))

    def tells_of_a_log_that_was_made_anew(self):
        topic = self.topic(1)
        self.fill(topic, {0: 500})
        stored = Consumer({"bootstrap.servers": self.broker.bootstrap, "group.id": "anew"})
        stored.commit(offsets=[TopicPartition(topic, 0, 3000)], asynchronous=False)
        stored.close()
        seen = self.read(topic, "anew", "start=committed", least=500)
        same(seen.lost, [{"lost": 0, "offset": 3000, "low": 0, "high": 500}])
        same(seen.total["count"], 500)

    def tells_of_records_deleted_under_a_reader(self):
        topic = self.topic(1)
        self.fill(topic, {0: 60000})
        running = Running(self.command(topic, "under", "batch=100", "pause_us=100000"))
        time.sleep(2)
        self.delete_records(topic, 59000)
        time.sleep(3)
        running.stop()  # fetched ahead: up to 16 MiB are still given; a slow reader shows nothing
        seen = self.read(topic, "under", "start=earliest", least=1000)
        same((seen.parts[0]["first"], seen.parts[0]["count"]), (59000, 1000))

    def rides_out_a_broker_that_is_away(self):
        topic = self.topic(2)
        self.fill(topic, {0: 2000, 1: 2000})
        running = Running(self.command(topic, "away", "records=8000", "commit=1",
                                       "start=committed"))
        time.sleep(3)
        self.broker.stop()
        time.sleep(4)
        self.broker.start()
        self.fill(topic, {0: 2000, 1: 2000})
        seen = running.outcome()
        same([seen.parts[p]["count"] for p in (0, 1)], [4000, 4000])
        assert seen.total["transient"] > 0, "the outage was not told"
        again = self.read(topic, "away", "start=committed")
        same(again.total["count"], 0)

    def refuses_an_unknown_topic_after_a_while(self):
        seen = self.read("nowhere", "none", "grace_ms=2000", ok=False)
        same(seen.code, 1)
        assert "does not exist" in seen.error["error"], seen.error
        same(seen.error["code"], "refused")

    def refuses_what_it_is_not_allowed(self):
        topic = self.topic(1)
        self.fill(topic, {0: 10})
        login = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanisms=PLAIN",
                 "sasl.username=reader", "sasl.password=reader-secret"]
        where = self.broker.sasl_bootstrap
        seen = self.read(topic, "guarded", *login, bootstrap=where, ok=False)
        same((seen.code, seen.error["code"]), (1, "refused"))
        self.allow(ResourceType.TOPIC, topic, AclOperation.DESCRIBE)
        seen = self.read(topic, "guarded", *login, bootstrap=where, ok=False)
        same((seen.code, seen.error["code"]), (1, "refused"))
        self.allow(ResourceType.TOPIC, topic, AclOperation.READ)
        seen = self.read(topic, "guarded", "commit=1", *login, bootstrap=where, least=10,
                         ok=False)
        same((seen.code, seen.error["code"]), (1, "refused"))
        assert "roup" in seen.error["error"], seen.error
        self.allow(ResourceType.GROUP, "guarded", AclOperation.READ)
        seen = self.read(topic, "guarded", "commit=1", *login, bootstrap=where, least=10)
        same(seen.total["count"], 10)

    def stored(self, topic, group, partition):
        """Offset and text as the broker answers, OffsetFetch version 7, once it is stable.
        (confluent-kafka reads the text without its length.)"""
        unstable = 88

        def number(value):
            return bytes([value]) if value < 128 else bytes([value & 127 | 128, value >> 7])

        def text(value):
            return number(len(value) + 1) + value.encode()

        body = (struct.pack(">hhih", 9, 7, 7, -1) + b"\0" + text(group) + number(2) + text(topic) +
                number(2) + struct.pack(">i", partition) + b"\0\1\0")
        while True:
            with socket.create_connection(("127.0.0.1", self.broker.port), 30) as s:
                s.sendall(struct.pack(">i", len(body)) + body)
                stream = s.makefile("rb")
                answer = stream.read(struct.unpack(">i", stream.read(4))[0])
            at = 4 + 1 + 4 + 1 + 1 + len(topic) + 1  # one topic, one partition
            found, offset, _ = struct.unpack_from(">iqi", answer, at)
            size, at = answer[at + 16], at + 17
            if size > 127:
                size, at = size & 127 | answer[at] << 7, at + 1
            metadata = answer[at:at + max(size - 1, 0)].decode()
            fault = struct.unpack_from(">h", answer, at + max(size - 1, 0))[0]
            if fault != unstable:
                same((found, fault), (partition, 0))
                return offset, metadata

    # Later owners fence earlier ones, partition by partition, and what stands beside an offset
    # comes through whole, up to what a broker keeps.
    def owners_fence_each_other(self):
        topic, group = self.topic(4), "owned"
        first, second = Owner(self, topic, group), Owner(self, topic, group)
        same(first.ask("own 0 4")["fenced"], True)
        same(first.ask("commit 0 4 7 4096")["code"], "ok")
        for p in range(4):
            same(self.stored(topic, group, p), (7, f"{p}:7:".ljust(4096, ".")))
        same(second.ask("own 0 2")["fenced"], True)
        same(second.ask("committed 1")["metadata"], "1:7:".ljust(4096, "."))
        same(first.ask("commit 0 1 9 10")["code"], "fenced")
        same(first.ask("commit 2 2 9 10")["code"], "ok")
        same(first.ask("commit 1 3 11 10")["code"], "fenced")  # 2 and 3 may be stored
        same(first.ask("commit 0 1 12 10")["code"], "fenced")  # and stays so
        same(second.ask("commit 0 2 8 0")["code"], "ok")
        same([self.stored(topic, group, p) for p in range(2)], [(8, ""), (8, "")])
        same(self.stored(topic, group, 2)[0], 11)
        same(second.ask("disown 0 2")["code"], "ok")
        third = Owner(self, topic, group)
        same(third.ask("own 0 2")["fenced"], True)
        same(third.ask("commit 0 2 20 10")["code"], "ok")
        same(third.ask("commit 0 1 21 4097")["code"], "refused")
        same(self.stored(topic, group, 0), (20, "0:20:".ljust(10, ".")))
        for owner in (first, second, third):
            owner.close()

    # An owner died in the middle: its transaction, under the id as it is documented, is still open.
    def what_a_dead_owner_left_open_is_void(self):
        topic, group = self.topic(1), "open"
        before = Owner(self, topic, group)
        same(before.ask("own 0 1")["fenced"], True)
        same(before.ask("commit 0 1 3 8")["code"], "ok")
        before.close()
        dead = self.producer(**{"transactional_id": f"{group}/{topic}/0",
                                "transaction_timeout_ms": 600000, "message_timeout_ms": 60000})
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap, "group.id": group})
        dead.init_transactions(120)
        dead.begin_transaction()
        dead.send_offsets_to_transaction([TopicPartition(topic, 0, 99)],
                                         consumer.consumer_group_metadata(), 120)
        consumer.close()
        owner = Owner(self, topic, group)
        seen = owner.ask("committed 0")  # nobody knows yet
        same((seen["code"] == "ok", seen["ms"] > 5000), (False, True))
        taken = owner.ask("own 0 1")
        same((taken["fenced"], taken["ms"] < 60000), (True, True))  # not when it times out
        seen = owner.ask("committed 0")
        same((seen["offset"], seen["metadata"]), (3, "0:3:...."))
        try:
            dead.commit_transaction(10)
            raise AssertionError("the dead owner committed")
        except KafkaException:
            pass
        same(self.stored(topic, group, 0), (3, "0:3:...."))
        owner.close()

    def owners_outlive_a_broker_restart(self):
        topic, group = self.topic(8), "restart"
        owner = Owner(self, topic, group)
        same(owner.ask("own 0 8")["fenced"], True)
        same(owner.ask("commit 0 8 1 100")["code"], "ok")
        self.broker.stop()
        seen = owner.ask("commit 0 8 2 100")
        assert seen["code"] in ("io", "timeout"), seen
        print("    without a broker it gives up after %.1f s" % (seen["ms"] / 1e3))
        self.broker.start()
        for _ in range(10):
            seen = owner.ask("commit 0 8 3 100")
            if seen["code"] == "ok":
                break
            assert seen["code"] in ("io", "timeout"), seen
        same([self.stored(topic, group, p)[0] for p in range(8)], [3] * 8)
        owner.close()

    # Where the rules forbid transactions, commits are plain.
    def owning_may_be_forbidden(self):
        topic, group = self.topic(1), "plain"
        for kind, name, operation in ((ResourceType.TOPIC, topic, AclOperation.READ),
                                      (ResourceType.GROUP, group, AclOperation.READ)):
            self.allow(kind, name, operation)
        owner = Owner(self, topic, group, "security.protocol=SASL_PLAINTEXT",
                      "sasl.mechanisms=PLAIN", "sasl.username=reader",
                      "sasl.password=reader-secret", bootstrap=self.broker.sasl_bootstrap)
        seen = owner.ask("own 0 1")
        same((seen["code"], seen["fenced"]), ("ok", False))
        assert f"{group}/{topic}/" in seen["text"], seen
        same(owner.ask("commit 0 1 5 20")["code"], "ok")
        same(self.stored(topic, group, 0), (5, "0:5:".ljust(20, ".")))
        owner.close()

    def what_owners_cost(self):
        for partitions in (8, 128):
            topic, group = self.topic(partitions), f"cost-{partitions}"
            owner = Owner(self, topic, group)
            before = owner.ask("size")
            same(owner.ask(f"commit 0 {partitions} 1 1000")["code"], "ok")
            plain = owner.ask(f"commit 0 {partitions} 1 1000")
            taken = owner.ask(f"own 0 {partitions}")
            same(taken["fenced"], True)
            times = []
            for i in range(20):
                seen = owner.ask(f"commit 0 {partitions} {i + 2} 1000")
                same(seen["code"], "ok")
                times.append(seen["ms"])
            after = owner.ask("size")
            times.sort()
            print("    %d partitions: plain commit %.0f ms; owned in %.0f ms; commit %.0f ms "
                  "(median of 20, worst %.0f); %d threads and %d KB each" % (
                      partitions, plain["ms"], taken["ms"], times[10], times[-1],
                      (after["threads"] - before["threads"]) // partitions,
                      (after["rss_kb"] - before["rss_kb"]) // partitions))
            owner.close()

    def waits_for_a_wrong_password_to_be_mended(self):
        topic = self.topic(1)
        login = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanisms=PLAIN",
                 "sasl.username=reader", "sasl.password=wrong"]
        running = Running(self.command(topic, "wrong", *login,
                                       bootstrap=self.broker.sasl_bootstrap))
        time.sleep(5)
        services.wait_until(lambda: "uthentication" in running.log(), 60, "a refused password")
        assert running.process.poll() is None, "it gave up"
        running.stop()


class Outcome:
    def __init__(self, output, log, code):
        self.log, self.code = log, code
        lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        self.records = [l for l in lines if "time" in l]
        self.parts = {l["partition"]: l for l in lines if "digest" in l}
        self.lost = [l for l in lines if "low" in l]
        self.committed = [l for l in lines if "committed" in l]
        self.error = next((l for l in lines if "error" in l), {"error": "", "code": ""})
        self.total = next((l for l in lines if "wall_s" in l), None)


class Owner:
    """owner_tool, told line by line."""

    def __init__(self, judge, topic, group, *settings, bootstrap=None):
        tool = judge.tool.replace("kafka-source-tool", "kafka-owner-tool")
        self.process = subprocess.Popen(
            [tool, bootstrap or judge.broker.bootstrap, topic, group, *settings],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        same(self.process.wait(60), 0)


class Running:
    """The tool in the background."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.said = {"stdout": "", "stderr": ""}
        self.threads = [threading.Thread(target=self.collect, args=(name,)) for name in self.said]
        for thread in self.threads:
            thread.start()

    def collect(self, name):
        for line in getattr(self.process, name):
            self.said[name] += line

    def log(self):
        return self.said["stderr"]

    def stop(self):
        self.process.kill()
        self.wait(None)

    def wait(self, seconds):
        self.process.wait(seconds)
        for thread in self.threads:
            thread.join()

    def outcome(self):
        try:
            self.wait(300)
        except subprocess.TimeoutExpired:
            self.stop()
            raise AssertionError("the tool did not end: " + self.log()[-1500:])
        if self.process.returncode:
            raise AssertionError(f"exit {self.process.returncode}: {self.log()[-1500:]}")
        return Outcome(self.said["stdout"], self.log(), 0)


def same(got, want):
    if got != want:
        raise AssertionError(f"{str(got)[:1000]}, not {str(want)[:1000]}")


TESTS = [name for name, value in vars(Judge).items()
         if callable(value) and name not in ("__init__", "topic", "wait_partitions", "delete_records",
                                             "allow", "producer", "fill", "command", "read",
                                             "stored")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--kafka-lib", default=os.environ.get("KAFKA_LIB"))
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    if not options.kafka_lib or not glob.glob(os.path.join(options.kafka_lib, "kafka_*.jar")):
        parser.error("KAFKA_LIB or --kafka-lib must name the folder of Kafka's jars")
    chosen = [t for t in TESTS if not options.tests or any(part in t for part in options.tests)]
    passed = failed = 0
    broker = Broker(options.kafka_lib)
    try:
        broker.start()
        judge = Judge(broker, os.path.abspath(options.tool))
        for name in chosen:
            began = time.time()
            try:
                getattr(judge, name)()
                passed += 1
                print(f"ok {name} ({time.time() - began:.1f} s)", flush=True)
            except Exception:
                failed += 1
                traceback.print_exc(file=sys.stdout)
                print(f"FAILED {name}", flush=True)
    finally:
        broker.close()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
