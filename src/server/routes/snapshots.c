/* server/routes/snapshots.c - the history of a catalog. */
#include "server/tables.h"
#include "server/routes/routes.h"

static void print_snapshots(struct mp_call *call, uint32_t number, int64_t limit)
{
    struct mp_buf *out = &call->out;
    uint32_t rows = mp_sql_rows(call->sql, number);
    bool more = rows > limit;

    mp_buf_add_c(out, "{\"snapshots\":[");
    for (uint32_t i = 0; i < (more ? (uint32_t)limit : rows); i++) {
        mp_buf_add_c(out, i ? ",{" : "{");
        mp_wire_member_int(out, "snapshot_id", mp_sql_int(call->sql, number, i, 0, 0));
        mp_wire_member_instant(out, "snapshot_time", mp_sql_int(call->sql, number, i, 1, 0));
        mp_wire_member_int(out, "schema_version", mp_sql_int(call->sql, number, i, 2, 0));
        mp_wire_member_text(out, "author", mp_sql_cell(call->sql, number, i, 3));
        mp_wire_member_text(out, "message", mp_sql_cell(call->sql, number, i, 4));
        mp_wire_member(out, "changes");
        mp_buf_add_str(out, mp_sql_cell(call->sql, number, i, 5));
        mp_buf_add_byte(out, '}');
    }
    mp_buf_add_c(out, "],\"has_more\":");
    mp_buf_add_c(out, more ? "true}" : "false}");
}

#define SNAPSHOTS                                                                                  \
    "SELECT s.snapshot_id, s.snapshot_time_us, s.schema_version, s.author, s.commit_message,"      \
    " (SELECT coalesce(json_agg(json_build_object('kind', c.kind, 'object_id', c.object_id)"       \
    " ORDER BY c.object_id, c.kind), '[]'::json) FROM hog_snapshot_change c"                       \
    " WHERE c.catalog_id = s.catalog_id AND c.snapshot_id = s.snapshot_id)"                        \
    " FROM hog_snapshot s WHERE s.catalog_id = $1"

enum mp_code mp_route_snapshots(struct mp_call *call)
{
    enum { LIMIT_DEFAULT = 1000, LIMIT_MAX = 10000 };
    struct mp_at at;
    int64_t after = 0, before = 0, limit = LIMIT_DEFAULT;
    bool has_before = false;
    uint32_t number;
    enum mp_code code = mp_call_query_int(call, "after", &after, NULL);

    if (!code)
        code = mp_call_query_int(call, "before", &before, &has_before);
    if (!code)
        code = mp_call_query_int(call, "limit", &limit, NULL);
    if (code)
        return code;
    if (limit < 1)
        return mp_refuse_invalid(call, "limit must be at least 1");
    if (has_before && after)
        return mp_refuse_invalid(call, "after and before exclude each other");
    limit = limit > LIMIT_MAX ? LIMIT_MAX : limit;
    code = mp_at_head(call, &at);
    if (code)
        return code;
    if (has_before)
        number = MP_SQL(call->sql,
                        SNAPSHOTS " AND s.snapshot_id < $2 ORDER BY s.snapshot_id DESC LIMIT $3",
                        mp_v_int(at.catalog_id), mp_v_int(before), mp_v_int(limit + 1));
    else
        number =
            MP_SQL(call->sql, SNAPSHOTS " AND s.snapshot_id > $2 ORDER BY s.snapshot_id LIMIT $3",
                   mp_v_int(at.catalog_id), mp_v_int(after), mp_v_int(limit + 1));
    code = mp_sql_sync(call->sql, &call->err);
    if (!code)
        print_snapshots(call, number, limit);
    return code;
}

enum mp_code mp_route_snapshot_resolve(struct mp_call *call)
{
    struct mp_at at;
    uint32_t number;
    enum mp_code code;

    if (!mp_call_query(call, "at_timestamp").data)
        return mp_refuse_bad(call, "the query parameter \"at_timestamp\" is required");
    code = mp_at_read(call, &at);
    if (code)
        return code;
    number = MP_SQL(call->sql,
                    "SELECT snapshot_time_us FROM hog_snapshot WHERE catalog_id = $1"
                    " AND snapshot_id = $2",
                    mp_v_int(at.catalog_id), mp_v_int(at.snapshot));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (!mp_sql_rows(call->sql, number))
        return mp_refuse(call, 410, "expired", "that snapshot has expired just now");
    mp_buf_add_byte(&call->out, '{');
    mp_wire_member_int(&call->out, "snapshot_id", at.snapshot);
    mp_wire_member_instant(&call->out, "snapshot_time", mp_sql_int(call->sql, number, 0, 0, 0));
    mp_buf_add_byte(&call->out, '}');
    return MP_OK;
}
