/* pipeline/look.c - whether anybody answers for the partitions that are not read yet.
 *
 * A leader that the cluster still names, and that does not answer, is waited for; who waits takes
 * no record. So while records are taken a thread of its own asks, once, and ingest takes over those
 * that somebody answered for. What it was answered is no more than that: watermarks are compared
 * with stored offsets, and must be younger than those.
 */
#include "base/mem.h"
#include "pipeline/pipeline_priv.h"

#include <assert.h>

struct mp_look {
    struct mp_source *source;
    struct mp_source_watermark *marks;
    uint32_t count;
    enum mp_code code;
    struct mp_err err;
    pthread_t thread;
    atomic_bool over;
};

static void *look_main(void *self)
{
    struct mp_look *look = self;

    look->code =
        look->source->driver->watermarks(look->source, look->marks, look->count, &look->err);
    atomic_store(&look->over, true);
    return NULL;
}

static void look_free(struct mp_look *look)
{
    mp_free(look->marks);
    mp_free(look);
}

enum mp_code mp_look_begin(struct mp_pipeline *p, struct mp_err *err)
{
    const int32_t *ids;
    struct mp_look *look;
    uint32_t count;
    enum mp_code code = p->source->driver->partitions(p->source, err, &ids, &count);

    assert(!p->look);
    if (code)
        return code;
    look = mp_alloc(sizeof(*look));
    look->source = p->source;
    look->marks = mp_alloc_array(count, sizeof(*look->marks));
    for (uint32_t i = 0; i < count; i++)
        if (!mp_pipeline_part(p, ids[i]))
            look->marks[look->count++].partition = ids[i];
    if (look->count && pthread_create(&look->thread, NULL, look_main, look) == 0)
        p->look = look;
    else
        look_free(look);
    return MP_OK;
}

bool mp_look_over(const struct mp_pipeline *p)
{
    return p->look && atomic_load(&p->look->over);
}

enum mp_code mp_look_end(struct mp_pipeline *p, struct mp_err *err,
                         struct mp_source_watermark **ret, uint32_t *ret_count)
{
    struct mp_look *look = p->look;
    enum mp_code code;

    p->look = NULL;
    pthread_join(look->thread, NULL);
    code = look->code;
    if (code) {
        *err = look->err;
    } else {
        *ret = look->marks;
        *ret_count = look->count;
        look->marks = NULL;
    }
    look_free(look);
    return code;
}
