/* tests/fuzz/parquet_footer_fuzz.c - any bytes as a Parquet footer.
 *
 * The input's first byte says how large the file is around the footer, the rest is the footer. What
 * is read must keep what footer.h promises; then every question is asked of it, and the file is
 * joined with itself, its chunks read as zeros: a footer that was accepted gives a join that is
 * accepted again or a refusal.
 *
 * With -DMP_LIBFUZZER clang's fuzzer feeds it; without, it replays the files it is given.
 */
#include "fuzz/fuzz.h"
#include "parquet/footer_stats.h"
#include "parquet/join.h"

#include <assert.h>

static void check_nodes(const struct mp_parquet_footer *footer)
{
    uint32_t leaf = 0;

    for (uint32_t i = 0; i < footer->node_count; i++) { /* F1 */
        const struct mp_parquet_node *node = &footer->nodes[i];

        assert(i == 0 || node->parent < i);
        assert(node->end > i && node->end <= footer->node_count);
        assert(i == 0 || node->end <= footer->nodes[node->parent].end);
        assert(node->definition_max < MP_PARQUET_DEPTH_MAX + 1);
        if (node->leaf >= 0) {
            assert(footer->leaves[leaf] == i && (uint32_t)node->leaf == leaf);
            leaf++;
        }
    }
    assert(leaf == footer->leaf_count);
}

static void check_groups(const struct mp_parquet_footer *footer)
{
    int64_t rows = 0;

    for (uint32_t g = 0; g < footer->group_count; g++) {
        rows += footer->groups[g].rows;
        for (uint32_t leaf = 0; leaf < footer->leaf_count; leaf++) {
            const struct mp_parquet_column_chunk *chunk = &footer->groups[g].chunks[leaf];

            assert(!chunk->bytes || (uint64_t)(chunk->start + chunk->bytes) + footer->footer_bytes +
                                            MP_PARQUET_TAIL_BYTES <=
                                        footer->file_bytes); /* F3 */
        }
    }
    assert(rows == footer->rows); /* F4 */
}

static void check_stats(struct mp_arena *arena, const struct mp_parquet_footer *footer)
{
    static const size_t sizes[] = {
        [MP_PARQUET_BOUND_BOOLEAN] = 1, [MP_PARQUET_BOUND_I32] = 4,    [MP_PARQUET_BOUND_I64] = 8,
        [MP_PARQUET_BOUND_FLOAT] = 4,   [MP_PARQUET_BOUND_DOUBLE] = 8, [MP_PARQUET_BOUND_UUID] = 16,
    };
    uint32_t count;
    const struct mp_parquet_leaf_stats *stats = mp_parquet_footer_stats(arena, footer, &count);

    assert(count <= footer->leaf_count);
    for (uint32_t i = 0; i < count; i++) {
        size_t want =
            stats[i].bound_kind < sizeof(sizes) / sizeof(*sizes) ? sizes[stats[i].bound_kind] : 0;

        assert(!want || !stats[i].lower.has || stats[i].lower.bytes.size == want);
        assert(!want || !stats[i].upper.has || stats[i].upper.bytes.size == want);
        assert(stats[i].bound_kind || (!stats[i].lower.has && !stats[i].upper.has));
    }
}

static enum mp_code read_zeros(void *context, uint64_t offset, size_t size, char *ret,
                               struct mp_err *err)
{
    const struct mp_parquet_footer *footer = context;

    (void)err;
    assert(offset + size + footer->footer_bytes + MP_PARQUET_TAIL_BYTES <= footer->file_bytes);
    memset(ret, 0, size);
    return MP_OK;
}

static enum mp_code write_away(void *context, struct mp_str bytes, struct mp_err *err)
{
    (void)err;
    *(uint64_t *)context += bytes.size;
    return MP_OK;
}

static void check_join(struct mp_arena *arena, const struct mp_parquet_footer *footer)
{
    struct mp_parquet_join_options options = {
        .created_by = MP_STR("fuzz"),
        .row_ids = footer->rows < 1000000,
        .row_id_name = MP_STR("_hog_row_id"),
        .row_id_field_id = 2147483646,
        .read_bytes = 4096,
    };
    struct mp_parquet_join_input inputs[2];
    struct mp_parquet_joined joined;
    uint64_t written = 0;
    struct mp_parquet_output output = {write_away, &written};
    struct mp_err err;

    for (int i = 0; i < 2; i++)
        inputs[i] = (struct mp_parquet_join_input){
            .footer = footer, .read = read_zeros, .context = (void *)(uintptr_t)footer};
    if (mp_parquet_join(arena, inputs, 2, &options, &output, &err, &joined))
        return;
    assert(joined.bytes == written);
    assert(joined.footer->rows == 2 * footer->rows);
    check_nodes(joined.footer);
    check_groups(joined.footer);
    check_stats(arena, joined.footer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct mp_parquet_footer *footer;
    struct mp_arena arena;
    struct mp_err err;
    uint64_t file_bytes;

    if (size < 1)
        return 0;
    file_bytes = (uint64_t)data[0] * 128 + size + 12;
    mp_arena_init(&arena, 0);
    if (mp_parquet_footer_read(&arena, mp_str_n(data + 1, size - 1), file_bytes, &err, &footer) ==
        MP_OK) {
        check_nodes(footer);
        check_groups(footer);
        check_stats(&arena, footer);
        for (uint32_t i = 0; i < footer->node_count && i < 100; i++)
            mp_parquet_path(&arena, footer, i);
        mp_parquet_misses_field_ids(footer);
        check_join(&arena, footer);
    } else {
        assert(err.code == MP_BAD_DATA && err.text[0]);
    }
    mp_arena_fini(&arena);
    return 0;
}

#include "fuzz/replay.h"
