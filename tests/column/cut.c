/* Partition values and the cut. Hashes and calendar values are those the DuckLake extension gave.
 */
#include "lines.h"

#include "base/buf.h"

static struct lines lines;
static struct mp_partition_field fields[4];
static struct mp_sort_field sorts[2];

static int32_t hash_of(struct mp_type type, const void *value, size_t size)
{
    return mp_bucket_hash(type, mp_str_n(value, size), false);
}

static void bucket_hashes_match_the_extension(void)
{
    int64_t i = 34, zero = 0, minus = -1, noon = 1510871468000000, ms = 1510871468000,
            ns = 1510871468000000000, time = 81068000000, dec = 1420;
    int32_t day = 17486;
    double one = 1.0, mzero = -0.0, pzero = 0.0, big = 34;
    unsigned char yes = 1, uuid[16] = {0xf7, 0x9c, 0x3e, 0x09, 0x67, 0x7c, 0x4b, 0xbd,
                                       0xa4, 0x79, 0x3f, 0x34, 0x9c, 0xb7, 0x85, 0xe7},
                  wide[16] = {[14] = 1420 >> 8, [15] = 1420 & 255};
    uint32_t u = 34;

    CHECK_INT(hash_of(MP_TYPE(INT64), &i, 8), 2017239379);
    CHECK_INT(hash_of(MP_TYPE(INT64), &zero, 8), 1669671676);
    CHECK_INT(hash_of(MP_TYPE(INT64), &minus, 8), 1651860712);
    CHECK_INT(hash_of(MP_TYPE(UINT32), &u, 4), -427558391);
    CHECK_INT(hash_of(MP_TYPE(INT128), &big, 8), -427558391);
    CHECK_INT(hash_of(MP_TYPE(BOOL), &yes, 1), 1392991556);
    CHECK_INT(hash_of(MP_TYPE(DOUBLE), &one, 8), -142385009);
    CHECK_INT(hash_of(MP_TYPE(DOUBLE), &mzero, 8), hash_of(MP_TYPE(DOUBLE), &pzero, 8));
    CHECK_INT(hash_of(MP_TYPE(VARCHAR), "", 0), 0);
    CHECK_INT(hash_of(MP_TYPE(VARCHAR), "iceberg", 7), 1210000089);
    CHECK_INT(hash_of(MP_TYPE(DATE), &day, 4), -653330422);
    CHECK_INT(hash_of(MP_TYPE(TIME), &time, 8), -662762989);
    CHECK_INT(hash_of(MP_TYPE(TIMESTAMPTZ), &noon, 8), -2047944441);
    CHECK_INT(hash_of(MP_TYPE(TIMESTAMP_S), &noon, 8), -243262269);
    CHECK_INT(hash_of(MP_TYPE(TIMESTAMP_MS), &ms, 8), -1171784138);
    CHECK_INT(hash_of(MP_TYPE(TIMESTAMP_NS), &ns, 8), -737750069);
    CHECK_INT(hash_of((struct mp_type){MP_TYPE_DECIMAL, 9, 2}, &dec, 8), -622427183);
    CHECK_INT(hash_of((struct mp_type){MP_TYPE_DECIMAL, 38, 2}, wide, 16), -1660625346);
    CHECK_INT(hash_of(MP_TYPE(UUID), uuid, 16), 980414783);
    CHECK_INT(mp_bucket_hash(MP_TYPE(UUID), mp_str_n(uuid, 16), true), 1488055340);
}

/* Tuples and rows of every file: "a,b:0 3;..." */
static struct mp_str cut_text(void)
{
    struct mp_buf text = MP_BUF_INIT(1 << 20);
    struct mp_column *columns;
    struct mp_cut cut;
    struct mp_err err;
    struct mp_str ret;
    uint32_t count;

    lines.sealed.partition = fields;
    lines.sealed.sort = sorts;
    columns = mp_batch_columns(lines.batch, &count);
    CHECK_OK(mp_cut_columns(&lines.arena, columns, count, &lines.sealed, mp_batch_rows(lines.batch),
                            &err, &cut),
             err);
    for (uint32_t f = 0; f < cut.count; f++) {
        mp_buf_add_c(&text, f ? ";" : "");
        for (uint32_t i = 0; i < lines.sealed.partition_count; i++)
            mp_buf_printf(&text, "%s%.*s", i ? "," : "",
                          cut.files[f].values[i].null ? 1 : (int)cut.files[f].values[i].text.size,
                          cut.files[f].values[i].null ? "~" : cut.files[f].values[i].text.data);
        mp_buf_add_byte(&text, ':');
        for (uint32_t i = 0; i < cut.files[f].count; i++)
            mp_buf_printf(&text, "%s%u", i ? " " : "",
                          cut.files[f].rows ? cut.files[f].rows[i] : i);
    }
    mp_cut_fini(&cut);
    ret = mp_arena_str(&lines.arena, mp_buf_str(&text));
    mp_buf_fini(&text);
    return ret;
}

static void rows_go_to_their_calendar_file(void)
{
    lines_open(&lines);
    lines.options.inserted_at_name = MP_STR("");
    lines_live(&lines, "t", MP_TYPE(TIMESTAMPTZ));
    lines_add(&lines, "{\"t\":\"2024-01-01T00:00:00Z\"}");
    lines_add(&lines, "{\"t\":\"2023-12-31T23:59:59.999999Z\"}");
    lines_add(&lines, "{}");
    lines_add(&lines, "{\"t\":\"2024-01-01T00:30:00Z\"}");
    lines_add(&lines, "{\"t\":\"1969-12-31T22:59:59.999999Z\"}");
    lines_seal(&lines, false);
    lines.sealed.partition_count = 4;
    for (unsigned i = 0; i < 4; i++)
        fields[i] = (struct mp_partition_field){1, (uint8_t)(MP_TRANSFORM_YEAR + i), 0};
    CHECK_STR(cut_text(), MP_STR("2024,1,1,0:0 3;2023,12,31,23:1;~,~,~,~:2;1969,12,31,22:4"));
    for (unsigned i = 0; i < 4; i++)
        fields[i].transform = (uint8_t)(MP_TRANSFORM_EPOCH_YEAR + i);
    CHECK_STR(cut_text(),
              MP_STR("54,648,19723,473352:0 3;53,647,19722,473351:1;~,~,~,~:2;-1,-1,-1,-2:4"));
    lines_close(&lines);
}

static void null_empty_and_text_are_three_files(void)
{
    lines_open(&lines);
    lines_add(&lines, "{\"r\":\"x\",\"n\":1}");
    lines_add(&lines, "{\"r\":\"\",\"n\":2}");
    lines_add(&lines, "{\"n\":3}");
    lines_add(&lines, "{\"r\":\"x\",\"n\":4}");
    lines_seal(&lines, false);
    lines.sealed.partition_count = 1;
    fields[0] = (struct mp_partition_field){1, MP_TRANSFORM_IDENTITY, 0};
    CHECK_STR(cut_text(), MP_STR("x:0 3;:1;~:2"));
    fields[0] = (struct mp_partition_field){2, MP_TRANSFORM_BUCKET, 4};
    CHECK_STR(cut_text(), MP_STR("0:0 1;3:2;2:3"));
    lines_close(&lines);
}

static void identity_of_doubles_and_absent_columns(void)
{
    lines_open(&lines);
    lines_live(&lines, "d", MP_TYPE(DOUBLE));
    lines_live(&lines, "gone", MP_TYPE(VARCHAR));
    lines_add(&lines, "{\"d\":\"nan\"}");
    lines_add(&lines, "{\"d\":1e16}");
    lines_add(&lines, "{\"d\":\"nan\"}");
    lines_seal(&lines, false);
    lines.sealed.partition_count = 2;
    fields[0] = (struct mp_partition_field){1, MP_TRANSFORM_IDENTITY, 0};
    fields[1] = (struct mp_partition_field){2, MP_TRANSFORM_IDENTITY, 0};
    CHECK_STR(cut_text(), MP_STR("nan,~:0 2;1e+16,~:1"));
    lines_close(&lines);
}

static void rows_are_sorted_nulls_last_and_stable(void)
{
    lines_open(&lines);
    lines_add(&lines, "{\"a\":2,\"s\":\"b\"}");
    lines_add(&lines, "{\"s\":\"a\"}");
    lines_add(&lines, "{\"a\":1,\"s\":\"z\"}");
    lines_add(&lines, "{\"a\":2,\"s\":\"a\"}");
    lines_add(&lines, "{\"a\":2,\"s\":\"b\"}");
    lines_seal(&lines, false);
    lines.sealed.sort_count = 2;
    sorts[0] = (struct mp_sort_field){1, false, false};
    sorts[1] = (struct mp_sort_field){2, false, false};
    CHECK_STR(cut_text(), MP_STR(":2 3 0 4 1"));
    sorts[0] = (struct mp_sort_field){1, true, true};
    CHECK_STR(cut_text(), MP_STR(":1 3 0 4 2"));
    lines_close(&lines);
}

static void nothing_to_cut_needs_no_rows(void)
{
    struct mp_column *columns;
    struct mp_cut cut;
    struct mp_err err;
    uint32_t count;

    lines_open(&lines);
    lines_add(&lines, "{\"a\":2}");
    lines_seal(&lines, false);
    columns = mp_batch_columns(lines.batch, &count);
    CHECK_OK(mp_cut_columns(&lines.arena, columns, count, &lines.sealed, 1, &err, &cut), err);
    CHECK_INT(cut.count, 1);
    CHECK(cut.files[0].rows == NULL);
    mp_cut_fini(&cut);
    /* hour of a date is refused by name */
    lines.sealed_columns[0].type = MP_TYPE(DATE);
    lines.sealed.partition = fields;
    lines.sealed.partition_count = 1;
    fields[0] = (struct mp_partition_field){1, MP_TRANSFORM_HOUR, 0};
    CHECK_INT(mp_cut_columns(&lines.arena, columns, count, &lines.sealed, 1, &err, &cut),
              MP_BAD_CONFIG);
    CHECK(strstr(err.text, "\"a\"") != NULL);
    lines_close(&lines);
}

/* Values of pyhoglake 1.3.11, and of the Iceberg specification, appendix B. */
static void bucket_hashes_match_iceberg(void)
{
    int64_t big = INT64_C(1) << 62, time = 81068000000, at = 1510871468000000, cents = -1420;
    int32_t most = 65535, byte = 34;
    unsigned char wide[16] = {[14] = 1420 >> 8, [15] = 1420 & 255}, zero[16] = {0};

    CHECK_INT(mp_bucket_hash(MP_TYPE(INT64), mp_str_n(&big, 8), true), -1149829158);
    CHECK_INT(mp_bucket_hash(MP_TYPE(UINT16), mp_str_n(&most, 4), true), 2037014853);
    CHECK_INT(mp_bucket_hash(MP_TYPE(UINT8), mp_str_n(&byte, 4), true), 2017239379);
    CHECK_INT(mp_bucket_hash(MP_TYPE(TIME), mp_str_n(&time, 8), true), -662762989);
    CHECK_INT(mp_bucket_hash(MP_TYPE(TIMESTAMPTZ), mp_str_n(&at, 8), true), -2047944441);
    CHECK_INT(mp_bucket_hash(MP_TYPE(VARCHAR), MP_STR("h\xc3\xa9llo"), true), -1130389400);
    CHECK_INT(mp_bucket_hash(MP_TYPE(BLOB), MP_STR("\0\1\2\3"), true), -188683207);
    CHECK_INT(mp_bucket_hash((struct mp_type){MP_TYPE_DECIMAL, 18, 2}, mp_str_n(&cents, 8), true),
              667775751);
    CHECK_INT(mp_bucket_hash((struct mp_type){MP_TYPE_DECIMAL, 38, 2}, mp_str_n(wide, 16), true),
              -500754589);
    CHECK_INT(mp_bucket_hash((struct mp_type){MP_TYPE_DECIMAL, 38, 2}, mp_str_n(zero, 16), true),
              1364076727);
    CHECK(mp_transform_fits(MP_TRANSFORM_BUCKET_ICEBERG, MP_TYPE(UINT16)));
    CHECK(!mp_transform_fits(MP_TRANSFORM_BUCKET_ICEBERG, MP_TYPE(DOUBLE)));
    CHECK(!mp_transform_fits(MP_TRANSFORM_BUCKET_ICEBERG, MP_TYPE(UINT32_LONG)));
    CHECK(!mp_transform_fits(MP_TRANSFORM_BUCKET_ICEBERG, MP_TYPE(TIMESTAMP_MS)));
    CHECK(!mp_transform_fits(MP_TRANSFORM_EPOCH_HOUR, MP_TYPE(DATE)));
}

static struct mp_arena texts;

static struct mp_str hog(struct mp_type type, const void *value, size_t size)
{
    return mp_value_text_hoglake(&texts, type, mp_str_n(value, size));
}

static struct mp_str hog_i64(uint8_t id, int64_t value)
{
    return hog((struct mp_type){.id = id}, &value, sizeof(value));
}

static struct mp_str hog_decimal(uint8_t scale, int64_t unscaled)
{
    return hog((struct mp_type){MP_TYPE_DECIMAL, 18, scale}, &unscaled, sizeof(unscaled));
}

/* As Python's isoformat, repr and str(Decimal) spell them. */
static void hoglake_has_a_spelling_of_its_own(void)
{
    double whole = 1e16, small = 1e-5, zero = -0.0, huge = 1e300, odd = 123456789.125;
    float tenth = 0.1f;
    int32_t day = -716239; /* 0009-01-02 */

    mp_arena_init(&texts, 0);
    CHECK_STR(hog_i64(MP_TYPE_TIMESTAMPTZ, 0), MP_STR("1970-01-01T00:00:00+00:00"));
    CHECK_STR(hog_i64(MP_TYPE_TIMESTAMPTZ, -1), MP_STR("1969-12-31T23:59:59.999999+00:00"));
    CHECK_STR(hog_i64(MP_TYPE_TIMESTAMPTZ, 1704067200123456),
              MP_STR("2024-01-01T00:00:00.123456+00:00"));
    CHECK_STR(hog_i64(MP_TYPE_TIMESTAMPTZ, -3600000001),
              MP_STR("1969-12-31T22:59:59.999999+00:00"));
    CHECK_STR(hog_i64(MP_TYPE_TIMESTAMP, 1767323045600000), MP_STR("2026-01-02T03:04:05.600000"));
    CHECK_STR(hog_i64(MP_TYPE_TIMESTAMP_MS, 1767323045123), MP_STR("2026-01-02T03:04:05.123000"));
    CHECK_STR(hog_i64(MP_TYPE_TIMESTAMP_S_MS, 1767323045000), MP_STR("2026-01-02T03:04:05"));
    CHECK_STR(hog_i64(MP_TYPE_TIMESTAMP_NS, -1), MP_STR("-1"));
    CHECK_STR(hog_i64(MP_TYPE_TIMESTAMP_NS, 1788609600123456789), MP_STR("1788609600123456789"));
    CHECK_STR(hog_i64(MP_TYPE_TIME, 3723000000), MP_STR("01:02:03"));
    CHECK_STR(hog_i64(MP_TYPE_TIME, 3723000004), MP_STR("01:02:03.000004"));
    CHECK_STR(hog(MP_TYPE(DATE), &day, 4), MP_STR("0009-01-02"));
    CHECK_STR(hog(MP_TYPE(DOUBLE), &whole, 8), MP_STR("1e+16"));
    CHECK_STR(hog(MP_TYPE(DOUBLE), &small, 8), MP_STR("1e-05"));
    CHECK_STR(hog(MP_TYPE(DOUBLE), &zero, 8), MP_STR("-0.0"));
    CHECK_STR(hog(MP_TYPE(DOUBLE), &huge, 8), MP_STR("1e+300"));
    CHECK_STR(hog(MP_TYPE(DOUBLE), &odd, 8), MP_STR("123456789.125"));
    CHECK_STR(hog(MP_TYPE(FLOAT), &tenth, 4), MP_STR("0.10000000149011612"));
    CHECK_STR(hog_decimal(2, 150), MP_STR("1.50"));
    CHECK_STR(hog_decimal(2, -1), MP_STR("-0.01"));
    CHECK_STR(hog_decimal(2, 0), MP_STR("0.00"));
    CHECK_STR(hog_decimal(2, 100000000), MP_STR("1000000.00"));
    CHECK_STR(hog_decimal(6, 1), MP_STR("0.000001"));
    CHECK_STR(hog_decimal(6, 0), MP_STR("0.000000"));
    CHECK_STR(hog_decimal(7, 1), MP_STR("1E-7"));
    CHECK_STR(hog_decimal(7, 0), MP_STR("0E-7"));
    CHECK_STR(hog_decimal(7, 12), MP_STR("0.0000012"));
    CHECK_STR(hog_decimal(9, -125), MP_STR("-1.25E-7"));
    CHECK_STR(hog_decimal(0, -7), MP_STR("-7"));
    CHECK_STR(hog_i64(MP_TYPE_UINT32_LONG, 4294967295), MP_STR("4294967295"));
    CHECK_STR(hog_i64(MP_TYPE_UINT64, -1), MP_STR("18446744073709551615"));
    CHECK_STR(hog(MP_TYPE(BLOB), "\0\1\xff", 3), MP_STR("AAH/"));
    CHECK_STR(hog(MP_TYPE(BLOB), "", 0), MP_STR(""));
    CHECK_STR(hog(MP_TYPE(VARCHAR), "a b", 3), MP_STR("a b"));
    CHECK_STR(hog(MP_TYPE(BOOL), "\1", 1), MP_STR("true"));
    mp_arena_fini(&texts);
}

static void the_schema_says_which_spelling(void)
{
    lines_open(&lines);
    lines_live(&lines, "at", MP_TYPE(TIMESTAMPTZ));
    lines_live(&lines, "d", MP_TYPE(DOUBLE));
    fields[0] = (struct mp_partition_field){1, MP_TRANSFORM_IDENTITY, 0};
    fields[1] = (struct mp_partition_field){1, MP_TRANSFORM_EPOCH_HOUR, 0};
    fields[2] = (struct mp_partition_field){2, MP_TRANSFORM_IDENTITY, 0};
    lines_add(&lines, "{\"at\":\"1969-12-31T22:59:59.5Z\",\"d\":-0.0}");
    lines_add(&lines, "{\"at\":\"1969-12-31T22:59:59.5Z\",\"d\":0.0}");
    lines_add(&lines, "{\"d\":1e16}");
    lines_seal(&lines, false);
    lines.sealed.partition_count = 3;
    lines.sealed.spelling = MP_SPELLING_HOGLAKE;
    CHECK_STR(cut_text(), MP_STR("1969-12-31T22:59:59.500000+00:00,-2,-0.0:0;"
                                 "1969-12-31T22:59:59.500000+00:00,-2,0.0:1;~,~,1e+16:2"));
    lines.sealed.spelling = MP_SPELLING_DUCKLAKE;
    CHECK_STR(cut_text(), MP_STR("1969-12-31 22:59:59.5+00,-2,-0.0:0;"
                                 "1969-12-31 22:59:59.5+00,-2,0.0:1;~,~,1e+16:2"));
    lines_close(&lines);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(bucket_hashes_match_the_extension),     TEST(rows_go_to_their_calendar_file),
        TEST(null_empty_and_text_are_three_files),   TEST(identity_of_doubles_and_absent_columns),
        TEST(rows_are_sorted_nulls_last_and_stable), TEST(nothing_to_cut_needs_no_rows),
        TEST(bucket_hashes_match_iceberg),           TEST(hoglake_has_a_spelling_of_its_own),
        TEST(the_schema_says_which_spelling),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
