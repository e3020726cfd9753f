/* Crashes, outages, lost answers and other owners, played over and over with a seed: whatever
 * happens, the commits tile the log, their objects are there, and every record is settled once.
 */
#include "world.h"

#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>

/* From CALM on nothing is in a process's way: what has not ended by then never would. */
enum { PARTITIONS = 3, SEEDS = 40, CALM = 30, PROCESSES_MAX = 60 };

static uint64_t seed_from_environment;
static bool calm;

static uint64_t pick(struct world *world, uint64_t below)
{
    return mp_random_u64(&world->env) % below;
}

/* Good records, tombstones, bad ones and gaps; gives how many rows there must be. */
static uint64_t fill(struct world *world)
{
    uint64_t rows = 0;

    for (int32_t p = 0; p < PARTITIONS; p++)
        for (uint64_t i = pick(world, 400); i > 0; i--)
            switch (pick(world, 12)) {
            case 0:
                mp_fake_log_add(world->log, p, MP_STR("k"), mp_str_n(NULL, 0), 1);
                break;
            case 1:
                mp_fake_log_add(world->log, p, MP_STR("k"), MP_STR("{\"n\":"), 1);
                break;
            case 2:
                mp_fake_log_gap(world->log, p, 1 + (int64_t)pick(world, 5));
                break;
            default:
                world_add(world, p, 1);
                rows++;
            }
    return rows;
}

static void plan_faults(struct world *world)
{
    static const enum mp_code codes[] = {MP_IO, MP_TIMEOUT, MP_CONFLICT};
    static const enum mp_fake_call calls[] = {MP_FAKE_RESOLVE, MP_FAKE_EVOLVE, MP_FAKE_APPEND,
                                              MP_FAKE_POSITIONS, MP_FAKE_CLAIM};

    for (uint64_t i = pick(world, 6); i > 0; i--) {
        enum mp_fake_call call = calls[pick(world, 5)];
        bool landed = pick(world, 2) &&
                      (call == MP_FAKE_EVOLVE || call == MP_FAKE_APPEND || call == MP_FAKE_CLAIM);

        mp_fake_fail(world->catalog, call, 1 + (uint32_t)pick(world, 4), codes[pick(world, 3)],
                     landed);
    }
    for (uint64_t i = pick(world, 4); i > 0; i--)
        mp_memory_fault_nth(world->disk, MP_MEMORY_PUT, 1 + pick(world, 6),
                            pick(world, 2) ? MP_MEMORY_FAIL : MP_MEMORY_CUT);
    for (uint64_t i = pick(world, 3); i > 0; i--)
        mp_fake_log_fail(world->log, MP_FAKE_LOG_COMMIT, 1 + (uint32_t)pick(world, 4), MP_IO, true,
                         pick(world, 2));
}

/* Some partitions have no leader when a process starts; gives whether all have one. */
static bool elect(struct world *world)
{
    bool all = true;

    for (int32_t p = 0; p < PARTITIONS; p++) {
        bool there = calm || pick(world, 4) != 0;

        mp_fake_log_leader(world->log, p, there);
        all = all && there;
    }
    return all;
}

/* While a process waits, another one may take a partition, as one does that is believed dead, and
 * leaders come. */
static void nap_beside_others(void *self, uint64_t us)
{
    struct world *world = self;
    int32_t partition = (int32_t)pick(world, PARTITIONS);

    atomic_fetch_add(&world->slept_us, us);
    if (pick(world, 20) == 0) {
        mp_fake_log_leader(world->log, partition, true);
        atomic_fetch_add(&world->slept_us, UINT64_C(11000000)); /* it is looked for at once */
    }
    if (!calm && pick(world, 60) == 0 && mp_fake_next(world->catalog, partition) >= 0)
        mp_fake_steal(world->catalog, partition);
}

static void play(uint64_t seed)
{
    struct world world;
    int64_t next[PARTITIONS];
    uint64_t wanted, rows;
    struct mp_err err = {0};
    enum mp_code code = MP_STOPPED;
    bool led = false;

    world_open(&world, PARTITIONS, seed);
    world.env.sleep_us = nap_beside_others;
    wanted = fill(&world);
    mp_fake_log_end(world.log);
    for (int process = 0; code != MP_OK || !led; process++) {
        calm = process >= CALM;
        if (process == PROCESSES_MAX)
            test_fail(__FILE__, __LINE__, "seed %" PRIu64 ": no end after %d processes: %s", seed,
                      process, err.text);
        world.options.flush_bytes = 1 + pick(&world, 8192);
        world.options.flush_interval_ms = 1 + (uint32_t)pick(&world, 100);
        world.options.poll_records_max = 10 + (uint32_t)pick(&world, 200);
        if (!calm)
            plan_faults(&world);
        led = elect(&world);
        code = world_run(&world, !calm && pick(&world, 3) ? 1 + pick(&world, 5) : 0, &err);
        if (code && code != MP_STOPPED && code != MP_IO && code != MP_FENCED)
            test_fail(__FILE__, __LINE__, "seed %" PRIu64 ": %s: %s", seed, mp_code_name(code),
                      err.text);
        world_check(&world, next);
    }
    rows = world_check(&world, next);
    if (rows != wanted)
        test_fail(__FILE__, __LINE__, "seed %" PRIu64 ": %" PRIu64 " rows of %" PRIu64, seed, rows,
                  wanted);
    for (int32_t p = 0; p < PARTITIONS; p++)
        CHECK_INT(next[p] > 0 ? next[p] : 0,
                  mp_fake_next(world.catalog, p) > 0 ? mp_fake_next(world.catalog, p) : 0);
    world_close(&world);
}

static void every_record_is_settled_once(void)
{
    if (seed_from_environment) {
        play(seed_from_environment);
        return;
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        play(seed);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(every_record_is_settled_once)};
    const char *seed = getenv("SEED"); /* plays one seed again */

    seed_from_environment = seed ? strtoull(seed, NULL, 10) : 0;
    return test_main(argc, argv, tests, 1);
}
