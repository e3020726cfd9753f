/* server/routes/contents.c - see contents.h; and the statistics of one file. */
#include "server/routes/contents.h"

#include "base/base64.h"

#include <stdlib.h>

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

void mp_file_print(struct mp_buf *out, const struct mp_sql *sql, uint32_t number, uint32_t row)
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

void mp_delete_print(struct mp_buf *out, const struct mp_sql *sql, uint32_t number, uint32_t row,
                     uint32_t column, int64_t data_file_id)
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

void mp_bound_member(struct mp_buf *out, const char *name, struct mp_arena *scratch,
                     const struct mp_column_place *place, const json_t *text)
{
    struct mp_str bytes = {NULL, 0};

    mp_wire_member(out, name);
    if (json_is_string(text) &&
        !mp_base64_read(scratch, mp_str_n(json_string_value(text), json_string_length(text)),
                        &bytes))
        bytes = (struct mp_str){NULL, 0};
    mp_hog_bound_print(out, place->type, mp_column_scale(place->column), bytes);
}

static bool wants(const struct mp_stats_fields *fields, int64_t id)
{
    for (uint32_t i = 0; i < fields->wanted_count; i++)
        if (fields->wanted[i] == id)
            return true;
    return !fields->wanted;
}

/* One column's statistics; full: as in FileStats. False: the column is not visible. */
static bool print_stats(struct mp_buf *out, const struct mp_stats_fields *fields,
                        struct mp_arena *scratch, const json_t *row, bool full, bool first)
{
    int64_t id = json_integer_value(json_array_get(row, 0));
    struct mp_column_place place;

    if (!wants(fields, id) || !mp_columns_find(scratch, fields->columns, id, &place))
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
    mp_bound_member(out, "lower_bound", scratch, &place, json_array_get(row, 5));
    mp_bound_member(out, "upper_bound", scratch, &place, json_array_get(row, 6));
    mp_buf_add_byte(out, '}');
    return true;
}

void mp_stats_print(struct mp_buf *out, const struct mp_stats_fields *fields,
                    struct mp_arena *scratch, struct mp_str text, bool full)
{
    json_t *stats = text.data ? json_loadb(text.data, text.size, 0, NULL) : NULL;
    bool first = true;

    mp_buf_add_byte(out, '[');
    for (size_t i = 0; i < json_array_size(stats); i++)
        if (print_stats(out, fields, scratch, json_array_get(stats, i), full, first))
            first = false;
    mp_buf_add_byte(out, ']');
    json_decref(stats);
}

enum mp_code mp_route_file_stats(struct mp_call *call)
{
    struct mp_stats_fields fields = {0};
    struct mp_table table;
    struct mp_at at;
    struct mp_str state;
    int64_t id = 0;
    uint32_t number;
    enum mp_code code;

    if (!mp_call_int(call->parts[3], &id))
        return mp_refuse_bad(call, "the file id must be an integer");
    code = mp_table_find(call, &at, &table);
    if (!code)
        code = mp_table_definition(call, call->sql, at.catalog_id, at.snapshot, &table);
    if (code)
        return code;
    number = MP_SQL(call->sql,
                    "SELECT f.stats_state, s.stats FROM hog_data_file f LEFT JOIN hog_file_stats s"
                    " USING (catalog_id, data_file_id) WHERE f.catalog_id = $1"
                    " AND f.table_id = $2 AND " MP_VISIBLE("f") " AND f.data_file_id = $4",
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
    mp_stats_print(&call->out, &fields, &call->arena, mp_sql_cell(call->sql, number, 0, 1), true);
    if (mp_sql_null(call->sql, number, 0, 1))
        mp_wire_member_text(&call->out, "no_stats_reason",
                            mp_str_eq(state, MP_STR("provided")) ? MP_STR("none_provided") : state);
    mp_buf_add_byte(&call->out, '}');
    return MP_OK;
}
