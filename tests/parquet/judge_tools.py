"""What the judges of Parquet files share: what is right, what a tool answers, cases by seed."""
import fcntl
import json
import math
import os
import struct
import subprocess
import tempfile
import traceback


POM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "java/pom.xml")


class Failed(Exception):
    pass


def check(condition, *what):
    if not condition:
        raise Failed(" ".join(str(part) for part in what))


def equal(got, want, *what):
    if got != want and isinstance(got, list) and isinstance(want, list):
        check(len(got) == len(want), *what, "have", len(got), "not", len(want))
        at = next(i for i, pair in enumerate(zip(got, want)) if pair[0] != pair[1])
        got, want, what = got[at], want[at], what + ("at", at)
    check(got == want, *what, "is", repr(got)[:300], "not", repr(want)[:300])


def ask(program, *arguments):
    """Runs a tool that prints JSON objects, one a line."""
    done = subprocess.run([program] + [str(part) for part in arguments], capture_output=True)
    check(done.returncode == 0, "the tool ended with", done.returncode, done.stderr[-2000:])
    return [json.loads(line) for line in done.stdout.splitlines()]


def maven(main, *arguments, **environment):
    """Runs a class of java/, which Maven compiles before; one at a time, since all share what is
    compiled and fetched. Gives (exit code, output)."""
    with open(POM) as pom:
        fcntl.flock(pom, fcntl.LOCK_EX)
        done = subprocess.run(
            ["mvn", "-B", "-q", "-f", POM, "compile", "exec:java", "-Djudge.main=" + main,
             "-Dexec.args=" + " ".join(arguments)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            env=dict(os.environ, **environment))
    return done.returncode, done.stdout


def text(hexed):
    """A text that a tool printed as hex; anything else is none."""
    return bytes.fromhex(hexed).decode() if isinstance(hexed, str) else ""


def as_float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0] if math.isfinite(value) else value


def run(cases):
    """cases: [(function(directory, seed), seed)]. Gives the exit code."""
    passed = failed = 0
    for case, seed in cases:
        with tempfile.TemporaryDirectory() as directory:
            try:
                case(directory, seed)
                passed += 1
            except Exception as fault:
                failed += 1
                told = fault if isinstance(fault, Failed) else traceback.format_exc()
                print("%s(%d): %s" % (case.__name__, seed, told), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0
