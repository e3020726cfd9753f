#!/usr/bin/env python3
"""The hoglake driver against build/hoglaked: who is first, who alters, who drops meanwhile.

judge_hoglake_driver.py LAKE_TOOL [TEXT...] runs the cases whose names hold one of the texts.
Processes of the driver are lake-tool, told what to do in JSON lines; what others do meanwhile goes
over the REST interface.
"""
import json
import os
import subprocess
import sys
import time
import traceback
import uuid

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, "tests/services"), os.path.join(TOP, "tests/server")]
import hoglaked  # noqa: E402
import services  # noqa: E402

TOOL = None
COLUMNS = [["id", "int64"], ["ts", "timestamptz"], ["tag", "varchar"]]


class Writer:
    """A process of the driver."""

    def __init__(self, server, catalog, **options):
        self.open = dict({"op": "open", "url": server.url, "catalog": catalog, "namespace": "n",
                          "table": "t", "topic": "events", "data_path": "s3://b/" + catalog},
                         **options)
        self.process = subprocess.Popen([TOOL], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def ask(self, op, **arguments):
        self.process.stdin.write(json.dumps(dict(arguments, op=op)) + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        assert line, "the tool ended with %s" % self.process.wait()
        return json.loads(line)

    def try_(self, op, **arguments):
        self.ask(op, **arguments)
        return self.answer()

    def do(self, op, **arguments):
        answer = self.try_(op, **arguments)
        assert answer["code"] == "ok", answer
        return answer

    def ready(self, columns=None):
        """Opens, and makes the table what it should be."""
        answer = self.try_(**self.open)
        assert answer["code"] == "ok", answer
        return self.do("evolve", table="t", add=columns or COLUMNS)["table"]

    def file(self, rows=10, key="k"):
        """A registration as the pipeline makes it; nobody opens the object."""
        stats = [{"id": c["id"], "type": c["type"], "nulls": rows, "bytes": 50}
                 for c in self.table()["columns"]]
        return {"key": self.do("key", table="t", commit=key)["key"], "rows": rows, "bytes": 1000,
                "footer": 100, "stats": stats, "partition": ["1"] * len(self.table()["partition"])}

    def table(self):
        return self.do("resolve", table="t")["table"]

    def commit(self, first, following, files=None, key=None):
        """Gives the answer and the key of a commit of these offsets of partition 0."""
        ranges = [[0, first, following, following - first, following - first]]
        key = key or self.do("commit_key", table="t", ranges=ranges)["key"]
        files = files or [self.file(key=key)]
        return self.try_("append", key=key, ranges=ranges, trigger="size",
                         appends=[{"table": "t", "files": files}]), key

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(120) == 0


class Lake:
    """A catalog of the server, with writers of its own, and what others do to it."""

    def __init__(self, server, **options):
        self.server, self.options = server, options
        self.name = "c" + uuid.uuid4().hex[:12]
        self.path = "/v1/catalogs/" + self.name
        self.table_path = self.path + "/namespaces/n/tables/t"
        self.writers = []

    def writer(self, **options):
        self.writers.append(Writer(self.server, self.name, **dict(self.options, **options)))
        return self.writers[-1]

    def rest(self, method, path, body=None, want=200):
        status, answer, _ = hoglaked.request(self.server.url + path, method, body)
        assert status == want, (method, path, status, answer)
        return answer

    def alter(self, *ops):
        return self.rest("POST", self.table_path + "/alter", {"ops": list(ops)})

    def table(self):
        return self.rest("GET", self.table_path)

    def files(self):
        return self.rest("GET", self.table_path + "/files")

    def requests(self):
        """(method, path) of every request for this catalog so far, from the server's log."""
        seen = []
        for line in self.server.process.log().splitlines():
            if self.name in line and line.startswith("{"):
                entry = json.loads(line)
                if "method" in entry:
                    seen.append((entry["method"], entry["path"]))
        return seen

    def close(self):
        for writer in self.writers:
            writer.close()


ADD = {"op": "add_column", "column": {"name": "extra", "type": "string", "nullable": True}}


# --- who is first -------------------------------------------------------------------------------

def test_eight_make_catalog_namespace_and_table_at_once(lake):
    lake.options = {"partition_by": "month(ts), bucket(id, 4)", "sort_by": ["tag", "id"]}
    writers = [lake.writer() for _ in range(8)]
    for writer in writers:
        writer.ask(**writer.open)
    assert [w.answer()["code"] for w in writers] == ["ok"] * 8
    for writer in writers:
        writer.ask("evolve", table="t", add=COLUMNS)
    answers = [w.answer() for w in writers]
    assert [a["code"] for a in answers] == ["ok"] * 8, answers
    assert len({a["table"]["uuid"] for a in answers}) == 1
    table = lake.table()
    assert table["partition_spec"] == {"spec_id": 1, "fields": [
        {"source_field_id": 2, "transform": "month"},
        {"source_field_id": 1, "transform": "bucket", "transform_param": 4}]}
    assert table["sort_spec"] == {"sort_id": 1, "fields": [
        {"source_field_id": 3, "direction": "asc", "null_order": "nulls_last"},
        {"source_field_id": 1, "direction": "asc", "null_order": "nulls_last"}]}
    assert all(a["table"]["partition"] == answers[0]["table"]["partition"] for a in answers)


def test_eight_add_columns_at_once(lake):
    lake.writer().ready()
    writers = [lake.writer() for _ in range(8)]
    for writer in writers:
        writer.do(**writer.open)
        writer.table()
    for number, writer in enumerate(writers):
        writer.ask("evolve", table="t", add=COLUMNS + [["shared", "float64"],
                                                       ["own%d" % number, "boolean"]])
    answers = [w.answer() for w in writers]
    assert [a["code"] for a in answers] == ["ok"] * 8, answers
    assert not any(any(a["refused"]) for a in answers)
    names = [c["name"] for c in lake.table()["columns"]]
    assert sorted(names) == sorted(["id", "ts", "tag", "shared"] + ["own%d" % i for i in range(8)])
    for number, answer in enumerate(answers):
        assert {"shared", "own%d" % number} <= {c["name"] for c in answer["table"]["columns"]}


def test_a_bare_table_is_given_its_layout_once(lake):
    lake.writer().ready()
    writers = [lake.writer(partition_by="month(ts)") for _ in range(4)]
    for writer in writers:
        writer.do(**writer.open)
    for writer in writers:
        writer.ask("resolve", table="t")
    answers = [w.answer() for w in writers]
    assert [a["code"] for a in answers] == ["ok"] * 4, answers
    assert len(lake.table()["partition_spec"]["fields"]) == 1


# --- a steady stream ----------------------------------------------------------------------------

def test_a_steady_flush_is_one_request(lake):
    writer = lake.writer()
    writer.ready()
    commit = ("POST", lake.path + "/commit/prepared")
    for i in range(5):
        answer, _ = writer.commit(10 * i, 10 * i + 10)
        assert answer["code"] == "ok", answer
    services.wait_until(lambda: lake.requests().count(commit) == 5, 60, "the server's log")
    seen = lake.requests()
    assert seen[seen.index(commit):] == [commit] * 5, seen
    assert len(lake.files()) == 5


def test_what_the_snapshot_says(lake):
    writer = lake.writer()
    uuid_ = writer.ready()["uuid"]
    answer, _ = writer.commit(0, 10)
    snapshot = lake.rest("GET", lake.path + "/snapshots?after=%d" % (answer["snapshot"] - 1))
    snapshot = snapshot["snapshots"][0]
    assert snapshot["author"] == "millpond/test/0"
    assert snapshot["message"].splitlines()[0].endswith("table=" + uuid_)
    assert snapshot["message"].splitlines()[1] == "offsets events p0:0-9 (1)"


def test_a_receipt_settles_a_commit(lake):
    writer, other = lake.writer(), lake.writer()
    writer.ready(), other.ready()
    key = writer.do("commit_key", table="t", ranges=[[0, 0, 10, 10, 10]])["key"]
    assert writer.do("published", key=key)["published"] is False
    files = [writer.file(key=key)]
    first, _ = writer.commit(0, 10, files)
    assert other.do("published", key=key)["published"] is True
    again, _ = other.commit(0, 10, files)  # the same bytes: the receipt answers
    assert (again["code"], again["snapshot"], again["already"]) == ("ok", first["snapshot"], False)
    another, _ = other.commit(0, 10)  # other files
    assert another["code"] == "ok" and another["already"], another
    assert another["orphaned"] == "already_published"
    assert len(lake.files()) == 1


def test_lost_offsets_are_named(lake):
    writer = lake.writer()
    writer.ready()
    assert writer.do("written", table="t")["rows"] is False
    assert writer.try_("written", table="other")["code"] == "not found"
    writer.commit(0, 10), writer.commit(10, 25)
    answer = writer.do("written", table="t")
    assert (answer["rows"], answer["told"]) == (True, [[0, 24]]), answer


# --- alterations meanwhile ----------------------------------------------------------------------

def test_files_land_after_an_alteration_that_spares_them(lake):
    writer = lake.writer(partition_by="id")
    writer.ready()
    files = [writer.file()]
    lake.alter(ADD, {"op": "rename_column", "from": "tag", "to": "label"})
    answer, _ = writer.commit(0, 10, files)
    assert (answer["code"], answer.get("orphaned")) == ("ok", None), answer
    assert [c["name"] for c in writer.table()["columns"]] == ["id", "ts", "label", "extra"]
    assert [f["path"] for f in lake.files()] == ["s3://b/%s/%s" % (lake.name, files[0]["key"])]


def test_files_of_a_dropped_column_are_orphans(lake):
    writer = lake.writer()
    writer.ready()
    files = [writer.file()]
    lake.alter({"op": "drop_column", "name": "tag"})
    answer, key = writer.commit(0, 10, files)
    assert (answer["code"], answer["orphaned"]) == ("destination changed", "ddl_since_read_snapshot"), answer
    assert [c["name"] for c in writer.table()["columns"]] == ["id", "ts"]
    answer, again = writer.commit(0, 10)
    assert answer["code"] == "ok" and key == again, answer
    assert len(lake.files()) == 1


def test_another_layout_stops_the_writer(lake):
    writer = lake.writer(partition_by="month(ts)")
    writer.ready()
    files = [writer.file()]
    lake.alter({"op": "set_partition_spec",
                "fields": [{"source_field_id": 1, "transform": "identity"}]})
    answer, _ = writer.commit(0, 10, files)
    assert (answer["code"], answer["orphaned"]) == ("destination changed", "ddl_since_read_snapshot"), answer
    answer = writer.try_("resolve", table="t")
    assert (answer["code"], answer["retriable"]) == ("bad configuration", False), answer
    assert "partitioned by id," in answer["text"] and "asks for month(ts)" in answer["text"]
    assert lake.files() == []


def test_a_table_made_anew_is_met_by_its_uuid(lake):
    writer = lake.writer()
    old = writer.ready()["uuid"]
    assert writer.commit(0, 10)[0]["code"] == "ok"
    files = [writer.file()]
    lake.rest("DELETE", lake.table_path)
    lake.rest("POST", lake.path + "/namespaces/n/tables", {"name": "t", "columns": [
        {"name": "id", "type": "long"}]}, want=201)
    answer, key = writer.commit(10, 20, files)
    assert (answer["code"], answer["orphaned"]) == ("destination changed", "table_recreated"), answer
    assert writer.table()["uuid"] != old
    new = writer.do("commit_key", table="t", ranges=[[0, 10, 20, 10, 10]])["key"]
    assert new != key
    answer, _ = writer.commit(10, 20)
    assert answer["code"] == "ok" and len(lake.files()) == 1, answer


def test_a_reused_key_of_the_old_table_is_no_success(lake):
    writer = lake.writer()
    writer.ready()
    answer, key = writer.commit(0, 10)
    files = [writer.file()]  # made for the old table
    lake.rest("DELETE", lake.table_path)
    lake.rest("POST", lake.path + "/namespaces/n/tables", {"name": "t", "columns": [
        {"name": "id", "type": "long"}]}, want=201)
    answer, _ = writer.commit(0, 10, files, key=key)
    assert (answer["code"], answer["orphaned"]) == ("destination changed", "table_recreated"), answer


def test_a_dropped_table_is_made_again(lake):
    writer = lake.writer()
    old = writer.ready()["uuid"]
    files = [writer.file()]
    lake.rest("DELETE", lake.table_path)
    answer, _ = writer.commit(0, 10, files)
    assert (answer["code"], answer["orphaned"]) == ("destination changed", "commit_refused"), answer
    assert writer.try_("resolve", table="t")["code"] == "not found"
    assert writer.do("evolve", table="t", add=COLUMNS)["table"]["uuid"] != old
    answer, _ = writer.commit(0, 10)
    assert answer["code"] == "ok", answer


def test_a_basis_that_expired_is_renewed(lake):
    writer = lake.writer()
    writer.ready()
    files = [writer.file()]
    lake.rest("PATCH", lake.path + "/options", {"snapshot_retention_seconds": 1})
    for i in range(3):  # other commits, so that there is something newer than the basis
        other = lake.writer()
        other.ready()
        assert other.commit(100 + i, 101 + i)[0]["code"] == "ok"
    services.wait_until(
        lambda: lake.rest("POST", lake.path + "/maintenance/expire")["new_earliest_snapshot_id"] >
        writer_snapshot(lake), 120, "the basis to expire", every=0.2)
    answer, _ = writer.commit(0, 10, files)
    assert (answer["code"], answer.get("orphaned")) == ("ok", None), answer
    assert "s3://b/%s/%s" % (lake.name, files[0]["key"]) in [f["path"] for f in lake.files()]


def writer_snapshot(lake):
    return lake.writers[0].table()["snapshot"]


# --- columns ------------------------------------------------------------------------------------

def test_a_refused_column_leaves_the_others(lake):
    writer = lake.writer()
    writer.ready()
    answer = writer.do("evolve", table="t", add=COLUMNS + [["good", "float64"], ["_hog", "float64"],
                                                           ["fine", "boolean"]])
    assert answer["refused"] == [False, False, False, False, True, False]
    assert [c["name"] for c in lake.table()["columns"]] == ["id", "ts", "tag", "good", "fine"]


def test_promotions(lake):
    writer = lake.writer()
    writer.ready([["n", "int32"], ["f", "float32"], ["s", "varchar"]])
    answer = writer.do("evolve", table="t", promote=[[1, "int64"], [2, "float64"], [3, "int64"]])
    assert [c["type"] for c in lake.table()["columns"]] == ["long", "double", "string"]
    assert [c["type"] for c in answer["table"]["columns"]] == ["int64", "float64", "varchar"]


def test_columns_that_cannot_be_written_are_there_all_the_same(lake):
    writer = lake.writer()
    writer.ready()
    lake.alter({"op": "add_column", "column": {"name": "v", "type": "variant"}},
               {"op": "add_column", "column": {"name": "l", "type": "list", "children": [
                   {"name": "element", "type": "long"}]}})
    other = lake.writer()
    other.do(**other.open)
    types = {c["name"]: c["type"] for c in other.table()["columns"]}
    assert (types["v"], types["l"], types["id"]) == ("other", "other", "int64")


# --- refusals -----------------------------------------------------------------------------------

def test_a_look_changes_nothing(lake):
    look = lake.writer(read_only=True)
    assert look.try_(**look.open)["code"] == "not found"
    lake.writer().ready()
    look = lake.writer(read_only=True, partition_by="month(ts)")
    look.do(**look.open)
    assert look.table()["partition"] == []
    assert "partition_spec" not in lake.table()


def test_a_data_path_inside_of_another_is_refused(lake):
    lake.writer().ready()
    other = Lake(lake.server, data_path="s3://b/%s/inside" % lake.name)
    answer = other.writer().try_(**other.writers[0].open)
    other.close()
    assert (answer["code"], answer["retriable"]) == ("refused", False), answer
    assert other.name in answer["text"] and lake.server.url in answer["text"]


def main():
    global TOOL
    TOOL, texts = sys.argv[1], sys.argv[2:]
    cases = [(name, value) for name, value in globals().items() if name.startswith("test_")]
    cases = [c for c in cases if not texts or any(text in c[0] for text in texts)]
    passed = failed = 0
    with services.postgres() as db:
        db.create_database("hoglake")
        with hoglaked.started("postgresql://127.0.0.1:%d/hoglake" % db.port) as server:
            for name, case in cases:
                began, lake = time.monotonic(), Lake(server)
                try:
                    case(lake)
                    lake.close()
                    passed += 1
                    verdict = "ok"
                except Exception:
                    failed += 1
                    verdict = "FAILED"
                    traceback.print_exc()
                    for writer in lake.writers:
                        writer.process.kill()
                print("%-60s %s  %.1f s" % (name, verdict, time.monotonic() - began), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
