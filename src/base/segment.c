#include "base/segment.h"

#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    CLASSES = 11, /* 1 KiB, 2, 4 ... 1 MiB */
    CLASS_LARGE = CLASSES - 1,
    CLASS_OWN = CLASSES, /* own size */
    SLAB_SEGMENTS = 8,
    HUGE_PAGE_BYTES = 2 << 20,
};

/* Segments of the largest class, side by side. */
struct slab {
    struct slab *next;
    char *memory;
};

struct mp_segment_pool {
    pthread_mutex_t lock;
    struct mp_segment *free[CLASSES];
    struct slab *slabs;
    size_t free_bytes, keep_bytes; /* under lock; of the small classes */
    atomic_size_t lent_bytes;
};

static size_t class_bytes(uint32_t size_class)
{
    return (size_t)MP_SEGMENT_FIRST << size_class;
}

struct mp_segment_pool *mp_segment_pool_new(size_t keep_bytes)
{
    struct mp_segment_pool *pool = mp_alloc(sizeof(*pool));

    pthread_mutex_init(&pool->lock, NULL);
    pool->keep_bytes = keep_bytes;
    return pool;
}

void mp_segment_pool_free(struct mp_segment_pool *pool)
{
    if (!pool)
        return;
    assert(atomic_load(&pool->lent_bytes) == 0);
    while (pool->slabs) {
        struct slab *next = pool->slabs->next;

        free(pool->slabs->memory); /* aligned_alloc's */
        mp_free(pool->slabs);
        pool->slabs = next;
    }
    for (unsigned i = 0; i < CLASS_LARGE; i++)
        while (pool->free[i]) {
            struct mp_segment *next = pool->free[i]->next;

            mp_free(pool->free[i]);
            pool->free[i] = next;
        }
    pthread_mutex_destroy(&pool->lock);
    mp_free(pool);
}

static size_t whole_bytes(const struct mp_segment *segment)
{
    return sizeof(*segment) + segment->capacity;
}

/* Puts a new slab's segments on the free list; the lock is held. */
static void add_slab(struct mp_segment_pool *pool)
{
    const size_t bytes = SLAB_SEGMENTS * class_bytes(CLASS_LARGE);
    struct slab *slab = mp_alloc(sizeof(*slab));

    slab->memory = aligned_alloc(HUGE_PAGE_BYTES, bytes);
    if (!slab->memory)
        mp_out_of_memory(bytes);
    (void)madvise(slab->memory, bytes, MADV_HUGEPAGE); /* a hint: small pages do as well */
    slab->next = pool->slabs;
    pool->slabs = slab;
    for (unsigned i = SLAB_SEGMENTS; i-- > 0;) {
        struct mp_segment *segment =
            (struct mp_segment *)(void *)(slab->memory + i * class_bytes(CLASS_LARGE));

        segment->next = pool->free[CLASS_LARGE];
        pool->free[CLASS_LARGE] = segment;
    }
}

struct mp_segment *mp_segment_get(struct mp_segment_pool *pool, uint32_t previous, size_t bytes)
{
    const size_t header = sizeof(struct mp_segment);
    uint32_t size_class = 0;
    struct mp_segment *segment = NULL;
    size_t capacity;

    assert(bytes <= UINT32_MAX);
    while (size_class < CLASS_OWN &&
           (class_bytes(size_class) - header < bytes ||
            (class_bytes(size_class) <= previous + header && size_class + 1 < CLASSES)))
        size_class++;
    capacity = size_class < CLASS_OWN ? class_bytes(size_class) - header : bytes;
    if (size_class < CLASS_OWN) {
        pthread_mutex_lock(&pool->lock);
        if (size_class == CLASS_LARGE && !pool->free[CLASS_LARGE])
            add_slab(pool);
        segment = pool->free[size_class];
        if (segment) {
            pool->free[size_class] = segment->next;
            pool->free_bytes -= size_class < CLASS_LARGE ? class_bytes(size_class) : 0;
        }
        pthread_mutex_unlock(&pool->lock);
    }
    if (!segment)
        segment = mp_realloc(NULL, header + capacity); /* not zeroed: pages come when used */
    segment->next = NULL;
    segment->capacity = (uint32_t)capacity;
    segment->used = segment->count = 0;
    segment->size_class = size_class;
    atomic_fetch_add(&pool->lent_bytes, whole_bytes(segment));
    return segment;
}

void mp_segment_put(struct mp_segment_pool *pool, struct mp_segment *segment)
{
    size_t bytes;

    if (!segment)
        return;
    bytes = whole_bytes(segment);
    atomic_fetch_sub(&pool->lent_bytes, bytes);
    if (segment->size_class < CLASS_OWN) {
        pthread_mutex_lock(&pool->lock);
        if (segment->size_class == CLASS_LARGE || pool->free_bytes + bytes <= pool->keep_bytes) {
            pool->free_bytes += segment->size_class < CLASS_LARGE ? bytes : 0;
            segment->next = pool->free[segment->size_class];
            pool->free[segment->size_class] = segment;
            segment = NULL;
        }
        pthread_mutex_unlock(&pool->lock);
    }
    mp_free(segment);
}

void mp_segment_put_list(struct mp_segment_pool *pool, struct mp_segment_list *list)
{
    while (list->first) {
        struct mp_segment *next = list->first->next;

        mp_segment_put(pool, list->first);
        list->first = next;
    }
    list->last = NULL;
}

size_t mp_segment_pool_bytes(const struct mp_segment_pool *pool)
{
    return atomic_load(&pool->lent_bytes);
}

char *mp_segment_append(struct mp_segment_pool *pool, struct mp_segment_list *list, size_t bytes)
{
    struct mp_segment *last = list->last;
    char *place;

    if (!last || last->capacity - last->used < bytes) {
        struct mp_segment *fresh = mp_segment_get(pool, last ? last->capacity : 0, bytes);

        if (last)
            last->next = fresh;
        else
            list->first = fresh;
        list->last = last = fresh;
    }
    place = last->data + last->used;
    last->used += (uint32_t)bytes;
    last->count++;
    return place;
}
