/* tests/json/nested.c - nested values: compact text, where it lies, and how deep it may go. */
#include "help.h"

#include <stdio.h>

struct compact {
    struct mp_str sent, want;
    bool copied; /* the text is rewritten; else it lies in the record */
};

#define SAME(sent)                                                                                 \
    {                                                                                              \
        {"" sent, sizeof(sent) - 1}, {"" sent, sizeof(sent) - 1}, false                            \
    }
#define REWRITTEN(sent, want)                                                                      \
    {                                                                                              \
        {"" sent, sizeof(sent) - 1}, {"" want, sizeof(want) - 1}, true                             \
    }

/* clang-format off */
static const struct compact cases[] = {
    SAME("{}"), SAME("[]"), SAME("{\"k\":{}}"), SAME("[[],[[]],{}]"),
    SAME("{\"a\":1,\"b\":[true,false,null],\"c\":\"x\"}"),
    SAME("{\"a\":1,\"a\":2}"), /* duplicates inside are as sent */
    SAME("{\"b\":1,\"a\":2}"), /* and so is the order */
    /* numbers are as sent */
    SAME("[-0,-0.0,1E5,1e+05,1.50,0.10000000000000000000,123456789012345678901234567890]"),
    /* spaces inside strings stay */
    SAME("{\" a \":\" b\x7f \",\"[ ]\":\"{ : , }\"}"),
    /* escapes that are minimal */
    SAME("[\"\\\"\",\"\\\\\",\"\\b\\t\\n\\f\\r\"]"),
    SAME("[\"\\u0000\\u0001\\u000b\\u000e\\u001f\"]"), SAME("{\"\\n\":\"\\\"\"}"),
    SAME("[\"\xc3\xa9\xe6\x9d\xb1\xf0\x9f\x98\x80\"]"), SAME("[\"\\\\u0041\",\"\\\\/\"]"),
    /* white space */
    REWRITTEN("{ }", "{}"), REWRITTEN("[ ]", "[]"), REWRITTEN("[\n]", "[]"), REWRITTEN("{\"k\": 1}", "{\"k\":1}"),
    REWRITTEN("{\"k\" :1}", "{\"k\":1}"), REWRITTEN("{ \"k\":1}", "{\"k\":1}"), REWRITTEN("{\"k\":1 }", "{\"k\":1}"),
    REWRITTEN("{\"k\":1, \"l\":2}", "{\"k\":1,\"l\":2}"), REWRITTEN("{\"k\":1 ,\"l\":2}", "{\"k\":1,\"l\":2}"),
    REWRITTEN("[1, 2]", "[1,2]"), REWRITTEN("[1 ,2]", "[1,2]"), REWRITTEN("[ 1]", "[1]"), REWRITTEN("[1 ]", "[1]"),
    REWRITTEN("[\r\n\t 1\r\n\t ,\r\n\t 2\r\n\t ]", "[1,2]"), REWRITTEN("[[ ]]", "[[]]"), REWRITTEN("[{} ]", "[{}]"),
    REWRITTEN("{\"a b\" : \" c d \" , \"e\" : [ \"f g\" ] }", "{\"a b\":\" c d \",\"e\":[\"f g\"]}"),
    REWRITTEN("[true , false , null ]", "[true,false,null]"), REWRITTEN("[{ \"a\":[ 1 ]}]", "[{\"a\":[1]}]"),
    REWRITTEN("[-0 , 1E5 , 1.50]", "[-0,1E5,1.50]"),
    /* escapes that are not */
    REWRITTEN("[\"\\/\"]", "[\"/\"]"), REWRITTEN("[\"\\u0041\"]", "[\"A\"]"), REWRITTEN("{\"\\u0041\":1}", "{\"A\":1}"),
    REWRITTEN("[\"\\u00e9\"]", "[\"\xc3\xa9\"]"), REWRITTEN("[\"\\ud83d\\ude00\"]", "[\"\xf0\x9f\x98\x80\"]"),
    REWRITTEN("[\"\\u0022\"]", "[\"\\\"\"]"), REWRITTEN("[\"\\u005c\"]", "[\"\\\\\"]"), REWRITTEN("[\"\\u005C\"]", "[\"\\\\\"]"),
    REWRITTEN("[\"\\u002f\"]", "[\"/\"]"), REWRITTEN("[\"\\u007f\"]", "[\"\x7f\"]"), REWRITTEN("[\"\\u0020\"]", "[\" \"]"),
    REWRITTEN("[\"\\u0008\\u0009\\u000a\\u000c\\u000d\"]", "[\"\\b\\t\\n\\f\\r\"]"),
    REWRITTEN("[\"\\u000B\\u001F\"]", "[\"\\u000b\\u001f\"]"), REWRITTEN("[\"\\u000A\"]", "[\"\\n\"]"),
    REWRITTEN("[\"a\\nb\\/c\\td\"]", "[\"a\\nb/c\\td\"]"), REWRITTEN("[\"\\\"\\u0041\\\"\"]", "[\"\\\"A\\\"\"]"),
    REWRITTEN("[\"\\\\\\/\"]", "[\"\\\\/\"]"), REWRITTEN("[\"\\u2028\\uffff\"]", "[\"\xe2\x80\xa8\xef\xbf\xbf\"]"),
    REWRITTEN("[\"\\/ x \\u0041 \"]", "[\"/ x A \"]"), REWRITTEN("[\"\\u0020 \" , \" \\/\" ]", "[\"  \",\" /\"]"),
    REWRITTEN("{\"\\\"\": \"\\\"\"}", "{\"\\\"\":\"\\\"\"}"), REWRITTEN("[\"\\ud83d\\ude00\\ud83d\\ude00\" ]", "[\"\xf0\x9f\x98\x80\xf0\x9f\x98\x80\"]"),
};
/* clang-format on */

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void nested_text_is_compact_and_copied_only_when_it_must(void)
{
    struct pair pair = pair_new();

    for (size_t k = 0; k < COUNT(cases); k++) {
        const struct mp_json_field *value = scan_value(&pair, cases[k].sent);
        bool inside = value->text.data >= pair.bytes &&
                      value->text.data < pair.bytes + cases[k].sent.size + 6;

        CHECK_INT(value->kind, MP_JSON_NESTED);
        CHECK_INT(value->nested_object, cases[k].sent.data[0] == '{');
        CHECK_STR(value->text, cases[k].want);
        CHECK_INT(inside, !cases[k].copied);
    }
    pair_free(&pair);
}

static void nested_text_scanned_again_is_the_same(void)
{
    struct pair pair = pair_new();

    for (size_t k = 0; k < COUNT(cases); k++)
        CHECK_STR(scan_value(&pair, cases[k].want)->text, cases[k].want);
    pair_free(&pair);
}

/* White space of the top level is nobody's; it does not make nested values be copied. */
static void nested_text_lies_in_a_spaced_record(void)
{
    struct pair pair = pair_new();
    struct mp_str bytes = MP_STR(" { \"a\" : {\"b\":1} , \"c\" : [1] } \n");

    CHECK_FAULT(&pair, bytes, MP_JSON_OK);
    CHECK(pair.record.fields[0].text.data == bytes.data + 9);
    CHECK_STR(pair.record.fields[0].text, MP_STR("{\"b\":1}"));
    CHECK_STR(pair.record.fields[1].text, MP_STR("[1]"));
    pair_free(&pair);
}

static void nested_texts_of_one_record_do_not_disturb_each_other(void)
{
    struct pair pair = pair_new();

    CHECK_FAULT(&pair,
                MP_STR("{\"a\\n\":[ 1],\"b\":\"\\u0041\\u0042\",\"c\":{\"x\": \"\\/\"},\"d\":[1],"
                       "\"e\":{ \"y\":[2 ,3]},\"f\":\"\\\\\",\"g\":[\"\\ud83d\\ude00\",\"\\n\"]}"),
                MP_JSON_OK);
    CHECK_STR(pair.record.fields[0].text, MP_STR("[1]"));
    CHECK_STR(pair.record.fields[1].text, MP_STR("AB"));
    CHECK_STR(pair.record.fields[2].text, MP_STR("{\"x\":\"/\"}"));
    CHECK_STR(pair.record.fields[3].text, MP_STR("[1]"));
    CHECK_STR(pair.record.fields[4].text, MP_STR("{\"y\":[2,3]}"));
    CHECK_STR(pair.record.fields[5].text, MP_STR("\\"));
    CHECK_STR(pair.record.fields[6].text, MP_STR("[\"\xf0\x9f\x98\x80\",\"\\n\"]"));
    pair_free(&pair);
}

/* {"k": and then so many brackets: the record is level 1. */
static size_t deep(char *out, unsigned levels, bool object, bool spaced)
{
    size_t at = 0;

    out[at++] = '{';
    at += (size_t)sprintf(out + at, "\"k\":");
    for (unsigned k = 1; k < levels; k++) {
        if (k > 1 && object)
            at += (size_t)sprintf(out + at, "\"k\":");
        out[at++] = object ? '{' : '[';
        if (spaced)
            out[at++] = ' ';
    }
    for (unsigned k = 1; k < levels; k++)
        out[at++] = object ? '}' : ']';
    out[at++] = '}';
    return at;
}

static void nested_levels_up_to_the_limit(void)
{
    struct pair pair = pair_new();
    char *bytes = mp_alloc(100000), *inner = mp_alloc(100000);

    for (int object = 0; object < 2; object++) {
        size_t size, step = object ? 5 : 1;

        size = deep(bytes, MP_JSON_DEPTH_MAX, object, false);
        CHECK_FAULT(&pair, mp_str_n(bytes, size), MP_JSON_OK);
        CHECK_STR(pair.record.fields[0].text, mp_str_n(bytes + 5, size - 6));

        size = deep(bytes, MP_JSON_DEPTH_MAX + 1, object, false);
        CHECK_FAULT(&pair, mp_str_n(bytes, size), MP_JSON_DEPTH);
        CHECK_INT(pair.at, 5 + 1023 * step); /* the bracket of level 1,025 */

        size = deep(inner, MP_JSON_DEPTH_MAX, object, false);
        memcpy(bytes, inner, size);
        size = deep(bytes, MP_JSON_DEPTH_MAX, object, true);
        CHECK_FAULT(&pair, mp_str_n(bytes, size), MP_JSON_OK);
        CHECK_STR(pair.record.fields[0].text,
                  mp_str_n(inner + 5, deep(inner, MP_JSON_DEPTH_MAX, object, false) - 6));
    }
    pair_free(&pair);
    mp_free(bytes);
    mp_free(inner);
}

/* Levels count what is open, not what was. */
static void nested_many_values_side_by_side(void)
{
    struct pair pair = pair_new();
    size_t size = 0;
    char *bytes = mp_alloc(200000);

    size += (size_t)sprintf(bytes, "{\"k\":[");
    for (int k = 0; k < 5000; k++)
        size += (size_t)sprintf(bytes + size, "%s{\"a\":[%d]}", k ? "," : "", k);
    size += (size_t)sprintf(bytes + size, "]}");
    CHECK_FAULT(&pair, mp_str_n(bytes, size), MP_JSON_OK);
    CHECK_STR(pair.record.fields[0].text, mp_str_n(bytes + 5, size - 6));
    pair_free(&pair);
    mp_free(bytes);
}

static void depth_of_other_documents_is_refused_first(void)
{
    struct pair pair = pair_new();
    char bytes[3000];

    memset(bytes, '[', 1024);
    memset(bytes + 1024, ']', 1024);
    CHECK_FAULT(&pair, mp_str_n(bytes, 2048), MP_JSON_NOT_OBJECT);
    memset(bytes, '[', 1025);
    memset(bytes + 1025, ']', 1025);
    CHECK_FAULT(&pair, mp_str_n(bytes, 2050), MP_JSON_DEPTH);
    CHECK_INT(pair.at, 1024);
    memset(bytes, '[', 3000); /* never closed: the depth is seen first */
    CHECK_FAULT(&pair, mp_str_n(bytes, 3000), MP_JSON_DEPTH);
    pair_free(&pair);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(nested_text_is_compact_and_copied_only_when_it_must),
        TEST(nested_text_scanned_again_is_the_same),
        TEST(nested_text_lies_in_a_spaced_record),
        TEST(nested_texts_of_one_record_do_not_disturb_each_other),
        TEST(nested_levels_up_to_the_limit),
        TEST(nested_many_values_side_by_side),
        TEST(depth_of_other_documents_is_refused_first),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
