/* What the pipeline decides where the lake keeps no offsets: plans, and what becomes of them. */
#include "actor.h"

#include "base/err.h"
#include "pipeline/plan.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static struct world world;

static void open_world(uint32_t partitions)
{
    world_open(&world, partitions, 1);
    mp_fake_log_end(world.log);
    world.options.flush_bytes = 1 << 20;
    world.options.flush_interval_ms = 1000000;
    world.options.plan_age_s_max = 6 * 86400;
    world.options.unsure_ms = 75000;
}

static struct actor actor_of(enum actor_fate fate, enum actor_call call, uint64_t at)
{
    return (struct actor){.world = &world,
                          .options = world.options,
                          .fate = fate,
                          .fate_of_one = true,
                          .fate_call = call,
                          .fate_at = at};
}

static enum mp_code run(struct mp_err *err)
{
    struct actor actor = actor_of(ACTOR_LIVES, ACTOR_PUT, 0);

    return actor_run(&actor, err);
}

/* A process that dies at its nth call of that kind: before it, or right after. */
static void run_dying(enum actor_call call, uint64_t at, bool after)
{
    struct actor actor = actor_of(after ? ACTOR_DIES_AFTER : ACTOR_DIES, call, at);
    struct mp_err err;

    CHECK_INT(actor_run(&actor, &err), MP_STOPPED);
}

static const struct mp_lake_range *range_of(uint32_t commit, uint32_t range)
{
    CHECK(commit < mp_fake_commit_count(world.catalog));
    return &mp_fake_commit(world.catalog, commit)->ranges[range];
}

static enum mp_plan_kind plan_at(int32_t partition, struct mp_plan *ret)
{
    static struct mp_arena arena = {.block_bytes = 4096};

    return mp_plan_read(&arena, partition, mp_fake_log_committed(world.log, partition).metadata,
                        ret);
}

static void check_end(int32_t partition, int64_t offset)
{
    CHECK_INT(mp_fake_log_committed(world.log, partition).offset, offset);
    CHECK_STR(mp_fake_log_committed(world.log, partition).metadata, MP_STR(""));
}

static void offsets_move_behind_what_is_published(void)
{
    struct mp_err err;

    open_world(2);
    mp_fake_log_add(world.log, 0, MP_STR("k"), mp_str_n(NULL, 0), 1);
    world_add(&world, 0, 10);
    mp_fake_log_add(world.log, 0, MP_STR("k"), mp_str_n(NULL, 0), 1);
    world_add(&world, 1, 1);
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_fake_commit_count(world.catalog), 1);
    CHECK_INT(range_of(0, 0)->first, 0);
    CHECK_INT(range_of(0, 0)->lowest, 1);
    CHECK_INT(range_of(0, 0)->highest, 10);
    CHECK_INT(range_of(0, 0)->next, 12);
    check_end(0, 12);
    check_end(1, 1);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_HOGLAKE_FILES_WRITTEN, NULL), 1);
    world_close(&world);
}

static void nothing_is_sent_where_there_is_no_row(void)
{
    struct mp_err err;

    open_world(1);
    world.options.quarantine_table = MP_STR("");
    for (int i = 0; i < 5; i++)
        mp_fake_log_add(world.log, 0, MP_STR("k"), mp_str_n(NULL, 0), 1);
    mp_fake_log_add(world.log, 0, MP_STR("k"), MP_STR("{"), 1);
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_fake_calls(world.catalog, MP_FAKE_APPEND), 0);
    check_end(0, 6);
    world_close(&world);
}

static void the_plan_stands_before_the_commit_is_sent(void)
{
    struct mp_plan plan, other;

    open_world(2);
    world_add(&world, 0, 10);
    world_add(&world, 1, 20);
    run_dying(ACTOR_APPEND, 1, false);
    CHECK_INT(mp_fake_commit_count(world.catalog), 0);
    CHECK_INT(plan_at(0, &plan), MP_PLAN_FOUND);
    CHECK_INT(plan_at(1, &other), MP_PLAN_FOUND);
    CHECK_STR(mp_str_c(plan.key), mp_str_c(other.key));
    CHECK_INT(plan.member_count, 2);
    CHECK_INT(mp_fake_log_committed(world.log, 1).offset, 0);
    CHECK_INT(other.next, 20);
    world_close(&world);
}

/* Whatever the next process would cut, what it finds is cut as it was. */
static void a_plan_is_carried_out_as_it_was_cut(void)
{
    struct mp_err err;

    open_world(2);
    world_add(&world, 0, 10);
    world_add(&world, 1, 20);
    run_dying(ACTOR_APPEND, 1, false);
    world_add(&world, 0, 5);
    world.options.flush_bytes = 1; /* after every poll */
    world.options.poll_records_max = 10;
    CHECK_OK(run(&err), err);
    CHECK_INT(range_of(0, 0)->next, 10);
    CHECK_INT(range_of(0, 1)->next, 20);
    CHECK_INT(range_of(0, 1)->rows, 20);
    CHECK_INT(range_of(1, 0)->first, 10);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_WRITTEN, NULL), 35);
    check_end(0, 15);
    check_end(1, 20);
    world_close(&world);
}

static void what_landed_is_not_sent_again(void)
{
    struct mp_err err;

    open_world(2);
    world_add(&world, 0, 10);
    world_add(&world, 1, 20);
    run_dying(ACTOR_APPEND, 1, true);
    CHECK_INT(mp_fake_commit_count(world.catalog), 1);
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_fake_calls(world.catalog, MP_FAKE_APPEND), 1);
    check_end(0, 10);
    check_end(1, 20);
    world_close(&world);
}

/* The second piece never came: whoever was to send it cannot any more. */
static void a_plan_with_a_missing_piece_is_void(void)
{
    struct mp_plan plan;
    struct mp_err err;

    open_world(2);
    world_add(&world, 0, 10);
    world_add(&world, 1, 20);
    run_dying(ACTOR_COMMIT, 4, false); /* two for where to begin, one piece */
    CHECK_INT(plan_at(0, &plan), MP_PLAN_FOUND);
    CHECK_INT(plan_at(1, &plan), MP_PLAN_NONE);
    world_add(&world, 0, 5);
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_fake_commit_count(world.catalog), 1);
    CHECK_INT(range_of(0, 0)->next, 15); /* cut anew */
    check_end(0, 15);
    world_close(&world);
}

/* One of two processes that share the topic now finds what one process of all of it left. */
static void members_of_others_are_settled_too(void)
{
    struct actor half;
    struct mp_err err;

    open_world(2);
    world_add(&world, 0, 10);
    world_add(&world, 1, 20);
    run_dying(ACTOR_APPEND, 1, false);
    half = actor_of(ACTOR_LIVES, ACTOR_PUT, 0);
    half.ordinal = 1;
    half.replica_count = 2;
    CHECK_OK(actor_run(&half, &err), err);
    CHECK_INT(mp_fake_commit_count(world.catalog), 1);
    CHECK_INT(range_of(0, 0)->rows, 10);
    check_end(0, 10);
    check_end(1, 20);
    world_close(&world);
}

static void a_new_table_takes_what_the_old_one_had_not_recorded(void)
{
    struct mp_err err;

    open_world(1);
    world_add(&world, 0, 10);
    run_dying(ACTOR_APPEND, 1, true);
    mp_fake_drop(world.catalog, MP_STR("events"));
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_fake_commit_count(world.catalog), 2);
    CHECK_INT(range_of(1, 0)->rows, 10);
    check_end(0, 10);
    world_close(&world);
}

static void halts_where_nobody_knows(void (*spoil)(void), const char *why)
{
    int64_t slept;
    struct mp_err err;

    open_world(1);
    world_add(&world, 0, 10);
    run_dying(ACTOR_APPEND, 1, false);
    spoil();
    slept = (int64_t)world.slept_us;
    CHECK_INT(run(&err), MP_REFUSED);
    if (!strstr(err.text, why) || !strstr(err.text, "MILLPOND_HOGLAKE_UNSETTLED_PLAN"))
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK((int64_t)world.slept_us - slept >= 75000000); /* what is under way has its time */
    CHECK_INT(mp_fake_commit_count(world.catalog), 0);
    world.options.unsettled = MP_PIPELINE_SKIP;
    world_add(&world, 0, 1);
    CHECK_OK(run(&err), err);
    CHECK_INT(range_of(0, 0)->first, 10);
    check_end(0, 11);
    world_close(&world);
}

static void let_it_grow_old(void)
{
    atomic_fetch_add(&world.slept_us, UINT64_C(7) * 86400 * 1000000);
}

static void take_its_records_away(void)
{
    mp_fake_log_truncate(world.log, 0, 5);
}

static void name_a_partition_that_is_not(void)
{
    struct mp_buf text = MP_BUF_INIT(MP_PLAN_BYTES_MAX);
    struct mp_source_offset offset = mp_fake_log_committed(world.log, 0);
    int32_t members[] = {0, 7};
    struct mp_plan plan;

    CHECK_INT(plan_at(0, &plan), MP_PLAN_FOUND);
    plan.members = members;
    plan.member_count = 2;
    CHECK(mp_plan_print(&plan, &text));
    offset.metadata = mp_buf_str(&text);
    mp_fake_log_commit(world.log, &offset);
    mp_buf_fini(&text);
}

static void an_old_plan_halts(void)
{
    halts_where_nobody_knows(let_it_grow_old, "too old");
}

static void lost_records_halt(void)
{
    halts_where_nobody_knows(take_its_records_away, "not 0 to 9 any more");
}

static void a_member_that_is_no_partition_halts(void)
{
    halts_where_nobody_knows(name_a_partition_that_is_not, "no partition 7");
}

static void a_plan_may_be_read_again_all_the_same(void)
{
    struct mp_err err;

    open_world(1);
    world_add(&world, 0, 10);
    run_dying(ACTOR_APPEND, 1, false);
    take_its_records_away();
    world.options.unsettled = MP_PIPELINE_AGAIN;
    CHECK_OK(run(&err), err);
    CHECK_INT(range_of(0, 0)->first, 5);
    check_end(0, 10);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_OFFSET_GAP, "0"), 5);
    world_close(&world);
}

static void a_plan_of_a_later_version_halts(void)
{
    struct mp_source_offset offset = {.partition = 0, .metadata = MP_STR("mpplan2 whatever")};
    struct mp_err err;

    open_world(1);
    world_add(&world, 0, 10);
    mp_fake_log_commit(world.log, &offset);
    CHECK_INT(run(&err), MP_REFUSED);
    CHECK(strstr(err.text, "mpplan2 whatever") != NULL);
    world.options.unsettled = MP_PIPELINE_AGAIN;
    CHECK_OK(run(&err), err);
    check_end(0, 10);
    world_close(&world);
}

static void other_programs_texts_are_no_plans(void)
{
    struct mp_source_offset offset = {.partition = 0, .offset = 4, .metadata = MP_STR("mp1 3 4")};
    struct mp_err err;

    open_world(1);
    world_add(&world, 0, 10);
    mp_fake_log_commit(world.log, &offset);
    CHECK_OK(run(&err), err);
    CHECK_INT(range_of(0, 0)->first, 4);
    check_end(0, 10);
    world_close(&world);
}

static void lost_offsets_halt(void)
{
    struct mp_source_offset none = {.partition = 0, .offset = MP_OFFSET_NONE};
    struct mp_err err;

    open_world(1);
    world_add(&world, 0, 10);
    CHECK_OK(run(&err), err);
    mp_fake_log_commit(world.log, &none);
    CHECK_INT(run(&err), MP_REFUSED);
    if (!strstr(err.text, "partition 0 up to offset 9") ||
        !strstr(err.text, "MILLPOND_HOGLAKE_LOST_OFFSETS"))
        test_fail(__FILE__, __LINE__, "%s", err.text);
    world.options.lost_offsets_reset = true;
    world.options.reset = MP_PIPELINE_LATEST;
    CHECK_OK(run(&err), err);
    check_end(0, 10);
    world_close(&world);
}

/* The first of two processes has begun, and its rows are there, when the second starts. */
static void a_second_process_of_a_new_group_does_not_halt(void)
{
    struct actor half[2];
    struct mp_err err;

    open_world(2);
    world_add(&world, 0, 10);
    world_add(&world, 1, 10);
    for (uint32_t i = 0; i < 2; i++) {
        half[i] = actor_of(ACTOR_LIVES, ACTOR_PUT, 0);
        half[i].ordinal = i;
        half[i].replica_count = 2;
        CHECK_OK(actor_run(&half[i], &err), err);
    }
    check_end(1, 10);
    world_close(&world);
}

static void without_owners_it_goes_on_as_well(void)
{
    struct mp_err err;

    open_world(2);
    mp_fake_log_forbid_owners(world.log);
    world_add(&world, 0, 10);
    run_dying(ACTOR_APPEND, 1, false);
    world_add(&world, 1, 3);
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_fake_commit_count(world.catalog), 2);
    check_end(0, 10);
    check_end(1, 3);
    world_close(&world);
}

/* A process stops between plan and commit for as long as it takes another to do all its work. */
static void a_frozen_owner_doubles_nothing(void)
{
    struct actor zombie;
    struct mp_err err;

    open_world(2);
    world_add(&world, 0, 10);
    world_add(&world, 1, 20);
    zombie = actor_of(ACTOR_FREEZES, ACTOR_APPEND, 1);
    actor_start(&zombie);
    CHECK(actor_wait(&zombie));
    CHECK_OK(run(&err), err);
    check_end(0, 10);
    actor_thaw(&zombie);
    CHECK_INT(actor_join(&zombie), MP_FENCED); /* told that it was published, but not by whom */
    CHECK_INT(mp_fake_commit_count(world.catalog), 1);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_HOGLAKE_ORPHANED_FILES, "already_published"), 1);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_WRITTEN, NULL), 30);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_FENCED, NULL), 1);
    world_close(&world);
}

/* The same between two pieces of its plan, and only a part of its partitions is taken over: the
 * missing piece, which it could still write, must not make the plan whole. */
static void a_frozen_owner_cannot_complete_a_void_plan(void)
{
    struct actor zombie, half;
    struct mp_err err;

    open_world(2);
    world_add(&world, 0, 10);
    world_add(&world, 1, 20);
    zombie = actor_of(ACTOR_FREEZES, ACTOR_COMMIT, 4); /* two for where to begin, one piece */
    actor_start(&zombie);
    CHECK(actor_wait(&zombie));
    world_add(&world, 0, 5);
    half = actor_of(ACTOR_LIVES, ACTOR_PUT, 0);
    half.replica_count = 2;
    CHECK_OK(actor_run(&half, &err), err);
    check_end(0, 15);
    actor_thaw(&zombie);
    CHECK_INT(actor_join(&zombie), MP_FENCED);
    CHECK_INT(mp_fake_commit_count(world.catalog), 1);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_HOGLAKE_ORPHANED_FILES, "superseded"), 1);
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_fake_commit_count(world.catalog), 2);
    check_end(1, 20);
    world_close(&world);
}

/* Freezes a process before its first commit; partition 1 comes, and another process dies over its
 * 20 records, its plan stored. */
static void leave_a_plan_beside(struct actor *running)
{
    struct actor other = actor_of(ACTOR_DIES, ACTOR_APPEND, 1);
    struct mp_err err;

    *running = actor_of(ACTOR_FREEZES, ACTOR_APPEND, 1);
    actor_start(running);
    CHECK(actor_wait(running));
    mp_fake_log_partitions(world.log, 2);
    world_add(&world, 1, 20);
    other.ordinal = 1;
    other.replica_count = 2;
    CHECK(actor_run(&other, &err) != MP_OK); /* which of its threads saw its death first */
}

/* A partition that is new to a running process has a plan beside its offset. */
static void a_plan_is_settled_while_running(void)
{
    struct actor running;

    world_open(&world, 1, 1); /* its log goes on */
    world_add(&world, 0, 10);
    world.options.flush_bytes = 1; /* after every poll */
    leave_a_plan_beside(&running);
    CHECK_INT(mp_fake_commit_count(world.catalog), 0);
    world_add(&world, 0, 300);
    mp_fake_log_end(world.log);
    atomic_fetch_add(&world.slept_us, UINT64_C(31) * 1000000); /* time to look for new ones */
    actor_thaw(&running);
    CHECK_INT(actor_join(&running), MP_OK);
    check_end(0, 310);
    check_end(1, 20);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_RECORDS_WRITTEN, NULL), 330);
    world_close(&world);
}

/* A loop that looks at publish right after the second stop has made that give up. */
static struct {
    struct mp_env env; /* the world's own */
    struct actor actor;
    pthread_t publisher;
    enum { NOT_YET, PUBLISH_WAITS, LOOP_WAITS, STOPPED_TWICE } step;
    pthread_mutex_t lock;
} late = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool late_step(int from, int to)
{
    bool there;

    pthread_mutex_lock(&late.lock);
    there = (int)late.step == from;
    if (there)
        late.step = to;
    pthread_mutex_unlock(&late.lock);
    return there;
}

/* Publish, between two attempts. */
static void stop_before_the_next_attempt(void *self, uint64_t us)
{
    if (mp_metric_value(world.metrics, MP_M_ERRORS, "write_retry") > 0) {
        late.publisher = pthread_self();
        late_step(NOT_YET, PUBLISH_WAITS);
        for (int i = 0; i < 100000 && !late_step(LOOP_WAITS, LOOP_WAITS) &&
                        !late_step(STOPPED_TWICE, STOPPED_TWICE);
             i++)
            usleep(100);
        mp_pipeline_stop(late.actor.pipeline);
        mp_pipeline_stop(late.actor.pipeline);
        late_step(LOOP_WAITS, STOPPED_TWICE);
    }
    late.env.sleep_us(self, us);
}

static uint64_t wait_for_the_stop(void *self)
{
    if (late_step(PUBLISH_WAITS, PUBLISH_WAITS) && !pthread_equal(pthread_self(), late.publisher) &&
        late_step(PUBLISH_WAITS, LOOP_WAITS)) {
        while (!late_step(STOPPED_TWICE, STOPPED_TWICE))
            usleep(100);
        usleep(10000);
    }
    return late.env.now_mono_us(self);
}

static void a_second_stop_is_no_fault_whoever_sees_it_first(void)
{
    for (int round = 0; round < 60; round++) {
        struct mp_err err;

        world_open(&world, 1, 1); /* its log goes on */
        world_add(&world, 0, 10);
        world.options.flush_bytes = 1;
        late.env = world.env;
        late.step = NOT_YET;
        world.env.sleep_us = stop_before_the_next_attempt;
        world.env.now_mono_us = wait_for_the_stop;
        mp_fake_fail(world.catalog, MP_FAKE_APPEND, 1, MP_IO, false);
        late.actor = actor_of(ACTOR_LIVES, ACTOR_PUT, 0);
        CHECK_INT(actor_run(&late.actor, &err), MP_STOPPED);
        CHECK_INT(mp_fake_commit_count(world.catalog), 0);
        world_close(&world);
    }
}

/* A plan that is being settled then is the next process's; what was read is published as ever. */
static void a_stop_while_a_plan_is_settled_publishes_what_was_read(void)
{
    struct actor running;
    uint32_t last;

    world_open(&world, 1, 1);
    world.options.plan_age_s_max = 6 * 86400;
    world.options.unsure_ms = 75000;
    world_add(&world, 0, 10);
    world.options.flush_bytes = 1; /* after every poll */
    leave_a_plan_beside(&running);
    mp_fake_log_truncate(world.log, 1, 20); /* it cannot be carried out, and is waited for */
    world_add(&world, 0, 300);
    atomic_fetch_add(&world.slept_us, UINT64_C(31) * 1000000);
    running.fate_call = ACTOR_PUBLISHED; /* the first question about the plan */
    actor_thaw(&running);
    CHECK(actor_wait(&running));
    mp_pipeline_stop(running.pipeline);
    actor_thaw(&running);
    CHECK_INT(actor_join(&running), MP_OK);
    last = mp_fake_commit_count(world.catalog) - 1;
    CHECK_INT(mp_fake_log_committed(world.log, 0).offset, range_of(last, 0)->next);
    CHECK_INT(range_of(last, 0)->next,
              mp_metric_value(world.metrics, MP_M_RECORDS_CONSUMED, "0")); /* all that was read */
    CHECK(mp_fake_log_committed(world.log, 1).metadata.size > 0);
    world_close(&world);
}

static void a_refused_commit_is_read_again_and_its_files_named(void)
{
    struct mp_err err;

    open_world(1);
    world_add(&world, 0, 10);
    mp_fake_fail(world.catalog, MP_FAKE_APPEND, 1, MP_CHANGED, false);
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_fake_commit_count(world.catalog), 1);
    CHECK_INT(
        mp_metric_value(world.metrics, MP_M_HOGLAKE_ORPHANED_FILES, "ddl_since_read_snapshot"), 1);
    CHECK_INT(mp_memory_counts(world.disk).objects, 2); /* nothing is removed */
    check_end(0, 10);
    world_close(&world);
}

/* The first answer was lost, the second is a refusal: the rows are there. */
static void a_refusal_after_a_lost_answer_doubles_nothing(void)
{
    struct mp_err err;

    open_world(1);
    world_add(&world, 0, 10);
    mp_fake_fail(world.catalog, MP_FAKE_APPEND, 1, MP_TIMEOUT, true);
    mp_fake_fail(world.catalog, MP_FAKE_APPEND, 2, MP_CHANGED, false);
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_fake_commit_count(world.catalog), 1);
    CHECK_INT(
        mp_metric_value(world.metrics, MP_M_HOGLAKE_ORPHANED_FILES, "ddl_since_read_snapshot"), 0);
    check_end(0, 10);
    world_close(&world);
}

static void a_flush_that_takes_too_long_has_failed_and_is_kept(void)
{
    struct mp_err err;

    open_world(1);
    world_add(&world, 0, 10);
    world.options.attempts_max = 3;
    world.options.flush_ms_max = 480000;
    for (uint32_t i = 1; i <= 7; i++)
        mp_fake_fail(world.catalog, MP_FAKE_APPEND, i, i % 2 ? MP_TIMEOUT : MP_CONFLICT, false);
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_ERRORS, "flush_failed"), 2);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_ERRORS, "hoglake_commit_contention"), 3);
    CHECK_INT(mp_metric_value(world.metrics, MP_M_ERRORS, "write_retry"), 4);
    CHECK_INT(mp_memory_counts(world.disk).put_calls, 1);
    CHECK_INT(mp_fake_commit_count(world.catalog), 1);
    check_end(0, 10);
    world_close(&world);
}

static void a_flush_that_is_given_up_is_settled_by_the_next(void)
{
    struct mp_err err;

    open_world(1);
    world_add(&world, 0, 10);
    world.options.outage_ms_max = 60000;
    for (uint32_t i = 1; i <= 30; i++)
        mp_fake_fail(world.catalog, MP_FAKE_APPEND, i, MP_TIMEOUT, i == 1);
    CHECK_INT(run(&err), MP_TIMEOUT);
    CHECK_OK(run(&err), err);
    CHECK_INT(mp_fake_commit_count(world.catalog), 1);
    check_end(0, 10);
    world_close(&world);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(offsets_move_behind_what_is_published),
        TEST(nothing_is_sent_where_there_is_no_row),
        TEST(the_plan_stands_before_the_commit_is_sent),
        TEST(a_plan_is_carried_out_as_it_was_cut),
        TEST(what_landed_is_not_sent_again),
        TEST(a_plan_with_a_missing_piece_is_void),
        TEST(members_of_others_are_settled_too),
        TEST(a_new_table_takes_what_the_old_one_had_not_recorded),
        TEST(an_old_plan_halts),
        TEST(lost_records_halt),
        TEST(a_member_that_is_no_partition_halts),
        TEST(a_plan_may_be_read_again_all_the_same),
        TEST(a_plan_of_a_later_version_halts),
        TEST(other_programs_texts_are_no_plans),
        TEST(lost_offsets_halt),
        TEST(a_second_process_of_a_new_group_does_not_halt),
        TEST(without_owners_it_goes_on_as_well),
        TEST(a_frozen_owner_doubles_nothing),
        TEST(a_frozen_owner_cannot_complete_a_void_plan),
        TEST(a_plan_is_settled_while_running),
        TEST(a_second_stop_is_no_fault_whoever_sees_it_first),
        TEST(a_stop_while_a_plan_is_settled_publishes_what_was_read),
        TEST(a_refused_commit_is_read_again_and_its_files_named),
        TEST(a_refusal_after_a_lost_answer_doubles_nothing),
        TEST(a_flush_that_takes_too_long_has_failed_and_is_kept),
        TEST(a_flush_that_is_given_up_is_settled_by_the_next),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
