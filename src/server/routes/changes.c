/* server/routes/changes.c - what came into a table between two snapshots. */
#include "server/routes/contents.h"

static const char files_page[] = MP_FILE_PAGE("", "");
static const char deletes_page[] =
    "SELECT " MP_DELETE_COLUMNS ", d.data_file_id FROM " MP_PAGES_ROWS_OF(
        "hog_delete_file", "d", "delete_file_id") " ORDER BY p.n";

static void print_file(struct mp_call *call, const struct mp_pages_list *list, uint32_t number,
                       uint32_t row)
{
    (void)list;
    mp_file_print(&call->out, call->sql, number, row);
    mp_buf_add_byte(&call->out, '}');
}

static void print_delete(struct mp_call *call, const struct mp_pages_list *list, uint32_t number,
                         uint32_t row)
{
    (void)list;
    mp_delete_print(&call->out, call->sql, number, row, 0,
                    mp_sql_int(call->sql, number, row, MP_DELETE_COLUMN_COUNT, 0));
}

enum mp_code mp_route_changes(struct mp_call *call)
{
    struct mp_table table = {.namespace_name = call->parts[1]};
    struct mp_at at;
    int64_t from = 0, to = 0;
    bool has_from = false, has_to = false;
    uint32_t number, barrier, files, deletes;
    enum mp_code code = mp_call_query_int(call, "from_snapshot", &from, &has_from);

    if (!code)
        code = mp_call_query_int(call, "to_snapshot", &to, &has_to);
    if (!code && !has_from)
        code = mp_refuse_bad(call, "the query parameter \"from_snapshot\" is required");
    if (!code)
        code = mp_at_read(call, &at);
    if (code)
        return code;
    to = has_to ? to : at.head;
    if (to < 0 || to > at.head)
        return mp_refuse_invalid(call, "to_snapshot %lld is outside of 0 to %lld", (long long)to,
                                 (long long)at.head);
    if (from < 0 || from > to)
        return mp_refuse_invalid(call, "from_snapshot %lld is outside of 0 to %lld",
                                 (long long)from, (long long)to);
    if (from < at.floor - 1)
        return mp_refuse(call, 410, "expired", "from_snapshot %lld has expired; the oldest is %lld",
                         (long long)from, (long long)at.floor - 1);
    code = mp_namespace_find(call, call->sql, at.catalog_id, call->parts[1], &table.namespace_id);
    if (code)
        return code;
    number = MP_SQL(
        call->sql,
        "SELECT t.table_id, t.table_uuid FROM hog_table_version v"
        " JOIN hog_table t USING (catalog_id, table_id)"
        " WHERE v.catalog_id = $1 AND v.namespace_id = $2 AND v.name = $4"
        " AND " MP_VISIBLE("v") " AND (t.dropped_snapshot IS NULL OR $3 < t.dropped_snapshot)",
        mp_v_int(at.catalog_id), mp_v_int(table.namespace_id), mp_v_int(to),
        mp_v_text(call->parts[2]));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (!mp_sql_rows(call->sql, number))
        return mp_refuse_missing(call, "table \"%.*s.%.*s\" does not exist at that snapshot",
                                 MP_STR_ARG(call->parts[1]), MP_STR_ARG(call->parts[2]));
    table.table_id = mp_sql_int(call->sql, number, 0, 0, 0);
    table.uuid = mp_sql_copy(call->sql, &call->arena, number, 0, 1);
    barrier =
        MP_SQL(call->sql,
               "SELECT a.snapshot_id FROM hog_snapshot_change a JOIN hog_snapshot_change d"
               " USING (catalog_id, object_id, snapshot_id) WHERE a.catalog_id = $1"
               " AND a.object_id = $2 AND a.kind = 'table_altered'"
               " AND d.kind = 'table_deleted_from' AND a.snapshot_id > $3"
               " AND a.snapshot_id <= $4 LIMIT 1",
               mp_v_int(at.catalog_id), mp_v_int(table.table_id), mp_v_int(from), mp_v_int(to));
    files = MP_SQL(call->sql,
                   "SELECT ARRAY(SELECT data_file_id FROM hog_data_file WHERE catalog_id = $1"
                   " AND table_id = $2 AND begin_snapshot > $3 AND begin_snapshot <= $4"
                   " AND NOT compacted ORDER BY begin_snapshot, row_id_start, data_file_id)",
                   mp_v_int(at.catalog_id), mp_v_int(table.table_id), mp_v_int(from), mp_v_int(to));
    deletes =
        MP_SQL(call->sql,
               "SELECT ARRAY(SELECT delete_file_id FROM hog_delete_file WHERE catalog_id = $1"
               " AND table_id = $2 AND begin_snapshot > $3 AND begin_snapshot <= $4"
               " ORDER BY begin_snapshot, delete_file_id)",
               mp_v_int(at.catalog_id), mp_v_int(table.table_id), mp_v_int(from), mp_v_int(to));
    code = mp_pages_begin(call, &at, from + 1);
    if (code)
        return code;
    if (mp_sql_rows(call->sql, barrier))
        return mp_refuse(call, 409, "reconciliation_required",
                         "the table was truncated or replaced at snapshot %lld; read it whole and "
                         "go on from there",
                         (long long)mp_sql_int(call->sql, barrier, 0, 0, 0));
    mp_pages_add(
        call, files,
        &(struct mp_pages_list){
            .before = mp_arena_printf(&call->arena,
                                      "{\"table_uuid\":\"%.*s\",\"from_snapshot\":%lld,"
                                      "\"to_snapshot\":%lld,\"files\":[",
                                      MP_STR_ARG(table.uuid), (long long)from, (long long)to),
            .page = files_page,
            .print = print_file,
        });
    mp_pages_add(call, deletes,
                 &(struct mp_pages_list){
                     .before = ",\"delete_files\":[",
                     .after = "]}",
                     .page = deletes_page,
                     .print = print_delete,
                 });
    return mp_pages_print(call);
}
