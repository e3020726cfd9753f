/* parquet/merge_priv.h - what the files of a merge know of each other.
 *
 *     convert       a leaf's values -> values of a type
 *     merge_column  one column of some row groups of the inputs, without the deleted rows
 *     merge_shape   what stands in a column, where inputs have it, and whether they agree
 *     merge_nested  one leaf of a nested or carried column, as merge_column
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
    bool nothing;                  /* the leaf is always null: it has no value */
    uint32_t from_width, to_width; /* bytes of a value; 0: texts */
    mp_int128 limit;               /* decimals: values lie below it and above its negative */
    /* Both give how many values were made: all, or those before one that does not fit. */
    uint32_t (*fixed)(const struct mp_convert *how, const char *from, uint32_t count, char *to);
    uint32_t (*of_texts)(const struct mp_convert *how, const struct mp_str *from, uint32_t count,
                         char *to);
};

/* False: values of the leaf cannot all be values of the type. */
bool mp_convert_of(const struct mp_parquet_node *leaf, struct mp_type type, struct mp_convert *ret);
/* The same bytes. */
struct mp_convert mp_convert_as_is(const struct mp_parquet_node *leaf);

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

/* A column of the new file, and where the inputs have what is in it. */
struct mp_merge_tree {
    struct mp_parquet_tree of;    /* names are borrowed */
    const uint32_t *const *nodes; /* element -> input -> node of its file; 0: it lacks it */
    /* leaf -> input -> leaf of its file that is read: the same or, where it lacks it, the smallest
     * below the innermost node that it has, as a witness of what is there */
    const uint32_t *const *reads;
};

/* Makes the tree of column `number` for these inputs, in the arena. MP_REFUSED: an input, which is
 * *ret_input, does not go with it or with the newer ones. */
enum mp_code mp_merge_tree_new(struct mp_arena *arena, const struct mp_parquet_merge_input *inputs,
                               uint32_t count, const struct mp_parquet_merge_options *options,
                               uint32_t number, struct mp_err *err, uint32_t *ret_input,
                               const struct mp_merge_tree **ret);
/* A flat column whose values are made the column's type: it needs no levels. */
static inline bool mp_merge_is_flat(const struct mp_merge_tree *tree)
{
    return tree->of.count == 1 && !tree->of.elements[0].carried;
}
/* How a leaf's values become those of the element; false: they do not. */
bool mp_merge_convert(const struct mp_schema_element *element, const struct mp_parquet_node *leaf,
                      struct mp_convert *ret);
/* The element itself, or the innermost around it that the input has; 0 is the column. */
uint32_t mp_merge_deepest(const struct mp_merge_tree *tree, uint32_t element, uint32_t input);

/* ---- merge_nested ---------------------------------------------------------------------------- */

/* Gives a leaf of the column's tree. Its segments are the merge's pool's. */
enum mp_code mp_merge_entries_read(struct mp_merge *merge, const struct mp_merge_unit *unit,
                                   const struct mp_merge_tree *tree, uint32_t leaf,
                                   struct mp_err *err, struct mp_entries *ret);
void mp_merge_entries_fini(struct mp_merge *merge, struct mp_entries *entries);

#endif
