/* server/routes/namespaces.c - flat groups of tables and views. */
#include "server/names.h"
#include "server/pages.h"
#include "server/routes/routes.h"
#include "server/tables.h"

static void print_namespace(struct mp_buf *out, struct mp_str name, int64_t id)
{
    mp_buf_add_byte(out, '{');
    mp_wire_member_text(out, "name", name);
    mp_wire_member_int(out, "namespace_id", id);
    mp_buf_add_byte(out, '}');
}

static const char namespaces_page[] = "SELECT n.name, n.namespace_id FROM " MP_PAGES_ROWS_OF(
    "hog_namespace", "n", "namespace_id") " ORDER BY p.n";

static void print_listed(struct mp_call *call, const struct mp_pages_list *list, uint32_t number,
                         uint32_t row)
{
    (void)list;
    print_namespace(&call->out, mp_sql_cell(call->sql, number, row, 0),
                    mp_sql_int(call->sql, number, row, 1, 0));
}

enum mp_code mp_route_namespace_list(struct mp_call *call)
{
    struct mp_at at;
    uint32_t number;
    enum mp_code code = mp_at_read(call, &at);

    if (code)
        return code;
    number = MP_SQL(call->sql,
                    "SELECT ARRAY(SELECT namespace_id FROM hog_namespace WHERE catalog_id = $1"
                    " AND created_snapshot <= $2"
                    " AND (dropped_snapshot IS NULL OR $2 < dropped_snapshot)"
                    " ORDER BY name COLLATE \"C\")",
                    mp_v_int(at.catalog_id), mp_v_int(at.snapshot));
    code = mp_pages_begin(call, &at, at.snapshot);
    if (code)
        return code;
    mp_pages_add(call, number,
                 &(struct mp_pages_list){.page = namespaces_page, .print = print_listed});
    return mp_pages_print(call);
}

enum mp_code mp_route_namespace_get(struct mp_call *call)
{
    struct mp_at at;
    int64_t id;
    enum mp_code code = mp_at_head(call, &at);

    if (!code)
        code = mp_namespace_find(call, call->sql, at.catalog_id, call->parts[1], &id);
    if (!code)
        print_namespace(&call->out, call->parts[1], id);
    return code;
}

struct work {
    struct mp_str name;
    struct mp_attribution by;
    bool guarded;
    int64_t guard, id;
    struct mp_wire_commit_result result;
};

static enum mp_code create_work(struct mp_tx *tx, void *context)
{
    struct work *work = context;
    uint32_t number = MP_SQL(tx->sql,
                             "SELECT 1 FROM hog_namespace WHERE catalog_id = $1 AND name = $2"
                             " AND dropped_snapshot IS NULL",
                             mp_v_int(tx->catalog_id), mp_v_text(work->name));
    enum mp_code code = mp_tx_sync(tx);
    int64_t snapshot;

    if (code)
        return code;
    if (mp_sql_rows(tx->sql, number))
        return mp_refuse(tx->call, 409, "already_exists", "namespace \"%.*s\" exists already",
                         MP_STR_ARG(work->name));
    work->id = tx->next_namespace++;
    snapshot = mp_tx_snapshot(tx, true, work->by.author, work->by.message);
    mp_tx_change(tx, "namespace_created", work->id);
    MP_SQL(tx->sql,
           "INSERT INTO hog_namespace (catalog_id, namespace_id, name, created_snapshot)"
           " VALUES ($1, $2, $3, $4)",
           mp_v_int(tx->catalog_id), mp_v_int(work->id), mp_v_text(work->name), mp_v_int(snapshot));
    return MP_OK;
}

enum mp_code mp_route_namespace_create(struct mp_call *call)
{
    static const char *const known[] = {"name", "author", "message", NULL};
    struct mp_wire_reader reader = {.arena = &call->arena};
    struct work work = {0};
    struct mp_err err;
    enum mp_code code;

    if (mp_wire_object(&reader, call->body, "the request", known))
        mp_wire_text(&reader, call->body, "name", true, &work.name);
    code = mp_call_read_end(call, &reader);
    if (!code)
        code = mp_call_attribution(call, &work.by);
    if (!code && mp_name_object("namespace", work.name, &err))
        code = mp_refuse_invalid(call, "%s", err.text);
    if (!code)
        code = mp_tx_run(call, call->parts[0], create_work, &work);
    if (code)
        return code;
    mp_audit(call, call->parts[0],
             &(struct mp_audit){"namespace_create", "created", work.name, &work.by},
             "namespace_id %lld", (long long)work.id);
    call->status = 201;
    print_namespace(&call->out, work.name, work.id);
    return MP_OK;
}

static enum mp_code drop_work(struct mp_tx *tx, void *context)
{
    struct work *work = context;
    uint32_t number;
    int64_t tables, views, snapshot;
    enum mp_code code = mp_namespace_find(tx->call, tx->sql, tx->catalog_id, work->name, &work->id);

    if (code)
        return code;
    if (work->guarded && work->guard != work->id)
        return mp_refuse_conflict(tx->call, "namespace \"%.*s\" has id %lld, not %lld",
                                  MP_STR_ARG(work->name), (long long)work->id,
                                  (long long)work->guard);
    number = MP_SQL(tx->sql,
                    "SELECT (SELECT count(*) FROM hog_table_version WHERE catalog_id = $1"
                    " AND namespace_id = $2 AND end_snapshot IS NULL),"
                    " (SELECT count(*) FROM hog_view WHERE catalog_id = $1"
                    " AND namespace_id = $2 AND end_snapshot IS NULL)",
                    mp_v_int(tx->catalog_id), mp_v_int(work->id));
    code = mp_tx_sync(tx);
    if (code)
        return code;
    tables = mp_sql_int(tx->sql, number, 0, 0, 0);
    views = mp_sql_int(tx->sql, number, 0, 1, 0);
    if (tables || views)
        return mp_refuse(tx->call, 409, "namespace_not_empty",
                         "namespace \"%.*s\" has %lld tables and %lld views",
                         MP_STR_ARG(work->name), (long long)tables, (long long)views);
    snapshot = mp_tx_snapshot(tx, true, work->by.author, work->by.message);
    mp_tx_change(tx, "namespace_dropped", work->id);
    MP_SQL(tx->sql,
           "UPDATE hog_namespace SET dropped_snapshot = $3 WHERE catalog_id = $1"
           " AND namespace_id = $2",
           mp_v_int(tx->catalog_id), mp_v_int(work->id), mp_v_int(snapshot));
    work->result = (struct mp_wire_commit_result){snapshot, tx->schema_version};
    return MP_OK;
}

enum mp_code mp_route_namespace_drop(struct mp_call *call)
{
    struct work work = {.name = call->parts[1]};
    enum mp_code code = mp_call_attribution(call, &work.by);

    if (!code)
        code = mp_call_query_int(call, "expected_namespace_id", &work.guard, &work.guarded);
    if (!code)
        code = mp_tx_run(call, call->parts[0], drop_work, &work);
    if (code)
        return code;
    mp_audit(
        call, call->parts[0], &(struct mp_audit){"namespace_drop", "dropped", work.name, &work.by},
        "namespace_id %lld, snapshot %lld", (long long)work.id, (long long)work.result.snapshot_id);
    mp_wire_commit_result_print(&call->out, &work.result);
    return MP_OK;
}
