/* base/buf.h - a growing run of bytes, born with its largest size.
 *
 * Memory   its own, given back by fini; grows by half.
 * Always   size <= capacity <= max. Passing max is our own mistake and asserted: what comes from
 *          outside is measured before it is appended.
 */
#ifndef MP_BASE_BUF_H
#define MP_BASE_BUF_H

#include "base/str.h"

struct mp_buf {
    char *data;
    size_t size, capacity, max;
};

#define MP_BUF_INIT(max_bytes) ((struct mp_buf){.max = (max_bytes)})

void mp_buf_fini(struct mp_buf *buf);
/* Makes room for `more` bytes and lends the place; size is not changed. */
char *mp_buf_reserve(struct mp_buf *buf, size_t more);
void mp_buf_add(struct mp_buf *buf, const void *data, size_t size);
void mp_buf_add_str(struct mp_buf *buf, struct mp_str text);
void mp_buf_add_c(struct mp_buf *buf, const char *text);
void mp_buf_add_byte(struct mp_buf *buf, char byte);
void mp_buf_printf(struct mp_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds a JSON string with its quotes: control bytes, quote and backslash escaped, the rest as it
 * is. text must be UTF-8. (RFC 8259, section 7) */
void mp_buf_add_json(struct mp_buf *buf, struct mp_str text);
/* Lends a NUL-terminated view, good until the next change. */
const char *mp_buf_c(struct mp_buf *buf);

static inline struct mp_str mp_buf_str(const struct mp_buf *buf)
{
    return (struct mp_str){buf->data, buf->size};
}

static inline void mp_buf_clear(struct mp_buf *buf)
{
    buf->size = 0;
}

#endif
