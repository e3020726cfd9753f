/* pipeline/publish.c - a sealed batch on its way into the lake, stage by stage.
 *
 *     bind    the table gets what the batch needs, and the batch is sealed against it (bind.c)
 *     encode  see encode.c; nothing here can fail for a reason outside
 *     upload  objects that are not there yet
 *     plan    what is about to be committed, beside the source's offsets (book.c)
 *     commit  files and ranges in one transaction
 *     record  the source's offsets move behind it (book.c)
 *     mirror  the same where the lake keeps the offsets
 *
 * Where the lake keeps the offsets there is no plan and no record; elsewhere no mirror, and a job
 * without a file is only recorded.
 *
 * P1  an object is complete in the store before the lake hears of it
 * P2  a stage that is done is not done again: after an outage the ladder goes on where it was
 * P3  after an answered refusal of the commit our objects are removed; after an unknown outcome
 *     the lake has settled it before it answers (lake.h)
 * P4  a flush has a time and a number of attempts of its own: when they are used up it has failed,
 *     which is told, and what it held is tried again for as long as an outage may last
 */
#include "base/mem.h"
#include "pipeline/pipeline_priv.h"

#include <assert.h>
#include <inttypes.h>

static const char logger[] = "millpond.publish";

enum stage {
    STAGE_BIND,
    STAGE_ENCODE,
    STAGE_UPLOAD,
    STAGE_PLAN,
    STAGE_COMMIT,
    STAGE_RECORD,
    STAGES
};

/* Publish lives: the loop may tell so. */
static void moved(struct mp_pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    p->publish_moved_us = mp_now_mono_us(p->world.env);
    pthread_mutex_unlock(&p->lock);
}

/* Lists the files of all tables as objects and as the lake takes them. */
static void list_files(struct mp_publish *publish)
{
    uint32_t at = 0;

    for (int t = 0; t < MP_JOB_TABLES; t++)
        publish->file_count += publish->job->tables[t].cut.count;
    publish->objects = mp_alloc_array(publish->file_count, sizeof(*publish->objects));
    publish->files = mp_alloc_array(publish->file_count, sizeof(*publish->files));
    publish->uploaded = mp_alloc_array(publish->file_count, sizeof(*publish->uploaded));
    for (int t = 0; t < MP_JOB_TABLES; t++) {
        const struct mp_job_table *table = &publish->job->tables[t];

        for (uint32_t i = 0; i < table->cut.count; i++, at++) {
            const struct mp_parquet_file *file = table->files[i];

            publish->objects[at] = (struct mp_store_object){
                .key = mp_buf_str(&table->keys[i]),
                .pieces = file->pieces,
                .piece_count = file->piece_count,
                .bytes = file->bytes,
            };
            publish->files[at] = (struct mp_lake_file){
                .key = mp_buf_str(&table->keys[i]),
                .rows = file->rows,
                .bytes = file->bytes,
                .footer_bytes = file->footer_bytes,
                .stats = table->stats + (size_t)i * table->stats_count,
                .stats_count = table->stats_count,
                .partition = table->cut.files[i].values,
            };
        }
    }
}

/* Keeps what is to be counted of values and names that were not as their column wants them, since
 * the batch goes before it is known that it counts. */
static void note_odd(struct mp_job *job, const struct mp_batch *batch)
{
    struct mp_misfit misfit;
    const struct mp_str *names;
    uint32_t count = 0;

    for (int i = 0; i < MP_RESCUE_REASONS; i++)
        job->rescued[i] = mp_batch_rescued(batch, (enum mp_rescue)i);
    job->variant_keys = mp_batch_variant_keys(batch);
    for (uint32_t at = 0; mp_batch_misfit(batch, &at, &misfit);)
        count++;
    job->misfits = mp_arena_take(&job->arena, (count + 1) * sizeof(*job->misfits));
    for (uint32_t at = 0; mp_batch_misfit(batch, &at, &misfit);) {
        misfit.name = mp_arena_str(&job->arena, misfit.name);
        job->misfits[job->misfit_count++] = misfit;
    }
    job->refused_name_count = mp_batch_refused_names(batch, &names);
    for (uint32_t i = 0; i < job->refused_name_count && i < MP_BATCH_NAMES_KEPT; i++)
        job->refused_names[i] = mp_arena_str(&job->arena, names[i]);
}

/* Names the commit, where it has a name. */
static void name_commit(struct mp_publish *publish)
{
    struct mp_pipeline *p = publish->p;
    struct mp_job *job = publish->job;
    const struct mp_lake_table *table = mp_job_keyed_table(job);

    if (!p->lake->driver->offsets_in_lake && table && !job->settles)
        p->lake->driver->commit_key(p->lake, table, job->ranges, job->range_count, job->key);
}

static enum mp_code stage_encode(struct mp_publish *publish, struct mp_err *err)
{
    struct mp_pipeline *p = publish->p;
    uint64_t began = mp_now_mono_us(p->world.env);
    enum mp_code code = MP_OK;

    name_commit(publish);
    for (int i = 0; i < MP_JOB_TABLES && !code; i++) {
        struct mp_job_table *table = &publish->job->tables[i];

        if (!table->batch)
            continue;
        mp_metric_add(p->world.metrics, MP_M_BYTES, "raw", (double)mp_batch_bytes(table->batch));
        code = mp_encode(p, publish->job, table, err);
        if (i == MP_JOB_MAIN)
            note_odd(publish->job, table->batch);
        /* all that is needed of the rows is in the files now */
        mp_batch_free(table->batch);
        table->batch = NULL;
    }
    if (code)
        return code;
    list_files(publish);
    mp_metric_observe(p->world.metrics, MP_M_ENCODE_DURATION, NULL,
                      (double)(mp_now_mono_us(p->world.env) - began) / 1e6);
    return MP_OK;
}

static enum mp_code stage_upload(struct mp_publish *publish, struct mp_err *err)
{
    struct mp_pipeline *p = publish->p;
    struct mp_store_object *missing = mp_alloc_array(publish->file_count, sizeof(*missing));
    uint32_t *place = mp_alloc_array(publish->file_count, sizeof(*place)), count = 0;
    bool *done = mp_alloc_array(publish->file_count, sizeof(*done));
    uint64_t began = mp_now_mono_us(p->world.env);
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < publish->file_count; i++)
        if (!publish->uploaded[i]) {
            place[count] = i;
            missing[count++] = publish->objects[i];
        }
    if (count)
        code = p->store->driver->put(p->store, missing, count, done, err);
    for (uint32_t i = 0; i < count; i++)
        publish->uploaded[place[i]] = done[i];
    if (count) {
        mp_health_part(p->world.health, MP_HEALTH_STORE, code && err ? err->text : NULL);
        mp_metric_observe(p->world.metrics, MP_M_UPLOAD_DURATION, NULL,
                          (double)(mp_now_mono_us(p->world.env) - began) / 1e6);
    }
    mp_free(missing);
    mp_free(place);
    mp_free(done);
    return code;
}

/* Refused, but an earlier attempt was never answered: had that landed, reading its ranges again
 * would double them. Under lake_lock. */
static enum mp_code look_for_earlier(struct mp_publish *publish, struct mp_err *err)
{
    struct mp_pipeline *p = publish->p;
    bool published = false;
    struct mp_err why;
    enum mp_code code;

    code = p->lake->driver->published(p->lake, mp_str_c(publish->job->key), &why, &published);
    if (code || published)
        publish->result.orphaned = NULL;
    if (code && err)
        *err = why;
    return code ? code : published ? MP_OK : MP_CHANGED;
}

static enum mp_code stage_commit(struct mp_publish *publish, struct mp_err *err)
{
    struct mp_pipeline *p = publish->p;
    struct mp_job *job = publish->job;
    struct mp_lake_append appends[MP_JOB_TABLES];
    struct mp_lake_commit commit = {
        .appends = appends,
        .ranges = job->ranges,
        .range_count = job->range_count,
        .trigger = mp_str_c(job->trigger),
        .key = mp_str_c(job->key),
        .arrow_bytes = job->arrow_bytes,
    };
    uint64_t began = mp_now_mono_us(p->world.env);
    uint32_t first = 0;
    enum mp_code code;

    for (int i = 0; i < MP_JOB_TABLES; i++) {
        const struct mp_job_table *table = &job->tables[i];

        if (table->table)
            appends[commit.append_count++] = (struct mp_lake_append){
                .table = table->table,
                .files = publish->files + first,
                .file_count = table->cut.count,
            };
        first += table->cut.count;
    }
    pthread_mutex_lock(&p->lake_lock);
    code = p->lake->driver->append(p->lake, &commit, err, &publish->result);
    if (code == MP_CHANGED && publish->unsure && job->key[0])
        code = look_for_earlier(publish, err);
    pthread_mutex_unlock(&p->lake_lock);
    if (code && err->retriable)
        publish->unsure = true;
    if (publish->result.orphaned)
        mp_orphans_tell(publish, publish->result.orphaned);
    if (publish->result.orphaned && code == MP_CHANGED)
        mp_metric_add(p->world.metrics, MP_M_ERRORS,
                      strcmp(publish->result.orphaned, "commit_refused") == 0
                          ? "hoglake_commit_contention"
                          : "write_retry",
                      1);
    if (!code)
        mp_metric_observe(p->world.metrics, MP_M_COMMIT_DURATION, NULL,
                          (double)(mp_now_mono_us(p->world.env) - began) / 1e6);
    return code;
}

static const char *error_type(const struct mp_pipeline *p, const struct mp_err *err)
{
    if (err->code != MP_CONFLICT)
        return "write_retry";
    return p->lake->driver->offsets_in_lake ? "ducklake_commit_contention"
                                            : "hoglake_commit_contention";
}

static const struct {
    enum mp_code (*run)(struct mp_publish *publish, struct mp_err *err);
    const char *name;
    int part; /* of the health that it shows in; -1: none, or told by itself */
} stages[STAGES] = {
    [STAGE_BIND] = {mp_bind, "prepare the table", MP_HEALTH_LAKE},
    [STAGE_ENCODE] = {stage_encode, "encode", -1},
    [STAGE_UPLOAD] = {stage_upload, "upload", -1},
    [STAGE_PLAN] = {mp_book_plan, "write the plan down", MP_HEALTH_SOURCE},
    [STAGE_COMMIT] = {stage_commit, "commit", MP_HEALTH_LAKE},
    [STAGE_RECORD] = {mp_book_record, "record the offsets", MP_HEALTH_SOURCE},
};

static bool applies(const struct mp_publish *publish, unsigned stage)
{
    bool in_lake = publish->p->lake->driver->offsets_in_lake;

    if (stage == STAGE_PLAN)
        return !in_lake && !publish->job->settles && publish->file_count;
    if (stage == STAGE_COMMIT)
        return in_lake || publish->file_count;
    if (stage == STAGE_RECORD)
        return !in_lake && !publish->job->settles;
    return true;
}

/* False: the pipeline is to stop. A flush is finished unless that is asked for twice. */
static bool wait_to_retry(struct mp_publish *publish, uint32_t wait_ms)
{
    struct mp_pipeline *p = publish->p;

    if (!publish->job->settles)
        return mp_pipeline_wait(p, wait_ms);
    for (uint32_t waited = 0; waited < wait_ms; waited += 100)
        if (mp_pipeline_stopping(p) || !mp_pipeline_wait(p, 100))
            return false;
    return true;
}

/* What becomes of the uploaded objects when the job ends at this stage with a fault. */
static void leave_objects(struct mp_publish *publish, unsigned stage, enum mp_code code,
                          bool retriable)
{
    struct mp_pipeline *p = publish->p;

    if (p->lake->driver->offsets_in_lake) {
        if (code == MP_CHANGED || code == MP_FENCED)
            mp_orphans_remove(publish);
    } else if (stage < STAGE_COMMIT) {
        mp_orphans_tell(publish, code == MP_FENCED ? "superseded"
                                 : retriable       ? "shutdown"
                                                   : "prepare_failed");
    } else if (stage == STAGE_COMMIT && code != MP_CHANGED && !publish->result.orphaned) {
        mp_log(p->world.log, MP_LOG_WARN, logger,
               "whether commit %s has landed is not known; the next process settles it",
               publish->job->key);
    }
}

/* The attempts of one stage until it is done, or what ended it. */
static enum mp_code run_stage(struct mp_publish *publish, unsigned stage, struct mp_err *err)
{
    struct mp_pipeline *p = publish->p;
    uint32_t wait_ms;
    enum mp_code code;

    for (;;) {
        code = stages[stage].run(publish, err);
        if (stage != STAGE_BIND) /* which may make the table */
            code = mp_pipeline_later(code, err);
        moved(p);
        if (stages[stage].part == MP_HEALTH_LAKE ||
            (stages[stage].part >= 0 && (code || publish->retry.attempts)))
            mp_health_part(p->world.health, (enum mp_health_part)stages[stage].part,
                           code && err->retriable ? err->text : NULL);
        if (!code) {
            mp_retry_over(&publish->retry);
            mp_metric_set(p->world.metrics, MP_M_OUTAGE, NULL, 0);
            return MP_OK;
        }
        if (code == MP_CHANGED || code == MP_FENCED)
            return code;
        mp_metric_add(p->world.metrics, MP_M_ERRORS, error_type(p, err), 1);
        if (!mp_retry_again(&publish->retry, err, &wait_ms)) {
            mp_err_add(err, "%s", stages[stage].name);
            return code;
        }
        mp_metric_set(p->world.metrics, MP_M_OUTAGE, NULL,
                      (double)mp_retry_outage_ms(&publish->retry) / 1000);
        mp_status_fault(p, err, stages[stage].name, wait_ms);
        if (mp_retry_round_over(&publish->retry)) { /* P4 */
            mp_metric_add(p->world.metrics, MP_M_ERRORS, "flush_failed", 1);
            mp_log(p->world.log, MP_LOG_ERROR, logger,
                   "the flush has failed: no more of its attempts or of its time are left; what it "
                   "holds is kept and tried again");
        }
        if (!wait_to_retry(publish, wait_ms))
            return code;
    }
}

static enum mp_code run_stages(struct mp_publish *publish, struct mp_err *err)
{
    enum mp_code code = MP_OK;

    for (unsigned stage = STAGE_BIND; stage < STAGES && !code; stage++) {
        if (applies(publish, stage))
            code = run_stage(publish, stage, err);
        if (code)
            leave_objects(publish, stage, code, err->retriable);
    }
    return code;
}

/* After MP_CHANGED: what is there now is what the next batch is made against. */
static enum mp_code look_again(struct mp_publish *publish, struct mp_err *err)
{
    struct mp_pipeline *p = publish->p;
    const struct mp_lake_table *table = NULL;
    uint32_t wait_ms;
    enum mp_code code;

    for (;;) {
        pthread_mutex_lock(&p->lake_lock);
        code = p->lake->driver->resolve(p->lake, p->options.table, err, &table);
        pthread_mutex_unlock(&p->lake_lock);
        code = mp_pipeline_later(code, err);
        moved(p);
        if (!code || code == MP_NOT_FOUND) {
            mp_pipeline_set_live(p, code ? NULL : table);
            return MP_OK;
        }
        if (!mp_retry_again(&publish->retry, err, &wait_ms))
            return code;
        mp_status_fault(p, err, "look at the table", wait_ms);
        if (!mp_pipeline_wait(p, wait_ms))
            return code;
    }
}

static void answer(struct mp_pipeline *p, enum mp_verdict verdict, const struct mp_err *err)
{
    pthread_mutex_lock(&p->lock);
    p->verdict = verdict;
    if (err)
        p->failure = *err;
    if (verdict == MP_VERDICT_NONE)
        p->job = NULL;
    p->job_bound = false;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static struct mp_publish publish_of(struct mp_pipeline *p, struct mp_job *job)
{
    uint64_t now = mp_now_mono_us(p->world.env);

    return (struct mp_publish){
        .p = p,
        .job = job,
        .retry = {.env = p->world.env,
                  .outage_ms_max = p->options.outage_ms_max,
                  .round_attempts_max = p->options.attempts_max,
                  .round_ms_max = p->options.flush_ms_max,
                  .round_since_us = now},
        .began_us = now,
        .began_wall_us = mp_now_wall_us(p->world.env),
    };
}

static void publish_fini(struct mp_publish *publish)
{
    mp_free(publish->objects);
    mp_free(publish->files);
    mp_free(publish->uploaded);
}

/* Counts and tells what was published. */
static void tell_published(const struct mp_publish *publish)
{
    struct mp_pipeline *p = publish->p;
    const struct mp_lake_result *result = &publish->result;

    if (result->already_published)
        mp_log(p->world.log, MP_LOG_WARN, logger,
               "an earlier attempt of this commit had landed; nothing is written twice");
    if (!p->lake->driver->offsets_in_lake && publish->file_count) {
        mp_metric_add(p->world.metrics, MP_M_HOGLAKE_FILES_WRITTEN, NULL,
                      result->already_published ? 0 : publish->file_count);
        if (result->already_published || result->replayed)
            mp_metric_add(p->world.metrics, MP_M_HOGLAKE_COMMIT_REPLAYS,
                          result->already_published ? "already_published" : "replayed", 1);
    }
    mp_status_flushed(publish, (double)(mp_now_mono_us(p->world.env) - publish->began_us) / 1e6);
}

static void publish_job(struct mp_pipeline *p, struct mp_job *job)
{
    struct mp_publish publish = publish_of(p, job);
    struct mp_err err = {0};
    enum mp_code code = run_stages(&publish, &err);

    if (!code) {
        if (p->lake->driver->offsets_in_lake)
            mp_book_mirror(&publish);
        tell_published(&publish);
        answer(p, MP_VERDICT_NONE, NULL); /* ingest looks at the job until then */
        mp_job_free(p, job);
    } else if (code == MP_CHANGED) {
        mp_metric_add(p->world.metrics, MP_M_ERRORS, "schema", 1);
        mp_log(p->world.log, MP_LOG_WARN, logger,
               "the table changed under the batch (%s); its ranges are read again", err.text);
        code = look_again(&publish, &err);
        answer(p, code ? MP_VERDICT_FAILED : MP_VERDICT_REWIND, &err);
    } else {
        if (code == MP_FENCED)
            mp_metric_add(p->world.metrics, MP_M_FENCED, NULL, 1);
        answer(p, MP_VERDICT_FAILED, &err);
    }
    publish_fini(&publish);
}

enum mp_code mp_publish_now(struct mp_pipeline *p, struct mp_job *job, struct mp_err *err)
{
    struct mp_publish publish = publish_of(p, job);
    enum mp_code code = run_stages(&publish, err), looked;

    if (!code)
        tell_published(&publish);
    if (code == MP_CHANGED) {
        looked = look_again(&publish, err);
        code = looked ? looked : MP_CHANGED;
    }
    publish_fini(&publish);
    return code;
}

void *mp_publish_main(void *pipeline)
{
    struct mp_pipeline *p = pipeline;
    struct mp_job *job;

    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->ending && (!p->job || p->verdict != MP_VERDICT_NONE))
            pthread_cond_wait(&p->changed, &p->lock);
        if (p->ending)
            break;
        job = p->job;
        p->publish_moved_us = mp_now_mono_us(p->world.env);
        pthread_mutex_unlock(&p->lock);
        publish_job(p, job);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void mp_job_free(struct mp_pipeline *p, struct mp_job *job)
{
    if (!job)
        return;
    for (int i = 0; i < MP_JOB_TABLES; i++) {
        mp_encode_free(p, &job->tables[i]);
        mp_batch_free(job->tables[i].batch);
    }
    mp_arena_fini(&job->arena);
    mp_free(job->ranges);
    mp_free(job->offsets);
    mp_free(job->newest_ms);
    mp_free(job);
}
