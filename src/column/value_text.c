/* column/value_text.c - values as catalogs spell them, timestamps in UTC: DuckLake as DuckDB's cast
 * to VARCHAR does, hoglake as its Python client does (isoformat, repr of a double, str of a
 * Decimal), whose files are to share partitions with ours.
 */
#include "base/base64.h"
#include "base/civil.h"
#include "base/number.h"
#include "column/transform.h"

#include <assert.h>
#include <stdio.h>

static struct mp_str date_text(struct mp_arena *arena, int64_t days)
{
    struct mp_civil date = mp_civil_of_days(days);

    return mp_str_c(
        mp_arena_printf(arena, "%04lld-%02u-%02u", (long long)date.year, date.month, date.day));
}

/* ".5" for 500000 of 1000000; nothing for 0. */
static const char *fraction_text(struct mp_arena *arena, int64_t part, int digits)
{
    char *text = mp_arena_printf(arena, ".%0*lld", digits, (long long)part);
    size_t length = strlen(text);

    while (text[length - 1] == '0')
        text[--length] = 0;
    return length == 1 ? "" : text;
}

static struct mp_str clock_text(struct mp_arena *arena, int64_t units, int64_t per_second,
                                int digits)
{
    int64_t seconds = units / per_second;

    return mp_str_c(mp_arena_printf(arena, "%02d:%02d:%02d%s", (int)(seconds / 3600),
                                    (int)(seconds / 60 % 60), (int)(seconds % 60),
                                    fraction_text(arena, units % per_second, digits)));
}

static struct mp_str timestamp_text(struct mp_arena *arena, int64_t value, int64_t per_second,
                                    int digits, const char *zone)
{
    int64_t per_day = per_second * 86400, days = mp_floor_div(value, per_day);
    struct mp_str date = date_text(arena, days);
    struct mp_str clock = clock_text(arena, mp_floor_mod(value, per_day), per_second, digits);

    return mp_str_c(
        mp_arena_printf(arena, "%.*s %.*s%s", MP_STR_ARG(date), MP_STR_ARG(clock), zone));
}

static struct mp_str decimal_text(struct mp_arena *arena, struct mp_type type, struct mp_str value)
{
    mp_int128 unscaled = mp_value_i128(value);
    mp_uint128 rest;
    char digits[48], *end = digits + sizeof(digits), *at = end;
    bool negative;

    negative = unscaled < 0;
    rest = negative ? 0 - (mp_uint128)unscaled : (mp_uint128)unscaled;
    for (unsigned place = 0; rest || place <= type.scale; place++) {
        if (place == type.scale && place)
            *--at = '.';
        *--at = (char)('0' + (int)(rest % 10));
        rest /= 10;
    }
    if (negative)
        *--at = '-';
    return mp_arena_str(arena, mp_str_n(at, (size_t)(end - at)));
}

static struct mp_str uuid_text(struct mp_arena *arena, struct mp_str value)
{
    char *text = mp_arena_take(arena, 37);
    size_t at = 0;

    assert(value.size == 16);
    for (unsigned i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            text[at++] = '-';
        at += (size_t)sprintf(text + at, "%02x", (unsigned char)value.data[i]);
    }
    return mp_str_n(text, at);
}

struct mp_str mp_value_text(struct mp_arena *arena, struct mp_type type, struct mp_str value)
{
    char number[MP_NUMBER_TEXT];
    double wide;
    float narrow;

    switch (type.id) {
    case MP_TYPE_BOOL:
        return value.data[0] ? MP_STR("true") : MP_STR("false");
    case MP_TYPE_UINT8:
    case MP_TYPE_UINT16:
    case MP_TYPE_UINT32:
        return mp_str_c(mp_arena_printf(arena, "%u", (unsigned)mp_value_i64(value)));
    case MP_TYPE_UINT64:
        return mp_str_c(mp_arena_printf(arena, "%llu", (unsigned long long)mp_value_i64(value)));
    case MP_TYPE_FLOAT:
        memcpy(&narrow, value.data, 4);
        return mp_arena_str(arena, mp_str_n(number, mp_float_text(narrow, number)));
    case MP_TYPE_DOUBLE:
        memcpy(&wide, value.data, 8);
        return mp_arena_str(arena, mp_str_n(number, mp_double_text(wide, number)));
    case MP_TYPE_INT128:
        memcpy(&wide, value.data, 8);
        return mp_str_c(mp_arena_printf(arena, "%.0f", wide));
    case MP_TYPE_DECIMAL:
        return decimal_text(arena, type, value);
    case MP_TYPE_DATE:
        return date_text(arena, mp_value_i64(value));
    case MP_TYPE_TIME:
        return clock_text(arena, mp_value_i64(value), 1000000, 6);
    case MP_TYPE_TIMESTAMP_S:
    case MP_TYPE_TIMESTAMP:
        return timestamp_text(arena, mp_value_i64(value), 1000000, 6, "");
    case MP_TYPE_TIMESTAMP_S_MS:
    case MP_TYPE_TIMESTAMP_MS:
        return timestamp_text(arena, mp_value_i64(value), 1000, 3, "");
    case MP_TYPE_TIMESTAMP_NS:
        return timestamp_text(arena, mp_value_i64(value), 1000000000, 9, "");
    case MP_TYPE_TIMESTAMPTZ:
        return timestamp_text(arena, mp_value_i64(value), 1000000, 6, "+00");
    case MP_TYPE_UUID:
        return uuid_text(arena, value);
    case MP_TYPE_VARCHAR:
    case MP_TYPE_JSON:
    case MP_TYPE_BLOB:
        return mp_arena_str(arena, value);
    default:
        assert(mp_type_is_integer(type));
        return mp_str_c(mp_arena_printf(arena, "%lld", (long long)mp_value_i64(value)));
    }
}

/* --- hoglake --- */

/* HH:MM:SS, and six digits of a fraction where there is one. */
static struct mp_str iso_clock(struct mp_arena *arena, int64_t us, const char *zone)
{
    int64_t seconds = us / 1000000;
    const char *fraction = us % 1000000 ? mp_arena_printf(arena, ".%06d", (int)(us % 1000000)) : "";

    return mp_str_c(mp_arena_printf(arena, "%02d:%02d:%02d%s%s", (int)(seconds / 3600),
                                    (int)(seconds / 60 % 60), (int)(seconds % 60), fraction, zone));
}

static struct mp_str iso_timestamp(struct mp_arena *arena, int64_t us, const char *zone)
{
    int64_t days = mp_floor_div(us, MP_DAY_US);
    struct mp_str date = date_text(arena, days);
    struct mp_str clock = iso_clock(arena, mp_floor_mod(us, MP_DAY_US), zone);

    return mp_str_c(mp_arena_printf(arena, "%.*sT%.*s", MP_STR_ARG(date), MP_STR_ARG(clock)));
}

/* A tiny value is written with an exponent: 1E-7, -1.25E-9, 0E-7. (Python, decimal.__str__, which
 * is "to-scientific-string" of Cowlishaw's General Decimal Arithmetic) */
static struct mp_str scientific_decimal(struct mp_arena *arena, struct mp_type type,
                                        struct mp_str value)
{
    struct mp_str digits =
        decimal_text(arena, (struct mp_type){MP_TYPE_DECIMAL, type.precision, 0}, value);
    bool negative = digits.data[0] == '-';
    int first = negative, count = (int)digits.size - first;
    int exponent = count - 1 - type.scale;

    if (exponent >= -6)
        return decimal_text(arena, type, value);
    return mp_str_c(mp_arena_printf(arena, "%s%c%s%.*sE%d", negative ? "-" : "", digits.data[first],
                                    count > 1 ? "." : "", count - 1, digits.data + first + 1,
                                    exponent));
}

static struct mp_str base64_text(struct mp_arena *arena, struct mp_str value)
{
    struct mp_buf buf = MP_BUF_INIT(SIZE_MAX);
    struct mp_str text;

    mp_base64_print(&buf, value);
    text = mp_arena_str(arena, mp_buf_str(&buf));
    mp_buf_fini(&buf);
    return text;
}

struct mp_str mp_value_text_hoglake(struct mp_arena *arena, struct mp_type type,
                                    struct mp_str value)
{
    double wide;
    float narrow;

    switch (type.id) {
    case MP_TYPE_FLOAT:
        memcpy(&narrow, value.data, 4);
        wide = narrow;
        return mp_value_text(arena, MP_TYPE(DOUBLE), mp_str_n(&wide, sizeof(wide)));
    case MP_TYPE_DECIMAL:
        return scientific_decimal(arena, type, value);
    case MP_TYPE_TIME:
        return iso_clock(arena, mp_value_i64(value), "");
    case MP_TYPE_TIMESTAMP_S_MS:
    case MP_TYPE_TIMESTAMP_MS:
        return iso_timestamp(arena, mp_value_i64(value) * 1000, "");
    case MP_TYPE_TIMESTAMP_S:
    case MP_TYPE_TIMESTAMP:
        return iso_timestamp(arena, mp_value_i64(value), "");
    case MP_TYPE_TIMESTAMPTZ:
        return iso_timestamp(arena, mp_value_i64(value), "+00:00");
    case MP_TYPE_TIMESTAMP_NS:
        return mp_value_text(arena, MP_TYPE(INT64), value);
    case MP_TYPE_BLOB:
        return base64_text(arena, value);
    default:
        return mp_value_text(arena, type, value);
    }
}
