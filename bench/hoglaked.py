#!/usr/bin/env python3
"""bench/hoglaked.py [--seconds N] [--files N] - what hoglaked costs, here and now: it starts a PostgreSQL of
its own with fsync on, a hoglaked for each setting, and prints two Markdown tables.

    commits      prepared appends of one file with two columns' statistics, each client on a
                 connection of its own, one request at a time, all on one catalog and table
    table read   GET of a table with totals=false, one client
    scan plan    GET of .../scan of a table with --files files, without and with statistics
    memory       hoglaked's resident set: at rest, after the commits, and its peak
    work         PostgreSQL's and hoglaked's CPU time a commit, all processes together

PostgreSQL, hoglaked and the clients share the machine. BENCH_DIR is where the database lies.
"""
import argparse
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TOP, "tests/server"), os.path.join(TOP, "tests/services")]
import hoglaked  # noqa: E402
import services  # noqa: E402

BENCH = os.path.join(os.environ.get("MP_BUILD_DIR", os.path.join(TOP, "build")),
                     "tests/server/hoglaked-bench")
NUMBER = r"([0-9.]+)"
LINE = re.compile(r"clients: (\d+) requests, (\d+) failed, " + NUMBER + "/s, p50 " + NUMBER + " ms, p90 " +
                  NUMBER + " ms, p99 " + NUMBER + " ms, max " + NUMBER + " ms")


def run(server, target, clients, seconds):
    """Gives (requests, per second, p50, p90, p99, max)."""
    done = subprocess.run([BENCH, "127.0.0.1", str(server.port), target, str(clients), str(seconds)],
                          capture_output=True, text=True, check=True)
    found = LINE.search(done.stdout)
    if int(found[2]):
        raise RuntimeError("requests failed: " + done.stdout)
    return [int(found[1])] + [float(found[i]) for i in range(3, 8)]


def memory_mib(pid, key):
    with open("/proc/%d/status" % pid) as file:
        return int(re.search(key + r":\s+(\d+) kB", file.read())[1]) / 1024


def cpu_seconds(pids):
    total = 0
    for pid in pids:
        with open("/proc/%d/stat" % pid) as file:
            fields = file.read().rsplit(")", 1)[1].split()
        total += sum(int(fields[i]) for i in (11, 12)) / os.sysconf("SC_CLK_TCK")
    return total


def family(pid):
    """The process and those it started that are still there."""
    children = []
    for path in glob.glob("/proc/%d/task/*/children" % pid):
        with open(path) as file:
            children += [int(child) for child in file.read().split()]
    return [pid] + children


def timed_get(url):
    began = time.perf_counter()
    with urllib.request.urlopen(url, timeout=600) as answer:
        size = len(answer.read())
    return time.perf_counter() - began, size


def register(server, catalog, files):
    """A table of `files` files, 1,000 a commit."""
    base = server.url + "/v1/catalogs"
    def post(path, body):
        status, answer, _ = hoglaked.request(base + path, "POST", body, timeout=600)
        if status not in (200, 201):
            raise RuntimeError("%s: %d %r" % (path, status, answer))
    post("", {"name": catalog, "data_path": "s3://bench/" + catalog})
    post("/%s/namespaces" % catalog, {"name": "n"})
    post("/%s/namespaces/n/tables" % catalog, {"name": "t", "columns": [
        {"name": "id", "type": "long"}, {"name": "name", "type": "string"}]})
    bounds = [{"lower_bound": "AQAAAAAAAAA=", "upper_bound": "AgAAAAAAAAA="}, {"lower_bound": "YQ==", "upper_bound": "eg=="}]
    stats = [dict(b, field_id=i + 1, value_count=1000, null_count=0, size_bytes=900) for i, b in enumerate(bounds)]
    for first in range(0, files, 1000):
        listed = [{"path": "s3://bench/%s/data/n/t/%08d-0123456789abcdef.parquet" % (catalog, i), "record_count": 1000,
                   "file_size_bytes": 12345, "footer_size": 700, "column_stats": stats}
                  for i in range(first, min(first + 1000, files))]
        post("/%s/commit" % catalog, {"appends": [{"namespace": "n", "table": "t", "files": listed}]})
    return "%s/%s/namespaces/n/tables/t" % (base, catalog)


def commits(db, url, seconds):
    rows = []
    for synchronous in ("true", "false"):
        with hoglaked.started(url, HOGLAKE_SYNCHRONOUS_COMMIT=synchronous, HOGLAKE_LOG_LEVEL="WARNING") as server:
            rest = memory_mib(server.process.pid, "VmRSS")
            for clients in (1, 8, 32):
                run(server, "warm-%s-%d" % (synchronous, clients), clients, 1)
                pids = family(db.process.pid) + [server.process.pid]
                before = cpu_seconds(pids)
                got = run(server, "b-%s-%d" % (synchronous, clients), clients, seconds)
                cpu_ms = (cpu_seconds(pids) - before) * 1000 / got[0]
                rows.append("| %s | %d | %.0f | %.2f | %.2f | %.2f | %.1f | %.2f |" % (
                    ("on" if synchronous == "true" else "off", clients) + tuple(got[1:]) + (cpu_ms,)))
                print("  %s" % rows[-1], file=sys.stderr, flush=True)
            if synchronous == "true":
                memory = rest, memory_mib(server.process.pid, "VmRSS")
                read = run(server, "/v1/catalogs/b-true-1/namespaces/n/tables/t?totals=false", 1, seconds)
    return rows, memory, read


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=8, help="of each measurement")
    parser.add_argument("--files", type=int, default=100000, help="of the scan plan's table")
    arguments = parser.parse_args()
    tempfile.tempdir = os.environ.get("BENCH_DIR")
    with services.postgres(fsync="on") as db:
        db.create_database("hoglake")
        url = "postgresql://127.0.0.1:%d/hoglake" % db.port
        rows, (rest, after), read = commits(db, url, arguments.seconds)
        with hoglaked.started(url, HOGLAKE_LOG_LEVEL="WARNING") as server:
            table = register(server, "plan", arguments.files)
            db.query("hoglake", "VACUUM ANALYZE")
            loaded = memory_mib(server.process.pid, "VmHWM")
            server.stop()
            server.start()
            plans = {}
            for name, query in (("", ""), (" with column_stats", "?include=column_stats")):
                taken = [timed_get(table + "/scan" + query) for _ in range(5)]
                plans[name] = statistics.median(t for t, _ in taken), taken[0][1]
            peak = memory_mib(server.process.pid, "VmHWM")
    print("| synchronous_commit | clients | commits/s | p50 ms | p90 ms | p99 ms | max ms | CPU ms/commit |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    print("\n".join(rows))
    print("\n| | |\n|---|---:|")
    print("| table read (totals=false), one client, p50 | %.2f ms |" % read[2])
    for name, (seconds, size) in plans.items():
        print("| scan plan of %d files%s | %.2f s, %.1f MB |" % (arguments.files, name, seconds, size / 1e6))
    print("| resident memory at rest | %.0f MiB |" % rest)
    print("| ... after the commits | %.0f MiB |" % after)
    print("| ... peak while files are registered, 1,000 a commit | %.0f MiB |" % loaded)
    print("| ... peak of a server that makes scan plans | %.0f MiB |" % peak)


if __name__ == "__main__":
    main()
