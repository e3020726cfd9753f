/* parquet/merge_nested.c - one leaf of a nested column of some row groups, entry by entry.
 *
 * Levels and values are copied row by row, and the entries of deleted rows are left out; nothing is
 * put together to records. Repetition levels are the input's; a definition level becomes that of
 * the innermost element that it says is there, since the new file may have more that is optional.
 *
 * Where an input lacks the leaf, the levels of another one tell what is there around it (a
 * witness): an entry is null inside the innermost node that the input has, and entries that only go
 * on with lists inside that node are none of the leaf's.
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
    bool witness;                    /* another leaf tells the levels; its values are not taken */
    uint8_t level_of[UINT8_MAX + 1]; /* a definition level of the input -> of the new file */
    uint32_t repetition_max;         /* entries above it are none of the leaf's */
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
        bool valid = !build->witness && batch->validity[i / 64] >> (i & 63) & 1;
        bool was = build->deleted;

        if (!batch->repetitions[i])
            code = begin_row(build, err);
        if (!code && build->deleted && !was && from < value)
            code = mp_merge_add_values(&build->values, batch, from, value - from, err);
        if (!build->deleted && batch->repetitions[i] <= build->repetition_max)
            add_entry(build, build->level_of[batch->definitions[i]], batch->repetitions[i], valid);
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

/* The definition level at which the element is there. */
static uint8_t level_of(const struct mp_parquet_tree *tree, uint32_t element)
{
    uint8_t level = tree->elements[element].repetition != MP_PARQUET_REQUIRED;

    return element ? (uint8_t)(level + level_of(tree, tree->parents[element])) : level;
}

/* Each level of the input means the innermost of the elements around `element` that it has. */
static void map_levels(struct build *build, const struct mp_merge_tree *tree, uint32_t element,
                       uint32_t input)
{
    const struct mp_parquet_node *nodes = build->values.input->footer->nodes;
    uint32_t end = UINT8_MAX + 1;

    memset(build->level_of, 0, sizeof(build->level_of));
    for (uint32_t at = element;; at = tree->of.parents[at]) {
        uint32_t there = nodes[tree->nodes[at][input]].definition_max;
        uint8_t level = level_of(&tree->of, at);

        while (end > there)
            build->level_of[--end] = level;
        if (!at)
            break;
    }
}

static enum mp_code add_span(struct build *build, const struct mp_merge_span *span,
                             const struct mp_merge_tree *tree, uint32_t leaf, struct mp_err *err)
{
    const struct mp_parquet_footer *footer = build->values.input->footer;
    uint32_t element = tree->of.leaves[leaf];
    uint32_t at = mp_merge_deepest(tree, element, span->input);
    const struct mp_parquet_node *node = &footer->nodes[tree->nodes[at][span->input]];
    bool fits;

    build->first_row = span->first_row;
    build->rows = (uint64_t)footer->groups[span->group].rows;
    build->rows_seen = 0;
    build->deleted = false;
    if (!node->depth) /* the root: it has nothing of the column */
        return add_nulls(build, err);
    build->witness = at != element;
    build->repetition_max = node->repetition_max;
    map_levels(build, tree, at, span->input);
    fits = build->witness ||
           mp_merge_convert(&tree->of.elements[element], node, &build->values.convert);
    assert(fits); /* mp_merge_tree_new */
    return read_chunk(build, span->group, tree->reads[leaf][span->input], err);
}

enum mp_code mp_merge_entries_read(struct mp_merge *merge, const struct mp_merge_unit *unit,
                                   const struct mp_merge_tree *tree, uint32_t leaf,
                                   struct mp_err *err, struct mp_entries *ret)
{
    const struct mp_schema_element *elements = tree->of.elements;
    uint32_t element = tree->of.leaves[leaf];
    struct build build = {.values = {.merge = merge, .column = &ret->column}, .entries = ret};
    enum mp_code code = MP_OK;

    *ret = (struct mp_entries){.column = {.name = elements[0].name, .type = elements[element].type},
                               .layout = mp_layout_of_leaf(&elements[element]),
                               .definition_max = level_of(&tree->of, element)};
    for (uint32_t i = element; i; i = tree->of.parents[i])
        ret->repetition_max += elements[i].repetition == MP_PARQUET_REPEATED;
    build.starts = mp_alloc_array((size_t)unit->rows + 1, sizeof(*build.starts));
    for (uint32_t i = 0; i < unit->span_count && !code; i++) {
        merge->fault = unit->spans[i].input;
        build.values.input = &merge->inputs[unit->spans[i].input];
        code = add_span(&build, &unit->spans[i], tree, leaf, err);
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
