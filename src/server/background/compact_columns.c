/* server/background/compact_columns.c - the table's columns in a new file. See compact_priv.h.
 *
 * A new file has the live columns, in their order, with their names and types of now, as pyhoglake
 * writes them: a uint32 is a long, a timestamp_s has milliseconds. Columns that were dropped are
 * left out: no reader of a snapshot from now on sees them, and older snapshots have the old files.
 */
#include "server/background/compact_priv.h"

#include <assert.h>

static const uint8_t types[MP_HOG_TYPES] = {
    [MP_HOG_BOOLEAN] = MP_TYPE_BOOL,
    [MP_HOG_INT8] = MP_TYPE_INT8,
    [MP_HOG_INT16] = MP_TYPE_INT16,
    [MP_HOG_INT] = MP_TYPE_INT32,
    [MP_HOG_LONG] = MP_TYPE_INT64,
    [MP_HOG_UINT8] = MP_TYPE_UINT8,
    [MP_HOG_UINT16] = MP_TYPE_UINT16,
    [MP_HOG_UINT32] = MP_TYPE_INT64,
    [MP_HOG_UINT64] = MP_TYPE_UINT64,
    [MP_HOG_FLOAT] = MP_TYPE_FLOAT,
    [MP_HOG_DOUBLE] = MP_TYPE_DOUBLE,
    [MP_HOG_DECIMAL] = MP_TYPE_DECIMAL,
    [MP_HOG_DATE] = MP_TYPE_DATE,
    [MP_HOG_TIME] = MP_TYPE_TIME,
    [MP_HOG_TIMESTAMP_S] = MP_TYPE_TIMESTAMP_MS,
    [MP_HOG_TIMESTAMP_MS] = MP_TYPE_TIMESTAMP_MS,
    [MP_HOG_TIMESTAMP] = MP_TYPE_TIMESTAMP,
    [MP_HOG_TIMESTAMP_NS] = MP_TYPE_TIMESTAMP_NS,
    [MP_HOG_TIMESTAMPTZ] = MP_TYPE_TIMESTAMPTZ,
    [MP_HOG_STRING] = MP_TYPE_VARCHAR,
    [MP_HOG_JSON] = MP_TYPE_JSON,
    [MP_HOG_UUID] = MP_TYPE_UUID,
    [MP_HOG_BINARY] = MP_TYPE_BLOB,
    [MP_HOG_VARIANT] = MP_TYPE_VARIANT,
    [MP_HOG_LIST] = MP_TYPE_NONE, /* nested */
    [MP_HOG_STRUCT] = MP_TYPE_NONE,
    [MP_HOG_MAP] = MP_TYPE_NONE,
};

static void columns_of(struct mp_arena *arena, const struct mp_wire_column *columns, uint32_t count,
                       struct mp_parquet_merge_column *ret);

static void column_of(struct mp_arena *arena, const struct mp_wire_column *column,
                      struct mp_parquet_merge_column *ret)
{
    enum mp_hog_type of = mp_column_type(column);
    struct mp_parquet_merge_column *children =
        mp_arena_take(arena, column->child_count * sizeof(*children));
    struct mp_type type = {.id = types[of]};

    if (type.id == MP_TYPE_DECIMAL) {
        type.precision = (uint8_t)mp_column_precision(column);
        type.scale = (uint8_t)mp_column_scale(column);
    }
    columns_of(arena, column->children, column->child_count, children);
    *ret = (struct mp_parquet_merge_column){
        .name = column->name,
        .type = type,
        .field_id = (int32_t)column->field_id,
        .annotation = of == MP_HOG_LIST  ? MP_PARQUET_LIST
                      : of == MP_HOG_MAP ? MP_PARQUET_MAP
                                         : MP_PARQUET_PLAIN,
        .child_count = column->child_count,
        .children = children,
    };
}

/* The depth of calls is that of a table's columns. */
static void columns_of(struct mp_arena *arena, const struct mp_wire_column *columns, uint32_t count,
                       struct mp_parquet_merge_column *ret)
{
    for (uint32_t i = 0; i < count; i++)
        column_of(arena, &columns[i], &ret[i]);
}

enum mp_code mp_compact_columns(struct mp_arena *arena, const struct mp_table *table,
                                struct mp_err *err, struct mp_parquet_merge_options *ret)
{
    const struct mp_wire_sort_spec *order = &table->sort;
    struct mp_parquet_merge_column *columns =
        mp_arena_take(arena, (table->columns.count + 1) * sizeof(*columns));
    struct mp_sort_field *sort = mp_arena_take(arena, (order->field_count + 1) * sizeof(*sort));

    for (uint32_t i = 0; i < table->columns.count; i++)
        if (mp_str_eq(table->columns.items[i].name, MP_ROW_ID_NAME))
            return mp_err_set(err, MP_REFUSED, "a column has the name of the row ids");
    columns_of(arena, table->columns.items, table->columns.count, columns);
    for (uint32_t i = 0; i < order->field_count; i++)
        sort[i] = (struct mp_sort_field){
            .field_id = (int32_t)order->fields[i].source_field_id,
            .descending = mp_str_eq(order->fields[i].direction, MP_STR("desc")),
            .nulls_first = mp_str_eq(order->fields[i].null_order, MP_STR("nulls_first")),
        };
    ret->columns = columns;
    ret->column_count = table->columns.count;
    ret->sort = sort;
    ret->sort_count = order->field_count;
    return MP_OK;
}

/* ---- where a file has them ------------------------------------------------------------------- */

/* The field id of a node of the root; 0: it has none and nothing tells which it was. */
static int64_t field_of(const struct mp_parquet_node *node, struct mp_columns then)
{
    if (node->has_field_id)
        return node->field_id;
    for (uint32_t i = 0; i < then.count; i++)
        if (mp_str_eq(then.items[i].name, node->name))
            return then.items[i].field_id;
    return 0;
}

static enum mp_code place_column(const struct mp_parquet_merge_column *column,
                                 const struct mp_parquet_footer *footer, uint32_t at,
                                 struct mp_err *err, int32_t *ret)
{
    const struct mp_parquet_node *node = &footer->nodes[at];
    bool nested = mp_parquet_merge_nested(column);

    if (*ret != MP_MERGE_NO_LEAF || nested != (node->leaf < 0))
        return mp_err_set(err, MP_REFUSED, "field id %d is %s", column->field_id,
                          *ret != MP_MERGE_NO_LEAF ? "there twice"
                          : nested                 ? "no group"
                                                   : "a group");
    *ret = nested ? (int32_t)at : node->leaf;
    return MP_OK;
}

static enum mp_code place(const struct mp_parquet_merge_options *options,
                          const struct mp_parquet_footer *footer, uint32_t node, int64_t field_id,
                          int32_t *leaves, struct mp_err *err)
{
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < options->column_count && !code; i++)
        if (options->columns[i].field_id == field_id)
            code = place_column(&options->columns[i], footer, node, err, &leaves[i]);
    return code;
}

enum mp_code mp_compact_leaves(struct mp_arena *arena,
                               const struct mp_parquet_merge_options *options,
                               struct mp_columns then, struct mp_err *err,
                               struct mp_compact_file *file)
{
    const struct mp_parquet_footer *footer = file->footer;
    int32_t *leaves = mp_arena_take(arena, (options->column_count + 1) * sizeof(*leaves));
    int32_t row_ids = MP_MERGE_NO_LEAF;
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < options->column_count; i++)
        leaves[i] = MP_MERGE_NO_LEAF;
    for (uint32_t i = 1; i < footer->node_count && !code; i = footer->nodes[i].end) {
        const struct mp_parquet_node *node = &footer->nodes[i];
        int64_t field_id = field_of(node, then);

        if (!field_id)
            code = mp_err_set(
                err, MP_REFUSED, "column \"%.*s\" has no field id, and no column had that name",
                (int)(node->name.size < 100 ? node->name.size : 100), node->name.data);
        else if (field_id == MP_ROW_ID_FIELD_ID)
            row_ids = node->leaf;
        else
            code = place(options, footer, i, field_id, leaves, err);
    }
    file->leaves = leaves;
    file->row_id_leaf = file->explicit_row_ids ? row_ids : MP_MERGE_NO_LEAF;
    return code;
}
