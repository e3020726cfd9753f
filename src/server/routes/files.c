/* server/routes/files.c - the data files of a table, in the order that is asked for. */
#include "server/routes/contents.h"

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

/* Where the file has statistics of that column. */
static void print_ordering(struct mp_buf *out, struct mp_arena *scratch,
                           const struct ordering *ordering, struct mp_str stats_text)
{
    json_t *stats = json_loadb(stats_text.data, stats_text.size, 0, NULL);

    for (size_t i = 0; i < json_array_size(stats); i++) {
        const json_t *row = json_array_get(stats, i);

        if (json_integer_value(json_array_get(row, 0)) != ordering->field_id)
            continue;
        mp_wire_member(out, "ordering_bounds");
        mp_buf_add_byte(out, '{');
        mp_wire_member_int(out, "field_id", ordering->field_id);
        mp_bound_member(out, "lower_bound", scratch, &ordering->place, json_array_get(row, 5));
        mp_bound_member(out, "upper_bound", scratch, &ordering->place, json_array_get(row, 6));
        mp_buf_add_byte(out, '}');
    }
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

static const char files_ids[] =
    "SELECT ARRAY(SELECT f.data_file_id FROM hog_data_file f WHERE f.catalog_id = $1"
    " AND f.table_id = $2 AND " MP_VISIBLE(
        "f") " AND NOT EXISTS (SELECT 1 FROM unnest($4, $5) AS p(key, value)"
             "  WHERE f.partition_values[p.key::int] IS DISTINCT FROM p.value)"
             " ORDER BY CASE $6 WHEN 1 THEN f.data_file_id WHEN 3 THEN f.record_count"
             "  WHEN 4 THEN f.file_size_bytes WHEN 6 THEN f.begin_snapshot END,"
             " CASE $6 WHEN -1 THEN f.data_file_id WHEN -3 THEN f.record_count"
             "  WHEN -4 THEN f.file_size_bytes WHEN -6 THEN f.begin_snapshot"
             "  WHEN -7 THEN f.begin_snapshot END DESC,"
             " CASE $6 WHEN 2 THEN f.path WHEN 5 THEN f.stats_state END COLLATE \"C\","
             " CASE $6 WHEN -2 THEN f.path WHEN -5 THEN f.stats_state END COLLATE \"C\" DESC,"
             " CASE $6 WHEN -7 THEN f.row_id_start END DESC,"
             " f.begin_snapshot, f.row_id_start, f.data_file_id LIMIT $7 OFFSET $8)";

static const char files_page[] = MP_FILE_PAGE("", "");
static const char files_page_with_stats[] = MP_FILE_PAGE(MP_FILE_STATS, "");

static void print_listed(struct mp_call *call, const struct mp_pages_list *list, uint32_t number,
                         uint32_t row)
{
    const struct ordering *ordering = list->self;

    mp_file_print(&call->out, call->sql, number, row);
    if (ordering->field_id && !mp_sql_null(call->sql, number, row, MP_FILE_COLUMN_COUNT))
        print_ordering(&call->out, &call->pages->scratch, ordering,
                       mp_sql_cell(call->sql, number, row, MP_FILE_COLUMN_COUNT));
    mp_buf_add_byte(&call->out, '}');
}

enum mp_code mp_route_files(struct mp_call *call)
{
    enum { LIMIT_MAX = 10000 };
    struct partition_filter filter;
    struct ordering *ordering = mp_arena_take(&call->arena, sizeof(*ordering));
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
    *ordering = ordering_of(call, &table);
    number = MP_SQL(call->sql, files_ids, mp_v_int(at.catalog_id), mp_v_int(table.table_id),
                    mp_v_int(at.snapshot), mp_sql_array_value(&filter.keys),
                    mp_sql_array_value(&filter.values), mp_v_int(order),
                    mp_v_int_or_null(has_limit, limit > LIMIT_MAX ? LIMIT_MAX : limit),
                    mp_v_int(offset));
    code = mp_pages_begin(call, &at, at.snapshot);
    if (code)
        goto out;
    mp_pages_add(call, number,
                 &(struct mp_pages_list){
                     .page = ordering->field_id ? files_page_with_stats : files_page,
                     .rows_max = ordering->field_id ? mp_stats_page_rows(mp_columns_leaves(
                                                          &call->arena, table.columns))
                                                    : 0,
                     .print = print_listed,
                     .self = ordering,
                 });
    code = mp_pages_print(call);
out:
    mp_sql_array_fini(&filter.keys);
    mp_sql_array_fini(&filter.values);
    return code;
}
