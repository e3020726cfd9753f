/* net/http_server.h - a small HTTP server: requests in, one function answers.
 *
 * HTTP/1.1 with keep-alive, or HTTPS (TLS 1.2 or 1.3) where a certificate is given;
 * http_tls.h renews it. A HEAD is
 * handed on as a GET and answered without its body. A connection on which nothing moves for 30 s is
 * closed; it costs a descriptor meanwhile, no thread. There are connections_max at most. When fewer
 * than a tenth of them are free, each new one ends the one that has waited longest for a (whole)
 * request; while all of them have one, new ones wait.
 *
 * Bodies   B1 one above body_bytes_max is answered 413 and not handed on
 *          B2 all that are held at a time, the memory behind them counted, stay within
 *             bodies_bytes_max; the piece that would pass it frees its request's body, and the
 *             request is answered 503 with Retry-After once the rest of it has been read
 *          B3 one that is not complete body_ms_max after its headers ends with its connection: at
 *             the next piece, or, where none comes, after the 30 s
 *          B4 a body is freed when its handler returns, however slowly the answer is read
 *
 * Answers  A1 one is whole, or a stream: a first piece, and a function that makes the next one. It
 *             is called by a worker, never between connections, once the piece before it has been
 *             taken; between two pieces a stream holds no thread
 *          A2 a connection holds the memory of one answer: a whole one (until its last block has
 *             been taken), or one piece and what stands behind the stream
 *          A3 while all that are held at a time pass answers_bytes_max, requests are answered 503
 *             with Retry-After before their handlers see them; so what is held stays within it and
 *             one answer for each request that runs
 *          A4 one that has not been taken answer_ms_max after it began ends with its connection:
 *             at the next block, or, where nothing moves, after the 30 s
 *          A5 a HEAD makes no second piece, and ends with its connection where there would be one
 *          A6 a stream that cannot go on ends with its connection, without the last chunk, so that
 *             a client sees it (one of HTTP/1.0 sees the connection end, as after a good answer)
 *
 * With workers, requests wait in a queue for one of a fixed number of threads, so a handler may
 * block; while the queue is full, and while the server closes, a request is answered 503 with
 * Retry-After. Without workers the handler runs between connections and has to be quick.
 *
 * Threads  the handler is called from the server's own threads, several at once.
 */
#ifndef MP_NET_HTTP_SERVER_H
#define MP_NET_HTTP_SERVER_H

#include "base/buf.h"
#include "base/env.h"
#include "base/err.h"
#include "net/http_tls.h"

struct mp_http_exchange; /* what header lookups need; opaque */

/* Lent until the handler returns. */
struct mp_http_request {
    struct mp_str method, path; /* path without the query, as sent: not decoded */
    struct mp_str query;        /* behind the '?', not decoded; empty: none */
    struct mp_str body;
    uint64_t queued_us; /* monotonic time at which it was complete */
    const struct mp_http_exchange *exchange;
};

/* How an answer ended. */
enum mp_http_end {
    MP_HTTP_SENT,
    MP_HTTP_BROKEN,  /* the next piece could not be made */
    MP_HTTP_LATE,    /* it was not taken in time */
    MP_HTTP_STOPPED, /* the server closed */
    MP_HTTP_GONE,    /* the client did */
};

/* What comes behind the first piece of an answer. */
struct mp_http_stream {
    /* Puts the next piece into *piece, which comes empty. False: the stream is broken. */
    bool (*next)(void *self, struct mp_buf *piece, bool *ret_last);
    /* Called once, last; frees self. bytes: of the body, given to the client. */
    void (*done)(void *self, enum mp_http_end end, uint64_t bytes);
    void *self;
    size_t bytes; /* memory behind self, for the bound of answers */
};

enum { MP_HTTP_HEADERS_MAX = 4 };

struct mp_http_header {
    const char *name; /* a literal */
    char value[160];
};

/* Comes in as 500 with an empty body of no practical limit. */
struct mp_http_response {
    unsigned status;
    const char *content_type;     /* NULL: none is sent; copied */
    struct mp_buf body;           /* freed by the server */
    struct mp_http_stream stream; /* taken; next NULL: body is the whole answer. Needs workers */
    struct mp_http_header headers[MP_HTTP_HEADERS_MAX];
    uint32_t header_count;
};

/* A header's value; data NULL: the request has none of that name. */
struct mp_str mp_http_request_header(const struct mp_http_request *request, const char *name);
/* Adds a header; name is a literal, the value is copied and cut to its room. */
void mp_http_response_header(struct mp_http_response *response, const char *name,
                             const char *value);

struct mp_http_server_options {
    const char *address;      /* NULL: all interfaces */
    uint16_t port;            /* 0: a free one, see mp_http_server_port */
    uint32_t threads;         /* 0: 1 */
    uint32_t connections_max; /* 0: 1,000 */
    size_t body_bytes_max;
    size_t bodies_bytes_max;  /* 0: no bound */
    uint32_t body_ms_max;     /* 0: no bound */
    size_t answers_bytes_max; /* 0: no bound */
    uint32_t answer_ms_max;   /* 0: no bound */
    struct mp_http_tls *tls;  /* NULL: plain HTTP; borrowed until close */
    const struct mp_env *env; /* NULL: the real clock; borrowed until close */
    void (*handle)(void *self, const struct mp_http_request *request, struct mp_http_response *ret);
    uint32_t workers;   /* 0: none, see above */
    uint32_t queue_max; /* requests that wait for a worker */
    /* With workers: whether the request is quick and shall not queue. NULL: none is. */
    bool (*at_once)(void *self, const struct mp_http_request *request);
    /* Fills the body of an answer that the server gives itself: 413 or 503. NULL: it stays empty.
     */
    void (*refuse)(void *self, const struct mp_http_request *request, struct mp_http_response *ret);
    /* Told of each answer that did not leave whole. NULL: nobody is. */
    void (*cut)(void *self, enum mp_http_end end);
    void *self;
};

struct mp_http_server;

/* *ret is written before the first handler is called, so that handlers may look at the server.
 * MP_BAD_CONFIG: the address or port cannot be had. */
enum mp_code mp_http_server_open(const struct mp_http_server_options *options, struct mp_err *err,
                                 struct mp_http_server **ret);
uint16_t mp_http_server_port(const struct mp_http_server *server);
/* Requests that wait for a worker now. */
uint32_t mp_http_server_queued(struct mp_http_server *server);
/* Requests whose handler a worker runs now; pieces of streams do not count. */
uint32_t mp_http_server_active(struct mp_http_server *server);
/* Memory that request bodies hold now. */
size_t mp_http_server_bodies_bytes(const struct mp_http_server *server);
/* Memory that answers hold now. */
size_t mp_http_server_answers_bytes(const struct mp_http_server *server);
/* Takes no new connection, finishes what runs; answers, streams among them, are given 5 s to leave.
 * No-op on NULL. */
void mp_http_server_close(struct mp_http_server *server);

#endif
