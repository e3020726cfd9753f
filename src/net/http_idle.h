/* net/http_idle.h - connections that wait for their client to say something, the longest first.
 *
 * So that clients which open connections and leave them (pools, probes that are never closed, those
 * who mean no good) do not keep others out: while there are more connections than `most`, a new one
 * ends the one that has waited longest. It is only shut down; its owner sees the end of its bytes,
 * as if the client had left, and closes it.
 *
 * Life     a connection: open (waits) -> (busy -> rest)* -> close
 * Always   I1 a connection is shut down only between open and close, so its descriptor is its own
 *          I2 one that is busy is left alone
 * Threads  any.
 */
#ifndef MP_NET_HTTP_IDLE_H
#define MP_NET_HTTP_IDLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct mp_http_place;

struct mp_http_idle {
    pthread_mutex_t lock;
    struct mp_http_place *first, *last; /* those that wait */
    uint32_t open, most;
};

void mp_http_idle_init(struct mp_http_idle *idle, uint32_t most);
void mp_http_idle_fini(struct mp_http_idle *idle);

struct mp_http_place *mp_http_idle_open(struct mp_http_idle *idle, int fd);
/* A request has come. */
void mp_http_idle_busy(struct mp_http_idle *idle, struct mp_http_place *place);
/* It has its answer. No-op where none had come. */
void mp_http_idle_rest(struct mp_http_idle *idle, struct mp_http_place *place);
/* Before the descriptor is closed. Frees place. */
void mp_http_idle_close(struct mp_http_idle *idle, struct mp_http_place *place);

#endif
