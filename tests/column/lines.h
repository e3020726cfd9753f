/* tests/column/lines.h - batches from JSON lines, and their columns as texts, for tests. */
#ifndef MP_TESTS_COLUMN_LINES_H
#define MP_TESTS_COLUMN_LINES_H

#include "column/batch.h"
#include "column/transform.h"
#include "harness/test.h"

struct lines {
    struct mp_segment_pool *pool;
    struct mp_json *json;
    struct mp_arena arena;
    struct mp_batch_options options;
    struct mp_live_column live_columns[32];
    struct mp_schema live; /* what the batch is made against; column_count 0: no table */
    struct mp_batch *batch;
    int64_t stamp_us;
    /* after lines_seal */
    struct mp_live_column sealed_columns[4096];
    struct mp_schema sealed;
};

void lines_open(struct lines *lines);
void lines_close(struct lines *lines);
/* A column of the live table. */
void lines_live(struct lines *lines, const char *name, struct mp_type type);
/* Appends a record; makes the batch before the first. */
void lines_add(struct lines *lines, const char *record);
/* Plans against the live table, adds what is missing to it, answers widenings with `widen`, seals.
 */
void lines_seal(struct lines *lines, bool widen);
/* "name:type" of the sealed columns, blank between. */
struct mp_str lines_types(struct lines *lines);
/* One column's values, one behind the other with '|' between; null is "~". "-" where there is no
 * such column. */
struct mp_str lines_values(struct lines *lines, const char *name);

#endif
