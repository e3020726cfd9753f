"""An HTTP proxy in front of one server that keeps a list of what was asked and plays faults.

    with http_proxy.proxy("127.0.0.1", 8080) as proxy:
        proxy.fault(http_proxy.is_post("/commit/prepared"), http_proxy.lose_answer)
        ... proxy.url ...
        assert proxy.asked("POST", "/commit/prepared") == 1

What is recorded is method and path, without the query. The Host header is passed on as it came, so
that signed requests stay good.
"""
import contextlib
import http.client
import http.server
import json
import socket
import struct
import threading

HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade"}


class Exchange:
    """One request on its way; a fault gets it and decides what happens."""

    def __init__(self, handler, body):
        self.handler, self.body = handler, body
        self.method, self.path = handler.command, handler.path

    def forward(self):
        """Sends it on. Gives (status, headers, body)."""
        proxy = self.handler.server.proxy
        upstream = http.client.HTTPConnection(proxy.host, proxy.port, timeout=120)
        try:
            upstream.putrequest(self.method, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.handler.headers.items():
                if name.lower() not in HOP | {"expect"}:
                    upstream.putheader(name, value)
            upstream.endheaders(self.body or None)
            answer = upstream.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            upstream.close()

    def relay(self, status, headers, body):
        self.handler.send_response_only(status)
        for name, value in headers:
            if name.lower() not in HOP | {"content-length"}:
                self.handler.send_header(name, value)
        if self.method == "HEAD":
            length = dict((name.lower(), value) for name, value in headers).get("content-length", 0)
        else:
            length = len(body)
        self.handler.send_header("Content-Length", str(length))
        self.handler.end_headers()
        if self.method != "HEAD":
            self.handler.wfile.write(body)

    def pass_on(self):
        try:
            answer = self.forward()
        except OSError:  # the server is away: so are we, for this client
            self.cut()
            return
        self.relay(*answer)

    def cut(self):
        """Ends the connection with a reset."""
        self.handler.close_connection = True
        with contextlib.suppress(OSError):
            self.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                               struct.pack("ii", 1, 0))
            self.handler.connection.close()


# --- faults --------------------------------------------------------------------------------------

def lose_answer(exchange):
    """The server does it, the client never hears of it."""
    with contextlib.suppress(OSError):
        exchange.forward()
    exchange.cut()


def lose_request(exchange):
    exchange.cut()


def answer(status, body=b"", **headers):
    """Answers in the server's place; Retry_After="2" makes a header."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
        headers.setdefault("Content_Type", "application/json")

    def play(exchange):
        exchange.relay(status, [(name.replace("_", "-"), value) for name, value in headers.items()],
                       body)
    return play


def after(call):
    """Does something first, then lets it pass."""
    def play(exchange):
        call()
        exchange.pass_on()
    return play


def is_post(end):
    return lambda method, path: method == "POST" and path.endswith(end)


def is_put(part=""):
    return lambda method, path: method == "PUT" and part in path


# --- the proxy -----------------------------------------------------------------------------------

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle_one_request(self):
        with contextlib.suppress(OSError, ValueError):  # a client that is killed in mid-word
            super().handle_one_request()
            return
        self.close_connection = True

    def handle_any(self):
        proxy = self.server.proxy
        path = self.path.split("?")[0]
        fault, cut_body = proxy.note(self.command, path)
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size // 2 if cut_body else size)
        exchange = Exchange(self, body)
        proxy.bodies.append((self.command, path, body))
        if cut_body:
            exchange.cut()
        elif fault:
            fault(exchange)
        else:
            exchange.pass_on()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = handle_any


class HttpProxy:
    def __init__(self, host, port):
        self.host, self.port = host, port
        self.requests, self.bodies, self.faults = [], [], []
        self.lock = threading.Lock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.proxy = self
        self.address = "127.0.0.1:%d" % self.server.server_port
        self.url = "http://" + self.address
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def fault(self, match, play, times=1, skip=0):
        """The next `times` requests that match(method, path), after `skip` of them, get the fault.
        play "half": half of the body is read, then the connection is reset."""
        with self.lock:
            self.faults.append([match, play, times, skip])

    def note(self, method, path):
        with self.lock:
            self.requests.append((method, path))
            for fault in self.faults:
                match, play, times, skip = fault
                if not times or not match(method, path):
                    continue
                if skip:
                    fault[3] -= 1
                    continue
                fault[2] -= 1
                return (None, True) if play == "half" else (play, False)
        return None, False

    def asked(self, method=None, end=""):
        with self.lock:
            return sum(1 for has, path in self.requests
                       if (not method or has == method) and path.endswith(end))

    def forget(self):
        with self.lock:
            self.requests.clear()

    def left(self):
        """Faults that were not played."""
        with self.lock:
            return sum(fault[2] for fault in self.faults)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@contextlib.contextmanager
def proxy(host, port):
    made = HttpProxy(host, port)
    try:
        yield made
    finally:
        made.close()
