/* pipeline/bind.c - the first stage of publish: the table, until it has what the batch needs, and
 * the batch, sealed against it.
 *
 * What the table will not have is rescued: the batch keeps a value it cannot widen for, and the
 * ranges are read again for a column that is refused. A NOT NULL column that rows have no value for
 * may be NULL from then on: a table that holds what it forbids can be neither merged nor updated.
 */
#include "base/mem.h"
#include "pipeline/pipeline_priv.h"

static const char logger[] = "millpond.publish";

/* The table will not have this column: from now on its values are rescued, which the records have
 * to be read again for. The pipeline's own columns have no such way out. */
static enum mp_code refuse(struct mp_pipeline *p, const struct mp_job_table *table,
                           struct mp_str name, struct mp_err *err)
{
    bool own = mp_str_eq(name, MP_INSERTED_AT) || mp_str_eq(name, p->options.rescued_column) ||
               !mp_str_eq(table->name, p->options.table);

    if (own || !mp_pipeline_refuse(p, name)) {
        mp_metric_add(p->world.metrics, MP_M_ERRORS, "schema", 1);
        mp_err_add(err, "table %.*s will not have column \"%.*s\"", MP_STR_ARG(table->name),
                   MP_STR_ARG(name));
        err->retriable = false;
        return err->code = MP_REFUSED;
    }
    mp_log(p->world.log, MP_LOG_WARN, logger,
           "table %.*s will not have column \"%.*s\": its values are rescued (%s)",
           MP_STR_ARG(table->name), MP_STR_ARG(name), err->text);
    err->retriable = false;
    return err->code = MP_CHANGED;
}

/* How many of the promotions that were asked for have been made. */
static uint32_t promoted(const struct mp_batch_plan *plan, const struct mp_lake_table *live)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < plan->promote_count; i++) {
        const struct mp_live_column *column =
            mp_schema_by_id(&live->schema, plan->promote[i].field_id);

        count += column && mp_type_eq(column->type, plan->promote[i].type);
    }
    return count;
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
        .widen = plan->widen,
        .widen_count = plan->widen_count,
        .add_count = plan->add_count,
        .promote = plan->promote,
        .promote_count = plan->promote_count,
    };
    struct mp_lake_new_column *add = mp_alloc_array(plan->add_count, sizeof(*add));
    bool *widened = mp_alloc_array(plan->widen_count, sizeof(*widened));
    bool *refused = mp_alloc_array(plan->add_count, sizeof(*refused));
    uint32_t widenings = 0, added = plan->add_count;
    enum mp_code code;

    for (uint32_t i = 0; i < plan->add_count; i++)
        add[i] = (struct mp_lake_new_column){plan->add[i].name, plan->add[i].type};
    evolution.add = add;
    evolution.ret_widened = widened;
    evolution.ret_refused = refused;
    code = p->lake->driver->evolve(p->lake, table->name, &evolution, table->create, err, live);
    if (!made) /* a table that cannot be made as the settings say is another matter */
        code = mp_pipeline_later(code, err);
    if (code) {
        mp_metric_add(p->world.metrics, MP_M_ERRORS, "schema", 1);
        goto out;
    }
    for (uint32_t i = 0; i < plan->widen_count; i++) {
        widenings += widened[i];
        if (!widened[i])
            mp_batch_keep_bigint(table->batch, plan->widen[i]);
    }
    widenings += promoted(plan, *live);
    for (uint32_t i = 0; i < plan->add_count && code != MP_REFUSED; i++) {
        if (refused[i])
            code = refuse(p, table, plan->add[i].name, err);
        added -= refused[i];
    }
    mp_metric_add(p->world.metrics, MP_M_SCHEMA_COLUMNS_ADDED, NULL, made ? 0 : added);
    mp_metric_add(p->world.metrics, MP_M_SCHEMA_COLUMNS_WIDENED, NULL, widenings);
    mp_log(p->world.log, MP_LOG_INFO, logger, "table %.*s: %u columns added, %u widened",
           MP_STR_ARG(table->name), added, widenings);
    if ((*live)->warning.size && made)
        mp_log(p->world.log, MP_LOG_WARN, logger, "%.*s", MP_STR_ARG((*live)->warning));
out:
    mp_free(add);
    mp_free(widened);
    mp_free(refused);
    return code;
}

/* Companions that this batch does without. */
static void tell_refused(struct mp_pipeline *p, const struct mp_job_table *table)
{
    uint32_t count;
    const struct mp_companion *first = mp_batch_companion_refused(table->batch, &count);

    if (!first)
        return;
    mp_metric_add(p->world.metrics, MP_M_ERRORS, "schema", count);
    mp_log(p->world.log, MP_LOG_WARN, logger,
           "table %.*s: \"%.*s\" is no VARIANT column and cannot be made one; %u companions are"
           " left out of a flush of %u rows",
           MP_STR_ARG(table->name), MP_STR_ARG(first->name), count, mp_batch_rows(table->batch));
}

/* NOT NULL columns that this batch has no value for in some row; ret has room for all columns. */
static uint32_t lacking(const struct mp_job_table *table, int32_t *ret)
{
    const struct mp_schema *schema = &table->table->schema;
    uint32_t rows = mp_batch_rows(table->batch), column_count, count = 0;
    const struct mp_column *columns = mp_batch_columns(table->batch, &column_count);

    for (uint32_t i = 0; i < schema->column_count; i++) {
        const struct mp_live_column *live = &schema->columns[i];
        uint32_t values = 0;

        for (uint32_t c = 0; live->required && c < column_count; c++)
            if (columns[c].field_id == live->field_id)
                values = columns[c].values;
        if (live->required && values < rows)
            ret[count++] = live->field_id;
    }
    return count;
}

/* Lets NOT NULL columns that the sealed batch needs NULL in take it: MP_CHANGED, and the ranges are
 * read again for the table as it is then. Where the table keeps a column as it is, that is told. */
static enum mp_code allow_nulls(struct mp_pipeline *p, struct mp_job_table *table,
                                struct mp_err *err)
{
    int32_t *ids = mp_alloc_array(table->table->schema.column_count + 1, sizeof(*ids));
    struct mp_lake_evolution evolution = {.relax = ids, .relax_count = lacking(table, ids)};
    const struct mp_lake_table *live = table->table;
    uint32_t relaxed = 0;
    enum mp_code code = MP_OK;

    if (evolution.relax_count)
        code = mp_pipeline_later(
            p->lake->driver->evolve(p->lake, table->name, &evolution, table->create, err, &live),
            err);
    if (code) {
        mp_metric_add(p->world.metrics, MP_M_ERRORS, "schema", 1);
        goto out;
    }
    for (uint32_t i = 0; i < evolution.relax_count; i++) {
        const struct mp_live_column *column = mp_schema_by_id(&live->schema, ids[i]);
        bool kept = column && column->required;

        relaxed += !kept;
        if (column)
            mp_log(p->world.log, MP_LOG_WARN, logger,
                   kept
                       ? "table %.*s: column \"%.*s\" is NOT NULL and stays so, but rows without a "
                         "value for it are appended"
                       : "table %.*s: column \"%.*s\" may be NULL from now on: there are rows "
                         "without a value for it",
                   MP_STR_ARG(table->name), MP_STR_ARG(column->name));
    }
    if (relaxed) {
        mp_err_set(err, MP_CHANGED, "table %.*s: columns may be NULL now", MP_STR_ARG(table->name));
        code = MP_CHANGED;
    }
out:
    mp_free(ids);
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
        return mp_pipeline_later(code, err);
    if (code == MP_NOT_FOUND)
        live = NULL;
    for (unsigned round = 0; round < 8; round++) {
        code = live ? mp_own_columns_fit(p, live, table->name, err) : MP_OK;
        if (code)
            return code;
        code = mp_batch_plan(table->batch, live ? &live->schema : NULL, err, &plan);
        if (code)
            return code;
        if (round)
            plan.promote_count = 0; /* asked once: the table may say no */
        if (live && !plan.add_count && !plan.widen_count && !plan.promote_count) {
            tell_refused(p, table);
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

enum mp_code mp_bind(struct mp_publish *publish, struct mp_err *err)
{
    struct mp_pipeline *p = publish->p;
    struct mp_job *job = publish->job;
    enum mp_code code = MP_OK;

    pthread_mutex_lock(&p->lake_lock);
    for (int i = 0; i < MP_JOB_TABLES && !code; i++) {
        struct mp_job_table *table = &job->tables[i];

        if (table->batch && !table->table)
            code = bind_table(p, table, err);
        if (table->batch && !code)
            code = allow_nulls(p, table, err);
    }
    pthread_mutex_unlock(&p->lake_lock);
    if (!code)
        tell_bound(p, job->tables[MP_JOB_MAIN].table);
    return code;
}
