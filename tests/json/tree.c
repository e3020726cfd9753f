/* tests/json/tree.c - whole values as lists of nodes. */
#include "json/tree.h"

#include "base/mem.h"
#include "help.h"

#include <stdio.h>

struct node {
    uint8_t kind;
    const char *key; /* NULL: none */
    uint32_t end, count;
    const char *text; /* STRING */
    int64_t i64;      /* INT */
};

static void nodes_come_in_order_with_their_ends(void)
{
    static const struct node want[] = {
        {MP_JSON_NESTED, NULL, 8, 3, NULL, 0}, {MP_JSON_NESTED, "a", 5, 2, NULL, 0},
        {MP_JSON_INT, NULL, 3, 0, NULL, 1},    {MP_JSON_NESTED, NULL, 5, 1, NULL, 0},
        {MP_JSON_NULL, "b", 5, 0, NULL, 0},    {MP_JSON_STRING, "c", 6, 0, "x\n", 0},
        {MP_JSON_NESTED, "a", 8, 1, NULL, 0},  {MP_JSON_TRUE, "\xc3\xa9", 8, 0, NULL, 0},
    };
    struct mp_json *json = mp_json_new();
    struct mp_json_tree tree;

    CHECK(mp_json_tree(json,
                       MP_STR(" { \"a\" : [1 ,{\"b\":null}],\n\"c\":\"x\\n\",\"a\":"
                              "{\"\\u00e9\":true} } "),
                       &tree));
    CHECK_INT(tree.count, 8);
    for (uint32_t i = 0; i < tree.count && i < 8; i++) {
        const struct mp_json_node *node = &tree.nodes[i];

        CHECK_INT(node->value.kind, want[i].kind);
        CHECK_INT(node->end, want[i].end);
        if (want[i].kind == MP_JSON_NESTED)
            CHECK_INT(node->count, want[i].count);
        if (want[i].key)
            CHECK_STR(mp_json_key_name(json, node->value.key), mp_str_c(want[i].key));
        else
            CHECK_INT(node->value.key, MP_JSON_NO_KEY);
        if (want[i].text)
            CHECK_STR(node->value.text, mp_str_c(want[i].text));
        if (want[i].kind == MP_JSON_INT)
            CHECK_INT(node->value.i64, want[i].i64);
    }
    CHECK(tree.nodes[0].value.nested_object && !tree.nodes[1].value.nested_object);
    mp_json_free(json);
}

static void values_alone(void)
{
    struct mp_json *json = mp_json_new();
    struct mp_json_tree tree;

    CHECK(mp_json_tree(json, MP_STR(" -12 "), &tree));
    CHECK_INT(tree.nodes[0].value.i64, -12);
    CHECK(mp_json_tree(json, MP_STR("9223372036854775808"), &tree));
    CHECK_INT(tree.nodes[0].value.kind, MP_JSON_BIGINT);
    CHECK_STR(tree.nodes[0].value.text, MP_STR("9223372036854775808"));
    CHECK(mp_json_tree(json, MP_STR("1.5e2"), &tree));
    CHECK(tree.nodes[0].value.kind == MP_JSON_DOUBLE && tree.nodes[0].value.f64 == 150);
    CHECK(mp_json_tree(json, MP_STR("\t\"a\\u0000b\""), &tree));
    CHECK_STR(tree.nodes[0].value.text, MP_STR("a\0b"));
    CHECK(mp_json_tree(json, MP_STR("\"\""), &tree));
    CHECK_INT(tree.nodes[0].value.text.size, 0);
    CHECK(mp_json_tree(json, MP_STR("true"), &tree) && tree.nodes[0].value.kind == MP_JSON_TRUE);
    CHECK(mp_json_tree(json, MP_STR("false"), &tree) && tree.nodes[0].value.kind == MP_JSON_FALSE);
    CHECK(mp_json_tree(json, MP_STR("null"), &tree) && tree.nodes[0].value.kind == MP_JSON_NULL);
    CHECK_INT(tree.count, 1);
    CHECK_INT(tree.nodes[0].end, 1);
    mp_json_free(json);
}

/* What the scanner of records says of the text as a field's value. */
static bool field_would_be_good(struct mp_json *json, struct mp_str text)
{
    char *record = mp_alloc(text.size + 16);
    struct mp_json_record fields;
    size_t at;
    bool good;

    memcpy(record, "{\"v\":", 5);
    memcpy(record + 5, text.data, text.size);
    record[5 + text.size] = '}';
    good = mp_json_scan(json, mp_str_n(record, text.size + 6), &fields, &at) == MP_JSON_OK &&
           fields.count == 1;
    memcpy(record, "{\"v\":[", 6); /* 1,"v":2 is no value of a list */
    memcpy(record + 6, text.data, text.size);
    memcpy(record + 6 + text.size, "]}", 2);
    good = good && mp_json_scan(json, mp_str_n(record, text.size + 8), &fields, &at) == MP_JSON_OK;
    mp_free(record);
    return good;
}

static void whatever_is_wrong_is_refused(void)
{
    static const char *const wrong[] = {
        "",
        " ",
        "{",
        "}",
        "[",
        "]",
        "[1",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{a:1}",
        "{1:1}",
        "[1}",
        "{\"a\":1]",
        "[1]]",
        "[[1]",
        "{}{}",
        "1 2",
        "01",
        "+1",
        "-",
        "1.",
        ".5",
        "1e",
        "1e400",
        "[1e400]",
        "nul",
        "nulll",
        "TRUE",
        "NaN",
        "\"",
        "\"a",
        "a\"",
        "\"\\x\"",
        "\"\\\"",
        "\"a\"b",
        "\"a\" \"b\"",
        "\"\\ud800\"",
        "\"\n\"",
        "[\"\x01\"]",
        "\"\xff\"",
        "[\"\xc0\x80\"]",
        "\xef\xbb\xbf[]",
        "[1]x",
        "/**/1",
    };
    struct mp_json *json = mp_json_new();
    struct mp_json_tree tree = {0};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        CHECK(!mp_json_tree(json, mp_str_c(wrong[i]), &tree));
        CHECK(!field_would_be_good(json, mp_str_c(wrong[i])));
    }
    CHECK(!tree.nodes);
    mp_json_free(json);
}

static void depth_is_bounded(void)
{
    struct mp_json *json = mp_json_new();
    char text[2 * (MP_JSON_DEPTH_MAX + 1)];
    struct mp_json_tree tree;

    for (uint32_t depth = MP_JSON_DEPTH_MAX; depth <= MP_JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        CHECK_INT(mp_json_tree(json, mp_str_n(text, 2 * (size_t)depth), &tree),
                  depth == MP_JSON_DEPTH_MAX);
    }
    mp_json_free(json);
}

/* Random texts of a small alphabet, many of them JSON: the tree takes what the scanner takes. */
static void agrees_with_the_scanner_of_records(void)
{
    static const char *const parts[] = {"{",     "}",        "[",  "]",       ",",    ":",
                                        "\"a\"", "\"b\\n\"", "1",  "-2.5",    "true", "null",
                                        " ",     "\"",       "\\", "{\"k\":", "[1,"};
    struct mp_json *json = mp_json_new(), *scanner = mp_json_new();
    uint64_t random = 88172645463325252u;
    unsigned good = 0;

    for (unsigned round = 0; round < 200000; round++) {
        struct mp_json_tree tree;
        char text[64] = "";
        bool taken;

        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        for (uint64_t bits = random, k = 0; k < 1 + (random >> 60) / 2; k++, bits /= 17)
            strcat(text, parts[bits % 17]);
        taken = mp_json_tree(json, mp_str_c(text), &tree);
        CHECK_INT(taken, field_would_be_good(scanner, mp_str_c(text)));
        good += taken;
    }
    CHECK(good > 2000);
    mp_json_free(json);
    mp_json_free(scanner);
}

static void keys_keep_their_numbers(void)
{
    struct mp_json *json = mp_json_new();
    struct mp_json_tree tree;
    uint32_t a;

    CHECK(mp_json_tree(json, MP_STR("{\"a\":1,\"b\":{\"a\":2}}"), &tree));
    a = tree.nodes[1].value.key;
    CHECK_INT(tree.nodes[3].value.key, a);
    CHECK(mp_json_tree(json, MP_STR("{\"c\":0,\"\\u0061\":1}"), &tree));
    CHECK_INT(tree.nodes[2].value.key, a);
    CHECK_INT(mp_json_key_count(json), 3);
    mp_json_free(json);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(nodes_come_in_order_with_their_ends), TEST(values_alone),
        TEST(whatever_is_wrong_is_refused),        TEST(depth_is_bounded),
        TEST(agrees_with_the_scanner_of_records),  TEST(keys_keep_their_numbers),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
