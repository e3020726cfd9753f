#include "pipeline/retry.h"

enum { STEP_MS = 1000, STEP_MS_MAX = 30000 };

uint64_t mp_retry_outage_ms(const struct mp_retry *retry)
{
    return retry->attempts ? (mp_now_mono_us(retry->env) - retry->since_us) / 1000 : 0;
}

bool mp_retry_again(struct mp_retry *retry, const struct mp_err *err, uint32_t *ret_wait_ms)
{
    uint32_t step = retry->step < 5 ? STEP_MS << retry->step : STEP_MS_MAX;
    uint32_t asked = err->wait_ms < STEP_MS_MAX ? err->wait_ms : STEP_MS_MAX;

    if (step < asked)
        step = asked;
    step += (uint32_t)(mp_random_u64(retry->env) % (step / 4 + 1));
    if (!retry->attempts)
        retry->since_us = mp_now_mono_us(retry->env);
    retry->attempts++;
    retry->step++;
    retry->round_attempts++;
    *ret_wait_ms = step < STEP_MS_MAX ? step : STEP_MS_MAX;
    return err->retriable &&
           (!retry->outage_ms_max || mp_retry_outage_ms(retry) < retry->outage_ms_max);
}

void mp_retry_over(struct mp_retry *retry)
{
    retry->attempts = retry->step = 0;
}

bool mp_retry_round_over(struct mp_retry *retry)
{
    uint64_t now = mp_now_mono_us(retry->env);

    if (!(retry->round_attempts_max && retry->round_attempts >= retry->round_attempts_max) &&
        !(retry->round_ms_max && (now - retry->round_since_us) / 1000 >= retry->round_ms_max))
        return false;
    retry->step = retry->round_attempts = 0;
    retry->round_since_us = now;
    return true;
}
