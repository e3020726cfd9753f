/* parquet/merge_priv.h - what the files of a merge know of each other.
 *
 *     convert       a leaf's values -> values of a type
 *     merge_column  one column of some row groups of the inputs, without the deleted rows
 *     merge         the main line: units of row groups, sort, encode, write
 */
#ifndef MP_PARQUET_MERGE_PRIV_H
#define MP_PARQUET_MERGE_PRIV_H

#include "parquet/merge.h"
#include "parquet/reader.h"
#include "parquet/reader_priv.h"

/* ---- convert --------------------------------------------------------------------------------- */

/* How values of a leaf become values of a type. For a type of texts none of the functions is set:
 * texts, and fixed values as texts, are taken as they are. */
struct mp_convert {
    uint32_t from_width, to_width; /* bytes of a value; 0: texts */
    mp_int128 limit;               /* decimals: values lie below it and above its negative */
    /* Both give how many values were made: all, or those before one that does not fit. */
    uint32_t (*fixed)(const struct mp_convert *how, const char *from, uint32_t count, char *to);
    uint32_t (*of_texts)(const struct mp_convert *how, const struct mp_str *from, uint32_t count,
                         char *to);
};

/* False: values of the leaf cannot all be values of the type. */
bool mp_convert_of(const struct mp_parquet_node *leaf, struct mp_type type, struct mp_convert *ret);

/* ---- merge_column ---------------------------------------------------------------------------- */

/* A row group of an input, a part of a unit. */
struct mp_merge_span {
    uint32_t input, group;
    uint64_t first_row; /* of the group in its file */
};

struct mp_merge_unit {
    const struct mp_merge_span *spans;
    uint32_t span_count;
    uint32_t rows; /* that are left */
};

struct mp_merge {
    const struct mp_parquet_merge_input *inputs;
    const struct mp_parquet_merge_options *options;
    struct mp_segment_pool *pool;
    struct mp_parquet_reader *reader;
    uint64_t bytes_max;
    uint32_t fault; /* the input that is being read; UINT32_MAX: none */
};

/* Rows of an input's row group that are not deleted. */
uint64_t mp_merge_rows_left(const struct mp_parquet_merge_input *input, uint64_t first_row,
                            uint64_t rows);
/* Gives column number `column` (column_count: the row ids) of the unit. Its segments are the
 * merge's pool's; validity is to be freed. */
enum mp_code mp_merge_column_read(struct mp_merge *merge, const struct mp_merge_unit *unit,
                                  uint32_t column, struct mp_err *err, struct mp_column *ret);
void mp_merge_column_fini(struct mp_merge *merge, struct mp_column *column);
/* The type of a column, row ids too. */
struct mp_type mp_merge_type(const struct mp_merge *merge, uint32_t column);

#endif
