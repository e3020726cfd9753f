/* base/arena.h - memory by lifetime: many small things, one end.
 *
 * Life     init -> take* -> reset (keeps the blocks for the next round) -> ... -> fini
 * Memory   blocks of at least block_bytes, linked; nothing taken is freed alone.
 * Threads  one at a time.
 */
#ifndef MP_BASE_ARENA_H
#define MP_BASE_ARENA_H

#include "base/str.h"

struct mp_arena_block;

struct mp_arena {
    struct mp_arena_block *first, *current;
    size_t block_bytes; /* 0: 16 KiB */
    size_t bytes;       /* memory held, used or not */
};

void mp_arena_init(struct mp_arena *arena, size_t block_bytes);
void mp_arena_fini(struct mp_arena *arena);
/* Gives `size` bytes, zeroed, aligned for any type. */
void *mp_arena_take(struct mp_arena *arena, size_t size);
/* Copies the text and puts a NUL behind it (not counted). */
struct mp_str mp_arena_str(struct mp_arena *arena, struct mp_str text);
char *mp_arena_printf(struct mp_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Everything taken is gone; the blocks stay. */
void mp_arena_reset(struct mp_arena *arena);

#endif
