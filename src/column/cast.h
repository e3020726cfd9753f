/* column/cast.h - one JSON value into one column type: exactly, or not at all.
 *
 * Nothing is rounded in silence: a value that its type cannot hold is refused (and rescued by the
 * batch); an integer between two doubles is stored rounded and refused at once, so that its digits
 * are rescued beside it.
 *
 * The table of docs/types.md says which values each type takes.
 */
#ifndef MP_COLUMN_CAST_H
#define MP_COLUMN_CAST_H

#include "base/buf.h"
#include "column/type.h"
#include "json/json.h"

enum mp_cast {
    MP_CAST_OK,
    MP_CAST_ROUNDED, /* stored, and to be rescued too */
    MP_CAST_REFUSED, /* nothing stored: to be rescued */
};

/* Writes the value as it lies in a segment (mp_type_width bytes, 16 at most). The field is no
 * null. pinned: the looser rules of MILLPOND_TYPED_COLUMNS hold (hexadecimal integers, any number
 * as a boolean). type is no text type. */
enum mp_cast mp_cast_fixed(const struct mp_json_field *field, struct mp_type type, bool pinned,
                           void *ret);

/* Gives the value's text for VARCHAR: strings as they are, everything else in its JSON spelling.
 * The text is the field's own or lies in scratch (MP_NUMBER_TEXT bytes). */
struct mp_str mp_cast_text(const struct mp_json_field *field, char *scratch);

/* The value's exact JSON text, for the rescued column. */
void mp_cast_rescue(const struct mp_json_field *field, struct mp_buf *ret);

/* Exact decimal text (sign, digits, point, exponent) as value * 10^scale; false where it has more
 * digits than fit or is not a number. */
bool mp_decimal_of_text(struct mp_str text, unsigned precision, unsigned scale, mp_int128 *ret);
/* 8-4-4-4-12 hexadecimal digits or 32 of them, in braces or behind "urn:uuid:" if wanted. */
bool mp_uuid_of_text(struct mp_str text, unsigned char ret[16]);

#endif
