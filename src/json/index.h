/* json/index.h - stage one: where the strings end, and that the bytes are sound.
 *
 * One branch-poor pass over the record in blocks of 64 bytes, each turned into bitmaps (bit k is
 * byte k). It keeps only what stage two (walk.c) would have to search for: the closing quote of
 * every string, and every backslash that begins an escape. Brackets, commas and numbers are cheap
 * to read in order, so they are left to stage two.
 *
 * Always   I1 when the record is JSON, the n-th closer ends the n-th string
 *          I2 escapes are in order, and UINT32_MAX stands behind the last
 *          I3 true means: strict UTF-8 all over, every string closed, no byte below 0x20 inside
 *             a string. (For bytes that are no JSON, "string" is what the quotes make of them.)
 *          I4 no byte outside the record is read
 * After    Langdale, Lemire: Parsing Gigabytes of JSON per Second. VLDB Journal 28 (2019),
 *          section 3.1: bitmaps, escapes, and the prefix sum that marks the insides of strings.
 * Not so   Their list holds every structural byte; ours is a fifth of that, since compact records
 *          need no search between the strings.
 */
#ifndef MP_JSON_INDEX_H
#define MP_JSON_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MP_JSON_BLOCK       64u
#define MP_JSON_INDEX_SLACK 16u /* entries written beyond the last one */

struct mp_json_index {
    uint32_t *closers; /* closing quotes */
    uint32_t *escapes; /* backslashes that begin an escape */
};                     /* each has room for half a record and MP_JSON_INDEX_SLACK */

/* Fills the index of size bytes; answers I3. */
typedef bool mp_json_index_fn(struct mp_json_index *index, const char *data, size_t size);

mp_json_index_fn mp_json_index_portable;
#ifdef __x86_64__
mp_json_index_fn mp_json_index_avx2; /* only where mp_json_has_avx2 */
bool mp_json_has_avx2(void);
mp_json_index_fn mp_json_index_avx512; /* only where mp_json_has_avx512 */
bool mp_json_has_avx512(void);
#endif
#ifdef __aarch64__
mp_json_index_fn mp_json_index_neon;
#endif

/* What goes on from block to block. */
struct mp_json_marks {
    uint32_t *closer, *escape; /* the next free entries */
    uint64_t in_string;        /* all ones when the block begins inside a string */
    uint64_t escaped;          /* 1 when its first byte is escaped */
    uint64_t bad;              /* not 0: a control byte in a string */
};

/* Writes the place of the lowest bit and takes it away; of no bit, something. */
static inline uint64_t mp_json_put_place(uint32_t *out, uint64_t bits, uint32_t at)
{
    *out = at + (uint32_t)__builtin_ctzll(bits | (uint64_t)1 << 63);
    return bits & (bits - 1);
}

/* Writes the places of all bits, in order, and gives the end. Four and eight are written whether
 * there are so many or not (the slack): a wrong guess of the branch costs more. */
static inline uint32_t *mp_json_put_places(uint32_t *out, uint64_t bits, uint32_t at)
{
    unsigned count = (unsigned)__builtin_popcountll(bits);
    uint32_t *end = out + count;

    bits = mp_json_put_place(out, bits, at);
    bits = mp_json_put_place(out + 1, bits, at);
    bits = mp_json_put_place(out + 2, bits, at);
    bits = mp_json_put_place(out + 3, bits, at);
    if (count > 4) {
        bits = mp_json_put_place(out + 4, bits, at);
        bits = mp_json_put_place(out + 5, bits, at);
        bits = mp_json_put_place(out + 6, bits, at);
        bits = mp_json_put_place(out + 7, bits, at);
        for (out += 8; out < end; out++)
            bits = mp_json_put_place(out, bits, at);
    }
    return end;
}

/* Notes the escapes that begin in the block at `at`; gives the bytes that are escaped, that is,
 * which follow such a backslash. In a run of backslashes every second one begins an escape, from
 * the first on: adding the first bit of a run to the run clears it, which tells runs that begin at
 * an even place from the others. */
static inline uint64_t mp_json_mark_escapes(struct mp_json_marks *marks, uint64_t backslashes,
                                            uint32_t at)
{
    const uint64_t even = 0x5555555555555555u;
    uint64_t escaped = marks->escaped, first, even_runs, escapes;

    backslashes &= ~escaped;
    marks->escaped = 0;
    if (!backslashes)
        return escaped;
    first = backslashes & ~(backslashes << 1);
    even_runs = backslashes & ~(backslashes + (first & even));
    escapes = (even_runs & even) | (backslashes & ~even_runs & ~even);
    marks->escape = mp_json_put_places(marks->escape, escapes, at);
    marks->escaped = escapes >> 63;
    return escaped | escapes << 1;
}

/* Bit k becomes the sum, modulo 2, of the bits 0 to k: from an opening quote to before its closing
 * one, all ones. */
static inline uint64_t mp_json_prefix_xor(uint64_t bits)
{
    for (unsigned shift = 1; shift < 64; shift *= 2)
        bits ^= bits << shift;
    return bits;
}

static inline struct mp_json_marks mp_json_marks_begin(const struct mp_json_index *index)
{
    return (struct mp_json_marks){.closer = index->closers, .escape = index->escapes};
}

/* Sets the sentinels; answers whether strings are closed and free of control bytes. */
static inline bool mp_json_marks_end(struct mp_json_marks *marks)
{
    *marks->closer = UINT32_MAX;
    *marks->escape = UINT32_MAX;
    return !marks->bad && !marks->in_string && !marks->escaped;
}

/* The block at `at`; the last, short one is copied to tail and padded with spaces, which mean
 * nothing to stage one. */
static inline const char *mp_json_block(const char *data, size_t at, size_t size,
                                        char tail[MP_JSON_BLOCK])
{
    if (size - at >= MP_JSON_BLOCK)
        return data + at;
    memset(tail, ' ', MP_JSON_BLOCK);
    memcpy(tail, data + at, size - at);
    return tail;
}

#endif
