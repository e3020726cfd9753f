/* server/routes/settings.c - a catalog's options and its consumers' offsets. */
#include "server/names.h"
#include "server/routes/routes.h"
#include "server/tables.h"

/* --- options --- */

static enum mp_code print_options(struct mp_call *call)
{
    uint32_t number = MP_SQL(call->sql,
                             "SELECT consumer_floor, earliest_snapshot_id,"
                             " snapshot_retention_seconds FROM hog_catalog WHERE name = $1",
                             mp_v_text(call->parts[0]));
    enum mp_code code = mp_sql_sync(call->sql, &call->err);

    if (code)
        return code;
    if (!mp_sql_rows(call->sql, number))
        return mp_refuse_missing(call, "catalog \"%.*s\" does not exist",
                                 MP_STR_ARG(call->parts[0]));
    mp_buf_add_byte(&call->out, '{');
    mp_wire_member_bool(&call->out, "consumer_floor", mp_sql_true(call->sql, number, 0, 0));
    mp_wire_member_int(&call->out, "earliest_snapshot_id", mp_sql_int(call->sql, number, 0, 1, 0));
    if (!mp_sql_null(call->sql, number, 0, 2))
        mp_wire_member_int(&call->out, "snapshot_retention_seconds",
                           mp_sql_int(call->sql, number, 0, 2, 0));
    mp_buf_add_byte(&call->out, '}');
    return MP_OK;
}

enum mp_code mp_route_options_get(struct mp_call *call)
{
    enum mp_code code = mp_call_sql(call);

    return code ? code : print_options(call);
}

enum mp_code mp_route_options_patch(struct mp_call *call)
{
    const json_t *retention = json_object_get(call->body, "snapshot_retention_seconds");
    const json_t *floor = json_object_get(call->body, "consumer_floor");
    struct mp_attribution by;
    enum mp_code code = mp_call_attribution(call, &by);

    if (code)
        return code;
    if (retention && !json_is_null(retention) && !json_is_integer(retention))
        return mp_refuse_bad(call, "\"snapshot_retention_seconds\" must be an integer or null");
    if (floor && !json_is_boolean(floor))
        return mp_refuse_bad(call, "\"consumer_floor\" must be true or false");
    if (json_is_integer(retention) && json_integer_value(retention) <= 0)
        return mp_refuse_invalid(call, "snapshot_retention_seconds must be above 0");
    code = mp_call_sql(call);
    if (code)
        return code;
    MP_SQL(call->sql,
           "UPDATE hog_catalog SET"
           " snapshot_retention_seconds = CASE WHEN $2 THEN $3 ELSE snapshot_retention_seconds END,"
           " consumer_floor = coalesce($4, consumer_floor) WHERE name = $1",
           mp_v_text(call->parts[0]), mp_v_bool(retention != NULL),
           mp_v_int_or_null(json_is_integer(retention), json_integer_value(retention)),
           floor ? mp_v_bool(json_is_true(floor)) : mp_v_null(MP_PG_BOOL));
    code = mp_sql_sync(call->sql, &call->err);
    if (!code)
        code = print_options(call);
    if (!code)
        mp_audit(call, call->parts[0],
                 &(struct mp_audit){"options_patch", "changed", {NULL, 0}, &by}, "%.*s",
                 MP_STR_ARG(mp_buf_str(&call->out)));
    return code;
}

/* --- consumers --- */

static void print_offset(struct mp_call *call, uint32_t number, uint32_t row)
{
    struct mp_buf *out = &call->out;

    mp_buf_add_byte(out, '{');
    mp_wire_member_text(out, "consumer_id", call->parts[1]);
    mp_wire_member_text(out, "table_uuid", mp_sql_cell(call->sql, number, row, 0));
    mp_wire_member_int(out, "committed_snapshot", mp_sql_int(call->sql, number, row, 1, 0));
    mp_wire_member_instant(out, "updated_at", mp_sql_int(call->sql, number, row, 2, 0));
    mp_buf_add_byte(out, '}');
}

enum mp_code mp_route_consumer_offsets(struct mp_call *call)
{
    struct mp_at at;
    uint32_t number;
    enum mp_code code = mp_at_head(call, &at);

    if (code)
        return code;
    number = MP_SQL(call->sql,
                    "SELECT table_uuid, committed_snapshot, updated_us FROM hog_consumer_offset"
                    " WHERE catalog_id = $1 AND consumer_id = $2 ORDER BY table_uuid",
                    mp_v_int(at.catalog_id), mp_v_text(call->parts[1]));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    mp_call_print_rows(call, number, print_offset);
    return MP_OK;
}

enum mp_code mp_route_consumer_offset_get(struct mp_call *call)
{
    struct mp_str uuid;
    struct mp_at at;
    uint32_t number;
    enum mp_code code = mp_call_part_uuid(call, 2, &uuid);

    if (!code)
        code = mp_at_head(call, &at);
    if (code)
        return code;
    number = MP_SQL(call->sql,
                    "SELECT table_uuid, committed_snapshot, updated_us FROM hog_consumer_offset"
                    " WHERE catalog_id = $1 AND consumer_id = $2 AND table_uuid = $3",
                    mp_v_int(at.catalog_id), mp_v_text(call->parts[1]), mp_v_uuid(uuid));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (!mp_sql_rows(call->sql, number))
        return mp_refuse_missing(call, "this consumer has no offset for that table");
    print_offset(call, number, 0);
    return MP_OK;
}

/* The offsets a replacement superseded go with the first offset on what replaced them. */
static const char delete_superseded[] =
    "WITH RECURSIVE lineage AS (SELECT t.replaced_table_id AS id FROM hog_table t"
    "  WHERE t.catalog_id = $1 AND t.table_uuid = $3 AND t.replaced_table_id IS NOT NULL"
    "  AND t.created_snapshot <= $4"
    " UNION SELECT t.replaced_table_id FROM hog_table t JOIN lineage l ON t.table_id = l.id"
    "  WHERE t.catalog_id = $1 AND t.replaced_table_id IS NOT NULL)"
    " DELETE FROM hog_consumer_offset o USING hog_table t JOIN lineage l ON t.table_id = l.id"
    " WHERE o.catalog_id = $1 AND t.catalog_id = $1 AND o.consumer_id = $2"
    " AND o.table_uuid = t.table_uuid AND EXISTS (SELECT 1 FROM hog_consumer_offset n" /* it went in
                                                                                        */
    "  WHERE n.catalog_id = $1 AND n.consumer_id = $2 AND n.table_uuid = $3"
    "  AND n.committed_snapshot = $4)";

enum mp_code mp_route_consumer_offset_put(struct mp_call *call)
{
    static const char *const known[] = {"snapshot_id", NULL};
    struct mp_wire_reader reader = {.arena = &call->arena};
    struct mp_str uuid;
    struct mp_at at;
    int64_t snapshot = 0;
    uint32_t number, exists;
    enum mp_code code = mp_call_part_uuid(call, 2, &uuid);

    if (mp_wire_object(&reader, call->body, "the request", known))
        mp_wire_int(&reader, call->body, "snapshot_id", true, &snapshot, NULL);
    if (!code)
        code = mp_call_read_end(call, &reader);
    if (!code && (!call->parts[1].size || mp_chars(call->parts[1]) > MP_CONSUMER_CHARS_MAX))
        code =
            mp_refuse_invalid(call, "a consumer id has 1 to %d characters", MP_CONSUMER_CHARS_MAX);
    if (!code)
        code = mp_at_head(call, &at);
    if (code)
        return code;
    if (snapshot < 0 || snapshot > at.head)
        return mp_refuse_invalid(call, "snapshot_id %lld is outside of 0 to %lld",
                                 (long long)snapshot, (long long)at.head);
    if (snapshot < at.floor)
        return mp_refuse(call, 410, "expired", "snapshot %lld has expired; the oldest is %lld",
                         (long long)snapshot, (long long)at.floor);
    exists = MP_SQL(call->sql, "SELECT 1 FROM hog_table WHERE catalog_id = $1 AND table_uuid = $2",
                    mp_v_int(at.catalog_id), mp_v_uuid(uuid));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (!mp_sql_rows(call->sql, exists))
        return mp_refuse_invalid(call, "the catalog never had a table of that UUID");
    mp_sql_say(call->sql, "BEGIN");
    number = MP_SQL(call->sql,
                    "INSERT INTO hog_consumer_offset AS o (catalog_id, consumer_id, table_uuid,"
                    " committed_snapshot, updated_us) VALUES ($1, $2, $3, $4, hog_now_us())"
                    " ON CONFLICT (catalog_id, consumer_id, table_uuid) DO UPDATE"
                    " SET committed_snapshot = excluded.committed_snapshot,"
                    " updated_us = excluded.updated_us"
                    " WHERE o.committed_snapshot <= excluded.committed_snapshot"
                    " RETURNING table_uuid, committed_snapshot, updated_us",
                    mp_v_int(at.catalog_id), mp_v_text(call->parts[1]), mp_v_uuid(uuid),
                    mp_v_int(snapshot));
    MP_SQL(call->sql, delete_superseded, mp_v_int(at.catalog_id), mp_v_text(call->parts[1]),
           mp_v_uuid(uuid), mp_v_int(snapshot));
    mp_sql_say(call->sql, "COMMIT");
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (!mp_sql_rows(call->sql, number))
        return mp_refuse(call, 409, "offset_regression", "the stored offset is above snapshot %lld",
                         (long long)snapshot);
    print_offset(call, number, 0);
    mp_audit(call, call->parts[0],
             &(struct mp_audit){"offset_commit", "committed", call->parts[1], NULL},
             "table %.*s, snapshot %lld", MP_STR_ARG(uuid), (long long)snapshot);
    return MP_OK;
}

enum mp_code mp_route_consumer_list(struct mp_call *call)
{
    struct mp_at at;
    struct mp_buf *out = &call->out;
    struct mp_str last = {NULL, 0};
    uint32_t number, rows;
    enum mp_code code = mp_at_head(call, &at);

    if (code)
        return code;
    number = MP_SQL(call->sql,
                    "SELECT o.table_uuid, o.committed_snapshot, o.updated_us, o.consumer_id,"
                    " n.name, v.name, t.dropped_snapshot IS NOT NULL FROM hog_consumer_offset o"
                    " LEFT JOIN hog_table t USING (catalog_id, table_uuid)"
                    " LEFT JOIN LATERAL (SELECT v.name, v.namespace_id FROM hog_table_version v"
                    " WHERE v.catalog_id = t.catalog_id AND v.table_id = t.table_id"
                    " ORDER BY v.begin_snapshot DESC LIMIT 1) v ON true"
                    " LEFT JOIN hog_namespace n ON n.catalog_id = o.catalog_id"
                    " AND n.namespace_id = v.namespace_id"
                    " WHERE o.catalog_id = $1 ORDER BY o.consumer_id COLLATE \"C\", o.table_uuid",
                    mp_v_int(at.catalog_id));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    rows = mp_sql_rows(call->sql, number);
    mp_buf_add_c(out, "{\"consumers\":[");
    for (uint32_t i = 0; i < rows; i++) {
        struct mp_str consumer = mp_sql_cell(call->sql, number, i, 3);

        if (!last.data || !mp_str_eq(last, consumer)) {
            mp_buf_add_c(out, last.data ? "]},{" : "{");
            mp_wire_member_text(out, "consumer_id", consumer);
            mp_buf_add_c(out, ",\"offsets\":[");
            last = consumer;
        } else {
            mp_buf_add_byte(out, ',');
        }
        mp_buf_add_byte(out, '{');
        mp_wire_member_text(out, "table_uuid", mp_sql_cell(call->sql, number, i, 0));
        mp_wire_member_int(out, "committed_snapshot", mp_sql_int(call->sql, number, i, 1, 0));
        mp_wire_member_instant(out, "updated_at", mp_sql_int(call->sql, number, i, 2, 0));
        mp_wire_member_text(out, "namespace", mp_sql_cell(call->sql, number, i, 4));
        mp_wire_member_text(out, "table_name", mp_sql_cell(call->sql, number, i, 5));
        mp_wire_member_bool(out, "table_dropped", mp_sql_true(call->sql, number, i, 6));
        mp_buf_add_byte(out, '}');
    }
    mp_buf_add_c(out, rows ? "]}]}" : "]}");
    return MP_OK;
}
