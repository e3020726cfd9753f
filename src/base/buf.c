#include "base/buf.h"

#include "base/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

void mp_buf_fini(struct mp_buf *buf)
{
    mp_free(buf->data);
    *buf = MP_BUF_INIT(buf->max);
}

char *mp_buf_reserve(struct mp_buf *buf, size_t more)
{
    assert(buf->size <= buf->capacity);
    assert(more <= buf->max - buf->size);
    if (buf->capacity - buf->size < more) {
        size_t want = buf->size + more;
        size_t grown = buf->capacity + buf->capacity / 2 + 64;

        if (grown > want)
            want = grown < buf->max ? grown : buf->max;
        buf->data = mp_realloc(buf->data, want);
        buf->capacity = want;
    }
    return buf->capacity ? buf->data + buf->size : NULL;
}

void mp_buf_add(struct mp_buf *buf, const void *data, size_t size)
{
    char *place = mp_buf_reserve(buf, size);

    if (size)
        memcpy(place, data, size);
    buf->size += size;
}

void mp_buf_add_str(struct mp_buf *buf, struct mp_str text)
{
    mp_buf_add(buf, text.data, text.size);
}

void mp_buf_add_c(struct mp_buf *buf, const char *text)
{
    mp_buf_add(buf, text, strlen(text));
}

void mp_buf_add_byte(struct mp_buf *buf, char byte)
{
    mp_buf_add(buf, &byte, 1);
}

void mp_buf_printf(struct mp_buf *buf, const char *format, ...)
{
    va_list args, again;
    int length;

    va_start(args, format);
    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(length >= 0);
    /* vsnprintf writes a NUL behind the text, which is not counted in size */
    vsnprintf(mp_buf_reserve(buf, (size_t)length + 1), (size_t)length + 1, format, again);
    va_end(again);
    buf->size += (size_t)length;
}

void mp_buf_add_json(struct mp_buf *buf, struct mp_str text)
{
    static const char hex[] = "0123456789abcdef";

    mp_buf_add_byte(buf, '"');
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        static const char shorts[32] = {
            ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

        if (c == '"' || c == '\\') {
            char pair[2] = {'\\', (char)c};
            mp_buf_add(buf, pair, 2);
        } else if (c >= 32) {
            mp_buf_add_byte(buf, (char)c);
        } else if (shorts[c]) {
            char pair[2] = {'\\', shorts[c]};
            mp_buf_add(buf, pair, 2);
        } else {
            char six[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
            mp_buf_add(buf, six, 6);
        }
    }
    mp_buf_add_byte(buf, '"');
}

const char *mp_buf_c(struct mp_buf *buf)
{
    *mp_buf_reserve(buf, 1) = 0;
    return buf->data;
}
