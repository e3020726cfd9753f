/* tests/parquet/thrift_in.c - reading the compact protocol, mostly what must be refused. */
#include "parquet/thrift_in.h"

#include "harness/test.h"
#include "parquet/parquet_priv.h"

struct inner {
    uint32_t has;
    int32_t number;
};

struct outer {
    uint32_t has;
    int64_t wide;
    bool flag;
    struct mp_str text, raw;
    struct inner one;
    struct inner *items;
    uint32_t item_count;
};

static const struct mp_thrift_rule inner_rules[] = {
    {1, MP_THRIFT_TO_I32, offsetof(struct inner, number), 0, 0, NULL},
};
static const struct mp_thrift_shape inner_shape = {"Inner", inner_rules,          1,
                                                   1 << 1,  sizeof(struct inner), 3};
static const struct mp_thrift_rule outer_rules[] = {
    {1, MP_THRIFT_TO_I64, offsetof(struct outer, wide), 0, 0, NULL},
    {2, MP_THRIFT_TO_BOOL, offsetof(struct outer, flag), 0, 0, NULL},
    {3, MP_THRIFT_TO_TEXT, offsetof(struct outer, text), 0, 0, NULL},
    {4, MP_THRIFT_TO_STRUCT, offsetof(struct outer, one), 0, offsetof(struct outer, raw),
     &inner_shape},
    {5, MP_THRIFT_TO_LIST, offsetof(struct outer, items), offsetof(struct outer, item_count), 0,
     &inner_shape},
};
static const struct mp_thrift_shape outer_shape = {"Outer", outer_rules,          5,
                                                   1 << 1,  sizeof(struct outer), 3};

static struct mp_err err;

static enum mp_code read_bytes(struct mp_str bytes, struct outer *ret)
{
    static struct mp_arena arena;
    struct mp_thrift_in in;

    mp_arena_fini(&arena);
    mp_arena_init(&arena, 0);
    *ret = (struct outer){0};
    mp_thrift_in_begin(&in, bytes, &err);
    mp_thrift_in_struct(&in, &arena, &outer_shape, ret);
    return in.code;
}

#define READ(ret, ...)                                                                             \
    read_bytes(mp_str_n((const char[]){__VA_ARGS__}, sizeof((const char[]){__VA_ARGS__})), ret)

static void what_the_writer_wrote_comes_back(void)
{
    struct mp_buf buf = MP_BUF_INIT(1 << 16);
    struct mp_thrift t = {.out = &buf};
    struct outer got;

    mp_thrift_begin(&t);
    mp_thrift_i64(&t, 1, INT64_MIN);
    mp_thrift_bool(&t, 2, true);
    mp_thrift_binary(&t, 3, MP_STR("text"));
    mp_thrift_struct(&t, 4);
    mp_thrift_i32(&t, 1, -7);
    mp_thrift_binary(&t, 300, MP_STR("unknown"));
    mp_thrift_end(&t);
    mp_thrift_list(&t, 5, MP_THRIFT_STRUCT, 20);
    for (int i = 0; i < 20; i++) {
        mp_thrift_begin(&t);
        mp_thrift_i32(&t, 1, i);
        mp_thrift_end(&t);
    }
    mp_thrift_end(&t);
    CHECK_OK(read_bytes(mp_buf_str(&buf), &got), err);
    CHECK_INT(got.has, 0x3e);
    CHECK(got.wide == INT64_MIN && got.flag);
    CHECK_STR(got.text, MP_STR("text"));
    CHECK_INT(got.one.number, -7);
    CHECK_INT(got.raw.size, 2 + 3 + 8 + 1);
    CHECK_INT(got.item_count, 20);
    CHECK_INT(got.items[19].number, 19);
    /* every shorter input is refused, none is read past its end */
    for (size_t size = 0; size < buf.size; size++)
        CHECK_INT(read_bytes(mp_str_n(buf.data, size), &got), MP_BAD_DATA);
    mp_buf_fini(&buf);
}

static void unknown_fields_of_every_type_are_skipped(void)
{
    struct outer got;

    /* field 1, then 15 to 25: true, byte, double, list of bools, set, map, empty map, uuid, struct
     */
    CHECK_OK(READ(&got, 0x16, 0x08, (char)0xe1, 0x13, 5, 0x17, 1, 2, 3, 4, 5, 6, 7, 8, 0x19, 0x21,
                  1, 2, 0x1a, 0x15, 2, 0x1b, 1, 0x5c, 4, 0x15, 2, 0, 0x1b, 0, 0x1d, 1, 2, 3, 4, 5,
                  6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0x1c, 0x11, 0, 0),
             err);
    CHECK_INT(got.wide, 4);
}

static void lengths_beyond_the_input_are_refused(void)
{
    struct outer got;

    CHECK_INT(READ(&got, 0x16, 2, 0x28, 5, 'a', 0), MP_BAD_DATA);
    CHECK_STR(mp_str_c(err.text), MP_STR("5 bytes announced, 2 are left at byte 4 of 6"));
    CHECK_INT(READ(&got, 0x16, 2, 0x49, (char)0xfc, (char)0xff, (char)0xff, 3, 0), MP_BAD_DATA);
    CHECK_INT(READ(&got, 0x16, 2, (char)0xe9, (char)0xfb, (char)0xff, (char)0xff, 3, 0),
              MP_BAD_DATA);
    CHECK_INT(READ(&got, 0x16, 2, (char)0xeb, (char)0xff, (char)0xff, 3, 0x33, 0), MP_BAD_DATA);
}

static void a_varint_has_64_bits(void)
{
    struct outer got;

    CHECK_OK(READ(&got, 0x16, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 0), err);
    CHECK(got.wide == INT64_MIN);
    CHECK_INT(READ(&got, 0x16, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2, 0), MP_BAD_DATA);
    CHECK_INT(READ(&got, 0x16, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 0), MP_BAD_DATA);
}

static void types_and_required_fields_are_checked(void)
{
    struct outer got;

    CHECK_INT(READ(&got, 0x15, 2, 0), MP_BAD_DATA);
    CHECK_STR(mp_str_c(err.text), MP_STR("field 1 of Outer has type 5, not 6 at byte 1 of 3"));
    CHECK_INT(READ(&got, 0x21, 0), MP_BAD_DATA);
    CHECK_STR(mp_str_c(err.text), MP_STR("a Outer without its field 1 at byte 2 of 2"));
    CHECK_INT(READ(&got, 0x16, 2, 0x3c, 0x15, -1, -1, -1, -1, 0x1f, 0, 0), MP_BAD_DATA);
}

static void nesting_has_a_limit(void)
{
    char bytes[200] = {0x16, 2, (char)0xec};
    struct outer got;

    /* field 15 is a struct whose field 1 is a struct ... */
    for (unsigned depth = 1; depth < MP_THRIFT_SKIP_DEPTH_MAX; depth++)
        bytes[2 + depth] = 0x1c;
    CHECK_OK(read_bytes(mp_str_n(bytes, sizeof(bytes)), &got), err);
    bytes[2 + MP_THRIFT_SKIP_DEPTH_MAX] = 0x1c;
    CHECK_INT(read_bytes(mp_str_n(bytes, sizeof(bytes)), &got), MP_BAD_DATA);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(what_the_writer_wrote_comes_back),      TEST(unknown_fields_of_every_type_are_skipped),
        TEST(lengths_beyond_the_input_are_refused),  TEST(a_varint_has_64_bits),
        TEST(types_and_required_fields_are_checked), TEST(nesting_has_a_limit),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
