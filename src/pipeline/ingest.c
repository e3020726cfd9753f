/* pipeline/ingest.c - the loop: poll, take, hand over; the caller's thread of run.
 *
 * I1  the source is served (polled for nothing) whenever the loop has to wait for publish
 * I2  a new batch is made only when publish is idle or has bound the batch before, so that it is
 *     made against the table as it will be
 * I3  what is handed over tiles: a range begins where the one before ended
 */
#include "base/mem.h"
#include "pipeline/pipeline_priv.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <stdlib.h>

static const char logger[] = "millpond.main";

enum {
    TURN_MS_MAX = 200,          /* a stop is seen within this */
    SERVE_MS = 20,              /* between two looks at publish */
    PARTS_MS = 30000,           /* between two looks for new partitions */
    AWAY_MS = 10000,            /* the same while nobody leads some that are known */
    GAUGES_MS = 5000,           /* between two settings of the lag and memory gauges */
    KEY_BYTES_MAX = 4 << 20,    /* of the scanner's key table, at the start of a batch */
    BUDGET_BYTES_MIN = 8 << 20, /* however small the flush size is */
    PUBLISH_STUCK_MS = 480000,  /* one attempt may last so long before we are not alive */
};

/* Bytes that building, publishing and compressed may take together. */
static uint64_t budget_bytes(const struct mp_pipeline *p)
{
    uint64_t budget = p->options.flush_bytes + p->options.flush_bytes * 2 / 5;

    return budget > BUDGET_BYTES_MIN ? budget : BUDGET_BYTES_MIN;
}

/* What the scanner's key table takes beyond what a batch may begin with. */
static uint64_t key_bytes(const struct mp_pipeline *p)
{
    uint64_t bytes = mp_json_key_bytes(p->json);

    return bytes > KEY_BYTES_MAX ? bytes - KEY_BYTES_MAX : 0;
}

static uint64_t held_bytes(struct mp_pipeline *p)
{
    return mp_segment_pool_bytes(p->pool) + mp_batch_own_bytes(p->batch) + key_bytes(p) +
           (p->quarantine ? mp_batch_own_bytes(p->quarantine) : 0);
}

struct mp_batch *mp_ingest_batch(struct mp_pipeline *p)
{
    struct mp_batch *batch;
    struct mp_batch_options options = {
        .pins = p->options.pins,
        .pin_count = p->options.pin_count,
        .rescued_name = p->options.rescued_column,
        .inserted_at_name = MP_INSERTED_AT,
        .companions = p->options.companions,
        .companion_count = p->options.companion_count,
        .columns_max = p->options.columns_max,
        .fold_case = p->lake->driver->fold_case,
        .widen = p->lake->driver->fold_case, /* DuckLake widens, hoglake does not */
        .promote = p->lake->driver->promotes,
        .name_ok = p->lake->driver->name_ok,
    };

    if (key_bytes(p) && !p->batch) { /* another one knows keys by their numbers */
        mp_json_keys_reset(p->json);
        mp_filter_keys_reset(p->keep ? p->keep->filter : NULL);
        mp_filter_keys_reset(p->drop);
    }
    pthread_mutex_lock(&p->lock);
    options.live = p->live_known ? &p->live : NULL;
    options.refused = p->refused;
    options.refused_count = p->refused_count;
    batch = mp_batch_new(p->pool, &options); /* copies what it needs of live */
    pthread_mutex_unlock(&p->lock);
    return batch;
}

static void batch_new(struct mp_pipeline *p)
{
    p->batch = mp_ingest_batch(p);
    p->batch_since_us = 0;
}

/* Nothing of it is taken. */
static void part_begin(struct mp_part *part)
{
    part->records = part->rows = part->skipped = part->quarantined = 0;
    part->lowest = part->highest = -1;
}

/* The first offset of a partition that is not published yet. */
static int64_t published(struct mp_pipeline *p, const struct mp_part *part)
{
    int64_t offset = part->start;

    pthread_mutex_lock(&p->lock);
    for (uint32_t i = 0; p->job && i < p->job->range_count; i++)
        if (p->job->ranges[i].partition == part->id)
            offset = p->job->ranges[i].first;
    pthread_mutex_unlock(&p->lock);
    return offset;
}

/* Lag by what the client has heard, and age of what is published, also while nothing is. */
static void set_lag(struct mp_pipeline *p)
{
    for (uint32_t i = 0; i < p->part_count; i++) {
        struct mp_source_watermark mark = {.partition = p->parts[i].id};
        int64_t published_ms;

        p->source->driver->watermarks_seen(p->source, &mark, 1);
        mp_status_lag(p, mark.partition, mark.high, published(p, &p->parts[i]));
        pthread_mutex_lock(&p->lock);
        published_ms = p->parts[i].published_ms;
        pthread_mutex_unlock(&p->lock);
        mp_status_freshness(p, mark.partition, published_ms);
    }
}

static void set_memory(struct mp_pipeline *p)
{
    mp_metric_set(p->world.metrics, MP_M_MEMORY, "columns", (double)mp_status_column_bytes(p));
    mp_metric_set(p->world.metrics, MP_M_MEMORY, "compressed",
                  (double)atomic_load(&p->compressed_bytes));
    mp_metric_set(p->world.metrics, MP_M_MEMORY, "keys", (double)mp_json_key_bytes(p->json));
}

/* What is told of the loop whether it works or waits. Alive: publish moves, or is idle. */
static void beat(struct mp_pipeline *p, uint64_t now_us)
{
    bool stuck;

    pthread_mutex_lock(&p->lock);
    stuck = p->job && now_us > p->publish_moved_us &&
            now_us - p->publish_moved_us > (uint64_t)PUBLISH_STUCK_MS * 1000;
    pthread_mutex_unlock(&p->lock);
    if (!stuck)
        mp_health_beat(p->world.health);
    if (now_us - p->gauges_set_us > (uint64_t)GAUGES_MS * 1000) {
        p->gauges_set_us = now_us;
        set_lag(p);
        set_memory(p);
    }
}

/* Waits a moment for publish and serves the source meanwhile (I1). */
static void serve(struct mp_pipeline *p)
{
    struct timespec until;
    struct mp_records none;
    struct mp_err err;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += SERVE_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_mutex_lock(&p->lock);
    if (p->job && p->verdict == MP_VERDICT_NONE)
        pthread_cond_timedwait(&p->changed, &p->lock, &until);
    pthread_mutex_unlock(&p->lock);
    (void)p->source->driver->poll(p->source, 0, 0, &err, &none); /* its faults come up in take */
    beat(p, mp_now_mono_us(p->world.env));
}

/* Drops what is being built and what was being published, and goes back to the first offset that
 * the lake does not hold. */
static enum mp_code rewind_parts(struct mp_pipeline *p, struct mp_err *err)
{
    struct mp_job *job;
    enum mp_code code = MP_OK;

    p->rewinds++;
    pthread_mutex_lock(&p->lock);
    job = p->job;
    p->job = NULL;
    p->verdict = MP_VERDICT_NONE;
    pthread_mutex_unlock(&p->lock);
    mp_batch_free(p->batch);
    mp_batch_free(p->quarantine);
    p->batch = p->quarantine = NULL;
    for (uint32_t i = 0; i < p->part_count && !code; i++) {
        struct mp_part *part = &p->parts[i];

        for (uint32_t r = 0; r < job->range_count; r++)
            if (job->ranges[r].partition == part->id)
                part->start = job->ranges[r].first;
        part_begin(part);
        if (part->next != part->start)
            code = p->source->driver->seek(p->source, part->id, part->start, err);
        part->next = part->start;
    }
    mp_job_free(p, job);
    batch_new(p);
    return code;
}

/* What publish has answered meanwhile. */
static enum mp_code look_at_publish(struct mp_pipeline *p, struct mp_err *err)
{
    enum mp_verdict verdict;

    pthread_mutex_lock(&p->lock);
    verdict = p->verdict;
    if (verdict == MP_VERDICT_FAILED && err)
        *err = p->failure;
    pthread_mutex_unlock(&p->lock);
    if (verdict == MP_VERDICT_FAILED)
        return err->code;
    return verdict == MP_VERDICT_REWIND ? rewind_parts(p, err) : MP_OK;
}

static bool publish_idle(struct mp_pipeline *p)
{
    bool idle;

    pthread_mutex_lock(&p->lock);
    idle = p->job == NULL;
    pthread_mutex_unlock(&p->lock);
    return idle;
}

static bool publish_bound(struct mp_pipeline *p)
{
    bool bound;

    pthread_mutex_lock(&p->lock);
    bound = p->job == NULL || p->job_bound;
    pthread_mutex_unlock(&p->lock);
    return bound;
}

static enum mp_code stopped_twice(struct mp_err *err)
{
    return mp_err_set(err, MP_STOPPED,
                      "stopped twice: what was not published is read again by the next process");
}

/* Serves the source until publish is as asked. *ret_rewound: the batch at hand is gone. */
static enum mp_code wait_for(struct mp_pipeline *p, bool (*reached)(struct mp_pipeline *),
                             bool *ret_rewound, struct mp_err *err)
{
    uint64_t rewinds = p->rewinds;
    enum mp_code code = MP_OK;

    while (!code) {
        if (atomic_load(&p->stops) > 1)
            return stopped_twice(err);
        code = look_at_publish(p, err);
        if (code || reached(p))
            break;
        serve(p);
    }
    *ret_rewound = p->rewinds != rewinds;
    return code;
}

static bool part_has_range(const struct mp_part *part)
{
    return part->next > part->start;
}

struct mp_job *mp_job_new(struct mp_pipeline *p, struct mp_part *parts, uint32_t part_count,
                          const char *trigger)
{
    static const struct mp_lake_create plain;
    struct mp_job *job = mp_alloc(sizeof(*job));

    mp_arena_init(&job->arena, 0);
    job->trigger = trigger;
    job->tables[MP_JOB_MAIN].name = p->options.table;
    job->tables[MP_JOB_MAIN].create = &p->options.create;
    job->tables[MP_JOB_QUARANTINE].name = p->options.quarantine_table;
    job->tables[MP_JOB_QUARANTINE].create = &plain;
    job->arrow_bytes = mp_batch_arrow_bytes(p->batch);
    job->column_count = mp_batch_column_count(p->batch);
    job->ranges = mp_alloc_array(part_count, sizeof(*job->ranges));
    job->offsets = mp_alloc_array(part_count, sizeof(*job->offsets));
    job->newest_ms = mp_alloc_array(part_count, sizeof(*job->newest_ms));
    for (uint32_t i = 0; i < part_count; i++) {
        struct mp_part *part = &parts[i];
        uint32_t at = job->range_count;

        if (!part_has_range(part))
            continue;
        job->ranges[at] = (struct mp_lake_range){
            .partition = part->id,
            .first = part->start,
            .next = part->next,
            .lowest = part->lowest,
            .highest = part->highest,
            .records = part->records,
            .rows = part->rows,
            .skipped = part->skipped,
            .quarantined = part->quarantined,
        };
        job->offsets[at] = (struct mp_source_offset){.partition = part->id, .offset = part->next};
        if (p->lake->driver->offsets_in_lake)
            mp_pipeline_mark(&job->arena, &job->offsets[at], part->epoch);
        job->newest_ms[at] = part->timestamp_ms;
        job->range_count++;
        job->records += part->records;
        job->rows += part->rows;
        part->start = part->next; /* I3 */
        part_begin(part);
    }
    if (mp_batch_rows(p->batch)) {
        assert(mp_batch_rows(p->batch) == job->rows);
        job->tables[MP_JOB_MAIN].batch = p->batch;
        p->batch = NULL;
    }
    job->tables[MP_JOB_QUARANTINE].batch = p->quarantine;
    p->quarantine = NULL;
    return job;
}

/* Looks for what is new, now and then, and takes it over while publish is idle: a plan may have to
 * be carried out for that, and a look at the table ends what publish was lent of it. */
static enum mp_code look_for_partitions(struct mp_pipeline *p, struct mp_err *err)
{
    uint64_t now = mp_now_mono_us(p->world.env), pause_ms = p->away[0] ? AWAY_MS : PARTS_MS;
    enum mp_code code = MP_OK;

    if (mp_pipeline_stopping(p))
        return MP_OK;
    if (!p->look && now - p->parts_asked_us > pause_ms * 1000) {
        p->parts_asked_us = now;
        code = mp_look_begin(p, err);
    }
    if (mp_look_over(p) && publish_idle(p))
        code = mp_start_looked(p, err);
    if (code == MP_STOPPED) /* what was read before is published all the same */
        return MP_OK;
    return code && !err->retriable ? mp_pipeline_later(code, err) : MP_OK;
}

/* Gives the batch to publish and makes the next one. *ret_rewound: what was taken was dropped, its
 * ranges are read again. */
static enum mp_code hand_over(struct mp_pipeline *p, const char *trigger, bool *ret_rewound,
                              struct mp_err *err)
{
    struct mp_job *job;
    enum mp_code code = wait_for(p, publish_idle, ret_rewound, err);

    if (!code && !*ret_rewound)
        code = look_for_partitions(p, err); /* publish may never be idle otherwise */
    if (code || *ret_rewound)
        return code;
    job = mp_job_new(p, p->parts, p->part_count, trigger);
    if (strcmp(trigger, "final") == 0)
        mp_log(p->world.log, MP_LOG_INFO, logger,
               "Final flush: %" PRIu64 " records, %" PRIu64 " bytes", job->rows, job->arrow_bytes);
    pthread_mutex_lock(&p->lock);
    assert(!p->job);
    p->job = job;
    p->job_bound = false;
    p->publish_moved_us = mp_now_mono_us(p->world.env);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    code = wait_for(p, publish_bound, ret_rewound, err);
    if (code || *ret_rewound)
        return code;
    if (p->batch && key_bytes(p)) { /* it is empty: all that came was skipped */
        assert(!mp_batch_rows(p->batch));
        mp_batch_free(p->batch);
        p->batch = NULL;
    }
    if (!p->batch)
        batch_new(p);
    p->batch_since_us = 0;
    mp_metric_set(p->world.metrics, MP_M_PENDING_BYTES, NULL, 0);
    return MP_OK;
}

/* When the batch, which is begun, is to be handed over. */
static uint64_t due_us(const struct mp_pipeline *p)
{
    return p->batch_since_us + (uint64_t)p->options.flush_interval_ms * 1000;
}

/* NULL: nothing is due. */
static const char *flush_trigger(struct mp_pipeline *p, uint64_t arrow_bytes, uint64_t now_us)
{
    uint64_t limit = p->options.flush_bytes, keys = key_bytes(p);
    uint64_t bad_bytes = p->quarantine ? mp_batch_bytes(p->quarantine) : 0;
    bool rows = mp_batch_rows(p->batch) > 0;

    if (!p->batch_since_us)
        return NULL;
    if (rows && arrow_bytes >= limit)
        return "size";
    /* quarantined bytes and names count, beside rows or though nothing else came */
    if ((p->quarantine && bad_bytes >= limit) || (keys && keys >= limit))
        return "size";
    if ((rows || p->quarantine) && mp_batch_bytes(p->batch) + bad_bytes + keys >= limit + limit / 4)
        return "size";
    if (now_us >= due_us(p) && publish_idle(p)) /* while it is busy more fits in */
        return "time";
    return NULL;
}

/* As the buffer fills, polls get smaller, so that a flush is not overshot by much. */
static uint32_t poll_records(struct mp_pipeline *p, uint64_t arrow_bytes)
{
    uint64_t limit = p->options.flush_bytes, most = p->options.poll_records_max;
    uint64_t want = most;

    if (limit)
        want = arrow_bytes < limit ? most - most * arrow_bytes / limit : 0;
    want = want < 10 ? 10 : want;
    mp_metric_set(p->world.metrics, MP_M_PENDING_BYTES, NULL, (double)arrow_bytes);
    mp_metric_set(p->world.metrics, MP_M_CONSUME_BATCH_SIZE_CURRENT, NULL, (double)want);
    mp_metric_set(p->world.metrics, MP_M_BUFFER_FULLNESS, NULL,
                  limit ? (double)(arrow_bytes * 1000 / limit) / 1000 : 0);
    return (uint32_t)want;
}

static void count_poll(struct mp_pipeline *p, uint64_t bytes, uint64_t records, uint64_t seconds_us)
{
    mp_metric_observe(p->world.metrics, MP_M_ARROW_CONVERSION, NULL, (double)seconds_us / 1e6);
    mp_metric_add(p->world.metrics, MP_M_BYTES, "json", (double)bytes);
    mp_keep_count(p);
    pthread_mutex_lock(&p->lock);
    p->counts.records += records;
    p->counts.json_bytes += bytes;
    pthread_mutex_unlock(&p->lock);
}

static void count_part(struct mp_pipeline *p, const struct mp_part *part, uint64_t records)
{
    char label[16];

    snprintf(label, sizeof(label), "%" PRId32, part->id);
    mp_metric_add(p->world.metrics, MP_M_RECORDS_CONSUMED, label, (double)records);
}

static void take_records(struct mp_pipeline *p, const struct mp_records *records)
{
    uint64_t began = mp_now_mono_us(p->world.env), bytes = 0, run = 0;
    struct mp_part *part = NULL;

    if (!records->count)
        return;
    if (!p->batch_since_us)
        p->batch_since_us = began;
    for (uint32_t i = 0; i < records->count; i++) {
        const struct mp_record *record = &records->items[i];
        struct mp_part *next =
            part && part->id == record->partition ? part : mp_pipeline_part(p, record->partition);

        assert(next);
        assert(record->offset >= next->next); /* the source never goes back by itself */
        if (next != part && part)
            count_part(p, part, run), run = 0;
        part = next;
        run++;
        bytes += record->value.size;
        mp_record_take(p, part, record);
    }
    count_part(p, part, run);
    count_poll(p, bytes, records->count, mp_now_mono_us(p->world.env) - began);
}

/* The source is away: rides the outage out, unless it cannot heal. */
static enum mp_code source_fault(struct mp_pipeline *p, struct mp_err *err)
{
    uint32_t wait_ms;

    mp_metric_add(p->world.metrics, MP_M_ERRORS, "kafka", 1);
    mp_health_part(p->world.health, MP_HEALTH_SOURCE, err->text);
    if (!mp_retry_again(&p->source_retry, err, &wait_ms))
        return err->code;
    mp_status_fault(p, err, "read the source", wait_ms);
    for (uint32_t waited = 0; waited < wait_ms && !mp_pipeline_stopping(p); waited += SERVE_MS)
        serve(p), mp_pipeline_wait(p, SERVE_MS);
    return MP_OK;
}

static enum mp_code poll_once(struct mp_pipeline *p, uint64_t arrow_bytes, uint32_t wait_ms,
                              bool *ret_end, struct mp_err *err)
{
    struct mp_records records;
    enum mp_code code;

    code = p->source->driver->poll(p->source, poll_records(p, arrow_bytes), wait_ms, err, &records);
    if (code)
        return source_fault(p, err);
    if (p->source_retry.attempts) {
        mp_retry_over(&p->source_retry);
        mp_start_source_answers(p);
    }
    mp_keep_renew(p); /* after the wait: what came later than a list is judged by it */
    take_records(p, &records);
    *ret_end = records.end && p->options.until_end;
    for (uint32_t i = 0; i < records.lost_count && !code; i++)
        code = mp_start_lost(p, &records.lost[i], err);
    return code;
}

/* One turn: at most one poll, and what follows from it. */
static enum mp_code turn(struct mp_pipeline *p, bool *ret_end, struct mp_err *err)
{
    uint64_t now = mp_now_mono_us(p->world.env), arrow_bytes = mp_batch_arrow_bytes(p->batch);
    const char *trigger = flush_trigger(p, arrow_bytes, now);
    uint32_t wait_ms = TURN_MS_MAX;
    bool rewound;
    enum mp_code code;

    beat(p, now);
    code = look_at_publish(p, err);
    if (code)
        return code;
    if (trigger)
        return hand_over(p, trigger, &rewound, err);
    code = look_for_partitions(p, err);
    if (code)
        return code;
    if (held_bytes(p) > budget_bytes(p) && !publish_idle(p)) {
        serve(p);
        return MP_OK;
    }
    if (p->batch_since_us && now >= due_us(p))
        wait_ms = SERVE_MS;
    else if (p->batch_since_us && due_us(p) - now < (uint64_t)wait_ms * 1000)
        wait_ms = (uint32_t)((due_us(p) - now) / 1000) + 1;
    return poll_once(p, arrow_bytes, wait_ms, ret_end, err);
}

static bool anything_taken(const struct mp_pipeline *p)
{
    for (uint32_t i = 0; i < p->part_count; i++)
        if (part_has_range(&p->parts[i]))
            return true;
    return false;
}

/* Publishes all that was taken. A rewind meanwhile leaves ranges to be read again: by another round
 * of the loop at the end of a source, by the next process when we are to stop. */
static enum mp_code drain(struct mp_pipeline *p, bool *ret_rewound, struct mp_err *err)
{
    bool earlier = false, late = false;
    enum mp_code code = wait_for(p, publish_idle, &earlier, err);

    *ret_rewound = earlier;
    if (code || earlier || !anything_taken(p))
        return code;
    code = hand_over(p, "final", ret_rewound, err);
    if (!code && !*ret_rewound)
        code = wait_for(p, publish_idle, &late, err);
    *ret_rewound |= late;
    return code;
}

enum mp_code mp_pipeline_run(struct mp_pipeline *p, struct mp_err *err)
{
    bool end = false, rewound = false;
    enum mp_code code = mp_start_open(p, err);

    if (code)
        return code;
    if (pthread_create(&p->publisher, NULL, mp_publish_main, p))
        return mp_err_set(err, MP_IO, "the system gives no thread");
    p->publisher_runs = true;
    batch_new(p);
    mp_log(p->world.log, MP_LOG_INFO, logger, "millpond ready, entering main loop");
    do {
        end = false;
        while (!code && !end && !mp_pipeline_stopping(p))
            code = turn(p, &end, err);
        if (!code)
            code = drain(p, &rewound, err);
    } while (!code && rewound && !mp_pipeline_stopping(p));
    /* publish gives up at the second stop: here that may be seen before the stop is */
    if (code && err->retriable && atomic_load(&p->stops) > 1)
        code = stopped_twice(err);
    return code;
}
