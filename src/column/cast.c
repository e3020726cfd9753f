#include "column/cast.h"

#include "base/number.h"
#include "column/temporal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Integer types: what fits, and the bytes they lie in. */
struct integer_range {
    mp_int128 min, max;
};

static struct integer_range integer_range(uint8_t type)
{
    static const unsigned char bits[MP_TYPE_COUNT] = {
        [MP_TYPE_INT8] = 8,    [MP_TYPE_INT16] = 16,  [MP_TYPE_INT32] = 32,
        [MP_TYPE_INT64] = 64,  [MP_TYPE_UINT8] = 8,   [MP_TYPE_UINT16] = 16,
        [MP_TYPE_UINT32] = 32, [MP_TYPE_UINT64] = 64, [MP_TYPE_UINT32_LONG] = 32,
    };
    mp_int128 span = (mp_int128)1 << bits[type];

    assert(bits[type]);
    if (type >= MP_TYPE_UINT8 && type <= MP_TYPE_UINT64)
        return (struct integer_range){0, span - 1};
    return (struct integer_range){-span / 2, span / 2 - 1};
}

static void store(mp_int128 value, uint32_t width, void *ret)
{
    if (width == 16) {
        unsigned char *bytes = ret;

        for (int i = 15; i >= 0; i--, value >>= 8)
            bytes[i] = (unsigned char)value;
    } else {
        memcpy(ret, &value, width); /* little-endian, the low bytes first */
    }
}

/* -?digits, and 0x... where hex; at most 38 digits. */
static bool integer_of_text(struct mp_str text, bool hex, mp_int128 *ret)
{
    bool negative = text.size && text.data[0] == '-';
    size_t at = negative, from;
    unsigned base = 10;
    mp_int128 value = 0;

    if (hex && text.size > at + 2 && text.data[at] == '0' && (text.data[at + 1] | 32) == 'x') {
        base = 16;
        at += 2;
    }
    from = at;
    while (at < text.size && base == 10 && text.data[at] == '0' && at + 1 < text.size)
        at++;
    if (text.size - at > (base == 16 ? 16 : 38) || from == text.size)
        return false;
    for (; at < text.size; at++) {
        unsigned char c = mp_ascii_lower((unsigned char)text.data[at]);
        unsigned digit = c <= '9' ? c - '0' + (c < '0') * 99u : c - 'a' + 10u + (c < 'a') * 99u;

        if (digit >= base)
            return false;
        value = value * base + digit;
    }
    *ret = negative ? -value : value;
    return true;
}

static bool number_of_text(struct mp_str text, double *ret);

/* The whole number a field stands for, if it stands for one. */
static bool whole_number(const struct mp_json_field *field, bool pinned, mp_int128 *ret)
{
    switch (field->kind) {
    case MP_JSON_FALSE:
    case MP_JSON_TRUE:
        *ret = field->kind == MP_JSON_TRUE;
        return true;
    case MP_JSON_INT:
        *ret = field->i64;
        return true;
    case MP_JSON_BIGINT:
        return integer_of_text(field->text, false, ret);
    case MP_JSON_STRING:
        return integer_of_text(field->text, pinned, ret);
    case MP_JSON_DOUBLE: /* its digits: as a double 9007199254740993.0 is another, 1e-400 is 0 */
        return field->f64 == trunc(field->f64) && mp_decimal_of_text(field->text, 38, 0, ret);
    default:
        return false;
    }
}

static enum mp_cast cast_integer(const struct mp_json_field *field, struct mp_type type,
                                 bool pinned, void *ret)
{
    struct integer_range range = integer_range(type.id);
    mp_int128 value;

    if (!whole_number(field, pinned, &value) || value < range.min || value > range.max)
        return MP_CAST_REFUSED;
    store(value, mp_type_width(type), ret);
    return MP_CAST_OK;
}

/* The text of a number to its end, by the C library, which rounds correctly. */
static bool number_of_text(struct mp_str text, double *ret)
{
    char copy[512], *end;
    double value;

    if (text.size == 0 || text.size >= sizeof(copy) || memchr(text.data, 'x', text.size) ||
        memchr(text.data, 'X', text.size) || memchr(text.data, '(', text.size) ||
        (unsigned char)text.data[0] <= ' ')
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    value = strtod(copy, &end);
    if (end != copy + text.size)
        return false;
    /* 1e999 is not infinity; "inf" and "infinity" are spelled with a letter i */
    if (isinf(value) && !memchr(text.data, 'i', text.size) && !memchr(text.data, 'I', text.size))
        return false;
    *ret = value;
    return true;
}

/* Whether a text that was read as the double is an integer that it is not. */
static bool integer_is_rounded(struct mp_str text, double value)
{
    bool sign = text.size && (text.data[0] == '-' || text.data[0] == '+');
    mp_int128 exact;

    for (size_t at = sign; at < text.size; at++)
        if (text.data[at] < '0' || text.data[at] > '9')
            return false;
    if (sign && text.data[0] == '+')
        text = mp_str_n(text.data + 1, text.size - 1);
    return fabs(value) >= 0x1p126 || !integer_of_text(text, false, &exact) ||
           (mp_int128)value != exact;
}

static enum mp_cast cast_double(const struct mp_json_field *field, struct mp_type type, bool pinned,
                                void *ret)
{
    enum mp_cast cast = MP_CAST_OK;
    double value;

    (void)type, (void)pinned;
    switch (field->kind) {
    case MP_JSON_FALSE:
    case MP_JSON_TRUE:
        value = field->kind == MP_JSON_TRUE;
        break;
    case MP_JSON_INT:
        value = (double)field->i64;
        if ((mp_int128)value != field->i64)
            cast = MP_CAST_ROUNDED;
        break;
    case MP_JSON_DOUBLE:
        value = field->f64;
        break;
    case MP_JSON_BIGINT:
    case MP_JSON_STRING:
        if (!number_of_text(field->text, &value))
            return MP_CAST_REFUSED;
        if (integer_is_rounded(field->text, value))
            cast = MP_CAST_ROUNDED;
        break;
    default:
        return MP_CAST_REFUSED;
    }
    memcpy(ret, &value, sizeof(value));
    return cast;
}

/* A float holds a number that it is exactly, or that its own shortest text names: 0.1 reads back
 * as 0.1. */
static enum mp_cast cast_float(const struct mp_json_field *field, struct mp_type type, bool pinned,
                               void *ret)
{
    char text[MP_NUMBER_TEXT];
    double wide;
    float value;

    if (cast_double(field, type, pinned, &wide) != MP_CAST_OK)
        return MP_CAST_REFUSED;
    value = (float)wide;
    if (isinf(value) && !isinf(wide))
        return MP_CAST_REFUSED;
    mp_float_text(value, text);
    if (!isnan(wide) && (double)value != wide && strtod(text, NULL) != wide)
        return MP_CAST_REFUSED;
    memcpy(ret, &value, sizeof(value));
    return MP_CAST_OK;
}

/* HUGEINT lies as a double: whole numbers that a double holds exactly. */
static enum mp_cast cast_int128(const struct mp_json_field *field, struct mp_type type, bool pinned,
                                void *ret)
{
    mp_int128 whole;
    double value;

    (void)type;
    if (!whole_number(field, pinned, &whole))
        return MP_CAST_REFUSED;
    value = (double)whole;
    if (fabs(value) >= 0x1p126 || (mp_int128)value != whole)
        return MP_CAST_REFUSED;
    memcpy(ret, &value, sizeof(value));
    return MP_CAST_OK;
}

static enum mp_cast cast_bool(const struct mp_json_field *field, struct mp_type type, bool pinned,
                              void *ret)
{
    static const struct {
        struct mp_str text;
        bool value;
    } texts[] = {{MP_STR_INIT("true"), true},
                 {MP_STR_INIT("false"), false},
                 {MP_STR_INIT("1"), true},
                 {MP_STR_INIT("0"), false}};
    double number = field->kind == MP_JSON_INT ? (double)field->i64 : field->f64;
    bool value = false, known = false;
    mp_int128 whole;

    (void)type;
    if (field->kind == MP_JSON_TRUE || field->kind == MP_JSON_FALSE) {
        value = field->kind == MP_JSON_TRUE;
        known = true;
    } else if (field->kind == MP_JSON_INT || field->kind == MP_JSON_DOUBLE) {
        value = number != 0;
        known = pinned || (whole_number(field, false, &whole) && (whole == 0 || whole == 1));
    } else if (field->kind == MP_JSON_BIGINT) {
        value = known = pinned;
    } else if (field->kind == MP_JSON_STRING) {
        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts) && !known; i++) {
            value = texts[i].value;
            known = mp_str_eq_fold(field->text, texts[i].text);
        }
    }
    *(unsigned char *)ret = value;
    return known ? MP_CAST_OK : MP_CAST_REFUSED;
}

bool mp_decimal_of_text(struct mp_str text, unsigned precision, unsigned scale, mp_int128 *ret)
{
    bool negative = text.size && text.data[0] == '-', point = false, any = false;
    int64_t power = 0;              /* of the last digit taken, before the exponent */
    mp_int128 value = 0, tenth = 1; /* a value below it has room for one digit more */
    size_t at = negative;
    int64_t dropped_zeros = 0;

    for (unsigned i = 1; i < precision; i++)
        tenth *= 10;
    for (; at < text.size; at++) {
        unsigned digit = (unsigned)(unsigned char)text.data[at] - '0';

        if (text.data[at] == '.' && !point) {
            point = true;
        } else if (digit > 9) {
            break;
        } else {
            any = true;
            power -= point;
            /* zeros at the end wait until a digit follows, so that 1.000... fits */
            if (digit == 0 && value) {
                dropped_zeros++;
                continue;
            }
            for (; dropped_zeros && value < tenth; dropped_zeros--)
                value *= 10;
            if (dropped_zeros || value >= tenth)
                return false;
            value = value * 10 + digit;
        }
    }
    power += dropped_zeros;
    if (any && at < text.size && (text.data[at] | 32) == 'e') {
        const int64_t most = 1000000000000000; /* beyond any text's digits */
        int64_t exponent = 0;
        bool minus = at + 1 < text.size && text.data[at + 1] == '-';

        at += 1 + (at + 1 < text.size && (minus || text.data[at + 1] == '+'));
        any = at < text.size;
        for (; at < text.size && text.data[at] >= '0' && text.data[at] <= '9'; at++)
            exponent = exponent < most ? exponent * 10 + (text.data[at] - '0') : exponent;
        power += minus ? -exponent : exponent;
    }
    if (!any || at < text.size)
        return false;
    power += scale;
    if (value == 0)
        power = 0;
    for (; power > 0 && value < tenth; power--)
        value *= 10;
    for (; power < 0 && value % 10 == 0; power++)
        value /= 10;
    if (power != 0)
        return false;
    *ret = negative ? -value : value;
    return true;
}

static enum mp_cast cast_decimal(const struct mp_json_field *field, struct mp_type type,
                                 bool pinned, void *ret)
{
    struct mp_str text = field->text;
    mp_int128 value;

    (void)pinned;
    if (field->kind == MP_JSON_TRUE || field->kind == MP_JSON_FALSE)
        text = field->kind == MP_JSON_TRUE ? MP_STR("1") : MP_STR("0");
    else if (field->kind == MP_JSON_NESTED)
        return MP_CAST_REFUSED;
    if (!mp_decimal_of_text(text, type.precision, type.scale, &value))
        return MP_CAST_REFUSED;
    store(value, mp_type_width(type), ret);
    return MP_CAST_OK;
}

static enum mp_cast cast_date(const struct mp_json_field *field, struct mp_type type, bool pinned,
                              void *ret)
{
    int32_t days;

    (void)type, (void)pinned;
    if (field->kind != MP_JSON_STRING || !mp_date_of_text(field->text, &days))
        return MP_CAST_REFUSED;
    memcpy(ret, &days, sizeof(days));
    return MP_CAST_OK;
}

static enum mp_cast cast_time(const struct mp_json_field *field, struct mp_type type, bool pinned,
                              void *ret)
{
    int64_t us;

    (void)type, (void)pinned;
    if (field->kind != MP_JSON_STRING || !mp_time_of_text(field->text, &us))
        return MP_CAST_REFUSED;
    memcpy(ret, &us, sizeof(us));
    return MP_CAST_OK;
}

/* TIMESTAMP and TIMESTAMPTZ cut text to microseconds and take integers as microseconds; the other
 * units take text that they hold exactly. */
static enum mp_cast cast_timestamp(const struct mp_json_field *field, struct mp_type type,
                                   bool pinned, void *ret)
{
    bool micros = type.id == MP_TYPE_TIMESTAMP || type.id == MP_TYPE_TIMESTAMPTZ;
    struct mp_timestamp at = {0};
    int64_t value;

    (void)pinned;
    if (field->kind == MP_JSON_INT && micros) {
        at.us = field->i64;
        if (at.us < MP_TIMESTAMP_US_MIN || at.us > MP_TIMESTAMP_US_MAX)
            return MP_CAST_REFUSED;
    } else if (field->kind != MP_JSON_STRING || !mp_timestamp_of_text(field->text, &at)) {
        return MP_CAST_REFUSED;
    }
    if (at.finer && !micros)
        return MP_CAST_REFUSED;
    value = at.us;
    if ((type.id == MP_TYPE_TIMESTAMP_S || type.id == MP_TYPE_TIMESTAMP_S_MS) &&
        (at.us % 1000000 || at.below_ns))
        return MP_CAST_REFUSED;
    if (type.id == MP_TYPE_TIMESTAMP_MS || type.id == MP_TYPE_TIMESTAMP_S_MS) {
        if (at.us % 1000 || at.below_ns)
            return MP_CAST_REFUSED;
        value = at.us / 1000;
    }
    if (type.id == MP_TYPE_TIMESTAMP_NS && (__builtin_mul_overflow(at.us, 1000, &value) ||
                                            __builtin_add_overflow(value, at.below_ns, &value)))
        return MP_CAST_REFUSED;
    memcpy(ret, &value, sizeof(value));
    return MP_CAST_OK;
}

static int hex_digit(char c)
{
    unsigned char lower = mp_ascii_lower((unsigned char)c);

    if (lower >= '0' && lower <= '9')
        return lower - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool mp_uuid_of_text(struct mp_str text, unsigned char ret[16])
{
    bool dashes;
    size_t at = 0;

    if (mp_str_starts(text, MP_STR("urn:uuid:")))
        text = mp_str_n(text.data + 9, text.size - 9);
    else if (text.size >= 2 && text.data[0] == '{' && text.data[text.size - 1] == '}')
        text = mp_str_n(text.data + 1, text.size - 2);
    dashes = text.size == 36;
    if (!dashes && text.size != 32)
        return false;
    for (unsigned i = 0; i < 16; i++) {
        int high, low;

        if (dashes && (i == 4 || i == 6 || i == 8 || i == 10) && text.data[at++] != '-')
            return false;
        high = hex_digit(text.data[at]);
        low = hex_digit(text.data[at + 1]);
        if (high < 0 || low < 0)
            return false;
        ret[i] = (unsigned char)(high << 4 | low);
        at += 2;
    }
    return true;
}

static enum mp_cast cast_uuid(const struct mp_json_field *field, struct mp_type type, bool pinned,
                              void *ret)
{
    (void)type, (void)pinned;
    if (field->kind != MP_JSON_STRING || !mp_uuid_of_text(field->text, ret))
        return MP_CAST_REFUSED;
    return MP_CAST_OK;
}

enum mp_cast mp_cast_fixed(const struct mp_json_field *field, struct mp_type type, bool pinned,
                           void *ret)
{
    static enum mp_cast (*const casts[MP_TYPE_COUNT])(const struct mp_json_field *, struct mp_type,
                                                      bool, void *) = {
        [MP_TYPE_BOOL] = cast_bool,
        [MP_TYPE_INT8] = cast_integer,
        [MP_TYPE_INT16] = cast_integer,
        [MP_TYPE_INT32] = cast_integer,
        [MP_TYPE_INT64] = cast_integer,
        [MP_TYPE_UINT8] = cast_integer,
        [MP_TYPE_UINT16] = cast_integer,
        [MP_TYPE_UINT32] = cast_integer,
        [MP_TYPE_UINT32_LONG] = cast_integer,
        [MP_TYPE_UINT64] = cast_integer,
        [MP_TYPE_INT128] = cast_int128,
        [MP_TYPE_FLOAT] = cast_float,
        [MP_TYPE_DOUBLE] = cast_double,
        [MP_TYPE_DECIMAL] = cast_decimal,
        [MP_TYPE_DATE] = cast_date,
        [MP_TYPE_TIME] = cast_time,
        [MP_TYPE_TIMESTAMP_S] = cast_timestamp,
        [MP_TYPE_TIMESTAMP_S_MS] = cast_timestamp,
        [MP_TYPE_TIMESTAMP_MS] = cast_timestamp,
        [MP_TYPE_TIMESTAMP] = cast_timestamp,
        [MP_TYPE_TIMESTAMP_NS] = cast_timestamp,
        [MP_TYPE_TIMESTAMPTZ] = cast_timestamp,
        [MP_TYPE_UUID] = cast_uuid,
    };

    assert(field->kind != MP_JSON_NULL);
    if (type.id == MP_TYPE_VARIANT || type.id == MP_TYPE_OTHER)
        return MP_CAST_REFUSED;
    assert(casts[type.id]);
    return casts[type.id](field, type, pinned, ret);
}

struct mp_str mp_cast_text(const struct mp_json_field *field, char *scratch)
{
    switch (field->kind) {
    case MP_JSON_FALSE:
        return MP_STR("false");
    case MP_JSON_TRUE:
        return MP_STR("true");
    case MP_JSON_INT:
        return mp_str_n(scratch, mp_i64_text(field->i64, scratch));
    case MP_JSON_DOUBLE:
        return mp_str_n(scratch, mp_double_text(field->f64, scratch));
    default:
        assert(field->kind != MP_JSON_NULL);
        return field->text;
    }
}

void mp_cast_rescue(const struct mp_json_field *field, struct mp_buf *ret)
{
    switch (field->kind) {
    case MP_JSON_NULL:
        mp_buf_add_c(ret, "null");
        break;
    case MP_JSON_FALSE:
    case MP_JSON_TRUE:
        mp_buf_add_c(ret, field->kind == MP_JSON_TRUE ? "true" : "false");
        break;
    case MP_JSON_STRING:
        mp_buf_add_json(ret, field->text);
        break;
    default:
        mp_buf_add_str(ret, field->text);
        break;
    }
}
