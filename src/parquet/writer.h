/* parquet/writer.h - columns in, Parquet files out. No I/O, no clock: same rows in, same bytes out.
 *
 * A batch is cut into files (one per partition tuple), a file into row groups; every column of the
 * batch is one job, for all files at once, so that its memory can go back when the job is done:
 *
 *     cut -> for each column, on any thread: mp_parquet_encode
 *                                            (a VARIANT: mp_parquet_encode_variant)
 *         -> for each file: mp_parquet_file_new
 *
 * The compressed chunks outlive the file that was made from them, so a footer can be made again
 * with other names or field ids (mp_parquet_file_new is cheap) without encoding again.
 *
 * Memory   encode takes the column's segments and gives each back to the pool as soon as no file
 *          needs it any more. Chunks lie in segments of the same pool, which the last chunk of a
 *          column gives back when it is freed. A file borrows its chunks.
 * Threads  an encoder belongs to one thread at a time; chunks may be read by all, and those of one
 *          column are freed by one thread at a time.
 * After    Apache Parquet format 2.10: Encodings, Data Pages, Page Index, Column Order, Logical
 *          Types.
 */
#ifndef MP_PARQUET_WRITER_H
#define MP_PARQUET_WRITER_H

#include "base/err.h"
#include "base/segment.h"
#include "column/column.h"
#include "column/variant.h"
#include "parquet/stats.h"

enum mp_codec { MP_CODEC_NONE, MP_CODEC_SNAPPY, MP_CODEC_ZSTD, MP_CODEC_LZ4_RAW, MP_CODEC_GZIP };

struct mp_parquet_options {
    enum mp_codec codec;
    int level;                     /* zstd; 0: 1 */
    uint32_t page_bytes;           /* raw bytes of a data page, about; 0: 1 MiB, zstd 2 MiB */
    uint32_t dictionary_bytes_max; /* a larger dictionary falls back to PLAIN; 0: 1 MiB */
    bool no_dictionary;
};

/* The rows of one file, in the order in which they are to stand. */
struct mp_parquet_rows {
    const uint32_t *rows; /* NULL: rows 0 to count - 1 */
    uint32_t count;
};

struct mp_parquet_cut {
    const struct mp_parquet_rows *files;
    uint32_t file_count;
    uint32_t group_rows_max; /* rows of a row group */
};

/* Row groups of one file of the cut. */
uint32_t mp_parquet_groups(const struct mp_parquet_cut *cut, uint32_t file);

struct mp_parquet_chunk; /* one column of one row group, encoded; opaque */

struct mp_parquet_encoder; /* scratch of one worker: codec state, hash table, page buffer */

struct mp_parquet_encoder *mp_parquet_encoder_new(const struct mp_parquet_options *options);
void mp_parquet_encoder_free(struct mp_parquet_encoder *encoder);

/* Encodes one column for every file and row group. Gives the chunks file by file, group by group
 * within: ret has room for the sum of mp_parquet_groups. Takes column->segments. Every row of the
 * batch stands in at most one file. */
enum mp_code mp_parquet_encode(struct mp_parquet_encoder *encoder, struct mp_segment_pool *pool,
                               struct mp_column *column, const struct mp_parquet_cut *cut,
                               struct mp_err *err, struct mp_parquet_chunk **ret);
/* How a VARIANT is made of another column. */
struct mp_parquet_variant_options {
    struct mp_variant_allow apart; /* members that may be stored apart, see column/variant.h */
    uint32_t apart_max;            /* at most so many of them; 0: none at all */
};

struct mp_parquet_variant_counts {
    uint64_t unfit;   /* values that are no JSON that a VARIANT can hold: null in it */
    uint64_t rounded; /* values with an integer of more than 38 digits, now a double */
};

/* Encodes the VARIANT that is made of source's values: of text that is JSON its value, of numbers
 * and booleans the same, of other types a string of their text. Leaves source as it is: it is
 * encoded afterwards. The rest is as above; adds to *counts. One shape, taken from a sample of
 * the rows, holds for all files. */
enum mp_code mp_parquet_encode_variant(struct mp_parquet_encoder *encoder,
                                       struct mp_segment_pool *pool, const struct mp_column *source,
                                       const struct mp_parquet_cut *cut,
                                       const struct mp_parquet_variant_options *options,
                                       struct mp_err *err, struct mp_parquet_chunk **ret,
                                       struct mp_parquet_variant_counts *counts);
/* Compressed bytes of a chunk. */
uint64_t mp_parquet_chunk_bytes(const struct mp_parquet_chunk *chunk);

/* Where a file's bytes go, in order. */
struct mp_parquet_output {
    enum mp_code (*write)(void *context, struct mp_str bytes, struct mp_err *err);
    void *context;
};

/* Writes the chunk's bytes and lets go of them; what a footer says of the chunk stays. A file of
 * such chunks has no pieces in their places. */
enum mp_code mp_parquet_chunk_write(struct mp_parquet_chunk *chunk,
                                    const struct mp_parquet_output *output, struct mp_err *err);
/* No-op on NULL. */
void mp_parquet_chunk_free(struct mp_parquet_chunk *chunk);

struct mp_parquet_file {
    const struct mp_str *pieces; /* the file's bytes in order */
    uint32_t piece_count;
    uint64_t bytes;        /* of the whole file */
    uint32_t footer_bytes; /* the Thrift footer alone, without its length and "PAR1" */
    uint64_t rows;
    const struct mp_column_stats *stats; /* one per column, in file order */
    uint32_t stats_count;
};

/* What the footer says of a column; type must be the one it was encoded with. */
struct mp_parquet_field {
    struct mp_str name;
    struct mp_type type;
    int32_t field_id;
    /* its chunks, one per row group: chunks[group] */
    struct mp_parquet_chunk *const *chunks;
    const struct mp_parquet_tree *tree; /* a nested column of a merge, type NONE; else NULL */
};

/* Puts page indexes and footer around the chunks of one file. Gives a file that borrows them. */
struct mp_parquet_file *mp_parquet_file_new(const struct mp_parquet_field *fields,
                                            uint32_t field_count, uint32_t group_count,
                                            struct mp_str created_by);
/* No-op on NULL; the chunks stay. */
void mp_parquet_file_free(struct mp_parquet_file *file);

#endif
