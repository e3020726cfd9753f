#!/usr/bin/env python3
"""Judges the S3 driver with parts that are not ours: versitygw serves, boto3 reads.

    judge_s3.py STORE_TOOL [--versitygw PATH]

STORE_TOOL is the executable of store_tool.c. versitygw (github.com/versity/versitygw, v1.8.0) is
looked for at --versitygw, in build/env/bin and on PATH. Needs boto3, and openssl for a certificate. Everything lives in a temporary folder; servers run on free ports and are ended
by their process id. The last line is "N passed, N failed".
"""

import argparse
import hashlib
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import boto3
import botocore.config
import botocore.exceptions

import services

ACCESS, SECRET, BUCKET = "judge", "judge-secret/+=", "bkt"
MIB = 1 << 20
ODD_KEYS = [
    "with blank/a b", "with=equals/d=2024-01-01/x", "percent/%41%zz%", "plus/a+b", "unicode/\u00fc\u20ac\U0001f600",
    "punctuation/!'()*~-_.@:,;$&", "quotes/\"x\"/<y>&amp;", "brackets/[a]{b}|^`", "deep/" + "/".join("abcdefgh"),
    "dots/.../..x/x..",
]


def find_versitygw(given):
    for place in (given, os.path.join(services.ENV, "bin/versitygw"), shutil.which("versitygw")):
        if place and os.access(place, os.X_OK):
            return place
    sys.exit("versitygw not found: give --versitygw PATH")


class Server:
    """One versitygw over a folder of its own."""

    def __init__(self, versitygw, folder, name, extra=()):
        self.root, meta = folder / f"{name}-root", folder / f"{name}-meta"
        for d in (self.root / BUCKET, meta):
            d.mkdir(parents=True)
        self.port = services.free_port()
        self.log = open(folder / f"{name}.log", "wb")
        command = [versitygw, "--port", f"127.0.0.1:{self.port}", "--region", "us-east-1", "--keep-alive",
                   "--virtual-domain", "gw.localhost", "--quiet", *extra,
                   "posix", "--sidecar", str(meta), str(self.root)]
        env = dict(os.environ, ROOT_ACCESS_KEY=ACCESS, ROOT_SECRET_KEY=SECRET)
        self.process = subprocess.Popen(command, env=env, stdout=self.log, stderr=self.log)
        services.wait_until(self.listens, 60, "versitygw listens")

    def listens(self):
        socket.create_connection(("127.0.0.1", self.port), 10).close()
        return True

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


class Judge:
    def __init__(self, tool, versitygw, folder):
        self.tool, self.versitygw, self.folder = tool, versitygw, folder
        self.server = Server(versitygw, folder, "plain")
        self.s3 = self.client(f"http://127.0.0.1:{self.server.port}")
        self.random = random.Random(20240229)

    def client(self, url, **more):
        config = botocore.config.Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1})
        return boto3.client("s3", endpoint_url=url, aws_access_key_id=ACCESS, aws_secret_access_key=SECRET,
                            region_name="us-east-1", config=config, **more)

    def run(self, *args, check=True, limit_files=False, **settings):
        env = {"STORE_URL": f"s3://{BUCKET}/pre/fix/", "STORE_ENDPOINT": f"127.0.0.1:{self.server.port}",
               "STORE_ACCESS_KEY": ACCESS, "STORE_SECRET_KEY": SECRET, "STORE_REGION": "us-east-1"}
        env.update(settings)
        before = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))) if limit_files else None
        done = subprocess.run([self.tool, *args], env=env, capture_output=True, timeout=120, preexec_fn=before)
        text = done.stderr.decode(errors="replace")
        assert SECRET not in text and "Signature=" not in text, f"a secret in {text!r}"
        if check:
            assert done.returncode == 0, f"{args[0]} failed: {text}"
        return done

    def file(self, size, seed=0):
        path = self.folder / f"file-{size}-{seed}"
        if not path.exists():
            path.write_bytes(random.Random(size * 31 + seed).randbytes(size))
        return path

    def bytes_of(self, key, s3=None):
        return (s3 or self.s3).get_object(Bucket=BUCKET, Key="pre/fix/" + key)["Body"].read()

    def uploads(self, prefix):
        return [upload for upload in self.s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
                if upload["Key"].startswith("pre/fix/" + prefix)]

    def abort_uploads(self, prefix):
        """Does what a lifecycle rule does: ends what a killed client or a lost answer left. A busy
        server may still be at a dead client's request, so it is asked until it has been quiet."""
        quiet = 0
        while quiet < 5:
            uploads = self.uploads(prefix)
            for upload in uploads:
                try:
                    self.s3.abort_multipart_upload(Bucket=BUCKET, Key=upload["Key"],
                                                   UploadId=upload["UploadId"])
                except botocore.exceptions.ClientError as e:  # completed meanwhile
                    assert e.response["Error"]["Code"] == "NoSuchUpload"
            quiet = 0 if uploads else quiet + 1
            time.sleep(0.2)

    # --- what is put is there -------------------------------------------------------------------

    def check_sizes(self):
        for size in (0, 1, 8 * MIB - 1, 8 * MIB, 8 * MIB + 1, 16 * MIB, 30 * MIB):
            key, path = f"size/{size}", self.file(size)
            self.run("put", key, str(path))
            assert self.bytes_of(key) == path.read_bytes(), f"{size} bytes differ"
            etag = self.s3.head_object(Bucket=BUCKET, Key="pre/fix/" + key)["ETag"]
            assert ("-" in etag) == (size > 8 * MIB), f"{size} bytes have etag {etag}"
        assert self.uploads("size/") == []

    def check_64_objects_at_once(self):
        args = []
        for i in range(64):
            args += [f"many/o{i:02}", str(self.file(1000 * i, i))]
        args += ["many/large", str(self.file(30 * MIB))]
        self.run("put", *args)
        for key, path in zip(args[::2], args[1::2]):
            assert self.bytes_of(key) == pathlib.Path(path).read_bytes(), key

    def check_keys(self):
        args = []
        for i, key in enumerate(ODD_KEYS):
            args += [key, str(self.file(100, i))]
        self.run("put", *args)
        for i, key in enumerate(ODD_KEYS):
            want = self.file(100, i).read_bytes()
            assert self.bytes_of(key) == want, f"boto3 reads other bytes for {key}"
            assert self.run("get", key, "0", "1000").stdout == want, f"we read other bytes for {key}"
            listed = self.run("list", key).stdout.decode().splitlines()
            assert f"100 {key}" in listed, f"{key} is listed as {listed}"

    def check_gets(self):
        whole = self.file(30 * MIB).read_bytes()
        self.run("put", "ranges", str(self.file(30 * MIB)))
        for offset, size in ((0, 8), (5, 1000), (30 * MIB - 8, 8), (30 * MIB - 8, 100), (30 * MIB, 8),
                             (-1, 8), (-1, 40 * MIB), (0, 30 * MIB), (0, 0)):
            want = whole[-size:] if offset < 0 else whole[offset:offset + size]
            got = self.run("get", "ranges", str(offset), str(size)).stdout
            assert got == want, f"offset {offset} size {size}: {len(got)} bytes"
        done = self.run("get", "none", "0", "8", check=False)
        assert done.returncode == 1 and b"not found: GET s3://bkt/pre/fix/none: answered 404 NoSuchKey" in done.stderr

    def check_list_pages(self):
        want = []
        folder = self.server.root / BUCKET / "pre" / "fix" / "pages"
        folder.mkdir(parents=True)
        for i in range(2500):
            (folder / f"p={i:05} +%").write_bytes(b"x" * (i % 7))
            want.append(f"{i % 7} pages/p={i:05} +%")
        assert self.run("list", "pages/").stdout.decode().splitlines() == want
        assert self.run("list", "pages/p=024").stdout.decode().splitlines() == want[2400:2500]
        assert self.run("list", "no-such-thing/").stdout == b""

    def check_list_order(self):
        for key in ("order/a/b", "order/a-b", "order/a0", "order/a"):
            self.s3.put_object(Bucket=BUCKET, Key="pre/fix/" + key, Body=b"") if key != "order/a" else None
        got = [line.split(" ", 1)[1] for line in self.run("list", "order/").stdout.decode().splitlines()]
        assert got == ["order/a-b", "order/a/b", "order/a0"], got

    def check_removes(self):
        self.run("put", "gone", str(self.file(10)))
        self.run("rm", "gone")
        self.run("rm", "gone")
        try:
            self.bytes_of("gone")
        except botocore.exceptions.ClientError as e:
            assert e.response["Error"]["Code"] == "NoSuchKey"
        else:
            raise AssertionError("it is still there")

    def check_boto3_writes_we_read(self):
        for i, key in enumerate(ODD_KEYS):
            self.s3.put_object(Bucket=BUCKET, Key="pre/fix/theirs/" + key, Body=b"theirs %d" % i)
            assert self.run("get", "theirs/" + key, "0", "100").stdout == b"theirs %d" % i, key
        listed = self.run("list", "theirs/").stdout.decode().splitlines()
        assert sorted(listed) == sorted(f"{len(b'theirs %d' % i)} theirs/{key}" for i, key in enumerate(ODD_KEYS))

    def check_virtual_host_style(self):
        self.run("put", "vhost/a b+", str(self.file(9 * MIB)), STORE_ENDPOINT=f"gw.localhost:{self.server.port}")
        assert self.bytes_of("vhost/a b+") == self.file(9 * MIB).read_bytes()
        got = self.run("list", "vhost/", STORE_ENDPOINT=f"http://gw.localhost:{self.server.port}").stdout
        assert got.decode() == f"{9 * MIB} vhost/a b+\n"

    def check_bucket_root_and_deep_prefix(self):
        self.run("put", "at/root", str(self.file(5)), STORE_URL=f"s3://{BUCKET}")
        self.run("put", "x", str(self.file(6)), STORE_URL=f"s3://{BUCKET}/a=1/b c")
        assert self.s3.get_object(Bucket=BUCKET, Key="at/root")["ContentLength"] == 5
        assert self.s3.get_object(Bucket=BUCKET, Key="a=1/b c/x")["ContentLength"] == 6

    # --- without a local disk (no file may grow by a byte) --------------------------------------

    def check_no_local_disk(self):
        env = {"HOME": "/nonexistent", "TMPDIR": "/nonexistent"}
        self.run("put", "diskless", str(self.file(30 * MIB)), limit_files=True, **env)
        got = self.run("get", "diskless", "0", str(30 * MIB), limit_files=True, **env).stdout
        assert hashlib.sha256(got).digest() == hashlib.sha256(self.file(30 * MIB).read_bytes()).digest()

    # --- refusals -------------------------------------------------------------------------------

    def check_refusals(self):
        cases = [
            (dict(STORE_SECRET_KEY="wrong"), "refused", "SignatureDoesNotMatch"),
            (dict(STORE_ACCESS_KEY="nobody"), "refused", "access key"),
            (dict(STORE_URL="s3://nobucket/"), "refused", "NoSuchBucket"),
            (dict(STORE_REGION="eu-west-1"), "refused", ""),
            (dict(STORE_ENDPOINT=f"127.0.0.1:{services.free_port()}", STORE_ATTEMPTS="2"), "io", "attempt 2 of 2"),
        ]
        for settings, code, text in cases:
            for size in (10, 20 * MIB):
                done = self.run("put", "turned-away", str(self.file(size)), check=False, **settings)
                message = done.stderr.decode()
                assert done.returncode == 1 and f"\n{code}: " in message and text in message, message
                assert "refused: " not in message or "attempt" not in message, message
        assert self.uploads("turned-away") == []

    # --- ends at the wrong moment ---------------------------------------------------------------

    def check_killed_client(self):
        want = self.file(30 * MIB).read_bytes()
        env = {"STORE_URL": f"s3://{BUCKET}/pre/fix/", "STORE_ENDPOINT": f"127.0.0.1:{self.server.port}",
               "STORE_ACCESS_KEY": ACCESS, "STORE_SECRET_KEY": SECRET}
        whole = 0
        for i in range(12):
            process = subprocess.Popen([self.tool, "put", f"killed/{i}", str(self.file(30 * MIB))], env=env,
                                       stderr=subprocess.DEVNULL)
            time.sleep(0.02 + 0.03 * i)
            process.send_signal(signal.SIGKILL)
            process.wait()
            try:
                assert self.bytes_of(f"killed/{i}") == want, f"half of an object under killed/{i}"
                whole += 1
            except botocore.exceptions.ClientError as e:
                assert e.response["Error"]["Code"] == "NoSuchKey"
        self.abort_uploads("killed/")
        print(f"    {whole} of 12 were whole, the others absent")

    def check_server_that_pauses(self):
        process = subprocess.Popen(
            [self.tool, "put", "paused", str(self.file(30 * MIB))], stderr=subprocess.PIPE,
            env={"STORE_URL": f"s3://{BUCKET}/pre/fix/", "STORE_ENDPOINT": f"127.0.0.1:{self.server.port}",
                 "STORE_ACCESS_KEY": ACCESS, "STORE_SECRET_KEY": SECRET, "STORE_REQUEST_MS": "2000",
                 "STORE_ATTEMPTS": "10"})
        time.sleep(0.05)
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(5)
        self.server.process.send_signal(signal.SIGCONT)
        _, text = process.communicate(timeout=120)
        assert process.returncode == 0, text
        assert self.bytes_of("paused") == self.file(30 * MIB).read_bytes()
        self.abort_uploads("paused")

    # --- TLS ------------------------------------------------------------------------------------

    def check_tls(self):
        cert, key, other = (self.folder / n for n in ("cert.pem", "key.pem", "other.pem"))
        for out, out_key in ((cert, key), (other, self.folder / "other-key.pem")):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                            "/CN=judge", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", out_key, "-out", out],
                           check=True, capture_output=True)
        server = Server(self.versitygw, self.folder, "tls", ["--cert", str(cert), "--key", str(key)])
        try:
            endpoint = f"https://127.0.0.1:{server.port}"
            s3 = self.client(endpoint, verify=str(cert))
            for size in (0, 1000, 30 * MIB):
                path = self.file(size)
                self.run("put", f"tls/{size}", str(path), STORE_ENDPOINT=endpoint, STORE_CA_FILE=str(cert))
                assert self.bytes_of(f"tls/{size}", s3) == path.read_bytes()
            got = self.run("get", "tls/1000", "0", "1000", STORE_ENDPOINT=f"127.0.0.1:{server.port}",
                           STORE_USE_SSL="1", AWS_CA_BUNDLE=str(cert)).stdout
            assert got == self.file(1000).read_bytes()
            for ca in ({}, {"STORE_CA_FILE": str(other)}, {"STORE_CA_FILE": "/nonexistent"}):
                done = self.run("put", "untrusted", str(self.file(10)), check=False, STORE_ENDPOINT=endpoint, **ca)
                assert done.returncode == 1 and b"bad configuration: " in done.stderr, done.stderr
                assert b"not trusted" in done.stderr and b"attempt" not in done.stderr, done.stderr
        finally:
            server.stop()

    def run_all(self):
        passed = failed = 0
        for name in [n for n in dir(self) if n.startswith("check_")]:
            begin = time.monotonic()
            try:
                getattr(self, name)()
                passed += 1
                print(f"ok     {name} ({time.monotonic() - begin:.1f} s)")
            except Exception as e:  # noqa: BLE001 - a judge goes on to the next case
                failed += 1
                print(f"FAILED {name}: {type(e).__name__}: {e}")
        print(f"{passed} passed, {failed} failed")
        return failed == 0 and passed > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("--versitygw")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="millpond-judge-") as folder:
        judge = Judge(os.path.abspath(args.tool), find_versitygw(args.versitygw), pathlib.Path(folder))
        try:
            good = judge.run_all()
        finally:
            judge.server.stop()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
