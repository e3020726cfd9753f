"""VARIANT companions, judged by DuckDB: what it reads out of them is what Python's json module reads
out of the same texts, stored whole or with members apart; its own statements work on such tables
after us; and what no VARIANT can hold is NULL in the companion alone."""
import decimal
import json
import math
import random
import re
import struct
import sys

import pyarrow.parquet
import pytest

import lakes
import services

sys.setrecursionlimit(20000)  # for deep texts, by json and by canonical
BIG = 10 ** 38  # integers from here on are doubles in a VARIANT


class Unfit(Exception):
    """A text that the companion is NULL for."""


def read_float(text):
    value = float(text)
    if math.isinf(value):
        raise Unfit(text)
    return value


def read_int(text):
    value = int(text)
    if abs(value) < BIG:
        return value
    return read_float(text)


def refuse(text):
    raise Unfit(text)


def read(text):
    """The value of a JSON text; the last of equal keys wins. Unfit: no companion."""
    try:
        return json.loads(text, parse_float=read_float, parse_int=read_int, parse_constant=refuse)
    except (json.JSONDecodeError, UnicodeEncodeError) as error:
        raise Unfit(str(error)) from error


def canonical(value):
    """A value with its type, so that 1, 1.0 and True differ, and members in order of their names."""
    if isinstance(value, dict):
        return ("object", tuple(sorted((key, canonical(inner)) for key, inner in value.items())))
    if isinstance(value, (list, tuple)):
        return ("array", tuple(canonical(inner) for inner in value))
    if isinstance(value, decimal.Decimal):
        value = int(value)
    return (type(value).__name__, repr(value))


NAMES = ["$browser", "$os", "$lib", "$n", "$ok", "$price", "a", "b", "A", "", "é", "naïve", "日本",
         "$", "key with space", "quote\"", "back\\slash", "😀", "typed_value", "value", "metadata"]
STRINGS = ["", "x", "Chrome", "é" * 31 + "x", "é" * 32, "y" * 63, "y" * 64, "z" * 300, "日本語",
           "😀😀", "\u0000", "a\u0000b", "line\nbreak", "null", "1", "\"", "\\", "z" * 70000]
INTS = [0, 1, -1, 127, 128, -128, -129, 32767, 32768, -32769, 2 ** 31 - 1, 2 ** 31, -2 ** 31 - 1,
        2 ** 53, 2 ** 63 - 1, -2 ** 63, 2 ** 63, -2 ** 63 - 1, 2 ** 64 - 1, 2 ** 64, BIG - 1, 1 - BIG,
        BIG, -BIG * 12345]
FLOATS = [0.0, -0.0, 1.5, -1.5, 0.1, 1e308, -1e308, 5e-324, 1e-7, 123456.789, 1.0, 1e16]


def random_value(chance, depth):
    kind = chance.randrange(10 if depth < 5 else 7)
    if kind < 2:
        return chance.choice(STRINGS[:-1] if depth else STRINGS)
    if kind < 4:
        return chance.choice(INTS) if chance.random() < 0.7 else chance.getrandbits(40)
    if kind == 4:
        return chance.choice(FLOATS) if chance.random() < 0.7 else chance.random()
    if kind < 7:
        return chance.choice([None, True, False])
    if kind == 7:
        return [random_value(chance, depth + 1) for _ in range(chance.choice([0, 1, 2, 5, 40]))]
    return {chance.choice(NAMES): random_value(chance, depth + 1)
            for _ in range(chance.choice([0, 1, 2, 5, 20]))}


def event(chance, n):
    """An object as events have it: most members of one type, some not there, few of another type."""
    made = {"$browser": chance.choice(["Chrome", "Firefox", "Safari", ""]), "$n": n,
            "$price": n / 4 + 0.125, "$ok": n % 2 == 0, "other": {"deep": [n, str(n)]}}
    if chance.random() < 0.3:
        del made[chance.choice(sorted(made))]
    if chance.random() < 0.05:
        # no object of names that differ in case only: DuckDB's cast of such to VARCHAR fails
        made[chance.choice(["$browser", "$n", "$ok", "$price"])] = chance.choice(
            STRINGS[:-1] + INTS + FLOATS + [True, None, [1, "x"], {"z": [None]}])
    if chance.random() < 0.1:
        made[chance.choice(["$browser", "$n"])] = None
    order = list(made.items())
    chance.shuffle(order)
    return dict(order)


def texts(seed, count, share_of_events):
    """JSON texts: odd ones once, then events and random values."""
    chance = random.Random(seed)
    yield from ODD
    for n in range(count):
        value = event(chance, n) if chance.random() < share_of_events else random_value(chance, 0)
        yield json.dumps(value, ensure_ascii=chance.random() < 0.3,
                         separators=chance.choice([(",", ":"), (", ", " : ")]))


ODD = ["{}", "[]", "[[],{}]", '{"a":1,"a":2}', '{"a":{"b":1},"a":[1],"a":"last"}', '{"A":1,"a":2}',
       '{"$n":1,"$n":"two"}', '{"$n":"two","$n":1}', '{"a":{"x":1,"x":{"x":2,"x":3}},"b":0}',
       "-0", "-0.0", "1E2", '{"":{"":{"":null}}}', "[" * 500 + "]" * 500,
       '{"x":' * 500 + "[1.5]" + "}" * 500, json.dumps({"k%d" % n: n for n in range(300)}),
       json.dumps([n % 7 for n in range(300)]), json.dumps({"k%05d" % n: str(n) for n in range(3000)}),
       json.dumps({"l": ["w" * 1000] * 300}), json.dumps(["v"] * 70000)]

# Texts that are no JSON, or hold what no VARIANT can: NULL in the companion.
UNFIT = ["", " ", "x", "{", "}", "[1", "[1,]", '{"a":1', '{"a":1}}', '{"a" 1}', "{'a':1}", "1 2", "01",
         "+1", ".5", "1.", "1e", "NaN", "Infinity", "-Infinity", "nul", "nulll", "TRUE", '"', '"a',
         'a"', '"\\x"', '"\\ud800"', '"\n"', "1e400", "-1e400", '{"a":[1e400]}', "9" * 400, "\ufeff1",
         "[" * 1025 + "]" * 1025, "/**/1", "[1]x"]


def lines_of(all_texts, nested):
    """NDJSON: each text as a nested value where it can be one (no other values are in the column as
    JSON spells them), else as a string."""
    for n, text in enumerate(all_texts):
        try:
            value = read(text)
        except Unfit:
            value = None
        if nested and isinstance(value, (dict, list)):
            yield '{"id":%d,"p":%s}' % (n, text)
        else:
            yield '{"id":%d,"p":%s}' % (n, json.dumps(text))


def companions(lake, where="true", column="p"):
    """{id: canonical value of the companion as DuckDB has it, None: NULL}"""
    rows = lake.query("SELECT id, variant_typeof(%s_variant), %s_variant::JSON FROM lake.events "
                      "WHERE %s" % (column, column, where))
    found = {}
    for n, kind, text in rows:
        found[n] = None if kind == "VARIANT_NULL" else canonical(json.loads(text))
    return found


def expected(all_texts):
    want = {}
    for n, text in enumerate(all_texts):
        try:
            value = read(text)
            want[n] = None if value is None else canonical(value)
        except Unfit:
            want[n] = None
    return want


def same(found, want):
    assert found.keys() == want.keys()
    for n, value in want.items():
        assert found[n] == value, n


def leaves(lake):
    """Parquet paths of the companion in the newest file."""
    return [path for path, in lake.query(
        "SELECT DISTINCT path_in_schema FROM parquet_metadata(?) WHERE path_in_schema LIKE 'p_v%'",
        lake.file_paths()[-1])]


# --- the file, read by the letter of VariantEncoding.md and VariantShredding.md ----------------------

def number(data, at, size, signed=False):
    return int.from_bytes(data[at:at + size], "little", signed=signed)


def names_of(metadata):
    width = (metadata[0] >> 6) + 1
    assert metadata[0] & 0x3f == 0x11  # version 1, sorted
    count = number(metadata, 1, width)
    offsets = [number(metadata, 1 + width * (1 + n), width) for n in range(count + 1)]
    text = metadata[1 + width * (count + 2):]
    assert offsets[0] == 0 and offsets[-1] == len(text)
    names = [text[offsets[n]:offsets[n + 1]] for n in range(count)]
    assert names == sorted(set(names))
    return [name.decode() for name in names]


def nested(names, data):
    """The values of an object or array, and its ids."""
    is_object = data[0] & 3 == 2
    width = (data[0] >> 2 & 3) + 1
    id_width = (data[0] >> 4 & 3) + 1 if is_object else 0
    at = 5 if data[0] >> (6 if is_object else 4) & 1 else 2
    count = number(data, 1, at - 1)
    ids = [number(data, at + n * id_width, id_width) for n in range(count)] if is_object else []
    at += count * id_width
    offsets = [number(data, at + n * width, width) for n in range(count + 1)]
    values = data[at + (count + 1) * width:]
    assert offsets[-1] == len(values)
    order = sorted(offsets)
    ends = {begin: end for begin, end in zip(order, order[1:])}
    return ids, [decoded(names, values[begin:ends[begin]]) for begin in offsets[:-1]]


def decoded(names, data):
    kind, head = data[0] & 3, data[0] >> 2
    if kind == 1:
        assert len(data) == 1 + head
        return data[1:].decode()
    if kind == 2:
        ids, values = nested(names, data)
        assert ids == sorted(set(ids))  # the names are sorted, so this is their order
        return dict(zip((names[n] for n in ids), values))
    if kind == 3:
        return nested(names, data)[1]
    sizes = {0: 0, 1: 0, 2: 0, 3: 1, 4: 2, 5: 4, 6: 8, 7: 8, 10: 17, 16: 4 + number(data, 1, 4)}
    assert len(data) == 1 + sizes[head]
    if head < 3:
        return (None, True, False)[head]
    if head < 7:
        return number(data, 1, sizes[head], signed=True)
    if head == 7:
        return struct.unpack("<d", data[1:])[0]
    if head == 10:
        assert data[1] == 0  # scale
        return number(data, 2, 16, signed=True)
    return data[5:].decode()


def put_together(group):
    """The value of one group as pyarrow gives it."""
    names = names_of(group["metadata"])
    rest = None if group["value"] is None else decoded(names, group["value"])
    apart = group.get("typed_value")
    if apart is None:
        assert group["value"] is not None
        assert not ("typed_value" in group and isinstance(rest, dict)), "an object is stored apart"
        return rest
    whole = {} if group["value"] is None else rest
    assert group["value"] is None or whole, "nothing left is no value"
    for name, member in apart.items():
        assert name not in whole
        assert member["value"] is None or member["typed_value"] is None
        if member["value"] is not None:
            whole[name] = decoded(names, member["value"])
        elif member["typed_value"] is not None:
            whole[name] = member["typed_value"]
    assert set(whole) <= set(names)
    return whole


def by_the_letter(lake):
    """{id: canonical value of the companion}, read by pyarrow from the files themselves."""
    found = {}
    for path in lake.file_paths():
        table = pyarrow.parquet.ParquetFile(path).read(["id", "p_variant"])
        for row in table.to_pylist():
            group = row["p_variant"]
            found[row["id"]] = None if group is None else canonical(put_together(group))
    return found


SHAPES = {"whole": {"MILLPOND_VARIANT_KEY_PREFIX": ""}, "apart": {"MILLPOND_VARIANT_KEYS": "other,a"}}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("nested", [True, False], ids=["nested", "strings"])
def test_values_are_those_of_the_texts(local_lake, tmp_path, shape, nested):
    given = list(texts(seed=7, count=3000, share_of_events=0.8))
    lakes.load(local_lake, lines_of(given, nested), tmp_path, MILLPOND_VARIANT_COLUMNS="p",
               **SHAPES[shape])
    assert local_lake.columns() == {"id": "int64", "p": "varchar", "p_variant": "variant",
                                    "_inserted_at": "timestamptz"}
    same(companions(local_lake), expected(given))
    want = expected(given)
    found = by_the_letter(local_lake)
    assert {n for n in want if want[n] is None and found[n] is not None} == \
        {n for n, text in enumerate(given) if text.strip() == "null"}  # a VARIANT that is null
    same({n: None if value == canonical(None) else value for n, value in found.items()}, want)
    apart = [path for path in leaves(local_lake) if "typed_value" in path]
    assert len(apart) == (0 if shape == "whole" else 8), apart  # $browser, $n, $ok, $price


@pytest.mark.parametrize("partitioned", [False, True])
def test_members_apart_are_filtered_and_extracted_right(local_lake, tmp_path, partitioned):
    chance = random.Random(11)
    given = [json.dumps(event(chance, n)) for n in range(5000)]
    lines = ['{"id":%d,"part":"%s","p":%s}' % (n, n % 3, text) for n, text in enumerate(given)]
    settings = {"DUCKLAKE_PARTITION_BY": "part"} if partitioned else {}
    lakes.load(local_lake, lines, tmp_path, MILLPOND_VARIANT_COLUMNS="p", **settings)
    assert len(leaves(local_lake)) == 2 + 8
    same(companions(local_lake), expected(given))
    values = [json.loads(text) for text in given]

    def ids(where):
        return {n for n, in local_lake.query("SELECT id FROM lake.events WHERE " + where)}

    def matching(key, accept):
        return {n for n, value in enumerate(values) if key in value and accept(value[key])}

    def number(value):
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    assert ids("p_variant['$browser']::VARCHAR = 'Chrome'") == \
        matching("$browser", lambda v: v == "Chrome")
    assert ids("p_variant['$browser']::VARCHAR = 'not there'") == set()
    assert ids("p_variant['$browser'] IS NOT NULL") == matching("$browser", lambda v: v is not None)
    assert ids("variant_typeof(p_variant['$n']) LIKE 'INT%' AND p_variant['$n']::BIGINT > 4900") == \
        matching("$n", lambda v: type(v) is int and 4900 < v < 2 ** 63)
    assert ids("try_cast(p_variant['$price'] AS DOUBLE) = 25.125") >= \
        matching("$price", lambda v: number(v) and v == 25.125)
    assert ids("variant_typeof(p_variant['$ok']) = 'BOOL_TRUE'") == \
        matching("$ok", lambda v: v is True)
    assert ids("p_variant['other'].deep[2]::VARCHAR = '77'") == \
        matching("other", lambda v: v["deep"][1] == "77")


def test_texts_that_fit_no_variant_are_null_in_the_companion_alone(local_lake, tmp_path):
    given = UNFIT + ['{"a":1}', " [1] "]
    out = lakes.load(local_lake, ['{"id":%d,"p":%s}' % (n, json.dumps(text, ensure_ascii=False)
                                                        if "\\" not in text else json.dumps(text))
                                  for n, text in enumerate(given)],
                     tmp_path, MILLPOND_VARIANT_COLUMNS="p")
    assert "0 values rescued" in out
    assert local_lake.query("SELECT id, p FROM lake.events ORDER BY id") == list(enumerate(given))
    assert local_lake.query("SELECT id FROM lake.events WHERE p_variant IS NOT NULL ORDER BY id") == \
        [(len(UNFIT),), (len(UNFIT) + 1,)]
    (values, nulls), = local_lake.sql(
        "SELECT s.value_count, s.null_count FROM ducklake_file_column_stats s JOIN ducklake_column c"
        " ON c.column_id = s.column_id WHERE c.column_name = 'p_variant'")
    assert (values, nulls) == (2, len(UNFIT))


def test_other_columns_have_companions_too(local_lake, tmp_path):
    """As the cast of such a column to JSON gives it."""
    lakes.load(local_lake, [
        '{"id":1,"n":5,"f":1.5,"t":true,"ts":"2024-03-01T10:00:00.25Z","u":"%s"}' % ("ab" * 16),
        '{"id":2}', '{"id":3,"n":-9223372036854775808,"f":-0.0,"t":false}'], tmp_path,
        MILLPOND_VARIANT_COLUMNS="n,f,t,ts,u,absent",
        MILLPOND_TYPED_COLUMNS="ts:timestamptz,u:uuid")
    assert list(local_lake.columns()) == ["id", "n", "f", "t", "ts", "u", "n_variant", "f_variant",
                                          "t_variant", "ts_variant", "u_variant", "_inserted_at"]
    found = local_lake.query(
        "SELECT id, n_variant::JSON, f_variant::JSON, t_variant::JSON, ts_variant::JSON, "
        "u_variant::JSON, n_variant = try_cast(try_cast(n AS JSON) AS VARIANT), "
        "ts_variant = try_cast(try_cast(ts AS JSON) AS VARIANT), "
        "u_variant = try_cast(try_cast(u AS JSON) AS VARIANT) FROM lake.events ORDER BY id")
    assert found[0] == (1, "5", "1.5", "true", '"2024-03-01 10:00:00.25+00"',
                        '"abababab-abab-abab-abab-abababababab"', True, True, True)
    assert local_lake.value("SELECT coalesce(n_variant, f_variant, t_variant, ts_variant, u_variant)"
                            " IS NULL FROM lake.events WHERE id = 2")
    assert found[2][1:4] == ("-9223372036854775808", "-0.0", "false")


def test_companions_come_when_their_column_does(local_lake, tmp_path):
    """Added on the fly, also beside a table that is there; a source that is not sent leaves NULL."""
    settings = {"MILLPOND_VARIANT_COLUMNS": "p, Q"}
    lakes.load(local_lake, ['{"id":1,"p":{"a":1}}'], tmp_path, name="1.ndjson")
    assert "p_variant" not in local_lake.columns()
    lakes.load(local_lake, ['{"id":2}'], tmp_path, name="2.ndjson", **settings)
    assert "p_variant" not in local_lake.columns()
    lakes.load(local_lake, ['{"id":3,"p":{"a":3},"q":"[3]"}'], tmp_path, name="3.ndjson", **settings)
    assert [name for name in local_lake.columns() if name.endswith("_variant")] == \
        ["p_variant", "Q_variant"]
    lakes.load(local_lake, ['{"id":4,"q":null}'], tmp_path, name="4.ndjson", **settings)
    lakes.load(local_lake, ['{"id":5,"P":{"a":5}}'], tmp_path, name="5.ndjson", **settings)
    lakes.load(local_lake, ['{"id":6,"p":{"a":6}}'], tmp_path, name="6.ndjson")
    assert local_lake.query("SELECT id, p_variant.a::BIGINT, Q_variant[1]::BIGINT FROM lake.events "
                            "ORDER BY id") == [(1, None, None), (2, None, None), (3, 3, 3),
                                               (4, None, None), (5, 5, None), (6, None, None)]


def test_a_column_of_the_companions_name_and_another_type_stays(local_lake, tmp_path):
    lakes.load(local_lake, ['{"id":1,"p_variant":"mine"}'], tmp_path, name="1.ndjson")
    out = lakes.load(local_lake, ['{"id":2,"p":{"a":1}}', '{"id":3,"p":{"a":1},"P_variant":"x"}'],
                     tmp_path, name="2.ndjson", MILLPOND_VARIANT_COLUMNS="p")
    assert 'p_variant\\" is no VARIANT column and cannot be made one' in out
    assert local_lake.query("SELECT id, p, p_variant, _rescued_data FROM lake.events ORDER BY id") == \
        [(1, None, "mine", None), (2, '{"a":1}', None, None),
         (3, '{"a":1}', None, '{"P_variant":"x"}')]


def test_fields_of_the_companions_name_are_rescued(local_lake, tmp_path):
    """Also one that is the record's only field: its row stays. And so for a VARIANT column that is
    nobody's companion."""
    local_lake.execute("CREATE TABLE lake.events (v VARIANT)")
    lakes.load(local_lake, ['{"p_variant":1}', '{"p":[1],"P_VARIANT":{"x":2},"V":3}'], tmp_path,
               MILLPOND_VARIANT_COLUMNS="p")
    assert local_lake.query("SELECT p, p_variant::VARCHAR, v::VARCHAR, _rescued_data FROM "
                            "lake.events ORDER BY p NULLS FIRST") == \
        [(None, None, None, '{"p_variant":1}'), ("[1]", "[1]", None, '{"P_VARIANT":{"x":2},"V":3}')]


def test_duckdb_works_on_the_table_after_us(local_lake, tmp_path):
    """INSERT, UPDATE, DELETE, merging and cleaning up, with files that store members apart and files
    that do not; then we append again."""
    chance = random.Random(5)
    given = {n: json.dumps(event(chance, n)) for n in range(400)}
    given[400] = json.dumps({"big": BIG - 1, "$n": 2 ** 64 - 1})

    def load(name, numbers, **settings):
        lakes.load(local_lake, ['{"id":%d,"p":%s}' % (n, given[n]) for n in numbers], tmp_path,
                   name=name, MILLPOND_VARIANT_COLUMNS="p", **settings)

    load("apart.ndjson", range(200))
    load("whole.ndjson", range(200, 401), MILLPOND_VARIANT_KEY_PREFIX="")
    local_lake.execute(
        "INSERT INTO lake.events (id, p, p_variant) SELECT id + 1000, p, p_variant FROM lake.events "
        "WHERE id < 50", "DELETE FROM lake.events WHERE id % 10 = 3",
        "UPDATE lake.events SET p = 'updated' WHERE id % 10 = 4",
        "UPDATE lake.events SET p_variant = 'new'::VARIANT WHERE id = 5")
    want = {n: canonical(read(given[n % 1000])) for n in list(range(401)) + list(range(1000, 1050))
            if n % 10 != 3}
    want[5] = canonical("new")
    same(companions(local_lake), want)
    local_lake.execute("CALL ducklake_merge_adjacent_files('lake')",
                       "CALL ducklake_rewrite_data_files('lake', 'events', delete_threshold => 0)",
                       "CALL ducklake_merge_adjacent_files('lake')",
                       "CALL ducklake_expire_snapshots('lake', older_than => now())",
                       "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
    same(companions(local_lake), want)
    given.update((n, json.dumps(event(chance, n))) for n in range(500, 700))
    load("again.ndjson", range(500, 700))
    want.update((n, canonical(read(given[n]))) for n in range(500, 700))
    same(companions(local_lake), want)
    local_lake.execute("ALTER TABLE lake.events RENAME COLUMN p_variant TO old")
    load("renamed.ndjson", [7])
    assert local_lake.query("SELECT p_variant.\"$n\" IS NULL, old IS NULL, count(*) FROM lake.events "
                            "GROUP BY ALL ORDER BY 3")[0][2] == 1


def test_a_table_that_duckdb_made_takes_companions(local_lake, tmp_path):
    local_lake.execute("CREATE TABLE lake.events (id BIGINT, p VARCHAR, P_Variant VARIANT)",
                       "INSERT INTO lake.events VALUES (1, '[1]', [1]::VARIANT), (2, NULL, NULL)")
    lakes.load(local_lake, ['{"id":3,"p":{"a":"x"}}', '{"id":4}'], tmp_path,
               MILLPOND_VARIANT_COLUMNS="p")
    assert local_lake.query("SELECT id, P_Variant::JSON FROM lake.events WHERE P_Variant IS NOT NULL "
                            "ORDER BY id") == [(1, "[1]"), (3, '{"a":"x"}')]


def test_events_from_kafka_have_companions(s3_lake, kafka):
    """Several flushes from a broker to PostgreSQL and S3, partitioned; and what is counted of it."""
    chance = random.Random(3)
    topic = lakes.unique("variants")
    kafka.create_topic(topic, partitions=2)
    given = [json.dumps(event(chance, n)) for n in range(3000)]
    given[17] = json.dumps({"huge": 10 ** 50})
    want = expected(given)
    want[18] = None
    records = ['{"id":%d,"day":%d,"p":%s}' % (n, n % 2, text) for n, text in enumerate(given)]
    records[18] = '{"id":18,"day":0,"p":"not JSON","p_variant":"taken"}'
    services.produce(kafka.bootstrap, topic, [record.encode() for record in records])
    env = services.environment(kafka, topic, **dict(
        s3_lake.env(), MILLPOND_VARIANT_COLUMNS="p", FLUSH_SIZE="100000",
        DUCKLAKE_PARTITION_BY="day"))
    with services.run_millpond(env) as millpond:
        millpond.wait_metric("millpond_records_written_total", 3000)
        assert millpond.metric("millpond_variant_values_null_total") == 1
        assert millpond.metric("millpond_variant_values_coerced_total") == \
            sum(bool(re.search("[0-9]{39}", text)) for text in given)
        assert millpond.metric("millpond_variant_companion_columns_dropped_total") == 1
        assert millpond.metric("millpond_variant_write_fallback_total") == 0
        assert millpond.metric("millpond_batches_flushed_total") > 1
        assert millpond.logged("Dual-write VARIANT columns: p")
    same(companions(s3_lake), want)
    assert s3_lake.value("SELECT _rescued_data FROM lake.events WHERE id = 18") == \
        '{"p_variant":"taken"}'


@pytest.mark.parametrize("catalog", ["local_lake", "pg_lake"])
def test_rows_inlined_before_a_companion_comes_stay(request, tmp_path, catalog):
    """DuckDB keeps few rows in the catalog, but not those of a table with a VARIANT: it goes on with
    such a table when we have added one."""
    lake = request.getfixturevalue(catalog)
    lake.execute("CREATE TABLE lake.events (id BIGINT, p VARCHAR)",
                 "INSERT INTO lake.events VALUES (1, '[1]'), (2, NULL)")
    assert lake.sql("SELECT count(*) FROM ducklake_inlined_data_tables")[0][0] > 0
    assert not lake.files()
    lakes.load(lake, ['{"id":3,"p":{"a":"x"}}'], tmp_path, MILLPOND_VARIANT_COLUMNS="p")
    lake.execute("INSERT INTO lake.events (id, p, p_variant) VALUES (4, 'y', 'y'::VARIANT)",
                 "UPDATE lake.events SET p_variant = p::JSON::VARIANT WHERE id = 1",
                 "CALL ducklake_flush_inlined_data('lake')",
                 "CALL ducklake_merge_adjacent_files('lake')")
    assert lake.query("SELECT id, p, p_variant::JSON FROM lake.events WHERE p_variant IS NOT NULL "
                      "ORDER BY id") == \
        [(1, "[1]", "[1]"), (3, '{"a":"x"}', '{"a":"x"}'), (4, "y", '"y"')]
    assert lake.query("SELECT id, p FROM lake.events WHERE p_variant IS NULL") == [(2, None)]
