/* server/background/callouts.c - see callouts.h: a program that reads no Parquet. */
#include "server/background/callouts.h"

enum mp_code mp_callout_footer(struct mp_objects *objects, struct mp_arena *arena,
                               const struct mp_footer_request *request, struct mp_err *err,
                               struct mp_footer *ret)
{
    (void)objects, (void)arena, (void)request, (void)ret;
    return mp_err_set(err, MP_NOT_FOUND, "this build reads no footers");
}

enum mp_code mp_callout_compact(struct mp_call *call, struct mp_str catalog, int64_t groups,
                                struct mp_compaction_result *ret)
{
    (void)call, (void)catalog, (void)groups;
    *ret = (struct mp_compaction_result){0};
    return MP_OK;
}
