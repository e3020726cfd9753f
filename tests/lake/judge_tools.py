"""What the judge of the lake needs: our program on a string, Parquet files with statistics,
the real extension, and raw SQL on the catalog.

DuckDB brings its own SQLite. Two copies of SQLite in one process break each other's locks on a
file, so raw SQL on a SQLite catalog runs in a process of its own.
"""
import datetime as dt
import decimal
import glob
import json
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time
import uuid

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

UTC = dt.timezone.utc
EPOCH = dt.datetime(1970, 1, 1)


# --- the real extension ---------------------------------------------------------------------

def extension_files():
    """Extension name -> file, from the wheels beside the duckdb package."""
    here = os.path.dirname(os.path.dirname(duckdb.__file__))
    version = "v" + duckdb.__version__
    files = {}
    for package, name in (("sqlite", "sqlite"), ("postgres_scanner", "postgres_scanner"),
                          ("ducklake", "ducklake")):
        found = glob.glob(f"{here}/duckdb_extension_{package}/extensions/{version}/"
                          f"{name}.duckdb_extension")
        if not found:
            raise SystemExit(f"the wheel duckdb-extension-{package} of {version} is missing")
        files[name] = found[0]
    return files


class Duck:
    """A DuckDB process's connection with a lake attached as `lake`."""

    @staticmethod
    def prepare(directory):
        """Once, for this process and those it starts: the files to load, in directory."""
        files = extension_files()
        # its entry point is called sqlite_scanner, so the file must be too
        sqlite = directory + "/sqlite_scanner.duckdb_extension"
        os.symlink(files["sqlite"], sqlite)
        os.environ["MP_JUDGE_EXTENSIONS"] = os.pathsep.join(
            [sqlite, files["postgres_scanner"], files["ducklake"]])

    def __init__(self, catalog, data_path, options="", threads=2):
        self.con = duckdb.connect(":memory:")
        for path in os.environ["MP_JUDGE_EXTENSIONS"].split(os.pathsep):
            self.con.execute(f"LOAD '{path}'")
        self.con.execute(f"SET TimeZone='UTC'; SET threads={threads};"
                         "SET enable_progress_bar=false")
        quoted = catalog.replace("'", "''")
        extra = f", {options}" if options else ""
        self.con.execute(f"ATTACH 'ducklake:{quoted}' AS lake (DATA_PATH '{data_path}'{extra})")
        self.con.execute("USE lake")

    def run(self, sql):
        return self.con.execute(sql).fetchall()

    def one(self, sql):
        rows = self.run(sql)
        assert len(rows) == 1 and len(rows[0]) == 1, rows
        return rows[0][0]

    def files_read(self, sql):
        """How many files the scan of sql opened."""
        text = "\n".join(row[1] for row in self.run("EXPLAIN ANALYZE " + sql))
        key = "Total Files Read:"
        at = text.find(key)
        return int(text[at + len(key):].split()[0]) if at >= 0 else 0

    def close(self):
        self.con.close()


# --- raw SQL on the catalog -------------------------------------------------------------------

class Catalog:
    """A catalog that is not there yet. kind: sqlite or postgres."""

    def __init__(self, kind, directory, postgres=None):
        self.kind, self.directory = kind, directory
        self.data = directory + "/data/"
        os.makedirs(self.data, exist_ok=True)
        if kind == "sqlite":
            self.path = directory + "/catalog.sqlite"
            self.ours = self.duck = "sqlite:" + self.path
        else:
            self.database = "lake_" + uuid.uuid4().hex[:12]
            self.server = postgres
            psql(postgres, f'CREATE DATABASE "{self.database}"')
            conninfo = " ".join(word for word in postgres.split()
                                if not word.startswith("dbname="))
            self.conninfo = f"{conninfo} dbname={self.database}"
            self.ours = self.duck = "postgres:" + self.conninfo

    def sql(self, text):
        """Rows as lists of texts; NULL is None."""
        if self.kind == "postgres":
            return psql(self.conninfo, text)
        code = ("import sqlite3,sys,json\n"
                "c=sqlite3.connect(sys.argv[1],timeout=60,isolation_level=None)\n"
                "rows=c.execute(sys.argv[2]).fetchall()\n"
                "print(json.dumps([[None if v is None else str(v) for v in r] for r in rows]))")
        out = subprocess.run([sys.executable, "-c", code, self.path, text], check=True,
                             capture_output=True, text=True).stdout
        return json.loads(out)

    def value(self, text):
        rows = self.sql(text)
        assert len(rows) == 1 and len(rows[0]) == 1, rows
        return rows[0][0]


def psql(conninfo, text):
    program = os.path.join(os.environ.get("PG_BIN", ""), "psql")
    done = subprocess.run([program, conninfo, "-qAt", "-F", "\x1f", "-R", "\x1e", "-P",
                           "null=\x1d", "-c", text], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    out = done.stdout.rstrip("\n")
    if out == "":
        return []
    return [[None if cell == "\x1d" else cell for cell in row.split("\x1f")]
            for row in out.split("\x1e")]


class Proxy:
    """A line to PostgreSQL that can be cut. `mode` says what becomes of the next COMMIT: through,
    before (cut, the server never hears it), after (the server's answer is kept from us),
    anywhere (cut at some later answer), refuse (new connections are closed at once)."""

    def __init__(self, catalog):
        self.mode, self.delay, self.lines = "through", 0, []
        self.lock = threading.Lock()  # COMMIT is on its way before its line is cut
        words = dict(word.split("=", 1) for word in catalog.conninfo.split())
        self.target = f"{words['host']}/.s.PGSQL.{words['port']}"
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.catalog = Catalog.__new__(Catalog)
        self.catalog.kind, self.catalog.data = catalog.kind, catalog.data
        self.catalog.ours = (f"postgres:host=127.0.0.1 port={self.listener.getsockname()[1]}"
                             f" user={words['user']} dbname={words['dbname']} sslmode=disable"
                             " gssencmode=disable")
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            if self.mode == "refuse":
                client.close()
                continue
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.target)
            line = [client, server, False]
            self.lines.append(line)
            threading.Thread(target=self.forward, args=(line, 0, 1), daemon=True).start()
            threading.Thread(target=self.forward, args=(line, 1, 0), daemon=True).start()

    def cut(self, line):
        for end in line[:2]:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def drop(self):
        for line in self.lines:
            self.cut(line)

    def forward(self, line, source, target):
        try:
            while data := line[source].recv(1 << 20):
                if source == 0 and b"COMMIT\0" in data and self.mode in ("before", "after"):
                    with self.lock:
                        line[2] = self.mode
                        self.mode = "through"
                        if line[2] == "before":
                            break
                        line[target].sendall(data)
                        continue
                if source == 1:
                    with self.lock:
                        if line[2] == "after":
                            break
                if source == 1 and self.mode == "anywhere" and random.random() < 0.4:
                    self.mode = "through"
                    break
                if source == 1 and self.delay:
                    time.sleep(self.delay)
                line[target].sendall(data)
        except OSError:
            pass
        self.cut(line)

    def close(self):
        self.listener.close()
        self.drop()


# --- our program ------------------------------------------------------------------------------

class Refused(Exception):
    def __init__(self, answer):
        super().__init__(f"{answer['code']}: {answer.get('text')}")
        self.code, self.text = answer["code"], answer.get("text", "")
        self.retriable = answer.get("retriable")


class Tool:
    """A process of ours with one lake open."""

    exe = None

    def __init__(self, catalog, schema="main", group="g", topic="t", **more):
        self.catalog = catalog
        self.process = subprocess.Popen([Tool.exe], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)
        self.next, self.tables = {}, {}
        options = dict(catalog=catalog.ours, data_path=catalog.data, schema=schema, group=group,
                       topic=topic)
        options.update(more)
        self.ask("open", **options)

    def send(self, op, **arguments):
        arguments["op"] = op
        self.process.stdin.write(json.dumps(arguments) + "\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"our program ended with {self.process.wait()}")
        answer = json.loads(line)
        if answer["code"] != "ok":
            raise Refused(answer)
        if "table" in answer:
            self.tables[answer["table"]["name"]] = answer["table"]
        return answer

    def ask(self, op, **arguments):
        self.send(op, **arguments)
        return self.receive()

    def claim(self, *partitions):
        read = self.ask("positions", partitions=list(partitions))["positions"]
        self.ask("claim", claims=[[p, next_, epoch, max(next_, 0)] for p, next_, epoch, _ in read])
        for p, next_, _, _ in read:
            self.next[p] = max(next_, 0)

    def evolve(self, table, add=(), widen=(), partition_by="", sort_by=(), **more):
        return self.ask("evolve", table=table, add=[list(c) for c in add], widen=list(widen),
                        partition_by=partition_by, sort_by=list(sort_by), **more)

    def resolve(self, table):
        return self.ask("resolve", table=table)["table"]

    def write(self, table, rows, partition=None):
        """One Parquet file in its place; gives what append wants to know of it."""
        key = self.ask("key", table=table, partition=partition or [])["key"]
        return write_file(self.catalog.data, key, self.tables[table], rows, partition)

    def append(self, table, rows, partition=None, part=0, records=None, more=()):
        """One file, one range of as many offsets as rows."""
        files = [self.write(table, rows, partition)] if rows else []
        return self.commit([(table, files)] + list(more), part, records or len(rows))

    def commit(self, appends, part=0, records=0, trigger="size"):
        if part not in self.next:
            self.claim(part)
        first = self.next[part]
        answer = self.ask("append",
                          appends=[{"table": t, "files": f} for t, f in appends if f],
                          ranges=[[part, first, first + records, records, records, 0, 0]],
                          trigger=trigger)
        self.next[part] = first + records
        return answer

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            code = self.process.wait(120)
            assert code == 0, f"our program ended with {code}"


# --- Parquet files ----------------------------------------------------------------------------

def decimal_parts(name):
    precision, scale = name[8:-1].split(",")
    return int(precision), int(scale)


ARROW = {
    "boolean": pa.bool_(), "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(),
    "int64": pa.int64(), "uint8": pa.uint8(), "uint16": pa.uint16(), "uint32": pa.uint32(),
    "uint64": pa.uint64(), "int128": pa.float64(), "float32": pa.float32(),
    "float64": pa.float64(), "date": pa.date32(), "time": pa.time64("us"),
    "timestamp_s": pa.timestamp("us"), "timestamp_ms": pa.timestamp("ms"),
    "timestamp": pa.timestamp("us"), "timestamp_ns": pa.timestamp("ns"),
    "timestamptz": pa.timestamp("us", "UTC"), "varchar": pa.string(), "json": pa.string(),
    "blob": pa.binary(), "uuid": pa.uuid(),
}


def arrow_type(name):
    return pa.decimal128(*decimal_parts(name)) if name.startswith("decimal") else ARROW[name]


def microseconds(value):
    return (value.replace(tzinfo=None) - EPOCH) // dt.timedelta(microseconds=1)


def plain(name, value):
    """A value as Parquet's PLAIN lays it out; BOOLEAN as a byte."""
    if name.startswith("decimal"):
        precision, scale = decimal_parts(name)
        with decimal.localcontext(prec=80):
            number = int(value.scaleb(scale))
        if precision <= 9:
            return struct.pack("<i", number)
        return struct.pack("<q", number) if precision <= 18 else number.to_bytes(16, "big",
                                                                                 signed=True)
    if name == "boolean":
        return struct.pack("<B", value)
    if name in ("int8", "int16", "int32"):
        return struct.pack("<i", value)
    if name in ("uint8", "uint16", "uint32"):
        return struct.pack("<I", value)
    if name == "int64":
        return struct.pack("<q", value)
    if name == "uint64":
        return struct.pack("<Q", value)
    if name == "float32":
        return struct.pack("<f", value)
    if name in ("float64", "int128"):
        return struct.pack("<d", value)
    if name == "date":
        return struct.pack("<i", (value - EPOCH.date()).days)
    if name == "time":
        return struct.pack("<q", ((value.hour * 60 + value.minute) * 60 + value.second) * 1000000
                           + value.microsecond)
    if name == "timestamp_ms":
        return struct.pack("<q", microseconds(value) // 1000)
    if name == "timestamp_ns":
        return struct.pack("<q", microseconds(value) * 1000)
    if name.startswith("timestamp"):
        return struct.pack("<q", microseconds(value))
    if name == "uuid":
        return value.bytes
    return value if isinstance(value, bytes) else value.encode()


def bounds(name, values):
    """Lower and upper bound, or None: as stats.h orders them."""
    floats = name in ("float32", "float64", "int128")
    kept = [v for v in values if not (floats and v != v)]
    if not kept:
        return None
    if name in ("varchar", "json", "blob", "uuid"):
        kept.sort(key=lambda v: plain(name, v))
    else:
        kept.sort()
    low, high = kept[0], kept[-1]
    if floats and low == 0:
        low = -0.0
    if floats and high == 0:
        high = 0.0
    return low, high


def write_file(root, key, table, rows, partition=None, leave_out=()):
    columns = [c for c in table["columns"] if c["type"] != "other" and c["name"] not in leave_out]
    fields, arrays, stats = [], [], []
    for c in columns:
        values = [row.get(c["name"]) for row in rows]
        fields.append(pa.field(c["name"], arrow_type(c["type"]),
                               metadata={b"PARQUET:field_id": str(c["id"]).encode()}))
        stored = [v.bytes if isinstance(v, uuid.UUID) else v for v in values]
        if c["type"] == "uuid":
            arrays.append(pa.ExtensionArray.from_storage(pa.uuid(), pa.array(stored,
                                                                            pa.binary(16))))
        else:
            arrays.append(pa.array(stored, arrow_type(c["type"])))
        present = [v for v in values if v is not None]
        found = bounds(c["type"], present)
        entry = dict(id=c["id"], type=c["type"], nulls=len(values) - len(present), bytes=64,
                     nans=sum(1 for v in present if isinstance(v, float) and v != v))
        if found:
            entry["min"], entry["max"] = (plain(c["type"], v).hex() for v in found)
        stats.append(entry)
    path = root + key
    os.makedirs(os.path.dirname(path), exist_ok=True)
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path,
                   compression="zstd", store_schema=False)
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        file.seek(size - 8)
        footer = struct.unpack("<I", file.read(4))[0]
    return dict(key=key, rows=len(rows), bytes=size, footer=footer, stats=stats,
                partition=partition or [])
