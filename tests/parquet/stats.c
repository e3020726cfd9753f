/* tests/parquet/stats.c - extremes and bounds. */
#include "harness/test.h"
#include "parquet/parquet_priv.h"

#include <math.h>

static struct mp_bound bound;

static struct mp_str made(void)
{
    CHECK(bound.has);
    return mp_str_n(bound.data, bound.size);
}

static void make(struct mp_type type, int which, struct mp_str value, uint32_t max)
{
    mp_bound_make(mp_layout_of(type), which, value, value.size, max, &bound);
}

/* `count` times the unit, behind the head. */
static struct mp_str repeated(const char *head, const char *unit, unsigned count)
{
    static char text[8192];
    size_t size = strlen(head), step = strlen(unit);

    memcpy(text, head, size);
    for (unsigned i = 0; i < count; i++, size += step)
        memcpy(text + size, unit, step);
    return mp_str_n(text, size);
}

static void a_short_text_is_its_own_bound(void)
{
    struct mp_str text = repeated("", "a", 64);

    for (int which = 0; which < 2; which++) {
        make(MP_TYPE(VARCHAR), which, text, 64);
        CHECK_STR(made(), text);
        CHECK(bound.exact);
    }
    make(MP_TYPE(VARCHAR), 0, MP_STR(""), 64);
    CHECK_INT(bound.size, 0);
    CHECK(bound.has && bound.exact);
}

static void a_long_text_is_cut_and_the_upper_bound_raised(void)
{
    make(MP_TYPE(VARCHAR), 0, repeated("", "a", 300), 256);
    CHECK_STR(made(), repeated("", "a", 256));
    CHECK(!bound.exact);
    make(MP_TYPE(VARCHAR), 1, repeated("", "a", 300), 256);
    CHECK_INT(bound.size, 256);
    CHECK_INT(bound.data[254], 'a');
    CHECK_INT(bound.data[255], 'b');
    CHECK(!bound.exact);
}

static void a_cut_never_splits_a_code_point(void)
{
    make(MP_TYPE(VARCHAR), 0, repeated("x", "é", 300), 256); /* 1 + 127 * 2 = 255 */
    CHECK_STR(made(), repeated("x", "é", 127));
    make(MP_TYPE(VARCHAR), 1, repeated("x", "é", 300), 256);
    CHECK_INT(bound.size, 255);
    CHECK_STR(mp_str_n(bound.data + 253, 2), MP_STR("ê"));
    make(MP_TYPE(VARCHAR), 0, repeated("xy", "😀", 70), 64); /* 2 + 15 * 4 = 62 */
    CHECK_STR(made(), repeated("xy", "😀", 15));
}

static void raising_skips_surrogates(void)
{
    make(MP_TYPE(VARCHAR), 1, repeated("a", "\xed\x9f\xbf", 40), 64); /* U+D7FF, 1 + 21 * 3 */
    CHECK_INT(bound.size, 64);
    CHECK_STR(mp_str_n(bound.data + 61, 3), MP_STR("\xee\x80\x80")); /* U+E000 */
}

static void raising_goes_back_where_nothing_larger_fits(void)
{
    char text[66], raised[63];

    /* the 64th byte is 0x7f, and U+0080 has two bytes */
    memset(text, 'a', 63);
    memset(text + 63, 0x7f, 3);
    memset(raised, 'a', 62);
    raised[62] = 'b';
    make(MP_TYPE(VARCHAR), 1, mp_str_n(text, sizeof(text)), 64);
    CHECK_STR(made(), mp_str_n(raised, sizeof(raised)));
    make(MP_TYPE(VARCHAR), 1, repeated("a", "\xf4\x8f\xbf\xbf", 40), 64); /* U+10FFFF */
    CHECK_STR(made(), MP_STR("b"));
}

static void nothing_lies_above_the_last_code_point(void)
{
    make(MP_TYPE(VARCHAR), 1, repeated("", "\xf4\x8f\xbf\xbf", 40), 64);
    CHECK(!bound.has);
    make(MP_TYPE(VARCHAR), 0, repeated("", "\xf4\x8f\xbf\xbf", 40), 64);
    CHECK_STR(made(), repeated("", "\xf4\x8f\xbf\xbf", 16));
}

static void bytes_are_cut_and_raised_as_bytes(void)
{
    make(MP_TYPE(BLOB), 0, repeated("", "é", 40), 63);
    CHECK_INT(bound.size, 63);
    make(MP_TYPE(BLOB), 1, repeated("\x01", "\xff", 80), 64);
    CHECK_STR(made(), MP_STR("\x02"));
    make(MP_TYPE(BLOB), 1, repeated("", "\xff", 80), 64);
    CHECK(!bound.has);
}

static void text_that_is_not_utf8_has_no_cut_bound(void)
{
    make(MP_TYPE(VARCHAR), 0, repeated("", "\x80", 80), 64);
    CHECK(!bound.has);
    make(MP_TYPE(VARCHAR), 1, repeated("", "\xff", 80), 64);
    CHECK(!bound.has);
}

static struct mp_bounds doubles(const double *values, uint32_t count)
{
    struct mp_bounds bounds = {0};

    mp_bounds_add_fixed(&bounds, MP_ORDER_F64, (const char *)values, count);
    mp_bounds_close(&bounds, MP_ORDER_F64);
    return bounds;
}

static double fixed_double(const struct mp_bounds *bounds, int which)
{
    double value;

    memcpy(&value, bounds->fixed[which], 8);
    return value;
}

static void nan_is_counted_and_never_a_bound(void)
{
    const double nan = NAN;
    struct mp_bounds some = doubles((double[]){nan, 2, nan, -1}, 4);
    struct mp_bounds none = doubles((double[]){nan, -nan}, 2);
    struct mp_bounds infinite = doubles((double[]){INFINITY, nan}, 2);

    CHECK_DOUBLE(fixed_double(&some, 0), -1.0);
    CHECK_DOUBLE(fixed_double(&some, 1), 2.0);
    CHECK_INT(some.nans, 2);
    CHECK(!none.has);
    CHECK_INT(none.nans, 2);
    CHECK_DOUBLE(fixed_double(&infinite, 0), INFINITY);
    CHECK_DOUBLE(fixed_double(&infinite, 1), INFINITY);
}

/* binary16, by IEEE 754: in rising order -inf, -2, -2^-24, -0, +0, 2^-24 (the smallest above zero),
 * 2^-14 (the smallest with an exponent), 1, 1 + 2^-10, 65504, inf. */
static void half_floats_have_their_order(void)
{
    static const uint16_t rising[] = {0xfc00, 0xc000, 0x8001, 0x8000, 0x0000, 0x0001,
                                      0x0400, 0x3c00, 0x3c01, 0x7bff, 0x7c00};
    enum { COUNT = sizeof(rising) / sizeof(*rising) };
    static const uint16_t with_nans[] = {0x7e00, 0x0000, 0x3c00, 0xfe01, 0x8000};
    const struct mp_layout layout = {.order = MP_ORDER_F16, .width = 2};
    struct mp_bounds bounds = {0};

    for (unsigned i = 0; i < COUNT; i++)
        for (unsigned k = 0; k < COUNT; k++) {
            int order = mp_order_compare(layout, mp_str_n((const char *)&rising[i], 2),
                                         mp_str_n((const char *)&rising[k], 2));
            bool zeros = (i == 3 || i == 4) && (k == 3 || k == 4);

            CHECK_INT(order, zeros ? 0 : (i > k) - (i < k));
        }
    mp_bounds_add_fixed(&bounds, MP_ORDER_F16, (const char *)rising, COUNT);
    CHECK(memcmp(bounds.fixed[0], &rising[0], 2) == 0);
    CHECK(memcmp(bounds.fixed[1], &rising[COUNT - 1], 2) == 0);
    bounds = (struct mp_bounds){0};
    mp_bounds_add_fixed(&bounds, MP_ORDER_F16, (const char *)with_nans, 5);
    mp_bounds_close(&bounds, MP_ORDER_F16);
    CHECK_INT(bounds.nans, 2);
    CHECK(memcmp(bounds.fixed[0], &rising[3], 2) == 0); /* a zero below is -0 */
    CHECK(memcmp(bounds.fixed[1], &rising[7], 2) == 0);
}

static void zero_bounds_are_signed(void)
{
    struct mp_bounds negative = doubles((double[]){-0.0}, 1);
    struct mp_bounds positive = doubles((double[]){0.0, 0.0}, 2);
    struct mp_bounds mixed = doubles((double[]){0.0, 5.0}, 2);
    float zero = 0;
    struct mp_bounds single = {0};

    CHECK_DOUBLE(fixed_double(&negative, 0), -0.0);
    CHECK_DOUBLE(fixed_double(&negative, 1), 0.0);
    CHECK_DOUBLE(fixed_double(&positive, 0), -0.0);
    CHECK_DOUBLE(fixed_double(&positive, 1), 0.0);
    CHECK_DOUBLE(fixed_double(&mixed, 0), -0.0);
    CHECK_DOUBLE(fixed_double(&mixed, 1), 5.0);
    mp_bounds_add_fixed(&single, MP_ORDER_F32, (const char *)&zero, 1);
    mp_bounds_close(&single, MP_ORDER_F32);
    CHECK_STR(mp_str_n(single.fixed[0], 4), MP_STR("\0\0\0\x80"));
    CHECK_STR(mp_str_n(single.fixed[1], 4), MP_STR("\0\0\0\0"));
}

static void integers_compare_by_their_sign(void)
{
    const int32_t values[3] = {-5, 7, INT32_MIN};
    struct mp_bounds with_sign = {0}, without = {0};
    int32_t got;

    mp_bounds_add_fixed(&with_sign, MP_ORDER_I32, (const char *)values, 3);
    mp_bounds_add_fixed(&without, MP_ORDER_U32, (const char *)values, 3);
    memcpy(&got, with_sign.fixed[0], 4);
    CHECK_INT(got, INT32_MIN);
    memcpy(&got, with_sign.fixed[1], 4);
    CHECK_INT(got, 7);
    memcpy(&got, without.fixed[0], 4);
    CHECK_INT(got, 7);
    memcpy(&got, without.fixed[1], 4);
    CHECK_INT(got, -5);
}

static void wide_decimals_compare_as_twos_complement(void)
{
    static const char values[] = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07"
                                 "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe"
                                 "\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00";
    struct mp_bounds bounds = {0}, uuids = {0};

    mp_bounds_add_fixed(&bounds, MP_ORDER_DECIMAL16, values, 3);
    CHECK_STR(mp_str_n(bounds.fixed[0], 16), mp_str_n(values + 32, 16));
    CHECK_STR(mp_str_n(bounds.fixed[1], 16), mp_str_n(values, 16));
    mp_bounds_add_fixed(&uuids, MP_ORDER_BYTES16, values, 3);
    CHECK_STR(mp_str_n(uuids.fixed[0], 16), mp_str_n(values, 16));
    CHECK_STR(mp_str_n(uuids.fixed[1], 16), mp_str_n(values + 16, 16));
}

static void texts_compare_bytewise_behind_what_is_alike(void)
{
    static const char *const texts[] = {"https://b.example",     "https://a.example",
                                        "https://b.example/",    "https://",
                                        "https://b.example\x7f", "https://b"};
    struct mp_bounds bounds = {0};

    for (int i = 0; i < 6; i++)
        mp_bounds_add_text(&bounds, mp_str_c(texts[i]));
    CHECK_STR(bounds.text[0], MP_STR("https://"));
    CHECK_STR(bounds.text[1], MP_STR("https://b.example\x7f"));
    mp_bounds_add_text(&bounds, MP_STR("http"));
    mp_bounds_add_text(&bounds, MP_STR("https://b.example\xc2\x80"));
    mp_bounds_add_text(&bounds, MP_STR("https://m"));
    CHECK_STR(bounds.text[0], MP_STR("http"));
    CHECK_STR(bounds.text[1], MP_STR("https://m"));
    mp_bounds_add_text(&bounds, MP_STR(""));
    CHECK_STR(bounds.text[0], MP_STR(""));
}

static void a_nul_byte_orders_behind_the_end(void)
{
    struct mp_bounds bounds = {0};

    mp_bounds_add_text(&bounds, MP_STR("a\0"));
    mp_bounds_add_text(&bounds, MP_STR("a"));
    mp_bounds_add_text(&bounds, MP_STR("a\0\0"));
    CHECK_STR(bounds.text[0], MP_STR("a"));
    CHECK_STR(bounds.text[1], MP_STR("a\0\0"));
}

static void random_texts_have_the_extremes_that_sorting_finds(void)
{
    static char texts[500][12];
    static struct mp_str strings[500];
    uint64_t state = 7;

    for (int round = 0; round < 300; round++) {
        struct mp_bounds bounds = {0};
        struct mp_str low = {0}, high = {0};

        for (int i = 0; i < 500; i++) {
            size_t size;

            state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
            size = (state >> 40) % 13;
            for (size_t k = 0; k < size; k++)
                texts[i][k] = (char)("aab\0"[(state >> (k * 3)) & 3] + (round & 1) * 100);
            strings[i] = mp_str_n(texts[i], size);
            mp_bounds_add_text(&bounds, strings[i]);
            low = i == 0 || mp_str_cmp(strings[i], low) < 0 ? strings[i] : low;
            high = i == 0 || mp_str_cmp(strings[i], high) > 0 ? strings[i] : high;
        }
        CHECK_STR(bounds.text[0], low);
        CHECK_STR(bounds.text[1], high);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_short_text_is_its_own_bound),
        TEST(a_long_text_is_cut_and_the_upper_bound_raised),
        TEST(a_cut_never_splits_a_code_point),
        TEST(raising_skips_surrogates),
        TEST(raising_goes_back_where_nothing_larger_fits),
        TEST(nothing_lies_above_the_last_code_point),
        TEST(bytes_are_cut_and_raised_as_bytes),
        TEST(text_that_is_not_utf8_has_no_cut_bound),
        TEST(nan_is_counted_and_never_a_bound),
        TEST(half_floats_have_their_order),
        TEST(zero_bounds_are_signed),
        TEST(integers_compare_by_their_sign),
        TEST(wide_decimals_compare_as_twos_complement),
        TEST(texts_compare_bytewise_behind_what_is_alike),
        TEST(a_nul_byte_orders_behind_the_end),
        TEST(random_texts_have_the_extremes_that_sorting_finds),
    };
    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
