/* parquet/footer_stats.h - what a footer tells of each leaf, as a catalog keeps it.
 *
 * Bounds are Iceberg's single values, whatever the file's physical type:
 *
 *     BOOLEAN   boolean                                    1 byte, 00 or 01
 *     I32       int8 to int32, uint8, uint16, date         4 bytes, little-endian
 *     I64       int64, uint32, time, timestamps            8 bytes, little-endian
 *     FLOAT     float                                      4 bytes, IEEE 754 little-endian
 *     DOUBLE    double                                     8 bytes
 *     BIG       decimals, uint64                           shortest big-endian two's complement
 *     BYTES     texts, JSON, binary                        as they are
 *     UUID      uuid                                       16 bytes, big-endian
 *
 * Times and timestamps of milliseconds become microseconds; nanoseconds stay. A bound is there only
 * where it holds for the whole file:
 *     S1  every row group with a value that is not null has one
 *     S2  its order is the type's: the footer says so, or the old signed fields of a signed type
 *     S3  it is not NaN, and lower does not lie above upper
 *     S4  a lower zero of a float is -0.0, an upper one +0.0
 *
 * After  Iceberg spec, "Appendix D: Single-value serialization"; parquet.thrift: Statistics,
 *        ColumnOrder.
 */
#ifndef MP_PARQUET_FOOTER_STATS_H
#define MP_PARQUET_FOOTER_STATS_H

#include "parquet/footer.h"

enum mp_parquet_bound_kind {
    MP_PARQUET_BOUND_NONE, /* a type that has no bounds: INT96, INTERVAL, FLOAT16, GEOMETRY, ... */
    MP_PARQUET_BOUND_BOOLEAN,
    MP_PARQUET_BOUND_I32,
    MP_PARQUET_BOUND_I64,
    MP_PARQUET_BOUND_FLOAT,
    MP_PARQUET_BOUND_DOUBLE,
    MP_PARQUET_BOUND_BIG,
    MP_PARQUET_BOUND_BYTES,
    MP_PARQUET_BOUND_UUID,
};

struct mp_parquet_bound {
    bool has;
    bool exact; /* the footer vouches that it is a value of the column; texts may be cut else */
    struct mp_str bytes;
};

struct mp_parquet_leaf_stats {
    uint32_t leaf;
    bool has_field_id;
    int32_t field_id;
    uint8_t bound_kind;   /* enum mp_parquet_bound_kind */
    uint64_t value_count; /* nulls, and the marks of empty and null lists, included */
    bool has_null_count;  /* every row group tells it */
    uint64_t null_count;
    uint64_t size_bytes; /* compressed */
    struct mp_parquet_bound lower, upper;
};

/* Gives the leaves in order, without those inside a VARIANT, in the arena. Never fails: claims that
 * make no sense are left out. Texts are borrowed from the footer's bytes. */
const struct mp_parquet_leaf_stats *mp_parquet_footer_stats(struct mp_arena *arena,
                                                            const struct mp_parquet_footer *footer,
                                                            uint32_t *ret_count);

#endif
