/* server/routes/catalogs.c - catalogs: the top level, each with a data path of its own. */
#include "server/names.h"
#include "server/routes/routes.h"
#include "server/tx/tx.h"

#include <assert.h>

enum { CATALOGS_LOCK = 4740875 }; /* creation: the data paths of all are compared */

/* Without the last brace. */
static void print_begin(struct mp_buf *out, struct mp_str name, struct mp_str data_path,
                        int64_t head, int64_t schema_version)
{
    mp_buf_add_byte(out, '{');
    mp_wire_member_text(out, "name", name);
    mp_wire_member_text(out, "data_path", data_path);
    mp_wire_member_int(out, "head_snapshot_id", head);
    mp_wire_member_int(out, "schema_version", schema_version);
    mp_buf_add_c(out, ",\"capabilities\":[\"atomic-table-creation-v1\",\"idempotent-append-v1\","
                      "\"idempotent-delete-v1\",\"idempotent-mutation-v1\","
                      "\"guarded-table-lifecycle-v1\",\"atomic-table-replacement-v1\","
                      "\"guarded-schema-evolution-v1\",\"recursive-write-schema-v1\","
                      "\"atomic-partitioned-table-creation-v1\","
                      "\"atomic-sorted-table-creation-v1\",\"versioned-table-metadata-v1\","
                      "\"claimed-uploads-v1\",\"atomic-dml-transactions-v1\"]");
}

static void print_catalog(struct mp_buf *out, const struct mp_sql *sql, uint32_t number,
                          uint32_t row, bool sampled)
{
    print_begin(out, mp_sql_cell(sql, number, row, 0), mp_sql_cell(sql, number, row, 1),
                mp_sql_int(sql, number, row, 2, 0), mp_sql_int(sql, number, row, 3, 0));
    if (!mp_sql_null(sql, number, row, 4))
        mp_wire_member_instant(out, "earliest_snapshot_time", mp_sql_int(sql, number, row, 4, 0));
    if (sampled) {
        mp_wire_member_int(out, "table_count", mp_sql_int(sql, number, row, 5, 0));
        mp_wire_member_int(out, "live_rows", mp_sql_int(sql, number, row, 6, 0));
        mp_wire_member_int(out, "live_size_bytes", mp_sql_int(sql, number, row, 7, 0));
        if (!mp_sql_null(sql, number, row, 8))
            mp_wire_member_instant(out, "oldest_snapshot_time", mp_sql_int(sql, number, row, 8, 0));
    }
    mp_buf_add_byte(out, '}');
}

static void print_listed(struct mp_call *call, uint32_t number, uint32_t row)
{
    print_catalog(&call->out, call->sql, number, row, true);
}

/* Sums over tables may pass a bigint, which one table's cannot. */
static const char list_catalogs[] =
    "SELECT c.name, c.data_path, c.last_snapshot_id, c.schema_version,"
    " c.earliest_snapshot_time_us, coalesce(s.tables, 0),"
    " least(coalesce(s.rows, 0), 9223372036854775807)::bigint,"
    " least(coalesce(s.bytes, 0), 9223372036854775807)::bigint,"
    " (SELECT o.snapshot_time_us FROM hog_snapshot o WHERE o.catalog_id = c.catalog_id"
    "  AND o.snapshot_id = c.earliest_snapshot_id)"
    " FROM hog_catalog c LEFT JOIN LATERAL"
    " (SELECT count(*) AS tables, sum(live_rows) AS rows, sum(live_bytes) AS bytes"
    "  FROM hog_table_stats s JOIN hog_table t USING (catalog_id, table_id)"
    "  WHERE s.catalog_id = c.catalog_id AND t.dropped_snapshot IS NULL) s ON true"
    " ORDER BY c.name COLLATE \"C\"";

enum mp_code mp_route_catalog_list(struct mp_call *call)
{
    uint32_t number;
    enum mp_code code = mp_call_sql(call);

    if (code)
        return code;
    number = mp_sql_say(call->sql, list_catalogs);
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    mp_call_print_rows(call, number, print_listed);
    return MP_OK;
}

static const char get_catalog[] =
    "SELECT name, data_path, last_snapshot_id, schema_version, earliest_snapshot_time_us"
    " FROM hog_catalog WHERE name = $1";

enum mp_code mp_route_catalog_get(struct mp_call *call)
{
    uint32_t number;
    enum mp_code code = mp_call_sql(call);

    if (code)
        return code;
    number = MP_SQL(call->sql, get_catalog, mp_v_text(call->parts[0]));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (!mp_sql_rows(call->sql, number))
        return mp_refuse_missing(call, "catalog \"%.*s\" does not exist",
                                 MP_STR_ARG(call->parts[0]));
    print_catalog(&call->out, call->sql, number, 0, false);
    return MP_OK;
}

/* --- create --- */

struct create {
    struct mp_str name, data_path;
    struct mp_attribution by;
    int64_t token; /* of snapshot 0 */
    bool unsure;   /* the connection was lost at a COMMIT */
};

/* One try. It waits for one before that was lost, and finds what that made by its token. */
static enum mp_code create_once(struct mp_call *call, struct create *create)
{
    struct mp_str name = create->name;
    uint32_t taken, paths;
    enum mp_code code = mp_call_sql(call);

    if (code)
        return code;
    mp_sql_say(call->sql, "BEGIN");
    MP_SQL(call->sql, "SELECT pg_advisory_xact_lock($1)", mp_v_int(CATALOGS_LOCK));
    taken = MP_SQL(call->sql,
                   "SELECT (SELECT token FROM hog_snapshot s WHERE s.catalog_id = c.catalog_id"
                   " AND s.snapshot_id = 0) FROM hog_catalog c WHERE name = $1",
                   mp_v_text(name));
    paths =
        MP_SQL(call->sql, "SELECT data_path FROM hog_catalog WHERE name <> $1", mp_v_text(name));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (mp_sql_rows(call->sql, taken) && create->unsure &&
        mp_sql_int(call->sql, taken, 0, 0, 0) == create->token)
        return MP_OK;
    if (mp_sql_rows(call->sql, taken))
        return mp_refuse(call, 409, "already_exists", "catalog \"%.*s\" exists already",
                         MP_STR_ARG(name));
    for (uint32_t i = 0; i < mp_sql_rows(call->sql, paths); i++)
        if (mp_data_paths_overlap(create->data_path, mp_sql_cell(call->sql, paths, i, 0)))
            return mp_refuse_invalid(call, "data_path overlaps with that of another catalog");
    MP_SQL(call->sql,
           "WITH made AS (INSERT INTO hog_catalog (name, data_path, last_snapshot_time_us)"
           " VALUES ($1, $2, hog_now_us()) RETURNING catalog_id, last_snapshot_time_us)"
           " INSERT INTO hog_snapshot (catalog_id, snapshot_id, snapshot_time_us, schema_version,"
           " author, commit_message, token)"
           " SELECT catalog_id, 0, last_snapshot_time_us, 0, $3, $4, $5 FROM made",
           mp_v_text(name), mp_v_text(create->data_path), mp_v_text(create->by.author),
           mp_v_text(create->by.message), mp_v_int(create->token));
    mp_sql_say(call->sql, "COMMIT");
    code = mp_sql_sync(call->sql, &call->err);
    create->unsure = create->unsure || (code && !mp_sql_alive(call->sql));
    return code;
}

static enum mp_code create_surely(struct mp_call *call, struct create *create)
{
    enum { RETRY_SLEEP_US = 50 * 1000 };
    const struct mp_env *env = call->server->env;
    uint64_t deadline_us =
        mp_now_mono_us(env) + (uint64_t)call->server->settings->HOGLAKE_DB_RECOVERY_MS * 1000;
    enum mp_code code;

    create->token = (int64_t)mp_random_u64(env);
    for (;;) {
        code = create_once(call, create);
        if (!code || code == MP_REFUSED || !create->unsure)
            return code;
        if (mp_now_mono_us(env) > deadline_us)
            return mp_refuse(call, 500, "internal_error",
                             "the database was lost at the commit; whether the catalog was made is "
                             "not known");
        mp_sql_give(call->server->pool, &call->sql);
        mp_sleep_us(env, RETRY_SLEEP_US);
    }
}

enum mp_code mp_route_catalog_create(struct mp_call *call)
{
    static const char *const known[] = {"name", "data_path", "author", "message", NULL};
    struct mp_wire_reader reader = {.arena = &call->arena};
    struct create create = {.unsure = false};
    struct mp_err err;
    enum mp_code code;

    if (mp_wire_object(&reader, call->body, "the request", known)) {
        mp_wire_text(&reader, call->body, "name", true, &create.name);
        mp_wire_text(&reader, call->body, "data_path", true, &create.data_path);
    }
    code = mp_call_read_end(call, &reader);
    if (!code)
        code = mp_call_attribution(call, &create.by);
    if (!code && (mp_name_catalog(create.name, &err) || mp_data_path(create.data_path, &err)))
        code = mp_refuse_invalid(call, "%s", err.text);
    if (!code)
        code = create_surely(call, &create);
    if (code)
        return code;
    mp_audit(call, create.name,
             &(struct mp_audit){"catalog_create", "created", {NULL, 0}, &create.by},
             "data_path %.*s", MP_STR_ARG(create.data_path));
    call->status = 201;
    print_begin(&call->out, create.name, create.data_path, 0, 0);
    mp_buf_add_byte(&call->out, '}');
    return MP_OK;
}

/* --- drop --- */

struct precondition {
    const char *reason, *what;
};

/* In the order in which they are told. */
static const struct precondition preconditions[] = {
    {"live_namespaces", "live namespaces"},
    {"tables_pending_retirement", "dropped tables whose files are not retired"},
    {"files_pending_expiry", "ended files that have not expired"},
    {"removals_pending", "objects queued for removal"},
    {"active_compaction_claims", "compactions under way"},
    {"consumer_offsets", "consumer offsets"},
    {"active_uploads", "active uploads"},
    {"abandoned_uploads_unsettled", "abandoned uploads that are not settled"},
};

enum { PRECONDITIONS = sizeof(preconditions) / sizeof(*preconditions) };

static const char count_preconditions[] =
    "SELECT (SELECT string_agg(n.name, ', ' ORDER BY n.name) FROM hog_namespace n"
    "  WHERE n.catalog_id = $1 AND n.dropped_snapshot IS NULL),"
    " (SELECT count(*) FROM hog_namespace n WHERE n.catalog_id = $1"
    "  AND n.dropped_snapshot IS NULL),"
    " (SELECT count(DISTINCT t.table_id) FROM hog_table t JOIN hog_data_file f"
    "  USING (catalog_id, table_id) WHERE t.catalog_id = $1 AND t.dropped_snapshot IS NOT NULL"
    "  AND f.end_snapshot IS NULL),"
    " (SELECT count(*) FROM hog_data_file f WHERE f.catalog_id = $1"
    "  AND f.end_snapshot IS NOT NULL) + (SELECT count(*) FROM hog_delete_file d"
    "  WHERE d.catalog_id = $1 AND d.end_snapshot IS NOT NULL),"
    " (SELECT count(*) FROM hog_file_removal r WHERE r.catalog_id = $1 AND r.drained_us IS NULL),"
    " (SELECT count(*) FROM hog_compaction_claim c WHERE c.catalog_id = $1"
    "  AND c.expires_us > hog_now_us()),"
    " (SELECT count(*) FROM hog_consumer_offset o WHERE o.catalog_id = $1),"
    " (SELECT count(*) FROM hog_upload u WHERE u.catalog_id = $1 AND u.state = 'active'),"
    " (SELECT count(*) FROM hog_upload u WHERE u.catalog_id = $1 AND u.state = 'abandoned'"
    "  AND (u.scheduled_us IS NULL OR u.expires_us > hog_now_us()))";

static enum mp_code check_empty(struct mp_tx *tx, uint32_t number)
{
    struct mp_call *call = tx->call;
    struct mp_buf detail = MP_BUF_INIT(1024 * 1024);
    const char *reason = NULL;
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < PRECONDITIONS; i++) {
        int64_t count = mp_sql_int(tx->sql, number, 0, i + 1, 0);

        if (!count)
            continue;
        mp_buf_printf(&detail, "%s%lld %s", reason ? "; " : "", (long long)count,
                      preconditions[i].what);
        if (i == 0) {
            struct mp_str names = mp_sql_cell(tx->sql, number, 0, 0);

            mp_buf_printf(&detail, " (%.*s)", names.size > 1000 ? 1000 : (int)names.size,
                          names.data);
        }
        reason = reason ? reason : preconditions[i].reason;
    }
    if (reason) {
        code = mp_refuse(call, 409, "catalog_not_empty", "the catalog still has %.*s",
                         MP_STR_ARG(mp_buf_str(&detail)));
        call->refusal.wire.reason = mp_str_c(reason);
    }
    mp_buf_fini(&detail);
    return code;
}

struct drop {
    struct mp_str data_path;
    bool sent; /* by an earlier try, whose answer was lost */
};

static enum mp_code drop_work(struct mp_tx *tx, void *context)
{
    struct drop *drop = context;
    uint32_t number = MP_SQL(tx->sql, count_preconditions, mp_v_int(tx->catalog_id));
    enum mp_code code = mp_tx_sync(tx);

    if (!code)
        code = check_empty(tx, number);
    if (code)
        return code;
    drop->data_path = tx->data_path;
    drop->sent = true;
    MP_SQL(tx->sql, "DELETE FROM hog_snapshot_change WHERE catalog_id = $1",
           mp_v_int(tx->catalog_id));
    MP_SQL(tx->sql, "DELETE FROM hog_snapshot WHERE catalog_id = $1", mp_v_int(tx->catalog_id));
    MP_SQL(tx->sql, "DELETE FROM hog_commit_receipt WHERE catalog_id = $1",
           mp_v_int(tx->catalog_id));
    MP_SQL(tx->sql, "DELETE FROM hog_file_removal WHERE catalog_id = $1", mp_v_int(tx->catalog_id));
    MP_SQL(tx->sql, "DELETE FROM hog_upload WHERE catalog_id = $1", mp_v_int(tx->catalog_id));
    MP_SQL(tx->sql, "DELETE FROM hog_compaction_claim WHERE catalog_id = $1",
           mp_v_int(tx->catalog_id));
    MP_SQL(tx->sql, "DELETE FROM hog_maintenance_run WHERE catalog_id = $1",
           mp_v_int(tx->catalog_id));
    MP_SQL(tx->sql, "DELETE FROM hog_catalog WHERE catalog_id = $1", mp_v_int(tx->catalog_id));
    return MP_OK;
}

enum mp_code mp_route_catalog_drop(struct mp_call *call)
{
    struct drop drop = {.sent = false};
    struct mp_attribution by;
    enum mp_code code = mp_call_attribution(call, &by);

    if (!code)
        code = mp_tx_run(call, call->parts[0], drop_work, &drop);
    if (code && !(drop.sent && code == MP_REFUSED && call->refusal.status == 404))
        return code;
    mp_audit(call, call->parts[0], &(struct mp_audit){"catalog_drop", "dropped", {NULL, 0}, &by},
             "data_path %.*s", MP_STR_ARG(drop.data_path));
    mp_buf_add_byte(&call->out, '{');
    mp_wire_member_text(&call->out, "name", call->parts[0]);
    mp_wire_member_text(&call->out, "data_path", drop.data_path);
    mp_buf_add_byte(&call->out, '}');
    return MP_OK;
}
