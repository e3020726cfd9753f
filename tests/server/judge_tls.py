#!/usr/bin/env python3
"""build/hoglaked over TLS: both pyhoglake lines as clients, a certificate made by openssl here, and
what is said of files that cannot serve."""
import concurrent.futures
import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
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
        for name in ("good", "other"):
            openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", self.path(name + ".key"), "-out", self.path(name + ".crt"))
        openssl("ec", "-in", self.path("good.key"), "-aes256", "-passout", "pass:x", "-out",
                self.path("locked.key"))
        with open(self.path("nonsense"), "w") as file:
            file.write("no PEM\n")

    def path(self, name):
        return os.path.join(self.directory, name)


def context(files, **changes):
    made = ssl.create_default_context(cafile=files.path("good.crt"))
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def ask(server, files, method, path, body=None, **changes):
    """On a connection of its own; gives (status, body)."""
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60,
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
                              text=True, timeout=60)
        assert done.stdout == "t ['n']\n", (version, done.stdout, done.stderr[-2000:])
        env["SSL_CERT_FILE"] = files.path("other.crt")
        done = subprocess.run([python, "-c", CLIENT, server.url, name + "-no"], env=env,
                              capture_output=True, text=True, timeout=60)
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
        urllib.request.urlopen(server.url + "/livez", context=old, timeout=30)
        raise AssertionError("TLS 1.1 is spoken")
    except urllib.error.URLError as error:
        # the server's answer, not a refusal of our own
        assert re.search("EOF|alert|reset", str(error), re.I), error
    try:
        status = urllib.request.urlopen(server.url.replace("https", "http") + "/livez", timeout=30).status
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
