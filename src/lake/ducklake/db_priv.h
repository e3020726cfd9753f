/* lake/ducklake/db_priv.h - inner door between db.c and its two databases. */
#ifndef MP_LAKE_DUCKLAKE_DB_PRIV_H
#define MP_LAKE_DUCKLAKE_DB_PRIV_H

#include "base/arena.h"
#include "base/buf.h"
#include "lake/ducklake/db.h"

#define MP_DB_TEXT_MAX   ((size_t)768 << 20) /* one statement with its values */
#define MP_DB_PARAMS_MAX 32u

struct mp_db_ops {
    /* Opens a connection. On failure nothing is open. */
    enum mp_db_class (*open)(struct mp_db *db, struct mp_err *err);
    void (*shut)(struct mp_db *db);
    void (*begin)(struct mp_db *db, enum mp_db_mode mode);
    /* Queues or runs one statement; its result goes to mp_db_result_put sooner or later. */
    void (*send)(struct mp_db *db, const char *sql, const struct mp_db_value *values,
                 uint32_t count);
    void (*rows_begin)(struct mp_db *db);
    void (*rows_add)(struct mp_db *db, const struct mp_db_value *values);
    void (*rows_end)(struct mp_db *db);
    /* Ends the batch; fills err on a failure. */
    enum mp_db_class (*sync)(struct mp_db *db, struct mp_err *err);
    enum mp_db_class (*commit)(struct mp_db *db, struct mp_err *err);
    void (*rollback)(struct mp_db *db);
    void (*free)(struct mp_db *db);
};

struct mp_db {
    const struct mp_db_ops *ops;
    const struct mp_env *env;
    void *self;           /* the driver's own */
    struct mp_str target; /* behind the colon, with a NUL */
    uint32_t statement_ms_max, connect_ms_max;
    bool read_only, connected;
    bool in_transaction;
    enum mp_db_class class;
    struct mp_db_fault fault;
    enum mp_db_class fault_pending; /* a queued call was told to fail */
    struct mp_arena arena;          /* results of one batch */
    struct mp_db_result *results;
    uint32_t result_count, result_room; /* statements of the batch that have a number */
    bool batch_open;                    /* something was sent since the last sync */
    /* rows_begin to rows_end */
    const char *rows_table;
    const struct mp_db_column *rows_columns;
    uint32_t rows_column_count;
};

extern const struct mp_db_ops mp_db_sqlite_ops, mp_db_pg_ops;

/* Keeps the answer to statement `number` of the batch. Its cells lie in db->arena. */
void mp_db_result_put(struct mp_db *db, uint32_t number, struct mp_db_result result);
/* Fills err with the code that goes with the class and gives the class. */
enum mp_db_class mp_db_fail(struct mp_err *err, enum mp_db_class class, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
