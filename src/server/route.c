/* server/route.c - the one table of routes. See priv.h. */
#include "base/utf8.h"
#include "server/routes/routes.h"

#include <assert.h>

enum { PARTS_MAX = 12, QUERY_MAX = 20000 };

#define C "/v1/catalogs/*"
#define N C "/namespaces/*"
#define T N "/tables/*"

static const struct mp_route routes[] = {
    {"GET", "/livez", MP_BODY_NONE, mp_route_livez, true, false, true},
    {"GET", "/healthz", MP_BODY_NONE, mp_route_healthz, true, false, true},
    {"GET", "/readyz", MP_BODY_NONE, mp_route_healthz, true, false, true},
    {"GET", "/metrics", MP_BODY_NONE, mp_route_metrics, true, false, true},
    {"GET", "/openapi.yaml", MP_BODY_NONE, mp_route_openapi, true, false, true},
    {"GET", "/v1/info", MP_BODY_NONE, mp_route_info, .open = true},
    {"GET", "/v1/database/health", MP_BODY_NONE, mp_route_database_health},
    {"POST", "/v1/debug/decode-bound", MP_BODY_JSON, mp_route_decode_bound},
    {"GET", "/v1/maintenance/status", MP_BODY_NONE, mp_route_instance_status},
    {"GET", "/v1/maintenance/runs", MP_BODY_NONE, mp_route_instance_runs},

    {"GET", "/v1/catalogs", MP_BODY_NONE, mp_route_catalog_list},
    {"POST", "/v1/catalogs", MP_BODY_JSON, mp_route_catalog_create},
    {"GET", C, MP_BODY_NONE, mp_route_catalog_get},
    {"DELETE", C, MP_BODY_NONE, mp_route_catalog_drop, .attributed = true},

    {"GET", C "/namespaces", MP_BODY_NONE, mp_route_namespace_list},
    {"POST", C "/namespaces", MP_BODY_JSON, mp_route_namespace_create},
    {"GET", N, MP_BODY_NONE, mp_route_namespace_get},
    {"DELETE", N, MP_BODY_NONE, mp_route_namespace_drop, .attributed = true},

    {"GET", N "/tables", MP_BODY_NONE, mp_route_table_list},
    {"POST", N "/tables", MP_BODY_JSON, mp_route_table_create},
    {"GET", T, MP_BODY_NONE, mp_route_table_get},
    {"DELETE", T, MP_BODY_NONE, mp_route_table_drop, .attributed = true},
    {"POST", T "/truncate", MP_BODY_OPTIONAL, mp_route_table_truncate, .attributed = true},
    {"POST", T "/alter", MP_BODY_JSON, mp_route_table_alter},
    {"GET", T "/files", MP_BODY_NONE, mp_route_files},
    {"GET", T "/files/*/stats", MP_BODY_NONE, mp_route_file_stats},
    {"GET", T "/scan", MP_BODY_NONE, mp_route_scan},
    {"GET", T "/changes", MP_BODY_NONE, mp_route_changes},
    {"GET", T "/partitions", MP_BODY_NONE, mp_route_partitions},
    {"GET", T "/partitions/values", MP_BODY_NONE, mp_route_partition_values},

    {"GET", N "/views", MP_BODY_NONE, mp_route_view_list},
    {"POST", N "/views", MP_BODY_JSON, mp_route_view_create},
    {"GET", N "/views/*", MP_BODY_NONE, mp_route_view_get},
    {"DELETE", N "/views/*", MP_BODY_NONE, mp_route_view_drop, .attributed = true},

    {"GET", C "/snapshots", MP_BODY_NONE, mp_route_snapshots},
    {"GET", C "/snapshots/resolve", MP_BODY_NONE, mp_route_snapshot_resolve},

    {"POST", C "/commit", MP_BODY_JSON, mp_route_commit},
    {"POST", C "/commit/prepared", MP_BODY_JSON, mp_route_commit_prepared},
    {"POST", C "/commit/deletes/prepared", MP_BODY_JSON, mp_route_commit_deletes},
    {"POST", C "/commit/mutations/prepared", MP_BODY_JSON, mp_route_commit_mutations},
    {"POST", C "/commit/uploads", MP_BODY_JSON, mp_route_commit_uploads},
    {"POST", C "/commit/transaction", MP_BODY_JSON, mp_route_commit_transaction},
    {"GET", C "/commit/receipts/*", MP_BODY_NONE, mp_route_commit_receipt},

    {"GET", C "/options", MP_BODY_NONE, mp_route_options_get},
    {"PATCH", C "/options", MP_BODY_JSON, mp_route_options_patch},

    {"GET", C "/consumers", MP_BODY_NONE, mp_route_consumer_list},
    {"GET", C "/consumers/*/offsets", MP_BODY_NONE, mp_route_consumer_offsets},
    {"GET", C "/consumers/*/offsets/*", MP_BODY_NONE, mp_route_consumer_offset_get},
    {"PUT", C "/consumers/*/offsets/*", MP_BODY_JSON, mp_route_consumer_offset_put},

    {"POST", C "/maintenance/expire", MP_BODY_NONE, mp_route_expire},
    {"POST", C "/maintenance/cleanup", MP_BODY_NONE, mp_route_cleanup},
    {"POST", C "/maintenance/compact", MP_BODY_NONE, mp_route_compact},
    {"POST", C "/maintenance/rehydrate", MP_BODY_NONE, mp_route_rehydrate},
    {"GET", C "/maintenance/status", MP_BODY_NONE, mp_route_maintenance_status},
    {"GET", C "/maintenance/runs", MP_BODY_NONE, mp_route_maintenance_runs},
    {"GET", C "/stats/partitions", MP_BODY_NONE, mp_route_partition_stats},

    {"PUT", C "/uploads/*", MP_BODY_JSON, mp_route_upload_claim},
    {"POST", C "/uploads/renew", MP_BODY_JSON, mp_route_upload_renew},
    {"POST", C "/uploads/abandon", MP_BODY_JSON, mp_route_upload_abandon},
    {"POST", C "/uploads/schedule-expired", MP_BODY_NONE, mp_route_upload_schedule_expired},

    {"PUT", C "/table-creations/*", MP_BODY_JSON, mp_route_creation_plain},
    {"PUT", C "/table-creations/*/partitioned", MP_BODY_JSON, mp_route_creation_partitioned},
    {"PUT", C "/table-creations/*/sorted", MP_BODY_JSON, mp_route_creation_sorted},
    {"PUT", C "/table-creations/*/metadata", MP_BODY_JSON, mp_route_creation_metadata},
    {"GET", C "/table-creations/*", MP_BODY_NONE, mp_route_creation_get},
    {"POST", C "/table-creations/*/commit", MP_BODY_JSON, mp_route_creation_commit},
    {"POST", C "/table-creations/*/commit/uploads", MP_BODY_JSON, mp_route_creation_commit_uploads},
    {"POST", C "/table-creations/*/abort", MP_BODY_NONE, mp_route_creation_abort},

    {"GET", C "/publications", MP_BODY_NONE, mp_route_not_implemented},
    {"POST", C "/publications", MP_BODY_NONE, mp_route_not_implemented},
    {"GET", C "/publications/*", MP_BODY_NONE, mp_route_not_implemented},
    {"DELETE", C "/publications/*", MP_BODY_NONE, mp_route_not_implemented},
    {"GET", C "/export", MP_BODY_NONE, mp_route_not_implemented},
};

enum { ROUTES = sizeof(routes) / sizeof(*routes) };

/* Compares the encoded path with a pattern; the parts where it has "*" are lent. */
static bool matches(const char *pattern, struct mp_str path, struct mp_str *parts,
                    uint32_t *ret_count)
{
    const char *c = path.data, *end = path.data + path.size;
    uint32_t count = 0;

    for (; *pattern; pattern++) {
        if (*pattern != '*') {
            if (c == end || *c++ != *pattern)
                return false;
            continue;
        }
        const char *begin = c;

        while (c < end && *c != '/')
            c++;
        if (c == begin)
            return false;
        assert(count < MP_CALL_PARTS_MAX);
        parts[count++] = mp_str_n(begin, (size_t)(c - begin));
    }
    *ret_count = count;
    return c == end;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)mp_ascii_lower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool mp_route_decode(struct mp_arena *arena, struct mp_str text, bool query, struct mp_str *ret)
{
    char *decoded = mp_arena_take(arena, text.size + 1);
    size_t size = 0;

    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];

        if (c == '%') {
            int high = i + 2 < text.size ? hex(text.data[i + 1]) : -1;
            int low = i + 2 < text.size ? hex(text.data[i + 2]) : -1;

            if (high < 0 || low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && query) {
            c = ' ';
        }
        if (!c)
            return false;
        decoded[size++] = c;
    }
    *ret = mp_str_n(decoded, size);
    return mp_utf8_is(*ret);
}

bool mp_route_at_once(struct mp_str method, struct mp_str path)
{
    struct mp_str parts[MP_CALL_PARTS_MAX];
    uint32_t count;

    for (int i = 0; i < ROUTES && routes[i].at_once; i++)
        if (mp_str_eq(method, mp_str_c(routes[i].method)) &&
            matches(routes[i].pattern, path, parts, &count))
            return true;
    return false;
}

const struct mp_route *mp_route_find(struct mp_call *call, struct mp_str method, struct mp_str path,
                                     unsigned *ret_status)
{
    struct mp_str parts[MP_CALL_PARTS_MAX];
    const struct mp_route *found = NULL;
    uint32_t count, found_count = 0;

    *ret_status = 404;
    for (int i = 0; i < ROUTES; i++) {
        const struct mp_route *route = &routes[i];

        if (!matches(route->pattern, path, parts, &count))
            continue;
        if (!mp_str_eq(method, mp_str_c(route->method))) {
            *ret_status = found ? *ret_status : 405;
            continue;
        }
        if (found && count >= found_count)
            continue; /* "snapshots/resolve" before "*" */
        found = route;
        found_count = count;
        memcpy(call->parts, parts, sizeof(parts));
    }
    for (uint32_t i = 0; i < found_count; i++)
        if (!mp_route_decode(&call->arena, call->parts[i], false, &call->parts[i])) {
            *ret_status = 400;
            return NULL;
        }
    return found;
}

enum mp_code mp_route_query(struct mp_call *call, struct mp_str query)
{
    size_t room = 1, begin = 0;

    if (!query.size)
        return MP_OK;
    for (size_t i = 0; i < query.size; i++)
        room += query.data[i] == '&';
    if (room > QUERY_MAX)
        return mp_refuse_bad(call, "the query has too many parameters");
    call->query = mp_arena_take(&call->arena, room * sizeof(*call->query));
    for (size_t i = 0; i <= query.size; i++) {
        struct mp_str pair, name, value;
        const char *equal;

        if (i < query.size && query.data[i] != '&')
            continue;
        pair = mp_str_n(query.data + begin, i - begin);
        begin = i + 1;
        if (!pair.size)
            continue;
        equal = memchr(pair.data, '=', pair.size);
        name = mp_str_n(pair.data, equal ? (size_t)(equal - pair.data) : pair.size);
        value = equal ? mp_str_n(equal + 1, pair.size - name.size - 1) : MP_STR("");
        if (!mp_route_decode(&call->arena, name, true, &name) ||
            !mp_route_decode(&call->arena, value, true, &value))
            return mp_refuse_bad(call, "the query cannot be decoded");
        call->query[call->query_count++] = (struct mp_query){name, value};
    }
    return MP_OK;
}
