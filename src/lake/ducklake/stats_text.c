#include "lake/ducklake/stats_text.h"
#include "lake/ducklake/time.h"
#include "lake/ducklake/utf8.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_BOUND_MAX 256u

static int64_t load_i64(struct mp_str bytes)
{
    uint64_t value = 0;

    for (size_t i = bytes.size; i-- > 0;)
        value = value << 8 | (unsigned char)bytes.data[i];
    if (bytes.size < 8 && (unsigned char)bytes.data[bytes.size - 1] & 0x80)
        value |= ~(uint64_t)0 << (8 * bytes.size);
    return (int64_t)value;
}

static bool add_signed(struct mp_buf *ret, struct mp_type type, struct mp_str bytes)
{
    (void)type;
    mp_buf_printf(ret, "%lld", (long long)load_i64(bytes));
    return true;
}

static bool add_unsigned(struct mp_buf *ret, struct mp_type type, struct mp_str bytes)
{
    uint64_t value = (uint64_t)load_i64(bytes);

    (void)type;
    if (bytes.size < 8)
        value &= ((uint64_t)1 << (8 * bytes.size)) - 1;
    mp_buf_printf(ret, "%llu", (unsigned long long)value);
    return true;
}

static bool add_double(struct mp_buf *ret, double value)
{
    char text[40];

    if (isnan(value))
        return false; /* never a bound */
    if (isinf(value)) {
        mp_buf_add_c(ret, value < 0 ? "-inf" : "inf");
        return true;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    mp_buf_add_c(ret, text);
    if (!strpbrk(text, ".e"))
        mp_buf_add_c(ret, ".0");
    return true;
}

static bool add_float(struct mp_buf *ret, struct mp_type type, struct mp_str bytes)
{
    double wide;
    float narrow;

    if (type.id == MP_TYPE_DOUBLE) {
        memcpy(&wide, bytes.data, sizeof(wide));
        return add_double(ret, wide);
    }
    memcpy(&narrow, bytes.data, sizeof(narrow));
    return add_double(ret, (double)narrow);
}

/* Digits of a 128-bit magnitude, most significant byte first; gives the count. */
static int digits_of(unsigned char magnitude[16], char digits[40])
{
    int count = 0;
    bool more = true;

    while (more) {
        unsigned rest = 0;

        more = false;
        for (int i = 0; i < 16; i++) {
            unsigned part = rest << 8 | magnitude[i];

            magnitude[i] = (unsigned char)(part / 10);
            rest = part % 10;
            more = more || magnitude[i];
        }
        digits[count++] = (char)('0' + rest);
    }
    return count; /* last digit first */
}

static bool add_decimal(struct mp_buf *ret, struct mp_type type, struct mp_str bytes)
{
    unsigned char wide[16];
    char digits[40];
    bool negative;
    int count;

    if (bytes.size == 16) {
        memcpy(wide, bytes.data, 16);
    } else {
        int64_t value = load_i64(bytes);

        for (int i = 0; i < 16; i++)
            wide[i] =
                i < 8 ? (value < 0 ? 0xff : 0) : (unsigned char)((uint64_t)value >> (8 * (15 - i)));
    }
    negative = wide[0] & 0x80;
    if (negative) {
        unsigned carry = 1;

        for (int i = 15; i >= 0; i--) {
            carry += (unsigned char)~wide[i];
            wide[i] = (unsigned char)carry;
            carry >>= 8;
        }
        mp_buf_add_byte(ret, '-');
    }
    count = digits_of(wide, digits);
    while (count <= type.scale && count < (int)sizeof(digits))
        digits[count++] = '0';
    while (count-- > 0) {
        mp_buf_add_byte(ret, digits[count]);
        if (count > 0 && count == type.scale)
            mp_buf_add_byte(ret, '.');
    }
    return true;
}

static bool add_date(struct mp_buf *ret, struct mp_type type, struct mp_str bytes)
{
    char text[MP_DL_TIME_TEXT];

    (void)type;
    if (!mp_dl_date_text(load_i64(bytes), text))
        return false;
    mp_buf_add_c(ret, text);
    return true;
}

static bool add_time(struct mp_buf *ret, struct mp_type type, struct mp_str bytes)
{
    char text[MP_DL_TIME_TEXT];
    int64_t units = load_i64(bytes);

    (void)type;
    if (units < 0)
        return false;
    mp_dl_clock_text(units, 6, text);
    mp_buf_add_c(ret, text);
    return true;
}

static bool add_stamp(struct mp_buf *ret, struct mp_type type, struct mp_str bytes)
{
    unsigned digits = type.id == MP_TYPE_TIMESTAMP_MS ? 3 : type.id == MP_TYPE_TIMESTAMP_NS ? 9 : 6;
    char text[MP_DL_TIME_TEXT];
    int64_t units = load_i64(bytes);

    /* The extension reads no text of the first day that nanoseconds reach, nor of infinity. A
     * bound that it cannot read drops the file. */
    if (digits == 9 && (units < -9223286400000000000 || units == INT64_MAX))
        return false;
    if (!mp_dl_stamp_text(units, digits, text))
        return false;
    mp_buf_add_c(ret, text);
    if (type.id == MP_TYPE_TIMESTAMPTZ)
        mp_buf_add_c(ret, "+00");
    return true;
}

static void add_hex(struct mp_buf *ret, struct mp_str bytes, const char *hex)
{
    for (size_t i = 0; i < bytes.size; i++) {
        mp_buf_add_byte(ret, hex[(unsigned char)bytes.data[i] >> 4]);
        mp_buf_add_byte(ret, hex[(unsigned char)bytes.data[i] & 15]);
    }
}

static bool add_uuid(struct mp_buf *ret, struct mp_type type, struct mp_str bytes)
{
    static const char groups[] = {4, 2, 2, 2, 6};
    size_t at = 0;

    (void)type;
    for (size_t i = 0; i < sizeof(groups); i++) {
        if (i)
            mp_buf_add_byte(ret, '-');
        add_hex(ret, mp_str_n(bytes.data + at, (size_t)groups[i]), "0123456789abcdef");
        at += (size_t)groups[i];
    }
    return true;
}

/* Fixed types: how many bytes a bound may have, and its text. */
static const struct {
    uint8_t size, size_wide;
    bool (*add)(struct mp_buf *ret, struct mp_type type, struct mp_str bytes);
} fixed[MP_TYPE_COUNT] = {
    [MP_TYPE_BOOL] = {1, 1, add_unsigned},     [MP_TYPE_INT8] = {4, 4, add_signed},
    [MP_TYPE_INT16] = {4, 4, add_signed},      [MP_TYPE_INT32] = {4, 4, add_signed},
    [MP_TYPE_INT64] = {8, 8, add_signed},      [MP_TYPE_UINT8] = {4, 4, add_unsigned},
    [MP_TYPE_UINT16] = {4, 4, add_unsigned},   [MP_TYPE_UINT32] = {4, 4, add_unsigned},
    [MP_TYPE_UINT64] = {8, 8, add_unsigned},   [MP_TYPE_FLOAT] = {4, 4, add_float},
    [MP_TYPE_DOUBLE] = {8, 8, add_float},      [MP_TYPE_DECIMAL] = {4, 16, add_decimal},
    [MP_TYPE_DATE] = {4, 4, add_date},         [MP_TYPE_TIME] = {8, 8, add_time},
    [MP_TYPE_TIMESTAMP_S] = {8, 8, add_stamp}, [MP_TYPE_TIMESTAMP_MS] = {8, 8, add_stamp},
    [MP_TYPE_TIMESTAMP] = {8, 8, add_stamp},   [MP_TYPE_TIMESTAMP_NS] = {8, 8, add_stamp},
    [MP_TYPE_TIMESTAMPTZ] = {8, 8, add_stamp}, [MP_TYPE_UUID] = {16, 16, add_uuid},
};

/* Adds the next character in code point order, which is byte order. False: it was the last. */
static bool raise_character(struct mp_buf *ret, struct mp_str character)
{
    uint32_t point;
    char bytes[4];

    mp_dl_utf8_read(character, &point);
    if (point == 0x10ffff)
        return false;
    mp_buf_add(ret, bytes, mp_dl_utf8_write(point == 0xd7ff ? 0xe000 : point + 1, bytes));
    return true;
}

static bool add_text(struct mp_buf *ret, struct mp_str bytes, bool upper)
{
    size_t starts[TEXT_BOUND_MAX], count = 0, used = 0, size;
    uint32_t point;

    for (size_t at = 0; at < bytes.size; at += size) {
        size = mp_dl_utf8_read(mp_str_n(bytes.data + at, bytes.size - at), &point);
        if (size == 0 || point == 0)
            return false;
        if (at + size <= TEXT_BOUND_MAX) {
            starts[count++] = at;
            used = at + size;
        }
    }
    if (used == bytes.size || !upper) {
        mp_buf_add(ret, bytes.data, used);
        return true;
    }
    while (count-- > 0) {
        size_t before = ret->size;

        mp_buf_add(ret, bytes.data, starts[count]);
        if (raise_character(ret, mp_str_n(bytes.data + starts[count], used - starts[count])))
            return true;
        ret->size = before;
        used = starts[count];
    }
    return false;
}

static bool add_blob(struct mp_buf *ret, struct mp_str bytes, bool upper)
{
    static const char hex[] = "0123456789ABCDEF";
    unsigned char copy[TEXT_BOUND_MAX];
    size_t size = TEXT_BOUND_MAX;

    if (bytes.size <= TEXT_BOUND_MAX) {
        add_hex(ret, bytes, hex);
        return true;
    }
    memcpy(copy, bytes.data, size);
    while (upper && size > 0 && copy[size - 1] == 0xff)
        size--;
    if (size == 0)
        return false;
    if (upper)
        copy[size - 1]++;
    add_hex(ret, mp_str_n(copy, size), hex);
    return true;
}

bool mp_dl_bound_text(struct mp_buf *ret, const struct mp_column_stats *stats, bool upper)
{
    struct mp_str bytes = upper ? stats->max : stats->min;
    uint8_t id = stats->type.id;

    if (!stats->has_bounds)
        return false;
    if (id == MP_TYPE_VARCHAR || id == MP_TYPE_JSON)
        return add_text(ret, bytes, upper);
    if (id == MP_TYPE_BLOB)
        return add_blob(ret, bytes, upper);
    if (!fixed[id].add)
        return false;
    assert(bytes.size >= fixed[id].size && bytes.size <= fixed[id].size_wide);
    return fixed[id].add(ret, stats->type, bytes);
}
