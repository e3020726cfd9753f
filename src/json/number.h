/* json/number.h - numbers: their grammar, and their values exactly.
 *
 * Grammar RFC 8259, section 6. Positions are bytes of the record; both readers rely on the last
 * byte of data (at size - 1) being one that cannot belong to a number, so they stop by themselves.
 * The spelling that follows the number is the caller's to judge.
 *
 * After  Clinger: How to Read Floating Point Numbers Accurately. PLDI 1990, the fast path. All
 *        else goes to strtod, which rounds correctly, in a spelling without a decimal point, so
 *        that no locale matters.
 */
#ifndef MP_JSON_NUMBER_H
#define MP_JSON_NUMBER_H

#include "json/json.h"

/* Steps over a number; gives the position behind it, 0 when it is not one or beyond the doubles. */
size_t mp_json_number_skip(const char *data, size_t at, size_t size);
/* The same, and fills kind, text and value of the field. */
size_t mp_json_number_read(const char *data, size_t at, size_t size, struct mp_json_field *ret);
/* Is a number of good grammar beyond the doubles? Exact. */
bool mp_json_number_overflows(struct mp_str number);

#endif
