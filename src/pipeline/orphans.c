/* pipeline/orphans.c - uploaded objects that no table will ever name.
 *
 * Where the lake sweeps its own orphans they are removed at once, best effort. Elsewhere they stay:
 * a name that was sent may still be in use, and an operator has to know them.
 */
#include "pipeline/pipeline_priv.h"

#include <inttypes.h>

enum { NAMED_MAX = 20 };

static const char logger[] = "millpond.publish";

void mp_orphans_remove(struct mp_publish *publish)
{
    struct mp_pipeline *p = publish->p;
    uint32_t removed = 0, uploaded = 0;
    struct mp_err err;

    for (uint32_t i = 0; i < publish->file_count; i++) {
        if (!publish->uploaded[i])
            continue;
        uploaded++;
        removed += !p->store->driver->remove(p->store, publish->objects[i].key, &err);
    }
    if (uploaded)
        mp_log(p->world.log, MP_LOG_WARN, logger, "%u of %u uploaded files were removed again",
               removed, uploaded);
}

void mp_orphans_tell(struct mp_publish *publish, const char *reason)
{
    struct mp_pipeline *p = publish->p;
    struct mp_str path = p->lake->driver->data_path(p->lake);
    uint32_t uploaded = 0;

    for (uint32_t i = 0; i < publish->file_count; i++) {
        if (!publish->uploaded[i])
            continue;
        if (uploaded++ < NAMED_MAX)
            mp_log(p->world.log, MP_LOG_WARN, logger, "Orphaned file (%s): %.*s%.*s", reason,
                   MP_STR_ARG(path), MP_STR_ARG(publish->objects[i].key));
    }
    if (uploaded > NAMED_MAX)
        mp_log(p->world.log, MP_LOG_WARN, logger, "%u more orphaned files (%s) under the same key",
               uploaded - NAMED_MAX, reason);
    if (uploaded)
        mp_metric_add(p->world.metrics, MP_M_HOGLAKE_ORPHANED_FILES, reason, uploaded);
}
