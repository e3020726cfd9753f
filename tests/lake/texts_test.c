/* Pure texts: paths, directories, the partition grammar, bounds, times. */
#include "harness/test.h"

#include "lake/ducklake/layout.h"
#include "lake/ducklake/transform.h"
#include "lake/partition_by.h"
#include "lake/ducklake/stats_text.h"
#include "lake/ducklake/time.h"
#include "lake/partition_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct mp_arena arena;

static struct mp_str path_of(const char *path)
{
    return mp_dl_data_path(&arena, mp_str_c(path), MP_STR("/some/dir"));
}

static void data_path_is_absolute_and_closed(void)
{
    static const char *const cases[][2] = {
        {"/data", "/data/"},
        {"/data/", "/data/"},
        {"//data///x/", "/data/x/"},
        {"/data/./x/../y", "/data/y/"},
        {"/../..", "/"},
        {"/", "/"},
        {"lake", "/some/dir/lake/"},
        {"./lake", "/some/dir/lake/"},
        {"../lake/..", "/some/"},
        {"..a/b..", "/some/dir/..a/b../"},
        {"", ""},
        {"s3://bucket", "s3://bucket/"},
        {"s3://bucket/a/b", "s3://bucket/a/b/"},
        {"s3://bucket/a/b///", "s3://bucket/a/b/"},
        {"s3://bucket/a/../b", "s3://bucket/a/../b/"}, /* keys are not paths */
        {"s3://", "s3://"},
        {"://x", "/some/dir/:/x/"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        CHECK_STR(path_of(cases[i][0]), mp_str_c(cases[i][1]));
}

static void quotes_are_doubled(void)
{
    struct mp_buf buf = MP_BUF_INIT(100);

    mp_dl_quote(&buf, MP_STR("a\"b\"\"c"));
    CHECK_STR(mp_buf_str(&buf), MP_STR("\"a\"\"b\"\"\"\"c\""));
    mp_buf_fini(&buf);
}

static void odd_names_get_their_uuid_as_directory(void)
{
    CHECK_STR(mp_dl_directory(&arena, MP_STR("Events_1-x"), "u"), MP_STR("Events_1-x/"));
    CHECK_STR(mp_dl_directory(&arena, MP_STR("a b"), "u"), MP_STR("u/"));
    CHECK_STR(mp_dl_directory(&arena, MP_STR("\xc3\xbc"), "u"), MP_STR("u/"));
    CHECK_STR(mp_dl_directory(&arena, MP_STR("."), "u"), MP_STR("u/"));
}

static struct mp_str directory_of(struct mp_str name, struct mp_str value, bool null)
{
    struct mp_buf buf = MP_BUF_INIT(1u << 20);
    struct mp_str text;
    struct mp_partition_value v = {null, value};

    mp_dl_partition_directory(&buf, name, &v);
    text = mp_arena_str(&arena, mp_buf_str(&buf));
    mp_buf_fini(&buf);
    return text;
}

static void partition_directories_are_encoded(void)
{
    struct mp_str name = MP_STR("k"), long_value, other, text;
    char *bytes = mp_arena_take(&arena, 70000);

    CHECK_STR(directory_of(name, MP_STR("a"), true), MP_STR("k=__HIVE_DEFAULT_PARTITION__/"));
    CHECK_STR(directory_of(name, MP_STR(""), false), MP_STR("k=/"));
    CHECK_STR(directory_of(name, MP_STR("A-z_0.9~"), false), MP_STR("k=A-z_0.9~/"));
    CHECK_STR(directory_of(name, MP_STR("x y/z=1%&\xc3\xa9"), false),
              MP_STR("k=x%20y%2Fz%3D1%25%26%C3%A9/"));
    CHECK_STR(directory_of(MP_STR("na\"me x"), MP_STR("\x01\xff"), false),
              MP_STR("na%22me%20x=%01%FF/"));
    /* no component passes what file systems take, and no two values share a directory */
    memset(bytes, '/', 70000);
    long_value = mp_str_n(bytes, 66);
    CHECK_INT(directory_of(name, long_value, false).size, 3 + 66 * 3);
    long_value = mp_str_n(bytes, 67);
    text = directory_of(name, long_value, false);
    CHECK(text.size < 200);
    CHECK(mp_str_starts(text, MP_STR("k=%2F%2F")));
    CHECK(text.data[2 + 53 * 3] == '~');
    other = mp_str_n(bytes, 70000);
    CHECK(directory_of(name, other, false).size == text.size);
    CHECK(!mp_str_eq(directory_of(name, other, false), text));
    CHECK_STR(directory_of(name, other, false), directory_of(name, other, false));
}

/* A directory is what a file system can name, and all of them what S3 takes as a key. */
static void partition_directories_have_an_end(void)
{
    struct mp_str names[40], long_name, value, one, other;
    struct mp_partition_value values[40];
    char *bytes = mp_arena_take(&arena, 300);

    memset(bytes, 'v', 300);
    for (size_t size = 1; size <= 255; size++) {
        long_name = mp_str_n(bytes, size);
        for (size_t length = 0; length <= 300; length += 50) {
            value = mp_str_n(bytes, length);
            CHECK(directory_of(long_name, value, false).size <= 255 + 1);
        }
        CHECK(directory_of(long_name, value, true).size <= 255 + 1);
    }
    long_name = mp_str_n(bytes, 100);
    bytes[250] = 'w'; /* behind what is kept of it */
    one = directory_of(long_name, mp_str_n(bytes, 300), false);
    bytes[250] = 'v';
    other = directory_of(long_name, mp_str_n(bytes, 300), false);
    CHECK(!mp_str_eq(one, other));
    CHECK(mp_str_starts(one, long_name));
    for (uint32_t count = 1; count <= 40; count++) {
        struct mp_buf buf = MP_BUF_INIT(1u << 20);

        names[count - 1] = mp_str_n(bytes, 10);
        values[count - 1] = (struct mp_partition_value){false, mp_str_n(bytes, 190)};
        mp_dl_partition_directories(&buf, names, values, count);
        CHECK(buf.size <= 640);
        if (count <= 3) /* (10 + 1 + 190 + 1) each */
            CHECK_INT(buf.size, 202 * (int)count);
        else
            CHECK_INT(buf.size, 1 + 16 + 1);
        mp_buf_fini(&buf);
    }
}

static void nul_bytes_become_pictures(void)
{
    CHECK_STR(mp_lake_partition_text(&arena, MP_STR("a\0b\0")), MP_STR("a\xe2\x90\x80"
                                                                       "b\xe2\x90\x80"));
    CHECK_STR(mp_lake_partition_text(&arena, MP_STR("ab")), MP_STR("ab"));
}

/* "transform:buckets:column ..." of a setting, or the code and text of its refusal. */
static struct mp_str keys_of(const char *setting)
{
    const struct mp_partition_key *keys;
    struct mp_buf buf = MP_BUF_INIT(4096);
    struct mp_err err;
    uint32_t count;
    struct mp_str text;

    if (mp_partition_by_parse(&arena, mp_str_c(setting), MP_PARTITION_BY_DUCKLAKE, &err, &keys,
                              &count)) {
        CHECK_INT(err.code, MP_BAD_CONFIG);
        CHECK(strstr(err.text, " at byte "));
        return MP_STR("refused");
    }
    for (uint32_t i = 0; i < count; i++) {
        char transform[MP_DL_TRANSFORM_TEXT];

        mp_dl_transform_text(keys[i].transform, keys[i].buckets, transform);
        mp_buf_printf(&buf, "%s%s of %.*s", i ? ", " : "", transform, MP_STR_ARG(keys[i].column));
    }
    text = mp_arena_str(&arena, mp_buf_str(&buf));
    mp_buf_fini(&buf);
    return text;
}

static void partition_grammar_is_read(void)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"  ", ""},
        {"region", "identity of region"},
        {"year(ts),month(ts),day(ts),hour(ts)", "year of ts, month of ts, day of ts, hour of ts"},
        {" YEAR ( ts ) ,\n Bucket( 16 , User_ID )", "year of ts, bucket(16) of User_ID"},
        {"year", "identity of year"},
        {"year, year(year)", "identity of year, year of year"},
        {"bucket(1, a), bucket(2, b)", "bucket(1) of a, bucket(2) of b"},
        {"\"a \"\"b\"\"\", day(\"x(y)\")", "identity of a \"b\", day of x(y)"},
        {"\xc3\xbc", "identity of \xc3\xbc"},
        {"_inserted_at, a1", "identity of _inserted_at, identity of a1"},
        {"bucket(2147483647,a)", "bucket(2147483647) of a"},
    };
    static const char *const bad[] = {
        ",",
        "a,",
        "a b",
        "a(b",
        "year()",
        "year(a",
        "year(a))",
        "week(a)",
        "identity(a)",
        "bucket(a)",
        "bucket(0, a)",
        "bucket(x, a)",
        "bucket(a,4)",
        "1a",
        "year(1a)",
        "a, A",
        "year(ts), YEAR(Ts)",
        "\"\"",
        "\"a",
        "bucket(2147483648, a)",
        "bucket(4, a), bucket(8, A)",
        "year(a,b)",
        "(a)",
        "a;b",
        "\"year\"(a)",
        "bucket(99999999999, a)",
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        CHECK_STR(keys_of(cases[i][0]), mp_str_c(cases[i][1]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        if (!mp_str_eq(keys_of(bad[i]), MP_STR("refused")))
            printf("    not refused: %s\n", bad[i]);
        CHECK_STR(keys_of(bad[i]), MP_STR("refused"));
    }
}

static void transforms_are_read_as_written(void)
{
    static const char *const good[] = {"identity", "year", "month", "day", "hour", "bucket(16)"};
    static const char *const bad[] = {"",          "epoch_day", "bucket",   "bucket()",
                                      "bucket(0)", "bucket(x)", "bucket(4", "years"};
    uint8_t transform;
    uint32_t buckets;

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        char text[MP_DL_TRANSFORM_TEXT];

        CHECK(mp_dl_transform_parse(mp_str_c(good[i]), &transform, &buckets));
        mp_dl_transform_text(transform, buckets, text);
        CHECK_STR(mp_str_c(text), mp_str_c(good[i]));
    }
    CHECK(mp_dl_transform_parse(MP_STR("BUCKET(7)"), &transform, &buckets));
    CHECK_INT(buckets, 7);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK(!mp_dl_transform_parse(mp_str_c(bad[i]), &transform, &buckets));
}

static void same_transforms_are_told_apart_by_column(void)
{
    struct mp_str used[3] = {{0}};

    used[0] = mp_dl_transform_directory(&arena, MP_TRANSFORM_YEAR, MP_STR("a"), used, 0);
    used[1] = mp_dl_transform_directory(&arena, MP_TRANSFORM_YEAR, MP_STR("b"), used, 1);
    used[2] = mp_dl_transform_directory(&arena, MP_TRANSFORM_IDENTITY, MP_STR("c"), used, 2);
    CHECK_STR(used[0], MP_STR("year"));
    CHECK_STR(used[1], MP_STR("year_b"));
    CHECK_STR(used[2], MP_STR("c"));
}

/* --- bounds --- */

#define NONE MP_STR("(none)")

static struct mp_str bound(struct mp_type type, const void *data, size_t size, bool upper)
{
    struct mp_column_stats stats = {.type = type, .has_bounds = true};
    struct mp_buf buf = MP_BUF_INIT(1u << 20);
    struct mp_str text = NONE;

    stats.min = stats.max = mp_str_n(data, size);
    if (mp_dl_bound_text(&buf, &stats, upper))
        text = mp_arena_str(&arena, mp_buf_str(&buf));
    else
        CHECK_INT(buf.size, 0);
    mp_buf_fini(&buf);
    return text;
}

static struct mp_str i32(uint8_t id, int32_t value)
{
    return bound((struct mp_type){.id = id}, &value, sizeof(value), false);
}

static struct mp_str i64(uint8_t id, int64_t value)
{
    return bound((struct mp_type){.id = id}, &value, sizeof(value), true);
}

static struct mp_str f64(double value)
{
    return bound(MP_TYPE(DOUBLE), &value, sizeof(value), false);
}

static struct mp_str f32(float value)
{
    return bound(MP_TYPE(FLOAT), &value, sizeof(value), false);
}

static void integers_are_decimal(void)
{
    CHECK_STR(i32(MP_TYPE_INT8, -128), MP_STR("-128"));
    CHECK_STR(i32(MP_TYPE_INT32, INT32_MIN), MP_STR("-2147483648"));
    CHECK_STR(i32(MP_TYPE_UINT32, -1), MP_STR("4294967295"));
    CHECK_STR(i32(MP_TYPE_UINT8, 255), MP_STR("255"));
    CHECK_STR(i64(MP_TYPE_INT64, INT64_MIN), MP_STR("-9223372036854775808"));
    CHECK_STR(i64(MP_TYPE_UINT64, -1), MP_STR("18446744073709551615"));
    CHECK_STR(bound(MP_TYPE(BOOL), "\1", 1, false), MP_STR("1"));
    CHECK_STR(bound(MP_TYPE(BOOL), "\0", 1, false), MP_STR("0"));
}

static void floats_read_back_the_same(void)
{
    static const double values[] = {0.1,
                                    1e300,
                                    -1e-300,
                                    123456789.125,
                                    5e-324,
                                    1e15,
                                    1e16,
                                    1e22,
                                    1e23,
                                    4503599627370497.5,
                                    1.0 / 3,
                                    -2.5e-7,
                                    1.7976931348623157e308};

    CHECK_STR(f64(1.0), MP_STR("1.0"));
    CHECK_STR(f64(0.1), MP_STR("0.1"));
    CHECK_STR(f64(-0.0), MP_STR("-0.0"));
    CHECK_STR(f64(0.0), MP_STR("0.0"));
    CHECK_STR(f64(INFINITY), MP_STR("inf"));
    CHECK_STR(f64(-INFINITY), MP_STR("-inf"));
    CHECK_STR(f64(NAN), NONE);
    CHECK_STR(f32(0.1f), MP_STR("0.10000000149011612")); /* holds after promotion to DOUBLE */
    CHECK_STR(f32(1.5f), MP_STR("1.5"));
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        struct mp_str text = f64(values[i]);

        CHECK_DOUBLE(strtod(text.data, NULL), values[i]);
        CHECK(memchr(text.data, '.', text.size) || memchr(text.data, 'e', text.size));
    }
}

static struct mp_str dec(uint8_t precision, uint8_t scale, const void *data, size_t size)
{
    return bound((struct mp_type){MP_TYPE_DECIMAL, precision, scale}, data, size, false);
}

static void decimals_have_their_full_scale(void)
{
    int32_t small = -5, seven = 700;
    int64_t wide = INT64_MIN + 1;
    unsigned char minus_one[16], huge[16], zero[16] = {0};

    CHECK_STR(dec(9, 2, &small, 4), MP_STR("-0.05"));
    CHECK_STR(dec(9, 2, &seven, 4), MP_STR("7.00"));
    CHECK_STR(dec(9, 0, &seven, 4), MP_STR("700"));
    CHECK_STR(dec(9, 9, &small, 4), MP_STR("-0.000000005"));
    CHECK_STR(dec(18, 4, &wide, 8), MP_STR("-922337203685477.5807"));
    memset(minus_one, 0xff, 16);
    memset(huge, 0xff, 16);
    huge[0] = 0x7f;
    CHECK_STR(dec(38, 10, minus_one, 16), MP_STR("-0.0000000001"));
    CHECK_STR(dec(38, 38, minus_one, 16), MP_STR("-0.00000000000000000000000000000000000001"));
    CHECK_STR(dec(38, 0, huge, 16), MP_STR("170141183460469231731687303715884105727"));
    CHECK_STR(dec(38, 2, zero, 16), MP_STR("0.00"));
}

static void times_have_no_trailing_zeros(void)
{
    CHECK_STR(i32(MP_TYPE_DATE, 0), MP_STR("1970-01-01"));
    CHECK_STR(i32(MP_TYPE_DATE, -1), MP_STR("1969-12-31"));
    CHECK_STR(i32(MP_TYPE_DATE, 19782), MP_STR("2024-02-29"));
    CHECK_STR(i32(MP_TYPE_DATE, 2932896), MP_STR("9999-12-31"));
    CHECK_STR(i32(MP_TYPE_DATE, 2932897), NONE); /* the year 10000 */
    CHECK_STR(i32(MP_TYPE_DATE, -719162), MP_STR("0001-01-01"));
    CHECK_STR(i32(MP_TYPE_DATE, -719163), NONE); /* the year before year 1 */
    CHECK_STR(i64(MP_TYPE_TIME, 36672500000), MP_STR("10:11:12.5"));
    CHECK_STR(i64(MP_TYPE_TIME, 0), MP_STR("00:00:00"));
    CHECK_STR(i64(MP_TYPE_TIMESTAMP, 1704449472123450), MP_STR("2024-01-05 10:11:12.12345"));
    CHECK_STR(i64(MP_TYPE_TIMESTAMP, -1), MP_STR("1969-12-31 23:59:59.999999"));
    CHECK_STR(i64(MP_TYPE_TIMESTAMP_S, 1704449472000000), MP_STR("2024-01-05 10:11:12"));
    CHECK_STR(i64(MP_TYPE_TIMESTAMP_MS, 1704449472120), MP_STR("2024-01-05 10:11:12.12"));
    CHECK_STR(i64(MP_TYPE_TIMESTAMP_NS, 1704449472000000001),
              MP_STR("2024-01-05 10:11:12.000000001"));
    CHECK_STR(i64(MP_TYPE_TIMESTAMPTZ, 1706785200123456), MP_STR("2024-02-01 11:00:00.123456+00"));
    CHECK_STR(i64(MP_TYPE_TIMESTAMPTZ, INT64_MIN), NONE);
    CHECK_STR(i64(MP_TYPE_TIMESTAMPTZ, INT64_MAX), NONE);
    CHECK_STR(i64(MP_TYPE_TIMESTAMP_NS, INT64_MIN), NONE);
    CHECK_STR(i64(MP_TYPE_TIMESTAMP_NS, INT64_MAX), NONE);
    CHECK_STR(i64(MP_TYPE_TIMESTAMP_NS, -9223286400000000000), MP_STR("1677-09-22 00:00:00"));
    CHECK_STR(i64(MP_TYPE_TIMESTAMP_NS, INT64_MAX - 1), MP_STR("2262-04-11 23:47:16.854775806"));
}

static void snapshot_times_have_six_places(void)
{
    char text[MP_DL_TIME_TEXT];

    mp_dl_time_text(1704449472000000, text);
    CHECK_STR(mp_str_c(text), MP_STR("2024-01-05 10:11:12.000000+00"));
    mp_dl_time_text(1704449472000001, text);
    CHECK_STR(mp_str_c(text), MP_STR("2024-01-05 10:11:12.000001+00"));
}

static void bytes_are_hex(void)
{
    static const unsigned char uuid[16] = {0xf7, 0x9c, 0x3e, 0x09, 0x67, 0x7c, 0x4b, 0xbd,
                                           0xa4, 0x79, 0x3f, 0x34, 0x9c, 0xb7, 0x85, 0xe7};
    char bytes[300];
    struct mp_str text;

    CHECK_STR(bound(MP_TYPE(UUID), uuid, 16, false),
              MP_STR("f79c3e09-677c-4bbd-a479-3f349cb785e7"));
    CHECK_STR(bound(MP_TYPE(BLOB), "\xab\x00", 2, false), MP_STR("AB00"));
    CHECK_STR(bound(MP_TYPE(BLOB), "", 0, false), MP_STR(""));
    memset(bytes, 0xff, sizeof(bytes));
    CHECK_STR(bound(MP_TYPE(BLOB), bytes, 257, true), NONE);
    CHECK_INT(bound(MP_TYPE(BLOB), bytes, 257, false).size, 512);
    bytes[9] = 0x01;
    text = bound(MP_TYPE(BLOB), bytes, 257, true);
    CHECK_INT(text.size, 20);
    CHECK_STR(mp_str_n(text.data + 16, 4), MP_STR("FF02"));
}

static void long_texts_stay_bounds_and_utf8(void)
{
    struct mp_type type = MP_TYPE(VARCHAR);
    char bytes[1300];
    struct mp_str low, high;

    CHECK_STR(bound(type, "", 0, true), MP_STR(""));
    CHECK_STR(bound(type, "a\0b", 3, true), NONE);
    CHECK_STR(bound(type, "a\xff", 2, false), NONE); /* not UTF-8 */
    CHECK_STR(bound(type, "\xed\xa0\x80", 3, false), NONE);
    CHECK_STR(bound(type, "\xf4\x90\x80\x80", 4, false), NONE);
    CHECK_STR(bound(type, "\xc0\x80", 2, false), NONE);
    CHECK_STR(bound(type, "\xe2\x82", 2, false), NONE);
    memset(bytes, 'x', sizeof(bytes));
    CHECK_INT(bound(type, bytes, 256, true).size, 256);
    CHECK_STR(bound(type, bytes, 256, true), mp_str_n(bytes, 256));
    CHECK_STR(bound(type, bytes, 257, false), mp_str_n(bytes, 256));
    high = bound(type, bytes, 257, true);
    CHECK_INT(high.size, 256);
    CHECK_INT(high.data[255], 'y');
    CHECK_INT(high.data[254], 'x');
    /* "x" and 300 times U+00E9: cut between characters */
    for (size_t i = 0; i < 300; i++)
        memcpy(bytes + 1 + 2 * i, "\xc3\xa9", 2);
    low = bound(type, bytes, 601, false);
    high = bound(type, bytes, 601, true);
    CHECK_INT(low.size, 255);
    CHECK_STR(mp_str_n(high.data + 253, 2), MP_STR("\xc3\xaa"));
    CHECK(mp_str_cmp(low, mp_str_n(bytes, 601)) < 0);
    CHECK(mp_str_cmp(high, mp_str_n(bytes, 601)) > 0);
    /* characters that cannot be raised make room for the one before them */
    for (size_t i = 0; i < 300; i++)
        memcpy(bytes + 4 * i, "\xf4\x8f\xbf\xbf", 4);
    CHECK_STR(bound(type, bytes, 1200, true), NONE);
    CHECK_INT(bound(type, bytes, 1200, false).size, 256);
    memcpy(bytes, "\xed\x9f\xbf!", 4); /* U+D7FF, whose next is U+E000 */
    CHECK_STR(bound(type, bytes, 1200, true), MP_STR("\xed\x9f\xbf\""));
    memcpy(bytes, "\xf4\x8f\xbf\xbf", 4);
    memcpy(bytes + 252, "\x7f\xed\x9f\xbf", 4);
    high = bound(type, bytes, 1200, true);
    CHECK_STR(mp_str_n(high.data + 252, 4), MP_STR("\x7f\xee\x80\x80"));
}

static void types_without_bounds_have_none(void)
{
    double value = 1;
    struct mp_column_stats stats = {.type = MP_TYPE(INT64)};
    struct mp_buf buf = MP_BUF_INIT(64);

    CHECK_STR(bound(MP_TYPE(INT128), &value, sizeof(value), false), NONE);
    CHECK(!mp_dl_bound_text(&buf, &stats, false));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(data_path_is_absolute_and_closed),
        TEST(quotes_are_doubled),
        TEST(odd_names_get_their_uuid_as_directory),
        TEST(partition_directories_are_encoded),
        TEST(partition_directories_have_an_end),
        TEST(nul_bytes_become_pictures),
        TEST(partition_grammar_is_read),
        TEST(transforms_are_read_as_written),
        TEST(same_transforms_are_told_apart_by_column),
        TEST(integers_are_decimal),
        TEST(floats_read_back_the_same),
        TEST(decimals_have_their_full_scale),
        TEST(times_have_no_trailing_zeros),
        TEST(snapshot_times_have_six_places),
        TEST(bytes_are_hex),
        TEST(long_texts_stay_bounds_and_utf8),
        TEST(types_without_bounds_have_none),
    };
    int status;

    mp_arena_init(&arena, 0);
    status = test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
    mp_arena_fini(&arena);
    return status;
}
