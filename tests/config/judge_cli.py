"""The program from outside: its verbs, its exit codes, and that docs/settings.md is what it prints."""
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MILLPOND = os.environ["MILLPOND"]
GOOD = {
    "KAFKA_TOPIC": "events", "REPLICA_COUNT": "1", "POD_NAME": "millpond-0",
    "KAFKA_BOOTSTRAP_SERVERS": "kafka:9092", "DUCKLAKE_TABLE": "events",
    "DUCKLAKE_DATA_PATH": "/nowhere/data/", "MILLPOND_CATALOG": "sqlite:/nowhere/lake.sqlite",
}
counts = {True: 0, False: 0}


def check(what, condition, detail=""):
    counts[bool(condition)] += 1
    if not condition:
        print("FAILED %s %s" % (what, detail))


def millpond(*arguments, **environment):
    done = subprocess.run([MILLPOND] + list(arguments), env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def main():
    code, out, err = millpond("config", "--markdown")
    with open(os.path.join(TOP, "docs/settings.md"), encoding="utf-8") as page:
        check("docs/settings.md is what `millpond config --markdown` prints", page.read() == out)

    for words in (["--help"], ["-h"], ["help"]):
        code, out, err = millpond(*words)
        check("help by " + words[0], code == 0 and not err and "Exit codes" in out and "load" in out)
    for verb in ("run", "check", "demo", "load", "config", "version"):
        code, out, err = millpond(verb, "--help")
        check("help of " + verb, code == 0 and not err and out.startswith("Usage: millpond " + verb))
        check("help " + verb, millpond("help", verb)[1] == out)
    code, out, err = millpond("version")
    check("version", code == 0 and out.startswith("millpond ") and not err)
    check("--version", millpond("--version")[1] == out)

    code, out, err = millpond("runn")
    check("an unknown verb ends with 2 and the list",
          code == 2 and not out and "runn" in err and "config" in err and "check" in err)
    code, out, err = millpond("config", "--nonsense")
    check("an unknown argument ends with 2 and names it", code == 2 and "--nonsense" in err)

    code, out, err = millpond("config", **GOOD)
    check("config of good settings", code == 0 and not err, err)
    for line in ("KAFKA_TOPIC = events", "GROUP_ID = millpond-events-events",
                 "FLUSH_SIZE = 104857600"):
        check("config shows " + line, line in out)
    code, out, err = millpond("config", **dict(GOOD, FLUSH_SIZE="-1"))
    check("config of a bad setting ends with 2, says why and shows the table",
          code == 2 and 'FLUSH_SIZE is "-1"' in err and "KAFKA_TOPIC = events" in out, err)
    code, out, err = millpond("config", **dict(GOOD, MILLPOND_FLUSH_SIZE="1"))
    check("config shows warnings", code == 0 and "did you mean FLUSH_SIZE?" in out, out)

    print("%d passed, %d failed" % (counts[True], counts[False]))
    return 1 if counts[False] else 0


if __name__ == "__main__":
    sys.exit(main())
