"""The test services themselves: each starts, does its work, fails on demand and is gone afterwards."""
import os
import shutil
import socket
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import services


def refused(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def kafka_takes_and_gives_records():
    with services.kafka_broker() as kafka:
        kafka.create_topic("events", partitions=3)
        counts = services.produce(kafka.bootstrap, "events", [b"%d" % i for i in range(1000)])
        check(counts == {0: 334, 1: 333, 2: 333}, counts)
        check(kafka.watermarks("events", 0) == (0, 334), kafka.watermarks("events", 0))
        services.produce(kafka.bootstrap, "events", [("k", None), ("k", b"")], partition=1)
        check(kafka.watermarks("events", 1) == (0, 335), kafka.watermarks("events", 1))
        check(kafka.committed("g", "events", 0)[0] is None, "a group that never was")
        kafka.commit("g", {0: 17}, "events")
        check(kafka.committed("g", "events", 0)[0] == 17, kafka.committed("g", "events", 0))
        kafka.delete_group("g")
        check(kafka.committed("g", "events", 0)[0] is None, "the group was deleted")
        kafka.delete_records("events", {0: 100})
        check(kafka.watermarks("events", 0) == (100, 334), kafka.watermarks("events", 0))
        kafka.stop()
        kafka.start()
        services.wait_until(lambda: kafka.watermarks("events", 2) == (0, 333), 60, "records outlive a restart")
        port = kafka.port
    check(refused(port), "the broker is still there")


def kafka_behind_a_proxy_can_be_cut_off():
    from confluent_kafka import KafkaException
    with services.toxiproxy() as toxi:
        port = services.free_port()
        with services.kafka_broker(proxied_port=port) as kafka:
            proxy = toxi.proxy("kafka", "127.0.0.1:%d" % kafka.proxied_listener, port)
            kafka.create_topic("events", partitions=1)
            services.produce(proxy.address, "events", [b"1", b"2"])
            check(kafka.watermarks("events", 0) == (0, 2), "through the proxy")
            proxy.down()
            try:
                services.produce(proxy.address, "events", [b"3"], partitions=1, seconds=3)
                check(False, "went through a cut proxy")
            except (RuntimeError, KafkaException):
                pass
            proxy.heal()


def postgres_answers_and_survives_a_crash():
    with services.postgres() as db:
        db.create_database("lake")
        db.query("lake", "CREATE TABLE t (a int)")
        db.query("lake", "INSERT INTO t VALUES (%s)", 7)
        db.kill()
        check(refused(db.port), "killed, and still there")
        db.start()
        check(db.query("lake", "SELECT a FROM t") == [(7,)], "the row is gone")


def s3_keeps_objects():
    with services.versitygw() as s3:
        s3.create_bucket("lake")
        s3.client().put_object(Bucket="lake", Key="a/b.txt", Body=b"hello")
        check(s3.keys("lake") == {"a/b.txt": 5}, s3.keys("lake"))
        check(s3.keys("lake", "x/") == {}, "prefix")


def proxy_delays_and_cuts():
    with services.toxiproxy() as toxi, services.postgres() as db:
        import psycopg2
        proxy = toxi.proxy("db", "127.0.0.1:%d" % db.port)
        connect = lambda: psycopg2.connect(db.conninfo("postgres", proxy.port), connect_timeout=60)
        connect().close()
        proxy.toxic("latency", latency=300)
        began = time.monotonic()
        connect().close()
        check(time.monotonic() - began >= 0.3, "no delay")
        proxy.heal()
        proxy.down()
        try:
            connect()
            check(False, "connected to a proxy that is down")
        except psycopg2.OperationalError:
            pass
        proxy.up()
        connect().close()


def duckdb_reads_and_writes_lakes_offline():
    folder = tempfile.mkdtemp()
    try:
        lake = services.duckdb_lake("sqlite:%s/lake.sqlite" % folder, folder + "/data/")
        lake.execute("CREATE TABLE lake.t AS SELECT range AS a FROM range(100)")
        lake.close()
        lake = services.duckdb_lake("sqlite:%s/lake.sqlite" % folder, folder + "/data/")
        check(lake.execute("SELECT sum(a) FROM lake.t").fetchone() == (4950,), "sqlite")
        lake.close()
        with services.postgres() as db, services.versitygw() as s3:
            db.create_database("lake")
            s3.create_bucket("lake")
            catalog = "postgres:" + db.conninfo("lake")
            lake = services.duckdb_lake(catalog, "s3://lake/data/", s3)
            lake.execute("CREATE TABLE lake.t AS SELECT range AS a FROM range(100)")
            lake.execute("INSERT INTO lake.t SELECT range FROM range(100)")
            lake.close()
            check(len(s3.keys("lake", "data/")) == 2, s3.keys("lake"))
            lake = services.duckdb_lake(catalog, "s3://lake/data/", s3, READ_ONLY=True,
                                        SNAPSHOT_VERSION=1)
            check(lake.execute("SELECT count(*), sum(a) FROM lake.t").fetchone() == (100, 4950),
                  "postgres, s3, an earlier snapshot")
            lake.close()
    finally:
        shutil.rmtree(folder)


def metrics_pages_are_understood():
    page = ('# HELP a b\n# TYPE a counter\na{x="1",y="q\\"u"} 2.0\na{x="2",y="z"} 3\nb 1e+06\n'
            'c_bucket{le="+Inf"} 4\n')
    check(services.parse_metrics(page) == [("a", {"x": "1", "y": 'q"u'}, 2.0),
                                           ("a", {"x": "2", "y": "z"}, 3.0), ("b", {}, 1e6),
                                           ("c_bucket", {"le": "+Inf"}, 4.0)],
          services.parse_metrics(page))


def waiting_has_an_end():
    began = time.monotonic()
    try:
        services.wait_until(lambda: False, 0.2)
        check(False, "waited for ever")
    except TimeoutError:
        check(time.monotonic() - began < 20, "waited too long")


TESTS = [metrics_pages_are_understood, waiting_has_an_end, postgres_answers_and_survives_a_crash,
         s3_keeps_objects, proxy_delays_and_cuts, duckdb_reads_and_writes_lakes_offline,
         kafka_takes_and_gives_records, kafka_behind_a_proxy_can_be_cut_off]


def main():
    passed = failed = 0
    for test in TESTS:
        began = time.monotonic()
        try:
            test()
            passed += 1
            print("%-45s %.1f s" % (test.__name__, time.monotonic() - began), flush=True)
        except Exception:
            failed += 1
            print("FAILED %s\n%s" % (test.__name__, traceback.format_exc()), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
