/* server/routes/tables.c - tables: made, read, altered, truncated, dropped. */
#include "server/tables.h"

#include "base/base64.h"
#include "server/names.h"
#include "server/pages.h"
#include "server/routes/routes.h"

#include <stdlib.h>

/* --- list and get --- */

static const char tables_page[] =
    "SELECT v.name, t.table_uuid, f.rows, f.files, f.bytes, c.snapshots, c.earliest, v.comment"
    " FROM " MP_PAGES_ROWS_OF(
        "hog_table", "t",
        "table_id") " CROSS JOIN LATERAL (SELECT * FROM hog_table_version r WHERE r.catalog_id = $1"
                    " AND r.table_id = p.id OFFSET 0) v"
                    " CROSS JOIN LATERAL (SELECT count(*) AS files, coalesce(sum(record_count), "
                    "0)::bigint"
                    " AS rows, coalesce(sum(file_size_bytes), 0)::bigint AS bytes FROM "
                    "hog_data_file f"
                    " WHERE f.catalog_id = v.catalog_id AND f.table_id = v.table_id"
                    " AND f.begin_snapshot <= $3 AND (f.end_snapshot IS NULL OR $3 < "
                    "f.end_snapshot)) f"
                    " CROSS JOIN LATERAL (SELECT count(DISTINCT snapshot_id) AS snapshots,"
                    " min(snapshot_id) AS earliest FROM hog_snapshot_change c"
                    " WHERE c.catalog_id = v.catalog_id AND c.object_id = v.table_id"
                    " AND c.kind IN ('table_created', 'table_dropped', 'table_altered', "
                    "'table_inserted_into',"
                    " 'table_deleted_from', 'table_compacted') AND c.snapshot_id <= $3) c"
                    " WHERE v.begin_snapshot <= $3 AND (v.end_snapshot IS NULL OR $3 < "
                    "v.end_snapshot)"
                    " ORDER BY p.n";

static void print_listed(struct mp_call *call, const struct mp_pages_list *list, uint32_t number,
                         uint32_t row)
{
    struct mp_buf *out = &call->out;

    (void)list;
    mp_buf_add_byte(out, '{');
    mp_wire_member_text(out, "name", mp_sql_cell(call->sql, number, row, 0));
    mp_wire_member_text(out, "table_uuid", mp_sql_cell(call->sql, number, row, 1));
    mp_wire_member_int(out, "record_count", mp_sql_int(call->sql, number, row, 2, 0));
    mp_wire_member_int(out, "file_count", mp_sql_int(call->sql, number, row, 3, 0));
    mp_wire_member_int(out, "file_size_bytes", mp_sql_int(call->sql, number, row, 4, 0));
    mp_wire_member_int(out, "snapshot_count", mp_sql_int(call->sql, number, row, 5, 0));
    if (!mp_sql_null(call->sql, number, row, 6))
        mp_wire_member_int(out, "earliest_snapshot_id", mp_sql_int(call->sql, number, row, 6, 0));
    mp_wire_member_text(out, "comment", mp_sql_cell(call->sql, number, row, 7));
    mp_buf_add_byte(out, '}');
}

enum mp_code mp_route_table_list(struct mp_call *call)
{
    struct mp_at at;
    uint32_t number;
    enum mp_code code = mp_at_read(call, &at);

    if (code)
        return code;
    number = MP_SQL(call->sql,
                    "SELECT namespace_id FROM hog_namespace WHERE catalog_id = $1 AND name = $3"
                    " AND created_snapshot <= $2"
                    " AND (dropped_snapshot IS NULL OR $2 < dropped_snapshot)",
                    mp_v_int(at.catalog_id), mp_v_int(at.snapshot), mp_v_text(call->parts[1]));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (!mp_sql_rows(call->sql, number))
        return mp_refuse_missing(call, "namespace \"%.*s\" does not exist",
                                 MP_STR_ARG(call->parts[1]));
    number = MP_SQL(call->sql,
                    "SELECT ARRAY(SELECT v.table_id FROM hog_table_version v"
                    " JOIN hog_table t USING (catalog_id, table_id)"
                    " WHERE v.catalog_id = $1 AND v.namespace_id = $3 AND v.begin_snapshot <= $2"
                    " AND (v.end_snapshot IS NULL OR $2 < v.end_snapshot)"
                    " AND (t.dropped_snapshot IS NULL OR $2 < t.dropped_snapshot)"
                    " ORDER BY v.name COLLATE \"C\")",
                    mp_v_int(at.catalog_id), mp_v_int(at.snapshot),
                    mp_v_int(mp_sql_int(call->sql, number, 0, 0, 0)));
    code = mp_pages_begin(call, &at, at.snapshot);
    if (code)
        return code;
    mp_pages_add(call, number, &(struct mp_pages_list){.page = tables_page, .print = print_listed});
    return mp_pages_print(call);
}

enum mp_code mp_route_table_get(struct mp_call *call)
{
    struct mp_wire_table wire;
    struct mp_table table;
    struct mp_at at;
    bool totals = true;
    enum mp_code code = mp_call_query_bool(call, "totals", &totals);

    if (!code)
        code = mp_table_find(call, &at, &table);
    if (!code)
        code = mp_table_definition(call, call->sql, at.catalog_id, at.snapshot, &table);
    if (code)
        return code;
    wire = mp_table_wire(&table, at.snapshot);
    if (totals && at.pinned) {
        code = mp_table_totals(call, call->sql, at.catalog_id, at.snapshot, table.table_id, &wire);
    } else if (totals) {
        wire.has_totals = true;
        wire.record_count = table.live_rows;
        wire.file_count = table.live_files;
        wire.file_size_bytes = table.live_bytes;
    }
    if (!code)
        mp_wire_table_print(&call->out, &wire);
    return code;
}

/* --- create --- */

struct create {
    struct mp_table table;
    struct mp_attribution by;
    int64_t snapshot;
};

static enum mp_code create_work(struct mp_tx *tx, void *context)
{
    struct create *create = context;
    struct mp_table existing;
    bool found;
    enum mp_code code =
        mp_namespace_find(tx->call, tx->sql, tx->catalog_id, create->table.namespace_name,
                          &create->table.namespace_id);

    if (!code)
        code = mp_table_live(tx, create->table.namespace_id, create->table.name, &existing, &found);
    if (code)
        return code;
    if (found)
        return mp_refuse(tx->call, 409, "already_exists", "table \"%.*s\" exists already",
                         MP_STR_ARG(create->table.name));
    create->table.table_id = tx->next_table++;
    create->snapshot = mp_tx_snapshot(tx, true, create->by.author, create->by.message);
    mp_tx_change(tx, "table_created", create->table.table_id);
    mp_table_create_send(tx, &create->table, create->snapshot, 0);
    return MP_OK;
}

enum mp_code mp_route_table_create(struct mp_call *call)
{
    static const char *const known[] = {"name", "columns", "author", "message", NULL};
    struct mp_wire_reader reader = {.arena = &call->arena};
    struct create create = {.table = {.namespace_name = call->parts[1], .next_field_id = 1}};
    struct mp_columns_check check = {.arena = &call->arena, .no_comments = true};
    const json_t *columns = NULL;
    struct mp_wire_table wire;
    struct mp_err err;
    char uuid[MP_UUID_TEXT];
    enum mp_code code;

    if (mp_wire_object(&reader, call->body, "the request", known)) {
        mp_wire_text(&reader, call->body, "name", true, &create.table.name);
        columns = mp_wire_array(&reader, call->body, "columns", true);
        if (columns)
            mp_wire_columns_read(&reader, columns, &create.table.columns.items,
                                 &create.table.columns.count);
    }
    code = mp_call_read_end(call, &reader);
    if (!code)
        code = mp_call_attribution(call, &create.by);
    if (code)
        return code;
    if (!create.table.columns.count)
        return mp_refuse_invalid(call, "a table needs at least one column");
    if (mp_name_object("table", create.table.name, &err) ||
        mp_columns_check(&check, create.table.columns, "", &err))
        return mp_refuse_invalid(call, "%s", err.text);
    mp_columns_assign(create.table.columns, 0, &create.table.next_field_id);
    mp_uuid4(call->server->env, uuid);
    create.table.uuid = mp_arena_str(&call->arena, mp_str_c(uuid));
    code = mp_tx_run(call, call->parts[0], create_work, &create);
    if (code)
        return code;
    mp_audit(call, call->parts[0],
             &(struct mp_audit){"table_create", "created", mp_audit_name(call, create.table.name),
                                &create.by},
             "table_uuid %.*s, snapshot %lld", MP_STR_ARG(create.table.uuid),
             (long long)create.snapshot);
    wire = mp_table_wire(&create.table, create.snapshot);
    wire.has_snapshot_id = wire.has_totals = true;
    wire.snapshot_id = create.snapshot;
    call->status = 201;
    mp_wire_table_print(&call->out, &wire);
    return MP_OK;
}

/* --- alter --- */

struct alter {
    const json_t *ops;
    struct mp_attribution by;
    struct mp_str expected_uuid;
    bool has_read_snapshot;
    int64_t read_snapshot, snapshot;
    struct mp_table after;
};

static struct mp_columns copy_columns(struct mp_arena *arena, struct mp_columns columns)
{
    struct mp_columns copy = {mp_arena_take(arena, sizeof(*copy.items) * (columns.count + 1)),
                              columns.count};

    for (uint32_t i = 0; i < columns.count; i++) {
        struct mp_columns children = {columns.items[i].children, columns.items[i].child_count};

        copy.items[i] = columns.items[i];
        copy.items[i].children = copy_columns(arena, children).items;
    }
    return copy;
}

static enum mp_code find_live(struct mp_tx *tx, struct mp_str expected_uuid, struct mp_table *ret)
{
    struct mp_call *call = tx->call;
    int64_t namespace_id;
    bool found;
    enum mp_code code =
        mp_namespace_find(call, tx->sql, tx->catalog_id, call->parts[1], &namespace_id);

    *ret = (struct mp_table){.namespace_name = call->parts[1]};
    if (!code)
        code = mp_table_live(tx, namespace_id, call->parts[2], ret, &found);
    if (code)
        return code;
    if (!found)
        return mp_refuse_missing(call, "table \"%.*s.%.*s\" does not exist",
                                 MP_STR_ARG(call->parts[1]), MP_STR_ARG(call->parts[2]));
    if (expected_uuid.data && !mp_str_eq(expected_uuid, ret->uuid))
        return mp_refuse_recreated(call, call->parts[1], call->parts[2]);
    return MP_OK;
}

static enum mp_code check_window(struct mp_tx *tx, const struct alter *alter, int64_t table_id)
{
    struct mp_call *call = tx->call;
    struct mp_str *name;
    uint32_t number;
    enum mp_code code;

    if (!alter->has_read_snapshot)
        return MP_OK;
    if (alter->read_snapshot < 0 || alter->read_snapshot > tx->head)
        return mp_refuse_invalid(call, "read_snapshot %lld is outside of 0 to %lld",
                                 (long long)alter->read_snapshot, (long long)tx->head);
    if (alter->read_snapshot < tx->floor)
        return mp_refuse(call, 410, "expired", "read_snapshot %lld has expired; the oldest is %lld",
                         (long long)alter->read_snapshot, (long long)tx->floor);
    number = MP_SQL(tx->sql,
                    "SELECT 1 FROM hog_snapshot_change WHERE catalog_id = $1 AND object_id = $2"
                    " AND kind IN ('table_altered', 'table_dropped') AND snapshot_id > $3 LIMIT 1",
                    mp_v_int(tx->catalog_id), mp_v_int(table_id), mp_v_int(alter->read_snapshot));
    code = mp_tx_sync(tx);
    if (code || !mp_sql_rows(tx->sql, number))
        return code;
    name = mp_arena_take(&call->arena, sizeof(*name));
    *name = mp_str_c(mp_arena_printf(&call->arena, "%.*s.%.*s", MP_STR_ARG(call->parts[1]),
                                     MP_STR_ARG(call->parts[2])));
    mp_refuse(call, 409, "ddl_since_read_snapshot", "table %.*s was altered after read_snapshot",
              MP_STR_ARG(*name));
    call->refusal.wire.tables = name;
    call->refusal.wire.table_count = 1;
    call->refusal.wire.has_read_snapshot = true;
    call->refusal.wire.read_snapshot = alter->read_snapshot;
    call->refusal.wire.re_prepare = true;
    return MP_REFUSED;
}

static enum mp_code check_effects(struct mp_tx *tx, const struct mp_alter_effects *effects,
                                  const struct mp_table *before)
{
    uint32_t missing, taken;
    enum mp_code code;

    missing = MP_SQL(tx->sql,
                     "SELECT count(*) FROM hog_data_file WHERE catalog_id = $1 AND table_id = $2"
                     " AND end_snapshot IS NULL AND missing_field_ids"
                     " AND (missing_field_ids OR stats_state = 'failed')",
                     mp_v_int(tx->catalog_id), mp_v_int(before->table_id));
    taken = MP_SQL(tx->sql,
                   "SELECT 1 FROM hog_table_version WHERE catalog_id = $1 AND namespace_id = $2"
                   " AND name = $3 AND end_snapshot IS NULL AND table_id <> $4",
                   mp_v_int(tx->catalog_id), mp_v_int(before->namespace_id),
                   mp_v_text(effects->new_name), mp_v_int(before->table_id));
    code = mp_tx_sync(tx);
    if (code)
        return code;
    if (effects->adds_or_renames && mp_sql_int(tx->sql, missing, 0, 0, 0))
        return mp_refuse(tx->call, 409, "idless_files_present",
                         "%lld live files have columns without field ids; compaction or retirement "
                         "of these files clears that",
                         (long long)mp_sql_int(tx->sql, missing, 0, 0, 0));
    if (effects->new_name.data && mp_sql_rows(tx->sql, taken))
        return mp_refuse(tx->call, 409, "already_exists", "table \"%.*s\" exists already",
                         MP_STR_ARG(effects->new_name));
    return MP_OK;
}

static struct mp_str promoted_bound(struct mp_call *call, const char *text, enum mp_hog_type from,
                                    enum mp_hog_type to)
{
    struct mp_buf buf = MP_BUF_INIT(64);
    struct mp_str bytes, wide, result;

    if (!text || !mp_base64_read(&call->arena, mp_str_c(text), &bytes) ||
        !mp_hog_bound_promote(&call->arena, from, to, bytes, &wide))
        return (struct mp_str){NULL, 0};
    mp_base64_print(&buf, wide);
    result = mp_arena_str(&call->arena, mp_buf_str(&buf));
    mp_buf_fini(&buf);
    return result;
}

/* Widens the bounds of one field in one file's statistics; false: nothing to do. */
static bool promote_stats(struct mp_call *call, json_t *stats,
                          const struct mp_alter_promotion *promotion)
{
    bool changed = false;

    for (size_t i = 0; i < json_array_size(stats); i++) {
        json_t *row = json_array_get(stats, i);

        if (json_integer_value(json_array_get(row, 0)) != promotion->field_id)
            continue;
        for (size_t bound = 5; bound <= 6; bound++) {
            struct mp_str wide = promoted_bound(call, json_string_value(json_array_get(row, bound)),
                                                promotion->from, promotion->to);

            if (!wide.data)
                continue;
            json_array_set_new(row, bound, json_stringn(wide.data, wide.size));
            changed = true;
        }
    }
    return changed;
}

static bool changes_bounds(const struct mp_alter_effects *effects)
{
    for (uint32_t i = 0; i < effects->promoted_count; i++)
        if (mp_hog_types[effects->promoted[i].from].bound !=
            mp_hog_types[effects->promoted[i].to].bound)
            return true;
    return false;
}

/* Bounds are kept in the encoding of the column's type, so a promotion rewrites them. */
static enum mp_code rewrite_bounds(struct mp_tx *tx, int64_t table_id,
                                   const struct mp_alter_effects *effects)
{
    enum { PAGE = 2000 };
    int64_t last = 0;
    uint32_t rows = changes_bounds(effects) ? PAGE : 0;
    enum mp_code code = MP_OK;

    while (rows == PAGE && !code) {
        struct mp_sql_array ids, texts;
        uint32_t number =
            MP_SQL(tx->sql,
                   "SELECT s.data_file_id, s.stats FROM hog_data_file f JOIN hog_file_stats s"
                   " USING (catalog_id, data_file_id) WHERE f.catalog_id = $1 AND f.table_id = $2"
                   " AND f.data_file_id > $3 ORDER BY f.data_file_id LIMIT $4",
                   mp_v_int(tx->catalog_id), mp_v_int(table_id), mp_v_int(last), mp_v_int(PAGE));

        code = mp_tx_sync(tx);
        if (code)
            break;
        rows = mp_sql_rows(tx->sql, number);
        mp_sql_array_init(&ids, MP_PG_INT8_ARRAY);
        mp_sql_array_init(&texts, MP_PG_TEXT_ARRAY);
        for (uint32_t i = 0; i < rows; i++) {
            struct mp_str text = mp_sql_cell(tx->sql, number, i, 1);
            json_t *stats = json_loadb(text.data, text.size, 0, NULL);
            char *printed = NULL;
            bool changed = false;

            last = mp_sql_int(tx->sql, number, i, 0, 0);
            for (uint32_t k = 0; k < effects->promoted_count && stats; k++)
                changed |= promote_stats(tx->call, stats, &effects->promoted[k]);
            if (changed)
                printed = json_dumps(stats, JSON_COMPACT);
            if (printed) {
                mp_sql_array_int(&ids, last);
                mp_sql_array_text(&texts, mp_str_c(printed));
            }
            free(printed);
            json_decref(stats);
        }
        if (ids.count)
            MP_SQL(tx->sql,
                   "UPDATE hog_file_stats s SET stats = n.stats FROM unnest($2, $3) AS n(id, stats)"
                   " WHERE s.catalog_id = $1 AND s.data_file_id = n.id",
                   mp_v_int(tx->catalog_id), mp_sql_array_value(&ids), mp_sql_array_value(&texts));
        mp_sql_array_fini(&ids);
        mp_sql_array_fini(&texts);
    }
    return code;
}

static enum mp_code alter_work(struct mp_tx *tx, void *context)
{
    struct alter *alter = context;
    struct mp_call *call = tx->call;
    struct mp_alter_effects effects;
    struct mp_table before;
    enum mp_code code = find_live(tx, alter->expected_uuid, &before);

    for (size_t i = 0; i < json_array_size(alter->ops) && !code; i++) {
        const json_t *properties = json_object_get(json_array_get(alter->ops, i), "properties");
        struct mp_str ignored;

        if (properties)
            code = mp_properties_read(call, properties, &ignored);
    }
    if (!code)
        code = check_window(tx, alter, before.table_id);
    if (code)
        return code;
    alter->after = before;
    alter->after.columns = copy_columns(&call->arena, before.columns);
    code = mp_alter_apply(call, alter->ops, &alter->after, &effects);
    if (!code)
        code = check_effects(tx, &effects, &before);
    if (!code)
        code = rewrite_bounds(tx, before.table_id, &effects);
    if (code)
        return code;
    alter->snapshot = mp_tx_snapshot(tx, true, alter->by.author, alter->by.message);
    mp_tx_change(tx, "table_altered", before.table_id);
    mp_table_alter_send(tx, &before, &alter->after, alter->snapshot);
    return MP_OK;
}

static void audit_alter(struct mp_call *call, const struct alter *alter)
{
    struct mp_buf names = MP_BUF_INIT(64 * 1024);

    for (size_t i = 0; i < json_array_size(alter->ops) && i < 50; i++)
        mp_buf_printf(&names, "%s%s", i ? ", " : "",
                      json_string_value(json_object_get(json_array_get(alter->ops, i), "op")));
    mp_audit(call, call->parts[0],
             &(struct mp_audit){"table_alter", "altered", mp_audit_name(call, call->parts[2]),
                                &alter->by},
             "snapshot %lld, %zu operations: %s", (long long)alter->snapshot,
             json_array_size(alter->ops), mp_buf_c(&names));
    mp_buf_fini(&names);
}

enum mp_code mp_route_table_alter(struct mp_call *call)
{
    static const char *const known[] = {"ops", "author", "message", NULL};
    struct mp_wire_reader reader = {.arena = &call->arena};
    struct alter alter = {.ops = json_object_get(call->body, "ops")};
    struct mp_wire_table wire;
    enum mp_code code;

    mp_wire_object(&reader, call->body, "the request", known);
    code = mp_call_read_end(call, &reader);
    if (!code)
        code = mp_alter_shape(call, alter.ops);
    if (!code)
        code = mp_call_attribution(call, &alter.by);
    if (!code)
        code = mp_call_query_uuid(call, "expected_table_uuid", &alter.expected_uuid);
    if (!code)
        code = mp_call_query_int(call, "read_snapshot", &alter.read_snapshot,
                                 &alter.has_read_snapshot);
    if (!code)
        code = mp_tx_run(call, call->parts[0], alter_work, &alter);
    if (code)
        return code;
    audit_alter(call, &alter);
    wire = mp_table_wire(&alter.after, alter.snapshot);
    wire.has_snapshot_id = wire.has_totals = true;
    wire.snapshot_id = alter.snapshot;
    wire.record_count = alter.after.live_rows;
    wire.file_count = alter.after.live_files;
    wire.file_size_bytes = alter.after.live_bytes;
    mp_wire_table_print(&call->out, &wire);
    return MP_OK;
}

/* --- drop and truncate --- */

struct ending {
    struct mp_str expected_uuid;
    struct mp_attribution by;
    struct mp_wire_commit_result result;
};

static enum mp_code drop_work(struct mp_tx *tx, void *context)
{
    struct ending *drop = context;
    struct mp_table table;
    int64_t snapshot;
    enum mp_code code = find_live(tx, drop->expected_uuid, &table);

    if (code)
        return code;
    snapshot = mp_tx_snapshot(tx, true, drop->by.author, drop->by.message);
    mp_tx_change(tx, "table_dropped", table.table_id);
    mp_table_drop_send(tx, table.table_id, snapshot);
    drop->result = (struct mp_wire_commit_result){snapshot, tx->schema_version};
    return MP_OK;
}

enum mp_code mp_route_table_drop(struct mp_call *call)
{
    struct ending drop = {0};
    enum mp_code code = mp_call_attribution(call, &drop.by);

    if (!code)
        code = mp_call_query_uuid(call, "expected_table_uuid", &drop.expected_uuid);
    if (!code)
        code = mp_tx_run(call, call->parts[0], drop_work, &drop);
    if (code)
        return code;
    mp_audit(
        call, call->parts[0],
        &(struct mp_audit){"table_drop", "dropped", mp_audit_name(call, call->parts[2]), &drop.by},
        "snapshot %lld", (long long)drop.result.snapshot_id);
    mp_wire_commit_result_print(&call->out, &drop.result);
    return MP_OK;
}

static enum mp_code truncate_work(struct mp_tx *tx, void *context)
{
    struct ending *truncate = context;
    struct mp_table table;
    int64_t snapshot;
    enum mp_code code = find_live(tx, truncate->expected_uuid, &table);

    if (code)
        return code;
    snapshot = mp_tx_snapshot(tx, true, truncate->by.author, truncate->by.message);
    mp_tx_change(tx, "table_altered", table.table_id);
    mp_tx_change(tx, "table_deleted_from", table.table_id);
    MP_SQL(tx->sql,
           "UPDATE hog_data_file SET end_snapshot = $3 WHERE catalog_id = $1 AND table_id = $2"
           " AND end_snapshot IS NULL",
           mp_v_int(tx->catalog_id), mp_v_int(table.table_id), mp_v_int(snapshot));
    MP_SQL(tx->sql,
           "UPDATE hog_delete_file SET end_snapshot = $3 WHERE catalog_id = $1 AND table_id = $2"
           " AND " MP_SQL_NULL("end_snapshot"),
           mp_v_int(tx->catalog_id), mp_v_int(table.table_id), mp_v_int(snapshot));
    MP_SQL(tx->sql,
           "UPDATE hog_table_stats SET live_rows = 0, live_files = 0, live_bytes = 0"
           " WHERE catalog_id = $1 AND table_id = $2",
           mp_v_int(tx->catalog_id), mp_v_int(table.table_id));
    truncate->result = (struct mp_wire_commit_result){snapshot, tx->schema_version};
    return MP_OK;
}

enum mp_code mp_route_table_truncate(struct mp_call *call)
{
    static const char *const known[] = {"author", "message", NULL};
    struct mp_wire_reader reader = {.arena = &call->arena};
    struct ending truncate = {0};
    enum mp_code code;

    if (call->body)
        mp_wire_object(&reader, call->body, "the request", known);
    code = mp_call_read_end(call, &reader);
    if (!code)
        code = mp_call_query_uuid(call, "expected_table_uuid", &truncate.expected_uuid);
    if (!code && !truncate.expected_uuid.data)
        code = mp_refuse_bad(call, "the query parameter \"expected_table_uuid\" is required");
    if (!code)
        code = mp_call_attribution(call, &truncate.by);
    if (!code)
        code = mp_tx_run(call, call->parts[0], truncate_work, &truncate);
    if (code)
        return code;
    mp_audit(call, call->parts[0],
             &(struct mp_audit){"table_truncate", "truncated", mp_audit_name(call, call->parts[2]),
                                &truncate.by},
             "snapshot %lld", (long long)truncate.result.snapshot_id);
    mp_wire_commit_result_print(&call->out, &truncate.result);
    return MP_OK;
}
