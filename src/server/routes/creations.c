/* server/routes/creations.c - tables that come with their files, in two phases.
 *
 * prepare keeps a definition under an operation id and gives a table UUID and a write path;
 * commit publishes table and files in one snapshot. Both may be repeated: the same definition and
 * the same files give the same answer. What the world refuses is a durable state of the operation,
 * not an HTTP error.
 */
#include "server/names.h"
#include "server/routes/routes.h"
#include "server/tables.h"
#include "server/tx/commit.h"

#include <assert.h>
#include <stdlib.h>

enum { FILES_MAX = 10000 };
#define LIFE_US "86400000000"

/* A definition as it came, read from its JSON. */
struct definition {
    json_t *json; /* borrowed */
    struct mp_str namespace_name;
    struct mp_table table;
    struct mp_attribution by;
    bool replaces, has_expected;
    struct mp_str expected_uuid;
    int64_t read_snapshot;
};

struct creation {
    int64_t namespace_id, expires_us, now_us, snapshot_id, schema_version;
    struct mp_str uuid, write_path, state, reason, definition, files;
};

struct gate {
    bool partition, sort;           /* allowed */
    bool need_partition, need_sort; /* required */
    bool metadata;
};

static enum mp_code invalid(struct mp_call *call, const struct mp_err *err)
{
    return mp_refuse_invalid(call, "%s", err->text);
}

/* --- definitions --- */

static enum mp_code read_definition(struct mp_call *call, json_t *json, struct definition *ret)
{
    static const char *const known[] = {"namespace",        "name",        "columns", "replacement",
                                        "partition_fields", "sort_fields", "comment", "properties",
                                        "author",           "message",     NULL};
    static const char *const known_replacement[] = {"expected_table_uuid", "read_snapshot", NULL};
    struct mp_wire_reader reader = {.arena = &call->arena};
    const json_t *list, *replacement;

    *ret = (struct definition){.json = json, .table = {.next_field_id = 1}};
    if (!mp_wire_object(&reader, json, "the request", known))
        return mp_call_read_end(call, &reader);
    mp_wire_text(&reader, json, "namespace", true, &ret->namespace_name);
    mp_wire_text(&reader, json, "name", true, &ret->table.name);
    mp_wire_text(&reader, json, "comment", false, &ret->table.comment);
    mp_wire_text(&reader, json, "author", false, &ret->by.author);
    mp_wire_text(&reader, json, "message", false, &ret->by.message);
    list = mp_wire_array(&reader, json, "columns", true);
    if (list)
        mp_wire_columns_read(&reader, list, &ret->table.columns.items, &ret->table.columns.count);
    list = mp_wire_array(&reader, json, "partition_fields", false);
    if (list)
        mp_wire_partition_fields_read(&reader, list, &ret->table.partition.fields,
                                      &ret->table.partition.field_count);
    list = mp_wire_array(&reader, json, "sort_fields", false);
    if (list)
        mp_wire_sort_fields_read(&reader, list, &ret->table.sort.fields,
                                 &ret->table.sort.field_count);
    replacement = json_object_get(json, "replacement");
    if (replacement && !json_is_null(replacement) &&
        mp_wire_object(&reader, replacement, "replacement", known_replacement)) {
        ret->replaces = true;
        mp_wire_uuid(&reader, replacement, "expected_table_uuid", false, &ret->expected_uuid);
        mp_wire_int(&reader, replacement, "read_snapshot", true, &ret->read_snapshot, NULL);
    }
    return mp_call_read_end(call, &reader);
}

static bool any_comment(struct mp_columns columns)
{
    for (uint32_t i = 0; i < columns.count; i++)
        if (columns.items[i].comment.data ||
            any_comment(
                (struct mp_columns){columns.items[i].children, columns.items[i].child_count}))
            return true;
    return false;
}

static enum mp_code check_gate(struct mp_call *call, const struct definition *definition,
                               const struct gate *gate)
{
    const json_t *properties = json_object_get(definition->json, "properties");
    uint32_t partition = definition->table.partition.field_count;
    uint32_t sort = definition->table.sort.field_count;

    if (partition && !gate->partition)
        return mp_refuse_invalid(call, "partition_fields do not belong here");
    if (sort && !gate->sort)
        return mp_refuse_invalid(call, "sort_fields do not belong here");
    if (!partition && gate->need_partition)
        return mp_refuse_invalid(call, "partition_fields are required here");
    if (!sort && gate->need_sort)
        return mp_refuse_invalid(call, "sort_fields are required here");
    if (!gate->metadata &&
        (definition->table.comment.data || (properties && !json_is_null(properties)) ||
         any_comment(definition->table.columns)))
        return mp_refuse_invalid(call, "comments and properties do not belong here");
    return MP_OK;
}

/* Rules of the definition; ids are given. */
static enum mp_code check_definition(struct mp_call *call, struct definition *definition)
{
    struct mp_table *table = &definition->table;
    struct mp_columns_check check = {.arena = &call->arena};
    const json_t *properties = json_object_get(definition->json, "properties");
    struct mp_err err;
    enum mp_code code = MP_OK;

    if (mp_comment(table->comment, &err))
        return invalid(call, &err);
    if (json_is_object(properties))
        code = mp_properties_read(call, properties, &table->properties);
    else if (properties && !json_is_null(properties))
        code = mp_refuse_bad(call, "\"properties\" must be an object");
    if (code)
        return code;
    if (!table->columns.count)
        return mp_refuse_invalid(call, "a table needs at least one column");
    if (mp_name_object("table", table->name, &err) ||
        mp_columns_check(&check, table->columns, "", &err))
        return invalid(call, &err);
    mp_columns_assign(table->columns, 0, &table->next_field_id);
    if (mp_partition_fields_check(&call->arena, table->columns, table->partition.fields,
                                  table->partition.field_count, &err) ||
        mp_sort_fields_check(&call->arena, table->columns, table->sort.fields,
                             table->sort.field_count, &err) ||
        mp_name_object("namespace", definition->namespace_name, &err))
        return invalid(call, &err);
    if (table->partition.field_count)
        table->partition.spec_id = table->spec_id_max = 1;
    if (table->sort.field_count)
        table->sort.sort_id = table->sort_id_max = 1;
    return MP_OK;
}

static bool is_default(const char *name, const json_t *value)
{
    return json_is_null(value) || (json_is_true(value) && strcmp(name, "nullable") == 0) ||
           (json_is_array(value) && !json_array_size(value) && strstr(name, "_fields"));
}

/* Takes out what says no more than its absence. type_params are kept as they came. */
static void take_defaults(json_t *json)
{
    const char *name;
    json_t *value;
    void *next;
    size_t i;

    json_array_foreach(json, i, value) take_defaults(value);
    json_object_foreach_safe(json, next, name, value)
    {
        if (is_default(name, value))
            json_object_del(json, name);
        else if (strcmp(name, "type_params") != 0)
            take_defaults(value);
    }
}

/* JSON in one form: members sorted, no defaults, no blanks. NULL: "null". */
static struct mp_str canonical(struct mp_arena *arena, const json_t *json)
{
    json_t *plain = json_deep_copy(json);
    char *text;
    struct mp_str copy;

    take_defaults(plain);
    text = json_dumps(plain, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    copy = mp_arena_str(arena, mp_str_c(text ? text : "null"));
    free(text);
    json_decref(plain);
    return copy;
}

/* Whether what was stored is the same as text, which is canonical. */
static bool same_json(struct mp_arena *arena, struct mp_str stored, struct mp_str text)
{
    json_t *json;
    bool equal = mp_str_eq(stored, text);

    if (equal)
        return true;
    json = json_loadb(stored.data, stored.size, JSON_DECODE_ANY, NULL);
    equal = json && mp_str_eq(canonical(arena, json), text);
    json_decref(json);
    return equal;
}

/* --- receipts --- */

static enum mp_code load(struct mp_call *call, struct mp_sql *sql, int64_t catalog_id,
                         struct mp_str operation, bool *ret_found, struct creation *ret)
{
    struct mp_arena *arena = &call->arena;
    uint32_t number;
    enum mp_code code;

    /* One past its time is given up when it is looked at. */
    MP_SQL(sql,
           "UPDATE hog_table_creation SET state = 'aborted', reason = 'expired'"
           " WHERE catalog_id = $1 AND operation_id = $2 AND state = 'prepared'"
           " AND expires_us < hog_now_us()",
           mp_v_int(catalog_id), mp_v_uuid(operation));
    number = MP_SQL(sql,
                    "SELECT namespace_id, table_uuid, write_path, state, expires_us, reason,"
                    " definition, files, snapshot_id, schema_version FROM hog_table_creation"
                    " WHERE catalog_id = $1 AND operation_id = $2 FOR UPDATE",
                    mp_v_int(catalog_id), mp_v_uuid(operation));
    code = mp_sql_sync(sql, &call->err);
    if (code)
        return code;
    *ret_found = mp_sql_rows(sql, number) > 0;
    if (!*ret_found)
        return MP_OK;
    *ret = (struct creation){
        .namespace_id = mp_sql_int(sql, number, 0, 0, 0),
        .uuid = mp_sql_copy(sql, arena, number, 0, 1),
        .write_path = mp_sql_copy(sql, arena, number, 0, 2),
        .state = mp_sql_copy(sql, arena, number, 0, 3),
        .expires_us = mp_sql_int(sql, number, 0, 4, 0),
        .reason = mp_sql_copy(sql, arena, number, 0, 5),
        .definition = mp_sql_copy(sql, arena, number, 0, 6),
        .files = mp_sql_copy(sql, arena, number, 0, 7),
        .snapshot_id = mp_sql_int(sql, number, 0, 8, -1),
        .schema_version = mp_sql_int(sql, number, 0, 9, -1),
    };
    return MP_OK;
}

/* The receipt, with the columns of its definition. */
static enum mp_code print(struct mp_call *call, struct mp_str operation,
                          const struct creation *creation)
{
    struct mp_buf *out = &call->out;
    struct definition definition;
    json_t *json = json_loadb(creation->definition.data, creation->definition.size, 0, NULL);
    enum mp_code code;

    if (!json)
        return mp_refuse(call, 500, "corrupt_definition", "the stored definition cannot be read");
    code = read_definition(call, json, &definition);
    if (code) {
        json_decref(json);
        return mp_refuse(call, 500, "corrupt_definition", "the stored definition cannot be read");
    }
    mp_columns_assign(definition.table.columns, 0, &definition.table.next_field_id);
    mp_buf_add_byte(out, '{');
    mp_wire_member_text(out, "operation_id", operation);
    mp_wire_member_text(out, "table_uuid", creation->uuid);
    mp_wire_member_text(out, "namespace", definition.namespace_name);
    mp_wire_member_text(out, "name", definition.table.name);
    mp_wire_member(out, "columns");
    mp_wire_columns_print(out, definition.table.columns.items, definition.table.columns.count);
    mp_wire_member_text(out, "write_path", creation->write_path);
    mp_wire_member_text(out, "state", creation->state);
    mp_wire_member_instant(out, "expires_at", creation->expires_us);
    if (creation->snapshot_id >= 0) {
        mp_wire_member_int(out, "snapshot_id", creation->snapshot_id);
        mp_wire_member_int(out, "schema_version", creation->schema_version);
    }
    mp_wire_member_text(out, "reason", creation->reason);
    mp_buf_add_byte(out, '}');
    json_decref(json);
    return MP_OK;
}

static void count_outcome(struct mp_call *call, const char *action, struct mp_str outcome)
{
    char labels[160];

    snprintf(labels, sizeof(labels), "%.*s,%s,%.*s", MP_STR_ARG(call->parts[0]), action,
             MP_STR_ARG(outcome));
    mp_server_metrics_add(call->server->metrics, MP_SM_CREATIONS, labels, 1);
}

/* Counts what failed by its class, and gives the code back. A 404 may be one of the catalog, whose
 * name is no label then. */
static enum mp_code count_failure(struct mp_call *call, const char *action, enum mp_code code)
{
    unsigned status = code == MP_REFUSED ? call->refusal.status : 500;

    if (status != 404)
        count_outcome(call, action,
                      status == 422   ? MP_STR("validation")
                      : status == 409 ? MP_STR("conflict")
                                      : MP_STR("error"));
    return code;
}

static void count_creation(struct mp_call *call, const char *action, struct mp_str outcome,
                           const struct creation *creation, const struct mp_attribution *by)
{
    struct mp_audit what = {
        .action = mp_arena_printf(&call->arena, "table_creation_%s", action),
        .outcome = mp_arena_printf(&call->arena, "%.*s", MP_STR_ARG(outcome)),
        .object = call->parts[1],
        .by = by,
    };

    count_outcome(call, action, outcome);
    mp_audit(call, call->parts[0], &what, "table_uuid %.*s, state %.*s, reason %.*s, snapshot %lld",
             MP_STR_ARG(creation->uuid), MP_STR_ARG(creation->state),
             MP_STR_ARG(creation->reason.data ? creation->reason : MP_STR("none")),
             (long long)creation->snapshot_id);
}

/* --- prepare --- */

struct prepare {
    struct mp_str operation, text;
    struct definition *definition;
    bool replayed;
    char uuid[MP_UUID_TEXT];
    struct creation creation;
};

static enum mp_code check_replacement(struct mp_tx *tx, const struct definition *definition,
                                      int64_t namespace_id, int64_t *ret_table_id, bool *ret_same)
{
    struct mp_table target;
    bool found = false;
    uint32_t number;
    enum mp_code code;

    *ret_same = false;
    *ret_table_id = 0;
    if (definition->read_snapshot < tx->floor || definition->read_snapshot > tx->head)
        return MP_OK;
    code = mp_table_live(tx, namespace_id, definition->table.name, &target, &found);
    if (code)
        return code;
    if (!found) { /* replacing nothing: create or replace */
        *ret_same = !definition->expected_uuid.data;
        return MP_OK;
    }
    if (!definition->expected_uuid.data || !mp_str_eq(definition->expected_uuid, target.uuid))
        return MP_OK;
    number = MP_SQL(tx->sql,
                    "SELECT 1 FROM hog_snapshot_change WHERE catalog_id = $1 AND object_id = $2"
                    " AND snapshot_id > $3 AND kind LIKE 'table\\_%' LIMIT 1",
                    mp_v_int(tx->catalog_id), mp_v_int(target.table_id),
                    mp_v_int(definition->read_snapshot));
    code = mp_tx_sync(tx);
    *ret_same = !code && !mp_sql_rows(tx->sql, number);
    *ret_table_id = target.table_id;
    return code;
}

static enum mp_code prepare_work(struct mp_tx *tx, void *context)
{
    struct prepare *prepare = context;
    struct mp_call *call = tx->call;
    struct mp_str data_path = mp_data_path_trim(tx->data_path);
    int64_t namespace_id, table_id;
    const char *write_path;
    bool found, same = true;
    enum mp_code code =
        load(call, tx->sql, tx->catalog_id, prepare->operation, &found, &prepare->creation);

    if (code)
        return code;
    prepare->replayed = found;
    if (found)
        return same_json(&call->arena, prepare->creation.definition, prepare->text)
                   ? MP_OK
                   : mp_refuse_conflict(call, "that operation was prepared with another "
                                              "definition");
    prepare->definition->table.next_field_id = 1;
    code = check_definition(call, prepare->definition);
    if (!code)
        code = mp_namespace_find(call, tx->sql, tx->catalog_id, prepare->definition->namespace_name,
                                 &namespace_id);
    if (!code && prepare->definition->replaces)
        code = check_replacement(tx, prepare->definition, namespace_id, &table_id, &same);
    if (!code && !same)
        code = mp_refuse_conflict(call, "the table to replace is not what it was at read_snapshot");
    if (code)
        return code;
    write_path =
        mp_arena_printf(&call->arena, "%.*s/data/%s/", MP_STR_ARG(data_path), prepare->uuid);
    MP_SQL(tx->sql,
           "INSERT INTO hog_table_creation (catalog_id, operation_id, namespace_id, definition,"
           " table_uuid, write_path, state, expires_us)"
           " VALUES ($1, $2, $3, $4, $5, $6, 'prepared', hog_now_us() + " LIFE_US ")",
           mp_v_int(tx->catalog_id), mp_v_uuid(prepare->operation), mp_v_int(namespace_id),
           mp_v_text(prepare->text), mp_v_uuid(mp_str_c(prepare->uuid)), mp_v_c(write_path));
    return load(call, tx->sql, tx->catalog_id, prepare->operation, &found, &prepare->creation);
}

static enum mp_code prepare(struct mp_call *call, const struct gate *gate)
{
    struct prepare work = {0};
    struct definition definition;
    enum mp_code code = mp_call_part_uuid(call, 1, &work.operation);

    if (!code)
        code = read_definition(call, call->body, &definition);
    if (!code)
        code = check_gate(call, &definition, gate);
    if (code)
        return code;
    work.definition = &definition;
    work.text = canonical(&call->arena, call->body);
    if (strstr(work.text.data, "\\u0000"))
        return mp_refuse_invalid(call, "a text must not hold a NUL character");
    mp_uuid4(call->server->env, work.uuid);
    code = mp_tx_run(call, call->parts[0], prepare_work, &work);
    if (code)
        return count_failure(call, "prepare", code);
    count_creation(call, "prepare", work.replayed ? MP_STR("replayed") : work.creation.state,
                   &work.creation, &work.definition->by);
    return print(call, work.operation, &work.creation);
}

enum mp_code mp_route_creation_plain(struct mp_call *call)
{
    static const struct gate gate = {0};

    return prepare(call, &gate);
}

enum mp_code mp_route_creation_partitioned(struct mp_call *call)
{
    static const struct gate gate = {.partition = true, .need_partition = true};

    return prepare(call, &gate);
}

enum mp_code mp_route_creation_sorted(struct mp_call *call)
{
    static const struct gate gate = {.partition = true, .sort = true, .need_sort = true};

    return prepare(call, &gate);
}

enum mp_code mp_route_creation_metadata(struct mp_call *call)
{
    static const struct gate gate = {.partition = true, .sort = true, .metadata = true};

    return prepare(call, &gate);
}

/* --- get and abort --- */

static enum mp_code get_work(struct mp_tx *tx, void *context)
{
    struct prepare *work = context;
    bool found;
    enum mp_code code =
        load(tx->call, tx->sql, tx->catalog_id, work->operation, &found, &work->creation);

    if (!code && !found)
        code = mp_refuse_missing(tx->call, "there is no such operation");
    return code;
}

enum mp_code mp_route_creation_get(struct mp_call *call)
{
    struct prepare work = {0};
    enum mp_code code = mp_call_part_uuid(call, 1, &work.operation);

    if (!code)
        code = mp_tx_run(call, call->parts[0], get_work, &work);
    return code ? code : print(call, work.operation, &work.creation);
}

static enum mp_code end(struct mp_tx *tx, struct prepare *work, const char *state,
                        const char *reason, struct mp_str files)
{
    bool found;

    MP_SQL(tx->sql,
           "UPDATE hog_table_creation SET state = $3, reason = $4, files = $5"
           " WHERE catalog_id = $1 AND operation_id = $2",
           mp_v_int(tx->catalog_id), mp_v_uuid(work->operation), mp_v_c(state), mp_v_c(reason),
           mp_v_text(files));
    return load(tx->call, tx->sql, tx->catalog_id, work->operation, &found, &work->creation);
}

static enum mp_code abort_work(struct mp_tx *tx, void *context)
{
    struct prepare *work = context;
    enum mp_code code = get_work(tx, context);

    work->replayed = !code && !mp_str_eq(work->creation.state, MP_STR("prepared"));
    if (code || work->replayed)
        return code;
    return end(tx, work, "aborted", "client_abort", (struct mp_str){NULL, 0});
}

enum mp_code mp_route_creation_abort(struct mp_call *call)
{
    struct prepare work = {0};
    enum mp_code code = mp_call_part_uuid(call, 1, &work.operation);

    if (!code)
        code = mp_tx_run(call, call->parts[0], abort_work, &work);
    if (code)
        return count_failure(call, "abort", code);
    count_creation(call, "abort", work.replayed ? MP_STR("replayed") : work.creation.state,
                   &work.creation, NULL);
    return print(call, work.operation, &work.creation);
}

/* --- publish --- */

struct publish {
    struct prepare prepare; /* operation and receipt */
    struct mp_wire_file *files;
    uint32_t file_count;
    struct mp_str files_text;
    bool claimed;
};

static int by_path(const void *a, const void *b)
{
    return mp_str_cmp(((const struct mp_wire_file *)a)->path,
                      ((const struct mp_wire_file *)b)->path);
}

static enum mp_code check_files(struct mp_tx *tx, struct publish *publish)
{
    struct mp_call *call = tx->call;
    struct mp_wire_file *sorted;
    enum mp_code code;

    if (publish->file_count > FILES_MAX)
        return mp_refuse_invalid(call, "more than %d files", FILES_MAX);
    sorted = mp_arena_take(&call->arena, (publish->file_count + 1) * sizeof(*sorted));
    if (publish->file_count)
        memcpy(sorted, publish->files, publish->file_count * sizeof(*sorted));
    qsort(sorted, publish->file_count, sizeof(*sorted), by_path);
    for (uint32_t i = 0; i < publish->file_count; i++) {
        const struct mp_wire_file *file = &publish->files[i];

        if (i && mp_str_eq(sorted[i - 1].path, sorted[i].path))
            return mp_refuse_invalid(call, "two files have the same path");
        if (!mp_object_path(publish->prepare.creation.write_path, file->path))
            return mp_refuse_invalid(call, "path \"%.*s\" does not lie below the write_path",
                                     file->path.size > 300 ? 300 : (int)file->path.size,
                                     file->path.data);
        if (!file->has_footer_size)
            return mp_refuse_invalid(call, "footer_size is required here");
        code = mp_footer_size_check(call, file);
        if (code)
            return code;
    }
    return MP_OK;
}

/* Claims and removals of the paths, as for every commit. */
static enum mp_code check_paths_free(struct mp_tx *tx, struct publish *publish)
{
    struct mp_sql_array paths;
    uint32_t removals, claims;
    enum mp_code code;

    if (!publish->file_count)
        return MP_OK;
    mp_sql_array_init(&paths, MP_PG_TEXT_ARRAY);
    for (uint32_t i = 0; i < publish->file_count; i++)
        mp_sql_array_text(&paths, publish->files[i].path);
    claims = MP_SQL(tx->sql,
                    "SELECT count(*) FILTER (WHERE owner <> $3 OR state <> 'active'"
                    " OR file_kind <> 'data' OR expires_us < hog_now_us()), count(*)"
                    " FROM hog_upload WHERE catalog_id = $1 AND path = ANY ($2)",
                    mp_v_int(tx->catalog_id), mp_sql_array_value(&paths),
                    mp_v_uuid(publish->prepare.operation));
    removals = MP_SQL(tx->sql,
                      "SELECT 1 FROM hog_file_removal WHERE path = ANY ($2) AND " MP_SQL_NULL(
                          "drained_us") " AND catalog_id + 0 = $1 LIMIT 1",
                      mp_v_int(tx->catalog_id), mp_sql_array_value(&paths));
    code = mp_tx_sync(tx);
    if (!code &&
        (mp_sql_int(tx->sql, claims, 0, 0, 0) ||
         (publish->claimed && mp_sql_int(tx->sql, claims, 0, 1, 0) != publish->file_count)))
        code = mp_refuse_conflict(tx->call, "a path is not claimed by this operation");
    if (!code && mp_sql_rows(tx->sql, removals))
        code = mp_refuse_conflict(tx->call, "a path is queued for deletion");
    if (!code)
        MP_SQL(tx->sql,
               "UPDATE hog_upload SET state = 'registered' WHERE catalog_id = $1"
               " AND path = ANY ($2)",
               mp_v_int(tx->catalog_id), mp_sql_array_value(&paths));
    mp_sql_array_fini(&paths);
    return code;
}

static void send_files(struct mp_tx *tx, const struct publish *publish,
                       const struct mp_table *table, int64_t snapshot)
{
    struct mp_table_gain gain = {.table_id = table->table_id, .files = publish->file_count};
    struct mp_file_rows rows;

    mp_file_rows_init(&rows);
    for (uint32_t i = 0; i < publish->file_count; i++) {
        mp_file_rows_add(&rows, &publish->files[i], tx->next_file++, table->table_id, snapshot,
                         gain.records, table->partition.spec_id);
        gain.records += publish->files[i].record_count;
        gain.bytes += publish->files[i].file_size_bytes;
    }
    mp_file_rows_send(tx, &rows);
    mp_table_gain_send(tx, &gain);
    mp_file_rows_fini(&rows);
}

static enum mp_code create(struct mp_tx *tx, struct publish *publish, struct definition *definition,
                           int64_t replaced)
{
    struct mp_table *table = &definition->table;
    struct mp_files_target target = {
        .columns = table->columns,
        .fields = mp_field_types_new(&tx->call->arena, table->columns),
        .spec_id = table->partition.spec_id,
        .partition_count = table->partition.field_count,
    };
    int64_t snapshot;
    bool found;
    enum mp_code code =
        mp_files_check(tx->call, &tx->call->arena, &target, publish->files, publish->file_count);

    if (!code)
        code = check_paths_free(tx, publish);
    if (code)
        return code;
    table->table_id = tx->next_table++;
    table->namespace_id = publish->prepare.creation.namespace_id;
    table->uuid = publish->prepare.creation.uuid;
    snapshot = mp_tx_snapshot(tx, true, definition->by.author, definition->by.message);
    mp_tx_change(tx, "table_created", table->table_id);
    if (replaced) {
        mp_tx_change(tx, "table_dropped", replaced);
        mp_table_drop_send(tx, replaced, snapshot);
        /* Together a barrier: who follows the name's changes has to read the new table whole. */
        mp_tx_change(tx, "table_altered", table->table_id);
        mp_tx_change(tx, "table_deleted_from", table->table_id);
    }
    if (publish->file_count)
        mp_tx_change(tx, "table_inserted_into", table->table_id);
    mp_table_create_send(tx, table, snapshot, replaced);
    send_files(tx, publish, table, snapshot);
    MP_SQL(tx->sql,
           "UPDATE hog_table_creation SET state = 'committed', files = $3, snapshot_id = $4,"
           " schema_version = $5 WHERE catalog_id = $1 AND operation_id = $2",
           mp_v_int(tx->catalog_id), mp_v_uuid(publish->prepare.operation),
           mp_v_text(publish->files_text), mp_v_int(snapshot), mp_v_int(tx->schema_version));
    return load(tx->call, tx->sql, tx->catalog_id, publish->prepare.operation, &found,
                &publish->prepare.creation);
}

static enum mp_code publish_prepared(struct mp_tx *tx, struct publish *publish,
                                     struct definition *definition)
{
    struct creation *creation = &publish->prepare.creation;
    struct mp_call *call = tx->call;
    int64_t replaced = 0;
    struct mp_table existing;
    bool found = false, same = true;
    uint32_t number;
    enum mp_code code = check_files(tx, publish);

    if (code)
        return code;
    number = MP_SQL(tx->sql,
                    "SELECT 1 FROM hog_namespace WHERE catalog_id = $1 AND namespace_id = $2"
                    " AND name = $3 AND dropped_snapshot IS NULL",
                    mp_v_int(tx->catalog_id), mp_v_int(creation->namespace_id),
                    mp_v_text(definition->namespace_name));
    code = mp_tx_sync(tx);
    if (code)
        return code;
    if (!mp_sql_rows(tx->sql, number))
        return end(tx, &publish->prepare, "rejected", "namespace_changed", publish->files_text);
    if (definition->replaces)
        code = check_replacement(tx, definition, creation->namespace_id, &replaced, &same);
    else
        code = mp_table_live(tx, creation->namespace_id, definition->table.name, &existing, &found);
    if (code)
        return code;
    if (!same)
        return end(tx, &publish->prepare, "rejected", "target_changed", publish->files_text);
    if (found)
        return end(tx, &publish->prepare, "rejected", "target_exists", publish->files_text);
    definition->table.next_field_id = 1;
    code = check_definition(call, definition);
    if (code == MP_REFUSED)
        return end(tx, &publish->prepare, "rejected", "definition_invalid", publish->files_text);
    return code ? code : create(tx, publish, definition, replaced);
}

static enum mp_code publish_work(struct mp_tx *tx, void *context)
{
    struct publish *publish = context;
    struct creation *creation = &publish->prepare.creation;
    struct definition definition;
    json_t *json;
    enum mp_code code = get_work(tx, &publish->prepare);

    publish->prepare.replayed = !code && !mp_str_eq(creation->state, MP_STR("prepared"));
    if (code || mp_str_eq(creation->state, MP_STR("aborted")))
        return code;
    if (publish->prepare.replayed)
        return same_json(&tx->call->arena, creation->files, publish->files_text)
                   ? MP_OK
                   : mp_refuse_conflict(tx->call, "that operation was published with other files");
    json = json_loadb(creation->definition.data, creation->definition.size, 0, NULL);
    if (!json)
        return mp_refuse(tx->call, 500, "corrupt_definition",
                         "the stored definition cannot be read");
    code = read_definition(tx->call, json, &definition);
    if (code)
        code =
            mp_refuse(tx->call, 500, "corrupt_definition", "the stored definition cannot be read");
    if (!code)
        code = publish_prepared(tx, publish, &definition);
    json_decref(json);
    return code;
}

static enum mp_code publish(struct mp_call *call, bool claimed)
{
    static const char *const known[] = {"files", NULL};
    struct mp_wire_reader reader = {.arena = &call->arena};
    struct publish work = {.claimed = claimed};
    const json_t *files = NULL;
    enum mp_code code = mp_call_part_uuid(call, 1, &work.prepare.operation);

    if (mp_wire_object(&reader, call->body, "the request", known)) {
        files = mp_wire_array(&reader, call->body, "files", true);
        if (files)
            mp_wire_files_read(&reader, files, &work.files, &work.file_count);
    }
    if (!code)
        code = mp_call_read_end(call, &reader);
    if (code)
        return code;
    work.files_text = canonical(&call->arena, files);
    code = mp_tx_run(call, call->parts[0], publish_work, &work);
    if (code)
        return count_failure(call, "publish", code);
    count_creation(call, "publish",
                   work.prepare.replayed ? MP_STR("replayed") : work.prepare.creation.state,
                   &work.prepare.creation, NULL);
    if (!work.prepare.replayed && work.prepare.creation.snapshot_id >= 0)
        mp_server_metrics_add(
            call->server->metrics, MP_SM_COMMITS,
            mp_arena_printf(&call->arena, "%.*s,committed", MP_STR_ARG(call->parts[0])), 1);
    return print(call, work.prepare.operation, &work.prepare.creation);
}

enum mp_code mp_route_creation_commit(struct mp_call *call)
{
    return publish(call, false);
}

enum mp_code mp_route_creation_commit_uploads(struct mp_call *call)
{
    return publish(call, true);
}
