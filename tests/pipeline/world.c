#include "world.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

static uint64_t mono(void *self)
{
    struct world *world = self;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000 +
           atomic_load(&world->slept_us);
}

static int64_t wall(void *self)
{
    return (int64_t)mono(self) + INT64_C(1700000000000000);
}

static uint64_t chance(void *self)
{
    struct world *world = self;
    struct mp_env_fake fake = {.seed = atomic_fetch_add(&world->random, 1) * 0x9e3779b97f4a7c15u};
    struct mp_env env = mp_env_fake(&fake);

    return mp_random_u64(&env);
}

static void nap(void *self, uint64_t us)
{
    struct world *world = self;
    struct timespec moment = {.tv_nsec = 20000}; /* lets other threads go on */

    atomic_fetch_add(&world->slept_us, us);
    nanosleep(&moment, NULL);
}

void world_open(struct world *world, uint32_t partitions, uint64_t seed)
{
    memset(world, 0, sizeof(*world));
    world->log = mp_fake_log_new(partitions);
    world->disk = mp_memory_disk_new();
    world->catalog = mp_fake_catalog_new();
    world->env = (struct mp_env){mono, wall, chance, nap, world};
    atomic_store(&world->random, seed * 1000003);
    world->partitions = partitions;
    world->options = (struct mp_pipeline_options){
        .topic = MP_STR("t"),
        .table = MP_STR("events"),
        .quarantine_table = MP_STR("bad"),
        .rescued_column = MP_STR("_rescued_data"),
        .columns_max = 1000,
        .created_by = MP_STR("test"),
        .flush_bytes = 4096,
        .flush_interval_ms = 50,
        .poll_records_max = 100,
        .workers = 2,
        .outage_ms_max = 600000,
        .until_end = true,
    };
    world->metrics = mp_metrics_new(MP_STR("t-events"), MP_STR(""), &world->env);
}

void world_close(struct world *world)
{
    mp_metrics_free(world->metrics);
    mp_fake_catalog_free(world->catalog);
    mp_memory_disk_free(world->disk);
    mp_fake_log_free(world->log);
}

void world_add(struct world *world, int32_t partition, uint32_t count)
{
    char record[128];

    for (uint32_t i = 0; i < count; i++) {
        int length = snprintf(record, sizeof(record), "{\"n\":%u,\"text\":\"number %u\"}", i, i);

        mp_fake_log_add(world->log, partition, MP_STR("k"), mp_str_n(record, (size_t)length),
                        1700000000000);
    }
}

struct process {
    struct world *world;
    struct mp_pipeline *pipeline;
    uint64_t stop_at_put, puts;
};

static enum mp_code open_lake(void *self, struct mp_err *err, struct mp_lake **ret)
{
    struct process *process = self;

    (void)err;
    *ret = mp_fake_lake_open(process->world->catalog, &process->world->env);
    return MP_OK;
}

static enum mp_code open_store(void *self, struct mp_str path, struct mp_err *err,
                               struct mp_store **ret)
{
    struct process *process = self;

    (void)path, (void)err;
    *ret = mp_memory_store_open(process->world->disk);
    return MP_OK;
}

static enum mp_code open_source(void *self, struct mp_err *err, struct mp_source **ret)
{
    struct process *process = self;

    (void)err;
    *ret = mp_source_fake_open(process->world->log, 0, 1);
    return MP_OK;
}

/* Kills the process at its nth put: before the object is there, or right after. */
static enum mp_memory_fault kill_at_put(void *self, enum mp_memory_op op, struct mp_str key,
                                        uint64_t ordinal)
{
    struct process *process = self;

    (void)key, (void)ordinal;
    if (op != MP_MEMORY_PUT || ++process->puts != process->stop_at_put)
        return MP_MEMORY_NO_FAULT;
    mp_pipeline_stop(process->pipeline);
    mp_pipeline_stop(process->pipeline);
    return process->puts % 2 ? MP_MEMORY_FAIL : MP_MEMORY_LOSE_ANSWER;
}

enum mp_code world_run(struct world *world, uint64_t stop_at_put, struct mp_err *err)
{
    struct process process = {.world = world, .stop_at_put = stop_at_put};
    struct mp_pipeline_doors doors = {&process, open_lake, open_store, open_source};
    struct mp_pipeline_world outside = {&world->env, NULL, world->metrics, world->health};
    enum mp_code code;

    process.pipeline = mp_pipeline_new(&world->options, &doors, &outside);
    if (world->keep_later)
        mp_pipeline_set_keep(process.pipeline, world->keep_later);
    if (stop_at_put)
        mp_memory_fault_decide(world->disk, kill_at_put, &process);
    code = mp_pipeline_run(process.pipeline, err);
    mp_pipeline_free(process.pipeline);
    mp_memory_fault_decide(world->disk, NULL, NULL);
    return code;
}

struct watch {
    struct process *process;
    enum mp_metric metric;
    double value;
};

static void *stop_at_value(void *self)
{
    struct watch *watch = self;
    struct world *world = watch->process->world;
    struct timespec moment = {.tv_nsec = 1000000};

    for (int i = 0;
         i < 20000 && mp_metric_value(world->metrics, watch->metric, NULL) < watch->value; i++)
        nanosleep(&moment, NULL);
    mp_pipeline_stop(watch->process->pipeline);
    return NULL;
}

enum mp_code world_run_until(struct world *world, enum mp_metric metric, double value,
                             struct mp_err *err)
{
    struct process process = {.world = world};
    struct mp_pipeline_doors doors = {&process, open_lake, open_store, open_source};
    struct mp_pipeline_world outside = {&world->env, NULL, world->metrics, world->health};
    struct watch watch = {&process, metric, value};
    pthread_t watcher;
    enum mp_code code;

    *err = (struct mp_err){0};
    process.pipeline = mp_pipeline_new(&world->options, &doors, &outside);
    CHECK_INT(pthread_create(&watcher, NULL, stop_at_value, &watch), 0);
    code = mp_pipeline_run(process.pipeline, err);
    pthread_join(watcher, NULL);
    mp_pipeline_free(process.pipeline);
    mp_memory_fault_decide(world->disk, NULL, NULL);
    return code;
}

uint64_t world_check(struct world *world, int64_t *ret_next)
{
    uint64_t all_rows = 0;

    for (uint32_t i = 0; i < world->partitions; i++)
        ret_next[i] = 0;
    for (uint32_t c = 0; c < mp_fake_commit_count(world->catalog); c++) {
        const struct mp_fake_commit *commit = mp_fake_commit(world->catalog, c);
        uint64_t rows = 0, bad = 0, file_rows = 0;

        for (uint32_t i = 0; i < commit->range_count; i++) {
            const struct mp_lake_range *range = &commit->ranges[i];

            CHECK_INT(range->first, ret_next[range->partition]); /* no gap, no overlap */
            CHECK(range->next > range->first);
            CHECK(range->rows + range->skipped + range->quarantined == range->records);
            ret_next[range->partition] = range->next;
            rows += range->rows;
            bad += range->quarantined;
        }
        for (uint32_t a = 0; a < commit->append_count; a++)
            for (uint32_t f = 0; f < commit->appends[a].file_count; f++) {
                const struct mp_lake_file *file = &commit->appends[a].files[f];
                struct mp_str object = mp_memory_peek(world->disk, file->key);

                CHECK(object.data != NULL); /* whole in the store before the lake heard of it */
                CHECK_INT(object.size, file->bytes);
                file_rows += file->rows;
            }
        CHECK_INT(file_rows, rows + (world->options.quarantine_table.size ? bad : 0));
        all_rows += rows;
    }
    CHECK_INT(mp_memory_counts(world->disk).rewrites, 0);
    return all_rows;
}
