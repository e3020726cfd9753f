/* OTLP requests against bytes worked out by hand from the field numbers of opentelemetry-proto. */
#include "obs/otlp_encode.h"
#include "harness/test.h"

static void check_bytes(struct mp_buf *buf, const void *want, size_t size)
{
    CHECK_INT(buf->size, size);
    for (size_t i = 0; i < size; i++)
        if (buf->data[i] != ((const char *)want)[i])
            test_fail(__FILE__, __LINE__, "byte %zu is %02x, not %02x", i, buf->data[i] & 0xff,
                      ((const char *)want)[i] & 0xff);
    mp_buf_fini(buf);
}

static void a_record(void)
{
    static const unsigned char want[] = {
        0x09, 0xe8, 0x03, 0,    0,    0,    0,    0,    0,                /* time: 1000 ns */
        0x10, 9,                                                          /* severity INFO */
        0x1a, 4,    'I',  'N',  'F',  'O',                                /* its text */
        0x2a, 4,    0x0a, 2,    'h',  'i',                                /* body, a string */
        0x32, 7,    0x0a, 1,    'n',  0x12, 2,    0x18, 17,               /* n = 17 */
        0x32, 16,   0x0a, 1,    'm',  0x12, 11,   0x18, 0xff, 0xff, 0xff, /* m = -1: ten bytes */
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,                         /* */
        0x32, 14,   0x0a, 1,    'd',  0x12, 9,    0x21, 0,    0,    0,
        0,    0,    0,    0xf8, 0x3f,                              /* d = 1.5 */
        0x32, 8,    0x0a, 1,    's',  0x12, 3,    0x0a, 1,    'x', /* s = "x" */
        0x59, 0xd0, 0x07, 0,    0,    0,    0,    0,    0,         /* observed: 2000 ns */
    };
    const struct mp_log_field fields[] = {{"n", true, MP_STR("17")},
                                          {"m", true, MP_STR("-1")},
                                          {"d", true, MP_STR("1.5")},
                                          {"s", false, MP_STR("x")}};
    struct mp_otlp_record record = {1, 2, MP_LOG_INFO, MP_STR("hi"), fields, 4};
    struct mp_buf buf = MP_BUF_INIT(1000);

    mp_otlp_add_record(&buf, &record);
    check_bytes(&buf, want, sizeof(want));
}

static void a_request(void)
{
    static const unsigned char want[] = {
        0x0a, 0x1d,                                                      /* resource_logs */
        0x0a, 0x0a, 0x0a, 8,   0x0a, 1,    'k', 0x12, 3,   0x0a, 1, 'v', /* resource: k = "v" */
        0x12, 0x0f, 0x0a, 3,   0x0a, 1,    'm',                          /* scope_logs: scope "m" */
        0x12, 3,    'x',  'y', 'z',  0x12, 3,   'a',  'b', 'c',          /* two records */
    };
    const struct mp_otlp_attribute resource[] = {{MP_STR("k"), MP_STR("v")}};
    struct mp_buf buf = MP_BUF_INIT(1000);
    size_t request = mp_otlp_request_open(&buf, resource, 1);
    size_t scope = mp_otlp_scope_open(&buf, MP_STR("m"));

    mp_otlp_scope_add(&buf, MP_STR("xyz"));
    mp_otlp_scope_add(&buf, MP_STR("abc"));
    mp_otlp_part_close(&buf, scope);
    mp_otlp_part_close(&buf, request);
    check_bytes(&buf, want, sizeof(want));
}

static void severities(void)
{
    static const struct {
        enum mp_log_level level;
        unsigned char number;
        const char *name;
    } table[] = {{MP_LOG_DEBUG, 5, "DEBUG"},  {MP_LOG_INFO, 9, "INFO"}, {MP_LOG_WARN, 13, "WARN"},
                 {MP_LOG_ERROR, 17, "ERROR"}, {50, 17, "ERROR"},        {1, 5, "DEBUG"}};

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct mp_otlp_record record = {.level = table[i].level};
        struct mp_buf buf = MP_BUF_INIT(1000);

        mp_otlp_add_record(&buf, &record);
        CHECK_INT(buf.data[10], table[i].number);
        CHECK_STR(mp_str_n(buf.data + 13, (size_t)buf.data[12]), mp_str_c(table[i].name));
        mp_buf_fini(&buf);
    }
}

/* The body begins behind 9 bytes of time, 2 of severity and 6 of its text. */
static void long_texts_have_long_lengths(void)
{
    static const unsigned char want[] = {0x2a, 0xcb, 0x01, 0x0a, 0xc8, 0x01, 'y'};
    static char text[200];
    struct mp_otlp_record record = {.level = MP_LOG_WARN, .body = {text, sizeof(text)}};
    struct mp_buf buf = MP_BUF_INIT(1000);

    memset(text, 'y', sizeof(text));
    mp_otlp_add_record(&buf, &record);
    CHECK(memcmp(buf.data + 17, want, sizeof(want)) == 0);
    mp_buf_fini(&buf);
}

static void texts_are_utf8(void)
{
    static const char want[] = "\x2a\x0c\x0a\x0a"
                               "a\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd"
                               "b";
    struct mp_otlp_record record = {.level = MP_LOG_WARN,
                                    .body = MP_STR("a\xc3\xa9\xff\xc3"
                                                   "b")};
    struct mp_buf buf = MP_BUF_INIT(1000);

    mp_otlp_add_record(&buf, &record);
    CHECK(memcmp(buf.data + 17, want, sizeof(want) - 1) == 0);
    mp_buf_fini(&buf);
}

static void numbers_that_are_none_are_texts(void)
{
    static const char want[] = "\x32\x0a\x0a\x01n\x12\x05\x0a\x03"
                               "1 x";
    const struct mp_log_field fields[] = {{"n", true, MP_STR("1 x")}};
    struct mp_otlp_record record = {.level = MP_LOG_WARN, .fields = fields, .field_count = 1};
    struct mp_buf buf = MP_BUF_INIT(1000);

    mp_otlp_add_record(&buf, &record);
    CHECK(memcmp(buf.data + 21, want, sizeof(want) - 1) == 0);
    mp_buf_fini(&buf);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_record),       TEST(a_request),
        TEST(severities),     TEST(long_texts_have_long_lengths),
        TEST(texts_are_utf8), TEST(numbers_that_are_none_are_texts),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
