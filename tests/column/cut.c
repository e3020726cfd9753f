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

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(bucket_hashes_match_the_extension),     TEST(rows_go_to_their_calendar_file),
        TEST(null_empty_and_text_are_three_files),   TEST(identity_of_doubles_and_absent_columns),
        TEST(rows_are_sorted_nulls_last_and_stable), TEST(nothing_to_cut_needs_no_rows),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
