#!/usr/bin/env python3
"""build/hoglaked over TLS: both pyhoglake lines as clients, certificates made by openssl here, what is
said of files that cannot serve, and files that are renewed while it runs."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.request
import uuid
import warnings

import hoglaked
import judge_pyhoglake
import services

CLIENT = """
import sys, httpx, pyarrow
from pyhoglake import HoglakeClient
with HoglakeClient(sys.argv[1]) as client:
    catalog = client.create_catalog(sys.argv[2], "s3://b/" + sys.argv[2])
    catalog.create_namespace("n")
    table = catalog.namespace("n").create_table("t", pyarrow.schema([("id", pyarrow.int64())]))
    print(table.info().name, [n for n in catalog.list_namespaces()])
"""


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


class Files:
    """A certificate for 127.0.0.1 with its key, and some that are wrong."""

    def __init__(self, directory):
        self.directory = directory
        for name, days in (("good", 2), ("other", 3)):
            openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", str(days), "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", self.path(name + ".key"), "-out", self.path(name + ".crt"))
        openssl("ec", "-in", self.path("good.key"), "-aes256", "-passout", "pass:x", "-out",
                self.path("locked.key"))
        with open(self.path("nonsense"), "w") as file:
            file.write("no PEM\n")

    def path(self, name):
        return os.path.join(self.directory, name)

    def read(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def der(self, name):
        return ssl.PEM_cert_to_DER_cert(self.read(name + ".crt"))


def context(files, **changes):
    made = ssl.create_default_context(cafile=files.path("good.crt"))
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def ask(server, files, method, path, body=None, **changes):
    """On a connection of its own; gives (status, body)."""
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=120,
                                             context=context(files, **changes))
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None,
                           {"Content-Type": "application/json"} if body is not None else {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_pyhoglake_of_both_lines(server, files):
    for version in judge_pyhoglake.VERSIONS:
        python, _ = judge_pyhoglake.environment(version)
        name = "tls-" + version.replace(".", "-")
        env = dict(os.environ, SSL_CERT_FILE=files.path("good.crt"))
        done = subprocess.run([python, "-c", CLIENT, server.url, name], env=env, capture_output=True,
                              text=True, timeout=300)
        assert done.stdout == "t ['n']\n", (version, done.stdout, done.stderr[-2000:])
        env["SSL_CERT_FILE"] = files.path("other.crt")
        done = subprocess.run([python, "-c", CLIENT, server.url, name + "-no"], env=env,
                              capture_output=True, text=True, timeout=300)
        assert done.returncode and "CERTIFICATE_VERIFY_FAILED" in done.stderr, done.stderr[-2000:]


def test_versions_and_plain_http(server, files):
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        got = ask(server, files, "GET", "/v1/info", minimum_version=version, maximum_version=version)
        assert got[0] == 200, got
    old = context(files)
    warnings.simplefilter("ignore", DeprecationWarning)
    old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    try:
        urllib.request.urlopen(server.url + "/livez", context=old, timeout=120)
        raise AssertionError("TLS 1.1 is spoken")
    except urllib.error.URLError as error:
        # the server's answer, not a refusal of our own
        assert re.search("EOF|alert|reset", str(error), re.I), error
    try:
        status = urllib.request.urlopen(server.url.replace("https", "http") + "/livez", timeout=120).status
        raise AssertionError("plain HTTP is answered: %d" % status)
    except (urllib.error.URLError, http.client.HTTPException, OSError):
        pass


def test_large_bodies_both_ways_and_many_at_once(server, files):
    name = "tls-large"
    base = "/v1/catalogs/" + name
    assert ask(server, files, "POST", "/v1/catalogs", {"name": name, "data_path": "s3://b/large"})[0] == 201
    assert ask(server, files, "POST", base + "/namespaces", {"name": "n"})[0] == 201
    assert ask(server, files, "POST", base + "/namespaces/n/tables",
               {"name": "t", "columns": [{"name": "a", "type": "long"}]})[0] == 201

    def commit(number):
        listed = [{"path": "s3://b/large/%d/%d.parquet" % (number, i), "record_count": 1,
                   "file_size_bytes": 100, "column_stats": []} for i in range(3000)]
        body = {"idempotency_key": str(uuid.uuid4()),
                "appends": [{"namespace": "n", "table": "t", "files": listed}]}
        return ask(server, files, "POST", base + "/commit/prepared", body)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(commit, range(16)))
    assert sorted(a["snapshot_id"] for _, a in answers) == list(range(3, 19)), answers
    status, plan = ask(server, files, "GET", base + "/namespaces/n/tables/t/scan")
    assert status == 200 and len({f["data_file"]["path"] for f in plan}) == 48000, status


def test_files_that_cannot_serve(_, files):
    nowhere = files.path("nowhere")
    wrong = [
        ("good.crt", None, "HOGLAKE_TLS_CERT_FILE is set and HOGLAKE_TLS_KEY_FILE is not"),
        (None, "good.key", "HOGLAKE_TLS_KEY_FILE is set and HOGLAKE_TLS_CERT_FILE is not"),
        ("nowhere", "good.key", "read %s: No such file or directory" % nowhere),
        ("good.crt", "nowhere", "read %s: No such file or directory" % nowhere),
        ("", "good.key", "read %s: Is a directory" % files.path("")),
        ("nonsense", "good.key", files.path("nonsense") + " holds no certificate in PEM"),
        ("good.key", "good.key", files.path("good.key") + " holds no certificate in PEM"),
        ("good.crt", "nonsense", files.path("nonsense") + " holds no private key"),
        ("good.crt", "locked.key", files.path("locked.key") + " holds no private key in PEM, or an encrypted"),
        ("good.crt", "other.key", "%s is not the key of the certificate %s" % (
            files.path("other.key"), files.path("good.crt"))),
    ]
    for cert, key, text in wrong:
        env = dict(HOGLAKE_JDBC_URL="postgresql://127.0.0.1:1/none")
        env.update({"HOGLAKE_TLS_CERT_FILE": files.path(cert)} if cert is not None else {})
        env.update({"HOGLAKE_TLS_KEY_FILE": files.path(key)} if key is not None else {})
        done = subprocess.run([hoglaked.HOGLAKED], env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and text in done.stdout + done.stderr, (
            cert, key, done.returncode, done.stdout, done.stderr)


# --- renewed while it runs ---

LOOK_S = 2  # between two looks at the files


class Live:
    """A server whose files the case replaces."""

    def __init__(self, files, directory):
        self.files, self.directory = files, directory

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        """In place, as a plain copy does."""
        with open(self.path(name), "w") as file:
            file.write(text)

    def connect(self):
        """(connection, the certificate it was shown)"""
        trusted = ssl.create_default_context(cadata=self.files.read("good.crt") + self.files.read("other.crt"))
        connection = http.client.HTTPSConnection("127.0.0.1", self.server.port, timeout=60, context=trusted)
        connection.connect()
        return connection, connection.sock.getpeercert(binary_form=True)

    def shown(self):
        connection, shown = self.connect()
        connection.close()
        return shown

    def metric(self, name):
        connection, _ = self.connect()
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return float(re.search(r"^hoglake_tls_%s (\S+)$" % name, text, re.M)[1])

    def told(self, level):
        """The texts of the log lines about the certificate."""
        lines = [json.loads(line) for line in self.server.process.log().splitlines()]
        return [line["msg"] for line in lines if line["logger"] == "hoglake.tls" and line["level"] == level]

    def serves(self, name):
        services.wait_until(lambda: self.shown() == self.files.der(name), 20, name + ".crt is served", 0.2)

    def counts(self, renewals=0, renewal_failures=0):
        wanted = [("renewals_total", renewals), ("renewal_failures_total", renewal_failures)]
        services.wait_until(lambda: all(self.metric(name) == count for name, count in wanted), 20, wanted, 0.2)


def plainly(made):
    made.write("tls.crt", made.files.read("good.crt"))
    made.write("tls.key", made.files.read("good.key"))


def as_kubernetes_does(made, name="good"):
    """A Secret's files are links through ..data, which is replaced in one step."""
    version = tempfile.mkdtemp(prefix="..2026_", dir=made.directory)
    for suffix in (".crt", ".key"):
        shutil.copy(made.files.path(name + suffix), os.path.join(version, "tls" + suffix))
        if not os.path.islink(made.path("tls" + suffix)):
            os.symlink("..data/tls" + suffix, made.path("tls" + suffix))
    before = os.path.realpath(made.path("..data"))
    os.symlink(os.path.basename(version), made.path("..data_tmp"))
    os.rename(made.path("..data_tmp"), made.path("..data"))
    if before != made.path("..data"):
        shutil.rmtree(before)


@contextlib.contextmanager
def live(server, files, lay=plainly):
    """Starts with the good pair, in files of its own."""
    made = Live(files, tempfile.mkdtemp(dir=files.directory))
    lay(made)
    with hoglaked.started(server.env["HOGLAKE_JDBC_URL"], HOGLAKE_TLS_CERT_FILE=made.path("tls.crt"),
                          HOGLAKE_TLS_KEY_FILE=made.path("tls.key")) as made.server:
        assert made.shown() == files.der("good")
        yield made


def answered(connection, path="/v1/info"):
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def end_of(files, name):
    """By openssl, in seconds since 1970."""
    done = subprocess.run(["openssl", "x509", "-in", files.path(name + ".crt"), "-noout", "-enddate"],
                          check=True, capture_output=True, text=True)
    return ssl.cert_time_to_seconds(done.stdout.strip().split("=")[1])


def test_a_renewed_pair_is_served_and_open_connections_go_on(server, files):
    with live(server, files) as made:
        connection, _ = made.connect()
        socket = connection.sock
        assert answered(connection) == 200
        assert made.metric("certificate_expiry_timestamp_seconds") == end_of(files, "good")
        made.write("tls.crt", files.read("other.crt"))
        time.sleep(LOOK_S / 2)  # never both looks of a fault
        made.write("tls.key", files.read("other.key"))
        made.serves("other")
        assert answered(connection) == 200
        assert connection.sock is socket and socket.getpeercert(binary_form=True) == files.der("good")
        connection.close()
        assert made.metric("certificate_expiry_timestamp_seconds") == end_of(files, "other") > end_of(files, "good")
        made.counts(renewals=1)
        assert made.told("WARNING") == [] and len(made.told("INFO")) == 1, made.server.process.log_end()


def test_a_secret_is_swapped_as_kubernetes_does(server, files):
    with live(server, files, as_kubernetes_does) as made:
        for count, name in enumerate(("other", "good"), 1):
            as_kubernetes_does(made, name)
            made.serves(name)
            made.counts(renewals=count)
        assert made.told("WARNING") == []


def test_a_pair_that_cannot_serve_is_told_once_and_the_old_one_goes_on(server, files):
    half = files.read("other.crt")[:-200]
    wrong = [
        (dict(key=files.read("other.key")), "{key} is not the key of the certificate {crt}"),
        (dict(crt=half), "{crt} holds no certificate in PEM"),
        (dict(crt="", key=""), "{crt} holds no certificate in PEM"),
        (dict(key=files.read("locked.key")), "{key} holds no private key in PEM, or an encrypted"),
        (dict(key=None), "read {key}: No such file or directory"),
    ]
    with live(server, files) as made:
        for count, (changes, text) in enumerate(wrong, 1):
            for suffix in ("crt", "key"):
                content = changes.get(suffix, files.read("good." + suffix))
                if content is None:
                    os.remove(made.path("tls." + suffix))
                else:
                    made.write("tls." + suffix, content)
            made.counts(renewal_failures=count)
            if count == 1:
                time.sleep(2 * LOOK_S + 1)  # and not told again
                made.counts(renewal_failures=count)
            told = made.told("WARNING")
            assert len(told) == count and text.format(key=made.path("tls.key"), crt=made.path("tls.crt")) in told[-1], told
            assert made.shown() == files.der("good")
            assert made.metric("certificate_expiry_timestamp_seconds") == end_of(files, "good")
        made.write("tls.crt", files.read("other.crt"))
        made.write("tls.key", files.read("other.key"))
        made.serves("other")
        log = made.server.process.log()
        for name in ("good.key", "other.key", "locked.key"):
            assert not [line for line in files.read(name).splitlines() if len(line) > 40 and line in log], name


def test_handshakes_go_on_while_pairs_come_and_go(server, files):
    with live(server, files, as_kubernetes_does) as made:
        stop, seen = threading.Event(), []

        def client():
            held = []  # connections that outlive their pair
            while not stop.is_set():
                connection, shown = made.connect()
                assert answered(connection) == 200
                seen.append(shown)
                held.append(connection)
                if len(held) > 20:
                    oldest = held.pop(0)
                    assert answered(oldest) == 200
                    oldest.close()
            for connection in held:
                assert answered(connection) == 200
                connection.close()

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            clients = [pool.submit(client) for _ in range(4)]
            try:
                for name in ("other", "good", "other", "good"):
                    as_kubernetes_does(made, name)
                    made.serves(name)
            finally:
                stop.set()
            for done in clients:
                done.result()
        assert set(seen) == {files.der("good"), files.der("other")}
        made.counts(renewals=4)
        print("    %d connections" % len(seen))


def main():
    passed = failed = 0
    directory = tempfile.mkdtemp(prefix="tls-")
    try:
        files = Files(directory)
        with services.postgres() as db:
            db.create_database("hoglake")
            with hoglaked.started("postgresql://127.0.0.1:%d/hoglake" % db.port,
                                  HOGLAKE_TLS_CERT_FILE=files.path("good.crt"),
                                  HOGLAKE_TLS_KEY_FILE=files.path("good.key")) as server:
                for name, case in list(globals().items()):
                    if not name.startswith("test_"):
                        continue
                    try:
                        case(server, files)
                        passed += 1
                        print(name, "ok", flush=True)
                    except Exception:
                        failed += 1
                        traceback.print_exc()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
