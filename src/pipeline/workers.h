/* pipeline/workers.h - a fixed set of threads that share one job at a time.
 *
 * Threads  each is called from one thread at a time, which works along and returns when all items
 *          are done.
 */
#ifndef MP_PIPELINE_WORKERS_H
#define MP_PIPELINE_WORKERS_H

#include <stdint.h>

struct mp_workers;

/* count threads in all, the caller of each included; at least 1. */
struct mp_workers *mp_workers_new(uint32_t count);
/* No-op on NULL. */
void mp_workers_free(struct mp_workers *workers);
uint32_t mp_workers_count(const struct mp_workers *workers);
/* Calls run(self, worker, item) once for every item in [0, items), each on some worker in
 * [0, count); low items begin first. */
void mp_workers_each(struct mp_workers *workers, uint32_t items,
                     void (*run)(void *self, uint32_t worker, uint32_t item), void *self);

#endif
