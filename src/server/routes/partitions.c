/* server/routes/partitions.c - a table's partitions, counted over its live files. */
#include "server/routes/routes.h"
#include "server/tables.h"

enum { SMALL_BYTES = 64 * 1024 * 1024 };

static void print_values(struct mp_buf *out, const struct mp_sql *sql, uint32_t number,
                         uint32_t row, uint32_t column)
{
    mp_buf_add_str(out, mp_sql_null(sql, number, row, column)
                            ? MP_STR("[]")
                            : mp_sql_cell(sql, number, row, column));
}

/* One row a partition; $3 orders: see order_of. A negative number: descending. */
static const char list_partitions[] =
    "WITH g AS (SELECT f.spec_id, f.partition_values, count(*) AS files,"
    "  count(*) FILTER (WHERE f.file_size_bytes < $4) AS small,"
    "  sum(f.file_size_bytes)::bigint AS bytes,"
    "  coalesce(sum(f.file_size_bytes) FILTER (WHERE f.file_size_bytes < $4), 0)::bigint"
    "   AS small_bytes,"
    "  (avg(f.file_size_bytes))::bigint AS mean, sum(f.record_count)::bigint AS rows,"
    "  max(f.begin_snapshot) AS last, count(d.delete_file_id) AS vectors"
    "  FROM hog_data_file f LEFT JOIN hog_delete_file d ON d.catalog_id = f.catalog_id"
    "   AND d.data_file_id = f.data_file_id AND " MP_SQL_NULL(
        "d.end_snapshot") "  WHERE f.catalog_id = $1 AND f.table_id = $2 AND f.end_snapshot IS NULL"
                          "  GROUP BY f.spec_id, f.partition_values)"
                          " SELECT g.spec_id, (SELECT json_agg(json_build_object('raw', v.value, "
                          "'decoded', v.value)"
                          "  ORDER BY v.n) FROM unnest(g.partition_values) WITH ORDINALITY AS "
                          "v(value, n)),"
                          " g.files, g.small, g.bytes, g.small_bytes, g.mean, g.vectors, g.rows, "
                          "g.last,"
                          " count(*) OVER () FROM g"
                          " ORDER BY CASE $3 WHEN 2 THEN g.files WHEN 3 THEN g.small WHEN 4 THEN "
                          "g.small"
                          "  WHEN 5 THEN g.bytes WHEN 6 THEN g.mean WHEN 7 THEN g.vectors WHEN 8 "
                          "THEN g.rows"
                          "  WHEN 9 THEN g.last WHEN -2 THEN -g.files WHEN -3 THEN -g.small WHEN "
                          "-4 THEN -g.small"
                          "  WHEN -5 THEN -g.bytes WHEN -6 THEN -g.mean WHEN -7 THEN -g.vectors "
                          "WHEN -8 THEN -g.rows"
                          "  WHEN -9 THEN -g.last END, CASE WHEN $3 <> -1 THEN g.partition_values "
                          "END,"
                          " g.partition_values DESC LIMIT $5 OFFSET $6";

static enum mp_code order_of(struct mp_call *call, int64_t *ret)
{
    static const char *const names[] = {"partition", "files",      "small_files",
                                        "debt",      "total_size", "avg_size",
                                        "dvs",       "rows",       "last_written"};
    struct mp_str sort = mp_call_query(call, "sort"), order = mp_call_query(call, "order");

    *ret = sort.data ? 0 : 1;
    for (int64_t i = 0; sort.data && i < 9; i++)
        if (mp_str_eq(sort, mp_str_c(names[i])))
            *ret = i + 1;
    if (!*ret)
        return mp_refuse_bad(call, "unknown sort");
    if (order.data && !mp_str_eq(order, MP_STR("asc")) && !mp_str_eq(order, MP_STR("desc")))
        return mp_refuse_bad(call, "order must be asc or desc");
    if (order.data && mp_str_eq(order, MP_STR("desc")))
        *ret = -*ret;
    return MP_OK;
}

static void print_partition(struct mp_buf *out, const struct mp_sql *sql, uint32_t number,
                            uint32_t row)
{
    mp_buf_add_byte(out, '{');
    if (!mp_sql_null(sql, number, row, 0))
        mp_wire_member_int(out, "spec_id", mp_sql_int(sql, number, row, 0, 0));
    mp_wire_member(out, "values");
    print_values(out, sql, number, row, 1);
    mp_wire_member_int(out, "file_count", mp_sql_int(sql, number, row, 2, 0));
    mp_wire_member_int(out, "small_file_count", mp_sql_int(sql, number, row, 3, 0));
    mp_wire_member_int(out, "total_bytes", mp_sql_int(sql, number, row, 4, 0));
    mp_wire_member_int(out, "small_file_bytes", mp_sql_int(sql, number, row, 5, 0));
    mp_wire_member_int(out, "avg_file_bytes", mp_sql_int(sql, number, row, 6, 0));
    mp_wire_member_int(out, "dv_count", mp_sql_int(sql, number, row, 7, 0));
    mp_wire_member_int(out, "debt_score", mp_sql_int(sql, number, row, 3, 0));
    mp_wire_member_int(out, "record_count", mp_sql_int(sql, number, row, 8, 0));
    mp_wire_member_int(out, "last_written_snapshot", mp_sql_int(sql, number, row, 9, 0));
    mp_buf_add_byte(out, '}');
}

enum mp_code mp_route_partitions(struct mp_call *call)
{
    enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 1000 };
    struct mp_table table;
    struct mp_at at;
    struct mp_buf *out = &call->out;
    int64_t order, limit = LIMIT_DEFAULT, offset = 0;
    uint32_t number, rows;
    enum mp_code code = order_of(call, &order);

    if (!code)
        code = mp_call_query_int(call, "limit", &limit, NULL);
    if (!code)
        code = mp_call_query_int(call, "offset", &offset, NULL);
    if (!code && (limit < 1 || offset < 0))
        code = mp_refuse_bad(call, "limit must be at least 1 and offset not negative");
    if (!code)
        code = mp_table_find(call, &at, &table);
    if (!code)
        code = mp_table_definition(call, call->sql, at.catalog_id, at.snapshot, &table);
    if (code)
        return code;
    number = MP_SQL(call->sql, list_partitions, mp_v_int(at.catalog_id), mp_v_int(table.table_id),
                    mp_v_int(order), mp_v_int(SMALL_BYTES),
                    mp_v_int(limit > LIMIT_MAX ? LIMIT_MAX : limit), mp_v_int(offset));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    rows = mp_sql_rows(call->sql, number);
    mp_buf_add_c(out, "{\"sampled_at\":null,\"sample_started\":null");
    mp_wire_member_int(out, "sampled_snapshot_id", at.head);
    mp_wire_member_int(out, "total", rows ? mp_sql_int(call->sql, number, 0, 10, 0) : 0);
    mp_wire_member_int(out, "stale_spec_groups", 0);
    mp_wire_member(out, "partitions");
    mp_buf_add_byte(out, '[');
    for (uint32_t i = 0; i < rows; i++) {
        if (i)
            mp_buf_add_byte(out, ',');
        print_partition(out, call->sql, number, i);
    }
    mp_buf_add_c(out, "]}");
    return MP_OK;
}

enum mp_code mp_route_partition_values(struct mp_call *call)
{
    enum { VALUES_MAX = 500 };
    struct mp_table table;
    struct mp_at at;
    struct mp_buf *out = &call->out;
    enum mp_code code = mp_table_find(call, &at, &table);

    if (!code)
        code = mp_table_definition(call, call->sql, at.catalog_id, at.snapshot, &table);
    if (code)
        return code;
    mp_buf_add_byte(out, '{');
    mp_wire_member_int(out, "spec_id", table.partition.field_count ? table.partition.spec_id : -1);
    mp_wire_member(out, "fields");
    mp_buf_add_byte(out, '[');
    for (uint32_t i = 0; i < table.partition.field_count; i++) {
        const struct mp_wire_partition_field *field = &table.partition.fields[i];
        uint32_t number =
            MP_SQL(call->sql,
                   "SELECT f.partition_values[$4::int], count(*) FROM hog_data_file f"
                   " WHERE f.catalog_id = $1 AND f.table_id = $2 AND f.begin_snapshot <= $3"
                   " AND (f.end_snapshot IS NULL OR $3 < f.end_snapshot) AND f.spec_id = $5"
                   " GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT $6",
                   mp_v_int(at.catalog_id), mp_v_int(table.table_id), mp_v_int(at.snapshot),
                   mp_v_int(i + 1), mp_v_int(table.partition.spec_id), mp_v_int(VALUES_MAX + 1));
        uint32_t rows;

        code = mp_sql_sync(call->sql, &call->err);
        if (code)
            return code;
        rows = mp_sql_rows(call->sql, number);
        mp_buf_add_c(out, i ? ",{" : "{");
        mp_wire_member_int(out, "source_field_id", field->source_field_id);
        mp_wire_member_text(out, "transform", field->transform);
        if (field->has_param)
            mp_wire_member_int(out, "transform_param", field->param);
        mp_wire_member(out, "values");
        mp_buf_add_byte(out, '[');
        for (uint32_t row = 0; row < rows && row < VALUES_MAX; row++) {
            if (row)
                mp_buf_add_byte(out, ',');
            if (mp_sql_null(call->sql, number, row, 0))
                mp_buf_add_c(out, "null");
            else
                mp_buf_add_json(out, mp_sql_cell(call->sql, number, row, 0));
        }
        mp_buf_add_byte(out, ']');
        mp_wire_member_bool(out, "truncated", rows > VALUES_MAX);
        mp_buf_add_byte(out, '}');
    }
    mp_buf_add_c(out, "]}");
    return MP_OK;
}

enum mp_code mp_route_partition_stats(struct mp_call *call)
{
    enum { LIMIT_DEFAULT = 50, LIMIT_MAX = 500 };
    struct mp_str namespace_name = mp_call_query(call, "namespace");
    struct mp_str table = mp_call_query(call, "table");
    struct mp_buf *out = &call->out;
    struct mp_at at;
    int64_t limit = LIMIT_DEFAULT;
    uint32_t number, rows;
    enum mp_code code = mp_call_query_int(call, "limit", &limit, NULL);

    if (!code && (limit < 1 || (table.data && !namespace_name.data)))
        code = mp_refuse_invalid(call, "limit must be at least 1, and table needs a namespace");
    call->query_count = 0;
    if (!code)
        code = mp_at_read(call, &at);
    if (code)
        return code;
    limit = limit > LIMIT_MAX ? LIMIT_MAX : limit;
    number = MP_SQL(
        call->sql,
        "SELECT n.name, v.name, t.table_uuid, f.spec_id,"
        " (SELECT json_agg(json_build_object('value', p.value) ORDER BY p.n)"
        "  FROM unnest(f.partition_values) WITH ORDINALITY AS p(value, n)), count(*),"
        " count(*) FILTER (WHERE f.file_size_bytes < $4), sum(f.file_size_bytes)::bigint,"
        " coalesce(sum(f.file_size_bytes) FILTER (WHERE f.file_size_bytes < $4), 0)::bigint,"
        " avg(f.file_size_bytes)::bigint"
        " FROM hog_table_version v JOIN hog_table t USING (catalog_id, table_id)"
        " JOIN hog_namespace n USING (catalog_id, namespace_id)"
        " JOIN hog_data_file f USING (catalog_id, table_id)"
        " WHERE v.catalog_id = $1 AND " MP_SQL_NULL(
            "v.end_snapshot") " AND f.end_snapshot IS NULL"
                              " AND ($2 IS NULL OR n.name = $2) AND ($3 IS NULL OR v.name = $3)"
                              " GROUP BY n.name, v.name, t.table_uuid, f.spec_id, "
                              "f.partition_values"
                              " ORDER BY 7 DESC, 6 DESC LIMIT $5",
        mp_v_int(at.catalog_id), mp_v_text(namespace_name), mp_v_text(table), mp_v_int(SMALL_BYTES),
        mp_v_int(limit + 1));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    rows = mp_sql_rows(call->sql, number);
    mp_buf_add_c(out, "{\"partitions\":[");
    for (uint32_t i = 0; i < rows && i < limit; i++) {
        mp_buf_add_c(out, i ? ",{" : "{");
        mp_wire_member_text(out, "namespace", mp_sql_cell(call->sql, number, i, 0));
        mp_wire_member_text(out, "table", mp_sql_cell(call->sql, number, i, 1));
        mp_wire_member_text(out, "table_uuid", mp_sql_cell(call->sql, number, i, 2));
        mp_wire_member(out, "partition_values");
        print_values(out, call->sql, number, i, 4);
        if (!mp_sql_null(call->sql, number, i, 3))
            mp_wire_member_int(out, "spec_id", mp_sql_int(call->sql, number, i, 3, 0));
        mp_wire_member_int(out, "file_count", mp_sql_int(call->sql, number, i, 5, 0));
        mp_wire_member_int(out, "small_file_count", mp_sql_int(call->sql, number, i, 6, 0));
        mp_wire_member_int(out, "total_bytes", mp_sql_int(call->sql, number, i, 7, 0));
        mp_wire_member_int(out, "small_file_bytes", mp_sql_int(call->sql, number, i, 8, 0));
        mp_wire_member_int(out, "avg_file_bytes", mp_sql_int(call->sql, number, i, 9, 0));
        mp_wire_member_int(out, "dv_count", 0);
        mp_wire_member_int(out, "debt_score", mp_sql_int(call->sql, number, i, 6, 0));
        mp_buf_add_byte(out, '}');
    }
    mp_buf_add_byte(out, ']');
    mp_wire_member_bool(out, "truncated", rows > limit);
    mp_wire_member_int(out, "stale_spec_groups", 0);
    mp_wire_member_int(out, "small_file_threshold_bytes", SMALL_BYTES);
    mp_buf_add_byte(out, '}');
    return MP_OK;
}
