/* server/routes/maintenance.c - manual triggers, backlog and the run ledger. */
#include "server/background/background.h"
#include "server/routes/routes.h"
#include "server/tables.h"

static enum mp_code trigger(struct mp_call *call, enum mp_task task)
{
    int64_t batch = 0;
    bool given = false;
    struct mp_at at;
    enum mp_code code = mp_call_query_int(call, "batch", &batch, &given);

    if (!code && given && batch <= 0)
        code = mp_refuse_invalid(call, "batch must be above 0");
    if (!code)
        code = mp_at_head(call, &at); /* 404 */
    if (!code)
        code = mp_background_run(call, task, call->parts[0], batch, true, &call->out);
    if (!code)
        mp_audit(call, call->parts[0],
                 &(struct mp_audit){mp_task_names[task], "ran", {NULL, 0}, NULL}, "%.*s",
                 MP_STR_ARG(mp_buf_str(&call->out)));
    return code;
}

enum mp_code mp_route_expire(struct mp_call *call)
{
    return trigger(call, MP_TASK_EXPIRY);
}

enum mp_code mp_route_cleanup(struct mp_call *call)
{
    return trigger(call, MP_TASK_CLEANUP);
}

enum mp_code mp_route_compact(struct mp_call *call)
{
    return trigger(call, MP_TASK_COMPACTION);
}

enum mp_code mp_route_rehydrate(struct mp_call *call)
{
    struct mp_str namespace_name = mp_call_query(call, "namespace");
    struct mp_str table = mp_call_query(call, "table");
    struct mp_at at;
    uint32_t number;
    enum mp_code code;

    if (!namespace_name.data != !table.data)
        return mp_refuse_invalid(call, "namespace and table go together");
    code = mp_at_head(call, &at);
    if (code)
        return code;
    number = MP_SQL(
        call->sql,
        "UPDATE hog_data_file f SET stats_state = 'pending' WHERE f.catalog_id = $1"
        " AND f.stats_state = 'failed' AND f.end_snapshot IS NULL AND ($2 IS NULL OR"
        " EXISTS (SELECT 1 FROM hog_table_version v JOIN hog_namespace n"
        " USING (catalog_id, namespace_id) WHERE v.catalog_id = $1"
        " AND v.table_id = f.table_id AND " MP_SQL_NULL("v.end_snapshot") " AND n.name = $2"
                                                                          " AND v.name = $3))",
        mp_v_int(at.catalog_id), mp_v_text(namespace_name), mp_v_text(table));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    mp_buf_add_byte(&call->out, '{');
    mp_wire_member_int(&call->out, "requeued", mp_sql_changed(call->sql, number));
    mp_buf_add_byte(&call->out, '}');
    return MP_OK;
}

/* --- runs --- */

#define RUN_COLUMNS                                                                                \
    "SELECT r.run_id, c.name, r.task, r.run_trigger, r.started_us, r.finished_us, r.status,"       \
    " r.error, r.result FROM hog_maintenance_run r JOIN hog_catalog c USING (catalog_id)"

static void print_run(struct mp_buf *out, const struct mp_sql *sql, uint32_t number, uint32_t row)
{
    mp_buf_add_byte(out, '{');
    mp_wire_member_int(out, "run_id", mp_sql_int(sql, number, row, 0, 0));
    mp_wire_member_text(out, "catalog", mp_sql_cell(sql, number, row, 1));
    mp_wire_member_text(out, "task", mp_sql_cell(sql, number, row, 2));
    mp_wire_member_text(out, "trigger", mp_sql_cell(sql, number, row, 3));
    mp_wire_member_instant(out, "started_at", mp_sql_int(sql, number, row, 4, 0));
    mp_wire_member_instant(out, "finished_at", mp_sql_int(sql, number, row, 5, 0));
    mp_wire_member_text(out, "status", mp_sql_cell(sql, number, row, 6));
    mp_wire_member_text(out, "error", mp_sql_cell(sql, number, row, 7));
    mp_wire_member(out, "result");
    if (mp_sql_null(sql, number, row, 8))
        mp_buf_add_c(out, "null");
    else
        mp_buf_add_str(out, mp_sql_cell(sql, number, row, 8));
    mp_buf_add_byte(out, '}');
}

static bool known_task(struct mp_str name)
{
    static const char *const others[] = {"verify", "reindex"};

    for (int i = 0; i < MP_TASKS; i++)
        if (mp_str_eq(name, mp_str_c(mp_task_names[i])))
            return true;
    return mp_str_eq(name, mp_str_c(others[0])) || mp_str_eq(name, mp_str_c(others[1]));
}

/* catalog data NULL: of all. */
static enum mp_code print_runs(struct mp_call *call, struct mp_str catalog)
{
    enum { LIMIT_DEFAULT = 50, LIMIT_MAX = 500 };
    struct mp_str task = mp_call_query(call, "task");
    int64_t before = INT64_MAX, limit = LIMIT_DEFAULT;
    uint32_t number, rows;
    enum mp_code code = mp_call_query_int(call, "before", &before, NULL);

    if (!code)
        code = mp_call_query_int(call, "limit", &limit, NULL);
    if (!code && limit < 1)
        code = mp_refuse_invalid(call, "limit must be at least 1");
    if (!code && task.data && !known_task(task))
        code = mp_refuse_invalid(call, "unknown task");
    if (!code)
        code = mp_call_sql(call);
    if (code)
        return code;
    limit = limit > LIMIT_MAX ? LIMIT_MAX : limit;
    number = MP_SQL(call->sql,
                    RUN_COLUMNS " WHERE r.run_id < $1 AND ($2 IS NULL OR c.name = $2)"
                                " AND ($3 IS NULL OR r.task = $3) ORDER BY r.run_id DESC LIMIT $4",
                    mp_v_int(before), mp_v_text(catalog), mp_v_text(task), mp_v_int(limit + 1));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    rows = mp_sql_rows(call->sql, number);
    mp_buf_add_c(&call->out, "{\"runs\":[");
    for (uint32_t i = 0; i < rows && i < limit; i++) {
        if (i)
            mp_buf_add_byte(&call->out, ',');
        print_run(&call->out, call->sql, number, i);
    }
    mp_buf_add_c(&call->out, rows > limit ? "],\"has_more\":true}" : "],\"has_more\":false}");
    return MP_OK;
}

enum mp_code mp_route_maintenance_runs(struct mp_call *call)
{
    struct mp_at at;
    enum mp_code code = mp_at_head(call, &at);

    return code ? code : print_runs(call, call->parts[0]);
}

enum mp_code mp_route_instance_runs(struct mp_call *call)
{
    return print_runs(call, (struct mp_str){NULL, 0});
}

/* --- status --- */

static const char backlog[] =
    "SELECT c.name,"
    " (SELECT count(*) FROM hog_data_file f WHERE f.catalog_id = c.catalog_id"
    "  AND f.stats_state = 'pending' AND f.end_snapshot IS NULL),"
    " (SELECT count(*) FROM hog_data_file f WHERE f.catalog_id = c.catalog_id"
    "  AND f.end_snapshot IS NOT NULL),"
    " (SELECT count(*) FROM hog_file_removal r WHERE r.catalog_id = c.catalog_id"
    "  AND r.drained_us IS NULL),"
    " (SELECT count(*) FROM hog_table t WHERE t.catalog_id = c.catalog_id"
    "  AND t.dropped_snapshot IS NOT NULL) FROM hog_catalog c"
    " WHERE ($1 IS NULL OR c.name = $1) AND ($2 IS NULL OR c.name COLLATE \"C\" > $2)"
    " ORDER BY c.name COLLATE \"C\" LIMIT $3";

/* The last run of each task of the catalogs from $1 to $2, by name. */
static const char last_runs[] =
    "SELECT r.run_id, c.name, r.task, r.run_trigger, r.started_us, r.finished_us, r.status,"
    " r.error, r.result FROM hog_catalog c"
    " CROSS JOIN unnest($3) AS t(task) CROSS JOIN LATERAL (SELECT * FROM hog_maintenance_run r"
    "  WHERE r.catalog_id = c.catalog_id AND r.task = t.task ORDER BY r.run_id DESC LIMIT 1) r"
    " WHERE c.name COLLATE \"C\" >= $1 AND c.name COLLATE \"C\" <= $2";

static uint32_t send_last_runs(struct mp_call *call, struct mp_str first, struct mp_str last)
{
    struct mp_sql_array tasks;
    uint32_t number;

    mp_sql_array_init(&tasks, MP_PG_TEXT_ARRAY);
    for (int i = 0; i < MP_TASKS; i++)
        mp_sql_array_text(&tasks, mp_str_c(mp_task_names[i]));
    number =
        MP_SQL(call->sql, last_runs, mp_v_text(first), mp_v_text(last), mp_sql_array_value(&tasks));
    mp_sql_array_fini(&tasks);
    return number;
}

static void print_last_run(struct mp_call *call, uint32_t runs, struct mp_str catalog,
                           struct mp_str task)
{
    mp_wire_member(&call->out, "last_run");
    for (uint32_t i = 0; i < mp_sql_rows(call->sql, runs); i++)
        if (mp_str_eq(mp_sql_cell(call->sql, runs, i, 1), catalog) &&
            mp_str_eq(mp_sql_cell(call->sql, runs, i, 2), task)) {
            print_run(&call->out, call->sql, runs, i);
            return;
        }
    mp_buf_add_c(&call->out, "null");
}

/* What a catalog waits with; the names are copied, since a second answer is read beside it. */
struct status {
    struct mp_str catalog;
    int64_t backlog[5]; /* by column of the statement */
};

static struct status *copy_statuses(struct mp_call *call, uint32_t number)
{
    uint32_t rows = mp_sql_rows(call->sql, number);
    struct status *statuses = mp_arena_take(&call->arena, (rows + 1) * sizeof(*statuses));

    for (uint32_t i = 0; i < rows; i++) {
        statuses[i].catalog = mp_sql_copy(call->sql, &call->arena, number, i, 0);
        for (uint32_t k = 1; k < 5; k++)
            statuses[i].backlog[k] = mp_sql_int(call->sql, number, i, k, 0);
    }
    return statuses;
}

static void print_status(struct mp_call *call, const struct status *status, uint32_t runs)
{
    static const struct {
        enum mp_task task;
        const char *backlog;
        uint32_t column;
    } tasks[] = {{MP_TASK_HYDRATOR, "pending_files", 1},
                 {MP_TASK_EXPIRY, "ended_files", 2},
                 {MP_TASK_CLEANUP, "queued_removals", 3},
                 {MP_TASK_COMPACTION, NULL, 0},
                 {MP_TASK_RETIREMENT, "dropped_tables", 4}};
    struct mp_buf *out = &call->out;

    mp_buf_add_byte(out, '{');
    mp_wire_member_text(out, "catalog", status->catalog);
    mp_wire_member(out, "tasks");
    for (size_t i = 0; i < sizeof(tasks) / sizeof(*tasks); i++) {
        int64_t every_ms = mp_background_interval_ms(call->server, tasks[i].task);

        mp_buf_add_c(out, i ? ",{" : "[{");
        mp_wire_member_text(out, "task", mp_str_c(mp_task_names[tasks[i].task]));
        if (every_ms)
            mp_wire_member_int(out, "loop_interval_ms", every_ms);
        mp_buf_add_c(out,
                     every_ms ? ",\"loop\":{\"records_every_sweep\":false}" : ",\"loop\":null");
        print_last_run(call, runs, status->catalog, mp_str_c(mp_task_names[tasks[i].task]));
        mp_buf_add_c(out, ",\"backlog\":{");
        if (tasks[i].backlog)
            mp_wire_member_int(out, tasks[i].backlog, status->backlog[tasks[i].column]);
        mp_buf_add_c(out, "}}");
    }
    mp_buf_add_c(out, "]}");
}

enum mp_code mp_route_maintenance_status(struct mp_call *call)
{
    struct status *statuses;
    uint32_t number, runs;
    enum mp_code code = mp_call_sql(call);

    if (code)
        return code;
    number =
        MP_SQL(call->sql, backlog, mp_v_text(call->parts[0]), mp_v_null(MP_PG_TEXT), mp_v_int(1));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (!mp_sql_rows(call->sql, number))
        return mp_refuse_missing(call, "catalog \"%.*s\" does not exist",
                                 MP_STR_ARG(call->parts[0]));
    statuses = copy_statuses(call, number);
    runs = send_last_runs(call, statuses[0].catalog, statuses[0].catalog);
    code = mp_sql_sync(call->sql, &call->err);
    if (!code)
        print_status(call, &statuses[0], runs);
    return code;
}

enum mp_code mp_route_instance_status(struct mp_call *call)
{
    enum { LIMIT_DEFAULT = 50, LIMIT_MAX = 100 };
    struct mp_str after = mp_call_query(call, "after");
    struct status *statuses;
    int64_t limit = LIMIT_DEFAULT;
    uint32_t number, rows, shown, runs;
    enum mp_code code = mp_call_query_int(call, "limit", &limit, NULL);

    if (!code && limit < 1)
        code = mp_refuse_invalid(call, "limit must be at least 1");
    if (!code)
        code = mp_call_sql(call);
    if (code)
        return code;
    limit = limit > LIMIT_MAX ? LIMIT_MAX : limit;
    number =
        MP_SQL(call->sql, backlog, mp_v_null(MP_PG_TEXT), mp_v_text(after), mp_v_int(limit + 1));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    rows = mp_sql_rows(call->sql, number);
    shown = rows > limit ? (uint32_t)limit : rows;
    statuses = copy_statuses(call, number);
    runs = send_last_runs(call, statuses[0].catalog, statuses[shown ? shown - 1 : 0].catalog);
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    mp_buf_add_c(&call->out, "{\"catalogs\":[");
    for (uint32_t i = 0; i < shown; i++) {
        if (i)
            mp_buf_add_byte(&call->out, ',');
        print_status(call, &statuses[i], runs);
    }
    mp_buf_add_byte(&call->out, ']');
    mp_wire_member_bool(&call->out, "has_more", rows > limit);
    if (rows > limit)
        mp_wire_member_text(&call->out, "next_after", statuses[shown - 1].catalog);
    mp_buf_add_byte(&call->out, '}');
    return MP_OK;
}
