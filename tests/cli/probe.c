/* The object-store probe of the hoglake destination: what is put, and what a refusal advises. */
#include "cli/probe.h"

#include "harness/http_script.h"
#include "harness/test.h"

#define FAULT(code) "<Error><Code>" code "</Code><Message>no</Message></Error>"

static struct mp_env env;

static enum mp_code probe(struct http_script *script, bool keys, struct mp_err *err)
{
    struct mp_config config = {
        .s3 = {.endpoint = mp_str_c(http_script_url(script)), .region = MP_STR("eu-west-1")}};
    struct mp_store_s3_options s3 = {
        .endpoint = config.s3.endpoint,
        .region = config.s3.region,
        .access_key = MP_STR("AK"),
        .secret_key = MP_STR("SK"),
        .path_style = true,
        .attempts_max = 1,
    };
    struct mp_store *store;
    enum mp_code code;

    env = mp_env_real();
    if (keys)
        config.s3.access_key = s3.access_key;
    CHECK_OK(mp_store_open(MP_STR("s3://bucket/lake/"), &s3, &env, err, &store), *err);
    code = mp_probe_store(&config, MP_STR("s3://bucket/lake/"), store, NULL, err);
    mp_store_close(store);
    return code;
}

static void an_empty_object_is_put_under_a_fixed_key(void)
{
    struct http_script *script = http_script_start(NULL, 0, NULL, NULL);
    struct mp_err err;

    CHECK_OK(probe(script, true, &err), err);
    CHECK_OK(probe(script, true, &err), err); /* and put again by the next process */
    CHECK_INT(http_script_count(script), 2);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_STR(http_script_request(script, i)->method, MP_STR("PUT"));
        CHECK_STR(http_script_request(script, i)->target, MP_STR("/bucket/lake/_millpond/probe"));
        CHECK_INT(http_script_request(script, i)->body.size, 0);
    }
    http_script_stop(script);
}

static void refusals_come_with_advice(void)
{
    static const struct {
        struct http_step step;
        bool keys;
        const char *advice;
    } rows[] = {
        {{.status = 404, .body = FAULT("NoSuchBucket")}, true, "the bucket"},
        {{.status = 400, .body = FAULT("AuthorizationHeaderMalformed")}, true, "HOGLAKE_S3_REGION"},
        {{.status = 301, .body = FAULT("PermanentRedirect")}, true, "HOGLAKE_S3_REGION"},
        {{.status = 403, .body = FAULT("SignatureDoesNotMatch")}, true, "HOGLAKE_S3_SECRET_KEY"},
        {{.status = 403, .body = FAULT("SignatureDoesNotMatch")}, false, "AWS chain"},
        {{.status = 403, .body = FAULT("InvalidAccessKeyId")}, true, "HOGLAKE_S3_ACCESS_KEY"},
        {{.status = 403, .body = FAULT("AccessDenied")}, true, "s3:PutObject"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct http_step steps[] = {rows[i].step, rows[i].step};
        struct http_script *script = http_script_start(steps, 2, NULL, NULL);
        struct mp_err err;

        CHECK_INT(probe(script, rows[i].keys, &err), MP_REFUSED);
        CHECK(!err.retriable);
        if (!strstr(err.text, rows[i].advice))
            CHECK_STR(mp_str_c(err.text), mp_str_c(rows[i].advice));
        http_script_stop(script);
    }
}

static void an_outage_of_the_store_may_pass(void)
{
    static const struct http_step steps[] = {{.status = 503, .body = FAULT("SlowDown")}};
    struct http_script *script = http_script_start(steps, 1, NULL, NULL);
    struct mp_err err;

    CHECK_INT(probe(script, true, &err), MP_IO);
    CHECK(err.retriable);
    http_script_stop(script);
}

/* For a DuckLake what was put is taken away again, where that is allowed. */
static void what_was_put_to_see_is_removed(void)
{
    static const struct {
        struct http_step steps[2];
        uint32_t requests;
        enum mp_code code;
    } rows[] = {
        {{{.status = 200}, {.status = 204}}, 2, MP_OK},
        {{{.status = 200}, {.status = 403, .body = FAULT("AccessDenied")}}, 2, MP_OK},
        {{{.status = 404, .body = FAULT("NoSuchBucket")}}, 1, MP_REFUSED},
        {{{.status = 503, .body = FAULT("SlowDown")}}, 1, MP_IO},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct http_script *script = http_script_start(rows[i].steps, 2, NULL, NULL);
        struct mp_store_s3_options s3 = {
            .endpoint = mp_str_c(http_script_url(script)),
            .region = MP_STR("eu-west-1"),
            .access_key = MP_STR("AK"),
            .secret_key = MP_STR("SK"),
            .path_style = true,
            .attempts_max = 1,
        };
        struct mp_store *store;
        struct mp_err err;

        env = mp_env_real();
        CHECK_OK(mp_store_open(MP_STR("s3://bucket/lake/"), &s3, &env, &err, &store), err);
        CHECK_INT(mp_prove_store(store, NULL, &err), rows[i].code);
        mp_store_close(store);
        CHECK_INT(http_script_count(script), rows[i].requests);
        CHECK_STR(http_script_request(script, 0)->method, MP_STR("PUT"));
        for (uint32_t r = 0; r < rows[i].requests; r++)
            CHECK_STR(http_script_request(script, r)->target,
                      MP_STR("/bucket/lake/_millpond/probe"));
        if (rows[i].requests == 2)
            CHECK_STR(http_script_request(script, 1)->method, MP_STR("DELETE"));
        http_script_stop(script);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(an_empty_object_is_put_under_a_fixed_key),
        TEST(refusals_come_with_advice),
        TEST(an_outage_of_the_store_may_pass),
        TEST(what_was_put_to_see_is_removed),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
