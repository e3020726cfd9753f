/* lake/ducklake/table.c - a table as it is now.
 *
 * Read in one transaction that sees one state: the newest. A row is live when its end_snapshot is
 * NULL. Names are found as the extension finds them, ASCII case aside; the comparison is made
 * here and not in SQL, where each database folds by its own rules.
 *
 * Nested columns are one column of a type that cannot be written (MP_TYPE_OTHER); the rows of
 * their insides are skipped.
 */
#include "lake/ducklake/priv.h"
#include "lake/ducklake/layout.h"
#include "lake/ducklake/transform.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>

void mp_dl_table_free(struct mp_dl_table *table)
{
    struct mp_arena arena;

    if (!table)
        return;
    arena = table->arena; /* the table lies in it */
    mp_arena_fini(&arena);
}

static struct mp_dl_table *table_new(void)
{
    struct mp_arena arena;
    struct mp_dl_table *table;

    mp_arena_init(&arena, 8192);
    table = mp_arena_take(&arena, sizeof(*table));
    table->arena = arena;
    table->partition_id = -1;
    table->sort_id = -1;
    table->hive = true;
    return table;
}

/* Stored path of a schema or table as a piece below data_path. */
static enum mp_code relative_path(struct mp_ducklake *lake, struct mp_str what, struct mp_str path,
                                  bool is_relative, struct mp_err *err, struct mp_str *ret,
                                  bool *ret_rooted)
{
    *ret_rooted = !is_relative;
    *ret = path;
    if (path.size == 0)
        return mp_err_set(err, MP_BAD_CONFIG, "\"%.*s\" has no path in the catalog",
                          MP_STR_ARG(what));
    if (is_relative)
        return MP_OK;
    if (!mp_str_starts(path, lake->data_path))
        return mp_err_set(err, MP_BAD_CONFIG,
                          "the path \"%.*s\" of \"%.*s\" does not lie below the data path \"%.*s\"",
                          MP_STR_ARG(path), MP_STR_ARG(what), MP_STR_ARG(lake->data_path));
    *ret = mp_str_n(path.data + lake->data_path.size, path.size - lake->data_path.size);
    return MP_OK;
}

static bool has_parent_step(struct mp_str path)
{
    for (size_t i = 0; i + 1 < path.size; i++)
        if (path.data[i] == '.' && path.data[i + 1] == '.' && (i == 0 || path.data[i - 1] == '/') &&
            (i + 2 == path.size || path.data[i + 2] == '/'))
            return true;
    return false;
}

enum mp_code mp_dl_namespace_read(struct mp_ducklake *lake, struct mp_arena *arena,
                                  struct mp_err *err, struct mp_dl_namespace *ret)
{
    const struct mp_db_result *answer;
    uint32_t number, best = UINT32_MAX;
    bool rooted;
    enum mp_code code;

    number = MP_DB_SEND(lake->db,
                        "SELECT schema_id, schema_name, path, path_is_relative FROM ducklake_schema"
                        " WHERE end_snapshot IS NULL AND length(schema_name) = length($1)"
                        " ORDER BY schema_id",
                        mp_db_text(lake->schema));
    code = mp_db_sync(lake->db, err);
    if (code)
        return code;
    answer = mp_db_result(lake->db, number);
    for (uint32_t i = 0; i < answer->rows; i++) {
        if (mp_str_eq(mp_db_cell(answer, i, 1), lake->schema))
            best = i;
        else if (best == UINT32_MAX && mp_str_eq_fold(mp_db_cell(answer, i, 1), lake->schema))
            best = i;
    }
    if (best == UINT32_MAX)
        return mp_err_set(err, MP_NOT_FOUND, "there is no schema \"%.*s\" in the lake",
                          MP_STR_ARG(lake->schema));
    ret->id = mp_db_number(answer, best, 0, -1);
    ret->name = mp_arena_str(arena, mp_db_cell(answer, best, 1));
    code = relative_path(lake, ret->name, mp_db_cell(answer, best, 2), mp_db_truth(answer, best, 3),
                         err, &ret->path, &rooted);
    if (!code)
        ret->path = mp_arena_str(arena, ret->path);
    return code;
}

/* Row of the live table of this name in namespace, or UINT32_MAX. */
static uint32_t find_row(const struct mp_db_result *answer, struct mp_str name)
{
    uint32_t best = UINT32_MAX;

    for (uint32_t i = 0; i < answer->rows; i++) {
        if (mp_str_eq(mp_db_cell(answer, i, 2), name))
            return i;
        if (best == UINT32_MAX && mp_str_eq_fold(mp_db_cell(answer, i, 2), name))
            best = i;
    }
    return best;
}

/* MP_NOT_FOUND; but tables and views share their names, and a view is in the way. */
static enum mp_code no_table(struct mp_ducklake *lake, const struct mp_dl_namespace *space,
                             struct mp_str name, struct mp_err *err)
{
    const struct mp_db_result *answer;
    uint32_t number;
    enum mp_code code;

    number = MP_DB_SEND(lake->db,
                        "SELECT view_name FROM ducklake_view WHERE schema_id = $1"
                        " AND end_snapshot IS NULL AND length(view_name) = length($2)",
                        mp_db_int(space->id), mp_db_text(name));
    code = mp_db_sync(lake->db, err);
    if (code)
        return code;
    answer = mp_db_result(lake->db, number);
    for (uint32_t i = 0; i < answer->rows; i++)
        if (mp_str_eq_fold(mp_db_cell(answer, i, 0), name))
            return mp_err_set(err, MP_BAD_CONFIG, "\"%.*s\" is a view", MP_STR_ARG(name));
    return mp_err_set(err, MP_NOT_FOUND, "there is no table \"%.*s\".\"%.*s\" in the lake",
                      MP_STR_ARG(space->name), MP_STR_ARG(name));
}

static enum mp_code read_head(struct mp_ducklake *lake, struct mp_str name, struct mp_err *err,
                              struct mp_dl_table *table)
{
    struct mp_dl_namespace space;
    const struct mp_db_result *newest, *answer;
    uint32_t newest_number, number, row;
    struct mp_str path;
    bool rooted;
    enum mp_code code;

    newest_number = mp_db_send(lake->db,
                               "SELECT snapshot_id, schema_version FROM ducklake_snapshot"
                               " ORDER BY snapshot_id DESC LIMIT 1",
                               NULL, 0);
    code = mp_db_sync(lake->db, err);
    if (code)
        return code;
    newest = mp_db_result(lake->db, newest_number);
    if (newest->rows != 1)
        return mp_err_set(err, MP_BAD_CONFIG, "the lake has no snapshot at all");
    table->view.snapshot = mp_db_number(newest, 0, 0, -1);
    table->schema_version = mp_db_number(newest, 0, 1, -1);
    code = mp_dl_namespace_read(lake, &table->arena, err, &space);
    if (code)
        return code;
    number = MP_DB_SEND(lake->db,
                        "SELECT table_id, table_uuid, table_name, path, path_is_relative"
                        " FROM ducklake_table WHERE schema_id = $1 AND end_snapshot IS NULL"
                        " AND length(table_name) = length($2)",
                        mp_db_int(space.id), mp_db_text(name));
    code = mp_db_sync(lake->db, err);
    if (code)
        return code;
    answer = mp_db_result(lake->db, number);
    row = find_row(answer, name);
    if (row == UINT32_MAX)
        return no_table(lake, &space, name, err);
    table->view.schema_name = space.name;
    table->view.id = mp_db_number(answer, row, 0, -1);
    table->view.uuid = mp_arena_str(&table->arena, mp_db_cell(answer, row, 1));
    table->view.name = mp_arena_str(&table->arena, mp_db_cell(answer, row, 2));
    code = relative_path(lake, table->view.name, mp_db_cell(answer, row, 3),
                         mp_db_truth(answer, row, 4), err, &path, &rooted);
    if (code)
        return code;
    table->prefix =
        mp_str_c(mp_arena_printf(&table->arena, "%.*s%.*s", rooted ? 0 : (int)space.path.size,
                                 space.path.data, MP_STR_ARG(path)));
    if (has_parent_step(table->prefix))
        return mp_err_set(err, MP_BAD_CONFIG, "the path \"%.*s\" of table \"%.*s\" leads upwards",
                          MP_STR_ARG(table->prefix), MP_STR_ARG(name));
    return MP_OK;
}

static void take_columns(struct mp_dl_table *table, const struct mp_db_result *answer)
{
    struct mp_live_column *columns =
        mp_arena_take(&table->arena, sizeof(*columns) * (answer->rows + 1));
    uint32_t count = 0;

    for (uint32_t i = 0; i < answer->rows; i++) {
        struct mp_live_column *column = &columns[count];

        if (!mp_db_is_null(answer, i, 4))
            continue; /* the inside of another column */
        column->field_id = (int32_t)mp_db_number(answer, i, 0, 0);
        column->name = mp_arena_str(&table->arena, mp_db_cell(answer, i, 1));
        column->type = mp_type_of_ducklake_name(mp_db_cell(answer, i, 2));
        column->required = !mp_db_truth(answer, i, 3);
        column->default_not_null = !mp_db_is_null(answer, i, 5);
        count++;
    }
    table->view.schema.columns = columns;
    table->view.schema.column_count = count;
}

static struct mp_live_column *column_by_id(struct mp_dl_table *table, int64_t id)
{
    /* the array is ours and not yet lent */
    struct mp_live_column *columns = (struct mp_live_column *)table->view.schema.columns;

    for (uint32_t i = 0; i < table->view.schema.column_count; i++)
        if (columns[i].field_id == id)
            return &columns[i];
    return NULL;
}

static enum mp_code take_partition(struct mp_dl_table *table, const struct mp_db_result *answer,
                                   struct mp_err *err)
{
    struct mp_partition_field *fields =
        mp_arena_take(&table->arena, sizeof(*fields) * (answer->rows + 1));
    struct mp_str *names = mp_arena_take(&table->arena, sizeof(*names) * (answer->rows + 1));
    uint32_t count = 0;

    for (uint32_t i = 0; i < answer->rows; i++) {
        struct mp_str transform = mp_db_cell(answer, i, 2);
        struct mp_live_column *column;

        if (mp_db_is_null(answer, i, 1))
            continue; /* partitioning was reset: a spec without keys */
        column = column_by_id(table, mp_db_number(answer, i, 1, -1));
        if (!column)
            return mp_err_set(err, MP_BAD_CONFIG,
                              "table \"%.*s\" is partitioned by column id %lld, which is not live",
                              MP_STR_ARG(table->view.name),
                              (long long)mp_db_number(answer, i, 1, -1));
        if (!mp_dl_transform_parse(transform, &fields[count].transform, &fields[count].buckets))
            return mp_err_set(err, MP_BAD_CONFIG,
                              "table \"%.*s\" is partitioned by the unknown transform \"%.*s\" of"
                              " column \"%.*s\"",
                              MP_STR_ARG(table->view.name), MP_STR_ARG(transform),
                              MP_STR_ARG(column->name));
        column->partition_source = true;
        fields[count].field_id = column->field_id;
        names[count] = mp_dl_transform_directory(&table->arena, fields[count].transform,
                                                 column->name, names, count);
        table->partition_id = mp_db_number(answer, i, 0, -1);
        count++;
    }
    table->transform_names = names;
    table->view.schema.partition = fields;
    table->view.schema.partition_count = count;
    return MP_OK;
}

/* The column that a sort expression is; NULL: it is more than a name. */
static const struct mp_live_column *sort_column(struct mp_dl_table *table, struct mp_str text)
{
    char *name = mp_arena_take(&table->arena, text.size + 1);
    size_t size = 0;

    if (text.size < 2 || text.data[0] != '"' || text.data[text.size - 1] != '"')
        return mp_dl_column(&table->view.schema, text);
    for (size_t i = 1; i + 1 < text.size; i++) {
        if (text.data[i] == '"' && (++i + 1 >= text.size || text.data[i] != '"'))
            return NULL;
        name[size++] = text.data[i];
    }
    return mp_dl_column(&table->view.schema, mp_str_n(name, size));
}

static void take_sort(struct mp_dl_table *table, const struct mp_db_result *answer)
{
    struct mp_sort_field *fields =
        mp_arena_take(&table->arena, sizeof(*fields) * (answer->rows + 1));
    uint32_t count = 0;

    for (uint32_t i = 0; i < answer->rows; i++) {
        const struct mp_live_column *column = sort_column(table, mp_db_cell(answer, i, 1));

        table->sort_id = mp_db_number(answer, i, 0, -1);
        if (!column)
            continue;
        fields[count++] = (struct mp_sort_field){
            .field_id = column->field_id,
            .descending = mp_str_eq_fold(mp_db_cell(answer, i, 2), MP_STR("DESC")),
            .nulls_first = mp_str_eq_fold(mp_db_cell(answer, i, 3), MP_STR("NULLS_FIRST")),
        };
    }
    table->view.schema.sort = fields;
    table->view.schema.sort_count = count;
}

/* The nearest scope wins: table, then schema, then the lake. */
static void take_options(struct mp_dl_table *table, const struct mp_db_result *answer)
{
    int best = -1;

    for (uint32_t i = 0; i < answer->rows; i++) {
        int level = (int)mp_db_number(answer, i, 1, 0);

        if (level <= best)
            continue;
        best = level;
        table->hive = !mp_str_eq_fold(mp_db_cell(answer, i, 0), MP_STR("false"));
    }
}

enum mp_code mp_dl_table_read(struct mp_ducklake *lake, struct mp_str name, struct mp_err *err,
                              struct mp_dl_table **ret)
{
    struct mp_dl_table *table = table_new();
    uint32_t columns, partition, sort, options;
    struct mp_db_value id;
    enum mp_code code;

    code = read_head(lake, name, err, table);
    if (code)
        goto out;
    id = mp_db_int(table->view.id);
    columns = MP_DB_SEND(lake->db,
                         "SELECT column_id, column_name, column_type, nulls_allowed, parent_column,"
                         " initial_default FROM ducklake_column WHERE table_id = $1"
                         " AND end_snapshot IS NULL ORDER BY column_order, column_id",
                         id);
    partition = MP_DB_SEND(lake->db,
                           "SELECT i.partition_id, c.column_id, c.transform"
                           " FROM ducklake_partition_info i LEFT JOIN ducklake_partition_column c"
                           " ON c.partition_id = i.partition_id AND c.table_id = i.table_id"
                           " WHERE i.table_id = $1 AND i.end_snapshot IS NULL"
                           " ORDER BY c.partition_key_index",
                           id);
    sort = MP_DB_SEND(lake->db,
                      "SELECT i.sort_id, e.expression, e.sort_direction, e.null_order"
                      " FROM ducklake_sort_info i JOIN ducklake_sort_expression e"
                      " ON e.sort_id = i.sort_id AND e.table_id = i.table_id"
                      " WHERE i.table_id = $1 AND i.end_snapshot IS NULL"
                      " ORDER BY e.sort_key_index",
                      id);
    options = MP_DB_SEND(
        lake->db,
        "SELECT m.value, CASE WHEN m.scope = 'table' THEN 2 WHEN m.scope = 'schema' THEN 1"
        " ELSE 0 END FROM ducklake_metadata m WHERE m.key = 'hive_file_pattern' AND"
        " (m.scope IS NULL OR (m.scope = 'table' AND m.scope_id = $1) OR (m.scope = 'schema' AND"
        " m.scope_id = (SELECT t.schema_id FROM ducklake_table t WHERE t.table_id = $1"
        " AND t.end_snapshot IS NULL)))",
        id);
    code = mp_db_sync(lake->db, err);
    if (code)
        goto out;
    take_columns(table, mp_db_result(lake->db, columns));
    take_sort(table, mp_db_result(lake->db, sort));
    take_options(table, mp_db_result(lake->db, options));
    code = take_partition(table, mp_db_result(lake->db, partition), err);
out:
    if (code)
        mp_dl_table_free(table);
    else
        *ret = table;
    return code;
}

const struct mp_live_column *mp_dl_column(const struct mp_schema *schema, struct mp_str name)
{
    const struct mp_live_column *folded = NULL;

    for (uint32_t i = 0; i < schema->column_count; i++) {
        if (mp_str_eq(schema->columns[i].name, name))
            return &schema->columns[i];
        if (!folded && mp_str_eq_fold(schema->columns[i].name, name))
            folded = &schema->columns[i];
    }
    return folded;
}

const struct mp_lake_table *mp_dl_table_keep(struct mp_ducklake *lake, struct mp_dl_table **table)
{
    struct mp_dl_table *kept = *table, **link = &lake->tables;

    while (*link && !mp_str_eq_fold((*link)->view.name, kept->view.name))
        link = &(*link)->next;
    if (*link) {
        struct mp_dl_table *old = *link;

        kept->settled = old->settled && old->view.id == kept->view.id;
        *link = old->next;
        mp_dl_table_free(old);
    }
    kept->next = lake->tables;
    lake->tables = kept;
    *table = NULL;
    return &kept->view;
}

enum mp_code mp_dl_table_now(struct mp_ducklake *lake, struct mp_str name, struct mp_err *err,
                             struct mp_dl_table **ret)
{
    enum mp_code code = MP_OK;

    for (int i = 0; i < 2; i++) { /* once more where the connection had died */
        *ret = NULL;
        code = mp_db_ready(lake->db, err);
        if (code)
            return code;
        mp_db_begin(lake->db, MP_DB_READ);
        code = mp_dl_table_read(lake, name, err, ret);
        mp_db_rollback(lake->db);
        if (mp_db_class(lake->db) != MP_DB_LOST)
            break;
    }
    return code;
}

enum mp_code mp_dl_resolve(struct mp_lake *self, struct mp_str name, struct mp_err *err,
                           const struct mp_lake_table **ret)
{
    struct mp_ducklake *lake = (struct mp_ducklake *)self;
    struct mp_dl_table *table = NULL;
    enum mp_code code = mp_dl_table_now(lake, name, err, &table);

    if (code) {
        mp_err_add(err, "resolve table \"%.*s\"", MP_STR_ARG(name));
        return code;
    }
    *ret = mp_dl_table_keep(lake, &table);
    return MP_OK;
}
