/* The scripted source, so that tests over it may trust it. */
#include "harness/test.h"
#include "kafka/source_fake.h"

static const struct mp_str none = {NULL, 0};
static struct mp_arena arena = {.block_bytes = 4096}; /* texts beside offsets */

static void begin(struct mp_source *source)
{
    const int32_t *ids;
    uint32_t count;
    struct mp_err err = {0};

    CHECK_OK(source->driver->partitions(source, &err, &ids, &count), err);
    for (uint32_t i = 0; i < count; i++)
        CHECK_OK(source->driver->seek(source, ids[i], MP_OFFSET_EARLIEST, &err), err);
}

static void gives_what_was_scripted(void)
{
    struct mp_fake_log *log = mp_fake_log_new(3);
    struct mp_source *source = mp_source_fake_open(log, 0, 2);
    struct mp_err err = {0};
    struct mp_records records;

    mp_fake_log_gap(log, 0, 40);
    CHECK_INT(mp_fake_log_add(log, 0, MP_STR("k"), MP_STR("v40"), 7), 40);
    mp_fake_log_gap(log, 0, 2);
    CHECK_INT(mp_fake_log_add(log, 0, none, none, MP_OFFSET_NONE), 43);
    CHECK_INT(mp_fake_log_add(log, 1, none, MP_STR("not ours"), 0), 0);
    CHECK_INT(mp_fake_log_add(log, 2, none, MP_STR(""), 0), 0);
    begin(source);
    CHECK_OK(source->driver->poll(source, 2, 0, &err, &records), err);
    CHECK_INT(records.count, 2);
    CHECK_INT(records.items[0].offset, 40);
    CHECK_INT(records.items[0].next_offset, 41);
    CHECK_STR(records.items[0].key, MP_STR("k"));
    CHECK_INT(records.items[1].partition, 2);
    CHECK(records.items[1].has_value);
    CHECK(!records.end);
    CHECK_OK(source->driver->poll(source, 2, 0, &err, &records), err);
    CHECK_INT(records.count, 1);
    CHECK_INT(records.items[0].offset, 43);
    CHECK(!records.items[0].has_value);
    CHECK(!records.items[0].has_key);
    mp_fake_log_end(log);
    CHECK_OK(source->driver->poll(source, 2, 0, &err, &records), err);
    CHECK_INT(records.count, 0);
    CHECK(records.end);
    CHECK_OK(source->driver->seek(source, 0, 41, &err), err);
    CHECK_OK(source->driver->poll(source, 9, 0, &err, &records), err);
    CHECK_INT(records.count, 1);
    CHECK_INT(records.items[0].offset, 43);
    mp_source_close(source);
    mp_fake_log_free(log);
}

static void fails_where_it_was_told_to(void)
{
    struct mp_fake_log *log = mp_fake_log_new(1);
    struct mp_source *source = mp_source_fake_open(log, 0, 1);
    struct mp_source_offset offset = {.partition = 0, .offset = 5, .metadata = MP_STR("mp1")};
    struct mp_err err = {0};
    struct mp_records records;

    mp_fake_log_add(log, 0, none, MP_STR("v"), 0);
    begin(source);
    mp_fake_log_fail(log, MP_FAKE_LOG_POLL, 2, MP_IO, true, false);
    mp_fake_log_fail(log, MP_FAKE_LOG_COMMIT, 1, MP_TIMEOUT, true, false);
    mp_fake_log_fail(log, MP_FAKE_LOG_COMMIT, 2, MP_TIMEOUT, true, true);
    mp_fake_log_fail(log, MP_FAKE_LOG_SEEK, 1, MP_REFUSED, false, false);
    CHECK_OK(source->driver->poll(source, 0, 0, &err, &records), err);
    CHECK_INT(source->driver->poll(source, 9, 0, &err, &records), MP_IO);
    CHECK(err.retriable);
    CHECK_OK(source->driver->poll(source, 9, 0, &err, &records), err);
    CHECK_INT(records.count, 1); /* nothing was lost by the fault */
    CHECK_INT(source->driver->seek(source, 0, 0, &err), MP_REFUSED);
    CHECK(!err.retriable);
    CHECK_INT(source->driver->commit(source, &offset, 1, &err), MP_TIMEOUT);
    CHECK_INT(mp_fake_log_committed(log, 0).offset, MP_OFFSET_NONE);
    CHECK_INT(source->driver->commit(source, &offset, 1, &err), MP_TIMEOUT);
    CHECK_INT(mp_fake_log_committed(log, 0).offset, 5); /* only the answer was lost */
    CHECK_INT((int64_t)mp_fake_log_calls(log, MP_FAKE_LOG_COMMIT), 2);
    mp_source_close(source);
    mp_fake_log_free(log);
}

static void later_owners_fence_earlier_ones(void)
{
    struct mp_fake_log *log = mp_fake_log_new(3);
    struct mp_source *first = mp_source_fake_open(log, 0, 1), *second;
    struct mp_source_offset offsets[3] = {{.partition = 0, .offset = 1},
                                          {.partition = 1, .offset = 1},
                                          {.partition = 2, .offset = 1}};
    const int32_t ids[] = {0, 1, 2};
    bool fenced = false;
    struct mp_err err = {0};

    CHECK_OK(first->driver->own(first, ids, 3, &err, &fenced), err);
    CHECK(fenced);
    CHECK_OK(first->driver->commit(first, offsets, 3, &err), err);
    second = mp_source_fake_open(log, 1, 2); /* owns whatever it likes */
    CHECK_OK(second->driver->own(second, &ids[1], 1, &err, &fenced), err);
    offsets[0].offset = offsets[1].offset = offsets[2].offset = 2;
    CHECK_INT(first->driver->commit(first, offsets, 3, &err), MP_FENCED);
    CHECK(!err.retriable);
    CHECK_INT(mp_fake_log_committed(log, 0).offset, 2); /* a transaction of its own */
    CHECK_INT(mp_fake_log_committed(log, 1).offset, 1);
    CHECK_OK(first->driver->commit(first, &offsets[2], 1, &err), err);
    CHECK_OK(first->driver->own(first, ids, 3, &err, &fenced), err); /* nothing is taken back */
    CHECK_INT(first->driver->commit(first, &offsets[1], 1, &err), MP_FENCED);
    CHECK_OK(second->driver->commit(second, &offsets[1], 1, &err), err);
    mp_fake_log_steal(log, 1);
    CHECK_INT(second->driver->commit(second, &offsets[1], 1, &err), MP_FENCED);
    second->driver->disown(second, &ids[1], 1);
    mp_fake_log_forbid_owners(log);
    CHECK_OK(second->driver->own(second, &ids[1], 1, &err, &fenced), err);
    CHECK(!fenced);
    offsets[1].offset = 3;
    CHECK_OK(second->driver->commit(second, &offsets[1], 1, &err), err);
    CHECK_INT(mp_fake_log_committed(log, 1).offset, 3);
    mp_source_close(first);
    mp_source_close(second);
    mp_fake_log_free(log);
}

static void tells_how_far_a_partition_was_read(void)
{
    struct mp_fake_log *log = mp_fake_log_new(2);
    struct mp_source *source = mp_source_fake_open(log, 0, 1);
    struct mp_err err = {0};
    struct mp_records records;

    for (int i = 0; i < 3; i++)
        mp_fake_log_add(log, 0, none, MP_STR("v"), i);
    mp_fake_log_gap(log, 0, 4);
    begin(source);
    CHECK_INT(source->driver->reached(source, 0), 0);
    CHECK_OK(source->driver->poll(source, 2, 0, &err, &records), err);
    CHECK_INT(source->driver->reached(source, 0), 2);
    CHECK_OK(source->driver->poll(source, 2, 0, &err, &records), err);
    CHECK_INT(records.count, 1);
    CHECK_INT(source->driver->reached(source, 0), 7); /* nothing is in the rest of the log */
    CHECK_OK(source->driver->seek(source, 0, 0, &err), err);
    CHECK_OK(source->driver->unseek(source, 0, &err), err);
    CHECK_OK(source->driver->poll(source, 2, 0, &err, &records), err);
    CHECK_INT(records.count, 0);
    mp_source_close(source);
    mp_fake_log_free(log);
}

static void outlives_a_source(void)
{
    struct mp_fake_log *log = mp_fake_log_new(1);
    struct mp_source *source = mp_source_fake_open(log, 0, 1);
    struct mp_source_offset offset = {.partition = 0, .offset = 2, .metadata = MP_STR("m")};
    struct mp_source_watermark mark = {.partition = 0};
    const int32_t *ids;
    uint32_t count;
    struct mp_err err = {0};
    struct mp_records records;

    for (int i = 0; i < 5; i++)
        mp_fake_log_add(log, 0, none, MP_STR("v"), i);
    CHECK_OK(source->driver->commit(source, &offset, 1, &err), err);
    mp_source_close(source);
    source = mp_source_fake_open(log, 0, 1);
    offset = (struct mp_source_offset){.partition = 0};
    CHECK_OK(source->driver->committed(source, &arena, &offset, 1, &err), err);
    CHECK_INT(offset.offset, 2);
    CHECK_STR(offset.metadata, MP_STR("m"));
    begin(source);
    CHECK_OK(source->driver->seek(source, 0, offset.offset, &err), err);
    mp_fake_log_truncate(log, 0, 4); /* retention went past it */
    CHECK_OK(source->driver->poll(source, 9, 0, &err, &records), err);
    CHECK_INT(records.count, 0);
    CHECK_INT(records.lost_count, 1);
    CHECK_INT(records.lost[0].offset, 2);
    CHECK_INT(records.lost[0].low, 4);
    CHECK_INT(records.lost[0].high, 5);
    CHECK_OK(source->driver->watermarks(source, &mark, 1, &err), err);
    CHECK_INT(mark.low, 4);
    CHECK_OK(source->driver->seek(source, 0, 4, &err), err);
    CHECK_OK(source->driver->poll(source, 9, 0, &err, &records), err);
    CHECK_INT(records.count, 1);
    CHECK_INT(records.lost_count, 0);
    mp_fake_log_partitions(log, 2);
    CHECK_OK(source->driver->partitions(source, &err, &ids, &count), err);
    CHECK_INT(count, 2);
    offset.partition = 1;
    mp_fake_log_commit(log, &offset);
    CHECK_INT(mp_fake_log_committed(log, 1).offset, 2);
    mp_source_close(source);
    mp_fake_log_free(log);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(gives_what_was_scripted), TEST(fails_where_it_was_told_to),
        TEST(later_owners_fence_earlier_ones), TEST(tells_how_far_a_partition_was_read),
        TEST(outlives_a_source)};

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
