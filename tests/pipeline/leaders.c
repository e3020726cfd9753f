/* Partitions that nobody leads when a process starts: the others are read, and they join later. */
#include "world.h"

#include "obs/health.h"

#include <time.h>

static struct world world;

/* Three partitions with 40, 30 and 20 records, of which nobody leads the second. */
static void open_without_leader(void)
{
    world_open(&world, 3, 1);
    world_add(&world, 0, 40);
    world_add(&world, 1, 30);
    world_add(&world, 2, 20);
    mp_fake_log_leader(world.log, 1, false);
}

static enum mp_code run(struct mp_err *err)
{
    *err = (struct mp_err){0};
    mp_fake_log_end(world.log);
    return world_run(&world, 0, err);
}

static double written(void)
{
    return mp_metric_value(world.metrics, MP_M_RECORDS_WRITTEN, NULL);
}

static void the_others_are_read(void)
{
    int64_t next[3];
    struct mp_err err;

    open_without_leader();
    CHECK_OK(run(&err), err);
    CHECK_INT(written(), 60);
    CHECK_INT(mp_fake_next(world.catalog, 1), -1); /* not even claimed */
    mp_fake_log_leader(world.log, 1, true);
    CHECK_OK(run(&err), err);
    CHECK_INT(world_check(&world, next), 90);
    CHECK_INT(next[1], 30);
    world_close(&world);
}

/* One that has been read before goes on where it was. */
static void what_is_recorded_of_it_stays(void)
{
    int64_t next[3];
    struct mp_err err;

    open_without_leader();
    mp_fake_log_leader(world.log, 1, true);
    CHECK_OK(run(&err), err);
    mp_fake_log_leader(world.log, 1, false);
    world_add(&world, 1, 5);
    world_add(&world, 2, 5);
    CHECK_OK(run(&err), err);
    CHECK_INT(written(), 95);
    CHECK_INT(mp_fake_next(world.catalog, 1), 30);
    mp_fake_log_leader(world.log, 1, true);
    CHECK_OK(run(&err), err);
    CHECK_INT(world_check(&world, next), 100);
    CHECK_INT(next[1], 35);
    world_close(&world);
}

/* At the first object the leader comes, when readiness has been looked at. */
static enum mp_memory_fault lead_at_put(void *self, enum mp_memory_op op, struct mp_str key,
                                        uint64_t ordinal)
{
    struct mp_buf *ready = self;

    (void)key;
    if (op != MP_MEMORY_PUT || ordinal != 1)
        return MP_MEMORY_NO_FAULT;
    mp_health_print_ready(world.health, ready);
    mp_fake_log_leader(world.log, 1, true);
    atomic_fetch_add(&world.slept_us, UINT64_C(3600000000)); /* longer than any outage may last */
    return MP_MEMORY_NO_FAULT;
}

static void it_joins_while_the_others_are_read(void)
{
    struct mp_buf ready = MP_BUF_INIT(1 << 16), after = MP_BUF_INIT(1 << 16);
    int64_t next[3];
    struct mp_err err;

    open_without_leader();
    world.health = mp_health_new(UINT64_C(86400000), &world.env);
    world.options.until_end = false;
    world.options.flush_interval_ms = 1;
    world.options.outage_ms_max = 60000;
    mp_memory_fault_decide(world.disk, lead_at_put, &ready);
    CHECK_INT(world_run_until(&world, MP_M_RECORDS_WRITTEN, 90, &err), MP_OK);
    CHECK_INT(world_check(&world, next), 90);
    CHECK_INT(next[1], 30);
    CHECK(strstr(mp_buf_c(&ready), "partition 1: no leader answers"));
    mp_health_print_ready(world.health, &after);
    CHECK(!strstr(mp_buf_c(&after), "leader"));
    mp_health_free(world.health);
    mp_buf_fini(&ready);
    mp_buf_fini(&after);
    world_close(&world);
}

/* A leader that is asked from the first object on, and answers once records that came later are in
 * the store. */
struct slow {
    uint32_t left; /* records to come, one an object */
    bool under_way, answered, passed;
};

static enum mp_memory_fault answer_late(void *self, enum mp_memory_op op, struct mp_str key,
                                        uint64_t ordinal)
{
    struct slow *slow = self;

    (void)key;
    if (op != MP_MEMORY_PUT)
        return MP_MEMORY_NO_FAULT;
    if (ordinal == 1) {
        mp_fake_log_leader(world.log, 1, true);
        mp_fake_log_slow(world.log, true);
        atomic_fetch_add(&world.slept_us, UINT64_C(60000000)); /* a look is due */
    }
    if (slow->under_way && !slow->answered) {
        slow->answered = true;
        slow->passed = mp_fake_log_calls(world.log, MP_FAKE_LOG_WATERMARKS) == 2;
        mp_fake_log_slow(world.log, false);
    }
    slow->under_way = mp_fake_log_calls(world.log, MP_FAKE_LOG_WATERMARKS) > 1;
    if (slow->left) {
        slow->left--;
        world_add(&world, 0, 1);
    }
    return MP_MEMORY_NO_FAULT;
}

static void the_others_are_read_while_a_leader_is_waited_for(void)
{
    struct slow slow = {.left = 200};
    int64_t next[3];
    struct mp_err err;

    open_without_leader();
    world.options.until_end = false;
    world.options.flush_interval_ms = 1;
    mp_memory_fault_decide(world.disk, answer_late, &slow);
    CHECK_INT(world_run_until(&world, MP_M_RECORDS_WRITTEN, 290, &err), MP_OK);
    CHECK(slow.passed);
    CHECK_INT(world_check(&world, next), 290);
    CHECK_INT(next[1], 30);
    world_close(&world);
}

static void without_any_leader_the_outage_is_bounded(void)
{
    struct mp_err err;

    world_open(&world, 1, 1);
    world_add(&world, 0, 10);
    mp_fake_log_leader(world.log, 0, false);
    world.options.outage_ms_max = 60000;
    CHECK_INT(run(&err), MP_IO);
    CHECK(atomic_load(&world.slept_us) >= UINT64_C(59000000));
    world_close(&world);
}

/* Where a partition begins at the end that its log has now, that end must be known before anything
 * of the topic is recorded. */
static void the_end_of_a_first_start_is_waited_for(void)
{
    struct mp_err err;

    open_without_leader();
    world.options.reset = MP_PIPELINE_LATEST;
    world.options.outage_ms_max = 60000;
    CHECK_INT(run(&err), MP_IO);
    CHECK(strstr(err.text, "partition 1"));
    CHECK_INT(mp_fake_next(world.catalog, 0), -1);
    mp_fake_log_leader(world.log, 1, true);
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_fake_next(world.catalog, 1), 30);
    CHECK_INT(written(), 0);
    mp_fake_log_leader(world.log, 1, false); /* recorded: not waited for any more */
    world_add(&world, 0, 7);
    CHECK_OK(run(&err), err);
    CHECK_INT(written(), 7);
    world_close(&world);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(the_others_are_read),
        TEST(what_is_recorded_of_it_stays),
        TEST(it_joins_while_the_others_are_read),
        TEST(the_others_are_read_while_a_leader_is_waited_for),
        TEST(without_any_leader_the_outage_is_bounded),
        TEST(the_end_of_a_first_start_is_waited_for),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
