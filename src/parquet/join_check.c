/* parquet/join_check.c - may these files be joined byte for byte?
 *
 * Two schemas are the same where readers that go by field id would decode the chunks of both in the
 * same way: the same tree, the same levels, types and ids, in the same order. Names may differ
 * where ids say what is meant; a node without id is one of those that Parquet puts between (`list`,
 * `key_value`), and their names are looked at by readers.
 */
#include "parquet/join_priv.h"

#define PATH_BYTES_MAX (16u << 20) /* of all leaves: they stand in every row group */

static bool same_logical(const struct mp_parquet_logical *a, const struct mp_parquet_logical *b)
{
    bool shown = a->kind == MP_PARQUET_LATER || a->kind == MP_PARQUET_VARIANT ||
                 a->kind == MP_PARQUET_GEOMETRY || a->kind == MP_PARQUET_GEOGRAPHY;

    return a->kind == b->kind && a->unit == b->unit && a->bits == b->bits &&
           a->is_signed == b->is_signed && a->utc == b->utc && a->precision == b->precision &&
           a->scale == b->scale && (!shown || mp_str_eq(a->raw, b->raw));
}

/* What differs between two nodes; NULL: nothing that matters. */
static const char *difference(const struct mp_parquet_node *a, const struct mp_parquet_node *b)
{
    if (a->has_field_id != b->has_field_id || (a->has_field_id && a->field_id != b->field_id))
        return "field id";
    if (!a->has_field_id && !mp_str_eq(a->name, b->name))
        return "name";
    if (a->physical != b->physical ||
        (a->physical == MP_PHYSICAL_FIXED && a->type_length != b->type_length))
        return "physical type";
    if (!same_logical(&a->logical, &b->logical))
        return "logical type";
    if (a->repetition != b->repetition)
        return "repetition";
    if (a->parent != b->parent || a->child_count != b->child_count)
        return "place in the tree";
    return NULL;
}

static enum mp_code check_schema(const struct mp_parquet_footer *a, uint32_t a_nodes,
                                 const struct mp_parquet_footer *b, uint32_t b_nodes,
                                 struct mp_err *err)
{
    if (a_nodes != b_nodes)
        return mp_err_set(err, MP_REFUSED, "it has %u columns and groups, the first file %u",
                          b_nodes - 1, a_nodes - 1);
    for (uint32_t i = 1; i < a_nodes; i++) {
        const char *what = difference(&a->nodes[i], &b->nodes[i]);

        if (what)
            return mp_err_set(err, MP_REFUSED, "column \"%.*s\" (%u) has another %s",
                              (int)(b->nodes[i].name.size < 100 ? b->nodes[i].name.size : 100),
                              b->nodes[i].name.data, i, what);
    }
    return MP_OK;
}

/* Chunks that overlap would make the new file larger than all old ones. */
static enum mp_code check_sizes(const struct mp_parquet_footer *footer, struct mp_err *err)
{
    uint64_t left = footer->file_bytes;

    for (uint32_t group = 0; group < footer->group_count; group++) {
        if (footer->groups[group].rows > MP_JOIN_GROUP_ROWS_MAX)
            return mp_err_set(err, MP_REFUSED, "row group %u has %lld rows", group,
                              (long long)footer->groups[group].rows);
        for (uint32_t leaf = 0; leaf < footer->leaf_count; leaf++) {
            uint64_t bytes = (uint64_t)footer->groups[group].chunks[leaf].bytes;

            if (bytes > left)
                return mp_err_set(err, MP_BAD_DATA, "its chunks have more than its %llu bytes",
                                  (unsigned long long)footer->file_bytes);
            left -= bytes;
        }
    }
    return MP_OK;
}

static enum mp_code check_paths(const struct mp_parquet_footer *footer, struct mp_err *err)
{
    uint64_t bytes = 0;

    for (uint32_t leaf = 0; leaf < footer->leaf_count; leaf++)
        for (uint32_t i = footer->leaves[leaf]; i; i = footer->nodes[i].parent)
            bytes += footer->nodes[i].name.size + 10;
    if (bytes > PATH_BYTES_MAX)
        return mp_err_set(err, MP_REFUSED, "column paths of %llu bytes, at most %u are written",
                          (unsigned long long)bytes, PATH_BYTES_MAX);
    return MP_OK;
}

/* Whether a column that is not the row ids has their field id or their name. */
static bool takes_place_of_ids(const struct mp_parquet_node *node,
                               const struct mp_parquet_join_options *options)
{
    return (node->has_field_id && node->field_id == options->row_id_field_id) ||
           (node->parent == 0 && mp_str_eq(node->name, options->row_id_name));
}

static enum mp_code check_input(const struct mp_parquet_join_input *input,
                                const struct mp_parquet_join_input *first,
                                const struct mp_parquet_join_options *options, struct mp_err *err)
{
    const struct mp_parquet_footer *footer = input->footer;
    bool own_ids = mp_row_ids_there(footer, options);
    int64_t last;
    enum mp_code code;

    if (input->deleted_rows)
        return mp_err_set(err, MP_REFUSED, "a deletion vector takes %llu rows from it",
                          (unsigned long long)input->deleted_rows);
    if (mp_parquet_misses_field_ids(footer))
        return mp_err_set(err, MP_REFUSED, "a column has no field id");
    for (uint32_t i = 1; options->row_ids && i + own_ids < footer->node_count; i++)
        if (takes_place_of_ids(&footer->nodes[i], options))
            return mp_err_set(err, MP_REFUSED,
                              "column %u has the name or field id (%d) of row ids, and is not "
                              "an INT64 column at the end",
                              i, options->row_id_field_id);
    if (options->row_ids && !own_ids &&
        (input->row_id_start < 0 ||
         __builtin_add_overflow(input->row_id_start, footer->rows, &last)))
        return mp_err_set(err, MP_BAD_DATA, "row ids from %lld on for %lld rows",
                          (long long)input->row_id_start, (long long)footer->rows);
    code = check_schema(first->footer,
                        first->footer->node_count - mp_row_ids_there(first->footer, options),
                        footer, footer->node_count - own_ids, err);
    if (!code)
        code = check_sizes(footer, err);
    return code ? code : check_paths(footer, err);
}

/* Inputs with row ids of their own must have them alike. */
static enum mp_code check_row_ids(const struct mp_parquet_join_input *inputs, uint32_t count,
                                  const struct mp_parquet_join_options *options, struct mp_err *err)
{
    const struct mp_parquet_node *one = NULL;

    for (uint32_t i = 0; i < count; i++) {
        const struct mp_parquet_footer *footer = inputs[i].footer;
        const struct mp_parquet_node *node = &footer->nodes[footer->node_count - 1];

        if (!mp_row_ids_there(footer, options))
            continue;
        if (one && one->repetition != node->repetition)
            return mp_err_set(err, MP_REFUSED, "input %u: its row ids have another repetition", i);
        one = node;
    }
    return MP_OK;
}

enum mp_code mp_parquet_join_check(const struct mp_parquet_join_input *inputs, uint32_t count,
                                   const struct mp_parquet_join_options *options,
                                   struct mp_err *err)
{
    assert(count > 0 && options->names_from < count);
    if (options->sorted)
        return mp_err_set(err, MP_REFUSED, "the table has a sort order");
    for (uint32_t i = 0; i < count; i++) {
        enum mp_code code = check_input(&inputs[i], &inputs[0], options, err);

        if (code) {
            mp_err_add(err, "input %u", i);
            return code;
        }
    }
    return check_row_ids(inputs, count, options, err);
}
