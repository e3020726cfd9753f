/* tests/parquet/variant.c - a VARIANT made of another column: its schema, levels and counts, and
 * that it comes out the same whether rows are read in place or gathered. What readers make of it is
 * judged by judge_variant_java.py and in tests/e2e/test_variant.py. */
#include "base/mem.h"
#include "harness/test.h"
#include "parquet/footer.h"
#include "parquet/parquet_priv.h"

#include <stdio.h>

enum { ROWS_MAX = 60000, CHUNKS_MAX = 32 };

static struct mp_segment_pool *pool;
static uint64_t validity[ROWS_MAX / 64 + 1];
static struct mp_parquet_chunk *chunks[CHUNKS_MAX];
static struct mp_column column;
static struct mp_parquet_variant_counts counts;
static const struct mp_parquet_variant_options apart = {{MP_STR_INIT("$"), NULL, 0}, 64}, whole;

static void begin_column(struct mp_type type)
{
    if (!pool)
        pool = mp_segment_pool_new(0);
    mp_segment_put_list(pool, &column.segments);
    memset(validity, 0, sizeof(validity));
    column = (struct mp_column){.name = MP_STR("p"), .type = type, .validity = validity};
}

static char *add(size_t bytes)
{
    validity[column.rows / 64] |= UINT64_C(1) << (column.rows & 63);
    column.rows++;
    column.values++;
    return mp_segment_append(pool, &column.segments, bytes);
}

static void add_text(const char *text)
{
    uint32_t size = (uint32_t)strlen(text);
    char *place = add(size + 4);

    memcpy(place, &size, 4);
    memcpy(place + 4, text, size);
}

/* Events: every seventh without $b, every eleventh no object, every thirteenth null, and one that
 * is no JSON. */
static void add_events(uint32_t rows)
{
    char text[128];

    for (uint32_t i = 0; i < rows; i++) {
        snprintf(text, sizeof(text), "{\"$a\":%u,%s\"x\":[%u]}", i, i % 7 ? "\"$b\":\"text\"," : "",
                 i);
        if (i % 13 == 5)
            column.rows++;
        else
            add_text(i == 3 ? "no JSON" : i % 11 == 2 ? "[\"$a\"]" : text);
    }
}

static size_t lent; /* by the pool, before what is encoded */

static void encode(const struct mp_parquet_variant_options *options, const uint32_t *rows,
                   uint32_t group_rows_max)
{
    struct mp_parquet_rows file = {rows, column.rows};
    struct mp_parquet_cut cut = {&file, 1, group_rows_max};
    struct mp_parquet_encoder *encoder =
        mp_parquet_encoder_new(&(struct mp_parquet_options){.codec = MP_CODEC_ZSTD});
    struct mp_err err;

    lent = mp_segment_pool_bytes(pool);

    CHECK(mp_parquet_groups(&cut, 0) <= CHUNKS_MAX);
    counts = (struct mp_parquet_variant_counts){0};
    CHECK_OK(
        mp_parquet_encode_variant(encoder, pool, &column, &cut, options, &err, chunks, &counts),
        err);
    mp_parquet_encoder_free(encoder);
}

static void free_chunks(void)
{
    for (uint32_t i = 0; i < CHUNKS_MAX; i++) {
        mp_parquet_chunk_free(chunks[i]);
        chunks[i] = NULL;
    }
    CHECK_INT(mp_segment_pool_bytes(pool), lent); /* the source is as it was, the leaves are gone */
}

static struct mp_parquet_file *make_file(uint32_t groups)
{
    struct mp_parquet_field field = {MP_STR("v"), MP_TYPE(VARIANT), 7, chunks};

    return mp_parquet_file_new(&field, 1, groups, MP_STR("test"));
}

/* Everything behind the pages: indexes and footer. */
static struct mp_str tail_of(const struct mp_parquet_file *file)
{
    return file->pieces[file->piece_count - 1];
}

static const struct mp_parquet_footer *footer_of(struct mp_arena *arena,
                                                 const struct mp_parquet_file *file)
{
    struct mp_str tail = tail_of(file);
    struct mp_str footer =
        mp_str_n(tail.data + tail.size - 8 - file->footer_bytes, file->footer_bytes);
    const struct mp_parquet_footer *ret;
    struct mp_err err;

    CHECK_OK(mp_parquet_footer_read(arena, footer, file->bytes, &err, &ret), err);
    return ret;
}

struct node {
    const char *path;
    uint8_t repetition; /* 0: required, 1: optional */
    int8_t physical;    /* -1: a group */
    uint16_t definition_max;
};

static void check_schema(const struct mp_parquet_file *file, const struct node *want,
                         uint32_t count)
{
    const struct mp_parquet_footer *footer;
    struct mp_arena arena;

    mp_arena_init(&arena, 0);
    footer = footer_of(&arena, file);
    CHECK_INT(footer->node_count, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const struct mp_parquet_node *node = &footer->nodes[i + 1];

        CHECK_STR(mp_parquet_path(&arena, footer, i + 1), mp_str_c(want[i].path));
        CHECK_INT(node->repetition, want[i].repetition);
        CHECK_INT(node->physical, want[i].physical);
        CHECK_INT(node->definition_max, want[i].definition_max);
        CHECK_INT(node->has_field_id, i == 0); /* the column's, and no other */
        CHECK_INT(node->logical.kind == MP_PARQUET_VARIANT, i == 0);
    }
    CHECK_INT(footer->nodes[1].field_id, 7);
    CHECK(!mp_parquet_misses_field_ids(footer));
    mp_arena_fini(&arena);
}

static void the_schema_is_that_of_the_specification(void)
{
    static const struct node plain[] = {
        {"v", 1, -1, 1}, {"v.metadata", 0, 6, 1}, {"v.value", 0, 6, 1}};
    static const struct node shredded[] = {{"v", 1, -1, 1},
                                           {"v.metadata", 0, 6, 1},
                                           {"v.value", 1, 6, 2},
                                           {"v.typed_value", 1, -1, 2},
                                           {"v.typed_value.$a", 0, -1, 2},
                                           {"v.typed_value.$a.value", 1, 6, 3},
                                           {"v.typed_value.$a.typed_value", 1, 2, 3},
                                           {"v.typed_value.$b", 0, -1, 2},
                                           {"v.typed_value.$b.value", 1, 6, 3},
                                           {"v.typed_value.$b.typed_value", 1, 6, 3}};
    struct mp_parquet_file *file;

    begin_column(MP_TYPE(VARCHAR));
    add_events(500);
    encode(&whole, NULL, 500);
    file = make_file(1);
    check_schema(file, plain, 3);
    mp_parquet_file_free(file);
    free_chunks();
    encode(&apart, NULL, 200); /* one shape in three row groups */
    file = make_file(3);
    check_schema(file, shredded, 10);
    mp_parquet_file_free(file);
    free_chunks();
}

static void values_are_counted(void)
{
    const struct mp_parquet_footer *footer;
    struct mp_parquet_file *file;
    struct mp_arena arena;
    uint32_t nulls = 0, values[6] = {0}; /* of the leaves */

    begin_column(MP_TYPE(VARCHAR));
    add_events(500);
    add_text("100000000000000000000000000000000000000"); /* 39 digits */
    for (uint32_t i = 0; i < 500; i++) {
        bool object = i % 11 != 2;

        if (i % 13 == 5 || i == 3) {
            nulls++;
            continue;
        }
        values[0]++;
        values[1]++; /* "x" is left of an object */
        values[3] += object;
        values[5] += object && i % 7;
    }
    values[0]++;
    values[1]++;
    encode(&apart, NULL, 501);
    CHECK_INT(counts.unfit, 1);
    CHECK_INT(counts.rounded, 1);
    file = make_file(1);
    CHECK_INT(file->stats_count, 1);
    CHECK_INT(file->stats[0].rows, 501);
    CHECK_INT(file->stats[0].nulls, nulls);
    CHECK_INT(file->stats[0].field_id, 7);
    CHECK(!file->stats[0].has_bounds);
    mp_arena_init(&arena, 0);
    footer = footer_of(&arena, file);
    CHECK_INT(footer->leaf_count, 6);
    for (uint32_t leaf = 0; leaf < 6; leaf++) {
        CHECK_INT(footer->groups[0].chunks[leaf].value_count, 501); /* levels */
        CHECK_INT(footer->groups[0].chunks[leaf].statistics.null_count, 501 - values[leaf]);
    }
    mp_arena_fini(&arena);
    mp_parquet_file_free(file);
    free_chunks();
}

static void gathered_rows_give_the_same_bytes(void)
{
    static uint32_t rows[ROWS_MAX];
    struct mp_parquet_file *file;
    struct mp_buf bytes[2] = {MP_BUF_INIT(SIZE_MAX), MP_BUF_INIT(SIZE_MAX)};

    begin_column(MP_TYPE(VARCHAR));
    add_events(ROWS_MAX);
    for (uint32_t i = 0; i < ROWS_MAX; i++)
        rows[i] = i;
    for (unsigned gathered = 0; gathered < 2; gathered++) {
        encode(&apart, gathered ? rows : NULL, 25000);
        file = make_file(3);
        for (uint32_t i = 0; i < file->piece_count; i++)
            mp_buf_add_str(&bytes[gathered], file->pieces[i]);
        mp_parquet_file_free(file);
        free_chunks();
    }
    CHECK_INT(bytes[0].size, bytes[1].size);
    CHECK(memcmp(bytes[0].data, bytes[1].data, bytes[0].size) == 0);
    mp_buf_fini(&bytes[0]);
    mp_buf_fini(&bytes[1]);
}

static void columns_of_other_types_are_taken(void)
{
    struct mp_parquet_file *file;
    int64_t value = 5;

    begin_column(MP_TYPE(INT64));
    memcpy(add(8), &value, 8);
    column.rows++;
    encode(&apart, NULL, 2);
    file = make_file(1);
    CHECK_INT(file->stats[0].nulls, 1);
    CHECK_INT(counts.unfit, 0);
    mp_parquet_file_free(file);
    free_chunks();
    begin_column(MP_TYPE(BLOB));
    add_text("{");
    encode(&apart, NULL, 1);
    CHECK_INT(counts.unfit, 0); /* a string of it */
    free_chunks();
    mp_segment_put_list(pool, &column.segments);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(the_schema_is_that_of_the_specification),
        TEST(values_are_counted),
        TEST(gathered_rows_give_the_same_bytes),
        TEST(columns_of_other_types_are_taken),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
