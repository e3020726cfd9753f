#!/usr/bin/env python3
"""build/hoglaked's start: its settings against the contract's table, where its database may be, and what it says
and does when it cannot start.

Every case is a function test_*(db). Arguments choose cases by a part of their name.
"""
import contextlib
import json
import os
import re
import subprocess
import sys

import psycopg2

import hoglaked
import services

# The contract's table: name -> default, and the words for "not set".
DEFAULTS = {
    "HOGLAKE_PORT": "8080", "HOGLAKE_INSTANCE_NAME": "", "HOGLAKE_UI_THEME": "",
    "HOGLAKE_JDBC_URL": "jdbc:postgresql://localhost:5432/hoglake", "HOGLAKE_DB_USER": "hoglake",
    "HOGLAKE_DB_PASSWORD": "(hidden)", "HOGLAKE_DB_POOL_SIZE": "10", "HOGLAKE_HEALTH_PROBE_TIMEOUT_MS": "2000",
    "HOGLAKE_COMMIT_LOCK_TIMEOUT_MS": "30000", "HOGLAKE_REFUSE_BLIND_PARTITIONED_APPENDS": "false",
    "HOGLAKE_S3_ENDPOINT": "", "HOGLAKE_S3_REGION": "us-east-1", "HOGLAKE_S3_ACCESS_KEY": "",
    "HOGLAKE_S3_SECRET_KEY": "", "HOGLAKE_S3_PATH_STYLE": "true", "HOGLAKE_HYDRATOR_INTERVAL_MS": "900000",
    "HOGLAKE_HYDRATOR_MAX_WHOLE_OBJECT_BYTES": "268435456", "HOGLAKE_HYDRATOR_MIN_FILE_BYTES": "1048576",
    "HOGLAKE_EXPIRY_INTERVAL_MS": "3600000", "HOGLAKE_EXPIRY_BATCH": "10000", "HOGLAKE_EXPIRY_PURGE_PAGE": "1000",
    "HOGLAKE_EXPIRY_PURGE_BUDGET_MS": "10000", "HOGLAKE_CLEANUP_INTERVAL_MS": "1800000",
    "HOGLAKE_CLEANUP_BATCH": "2000", "HOGLAKE_CLEANUP_CLAIM_LEASE_SECONDS": "900",
    "HOGLAKE_REMOVAL_LEDGER_RETENTION_SECONDS": "2592000", "HOGLAKE_MAINTENANCE_LEDGER_RETENTION_SECONDS": "604800",
    "HOGLAKE_RECEIPT_RETENTION_SECONDS": "604800", "HOGLAKE_RETIREMENT_INTERVAL_MS": "0",
    "HOGLAKE_RETIREMENT_BATCH": "8000", "HOGLAKE_RETIREMENT_PAUSE_MS": "750",
    "HOGLAKE_RETIREMENT_RUN_BUDGET_MS": "60000", "HOGLAKE_RETIREMENT_QUEUE_CEILING": "500000",
    "HOGLAKE_COMPACTION_INTERVAL_MS": "0", "HOGLAKE_COMPACTION_TARGET_BYTES": "536870912",
    "HOGLAKE_COMPACTION_MIN_INPUT_FILES": "5", "HOGLAKE_COMPACTION_MAX_INPUT_FILES": "64",
    "HOGLAKE_COMPACTION_MAX_GROUPS_PER_RUN": "1", "HOGLAKE_COMPACTION_CLAIM_TTL_SECONDS": "3600",
    "HOGLAKE_COMPACTION_CODEC": "zstd", "HOGLAKE_COMPACTION_ZSTD_LEVEL": "3",
    "HOGLAKE_COMPACTION_SORTED_HEAP_BYTES": "1073741824",
    "HOGLAKE_METRICS_INTERVAL_MS": "15000"}
WITHOUT_EFFECT = {
    "HOGLAKE_NETTY_CALL_GROUP_SIZE", "HOGLAKE_CLEANUP_SUB_BATCH",
    "HOGLAKE_CLEANUP_WORKERS", "HOGLAKE_CLEANUP_STAGING_GRACE_SECONDS", "HOGLAKE_COMPACTION_MAX_FAN_IN",
    "HOGLAKE_COMPACTION_PARALLEL_GROUPS", "HOGLAKE_COMPACTION_PARALLEL_INPUT_OPENS",
    "HOGLAKE_COMPACTION_CLAIMS_ENABLED", "HOGLAKE_COMPACTION_COMMITTED_CLAIM_TTL_SECONDS",
    "HOGLAKE_COMPACTION_NESTED_SORT_EXPANSION", "HOGLAKE_COMPACTION_MAX_NODES_PER_ROW",
    "HOGLAKE_COMPACTION_CANDIDATE_HEADROOM", "HOGLAKE_COMPACTION_MAX_CANDIDATES",
    "HOGLAKE_MAINTENANCE_SUMMARY_INTERVAL_MS", "HOGLAKE_MAINTENANCE_SUMMARY_BATCH",
    "HOGLAKE_MAINTENANCE_SUMMARY_REFRESH_SECONDS", "HOGLAKE_REINDEX_INTERVAL_MS"}
# What the contract allows and refuses, setting by setting.
TAKEN = [("HOGLAKE_RECEIPT_RETENTION_SECONDS", v) for v in ("0", "-1", "-5", "3600")] + \
        [("HOGLAKE_COMPACTION_CODEC", v) for v in ("ZSTD", "Snappy", "gzip", "lz4_raw", "UNCOMPRESSED")] + \
        [("HOGLAKE_COMPACTION_ZSTD_LEVEL", v) for v in ("1", "22")] + \
        [("HOGLAKE_EXPIRY_PURGE_PAGE", v) for v in ("1", "50000")] + \
        [("HOGLAKE_HEALTH_PROBE_TIMEOUT_MS", "250"), ("HOGLAKE_COMMIT_LOCK_TIMEOUT_MS", "0"),
         ("HOGLAKE_VERIFY_INTERVAL_MS", "0"), ("HOGLAKE_COMPACTION_TIER_TARGET", "")]
REFUSED = [("HOGLAKE_RECEIPT_RETENTION_SECONDS", v) for v in ("1", "3599", "x")] + \
          [("HOGLAKE_COMPACTION_CODEC", v) for v in ("brotli", "none")] + \
          [("HOGLAKE_COMPACTION_ZSTD_LEVEL", v) for v in ("0", "23")] + \
          [("HOGLAKE_EXPIRY_PURGE_PAGE", v) for v in ("0", "50001")] + \
          [("HOGLAKE_REFUSE_BLIND_PARTITIONED_APPENDS", v) for v in ("TRUE", "1", "yes", " true")] + \
          [("HOGLAKE_PORT", v) for v in ("-1", "65536", "80a", "99999999999999999999")] + \
          [("HOGLAKE_HEALTH_PROBE_TIMEOUT_MS", "249"), ("HOGLAKE_COMMIT_LOCK_TIMEOUT_MS", "-1"),
           ("HOGLAKE_VERIFY_INTERVAL_MS", "1"), ("HOGLAKE_COMPACTION_TIER_TARGET", "x"),
           ("HOGLAKE_EXPIRY_INTERVAL_MS", "-1"), ("HOGLAKE_DB_POOL_SIZE", "0"), ("HOGLAKE_LOG_LEVEL", "LOUD"),
           ("HOGLAKE_S3_PATH_STYLE", "1")]


def settings(**env):
    return subprocess.run([hoglaked.HOGLAKED, "--settings"], env=env, capture_output=True, text=True, timeout=120)


def url(db, database, more=""):
    return "jdbc:postgresql://127.0.0.1:%d/%s%s" % (db.port, database, more)


def begun(jdbc_url, **env):
    """The program as a process whose output is read."""
    made = dict({"HOGLAKE_PORT": "0", "HOGLAKE_ADDRESS": "127.0.0.1", "HOGLAKE_DB_USER": "millpond",
                 "HOGLAKE_JDBC_URL": jdbc_url}, **env)
    made.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
    return subprocess.Popen([hoglaked.HOGLAKED], env=made, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def line_with(process, text):
    """The first line of its output that holds the text."""
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError("no line with %r; exit code %r" % (text, process.wait()))


def ended(process):
    """Gives (exit code, output) of one that ends by itself, or at SIGTERM."""
    try:
        output, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    return process.returncode, output


@contextlib.contextmanager
def runs(jdbc_url, **env):
    process = begun(jdbc_url, **env)
    try:
        line_with(process, "listens on port")
        yield process
        process.terminate()
        assert ended(process)[0] == 0
    finally:
        process.kill()


def test_the_table_of_the_contract(_):
    printed = dict(re.fullmatch(r"(\w+)=(.*?)  # .*", line).groups() for line in settings().stdout.splitlines())
    assert {name: printed.get(name) for name in DEFAULTS} == DEFAULTS, set(DEFAULTS.items()) - set(printed.items())
    with open(os.path.join(services.TOP, "docs/hoglaked.md")) as docs:
        text = docs.read()
    [listed] = re.findall(r"of the original that have no effect here: (.*?)\. ", text, re.S)
    assert set(re.findall(r"HOGLAKE_\w+", listed)) == WITHOUT_EFFECT
    assert not WITHOUT_EFFECT & set(printed)


def test_values_are_taken_or_refused_by_name(_):
    for name, value in TAKEN:
        done = settings(**{name: value})
        assert done.returncode == 0, (name, value, done.stderr)
    for name, value in REFUSED:
        done = settings(**{name: value})
        assert done.returncode == 2 and not done.stdout, (name, value, done)
        assert name in done.stderr and len(done.stderr.splitlines()) == 1, (name, value, done.stderr)
        if name != "HOGLAKE_COMPACTION_TIER_TARGET":
            assert value.strip() in done.stderr, (name, value, done.stderr)


def test_mistyped_names_are_pointed_out(db):
    slips = {"HOGLAKE_DB_POOLSIZE": "HOGLAKE_DB_POOL_SIZE", "HOGLAKE_LOGLEVEL": "HOGLAKE_LOG_LEVEL",
             "HOGLAKE_BAERER_TOKEN": "HOGLAKE_BEARER_TOKEN", "HOGLAKE_COMPACTION_CODECS": "HOGLAKE_COMPACTION_CODEC"}
    others = dict.fromkeys(WITHOUT_EFFECT, "1") | {
        "HOGLAKE_SERVICE_HOST": "10.0.0.1", "HOGLAKE_SERVICE_PORT": "80", "HOGLAKE_PORT_8080_TCP": "tcp://10.0.0.1:8080",
        "HOGLAKE_URL": "http://x", "HOGLAKE_CATALOG": "c", "HOGLAKE_MAX_RETRY_COUNT": "1", "HOGLAKE_PORT": "0",
        "HOGLAKE_VERIFY_INTERVAL_MS": "0", "HOGLAKE_METRICS_INTERVAL_MS": "0", "LOG_LEVEL": "x", "HOGLAKE": "x"}
    done = settings(**dict.fromkeys(slips, "s3cret"), **others)
    assert done.returncode == 0 and dict(re.findall(
        r"^hoglaked: (\w+) has no effect: did you mean (\w+)\?$", done.stderr, re.M)) == slips, done.stderr
    assert len(done.stderr.splitlines()) == len(slips) and "s3cret" not in done.stderr
    assert not settings(**others).stderr
    db.create_database("slips")
    process = begun(url(db, "slips"), HOGLAKE_LOG_LEVLE="DEBUG")
    line = json.loads(line_with(process, "has no effect"))
    assert (line["level"], line["msg"]) == ("WARNING", "HOGLAKE_LOG_LEVLE has no effect: did you mean HOGLAKE_LOG_LEVEL?")
    line_with(process, "listens on port")
    process.terminate()
    assert ended(process)[0] == 0


def test_passwords_are_never_printed(db):
    for env in ({"HOGLAKE_DB_PASSWORD": "hush"}, {"HOGLAKE_S3_SECRET_KEY": "hush"}, {"HOGLAKE_BEARER_TOKEN": "hush"},
                {"HOGLAKE_JDBC_URL": "postgresql://u:hush@h/db"},
                {"HOGLAKE_JDBC_URL": "jdbc:postgresql://h/db?password=hush"},
                {"HOGLAKE_JDBC_URL": "postgresql://u:hush%zz@h/db"}, {"HOGLAKE_JDBC_URL": "postgresql://u:hush/x@h/db"}):
        done = settings(**env)
        assert "hush" not in done.stdout + done.stderr, (env, done)
    db.query("postgres", "CREATE ROLE keyed LOGIN SUPERUSER PASSWORD 'p@ss:w/rd%zz?&+ ='")
    db.create_database("keyed")
    with open(os.path.join(db.data, "pg_hba.conf"), "r+") as hba:
        before = hba.read()
        hba.seek(0)
        hba.write("host all keyed 127.0.0.1/32 scram-sha-256\n" + before)
    db.query("postgres", "SELECT pg_reload_conf()")

    def refused():
        try:
            psycopg2.connect(db.conninfo("keyed") + " user=keyed", connect_timeout=60).close()
        except psycopg2.OperationalError:
            return True
    services.wait_until(refused, 60, "a password is asked for")
    coded = "p%40ss%3Aw%2Frd%25zz%3F%26%2B%20%3D"
    for jdbc_url, env in ((url(db, "keyed"), {"HOGLAKE_DB_USER": "keyed", "HOGLAKE_DB_PASSWORD": "p@ss:w/rd%zz?&+ ="}),
                          (url(db, "keyed", "?user=keyed&password=" + coded), {}),
                          (url(db, "keyed", "?user=keyed"), {"HOGLAKE_DB_PASSWORD": "p@ss:w/rd%zz?&+ ="}),
                          ("postgresql://keyed:%s@127.0.0.1:%d/keyed" % (coded, db.port), {})):
        with runs(jdbc_url, **env):
            pass
    code, output = ended(begun(url(db, "keyed", "?user=keyed&password=hush")))
    assert code == 2 and "HOGLAKE_JDBC_URL" in output and "hush" not in output, (code, output)


def test_urls_of_the_driver(db):
    db.create_database("urls")
    db.query("urls", "CREATE SCHEMA other")
    with runs(url(db, "urls", "?currentSchema=other&ssl=false&ApplicationName=lake&tcpKeepAlive=true&loginTimeout=5")):
        names = db.query("urls", "SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = 'urls'"
                                 " AND application_name NOT LIKE '%%probe%%' AND application_name <> ''")
        assert ("lake",) in names, names
    tables = db.query("urls", "SELECT schemaname, count(*) FROM pg_tables WHERE tablename LIKE 'hog\\_%' GROUP BY 1")
    assert [t[0] for t in tables] == ["other"], tables
    two = "jdbc:postgresql://127.0.0.1:%d,127.0.0.1:%d/urls?targetServerType=primary&currentSchema=other"
    with runs(two % (services.free_port(), db.port)):
        pass


def test_wrong_databases_end_the_start(db):
    db.create_database("foreign")
    db.query("foreign", "CREATE TABLE hog_catalog (catalog_id bigint)")
    db.create_database("newer")
    with runs(url(db, "newer")):
        pass
    db.query("newer", "INSERT INTO hog_migration VALUES (99, 0)")
    for jdbc_url, env, words in (
            (url(db, "nowhere"), {}, ("HOGLAKE_JDBC_URL", "nowhere")),
            (url(db, "foreign"), {"HOGLAKE_DB_USER": "nobody"}, ("HOGLAKE_JDBC_URL", "nobody")),
            (url(db, "foreign"), {}, ("hog_catalog", "exists")),
            (url(db, "newer"), {}, ("99", "2")),
            (url(db, "newer", "?target_session_attrs=soon"), {}, ("HOGLAKE_JDBC_URL", "soon")),
            (url(db, "newer", "?bogus=1"), {}, ("HOGLAKE_JDBC_URL", "bogus"))):
        code, output = ended(begun(jdbc_url, **env))
        assert code == 2 and all(word in output for word in words), (jdbc_url, env, code, output)
    assert db.query("foreign", "SELECT count(*) FROM hog_catalog") == [(0,)]
    code, output = ended(begun(url(db, "urls2"), HOGLAKE_ADDRESS="300.1.1.1", HOGLAKE_TLS_CERT_FILE="/no"))
    assert code == 2 and "HOGLAKE_TLS" in output, output


def test_the_address_is_named(db):
    db.create_database("address")
    code, output = ended(begun(url(db, "address"), HOGLAKE_ADDRESS="300.1.1.1"))
    assert code == 2 and "HOGLAKE_ADDRESS" in output and "300.1.1.1" in output, (code, output)


def test_many_start_at_once_on_an_empty_database(db):
    db.create_database("many")
    processes = [begun(url(db, "many")) for _ in range(8)]
    try:
        for process in processes:
            line_with(process, "listens on port")
        for process in processes:
            process.terminate()
        assert [ended(process)[0] for process in processes] == [0] * 8
    finally:
        for process in processes:
            process.kill()
    applied = db.query("many", "SELECT number FROM hog_migration ORDER BY number")
    assert applied == [(1,), (2,)], applied


def test_the_second_migration_on_a_database_with_data(db):
    """A database as the first migration left it, in use, is brought up to date and keeps what it holds."""
    db.create_database("old")
    with open(os.path.join(services.TOP, "src/server/migrations/001_catalog.sql")) as script:
        db.query("old", script.read())
    db.query("old", "CREATE TABLE hog_migration (number bigint PRIMARY KEY, applied_us bigint NOT NULL)")
    db.query("old", "INSERT INTO hog_migration VALUES (1, 0)")
    db.query("old", "INSERT INTO hog_catalog (name, data_path, last_snapshot_time_us, last_snapshot_id)"
                    " VALUES ('kept', 's3://b/kept/', 1, 7)")
    db.query("old", "INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason, scheduled_us)"
                    " SELECT 1, 's3://b/kept/' || i, 'data', 'snapshot_expiry', 0 FROM generate_series(1, 1000) i")
    with hoglaked.started(url(db, "old")) as server:
        status, answer, _ = hoglaked.request(server.url + "/v1/catalogs/kept")
        assert (status, answer["head_snapshot_id"]) == (200, 7), answer
        status, answer, _ = hoglaked.request(server.url + "/v1/catalogs/kept/maintenance/status")
        assert json.dumps(answer).count('"queued_removals": 1000') == 1, answer
    assert db.query("old", "SELECT max(number) FROM hog_migration") == [(2,)]


def main():
    cases = [(name, value) for name, value in globals().items() if name.startswith("test_")]
    cases = [c for c in cases if not sys.argv[1:] or any(a in c[0] for a in sys.argv[1:])]
    with services.postgres() as db:
        passed, failed = hoglaked.run_cases(cases, lambda: db)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
