/* pipeline/pipeline.c - making and ending the pipeline; what both its threads use. */
#include "pipeline/pipeline_priv.h"

#include "base/mem.h"

#include <time.h>
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

struct mp_pipeline *mp_pipeline_new(const struct mp_pipeline_options *options,
                                    const struct mp_pipeline_doors *doors,
                                    const struct mp_pipeline_world *world)
{
    struct mp_pipeline *p = mp_alloc(sizeof(*p));
    pthread_condattr_t monotonic;

    p->options = *options;
    p->doors = *doors;
    p->world = *world;
    pthread_mutex_init(&p->lake_lock, NULL);
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    mp_arena_init(&p->live_arena, 0);
    mp_arena_init(&p->refused_arena, 0);
    p->pool = mp_segment_pool_new(options->flush_bytes);
    p->workers = mp_workers_new(options->workers ? options->workers : 1);
    p->encoders = mp_alloc_array(mp_workers_count(p->workers), sizeof(*p->encoders));
    for (uint32_t i = 0; i < mp_workers_count(p->workers); i++)
        p->encoders[i] = mp_parquet_encoder_new(&options->parquet);
    p->json = mp_json_new();
    if (options->keep)
        p->keep = mp_keep_new(options->keep);
    if (options->drop)
        p->drop = mp_filter_new(options->drop);
    p->bad_records.burst = 10;
    p->source_retry = (struct mp_retry){.env = world->env, .outage_ms_max = options->outage_ms_max};
    return p;
}

static void end_look(struct mp_pipeline *p)
{
    struct mp_source_watermark *marks = NULL;
    struct mp_err err;
    uint32_t count;

    if (p->look)
        mp_look_end(p, &err, &marks, &count);
    mp_free(marks);
}

static void end_publisher(struct mp_pipeline *p)
{
    if (!p->publisher_runs)
        return;
    atomic_store(&p->stops, 2); /* cuts its waits short */
    pthread_mutex_lock(&p->lock);
    p->ending = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->publisher, NULL);
}

void mp_pipeline_free(struct mp_pipeline *p)
{
    if (!p)
        return;
    end_publisher(p);
    end_look(p);
    mp_job_free(p, p->job);
    mp_batch_free(p->batch);
    mp_batch_free(p->quarantine);
    mp_source_close(p->source);
    mp_lake_close(p->lake);
    mp_store_close(p->store);
    for (uint32_t i = 0; i < mp_workers_count(p->workers); i++)
        mp_parquet_encoder_free(p->encoders[i]);
    mp_free(p->encoders);
    mp_workers_free(p->workers);
    mp_segment_pool_free(p->pool);
    mp_json_free(p->json);
    mp_keep_free(p->keep);
    mp_keep_free(p->keep_next);
    mp_filter_free(p->drop);
    mp_free(p->parts);
    mp_arena_fini(&p->live_arena);
    mp_arena_fini(&p->refused_arena);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->lake_lock);
    mp_free(p);
}

void mp_pipeline_stop(struct mp_pipeline *p)
{
    atomic_fetch_add(&p->stops, 1);
}

struct mp_part *mp_pipeline_part(struct mp_pipeline *p, int32_t id)
{
    for (uint32_t low = 0, high = p->part_count; low < high;) {
        uint32_t middle = (low + high) / 2;

        if (p->parts[middle].id == id)
            return &p->parts[middle];
        if (p->parts[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

void mp_pipeline_mark(struct mp_arena *arena, struct mp_source_offset *offset, int64_t epoch)
{
    offset->metadata =
        mp_str_c(mp_arena_printf(arena, "mp1 %" PRId64 " %" PRId64, epoch, offset->offset));
}

bool mp_pipeline_wait(struct mp_pipeline *p, uint32_t ms)
{
    for (uint32_t waited = 0; waited < ms && atomic_load(&p->stops) < 2; waited += 50)
        mp_sleep_us(p->world.env, (ms - waited < 50 ? ms - waited : 50) * UINT64_C(1000));
    return atomic_load(&p->stops) < 2;
}

bool mp_pipeline_refuse(struct mp_pipeline *p, struct mp_str name)
{
    struct mp_str *refused;
    bool known = false;

    pthread_mutex_lock(&p->lock);
    for (uint32_t i = 0; i < p->refused_count && !known; i++)
        known = mp_str_eq(p->refused[i], name);
    if (!known) {
        refused = mp_arena_take(&p->refused_arena, (p->refused_count + 1) * sizeof(*refused));
        if (p->refused_count)
            memcpy(refused, p->refused, p->refused_count * sizeof(*refused));
        refused[p->refused_count++] = mp_arena_str(&p->refused_arena, name);
        p->refused = refused;
    }
    pthread_mutex_unlock(&p->lock);
    return !known;
}

void mp_pipeline_set_live(struct mp_pipeline *p, const struct mp_lake_table *table)
{
    pthread_mutex_lock(&p->lock);
    mp_arena_reset(&p->live_arena);
    p->live_known = table != NULL;
    if (table)
        mp_schema_copy(&p->live_arena, &table->schema, &p->live);
    pthread_mutex_unlock(&p->lock);
}
