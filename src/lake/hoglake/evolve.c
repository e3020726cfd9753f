/* lake/hoglake/evolve.c - columns added, types promoted.
 *
 * All new columns go into one alter. Where that is refused the table is read again: what others
 * have added meanwhile is there, and each column still missing is asked for alone. One that is
 * refused alone is told so (ret_refused): the caller keeps its values elsewhere.
 *
 * After  the millpond sheet, 11.5; the hoglake sheet, 8.4 (promotions) and 12.4 (alter).
 */
#include "lake/hoglake/priv.h"

#include <assert.h>

#define REQUEST_BYTES_MAX ((size_t)64 << 20)

enum mp_code mp_hog_alter(struct mp_hoglake *lake, struct mp_str table, struct mp_str ops,
                          struct mp_err *err)
{
    struct mp_buf body = MP_BUF_INIT(REQUEST_BYTES_MAX);
    enum mp_code code;

    assert(!lake->read_only);
    mp_buf_add_byte(&body, '{');
    mp_wire_member(&body, "ops");
    mp_buf_add_str(&body, ops);
    mp_buf_add_byte(&body, '}');
    mp_hog_url(lake, MP_HOG_TABLE, table, "/alter");
    code = mp_hog_ask(lake, "POST", mp_buf_str(&body), err);
    mp_buf_fini(&body);
    return code;
}

static bool has(const struct mp_hog_table *table, struct mp_str name)
{
    return mp_schema_by_name(&table->view.schema, name) != NULL;
}

/* A refusal of what was asked for, not of who asks or of everything: another request may fare
 * better. Only the catalog's own counts: what a column is refused for is rescued ever after. */
static bool of_this_alone(const struct mp_hog_answer *answer)
{
    unsigned status = answer->status;

    return mp_hog_own_words(answer) && status >= 400 && status < 500 && !mp_hog_passing(status) &&
           status != 401 && status != 403 && status != 404;
}

/* Alters the table and takes its new shape from the answer. *ret_refused: it will not have it;
 * err says why. */
static enum mp_code alter(struct mp_hoglake *lake, struct mp_hog_table **table, struct mp_str ops,
                          struct mp_err *err, bool *ret_refused)
{
    struct mp_hog_table *now;
    uint64_t read_us = mp_now_mono_us(lake->env);
    enum mp_code code = mp_hog_alter(lake, (*table)->view.name, ops, err);

    *ret_refused = false;
    if (code)
        return code;
    if (!mp_hog_fine(&lake->answer)) {
        code = mp_hog_refusal(lake, err);
        *ret_refused = of_this_alone(&lake->answer);
        if (!mp_hog_passing(lake->answer.status))
            mp_hog_distrust(lake); /* G3 */
        return *ret_refused ? MP_OK : code;
    }
    code = mp_hog_table_of_answer(lake, read_us, err, &now);
    if (code)
        return code;
    mp_hog_table_free(*table);
    *table = now;
    return MP_OK;
}

/* The table was there a moment ago: whoever asks again makes it anew. */
static enum mp_code gone(struct mp_err *err)
{
    err->code = MP_CONFLICT;
    err->retriable = true;
    return MP_CONFLICT;
}

static enum mp_code reread(struct mp_hoglake *lake, struct mp_hog_table **table, struct mp_err *err)
{
    struct mp_hog_table *now;
    enum mp_code code = mp_hog_table_get(lake, (*table)->view.name, err, &now);

    if (code == MP_NOT_FOUND)
        code = gone(err);
    if (code)
        return code;
    mp_hog_table_free(*table);
    *table = now;
    return MP_OK;
}

static void print_add(struct mp_hoglake *lake, const struct mp_lake_new_column *add,
                      struct mp_buf *ops)
{
    struct mp_wire_column column = mp_hog_column(&lake->scratch, add->name, add->type);
    struct mp_buf list = MP_BUF_INIT(1 << 20);

    mp_wire_columns_print(&list, &column, 1); /* without its brackets */
    mp_buf_add_c(ops, ops->size > 1 ? "," : "");
    mp_buf_add_c(ops, "{\"op\":\"add_column\",\"column\":");
    mp_buf_add(ops, list.data + 1, list.size - 2);
    mp_buf_add_byte(ops, '}');
    mp_buf_fini(&list);
}

/* All that are missing, in one alter. */
static enum mp_code add_together(struct mp_hoglake *lake, const struct mp_lake_evolution *want,
                                 struct mp_hog_table **table, struct mp_err *err, bool *ret_refused)
{
    struct mp_buf ops = MP_BUF_INIT(REQUEST_BYTES_MAX);
    enum mp_code code = MP_OK;

    *ret_refused = false;
    mp_buf_add_byte(&ops, '[');
    for (uint32_t i = 0; i < want->add_count; i++)
        if (!has(*table, want->add[i].name))
            print_add(lake, &want->add[i], &ops);
    if (ops.size > 1) {
        mp_buf_add_byte(&ops, ']');
        code = alter(lake, table, mp_buf_str(&ops), err, ret_refused);
    }
    mp_buf_fini(&ops);
    return code;
}

/* Each that is missing, alone. */
static enum mp_code add_alone(struct mp_hoglake *lake, const struct mp_lake_evolution *want,
                              struct mp_hog_table **table, struct mp_err *err)
{
    enum mp_code code = reread(lake, table, err);
    struct mp_err why;

    for (uint32_t i = 0; i < want->add_count && !code; i++) {
        struct mp_lake_evolution one = {.add = &want->add[i], .add_count = 1};
        bool refused;

        code = add_together(lake, &one, table, err, &refused);
        if (code || !refused)
            continue;
        why = *err;
        code = reread(lake, table, err);
        if (code || has(*table, want->add[i].name))
            continue; /* another writer won */
        *err = why;
        if (want->ret_refused)
            want->ret_refused[i] = true;
        else
            code = MP_REFUSED;
    }
    return code;
}

/* Narrow types the server lets grow; one that it refuses stays as it is. */
static enum mp_code promote(struct mp_hoglake *lake, const struct mp_lake_evolution *want,
                            struct mp_hog_table **table, struct mp_err *err)
{
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < want->promote_count && !code; i++) {
        const struct mp_live_column *column =
            mp_schema_by_id(&(*table)->view.schema, want->promote[i].field_id);
        struct mp_buf ops = MP_BUF_INIT(1 << 20);
        bool refused;

        if (!column || mp_type_eq(column->type, want->promote[i].type))
            continue;
        mp_buf_add_c(&ops, "[{\"op\":\"promote_column\"");
        mp_wire_member_text(&ops, "name", column->name);
        mp_wire_member_text(&ops, "to", mp_str_c(mp_hog_type_name(want->promote[i].type)));
        mp_buf_add_c(&ops, "}]");
        code = alter(lake, table, mp_buf_str(&ops), err, &refused);
        mp_buf_fini(&ops);
        if (!code && refused)
            code = reread(lake, table, err);
    }
    return code;
}

/* A reading of our own, held to its layout; what is lent stays as it is until we are done. */
static enum mp_code start_from(struct mp_hoglake *lake, struct mp_str name,
                               const struct mp_hog_layout *layout, struct mp_err *err,
                               struct mp_hog_table **ret)
{
    struct mp_hog_table *table;
    enum mp_code code = mp_hog_table_get(lake, name, err, &table);

    if (code == MP_NOT_FOUND)
        code = gone(err);
    if (code)
        return code;
    if (mp_hog_layout_of(lake, name))
        code = mp_hog_reconcile(lake, layout, &table, err);
    if (code)
        mp_hog_table_free(table);
    else
        *ret = table;
    return code;
}

static bool wants_nothing(const struct mp_hog_table *table, const struct mp_lake_evolution *want)
{
    for (uint32_t i = 0; i < want->add_count; i++)
        if (!has(table, want->add[i].name))
            return false;
    return !want->promote_count;
}

/* The layout of the settings for the table they are about, else as create asks. */
static struct mp_hog_layout layout_for(const struct mp_hoglake *lake, struct mp_str name,
                                       const struct mp_lake_create *create)
{
    const struct mp_hog_layout *set = mp_hog_layout_of(lake, name);

    return set ? *set
               : (struct mp_hog_layout){create->partition_by, create->sort_by,
                                        create->sort_by_count};
}

enum mp_code mp_hog_evolve(struct mp_lake *self, struct mp_str name,
                           const struct mp_lake_evolution *want,
                           const struct mp_lake_create *create, struct mp_err *err,
                           const struct mp_lake_table **ret)
{
    struct mp_hoglake *lake = (struct mp_hoglake *)self;
    const struct mp_lake_table *live;
    struct mp_hog_table *table = NULL;
    struct mp_hog_layout layout;
    struct mp_err unasked;
    bool refused = false, made;
    enum mp_code code;

    if (!err)
        err = &unasked; /* why a column was refused is needed here */
    for (uint32_t i = 0; i < want->widen_count; i++)
        want->ret_widened[i] = false; /* a long cannot become a double */
    code = mp_hog_resolve(self, name, err, &live);
    if (code && code != MP_NOT_FOUND)
        return code;
    if (!code && wants_nothing((const struct mp_hog_table *)live, want)) {
        *ret = live;
        return MP_OK;
    }
    made = code == MP_NOT_FOUND;
    assert(!lake->read_only);
    mp_arena_reset(&lake->scratch);
    layout = layout_for(lake, name, create);
    code = made ? mp_hog_create(lake, name, want->add, want->add_count, &layout, err, &table)
                : start_from(lake, name, &layout, err, &table);
    if (!code && !made)
        code = add_together(lake, want, &table, err, &refused);
    if (!code && refused)
        code = add_alone(lake, want, &table, err);
    if (!code)
        code = promote(lake, want, &table, err);
    if (!code && mp_hog_layout_of(lake, name))
        code = mp_hog_reconcile(lake, &layout, &table, err);
    if (code) {
        mp_err_add(err, "table %.*s.%.*s", MP_STR_ARG(lake->namespace_name), MP_STR_ARG(name));
        mp_hog_table_free(table);
        return code;
    }
    *ret = mp_hog_table_lend(lake, &table);
    return MP_OK;
}
