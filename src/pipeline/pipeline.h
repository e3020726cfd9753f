/* pipeline/pipeline.h - records in, commits out: walks the rooms in order and owns every policy.
 *
 *     ingest (the caller's thread)   poll, scan, filter, append; seals a batch by size, time, end
 *     publish (a thread)             plan and evolve the table, cut, encode on all workers, upload,
 *                                    commit, mirror the offsets to the source
 *
 * One batch is being built while at most one is being published; they are published in the order
 * in which they were built. Offsets travel with the rows: a batch carries the range of every
 * partition it was made from, and the lake settles rows and ranges in one transaction. Where the
 * lake keeps no offsets, the source does: a plan written beside them before the commit, and the
 * lake's answer about the plan's key, take the transaction's place (book.c, settle.c).
 *
 * Life     new -> run (returns when stopped, at the end of the source, or on a fault) -> free
 * Faults   transient ones are retried until outage_ms_max; then, and at once on permanent ones,
 *          run returns the fault. Whatever was not committed is read again by the next process.
 * Memory   building, publishing and compressed bytes together stay within 1.4 x flush_bytes:
 *          ingest waits (and serves the source) while they do not.
 */
#ifndef MP_PIPELINE_PIPELINE_H
#define MP_PIPELINE_PIPELINE_H

#include "base/buf.h"
#include "base/env.h"
#include "base/err.h"
#include "column/batch.h"
#include "kafka/source.h"
#include "lake/lake.h"
#include "obs/health.h"
#include "obs/log.h"
#include "obs/metric.h"
#include "parquet/writer.h"
#include "pipeline/filter.h"
#include "store/store.h"

enum mp_pipeline_reset { MP_PIPELINE_EARLIEST, MP_PIPELINE_LATEST };

/* What becomes of a plan of which nobody can say whether it was carried out (settle.c). */
enum mp_pipeline_unsettled {
    MP_PIPELINE_HALT,  /* an operator decides */
    MP_PIPELINE_AGAIN, /* its records are read again: rows may be there twice */
    MP_PIPELINE_SKIP,  /* its records count as published: rows may be missing */
};

/* Texts and lists are borrowed until free. */
struct mp_pipeline_options {
    struct mp_str topic;
    struct mp_str table, quarantine_table; /* no quarantine table: empty */
    struct mp_lake_create create;          /* partition spec and sort of a table not there yet */
    const struct mp_pin *pins;
    uint32_t pin_count;
    struct mp_str rescued_column; /* empty: off */
    const struct mp_companion *companions;
    uint32_t companion_count;
    struct mp_parquet_variant_options variant; /* how companions are made */
    uint32_t columns_max;
    const struct mp_filter_options *keep, *drop; /* NULL: none */
    struct mp_str created_by;                    /* for Parquet footers */
    struct mp_parquet_options parquet;

    uint64_t flush_bytes;       /* Arrow-equivalent; 0: flush after every poll that gave rows */
    uint32_t flush_interval_ms; /* from the first record of a batch */
    uint32_t poll_records_max;
    uint32_t workers;             /* threads that encode */
    uint64_t outage_ms_max;       /* 0: for ever */
    uint32_t attempts_max;        /* of one flush, before it counts as failed; 0: no such limit */
    uint64_t flush_ms_max;        /* the same for its time */
    enum mp_pipeline_reset reset; /* where nothing is stored, or what is stored is gone */
    bool offsets_from_source;     /* what the source stores wins over the lake, once, at start */
    bool from_start;              /* begin at the log's first record, whatever is stored */
    bool until_end;               /* stop at the end of a source that has one */

    /* Where the lake keeps no offsets. */
    uint64_t plan_age_s_max; /* an older plan may have been carried out without a trace left */
    uint32_t unsure_ms;      /* so long a commit may be under way after its sender is gone */
    enum mp_pipeline_unsettled unsettled;
    bool lost_offsets_reset; /* no stored offset, but rows in the table: the reset policy decides */
};

/* How the world is reached; each is called again after a fault. */
struct mp_pipeline_doors {
    void *self;
    enum mp_code (*open_lake)(void *self, struct mp_err *err, struct mp_lake **ret);
    enum mp_code (*open_store)(void *self, struct mp_str data_path, struct mp_err *err,
                               struct mp_store **ret);
    enum mp_code (*open_source)(void *self, struct mp_err *err, struct mp_source **ret);
    /* A second source that has every partition of the topic, to read again what somebody else left
     * behind; its reached sees the log's end. NULL: the source itself has them all. */
    enum mp_code (*open_whole_source)(void *self, struct mp_err *err, struct mp_source **ret);
    /* Whether the store answers and takes objects, before a lake is made that names it for ever.
     * NULL: not asked. */
    enum mp_code (*prove_store)(void *self, struct mp_err *err);
};

/* All borrowed; log, metrics and health may be NULL. */
struct mp_pipeline_world {
    const struct mp_env *env;
    struct mp_log *log;
    struct mp_metrics *metrics;
    struct mp_health *health;
};

/* Columns that the pipeline fills itself, in a table that has them already. MP_REFUSED: with a type
 * that they cannot be written as. */
enum mp_code mp_pipeline_rescued_fits(const struct mp_schema *live, struct mp_str name,
                                      struct mp_err *err);
enum mp_code mp_pipeline_quarantine_fits(const struct mp_schema *live, struct mp_err *err);

struct mp_pipeline;

struct mp_pipeline *mp_pipeline_new(const struct mp_pipeline_options *options,
                                    const struct mp_pipeline_doors *doors,
                                    const struct mp_pipeline_world *world);
/* MP_OK: stopped as asked, or at the source's end; everything read is published. */
enum mp_code mp_pipeline_run(struct mp_pipeline *pipeline, struct mp_err *err);
void mp_pipeline_free(struct mp_pipeline *pipeline);

/* Another list for the keep filter, which the pipeline was made with: in force before the next poll
 * of the source. Copies; from any thread. */
void mp_pipeline_set_keep(struct mp_pipeline *pipeline, const struct mp_filter_options *keep);

/* Asks run to publish what it has and return; a second call: to return without. Async-signal-safe;
 * from any thread. */
void mp_pipeline_stop(struct mp_pipeline *pipeline);

/* Counts since run began; from any thread. */
struct mp_pipeline_counts {
    uint64_t records, rows, skipped, quarantined, rescued;
    uint64_t json_bytes, parquet_bytes, files, flushes;
};
struct mp_pipeline_counts mp_pipeline_counts(struct mp_pipeline *pipeline);
/* /status.json: one JSON object; from any thread. */
void mp_pipeline_print_status(struct mp_pipeline *pipeline, struct mp_buf *ret);

#endif
