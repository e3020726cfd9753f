/* server/background/compact.c - which files are joined. See compact_priv.h and callouts.h.
 *
 * A bucket is what may stand in one file: a table, a partition spec, a partition. Of each bucket
 * the smallest files are looked at, as many as fit the target, but none that is larger than all
 * before it together: so a file is written again only when what joins it is about as large, and the
 * work for a file grows with the logarithm of the files. Those of one schema make a group, and a
 * group is joined byte for byte, so nothing is decoded. What would have to be decoded is left alone
 * and counted: tables with a sort order, files with a deletion vector, files whose schema nothing
 * else has. Buckets come in random order, so one that can never be compacted does not stand in
 * front of the others.
 */
#include "server/background/compact_priv.h"

#include "server/tables.h"

#include <assert.h>
#include <stdlib.h>

enum { BUCKETS_MAX = 200, FAILURES_MAX = 3 };

struct compaction {
    struct mp_call *call;
    struct mp_str catalog;
    int64_t catalog_id, head, groups_max;
    struct mp_compaction_result *result;
};

struct bucket {
    int64_t table_id, deleted;
    bool sorted;
    struct mp_str file_ids; /* an array as text, smallest file first */
};

/* One bucket's files on their way into groups. */
struct candidates {
    struct mp_compact_file *files;
    uint32_t count, readable;
    struct mp_arena arena;
};

static const char list_buckets[] =
    "SELECT f.table_id, count(d.delete_file_id), EXISTS (SELECT 1 FROM hog_sort_spec s"
    "  WHERE s.catalog_id = $1 AND s.table_id = f.table_id AND s.end_snapshot IS NULL),"
    " (array_agg(f.data_file_id ORDER BY f.file_size_bytes, f.data_file_id)"
    "  FILTER (WHERE d.delete_file_id IS NULL))[1:$3::int]"
    " FROM hog_data_file f JOIN hog_table t USING (catalog_id, table_id)"
    " LEFT JOIN hog_delete_file d ON d.catalog_id = f.catalog_id"
    "  AND d.data_file_id = f.data_file_id AND " MP_SQL_NULL(
        "d.end_snapshot") " WHERE f.catalog_id = $1 AND f.end_snapshot IS NULL AND "
                          "t.dropped_snapshot IS NULL"
                          " AND NOT f.missing_field_ids AND f.file_size_bytes < $2"
                          " GROUP BY f.table_id, f.spec_id, f.partition_values HAVING count(*) >= 2"
                          " ORDER BY random() LIMIT $4";

static const char list_files[] =
    "SELECT data_file_id, path, record_count, file_size_bytes, footer_size, row_id_start,"
    " explicit_row_ids FROM hog_data_file WHERE catalog_id = $1 AND data_file_id = ANY ($2)"
    " AND end_snapshot IS NULL ORDER BY file_size_bytes, data_file_id";

static void left_alone(struct compaction *compaction, const char *reason, int64_t count)
{
    if (count)
        mp_server_metrics_add(compaction->call->server->metrics, MP_SM_LEFT, reason, (double)count);
}

/* The smallest group worth its while: fewer files where few of them reach the target. */
static uint32_t group_files_min(const struct mp_server_settings *settings, int64_t largest_bytes)
{
    int64_t least = settings->HOGLAKE_COMPACTION_MIN_INPUT_FILES;
    int64_t full = settings->HOGLAKE_COMPACTION_TARGET_BYTES / (largest_bytes ? largest_bytes : 1);

    if (least > full)
        least = full;
    return least < 2 ? 2 : (uint32_t)least;
}

/* Gives the bucket's smallest files that fit the target; too few: count 0. */
static enum mp_code read_files(struct compaction *compaction, const struct bucket *bucket,
                               struct candidates *ret)
{
    struct mp_call *call = compaction->call;
    const struct mp_server_settings *settings = call->server->settings;
    struct mp_v ids = {.type = MP_PG_INT8_ARRAY, .text = bucket->file_ids};
    int64_t taken = 0, largest = 0;
    uint32_t number, rows;
    enum mp_code code = mp_call_sql(call);

    if (code)
        return code;
    number = MP_SQL(call->sql, list_files, mp_v_int(compaction->catalog_id), ids);
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    rows = mp_sql_rows(call->sql, number);
    ret->files = mp_arena_take(&ret->arena, (rows + 1) * sizeof(*ret->files));
    for (uint32_t i = 0; i < rows; i++) {
        int64_t bytes = mp_sql_int(call->sql, number, i, 3, 0);

        if (bytes > settings->HOGLAKE_COMPACTION_TARGET_BYTES - taken ||
            (ret->count >= settings->HOGLAKE_COMPACTION_MIN_INPUT_FILES && bytes > taken))
            break;
        taken += bytes;
        largest = bytes;
        ret->files[ret->count++] = (struct mp_compact_file){
            .file_id = mp_sql_int(call->sql, number, i, 0, 0),
            .request = {.path = mp_sql_copy(call->sql, &ret->arena, number, i, 1),
                        .file_size_bytes = bytes,
                        .has_footer_size = !mp_sql_null(call->sql, number, i, 4),
                        .footer_size = mp_sql_int(call->sql, number, i, 4, 0)},
            .records = mp_sql_int(call->sql, number, i, 2, 0),
            .row_id_start = mp_sql_int(call->sql, number, i, 5, 0),
            .explicit_row_ids = mp_sql_true(call->sql, number, i, 6),
        };
    }
    if (ret->count < group_files_min(settings, largest))
        ret->count = 0;
    assert(taken <= settings->HOGLAKE_COMPACTION_TARGET_BYTES);
    return MP_OK;
}

/* What the file says of itself must be what the catalog says of it. */
static enum mp_code check_footer(const struct mp_compact_file *file, struct mp_err *err)
{
    const struct mp_parquet_footer *footer = file->footer;
    const struct mp_parquet_node *last = &footer->nodes[footer->node_count - 1];
    bool own_ids = last->has_field_id && last->field_id == MP_ROW_ID_FIELD_ID;

    if (footer->rows != file->records)
        return mp_err_set(err, MP_BAD_DATA, "the file has %lld rows, the catalog says %lld",
                          (long long)footer->rows, (long long)file->records);
    if (own_ids != file->explicit_row_ids)
        return mp_err_set(err, MP_BAD_DATA, "the file has %s row ids, the catalog says otherwise",
                          own_ids ? "a column of" : "no column of");
    return MP_OK;
}

/* Files that cannot be read are done; a store that does not answer ends the bucket. */
static enum mp_code read_footers(struct compaction *compaction, struct candidates *candidates,
                                 struct mp_err *err)
{
    struct mp_server *server = compaction->call->server;

    for (uint32_t i = 0; i < candidates->count; i++) {
        struct mp_compact_file *file = &candidates->files[i];
        enum mp_code code = mp_footer_read(mp_background_objects(server), &candidates->arena,
                                           &file->request, err, &file->footer);

        if (!code)
            code = check_footer(file, err);
        if (code && code != MP_BAD_DATA && code != MP_NOT_FOUND)
            return code;
        if (!code) {
            candidates->readable++;
            continue;
        }
        file->done = true;
        compaction->result->invalid_data++;
        left_alone(compaction, "invalid_data", 1);
        mp_log(server->log, MP_LOG_WARN, "hoglake.compaction", "data file %lld is left alone: %s",
               (long long)file->file_id, err->text);
    }
    return MP_OK;
}

static bool same_schema(const struct mp_compact_file *a, const struct mp_compact_file *b,
                        const struct mp_parquet_join_options *options)
{
    struct mp_parquet_join_input inputs[] = {mp_compact_input(a), mp_compact_input(b)};

    return mp_parquet_join_check(inputs, 2, options, NULL) == MP_OK;
}

static int by_row_id(const void *a, const void *b)
{
    const struct mp_compact_file *x = *(struct mp_compact_file *const *)a;
    const struct mp_compact_file *y = *(struct mp_compact_file *const *)b;

    if (x->row_id_start != y->row_id_start)
        return x->row_id_start < y->row_id_start ? -1 : 1;
    return (x->file_id > y->file_id) - (x->file_id < y->file_id);
}

/* Takes the first file that is not done, and all that have its schema, into a group. False: there
 * is none left. */
static bool next_class(struct candidates *candidates, const struct mp_parquet_join_options *options,
                       struct mp_compact_group *group)
{
    struct mp_compact_file *first = NULL;

    group->files = mp_arena_take(&candidates->arena, (candidates->count + 1) * sizeof(first));
    group->count = 0;
    for (uint32_t i = 0; i < candidates->count; i++) {
        struct mp_compact_file *file = &candidates->files[i];

        if (file->done || (first && !same_schema(first, file, options)))
            continue;
        if (!first)
            first = file;
        file->done = true;
        group->files[group->count++] = file;
    }
    if (group->count)
        qsort(group->files, group->count, sizeof(first), by_row_id);
    return first;
}

static int64_t bytes_of(const struct mp_compact_group *group, int64_t *ret_largest)
{
    int64_t bytes = 0;

    *ret_largest = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        int64_t size = group->files[i]->request.file_size_bytes;

        bytes += size;
        if (size > *ret_largest)
            *ret_largest = size;
    }
    return bytes;
}

static const struct {
    size_t counter; /* of the result */
    const char *reason;
} ends[] = {
#define END(member, reason)                                                                        \
    {                                                                                              \
        offsetof(struct mp_compaction_result, member), reason                                      \
    }
    [MP_GROUP_COMPACTED] = END(groups_compacted, NULL),
    [MP_GROUP_CLAIMED] = END(skipped_conflicts, "claimed_elsewhere"),
    [MP_GROUP_CONFLICT] = END(skipped_conflicts, "conflict"),
    [MP_GROUP_DELETED] = END(dv_superseded, "deletion_vector_meanwhile"),
    [MP_GROUP_SCHEMA] = END(unconvertible_schema, "schema"),
    [MP_GROUP_INVALID] = END(invalid_data, "invalid_group"),
    [MP_GROUP_FAILED] = END(failed_groups, "failed"),
#undef END
};

static void count_end(struct compaction *compaction, enum mp_group_end end)
{
    ++*(int64_t *)(void *)((char *)compaction->result + ends[end].counter);
    if (ends[end].reason)
        left_alone(compaction, ends[end].reason, 1);
}

static enum mp_code compact_classes(struct compaction *compaction, const struct bucket *bucket,
                                    struct candidates *candidates)
{
    struct mp_call *call = compaction->call;
    struct mp_compaction_result *result = compaction->result;
    struct mp_parquet_join_options options = mp_compact_options(call->server);
    struct mp_table table = {.table_id = bucket->table_id};
    struct mp_compact_group group = {.call = call,
                                     .catalog = compaction->catalog,
                                     .catalog_id = compaction->catalog_id,
                                     .table_id = bucket->table_id,
                                     .arena = &candidates->arena};
    enum mp_code code = mp_call_sql(call);

    if (!code)
        code =
            mp_table_definition(call, call->sql, compaction->catalog_id, compaction->head, &table);
    group.columns = table.columns;
    while (!code && result->groups_compacted < compaction->groups_max &&
           next_class(candidates, &options, &group)) {
        int64_t largest, bytes = bytes_of(&group, &largest), bytes_out = 0;
        enum mp_group_end end = MP_GROUP_SCHEMA;

        if (group.count >= group_files_min(call->server->settings, largest))
            code = mp_compact_group(&group, &end, &bytes_out);
        else if (group.count == candidates->readable)
            break; /* too few, whatever their schemas */
        if (code)
            break;
        count_end(compaction, end);
        if (end != MP_GROUP_COMPACTED)
            continue;
        result->files_in += group.count;
        result->files_out++;
        result->bytes_in += bytes;
        result->bytes_out += bytes_out;
    }
    return code;
}

static enum mp_code compact_bucket(struct compaction *compaction, const struct bucket *bucket)
{
    struct mp_call *call = compaction->call;
    struct candidates candidates = {0};
    struct mp_err err;
    enum mp_code code;

    left_alone(compaction, "deletion_vector", bucket->deleted);
    if (bucket->sorted) {
        compaction->result->unconvertible_schema++;
        left_alone(compaction, "sort_order", 1);
        return MP_OK;
    }
    mp_arena_init(&candidates.arena, 64 * 1024);
    code = bucket->file_ids.data ? read_files(compaction, bucket, &candidates) : MP_OK;
    if (code || !candidates.count)
        goto out;
    mp_sql_give(call->server->pool, &call->sql); /* others may use it while the store is read */
    if (read_footers(compaction, &candidates, &err)) {
        mp_log(call->server->log, MP_LOG_WARN, "hoglake.compaction", "table %lld: %s",
               (long long)bucket->table_id, err.text);
        count_end(compaction, MP_GROUP_FAILED);
    } else {
        code = compact_classes(compaction, bucket, &candidates);
    }
out:
    mp_arena_fini(&candidates.arena);
    return code;
}

static enum mp_code read_buckets(struct compaction *compaction, struct bucket **ret,
                                 uint32_t *ret_count)
{
    struct mp_call *call = compaction->call;
    const struct mp_server_settings *settings = call->server->settings;
    uint32_t number;
    enum mp_code code = mp_call_sql(call);

    if (code)
        return code;
    number =
        MP_SQL(call->sql, "SELECT catalog_id, last_snapshot_id FROM hog_catalog WHERE name = $1",
               mp_v_text(compaction->catalog));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (!mp_sql_rows(call->sql, number))
        return mp_refuse_missing(call, "catalog \"%.*s\" does not exist",
                                 MP_STR_ARG(compaction->catalog));
    compaction->catalog_id = mp_sql_int(call->sql, number, 0, 0, 0);
    compaction->head = mp_sql_int(call->sql, number, 0, 1, 0);
    number = MP_SQL(call->sql, list_buckets, mp_v_int(compaction->catalog_id),
                    mp_v_int(settings->HOGLAKE_COMPACTION_TARGET_BYTES),
                    mp_v_int(settings->HOGLAKE_COMPACTION_MAX_INPUT_FILES), mp_v_int(BUCKETS_MAX));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    *ret_count = mp_sql_rows(call->sql, number);
    *ret = mp_arena_take(&call->arena, (*ret_count + 1) * sizeof(**ret));
    for (uint32_t i = 0; i < *ret_count; i++)
        (*ret)[i] = (struct bucket){
            .table_id = mp_sql_int(call->sql, number, i, 0, 0),
            .deleted = mp_sql_int(call->sql, number, i, 1, 0),
            .sorted = mp_sql_true(call->sql, number, i, 2),
            .file_ids = mp_sql_copy(call->sql, &call->arena, number, i, 3),
        };
    return MP_OK;
}

enum mp_code mp_callout_compact(struct mp_call *call, struct mp_str catalog, int64_t groups,
                                struct mp_compaction_result *ret)
{
    struct compaction compaction = {
        .call = call, .catalog = catalog, .groups_max = groups, .result = ret};
    struct bucket *buckets = NULL;
    uint32_t count = 0;
    enum mp_code code;

    assert(groups > 0);
    *ret = (struct mp_compaction_result){0};
    code = read_buckets(&compaction, &buckets, &count);
    for (uint32_t i = 0; i < count && !code; i++) {
        if (ret->groups_compacted >= groups || ret->failed_groups >= FAILURES_MAX ||
            atomic_load(&call->server->stopping))
            break;
        code = compact_bucket(&compaction, &buckets[i]);
    }
    return code;
}
