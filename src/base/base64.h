/* base/base64.h - bytes as base64 with padding, and back. (RFC 4648, section 4) */
#ifndef MP_BASE_BASE64_H
#define MP_BASE_BASE64_H

#include "base/arena.h"
#include "base/buf.h"

void mp_base64_print(struct mp_buf *buf, struct mp_str bytes);
/* False: no base64. The bytes lie in the arena. */
bool mp_base64_read(struct mp_arena *arena, struct mp_str text, struct mp_str *ret);

#endif
