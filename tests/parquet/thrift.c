/* tests/parquet/thrift.c - the compact protocol, against bytes worked out by hand. */
#include "harness/test.h"
#include "parquet/parquet_priv.h"

static struct mp_buf out;

static struct mp_thrift begin(void)
{
    mp_buf_fini(&out);
    out = MP_BUF_INIT(1 << 20);
    return (struct mp_thrift){.out = &out};
}

#define CHECK_BYTES(...)                                                                           \
    do {                                                                                           \
        static const unsigned char want[] = {__VA_ARGS__};                                         \
        CHECK_STR(mp_buf_str(&out), mp_str_n(want, sizeof(want)));                                 \
    } while (0)

static void integers_are_zigzag_varints(void)
{
    struct mp_thrift t = begin();

    mp_thrift_begin(&t);
    mp_thrift_i32(&t, 1, 1);
    mp_thrift_i32(&t, 2, -1);
    mp_thrift_i64(&t, 3, 64);
    mp_thrift_i64(&t, 4, INT64_MIN);
    mp_thrift_i16(&t, 5, -300);
    mp_thrift_byte(&t, 6, -2);
    mp_thrift_end(&t);
    CHECK_BYTES(0x15, 0x02, 0x15, 0x01, 0x16, 0x80, 0x01, 0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                0xff, 0xff, 0xff, 0x01, 0x14, 0xd7, 0x04, 0x13, 0xfe, 0x00);
}

static void a_field_far_from_the_last_has_its_id_written_out(void)
{
    struct mp_thrift t = begin();

    mp_thrift_begin(&t);
    mp_thrift_i32(&t, 15, 0); /* a step of 15 fits */
    mp_thrift_i32(&t, 31, 0); /* one of 16 does not */
    mp_thrift_end(&t);
    CHECK_BYTES(0xf5, 0x00, 0x05, 0x3e, 0x00, 0x00);
}

static void a_bool_field_is_all_header(void)
{
    struct mp_thrift t = begin();

    mp_thrift_begin(&t);
    mp_thrift_bool(&t, 1, true);
    mp_thrift_bool(&t, 2, false);
    mp_thrift_end(&t);
    CHECK_BYTES(0x11, 0x12, 0x00);
}

static void lists_have_short_and_long_heads(void)
{
    struct mp_thrift t = begin();

    mp_thrift_begin(&t);
    mp_thrift_list(&t, 1, MP_THRIFT_TRUE, 2);
    mp_thrift_add_bool(&t, true);
    mp_thrift_add_bool(&t, false);
    mp_thrift_list(&t, 2, MP_THRIFT_I32, 15);
    for (int i = 0; i < 15; i++)
        mp_thrift_add_i32(&t, i);
    mp_thrift_list(&t, 3, MP_THRIFT_BINARY, 1);
    mp_thrift_add_binary(&t, MP_STR("ab"));
    mp_thrift_end(&t);
    CHECK_BYTES(0x19, 0x21, 0x01, 0x02, 0x19, 0xf5, 0x0f, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22,
                24, 26, 28, 0x19, 0x18, 0x02, 'a', 'b', 0x00);
}

static void field_ids_count_anew_in_a_struct_and_go_on_behind_it(void)
{
    struct mp_thrift t = begin();

    mp_thrift_begin(&t);
    mp_thrift_i32(&t, 3, 5);
    mp_thrift_struct(&t, 5);
    mp_thrift_i32(&t, 1, 7);
    mp_thrift_end(&t);
    mp_thrift_i32(&t, 6, 9);
    mp_thrift_end(&t);
    CHECK_BYTES(0x35, 0x0a, 0x2c, 0x15, 0x0e, 0x00, 0x15, 0x12, 0x00);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(integers_are_zigzag_varints),
        TEST(a_field_far_from_the_last_has_its_id_written_out),
        TEST(a_bool_field_is_all_header),
        TEST(lists_have_short_and_long_heads),
        TEST(field_ids_count_anew_in_a_struct_and_go_on_behind_it),
    };
    int result = test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));

    mp_buf_fini(&out);
    return result;
}
