/* lake/hoglake/table.c - a table as it is now, kept for a while.
 *
 * A steady flush asks the catalog for nothing but its commit, so a reading is good for a quarter of
 * the snapshot retention: the commit's read_snapshot, which is the snapshot of the reading, stays
 * well within what the server keeps. What the server refuses ends that at once (G3).
 *
 * Two readings of a table may be there: the one that is lent, and a fresher one that append made.
 *
 * After  the millpond sheet, 11.3 (reconciling, shape cache).
 */
#include "lake/hoglake/priv.h"

#include "base/mem.h"

#include <assert.h>

#define RETENTION_S_ASSUMED 1800

void mp_hog_table_free(struct mp_hog_table *table)
{
    if (!table)
        return;
    mp_hog_table_free(table->fresher);
    mp_arena_fini(&table->arena);
    mp_free(table);
}

/* --- reading --- */

static bool is_partition_source(const struct mp_schema *schema, int32_t field_id)
{
    for (uint32_t i = 0; i < schema->partition_count; i++)
        if (schema->partition[i].field_id == field_id)
            return true;
    return false;
}

static enum mp_code fill(struct mp_hog_table *table, const struct mp_wire_table *wire,
                         struct mp_err *err)
{
    struct mp_lake_table *view = &table->view;
    struct mp_live_column *columns =
        mp_arena_take(&table->arena, sizeof(*columns) * (wire->column_count + 1));
    const char *wrong;
    char canonical[37];

    if (!mp_wire_uuid_read(wire->uuid, canonical)) /* used as it is, in keys and plans */
        return mp_err_set(err, MP_REFUSED, "the table's table_uuid \"%.*s\" is none",
                          wire->uuid.size < 80 ? (int)wire->uuid.size : 80, wire->uuid.data);
    view->schema_name = mp_arena_str(&table->arena, wire->namespace_name);
    view->name = mp_arena_str(&table->arena, wire->name);
    view->uuid = mp_arena_str(&table->arena, wire->uuid);
    view->snapshot = wire->read_snapshot_id;
    if (!mp_hog_layout_read(&table->arena, wire, &view->schema, &wrong))
        return mp_err_set(err, MP_BAD_CONFIG, "the table's %s has a part that is not known here",
                          wrong);
    for (uint32_t i = 0; i < wire->column_count; i++) {
        const struct mp_wire_column *column = &wire->columns[i];

        if (column->field_id <= 0 || column->field_id > INT32_MAX)
            return mp_err_set(err, MP_REFUSED, "column \"%.*s\" has the field id %lld",
                              MP_STR_ARG(column->name), (long long)column->field_id);
        columns[i] = (struct mp_live_column){
            .name = mp_arena_str(&table->arena, column->name),
            .field_id = (int32_t)column->field_id,
            .required = !column->nullable,
            .partition_source = is_partition_source(&view->schema, (int32_t)column->field_id),
        };
        (void)mp_hog_type_of_name(column->type, column->type_params, &columns[i].type);
    }
    view->schema.columns = columns;
    view->schema.column_count = wire->column_count;
    return MP_OK;
}

enum mp_code mp_hog_table_of_answer(struct mp_hoglake *lake, uint64_t read_us, struct mp_err *err,
                                    struct mp_hog_table **ret)
{
    struct mp_hog_table *table = mp_alloc(sizeof(*table));
    struct mp_wire_reader reader = {.arena = &table->arena, .answer = true};
    struct mp_wire_table wire;
    enum mp_code code;

    mp_arena_init(&table->arena, 4096);
    table->read_us = read_us;
    mp_wire_table_read(&reader, lake->answer.json, &wire);
    code = reader.failed ? mp_hog_malformed(lake, &reader, err) : fill(table, &wire, err);
    if (code)
        mp_hog_table_free(table);
    else
        *ret = table;
    return code;
}

enum mp_code mp_hog_table_get(struct mp_hoglake *lake, struct mp_str name, struct mp_err *err,
                              struct mp_hog_table **ret)
{
    uint64_t read_us = mp_now_mono_us(lake->env);
    enum mp_code code;

    mp_hog_url(lake, MP_HOG_TABLE, name, "?totals=false");
    code = mp_hog_ask(lake, "GET", (struct mp_str){NULL, 0}, err);
    if (code)
        return code;
    if (mp_hog_says_absent(&lake->answer))
        return mp_hog_absent(lake, err);
    if (!mp_hog_fine(&lake->answer))
        return mp_hog_refusal(lake, err);
    return mp_hog_table_of_answer(lake, read_us, err, ret);
}

/* --- keeping --- */

static struct mp_hog_table **place_of(struct mp_hoglake *lake, struct mp_str name)
{
    struct mp_hog_table **place = &lake->tables;

    while (*place && !mp_str_eq((*place)->view.name, name))
        place = &(*place)->next;
    return place;
}

struct mp_hog_table *mp_hog_table_kept(struct mp_hoglake *lake, struct mp_str name)
{
    struct mp_hog_table *table = *place_of(lake, name);

    return table && table->fresher ? table->fresher : table;
}

/* Takes the place of an earlier reading. */
static const struct mp_lake_table *keep(struct mp_hoglake *lake, struct mp_hog_table **table)
{
    struct mp_hog_table *fresh = *table, **place = place_of(lake, fresh->view.name), *old = *place;

    if (old == fresh) {
        *table = NULL;
        return &fresh->view;
    }
    fresh->next = old ? old->next : NULL;
    *place = fresh;
    mp_hog_table_free(old);
    *table = NULL;
    return &fresh->view;
}

void mp_hog_table_keep_fresher(struct mp_hoglake *lake, struct mp_hog_table **table)
{
    struct mp_hog_table *fresh = *table, *lent = *place_of(lake, fresh->view.name);

    *table = NULL;
    if (!lent) {
        (void)keep(lake, &fresh);
        return;
    }
    mp_hog_table_free(lent->fresher);
    lent->fresher = fresh;
}

void mp_hog_distrust(struct mp_hoglake *lake)
{
    for (struct mp_hog_table *table = lake->tables; table; table = table->next) {
        table->stale = true;
        if (table->fresher)
            table->fresher->stale = true;
    }
}

/* How long a reading is good: asked once. */
static uint64_t ttl_us(struct mp_hoglake *lake)
{
    struct mp_wire_reader reader = {.arena = &lake->scratch, .answer = true};
    struct mp_wire_options options = {.has_retention = true, .retention_s = RETENTION_S_ASSUMED};
    struct mp_err err;

    if (lake->ttl_known)
        return lake->ttl_us;
    lake->ttl_known = true;
    mp_hog_url(lake, MP_HOG_CATALOG, (struct mp_str){NULL, 0}, "/options");
    if (!mp_hog_ask(lake, "GET", (struct mp_str){NULL, 0}, &err) && mp_hog_fine(&lake->answer))
        mp_wire_options_read(&reader, lake->answer.json, &options);
    if (reader.failed || (options.has_retention && options.retention_s <= 0))
        options =
            (struct mp_wire_options){.has_retention = true, .retention_s = RETENTION_S_ASSUMED};
    lake->ttl_us = UINT64_MAX;
    if (options.has_retention && (uint64_t)options.retention_s < UINT64_MAX / 1000000)
        lake->ttl_us = (uint64_t)options.retention_s * 1000000 / 4;
    return lake->ttl_us;
}

const struct mp_lake_table *mp_hog_table_lend(struct mp_hoglake *lake, struct mp_hog_table **table)
{
    const struct mp_lake_table *view = keep(lake, table);

    (void)ttl_us(lake); /* now, and not between a batch and its commit */
    return view;
}

static bool still_good(struct mp_hoglake *lake, const struct mp_hog_table *table)
{
    return !table->stale && mp_now_mono_us(lake->env) - table->read_us < ttl_us(lake);
}

/* --- held to its layout --- */

const struct mp_hog_layout *mp_hog_layout_of(const struct mp_hoglake *lake, struct mp_str table)
{
    return mp_str_eq(table, lake->table) ? &lake->layout : NULL;
}

static void warn(struct mp_hog_table *table, unsigned declared, struct mp_str missing_sort)
{
    const char *text = "";

    if (declared)
        text =
            mp_arena_printf(&table->arena, "table %.*s had no %s: declared as the settings ask",
                            MP_STR_ARG(table->view.name),
                            declared == MP_HOG_DECLARE_PARTITION ? "partition spec"
                            : declared == MP_HOG_DECLARE_SORT    ? "sort order"
                                                              : "partition spec and no sort order");
    if (missing_sort.data)
        text = mp_arena_printf(&table->arena,
                               "%s%stable %.*s has no column \"%.*s\" of MILLPOND_SORT_BY: no sort "
                               "order is asked of it",
                               text, *text ? "; " : "", MP_STR_ARG(table->view.name),
                               MP_STR_ARG(missing_sort));
    table->view.warning = mp_str_c(text);
}

/* One alter with what the table lacks. MP_CONFLICT: somebody else alters it; read it again. */
static enum mp_code declare(struct mp_hoglake *lake, struct mp_str name,
                            const struct mp_hog_declaration *lacks, struct mp_err *err,
                            struct mp_hog_table **ret)
{
    struct mp_buf ops = MP_BUF_INIT(16 << 20);
    uint64_t read_us = mp_now_mono_us(lake->env);
    enum mp_code code;

    mp_buf_add_byte(&ops, '[');
    if (lacks->what & MP_HOG_DECLARE_PARTITION) {
        mp_buf_add_c(&ops, "{\"op\":\"set_partition_spec\",\"fields\":");
        mp_wire_partition_fields_print(&ops, lacks->partition.fields, lacks->partition.field_count);
        mp_buf_add_byte(&ops, '}');
    }
    if (lacks->what & MP_HOG_DECLARE_SORT) {
        mp_buf_add_c(&ops, ops.size > 1 ? "," : "");
        mp_buf_add_c(&ops, "{\"op\":\"set_sort_order\",\"sort_fields\":");
        mp_wire_sort_fields_print(&ops, lacks->sort.fields, lacks->sort.field_count);
        mp_buf_add_byte(&ops, '}');
    }
    mp_buf_add_byte(&ops, ']');
    code = mp_hog_alter(lake, name, mp_buf_str(&ops), err);
    mp_buf_fini(&ops);
    if (!code && !mp_hog_fine(&lake->answer))
        code = mp_hog_refusal(lake, err);
    return code ? code : mp_hog_table_of_answer(lake, read_us, err, ret);
}

enum mp_code mp_hog_reconcile(struct mp_hoglake *lake, const struct mp_hog_layout *want,
                              struct mp_hog_table **table, struct mp_err *err)
{
    struct mp_hog_table *now = NULL;
    struct mp_hog_declaration lacks, still;
    enum mp_code code;

    code = mp_hog_layout_compare(&lake->scratch, want, &(*table)->view.schema, err, &lacks);
    if (code || !lacks.what || lake->read_only) {
        if (!code)
            warn(*table, 0, lacks.missing_sort);
        return code;
    }
    code = declare(lake, (*table)->view.name, &lacks, err, &now);
    if (code == MP_CONFLICT) /* another writer declares it too: what is there counts */
        code = mp_hog_table_get(lake, (*table)->view.name, err, &now);
    if (code)
        return code;
    code = mp_hog_layout_compare(&lake->scratch, want, &now->view.schema, err, &still);
    if (!code && still.what)
        code = mp_err_set(err, MP_BAD_CONFIG, "the %s was declared and the table does not have it",
                          still.what & MP_HOG_DECLARE_PARTITION ? "partition spec" : "sort order");
    if (code) {
        mp_hog_table_free(now);
        return code;
    }
    warn(now, lacks.what, lacks.missing_sort);
    mp_hog_table_free(*table);
    *table = now;
    return MP_OK;
}

enum mp_code mp_hog_resolve(struct mp_lake *self, struct mp_str name, struct mp_err *err,
                            const struct mp_lake_table **ret)
{
    struct mp_hoglake *lake = (struct mp_hoglake *)self;
    struct mp_hog_table *table = *place_of(lake, name);
    const struct mp_hog_layout *want = mp_hog_layout_of(lake, name);
    enum mp_code code;

    mp_arena_reset(&lake->scratch);
    if (table && table->fresher) {
        struct mp_hog_table *fresher = table->fresher;

        table->fresher = NULL;
        (void)keep(lake, &fresher);
        table = *place_of(lake, name);
    }
    if (table && still_good(lake, table)) {
        *ret = &table->view;
        return MP_OK;
    }
    table = NULL;
    code = mp_hog_table_get(lake, name, err, &table);
    if (!code && want)
        code = mp_hog_reconcile(lake, want, &table, err);
    if (code) {
        mp_err_add(err, "table %.*s.%.*s", MP_STR_ARG(lake->namespace_name), MP_STR_ARG(name));
        mp_hog_table_free(table);
        return code;
    }
    *ret = mp_hog_table_lend(lake, &table);
    return MP_OK;
}
