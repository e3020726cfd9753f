/* tests/harness/http_script.h - an HTTP/1.1 server for tests that answers as it was told.
 *
 * Listens on a free loopback port, in threads of its own, one a connection. Each request is
 * recorded and then answered by the next step of a script, or by a function; what both leave open
 * is answered 200 without a body. It can be late, silent, cut short, or early.
 *
 *     static const struct http_step steps[] = {
 *         {.status = 503, .headers = "Retry-After: 2\r\n"},
 *         {.status = 200, .body = "<ok/>", .fault = HTTP_CUT_BODY},
 *     };
 *     struct http_script *script = http_script_start(steps, 2, NULL, NULL);
 *     ... ask http_script_url(script) ...
 *     CHECK_INT(http_script_count(script), 2);
 *     CHECK_STR(http_script_request(script, 0)->method, MP_STR("GET"));
 *     http_script_stop(script);
 *
 * Threads  the answering function is called from connection threads, one at a time. Reading what
 *          was recorded is safe at any time; requests are kept until stop.
 */
#ifndef MP_TESTS_HTTP_SCRIPT_H
#define MP_TESTS_HTTP_SCRIPT_H

#include "base/buf.h"
#include "base/str.h"

enum http_fault {
    HTTP_NO_FAULT,
    HTTP_CUT_BEFORE,  /* the connection is closed without an answer */
    HTTP_CUT_HEAD,    /* in the middle of the header lines */
    HTTP_CUT_BODY,    /* after half of the body (of at least two bytes) */
    HTTP_RESET,       /* like CUT_BEFORE, with a reset */
    HTTP_STALL,       /* no answer, the connection stays open */
    HTTP_STALL_BODY,  /* half of the body, then nothing more */
    HTTP_CLOSE_AFTER, /* the whole answer, then the connection is closed without notice */
};

struct http_step {
    unsigned status;     /* 0: 200 */
    const char *headers; /* whole lines, each with its "\r\n"; NULL: none */
    const char *body;    /* NULL: none */
    uint32_t delay_ms;   /* before the answer */
    enum http_fault fault;
    bool early; /* answers when it has the header lines, reads no body, closes behind the client */
};

struct http_answer {
    unsigned status;
    struct mp_buf headers, body; /* empty; filled by the function, freed by the server */
    uint32_t delay_ms;
    enum http_fault fault;
};

/* One request, as it came. */
struct http_record {
    struct mp_str method, target; /* target: path and query, not decoded */
    struct mp_str head;           /* header lines, without the request line */
    struct mp_str body;
    uint32_t connection; /* 0, 1, ...: in the order they were accepted */
};

struct http_script;

/* Borrows steps until stop. answer (NULL: none) is asked where the steps have run out. */
struct http_script *http_script_start(const struct http_step *steps, uint32_t step_count,
                                      void (*answer)(void *self, const struct http_record *request,
                                                     struct http_answer *ret),
                                      void *self);
/* Ends every connection and thread and forgets the records. No-op on NULL. */
void http_script_stop(struct http_script *script);

uint16_t http_script_port(const struct http_script *script);
/* "http://127.0.0.1:PORT", good until stop. */
const char *http_script_url(const struct http_script *script);
/* Requests so far. */
uint32_t http_script_count(struct http_script *script);
/* Connections accepted so far. */
uint32_t http_script_connections(struct http_script *script);
/* The index-th request; it must have come. Good until stop. */
const struct http_record *http_script_request(struct http_script *script, uint32_t index);
/* The value of a header of a record, ASCII case aside; data NULL: not there. */
struct mp_str http_record_header(const struct http_record *record, const char *name);

#endif
