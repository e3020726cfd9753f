/* base/utf8.h - characters of a text that may be anything. */
#ifndef MP_BASE_UTF8_H
#define MP_BASE_UTF8_H

#include "base/str.h"

/* Bytes of the character a text begins with, 1 to 4, and its code point. 0: it is not UTF-8, or
 * the text is empty. (RFC 3629, section 4: no surrogates, nothing overlong) */
size_t mp_utf8_read(struct mp_str text, uint32_t *ret_point);
/* Whether all of it is. */
bool mp_utf8_is(struct mp_str text);
/* Takes out, in place, the bytes that are no part of a character: what cutting a text leaves. */
void mp_utf8_repair(char *text);
/* Writes the character, gives its size. The code point is one. */
size_t mp_utf8_write(uint32_t point, char ret[4]);

#endif
