/* server/routes/views.c - named SQL texts; nobody here reads the SQL. */
#include "server/names.h"
#include "server/pages.h"
#include "server/routes/routes.h"
#include "server/tables.h"

struct view {
    struct mp_str name, uuid, dialect, sql;
    struct mp_attribution by;
    int64_t id;
    struct mp_wire_commit_result result;
};

static void print_view(struct mp_buf *out, struct mp_str namespace_name, const struct view *view)
{
    mp_buf_add_byte(out, '{');
    mp_wire_member_text(out, "name", view->name);
    mp_wire_member_text(out, "namespace", namespace_name);
    mp_wire_member_text(out, "view_uuid", view->uuid);
    mp_wire_member_text(out, "dialect", view->dialect);
    mp_wire_member_text(out, "sql", view->sql);
    mp_buf_add_byte(out, '}');
}

/* Views are those of the head; there is no time travel for them. */
static enum mp_code find_namespace(struct mp_call *call, struct mp_at *ret_at, int64_t *ret)
{
    enum mp_code code = mp_at_head(call, ret_at);

    return code ? code
                : mp_namespace_find(call, call->sql, ret_at->catalog_id, call->parts[1], ret);
}

#define VIEW_COLUMNS "v.name, v.view_uuid, v.dialect, v.sql"

static void print_listed(struct mp_call *call, const struct mp_pages_list *list, uint32_t number,
                         uint32_t row)
{
    struct view view = {
        .name = mp_sql_cell(call->sql, number, row, 0),
        .uuid = mp_sql_cell(call->sql, number, row, 1),
        .dialect = mp_sql_cell(call->sql, number, row, 2),
        .sql = mp_sql_cell(call->sql, number, row, 3),
    };

    (void)list;
    print_view(&call->out, call->parts[1], &view);
}

static const char views_page[] =
    "SELECT " VIEW_COLUMNS " FROM " MP_PAGES_ROWS_OF("hog_view", "v", "view_id") " ORDER BY p.n";

enum mp_code mp_route_view_list(struct mp_call *call)
{
    enum { PAGE_ROWS = 20 }; /* each with a text of any length */
    struct mp_at at;
    int64_t namespace_id;
    uint32_t number;
    enum mp_code code = find_namespace(call, &at, &namespace_id);

    if (code)
        return code;
    number = MP_SQL(call->sql,
                    "SELECT ARRAY(SELECT view_id FROM hog_view WHERE catalog_id = $1"
                    " AND namespace_id = $2 AND end_snapshot IS NULL ORDER BY name COLLATE \"C\")",
                    mp_v_int(at.catalog_id), mp_v_int(namespace_id));
    code = mp_pages_begin(call, &at, at.head);
    if (code)
        return code;
    mp_pages_add(
        call, number,
        &(struct mp_pages_list){.page = views_page, .rows_max = PAGE_ROWS, .print = print_listed});
    return mp_pages_print(call);
}

enum mp_code mp_route_view_get(struct mp_call *call)
{
    struct mp_str name = call->parts[2];
    struct mp_at at;
    int64_t namespace_id;
    uint32_t number;
    enum mp_code code = find_namespace(call, &at, &namespace_id);

    if (code)
        return code;
    number = MP_SQL(call->sql,
                    "SELECT " VIEW_COLUMNS " FROM hog_view v WHERE catalog_id = $1"
                    " AND namespace_id = $2 AND end_snapshot IS NULL AND name = $3",
                    mp_v_int(at.catalog_id), mp_v_int(namespace_id), mp_v_text(name));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (!mp_sql_rows(call->sql, number))
        return mp_refuse_missing(call, "view \"%.*s\" does not exist",
                                 name.size > 200 ? 200 : (int)name.size, name.data);
    print_listed(call, NULL, number, 0);
    return MP_OK;
}

static enum mp_code find_view(struct mp_tx *tx, struct mp_str name, int64_t *ret_namespace,
                              int64_t *ret_id)
{
    uint32_t number;
    enum mp_code code =
        mp_namespace_find(tx->call, tx->sql, tx->catalog_id, tx->call->parts[1], ret_namespace);

    if (code)
        return code;
    number = MP_SQL(tx->sql,
                    "SELECT view_id FROM hog_view WHERE catalog_id = $1 AND namespace_id = $2"
                    " AND name = $3 AND end_snapshot IS NULL",
                    mp_v_int(tx->catalog_id), mp_v_int(*ret_namespace), mp_v_text(name));
    code = mp_tx_sync(tx);
    if (!code)
        *ret_id = mp_sql_rows(tx->sql, number) ? mp_sql_int(tx->sql, number, 0, 0, 0) : 0;
    return code;
}

static enum mp_code create_work(struct mp_tx *tx, void *context)
{
    struct view *view = context;
    int64_t namespace_id, existing, snapshot;
    enum mp_code code = find_view(tx, view->name, &namespace_id, &existing);

    if (code)
        return code;
    if (existing)
        return mp_refuse(tx->call, 409, "already_exists", "view \"%.*s\" exists already",
                         MP_STR_ARG(view->name));
    view->id = tx->next_view++;
    snapshot = mp_tx_snapshot(tx, true, view->by.author, view->by.message);
    mp_tx_change(tx, "view_created", view->id);
    MP_SQL(tx->sql,
           "INSERT INTO hog_view (catalog_id, view_id, view_uuid, namespace_id, name, dialect, sql,"
           " begin_snapshot) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
           mp_v_int(tx->catalog_id), mp_v_int(view->id), mp_v_uuid(view->uuid),
           mp_v_int(namespace_id), mp_v_text(view->name), mp_v_text(view->dialect),
           mp_v_text(view->sql), mp_v_int(snapshot));
    return MP_OK;
}

enum mp_code mp_route_view_create(struct mp_call *call)
{
    static const char *const known[] = {"name", "sql", "dialect", "author", "message", NULL};
    struct mp_wire_reader reader = {.arena = &call->arena};
    struct view view = {.dialect = MP_STR("trino")};
    struct mp_err err;
    char uuid[MP_UUID_TEXT];
    enum mp_code code;

    if (mp_wire_object(&reader, call->body, "the request", known)) {
        mp_wire_text(&reader, call->body, "name", true, &view.name);
        mp_wire_text(&reader, call->body, "sql", true, &view.sql);
        mp_wire_text(&reader, call->body, "dialect", false, &view.dialect);
    }
    code = mp_call_read_end(call, &reader);
    if (!code)
        code = mp_call_attribution(call, &view.by);
    if (code)
        return code;
    if (mp_name_object("view", view.name, &err))
        return mp_refuse_invalid(call, "%s", err.text);
    if (mp_blank(view.sql) || mp_blank(view.dialect))
        return mp_refuse_invalid(call, "sql and dialect of a view must not be blank");
    mp_uuid4(call->server->env, uuid);
    view.uuid = mp_arena_str(&call->arena, mp_str_c(uuid));
    code = mp_tx_run(call, call->parts[0], create_work, &view);
    if (code)
        return code;
    mp_audit(call, call->parts[0],
             &(struct mp_audit){"view_create", "created", mp_audit_name(call, view.name), &view.by},
             "view_uuid %.*s, dialect %.*s", MP_STR_ARG(view.uuid), MP_STR_ARG(view.dialect));
    call->status = 201;
    print_view(&call->out, call->parts[1], &view);
    return MP_OK;
}

static enum mp_code drop_work(struct mp_tx *tx, void *context)
{
    struct view *view = context;
    int64_t namespace_id, snapshot;
    enum mp_code code = find_view(tx, view->name, &namespace_id, &view->id);

    if (code)
        return code;
    if (!view->id)
        return mp_refuse_missing(tx->call, "view \"%.*s\" does not exist",
                                 view->name.size > 200 ? 200 : (int)view->name.size,
                                 view->name.data);
    snapshot = mp_tx_snapshot(tx, true, view->by.author, view->by.message);
    mp_tx_change(tx, "view_dropped", view->id);
    MP_SQL(tx->sql, "UPDATE hog_view SET end_snapshot = $3 WHERE catalog_id = $1 AND view_id = $2",
           mp_v_int(tx->catalog_id), mp_v_int(view->id), mp_v_int(snapshot));
    view->result = (struct mp_wire_commit_result){snapshot, tx->schema_version};
    return MP_OK;
}

enum mp_code mp_route_view_drop(struct mp_call *call)
{
    struct view view = {.name = call->parts[2]};
    enum mp_code code = mp_call_attribution(call, &view.by);

    if (!code)
        code = mp_tx_run(call, call->parts[0], drop_work, &view);
    if (code)
        return code;
    mp_audit(call, call->parts[0],
             &(struct mp_audit){"view_drop", "dropped", mp_audit_name(call, view.name), &view.by},
             "snapshot %lld", (long long)view.result.snapshot_id);
    mp_wire_commit_result_print(&call->out, &view.result);
    return MP_OK;
}
