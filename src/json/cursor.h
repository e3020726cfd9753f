/* json/cursor.h - a place in a text whose index is filled, and how strings are read from there.
 *
 * The one pass over records (walk.c) and the one over whole trees (tree.c) share it. Both rely on
 * the last byte being one that ends every number and word, so no byte needs a bounds check; see W1
 * in walk.c.
 */
#ifndef MP_JSON_CURSOR_H
#define MP_JSON_CURSOR_H

#include "json/json_priv.h"
#include "json/text.h"

#include <assert.h>

struct mp_json_cursor {
    const char *data;
    size_t size;
    const uint32_t *closer, *escape; /* the next of each */
    uint32_t *cuts;                  /* of one nested value: where compact text differs */
    char *out;                       /* free scratch */
};

/* The first byte at or after `at` that is no white space; there is one. */
static inline size_t mp_json_skip_space(const char *data, size_t at)
{
    while (__builtin_expect(mp_json_is_space(data[at]), 0))
        at++;
    return at;
}

/* Steps over true, false or null; gives the position behind it or 0. */
static inline size_t mp_json_skip_word(const char *data, size_t at, size_t size, struct mp_str word)
{
    if (size - at <= word.size || memcmp(data + at, word.data, word.size) != 0)
        return 0;
    return at + word.size;
}

/* Decodes the string from..end, which has escapes, into scratch; false when one is wrong. */
static inline bool mp_json_decode(struct mp_json_cursor *cursor, size_t from, size_t end,
                                  struct mp_str *ret)
{
    size_t written =
        mp_json_text_decode(cursor->data, from, end, cursor->size, cursor->escape, cursor->out);

    if (written == SIZE_MAX)
        return false;
    assert(written < end - from);
    *ret = mp_str_n(cursor->out, written);
    cursor->out += written;
    while (*cursor->escape < end)
        cursor->escape++;
    return true;
}

/* Reads the string whose opening quote is at `at`; gives the position behind it or 0. */
static inline size_t mp_json_read_string(struct mp_json_cursor *cursor, size_t at,
                                         struct mp_str *ret)
{
    size_t end = *cursor->closer++;

    if (__builtin_expect(*cursor->escape < end, 0))
        return mp_json_decode(cursor, at + 1, end, ret) ? end + 1 : 0;
    *ret = mp_str_n(cursor->data + at + 1, end - at - 1);
    return end + 1;
}

#endif
