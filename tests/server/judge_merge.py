#!/usr/bin/env python3
"""Compaction of build/hoglaked that decodes: deleted rows, sort orders, other schemas, small row
groups. pyarrow writes and reads, pyroaring makes the deletion vectors.

Every case is a function test_*(lake), where lake is a catalog of its own with a table t. What a
reader sees (scan plan, deletion vectors, columns by field id) is worked out here from the files, at
head and at older snapshots, and must not be changed by a compaction; nor may row ids.
"""
import concurrent.futures
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import hoglaked
import judge_compaction
import judge_pyhoglake
import puffin
from judge_compaction import BUCKET, ROW_ID, ROW_ID_FIELD, SEED, Lake, bound, check_totals

FIELD_ID = b"PARQUET:field_id"
ARROW = {"boolean": pa.bool_(), "int8": pa.int8(), "int16": pa.int16(), "int": pa.int32(),
         "long": pa.int64(), "float": pa.float32(), "double": pa.float64(), "string": pa.string(),
         "uint8": pa.uint8(), "uint32": pa.int64(), "date": pa.date32(),
         "timestamp_s": pa.timestamp("s"), "timestamp": pa.timestamp("us")}


def write(lake, fields, rows, codec="zstd", ids=True, **more):
    """A file of fields [(name, field id, Arrow type)] with rows [{name: value}]."""
    schema = pa.schema([pa.field(name, kind, metadata={FIELD_ID: b"%d" % number} if ids else None)
                        for name, number, kind in fields])
    arrays = [pa.array([row.get(name) for row in rows], kind) for name, _, kind in fields]
    return lake.write(pa.Table.from_arrays(arrays, schema=schema), codec, **more)


def delete(lake, vectors, read_snapshot=None, data=None):
    """Registers a deletion vector for each {data file of the scan: its deleted rows}."""
    files = []
    for file, rows in vectors:
        body = data or puffin.file({file["path"]: rows})
        key = "%sdv-%d.puffin" % (lake.prefix, random.randrange(1 << 60))
        lake.s3.client().put_object(Bucket=BUCKET, Key=key, Body=body)
        files.append({"data_file_id": file["data_file_id"], "delete_count": len(rows),
                      "path": "s3://%s/%s" % (BUCKET, key), "file_size_bytes": len(body)})
        lake.vectors[files[-1]["path"]] = set(rows)
    return hoglaked.request(lake.server.url + "/v1" + lake.catalog + "/commit", "POST", {
        "read_snapshot": lake.head() if read_snapshot is None else read_snapshot,
        "deletes": [{"namespace": "n", "table": "t", "files": files}]})


def deleted(lake, *vectors):
    status, answer, _ = delete(lake, vectors)
    assert status == 200, (status, answer)


def visible(lake, snapshot=None):
    """{row id: {column: value}} as a reader of the snapshot sees it."""
    query = "" if snapshot is None else "?snapshot=%d" % snapshot
    table = lake.ok("GET", lake.table + query)
    found = {}
    for entry in lake.scan(query):
        file, vector = entry["data_file"], entry.get("delete_file")
        gone = lake.vectors[vector["path"]] if vector else ()
        data = lake.read(file["path"])
        assert data.num_rows == file["record_count"], file
        ids = (data[ROW_ID].to_pylist() if file.get("explicit_row_ids") else
               range(file["row_id_start"], file["row_id_start"] + data.num_rows))
        by_id = {field.metadata[FIELD_ID]: i for i, field in enumerate(data.schema)
                 if field.metadata and FIELD_ID in field.metadata}
        values = {}
        for column in table["columns"]:
            at = by_id.get(b"%d" % column["field_id"])
            if at is None and not by_id:
                at = data.schema.get_field_index(column["name"])
            there = at is not None and at >= 0
            found_column = data.column(at) if there else None
            if there and column["type"] in ARROW:
                found_column = found_column.cast(ARROW[column["type"]])
            values[column["name"]] = found_column.to_pylist() if there else [None] * data.num_rows
        for i, row_id in enumerate(ids):
            if i in gone:
                continue
            assert row_id not in found
            found[row_id] = {name: column[i] for name, column in values.items()}
    return found


def merged(lake, groups=1):
    """Compacts; nothing that a reader sees may change, now or at the snapshot before."""
    before, head = visible(lake), lake.head()
    files = len(lake.files())
    result = lake.compact()
    assert result["groups_compacted"] == groups, result
    assert visible(lake) == before, "rows changed"
    assert visible(lake, head) == before, "time travel changed"
    assert len(lake.files()) == files - result["files_in"] + result["files_out"]
    check_totals(lake)
    changes = lake.ok("GET", "%s/changes?from_snapshot=%d" % (lake.table, head))
    assert changes["files"] == [] and changes["delete_files"] == [], changes
    snapshot, = [s for s in lake.ok("GET", lake.catalog + "/snapshots?limit=1000")["snapshots"]
                 if s["snapshot_id"] == head + 1] if groups == 1 else [None]
    if snapshot:
        assert [c["kind"] for c in snapshot["changes"]] == ["table_compacted"], snapshot
    return result


def the_file(lake):
    """The one file there is, as pyarrow sees it."""
    file, = lake.files()
    assert file["explicit_row_ids"] and file["stats_state"] == "provided", file
    data = lake.get(file["path"])
    assert pq.read_schema(io.BytesIO(data)).field(ROW_ID).metadata[FIELD_ID] == ROW_ID_FIELD
    return file, pq.ParquetFile(io.BytesIO(data))


def alter(lake, *ops):
    lake.ok("POST", lake.table + "/alter", {"ops": list(ops)})


def sort_by(lake, *fields):
    alter(lake, {"op": "set_sort_order", "sort_fields": [
        {"source_field_id": field, "direction": direction, "null_order": nulls}
        for field, direction, nulls in fields]})


# --- cases ------------------------------------------------------------------------------------

def test_small_row_groups_become_one(lake):
    for codec in ("snappy", "zstd", "none", "gzip", "lz4", "zstd"):
        lake.append(10, codec)
    merged(lake)
    file, parquet = the_file(lake)
    assert parquet.metadata.num_row_groups == 1, parquet.metadata  # there were three a file
    assert file["row_id_start"] == 0 and file["record_count"] == 60
    stats = lake.scan("?include=column_stats")[0]["data_file"]["column_stats"]
    assert (bound(stats, 1, "lower_bound"), bound(stats, 1, "upper_bound")) == (0, 59), stats
    assert bound(stats, 2, "upper_bound") == "s00059" and stats[2]["null_count"] == 20, stats
    for _ in range(5):
        lake.append(10)
    merged(lake)
    assert the_file(lake)[1].read().column(ROW_ID).to_pylist() == list(range(110))


def test_deleted_rows_are_gone(lake):
    chance, sizes = random.Random(SEED), [10, 300, 1000, 70000, 140000, 200000]
    for size in sizes:
        lake.append(size, group_rows=30000)
    files = sorted(lake.files(), key=lambda f: f["record_count"])
    deleted(lake, (files[0], [0, 9]),                                      # first and last
            (files[1], range(300)),                                        # all
            (files[2], [5]),
            (files[3], chance.sample(range(70000), 30000)),                # bitmaps
            (files[4], range(1000, 139000)),                               # runs
            (files[5], chance.sample(range(200000), 500)))                 # arrays
    deleted(lake, (files[2], [5, 7, 999]))  # a vector that grew
    before = lake.ok("GET", lake.table)["record_count"]
    assert before == sum(sizes)
    result = merged(lake)
    assert result["files_in"] == 6, result
    left = sum(sizes) - 2 - 300 - 3 - 30000 - 138000 - 500
    file, _ = the_file(lake)
    assert file["record_count"] == left, (file, left)
    assert lake.ok("GET", lake.table)["record_count"] == left
    assert all("delete_file" not in entry or entry["delete_file"] is None for entry in lake.scan())
    stats = lake.scan("?include=column_stats")[0]["data_file"]["column_stats"]
    assert bound(stats, 1, "lower_bound") == 1, stats  # row 0 is gone, and so is its bound


def test_nothing_is_left_of_files_whose_rows_are_all_deleted(lake):
    for _ in range(5):
        lake.append(10)
    deleted(lake, *((file, range(10)) for file in lake.files()))
    result = merged(lake)
    assert (result["files_in"], result["files_out"], result["bytes_out"]) == (5, 0, 0), result
    assert lake.files() == [] and visible(lake) == {}
    for _ in range(5):
        lake.append(10)
    merged(lake)
    assert len(visible(lake)) == 50


def test_bounds_beside_nans_are_kept(lake):
    fields = [("id", 1, pa.int64()), ("s", 2, pa.string()), ("f", 3, pa.float64())]
    for i in range(5):
        lake.register(write(lake, fields, [{"id": 2 * i, "f": float("nan")},
                                           {"id": 2 * i + 1, "f": i - 2.5}, {"id": 100 + i}]))
    merged_rows = lake.compact()
    assert merged_rows["files_in"] == 5, merged_rows
    stats = lake.scan("?include=column_stats")[0]["data_file"]["column_stats"]
    assert (bound(stats, 3, "lower_bound"), bound(stats, 3, "upper_bound")) == (-2.5, 1.5), stats
    assert stats[2]["nan_count"] == 5 and stats[2]["null_count"] == 5, stats
    assert "nan_count" not in stats[0], stats


def test_a_target_of_a_vector_is_gone_after_compaction(lake):
    for _ in range(5):
        lake.append(10)
    file, head = lake.files()[0], lake.head()
    merged(lake)
    status, answer, _ = delete(lake, [(file, [1])], head)
    assert (status, answer["error"]) == (409, "commit_conflict"), (status, answer)


def test_vectors_go_with_their_files(lake):
    for _ in range(6):
        lake.append(10)
    deleted(lake, *((file, [2, 3]) for file in lake.files()))
    merged(lake)
    lake.ok("PATCH", lake.catalog + "/options", {"snapshot_retention_seconds": 1})
    time.sleep(1.5)  # what is there becomes older than that
    lake.append()
    for task in ("expire", "cleanup"):
        lake.ok("POST", lake.catalog + "/maintenance/%s?batch=1000" % task)
    kept = {"s3://%s/%s" % (BUCKET, key) for key in lake.s3.keys(BUCKET, lake.prefix)}
    assert kept == {f["path"] for f in lake.files()}, kept
    assert len(visible(lake)) == 58


def test_vectors_that_lie_are_left_alone(lake):
    for _ in range(9):
        lake.append(10)
    files = lake.files()
    good = puffin.file({files[0]["path"]: [1]})
    deleted(lake, (files[0], [1, 2]))
    bad = {1: puffin.file({"s3://elsewhere/x.parquet": [3]}),     # another file's
           2: good[:20] + bytes([good[20] ^ 1]) + good[21:],      # a checksum that is not its own
           3: puffin.file({files[3]["path"]: [10]}),              # a row that is not there
           4: puffin.file({files[4]["path"]: [1, 2]})}            # more rows than announced
    for i, data in bad.items():
        status, _, _ = delete(lake, [(files[i], [0])], None, data)
        assert status == 200
    before = {f["path"] for f in files[1:5]}
    result = lake.compact()
    assert (result["groups_compacted"], result["files_in"], result["invalid_data"]) == (1, 5, 4), \
        result
    assert before < {f["path"] for f in lake.files()}
    check_totals(lake)


def test_a_vector_without_a_name_is_taken(lake):
    for _ in range(5):
        lake.append(10)
    file = lake.files()[0]
    status, _, _ = delete(lake, [(file, [3])], None, puffin.file({file["path"]: [3]}, named=False))
    assert status == 200
    merged(lake)
    assert len(visible(lake)) == 49


def sorted_as_asked(rows, *keys):
    """keys: (name, descending, nulls first). Sorted by the last key first, since sorting is stable."""
    for name, descending, first in reversed(keys):
        some = [row for row in rows if row[name] is not None]
        none = [row for row in rows if row[name] is None]
        some.sort(key=lambda row: row[name], reverse=descending)  # equal rows stay as they were
        rows = none + some if first else some + none
    return rows


def test_sorted_tables(lake):
    for order, keys in (([(3, "desc", "nulls_first")], [("f", True, True)]),
                        ([(2, "asc", "nulls_last")], [("s", False, False)]),
                        ([(3, "asc", "nulls_last"), (1, "desc", "nulls_last")],
                         [("f", False, False), ("id", True, False)])):
        lake = fresh(lake)
        sort_by(lake, *order)
        for _ in range(6):
            lake.append(100)
        deleted(lake, (lake.files()[2], range(0, 100, 7)))
        rows = [dict(row, row_id=row_id) for row_id, row in sorted(visible(lake).items())]
        merged(lake)
        table = the_file(lake)[1].read()
        got = [dict(row, row_id=row.pop(ROW_ID)) for row in table.to_pylist()]
        assert got == sorted_as_asked(rows, *keys), order
        for _ in range(5):  # and again, with what was sorted before
            lake.append(100)
        merged(lake)


def fresh(lake, columns=judge_compaction.COLUMNS):
    lake = Lake(lake.server, lake.s3, columns)
    lake.vectors = {}
    return lake


COLUMNS = [{"name": "id", "type": "long"}, {"name": "a", "type": "int8"},
           {"name": "u", "type": "uint8"}, {"name": "f", "type": "float"},
           {"name": "gone", "type": "string"}, {"name": "t", "type": "timestamp_s"},
           {"name": "w", "type": "uint32"}]


def test_schemas_that_changed(lake):
    lake = fresh(lake, COLUMNS)
    old = [("id", 1, pa.int64()), ("a", 2, pa.int8()), ("u", 3, pa.uint8()), ("f", 4, pa.float32()),
           ("gone", 5, pa.string()), ("t", 6, pa.timestamp("s")), ("w", 7, pa.int64())]
    for i in range(5):
        lake.register(write(lake, old, [
            {"id": n, "a": n - 128, "u": 255 - n, "f": n / 4 if n % 3 else None, "gone": "x" * n,
             "t": 1700000000 + n, "w": 4294967295 - n} for n in range(i * 20, i * 20 + 20)]))
    snapshots = [lake.head()]
    seen = {snapshots[0]: visible(lake)}
    alter(lake, {"op": "add_column", "column": {"name": "more", "type": "string"}},
          {"op": "promote_column", "name": "a", "to": "long"},
          {"op": "promote_column", "name": "u", "to": "uint32"},
          {"op": "promote_column", "name": "f", "to": "double"},
          {"op": "drop_column", "name": "gone"},
          {"op": "rename_column", "from": "t", "to": "time"})
    new = [("more", 8, pa.string()), ("id", 1, pa.int64()), ("a", 2, pa.int64()),
           ("f", 4, pa.float64()), ("time", 6, pa.timestamp("ms")), ("w", 7, pa.int64())]
    for i in range(5):
        lake.register(write(lake, new, [
            {"id": n, "a": n << 40, "f": n / 3, "more": "m%d" % n, "time": None, "w": n}
            for n in range(1000 + i, 1020 + i)]))
    snapshots.append(lake.head())
    seen[snapshots[1]] = visible(lake)
    deleted(lake, (lake.files()[1], [0, 5]), (lake.files()[7], [19]))
    merged(lake)
    file, parquet = the_file(lake)
    names = ["id", "a", "u", "f", "time", "w", "more", ROW_ID]
    assert parquet.schema_arrow.names == names, parquet.schema_arrow
    numbers = [parquet.schema_arrow.field(n).metadata[FIELD_ID] for n in names]
    assert numbers == [b"1", b"2", b"3", b"4", b"6", b"7", b"8", ROW_ID_FIELD], numbers
    assert parquet.schema_arrow.field("a").type == pa.int64()
    assert parquet.schema_arrow.field("f").type == pa.float64()
    rows = visible(lake)
    assert rows[0]["a"] == -128 and rows[0]["more"] is None and rows[0]["w"] == 4294967295
    assert "gone" not in rows[0] and rows[100]["u"] is None and rows[104]["more"] == "m1004"
    stats = lake.scan("?include=column_stats")[0]["data_file"]["column_stats"]
    assert bound(stats, 2, "lower_bound") == -128 and bound(stats, 2, "upper_bound") == 1023 << 40
    assert {s["field_id"]: s["null_count"] for s in stats}[8] == 98, stats
    for snapshot in snapshots:
        assert visible(lake, snapshot) == seen[snapshot]


def test_files_without_field_ids_get_them(lake):
    fields = [("id", 1, pa.int64()), ("s", 2, pa.string()), ("f", 3, pa.float64())]
    for i in range(5):
        lake.register(write(lake, fields, [{"id": n, "s": "s%d" % n, "f": None}
                                           for n in range(i * 10, i * 10 + 10)], ids=i > 1))
    lake.wait_state("provided")
    merged(lake)
    assert visible(lake)[3] == {"id": 3, "s": "s3", "f": None}
    alter(lake, {"op": "rename_column", "from": "s", "to": "text"})  # nothing stands against it now
    assert visible(lake)[3] == {"id": 3, "text": "s3", "f": None}


def test_names_that_nobody_knows_are_left_alone(lake):
    for _ in range(5):
        lake.append(10)
    lake.register(write(lake, [("id", 1, pa.int64()), ("x", 2, pa.string())],
                        [{"id": 1000, "x": "a"}], ids=False))
    result = lake.compact()
    assert (result["files_in"], result["unconvertible_schema"]) == (5, 1), result
    assert len(lake.files()) == 2


def test_files_that_cannot_be_decoded_stand_aside(lake):
    """A brotli file is joined with its equals, else left alone; its neighbours are merged."""
    for codec in ("zstd", "brotli", "snappy", "zstd", "none", "zstd"):
        lake.append(10, codec)
    deleted(lake, *((f, [1]) for f in lake.files()))
    result = lake.compact()
    assert (result["files_in"], result["unconvertible_schema"]) == (5, 1), result
    assert len(lake.files()) == 2
    check_totals(lake)


NESTED = [{"name": "id", "type": "long"},
          {"name": "l", "type": "list", "children": [{"name": "element", "type": "long"}]},
          {"name": "s", "type": "struct", "children": [{"name": "x", "type": "string"},
                                                       {"name": "y", "type": "double"}]},
          {"name": "m", "type": "map", "children": [{"name": "key", "type": "string", "nullable": False},
                                                    {"name": "value", "type": "long"}]}]


def nested_schema(lake, leaves=True):
    """The table's columns as a file has them, with the ids that the catalog gave."""
    def kind(column):
        inside = [pa.field(c["name"], kind(c), metadata={FIELD_ID: b"%d" % c["field_id"]}
                           if leaves else None) for c in column.get("children") or []]
        return {"list": lambda: pa.list_(inside[0]), "struct": lambda: pa.struct(inside),
                "map": lambda: pa.map_(inside[0].with_nullable(False), inside[1])}.get(
                    column["type"], lambda: ARROW[column["type"]])()
    return pa.schema([pa.field(c["name"], kind(c), metadata={FIELD_ID: b"%d" % c["field_id"]})
                      for c in lake.ok("GET", lake.table)["columns"]])


def nested_rows(chance, first, count):
    def maybe(value):
        return None if chance.random() < 0.2 else value
    return [{"id": first + i,
             "l": maybe([maybe(chance.randrange(99)) for _ in range(chance.randrange(4))]),
             "s": maybe({"x": maybe("x%d" % i), "y": maybe(i / 4)}),
             "m": maybe([("k%d" % k, maybe(k)) for k in range(chance.randrange(3))])}
            for i in range(count)]


def register_nested(lake, schema, rows, **more):
    lake.register(lake.write(pa.Table.from_arrays(
        [pa.array([row[f.name] for row in rows], f.type) for f in schema], schema=schema), **more))


def test_nested_tables(lake):
    """Joined where that goes, else merged: deleted rows gone, sorted by another column."""
    chance = random.Random(SEED)
    for order in ((), ((1, "desc", "nulls_last"),)):
        lake = fresh(lake, NESTED)
        schema = nested_schema(lake)
        for i in range(5):
            register_nested(lake, schema, nested_rows(chance, 100 * i, 60))
        if order:
            sort_by(lake, *order)
        else:
            deleted(lake, *((f, chance.sample(range(60), 7)) for f in lake.files()[:3]))
        before = visible(lake)
        assert merged(lake)["files_in"] == 5
        assert len(visible(lake)) == (300 if order else 279)
        file, parquet = the_file(lake)
        assert str(parquet.schema_arrow.remove(4)) == str(
            pq.read_schema(io.BytesIO(lake.get(file["path"]))).remove(4))
        rows = parquet.read().to_pylist()
        assert {row.pop(ROW_ID): row for row in rows} == before
        if order:
            assert [row["id"] for row in rows] == sorted((r["id"] for r in rows), reverse=True)
        # once more, with what was merged before, and the same field ids inside
        for i in range(5):
            register_nested(lake, schema, nested_rows(chance, 1000 + 100 * i, 60))
        merged(lake)


def test_a_nested_column_that_came_later(lake):
    chance = random.Random(SEED)
    lake = fresh(lake, NESTED[:1])
    for i in range(3):
        register_nested(lake, nested_schema(lake), [{"id": 10 * i + k} for k in range(10)])
    alter(lake, *({"op": "add_column", "column": column} for column in NESTED[1:]))
    lake_rows = nested_rows(chance, 100, 30)
    for i in range(3):
        register_nested(lake, nested_schema(lake), lake_rows[10 * i:10 * i + 10])
    merged(lake)
    rows = the_file(lake)[1].read().to_pylist()
    assert [row["l"] for row in rows] == [None] * 30 + [row["l"] for row in lake_rows]
    assert [row["s"] for row in rows[30:]] == [row["s"] for row in lake_rows]


def test_nested_columns_without_field_ids_are_left_alone(lake):
    """Files that lack a child are merged with the others; those whose fields inside have no ids stay."""
    chance = random.Random(SEED)
    lake = fresh(lake, NESTED)
    schema, bare = nested_schema(lake), nested_schema(lake, False)
    at = schema.get_field_index("s")
    child = schema.field(at).type.field(0)
    less = schema.set(at, schema.field(at).with_type(pa.struct([child])))
    for i, kind in enumerate((less, less, bare, schema, schema, schema, schema, schema)):
        rows = nested_rows(chance, 100 * i, 20)
        register_nested(lake, kind, rows)
    deleted(lake, *((f, [3]) for f in lake.files()))
    before = {f["path"] for f in lake.files()}
    result = lake.compact()
    assert (result["groups_compacted"], result["files_in"]) == (1, 7), result
    assert result["unconvertible_schema"] == 1, result
    assert len(before & {f["path"] for f in lake.files()}) == 1
    check_totals(lake)
    assert len([row for row in visible(lake).values() if row["s"] and row["s"]["y"] is None]) >= 30


def seen_by_ids(value, was, now):
    """A value of an older type as a reader by field ids has it now."""
    if value is None or not pa.types.is_nested(now):
        return value
    if pa.types.is_list(now):
        return [seen_by_ids(v, was.value_type, now.value_type) for v in value]
    if pa.types.is_map(now):
        return [(k, seen_by_ids(v, was.item_type, now.item_type)) for k, v in value]
    old = {was.field(i).metadata[FIELD_ID]: was.field(i) for i in range(was.num_fields)}
    found = {}
    for field in (now.field(i) for i in range(now.num_fields)):
        from_field = old.get(field.metadata[FIELD_ID])
        found[field.name] = (seen_by_ids(value[from_field.name], from_field.type, field.type)
                             if from_field else None)
    return found


INSIDE = [{"name": "id", "type": "long"},
          {"name": "s", "type": "struct", "children": [
              {"name": "a", "type": "int"}, {"name": "gone", "type": "string"},
              {"name": "deep", "type": "struct", "children": [{"name": "x", "type": "float"},
                                                              {"name": "y", "type": "long"}]}]}]


def test_fields_inside_columns_that_changed(lake):
    """Fields of structs are added, dropped, promoted and renamed; each file is of its time."""
    chance = random.Random(SEED)
    lake, want = fresh(lake, INSIDE), []

    def some(kind):
        if chance.random() < 0.3:
            return None
        if pa.types.is_list(kind):
            return [some(kind.value_type) for _ in range(chance.randrange(3))]
        if pa.types.is_map(kind):
            return [("k%d" % i, some(kind.item_type)) for i in range(chance.randrange(3))]
        if pa.types.is_struct(kind):
            return {kind.field(i).name: some(kind.field(i).type) for i in range(kind.num_fields)}
        return "t%d" % chance.randrange(9) if pa.types.is_string(kind) else chance.randrange(99)

    def some_files(count):
        schema = nested_schema(lake)
        for _ in range(count):
            rows = [{"id": len(want) + i, "s": some(schema.field("s").type)} for i in range(40)]
            register_nested(lake, schema, rows)
            want.extend((row["s"], schema.field("s").type) for row in rows)

    def add(parent, name, kind, *inside):
        return {"op": "add_column", "parent": parent, "column": dict(
            {"name": name, "type": kind}, **({"children": list(inside)} if inside else {}))}

    some_files(2)
    alter(lake, {"op": "promote_column", "name": "s.a", "to": "long"},
          {"op": "drop_column", "name": "s.gone"},
          add("s", "more", "list", {"name": "element", "type": "struct", "children": [
              {"name": "p", "type": "long"}, {"name": "q", "type": "string"}]}),
          add("s.deep", "z", "string"), {"op": "drop_column", "name": "s.deep.y"})
    some_files(2)
    alter(lake, {"op": "rename_column", "from": "s.a", "to": "b"},
          {"op": "promote_column", "name": "s.deep.x", "to": "double"},
          {"op": "drop_column", "name": "s.deep.z"},
          add("s.deep", "w", "map", {"name": "key", "type": "string", "nullable": False},
              {"name": "value", "type": "long"}), {"op": "drop_column", "name": "s.deep.x"})
    some_files(2)
    head = lake.head()
    deleted(lake, *((f, [0, 7]) for f in lake.files()))
    result = lake.compact()
    assert (result["groups_compacted"], result["files_in"], result["files_out"]) == (1, 6, 1), result
    check_totals(lake)
    file, parquet = the_file(lake)
    kind = nested_schema(lake).field("s").type
    got = {row[ROW_ID]: row["s"] for row in parquet.read().to_pylist()}
    assert got == {i: seen_by_ids(value, was, kind) for i, (value, was) in enumerate(want)
                   if i % 40 not in (0, 7)}
    types = [re.sub(r" \('\w+'\)", "", str(k)) for k in (parquet.schema_arrow.field("s").type, kind)]
    assert types[0] == types[1], types  # but for the name of a map's entries
    assert any(value and value["deep"] for value in got.values())
    assert len(lake.files(head)) == 6
    some_files(5)
    assert lake.compact()["files_in"] == 6
    got = {row[ROW_ID]: row["s"] for row in the_file(lake)[1].read().to_pylist()}
    assert got == {i: seen_by_ids(value, was, kind) for i, (value, was) in enumerate(want)
                   if i >= 240 or i % 40 not in (0, 7)}


def test_types_that_are_carried(lake):
    """Files that have a column in another type than its own keep it, apart from those that do not."""
    lake = fresh(lake, [{"name": "id", "type": "long"}, {"name": "t", "type": "timestamptz"},
                        {"name": "f", "type": "float"}, {"name": "n", "type": "string"},
                        {"name": "l", "type": "list", "children": [
                            {"name": "element", "type": "timestamp"}]}])
    number = [c["field_id"] for c in lake.ok("GET", lake.table)["columns"]]

    def some_files(t, f, n, l, **more):
        element = pa.field("element", l, metadata={FIELD_ID: b"%d" % (number[4] + 1)})
        kinds = [("id", pa.int64()), ("t", t), ("f", f), ("n", n), ("l", pa.list_(element))]
        schema = pa.schema([pa.field(name, kind, metadata={FIELD_ID: b"%d" % i})
                            for (name, kind), i in zip(kinds, number)])
        for i in range(5):
            times = [7, None, i * 1000]
            values = [range(i, i + 3), times, [None, 1.5, -2.0 * i], [None] * 3, [times, None, []]]
            out = io.BytesIO()
            pq.write_table(pa.Table.from_arrays(
                [pa.array(v, kind) for v, (_, kind) in zip(values, kinds)], schema=schema), out, **more)
            data = out.getvalue()
            lake.register({"path": lake.put(data), "record_count": 3, "file_size_bytes": len(data)})
        deleted(lake, *((file, [0]) for file in lake.files() if not file.get("explicit_row_ids")))

    nanos, whole = pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC")
    some_files(nanos, pa.float16(), pa.null(), pa.timestamp("ns"))
    some_files(pa.timestamp("ns"), pa.float16(), pa.string(), pa.timestamp("ns"),
               use_deprecated_int96_timestamps=True)
    some_files(whole, pa.float32(), pa.string(), pa.timestamp("us"))
    lake.wait_state("provided")

    def values(file):
        table = lake.read(file["path"])
        units = {f.name: str(f.type) for f in table.schema if f.name != ROW_ID}
        gone = lake.vectors.get((file.get("vector") or {}).get("path"), ())
        return units, [repr(row) for i, row in enumerate(zip(*(
            c.cast(pa.list_(pa.int64())).to_pylist() if pa.types.is_list(c.type) else
            c.cast(pa.int64()).to_pylist() if pa.types.is_timestamp(c.type) else c.to_pylist()
            for c in table.drop_columns([ROW_ID] if ROW_ID in table.column_names else [])))) if i not in gone]

    before = [values(dict(e["data_file"], vector=e.get("delete_file"))) for e in lake.scan()]
    result = lake.compact()
    assert (result["groups_compacted"], result["files_in"], result["unconvertible_schema"]) == (3, 15, 0)
    assert len(lake.files()) == 3
    check_totals(lake)
    after = [values(file) for file in lake.files()]
    assert sorted(row for _, rows in before for row in rows) == sorted(row for _, rows in after for row in rows)
    for file in lake.files():
        schema = pq.ParquetFile(io.BytesIO(lake.get(file["path"]))).schema
        types = [(schema.column(i).physical_type, str(schema.column(i).logical_type)) for i in (1, 2, 4)]
        assert types[1] in (("FIXED_LEN_BYTE_ARRAY", "Float16"), ("FLOAT", "None")), types
        assert (types[0][0] == "INT96") == (types[2][0] == "INT96"), types
    assert {tuple(sorted(units.items())) for units, _ in after} == {
        tuple(sorted(dict(units, n="string").items())) for units, _ in before}


# --- files rewritten alone ----------------------------------------------------------------------

def test_a_file_with_many_deleted_rows_is_rewritten_alone(lake):
    lake.append(1000, group_rows=300)
    lake.wait_state("provided")  # the hydrator changes what is said of it
    file, = lake.files()
    deleted(lake, (file, range(299)))
    result = lake.compact()
    assert result["groups_compacted"] == 0 and lake.files() == [file], result
    deleted(lake, (file, range(0, 600, 2)))  # 300: no longer too few
    assert merged(lake)["files_in"] == 1
    new, parquet = the_file(lake)
    assert new["record_count"] == 700 and len(visible(lake)) == 700, new
    assert parquet.read().column(ROW_ID).to_pylist() == sorted(visible(lake))
    for _ in range(2):  # that is all
        result = lake.compact()
        assert result["groups_compacted"] == 0 and lake.files() == [new], result
    assert not any(result.values()), result
    deleted(lake, (new, range(100)))
    assert lake.compact()["groups_compacted"] == 0
    deleted(lake, (new, range(250)))
    assert merged(lake)["files_in"] == 1
    assert the_file(lake)[0]["record_count"] == 450


def test_a_file_whose_rows_are_all_deleted_ends(lake):
    """It is not even read: its codec does not matter."""
    for codec in ("zstd", "brotli"):
        lake.append(50, codec)
        file, = lake.files()
        deleted(lake, (file, range(50)))
        result = merged(lake)
        assert (result["files_in"], result["files_out"], result["bytes_out"]) == (1, 0, 0), result
        assert lake.files() == [] and visible(lake) == {}
    lake.append(50, "brotli")
    deleted(lake, (lake.files()[0], range(49)))
    result = lake.compact()
    assert (result["groups_compacted"], result["unconvertible_schema"]) == (0, 1), result
    assert len(lake.files()) == 1
    for codec in ("zstd", "brotli", "zstd", "brotli", "gzip"):  # and in a group
        lake.append(50, codec)
    deleted(lake, *((f, range(50)) for f in lake.files()[2:]))
    before = visible(lake)
    lake.compact()
    assert visible(lake) == before and len(lake.files()) == 2, lake.files()
    check_totals(lake)


def test_files_at_the_target_are_rewritten_alone_too(lake):
    sort_by(lake, (2, "desc", "nulls_last"))
    for rows in (20000, 60000, 100000):
        lake.append(rows, "none", group_rows=rows)
    small, middle, large = sorted(lake.files(), key=lambda f: f["row_id_start"])
    deleted(lake, (small, range(10000)), (middle, range(29999)), (large, range(99999)))
    with hoglaked.started(lake.server.env["HOGLAKE_JDBC_URL"], lake.s3,
                          HOGLAKE_COMPACTION_TARGET_BYTES=str(small["file_size_bytes"]),
                          HOGLAKE_COMPACTION_DELETED_PERCENT="50") as server:
        lake.server = server
        result = merged(lake)  # middle has too few, large is above four times the target
        assert result["files_in"] == 1, result
        left = {f["data_file_id"] for f in lake.files()}
        assert middle["data_file_id"] in left and large["data_file_id"] in left
        new, = (f for f in lake.files() if f.get("explicit_row_ids"))
        ids = lake.read(new["path"]).column(ROW_ID).to_pylist()
        assert ids == list(range(19999, 9999, -1))
        assert lake.compact()["groups_compacted"] == 0


def test_zero_percent_rewrites_nothing_alone(lake):
    with hoglaked.started(lake.server.env["HOGLAKE_JDBC_URL"], lake.s3,
                          HOGLAKE_COMPACTION_DELETED_PERCENT="0") as server:
        lake = Lake(server, lake.s3)
        lake.vectors = {}
        lake.append(10)
        deleted(lake, (lake.files()[0], range(10)))
        assert not any(lake.compact().values())


def test_partitions_stay_apart(lake):
    alter(lake, {"op": "set_partition_spec", "fields": [
        {"source_field_id": 2, "transform": "identity"}]})
    for i in range(12):
        value = "xy"[i % 2]
        lake.register(write(lake, [("id", 1, pa.int64()), ("s", 2, pa.string())],
                            [{"id": i, "s": value}], partition_values=[value]),
                      read_snapshot=lake.head())
    merged(lake, 2)
    files = lake.files()
    assert sorted(f["partition_values"] for f in files) == [["x"], ["y"]], files
    for file in files:
        assert set(lake.read(file["path"]).column("s").to_pylist()) == set(file["partition_values"])


def test_the_codec_is_the_one_asked_for(lake):
    for codec, named in (("gzip", "GZIP"), ("snappy", "SNAPPY"), ("lz4_raw", "LZ4"), ("zstd", "ZSTD")):
        with hoglaked.started(lake.server.env["HOGLAKE_JDBC_URL"], lake.s3, HOGLAKE_COMPACTION_CODEC=codec) as server:
            other = Lake(server, lake.s3)
            other.vectors = {}
            for _ in range(5):
                other.append(2000)
            before = visible(other)
            merged(other)
            path, metadata = the_file(other)[0]["path"], the_file(other)[1].metadata
            codecs = {metadata.row_group(0).column(i).compression for i in range(metadata.num_columns)}
            assert codecs - {"UNCOMPRESSED"} == {named}, codecs
            assert visible(other) == before and len(before) == 10000
            with tempfile.NamedTemporaryFile(suffix=".parquet") as copy:
                copy.write(other.get(path))
                copy.flush()
                assert duckdb.sql("SELECT count(*), sum(id) FROM '%s'" % copy.name).fetchall() == [(10000, 49995000)]


def test_a_sort_that_needs_too_much_memory_takes_fewer_files(lake):
    with hoglaked.started(lake.server.env["HOGLAKE_JDBC_URL"], lake.s3,
                          HOGLAKE_COMPACTION_SORTED_HEAP_BYTES=str(6 << 20)) as server:
        lake = Lake(server, lake.s3)
        lake.vectors = {}
        sort_by(lake, (1, "desc", "nulls_last"))
        for _ in range(16):
            lake.append(50000, group_rows=20000)
        before = visible(lake)
        result = lake.compact()
        assert result["heap_budget_exceeded"] >= 1, result
        assert result["groups_compacted"] == 1 and 5 <= result["files_in"] < 16, result
        assert visible(lake) == before
        check_totals(lake)


def test_deletes_and_compactions_at_once(lake):
    """Whatever comes first, a row that was deleted stays so, and no other is lost."""
    chance, gone = random.Random(SEED), set()
    for _ in range(24):
        lake.append(6)
    rows = set(visible(lake))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        compactions = [pool.submit(lambda: lake.compact()) for _ in range(3)]
        while not all(c.done() for c in compactions):
            head = lake.head()
            entries = [e for e in lake.scan("?snapshot=%d" % head)
                       if not e["data_file"].get("explicit_row_ids")]
            if not entries:
                break
            entry = chance.choice(entries)
            file, vector = entry["data_file"], entry.get("delete_file")
            old = lake.vectors[vector["path"]] if vector else set()
            new = old | {chance.randrange(6)}
            if delete(lake, [(file, sorted(new))], head)[0] == 200:
                gone |= {file["row_id_start"] + row for row in new}
        for compaction in compactions:
            compaction.result()
    assert set(visible(lake)) == rows - gone, (SEED, sorted(gone))
    check_totals(lake)
    lake.compact()
    assert set(visible(lake)) == rows - gone, SEED
    check_totals(lake)


def test_columns_that_change_meanwhile(lake):
    """A promotion rewrites the bounds that are there; a file made of the old type never has its."""
    lake = fresh(lake, [{"name": "id", "type": "long"}, {"name": "a", "type": "int"}])
    fields = [("id", 1, pa.int64()), ("a", 2, pa.int32())]
    for i in range(40):
        lake.register(write(lake, fields, [{"id": i, "a": -i}]))
    lake.wait_state("provided")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        compaction = pool.submit(lake.compact)
        alter(lake, {"op": "promote_column", "name": "a", "to": "long"})
        compaction.result()
    lake.compact()
    lows = [bound(e["data_file"]["column_stats"], 2, "lower_bound")
            for e in lake.scan("?include=column_stats")]
    assert min(lows) == -39 and None not in lows, lows
    assert {r["a"] for r in visible(lake).values()} == {-i for i in range(40)}


def test_what_pyhoglake_wrote_is_what_it_sees(lake):
    """Every flat type and nested ones, before and after columns changed and rows were deleted, written
    and scanned by the real client."""
    python, _ = judge_pyhoglake.environment("1.3.11")
    name = lake.name + "p"
    lake.ok("POST", "/catalogs", {"name": name, "data_path": "s3://%s/%s/" % (BUCKET, name)})

    def client(command, *more):
        done = subprocess.run(
            [python, os.path.join(os.path.dirname(__file__), "pyhoglake_rows.py"), command,
             lake.server.url, name, lake.s3.endpoint, lake.s3.access_key, lake.s3.secret_key] +
            [str(part) for part in more], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout) if done.stdout else None

    client("write")
    head = lake.ok("GET", "/catalogs/" + name)["head_snapshot_id"]
    before = client("scan", head)
    assert len(before) == 108
    file = max(lake.ok("GET", "/catalogs/%s/namespaces/n/tables/t/files" % name),
               key=lambda f: f["record_count"])
    key, gone = name + "/vector.puffin", [0, 17, 39]
    body = puffin.file({file["path"]: gone})
    lake.s3.client().put_object(Bucket=BUCKET, Key=key, Body=body)
    lake.ok("POST", "/catalogs/%s/commit" % name, {"read_snapshot": head, "deletes": [
        {"namespace": "n", "table": "t", "files": [
            {"data_file_id": file["data_file_id"], "delete_count": len(gone),
             "path": "s3://%s/%s" % (BUCKET, key), "file_size_bytes": len(body)}]}]})
    left = {row_id: row for row_id, row in before.items()
            if int(row_id) - file["row_id_start"] not in gone}
    assert len(left) == 105
    result = lake.ok("POST", "/catalogs/%s/maintenance/compact" % name)
    assert (result["files_in"], result["files_out"]) == (5, 1), result
    now = lake.ok("GET", "/catalogs/" + name)["head_snapshot_id"]
    assert now == head + 2  # the vector, the compaction
    after = client("scan", now)
    for row_id, row in left.items():
        assert after[row_id] == row, (row_id, after[row_id], row)
    assert after == left and client("scan", head) == before


if __name__ == "__main__":
    Lake.vectors = {}
    sys.exit(judge_compaction.run(globals()))
