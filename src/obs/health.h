/* obs/health.h - is the loop alive, and is every part it needs there?
 *
 * Alive (/healthz): the loop beat within alive_ms_max. Ready (/readyz): alive, and each part
 * (source, lake, store) answered when it was last asked. Both say why not.
 *
 * Threads  any.
 */
#ifndef MP_OBS_HEALTH_H
#define MP_OBS_HEALTH_H

#include "base/buf.h"
#include "base/env.h"

enum mp_health_part { MP_HEALTH_SOURCE, MP_HEALTH_LAKE, MP_HEALTH_STORE, MP_HEALTH_PARTS };

struct mp_health;

struct mp_health *mp_health_new(uint64_t alive_ms_max, const struct mp_env *env);
void mp_health_free(struct mp_health *health);

/* The loop turned. This and the next two do nothing with NULL. */
void mp_health_beat(struct mp_health *health);
/* A flush was published. */
void mp_health_flushed(struct mp_health *health);
/* The part answered (reason NULL) or did not, because of reason (copied). Parts start as "not yet
 * reached". */
void mp_health_part(struct mp_health *health, enum mp_health_part part, const char *reason);

bool mp_health_alive(struct mp_health *health);
bool mp_health_ready(struct mp_health *health);
/* Bodies of the two probes, as the Python program words them, reasons behind. */
void mp_health_print_alive(struct mp_health *health, struct mp_buf *ret);
void mp_health_print_ready(struct mp_health *health, struct mp_buf *ret);
/* The parts as members of a JSON object, for /status.json. */
void mp_health_print_json(struct mp_health *health, struct mp_buf *ret);

#endif
