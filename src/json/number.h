/* json/number.h - numbers: their grammar, and their values exactly.
 *
 * Grammar RFC 8259, section 6. Positions are bytes of the record; both readers rely on the last
 * byte of data (at size - 1) being one that cannot belong to a number, so they stop by themselves.
 * The spelling that follows the number is the caller's to judge.
 *
 * After  Lemire: Number Parsing at a Gigabyte per Second. Software: Practice and Experience 51
 *        (2021): digits times a cut power of ten. Where the cut could matter, and for long digits
 *        and far exponents, strtod rounds, in a spelling without a decimal point, so that no
 *        locale matters.
 */
#ifndef MP_JSON_NUMBER_H
#define MP_JSON_NUMBER_H

#include "json/json.h"

/* Reads a number and fills kind, text and value of the field; gives the position behind it, 0 when
 * it is not one or beyond the doubles. */
size_t mp_json_number_read(const char *data, size_t at, size_t size, struct mp_json_field *ret);
/* Steps over any number; gives the same. */
size_t mp_json_number_skip_any(const char *data, size_t at, size_t size);
/* Is a number of good grammar beyond the doubles? Exact. */
bool mp_json_number_overflows(struct mp_str number);

/* Any integer of so many digits is below the largest double, 1.79e308. */
#define MP_JSON_SAFE_DIGITS 308

/* The first byte at or after `at` that is no digit; there is one. */
static inline size_t mp_json_digits_end(const char *data, size_t at, size_t size)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    while (size - at >= 8) { /* eight at a time */
        uint64_t word, other;

        memcpy(&word, data + at, sizeof(word));
        /* a digit has high half 3, also after 6 is added; what differs is no digit */
        other = (word & 0xf0f0f0f0f0f0f0f0u) ^ 0x3030303030303030u;
        other |= ((word + 0x0606060606060606u) & 0xf0f0f0f0f0f0f0f0u) ^ 0x3030303030303030u;
        if (other)
            return at + (unsigned)__builtin_ctzll(other) / 8;
        at += 8;
    }
#endif
    while ((unsigned char)(data[at] - '0') < 10)
        at++;
    return at;
}

/* Steps over a number; gives the position behind it, 0 when it is not one or beyond the doubles.
 * Those without an exponent are done here, in line. */
static inline size_t mp_json_number_skip(const char *data, size_t at, size_t size)
{
    size_t from = at + (data[at] == '-');
    size_t end = mp_json_digits_end(data, from, size);

    if (end == from || (data[from] == '0' && end - from > 1))
        return 0;
    if (data[end] == '.') {
        size_t fraction = end + 1;

        end = mp_json_digits_end(data, fraction, size);
        if (end == fraction)
            return 0;
    }
    if ((data[end] | 0x20) == 'e' || end - from > MP_JSON_SAFE_DIGITS)
        return mp_json_number_skip_any(data, at, size);
    return end;
}

#endif
