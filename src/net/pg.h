/* net/pg.h - PostgreSQL through libpq's pipeline mode, every wait bounded.
 *
 * Statements are queued with their values and go out together; sync waits for all answers. The
 * first failure in a batch leaves the rest of it unrun. Nothing here begins or ends transactions
 * and nothing connects again: the caller knows what a lost connection means.
 *
 * Life     open -> (send*, sync)* -> close
 * Memory   answers are lent until the next send after their sync. Values are copied by send.
 * Waits    open at most connect_ms_max (name lookup is libc's and its own business), sync at most
 *          statement_ms_max and a little more than the server was told: a server that accepts
 *          and never answers is MP_TIMEOUT
 * Errors   MP_IO or MP_TIMEOUT where the world failed; what the server refused is MP_REFUSED with
 *          its SQLSTATE, which is what callers look at. Never a password in a text.
 * Threads  one at a time.
 * After    PostgreSQL manual, "Pipeline Mode", "Asynchronous Command Processing", appendix A.
 */
#ifndef MP_NET_PG_H
#define MP_NET_PG_H

#include "base/env.h"
#include "base/err.h"
#include "base/str.h"

/* Types of values, by their fixed numbers in pg_type. */
#define MP_PG_BOOL        16u
#define MP_PG_BYTEA       17u
#define MP_PG_INT8        20u
#define MP_PG_TEXT        25u
#define MP_PG_BYTEA_ARRAY 1001u
#define MP_PG_TEXT_ARRAY  1009u
#define MP_PG_INT8_ARRAY  1016u
#define MP_PG_TIMESTAMPTZ 1184u
#define MP_PG_UUID        2950u
#define MP_PG_UUID_ARRAY  2951u

struct mp_pg_options {
    struct mp_str conninfo; /* keywords or a URI; borrowed for the call of open */
    const char *application_name;
    uint32_t connect_ms_max, statement_ms_max; /* both at least 1 */
};

/* A value in text form; it must not hold a NUL byte (asserted). */
struct mp_pg_value {
    struct mp_str text; /* data NULL: SQL NULL */
    uint32_t type;      /* MP_PG_*; 0: the server infers it */
};

struct mp_pg_answer {
    uint32_t rows, columns;
    int64_t changed; /* rows written, or read by a SELECT */
    const char *tag; /* the command's, such as "COMMIT"; lent as the answer is */
};

struct mp_pg; /* opaque, see pg.c */

/* Connects and sets up the session: UTC, ISO dates, time-outs. Borrows env until close.
 * MP_BAD_CONFIG: conninfo does not parse or holds a value that cannot be, or the server refused who
 * we are or where we want to go (SQLSTATE classes 28 and 3D; err->sys is EACCES or ENOENT then). */
enum mp_code mp_pg_open(const struct mp_pg_options *options, const struct mp_env *env,
                        struct mp_err *err, struct mp_pg **ret);
/* Cuts the connection; an open transaction is rolled back by the server. No-op on NULL. */
void mp_pg_close(struct mp_pg *pg);
/* Whether conninfo may hold such a keyword. */
bool mp_pg_knows(struct mp_str keyword);
/* False: nothing more can be sent; close it. */
bool mp_pg_alive(const struct mp_pg *pg);

/* The same of one that has not been used for a while: what comes from the server unasked is its
 * goodbye. */
bool mp_pg_stands(const struct mp_pg *pg);

/* Whether the server said, in its last answer, that a transaction is open or failed. */
bool mp_pg_in_transaction(const struct mp_pg *pg);

/* Queues a statement with $1, $2, ... */
void mp_pg_send(struct mp_pg *pg, const char *sql, const struct mp_pg_value *values,
                uint32_t count);
/* The same for a statement that comes again and again: prepared on this connection at its first
 * use, with the types of that use. It is known by its address: sql is a literal of the program. */
void mp_pg_send_prepared(struct mp_pg *pg, const char *sql, const struct mp_pg_value *values,
                         uint32_t count);
/* Sends what is queued and waits for every answer, the first failure's is the error. */
enum mp_code mp_pg_sync(struct mp_pg *pg, struct mp_err *err);
/* The answer to the n-th statement of the last batch. */
struct mp_pg_answer mp_pg_answer(const struct mp_pg *pg, uint32_t number);
/* data NULL: SQL NULL. */
struct mp_str mp_pg_cell(const struct mp_pg *pg, uint32_t number, uint32_t row, uint32_t column);
/* Frees the answers of the last batch. */
void mp_pg_forget(struct mp_pg *pg);
/* SQLSTATE of the last failure, five characters; "" where there was none, as after a lost
 * connection that said nothing. */
const char *mp_pg_sqlstate(const struct mp_pg *pg);

#endif
