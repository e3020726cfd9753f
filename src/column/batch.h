/* column/batch.h - rows on their way to Parquet, held as columns.
 *
 * Filled record by record from the JSON scanner's fields, read column by column. Does no I/O and
 * reads no clock. A column's type is the live table's, else the pinned one, else the join of all
 * kinds the batch has seen (null < bool; int64 < double; int64 < larger integer; any other pair is
 * VARCHAR), which is decided at the end, so that it depends on no order. What a column cannot hold
 * goes, exactly as it was sent, into the rescued column of its row.
 *
 * Life     new -> append* -> (plan -> evolve the table)* -> seal -> columns -> free
 * Memory   values in segments of the pool, the rest in an arena; `bytes` counts both.
 * Threads  a batch belongs to one thread at a time; sealed columns may be encoded by many.
 * Always   B1 between rows every column holds one value or null for each of `rows` rows
 *          B2 validity bits past `rows` are zero
 *          B3 a record is appended whole; nothing that it holds can refuse it
 */
#ifndef MP_COLUMN_BATCH_H
#define MP_COLUMN_BATCH_H

#include "base/err.h"
#include "base/segment.h"
#include "column/column.h"
#include "column/schema.h"
#include "json/json.h"

struct mp_batch; /* opaque, see batch_priv.h */

struct mp_pin {
    struct mp_str name;
    struct mp_type type;
};

/* A VARIANT column that is made of another column's values. */
struct mp_companion {
    struct mp_str source, name;
};

/* Borrowed until the batch is freed. */
struct mp_batch_options {
    const struct mp_schema *live; /* NULL: the table is not there yet */
    const struct mp_pin *pins;
    uint32_t pin_count;
    struct mp_str rescued_name;     /* empty: nothing is kept of what does not fit */
    struct mp_str inserted_at_name; /* empty: no such column */
    const struct mp_companion *companions;
    uint32_t companion_count;
    uint32_t columns_max;                /* new columns stop here; live ones are always filled */
    bool fold_case;                      /* names that differ in ASCII case only are one column */
    bool widen;                          /* a live BIGINT may become DOUBLE */
    bool promote;                        /* live small integers may become INT64, FLOAT DOUBLE */
    bool (*name_ok)(struct mp_str name); /* NULL: any name */
    const struct mp_str *refused;        /* names the destination would not make columns of */
    uint32_t refused_count;
};

/* Why a value went into the rescued column. */
enum mp_rescue {
    MP_RESCUE_TYPE,     /* the column's type cannot hold it */
    MP_RESCUE_ROUNDED,  /* stored as the nearest double, its digits kept here */
    MP_RESCUE_NAME,     /* the destination cannot have a column of this name */
    MP_RESCUE_RESERVED, /* the name is the pipeline's own */
    MP_RESCUE_CASE,     /* lost against another spelling of the same column */
    MP_RESCUE_BUDGET,   /* one column too many */
    MP_RESCUE_REASONS
};
/* Gives a constant name for a metric's label. */
const char *mp_rescue_name(enum mp_rescue reason);

struct mp_batch *mp_batch_new(struct mp_segment_pool *pool, const struct mp_batch_options *options);
/* No-op on NULL. */
void mp_batch_free(struct mp_batch *batch);

/* Appends one record. key names are asked of json, which scanned it (and whose keys must not be
 * reset while the batch is filled). */
void mp_batch_append(struct mp_batch *batch, const struct mp_json *json,
                     const struct mp_json_record *record);

/* Rows given value by value, for tables whose columns the program knows: declare columns of typed
 * names first, then for each row set some and end it. */
uint32_t mp_batch_declare(struct mp_batch *batch, struct mp_str name, struct mp_type type);
void mp_batch_set(struct mp_batch *batch, uint32_t column, const void *value);
void mp_batch_set_text(struct mp_batch *batch, uint32_t column, struct mp_str text);
void mp_batch_row_end(struct mp_batch *batch);

uint32_t mp_batch_rows(const struct mp_batch *batch);
/* Memory held: segments of the pool, and what is beside them (names, bitmaps, rescued texts, which
 * count twice since the seal writes them once more). Of a sealed batch what it held then. */
size_t mp_batch_bytes(const struct mp_batch *batch);
size_t mp_batch_own_bytes(const struct mp_batch *batch);
/* What the same rows would take as Arrow buffers: 8 bytes an int64, double or timestamp, 16 a
 * UUID, a bit a boolean, 4 and its bytes a text, a bit a row for columns with nulls. FLUSH_SIZE is
 * compared with this. */
size_t mp_batch_arrow_bytes(const struct mp_batch *batch);
uint64_t mp_batch_rescued(const struct mp_batch *batch, enum mp_rescue reason);
/* Keys whose values were rescued because a VARIANT column has their name. */
uint32_t mp_batch_variant_keys(const struct mp_batch *batch);
/* A companion that the last plan had to leave out, though its source has values: its name cannot be
 * had, or is a column of another type. NULL: none; ret_count says how many. */
const struct mp_companion *mp_batch_companion_refused(const struct mp_batch *batch,
                                                      uint32_t *ret_count);
/* Columns with at least one value. */
uint32_t mp_batch_column_count(const struct mp_batch *batch);

/* A column of a given type, live or pinned, whose values were not all of the type's own kind. */
struct mp_misfit {
    struct mp_str name; /* lent until the batch is freed */
    struct mp_type type;
    bool pinned;      /* to this type; else only refused ones are told */
    uint32_t refused; /* values the type could not hold exactly; 0: all were converted */
};
/* Gives the next one from *at on, which begins at 0 and is moved on; false: there are no more. For
 * sealed batches, since a fraction in a BIGINT is decided late. */
bool mp_batch_misfit(const struct mp_batch *batch, uint32_t *at, struct mp_misfit *ret);
#define MP_BATCH_NAMES_KEPT 10
/* How many different names made no column because the destination cannot have them; lends the
 * first of them, MP_BATCH_NAMES_KEPT at most. */
uint32_t mp_batch_refused_names(const struct mp_batch *batch, const struct mp_str **ret);

/* What the table must get before the batch can be encoded; lent until the next plan or free. */
struct mp_batch_plan {
    /* new columns with their types, in the order in which their keys were first seen; then pinned
     * ones that were not seen, companions of those with values, and the pipeline's own */
    const struct mp_pin *add;
    uint32_t add_count;
    const int32_t *widen; /* field ids of BIGINT columns that have seen fractions */
    uint32_t widen_count;
    const struct mp_promotion *promote; /* columns too small for a value that was rescued; may be
                                         * left undone. Done: the next plan is MP_CHANGED */
    uint32_t promote_count;
};

/* Compares the batch with the table as it is now (NULL: not there) and says what is missing;
 * nothing missing: it can be sealed. MP_CHANGED: a column is there with a type that the batch's
 * values were not made for, or is gone; they must be read again. */
enum mp_code mp_batch_plan(struct mp_batch *batch, const struct mp_schema *live, struct mp_err *err,
                           struct mp_batch_plan *ret);
/* The table keeps this BIGINT column: whole fractions are stored, the others rescued. */
void mp_batch_keep_bigint(struct mp_batch *batch, int32_t field_id);

/* Fixes everything: types, the rescued column, the stamp (microseconds UTC) in every row. live is
 * the table whose plan was empty. No more rows after that. */
void mp_batch_seal(struct mp_batch *batch, const struct mp_schema *live, int64_t inserted_at_us);
/* The sealed columns, in the table's order; good until free. mp_parquet_encode may take their
 * segments. */
struct mp_column *mp_batch_columns(struct mp_batch *batch, uint32_t *ret_count);

/* Asserts B1, B2 and the segments' sums; slow. */
void mp_batch_check(const struct mp_batch *batch);
#endif
