/* pipeline/retry.h - the one retry ladder: how long to wait after a fault, and when to give up.
 *
 * Waits are 1, 2, 4, 8, 16, 30, 30 ... s, each up to a quarter longer by chance, never less than
 * what the other side asked for (up to 30 s). A transient fault is retried until the outage has
 * lasted outage_ms_max; a permanent one never. Where a piece of work has a limit of its own, a
 * round is as much of the ladder as fits into it: when it is over the ladder begins anew.
 */
#ifndef MP_PIPELINE_RETRY_H
#define MP_PIPELINE_RETRY_H

#include "base/env.h"
#include "base/err.h"

struct mp_retry {
    const struct mp_env *env;
    uint64_t outage_ms_max;                      /* 0: for ever */
    uint32_t attempts;                           /* faults of this outage so far */
    uint64_t since_us;                           /* of the first of them */
    uint32_t step;                               /* on the ladder */
    uint32_t round_attempts_max, round_attempts; /* 0: no such limit */
    uint64_t round_ms_max, round_since_us;       /* the same */
};

/* Takes note of a fault. True: wait *ret_wait_ms, then try again. */
bool mp_retry_again(struct mp_retry *retry, const struct mp_err *err, uint32_t *ret_wait_ms);
/* It worked: the next fault begins a new outage. */
void mp_retry_over(struct mp_retry *retry);
/* After a fault: whether it was the last that the round had room for; the next one begins. */
bool mp_retry_round_over(struct mp_retry *retry);
/* How long the outage has lasted so far. */
uint64_t mp_retry_outage_ms(const struct mp_retry *retry);

#endif
