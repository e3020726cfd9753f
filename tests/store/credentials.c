/* Credentials from each source, with a stepped clock and a scripted server in place of AWS's. */
#include "harness/http_script.h"
#include "harness/test.h"

#include "store/credentials.h"
#include "store/profile.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SECOND 1000000LL
#define MINUTE (60 * SECOND)
#define NOW    (1700000000 * SECOND) /* 2023-11-14T22:13:20Z */
#define STS_OK(access_key, end)                                                                    \
    "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"      \
    "<AssumeRoleWithWebIdentityResult><Credentials><SessionToken>tok+en/=</SessionToken>"          \
    "<SecretAccessKey>sts-secret</SecretAccessKey><Expiration>" end                                \
    "</Expiration><AccessKeyId>" access_key                                                        \
    "</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult>"                               \
    "</AssumeRoleWithWebIdentityResponse>"
#define JSON_OK(access_key, end)                                                                   \
    "{\"Code\":\"Success\",\"AccessKeyId\":\"" access_key                                          \
    "\",\"SecretAccessKey\":\"json-secret\",\"Token\":\"json-token\",\"Expiration\":\"" end "\"}"

static struct mp_env_fake fake;
static struct mp_env env;
static struct mp_err err;
static struct mp_aws_keys keys;

static struct mp_aws_environ no_environ(void)
{
    fake = (struct mp_env_fake){.mono_us = 1000, .wall_us = NOW, .seed = 7};
    env = mp_env_fake(&fake);
    return (struct mp_aws_environ){.metadata_disabled = "true", .metadata_ms_max = 60000};
}

static void pass(int64_t us)
{
    fake.mono_us += (uint64_t)us;
    fake.wall_us += us;
}

static const char *write_file(const char *text)
{
    static char paths[8][128];
    static unsigned next;
    char *path = paths[next++ % 8];
    FILE *file;

    snprintf(path, sizeof(paths[0]), "%s/file", test_directory());
    file = fopen(path, "w");
    CHECK(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static struct mp_credentials *chain(const struct mp_aws_environ *environment)
{
    return mp_credentials_chain(environment, MP_STR("eu-west-1"), &env);
}

static enum mp_code get(struct mp_credentials *credentials)
{
    return mp_credentials_get(credentials, 0, &keys, &err);
}

static void check_key(struct mp_credentials *credentials, const char *access_key)
{
    CHECK_OK(get(credentials), err);
    CHECK_STR(mp_str_c(keys.access_key), mp_str_c(access_key));
}

/* --- which source --------------------------------------------------------------------------- */

static void credentials_take_the_first_source_named(void)
{
    const char *profile = write_file("[default]\naws_access_key_id=p\naws_secret_access_key=s\n");
    struct mp_aws_environ all = no_environ();
    static const char *const order[] = {"environment", "web identity", "profile",
                                        "container",   "instance",     "none"};

    all.access_key_id = "a";
    all.secret_access_key = "s";
    all.role_arn = "arn";
    all.web_identity_token_file = "/none";
    all.shared_credentials_file = profile;
    all.container_full_uri = "https://x";
    all.metadata_disabled = NULL;
    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
        struct mp_credentials *credentials = chain(&all);

        CHECK_STR(mp_str_c(mp_credentials_source(credentials)), mp_str_c(order[i]));
        mp_credentials_free(credentials);
        if (i == 0)
            all.access_key_id = all.secret_access_key = NULL;
        if (i == 1)
            all.role_arn = NULL;
        if (i == 2)
            all.shared_credentials_file = NULL;
        if (i == 3)
            all.container_full_uri = NULL;
        if (i == 4)
            all.metadata_disabled = "TRUE";
    }
}

static void credentials_none_says_what_was_looked_for(void)
{
    struct mp_aws_environ environment = no_environ();
    struct mp_credentials *credentials = chain(&environment);

    CHECK_INT(get(credentials), MP_BAD_CONFIG);
    CHECK(strstr(err.text, "AWS_ACCESS_KEY_ID"));
    mp_credentials_free(credentials);
}

static void credentials_given_are_kept(void)
{
    struct mp_credentials *credentials = NULL;

    CHECK_OK(mp_credentials_given(MP_STR("ak"), MP_STR("sk"), MP_STR("tok"), &err, &credentials),
             err);
    check_key(credentials, "ak");
    CHECK_STR(mp_str_c(keys.secret_key), MP_STR("sk"));
    CHECK_STR(mp_str_c(keys.token), MP_STR("tok"));
    CHECK(!mp_credentials_renew(credentials, keys.generation));
    CHECK_STR(mp_str_c(mp_credentials_source(credentials)), MP_STR("given"));
    mp_credentials_free(credentials);
    CHECK_INT(mp_credentials_given(MP_STR("a\n"), MP_STR("s"), MP_STR(""), &err, &credentials),
              MP_BAD_CONFIG);
    CHECK_STR(mp_str_c(err.text), MP_STR("access key has the byte 0x0a at its place 1 of 2"));
    CHECK_INT(mp_credentials_given(MP_STR("a"), MP_STR("sec ret"), MP_STR(""), &err, &credentials),
              MP_BAD_CONFIG);
    CHECK(!strstr(err.text, "sec ret"));
}

static void credentials_environment(void)
{
    struct mp_aws_environ environment = no_environ();
    struct mp_credentials *credentials;

    environment.access_key_id = "env-key";
    credentials = chain(&environment);
    CHECK_INT(get(credentials), MP_BAD_CONFIG);
    CHECK(strstr(err.text, "AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not"));
    mp_credentials_free(credentials);
    environment.secret_access_key = "env-secret";
    environment.session_token = "env-token";
    credentials = chain(&environment);
    check_key(credentials, "env-key");
    CHECK_STR(mp_str_c(keys.secret_key), MP_STR("env-secret"));
    CHECK_STR(mp_str_c(keys.token), MP_STR("env-token"));
    CHECK_INT(keys.end_wall_us, INT64_MAX);
    CHECK(!mp_credentials_renew(credentials, keys.generation));
    mp_credentials_free(credentials);
}

static void credentials_read_the_environment(void)
{
    struct mp_aws_environ environment;

    setenv("AWS_ROLE_ARN", "arn:x", 1);
    setenv("AWS_PROFILE", "", 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/f", 1);
    mp_aws_environ_read(&environment);
    CHECK_STR(mp_str_c(environment.role_arn), MP_STR("arn:x"));
    CHECK_STR(mp_str_c(environment.container_token_file), MP_STR("/f"));
    CHECK(!environment.profile); /* empty is not set */
    CHECK(!environment.container_host);
    unsetenv("AWS_ROLE_ARN");
    unsetenv("AWS_PROFILE");
    unsetenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
}

/* --- web identity --------------------------------------------------------------------------- */

static struct mp_aws_environ web_environ(struct http_script *script, const char *token_file)
{
    struct mp_aws_environ environment = no_environ();

    environment.role_arn = "arn:aws:iam::1:role/r";
    environment.web_identity_token_file = token_file;
    environment.endpoint_url_sts = http_script_url(script);
    return environment;
}

static void web_identity_asks_sts(void)
{
    static const struct http_step step = {.body = STS_OK("web-1", "2023-11-14T23:13:20Z")};
    struct http_script *script = http_script_start(&step, 1, NULL, NULL);
    struct mp_aws_environ environment = web_environ(script, write_file("header.pay+load.sig\n"));
    struct mp_credentials *credentials = chain(&environment);
    const struct http_record *request;

    check_key(credentials, "web-1");
    CHECK_STR(mp_str_c(keys.secret_key), MP_STR("sts-secret"));
    CHECK_STR(mp_str_c(keys.token), MP_STR("tok+en/="));
    CHECK_INT(keys.end_wall_us, NOW + 60 * MINUTE);
    request = http_script_request(script, 0);
    CHECK_STR(request->method, MP_STR("POST"));
    CHECK_STR(request->target, MP_STR("/"));
    CHECK_STR(request->body,
              MP_STR("Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%"
                     "3A%3A1%3Arole%2Fr&RoleSessionName=millpond&WebIdentityToken=header.pay%"
                     "2Bload.sig"));
    CHECK_STR(http_record_header(request, "Content-Type"),
              MP_STR("application/x-www-form-urlencoded"));
    mp_credentials_free(credentials);
    http_script_stop(script);
}

static void sixty_second_keys_are_replaced_at_half_life(void)
{
    static const struct http_step steps[] = {
        {.body = STS_OK("web-1", "2023-11-14T22:14:20Z")}, /* now + 60 s */
        {.body = STS_OK("web-2", "2023-11-14T22:14:50.123Z")},
    };
    struct http_script *script = http_script_start(steps, 2, NULL, NULL);
    const char *token_file = write_file("token-one");
    struct mp_aws_environ environment = web_environ(script, token_file);
    struct mp_credentials *credentials = chain(&environment);
    FILE *file;

    check_key(credentials, "web-1");
    pass(29 * SECOND);
    check_key(credentials, "web-1");
    CHECK_INT(http_script_count(script), 1);
    file = fopen(token_file, "w"); /* replaced under us, as kubelet does */
    fputs("token-two", file);
    fclose(file);
    pass(1 * SECOND);
    check_key(credentials, "web-2");
    CHECK_INT(http_script_count(script), 2);
    CHECK(memmem(http_script_request(script, 1)->body.data,
                 http_script_request(script, 1)->body.size, "token-two", 9));
    mp_credentials_free(credentials);
    http_script_stop(script);
}

static void hour_keys_are_replaced_five_minutes_early(void)
{
    static const struct http_step steps[] = {
        {.body = STS_OK("web-1", "2023-11-14T23:13:20Z")},
        {.body = STS_OK("web-2", "2023-11-15T01:13:20Z")},
    };
    struct http_script *script = http_script_start(steps, 2, NULL, NULL);
    struct mp_aws_environ environment = web_environ(script, write_file("token"));
    struct mp_credentials *credentials = chain(&environment);

    check_key(credentials, "web-1");
    pass(55 * MINUTE - 1);
    check_key(credentials, "web-1");
    pass(1);
    check_key(credentials, "web-2");
    mp_credentials_free(credentials);
    http_script_stop(script);
}

/* The server's clock is 20 minutes ahead of ours: its "end" is nearer than it looks. */
static void skew_counts_for_the_end_of_keys(void)
{
    static const struct http_step steps[] = {
        {.body = STS_OK("web-1", "2023-11-14T23:13:20Z")},
        {.body = STS_OK("web-2", "2023-11-15T01:13:20Z")},
    };
    struct http_script *script = http_script_start(steps, 2, NULL, NULL);
    struct mp_aws_environ environment = web_environ(script, write_file("token"));
    struct mp_credentials *credentials = chain(&environment);

    check_key(credentials, "web-1");
    pass(36 * MINUTE);
    check_key(credentials, "web-1");
    CHECK_OK(mp_credentials_get(credentials, 20 * MINUTE, &keys, &err), err);
    CHECK_STR(mp_str_c(keys.access_key), MP_STR("web-2"));
    mp_credentials_free(credentials);
    http_script_stop(script);
}

static void old_keys_serve_while_sts_is_down(void)
{
    static const struct http_step steps[] = {
        {.body = STS_OK("web-1", "2023-11-14T23:13:20Z")},
        {.status = 500},
        {.status = 503},
        {.status = 500}, /* a refresh: three attempts */
        {.status = 500},
        {.status = 503},
        {.status = 500},
        {.body = STS_OK("web-2", "2023-11-15T01:13:20Z")},
    };
    struct http_script *script = http_script_start(steps, 8, NULL, NULL);
    struct mp_aws_environ environment = web_environ(script, write_file("token"));
    struct mp_credentials *credentials = chain(&environment);

    check_key(credentials, "web-1");
    pass(56 * MINUTE);
    check_key(credentials, "web-1");
    CHECK_INT(http_script_count(script), 4);
    check_key(credentials, "web-1"); /* it is let alone for a moment */
    CHECK_INT(http_script_count(script), 4);
    pass(4 * MINUTE);
    CHECK_INT(get(credentials), MP_IO); /* now they are over */
    CHECK(err.retriable);
    CHECK_STR(mp_str_c(err.text),
              MP_STR("credentials from web identity: assume role arn:aws:iam::1:role/r: "
                     "answered 500"));
    CHECK_INT(http_script_count(script), 7);
    CHECK_INT(get(credentials), MP_IO);
    CHECK_INT(http_script_count(script), 7);
    pass(3 * SECOND);
    check_key(credentials, "web-2");
    mp_credentials_free(credentials);
    http_script_stop(script);
}

static void sts_refusals_are_told(void)
{
#define STS_ERROR(code)                                                                            \
    "<ErrorResponse><Error><Type>Sender</Type><Code>" code                                         \
    "</Code><Message>with the token in it</Message></Error></ErrorResponse>"
    static const struct {
        struct http_step step;
        enum mp_code code;
        const char *text;
    } cases[] = {
        {{.status = 403, .body = STS_ERROR("AccessDenied")}, MP_REFUSED, "sts answered 403 Access"},
        {{.status = 400, .body = STS_ERROR("InvalidIdentityToken")}, MP_REFUSED, "400 Invalid"},
        {{.status = 400, .body = STS_ERROR("ExpiredTokenException")}, MP_IO, "400 ExpiredToken"},
        {{.status = 400, .body = STS_ERROR("IDPCommunicationError")}, MP_IO, "400 IDP"},
        {{.status = 200, .body = "<html>"}, MP_BAD_DATA, "no access key"},
        {{.status = 200, .body = STS_OK("x", "soon")}, MP_BAD_DATA, "\"soon\" is no time"},
        {{.status = 200, .body = STS_OK("x", "2023-11-14T22:13:20Z")}, MP_IO, "already expired"},
        {{.status = 302}, MP_REFUSED, "answered 302"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct http_script *script = http_script_start(&cases[i].step, 1, NULL, NULL);
        struct mp_aws_environ environment = web_environ(script, write_file("token-text"));
        struct mp_credentials *credentials = chain(&environment);

        CHECK_INT(get(credentials), cases[i].code);
        CHECK_INT(err.retriable, cases[i].code == MP_IO);
        if (!strstr(err.text, cases[i].text))
            test_fail(__FILE__, __LINE__, "no \"%s\" in \"%s\"", cases[i].text, err.text);
        CHECK(!strstr(err.text, "token-text") && !strstr(err.text, "with the token"));
        CHECK_INT(http_script_count(script), 1);
        mp_credentials_free(credentials);
        http_script_stop(script);
    }
}

static void token_file_faults_are_told(void)
{
    struct http_script *script = http_script_start(NULL, 0, NULL, NULL);
    struct mp_aws_environ environment = web_environ(script, "/no/such/file");
    struct mp_credentials *credentials = chain(&environment);

    CHECK_INT(get(credentials), MP_IO);
    CHECK(strstr(err.text, "/no/such/file: No such file"));
    mp_credentials_free(credentials);
    environment.web_identity_token_file = write_file("\n");
    credentials = chain(&environment);
    CHECK_INT(get(credentials), MP_BAD_DATA);
    mp_credentials_free(credentials);
    CHECK_INT(http_script_count(script), 0);
    http_script_stop(script);
}

static void renewing_fetches_once_per_generation(void)
{
    static const struct http_step steps[] = {
        {.body = STS_OK("web-1", "2023-11-14T23:13:20Z")},
        {.body = STS_OK("web-2", "2023-11-14T23:13:20Z")},
        {.body = STS_OK("web-3", "2023-11-14T23:13:20Z")},
    };
    struct http_script *script = http_script_start(steps, 3, NULL, NULL);
    struct mp_aws_environ environment = web_environ(script, write_file("token"));
    struct mp_credentials *credentials = chain(&environment);
    uint64_t first;

    check_key(credentials, "web-1");
    first = keys.generation;
    CHECK(mp_credentials_renew(credentials, first));
    CHECK(mp_credentials_renew(credentials, first)); /* a second request with the same keys */
    check_key(credentials, "web-2");
    CHECK(mp_credentials_renew(credentials, first)); /* and a late one */
    check_key(credentials, "web-2");
    CHECK(mp_credentials_renew(credentials, keys.generation));
    check_key(credentials, "web-3");
    mp_credentials_free(credentials);
    http_script_stop(script);
}

/* --- profile -------------------------------------------------------------------------------- */

static void profile_reads_both_files(void)
{
    struct mp_aws_environ environment = no_environ();
    struct mp_credentials *credentials;
    char region[64];

    environment.shared_credentials_file =
        write_file("# c\n[default]\naws_access_key_id = d-key\naws_secret_access_key=d-secret\n\n"
                   "[other]\r\naws_access_key_id=o-key\r\naws_secret_access_key = o=secret\r\n"
                   "aws_session_token = o-token\r\n");
    environment.config_file = write_file("[default]\nregion = eu-north-1\n[profile other]\n"
                                         "region=ap-south-1\naws_access_key_id = not-this\n"
                                         "s3 =\n  region = nested\n[other]\nregion = no-prefix\n");
    CHECK(mp_aws_region(&environment, region, sizeof(region)));
    CHECK_STR(mp_str_c(region), MP_STR("eu-north-1"));
    credentials = chain(&environment);
    check_key(credentials, "d-key");
    CHECK_STR(mp_str_c(keys.token), MP_STR(""));
    mp_credentials_free(credentials);
    environment.profile = "other";
    CHECK(mp_aws_region(&environment, region, sizeof(region)));
    CHECK_STR(mp_str_c(region), MP_STR("ap-south-1"));
    credentials = chain(&environment);
    check_key(credentials, "o-key");
    CHECK_STR(mp_str_c(keys.secret_key), MP_STR("o=secret"));
    CHECK_STR(mp_str_c(keys.token), MP_STR("o-token"));
    CHECK(mp_credentials_renew(credentials, keys.generation)); /* the file may have changed */
    check_key(credentials, "o-key");
    mp_credentials_free(credentials);
    environment.default_region = "us-west-2";
    CHECK(mp_aws_region(&environment, region, sizeof(region)));
    CHECK_STR(mp_str_c(region), MP_STR("us-west-2"));
    environment.region = "us-west-1";
    CHECK(mp_aws_region(&environment, region, sizeof(region)));
    CHECK_STR(mp_str_c(region), MP_STR("us-west-1"));
    environment = no_environ();
    CHECK(!mp_aws_region(&environment, region, sizeof(region)));
}

static void profile_is_looked_for_at_home(void)
{
    struct mp_aws_environ environment = no_environ();
    struct mp_credentials *credentials;
    char path[256];
    FILE *file;

    environment.home = test_directory();
    snprintf(path, sizeof(path), "mkdir %s/.aws", environment.home);
    CHECK_INT(system(path), 0);
    snprintf(path, sizeof(path), "%s/.aws/credentials", environment.home);
    file = fopen(path, "w");
    fputs("[default]\naws_access_key_id=home\naws_secret_access_key=s", file);
    fclose(file);
    credentials = chain(&environment);
    check_key(credentials, "home");
    mp_credentials_free(credentials);
}

static void profile_faults_are_told(void)
{
    struct mp_aws_environ environment = no_environ();
    struct mp_credentials *credentials;

    environment.profile = "lost";
    credentials = chain(&environment);
    CHECK_INT(get(credentials), MP_BAD_CONFIG);
    CHECK_STR(mp_str_c(err.text),
              MP_STR("credentials from profile: \"lost\": it is in neither of the files"));
    mp_credentials_free(credentials);
    environment.config_file = write_file("[profile lost]\nsso_session = x\n");
    credentials = chain(&environment);
    CHECK_INT(get(credentials), MP_BAD_CONFIG);
    CHECK(strstr(err.text, "it uses sso_session, which is not supported"));
    mp_credentials_free(credentials);
    environment.config_file = write_file("[profile lost]\n");
    credentials = chain(&environment);
    CHECK_INT(get(credentials), MP_BAD_CONFIG);
    CHECK(strstr(err.text, "it has no keys"));
    mp_credentials_free(credentials);
}

static void profile_may_name_a_web_identity(void)
{
    static const struct http_step step = {.body = STS_OK("web-p", "2023-11-14T23:13:20Z")};
    struct http_script *script = http_script_start(&step, 1, NULL, NULL);
    struct mp_aws_environ environment = no_environ();
    struct mp_credentials *credentials;
    char text[512];

    snprintf(text, sizeof(text),
             "[default]\nrole_arn=arn:p\nrole_session_name=s-p\nweb_identity_token_file=%s\n",
             write_file("token"));
    environment.config_file = write_file(text);
    environment.endpoint_url_sts = http_script_url(script);
    credentials = chain(&environment);
    check_key(credentials, "web-p");
    CHECK(memmem(http_script_request(script, 0)->body.data,
                 http_script_request(script, 0)->body.size, "RoleSessionName=s-p", 19));
    mp_credentials_free(credentials);
    http_script_stop(script);
}

/* --- container and instance ----------------------------------------------------------------- */

static void container_by_relative_uri(void)
{
    static const struct http_step steps[] = {
        {.body = JSON_OK("ecs-1", "2023-11-14T22:23:20Z")},
        {.body = JSON_OK("ecs-2", "2023-11-14T23:23:20Z")},
    };
    struct http_script *script = http_script_start(steps, 2, NULL, NULL);
    struct mp_aws_environ environment = no_environ();
    struct mp_credentials *credentials;

    environment.container_relative_uri = "/v2/credentials/uuid";
    environment.container_full_uri = "http://not-this";
    environment.container_host = http_script_url(script);
    credentials = chain(&environment);
    check_key(credentials, "ecs-1");
    CHECK_STR(mp_str_c(keys.secret_key), MP_STR("json-secret"));
    CHECK_STR(mp_str_c(keys.token), MP_STR("json-token"));
    CHECK_STR(http_script_request(script, 0)->target, MP_STR("/v2/credentials/uuid"));
    CHECK(!http_record_header(http_script_request(script, 0), "Authorization").data);
    pass(5 * MINUTE); /* of ten: the same by both rules */
    check_key(credentials, "ecs-2");
    mp_credentials_free(credentials);
    http_script_stop(script);
}

static void container_by_full_uri_and_token_file(void)
{
    static const struct http_step steps[] = {
        {.status = 503},
        {.body = JSON_OK("eks-1", "2023-11-14T22:43:20Z")},
        {.body = JSON_OK("eks-2", "2023-11-14T23:23:20Z")},
    };
    struct http_script *script = http_script_start(steps, 3, NULL, NULL);
    struct mp_aws_environ environment = no_environ();
    struct mp_credentials *credentials;
    const char *token_file = write_file("pod token 1\n");
    char uri[128];
    FILE *file;

    snprintf(uri, sizeof(uri), "%s/v1/credentials", http_script_url(script));
    environment.container_full_uri = uri;
    environment.container_token_file = token_file;
    environment.container_token = "not this";
    credentials = chain(&environment);
    check_key(credentials, "eks-1");
    CHECK_STR(http_record_header(http_script_request(script, 1), "Authorization"),
              MP_STR("pod token 1"));
    file = fopen(token_file, "w");
    fputs("pod token 2", file);
    fclose(file);
    pass(25 * MINUTE);
    check_key(credentials, "eks-2");
    CHECK_STR(http_record_header(http_script_request(script, 2), "Authorization"),
              MP_STR("pod token 2"));
    mp_credentials_free(credentials);
    http_script_stop(script);
}

static void container_sends_no_token_abroad(void)
{
    static const char *const bad[] = {
        "http://example.com/",      "http://169.254.170.22/", "ftp://127.0.0.1/",
        "http://127.0.0.1@evil/",   "http://127.0.0.1.evil/", "http://[::1]x/",
        "http://127.0.0.1:80@evil", "//127.0.0.1/",           "",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct mp_aws_environ environment = no_environ();
        struct mp_credentials *credentials;

        environment.container_full_uri = bad[i];
        environment.container_token = "t";
        credentials = chain(&environment);
        if (get(credentials) != MP_BAD_CONFIG || !strstr(err.text, "neither https"))
            test_fail(__FILE__, __LINE__, "%s: %s", bad[i], err.text);
        mp_credentials_free(credentials);
    }
}

static void container_answers_are_checked(void)
{
    static const struct {
        struct http_step step;
        enum mp_code code;
    } cases[] = {
        {{.body = "not json"}, MP_BAD_DATA},
        {{.body = "{}"}, MP_BAD_DATA},
        {{.body = "[1]"}, MP_BAD_DATA},
        {{.body = "{\"Code\":\"AssumeRoleUnauthorizedAccess\"}"}, MP_REFUSED},
        {{.body = JSON_OK("x", "tomorrow")}, MP_BAD_DATA},
        {{.body = JSON_OK("a b", "2023-11-14T22:23:20Z")}, MP_BAD_CONFIG},
        {{.status = 404}, MP_REFUSED},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct http_script *script = http_script_start(&cases[i].step, 1, NULL, NULL);
        struct mp_aws_environ environment = no_environ();
        struct mp_credentials *credentials;

        environment.container_relative_uri = "/";
        environment.container_host = http_script_url(script);
        credentials = chain(&environment);
        CHECK_INT(get(credentials), cases[i].code);
        CHECK(!strstr(err.text, "json-secret"));
        mp_credentials_free(credentials);
        http_script_stop(script);
    }
}

static void instance_uses_session_tokens(void)
{
    static const struct http_step steps[] = {
        {.body = "session-1"},
        {.body = "the-role\n"},
        {.body = JSON_OK("ec2-1", "2023-11-15T04:13:20Z")},
    };
    struct http_script *script = http_script_start(steps, 3, NULL, NULL);
    struct mp_aws_environ environment = no_environ();
    struct mp_credentials *credentials;
    char endpoint[64];

    snprintf(endpoint, sizeof(endpoint), "%s/", http_script_url(script));
    environment.metadata_disabled = "false";
    environment.metadata_endpoint = endpoint;
    credentials = chain(&environment);
    check_key(credentials, "ec2-1");
    CHECK_STR(http_script_request(script, 0)->method, MP_STR("PUT"));
    CHECK_STR(http_script_request(script, 0)->target, MP_STR("/latest/api/token"));
    CHECK_STR(
        http_record_header(http_script_request(script, 0), "X-aws-ec2-metadata-token-ttl-seconds"),
        MP_STR("21600"));
    CHECK_STR(http_script_request(script, 1)->target,
              MP_STR("/latest/meta-data/iam/security-credentials/"));
    CHECK_STR(http_script_request(script, 2)->method, MP_STR("GET"));
    CHECK_STR(http_script_request(script, 2)->target,
              MP_STR("/latest/meta-data/iam/security-credentials/the-role"));
    CHECK_STR(http_record_header(http_script_request(script, 2), "X-aws-ec2-metadata-token"),
              MP_STR("session-1"));
    mp_credentials_free(credentials);
    http_script_stop(script);
}

/* A role's name has 64 characters at most, which is also what the answer's buffer begins with. */
static void instance_asks_for_roles_of_every_length(void)
{
    for (int size = 1; size <= 64; size++) {
        char role[65], target[160];
        const struct http_step steps[] = {
            {.body = "session-1"},
            {.body = role},
            {.body = JSON_OK("ec2-1", "2023-11-15T04:13:20Z")},
        };
        struct mp_aws_environ environment = no_environ();
        struct http_script *script;
        struct mp_credentials *credentials;

        snprintf(role, sizeof(role), "%.*s", size,
                 "stack-name-MillpondInstanceRole-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        snprintf(target, sizeof(target), "/latest/meta-data/iam/security-credentials/%s", role);
        script = http_script_start(steps, 3, NULL, NULL);
        environment.metadata_disabled = NULL;
        environment.metadata_endpoint = http_script_url(script);
        credentials = chain(&environment);
        check_key(credentials, "ec2-1");
        CHECK_STR(http_script_request(script, 2)->target, mp_str_c(target));
        mp_credentials_free(credentials);
        http_script_stop(script);
    }
}

static void instance_without_role_is_refused(void)
{
    static const struct http_step steps[] = {{.body = "session-1"}, {.status = 404}};
    struct http_script *script = http_script_start(steps, 2, NULL, NULL);
    struct mp_aws_environ environment = no_environ();
    struct mp_credentials *credentials;

    environment.metadata_disabled = NULL;
    environment.metadata_endpoint = http_script_url(script);
    credentials = chain(&environment);
    CHECK_INT(get(credentials), MP_REFUSED);
    CHECK_STR(mp_str_c(err.text), MP_STR("credentials from instance: answered 404"));
    mp_credentials_free(credentials);
    http_script_stop(script);
}

static void instance_that_is_silent_costs_little_time(void)
{
    static const struct http_step steps[] = {
        {.fault = HTTP_STALL}, {.fault = HTTP_STALL}, {.fault = HTTP_STALL}};
    struct http_script *script = http_script_start(steps, 3, NULL, NULL);
    struct mp_aws_environ environment = no_environ();
    struct mp_env real = mp_env_real();
    struct mp_credentials *credentials;
    uint64_t begin_us = mp_now_mono_us(&real);

    environment.metadata_disabled = NULL;
    environment.metadata_endpoint = http_script_url(script);
    environment.metadata_ms_max = 0;
    credentials = chain(&environment);
    CHECK_INT(get(credentials), MP_TIMEOUT);
    CHECK(strstr(err.text, "no other source is named"));
    CHECK_INT(get(credentials), MP_TIMEOUT); /* answered from memory */
    CHECK(http_script_count(script) <= 3);
    CHECK(mp_now_mono_us(&real) - begin_us < 60 * 1000000); /* of 6 s */
    mp_credentials_free(credentials);
    http_script_stop(script);
}

/* --- the rest ------------------------------------------------------------------------------- */

static void times_are_read(void)
{
    static const struct {
        const char *text;
        int64_t wall_s; /* -1: it is none */
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2023-11-14T22:13:20Z", 1700000000},
        {"2023-11-14T22:13:20.999Z", 1700000000},
        {"2024-02-29T00:00:00Z", 1709164800},
        {"2023-11-14T22:13:20", -1},
        {"2023-11-14 22:13:20Z", -1},
        {"2023-11-14T22:13:20+00:00", -1},
        {"", -1},
        {"x", -1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int64_t wall_us = -1000000;

        CHECK_INT(mp_aws_time(cases[i].text, &wall_us), cases[i].wall_s >= 0);
        CHECK_INT(wall_us, cases[i].wall_s * 1000000);
    }
}

static void *get_many(void *self)
{
    struct mp_aws_keys own;

    for (unsigned i = 0; i < 200; i++) {
        if (mp_credentials_get(self, 0, &own, NULL) || strncmp(own.access_key, "ecs-", 4) != 0)
            return self;
        if (i % 50 == 0)
            mp_credentials_renew(self, own.generation);
    }
    return NULL;
}

static void answer_keys(void *self, const struct http_record *request, struct http_answer *ret)
{
    (void)self, (void)request;
    mp_buf_add_c(&ret->body, JSON_OK("ecs-n", "2123-11-14T22:23:20Z"));
}

static void credentials_may_be_used_from_any_thread(void)
{
    struct http_script *script = http_script_start(NULL, 0, answer_keys, NULL);
    struct mp_aws_environ environment = no_environ();
    struct mp_env real = mp_env_real();
    struct mp_credentials *credentials;
    pthread_t threads[4];
    void *result;

    environment.container_relative_uri = "/";
    environment.container_host = http_script_url(script);
    credentials = mp_credentials_chain(&environment, MP_STR("r"), &real);
    for (unsigned i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, get_many, credentials);
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(threads[i], &result);
        CHECK(!result);
    }
    mp_credentials_free(credentials);
    http_script_stop(script);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(credentials_take_the_first_source_named),
        TEST(credentials_none_says_what_was_looked_for),
        TEST(credentials_given_are_kept),
        TEST(credentials_environment),
        TEST(credentials_read_the_environment),
        TEST(web_identity_asks_sts),
        TEST(sixty_second_keys_are_replaced_at_half_life),
        TEST(hour_keys_are_replaced_five_minutes_early),
        TEST(skew_counts_for_the_end_of_keys),
        TEST(old_keys_serve_while_sts_is_down),
        TEST(sts_refusals_are_told),
        TEST(token_file_faults_are_told),
        TEST(renewing_fetches_once_per_generation),
        TEST(profile_reads_both_files),
        TEST(profile_is_looked_for_at_home),
        TEST(profile_faults_are_told),
        TEST(profile_may_name_a_web_identity),
        TEST(container_by_relative_uri),
        TEST(container_by_full_uri_and_token_file),
        TEST(container_sends_no_token_abroad),
        TEST(container_answers_are_checked),
        TEST(instance_uses_session_tokens),
        TEST(instance_asks_for_roles_of_every_length),
        TEST(instance_without_role_is_refused),
        TEST(instance_that_is_silent_costs_little_time),
        TEST(times_are_read),
        TEST(credentials_may_be_used_from_any_thread),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
