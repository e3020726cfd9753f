"""What ends the process for good, and with which exit code: the ends that no other file shows. (0, 2, 3
and 5 are in test_operations.py.)"""
import os
import re
import subprocess

import pytest

import lakes
import services

WRITTEN = "millpond_records_written_total"


@pytest.fixture(scope="module")
def guarded():
    """A broker that keeps lists of who may do what; what no list speaks of is allowed."""
    with services.kafka_broker(more={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true", "super.users": "User:admin"}) as service:
        yield service


def deny(broker, kind, name, operation):
    from confluent_kafka.admin import (AclBinding, AclOperation, AclPermissionType,
                                       ResourcePatternType, ResourceType)
    binding = AclBinding(getattr(ResourceType, kind), name, ResourcePatternType.LITERAL,
                         "User:ANONYMOUS", "*", getattr(AclOperation, operation),
                         AclPermissionType.DENY)
    for future in broker.admin().create_acls([binding]).values():
        future.result(120)


def ends_with(process, code, *texts):
    try:
        assert process.wait_exit(60) == code, process.log_end()
        fatal = process.logged("Fatal error in main loop")
        assert len(fatal) == 1, process.log_end()
        for text in texts:
            assert text in fatal[0]["msg"], fatal[0]["msg"]
    finally:
        process.kill()


def test_a_topic_that_may_not_be_read_ends_with_4(guarded, local_lake, tmp_path):
    topic = lakes.unique("secret")
    guarded.create_topic(topic)
    services.produce(guarded.bootstrap, topic, ['{"n":1}'])
    deny(guarded, "TOPIC", topic, "READ")
    env = services.environment(guarded, topic, **local_lake.env())
    ends_with(services.start_millpond(env, str(tmp_path)), 4, topic, "uthoriz")
    assert local_lake.rows() == 0


def test_a_group_that_may_not_be_used_ends_with_4(guarded, local_lake, tmp_path):
    topic = lakes.unique("grouped")
    guarded.create_topic(topic)
    deny(guarded, "GROUP", "millpond-%s-events" % topic, "ALL")
    env = services.environment(guarded, topic, **local_lake.env())
    ends_with(services.start_millpond(env, str(tmp_path)), 4, "millpond-%s-events" % topic, "uthoriz")
    code, out, err = services.millpond_once(env, "check")
    assert code == 4 and re.search("FAULT +kafka .*uthoriz.*look at GROUP_ID", out), out + err


def test_a_topic_that_does_not_come_ends_with_4(kafka, local_lake, tmp_path):
    """After the half minute that it has to be made."""
    topic = lakes.unique("never")
    env = services.environment(kafka, topic, **local_lake.env())
    ends_with(services.start_millpond(env, str(tmp_path)), 4, topic, "does not exist")


def test_a_topic_that_comes_late_is_read(kafka, local_lake):
    topic = lakes.unique("late")
    env = services.environment(kafka, topic, **local_lake.env())
    with services.run_millpond(env, ready=False) as millpond:
        services.wait_until(lambda: topic in millpond.get("/readyz")[1], 120, "it is missed")
        kafka.create_topic(topic)
        services.produce(kafka.bootstrap, topic, ['{"n":1}'])
        millpond.wait_metric(WRITTEN, 1)


def test_a_topic_made_anew_ends_with_4_and_goes_on_when_started_again(kafka, local_lake, tmp_path):
    """Its log is shorter than what was read: nobody but an operator knows what that means."""
    topic = lakes.unique("anew")
    kafka.create_topic(topic)
    services.produce(kafka.bootstrap, topic, ['{"n":%d}' % n for n in range(1000)])
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=200, **local_lake.env())
    process = services.start_millpond(env, str(tmp_path))
    try:
        process.wait_metric(WRITTEN, 1000)
        for future in kafka.admin().delete_topics([topic]).values():
            future.result(120)
        services.wait_until(lambda: topic not in kafka.admin().list_topics(timeout=60).topics, 120,
                            "the topic is gone")
        kafka.create_topic(topic)
        services.produce(kafka.bootstrap, topic, ['{"n":%d}' % n for n in range(1000, 1010)])
        ends_with(process, 4, topic, "made anew", "1000")
    finally:
        process.kill()
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 10)
    assert local_lake.query("SELECT count(*), count(DISTINCT n), max(n) FROM lake.events") == \
        [(1010, 1010, 1009)]


def test_a_log_that_was_cut_is_not_read_again(kafka, local_lake, tmp_path):
    """No broker loses the end of a log on demand: a shorter log of the same name, and the group's offset,
    which Kafka drops with a topic and an election does not."""
    from confluent_kafka import Consumer, TopicPartition
    topic = lakes.unique("cut")
    kafka.create_topic(topic)
    services.produce(kafka.bootstrap, topic, ['{"n":%d}' % n for n in range(1000)])
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=200, **local_lake.env())
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 1000)
    for future in kafka.admin().delete_topics([topic]).values():
        future.result(120)
    services.wait_until(lambda: topic not in kafka.admin().list_topics(timeout=60).topics, 120, "it is gone")
    kafka.create_topic(topic)
    services.produce(kafka.bootstrap, topic, ['{"n":%d}' % n for n in range(900)])
    group = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "millpond-%s-events" % topic})
    group.commit(offsets=[TopicPartition(topic, 0, 1000)], asynchronous=False)
    group.close()
    ends_with(services.start_millpond(env, str(tmp_path)), 4, topic, "900", "1000",
              "KAFKA_AUTO_OFFSET_RESET=latest")
    assert local_lake.rows() == 1000
    with services.run_millpond(dict(env, KAFKA_AUTO_OFFSET_RESET="latest")) as millpond:
        services.produce(kafka.bootstrap, topic, ['{"n":1000}'])
        millpond.wait_metric(WRITTEN, 1)
    with services.run_millpond(env) as millpond:
        services.produce(kafka.bootstrap, topic, ['{"n":1001}'])
        millpond.wait_metric(WRITTEN, 1)
    assert local_lake.query("SELECT count(*), count(DISTINCT n), max(n) FROM lake.events") == \
        [(1002, 1002, 1001)]


def test_a_view_in_the_place_of_the_table_ends_with_4(kafka, local_lake, tmp_path):
    """At the next start it is a setting that is wrong: 2."""
    topic = lakes.unique("viewed")
    kafka.create_topic(topic)
    services.produce(kafka.bootstrap, topic, ['{"n":1}'])
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=200, **local_lake.env())
    process = services.start_millpond(env, str(tmp_path))
    try:
        process.wait_metric(WRITTEN, 1)
        local_lake.execute("ALTER TABLE lake.events RENAME TO old",
                           "CREATE VIEW lake.events AS SELECT * FROM lake.old")
        services.produce(kafka.bootstrap, topic, ['{"n":2}'])
        ends_with(process, 4, "events", "is a view")
    finally:
        process.kill()
    os.mkdir(tmp_path / "again")
    process = services.start_millpond(env, str(tmp_path / "again"))
    try:
        ends_with(process, 2, "events", "is a view")
    finally:
        process.kill()


def test_a_quarantine_table_that_somebody_makes_otherwise_ends_with_4(kafka, local_lake, tmp_path):
    """It is not there at the start, and is of no use when it is needed."""
    topic = lakes.unique("unquar")
    kafka.create_topic(topic)
    services.produce(kafka.bootstrap, topic, ['{"n":1}'])
    env = services.environment(kafka, topic, MILLPOND_QUARANTINE_TABLE="bad", **local_lake.env())
    process = services.start_millpond(env, str(tmp_path))
    try:
        process.wait_metric(WRITTEN, 1)
        local_lake.execute('CREATE TABLE lake.bad(topic VARCHAR, "offset" VARCHAR)')
        services.produce(kafka.bootstrap, topic, ['{"n":2}', "no JSON", '{"n":3}'])
        ends_with(process, 4, "MILLPOND_QUARANTINE_TABLE", '"offset" is there as varchar', "int64")
    finally:
        process.kill()
    assert local_lake.rows() == 1
    local_lake.execute("DROP TABLE lake.bad")
    with services.run_millpond(env) as millpond:
        millpond.wait_metric(WRITTEN, 2)
    assert local_lake.query("SELECT n FROM lake.events ORDER BY n") == [(1,), (2,), (3,)]
    assert local_lake.rows("bad") == 1


def test_no_memory_ends_with_71(local_lake, tmp_path):
    path = tmp_path / "large.ndjson"
    with open(path, "wb") as out:
        out.write(b'{"a":"' + b"x" * (200 << 20) + b'"}\n')
    env = dict(local_lake.env(), DUCKLAKE_TABLE="events", PATH=os.environ["PATH"])
    done = subprocess.run(["sh", "-c", 'ulimit -v 400000; exec "$0" load "$1"', services.MILLPOND,
                           str(path)], env=env, capture_output=True, timeout=120)
    assert done.returncode == 71, (done.returncode, done.stdout, done.stderr)
    assert local_lake.rows() == 0
