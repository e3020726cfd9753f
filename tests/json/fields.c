/* tests/json/fields.c - top-level fields: kinds, strings, names, duplicates. */
#include "help.h"

#include "base/buf.h"
#include "json/json_priv.h"

#include <stdio.h>
#include <time.h>

/* Does the text lie inside the bytes, so that nothing was copied? */
static bool points_into(struct mp_str text, struct mp_str bytes)
{
    return text.data >= bytes.data && text.data + text.size <= bytes.data + bytes.size;
}

static void fields_come_in_order_with_kind_and_value(void)
{
    struct pair pair = pair_new();
    struct mp_str bytes =
        MP_STR("{\"n\":null,\"f\":false,\"t\":true,\"i\":-12,\"b\":18446744073709551616,"
               "\"d\":2.5,\"s\":\"text\",\"o\":{\"x\":1},\"a\":[1,2]}");
    static const uint8_t kinds[] = {MP_JSON_NULL,   MP_JSON_FALSE,  MP_JSON_TRUE,
                                    MP_JSON_INT,    MP_JSON_BIGINT, MP_JSON_DOUBLE,
                                    MP_JSON_STRING, MP_JSON_NESTED, MP_JSON_NESTED};
    static const char names[] = "nftibdsoa";

    CHECK_FAULT(&pair, bytes, MP_JSON_OK);
    CHECK_INT(pair.record.count, 9);
    for (uint32_t k = 0; k < 9; k++) {
        CHECK_INT(pair.record.fields[k].kind, kinds[k]);
        CHECK_INT(pair.record.fields[k].key, k);
        CHECK_STR(mp_json_key_name(pair.fast, k), mp_str_n(&names[k], 1));
    }
    CHECK_INT(field(&pair, "i")->i64, -12);
    CHECK_STR(field(&pair, "i")->text, MP_STR("-12"));
    CHECK_STR(field(&pair, "b")->text, MP_STR("18446744073709551616"));
    CHECK_DOUBLE(field(&pair, "d")->f64, 2.5);
    CHECK_STR(field(&pair, "d")->text, MP_STR("2.5"));
    CHECK_STR(field(&pair, "s")->text, MP_STR("text"));
    CHECK_STR(field(&pair, "o")->text, MP_STR("{\"x\":1}"));
    CHECK_STR(field(&pair, "a")->text, MP_STR("[1,2]"));
    CHECK(field(&pair, "o")->nested_object);
    CHECK(!field(&pair, "a")->nested_object);
    for (uint32_t k = 0; k < 9; k++)
        if (pair.record.fields[k].text.size)
            CHECK(points_into(pair.record.fields[k].text, bytes));
    pair_free(&pair);
}

static void fields_of_an_empty_object_are_none(void)
{
    struct pair pair = pair_new();

    CHECK_FAULT(&pair, MP_STR(" {\n} "), MP_JSON_OK);
    CHECK_INT(pair.record.count, 0);
    CHECK_INT(pair.at, 0);
    CHECK_INT(mp_json_key_count(pair.fast), 0);
    pair_free(&pair);
}

struct spelling {
    struct mp_str sent, decoded;
};

#define SPELLING(sent, decoded)                                                                    \
    {                                                                                              \
        {"" sent, sizeof(sent) - 1},                                                               \
        {                                                                                          \
            "" decoded, sizeof(decoded) - 1                                                        \
        }                                                                                          \
    }

static const struct spelling spellings[] = {
    SPELLING("", ""),
    SPELLING("x", "x"),
    SPELLING("\\\"", "\""),
    SPELLING("\\\\", "\\"),
    SPELLING("\\/", "/"),
    SPELLING("\\b\\f\\n\\r\\t", "\b\f\n\r\t"),
    SPELLING("\\u0000", "\0"),
    SPELLING("a\\u0000b", "a\0b"),
    SPELLING("\\u0041", "A"),
    SPELLING("\\u007f", "\x7f"),
    SPELLING("\\u0080", "\xc2\x80"),
    SPELLING("\\u00e9", "\xc3\xa9"),
    SPELLING("\\u00E9", "\xc3\xa9"),
    SPELLING("\\u07ff", "\xdf\xbf"),
    SPELLING("\\u0800", "\xe0\xa0\x80"),
    SPELLING("\\u20ac", "\xe2\x82\xac"),
    SPELLING("\\ud7ff", "\xed\x9f\xbf"),
    SPELLING("\\ue000", "\xee\x80\x80"),
    SPELLING("\\uffff", "\xef\xbf\xbf"),
    SPELLING("\\ud800\\udc00", "\xf0\x90\x80\x80"),
    SPELLING("\\ud83d\\ude00", "\xf0\x9f\x98\x80"),
    SPELLING("\\uDBFF\\uDFFF", "\xf4\x8f\xbf\xbf"),
    SPELLING("\\\\u0041", "\\u0041"),
    SPELLING("\\\\\\\\", "\\\\"),
    SPELLING("\\\\\\\"", "\\\""),
    SPELLING("in\\nthe\\tmiddle", "in\nthe\tmiddle"),
    SPELLING("\\ud83d\\ude00\\ud83d\\ude00\\n", "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\n"),
    SPELLING("plain \xf0\x9f\x98\x80 \\u00e9 plain", "plain \xf0\x9f\x98\x80 \xc3\xa9 plain"),
    SPELLING("\\u005c\\u0022\\u002F", "\\\"/"),
};

static void string_values_are_decoded(void)
{
    struct pair pair = pair_new();
    char bytes[256];

    for (size_t k = 0; k < sizeof(spellings) / sizeof(*spellings); k++) {
        int size = snprintf(bytes, sizeof(bytes), "\"%.*s\"", MP_STR_ARG(spellings[k].sent));
        const struct mp_json_field *value = scan_value(&pair, mp_str_n(bytes, (size_t)size));

        CHECK_INT(value->kind, MP_JSON_STRING);
        CHECK_STR(value->text, spellings[k].decoded);
    }
    pair_free(&pair);
}

static void names_are_decoded(void)
{
    struct pair pair = pair_new();
    char bytes[256];

    for (size_t k = 0; k < sizeof(spellings) / sizeof(*spellings); k++) {
        int size = snprintf(bytes, sizeof(bytes), "{\"%.*s\":1}", MP_STR_ARG(spellings[k].sent));

        CHECK_FAULT(&pair, mp_str_n(bytes, (size_t)size), MP_JSON_OK);
        CHECK_STR(mp_json_key_name(pair.fast, pair.record.fields[0].key), spellings[k].decoded);
    }
    pair_free(&pair);
}

/* "a\"" with its escape and a name that is a backslash and a quote are told apart. */
static void names_with_escapes_are_not_taken_for_their_spelling(void)
{
    struct pair pair = pair_new();
    uint32_t plain, spelled;

    CHECK_FAULT(&pair, MP_STR("{\"a\\\\n\":1}"), MP_JSON_OK); /* a, backslash, n */
    spelled = pair.record.fields[0].key;
    CHECK_FAULT(&pair, MP_STR("{\"a\\n\":1}"), MP_JSON_OK); /* a, line feed */
    plain = pair.record.fields[0].key;
    CHECK(plain != spelled);
    CHECK_STR(mp_json_key_name(pair.fast, spelled), MP_STR("a\\n"));
    CHECK_STR(mp_json_key_name(pair.fast, plain), MP_STR("a\n"));
    CHECK_FAULT(&pair, MP_STR("{\"a\\\\n\":1}"), MP_JSON_OK);
    CHECK_INT(pair.record.fields[0].key, spelled);
    pair_free(&pair);
}

static void names_keep_their_number_in_every_record(void)
{
    struct pair pair = pair_new();
    uint32_t a, b, c;

    CHECK_FAULT(&pair, MP_STR("{\"a\":1,\"b\":2,\"c\":3}"), MP_JSON_OK);
    a = field(&pair, "a")->key, b = field(&pair, "b")->key, c = field(&pair, "c")->key;
    CHECK_FAULT(&pair, MP_STR("{\"c\":1,\"a\":2,\"b\":3}"), MP_JSON_OK);
    CHECK_INT(pair.record.fields[0].key, c);
    CHECK_INT(pair.record.fields[1].key, a);
    CHECK_INT(pair.record.fields[2].key, b);
    CHECK_FAULT(&pair, MP_STR("{\"\\u0062\":1,\"\\u0063\":3}"), MP_JSON_OK);
    CHECK_INT(pair.record.fields[0].key, b);
    CHECK_INT(pair.record.fields[1].key, c);
    CHECK_FAULT(&pair, MP_STR("{\"b\":1,\"d\":2}"), MP_JSON_OK);
    CHECK_INT(pair.record.fields[1].key, 3);
    CHECK_INT(mp_json_key_count(pair.fast), 4);
    pair_free(&pair);
}

/* Names of all lengths that differ in one byte only, asked in changing order. */
static void names_that_differ_in_one_byte_are_told_apart(void)
{
    struct pair pair = pair_new();
    char bytes[256];
    uint32_t count = 0;

    for (int round = 0; round < 2; round++)
        for (int size = 1; size < 70; size++)
            for (int place = 0; place < size; place++) {
                char name[80];

                memset(name, 'n', sizeof(name));
                name[place] = 'm';
                snprintf(
                    bytes, sizeof(bytes), "{\"%.*s\":%d,\"%.*s\":0}", size, name, place, size,
                    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn");
                CHECK_FAULT(&pair, mp_str_c(bytes), MP_JSON_OK);
                CHECK_INT(pair.record.count, 2);
                CHECK_INT(pair.record.fields[0].i64, place);
                CHECK_STR(mp_json_key_name(pair.fast, pair.record.fields[0].key),
                          mp_str_n(name, (size_t)size));
                count += round == 0;
            }
    CHECK_INT(mp_json_key_count(pair.fast), count + 69);
    pair_free(&pair);
}

static void names_are_not_kept_from_a_refused_record(void)
{
    struct pair pair = pair_new();

    CHECK_FAULT(&pair, MP_STR("{\"a\":1}"), MP_JSON_OK);
    CHECK_FAULT(&pair, MP_STR("{\"a\":1,\"new\":2,\"bad\":}"), MP_JSON_SYNTAX);
    CHECK_INT(mp_json_key_count(pair.fast), 1);
    CHECK_FAULT(&pair, MP_STR("{\"b\":1,\"a\":2,\"b\":[1,}"), MP_JSON_SYNTAX);
    CHECK_INT(mp_json_key_count(pair.fast), 1);
    CHECK_FAULT(&pair, MP_STR("{\"b\":1}"), MP_JSON_OK);
    CHECK_INT(pair.record.fields[0].key, 1);
    pair_free(&pair);
}

static void names_are_forgotten_by_reset(void)
{
    struct pair pair = pair_new();
    size_t empty = mp_json_key_bytes(pair.fast);
    char bytes[64];

    for (int k = 0; k < 10000; k++) {
        snprintf(bytes, sizeof(bytes), "{\"key number %d\":%d}", k, k);
        CHECK_FAULT(&pair, mp_str_c(bytes), MP_JSON_OK);
    }
    CHECK_INT(mp_json_key_count(pair.fast), 10000);
    CHECK(mp_json_key_bytes(pair.fast) > empty + 10000 * 10);
    CHECK_STR(mp_json_key_name(pair.fast, 4321), MP_STR("key number 4321"));
    forget_keys(&pair);
    CHECK_INT(mp_json_key_count(pair.fast), 0);
    CHECK_INT(mp_json_key_bytes(pair.fast), empty);
    CHECK_FAULT(&pair, MP_STR("{\"again\":1,\"key number 1\":2}"), MP_JSON_OK);
    CHECK_INT(pair.record.fields[0].key, 0);
    CHECK_INT(pair.record.fields[1].key, 1);
    CHECK_STR(mp_json_key_name(pair.fast, 0), MP_STR("again"));
    pair_free(&pair);
}

static void duplicates_put_the_last_value_at_the_first_place(void)
{
    struct pair pair = pair_new();

    CHECK_FAULT(&pair, MP_STR("{\"a\":1,\"b\":2,\"a\":\"three\",\"c\":4}"), MP_JSON_OK);
    CHECK_INT(pair.record.count, 3);
    CHECK_INT(pair.record.fields[0].kind, MP_JSON_STRING);
    CHECK_STR(pair.record.fields[0].text, MP_STR("three"));
    CHECK_STR(mp_json_key_name(pair.fast, pair.record.fields[0].key), MP_STR("a"));
    CHECK_INT(pair.record.fields[1].i64, 2);
    CHECK_INT(pair.record.fields[2].i64, 4);

    CHECK_FAULT(&pair, MP_STR("{\"a\":1,\"\\u0061\":2}"), MP_JSON_OK);
    CHECK_INT(pair.record.count, 1);
    CHECK_INT(pair.record.fields[0].i64, 2);

    CHECK_FAULT(&pair, MP_STR("{\"a\":{\"x\": [1]},\"a\":[2 ],\"a\":null}"), MP_JSON_OK);
    CHECK_INT(pair.record.count, 1);
    CHECK_INT(pair.record.fields[0].kind, MP_JSON_NULL);
    CHECK_INT(pair.record.fields[0].text.size, 0);
    CHECK(!pair.record.fields[0].nested_object);

    CHECK_FAULT(&pair, MP_STR("{\"b\":9}"), MP_JSON_OK); /* nothing is left from before */
    CHECK_INT(pair.record.count, 1);
    CHECK_INT(pair.record.fields[0].i64, 9);
    pair_free(&pair);
}

/* One record of many different keys, each twice. */
static char *many_keys(uint32_t count, size_t *ret_size)
{
    char *bytes = mp_alloc((size_t)count * 2 * 24 + 16), *out = bytes;

    *out++ = '{';
    for (int round = 0; round < 2; round++)
        for (uint32_t k = 0; k < count; k++)
            out += sprintf(out, "\"k_%u\":%u,", k, k + (uint32_t)round);
    out[-1] = '}';
    *ret_size = (size_t)(out - bytes);
    return bytes;
}

static double scan_many(uint32_t count)
{
    struct pair pair = pair_new();
    struct timespec from, to;
    size_t size;
    char *bytes = many_keys(count, &size);

    clock_gettime(CLOCK_MONOTONIC, &from);
    CHECK_FAULT(&pair, mp_str_n(bytes, size), MP_JSON_OK);
    clock_gettime(CLOCK_MONOTONIC, &to);
    CHECK_INT(pair.record.count, count);
    for (uint32_t k = 0; k < count; k++)
        CHECK_INT(pair.record.fields[k].i64, k + 1);
    mp_free(bytes);
    pair_free(&pair);
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

static void duplicates_among_100000_names_cost_linear_time(void)
{
    CHECK(scan_many(100000) < 5.0); /* some 20 ms; comparing all with all, 20,000,000,000 steps */
}

/* After 2^32 records the serials come again; no key may seem to be in the record already that was
 * in the one of the same serial long ago. */
static void duplicates_are_told_when_the_serial_wraps(void)
{
    static const char *const later[] = {"{\"c\":1}", "{\"c\":1,\"a\":2}", "{\"c\":1,\"b\":2}",
                                        "{\"d\":1,\"e\":2}"};
    struct mp_json *json = mp_json_new();
    struct mp_json_record record;
    size_t at;

    CHECK_INT(mp_json_scan(json, MP_STR("{\"a\":1,\"b\":2,\"d\":3}"), &record, &at), MP_JSON_OK);
    CHECK_INT(json->serial, 1);
    json->serial = UINT32_MAX - 1;
    for (uint32_t k = 0; k < 4; k++) {
        CHECK_INT(mp_json_scan(json, mp_str_c(later[k]), &record, &at), MP_JSON_OK);
        CHECK_INT(record.count, k ? 2 : 1);
        CHECK_INT(record.fields[0].i64, 1);
    }
    mp_json_free(json);
}

/* Records that leave out any keys of one order, and some in an order of their own. */
static void names_left_out_or_moved_are_found(void)
{
    static const char names[] = "abcdefghijklmnop";
    struct pair pair = pair_new();
    uint32_t state = 12345;

    for (int round = 0; round < 20000; round++) {
        char bytes[256], sent[17];
        uint32_t count = 0;
        int size = 1;

        bytes[0] = '{';
        state = state * 1664525 + 1013904223;
        for (uint32_t k = 0; k < 16; k++)
            if (state >> (8 + k) & 1)
                sent[count++] = names[k];
        for (uint32_t k = 1; round % 3 == 0 && k < count; k++) { /* swap with an earlier one */
            uint32_t other = (state >> 4) % k;
            char name = sent[k];

            sent[k] = sent[other], sent[other] = name;
        }
        for (uint32_t k = 0; k < count; k++)
            size += sprintf(bytes + size, "%s\"%c\":%d", k ? "," : "", sent[k], sent[k]);
        bytes[size++] = '}';
        CHECK_FAULT(&pair, mp_str_n(bytes, (size_t)size), MP_JSON_OK);
        CHECK_INT(pair.record.count, count);
        for (uint32_t k = 0; k < count; k++) {
            CHECK_STR(mp_json_key_name(pair.fast, pair.record.fields[k].key),
                      mp_str_n(&sent[k], 1));
            CHECK_INT(pair.record.fields[k].i64, sent[k]);
        }
    }
    CHECK_INT(mp_json_key_count(pair.fast), 16);
    pair_free(&pair);
}

/* An outsized record, ordinary ones and a larger one, in turns. */
static void records_of_any_size_follow_each_other(void)
{
    struct pair pair = pair_new();

    for (size_t round = 0; round < 6; round++) {
        size_t size = (round + 1) << 20;
        char *bytes = mp_alloc(size);

        memcpy(bytes, "{\"k\":[ \"", 8);
        memset(bytes + 8, 'x', size - 11);
        memcpy(bytes + size - 3, "\"]}", 3);
        CHECK_FAULT(&pair, mp_str_n(bytes, size), MP_JSON_OK);
        CHECK_INT(pair.record.fields[0].text.size, size - 7);
        CHECK_INT(pair.record.fields[0].text.data[1], '"');
        CHECK_FAULT(&pair, MP_STR("{\"k\":\"\\u0041\"}"), MP_JSON_OK);
        CHECK_STR(pair.record.fields[0].text, MP_STR("A"));
        mp_free(bytes);
    }
    pair_free(&pair);
}

/* The most strings, escapes and cuts that so many bytes can hold, good or not. */
static void what_an_outsized_record_needed_goes_back(void)
{
    struct mp_json *json = mp_json_new();
    struct mp_buf record = MP_BUF_INIT(8 << 20);
    struct mp_json_record fields;
    size_t at;

    for (int k = 0; k < 300000; k++)
        mp_buf_printf(&record, "%c\"%d\":0", k ? ',' : '{', k);
    mp_buf_add_byte(&record, '}');
    CHECK_INT(mp_json_scan(json, mp_buf_str(&record), &fields, &at), MP_JSON_OK);
    CHECK_INT(fields.count, 300000);
    CHECK(json->field_capacity >= 300000 && json->room_bytes >= record.size);
    CHECK_INT(mp_json_scan(json, MP_STR("{\"7\":1}"), &fields, &at), MP_JSON_OK);
    CHECK_INT(fields.count, 1);
    CHECK(json->field_capacity < 1000 && json->room_bytes < 1000);
    CHECK_INT(mp_json_scan(json, mp_buf_str(&record), &fields, &at), MP_JSON_OK);
    CHECK_INT(fields.count, 300000);
    CHECK_INT(fields.fields[299999].key, 299999);
    mp_json_free(json);
    mp_buf_fini(&record);
}

static void records_that_fill_the_index(void)
{
    static const char *const fillings[] = {"\\n", "\"\"", " 1", "1 ", ", ", "\\/", "\"\"\"\\"};

    for (size_t k = 0; k < sizeof(fillings) / sizeof(*fillings); k++)
        for (size_t size = 16; size < 700; size++) {
            struct pair pair = pair_new(); /* with room for this record only */
            char *bytes = mp_alloc(size);

            for (size_t at = 0; at < size; at++)
                bytes[at] = fillings[k][at % strlen(fillings[k])];
            memcpy(bytes, "{\"k\":[\"", 7);
            memcpy(bytes + size - 3, "\"]}", 3);
            scan(&pair, mp_str_n(bytes, size));
            bytes[6] = ' ';
            bytes[size - 3] = ' ';
            scan(&pair, mp_str_n(bytes, size));
            mp_free(bytes);
            pair_free(&pair);
        }
}

static void texts_stay_until_the_next_scan(void)
{
    struct mp_json *json = mp_json_new();
    struct mp_json_record record;
    size_t at;

    CHECK_INT(mp_json_scan(
                  json, MP_STR("{\"a\":\"x\\ny\",\"b\":{\"k\": 1},\"c\":\"\\u00e9\",\"a\\n\":[ ]}"),
                  &record, &at),
              MP_JSON_OK);
    CHECK_STR(record.fields[0].text, MP_STR("x\ny"));
    CHECK_STR(record.fields[1].text, MP_STR("{\"k\":1}"));
    CHECK_STR(record.fields[2].text, MP_STR("\xc3\xa9"));
    CHECK_STR(record.fields[3].text, MP_STR("[]"));
    mp_json_free(json);
}

static void refused_records_write_nothing(void)
{
    struct mp_json *json = mp_json_new();
    struct mp_json_record record = {.count = 77};
    size_t at = 0;

    CHECK_INT(mp_json_scan(json, MP_STR("{\"a\":1}x"), &record, &at), MP_JSON_SYNTAX);
    CHECK_INT(record.count, 77);
    CHECK_INT(at, 7);
    mp_json_free(json);
}

static void isa_is_named(void)
{
    struct pair pair = pair_new();
    const char *want = "portable";

#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bw"))
        want = "avx512";
    else if (__builtin_cpu_supports("avx2"))
        want = "avx2";
#elif defined(__aarch64__)
    want = "neon";
#endif
    CHECK_STR(mp_str_c(mp_json_isa(pair.fast)), mp_str_c(want));
    CHECK_STR(mp_str_c(mp_json_isa(pair.others[pair.other_count - 1])), MP_STR("portable"));
    pair_free(&pair);
    mp_json_free(NULL);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(fields_come_in_order_with_kind_and_value),
        TEST(fields_of_an_empty_object_are_none),
        TEST(string_values_are_decoded),
        TEST(names_are_decoded),
        TEST(names_with_escapes_are_not_taken_for_their_spelling),
        TEST(names_keep_their_number_in_every_record),
        TEST(names_that_differ_in_one_byte_are_told_apart),
        TEST(names_are_not_kept_from_a_refused_record),
        TEST(names_are_forgotten_by_reset),
        TEST(duplicates_put_the_last_value_at_the_first_place),
        TEST(duplicates_among_100000_names_cost_linear_time),
        TEST(duplicates_are_told_when_the_serial_wraps),
        TEST(names_left_out_or_moved_are_found),
        TEST(records_of_any_size_follow_each_other),
        TEST(what_an_outsized_record_needed_goes_back),
        TEST(records_that_fill_the_index),
        TEST(texts_stay_until_the_next_scan),
        TEST(refused_records_write_nothing),
        TEST(isa_is_named),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
