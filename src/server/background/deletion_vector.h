/* server/background/deletion_vector.h - which rows of a data file a deletion vector takes. Pure.
 *
 * A vector is a blob "deletion-vector-v1" in a Puffin file: a set of row positions, counted from 0,
 * as a 64-bit Roaring bitmap in its portable form. A file of several blobs says in each which data
 * file it is for; one of a single blob may leave that out.
 *
 * Errors  MP_BAD_DATA: it is no such file, or speaks of rows that are not there. MP_REFUSED: its
 *         footer or blob is compressed.
 * After   Iceberg "Puffin spec" (File structure, deletion-vector-v1); Roaring "RoaringFormatSpec".
 */
#ifndef MP_SERVER_BACKGROUND_DELETION_VECTOR_H
#define MP_SERVER_BACKGROUND_DELETION_VECTOR_H

#include "base/arena.h"
#include "base/err.h"

struct mp_deletion_vector {
    const uint64_t *rows; /* bit r & 63 of word r / 64, in the arena; bits past the rows are zero */
    uint64_t count;       /* bits that are set */
};

/* puffin: the whole file. rows: of the data file, fewer than 2^32. */
enum mp_code mp_deletion_vector_read(struct mp_arena *arena, struct mp_str puffin,
                                     struct mp_str data_file_path, uint64_t rows,
                                     struct mp_err *err, struct mp_deletion_vector *ret);

#endif
