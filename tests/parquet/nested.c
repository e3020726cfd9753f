/* tests/parquet/nested.c - leaves inside groups: pages by the format's own rules, worked out by
 * hand. */
#include "parquet/parquet_priv.h"

#include "base/mem.h"
#include "harness/test.h"

/* [[7, null], null, [], [8]]: optional, repeated, optional. */
static const uint8_t definitions[] = {3, 2, 0, 1, 3}, repetitions[] = {0, 1, 0, 0, 0};
static const uint32_t starts[] = {0, 2, 3, 4, 5};
static const uint64_t validity[] = {0x11};

static struct mp_segment_pool *pool;

/* Encodes the rows of the cut as chunks of group_rows_max rows. */
static void encode(const struct mp_parquet_rows *rows, uint32_t group_rows_max, uint32_t page_bytes,
                   struct mp_parquet_chunk **ret)
{
    struct mp_parquet_options options = {.codec = MP_CODEC_NONE, .page_bytes = page_bytes};
    struct mp_parquet_encoder *encoder = mp_parquet_encoder_new(&options);
    struct mp_parquet_cut cut = {rows, 1, group_rows_max};
    struct mp_entries entries = {
        .column = {.name = MP_STR("x"), .type = MP_TYPE(INT32), .rows = 5, .validity = validity},
        .layout = mp_layout_of(MP_TYPE(INT32)),
        .definitions = definitions,
        .repetitions = repetitions,
        .starts = starts,
        .rows = 4,
        .definition_max = 3,
        .repetition_max = 1,
    };
    struct mp_err err;

    for (int32_t value = 7; value <= 8; value++)
        memcpy(mp_segment_append(pool, &entries.column.segments, 4), &value, 4);
    entries.column.values = 2;
    CHECK_INT(mp_nested_encode(encoder, pool, &entries, &cut, &err, ret), MP_OK);
    mp_segment_put_list(pool, &entries.column.segments);
    mp_parquet_encoder_free(encoder);
}

/* The body of the chunk's only page. */
static void check_body(const struct mp_parquet_chunk *chunk, const char *body, size_t size)
{
    struct mp_str part;

    CHECK_INT(chunk->page_count, 1);
    CHECK_INT(chunk->part_count, 1);
    part = chunk->parts[0];
    CHECK(part.size > size && memcmp(part.data + part.size - size, body, size) == 0);
}

#define BODY(...) (const char[]){__VA_ARGS__}, sizeof((const char[]){__VA_ARGS__})

static void levels_stand_before_values(void)
{
    struct mp_parquet_rows all = {NULL, 4};
    struct mp_parquet_chunk *chunk;

    encode(&all, 100, 0, &chunk);
    CHECK_INT(chunk->rows, 4);
    CHECK_INT(chunk->entries, 5);
    CHECK_INT(chunk->nulls, 3);
    check_body(chunk, BODY(2, 0, 0, 0, 3, 0x02, 3, 0, 0, 0, 3, 0x4b, 0x03, 7, 0, 0, 0, 8, 0, 0, 0));
    mp_parquet_chunk_free(chunk);
}

static void rows_move_whole(void)
{
    static const uint32_t order[] = {3, 0, 1}; /* [8], [7, null], null: row 2 is left out */
    struct mp_parquet_rows some = {order, 3};
    struct mp_parquet_chunk *chunk;

    encode(&some, 100, 0, &chunk);
    CHECK_INT(chunk->rows, 3);
    CHECK_INT(chunk->entries, 4); /* levels 0 0 1 0 and 3 3 2 0 */
    check_body(chunk, BODY(2, 0, 0, 0, 3, 0x04, 3, 0, 0, 0, 3, 0x2f, 0x00, 8, 0, 0, 0, 7, 0, 0, 0));
    mp_parquet_chunk_free(chunk);
}

static void pages_and_row_groups_end_where_rows_do(void)
{
    struct mp_parquet_rows all = {NULL, 4};
    struct mp_parquet_chunk *chunks[2];

    encode(&all, 3, 4, chunks); /* a value fills a page; rows without one go with it */
    CHECK_INT(chunks[0]->rows, 3);
    CHECK_INT(chunks[0]->page_count, 1);
    CHECK_INT(chunks[1]->rows, 1);
    CHECK_INT(chunks[1]->entries, 1);
    mp_parquet_chunk_free(chunks[0]);
    mp_parquet_chunk_free(chunks[1]);
    encode(&all, 4, 4, chunks);
    CHECK_INT(chunks[0]->page_count, 2);
    CHECK_INT(chunks[0]->page_rows[0], 3);
    CHECK_INT(chunks[0]->page_rows[1], 1);
    mp_parquet_chunk_free(chunks[0]);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(levels_stand_before_values),
        TEST(rows_move_whole),
        TEST(pages_and_row_groups_end_where_rows_do),
    };

    int failed;

    pool = mp_segment_pool_new(1 << 16);
    failed = test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
    mp_segment_pool_free(pool);
    return failed;
}
