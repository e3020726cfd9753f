/* parquet/merge_priv.h - what the files of a merge know of each other.
 *
 *     convert       a leaf's values -> values of a type
 *     merge_column  one column of some row groups of the inputs, without the deleted rows
 *     merge_shape   what stands in a nested column, and whether inputs agree on it
 *     merge_nested  one leaf of a nested column, as merge_column
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

/* Whether the row of the input's file is deleted. */
bool mp_merge_is_deleted(const struct mp_parquet_merge_input *input, uint64_t row);
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

/* A column while its values are read. */
struct mp_merge_build {
    struct mp_merge *merge;
    const struct mp_parquet_merge_input *input;
    struct mp_column *column;
    uint64_t *validity;
    uint32_t rows_max; /* of the column */
    struct mp_convert convert;
};

/* Adds values number `first` to `first + count - 1` of the batch. */
enum mp_code mp_merge_add_values(struct mp_merge_build *build, const struct mp_parquet_batch *batch,
                                 uint32_t first, uint32_t count, struct mp_err *err);
/* MP_FULL: the segments and `more` bytes are more than may be held. */
enum mp_code mp_merge_bytes_check(const struct mp_merge *merge, uint64_t more, struct mp_err *err);

/* ---- merge_shape ----------------------------------------------------------------------------- */

/* Whether the node of the file can be a nested column of a new file. */
enum mp_code mp_merge_nested_check(const struct mp_parquet_footer *footer, uint32_t node,
                                   struct mp_err *err);
/* Whether what is in the file's node goes into a column of the shape's; both were checked. */
enum mp_code mp_merge_nested_agree(const struct mp_parquet_footer *shape, uint32_t shape_node,
                                   const struct mp_parquet_footer *footer, uint32_t node,
                                   struct mp_err *err);
/* Gives what the new file has for the column, in the arena; names are borrowed. */
const struct mp_parquet_tree *mp_merge_tree(struct mp_arena *arena,
                                            const struct mp_parquet_merge_column *column,
                                            const struct mp_parquet_footer *footer, uint32_t node);

/* ---- merge_nested ---------------------------------------------------------------------------- */

/* Gives a leaf of the column's tree. Its segments are the merge's pool's. */
enum mp_code mp_merge_entries_read(struct mp_merge *merge, const struct mp_merge_unit *unit,
                                   uint32_t column, const struct mp_parquet_tree *tree,
                                   uint32_t leaf, struct mp_err *err, struct mp_entries *ret);
void mp_merge_entries_fini(struct mp_merge *merge, struct mp_entries *entries);

#endif
