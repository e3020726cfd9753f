/* pipeline/keep.c - the keep filter in force, and the one that takes its place.
 *
 * Another thread leaves the next list under the lock; ingest takes it between a poll and its
 * records, so that those of one poll are judged alike and no record costs a lock. A list that is
 * left before the last one was taken replaces it.
 */
#include "base/mem.h"
#include "pipeline/pipeline_priv.h"

#include <assert.h>

static const char logger[] = "millpond.records";

struct mp_keep *mp_keep_new(const struct mp_filter_options *options)
{
    struct mp_keep *keep = mp_alloc(sizeof(*keep));
    struct mp_str *texts;
    int64_t *integers;
    uint32_t count = options->count;

    mp_arena_init(&keep->arena, 0);
    texts = mp_arena_take(&keep->arena, (count + 1) * sizeof(*texts));
    integers = mp_arena_take(&keep->arena, (count + 1) * sizeof(*integers));
    for (uint32_t i = 0; i < count; i++) {
        texts[i] = mp_arena_str(&keep->arena, options->texts[i]);
        integers[i] = options->integer ? options->integers[i] : 0;
    }
    keep->options = *options;
    keep->options.field = mp_arena_str(&keep->arena, options->field);
    keep->options.texts = texts;
    keep->options.integers = integers;
    keep->filter = mp_filter_new(&keep->options);
    keep->matches = mp_alloc_array(count, sizeof(*keep->matches));
    return keep;
}

void mp_keep_free(struct mp_keep *keep)
{
    if (!keep)
        return;
    mp_filter_free(keep->filter);
    mp_free(keep->matches);
    mp_arena_fini(&keep->arena);
    mp_free(keep);
}

void mp_pipeline_set_keep(struct mp_pipeline *p, const struct mp_filter_options *options)
{
    struct mp_keep *next = mp_keep_new(options), *before;
    uint32_t unusable = mp_filter_unusable(next->filter);

    assert(p->options.keep);
    if (unusable) {
        mp_metric_add(p->world.metrics, MP_M_ERRORS, "filter_value_invalid", unusable);
        mp_log(p->world.log, MP_LOG_WARN, logger,
               "%u values of the keep list are no UUIDs and match nothing", unusable);
    }
    pthread_mutex_lock(&p->lock);
    before = p->keep_next;
    p->keep_next = next;
    pthread_mutex_unlock(&p->lock);
    mp_keep_free(before);
}

void mp_keep_renew(struct mp_pipeline *p)
{
    struct mp_keep *next;

    pthread_mutex_lock(&p->lock);
    next = p->keep_next;
    p->keep_next = NULL;
    pthread_mutex_unlock(&p->lock);
    if (!next)
        return;
    mp_keep_free(p->keep);
    p->keep = next;
}

void mp_keep_count(struct mp_pipeline *p)
{
    for (uint32_t i = 0; p->keep && i < p->keep->options.count; i++) {
        if (!p->keep->matches[i])
            continue;
        mp_metric_add(p->world.metrics, MP_M_FILTER_MATCHED, p->keep->options.texts[i].data,
                      (double)p->keep->matches[i]);
        p->keep->matches[i] = 0;
    }
}
