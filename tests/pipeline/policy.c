/* What the pipeline decides: where to start, what to do when others interfere. */
#include "world.h"

#include "base/err.h"
#include "base/mem.h"
#include "parquet/footer.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct world world;
static atomic_int ahead_s; /* the wall clock says so much more than it will say from then on */

/* In place of libc's. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    long result = syscall(SYS_clock_gettime, clock, ret);

    if (clock == CLOCK_REALTIME)
        ret->tv_sec += atomic_load(&ahead_s);
    return (int)result;
}

static int64_t next_of(int32_t partition)
{
    return mp_fake_next(world.catalog, partition);
}

static enum mp_code run(struct mp_err *err)
{
    *err = (struct mp_err){0};
    mp_fake_log_end(world.log);
    return world_run(&world, 0, err);
}

static void rows_land_and_offsets_are_mirrored(void)
{
    int64_t next[2];
    struct mp_err err;
    struct mp_source_offset stored;

    world_open(&world, 2, 1);
    world_add(&world, 0, 100);
    world_add(&world, 1, 1); /* offset 0 is not "none" */
    CHECK_OK(run(&err), err);
    CHECK_INT(world_check(&world, next), 101);
    CHECK_INT(next[0], 100);
    CHECK_INT(next[1], 1);
    stored = mp_fake_log_committed(world.log, 0);
    CHECK_INT(stored.offset, 100);
    CHECK_STR(stored.metadata, MP_STR("mp1 1 100"));
    /* again: nothing is added */
    CHECK_OK(run(&err), err);
    CHECK_INT(world_check(&world, next), 101);
    world_close(&world);
}

static void skipped_records_advance_offsets_without_a_snapshot(void)
{
    int64_t next[1];
    struct mp_err err;

    world_open(&world, 1, 1);
    for (int i = 0; i < 5; i++)
        mp_fake_log_add(world.log, 0, MP_STR("k"), mp_str_n(NULL, 0), 1);
    CHECK_OK(run(&err), err);
    CHECK_INT(world_check(&world, next), 0);
    CHECK_INT(next[0], 5);
    CHECK_INT(mp_fake_commit(world.catalog, 0)->snapshot, -1);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_SKIPPED, "tombstone"), 5);
    world_close(&world);
}

static void bad_records_go_to_the_quarantine_table(void)
{
    int64_t next[1];
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 3);
    mp_fake_log_add(world.log, 0, MP_STR("k"), MP_STR("{\"a\":"), 1);
    mp_fake_log_add(world.log, 0, MP_STR("k"), MP_STR(""), 1);
    mp_fake_log_add(world.log, 0, MP_STR("k"), MP_STR("[1]"), 1);
    world_add(&world, 0, 2);
    CHECK_OK(run(&err), err);
    CHECK_INT(world_check(&world, next), 5);
    CHECK_INT(next[0], 8);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_QUARANTINED, "syntax"), 1);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_QUARANTINED, "empty"), 1);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_QUARANTINED, "not_object"), 1);
    world_close(&world);
}

/* Nulls of a column of the only row group of a file in the store. */
static int64_t nulls_of(struct mp_str key, struct mp_str column)
{
    struct mp_str object = mp_memory_peek(world.disk, key), bytes;
    const struct mp_parquet_footer *footer;
    struct mp_arena arena;
    struct mp_err err = {0};
    int64_t nulls = -1;
    uint32_t size;

    mp_arena_init(&arena, 0);
    bytes = mp_str_n(object.data + object.size - MP_PARQUET_TAIL_BYTES, MP_PARQUET_TAIL_BYTES);
    CHECK_OK(mp_parquet_footer_bytes(bytes, object.size, &err, &size), err);
    bytes = mp_str_n(bytes.data - size, size);
    CHECK_OK(mp_parquet_footer_read(&arena, bytes, object.size, &err, &footer), err);
    for (uint32_t i = 0; i < footer->leaf_count; i++)
        if (mp_str_eq(footer->nodes[footer->leaves[i]].name, column))
            nulls = footer->groups[0].chunks[i].statistics.null_count;
    mp_arena_fini(&arena);
    return nulls;
}

/* A record's time is what its sender says. */
static void bad_records_of_any_time_are_quarantined(void)
{
    static const int64_t times[] = {-1, 0, 253402300799999, 253402300800000, INT64_MAX, INT64_MIN};
    const struct mp_fake_commit *commit;
    int64_t next[1];
    struct mp_err err;

    world_open(&world, 1, 1);
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++)
        mp_fake_log_add(world.log, 0, MP_STR("k"), MP_STR("[]"), times[i]);
    CHECK_OK(run(&err), err);
    CHECK_INT(world_check(&world, next), 0);
    commit = mp_fake_commit(world.catalog, 0);
    CHECK_INT(nulls_of(commit->appends[commit->append_count - 1].files[0].key, MP_STR("timestamp")),
              4);
    world_close(&world);
}

/* Good and bad records fill the memory together, so together they make a flush. */
static void good_and_bad_records_share_the_budget(void)
{
    enum { RECORD_BYTES = 32 << 10, FLUSH_BYTES = 8 << 20, POLLED = 10 };
    char *text = mp_alloc(RECORD_BYTES);
    struct mp_err err;

    memset(text, 'x', RECORD_BYTES);
    world_open(&world, 1, 1);
    world.options.flush_bytes = FLUSH_BYTES;
    world.options.flush_interval_ms = 1000000;
    world.options.poll_records_max = POLLED;
    for (int i = 0; i < 600; i++) {
        memcpy(text, i % 2 ? "{\"a\":\"" : "{\"a\":x", 6);
        memcpy(text + RECORD_BYTES - 2, "\"}", 2);
        mp_fake_log_add(world.log, 0, MP_STR("k"), mp_str_n(text, RECORD_BYTES), 1);
    }
    mp_free(text);
    CHECK_OK(run(&err), err);
    CHECK_INT(next_of(0), 600);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_QUARANTINED, "syntax"), 300);
    for (uint32_t i = 0; i < mp_fake_commit_count(world.catalog); i++) {
        const struct mp_lake_range *range = &mp_fake_commit(world.catalog, i)->ranges[0];

        CHECK((range->records - POLLED) * RECORD_BYTES <= FLUSH_BYTES + FLUSH_BYTES * 2 / 5);
    }
    world_close(&world);
}

static void columns_count_as_added_once_the_table_is_there(void)
{
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 3);
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_SCHEMA_COLUMNS_ADDED, NULL), 0);
    mp_fake_log_add(world.log, 0, MP_STR("k"), MP_STR("{\"n\":3,\"a\":1,\"b\":true}"), 1);
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_SCHEMA_COLUMNS_ADDED, NULL), 2);
    world_close(&world);
}

static void failed_table_changes_are_counted(void)
{
    int64_t next[1];
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 10);
    mp_fake_fail(world.catalog, MP_FAKE_EVOLVE, 1, MP_IO,
                 false); /* the table is not made at once */
    mp_fake_fail(world.catalog, MP_FAKE_APPEND, 1, MP_CHANGED, false); /* somebody was first */
    CHECK_OK(run(&err), err);
    CHECK_INT(world_check(&world, next), 10);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_ERRORS, "schema"), 2);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_ERRORS, "write_retry"), 1);
    world_close(&world);
}

static void commit_as_python(int64_t offset)
{
    struct mp_source_offset stored = {.partition = 0, .offset = offset};

    mp_fake_log_commit(world.log, &stored);
}

/* C, then another program, then C: what the other did is neither read again nor skipped. */
static void another_programs_offsets_are_adopted_when_ahead(void)
{
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 100);
    commit_as_python(40); /* it ran before us: we go on from there */
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_fake_commit(world.catalog, 0)->ranges[0].first, 40);
    CHECK_INT(next_of(0), 100);
    world_add(&world, 0, 100);
    commit_as_python(150); /* and in between */
    CHECK_OK(run(&err), err);
    CHECK_INT(next_of(0), 200);
    for (uint32_t i = 0; i < mp_fake_commit_count(world.catalog); i++)
        CHECK(mp_fake_commit(world.catalog, i)->ranges[0].first < 100 ||
              mp_fake_commit(world.catalog, i)->ranges[0].first >= 150);
    /* behind: the lake wins, unless we are told otherwise */
    commit_as_python(20);
    CHECK_OK(run(&err), err);
    CHECK_INT(next_of(0), 200);
    CHECK_INT(mp_fake_log_committed(world.log, 0).offset, 20);
    world.options.offsets_from_source = true;
    CHECK_OK(run(&err), err);
    CHECK_INT(
        mp_fake_commit(world.catalog, mp_fake_commit_count(world.catalog) - 1)->ranges[0].next,
        200);
    CHECK_INT(next_of(0), 200);
    world_close(&world);
}

/* The source's store refuses every offset: a warning and a count each, and no row is written twice.
 */
static void a_refused_mirror_writes_nothing_twice(void)
{
    int64_t next[1];
    struct mp_err err;

    world_open(&world, 1, 1);
    world.options.flush_bytes = 2000; /* some flushes */
    world_add(&world, 0, 200);
    for (uint32_t i = 1; i <= 30; i++)
        mp_fake_log_fail(world.log, MP_FAKE_LOG_COMMIT, i, MP_REFUSED, false, false);
    CHECK_OK(run(&err), err);
    CHECK_INT(world_check(&world, next), 200);
    CHECK_INT(next[0], 200);
    CHECK(mp_fake_commit_count(world.catalog) > 1);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_ERRORS, "offset_commit"),
              3 * mp_fake_commit_count(world.catalog));
    CHECK_INT(mp_fake_log_committed(world.log, 0).offset, MP_OFFSET_NONE);
    world_close(&world);
}

/* The source's store was not told of the last flush, as after a kill: the next process does it,
 * records or not. */
static void a_mirror_left_behind_is_mended(void)
{
    struct mp_source_offset ours = {.partition = 0, .offset = 50, .metadata = MP_STR("mp1 1 50")};
    struct mp_source_offset none = {.partition = 1, .offset = MP_OFFSET_NONE};
    struct mp_err err;

    world_open(&world, 2, 1);
    world_add(&world, 0, 100);
    world_add(&world, 1, 7);
    CHECK_OK(run(&err), err);
    mp_fake_log_commit(world.log, &ours);
    mp_fake_log_commit(world.log, &none);
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_fake_log_committed(world.log, 0).offset, 100);
    CHECK_STR(mp_fake_log_committed(world.log, 0).metadata, MP_STR("mp1 2 100"));
    CHECK_INT(mp_fake_log_committed(world.log, 1).offset, 7);
    /* one that cannot be told is no reason not to start */
    commit_as_python(MP_OFFSET_NONE);
    mp_fake_log_fail(world.log, MP_FAKE_LOG_COMMIT, 1, MP_REFUSED, false, false);
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_fake_log_committed(world.log, 0).offset, MP_OFFSET_NONE);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_ERRORS, "offset_commit"), 1);
    world_close(&world);
}

static void the_group_may_be_gone(void)
{
    int64_t next[1];
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 50);
    CHECK_OK(run(&err), err);
    commit_as_python(MP_OFFSET_NONE); /* nothing is stored any more */
    world_add(&world, 0, 50);
    CHECK_OK(run(&err), err);
    CHECK_INT(world_check(&world, next), 100);
    world_close(&world);
}

static void offsets_that_left_the_log_are_counted(void)
{
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 50);
    CHECK_OK(run(&err), err);
    world_add(&world, 0, 100);
    mp_fake_log_truncate(world.log, 0, 90);
    CHECK_OK(run(&err), err);
    CHECK_INT(next_of(0), 150);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_OFFSET_GAP, "0"), 40);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_WRITTEN, NULL), 50 + 60);
    world_close(&world);
}

/* The log is shorter than what was read of it, and whether it is another log is told by the offset
 * that the source stores, which goes with a topic: 50 were read, 20 are there. */
static void cut_the_log(void)
{
    struct mp_source_offset stored;
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 50);
    CHECK_OK(run(&err), err);
    stored = mp_fake_log_committed(world.log, 0);
    CHECK_INT(stored.offset, 50);
    stored.metadata = MP_STR("mp1 1 50"); /* as it was; the text goes with the log */
    mp_fake_log_free(world.log);
    world.log = mp_fake_log_new(1);
    mp_fake_log_commit(world.log, &stored);
    world_add(&world, 0, 20);
}

static void a_log_that_was_cut_is_not_read_again(void)
{
    struct mp_err err;

    cut_the_log();
    CHECK_INT(run(&err), MP_CHANGED);
    CHECK(!err.retriable);
    CHECK(strstr(err.text, "KAFKA_AUTO_OFFSET_RESET=latest"));
    CHECK(strstr(err.text, "50") && strstr(err.text, "20"));
    CHECK_INT(next_of(0), 50); /* nothing is claimed */
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_WRITTEN, NULL), 50);
    world.options.reset = MP_PIPELINE_LATEST; /* what the line says */
    CHECK_OK(run(&err), err);
    CHECK_INT(next_of(0), 20);
    world.options.reset = MP_PIPELINE_EARLIEST;
    world_add(&world, 0, 5);
    CHECK_OK(run(&err), err);
    CHECK_INT(next_of(0), 25);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_WRITTEN, NULL), 50 + 5);
    world_close(&world);
}

static void a_topic_made_anew_is_read_from_its_beginning(void)
{
    struct mp_err err;

    cut_the_log();
    commit_as_python(MP_OFFSET_NONE); /* gone with the topic */
    CHECK_OK(run(&err), err);
    CHECK_INT(next_of(0), 20);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_WRITTEN, NULL), 50 + 20);
    world_close(&world);
}

static void latest_starts_at_the_end(void)
{
    struct mp_err err;

    world_open(&world, 1, 1);
    world.options.reset = MP_PIPELINE_LATEST;
    world_add(&world, 0, 50);
    CHECK_OK(run(&err), err);
    CHECK_INT(next_of(0), 50);
    CHECK_INT(mp_fake_commit_count(world.catalog), 0);
    world_close(&world);
}

/* While an object is put the topic gets a second partition, and the loop has time to see it. */
static enum mp_memory_fault grow_at_put(void *self, enum mp_memory_op op, struct mp_str key,
                                        uint64_t ordinal)
{
    uint64_t *sought = self;
    struct timespec moment = {.tv_nsec = 1000000};

    (void)key;
    if (op != MP_MEMORY_PUT || ordinal != *sought)
        return MP_MEMORY_NO_FAULT;
    mp_fake_log_partitions(world.log, 2);
    world_add(&world, 1, 7);
    atomic_fetch_add(&world.slept_us, UINT64_C(31000000));
    *sought = mp_fake_log_calls(world.log, MP_FAKE_LOG_SEEK);
    for (int i = 0; i < 200 && mp_fake_log_calls(world.log, MP_FAKE_LOG_SEEK) == *sought; i++)
        nanosleep(&moment, NULL);
    return MP_MEMORY_NO_FAULT;
}

/* A topic made anew with one partition, of which a second was known before: what is being published
 * keeps the table it was made for. */
static void a_partition_that_comes_back_leaves_a_flush_alone(void)
{
    uint64_t put;
    struct mp_err err;

    world_open(&world, 2, 1);
    world_add(&world, 0, 5);
    world_add(&world, 1, 5);
    CHECK_OK(run(&err), err);
    mp_fake_log_free(world.log);
    world.log = mp_fake_log_new(1);
    world_add(&world, 0, 25);
    put = mp_memory_counts(world.disk).ops[MP_MEMORY_PUT] + 1;
    mp_memory_fault_decide(world.disk, grow_at_put, &put);
    world.options.until_end = false;
    world.options.flush_interval_ms = 1;
    CHECK_INT(world_run_until(&world, MP_M_RECORDS_WRITTEN, 10 + 20 + 2, &err), MP_OK);
    CHECK_INT(next_of(0), 25);
    CHECK_INT(next_of(1), 7);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_ERRORS, "schema"), 0);
    world_close(&world);
}

/* What was written to a partition before it was seen is read all the same: nobody chose to leave it
 * out. */
static void latest_is_not_for_partitions_that_come_later(void)
{
    uint64_t put = 1;
    struct mp_err err;

    world_open(&world, 1, 1);
    world.options.reset = MP_PIPELINE_LATEST;
    world.options.until_end = false;
    world.options.flush_interval_ms = 1;
    commit_as_python(0);
    world_add(&world, 0, 25);
    mp_memory_fault_decide(world.disk, grow_at_put, &put);
    CHECK_INT(world_run_until(&world, MP_M_RECORDS_WRITTEN, 25 + 7, &err), MP_OK);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_WRITTEN, NULL), 25 + 7);
    CHECK_INT(next_of(0), 25);
    CHECK_INT(next_of(1), 7);
    mp_fake_log_partitions(world.log, 3); /* or while nobody ran */
    world_add(&world, 2, 9);
    world.options.until_end = true;
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_WRITTEN, NULL), 25 + 7 + 9);
    world_close(&world);
}

/* An object takes half a second to put; polls tells how often the source was served meanwhile. */
static enum mp_memory_fault dawdle(void *self, enum mp_memory_op op, struct mp_str key,
                                   uint64_t ordinal)
{
    struct timespec half = {.tv_nsec = 500000000};
    uint64_t *polls = self;

    (void)key;
    if (op != MP_MEMORY_PUT || ordinal != 1)
        return MP_MEMORY_NO_FAULT;
    *polls = mp_fake_log_calls(world.log, MP_FAKE_LOG_POLL);
    nanosleep(&half, NULL);
    *polls = mp_fake_log_calls(world.log, MP_FAKE_LOG_POLL) - *polls;
    return MP_MEMORY_NO_FAULT;
}

static bool is_taken_soon(double records)
{
    struct timespec moment = {.tv_nsec = 1000000};

    for (int i = 0; i < 20000; i++) {
        if (mp_metric_value(world.metrics, MP_M_RECORDS_CONSUMED, "0") >= records)
            return true;
        nanosleep(&moment, NULL);
    }
    return false;
}

/* While the first object is put, records come one after the other, each longer than the interval
 * after the one before. */
static enum mp_memory_fault feed_at_put(void *self, enum mp_memory_op op, struct mp_str key,
                                        uint64_t ordinal)
{
    struct timespec interval = {.tv_nsec = 20000000};
    uint32_t *taken = self;

    (void)key;
    if (op != MP_MEMORY_PUT || ordinal != 1)
        return MP_MEMORY_NO_FAULT;
    for (uint32_t i = 0; i < 5; i++) {
        world_add(&world, 0, 1);
        *taken += is_taken_soon(10 + i + 1);
        nanosleep(&interval, NULL);
    }
    return MP_MEMORY_NO_FAULT;
}

static void records_are_taken_while_a_flush_is_slow(void)
{
    uint32_t taken = 0;
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 10);
    world.options.until_end = false;
    world.options.flush_interval_ms = 1;
    world.options.flush_bytes = 1 << 20;
    mp_memory_fault_decide(world.disk, feed_at_put, &taken);
    CHECK_INT(world_run_until(&world, MP_M_RECORDS_WRITTEN, 15, &err), MP_OK);
    CHECK_INT(taken, 5);
    CHECK_INT(mp_fake_commit_count(world.catalog), 2); /* and lie together */
    CHECK_INT(next_of(0), 15);
    world_close(&world);
}

/* Who was waited for in vain is not waited for three times. */
static void a_mirror_that_does_not_answer_is_asked_once(void)
{
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 10);
    mp_fake_log_fail(world.log, MP_FAKE_LOG_COMMIT, 1, MP_TIMEOUT, true, false);
    CHECK_OK(run(&err), err);
    CHECK_INT(next_of(0), 10);
    CHECK_INT(mp_fake_log_calls(world.log, MP_FAKE_LOG_COMMIT), 1);
    CHECK_INT(mp_fake_log_committed(world.log, 0).offset, MP_OFFSET_NONE);
    world_close(&world);
}

static void a_wall_clock_that_goes_back_stops_nothing(void)
{
    uint64_t polls = 0;
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 10);
    mp_memory_fault_decide(world.disk, dawdle, &polls);
    atomic_store(&ahead_s, 3600);
    CHECK_OK(run(&err), err);
    atomic_store(&ahead_s, 0);
    CHECK_INT(next_of(0), 10);
    CHECK(polls > 3);
    world_close(&world);
}

/* A view in the table's place, a password that was changed: at the start a setting is wrong, later
 * the destination is not what it was. The table is looked at twice by the start, then by a flush,
 * then when its commit is refused. */
static void what_was_fine_at_the_start_is_no_setting_later(void)
{
    static const enum mp_code codes[] = {MP_BAD_CONFIG, MP_BAD_CONFIG, MP_REFUSED, MP_REFUSED};
    struct mp_err err;

    for (uint32_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
        world_open(&world, 1, 1);
        world_add(&world, 0, 50);
        mp_fake_fail(world.catalog, MP_FAKE_APPEND, 1, MP_CHANGED, false);
        mp_fake_fail(world.catalog, MP_FAKE_RESOLVE, i + 1, MP_BAD_CONFIG, false);
        CHECK_INT(run(&err), codes[i]);
        CHECK_INT(err.code, codes[i]);
        world_close(&world);
    }
}

static void a_stolen_partition_fences(void)
{
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 50);
    mp_fake_fail(world.catalog, MP_FAKE_APPEND, 1, MP_IO, false); /* while it waits to retry ... */
    mp_fake_fail(world.catalog, MP_FAKE_APPEND, 2, MP_FENCED, false);
    CHECK_INT(run(&err), MP_FENCED);
    CHECK_INT(mp_fake_commit_count(world.catalog), 0);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_FENCED, NULL), 1);
    CHECK_INT(mp_memory_counts(world.disk).objects, 0); /* our file is taken away again */
    world_close(&world);
}

/* Somebody takes the partition while we wait to ask again for a commit whose answer was lost. */
static void steal_meanwhile(void *self, uint64_t us)
{
    static bool stolen;

    (void)self;
    atomic_fetch_add(&world.slept_us, us);
    if (stolen || mp_fake_commit_count(world.catalog) != 1)
        return;
    stolen = true;
    mp_fake_steal(world.catalog, 0);
}

/* It had landed: its files are the lake's. */
static void a_stolen_partition_leaves_what_landed_before(void)
{
    int64_t next[1];
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 50);
    world.options.flush_bytes = 1 << 20;
    world.env.sleep_us = steal_meanwhile;
    mp_fake_fail(world.catalog, MP_FAKE_APPEND, 1, MP_TIMEOUT, true);
    CHECK_OK(run(&err), err);
    CHECK_INT(world_check(&world, next), 50);
    CHECK_INT(mp_memory_counts(world.disk).objects, 1);
    world_close(&world);
}

/* Again and again: the answer comes at another moment each time, and the batch that takes the place
 * of the dropped one may lie where that lay. */
static void a_changed_table_is_read_again_from_the_source(void)
{
    int64_t next[1];
    struct mp_err err;

    for (int turn = 0; turn < 50; turn++) {
        world_open(&world, 1, 1);
        world.options.flush_bytes = 1 << 20;
        world_add(&world, 0, 50);
        mp_fake_fail(world.catalog, MP_FAKE_APPEND, 1, MP_CHANGED, false);
        CHECK_OK(run(&err), err);
        CHECK_INT(world_check(&world, next), 50);
        CHECK_INT(next[0], 50);
        world_close(&world);
    }
}

/* The records are read again, once, and the values of that column are kept beside the others. */
static void a_refused_column_is_rescued(void)
{
    int64_t next[1];
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 3);
    CHECK_OK(run(&err), err);
    mp_fake_refuse_column(world.catalog, MP_STR("late"));
    mp_fake_log_add(world.log, 0, MP_STR("k"), MP_STR("{\"n\":3,\"late\":\"x\",\"b\":true}"), 1);
    mp_fake_log_add(world.log, 0, MP_STR("k"), MP_STR("{\"n\":4,\"late\":7}"), 1);
    CHECK_OK(run(&err), err);
    CHECK_INT(world_check(&world, next), 5);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_RESCUED, "name"), 2);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_SCHEMA_COLUMNS_ADDED, NULL), 2); /* b, rescued */
    CHECK_INT(mp_metric_value(world.metrics, MP_M_ERRORS, "schema"), 1);
    world_close(&world);
}

/* The change is asked for behind the seal: it may fail, and its answer may be lost. */
static void a_not_null_column_may_be_null_when_a_record_lacks_it(void)
{
    int64_t next[1];
    struct mp_err err;

    for (int fault = 0; fault < 3; fault++) {
        world_open(&world, 1, 1);
        world_add(&world, 0, 3);
        CHECK_OK(run(&err), err);
        mp_fake_set_not_null(world.catalog, world.options.table, MP_STR("n"));
        if (fault)
            mp_fake_fail(world.catalog, MP_FAKE_EVOLVE, 2, MP_IO, fault == 2); /* 1: at start */
        mp_fake_log_add(world.log, 0, MP_STR("k"), MP_STR("{\"text\":\"x\"}"), 1);
        world_add(&world, 0, 2);
        mp_fake_log_add(world.log, 0, MP_STR("k"), MP_STR("{\"n\":null,\"text\":\"y\"}"), 1);
        CHECK_OK(run(&err), err);
        CHECK_INT(world_check(&world, next), 7);
        CHECK_INT(mp_metric_value(world.metrics, MP_M_ERRORS, "schema"), 1 + (fault > 0));
        CHECK_INT(mp_fake_calls(world.catalog, MP_FAKE_EVOLVE), 3 + (fault > 0));
        world_close(&world);
    }
}

/* There is no way around a column of the pipeline's own. */
static void a_refused_own_column_stops(void)
{
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 3);
    CHECK_OK(run(&err), err);
    mp_fake_refuse_column(world.catalog, MP_STR("_rescued_data"));
    mp_fake_log_add(world.log, 0, MP_STR("k"), MP_STR("{\"n\":\"no number\"}"), 1);
    CHECK_INT(run(&err), MP_REFUSED);
    CHECK(strstr(err.text, "_rescued_data"));
    world_close(&world);
}

/* As text, whatever kind of it, what is rescued can be kept; as a number it would be lost. */
static void a_rescued_column_of_another_type_stops_the_start(void)
{
    static const struct {
        uint8_t type;
        enum mp_code code;
    } rows[] = {{MP_TYPE_INT64, MP_REFUSED},
                {MP_TYPE_OTHER, MP_REFUSED},
                {MP_TYPE_JSON, MP_OK},
                {MP_TYPE_VARCHAR, MP_OK}};
    struct mp_err err;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        world_open(&world, 1, 1);
        world_add(&world, 0, 3);
        CHECK_OK(run(&err), err);
        mp_fake_add_column(world.catalog, MP_STR("events"), MP_STR("_rescued_data"),
                           (struct mp_type){.id = rows[i].type});
        mp_fake_log_add(world.log, 0, MP_STR("k"), MP_STR("{\"n\":\"no number\"}"), 1);
        CHECK_INT(run(&err), rows[i].code);
        CHECK_INT(next_of(0), rows[i].code ? 3 : 4);
        if (rows[i].code)
            CHECK(strstr(err.text, "MILLPOND_RESCUED_COLUMN"));
        world_close(&world);
    }
}

static void an_outage_is_ridden_out_and_ends(void)
{
    int64_t next[1];
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 50);
    for (uint32_t i = 1; i <= 10; i++)
        mp_fake_fail(world.catalog, MP_FAKE_APPEND, i, MP_TIMEOUT, false);
    CHECK_OK(run(&err), err);
    CHECK_INT(world_check(&world, next), 50);
    CHECK_INT(mp_memory_counts(world.disk).put_calls,
              mp_fake_commit_count(world.catalog)); /* uploaded once each */
    world_add(&world, 0, 50);
    world.options.outage_ms_max = 60000;
    for (uint32_t i = 1; i <= 30; i++)
        mp_fake_fail(world.catalog, MP_FAKE_APPEND, i, MP_TIMEOUT, false);
    CHECK_INT(run(&err), MP_TIMEOUT);
    CHECK_INT(next_of(0), 50);
    world_close(&world);
}

static void a_refused_upload_commits_nothing(void)
{
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 50);
    mp_memory_fault_nth(world.disk, MP_MEMORY_PUT, 1, MP_MEMORY_REFUSE);
    CHECK_INT(run(&err), MP_REFUSED);
    CHECK_INT(next_of(0), 0);
    CHECK_INT(mp_fake_commit_count(world.catalog), 0);
    CHECK_INT(mp_fake_log_committed(world.log, 0).offset, MP_OFFSET_NONE);
    world_close(&world);
}

static void filters_skip_and_count(void)
{
    static const int64_t integers[] = {1};
    static const struct mp_str texts[] = {MP_STR_INIT("1")};
    struct mp_filter_options keep = {
        .field = MP_STR("team"), .integer = true, .integers = integers, .texts = texts, .count = 1};
    int64_t next[1];
    struct mp_err err;

    world_open(&world, 1, 1);
    world.options.keep = &keep;
    mp_fake_log_add(world.log, 0, MP_STR("k"), MP_STR("{\"team\":1}"), 1);
    mp_fake_log_add(world.log, 0, MP_STR("k"), MP_STR("{\"team\":2}"), 1);
    mp_fake_log_add(world.log, 0, MP_STR("k"), MP_STR("{\"a\":2}"), 1);
    CHECK_OK(run(&err), err);
    CHECK_INT(world_check(&world, next), 1);
    CHECK_INT(next[0], 3);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_FILTER_MATCHED, "1"), 1);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_SKIPPED, "filter_excluded"), 1);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_SKIPPED, "filter_field_missing"), 1);
    world_close(&world);
}

/* Names are remembered by the scanner, not by the batch, and are memory all the same: nulls of ever
 * new names make no column, and skipped records no row. */
static void ever_new_names_are_flushed_by_size(void)
{
    static const int64_t none[] = {-1};
    static const struct mp_str no_text[] = {MP_STR_INIT("-1")};
    static const struct mp_filter_options nothing = {
        {"n", 1}, .integer = true, .integers = none, .texts = no_text, .count = 1};
    const int records = 3000, names = 40;

    for (int skipped = 0; skipped < 2; skipped++) {
        struct mp_buf record = MP_BUF_INIT(65536);
        int64_t next[1];
        struct mp_err err;

        world_open(&world, 1, 1);
        world.options.flush_bytes = 4 << 20;
        world.options.flush_interval_ms = 3600000;
        world.options.keep = skipped ? &nothing : NULL;
        for (int i = 0; i < records; i++) {
            mp_buf_clear(&record);
            mp_buf_printf(&record, "{\"n\":%d", i);
            for (int k = 0; k < names; k++)
                mp_buf_printf(&record, ",\"%0200d\":null", i * names + k);
            mp_buf_add_byte(&record, '}');
            mp_fake_log_add(world.log, 0, MP_STR("k"), mp_buf_str(&record), 1);
        }
        CHECK_OK(run(&err), err);
        CHECK_INT(world_check(&world, next), skipped ? 0 : records);
        CHECK_INT(next[0], records);
        /* some by size, one at the end; not one for each poll */
        CHECK(mp_fake_commit_count(world.catalog) >= 3);
        CHECK(mp_fake_commit_count(world.catalog) <= 10);
        world_close(&world);
        mp_buf_fini(&record);
    }
}

static void another_keep_list_takes_the_place_of_the_first(void)
{
    static const int64_t numbers[] = {1, 2, 5};
    static const struct mp_str digits[] = {MP_STR_INIT("1"), MP_STR_INIT("2"), MP_STR_INIT("5")};
    static const struct mp_filter_options first = {
        {"n", 1}, .integer = true, .integers = numbers, .texts = digits, .count = 1};
    struct mp_filter_options later = first;
    int64_t next[1];
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 10);
    world.options.keep = &first;
    later.count = 3;
    world.keep_later = &later;
    CHECK_OK(run(&err), err);
    CHECK_INT(world_check(&world, next), 3);
    CHECK_INT(next[0], 10);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_FILTER_MATCHED, "5"), 1);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_SKIPPED, "filter_excluded"), 7);
    world_close(&world);
}

static void keep_values_that_are_no_uuids_are_counted(void)
{
    static const struct mp_str texts[] = {MP_STR_INIT("f79c3e09-677c-4bbd-a479-3f349cb785e7"),
                                          MP_STR_INIT("no uuid")};
    static const struct mp_filter_options first = {
        {"text", 4}, .texts = texts, .count = 1, .uuid = true};
    struct mp_filter_options later = first;
    struct mp_err err;

    world_open(&world, 1, 1);
    world.options.keep = &first;
    later.count = 2;
    world.keep_later = &later;
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_ERRORS, "filter_value_invalid"), 1);
    world_close(&world);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(rows_land_and_offsets_are_mirrored),
        TEST(skipped_records_advance_offsets_without_a_snapshot),
        TEST(bad_records_go_to_the_quarantine_table),
        TEST(bad_records_of_any_time_are_quarantined),
        TEST(good_and_bad_records_share_the_budget),
        TEST(columns_count_as_added_once_the_table_is_there),
        TEST(failed_table_changes_are_counted),
        TEST(another_programs_offsets_are_adopted_when_ahead),
        TEST(a_refused_mirror_writes_nothing_twice),
        TEST(a_mirror_left_behind_is_mended),
        TEST(the_group_may_be_gone),
        TEST(offsets_that_left_the_log_are_counted),
        TEST(a_log_that_was_cut_is_not_read_again),
        TEST(a_topic_made_anew_is_read_from_its_beginning),
        TEST(latest_starts_at_the_end),
        TEST(a_partition_that_comes_back_leaves_a_flush_alone),
        TEST(latest_is_not_for_partitions_that_come_later),
        TEST(records_are_taken_while_a_flush_is_slow),
        TEST(a_mirror_that_does_not_answer_is_asked_once),
        TEST(a_wall_clock_that_goes_back_stops_nothing),
        TEST(what_was_fine_at_the_start_is_no_setting_later),
        TEST(a_stolen_partition_fences),
        TEST(a_stolen_partition_leaves_what_landed_before),
        TEST(a_changed_table_is_read_again_from_the_source),
        TEST(a_refused_column_is_rescued),
        TEST(a_refused_own_column_stops),
        TEST(a_not_null_column_may_be_null_when_a_record_lacks_it),
        TEST(a_rescued_column_of_another_type_stops_the_start),
        TEST(an_outage_is_ridden_out_and_ends),
        TEST(a_refused_upload_commits_nothing),
        TEST(filters_skip_and_count),
        TEST(ever_new_names_are_flushed_by_size),
        TEST(another_keep_list_takes_the_place_of_the_first),
        TEST(keep_values_that_are_no_uuids_are_counted),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
