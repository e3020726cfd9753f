/* pipeline/status.c - what is seen from outside: counts, log lines, the status page. */
#include "pipeline/pipeline_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static const char logger[] = "millpond.main";

enum {
    RING = 8,
    TOLD_MAX = 10,         /* columns or names in lines of their own, a flush */
    SHOWN_BYTES_MAX = 200, /* of a name of the payload's own choosing */
};

void mp_status_fault(struct mp_pipeline *p, const struct mp_err *err, const char *what,
                     uint32_t wait_ms)
{
    struct mp_status_error *error;

    mp_log(p->world.log, MP_LOG_WARN, logger, "Cannot %s: %s; trying again in %.1fs", what,
           err->text, wait_ms / 1000.0);
    pthread_mutex_lock(&p->lock);
    error = &p->errors[p->error_count++ % RING];
    error->wall_us = mp_now_wall_us(p->world.env);
    snprintf(error->text, sizeof(error->text), "%s: %s", what, err->text);
    pthread_mutex_unlock(&p->lock);
}

void mp_status_lag(struct mp_pipeline *p, int32_t partition, int64_t high, int64_t published)
{
    char label[16];

    if (high < 0)
        return;
    snprintf(label, sizeof(label), "%" PRId32, partition);
    mp_metric_set(p->world.metrics, MP_M_CONSUMER_LAG, label,
                  (double)(high > published ? high - published : 0));
}

size_t mp_status_column_bytes(struct mp_pipeline *p)
{
    size_t packed = atomic_load(&p->compressed_bytes), all = mp_segment_pool_bytes(p->pool);

    return all > packed ? all - packed : 0; /* less: chunks are just being freed */
}

void mp_status_freshness(struct mp_pipeline *p, int32_t partition, int64_t published_ms)
{
    char label[16];

    if (published_ms < 0)
        return;
    snprintf(label, sizeof(label), "%" PRId32, partition);
    mp_metric_set(p->world.metrics, MP_M_PARTITION_FRESHNESS, label,
                  (double)(mp_now_wall_us(p->world.env) / 1000 - published_ms) / 1000);
}

static void count_rescued(struct mp_pipeline *p, const struct mp_job *job)
{
    uint64_t total = 0;

    for (int i = 0; i < MP_RESCUE_REASONS; i++) {
        if (!job->rescued[i])
            continue;
        total += job->rescued[i];
        mp_metric_add(p->world.metrics, MP_M_RECORDS_RESCUED, mp_rescue_name((enum mp_rescue)i),
                      (double)job->rescued[i]);
        mp_log(p->world.log, MP_LOG_WARN, logger, "%" PRIu64 " values rescued: %s", job->rescued[i],
               mp_rescue_name((enum mp_rescue)i));
    }
    p->counts.rescued += total;
}

static void count_variants(struct mp_pipeline *p, const struct mp_job *job)
{
    mp_metric_add(p->world.metrics, MP_M_VARIANT_COMPANION_COLUMNS_DROPPED, NULL,
                  job->variant_keys);
    mp_metric_add(p->world.metrics, MP_M_VARIANT_VALUES_COERCED, NULL,
                  (double)job->variant.rounded);
    mp_metric_add(p->world.metrics, MP_M_VARIANT_VALUES_NULL, NULL, (double)job->variant.unfit);
}

/* What the Python program counts once a column and batch, we count once a column and flush: a pin
 * that converted, a pin that could not, a live type that could not. */
static void count_misfits(struct mp_pipeline *p, const struct mp_job *job)
{
    char shown[SHOWN_BYTES_MAX * 4 + 1], type[24];
    struct mp_str name;
    uint32_t told = 0;

    for (uint32_t i = 0; i < job->misfit_count; i++) {
        const struct mp_misfit *misfit = &job->misfits[i];

        if (!misfit->refused) {
            mp_metric_add(p->world.metrics, MP_M_COLUMNS_COERCED, mp_type_sql_name(misfit->type),
                          1);
            continue;
        }
        mp_metric_add(p->world.metrics, MP_M_ERRORS, misfit->pinned ? "column_coercion" : "schema",
                      1);
        mp_type_ducklake_name(misfit->type, type);
        name = mp_log_sample(misfit->name, SHOWN_BYTES_MAX, shown, sizeof(shown));
        if (told++ >= TOLD_MAX)
            continue;
        if (misfit->type.id == MP_TYPE_OTHER)
            mp_log(
                p->world.log, MP_LOG_WARN, logger,
                "Column %.*s: nothing is written to columns of its type, %u values are not in it",
                MP_STR_ARG(name), misfit->refused);
        else
            mp_log(p->world.log, MP_LOG_WARN, logger,
                   "Column %.*s: %u values are not what its type %s holds exactly",
                   MP_STR_ARG(name), misfit->refused, type);
    }
    if (told > TOLD_MAX)
        mp_log(p->world.log, MP_LOG_WARN, logger, "%u more columns have such values",
               told - TOLD_MAX);
}

static void count_names(struct mp_pipeline *p, const struct mp_job *job)
{
    char shown[SHOWN_BYTES_MAX * 4 + 1];
    struct mp_str name;

    if (!job->refused_name_count)
        return;
    mp_metric_add(p->world.metrics, MP_M_RECORDS_SKIPPED, "unsafe_field_name",
                  job->refused_name_count);
    for (uint32_t i = 0; i < job->refused_name_count && i < MP_BATCH_NAMES_KEPT; i++) {
        name = mp_log_sample(job->refused_names[i], SHOWN_BYTES_MAX, shown, sizeof(shown));
        mp_log(p->world.log, MP_LOG_WARN, logger, "Skipping unsafe field name: %.*s",
               MP_STR_ARG(name));
    }
    if (job->refused_name_count > MP_BATCH_NAMES_KEPT)
        mp_log(p->world.log, MP_LOG_WARN, logger, "Skipping %u more unsafe field names",
               job->refused_name_count - MP_BATCH_NAMES_KEPT);
}

/* Under the lock. */
static void count_ranges(struct mp_pipeline *p, const struct mp_job *job)
{
    for (uint32_t i = 0; i < job->range_count; i++) {
        struct mp_source_watermark mark = {.partition = job->ranges[i].partition};
        struct mp_part *part = mp_pipeline_part(p, mark.partition);
        char label[16];

        snprintf(label, sizeof(label), "%" PRId32, job->ranges[i].partition);
        mp_metric_set(p->world.metrics, MP_M_LAST_COMMITTED_OFFSET, label,
                      (double)job->ranges[i].next);
        if (part && job->newest_ms[i] >= 0)
            part->published_ms = job->newest_ms[i];
        mp_status_freshness(p, mark.partition, job->newest_ms[i]);
        p->source->driver->watermarks_seen(p->source, &mark, 1);
        mp_status_lag(p, mark.partition, mark.high, job->ranges[i].next);
        p->counts.skipped += job->ranges[i].skipped;
        p->counts.quarantined += job->ranges[i].quarantined;
    }
}

void mp_status_flushed(const struct mp_publish *publish, double seconds)
{
    struct mp_pipeline *p = publish->p;
    const struct mp_job *job = publish->job;
    struct mp_metrics *metrics = p->world.metrics;
    struct mp_status_flush *flush;
    bool twice = publish->result.already_published && !p->lake->driver->offsets_in_lake;
    uint64_t files = twice ? 0 : publish->file_count, rows = twice ? 0 : job->rows;

    mp_health_flushed(p->world.health);
    pthread_mutex_lock(&p->lock);
    if (!job->settles) /* others' partitions may be among them */
        count_ranges(p, job);
    count_rescued(p, job);
    count_variants(p, job);
    p->counts.rows += rows;
    p->counts.files += files;
    p->counts.parquet_bytes += job->compressed_bytes;
    p->counts.flushes++;
    flush = &p->flushes[p->flush_count++ % RING];
    *flush = (struct mp_status_flush){
        .wall_us = mp_now_wall_us(p->world.env),
        .snapshot = publish->result.snapshot,
        .rows = rows,
        .bytes = job->compressed_bytes,
        .files = files,
        .seconds = seconds,
        .trigger = job->trigger,
    };
    pthread_mutex_unlock(&p->lock);
    count_misfits(p, job);
    count_names(p, job);
    if (!files)
        return; /* only offsets moved: no flush as dashboards count them */
    mp_log(p->world.log, MP_LOG_INFO, logger,
           "Flush: %" PRIu64 " records, %" PRIu64 " bytes, %u columns, write=%.2fs, elapsed=%.1fs",
           job->rows, job->arrow_bytes, job->column_count, seconds, seconds);
    mp_metric_add(metrics, MP_M_BATCHES_FLUSHED, job->trigger, 1);
    mp_metric_add(metrics, MP_M_BYTES, "arrow", (double)job->arrow_bytes);
    mp_metric_add(metrics, MP_M_BYTES, "parquet", (double)job->compressed_bytes);
    mp_metric_observe(metrics, MP_M_FLUSH_DURATION, NULL, seconds);
    mp_metric_observe(metrics, MP_M_FLUSH_SIZE_BYTES, NULL, (double)job->arrow_bytes);
    mp_metric_observe(metrics, MP_M_FLUSH_SIZE_RECORDS, NULL, (double)job->rows);
    mp_metric_observe(metrics, MP_M_FLUSH_FILES, NULL, (double)files);
    for (int t = 0; t < MP_JOB_TABLES; t++)
        for (uint32_t i = 0; i < job->tables[t].cut.count; i++)
            mp_metric_observe(metrics, MP_M_FLUSH_FILE_ROWS, NULL,
                              job->tables[t].cut.files[i].count);
    /* last: who sees these rows counted sees all that was told of them */
    mp_metric_add(metrics, MP_M_RECORDS_WRITTEN, NULL, (double)job->rows);
}

struct mp_pipeline_counts mp_pipeline_counts(struct mp_pipeline *p)
{
    struct mp_pipeline_counts counts;

    pthread_mutex_lock(&p->lock);
    counts = p->counts;
    pthread_mutex_unlock(&p->lock);
    return counts;
}

/* "2024-01-05T10:11:12Z" of a wall clock. */
static void print_time(int64_t wall_us, struct mp_buf *ret)
{
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm parts;
    char text[32];

    gmtime_r(&seconds, &parts);
    strftime(text, sizeof(text), "\"%Y-%m-%dT%H:%M:%SZ\"", &parts);
    mp_buf_add_c(ret, text);
}

void mp_pipeline_print_status(struct mp_pipeline *p, struct mp_buf *ret)
{
    uint64_t flushes, errors;

    mp_buf_add_c(ret, "{\"topic\":");
    mp_buf_add_json(ret, p->options.topic);
    mp_buf_add_c(ret, ",\"table\":");
    mp_buf_add_json(ret, p->options.table);
    mp_buf_add_byte(ret, ',');
    if (p->world.health)
        mp_health_print_json(p->world.health, ret);
    pthread_mutex_lock(&p->lock);
    mp_buf_printf(ret,
                  ",\"records\":%" PRIu64 ",\"rows\":%" PRIu64 ",\"skipped\":%" PRIu64
                  ",\"quarantined\":%" PRIu64 ",\"rescued\":%" PRIu64 ",\"json_bytes\":%" PRIu64
                  ",\"parquet_bytes\":%" PRIu64 ",\"files\":%" PRIu64 ",\"flushes\":%" PRIu64,
                  p->counts.records, p->counts.rows, p->counts.skipped, p->counts.quarantined,
                  p->counts.rescued, p->counts.json_bytes, p->counts.parquet_bytes, p->counts.files,
                  p->counts.flushes);
    mp_buf_printf(ret, ",\"memory_bytes\":{\"columns\":%zu,\"compressed\":%zu}",
                  mp_status_column_bytes(p), (size_t)atomic_load(&p->compressed_bytes));
    mp_buf_add_c(ret, ",\"last_flushes\":[");
    flushes = p->flush_count < RING ? p->flush_count : RING;
    for (uint64_t i = 0; i < flushes; i++) {
        const struct mp_status_flush *flush = &p->flushes[(p->flush_count - 1 - i) % RING];

        mp_buf_add_c(ret, i ? ",{\"at\":" : "{\"at\":");
        print_time(flush->wall_us, ret);
        mp_buf_printf(ret,
                      ",\"snapshot\":%" PRId64 ",\"rows\":%" PRIu64 ",\"files\":%" PRIu64
                      ",\"bytes\":%" PRIu64 ",\"seconds\":%.3f,\"trigger\":\"%s\"}",
                      flush->snapshot, flush->rows, flush->files, flush->bytes, flush->seconds,
                      flush->trigger);
    }
    mp_buf_add_c(ret, "],\"last_errors\":[");
    errors = p->error_count < RING ? p->error_count : RING;
    for (uint64_t i = 0; i < errors; i++) {
        const struct mp_status_error *error = &p->errors[(p->error_count - 1 - i) % RING];

        mp_buf_add_c(ret, i ? ",{\"at\":" : "{\"at\":");
        print_time(error->wall_us, ret);
        mp_buf_add_c(ret, ",\"text\":");
        mp_buf_add_json(ret, mp_str_c(error->text));
        mp_buf_add_byte(ret, '}');
    }
    mp_buf_add_c(ret, "]}\n");
    pthread_mutex_unlock(&p->lock);
}
