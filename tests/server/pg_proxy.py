"""A TCP proxy in front of PostgreSQL that reads the protocol and cuts a connection exactly at the COMMIT
of a transaction that has made a snapshot, or dropped a catalog.

    before  the COMMIT never reaches the server: the transaction is not in
    after   the server has committed, its answer never reaches the client: the transaction is in

After  PostgreSQL documentation, "Message Formats": Parse names a statement, Bind says which runs.
"""
import contextlib
import socket
import struct
import threading


class Connection:
    def __init__(self, proxy, client):
        self.proxy, self.client = proxy, client
        self.server = socket.create_connection(("127.0.0.1", proxy.server_port))
        for end in (self.client, self.server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.statements = {}  # name -> text
        self.makes_snapshot = self.waits_for_commit = False
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self.up, self.down)]
        for thread in self.threads:
            thread.start()

    def end(self):
        """The other thread may be about to read: a descriptor that was closed would be another's by then."""
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.end()
        for thread in self.threads:
            thread.join()
        for end in (self.client, self.server):
            end.close()

    def messages(self, end, untyped):
        """Whole messages as they come; the first ones of a client have no type byte."""
        held = b""
        while True:
            head = 4 if untyped else 5
            if len(held) >= head:
                size = struct.unpack(">I", held[head - 4:head])[0] + head - 4
                if len(held) >= size:
                    yield held[:size]
                    held, untyped = held[size:], False
                    continue
            piece = end.recv(65536)
            if not piece:
                return
            held += piece

    def is_commit(self, message):
        if message[:1] == b"P":
            name, text = message[5:].split(b"\0")[:2]
            self.statements[name] = text
        if message[:1] != b"B":
            return False
        text = self.statements.get(message[5:].split(b"\0")[1], b"")
        if text.startswith(b"BEGIN"):
            self.makes_snapshot = False
        if b"INSERT INTO hog_snapshot " in text or text.startswith(b"DELETE FROM hog_catalog "):
            self.makes_snapshot = True
        return text == b"COMMIT" and self.makes_snapshot

    def up(self):
        try:
            for message in self.messages(self.client, True):
                cut = self.proxy.take() if self.is_commit(message) else None
                if cut == "before":
                    break
                self.waits_for_commit |= cut == "after"
                self.server.sendall(message)
        except OSError:
            pass
        self.end()

    def down(self):
        try:
            for message in self.messages(self.server, False):
                if self.waits_for_commit and message[:1] == b"C" and message[5:] == b"COMMIT\0":
                    break
                self.client.sendall(message)
        except OSError:
            pass
        self.end()


class Proxy:
    def __init__(self, server_port):
        self.server_port, self.lock, self.armed, self.cuts = server_port, threading.Lock(), None, 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port = self.listener.getsockname()[1]
        self.connections = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError):  # one that has left, or that finds no server
                self.connections.append(Connection(self, client))

    def arm(self, cut):
        """The next COMMIT is cut."""
        with self.lock:
            assert self.armed is None
            self.armed = cut

    def take(self):
        with self.lock:
            cut, self.armed = self.armed, None
            self.cuts += cut is not None
            return cut

    def close(self):
        self.listener.close()
        for connection in self.connections:
            connection.close()


@contextlib.contextmanager
def proxy(server_port):
    made = Proxy(server_port)
    try:
        yield made
    finally:
        made.close()
