/* tests/server/deletion_vector.c - bitmaps as other libraries write them, and what is wrong with
 * one. Whole files with all kinds of containers: judge_merge.py. */
#include "server/background/deletion_vector.h"

#include "harness/test.h"
#include "server/puffin_maker.h"

#define PATH MP_STR("s3://lake/a.parquet")

static struct mp_arena arena;
static struct mp_err err;
static struct mp_deletion_vector vector;
static struct mp_buf file;
static const char *members; /* of the blob */
static uint32_t crc_bits;   /* that are wrong */

#define BYTES(...) mp_str_n((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void begin(void)
{
    mp_arena_fini(&arena);
    mp_arena_init(&arena, 0);
    mp_buf_fini(&file);
    file = MP_BUF_INIT(1 << 20);
    members = "\"properties\": {\"cardinality\": \"3\"},";
    crc_bits = 0;
}

static enum mp_code read_rows(uint64_t rows)
{
    return mp_deletion_vector_read(&arena, mp_buf_str(&file), PATH, rows, &err, &vector);
}

static enum mp_code read_bitmap(struct mp_str bitmap, uint64_t rows)
{
    mp_buf_clear(&file);
    make_puffin(&file, bitmap, members, crc_bits);
    return read_rows(rows);
}

static bool has(uint64_t row)
{
    return vector.rows[row / 64] >> (row & 63) & 1;
}

/* CRoaring's portable form of {1, 5, 70000}: two containers of arrays. */
#define ONE_BITMAP 1, 0, 0, 0, 0, 0, 0, 0, /* one bitmap */ 0, 0, 0, 0 /* key */
#define ARRAYS                                                                                     \
    ONE_BITMAP, 0x3a, 0x30, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0x18, 0, 0, 0, 0x1c, 0, 0,   \
        0, 1, 0, 5, 0, 0x70, 0x11
/* {10..19, 30}: one container of runs. */
#define RUNS ONE_BITMAP, 0x3b, 0x30, 0, 0, 1, 0, 0, 10, 0, 2, 0, 10, 0, 9, 0, 30, 0, 0, 0

static void arrays_are_read(void)
{
    begin();
    CHECK_OK(read_bitmap(BYTES(ARRAYS), 70001), err);
    CHECK_INT(vector.count, 3);
    CHECK(has(1) && has(5) && has(70000) && !has(0) && !has(4464));
}

static void runs_are_read(void)
{
    begin();
    CHECK_OK(read_bitmap(BYTES(RUNS), 31), err);
    CHECK_INT(vector.count, 11);
    CHECK(has(10) && has(19) && has(30) && !has(9) && !has(20));
}

static void rows_that_are_not_there_are_told(void)
{
    begin();
    CHECK_INT(read_bitmap(BYTES(ARRAYS), 70000), MP_BAD_DATA);
    CHECK(strstr(err.text, "row 70000 is deleted in a file of 70000 rows"));
    CHECK_INT(read_bitmap(BYTES(RUNS), 30), MP_BAD_DATA);
    CHECK(strstr(err.text, "row 30 is deleted in a file of 30 rows"));
}

static void damaged_bitmaps_are_told(void)
{
    static const struct {
        const char *text;
        size_t at;
        uint8_t byte;
    } faults[] = {
        {"behind the last bitmap", 0, 0},
        {"a bitmap ends early", 0, 2},
        {"with the cookie", 12, 0x3c},
        {"a bitmap ends early", 16, 3},
        {"container 0 stands behind 0", 24, 0},
        {"a bitmap ends early", 26, 9},
        {"value 1 of a container stands behind 1", 38, 1},
    };
    uint8_t bytes[] = {ARRAYS};

    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
        uint8_t good = bytes[faults[i].at];

        begin();
        bytes[faults[i].at] = faults[i].byte;
        CHECK_INT(read_bitmap(mp_str_n(bytes, sizeof(bytes)), 70001), MP_BAD_DATA);
        CHECK(strstr(err.text, faults[i].text));
        bytes[faults[i].at] = good;
    }
    CHECK_INT(read_bitmap(BYTES(ONE_BITMAP, 0x3b, 0x30, 0, 0, 1, 0, 0, 10, 0, 2, 0, 10, 0, 9, 0, 19,
                                0, 0, 0),
                          99),
              MP_BAD_DATA);
    CHECK(strstr(err.text, "a run from 19 for 1 behind one to 20"));
}

static void damaged_files_are_told(void)
{
    begin();
    crc_bits = 1;
    CHECK_INT(read_bitmap(BYTES(ARRAYS), 70001), MP_BAD_DATA);
    CHECK(strstr(err.text, "checksum"));
    begin();
    make_puffin(&file, BYTES(ARRAYS), members, 0);
    for (size_t size = 0; size < file.size; size++) {
        struct mp_str cut = mp_str_n(file.data, size);

        CHECK_INT(mp_deletion_vector_read(&arena, cut, PATH, 70001, &err, &vector), MP_BAD_DATA);
    }
    file.data[file.size - 8] = 1;
    CHECK_INT(read_rows(70001), MP_REFUSED);
}

static void a_vector_is_for_one_file(void)
{
    begin();
    members = "\"properties\": {\"referenced-data-file\": \"s3://lake/a.parquet\"},";
    CHECK_OK(read_bitmap(BYTES(ARRAYS), 70001), err);
    members = "\"properties\": {\"referenced-data-file\": \"s3://lake/b.parquet\"},";
    CHECK_INT(read_bitmap(BYTES(ARRAYS), 70001), MP_BAD_DATA);
    CHECK(strstr(err.text, "no vector for its data file"));
    members = "\"compression-codec\": \"zstd\",";
    CHECK_INT(read_bitmap(BYTES(ARRAYS), 70001), MP_REFUSED);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(arrays_are_read),
        TEST(runs_are_read),
        TEST(rows_that_are_not_there_are_told),
        TEST(damaged_bitmaps_are_told),
        TEST(damaged_files_are_told),
        TEST(a_vector_is_for_one_file),
    };
    int code = test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));

    mp_buf_fini(&file);
    mp_arena_fini(&arena);
    return code;
}
