#include "base/utf8.h"

#include <assert.h>

/* Least code point of a character of so many bytes. */
static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};

static bool is_character(uint32_t point)
{
    return point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
}

size_t mp_utf8_read(struct mp_str text, uint32_t *ret_point)
{
    const unsigned char *c = (const unsigned char *)text.data;
    uint32_t point;
    size_t size;

    if (text.size == 0)
        return 0;
    if (c[0] < 0x80) {
        *ret_point = c[0];
        return 1;
    }
    size = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
    if (c[0] < 0xc2 || c[0] > 0xf4 || text.size < size)
        return 0;
    point = c[0] & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((c[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (c[i] & 0x3f);
    }
    if (point < least[size] || !is_character(point))
        return 0;
    *ret_point = point;
    return size;
}

size_t mp_utf8_write(uint32_t point, char ret[4])
{
    static const unsigned char leads[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t size = 1;

    assert(is_character(point));
    while (size < 4 && point >= least[size + 1])
        size++;
    for (size_t i = size; i-- > 1; point >>= 6)
        ret[i] = (char)(0x80 | (point & 0x3f));
    ret[0] = (char)(leads[size] | point);
    return size;
}

bool mp_utf8_is(struct mp_str text)
{
    uint32_t point;
    size_t size;

    for (size_t at = 0; at < text.size; at += size) {
        size = mp_utf8_read(mp_str_n(text.data + at, text.size - at), &point);
        if (size == 0)
            return false;
    }
    return true;
}

void mp_utf8_repair(char *text)
{
    size_t left = strlen(text), step;
    char *to = text;
    uint32_t point;

    for (const char *from = text; left; from += step, left -= step) {
        step = mp_utf8_read(mp_str_n(from, left), &point);
        if (step)
            memmove(to, from, step);
        to += step;
        step += !step;
    }
    *to = 0;
}
