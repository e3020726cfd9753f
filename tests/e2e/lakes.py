"""Lakes as the end-to-end tests see them, and an independent reader of what went in."""
import contextlib
import datetime
import itertools
import json
import os
import sqlite3

import services

_numbers = itertools.count(1)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def unique(name):
    return "%s_%d_%d" % (name, os.getpid(), next(_numbers))


def new_database(db):
    database = unique("lake")
    db.create_database(database)
    return "postgres:" + db.conninfo(database)


class Lake:
    """Where a test's table lives, how millpond is told, and how DuckDB and SQL look at it."""

    def __init__(self, catalog, data_path, db=None, s3=None):
        self.catalog, self.data_path, self.db, self.s3 = catalog, data_path, db, s3

    def env(self, endpoint=None):
        env = {"MILLPOND_CATALOG": self.catalog, "DUCKLAKE_DATA_PATH": self.data_path}
        return dict(env, **(self.s3.ducklake_env(endpoint) if self.s3 else {}))

    def duckdb(self, **options):
        """A new connection: what somebody sees who opens the lake now."""
        return services.duckdb_lake(self.catalog, None, self.s3, **options)

    def query(self, sql, *arguments, **options):
        connection = self.duckdb(**options)
        try:
            return connection.execute(sql, list(arguments)).fetchall()
        finally:
            connection.close()

    def value(self, sql, *arguments, **options):
        return self.query(sql, *arguments, **options)[0][0]

    def execute(self, *statements):
        connection = self.duckdb(DATA_PATH=self.data_path)
        try:
            for statement in statements:
                connection.execute(statement)
        finally:
            connection.close()

    def sql(self, sql, *arguments):
        """Asks the catalog's own tables, past DuckDB."""
        kind, where = self.catalog.split(":", 1)
        if kind == "sqlite":
            connection = sqlite3.connect("file:%s?mode=ro" % where, uri=True, timeout=20)
            try:
                return connection.execute(sql.replace("%s", "?"), arguments).fetchall()
            finally:
                connection.close()
        return self.db.query(self.database(), sql, *arguments)

    def database(self):
        return dict(part.split("=", 1) for part in self.catalog.split(":", 1)[1].split())["dbname"]

    def columns(self, table="events"):
        """{name: type} of the live table, in DuckLake's type names."""
        return dict(self.sql(
            "SELECT c.column_name, c.column_type FROM ducklake_column c "
            "JOIN ducklake_table t ON t.table_id = c.table_id "
            "WHERE t.table_name = %s AND t.end_snapshot IS NULL AND c.end_snapshot IS NULL "
            "AND c.parent_column IS NULL ORDER BY c.column_order", table))

    def snapshot(self):
        """The newest snapshot's id; -1 while there is no lake yet."""
        try:
            return self.sql("SELECT max(snapshot_id) FROM ducklake_snapshot")[0][0]
        except Exception as error:  # the catalog may not have been made yet
            if "ducklake_snapshot" in str(error) or "unable to open" in str(error):
                return -1
            raise

    @contextlib.contextmanager
    def watch(self):
        """Gives a function that tells the newest snapshot's id over one open connection; on
        PostgreSQL only."""
        connection = self.db.connect(self.database())
        cursor = connection.cursor()

        def newest():
            cursor.execute("SELECT to_regclass('ducklake_snapshot')")
            if not cursor.fetchone()[0]:
                return -1
            cursor.execute("SELECT coalesce(max(snapshot_id), -1) FROM ducklake_snapshot")
            return cursor.fetchone()[0]

        try:
            yield newest
        finally:
            connection.close()

    def rows(self, table="events"):
        """Rows that the catalog counts in live files; 0 while there is no table."""
        try:
            return self.sql(
                "SELECT coalesce(sum(f.record_count), 0) FROM ducklake_data_file f "
                "JOIN ducklake_table t ON t.table_id = f.table_id "
                "WHERE t.table_name = %s AND t.end_snapshot IS NULL AND f.end_snapshot IS NULL",
                table)[0][0]
        except Exception as error:
            if "ducklake_" in str(error) or "unable to open" in str(error):
                return 0
            raise

    def files(self, table="events"):
        """Paths of the live files, relative to the data path, as the catalog has them."""
        return [row[0] for row in self.sql(
            "SELECT f.path FROM ducklake_data_file f JOIN ducklake_table t "
            "ON t.table_id = f.table_id WHERE t.table_name = %s AND t.end_snapshot IS NULL "
            "AND f.end_snapshot IS NULL ORDER BY f.data_file_id", table)]

    def file_paths(self, table="events"):
        """The same as paths that can be opened, by DuckDB's own listing."""
        return [row[0] for row in self.query(
            "SELECT data_file FROM ducklake_list_files('lake', '%s')" % table)]

    def objects(self):
        """Everything below the data path, known to the catalog or not."""
        if self.s3:
            bucket, prefix = self.data_path[len("s3://"):].split("/", 1)
            return set("s3://%s/%s" % (bucket, key) for key in self.s3.keys(bucket, prefix))
        return set(os.path.join(folder, name)
                   for folder, _, names in os.walk(self.data_path) for name in names)


def load(lake, lines, folder, name="input.ndjson", code=0, table="events", **settings):
    """Runs `millpond load` on lines (bytes or text) and gives its output, both streams together.
    A second call with another name is another flush."""
    path = os.path.join(str(folder), name)
    with open(path, "wb") as out:
        for line in lines:
            out.write((line if isinstance(line, bytes) else line.encode()) + b"\n")
    env = dict(lake.env(), DUCKLAKE_TABLE=table, **{k: str(v) for k, v in settings.items()})
    done, out, err = services.millpond_once(env, "load", path)
    assert done == code, "exit code %d:\n%s%s" % (done, out, err)
    return out + err


def top_level(line):
    """[(key, value, raw text of the value)] of a compact JSON object, by Python's json module."""
    decoder = json.JSONDecoder()
    fields, at = [], 1
    while line[at] != "}":
        key, at = decoder.raw_decode(line, at)
        value, end = decoder.raw_decode(line, at + 1)
        fields.append((key, value, line[at + 1:end]))
        at = end + 1 if line[end] == "," else end
    return fields


def timestamp_us(text):
    """Microseconds since 1970 of an ISO 8601 text, exactly."""
    return (datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) -
            EPOCH) // datetime.timedelta(microseconds=1)
