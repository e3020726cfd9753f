/* Probes under a stepped clock. */
#include "harness/test.h"
#include "obs/health.h"

static struct mp_env_fake fake;
static struct mp_env env;

static struct mp_health *new_health(void)
{
    fake = (struct mp_env_fake){.mono_us = 77000000};
    env = mp_env_fake(&fake);
    return mp_health_new(480000, &env);
}

static void check_bodies(struct mp_health *health, const char *alive, const char *ready)
{
    struct mp_buf body = MP_BUF_INIT(8192);

    mp_health_print_alive(health, &body);
    CHECK_STR(mp_buf_str(&body), mp_str_c(alive));
    mp_buf_clear(&body);
    mp_health_print_ready(health, &body);
    CHECK_STR(mp_buf_str(&body), mp_str_c(ready));
    mp_buf_fini(&body);
}

static void goes_from_start_to_ready_and_back(void)
{
    struct mp_health *health = new_health();

    CHECK(mp_health_alive(health));
    CHECK(!mp_health_ready(health));
    mp_sleep_us(&env, 100000);
    check_bodies(health, "ok poll=0.1s ago flush=never\n",
                 "not ready poll=0.1s ago flush=never source: not yet reached; lake: not yet "
                 "reached; store: not yet reached\n");
    mp_health_part(health, MP_HEALTH_SOURCE, NULL);
    mp_health_part(health, MP_HEALTH_STORE, NULL);
    mp_health_part(health, MP_HEALTH_LAKE, "connect 127.0.0.1:5432: \"refused\"\n");
    CHECK(!mp_health_ready(health));
    check_bodies(health, "ok poll=0.1s ago flush=never\n",
                 "not ready poll=0.1s ago flush=never lake: connect 127.0.0.1:5432: "
                 "\"refused\"\\x0a\n");
    mp_health_part(health, MP_HEALTH_LAKE, NULL);
    mp_health_flushed(health);
    mp_sleep_us(&env, 4700000);
    mp_health_beat(health);
    mp_sleep_us(&env, 100000);
    CHECK(mp_health_ready(health));
    check_bodies(health, "ok poll=0.1s ago flush=4.8s ago\n", "ok poll=0.1s ago flush=4.8s ago\n");
    mp_health_part(health, MP_HEALTH_STORE, "");
    CHECK(!mp_health_ready(health));
    check_bodies(health, "ok poll=0.1s ago flush=4.8s ago\n",
                 "not ready poll=0.1s ago flush=4.8s ago store: no answer\n");
    mp_health_free(health);
}

static void dies_when_the_loop_stands_still(void)
{
    struct mp_health *health = new_health();

    for (int i = 0; i < MP_HEALTH_PARTS; i++)
        mp_health_part(health, (enum mp_health_part)i, NULL);
    mp_sleep_us(&env, 479999999);
    CHECK(mp_health_alive(health));
    CHECK(mp_health_ready(health));
    mp_sleep_us(&env, 1);
    CHECK(!mp_health_alive(health));
    CHECK(!mp_health_ready(health));
    mp_sleep_us(&env, 1000000);
    mp_health_part(health, MP_HEALTH_LAKE, "commit: no answer for 30.0 s");
    check_bodies(health,
                 "unhealthy poll=481.0s ago flush=never loop: no turn for 481.0 s, at most 480.0; "
                 "lake: commit: no answer for 30.0 s\n",
                 "not ready poll=481.0s ago flush=never loop: no turn for 481.0 s, at most 480.0; "
                 "lake: commit: no answer for 30.0 s\n");
    mp_health_beat(health);
    mp_health_part(health, MP_HEALTH_LAKE, NULL);
    CHECK(mp_health_ready(health));
    mp_health_free(health);
}

static void tells_the_status_page(void)
{
    struct mp_health *health = new_health();
    struct mp_buf text = MP_BUF_INIT(8192);
    char endless[2000];

    mp_health_part(health, MP_HEALTH_SOURCE, NULL);
    mp_health_part(health, MP_HEALTH_LAKE, "a \"b\" \xff");
    mp_health_print_json(health, &text);
    CHECK_STR(mp_buf_str(&text),
              MP_STR("\"alive\": true, \"ready\": false, \"poll_seconds\": 0.0, \"flush_seconds\": "
                     "null, \"source\": \"ok\", \"lake\": \"a \\\"b\\\" \\\\xff\", \"store\": "
                     "\"not yet reached\""));
    memset(endless, 'x', sizeof(endless));
    endless[sizeof(endless) - 1] = 0;
    mp_health_part(health, MP_HEALTH_STORE, endless);
    mp_health_flushed(health);
    mp_buf_clear(&text);
    mp_health_print_json(health, &text);
    CHECK(text.size < 1000);
    CHECK(memmem(text.data, text.size, "\"flush_seconds\": 0.0", 20) != NULL);
    mp_buf_fini(&text);
    mp_health_free(health);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(goes_from_start_to_ready_and_back),
                                        TEST(dies_when_the_loop_stands_still),
                                        TEST(tells_the_status_page)};

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
