#include "json/utf8.h"

#include <assert.h>
#include <string.h>

static bool is_continuation(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

unsigned mp_json_utf8_length(const char *data, size_t size)
{
    const unsigned char *p = (const unsigned char *)data;
    unsigned char lowest = 0x80, highest = 0xbf; /* of the second byte */
    unsigned length;

    assert(size > 0);
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    length = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (size < length)
        return 0;
    if (p[0] == 0xe0)
        lowest = 0xa0; /* below: overlong */
    if (p[0] == 0xed)
        highest = 0x9f; /* above: surrogates */
    if (p[0] == 0xf0)
        lowest = 0x90; /* below: overlong */
    if (p[0] == 0xf4)
        highest = 0x8f; /* above: beyond U+10FFFF */
    if (p[1] < lowest || p[1] > highest)
        return 0;
    for (unsigned k = 2; k < length; k++)
        if (!is_continuation(p[k]))
            return 0;
    return length;
}

bool mp_json_utf8_valid(const char *data, size_t size)
{
    size_t at = 0;

    while (at < size) {
        uint64_t word;
        unsigned length;

        if (size - at >= sizeof(word)) { /* eight ASCII bytes at once */
            memcpy(&word, data + at, sizeof(word));
            if (!(word & 0x8080808080808080u)) {
                at += sizeof(word);
                continue;
            }
        }
        length = mp_json_utf8_length(data + at, size - at);
        if (!length)
            return false;
        at += length;
    }
    return true;
}

unsigned mp_json_utf8_put(char *out, uint32_t character)
{
    assert(character <= 0x10ffff);
    assert(character < 0xd800 || character > 0xdfff);
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    if (character < 0x800) {
        out[0] = (char)(0xc0 | character >> 6);
        out[1] = (char)(0x80 | (character & 0x3f));
        return 2;
    }
    if (character < 0x10000) {
        out[0] = (char)(0xe0 | character >> 12);
        out[1] = (char)(0x80 | (character >> 6 & 0x3f));
        out[2] = (char)(0x80 | (character & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | character >> 18);
    out[1] = (char)(0x80 | (character >> 12 & 0x3f));
    out[2] = (char)(0x80 | (character >> 6 & 0x3f));
    out[3] = (char)(0x80 | (character & 0x3f));
    return 4;
}
