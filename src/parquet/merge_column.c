/* parquet/merge_column.c - one column of some row groups, as the encoder takes it.
 *
 * A batch is taken stretch by stretch of rows that are not deleted; most often that is all of it.
 */
#include "parquet/merge_priv.h"

#include "base/mem.h"

struct mp_type mp_merge_type(const struct mp_merge *merge, uint32_t column)
{
    return column < merge->options->column_count ? merge->options->columns[column].type
                                                 : MP_TYPE(INT64);
}

bool mp_merge_is_deleted(const struct mp_parquet_merge_input *input, uint64_t row)
{
    return input->deleted && input->deleted[row / 64] >> (row & 63) & 1;
}

uint64_t mp_merge_rows_left(const struct mp_parquet_merge_input *input, uint64_t first_row,
                            uint64_t rows)
{
    uint64_t left = rows;

    for (uint64_t row = first_row; input->deleted && row < first_row + rows; row++)
        left -= mp_merge_is_deleted(input, row);
    return left;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Lends room for up to `count` values in one piece; gives for how many, at least one. */
static char *room(struct mp_merge_build *build, uint32_t count, uint32_t *ret)
{
    struct mp_segment_list *list = &build->column->segments;
    uint32_t width = build->convert.to_width, fit;
    struct mp_segment *last = list->last;

    if (!last || last->capacity - last->used < width) {
        mp_segment_append(build->merge->pool, list, width); /* a segment of the next size */
        last = list->last;
        last->used -= width;
        last->count--;
    }
    fit = (last->capacity - last->used) / width;
    *ret = count < fit ? count : fit;
    last->used += *ret * width;
    last->count += *ret;
    return last->data + last->used - (size_t)*ret * width;
}

static enum mp_code add_fixed(struct mp_merge_build *build, const struct mp_parquet_batch *batch,
                              uint32_t first, uint32_t count, struct mp_err *err)
{
    const struct mp_convert *how = &build->convert;

    while (count) {
        uint32_t some, made;
        char *to = room(build, count, &some);

        made = batch->texts
                   ? how->of_texts(how, batch->texts + first, some, to)
                   : how->fixed(how, batch->fixed + (size_t)first * how->from_width, some, to);
        if (made < some)
            return mp_err_set(err, MP_BAD_DATA,
                              "column \"%.*s\": a value does not fit the column's type",
                              MP_STR_ARG(build->column->name));
        first += some;
        count -= some;
    }
    return MP_OK;
}

static void add_texts(struct mp_merge_build *build, const struct mp_parquet_batch *batch,
                      uint32_t first, uint32_t count)
{
    uint32_t width = build->convert.from_width;

    for (uint32_t i = first; i < first + count; i++) {
        struct mp_str text =
            batch->texts ? batch->texts[i] : mp_str_n(batch->fixed + (size_t)i * width, width);
        uint32_t size = (uint32_t)text.size;
        char *to;

        assert(text.size <= INT32_MAX); /* it lies in a page */
        to = mp_segment_append(build->merge->pool, &build->column->segments, 4 + text.size);
        memcpy(to, &size, 4);
        if (size)
            memcpy(to + 4, text.data, size);
    }
}

enum mp_code mp_merge_add_values(struct mp_merge_build *build, const struct mp_parquet_batch *batch,
                                 uint32_t first, uint32_t count, struct mp_err *err)
{
    build->column->values += count;
    if (count && build->convert.nothing)
        return mp_err_set(err, MP_BAD_DATA, "column \"%.*s\": a value in a column of nulls",
                          MP_STR_ARG(build->column->name));
    if (build->convert.to_width)
        return add_fixed(build, batch, first, count, err);
    add_texts(build, batch, first, count);
    return MP_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool has_value(const struct mp_parquet_batch *batch, uint32_t row)
{
    return batch->validity[row / 64] >> (row & 63) & 1;
}

/* Adds rows `from` to `to - 1` of the batch, whose first one has value number `value`. */
static enum mp_code add_stretch(struct mp_merge_build *build, const struct mp_parquet_batch *batch,
                                uint32_t from, uint32_t to, uint32_t value, struct mp_err *err)
{
    struct mp_column *column = build->column;
    uint32_t count = 0;

    if (to - from > build->rows_max - column->rows)
        return mp_err_set(err, MP_BAD_DATA, "column \"%.*s\": more rows than its row group has",
                          MP_STR_ARG(column->name));
    for (uint32_t row = from; row < to; row++, column->rows++) {
        if (!has_value(batch, row))
            continue;
        build->validity[column->rows / 64] |= UINT64_C(1) << (column->rows & 63);
        count++;
    }
    return mp_merge_add_values(build, batch, value, count, err);
}

/* first_row: of the batch, in the file. */
static enum mp_code add_batch(struct mp_merge_build *build, const struct mp_parquet_batch *batch,
                              uint64_t first_row, struct mp_err *err)
{
    uint32_t from = 0, value = 0, values = 0;
    enum mp_code code = MP_OK;

    if (!build->input->deleted)
        return add_stretch(build, batch, 0, batch->rows, 0, err);
    for (uint32_t row = 0; row < batch->rows && !code; row++) {
        bool deleted = mp_merge_is_deleted(build->input, first_row + row);

        if (deleted && from < row)
            code = add_stretch(build, batch, from, row, value, err);
        values += has_value(batch, row);
        if (deleted) {
            from = row + 1;
            value = values;
        }
    }
    if (!code && from < batch->rows)
        code = add_stretch(build, batch, from, batch->rows, value, err);
    return code;
}

/* ---- spans ----------------------------------------------------------------------------------- */

enum mp_code mp_merge_bytes_check(const struct mp_merge *merge, uint64_t more, struct mp_err *err)
{
    uint64_t bytes = mp_segment_pool_bytes(merge->pool) + more;

    if (bytes > merge->bytes_max)
        return mp_err_set(err, MP_FULL, "%llu bytes are needed at once, at most %llu may be",
                          (unsigned long long)bytes, (unsigned long long)merge->bytes_max);
    return MP_OK;
}

static enum mp_code read_span(struct mp_merge_build *build, const struct mp_merge_span *span,
                              int32_t leaf, struct mp_err *err)
{
    const struct mp_parquet_footer *footer = build->input->footer;
    const struct mp_parquet_column_chunk *chunk = &footer->groups[span->group].chunks[leaf];
    struct mp_parquet_reader *reader = build->merge->reader;
    struct mp_parquet_batch batch;
    uint64_t row = span->first_row;
    enum mp_code code =
        mp_parquet_reader_open(reader, footer, span->group, (uint32_t)leaf,
                               mp_parquet_chunk_in(build->input->bytes, chunk), err);

    do {
        if (!code)
            code = mp_parquet_reader_next(reader, err, &batch);
        if (!code)
            code = add_batch(build, &batch, row, err);
        if (!code)
            code = mp_merge_bytes_check(build->merge, 0, err);
        row += code ? 0 : batch.rows;
    } while (!code && batch.rows);
    return code;
}

/* Ids that count up, without those of deleted rows. */
static void count_ids(struct mp_merge_build *build, uint64_t first_row, uint64_t rows)
{
    uint32_t some;

    for (uint64_t row = first_row; row < first_row + rows; row++) {
        int64_t id = build->input->row_id_start + (int64_t)row;

        if (mp_merge_is_deleted(build->input, row))
            continue;
        memcpy(room(build, 1, &some), &id, 8);
        build->validity[build->column->rows / 64] |= UINT64_C(1) << (build->column->rows & 63);
        build->column->rows++;
        build->column->values++;
    }
}

static enum mp_code add_span(struct mp_merge_build *build, const struct mp_merge_span *span,
                             uint32_t column, struct mp_err *err)
{
    const struct mp_parquet_merge_input *input = build->input;
    const struct mp_parquet_merge_options *options = build->merge->options;
    uint64_t rows = (uint64_t)input->footer->groups[span->group].rows;
    bool ids = column == options->column_count;
    int32_t leaf = ids ? input->row_id_leaf : input->leaves[column];
    bool fits;

    if (leaf == MP_MERGE_NO_LEAF && ids) {
        build->convert.to_width = 8;
        count_ids(build, span->first_row, rows);
        return MP_OK;
    }
    if (leaf == MP_MERGE_NO_LEAF) {
        build->column->rows += (uint32_t)mp_merge_rows_left(input, span->first_row, rows);
        return MP_OK;
    }
    fits = mp_convert_of(&input->footer->nodes[input->footer->leaves[leaf]], build->column->type,
                         &build->convert);
    assert(fits); /* mp_parquet_merge_check */
    return read_span(build, span, leaf, err);
}

enum mp_code mp_merge_column_read(struct mp_merge *merge, const struct mp_merge_unit *unit,
                                  uint32_t column, struct mp_err *err, struct mp_column *ret)
{
    const struct mp_parquet_merge_options *options = merge->options;
    bool ids = column == options->column_count;
    struct mp_merge_build build = {
        .merge = merge,
        .column = ret,
        .validity = mp_alloc_array(unit->rows / 64 + 1, sizeof(*build.validity)),
        .rows_max = unit->rows,
    };
    enum mp_code code = MP_OK;

    *ret = (struct mp_column){
        .name = ids ? options->row_id_name : options->columns[column].name,
        .type = mp_merge_type(merge, column),
        .field_id = ids ? options->row_id_field_id : options->columns[column].field_id,
        .validity = build.validity,
    };
    for (uint32_t i = 0; i < unit->span_count && !code; i++) {
        merge->fault = unit->spans[i].input;
        build.input = &merge->inputs[unit->spans[i].input];
        code = add_span(&build, &unit->spans[i], column, err);
        if (!code && ids && ret->values < ret->rows)
            code = mp_err_set(err, MP_BAD_DATA, "a row without a row id");
    }
    if (code) {
        mp_merge_column_fini(merge, ret);
        return code;
    }
    merge->fault = UINT32_MAX;
    assert(ret->rows == unit->rows); /* every chunk gave the rows of its group: F4 of footer.h */
    return MP_OK;
}

void mp_merge_column_fini(struct mp_merge *merge, struct mp_column *column)
{
    mp_segment_put_list(merge->pool, &column->segments);
    mp_free((void *)(uintptr_t)column->validity);
    column->validity = NULL;
}
