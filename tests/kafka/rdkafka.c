/* The rdkafka driver against librdkafka's mock cluster. */
#include "kafka/mock.h"
#include "kafka/rdkafka_priv.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { API_FETCH = 1, API_OFFSET_COMMIT = 8, API_OFFSET_FETCH = 9 };

static struct mp_arena arena = {.block_bytes = 4096}; /* texts beside offsets */

static struct mp_source *open_at(struct mock *mock, const struct mp_source_rdkafka_options *options,
                                 int64_t offset)
{
    struct mp_source *source = mock_source(mock, options);
    struct mp_err err = {0};
    const int32_t *ids;
    uint32_t count;

    mock_partitions(source, &ids, &count);
    for (uint32_t i = 0; i < count; i++)
        CHECK_OK(source->driver->seek(source, ids[i], offset, &err), err);
    return source;
}

static void check_fill_text(const struct mp_record *record)
{
    char want[64];

    snprintf(want, sizeof(want), "p%d o%lld", (int)record->partition, (long long)record->offset);
    CHECK_STR(record->value, mp_str_c(want));
    CHECK_INT(record->timestamp_ms, 1000 + record->offset);
    CHECK_INT(record->next_offset, record->offset + 1);
    CHECK(!record->has_key);
}

/* Polls until `count` records of the partition are there or a long time is over. */
static int64_t read_dense(struct mp_source *source, int32_t partition, int64_t next, unsigned count)
{
    struct mp_err err = {0};
    unsigned got = 0;

    for (int turn = 0; got < count && turn < 2000; turn++) {
        struct mp_records records;

        CHECK_OK(source->driver->poll(source, 100, 50, &err, &records), err);
        CHECK(records.count <= 100);
        for (uint32_t i = 0; i < records.count; i++) {
            check_fill_text(&records.items[i]);
            if (records.items[i].partition != partition)
                continue;
            CHECK_INT(records.items[i].offset, next);
            next++;
            got++;
        }
    }
    CHECK(got >= count);
    return next;
}

static void owns_partitions_by_ordinal(void)
{
    struct mock mock;
    struct mp_err err = {0};
    const int32_t *ids;
    uint32_t count;

    mock_open(&mock, 1, 7);
    for (uint32_t ordinal = 0; ordinal < 9; ordinal++) {
        struct mp_source_rdkafka_options options = mock_options(&mock);
        struct mp_source *source;

        options.ordinal = ordinal;
        options.replica_count = 9;
        source = mock_source(&mock, &options);
        mock_partitions(source, &ids, &count);
        CHECK_INT(count, ordinal < 7);
        mp_source_close(source);
        if (ordinal > 2)
            continue;
        options.replica_count = 3;
        source = mock_source(&mock, &options);
        mock_partitions(source, &ids, &count);
        CHECK_INT(count, ordinal == 0 ? 3 : 2);
        for (uint32_t i = 0; i < count; i++)
            CHECK_INT(ids[i], ordinal + 3 * i);
        CHECK_INT(mp_source_rdkafka_topic_partitions(source), 7);
        CHECK_INT(source->driver->seek(source, (int32_t)ordinal + 1, 0, &err), MP_NOT_FOUND);
        mp_source_close(source);
    }
    mock_close(&mock);
}

static void seeks_exactly_under_prefetch(void)
{
    enum { PARTITIONS = 3, RECORDS = 20000, SEEKS = 1500 };
    struct mock mock;
    struct mp_source_rdkafka_options options;
    struct mp_source *source;
    struct mp_err err = {0};
    struct mp_env_fake dice = {.seed = 42};
    struct mp_env chance = mp_env_fake(&dice);
    int64_t next[PARTITIONS] = {0};
    uint64_t seen = 0;

    mock_open(&mock, 2, PARTITIONS);
    for (int32_t p = 0; p < PARTITIONS; p++)
        mock_fill(&mock, p, 0, RECORDS);
    mock_flush(&mock);
    options = mock_options(&mock);
    source = open_at(&mock, &options, 0);
    for (int turn = 0; turn < SEEKS || (seen <= SEEKS && turn < 20 * SEEKS); turn++) {
        int32_t p = (int32_t)(mp_random_u64(&chance) % PARTITIONS);
        uint32_t polls = (uint32_t)(mp_random_u64(&chance) % 4);
        struct mp_records records;

        next[p] = (int64_t)(mp_random_u64(&chance) % (RECORDS - 10));
        CHECK_OK(source->driver->seek(source, p, next[p], &err), err);
        for (uint32_t k = 0; k <= polls; k++) {
            uint32_t max = 1 + (uint32_t)(mp_random_u64(&chance) % 700);

            CHECK_OK(source->driver->poll(source, max, turn % 3 ? 0 : 20, &err, &records), err);
            CHECK(records.count <= max);
            CHECK_INT(records.lost_count, 0);
            for (uint32_t i = 0; i < records.count; i++) {
                const struct mp_record *record = &records.items[i];

                CHECK_INT(record->offset, next[record->partition]); /* dense: nothing stale */
                next[record->partition]++;
            }
            seen += records.count;
        }
    }
    CHECK(seen > SEEKS);
    for (int32_t p = 0; p < PARTITIONS; p++) { /* and each can still be read to its end */
        CHECK_OK(source->driver->seek(source, p, 100, &err), err);
        read_dense(source, p, 100, RECORDS - 100);
    }
    mp_source_close(source);
    mock_close(&mock);
}

static void begins_at_either_end(void)
{
    struct mock mock;
    struct mp_source_rdkafka_options options;
    struct mp_source *source;
    struct mp_err err = {0};
    struct mp_records records = {0};
    unsigned end = 500;

    mock_open(&mock, 1, 1);
    mock_fill(&mock, 0, 0, 500);
    mock_flush(&mock);
    options = mock_options(&mock);
    source = open_at(&mock, &options, MP_OFFSET_LATEST);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(source->driver->poll(source, 100, 100, &err, &records), err);
        CHECK_INT(records.count, 0);
    }
    while (!records.count) { /* the end is where it is when the broker is asked for it */
        CHECK(end < 1500);
        mock_fill(&mock, 0, end++, 1);
        mock_flush(&mock);
        CHECK_OK(source->driver->poll(source, 100, 50, &err, &records), err);
    }
    CHECK(records.items[0].offset >= 500);
    CHECK_OK(source->driver->seek(source, 0, MP_OFFSET_EARLIEST, &err), err);
    read_dense(source, 0, 0, end);
    CHECK_OK(source->driver->seek(source, 0, end, &err), err); /* the end itself */
    CHECK_OK(source->driver->poll(source, 100, 200, &err, &records), err);
    CHECK_INT(records.count, 0);
    CHECK_INT(records.lost_count, 0);
    mp_source_close(source);
    mock_close(&mock);
}

static void tells_tombstones_keys_and_times(void)
{
    static const struct {
        const char *key, *value;
        size_t size;
    } cases[] = {{"k1", NULL, 0}, {"k2", "", 0}, {NULL, "a\0b", 3}, {"", "x", 1}};
    struct mock mock;
    struct mp_source_rdkafka_options options;
    struct mp_source *source;
    struct mp_err err = {0};
    uint32_t got = 0;

    mock_open(&mock, 1, 1);
    for (int i = 0; i < 4; i++)
        mock_add(&mock, 0, cases[i].key, cases[i].value, cases[i].size, 1700000000123 + i);
    mock_flush(&mock);
    options = mock_options(&mock);
    source = open_at(&mock, &options, 0);
    for (int turn = 0; got < 4 && turn < 1200; turn++) {
        struct mp_records records;

        CHECK_OK(source->driver->poll(source, 3, 50, &err, &records), err);
        for (uint32_t i = 0; i < records.count; i++, got++) {
            const struct mp_record *record = &records.items[i];

            CHECK_INT(record->offset, got);
            CHECK_INT(record->has_key, cases[got].key != NULL);
            CHECK_STR(record->key, mp_str_c(cases[got].key));
            CHECK_INT(record->has_value, cases[got].value != NULL);
            CHECK_STR(record->value, mp_str_n(cases[got].value, cases[got].size));
            CHECK_INT(record->timestamp_ms, 1700000000123 + got);
        }
    }
    CHECK_INT(got, 4);
    mp_source_close(source);
    mock_close(&mock);
}

static void stores_positions_with_metadata(void)
{
    struct mock mock;
    struct mp_source_rdkafka_options options;
    struct mp_source *source;
    struct mp_err err = {0};
    struct mp_source_offset offsets[2] = {
        {.partition = 1, .offset = 42, .metadata = MP_STR("mp1 7 42")},
        {.partition = 0, .offset = 0}};
    struct mp_source_offset stored[3] = {{.partition = 0}, {.partition = 1}, {.partition = 2}};

    mock_open(&mock, 1, 3);
    options = mock_options(&mock);
    source = mock_source(&mock, &options);
    CHECK_OK(source->driver->commit(source, offsets, 0, &err), err);
    CHECK_OK(source->driver->commit(source, offsets, 2, &err), err);
    mp_source_close(source);
    source = mock_source(&mock, &options);
    CHECK_OK(source->driver->committed(source, &arena, stored, 3, &err), err);
    CHECK_INT(stored[0].offset, 0);
    CHECK_STR(stored[0].metadata, MP_STR(""));
    CHECK_INT(stored[1].offset, 42);
    CHECK_STR(stored[1].metadata, MP_STR("mp1 7 42"));
    CHECK_INT(stored[2].offset, MP_OFFSET_NONE);
    mp_source_close(source);
    mock_close(&mock);
}

static void waits_for_the_coordinator(void)
{
    struct mock mock;
    struct mp_source_rdkafka_options options;
    struct mp_source *source;
    struct mp_err err = {0};
    struct mp_source_offset stored = {.partition = 0};

    mock_open(&mock, 1, 1);
    options = mock_options(&mock);
    source = mock_source(&mock, &options);
    rd_kafka_mock_push_request_errors(
        mock.cluster, API_OFFSET_FETCH, 3, RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
        RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, RD_KAFKA_RESP_ERR_NOT_COORDINATOR);
    CHECK_OK(source->driver->committed(source, &arena, &stored, 1, &err), err);
    CHECK_INT(stored.offset, MP_OFFSET_NONE);
    mp_source_close(source);
    mock_close(&mock);
}

static void is_refused_by_group_and_topic(void)
{
    struct mock mock;
    struct mp_source_rdkafka_options options;
    struct mp_source *source;
    struct mp_err err = {0};
    struct mp_source_offset offset = {.partition = 0, .offset = 1};
    struct mp_records records;
    enum mp_code code = MP_OK;

    mock_open(&mock, 1, 1);
    options = mock_options(&mock);
    source = open_at(&mock, &options, 0);
    rd_kafka_mock_push_request_errors(mock.cluster, API_OFFSET_COMMIT, 1,
                                      RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED);
    CHECK_INT(source->driver->commit(source, &offset, 1, &err), MP_REFUSED);
    CHECK(!err.retriable);
    CHECK(strstr(err.text, "offset commit") != NULL);
    for (int i = 0; i < 600 && !code; i++) {
        if (i % 50 == 0) /* an answer that comes too late for the client is not seen */
            rd_kafka_mock_push_request_errors(mock.cluster, API_FETCH, 1,
                                              RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
        code = source->driver->poll(source, 10, 100, &err, &records);
    }
    CHECK_INT(code, MP_REFUSED);
    CHECK(!err.retriable);
    CHECK_INT(source->driver->poll(source, 10, 0, &err, &records), MP_REFUSED);
    mock_fill(&mock, 0, 0, 5); /* allowed again: what comes is given */
    mock_flush(&mock);
    for (int i = 0; i < 600 && code; i++)
        code = source->driver->poll(source, 10, 100, &err, &records);
    CHECK_OK(code, err);
    mp_source_close(source);
    mock_close(&mock);
}

static void tells_a_lost_position(void)
{
    struct mock mock;
    struct mp_source_rdkafka_options options;
    struct mp_source *source;
    struct mp_err err = {0};
    struct mp_records records = {0};

    mock_open(&mock, 1, 2);
    mock_fill(&mock, 0, 0, 200);
    mock_fill(&mock, 1, 0, 200);
    mock_flush(&mock);
    options = mock_options(&mock);
    source = open_at(&mock, &options, 0);
    read_dense(source, 1, 0, 100);
    CHECK_OK(source->driver->seek(source, 0, 5000, &err), err);
    for (int i = 0; i < 1200 && !records.lost_count; i++)
        CHECK_OK(source->driver->poll(source, 10, 50, &err, &records), err);
    for (int i = 0; i < 3; i++) { /* until it is sought again */
        CHECK_INT(records.lost_count, 1);
        CHECK_INT(records.lost[0].partition, 0);
        CHECK_INT(records.lost[0].offset, 5000);
        CHECK_INT(records.lost[0].low, 0);
        CHECK_INT(records.lost[0].high, 200);
        CHECK_OK(source->driver->poll(source, 10, 0, &err, &records), err);
    }
    mock_fill(&mock, 1, 200, 50); /* the other one goes on */
    mock_flush(&mock);
    CHECK_OK(source->driver->seek(source, 1, 190, &err), err);
    read_dense(source, 1, 190, 60);
    CHECK_OK(source->driver->seek(source, 0, 150, &err), err);
    read_dense(source, 0, 150, 50);
    CHECK_OK(source->driver->poll(source, 10, 0, &err, &records), err);
    CHECK_INT(records.lost_count, 0);
    CHECK(mock.errors >= 1);
    mp_source_close(source);
    mock_close(&mock);
}

/* The broker said out of range, but the log has the position: nothing is told, nothing missed. */
static void starts_again_after_a_false_alarm(void)
{
    struct mock mock;
    struct mp_source_rdkafka_options options;
    struct mp_source *source;
    struct mp_err err = {0};
    struct mp_records records;
    int64_t next;

    mock_open(&mock, 1, 1);
    mock_fill(&mock, 0, 0, 300);
    mock_flush(&mock);
    options = mock_options(&mock);
    source = open_at(&mock, &options, 0);
    next = read_dense(source, 0, 0, 300);
    for (int round = 0; round < 3; round++) {
        rd_kafka_mock_push_request_errors(mock.cluster, API_FETCH, 1,
                                          RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE);
        for (int i = 0; i < 5; i++) {
            CHECK_OK(source->driver->poll(source, 10, 50, &err, &records), err);
            CHECK_INT(records.lost_count, 0);
        }
        if (round == 1) /* alarm and seek cross */
            CHECK_OK(source->driver->seek(source, 0, next = 10, &err), err);
        mock_fill(&mock, 0, 300 + (unsigned)round * 10, 10);
        mock_flush(&mock);
        next = read_dense(source, 0, next, (unsigned)(310 + round * 10 - next));
    }
    CHECK_INT(next, 330);
    mp_source_close(source);
    mock_close(&mock);
}

static void shows_an_outage_and_its_end(void)
{
    struct mock mock;
    struct mp_source_rdkafka_options options;
    struct mp_source *source;
    struct mp_err err = {0};
    struct mp_records records;
    enum mp_code code = MP_OK;
    int64_t next;

    mock_open(&mock, 1, 1);
    mock_fill(&mock, 0, 0, 100);
    mock_flush(&mock);
    options = mock_options(&mock);
    source = open_at(&mock, &options, 0);
    next = read_dense(source, 0, 0, 100);
    CHECK_INT(rd_kafka_mock_broker_set_down(mock.cluster, 1), 0);
    for (int i = 0; i < 600 && !code; i++)
        code = source->driver->poll(source, 10, 100, &err, &records);
    CHECK_INT(code, MP_IO);
    CHECK(err.retriable);
    CHECK(strstr(err.text, "no broker can be reached") != NULL);
    CHECK(mock.errors > 0);
    CHECK_INT(source->driver->poll(source, 10, 0, &err, &records), MP_IO);
    CHECK_INT(rd_kafka_mock_broker_set_up(mock.cluster, 1), 0);
    for (int i = 0; i < 600 && code; i++) /* nothing to read: the answered probe ends it */
        code = source->driver->poll(source, 10, 100, &err, &records);
    CHECK_OK(code, err);
    mock_fill(&mock, 0, 100, 50);
    mock_flush(&mock);
    read_dense(source, 0, next, 50);
    mp_source_close(source);
    mock_close(&mock);
}

static void tells_why_nobody_answers(void)
{
    struct mock mock = {.env = mp_env_real(), .bootstrap = "127.0.0.1:1"};
    struct mp_source_rdkafka_options options = mock_options(&mock);
    struct mp_source *source = mock_source(&mock, &options);
    struct mp_err err = {0};
    struct mp_records records;
    const int32_t *ids;
    uint32_t count;

    CHECK(source->driver->partitions(source, &err, &ids, &count) != MP_OK);
    CHECK(err.retriable);
    CHECK(strstr(err.text, "Connection refused") != NULL);
    CHECK_INT(source->driver->poll(source, 10, 10, &err, &records), MP_IO);
    CHECK(strstr(err.text, "Connection refused") != NULL);
    mp_source_close(source);
}

static void gives_up_on_a_topic_that_stays_unknown(void)
{
    struct mock mock;
    struct mp_source_rdkafka_options options;
    struct mp_source *source;
    struct mp_err err = {0};
    const int32_t *ids;
    uint32_t count;
    enum mp_code code;

    mock_open(&mock, 1, 1);
    rd_kafka_mock_topic_set_error(mock.cluster, "events", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    options = mock_options(&mock);
    options.topic_grace_ms = 700;
    source = mock_source(&mock, &options);
    code = source->driver->partitions(source, &err, &ids, &count);
    CHECK_INT(code, MP_NOT_FOUND);
    CHECK(err.retriable);
    mp_sleep_us(&mock.env, 800000);
    CHECK_INT(source->driver->partitions(source, &err, &ids, &count), MP_REFUSED);
    CHECK(!err.retriable);
    rd_kafka_mock_topic_set_error(mock.cluster, "events", RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK_OK(source->driver->partitions(source, &err, &ids, &count), err);
    CHECK_INT(count, 1);
    mp_source_close(source);
    mock_close(&mock);
}

static void a_fatal_client_error_is_final(void)
{
    struct mock mock;
    struct mp_source_rdkafka_options options;
    struct mp_source *source;
    struct mp_err err = {0};
    struct mp_records records;

    mock_open(&mock, 1, 1);
    options = mock_options(&mock);
    source = open_at(&mock, &options, 0);
    rd_kafka_test_fatal_error(((struct mp_rdkafka *)source)->rk,
                              RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, "made up");
    CHECK_INT(source->driver->poll(source, 10, 10, &err, &records), MP_REFUSED);
    CHECK(!err.retriable);
    CHECK(strstr(err.text, "made up") != NULL);
    mp_source_close(source);
    mock_close(&mock);
}

static void knows_watermarks(void)
{
    struct mock mock;
    struct mp_source_rdkafka_options options;
    struct mp_source *source;
    struct mp_err err = {0};
    struct mp_source_watermark marks[2] = {{.partition = 1}, {.partition = 0}};

    mock_open(&mock, 2, 2);
    mock_fill(&mock, 0, 0, 30);
    mock_fill(&mock, 1, 0, 70);
    mock_flush(&mock);
    options = mock_options(&mock);
    source = open_at(&mock, &options, 0);
    CHECK_OK(source->driver->watermarks(source, marks, 0, &err), err);
    CHECK_OK(source->driver->watermarks(source, marks, 2, &err), err);
    CHECK_INT(marks[0].low, 0);
    CHECK_INT(marks[0].high, 70);
    CHECK_INT(marks[1].low, 0);
    CHECK_INT(marks[1].high, 30);
    read_dense(source, 1, 0, 70);
    source->driver->watermarks_seen(source, marks, 2);
    CHECK_INT(marks[0].high, 70);
    marks[0].partition = 99;
    source->driver->watermarks_seen(source, marks, 1);
    CHECK_INT(marks[0].high, MP_OFFSET_NONE);
    mp_source_close(source);
    mock_close(&mock);
}

struct other_thread {
    struct mp_source *source;
    atomic_bool stop;
    unsigned rounds, faults;
};

static void *commit_and_ask(void *self)
{
    struct other_thread *other = self;

    while (!atomic_load(&other->stop)) {
        struct mp_source_offset offset = {.partition = 0, .offset = (int64_t)other->rounds};
        struct mp_source_watermark mark = {.partition = 0};
        struct mp_err err;

        other->faults += other->source->driver->commit(other->source, &offset, 1, &err) != MP_OK;
        other->faults +=
            other->source->driver->committed(other->source, &arena, &offset, 1, &err) != MP_OK;
        other->faults += other->source->driver->watermarks(other->source, &mark, 1, &err) != MP_OK;
        other->faults += offset.offset != (int64_t)other->rounds;
        other->rounds++;
    }
    return NULL;
}

static void commits_from_another_thread(void)
{
    struct mock mock;
    struct mp_source_rdkafka_options options;
    struct other_thread other = {0};
    pthread_t thread;
    struct mp_err err = {0};

    mock_open(&mock, 1, 1);
    mock_fill(&mock, 0, 0, 5000);
    mock_flush(&mock);
    options = mock_options(&mock);
    other.source = open_at(&mock, &options, 0);
    CHECK_INT(pthread_create(&thread, NULL, commit_and_ask, &other), 0);
    for (int i = 0; i < 20; i++) {
        CHECK_OK(other.source->driver->seek(other.source, 0, i * 10, &err), err);
        read_dense(other.source, 0, i * 10, 500);
    }
    atomic_store(&other.stop, true);
    pthread_join(thread, NULL);
    CHECK(other.rounds > 0);
    CHECK_INT(other.faults, 0);
    mp_source_close(other.source);
    mock_close(&mock);
}

static void check_setting(rd_kafka_conf_t *conf, const char *name, const char *want)
{
    char got[256];
    size_t size = sizeof(got);

    CHECK_INT(rd_kafka_conf_get(conf, name, got, &size), RD_KAFKA_CONF_OK);
    CHECK_STR(mp_str_c(got), mp_str_c(want));
}

static void settings_win_in_order(void)
{
    static const struct mp_source_setting settings[] = {
        {"client.id", "theirs"},           {"group.id", "theirs"},
        {"enable.auto.commit", "true"},    {"fetch.message.max.bytes", "77777"},
        {"fetch.min.bytes", "3"},          {"message.max.bytes", "5000000"},
        {"max.poll.interval.ms", "900000"}};
    struct mp_source_rdkafka_options options = {.bootstrap = "a:1",
                                                .client_id = "ours",
                                                .group = "ours",
                                                .fetch_bytes_min = 1048576,
                                                .fetch_wait_ms_max = 500,
                                                .stats_interval_ms = 5000,
                                                .metadata_interval_ms = 60000};
    static const struct mp_source_setting ahead = {"queued.max.messages.kbytes", "2048"};
    static const struct mp_source_setting unknown = {"no.such.thing", "1"};
    static const struct mp_source_setting wrong = {"security.protocol", "carrier_pigeon"};
    rd_kafka_conf_t *conf = NULL;
    struct mp_err err = {0};

    CHECK_OK(mp_rdkafka_conf(&options, &err, &conf), err);
    check_setting(conf, "bootstrap.servers", "a:1");
    check_setting(conf, "client.id", "ours");
    check_setting(conf, "auto.offset.reset", "error");
    check_setting(conf, "enable.auto.offset.store", "false");
    check_setting(conf, "queued.max.messages.kbytes", "16384");
    check_setting(conf, "fetch.max.bytes", "2097152");
    check_setting(conf, "max.partition.fetch.bytes", "1048576");
    check_setting(conf, "statistics.interval.ms", "5000");
    rd_kafka_conf_destroy(conf);

    options.settings = settings;
    options.setting_count = sizeof(settings) / sizeof(*settings);
    CHECK_OK(mp_rdkafka_conf(&options, &err, &conf), err);
    check_setting(conf, "client.id", "theirs");
    check_setting(conf, "group.id", "ours");
    check_setting(conf, "enable.auto.commit", "false");
    check_setting(conf, "fetch.min.bytes", "1048576");
    check_setting(conf, "max.poll.interval.ms", "600000");
    check_setting(conf, "max.partition.fetch.bytes", "77777");
    check_setting(conf, "fetch.max.bytes", "5000000"); /* the client wants it so large */
    rd_kafka_conf_destroy(conf);

    options.settings = &ahead;
    options.setting_count = 1;
    CHECK_OK(mp_rdkafka_conf(&options, &err, &conf), err);
    check_setting(conf, "queued.max.messages.kbytes", "2048");
    rd_kafka_conf_destroy(conf);
    options.settings = &unknown;
    CHECK_INT(mp_rdkafka_conf(&options, &err, &conf), MP_BAD_CONFIG);
    CHECK(strstr(err.text, "no.such.thing") != NULL);
    options.settings = &wrong;
    CHECK_INT(mp_rdkafka_conf(&options, &err, &conf), MP_BAD_CONFIG);
    CHECK(strstr(err.text, "security.protocol") != NULL);
}

static void refuses_a_broken_configuration(void)
{
    static const struct mp_source_setting settings[] = {{"security.protocol", "ssl"},
                                                        {"ssl.ca.location", "/nowhere/ca.pem"}};
    struct mock mock = {.env = mp_env_real(), .bootstrap = "127.0.0.1:1"};
    struct mp_source_rdkafka_options options = mock_options(&mock);
    struct mp_source *source = NULL;
    struct mp_err err = {0};

    options.settings = settings;
    options.setting_count = 2;
    CHECK_INT(mp_source_rdkafka_open(&options, &mock.env, &err, &source), MP_BAD_CONFIG);
    CHECK(strstr(err.text, "kafka client") != NULL);
}

static unsigned stats_count;

static void on_stats(void *self, struct mp_str json)
{
    (void)self;
    CHECK(json.size > 2);
    CHECK(json.data[0] == '{');
    stats_count++;
}

static void a_poll_for_nothing_serves_the_client(void)
{
    struct mock mock;
    struct mp_source_rdkafka_options options;
    struct mp_source *source;
    struct mp_err err = {0};
    struct mp_records records;

    mock_open(&mock, 1, 1);
    mock_fill(&mock, 0, 0, 20);
    mock_flush(&mock);
    options = mock_options(&mock);
    options.stats_interval_ms = 50;
    options.on_stats = on_stats;
    source = open_at(&mock, &options, 0);
    for (int i = 0; i < 1200 && !stats_count; i++) {
        CHECK_OK(source->driver->poll(source, 0, 50, &err, &records), err);
        CHECK_INT(records.count, 0);
    }
    CHECK(stats_count > 0);
    read_dense(source, 0, 0, 20);
    mp_source_close(source);
    mock_close(&mock);
}

/* A maker of tokens that counts. */
struct maker {
    atomic_int made, freed;
    const char *refusal; /* NULL: it makes one */
};

static enum mp_code make_token(void *self, struct mp_buf *ret_text, int64_t *ret_end_ms,
                               const char **ret_principal, struct mp_err *err)
{
    struct maker *maker = self;
    struct mp_env env = mp_env_real();

    atomic_fetch_add(&maker->made, 1);
    if (maker->refusal)
        return mp_err_set(err, MP_IO, "%s", maker->refusal);
    mp_buf_add_c(ret_text, "token");
    *ret_end_ms = mp_now_wall_us(&env) / 1000 + 900000;
    *ret_principal = "somebody";
    return MP_OK;
}

static void free_maker(void *self)
{
    atomic_fetch_add(&((struct maker *)self)->freed, 1);
}

static struct mp_source_rdkafka_options token_options(struct mock *mock, struct maker *maker)
{
    static const struct mp_source_setting settings[] = {{"security.protocol", "SASL_PLAINTEXT"},
                                                        {"sasl.mechanisms", "OAUTHBEARER"}};
    struct mp_source_rdkafka_options options = mock_options(mock);

    options.settings = settings;
    options.setting_count = 2;
    options.token = (struct mp_source_token){maker, make_token, free_maker};
    return options;
}

static void tokens_are_made_without_a_call_of_ours(void)
{
    struct maker maker = {0};
    struct mock mock;
    struct mp_source_rdkafka_options options;
    struct mp_source *source;

    mock_open(&mock, 1, 1);
    options = token_options(&mock, &maker);
    source = mock_source(&mock, &options);
    for (int i = 0; i < 6000 && !atomic_load(&maker.made); i++)
        mp_sleep_us(&mock.env, 10000);
    CHECK(atomic_load(&maker.made) > 0);
    CHECK_INT(atomic_load(&maker.freed), 0);
    mp_source_close(source);
    CHECK_INT(atomic_load(&maker.freed), 1);
    mock_close(&mock);
}

static void a_token_that_cannot_be_made_is_told(void)
{
    struct maker maker = {.refusal = "no keys to be had"};
    struct mock mock;
    struct mp_source_rdkafka_options options;
    struct mp_source *source;
    struct mp_err err = {0};
    const int32_t *ids;
    uint32_t count;

    mock_open(&mock, 1, 1);
    options = token_options(&mock, &maker);
    source = mock_source(&mock, &options);
    CHECK(source->driver->partitions(source, &err, &ids, &count) != MP_OK);
    CHECK(err.retriable);
    CHECK(mock.errors > 0);
    CHECK(strstr(err.text, "no keys to be had"));
    mp_source_close(source);
    mock_close(&mock);
}

static void a_refused_setting_frees_the_maker(void)
{
    struct maker maker = {0};
    struct mock mock;
    struct mp_source_rdkafka_options options;
    static const struct mp_source_setting wrong[] = {{"no.such.setting", "1"}};
    struct mp_source *source = NULL;
    struct mp_err err = {0};

    mock_open(&mock, 1, 1);
    options = token_options(&mock, &maker);
    options.settings = wrong;
    options.setting_count = 1;
    CHECK_INT(mp_source_rdkafka_open(&options, &mock.env, &err, &source), MP_BAD_CONFIG);
    CHECK_INT(atomic_load(&maker.freed), 1);
    mock_close(&mock);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(owns_partitions_by_ordinal),
        TEST(seeks_exactly_under_prefetch),
        TEST(begins_at_either_end),
        TEST(tells_tombstones_keys_and_times),
        TEST(stores_positions_with_metadata),
        TEST(waits_for_the_coordinator),
        TEST(is_refused_by_group_and_topic),
        TEST(tells_a_lost_position),
        TEST(starts_again_after_a_false_alarm),
        TEST(shows_an_outage_and_its_end),
        TEST(tells_why_nobody_answers),
        TEST(gives_up_on_a_topic_that_stays_unknown),
        TEST(a_fatal_client_error_is_final),
        TEST(knows_watermarks),
        TEST(commits_from_another_thread),
        TEST(settings_win_in_order),
        TEST(refuses_a_broken_configuration),
        TEST(a_poll_for_nothing_serves_the_client),
        TEST(tokens_are_made_without_a_call_of_ours),
        TEST(a_token_that_cannot_be_made_is_told),
        TEST(a_refused_setting_frees_the_maker),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
