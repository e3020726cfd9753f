/* tests/parquet/footer.c - the tail, the tree, and footers that contradict themselves. */
#include "parquet/footer.h"

#include "parquet/footer_maker.h"

static struct mp_arena arena;
static struct mp_buf buf;
static struct mp_err err;

static struct mp_thrift begin(void)
{
    mp_buf_fini(&buf);
    mp_arena_fini(&arena);
    mp_arena_init(&arena, 0);
    buf = MP_BUF_INIT(1 << 24);
    return (struct mp_thrift){.out = &buf};
}

static enum mp_code tail(const char *text, uint64_t file_bytes, uint32_t *ret)
{
    return mp_parquet_footer_bytes(mp_str_n(text, 8), file_bytes, &err, ret);
}

static void the_tail_gives_the_length(void)
{
    uint32_t bytes = 7;

    CHECK_OK(tail("\x10\1\0\0PAR1", 284, &bytes), err);
    CHECK_INT(bytes, 0x110);
    CHECK_INT(tail("\x10\1\0\0PAR1", 283, &bytes), MP_BAD_DATA);
    CHECK_STR(mp_str_c(err.text), MP_STR("a footer of 272 bytes in a file of 283"));
    CHECK_INT(tail("\x10\1\0\0PARE", 1000, &bytes), MP_BAD_DATA);
    CHECK_STR(mp_str_c(err.text), MP_STR("the footer is encrypted"));
    CHECK_INT(tail("\x10\1\0\0PAR2", 1000, &bytes), MP_BAD_DATA);
    CHECK_INT(tail("\0\0\0\0PAR1", 11, &bytes), MP_BAD_DATA);
    CHECK_INT(tail("\1\0\0\x04PAR1", UINT64_C(1) << 40, &bytes), MP_BAD_DATA);
    CHECK_INT(bytes, 0x110);
}

/* A group with its children, or a leaf of INT32. */
static void element(struct mp_thrift *t, const char *name, int repetition, int children, int id)
{
    mp_thrift_begin(t);
    if (children < 0)
        mp_thrift_i32(t, 1, MP_PHYSICAL_INT32);
    mp_thrift_i32(t, 3, repetition);
    mp_thrift_binary(t, 4, mp_str_c(name));
    if (children >= 0)
        mp_thrift_i32(t, 5, children);
    if (id)
        mp_thrift_i32(t, 9, id);
    mp_thrift_end(t);
}

static enum mp_code finish(struct mp_thrift *t, const struct mp_parquet_footer **ret)
{
    mp_thrift_i64(t, 3, 0);
    mp_thrift_list(t, 4, MP_THRIFT_STRUCT, 0);
    mp_thrift_end(t);
    return mp_parquet_footer_read(&arena, mp_buf_str(&buf), buf.size + 12, &err, ret);
}

static void the_schema_becomes_a_tree(void)
{
    const struct mp_parquet_footer *footer;
    struct mp_thrift t = begin();

    mp_thrift_begin(&t);
    mp_thrift_i32(&t, 1, 2);
    mp_thrift_list(&t, 2, MP_THRIFT_STRUCT, 8);
    element(&t, "root", 0, 3, 0);
    element(&t, "a", MP_PARQUET_REQUIRED, -1, 1);
    element(&t, "l", MP_PARQUET_OPTIONAL, 1, 2);
    element(&t, "list", MP_PARQUET_REPEATED, 1, 0);
    element(&t, "element", MP_PARQUET_OPTIONAL, 1, 3);
    element(&t, "x", MP_PARQUET_REPEATED, -1, 4);
    element(&t, "s", MP_PARQUET_OPTIONAL, 0, 5);  /* a struct of nothing */
    element(&t, "z", MP_PARQUET_OPTIONAL, -1, 0); /* one too many: see below */
    CHECK_INT(finish(&t, &footer), MP_BAD_DATA);
    CHECK_STR(mp_str_c(err.text),
              MP_STR("parquet footer: schema element 7 of 8 belongs to no group"));

    t = begin();
    mp_thrift_begin(&t);
    mp_thrift_i32(&t, 1, 2);
    mp_thrift_list(&t, 2, MP_THRIFT_STRUCT, 7);
    element(&t, "root", 0, 3, 0);
    element(&t, "a", MP_PARQUET_REQUIRED, -1, 1);
    element(&t, "l", MP_PARQUET_OPTIONAL, 1, 2);
    element(&t, "list", MP_PARQUET_REPEATED, 1, 0);
    element(&t, "element", MP_PARQUET_OPTIONAL, 1, 3);
    element(&t, "x", MP_PARQUET_REPEATED, -1, 4);
    element(&t, "s", MP_PARQUET_OPTIONAL, 0, 5);
    CHECK_OK(finish(&t, &footer), err);
    CHECK_INT(footer->leaf_count, 2);
    CHECK_INT(footer->leaves[1], 5);
    CHECK_STR(mp_parquet_path(&arena, footer, 5), MP_STR("l.list.element.x"));
    CHECK_INT(footer->nodes[5].definition_max, 4);
    CHECK_INT(footer->nodes[5].repetition_max, 2);
    CHECK_INT(footer->nodes[2].end, 6);
    CHECK_INT(footer->nodes[6].parent, 0);
    CHECK(!mp_parquet_misses_field_ids(footer));
}

static void a_tree_has_all_its_children_and_a_depth(void)
{
    const struct mp_parquet_footer *footer;

    for (uint32_t depth = 62; depth <= 64; depth++) { /* groups below the root */
        struct mp_thrift t = begin();

        mp_thrift_begin(&t);
        mp_thrift_i32(&t, 1, 2);
        mp_thrift_list(&t, 2, MP_THRIFT_STRUCT, depth + 2);
        for (uint32_t i = 0; i <= depth; i++)
            element(&t, "g", 1, 1, 0);
        element(&t, "x", 1, -1, 0);
        CHECK_INT(finish(&t, &footer), depth < MP_PARQUET_DEPTH_MAX ? MP_OK : MP_BAD_DATA);
        if (depth < MP_PARQUET_DEPTH_MAX)
            CHECK(mp_parquet_misses_field_ids(footer));
    }
    struct mp_thrift t = begin();

    mp_thrift_begin(&t);
    mp_thrift_i32(&t, 1, 2);
    mp_thrift_list(&t, 2, MP_THRIFT_STRUCT, 2);
    element(&t, "root", 0, 2, 0);
    element(&t, "x", 1, -1, 0);
    CHECK_INT(finish(&t, &footer), MP_BAD_DATA);
    CHECK_STR(mp_str_c(err.text), MP_STR("parquet footer: schema element 0 misses 1 children"));
}

/* A list that claims more than a schema may have is refused before there is memory for it. */
static void a_schema_has_a_largest_size(void)
{
    const struct mp_parquet_footer *footer;
    struct mp_thrift t = begin();

    mp_thrift_begin(&t);
    mp_thrift_i32(&t, 1, 2);
    mp_thrift_list(&t, 2, MP_THRIFT_STRUCT, MP_PARQUET_NODES_MAX + 1);
    memset(mp_buf_reserve(&buf, 1 << 20), 0, 1 << 20);
    buf.size += 1 << 20;
    CHECK_INT(mp_parquet_footer_read(&arena, mp_buf_str(&buf), buf.size + 12, &err, &footer),
              MP_BAD_DATA);
    CHECK(strstr(err.text, "100001 of SchemaElement, at most 100000 are read"));
    CHECK(arena.bytes < 1 << 16);
}

static enum mp_code read_spec(struct footer_spec spec, const struct mp_parquet_footer **ret)
{
    struct mp_str footer;

    begin();
    footer = make_footer(&buf, &spec, 1);
    return mp_parquet_footer_read(&arena, footer, footer.size + 12 + 100, &err, ret);
}

static void contradictions_are_refused(void)
{
    static const struct {
        struct footer_spec spec;
        const char *says;
    } cases[] = {
        {{.rows = 3, .values = 4}, "column 0 has 4 values in 3 rows"},
        {{.rows = -1}, "-1 rows"},
        {{.rows = 1, .bytes = 101}, "column 0 lies at 4 with 101 bytes"},
        {{.rows = 1, .bytes = 100, .start = 5}, "column 0 lies at 5 with 100 bytes"},
        {{.rows = 1, .bytes = 1, .start = 3}, "column 0 lies at 3"},
        {{.rows = 1, .bytes = INT64_MAX}, "column 0 lies at 4"},
        {{.rows = 1, .bytes = 1, .start = INT64_MAX}, "column 0 lies at 9223372036854775807"},
        {{.rows = 1, .bytes = -1}, "1 rows in -1 bytes"},
        {{.rows = 1, .physical = 8}, "physical type 8"},
        {{.rows = 1, .physical = MP_PHYSICAL_FIXED}, "values of 0 bytes"},
        {{.rows = 1, .repetition = 3}, "repetition 3"},
    };
    const struct mp_parquet_footer *footer;

    CHECK_OK(read_spec((struct footer_spec){.rows = 1, .bytes = 100}, &footer), err);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        CHECK_INT(read_spec(cases[i].spec, &footer), MP_BAD_DATA);
        if (!strstr(err.text, cases[i].says))
            test_fail(__FILE__, __LINE__, "case %zu: %s", i, err.text);
    }
}

static void annotations_old_and_new_mean_the_same(void)
{
    static const struct {
        struct footer_spec spec;
        struct mp_parquet_logical want;
    } cases[] = {
        {{.physical = MP_PHYSICAL_INT32, .converted = 18}, {.kind = MP_PARQUET_PLAIN}},
        {{.physical = MP_PHYSICAL_INT64, .converted = 19}, {.kind = MP_PARQUET_PLAIN}},
        {{.physical = MP_PHYSICAL_INT64, .logical = MP_PARQUET_INTEGER, .bits = 64, .is_signed = 1},
         {.kind = MP_PARQUET_PLAIN}},
        {{.physical = MP_PHYSICAL_INT32, .converted = 17},
         {.kind = MP_PARQUET_INTEGER, .bits = 16, .is_signed = true}},
        {{.physical = MP_PHYSICAL_INT64, .converted = 11},
         {.kind = MP_PARQUET_TIMESTAMP, .unit = MP_PARQUET_MICROS, .utc = true}},
        {{.physical = MP_PHYSICAL_INT64,
          .converted = 11,
          .logical = MP_PARQUET_TIMESTAMP,
          .unit = 2},
         {.kind = MP_PARQUET_TIMESTAMP, .unit = MP_PARQUET_MICROS}}, /* the new one counts */
        {{.physical = MP_PHYSICAL_BYTE_ARRAY, .converted = 1}, {.kind = MP_PARQUET_STRING}},
        {{.physical = MP_PHYSICAL_BYTE_ARRAY, .converted = 100}, {.kind = MP_PARQUET_LATER}},
        {{.physical = MP_PHYSICAL_BYTE_ARRAY, .logical = 25}, {.kind = MP_PARQUET_LATER}},
        {{.physical = MP_PHYSICAL_INT64, .logical = MP_PARQUET_TIME, .unit = 9},
         {.kind = MP_PARQUET_LATER, .unit = 0}},
    };
    const struct mp_parquet_footer *footer;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct footer_spec spec = cases[i].spec;
        const struct mp_parquet_logical *got, *want = &cases[i].want;

        spec.rows = 1;
        CHECK_OK(read_spec(spec, &footer), err);
        got = &footer->nodes[1].logical;
        if (got->kind != want->kind || got->bits != want->bits || got->unit != want->unit ||
            got->is_signed != want->is_signed || got->utc != want->utc)
            test_fail(__FILE__, __LINE__, "case %zu", i);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(the_tail_gives_the_length),
        TEST(the_schema_becomes_a_tree),
        TEST(a_tree_has_all_its_children_and_a_depth),
        TEST(a_schema_has_a_largest_size),
        TEST(contradictions_are_refused),
        TEST(annotations_old_and_new_mean_the_same),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
