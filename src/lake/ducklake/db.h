/* lake/ducklake/db.h - the small seam over the two catalog databases.
 *
 * Statements are written once, with $1, $2, ... for values, in the SQL that PostgreSQL and SQLite
 * share. They are queued by mp_db_send and answered together by mp_db_sync: one round trip of a
 * libpq pipeline in PostgreSQL, plain steps in SQLite. After the first statement that fails the
 * rest of its batch is not run.
 *
 * Life     new -> ready -> (begin, send*, sync)* -> commit | rollback -> ... -> free
 * Memory   results are lent until the first send after their sync.
 * Threads  one at a time.
 * Always   D1 every wait is bounded by statement_ms_max (and a little for the network)
 *          D2 a transaction that writes holds the one lock of the catalog from its begin to its
 *             end (an advisory lock, or SQLite's write lock), so our own writers queue for it
 *             and do not fail on each other
 *          D3 after MP_DB_LOST the connection is closed; ready makes a new one
 *          D4 SQLSTATE or the SQLite result code decides the class, never the message
 */
#ifndef MP_LAKE_DUCKLAKE_DB_H
#define MP_LAKE_DUCKLAKE_DB_H

#include "base/env.h"
#include "base/err.h"
#include "base/str.h"

/* What a failure means for the transaction. */
enum mp_db_class {
    MP_DB_OK,
    MP_DB_RACE,    /* somebody else was first; nothing happened; run it again */
    MP_DB_LOST,    /* the connection is gone; of a commit nobody knows the outcome */
    MP_DB_OUTAGE,  /* the database cannot just now */
    MP_DB_REFUSED, /* it said no and will say it again */
};

enum mp_db_kind { MP_DB_INT, MP_DB_TEXT, MP_DB_BOOL, MP_DB_UUID, MP_DB_TIME };

struct mp_db_value {
    uint8_t kind;
    bool null;
    int64_t number; /* INT and BOOL */
    struct mp_str text;
};

static inline struct mp_db_value mp_db_int(int64_t number)
{
    return (struct mp_db_value){.kind = MP_DB_INT, .number = number};
}

static inline struct mp_db_value mp_db_bool(bool value)
{
    return (struct mp_db_value){.kind = MP_DB_BOOL, .number = value};
}

/* Text must not hold a NUL byte (asserted): neither database keeps one. */
static inline struct mp_db_value mp_db_text(struct mp_str text)
{
    return (struct mp_db_value){.kind = MP_DB_TEXT, .text = text};
}

static inline struct mp_db_value mp_db_c(const char *text)
{
    return mp_db_text(mp_str_c(text));
}

static inline struct mp_db_value mp_db_uuid(const char *text)
{
    return (struct mp_db_value){.kind = MP_DB_UUID, .text = mp_str_c(text)};
}

static inline struct mp_db_value mp_db_null(enum mp_db_kind kind)
{
    return (struct mp_db_value){.kind = (uint8_t)kind, .null = true};
}

struct mp_db_result {
    uint32_t rows, columns;
    int64_t changed;            /* rows written */
    const struct mp_str *cells; /* row by row; data NULL: SQL NULL */
};

static inline struct mp_str mp_db_cell(const struct mp_db_result *result, uint32_t row,
                                       uint32_t column)
{
    return result->cells[(size_t)row * result->columns + column];
}

static inline bool mp_db_is_null(const struct mp_db_result *result, uint32_t row, uint32_t column)
{
    return !mp_db_cell(result, row, column).data;
}

/* The cell as a number; `missing` where it is NULL or no number. */
int64_t mp_db_number(const struct mp_db_result *result, uint32_t row, uint32_t column,
                     int64_t missing);
/* True for the spellings of both databases: "t", "true", "1". */
bool mp_db_truth(const struct mp_db_result *result, uint32_t row, uint32_t column);
/* The whole text as a decimal number of 64 bits. */
bool mp_db_parse_int(struct mp_str text, int64_t *ret);

/* A column of a table that many rows go into. */
struct mp_db_column {
    const char *name;
    enum mp_db_kind kind;
};

struct mp_db_options {
    struct mp_str catalog; /* "sqlite:PATH" or "postgres:CONNINFO"; copied */
    uint32_t statement_ms_max, connect_ms_max;
    bool read_only; /* creates no file, asks for no lock */
};

enum mp_db_mode { MP_DB_READ, MP_DB_WRITE };

/* For tests: the call that makes `countdown` 0 fails (sends, syncs, commits and connects count). */
struct mp_db_fault {
    uint32_t countdown; /* 0: no fault is armed */
    uint32_t calls;     /* so far */
    enum mp_db_class class;
    bool after; /* the call is made first, then its answer is thrown away */
};

struct mp_db; /* opaque, see db_priv.h */

/* Gives a closed handle; no connection is made. MP_BAD_CONFIG: neither kind of catalog. */
enum mp_code mp_db_new(const struct mp_db_options *options, const struct mp_env *env,
                       struct mp_err *err, struct mp_db **ret);
void mp_db_free(struct mp_db *db);
bool mp_db_is_sqlite(const struct mp_db *db);
struct mp_db_fault *mp_db_fault(struct mp_db *db);

/* Connects where there is no connection. MP_NOT_FOUND: read only and there is no such file. */
enum mp_code mp_db_ready(struct mp_db *db, struct mp_err *err);
/* Queues BEGIN: a writing transaction takes the catalog's lock, a reading one sees one snapshot.
 * Clears the class. */
void mp_db_begin(struct mp_db *db, enum mp_db_mode mode);
/* Queues a statement and gives its number for mp_db_result. Values are copied. */
uint32_t mp_db_send(struct mp_db *db, const char *sql, const struct mp_db_value *values,
                    uint32_t count);
#define MP_DB_SEND(db, sql, ...)                                                                   \
    mp_db_send((db), (sql), (const struct mp_db_value[]){__VA_ARGS__},                             \
               sizeof((const struct mp_db_value[]){__VA_ARGS__}) / sizeof(struct mp_db_value))
/* Queues the insert of many rows: as few statements as there can be. table, columns and values
 * are borrowed for the call (columns until rows_end). */
void mp_db_rows_begin(struct mp_db *db, const char *table, const struct mp_db_column *columns,
                      uint32_t column_count);
void mp_db_rows_add(struct mp_db *db, const struct mp_db_value *values);
void mp_db_rows_end(struct mp_db *db);
/* Runs what is queued and answers with the first failure. */
enum mp_code mp_db_sync(struct mp_db *db, struct mp_err *err);
const struct mp_db_result *mp_db_result(const struct mp_db *db, uint32_t number);
/* Ends the transaction. A fault here leaves the outcome unknown when the class is LOST. */
enum mp_code mp_db_commit(struct mp_db *db, struct mp_err *err);
/* No-op where there is no transaction. Keeps the class. */
void mp_db_rollback(struct mp_db *db);
/* Class of the last failure since begin or ready; OK: there was none. */
enum mp_db_class mp_db_class(const struct mp_db *db);

#endif
