/* obs/utf8.h - inner door: the next code point of a text that may be anything. */
#ifndef MP_OBS_UTF8_H
#define MP_OBS_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 sequence that begins at text (RFC 3629, section 4), 0 where there is none;
 * *ret is its code point. size > 0. */
static inline size_t mp_obs_utf8_next(const unsigned char *text, size_t size, uint32_t *ret)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char lead = text[0];
    size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    uint32_t point = length == 1 ? lead : lead & (0x7fu >> length);

    if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || length > size)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (text[i] & 0x3f);
    }
    if (point < least[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        return 0;
    *ret = point;
    return length;
}

#endif
