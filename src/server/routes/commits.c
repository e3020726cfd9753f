/* server/routes/commits.c - the six commit routes and receipts.
 *
 * They take the same body and differ in what they ask of it and in two rules. */
#include "server/routes/routes.h"
#include "server/tx/commit.h"

struct kind {
    bool key, read_snapshot, guards, no_appends, deletes, empty_groups;
    struct mp_commit_rules rules;
};

static enum mp_code check_groups(struct mp_call *call, const struct kind *kind,
                                 const struct mp_wire_commit *request)
{
    for (uint32_t i = 0; i < request->append_count; i++) {
        if (!request->appends[i].file_count)
            return mp_refuse_invalid(call, "an append group has no files");
        if (kind->guards && !request->appends[i].expected_uuid.data)
            return mp_refuse_invalid(call, "every group needs expected_table_uuid here");
    }
    for (uint32_t i = 0; i < request->delete_count; i++) {
        if (!kind->empty_groups && !request->deletes[i].file_count)
            return mp_refuse_invalid(call, "a delete group has no files");
        if (kind->guards && !request->deletes[i].expected_uuid.data)
            return mp_refuse_invalid(call, "every group needs expected_table_uuid here");
    }
    return MP_OK;
}

static enum mp_code commit(struct mp_call *call, const struct kind *kind)
{
    struct mp_wire_reader reader = {.arena = &call->arena};
    struct mp_commit_rules rules = kind->rules;
    struct mp_wire_commit_result result;
    struct mp_wire_commit request;
    struct mp_attribution by;
    enum mp_code code;

    mp_wire_commit_read(&reader, call->body, &request);
    code = mp_call_read_end(call, &reader);
    if (!code)
        code = check_groups(call, kind, &request);
    if (code)
        return code;
    if (kind->key && !request.key.data)
        return mp_refuse_invalid(call, "idempotency_key is required here");
    if (kind->read_snapshot && !request.has_read_snapshot)
        return mp_refuse_invalid(call, "read_snapshot is required here");
    if (kind->no_appends && request.append_count)
        return mp_refuse_invalid(call, "appends do not belong here");
    if (kind->deletes && !request.delete_count)
        return mp_refuse_invalid(call, "deletes are required here");
    if (!request.delete_count)
        rules.unchanged_targets = false; /* there are none */
    code = mp_commits_run(call, call->parts[0], &request, &rules, &result);
    if (code)
        return code;
    by = (struct mp_attribution){request.author, request.message};
    mp_audit(call, call->parts[0], &(struct mp_audit){"commit", "committed", request.key, &by},
             "snapshot %lld, %u appends, %u deletes", (long long)result.snapshot_id,
             request.append_count, request.delete_count);
    mp_wire_commit_result_print(&call->out, &result);
    return MP_OK;
}

enum mp_code mp_route_commit(struct mp_call *call)
{
    static const struct kind kind = {0};

    return commit(call, &kind);
}

enum mp_code mp_route_commit_prepared(struct mp_call *call)
{
    static const struct kind kind = {.key = true};

    return commit(call, &kind);
}

enum mp_code mp_route_commit_deletes(struct mp_call *call)
{
    static const struct kind kind = {.key = true,
                                     .read_snapshot = true,
                                     .guards = true,
                                     .no_appends = true,
                                     .deletes = true,
                                     .empty_groups = true};

    return commit(call, &kind);
}

enum mp_code mp_route_commit_mutations(struct mp_call *call)
{
    static const struct kind kind = {.key = true,
                                     .read_snapshot = true,
                                     .guards = true,
                                     .deletes = true,
                                     .empty_groups = true,
                                     .rules = {.unchanged_targets = true}};

    return commit(call, &kind);
}

enum mp_code mp_route_commit_uploads(struct mp_call *call)
{
    static const struct kind kind = {.key = true,
                                     .read_snapshot = true,
                                     .guards = true,
                                     .empty_groups = true,
                                     .rules = {.unchanged_targets = true}};

    return commit(call, &kind);
}

enum mp_code mp_route_commit_transaction(struct mp_call *call)
{
    static const struct kind kind = {.key = true,
                                     .read_snapshot = true,
                                     .guards = true,
                                     .empty_groups = true,
                                     .rules = {.unchanged_targets = true, .data_file_paths = true}};

    return commit(call, &kind);
}

enum mp_code mp_route_commit_receipt(struct mp_call *call)
{
    struct mp_str key;
    uint32_t number;
    enum mp_code code = mp_call_part_uuid(call, 1, &key);

    if (!code)
        code = mp_call_sql(call);
    if (code)
        return code;
    number = MP_SQL(call->sql,
                    "SELECT r.snapshot_id, r.schema_version FROM hog_commit_receipt r"
                    " JOIN hog_catalog c USING (catalog_id)"
                    " WHERE c.name = $1 AND r.idempotency_key = $2",
                    mp_v_text(call->parts[0]), mp_v_uuid(key));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (!mp_sql_rows(call->sql, number))
        return mp_refuse_missing(call, "there is no receipt of that operation");
    mp_buf_add_byte(&call->out, '{');
    mp_wire_member_text(&call->out, "operation_id", key);
    mp_wire_member_int(&call->out, "snapshot_id", mp_sql_int(call->sql, number, 0, 0, 0));
    mp_wire_member_int(&call->out, "schema_version", mp_sql_int(call->sql, number, 0, 1, 0));
    mp_buf_add_byte(&call->out, '}');
    return MP_OK;
}
