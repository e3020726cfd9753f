/* The poller against a scripted endpoint. */
#include "pipeline/include_poll.h"
#include "harness/http_script.h"
#include "harness/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const int64_t pin_integers[] = {7};
static const struct mp_str pin_texts[] = {MP_STR_INIT("7")};
static const struct mp_filter_options static_keep = {.field = {"team", 4},
                                                     .integer = true,
                                                     .integers = pin_integers,
                                                     .texts = pin_texts,
                                                     .count = 1};

enum { LISTS_MAX = 8, WAIT_MS_MAX = 60000 };

/* One poller with all around it. */
struct bench {
    struct mp_env env;
    struct mp_log *log;
    int log_ends[2];
    struct mp_metrics *metrics;
    struct http_script *script;
    char url[128];
    struct mp_include_poll *poll;
    pthread_mutex_t lock;
    char lists[LISTS_MAX][256]; /* as they were handed out */
    uint32_t list_count;
};

static struct bench bench;
static _Atomic(const char *) served; /* the body of every answer behind the steps */

static void answer_served(void *self, const struct http_record *request, struct http_answer *ret)
{
    (void)self, (void)request;
    mp_buf_add_c(&ret->body, atomic_load(&served));
}

static void on_list(void *self, const struct mp_filter_options *keep)
{
    size_t used = 0;
    char *list;

    (void)self;
    pthread_mutex_lock(&bench.lock);
    CHECK(bench.list_count < LISTS_MAX);
    list = bench.lists[bench.list_count++];
    for (uint32_t i = 0; i < keep->count; i++)
        used += (size_t)snprintf(list + used, sizeof(bench.lists[0]) - used, "%s%.*s", i ? "," : "",
                                 MP_STR_ARG(keep->texts[i]));
    for (uint32_t i = 0; keep->integer && i < keep->count; i++) {
        char digits[24];

        snprintf(digits, sizeof(digits), "%" PRId64, keep->integers[i]);
        CHECK_STR(keep->texts[i], mp_str_c(digits));
    }
    pthread_mutex_unlock(&bench.lock);
}

static void begin_patient(const struct http_step *steps, uint32_t count, bool authoritative,
                          uint32_t request_ms_max)
{
    struct mp_log_options log = {.level = MP_LOG_INFO, .json = true};
    struct mp_include_poll_options options = {
        .url = bench.url,
        .header_name = MP_STR("X-Token"),
        .header_value = MP_STR("hunter2"),
        .authoritative = authoritative,
        .poll_ms = 30,
        .request_ms_max = request_ms_max,
        .removal_polls = 2,
        .keep = &static_keep,
        .on_list = on_list,
    };
    struct mp_err err = {0};

    memset(&bench, 0, sizeof(bench));
    atomic_store(&served, "");
    pthread_mutex_init(&bench.lock, NULL);
    bench.env = mp_env_real();
    CHECK_INT(pipe(bench.log_ends), 0);
    log.fd = bench.log_ends[1];
    bench.log = mp_log_new(&log, &bench.env);
    bench.metrics = mp_metrics_new(MP_STR("p"), MP_STR(""), &bench.env);
    bench.script = http_script_start(steps, count, answer_served, NULL);
    snprintf(bench.url, sizeof(bench.url), "%s/values?secret=hunter2",
             http_script_url(bench.script));
    CHECK_OK(
        mp_include_poll_open(&options, &bench.env, bench.log, bench.metrics, &err, &bench.poll),
        err);
}

static void begin(const struct http_step *steps, uint32_t count, bool authoritative)
{
    begin_patient(steps, count, authoritative, 60000);
}

/* Ends it all; the log is checked for the token (V1) and for `line`. */
static void finish(const char *line)
{
    static char text[1 << 18];
    size_t used = 0;
    ssize_t got;

    mp_include_poll_close(bench.poll);
    http_script_stop(bench.script);
    mp_metrics_free(bench.metrics);
    mp_log_free(bench.log);
    close(bench.log_ends[1]);
    while (used < sizeof(text) - 1 &&
           (got = read(bench.log_ends[0], text + used, sizeof(text) - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = 0;
    close(bench.log_ends[0]);
    pthread_mutex_destroy(&bench.lock);
    CHECK(!strstr(text, "hunter2"));
    if (line && !strstr(text, line))
        test_fail(__FILE__, __LINE__, "no \"%s\" in %s", line, text);
}

static void wait_polls(uint32_t count)
{
    for (int ms = 0; ms < WAIT_MS_MAX && http_script_count(bench.script) < count; ms += 10)
        mp_sleep_us(&bench.env, 10000);
    CHECK(http_script_count(bench.script) >= count);
}

static uint32_t list_count(void)
{
    uint32_t count;

    pthread_mutex_lock(&bench.lock);
    count = bench.list_count;
    pthread_mutex_unlock(&bench.lock);
    return count;
}

/* The lists that are handed out, one behind the other; a list is not written to again. */
static void wait_lists(const char *const *want, uint32_t count)
{
    for (int ms = 0; ms < WAIT_MS_MAX && list_count() < count; ms += 10)
        mp_sleep_us(&bench.env, 10000);
    CHECK_INT(list_count(), count);
    for (uint32_t i = 0; i < count; i++)
        CHECK_STR(mp_str_c(bench.lists[i]), mp_str_c(want[i]));
}

static double metric(enum mp_metric id, const char *label)
{
    return mp_metric_value(bench.metrics, id, label);
}

static void wait_metric(enum mp_metric id, double value)
{
    for (int ms = 0; ms < WAIT_MS_MAX && metric(id, NULL) != value; ms += 10)
        mp_sleep_us(&bench.env, 10000);
    CHECK_INT(metric(id, NULL), value);
}

static void authoritative_hands_out_what_is_held(void)
{
    static const struct http_step steps[] = {
        {.body = "[1,2]"}, {.body = "[1,2]"},     {.body = "[1]"}, {.body = "[1]"},
        {.body = "[1]"},   {.body = "[1,\"x\"]"}, {.body = "[]"},  {.body = "[1,100]"}};
    static const char *const lists[] = {"1,2,7", "1,7", "1,100,7"};

    begin(steps, 8, true);
    wait_lists(lists, 3);
    wait_metric(MP_M_INCLUDE_VALUES_SIZE, 3); /* 2 before; it is set when all is counted */
    CHECK_INT(metric(MP_M_INCLUDE_VALUES_CHANGES, "add"), 3);
    CHECK_INT(metric(MP_M_INCLUDE_VALUES_CHANGES, "remove"), 1);
    CHECK_INT(metric(MP_M_INCLUDE_VALUES_REFUSED, "type_flip"), 1);
    CHECK_INT(metric(MP_M_INCLUDE_VALUES_REFUSED, "empty"), 1);
    CHECK_INT(metric(MP_M_INCLUDE_VALUES_MODE, "authoritative"), 1);
    CHECK_INT(metric(MP_M_INCLUDE_VALUES_PINNED, NULL), 1);
    CHECK_INT(metric(MP_M_INCLUDE_VALUES_PINNED_ONLY, NULL), 1);
    CHECK(metric(MP_M_INCLUDE_VALUES_LAST_SUCCESS, NULL) > 1.6e9);
    CHECK_STR(http_script_request(bench.script, 0)->method, MP_STR("GET"));
    CHECK_STR(http_record_header(http_script_request(bench.script, 0), "x-token"),
              MP_STR("hunter2"));
    finish("Include value removed: 2");
}

static void shadow_only_counts(void)
{
    static const struct http_step steps[] = {{.body = "[1,2,3]"}, {.body = "[1,2,3,7]"}};

    begin(steps, 2, false);
    wait_metric(MP_M_INCLUDE_VALUES_SIZE, 4);
    wait_metric(MP_M_INCLUDE_VALUES_SHADOW_ONLY_STATIC, 0);
    CHECK_INT(metric(MP_M_INCLUDE_VALUES_SHADOW_ONLY_REMOTE, NULL), 3);
    CHECK_INT(metric(MP_M_INCLUDE_VALUES_MODE, "shadow"), 1);
    CHECK_INT(list_count(), 0);
    finish("Include value added: 3");
}

static void failed_polls_change_nothing(void)
{
    static const struct http_step steps[] = {
        {.body = "[1]"},
        {.status = 503, .body = "[2]"},
        {.status = 302, .headers = "Location: http://127.0.0.1:1/\r\n"},
        {.body = "not json"},
        {.body = "{\"a\":1}"},
        {.body = "[1,2,3]", .fault = HTTP_CUT_BODY},
        {.body = "[1]"},
        {.body = "[1,5]"},
    };
    static const char *const lists[] = {"1,7", "1,5,7"};

    begin(steps, 8, true);
    wait_lists(lists, 2);
    CHECK(metric(MP_M_INCLUDE_VALUES_POLL_FAILURES, NULL) >= 5);
    CHECK_INT(metric(MP_M_INCLUDE_VALUES_REFUSED, "bulk_removal"), 0);
    finish("Include values poll failed: ");
}

static void a_silent_endpoint_is_a_failed_poll(void)
{
    static const struct http_step steps[] = {{.fault = HTTP_STALL}};

    begin_patient(steps, 1, true, 100);
    for (int ms = 0; ms < WAIT_MS_MAX && metric(MP_M_INCLUDE_VALUES_POLL_FAILURES, NULL) < 1;
         ms += 10)
        mp_sleep_us(&bench.env, 10000);
    CHECK(metric(MP_M_INCLUDE_VALUES_POLL_FAILURES, NULL) >= 1);
    CHECK_INT(list_count(), 0);
    finish("timed out");
}

static void body_is_bounded(void)
{
    static char body[(4 << 20) + 100];
    struct http_step steps[1] = {{.body = body}};
    struct mp_err err = {0};

    memset(body, ' ', sizeof(body) - 1);
    body[0] = '[';
    body[sizeof(body) - 2] = ']';
    begin(steps, 1, true);
    wait_polls(2); /* the first answer was looked at before */
    CHECK(metric(MP_M_INCLUDE_VALUES_POLL_FAILURES, NULL) >= 1);
    CHECK_INT(mp_include_poll_accepted(bench.poll, &err), MP_IO);
    finish("more than 4194304 bytes");
}

static void tells_whether_a_list_was_accepted(void)
{
    static const struct http_step steps[] = {{.status = 500}};
    struct mp_err err = {0};

    begin(steps, 1, true);
    atomic_store(&served, "[\"a\"]");
    for (int ms = 0; ms < WAIT_MS_MAX && !strstr(err.text, "type_flip"); ms += 2) {
        CHECK(mp_include_poll_accepted(bench.poll, &err) != MP_OK);
        CHECK_INT(err.code, strcmp(err.text, "no answer yet") ? MP_IO : MP_TIMEOUT);
        mp_sleep_us(&bench.env, 2000);
    }
    CHECK(strstr(err.text, "type_flip"));
    atomic_store(&served, "[1]");
    for (int ms = 0; ms < WAIT_MS_MAX && mp_include_poll_accepted(bench.poll, &err); ms += 2)
        mp_sleep_us(&bench.env, 2000);
    CHECK_OK(mp_include_poll_accepted(bench.poll, &err), err);
    finish("Include values refused (type_flip): 1 served, 1 held");
}

static void close_cuts_a_silent_endpoint_short(void)
{
    static const struct http_step steps[] = {{.fault = HTTP_STALL}};
    uint64_t began;

    begin_patient(steps, 1, true, 60000);
    wait_polls(1);
    began = mp_now_mono_us(&bench.env);
    finish(NULL);
    CHECK(mp_now_mono_us(&bench.env) - began < 10000000);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(authoritative_hands_out_what_is_held),
        TEST(shadow_only_counts),
        TEST(failed_polls_change_nothing),
        TEST(a_silent_endpoint_is_a_failed_poll),
        TEST(body_is_bounded),
        TEST(tells_whether_a_list_was_accepted),
        TEST(close_cuts_a_silent_endpoint_short),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
