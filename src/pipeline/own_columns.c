/* pipeline/own_columns.c - the columns that the pipeline fills itself, where they are there
 * already.
 *
 * A value of a payload has the rescued column to go to; these have none. So where somebody made
 * them with another type, that is an operator's to mend, and told before a record is read.
 */
#include "pipeline/pipeline_priv.h"

const struct mp_pin mp_quarantine_columns[MP_QUARANTINE_COLUMNS] = {
    [MP_Q_TOPIC] = {MP_STR_INIT("topic"), {.id = MP_TYPE_VARCHAR}},
    [MP_Q_PARTITION] = {MP_STR_INIT("partition"), {.id = MP_TYPE_INT32}},
    [MP_Q_OFFSET] = {MP_STR_INIT("offset"), {.id = MP_TYPE_INT64}},
    [MP_Q_TIMESTAMP] = {MP_STR_INIT("timestamp"), {.id = MP_TYPE_TIMESTAMPTZ}},
    [MP_Q_REASON] = {MP_STR_INIT("reason"), {.id = MP_TYPE_VARCHAR}},
    [MP_Q_KEY] = {MP_STR_INIT("key"), {.id = MP_TYPE_BLOB}},
    [MP_Q_PAYLOAD] = {MP_STR_INIT("payload"), {.id = MP_TYPE_BLOB}},
};

/* text: any type of text will do. */
static enum mp_code fits(const struct mp_schema *live, const struct mp_pin *own, bool text,
                         const char *setting, struct mp_err *err)
{
    char is[24], wanted[24];

    for (uint32_t i = 0; i < live->column_count; i++) {
        const struct mp_live_column *column = &live->columns[i];

        if (!mp_str_eq_fold(column->name, own->name) || mp_type_eq(column->type, own->type) ||
            (text && mp_type_is_text(column->type)))
            continue;
        mp_type_ducklake_name(column->type, is);
        mp_type_ducklake_name(own->type, wanted);
        return mp_err_set(err, MP_REFUSED, "%s: column \"%.*s\" is there as %s and has to be %s",
                          setting, MP_STR_ARG(column->name), is, wanted);
    }
    return MP_OK;
}

enum mp_code mp_pipeline_rescued_fits(const struct mp_schema *live, struct mp_str name,
                                      struct mp_err *err)
{
    struct mp_pin own = {name, MP_TYPE(VARCHAR)};

    return name.size ? fits(live, &own, true, "MILLPOND_RESCUED_COLUMN", err) : MP_OK;
}

enum mp_code mp_pipeline_quarantine_fits(const struct mp_schema *live, struct mp_err *err)
{
    enum mp_code code = MP_OK;

    for (int i = 0; i < MP_QUARANTINE_COLUMNS && !code; i++)
        code = fits(live, &mp_quarantine_columns[i], false, "MILLPOND_QUARANTINE_TABLE", err);
    return code;
}

enum mp_code mp_own_columns_fit(const struct mp_pipeline *p, const struct mp_lake_table *table,
                                struct mp_str name, struct mp_err *err)
{
    enum mp_code code =
        mp_str_eq(name, p->options.table)
            ? mp_pipeline_rescued_fits(&table->schema, p->options.rescued_column, err)
            : mp_pipeline_quarantine_fits(&table->schema, err);

    if (code)
        mp_err_add(err, "table %.*s", MP_STR_ARG(name));
    return code;
}
