/* cli/msk_iam.c - see msk_iam.h.
 *
 * The parameters are signed in the order of their names. User-Agent stands behind the signature and
 * outside of it, as in AWS's own signers; it is for the broker's logs.
 */
#include "cli/msk_iam.h"

#include "base/mem.h"
#include "net/http_client.h"
#include "store/s3_sign.h"

#include <stdio.h>

#define SERVICE    "kafka-cluster"
#define ACTION     "kafka-cluster:Connect"
#define USER_AGENT "millpond/" MP_VERSION

enum { TOKEN_S = 900, URL_BYTES_MAX = 64 * 1024, REGION_BYTES_MAX = 64 };

struct msk_iam {
    struct mp_credentials *credentials;
    struct mp_str region;
    const struct mp_env *env;
};

static void add_parameter(struct mp_buf *buf, const char *name, struct mp_str value)
{
    mp_buf_printf(buf, "%s%s=", buf->size ? "&" : "", name);
    mp_http_escape(buf, value, false);
}

static void add_base64url(struct mp_buf *buf, struct mp_str bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t count = bytes.size - i < 3 ? bytes.size - i : 3;
        uint32_t group = 0;

        for (size_t k = 0; k < 3; k++)
            group = group << 8 | (k < count ? (unsigned char)bytes.data[i + k] : 0);
        for (size_t k = 0; k <= count; k++)
            mp_buf_add_byte(buf, digits[group >> (18 - 6 * k) & 63]);
    }
}

/* The signed parameters; sign has time, region, service and keys. */
static void add_query(struct mp_buf *buf, const struct mp_s3_sign *sign, struct mp_str token)
{
    struct mp_buf credential = MP_BUF_INIT(1024);
    char time_text[MP_S3_TIME_TEXT], seconds[16];

    mp_s3_time(sign->wall_us, time_text);
    snprintf(seconds, sizeof(seconds), "%d", TOKEN_S);
    mp_buf_add_str(&credential, sign->access_key);
    mp_buf_add_byte(&credential, '/');
    mp_s3_scope(sign, &credential);
    add_parameter(buf, "Action", MP_STR(ACTION));
    add_parameter(buf, "X-Amz-Algorithm", MP_STR("AWS4-HMAC-SHA256"));
    add_parameter(buf, "X-Amz-Credential", mp_buf_str(&credential));
    add_parameter(buf, "X-Amz-Date", mp_str_c(time_text));
    add_parameter(buf, "X-Amz-Expires", mp_str_c(seconds));
    if (token.size)
        add_parameter(buf, "X-Amz-Security-Token", token);
    add_parameter(buf, "X-Amz-SignedHeaders", MP_STR("host"));
    mp_buf_fini(&credential);
}

void mp_msk_iam_token(const struct mp_aws_keys *keys, struct mp_str region, int64_t wall_us,
                      struct mp_buf *ret, int64_t *ret_end_ms)
{
    struct mp_buf query = MP_BUF_INIT(URL_BYTES_MAX), url = MP_BUF_INIT(URL_BYTES_MAX);
    struct mp_buf host = MP_BUF_INIT(512);
    struct mp_http_header header;
    struct mp_s3_sign sign = {
        .method = MP_STR("GET"),
        .path = MP_STR("/"),
        .headers = &header,
        .header_count = 1,
        .access_key = mp_str_c(keys->access_key),
        .secret_key = mp_str_c(keys->secret_key),
        .region = region,
        .service = MP_STR(SERVICE),
        .wall_us = wall_us,
    };
    char empty_hash[MP_S3_HASH_TEXT], signature[MP_S3_HASH_TEXT];

    mp_buf_printf(&host, "kafka.%.*s.amazonaws.com", MP_STR_ARG(region));
    header = (struct mp_http_header){MP_STR("host"), mp_buf_str(&host)};
    mp_s3_hash(NULL, 0, empty_hash);
    sign.payload_hash = mp_str_c(empty_hash);
    add_query(&query, &sign, mp_str_c(keys->token));
    sign.query = mp_buf_str(&query);
    mp_s3_signature(&sign, signature);
    add_parameter(&query, "X-Amz-Signature", mp_str_c(signature));
    add_parameter(&query, "User-Agent", MP_STR(USER_AGENT));
    mp_buf_printf(&url, "https://%.*s/?", MP_STR_ARG(mp_buf_str(&host)));
    mp_buf_add_str(&url, mp_buf_str(&query));
    add_base64url(ret, mp_buf_str(&url));
    *ret_end_ms = (wall_us / 1000000 + TOKEN_S) * 1000; /* X-Amz-Date has whole seconds */
    mp_buf_fini(&host);
    mp_buf_fini(&url);
    mp_buf_fini(&query);
}

static enum mp_code make_token(void *self, struct mp_buf *ret_text, int64_t *ret_end_ms,
                               const char **ret_principal, struct mp_err *err)
{
    struct msk_iam *iam = self;
    struct mp_aws_keys keys;
    enum mp_code code = mp_credentials_get(iam->credentials, 0, &keys, err);

    if (code) {
        mp_err_add(err, "keys for Amazon MSK");
        return code;
    }
    mp_msk_iam_token(&keys, iam->region, mp_now_wall_us(iam->env), ret_text, ret_end_ms);
    *ret_principal = "millpond"; /* a name for the client's own use; not sent */
    return MP_OK;
}

static void iam_free(void *self)
{
    struct msk_iam *iam = self;

    mp_credentials_free(iam->credentials);
    mp_free(iam);
}

/* The value passed through for a key of the client; empty: none. */
static struct mp_str passed(const struct mp_config_kafka *kafka, const char *key)
{
    struct mp_str value = MP_STR("");

    for (uint32_t i = 0; i < kafka->passthrough_count; i++)
        if (mp_str_eq(kafka->passthrough[i].key, mp_str_c(key)))
            value = kafka->passthrough[i].value;
    return value;
}

bool mp_msk_iam_wanted(const struct mp_config_kafka *kafka)
{
    return mp_str_eq_fold(passed(kafka, "sasl.mechanisms"), MP_STR("OAUTHBEARER")) &&
           !mp_str_eq_fold(passed(kafka, "sasl.oauthbearer.method"), MP_STR("oidc")) &&
           !mp_str_eq_fold(passed(kafka, "enable.sasl.oauthbearer.unsecure.jwt"), MP_STR("true"));
}

/* It becomes a part of a host's name. */
static bool region_ok(struct mp_str region)
{
    bool ok = region.size > 0 && region.size <= REGION_BYTES_MAX;

    for (size_t i = 0; i < region.size; i++)
        ok &= (region.data[i] >= 'a' && region.data[i] <= 'z') ||
              (region.data[i] >= '0' && region.data[i] <= '9') || region.data[i] == '-';
    return ok;
}

enum mp_code mp_msk_iam_open(const struct mp_config_kafka *kafka, const struct mp_env *env,
                             struct mp_err *err, struct mp_source_token *ret)
{
    struct mp_aws_environ environment;
    struct msk_iam *iam;

    if (!kafka->aws_region.size)
        return mp_err_set(err, MP_BAD_CONFIG,
                          "KAFKA_CONSUMER_SASL_MECHANISMS is OAUTHBEARER, which signs in to Amazon "
                          "MSK, but neither AWS_REGION nor AWS_DEFAULT_REGION is set");
    if (!region_ok(kafka->aws_region))
        return mp_err_set(
            err, MP_BAD_CONFIG,
            "AWS_REGION (or AWS_DEFAULT_REGION) is \"%.*s\": allowed are small letters, "
            "digits and '-'",
            MP_STR_ARG(kafka->aws_region));
    mp_aws_environ_read(&environment);
    environment.role_session_name = kafka->aws_role_session_name.data;
    iam = mp_alloc(sizeof(*iam));
    iam->credentials = mp_credentials_chain(&environment, kafka->aws_region, env);
    iam->region = kafka->aws_region;
    iam->env = env;
    *ret = (struct mp_source_token){iam, make_token, iam_free};
    return MP_OK;
}
