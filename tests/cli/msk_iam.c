/* Tokens for Amazon MSK. The signatures were worked out with Python's hmac and hashlib; AWS's own
 * Python signer, given the same keys and time, makes the same. */
#include "cli/msk_iam.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>

#define SECRET "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define AGENT  "&User-Agent=millpond%2F" MP_VERSION

/* base64url back to bytes, as text. */
static const char *decoded(struct mp_str text)
{
    static char bytes[8192];
    size_t size = 0;
    uint32_t group = 0;
    int bits = 0;

    for (size_t i = 0; i < text.size; i++) {
        static const char digits[] =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        const char *digit = memchr(digits, text.data[i], 64);

        CHECK(digit != NULL);
        group = group << 6 | (uint32_t)(digit - digits);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            bytes[size++] = (char)(group >> bits & 0xff);
        }
    }
    bytes[size] = 0;
    return bytes;
}

static void tokens_are_as_worked_out_elsewhere(void)
{
    struct mp_aws_keys keys = {.access_key = "AKIDEXAMPLE", .secret_key = SECRET};
    struct mp_buf token = MP_BUF_INIT(MP_SOURCE_TOKEN_BYTES_MAX);
    int64_t end_ms = 0;

    mp_msk_iam_token(&keys, MP_STR("us-east-1"), INT64_C(1440938160999999), &token, &end_ms);
    CHECK_INT(end_ms, INT64_C(1440939060000));
    CHECK(
        mp_str_starts(mp_buf_str(&token),
                      MP_STR("aHR0cHM6Ly9rYWZrYS51cy1lYXN0LTEuYW1hem9uYXdzLmNvbS8_QWN0aW9uPWthZmth"
                             "LWNsdXN0ZXIlM0FDb25uZWN0Jlgt")));
    CHECK_STR(mp_str_c(decoded(mp_buf_str(&token))),
              MP_STR("https://kafka.us-east-1.amazonaws.com/?Action=kafka-cluster%3AConnect"
                     "&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20150830"
                     "%2Fus-east-1%2Fkafka-cluster%2Faws4_request&X-Amz-Date=20150830T123600Z"
                     "&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature="
                     "c413a83bc64a339e31a5e5e9ed99d778ff843206b427540cafa5122c01e3e993" AGENT));
    mp_buf_fini(&token);
}

static void session_tokens_are_signed_too(void)
{
    struct mp_aws_keys keys = {
        .access_key = "ASIAEXAMPLE", .secret_key = SECRET, .token = "FwoGZX/+tok=en=="};
    struct mp_buf token = MP_BUF_INIT(MP_SOURCE_TOKEN_BYTES_MAX);
    int64_t end_ms = 0;

    mp_msk_iam_token(&keys, MP_STR("eu-central-1"), INT64_C(1700000000000000), &token, &end_ms);
    CHECK_INT(end_ms, INT64_C(1700000900000));
    CHECK_STR(mp_str_c(decoded(mp_buf_str(&token))),
              MP_STR("https://kafka.eu-central-1.amazonaws.com/?Action=kafka-cluster%3AConnect"
                     "&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=ASIAEXAMPLE%2F20231114"
                     "%2Feu-central-1%2Fkafka-cluster%2Faws4_request&X-Amz-Date=20231114T221320Z"
                     "&X-Amz-Expires=900&X-Amz-Security-Token=FwoGZX%2F%2Btok%3Den%3D%3D"
                     "&X-Amz-SignedHeaders=host&X-Amz-Signature="
                     "87d650be6c9a9e28bb0693987bec7484a5457b5f25f8d42cbac1a71b32b9da01" AGENT));
    mp_buf_fini(&token);
}

/* The longest keys that the chain gives have room everywhere, whatever has to be escaped. */
static void the_longest_keys_fit(void)
{
    static struct mp_aws_keys keys;
    struct mp_buf token = MP_BUF_INIT(MP_SOURCE_TOKEN_BYTES_MAX);
    char region[65];
    int64_t end_ms;

    memset(keys.access_key, '/', sizeof(keys.access_key) - 1);
    memset(keys.secret_key, '/', sizeof(keys.secret_key) - 1);
    memset(keys.token, '/', sizeof(keys.token) - 1);
    memset(region, 'r', sizeof(region) - 1);
    mp_msk_iam_token(&keys, mp_str_n(region, 64), 0, &token, &end_ms);
    CHECK(token.size > 3 * sizeof(keys.token));
    mp_buf_fini(&token);
}

static struct mp_config_kafka settings(const char *mechanism, const char *key, const char *value)
{
    static struct mp_config_pair pairs[2];
    struct mp_config_kafka kafka = {.passthrough = pairs, .passthrough_count = 2};

    pairs[0] = (struct mp_config_pair){MP_STR("sasl.mechanisms"), mp_str_c(mechanism)};
    pairs[1] = (struct mp_config_pair){mp_str_c(key), mp_str_c(value)};
    kafka.aws_role_session_name = MP_STR("millpond");
    return kafka;
}

static void is_wanted_for_oauthbearer_only(void)
{
    static const struct {
        const char *mechanism, *key, *value;
        bool wanted;
    } cases[] = {
        {"OAUTHBEARER", "security.protocol", "SASL_SSL", true},
        {"oauthbearer", "sasl.oauthbearer.method", "default", true},
        {"OAUTHBEARER", "sasl.oauthbearer.method", "OIDC", false},
        {"OAUTHBEARER", "enable.sasl.oauthbearer.unsecure.jwt", "true", false},
        {"SCRAM-SHA-512", "security.protocol", "SASL_SSL", false},
    };
    struct mp_config_kafka none = {0};

    CHECK(!mp_msk_iam_wanted(&none));
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct mp_config_kafka kafka = settings(cases[i].mechanism, cases[i].key, cases[i].value);

        CHECK_INT(mp_msk_iam_wanted(&kafka), cases[i].wanted);
    }
}

static void a_region_is_needed(void)
{
    static const char *const wrong[] = {"", "us east 1", "us-east-1/x", "US"};
    struct mp_config_kafka kafka = settings("OAUTHBEARER", "a", "b");
    struct mp_env env = mp_env_real();
    struct mp_source_token token = {0};
    struct mp_err err = {0};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        kafka.aws_region = mp_str_c(wrong[i]);
        CHECK_INT(mp_msk_iam_open(&kafka, &env, &err, &token), MP_BAD_CONFIG);
        CHECK(strstr(err.text, "AWS_REGION") && strstr(err.text, "AWS_DEFAULT_REGION"));
        CHECK(token.make == NULL);
    }
}

static void the_maker_uses_the_chain(void)
{
    struct mp_config_kafka kafka = settings("OAUTHBEARER", "a", "b");
    struct mp_env_fake fake = {.wall_us = INT64_C(1440938160000000)};
    struct mp_env env = mp_env_fake(&fake);
    struct mp_source_token token;
    struct mp_buf text = MP_BUF_INIT(MP_SOURCE_TOKEN_BYTES_MAX);
    struct mp_err err = {0};
    const char *principal = NULL;
    int64_t end_ms = 0;

    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
    unsetenv("AWS_SESSION_TOKEN");
    kafka.aws_region = MP_STR("us-east-1");
    CHECK_OK(mp_msk_iam_open(&kafka, &env, &err, &token), err);
    CHECK_OK(token.make(token.self, &text, &end_ms, &principal, &err), err);
    CHECK(strstr(decoded(mp_buf_str(&text)), "c413a83bc64a339e31a5e5e9ed99d778ff843206b427540c"));
    CHECK_INT(end_ms, INT64_C(1440939060000));
    CHECK(principal && *principal);
    token.free(token.self);
    mp_buf_fini(&text);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(tokens_are_as_worked_out_elsewhere),
        TEST(session_tokens_are_signed_too),
        TEST(the_longest_keys_fit),
        TEST(is_wanted_for_oauthbearer_only),
        TEST(a_region_is_needed),
        TEST(the_maker_uses_the_chain),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
