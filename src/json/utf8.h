/* json/utf8.h - strict UTF-8, one character at a time (Unicode 15, section 3.9, table 3-7). */
#ifndef MP_JSON_UTF8_H
#define MP_JSON_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Gives the length, 1 to 4, of the character at data, 0 when the bytes are not UTF-8: overlong,
 * surrogate, above U+10FFFF, cut, or a stray continuation. size is what is left, at least 1. */
unsigned mp_json_utf8_length(const char *data, size_t size);
bool mp_json_utf8_valid(const char *data, size_t size);
/* Writes a character (no surrogate, at most U+10FFFF); gives its length. */
unsigned mp_json_utf8_put(char *out, uint32_t character);

#endif
