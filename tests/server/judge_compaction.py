#!/usr/bin/env python3
"""Deferred statistics and compaction of build/hoglaked, with pyarrow as writer and as judge.

Every case is a function test_*(lake); arguments choose cases by a part of their name. HOGLAKED_SEED
repeats the times at which a server is killed.
"""
import concurrent.futures
import decimal
import http.client
import io
import os
import random
import struct
import sys
import threading
import time
import urllib.parse
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

import hoglaked
import services

SEED = int(os.environ.get("HOGLAKED_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
DB = None
BUCKET = "lake"
ROW_ID, ROW_ID_FIELD = "_hog_row_id", b"2147483646"
CODECS = ["snappy", "zstd", "none", "gzip", "lz4", "brotli"]
COLUMNS = [{"name": "id", "type": "long", "nullable": False}, {"name": "s", "type": "string"},
           {"name": "f", "type": "double"}]


class Lake:
    """A catalog of its own with namespace n and table t."""

    def __init__(self, server, s3, columns=COLUMNS):
        self.server, self.s3 = server, s3
        self.name = "c" + uuid.uuid4().hex[:12]
        self.catalog = "/catalogs/" + self.name
        self.prefix = "%s/" % self.name
        self.table = self.catalog + "/namespaces/n/tables/t"
        self.ok("POST", "/catalogs", {"name": self.name,
                                      "data_path": "s3://%s/%s" % (BUCKET, self.prefix)})
        self.ok("POST", self.catalog + "/namespaces", {"name": "n"})
        self.ok("POST", self.catalog + "/namespaces/n/tables", {"name": "t", "columns": columns})
        self.next_id = 0

    def ok(self, method, path, body=None):
        status, answer, _ = hoglaked.request(self.server.url + "/v1" + path, method, body)
        assert status in (200, 201), (method, path, status, answer)
        return answer

    def put(self, data, name=None):
        key = self.prefix + (name or uuid.uuid4().hex) + ".parquet"
        self.s3.client().put_object(Bucket=BUCKET, Key=key, Body=data)
        return "s3://%s/%s" % (BUCKET, key)

    def get(self, path):
        url = urllib.parse.urlparse(path)
        return self.s3.client().get_object(Bucket=url.netloc, Key=url.path[1:])["Body"].read()

    def read(self, path):
        return pq.read_table(io.BytesIO(self.get(path)))

    def rows(self, count=10):
        """A table of new rows, with field ids."""
        ids = range(self.next_id, self.next_id + count)
        self.next_id += count
        columns = [("id", pa.int64(), list(ids)), ("s", pa.string(), ["s%05d" % i for i in ids]),
                   ("f", pa.float64(), [None if i % 3 == 0 else i / 2 for i in ids])]
        schema = pa.schema([pa.field(name, kind, nullable=name != "id",
                                     metadata={b"PARQUET:field_id": b"%d" % (i + 1)})
                            for i, (name, kind, _) in enumerate(columns)])
        return pa.Table.from_arrays([pa.array(v, t) for _, t, v in columns], schema=schema)

    def write(self, table, codec="zstd", group_rows=4, **more):
        """Puts a file and gives what registers it, without statistics."""
        out = io.BytesIO()
        pq.write_table(table, out, compression=codec, row_group_size=group_rows)
        data = out.getvalue()
        return dict({"path": self.put(data), "record_count": table.num_rows,
                     "file_size_bytes": len(data),
                     "footer_size": struct.unpack("<I", data[-8:-4])[0]}, **more)

    def register(self, *files, **more):
        return self.ok("POST", self.catalog + "/commit", dict(
            {"appends": [{"namespace": "n", "table": "t", "files": list(files)}]}, **more))

    def append(self, count=10, codec="zstd", **more):
        return self.register(self.write(self.rows(count), codec, **more))

    def files(self, snapshot=None):
        return self.ok("GET", self.table + "/files" +
                       ("?snapshot=%d" % snapshot if snapshot is not None else ""))

    def head(self):
        return self.ok("GET", self.catalog)["head_snapshot_id"]

    def compact(self, batch=10):
        return self.ok("POST", "%s/maintenance/compact?batch=%d" % (self.catalog, batch))

    def wait_state(self, state, seconds=120):
        services.wait_until(lambda: all(f["stats_state"] == state for f in self.files()), seconds,
                            "files to be " + state)

    def scan(self, query=""):
        return self.ok("GET", self.table + "/scan" + query)

    def all_rows(self, snapshot=None):
        """{row id: (id, s, f)}, where every row's id must be there once."""
        found = {}
        for file in self.files(snapshot):
            table = self.read(file["path"])
            if file.get("explicit_row_ids"):
                row_ids = table[ROW_ID].to_pylist()
            else:
                row_ids = range(file["row_id_start"], file["row_id_start"] + table.num_rows)
            assert table.num_rows == file["record_count"]
            for row_id, row in zip(row_ids, table.to_pylist()):
                assert row_id not in found
                found[row_id] = (row["id"], row["s"], row["f"])
        return found


def check_totals(lake):
    """The table's own sums are those of its live files."""
    files, table = lake.files(), lake.ok("GET", lake.table)
    assert table["record_count"] == sum(f["record_count"] for f in files), table
    assert table["file_count"] == len(files), table
    assert table["file_size_bytes"] == sum(f["file_size_bytes"] for f in files), table


def bound(stats, field, which):
    for entry in stats:
        if entry["field_id"] == field:
            return entry[which]
    raise KeyError(field)


# --- deferred statistics ----------------------------------------------------------------------

def test_hydrator_reads_footers(lake):
    lake.append(40)
    lake.wait_state("provided")
    entry, = lake.scan("?include=column_stats")
    stats = entry["data_file"]["column_stats"]
    assert [s["field_id"] for s in stats] == [1, 2, 3], stats
    assert bound(stats, 1, "lower_bound") == 0
    assert bound(stats, 1, "upper_bound") == 39
    assert bound(stats, 2, "upper_bound") == "s00039"
    assert bound(stats, 3, "upper_bound") == 19.0
    assert stats[2]["null_count"] == 14 and stats[2]["value_count"] == 40


TYPES = [  # column type, Arrow type, lowest and highest value, as the catalog shows them
    ("boolean", pa.bool_(), [False, True], [False, True]),
    ("int8", pa.int8(), [-128, 5], [-128, 5]),
    ("int16", pa.int16(), [-3, 32767], [-3, 32767]),
    ("int", pa.int32(), [-1, 305419896], [-1, 305419896]),
    ("long", pa.int64(), [-2**63, 2**62], [-2**63, 2**62]),
    ("uint8", pa.uint8(), [1, 255], [1, 255]),
    ("uint16", pa.uint16(), [0, 65535], [0, 65535]),
    ("uint32", pa.uint32(), [7, 4294967295], [7, 4294967295]),
    ("uint64", pa.uint64(), [127, 2**64 - 1], [127, 2**64 - 1]),
    ("float", pa.float32(), [-2.5, 1.0], [-2.5, 1.0]),
    ("double", pa.float64(), [-1e300, 0.1], [-1e300, 0.1]),
    ("date", pa.date32(), [-1, 20701], ["1969-12-31", "2026-09-05"]),
    ("time", pa.time64("us"), [0, 49062123456], ["00:00", "13:37:42.123456"]),
    ("timestamp_ms", pa.timestamp("ms"), [0, 1788609600123],
     ["1970-01-01T00:00", "2026-09-05T12:00:00.123"]),
    ("timestamp", pa.timestamp("us"), [0, 1788609600000500],
     ["1970-01-01T00:00", "2026-09-05T12:00:00.000500"]),
    ("timestamp_ns", pa.timestamp("ns"), [0, 1788609600123456789],
     ["1970-01-01T00:00", "2026-09-05T12:00:00.123456789"]),
    ("timestamptz", pa.timestamp("us", "UTC"), [0, 1788609600000000],
     ["1970-01-01T00:00:00Z", "2026-09-05T12:00:00Z"]),
    ("string", pa.string(), ["", "h\u00e9llo"], ["", "h\u00e9llo"]),
    ("binary", pa.binary(), [b"\x00", b"\x00\x01\xff"], ["AA==", "AAH/"]),
    ("uuid", pa.binary(16), [b"\0" * 16, bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7")],
     ["00000000-0000-0000-0000-000000000000", "f79c3e09-677c-4bbd-a479-3f349cb785e7"]),
    ("decimal", pa.decimal128(10, 2), [decimal.Decimal("-1.28"), decimal.Decimal("12.34")],
     [-1.28, 12.34]),
    ("long", pa.int32(), [-7, 7], [-7, 7]),             # promoted after the file was written
    ("double", pa.float32(), [-0.5, 0.5], [-0.5, 0.5]),  # the same
    ("timestamp", pa.timestamp("ns"), [0, 1], [None, None]),  # means something else
    ("int", pa.date32(), [0, 1], [None, None]),
]


def test_bounds_of_every_type(lake):
    columns = [dict({"name": "c%d" % i, "type": kind},
                    **({"type_params": {"precision": 10, "scale": 2}} if kind == "decimal" else {}))
               for i, (kind, _, _, _) in enumerate(TYPES)]
    lake = Lake(lake.server, lake.s3, columns)
    schema = pa.schema([pa.field("c%d" % i, kind,
                                 metadata={b"PARQUET:field_id": b"%d" % (i + 1)})
                        for i, (_, kind, _, _) in enumerate(TYPES)])
    arrays = [pa.array([values[1], None, values[0]], kind) if not pa.types.is_temporal(kind) else
              pa.array([values[1], None, values[0]],
                       pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)
              for _, kind, values, _ in TYPES]
    lake.register(lake.write(pa.Table.from_arrays(arrays, schema=schema)))
    lake.wait_state("provided")
    stats = lake.scan("?include=column_stats")[0]["data_file"]["column_stats"]
    for i, (kind, arrow, _, shown) in enumerate(TYPES):
        got = [bound(stats, i + 1, which) for which in ("lower_bound", "upper_bound")]
        assert got == shown, (kind, arrow, got, shown)


def test_hydrator_does_without_a_footer_size(lake):
    file = lake.write(lake.rows(4000))
    del file["footer_size"]
    lake.register(file)
    lake.wait_state("provided")


def test_hydrator_fails_what_is_no_file_and_goes_on(lake):
    gone = dict(lake.write(lake.rows()), path="s3://%s/%sgone.parquet" % (BUCKET, lake.prefix))
    junk = dict(gone, path=lake.put(b"no Parquet at all" * 10), file_size_bytes=170)
    tiny = dict(gone, path=lake.put(b"x"), file_size_bytes=1)
    del tiny["footer_size"], junk["footer_size"]
    short = lake.write(lake.rows())
    short["file_size_bytes"] += 100
    good = lake.write(lake.rows())
    lake.register(gone, junk, tiny, short, good)
    services.wait_until(lambda: not any(f["stats_state"] == "pending" for f in lake.files()), 120,
                        "no file to be pending")
    states = {f["path"]: f["stats_state"] for f in lake.files()}
    assert states.pop(good["path"]) == "provided" and set(states.values()) == {"failed"}, states


def test_files_without_field_ids_block_renames(lake):
    table = lake.rows().replace_schema_metadata(None)
    table = table.cast(pa.schema([pa.field(f.name, f.type, f.nullable) for f in table.schema]))
    lake.register(lake.write(table))
    lake.wait_state("provided")
    status, answer, _ = hoglaked.request(
        lake.server.url + "/v1" + lake.table + "/alter", "POST",
        {"ops": [{"op": "rename_column", "from": "s", "to": "t"}]})
    assert (status, answer["error"]) == (409, "idless_files_present"), (status, answer)
    assert lake.compact()["groups_compacted"] == 0


# --- compaction -------------------------------------------------------------------------------

def test_compaction_keeps_rows_and_their_ids(lake):
    for codec in CODECS:
        lake.append(10, codec)
    before, head = lake.all_rows(), lake.head()
    rewritten = lambda: hoglaked.metric(lake.server, "hoglake_compaction_files_rewritten_total")
    earlier, result = rewritten(), lake.compact()
    assert (result["groups_compacted"], result["files_in"], result["files_out"]) == (1, 6, 1), result
    assert rewritten() == earlier + 6
    file, = lake.files()
    assert file["explicit_row_ids"] and file["row_id_start"] == 0
    assert file["record_count"] == 60 and file["stats_state"] == "provided"
    assert lake.all_rows() == before and len(before) == 60
    assert lake.all_rows(head) == before
    field = pq.read_schema(io.BytesIO(lake.get(file["path"]))).field(ROW_ID)
    assert field.metadata[b"PARQUET:field_id"] == ROW_ID_FIELD
    assert file["footer_size"] == struct.unpack("<I", lake.get(file["path"])[-8:-4])[0]
    stats = lake.scan("?include=column_stats")[0]["data_file"]["column_stats"]
    assert bound(stats, 1, "upper_bound") == 59, stats
    check_totals(lake)
    # Nothing of it is data to a changefeed; the snapshot says what it was.
    changes = lake.ok("GET", "%s/changes?from_snapshot=%d" % (lake.table, head))
    assert changes["files"] == [] and changes["delete_files"] == []
    for _ in range(5):
        lake.append(10)
    before = lake.all_rows()
    assert lake.compact()["groups_compacted"] == 1
    assert lake.all_rows() == before and len(before) == 110
    check_totals(lake)


def test_compacted_files_are_compacted_again_with_their_equals(lake):
    sizes, written = [], 0
    for _ in range(6):
        for _ in range(5):
            lake.append(10)
        result = lake.compact()
        assert result["groups_compacted"] == 1, result
        written += result["files_in"]
        sizes.append(len(lake.files()))
    before = lake.all_rows()
    assert len(before) == 300 and max(sizes) < 6, sizes
    assert written < 30 + 20, written  # each appended file once, and some of what became of them
    check_totals(lake)


def test_compaction_leaves_files_alone_that_lie(lake):
    lies = lake.write(lake.rows())
    lies["record_count"] += 1
    lake.register(lies)
    for _ in range(6):
        lake.append()
    result = lake.compact()
    assert (result["invalid_data"], result["files_in"]) == (1, 6), result
    check_totals(lake)


def test_compactions_at_once_take_no_file_twice(lake):
    for _ in range(12):
        lake.append(5)
    before = lake.all_rows()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: lake.compact(), range(8)))
    assert sum(r["groups_compacted"] for r in results) >= 1, results
    assert lake.all_rows() == before
    check_totals(lake)


def test_nothing_is_left_behind(lake):
    for _ in range(6):
        lake.append()
    lake.compact()
    lake.ok("PATCH", lake.catalog + "/options", {"snapshot_retention_seconds": 1})
    time.sleep(1.5)
    lake.append()
    lake.ok("POST", lake.catalog + "/maintenance/expire?batch=1000")
    lake.ok("POST", lake.catalog + "/maintenance/cleanup?batch=1000")
    kept = {"s3://%s/%s" % (BUCKET, key) for key in lake.s3.keys(BUCKET, lake.prefix)}
    assert kept == {f["path"] for f in lake.files()}, kept


def compact_and_kill(lake, chance):
    """Kills the server somewhere in a compaction, and starts it again."""
    killer = threading.Timer(chance.random() * 0.06, lake.server.kill)
    killer.start()
    try:
        lake.compact()
    except (OSError, http.client.HTTPException):
        pass
    killer.join()
    services.wait_until(lambda: not DB.query("hoglake", "SELECT 1 FROM pg_stat_activity WHERE state <> 'idle'"
                                             " AND application_name = 'hoglaked'"), 60, "what it had begun has ended")
    lake.server.start()


def test_killed_compactions_leave_nothing_behind(lake):
    chance = random.Random(SEED)
    with hoglaked.started(lake.server.env["HOGLAKE_JDBC_URL"], lake.s3,
                          HOGLAKE_COMPACTION_CLAIM_TTL_SECONDS="1",
                          HOGLAKE_CLEANUP_CLAIM_LEASE_SECONDS="1") as lake.server:
        for _ in range(15):
            while len(lake.files()) < 8:
                lake.append(6)
            before = lake.all_rows()
            compact_and_kill(lake, chance)
            assert lake.all_rows() == before
            check_totals(lake)
        time.sleep(2.5)  # claims and tickets run out
        lake.append(6)
        lake.compact()
        lake.ok("PATCH", lake.catalog + "/options", {"snapshot_retention_seconds": 1})
        time.sleep(1.5)
        before = lake.all_rows()
        lake.append(6)
        for task in ("expire", "cleanup"):
            lake.ok("POST", lake.catalog + "/maintenance/%s?batch=10000" % task)
        kept = {"s3://%s/%s" % (BUCKET, key) for key in lake.s3.keys(BUCKET, lake.prefix)}
        assert kept == {f["path"] for f in lake.files()}, (SEED, kept)
        after = lake.all_rows()
        assert {key: after[key] for key in before} == before and len(after) == len(before) + 6


def test_staged_objects_that_never_came_are_missing(lake):
    path = "s3://%s/%snever.parquet" % (BUCKET, lake.prefix)
    DB.query("hoglake", "INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason,"
             " scheduled_us) SELECT catalog_id, %s, 'data', 'compaction_staging', 0"
             " FROM hog_catalog WHERE name = %s", path, lake.name)
    result = lake.ok("POST", lake.catalog + "/maintenance/cleanup?batch=100")
    assert (result["missing"], result["removed"]) == (1, 0), result


def run(module):
    """Runs the cases of a module, each in a catalog of its own; gives the exit code."""
    global DB
    cases = [(name, value) for name, value in module.items() if name.startswith("test_")]
    cases = [c for c in cases if not sys.argv[1:] or any(a in c[0] for a in sys.argv[1:])]
    print("seed %d" % SEED)
    with services.postgres() as DB, services.versitygw() as s3:
        DB.create_database("hoglake")
        s3.create_bucket(BUCKET)
        with hoglaked.started("postgresql://127.0.0.1:%d/hoglake" % DB.port, s3,
                              HOGLAKE_HYDRATOR_MIN_FILE_BYTES="0") as server:
            passed, failed = hoglaked.run_cases(cases, lambda: Lake(server, s3))
            if failed:
                print(server.process.log_end(15))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(run(globals()))
