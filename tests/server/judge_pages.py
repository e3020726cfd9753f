#!/usr/bin/env python3
"""Lists of any length: what is in a long answer, and what becomes of one that nobody reads.

The tables are filled with SQL, as no client could in a minute; what an answer must hold is read from
PostgreSQL, or put together from answers of one page. Long answers come in chunks, short ones whole.
"""
import concurrent.futures
import json
import os
import re
import signal
import socket
import sys
import tempfile
import time
import urllib.request

import hoglaked
import judge_rest
import judge_tls
import services
from hoglaked import metric
from judge_rest import append, file, ok, refused

FILES, SPAN = 40000, 1000  # of the large table; files of one snapshot
DB = None

FILL = """
INSERT INTO hog_data_file SELECT {c}, i, 1, 3 + i / {span}, CASE WHEN i % 97 = 0 THEN 5 + i / {span} END,
    's3://b/d/' || i || '-0123456789abcdef0123456789abcdef.parquet', 1000 + i % 13, 12345,
    CASE WHEN i % 7 = 0 THEN 700 END, (i * 7919) % 1000003, CASE WHEN i % 5 = 0 THEN 'failed' ELSE 'provided' END,
    NULL, CASE WHEN i % 3 = 0 THEN ARRAY['a"b', NULL, '{{,}}'] END, false, false, i % 11 = 0,
    CASE WHEN i % 2 = 0 THEN ARRAY[4::bigint, 100] END FROM generate_series(1, {files}) i;
INSERT INTO hog_file_stats SELECT {c}, i, '[[1,1000,' || i || ',null,900,"AQAAAAAAAAA=","AgAAAAAAAAA="],'
    || '[2,1000,0,0,900,"AAAAAAAA8D8=","AAAAAAAAAEA="]]' FROM generate_series(1, {files}) i;
INSERT INTO hog_delete_file SELECT {c}, i, 1, i, 4 + i / {span}, NULL, 's3://b/dv/' || i, 5, 77
    FROM generate_series(1, {files}) i WHERE i % 10 = 0;
INSERT INTO hog_snapshot SELECT {c}, i, 1000 + i, 1, NULL, NULL, i FROM generate_series(3, {head}) i;
UPDATE hog_catalog SET last_snapshot_id = {head}, last_snapshot_time_us = 1000000, next_file_id = {files} + 1
    WHERE catalog_id = {c}
"""


class Long:
    """A lake whose table t has FILES files, and a server of its own."""

    def __init__(self, server):
        self.server = server
        self.catalog, self.table, made = judge_rest.lake(server)
        self.head = FILES // SPAN + 10
        self.id = DB.query("hoglake", "SELECT catalog_id FROM hog_catalog WHERE name = %s", self.catalog[10:])[0][0]
        for statement in FILL.format(c=self.id, files=FILES, span=SPAN, head=self.head).split(";\n"):
            DB.query("hoglake", statement)
        DB.query("hoglake", "ANALYZE")

    def path(self, what):
        return "/v1" + self.table + what

    def raw(self, what, **more):
        return fetch(self.server, self.path(what), **more)


def connect(server, buffer=0):
    sock = socket.socket()
    if buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    sock.settimeout(60)
    sock.connect(("127.0.0.1", server.port))
    return sock


class Answer:
    """What came on a connection, taken apart here: (head, body, whole)."""

    def __init__(self, raw, headless=False):
        self.head, _, rest = raw.partition(b"\r\n\r\n")
        self.status = int(self.head.split()[1])
        self.request_id = re.search(r"^x-request-id: (\S+)", self.head.decode().lower(), re.M)[1]
        self.chunked = b"transfer-encoding: chunked" in self.head.lower()
        self.body, self.whole = rest, False
        if headless:
            assert not rest, rest[:200]
        elif self.chunked:
            self.take_chunks(rest)
        else:
            length = re.search(rb"content-length: (\d+)", self.head.lower())
            self.whole = bool(length) and len(rest) == int(length[1])

    def take_chunks(self, rest):
        parts, at = [], 0
        while at < len(rest):
            end = rest.find(b"\r\n", at)
            if end < 0:
                break
            size = int(rest[at:end], 16)
            parts.append(rest[end + 2:end + 2 + size])
            at = end + 2 + size + 2
            self.whole = size == 0
        self.body = b"".join(parts)


def ask(path, method="GET", version="1.1"):
    return ("%s %s HTTP/%s\r\nHost: x\r\nConnection: close\r\n\r\n" % (method, path, version)).encode()


def rest_of(sock, got=b""):
    parts = [got]
    try:
        while part := sock.recv(1 << 20):
            parts.append(part)
    except ConnectionResetError:
        pass
    sock.close()
    return b"".join(parts)


def fetch(server, path, method="GET", version="1.1"):
    sock = connect(server)
    sock.sendall(ask(path, method, version))
    return Answer(rest_of(sock), method == "HEAD")


def begin(server, path):
    """A reader that has its answer's first bytes, and reads no more."""
    sock = connect(server, 4096)
    sock.sendall(ask(path))
    return sock, sock.recv(100)


def becomes(server, name, value):
    services.wait_until(lambda: metric(server, name) == value, 60, "%s is %r" % (name, value))


def request_line(server, answer):
    """The one line of the log about it, which may come behind the answer."""
    def lines():
        return [line for line in server.lines("hoglake.request") if line.get("request_id") == answer.request_id
                and line["msg"] == "request"]
    services.wait_until(lines, 60, "the line is there")
    [line] = lines()
    return line


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


# --- what is in them --------------------------------------------------------------------------

def test_a_page_costs_its_rows(case):
    rows = ("SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname IN"
            " ('hog_data_file', 'hog_delete_file', 'hog_file_stats')")
    case.server.stop_with_backends(DB)  # a backend tells its counts when it ends
    try:
        with hoglaked.started(case.server.env["HOGLAKE_JDBC_URL"]) as other:
            before = DB.query("hoglake", rows)[0][0]
            assert fetch(other, case.path("/scan?include=column_stats")).whole
            other.stop_with_backends(DB)
        read = DB.query("hoglake", rows)[0][0] - before
    finally:
        case.server.start()
    assert 2.5 * FILES < read < 4 * FILES, read  # ids, files, statistics


def test_scan_is_what_the_tables_hold(case):
    rows = DB.query("hoglake", """SELECT f.data_file_id, f.path, f.record_count, f.footer_size, f.row_id_start, f.stats_state,
        f.begin_snapshot, f.partition_values, f.split_offsets, d.path, d.begin_snapshot FROM hog_data_file f
        LEFT JOIN hog_delete_file d USING (catalog_id, data_file_id) WHERE f.catalog_id = %s AND f.end_snapshot IS NULL
        ORDER BY f.row_id_start, f.data_file_id""", case.id)
    assert len(rows) > FILES * 0.9
    wanted = []
    for number, path, records, footer, row_id, state, since, values, splits, vector, vector_since in rows:
        item = {"data_file_id": number, "path": path, "file_format": "parquet", "record_count": records,
                "file_size_bytes": 12345}
        if footer:
            item["footer_size"] = footer
        item.update(row_id_start=row_id, stats_state=state, begin_snapshot=since)
        if values:
            item["partition_values"] = values
        item["explicit_row_ids"] = False
        plain = {"data_file": dict(item)}
        if state == "provided":
            item["column_stats"] = [
                {"field_id": 1, "value_count": 1000, "null_count": number, "lower_bound": 1, "upper_bound": 2},
                {"field_id": 2, "value_count": 1000, "null_count": 0, "nan_count": 0, "lower_bound": 1, "upper_bound": 2}]
        if splits:
            item["split_offsets"] = splits
        wanted.append((plain, {"data_file": item}))
        if vector:
            entry = {"delete_file_id": number, "data_file_id": number, "path": vector, "file_format": "puffin-dv",
                     "delete_count": 5, "file_size_bytes": 77, "begin_snapshot": vector_since}
            plain["delete_file"] = wanted[-1][1]["delete_file"] = entry
    plain, full = case.raw("/scan"), case.raw("/scan?include=column_stats,split_offsets")
    assert plain.chunked and plain.whole and full.chunked and full.whole
    assert plain.body == compact([first for first, _ in wanted])
    got = json.loads(full.body)
    assert got == [second for _, second in wanted], [pair for pair in zip(got, wanted) if pair[0] != pair[1][1]][:1]
    only = json.loads(case.raw("/scan?include=column_stats&stats_fields=2").body)
    assert [[s["field_id"] for s in i["data_file"].get("column_stats", [])] for i in only] == [
        [2] if i["data_file"]["stats_state"] == "provided" else [] for i in got]


def test_files_are_those_of_single_pages(case):
    for order in ("", "&sort=path&order=desc", "&sort=record_count"):
        whole = case.raw("/files?x=1" + order)
        assert whole.chunked and whole.whole
        bodies = []
        for offset in range(0, FILES, 800):
            page = case.raw("/files?limit=800&offset=%d%s" % (offset, order))
            assert page.whole and not page.chunked
            bodies.append(page.body[1:-1])
        assert b"[" + b",".join(b for b in bodies if b) + b"]" == whole.body, order
    limited = case.raw("/files?limit=20000")  # there is a limit of the limit
    assert limited.chunked and len(json.loads(limited.body)) == 10000


def test_changes_are_those_of_single_snapshots(case):
    whole = case.raw("/changes?from_snapshot=2")
    assert whole.chunked and whole.whole
    files, deletes = [], []
    for snapshot in range(2, case.head):
        one = case.raw("/changes?from_snapshot=%d&to_snapshot=%d" % (snapshot, snapshot + 1))
        got = json.loads(one.body)
        files, deletes = files + got["files"], deletes + got["delete_files"]
    made = json.loads(whole.body)
    assert whole.body == compact({"table_uuid": made["table_uuid"], "from_snapshot": 2, "to_snapshot": case.head,
                                  "files": files, "delete_files": deletes})
    assert len(files) == FILES - FILES // 11 and len(deletes) == FILES // 10


def test_names_come_in_order(case):
    many = 8000
    names = sorted(("n%d" % (i * 7919 % 1000003) for i in range(many)))
    DB.query("hoglake", "INSERT INTO hog_namespace SELECT %s, 100 + i, 'n' || (i * 7919 %% 1000003), 1, NULL"
             " FROM generate_series(0, %s) i", case.id, many - 1)
    DB.query("hoglake", "INSERT INTO hog_table SELECT %s, 100 + i, gen_random_uuid(), 3, NULL, 3, NULL"
             " FROM generate_series(0, %s) i", case.id, many - 1)
    for first, last, comment in ((3, 4, "'old'"), (4, None, "'new'")):
        DB.query("hoglake", "INSERT INTO hog_table_version SELECT %s, 100 + i, %s, %s, 100, 'n' || (i * 7919 %% 1000003),"
                 + comment + " FROM generate_series(0, %s) i", case.id, first, last, many - 1)
    DB.query("hoglake", "INSERT INTO hog_view SELECT %s, 100 + i, gen_random_uuid(), 100, 'n' || (i * 7919 %% 1000003),"
             " 'd', repeat('s', 300), 3, NULL FROM generate_series(0, %s) i", case.id, many - 1)
    DB.query("hoglake", "ANALYZE")
    base = "/v1" + case.catalog + "/namespaces"
    for path, more in ((base, ["n"]), (base + "/n0/tables", []), (base + "/n0/views", [])):
        got = fetch(case.server, path)
        assert got.chunked and got.whole, path
        assert [e["name"] for e in json.loads(got.body)] == sorted(names + more), path
    for snapshot, comment in ((3, "old"), (4, "new")):
        listed = json.loads(fetch(case.server, base + "/n0/tables?snapshot=%d" % snapshot).body)
        assert [(t["name"], t["comment"]) for t in listed] == [(n, comment) for n in names]


def test_short_answers_and_refusals_are_whole(case):
    few = case.raw("/scan?snapshot=3")
    assert few.whole and not few.chunked and len(json.loads(few.body)) == SPAN - 1
    for what, status in (("/scan?snapshot=%d" % (case.head + 1), 422), ("/changes", 400), ("/scan?include=x", 422)):
        got = case.raw(what)
        assert got.whole and not got.chunked and got.status == status
    assert case.raw("/scan?include=column_stats&stats_fields=" + ",".join(map(str, range(1, 27)))).status == 422
    refused(case.server, 404, "not_found", "GET", case.catalog + "/namespaces/n/tables/none/scan")


# --- how they travel --------------------------------------------------------------------------

def test_head_and_http_1_0(case):
    want = case.raw("/scan").body
    becomes(case.server, "hoglake_db_pool_active", 0)
    got = case.raw("/scan", method="HEAD")
    assert got.status == 200 and b"content-type: application/json" in got.head.lower()
    got = case.raw("/scan", version="1.0")
    assert not got.chunked and got.body == want
    becomes(case.server, "hoglake_answer_bytes", 0)


def test_a_long_answer_is_one_line_of_the_log(case):
    got = case.raw("/scan")
    line = request_line(case.server, got)
    assert (line["path"], line["status"], line["bytes_out"]) == (case.path("/scan"), 200, len(got.body)), line
    assert "cut" not in line, line


def test_over_tls(case):
    with tempfile.TemporaryDirectory() as directory:
        files = judge_tls.Files(directory)
        with hoglaked.started(case.server.env["HOGLAKE_JDBC_URL"], HOGLAKE_TLS_CERT_FILE=files.path("good.crt"),
                              HOGLAKE_TLS_KEY_FILE=files.path("good.key")) as secure:
            with urllib.request.urlopen(secure.url + case.path("/scan"), context=judge_tls.context(files)) as got:
                assert got.headers["Transfer-Encoding"] == "chunked" and got.read() == case.raw("/scan").body


def test_many_plans_in_little_memory(case):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        sizes = set(pool.map(lambda i: len(case.raw("/scan?include=column_stats").body), range(24)))
    assert len(sizes) == 1 and sizes.pop() > 15e6
    with open("/proc/%d/status" % case.server.process.pid) as status:
        peak = int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) / 1024
    assert peak < 64, "%.0f MiB" % peak


# --- readers that are slow --------------------------------------------------------------------

def test_writers_go_on_and_the_plan_stays(case):
    want = case.raw("/scan").body
    readers = [begin(case.server, case.path("/scan")) for _ in range(10)]
    for _ in range(5):
        made = ok(case.server, "POST", case.catalog + "/commit", append(case.catalog))["snapshot_id"]
    ok(case.server, "POST", case.catalog + "/commit", {"read_snapshot": made, "deletes": [{
        "namespace": "n", "table": "t", "files": [{"data_file_id": 1, "path": file(case.catalog)["path"] + ".dv",
                                                   "delete_count": 1, "file_size_bytes": 9}]}]})
    for sock, got in readers:
        answer = Answer(rest_of(sock, got))
        assert answer.whole and answer.body == want
    assert case.raw("/scan").body != want


def test_readers_hold_no_connection(case):
    with hoglaked.started(case.server.env["HOGLAKE_JDBC_URL"], HOGLAKE_DB_POOL_SIZE="2",
                          HOGLAKE_REQUEST_THREADS="2") as small:
        readers = [begin(small, case.path("/scan?include=column_stats")) for _ in range(10)]
        for _ in range(5):  # else 503: no connection within 30 s
            ok(small, "GET", case.table)
            ok(small, "POST", case.catalog + "/commit", append(case.catalog))
        becomes(small, "hoglake_db_pool_active", 0)
        held = metric(small, "hoglake_answer_bytes")
        assert 10 * 256 * 1024 <= held < 10 * 1.5e6, held
        for sock, _ in readers:
            sock.close()
        becomes(small, "hoglake_answer_bytes", 0)
        becomes(small, 'hoglake_answers_cut_total{reason="gone"}', 10)


def test_a_reader_that_is_too_slow(case):
    with hoglaked.started(case.server.env["HOGLAKE_JDBC_URL"], HOGLAKE_ANSWER_TIMEOUT_MS="1500") as strict:
        sock, got = begin(strict, case.path("/scan"))
        time.sleep(2)
        answer = Answer(rest_of(sock, got))
        assert answer.status == 200 and not answer.whole
        becomes(strict, 'hoglake_answers_cut_total{reason="late"}', 1)
        line = request_line(strict, answer)
        assert line["cut"] == "late" and line["level"] == "WARNING", line
        assert line["bytes_out"] >= len(answer.body), line


def test_answers_share_one_bound(case):
    with hoglaked.started(case.server.env["HOGLAKE_JDBC_URL"], HOGLAKE_ANSWERS_BYTES_MAX="1000000") as tight:
        readers = [begin(tight, case.path("/scan")) for _ in range(3)]
        services.wait_until(lambda: hoglaked.request(tight.url + case.path(""))[0] == 503, 60, "it is full")
        status, answer, headers = hoglaked.request(tight.url + case.path(""))
        assert (status, answer["error"], headers["Retry-After"]) == (503, "commit_queue_timeout", "1")
        for sock, got in readers:
            assert Answer(rest_of(sock, got)).whole  # what was begun goes on
        becomes(tight, "hoglake_answer_bytes", 0)
        ok(tight, "GET", case.table)


def test_expiry_breaks_a_plan_in_the_middle(case):
    sock, got = begin(case.server, case.path("/scan"))
    changes, got_changes = begin(case.server, case.path("/changes?from_snapshot=%d" % (case.head - 9)))
    DB.query("hoglake", "UPDATE hog_catalog SET snapshot_retention_seconds = 1 WHERE catalog_id = %s", case.id)
    for _ in range(3):
        ok(case.server, "POST", case.catalog + "/commit", append(case.catalog))
    time.sleep(1.1)
    ok(case.server, "POST", case.catalog + "/commit", append(case.catalog))
    before = metric(case.server, 'hoglake_answers_cut_total{reason="broken"}')
    ok(case.server, "POST", case.catalog + "/maintenance/expire")
    answer = Answer(rest_of(sock, got))
    assert answer.status == 200 and answer.chunked and not answer.whole and len(answer.body) > 256 * 1024
    services.wait_until(  # the changes may be as well
        lambda: metric(case.server, 'hoglake_answers_cut_total{reason="broken"}') > before, 60, "it is counted")
    line = request_line(case.server, answer)
    assert (line["cut"], line["error"]) == ("broken", "expired") and "expired meanwhile" in line["detail"], line
    changes.close()
    refused(case.server, 410, "expired", "GET", case.table + "/scan?snapshot=%d" % case.head)
    after = case.raw("/scan")
    assert after.whole


def test_a_row_that_is_missing_breaks_it(case):
    sock, got = begin(case.server, case.path("/scan"))
    DB.query("hoglake", "DELETE FROM hog_data_file WHERE catalog_id = %s AND row_id_start ="
             " (SELECT max(row_id_start) FROM hog_data_file WHERE catalog_id = %s AND end_snapshot IS NULL)",
             case.id, case.id)
    answer = Answer(rest_of(sock, got))
    assert not answer.whole
    line = request_line(case.server, answer)
    assert line["cut"] == "broken" and "1 of" in line["detail"], line


def test_a_lost_connection_is_no_lost_plan(case):
    want = case.raw("/scan").body
    sock, got = begin(case.server, case.path("/scan"))
    ended = DB.query("hoglake", "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity"
                                " WHERE application_name = 'hoglaked'")
    answer = Answer(rest_of(sock, got))
    services.wait_until(lambda: not DB.query("hoglake", "SELECT 1 FROM pg_stat_activity WHERE pid = ANY (%s)",
                                             [pid for pid, _ in ended]), 60, "they have ended")
    i = next((i for i in range(min(len(want), len(answer.body))) if want[i] != answer.body[i]), None)
    assert answer.whole and answer.body == want, (len(answer.body), len(want), i, i and (want[i-300:i+300], answer.body[i-300:i+300]))


def test_a_stop_lets_readers_finish(case):
    want, in_time = case.raw("/scan").body, False
    for _ in range(10):
        with hoglaked.started(case.server.env["HOGLAKE_JDBC_URL"]) as other:
            sock, got = begin(other, case.path("/scan"))
            deaf, got_deaf = begin(other, case.path("/scan"))
            began = time.monotonic()
            other.process.signal(signal.SIGTERM)
            answer = Answer(rest_of(sock, got))
            in_time = time.monotonic() - began < 4  # it has 5 s
            assert (answer.whole and answer.body == want) or not in_time
            assert other.stop() == 0  # the one that does not read is cut; else it would be late, after 30 s
            assert request_line(other, Answer(rest_of(deaf, got_deaf)))["cut"] == "stopped"
        if in_time:
            return
    raise AssertionError("never read in time")


# Behind the others: these take rows away.
LAST = ("test_a_row_that_is_missing_breaks_it", "test_expiry_breaks_a_plan_in_the_middle")


def main():
    global DB
    cases = [(name, value) for name, value in globals().items() if name.startswith("test_")]
    cases = [c for c in cases if not sys.argv[1:] or any(a in c[0] for a in sys.argv[1:])]
    cases.sort(key=lambda c: LAST.index(c[0]) if c[0] in LAST else -1)
    with services.postgres() as DB:
        DB.create_database("hoglake")
        with hoglaked.started("postgresql://127.0.0.1:%d/hoglake" % DB.port) as server:
            case = Long(server)
            passed, failed = hoglaked.run_cases(cases, lambda: case)
            if failed:
                print(server.process.log_end(15))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
