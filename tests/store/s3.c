/* The S3 driver against a server that does as it is told, with a stepped clock: what is sent, what
 * is sent again and when, and what is told in the end. */
#include "harness/http_script.h"
#include "harness/test.h"

#include "s3_fake.h"

#include "base/mem.h"
#include "store/s3.h"

#include <pthread.h>
#include <stdio.h>

#define SECRET "the-secret-key"

enum { SLEEPS_MAX = 256 };

/* A stepped clock that remembers its steps. */
static struct {
    struct mp_env_fake fake;
    struct mp_env inner;
    uint64_t sleeps[SLEEPS_MAX];
    uint32_t count;
} steps;
static struct mp_env env;
static struct mp_err err;

static void sleep_step(void *self, uint64_t us)
{
    if (steps.count < SLEEPS_MAX)
        steps.sleeps[steps.count++] = us;
    steps.inner.sleep_us(self, us);
}

static void reset_env(void)
{
    steps.fake = (struct mp_env_fake){.wall_us = 1700000000 * 1000000LL, .seed = 42};
    steps.inner = mp_env_fake(&steps.fake);
    steps.count = 0;
    env = steps.inner;
    env.sleep_us = sleep_step;
}

static struct mp_store_s3_options options_of(struct http_script *script)
{
    return (struct mp_store_s3_options){
        .endpoint = mp_str_c(script ? http_script_url(script) : ""),
        .region = MP_STR("us-east-1"),
        .access_key = MP_STR("the-access-key"),
        .secret_key = MP_STR(SECRET),
        .request_ms_max = 60000,
    };
}

static struct mp_store *open_with(const char *url, const struct mp_store_s3_options *options,
                                  const struct mp_aws_environ *environment)
{
    static const struct mp_aws_environ nothing = {.metadata_disabled = "true"};
    struct mp_store *store = NULL;

    CHECK_OK(mp_store_s3_open(mp_str_c(url), options, environment ? environment : &nothing, &env,
                              &err, &store),
             err);
    return store;
}

static struct mp_store *open_on(struct http_script *script)
{
    struct mp_store_s3_options options = options_of(script);

    reset_env();
    return open_with("s3://bucket/pre/fix", &options, NULL);
}

static enum mp_code put_text(struct mp_store *store, const char *key, const char *text)
{
    struct mp_str piece = mp_str_c(text);
    struct mp_store_object object = {mp_str_c(key), &piece, 1, piece.size};
    bool done = true;
    enum mp_code code = store->driver->put(store, &object, 1, &done, &err);

    CHECK_INT(done, code == MP_OK);
    if (code)
        CHECK(!strstr(err.text, SECRET) && !strstr(err.text, "Signature="));
    return code;
}

static const struct http_record *last_request(struct http_script *script)
{
    return http_script_request(script, http_script_count(script) - 1);
}

/* --- where a bucket is ---------------------------------------------------------------------- */

static void s3_finds_buckets(void)
{
    static const struct {
        const char *url, *endpoint, *region;
        bool use_ssl, path_style;
        const char *base, *host, *path, *prefix;
    } cases[] = {
        {"s3://bkt", "", "", true, false, "https://bkt.s3.us-east-1.amazonaws.com",
         "bkt.s3.us-east-1.amazonaws.com", "", ""},
        {"s3://bkt/", "", "eu-west-1", false, false, "https://bkt.s3.eu-west-1.amazonaws.com",
         "bkt.s3.eu-west-1.amazonaws.com", "", ""},
        {"s3://bkt/a/b", "", "cn-north-1", true, true, "https://s3.cn-north-1.amazonaws.com.cn",
         "s3.cn-north-1.amazonaws.com.cn", "/bkt", "a/b/"},
        {"s3://b.k.t//a//", "", "", true, false, "https://s3.us-east-1.amazonaws.com",
         "s3.us-east-1.amazonaws.com", "/b.k.t", "a/"},
        {"s3://b.k.t/", "store.example:9000", "", false, false, "http://b.k.t.store.example:9000",
         "b.k.t.store.example:9000", "", ""},
        {"s3://Bkt_1/", "store.example", "", true, false, "https://store.example", "store.example",
         "/Bkt_1", ""},
        {"s3://bkt/", "https://store.example:443/", "", false, true, "https://store.example",
         "store.example", "/bkt", ""},
        {"s3://bkt/", "http://store.example:80", "", true, true, "http://store.example",
         "store.example", "/bkt", ""},
        {"s3://bkt/", "http://10.0.0.1:9000", "", true, false, "http://10.0.0.1:9000",
         "10.0.0.1:9000", "/bkt", ""},
        {"s3://bkt/", "[::1]:9000", "", false, false, "http://[::1]:9000", "[::1]:9000", "/bkt",
         ""},
        {"s3://bkt/", "localhost:9000", "", true, false, "https://localhost:9000", "localhost:9000",
         "/bkt", ""},
    };

    reset_env();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct mp_store_s3_options options = options_of(NULL);
        struct mp_store *store;
        const struct mp_s3 *s3;

        options.endpoint = mp_str_c(cases[i].endpoint);
        options.region = mp_str_c(cases[i].region);
        options.use_ssl = cases[i].use_ssl;
        options.path_style = cases[i].path_style;
        store = open_with(cases[i].url, &options, NULL);
        s3 = (const struct mp_s3 *)store;
        CHECK_STR(s3->base, mp_str_c(cases[i].base));
        CHECK_STR(s3->host, mp_str_c(cases[i].host));
        CHECK_STR(s3->path, mp_str_c(cases[i].path));
        CHECK_STR(s3->prefix, mp_str_c(cases[i].prefix));
        mp_store_close(store);
    }
}

static void s3_refuses_bad_settings(void)
{
    static const struct {
        const char *url, *endpoint, *access_key, *secret_key, *text, *region;
    } cases[] = {
        {"s3://", "", "a", "s", "s3://bucket/"},
        {"s3://ab", "", "a", "s", "s3://bucket/"},
        {"s3://b kt/", "", "a", "s", "s3://bucket/"},
        {"s3://bkt/", "http://", "a", "s", "has no host"},
        {"s3://bkt/", "host/path", "a", "s", "is not host:port"},
        {"s3://bkt/", "user:secret@host", "a", "s", "endpoint @host is not host:port"},
        {"s3://bkt/", "", "a", "s", "region eu west", "eu west"},
        {"s3://bkt/", "", "a", "", "access key is given and secret key is not"},
        {"s3://bkt/", "", "", "s", "secret key is given and access key is not"},
        {"s3://bkt/", "", "a\r", "s", "access key has the byte 0x0d"},
    };
    struct mp_aws_environ environment = {.metadata_disabled = "true"};

    reset_env();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct mp_store_s3_options options = {
            .endpoint = mp_str_c(cases[i].endpoint),
            .access_key = mp_str_c(cases[i].access_key),
            .secret_key = mp_str_c(cases[i].secret_key),
            .region = mp_str_c(cases[i].region ? cases[i].region : ""),
        };
        struct mp_store *store = NULL;

        CHECK_INT(
            mp_store_s3_open(mp_str_c(cases[i].url), &options, &environment, &env, &err, &store),
            MP_BAD_CONFIG);
        if (!strstr(err.text, cases[i].text))
            test_fail(__FILE__, __LINE__, "no \"%s\" in \"%s\"", cases[i].text, err.text);
        CHECK(!strstr(err.text, "secret@"));
    }
}

static void s3_takes_the_region_of_the_environment(void)
{
    struct mp_store_s3_options options = options_of(NULL);
    struct mp_aws_environ environment = {.region = "ap-south-1", .metadata_disabled = "true"};
    struct mp_store *store;

    reset_env();
    options.region = MP_STR("");
    store = open_with("s3://bkt/", &options, &environment);
    CHECK_STR(((struct mp_s3 *)store)->host, MP_STR("bkt.s3.ap-south-1.amazonaws.com"));
    mp_store_close(store);
}

/* --- what is sent --------------------------------------------------------------------------- */

static void s3_puts_small_objects_in_one_request(void)
{
    struct http_script *script = http_script_start(NULL, 0, NULL, NULL);
    struct mp_store *store = open_on(script);
    const struct http_record *request;
    char host[64];

    CHECK_OK(put_text(store, "d=1/a b+%\xc3\xbc", "hello"), err);
    CHECK_INT(http_script_count(script), 1);
    request = last_request(script);
    CHECK_STR(request->method, MP_STR("PUT"));
    CHECK_STR(request->target, MP_STR("/bucket/pre/fix/d%3D1/a%20b%2B%25%C3%BC"));
    CHECK_STR(request->body, MP_STR("hello"));
    snprintf(host, sizeof(host), "127.0.0.1:%u", http_script_port(script));
    CHECK_STR(http_record_header(request, "host"), mp_str_c(host));
    CHECK_STR(http_record_header(request, "x-amz-date"), MP_STR("20231114T221320Z"));
    CHECK_STR(http_record_header(request, "x-amz-content-sha256"),
              MP_STR("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"));
    CHECK(mp_str_starts(http_record_header(request, "authorization"),
                        MP_STR("AWS4-HMAC-SHA256 Credential=the-access-key/20231114/us-east-1/s3/"
                               "aws4_request,SignedHeaders=host;x-amz-content-sha256;x-amz-date,"
                               "Signature=")));
    CHECK(!http_record_header(request, "x-amz-security-token").data);
    CHECK_OK(put_text(store, "empty", ""), err);
    CHECK_STR(http_record_header(last_request(script), "content-length"), MP_STR("0"));
    CHECK_INT(steps.count, 0);
    mp_store_close(store);
    http_script_stop(script);
}

static void s3_sends_the_session_token_signed(void)
{
    struct http_script *script = http_script_start(NULL, 0, NULL, NULL);
    struct mp_store_s3_options options = options_of(script);
    struct mp_store *store;
    struct mp_str authorization;

    reset_env();
    options.session_token = MP_STR("to/ken+=");
    store = open_with("s3://bucket/", &options, NULL);
    CHECK_OK(put_text(store, "a", "x"), err);
    CHECK_STR(http_record_header(last_request(script), "x-amz-security-token"), MP_STR("to/ken+="));
    authorization = http_record_header(last_request(script), "authorization");
    CHECK(memmem(authorization.data, authorization.size, "x-amz-date;x-amz-security-token,", 32));
    mp_store_close(store);
    http_script_stop(script);
}

static void s3_gets_ranges(void)
{
    static const struct {
        const char *key;
        int64_t offset;
        size_t size;
        const char *range, *bytes;
    } cases[] = {
        {"a", 0, 5, "bytes=0-4", "01234"},        {"a", 3, 5, "bytes=3-7", "34567"},
        {"a", 8, 5, "bytes=8-12", "89"},          {"a", -1, 3, "bytes=-3", "789"},
        {"a", -1, 99, "bytes=-99", "0123456789"}, {"a", 10, 5, "bytes=10-14", ""},
        {"empty", 0, 5, "bytes=0-4", ""},         {"empty", -1, 5, "bytes=-5", ""},
    };
    struct s3_fake fake = {0};
    struct http_script *script = http_script_start(NULL, 0, s3_fake_answer, &fake);
    struct mp_store *store = open_on(script);
    char memory[128];
    size_t have = 0;

    CHECK_OK(put_text(store, "a", "0123456789"), err);
    CHECK_OK(put_text(store, "empty", ""), err);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        have = 99;
        CHECK_OK(store->driver->get(store, mp_str_c(cases[i].key), cases[i].offset, cases[i].size,
                                    memory, &have, &err),
                 err);
        CHECK_STR(mp_str_n(memory, have), mp_str_c(cases[i].bytes));
        CHECK_STR(http_record_header(last_request(script), "range"), mp_str_c(cases[i].range));
    }
    CHECK_OK(store->driver->get(store, MP_STR("a"), 0, 0, memory, &have, &err), err);
    CHECK_INT(have, 0);
    CHECK_STR(last_request(script)->method, MP_STR("HEAD"));
    CHECK_INT(store->driver->get(store, MP_STR("none"), 0, 5, memory, &have, &err), MP_NOT_FOUND);
    CHECK_STR(mp_str_c(err.text), MP_STR("GET s3://bucket/pre/fix/none: answered 404 NoSuchKey: as "
                                         "asked"));
    CHECK_INT(store->driver->get(store, MP_STR("none"), 0, 0, memory, &have, &err), MP_NOT_FOUND);
    CHECK_OK(store->driver->remove(store, MP_STR("a"), &err), err);
    CHECK_OK(store->driver->remove(store, MP_STR("a"), &err), err);
    CHECK_INT(store->driver->get(store, MP_STR("a"), 0, 5, memory, &have, &err), MP_NOT_FOUND);
    mp_store_close(store);
    http_script_stop(script);
    s3_fake_fini(&fake);
}

static void s3_get_minds_a_server_without_ranges(void)
{
    static const struct http_step answers[] = {
        {.body = "01234"}, {.body = "01234"}, {.body = "0123456789"}};
    struct http_script *script = http_script_start(answers, 3, NULL, NULL);
    struct mp_store *store = open_on(script);
    char memory[8];
    size_t have = 0;

    CHECK_OK(store->driver->get(store, MP_STR("a"), 0, 8, memory, &have, &err), err);
    CHECK_INT(have, 5);
    CHECK_INT(store->driver->get(store, MP_STR("a"), 2, 8, memory, &have, &err), MP_BAD_DATA);
    CHECK(strstr(err.text, "answered 200 to a range"));
    CHECK_INT(store->driver->get(store, MP_STR("a"), 0, 8, memory, &have, &err), MP_BAD_DATA);
    mp_store_close(store);
    http_script_stop(script);
}

struct seen {
    char text[1024];
    unsigned count, stop_after;
};

static bool see(void *self, const struct mp_store_entry *entry)
{
    struct seen *seen = self;

    snprintf(seen->text + strlen(seen->text), sizeof(seen->text) - strlen(seen->text),
             "%.*s:%" PRIu64 "\n", MP_STR_ARG(entry->key), entry->bytes);
    return ++seen->count != seen->stop_after;
}

#define PAGE(rest)                                                                                 \
    "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"u\"><Name>bucket</Name>" rest                \
    "</ListBucketResult>"
#define ENTRY(key, size)                                                                           \
    "<Contents><Key>" key "</Key><Owner><ID>1</ID></Owner><Size>" size "</Size></Contents>"

static void s3_lists_pages(void)
{
    static const struct http_step answers[] = {
        {.body = PAGE("<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>" ENTRY(
             "pre/fix/d%3D1/a+b%2B", "5") ENTRY("pre/fix/d%3D1/folder/", "0")
                          ENTRY("pre/fix/d%3D1/%C3%BC%25",
                                "18446744073709551615") "<NextContinuationToken>t/+=&amp;1</"
                                                        "NextContinuationToken>")},
        {.body = PAGE("<IsTruncated>false</IsTruncated>" ENTRY("pre/fix/d=2/a+b%2B&amp;", "7"))},
    };
    struct http_script *script = http_script_start(answers, 2, NULL, NULL);
    struct mp_store *store = open_on(script);
    struct seen seen = {.stop_after = 0};

    CHECK_OK(store->driver->list(store, MP_STR("d="), see, &seen, &err), err);
    CHECK_STR(mp_str_c(seen.text), MP_STR("d=1/a b+:5\nd=1/\xc3\xbc%:18446744073709551615\n"
                                          "d=2/a+b%2B&:7\n"));
    CHECK_STR(http_script_request(script, 0)->target,
              MP_STR("/bucket/?encoding-type=url&list-type=2&prefix=pre%2Ffix%2Fd%3D"));
    CHECK_STR(http_script_request(script, 1)->target,
              MP_STR("/bucket/?continuation-token=t%2F%2B%3D%261&encoding-type=url&list-type=2&"
                     "prefix=pre%2Ffix%2Fd%3D"));
    mp_store_close(store);
    http_script_stop(script);
}

static void s3_list_ends_when_told(void)
{
    static const struct http_step answers[] = {
        {.body =
             PAGE("<IsTruncated>true</IsTruncated>" ENTRY("pre/fix/a", "1") ENTRY("pre/fix/b", "1")
                      ENTRY("pre/fix/c", "1") "<NextContinuationToken>t</NextContinuationToken>")},
    };
    struct http_script *script = http_script_start(answers, 1, NULL, NULL);
    struct mp_store *store = open_on(script);
    struct seen seen = {.stop_after = 2};

    CHECK_OK(store->driver->list(store, MP_STR(""), see, &seen, &err), err);
    CHECK_STR(mp_str_c(seen.text), MP_STR("a:1\nb:1\n"));
    CHECK_INT(http_script_count(script), 1);
    mp_store_close(store);
    http_script_stop(script);
}

static void s3_list_refuses_odd_answers(void)
{
    static const struct {
        struct http_step answers[2];
        const char *text;
    } cases[] = {
        {{{.body = PAGE(ENTRY("elsewhere/a", "1"))}}, "a key that cannot be read"},
        {{{.body = PAGE("<EncodingType>url</EncodingType>" ENTRY("pre/fix/%4", "1"))}},
         "a key that cannot be read"},
        {{{.body = PAGE("<Contents><Key>pre/fix/a</Key")}}, "xml: "},
        {{{.body = PAGE("<IsTruncated>true</IsTruncated><NextContinuationToken>t"
                        "</NextContinuationToken>")},
          {.body = PAGE("<IsTruncated>true</IsTruncated><NextContinuationToken>t"
                        "</NextContinuationToken>")}},
         "is that of this one"},
        {{{.status = 404, .body = "<Error><Code>NoSuchBucket</Code></Error>"}}, "404 NoSuchBucket"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct http_script *script = http_script_start(cases[i].answers, 2, NULL, NULL);
        struct mp_store *store = open_on(script);
        struct seen seen = {.stop_after = 0};
        enum mp_code code = store->driver->list(store, MP_STR(""), see, &seen, &err);

        CHECK(code == MP_BAD_DATA || code == MP_REFUSED);
        if (!strstr(err.text, cases[i].text))
            test_fail(__FILE__, __LINE__, "no \"%s\" in \"%s\"", cases[i].text, err.text);
        mp_store_close(store);
        http_script_stop(script);
    }
}

/* --- what is sent again, and when ----------------------------------------------------------- */

static void s3_waits_as_retry_after_says(void)
{
    static const struct http_step answers[] = {
        {.status = 503, .headers = "Retry-After: 7\r\n"},
        {.status = 429, .headers = "Retry-After: 3600\r\n"},
        {.status = 503, .headers = "Retry-After: Tue, 14 Nov 2023 22:14:17 GMT\r\n"},
        {.status = 200},
    };
    struct http_script *script = http_script_start(answers, 4, NULL, NULL);
    struct mp_store *store = open_on(script);

    CHECK_OK(put_text(store, "a", "x"), err);
    CHECK_INT(http_script_count(script), 4);
    CHECK_INT(steps.count, 3);
    CHECK_INT(steps.sleeps[0], 7000000);
    CHECK_INT(steps.sleeps[1], 30000000); /* capped */
    CHECK_INT(steps.sleeps[2], 20000000); /* 22:13:57 on our clock by then */
    mp_store_close(store);
    http_script_stop(script);
}

static void s3_tries_again_what_may_pass(void)
{
#define ERROR(code)                                                                                \
    "<?xml version=\"1.0\"?><Error><Code>" code "</Code><Message>m</Message></Error>"
    static const struct http_step cases[] = {
        {.status = 500},
        {.status = 502, .body = "<html>bad gateway</html>"},
        {.status = 503, .body = ERROR("SlowDown")},
        {.status = 504},
        {.status = 507},
        {.status = 520, .body = "error code: 520"}, /* a gateway without its store */
        {.status = 408},
        {.status = 429},
        {.status = 400, .body = ERROR("RequestTimeout")},
        {.status = 400, .body = ERROR("SlowDown")},
        {.status = 409, .body = ERROR("OperationAborted")},
        {.status = 400, .body = ERROR("BadDigest")},
        {.status = 500, .body = ERROR("InternalError")},
        {.fault = HTTP_CUT_BEFORE},
        {.fault = HTTP_CUT_HEAD},
        {.body = "12", .fault = HTTP_CUT_BODY},
        {.fault = HTTP_RESET},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct http_script *script = http_script_start(&cases[i], 1, NULL, NULL);
        struct mp_store *store = open_on(script);

        CHECK_OK(put_text(store, "a", "x"), err);
        CHECK_INT(http_script_count(script), 2);
        CHECK_STR(last_request(script)->body, MP_STR("x"));
        CHECK_INT(steps.count, 1);
        CHECK(steps.sleeps[0] <= 100000);
        mp_store_close(store);
        http_script_stop(script);
    }
}

static void answer_503(void *self, const struct http_record *request, struct http_answer *ret)
{
    (void)self, (void)request;
    ret->status = 503;
    mp_buf_add_c(&ret->headers, "Retry-After: 1\r\n");
    mp_buf_add_c(&ret->body, ERROR("SlowDown"));
}

static void answer_500(void *self, const struct http_record *request, struct http_answer *ret)
{
    (void)self, (void)request;
    ret->status = 500;
}

static void s3_gives_up_after_so_many_attempts(void)
{
    struct http_script *script = http_script_start(NULL, 0, answer_503, NULL);
    struct mp_store_s3_options options = options_of(script);
    struct mp_store *store;

    reset_env();
    options.attempts_max = 4;
    store = open_with("s3://bucket/", &options, NULL);
    CHECK_INT(put_text(store, "a", "x"), MP_IO);
    CHECK_INT(http_script_count(script), 4);
    CHECK_INT(steps.count, 3);
    CHECK(err.retriable);
    CHECK_INT(err.sys, 503);
    CHECK_INT(err.wait_ms, 1000);
    CHECK_STR(mp_str_c(err.text),
              MP_STR("PUT s3://bucket/a: answered 503 SlowDown: m (attempt 4 of 4)"));
    mp_store_close(store);
    http_script_stop(script);
}

static void s3_backs_off_with_full_jitter(void)
{
    struct http_script *script = http_script_start(NULL, 0, answer_500, NULL);
    struct mp_store_s3_options options = options_of(script);
    struct mp_store *store;
    uint64_t least = UINT64_MAX, most = 0;

    reset_env();
    options.attempts_max = 60;
    store = open_with("s3://bucket/", &options, NULL);
    CHECK_INT(put_text(store, "a", "x"), MP_IO);
    CHECK_INT(steps.count, 59);
    for (unsigned i = 0; i < 59; i++) {
        uint64_t limit = i < 6 ? 100000ull << i : 5000000;

        CHECK(steps.sleeps[i] <= (limit < 5000000 ? limit : 5000000));
        if (i >= 6) {
            least = steps.sleeps[i] < least ? steps.sleeps[i] : least;
            most = steps.sleeps[i] > most ? steps.sleeps[i] : most;
        }
    }
    CHECK(least < 1000000 && most > 4000000); /* all of the range is used */
    mp_store_close(store);
    http_script_stop(script);
}

static void s3_tells_refusals_at_once(void)
{
    static const struct {
        struct http_step step;
        const char *text;
    } cases[] = {
        {{.status = 403, .body = ERROR("AccessDenied")},
         "PUT s3://bucket/pre/fix/a: answered 403 AccessDenied: m"},
        {{.status = 403, .body = ERROR("SignatureDoesNotMatch")},
         "PUT s3://bucket/pre/fix/a: answered 403 SignatureDoesNotMatch: m"},
        {{.status = 404, .body = ERROR("NoSuchBucket")},
         "PUT s3://bucket/pre/fix/a: answered 404 NoSuchBucket: m"},
        {{.status = 400}, "PUT s3://bucket/pre/fix/a: answered 400"},
        {{.status = 501, .body = ERROR("NotImplemented")},
         "PUT s3://bucket/pre/fix/a: answered 501 NotImplemented: m"},
        {{.status = 403, .body = "<Error><Code>A\nB</Code><Message>\xc3\xbc</Message></Error>"},
         "PUT s3://bucket/pre/fix/a: answered 403 A?B: ??"},
        {{.status = 301,
          .headers = "x-amz-bucket-region: eu-west-3\r\n",
          .body = ERROR("PermanentRedirect")},
         "PUT s3://bucket/pre/fix/a: the bucket is in region eu-west-3, not us-east-1: answered "
         "301 "
         "PermanentRedirect: m"},
        {{.status = 403, .body = ERROR("ExpiredToken")}, /* of keys that were given */
         "PUT s3://bucket/pre/fix/a: answered 403 ExpiredToken: m"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct http_script *script = http_script_start(&cases[i].step, 1, NULL, NULL);
        struct mp_store *store = open_on(script);

        CHECK_INT(put_text(store, "a", "x"), MP_REFUSED);
        CHECK(!err.retriable);
        CHECK_INT(err.sys, cases[i].step.status);
        CHECK_STR(mp_str_c(err.text), mp_str_c(cases[i].text));
        CHECK_INT(http_script_count(script), 1);
        mp_store_close(store);
        http_script_stop(script);
    }
}

/* A server that refuses by the header lines alone and closes: the answer may be lost in the reset
 * that the unread body causes. The second attempt asks before it sends ("Expect"), so the refusal
 * is heard, and told, as one. */
static void s3_hears_a_refusal_before_the_body(void)
{
    enum { SIZE = 8 << 20 };
    static char bytes[SIZE];
    static const struct http_step answers[] = {
        {.fault = HTTP_RESET, .early = true},
        {.status = 403, .body = ERROR("AccessDenied"), .early = true},
    };
    struct http_script *script = http_script_start(answers, 2, NULL, NULL);
    struct mp_store *store = open_on(script);
    struct mp_str piece = mp_str_n(bytes, SIZE);
    struct mp_store_object object = {MP_STR("a"), &piece, 1, SIZE};
    bool done = true;

    CHECK_INT(store->driver->put(store, &object, 1, &done, &err), MP_REFUSED);
    CHECK(!done);
    CHECK(strstr(err.text, "403 AccessDenied"));
    CHECK(!http_record_header(http_script_request(script, 0), "expect").data);
    CHECK_STR(http_record_header(http_script_request(script, 1), "expect"), MP_STR("100-continue"));
    mp_store_close(store);
    http_script_stop(script);
}

static void answer_gets_alone(void *self, const struct http_record *request,
                              struct http_answer *ret)
{
    (void)self;
    mp_buf_add_c(&ret->body, "0123");
    if (mp_str_eq(request->method, MP_STR("PUT")))
        ret->fault = HTTP_STALL;
}

/* Attempts enough for a get whose time is over now and then before its answer is there. */
static void s3_bounds_a_stalled_request(void)
{
    static const struct http_step answers[] = {{.fault = HTTP_STALL},
                                               {.body = "0123", .fault = HTTP_STALL_BODY}};
    struct http_script *script = http_script_start(answers, 2, answer_gets_alone, NULL);
    struct mp_store_s3_options options = options_of(script);
    struct mp_store *store;
    char memory[4];
    size_t have = 0;

    reset_env();
    options.request_ms_max = 200;
    options.attempts_max = 20;
    store = open_with("s3://bucket/", &options, NULL);
    CHECK_OK(store->driver->get(store, MP_STR("a"), 0, 4, memory, &have, &err), err);
    CHECK_STR(mp_str_n(memory, have), MP_STR("0123"));
    CHECK(http_script_count(script) >= 3);
    mp_store_close(store);
    options.attempts_max = 3;
    store = open_with("s3://bucket/", &options, NULL);
    CHECK_INT(put_text(store, "a", "x"), MP_TIMEOUT);
    CHECK(err.retriable);
    CHECK(strstr(err.text, "(attempt 3 of 3)"));
    mp_store_close(store);
    http_script_stop(script);
}

static void s3_learns_the_servers_time(void)
{
    static const struct http_step answers[] = {
        {.status = 403,
         .headers = "Date: Tue, 14 Nov 2023 22:33:20 GMT\r\n",
         .body = ERROR("RequestTimeTooSkewed")},
    };
    struct http_script *script = http_script_start(answers, 1, NULL, NULL);
    struct mp_store *store = open_on(script);

    CHECK_OK(put_text(store, "a", "x"), err);
    CHECK_INT(http_script_count(script), 2);
    CHECK_INT(steps.count, 0); /* at once */
    CHECK_STR(http_record_header(http_script_request(script, 0), "x-amz-date"),
              MP_STR("20231114T221320Z"));
    CHECK_STR(http_record_header(http_script_request(script, 1), "x-amz-date"),
              MP_STR("20231114T223320Z"));
    CHECK_OK(put_text(store, "b", "x"), err); /* and it is remembered */
    CHECK_STR(http_record_header(last_request(script), "x-amz-date"), MP_STR("20231114T223320Z"));
    mp_store_close(store);
    http_script_stop(script);
}

static void s3_corrects_time_once(void)
{
    static const struct http_step answers[] = {
        {.status = 403,
         .headers = "Date: Tue, 14 Nov 2023 22:33:20 GMT\r\n",
         .body = ERROR("RequestTimeTooSkewed")},
        {.status = 403,
         .headers = "Date: Tue, 14 Nov 2023 22:33:20 GMT\r\n",
         .body = ERROR("RequestTimeTooSkewed")},
        {.status = 403, .body = ERROR("RequestTimeTooSkewed")}, /* without a date */
    };
    struct http_script *script = http_script_start(answers, 3, NULL, NULL);
    struct mp_store *store = open_on(script);

    CHECK_INT(put_text(store, "a", "x"), MP_REFUSED);
    CHECK_INT(http_script_count(script), 2);
    CHECK_INT(put_text(store, "a", "x"), MP_REFUSED);
    CHECK_INT(http_script_count(script), 3);
    mp_store_close(store);
    http_script_stop(script);
}

#define KEYS(access_key)                                                                           \
    "{\"AccessKeyId\":\"" access_key "\",\"SecretAccessKey\":\"s\",\"Token\":\"t-" access_key      \
    "\",\"Expiration\":\"2023-11-15T22:13:20Z\"}"

static void s3_renews_expired_keys_once(void)
{
    static const char *const codes[] = {"ExpiredToken", "InvalidToken"};

    for (size_t i = 0; i < 2; i++) {
        char body[128];
        struct http_step answers[] = {{.body = KEYS("one")},         {.status = 400, .body = body},
                                      {.body = KEYS("two")},         {.status = 200},
                                      {.status = 400, .body = body}, {.body = KEYS("three")},
                                      {.status = 400, .body = body}};
        struct http_script *script = http_script_start(answers, 7, NULL, NULL);
        struct mp_store_s3_options options = options_of(script);
        struct mp_aws_environ environment = {.container_relative_uri = "/keys",
                                             .container_host = http_script_url(script)};
        struct mp_store *store;

        snprintf(body, sizeof(body), "<Error><Code>%s</Code></Error>", codes[i]);
        reset_env();
        options.access_key = options.secret_key = MP_STR("");
        store = open_with("s3://bucket/", &options, &environment);
        CHECK_INT(http_script_count(script), 0); /* nothing is asked before the first call */
        CHECK_OK(put_text(store, "a", "x"), err);
        CHECK_INT(http_script_count(script), 4);
        CHECK_STR(http_record_header(http_script_request(script, 1), "x-amz-security-token"),
                  MP_STR("t-one"));
        CHECK_STR(http_record_header(http_script_request(script, 3), "x-amz-security-token"),
                  MP_STR("t-two"));
        CHECK_INT(put_text(store, "b", "x"), MP_REFUSED);
        CHECK_INT(http_script_count(script), 7);
        mp_store_close(store);
        http_script_stop(script);
    }
}

static void s3_without_credentials_sends_nothing(void)
{
    struct http_script *script = http_script_start(NULL, 0, NULL, NULL);
    struct mp_store_s3_options options = options_of(script);
    struct mp_str piece = MP_STR("x");
    struct mp_store_object objects[40];
    bool done[40];
    struct mp_store *store;

    reset_env();
    options.access_key = options.secret_key = MP_STR("");
    store = open_with("s3://bucket/", &options, NULL);
    for (unsigned i = 0; i < 40; i++)
        objects[i] = (struct mp_store_object){MP_STR("a"), &piece, 1, 1};
    CHECK_INT(store->driver->put(store, objects, 40, done, &err), MP_BAD_CONFIG);
    CHECK(strstr(err.text, "PUT s3://bucket/a: credentials from none: nothing names any"));
    for (unsigned i = 0; i < 40; i++)
        CHECK(!done[i]);
    CHECK_INT(http_script_count(script), 0);
    mp_store_close(store);
    http_script_stop(script);
}

static void s3_refuses_bad_keys(void)
{
    struct http_script *script = http_script_start(NULL, 0, NULL, NULL);
    struct mp_store *store = open_on(script);
    char key[1100], memory[1];
    size_t have;

    memset(key, 'k', sizeof(key));
    key[1024 - 8] = 0; /* the prefix has 8 */
    CHECK_OK(put_text(store, key, "x"), err);
    key[1024 - 8] = 'k';
    key[1025 - 8] = 0;
    CHECK_INT(put_text(store, key, "x"), MP_BAD_DATA);
    CHECK(strstr(err.text, "has 1025 bytes, 1024 at most"));
    CHECK_INT(put_text(store, "../a", "x"), MP_BAD_DATA);
    CHECK_INT(store->driver->get(store, MP_STR("/a"), 0, 1, memory, &have, &err), MP_BAD_DATA);
    CHECK_INT(store->driver->remove(store, MP_STR("a/"), &err), MP_BAD_DATA);
    CHECK_INT(store->driver->get(store, mp_str_c(key), 0, 1, memory, &have, &err), MP_BAD_DATA);
    CHECK_INT(store->driver->remove(store, mp_str_c(key), &err), MP_BAD_DATA);
    CHECK_INT(store->driver->list(store, mp_str_c(key), see, NULL, &err), MP_BAD_DATA);
    CHECK_INT(store->driver->list(store, MP_STR("../"), see, NULL, &err), MP_BAD_DATA);
    CHECK_INT(http_script_count(script), 1);
    mp_store_close(store);
    http_script_stop(script);
}

/* --- many at once --------------------------------------------------------------------------- */

static void s3_puts_many_at_once(void)
{
    enum { COUNT = 50, AT_ONCE = 7 };
    struct s3_fake fake = {.delay_ms = 20, .fault = S3_DENIED, .fault_at = 20};
    struct http_script *script = http_script_start(NULL, 0, s3_fake_answer, &fake);
    struct mp_store_s3_options options = options_of(script);
    struct mp_store_object objects[COUNT];
    char keys[COUNT][16];
    struct mp_str pieces[COUNT];
    bool done[COUNT];
    struct mp_store *store;
    unsigned good = 0;

    reset_env();
    options.put_concurrency = AT_ONCE;
    store = open_with("s3://bucket/", &options, NULL);
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(keys[i], sizeof(keys[i]), "k/%u", i);
        pieces[i] = mp_str_c(keys[i]);
        objects[i] = (struct mp_store_object){pieces[i], &pieces[i], 1, pieces[i].size};
    }
    objects[3].key = MP_STR("bad/../key");
    CHECK_INT(store->driver->put(store, objects, COUNT, done, &err), MP_BAD_DATA); /* the first */
    CHECK_INT(http_script_count(script), COUNT - 1);
    CHECK_INT(http_script_connections(script), AT_ONCE);
    for (unsigned i = 0; i < COUNT; i++) {
        char path[64];
        struct mp_str bytes;

        snprintf(path, sizeof(path), "/bucket/k/%u", i);
        bytes = s3_fake_object(&fake, path);
        CHECK_INT(done[i], bytes.data != NULL);
        if (done[i])
            CHECK_STR(bytes, pieces[i]);
        good += done[i];
    }
    CHECK_INT(good, COUNT - 2);
    CHECK_OK(store->driver->put(store, objects, 0, done, &err), err); /* none is all of none */
    mp_store_close(store);
    http_script_stop(script);
    s3_fake_fini(&fake);
}

static void *put_some(void *self)
{
    struct mp_store *store = self;

    for (unsigned i = 0; i < 20; i++) {
        struct mp_str piece = MP_STR("bytes");
        struct mp_store_object object = {MP_STR("same"), &piece, 1, 5};
        char memory[5];
        bool done;
        size_t have;

        if (store->driver->put(store, &object, 1, &done, NULL) || !done ||
            store->driver->get(store, object.key, 0, 5, memory, &have, NULL) || have != 5)
            return self;
    }
    return NULL;
}

static void s3_may_be_used_from_any_thread(void)
{
    struct s3_fake fake = {.fault = S3_UNAVAILABLE, .fault_at = 50, .fault_times = 5};
    struct http_script *script = http_script_start(NULL, 0, s3_fake_answer, &fake);
    struct mp_store_s3_options options = options_of(script);
    struct mp_store *store;
    pthread_t threads[4];
    void *failed;

    env = mp_env_real();
    options.attempts_max = 10;
    store = open_with("s3://bucket/", &options, NULL);
    for (unsigned i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, put_some, store);
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        CHECK(!failed);
    }
    mp_store_close(store);
    http_script_stop(script);
    s3_fake_fini(&fake);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(s3_finds_buckets),
        TEST(s3_refuses_bad_settings),
        TEST(s3_takes_the_region_of_the_environment),
        TEST(s3_puts_small_objects_in_one_request),
        TEST(s3_sends_the_session_token_signed),
        TEST(s3_gets_ranges),
        TEST(s3_get_minds_a_server_without_ranges),
        TEST(s3_lists_pages),
        TEST(s3_list_ends_when_told),
        TEST(s3_list_refuses_odd_answers),
        TEST(s3_waits_as_retry_after_says),
        TEST(s3_tries_again_what_may_pass),
        TEST(s3_gives_up_after_so_many_attempts),
        TEST(s3_backs_off_with_full_jitter),
        TEST(s3_tells_refusals_at_once),
        TEST(s3_hears_a_refusal_before_the_body),
        TEST(s3_bounds_a_stalled_request),
        TEST(s3_learns_the_servers_time),
        TEST(s3_corrects_time_once),
        TEST(s3_renews_expired_keys_once),
        TEST(s3_without_credentials_sends_nothing),
        TEST(s3_refuses_bad_keys),
        TEST(s3_puts_many_at_once),
        TEST(s3_may_be_used_from_any_thread),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
