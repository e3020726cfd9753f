/* server/background/compact.c - which files go together. See compact_priv.h and callouts.h.
 *
 * A bucket is what may stand in one file: a table, a partition spec, a partition. Of each bucket
 * the smallest files are looked at, as many as fit the target, but none that is larger than all
 * before it together: so a file is written again only when what joins it is about as large, and the
 * work for a file grows with the logarithm of the files.
 *
 * Files of one schema, without deleted rows, in a table without a sort order, make a class, which
 * is joined byte for byte. What is left over is merged, decoded and encoded again: files of other
 * schemas, files with deletion vectors or without field ids, all files of a sorted table, and
 * classes whose row groups are too small to be worth keeping. A file that cannot be decoded stands
 * aside; if its class has it, the class is joined all the same. Files that do not go with the
 * newest one (mp_parquet_merge_agree) are merged by themselves. What neither way takes is left
 * alone and counted.
 *
 * A file of which deletion vectors have taken a large share of the rows is a bucket by itself,
 * whatever its size up to LONE_TARGETS times the target: it is rewritten alone, without these rows.
 * The new file has no deletion vector, so it is none such until as many rows of it are gone again.
 *
 * Buckets come in random order, so one that can never be compacted does not stand in front of the
 * others. A lone file that is smaller than the target comes behind the bucket that may take it.
 */
#include "server/background/compact_priv.h"

#include <assert.h>
#include <stdlib.h>

enum { BUCKETS_MAX = 200, FAILURES_MAX = 3, ROW_GROUP_BYTES_MIN = 1 << 20, LONE_TARGETS = 4 };

struct compaction {
    struct mp_call *call;
    struct mp_str catalog;
    int64_t catalog_id, head, groups_max;
    struct mp_compaction_result *result;
};

struct bucket {
    int64_t table_id;
    struct mp_str file_ids; /* an array as text, smallest file first */
    bool lone;              /* one file with many deleted rows */
};

#define PLACE "concat_ws(' ', f.table_id, f.spec_id, f.partition_values)"

static const char list_buckets[] =
    "SELECT table_id, ids, lone FROM (SELECT f.table_id,"
    " (array_agg(f.data_file_id ORDER BY f.file_size_bytes, f.data_file_id))[1:$3::int] AS ids,"
    " false AS lone, min(" PLACE ") AS place"
    " FROM hog_data_file f JOIN hog_table t USING (catalog_id, table_id)"
    " WHERE f.catalog_id = $1 AND f.end_snapshot IS NULL AND t.dropped_snapshot IS NULL"
    " AND f.file_size_bytes < $2"
    " GROUP BY f.table_id, f.spec_id, f.partition_values HAVING count(*) >= 2"
    " UNION ALL SELECT f.table_id, ARRAY[f.data_file_id], true,"
    " CASE WHEN f.file_size_bytes < $2 THEN " PLACE " ELSE 'file ' || f.data_file_id END"
    " FROM hog_delete_file d JOIN hog_data_file f USING (catalog_id, data_file_id)"
    " JOIN hog_table t ON t.catalog_id = f.catalog_id AND t.table_id = f.table_id"
    " WHERE d.catalog_id = $1 AND " MP_SQL_NULL(
        "d.end_snapshot") " AND f.end_snapshot IS NULL AND t.dropped_snapshot IS NULL"
                          " AND $5 > 0"
                          " AND d.delete_count::float8 * 100 >= f.record_count::float8 * $5"
                          " AND f.file_size_bytes <= $2 * $6) AS buckets"
                          " ORDER BY hashtextextended(place, (SELECT (random() * 1e15)::bigint)),"
                          " lone LIMIT $4";

/* ---- what may become of each file ------------------------------------------------------------ */

/* One bucket at work. */
struct plan {
    struct compaction *compaction;
    struct mp_compact_files files;
    bool lone;                     /* see struct bucket */
    struct mp_compact_group group; /* what all groups of the bucket share */
    struct mp_parquet_join_options join;
    bool apart;        /* files were set apart */
    struct mp_str why; /* why the first file that cannot be merged cannot */
};

/* The table's columns when the file began: they tell what names without field ids meant. */
static enum mp_code columns_then(struct plan *plan, const struct mp_compact_file *file,
                                 struct mp_columns *ret)
{
    struct mp_call *call = plan->compaction->call;
    struct mp_table then = {.table_id = plan->group.table_id};
    enum mp_code code;

    *ret = (struct mp_columns){NULL, 0};
    if (!mp_parquet_misses_field_ids(file->footer))
        return MP_OK;
    code = mp_call_sql(call);
    if (!code)
        code = mp_table_definition(call, call->sql, plan->compaction->catalog_id,
                                   file->begin_snapshot, &then);
    *ret = then.columns;
    return code;
}

/* Fails only where the database did. */
static enum mp_code judge_file(struct plan *plan, bool flat, bool sorted,
                               struct mp_compact_file *file)
{
    struct mp_parquet_join_input join = mp_compact_join_input(file);
    struct mp_parquet_merge_input merge;
    struct mp_columns then;
    struct mp_err err;
    enum mp_code code;

    file->joins = !sorted && mp_parquet_join_check(&join, 1, &plan->join, NULL) == MP_OK;
    file->merges = mp_compact_is_empty(file);
    if (!flat || file->merges)
        return MP_OK;
    code = columns_then(plan, file, &then);
    if (code)
        return code;
    code = mp_compact_leaves(&plan->files.arena, &plan->group.options, then, &err, file);
    if (!code) {
        merge = mp_compact_merge_input(file);
        code = mp_parquet_merge_check(&merge, &plan->group.options, &err);
    }
    file->merges = !code;
    if (code && !plan->why.data)
        plan->why = mp_arena_str(&plan->files.arena, mp_str_c(err.text));
    return MP_OK;
}

static enum mp_code judge_files(struct plan *plan, const struct mp_table *table)
{
    bool sorted = table->sort.field_count > 0, flat;
    struct mp_err err;
    enum mp_code code = MP_OK;

    flat = mp_compact_columns(&plan->files.arena, table, &err, &plan->group.options) == MP_OK;
    if (!flat)
        plan->why = mp_arena_str(&plan->files.arena, mp_str_c(err.text));
    for (uint32_t i = 0; i < plan->files.count && !code; i++)
        if (!plan->files.items[i].done)
            code = judge_file(plan, flat, sorted, &plan->files.items[i]);
    return code;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static int by_row_id(const void *a, const void *b)
{
    const struct mp_compact_file *x = *(struct mp_compact_file *const *)a;
    const struct mp_compact_file *y = *(struct mp_compact_file *const *)b;

    if (x->row_id_start != y->row_id_start)
        return x->row_id_start < y->row_id_start ? -1 : 1;
    return (x->file_id > y->file_id) - (x->file_id < y->file_id);
}

static void begin_group(struct plan *plan, bool merge)
{
    plan->group.merge = merge;
    plan->group.count = 0;
    plan->group.files =
        mp_arena_take(&plan->files.arena, (plan->files.count + 1) * sizeof(*plan->group.files));
}

static bool same_schema(const struct plan *plan, const struct mp_compact_file *a,
                        const struct mp_compact_file *b)
{
    struct mp_parquet_join_input inputs[] = {mp_compact_join_input(a), mp_compact_join_input(b)};

    return mp_parquet_join_check(inputs, 2, &plan->join, NULL) == MP_OK;
}

/* Takes the first file whose class was not looked at, and all that have its schema. False: there
 * is none. */
static bool next_class(struct plan *plan)
{
    const struct mp_compact_file *first = NULL;

    begin_group(plan, false);
    for (uint32_t i = 0; i < plan->files.count; i++) {
        struct mp_compact_file *file = &plan->files.items[i];

        if (file->done || file->seen || !file->joins || (first && !same_schema(plan, first, file)))
            continue;
        if (!first)
            first = file;
        file->seen = true;
        plan->group.files[plan->group.count++] = file;
    }
    return first;
}

static bool may_merge(const struct mp_compact_file *file)
{
    return !file->done && !file->apart && file->merges;
}

/* The newest file that can be merged. NULL: there is none. */
static const struct mp_compact_file *newest_of_rest(struct plan *plan)
{
    const struct mp_compact_file *newest = NULL;

    for (uint32_t i = 0; i < plan->files.count; i++) {
        const struct mp_compact_file *file = &plan->files.items[i];

        if (may_merge(file) && !mp_compact_is_empty(file) &&
            (!newest || by_row_id(&newest, &file) < 0))
            newest = file;
    }
    return newest;
}

static bool agrees(struct plan *plan, const struct mp_compact_file *newest,
                   const struct mp_compact_file *file)
{
    struct mp_parquet_merge_input a, b;
    struct mp_err err;

    if (file == newest || mp_compact_is_empty(file))
        return true;
    a = mp_compact_merge_input(newest);
    b = mp_compact_merge_input(file);
    if (!mp_parquet_merge_agree(&a, &b, &plan->group.options, &err))
        return true;
    if (!plan->why.data)
        plan->why = mp_arena_str(&plan->files.arena, mp_str_c(err.text));
    return false;
}

/* Takes what is left over and can be merged, at most `count_max` files, smallest first, all that go
 * with the newest. */
static void take_rest(struct plan *plan, uint32_t count_max)
{
    const struct mp_compact_file *newest = newest_of_rest(plan);

    begin_group(plan, true);
    for (uint32_t i = 0; i < plan->files.count && plan->group.count < count_max; i++) {
        struct mp_compact_file *file = &plan->files.items[i];

        if (may_merge(file) && agrees(plan, newest, file))
            plan->group.files[plan->group.count++] = file;
    }
}

/* Sets a group that is too small to be worth its while aside, where files that do not go with it
 * are left. False: there are none. */
static bool set_apart(struct plan *plan)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < plan->files.count; i++)
        left += may_merge(&plan->files.items[i]);
    if (left == plan->group.count && !plan->apart)
        return false;
    for (uint32_t i = 0; i < plan->group.count; i++)
        plan->group.files[i]->apart = true;
    plan->apart = true;
    return left > plan->group.count;
}

static bool all_merge(const struct mp_compact_group *group)
{
    for (uint32_t i = 0; i < group->count; i++)
        if (!group->files[i]->merges)
            return false;
    return true;
}

/* Bytes of the files; *ret_largest: of the largest. */
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

static bool too_few(const struct plan *plan)
{
    int64_t largest;

    if (plan->lone)
        return !plan->group.count;
    bytes_of(&plan->group, &largest);
    return plan->group.count <
           mp_compact_files_min(plan->compaction->call->server->settings, largest);
}

/* Whether a join would only carry small row groups on. */
static bool small_row_groups(const struct mp_compact_group *group)
{
    int64_t largest, bytes = bytes_of(group, &largest), groups = 0;

    for (uint32_t i = 0; i < group->count; i++)
        groups += group->files[i]->footer->group_count;
    return bytes / (groups ? groups : 1) < ROW_GROUP_BYTES_MIN;
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
    [MP_GROUP_MEMORY] = END(heap_budget_exceeded, "memory"),
    [MP_GROUP_FAILED] = END(failed_groups, "failed"),
#undef END
};

static void count_end(struct compaction *compaction, enum mp_group_end end)
{
    ++*(int64_t *)(void *)((char *)compaction->result + ends[end].counter);
    if (ends[end].reason)
        mp_compact_left_alone(compaction->call->server, ends[end].reason, 1);
}

/* Compacts plan->group and counts how that ended. Fails only where the database did. */
static enum mp_code run_group(struct plan *plan, struct mp_group_result *ret)
{
    struct mp_compaction_result *result = plan->compaction->result;
    struct mp_compact_group *group = &plan->group;
    int64_t largest, bytes = bytes_of(group, &largest);
    enum mp_code code;

    qsort(group->files, group->count, sizeof(*group->files), by_row_id);
    code = mp_compact_group(group, ret);
    if (code)
        return code;
    count_end(plan->compaction, ret->end);
    if (ret->end != MP_GROUP_COMPACTED)
        return MP_OK;
    for (uint32_t i = 0; i < group->count; i++)
        group->files[i]->done = true;
    result->files_in += group->count;
    result->files_out += ret->made_file;
    result->bytes_in += bytes;
    result->bytes_out += ret->bytes;
    return MP_OK;
}

static bool may_go_on(const struct compaction *compaction)
{
    return compaction->result->groups_compacted < compaction->groups_max &&
           compaction->result->failed_groups < FAILURES_MAX &&
           !atomic_load(&compaction->call->server->stopping);
}

static enum mp_code join_classes(struct plan *plan)
{
    enum mp_code code = MP_OK;

    while (!code && may_go_on(plan->compaction) && next_class(plan)) {
        struct mp_group_result result;

        if (too_few(plan) || (small_row_groups(&plan->group) && all_merge(&plan->group)))
            continue;
        code = run_group(plan, &result);
        for (uint32_t i = 0; i < plan->group.count; i++)
            plan->group.files[i]->done = true; /* compacted, or not to be tried again now */
    }
    return code;
}

/* A merge that fails for one file is tried again without it; one that needs too much memory because
 * all of its files are one unit (a sort order), with the smaller half of them. Files that do not go
 * with those that were merged have a merge of their own. */
static enum mp_code merge_rest(struct plan *plan)
{
    uint32_t count_max = plan->files.count, failures = 0;
    enum mp_code code = MP_OK;

    while (failures < FAILURES_MAX && !code && may_go_on(plan->compaction)) {
        struct mp_group_result result;

        take_rest(plan, count_max);
        while (too_few(plan) && count_max == plan->files.count && set_apart(plan))
            take_rest(plan, count_max);
        if (too_few(plan))
            break;
        code = run_group(plan, &result);
        if (code || (result.end == MP_GROUP_COMPACTED && count_max < plan->files.count))
            break;
        failures += result.end != MP_GROUP_COMPACTED;
        if (result.end == MP_GROUP_COMPACTED)
            continue;
        if (result.end == MP_GROUP_MEMORY && plan->group.options.sort_count)
            count_max = plan->group.count / 2;
        else if (result.fault < plan->group.count)
            plan->group.files[result.fault]->done = true;
        else
            break;
    }
    return code;
}

/* Files that neither way can take, in a bucket that is worth it by its number of files. */
static void count_rest(struct plan *plan)
{
    const struct mp_server *server = plan->compaction->call->server;
    uint32_t count = 0;

    for (uint32_t i = 0; i < plan->files.count; i++)
        count += !plan->files.items[i].done &&
                 (!plan->files.items[i].merges || plan->files.items[i].apart);
    if (!count)
        return;
    count_end(plan->compaction, MP_GROUP_SCHEMA);
    mp_log(server->log, MP_LOG_INFO, "hoglake.compaction",
           "%u files of table %lld are left alone, they cannot be merged: %.*s", count,
           (long long)plan->group.table_id, MP_STR_ARG(plan->why));
}

/* ---- buckets --------------------------------------------------------------------------------- */

static enum mp_code run_plan(struct plan *plan)
{
    struct mp_call *call = plan->compaction->call;
    struct mp_table table = {.table_id = plan->group.table_id};
    enum mp_code code = mp_call_sql(call);

    if (!code)
        code = mp_table_definition(call, call->sql, plan->compaction->catalog_id,
                                   plan->compaction->head, &table);
    plan->group.columns = table.columns;
    if (!code)
        code = judge_files(plan, &table);
    if (!code && !plan->lone)
        code = join_classes(plan);
    if (!code)
        code = merge_rest(plan);
    if (!code)
        count_rest(plan);
    return code;
}

static enum mp_code compact_bucket(struct compaction *compaction, const struct bucket *bucket)
{
    struct mp_call *call = compaction->call;
    struct plan plan = {.compaction = compaction,
                        .lone = bucket->lone,
                        .join = mp_compact_join_options(call->server),
                        .group = {.call = call,
                                  .catalog = compaction->catalog,
                                  .catalog_id = compaction->catalog_id,
                                  .table_id = bucket->table_id,
                                  .head = compaction->head,
                                  .arena = &plan.files.arena}};
    struct mp_err err;
    enum mp_code code;

    mp_arena_init(&plan.files.arena, 64 * 1024);
    code = mp_compact_files_find(call, compaction->catalog_id, bucket->file_ids, bucket->lone,
                                 &plan.files);
    if (code || !plan.files.count)
        goto out;
    mp_sql_give(call->server->pool, &call->sql); /* others may use it while the store is read */
    if (mp_compact_files_open(call->server, &plan.files, &err, &compaction->result->invalid_data)) {
        mp_log(call->server->log, MP_LOG_WARN, "hoglake.compaction", "table %lld: %s",
               (long long)bucket->table_id, err.text);
        count_end(compaction, MP_GROUP_FAILED);
    } else {
        code = run_plan(&plan);
    }
out:
    mp_arena_fini(&plan.files.arena);
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
                    mp_v_int(settings->HOGLAKE_COMPACTION_MAX_INPUT_FILES), mp_v_int(BUCKETS_MAX),
                    mp_v_int(settings->HOGLAKE_COMPACTION_DELETED_PERCENT), mp_v_int(LONE_TARGETS));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    *ret_count = mp_sql_rows(call->sql, number);
    *ret = mp_arena_take(&call->arena, (*ret_count + 1) * sizeof(**ret));
    for (uint32_t i = 0; i < *ret_count; i++)
        (*ret)[i] = (struct bucket){
            .table_id = mp_sql_int(call->sql, number, i, 0, 0),
            .file_ids = mp_sql_copy(call->sql, &call->arena, number, i, 1),
            .lone = mp_sql_true(call->sql, number, i, 2),
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
    for (uint32_t i = 0; i < count && !code && may_go_on(&compaction); i++)
        code = compact_bucket(&compaction, &buckets[i]);
    return code;
}
