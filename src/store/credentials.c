/* store/credentials.c - the chain of sources, and when to ask it again.
 *
 * Which source it is, is found out once, at the first get: a table of sources, each with a
 * function that says whether the environment names it and one that fetches. What a source gave is
 * kept until it is time to ask again (C1).
 */
#include "store/credentials.h"

#include "store/profile.h"
#include "store/s3_xml.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/mem.h"
#include "net/http_client.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define EARLY_US        (5LL * 60 * 1000000) /* C1 */
#define AGAIN_US        (2ULL * 1000000)     /* a source that failed is let alone for so long */
#define ANSWER_MAX      (64 * 1024)
#define ATTEMPTS_MAX    3
#define METADATA_HOST   "http://169.254.169.254"
#define CONTAINER_HOST  "http://169.254.170.2"
#define METADATA_ROLES  "/latest/meta-data/iam/security-credentials/"
#define METADATA_MS_MAX 2000
#define STS_MS_MAX      10000

struct source {
    const char *name;
    bool can_renew;
    bool (*named)(struct mp_credentials *c);
    enum mp_code (*fetch)(struct mp_credentials *c, struct mp_aws_keys *ret, struct mp_err *err);
};

struct mp_credentials {
    pthread_mutex_t lock; /* over all that follows */
    const struct mp_env *env;
    struct mp_arena memory; /* of the texts of environment */
    struct mp_aws_environ environment;
    const char *region;
    const struct source *source; /* NULL: not looked for yet */
    struct mp_http_client *http; /* made when first needed */
    struct mp_aws_keys keys;
    bool have;              /* keys hold something, end or no end */
    int64_t fresh_until_us; /* wall clock of the server */
    uint64_t again_us;      /* monotonic: not before, after a failure */
    uint64_t generation;
    struct mp_err failed; /* what the failure was; code MP_OK: there was none */
};

/* --- environment ---------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t place;
} variables[] = {
    {"AWS_ACCESS_KEY_ID", offsetof(struct mp_aws_environ, access_key_id)},
    {"AWS_SECRET_ACCESS_KEY", offsetof(struct mp_aws_environ, secret_access_key)},
    {"AWS_SESSION_TOKEN", offsetof(struct mp_aws_environ, session_token)},
    {"AWS_ROLE_ARN", offsetof(struct mp_aws_environ, role_arn)},
    {"AWS_WEB_IDENTITY_TOKEN_FILE", offsetof(struct mp_aws_environ, web_identity_token_file)},
    {"AWS_ROLE_SESSION_NAME", offsetof(struct mp_aws_environ, role_session_name)},
    {"AWS_ENDPOINT_URL_STS", offsetof(struct mp_aws_environ, endpoint_url_sts)},
    {"AWS_CA_BUNDLE", offsetof(struct mp_aws_environ, ca_bundle)},
    {"AWS_PROFILE", offsetof(struct mp_aws_environ, profile)},
    {"AWS_SHARED_CREDENTIALS_FILE", offsetof(struct mp_aws_environ, shared_credentials_file)},
    {"AWS_CONFIG_FILE", offsetof(struct mp_aws_environ, config_file)},
    {"HOME", offsetof(struct mp_aws_environ, home)},
    {"AWS_REGION", offsetof(struct mp_aws_environ, region)},
    {"AWS_DEFAULT_REGION", offsetof(struct mp_aws_environ, default_region)},
    {"AWS_CONTAINER_CREDENTIALS_FULL_URI", offsetof(struct mp_aws_environ, container_full_uri)},
    {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
     offsetof(struct mp_aws_environ, container_relative_uri)},
    {"AWS_CONTAINER_AUTHORIZATION_TOKEN", offsetof(struct mp_aws_environ, container_token)},
    {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
     offsetof(struct mp_aws_environ, container_token_file)},
    {"AWS_EC2_METADATA_DISABLED", offsetof(struct mp_aws_environ, metadata_disabled)},
    {"AWS_EC2_METADATA_SERVICE_ENDPOINT", offsetof(struct mp_aws_environ, metadata_endpoint)},
    {NULL, offsetof(struct mp_aws_environ, container_host)},
};

#define VARIABLE_COUNT (sizeof(variables) / sizeof(*variables))

static const char **place_of(struct mp_aws_environ *environment, size_t variable)
{
    return (const char **)(void *)((char *)environment + variables[variable].place);
}

void mp_aws_environ_read(struct mp_aws_environ *ret)
{
    *ret = (struct mp_aws_environ){NULL};
    for (size_t i = 0; i < VARIABLE_COUNT; i++) {
        const char *value = variables[i].name ? getenv(variables[i].name) : NULL;

        if (value && *value)
            *place_of(ret, i) = value;
    }
}

static const char *copy_text(struct mp_arena *arena, const char *text)
{
    return text ? mp_arena_str(arena, mp_str_c(text)).data : NULL;
}

bool mp_aws_region(const struct mp_aws_environ *environment, char *ret, size_t ret_size)
{
    struct mp_profile *profile = mp_alloc(sizeof(*profile));
    const char *region = environment->region ? environment->region : environment->default_region;

    if (!region) {
        mp_profile_read(environment, profile);
        region = profile->region;
    }
    snprintf(ret, ret_size, "%s", region);
    explicit_bzero(profile, sizeof(*profile));
    mp_free(profile);
    return *ret != 0;
}

/* --- asking a source over HTTP -------------------------------------------------------------- */

static bool worth_retrying(const struct mp_http_call *call, enum mp_code code)
{
    if (code)
        return code == MP_IO || code == MP_TIMEOUT;
    return call->status >= 500 || call->status == 429;
}

static uint32_t metadata_ms_max(const struct mp_credentials *c)
{
    return c->environment.metadata_ms_max ? c->environment.metadata_ms_max : METADATA_MS_MAX;
}

/* Sends the call, up to ATTEMPTS_MAX times; MP_OK: an answer with status 200. An answer's own
 * words are left out of the error: some of these services answer with what they were asked. */
static enum mp_code ask(struct mp_credentials *c, struct mp_http_call *call, struct mp_err *err)
{
    enum mp_code code;

    if (!c->http)
        c->http = mp_http_client_new(&(struct mp_http_client_options){
            .connections_max = 1, .ca_file = c->environment.ca_bundle});
    call->connect_ms_max = metadata_ms_max(c);
    call->body.max = ANSWER_MAX;
    for (unsigned attempt = 1;; attempt++) {
        uint64_t wait_us_max = 100000ull << attempt;

        mp_http_one(c->http, call);
        code = mp_http_call_code(call, err);
        if (attempt == ATTEMPTS_MAX || !worth_retrying(call, code))
            break;
        mp_sleep_us(c->env, mp_random_u64(c->env) % wait_us_max);
    }
    if (code || call->status == 200)
        return code;
    code = call->status >= 500 || call->status == 429 ? MP_IO : MP_REFUSED;
    mp_err_set(err, code, "answered %u", call->status);
    if (err)
        err->sys = (int)call->status;
    return code;
}

bool mp_aws_time(const char *text, int64_t *ret_wall_us)
{
    struct tm utc = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);

    if (rest && *rest == '.')
        rest += 1 + strspn(rest + 1, "0123456789");
    if (!rest || strcmp(rest, "Z") != 0)
        return false;
    *ret_wall_us = (int64_t)timegm(&utc) * 1000000;
    return true;
}

static enum mp_code set_key(char *ret, size_t ret_size, const char *text, const char *what,
                            struct mp_err *err)
{
    size_t size = text ? strlen(text) : 0;

    if (size >= ret_size)
        return mp_err_set(err, MP_BAD_CONFIG, "%s has %zu bytes, %zu at most", what, size,
                          ret_size - 1);
    for (size_t i = 0; i < size; i++) /* a line end that came along from a file, most often */
        if (text[i] <= ' ' || text[i] > '~')
            return mp_err_set(err, MP_BAD_CONFIG, "%s has the byte 0x%02x at its place %zu of %zu",
                              what, (unsigned char)text[i], i, size);
    if (size)
        memcpy(ret, text, size);
    ret[size] = 0;
    return MP_OK;
}

static enum mp_code set_keys(struct mp_aws_keys *ret, const char *access_key,
                             const char *secret_key, const char *token, struct mp_err *err)
{
    enum mp_code code;

    code = set_key(ret->access_key, sizeof(ret->access_key), access_key, "access key", err);
    if (!code)
        code = set_key(ret->secret_key, sizeof(ret->secret_key), secret_key, "secret key", err);
    if (!code)
        code = set_key(ret->token, sizeof(ret->token), token, "session token", err);
    if (!code && (!*ret->access_key || !*ret->secret_key))
        code = mp_err_set(err, MP_BAD_DATA, "no access key or no secret key in it");
    return code;
}

/* What container and instance answer with. */
static enum mp_code parse_json(struct mp_str body, struct mp_aws_keys *ret, struct mp_err *err)
{
    json_t *root = json_loadb(body.data ? body.data : "", body.size, 0, NULL);
    const char *result = json_string_value(json_object_get(root, "Code"));
    const char *end = json_string_value(json_object_get(root, "Expiration"));
    enum mp_code code;

    if (!root) {
        code = mp_err_set(err, MP_BAD_DATA, "answer of %zu bytes is not json", body.size);
        goto out;
    }
    if (result && strcmp(result, "Success") != 0) {
        code = mp_err_set(err, MP_REFUSED, "answer has code %.64s", result);
        goto out;
    }
    code = set_keys(ret, json_string_value(json_object_get(root, "AccessKeyId")),
                    json_string_value(json_object_get(root, "SecretAccessKey")),
                    json_string_value(json_object_get(root, "Token")), err);
    if (!code && end && !mp_aws_time(end, &ret->end_wall_us))
        code = mp_err_set(err, MP_BAD_DATA, "expiration \"%.40s\" is no time", end);
out:
    json_decref(root);
    return code;
}

/* Forgets an answer that held secrets. */
static void forget(struct mp_http_call *call)
{
    if (call->body.data)
        explicit_bzero(call->body.data, call->body.capacity);
    mp_http_call_fini(call);
}

/* --- sources -------------------------------------------------------------------------------- */

static bool given_named(struct mp_credentials *c)
{
    (void)c;
    return true;
}

static enum mp_code given_fetch(struct mp_credentials *c, struct mp_aws_keys *ret,
                                struct mp_err *err)
{
    (void)err;
    *ret = c->keys;
    return MP_OK;
}

static bool environment_named(struct mp_credentials *c)
{
    return c->environment.access_key_id || c->environment.secret_access_key;
}

static enum mp_code environment_fetch(struct mp_credentials *c, struct mp_aws_keys *ret,
                                      struct mp_err *err)
{
    const struct mp_aws_environ *e = &c->environment;

    if (!e->access_key_id || !e->secret_access_key)
        return mp_err_set(err, MP_BAD_CONFIG, "%s is set and %s is not",
                          e->access_key_id ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                          e->access_key_id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
    return set_keys(ret, e->access_key_id, e->secret_access_key, e->session_token, err);
}

static bool web_identity_named(struct mp_credentials *c)
{
    return c->environment.role_arn && c->environment.web_identity_token_file;
}

/* The token is a file because it is replaced under us: read at every use. */
static enum mp_code read_token(const char *path, struct mp_buf *ret, struct mp_err *err)
{
    if (!mp_file_read(path, ret))
        return mp_err_errno(err, MP_IO, "read token file", path);
    while (ret->size > 0 && strchr(" \t\r\n", ret->data[ret->size - 1]))
        ret->size--;
    if (ret->size == 0)
        return mp_err_set(err, MP_BAD_DATA, "token file %s is empty", path);
    return MP_OK;
}

static void sts_url(const struct mp_credentials *c, char *ret, size_t ret_size)
{
    const char *domain = strncmp(c->region, "cn-", 3) == 0 ? "amazonaws.com.cn" : "amazonaws.com";

    if (c->environment.endpoint_url_sts)
        snprintf(ret, ret_size, "%s", c->environment.endpoint_url_sts);
    else
        snprintf(ret, ret_size, "https://sts.%s.%s/", c->region, domain);
}

/* After "AssumeRoleWithWebIdentity", AWS Security Token Service API reference. */
static enum mp_code parse_sts(struct mp_str body, struct mp_aws_keys *ret, struct mp_err *err)
{
#define STS_PATH "AssumeRoleWithWebIdentityResponse/AssumeRoleWithWebIdentityResult/Credentials/"
    char *token = mp_alloc(MP_AWS_TOKEN_MAX + 1);
    char access_key[MP_AWS_KEY_MAX + 1] = "", secret_key[MP_AWS_KEY_MAX + 1] = "", end[64] = "";
    enum mp_code code;

    mp_xml_text(body, MP_STR(STS_PATH "AccessKeyId"), access_key, sizeof(access_key));
    mp_xml_text(body, MP_STR(STS_PATH "SecretAccessKey"), secret_key, sizeof(secret_key));
    mp_xml_text(body, MP_STR(STS_PATH "SessionToken"), token, MP_AWS_TOKEN_MAX + 1);
    mp_xml_text(body, MP_STR(STS_PATH "Expiration"), end, sizeof(end));
    code = set_keys(ret, access_key, secret_key, token, err);
    if (!code && !mp_aws_time(end, &ret->end_wall_us))
        code = mp_err_set(err, MP_BAD_DATA, "expiration \"%s\" is no time", end);
    explicit_bzero(secret_key, sizeof(secret_key));
    explicit_bzero(token, MP_AWS_TOKEN_MAX + 1);
    mp_free(token);
    return code;
}

/* These pass by themselves: the second is mended by the next token in the file. */
static enum mp_code sts_code(const char *reason, enum mp_code otherwise)
{
    static const char *const passing[] = {"IDPCommunicationError", "ExpiredTokenException",
                                          "Throttling", "ThrottlingException"};

    for (size_t i = 0; i < sizeof(passing) / sizeof(*passing); i++)
        if (strcmp(reason, passing[i]) == 0)
            return MP_IO;
    return otherwise;
}

static enum mp_code assume_role(struct mp_credentials *c, const char *role_arn, const char *session,
                                const char *token_file, struct mp_aws_keys *ret, struct mp_err *err)
{
    const struct mp_http_header headers[] = {
        {MP_STR("Content-Type"), MP_STR("application/x-www-form-urlencoded")},
    };
    struct mp_buf token = MP_BUF_INIT(MP_AWS_TOKEN_MAX), form = MP_BUF_INIT(128 * 1024);
    char url[1024], reason[128] = "";
    struct mp_http_call call = {.method = "POST",
                                .url = url,
                                .headers = headers,
                                .header_count = 1,
                                .total_ms_max = STS_MS_MAX,
                                .piece_count = 1};
    struct mp_str piece;
    enum mp_code code;

    code = read_token(token_file, &token, err);
    if (code)
        goto out;
    mp_buf_add_c(&form, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=");
    mp_http_escape(&form, mp_str_c(role_arn), false);
    mp_buf_add_c(&form, "&RoleSessionName=");
    mp_http_escape(&form, mp_str_c(session ? session : "millpond"), false);
    mp_buf_add_c(&form, "&WebIdentityToken=");
    mp_http_escape(&form, mp_buf_str(&token), false);
    piece = mp_buf_str(&form);
    call.pieces = &piece;
    sts_url(c, url, sizeof(url));
    code = ask(c, &call, err);
    if (!code)
        code = parse_sts(mp_buf_str(&call.body), ret, err);
    else if (mp_xml_text(mp_buf_str(&call.body), MP_STR("ErrorResponse/Error/Code"), reason,
                         sizeof(reason)))
        code = mp_err_set(err, sts_code(reason, code), "sts answered %u %s", call.status, reason);
    if (code)
        mp_err_add(err, "assume role %s", role_arn);
out:
    forget(&call);
    mp_buf_fini(&form);
    mp_buf_fini(&token);
    return code;
}

static enum mp_code web_identity_fetch(struct mp_credentials *c, struct mp_aws_keys *ret,
                                       struct mp_err *err)
{
    return assume_role(c, c->environment.role_arn, c->environment.role_session_name,
                       c->environment.web_identity_token_file, ret, err);
}

/* A profile that was asked for by name counts even where it is missing, so that this is told. */
static bool profile_named(struct mp_credentials *c)
{
    struct mp_profile *profile = mp_alloc(sizeof(*profile));
    bool named;

    mp_profile_read(&c->environment, profile);
    named = c->environment.profile || *profile->access_key || *profile->role_arn ||
            profile->unsupported;
    explicit_bzero(profile, sizeof(*profile));
    mp_free(profile);
    return named;
}

static enum mp_code profile_fetch(struct mp_credentials *c, struct mp_aws_keys *ret,
                                  struct mp_err *err)
{
    struct mp_profile *profile = mp_alloc(sizeof(*profile));
    enum mp_code code;

    mp_profile_read(&c->environment, profile);
    if (*profile->access_key)
        code = set_keys(ret, profile->access_key, profile->secret_key, profile->token, err);
    else if (*profile->role_arn && *profile->web_identity_token_file)
        code = assume_role(c, profile->role_arn,
                           *profile->role_session_name ? profile->role_session_name : NULL,
                           profile->web_identity_token_file, ret, err);
    else if (profile->unsupported)
        code = mp_err_set(err, MP_BAD_CONFIG, "it uses %s, which is not supported",
                          profile->unsupported);
    else
        code = mp_err_set(err, MP_BAD_CONFIG,
                          profile->found ? "it has no keys" : "it is in neither of the files");
    if (code)
        mp_err_add(err, "\"%s\"", c->environment.profile ? c->environment.profile : "default");
    explicit_bzero(profile, sizeof(*profile));
    mp_free(profile);
    return code;
}

static bool container_named(struct mp_credentials *c)
{
    return c->environment.container_full_uri || c->environment.container_relative_uri;
}

/* Where a token may be sent without TLS: this machine, and the two addresses of the agents.
 * After "Container credential provider", AWS SDKs and Tools Reference Guide. */
static bool container_host_allowed(const char *url)
{
    static const char *const hosts[] = {"localhost",     "127.0.0.1",      "[::1]",
                                        "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
    const char *host = url + strlen("http://");
    size_t size;

    if (strncmp(url, "https://", 8) == 0)
        return true;
    if (strncmp(url, "http://", 7) != 0)
        return false;
    size = *host == '[' ? strcspn(host, "]/?#@") + 1 : strcspn(host, ":/?#@");
    for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++)
        if (mp_str_eq((struct mp_str){host, size}, mp_str_c(hosts[i])) &&
            (host[size] == 0 || strchr(":/?", host[size])) &&
            !memchr(host, '@', strcspn(host, "/?")))
            return true;
    return false;
}

static enum mp_code container_fetch(struct mp_credentials *c, struct mp_aws_keys *ret,
                                    struct mp_err *err)
{
    const struct mp_aws_environ *e = &c->environment;
    struct mp_buf token = MP_BUF_INIT(MP_AWS_TOKEN_MAX);
    struct mp_http_header header = {MP_STR("Authorization"), MP_STR("")};
    char url[2048];
    struct mp_http_call call = {.method = "GET",
                                .url = url,
                                .headers = &header,
                                .direct = true,
                                .total_ms_max = metadata_ms_max(c)};
    enum mp_code code = MP_OK;

    if (e->container_relative_uri)
        snprintf(url, sizeof(url), "%s%s", e->container_host ? e->container_host : CONTAINER_HOST,
                 e->container_relative_uri);
    else
        snprintf(url, sizeof(url), "%s", e->container_full_uri);
    if (!e->container_relative_uri && !container_host_allowed(url)) {
        code = mp_err_set(err, MP_BAD_CONFIG,
                          "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https "
                          "nor on this machine");
        goto out;
    }
    if (e->container_token_file)
        code = read_token(e->container_token_file, &token, err);
    else if (e->container_token)
        mp_buf_add_c(&token, e->container_token);
    if (code)
        goto out;
    header.value = mp_buf_str(&token);
    call.header_count = token.size ? 1 : 0;
    if (memchr(token.data ? token.data : "", '\n', token.size)) {
        code = mp_err_set(err, MP_BAD_CONFIG, "authorization token holds a line end");
        goto out;
    }
    code = ask(c, &call, err);
    if (!code)
        code = parse_json(mp_buf_str(&call.body), ret, err);
out:
    forget(&call);
    mp_buf_fini(&token);
    return code;
}

static bool instance_named(struct mp_credentials *c)
{
    const char *disabled = c->environment.metadata_disabled;

    return !disabled || !mp_str_eq_fold(mp_str_c(disabled), MP_STR("true"));
}

/* "Use the Instance Metadata Service", version 2: a session token, the role's name, its keys. */
static enum mp_code instance_fetch(struct mp_credentials *c, struct mp_aws_keys *ret,
                                   struct mp_err *err)
{
    const struct mp_http_header lifetime = {MP_STR("X-aws-ec2-metadata-token-ttl-seconds"),
                                            MP_STR("21600")};
    struct mp_http_header session = {MP_STR("X-aws-ec2-metadata-token"), MP_STR("")};
    const char *host =
        c->environment.metadata_endpoint ? c->environment.metadata_endpoint : METADATA_HOST;
    int host_size = (int)strlen(host);
    char url[2048], token[512];
    const char *role;
    struct mp_http_call call = {
        .url = url, .header_count = 1, .direct = true, .total_ms_max = metadata_ms_max(c)};
    enum mp_code code;

    while (host_size > 0 && host[host_size - 1] == '/')
        host_size--;
    call.method = "PUT";
    call.headers = &lifetime;
    snprintf(url, sizeof(url), "%.*s/latest/api/token", host_size, host);
    code = ask(c, &call, err);
    if (code) {
        mp_err_add(err, "no other source is named");
        goto out;
    }
    snprintf(token, sizeof(token), "%.*s", MP_STR_ARG(mp_buf_str(&call.body)));
    token[strcspn(token, "\r\n")] = 0;
    session.value = mp_str_c(token);
    call.method = "GET";
    call.headers = &session;
    snprintf(url, sizeof(url), "%.*s" METADATA_ROLES, host_size, host);
    code = ask(c, &call, err);
    if (code)
        goto out;
    role = mp_buf_c(&call.body);
    snprintf(url, sizeof(url), "%.*s" METADATA_ROLES "%.*s", host_size, host,
             (int)strcspn(role, "\r\n"), role);
    code = ask(c, &call, err);
    if (!code)
        code = parse_json(mp_buf_str(&call.body), ret, err);
out:
    forget(&call);
    return code;
}

static bool none_named(struct mp_credentials *c)
{
    (void)c;
    return true;
}

static enum mp_code none_fetch(struct mp_credentials *c, struct mp_aws_keys *ret,
                               struct mp_err *err)
{
    (void)c, (void)ret;
    return mp_err_set(err, MP_BAD_CONFIG,
                      "nothing names any: no keys given, no AWS_ACCESS_KEY_ID, no AWS_ROLE_ARN "
                      "with AWS_WEB_IDENTITY_TOKEN_FILE, no profile, no container, and instance "
                      "metadata is disabled");
}

static const struct source given = {"given", false, given_named, given_fetch};

static const struct source sources[] = {
    {"environment", false, environment_named, environment_fetch},
    {"web identity", true, web_identity_named, web_identity_fetch},
    {"profile", true, profile_named, profile_fetch},
    {"container", true, container_named, container_fetch},
    {"instance", true, instance_named, instance_fetch},
    {"none", false, none_named, none_fetch},
};

/* --- keeping keys --------------------------------------------------------------------------- */

static const struct source *find_source(struct mp_credentials *c)
{
    size_t i = 0;

    if (c->source)
        return c->source;
    while (!sources[i].named(c))
        i++;
    return c->source = &sources[i];
}

/* C1 */
static int64_t fresh_until(int64_t now_us, int64_t end_us)
{
    int64_t half;

    if (end_us == INT64_MAX)
        return INT64_MAX;
    half = (end_us - now_us) / 2;
    return end_us - (half < EARLY_US ? half : EARLY_US);
}

static enum mp_code fetch(struct mp_credentials *c, int64_t now_us, struct mp_err *err)
{
    const struct source *source = find_source(c);
    struct mp_aws_keys *keys = mp_alloc(sizeof(*keys));
    enum mp_code code;

    keys->end_wall_us = INT64_MAX;
    code = source->fetch(c, keys, err);
    if (!code && keys->end_wall_us <= now_us)
        code = mp_err_set(err, MP_IO, "keys that have already expired");
    if (!code) {
        c->keys = *keys;
        c->keys.generation = ++c->generation;
        c->fresh_until_us = fresh_until(now_us, keys->end_wall_us);
        c->have = true;
    }
    if (code)
        mp_err_add(err, "credentials from %s", source->name);
    explicit_bzero(keys, sizeof(*keys));
    mp_free(keys);
    return code;
}

enum mp_code mp_credentials_get(struct mp_credentials *c, int64_t skew_us, struct mp_aws_keys *ret,
                                struct mp_err *err)
{
    enum mp_code code = MP_OK;
    int64_t now_us;

    pthread_mutex_lock(&c->lock);
    now_us = c->env ? mp_now_wall_us(c->env) + skew_us : 0;
    if (!c->have || now_us >= c->fresh_until_us) {
        if (!c->failed.code || mp_now_mono_us(c->env) >= c->again_us) {
            c->failed.code = fetch(c, now_us, &c->failed);
            c->again_us = mp_now_mono_us(c->env) + AGAIN_US;
        }
        if (c->failed.code && !(c->have && now_us < c->keys.end_wall_us)) { /* C2 */
            code = c->failed.code;
            if (err)
                *err = c->failed;
        }
    }
    if (!code)
        *ret = c->keys;
    pthread_mutex_unlock(&c->lock);
    return code;
}

bool mp_credentials_renew(struct mp_credentials *c, uint64_t generation)
{
    bool can;

    pthread_mutex_lock(&c->lock);
    can = find_source(c)->can_renew;
    if (can && c->generation == generation)
        c->have = false;
    pthread_mutex_unlock(&c->lock);
    return can;
}

const char *mp_credentials_source(struct mp_credentials *c)
{
    const char *name;

    pthread_mutex_lock(&c->lock);
    name = find_source(c)->name;
    pthread_mutex_unlock(&c->lock);
    return name;
}

/* --- life ----------------------------------------------------------------------------------- */

static struct mp_credentials *new_credentials(void)
{
    struct mp_credentials *c = mp_alloc(sizeof(*c));

    pthread_mutex_init(&c->lock, NULL);
    mp_arena_init(&c->memory, 4096);
    return c;
}

enum mp_code mp_credentials_given(struct mp_str access_key, struct mp_str secret_key,
                                  struct mp_str token, struct mp_err *err,
                                  struct mp_credentials **ret)
{
    struct mp_credentials *c = new_credentials();
    enum mp_code code = set_keys(&c->keys, mp_arena_str(&c->memory, access_key).data,
                                 mp_arena_str(&c->memory, secret_key).data,
                                 mp_arena_str(&c->memory, token).data, err);

    if (code) {
        mp_credentials_free(c);
        return code;
    }
    c->keys.end_wall_us = c->fresh_until_us = INT64_MAX;
    c->source = &given;
    c->have = true;
    *ret = c;
    return MP_OK;
}

struct mp_credentials *mp_credentials_chain(const struct mp_aws_environ *environment,
                                            struct mp_str region, const struct mp_env *env)
{
    struct mp_credentials *c = new_credentials();
    struct mp_aws_environ texts = *environment;

    for (size_t i = 0; i < VARIABLE_COUNT; i++)
        *place_of(&c->environment, i) = copy_text(&c->memory, *place_of(&texts, i));
    c->environment.metadata_ms_max = environment->metadata_ms_max;
    c->region = mp_arena_str(&c->memory, region).data;
    c->env = env;
    return c;
}

void mp_credentials_free(struct mp_credentials *c)
{
    if (!c)
        return;
    mp_http_client_free(c->http);
    mp_arena_fini(&c->memory);
    pthread_mutex_destroy(&c->lock);
    explicit_bzero(c, sizeof(*c));
    mp_free(c);
}
