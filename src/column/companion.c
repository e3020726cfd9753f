/* column/companion.c - VARIANT columns that are made of other columns' values.
 *
 * C1  a companion is added when its source has values, not before
 * C2  a live column of its name and another type stays as it is, and gets no values
 * C3  what a record holds under its name is rescued: the name is the pipeline's own
 */
#include "column/batch_priv.h"

#include <assert.h>

const struct mp_companion *mp_batch_companion(const struct mp_batch *batch, struct mp_str name)
{
    for (uint32_t i = 0; i < batch->options.companion_count; i++)
        if (mp_batch_same_name(batch, batch->options.companions[i].name, name))
            return &batch->options.companions[i];
    return NULL;
}

uint32_t mp_batch_companions_missing(const struct mp_batch *batch)
{
    uint32_t missing = 0;

    for (uint32_t i = 0; i < batch->options.companion_count; i++)
        missing += !mp_batch_find(batch, batch->options.companions[i].name);
    return missing;
}

static void refuse(struct mp_batch *batch, const struct mp_companion *companion)
{
    if (!batch->companions_refused++)
        batch->companion_refused = companion;
}

uint32_t mp_batch_companions_plan(struct mp_batch *batch, const struct mp_schema *live,
                                  struct mp_pin *add)
{
    uint32_t count = 0;

    batch->companions_refused = 0;
    batch->companion_refused = NULL;
    for (uint32_t i = 0; i < batch->options.companion_count; i++) {
        const struct mp_companion *companion = &batch->options.companions[i];
        const struct mp_builder *source = mp_batch_find(batch, companion->source);
        const struct mp_live_column *column = mp_batch_live(batch, live, companion->name);

        if (!source || !source->values)
            continue; /* C1 */
        if (column && column->type.id != MP_TYPE_VARIANT)
            refuse(batch, companion); /* C2 */
        else if (!column && batch->options.name_ok && !batch->options.name_ok(companion->name))
            refuse(batch, companion);
        else if (!column)
            add[count++] = (struct mp_pin){companion->name, MP_TYPE(VARIANT)};
    }
    return count;
}

struct mp_builder *mp_batch_companion_source(const struct mp_batch *batch,
                                             const struct mp_live_column *column)
{
    const struct mp_companion *companion = mp_batch_companion(batch, column->name);
    struct mp_builder *source;

    if (!companion || column->type.id != MP_TYPE_VARIANT)
        return NULL;
    source = mp_batch_find(batch, companion->source);
    return source && source->values ? source : NULL;
}

static struct mp_column *sealed_column(struct mp_batch *batch, struct mp_str name)
{
    for (uint32_t i = 0; i < batch->column_count; i++)
        if (mp_batch_same_name(batch, batch->columns[i].name, name))
            return &batch->columns[i];
    return NULL;
}

void mp_batch_companions_link(struct mp_batch *batch)
{
    for (uint32_t i = 0; i < batch->column_count; i++) {
        struct mp_column *column = &batch->columns[i], *source;

        if (column->type.id != MP_TYPE_VARIANT)
            continue;
        source = sealed_column(batch, mp_batch_companion(batch, column->name)->source);
        assert(source && source->values == column->values);
        source->companion = column;
    }
}

uint32_t mp_batch_variant_keys(const struct mp_batch *batch)
{
    return batch->variant_keys;
}

const struct mp_companion *mp_batch_companion_refused(const struct mp_batch *batch,
                                                      uint32_t *ret_count)
{
    *ret_count = batch->companions_refused;
    return batch->companion_refused;
}
