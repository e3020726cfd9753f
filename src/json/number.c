#include "json/number.h"

#include "json/powers.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A double is decided by its first 767 significant digits and by whether any later one is not 0. */
#define SIGNIFICANT 800
/* All numbers of so many digits are below 2^64. */
#define MANTISSA_DIGITS 19

__extension__ typedef unsigned __int128 wide;

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

/* The value of eight digits: neighbours are joined to pairs, those to fours, those to eight. */
static inline uint64_t eight_digits(const char *data)
{
    uint64_t word;

    memcpy(&word, data, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    word &= 0x0f0f0f0f0f0f0f0fu;
    word = (word * 10 + (word >> 8)) & 0x00ff00ff00ff00ffu;
    word = (word * 100 + (word >> 16)) & 0x0000ffff0000ffffu;
    return (word * 10000 + (word >> 32)) & 0xffffffffu;
}

/* The digits of a run, folded onto value; the caller knows that they fit. */
static inline uint64_t fold(const char *data, size_t at, size_t end, uint64_t value)
{
    for (; end - at >= 8; at += 8)
        value = value * 100000000 + eight_digits(data + at);
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

/* Rounds mantissa * 10^q, the mantissa not 0, q in the table. False where that cannot tell.
 *
 * The product of the mantissa (shifted up to 64 bits) and the power (cut to 128 bits) is below the
 * true one by less than 2^64, that is, by less than one in its middle word. Its first 53 bits are
 * the double; the bits behind them, rest and middle, say which way to round, unless the true ones
 * may be just half, or on the other side of it. */
static inline bool round_fast(uint64_t mantissa, int q, uint64_t *ret)
{
    const struct mp_json_power *power = &mp_json_powers[q - MP_JSON_POWER_LEAST];
    int shift = __builtin_clzll(mantissa), drop;
    uint64_t high, middle, rest, half;
    wide product;

    mantissa <<= shift;
    product = (wide)mantissa * power->high;
    high = (uint64_t)(product >> 64);
    middle = (uint64_t)product;
    product = (wide)mantissa * power->low;
    middle += (uint64_t)(product >> 64);
    high += middle < (uint64_t)(product >> 64);

    drop = high >> 63 ? 11 : 10; /* the product has 192 or 191 bits */
    half = (uint64_t)1 << (drop - 1);
    rest = high & (2 * half - 1);
    if ((rest == half && middle == 0) || (rest == half - 1 && middle == UINT64_MAX))
        return false;
    /* 2^52 to 2^53; the latter, if rounded up to, rightly adds one to the exponent */
    high = (high >> drop) + (rest >= half);
    *ret = ((uint64_t)(mp_json_power_binary(q) - shift + 128 + drop + 52 + 1023) << 52) +
           (high - ((uint64_t)1 << 52));
    return true;
}

static double round_number(const char *data, bool negative, const struct parts *parts)
{
    int64_t exponent = written_exponent(data, parts) - (int64_t)(parts->tail - parts->fraction);
    size_t fraction = parts->fraction, whole = parts->point - parts->from;
    uint64_t mantissa = 0, bits = 0;
    double value;

    if (data[parts->from] == '0') { /* only the fraction counts, and not its leading zeros */
        whole = 0;
        while (fraction < parts->tail && data[fraction] == '0')
            fraction++;
    }
    if (whole + (parts->tail - fraction) > MANTISSA_DIGITS)
        return round_slow(data, negative, parts);
    mantissa = fold(data, parts->from, parts->from + whole, 0);
    mantissa = fold(data, fraction, parts->tail, mantissa);
    if (mantissa) {
        if (exponent < MP_JSON_POWER_LEAST || exponent > MP_JSON_POWER_MOST ||
            !round_fast(mantissa, (int)exponent, &bits))
            return round_slow(data, negative, parts);
    }
    bits |= (uint64_t)negative << 63;
    memcpy(&value, &bits, sizeof(value));
    return value;
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
