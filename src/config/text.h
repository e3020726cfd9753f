/* config/text.h - the grammars of settings, for every program that reads some. Pure.
 *
 * Memory  what is given back lies in the arena where there is one, else in the text itself.
 */
#ifndef MP_CONFIG_TEXT_H
#define MP_CONFIG_TEXT_H

#include "base/arena.h"
#include "base/buf.h"

#include <stdbool.h>

/* The value as it stands in the environment; data NULL: not set. The first of two counts. */
struct mp_str mp_env_find(char *const *environment, const char *name);

struct mp_str mp_text_trim(struct mp_str text);
/* [a-zA-Z_][a-zA-Z0-9_]{0,254} */
bool mp_text_identifier(struct mp_str text);
/* One of `first`, then at most `more` of `rest`, each a set of characters. */
bool mp_text_name(struct mp_str name, const char *first, const char *rest, size_t more);
/* A namespace or table of hoglake: [A-Za-z_][A-Za-z0-9_-]{0,127} */
bool mp_text_hoglake_name(struct mp_str name);
/* Python's int(): blanks around it, a sign, '_' between digits. False: no integer. *ret_fits:
 * whether it is in int64 (only then *ret is written). */
bool mp_text_integer(struct mp_str text, int64_t *ret, bool *ret_fits);
/* A finite decimal number, blanks around it. */
bool mp_text_real(struct mp_str text, double *ret);
/* 8-4-4-4-12 or 32 hexadecimal digits; either in braces, or behind "urn:uuid:". */
bool mp_text_uuid(struct mp_str text);
/* A copy with 'A' to 'Z' made small. */
struct mp_str mp_text_lower(struct mp_arena *arena, struct mp_str text);
/* Takes the text up to the next separator (outside parentheses) off *rest; false at the end. */
bool mp_text_next(struct mp_str *rest, char separator, struct mp_str *ret);
/* The same, trimmed and without blank ones. */
struct mp_str *mp_text_split(struct mp_arena *arena, struct mp_str text, char separator,
                             uint32_t *ret_count);
/* Changes of one character (insert, drop, replace, swap of neighbours) from a to b; cut off at
 * `most`, then most + 1 is given. */
unsigned mp_text_distance(struct mp_str a, struct mp_str b, unsigned most);
/* Which of `count` names a mistyped one is meant to be: the nearest, at most two changes away;
 * NULL: none is. */
const char *mp_text_meant(struct mp_str name, const char *(*name_of)(unsigned i), unsigned count);
/* A value for libpq's keyword form: in single quotes, backslash before quote and backslash. */
void mp_text_conninfo(struct mp_buf *buf, const char *keyword, struct mp_str value);

#endif
