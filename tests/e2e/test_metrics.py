"""The series that dashboards and alerts of the Python program rest on, scraped from a run that meets
everything there is to count, against that program's list as the Prometheus client itself serves it."""
import collections
import re

import prometheus_client
from prometheus_client.parser import text_string_to_metric_families

import lakes
import services
from test_include_values import endpoint

DEFAULTS = prometheus_client.Histogram.DEFAULT_BUCKETS
BYTES = (1e6, 5e6, 1e7, 2.5e7, 5e7, 1e8, 2.5e8, 5e8, 1e9)
ROWS = (100, 500, 1000, 5000, 10000, 50000, 100000, 500000, 1000000)
FILES = tuple(2 ** n for n in range(12))
FILE_ROWS = (1, 5, 10, 25, 50, 100, 500, 1000, 5000, 10000, 50000, 100000, 500000, 1000000)

# name without prefix -> (own label, the values it may have; None: any)
COUNTERS = {
    "records_consumed": ("partition", None),
    "records_written": None,
    "batches_flushed": ("trigger", {"size", "time", "final"}),
    "records_skipped": ("reason", {"json_parse", "filter_field_missing", "filter_excluded",
                                   "filter_dropped", "filter_value_invalid", "unsafe_field_name",
                                   "variant_companion_collision"}),
    "filter_matched": ("value", None),
    "errors": ("type", {"kafka", "write_retry", "ducklake_commit_contention",
                        "hoglake_commit_contention", "offset_commit", "schema", "column_coercion",
                        "filter_value_invalid", "variant_write"}),
    "sort_skipped": ("reason", {"field_missing", "unsortable_type"}),
    "columns_coerced": ("target_type", {"timestamptz", "bigint", "double", "boolean", "varchar",
                                        "uuid"}),
    "schema_columns_added": None,
    "schema_columns_widened": None,
    "variant_companion_columns_dropped": None,
    "variant_write_fallback": None,
    "variant_values_coerced": None,
    "include_values_poll_failures": None,
    "include_values_refused": ("reason", {"empty", "bulk_removal", "type_flip"}),
    "include_values_changes": ("action", {"add", "remove"}),
    "hoglake_files_written": None,
    "hoglake_commit_replays": ("outcome", {"replayed", "already_published"}),
    "hoglake_orphaned_files": ("reason", {"prepare_failed", "commit_refused",
                                          "ddl_since_read_snapshot", "table_recreated",
                                          "read_snapshot_expired", "already_published",
                                          "superseded", "shutdown"}),
}
HISTOGRAMS = {
    "flush_duration_seconds": DEFAULTS, "arrow_conversion_seconds": DEFAULTS,
    "flush_size_bytes": BYTES, "flush_size_records": ROWS, "flush_files": FILES,
    "flush_file_rows": FILE_ROWS,
}
GAUGES = {
    "pending_bytes": None, "buffer_fullness": None, "consume_batch_size_current": None,
    "consumer_lag": "partition", "last_committed_offset": "partition", "include_values_size": None,
    "include_values_last_success_timestamp_seconds": None, "include_values_pending_removals": None,
    "include_values_mode": "mode", "include_values_shadow_only_static": None,
    "include_values_shadow_only_remote": None, "include_values_pinned": None,
    "include_values_pinned_only": None, "rdkafka_replyq": None, "rdkafka_msg_cnt": None,
    "rdkafka_msg_size": None, "rdkafka_broker_rtt_avg_seconds": "broker",
    "rdkafka_broker_rtt_p99_seconds": "broker",
}

# Ours beside them: name, without the _total of a counter -> (type, own label)
OURS = {
    "partition_freshness_seconds": ("gauge", "partition"),
    "offset_gap": ("counter", "partition"),
    "records_rescued": ("counter", "reason"),
    "records_quarantined": ("counter", "reason"),
    "fenced": ("counter", None),
    "variant_values_null": ("counter", None),
    "commit_seconds": ("histogram", None),
    "encode_seconds": ("histogram", None),
    "upload_seconds": ("histogram", None),
    "bytes": ("counter", "stage"),
    "memory_bytes": ("gauge", "part"),
    "outage_seconds": ("gauge", None),
    "log_exported": ("counter", None),
    "log_export_dropped": ("counter", "reason"),
}
# a reason of ours in a counter of the Python program
MORE_VALUES = {"records_skipped": {"tombstone"}}
# labelled series that no DuckLake destination, or no run without a log endpoint, ever moves
UNUSED = {"hoglake_commit_replays", "hoglake_orphaned_files", "log_export_dropped"}


def of_the_client():
    """The page of a process that has all the Python program's metrics, each used once."""
    registry, common = prometheus_client.CollectorRegistry(), ["pipeline", "broker_source"]
    kinds = [(prometheus_client.Counter, name, label and label[0], {})
             for name, label in COUNTERS.items()]
    kinds += [(prometheus_client.Gauge, name, label, {}) for name, label in GAUGES.items()]
    kinds += [(prometheus_client.Histogram, name, None, {"buckets": buckets})
              for name, buckets in HISTOGRAMS.items()]
    for kind, name, label, more in kinds:
        metric = kind("millpond_" + name, "-", common + [label] if label else common,
                      registry=registry, **more)
        metric.labels(*["x"] * (3 if label else 2))
    return prometheus_client.generate_latest(registry).decode()


def shapes(page):
    """{name: (type, {sample's name: {frozenset of label names}}, [le of its buckets])}, by the
    client's own parser."""
    found = {}
    for family in text_string_to_metric_families(page):
        samples, bounds = collections.defaultdict(set), []
        for sample in family.samples:
            samples[sample.name].add(frozenset(sample.labels))
            if "le" in sample.labels and sample.labels["le"] not in bounds:
                bounds.append(sample.labels["le"])
        found[family.name] = (family.type, dict(samples), bounds)
    return found


def by_the_page(page, name):
    return [line for line in page.splitlines() if re.match(re.escape(name) + r"[ {]", line)]


def eventful_run(kafka, pg_lake, db, toxi):
    """A process that has met everything countable, and its page."""
    topic = lakes.unique("metrics")
    kafka.create_topic(topic, partitions=2)
    proxy = toxi.proxy("metrics", "127.0.0.1:%d" % db.port)
    catalog = "postgres:" + db.conninfo(pg_lake.database(), proxy.port)
    with endpoint([1, 2, 3]) as served:
        env = services.environment(
            kafka, topic, FLUSH_SIZE=200000, FLUSH_INTERVAL_MS=300, STATS_INTERVAL_MS=200,
            BROKER_SOURCE="Msk", MILLPOND_QUARANTINE_TABLE="bad",
            MILLPOND_TYPED_COLUMNS="t:timestamptz,pin:bigint", MILLPOND_SORT_BY="nowhere",
            MILLPOND_FILTER_KEEP_FIELD_NAME="team", MILLPOND_FILTER_VALUES="1,2",
            MILLPOND_FILTER_DROP_FIELD_NAME="drop", MILLPOND_FILTER_DROP_VALUES="yes",
            MILLPOND_INCLUDE_VALUES_URL=served.url, MILLPOND_INCLUDE_VALUES_POLL_INTERVAL_S="0.1",
            **dict(pg_lake.env(), MILLPOND_CATALOG=catalog))
        written = "millpond_records_written_total"
        with services.run_millpond(env) as millpond:
            services.produce(kafka.bootstrap, topic, ['{"team":1,"x":5,"w":1}'] * 10, 2)
            millpond.wait_metric(written, 10)
        # what comes next is partly gone before it is read
        services.produce(kafka.bootstrap, topic, ['{"team":1}'] * 20, partition=1)
        kafka.delete_records(topic, {1: 15})
        with services.run_millpond(env) as millpond:
            millpond.wait_metric("millpond_offset_gap_total", 10)
            services.produce(kafka.bootstrap, topic, [
                '{"team":2,"t":"2026-01-01","pin":"x","x":"five","w":1.5,"y":1,"":2}', b"[1]",
                ("k", None), '{"x":1}', '{"team":3}', '{"team":1,"drop":"yes"}'])
            millpond.wait_metric(written, 11)
            services.produce(kafka.bootstrap, topic,
                             ['{"team":1,"pad":"%s"}' % ("x" * 2000)] * 1000, 2)
            millpond.wait_metric(written, 1011)
            served.values = []
            millpond.wait_metric("millpond_include_values_refused_total", 1)
            served.status = 500
            millpond.wait_metric("millpond_include_values_poll_failures_total", 1)
            proxy.down()
            services.produce(kafka.bootstrap, topic, ['{"team":1}'])
            millpond.wait_metric("millpond_errors_total", 1, type="write_retry")
            proxy.heal()
            millpond.wait_metric(written, 1012)
            millpond.wait_metric("millpond_rdkafka_broker_rtt_avg_seconds", 0)
            services.wait_until(lambda: by_the_page(
                millpond.get("/metrics")[1], "millpond_rdkafka_broker_rtt_p99_seconds"), 120, "stats")
            return topic, millpond.get("/metrics")[1]


def test_every_metric_of_the_python_program(kafka, pg_lake, db, toxi):
    topic, page = eventful_run(kafka, pg_lake, db, toxi)
    ours, theirs = shapes(page), shapes(of_the_client())

    # each of theirs is here: of the same type, with the same labels and the same buckets
    for name, (kind, samples, bounds) in theirs.items():
        bare = re.sub("^millpond_|_created$", "", name)
        if bare in UNUSED and name.endswith("_created"):
            continue  # as there, it comes with the first sample
        assert name in ours, name
        assert ours[name][0] == kind, name
        assert ours[name][2] == bounds, name
        assert ours[name][1] == ({} if bare in UNUSED else samples), name

    # label values mean what they meant
    for name, label in COUNTERS.items():
        if label and label[1]:
            used = {dict(re.findall(r'(\w+)="([^"]*)"', line))[label[0]]
                    for line in by_the_page(page, "millpond_%s_total" % name)}
            assert used <= label[1] | MORE_VALUES.get(name, set()), name

    # ours beside them, and nothing that stands in neither list
    for name, (kind, label) in OURS.items():
        have = ours["millpond_" + name]
        assert have[0] == kind, name
        want = {frozenset({"pipeline", "broker_source"} | ({label} if label else set()))}
        got = {labels - {"le"} for each in have[1].values() for labels in each}
        assert got == (set() if name in UNUSED else want), name
    known = set(theirs) | {"millpond_" + name + end for name in OURS for end in ("", "_created")}
    assert not {name for name in ours if name.startswith("millpond_")} - known

    # the two common labels are the first of each series, with the values of the settings
    first = 'pipeline="%s-events",broker_source="msk"' % topic
    for line in page.splitlines():
        if line.startswith("millpond_"):
            assert line.split("{", 1)[1].startswith(first), line

    # what the run did, as it is counted
    def value(name, **labels):
        return sum(number for found, has, number in services.parse_metrics(page)
                   if found == "millpond_" + name and labels.items() <= has.items())

    # the second process: 10 that were left in a partition, 6 odd ones, 1,000 and 1
    assert value("records_consumed_total") == 10 + 6 + 1000 + 1
    assert value("records_written_total") == 10 + 1 + 1000 + 1
    assert value("filter_matched_total", value="2") == 1
    assert value("offset_gap_total", partition="1") == 10
    for reason in ("json_parse", "tombstone", "filter_field_missing", "filter_excluded",
                   "filter_dropped", "unsafe_field_name"):
        assert value("records_skipped_total", reason=reason) == 1, reason
    assert value("records_quarantined_total", reason="not_object") == 1
    assert value("records_rescued_total", reason="type") == 2
    assert value("records_rescued_total", reason="name") == 1
    assert value("errors_total", type="column_coercion") == 1
    assert value("errors_total", type="schema") == 1
    assert value("columns_coerced_total", target_type="timestamptz") == 1
    assert value("sort_skipped_total", reason="field_missing") == value("records_written_total")
    assert value("schema_columns_widened_total") == 1
    assert value("batches_flushed_total", trigger="size") >= 1
    assert value("batches_flushed_total", trigger="time") >= 2
    assert value("include_values_changes_total", action="add") == 3
    assert value("include_values_mode", mode="shadow") == 1
    assert value("include_values_shadow_only_remote") == 1
    assert value("last_committed_offset", partition="1") == 5 + 20 + 3 + 500
    assert value("consumer_lag") == 0
    for stage in ("json", "arrow", "raw", "parquet"):
        assert value("bytes_total", stage=stage) > 0, stage
    for part in ("columns", "compressed", "keys"):
        assert [line for line in by_the_page(page, "millpond_memory_bytes")
                if 'part="%s"' % part in line], part
    assert value("outage_seconds") == 0, "it is over"
    assert value("fenced_total") == 0
