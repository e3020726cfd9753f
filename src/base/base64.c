#include "base/base64.h"

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool mp_base64_read(struct mp_arena *arena, struct mp_str text, struct mp_str *ret)
{
    char *bytes = mp_arena_take(arena, text.size / 4 * 3 + 4);
    size_t size = 0, digits = text.size;
    uint32_t bits = 0, have = 0;

    while (digits && digits + 2 > text.size && text.data[digits - 1] == '=')
        digits--;
    if (text.size % 4 != 0 || digits % 4 == 1)
        return false;
    for (size_t i = 0; i < digits; i++) {
        int digit = base64_digit(text.data[i]);

        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
        have += 6;
        if (have >= 8) {
            have -= 8;
            bytes[size++] = (char)(bits >> have);
        }
    }
    *ret = mp_str_n(bytes, size);
    return true;
}

void mp_base64_print(struct mp_buf *buf, struct mp_str bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *data = (const unsigned char *)bytes.data;

    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t left = bytes.size - i;
        uint32_t bits = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
                        (left > 2 ? data[i + 2] : 0);
        char *place = mp_buf_reserve(buf, 4);

        place[0] = digits[bits >> 18];
        place[1] = digits[bits >> 12 & 63];
        place[2] = left > 1 ? digits[bits >> 6 & 63] : '=';
        place[3] = left > 2 ? digits[bits & 63] : '=';
        buf->size += 4;
    }
}
