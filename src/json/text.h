/* json/text.h - strings with escapes, and nested values that are not compact.
 *
 * Both are written into the scanner's scratch. No rewriting makes a text longer, so a scratch as
 * large as the record holds all that one record can need.
 */
#ifndef MP_JSON_TEXT_H
#define MP_JSON_TEXT_H

#include "json/json.h"

/* Reads the escape whose backslash is at `at`, and both halves of a surrogate pair; nothing at or
 * behind end belongs to the string. Gives its length and the character, or 0 and the fault. */
unsigned mp_json_escape_read(const char *at, const char *end, uint32_t *ret_character,
                             enum mp_json_fault *ret_fault);
/* Is an escape, good by escape_read, the one that compact text would use? */
bool mp_json_escape_minimal(const char *at, unsigned length, uint32_t character);

/* The character of a two-byte escape by its letter; 0: none such ('u' is read apart). */
extern const unsigned char mp_json_escape_value[256];

/* Scratch bytes written behind a text and not part of it. */
#define MP_JSON_TEXT_SLACK 32u

/* Decodes the string from..end (no quotes) into out. escapes are those inside, in order, with one
 * behind the end after them; nothing at or behind limit is read. Gives the bytes written, or
 * SIZE_MAX when an escape is wrong. */
size_t mp_json_text_decode(const char *data, size_t from, size_t end, size_t limit,
                           const uint32_t *escapes, char *out);
/* Writes the nested value from..end, known to be good, as compact text; gives the bytes written.
 * cuts are where the two differ, in order, and end behind them: each begins white space or an
 * escape to be spelled otherwise. */
size_t mp_json_text_compact(const char *data, size_t from, size_t end, size_t limit,
                            const uint32_t *cuts, char *out);

#endif
