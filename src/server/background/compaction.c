/* server/background/compaction.c - the task in front of callouts.h. */
#include "server/background/callouts.h"

enum mp_code mp_task_compaction(struct mp_call *call, struct mp_str catalog, int64_t batch,
                                struct mp_buf *result)
{
    int64_t groups = batch ? batch : call->server->settings->HOGLAKE_COMPACTION_MAX_GROUPS_PER_RUN;
    struct mp_compaction_result done;
    enum mp_code code = mp_callout_compact(call, catalog, groups, &done);

    mp_server_metrics_add(call->server->metrics, MP_SM_COMPACTED, NULL,
                          (double)done.groups_compacted);
    mp_server_metrics_add(call->server->metrics, MP_SM_REWRITTEN, NULL, (double)done.files_in);
    if (code)
        return code;
    mp_buf_add_byte(result, '{');
    mp_wire_member_int(result, "groups_compacted", done.groups_compacted);
    mp_wire_member_int(result, "files_in", done.files_in);
    mp_wire_member_int(result, "files_out", done.files_out);
    mp_wire_member_int(result, "bytes_in", done.bytes_in);
    mp_wire_member_int(result, "bytes_out", done.bytes_out);
    mp_wire_member_int(result, "skipped_conflicts", done.skipped_conflicts);
    mp_wire_member_int(result, "dv_superseded", done.dv_superseded);
    mp_wire_member_int(result, "unconvertible_schema", done.unconvertible_schema);
    mp_wire_member_int(result, "invalid_data", done.invalid_data);
    mp_wire_member_int(result, "heap_budget_exceeded", done.heap_budget_exceeded);
    mp_wire_member_int(result, "failed_groups", done.failed_groups);
    mp_buf_add_byte(result, '}');
    return MP_OK;
}
