#include "pipeline/filter.h"
#include "harness/test.h"

static struct mp_json *json;

static enum mp_filter_answer ask(struct mp_filter *filter, const char *record, uint32_t *ret)
{
    struct mp_json_record fields;
    size_t at;

    CHECK_INT(mp_json_scan(json, mp_str_c(record), &fields, &at), MP_JSON_OK);
    return mp_filter_ask(filter, json, &fields, ret);
}

static void integers_match_numbers_and_their_digits(void)
{
    static const int64_t integers[] = {7, -3, 100};
    static const struct mp_str texts[] = {MP_STR_INIT("7"), MP_STR_INIT("-3"), MP_STR_INIT("100")};
    struct mp_filter_options options = {
        .field = MP_STR("team"), .integer = true, .integers = integers, .texts = texts, .count = 3};
    struct mp_filter *filter = mp_filter_new(&options);
    uint32_t value = 9;

    json = mp_json_new();
    CHECK_INT(ask(filter, "{\"x\":1,\"team\":-3}", &value), MP_FILTER_MATCH);
    CHECK_INT(value, 1);
    CHECK_INT(ask(filter, "{\"team\":\"100\"}", &value), MP_FILTER_MATCH);
    CHECK_INT(value, 2);
    CHECK_INT(ask(filter, "{\"team\":8}", &value), MP_FILTER_OTHER);
    CHECK_INT(ask(filter, "{\"team\":\"x\"}", &value), MP_FILTER_OTHER);
    CHECK_INT(ask(filter, "{\"team\":null}", &value), MP_FILTER_MISSING);
    CHECK_INT(ask(filter, "{\"team\":true}", &value), MP_FILTER_MISSING);
    CHECK_INT(ask(filter, "{\"team\":7.0}", &value), MP_FILTER_MISSING);
    CHECK_INT(ask(filter, "{\"teams\":7}", &value), MP_FILTER_MISSING);
    mp_json_keys_reset(json);
    mp_filter_keys_reset(filter);
    CHECK_INT(ask(filter, "{\"a\":1,\"b\":2,\"c\":3,\"team\":7}", &value), MP_FILTER_MATCH);
    mp_filter_free(filter);
    mp_json_free(json);
}

static void texts_match_texts_only(void)
{
    static const struct mp_str texts[] = {MP_STR_INIT("b"), MP_STR_INIT("a"), MP_STR_INIT("12")};
    struct mp_filter_options options = {.field = MP_STR("k"), .texts = texts, .count = 3};
    struct mp_filter *filter = mp_filter_new(&options);
    uint32_t value = 9;

    json = mp_json_new();
    CHECK_INT(ask(filter, "{\"k\":\"a\"}", &value), MP_FILTER_MATCH);
    CHECK_INT(value, 1);
    CHECK_INT(ask(filter, "{\"k\":\"c\"}", &value), MP_FILTER_OTHER);
    CHECK_INT(ask(filter, "{\"k\":12}", &value), MP_FILTER_MISSING);
    mp_filter_free(filter);
    mp_json_free(json);
}

static void uuids_match_in_any_spelling(void)
{
    static const struct mp_str texts[] = {MP_STR_INIT("none"),
                                          MP_STR_INIT("F79C3E09-677C-4BBD-A479-3F349CB785E7")};
    struct mp_filter_options options = {
        .field = MP_STR("u"), .texts = texts, .count = 2, .uuid = true};
    struct mp_filter *filter = mp_filter_new(&options);
    uint32_t value = 9;

    json = mp_json_new();
    CHECK_INT(mp_filter_unusable(filter), 1);
    CHECK_INT(ask(filter, "{\"u\":\"f79c3e09677c4bbda4793f349cb785e7\"}", &value), MP_FILTER_MATCH);
    CHECK_INT(value, 1);
    CHECK_INT(ask(filter, "{\"u\":\"f79c3e09677c4bbda4793f349cb785e8\"}", &value), MP_FILTER_OTHER);
    CHECK_INT(ask(filter, "{\"u\":\"none\"}", &value), MP_FILTER_MISSING);
    mp_filter_free(filter);
    mp_json_free(json);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(integers_match_numbers_and_their_digits),
        TEST(texts_match_texts_only),
        TEST(uuids_match_in_any_spelling),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
