#!/usr/bin/env python3
"""judge_otlp.py - reads what millpond exports with OpenTelemetry's own protobuf classes."""
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2

MILLPOND = os.environ["MILLPOND"]
TOKEN = "phc_not_for_the_log"


class Endpoint:
    def __init__(self, statuses=()):
        self.requests, self.statuses = [], list(statuses)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((self.path, dict(self.headers), body))
                self.send_response(outer.statuses.pop(0) if outer.statuses else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/i/v1/logs" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def resource_logs(self):
        for path, headers, body in self.requests:
            request = logs_service_pb2.ExportLogsServiceRequest()
            request.ParseFromString(body)
            # what is unknown to the schema would be lost, and what is not minimal gets shorter
            assert request.SerializeToString() == body, "not the bytes that others would write"
            yield from request.resource_logs

    def records(self):
        """(logger, record) of all that came."""
        return [(scope.scope.name, record) for one in self.resource_logs()
                for scope in one.scope_logs for record in scope.log_records]


def value(any_value):
    return getattr(any_value, any_value.WhichOneof("value"))


def load(directory, endpoint, lines, **more):
    """Loads lines; gives what was logged, as objects, and the exit code."""
    events = os.path.join(directory, "events.ndjson")
    with open(events, "wb") as file:
        file.write(b"\n".join(lines) + b"\n")
    env = dict({"PATH": os.environ["PATH"], "MILLPOND_CATALOG": "sqlite:%s/lake" % directory,
                "DUCKLAKE_DATA_PATH": "%s/data/" % directory, "DUCKLAKE_TABLE": "events",
                "POSTHOG_PROJECT_TOKEN": TOKEN, "POSTHOG_LOGS_ENDPOINT": endpoint.url}, **more)
    done = subprocess.run([MILLPOND, "load", events], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120)
    output = done.stdout.decode()
    assert TOKEN not in output
    logged = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return logged, done.returncode


def test_lines_are_what_was_logged(directory):
    endpoint = Endpoint()
    before = time.time()
    logged, code = load(directory, endpoint, [b'{"n":1}', b'{"bad', b'[1]', b'"caf\xc3\xa9\xff"'],
                        MILLPOND_SERVICE_INSTANCE_ID="pod-7",
                        OTEL_RESOURCE_ATTRIBUTES="region=eu%20west,service.name=other")
    assert code == 0, logged
    assert endpoint.requests and all(path == "/i/v1/logs" for path, _, _ in endpoint.requests)
    for _, headers, _ in endpoint.requests:
        assert headers["Authorization"] == "Bearer " + TOKEN
        assert headers["Content-Type"] == "application/x-protobuf"
    bad = [(logger, record) for logger, record in endpoint.records()
           if record.body.string_value.startswith("Skipping")]
    lines = [line for line in logged if line["msg"].startswith("Skipping")]
    assert len(bad) == len(lines) == 3
    for (logger, record), line in zip(sorted(bad, key=lambda pair: pair[1].time_unix_nano), lines):
        assert logger == line["logger"] == "millpond.records"
        assert record.body.string_value == line["msg"]
        assert record.severity_number == 13 and record.severity_text == "WARN"
        assert before - 1 < record.time_unix_nano / 1e9 < time.time() + 1
        assert record.observed_time_unix_nano == record.time_unix_nano
        attributes = {pair.key: value(pair.value) for pair in record.attributes}
        assert attributes == {key: line[key] for key in line
                              if key not in ("ts", "level", "logger", "msg")}
        assert isinstance(attributes["offset"], int)


def test_resource_says_who_we_are(directory):
    endpoint = Endpoint()
    load(directory, endpoint, [b"[1]"], MILLPOND_SERVICE_VERSION="9.8.7",
         MILLPOND_SERVICE_INSTANCE_ID="pod-7",
         OTEL_RESOURCE_ATTRIBUTES="region=eu%20west,service.name=other")
    resources = [{pair.key: value(pair.value) for pair in one.resource.attributes}
                 for one in endpoint.resource_logs()]
    assert resources
    for resource in resources:
        assert resource.pop("messaging.destination.name")
        assert resource.pop("messaging.kafka.consumer.group")
        assert resource == {
            "service.name": "millpond", "service.namespace": "millpond", "service.version": "9.8.7",
            "service.instance.id": "pod-7", "messaging.system": "kafka", "region": "eu west",
            "millpond.ducklake.table": "events", "millpond.ducklake.data_path": directory + "/data/"}


def test_refused_export_does_not_stop_the_work(directory):
    endpoint = Endpoint([401])
    logged, code = load(directory, endpoint, [b"[1]", b'{"n":1}'])
    assert code == 0
    assert any(line["msg"] == "Log export fails, lines are lost: the answer is 401"
               for line in logged), logged


def main():
    tests = [item for name, item in sorted(globals().items()) if name.startswith("test_")]
    failed = 0
    for test in tests:
        with tempfile.TemporaryDirectory() as directory:
            try:
                test(directory)
            except Exception as error:  # the other tests go on
                failed += 1
                print("FAILED %s: %s: %s" % (test.__name__, type(error).__name__, error))
    print("%d passed, %d failed" % (len(tests) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
