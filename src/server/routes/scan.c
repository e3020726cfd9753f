/* server/routes/scan.c - what a reader of a table reads: its files with their deletion vectors. */
#include "server/routes/contents.h"

#include <stdlib.h>

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

/* How many different ones there are, counted no further than one above max. */
static uint32_t distinct_texts(const struct mp_str *items, uint32_t count, uint32_t max)
{
    uint32_t distinct = 0;

    for (uint32_t i = 0; i < count && distinct <= max; i++) {
        uint32_t first = 0;

        while (!mp_str_eq(items[first], items[i]))
            first++;
        distinct += first == i;
    }
    return distinct;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Sorts them, each once; gives how many are left. */
static uint32_t sort_distinct(int64_t *numbers, uint32_t count)
{
    uint32_t left = 0;

    qsort(numbers, count, sizeof(*numbers), by_number);
    for (uint32_t i = 0; i < count; i++)
        if (!left || numbers[left - 1] != numbers[i])
            numbers[left++] = numbers[i];
    return left;
}

struct scan {
    bool stats, splits, has_fields;
    struct mp_stats_fields fields;
};

static enum mp_code read_options(struct mp_call *call, struct scan *ret)
{
    enum { INCLUDE_MAX = 16, FIELDS_MAX = 10000 };
    uint32_t count;
    bool given;
    struct mp_str *items = query_list(call, "include", &count, &given);
    int64_t *fields;

    *ret = (struct scan){0};
    if (distinct_texts(items, count, INCLUDE_MAX) > INCLUDE_MAX)
        return mp_refuse_bad(call, "include has more than %d entries", INCLUDE_MAX);
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
    fields = mp_arena_take(&call->arena, (count + 1) * sizeof(*fields));
    for (uint32_t i = 0; i < count; i++)
        if (!mp_call_int(items[i], &fields[i]))
            return mp_refuse_bad(call, "stats_fields must hold integers");
    ret->fields.wanted = fields;
    ret->fields.wanted_count = sort_distinct(fields, count);
    if (ret->fields.wanted_count > FIELDS_MAX)
        return mp_refuse_bad(call, "stats_fields has more than %d entries", FIELDS_MAX);
    if (!ret->stats)
        return mp_refuse_invalid(call, "stats_fields needs include=column_stats");
    return MP_OK;
}

static enum mp_code check_size(struct mp_call *call, const struct scan *scan, int64_t files)
{
    enum { ENTRIES_MAX = 1000000 };
    int64_t leaves = 0;

    if (!scan->stats)
        return MP_OK;
    leaves = scan->has_fields ? scan->fields.wanted_count
                              : mp_columns_leaves(&call->arena, scan->fields.columns);
    if (leaves * files > ENTRIES_MAX)
        return mp_refuse_invalid(call,
                                 "statistics of %lld files and %lld columns are more than %d "
                                 "entries",
                                 (long long)files, (long long)leaves, ENTRIES_MAX);
    return MP_OK;
}

static const char scan_ids[] =
    "SELECT ARRAY(SELECT f.data_file_id FROM hog_data_file f WHERE f.catalog_id = $1"
    " AND f.table_id = $2 AND " MP_VISIBLE("f") " ORDER BY f.row_id_start, f.data_file_id)";

enum { SPLIT_OFFSETS = 1, VECTORS = 2 }; /* $4: wanted; there are some */

#define SCAN_PAGE(stats)                                                                           \
    MP_FILE_PAGE(", " MP_DELETE_COLUMNS ", CASE WHEN $4 & 1 <> 0 THEN f.split_offsets END" stats,  \
                 " LEFT JOIN LATERAL (SELECT * FROM hog_delete_file r WHERE $4 & 2 <> 0"           \
                 " AND r.catalog_id = $1 AND r.data_file_id = p.id OFFSET 0) d"                    \
                 " ON " MP_VISIBLE("d"))

static const char scan_page[] = SCAN_PAGE("");
static const char scan_page_with_stats[] = SCAN_PAGE(MP_FILE_STATS);

static void print_item(struct mp_call *call, const struct mp_pages_list *list, uint32_t number,
                       uint32_t row)
{
    enum { DELETE = MP_FILE_COLUMN_COUNT, SPLITS = DELETE + MP_DELETE_COLUMN_COUNT, STATS };
    const struct scan *scan = list->self;
    const struct mp_sql *sql = call->sql;
    struct mp_buf *out = &call->out;

    mp_buf_add_c(out, "{\"data_file\":");
    mp_file_print(out, sql, number, row);
    if (scan->stats &&
        mp_str_eq(mp_sql_cell(sql, number, row, MP_FILE_STATS_STATE), MP_STR("provided"))) {
        mp_wire_member(out, "column_stats");
        mp_stats_print(out, &scan->fields, &call->pages->scratch,
                       mp_sql_cell(sql, number, row, STATS), false);
    }
    if (!mp_sql_null(sql, number, row, SPLITS)) {
        struct mp_str text = mp_sql_cell(sql, number, row, SPLITS);

        mp_wire_member(out, "split_offsets"); /* {1,2} is [1,2] but for its braces */
        mp_buf_printf(out, "[%.*s]", (int)text.size - 2, text.data + 1);
    }
    mp_buf_add_byte(out, '}');
    if (!mp_sql_null(sql, number, row, DELETE)) {
        mp_buf_add_c(out, ",\"delete_file\":");
        mp_delete_print(out, sql, number, row, DELETE, mp_sql_int(sql, number, row, MP_FILE_ID, 0));
    }
    mp_buf_add_byte(out, '}');
}

enum mp_code mp_route_scan(struct mp_call *call)
{
    struct scan *scan = mp_arena_take(&call->arena, sizeof(*scan));
    struct mp_table table;
    struct mp_at at;
    uint32_t number, vectors, files;
    enum mp_code code = read_options(call, scan);

    if (!code)
        code = mp_table_find(call, &at, &table);
    if (!code && scan->stats)
        code = mp_table_definition(call, call->sql, at.catalog_id, at.snapshot, &table);
    if (code)
        return code;
    scan->fields.columns = table.columns;
    number = MP_SQL(call->sql, scan_ids, mp_v_int(at.catalog_id), mp_v_int(table.table_id),
                    mp_v_int(at.snapshot));
    vectors = MP_SQL(call->sql,
                     "SELECT EXISTS(SELECT 1 FROM hog_delete_file d WHERE d.catalog_id = $1"
                     " AND d.table_id = $2 AND " MP_VISIBLE("d") ")",
                     mp_v_int(at.catalog_id), mp_v_int(table.table_id), mp_v_int(at.snapshot));
    code = mp_pages_begin(call, &at, at.snapshot);
    if (code)
        return code;
    files = mp_pages_add(
        call, number,
        &(struct mp_pages_list){
            .page = scan->stats ? scan_page_with_stats : scan_page,
            .flags = (scan->splits ? SPLIT_OFFSETS : 0) |
                     (mp_sql_true(call->sql, vectors, 0, 0) ? VECTORS : 0),
            .rows_max = mp_stats_page_rows(mp_columns_leaves(&call->arena, table.columns)),
            .print = print_item,
            .self = scan,
        });
    code = check_size(call, scan, files);
    return code ? code : mp_pages_print(call);
}
