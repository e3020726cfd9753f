/* server/bounds.c - see types.h: bounds as bytes, in order, and for people.
 *
 * After  Apache Iceberg specification, "Appendix D: Single-value serialization".
 */
#include "base/base64.h"
#include "base/civil.h"
#include "base/number.h"
#include "base/utf8.h"
#include "lake/hoglake/wire.h"
#include "server/types.h"

#include <math.h>
#include <stdio.h>

static int64_t little_endian(struct mp_str bytes)
{
    uint64_t value = 0;

    for (size_t i = bytes.size; i-- > 0;)
        value = value << 8 | (unsigned char)bytes.data[i];
    if (bytes.size == 4)
        return (int32_t)(uint32_t)value;
    return (int64_t)value;
}

static double floating(struct mp_str bytes)
{
    double wide;
    float narrow;

    if (bytes.size == sizeof(narrow)) {
        memcpy(&narrow, bytes.data, sizeof(narrow));
        return (double)narrow;
    }
    memcpy(&wide, bytes.data, sizeof(wide));
    return wide;
}

bool mp_hog_bound_valid(enum mp_hog_type type, struct mp_str bound)
{
    switch (mp_hog_types[type].bound) {
    case MP_HOG_BOUND_NONE:
        return false;
    case MP_HOG_BOUND_BOOLEAN:
        return bound.size == 1;
    case MP_HOG_BOUND_INT32:
        return bound.size == 4;
    case MP_HOG_BOUND_INT64:
        return bound.size == 8;
    case MP_HOG_BOUND_FLOAT:
        return bound.size == 4 && !isnan(floating(bound));
    case MP_HOG_BOUND_DOUBLE:
        return bound.size == 8 && !isnan(floating(bound));
    case MP_HOG_BOUND_BIG:
        return bound.size >= 1;
    case MP_HOG_BOUND_BYTES:
        return true;
    case MP_HOG_BOUND_UUID:
        return bound.size == 16;
    }
    return false;
}

/* Byte i of a big-endian number stretched to `size` bytes by its sign. */
static int big_byte(struct mp_str number, size_t size, size_t i)
{
    if (i < size - number.size)
        return (unsigned char)number.data[0] & 0x80 ? 0xff : 0;
    return (unsigned char)number.data[i - (size - number.size)];
}

static int cmp_big(struct mp_str a, struct mp_str b)
{
    size_t size = a.size > b.size ? a.size : b.size;

    for (size_t i = 0; i < size; i++) {
        int x = big_byte(a, size, i) ^ (i ? 0 : 0x80), y = big_byte(b, size, i) ^ (i ? 0 : 0x80);

        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

int mp_hog_bound_cmp(enum mp_hog_type type, struct mp_str a, struct mp_str b)
{
    int64_t x, y;

    switch (mp_hog_types[type].bound) {
    case MP_HOG_BOUND_BOOLEAN:
        return (a.data[0] != 0) - (b.data[0] != 0);
    case MP_HOG_BOUND_INT32:
    case MP_HOG_BOUND_INT64:
        x = little_endian(a), y = little_endian(b);
        return (x > y) - (x < y);
    case MP_HOG_BOUND_FLOAT:
    case MP_HOG_BOUND_DOUBLE:
        return (floating(a) > floating(b)) - (floating(a) < floating(b));
    case MP_HOG_BOUND_BIG:
        return cmp_big(a, b);
    case MP_HOG_BOUND_NONE:
    case MP_HOG_BOUND_BYTES:
    case MP_HOG_BOUND_UUID:
        break;
    }
    return mp_str_cmp(a, b);
}

struct mp_str mp_hog_bound_zero(struct mp_arena *arena, enum mp_hog_type type, struct mp_str bound,
                                bool upper)
{
    enum mp_hog_bound kind = mp_hog_types[type].bound;
    char *copy;

    if ((kind != MP_HOG_BOUND_FLOAT && kind != MP_HOG_BOUND_DOUBLE) || floating(bound) != 0)
        return bound;
    copy = mp_arena_take(arena, bound.size);
    if (!upper)
        copy[bound.size - 1] = (char)0x80;
    return mp_str_n(copy, bound.size);
}

bool mp_hog_bound_promote(struct mp_arena *arena, enum mp_hog_type from, enum mp_hog_type to,
                          struct mp_str bound, struct mp_str *ret)
{
    char *copy;
    double wide;

    if (mp_hog_types[from].bound == mp_hog_types[to].bound || bound.size != 4)
        return false;
    copy = mp_arena_take(arena, 8);
    memcpy(copy, bound.data, 4);
    if (mp_hog_types[to].bound == MP_HOG_BOUND_DOUBLE) {
        wide = floating(bound);
        memcpy(copy, &wide, 8);
    } else if ((unsigned char)bound.data[3] & 0x80) {
        memset(copy + 4, 0xff, 4);
    }
    *ret = mp_str_n(copy, 8);
    return true;
}

/* --- for people --- */

static void print_double(struct mp_buf *buf, double value, bool narrow)
{
    char text[MP_NUMBER_TEXT];

    if (isinf(value)) {
        mp_buf_add_c(buf, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    mp_buf_add(buf, text, narrow ? mp_float_text((float)value, text) : mp_double_text(value, text));
}

/* The decimal digits of a big-endian two's complement number, at most 40 bytes. */
static void print_big(struct mp_buf *buf, struct mp_str bytes, int64_t scale)
{
    unsigned char magnitude[40];
    char digits[120];
    size_t size = bytes.size, count = 0, least = scale > 0 ? (size_t)scale + 1 : 1;
    bool negative = (unsigned char)bytes.data[0] & 0x80, more = true;

    if (size > sizeof(magnitude) || scale > 60) {
        mp_buf_add_c(buf, "null");
        return;
    }
    memcpy(magnitude, bytes.data, size);
    if (negative) {
        unsigned carry = 1;

        for (size_t i = size; i-- > 0;) {
            carry += (unsigned char)~magnitude[i];
            magnitude[i] = (unsigned char)carry;
            carry >>= 8;
        }
    }
    while (more) { /* divide by ten */
        unsigned rest = 0;

        more = false;
        for (size_t i = 0; i < size; i++) {
            rest = rest << 8 | magnitude[i];
            magnitude[i] = (unsigned char)(rest / 10);
            rest %= 10;
            more = more || magnitude[i];
        }
        digits[count++] = (char)('0' + rest);
    }
    while (count < least)
        digits[count++] = '0';
    if (negative)
        mp_buf_add_byte(buf, '-');
    while (count-- > 0) {
        mp_buf_add_byte(buf, digits[count]);
        if (scale > 0 && count == (size_t)scale)
            mp_buf_add_byte(buf, '.');
    }
}

static void print_date(struct mp_buf *buf, int64_t days)
{
    struct mp_civil date = mp_civil_of_days(days);

    mp_buf_printf(buf,
                  date.year > 9999 ? "+%05lld"
                  : date.year < 0  ? "%05lld" /* the sign and four digits */
                                   : "%04lld",
                  (long long)date.year);
    mp_buf_printf(buf, "-%02u-%02u", date.month, date.day);
}

/* Nanoseconds of a day. full: seconds are never left out. */
static void print_time(struct mp_buf *buf, int64_t ns, bool full)
{
    int64_t s = ns / 1000000000, fraction = ns % 1000000000;

    mp_buf_printf(buf, "%02lld:%02lld", (long long)(s / 3600), (long long)(s / 60 % 60));
    if (full || s % 60 || fraction)
        mp_buf_printf(buf, ":%02lld", (long long)(s % 60));
    if (fraction % 1000)
        mp_buf_printf(buf, ".%09lld", (long long)fraction);
    else if (fraction % 1000000)
        mp_buf_printf(buf, ".%06lld", (long long)(fraction / 1000));
    else if (fraction)
        mp_buf_printf(buf, ".%03lld", (long long)(fraction / 1000000));
}

static void print_instant(struct mp_buf *buf, int64_t value, int64_t per_day, bool zone)
{
    int64_t days = mp_floor_div(value, per_day), rest = mp_floor_mod(value, per_day);

    print_date(buf, days);
    mp_buf_add_byte(buf, 'T');
    print_time(buf, rest * (INT64_C(86400000000000) / per_day), zone);
    if (zone)
        mp_buf_add_byte(buf, 'Z');
}

void mp_hog_bound_print(struct mp_buf *buf, enum mp_hog_type type, int64_t scale,
                        struct mp_str bound)
{
    const unsigned char *u = (const unsigned char *)bound.data;

    if (!bound.data || !mp_hog_bound_valid(type, bound)) {
        mp_buf_add_c(buf, "null");
        return;
    }
    switch (type) {
    case MP_HOG_BOOLEAN:
        mp_buf_add_c(buf, bound.data[0] ? "true" : "false");
        break;
    case MP_HOG_FLOAT:
    case MP_HOG_DOUBLE:
        print_double(buf, floating(bound), type == MP_HOG_FLOAT);
        break;
    case MP_HOG_DECIMAL:
    case MP_HOG_UINT64:
        print_big(buf, bound, type == MP_HOG_DECIMAL ? scale : 0);
        break;
    case MP_HOG_STRING:
    case MP_HOG_JSON:
        if (mp_utf8_is(bound))
            mp_buf_add_json(buf, bound);
        else
            mp_buf_add_c(buf, "null");
        break;
    case MP_HOG_BINARY:
        mp_buf_add_byte(buf, '"');
        mp_base64_print(buf, bound);
        mp_buf_add_byte(buf, '"');
        break;
    case MP_HOG_UUID:
        mp_buf_add_byte(buf, '"');
        for (int i = 0; i < 16; i++)
            mp_buf_printf(buf, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
        mp_buf_add_byte(buf, '"');
        break;
    case MP_HOG_DATE:
        mp_buf_add_byte(buf, '"');
        print_date(buf, little_endian(bound));
        mp_buf_add_byte(buf, '"');
        break;
    case MP_HOG_TIME:
        if (little_endian(bound) < 0 || little_endian(bound) >= MP_DAY_US) {
            mp_buf_add_c(buf, "null");
            break;
        }
        mp_buf_add_byte(buf, '"');
        print_time(buf, little_endian(bound) * 1000, false);
        mp_buf_add_byte(buf, '"');
        break;
    case MP_HOG_TIMESTAMP_S:
    case MP_HOG_TIMESTAMP_MS:
    case MP_HOG_TIMESTAMP:
    case MP_HOG_TIMESTAMPTZ:
        mp_buf_add_byte(buf, '"');
        print_instant(buf, little_endian(bound), MP_DAY_US, type == MP_HOG_TIMESTAMPTZ);
        mp_buf_add_byte(buf, '"');
        break;
    case MP_HOG_TIMESTAMP_NS:
        mp_buf_add_byte(buf, '"');
        print_instant(buf, little_endian(bound), MP_DAY_US * 1000, false);
        mp_buf_add_byte(buf, '"');
        break;
    default:
        mp_buf_printf(buf, "%lld", (long long)little_endian(bound));
        break;
    }
}
