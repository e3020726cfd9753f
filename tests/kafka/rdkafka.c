/* The rdkafka driver against librdkafka's mock cluster. */
#include "kafka/mock.h"

#include <stdio.h>

/* Polls until `count` records are there or a long time is over; checks them against fill's text. */
static int64_t read_dense(struct mp_source *source, int32_t partition, int64_t next, unsigned count)
{
    struct mp_err err = {0};
    unsigned got = 0;

    for (int turn = 0; got < count && turn < 500; turn++) {
        struct mp_records records;

        CHECK_OK(source->driver->poll(source, 100, 50, &err, &records), err);
        for (uint32_t i = 0; i < records.count; i++) {
            const struct mp_record *record = &records.items[i];
            char want[64];

            if (record->partition != partition)
                continue;
            CHECK_INT(record->offset, next);
            CHECK_INT(record->next_offset, next + 1);
            snprintf(want, sizeof(want), "p%d o%lld", (int)partition, (long long)next);
            CHECK_STR(record->value, mp_str_c(want));
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
    for (uint32_t ordinal = 0; ordinal < 3; ordinal++) {
        struct mp_source_rdkafka_options options = mock_options(&mock);
        struct mp_source *source;

        options.ordinal = ordinal;
        options.replica_count = 3;
        source = mock_source(&mock, &options);
        CHECK_OK(source->driver->partitions(source, &err, &ids, &count), err);
        CHECK_INT(count, ordinal == 0 ? 3 : 2);
        for (uint32_t i = 0; i < count; i++)
            CHECK_INT(ids[i], ordinal + 3 * i);
        CHECK_INT(mp_source_rdkafka_topic_partitions(source), 7);
        mp_source_close(source);
    }
    mock_close(&mock);
}

static void reads_on_from_a_sought_offset(void)
{
    struct mock mock;
    struct mp_err err = {0};
    struct mp_source_rdkafka_options options;
    struct mp_source *source;
    const int32_t *ids;
    uint32_t count;

    mock_open(&mock, 2, 2);
    mock_fill(&mock, 0, 0, 3000);
    mock_fill(&mock, 1, 0, 3000);
    mock_flush(&mock);
    options = mock_options(&mock);
    source = mock_source(&mock, &options);
    CHECK_OK(source->driver->partitions(source, &err, &ids, &count), err);
    CHECK_INT(count, 2);
    CHECK_OK(source->driver->seek(source, 0, 17, &err), err);
    CHECK_OK(source->driver->seek(source, 1, MP_OFFSET_EARLIEST, &err), err);
    read_dense(source, 0, 17, 2000);
    CHECK_OK(source->driver->seek(source, 0, 5, &err), err);
    read_dense(source, 0, 5, 2000);
    mp_source_close(source);
    mock_close(&mock);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(owns_partitions_by_ordinal),
        TEST(reads_on_from_a_sought_offset),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
