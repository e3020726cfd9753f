#!/usr/bin/env python3
"""The real pyhoglake against build/hoglaked: its own live suites, unmodified.

Both released lines are fetched as source distributions and run from there, each with a Python it
supports in an environment below build/env, both at once. A skipped test counts as a failure.
Arguments, if any, are versions to run alone. Where no Python is new enough for a line, that line
has failed; with HOGLAKED_WITHOUT_312=1 it is left out, and a line says so.
"""
import concurrent.futures
import fcntl
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
SETUP_SECONDS_MAX, SUITE_SECONDS_MAX = 420, 600


def python_at_least(version):
    """An interpreter of that version or a later one, or None."""
    names = ["python3.%d" % minor for minor in range(version[1], version[1] + 3)] + ["python3"]
    places = os.environ.get("PATH", "").split(os.pathsep)
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    places += sorted(glob.glob(os.path.join(pyenv, "versions/3.*/bin")))
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
    """Gives (python, directory of the unpacked source distribution). Several judges may ask for it at
    once: one makes it, the others wait."""
    with open(os.path.join(services.ENV, "pyhoglake-%s.lock" % version), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return made_environment(version)


def made_environment(version):
    home = os.path.join(services.ENV, "pyhoglake-" + version)
    venv, source = os.path.join(home, "venv"), os.path.join(home, "pyhoglake-" + version)
    python = os.path.join(venv, "bin/python")
    if os.path.exists(os.path.join(home, "ready")):
        return python, source
    base = python_at_least(VERSIONS[version])
    assert base  # main() has looked
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(home)
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
    for command in ([base, "-m", "venv", venv],
                    pip + ["install", "pyhoglake[fast-upload]==" + version] + PACKAGES,
                    pip + ["download", "--no-deps", "--no-binary", ":all:", "-d", home,
                           "pyhoglake==" + version]):
        subprocess.run(command, check=True, timeout=SETUP_SECONDS_MAX)
    with tarfile.open(glob.glob(os.path.join(home, "*.tar.gz"))[0]) as archive:
        archive.extractall(home)
    open(os.path.join(home, "ready"), "w").close()
    return python, source


def run_suites(version, server, s3):
    """Gives (passed, failed, what is to be read of a failure)."""
    python, source = environment(version)
    results = os.path.join(server.directory, "pyhoglake-%s.xml" % version)
    env = dict(os.environ, HOGLAKE_URL=server.url, HOGLAKE_S3_ENDPOINT=s3.endpoint,
               HOGLAKE_S3_ACCESS_KEY=s3.access_key, HOGLAKE_S3_SECRET_KEY=s3.secret_key)
    done = subprocess.run([python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider",
                           "--junitxml", results] + SUITES, cwd=source, env=env,
                          capture_output=True, text=True, timeout=SUITE_SECONDS_MAX)
    failed = total = 0
    for suite in xml.etree.ElementTree.parse(results).getroot().iter("testsuite"):
        total += int(suite.get("tests", 0))
        failed += sum(int(suite.get(key, 0)) for key in ("failures", "errors", "skipped"))
    bad = failed or done.returncode or not total
    return total - failed, failed or int(bool(bad)), done.stdout[-20000:] if bad else ""


def run(version, server, s3):
    """The same, whatever goes wrong."""
    try:
        return run_suites(version, server, s3)
    except (OSError, subprocess.SubprocessError, xml.etree.ElementTree.ParseError) as error:
        return 0, 1, "%s: %s" % (type(error).__name__, error)


def chosen():
    """Gives (versions to run, failures)."""
    versions, failed = [], 0
    for version in sys.argv[1:] or VERSIONS:
        if python_at_least(VERSIONS[version]):
            versions.append(version)
        elif os.environ.get("HOGLAKED_WITHOUT_312") == "1":
            print("pyhoglake %s: left out, there is no Python %d.%d" %
                  ((version,) + VERSIONS[version]))
        else:
            print("pyhoglake %s: there is no Python %d.%d; HOGLAKED_WITHOUT_312=1 leaves it out" %
                  ((version,) + VERSIONS[version]))
            failed += 1
    return versions, failed


def main():
    versions, failed = chosen()
    passed = 0
    with services.postgres() as db, services.versitygw() as s3:
        db.create_database("hoglake")
        url = "postgresql://127.0.0.1:%d/hoglake" % db.port
        with hoglaked.started(url, s3) as server:
            with concurrent.futures.ThreadPoolExecutor(len(VERSIONS)) as pool:
                counts = pool.map(lambda version: run(version, server, s3), versions)
                for version, (good, bad, output) in zip(versions, counts):
                    if output:
                        print(output)
                    print("pyhoglake %s: %d passed, %d failed" % (version, good, bad), flush=True)
                    passed, failed = passed + good, failed + bad
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
