/* server/tx/deletes.c - deletion vectors in a commit. See commit_priv.h.
 *
 * Always  at most one vector of a data file is live; counts only grow
 */
#include "server/tx/commit_priv.h"

#include <assert.h>
#include <stdlib.h>

static enum mp_code check_one(struct mp_member *member, const struct mp_wire_delete_file *file)
{
    struct mp_call *call = member->call;
    bool by_path = file->data_file_path.data;

    if (!file->path.size)
        return mp_refuse_invalid(call, "a delete file's path is blank");
    if (file->delete_count <= 0)
        return mp_refuse_invalid(call, "delete_count must be above 0");
    if (file->file_size_bytes < 0)
        return mp_refuse_invalid(call, "file_size_bytes of a delete file is negative");
    if (by_path && !member->rules->data_file_paths)
        return mp_refuse_invalid(call, "data_file_path is for /commit/transaction only");
    if (by_path && (file->data_file_id || !file->data_file_path.size))
        return mp_refuse_invalid(call, "data_file_path goes with data_file_id 0 and must not be "
                                       "blank");
    return MP_OK;
}

static int by_target(const void *a, const void *b)
{
    const struct mp_wire_delete_file *x = a, *y = b;

    return x->data_file_id != y->data_file_id ? (x->data_file_id > y->data_file_id ? 1 : -1)
                                              : mp_str_cmp(x->data_file_path, y->data_file_path);
}

static enum mp_code check_targets_differ(struct mp_member *member,
                                         const struct mp_group_table *table)
{
    size_t size = table->delete_count * sizeof(*table->deletes);
    struct mp_wire_delete_file *sorted = mp_arena_take(&member->call->arena, size + 1);

    if (size)
        memcpy(sorted, table->deletes, size);
    qsort(sorted, table->delete_count, sizeof(*sorted), by_target);
    for (uint32_t k = 1; k < table->delete_count; k++)
        if (by_target(&sorted[k - 1], &sorted[k]) == 0)
            return mp_refuse_invalid(member->call, "two deletes have the same target");
    return MP_OK;
}

enum mp_code mp_plan_deletes_check(struct mp_member *member)
{
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < member->table_count && !code; i++) {
        for (uint32_t k = 0; k < member->tables[i].delete_count && !code; k++)
            code = check_one(member, &member->tables[i].deletes[k]);
        if (!code)
            code = check_targets_differ(member, &member->tables[i]);
    }
    return code;
}

enum mp_code mp_plan_unchanged(struct mp_group *group, struct mp_member *member)
{
    struct mp_sql_array tables;
    struct mp_sql *sql = group->tx->sql;
    uint32_t number;
    enum mp_code code;

    mp_sql_array_init(&tables, MP_PG_INT8_ARRAY);
    for (uint32_t i = 0; i < member->table_count; i++)
        if (member->tables[i].removes)
            mp_sql_array_int(&tables, member->tables[i].shape->table_id);
    number = MP_SQL(sql,
                    "SELECT object_id FROM hog_snapshot_change WHERE catalog_id = $1"
                    " AND snapshot_id > $2 AND object_id = ANY ($3) AND kind IN"
                    " ('table_inserted_into', 'table_deleted_from', 'table_created') LIMIT 1",
                    mp_v_int(group->tx->catalog_id), mp_v_int(member->request->read_snapshot),
                    mp_sql_array_value(&tables));
    code = mp_tx_sync(group->tx);
    mp_sql_array_fini(&tables);
    if (!code && mp_sql_rows(sql, number))
        code = mp_refuse_conflict(member->call,
                                  "a table of the deletes changed after read_snapshot "
                                  "%lld",
                                  (long long)member->request->read_snapshot);
    return code;
}

/* A target as it is, from the answer of targets(). */
struct target {
    int64_t file_id, table_id, begin, end, records, vector_begin, vector_count;
    bool ended, has_vector;
};

static enum mp_code check_target(struct mp_member *member, const struct target *target,
                                 const struct mp_wire_delete_file *file, int64_t table_id)
{
    int64_t read_snapshot = member->request->read_snapshot;
    long long id = (long long)file->data_file_id;
    struct mp_call *call = member->call;

    if (!target)
        return mp_refuse_invalid(call, "unknown data file %lld", id);
    if (target->begin > read_snapshot)
        return mp_refuse_conflict(call, "data file %lld was added after read_snapshot", id);
    if (target->table_id != table_id)
        return mp_refuse_invalid(call, "data file %lld belongs to another table", id);
    if (target->ended)
        return target->end > read_snapshot
                   ? mp_refuse_conflict(call, "data file %lld was retired after read_snapshot", id)
                   : mp_refuse_invalid(call, "data file %lld is retired", id);
    if (file->delete_count > target->records)
        return mp_refuse_invalid(call,
                                 "delete_count %lld is above the %lld records of data file "
                                 "%lld",
                                 (long long)file->delete_count, (long long)target->records, id);
    if (target->has_vector && target->vector_begin > read_snapshot)
        return mp_refuse_conflict(call, "data file %lld got a deletion vector after read_snapshot",
                                  id);
    if (target->has_vector && file->delete_count < target->vector_count)
        return mp_refuse_invalid(call, "delete_count %lld of data file %lld shrinks from %lld",
                                 (long long)file->delete_count, id,
                                 (long long)target->vector_count);
    return MP_OK;
}

static enum mp_code read_targets(struct mp_group *group, struct mp_member *member,
                                 struct target **ret, uint32_t *ret_count)
{
    struct mp_sql *sql = group->tx->sql;
    struct mp_sql_array ids;
    struct target *targets;
    uint32_t number;
    enum mp_code code;

    mp_sql_array_init(&ids, MP_PG_INT8_ARRAY);
    for (uint32_t i = 0; i < member->table_count; i++)
        for (uint32_t k = 0; k < member->tables[i].delete_count; k++)
            mp_sql_array_int(&ids, member->tables[i].deletes[k].data_file_id);
    number = MP_SQL(sql,
                    "SELECT f.data_file_id, f.table_id, f.begin_snapshot, f.end_snapshot,"
                    " f.record_count, d.begin_snapshot, d.delete_count FROM hog_data_file f"
                    " LEFT JOIN hog_delete_file d ON d.catalog_id = f.catalog_id"
                    " AND d.data_file_id = f.data_file_id AND " MP_SQL_NULL(
                        "d.end_snapshot") " WHERE f.catalog_id = $1 AND f.data_file_id = ANY ($2)"
                                          " ORDER BY f.data_file_id",
                    mp_v_int(group->tx->catalog_id), mp_sql_array_value(&ids));
    code = mp_tx_sync(group->tx);
    mp_sql_array_fini(&ids);
    if (code)
        return code;
    *ret_count = mp_sql_rows(sql, number);
    targets = mp_arena_take(&member->call->arena, sizeof(*targets) * (*ret_count + 1));
    for (uint32_t i = 0; i < *ret_count; i++)
        targets[i] = (struct target){
            .file_id = mp_sql_int(sql, number, i, 0, 0),
            .table_id = mp_sql_int(sql, number, i, 1, 0),
            .begin = mp_sql_int(sql, number, i, 2, 0),
            .ended = !mp_sql_null(sql, number, i, 3),
            .end = mp_sql_int(sql, number, i, 3, 0),
            .records = mp_sql_int(sql, number, i, 4, 0),
            .has_vector = !mp_sql_null(sql, number, i, 5),
            .vector_begin = mp_sql_int(sql, number, i, 5, 0),
            .vector_count = mp_sql_int(sql, number, i, 6, 0),
        };
    *ret = targets;
    return MP_OK;
}

static const struct target *find_target(const struct target *targets, uint32_t count, int64_t id)
{
    uint32_t low = 0, high = count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (targets[middle].file_id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && targets[low].file_id == id ? &targets[low] : NULL;
}

/* The file of this commit with that path; its id in *ret. Files got their ids in the order of the
 * tables and of their files, from first_file on. */
static enum mp_code own_file(struct mp_member *member, const struct mp_group_table *in,
                             const struct mp_wire_delete_file *file, int64_t first_file,
                             int64_t *ret)
{
    int64_t id = first_file;
    uint32_t found = 0;

    for (uint32_t i = 0; i < member->table_count; i++)
        for (uint32_t k = 0; k < member->tables[i].file_count; k++, id++) {
            const struct mp_wire_file *data = &member->tables[i].files[k];

            if (&member->tables[i] != in || !mp_str_eq(data->path, file->data_file_path))
                continue;
            found++;
            *ret = id;
            if (file->delete_count > data->record_count)
                return mp_refuse_invalid(
                    member->call, "delete_count %lld is above the file's %lld records",
                    (long long)file->delete_count, (long long)data->record_count);
        }
    if (found != 1)
        return mp_refuse_invalid(member->call,
                                 "data_file_path must name exactly one file of this commit and "
                                 "table, not %u",
                                 found);
    return MP_OK;
}

static void send_vectors(struct mp_group *group, struct mp_sql_array *ids,
                         struct mp_sql_array *tables, struct mp_sql_array *targets,
                         struct mp_sql_array *paths, struct mp_sql_array *counts,
                         struct mp_sql_array *sizes)
{
    struct mp_tx *tx = group->tx;

    MP_SQL(tx->sql,
           "UPDATE hog_delete_file SET end_snapshot = $2 WHERE catalog_id = $1"
           " AND data_file_id = ANY ($3) AND " MP_SQL_NULL("end_snapshot"),
           mp_v_int(tx->catalog_id), mp_v_int(tx->head), mp_sql_array_value(targets));
    MP_SQL(tx->sql,
           "INSERT INTO hog_delete_file (catalog_id, begin_snapshot, delete_file_id, table_id,"
           " data_file_id, path, delete_count, file_size_bytes)"
           " SELECT $1, $2, d.* FROM unnest($3, $4, $5, $6, $7, $8)"
           " AS d(id, table_id, target, path, count, bytes)",
           mp_v_int(tx->catalog_id), mp_v_int(tx->head), mp_sql_array_value(ids),
           mp_sql_array_value(tables), mp_sql_array_value(targets), mp_sql_array_value(paths),
           mp_sql_array_value(counts), mp_sql_array_value(sizes));
}

enum mp_code mp_plan_deletes(struct mp_group *group, struct mp_member *member, int64_t first_file)
{
    struct mp_sql_array ids, tables, targets, paths, counts, sizes;
    struct target *known = NULL;
    uint32_t known_count = 0, sent = 0;
    enum mp_code code = read_targets(group, member, &known, &known_count);

    mp_sql_array_init(&ids, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&tables, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&targets, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&paths, MP_PG_TEXT_ARRAY);
    mp_sql_array_init(&counts, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&sizes, MP_PG_INT8_ARRAY);
    for (uint32_t i = 0; i < member->table_count && !code; i++) {
        const struct mp_group_table *table = &member->tables[i];

        for (uint32_t k = 0; k < table->delete_count && !code; k++) {
            const struct mp_wire_delete_file *file = &table->deletes[k];
            int64_t target_id = file->data_file_id;
            const struct target *target = find_target(known, known_count, target_id);

            code = file->data_file_path.data
                       ? own_file(member, table, file, first_file, &target_id)
                       : check_target(member, target, file, table->shape->table_id);
            if (code)
                break;
            mp_sql_array_int(&ids, group->tx->next_file++);
            mp_sql_array_int(&tables, table->shape->table_id);
            mp_sql_array_int(&targets, target_id);
            mp_sql_array_text(&paths, file->path);
            mp_sql_array_int(&counts, file->delete_count);
            mp_sql_array_int(&sizes, file->file_size_bytes);
            sent++;
        }
    }
    if (!code && sent)
        send_vectors(group, &ids, &tables, &targets, &paths, &counts, &sizes);
    mp_sql_array_fini(&ids);
    mp_sql_array_fini(&tables);
    mp_sql_array_fini(&targets);
    mp_sql_array_fini(&paths);
    mp_sql_array_fini(&counts);
    mp_sql_array_fini(&sizes);
    return code;
}
