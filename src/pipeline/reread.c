/* pipeline/reread.c - exactly the ranges of a plan once more, as a job.
 *
 * What lies between lowest and highest becomes the rows that the settings make of it now; the
 * ranges stay the plan's, since its key names them. All of it is published under one key, so it is
 * held at once, however large: the plan's maker held it too.
 */
#include "base/mem.h"
#include "pipeline/pipeline_priv.h"

#include <assert.h>
#include <inttypes.h>

enum { POLL_MS = 200, IDLE_MS_MAX = 60000 };

struct reread {
    struct mp_pipeline *p;
    struct mp_source *source;
    const struct mp_lake_range *ranges;
    struct mp_part *parts; /* beside ranges */
    bool *open;            /* beside ranges: not read to its end yet */
    uint32_t count, open_count;
};

static enum mp_code unreadable(struct mp_err *err, int32_t partition, int64_t low, int64_t high,
                               const struct mp_lake_range *range)
{
    mp_err_set(err, MP_NOT_FOUND,
               "partition %" PRId32 " has offsets %" PRId64 " to %" PRId64 ", not %" PRId64
               " to %" PRId64 " any more",
               partition, low, high - 1, range->lowest, range->highest);
    return MP_NOT_FOUND;
}

/* Compaction may have taken records from a range; it is readable where the log spans it. */
static enum mp_code begin(struct reread *reread, struct mp_err *err)
{
    const struct mp_source_driver *driver = reread->source->driver;
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < reread->count && !code; i++) {
        const struct mp_lake_range *range = &reread->ranges[i];
        struct mp_source_watermark mark = {.partition = range->partition};

        if (range->lowest < 0)
            continue;
        code = driver->watermarks(reread->source, &mark, 1, err);
        if (!code && ((mark.low >= 0 && mark.low > range->lowest) ||
                      (mark.high >= 0 && mark.high <= range->highest)))
            code = unreadable(err, range->partition, mark.low, mark.high, range);
        if (!code)
            code = driver->seek(reread->source, range->partition, range->lowest, err);
        reread->open[i] = !code;
        reread->open_count += !code;
    }
    return code;
}

static uint32_t index_of(const struct reread *reread, int32_t partition)
{
    uint32_t i = 0;

    while (i < reread->count && reread->ranges[i].partition != partition)
        i++;
    return i;
}

static void take(struct reread *reread, const struct mp_records *records)
{
    for (uint32_t r = 0; r < records->count; r++) {
        const struct mp_record *record = &records->items[r];
        uint32_t i = index_of(reread, record->partition);

        if (i < reread->count && reread->open[i] && record->offset >= reread->ranges[i].lowest &&
            record->offset <= reread->ranges[i].highest)
            mp_record_take(reread->p, &reread->parts[i], record);
    }
}

static enum mp_code close_reached(struct reread *reread, struct mp_err *err)
{
    const struct mp_source_driver *driver = reread->source->driver;
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < reread->count && !code; i++) {
        int32_t partition = reread->ranges[i].partition;

        if (!reread->open[i] ||
            driver->reached(reread->source, partition) <= reread->ranges[i].highest)
            continue;
        code = driver->unseek(reread->source, partition, err);
        reread->open[i] = code;
        reread->open_count -= !code;
    }
    return code;
}

static enum mp_code read_all(struct reread *reread, struct mp_err *err)
{
    struct mp_pipeline *p = reread->p;
    /* The source itself may not go back behind what it gave: record by record, no further. */
    uint32_t records_max = reread->source == p->source ? 1 : p->options.poll_records_max;
    uint64_t moved_us = mp_now_mono_us(p->world.env);
    struct mp_records records;
    enum mp_code code = MP_OK;

    while (!code && reread->open_count) {
        uint32_t open = reread->open_count;

        if (mp_pipeline_stopping(p))
            return mp_err_set(err, MP_STOPPED, "stopped before it began");
        mp_health_beat(p->world.health);
        code = reread->source->driver->poll(reread->source, records_max, POLL_MS, err, &records);
        if (code)
            break;
        for (uint32_t i = 0; i < records.lost_count; i++) {
            uint32_t at = index_of(reread, records.lost[i].partition);

            if (at < reread->count && reread->open[at])
                return unreadable(err, records.lost[i].partition, records.lost[i].low,
                                  records.lost[i].high, &reread->ranges[at]);
        }
        take(reread, &records);
        code = close_reached(reread, err);
        if (!code && records.end && reread->open_count) {
            mp_err_set(err, MP_NOT_FOUND, "the source ended before the plan's last record");
            return MP_NOT_FOUND;
        }
        if (records.count || reread->open_count != open)
            moved_us = mp_now_mono_us(p->world.env);
        else if (!code && mp_now_mono_us(p->world.env) - moved_us > IDLE_MS_MAX * UINT64_C(1000))
            code = mp_err_set(err, MP_TIMEOUT, "%u partitions give nothing", reread->open_count);
    }
    return code;
}

/* What was read, as a job of the plan's ranges. */
static struct mp_job *job_of(struct reread *reread)
{
    struct mp_job *job;

    for (uint32_t i = 0; i < reread->count; i++) {
        reread->parts[i].start = reread->ranges[i].first;
        reread->parts[i].next = reread->ranges[i].next;
        reread->parts[i].lowest = reread->ranges[i].lowest;
        reread->parts[i].highest = reread->ranges[i].highest;
    }
    job = mp_job_new(reread->p, reread->parts, reread->count, "unknown");
    assert(job->range_count == reread->count);
    job->settles = true;
    return job;
}

enum mp_code mp_reread(struct mp_pipeline *p, struct mp_source *source,
                       const struct mp_lake_range *ranges, uint32_t count, struct mp_err *err,
                       struct mp_job **ret)
{
    struct reread reread = {.p = p, .source = source, .ranges = ranges, .count = count};
    struct mp_batch *batch = p->batch, *quarantine = p->quarantine;
    enum mp_code code;

    reread.parts = mp_alloc_array(count, sizeof(*reread.parts));
    reread.open = mp_alloc_array(count, sizeof(*reread.open));
    for (uint32_t i = 0; i < count; i++)
        reread.parts[i] = (struct mp_part){.id = ranges[i].partition, .lowest = -1, .highest = -1};
    p->batch = mp_ingest_batch(p);
    p->quarantine = NULL;
    code = begin(&reread, err);
    if (!code)
        code = read_all(&reread, err);
    if (!code)
        *ret = job_of(&reread);
    mp_batch_free(p->batch);
    mp_batch_free(p->quarantine);
    p->batch = batch;
    p->quarantine = quarantine;
    mp_free(reread.parts);
    mp_free(reread.open);
    return code;
}
