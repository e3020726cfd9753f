/* parquet/reader.h - one column chunk of a Parquet file: bytes in, values out. No I/O.
 *
 * A chunk is read from its first row to its last, some rows at a time, whatever its pages, so that
 * memory is one page, the chunk's dictionary and one batch:
 *
 *     new -> (open -> next until it gives no rows)* -> free
 *
 * A leaf inside groups is read entry by entry, each with its definition and repetition level; a
 * row is the entries from a repetition level 0 to the next. How many rows there are the caller
 * counts: the footer tells the number of entries alone.
 *
 * What is read   leaves of any depth; data pages V1 and V2; PLAIN, PLAIN_DICTIONARY,
 *                RLE_DICTIONARY, RLE (booleans), DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY,
 *                DELTA_BYTE_ARRAY and BYTE_STREAM_SPLIT; no codec, snappy, gzip, zstd and lz4_raw.
 *                Checksums of pages are checked where they stand. The rest (BIT_PACKED levels, lzo,
 *                brotli, Hadoop's lz4, encryption) is refused.
 * Errors         MP_REFUSED: a form that is not read. MP_BAD_DATA: the bytes contradict themselves
 *                or the footer; no length or count in them is used before it was checked.
 *                MP_FULL: a page above page_bytes_max. The text names column, row group and page.
 * Threads        a reader belongs to one thread at a time.
 * After          Parquet format 2.11: "Data Pages", "Encodings", "Compression".
 */
#ifndef MP_PARQUET_READER_H
#define MP_PARQUET_READER_H

#include "parquet/footer.h"

#define MP_PARQUET_BATCH_ROWS 1024u

/* Some rows of a chunk, of a nested leaf some entries; lent until the next call. */
struct mp_parquet_batch {
    uint32_t rows;              /* 0: the chunk has no more */
    uint32_t values;            /* rows that are not null; entries that have a value */
    const uint64_t *validity;   /* bit r & 63 of word r / 64; bits past rows are zero */
    const uint8_t *definitions; /* levels of each entry */
    const uint8_t *repetitions;
    const char *fixed;          /* values side by side as PLAIN has them; a BOOLEAN is one byte */
    const struct mp_str *texts; /* values of a BYTE_ARRAY; fixed is NULL then */
};

struct mp_parquet_reader;

/* page_bytes_max: a page that is larger before compression is refused; 0: 1 GiB. */
struct mp_parquet_reader *mp_parquet_reader_new(uint64_t page_bytes_max);
/* No-op on NULL. */
void mp_parquet_reader_free(struct mp_parquet_reader *reader);
/* Whether the leaf is of a form that can be read, as far as the footer tells. MP_REFUSED: no. */
enum mp_code mp_parquet_reader_check(const struct mp_parquet_footer *footer, uint32_t leaf,
                                     struct mp_err *err);
/* Begins the chunk of a leaf. Borrows footer and chunk (the chunk's bytes, `bytes` of them from
 * `start` on) until the next open. */
enum mp_code mp_parquet_reader_open(struct mp_parquet_reader *reader,
                                    const struct mp_parquet_footer *footer, uint32_t group,
                                    uint32_t leaf, struct mp_str chunk, struct mp_err *err);
/* A chunk's bytes in its file, as open wants them. Where it has none it says nothing of a place. */
static inline struct mp_str mp_parquet_chunk_in(struct mp_str file,
                                                const struct mp_parquet_column_chunk *chunk)
{
    return chunk->bytes ? mp_str_n(file.data + chunk->start, (size_t)chunk->bytes)
                        : mp_str_n(file.data, 0);
}
/* Gives the next rows, at most MP_PARQUET_BATCH_ROWS. */
enum mp_code mp_parquet_reader_next(struct mp_parquet_reader *reader, struct mp_err *err,
                                    struct mp_parquet_batch *ret);
/* A leaf of the root, or one of groups that are required, is flat: its entries are its rows. */
static inline bool mp_parquet_leaf_nested(const struct mp_parquet_node *leaf)
{
    return leaf->repetition_max || leaf->definition_max > 1;
}
/* Bytes of a value of a leaf in a batch; 0: texts. */
uint32_t mp_parquet_leaf_width(const struct mp_parquet_node *leaf);

#endif
