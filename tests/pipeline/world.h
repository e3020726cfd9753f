/* tests/pipeline/world.h - a made-up world for the pipeline: a log, a store, a catalog, a clock
 * whose sleeps cost nothing. Processes come and go; the world stays.
 */
#ifndef MP_TESTS_PIPELINE_WORLD_H
#define MP_TESTS_PIPELINE_WORLD_H

#include "harness/test.h"
#include "kafka/source_fake.h"
#include "lake/fake.h"
#include "pipeline/pipeline.h"
#include "store/memory.h"

#include <stdatomic.h>

struct world {
    struct mp_fake_log *log;
    struct mp_memory_disk *disk;
    struct mp_fake_catalog *catalog;
    struct mp_env env; /* real time and all that was slept; safe for threads */
    atomic_uint_least64_t slept_us, random;
    uint32_t partitions;
    struct mp_pipeline_options options;
    struct mp_metrics *metrics;
    struct mp_health *health;                   /* NULL: nobody asks */
    const struct mp_filter_options *keep_later; /* set_keep is called with it; NULL: it is not */
};

void world_open(struct world *world, uint32_t partitions, uint64_t seed);
void world_close(struct world *world);
/* Appends {"n":<offset>,...} to a partition. */
void world_add(struct world *world, int32_t partition, uint32_t count);
/* A process from start to end. stop_at_put: the put at which it is killed (stopped twice), 0:
 * none. Gives the code of run. */
enum mp_code world_run(struct world *world, uint64_t stop_at_put, struct mp_err *err);
/* The same of one without an end: it is stopped once the metric has come to so much, or 20 s have
 * gone. */
enum mp_code world_run_until(struct world *world, enum mp_metric metric, double value,
                             struct mp_err *err);
/* Checks every commit: ranges tile from 0, rows are those of the ranges, objects are there.
 * Gives the rows committed in all; *ret_next has the next offset of each partition. */
uint64_t world_check(struct world *world, int64_t *ret_next);

#endif
