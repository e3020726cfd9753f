/* parquet/join.h - several Parquet files of one schema -> one file, byte for byte.
 *
 * Column chunks are copied as they are, whatever their codecs and encodings; only the footer is
 * new. So a join costs the bytes that it moves and can change no value. The new file holds the
 * inputs' row groups in the inputs' order (empty ones left out) and, where asked for, one more
 * column: the id of every row, INT64, required unless an input has it as optional. An input that
 * has that column already keeps its own; for the others ids count up from row_id_start.
 *
 * What is kept   statistics, sizes, encodings, sorting columns; key-value pairs that all inputs
 * have alike (without ARROW:schema where a column is added, which it would contradict); column
 * orders where they agree. What is not    bloom filters, page indexes, and the offsets that pointed
 * at them.
 *
 * A join is refused (MP_REFUSED, with the reason) where values would have to be decoded: schemas
 * that differ in more than names, a node without field id whose name differs, a leaf without field
 * id, deleted rows, a sort order. MP_BAD_DATA: an input contradicts itself.
 *
 * Memory   one window of read_bytes, one page of row ids, and the new footer.
 * Inputs   are only read where their footers say. The caller has compared each footer's rows with
 *          what the catalog says of the file.
 * After    Parquet "File Format", "Metadata".
 */
#ifndef MP_PARQUET_JOIN_H
#define MP_PARQUET_JOIN_H

#include "parquet/footer.h"
#include "parquet/writer.h"

struct mp_parquet_join_input {
    const struct mp_parquet_footer *footer;
    int64_t row_id_start;  /* used where the file has no row ids of its own */
    uint64_t deleted_rows; /* by a deletion vector */
    /* Reads exactly `size` bytes at `offset` into ret. */
    enum mp_code (*read)(void *context, uint64_t offset, size_t size, char *ret,
                         struct mp_err *err);
    void *context;
};

struct mp_parquet_join_options {
    struct mp_str created_by;
    uint32_t names_from; /* the input whose column names the new file has */
    bool sorted;         /* the table has a sort order */
    bool row_ids;        /* the new file has a column of row ids, as its last one */
    struct mp_str row_id_name;
    int32_t row_id_field_id;
    enum mp_codec codec; /* of the row ids */
    int level;
    size_t read_bytes; /* 0: 4 MiB */
};

struct mp_parquet_joined {
    const struct mp_parquet_footer *footer; /* of the new file, read back from its bytes */
    uint64_t bytes;
};

/* Whether the inputs can be joined; reads nothing. */
enum mp_code mp_parquet_join_check(const struct mp_parquet_join_input *inputs, uint32_t count,
                                   const struct mp_parquet_join_options *options,
                                   struct mp_err *err);
/* Checks and joins. After a failure what was written is no file. The new footer is in arena. */
enum mp_code mp_parquet_join(struct mp_arena *arena, const struct mp_parquet_join_input *inputs,
                             uint32_t count, const struct mp_parquet_join_options *options,
                             const struct mp_parquet_output *output, struct mp_err *err,
                             struct mp_parquet_joined *ret);

#endif
