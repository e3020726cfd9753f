#include "harness/test.h"
#include "server/columns.h"
#include "server/names.h"

#include <stdlib.h>

static void names_and_paths_are_what_the_contract_says(void)
{
    char long_name[130];

    memset(long_name, 'a', sizeof(long_name));
    CHECK(!mp_name_catalog(MP_STR("0abc_-"), NULL));
    CHECK(!mp_name_catalog(mp_str_n(long_name, 63), NULL));
    CHECK(mp_name_catalog(mp_str_n(long_name, 64), NULL));
    CHECK(mp_name_catalog(MP_STR("Abc"), NULL));
    CHECK(mp_name_catalog(MP_STR(""), NULL));
    CHECK(mp_name_catalog(MP_STR("-a"), NULL));
    CHECK(!mp_name_object("table", mp_str_n(long_name, 128), NULL));
    CHECK(mp_name_object("table", mp_str_n(long_name, 129), NULL));
    CHECK(!mp_name_object("table", MP_STR("_leading-Mixed9"), NULL));
    CHECK(mp_name_object("table", MP_STR("a/b"), NULL));
    CHECK(mp_name_object("table", MP_STR("a.b"), NULL));
    CHECK(mp_name_object("table", MP_STR("9a"), NULL));
    CHECK(mp_name_column(MP_STR("_hog_row_id"), "_hog_row_id", NULL));
    CHECK(!mp_data_path(MP_STR("s3://bucket"), NULL));
    CHECK(!mp_data_path(MP_STR("s3://bucket/a/b/"), NULL));
    CHECK(mp_data_path(MP_STR("s3:///a"), NULL));
    CHECK(mp_data_path(MP_STR("file:///a"), NULL));
    CHECK(mp_data_path(MP_STR("s3://b/a/../c"), NULL));
    CHECK(mp_data_path(MP_STR("s3://b/a c"), NULL));
    CHECK(mp_data_path(MP_STR("s3://b/a\xc2\x85"), NULL));
    CHECK(mp_data_paths_overlap(MP_STR("s3://b/a/"), MP_STR("s3://b/a/c")));
    CHECK(mp_data_paths_overlap(MP_STR("s3://b/a/c"), MP_STR("s3://b/a")));
    CHECK(!mp_data_paths_overlap(MP_STR("s3://b/a"), MP_STR("s3://b/ab")));
    CHECK(mp_object_path(MP_STR("s3://b/a/"), MP_STR("s3://b/a/x.parquet")));
    CHECK(!mp_object_path(MP_STR("s3://b/a/"), MP_STR("s3://b/a/")));
    CHECK(!mp_object_path(MP_STR("s3://b/a"), MP_STR("s3://b/ab/x")));
    CHECK(!mp_object_path(MP_STR("s3://b/a"), MP_STR("s3://b/a//x")));
    CHECK(!mp_object_path(MP_STR("s3://b/a"), MP_STR("s3://b/a/../x")));
    CHECK(!mp_property(MP_STR("owner.x"), MP_STR("y"), NULL));
    CHECK(mp_property(MP_STR("hoglake.x"), MP_STR("y"), NULL));
    CHECK(mp_property(MP_STR("comment"), MP_STR("y"), NULL));
}

static void types_are_read_and_promoted_by_the_table(void)
{
    enum mp_hog_type type;
    int promotions = 0;

    CHECK_INT(MP_HOG_TYPES, 27);
    CHECK(!mp_hog_type_read(MP_STR("VARIANT"), NULL, &type));
    CHECK_INT(type, MP_HOG_VARIANT);
    CHECK(mp_hog_type_read(MP_STR("uuid_t"), NULL, &type));
    CHECK(mp_hog_type_read(MP_STR("timetz"), NULL, &type));
    CHECK(mp_hog_type_read(MP_STR("linestring_z"), NULL, &type));
    for (int from = 0; from < MP_HOG_TYPES; from++)
        for (int to = 0; to < MP_HOG_TYPES; to++)
            promotions += mp_hog_type_promotes((enum mp_hog_type)from, (enum mp_hog_type)to);
    CHECK_INT(promotions, 10);
}

static struct mp_str from_hex(struct mp_arena *arena, const char *hex)
{
    size_t size = strlen(hex) / 2;
    char *bytes = mp_arena_take(arena, size + 1);

    for (size_t i = 0; i < size; i++) {
        char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};

        bytes[i] = (char)strtol(pair, NULL, 16);
    }
    return mp_str_n(bytes, size);
}

/* Vectors of the contract. */
static void bounds_print_as_people_read_them(void)
{
    static const struct {
        enum mp_hog_type type;
        int scale;
        const char *hex, *text;
    } cases[] = {
        {MP_HOG_BOOLEAN, 0, "01", "true"},
        {MP_HOG_INT8, 0, "80ffffff", "-128"},
        {MP_HOG_INT, 0, "78563412", "305419896"},
        {MP_HOG_UINT16, 0, "ffff0000", "65535"},
        {MP_HOG_LONG, 0, "0000000000000080", "-9223372036854775808"},
        {MP_HOG_UINT32, 0, "00286bee00000000", "4000000000"},
        {MP_HOG_UINT64, 0, "00ffffffffffffffff", "18446744073709551615"},
        {MP_HOG_UINT64, 0, "0080", "128"},
        {MP_HOG_FLOAT, 0, "000020c0", "-2.5"},
        {MP_HOG_DOUBLE, 0, "9a9999999999b93f", "0.1"},
        {MP_HOG_DOUBLE, 0, "0000000000000080", "-0.0"},
        {MP_HOG_DOUBLE, 0, "000000000000f07f", "\"Infinity\""},
        {MP_HOG_DECIMAL, 2, "00", "0.00"},
        {MP_HOG_DECIMAL, 2, "80", "-1.28"},
        {MP_HOG_DECIMAL, 2, "ff7f", "-1.29"},
        {MP_HOG_DECIMAL, 2, "04d2", "12.34"},
        {MP_HOG_DECIMAL, 0, "4b3b4ca85a86c47a098a223fffffffff",
         "99999999999999999999999999999999999999"},
        {MP_HOG_DATE, 0, "ffffffff", "\"1969-12-31\""},
        {MP_HOG_DATE, 0, "dd500000", "\"2026-09-05\""},
        {MP_HOG_TIME, 0, "c097546c0b000000", "\"13:37:42.123456\""},
        {MP_HOG_TIMESTAMP_S, 0, "0090d91fbb5a0600", "\"2026-09-05T12:00\""},
        {MP_HOG_TIMESTAMP_MS, 0, "7870db1fbb5a0600", "\"2026-09-05T12:00:00.123\""},
        {MP_HOG_TIMESTAMP, 0, "ffffffffffffffff", "\"1969-12-31T23:59:59.999999\""},
        {MP_HOG_TIMESTAMP_NS, 0, "154d3671f46ad218", "\"2026-09-05T12:00:00.123456789\""},
        {MP_HOG_TIMESTAMPTZ, 0, "0090d91fbb5a0600", "\"2026-09-05T12:00:00Z\""},
        {MP_HOG_TIMESTAMP_NS, 0, "0000000000000080", "\"1677-09-21T00:12:43.145224192\""},
        {MP_HOG_TIMESTAMP, 0, "0000000000000080", "\"-290308-12-21T19:59:05.224192\""},
        {MP_HOG_DATE, 0, "c803f5ff", "\"-0002-11-27\""},
        {MP_HOG_STRING, 0, "61c3", "null"},
        {MP_HOG_STRING, 0, "68c3a96c6c6f", "\"h\xc3\xa9llo\""},
        {MP_HOG_UUID, 0, "f79c3e09677c4bbda4793f349cb785e7",
         "\"f79c3e09-677c-4bbd-a479-3f349cb785e7\""},
        {MP_HOG_BINARY, 0, "0001ff", "\"AAH/\""},
        {MP_HOG_LONG, 0, "00", "null"},
        {MP_HOG_DOUBLE, 0, "000000000000f87f", "null"},
    };
    struct mp_buf buf = MP_BUF_INIT(4096);
    struct mp_arena arena;

    mp_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        mp_buf_clear(&buf);
        mp_hog_bound_print(&buf, cases[i].type, cases[i].scale, from_hex(&arena, cases[i].hex));
        CHECK_STR(mp_buf_str(&buf), mp_str_c(cases[i].text));
    }
    mp_buf_fini(&buf);
    mp_arena_fini(&arena);
}

static void bounds_are_ordered_promoted_and_their_zeros_told_apart(void)
{
    struct mp_arena arena;
    struct mp_str wide;

    mp_arena_init(&arena, 0);
    CHECK(mp_hog_bound_cmp(MP_HOG_DECIMAL, from_hex(&arena, "ff7f"), from_hex(&arena, "80")) < 0);
    CHECK(mp_hog_bound_cmp(MP_HOG_UINT64, from_hex(&arena, "0080"), from_hex(&arena, "7f")) > 0);
    CHECK(mp_hog_bound_cmp(MP_HOG_INT, from_hex(&arena, "ffffffff"), from_hex(&arena, "00000000")) <
          0);
    CHECK(mp_hog_bound_cmp(MP_HOG_DOUBLE, from_hex(&arena, "0000000000000080"),
                           from_hex(&arena, "0000000000000000")) == 0);
    CHECK(mp_hog_bound_cmp(MP_HOG_STRING, MP_STR("\xff"), MP_STR("a")) > 0);
    CHECK(
        mp_hog_bound_promote(&arena, MP_HOG_INT, MP_HOG_LONG, from_hex(&arena, "ffffffff"), &wide));
    CHECK_STR(wide, from_hex(&arena, "ffffffffffffffff"));
    CHECK(mp_hog_bound_promote(&arena, MP_HOG_FLOAT, MP_HOG_DOUBLE, from_hex(&arena, "000020c0"),
                               &wide));
    CHECK_STR(wide, from_hex(&arena, "00000000000004c0"));
    CHECK(!mp_hog_bound_promote(&arena, MP_HOG_INT8, MP_HOG_INT, from_hex(&arena, "ffffffff"),
                                &wide));
    CHECK_STR(mp_hog_bound_zero(&arena, MP_HOG_FLOAT, from_hex(&arena, "00000000"), false),
              from_hex(&arena, "00000080"));
    CHECK_STR(mp_hog_bound_zero(&arena, MP_HOG_FLOAT, from_hex(&arena, "00000080"), true),
              from_hex(&arena, "00000000"));
    mp_arena_fini(&arena);
}

/* What columns borrow their texts from. */
static json_t *kept;

static void drop_kept(void)
{
    json_decref(kept);
    kept = NULL;
}

/* Reads columns from JSON and checks them. */
static enum mp_code check_json(struct mp_arena *arena, const char *text, bool added,
                               struct mp_columns *ret, struct mp_err *err)
{
    json_t *json = json_loads(text, 0, NULL);
    struct mp_wire_reader reader = {.arena = arena};
    struct mp_columns_check check = {.arena = arena, .added = added};
    int64_t next = 1;
    enum mp_code code;

    CHECK(json);
    drop_kept();
    kept = json;
    mp_wire_columns_read(&reader, json, &ret->items, &ret->count);
    CHECK(!reader.failed);
    code = mp_columns_check(&check, *ret, "", err);
    if (!code)
        mp_columns_assign(*ret, 0, &next);
    return code;
}

#define NESTED                                                                                     \
    "[{\"name\":\"id\",\"type\":\"long\"},{\"name\":\"tags\",\"type\":\"list\",\"children\":"      \
    "[{\"name\":\"element\",\"type\":\"string\"}]},{\"name\":\"addr\",\"type\":\"struct\","        \
    "\"children\":[{\"name\":\"city\",\"type\":\"string\"},{\"name\":\"zip\",\"type\":\"int\"}]}," \
    "{\"name\":\"props\",\"type\":\"map\",\"children\":[{\"name\":\"key\",\"type\":\"string\","    \
    "\"nullable\":false},{\"name\":\"value\",\"type\":\"long\"}]}]"

static void field_ids_are_given_depth_first(void)
{
    struct mp_columns columns;
    struct mp_column_place place;
    struct mp_arena arena;
    struct mp_err err;

    mp_arena_init(&arena, 0);
    CHECK_OK(check_json(&arena, NESTED, false, &columns, &err), err);
    CHECK_INT(mp_columns_nodes(columns), 9);
    CHECK(mp_columns_find(&arena, columns, 8, &place));
    CHECK_STR(mp_str_c(place.path), MP_STR("props.key"));
    CHECK(place.repeated);
    CHECK(!mp_columns_path(&arena, columns, MP_STR("addr.zip"), NULL, &place));
    CHECK_INT(place.column->field_id, 6);
    CHECK_INT(place.column->ordinal, 1);
    CHECK(mp_columns_path(&arena, columns, MP_STR("tags.element"), NULL, &place));
    CHECK(mp_columns_path(&arena, columns, MP_STR(""), NULL, &place));
    drop_kept();
    mp_arena_fini(&arena);
}

static void column_trees_that_break_a_rule_are_refused(void)
{
    static const char *const cases[] = {
        "[{\"name\":\"a\",\"type\":\"list\"}]",
        "[{\"name\":\"a\",\"type\":\"long\",\"children\":[]}]",
        "[{\"name\":\"a\",\"type\":\"struct\",\"children\":[]}]",
        "[{\"name\":\"a\",\"type\":\"list\",\"children\":[{\"name\":\"item\",\"type\":\"int\"}]}]",
        "[{\"name\":\"a\",\"type\":\"map\",\"children\":[{\"name\":\"key\",\"type\":\"int\"},"
        "{\"name\":\"value\",\"type\":\"int\"}]}]",
        "[{\"name\":\"a\",\"type\":\"decimal\",\"type_params\":{\"precision\":39,\"scale\":0}}]",
        "[{\"name\":\"a\",\"type\":\"decimal\",\"type_params\":{\"precision\":5,\"scale\":6}}]",
        "[{\"name\":\"a\",\"type\":\"struct\",\"type_params\":{},\"children\":"
        "[{\"name\":\"b\",\"type\":\"int\"}]}]",
        "[{\"name\":\"a\",\"type\":\"int\"},{\"name\":\"a\",\"type\":\"int\"}]",
        "[{\"name\":\"_hogx\",\"type\":\"int\"}]",
        "[{\"name\":\"a\",\"type\":\"variant\",\"type_params\":{\"x\":1}}]",
        "[{\"name\":\"a\",\"type\":\"int\",\"type_params\":{\"shredding\":{\"type\":\"int32\"}}}]",
    };
    struct mp_columns columns;
    struct mp_arena arena;
    struct mp_err err;

    mp_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        CHECK_INT(check_json(&arena, cases[i], false, &columns, &err), MP_BAD_DATA);
    CHECK_INT(check_json(&arena, "[{\"name\":\"a\",\"type\":\"int\",\"nullable\":false}]", true,
                         &columns, &err),
              MP_BAD_DATA);
    CHECK(strstr(err.text, "cannot add column 'a'") && strstr(err.text, "no column defaults"));
    CHECK_INT(check_json(&arena,
                         "[{\"name\":\"a\",\"type\":\"struct\",\"children\":[{\"name\":\"key\","
                         "\"type\":\"int\",\"nullable\":false},{\"name\":\"value\","
                         "\"type\":\"int\"}]}]",
                         true, &columns, &err),
              MP_BAD_DATA);
    CHECK_OK(check_json(&arena,
                        "[{\"name\":\"a\",\"type\":\"decimal\",\"type_params\":"
                        "{\"precision\":null,\"scale\":38}}]",
                        true, &columns, &err),
             err);
    CHECK_OK(check_json(&arena,
                        "[{\"name\":\"a\",\"type\":\"map\",\"children\":[{\"name\":\"key\","
                        "\"type\":\"int\",\"nullable\":false},{\"name\":\"value\","
                        "\"type\":\"int\"}]}]",
                        true, &columns, &err),
             err);
    drop_kept();
    mp_arena_fini(&arena);
}

static void variants_follow_their_grammar(void)
{
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        {"{\"type\":\"int64\"}", true},
        {"{\"type\":\"object\",\"fields\":[{\"name\":\"price\",\"type\":\"decimal8\","
         "\"precision\":18,\"scale\":2},{\"name\":\"tags\",\"type\":\"array\",\"element\":"
         "{\"type\":\"string\"}}]}",
         true},
        {"{\"type\":\"object\",\"fields\":[]}", false},
        {"{\"type\":\"object\",\"fields\":[{\"name\":\"a\",\"type\":\"int8\"},"
         "{\"name\":\"A\",\"type\":\"int8\"}]}",
         false},
        {"{\"type\":\"decimal4\",\"precision\":10,\"scale\":0}", false},
        {"{\"type\":\"array\"}", false},
        {"{\"type\":\"long\"}", false},
        {"{\"type\":\"int32\",\"extra\":1}", false},
        {"[]", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *json = json_loads(cases[i].text, 0, NULL);

        CHECK(json);
        CHECK_INT(mp_variant_check(json, "v", NULL) == MP_OK, cases[i].good);
        json_decref(json);
    }
}

static void layouts_take_leaves_of_the_right_type(void)
{
    struct mp_columns columns;
    struct mp_arena arena;
    struct mp_err err;
    struct mp_wire_partition_field bucket = {3, MP_STR("bucket"), true, 16};
    struct mp_wire_partition_field fields[] = {
        {1, MP_STR("IDENTITY"), false, 0}, {1, MP_STR("bucket"), true, 8}, {6, MP_STR("identity")}};
    struct mp_wire_sort_field sort[] = {{1, MP_STR("ASC"), MP_STR("nulls_last")},
                                        {6, MP_STR("desc"), MP_STR("nulls_first")}};

    mp_arena_init(&arena, 0);
    CHECK_OK(check_json(&arena, NESTED, false, &columns, &err), err);
    CHECK_OK(mp_partition_fields_check(&arena, columns, fields, 3, &err), err);
    CHECK_STR(fields[0].transform, MP_STR("identity"));
    CHECK(mp_partition_fields_check(&arena, columns, &bucket, 1, &err)); /* in a list */
    fields[0].transform = MP_STR("day");
    CHECK(mp_partition_fields_check(&arena, columns, fields, 1, &err)); /* no date */
    fields[0].transform = MP_STR("truncate");
    CHECK(mp_partition_fields_check(&arena, columns, fields, 1, &err));
    CHECK_OK(mp_sort_fields_check(&arena, columns, sort, 2, &err), err);
    CHECK_STR(sort[0].direction, MP_STR("asc"));
    sort[1].source_field_id = 1;
    CHECK(mp_sort_fields_check(&arena, columns, sort, 2, &err));
    drop_kept();
    mp_arena_fini(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(names_and_paths_are_what_the_contract_says),
        TEST(types_are_read_and_promoted_by_the_table),
        TEST(bounds_print_as_people_read_them),
        TEST(bounds_are_ordered_promoted_and_their_zeros_told_apart),
        TEST(field_ids_are_given_depth_first),
        TEST(column_trees_that_break_a_rule_are_refused),
        TEST(variants_follow_their_grammar),
        TEST(layouts_take_leaves_of_the_right_type),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
