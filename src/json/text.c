#include "json/text.h"

#include "json/json_priv.h"
#include "json/utf8.h"

#include <assert.h>

const unsigned char mp_json_escape_value[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
};
/* The letter that stands for a byte; 0: none. */
static const char escape_letter[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
    ['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't',
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Reads backslash, u and four hex digits; false when that is not what stands there. */
static bool read_unit(const char *at, const char *end, uint32_t *ret)
{
    uint32_t unit = 0;

    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return false;
    for (int k = 2; k < 6; k++) {
        int digit = hex_digit(at[k]);

        if (digit < 0)
            return false;
        unit = unit << 4 | (uint32_t)digit;
    }
    *ret = unit;
    return true;
}

unsigned mp_json_escape_read(const char *at, const char *end, uint32_t *ret_character,
                             enum mp_json_fault *ret_fault)
{
    uint32_t high, low;

    assert(at < end);
    assert(at[0] == '\\');
    *ret_fault = MP_JSON_ESCAPE;
    if (end - at < 2)
        return 0;
    if (at[1] != 'u') {
        *ret_character = mp_json_escape_value[(unsigned char)at[1]];
        return *ret_character ? 2 : 0;
    }
    if (!read_unit(at, end, &high))
        return 0;
    if (high < 0xd800 || high > 0xdfff) {
        *ret_character = high;
        return 6;
    }
    *ret_fault = MP_JSON_SURROGATE;
    if (high > 0xdbff || !read_unit(at + 6, end, &low) || low < 0xdc00 || low > 0xdfff)
        return 0;
    *ret_character = 0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00));
    return 12;
}

bool mp_json_escape_minimal(const char *at, unsigned length, uint32_t character)
{
    if (length == 2)
        return at[1] != '/';
    if (character >= 0x20 || escape_letter[character])
        return false;
    return at[5] < 'A' || at[5] > 'F'; /* \u00xx lower case */
}

/* Copies a run of bytes and gives the end of the copy. Short runs, the most by far, are copied with
 * what follows them, as far as limit lets (the slack): that needs no call and no loop. */
static inline char *copy_run(char *out, const char *data, size_t from, size_t end, size_t limit)
{
    if (end - from <= MP_JSON_TEXT_SLACK && limit - from >= MP_JSON_TEXT_SLACK)
        memcpy(out, data + from, MP_JSON_TEXT_SLACK);
    else
        memcpy(out, data + from, end - from);
    return out + (end - from);
}

size_t mp_json_text_decode(const char *data, size_t from, size_t end, size_t limit,
                           const uint32_t *escapes, char *out)
{
    char *begin = out;

    while (*escapes < end) {
        size_t at = *escapes;
        enum mp_json_fault fault;
        uint32_t character;
        unsigned length;

        out = copy_run(out, data, from, at, limit);
        *out = (char)mp_json_escape_value[(unsigned char)data[at + 1]];
        if (*out) {
            out++;
            escapes++;
            from = at + 2;
            continue;
        }
        length = mp_json_escape_read(data + at, data + end, &character, &fault);
        if (!length)
            return SIZE_MAX;
        out += mp_json_utf8_put(out, character);
        from = at + length;
        escapes += length == 12 ? 2 : 1;
    }
    out = copy_run(out, data, from, end, limit);
    return (size_t)(out - begin);
}

/* Writes a character that was escaped the way compact text does; gives its length. */
static size_t put_minimal(char *out, uint32_t character)
{
    static const char hex[] = "0123456789abcdef";

    if (character < 0x80 && escape_letter[character]) {
        out[0] = '\\';
        out[1] = escape_letter[character];
        return 2;
    }
    if (character >= 0x20)
        return mp_json_utf8_put(out, character);
    memcpy(out, "\\u00", 4);
    out[4] = hex[character >> 4];
    out[5] = hex[character & 15];
    return 6;
}

/* Writes what compact text has in place of the escape at `at`, known to be good; gives its end. */
static char *rewrite_escape(char *out, const char *data, size_t *at, size_t end)
{
    enum mp_json_fault fault;
    uint32_t character;
    unsigned length = mp_json_escape_read(data + *at, data + end, &character, &fault);

    assert(length);
    *at += length;
    return out + put_minimal(out, character);
}

size_t mp_json_text_compact(const char *data, size_t from, size_t end, size_t limit,
                            const uint32_t *cuts, char *out)
{
    char *begin = out;

    for (; *cuts < end; cuts++) {
        out = copy_run(out, data, from, *cuts, limit);
        from = *cuts;
        if (data[from] == '\\')
            out = rewrite_escape(out, data, &from, end);
        else
            while (mp_json_is_space(data[from]))
                from++;
    }
    out = copy_run(out, data, from, end, limit);
    return (size_t)(out - begin);
}
