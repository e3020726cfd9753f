"""The polled include list: what it keeps, what it only counts, and a start that waits for it."""
import contextlib
import http.server
import json
import signal
import threading
import time

import lakes
import services

WRITTEN = "millpond_records_written_total"
TOKEN = "hunter2-is-secret"


class Endpoint:
    """Serves a list that the test changes; keeps the headers it was asked with."""

    def __init__(self, values=None, status=200):
        self.values, self.status, self.headers = values, status, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.headers.append(dict(self.headers))
                body = json.dumps(outer.values).encode()
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/values" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def polled(self, more=2):
        """Returns when `more` polls have come that began after the call."""
        want = len(self.headers) + more
        services.wait_until(lambda: len(self.headers) >= want, 120, "%d polls" % want)


@contextlib.contextmanager
def endpoint(values=None, status=200):
    served = Endpoint(values, status)
    try:
        yield served
    finally:
        served.server.shutdown()
        served.server.server_close()


def settings(kafka, topic, lake, served, mode, **more):
    return services.environment(
        kafka, topic, **lake.env(), MILLPOND_FILTER_KEEP_FIELD_NAME="team",
        MILLPOND_FILTER_VALUES="1,2", MILLPOND_INCLUDE_VALUES_URL=served.url,
        MILLPOND_INCLUDE_VALUES_MODE=mode, MILLPOND_INCLUDE_VALUES_POLL_INTERVAL_S="0.2",
        MILLPOND_INCLUDE_VALUES_REMOVAL_POLLS="2",
        MILLPOND_INCLUDE_VALUES_AUTH_HEADER_NAME="X-Flags-Token",
        MILLPOND_INCLUDE_VALUES_AUTH_TOKEN=TOKEN, **more)


def events(first, count=10):
    """`count` records, one of each team from 0 on, with numbers from `first` on."""
    return ['{"n":%d,"team":%d}' % (first + i, i) for i in range(count)]


def kept(lake):
    return lake.query("SELECT team, count(*) FROM lake.events GROUP BY 1 ORDER BY 1")


def new_topic(kafka):
    topic = lakes.unique("include")
    kafka.create_topic(topic)
    return topic


def test_shadow_keeps_the_static_list(kafka, local_lake):
    topic = new_topic(kafka)
    services.produce(kafka.bootstrap, topic, events(0))
    with endpoint([2, 3, 4, 5]) as served:
        with services.run_millpond(settings(kafka, topic, local_lake, served, "shadow")) as millpond:
            millpond.wait_metric(WRITTEN, 2)
            millpond.wait_metric("millpond_include_values_size", 4)
            assert millpond.metric("millpond_include_values_mode", mode="shadow") == 1
            assert millpond.metric("millpond_include_values_shadow_only_static") == 1
            assert millpond.metric("millpond_include_values_shadow_only_remote") == 3
            assert served.headers[0]["X-Flags-Token"] == TOKEN
            assert TOKEN not in millpond.log()
    assert kept(local_lake) == [(1, 1), (2, 1)]


def test_shadow_does_not_wait_for_its_endpoint(kafka, local_lake):
    topic = new_topic(kafka)
    services.produce(kafka.bootstrap, topic, events(0))
    with endpoint(status=500) as served:
        with services.run_millpond(settings(kafka, topic, local_lake, served, "shadow")) as millpond:
            millpond.wait_metric(WRITTEN, 2)
            millpond.wait_metric("millpond_include_values_poll_failures_total", 2)
            assert millpond.logged("Include values poll failed: the answer is 500, not 200")


def test_authoritative_follows_the_served_list(kafka, local_lake):
    topic = new_topic(kafka)
    services.produce(kafka.bootstrap, topic, events(0))
    with endpoint([3, 4, 5, 6]) as served:
        env = settings(kafka, topic, local_lake, served, "authoritative")
        with services.run_millpond(env) as millpond:
            millpond.wait_metric(WRITTEN, 6)  # 1 and 2 are pins
            assert millpond.metric("millpond_include_values_pinned") == 2
            assert millpond.metric("millpond_include_values_pinned_only") == 2

            served.values = [3, 4, 5, 7]  # 7 enters at once, 6 leaves after two polls
            millpond.wait_metric("millpond_include_values_changes_total", 1, action="remove")
            services.produce(kafka.bootstrap, topic, events(10))
            millpond.wait_metric(WRITTEN, 12)

            served.values = []
            millpond.wait_metric("millpond_include_values_refused_total", 2, reason="empty")
            served.values = ["a", "b"]
            millpond.wait_metric("millpond_include_values_refused_total", 2, reason="type_flip")
            served.values = [7, 8]  # lacks three of four; what is new still enters
            millpond.wait_metric("millpond_include_values_refused_total", 2, reason="bulk_removal")
            services.produce(kafka.bootstrap, topic, events(20))
            millpond.wait_metric(WRITTEN, 19)
            assert millpond.logged("Include value added: 7")
            assert millpond.logged("Include value removed: 6")
            assert TOKEN not in millpond.log()
    assert kept(local_lake) == [(1, 3), (2, 3), (3, 3), (4, 3), (5, 3), (6, 1), (7, 2), (8, 1)]


def test_authoritative_waits_for_its_first_list(kafka, local_lake):
    topic = new_topic(kafka)
    services.produce(kafka.bootstrap, topic, events(0))
    with endpoint([9], status=503) as served:
        env = settings(kafka, topic, local_lake, served, "authoritative")
        with services.run_millpond(env, ready=False) as millpond:
            services.wait_until(lambda: len(served.headers) > 3, 120, "polls")
            assert millpond.get("/readyz")[0] == 503
            assert millpond.get("/healthz")[0] == 200
            assert millpond.metric(WRITTEN) == 0
            served.status = 200
            millpond.wait_metric(WRITTEN, 3)
    assert kept(local_lake) == [(1, 1), (2, 1), (9, 1)]


def test_authoritative_gives_up_in_time(kafka, local_lake, tmp_path):
    topic = new_topic(kafka)
    with endpoint(["a"]) as served:
        env = settings(kafka, topic, local_lake, served, "authoritative",
                       MILLPOND_INCLUDE_VALUES_STARTUP_TIMEOUT_S="1")
        millpond = services.start_millpond(env, str(tmp_path))
        assert millpond.wait_exit(120) == 5
        assert "MILLPOND_INCLUDE_VALUES_URL gave no list that could be accepted within 1 s" in \
            millpond.log()
        assert "type_flip" in millpond.log()
        assert TOKEN not in millpond.log()


def test_a_start_that_waits_can_be_stopped(kafka, local_lake, tmp_path):
    topic = new_topic(kafka)
    with endpoint(status=500) as served:
        env = settings(kafka, topic, local_lake, served, "authoritative")
        millpond = services.start_millpond(env, str(tmp_path))
        services.wait_until(lambda: len(served.headers) > 1, 120, "polls")
        began = time.monotonic()
        millpond.signal(signal.SIGTERM)
        assert millpond.wait_exit(120) == 0
        assert time.monotonic() - began < 40
