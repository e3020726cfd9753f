#include "base/arena.h"

#include "base/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

struct mp_arena_block {
    struct mp_arena_block *next;
    size_t used, size;
    _Alignas(16) char data[];
};

void mp_arena_init(struct mp_arena *arena, size_t block_bytes)
{
    *arena = (struct mp_arena){.block_bytes = block_bytes ? block_bytes : 16384};
}

void mp_arena_fini(struct mp_arena *arena)
{
    while (arena->first) {
        struct mp_arena_block *next = arena->first->next;

        mp_free(arena->first);
        arena->first = next;
    }
    arena->current = NULL;
    arena->bytes = 0;
}

/* Moves on to a block with room for size, an old one or a new one. */
static struct mp_arena_block *block_with(struct mp_arena *arena, size_t size)
{
    struct mp_arena_block **link = arena->current ? &arena->current->next : &arena->first;
    size_t want = size > arena->block_bytes ? size : arena->block_bytes;
    struct mp_arena_block *block;

    for (; *link; link = &(*link)->next)
        if ((*link)->size - (*link)->used >= size)
            return arena->current = *link;
    block = mp_alloc(sizeof(*block) + want);
    block->size = want;
    arena->bytes += sizeof(*block) + want;
    *link = block;
    return arena->current = block;
}

void *mp_arena_take(struct mp_arena *arena, size_t size)
{
    struct mp_arena_block *block = arena->current;
    size_t rounded = (size + 15) & ~(size_t)15;
    void *memory;

    assert(arena->block_bytes); /* init came first */
    if (!block || block->size - block->used < rounded)
        block = block_with(arena, rounded);
    memory = block->data + block->used;
    block->used += rounded;
    return memset(memory, 0, rounded);
}

struct mp_str mp_arena_str(struct mp_arena *arena, struct mp_str text)
{
    char *copy = mp_arena_take(arena, text.size + 1);

    if (text.size)
        memcpy(copy, text.data, text.size);
    return (struct mp_str){copy, text.size};
}

char *mp_arena_printf(struct mp_arena *arena, const char *format, ...)
{
    va_list args, again;
    char *text;
    int length;

    va_start(args, format);
    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(length >= 0);
    text = mp_arena_take(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void mp_arena_reset(struct mp_arena *arena)
{
    for (struct mp_arena_block *block = arena->first; block; block = block->next)
        block->used = 0;
    arena->current = arena->first;
}
