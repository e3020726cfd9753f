/* tests/parquet/footer_stats.c - bounds as Iceberg values, and when there are none. */
#include "parquet/footer_stats.h"

#include "parquet/footer_maker.h"

static struct mp_arena arena;
static struct mp_buf buf;

/* Reads a footer of these row groups; the file is large enough for them. */
static const struct mp_parquet_leaf_stats *stats_of(const struct footer_spec *specs, int count)
{
    const struct mp_parquet_footer *footer;
    struct mp_err err;
    uint32_t leaves;

    mp_buf_fini(&buf);
    mp_arena_fini(&arena);
    mp_arena_init(&arena, 0);
    buf = MP_BUF_INIT(1 << 20);
    CHECK_OK(
        mp_parquet_footer_read(&arena, make_footer(&buf, specs, count), 1 << 20, &err, &footer),
        err);
    return mp_parquet_footer_stats(&arena, footer, &leaves);
}

#define BYTES(...)                                                                                 \
    {                                                                                              \
        (const char[]){__VA_ARGS__}, sizeof((const char[]){__VA_ARGS__})                           \
    }
#define X(n) ((char)(n))

static void values_become_iceberg_values(void)
{
    const struct vector {
        struct footer_spec spec; /* min and max are the same value */
        struct mp_str want;
    } vectors[] = {
        {{.physical = MP_PHYSICAL_BOOLEAN, .min = BYTES(1)}, BYTES(1)},
        {{.physical = MP_PHYSICAL_INT32, .min = BYTES(0x78, 0x56, 0x34, 0x12)},
         BYTES(0x78, 0x56, 0x34, 0x12)},
        {{.physical = MP_PHYSICAL_INT32,
          .logical = MP_PARQUET_INTEGER,
          .bits = 8,
          .is_signed = 1,
          .min = BYTES(X(0x80), -1, -1, -1)},
         BYTES(X(0x80), -1, -1, -1)},
        {{.physical = MP_PHYSICAL_INT32,
          .logical = MP_PARQUET_INTEGER,
          .bits = 32,
          .min = BYTES(0, 0x28, 0x6b, X(0xee))},
         BYTES(0, 0x28, 0x6b, X(0xee), 0, 0, 0, 0)},
        {{.physical = MP_PHYSICAL_INT64,
          .logical = MP_PARQUET_INTEGER,
          .bits = 64,
          .min = BYTES(0, 0, 0, 0, 0, 0, 0, X(0x80))},
         BYTES(0, X(0x80), 0, 0, 0, 0, 0, 0, 0)},
        {{.physical = MP_PHYSICAL_INT64,
          .converted = 15,
          .min = BYTES(X(0x80), 0, 0, 0, 0, 0, 0, 0)},
         BYTES(0, X(0x80))},
        {{.physical = MP_PHYSICAL_INT64, .min = BYTES(0, 0, 0, 0, 0, 0, 0, 0x40)},
         BYTES(0, 0, 0, 0, 0, 0, 0, 0x40)},
        {{.physical = MP_PHYSICAL_INT32,
          .logical = MP_PARQUET_DECIMAL,
          .precision = 4,
          .scale = 2,
          .min = BYTES(0x2e, X(0xfb), -1, -1)},
         BYTES(X(0xfb), 0x2e)},
        {{.physical = MP_PHYSICAL_FIXED,
          .type_length = 5,
          .logical = MP_PARQUET_DECIMAL,
          .precision = 10,
          .scale = 2,
          .min = BYTES(-1, -1, -1, X(0xff), X(0x80))},
         BYTES(X(0x80))},
        {{.physical = MP_PHYSICAL_FIXED,
          .type_length = 4,
          .logical = MP_PARQUET_DECIMAL,
          .precision = 9,
          .min = BYTES(0, 0, 0, X(0x80))},
         BYTES(0, X(0x80))},
        {{.physical = MP_PHYSICAL_INT32,
          .logical = MP_PARQUET_DATE,
          .min = BYTES(X(0xdd), 0x50, 0, 0)},
         BYTES(X(0xdd), 0x50, 0, 0)},
        {{.physical = MP_PHYSICAL_INT32,
          .logical = MP_PARQUET_TIME,
          .unit = 1,
          .min = BYTES(1, 0, 0, 0)},
         BYTES(X(0xe8), 3, 0, 0, 0, 0, 0, 0)},
        {{.physical = MP_PHYSICAL_INT64,
          .logical = MP_PARQUET_TIMESTAMP,
          .unit = 1,
          .min = BYTES(-1, -1, -1, -1, -1, -1, -1, -1)},
         BYTES(0x18, X(0xfc), -1, -1, -1, -1, -1, -1)},
        {{.physical = MP_PHYSICAL_INT64,
          .logical = MP_PARQUET_TIMESTAMP,
          .unit = 3,
          .min = BYTES(0x15, 0x4d, 0x36, 0x71, X(0xf4), 0x6a, X(0xd2), 0x18)},
         BYTES(0x15, 0x4d, 0x36, 0x71, X(0xf4), 0x6a, X(0xd2), 0x18)},
        {{.physical = MP_PHYSICAL_BYTE_ARRAY, .logical = MP_PARQUET_STRING, .min = BYTES('x')},
         BYTES('x')},
        {{.physical = MP_PHYSICAL_BYTE_ARRAY, .min = {"", 0}}, {"", 0}},
        {{.physical = MP_PHYSICAL_FIXED, .type_length = 3, .min = BYTES(0, 1, -1)},
         BYTES(0, 1, -1)},
    };

    for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
        struct footer_spec spec = vectors[i].spec;
        const struct mp_parquet_leaf_stats *stats;

        spec.max = spec.min;
        spec.rows = 1;
        stats = stats_of(&spec, 1);
        if (!stats->lower.has || !mp_str_eq(stats->lower.bytes, vectors[i].want) ||
            !stats->upper.has || !mp_str_eq(stats->upper.bytes, vectors[i].want))
            test_fail(__FILE__, __LINE__, "vector %zu", i);
    }
}

static void what_is_no_bound_is_left_out(void)
{
    const struct footer_spec specs[] = {
        {.physical = MP_PHYSICAL_INT32, .min = BYTES(1, 0, 0), .max = BYTES(1, 0, 0, 0, 0)},
        {.physical = MP_PHYSICAL_FLOAT,
         .min = BYTES(0, 0, X(0xc0), 0x7f),
         .max = BYTES(0, 0, X(0xc0), 0x7f)},
        {.physical = MP_PHYSICAL_INT64,
         .min = BYTES(2, 0, 0, 0, 0, 0, 0, 0),
         .max = BYTES(1, 0, 0, 0, 0, 0, 0, 0)}, /* the wrong way round */
        {.physical = MP_PHYSICAL_INT64,
         .logical = MP_PARQUET_TIMESTAMP,
         .unit = 1,
         .min = BYTES(0, 0, 0, 0, 0, 0, 0, X(0x80)),
         .max = BYTES(-1, -1, -1, -1, -1, -1, -1, 0x7f)},
        {.physical = 3,
         .min = BYTES(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
         .max = BYTES(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)}, /* INT96 */
        {.physical = MP_PHYSICAL_FIXED,
         .type_length = 2,
         .logical = MP_PARQUET_FLOAT16,
         .min = BYTES(0, 0),
         .max = BYTES(0, 0)},
        {.physical = MP_PHYSICAL_BYTE_ARRAY, .logical = 27, .min = BYTES(0), .max = BYTES(0)},
        {.physical = MP_PHYSICAL_BYTE_ARRAY,
         .no_orders = true,
         .min = BYTES('a'),
         .max = BYTES('b')},
        {.physical = MP_PHYSICAL_BYTE_ARRAY, .min_old = BYTES('a'), .max_old = BYTES('b')},
        {.physical = MP_PHYSICAL_INT32,
         .converted = 12,
         .min_old = BYTES(0, 0, 0, 0),
         .max_old = BYTES(1, 0, 0, 0)}, /* unsigned */
    };

    for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
        struct footer_spec spec = specs[i];
        const struct mp_parquet_leaf_stats *stats;

        spec.rows = 1;
        stats = stats_of(&spec, 1);
        if (stats->lower.has || stats->upper.has)
            test_fail(__FILE__, __LINE__, "vector %zu", i);
    }
}

static void old_fields_count_for_signed_types(void)
{
    struct footer_spec spec = {.physical = MP_PHYSICAL_INT32,
                               .rows = 2,
                               .no_orders = true,
                               .min = BYTES(9, 9, 9, 9),
                               .min_old = BYTES(-2, -1, -1, -1),
                               .max_old = BYTES(3, 0, 0, 0)};
    const struct mp_parquet_leaf_stats *stats = stats_of(&spec, 1);

    CHECK_STR(stats->lower.bytes, mp_str_n("\xfe\xff\xff\xff", 4));
    CHECK_STR(stats->upper.bytes, mp_str_n("\3\0\0\0", 4));
    CHECK(!stats->lower.exact);
}

static void zeros_are_signed_by_their_role(void)
{
    struct footer_spec spec = {.physical = MP_PHYSICAL_DOUBLE,
                               .rows = 2,
                               .min = BYTES(0, 0, 0, 0, 0, 0, 0, 0),
                               .max = BYTES(0, 0, 0, 0, 0, 0, 0, X(0x80))};
    const struct mp_parquet_leaf_stats *stats = stats_of(&spec, 1);

    CHECK_STR(stats->lower.bytes, mp_str_n("\0\0\0\0\0\0\0\x80", 8));
    CHECK_STR(stats->upper.bytes, mp_str_n("\0\0\0\0\0\0\0\0", 8));
}

static void row_groups_merge(void)
{
    struct footer_spec specs[] = {
        {.physical = MP_PHYSICAL_FIXED,
         .type_length = 2,
         .logical = MP_PARQUET_DECIMAL,
         .precision = 4,
         .rows = 3,
         .bytes = 10,
         .nulls = 1,
         .exact = true,
         .min = BYTES(-1, -2),
         .max = BYTES(0, 1)},
        {.physical = MP_PHYSICAL_FIXED, .rows = 5, .bytes = 7, .nulls = 5}, /* only nulls */
        {.physical = MP_PHYSICAL_FIXED,
         .rows = 2,
         .bytes = 1,
         .min = BYTES(-2, 0),
         .max = BYTES(1, 0)},
    };
    const struct mp_parquet_leaf_stats *stats = stats_of(specs, 3);

    CHECK_INT(stats->value_count, 10);
    CHECK(stats->has_null_count);
    CHECK_INT(stats->null_count, 6);
    CHECK_INT(stats->size_bytes, 18);
    CHECK_STR(stats->lower.bytes, mp_str_n("\xfe\0", 2));
    CHECK_STR(stats->upper.bytes, mp_str_n("\1\0", 2));
    CHECK(!stats->lower.exact);

    specs[2].max.data = NULL; /* values, and no upper bound */
    stats = stats_of(specs, 3);
    CHECK(stats->lower.has && !stats->upper.has);

    specs[1].no_nulls = true; /* now nobody knows that it has only nulls */
    stats = stats_of(specs, 3);
    CHECK(!stats->has_null_count && !stats->lower.has && !stats->upper.has);
    CHECK_INT(stats->null_count, 0);

    specs[1].no_nulls = false;
    specs[1].nulls = 6; /* of 5: no count */
    CHECK(!stats_of(specs, 3)->has_null_count);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(values_become_iceberg_values),
        TEST(what_is_no_bound_is_left_out),
        TEST(old_fields_count_for_signed_types),
        TEST(zeros_are_signed_by_their_role),
        TEST(row_groups_merge),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
