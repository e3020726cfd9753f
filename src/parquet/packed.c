/* parquet/packed.c - the bytes of a column's chunks as they stand in the file, in segments.
 *
 * Pages of all sizes lie behind one another, over the ends of segments: a file is a list of parts
 * anyhow. So packed bytes take the place of the raw ones, whose segments come back while a column
 * is encoded, and touch no fresh memory (with memory of their own, every page faulted twice: 5 % of
 * the time of a load).
 */
#include "parquet/parquet_priv.h"

#include "base/mem.h"

struct mp_packed *mp_packed_new(struct mp_segment_pool *pool)
{
    struct mp_packed *packed = mp_alloc(sizeof(*packed));

    packed->pool = pool;
    packed->holders = 1;
    return packed;
}

void mp_packed_drop(struct mp_packed *packed)
{
    if (!packed || --packed->holders)
        return;
    mp_segment_put_list(packed->pool, &packed->list);
    mp_free(packed);
}

/* The list's last segment, with room for a byte at least. */
static struct mp_segment *open_segment(struct mp_packed *packed, size_t bytes)
{
    struct mp_segment_list *list = &packed->list;
    struct mp_segment *last = list->last;

    if (last && last->used < last->capacity)
        return last;
    if (bytes > MP_SEGMENT_LARGE - sizeof(struct mp_segment))
        bytes = MP_SEGMENT_LARGE - sizeof(struct mp_segment);
    list->last = mp_segment_get(packed->pool, last ? last->capacity : 0, bytes);
    if (last)
        last->next = list->last;
    else
        list->first = list->last;
    return list->last;
}

void mp_packed_add(struct mp_packed *packed, struct mp_str bytes)
{
    while (bytes.size) {
        struct mp_segment *segment = open_segment(packed, bytes.size);
        size_t room = segment->capacity - segment->used;
        size_t step = bytes.size < room ? bytes.size : room;

        memcpy(segment->data + segment->used, bytes.data, step);
        segment->used += (uint32_t)step;
        bytes = mp_str_n(bytes.data + step, bytes.size - step);
    }
}

struct mp_cursor mp_packed_end(const struct mp_packed *packed)
{
    const struct mp_segment *last = packed->list.last;

    return (struct mp_cursor){packed->list.last, last ? last->used : 0};
}

uint32_t mp_packed_since(struct mp_packed *packed, struct mp_cursor from, struct mp_str **ret)
{
    struct mp_segment *first = from.segment;
    struct mp_str *parts;
    uint32_t count = 0;

    if (!first || from.offset == first->used)
        from = (struct mp_cursor){first ? first->next : packed->list.first, 0};
    for (const struct mp_segment *at = from.segment; at; at = at->next)
        count++;
    parts = mp_alloc_array(count, sizeof(*parts));
    count = 0;
    for (struct mp_segment *at = from.segment; at; at = at->next, from.offset = 0)
        parts[count++] = mp_str_n(at->data + from.offset, at->used - from.offset);
    packed->holders++;
    *ret = parts;
    return count;
}
