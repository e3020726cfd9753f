#include "pipeline/retry.h"
#include "harness/test.h"

/* 1, 2, 4, 8, 16, 30, 30 s, each up to a quarter longer, never over 30 s. */
static void waits_double_up_to_thirty_seconds(void)
{
    static const uint32_t steps[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000};
    struct mp_env_fake fake = {.seed = 1};
    struct mp_env env = mp_env_fake(&fake);
    struct mp_retry retry = {.env = &env};
    struct mp_err err;
    uint32_t wait_ms;

    mp_err_set(&err, MP_IO, "x");
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        CHECK(mp_retry_again(&retry, &err, &wait_ms));
        CHECK(wait_ms >= steps[i] && wait_ms <= steps[i] + steps[i] / 4 && wait_ms <= 30000);
    }
    mp_retry_over(&retry);
    CHECK(mp_retry_again(&retry, &err, &wait_ms));
    CHECK(wait_ms <= 1250);
}

static void an_asked_wait_is_a_floor(void)
{
    struct mp_env_fake fake = {.seed = 1};
    struct mp_env env = mp_env_fake(&fake);
    struct mp_retry retry = {.env = &env};
    struct mp_err err;
    uint32_t wait_ms;

    mp_err_set(&err, MP_IO, "x");
    err.wait_ms = 10000;
    CHECK(mp_retry_again(&retry, &err, &wait_ms));
    CHECK(wait_ms >= 10000 && wait_ms <= 12500);
    mp_retry_over(&retry);
    err.wait_ms = 120000;
    CHECK(mp_retry_again(&retry, &err, &wait_ms));
    CHECK_INT(wait_ms, 30000);
}

static void an_outage_ends(void)
{
    struct mp_env_fake fake = {.seed = 1};
    struct mp_env env = mp_env_fake(&fake);
    struct mp_retry retry = {.env = &env, .outage_ms_max = 60000};
    struct mp_err err;
    uint32_t wait_ms, waits = 0;

    mp_err_set(&err, MP_TIMEOUT, "x");
    while (mp_retry_again(&retry, &err, &wait_ms)) {
        mp_sleep_us(&env, wait_ms * UINT64_C(1000));
        waits++;
    }
    CHECK_INT(mp_retry_outage_ms(&retry) / 60000, 1);
    CHECK(waits >= 6 && waits <= 7);
}

static void a_refusal_is_not_retried(void)
{
    struct mp_env_fake fake = {.seed = 1};
    struct mp_env env = mp_env_fake(&fake);
    struct mp_retry retry = {.env = &env};
    struct mp_err err;
    uint32_t wait_ms;

    mp_err_set(&err, MP_REFUSED, "x");
    CHECK(!mp_retry_again(&retry, &err, &wait_ms));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(waits_double_up_to_thirty_seconds),
        TEST(an_asked_wait_is_a_floor),
        TEST(an_outage_ends),
        TEST(a_refusal_is_not_retried),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
