#!/usr/bin/env python3
"""The real pyhoglake against build/hoglaked: its own live suites, unmodified.

Both released lines are fetched as source distributions and run from there, each with a Python it
supports in an environment below build/env. A skipped test counts as a failure. Arguments, if any,
are versions to run alone.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree

import hoglaked
import services

VERSIONS = {"1.3.11": (3, 11), "1.4.7": (3, 12)}
SUITES = ["tests/test_integration.py", "tests/qe_live_adversarial.py"]
PACKAGES = ["pytest", "pytest-httpx", "hypothesis", "boto3"]


def python_at_least(version):
    """An interpreter of that version or a later one, or None."""
    names = ["python3.%d" % minor for minor in range(version[1], version[1] + 3)] + ["python3"]
    places = os.environ.get("PATH", "").split(os.pathsep)
    places += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin")))
    for name in names:
        for place in places:
            path = os.path.join(place, name)
            if not os.access(path, os.X_OK):
                continue
            check = "import sys, venv, ensurepip; sys.exit(sys.version_info[:2] < %r)" % (version,)
            if subprocess.run([path, "-c", check], capture_output=True).returncode == 0:
                return path
    return None


def environment(version):
    """Gives (python, directory of the unpacked source distribution)."""
    home = os.path.join(services.ENV, "pyhoglake-" + version)
    venv, source = os.path.join(home, "venv"), os.path.join(home, "pyhoglake-" + version)
    python = os.path.join(venv, "bin/python")
    if os.path.exists(os.path.join(home, "ready")):
        return python, source
    base = python_at_least(VERSIONS[version])
    if not base:
        raise RuntimeError("pyhoglake %s needs Python %d.%d" % ((version,) + VERSIONS[version]))
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(home)
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([base, "-m", "venv", venv], check=True)
    subprocess.run(pip + ["install", "pyhoglake[fast-upload]==" + version] + PACKAGES, check=True)
    subprocess.run(pip + ["download", "--no-deps", "--no-binary", ":all:", "-d", home,
                          "pyhoglake==" + version], check=True)
    with tarfile.open(glob.glob(os.path.join(home, "*.tar.gz"))[0]) as archive:
        archive.extractall(home)
    open(os.path.join(home, "ready"), "w").close()
    return python, source


def run(version, server, s3):
    """Gives (passed, failed)."""
    python, source = environment(version)
    results = os.path.join(services.ENV, "pyhoglake-%s.xml" % version)
    env = dict(os.environ, HOGLAKE_URL=server.url, HOGLAKE_S3_ENDPOINT=s3.endpoint,
               HOGLAKE_S3_ACCESS_KEY=s3.access_key, HOGLAKE_S3_SECRET_KEY=s3.secret_key)
    if os.path.exists(results):
        os.remove(results)
    done = subprocess.run([python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider",
                           "--junitxml", results] + SUITES, cwd=source, env=env,
                          capture_output=True, text=True)
    failed = total = 0
    for suite in xml.etree.ElementTree.parse(results).getroot().iter("testsuite"):
        total += int(suite.get("tests", 0))
        failed += sum(int(suite.get(key, 0)) for key in ("failures", "errors", "skipped"))
    if failed or done.returncode:
        print(done.stdout[-20000:])
    print("pyhoglake %s: %d passed, %d failed" % (version, total - failed, failed), flush=True)
    return total - failed, failed or int(total == 0)


def main():
    passed = failed = 0
    with services.postgres() as db, services.versitygw() as s3:
        db.create_database("hoglake")
        url = "postgresql://127.0.0.1:%d/hoglake" % db.port
        with hoglaked.started(url, s3) as server:
            for version in sys.argv[1:] or VERSIONS:
                counts = run(version, server, s3)
                passed, failed = passed + counts[0], failed + counts[1]
            status, _, _ = hoglaked.request(server.url + "/livez")
            log = server.process.log()
            errors = len(re.findall(r'"status": ?500', log))
            if status != 200 or errors:
                print("%d answers of 500; /livez says %s" % (errors, status))
                failed += 1
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
