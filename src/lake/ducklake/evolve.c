/* lake/ducklake/evolve.c - tables and columns made, columns widened or let take NULL.
 *
 * Each change is a transaction of its own: claim, read the table again, do what is still missing,
 * raise schema_version. What another process did in between is found by the second reading, so
 * eight processes that want the same column make it once.
 *
 * A BIGINT column becomes DOUBLE only where every value that is live is known to be exact in a
 * double. What is known: the bounds of each live file, and the rows that are kept inlined in the
 * catalog. A file that says nothing of the column may hold anything.
 *
 * After  DuckLake sheet, sections 6 (rows of each change), 13.2 (inlined tables) and 16.
 */
#include "lake/ducklake/priv.h"
#include "lake/ducklake/layout.h"
#include "lake/ducklake/transform.h"
#include "lake/partition_by.h"

#include <assert.h>
#include <stdio.h>

#define EXACT_MAX  ((int64_t)1 << 53)
#define ROUNDS_MAX 8 /* of a table that is dropped and made again under our hands */

struct evolve_context {
    struct mp_str table;
    const struct mp_lake_evolution *want;
    const struct mp_lake_create *create;
    const struct mp_partition_key *keys; /* of create->partition_by */
    uint32_t key_count;
};

/* --- rows --- */

static const struct mp_db_column column_columns[] = {
    {"column_id", MP_DB_INT},
    {"begin_snapshot", MP_DB_INT},
    {"table_id", MP_DB_INT},
    {"column_order", MP_DB_INT},
    {"column_name", MP_DB_TEXT},
    {"column_type", MP_DB_TEXT},
    {"default_value", MP_DB_TEXT},
    {"nulls_allowed", MP_DB_BOOL},
    {"default_value_type", MP_DB_TEXT},
    {"default_value_dialect", MP_DB_TEXT},
};

static void column_rows_begin(struct mp_ducklake *lake)
{
    mp_db_rows_begin(lake->db, "ducklake_column", column_columns,
                     sizeof(column_columns) / sizeof(*column_columns));
}

static void column_row(struct mp_ducklake *lake, int64_t snapshot, int64_t table_id, int64_t id,
                       const struct mp_lake_new_column *column)
{
    char type[24];

    mp_type_ducklake_name(column->type, type);
    mp_db_rows_add(lake->db, (const struct mp_db_value[]){mp_db_int(id), mp_db_int(snapshot),
                                                          mp_db_int(table_id), mp_db_int(id),
                                                          mp_db_text(column->name), mp_db_c(type),
                                                          mp_db_c("NULL"), mp_db_bool(true),
                                                          mp_db_c("literal"), mp_db_c("duckdb")});
}

static void schema_version_send(struct mp_ducklake *lake, const struct mp_dl_snapshot *snapshot,
                                int64_t table_id)
{
    MP_DB_SEND(lake->db,
               "INSERT INTO ducklake_schema_versions (begin_snapshot, schema_version, table_id)"
               " VALUES ($1, $2, $3)",
               mp_db_int(snapshot->id), mp_db_int(snapshot->schema_version), mp_db_int(table_id));
}

void mp_dl_inlining_off_send(struct mp_ducklake *lake, int64_t table_id, bool force)
{
    if (force)
        MP_DB_SEND(lake->db,
                   "UPDATE ducklake_metadata SET value = '0' WHERE key = 'data_inlining_row_limit'"
                   " AND scope = 'table' AND scope_id = $1 AND value <> '0'",
                   mp_db_int(table_id));
    MP_DB_SEND(lake->db,
               "INSERT INTO ducklake_metadata (key, value, scope, scope_id)"
               " SELECT 'data_inlining_row_limit', '0', 'table', $1 WHERE NOT EXISTS"
               " (SELECT 1 FROM ducklake_metadata WHERE key = 'data_inlining_row_limit'"
               " AND scope = 'table' AND scope_id = $1)",
               mp_db_int(table_id));
}

/* --- a new table --- */

static const struct mp_lake_new_column *new_column(const struct mp_lake_new_column *columns,
                                                   uint32_t count, struct mp_str name)
{
    for (uint32_t i = 0; i < count; i++)
        if (mp_str_eq_fold(columns[i].name, name))
            return &columns[i];
    return NULL;
}

/* Calendar fields of what has none are refused here, before a reader meets them. */
static bool transform_takes(uint8_t transform, struct mp_type type)
{
    bool stamp = type.id == MP_TYPE_TIMESTAMP_S || type.id == MP_TYPE_TIMESTAMP_MS ||
                 type.id == MP_TYPE_TIMESTAMP || type.id == MP_TYPE_TIMESTAMP_NS ||
                 type.id == MP_TYPE_TIMESTAMPTZ;

    switch (transform) {
    case MP_TRANSFORM_IDENTITY:
    case MP_TRANSFORM_BUCKET:
        return true;
    case MP_TRANSFORM_HOUR:
        return stamp;
    default:
        return stamp || type.id == MP_TYPE_DATE;
    }
}

/* The new table's columns: what was asked for, each name once, then partition sources that are
 * missing. Those have no type yet; text takes anything, where the value is used as it is. */
static enum mp_code plan_columns(struct mp_ducklake *lake, const struct evolve_context *context,
                                 struct mp_err *err, struct mp_lake_new_column **ret,
                                 uint32_t *ret_count)
{
    struct mp_lake_new_column *columns = mp_arena_take(
        &lake->scratch, sizeof(*columns) * (context->want->add_count + context->key_count + 1));
    uint32_t count = 0;

    for (uint32_t i = 0; i < context->want->add_count; i++)
        if (!new_column(columns, count, context->want->add[i].name))
            columns[count++] = context->want->add[i];
    for (uint32_t i = 0; i < context->key_count; i++) {
        const struct mp_partition_key *key = &context->keys[i];
        const struct mp_lake_new_column *source = new_column(columns, count, key->column);
        char transform[MP_DL_TRANSFORM_TEXT];

        mp_dl_transform_text(key->transform, key->buckets, transform);
        if (!source && !transform_takes(key->transform, MP_TYPE(VARCHAR)))
            return mp_err_set(err, MP_BAD_CONFIG,
                              "the new table is to be partitioned by %s of column \"%.*s\", which"
                              " it does not have: pin its type",
                              transform, MP_STR_ARG(key->column));
        if (!source)
            columns[count++] = (struct mp_lake_new_column){key->column, MP_TYPE(VARCHAR)};
        else if (!transform_takes(key->transform, source->type)) {
            char type[24];

            mp_type_ducklake_name(source->type, type);
            return mp_err_set(err, MP_BAD_CONFIG,
                              "the new table is to be partitioned by %s of column \"%.*s\", which"
                              " is %s: pin its type",
                              transform, MP_STR_ARG(key->column), type);
        }
    }
    if (count == 0)
        return mp_err_set(err, MP_BAD_CONFIG, "a table needs a column");
    *ret = columns;
    *ret_count = count;
    return MP_OK;
}

static int64_t id_of(const struct mp_lake_new_column *columns, uint32_t count, struct mp_str name)
{
    const struct mp_lake_new_column *column = new_column(columns, count, name);

    return column ? column - columns + 1 : -1;
}

static void partition_send(struct mp_ducklake *lake, const struct evolve_context *context,
                           struct mp_dl_snapshot *snapshot, int64_t table_id,
                           const struct mp_lake_new_column *columns, uint32_t count)
{
    static const struct mp_db_column key_columns[] = {
        {"partition_id", MP_DB_INT}, {"table_id", MP_DB_INT},   {"partition_key_index", MP_DB_INT},
        {"column_id", MP_DB_INT},    {"transform", MP_DB_TEXT},
    };
    int64_t id = snapshot->next_catalog;

    if (context->key_count == 0)
        return;
    snapshot->next_catalog++;
    MP_DB_SEND(lake->db,
               "INSERT INTO ducklake_partition_info (partition_id, table_id, begin_snapshot)"
               " VALUES ($1, $2, $3)",
               mp_db_int(id), mp_db_int(table_id), mp_db_int(snapshot->id));
    mp_db_rows_begin(lake->db, "ducklake_partition_column", key_columns,
                     sizeof(key_columns) / sizeof(*key_columns));
    for (uint32_t i = 0; i < context->key_count; i++) {
        const struct mp_partition_key *key = &context->keys[i];
        char transform[MP_DL_TRANSFORM_TEXT];

        mp_dl_transform_text(key->transform, key->buckets, transform);
        mp_db_rows_add(
            lake->db, (const struct mp_db_value[]){mp_db_int(id), mp_db_int(table_id), mp_db_int(i),
                                                   mp_db_int(id_of(columns, count, key->column)),
                                                   mp_db_c(transform)});
    }
    mp_db_rows_end(lake->db);
}

/* Names the table does not have are no sort keys: it cannot be sorted by them. */
static void sort_send(struct mp_ducklake *lake, const struct evolve_context *context,
                      struct mp_dl_snapshot *snapshot, int64_t table_id,
                      const struct mp_lake_new_column *columns, uint32_t count)
{
    static const struct mp_db_column sort_columns[] = {
        {"sort_id", MP_DB_INT},     {"table_id", MP_DB_INT}, {"sort_key_index", MP_DB_INT},
        {"expression", MP_DB_TEXT}, {"dialect", MP_DB_TEXT}, {"sort_direction", MP_DB_TEXT},
        {"null_order", MP_DB_TEXT},
    };
    struct mp_buf expression = MP_BUF_INIT(2048);
    uint32_t keys = 0;

    for (uint32_t i = 0; i < context->create->sort_by_count; i++) {
        int64_t id = id_of(columns, count, context->create->sort_by[i]);

        if (id < 0)
            continue;
        if (keys == 0)
            mp_db_rows_begin(lake->db, "ducklake_sort_expression", sort_columns,
                             sizeof(sort_columns) / sizeof(*sort_columns));
        mp_buf_clear(&expression);
        mp_dl_quote(&expression, columns[id - 1].name);
        mp_db_rows_add(lake->db, (const struct mp_db_value[]){
                                     mp_db_int(snapshot->next_catalog), mp_db_int(table_id),
                                     mp_db_int(keys++), mp_db_text(mp_buf_str(&expression)),
                                     mp_db_c("duckdb"), mp_db_c("ASC"), mp_db_c("NULLS_LAST")});
    }
    mp_buf_fini(&expression);
    if (keys == 0)
        return;
    mp_db_rows_end(lake->db);
    MP_DB_SEND(lake->db,
               "INSERT INTO ducklake_sort_info (sort_id, table_id, begin_snapshot)"
               " VALUES ($1, $2, $3)",
               mp_db_int(snapshot->next_catalog), mp_db_int(table_id), mp_db_int(snapshot->id));
    snapshot->next_catalog++;
}

/* The claim of a DDL transaction, and the table as it is then. *ret_table NULL: there is none. */
static enum mp_code claim_and_read(struct mp_ducklake *lake, struct mp_str name, struct mp_err *err,
                                   struct mp_dl_snapshot *ret_snapshot,
                                   struct mp_dl_table **ret_table)
{
    uint32_t number;
    enum mp_code code;

    *ret_table = NULL;
    mp_db_begin(lake->db, MP_DB_WRITE);
    number = mp_dl_snapshot_send(lake, 0);
    code = mp_db_sync(lake->db, err);
    if (!code)
        code = mp_dl_snapshot_read(lake, number, 0, err, ret_snapshot);
    if (!code)
        code = mp_dl_table_read(lake, name, err, ret_table);
    return code == MP_NOT_FOUND ? MP_OK : code;
}

static enum mp_code create_work(struct mp_ducklake *lake, void *context_of_any, struct mp_err *err,
                                bool *ret_keep)
{
    struct evolve_context *context = context_of_any;
    struct mp_lake_new_column *columns = NULL;
    struct mp_dl_snapshot snapshot;
    struct mp_dl_namespace space;
    struct mp_dl_table *there;
    struct mp_buf changes = MP_BUF_INIT(8192);
    char uuid[MP_UUID_TEXT];
    uint32_t count = 0;
    int64_t id;
    enum mp_code code;

    code = claim_and_read(lake, context->table, err, &snapshot, &there);
    if (code || there) {
        mp_dl_table_free(there);
        *ret_keep = false; /* another process was first */
        return code;
    }
    code = mp_dl_namespace_read(lake, &lake->scratch, err, &space);
    if (!code)
        code = plan_columns(lake, context, err, &columns, &count);
    if (code)
        return code;
    id = snapshot.next_catalog++;
    snapshot.schema_version++;
    mp_uuid7(lake->env, uuid);
    MP_DB_SEND(lake->db,
               "INSERT INTO ducklake_table (table_id, table_uuid, begin_snapshot, schema_id,"
               " table_name, path, path_is_relative) VALUES ($1, $2, $3, $4, $5, $6, $7)",
               mp_db_int(id), mp_db_uuid(uuid), mp_db_int(snapshot.id), mp_db_int(space.id),
               mp_db_text(context->table),
               mp_db_text(mp_dl_directory(&lake->scratch, context->table, uuid)), mp_db_bool(true));
    column_rows_begin(lake);
    for (uint32_t i = 0; i < count; i++)
        column_row(lake, snapshot.id, id, i + 1, &columns[i]);
    mp_db_rows_end(lake->db);
    partition_send(lake, context, &snapshot, id, columns, count);
    sort_send(lake, context, &snapshot, id, columns, count);
    schema_version_send(lake, &snapshot, id);
    MP_DB_SEND(lake->db,
               "INSERT INTO ducklake_table_stats (table_id, record_count, next_row_id,"
               " file_size_bytes) VALUES ($1, 0, 0, 0)",
               mp_db_int(id));
    mp_dl_inlining_off_send(lake, id, false);
    mp_dl_counters_send(lake, &snapshot);
    mp_buf_add_c(&changes, "created_table:");
    mp_dl_quote(&changes, space.name);
    mp_buf_add_c(&changes, ".");
    mp_dl_quote(&changes, context->table);
    mp_dl_changes_send(lake, snapshot.id, mp_buf_str(&changes), MP_STR("create table"),
                       (struct mp_str){NULL, 0});
    code = mp_db_sync(lake->db, err);
    mp_buf_fini(&changes);
    return code;
}

/* --- a live table --- */

static bool fits_exactly(struct mp_str text)
{
    int64_t value;

    return mp_db_parse_int(text, &value) && value >= -EXACT_MAX && value <= EXACT_MAX;
}

/* One live file against the column: value_count, min, max, whether it has a stats row, and
 * whether it is from before the column. */
static bool file_fits(const struct mp_db_result *answer, uint32_t row)
{
    bool has_stats = mp_db_truth(answer, row, 0), before = mp_db_truth(answer, row, 4);

    if (!has_stats)
        return before; /* then it reads as the default */
    if (mp_db_number(answer, row, 1, 1) == 0)
        return true; /* only nulls */
    return fits_exactly(mp_db_cell(answer, row, 2)) && fits_exactly(mp_db_cell(answer, row, 3));
}

/* Rows inlined in the catalog, per registered table. Names there are those of the table's schema
 * version; where the column could have had another name then, nothing is known. */
static enum mp_code inlined_fit(struct mp_ducklake *lake, const struct mp_dl_table *table,
                                const struct mp_live_column *column, struct mp_err *err, bool *ret)
{
    const struct mp_db_result *answer;
    struct inlined {
        struct mp_str name;
        bool current;
    } * tables;
    struct mp_buf sql = MP_BUF_INIT(65536);
    uint32_t number, count;
    enum mp_code code;

    number = MP_DB_SEND(
        lake->db,
        "SELECT i.table_name, CASE WHEN i.schema_version >= (SELECT MAX(v.schema_version)"
        " FROM ducklake_schema_versions v JOIN ducklake_column c ON c.table_id = v.table_id"
        " AND c.begin_snapshot = v.begin_snapshot WHERE c.table_id = $1 AND c.column_id = $2"
        " AND c.end_snapshot IS NULL) THEN 1 ELSE 0 END"
        " FROM ducklake_inlined_data_tables i WHERE i.table_id = $1",
        mp_db_int(table->view.id), mp_db_int(column->field_id));
    code = mp_db_sync(lake->db, err);
    if (code)
        return code;
    answer = mp_db_result(lake->db, number);
    count = answer->rows;
    tables = mp_arena_take(&lake->scratch, sizeof(*tables) * (count + 1));
    for (uint32_t i = 0; i < count; i++)
        tables[i] = (struct inlined){mp_arena_str(&lake->scratch, mp_db_cell(answer, i, 0)),
                                     mp_db_truth(answer, i, 1)};
    for (uint32_t i = 0; *ret && !code && i < count; i++) {
        mp_buf_clear(&sql);
        mp_buf_add_c(&sql, "SELECT count(*), ");
        if (tables[i].current) {
            mp_buf_add_c(&sql, "count(");
            mp_dl_quote(&sql, column->name);
            mp_buf_add_c(&sql, "), min(");
            mp_dl_quote(&sql, column->name);
            mp_buf_add_c(&sql, "), max(");
            mp_dl_quote(&sql, column->name);
            mp_buf_add_c(&sql, ")");
        } else {
            mp_buf_add_c(&sql, "1, NULL, NULL");
        }
        mp_buf_add_c(&sql, " FROM ");
        mp_dl_quote(&sql, tables[i].name);
        mp_buf_add_c(&sql, " WHERE end_snapshot IS NULL");
        number = mp_db_send(lake->db, mp_buf_c(&sql), NULL, 0);
        code = mp_db_sync(lake->db, err);
        if (code)
            break;
        answer = mp_db_result(lake->db, number);
        *ret = mp_db_number(answer, 0, 0, 1) == 0 || mp_db_number(answer, 0, 1, 1) == 0 ||
               (fits_exactly(mp_db_cell(answer, 0, 2)) && fits_exactly(mp_db_cell(answer, 0, 3)));
    }
    mp_buf_fini(&sql);
    return code;
}

/* Whether every live value of the column is known to fit a double exactly. */
static enum mp_code column_fits(struct mp_ducklake *lake, const struct mp_dl_table *table,
                                const struct mp_live_column *column, struct mp_err *err, bool *ret)
{
    const struct mp_db_result *files, *defaults;
    uint32_t file_number, default_number;
    enum mp_code code;

    /* A merged file begins with its oldest part and may still hold the column: it must say. */
    file_number = MP_DB_SEND(
        lake->db,
        "SELECT CASE WHEN s.data_file_id IS NULL THEN 0 ELSE 1 END, s.value_count, s.min_value,"
        " s.max_value, CASE WHEN f.partial_max IS NULL AND f.begin_snapshot <"
        " (SELECT MIN(c.begin_snapshot) FROM ducklake_column c WHERE c.table_id = $1"
        " AND c.column_id = $2) THEN 1 ELSE 0 END"
        " FROM ducklake_data_file f LEFT JOIN ducklake_file_column_stats s"
        " ON s.data_file_id = f.data_file_id AND s.column_id = $2"
        " WHERE f.table_id = $1 AND f.end_snapshot IS NULL",
        mp_db_int(table->view.id), mp_db_int(column->field_id));
    default_number = MP_DB_SEND(lake->db,
                                "SELECT initial_default FROM ducklake_column WHERE table_id = $1"
                                " AND column_id = $2 AND end_snapshot IS NULL",
                                mp_db_int(table->view.id), mp_db_int(column->field_id));
    code = mp_db_sync(lake->db, err);
    if (code)
        return code;
    files = mp_db_result(lake->db, file_number);
    defaults = mp_db_result(lake->db, default_number);
    *ret = true;
    for (uint32_t i = 0; i < defaults->rows; i++)
        *ret = *ret && (mp_db_is_null(defaults, i, 0) || fits_exactly(mp_db_cell(defaults, i, 0)));
    for (uint32_t i = 0; *ret && i < files->rows; i++)
        *ret = file_fits(files, i);
    return *ret ? inlined_fit(lake, table, column, err, ret) : MP_OK;
}

static bool wants_widening(const struct mp_live_column *column)
{
    return column && column->type.id == MP_TYPE_INT64 && !column->partition_source;
}

static bool wants_relaxing(const struct mp_live_column *column)
{
    return column && column->required;
}

static bool wants_adding(const struct mp_dl_table *table, const struct mp_lake_evolution *want,
                         uint32_t i)
{
    return !mp_dl_column(&table->view.schema, want->add[i].name) &&
           !new_column(want->add, i, want->add[i].name);
}

/* The column's live row again with another type, or with NULL allowed. */
#define COLUMN_AGAIN(type, nulls)                                                                  \
    "INSERT INTO ducklake_column (column_id, begin_snapshot, end_snapshot, table_id,"              \
    " column_order, column_name, column_type, initial_default, default_value, nulls_allowed,"      \
    " parent_column, default_value_type, default_value_dialect)"                                   \
    " SELECT column_id, $1, NULL, table_id, column_order, column_name, " type ", initial_default," \
    " default_value, " nulls ", parent_column, default_value_type, default_value_dialect"          \
    " FROM ducklake_column WHERE table_id = $2 AND column_id = $3 AND end_snapshot = $1"

static const char column_as_double[] = COLUMN_AGAIN("'float64'", "nulls_allowed");
static const char column_with_nulls[] = COLUMN_AGAIN("column_type", "true");

static void replace_send(struct mp_ducklake *lake, const struct mp_dl_snapshot *snapshot,
                         int64_t table_id, int32_t column_id, const char *again)
{
    MP_DB_SEND(lake->db,
               "UPDATE ducklake_column SET end_snapshot = $1 WHERE table_id = $2"
               " AND column_id = $3 AND end_snapshot IS NULL",
               mp_db_int(snapshot->id), mp_db_int(table_id), mp_db_int(column_id));
    MP_DB_SEND(lake->db, again, mp_db_int(snapshot->id), mp_db_int(table_id), mp_db_int(column_id));
}

/* The sort spec again under a new id, as the extension does when a sort column changes. */
static void resort_send(struct mp_ducklake *lake, struct mp_dl_snapshot *snapshot,
                        const struct mp_dl_table *table)
{
    struct mp_db_value fresh = mp_db_int(snapshot->next_catalog++);
    struct mp_db_value old = mp_db_int(table->sort_id), id = mp_db_int(table->view.id);

    MP_DB_SEND(lake->db,
               "UPDATE ducklake_sort_info SET end_snapshot = $1 WHERE sort_id = $2"
               " AND table_id = $3 AND end_snapshot IS NULL",
               mp_db_int(snapshot->id), old, id);
    MP_DB_SEND(lake->db,
               "INSERT INTO ducklake_sort_info (sort_id, table_id, begin_snapshot)"
               " VALUES ($1, $2, $3)",
               fresh, id, mp_db_int(snapshot->id));
    MP_DB_SEND(lake->db,
               "INSERT INTO ducklake_sort_expression (sort_id, table_id, sort_key_index,"
               " expression, dialect, sort_direction, null_order)"
               " SELECT $1, table_id, sort_key_index, expression, dialect, sort_direction,"
               " null_order FROM ducklake_sort_expression WHERE sort_id = $2 AND table_id = $3",
               fresh, old, id);
}

/* Columns that are still missing. Ids go on behind all that the table ever had. */
static enum mp_code add_columns(struct mp_ducklake *lake, const struct evolve_context *context,
                                const struct mp_dl_table *table, int64_t snapshot,
                                struct mp_err *err, uint32_t *ret_added)
{
    uint32_t number, added = 0;
    int64_t id;
    enum mp_code code;

    number = MP_DB_SEND(lake->db, "SELECT MAX(column_id) FROM ducklake_column WHERE table_id = $1",
                        mp_db_int(table->view.id));
    code = mp_db_sync(lake->db, err);
    if (code)
        return code;
    id = mp_db_number(mp_db_result(lake->db, number), 0, 0, 0);
    for (uint32_t i = 0; i < context->want->add_count; i++) {
        if (!wants_adding(table, context->want, i))
            continue;
        if (added++ == 0)
            column_rows_begin(lake);
        column_row(lake, snapshot, table->view.id, ++id, &context->want->add[i]);
    }
    if (added)
        mp_db_rows_end(lake->db);
    *ret_added = added;
    return MP_OK;
}

static enum mp_code widen_columns(struct mp_ducklake *lake, const struct evolve_context *context,
                                  const struct mp_dl_table *table, struct mp_dl_snapshot *snapshot,
                                  struct mp_err *err, uint32_t *ret_widened)
{
    uint32_t widened = 0;
    bool resort = false;

    for (uint32_t i = 0; i < context->want->widen_count; i++) {
        const struct mp_schema *schema = &table->view.schema;
        const struct mp_live_column *column = mp_schema_by_id(schema, context->want->widen[i]);
        bool fits;
        enum mp_code code;

        if (!wants_widening(column))
            continue;
        code = column_fits(lake, table, column, err, &fits);
        if (code)
            return code;
        if (!fits)
            continue;
        replace_send(lake, snapshot, table->view.id, column->field_id, column_as_double);
        widened++;
        for (uint32_t s = 0; s < schema->sort_count; s++)
            resort = resort || schema->sort[s].field_id == column->field_id;
    }
    if (resort)
        resort_send(lake, snapshot, table);
    *ret_widened = widened;
    return MP_OK;
}

static uint32_t relax_columns(struct mp_ducklake *lake, const struct evolve_context *context,
                              const struct mp_dl_table *table, struct mp_dl_snapshot *snapshot)
{
    uint32_t relaxed = 0;

    for (uint32_t i = 0; i < context->want->relax_count; i++) {
        int32_t id = context->want->relax[i];

        if (!wants_relaxing(mp_schema_by_id(&table->view.schema, id)))
            continue;
        replace_send(lake, snapshot, table->view.id, id, column_with_nulls);
        relaxed++;
    }
    return relaxed;
}

static enum mp_code alter_work(struct mp_ducklake *lake, void *context_of_any, struct mp_err *err,
                               bool *ret_keep)
{
    struct evolve_context *context = context_of_any;
    struct mp_dl_snapshot snapshot;
    struct mp_dl_table *table;
    uint32_t added = 0, widened = 0, relaxed;
    char text[64];
    enum mp_code code;

    code = claim_and_read(lake, context->table, err, &snapshot, &table);
    if (code || !table) {
        *ret_keep = false; /* dropped: the next round makes it */
        return code;
    }
    code = widen_columns(lake, context, table, &snapshot, err, &widened);
    if (!code)
        code = add_columns(lake, context, table, snapshot.id, err, &added);
    if (code)
        goto out;
    relaxed = relax_columns(lake, context, table, &snapshot);
    *ret_keep = added || widened || relaxed;
    if (!*ret_keep)
        goto out;
    snapshot.schema_version++;
    schema_version_send(lake, &snapshot, table->view.id);
    mp_dl_inlining_off_send(lake, table->view.id, true);
    mp_dl_counters_send(lake, &snapshot);
    snprintf(text, sizeof(text), "altered_table:%lld", (long long)table->view.id);
    mp_dl_changes_send(lake, snapshot.id, mp_str_c(text),
                       mp_str_c(mp_arena_printf(
                           &lake->scratch, "columns added=%u widened=%u nullable=%u millpond=%.*s",
                           added, widened, relaxed, MP_STR_ARG(lake->version))),
                       (struct mp_str){NULL, 0});
    code = mp_db_sync(lake->db, err);
out:
    mp_dl_table_free(table);
    return code;
}

/* --- the driver's function --- */

static bool nothing_to_do(const struct mp_dl_table *table, const struct mp_lake_evolution *want)
{
    for (uint32_t i = 0; i < want->add_count; i++)
        if (wants_adding(table, want, i))
            return false;
    for (uint32_t i = 0; i < want->widen_count; i++)
        if (wants_widening(mp_schema_by_id(&table->view.schema, want->widen[i])))
            return false;
    for (uint32_t i = 0; i < want->relax_count; i++)
        if (wants_relaxing(mp_schema_by_id(&table->view.schema, want->relax[i])))
            return false;
    return true;
}

static bool spec_is(const struct mp_schema *schema, const struct evolve_context *context)
{
    if (schema->partition_count != context->key_count)
        return false;
    for (uint32_t i = 0; i < context->key_count; i++) {
        const struct mp_live_column *source =
            mp_schema_by_id(schema, schema->partition[i].field_id);

        if (schema->partition[i].transform != context->keys[i].transform ||
            schema->partition[i].buckets != context->keys[i].buckets ||
            !mp_str_eq_fold(source->name, context->keys[i].column))
            return false;
    }
    return true;
}

/* Says that the live partition spec is not the setting's, which is left as it is. */
static void warn(struct mp_dl_table *table, const struct evolve_context *context)
{
    const struct mp_schema *schema = &table->view.schema;
    struct mp_buf live = MP_BUF_INIT(65536);

    if (context->key_count == 0 || spec_is(schema, context))
        return;
    for (uint32_t i = 0; i < schema->partition_count; i++) {
        const struct mp_partition_field *field = &schema->partition[i];
        char transform[MP_DL_TRANSFORM_TEXT];

        mp_dl_transform_text(field->transform, field->buckets, transform);
        mp_buf_printf(&live, "%s%s of \"%.*s\"", i ? ", " : "", transform,
                      MP_STR_ARG(mp_schema_by_id(schema, field->field_id)->name));
    }
    table->view.warning = mp_str_c(mp_arena_printf(
        &table->arena,
        "table \"%.*s\" is partitioned by %s, not by the configured \"%.*s\"; its own is used",
        MP_STR_ARG(table->view.name), live.size ? mp_buf_c(&live) : "nothing",
        MP_STR_ARG(context->create->partition_by)));
    mp_buf_fini(&live);
}

/* Reads the table and brings it one step nearer. *ret NULL: look again. */
static enum mp_code step(struct mp_ducklake *lake, struct evolve_context *context,
                         struct mp_err *err, struct mp_dl_table **ret)
{
    struct mp_dl_table *table;
    enum mp_code code = mp_dl_table_now(lake, context->table, err, &table);

    *ret = NULL;
    if (code == MP_NOT_FOUND && context->create && !lake->read_only) {
        code = mp_dl_namespace_ensure(lake, err);
        return code ? code : mp_dl_transact(lake, create_work, context, err);
    }
    if (code)
        return code;
    if (nothing_to_do(table, context->want)) {
        *ret = table;
        return MP_OK;
    }
    mp_dl_table_free(table);
    code = mp_dl_transact(lake, alter_work, context, err);
    /* What is still not done now was refused, unless the table is gone. */
    return code ? code : mp_dl_table_now(lake, context->table, err, ret);
}

/* What cannot be a name is kept from here by name_ok; a setting may have missed it. */
static enum mp_code names_ok(const struct mp_ducklake *lake, struct mp_str table,
                             const struct mp_lake_evolution *evolution, struct mp_err *err)
{
    if (!lake->lake.driver->name_ok(table))
        return mp_err_set(err, MP_BAD_CONFIG, "that cannot be the name of a table");
    for (uint32_t i = 0; i < evolution->add_count; i++) {
        assert(evolution->add[i].type.id != MP_TYPE_NONE);
        assert(evolution->add[i].type.id < MP_TYPE_OTHER);
        if (!lake->lake.driver->name_ok(evolution->add[i].name))
            return mp_err_set(err, MP_BAD_CONFIG, "\"%.*s\" cannot be the name of a column",
                              MP_STR_ARG(evolution->add[i].name));
    }
    return MP_OK;
}

enum mp_code mp_dl_evolve(struct mp_lake *self, struct mp_str name,
                          const struct mp_lake_evolution *evolution,
                          const struct mp_lake_create *create, struct mp_err *err,
                          const struct mp_lake_table **ret)
{
    struct mp_ducklake *lake = (struct mp_ducklake *)self;
    struct evolve_context context = {.table = name, .want = evolution, .create = create};
    struct mp_dl_table *table = NULL;
    struct mp_arena keys;
    enum mp_code code = MP_OK;

    mp_arena_init(&keys, 4096);
    code = names_ok(lake, name, evolution, err);
    if (!code && create)
        code = mp_partition_by_parse(&keys, create->partition_by, MP_PARTITION_BY_DUCKLAKE, err,
                                     &context.keys, &context.key_count);
    for (int round = 0; !code && !table; round++) {
        code = step(lake, &context, err, &table);
        if (code == MP_NOT_FOUND && create && !lake->read_only)
            code = MP_OK; /* dropped between two looks */
        if (!code && !table && round == ROUNDS_MAX)
            code = mp_err_set(err, MP_CONFLICT, "the table comes and goes");
    }
    if (code)
        goto out;
    for (uint32_t i = 0; i < evolution->widen_count; i++) {
        const struct mp_live_column *column =
            mp_schema_by_id(&table->view.schema, evolution->widen[i]);

        evolution->ret_widened[i] = column && column->type.id == MP_TYPE_DOUBLE;
    }
    if (create)
        warn(table, &context);
    *ret = mp_dl_table_keep(lake, &table);
out:
    mp_arena_fini(&keys);
    if (code)
        mp_err_add(err, "bring table \"%.*s\" up to date", MP_STR_ARG(name));
    return code;
}
