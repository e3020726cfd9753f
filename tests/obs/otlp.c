/* The exporter against a scripted endpoint. */
#include "obs/otlp.h"
#include "harness/http_script.h"
#include "harness/test.h"

#include <stdio.h>
#include <unistd.h>

static struct mp_env env;
static struct mp_log *log_;
static int log_ends[2];
static struct mp_metrics *metrics;
static struct http_script *script;
static struct mp_otlp *otlp;

static struct mp_otlp_options usual(void)
{
    static const struct mp_otlp_attribute resource[] = {
        {MP_STR_INIT("service.name"), MP_STR_INIT("millpond")},
        {MP_STR_INIT("service.instance.id"), MP_STR_INIT("")}};

    return (struct mp_otlp_options){.token = MP_STR("hunter2"),
                                    .resource = resource,
                                    .resource_count = 2,
                                    .batch_ms = 60000,
                                    .batch_max = 3,
                                    .close_ms_max = 60000,
                                    .again_ms = 20};
}

static void begin(const struct http_step *steps, uint32_t count, struct mp_otlp_options options)
{
    struct mp_log_options log_options = {.level = MP_LOG_INFO, .json = true};
    struct mp_err err = {0};
    char url[128];

    env = mp_env_real();
    CHECK_INT(pipe(log_ends), 0);
    log_options.fd = log_ends[1];
    log_ = mp_log_new(&log_options, &env);
    metrics = mp_metrics_new(MP_STR("p"), MP_STR(""), &env);
    script = http_script_start(steps, count, NULL, NULL);
    snprintf(url, sizeof(url), "%s/i/v1/logs", http_script_url(script));
    options.url = url;
    CHECK_OK(mp_otlp_open(&options, &env, log_, metrics, &err, &otlp), err);
    mp_log_set_sink(log_, mp_otlp_sink(otlp));
}

static void close_otlp(void)
{
    mp_log_set_sink(log_, NULL);
    mp_otlp_close(otlp);
    otlp = NULL;
}

/* Ends it all; what was logged lacks the token (P3) and has `line`. */
static void finish(const char *line)
{
    static char text[1 << 16];
    size_t used = 0;
    ssize_t got;

    if (otlp)
        close_otlp();
    http_script_stop(script);
    mp_metrics_free(metrics);
    mp_log_free(log_);
    close(log_ends[1]);
    while (used < sizeof(text) - 1 &&
           (got = read(log_ends[0], text + used, sizeof(text) - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = 0;
    close(log_ends[0]);
    CHECK(!strstr(text, "hunter2"));
    if (line && !strstr(text, line))
        test_fail(__FILE__, __LINE__, "no \"%s\" in %s", line, text);
}

static void wait_requests(uint32_t count)
{
    for (int i = 0; i < 12000 && http_script_count(script) < count; i++)
        mp_sleep_us(&env, 5000);
    CHECK(http_script_count(script) >= count);
}

static void wait_metric(enum mp_metric id, const char *label, double value)
{
    for (int i = 0; i < 12000 && mp_metric_value(metrics, id, label) < value; i++)
        mp_sleep_us(&env, 5000);
    CHECK_INT(mp_metric_value(metrics, id, label), value);
}

static bool has(uint32_t request, const char *text)
{
    struct mp_str body = http_script_request(script, request)->body;

    return memmem(body.data, body.size, text, strlen(text)) != NULL;
}

static void a_full_batch_is_sent_at_once(void)
{
    const struct http_record *request;

    begin(NULL, 0, usual());
    mp_log(log_, MP_LOG_INFO, "millpond.main", "line one");
    mp_log(log_, MP_LOG_DEBUG, "millpond.main", "not shown, not sent");
    mp_log(log_, MP_LOG_WARN, "millpond.lake", "line two");
    mp_log(log_, MP_LOG_INFO, "millpond.main", "line three");
    wait_metric(MP_M_LOG_EXPORTED, NULL, 3);
    CHECK_INT(http_script_count(script), 1);
    request = http_script_request(script, 0);
    CHECK_STR(request->method, MP_STR("POST"));
    CHECK_STR(request->target, MP_STR("/i/v1/logs"));
    CHECK_STR(http_record_header(request, "content-type"), MP_STR("application/x-protobuf"));
    CHECK_STR(http_record_header(request, "authorization"), MP_STR("Bearer hunter2"));
    CHECK(has(0, "line one") && has(0, "line two") && has(0, "line three"));
    CHECK(!has(0, "not sent"));
    CHECK(!has(0, "service.instance.id"));
    finish("line one");
}

static void a_small_batch_is_sent_in_time(void)
{
    struct mp_otlp_options options = usual();

    options.batch_ms = 100;
    begin(NULL, 0, options);
    mp_log(log_, MP_LOG_INFO, "x", "alone");
    wait_requests(1);
    CHECK(has(0, "alone"));
    finish(NULL);
}

static void close_sends_what_waits(void)
{
    begin(NULL, 0, usual());
    mp_log(log_, MP_LOG_INFO, "x", "last words");
    close_otlp();
    CHECK_INT(http_script_count(script), 1);
    CHECK(has(0, "last words"));
    mp_log(log_, MP_LOG_INFO, "x", "after it");
    finish("after it");
}

static void what_may_heal_is_sent_again(void)
{
    static const struct http_step steps[] = {
        {.status = 503}, {.status = 429}, {.fault = HTTP_RESET}, {.status = 200}};

    begin(steps, 4, usual());
    mp_log(log_, MP_LOG_INFO, "x", "again");
    close_otlp();
    CHECK_INT(http_script_count(script), 4);
    for (uint32_t i = 1; i < 4; i++)
        CHECK_STR(http_script_request(script, i)->body, http_script_request(script, 0)->body);
    CHECK_INT(mp_metric_value(metrics, MP_M_LOG_EXPORTED, NULL), 1);
    finish(NULL);
}

static void what_is_refused_is_given_up(void)
{
    static const struct http_step steps[] = {{.status = 401}, {.status = 400}, {.status = 200}};

    begin(steps, 3, usual());
    for (int i = 0; i < 9; i++)
        mp_log(log_, MP_LOG_INFO, "x", "number %d", i);
    wait_metric(MP_M_LOG_EXPORTED, NULL, 3);
    CHECK_INT(http_script_count(script), 3);
    CHECK_INT(mp_metric_value(metrics, MP_M_LOG_EXPORT_DROPPED, "unsent"), 6);
    CHECK(!has(2, "Log export")); /* P4 */
    finish("Log export works again; 6 lines were lost");
}

static void an_endpoint_that_stays_away_is_given_up_in_the_end(void)
{
    static const struct http_step steps[] = {
        {.status = 500}, {.status = 500}, {.status = 500}, {.status = 500}, {.status = 200}};

    begin(steps, 5, usual());
    for (int i = 0; i < 3; i++)
        mp_log(log_, MP_LOG_INFO, "x", "first %d", i);
    wait_metric(MP_M_LOG_EXPORT_DROPPED, "unsent", 3);
    CHECK_INT(http_script_count(script), 4);
    finish("Log export fails, lines are lost: the answer is 500");
}

static void nobody_waits_for_a_silent_endpoint(void)
{
    static const struct http_step steps[] = {{.fault = HTTP_STALL}, {.fault = HTTP_STALL}};
    struct mp_otlp_options options = usual();
    uint64_t began;

    options.queue_max = 4;
    options.batch_max = 2;
    options.close_ms_max = 200;
    begin(steps, 2, options);
    mp_log(log_, MP_LOG_INFO, "x", "a");
    mp_log(log_, MP_LOG_INFO, "x", "b");
    wait_requests(1);
    began = mp_now_mono_us(&env);
    for (int i = 0; i < 10; i++)
        mp_log(log_, MP_LOG_INFO, "x", "number %d", i);
    CHECK(mp_now_mono_us(&env) - began < 5000000); /* a request has 10 s */
    CHECK_INT(mp_metric_value(metrics, MP_M_LOG_EXPORT_DROPPED, "queue_full"), 6);
    began = mp_now_mono_us(&env);
    close_otlp();
    CHECK(mp_now_mono_us(&env) - began < 5000000);
    CHECK_INT(mp_metric_value(metrics, MP_M_LOG_EXPORT_DROPPED, "unsent"), 6);
    finish(NULL);
}

static void further_attributes_are_read(void)
{
    static const char decoded[] = "\x0a\x01"
                                  "b\x12\x05\x0a\x03"
                                  "x y";
    struct mp_otlp_options options = usual();

    options.more = MP_STR("a=1, b = x%20y ,,service.name=other,no form,=x,a=2");
    begin(NULL, 0, options);
    mp_log(log_, MP_LOG_INFO, "x", "line");
    close_otlp();
    CHECK(has(0, decoded));
    CHECK(has(0, "service.name\x12\x0a\x0a\x08millpond"));
    CHECK(!has(0, "other"));
    CHECK(has(0, "\x0a\x01"
                 "a\x12\x03\x0a\x01"
                 "2"));
    finish("is left out: no form");
}

static void lines_of_a_logger_share_a_scope(void)
{
    struct mp_str body;
    unsigned scopes = 0;

    begin(NULL, 0, usual());
    mp_log(log_, MP_LOG_INFO, "scope.a", "1");
    mp_log(log_, MP_LOG_INFO, "scope.b", "2");
    mp_log(log_, MP_LOG_INFO, "scope.a", "3");
    close_otlp();
    body = http_script_request(script, 0)->body;
    for (size_t i = 0; i + 6 < body.size; i++)
        scopes += memcmp(body.data + i, "scope.", 6) == 0;
    CHECK_INT(scopes, 2);
    finish(NULL);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_full_batch_is_sent_at_once),
        TEST(a_small_batch_is_sent_in_time),
        TEST(close_sends_what_waits),
        TEST(what_may_heal_is_sent_again),
        TEST(what_is_refused_is_given_up),
        TEST(an_endpoint_that_stays_away_is_given_up_in_the_end),
        TEST(nobody_waits_for_a_silent_endpoint),
        TEST(further_attributes_are_read),
        TEST(lines_of_a_logger_share_a_scope),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
