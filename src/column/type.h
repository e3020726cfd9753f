/* column/type.h - the column types, and how a value of each lies in memory.
 *
 * A fixed value lies in a segment exactly as Parquet's PLAIN encoding writes it (little-endian
 * two's complement or IEEE 754, `width` bytes), except BOOLEAN: one byte, 0 or 1. A text value
 * lies as PLAIN writes a BYTE_ARRAY: four bytes of length, little-endian, then the bytes.
 *
 * After  Parquet "Encodings" (PLAIN) and "LogicalTypes"; spec of DuckLake, "Data types".
 */
#ifndef MP_COLUMN_TYPE_H
#define MP_COLUMN_TYPE_H

#include "base/str.h"

__extension__ typedef __int128 mp_int128;
__extension__ typedef unsigned __int128 mp_uint128;

enum mp_type_id {
    MP_TYPE_NONE, /* only nulls so far: no column yet */
    MP_TYPE_BOOL,
    MP_TYPE_INT8, /* the three small ones lie as INT32 */
    MP_TYPE_INT16,
    MP_TYPE_INT32,
    MP_TYPE_INT64,
    MP_TYPE_UINT8,
    MP_TYPE_UINT16,
    MP_TYPE_UINT32,
    MP_TYPE_UINT32_LONG, /* the same lying as INT64: hoglake has it so */
    MP_TYPE_UINT64,
    MP_TYPE_INT128, /* HUGEINT: lies as a DOUBLE, so only exact values are stored */
    MP_TYPE_FLOAT,
    MP_TYPE_DOUBLE,
    MP_TYPE_DECIMAL,        /* unscaled: INT32 to 9 digits, INT64 to 18, else 16 bytes big-endian */
    MP_TYPE_DATE,           /* INT32 days since 1970-01-01 */
    MP_TYPE_TIME,           /* INT64 microseconds of the day */
    MP_TYPE_TIMESTAMP_S,    /* INT64 microseconds too: DuckLake writes seconds so */
    MP_TYPE_TIMESTAMP_S_MS, /* whole seconds too, INT64 milliseconds: hoglake has them so */
    MP_TYPE_TIMESTAMP_MS,   /* INT64 milliseconds */
    MP_TYPE_TIMESTAMP,      /* INT64 microseconds, no zone */
    MP_TYPE_TIMESTAMP_NS,   /* INT64 nanoseconds */
    MP_TYPE_TIMESTAMPTZ,    /* INT64 microseconds, UTC */
    MP_TYPE_VARCHAR,        /* UTF-8 */
    MP_TYPE_JSON,           /* UTF-8 text that is JSON */
    MP_TYPE_BLOB,
    MP_TYPE_UUID,    /* 16 bytes big-endian */
    MP_TYPE_VARIANT, /* lies nowhere: made of another column while that is encoded (column.h) */
    MP_TYPE_OTHER,   /* a live type that cannot be written yet: its values are rescued */
    MP_TYPE_COUNT
};

struct mp_type {
    uint8_t id;               /* enum mp_type_id */
    uint8_t precision, scale; /* DECIMAL only */
};

#define MP_TYPE(name) ((struct mp_type){.id = MP_TYPE_##name})

static inline bool mp_type_eq(struct mp_type a, struct mp_type b)
{
    return a.id == b.id && a.precision == b.precision && a.scale == b.scale;
}

/* Bytes of one value in a segment; 0 for text (VARCHAR, JSON, BLOB), NONE, VARIANT and OTHER. */
uint32_t mp_type_width(struct mp_type type);
bool mp_type_is_text(struct mp_type type);
/* INT8 to INT64 and UINT8 to UINT64. */
bool mp_type_is_integer(struct mp_type type);
bool mp_type_is_float(struct mp_type type);

/* A signed integer of 1 (a BOOLEAN), 4 or 8 bytes as it lies. */
static inline int64_t mp_value_i64(struct mp_str value)
{
    int64_t wide = 0;
    int32_t narrow;

    if (value.size == 8) {
        memcpy(&wide, value.data, 8);
        return wide;
    }
    if (value.size == 1)
        return (unsigned char)value.data[0];
    memcpy(&narrow, value.data, 4);
    return narrow;
}

/* A decimal's unscaled value as it lies: 4 or 8 bytes little-endian, or 16 big-endian. */
mp_int128 mp_value_i128(struct mp_str value);
/* The fewest bytes that hold the number, big-endian two's complement, into ret; gives their count,
 * 1 to 16. (Iceberg, "Single-value serialization" of decimals) */
size_t mp_i128_bytes(mp_int128 number, unsigned char ret[16]);

/* What a catalog that promotes lets the type become: INT64 of a smaller signed integer, DOUBLE of
 * FLOAT, else NONE. */
struct mp_type mp_type_promoted(struct mp_type type);

/* DuckLake's name of a type, such as "int64" or "decimal(18,4)", into ret (at least 24 bytes). */
void mp_type_ducklake_name(struct mp_type type, char ret[24]);
/* The other way; unknown and nested names give MP_TYPE_OTHER. ASCII case does not matter. */
struct mp_type mp_type_of_ducklake_name(struct mp_str name);

/* SQL's name of a type that a column can be pinned to, such as "bigint"; NULL: it cannot be. */
static inline const char *mp_type_sql_name(struct mp_type type)
{
    switch ((enum mp_type_id)type.id) {
    case MP_TYPE_INT64:
        return "bigint";
    case MP_TYPE_BOOL:
        return "boolean";
    case MP_TYPE_DOUBLE:
        return "double";
    case MP_TYPE_TIMESTAMPTZ:
        return "timestamptz";
    case MP_TYPE_UUID:
        return "uuid";
    case MP_TYPE_VARCHAR:
        return "varchar";
    default:
        return NULL;
    }
}

#endif
