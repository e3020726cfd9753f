/* column/column.h - one sealed column, as parquet reads it. */
#ifndef MP_COLUMN_COLUMN_H
#define MP_COLUMN_COLUMN_H

#include "base/segment.h"
#include "column/type.h"

#include <stdbool.h>

/* A VARIANT has no segments and no validity: it is made of the values of another column, its
 * source, when that one is encoded, and `values` is how many the source has.
 *
 * Always  the segments hold exactly `values` values, those of the valid rows, in row order;
 *         validity bits past `rows` are zero. */
struct mp_column {
    struct mp_str name;
    struct mp_type type;
    int32_t field_id;
    uint32_t rows, values;
    const uint64_t *validity; /* bit r & 63 of word r / 64; NULL: every row has a value */
    struct mp_segment_list segments;
    struct mp_column *companion; /* the VARIANT made of these values; NULL: none is */
};

static inline bool mp_column_valid(const struct mp_column *column, uint32_t row)
{
    return !column->validity || (column->validity[row / 64] >> (row & 63) & 1);
}

#endif
