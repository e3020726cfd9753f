/* server/tables.c - see tables.h. */
#include "server/tables.h"

#include <assert.h>
#include <stdlib.h>

#define VISIBLE(row)                                                                               \
    row ".begin_snapshot <= $2 AND (" row ".end_snapshot IS NULL OR $2 < " row ".end_snapshot)"

/* --- where a read looks --- */

static enum mp_code read_pins(struct mp_call *call, int64_t *snapshot, bool *has_snapshot,
                              int64_t *time_us, bool *has_time)
{
    struct mp_str text = mp_call_query(call, "at_timestamp");
    enum mp_code code = mp_call_query_int(call, "snapshot", snapshot, has_snapshot);

    if (code)
        return code;
    if (text.data) {
        *has_time = true;
        if (!mp_wire_instant_read(text, time_us))
            return mp_refuse_bad(call, "at_timestamp must be an ISO 8601 instant with an offset");
    }
    return MP_OK;
}

/* reads: at the snapshot that the query asks for, and all that follows at one moment. */
static enum mp_code resolve(struct mp_call *call, bool reads, struct mp_at *ret)
{
    int64_t snapshot = 0, time_us = 0;
    bool has_snapshot = false, has_time = false;
    uint32_t number;
    enum mp_code code =
        reads ? read_pins(call, &snapshot, &has_snapshot, &time_us, &has_time) : MP_OK;

    if (!code)
        code = mp_call_sql(call);
    if (code)
        return code;
    if (reads)
        mp_sql_say(call->sql, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    number = MP_SQL(call->sql,
                    "SELECT catalog_id, data_path, last_snapshot_id, earliest_snapshot_id,"
                    " schema_version, CASE WHEN $2 IS NOT NULL THEN"
                    " (SELECT s.snapshot_id FROM hog_snapshot s WHERE s.catalog_id = c.catalog_id"
                    " AND s.snapshot_time_us <= $2 AND s.snapshot_id >= c.earliest_snapshot_id"
                    " ORDER BY s.snapshot_time_us DESC LIMIT 1) END"
                    " FROM hog_catalog c WHERE name = $1",
                    mp_v_text(call->parts[0]), mp_v_int_or_null(has_time, time_us));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (!mp_sql_rows(call->sql, number))
        return mp_refuse_missing(call, "catalog \"%.*s\" does not exist",
                                 MP_STR_ARG(call->parts[0]));
    *ret = (struct mp_at){
        .catalog_id = mp_sql_int(call->sql, number, 0, 0, 0),
        .data_path = mp_sql_copy(call->sql, &call->arena, number, 0, 1),
        .head = mp_sql_int(call->sql, number, 0, 2, 0),
        .floor = mp_sql_int(call->sql, number, 0, 3, 0),
        .schema_version = mp_sql_int(call->sql, number, 0, 4, 0),
        .snapshot = mp_sql_int(call->sql, number, 0, 2, 0),
        .pinned = has_snapshot || has_time,
    };
    if (has_snapshot && has_time)
        return mp_refuse_invalid(call, "snapshot and at_timestamp exclude each other");
    if (has_time) {
        if (mp_sql_null(call->sql, number, 0, 5))
            return mp_refuse(call, 410, "expired", "at_timestamp lies before the retained history");
        ret->snapshot = mp_sql_int(call->sql, number, 0, 5, 0);
    }
    if (has_snapshot) {
        if (snapshot < 0 || snapshot > ret->head)
            return mp_refuse_invalid(call, "snapshot %lld is outside of 0 to %lld",
                                     (long long)snapshot, (long long)ret->head);
        if (snapshot < ret->floor)
            return mp_refuse(call, 410, "expired", "snapshot %lld has expired; the oldest is %lld",
                             (long long)snapshot, (long long)ret->floor);
        ret->snapshot = snapshot;
    }
    return MP_OK;
}

enum mp_code mp_at_read(struct mp_call *call, struct mp_at *ret)
{
    return resolve(call, true, ret);
}

enum mp_code mp_at_head(struct mp_call *call, struct mp_at *ret)
{
    return resolve(call, false, ret);
}

enum mp_code mp_namespace_find(struct mp_call *call, struct mp_sql *sql, int64_t catalog_id,
                               struct mp_str name, int64_t *ret)
{
    uint32_t number = MP_SQL(sql,
                             "SELECT namespace_id FROM hog_namespace WHERE catalog_id = $1"
                             " AND name = $2 AND dropped_snapshot IS NULL",
                             mp_v_int(catalog_id), mp_v_text(name));
    enum mp_code code = mp_sql_sync(sql, &call->err);

    if (code)
        return code;
    if (!mp_sql_rows(sql, number))
        return mp_refuse_missing(call, "namespace \"%.*s\" does not exist", MP_STR_ARG(name));
    *ret = mp_sql_int(sql, number, 0, 0, 0);
    return MP_OK;
}

static const char find_table[] =
    "SELECT t.table_id, t.table_uuid, v.name, v.comment, v.properties, t.next_field_id,"
    " s.live_rows, s.live_files, s.live_bytes,"
    " (SELECT max(p.spec_id) FROM hog_partition_spec p WHERE p.catalog_id = t.catalog_id"
    " AND p.table_id = t.table_id),"
    " (SELECT max(o.sort_id) FROM hog_sort_spec o WHERE o.catalog_id = t.catalog_id"
    " AND o.table_id = t.table_id)"
    " FROM hog_table_version v JOIN hog_table t USING (catalog_id, table_id)"
    " JOIN hog_table_stats s USING (catalog_id, table_id)"
    " WHERE v.catalog_id = $1 AND v.namespace_id = $3 AND v.name = $4 AND " VISIBLE(
        "v") " AND t.created_snapshot <= $2 AND (t.dropped_snapshot IS NULL OR $2 < "
             "t.dropped_snapshot)";

static void read_table(struct mp_call *call, struct mp_sql *sql, uint32_t number,
                       struct mp_table *ret)
{
    ret->table_id = mp_sql_int(sql, number, 0, 0, 0);
    ret->uuid = mp_sql_copy(sql, &call->arena, number, 0, 1);
    ret->name = mp_sql_copy(sql, &call->arena, number, 0, 2);
    ret->comment = mp_sql_copy(sql, &call->arena, number, 0, 3);
    ret->properties = mp_sql_copy(sql, &call->arena, number, 0, 4);
    ret->next_field_id = mp_sql_int(sql, number, 0, 5, 1);
    ret->live_rows = mp_sql_int(sql, number, 0, 6, 0);
    ret->live_files = mp_sql_int(sql, number, 0, 7, 0);
    ret->live_bytes = mp_sql_int(sql, number, 0, 8, 0);
    ret->spec_id_max = mp_sql_int(sql, number, 0, 9, 0);
    ret->sort_id_max = mp_sql_int(sql, number, 0, 10, 0);
}

static enum mp_code find_at(struct mp_call *call, const struct mp_at *at, struct mp_table *ret)
{
    uint32_t number;
    enum mp_code code;

    *ret = (struct mp_table){.namespace_name = call->parts[1]};
    code = mp_namespace_find(call, call->sql, at->catalog_id, call->parts[1], &ret->namespace_id);
    if (code)
        return code;
    number = MP_SQL(call->sql, find_table, mp_v_int(at->catalog_id), mp_v_int(at->snapshot),
                    mp_v_int(ret->namespace_id), mp_v_text(call->parts[2]));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (!mp_sql_rows(call->sql, number))
        return mp_refuse_missing(call, "table \"%.*s.%.*s\" does not exist%s",
                                 MP_STR_ARG(call->parts[1]), MP_STR_ARG(call->parts[2]),
                                 at->pinned ? " at that snapshot" : "");
    read_table(call, call->sql, number, ret);
    return MP_OK;
}

enum mp_code mp_table_find(struct mp_call *call, struct mp_at *ret_at, struct mp_table *ret)
{
    enum mp_code code = mp_at_read(call, ret_at);

    return code ? code : find_at(call, ret_at, ret);
}

enum mp_code mp_table_find_head(struct mp_call *call, struct mp_at *ret_at, struct mp_table *ret)
{
    enum mp_code code = mp_at_head(call, ret_at);

    return code ? code : find_at(call, ret_at, ret);
}

/* --- definition --- */

struct flat {
    struct mp_wire_column column;
    int64_t parent;
};

/* Rows are ordered by parent, then ordinal: children of one parent lie together. */
static struct mp_columns tree(struct mp_arena *arena, const struct flat *rows, uint32_t count,
                              int64_t parent)
{
    struct mp_columns columns = {NULL, 0};
    uint32_t low = 0, high = count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (rows[middle].parent < parent)
            low = middle + 1;
        else
            high = middle;
    }
    while (low + columns.count < count && rows[low + columns.count].parent == parent)
        columns.count++;
    columns.items = mp_arena_take(arena, sizeof(*columns.items) * (columns.count + 1));
    for (uint32_t i = 0; i < columns.count; i++) {
        struct mp_wire_column *column = &columns.items[i];

        *column = rows[low + i].column;
        if (!mp_hog_types[mp_column_type(column)].container)
            continue;
        struct mp_columns children = tree(arena, rows, count, column->field_id);

        column->has_children = true;
        column->children = children.items;
        column->child_count = children.count;
    }
    return columns;
}

static struct mp_columns read_columns(struct mp_call *call, struct mp_sql *sql, uint32_t number)
{
    uint32_t count = mp_sql_rows(sql, number);
    struct flat *rows = mp_arena_take(&call->arena, sizeof(*rows) * (count + 1));

    for (uint32_t i = 0; i < count; i++) {
        rows[i].column = (struct mp_wire_column){
            .field_id = mp_sql_int(sql, number, i, 0, 0),
            .ordinal = mp_sql_int(sql, number, i, 2, 0),
            .name = mp_sql_copy(sql, &call->arena, number, i, 3),
            .type = mp_sql_copy(sql, &call->arena, number, i, 4),
            .type_params = mp_sql_copy(sql, &call->arena, number, i, 5),
            .nullable = mp_sql_true(sql, number, i, 6),
            .comment = mp_sql_copy(sql, &call->arena, number, i, 7),
        };
        rows[i].parent = mp_sql_int(sql, number, i, 1, 0);
    }
    return tree(&call->arena, rows, count, 0);
}

static void read_partition(struct mp_call *call, struct mp_sql *sql, uint32_t number,
                           struct mp_wire_partition_spec *ret)
{
    *ret = (struct mp_wire_partition_spec){.field_count = mp_sql_rows(sql, number)};
    ret->fields = mp_arena_take(&call->arena, sizeof(*ret->fields) * (ret->field_count + 1));
    for (uint32_t i = 0; i < ret->field_count; i++) {
        ret->spec_id = mp_sql_int(sql, number, i, 0, 0);
        ret->fields[i] = (struct mp_wire_partition_field){
            .source_field_id = mp_sql_int(sql, number, i, 1, 0),
            .transform = mp_sql_copy(sql, &call->arena, number, i, 2),
            .has_param = !mp_sql_null(sql, number, i, 3),
            .param = mp_sql_int(sql, number, i, 3, 0),
        };
    }
}

static void read_sort(struct mp_call *call, struct mp_sql *sql, uint32_t number,
                      struct mp_wire_sort_spec *ret)
{
    *ret = (struct mp_wire_sort_spec){.field_count = mp_sql_rows(sql, number)};
    ret->fields = mp_arena_take(&call->arena, sizeof(*ret->fields) * (ret->field_count + 1));
    for (uint32_t i = 0; i < ret->field_count; i++) {
        ret->sort_id = mp_sql_int(sql, number, i, 0, 0);
        ret->fields[i] = (struct mp_wire_sort_field){
            .source_field_id = mp_sql_int(sql, number, i, 1, 0),
            .direction = mp_sql_copy(sql, &call->arena, number, i, 2),
            .null_order = mp_sql_copy(sql, &call->arena, number, i, 3),
        };
    }
}

enum mp_code mp_table_definition(struct mp_call *call, struct mp_sql *sql, int64_t catalog_id,
                                 int64_t snapshot, struct mp_table *table)
{
    uint32_t columns, partition, sort;
    enum mp_code code;

    columns = MP_SQL(sql,
                     "SELECT c.field_id, c.parent_field_id, c.ordinal, c.name, c.col_type,"
                     " c.type_params, c.nullable, c.comment FROM hog_column c"
                     " WHERE c.catalog_id = $1 AND c.table_id = $3 AND " VISIBLE(
                         "c") " ORDER BY coalesce(c.parent_field_id, 0), c.ordinal",
                     mp_v_int(catalog_id), mp_v_int(snapshot), mp_v_int(table->table_id));
    partition = MP_SQL(
        sql,
        "SELECT f.spec_id, f.source_field_id, f.transform, f.transform_param"
        " FROM hog_partition_spec s JOIN hog_partition_field f"
        " USING (catalog_id, table_id, spec_id)"
        " WHERE s.catalog_id = $1 AND s.table_id = $3 AND " VISIBLE("s") " ORDER BY f.key_index",
        mp_v_int(catalog_id), mp_v_int(snapshot), mp_v_int(table->table_id));
    sort = MP_SQL(
        sql,
        "SELECT f.sort_id, f.source_field_id, f.direction, f.null_order"
        " FROM hog_sort_spec s JOIN hog_sort_field f"
        " USING (catalog_id, table_id, sort_id)"
        " WHERE s.catalog_id = $1 AND s.table_id = $3 AND " VISIBLE("s") " ORDER BY f.key_index",
        mp_v_int(catalog_id), mp_v_int(snapshot), mp_v_int(table->table_id));
    code = mp_sql_sync(sql, &call->err);
    if (code)
        return code;
    table->columns = read_columns(call, sql, columns);
    read_partition(call, sql, partition, &table->partition);
    read_sort(call, sql, sort, &table->sort);
    return MP_OK;
}

enum mp_code mp_table_live(struct mp_tx *tx, int64_t namespace_id, struct mp_str name,
                           struct mp_table *ret, bool *ret_found)
{
    uint32_t number = MP_SQL(tx->sql, find_table, mp_v_int(tx->catalog_id), mp_v_int(tx->head),
                             mp_v_int(namespace_id), mp_v_text(name));
    enum mp_code code = mp_tx_sync(tx);

    if (code)
        return code;
    *ret_found = mp_sql_rows(tx->sql, number) > 0;
    if (!*ret_found)
        return MP_OK;
    ret->namespace_id = namespace_id;
    read_table(tx->call, tx->sql, number, ret);
    return mp_table_definition(tx->call, tx->sql, tx->catalog_id, tx->head, ret);
}

enum mp_code mp_table_totals(struct mp_call *call, struct mp_sql *sql, int64_t catalog_id,
                             int64_t snapshot, int64_t table_id, struct mp_wire_table *ret)
{
    uint32_t number = MP_SQL(sql,
                             "SELECT count(*), coalesce(sum(f.record_count), 0)::bigint,"
                             " coalesce(sum(f.file_size_bytes), 0)::bigint FROM hog_data_file f"
                             " WHERE f.catalog_id = $1 AND f.table_id = $3 AND " VISIBLE("f"),
                             mp_v_int(catalog_id), mp_v_int(snapshot), mp_v_int(table_id));
    enum mp_code code = mp_sql_sync(sql, &call->err);

    if (code)
        return code;
    ret->has_totals = true;
    ret->file_count = mp_sql_int(sql, number, 0, 0, 0);
    ret->record_count = mp_sql_int(sql, number, 0, 1, 0);
    ret->file_size_bytes = mp_sql_int(sql, number, 0, 2, 0);
    return MP_OK;
}

struct mp_wire_table mp_table_wire(const struct mp_table *table, int64_t read_snapshot)
{
    return (struct mp_wire_table){
        .name = table->name,
        .namespace_name = table->namespace_name,
        .uuid = table->uuid,
        .comment = table->comment,
        .properties = table->properties,
        .columns = table->columns.items,
        .column_count = table->columns.count,
        .partition = table->partition,
        .sort = table->sort,
        .read_snapshot_id = read_snapshot,
    };
}

/* --- writing --- */

/* Rows of hog_column on their way. */
struct column_rows {
    struct mp_sql_array ids, parents, ordinals, names, types, params, nullables, comments, ended;
    uint32_t count, ended_count;
};

static void rows_init(struct column_rows *rows)
{
    *rows = (struct column_rows){0};
    mp_sql_array_init(&rows->ids, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&rows->parents, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&rows->ordinals, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&rows->names, MP_PG_TEXT_ARRAY);
    mp_sql_array_init(&rows->types, MP_PG_TEXT_ARRAY);
    mp_sql_array_init(&rows->params, MP_PG_TEXT_ARRAY);
    mp_sql_array_init(&rows->nullables, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&rows->comments, MP_PG_TEXT_ARRAY);
    mp_sql_array_init(&rows->ended, MP_PG_INT8_ARRAY);
}

static void rows_fini(struct column_rows *rows)
{
    mp_sql_array_fini(&rows->ids);
    mp_sql_array_fini(&rows->parents);
    mp_sql_array_fini(&rows->ordinals);
    mp_sql_array_fini(&rows->names);
    mp_sql_array_fini(&rows->types);
    mp_sql_array_fini(&rows->params);
    mp_sql_array_fini(&rows->nullables);
    mp_sql_array_fini(&rows->comments);
    mp_sql_array_fini(&rows->ended);
}

static void rows_add(struct column_rows *rows, const struct mp_wire_column *column, int64_t parent)
{
    mp_sql_array_int(&rows->ids, column->field_id);
    if (parent)
        mp_sql_array_int(&rows->parents, parent);
    else
        mp_sql_array_null(&rows->parents);
    mp_sql_array_int(&rows->ordinals, column->ordinal);
    mp_sql_array_text(&rows->names, column->name);
    mp_sql_array_text(&rows->types, column->type);
    mp_sql_array_text(&rows->params, column->type_params);
    mp_sql_array_int(&rows->nullables, column->nullable);
    mp_sql_array_text(&rows->comments, column->comment);
    rows->count++;
}

/* Queues both: ends come before begins, since the index of live ordinals looks at once. */
static void rows_send(struct mp_tx *tx, int64_t table_id, int64_t snapshot,
                      struct column_rows *rows)
{
    if (rows->ended_count)
        MP_SQL(tx->sql,
               "UPDATE hog_column SET end_snapshot = $3 WHERE catalog_id = $1 AND table_id = $2"
               " AND field_id = ANY ($4) AND end_snapshot IS NULL",
               mp_v_int(tx->catalog_id), mp_v_int(table_id), mp_v_int(snapshot),
               mp_sql_array_value(&rows->ended));
    if (rows->count)
        MP_SQL(tx->sql,
               "INSERT INTO hog_column (catalog_id, table_id, begin_snapshot, field_id,"
               " parent_field_id, ordinal, name, col_type, type_params, nullable, comment)"
               " SELECT $1, $2, $3, c.id, c.parent, c.ordinal, c.name, c.type, c.params::json,"
               " c.nullable <> 0, c.comment FROM unnest($4, $5, $6, $7, $8, $9, $10, $11)"
               " AS c(id, parent, ordinal, name, type, params, nullable, comment)",
               mp_v_int(tx->catalog_id), mp_v_int(table_id), mp_v_int(snapshot),
               mp_sql_array_value(&rows->ids), mp_sql_array_value(&rows->parents),
               mp_sql_array_value(&rows->ordinals), mp_sql_array_value(&rows->names),
               mp_sql_array_value(&rows->types), mp_sql_array_value(&rows->params),
               mp_sql_array_value(&rows->nullables), mp_sql_array_value(&rows->comments));
}

static void send_partition(struct mp_tx *tx, int64_t table_id, int64_t snapshot,
                           const struct mp_wire_partition_spec *spec)
{
    if (!spec->spec_id)
        return;
    MP_SQL(tx->sql,
           "INSERT INTO hog_partition_spec (catalog_id, table_id, spec_id, begin_snapshot)"
           " VALUES ($1, $2, $3, $4)",
           mp_v_int(tx->catalog_id), mp_v_int(table_id), mp_v_int(spec->spec_id),
           mp_v_int(snapshot));
    for (uint32_t i = 0; i < spec->field_count; i++)
        MP_SQL(tx->sql,
               "INSERT INTO hog_partition_field (catalog_id, table_id, spec_id, key_index,"
               " source_field_id, transform, transform_param) VALUES ($1, $2, $3, $4, $5, $6, $7)",
               mp_v_int(tx->catalog_id), mp_v_int(table_id), mp_v_int(spec->spec_id), mp_v_int(i),
               mp_v_int(spec->fields[i].source_field_id), mp_v_text(spec->fields[i].transform),
               mp_v_int_or_null(spec->fields[i].has_param, spec->fields[i].param));
}

static void send_sort(struct mp_tx *tx, int64_t table_id, int64_t snapshot,
                      const struct mp_wire_sort_spec *spec)
{
    if (!spec->sort_id)
        return;
    MP_SQL(tx->sql,
           "INSERT INTO hog_sort_spec (catalog_id, table_id, sort_id, begin_snapshot)"
           " VALUES ($1, $2, $3, $4)",
           mp_v_int(tx->catalog_id), mp_v_int(table_id), mp_v_int(spec->sort_id),
           mp_v_int(snapshot));
    for (uint32_t i = 0; i < spec->field_count; i++)
        MP_SQL(tx->sql,
               "INSERT INTO hog_sort_field (catalog_id, table_id, sort_id, key_index,"
               " source_field_id, direction, null_order) VALUES ($1, $2, $3, $4, $5, $6, $7)",
               mp_v_int(tx->catalog_id), mp_v_int(table_id), mp_v_int(spec->sort_id), mp_v_int(i),
               mp_v_int(spec->fields[i].source_field_id), mp_v_text(spec->fields[i].direction),
               mp_v_text(spec->fields[i].null_order));
}

static void send_version(struct mp_tx *tx, const struct mp_table *table, int64_t snapshot)
{
    MP_SQL(tx->sql,
           "INSERT INTO hog_table_version (catalog_id, table_id, begin_snapshot, namespace_id,"
           " name, comment, properties) VALUES ($1, $2, $3, $4, $5, $6, $7::text::json)",
           mp_v_int(tx->catalog_id), mp_v_int(table->table_id), mp_v_int(snapshot),
           mp_v_int(table->namespace_id), mp_v_text(table->name), mp_v_text(table->comment),
           mp_v_text(table->properties.data ? table->properties : MP_STR("{}")));
}

static void collect_new(struct column_rows *rows, struct mp_columns columns, int64_t parent)
{
    for (uint32_t i = 0; i < columns.count; i++) {
        rows_add(rows, &columns.items[i], parent);
        collect_new(rows,
                    (struct mp_columns){columns.items[i].children, columns.items[i].child_count},
                    columns.items[i].field_id);
    }
}

void mp_table_create_send(struct mp_tx *tx, const struct mp_table *table, int64_t snapshot,
                          int64_t replaced_table_id)
{
    struct column_rows rows;

    MP_SQL(tx->sql,
           "INSERT INTO hog_table (catalog_id, table_id, table_uuid, created_snapshot,"
           " next_field_id, replaced_table_id) VALUES ($1, $2, $3, $4, $5, $6)",
           mp_v_int(tx->catalog_id), mp_v_int(table->table_id), mp_v_uuid(table->uuid),
           mp_v_int(snapshot), mp_v_int(table->next_field_id),
           mp_v_int_or_null(replaced_table_id > 0, replaced_table_id));
    MP_SQL(tx->sql, "INSERT INTO hog_table_stats (catalog_id, table_id) VALUES ($1, $2)",
           mp_v_int(tx->catalog_id), mp_v_int(table->table_id));
    send_version(tx, table, snapshot);
    rows_init(&rows);
    collect_new(&rows, table->columns, 0);
    rows_send(tx, table->table_id, snapshot, &rows);
    rows_fini(&rows);
    send_partition(tx, table->table_id, snapshot, &table->partition);
    send_sort(tx, table->table_id, snapshot, &table->sort);
}

static bool same_text(struct mp_str a, struct mp_str b)
{
    return !a.data == !b.data && mp_str_eq(a, b);
}

static bool same_row(const struct mp_wire_column *a, const struct mp_wire_column *b)
{
    return same_text(a->name, b->name) && same_text(a->type, b->type) &&
           same_text(a->type_params, b->type_params) && a->nullable == b->nullable &&
           a->ordinal == b->ordinal && same_text(a->comment, b->comment);
}

static const struct mp_wire_column *sibling(struct mp_columns columns, int64_t field_id)
{
    for (uint32_t i = 0; i < columns.count; i++)
        if (columns.items[i].field_id == field_id)
            return &columns.items[i];
    return NULL;
}

static void end_all(struct column_rows *rows, struct mp_columns columns)
{
    for (uint32_t i = 0; i < columns.count; i++) {
        mp_sql_array_int(&rows->ended, columns.items[i].field_id);
        rows->ended_count++;
        end_all(rows, (struct mp_columns){columns.items[i].children, columns.items[i].child_count});
    }
}

/* A column never changes its parent, so siblings are compared with siblings. */
static void compare(struct column_rows *rows, struct mp_columns before, struct mp_columns after,
                    int64_t parent)
{
    for (uint32_t i = 0; i < before.count; i++) {
        const struct mp_wire_column *old = &before.items[i];
        const struct mp_wire_column *new = sibling(after, old->field_id);

        if (!new) {
            end_all(rows, (struct mp_columns){&before.items[i], 1});
            continue;
        }
        if (!same_row(old, new)) {
            mp_sql_array_int(&rows->ended, old->field_id);
            rows->ended_count++;
            rows_add(rows, new, parent);
        }
        compare(rows, (struct mp_columns){old->children, old->child_count},
                (struct mp_columns){new->children, new->child_count}, old->field_id);
    }
    for (uint32_t i = 0; i < after.count; i++)
        if (!sibling(before, after.items[i].field_id))
            collect_new(rows, (struct mp_columns){&after.items[i], 1}, parent);
}

void mp_table_alter_send(struct mp_tx *tx, const struct mp_table *before,
                         const struct mp_table *after, int64_t snapshot)
{
    struct column_rows rows;

    assert(before->table_id == after->table_id);
    if (!same_text(before->name, after->name) || !same_text(before->comment, after->comment) ||
        !same_text(before->properties, after->properties)) {
        MP_SQL(tx->sql,
               "UPDATE hog_table_version SET end_snapshot = $3 WHERE catalog_id = $1"
               " AND table_id = $2 AND " MP_SQL_NULL("end_snapshot"),
               mp_v_int(tx->catalog_id), mp_v_int(after->table_id), mp_v_int(snapshot));
        send_version(tx, after, snapshot);
    }
    rows_init(&rows);
    compare(&rows, before->columns, after->columns, 0);
    rows_send(tx, after->table_id, snapshot, &rows);
    rows_fini(&rows);
    if (before->next_field_id != after->next_field_id)
        MP_SQL(tx->sql,
               "UPDATE hog_table SET next_field_id = $3 WHERE catalog_id = $1 AND table_id = $2",
               mp_v_int(tx->catalog_id), mp_v_int(after->table_id), mp_v_int(after->next_field_id));
    if (before->spec_id_max != after->spec_id_max) {
        MP_SQL(tx->sql,
               "UPDATE hog_partition_spec SET end_snapshot = $3 WHERE catalog_id = $1"
               " AND table_id = $2 AND end_snapshot IS NULL",
               mp_v_int(tx->catalog_id), mp_v_int(after->table_id), mp_v_int(snapshot));
        send_partition(tx, after->table_id, snapshot, &after->partition);
    }
    if (before->sort_id_max != after->sort_id_max) {
        MP_SQL(tx->sql,
               "UPDATE hog_sort_spec SET end_snapshot = $3 WHERE catalog_id = $1"
               " AND table_id = $2 AND end_snapshot IS NULL",
               mp_v_int(tx->catalog_id), mp_v_int(after->table_id), mp_v_int(snapshot));
        send_sort(tx, after->table_id, snapshot, &after->sort);
    }
}

void mp_table_drop_send(struct mp_tx *tx, int64_t table_id, int64_t snapshot)
{
    MP_SQL(tx->sql,
           "UPDATE hog_table SET dropped_snapshot = $3 WHERE catalog_id = $1 AND table_id = $2",
           mp_v_int(tx->catalog_id), mp_v_int(table_id), mp_v_int(snapshot));
    MP_SQL(tx->sql,
           "UPDATE hog_table_version SET end_snapshot = $3 WHERE catalog_id = $1"
           " AND table_id = $2 AND " MP_SQL_NULL("end_snapshot"),
           mp_v_int(tx->catalog_id), mp_v_int(table_id), mp_v_int(snapshot));
}
