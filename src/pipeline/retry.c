#include "pipeline/retry.h"

enum { STEP_MS = 1000, STEP_MS_MAX = 30000 };

uint64_t mp_retry_outage_ms(const struct mp_retry *retry)
{
    return retry->attempts ? (mp_now_mono_us(retry->env) - retry->since_us) / 1000 : 0;
}

bool mp_retry_again(struct mp_retry *retry, const struct mp_err *err, uint32_t *ret_wait_ms)
{
    uint32_t step = retry->attempts < 5 ? STEP_MS << retry->attempts : STEP_MS_MAX;
    uint32_t asked = err->wait_ms < STEP_MS_MAX ? err->wait_ms : STEP_MS_MAX;

    if (step < asked)
        step = asked;
    step += (uint32_t)(mp_random_u64(retry->env) % (step / 4 + 1));
    if (!retry->attempts)
        retry->since_us = mp_now_mono_us(retry->env);
    retry->attempts++;
    *ret_wait_ms = step < STEP_MS_MAX ? step : STEP_MS_MAX;
    return err->retriable &&
           (!retry->outage_ms_max || mp_retry_outage_ms(retry) < retry->outage_ms_max);
}

void mp_retry_over(struct mp_retry *retry)
{
    retry->attempts = 0;
}
