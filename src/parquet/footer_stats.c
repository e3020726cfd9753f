/* parquet/footer_stats.c - see footer_stats.h.
 *
 * Each bound of a chunk is made an Iceberg value first and compared as one: then there is one
 * order a kind, and a decimal is a decimal whether the file has it as INT32 or as bytes.
 *
 * What was seen of a side stays one of three: nothing yet (row groups of nulls only), a bound, or
 * lost for good, because one row group had values and no bound.
 */
#include "parquet/footer_stats.h"
#include "parquet/parquet_priv.h"
#include "parquet/thrift_in.h"

#include <math.h>

enum { BIG_BYTES_MAX = 16 };

/* How a leaf's statistics become bounds. */
struct translation {
    uint8_t kind;     /* enum mp_parquet_bound_kind */
    uint8_t width;    /* of the value in the file; 0: any */
    bool is_unsigned; /* a number that the deprecated fields order wrongly */
    bool is_bytes;    /* ordered bytewise: the same */
    int32_t factor;   /* to microseconds */
};

/* ---- which translation ----------------------------------------------------------------------- */

static struct translation number(uint8_t kind, uint8_t width)
{
    return (struct translation){.kind = kind, .width = width, .factor = 1};
}

static struct translation of_integer(const struct mp_parquet_node *node)
{
    bool wide = node->physical == MP_PHYSICAL_INT64;
    const struct mp_parquet_logical *logical = &node->logical;
    struct translation made =
        number(wide ? MP_PARQUET_BOUND_I64 : MP_PARQUET_BOUND_I32, wide ? 8 : 4);

    switch (logical->kind) {
    case MP_PARQUET_PLAIN:
        break;
    case MP_PARQUET_INTEGER:
        made.is_unsigned = !logical->is_signed;
        if (made.is_unsigned && logical->bits == 32)
            made.kind = MP_PARQUET_BOUND_I64;
        if (made.is_unsigned && logical->bits == 64)
            made.kind = MP_PARQUET_BOUND_BIG;
        break;
    case MP_PARQUET_DECIMAL:
        made.kind = MP_PARQUET_BOUND_BIG;
        break;
    case MP_PARQUET_DATE:
        if (wide)
            made.kind = MP_PARQUET_BOUND_NONE;
        break;
    case MP_PARQUET_TIME:
        made.kind =
            logical->unit == MP_PARQUET_NANOS ? MP_PARQUET_BOUND_NONE : MP_PARQUET_BOUND_I64;
        made.factor = logical->unit == MP_PARQUET_MILLIS ? 1000 : 1;
        break;
    case MP_PARQUET_TIMESTAMP:
        if (!wide)
            made.kind = MP_PARQUET_BOUND_NONE;
        made.factor = logical->unit == MP_PARQUET_MILLIS ? 1000 : 1;
        break;
    default:
        made.kind = MP_PARQUET_BOUND_NONE;
    }
    return made;
}

static struct translation of_bytes(const struct mp_parquet_node *node)
{
    bool fixed = node->physical == MP_PHYSICAL_FIXED;
    struct translation made = {.kind = MP_PARQUET_BOUND_BYTES, .is_bytes = true, .factor = 1};

    switch (node->logical.kind) {
    case MP_PARQUET_PLAIN:
    case MP_PARQUET_STRING:
    case MP_PARQUET_JSON:
    case MP_PARQUET_ENUM:
    case MP_PARQUET_BSON:
        break;
    case MP_PARQUET_DECIMAL: /* of at most 16 bytes; see value_of */
        made.kind = MP_PARQUET_BOUND_BIG;
        break;
    case MP_PARQUET_UUID:
        made.kind =
            fixed && node->type_length == 16 ? MP_PARQUET_BOUND_UUID : MP_PARQUET_BOUND_NONE;
        made.width = 16;
        break;
    default:
        made.kind = MP_PARQUET_BOUND_NONE;
    }
    return made;
}

static struct translation translation_of(const struct mp_parquet_node *node)
{
    bool plain = node->logical.kind == MP_PARQUET_PLAIN;

    switch (node->physical) {
    case MP_PHYSICAL_BOOLEAN:
        return number(plain ? MP_PARQUET_BOUND_BOOLEAN : MP_PARQUET_BOUND_NONE, 1);
    case MP_PHYSICAL_INT32:
    case MP_PHYSICAL_INT64:
        return of_integer(node);
    case MP_PHYSICAL_FLOAT:
        return number(plain ? MP_PARQUET_BOUND_FLOAT : MP_PARQUET_BOUND_NONE, 4);
    case MP_PHYSICAL_DOUBLE:
        return number(plain ? MP_PARQUET_BOUND_DOUBLE : MP_PARQUET_BOUND_NONE, 8);
    case MP_PHYSICAL_BYTE_ARRAY:
    case MP_PHYSICAL_FIXED:
        return of_bytes(node);
    default:
        return number(MP_PARQUET_BOUND_NONE, 0);
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

/* An Iceberg value; in `small` unless it is lent by the footer. */
struct value {
    struct mp_str lent;
    uint8_t size;
    char small[BIG_BYTES_MAX + 1];
};

static void put_little(struct value *ret, const void *value, uint8_t size)
{
    memcpy(ret->small, value, size);
    ret->size = size;
}

/* The shortest form: no byte in front that only repeats the sign. */
static void put_big(struct value *ret, const unsigned char *bytes, size_t size)
{
    while (size > 1 &&
           ((bytes[0] == 0x00 && bytes[1] < 0x80) || (bytes[0] == 0xff && bytes[1] >= 0x80))) {
        bytes++;
        size--;
    }
    assert(size <= sizeof(ret->small));
    memcpy(ret->small, bytes, size);
    ret->size = (uint8_t)size;
}

static void put_big_int(struct value *ret, int64_t value, bool is_unsigned)
{
    unsigned char bytes[9];
    uint64_t left = (uint64_t)value;

    bytes[0] = value < 0 && !is_unsigned ? 0xff : 0;
    for (int i = 8; i > 0; i--, left >>= 8)
        bytes[i] = (unsigned char)left;
    put_big(ret, bytes, sizeof(bytes));
}

static bool integer_value(const struct translation *how, struct mp_str from, struct value *ret)
{
    int64_t value = 0;
    int32_t narrow;

    if (how->width == 4) {
        memcpy(&narrow, from.data, 4);
        value = how->is_unsigned ? (int64_t)(uint32_t)narrow : narrow;
    } else {
        memcpy(&value, from.data, 8);
    }
    if (__builtin_mul_overflow(value, (int64_t)how->factor, &value))
        return false;
    if (how->kind == MP_PARQUET_BOUND_BIG) {
        put_big_int(ret, value, how->is_unsigned);
    } else if (how->kind == MP_PARQUET_BOUND_I64) {
        put_little(ret, &value, 8);
    } else {
        narrow = (int32_t)value;
        put_little(ret, &narrow, 4);
    }
    return true;
}

static bool float_value(struct mp_str from, bool upper, struct value *ret)
{
    float value;

    memcpy(&value, from.data, 4);
    if (value == 0)
        value = upper ? 0.0f : -0.0f; /* S4 */
    put_little(ret, &value, 4);
    return !isnan(value);
}

static bool double_value(struct mp_str from, bool upper, struct value *ret)
{
    double value;

    memcpy(&value, from.data, 8);
    if (value == 0)
        value = upper ? 0.0 : -0.0;
    put_little(ret, &value, 8);
    return !isnan(value);
}

/* Makes the footer's bytes a value; false where they are none (S3). */
static bool value_of(const struct translation *how, struct mp_str from, bool upper,
                     struct value *ret)
{
    *ret = (struct value){0};
    if (how->width && from.size != how->width)
        return false;
    switch (how->kind) {
    case MP_PARQUET_BOUND_BOOLEAN:
        put_little(ret, from.data[0] ? "\1" : "\0", 1);
        return true;
    case MP_PARQUET_BOUND_FLOAT:
        return float_value(from, upper, ret);
    case MP_PARQUET_BOUND_DOUBLE:
        return double_value(from, upper, ret);
    case MP_PARQUET_BOUND_BYTES:
    case MP_PARQUET_BOUND_UUID:
        ret->lent = from;
        return true;
    case MP_PARQUET_BOUND_BIG:
        if (how->is_bytes) {
            if (from.size < 1 || from.size > BIG_BYTES_MAX)
                return false;
            put_big(ret, (const unsigned char *)from.data, from.size);
            return true;
        }
        return integer_value(how, from, ret);
    default:
        return integer_value(how, from, ret);
    }
}

static struct mp_str bytes_of(const struct value *value)
{
    return value->size ? mp_str_n(value->small, value->size) : value->lent;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int compare_big(struct mp_str a, struct mp_str b)
{
    bool a_negative = a.data[0] < 0, b_negative = b.data[0] < 0;

    if (a_negative != b_negative)
        return a_negative ? -1 : 1;
    if (a.size != b.size) /* both are shortest: the longer one lies further from zero */
        return (a.size < b.size) == a_negative ? 1 : -1;
    return memcmp(a.data, b.data, a.size);
}

static int compare(uint8_t kind, const struct value *a, const struct value *b)
{
    static const struct mp_layout layouts[] = {
        [MP_PARQUET_BOUND_BOOLEAN] = {.order = MP_ORDER_BINARY},
        [MP_PARQUET_BOUND_I32] = {.order = MP_ORDER_I32, .width = 4},
        [MP_PARQUET_BOUND_I64] = {.order = MP_ORDER_I64, .width = 8},
        [MP_PARQUET_BOUND_FLOAT] = {.order = MP_ORDER_F32, .width = 4},
        [MP_PARQUET_BOUND_DOUBLE] = {.order = MP_ORDER_F64, .width = 8},
        [MP_PARQUET_BOUND_BYTES] = {.order = MP_ORDER_BINARY},
        [MP_PARQUET_BOUND_UUID] = {.order = MP_ORDER_BINARY},
    };

    if (kind == MP_PARQUET_BOUND_BIG)
        return compare_big(bytes_of(a), bytes_of(b));
    assert(kind != MP_PARQUET_BOUND_NONE && kind < sizeof(layouts) / sizeof(*layouts));
    return mp_order_compare(layouts[kind], bytes_of(a), bytes_of(b));
}

/* ---- a side ---------------------------------------------------------------------------------- */

struct side {
    bool upper, seen, lost, exact;
    struct value value;
};

/* What a chunk claims for one side. */
struct claim {
    bool has, exact;
    struct mp_str bytes;
};

/* S2: which fields can be believed, if any. */
static struct claim claim_of(const struct translation *how,
                             const struct mp_parquet_statistics *statistics,
                             enum mp_parquet_column_order order, bool upper)
{
    bool is_float = how->kind == MP_PARQUET_BOUND_FLOAT || how->kind == MP_PARQUET_BOUND_DOUBLE;
    bool ordered =
        order == MP_PARQUET_ORDER_TYPE || (order == MP_PARQUET_ORDER_IEEE754 && is_float);
    bool is_signed = !how->is_unsigned && !how->is_bytes;

    if (ordered && mp_thrift_has(statistics->has, upper ? 5 : 6))
        return (struct claim){true, upper ? statistics->max_exact : statistics->min_exact,
                              upper ? statistics->max : statistics->min};
    if (is_signed && mp_thrift_has(statistics->has, upper ? 1 : 2))
        return (struct claim){true, false, upper ? statistics->max_old : statistics->min_old};
    return (struct claim){0};
}

static void side_add(struct side *side, const struct translation *how, const struct claim *claim)
{
    struct value value;
    int order;

    if (side->lost)
        return;
    if (!claim->has || !value_of(how, claim->bytes, side->upper, &value)) {
        side->lost = true; /* S1 */
        return;
    }
    order = side->seen ? compare(how->kind, &value, &side->value) : 0;
    if (!side->seen || (side->upper ? order > 0 : order < 0)) {
        side->value = value;
        side->exact = claim->exact;
    } else if (order == 0) {
        side->exact |= claim->exact;
    }
    side->seen = true;
}

static struct mp_parquet_bound side_bound(struct mp_arena *arena, const struct side *side)
{
    struct mp_str bytes = bytes_of(&side->value);

    if (side->lost || !side->seen)
        return (struct mp_parquet_bound){0};
    if (side->value.size)
        bytes = mp_arena_str(arena, bytes);
    return (struct mp_parquet_bound){true, side->exact, bytes};
}

/* ---- leaves ---------------------------------------------------------------------------------- */

/* Whether the chunk tells a null count that can be; without values there is nothing to tell. */
static bool null_count_of(const struct mp_parquet_column_chunk *chunk, uint64_t *ret)
{
    int64_t nulls = chunk->statistics.null_count;

    if (chunk->value_count == 0)
        return true;
    if (!mp_thrift_has(chunk->statistics.has, 3) || nulls < 0 || nulls > chunk->value_count)
        return false;
    *ret = (uint64_t)nulls;
    return true;
}

static void leaf_stats(struct mp_arena *arena, const struct mp_parquet_footer *footer,
                       uint32_t leaf, struct mp_parquet_leaf_stats *ret)
{
    const struct mp_parquet_node *node = &footer->nodes[footer->leaves[leaf]];
    struct translation how = translation_of(node);
    struct side low = {.upper = false}, high = {.upper = true};

    *ret = (struct mp_parquet_leaf_stats){.leaf = leaf,
                                          .has_field_id = node->has_field_id,
                                          .field_id = node->field_id,
                                          .bound_kind = how.kind,
                                          .has_null_count = true};
    for (uint32_t group = 0; group < footer->group_count; group++) {
        const struct mp_parquet_column_chunk *chunk = &footer->groups[group].chunks[leaf];
        uint64_t nulls = 0;
        bool counted = null_count_of(chunk, &nulls);
        struct claim claim;

        ret->value_count += (uint64_t)chunk->value_count;
        ret->size_bytes += (uint64_t)chunk->bytes;
        ret->null_count += nulls;
        ret->has_null_count &= counted;
        if (how.kind == MP_PARQUET_BOUND_NONE || chunk->value_count == 0 ||
            (counted && nulls == (uint64_t)chunk->value_count))
            continue;
        claim = claim_of(&how, &chunk->statistics, footer->orders[leaf], false);
        side_add(&low, &how, &claim);
        claim = claim_of(&how, &chunk->statistics, footer->orders[leaf], true);
        side_add(&high, &how, &claim);
    }
    if (!ret->has_null_count)
        ret->null_count = 0;
    if (low.seen && high.seen && !low.lost && !high.lost &&
        compare(how.kind, &low.value, &high.value) > 0)
        low.lost = high.lost = true; /* S3 */
    ret->lower = side_bound(arena, &low);
    ret->upper = side_bound(arena, &high);
}

const struct mp_parquet_leaf_stats *mp_parquet_footer_stats(struct mp_arena *arena,
                                                            const struct mp_parquet_footer *footer,
                                                            uint32_t *ret_count)
{
    struct mp_parquet_leaf_stats *stats = mp_arena_take(arena, footer->leaf_count * sizeof(*stats));
    uint32_t count = 0;

    for (uint32_t leaf = 0; leaf < footer->leaf_count; leaf++)
        if (!footer->nodes[footer->leaves[leaf]].in_variant)
            leaf_stats(arena, footer, leaf, &stats[count++]);
    *ret_count = count;
    return stats;
}
