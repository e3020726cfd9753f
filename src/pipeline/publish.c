/* pipeline/publish.c - a sealed batch on its way into the lake, stage by stage.
 *
 *     bind    resolve the table, evolve it until it has what the batch needs, seal the batch
 *     encode  see encode.c; nothing here can fail for a reason outside
 *     upload  objects that are not there yet
 *     commit  files and ranges in one transaction
 *     mirror  the same offsets to the source's own store
 *
 * P1  an object is complete in the store before the lake hears of it
 * P2  a stage that is done is not done again: after an outage the ladder goes on where it was
 * P3  after an answered refusal of the commit our objects are removed; after an unknown outcome
 *     the lake has settled it before it answers (lake.h)
 */
#include "base/mem.h"
#include "pipeline/pipeline_priv.h"

#include <assert.h>
#include <inttypes.h>

static const char logger[] = "millpond.publish";

enum stage { STAGE_BIND, STAGE_ENCODE, STAGE_UPLOAD, STAGE_COMMIT, STAGES };

struct publish {
    struct mp_pipeline *p;
    struct mp_job *job;
    struct mp_retry retry;
    struct mp_store_object *objects;
    struct mp_lake_file *files;
    bool *uploaded;
    uint32_t file_count;
    struct mp_lake_result result;
    uint64_t began_us;
};

/* Publish lives: the loop may tell so. */
static void moved(struct mp_pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    p->publish_moved_us = mp_now_mono_us(p->world.env);
    pthread_mutex_unlock(&p->lock);
}

/* Asks the table for what the batch needs; what it answers may need more (a fraction that is not
 * widened needs the rescued column), so it is asked again. live: the table as it is (NULL: it is
 * made, and no column counts as added), then as it has become. */
static enum mp_code evolve(struct mp_pipeline *p, struct mp_job_table *table,
                           const struct mp_batch_plan *plan, struct mp_err *err,
                           const struct mp_lake_table **live)
{
    bool made = !*live;
    struct mp_lake_evolution evolution = {
        .widen = plan->widen, .widen_count = plan->widen_count, .add_count = plan->add_count};
    struct mp_lake_new_column *add = mp_alloc_array(plan->add_count, sizeof(*add));
    bool *widened = mp_alloc_array(plan->widen_count, sizeof(*widened));
    uint32_t widenings = 0;
    enum mp_code code;

    for (uint32_t i = 0; i < plan->add_count; i++)
        add[i] = (struct mp_lake_new_column){plan->add[i].name, plan->add[i].type};
    evolution.add = add;
    evolution.ret_widened = widened;
    code = p->lake->driver->evolve(p->lake, table->name, &evolution, table->create, err, live);
    if (code) {
        mp_metric_add(p->world.metrics, MP_M_ERRORS, "schema", 1);
        goto out;
    }
    for (uint32_t i = 0; i < plan->widen_count; i++) {
        widenings += widened[i];
        if (!widened[i])
            mp_batch_keep_bigint(table->batch, plan->widen[i]);
    }
    mp_metric_add(p->world.metrics, MP_M_SCHEMA_COLUMNS_ADDED, NULL, made ? 0 : plan->add_count);
    mp_metric_add(p->world.metrics, MP_M_SCHEMA_COLUMNS_WIDENED, NULL, widenings);
    mp_log(p->world.log, MP_LOG_INFO, logger, "table %.*s: %u columns added, %u widened",
           MP_STR_ARG(table->name), plan->add_count, widenings);
out:
    mp_free(add);
    mp_free(widened);
    return code;
}

static enum mp_code bind_table(struct mp_pipeline *p, struct mp_job_table *table,
                               struct mp_err *err)
{
    const struct mp_lake_table *live = NULL;
    struct mp_batch_plan plan;
    enum mp_code code;

    code = p->lake->driver->resolve(p->lake, table->name, err, &live);
    if (code && code != MP_NOT_FOUND)
        return code;
    if (code == MP_NOT_FOUND)
        live = NULL;
    for (unsigned round = 0; round < 8; round++) {
        code = mp_batch_plan(table->batch, live ? &live->schema : NULL, err, &plan);
        if (code)
            return code;
        if (live && !plan.add_count && !plan.widen_count) {
            mp_batch_seal(table->batch, &live->schema, mp_now_wall_us(p->world.env));
            table->table = live;
            return MP_OK;
        }
        code = evolve(p, table, &plan, err, &live);
        if (code)
            return code;
    }
    return mp_err_set(err, MP_CONFLICT, "table %.*s does not come to rest: others change it",
                      MP_STR_ARG(table->name));
}

/* The batch to come may be made: against the table as it is now. */
static void tell_bound(struct mp_pipeline *p, const struct mp_lake_table *table)
{
    if (table)
        mp_pipeline_set_live(p, table);
    pthread_mutex_lock(&p->lock);
    p->job_bound = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static enum mp_code stage_bind(struct publish *publish, struct mp_err *err)
{
    struct mp_pipeline *p = publish->p;
    struct mp_job *job = publish->job;
    enum mp_code code = MP_OK;

    pthread_mutex_lock(&p->lake_lock);
    for (int i = 0; i < MP_JOB_TABLES && !code; i++)
        if (job->tables[i].batch && !job->tables[i].table)
            code = bind_table(p, &job->tables[i], err);
    pthread_mutex_unlock(&p->lake_lock);
    if (!code)
        tell_bound(p, job->tables[MP_JOB_MAIN].table);
    return code;
}

/* Lists the files of all tables as objects and as the lake takes them. */
static void list_files(struct publish *publish)
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

static enum mp_code stage_encode(struct publish *publish, struct mp_err *err)
{
    struct mp_pipeline *p = publish->p;
    uint64_t began = mp_now_mono_us(p->world.env);
    enum mp_code code = MP_OK;

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

static enum mp_code stage_upload(struct publish *publish, struct mp_err *err)
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

static enum mp_code stage_commit(struct publish *publish, struct mp_err *err)
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
    pthread_mutex_unlock(&p->lake_lock);
    if (!code)
        mp_metric_observe(p->world.metrics, MP_M_COMMIT_DURATION, NULL,
                          (double)(mp_now_mono_us(p->world.env) - began) / 1e6);
    return code;
}

/* The source's own store follows the lake; it is a mirror, so a failure is told and left. */
static void mirror(struct publish *publish)
{
    struct mp_pipeline *p = publish->p;
    struct mp_err err;

    for (unsigned attempt = 0; attempt < 3; attempt++) {
        if (!p->source->driver->commit(p->source, publish->job->offsets, publish->job->range_count,
                                       &err))
            return;
        mp_metric_add(p->world.metrics, MP_M_ERRORS, "offset_commit", 1);
        mp_log(p->world.log, MP_LOG_WARN, logger,
               "Offset commit failed (attempt %u/3): %s; the lake holds the offsets", attempt + 1,
               err.text);
        if (!mp_pipeline_wait(p, 500 << attempt))
            return;
    }
}

/* P3. Best effort: what stays is found by the lake's own sweep of orphans. */
static void remove_objects(struct publish *publish)
{
    struct mp_pipeline *p = publish->p;
    uint32_t removed = 0, uploaded = 0;
    struct mp_err err;

    for (uint32_t i = 0; i < publish->file_count; i++) {
        if (!publish->uploaded[i])
            continue;
        uploaded++;
        removed += !p->store->driver->remove(p->store, publish->objects[i].key, &err);
    }
    if (uploaded)
        mp_log(p->world.log, MP_LOG_WARN, logger, "%u of %u uploaded files were removed again",
               removed, uploaded);
}

static const char *error_type(const struct mp_err *err)
{
    return err->code == MP_CONFLICT ? "ducklake_commit_contention" : "write_retry";
}

static enum mp_code run_stages(struct publish *publish, struct mp_err *err)
{
    static enum mp_code (*const stages[STAGES])(struct publish *, struct mp_err *) = {
        [STAGE_BIND] = stage_bind,
        [STAGE_ENCODE] = stage_encode,
        [STAGE_UPLOAD] = stage_upload,
        [STAGE_COMMIT] = stage_commit,
    };
    static const char *const names[STAGES] = {"prepare the table", "encode", "upload", "commit"};
    struct mp_pipeline *p = publish->p;
    unsigned stage = STAGE_BIND;
    uint32_t wait_ms;

    while (stage < STAGES) {
        enum mp_code code = stages[stage](publish, err);

        moved(p);
        if (stage == STAGE_BIND || stage == STAGE_COMMIT)
            mp_health_part(p->world.health, MP_HEALTH_LAKE,
                           code && err->retriable ? err->text : NULL);
        if (!code) {
            mp_retry_over(&publish->retry);
            mp_metric_set(p->world.metrics, MP_M_OUTAGE, NULL, 0);
            stage++;
            continue;
        }
        if (code == MP_CHANGED || code == MP_FENCED) {
            remove_objects(publish);
            return code;
        }
        mp_metric_add(p->world.metrics, MP_M_ERRORS, error_type(err), 1);
        if (!mp_retry_again(&publish->retry, err, &wait_ms)) {
            mp_err_add(err, "%s", names[stage]);
            return code;
        }
        mp_metric_set(p->world.metrics, MP_M_OUTAGE, NULL,
                      (double)mp_retry_outage_ms(&publish->retry) / 1000);
        mp_status_fault(p, err, names[stage], wait_ms);
        if (!mp_pipeline_wait(p, wait_ms))
            return code;
    }
    return MP_OK;
}

/* After MP_CHANGED: what is there now is what the next batch is made against. */
static enum mp_code look_again(struct publish *publish, struct mp_err *err)
{
    struct mp_pipeline *p = publish->p;
    const struct mp_lake_table *table = NULL;
    uint32_t wait_ms;
    enum mp_code code;

    for (;;) {
        pthread_mutex_lock(&p->lake_lock);
        code = p->lake->driver->resolve(p->lake, p->options.table, err, &table);
        pthread_mutex_unlock(&p->lake_lock);
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

static void publish_job(struct mp_pipeline *p, struct mp_job *job)
{
    struct publish publish = {
        .p = p,
        .job = job,
        .retry = {.env = p->world.env, .outage_ms_max = p->options.outage_ms_max},
        .began_us = mp_now_mono_us(p->world.env),
    };
    struct mp_err err = {0};
    enum mp_code code = run_stages(&publish, &err);

    if (!code) {
        if (publish.result.already_published)
            mp_log(p->world.log, MP_LOG_WARN, logger,
                   "an earlier attempt of this commit had landed; nothing is written twice");
        mirror(&publish);
        mp_status_flushed(p, job, publish.result.snapshot, publish.file_count,
                          (double)(mp_now_mono_us(p->world.env) - publish.began_us) / 1e6);
        mp_job_free(p, job);
        answer(p, MP_VERDICT_NONE, NULL);
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
    mp_free(publish.objects);
    mp_free(publish.files);
    mp_free(publish.uploaded);
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
