/* parquet/join_priv.h - what the files of a join know of each other.
 *
 *     join_check    may these files be joined
 *     row_ids       the column of row ids: which input has it, its pages where none has
 *     join_footer   the new footer
 *     join          the main line: check, copy, footer
 */
#ifndef MP_PARQUET_JOIN_PRIV_H
#define MP_PARQUET_JOIN_PRIV_H

#include "parquet/join.h"
#include "parquet/parquet_priv.h"

#define MP_JOIN_GROUP_ROWS_MAX INT32_MAX

/* A chunk of row ids that was made, one a row group of the new file. */
struct mp_row_ids {
    int64_t first;
    uint64_t bytes, raw_bytes; /* 0: the input has its own */
    uint32_t page_count;
};

struct mp_join {
    const struct mp_parquet_join_input *inputs;
    uint32_t count;
    const struct mp_parquet_join_options *options;
    bool optional_ids;      /* the row ids are an optional column */
    struct mp_row_ids *ids; /* one a row group that is not empty; NULL: no such column */
};

/* Whether the file has the row ids that the options name, as its last column. */
bool mp_row_ids_there(const struct mp_parquet_footer *footer,
                      const struct mp_parquet_join_options *options);
/* Makes the pages of one row group and writes them. */
enum mp_code mp_row_ids_write(const struct mp_join *join, struct mp_parquet_encoder *encoder,
                              int64_t first, uint32_t rows, const struct mp_parquet_output *output,
                              struct mp_err *err, struct mp_row_ids *ret);

/* Writes footer, its length and the magic for chunks that were laid out from offset 4 on. */
enum mp_code mp_join_footer(const struct mp_join *join, struct mp_err *err, struct mp_buf *ret);

#endif
