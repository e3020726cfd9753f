/* parquet/convert.c - values of a file -> values of a column as the writer takes them.
 *
 * A file may be older than its column's type (a promotion), or another writer's, who has decimals
 * as bytes or times in another unit. What is allowed loses nothing: each value comes out as the
 * same value, or the file is refused (its type has values that the column's type lacks), or, where
 * only some values do not fit, the file is bad at the first that does not.
 *
 * After  Parquet "LogicalTypes"; hoglake's promotions.
 */
#include "parquet/merge_priv.h"

/* ---- functions: how many values were made, all of them or those before one that does not fit --
 */

static uint32_t copy(const struct mp_convert *how, const char *from, uint32_t count, char *to)
{
    memcpy(to, from, (size_t)count * how->to_width);
    return count;
}

#define WIDEN(name, FROM, TO)                                                                      \
    static uint32_t name(const struct mp_convert *how, const char *from, uint32_t count, char *to) \
    {                                                                                              \
        (void)how;                                                                                 \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            FROM narrow;                                                                           \
            TO wide;                                                                               \
                                                                                                   \
            memcpy(&narrow, from + (size_t)i * sizeof(FROM), sizeof(FROM));                        \
            wide = narrow;                                                                         \
            memcpy(to + (size_t)i * sizeof(TO), &wide, sizeof(TO));                                \
        }                                                                                          \
        return count;                                                                              \
    }

WIDEN(widen_i32, int32_t, int64_t)
WIDEN(widen_u32, uint32_t, int64_t)
WIDEN(widen_float, float, double)

/* To a finer unit: times 1000. */
static uint32_t finer(const struct mp_convert *how, const char *from, uint32_t count, char *to)
{
    for (uint32_t i = 0; i < count; i++) {
        int64_t value = mp_value_i64(mp_str_n(from + (size_t)i * how->from_width, how->from_width));

        if (__builtin_mul_overflow(value, (int64_t)1000, &value))
            return i;
        memcpy(to + (size_t)i * 8, &value, 8);
    }
    return count;
}

/* To a coarser unit, where that loses nothing. */
static uint32_t coarser(const struct mp_convert *how, const char *from, uint32_t count, char *to)
{
    (void)how;
    for (uint32_t i = 0; i < count; i++) {
        int64_t value = mp_value_i64(mp_str_n(from + (size_t)i * 8, 8));

        if (value % 1000)
            return i;
        value /= 1000;
        memcpy(to + (size_t)i * 8, &value, 8);
    }
    return count;
}

/* Big-endian two's complement; false: none, or more than 16 bytes that matter. */
static bool big_endian(struct mp_str bytes, mp_int128 *ret)
{
    const unsigned char *at = (const unsigned char *)bytes.data;
    mp_uint128 value = 0;

    if (!bytes.size)
        return false;
    value = at[0] >= 0x80 ? ~(mp_uint128)0 : 0;
    for (size_t i = 0; i + 16 < bytes.size; i++) /* what is cut off may only repeat the sign */
        if (at[i] != (unsigned char)value || (at[i + 1] ^ at[i]) & 0x80)
            return false;
    for (size_t i = bytes.size > 16 ? bytes.size - 16 : 0; i < bytes.size; i++)
        value = value << 8 | at[i];
    *ret = (mp_int128)value;
    return true;
}

static bool put_decimal(mp_int128 value, mp_int128 limit, uint32_t width, char *to)
{
    if (value <= -limit || value >= limit)
        return false;
    if (width < 16) {
        int64_t lower = (int64_t)value;

        memcpy(to, &lower, width);
        return true;
    }
    for (int i = 15; i >= 0; i--, value >>= 8)
        to[i] = (char)(unsigned char)(value & 0xff);
    return true;
}

static uint32_t decimal_of_integer(const struct mp_convert *how, const char *from, uint32_t count,
                                   char *to)
{
    for (uint32_t i = 0; i < count; i++)
        if (!put_decimal(
                mp_value_i64(mp_str_n(from + (size_t)i * how->from_width, how->from_width)),
                how->limit, how->to_width, to + (size_t)i * how->to_width))
            return i;
    return count;
}

static uint32_t decimal_of_fixed(const struct mp_convert *how, const char *from, uint32_t count,
                                 char *to)
{
    for (uint32_t i = 0; i < count; i++) {
        mp_int128 value;

        if (!big_endian(mp_str_n(from + (size_t)i * how->from_width, how->from_width), &value) ||
            !put_decimal(value, how->limit, how->to_width, to + (size_t)i * how->to_width))
            return i;
    }
    return count;
}

static uint32_t decimal_of_texts(const struct mp_convert *how, const struct mp_str *from,
                                 uint32_t count, char *to)
{
    for (uint32_t i = 0; i < count; i++) {
        mp_int128 value;

        if (!big_endian(from[i], &value) ||
            !put_decimal(value, how->limit, how->to_width, to + (size_t)i * how->to_width))
            return i;
    }
    return count;
}

/* ---- which of them --------------------------------------------------------------------------- */

typedef bool choose_function(const struct mp_parquet_node *leaf, struct mp_type type,
                             struct mp_convert *ret);

static bool copies(const struct mp_parquet_node *leaf, int8_t physical, uint8_t kind,
                   struct mp_convert *ret)
{
    ret->fixed = copy;
    return leaf->physical == physical &&
           (leaf->logical.kind == kind || leaf->logical.kind == MP_PARQUET_PLAIN);
}

static bool of_bool(const struct mp_parquet_node *leaf, struct mp_type type, struct mp_convert *ret)
{
    (void)type;
    return copies(leaf, MP_PHYSICAL_BOOLEAN, MP_PARQUET_PLAIN, ret);
}

/* The file's numbers must all be numbers of the column. */
static bool of_integer(const struct mp_parquet_node *leaf, struct mp_type type,
                       struct mp_convert *ret)
{
    static const struct {
        uint8_t bits;
        bool is_signed;
    } types[MP_TYPE_COUNT] = {
        [MP_TYPE_INT8] = {8, true},     [MP_TYPE_INT16] = {16, true},
        [MP_TYPE_INT32] = {32, true},   [MP_TYPE_INT64] = {64, true},
        [MP_TYPE_UINT8] = {8, false},   [MP_TYPE_UINT16] = {16, false},
        [MP_TYPE_UINT32] = {32, false}, [MP_TYPE_UINT64] = {64, false},
    };
    const struct mp_parquet_logical *logical = &leaf->logical;
    bool annotated = logical->kind == MP_PARQUET_INTEGER;
    bool is_signed = annotated ? logical->is_signed : true, wide = ret->from_width == 8;
    unsigned bits = annotated ? logical->bits : ret->from_width * 8;

    if ((leaf->physical != MP_PHYSICAL_INT32 && leaf->physical != MP_PHYSICAL_INT64) ||
        (!annotated && logical->kind != MP_PARQUET_PLAIN) || (wide && bits != 64))
        return false;
    if (is_signed ? !types[type.id].is_signed || bits > types[type.id].bits
                  : bits + types[type.id].is_signed > types[type.id].bits)
        return false;
    ret->fixed = ret->from_width == ret->to_width ? copy : is_signed ? widen_i32 : widen_u32;
    return true;
}

static bool of_float(const struct mp_parquet_node *leaf, struct mp_type type,
                     struct mp_convert *ret)
{
    (void)type;
    return copies(leaf, MP_PHYSICAL_FLOAT, MP_PARQUET_PLAIN, ret);
}

static bool of_double(const struct mp_parquet_node *leaf, struct mp_type type,
                      struct mp_convert *ret)
{
    if (of_float(leaf, type, ret)) {
        ret->fixed = widen_float;
        return true;
    }
    return copies(leaf, MP_PHYSICAL_DOUBLE, MP_PARQUET_PLAIN, ret);
}

static bool of_decimal(const struct mp_parquet_node *leaf, struct mp_type type,
                       struct mp_convert *ret)
{
    ret->limit = 1;
    for (uint8_t i = 0; i < type.precision; i++)
        ret->limit *= 10;
    switch (leaf->physical) {
    case MP_PHYSICAL_INT32:
    case MP_PHYSICAL_INT64:
        ret->fixed = decimal_of_integer;
        break;
    case MP_PHYSICAL_FIXED:
        ret->fixed = decimal_of_fixed;
        break;
    default:
        ret->of_texts = decimal_of_texts;
    }
    return leaf->logical.kind == MP_PARQUET_DECIMAL && leaf->logical.scale == type.scale;
}

static bool of_date(const struct mp_parquet_node *leaf, struct mp_type type, struct mp_convert *ret)
{
    (void)type;
    ret->fixed = copy;
    return leaf->physical == MP_PHYSICAL_INT32 && leaf->logical.kind == MP_PARQUET_DATE;
}

static bool of_time(const struct mp_parquet_node *leaf, struct mp_type type, struct mp_convert *ret)
{
    bool millis = leaf->logical.unit == MP_PARQUET_MILLIS;

    (void)type;
    ret->fixed = millis ? finer : copy;
    return leaf->logical.kind == MP_PARQUET_TIME && leaf->logical.unit != MP_PARQUET_NANOS &&
           leaf->physical == (millis ? MP_PHYSICAL_INT32 : MP_PHYSICAL_INT64);
}

/* Nanoseconds stay by themselves: their range is another. */
static bool of_timestamp(const struct mp_parquet_node *leaf, struct mp_type type,
                         struct mp_convert *ret)
{
    uint8_t from = leaf->logical.unit, to = type.id == MP_TYPE_TIMESTAMP_MS   ? MP_PARQUET_MILLIS
                                            : type.id == MP_TYPE_TIMESTAMP_NS ? MP_PARQUET_NANOS
                                                                              : MP_PARQUET_MICROS;

    if (leaf->physical != MP_PHYSICAL_INT64 || leaf->logical.kind != MP_PARQUET_TIMESTAMP ||
        leaf->logical.utc != (type.id == MP_TYPE_TIMESTAMPTZ) ||
        (from != to && (from == MP_PARQUET_NANOS || to == MP_PARQUET_NANOS)))
        return false;
    ret->fixed = from == to ? copy : from < to ? finer : coarser;
    return true;
}

static bool of_text(const struct mp_parquet_node *leaf, struct mp_type type, struct mp_convert *ret)
{
    uint8_t kind = leaf->logical.kind;

    (void)ret;
    if (leaf->physical == MP_PHYSICAL_FIXED)
        return type.id == MP_TYPE_BLOB && kind == MP_PARQUET_PLAIN;
    return leaf->physical == MP_PHYSICAL_BYTE_ARRAY &&
           (kind == MP_PARQUET_PLAIN || kind == MP_PARQUET_STRING || kind == MP_PARQUET_JSON ||
            kind == MP_PARQUET_ENUM || kind == MP_PARQUET_BSON);
}

static bool of_uuid(const struct mp_parquet_node *leaf, struct mp_type type, struct mp_convert *ret)
{
    (void)type;
    return copies(leaf, MP_PHYSICAL_FIXED, MP_PARQUET_UUID, ret) && leaf->type_length == 16;
}

static choose_function *const choices[MP_TYPE_COUNT] = {
    [MP_TYPE_BOOL] = of_bool,
    [MP_TYPE_INT8] = of_integer,
    [MP_TYPE_INT16] = of_integer,
    [MP_TYPE_INT32] = of_integer,
    [MP_TYPE_INT64] = of_integer,
    [MP_TYPE_UINT8] = of_integer,
    [MP_TYPE_UINT16] = of_integer,
    [MP_TYPE_UINT32] = of_integer,
    [MP_TYPE_UINT64] = of_integer,
    [MP_TYPE_FLOAT] = of_float,
    [MP_TYPE_DOUBLE] = of_double,
    [MP_TYPE_DECIMAL] = of_decimal,
    [MP_TYPE_DATE] = of_date,
    [MP_TYPE_TIME] = of_time,
    [MP_TYPE_TIMESTAMP_S] = of_timestamp,
    [MP_TYPE_TIMESTAMP_MS] = of_timestamp,
    [MP_TYPE_TIMESTAMP] = of_timestamp,
    [MP_TYPE_TIMESTAMP_NS] = of_timestamp,
    [MP_TYPE_TIMESTAMPTZ] = of_timestamp,
    [MP_TYPE_VARCHAR] = of_text,
    [MP_TYPE_JSON] = of_text,
    [MP_TYPE_BLOB] = of_text,
    [MP_TYPE_UUID] = of_uuid,
};

bool mp_convert_of(const struct mp_parquet_node *leaf, struct mp_type type, struct mp_convert *ret)
{
    *ret = (struct mp_convert){
        .from_width = mp_parquet_leaf_width(leaf),
        .to_width = mp_type_width(type),
        .nothing = leaf->logical.kind == MP_PARQUET_UNKNOWN,
    };
    return ret->nothing || (choices[type.id] && choices[type.id](leaf, type, ret));
}

struct mp_convert mp_convert_as_is(const struct mp_parquet_node *leaf)
{
    uint32_t width = mp_parquet_leaf_width(leaf);

    return (struct mp_convert){.from_width = width, .to_width = width, .fixed = copy};
}
