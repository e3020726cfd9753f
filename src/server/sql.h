/* server/sql.h - a connection to PostgreSQL with typed values and arrays.
 *
 * Statements are literals with $1, $2, ...; values travel beside them, so nothing that came in a
 * request is ever part of a statement. Each is prepared once a connection. Many rows go in as one
 * statement over unnest($1, $2, ...), one array a column.
 *
 * Life     pool: open -> (take, give)* -> close; a connection: (send*, sync)*
 * Memory   cells are lent until the first send after their sync; copy what has to live longer.
 * Threads  the pool any; a connection belongs to who took it.
 */
#ifndef MP_SERVER_SQL_H
#define MP_SERVER_SQL_H

#include "base/arena.h"
#include "base/buf.h"
#include "net/pg.h"

struct mp_sql;
struct mp_sql_pool;

struct mp_sql_pool_options {
    struct mp_str conninfo; /* a URI; copied */
    uint32_t size;          /* connections at most */
    uint32_t connect_ms_max, statement_ms_max, take_ms_max, lock_ms_max;
    bool synchronous_commit;
};

struct mp_sql_pool_state {
    uint32_t size, open, idle, waiting;
};

/* Borrows env until close. Opens no connection. */
struct mp_sql_pool *mp_sql_pool_open(const struct mp_sql_pool_options *options,
                                     const struct mp_env *env);
/* Every connection must have been given back (asserted). No-op on NULL. */
void mp_sql_pool_close(struct mp_sql_pool *pool);
struct mp_sql_pool_state mp_sql_pool_state(struct mp_sql_pool *pool);
/* Lends a connection, a new one where none is idle. MP_TIMEOUT: all are busy. */
enum mp_code mp_sql_take(struct mp_sql_pool *pool, struct mp_err *err, struct mp_sql **ret);
/* Takes it back, whatever its state: an open transaction is rolled back, a broken connection is
 * closed. No-op on NULL. */
void mp_sql_give(struct mp_sql_pool *pool, struct mp_sql **sql);

/* For statements: the number column is null, said so that no partial index is taken for it. Where
 * nothing is known of a column the planner thinks that hardly any row is null, and a partial index
 * of such rows nearly empty; what finds the row is then looked at as a filter. */
#define MP_SQL_NULL(column) "coalesce(" column ", 0) = 0"

/* --- values --- */

struct mp_v {
    uint32_t type; /* MP_PG_* */
    bool null, numeric;
    int64_t number;
    struct mp_str text;
};

static inline struct mp_v mp_v_int(int64_t number)
{
    return (struct mp_v){.type = MP_PG_INT8, .numeric = true, .number = number};
}
/* data NULL: SQL NULL. Must not hold NUL (asserted below). */
static inline struct mp_v mp_v_text(struct mp_str text)
{
    return (struct mp_v){.type = MP_PG_TEXT, .null = !text.data, .text = text};
}
static inline struct mp_v mp_v_c(const char *text)
{
    return mp_v_text(mp_str_c(text));
}
static inline struct mp_v mp_v_uuid(struct mp_str text)
{
    return (struct mp_v){.type = MP_PG_UUID, .null = !text.data, .text = text};
}
static inline struct mp_v mp_v_bool(bool value)
{
    return (struct mp_v){.type = MP_PG_BOOL, .text = value ? MP_STR("t") : MP_STR("f")};
}
static inline struct mp_v mp_v_null(uint32_t type)
{
    return (struct mp_v){.type = type, .null = true};
}
/* A number, or NULL where there is none. */
static inline struct mp_v mp_v_int_or_null(bool has, int64_t number)
{
    return has ? mp_v_int(number) : mp_v_null(MP_PG_INT8);
}

/* --- arrays: a column of many rows --- */

struct mp_sql_array {
    struct mp_buf buf;
    uint32_t type, count;
    bool closed;
};

/* type: MP_PG_*_ARRAY. The memory is freed by fini. */
void mp_sql_array_init(struct mp_sql_array *array, uint32_t type);
void mp_sql_array_fini(struct mp_sql_array *array);
void mp_sql_array_int(struct mp_sql_array *array, int64_t number);
/* data NULL: SQL NULL. Also for UUIDs. */
void mp_sql_array_text(struct mp_sql_array *array, struct mp_str text);
void mp_sql_array_bytes(struct mp_sql_array *array, struct mp_str bytes);
void mp_sql_array_null(struct mp_sql_array *array);
/* Closes the array and lends it as a value, good until fini. */
struct mp_v mp_sql_array_value(struct mp_sql_array *array);

/* --- statements --- */

/* Queues; gives the statement's number in its batch. */
uint32_t mp_sql_send(struct mp_sql *sql, const char *statement, const struct mp_v *values,
                     uint32_t count);
#define MP_SQL(sql, statement, ...)                                                                \
    mp_sql_send((sql), (statement), (const struct mp_v[]){__VA_ARGS__},                            \
                sizeof((const struct mp_v[]){__VA_ARGS__}) / sizeof(struct mp_v))
/* The same without values. */
uint32_t mp_sql_say(struct mp_sql *sql, const char *statement);
/* A script of several statements, once; nothing else may be in the batch. */
void mp_sql_script(struct mp_sql *sql, const char *text);
/* Sends and waits. MP_CONFLICT: a deadlock or a lost race; MP_TIMEOUT: a lock or the answer came
 * too late (a lock: err->sys is EBUSY); MP_FULL: a sum does not fit its column; MP_BAD_DATA: the
 * statement was refused for another reason; MP_IO: the connection. Never MP_REFUSED, which in this
 * room means a refused request. */
enum mp_code mp_sql_sync(struct mp_sql *sql, struct mp_err *err);
/* Runs what is queued and forgets what came of it; no-op where nothing is. */
void mp_sql_drop_batch(struct mp_sql *sql);
bool mp_sql_alive(const struct mp_sql *sql);
/* SQLSTATE of the last failure, or "". */
const char *mp_sql_state(const struct mp_sql *sql);
bool mp_sql_state_is(const struct mp_sql *sql, const char *state);

uint32_t mp_sql_rows(const struct mp_sql *sql, uint32_t number);
int64_t mp_sql_changed(const struct mp_sql *sql, uint32_t number);
struct mp_str mp_sql_cell(const struct mp_sql *sql, uint32_t number, uint32_t row, uint32_t column);
/* The same as a copy in arena with a NUL behind it; data NULL stays so. */
struct mp_str mp_sql_copy(const struct mp_sql *sql, struct mp_arena *arena, uint32_t number,
                          uint32_t row, uint32_t column);
bool mp_sql_null(const struct mp_sql *sql, uint32_t number, uint32_t row, uint32_t column);
/* missing where it is NULL. */
int64_t mp_sql_int(const struct mp_sql *sql, uint32_t number, uint32_t row, uint32_t column,
                   int64_t missing);
bool mp_sql_true(const struct mp_sql *sql, uint32_t number, uint32_t row, uint32_t column);

/* Items of a text[] in a cell. */
struct mp_sql_items {
    struct mp_str text; /* as PostgreSQL prints it */
    size_t at;          /* starts with 0 */
};
/* Puts the next item in the place of what item holds; false: there is none. */
bool mp_sql_items_next(struct mp_sql_items *items, struct mp_buf *item, bool *ret_null);

#endif
