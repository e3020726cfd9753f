"""A table as pyhoglake writes it and sees it; run with pyhoglake's Python by judge_merge.py.

    pyhoglake_rows.py write URL CATALOG ENDPOINT ACCESS_KEY SECRET_KEY
    pyhoglake_rows.py scan URL CATALOG ENDPOINT ACCESS_KEY SECRET_KEY SNAPSHOT

write makes a table n.t with a column of every flat type and some nested ones, and appends to it before and after columns
were added, promoted and dropped. scan prints the rows of a snapshot by row id, as JSON: files and
columns are those that pyhoglake tells, pyarrow reads the files.
"""
import datetime as dt
import decimal
import json
import random
import sys
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
from pyhoglake import HoglakeClient, S3Config, ops

DAY = dt.datetime(2026, 9, 5, 12)
FIELDS = [
    ("id", pa.int64(), lambda r: r.randrange(1 << 62)),
    ("flag", pa.bool_(), lambda r: r.random() < 0.5),
    ("i8", pa.int8(), lambda r: r.randrange(-128, 128)),
    ("i16", pa.int16(), lambda r: r.randrange(-2**15, 2**15)),
    ("i32", pa.int32(), lambda r: r.randrange(-2**31, 2**31)),
    ("u8", pa.uint8(), lambda r: r.randrange(256)),
    ("u16", pa.uint16(), lambda r: r.randrange(65536)),
    ("u32", pa.uint32(), lambda r: r.randrange(2**32)),
    ("u64", pa.uint64(), lambda r: r.randrange(2**64)),
    ("f32", pa.float32(), lambda r: r.randrange(-9999, 9999) / 8),
    ("f64", pa.float64(), lambda r: r.gauss(0, 1e9)),
    ("price", pa.decimal128(10, 2), lambda r: decimal.Decimal(r.randrange(-10**9, 10**9)).scaleb(-2)),
    ("big", pa.decimal128(38, 5), lambda r: decimal.Decimal(r.randrange(10**37)).scaleb(-5)),
    ("day", pa.date32(), lambda r: dt.date(1970, 1, 1) + dt.timedelta(r.randrange(30000))),
    ("clock", pa.time64("us"), lambda r: dt.time(r.randrange(24), r.randrange(60), 1, 999)),
    ("ts_s", pa.timestamp("s"), lambda r: DAY + dt.timedelta(seconds=r.randrange(10**8))),
    ("ts_ms", pa.timestamp("ms"), lambda r: DAY + dt.timedelta(milliseconds=r.randrange(10**9))),
    ("ts_us", pa.timestamp("us"), lambda r: DAY + dt.timedelta(microseconds=r.randrange(10**9))),
    ("ts_ns", pa.timestamp("ns"), lambda r: DAY + dt.timedelta(microseconds=r.randrange(10**9))),
    ("ts_tz", pa.timestamp("us", "UTC"), lambda r: DAY.replace(tzinfo=dt.timezone.utc)),
    ("text", pa.string(), lambda r: r.choice(["", "Zürich", "x" * r.randrange(99)])),
    ("doc", pa.json_(), lambda r: '{"a": %d}' % r.randrange(99)),
    ("key", pa.uuid(), lambda r: uuid.UUID(int=r.getrandbits(128)).bytes),
    ("raw", pa.binary(), lambda r: r.randbytes(r.randrange(9))),
    ("list", pa.list_(pa.int64()), lambda r: [r.choice([None, 1, 2]) for _ in range(r.randrange(4))]),
    ("lists", pa.list_(pa.list_(pa.string())),
     lambda r: [r.choice([None, [], ["a", None]]) for _ in range(r.randrange(3))]),
    ("struct", pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))]),
     lambda r: {"a": r.randrange(9), "b": r.choice([None, {"c": None}, {"c": "x"}])}),
    ("structs", pa.list_(pa.struct([("x", pa.float64()), ("day", pa.date32())])),
     lambda r: [r.choice([None, {"x": 0.5, "day": None}]) for _ in range(r.randrange(3))]),
    ("map", pa.map_(pa.string(), pa.decimal128(9, 2)),
     lambda r: [("k%d" % k, r.choice([None, decimal.Decimal("1.25")])) for k in range(r.randrange(3))]),
]


def rows(fields, count, r):
    def column(kind, make):
        values = [None if r.random() < 0.2 else make(r) for _ in range(count)]
        storage = getattr(kind, "storage_type", None)
        if storage is None:
            return pa.array(values, kind)
        return pa.ExtensionArray.from_storage(kind, pa.array(values, storage))
    return pa.Table.from_arrays([column(kind, make) for _, kind, make in fields],
                                schema=pa.schema([(name, kind) for name, kind, _ in fields]))


def write(catalog):
    r = random.Random(7)
    table = catalog.create_namespace("n").create_table(
        "t", pa.schema([(name, kind) for name, kind, _ in FIELDS]))
    for count in (40, 1, 25):
        table.append(rows(FIELDS, count, r))
    table.alter([ops.add_column("more", pa.string()), ops.promote_column("i8", "long"),
                 ops.promote_column("u8", "uint32"), ops.promote_column("f32", "double"),
                 ops.drop_column("raw"), ops.rename_column("text", "words")])
    now = {"i8": ("i8", pa.int64()), "u8": ("u8", pa.uint32()), "f32": ("f32", pa.float64()),
           "text": ("words", pa.string())}
    fields = [now.get(name, (name, kind)) + (make,) for name, kind, make in FIELDS
              if name != "raw"] + [("more", pa.string(), lambda r: "m%d" % r.randrange(99))]
    for count in (30, 12):
        table.append(rows(fields, count, r))


def scan(catalog, s3, snapshot):
    table = catalog.namespace("n").table("t")
    columns = table.info(snapshot=snapshot).columns
    found = {}
    for entry in table.scan_plan(snapshot=snapshot):
        file = entry.data_file
        data = pq.read_table(file.path[len("s3://"):], filesystem=s3.filesystem())
        ids = (data.column("_hog_row_id").to_pylist() if "_hog_row_id" in data.column_names
               else range(file.row_id_start, file.row_id_start + data.num_rows))
        at = {field.metadata[b"PARQUET:field_id"]: i for i, field in enumerate(data.schema)}
        for i, row_id in enumerate(ids):
            found[row_id] = {}
        for column in columns:
            number = at.get(b"%d" % column.field_id)
            values = [None] * data.num_rows if number is None else data.column(number).to_pylist()
            for row_id, value in zip(ids, values):
                found[row_id][column.name] = None if value is None else str(value)
    print(json.dumps(found, sort_keys=True))


def main():
    command, url, name, endpoint, access_key, secret_key = sys.argv[1:7]
    s3 = S3Config(access_key=access_key, secret_key=secret_key, region="us-east-1",
                  endpoint_override=endpoint)
    with HoglakeClient(url, s3=s3) as client:
        if command == "write":
            write(client.catalog(name))
        else:
            scan(client.catalog(name), s3, int(sys.argv[7]))


main()
