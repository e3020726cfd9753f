#!/usr/bin/env python3
"""build/hoglaked's /metrics: the names that dashboards of the original ask for, and whether the numbers are true,
reckoned from what the case did.

Every case is a function test_*(server). Arguments choose cases by a part of their name.
"""
import concurrent.futures
import contextlib
import os
import re
import signal
import sys
import time

import hoglaked
import judge_lifetimes
import judge_rest
import services
from judge_rest import append, call, file, lake, ok

# The contract's list: names and their labels.
NAMES = {
    "hoglake_commits_total": "catalog,result", "hoglake_commit_lock_wait_seconds": "",
    "hoglake_request_queue_wait_seconds": "", "hoglake_requests_shed_total": "",
    "hoglake_request_queue_abandoned_total": "", "hoglake_request_pool_active": "", "hoglake_request_pool_queued": "",
    "hoglake_request_pool_max": "", "hoglake_db_pool_active": "", "hoglake_db_pool_idle": "",
    "hoglake_db_pool_pending": "", "hoglake_db_pool_max": "", "hoglake_health_probe_attempts_hung": "",
    "hoglake_blind_partitioned_appends_total": "catalog,namespace,table", "hoglake_stats_repaired_total": "source",
    "hoglake_stats_hydrated_total": "result", "hoglake_hydrator_transient_errors_total": "",
    "hoglake_hydrator_claim_timeouts_total": "", "hoglake_snapshots_expired_total": "",
    "hoglake_expiry_purge_rows_total": "", "hoglake_expiry_purge_failures_total": "",
    "hoglake_expiry_purge_truncated_total": "", "hoglake_expiry_advance_failures_total": "",
    "hoglake_expiry_halvings_total": "phase", "hoglake_expiry_purge_remaining": "", "hoglake_files_removed_total": "",
    "hoglake_rows_retired_total": "", "hoglake_retirement_batches_total": "", "hoglake_retirement_timeouts_total": "",
    "hoglake_retirement_convoyed_total": "", "hoglake_retirement_consecutive_timeouts": "catalog,table",
    "hoglake_commit_receipt_unknown_digest_version_total": "", "hoglake_commit_receipt_purge_failures_total": "",
    "hoglake_table_creation_total": "catalog,action,outcome", "hoglake_compaction_groups_total": "",
    "hoglake_compaction_files_rewritten_total": "", "hoglake_compaction_skipped_total": "reason",
    "hoglake_background_loop_failures_total": "loop", "hoglake_multipart_abort_failures_total": "",
    "hoglake_index_bloat_bytes": "table,index", "hoglake_live_rows": "", "hoglake_live_bytes": "",
    "hoglake_live_files": "", "hoglake_stats_pending_files": "", "hoglake_stats_failed_files": "",
    "hoglake_missing_field_id_files": "", "ktor_http_server_requests": ""}


def metrics(server):
    """name -> the sum over its labels."""
    sums = {}
    for name, value in re.findall(r"^(\w+)(?:\{.*\})? (\S+)$", hoglaked.request(server.url + "/metrics")[1], re.M):
        sums[name] = sums.get(name, 0) + float(value)
    return sums


def becomes(server, **wanted):
    def there():
        got = metrics(server)
        return all(got["hoglake_" + name] == value for name, value in wanted.items())
    services.wait_until(there, 60, "%r" % wanted)


@contextlib.contextmanager
def own(**settings):
    """A server with a database of its own."""
    name = "m%d" % time.monotonic_ns()
    judge_rest.DB.create_database(name)
    with hoglaked.started("postgresql://127.0.0.1:%d/%s" % (judge_rest.DB.port, name), **settings) as server:
        server.database, server.query = name, lambda *args: judge_rest.DB.query(name, *args)
        yield server


@contextlib.contextmanager
def held(server, statement):
    """Somebody else holds what the statement takes."""
    connection = judge_rest.DB.connect(server.env["HOGLAKE_JDBC_URL"].rsplit("/")[-1])
    try:
        connection.cursor().execute(statement)
        yield
    finally:
        connection.close()


def test_every_name_is_served_or_named_as_missing(server):
    text = hoglaked.request(server.url + "/metrics")[1]
    served = set(re.findall(r"^# TYPE (\w+) ", text, re.M))
    with open(os.path.join(services.TOP, "docs/hoglaked.md")) as docs:
        [paragraph] = re.findall(r"^Metrics of the original that are not served: (.*?)\n\n", docs.read(), re.S | re.M)
    missing = set(re.findall(r"`(\w+?)(?:_\*)?`\s\(", paragraph))
    assert not served & missing, served & missing
    assert set(NAMES) == (set(NAMES) & served) | missing, (set(NAMES) - served) ^ missing
    with open(os.path.join(services.TOP, "src/server/metrics.def")) as table:
        labels = {name: label or "" for name, label in re.findall(r'"(hoglake_\w+)", (?:NULL|"(.*?)"),', table.read())}
    assert {name: labels[name] for name in served & set(NAMES)} == {
        name: label for name, label in NAMES.items() if name in served}


def test_samples(_):
    with own(HOGLAKE_METRICS_INTERVAL_MS="100", HOGLAKE_HYDRATOR_INTERVAL_MS="0") as server:
        for _ in range(2):
            catalog, _, _ = lake(server)
            files = [file(catalog, rows=7, column_stats=[]) for _ in range(3)] + [file(catalog) for _ in range(4)]
            ok(server, "POST", catalog + "/commit", append(catalog, *files))
        catalog, _, _ = lake(server)
        ok(server, "POST", catalog + "/commit", append(catalog))
        ok(server, "DELETE", catalog + "/namespaces/n/tables/t")
        becomes(server, live_rows=2 * (3 * 7 + 4 * 10), live_bytes=14000, live_files=14, stats_pending_files=9,
                stats_failed_files=0, missing_field_id_files=0, expiry_purge_remaining=0)
        server.query("UPDATE hog_data_file SET stats_state = 'failed' WHERE data_file_id = 5")
        server.query("UPDATE hog_data_file SET missing_field_ids = true WHERE data_file_id IN (1, 2)")
        becomes(server, stats_pending_files=7, stats_failed_files=2, missing_field_id_files=5)
        server.query("UPDATE hog_data_file SET end_snapshot = begin_snapshot + 1 WHERE data_file_id IN (1, 2)")
        server.query("UPDATE hog_catalog SET earliest_snapshot_id = last_snapshot_id + 1")
        becomes(server, missing_field_id_files=0, expiry_purge_remaining=5)


def test_handlers_and_their_queue(_):
    with own(HOGLAKE_REQUEST_THREADS="2", HOGLAKE_COMMIT_LOCK_TIMEOUT_MS="10000") as server:
        _, table, _ = lake(server)
        with held(server, "BEGIN; LOCK TABLE hog_catalog"), concurrent.futures.ThreadPoolExecutor(5) as pool:
            reads = [pool.submit(call, server, "GET", table) for _ in range(5)]
            becomes(server, request_pool_active=2, request_pool_max=2, request_pool_queued=3)
            answers = [r.result() for r in reads]
        assert [status for status, _ in answers] == [503] * 5
        late = sum(answer["detail"].startswith("waited too long for a handler") for _, answer in answers)
        assert 1 <= late <= 3, answers  # two waited for the table, and perhaps two more
        becomes(server, request_pool_active=0, request_pool_queued=0, request_queue_abandoned_total=late,
                requests_shed_total=late)


def test_a_probe_that_hangs(_):
    stopped, postmaster = set(), judge_rest.DB.process.pid
    with own(HOGLAKE_HEALTH_PROBE_TIMEOUT_MS="500") as server:
        def hangs():
            for pid in services.children(postmaster):
                with open("/proc/%d/cmdline" % pid) as command:  # names the database, once it has begun
                    if server.database in command.read():
                        os.kill(pid, signal.SIGSTOP)
                        stopped.add(pid)
            return metrics(server)["hoglake_health_probe_attempts_hung"] >= 1
        becomes(server, health_probe_attempts_hung=0)
        try:
            os.kill(postmaster, signal.SIGSTOP)  # no new connections
            services.wait_until(hangs, 60, "the probe hangs")
            os.kill(postmaster, signal.SIGCONT)
            becomes(server, health_probe_attempts_hung=0)  # on a new connection
        finally:
            for pid in stopped | {postmaster}:
                os.kill(pid, signal.SIGCONT)


REFUSE = ("CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END'",
          "CREATE TRIGGER refuse BEFORE DELETE ON %s FOR EACH STATEMENT EXECUTE FUNCTION refuse()")


@contextlib.contextmanager
def undeletable(server, table):
    server.query(REFUSE[0])
    server.query(REFUSE[1] % table)
    yield
    server.query("DROP TRIGGER refuse ON " + table)


def test_expiry_and_cleanup(_):
    with own(HOGLAKE_EXPIRY_PURGE_PAGE="1", HOGLAKE_HYDRATOR_INTERVAL_MS="0") as server:
        catalog, table, made = lake(server)
        head = ok(server, "POST", catalog + "/commit", append(catalog, *[file(catalog) for _ in range(3)]))["snapshot_id"]
        ok(server, "POST", catalog + "/commit", judge_lifetimes.vector(catalog, 1, head))
        ok(server, "POST", table + "/truncate?expected_table_uuid=" + made["table_uuid"])
        with undeletable(server, "hog_snapshot"):
            ok(server, "PATCH", catalog + "/options", {"snapshot_retention_seconds": 1})
            time.sleep(1.2)
            assert call(server, "POST", catalog + "/maintenance/expire")[0] == 500
        becomes(server, expiry_advance_failures_total=1, expiry_purge_failures_total=0, expiry_purge_rows_total=0)
        with undeletable(server, "hog_data_file"):
            assert call(server, "POST", catalog + "/maintenance/expire")[0] == 500
        becomes(server, expiry_advance_failures_total=1, expiry_purge_failures_total=1, expiry_purge_rows_total=0)
        ok(server, "POST", catalog + "/maintenance/expire")
        becomes(server, expiry_purge_failures_total=1, expiry_purge_rows_total=4, expiry_purge_truncated_total=0)
        with undeletable(server, "hog_commit_receipt"):
            assert call(server, "POST", catalog + "/maintenance/cleanup")[0] == 500
        becomes(server, commit_receipt_purge_failures_total=1)


def test_a_purge_whose_time_is_spent(_):
    with own(HOGLAKE_EXPIRY_PURGE_PAGE="1", HOGLAKE_EXPIRY_PURGE_BUDGET_MS="1") as server:
        catalog, table, made = lake(server)
        ok(server, "POST", catalog + "/commit", append(catalog, *[file(catalog) for _ in range(200)]))
        ok(server, "POST", table + "/truncate?expected_table_uuid=" + made["table_uuid"])
        assert judge_lifetimes.expire(server, catalog)["purge_truncated"]
        got = metrics(server)
        assert got["hoglake_expiry_purge_truncated_total"] == 1 and 0 < got["hoglake_expiry_purge_rows_total"] < 200


def test_retirement(_):
    with own(HOGLAKE_RETIREMENT_BATCH="2", HOGLAKE_RETIREMENT_PAUSE_MS="1", HOGLAKE_RETIREMENT_INTERVAL_MS="300",
             HOGLAKE_HYDRATOR_INTERVAL_MS="0") as server:
        catalog, table, _ = lake(server)
        ok(server, "POST", catalog + "/commit", append(catalog, *[file(catalog) for _ in range(5)]))
        ok(server, "DELETE", table)
        judge_lifetimes.expire(server, catalog)
        becomes(server, rows_retired_total=5, retirement_batches_total=3)
        assert metrics(server)["hoglake_retirement_timeouts_total"] == 0
        with held(server, "SELECT pg_advisory_lock((4740871::bigint << 32) | catalog_id) FROM hog_catalog"), \
                hoglaked.started(server.env["HOGLAKE_JDBC_URL"], HOGLAKE_RETIREMENT_INTERVAL_MS="300",
                                 HOGLAKE_COMMIT_LOCK_TIMEOUT_MS="300") as other:
            services.wait_until(lambda: metrics(other)["hoglake_retirement_timeouts_total"], 60, "a batch waits")


def test_a_store_that_does_not_answer(_):
    closed = "http://127.0.0.1:%d" % services.free_port()
    with own(HOGLAKE_S3_ENDPOINT=closed, HOGLAKE_S3_ACCESS_KEY="a", HOGLAKE_S3_SECRET_KEY="b",
             HOGLAKE_HYDRATOR_INTERVAL_MS="200") as server:
        catalog, _, _ = lake(server)
        ok(server, "POST", catalog + "/commit", append(catalog))
        services.wait_until(lambda: metrics(server)["hoglake_hydrator_transient_errors_total"] >= 1, 60, "one is counted")
        assert "hoglake_stats_hydrated_total" not in metrics(server)


if __name__ == "__main__":
    sys.exit(judge_rest.main(globals()))
