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

#define LIVE_VECTOR  MP_SQL_NULL("d.end_snapshot")
#define LIVE_VERSION MP_SQL_NULL("v.end_snapshot")
#define LIVE_SPEC    MP_SQL_NULL("s.end_snapshot")
#define LIVE_COLUMN  MP_SQL_NULL("c.end_snapshot")

/* What is told of a group of files, for both reports. $4: where a file stops being small. */
#define GROUP_COLUMNS                                                                              \
    "count(*) AS files, count(*) FILTER (WHERE f.file_size_bytes < $4) AS small,"                  \
    " sum(f.file_size_bytes)::bigint AS bytes,"                                                    \
    " coalesce(sum(f.file_size_bytes) FILTER (WHERE f.file_size_bytes < $4), 0)::bigint"           \
    "  AS small_bytes,"                                                                            \
    " avg(f.file_size_bytes)::bigint AS mean, count(d.delete_file_id) AS vectors"

/* One row a partition, behind two numbers of all of them, which stand alone where the page is
 * empty. $3 orders: see order_of; a negative number: descending. $7 and $8: keys of the live spec
 * ($9) and what their values begin with, empty: null. */
static const char list_partitions[] =
    "WITH g AS (SELECT f.spec_id, f.partition_values AS parts, " GROUP_COLUMNS ","
    "  sum(f.record_count)::bigint AS rows, max(f.begin_snapshot) AS last"
    "  FROM hog_data_file f LEFT JOIN hog_delete_file d ON d.catalog_id = f.catalog_id"
    "   AND d.data_file_id = f.data_file_id AND " LIVE_VECTOR
    "  WHERE f.catalog_id = $1 AND f.table_id = $2 AND f.end_snapshot IS NULL"
    "  GROUP BY f.spec_id, f.partition_values),"
    " h AS (SELECT * FROM g WHERE cardinality($7) = 0 OR (g.spec_id = $9"
    "  AND NOT EXISTS (SELECT 1 FROM unnest($7, $8) AS p(key, prefix)"
    "   WHERE CASE WHEN p.prefix = '' THEN g.parts[p.key::int] IS NOT NULL"
    "    ELSE NOT coalesce(starts_with(g.parts[p.key::int], p.prefix), false) END))),"
    " page AS (SELECT h.*, row_number() OVER (ORDER BY"
    "   CASE $3 WHEN 2 THEN h.files WHEN 3 THEN h.small WHEN 4 THEN h.small"
    "   WHEN 5 THEN h.bytes WHEN 6 THEN h.mean WHEN 7 THEN h.vectors WHEN 8 THEN h.rows"
    "   WHEN 9 THEN h.last WHEN -2 THEN -h.files WHEN -3 THEN -h.small WHEN -4 THEN -h.small"
    "   WHEN -5 THEN -h.bytes WHEN -6 THEN -h.mean WHEN -7 THEN -h.vectors WHEN -8 THEN -h.rows"
    "   WHEN -9 THEN -h.last END, CASE WHEN $3 <> -1 THEN h.parts END, h.parts DESC) AS place"
    "  FROM h)"
    " SELECT p.spec_id, p.parts, p.files, p.small, p.bytes, p.small_bytes, p.mean, p.vectors,"
    " p.rows, p.last, n.total, n.stale"
    " FROM (SELECT (SELECT count(*) FROM h) AS total,"
    "  (SELECT count(*) FROM g WHERE g.spec_id IS DISTINCT FROM $9) AS stale) n"
    " LEFT JOIN page p ON p.place > $6 AND p.place - $6 <= $5"
    " ORDER BY p.place";

/* Every partition of a catalog, of a namespace ($2) or of a table ($3), those with most small files
 * first; the last column counts all that were written under another spec than the live one. */
static const char rank_partitions[] =
    "WITH t AS MATERIALIZED (SELECT n.name AS namespace_name, v.name AS table_name, t.table_id,"
    "   t.table_uuid, (SELECT max(k.spec_id) FROM hog_partition_spec s"
    "    JOIN hog_partition_field k USING (catalog_id, table_id, spec_id)"
    "    WHERE s.catalog_id = $1 AND s.table_id = t.table_id AND " LIVE_SPEC ") AS live_spec"
    "  FROM hog_table_version v JOIN hog_table t USING (catalog_id, table_id)"
    "  JOIN hog_namespace n USING (catalog_id, namespace_id)"
    "  WHERE v.catalog_id = $1 AND " LIVE_VERSION
    "   AND ($2 IS NULL OR n.name = $2) AND ($3 IS NULL OR v.name = $3)),"
    " g AS (SELECT t.*, f.spec_id, f.partition_values AS parts, " GROUP_COLUMNS
    "  FROM t JOIN hog_data_file f ON f.catalog_id = $1 AND f.table_id = t.table_id"
    "   AND f.end_snapshot IS NULL LEFT JOIN hog_delete_file d ON d.catalog_id = f.catalog_id"
    "   AND d.data_file_id = f.data_file_id AND " LIVE_VECTOR
    "  GROUP BY t.namespace_name, t.table_name, t.table_id, t.table_uuid, t.live_spec, f.spec_id,"
    "   f.partition_values),"
    " ranked AS (SELECT g.*,"
    "   count(*) FILTER (WHERE g.spec_id IS DISTINCT FROM g.live_spec) OVER () AS stale"
    "  FROM g ORDER BY g.small DESC, g.files DESC, g.namespace_name COLLATE \"C\","
    "   g.table_name COLLATE \"C\", g.spec_id, g.parts LIMIT $5)"
    " SELECT r.namespace_name, r.table_name, r.table_uuid, r.spec_id,"
    " (SELECT json_agg(json_build_object('field', c.name, 'value', p.value) ORDER BY p.n)"
    "  FROM unnest(r.parts) WITH ORDINALITY AS p(value, n)"
    "  LEFT JOIN hog_partition_field k ON k.catalog_id = $1 AND k.table_id = r.table_id"
    "   AND k.spec_id = r.spec_id AND k.key_index = p.n - 1"
    "  LEFT JOIN hog_column c ON c.catalog_id = $1 AND c.table_id = r.table_id"
    "   AND c.field_id = k.source_field_id AND " LIVE_COLUMN "),"
    " r.files, r.small, r.bytes, r.small_bytes, r.mean, r.vectors, r.stale FROM ranked r"
    " ORDER BY r.small DESC, r.files DESC, r.namespace_name COLLATE \"C\","
    "  r.table_name COLLATE \"C\", r.spec_id, r.parts";

/* Every spec that the table ever had. */
struct spec_field {
    int64_t spec_id;
    struct mp_str transform;
    const char *source; /* path of the column, or its number where it is gone */
    enum mp_hog_type type;
};

struct specs {
    struct spec_field *fields; /* by spec and key */
    uint32_t count;
};

static enum mp_code read_specs(struct mp_call *call, const struct mp_at *at,
                               const struct mp_table *table, struct specs *ret)
{
    uint32_t number = MP_SQL(call->sql,
                             "SELECT spec_id, transform, source_field_id FROM hog_partition_field"
                             " WHERE catalog_id = $1 AND table_id = $2"
                             " ORDER BY spec_id, key_index",
                             mp_v_int(at->catalog_id), mp_v_int(table->table_id));
    enum mp_code code = mp_sql_sync(call->sql, &call->err);

    if (code)
        return code;
    ret->count = mp_sql_rows(call->sql, number);
    ret->fields = mp_arena_take(&call->arena, (ret->count + 1) * sizeof(*ret->fields));
    for (uint32_t i = 0; i < ret->count; i++) {
        struct spec_field *field = &ret->fields[i];
        int64_t source = mp_sql_int(call->sql, number, i, 2, 0);
        struct mp_column_place place;

        field->spec_id = mp_sql_int(call->sql, number, i, 0, 0);
        field->transform = mp_sql_copy(call->sql, &call->arena, number, i, 1);
        field->type = MP_HOG_STRING;
        if (mp_columns_find(&call->arena, table->columns, source, &place)) {
            field->source = place.path;
            field->type = place.type;
        } else {
            field->source = mp_arena_printf(&call->arena, "field %lld", (long long)source);
        }
    }
    return MP_OK;
}

/* key_index:prefix, as often as it is given. */
static enum mp_code read_filters(struct mp_call *call, uint32_t arity, struct mp_sql_array *keys,
                                 struct mp_sql_array *prefixes)
{
    for (uint32_t i = 0; i < call->query_count; i++) {
        struct mp_str value = call->query[i].value;
        uint32_t key;
        enum mp_code code;

        if (!mp_str_eq(call->query[i].name, MP_STR("filter")))
            continue;
        code = mp_call_key_value(call, "filter", value, arity, &key, &value);
        if (code)
            return code;
        mp_sql_array_int(keys, (int64_t)key + 1);
        mp_sql_array_text(prefixes, value);
    }
    return MP_OK;
}

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

static void print_key_values(struct mp_buf *out, const struct specs *specs, bool has_spec,
                             int64_t spec_id, struct mp_str parts)
{
    struct mp_sql_items items = {.text = parts};
    struct mp_buf item = MP_BUF_INIT(SIZE_MAX / 4);
    uint32_t field = 0;
    bool null, first = true;

    mp_buf_add_byte(out, '[');
    while (field < specs->count && specs->fields[field].spec_id != spec_id)
        field++;
    for (; has_spec && field < specs->count && specs->fields[field].spec_id == spec_id &&
           mp_sql_items_next(&items, &item, &null);
         field++, first = false) {
        struct mp_str raw = null ? (struct mp_str){NULL, 0} : mp_buf_str(&item);

        if (!null && !raw.data)
            raw = MP_STR("");
        mp_buf_add_c(out, first ? "{" : ",{");
        mp_wire_member_text(out, "field", mp_str_c(specs->fields[field].source));
        mp_wire_member(out, "raw");
        if (null)
            mp_buf_add_c(out, "null");
        else
            mp_buf_add_json(out, raw);
        mp_wire_member(out, "decoded");
        mp_partition_value_print(out, specs->fields[field].transform, specs->fields[field].type,
                                 raw);
        mp_buf_add_byte(out, '}');
    }
    mp_buf_add_byte(out, ']');
    mp_buf_fini(&item);
}

static void print_partition(struct mp_buf *out, const struct mp_sql *sql, const struct specs *specs,
                            uint32_t number, uint32_t row)
{
    int64_t spec_id = mp_sql_int(sql, number, row, 0, 0);

    mp_buf_add_byte(out, '{');
    if (!mp_sql_null(sql, number, row, 0))
        mp_wire_member_int(out, "spec_id", spec_id);
    mp_wire_member(out, "values");
    print_key_values(out, specs, !mp_sql_null(sql, number, row, 0), spec_id,
                     mp_sql_cell(sql, number, row, 1));
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

static void print_spec(struct mp_buf *out, const struct specs *specs,
                       const struct mp_wire_partition_spec *spec)
{
    uint32_t first = 0;

    while (first < specs->count && specs->fields[first].spec_id != spec->spec_id)
        first++;
    mp_wire_member(out, "spec");
    mp_buf_add_byte(out, '{');
    mp_wire_member_int(out, "spec_id", spec->spec_id);
    mp_wire_member(out, "fields");
    mp_buf_add_byte(out, '[');
    for (uint32_t i = 0; i < spec->field_count && first + i < specs->count; i++) {
        mp_buf_add_c(out, i ? ",{" : "{");
        mp_wire_member_text(out, "field", mp_str_c(specs->fields[first + i].source));
        mp_wire_member_text(out, "transform", spec->fields[i].transform);
        if (spec->fields[i].has_param)
            mp_wire_member_int(out, "transform_param", spec->fields[i].param);
        mp_wire_member_int(out, "source_field_id", spec->fields[i].source_field_id);
        mp_buf_add_byte(out, '}');
    }
    mp_buf_add_c(out, "]}");
}

enum mp_code mp_route_partitions(struct mp_call *call)
{
    enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 1000 };
    struct mp_sql_array keys, prefixes;
    struct mp_table table;
    struct specs specs;
    struct mp_at at;
    struct mp_buf *out = &call->out;
    int64_t order, limit = LIMIT_DEFAULT, offset = 0;
    bool partitioned;
    uint32_t number, rows;
    enum mp_code code = order_of(call, &order);

    mp_sql_array_init(&keys, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&prefixes, MP_PG_TEXT_ARRAY);
    if (!code)
        code = mp_call_query_int(call, "limit", &limit, NULL);
    if (!code)
        code = mp_call_query_int(call, "offset", &offset, NULL);
    if (!code && (limit < 1 || offset < 0))
        code = mp_refuse_bad(call, "limit must be at least 1 and offset not negative");
    if (!code)
        code = mp_table_find_head(call, &at, &table);
    if (!code)
        code = mp_table_definition(call, call->sql, at.catalog_id, at.snapshot, &table);
    if (!code)
        code = read_filters(call, table.partition.field_count, &keys, &prefixes);
    if (!code)
        code = read_specs(call, &at, &table, &specs);
    if (code)
        goto out;
    partitioned = table.partition.field_count > 0;
    number = MP_SQL(call->sql, list_partitions, mp_v_int(at.catalog_id), mp_v_int(table.table_id),
                    mp_v_int(order), mp_v_int(SMALL_BYTES),
                    mp_v_int(limit > LIMIT_MAX ? LIMIT_MAX : limit), mp_v_int(offset),
                    mp_sql_array_value(&keys), mp_sql_array_value(&prefixes),
                    mp_v_int_or_null(partitioned, table.partition.spec_id));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        goto out;
    rows = mp_sql_null(call->sql, number, 0, 2) ? 0 : mp_sql_rows(call->sql, number);
    mp_buf_add_c(out, "{\"sampled_at\":null,\"sample_started\":null");
    mp_wire_member_int(out, "sampled_snapshot_id", at.head);
    if (partitioned)
        print_spec(out, &specs, &table.partition);
    mp_wire_member_int(out, "total", mp_sql_int(call->sql, number, 0, 10, 0));
    mp_wire_member_int(out, "stale_spec_groups", mp_sql_int(call->sql, number, 0, 11, 0));
    mp_wire_member(out, "partitions");
    mp_buf_add_byte(out, '[');
    for (uint32_t i = 0; i < rows; i++) {
        if (i)
            mp_buf_add_byte(out, ',');
        print_partition(out, call->sql, &specs, number, i);
    }
    mp_buf_add_c(out, "]}");
out:
    mp_sql_array_fini(&keys);
    mp_sql_array_fini(&prefixes);
    return code;
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
    if (!code)
        code = mp_at_head(call, &at);
    if (code)
        return code;
    limit = limit > LIMIT_MAX ? LIMIT_MAX : limit;
    number = MP_SQL(call->sql, rank_partitions, mp_v_int(at.catalog_id), mp_v_text(namespace_name),
                    mp_v_text(table), mp_v_int(SMALL_BYTES), mp_v_int(limit + 1));
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
        mp_wire_member_int(out, "dv_count", mp_sql_int(call->sql, number, i, 10, 0));
        mp_wire_member_int(out, "debt_score", mp_sql_int(call->sql, number, i, 6, 0));
        mp_buf_add_byte(out, '}');
    }
    mp_buf_add_byte(out, ']');
    mp_wire_member_bool(out, "truncated", rows > limit);
    mp_wire_member_int(out, "stale_spec_groups",
                       rows ? mp_sql_int(call->sql, number, 0, 11, 0) : 0);
    mp_wire_member_int(out, "small_file_threshold_bytes", SMALL_BYTES);
    mp_buf_add_byte(out, '}');
    return MP_OK;
}
