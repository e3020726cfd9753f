/* parquet/merge.h - several Parquet files -> one, decoded and encoded again.
 *
 * For what a join (join.h) refuses: rows that are deleted, rows that are to be sorted, files of
 * other schemas than the new file's, row groups that are too small. The new file has the columns
 * that are asked for, each taken from the leaf of every input that the caller names, widened where
 * the leaf's type is narrower, null where an input has none; and one more column, the row ids,
 * as its last. Statistics, bounds and page indexes are the writer's (writer.h).
 *
 * Nested     A list, a map or a struct has the shape that is asked for, found in each input by
 *            field id: a child that an input lacks is null in every struct, list or map that is
 *            there, one that nobody asks for is left out. It is handled leaf by leaf, levels and
 *            values row by row. A VARIANT has the shape of the last input that has it, which all
 *            others must have. No sort order is by either.
 * Carried    A leaf whose values are not all values of the column's type (INT96, other units of
 *            time, half floats, intervals, geometries, whatever comes later) keeps its bytes, its
 *            physical type and its annotation; all inputs that have it must have these. Bounds are
 *            written where the type has an order. No sort order is by such a column.
 * Agreement  of inputs on both: mp_parquet_merge_agree.
 * Order      the inputs' rows in their order; with sort fields by these, ties in that order, nulls
 *            as asked, NaN behind all numbers.
 * Row groups whole row groups of the inputs are put together up to group_bytes (before
 *            compression) and MP_MERGE_GROUP_ROWS_MAX rows; larger ones are cut.
 * Memory     one column of a row group, decoded (of a nested or carried one a leaf, with 11 bytes
 *            an entry; of one that an input lacks these bytes alone), its compressed chunks, a page
 *            of the input and, where a column is gathered, 8 bytes a row. With a sort order all
 * rows are one such unit: one column of all inputs, decoded, and the whole new file, compressed.
 * Errors     MP_REFUSED: an input holds what is not read or what its column cannot hold.
 *            MP_BAD_DATA: an input contradicts itself. MP_FULL: more than bytes_max were needed.
 *            Where it was an input's fault, ret_input is its number.
 */
#ifndef MP_PARQUET_MERGE_H
#define MP_PARQUET_MERGE_H

#include "column/schema.h"
#include "parquet/footer.h"
#include "parquet/writer.h"

#define MP_MERGE_GROUP_ROWS_MAX (1u << 20)

enum { MP_MERGE_NO_LEAF = -1 };

struct mp_parquet_merge_input {
    const struct mp_parquet_footer *footer;
    struct mp_str bytes; /* the whole file */
    /* column -> leaf of this file, or MP_MERGE_NO_LEAF: nulls; of a nested column its node */
    const int32_t *leaves;
    const uint64_t *deleted; /* bit a row of the file; NULL: none */
    int32_t row_id_leaf;     /* MP_MERGE_NO_LEAF: ids count up from row_id_start */
    int64_t row_id_start;
};

struct mp_parquet_merge_column {
    struct mp_str name;
    struct mp_type type; /* NONE: nested */
    int32_t field_id;
    uint8_t annotation; /* of a nested one: MP_PARQUET_LIST, MP_PARQUET_MAP, or 0: a struct */
    uint32_t child_count;
    const struct mp_parquet_merge_column *children; /* the element, key and value, or fields */
};

struct mp_parquet_merge_options {
    const struct mp_parquet_merge_column *columns;
    uint32_t column_count;
    const struct mp_sort_field *sort;
    uint32_t sort_count;
    struct mp_str created_by, row_id_name;
    int32_t row_id_field_id;
    enum mp_codec codec;
    int level;
    uint64_t group_bytes; /* 0: 128 MiB */
    uint64_t bytes_max;   /* 0: 1 GiB */
};

struct mp_parquet_merged {
    const struct mp_parquet_footer *footer; /* of the new file, read back; NULL: no row is left */
    const struct mp_column_stats *stats;    /* one a column, in the arena */
    uint32_t stats_count;
    uint64_t rows, bytes;
};

/* Whether an input can be merged into these columns, as far as its footer tells. */
enum mp_code mp_parquet_merge_check(const struct mp_parquet_merge_input *input,
                                    const struct mp_parquet_merge_options *options,
                                    struct mp_err *err);
/* Whether inputs that can be merged can be merged with each other; `newer` comes after `older`. */
enum mp_code mp_parquet_merge_agree(const struct mp_parquet_merge_input *newer,
                                    const struct mp_parquet_merge_input *older,
                                    const struct mp_parquet_merge_options *options,
                                    struct mp_err *err);
static inline bool mp_parquet_merge_nested(const struct mp_parquet_merge_column *column)
{
    return column->type.id == MP_TYPE_NONE || column->type.id == MP_TYPE_VARIANT;
}
/* Checks every input and merges. After a failure what was written is no file; where no row is left
 * nothing is written. The new footer is in arena. *ret_input UINT32_MAX: no input's fault. */
enum mp_code mp_parquet_merge(struct mp_arena *arena, const struct mp_parquet_merge_input *inputs,
                              uint32_t count, const struct mp_parquet_merge_options *options,
                              const struct mp_parquet_output *output, struct mp_err *err,
                              uint32_t *ret_input, struct mp_parquet_merged *ret);

#endif
