/* server/tx/plan.c - one commit against the state of its catalog. See commit_priv.h.
 *
 * The order of the checks is contract: what a client is told when several things are wrong. */
#include "server/names.h"
#include "server/tx/commit_priv.h"

#include <assert.h>
#include <stdlib.h>

static struct mp_group_table *table_of(struct mp_member *member, struct mp_str namespace_name,
                                       struct mp_str name)
{
    for (uint32_t i = 0; i < member->table_count; i++)
        if (mp_str_eq(member->tables[i].name, name) &&
            mp_str_eq(member->tables[i].namespace_name, namespace_name))
            return &member->tables[i];
    member->tables[member->table_count] =
        (struct mp_group_table){.namespace_name = namespace_name, .name = name};
    return &member->tables[member->table_count++];
}

/* items behind those that are there, in a new array where there are both. */
static void *joined(struct mp_arena *arena, void *items, uint32_t count, void *more,
                    uint32_t more_count, size_t size)
{
    char *all;

    if (!count)
        return more;
    all = mp_arena_take(arena, (count + more_count) * size);
    memcpy(all, items, count * size);
    if (more_count)
        memcpy(all + count * size, more, more_count * size);
    return all;
}

void mp_plan_tables(struct mp_member *member)
{
    const struct mp_wire_commit *request = member->request;
    struct mp_arena *arena = &member->call->arena;

    member->table_count = 0;
    member->tables = mp_arena_take(arena, sizeof(*member->tables) *
                                              (request->append_count + request->delete_count + 1));
    for (uint32_t i = 0; i < request->append_count; i++) {
        const struct mp_wire_append *append = &request->appends[i];
        struct mp_group_table *table = table_of(member, append->namespace_name, append->table);

        table->files = joined(arena, table->files, table->file_count, append->files,
                              append->file_count, sizeof(*append->files));
        table->file_count += append->file_count;
        table->appends = true;
    }
    for (uint32_t i = 0; i < request->delete_count; i++) {
        const struct mp_wire_delete *group = &request->deletes[i];
        struct mp_group_table *table = table_of(member, group->namespace_name, group->table);

        table->deletes = joined(arena, table->deletes, table->delete_count, group->files,
                                group->file_count, sizeof(*group->files));
        table->delete_count += group->file_count;
        table->removes = true;
    }
}

/* --- 10: tables --- */

static enum mp_code check_table(struct mp_member *member, const struct mp_group_table *table)
{
    const struct mp_wire_commit *request = member->request;
    const struct mp_shape *shape = table->shape;

    if (shape->state == MP_SHAPE_DROPPED)
        return mp_refuse(member->call, 409, "table_dropped",
                         "table %.*s.%.*s was dropped at snapshot %lld",
                         MP_STR_ARG(table->namespace_name), MP_STR_ARG(table->name),
                         (long long)shape->dropped_snapshot);
    if (shape->state == MP_SHAPE_UNKNOWN)
        return mp_refuse_invalid(
            member->call, "unknown table %.*s.%.*s",
            table->namespace_name.size > 200 ? 200 : (int)table->namespace_name.size,
            table->namespace_name.data, table->name.size > 200 ? 200 : (int)table->name.size,
            table->name.data);
    for (uint32_t i = 0; i < request->append_count; i++)
        if (request->appends[i].expected_uuid.data &&
            mp_str_eq(request->appends[i].table, table->name) &&
            mp_str_eq(request->appends[i].namespace_name, table->namespace_name) &&
            !mp_str_eq(request->appends[i].expected_uuid, shape->uuid))
            return mp_refuse_recreated(member->call, table->namespace_name, table->name);
    for (uint32_t i = 0; i < request->delete_count; i++)
        if (request->deletes[i].expected_uuid.data &&
            mp_str_eq(request->deletes[i].table, table->name) &&
            mp_str_eq(request->deletes[i].namespace_name, table->namespace_name) &&
            !mp_str_eq(request->deletes[i].expected_uuid, shape->uuid))
            return mp_refuse_recreated(member->call, table->namespace_name, table->name);
    return MP_OK;
}

/* Appends first, then deletes, each in the order of the request. */
static enum mp_code check_tables(struct mp_member *member)
{
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < member->table_count && !code; i++)
        if (member->tables[i].appends)
            code = check_table(member, &member->tables[i]);
    for (uint32_t i = 0; i < member->table_count && !code; i++)
        if (!member->tables[i].appends)
            code = check_table(member, &member->tables[i]);
    return code;
}

/* --- 11: blind partitioned appends --- */

static enum mp_code check_blind(struct mp_member *member)
{
    struct mp_server *server = member->call->server;

    if (member->request->has_read_snapshot)
        return MP_OK;
    for (uint32_t i = 0; i < member->table_count; i++) {
        const struct mp_group_table *table = &member->tables[i];
        const char *labels;
        bool blind = false;

        for (uint32_t k = 0; k < table->file_count; k++)
            blind = blind || table->files[k].has_partition;
        if (!blind)
            continue;
        labels = mp_arena_printf(&member->call->arena, "%.*s,%.*s,%.*s",
                                 MP_STR_ARG(member->call->parts[0]),
                                 MP_STR_ARG(table->namespace_name), MP_STR_ARG(table->name));
        if (mp_server_metrics_add(server->metrics, MP_SM_BLIND, labels, 1) == 1)
            mp_log(server->log, MP_LOG_WARN, "hoglake.commit",
                   "request %s: partition_values without a read_snapshot for %s; told once a table",
                   member->call->request_id, labels);
        if (server->settings->HOGLAKE_REFUSE_BLIND_PARTITIONED_APPENDS)
            return mp_refuse_invalid(
                member->call, "partition_values without a read_snapshot: what spec they were "
                              "computed with is not known");
    }
    return MP_OK;
}

/* --- 12: the conflict window --- */

static int by_name(const void *a, const void *b)
{
    return mp_str_cmp(*(const struct mp_str *)a, *(const struct mp_str *)b);
}

static enum mp_code check_window(struct mp_group *group, struct mp_member *member)
{
    const struct mp_wire_commit *request = member->request;
    struct mp_call *call = member->call;
    struct mp_str *changed;
    uint32_t count = 0;

    if (!request->has_read_snapshot)
        return MP_OK;
    if (request->read_snapshot > group->tx->head)
        return mp_refuse_invalid(call, "read_snapshot %lld is above the head, %lld",
                                 (long long)request->read_snapshot, (long long)group->tx->head);
    if (request->read_snapshot < group->tx->floor)
        return mp_refuse(call, 410, "expired", "read_snapshot %lld has expired; the oldest is %lld",
                         (long long)request->read_snapshot, (long long)group->tx->floor);
    if (member->rules->unchanged_targets && request->delete_count) {
        enum mp_code code = mp_plan_unchanged(group, member);

        if (code)
            return code;
    }
    changed = mp_arena_take(&call->arena, sizeof(*changed) * member->table_count);
    for (uint32_t i = 0; i < member->table_count; i++)
        if (member->tables[i].shape->last_ddl > request->read_snapshot)
            changed[count++] = mp_str_c(mp_arena_printf(
                &call->arena, "%.*s.%.*s", MP_STR_ARG(member->tables[i].namespace_name),
                MP_STR_ARG(member->tables[i].name)));
    if (!count)
        return MP_OK;
    qsort(changed, count, sizeof(*changed), by_name);
    mp_refuse(call, 409, "ddl_since_read_snapshot",
              "table %.*s was altered after read_snapshot %lld; read it again and prepare anew",
              MP_STR_ARG(changed[0]), (long long)request->read_snapshot);
    call->refusal.wire.tables = changed;
    call->refusal.wire.table_count = count;
    call->refusal.wire.has_read_snapshot = true;
    call->refusal.wire.read_snapshot = request->read_snapshot;
    call->refusal.wire.re_prepare = true;
    return MP_REFUSED;
}

/* --- 14 and 15: claims and removals --- */

static enum mp_code check_hit(struct mp_group *group, struct mp_member *member,
                              const struct mp_path_hit *hit, struct mp_str path, const char *kind)
{
    if (!hit->owner.data)
        return mp_refuse_conflict(member->call, "path \"%.*s\" is queued for deletion",
                                  path.size > 300 ? 300 : (int)path.size, path.data);
    if (!member->request->key.data || !mp_str_eq(hit->owner, member->request->key) ||
        !mp_str_eq(hit->state, MP_STR("active")) || hit->expired ||
        !mp_str_eq(hit->kind, mp_str_c(kind)))
        return mp_refuse_conflict(member->call, "path \"%.*s\" is claimed by another upload",
                                  path.size > 300 ? 300 : (int)path.size, path.data);
    mp_sql_array_text(&group->used_claims, path);
    group->claim_count++;
    return MP_OK;
}

/* The hits of one path, which lie together. removals: those, or else the claims. */
static enum mp_code check_path(struct mp_group *group, struct mp_member *member, bool removals,
                               struct mp_str path, const char *kind)
{
    uint32_t low = 0, high = group->hit_count;
    enum mp_code code = MP_OK;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (mp_str_cmp(group->hits[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < group->hit_count && !code && mp_str_eq(group->hits[low].path, path); low++)
        if ((group->hits[low].owner.data == NULL) == removals)
            code = check_hit(group, member, &group->hits[low], path, kind);
    return code;
}

static enum mp_code check_hits(struct mp_group *group, struct mp_member *member)
{
    enum mp_code code = MP_OK;

    /* Claims first: a claimed path is refused as such though its removal may be queued too. */
    for (int removals = 0; group->hit_count && removals < 2; removals++)
        for (uint32_t i = 0; i < member->table_count; i++) {
            const struct mp_group_table *table = &member->tables[i];

            for (uint32_t k = 0; k < table->file_count && !code; k++)
                code = check_path(group, member, removals, table->files[k].path, "data");
            for (uint32_t k = 0; k < table->delete_count && !code; k++)
                code = check_path(group, member, removals, table->deletes[k].path, "delete");
        }
    return code;
}

/* --- the plan --- */

static struct mp_table_gain *gain_of(struct mp_group *group, int64_t table_id)
{
    for (uint32_t i = 0; i < group->gain_count; i++)
        if (group->gains[i].table_id == table_id)
            return &group->gains[i];
    if (group->gain_count == group->gain_room) {
        uint32_t room = group->gain_room ? group->gain_room * 2 : 16;
        struct mp_table_gain *more = mp_arena_take(&group->tx->call->arena, room * sizeof(*more));

        if (group->gain_count)
            memcpy(more, group->gains, group->gain_count * sizeof(*more));
        group->gains = more;
        group->gain_room = room;
    }
    group->gains[group->gain_count] = (struct mp_table_gain){.table_id = table_id};
    return &group->gains[group->gain_count++];
}

/* The sums of the group so far with the member's, which alone fit: see mp_files_check. Those of the
 * table are PostgreSQL's to add. */
static enum mp_code check_sums(struct mp_group *group, struct mp_member *member)
{
    for (uint32_t i = 0; i < member->table_count; i++) {
        const struct mp_group_table *table = &member->tables[i];
        struct mp_table_gain sum = {0};

        for (uint32_t k = 0; k < group->gain_count; k++)
            if (group->gains[k].table_id == table->shape->table_id)
                sum = group->gains[k];
        for (uint32_t k = 0; k < table->file_count; k++)
            if (__builtin_add_overflow(sum.records, table->files[k].record_count, &sum.records) ||
                __builtin_add_overflow(sum.bytes, table->files[k].file_size_bytes, &sum.bytes))
                return MP_FULL;
    }
    return MP_OK;
}

static void plan_files(struct mp_group *group, struct mp_member *member, int64_t snapshot)
{
    for (uint32_t i = 0; i < member->table_count; i++) {
        const struct mp_group_table *table = &member->tables[i];
        struct mp_table_gain *gain;

        if (!table->appends)
            continue;
        gain = gain_of(group, table->shape->table_id);
        for (uint32_t k = 0; k < table->file_count; k++) {
            mp_file_rows_add(&group->rows, &table->files[k], group->tx->next_file++,
                             table->shape->table_id, snapshot, gain->records,
                             table->shape->target.spec_id);
            gain->records += table->files[k].record_count;
            gain->bytes += table->files[k].file_size_bytes;
            gain->files++;
        }
    }
}

static enum mp_code check(struct mp_group *group, struct mp_member *member)
{
    const struct mp_wire_commit *request = member->request;
    enum mp_code code = mp_paths_check(member->call, group->tx->data_path, request);

    if (!code && !request->append_count && !request->delete_count)
        code = mp_refuse_invalid(member->call, "no appends or deletes");
    if (!code && request->has_read_snapshot && request->read_snapshot < 0)
        code = mp_refuse_invalid(member->call, "read_snapshot is negative");
    if (!code && request->delete_count && !request->has_read_snapshot)
        code = mp_refuse_invalid(member->call, "deletes need a read_snapshot");
    if (!code)
        code = check_tables(member);
    if (!code)
        code = check_blind(member);
    if (!code)
        code = check_window(group, member);
    for (uint32_t i = 0; i < member->table_count && !code; i++)
        code = mp_files_check(member->call, &member->call->arena, &member->tables[i].shape->target,
                              member->tables[i].files, member->tables[i].file_count);
    if (!code)
        code = mp_plan_deletes_check(member);
    if (!code)
        code = check_hits(group, member);
    return code ? code : check_sums(group, member);
}

enum mp_code mp_plan_member(struct mp_group *group, struct mp_member *member)
{
    struct mp_tx *tx = group->tx;
    int64_t snapshot, first_file = tx->next_file;
    enum mp_code code = check(group, member);

    if (code == MP_REFUSED) {
        member->state = MP_MEMBER_REFUSED;
        return MP_OK;
    }
    if (code)
        return code;
    snapshot = mp_tx_snapshot(tx, false, member->request->author, member->request->message);
    for (uint32_t i = 0; i < member->table_count; i++)
        if (member->tables[i].appends)
            mp_tx_change(tx, "table_inserted_into", member->tables[i].shape->table_id);
    for (uint32_t i = 0; i < member->table_count; i++)
        if (member->tables[i].removes)
            mp_tx_change(tx, "table_deleted_from", member->tables[i].shape->table_id);
    plan_files(group, member, snapshot);
    member->result = (struct mp_wire_commit_result){snapshot, tx->schema_version};
    member->state = MP_MEMBER_PLANNED;
    if (member->request->delete_count) {
        assert(group->count == 1);
        code = mp_plan_deletes(group, member, first_file);
        if (code == MP_REFUSED)
            member->state = MP_MEMBER_REFUSED;
        if (code)
            return code == MP_REFUSED ? MP_OK : code;
    }
    if (member->request->key.data) {
        mp_sql_array_text(&group->receipt_keys, member->request->key);
        mp_sql_array_bytes(&group->receipt_prints,
                           mp_str_n(member->fingerprint, MP_FINGERPRINT_BYTES));
        mp_sql_array_int(&group->receipt_snapshots, snapshot);
        mp_sql_array_int(&group->receipt_versions, tx->schema_version);
        group->receipt_count++;
    }
    return MP_OK;
}
