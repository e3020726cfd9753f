/* The HTTP client against a server that does as it is told: every outcome, and what is sent. */
#include "harness/http_script.h"
#include "harness/test.h"

#include "base/mem.h"
#include "net/http_client.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct mp_err err;

static struct mp_http_client *new_client(void)
{
    struct mp_http_client_options options = {.connections_max = 8};

    return mp_http_client_new(&options);
}

static const char *url_of(struct http_script *script, const char *path)
{
    static char url[512];

    snprintf(url, sizeof(url), "%s%s", http_script_url(script), path);
    return url;
}

static struct mp_http_call call_of(const char *method, const char *url)
{
    return (struct mp_http_call){
        .method = method,
        .url = url,
        .connect_ms_max = 60000, /* a name server may be slow to say no */
        .total_ms_max = 60000,
        .body = MP_BUF_INIT(1 << 16),
    };
}

/* One GET against one step. */
static struct mp_http_call get_step(const struct http_step *step, struct mp_http_call call)
{
    struct http_script *script = http_script_start(step, 1, NULL, NULL);
    struct mp_http_client *client = new_client();

    call.url = url_of(script, "/path");
    mp_http_one(client, &call);
    mp_http_client_free(client);
    http_script_stop(script);
    return call;
}

static void http_gets_status_headers_and_body(void)
{
    static const struct http_step step = {
        .status = 207,
        .headers = "X-One:  some value \r\nETag: \"abc\"\r\nEmpty:\r\n",
        .body = "hello",
    };
    struct mp_http_call call = get_step(&step, call_of("GET", NULL));

    CHECK_OK(mp_http_call_code(&call, &err), err);
    CHECK_INT(call.status, 207);
    CHECK(call.sent);
    CHECK_STR(mp_buf_str(&call.body), MP_STR("hello"));
    CHECK_STR(mp_http_call_header(&call, MP_STR("x-oNE")), MP_STR("some value"));
    CHECK_STR(mp_http_call_header(&call, MP_STR("etag")), MP_STR("\"abc\""));
    CHECK_STR(mp_http_call_header(&call, MP_STR("empty")), MP_STR(""));
    CHECK(mp_http_call_header(&call, MP_STR("x-on")).data == NULL);
    mp_http_call_fini(&call);
}

static void http_sends_what_it_was_given(void)
{
    const struct mp_http_header headers[] = {
        {MP_STR("Host"), MP_STR("bucket.example")},
        {MP_STR("X-Empty"), MP_STR("")},
        {MP_STR("Content-Type"), MP_STR("text/x-test")},
    };
    const struct mp_str pieces[] = {MP_STR("one "), MP_STR(""), MP_STR("two "), MP_STR("three")};
    static const char *const methods[] = {"PUT", "POST", "DELETE"};
    struct http_script *script = http_script_start(NULL, 0, NULL, NULL);
    struct mp_http_client *client = new_client();
    struct mp_http_call call = call_of("PUT", url_of(script, "/a%20b/../c//d?x=%2F&y"));

    call.headers = headers;
    call.header_count = 3;
    call.pieces = pieces;
    call.piece_count = 4;
    for (uint32_t i = 0; i < 3; i++) {
        const struct http_record *record;

        call.method = methods[i];
        mp_http_one(client, &call);
        CHECK_OK(mp_http_call_code(&call, &err), err);
        record = http_script_request(script, i);
        CHECK_STR(record->method, mp_str_c(methods[i]));
        CHECK_STR(record->target, MP_STR("/a%20b/../c//d?x=%2F&y"));
        CHECK_STR(record->body, MP_STR("one two three"));
        CHECK_STR(http_record_header(record, "host"), MP_STR("bucket.example"));
        CHECK_STR(http_record_header(record, "content-length"), MP_STR("13"));
        CHECK_STR(http_record_header(record, "content-type"), MP_STR("text/x-test"));
        CHECK_STR(http_record_header(record, "x-empty"), MP_STR(""));
        CHECK(http_record_header(record, "x-empty").data);
        CHECK(!http_record_header(record, "expect").data);
        CHECK(!http_record_header(record, "accept-encoding").data);
    }
    CHECK_INT(http_script_connections(script), 1); /* kept alive */
    mp_http_call_fini(&call);
    mp_http_client_free(client);
    http_script_stop(script);
}

static void http_sends_empty_bodies_with_a_length(void)
{
    static const char *const methods[] = {"PUT", "POST"};
    struct http_script *script = http_script_start(NULL, 0, NULL, NULL);
    struct mp_http_client *client = new_client();

    for (uint32_t i = 0; i < 2; i++) {
        struct mp_http_call call = call_of(methods[i], http_script_url(script));
        const struct http_record *record;

        mp_http_one(client, &call);
        CHECK_OK(mp_http_call_code(&call, &err), err);
        record = http_script_request(script, i);
        CHECK_STR(http_record_header(record, "content-length"), MP_STR("0"));
        CHECK(!http_record_header(record, "content-type").data);
        CHECK(!http_record_header(record, "transfer-encoding").data);
        mp_http_call_fini(&call);
    }
    mp_http_client_free(client);
    http_script_stop(script);
}

static void http_sends_large_bodies_from_pieces(void)
{
    enum { PIECE = 1 << 20, COUNT = 9 };
    struct http_script *script = http_script_start(NULL, 0, NULL, NULL);
    struct mp_http_client *client = new_client();
    struct mp_http_call call = call_of("PUT", url_of(script, "/large"));
    struct mp_str pieces[COUNT];
    const struct http_record *record;

    for (unsigned i = 0; i < COUNT; i++) {
        char *bytes = mp_alloc(PIECE + i);

        memset(bytes, 'a' + (int)i, PIECE + i);
        pieces[i] = mp_str_n(bytes, PIECE + i);
    }
    call.pieces = pieces;
    call.piece_count = COUNT;
    for (unsigned round = 0; round < 2; round++) {
        size_t at = 0;

        call.expect_continue = round == 1;
        mp_http_one(client, &call);
        CHECK_OK(mp_http_call_code(&call, &err), err);
        CHECK_INT(call.status, 200);
        record = http_script_request(script, round);
        CHECK_INT(http_record_header(record, "expect").data != NULL, round);
        for (unsigned i = 0; i < COUNT; at += pieces[i++].size)
            CHECK(memcmp(record->body.data + at, pieces[i].data, pieces[i].size) == 0);
        CHECK_INT(record->body.size, at);
    }
    for (unsigned i = 0; i < COUNT; i++)
        mp_free((char *)(uintptr_t)pieces[i].data);
    mp_http_call_fini(&call);
    mp_http_client_free(client);
    http_script_stop(script);
}

static void http_head_has_headers_only(void)
{
    static const struct http_step step = {.headers = "Content-Length: 12345\r\n"};
    struct mp_http_call call = get_step(&step, call_of("HEAD", NULL));

    CHECK_OK(mp_http_call_code(&call, &err), err);
    CHECK_STR(mp_http_call_header(&call, MP_STR("content-length")), MP_STR("12345"));
    CHECK_INT(call.body.size, 0);
    mp_http_call_fini(&call);
}

static void http_reads_into_memory(void)
{
    static const struct http_step good = {.status = 206, .body = "0123456789"};
    static const struct http_step bad = {.status = 404, .body = "<Error/>"};
    struct mp_http_call call = call_of("GET", NULL);
    char memory[10];

    call.memory = memory;
    call.memory_size = sizeof(memory);
    call = get_step(&good, call);
    CHECK_OK(mp_http_call_code(&call, &err), err);
    CHECK_STR(mp_str_n(memory, call.memory_used), MP_STR("0123456789"));
    CHECK_INT(call.body.size, 0);
    call = get_step(&bad, call); /* another status goes to the body */
    CHECK_OK(mp_http_call_code(&call, &err), err);
    CHECK_INT(call.memory_used, 0);
    CHECK_STR(mp_buf_str(&call.body), MP_STR("<Error/>"));
    call.memory_size = 9;
    call = get_step(&good, call);
    CHECK_INT(call.outcome, MP_HTTP_TOO_LARGE);
    CHECK_INT(mp_http_call_code(&call, &err), MP_BAD_DATA);
    CHECK(!err.retriable);
    CHECK(strstr(err.text, "more than 9 bytes"));
    mp_http_call_fini(&call);
}

static void http_bounds_the_body(void)
{
    static const struct http_step good = {.body = "0123456789"};
    static const struct http_step bad = {.status = 500, .body = "0123456789"};
    struct mp_http_call call = call_of("GET", NULL);

    call.body.max = 9;
    call = get_step(&good, call);
    CHECK_INT(call.outcome, MP_HTTP_TOO_LARGE);
    call = get_step(&bad, call); /* what explains a fault is cut, not refused */
    CHECK_INT(call.outcome, MP_HTTP_ANSWERED);
    CHECK_STR(mp_buf_str(&call.body), MP_STR("012345678"));
    mp_http_call_fini(&call);
}

static void http_follows_no_redirect(void)
{
    static const struct http_step step = {.status = 307, .headers = "Location: /elsewhere\r\n"};
    struct mp_http_call call = get_step(&step, call_of("GET", NULL));

    CHECK_INT(call.outcome, MP_HTTP_ANSWERED);
    CHECK_INT(call.status, 307);
    mp_http_call_fini(&call);
}

static void http_tells_cut_from_answered(void)
{
    static const struct http_step steps[] = {
        {.body = "0123456789", .fault = HTTP_CUT_BEFORE},
        {.body = "0123456789", .fault = HTTP_CUT_HEAD},
        {.body = "0123456789", .fault = HTTP_CUT_BODY},
        {.body = "0123456789", .fault = HTTP_RESET},
    };

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        struct mp_http_call call = get_step(&steps[i], call_of("GET", NULL));

        CHECK_INT(call.outcome, MP_HTTP_CUT);
        CHECK(call.sent);
        CHECK_INT(mp_http_call_code(&call, &err), MP_IO);
        CHECK(err.retriable);
        CHECK(strstr(err.text, "GET http://127.0.0.1:"));
        CHECK(strstr(err.text, "/path: cut off: "));
        mp_http_call_fini(&call);
    }
}

static void http_times_out(void)
{
    static const struct http_step steps[] = {
        {.fault = HTTP_STALL},
        {.body = "0123456789", .fault = HTTP_STALL_BODY},
        {.delay_ms = 60000},
    };

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        struct mp_http_call call = call_of("GET", NULL);

        call.total_ms_max = 100;
        for (int tries = 0; tries < 20 && !call.sent; tries++) { /* it may be over before */
            call = get_step(&steps[i], call);
            CHECK_INT(call.outcome, MP_HTTP_TIMED_OUT);
        }
        CHECK(call.sent);
        CHECK_INT(mp_http_call_code(&call, &err), MP_TIMEOUT);
        CHECK(err.retriable);
        mp_http_call_fini(&call);
    }
}

static void http_times_out_when_slow(void)
{
    static const struct http_step step = {.body = "0123456789", .fault = HTTP_STALL_BODY};
    struct mp_http_call call = call_of("GET", NULL);

    call.total_ms_max = 30000;
    call.slow_bytes_s = 100;
    call.slow_s = 1;
    call = get_step(&step, call);
    CHECK_INT(call.outcome, MP_HTTP_TIMED_OUT);
    mp_http_call_fini(&call);
}

static void http_tells_unreached_from_sent(void)
{
    struct http_script *script = http_script_start(NULL, 0, NULL, NULL);
    struct mp_http_client *client = new_client();
    struct mp_http_call call = call_of("GET", url_of(script, "/x?X-Amz-Signature=secret"));
    struct mp_http_call nowhere = call_of("POST", "http://no-such-host.invalid/x");

    http_script_stop(script); /* nobody listens there any more */
    mp_http_one(client, &call);
    CHECK_INT(call.outcome, MP_HTTP_UNREACHED);
    CHECK(!call.sent);
    CHECK_INT(mp_http_call_code(&call, &err), MP_IO);
    CHECK(err.retriable);
    CHECK(!strstr(err.text, "secret"));
    mp_http_one(client, &nowhere);
    CHECK_INT(nowhere.outcome, MP_HTTP_UNREACHED);
    CHECK(!nowhere.sent);
    mp_http_call_fini(&call);
    mp_http_call_fini(&nowhere);
    mp_http_client_free(client);
}

static void http_hides_secrets_in_urls(void)
{
    struct mp_http_client *client = new_client();
    struct mp_http_call call = call_of("GET", "ftp://user:pass@host/p@th?token=abc");

    mp_http_one(client, &call);
    CHECK_INT(call.outcome, MP_HTTP_UNUSABLE);
    CHECK_INT(mp_http_call_code(&call, &err), MP_BAD_CONFIG);
    CHECK(strstr(err.text, "GET ftp://host/p@th: "));
    CHECK(!strstr(err.text, "pass") && !strstr(err.text, "abc"));
    mp_http_call_fini(&call);
    call = call_of("GET", "not a url");
    mp_http_one(client, &call);
    CHECK_INT(call.outcome, MP_HTTP_UNUSABLE);
    mp_http_call_fini(&call);
    mp_http_client_free(client);
}

/* The body is larger than what fits the sockets, and the server reads none of it. */
static void http_hears_an_early_refusal(void)
{
    static const struct http_step step = {.status = 403, .body = "<Error/>", .early = true};
    enum { SIZE = 32 << 20 };
    char *bytes = mp_alloc(SIZE);
    struct mp_str piece = mp_str_n(bytes, SIZE);
    struct mp_http_call call = call_of("PUT", NULL);

    call.pieces = &piece;
    call.piece_count = 1;
    call.expect_continue = true;
    call = get_step(&step, call);
    CHECK_INT(call.outcome, MP_HTTP_ANSWERED);
    CHECK_INT(call.status, 403);
    mp_http_call_fini(&call);
    mp_free(bytes);
}

static void http_survives_a_closed_kept_connection(void)
{
    static const struct http_step steps[] = {{.body = "1", .fault = HTTP_CLOSE_AFTER},
                                             {.body = "2"}};
    struct http_script *script = http_script_start(steps, 2, NULL, NULL);
    struct mp_http_client *client = new_client();
    struct mp_str piece = MP_STR("body");
    struct mp_http_call call = call_of("PUT", http_script_url(script));

    call.pieces = &piece;
    call.piece_count = 1;
    mp_http_one(client, &call);
    CHECK_OK(mp_http_call_code(&call, &err), err);
    mp_http_one(client, &call);
    CHECK_OK(mp_http_call_code(&call, &err), err);
    CHECK_STR(mp_buf_str(&call.body), MP_STR("2"));
    CHECK_STR(http_script_request(script, 1)->body, MP_STR("body"));
    CHECK_INT(http_script_connections(script), 2);
    mp_http_call_fini(&call);
    mp_http_client_free(client);
    http_script_stop(script);
}

static void answer_slowly(void *self, const struct http_record *request, struct http_answer *ret)
{
    (void)self;
    mp_buf_add_str(&ret->body, request->target);
    ret->delay_ms = 60;
}

static void http_runs_many_with_so_many_at_once(void)
{
    enum { COUNT = 24, AT_ONCE = 6 };
    struct http_script *script = http_script_start(NULL, 0, answer_slowly, NULL);
    struct mp_http_client *client = new_client();
    struct mp_http_call calls[COUNT];
    char urls[COUNT][64];

    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(urls[i], sizeof(urls[i]), "%s/%u", http_script_url(script), i);
        calls[i] = call_of("GET", urls[i]);
    }
    mp_http_run(client, calls, COUNT, AT_ONCE);
    CHECK_INT(mp_http_under_way(client), 0);
    for (unsigned i = 0; i < COUNT; i++) {
        char want[8];

        snprintf(want, sizeof(want), "/%u", i);
        CHECK_OK(mp_http_call_code(&calls[i], &err), err);
        CHECK_STR(mp_buf_str(&calls[i].body), mp_str_c(want));
        mp_http_call_fini(&calls[i]);
    }
    CHECK_INT(http_script_connections(script), AT_ONCE);
    mp_http_client_free(client);
    http_script_stop(script);
}

static atomic_bool may_answer;

static void answer_when_told(void *self, const struct http_record *request, struct http_answer *ret)
{
    (void)self, (void)request, (void)ret;
    while (!atomic_load(&may_answer))
        usleep(1000);
}

static void http_waits_no_longer_than_asked(void)
{
    struct http_script *script = http_script_start(NULL, 0, answer_when_told, NULL);
    struct mp_http_client *client = new_client();
    struct mp_http_call call = call_of("GET", http_script_url(script));

    CHECK(!mp_http_wait(client, 1000)); /* nothing under way: at once */
    mp_http_start(client, &call);
    CHECK(!mp_http_wait(client, 0));
    for (int i = 0; i < 20; i++)
        CHECK(!mp_http_wait(client, 10));
    atomic_store(&may_answer, true);
    while (!mp_http_wait(client, 10))
        ;
    CHECK_INT(call.status, 200);
    mp_http_call_fini(&call);
    mp_http_client_free(client);
    http_script_stop(script);
}

static void http_reads_retry_after_and_date(void)
{
    static const struct {
        const char *headers;
        uint32_t retry_ms;
    } cases[] = {
        {"", 0},
        {"Retry-After: 3\r\n", 3000},
        {"Retry-After: 0\r\n", 0},
        {"Retry-After: Thu, 01 Jan 1970 00:16:50 GMT\r\n", 10000},
        {"Retry-After: Thu, 01 Jan 1970 00:00:00 GMT\r\n", 0},
        {"Retry-After: soon\r\n", 0},
        {"Retry-After: -4\r\n", 0},
        {"Retry-After: 99999999999999999999999\r\n", UINT32_MAX},
    };
    int64_t date = 0;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct http_step step = {.status = 503, .headers = cases[i].headers};
        struct mp_http_call call = get_step(&step, call_of("GET", NULL));

        CHECK_INT(mp_http_call_retry_ms(&call, 1000 * 1000000LL), cases[i].retry_ms);
        CHECK(!mp_http_call_date(&call, &date));
        mp_http_call_fini(&call);
    }
    {
        struct http_step step = {.headers = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"};
        struct mp_http_call call = get_step(&step, call_of("GET", NULL));

        CHECK(mp_http_call_date(&call, &date));
        CHECK_INT(date, 784111777 * 1000000LL);
        mp_http_call_fini(&call);
    }
}

static void http_escapes(void)
{
    struct mp_buf buf = MP_BUF_INIT(256);

    mp_http_escape(&buf, MP_STR("a/b c+%=~-_.\xc3\xbc"), true);
    CHECK_STR(mp_buf_str(&buf), MP_STR("a/b%20c%2B%25%3D~-_.%C3%BC"));
    mp_buf_clear(&buf);
    mp_http_escape(&buf, MP_STR("a/b"), false);
    CHECK_STR(mp_buf_str(&buf), MP_STR("a%2Fb"));
    mp_buf_fini(&buf);
}

static void http_uses_a_proxy_unless_direct(void)
{
    struct http_script *script = http_script_start(NULL, 0, NULL, NULL);
    struct mp_http_client *client = new_client();
    struct mp_http_call call = call_of("GET", "http://no-such-host.invalid/x");

    setenv("http_proxy", http_script_url(script), 1);
    mp_http_one(client, &call);
    CHECK_OK(mp_http_call_code(&call, &err), err);
    CHECK_STR(http_script_request(script, 0)->target, MP_STR("http://no-such-host.invalid/x"));
    call.direct = true;
    mp_http_one(client, &call);
    unsetenv("http_proxy");
    CHECK_INT(call.outcome, MP_HTTP_UNREACHED);
    mp_http_call_fini(&call);
    mp_http_client_free(client);
    http_script_stop(script);
}

static void http_raises_no_signal(void)
{
    enum { SIZE = 8 << 20 };
    char *bytes = mp_alloc(SIZE);
    struct mp_str piece = mp_str_n(bytes, SIZE);
    static const struct http_step step = {.fault = HTTP_RESET, .early = true};
    struct mp_http_call call = call_of("PUT", NULL);

    signal(SIGPIPE, SIG_DFL); /* a signal would end the process */
    call.pieces = &piece;
    call.piece_count = 1;
    call = get_step(&step, call);
    CHECK_INT(call.outcome, MP_HTTP_CUT);
    mp_http_call_fini(&call);
    mp_free(bytes);
}

static void cancel_ends_a_call_that_is_not_answered(void)
{
    static const struct http_step steps[] = {{.fault = HTTP_STALL}, {.body = "ok"}};
    struct http_script *script = http_script_start(steps, 2, NULL, NULL);
    struct mp_http_client_options options = {0};
    struct mp_http_client *client = mp_http_client_new(&options);
    struct mp_http_call call = {
        .method = "GET", .url = http_script_url(script), .body = MP_BUF_INIT(100)};

    mp_http_start(client, &call);
    for (int i = 0; i < 3000 && http_script_count(script) == 0; i++)
        CHECK(!mp_http_wait(client, 20));
    mp_http_cancel(client, &call);
    CHECK_INT(call.outcome, MP_HTTP_CUT);
    CHECK_INT(mp_http_under_way(client), 0);
    mp_http_cancel(client, &call); /* no-op */
    mp_http_one(client, &call);
    CHECK_INT(call.status, 200);
    CHECK_STR(mp_buf_str(&call.body), MP_STR("ok"));
    mp_http_call_fini(&call);
    mp_http_client_free(client);
    http_script_stop(script);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(http_gets_status_headers_and_body),
        TEST(http_sends_what_it_was_given),
        TEST(http_sends_empty_bodies_with_a_length),
        TEST(http_sends_large_bodies_from_pieces),
        TEST(http_head_has_headers_only),
        TEST(http_reads_into_memory),
        TEST(http_bounds_the_body),
        TEST(http_follows_no_redirect),
        TEST(http_tells_cut_from_answered),
        TEST(http_times_out),
        TEST(http_times_out_when_slow),
        TEST(http_tells_unreached_from_sent),
        TEST(http_hides_secrets_in_urls),
        TEST(http_hears_an_early_refusal),
        TEST(http_survives_a_closed_kept_connection),
        TEST(http_runs_many_with_so_many_at_once),
        TEST(http_waits_no_longer_than_asked),
        TEST(http_reads_retry_after_and_date),
        TEST(http_escapes),
        TEST(http_uses_a_proxy_unless_direct),
        TEST(http_raises_no_signal),
        TEST(cancel_ends_a_call_that_is_not_answered),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
