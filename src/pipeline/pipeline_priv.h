/* pipeline/pipeline_priv.h - the inner door: what ingest and publish share.
 *
 * Locks    `lock` guards everything below its line in the struct; `lake_lock` is held around every
 *          call of the lake (ingest claims partitions, publish does all the rest).
 * Threads  functions say whose they are.
 */
#ifndef MP_PIPELINE_PRIV_H
#define MP_PIPELINE_PRIV_H

#include "base/arena.h"
#include "column/transform.h"
#include "pipeline/pipeline.h"
#include "pipeline/retry.h"
#include "pipeline/workers.h"

#include <pthread.h>
#include <stdatomic.h>

#define MP_INSERTED_AT MP_STR("_inserted_at")

/* One partition as ingest sees it: what was taken since its last hand-over. */
struct mp_part {
    int32_t id;
    bool lost;            /* its position left the log; sought again, see ingest.c */
    int64_t start, next;  /* first offset not handed over; next to be taken */
    int64_t timestamp_ms; /* of the newest record taken */
    int64_t published_ms; /* of the newest record published, -1: none yet; under the lock */
    int64_t epoch;        /* of our claim, for the mirror's marker */
    int64_t lowest,
        highest; /* of what was taken: its first and last record with a value; -1 none */
    uint64_t records, rows, skipped, quarantined;
};

/* The keep filter with what it was made of; replaced as a whole. */
struct mp_keep {
    struct mp_arena arena;
    struct mp_filter_options options; /* its texts lie in arena */
    struct mp_filter *filter;
    uint64_t *matches; /* per listed value, since the last poll */
};

/* A table's rows of one batch on their way to files. */
struct mp_job_table {
    struct mp_str name;
    const struct mp_lake_create *create;
    struct mp_batch *batch; /* NULL: no rows for it */
    const struct mp_lake_table *table;
    struct mp_cut cut;
    struct mp_parquet_rows *rows; /* [cut.count] */
    struct mp_parquet_chunk **chunks;
    uint32_t chunk_count;
    struct mp_parquet_file **files; /* [cut.count] */
    struct mp_column_stats *stats;  /* [cut.count][stats_count]; one for every live column */
    uint32_t stats_count;
    struct mp_buf *keys; /* [cut.count] */
};

enum { MP_JOB_MAIN, MP_JOB_QUARANTINE, MP_JOB_TABLES };

/* A sealed batch with the ranges it was made from; owned by ingest, then by publish. */
struct mp_job {
    struct mp_job_table tables[MP_JOB_TABLES];
    struct mp_lake_range *ranges;     /* ascending partitions */
    struct mp_source_offset *offsets; /* the same as the source stores them; texts in arena */
    int64_t *newest_ms;               /* [range_count] timestamp of the newest record */
    uint32_t range_count;
    const char *trigger;        /* size, time or final */
    char key[MP_LAKE_KEY_SIZE]; /* of its commit; "" where the lake keeps the offsets */
    bool settles;               /* made of a plan found: key is the plan's, which is written down */
    uint64_t arrow_bytes, records, rows;
    uint64_t compressed_bytes;
    uint64_t rescued[MP_RESCUE_REASONS];
    uint32_t variant_keys;                    /* see mp_batch_variant_keys */
    struct mp_parquet_variant_counts variant; /* of all companions */
    struct mp_misfit *misfits;                /* of the main table */
    uint32_t misfit_count;
    struct mp_str refused_names[MP_BATCH_NAMES_KEPT];
    uint32_t refused_name_count; /* all of them */
    uint32_t column_count;
    struct mp_arena arena; /* partition values, texts */
};

/* The table that a commit's key and plan are made for: the first that the job has rows for; NULL:
 * it has none. */
static inline const struct mp_lake_table *mp_job_keyed_table(const struct mp_job *job)
{
    const struct mp_lake_table *main_table = job->tables[MP_JOB_MAIN].table;

    return main_table ? main_table : job->tables[MP_JOB_QUARANTINE].table;
}

/* A job on its way through the stages of publish. */
struct mp_publish {
    struct mp_pipeline *p;
    struct mp_job *job;
    struct mp_retry retry;
    struct mp_store_object *objects;
    struct mp_lake_file *files;
    bool *uploaded;
    uint32_t file_count;
    struct mp_lake_result result;
    bool unsure; /* an earlier attempt of the commit may have landed */
    uint64_t began_us;
    int64_t began_wall_us;
};

/* What publish answers; read and cleared by ingest. */
enum mp_verdict { MP_VERDICT_NONE, MP_VERDICT_REWIND, MP_VERDICT_FAILED };

struct mp_pipeline {
    struct mp_pipeline_options options;
    struct mp_pipeline_doors doors;
    struct mp_pipeline_world world;
    atomic_int stops; /* how often stop was called */

    struct mp_lake *lake;
    struct mp_store *store;
    struct mp_source *source;
    pthread_mutex_t lake_lock;

    struct mp_segment_pool *pool;
    struct mp_workers *workers;
    struct mp_parquet_encoder **encoders; /* [workers] */

    /* ingest's own */
    struct mp_json *json;
    struct mp_keep *keep; /* NULL: every record is kept */
    struct mp_filter *drop;
    struct mp_part *parts; /* ascending ids; the array changes under the lock only */
    uint32_t part_count;
    struct mp_batch *batch, *quarantine;
    uint64_t rewinds;        /* how often what was taken was dropped, to be read again */
    uint64_t batch_since_us; /* when its first record was taken; 0: none yet */
    uint64_t parts_asked_us; /* when the source was last asked for its partitions */
    struct mp_look *look;    /* at those that are not ours yet; NULL: there is none */
    char away[192];          /* which of ours nobody leads, in words; "": none */
    uint64_t gauges_set_us;
    bool told_plain; /* that the source forbids owners */
    struct mp_log_limit bad_records;
    struct mp_retry source_retry;

    pthread_t publisher;
    bool publisher_runs;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct mp_job *job;        /* being published; NULL: publish is idle */
    struct mp_keep *keep_next; /* takes the place of keep; NULL: there is none */
    bool job_bound;            /* its table is as it needs it: a next batch may be made */
    bool ending;
    enum mp_verdict verdict;
    struct mp_err failure;
    struct mp_arena refused_arena;
    const struct mp_str *refused; /* names the table would not make columns of; replaced as a whole,
                                   * what batches borrow stays */
    uint32_t refused_count;
    struct mp_arena live_arena; /* the table as last seen, for new batches */
    struct mp_schema live;
    bool live_known;                /* there is a table */
    uint64_t publish_moved_us;      /* last sign of life of publish */
    atomic_size_t compressed_bytes; /* of chunks; they lie in the pool */
    struct mp_pipeline_counts counts;
    struct mp_status_flush {
        int64_t wall_us, snapshot;
        uint64_t rows, bytes, files;
        double seconds;
        const char *trigger;
    } flushes[8]; /* a ring */
    uint64_t flush_count;
    struct mp_status_error {
        int64_t wall_us;
        char text[256];
    } errors[8]; /* a ring */
    uint64_t error_count;
};

/* start.c; ingest's thread */

/* Opens lake, store and source, each with the ladder. */
enum mp_code mp_start_open(struct mp_pipeline *p, struct mp_err *err);
/* Takes over every partition that the source gives us, and seeks it; one that nobody leads is left
 * for a look. */
enum mp_code mp_start_partitions(struct mp_pipeline *p, struct mp_err *err);
/* The same for those that somebody answered for when they were looked at. */
enum mp_code mp_start_looked(struct mp_pipeline *p, struct mp_err *err);
/* The source as a whole answers: what the readiness says of it. */
void mp_start_source_answers(struct mp_pipeline *p);
/* Seeks a partition whose position left the log, by the reset policy; counts the gap. */
enum mp_code mp_start_lost(struct mp_pipeline *p, const struct mp_source_lost *lost,
                           struct mp_err *err);

/* look.c; ingest's thread */

/* Begins to ask whether anybody answers for partitions that are not ours yet, where there are any;
 * only while no look is under way. */
enum mp_code mp_look_begin(struct mp_pipeline *p, struct mp_err *err);
/* Whether there is an answer. */
bool mp_look_over(const struct mp_pipeline *p);
/* Ends the look, waiting for its answer. Gives what was heard of each partition; the caller frees
 * it. Gives nothing on a fault. */
enum mp_code mp_look_end(struct mp_pipeline *p, struct mp_err *err,
                         struct mp_source_watermark **ret, uint32_t *ret_count);

/* settle.c; ingest's thread, while publish is idle */

/* Takes partitions over from whoever wrote their offsets before, and settles the plans found beside
 * them: stored (partitions set by the caller) is then what to go on from, texts in arena. */
enum mp_code mp_settle(struct mp_pipeline *p, struct mp_arena *arena,
                       struct mp_source_offset *stored, uint32_t count, struct mp_err *err);

/* reread.c; ingest's thread, while publish is idle */

/* Reads every partition's records from lowest to highest once more, into a job of exactly these
 * ranges. MP_NOT_FOUND, not retriable: the log does not have them any more. */
enum mp_code mp_reread(struct mp_pipeline *p, struct mp_source *source,
                       const struct mp_lake_range *ranges, uint32_t count, struct mp_err *err,
                       struct mp_job **ret);

/* lost.c; ingest's thread */

/* Refuses to begin where the source stores no offset at all but the table has rows. */
enum mp_code mp_lost_offsets(struct mp_pipeline *p, const struct mp_source_offset *stored,
                             uint32_t count, struct mp_err *err);

/* ingest.c; ingest's thread */

/* Gives an empty batch for the table as it was last seen. */
struct mp_batch *mp_ingest_batch(struct mp_pipeline *p);
/* Takes the batches and what was taken of these partitions. */
struct mp_job *mp_job_new(struct mp_pipeline *p, struct mp_part *parts, uint32_t part_count,
                          const char *trigger);

/* keep.c */

/* Copies the options. */
struct mp_keep *mp_keep_new(const struct mp_filter_options *options);
/* No-op on NULL. */
void mp_keep_free(struct mp_keep *keep);
/* Puts the list in force that set_keep left; ingest's thread, between a poll and its
 * records. */
void mp_keep_renew(struct mp_pipeline *p);
/* Adds the last poll's matches to the metrics; ingest's thread. */
void mp_keep_count(struct mp_pipeline *p);

/* record.c; ingest's thread */

/* Appends one record to its batch, or settles it otherwise. */
void mp_record_take(struct mp_pipeline *p, struct mp_part *part, const struct mp_record *record);

/* publish.c; publish's thread */
void *mp_publish_main(void *pipeline);
/* Publishes a job that settles; ingest's thread, while publish is idle. MP_CHANGED: the ranges must
 * be read again. Borrows job. */
enum mp_code mp_publish_now(struct mp_pipeline *p, struct mp_job *job, struct mp_err *err);
void mp_job_free(struct mp_pipeline *p, struct mp_job *job);

/* bind.c; publish's thread */

/* Resolves and evolves the job's tables and seals its batches. MP_CHANGED: a column was refused,
 * the ranges must be read again. */
enum mp_code mp_bind(struct mp_publish *publish, struct mp_err *err);

/* own_columns.c */

/* Columns of the quarantine table, in order. */
enum {
    MP_Q_TOPIC,
    MP_Q_PARTITION,
    MP_Q_OFFSET,
    MP_Q_TIMESTAMP,
    MP_Q_REASON,
    MP_Q_KEY,
    MP_Q_PAYLOAD,
    MP_QUARANTINE_COLUMNS
};
extern const struct mp_pin mp_quarantine_columns[MP_QUARANTINE_COLUMNS];

/* Whether the table of that name (ours, or the quarantine's) takes what the pipeline fills itself;
 * the table's own name may be spelled otherwise. */
enum mp_code mp_own_columns_fit(const struct mp_pipeline *p, const struct mp_lake_table *table,
                                struct mp_str name, struct mp_err *err);

/* book.c; publish's thread */

/* Writes the plan of the job beside the offsets of all its partitions. */
enum mp_code mp_book_plan(struct mp_publish *publish, struct mp_err *err);
/* Moves the offsets behind the job. */
enum mp_code mp_book_record(struct mp_publish *publish, struct mp_err *err);
/* The same where the lake has done so: best effort. */
void mp_book_mirror(struct mp_publish *publish);

/* orphans.c; publish's thread */

/* Removes the uploaded objects of a job that will not be committed; best effort. */
void mp_orphans_remove(struct mp_publish *publish);
/* Counts and names the uploaded objects of a job that no table will name. */
void mp_orphans_tell(struct mp_publish *publish, const char *reason);

/* encode.c; publish's thread */

/* Cuts the sealed batch and encodes every column on the workers, then puts the files together. */
enum mp_code mp_encode(struct mp_pipeline *p, struct mp_job *job, struct mp_job_table *table,
                       struct mp_err *err);
void mp_encode_free(struct mp_pipeline *p, struct mp_job_table *table);

/* status.c; any thread */

/* Logs a fault that will be retried, and keeps it for the status page. */
void mp_status_fault(struct mp_pipeline *p, const struct mp_err *err, const char *what,
                     uint32_t wait_ms);
void mp_status_flushed(const struct mp_publish *publish, double seconds);

/* Bytes of the pool that hold columns, not compressed chunks. */
size_t mp_status_column_bytes(struct mp_pipeline *p);
/* Sets the age of a partition's newest published record; -1: there is none. */
void mp_status_freshness(struct mp_pipeline *p, int32_t partition, int64_t published_ms);

/* Sets a partition's lag: from what is published to the end of the log; high -1: not known. */
void mp_status_lag(struct mp_pipeline *p, int32_t partition, int64_t high, int64_t published);

/* pipeline.c */

/* The partition of that id, if it is ours, else NULL; ingest's thread, or under the lock. */
struct mp_part *mp_pipeline_part(struct mp_pipeline *p, int32_t id);
/* Sets the marker by which our offsets in the source's store are known: epoch and next offset. */
void mp_pipeline_mark(struct mp_arena *arena, struct mp_source_offset *offset, int64_t epoch);
/* Waits, in short steps, unless stop was called twice. False: it was. Serves no one. */
bool mp_pipeline_wait(struct mp_pipeline *p, uint32_t ms);
/* Copies the live table for new batches; NULL: there is none. */
void mp_pipeline_set_live(struct mp_pipeline *p, const struct mp_lake_table *table);

/* New batches rescue the values of this name. False: they do so already. */
bool mp_pipeline_refuse(struct mp_pipeline *p, struct mp_str name);

/* The start has found the world as the settings want it. What is otherwise from then on (a view in
 * the table's place, another password) is no setting's fault but a refusal. Gives the code. */
static inline enum mp_code mp_pipeline_later(enum mp_code code, struct mp_err *err)
{
    if (code != MP_BAD_CONFIG)
        return code;
    err->code = MP_REFUSED;
    return MP_REFUSED;
}

static inline bool mp_pipeline_stopping(struct mp_pipeline *p)
{
    return atomic_load(&p->stops) > 0;
}

#endif
