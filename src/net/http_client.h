/* net/http_client.h - HTTP requests over libcurl, many at once, answers as plain bytes.
 *
 * A call is a request and the place of its answer in one struct of the caller's. Start as many as
 * you like, then wait for whichever finishes; or run an array of them with so many at once.
 *
 *     struct mp_http_call call = {.method = "GET", .url = "https://example.org/v1/things",
 *                                 .total_ms_max = 10000, .body = MP_BUF_INIT(1 << 20)};
 *
 *     mp_http_one(client, &call);
 *     code = mp_http_call_code(&call, err);        MP_OK: there is an answer, of any status
 *     if (!code && call.status == 200)
 *         use(mp_buf_str(&call.body));
 *     mp_http_call_fini(&call);
 *
 * Always   H1 nothing is sent twice, except by libcurl itself when a kept connection turns out to
 *             have been closed by the peer before a byte of the answer came (RFC 9112, 9.3.1);
 *             whoever needs more than that gives requests an idempotency key
 *          H2 redirects are answers like any other; they are not followed
 *          H3 no error text holds a header, a body, a query or the user part of a URL
 *          H4 no signal is raised or needed: SIGPIPE is held back around writes
 * Chosen   HTTP/1.1 with keep-alive, no compression, TLS 1.2 or later, proxies as libcurl reads
 *          them from the environment (http_proxy, https_proxy, no_proxy). No cookies, no
 *          authentication schemes: headers are the caller's.
 * Threads  a client belongs to one thread at a time and may move between them. Keep one a thread,
 *          or hand them round in a pool.
 * After    RFC 9110 (semantics), RFC 9112 (HTTP/1.1); libcurl's multi interface, libcurl-multi(3).
 */
#ifndef MP_NET_HTTP_CLIENT_H
#define MP_NET_HTTP_CLIENT_H

#include "base/buf.h"
#include "base/err.h"

#define MP_HTTP_HEAD_BYTES_MAX (16 * 1024) /* header lines of an answer kept; more are dropped */

struct mp_http_header {
    struct mp_str name, value;
};

enum mp_http_outcome {
    MP_HTTP_PENDING,
    MP_HTTP_ANSWERED,  /* the whole answer is there, of whatever status */
    MP_HTTP_UNREACHED, /* no name, no route, no connection, no TLS handshake, or no proxy */
    MP_HTTP_TIMED_OUT, /* one of the three limits below */
    MP_HTTP_CUT,       /* the connection ended before the answer did, or it was not HTTP */
    MP_HTTP_TOO_LARGE, /* a 2xx body larger than its place */
    MP_HTTP_UNTRUSTED, /* the peer's certificate, or our ca_file */
    MP_HTTP_UNUSABLE,  /* a URL that is none */
};

struct mp_http_call {
    /* --- the request: set by the caller, borrowed until the call has finished --- */
    const char *method; /* "GET", "HEAD", "PUT", "POST", "DELETE", ... */
    const char *url;
    const struct mp_http_header *headers; /* Host, Content-Type, ...: sent as they stand */
    uint32_t header_count;
    const struct mp_str *pieces; /* the body is all of them, one behind the other */
    uint32_t piece_count;
    uint32_t connect_ms_max; /* 0: 10,000 */
    uint32_t total_ms_max;   /* start to end; 0: no limit */
    uint32_t slow_bytes_s;   /* time out when slower than this ... */
    uint32_t slow_s;         /* ... for so many seconds, in whichever direction; 0: no limit */
    bool direct;             /* no proxy, whatever the environment says */
    bool expect_continue;    /* wait for "100 Continue" (1 s at most) before the body is sent */
    void *memory;            /* where the body of a 2xx answer goes; NULL: to `body` */
    size_t memory_size;
    void *owner; /* the caller's own */

    /* --- the answer: `body.max` is set by the caller, the rest by the client --- */
    struct mp_buf body; /* of an answer that is not 2xx, it is cut at `max` */
    enum mp_http_outcome outcome;
    unsigned status;    /* 0: none came */
    bool sent;          /* false: surely no byte of the request left */
    bool resent;        /* H1: libcurl has sent the body more than once */
    size_t memory_used; /* bytes in `memory` */
    struct mp_buf head; /* header lines; read them with mp_http_call_header */
    char text[256];     /* why there is no answer */

    /* --- the client's own --- */
    void *easy, *lines;
    uint32_t piece;
    size_t piece_at;
    bool too_large;
};

struct mp_http_client_options {
    uint32_t connections_max; /* kept alive; 0: 16 */
    const char *ca_file;      /* PEM; NULL or "": the system's. Copied. */
};

struct mp_http_client;

/* Gives a client. The first one of the process initialises libcurl, whichever thread it is on. */
struct mp_http_client *mp_http_client_new(const struct mp_http_client_options *options);
/* Ends its connections; no call may be under way. No-op on NULL. */
void mp_http_client_free(struct mp_http_client *client);

/* Takes the call under way. Its answer fields are reset; the buffers of the last answer are used
 * again. The call may not move or be changed until mp_http_wait gives it. */
void mp_http_start(struct mp_http_client *client, struct mp_http_call *call);
/* Gives a call that has finished, or NULL where none did within wait_ms. NULL may come early:
 * callers loop on their own condition. */
struct mp_http_call *mp_http_wait(struct mp_http_client *client, uint32_t wait_ms);
/* Calls started and not yet given by mp_http_wait. */
uint32_t mp_http_under_way(const struct mp_http_client *client);

/* Ends a call under way; its outcome is MP_HTTP_CUT, and mp_http_wait does not give it. No-op on
 * one that is not under way. */
void mp_http_cancel(struct mp_http_client *client, struct mp_http_call *call);

/* Runs all calls to their end, at most at_once at a time, started in order. None may be under way
 * before. */
void mp_http_run(struct mp_http_client *client, struct mp_http_call *calls, uint32_t count,
                 uint32_t at_once);
void mp_http_one(struct mp_http_client *client, struct mp_http_call *call);

/* MP_OK where there is an answer, of any status. Else the fault as an error, naming method, URL
 * without query, and reason: MP_IO (unreached, cut), MP_TIMEOUT, MP_BAD_DATA (too large),
 * MP_BAD_CONFIG (untrusted, unusable). */
enum mp_code mp_http_call_code(const struct mp_http_call *call, struct mp_err *err);
/* Lends the value of the first header of that name, ASCII case aside; data NULL: none. */
struct mp_str mp_http_call_header(const struct mp_http_call *call, struct mp_str name);
/* Milliseconds that Retry-After asks for, 0 none. It may be a date. (RFC 9110, 10.2.3) */
uint32_t mp_http_call_retry_ms(const struct mp_http_call *call, int64_t now_wall_us);
/* The Date header, microseconds since 1970; false: none, or none that reads as a date. */
bool mp_http_call_date(const struct mp_http_call *call, int64_t *ret_wall_us);
/* Gives the buffers back; the request half stays. */
void mp_http_call_fini(struct mp_http_call *call);

/* Adds text with every byte but A-Z a-z 0-9 - . _ ~ as %XX; with keep_slash '/' stays too.
 * (RFC 3986, 2.1 and 2.3) */
void mp_http_escape(struct mp_buf *buf, struct mp_str text, bool keep_slash);

#endif
