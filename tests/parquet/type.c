/* tests/parquet/type.c - the type table: widths, and DuckLake's names there and back. */
#include "harness/test.h"
#include "parquet/parquet_priv.h"

static const struct {
    uint8_t id;
    const char *name;
    uint32_t width;
    uint8_t physical; /* parquet.thrift, enum Type */
} table[] = {
    {MP_TYPE_BOOL, "boolean", 1, 0},
    {MP_TYPE_INT8, "int8", 4, 1},
    {MP_TYPE_INT16, "int16", 4, 1},
    {MP_TYPE_INT32, "int32", 4, 1},
    {MP_TYPE_INT64, "int64", 8, 2},
    {MP_TYPE_UINT8, "uint8", 4, 1},
    {MP_TYPE_UINT16, "uint16", 4, 1},
    {MP_TYPE_UINT32, "uint32", 4, 1},
    {MP_TYPE_UINT64, "uint64", 8, 2},
    {MP_TYPE_INT128, "int128", 8, 5},
    {MP_TYPE_FLOAT, "float32", 4, 4},
    {MP_TYPE_DOUBLE, "float64", 8, 5},
    {MP_TYPE_DATE, "date", 4, 1},
    {MP_TYPE_TIME, "time", 8, 2},
    {MP_TYPE_TIMESTAMP_S, "timestamp_s", 8, 2},
    {MP_TYPE_TIMESTAMP_MS, "timestamp_ms", 8, 2},
    {MP_TYPE_TIMESTAMP, "timestamp", 8, 2},
    {MP_TYPE_TIMESTAMP_NS, "timestamp_ns", 8, 2},
    {MP_TYPE_TIMESTAMPTZ, "timestamptz", 8, 2},
    {MP_TYPE_VARCHAR, "varchar", 0, 6},
    {MP_TYPE_JSON, "json", 0, 6},
    {MP_TYPE_BLOB, "blob", 0, 6},
    {MP_TYPE_UUID, "uuid", 16, 7},
};

static void every_type_has_its_name_width_and_layout(void)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct mp_type type = {.id = table[i].id};
        char name[24];

        mp_type_ducklake_name(type, name);
        CHECK_STR(mp_str_c(name), mp_str_c(table[i].name));
        CHECK_INT(mp_type_of_ducklake_name(mp_str_c(name)).id, type.id);
        CHECK_INT(mp_type_width(type), table[i].width);
        CHECK_INT(mp_layout_of(type).physical, table[i].physical);
        CHECK_INT(mp_type_is_text(type), table[i].physical == 6);
    }
}

/* DuckLake has no name for them, so none is read as one of them. */
static void hoglake_has_two_types_of_its_own(void)
{
    static const uint8_t ids[] = {MP_TYPE_UINT32_LONG, MP_TYPE_TIMESTAMP_S_MS};

    for (size_t i = 0; i < 2; i++) {
        struct mp_type type = {.id = ids[i]};
        char name[24];

        mp_type_ducklake_name(type, name);
        CHECK_STR(mp_str_c(name), MP_STR("unknown"));
        CHECK_INT(mp_type_width(type), 8);
        CHECK_INT(mp_layout_of(type).physical, 2);
    }
    CHECK(mp_type_is_integer(MP_TYPE(UINT32_LONG)));
}

static void decimals_lie_by_their_digits(void)
{
    static const struct {
        uint8_t precision;
        uint32_t width;
        uint8_t physical;
    } cases[] = {{1, 4, 1}, {9, 4, 1}, {10, 8, 2}, {18, 8, 2}, {19, 16, 7}, {38, 16, 7}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct mp_type type = {MP_TYPE_DECIMAL, cases[i].precision, 1};

        CHECK_INT(mp_type_width(type), cases[i].width);
        CHECK_INT(mp_layout_of(type).physical, cases[i].physical);
    }
}

static void decimal_names(void)
{
    struct mp_type type = mp_type_of_ducklake_name(MP_STR("decimal(18,4)"));
    char name[24];

    CHECK(mp_type_eq(type, (struct mp_type){MP_TYPE_DECIMAL, 18, 4}));
    mp_type_ducklake_name(type, name);
    CHECK_STR(mp_str_c(name), MP_STR("decimal(18,4)"));
    type = mp_type_of_ducklake_name(MP_STR("DECIMAL( 38 , 38 )"));
    CHECK(mp_type_eq(type, (struct mp_type){MP_TYPE_DECIMAL, 38, 38}));
}

static void other_names_are_other(void)
{
    static const char *const names[] = {"",
                                        "unknown",
                                        "struct",
                                        "list",
                                        "map",
                                        "uint128",
                                        "interval",
                                        "timetz",
                                        "decimal",
                                        "decimal(39,1)",
                                        "decimal(0,0)",
                                        "decimal(3,4)",
                                        "decimal(3)",
                                        "decimal(3,1) ",
                                        "decimal(3,1",
                                        "int64 ",
                                        "int",
                                        "decimal(99999999999,1)"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        CHECK_INT(mp_type_of_ducklake_name(mp_str_c(names[i])).id, MP_TYPE_OTHER);
}

static void case_and_second_spellings_do_not_matter(void)
{
    CHECK_INT(mp_type_of_ducklake_name(MP_STR("VarChar")).id, MP_TYPE_VARCHAR);
    CHECK_INT(mp_type_of_ducklake_name(MP_STR("Variant")).id, MP_TYPE_VARIANT);
    CHECK_INT(mp_type_of_ducklake_name(MP_STR("timestamp_us")).id, MP_TYPE_TIMESTAMP);
}

static void kinds(void)
{
    CHECK(mp_type_is_integer(MP_TYPE(INT8)) && mp_type_is_integer(MP_TYPE(UINT64)));
    CHECK(!mp_type_is_integer(MP_TYPE(INT128)) && !mp_type_is_integer(MP_TYPE(DATE)));
    CHECK(mp_type_is_float(MP_TYPE(FLOAT)) && mp_type_is_float(MP_TYPE(DOUBLE)));
    CHECK(!mp_type_is_float(MP_TYPE(INT128)) && !mp_type_is_text(MP_TYPE(NONE)));
    CHECK_INT(mp_type_width(MP_TYPE(NONE)), 0);
    CHECK_INT(mp_type_width(MP_TYPE(OTHER)), 0);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(every_type_has_its_name_width_and_layout),
        TEST(hoglake_has_two_types_of_its_own),
        TEST(decimals_lie_by_their_digits),
        TEST(decimal_names),
        TEST(other_names_are_other),
        TEST(case_and_second_spellings_do_not_matter),
        TEST(kinds),
    };
    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
