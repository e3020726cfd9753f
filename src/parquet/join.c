/* parquet/join.c - see join.h. The main line: check, copy chunk after chunk, write the footer.
 *
 * Chunks mostly lie one behind the other, so reads go through a window: few large reads whatever
 * the number of columns.
 */
#include "parquet/join_priv.h"

#include "base/mem.h"

#define MAGIC              MP_STR("PAR1")
#define READ_BYTES_DEFAULT ((size_t)4 << 20)

struct window {
    char *bytes;
    size_t capacity, size;
    uint64_t begin; /* in the file */
};

/* Lends what the window has from `offset` on, at least one byte; reads where it has none. */
static enum mp_code window_at(struct window *window, const struct mp_parquet_join_input *input,
                              uint64_t offset, struct mp_err *err, struct mp_str *ret)
{
    const struct mp_parquet_footer *footer = input->footer;
    uint64_t end = footer->file_bytes - footer->footer_bytes - MP_PARQUET_TAIL_BYTES;
    enum mp_code code;

    assert(offset < end); /* F3 of footer.h */
    if (offset < window->begin || offset - window->begin >= window->size) {
        size_t size = end - offset < window->capacity ? (size_t)(end - offset) : window->capacity;

        window->size = 0;
        code = input->read(input->context, offset, size, window->bytes, err);
        if (code)
            return code;
        window->begin = offset;
        window->size = size;
    }
    *ret = mp_str_n(window->bytes + (offset - window->begin),
                    window->size - (size_t)(offset - window->begin));
    return MP_OK;
}

static enum mp_code copy_chunk(struct window *window, const struct mp_parquet_join_input *input,
                               const struct mp_parquet_column_chunk *chunk,
                               const struct mp_parquet_output *output, struct mp_err *err)
{
    uint64_t at = (uint64_t)chunk->start, left = (uint64_t)chunk->bytes;
    enum mp_code code = MP_OK;

    while (left && !code) {
        struct mp_str bytes;

        code = window_at(window, input, at, err, &bytes);
        if (code)
            break;
        if (bytes.size > left)
            bytes.size = (size_t)left;
        code = output->write(output->context, bytes, err);
        at += bytes.size;
        left -= bytes.size;
    }
    return code;
}

/* ids: where the group's row ids are remembered; NULL: there is no such column. */
static enum mp_code copy_group(const struct mp_join *join, struct window *window,
                               struct mp_parquet_encoder *encoder,
                               const struct mp_parquet_join_input *input,
                               const struct mp_parquet_row_group *group, int64_t first_id,
                               const struct mp_parquet_output *output, struct mp_err *err,
                               struct mp_row_ids *ids)
{
    enum mp_code code = MP_OK;

    for (uint32_t leaf = 0; leaf < input->footer->leaf_count && !code; leaf++)
        code = copy_chunk(window, input, &group->chunks[leaf], output, err);
    if (!code && ids && !mp_row_ids_there(input->footer, join->options))
        code = mp_row_ids_write(join, encoder, first_id, (uint32_t)group->rows, output, err, ids);
    return code;
}

static enum mp_code copy_groups(const struct mp_join *join, const struct mp_parquet_output *output,
                                struct mp_err *err)
{
    struct mp_parquet_options codec = {.codec = join->options->codec,
                                       .level = join->options->level};
    struct mp_parquet_encoder *encoder = mp_parquet_encoder_new(&codec);
    struct window window = {.capacity = join->options->read_bytes};
    uint32_t made = 0;
    enum mp_code code = MP_OK;

    if (!window.capacity)
        window.capacity = READ_BYTES_DEFAULT;
    window.bytes = mp_alloc(window.capacity);
    for (uint32_t i = 0; i < join->count && !code; i++) {
        const struct mp_parquet_join_input *input = &join->inputs[i];
        int64_t id = input->row_id_start;

        window.size = 0; /* it held another file's bytes */
        for (uint32_t g = 0; g < input->footer->group_count && !code; g++) {
            const struct mp_parquet_row_group *group = &input->footer->groups[g];

            if (!group->rows)
                continue;
            code = copy_group(join, &window, encoder, input, group, id, output, err,
                              join->ids ? &join->ids[made] : NULL);
            if (code)
                mp_err_add(err, "input %u, row group %u", i, g);
            id = (int64_t)((uint64_t)id + (uint64_t)group->rows); /* checked where it is used */
            made++;
        }
    }
    mp_free(window.bytes);
    mp_parquet_encoder_free(encoder);
    return code;
}

/* Row ids: how the column is declared, and a place for each row group's. */
static void prepare_ids(struct mp_arena *arena, struct mp_join *join)
{
    size_t groups = 1;

    if (!join->options->row_ids)
        return;
    for (uint32_t i = 0; i < join->count; i++) {
        const struct mp_parquet_footer *footer = join->inputs[i].footer;

        groups += footer->group_count;
        if (mp_row_ids_there(footer, join->options))
            join->optional_ids =
                footer->nodes[footer->node_count - 1].repetition == MP_PARQUET_OPTIONAL;
    }
    join->ids = mp_arena_take(arena, groups * sizeof(*join->ids));
}

/* Counts what goes through. */
struct counted {
    const struct mp_parquet_output *output;
    uint64_t bytes;
};

static enum mp_code counted_write(void *context, struct mp_str bytes, struct mp_err *err)
{
    struct counted *counted = context;

    counted->bytes += bytes.size;
    return counted->output->write(counted->output->context, bytes, err);
}

enum mp_code mp_parquet_join(struct mp_arena *arena, const struct mp_parquet_join_input *inputs,
                             uint32_t count, const struct mp_parquet_join_options *options,
                             const struct mp_parquet_output *output, struct mp_err *err,
                             struct mp_parquet_joined *ret)
{
    struct mp_join join = {.inputs = inputs, .count = count, .options = options};
    struct counted counted = {.output = output};
    struct mp_parquet_output through = {counted_write, &counted};
    struct mp_parquet_joined made = {0};
    struct mp_buf footer = MP_BUF_INIT(1);
    struct mp_str kept;
    enum mp_code code;

    code = mp_parquet_join_check(inputs, count, options, err);
    if (code)
        goto out;
    prepare_ids(arena, &join);
    code = through.write(through.context, MAGIC, err);
    if (code)
        goto out;
    code = copy_groups(&join, &through, err);
    if (code)
        goto out;
    code = mp_join_footer(&join, err, &footer);
    if (code)
        goto out;
    code = through.write(through.context, mp_buf_str(&footer), err);
    if (code)
        goto out;
    kept = mp_arena_str(arena, mp_str_n(footer.data, footer.size - MP_PARQUET_TAIL_BYTES));
    code = mp_parquet_footer_read(arena, kept, counted.bytes, err, &made.footer);
    if (code)
        goto out;
    made.bytes = counted.bytes;
    *ret = made;
out:
    if (code)
        mp_err_add(err, "join of %u files", count);
    mp_buf_fini(&footer);
    return code;
}
