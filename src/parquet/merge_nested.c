/* parquet/merge_nested.c - one leaf of a nested column of some row groups, entry by entry.
 *
 * Levels and values are copied row by row, and the entries of deleted rows are left out; nothing is
 * put together to records. The new file's column is optional at the top: where an input's is
 * required its definition levels are one higher there.
 */
#include "parquet/merge_priv.h"

#include "base/mem.h"

enum { ENTRY_BYTES = 2 + 8 + 1 }; /* of an entry beside its value: levels, place, validity */

struct build {
    struct mp_merge_build values;
    struct mp_entries *entries;
    uint8_t *definitions, *repetitions;
    uint64_t *validity;
    uint32_t *starts;
    size_t definitions_capacity, repetitions_capacity, validity_capacity;
    /* the span */
    uint8_t lift; /* of its definition levels */
    uint64_t first_row, rows, rows_seen;
    bool deleted; /* the row at hand */
};

/* Makes room for `count` more entries. */
static enum mp_code reserve(struct build *build, uint32_t count, struct mp_err *err)
{
    size_t need = (size_t)build->entries->column.rows + count;
    size_t words = build->validity_capacity;

    if (need > UINT32_MAX / 2)
        return mp_err_set(err, MP_FULL, "more than %u entries", UINT32_MAX / 2);
    build->definitions = mp_scratch_grow(build->definitions, &build->definitions_capacity, need, 1);
    build->repetitions = mp_scratch_grow(build->repetitions, &build->repetitions_capacity, need, 1);
    build->validity = mp_scratch_grow(build->validity, &build->validity_capacity, need / 64 + 1,
                                      sizeof(*build->validity));
    if (build->validity_capacity > words)
        memset(build->validity + words, 0,
               (build->validity_capacity - words) * sizeof(*build->validity));
    return mp_merge_bytes_check(build->values.merge, need * ENTRY_BYTES, err);
}

static void add_entry(struct build *build, uint32_t definition, uint32_t repetition, bool valid)
{
    uint32_t at = build->entries->column.rows++;

    build->definitions[at] = (uint8_t)definition;
    build->repetitions[at] = (uint8_t)repetition;
    build->validity[at / 64] |= (uint64_t)valid << (at & 63);
}

static enum mp_code begin_row(struct build *build, struct mp_err *err)
{
    if (build->rows_seen == build->rows)
        return mp_err_set(err, MP_BAD_DATA, "column \"%.*s\": more rows than its row group has",
                          MP_STR_ARG(build->entries->column.name));
    build->deleted =
        mp_merge_is_deleted(build->values.input, build->first_row + build->rows_seen++);
    if (!build->deleted)
        build->starts[build->entries->rows++] = build->entries->column.rows;
    return MP_OK;
}

/* Values of rows that stay go together as far as they stand side by side. */
static enum mp_code add_batch(struct build *build, const struct mp_parquet_batch *batch,
                              struct mp_err *err)
{
    uint32_t from = 0, value = 0;
    enum mp_code code = reserve(build, batch->rows, err);

    for (uint32_t i = 0; i < batch->rows && !code; i++) {
        bool valid = batch->validity[i / 64] >> (i & 63) & 1, was = build->deleted;

        if (!batch->repetitions[i])
            code = begin_row(build, err);
        if (!code && build->deleted && !was && from < value)
            code = mp_merge_add_values(&build->values, batch, from, value - from, err);
        if (!build->deleted)
            add_entry(build, build->lift + batch->definitions[i], batch->repetitions[i], valid);
        value += valid;
        if (build->deleted)
            from = value;
    }
    if (!code && from < value)
        code = mp_merge_add_values(&build->values, batch, from, value - from, err);
    return code;
}

static enum mp_code read_chunk(struct build *build, uint32_t group, uint32_t leaf,
                               struct mp_err *err)
{
    const struct mp_parquet_footer *footer = build->values.input->footer;
    struct mp_parquet_reader *reader = build->values.merge->reader;
    const struct mp_parquet_column_chunk *chunk = &footer->groups[group].chunks[leaf];
    struct mp_parquet_batch batch;
    enum mp_code code = mp_parquet_reader_open(
        reader, footer, group, leaf, mp_parquet_chunk_in(build->values.input->bytes, chunk), err);

    do {
        if (!code)
            code = mp_parquet_reader_next(reader, err, &batch);
        if (!code)
            code = add_batch(build, &batch, err);
    } while (!code && batch.rows);
    if (!code && build->rows_seen < build->rows)
        code = mp_err_set(err, MP_BAD_DATA, "column \"%.*s\": %llu rows, its row group has %llu",
                          MP_STR_ARG(build->entries->column.name),
                          (unsigned long long)build->rows_seen, (unsigned long long)build->rows);
    return code;
}

/* Rows of an input that lacks the column. */
static enum mp_code add_nulls(struct build *build, struct mp_err *err)
{
    enum mp_code code = reserve(build, (uint32_t)build->rows, err);

    while (!code && build->rows_seen < build->rows) {
        code = begin_row(build, err);
        if (!code && !build->deleted)
            add_entry(build, 0, 0, false);
    }
    return code;
}

/* The number of a column's leaf in the file: leaves stand in the order of the tree. */
static uint32_t leaf_number(const struct mp_parquet_footer *footer, uint32_t node, uint32_t leaf)
{
    while (footer->nodes[node].leaf < 0)
        node++;
    return (uint32_t)footer->nodes[node].leaf + leaf;
}

static enum mp_code add_span(struct build *build, const struct mp_merge_span *span, uint32_t column,
                             uint32_t leaf, struct mp_err *err)
{
    const struct mp_parquet_merge_input *input = build->values.input;
    const struct mp_parquet_footer *footer = input->footer;
    int32_t node = input->leaves[column];
    uint32_t number;
    bool fits;

    build->first_row = span->first_row;
    build->rows = (uint64_t)footer->groups[span->group].rows;
    build->rows_seen = 0;
    build->deleted = false;
    if (node == MP_MERGE_NO_LEAF)
        return add_nulls(build, err);
    build->lift = footer->nodes[node].repetition == MP_PARQUET_REQUIRED;
    number = leaf_number(footer, (uint32_t)node, leaf);
    fits = mp_convert_of(&footer->nodes[footer->leaves[number]], build->entries->column.type,
                         &build->values.convert);
    assert(fits); /* mp_merge_nested_agree */
    return read_chunk(build, span->group, number, err);
}

enum mp_code mp_merge_entries_read(struct mp_merge *merge, const struct mp_merge_unit *unit,
                                   uint32_t column, const struct mp_parquet_tree *tree,
                                   uint32_t leaf, struct mp_err *err, struct mp_entries *ret)
{
    const struct mp_parquet_merge_column *of = &merge->options->columns[column];
    struct build build = {.values = {.merge = merge, .column = &ret->column}, .entries = ret};
    enum mp_code code = MP_OK;

    *ret = (struct mp_entries){
        .column = {.name = of->name, .type = tree->elements[tree->leaves[leaf]].type}};
    for (uint32_t i = tree->leaves[leaf];; i = tree->parents[i]) {
        enum mp_parquet_repetition repetition = tree->elements[i].repetition;

        ret->definition_max += repetition != MP_PARQUET_REQUIRED;
        ret->repetition_max += repetition == MP_PARQUET_REPEATED;
        if (!i)
            break;
    }
    build.starts = mp_alloc_array((size_t)unit->rows + 1, sizeof(*build.starts));
    for (uint32_t i = 0; i < unit->span_count && !code; i++) {
        merge->fault = unit->spans[i].input;
        build.values.input = &merge->inputs[unit->spans[i].input];
        code = add_span(&build, &unit->spans[i], column, leaf, err);
    }
    build.starts[code ? 0 : ret->rows] = ret->column.rows;
    ret->column.validity = build.validity;
    ret->definitions = build.definitions;
    ret->repetitions = build.repetitions;
    ret->starts = build.starts;
    if (code) {
        mp_merge_entries_fini(merge, ret);
        return code;
    }
    merge->fault = UINT32_MAX;
    assert(ret->rows == unit->rows); /* every chunk gave the rows of its group */
    return MP_OK;
}

void mp_merge_entries_fini(struct mp_merge *merge, struct mp_entries *entries)
{
    mp_merge_column_fini(merge, &entries->column);
    mp_free((void *)(uintptr_t)entries->definitions);
    mp_free((void *)(uintptr_t)entries->repetitions);
    mp_free((void *)(uintptr_t)entries->starts);
}
