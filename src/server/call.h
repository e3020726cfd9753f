/* server/call.h - one request on its way through the service, and its answer.
 *
 * A route reads the call (parts of the path, query, body), asks the database, and writes `out`.
 * What can fail returns enum mp_code: MP_REFUSED after mp_refuse has put down the refusal, which
 * becomes the error body; any other code comes with call->err and becomes 500 or 503.
 *
 * Memory   arena and body live as long as the call, which ends with its answer.
 * Threads  a call belongs to one.
 */
#ifndef MP_SERVER_CALL_H
#define MP_SERVER_CALL_H

#include "lake/hoglake/wire.h"
#include "net/http_server.h"
#include "server/sql.h"

struct mp_server;
struct mp_pages;

enum { MP_CALL_PARTS_MAX = 6, MP_REQUEST_ID_TEXT = 130 };

struct mp_query {
    struct mp_str name, value; /* decoded, no NUL */
};

struct mp_refusal {
    unsigned status;
    struct mp_wire_error wire;
};

struct mp_call {
    struct mp_server *server;
    const struct mp_http_request *http;
    const struct mp_route *route;
    struct mp_arena arena;
    struct mp_str parts[MP_CALL_PARTS_MAX]; /* of the path, decoded, no NUL */
    struct mp_query *query;
    uint32_t query_count;
    json_t *body;       /* NULL: none came */
    struct mp_sql *sql; /* lent by mp_call_sql; given back when the call ends */
    struct mp_refusal refusal;
    struct mp_err err;
    unsigned status; /* 200 unless set */
    const char *content_type;
    struct mp_buf out;
    struct mp_pages *pages; /* what comes behind `out` (pages.h); NULL: that is all */
    uint64_t began_us;      /* when the request was complete */
    char request_id[MP_REQUEST_ID_TEXT];
    uint64_t waited_us; /* for a worker */
};

void mp_call_init(struct mp_call *call, struct mp_server *server);
void mp_call_fini(struct mp_call *call);
/* A connection of the pool, the same for the whole call. */
enum mp_code mp_call_sql(struct mp_call *call);

/* Puts a refusal down and gives MP_REFUSED. error: a literal, one of section "codes" of the docs.
 */
enum mp_code mp_refuse(struct mp_call *call, unsigned status, const char *error, const char *format,
                       ...) __attribute__((format(printf, 4, 5)));
#define mp_refuse_invalid(call, ...)  mp_refuse((call), 422, "validation", __VA_ARGS__)
#define mp_refuse_missing(call, ...)  mp_refuse((call), 404, "not_found", __VA_ARGS__)
#define mp_refuse_bad(call, ...)      mp_refuse((call), 400, "bad_request", __VA_ARGS__)
#define mp_refuse_conflict(call, ...) mp_refuse((call), 409, "commit_conflict", __VA_ARGS__)
/* 409 table_recreated; table is "namespace.name". */
enum mp_code mp_refuse_recreated(struct mp_call *call, struct mp_str namespace_name,
                                 struct mp_str table);

/* data NULL: the parameter was not given. The first of several counts. */
struct mp_str mp_call_query(const struct mp_call *call, const char *name);
/* Whether text is an integer, without blanks, that fits; only then *ret is written. */
bool mp_call_int(struct mp_str text, int64_t *ret);
/* *ret is written where it was given. 400 where it is no integer. */
enum mp_code mp_call_query_int(struct mp_call *call, const char *name, int64_t *ret, bool *ret_has);
enum mp_code mp_call_query_bool(struct mp_call *call, const char *name, bool *ret);
enum mp_code mp_call_query_uuid(struct mp_call *call, const char *name, struct mp_str *ret);
/* Takes "key_index:value" apart: 400 where it is none, 422 where there is no such key. name: of the
 * parameter it came in. */
enum mp_code mp_call_key_value(struct mp_call *call, const char *name, struct mp_str text,
                               uint32_t arity, uint32_t *ret_key, struct mp_str *ret_value);
/* A part of the path as a UUID in canonical form. */
enum mp_code mp_call_part_uuid(struct mp_call *call, uint32_t part, struct mp_str *ret);

/* Turns a reader's fault into 400, or 422 for a NUL byte. */
enum mp_code mp_call_read_end(struct mp_call *call, const struct mp_wire_reader *reader);

/* Prints an answer's rows as a JSON array. number: of the statement. */
typedef void mp_row_print(struct mp_call *call, uint32_t number, uint32_t row);
void mp_call_print_rows(struct mp_call *call, uint32_t number, mp_row_print *print);
/* The whole answer: {"name": count}. */
void mp_call_print_count(struct mp_call *call, const char *name, int64_t count);

/* author and message: of the body (which may be NULL) or, for DELETE, of the query. */
struct mp_attribution {
    struct mp_str author, message;
};
enum mp_code mp_call_attribution(struct mp_call *call, struct mp_attribution *ret);

#endif
