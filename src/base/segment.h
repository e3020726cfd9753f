/* base/segment.h - fixed pieces of memory for column values and packed pages, lent and given back.
 *
 * Values of a column lie in a list of segments. A full segment is never moved and never grown, so
 * nothing doubles by realloc, and each piece can go back the moment its page is written.
 *
 * Life     pool_new -> get / put from any thread -> pool_free (all lent segments must be back)
 * Memory   pool `bytes` counts what is lent. Small segments that came back are kept for reuse up to
 *          keep_bytes; those of MP_SEGMENT_LARGE are cut from slabs (on huge pages where the system
 *          has them, which saves most of the page faults) and stay with the pool.
 * Sizes    MP_SEGMENT_FIRST, doubling up to MP_SEGMENT_LARGE; a value that is larger still gets a
 *          segment of its own size.
 * Threads  pool functions may be called from any thread; a segment belongs to one at a time.
 */
#ifndef MP_BASE_SEGMENT_H
#define MP_BASE_SEGMENT_H

#include <stddef.h>
#include <stdint.h>

#define MP_SEGMENT_FIRST 1024u
#define MP_SEGMENT_LARGE (1024u * 1024u)

struct mp_segment {
    struct mp_segment *next;
    uint32_t capacity, used; /* bytes of data */
    uint32_t count;          /* values in it; whole values only, none straddles two segments */
    uint32_t size_class;     /* pool's */
    _Alignas(16) char data[];
};

struct mp_segment_list {
    struct mp_segment *first, *last;
};

struct mp_segment_pool;

struct mp_segment_pool *mp_segment_pool_new(size_t keep_bytes);
void mp_segment_pool_free(struct mp_segment_pool *pool);
/* Gives an empty segment with room for at least `bytes`, of the next size after `previous` bytes
 * (0: the first size). */
struct mp_segment *mp_segment_get(struct mp_segment_pool *pool, uint32_t previous, size_t bytes);
/* Takes the segment back; no-op on NULL. */
void mp_segment_put(struct mp_segment_pool *pool, struct mp_segment *segment);
/* Takes the whole list back and leaves it empty. */
void mp_segment_put_list(struct mp_segment_pool *pool, struct mp_segment_list *list);
/* Bytes lent now, headers included. */
size_t mp_segment_pool_bytes(const struct mp_segment_pool *pool);

/* Lends `bytes` at the list's end, in a new segment where the last has no room. The caller fills
 * them and has added one value. */
char *mp_segment_append(struct mp_segment_pool *pool, struct mp_segment_list *list, size_t bytes);

#endif
