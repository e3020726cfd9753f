#!/usr/bin/env python3
"""bench/compare.py [--events N] [--rounds N] [--file NDJSON] - what JSON to Parquet costs, in one run
on one file: millpond, DuckDB and a pyarrow path, with zstd and with Snappy, in turn.

    millpond  load into a SQLite catalog and local files: scanned, typed, encoded, committed, fsynced
    duckdb    read_json -> COPY TO parquet as they come: types detected, nested values as STRUCTs
    duckdb+   the same with the columns' types given, nested values as JSON text
    pyarrow   orjson -> pyarrow.Table.from_pylist -> write_table, nested values as JSON text

Each runs as a process of its own; CPU seconds and peak memory are the kernel's accounts of it
(user + system, all threads). Rounds alternate, so that drift of the machine hits all alike; the
median is printed, and the ratio to millpond within the same round.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(TOP, "build/bench")

DUCKDB = """
import duckdb, sys
path, out, codec = sys.argv[1:4]
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
connection.execute("COPY (SELECT * FROM read_json('%s', maximum_object_size = 16777216)) TO '%s' "
                   "(FORMAT parquet, COMPRESSION %s)" % (path, out, codec))
"""

DUCKDB_TYPED = """
import duckdb, sys
path, out, codec = sys.argv[1:4]
texts = ("uuid event distinct_id timestamp created_at elements_chain person_id person_created_at "
         "group1 group2 $session_id ip").split()
columns = ", ".join(["'%s': 'VARCHAR'" % name for name in texts] +
                    ["'team_id': 'BIGINT'", "'group0': 'BIGINT'", "'properties': 'JSON'",
                     "'person_properties': 'JSON'"])
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
connection.execute("COPY (SELECT * FROM read_json('%s', format = 'newline_delimited', "
                   "maximum_object_size = 16777216, columns = {%s})) TO '%s' "
                   "(FORMAT parquet, COMPRESSION %s)" % (path, columns, out, codec))
"""

PYARROW = """
import orjson, pyarrow, pyarrow.parquet, sys
path, out, codec = sys.argv[1:4]
pyarrow.set_cpu_count(1)
schema, writer = None, None
def flush(rows):
    global schema, writer
    table = pyarrow.Table.from_pylist(rows, schema=schema)
    if writer is None:
        fields = [pyarrow.field(f.name, pyarrow.string() if pyarrow.types.is_null(f.type) else f.type)
                  for f in table.schema]
        schema = pyarrow.schema(fields)
        table = table.cast(schema)
        writer = pyarrow.parquet.ParquetWriter(out, schema, compression=codec)
    writer.write_table(table)
rows = []
for line in open(path, "rb"):
    row = orjson.loads(line)
    for key, value in row.items():
        if isinstance(value, (dict, list)):
            row[key] = orjson.dumps(value).decode()
    rows.append(row)
    if len(rows) == 100000:
        flush(rows)
        rows = []
if rows:
    flush(rows)
writer.close()
"""


def waited(pid):
    """Waits for a child; gives (exit code, CPU seconds, peak bytes)."""
    _, status, usage = os.wait4(pid, 0)
    return (os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss * 1024)


def measured(command, env=None):
    """Gives (CPU seconds, peak bytes) of a process."""
    pid = os.posix_spawn(command[0], command, dict(os.environ, **(env or {})),
                         file_actions=[(os.POSIX_SPAWN_OPEN, 2, os.path.join(FOLDER, "stderr"),
                                        os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)])
    code, cpu, peak = waited(pid)
    if code:
        sys.exit("%s failed:\n%s" % (" ".join(command[:3]),
                                     open(os.path.join(FOLDER, "stderr")).read()))
    return cpu, peak


def bytes_below(folder):
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder)
               for name in names if name.endswith(".parquet"))


def run_millpond(path, codec):
    folder = os.path.join(FOLDER, "lake")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    cpu, peak = measured([os.path.join(TOP, "build/millpond"), "load", path], {
        "DUCKLAKE_TABLE": "events", "DUCKLAKE_DATA_PATH": folder + "/data/",
        "MILLPOND_CATALOG": "sqlite:%s/lake.sqlite" % folder, "MILLPOND_COMPRESSION": codec})
    return cpu, peak, bytes_below(folder)


def run_python(script):
    def run(path, codec):
        folder = os.path.join(FOLDER, "other")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        cpu, peak = measured([sys.executable, "-c", script, path, folder + "/out.parquet", codec])
        return cpu, peak, bytes_below(folder)
    return run


PROGRAMS = [("millpond", run_millpond), ("duckdb", run_python(DUCKDB)),
            ("duckdb+", run_python(DUCKDB_TYPED)), ("pyarrow", run_python(PYARROW))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--events", type=int, default=300000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--file")
    args = parser.parse_args()
    os.makedirs(FOLDER, exist_ok=True)
    path = args.file or os.path.join(FOLDER, "events-%d.ndjson" % args.events)
    if not os.path.exists(path):
        subprocess.run([sys.executable, os.path.join(TOP, "tests/data/gen_events.py"), "--count",
                        str(args.events), "--seed", "7", "--out", path], check=True)
    with open(path, "rb") as lines:
        count = sum(1 for _ in lines)
    size = os.path.getsize(path)
    print("%d records, %.1f MB of JSON, %d rounds; medians" % (count, size / 1e6, args.rounds))
    print("%-9s %-7s %12s %14s %10s %10s %9s" % ("", "codec", "CPU-s a M", "MB/s and core",
                                                  "peak MB", "out MB", "x CPU"))
    results = {}
    for codec in ("zstd", "snappy"):
        rounds = [[run(path, codec) for _, run in PROGRAMS] for _ in range(args.rounds)]
        for at, (name, _) in enumerate(PROGRAMS):
            cpu = statistics.median(r[at][0] for r in rounds)
            ratio = statistics.median(r[at][0] / r[0][0] for r in rounds)
            peak, out = max(r[at][1] for r in rounds), rounds[0][at][2]
            results[name + " " + codec] = {"cpu_s_per_million": cpu / count * 1e6,
                                           "mb_per_s_and_core": size / 1e6 / cpu,
                                           "peak_mb": peak / 1e6, "out_mb": out / 1e6,
                                           "cpu_ratio": ratio}
            print("%-9s %-7s %12.2f %14.0f %10.0f %10.1f %8.1fx" % (
                name, codec, cpu / count * 1e6, size / 1e6 / cpu, peak / 1e6, out / 1e6, ratio),
                flush=True)
    with open(os.path.join(FOLDER, "compare.json"), "w") as out:
        json.dump(results, out, indent=1)


if __name__ == "__main__":
    main()
