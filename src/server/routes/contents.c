/* server/routes/contents.c - what is in a table: files, scan plans, changes, statistics. */
#include "server/tables.h"

#include "base/base64.h"
#include "server/routes/routes.h"

#include <stdlib.h>

/* The columns every list of files begins with. */
#define FILE_COLUMNS                                                                               \
    "f.data_file_id, f.path, f.record_count, f.file_size_bytes, f.footer_size, f.row_id_start,"    \
    " f.stats_state, f.spec_id, f.partition_values, f.explicit_row_ids, f.begin_snapshot"
enum { FILE_COLUMN_COUNT = 11 };
#define VISIBLE(row)                                                                               \
    row ".begin_snapshot <= $3 AND (" row ".end_snapshot IS NULL OR $3 < " row ".end_snapshot)"

/* A text[] as PostgreSQL prints it, as a JSON array. */
static void print_text_array(struct mp_buf *out, struct mp_str text)
{
    struct mp_sql_items items = {.text = text};
    struct mp_buf item = MP_BUF_INIT(SIZE_MAX / 4);
    bool null, first = true;

    mp_buf_add_byte(out, '[');
    for (; mp_sql_items_next(&items, &item, &null); first = false) {
        mp_buf_add_c(out, first ? "" : ",");
        if (null)
            mp_buf_add_c(out, "null");
        else
            mp_buf_add_json(out, mp_buf_str(&item));
    }
    mp_buf_add_byte(out, ']');
    mp_buf_fini(&item);
}

/* Opens the object and leaves it open. */
static void print_file(struct mp_buf *out, const struct mp_sql *sql, uint32_t number, uint32_t row)
{
    mp_buf_add_byte(out, '{');
    mp_wire_member_int(out, "data_file_id", mp_sql_int(sql, number, row, 0, 0));
    mp_wire_member_text(out, "path", mp_sql_cell(sql, number, row, 1));
    mp_wire_member_text(out, "file_format", MP_STR("parquet"));
    mp_wire_member_int(out, "record_count", mp_sql_int(sql, number, row, 2, 0));
    mp_wire_member_int(out, "file_size_bytes", mp_sql_int(sql, number, row, 3, 0));
    if (!mp_sql_null(sql, number, row, 4))
        mp_wire_member_int(out, "footer_size", mp_sql_int(sql, number, row, 4, 0));
    mp_wire_member_int(out, "row_id_start", mp_sql_int(sql, number, row, 5, 0));
    mp_wire_member_text(out, "stats_state", mp_sql_cell(sql, number, row, 6));
    mp_wire_member_int(out, "begin_snapshot", mp_sql_int(sql, number, row, 10, 0));
    if (!mp_sql_null(sql, number, row, 7))
        mp_wire_member_int(out, "spec_id", mp_sql_int(sql, number, row, 7, 0));
    if (!mp_sql_null(sql, number, row, 8)) {
        mp_wire_member(out, "partition_values");
        print_text_array(out, mp_sql_cell(sql, number, row, 8));
    }
    mp_wire_member_bool(out, "explicit_row_ids", mp_sql_true(sql, number, row, 9));
}

/* --- files --- */

/* The first column of the table's sort order; field_id 0: there is none that has bounds. */
struct ordering {
    struct mp_column_place place;
    int64_t field_id;
};

static struct ordering ordering_of(struct mp_call *call, const struct mp_table *table)
{
    struct ordering ordering = {.field_id = 0};

    if (table->sort.field_count &&
        mp_columns_find(&call->arena, table->columns, table->sort.fields[0].source_field_id,
                        &ordering.place) &&
        mp_hog_types[ordering.place.type].bound != MP_HOG_BOUND_NONE)
        ordering.field_id = table->sort.fields[0].source_field_id;
    return ordering;
}

static void print_bound(struct mp_buf *out, const char *name, struct mp_arena *arena,
                        const struct mp_column_place *place, const json_t *text)
{
    struct mp_str bytes = {NULL, 0};

    mp_wire_member(out, name);
    if (json_is_string(text) &&
        !mp_base64_read(arena, mp_str_n(json_string_value(text), json_string_length(text)), &bytes))
        bytes = (struct mp_str){NULL, 0};
    mp_hog_bound_print(out, place->type, mp_column_scale(place->column), bytes);
}

/* Where the file has statistics of that column. */
static void print_ordering(struct mp_buf *out, const struct ordering *ordering,
                           struct mp_str stats_text)
{
    json_t *stats = json_loadb(stats_text.data, stats_text.size, 0, NULL);
    struct mp_arena arena;

    mp_arena_init(&arena, 0);
    for (size_t i = 0; i < json_array_size(stats); i++) {
        const json_t *row = json_array_get(stats, i);

        if (json_integer_value(json_array_get(row, 0)) != ordering->field_id)
            continue;
        mp_wire_member(out, "ordering_bounds");
        mp_buf_add_byte(out, '{');
        mp_wire_member_int(out, "field_id", ordering->field_id);
        print_bound(out, "lower_bound", &arena, &ordering->place, json_array_get(row, 5));
        print_bound(out, "upper_bound", &arena, &ordering->place, json_array_get(row, 6));
        mp_buf_add_byte(out, '}');
    }
    mp_arena_fini(&arena);
    json_decref(stats);
}

struct partition_filter {
    struct mp_sql_array keys, values;
};

static enum mp_code read_filter(struct mp_call *call, uint32_t arity,
                                struct partition_filter *filter)
{
    for (uint32_t i = 0; i < call->query_count; i++) {
        struct mp_str value;
        uint32_t key;
        enum mp_code code;

        if (!mp_str_eq(call->query[i].name, MP_STR("partition")))
            continue;
        code = mp_call_key_value(call, "partition", call->query[i].value, arity, &key, &value);
        if (code)
            return code;
        mp_sql_array_int(&filter->keys, (int64_t)key + 1);
        mp_sql_array_text(&filter->values, value);
    }
    return MP_OK;
}

/* The order is a number in the statement, so its text stays constant. */
static enum mp_code read_order(struct mp_call *call, int64_t *ret)
{
    static const char *const orders[] = {"id",   "path",  "record_count",
                                         "size", "stats", "begin_snapshot"};
    struct mp_str sort = mp_call_query(call, "sort"), order = mp_call_query(call, "order");
    int64_t found = 0;

    for (int64_t i = 0; sort.data && i < 6; i++)
        if (mp_str_eq(sort, mp_str_c(orders[i])))
            found = i + 1;
    if (sort.data && !found)
        return mp_refuse_bad(call, "sort must be one of id, path, record_count, size, stats, "
                                   "begin_snapshot");
    if (order.data && !mp_str_eq(order, MP_STR("asc")) && !mp_str_eq(order, MP_STR("desc")))
        return mp_refuse_bad(call, "order must be asc or desc");
    if (order.data && mp_str_eq(order, MP_STR("desc")))
        found = found ? -found : -7;
    *ret = found;
    return MP_OK;
}

#define FILES(more)                                                                                \
    "SELECT " FILE_COLUMNS more " FROM hog_data_file f WHERE f.catalog_id = $1"                    \
    " AND f.table_id = $2 AND " VISIBLE(                                                           \
        "f") " AND NOT EXISTS (SELECT 1 FROM unnest($4, $5) AS p(key, value)"                      \
             "  WHERE f.partition_values[p.key::int] IS DISTINCT FROM p.value)"                    \
             " ORDER BY CASE $6 WHEN 1 THEN f.data_file_id WHEN 3 THEN f.record_count"             \
             "  WHEN 4 THEN f.file_size_bytes WHEN 6 THEN f.begin_snapshot END,"                   \
             " CASE $6 WHEN -1 THEN f.data_file_id WHEN -3 THEN f.record_count"                    \
             "  WHEN -4 THEN f.file_size_bytes WHEN -6 THEN f.begin_snapshot"                      \
             "  WHEN -7 THEN f.begin_snapshot END DESC,"                                           \
             " CASE $6 WHEN 2 THEN f.path WHEN 5 THEN f.stats_state END COLLATE \"C\","            \
             " CASE $6 WHEN -2 THEN f.path WHEN -5 THEN f.stats_state END COLLATE \"C\" DESC,"     \
             " CASE $6 WHEN -7 THEN f.row_id_start END DESC,"                                      \
             " f.begin_snapshot, f.row_id_start, f.data_file_id LIMIT $7 OFFSET $8"

static const char list_files[] = FILES("");
static const char list_files_with_stats[] =
    FILES(", (SELECT s.stats FROM hog_file_stats s"
          "  WHERE s.catalog_id = f.catalog_id AND s.data_file_id = f.data_file_id)");

enum mp_code mp_route_files(struct mp_call *call)
{
    enum { LIMIT_MAX = 10000 };
    struct partition_filter filter;
    struct ordering ordering;
    struct mp_table table;
    struct mp_at at;
    int64_t limit = 0, offset = 0, order = 0;
    bool has_limit = false;
    uint32_t number;
    enum mp_code code = read_order(call, &order);

    mp_sql_array_init(&filter.keys, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&filter.values, MP_PG_TEXT_ARRAY);
    if (!code)
        code = mp_call_query_int(call, "limit", &limit, &has_limit);
    if (!code)
        code = mp_call_query_int(call, "offset", &offset, NULL);
    if (!code && has_limit && limit < 1)
        code = mp_refuse_bad(call, "limit must be at least 1");
    if (!code && offset < 0)
        code = mp_refuse_bad(call, "offset must not be negative");
    if (!code)
        code = mp_table_find(call, &at, &table);
    if (!code)
        code = mp_table_definition(call, call->sql, at.catalog_id, at.snapshot, &table);
    if (!code)
        code = read_filter(call, table.partition.field_count, &filter);
    if (code)
        goto out;
    ordering = ordering_of(call, &table);
    number = mp_sql_send(
        call->sql, ordering.field_id ? list_files_with_stats : list_files,
        (const struct mp_v[]){
            mp_v_int(at.catalog_id), mp_v_int(table.table_id), mp_v_int(at.snapshot),
            mp_sql_array_value(&filter.keys), mp_sql_array_value(&filter.values), mp_v_int(order),
            mp_v_int_or_null(has_limit, limit > LIMIT_MAX ? LIMIT_MAX : limit), mp_v_int(offset)},
        8);
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        goto out;
    mp_buf_add_byte(&call->out, '[');
    for (uint32_t i = 0; i < mp_sql_rows(call->sql, number); i++) {
        if (i)
            mp_buf_add_byte(&call->out, ',');
        print_file(&call->out, call->sql, number, i);
        if (ordering.field_id && !mp_sql_null(call->sql, number, i, FILE_COLUMN_COUNT))
            print_ordering(&call->out, &ordering,
                           mp_sql_cell(call->sql, number, i, FILE_COLUMN_COUNT));
        mp_buf_add_byte(&call->out, '}');
    }
    mp_buf_add_byte(&call->out, ']');
out:
    mp_sql_array_fini(&filter.keys);
    mp_sql_array_fini(&filter.values);
    return code;
}

/* --- statistics --- */

struct fields {
    struct mp_arena *arena;
    struct mp_columns columns;
    const int64_t *wanted; /* NULL: all */
    uint32_t wanted_count;
};

static bool wants(const struct fields *fields, int64_t id)
{
    for (uint32_t i = 0; i < fields->wanted_count; i++)
        if (fields->wanted[i] == id)
            return true;
    return !fields->wanted;
}

/* One column's statistics; full: as in FileStats. False: the column is not visible. */
static bool print_stats(struct mp_buf *out, const struct fields *fields, const json_t *row,
                        bool full, bool first)
{
    int64_t id = json_integer_value(json_array_get(row, 0));
    struct mp_column_place place;

    if (!wants(fields, id) || !mp_columns_find(fields->arena, fields->columns, id, &place))
        return false;
    mp_buf_add_c(out, first ? "{" : ",{");
    mp_wire_member_int(out, "field_id", id);
    if (full) {
        mp_wire_member_text(out, "name", place.column->name);
        mp_wire_member_text(out, "path", mp_str_c(place.path));
        mp_wire_member_text(out, "type", place.column->type);
        if (place.column->type_params.data) {
            mp_wire_member(out, "type_params");
            mp_buf_add_str(out, place.column->type_params);
        }
    }
    mp_wire_member_int(out, "value_count", json_integer_value(json_array_get(row, 1)));
    mp_wire_member_int(out, "null_count", json_integer_value(json_array_get(row, 2)));
    if (json_is_integer(json_array_get(row, 3)))
        mp_wire_member_int(out, "nan_count", json_integer_value(json_array_get(row, 3)));
    if (full && json_is_integer(json_array_get(row, 4)))
        mp_wire_member_int(out, "size_bytes", json_integer_value(json_array_get(row, 4)));
    print_bound(out, "lower_bound", fields->arena, &place, json_array_get(row, 5));
    print_bound(out, "upper_bound", fields->arena, &place, json_array_get(row, 6));
    mp_buf_add_byte(out, '}');
    return true;
}

static void print_all_stats(struct mp_buf *out, const struct fields *fields, struct mp_str text,
                            bool full)
{
    json_t *stats = text.data ? json_loadb(text.data, text.size, 0, NULL) : NULL;
    bool first = true;

    mp_buf_add_byte(out, '[');
    for (size_t i = 0; i < json_array_size(stats); i++)
        if (print_stats(out, fields, json_array_get(stats, i), full, first))
            first = false;
    mp_buf_add_byte(out, ']');
    json_decref(stats);
}

enum mp_code mp_route_file_stats(struct mp_call *call)
{
    struct fields fields = {.arena = &call->arena};
    struct mp_table table;
    struct mp_at at;
    struct mp_str state;
    int64_t id = 0;
    uint32_t number;
    char *end;
    enum mp_code code;

    id = strtoll(mp_arena_str(&call->arena, call->parts[3]).data, &end, 10);
    if (*end || call->parts[3].size > 18)
        return mp_refuse_bad(call, "the file id must be an integer");
    code = mp_table_find(call, &at, &table);
    if (!code)
        code = mp_table_definition(call, call->sql, at.catalog_id, at.snapshot, &table);
    if (code)
        return code;
    number = MP_SQL(call->sql,
                    "SELECT f.stats_state, s.stats FROM hog_data_file f LEFT JOIN hog_file_stats s"
                    " USING (catalog_id, data_file_id) WHERE f.catalog_id = $1"
                    " AND f.table_id = $2 AND " VISIBLE("f") " AND f.data_file_id = $4",
                    mp_v_int(at.catalog_id), mp_v_int(table.table_id), mp_v_int(at.snapshot),
                    mp_v_int(id));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (!mp_sql_rows(call->sql, number))
        return mp_refuse_missing(call, "data file %lld is not visible there", (long long)id);
    fields.columns = table.columns;
    state = mp_sql_cell(call->sql, number, 0, 0);
    mp_buf_add_byte(&call->out, '{');
    mp_wire_member_int(&call->out, "data_file_id", id);
    mp_wire_member_text(&call->out, "stats_state", state);
    mp_wire_member(&call->out, "columns");
    print_all_stats(&call->out, &fields, mp_sql_cell(call->sql, number, 0, 1), true);
    if (mp_sql_null(call->sql, number, 0, 1))
        mp_wire_member_text(&call->out, "no_stats_reason",
                            mp_str_eq(state, MP_STR("provided")) ? MP_STR("none_provided") : state);
    mp_buf_add_byte(&call->out, '}');
    return MP_OK;
}

/* --- scan --- */

/* All values of a query parameter, each a list separated by commas. */
static struct mp_str *query_list(struct mp_call *call, const char *name, uint32_t *ret_count,
                                 bool *ret_given)
{
    struct mp_str *items;
    uint32_t count = 0, room = 0;

    *ret_given = false;
    for (uint32_t i = 0; i < call->query_count; i++)
        room += 1 + (uint32_t)call->query[i].value.size;
    items = mp_arena_take(&call->arena, (room + 1) * sizeof(*items));
    for (uint32_t i = 0; i < call->query_count; i++) {
        struct mp_str value = call->query[i].value;
        size_t begin = 0;

        if (!mp_str_eq(call->query[i].name, mp_str_c(name)))
            continue;
        *ret_given = true;
        for (size_t k = 0; k <= value.size; k++)
            if (k == value.size || value.data[k] == ',') {
                items[count++] = mp_str_n(value.data + begin, k - begin);
                begin = k + 1;
            }
    }
    *ret_count = count;
    return items;
}

struct scan_options {
    bool stats, splits;
    int64_t *fields;
    uint32_t field_count;
    bool has_fields;
};

static enum mp_code read_scan_options(struct mp_call *call, struct scan_options *ret)
{
    uint32_t count;
    bool given;
    struct mp_str *items = query_list(call, "include", &count, &given);

    *ret = (struct scan_options){0};
    if (given && count > 16)
        return mp_refuse_bad(call, "include has too many entries");
    for (uint32_t i = 0; i < count; i++) {
        if (!items[i].size)
            return mp_refuse_bad(call, "include has an empty entry");
        if (mp_str_eq(items[i], MP_STR("column_stats")))
            ret->stats = true;
        else if (mp_str_eq(items[i], MP_STR("split_offsets")))
            ret->splits = true;
        else
            return mp_refuse_invalid(call, "include: unknown entry \"%.*s\"",
                                     items[i].size > 60 ? 60 : (int)items[i].size, items[i].data);
    }
    items = query_list(call, "stats_fields", &count, &ret->has_fields);
    if (!ret->has_fields)
        return MP_OK;
    if (count > 10000)
        return mp_refuse_bad(call, "stats_fields has too many entries");
    ret->fields = mp_arena_take(&call->arena, (count + 1) * sizeof(*ret->fields));
    for (uint32_t i = 0; i < count; i++) {
        char *end, *text = mp_arena_printf(&call->arena, "%.*s", MP_STR_ARG(items[i]));

        ret->fields[i] = strtoll(text, &end, 10);
        if (!*text || *end || items[i].size > 18)
            return mp_refuse_bad(call, "stats_fields must hold integers");
    }
    ret->field_count = count;
    if (!ret->stats)
        return mp_refuse_invalid(call, "stats_fields needs include=column_stats");
    return MP_OK;
}

static void print_delete(struct mp_buf *out, const struct mp_sql *sql, uint32_t number,
                         uint32_t row, uint32_t column, int64_t data_file_id)
{
    mp_buf_add_byte(out, '{');
    mp_wire_member_int(out, "delete_file_id", mp_sql_int(sql, number, row, column, 0));
    mp_wire_member_int(out, "data_file_id", data_file_id);
    mp_wire_member_text(out, "path", mp_sql_cell(sql, number, row, column + 1));
    mp_wire_member_text(out, "file_format", MP_STR("puffin-dv"));
    mp_wire_member_int(out, "delete_count", mp_sql_int(sql, number, row, column + 2, 0));
    mp_wire_member_int(out, "file_size_bytes", mp_sql_int(sql, number, row, column + 3, 0));
    mp_wire_member_int(out, "begin_snapshot", mp_sql_int(sql, number, row, column + 4, 0));
    mp_buf_add_byte(out, '}');
}

static void count_leaf(void *self, const struct mp_column_place *place)
{
    *(int64_t *)self += !mp_hog_types[place->type].container && place->type != MP_HOG_VARIANT;
}

static enum mp_code check_scan_size(struct mp_call *call, const struct scan_options *options,
                                    const struct mp_table *table, int64_t files)
{
    enum { ENTRIES_MAX = 1000000 };
    int64_t leaves = 0;

    if (!options->stats)
        return MP_OK;
    if (options->has_fields)
        leaves = options->field_count;
    else
        mp_columns_walk(&call->arena, table->columns, count_leaf, &leaves);
    if (leaves * files > ENTRIES_MAX)
        return mp_refuse_invalid(call,
                                 "statistics of %lld files and %lld columns are more than %d "
                                 "entries",
                                 (long long)files, (long long)leaves, ENTRIES_MAX);
    return MP_OK;
}

#define SCAN(stats, join)                                                                          \
    "SELECT " FILE_COLUMNS ", d.delete_file_id, d.path, d.delete_count, d.file_size_bytes,"        \
    " d.begin_snapshot, " stats ", CASE WHEN $4 THEN f.split_offsets END"                          \
    " FROM hog_data_file f LEFT JOIN hog_delete_file d ON d.catalog_id = f.catalog_id"             \
    " AND d.data_file_id = f.data_file_id AND " VISIBLE("d") join                                  \
        " WHERE f.catalog_id = $1 AND f.table_id = $2 AND " VISIBLE(                               \
            "f") " ORDER BY f.row_id_start, f.data_file_id"

static const char scan_files[] = SCAN("NULL", "");
static const char scan_with_stats[] = SCAN("s.stats", " LEFT JOIN hog_file_stats s"
                                                      " ON s.catalog_id = f.catalog_id"
                                                      " AND s.data_file_id = f.data_file_id");

enum mp_code mp_route_scan(struct mp_call *call)
{
    enum { DELETE = FILE_COLUMN_COUNT, STATS = DELETE + 5, SPLITS };
    struct scan_options options;
    struct fields fields = {.arena = &call->arena};
    struct mp_table table;
    struct mp_at at;
    uint32_t number;
    enum mp_code code = read_scan_options(call, &options);

    if (!code)
        code = mp_table_find(call, &at, &table);
    if (!code && options.stats)
        code = mp_table_definition(call, call->sql, at.catalog_id, at.snapshot, &table);
    if (code)
        return code;
    number = mp_sql_send(call->sql, options.stats ? scan_with_stats : scan_files,
                         (const struct mp_v[]){mp_v_int(at.catalog_id), mp_v_int(table.table_id),
                                               mp_v_int(at.snapshot), mp_v_bool(options.splits)},
                         4);
    code = mp_sql_sync(call->sql, &call->err);
    if (!code)
        code = check_scan_size(call, &options, &table, mp_sql_rows(call->sql, number));
    if (code)
        return code;
    fields.columns = table.columns;
    fields.wanted = options.has_fields ? options.fields : NULL;
    fields.wanted_count = options.field_count;
    mp_buf_add_byte(&call->out, '[');
    for (uint32_t i = 0; i < mp_sql_rows(call->sql, number); i++) {
        mp_buf_add_c(&call->out, i ? ",{\"data_file\":" : "{\"data_file\":");
        print_file(&call->out, call->sql, number, i);
        if (options.stats && mp_str_eq(mp_sql_cell(call->sql, number, i, 6), MP_STR("provided"))) {
            mp_wire_member(&call->out, "column_stats");
            print_all_stats(&call->out, &fields, mp_sql_cell(call->sql, number, i, STATS), false);
        }
        if (options.splits && !mp_sql_null(call->sql, number, i, SPLITS)) {
            struct mp_str text = mp_sql_cell(call->sql, number, i, SPLITS);

            mp_wire_member(&call->out, "split_offsets"); /* {1,2} is [1,2] but for its braces */
            mp_buf_printf(&call->out, "[%.*s]", (int)text.size - 2, text.data + 1);
        }
        mp_buf_add_byte(&call->out, '}');
        if (!mp_sql_null(call->sql, number, i, DELETE)) {
            mp_buf_add_c(&call->out, ",\"delete_file\":");
            print_delete(&call->out, call->sql, number, i, DELETE,
                         mp_sql_int(call->sql, number, i, 0, 0));
        }
        mp_buf_add_byte(&call->out, '}');
    }
    mp_buf_add_byte(&call->out, ']');
    return MP_OK;
}

/* --- changes --- */

enum mp_code mp_route_changes(struct mp_call *call)
{
    struct mp_table table = {.namespace_name = call->parts[1]};
    struct mp_at at;
    struct mp_buf *out = &call->out;
    int64_t from = 0, to = 0;
    bool has_from = false, has_to = false;
    uint32_t number, barrier, files, deletes;
    enum mp_code code = mp_call_query_int(call, "from_snapshot", &from, &has_from);

    if (!code)
        code = mp_call_query_int(call, "to_snapshot", &to, &has_to);
    if (!code && !has_from)
        code = mp_refuse_bad(call, "the query parameter \"from_snapshot\" is required");
    if (!code)
        code = mp_at_read(call, &at);
    if (code)
        return code;
    to = has_to ? to : at.head;
    if (to < 0 || to > at.head)
        return mp_refuse_invalid(call, "to_snapshot %lld is outside of 0 to %lld", (long long)to,
                                 (long long)at.head);
    if (from < 0 || from > to)
        return mp_refuse_invalid(call, "from_snapshot %lld is outside of 0 to %lld",
                                 (long long)from, (long long)to);
    if (from < at.floor - 1)
        return mp_refuse(call, 410, "expired", "from_snapshot %lld has expired; the oldest is %lld",
                         (long long)from, (long long)at.floor - 1);
    code = mp_namespace_find(call, call->sql, at.catalog_id, call->parts[1], &table.namespace_id);
    if (code)
        return code;
    number =
        MP_SQL(call->sql,
               "SELECT t.table_id, t.table_uuid FROM hog_table_version v"
               " JOIN hog_table t USING (catalog_id, table_id)"
               " WHERE v.catalog_id = $1 AND v.namespace_id = $2 AND v.name = $4"
               " AND " VISIBLE("v") " AND (t.dropped_snapshot IS NULL OR $3 < t.dropped_snapshot)",
               mp_v_int(at.catalog_id), mp_v_int(table.namespace_id), mp_v_int(to),
               mp_v_text(call->parts[2]));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (!mp_sql_rows(call->sql, number))
        return mp_refuse_missing(call, "table \"%.*s.%.*s\" does not exist at that snapshot",
                                 MP_STR_ARG(call->parts[1]), MP_STR_ARG(call->parts[2]));
    table.table_id = mp_sql_int(call->sql, number, 0, 0, 0);
    table.uuid = mp_sql_copy(call->sql, &call->arena, number, 0, 1);
    mp_sql_say(call->sql, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    barrier =
        MP_SQL(call->sql,
               "SELECT a.snapshot_id FROM hog_snapshot_change a JOIN hog_snapshot_change d"
               " USING (catalog_id, object_id, snapshot_id) WHERE a.catalog_id = $1"
               " AND a.object_id = $2 AND a.kind = 'table_altered'"
               " AND d.kind = 'table_deleted_from' AND a.snapshot_id > $3"
               " AND a.snapshot_id <= $4 LIMIT 1",
               mp_v_int(at.catalog_id), mp_v_int(table.table_id), mp_v_int(from), mp_v_int(to));
    files = MP_SQL(call->sql,
                   "SELECT " FILE_COLUMNS " FROM hog_data_file f WHERE f.catalog_id = $1"
                   " AND f.table_id = $2 AND f.begin_snapshot > $3 AND f.begin_snapshot <= $4"
                   " AND NOT f.compacted ORDER BY f.begin_snapshot, f.row_id_start, f.data_file_id",
                   mp_v_int(at.catalog_id), mp_v_int(table.table_id), mp_v_int(from), mp_v_int(to));
    deletes =
        MP_SQL(call->sql,
               "SELECT delete_file_id, path, delete_count, file_size_bytes, begin_snapshot,"
               " data_file_id FROM hog_delete_file WHERE catalog_id = $1 AND table_id = $2"
               " AND begin_snapshot > $3 AND begin_snapshot <= $4"
               " ORDER BY begin_snapshot, delete_file_id",
               mp_v_int(at.catalog_id), mp_v_int(table.table_id), mp_v_int(from), mp_v_int(to));
    mp_sql_say(call->sql, "COMMIT");
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (mp_sql_rows(call->sql, barrier))
        return mp_refuse(call, 409, "reconciliation_required",
                         "the table was truncated or replaced at snapshot %lld; read it whole and "
                         "go on from there",
                         (long long)mp_sql_int(call->sql, barrier, 0, 0, 0));
    mp_buf_add_byte(out, '{');
    mp_wire_member_text(out, "table_uuid", table.uuid);
    mp_wire_member_int(out, "from_snapshot", from);
    mp_wire_member_int(out, "to_snapshot", to);
    mp_wire_member(out, "files");
    mp_buf_add_byte(out, '[');
    for (uint32_t i = 0; i < mp_sql_rows(call->sql, files); i++) {
        if (i)
            mp_buf_add_byte(out, ',');
        print_file(out, call->sql, files, i);
        mp_buf_add_byte(out, '}');
    }
    mp_buf_add_c(out, "],\"delete_files\":[");
    for (uint32_t i = 0; i < mp_sql_rows(call->sql, deletes); i++) {
        if (i)
            mp_buf_add_byte(out, ',');
        print_delete(out, call->sql, deletes, i, 0, mp_sql_int(call->sql, deletes, i, 5, 0));
    }
    mp_buf_add_c(out, "]}");
    return MP_OK;
}
