#include "column/transform.h"
#include "column/transform_priv.h"

#include "base/civil.h"

#include <assert.h>

uint32_t mp_murmur3(struct mp_str data)
{
    const uint32_t c1 = 0xcc9e2d51, c2 = 0x1b873593;
    uint32_t hash = 0, block = 0;
    size_t blocks = data.size / 4;

    for (size_t i = 0; i < blocks; i++) {
        memcpy(&block, data.data + i * 4, 4);
        block *= c1;
        block = block << 15 | block >> 17;
        hash ^= block * c2;
        hash = (hash << 13 | hash >> 19) * 5 + 0xe6546b64;
    }
    block = 0;
    for (size_t i = data.size & 3; i > 0; i--)
        block = block << 8 | (unsigned char)data.data[blocks * 4 + i - 1];
    block *= c1;
    block = block << 15 | block >> 17;
    hash ^= block * c2;
    hash ^= (uint32_t)data.size;
    hash = (hash ^ hash >> 16) * 0x85ebca6b;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35;
    return hash ^ hash >> 16;
}

static int32_t hash_i64(int64_t value)
{
    return (int32_t)mp_murmur3(mp_str_n(&value, 8));
}

/* DuckLake hashes the text of types that do not fit an int64. */
static int32_t hash_text(struct mp_type type, struct mp_str value)
{
    struct mp_arena arena;
    int32_t hash;

    mp_arena_init(&arena, 256);
    hash = (int32_t)mp_murmur3(mp_value_text(&arena, type, value));
    mp_arena_fini(&arena);
    return hash;
}

int32_t mp_bucket_hash(struct mp_type type, struct mp_str value, bool iceberg)
{
    unsigned char bytes[16];
    double wide;
    float narrow;

    switch (type.id) {
    case MP_TYPE_VARCHAR:
    case MP_TYPE_JSON:
    case MP_TYPE_BLOB:
        return (int32_t)mp_murmur3(value);
    case MP_TYPE_FLOAT:
        memcpy(&narrow, value.data, 4);
        wide = (double)narrow + 0.0; /* -0.0 becomes 0.0 */
        return (int32_t)mp_murmur3(mp_str_n(&wide, 8));
    case MP_TYPE_DOUBLE:
        memcpy(&wide, value.data, 8);
        wide += 0.0;
        return (int32_t)mp_murmur3(mp_str_n(&wide, 8));
    case MP_TYPE_DECIMAL:
        if (iceberg)
            return (int32_t)mp_murmur3(mp_str_n(bytes, mp_i128_bytes(mp_value_i128(value), bytes)));
        return value.size == 16 ? hash_text(type, value) : hash_i64(mp_value_i64(value));
    case MP_TYPE_UUID:
        return iceberg ? (int32_t)mp_murmur3(value) : hash_text(type, value);
    case MP_TYPE_UINT8:
    case MP_TYPE_UINT16:
        return iceberg ? hash_i64(mp_value_i64(value)) : hash_text(type, value);
    case MP_TYPE_UINT32:
    case MP_TYPE_UINT64:
    case MP_TYPE_INT128:
        return hash_text(type, value);
    case MP_TYPE_TIMESTAMP_S: /* lies in microseconds, is hashed in its own unit */
        return hash_i64(mp_value_i64(value) / 1000000);
    default:
        return hash_i64(mp_value_i64(value));
    }
}

/* Units a second of the types that have an instant; 0: a date; -1: no instant. */
static int64_t units_per_second(struct mp_type type)
{
    switch (type.id) {
    case MP_TYPE_DATE:
        return 0;
    case MP_TYPE_TIMESTAMP_S_MS:
    case MP_TYPE_TIMESTAMP_MS:
        return 1000;
    case MP_TYPE_TIMESTAMP_S:
    case MP_TYPE_TIMESTAMP:
    case MP_TYPE_TIMESTAMPTZ:
        return 1000000;
    case MP_TYPE_TIMESTAMP_NS:
        return 1000000000;
    default:
        return -1;
    }
}

/* Types whose values hash alike everywhere: not those with two bytes for one value (doubles, JSON)
 * or of a unit or width that engines hash differently. */
static bool hashes_as_iceberg(struct mp_type type)
{
    static const bool hashes[MP_TYPE_COUNT] = {
        [MP_TYPE_INT8] = true,      [MP_TYPE_INT16] = true,       [MP_TYPE_INT32] = true,
        [MP_TYPE_INT64] = true,     [MP_TYPE_UINT8] = true,       [MP_TYPE_UINT16] = true,
        [MP_TYPE_DECIMAL] = true,   [MP_TYPE_DATE] = true,        [MP_TYPE_TIME] = true,
        [MP_TYPE_TIMESTAMP] = true, [MP_TYPE_TIMESTAMPTZ] = true, [MP_TYPE_VARCHAR] = true,
        [MP_TYPE_BLOB] = true,      [MP_TYPE_UUID] = true,
    };

    return hashes[type.id];
}

bool mp_transform_fits(uint8_t transform, struct mp_type type)
{
    if (type.id == MP_TYPE_VARIANT || type.id == MP_TYPE_OTHER || type.id == MP_TYPE_NONE)
        return false;
    if (transform == MP_TRANSFORM_BUCKET_ICEBERG)
        return hashes_as_iceberg(type);
    if (transform == MP_TRANSFORM_IDENTITY || transform == MP_TRANSFORM_BUCKET)
        return true;
    if (transform == MP_TRANSFORM_HOUR || transform == MP_TRANSFORM_EPOCH_HOUR)
        return units_per_second(type) > 0;
    return units_per_second(type) >= 0;
}

/* The number a calendar or epoch transform makes of an instant. */
static int64_t calendar_value(uint8_t transform, struct mp_type type, struct mp_str value)
{
    int64_t units = units_per_second(type), at = mp_value_i64(value);
    int64_t days = units ? mp_floor_div(at, units * 86400) : at;
    int64_t hours = units ? mp_floor_div(at, units * 3600) : at * 24;
    struct mp_civil date = mp_civil_of_days(days);

    switch (transform) {
    case MP_TRANSFORM_YEAR:
        return date.year;
    case MP_TRANSFORM_MONTH:
        return date.month;
    case MP_TRANSFORM_DAY:
        return date.day;
    case MP_TRANSFORM_HOUR:
        return hours - days * 24;
    case MP_TRANSFORM_EPOCH_YEAR:
        return date.year - 1970;
    case MP_TRANSFORM_EPOCH_MONTH:
        return (date.year - 1970) * 12 + date.month - 1;
    case MP_TRANSFORM_EPOCH_DAY:
        return days;
    default:
        assert(transform == MP_TRANSFORM_EPOCH_HOUR);
        return hours;
    }
}

int64_t mp_transform_number(const struct mp_partition_field *field, struct mp_type type,
                            struct mp_str value)
{
    if (field->transform == MP_TRANSFORM_BUCKET || field->transform == MP_TRANSFORM_BUCKET_ICEBERG)
        return (mp_bucket_hash(type, value, field->transform == MP_TRANSFORM_BUCKET_ICEBERG) &
                0x7fffffff) %
               (int64_t)field->buckets;
    return calendar_value(field->transform, type, value);
}
