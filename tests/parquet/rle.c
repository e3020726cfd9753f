/* tests/parquet/rle.c - levels and indices: bytes worked out by hand, then a decoder of the test's
 * own over many shapes. */
#include "base/mem.h"
#include "harness/test.h"
#include "parquet/parquet_priv.h"

static uint8_t out[1 << 20];
static uint32_t decoded[1 << 16];

#define CHECK_BYTES(size, ...)                                                                     \
    do {                                                                                           \
        static const unsigned char want[] = {__VA_ARGS__};                                         \
        CHECK_STR(mp_str_n(out, size), mp_str_n(want, sizeof(want)));                              \
    } while (0)

/* Parquet "Encodings", RLE / bit-packing hybrid; gives the values read. */
static uint32_t decode(const uint8_t *at, size_t size, unsigned width)
{
    const uint8_t *end = at + size;
    uint32_t count = 0;

    while (at < end) {
        uint32_t head = 0, shift = 0, value = 0;

        do {
            head |= (uint32_t)(*at & 0x7f) << shift;
            shift += 7;
        } while (*at++ & 0x80);
        if (head & 1) {
            for (uint32_t i = 0; i < (head >> 1) * 8; i++, count++) {
                decoded[count] = 0;
                for (unsigned bit = 0; bit < width; bit++) {
                    size_t where = (size_t)i * width + bit;

                    decoded[count] |= (uint32_t)(at[where / 8] >> (where & 7) & 1) << bit;
                }
            }
            at += (size_t)(head >> 1) * width;
        } else {
            for (unsigned byte = 0; byte < (width + 7) / 8; byte++)
                value |= (uint32_t)*at++ << (8 * byte);
            for (uint32_t i = 0; i < head >> 1; i++)
                decoded[count++] = value;
        }
    }
    CHECK(at == end);
    return count;
}

static void levels_all_alike_are_one_run(void)
{
    uint64_t bits[4] = {0x3ff, 0, 0, 0};

    CHECK_BYTES(mp_rle_bits(bits, 10, out), 0x14, 0x01);
    bits[0] = 0;
    CHECK_BYTES(mp_rle_bits(bits, 10, out), 0x14, 0x00);
    for (int i = 0; i < 4; i++)
        bits[i] = UINT64_MAX;
    CHECK_BYTES(mp_rle_bits(bits, 256, out), 0x80, 0x04, 0x01);
}

static void mixed_levels_are_packed_lowest_bit_first(void)
{
    uint64_t bits[1] = {0x5};

    CHECK_BYTES(mp_rle_bits(bits, 3, out), 0x03, 0x05);
    bits[0] = 0x1a5;
    CHECK_BYTES(mp_rle_bits(bits, 9, out), 0x05, 0xa5, 0x01);
}

static void runs_and_packed_words_alternate(void)
{
    uint64_t bits[4] = {UINT64_MAX, 1, 0, 0};

    CHECK_BYTES(mp_rle_bits(bits, 200, out), 0x80, 0x01, 0x01, /* 64 ones */
                0x11, 1, 0, 0, 0, 0, 0, 0, 0,                  /* 8 groups */
                0x90, 0x01, 0x00); /* 72 zeros, the last 8 past word 3 */
}

static void indices_of_the_format_document(void)
{
    static const uint32_t values[8] = {0, 1, 2, 3, 4, 5, 6, 7};

    CHECK_BYTES(mp_rle_indices(values, 8, 3, out), 0x03, 0x88, 0xc6, 0xfa);
}

static void a_long_run_of_one_index_is_a_run(void)
{
    uint32_t values[100];

    for (int i = 0; i < 100; i++)
        values[i] = 4;
    CHECK_BYTES(mp_rle_indices(values, 100, 3, out), 0xc8, 0x01, 0x04);
    for (int i = 0; i < 100; i++)
        values[i] = 0x1234;
    CHECK_BYTES(mp_rle_indices(values, 100, 13, out), 0xc8, 0x01, 0x34, 0x12);
}

static void the_last_group_is_filled_with_zeros(void)
{
    static const uint32_t values[3] = {1, 2, 3};

    CHECK_BYTES(mp_rle_indices(values, 3, 2, out), 0x03, 0x39, 0x00);
}

static void widths(void)
{
    CHECK_INT(mp_rle_width(1), 1);
    CHECK_INT(mp_rle_width(2), 1);
    CHECK_INT(mp_rle_width(3), 2);
    CHECK_INT(mp_rle_width(256), 8);
    CHECK_INT(mp_rle_width(257), 9);
    CHECK_INT(mp_rle_width(UINT32_MAX), 32);
}

static uint64_t state = 1;

static uint32_t chance(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static void indices_come_back(void)
{
    static uint32_t values[5000];

    for (unsigned width = 1; width <= 32; width++)
        for (int round = 0; round < 40; round++) {
            uint32_t count = 1 + chance(5000), run = 0, value = 0;
            uint32_t run_max = round % 4 == 0 ? 1 : round % 4 == 1 ? 12 : round % 4 == 2 ? 70 : 900;
            size_t size;

            for (uint32_t i = 0; i < count; i++) {
                if (run-- == 0) {
                    run = chance(run_max);
                    value = (uint32_t)(((uint64_t)chance(1u << 31) << 1 | chance(2)) &
                                       ((UINT64_C(1) << width) - 1));
                }
                values[i] = value;
            }
            size = mp_rle_indices(values, count, width, out);
            CHECK(size <= mp_rle_indices_max(count, width));
            CHECK_INT(decode(out, size, width) >= count, 1);
            CHECK(memcmp(decoded, values, count * sizeof(*values)) == 0);
        }
}

static void levels_come_back(void)
{
    static uint64_t bits[80];

    for (int round = 0; round < 2000; round++) {
        uint32_t count = 1 + chance(5000);
        size_t size;

        memset(bits, 0, sizeof(bits));
        for (uint32_t i = 0; i < count; i++)
            if (round % 3 == 0 ? chance(2) : round % 3 == 1 ? i / 100 % 2 : chance(200) != 0)
                bits[i / 64] |= UINT64_C(1) << (i & 63);
        size = mp_rle_bits(bits, count, out);
        CHECK(size <= mp_rle_bits_max(count));
        CHECK(decode(out, size, 1) >= count);
        for (uint32_t i = 0; i < count; i++)
            CHECK_INT(decoded[i], bits[i / 64] >> (i & 63) & 1);
    }
}

static void levels_inside_groups(void)
{
    /* null, no object, object without a value, twice an object with one: of a leaf in two groups,
     * and of the value beside them, in one */
    static const uint8_t around[] = {9, 0, 1, 2, 2, 2};
    static uint32_t scratch[8];
    uint64_t inner = 0x18, outer = 0x06;
    struct mp_nest nest = {around, 2};

    CHECK_BYTES(mp_levels_write(&nest, &inner, 1, 5, scratch, out), 0x03, 0xe4, 0x03);
    nest.groups = 1;
    CHECK_BYTES(mp_levels_write(&nest, &outer, 1, 5, scratch, out), 0x03, 0x68, 0x01);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(levels_all_alike_are_one_run),
        TEST(mixed_levels_are_packed_lowest_bit_first),
        TEST(runs_and_packed_words_alternate),
        TEST(indices_of_the_format_document),
        TEST(a_long_run_of_one_index_is_a_run),
        TEST(the_last_group_is_filled_with_zeros),
        TEST(widths),
        TEST(indices_come_back),
        TEST(levels_come_back),
        TEST(levels_inside_groups),
    };
    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
