/* net/http_server.h - a small HTTP server: requests in, one function answers.
 *
 * Threads  the handler is called from the server's own threads, several at once.
 */
#ifndef MP_NET_HTTP_SERVER_H
#define MP_NET_HTTP_SERVER_H

#include "base/buf.h"
#include "base/err.h"

struct mp_http_request {
    struct mp_str method, path; /* path without the query */
    struct mp_str query;        /* behind the '?', not decoded; empty: none */
    struct mp_str body;
};

struct mp_http_response {
    unsigned status;
    const char *content_type; /* NULL: none is sent */
    struct mp_buf body;       /* freed by the server */
};

struct mp_http_server_options {
    const char *address; /* NULL: all interfaces */
    uint16_t port;       /* 0: a free one, see mp_http_server_port */
    uint32_t threads;    /* 0: 1 */
    size_t body_bytes_max;
    void (*handle)(void *self, const struct mp_http_request *request,
                   struct mp_http_response *ret);
    void *self;
};

struct mp_http_server;

enum mp_code mp_http_server_open(const struct mp_http_server_options *options, struct mp_err *err,
                                 struct mp_http_server **ret);
uint16_t mp_http_server_port(const struct mp_http_server *server);
/* Finishes what runs. No-op on NULL. */
void mp_http_server_close(struct mp_http_server *server);

#endif
