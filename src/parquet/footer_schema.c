/* parquet/footer_schema.c - the list of SchemaElements -> a tree with levels and leaves.
 *
 * After  Parquet "Nested Encoding" (levels), "LogicalTypes" and its section on ConvertedType.
 */
#include "parquet/footer_priv.h"
#include "parquet/parquet_priv.h"

enum { PHYSICAL_COUNT = 8 };

/* ---- logical types --------------------------------------------------------------------------- */

/* ConvertedType -> the LogicalType that says the same (LogicalTypes.md). */
static const struct mp_parquet_logical converted_types[] = {
    [0] = {.kind = MP_PARQUET_STRING},
    [1] = {.kind = MP_PARQUET_MAP},
    [2] = {.kind = MP_PARQUET_MAP}, /* MAP_KEY_VALUE: written by mistake for MAP */
    [3] = {.kind = MP_PARQUET_LIST},
    [4] = {.kind = MP_PARQUET_ENUM},
    [5] = {.kind = MP_PARQUET_DECIMAL},
    [6] = {.kind = MP_PARQUET_DATE},
    [7] = {.kind = MP_PARQUET_TIME, .unit = MP_PARQUET_MILLIS, .utc = true},
    [8] = {.kind = MP_PARQUET_TIME, .unit = MP_PARQUET_MICROS, .utc = true},
    [9] = {.kind = MP_PARQUET_TIMESTAMP, .unit = MP_PARQUET_MILLIS, .utc = true},
    [10] = {.kind = MP_PARQUET_TIMESTAMP, .unit = MP_PARQUET_MICROS, .utc = true},
    [11] = {.kind = MP_PARQUET_INTEGER, .bits = 8},
    [12] = {.kind = MP_PARQUET_INTEGER, .bits = 16},
    [13] = {.kind = MP_PARQUET_INTEGER, .bits = 32},
    [14] = {.kind = MP_PARQUET_INTEGER, .bits = 64},
    [15] = {.kind = MP_PARQUET_INTEGER, .bits = 8, .is_signed = true},
    [16] = {.kind = MP_PARQUET_INTEGER, .bits = 16, .is_signed = true},
    [17] = {.kind = MP_PARQUET_INTEGER, .bits = 32, .is_signed = true},
    [18] = {.kind = MP_PARQUET_INTEGER, .bits = 64, .is_signed = true},
    [19] = {.kind = MP_PARQUET_JSON},
    [20] = {.kind = MP_PARQUET_BSON},
    [21] = {.kind = MP_PARQUET_INTERVAL},
};

static struct mp_parquet_logical of_converted(const struct mp_raw_element *element)
{
    struct mp_parquet_logical logical = {.kind = MP_PARQUET_LATER};
    size_t count = sizeof(converted_types) / sizeof(*converted_types);

    if (element->converted >= 0 && (size_t)element->converted < count)
        logical = converted_types[element->converted];
    if (logical.kind == MP_PARQUET_DECIMAL) {
        logical.precision = element->precision;
        logical.scale = element->scale;
    }
    return logical;
}

static struct mp_parquet_logical of_time(uint8_t kind, const struct mp_raw_time *time)
{
    uint8_t unit = time->unit ? (uint8_t)__builtin_ctz(time->unit) : 0;

    if (unit < MP_PARQUET_MILLIS || unit > MP_PARQUET_NANOS)
        kind = MP_PARQUET_LATER;
    return (struct mp_parquet_logical){.kind = kind, .unit = unit, .utc = time->utc};
}

static struct mp_parquet_logical of_logical(const struct mp_raw_logical *raw)
{
    uint8_t kind = raw->has ? (uint8_t)__builtin_ctz(raw->has) : MP_PARQUET_LATER;
    struct mp_parquet_logical logical = {.kind = kind};

    switch (kind) {
    case MP_PARQUET_DECIMAL:
        logical.precision = raw->decimal.precision;
        logical.scale = raw->decimal.scale;
        break;
    case MP_PARQUET_TIME:
        return of_time(kind, &raw->time);
    case MP_PARQUET_TIMESTAMP:
        return of_time(kind, &raw->timestamp);
    case MP_PARQUET_INTEGER:
        logical.bits = (uint8_t)raw->integer.bits;
        logical.is_signed = raw->integer.is_signed;
        break;
    default:
        break;
    }
    return logical;
}

/* Whether the annotation only repeats what an INT32 or INT64 is. */
static bool says_nothing(const struct mp_parquet_logical *logical, int8_t physical)
{
    return logical->kind == MP_PARQUET_INTEGER && logical->is_signed &&
           ((physical == MP_PHYSICAL_INT32 && logical->bits == 32) ||
            (physical == MP_PHYSICAL_INT64 && logical->bits == 64));
}

static struct mp_parquet_logical logical_of(const struct mp_raw_element *element, int8_t physical)
{
    struct mp_parquet_logical logical = {.kind = MP_PARQUET_PLAIN};

    if (mp_thrift_has(element->has, 10))
        logical = of_logical(&element->logical);
    else if (mp_thrift_has(element->has, 6))
        logical = of_converted(element);
    if (says_nothing(&logical, physical))
        logical = (struct mp_parquet_logical){.kind = MP_PARQUET_PLAIN};
    logical.raw = element->logical_raw;
    return logical;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static enum mp_code check_leaf(const struct mp_raw_element *element, uint32_t index,
                               struct mp_err *err)
{
    if (element->type < 0 || element->type >= PHYSICAL_COUNT)
        return MP_BAD_FOOTER(err, "schema element %u has the physical type %d", index,
                             element->type);
    if (element->type == MP_PHYSICAL_FIXED && element->type_length <= 0)
        return MP_BAD_FOOTER(err, "schema element %u has values of %d bytes", index,
                             element->type_length);
    return MP_OK;
}

static enum mp_code make_node(const struct mp_raw_element *element, uint32_t index,
                              struct mp_err *err, struct mp_parquet_node *ret)
{
    bool is_leaf = mp_thrift_has(element->has, 1) && index > 0;

    if (index > 0 && (!mp_thrift_has(element->has, 3) || element->repetition < 0 ||
                      element->repetition > MP_PARQUET_REPEATED))
        return MP_BAD_FOOTER(err, "schema element %u has the repetition %d", index,
                             element->repetition);
    if (element->child_count < 0 || (is_leaf && element->child_count > 0))
        return MP_BAD_FOOTER(err, "schema element %u has %d children", index, element->child_count);
    *ret = (struct mp_parquet_node){
        .name = element->name,
        .child_count = (uint32_t)element->child_count,
        .leaf = -1,
        .physical = is_leaf ? (int8_t)element->type : -1,
        .repetition = index ? (uint8_t)element->repetition : MP_PARQUET_REQUIRED,
        .type_length = element->type_length,
        .field_id = element->field_id,
        .has_field_id = mp_thrift_has(element->has, 9),
        .converted = mp_thrift_has(element->has, 6) ? element->converted : -1,
    };
    if (is_leaf && check_leaf(element, index, err))
        return MP_BAD_DATA;
    ret->logical = logical_of(element, ret->physical);
    return MP_OK;
}

/* What a node has from its parent. */
static void inherit(struct mp_parquet_node *node, const struct mp_parquet_node *parent)
{
    node->depth = (uint16_t)(parent->depth + 1);
    node->repetition_max =
        (uint16_t)(parent->repetition_max + (node->repetition == MP_PARQUET_REPEATED));
    node->definition_max =
        (uint16_t)(parent->definition_max + (node->repetition != MP_PARQUET_REQUIRED));
    node->in_variant = parent->in_variant || node->logical.kind == MP_PARQUET_VARIANT;
}

/* Gives every node its place. `open` are the groups above the next node, with the children that
 * each still waits for. */
static enum mp_code make_tree(struct mp_parquet_node *nodes, uint32_t count, struct mp_err *err)
{
    struct {
        uint32_t node, waits;
    } open[MP_PARQUET_DEPTH_MAX] = {{0, nodes[0].child_count}};
    uint32_t depth = 1;

    for (uint32_t i = 1; i < count; i++) {
        while (depth && !open[depth - 1].waits)
            nodes[open[--depth].node].end = i;
        if (!depth)
            return MP_BAD_FOOTER(err, "schema element %u of %u belongs to no group", i, count);
        open[depth - 1].waits--;
        nodes[i].parent = open[depth - 1].node;
        nodes[i].end = i + 1;
        inherit(&nodes[i], &nodes[nodes[i].parent]);
        if (nodes[i].physical >= 0)
            continue;
        if (depth == MP_PARQUET_DEPTH_MAX)
            return MP_BAD_FOOTER(err, "schema element %u lies more than %u deep", i, depth);
        open[depth].node = i;
        open[depth++].waits = nodes[i].child_count;
    }
    while (depth && !open[depth - 1].waits)
        nodes[open[--depth].node].end = count;
    if (depth)
        return MP_BAD_FOOTER(err, "schema element %u misses %u children", open[depth - 1].node,
                             open[depth - 1].waits);
    return MP_OK;
}

enum mp_code mp_footer_schema(struct mp_arena *arena, const struct mp_raw_file *file,
                              struct mp_err *err, struct mp_parquet_footer *ret)
{
    uint32_t count = file->element_count, leaf_count = 0;
    struct mp_parquet_node *nodes;
    uint32_t *leaves;
    enum mp_code code = MP_OK;

    if (!count || count > MP_PARQUET_NODES_MAX)
        return MP_BAD_FOOTER(err, "a schema of %u elements", count);
    nodes = mp_arena_take(arena, count * sizeof(*nodes));
    leaves = mp_arena_take(arena, count * sizeof(*leaves));
    for (uint32_t i = 0; i < count && !code; i++)
        code = make_node(&file->elements[i], i, err, &nodes[i]);
    if (!code)
        code = make_tree(nodes, count, err);
    if (code)
        return code;
    for (uint32_t i = 1; i < count; i++)
        if (nodes[i].physical >= 0) {
            nodes[i].leaf = (int32_t)leaf_count;
            leaves[leaf_count++] = i;
        }
    ret->nodes = nodes;
    ret->node_count = count;
    ret->leaves = leaves;
    ret->leaf_count = leaf_count;
    return MP_OK;
}
