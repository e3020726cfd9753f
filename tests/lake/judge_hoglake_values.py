#!/usr/bin/env python3
"""The real pyhoglake, of both released lines, and hoglake-tool write the same rows to the same
tables: what they say to the catalog must be the same. See hoglake_values.py, which runs in each
line's own Python.

judge_hoglake_values.py TOOL [VERSION...]; HOGLAKE_VALUES_SEED repeats a run.
"""
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "server"))
import hoglaked  # noqa: E402
import judge_pyhoglake as released  # noqa: E402
import services  # noqa: E402

SECONDS_MAX = 400
TABLES = 40


def run(version, tool, server, s3, seed):
    """Gives (passed, failed)."""
    python, _ = released.environment(version)
    done = subprocess.run([python, os.path.join(HERE, "hoglake_values.py"), tool, server.url,
                           s3.endpoint, s3.access_key, s3.secret_key, str(seed), str(TABLES)],
                          capture_output=True, text=True, timeout=SECONDS_MAX)
    print(done.stdout[-8000:], end="")
    lines = done.stdout.strip().splitlines()
    words = lines[-1].split() if lines else []
    if done.returncode not in (0, 1) or len(words) != 4 or words[1] != "passed,":
        print(done.stderr[-8000:])
        return 0, 1
    return int(words[0]), int(words[2])


def main():
    tool = os.path.abspath(sys.argv.pop(1))
    seed = int(os.environ.get("HOGLAKE_VALUES_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
    versions, failed = released.chosen()
    passed = 0
    with services.postgres() as db, services.versitygw() as s3:
        db.create_database("hoglake")
        s3.create_bucket("values")
        with hoglaked.started("postgresql://127.0.0.1:%d/hoglake" % db.port, s3) as server:
            for version in versions:
                print("pyhoglake %s, seed %d" % (version, seed), flush=True)
                good, bad = run(version, tool, server, s3, seed)
                passed, failed = passed + good, failed + bad
            _, metrics = services.http_get(server.url + "/metrics")
            repaired = [line for line in metrics.splitlines()
                        if line.startswith("hoglake_stats_repaired_total") and
                        'source="commit"' in line and float(line.split()[-1])]
            if repaired:
                print("the catalog repaired statistics: %s" % repaired)
            passed, failed = passed + (not repaired), failed + bool(repaired)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
