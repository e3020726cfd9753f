/* Log lines, letter by letter. */
#include "harness/test.h"
#include "obs/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static char text[1 << 20];

struct out {
    int ends[2];
    struct mp_env_fake clock;
    struct mp_env env;
    struct mp_log *log;
};

static void open_log(struct out *out, bool json, enum mp_log_level level)
{
    struct mp_log_options options = {.level = level, .json = json, .ordinal = MP_STR("3")};

    CHECK_INT(pipe(out->ends), 0);
    out->clock = (struct mp_env_fake){.wall_us = 1704067200000123};
    out->env = mp_env_fake(&out->clock);
    options.fd = out->ends[1];
    out->log = mp_log_new(&options, &out->env);
}

/* Everything written. */
static struct mp_str close_log(struct out *out)
{
    size_t used = 0;
    ssize_t got;

    mp_log_free(out->log);
    close(out->ends[1]);
    while ((got = read(out->ends[0], text + used, sizeof(text) - used)) > 0)
        used += (size_t)got;
    close(out->ends[0]);
    return mp_str_n(text, used);
}

static void writes_json_lines(void)
{
    struct out out;
    const struct mp_log_field fields[] = {{"offset", true, MP_STR("17")},
                                          {"sample", false, MP_STR("a\"b")}};

    open_log(&out, true, MP_LOG_INFO);
    mp_log(out.log, MP_LOG_DEBUG, "millpond.main", "not shown");
    mp_log(out.log, MP_LOG_INFO, "millpond.main", "millpond %s starting", "1.2");
    out.clock.wall_us += 999999;
    mp_log_with(out.log, MP_LOG_WARN, "millpond.consumer", fields, 2, "Skipping malformed JSON: %d",
                5);
    mp_log(out.log, MP_LOG_ERROR, "x", "%s", "");
    mp_log(NULL, MP_LOG_ERROR, "x", "dropped");
    CHECK_STR(
        close_log(&out),
        MP_STR("{\"ts\": \"2024-01-01T00:00:00.000123+00:00\", \"level\": \"INFO\", \"logger\": "
               "\"millpond.main\", \"msg\": \"millpond 1.2 starting\"}\n"
               "{\"ts\": \"2024-01-01T00:00:01.000122+00:00\", \"level\": \"WARNING\", "
               "\"logger\": \"millpond.consumer\", \"msg\": \"Skipping malformed JSON: 5\", "
               "\"offset\": 17, \"sample\": \"a\\\"b\"}\n"
               "{\"ts\": \"2024-01-01T00:00:01.000122+00:00\", \"level\": \"ERROR\", "
               "\"logger\": \"x\", \"msg\": \"\"}\n"));
}

static void check_message(const char *message, const char *want)
{
    struct out out;
    struct mp_str line;
    const char *begin;

    open_log(&out, true, MP_LOG_INFO);
    mp_log(out.log, MP_LOG_INFO, "x", "%s", message);
    line = close_log(&out);
    begin = memmem(line.data, line.size, "\"msg\": ", 7);
    CHECK(begin != NULL);
    begin += 7;
    CHECK_STR(mp_str_n(begin, (size_t)(line.data + line.size - 2 - begin)), mp_str_c(want));
}

static void escapes_what_json_cannot_hold(void)
{
    check_message("a\"b\\c/d", "\"a\\\"b\\\\c/d\"");
    check_message("a\nb\tc\rd\x01\x1f\x7f", "\"a\\nb\\tc\\rd\\u0001\\u001f\x7f\"");
    check_message("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
                  "\"caf\\u00e9 \\u20ac \\ud83d\\ude00\"");
    check_message("\xff|\xc0\x80|\xe2\x82|\xed\xa0\x80|\xf5\x80\x80\x80|\xc3",
                  "\"\\ufffd|\\ufffd\\ufffd|\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd|"
                  "\\ufffd\\ufffd\\ufffd\\ufffd|\\ufffd\"");
}

static void writes_text_lines(void)
{
    struct out out;

    setenv("TZ", "UTC-2", 1); /* two hours east */
    open_log(&out, false, MP_LOG_DEBUG);
    mp_log(out.log, MP_LOG_DEBUG, "millpond.main", "one");
    mp_log(out.log, MP_LOG_INFO, "millpond.main", "two\nlines \xc3\xa9 \xff");
    mp_log(out.log, MP_LOG_WARN, "millpond.main", "three");
    CHECK_STR(close_log(&out), MP_STR("2024-01-01T02:00:00 DEBUG [3][millpond.main] one\n"
                                      "2024-01-01T02:00:00 INFO  [3][millpond.main] two\\x0alines "
                                      "\xc3\xa9 \\xff\n"
                                      "2024-01-01T02:00:00 WARNING [3][millpond.main] three\n"));
    unsetenv("TZ");
}

static void *log_many(void *self)
{
    for (int i = 0; i < 200; i++)
        mp_log(self, MP_LOG_INFO, "thread", "%0500d", i);
    return NULL;
}

static void cuts_endless_messages_and_mixes_no_lines(void)
{
    struct out out;
    struct mp_str line;
    static char endless[200000];
    pthread_t threads[3];
    struct mp_log_options options = {.level = MP_LOG_INFO, .json = true};
    FILE *file = tmpfile();
    size_t lines = 0, used;

    memset(endless, '\x01', sizeof(endless) - 1);
    /* larger than a pipe holds: into a file */
    CHECK(file != NULL);
    options.fd = fileno(file);
    out.clock = (struct mp_env_fake){.wall_us = 0};
    out.env = mp_env_fake(&out.clock);
    out.log = mp_log_new(&options, &out.env);
    mp_log(out.log, MP_LOG_INFO, "x", "%s", endless);
    for (int i = 0; i < 3; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, log_many, out.log), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    mp_log_free(out.log);
    rewind(file);
    used = fread(text, 1, sizeof(text), file);
    fclose(file);
    line = mp_str_n(text, used);
    CHECK(mp_str_starts(line, MP_STR("{\"ts\": \"1970-01-01T00:00:00.000000+00:00\"")));
    for (size_t i = 0; i < line.size; i++)
        lines += line.data[i] == '\n';
    CHECK_INT(lines, 601);
    CHECK_INT(used < 600 * 650 + 6 * 64 * 1024 + 200, 1);
}

static void limits_lines_of_a_kind(void)
{
    struct mp_log_limit limit = {.burst = 3};
    uint64_t dropped = 99, now = 5000000;

    for (int i = 0; i < 3; i++) {
        CHECK(mp_log_limit_pass(&limit, now, &dropped));
        CHECK_INT(dropped, 0);
    }
    for (int i = 0; i < 10; i++)
        CHECK(!mp_log_limit_pass(&limit, now + 50000 * (uint64_t)i, &dropped));
    CHECK(mp_log_limit_pass(&limit, now + 1000000, &dropped));
    CHECK_INT(dropped, 10);
    CHECK(!mp_log_limit_pass(&limit, now + 1500000, &dropped));
    CHECK(mp_log_limit_pass(&limit, now + 2000000, &dropped));
    CHECK_INT(dropped, 1);
    now += 60000000; /* quiet for long: the burst is there again, and no more than that */
    for (int i = 0; i < 3; i++)
        CHECK(mp_log_limit_pass(&limit, now, &dropped));
    CHECK(!mp_log_limit_pass(&limit, now, &dropped));
}

static void shows_bytes_as_ascii(void)
{
    char out[64];

    CHECK_STR(mp_log_sample(mp_str_n("a\0b\x1f\x7f\xff\\\"", 8), 8, out, sizeof(out)),
              MP_STR("a\\x00b\\x1f\\x7f\\xff\\\\\""));
    CHECK_STR(mp_log_sample(MP_STR("abcdef"), 3, out, sizeof(out)), MP_STR("abc"));
    CHECK_STR(mp_log_sample(MP_STR("\x01\x02\x03"), 3, out, 10), MP_STR("\\x01\\x02"));
    CHECK_STR(mp_log_sample(MP_STR(""), 3, out, sizeof(out)), MP_STR(""));
    CHECK_STR(mp_str_c(out), MP_STR(""));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(writes_json_lines),      TEST(escapes_what_json_cannot_hold),
        TEST(writes_text_lines),      TEST(cuts_endless_messages_and_mixes_no_lines),
        TEST(limits_lines_of_a_kind), TEST(shows_bytes_as_ascii),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
