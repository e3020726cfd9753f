/* server/routes/uploads.c - paths claimed before their objects are there.
 *
 * A claim keeps cleanup away from a path, and other commits from registering it. */
#include "server/names.h"
#include "server/routes/routes.h"
#include "server/tables.h"

enum { PATHS_MAX = 10000 };
#define LEASE_US "86400000000"

static enum mp_code print_claim(struct mp_call *call, int64_t catalog_id, struct mp_str id,
                                struct mp_str owner, struct mp_str prefix, struct mp_str kind)
{
    struct mp_buf *out = &call->out;
    uint32_t number = MP_SQL(call->sql,
                             "SELECT owner, prefix, path, file_kind, state, expires_us"
                             " FROM hog_upload WHERE catalog_id = $1 AND upload_id = $2",
                             mp_v_int(catalog_id), mp_v_uuid(id));
    enum mp_code code = mp_sql_sync(call->sql, &call->err);

    if (code)
        return code;
    if (!mp_str_eq(mp_sql_cell(call->sql, number, 0, 0), owner) ||
        !mp_str_eq(mp_sql_cell(call->sql, number, 0, 1), prefix) ||
        !mp_str_eq(mp_sql_cell(call->sql, number, 0, 3), kind))
        return mp_refuse_conflict(call, "that upload was claimed with another intent");
    mp_buf_add_byte(out, '{');
    mp_wire_member_text(out, "upload_id", id);
    mp_wire_member_text(out, "owner", owner);
    mp_wire_member_text(out, "prefix", prefix);
    mp_wire_member_text(out, "path", mp_sql_cell(call->sql, number, 0, 2));
    mp_wire_member_text(out, "file_kind", kind);
    mp_wire_member_text(out, "state", mp_sql_cell(call->sql, number, 0, 4));
    mp_wire_member(out, "expires_at");
    mp_buf_add_byte(out, '"');
    mp_wire_instant_print(out, mp_sql_int(call->sql, number, 0, 5, 0));
    mp_buf_add_c(out, "\"}");
    return MP_OK;
}

enum mp_code mp_route_upload_claim(struct mp_call *call)
{
    static const char *const known[] = {"owner", "prefix", "file_kind", NULL};
    struct mp_wire_reader reader = {.arena = &call->arena};
    struct mp_str id, owner = {NULL, 0}, prefix = {NULL, 0}, kind = {NULL, 0}, trimmed;
    struct mp_at at;
    bool data;
    enum mp_code code = mp_call_part_uuid(call, 1, &id);

    if (mp_wire_object(&reader, call->body, "the request", known)) {
        mp_wire_uuid(&reader, call->body, "owner", true, &owner);
        mp_wire_text(&reader, call->body, "prefix", true, &prefix);
        mp_wire_text(&reader, call->body, "file_kind", true, &kind);
    }
    if (!code)
        code = mp_call_read_end(call, &reader);
    if (!code)
        code = mp_at_head(call, &at);
    if (code)
        return code;
    data = mp_str_eq(kind, MP_STR("data"));
    if (!data && !mp_str_eq(kind, MP_STR("delete")))
        return mp_refuse_invalid(call, "file_kind must be data or delete");
    trimmed = mp_data_path_trim(prefix);
    if (!mp_object_path(at.data_path, trimmed))
        return mp_refuse_invalid(call, "prefix does not lie below the catalog's data_path");
    MP_SQL(call->sql,
           "INSERT INTO hog_upload (catalog_id, upload_id, owner, prefix, path, file_kind, state,"
           " expires_us) VALUES ($1, $2, $3, $4, $5, $6, 'active', hog_now_us() + " LEASE_US ")"
           " ON CONFLICT (catalog_id, upload_id) DO NOTHING",
           mp_v_int(at.catalog_id), mp_v_uuid(id), mp_v_uuid(owner), mp_v_text(prefix),
           mp_v_c(mp_arena_printf(&call->arena, "%.*s/trino-upload/%.*s.%s", MP_STR_ARG(trimmed),
                                  MP_STR_ARG(id), data ? "parquet" : "puffin")),
           mp_v_text(kind));
    code = print_claim(call, at.catalog_id, id, owner, prefix, kind);
    if (!code)
        mp_audit(call, call->parts[0], &(struct mp_audit){"upload_claim", "claimed", id, NULL},
                 "owner %.*s, prefix %.*s, %.*s", MP_STR_ARG(owner), MP_STR_ARG(prefix),
                 MP_STR_ARG(kind));
    return code;
}

enum mp_code mp_route_upload_renew(struct mp_call *call)
{
    static const char *const known[] = {"owner", NULL};
    struct mp_wire_reader reader = {.arena = &call->arena};
    struct mp_str owner = {NULL, 0};
    struct mp_at at;
    uint32_t number;
    enum mp_code code;

    if (mp_wire_object(&reader, call->body, "the request", known))
        mp_wire_uuid(&reader, call->body, "owner", true, &owner);
    code = mp_call_read_end(call, &reader);
    if (!code)
        code = mp_at_head(call, &at);
    if (code)
        return code;
    number = MP_SQL(call->sql,
                    "UPDATE hog_upload SET expires_us = hog_now_us() + " LEASE_US
                    " WHERE catalog_id = $1 AND owner = $2 AND state = 'active'",
                    mp_v_int(at.catalog_id), mp_v_uuid(owner));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    mp_call_print_count(call, "renewed", mp_sql_changed(call->sql, number));
    mp_audit(call, call->parts[0], &(struct mp_audit){"upload_renew", "renewed", owner, NULL},
             "%lld claims", (long long)mp_sql_changed(call->sql, number));
    return MP_OK;
}

enum mp_code mp_route_upload_abandon(struct mp_call *call)
{
    static const char *const known[] = {"owner", "paths", NULL};
    struct mp_wire_reader reader = {.arena = &call->arena};
    struct mp_str owner = {NULL, 0};
    struct mp_sql_array paths;
    const json_t *list = NULL;
    struct mp_at at;
    uint32_t number;
    enum mp_code code;

    mp_sql_array_init(&paths, MP_PG_TEXT_ARRAY);
    if (mp_wire_object(&reader, call->body, "the request", known)) {
        mp_wire_uuid(&reader, call->body, "owner", true, &owner);
        list = mp_wire_array(&reader, call->body, "paths", true);
    }
    for (size_t i = 0; i < json_array_size(list) && !reader.failed; i++) {
        struct mp_str path;

        if (mp_wire_text_item(&reader, json_array_get(list, i), "paths", &path))
            mp_sql_array_text(&paths, path);
    }
    code = mp_call_read_end(call, &reader);
    if (!code && json_array_size(list) > PATHS_MAX)
        code = mp_refuse_invalid(call, "more than %d paths", PATHS_MAX);
    if (!code)
        code = mp_at_head(call, &at);
    if (code)
        goto out;
    number = MP_SQL(call->sql,
                    "UPDATE hog_upload SET state = 'abandoned' WHERE catalog_id = $1"
                    " AND owner = $2 AND state = 'active' AND path = ANY ($3)",
                    mp_v_int(at.catalog_id), mp_v_uuid(owner), mp_sql_array_value(&paths));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        goto out;
    mp_call_print_count(call, "abandoned", mp_sql_changed(call->sql, number));
    mp_audit(call, call->parts[0], &(struct mp_audit){"upload_abandon", "abandoned", owner, NULL},
             "%lld claims", (long long)mp_sql_changed(call->sql, number));
out:
    mp_sql_array_fini(&paths);
    return code;
}

enum mp_code mp_route_upload_schedule_expired(struct mp_call *call)
{
    int64_t limit = 1000;
    struct mp_at at;
    uint32_t number;
    enum mp_code code = mp_call_query_int(call, "limit", &limit, NULL);

    if (!code && (limit < 1 || limit > PATHS_MAX))
        code = mp_refuse_invalid(call, "limit must be 1 to %d", PATHS_MAX);
    if (!code)
        code = mp_at_head(call, &at);
    if (code)
        return code;
    number = MP_SQL(call->sql,
                    "WITH due AS (UPDATE hog_upload SET state = 'abandoned',"
                    " scheduled_us = hog_now_us() WHERE catalog_id = $1 AND upload_id IN"
                    " (SELECT upload_id FROM hog_upload WHERE catalog_id = $1"
                    "  AND state IN ('active', 'abandoned') AND scheduled_us IS NULL"
                    "  AND (expires_us < hog_now_us() OR state = 'abandoned')"
                    "  ORDER BY expires_us LIMIT $2 FOR UPDATE SKIP LOCKED)"
                    " RETURNING path, file_kind)"
                    " INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason,"
                    " scheduled_us) SELECT $1, path, file_kind, 'trino_upload', hog_now_us()"
                    " FROM due",
                    mp_v_int(at.catalog_id), mp_v_int(limit));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    mp_call_print_count(call, "scheduled", mp_sql_changed(call->sql, number));
    mp_audit(call, call->parts[0],
             &(struct mp_audit){"upload_schedule_expired", "scheduled", {NULL, 0}, NULL},
             "%lld claims", (long long)mp_sql_changed(call->sql, number));
    return MP_OK;
}
