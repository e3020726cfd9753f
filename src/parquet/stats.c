/* parquet/stats.c - smallest and largest values, and bounds that may stand for them.
 *
 * Three sizes of the same two values: the page keeps pointers while its values are at hand, the
 * chunk keeps the first MP_STATS_TEXT_MAX bytes of texts, and a bound is what is written, cut to
 * what its reader is to carry. A cut lower bound is a prefix; a cut upper bound is a prefix whose
 * last code point (or byte) was made larger, and there is none where nothing can be made larger.
 *
 * NaN is never a bound, and a chunk that has one shows no bounds to readers of the file at all:
 * some take bounds for all values and NaN for the largest, and would skip the chunk for "x > 5" or
 * take all of it for "x = 1". The catalog gets them, with the number of NaNs. Since -0.0 and +0.0
 * are equal, a zero that is smallest is written as -0.0 and one that is largest as +0.0.
 *
 * After  parquet.thrift: Statistics, ColumnOrder (TypeDefinedOrder), ColumnIndex.
 */
#include "parquet/parquet_priv.h"

#include "base/utf8.h"

enum { ALIKE_MAX = 64 }; /* bytes that mp_bounds_add_text is willing to compare */

/* ---- values side by side --------------------------------------------------------------------- */

/* Loops that the compiler can follow: two running extremes, no branch on data. */
#define EXTREMES_OF(name, T)                                                                       \
    static void extremes_##name(struct mp_bounds *bounds, const char *values, uint32_t count)      \
    {                                                                                              \
        T low, high, value;                                                                        \
                                                                                                   \
        memcpy(&low, bounds->has ? bounds->fixed[0] : values, sizeof(T));                          \
        memcpy(&high, bounds->has ? bounds->fixed[1] : values, sizeof(T));                         \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            memcpy(&value, values + i * sizeof(T), sizeof(T));                                     \
            low = value < low ? value : low;                                                       \
            high = value > high ? value : high;                                                    \
        }                                                                                          \
        memcpy(bounds->fixed[0], &low, sizeof(T));                                                 \
        memcpy(bounds->fixed[1], &high, sizeof(T));                                                \
        bounds->has = true;                                                                        \
    }

EXTREMES_OF(bool, uint8_t)
EXTREMES_OF(i32, int32_t)
EXTREMES_OF(u32, uint32_t)
EXTREMES_OF(i64, int64_t)
EXTREMES_OF(u64, uint64_t)

/* The same, past NaNs, which compare false with everything. */
#define EXTREMES_OF_FLOATS(name, T)                                                                \
    static void extremes_##name(struct mp_bounds *bounds, const char *values, uint32_t count)      \
    {                                                                                              \
        T low = (T)__builtin_inf(), high = -low, value;                                            \
        uint32_t nans = 0;                                                                         \
                                                                                                   \
        if (bounds->has) {                                                                         \
            memcpy(&low, bounds->fixed[0], sizeof(T));                                             \
            memcpy(&high, bounds->fixed[1], sizeof(T));                                            \
        }                                                                                          \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            memcpy(&value, values + i * sizeof(T), sizeof(T));                                     \
            nans += __builtin_isnan(value) != 0;                                                   \
            low = value < low ? value : low;                                                       \
            high = value > high ? value : high;                                                    \
        }                                                                                          \
        bounds->nans += nans;                                                                      \
        if (nans == count)                                                                         \
            return;                                                                                \
        memcpy(bounds->fixed[0], &low, sizeof(T));                                                 \
        memcpy(bounds->fixed[1], &high, sizeof(T));                                                \
        bounds->has = true;                                                                        \
    }

EXTREMES_OF_FLOATS(f32, float)
EXTREMES_OF_FLOATS(f64, double)

/* IEEE 754 binary16, two bytes: a sign, 5 bits of exponent, 10 of fraction. */
static float half(const char *bytes)
{
    uint16_t bits;
    float value;
    int exponent;

    memcpy(&bits, bytes, sizeof(bits));
    exponent = bits >> 10 & 31;
    value = (float)(bits & 1023);
    if (exponent == 31)
        value = value == 0 ? __builtin_inff() : __builtin_nanf("");
    else
        value = __builtin_ldexpf(exponent ? value + 1024 : value, (exponent ? exponent : 1) - 25);
    return bits >> 15 ? -value : value;
}

static void extremes_f16(struct mp_bounds *bounds, const char *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, values += 2) {
        float value = half(values);

        if (__builtin_isnan(value)) {
            bounds->nans++;
            continue;
        }
        if (!bounds->has || value < half(bounds->fixed[0]))
            memcpy(bounds->fixed[0], values, 2);
        if (!bounds->has || value > half(bounds->fixed[1]))
            memcpy(bounds->fixed[1], values, 2);
        bounds->has = true;
    }
}

static int compare_bytes16(const char *a, const char *b)
{
    return memcmp(a, b, 16);
}

/* Turning the sign bit round makes bytewise order the order of two's complement. */
static int compare_decimal16(const char *a, const char *b)
{
    int first = ((unsigned char)a[0] ^ 0x80) - ((unsigned char)b[0] ^ 0x80);

    return first ? first : memcmp(a, b, 16);
}

static void extremes_16(struct mp_bounds *bounds, const char *values, uint32_t count,
                        int (*compare)(const char *, const char *))
{
    if (!bounds->has && count) {
        memcpy(bounds->fixed[0], values, 16);
        memcpy(bounds->fixed[1], values, 16);
        bounds->has = true;
    }
    for (uint32_t i = 0; i < count; i++, values += 16) {
        if (compare(values, bounds->fixed[0]) < 0)
            memcpy(bounds->fixed[0], values, 16);
        else if (compare(values, bounds->fixed[1]) > 0)
            memcpy(bounds->fixed[1], values, 16);
    }
}

static void extremes_bytes16(struct mp_bounds *bounds, const char *values, uint32_t count)
{
    extremes_16(bounds, values, count, compare_bytes16);
}

static void extremes_decimal16(struct mp_bounds *bounds, const char *values, uint32_t count)
{
    extremes_16(bounds, values, count, compare_decimal16);
}

void mp_bounds_add_fixed(struct mp_bounds *bounds, enum mp_order order, const char *values,
                         uint32_t count)
{
    static void (*const extremes[])(struct mp_bounds *, const char *, uint32_t) = {
        [MP_ORDER_BOOL] = extremes_bool,
        [MP_ORDER_I32] = extremes_i32,
        [MP_ORDER_U32] = extremes_u32,
        [MP_ORDER_I64] = extremes_i64,
        [MP_ORDER_U64] = extremes_u64,
        [MP_ORDER_F32] = extremes_f32,
        [MP_ORDER_F64] = extremes_f64,
        [MP_ORDER_BYTES16] = extremes_bytes16,
        [MP_ORDER_DECIMAL16] = extremes_decimal16,
        [MP_ORDER_F16] = extremes_f16,
    };

    assert(order < sizeof(extremes) / sizeof(*extremes) && extremes[order]);
    if (count)
        extremes[order](bounds, values, count);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static uint32_t alike_bytes(struct mp_str a, struct mp_str b)
{
    size_t limit = a.size < b.size ? a.size : b.size;
    uint32_t same = 0;

    while (same < limit && same < ALIKE_MAX && a.data[same] == b.data[same])
        same++;
    return same;
}

/* Called for the few texts that do not lie strictly between both extremes at first sight. */
void mp_bounds_add_text_slow(struct mp_bounds *bounds, struct mp_str text)
{
    bool less = !bounds->has || mp_str_cmp(text, bounds->text[0]) < 0;
    bool more = !bounds->has || mp_str_cmp(text, bounds->text[1]) > 0;

    if (!less && !more)
        return;
    if (less)
        bounds->text[0] = text;
    if (more)
        bounds->text[1] = text;
    bounds->has = true;
    bounds->alike = alike_bytes(bounds->text[0], bounds->text[1]);
    for (int which = 0; which < 2; which++)
        bounds->head[which] = mp_text_head(bounds->text[which].data + bounds->alike,
                                           bounds->text[which].size - bounds->alike);
}

/* ---- a page's end ---------------------------------------------------------------------------- */

static void sign_zeros_f32(struct mp_bounds *bounds)
{
    for (int which = 0; which < 2; which++) {
        float value;

        memcpy(&value, bounds->fixed[which], sizeof(value));
        if (value == 0) {
            value = which == 0 ? -0.0f : 0.0f;
            memcpy(bounds->fixed[which], &value, sizeof(value));
        }
    }
}

static void sign_zeros_f64(struct mp_bounds *bounds)
{
    for (int which = 0; which < 2; which++) {
        double value;

        memcpy(&value, bounds->fixed[which], sizeof(value));
        if (value == 0) {
            value = which == 0 ? -0.0 : 0.0;
            memcpy(bounds->fixed[which], &value, sizeof(value));
        }
    }
}

static void sign_zeros_f16(struct mp_bounds *bounds)
{
    for (int which = 0; which < 2; which++)
        if (half(bounds->fixed[which]) == 0)
            memcpy(bounds->fixed[which], which == 0 ? "\0\x80" : "\0\0", 2);
}

void mp_bounds_close(struct mp_bounds *bounds, enum mp_order order)
{
    if (bounds->has && order == MP_ORDER_F16)
        sign_zeros_f16(bounds);
    if (bounds->has && order == MP_ORDER_F32)
        sign_zeros_f32(bounds);
    if (bounds->has && order == MP_ORDER_F64)
        sign_zeros_f64(bounds);
}

struct mp_str mp_bounds_value(const struct mp_bounds *bounds, struct mp_layout layout, int which)
{
    assert(bounds->has);
    return layout.width ? mp_str_n(bounds->fixed[which], layout.width) : bounds->text[which];
}

/* ---- order of single values ------------------------------------------------------------------ */

#define COMPARE_AS(name, T)                                                                        \
    static int compare_##name(struct mp_str a, struct mp_str b)                                    \
    {                                                                                              \
        T x, y;                                                                                    \
                                                                                                   \
        memcpy(&x, a.data, sizeof(T));                                                             \
        memcpy(&y, b.data, sizeof(T));                                                             \
        return (x > y) - (x < y);                                                                  \
    }

COMPARE_AS(bool, uint8_t)
COMPARE_AS(i32, int32_t)
COMPARE_AS(u32, uint32_t)
COMPARE_AS(i64, int64_t)
COMPARE_AS(u64, uint64_t)
COMPARE_AS(f32, float)
COMPARE_AS(f64, double)

static int compare_f16(struct mp_str a, struct mp_str b)
{
    float x = half(a.data), y = half(b.data);

    return (x > y) - (x < y);
}

static int compare_decimal(struct mp_str a, struct mp_str b)
{
    return compare_decimal16(a.data, b.data);
}

int mp_order_compare(struct mp_layout layout, struct mp_str a, struct mp_str b)
{
    static int (*const compare[])(struct mp_str, struct mp_str) = {
        [MP_ORDER_BOOL] = compare_bool,         [MP_ORDER_I32] = compare_i32,
        [MP_ORDER_U32] = compare_u32,           [MP_ORDER_I64] = compare_i64,
        [MP_ORDER_U64] = compare_u64,           [MP_ORDER_F32] = compare_f32,
        [MP_ORDER_F64] = compare_f64,           [MP_ORDER_BYTES16] = mp_str_cmp,
        [MP_ORDER_DECIMAL16] = compare_decimal, [MP_ORDER_UTF8] = mp_str_cmp,
        [MP_ORDER_BINARY] = mp_str_cmp,         [MP_ORDER_F16] = compare_f16,
    };

    assert(layout.order < sizeof(compare) / sizeof(*compare));
    assert(!layout.width || (a.size == layout.width && b.size == layout.width));
    return compare[layout.order](a, b);
}

/* ---- extremes -------------------------------------------------------------------------------- */

static struct mp_str kept_of(const struct mp_extreme *extreme)
{
    return mp_str_n(extreme->data, extreme->kept);
}

static void keep(struct mp_extreme *extreme, struct mp_str value, uint64_t size)
{
    extreme->kept = value.size < MP_STATS_TEXT_MAX ? (uint32_t)value.size : MP_STATS_TEXT_MAX;
    extreme->size = size;
    memcpy(extreme->data, value.data, extreme->kept);
}

/* Two values whose kept bytes are equal bound each other up to what any bound can show; the longer
 * one counts as larger. */
static void consider(struct mp_extreme *extreme, struct mp_layout layout, int which,
                     struct mp_str value, uint64_t size)
{
    int order;

    if (value.size > MP_STATS_TEXT_MAX)
        value.size = MP_STATS_TEXT_MAX;
    order = mp_order_compare(layout, value, kept_of(extreme));
    if (order == 0)
        order = (size > extreme->size) - (size < extreme->size);
    if (which == 0 ? order < 0 : order > 0)
        keep(extreme, value, size);
}

void mp_extremes_add(struct mp_extremes *extremes, struct mp_layout layout,
                     const struct mp_bounds *bounds)
{
    if (!bounds->has)
        return;
    for (int which = 0; which < 2; which++) {
        struct mp_str value = mp_bounds_value(bounds, layout, which);

        if (extremes->has)
            consider(&extremes->of[which], layout, which, value, value.size);
        else
            keep(&extremes->of[which], value, value.size);
    }
    extremes->has = true;
}

void mp_extremes_merge(struct mp_extremes *extremes, struct mp_layout layout,
                       const struct mp_extremes *other)
{
    if (!other->has)
        return;
    for (int which = 0; which < 2; which++) {
        const struct mp_extreme *theirs = &other->of[which];

        if (extremes->has)
            consider(&extremes->of[which], layout, which, kept_of(theirs), theirs->size);
        else
            keep(&extremes->of[which], kept_of(theirs), theirs->size);
    }
    extremes->has = true;
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* Where the last code point of the text begins; size where there is none (not UTF-8). */
static uint32_t last_code_point(const char *text, uint32_t size)
{
    for (uint32_t back = 1; back <= 4 && back <= size; back++)
        if (((unsigned char)text[size - back] & 0xc0) != 0x80)
            return size - back;
    return size;
}

/* The longest prefix of whole code points in the first `size` bytes of a longer text. */
static bool cut_utf8(const char *text, uint32_t size, uint32_t *ret)
{
    uint32_t at = last_code_point(text, size), point;
    size_t bytes;

    if (at == size)
        return false;
    bytes = mp_utf8_read(mp_str_n(text + at, size - at), &point);
    if (bytes && at + bytes < size)
        return false;
    *ret = bytes ? size : at;
    return true;
}

/* Makes the prefix larger than everything that begins with it, within `max` bytes. */
static bool raise_utf8(char *text, uint32_t size, uint32_t max, uint32_t *ret)
{
    while (size) {
        uint32_t at = last_code_point(text, size), point;
        size_t bytes = mp_utf8_read(mp_str_n(text + at, size - at), &point);
        char raised[4];

        if (!bytes || at + bytes != size)
            return false;
        point++;
        if (point >= 0xd800 && point < 0xe000)
            point = 0xe000; /* surrogates are no code points of UTF-8 */
        if (point <= 0x10ffff) {
            bytes = mp_utf8_write(point, raised);
            if (at + bytes <= max) {
                memcpy(text + at, raised, bytes);
                *ret = at + (uint32_t)bytes;
                return true;
            }
        }
        size = at;
    }
    return false;
}

static bool raise_bytes(char *bytes, uint32_t size, uint32_t *ret)
{
    for (; size; size--)
        if ((unsigned char)bytes[size - 1] != 0xff) {
            bytes[size - 1]++;
            *ret = size;
            return true;
        }
    return false;
}

void mp_bound_make(struct mp_layout layout, int which, struct mp_str head, uint64_t size,
                   uint32_t max, struct mp_bound *ret)
{
    uint32_t cut = max;

    assert(max <= MP_STATS_TEXT_MAX && (head.size == size || head.size >= max));
    ret->has = ret->exact = true;
    ret->size = (uint32_t)(size < max ? size : max);
    memcpy(ret->data, head.data, ret->size);
    if (size <= max)
        return;
    assert(layout.width == 0);
    ret->exact = false;
    if (layout.order == MP_ORDER_UTF8)
        ret->has = cut_utf8(ret->data, ret->size, &cut);
    ret->size = cut;
    if (ret->has && which == 1)
        ret->has = layout.order == MP_ORDER_UTF8 ? raise_utf8(ret->data, ret->size, max, &ret->size)
                                                 : raise_bytes(ret->data, ret->size, &ret->size);
}
