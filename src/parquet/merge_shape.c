/* parquet/merge_shape.c - what stands in the nested columns of a merge; do inputs agree?
 *
 * A nested column keeps the shape that the last input has which has the column: its nodes with
 * their names, field ids and repetition. Every other input must have the same nodes: by field id,
 * by name where neither has one; its leaves' values must be values of the shape's types.
 * Those are written as of any column: decimals by their precision, bytes of one length as bytes.
 *
 * After  Parquet "LogicalTypes": "Nested Types"; VariantEncoding.md.
 */
#include "parquet/merge_priv.h"

/* ---- leaves ---------------------------------------------------------------------------------- */

static uint8_t integer_of(const struct mp_parquet_logical *logical)
{
    switch (logical->bits) {
    case 8:
        return logical->is_signed ? MP_TYPE_INT8 : MP_TYPE_UINT8;
    case 16:
        return logical->is_signed ? MP_TYPE_INT16 : MP_TYPE_UINT16;
    case 32:
        return logical->is_signed ? MP_TYPE_INT32 : MP_TYPE_UINT32;
    case 64:
        return logical->is_signed ? MP_TYPE_INT64 : MP_TYPE_UINT64;
    default:
        return MP_TYPE_NONE;
    }
}

static uint8_t timestamp_of(const struct mp_parquet_logical *logical)
{
    if (logical->utc)
        return logical->unit == MP_PARQUET_NANOS ? MP_TYPE_NONE : MP_TYPE_TIMESTAMPTZ;
    return logical->unit == MP_PARQUET_MILLIS   ? MP_TYPE_TIMESTAMP_MS
           : logical->unit == MP_PARQUET_MICROS ? MP_TYPE_TIMESTAMP
                                                : MP_TYPE_TIMESTAMP_NS;
}

static uint8_t plain_of(const struct mp_parquet_node *leaf)
{
    static const uint8_t types[] = {
        [MP_PHYSICAL_BOOLEAN] = MP_TYPE_BOOL,    [MP_PHYSICAL_INT32] = MP_TYPE_INT32,
        [MP_PHYSICAL_INT64] = MP_TYPE_INT64,     [MP_PHYSICAL_INT96] = MP_TYPE_NONE,
        [MP_PHYSICAL_FLOAT] = MP_TYPE_FLOAT,     [MP_PHYSICAL_DOUBLE] = MP_TYPE_DOUBLE,
        [MP_PHYSICAL_BYTE_ARRAY] = MP_TYPE_BLOB, [MP_PHYSICAL_FIXED] = MP_TYPE_BLOB,
    };

    return types[leaf->physical];
}

/* The type that stands for what the leaf says of itself; false: there is none. */
static bool leaf_type(const struct mp_parquet_node *leaf, struct mp_type *ret)
{
    const struct mp_parquet_logical *logical = &leaf->logical;
    static const uint8_t types[MP_PARQUET_LATER + 1] = {
        [MP_PARQUET_STRING] = MP_TYPE_VARCHAR,  [MP_PARQUET_ENUM] = MP_TYPE_VARCHAR,
        [MP_PARQUET_DECIMAL] = MP_TYPE_DECIMAL, [MP_PARQUET_DATE] = MP_TYPE_DATE,
        [MP_PARQUET_TIME] = MP_TYPE_TIME,       [MP_PARQUET_JSON] = MP_TYPE_JSON,
        [MP_PARQUET_BSON] = MP_TYPE_BLOB,       [MP_PARQUET_UUID] = MP_TYPE_UUID,
    };
    struct mp_convert convert;

    *ret = (struct mp_type){.id = types[logical->kind]};
    if (logical->kind == MP_PARQUET_PLAIN)
        ret->id = plain_of(leaf);
    else if (logical->kind == MP_PARQUET_INTEGER)
        ret->id = integer_of(logical);
    else if (logical->kind == MP_PARQUET_TIMESTAMP)
        ret->id = timestamp_of(logical);
    if (ret->id == MP_TYPE_DECIMAL) {
        if (logical->precision < 1 || logical->precision > 38 || logical->scale < 0 ||
            logical->scale > logical->precision)
            return false;
        ret->precision = (uint8_t)logical->precision;
        ret->scale = (uint8_t)logical->scale;
    }
    return ret->id != MP_TYPE_NONE && mp_convert_of(leaf, *ret, &convert);
}

/* ---- one input ------------------------------------------------------------------------------- */

static enum mp_code refuse_node(const struct mp_parquet_node *node, const char *why,
                                struct mp_err *err)
{
    return mp_err_set(err, MP_REFUSED, "\"%.*s\" in the file %s",
                      (int)(node->name.size < 100 ? node->name.size : 100), node->name.data, why);
}

static bool known_group(const struct mp_parquet_node *node)
{
    uint8_t kind = node->logical.kind;

    return kind == MP_PARQUET_PLAIN || kind == MP_PARQUET_LIST || kind == MP_PARQUET_MAP ||
           kind == MP_PARQUET_VARIANT;
}

enum mp_code mp_merge_nested_check(const struct mp_parquet_footer *footer, uint32_t node,
                                   struct mp_err *err)
{
    const struct mp_parquet_node *top = &footer->nodes[node];
    struct mp_type type;
    enum mp_code code = MP_OK;

    if (top->leaf >= 0 || top->depth != 1 || top->repetition == MP_PARQUET_REPEATED)
        return refuse_node(top, "is no group", err);
    for (uint32_t i = node; i < top->end && !code; i++) {
        const struct mp_parquet_node *at = &footer->nodes[i];

        if (at->leaf < 0 && (!known_group(at) || !at->child_count))
            code = refuse_node(at, "is a group of a kind that is not known", err);
        else if (at->leaf >= 0 && !leaf_type(at, &type))
            code = refuse_node(at, "has values of a type that is not written inside groups", err);
        else if (at->leaf >= 0)
            code = mp_parquet_reader_check(footer, (uint32_t)at->leaf, err);
    }
    return code;
}

/* ---- two inputs ------------------------------------------------------------------------------ */

/* What an annotation of a group means: on the entries of a map it says nothing (its older form was
 * written there). */
static uint8_t annotation_of(const struct mp_parquet_footer *footer, uint32_t node)
{
    const struct mp_parquet_node *at = &footer->nodes[node];

    if (at->repetition == MP_PARQUET_REPEATED && at->logical.kind == MP_PARQUET_MAP &&
        footer->nodes[at->parent].logical.kind == MP_PARQUET_MAP)
        return MP_PARQUET_PLAIN;
    return at->logical.kind;
}

static bool same_name(const struct mp_parquet_node *a, const struct mp_parquet_node *b)
{
    if (a->has_field_id != b->has_field_id)
        return false;
    return a->has_field_id ? a->field_id == b->field_id : mp_str_eq(a->name, b->name);
}

/* Both are leaves whose values go together, or groups of one kind and as many children. */
static bool same_kind(const struct mp_parquet_footer *shape, uint32_t a,
                      const struct mp_parquet_footer *footer, uint32_t b)
{
    const struct mp_parquet_node *x = &shape->nodes[a], *y = &footer->nodes[b];
    struct mp_convert convert;
    struct mp_type type;

    if (x->child_count != y->child_count || (x->leaf < 0) != (y->leaf < 0))
        return false;
    if (x->leaf < 0)
        return annotation_of(shape, a) == annotation_of(footer, b);
    return leaf_type(x, &type) && mp_convert_of(y, type, &convert);
}

enum mp_code mp_merge_nested_agree(const struct mp_parquet_footer *shape, uint32_t shape_node,
                                   const struct mp_parquet_footer *footer, uint32_t node,
                                   struct mp_err *err)
{
    uint32_t count = shape->nodes[shape_node].end - shape_node;

    for (uint32_t i = 0; i < count; i++) {
        const struct mp_parquet_node *a = &shape->nodes[shape_node + i];
        const struct mp_parquet_node *b = &footer->nodes[node + i];

        if (node + i >= footer->nodes[node].end ||
            (i && (a->repetition != b->repetition || !same_name(a, b))) ||
            !same_kind(shape, shape_node + i, footer, node + i))
            return refuse_node(&footer->nodes[node], "has another shape than in a newer one", err);
    }
    return node + count == footer->nodes[node].end
               ? MP_OK
               : refuse_node(&footer->nodes[node], "has another shape than in a newer one", err);
}

/* ---- the new file ---------------------------------------------------------------------------- */

static struct mp_schema_element element_of(const struct mp_parquet_footer *footer, uint32_t node)
{
    const struct mp_parquet_node *at = &footer->nodes[node];
    struct mp_schema_element element = {
        .name = at->name,
        .repetition = at->repetition,
        .children = at->child_count,
        .field_id = at->has_field_id ? at->field_id : 0,
    };

    if (at->leaf >= 0) {
        bool known = leaf_type(at, &element.type);

        assert(known); /* mp_merge_nested_check */
        return element;
    }
    element.annotation = annotation_of(footer, node);
    if (element.annotation == MP_PARQUET_VARIANT) {
        element.annotation = MP_PARQUET_PLAIN;
        element.type = MP_TYPE(VARIANT);
    }
    return element;
}

const struct mp_parquet_tree *mp_merge_tree(struct mp_arena *arena,
                                            const struct mp_parquet_merge_column *column,
                                            const struct mp_parquet_footer *footer, uint32_t node)
{
    uint32_t count = footer->nodes[node].end - node;
    struct mp_parquet_tree *tree = mp_arena_take(arena, sizeof(*tree));
    struct mp_schema_element *elements = mp_arena_take(arena, count * sizeof(*elements));
    uint32_t *parents = mp_arena_take(arena, count * sizeof(*parents));
    uint32_t *leaves = mp_arena_take(arena, count * sizeof(*leaves));

    *tree = (struct mp_parquet_tree){elements, parents, leaves, count, 0};
    for (uint32_t i = 0; i < count; i++) {
        elements[i] = element_of(footer, node + i);
        parents[i] = i ? footer->nodes[node + i].parent - node : 0;
        if (!elements[i].children)
            leaves[tree->leaf_count++] = i;
    }
    elements[0].name = column->name;
    elements[0].field_id = column->field_id;
    elements[0].repetition = MP_PARQUET_OPTIONAL;
    return tree;
}
