/* parquet/merge.c - see merge.h. The main line: units of row groups, one column after the other.
 *
 *     row groups of the inputs -> unit -> for each column: read, encode -> its chunks
 *                                      -> the unit's chunks into the file, row group by row group
 *     units -> footer
 *
 * With a sort order there is one unit; its sort columns are read once more in front of all others.
 * A unit whose rows stand in order already is encoded as it stands.
 */
#include "parquet/merge_priv.h"

#include "base/mem.h"
#include "column/transform.h"

#define GROUP_BYTES ((uint64_t)128 << 20)
#define BYTES_MAX   ((uint64_t)1 << 30)
#define MAGIC_BYTES 4u

/* ---- may it be merged? ----------------------------------------------------------------------- */

static enum mp_code check_row_ids(const struct mp_parquet_footer *footer, uint32_t leaf,
                                  struct mp_err *err)
{
    const struct mp_parquet_node *node = &footer->nodes[footer->leaves[leaf]];
    struct mp_convert convert;

    if (!mp_convert_of(node, MP_TYPE(INT64), &convert) || mp_parquet_leaf_nested(node))
        return mp_err_set(err, MP_REFUSED, "the file has row ids that are no numbers of 64 bits");
    return mp_parquet_reader_check(footer, leaf, err);
}

static bool sorts(const struct mp_parquet_merge_options *options, uint32_t column)
{
    for (uint32_t i = 0; i < options->sort_count; i++)
        if (options->sort[i].field_id == options->columns[column].field_id)
            return true;
    return false;
}

static enum mp_code check_column(struct mp_arena *arena, const struct mp_parquet_merge_input *input,
                                 const struct mp_parquet_merge_options *options, uint32_t number,
                                 struct mp_err *err)
{
    const struct mp_merge_tree *tree;
    uint32_t fault;
    enum mp_code code = mp_merge_tree_new(arena, input, 1, options, number, err, &fault, &tree);

    if (!code && sorts(options, number) && !mp_merge_is_flat(tree))
        code = mp_err_set(err, MP_REFUSED,
                          "rows cannot be sorted by column \"%.*s\", which is nested or of "
                          "another type in the file",
                          MP_STR_ARG(options->columns[number].name));
    return code;
}

static enum mp_code check_rows(const struct mp_parquet_merge_input *input, struct mp_err *err)
{
    const struct mp_parquet_footer *footer = input->footer;
    int64_t last;

    if (footer->rows > UINT32_MAX / 2)
        return mp_err_set(err, MP_REFUSED, "it has %lld rows", (long long)footer->rows);
    if (input->row_id_leaf == MP_MERGE_NO_LEAF &&
        (input->row_id_start < 0 ||
         __builtin_add_overflow(input->row_id_start, footer->rows, &last)))
        return mp_err_set(err, MP_BAD_DATA, "row ids from %lld on for %lld rows",
                          (long long)input->row_id_start, (long long)footer->rows);
    return MP_OK;
}

enum mp_code mp_parquet_merge_check(const struct mp_parquet_merge_input *input,
                                    const struct mp_parquet_merge_options *options,
                                    struct mp_err *err)
{
    enum mp_code code = check_rows(input, err);
    struct mp_arena arena;

    mp_arena_init(&arena, 0);
    for (uint32_t i = 0; i < options->column_count && !code; i++)
        code = check_column(&arena, input, options, i, err);
    if (!code && input->row_id_leaf != MP_MERGE_NO_LEAF)
        code = check_row_ids(input->footer, (uint32_t)input->row_id_leaf, err);
    mp_arena_fini(&arena);
    return code;
}

enum mp_code mp_parquet_merge_agree(const struct mp_parquet_merge_input *newer,
                                    const struct mp_parquet_merge_input *older,
                                    const struct mp_parquet_merge_options *options,
                                    struct mp_err *err)
{
    struct mp_parquet_merge_input both[] = {*older, *newer};
    const struct mp_merge_tree *tree;
    enum mp_code code = MP_OK;
    struct mp_arena arena;
    uint32_t fault;

    mp_arena_init(&arena, 0);
    for (uint32_t i = 0; i < options->column_count && !code; i++)
        code = mp_merge_tree_new(&arena, both, 2, options, i, err, &fault, &tree);
    mp_arena_fini(&arena);
    return code;
}

/* ---- units ----------------------------------------------------------------------------------- */

struct work {
    struct mp_merge merge;
    struct mp_arena *arena;
    uint32_t input_count;
    uint32_t group_rows; /* rows of a row group to be */
    struct mp_merge_span *spans;
    uint32_t span_count;
    struct mp_merge_unit *units;
    uint32_t unit_count, group_count; /* of the new file */
    struct mp_parquet_encoder *encoder;
    struct mp_parquet_chunk ***chunks;  /* column -> row group */
    const struct mp_merge_tree **trees; /* column -> what is in it; NULL: it is flat */
    uint32_t column_count;              /* row ids counted */
};

/* How many rows make about group_bytes. */
static uint32_t rows_of_group(const struct work *work)
{
    const struct mp_parquet_merge_options *options = work->merge.options;
    double raw = 1, rows = 0, fit;

    for (uint32_t i = 0; i < work->input_count; i++) {
        const struct mp_parquet_footer *footer = work->merge.inputs[i].footer;

        rows += (double)footer->rows;
        for (uint32_t group = 0; group < footer->group_count; group++)
            for (uint32_t leaf = 0; leaf < footer->leaf_count; leaf++)
                raw += (double)footer->groups[group].chunks[leaf].raw_bytes;
    }
    fit = (double)(options->group_bytes ? options->group_bytes : GROUP_BYTES) * rows / raw;
    return fit < 1 ? 1 : fit < MP_MERGE_GROUP_ROWS_MAX ? (uint32_t)fit : MP_MERGE_GROUP_ROWS_MAX;
}

/* Adds a row group to the last unit, or begins one. */
static enum mp_code add_span(struct work *work, const struct mp_merge_span *span, uint64_t rows,
                             struct mp_err *err)
{
    struct mp_merge_unit *unit = work->unit_count ? &work->units[work->unit_count - 1] : NULL;
    bool one = work->merge.options->sort_count > 0;

    if (!unit || (!one && unit->rows + rows > work->group_rows)) {
        unit = &work->units[work->unit_count++];
        unit->spans = &work->spans[work->span_count];
    }
    if (rows > UINT32_MAX / 2 - unit->rows)
        return mp_err_set(err, MP_REFUSED, "more than %u rows", UINT32_MAX / 2);
    work->spans[work->span_count++] = *span;
    unit->span_count++;
    unit->rows += (uint32_t)rows;
    return MP_OK;
}

static uint32_t groups_of(const struct work *work, const struct mp_merge_unit *unit)
{
    return unit->rows / work->group_rows + (unit->rows % work->group_rows != 0);
}

static enum mp_code make_units(struct work *work, struct mp_err *err)
{
    uint32_t groups = 0;
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < work->input_count; i++)
        groups += work->merge.inputs[i].footer->group_count;
    work->spans = mp_arena_take(work->arena, (groups + 1) * sizeof(*work->spans));
    work->units = mp_arena_take(work->arena, (groups + 1) * sizeof(*work->units));
    work->group_rows = rows_of_group(work);
    for (uint32_t i = 0; i < work->input_count; i++) {
        const struct mp_parquet_merge_input *input = &work->merge.inputs[i];
        struct mp_merge_span span = {.input = i};

        for (span.group = 0; span.group < input->footer->group_count && !code; span.group++) {
            uint64_t rows = (uint64_t)input->footer->groups[span.group].rows;
            uint64_t left = mp_merge_rows_left(input, span.first_row, rows);

            if (left)
                code = add_span(work, &span, left, err);
            span.first_row += rows;
        }
    }
    for (uint32_t i = 0; i < work->unit_count; i++)
        work->group_count += groups_of(work, &work->units[i]);
    return code;
}

/* ---- sort ------------------------------------------------------------------------------------ */

static bool in_order(const struct mp_cut *cut)
{
    for (uint32_t i = 0; i < cut->files[0].count; i++)
        if (cut->files[0].rows[i] != i)
            return false;
    return true;
}

/* Gives the order of the unit's rows in cut; files[0].rows NULL: as they are. */
static enum mp_code sort_unit(struct work *work, const struct mp_merge_unit *unit,
                              struct mp_err *err, struct mp_cut *ret)
{
    const struct mp_parquet_merge_options *options = work->merge.options;
    struct mp_schema schema = {.sort = options->sort, .sort_count = options->sort_count};
    struct mp_column *columns = mp_alloc_array(options->column_count, sizeof(*columns));
    uint32_t count = 0;
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < options->column_count && !code; i++) {
        if (!sorts(options, i))
            continue;
        code = mp_merge_column_read(&work->merge, unit, i, err, &columns[count]);
        count += !code;
    }
    if (!code)
        code = mp_cut_columns(work->arena, columns, count, &schema, unit->rows, err, ret);
    while (count)
        mp_merge_column_fini(&work->merge, &columns[--count]);
    mp_free(columns);
    if (!code && ret->files[0].rows && in_order(ret))
        ret->files[0].rows = NULL;
    return code;
}

/* ---- encode and write ------------------------------------------------------------------------ */

static enum mp_code encode_column(struct work *work, const struct mp_merge_unit *unit,
                                  const struct mp_parquet_cut *cut, uint32_t column,
                                  uint32_t first_group, struct mp_err *err)
{
    struct mp_parquet_chunk **chunks = work->chunks[column] + first_group;
    struct mp_column read;
    enum mp_code code = mp_merge_column_read(&work->merge, unit, column, err, &read);

    if (code)
        return code;
    code = mp_parquet_encode(work->encoder, work->merge.pool, &read, cut, err, chunks);
    mp_merge_column_fini(&work->merge, &read);
    return code;
}

static enum mp_code encode_nested_leaf(struct work *work, const struct mp_merge_unit *unit,
                                       const struct mp_parquet_cut *cut, uint32_t column,
                                       uint32_t leaf, struct mp_err *err,
                                       struct mp_parquet_chunk **ret)
{
    struct mp_entries read;
    enum mp_code code =
        mp_merge_entries_read(&work->merge, unit, work->trees[column], leaf, err, &read);

    if (code)
        return code;
    code = mp_nested_encode(work->encoder, work->merge.pool, &read, cut, err, ret);
    mp_merge_entries_fini(&work->merge, &read);
    return code;
}

static enum mp_code encode_nested(struct work *work, const struct mp_merge_unit *unit,
                                  const struct mp_parquet_cut *cut, uint32_t column,
                                  uint32_t first_group, struct mp_err *err)
{
    struct mp_parquet_chunk **chunks = work->chunks[column] + first_group;
    uint32_t groups = groups_of(work, unit), leaves = work->trees[column]->of.leaf_count;
    struct mp_parquet_chunk **made = mp_alloc_array(groups, sizeof(*made));
    enum mp_code code = MP_OK;

    for (uint32_t group = 0; group < groups; group++)
        chunks[group] = mp_nested_chunk_new(leaves);
    for (uint32_t leaf = 0; leaf < leaves && !code; leaf++) {
        code = encode_nested_leaf(work, unit, cut, column, leaf, err, made);
        for (uint32_t group = 0; group < groups && !code; group++)
            mp_nested_chunk_put(chunks[group], leaf, made[group]);
    }
    mp_free(made);
    return code;
}

/* The unit's row groups, whole: from here on only what the footer needs of them stays. */
static enum mp_code write_unit(struct work *work, const struct mp_merge_unit *unit,
                               uint32_t first_group, const struct mp_parquet_output *output,
                               struct mp_err *err)
{
    enum mp_code code = MP_OK;

    for (uint32_t group = first_group; group < first_group + groups_of(work, unit); group++)
        for (uint32_t column = 0; column < work->column_count && !code; column++)
            code = mp_parquet_chunk_write(work->chunks[column][group], output, err);
    return code;
}

static enum mp_code merge_unit(struct work *work, const struct mp_merge_unit *unit,
                               uint32_t first_group, const struct mp_parquet_output *output,
                               struct mp_err *err)
{
    struct mp_cut sorted = {0};
    struct mp_parquet_rows rows = {.count = unit->rows};
    struct mp_parquet_cut cut = {&rows, 1, work->group_rows};
    enum mp_code code = MP_OK;

    if (work->merge.options->sort_count)
        code = sort_unit(work, unit, err, &sorted);
    if (sorted.count)
        rows.rows = sorted.files[0].rows;
    for (uint32_t column = 0; column < work->column_count && !code; column++)
        code = (work->trees[column] ? encode_nested : encode_column)(work, unit, &cut, column,
                                                                     first_group, err);
    if (!code)
        code = write_unit(work, unit, first_group, output, err);
    mp_cut_fini(&sorted);
    return code;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* What the footer does not tell, such as NaNs and the bounds beside them. */
static const struct mp_column_stats *copy_stats(struct mp_arena *arena,
                                                const struct mp_parquet_file *file)
{
    struct mp_column_stats *stats = mp_arena_take(arena, file->stats_count * sizeof(*stats));

    for (uint32_t i = 0; i < file->stats_count; i++) {
        stats[i] = file->stats[i];
        stats[i].min = mp_arena_str(arena, stats[i].min);
        stats[i].max = mp_arena_str(arena, stats[i].max);
    }
    return stats;
}

static struct mp_parquet_field *make_fields(struct work *work)
{
    const struct mp_parquet_merge_options *options = work->merge.options;
    struct mp_parquet_field *fields =
        mp_arena_take(work->arena, work->column_count * sizeof(*fields));

    for (uint32_t i = 0; i < work->column_count; i++) {
        bool ids = i == options->column_count;

        fields[i] = (struct mp_parquet_field){
            .name = ids ? options->row_id_name : options->columns[i].name,
            .type = work->trees[i] ? MP_TYPE(NONE) : mp_merge_type(&work->merge, i),
            .tree = work->trees[i] ? &work->trees[i]->of : NULL,
            .field_id = ids ? options->row_id_field_id : options->columns[i].field_id,
            .chunks = work->chunks[i],
        };
    }
    return fields;
}

static enum mp_code write_footer(struct work *work, const struct mp_parquet_output *output,
                                 struct mp_err *err, struct mp_parquet_merged *ret)
{
    struct mp_parquet_file *file = mp_parquet_file_new(
        make_fields(work), work->column_count, work->group_count, work->merge.options->created_by);
    struct mp_str tail = file->pieces[file->piece_count - 1], footer;
    enum mp_code code = output->write(output->context, tail, err);

    if (!code) {
        assert(tail.size >= file->footer_bytes + MP_PARQUET_TAIL_BYTES);
        footer = mp_arena_str(work->arena, mp_str_n(tail.data + tail.size - MP_PARQUET_TAIL_BYTES -
                                                        file->footer_bytes,
                                                    file->footer_bytes));
        ret->stats = copy_stats(work->arena, file);
        ret->stats_count = file->stats_count;
        ret->rows = file->rows;
        ret->bytes = file->bytes;
        code = mp_parquet_footer_read(work->arena, footer, file->bytes, err, &ret->footer);
    }
    mp_parquet_file_free(file);
    return code;
}

static enum mp_code make_trees(struct work *work, struct mp_err *err)
{
    const struct mp_parquet_merge_options *options = work->merge.options;
    enum mp_code code = MP_OK;

    work->trees = mp_arena_take(work->arena, work->column_count * sizeof(*work->trees));
    for (uint32_t i = 0; i < options->column_count && !code; i++) {
        code = mp_merge_tree_new(work->arena, work->merge.inputs, work->input_count, options, i,
                                 err, &work->merge.fault, &work->trees[i]);
        if (!code && mp_merge_is_flat(work->trees[i]))
            work->trees[i] = NULL;
        /* each input could be sorted by it, and so had its type */
        assert(code || !work->trees[i] || !sorts(options, i));
    }
    return code;
}

static enum mp_code write_file(struct work *work, const struct mp_parquet_output *output,
                               struct mp_err *err, struct mp_parquet_merged *ret)
{
    uint32_t group = 0;
    enum mp_code code = output->write(output->context, mp_str_n("PAR1", MAGIC_BYTES), err);

    for (uint32_t i = 0; i < work->unit_count && !code; i++) {
        code = merge_unit(work, &work->units[i], group, output, err);
        group += groups_of(work, &work->units[i]);
    }
    return code ? code : write_footer(work, output, err, ret);
}

enum mp_code mp_parquet_merge(struct mp_arena *arena, const struct mp_parquet_merge_input *inputs,
                              uint32_t count, const struct mp_parquet_merge_options *options,
                              const struct mp_parquet_output *output, struct mp_err *err,
                              uint32_t *ret_input, struct mp_parquet_merged *ret)
{
    struct mp_parquet_options encoding = {.codec = options->codec, .level = options->level};
    struct work work = {
        .merge = {.inputs = inputs,
                  .options = options,
                  .bytes_max = options->bytes_max ? options->bytes_max : BYTES_MAX},
        .arena = arena,
        .input_count = count,
        .column_count = options->column_count + 1,
    };
    struct mp_parquet_merged made = {0};
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < count && !code; i++) {
        work.merge.fault = i;
        code = mp_parquet_merge_check(&inputs[i], options, err);
    }
    if (code)
        goto out;
    work.merge.fault = UINT32_MAX;
    code = make_trees(&work, err);
    if (code)
        goto out;
    work.merge.pool = mp_segment_pool_new(1 << 20);
    work.merge.reader = mp_parquet_reader_new(work.merge.bytes_max);
    work.encoder = mp_parquet_encoder_new(&encoding);
    code = make_units(&work, err);
    if (code)
        goto out;
    work.chunks = mp_arena_take(arena, work.column_count * sizeof(*work.chunks));
    for (uint32_t i = 0; i < work.column_count; i++)
        work.chunks[i] = mp_arena_take(arena, (work.group_count + 1) * sizeof(**work.chunks));
    if (work.group_count)
        code = write_file(&work, output, err, &made);
    if (!code)
        *ret = made;
out:
    if (code && work.merge.fault != UINT32_MAX)
        mp_err_add(err, "input %u", work.merge.fault);
    if (code)
        mp_err_add(err, "merge of %u files", count);
    *ret_input = code ? work.merge.fault : UINT32_MAX;
    for (uint32_t column = 0; work.chunks && column < work.column_count; column++)
        for (uint32_t group = 0; group < work.group_count; group++)
            mp_parquet_chunk_free(work.chunks[column][group]);
    mp_parquet_encoder_free(work.encoder);
    mp_parquet_reader_free(work.merge.reader);
    mp_segment_pool_free(work.merge.pool);
    return code;
}
