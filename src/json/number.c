#include "json/number.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A double is decided by its first 767 significant digits and by whether any later one is not 0. */
#define SIGNIFICANT 800

/* The parts of a number, as positions: [-]from .. point [. fraction] [e exponent] .. end. */
struct parts {
    size_t from, point;    /* the digits before the point */
    size_t fraction, tail; /* the digits behind it; equal when there are none */
    size_t exponent, end;  /* behind the 'e', sign included; equal when there is none */
};

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Splits the number at `at`; false when the grammar is broken. */
static inline bool split(const char *data, size_t at, size_t size, struct parts *ret)
{
    at += data[at] == '-';
    ret->from = at;
    at = data[at] == '0' ? at + 1 : mp_json_digits_end(data, at, size);
    if (at == ret->from)
        return false;
    ret->point = ret->fraction = ret->tail = at;
    if (data[at] == '.') {
        ret->fraction = at + 1;
        ret->tail = at = mp_json_digits_end(data, at + 1, size);
        if (ret->tail == ret->fraction)
            return false;
    }
    ret->exponent = ret->end = at;
    if ((data[at] | 0x20) == 'e') {
        size_t digits = at + 1 + (data[at + 1] == '+' || data[at + 1] == '-');

        ret->exponent = at + 1;
        ret->end = mp_json_digits_end(data, digits, size);
        if (ret->end == digits)
            return false;
    }
    return true;
}

/* The written exponent, held to plus or minus 10^15: beyond any record's digits. */
static int64_t written_exponent(const char *data, const struct parts *parts)
{
    const int64_t most = 1000000000000000;
    size_t at = parts->exponent;
    bool negative;
    int64_t value = 0;

    if (at == parts->end)
        return 0;
    negative = data[at] == '-';
    at += data[at] == '-' || data[at] == '+';
    for (; at < parts->end; at++) {
        value = value * 10 + (data[at] - '0');
        if (value > most)
            value = most;
    }
    return negative ? -value : value;
}

/* Spells the number as digits and an exponent, cut after SIGNIFICANT digits, and lets strtod round
 * it. Digits cut off that are not all 0 become a last 1, which keeps it off every half way. */
static double round_slow(const char *data, bool negative, const struct parts *parts)
{
    char text[SIGNIFICANT + 64];
    size_t used = 0, kept;
    int64_t exponent = written_exponent(data, parts) - (int64_t)(parts->tail - parts->fraction);
    bool rest = false;

    text[used++] = negative ? '-' : '+';
    for (size_t at = parts->from; at < parts->tail; at++) {
        if (at == parts->point)
            continue; /* the decimal point */
        if (used == 1 && data[at] == '0')
            continue; /* leading zeros say nothing */
        if (used <= SIGNIFICANT) {
            text[used++] = data[at];
        } else {
            exponent++;
            rest = rest || data[at] != '0';
        }
    }
    if (used == 1)
        return negative ? -0.0 : 0.0;
    if (rest) {
        text[used++] = '1';
        exponent--;
    }
    /* far outside, so that no reader's exponent overflows */
    if (exponent > 9999999)
        exponent = 9999999;
    if (exponent < -9999999)
        exponent = -9999999;
    kept = sizeof(text) - used;
    used += (size_t)snprintf(text + used, kept, "e%lld", (long long)exponent);
    assert(used < sizeof(text));
    return strtod(text, NULL);
}

/* Could the number be beyond the doubles? Cheap, and never wrong about "no". */
static inline bool may_overflow(const char *data, const struct parts *parts)
{
    int64_t digits = (int64_t)(parts->point - parts->from);

    if (parts->exponent == parts->end)
        return digits > MP_JSON_SAFE_DIGITS;
    return digits + written_exponent(data, parts) > MP_JSON_SAFE_DIGITS;
}

static bool overflows(const char *data, size_t at, const struct parts *parts)
{
    return may_overflow(data, parts) && isinf(round_slow(data, data[at] == '-', parts));
}

size_t mp_json_number_skip_any(const char *data, size_t at, size_t size)
{
    struct parts parts;

    if (!split(data, at, size, &parts) || overflows(data, at, &parts))
        return 0;
    return parts.end;
}

bool mp_json_number_overflows(struct mp_str number)
{
    /* split wants a byte behind the number; here nothing says there is one */
    struct parts parts = {0};
    size_t at = number.data[0] == '-';

    parts.from = at;
    while (at < number.size && is_digit(number.data[at]))
        at++;
    parts.point = parts.fraction = parts.tail = at;
    if (at < number.size && number.data[at] == '.') {
        parts.fraction = ++at;
        while (at < number.size && is_digit(number.data[at]))
            at++;
        parts.tail = at;
    }
    parts.exponent = at + (at < number.size);
    parts.end = number.size;
    return overflows(number.data, 0, &parts);
}

/* The digits of a run, folded onto value; the caller knows that they fit. */
static inline uint64_t fold(const char *data, size_t at, size_t end, uint64_t value)
{
    for (; at < end; at++)
        value = value * 10 + (uint64_t)(data[at] - '0');
    return value;
}

/* Is the run of digits inside int64? Its size is 1 to any; it has no leading zero. */
static bool fits_int64(const char *digits, size_t size, bool negative)
{
    static const char most[2][20] = {"9223372036854775807", "9223372036854775808"};

    if (size != 19)
        return size < 19;
    return memcmp(digits, most[negative], 19) <= 0;
}

static double round_number(const char *data, bool negative, const struct parts *parts)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const int64_t tens_max = 22; /* 10^22 is the last power of ten that a double holds exactly */
    size_t digits = parts->point - parts->from + parts->tail - parts->fraction;
    int64_t exponent = written_exponent(data, parts) - (int64_t)(parts->tail - parts->fraction);
    uint64_t mantissa;
    double value;

    if (digits > 19 || exponent > tens_max || exponent < -tens_max)
        return round_slow(data, negative, parts);
    mantissa = fold(data, parts->from, parts->point, 0);
    mantissa = fold(data, parts->fraction, parts->tail, mantissa);
    if (mantissa > (uint64_t)1 << 53)
        return round_slow(data, negative, parts);
    /* both are exact, so one operation rounds once (Clinger 1990) */
    value = (double)mantissa;
    value = exponent < 0 ? value / tens[-exponent] : value * tens[exponent];
    return negative ? -value : value;
}

size_t mp_json_number_read(const char *data, size_t at, size_t size, struct mp_json_field *ret)
{
    struct parts parts;
    bool negative = data[at] == '-';
    size_t digits;

    if (!split(data, at, size, &parts))
        return 0;
    digits = parts.point - parts.from;
    ret->text = mp_str_n(data + at, parts.end - at);
    if (parts.end != parts.point) {
        ret->kind = MP_JSON_DOUBLE;
        ret->f64 = round_number(data, negative, &parts);
        return isinf(ret->f64) ? 0 : parts.end;
    }
    if (fits_int64(data + parts.from, digits, negative)) {
        uint64_t value = fold(data, parts.from, parts.point, 0);

        ret->kind = MP_JSON_INT;
        ret->i64 = (int64_t)(negative ? 0 - value : value);
        return parts.end;
    }
    ret->kind = MP_JSON_BIGINT;
    ret->i64 = 0;
    return overflows(data, at, &parts) ? 0 : parts.end;
}
