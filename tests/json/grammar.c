/* tests/json/grammar.c - what is JSON and what is not, each with its fault and the byte.
 *
 * The cases follow the grammar of RFC 8259 section by section, in the manner of N. Seriot,
 * "Parsing JSON is a Minefield" (2016). Each is tried as written, with white space around, and
 * behind a long string that moves it over the borders of blocks.
 */
#include "help.h"

#include <stdio.h>

struct refused {
    struct mp_str bytes;
    enum mp_json_fault fault;
    size_t at;
};

#define YES(text)                                                                                  \
    {                                                                                              \
        "" text, sizeof(text) - 1                                                                  \
    }
#define NO(text, fault, at)                                                                        \
    {                                                                                              \
        {"" text, sizeof(text) - 1}, MP_JSON_##fault, at                                           \
    }

/* clang-format off */
static const struct refused refused[] = {
    /* nothing */
    NO("", EMPTY, 0), NO(" ", EMPTY, 1), NO("\r\n\t ", EMPTY, 4),
    /* other documents */
    NO("42", NOT_OBJECT, 0), NO("-0", NOT_OBJECT, 0), NO("1.5e3", NOT_OBJECT, 0),
    NO("\"x\"", NOT_OBJECT, 0), NO("null", NOT_OBJECT, 0), NO("true", NOT_OBJECT, 0),
    NO("false", NOT_OBJECT, 0), NO("[]", NOT_OBJECT, 0), NO("  [1] ", NOT_OBJECT, 2),
    NO("[{\"a\":1},{\"a\":2}]", NOT_OBJECT, 0), NO("\"\\ud83d\\ude00\"", NOT_OBJECT, 0),
    /* framing */
    NO("\xef\xbb\xbf{\"a\":1}", SYNTAX, 0), NO("\xef\xbb\xbf", SYNTAX, 0),
    NO("{\"a\":1} x", SYNTAX, 8), NO("{\"a\":1}{\"a\":2}", SYNTAX, 7), NO("{}}", SYNTAX, 2),
    NO("{},", SYNTAX, 2), NO("{}\0", SYNTAX, 2), NO("\0{}", SYNTAX, 0), NO("{} []", SYNTAX, 3),
    NO("{}\"\"", SYNTAX, 2), NO("{}#", SYNTAX, 2), NO("{}//x", SYNTAX, 2), NO("{}/**/", SYNTAX, 2),
    NO("/**/{}", SYNTAX, 0), NO("{}\x0c", SYNTAX, 2), NO("\x0b{}", SYNTAX, 0),
    NO("\xc2\xa0{}", SYNTAX, 0), NO("{}\xe2\x80\xa8", SYNTAX, 2), NO("{}\x7f", SYNTAX, 2),
    NO("42 x", SYNTAX, 3), NO("[1]]", SYNTAX, 3), NO("nul", SYNTAX, 3), NO("tru", SYNTAX, 3),
    /* objects */
    NO("{", SYNTAX, 1), NO("}", SYNTAX, 0), NO("{{}", SYNTAX, 1), NO("{]", SYNTAX, 1),
    NO("{,}", SYNTAX, 1), NO("{\"a\"}", SYNTAX, 4), NO("{\"a\":}", SYNTAX, 5),
    NO("{\"a\" 1}", SYNTAX, 5), NO("{\"a\"::1}", SYNTAX, 5), NO("{\"a\",1}", SYNTAX, 4),
    NO("{:1}", SYNTAX, 1), NO("{1:1}", SYNTAX, 1), NO("{a:1}", SYNTAX, 1), NO("{'a':1}", SYNTAX, 1),
    NO("{null:1}", SYNTAX, 1), NO("{\"a\":1,}", SYNTAX, 7), NO("{\"a\":1,,\"b\":2}", SYNTAX, 7),
    NO("{\"a\":1 \"b\":2}", SYNTAX, 7), NO("{\"a\":1\"b\":2}", SYNTAX, 6), NO("{,\"a\":1}", SYNTAX, 1),
    NO("{\"a\":1;\"b\":2}", SYNTAX, 6), NO("{\"a\":1]", SYNTAX, 6), NO("{\"a\":1", SYNTAX, 6),
    NO("{\"a\":", SYNTAX, 5), NO("{\"a\"", SYNTAX, 4), NO("{\"a", SYNTAX, 3), NO("{\"", SYNTAX, 2),
    NO("{\"a\":1,", SYNTAX, 7), NO("{\"a\":1,\"b\"", SYNTAX, 10), NO("{\"a\"\x0c:1}", SYNTAX, 4),
    NO("{\"a\":1,}}", SYNTAX, 7), NO("{\"a\"=1}", SYNTAX, 4), NO("{\"a\":1 , }", SYNTAX, 9),
    NO("{\"a\":1,1}", SYNTAX, 7), NO("{\"a\":1,{}}", SYNTAX, 7), NO("{\"a\":1 /**/}", SYNTAX, 7),
    NO("{\"a\":{\"b\":1}", SYNTAX, 12), NO("{\"a\":{}", SYNTAX, 7), NO("{\"a\":{\"b\"}}", SYNTAX, 9),
    NO("{\"a\":{\"b\":1,}}", SYNTAX, 12), NO("{\"a\":{,}}", SYNTAX, 6), NO("{\"a\":{]}", SYNTAX, 6),
    NO("{\"a\":{\"b\":1]}", SYNTAX, 11), NO("{\"a\":{\"b\" :}}", SYNTAX, 11),
    NO("{\"a\":{\"b\":1 2}}", SYNTAX, 12), NO("{\"a\":{\"b\" 1}}", SYNTAX, 10),
    NO("{\"a\":{\"b\":1,2}}", SYNTAX, 12), NO("{\"a\":{1:2}}", SYNTAX, 6), NO("{\"a\":{\"b\":1}}}", SYNTAX, 13),
    /* arrays */
    NO("[", SYNTAX, 1), NO("]", SYNTAX, 0), NO("{\"a\":[}", SYNTAX, 6), NO("{\"a\":[,]}", SYNTAX, 6),
    NO("{\"a\":[1,]}", SYNTAX, 8), NO("{\"a\":[,1]}", SYNTAX, 6), NO("{\"a\":[1,,2]}", SYNTAX, 8),
    NO("{\"a\":[1 2]}", SYNTAX, 8), NO("{\"a\":[1:2]}", SYNTAX, 7), NO("{\"a\":[1}", SYNTAX, 7),
    NO("{\"a\":[1}]", SYNTAX, 7), NO("{\"a\":[[]}", SYNTAX, 8), NO("{\"a\":[]]}", SYNTAX, 7),
    NO("{\"a\":[\"x\"", SYNTAX, 9), NO("{\"a\":[\"x\":1]}", SYNTAX, 9), NO("{\"a\":[\"x\"\"y\"]}", SYNTAX, 9),
    NO("{\"a\":[\"x\" 1]}", SYNTAX, 10), NO("{\"a\":[{}{}]}", SYNTAX, 8), NO("{\"a\":[*]}", SYNTAX, 6),
    NO("{\"a\":[1,\n2\n,3,]}", SYNTAX, 14), NO("{\"a\":[\x0c]}", SYNTAX, 6), NO("{\"a\":[1", SYNTAX, 7),
    /* words */
    NO("{\"a\":t}", SYNTAX, 6), NO("{\"a\":tru}", SYNTAX, 8), NO("{\"a\":truex}", SYNTAX, 9),
    NO("{\"a\":True}", SYNTAX, 5), NO("{\"a\":TRUE}", SYNTAX, 5), NO("{\"a\":nul}", SYNTAX, 8),
    NO("{\"a\":nulll}", SYNTAX, 9), NO("{\"a\":None}", SYNTAX, 5), NO("{\"a\":fals}", SYNTAX, 9),
    NO("{\"a\":falsee}", SYNTAX, 10), NO("{\"a\":true\"b\"}", SYNTAX, 9), NO("{\"a\":NaN}", SYNTAX, 5),
    NO("{\"a\":nan}", SYNTAX, 6), NO("{\"a\":Infinity}", SYNTAX, 5), NO("{\"a\":-Infinity}", SYNTAX, 6),
    NO("{\"a\":undefined}", SYNTAX, 5), NO("{\"a\":[tru]}", SYNTAX, 9), NO("{\"a\":[nul", SYNTAX, 9),
    NO("{\"a\":[true1]}", SYNTAX, 10), NO("{\"a\":[NaN]}", SYNTAX, 6), NO("{\"a\":[fal\0e]}", SYNTAX, 9),
    NO("{\"a\":tr\xff""e}", UTF8, 7), NO("{\"a\":x}", SYNTAX, 5), NO("{\"a\":'x'}", SYNTAX, 5),
    NO("{\"a\":\\u0022x\"}", SYNTAX, 5), NO("{\"a\":(1)}", SYNTAX, 5), NO("{\"a\":`x`}", SYNTAX, 5),
    /* numbers */
    NO("{\"a\":01}", SYNTAX, 6), NO("{\"a\":-01}", SYNTAX, 7), NO("{\"a\":00}", SYNTAX, 6),
    NO("{\"a\":-00}", SYNTAX, 7), NO("{\"a\":+1}", SYNTAX, 5), NO("{\"a\":-}", SYNTAX, 6),
    NO("{\"a\":--1}", SYNTAX, 6), NO("{\"a\":-+1}", SYNTAX, 6), NO("{\"a\":- 1}", SYNTAX, 6),
    NO("{\"a\":1.}", SYNTAX, 7), NO("{\"a\":.5}", SYNTAX, 5), NO("{\"a\":-.5}", SYNTAX, 6),
    NO("{\"a\":1.e1}", SYNTAX, 7), NO("{\"a\":1e}", SYNTAX, 7), NO("{\"a\":1e+}", SYNTAX, 8),
    NO("{\"a\":1e-}", SYNTAX, 8), NO("{\"a\":1E}", SYNTAX, 7), NO("{\"a\":1e1.5}", SYNTAX, 8),
    NO("{\"a\":1e++1}", SYNTAX, 8), NO("{\"a\":1.2.3}", SYNTAX, 8), NO("{\"a\":1..2}", SYNTAX, 7),
    NO("{\"a\":1 000}", SYNTAX, 7), NO("{\"a\":1_000}", SYNTAX, 6), NO("{\"a\":1,000}", SYNTAX, 7),
    NO("{\"a\":0x10}", SYNTAX, 6), NO("{\"a\":1a}", SYNTAX, 6), NO("{\"a\":1n}", SYNTAX, 6),
    NO("{\"a\":0e}", SYNTAX, 7), NO("{\"a\":0.}", SYNTAX, 7), NO("{\"a\":1\xef\xbc\x92}", SYNTAX, 6),
    NO("{\"a\":\xef\xbc\x91}", SYNTAX, 5), NO("{\"a\":1\"", SYNTAX, 6), NO("{\"a\":1e400", NUMBER_RANGE, 5),
    NO("{\"a\":[01]}", SYNTAX, 7), NO("{\"a\":[-]}", SYNTAX, 7), NO("{\"a\":[1.]}", SYNTAX, 8),
    NO("{\"a\":[1e]}", SYNTAX, 8), NO("{\"a\":[1.5e+]}", SYNTAX, 11), NO("{\"a\":[-x]}", SYNTAX, 7),
    NO("{\"a\":[123456789012345678901234567890x]}", SYNTAX, 36), NO("{\"a\":12345678x}", SYNTAX, 13),
    NO("{\"a\":1e400}", NUMBER_RANGE, 5), NO("{\"a\":-1e400}", NUMBER_RANGE, 5),
    NO("{\"a\":[{\"b\":1e309}]}", NUMBER_RANGE, 11), NO("{\"a\":1e99999999999999999999}", NUMBER_RANGE, 5),
    NO("{\"a\":[0.1e310]}", NUMBER_RANGE, 6),
    /* strings */
    NO("{\"a\":\"x}", SYNTAX, 8), NO("{\"a\":\"x\\\"}", SYNTAX, 10), NO("{\"a\":x\"}", SYNTAX, 5),
    NO("{\"a\":\"a\tb\"}", CONTROL, 7), NO("{\"a\":\"a\nb\"}", CONTROL, 7), NO("{\"a\":\"\0\"}", CONTROL, 6),
    NO("{\"a\":\"\x1f\"}", CONTROL, 6), NO("{\"a\nb\":1}", CONTROL, 3), NO("{\"a\":[\"\r\"]}", CONTROL, 7),
    NO("{\"a\":\"\\x\"}", ESCAPE, 6), NO("{\"a\":\"\\a\"}", ESCAPE, 6), NO("{\"a\":\"\\'\"}", ESCAPE, 6),
    NO("{\"a\":\"\\0\"}", ESCAPE, 6), NO("{\"a\":\"\\U0041\"}", ESCAPE, 6), NO("{\"a\":\"\\\n\"}", ESCAPE, 6),
    NO("{\"a\":\"\\", ESCAPE, 6), NO("{\"a\":\"\\u", ESCAPE, 6), NO("{\"a\":\"\\u00", ESCAPE, 6),
    NO("{\"a\":\"\\u\"}", ESCAPE, 6), NO("{\"a\":\"\\u1\"}", ESCAPE, 6), NO("{\"a\":\"\\u00\"}", ESCAPE, 6),
    NO("{\"a\":\"\\u004\"}", ESCAPE, 6), NO("{\"a\":\"\\u00g0\"}", ESCAPE, 6), NO("{\"a\":\"\\u+041\"}", ESCAPE, 6),
    NO("{\"a\":\"\\u 041\"}", ESCAPE, 6), NO("{\"a\":\"ok\\u0041\\q\"}", ESCAPE, 14),
    NO("{\"a\":[\"\\u00\"]}", ESCAPE, 7), NO("{\"a\":{\"\\x\":1}}", ESCAPE, 7), NO("{\"\\x\":1}", ESCAPE, 2),
    NO("{\"a\":\"\\\xc3\xa9\"}", ESCAPE, 6), NO("{\"mid\":980,\"name\":\"caf\\u00\"}", ESCAPE, 22),
    NO("{\"a\":\"\\ud800\"}", SURROGATE, 6), NO("{\"a\":\"\\udc00\"}", SURROGATE, 6),
    NO("{\"a\":\"\\ud800x\"}", SURROGATE, 6), NO("{\"a\":\"\\ud800\\n\"}", SURROGATE, 6),
    NO("{\"a\":\"\\ud800\\u0041\"}", SURROGATE, 6), NO("{\"a\":\"\\ud800\\ud800\"}", SURROGATE, 6),
    NO("{\"a\":\"\\udc00\\ud800\"}", SURROGATE, 6), NO("{\"a\":\"\\ud83d\\ude00\\ud83d\"}", SURROGATE, 18),
    NO("{\"a\":\"\\ud83d\\ude00\\ude00\"}", SURROGATE, 18), NO("{\"a\":[\"\\udfff\"]}", SURROGATE, 7),
    NO("{\"\\udbff\":1}", SURROGATE, 2), NO("{\"a\":{\"\\uDC00\":1}}", SURROGATE, 7),
    NO("{\"s\":\"a\\ud800b\"}", SURROGATE, 7), NO("{\"a\":\"\\ud800", SURROGATE, 6),
    NO("{\"a\":\\\"b\"}", SYNTAX, 5), NO("{\\\"a\":1}", SYNTAX, 1), NO("{\"a\"\\:1}", SYNTAX, 4),
    NO("{\"a\":1\\}", SYNTAX, 6), NO("\\{}", SYNTAX, 0), NO("{}\\", SYNTAX, 2), NO("{\"a\":[\\\"\"]}", SYNTAX, 6),
    NO("{\"a\":\"b\"\\\"c\"}", SYNTAX, 8), NO("{\"a\":[1,\\]}", SYNTAX, 8),
    /* bytes that are not UTF-8 */
    NO("{\"a\":\"\xff\"}", UTF8, 6), NO("{\"a\":\"\xc0\x80\"}", UTF8, 6), NO("{\"a\":\"\xc1\xbf\"}", UTF8, 6),
    NO("{\"a\":\"\xe2\x82\"}", UTF8, 6), NO("{\"a\":\"\xe2\x82", UTF8, 6), NO("{\"a\":\"\x80\"}", UTF8, 6),
    NO("{\"a\":\"x\xbf\"}", UTF8, 7), NO("{\"a\":\"\xe0\x80\x80\"}", UTF8, 6), NO("{\"a\":\"\xe0\x9f\xbf\"}", UTF8, 6),
    NO("{\"a\":\"\xed\xa0\x80\"}", UTF8, 6), NO("{\"a\":\"\xed\xbf\xbf\"}", UTF8, 6),
    NO("{\"a\":\"\xf0\x80\x80\x80\"}", UTF8, 6), NO("{\"a\":\"\xf0\x8f\xbf\xbf\"}", UTF8, 6),
    NO("{\"a\":\"\xf4\x90\x80\x80\"}", UTF8, 6), NO("{\"a\":\"\xf5\x80\x80\x80\"}", UTF8, 6),
    NO("{\"a\":\"\xf8\x88\x80\x80\x80\"}", UTF8, 6), NO("{\"a\":\"\xf0\x9f\x98\"}", UTF8, 6),
    NO("{\"a\":\"\xc3\xa9\xa9\"}", UTF8, 8), NO("{\"\xff\":1}", UTF8, 2), NO("{\"a\":[\"\xfe\"]}", UTF8, 7),
    NO("{\"a\":{\"\xc3\":1}}", UTF8, 7), NO("\xff", UTF8, 0), NO("{\"a\":1}\xff", UTF8, 7), NO("{\xff}", UTF8, 1),
    NO("{\"a\":1\xe9}", UTF8, 6), NO("{\"a\":\"\\u0041\xa9\"}", UTF8, 12), NO("[\"\xff\"]", UTF8, 2),
    NO("\xfe\xff\0{\0}", UTF8, 0), NO("{\0\"\0a\0", SYNTAX, 1),
};

static const struct mp_str accepted[] = {
    YES("{}"), YES("{ }"), YES("\r\n\t {\n}\t "), YES("{\"\":0}"), YES("{\"a\":1}"), YES("{\"a\":1}\n"),
    YES(" { \"a\" : 1 , \"b\" : 2 } "), YES("{\"a\":true,\"b\":false,\"c\":null}"),
    YES("{\"a\":{}}"), YES("{\"a\":[]}"), YES("{\"a\":[{}]}"), YES("{\"a\":{\"b\":[]}}"), YES("{\"a\":{\"b\":{}}}"),
    YES("{\"a\": { } , \"b\" : [ ] }"), YES("{\"a\":[1,2,3]}"), YES("{\"a\":[ 1 , 2 , 3 ]}"),
    YES("{\"a\":[[[[[[]]]]]]}"), YES("{\"a\":[[],[[]],{}]}"), YES("{\"a\":[1,\"2\",true,false,null,{\"b\":1}]}"),
    YES("{\"a\":\n[\n1\n,\n2\n]\n}"), YES("{\"a\":[null]}"), YES("{\"a\":[true,false]}"),
    YES("{\"a\":[\"\"]}"), YES("{\"a\":{\"\":\"\"}}"), YES("{\"a\":1,\"a\":2}"), YES("{\"a\":{\"a\":1,\"a\":2}}"),
    YES("{\"a\":0}"), YES("{\"a\":-0}"), YES("{\"a\":0.0}"), YES("{\"a\":-0.0}"), YES("{\"a\":0e0}"),
    YES("{\"a\":0E+0}"), YES("{\"a\":0e999999999999}"), YES("{\"a\":1e5}"), YES("{\"a\":1E5}"), YES("{\"a\":1e+5}"),
    YES("{\"a\":1e-5}"), YES("{\"a\":1.5e-05}"), YES("{\"a\":1e00005}"), YES("{\"a\":123.456e78}"),
    YES("{\"a\":1e-400}"), YES("{\"a\":1e-99999999999999999999}"), YES("{\"a\":1e308}"),
    YES("{\"a\":1.7976931348623157e308}"), YES("{\"a\":9223372036854775807}"), YES("{\"a\":-9223372036854775808}"),
    YES("{\"a\":9223372036854775808}"), YES("{\"a\":123456789012345678901234567890}"),
    YES("{\"a\":[0,-0,0.0,1e5,-1.5E-5,12345678901234567890123]}"), YES("{\"a\":[1 ,-2\t,3\n]}"),
    YES("{\"a\":1\n}"), YES("{\"a\":1.0\t,\"b\":2}"), YES("{\"a\":12345678}"), YES("{\"a\":123456789}"),
    YES("{\"a\":\"\"}"), YES("{\"a\":\"x\"}"), YES("{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}"), YES("{\"a\":\"\\u0000\"}"),
    YES("{\"a\":\"\\u00e9\\u00E9\"}"), YES("{\"a\":\"\\uffff\\ufffe\\ufdd0\"}"), YES("{\"a\":\"\\ud83d\\ude00\"}"),
    YES("{\"a\":\"\\uD800\\uDC00\\udbff\\udfff\"}"), YES("{\"a\":\"\\\\u0041\"}"), YES("{\"a\":\"\\\\\"}"),
    YES("{\"a\":\"\\\\\\\\\"}"), YES("{\"a\":\"\\\\\\\"\"}"), YES("{\"a\":\"{}[]:,\"}"), YES("{\"a\":\"\x7f\"}"),
    YES("{\"a\":\"/* no comment */ // none\"}"), YES("{\"a\":\"\xc3\xa9\"}"), YES("{\"a\":\"\xe2\x82\xac\"}"),
    YES("{\"a\":\"\xf0\x9f\x98\x80\"}"), YES("{\"a\":\"\xef\xbf\xbf\xef\xb7\x90\"}"), YES("{\"a\":\"\xef\xbb\xbf\"}"),
    YES("{\"a\":\"\xed\x9f\xbf\xee\x80\x80\"}"), YES("{\"a\":\"\xf4\x8f\xbf\xbf\"}"), YES("{\"a\":\"\xf0\x90\x80\x80\"}"),
    YES("{\"a\":\"\xc2\x80\xdf\xbf\xe0\xa0\x80\"}"), YES("{\"a\":\"\xe2\x80\xa8\xe2\x80\xa9\"}"),
    YES("{\"\\u0061\":1}"), YES("{\"a\\nb\":1}"), YES("{\"\xe6\x9d\xb1\xe4\xba\xac\":1}"), YES("{\"a\\u0000b\":1}"),
    YES("{\"a\":[\"\\ud83d\\ude00\",\"\\/\"]}"), YES("{\"a\":{\"\\u0061\":\"\\\"\"}}"), YES("{\"a\":{\"\xd0\xbf\":[\"\xd0\xbf\"]}}"),
    YES("{\"a\":\"x\",\"b\":\"y\"}"), YES("{\"a\" :\"x\" ,\"b\" :\"y\" }"), YES("{\"a\":\t\"x\"}"), YES("{\"a\":\r\n{\"b\"\r\n:\r\n1\r\n}\r\n}"),
};
/* clang-format on */

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void grammar_refuses_each_with_its_fault_and_byte(void)
{
    struct pair pair = pair_new();

    for (size_t k = 0; k < COUNT(refused); k++) {
        enum mp_json_fault fault = scan(&pair, refused[k].bytes);

        if (fault != refused[k].fault || pair.at != refused[k].at)
            test_fail(__FILE__, __LINE__, "case %zu, %.*s: %s at %zu, not %s at %zu", k,
                      MP_STR_ARG(refused[k].bytes), mp_json_fault_name(fault), pair.at,
                      mp_json_fault_name(refused[k].fault), refused[k].at);
        CHECK(pair.record.fields == NULL); /* nothing is given */
    }
    CHECK_INT(mp_json_key_count(pair.fast), 0); /* a refused record leaves no trace */
    pair_free(&pair);
}

static void grammar_accepts(void)
{
    struct pair pair = pair_new();

    for (size_t k = 0; k < COUNT(accepted); k++) {
        enum mp_json_fault fault = scan(&pair, accepted[k]);

        if (fault != MP_JSON_OK)
            test_fail(__FILE__, __LINE__, "case %zu, %.*s: %s at %zu", k, MP_STR_ARG(accepted[k]),
                      mp_json_fault_name(fault), pair.at);
        CHECK_INT(pair.at, 0);
    }
    pair_free(&pair);
}

/* Puts white space in front of and behind every case. */
static void grammar_answers_the_same_with_white_space_around(void)
{
    struct pair pair = pair_new();
    char bytes[512];

    for (size_t k = 0; k < COUNT(refused) + COUNT(accepted); k++) {
        bool bad = k < COUNT(refused);
        struct mp_str text = bad ? refused[k].bytes : accepted[k - COUNT(refused)];
        enum mp_json_fault want = bad ? refused[k].fault : MP_JSON_OK;

        memcpy(bytes, "\n\r\t ", 4);
        memcpy(bytes + 4, text.data, text.size);
        memcpy(bytes + 4 + text.size, " \t\r\n", 4);
        if (bad && refused[k].at == text.size)
            continue; /* a cut record is another one with white space behind it */
        if (bad && (want == MP_JSON_UTF8 || want == MP_JSON_ESCAPE || want == MP_JSON_SURROGATE))
            want = scan(&pair,
                        mp_str_n(bytes, 4 + text.size)); /* its cut is the fault, or it is not */
        CHECK_FAULT(&pair, mp_str_n(bytes, 8 + text.size), want);
        if (bad)
            CHECK_INT(pair.at, refused[k].at + 4);
    }
    pair_free(&pair);
}

/* Puts every case that is an object behind a first field of all lengths up to three blocks. */
static void grammar_answers_the_same_across_block_borders(void)
{
    struct pair pair = pair_new();
    char bytes[1024];

    for (size_t k = 0; k < COUNT(refused) + COUNT(accepted); k++) {
        bool bad = k < COUNT(refused);
        struct mp_str text = bad ? refused[k].bytes : accepted[k - COUNT(refused)];
        enum mp_json_fault want = bad ? refused[k].fault : MP_JSON_OK;

        if (text.size < 3 || text.data[0] != '{' || text.data[1] != '"')
            continue;
        for (size_t fill = 0; fill < 200; fill++) {
            size_t head = fill + 8;

            memcpy(bytes, "{\"p\":\"", 6);
            memset(bytes + 6, 'p', fill);
            memcpy(bytes + 6 + fill, "\",", 2);
            memcpy(bytes + head, text.data + 1, text.size - 1);
            CHECK_FAULT(&pair, mp_str_n(bytes, head + text.size - 1), want);
            if (bad)
                CHECK_INT(pair.at, refused[k].at - 1 + head);
        }
    }
    pair_free(&pair);
}

static void grammar_has_enough_cases(void)
{
    CHECK(COUNT(refused) + COUNT(accepted) >= 300);
}

static void fault_names_are_snake_case_and_different(void)
{
    for (unsigned a = 0; a < MP_JSON_FAULTS; a++) {
        const char *name = mp_json_fault_name((enum mp_json_fault)a);

        CHECK(name[0] != 0);
        for (const char *c = name; *c; c++)
            CHECK((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_');
        for (unsigned b = 0; b < a; b++)
            CHECK(strcmp(name, mp_json_fault_name((enum mp_json_fault)b)) != 0);
    }
    CHECK_STR(mp_str_c(mp_json_fault_name(MP_JSON_NUMBER_RANGE)), MP_STR("number_range"));
    CHECK_STR(mp_str_c(mp_json_fault_name(MP_JSON_NOT_OBJECT)), MP_STR("not_object"));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(grammar_has_enough_cases),
        TEST(grammar_refuses_each_with_its_fault_and_byte),
        TEST(grammar_accepts),
        TEST(grammar_answers_the_same_with_white_space_around),
        TEST(grammar_answers_the_same_across_block_borders),
        TEST(fault_names_are_snake_case_and_different),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
