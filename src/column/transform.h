/* column/transform.h - partition values of rows, and the cut of a batch into files.
 *
 * A partition transform turns a value of its source column into a small value: a calendar field,
 * a count of units since 1970, a bucket, or the value itself. Rows with equal tuples of such
 * values make one file. All arithmetic is UTC.
 *
 * After  DuckLake "Partitioning" (calendar fields; its own bytes for bucket), Iceberg "Partition
 *        Transforms" (epoch fields), MurmurHash3 x86 32 (Austin Appleby, public domain algorithm).
 */
#ifndef MP_COLUMN_TRANSFORM_H
#define MP_COLUMN_TRANSFORM_H

#include "base/arena.h"
#include "base/err.h"
#include "column/column.h"
#include "column/schema.h"

#include <stdbool.h>

/* One file to be: its tuple, and its rows in the order in which they are to stand. */
struct mp_cut_file {
    const struct mp_partition_value *values; /* [schema.partition_count] */
    const uint32_t *rows;                    /* NULL: all rows as they are */
    uint32_t count;
};

struct mp_cut {
    struct mp_cut_file *files; /* in order of first appearance */
    uint32_t count;
    uint32_t *rows; /* all files' rows, one behind the other; owned; NULL: none are needed */
};

/* Cuts sealed columns by the schema's partition spec and sorts each file by its sort order
 * (missing sort columns are left out; ties keep the batch's order; NaN behind all numbers). A
 * partition source that the batch does not hold counts as null. Texts lie in arena. Fails with
 * MP_BAD_CONFIG where a transform does not go with its column's type. */
enum mp_code mp_cut_columns(struct mp_arena *arena, const struct mp_column *columns,
                            uint32_t column_count, const struct mp_schema *schema, uint32_t rows,
                            struct mp_err *err, struct mp_cut *ret);
void mp_cut_fini(struct mp_cut *cut);

/* Whether the transform can be taken of the type. */
bool mp_transform_fits(uint8_t transform, struct mp_type type);
/* The signed 32-bit hash that buckets are made of; value as it lies in a segment (texts without
 * their length). iceberg: Iceberg's bytes for decimals, UUIDs and small unsigned
 * integers, else DuckLake's. */
int32_t mp_bucket_hash(struct mp_type type, struct mp_str value, bool iceberg);
/* MurmurHash3 x86 32 with seed 0. */
uint32_t mp_murmur3(struct mp_str data);
/* A value as DuckLake spells it; value as it lies in a segment. */
struct mp_str mp_value_text(struct mp_arena *arena, struct mp_type type, struct mp_str value);
/* The same as hoglake spells it: 2024-01-02T03:04:05.600000+00:00, 1e+16, 1E-7, AAH/. */
struct mp_str mp_value_text_hoglake(struct mp_arena *arena, struct mp_type type,
                                    struct mp_str value);

#endif
