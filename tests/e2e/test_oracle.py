"""What the Python program made of 141 odd inputs, and what this one makes of them.

tests/data/oracle holds the inputs and the tables that the Python program left behind (or how it died).
Where it worked, columns, types and values are the same here. Each case in which they are not stands in
DIFFERENCES, with the table as it has to be and the reason; docs/differences.md has a line for each
reason. The tables there are worked out by hand from docs/types.md; none is a copy of an output. The
same holds for what is counted, in COUNT_DIFFERENCES."""
import base64
import collections
import json
import os
import re
import time

import pytest

import conftest
import lakes
import services

DATA = os.path.join(conftest.TOP, "tests/data/oracle")
STAMP = ("_inserted_at", "TIMESTAMP WITH TIME ZONE")
RESCUED = ("_rescued_data", "VARCHAR")
ID = ("id", "BIGINT")


def read(name):
    with open(os.path.join(DATA, name), encoding="utf-8") as text:
        return json.load(text)


CASES = read("cases.json")
OUTCOMES = {outcome["name"]: outcome for outcome in read("cases_outcome.json")}


# A table as it should be. `columns` are (name, type) in the table's order; `rows` hold the values as
# DuckDB prints them, in that order without _inserted_at; `quarantined` counts the records that are no
# rows. None for `columns`: there is no table.
Table = collections.namedtuple("Table", "columns rows quarantined")


def table(columns, *rows, quarantined=0):
    return Table(list(columns), [tuple(row) for row in rows], quarantined)


def column_x(type_name, *values):
    """Columns id (1, 2, ...) and x, made by one flush."""
    return table([ID, ("x", type_name), STAMP],
                 *[(str(n), value) for n, value in enumerate(values, 1)])


def rescued_x(columns, *rows):
    """Columns id (1, 2, ...), those given and the rescued one, which came last."""
    return table([ID] + columns + [STAMP, RESCUED],
                 *[(str(n),) + row for n, row in enumerate(rows, 1)])


# --- what is not as it was -----------------------------------------------------------------------

# case -> (reason, the table that it has to be)
DIFFERENCES = {
    # It worked, and gave something else.
    "int_after_bool": ("json-spelling", column_x("VARCHAR", "true", "1")),
    "bool_after_float": ("bool-and-number", column_x("VARCHAR", "1.5", "true")),
    "above_uint64": ("large-integers", column_x("VARCHAR", "18446744073709551616")),
    "only_empty_objects": ("empty-objects", table([STAMP], (), ())),
    "only_empty_objects_later": ("empty-objects", column_x("BIGINT", "5", None)._replace(
        rows=[("1", "5"), (None, None)])),
    "all_null_column": ("only-nulls", table([ID, STAMP], ("1",))),
    "empty_key": ("impossible-names", rescued_x([], ('{"":5}',))),
    "key_with_nul": ("impossible-names", rescued_x([], ('{"a\\u0000b":5}',))),
    "case_twins_one_record": ("one-column-two-spellings",
                              rescued_x([("A", "BIGINT")], ("1", '{"a":2}'))),
    "case_twins_two_records": ("one-column-two-spellings",
                               table([ID, ("Key", "BIGINT"), STAMP], ("1", "1"), ("2", "2"))),
    "file_case_twins": ("one-column-two-spellings", table(
        [ID, ("A", "BIGINT"), STAMP, RESCUED], *[(str(n), "1", '{"a":2}') for n in range(20)])),
    "bool_then_text_true": ("boolean-values", rescued_x(
        [("x", "BOOLEAN")], ("true", None), ("true", None), (None, '{"x":"f"}'))),
    "file_bool_then_int": ("boolean-values", table(
        [ID, ("x", "BOOLEAN"), STAMP, RESCUED],
        *[(str(n), "true", None) for n in range(20)],
        *[(str(n), None, '{"x":7}') for n in range(20)])),
    "file_bool_then_int_then_again": ("boolean-values", table(
        [ID, ("x", "BOOLEAN"), STAMP, RESCUED],
        *[(str(n), "true", None) for n in range(20)],
        *[(str(n), None, None) for n in range(20)],
        *[(str(n), None, '{"x":7}') for n in range(20)])),
    "typed_zone_mark": ("zoned-timestamps", table(
        [ID, ("t", "TIMESTAMP WITH TIME ZONE"), STAMP],
        ("1", "2026-03-01 00:00:00+00"), ("2", "2026-03-01 00:00:00.5+00"))),
    "typed_number_to_varchar": ("number-spelling", table(
        [ID] + [(name, "VARCHAR") for name in "xyzwv"] + [STAMP],
        ("1", "7", "1.0", "true", "1e+20", "1e-07"))),
    "typed_float_to_bigint": ("rescued-values", rescued_x(
        [("x", "BIGINT")], ("2", None), (None, '{"x":2.5}'))),
    "typed_uuid": ("rescued-values", rescued_x(
        [("u", "UUID")], ("01234567-89ab-cdef-0123-456789abcdef", None), (None, '{"u":"not"}'),
        (None, None))),
    "typed_bool": ("rescued-values", rescued_x(
        [("x", "BOOLEAN")], ("true", None), ("false", None), (None, '{"x":"yes"}'))),

    # It died while it converted or joined, and again after each start.
    "bool_after_int": ("mixed-batches", column_x("VARCHAR", "1", "true")),
    "null_batch_then_int_batch": ("mixed-batches", column_x("BIGINT", None, "5")),
    "int_batch_then_float_batch": ("mixed-batches", column_x("DOUBLE", "5.0", "5.5")),
    "int_batch_then_string_batch": ("mixed-batches", column_x("VARCHAR", "5", "five")),
    "bool_batch_then_int_batch": ("mixed-batches", column_x("VARCHAR", "true", "5")),
    "uint64_only": ("large-integers", column_x("VARCHAR", "9223372036854775808")),
    "uint64_after_int": ("large-integers", column_x("VARCHAR", "1", "9223372036854775808")),
    "int_after_uint64": ("large-integers", column_x("VARCHAR", "9223372036854775808", "1")),
    "deep_255": ("deep-values", table([ID, ("d", "VARCHAR"), STAMP],
                                      ("1", "[" * 255 + "]" * 255))),
    "deep_1023": ("deep-values", table([ID, ("d", "VARCHAR"), STAMP],
                                       ("1", "[" * 1023 + "]" * 1023))),
    "typed_float_to_timestamptz": ("rescued-values", rescued_x(
        [("t", "TIMESTAMP WITH TIME ZONE")], (None, '{"t":1772323200.5}'))),

    # It died while it wrote.
    "reserved_inserted_at": ("reserved-names", rescued_x([], ('{"_inserted_at":"x"}',))),
    "reserved_upper_INSERTED_AT": ("reserved-names", rescued_x([], ('{"_INSERTED_AT":"x"}',))),
    "reserved_year": ("reserved-names", table([ID, ("year", "BIGINT"), STAMP], ("1", "2026"))),
    "reserved_later": ("reserved-names", table([ID, STAMP, ("month", "BIGINT")],
                                               ("1", None), ("2", "3"))),
    "name_ducklake_internal": ("impossible-names", rescued_x([], (
        '{"_ducklake_internal_row_id":7,"_ducklake_internal_snapshot_id":8}',))),
    "new_unsafe_column": ("unsafe-names", table([ID, STAMP, ("$x", "BIGINT")],
                                                ("1", None), ("2", "5"))),
    "file_case_twins_again": ("one-column-two-spellings", table(
        [ID, ("A", "BIGINT"), STAMP, RESCUED],
        *[(str(n), "1", None) for n in range(20)],
        *[(str(n), "1", '{"a":2}') for n in range(20)])),
    "bigint_then_text_word": ("rescued-values", rescued_x(
        [("x", "BIGINT")], ("5", None), (None, '{"x":"six"}'))),
    "bool_then_text_word": ("rescued-values", rescued_x(
        [("x", "BOOLEAN")], ("true", None), (None, '{"x":"maybe"}'))),
    "bool_then_int": ("boolean-values", rescued_x(
        [("x", "BOOLEAN")], ("true", None), ("false", None), (None, '{"x":7}'))),
}

# What else than the table is counted of a case: case -> (reason, the series that it has to move).
COUNTED = ("columns_coerced_total", "errors_total", "schema_columns_added_total",
           "schema_columns_widened_total")
UNSAFE, SCHEMA = "skipped_total{unsafe_field_name}", "errors_total{schema}"
COERCION, ADDED = "errors_total{column_coercion}", "schema_columns_added_total"

COUNT_DIFFERENCES = {
    "unsafe_keys_at_creation": ("unsafe-names", {}),
    "unsafe_column_known": ("unsafe-names", {}),
    "file_unsafe_name": ("unsafe-names", {}),
    "new_unsafe_column": ("unsafe-names", {ADDED: 1}),
    "name_ducklake_internal": ("impossible-names", {UNSAFE: 2}),
    "reserved_later": ("reserved-names", {ADDED: 1}),
    "double_then_bigint": ("values-that-fit", {}),
    "bigint_then_text_number": ("values-that-fit", {}),
    "bigint_then_null": ("values-that-fit", {}),
    "bigint_then_bool": ("values-that-fit", {}),
    "text_then_bigint": ("values-that-fit", {}),
    "text_then_double": ("values-that-fit", {}),
    "text_then_bool": ("values-that-fit", {}),
    "double_then_text_nan": ("values-that-fit", {}),
    # the rescued column is the one that is added
    "bool_then_text_true": ("rescued-values", {SCHEMA: 1, ADDED: 1}),
    "bool_then_text_word": ("rescued-values", {SCHEMA: 1, ADDED: 1}),
    "bigint_then_text_word": ("rescued-values", {SCHEMA: 1, ADDED: 1}),
    "bool_then_int": ("boolean-values", {SCHEMA: 1, ADDED: 1}),
    "file_bool_then_int": ("boolean-values", {SCHEMA: 1, ADDED: 1}),
    "file_bool_then_int_then_again": ("boolean-values", {SCHEMA: 1, ADDED: 1}),
    "file_case_twins_again": ("one-column-two-spellings", {ADDED: 1}),
    "typed_null_batch_then_int": ("values-that-fit", {}),
    "typed_nested_to_varchar": ("pins-before-joins", {"columns_coerced_total{varchar}": 1}),
    "typed_zone_mark": ("zoned-timestamps", {"columns_coerced_total{timestamptz}": 1}),
    "typed_float_to_timestamptz": ("rescued-values", {COERCION: 1}),
    "typed_uuid": ("values-that-fit", {COERCION: 1}),
    "typed_uuid_two_flushes": ("values-that-fit", {"columns_coerced_total{uuid}": 2}),
}

# Of the 60 records that came in one batch: column -> (reason, None for "there is none", or its type
# and {id: value} for the values that are other ones; a type of None is the one it was).
TRICKY_DIFFERENCES = {
    "n": ("only-nulls", None),
    "f": ("large-integers", "VARCHAR", {"8": "9007199254740993", "9": "18446744073709551615",
                                        "10": "100000000000000000000"}),
    "int_then_float": ("integers-and-fractions", "DOUBLE", {"11": "1.0"}),
    "mix": ("json-spelling", None, {"15": "true"}),
    "obj": ("nested-as-sent", None, {
        "24": '{"b":1,"a":{"z":[{}],"y":null},"dup":1,"dup":2,"u":"é/\\u0007","f":1.0,"e":1E+5,'
              '"t":1e-7,"big":18446744073709551615,"huge":1e22}'}),
    "Case": ("one-column-two-spellings", None, {"36": "lower in another"}),
    "case_1": ("one-column-two-spellings", None),
}


# --- what the Python program left behind ----------------------------------------------------------

def printed(value, type_name):
    """A value of json.loads as DuckDB prints it in a column of that type."""
    if value is None:
        return None
    if type_name == "BIGINT":
        return str(int(value))
    if type_name == "DOUBLE":
        return repr(float(value))
    if type_name == "VARCHAR" and not isinstance(value, str):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return value


def fits(recorded, value):
    """A long text is recorded as its begin and its length."""
    cut = re.fullmatch(r"(.*)\u2026\((\d+) chars\)", recorded or "", re.DOTALL)
    return value[:len(cut[1])] == cut[1] and len(value) == int(cut[2]) if cut else value == recorded


def records(case):
    return [[record for batch in flush["batches"] for record in batch] for flush in case["flushes"]]


def left_behind(case):
    """The table that the Python program left; of many rows only the first are recorded, and of long
    texts only the begin, so the whole comes from what went in."""
    outcome = OUTCOMES[case["name"]]
    quarantined = sum(flush.get("skipped", 0) for flush in outcome["flushes"])
    if "schema" not in outcome:
        return Table(None, [], quarantined)
    columns = [tuple(column) for column in outcome["schema"]]
    names = [column for column in columns if column != STAMP]
    recorded = [tuple(row[name] for name, _ in names) for row in outcome["rows"]]
    if outcome["n_rows"] == len(recorded) and "chars)" not in repr(recorded):
        return Table(columns, recorded, quarantined)
    lines = [json.loads(line) for flush in records(case) for line in flush]
    rows = [tuple(printed(line.get(name), type_name) for name, type_name in names)
            for line in lines]
    assert len(rows) == outcome["n_rows"]
    for row, short in zip(rows, recorded):
        assert all(fits(*pair) for pair in zip(short, row)), (short, row)
    return Table(columns, rows, quarantined)


def same_as_left(case, want):
    outcome = OUTCOMES[case["name"]]
    if "n_rows" not in outcome:
        return outcome.get("schema") == want.columns
    columns = [tuple(column) for column in outcome["schema"]]
    recorded = [tuple(row[name] for name, _ in columns if name != "_inserted_at")
                for row in outcome["rows"]]
    return (columns, outcome["n_rows"], recorded) == \
        (want.columns, len(want.rows), want.rows[:len(recorded)])


def died(case):
    return any("raised" in flush for flush in OUTCOMES[case["name"]]["flushes"])


# --- what we make of it ---------------------------------------------------------------------------

def found(lake, quarantine="bad"):
    """The table as DuckDB shows it, every value as text, and how many different stamps it has."""
    connection = lake.duckdb()
    try:
        connection.execute("SET TimeZone = 'UTC'")
        tables = {row[0] for row in connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = 'lake'").fetchall()}
        quarantined = connection.execute("SELECT count(*) FROM lake." + quarantine).fetchone()[0] \
            if quarantine in tables else 0
        if "events" not in tables:
            return Table(None, [], quarantined), 0
        columns = [row[:2] for row in connection.execute("DESCRIBE lake.events").fetchall()]
        values = ['CAST("%s" AS VARCHAR)' % name.replace('"', '""') for name, _ in columns
                  if name != "_inserted_at"]
        rows = connection.execute("SELECT %s FROM lake.events" % ", ".join(values or ["1"]))
        rows = [row if values else () for row in rows.fetchall()]
        stamps = connection.execute("SELECT count(DISTINCT _inserted_at) FROM lake.events")
        return Table(columns, rows, quarantined), stamps.fetchone()[0]
    finally:
        connection.close()


def check(got, want):
    assert got.columns == want.columns
    key = lambda row: tuple((value is not None, value or "") for value in row)
    assert sorted(got.rows, key=key) == sorted(want.rows, key=key)
    assert got.quarantined == want.quarantined


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(local_lake, tmp_path, case):
    """Each flush is one load of one file."""
    name = case["name"]
    if name in DIFFERENCES:
        want = DIFFERENCES[name][1]
        assert not same_as_left(case, want), "it agrees: take the entry out"
    else:
        assert not died(case), "what it has to be must be told"
        want = left_behind(case)
    flushes = records(case)
    for number, lines in enumerate(flushes):
        lakes.load(local_lake, lines, tmp_path, "flush%d" % number, MILLPOND_QUARANTINE_TABLE="bad",
                   **({"MILLPOND_TYPED_COLUMNS": case["typed"]} if case["typed"] else {}))
    got, stamps = found(local_lake)
    check(got, want)
    if want.columns:
        # small-flushes: a flush of any size is one file; and one time for all of its rows
        assert len(local_lake.files()) == stamps == len(flushes)


def counts_left(case):
    """{series: number} that the Python program moved, of those that COUNTED and UNSAFE name."""
    sums = collections.Counter()
    for flush in OUTCOMES[case["name"]]["flushes"]:
        for series, number in (flush.get("metrics") or {}).items():
            name, label = re.fullmatch(r"millpond_(\w+)(?:\{\w+=(\w+)\})?", series).groups()
            name = "skipped_total" if name == "records_skipped_total" else name
            sums["%s{%s}" % (name, label) if label else name] += number
    return dict(sums)


def counts_found(millpond):
    sums = collections.Counter()
    for name, labels, number in millpond.metrics():
        name = name[len("millpond_"):]
        label = labels.get("target_type", labels.get("type", labels.get("reason")))
        if name == "records_skipped_total" and label == "unsafe_field_name":
            name = "skipped_total"
        elif name not in COUNTED:
            continue
        if number:
            sums["%s{%s}" % (name, label) if label else name] += number
    return dict(sums)


COUNT_CASES = [case for case in CASES if counts_left(case) or case["name"] in COUNT_DIFFERENCES]


@pytest.mark.parametrize("case", COUNT_CASES, ids=[case["name"] for case in COUNT_CASES])
def test_counted(kafka, local_lake, case):
    """What an operator's panels show of odd columns and names, flush by flush."""
    name, topic, rows = case["name"], lakes.unique("counted"), 0
    want = counts_left(case)
    if name in COUNT_DIFFERENCES:
        assert COUNT_DIFFERENCES[name][1] != want or died(case), "it agrees: take the entry out"
        want = COUNT_DIFFERENCES[name][1]
    kafka.create_topic(topic)
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=300,
                               MILLPOND_TYPED_COLUMNS=case["typed"] or None, **local_lake.env())
    with services.run_millpond(env) as millpond:
        for lines in records(case):
            services.produce(kafka.bootstrap, topic, lines)
            rows += len(lines)
            millpond.wait_metric("millpond_records_written_total", rows)
        assert counts_found(millpond) == want


def tricky():
    """The 60 records as bytes, None for a tombstone."""
    def value(line):
        if line.startswith(b"base64:"):
            return base64.b64decode(line[len(b"base64:"):])
        return {b"empty": b"", b"tombstone": None}.get(line, line)

    with open(os.path.join(DATA, "tricky.ndjson"), "rb") as lines:
        return [value(line.rstrip(b"\n")) for line in lines]


def tricky_table(outcome):
    """What the Python program left, with our differences put in."""
    columns, rows = [], [dict(row) for row in outcome["rows"]]
    for name, type_name in map(tuple, outcome["schema"]):
        change = TRICKY_DIFFERENCES.get(name)
        if not change:
            columns.append((name, type_name))
        elif change[1:] == (None,):
            for row in rows:
                row.pop(name, None)
        else:
            columns.append((name, change[1] or type_name))
            for row in rows:
                if row.get("id") in change[2]:
                    assert row.get(name) != change[2][row["id"]] or change[1]
                    row[name] = change[2][row["id"]]
    return columns, [tuple(row.get(name) for name, _ in columns if name != "_inserted_at")
                     for row in rows]


def wait_committed(kafka, topic, offset):
    from confluent_kafka import KafkaException

    def reached():
        try:
            return kafka.committed("millpond-%s-events" % topic, topic, 0)[0] == offset
        except KafkaException:  # a fresh broker's coordinator is not there yet
            return False
    services.wait_until(reached, 120, "offset %d" % offset)


def test_tricky_records_from_kafka(kafka, local_lake):
    outcome, values = read("tricky_outcome.json"), tricky()
    columns, rows = tricky_table(outcome)
    skipped = [name for name in outcome["counters"] if 'reason="json_parse"' in name]
    bad = int(outcome["counters"][skipped[0]])
    topic = lakes.unique("tricky")
    kafka.create_topic(topic)
    services.produce(kafka.bootstrap, topic, [(None, value) for value in values])
    env = services.environment(kafka, topic, MILLPOND_QUARANTINE_TABLE="bad", **local_lake.env())
    with services.run_millpond(env) as millpond:
        wait_committed(kafka, topic, len(values))
        assert outcome["committed_offset"] == len(values) == 60
        assert millpond.metric("millpond_records_consumed_total") == 60
        assert millpond.metric("millpond_records_written_total") == outcome["n_rows"]
        assert millpond.metric("millpond_records_skipped_total", reason="json_parse") == bad
        assert millpond.metric("millpond_records_skipped_total", reason="tombstone") == 1
        assert millpond.metric("millpond_records_quarantined_total") == bad
    check(found(local_lake)[0], Table(columns, rows, bad))


def test_tricky_records_by_load(local_lake, tmp_path):
    """The same, but for what a file of lines cannot hold: an empty value and a tombstone."""
    outcome = read("tricky_outcome.json")
    columns, rows = tricky_table(outcome)
    lakes.load(local_lake, [value for value in tricky() if value], tmp_path,
               MILLPOND_QUARANTINE_TABLE="bad")
    check(found(local_lake)[0], Table(columns, rows, 19))


# --- the process ----------------------------------------------------------------------------------

def written_once(lake, count):
    assert lake.query("SELECT count(*), count(DISTINCT n), min(n), max(n) FROM lake.events") == \
        [(count, count, 0, count - 1)]


def test_poison_stops_nothing(kafka, local_lake):
    """The kinds of record that stopped the Python program for good, one after the other in one
    partition, on a table that is there already."""
    topic = lakes.unique("poison")
    kafka.create_topic(topic)
    poison = ['"big":9223372036854775808', '"x":2', '"x":true', '"deep":' + "[" * 255 + "]" * 255,
              '"t":1.5', '"t":true', '"y":null', '"y":5',
              '"_inserted_at":1,"year":2,"month":3,"day":4,"hour":5', '"a-b":6', '"X":7',
              '"x":"six"', '"_ducklake_internal_row_id":8']
    lines = ['{"n":%d,%s}' % pair for pair in enumerate(['"x":1'] + poison + ['"x":9'])]
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=1000,
                               MILLPOND_TYPED_COLUMNS="t:timestamptz", **local_lake.env())
    for turn in range(2):  # the second process has nothing left to do
        with services.run_millpond(env) as millpond:
            if turn == 0:
                services.produce(kafka.bootstrap, topic, lines[:1])
                millpond.wait_metric("millpond_records_written_total", 1)
                services.produce(kafka.bootstrap, topic, lines[1:])
            wait_committed(kafka, topic, len(lines))
            counted = {reason: millpond.metric("millpond_records_rescued_total", reason=reason)
                       for reason in ("type", "reserved", "name")}
            assert counted == ({"type": 3, "reserved": 1, "name": 1} if turn == 0
                               else {"type": 0, "reserved": 0, "name": 0})
            # t, x and the impossible name, once each in the flush that has them
            assert counts_found(millpond) == ({COERCION: 1, SCHEMA: 1, UNSAFE: 1, ADDED: 9}
                                              if turn == 0 else {})
            assert millpond.metric("millpond_records_skipped_total") == (1 if turn == 0 else 0)
        written_once(local_lake, len(lines))
    assert local_lake.query("SELECT n, x FROM lake.events WHERE x IS NOT NULL ORDER BY n") == \
        [(0, 1), (2, 2), (3, 1), (11, 7), (14, 9)]
    assert local_lake.query("SELECT big, length(deep), y, year, month, day, hour, \"a-b\" FROM "
                            "(SELECT max(COLUMNS(*)) FROM lake.events)") == \
        [("9223372036854775808", 510, 5, 2, 3, 4, 5, 6)]
    assert local_lake.query("SELECT n, _rescued_data FROM lake.events "
                            "WHERE _rescued_data IS NOT NULL ORDER BY n") == [
        (5, '{"t":1.5}'), (6, '{"t":true}'), (9, '{"_inserted_at":1}'), (12, '{"x":"six"}'),
        (13, '{"_ducklake_internal_row_id":8}')]


def test_added_and_widened_columns_are_counted(kafka, local_lake):
    """As there: the columns with which a table is made do not count."""
    topic = lakes.unique("added")
    kafka.create_topic(topic)
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=200, **local_lake.env())
    with services.run_millpond(env) as millpond:
        for n, line in enumerate(['{"n":0,"x":5}', '{"n":1,"x":5.5,"y":1,"z":2}']):
            services.produce(kafka.bootstrap, topic, [line])
            millpond.wait_metric("millpond_records_written_total", n + 1)
            assert millpond.metric("millpond_schema_columns_added_total") == 2 * n
            assert millpond.metric("millpond_schema_columns_widened_total") == n


def test_offsets_move_without_rows(kafka, local_lake):
    """A topic of bad records and tombstones is not read again at the next start."""
    topic = lakes.unique("norows")
    kafka.create_topic(topic)
    services.produce(kafka.bootstrap, topic,
                     [(None, b"no"), (None, b"[1]"), ("k", None), ("k", None)])
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=200, **local_lake.env())
    with services.run_millpond(env):
        wait_committed(kafka, topic, 4)
    services.produce(kafka.bootstrap, topic, ['{"n":0}'])
    with services.run_millpond(env) as millpond:
        millpond.wait_metric("millpond_records_written_total", 1)
        assert millpond.metric("millpond_records_consumed_total") == 1
    written_once(local_lake, 1)


def test_large_integer_in_a_pinned_double(local_lake, tmp_path):
    lakes.load(local_lake, ['{"x":9007199254740993}'], tmp_path, MILLPOND_TYPED_COLUMNS="x:double")
    assert local_lake.query("SELECT x, _rescued_data FROM lake.events") == \
        [(9007199254740992.0, '{"x":9007199254740993}')]


def test_first_record_after_idle_time_waits_for_others(kafka, local_lake):
    topic = lakes.unique("idle")
    kafka.create_topic(topic)
    env = services.environment(kafka, topic, FLUSH_INTERVAL_MS=2000, **local_lake.env())
    with services.run_millpond(env) as millpond:
        time.sleep(3)
        began = time.monotonic()
        for n in range(5):
            services.produce(kafka.bootstrap, topic, ['{"n":%d}' % n])
        millpond.wait_metric("millpond_records_written_total", 1)
        assert time.monotonic() - began >= 2, "the first was written at once"
        millpond.wait_metric("millpond_records_written_total", 5)
    written_once(local_lake, 5)


def test_outage_during_writes_ends_with_5_and_loses_nothing(kafka, s3, s3_lake, toxi, tmp_path):
    """One time limit for a batch: there is no second round of attempts on the way out."""
    topic = lakes.unique("outage")
    kafka.create_topic(topic)
    proxy = toxi.proxy("outage", s3.host)
    settings = {"MILLPOND_OUTAGE_MS_MAX": 4000, "FLUSH_INTERVAL_MS": 200}
    env = services.environment(kafka, topic, **settings, **s3_lake.env(proxy.address))
    process = services.start_millpond(env, str(tmp_path))
    try:
        process.wait_ready()
        proxy.down()
        services.produce(kafka.bootstrap, topic, ['{"n":%d}' % n for n in range(100)])
        began = time.monotonic()
        assert process.wait_exit(120) == 5, process.log_end()
        assert time.monotonic() - began < 15
    finally:
        process.kill()
    assert s3_lake.rows() == 0
    with services.run_millpond(services.environment(kafka, topic, **s3_lake.env())) as millpond:
        millpond.wait_metric("millpond_records_written_total", 100)
    written_once(s3_lake, 100)


@pytest.mark.parametrize("settings", [
    {"MILLPOND_VARIANT_COLUMNS": "p", "MILLPOND_DESTINATION": "hoglake", "HOGLAKE_URL": "http://x",
     "HOGLAKE_CATALOG": "c", "HOGLAKE_NAMESPACE": "n", "HOGLAKE_TABLE": "t"},
], ids=lambda settings: next(iter(settings)))
def test_what_is_not_served_is_refused_at_start(local_lake, settings):
    env = services.environment(None, "t", **dict(local_lake.env(), **settings))
    env["KAFKA_BOOTSTRAP_SERVERS"] = "127.0.0.1:9"
    code, out, err = services.millpond_once(env, seconds=20)
    assert code == 2
    assert next(iter(settings)) in err and "has no VARIANT columns" in err
