/* column/misfit.c - which columns took values of another kind than their own, for counters and log
 * lines. */
#include "column/batch_priv.h"

#include <assert.h>

#define KIND(name) (1u << MP_JSON_##name)

/* The kinds of JSON value that need no conversion; a timestamp or a UUID has none. */
static unsigned own_kinds(struct mp_type type)
{
    switch ((enum mp_type_id)type.id) {
    case MP_TYPE_BOOL:
        return KIND(TRUE) | KIND(FALSE);
    case MP_TYPE_INT64:
        return KIND(INT);
    case MP_TYPE_DOUBLE:
        return KIND(DOUBLE);
    case MP_TYPE_VARCHAR:
        return KIND(STRING) | KIND(NESTED);
    default:
        return 0;
    }
}

bool mp_batch_misfit(const struct mp_batch *batch, uint32_t *at, struct mp_misfit *ret)
{
    assert(batch->sealed);
    while (*at < batch->builder_count) {
        const struct mp_builder *builder = &batch->builders[(*at)++];
        bool converted = builder->kinds & ~own_kinds(builder->type);

        if (!(builder->live || builder->pinned) || !(builder->refused || converted))
            continue;
        *ret = (struct mp_misfit){builder->name, builder->type, builder->pinned, builder->refused};
        return true;
    }
    return false;
}

uint32_t mp_batch_refused_names(const struct mp_batch *batch, const struct mp_str **ret)
{
    *ret = batch->names_refused;
    return batch->names_refused_count;
}
