/* pipeline/lost.c - has the source lost the offsets that the lake does not keep?
 *
 * Where no partition of the topic has a stored offset, this is the first start, or the group is
 * gone (it expired, or was renamed) and what is in the table would be read into it again. The first
 * process of a new group stores where each partition begins before it reads, so a table that has
 * rows while the group has nothing tells the two apart. A source of one partition only (a file) is
 * one of many that fill the table: it is lost only where the newest commits name it.
 */
#include "base/mem.h"
#include "pipeline/pipeline_priv.h"

#include <inttypes.h>

enum { NAMED_MAX = 8 };

struct written {
    struct mp_buf text;
    uint32_t count;
};

static void visit(void *self, int32_t partition, int64_t last)
{
    struct written *written = self;

    if (written->count++ < NAMED_MAX)
        mp_buf_printf(&written->text, "%s%" PRId32 " up to offset %" PRId64,
                      written->count > 1 ? ", " : " partition ", partition, last);
}

static bool any_stored(const struct mp_source_offset *stored, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (stored[i].offset != MP_OFFSET_NONE)
            return true;
    return false;
}

/* Asks for the offsets of all partitions of the topic, ours or not. */
static enum mp_code ask_whole_group(struct mp_pipeline *p, struct mp_err *err, bool *ret_stored)
{
    struct mp_source *whole = NULL;
    struct mp_source_offset *stored = NULL;
    struct mp_arena arena;
    const int32_t *ids;
    uint32_t count;
    enum mp_code code;

    *ret_stored = false;
    if (!p->doors.open_whole_source)
        return MP_OK;
    mp_arena_init(&arena, 0);
    code = p->doors.open_whole_source(p->doors.self, err, &whole);
    if (!code)
        code = whole->driver->partitions(whole, err, &ids, &count);
    if (code)
        goto out;
    stored = mp_alloc_array(count, sizeof(*stored));
    for (uint32_t i = 0; i < count; i++)
        stored[i].partition = ids[i];
    code = whole->driver->committed(whole, &arena, stored, count, err);
    if (!code)
        *ret_stored = any_stored(stored, count);
out:
    mp_free(stored);
    mp_source_close(whole);
    mp_arena_fini(&arena);
    return code;
}

enum mp_code mp_lost_offsets(struct mp_pipeline *p, const struct mp_source_offset *stored,
                             uint32_t count, struct mp_err *err)
{
    struct written written = {.text = MP_BUF_INIT((size_t)1 << 16)};
    bool rows = false, found = false;
    enum mp_code code = MP_OK;

    if (p->part_count || any_stored(stored, count) || p->options.lost_offsets_reset ||
        !p->lake->driver->written)
        return MP_OK;
    code = ask_whole_group(p, err, &found);
    if (code || found)
        return code;
    pthread_mutex_lock(&p->lake_lock);
    code = p->lake->driver->written(p->lake, p->options.table, visit, &written, err, &rows);
    pthread_mutex_unlock(&p->lake_lock);
    if (code == MP_NOT_FOUND)
        code = MP_OK;
    else if (!code && (rows && (p->doors.open_whole_source || written.count)))
        code = mp_err_set(err, MP_REFUSED,
                          "no offset of topic %.*s is stored, but table %.*s has rows (its newest "
                          "commits name%s%.*s): reading on would double them; restore the offsets, "
                          "or set MILLPOND_HOGLAKE_LOST_OFFSETS=reset",
                          MP_STR_ARG(p->options.topic), MP_STR_ARG(p->options.table),
                          written.count ? "" : " no partition of it", MP_STR_ARG(written.text));
    mp_buf_fini(&written.text);
    return code;
}
