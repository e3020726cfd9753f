"""The service under test, between a PostgreSQL and an S3 server of its own."""
import contextlib
import json
import os
import re
import shutil
import signal
import ssl
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests/services"))
import services  # noqa: E402

HOGLAKED = os.path.join(os.environ.get("MP_BUILD_DIR", os.path.join(TOP, "build")), "hoglaked")
QUIET = {"HOGLAKE_EXPIRY_INTERVAL_MS": "0", "HOGLAKE_CLEANUP_INTERVAL_MS": "0",
         "HOGLAKE_COMPACTION_INTERVAL_MS": "0", "HOGLAKE_RETIREMENT_INTERVAL_MS": "0",
         "HOGLAKE_HYDRATOR_INTERVAL_MS": "0", "HOGLAKE_METRICS_INTERVAL_MS": "0"}


class Hoglaked:
    """The program as a child process. It may be stopped, killed and started again."""

    def __init__(self, database_url, s3=None, **settings):
        self.directory = tempfile.mkdtemp(prefix="hoglaked-")
        self.port = services.free_port()
        scheme = "https" if settings.get("HOGLAKE_TLS_CERT_FILE") else "http"
        self.url = "%s://127.0.0.1:%d" % (scheme, self.port)
        self.context = None  # a client's, for https
        if scheme == "https":
            self.context = ssl.create_default_context(cafile=settings["HOGLAKE_TLS_CERT_FILE"])
        self.process = None
        self.env = dict(QUIET, PATH=os.environ.get("PATH", ""), HOGLAKE_PORT=str(self.port),
                        HOGLAKE_ADDRESS="127.0.0.1", HOGLAKE_JDBC_URL=database_url,
                        HOGLAKE_DB_USER="millpond", HOGLAKE_DB_PASSWORD="")
        if s3:
            self.env.update(HOGLAKE_S3_ENDPOINT=s3.endpoint, HOGLAKE_S3_ACCESS_KEY=s3.access_key,
                            HOGLAKE_S3_SECRET_KEY=s3.secret_key, HOGLAKE_HYDRATOR_INTERVAL_MS="1000")
        self.env.update(settings)
        self.env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})

    def start(self):
        self.process = services.Process("hoglaked", [HOGLAKED], self.directory, env=self.env)
        self.process.ready(self.healthy, 120)

    def healthy(self):
        with urllib.request.urlopen(self.url + "/healthz", timeout=5, context=self.context) as answer:
            return answer.status == 200

    def stop(self):
        return self.process.stop() if self.process else None

    def kill(self):
        self.process.kill()

    def lines(self, logger):
        """The whole lines that a logger has written so far."""
        found = [json.loads(line) for line in self.process.log().split("\n")[:-1] if line.startswith("{")]
        return [line for line in found if line["logger"] == logger]

    def stop_with_backends(self, db):
        """The same, and its backends have ended too: only then has what they read been counted."""
        code = self.stop()
        services.wait_until(lambda: not db.query("postgres", "SELECT 1 FROM pg_stat_activity"
                                                 " WHERE application_name LIKE 'hoglaked%'"), 60, "no backend is left")
        return code


@contextlib.contextmanager
def started(database_url, s3=None, **settings):
    server = Hoglaked(database_url, s3, **settings)
    try:
        server.start()
        yield server
        code = server.stop()
        if code not in (0, -signal.SIGKILL):  # a test may have killed it
            raise RuntimeError("hoglaked ended with %d" % code)
    except BaseException:
        if server.process:
            print("--- end of the log of hoglaked\n%s" % server.process.log_end(), file=sys.stderr)
        raise
    finally:
        server.stop()
        shutil.rmtree(server.directory, ignore_errors=True)


def run_cases(cases, world):
    """Runs each (name, case) in a world of its own. Gives how many passed and failed."""
    passed = failed = 0
    for name, case in cases:
        began, verdict = time.monotonic(), "ok"
        try:
            case(world())
            passed += 1
        except Exception:
            failed += 1
            verdict = "FAILED"
            traceback.print_exc()
        print("%-60s %s  %.1f s" % (name, verdict, time.monotonic() - began), flush=True)
    return passed, failed


def request(url, method="GET", body=None, headers=None, raw=None, timeout=120):
    """Gives (status, parsed body or text, headers)."""
    data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
    sent = {"Content-Type": "application/json"} if data is not None else {}
    sent.update(headers or {})
    ask = urllib.request.Request(url, data=data, method=method, headers=sent)
    try:
        with urllib.request.urlopen(ask, timeout=timeout) as answer:
            status, text, got = answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        status, text, got = error.code, error.read(), error.headers
    try:
        return status, json.loads(text) if text else None, got
    except ValueError:
        return status, text.decode("utf-8", "replace"), got


def metric(server, name):
    """One sample of its /metrics, 0 where it has none; name with its labels."""
    text = request(server.url + "/metrics")[1]
    found = re.search(r"^%s (\S+)$" % re.escape(name), text, re.M)
    return float(found[1]) if found else 0.0
