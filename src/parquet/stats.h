/* parquet/stats.h - what is known of one column of one file, for the catalog.
 *
 * Bounds are typed: the bytes of a value as PLAIN lays it out (without the length of texts).
 * Order is the column order of the Parquet format: signed or unsigned numbers by type, texts and
 * UUIDs bytewise. NaN is never a bound; a zero minimum is -0.0, a zero maximum +0.0.
 */
#ifndef MP_PARQUET_STATS_H
#define MP_PARQUET_STATS_H

#include "column/type.h"

#include <stdbool.h>

#define MP_STATS_TEXT_MAX 4096u /* longer text bounds are cut (and are bounds, not values) */

struct mp_column_stats {
    int32_t field_id;
    struct mp_type type;
    uint64_t rows, nulls, nans; /* rows holds nulls and NaNs too */
    uint64_t compressed_bytes;  /* all chunks with their page headers */
    bool has_bounds;            /* false: no value that is not NaN, or no bound could be made */
    bool min_exact, max_exact;  /* the bound is a value of the column */
    struct mp_str min, max;     /* lent by the file */
};

#endif
