/* net/http_server.h - a small HTTP server: requests in, one function answers.
 *
 * HTTP/1.1 with keep-alive. A HEAD is handed on as a GET and answered without its body. A body
 * above body_bytes_max is answered 413 and not handed on. A connection on which nothing moves for
 * 30 s is closed; it costs a descriptor meanwhile, no thread.
 *
 * Threads  the handler is called from the server's own threads, several at once.
 */
#ifndef MP_NET_HTTP_SERVER_H
#define MP_NET_HTTP_SERVER_H

#include "base/buf.h"
#include "base/err.h"

/* Lent until the handler returns. */
struct mp_http_request {
    struct mp_str method, path; /* path without the query, as sent: not decoded */
    struct mp_str query;        /* behind the '?', not decoded; empty: none */
    struct mp_str body;
};

/* Comes in as 500 with an empty body of no practical limit. */
struct mp_http_response {
    unsigned status;
    const char *content_type; /* NULL: none is sent; copied */
    struct mp_buf body;       /* freed by the server */
};

struct mp_http_server_options {
    const char *address; /* NULL: all interfaces */
    uint16_t port;       /* 0: a free one, see mp_http_server_port */
    uint32_t threads;    /* 0: 1 */
    size_t body_bytes_max;
    void (*handle)(void *self, const struct mp_http_request *request, struct mp_http_response *ret);
    void *self;
};

struct mp_http_server;

/* MP_BAD_CONFIG: the address or port cannot be had. */
enum mp_code mp_http_server_open(const struct mp_http_server_options *options, struct mp_err *err,
                                 struct mp_http_server **ret);
uint16_t mp_http_server_port(const struct mp_http_server *server);
/* Takes no new connection, finishes what runs (answers are given 5 s to leave). No-op on NULL. */
void mp_http_server_close(struct mp_http_server *server);

#endif
