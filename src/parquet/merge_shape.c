/* parquet/merge_shape.c - what stands in the columns of a new file, and where inputs have it.
 *
 * A column has the shape that it is asked for, found in every input by field id: the element of a
 * list, key and value of a map by their places, with the id they must have. What an input lacks is
 * null there, what nobody asked for is left out. A node is required where every input that has
 * what is around it has it required. Lists in their older forms (LogicalTypes.md, "Backward-
 * compatibility rules") become lists in the form of today.
 *
 * A leaf has the type that it is asked for, where the newest input's values are all values of that
 * type; else it is carried: the physical type and the annotation of the newest input, of which the
 * others must be too. A leaf that is always null goes with either.
 *
 * A VARIANT has no fields that are asked for: its shape is the newest input's, of which the others
 * must be too; its leaves are carried.
 *
 * After  Parquet "LogicalTypes": "Nested Types"; VariantEncoding.md, VariantShredding.md.
 */
#include "parquet/merge_priv.h"

#include "base/mem.h"

struct build {
    struct mp_arena *arena;
    const struct mp_parquet_merge_input *inputs;
    uint32_t count; /* of inputs */
    uint32_t fault; /* the input that is being looked at */
    struct mp_err *err;
    /* the tree */
    struct mp_schema_element *elements;
    uint32_t *parents;
    const uint32_t **nodes;
    size_t elements_capacity, parents_capacity, nodes_capacity;
    uint32_t element_count;
};

static const struct mp_parquet_node *node_of(const struct build *build, uint32_t input,
                                             uint32_t node)
{
    return &build->inputs[input].footer->nodes[node];
}

static enum mp_code refuse_node(const struct mp_parquet_node *node, const char *why,
                                struct mp_err *err)
{
    return mp_err_set(err, MP_REFUSED, "\"%.*s\" in the file %s",
                      (int)(node->name.size < 100 ? node->name.size : 100), node->name.data, why);
}

static const char other_shape[] = "has another shape than in a newer one";

/* ---- leaves ---------------------------------------------------------------------------------- */

/* Whether two leaves are of one physical type with one annotation. */
static bool same_form(const struct mp_parquet_node *a, const struct mp_parquet_node *b)
{
    const struct mp_parquet_logical *x = &a->logical, *y = &b->logical;

    return a->physical == b->physical &&
           (a->physical != MP_PHYSICAL_FIXED || a->type_length == b->type_length) &&
           x->kind == y->kind && x->unit == y->unit && x->bits == y->bits &&
           x->is_signed == y->is_signed && x->utc == y->utc && x->precision == y->precision &&
           x->scale == y->scale &&
           (x->kind < MP_PARQUET_GEOMETRY || /* what follows has more than we know */
            (a->converted == b->converted && mp_str_eq(x->raw, y->raw)));
}

bool mp_merge_convert(const struct mp_schema_element *element, const struct mp_parquet_node *leaf,
                      struct mp_convert *ret)
{
    if (!element->carried || leaf->logical.kind == MP_PARQUET_UNKNOWN)
        return mp_convert_of(leaf, element->type, ret);
    *ret = mp_convert_as_is(leaf);
    return same_form(element->carried, leaf);
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* Whether every input that has what is around the node has it required; `otherwise` where none
 * has. around NULL: everything has. */
static bool is_required(const struct build *build, const uint32_t *around, const uint32_t *nodes,
                        bool otherwise)
{
    bool seen = false;

    for (uint32_t i = 0; i < build->count; i++) {
        if (around && !around[i])
            continue;
        if (!nodes[i] || (around && nodes[i] != around[i] &&
                          node_of(build, i, nodes[i])->repetition != MP_PARQUET_REQUIRED))
            return false;
        seen = true;
    }
    return seen || otherwise;
}

/* Adds an element behind the others; gives its number. */
static uint32_t append(struct build *build, const struct mp_schema_element *element,
                       uint32_t parent, const uint32_t *nodes)
{
    uint32_t at = build->element_count++;

    build->elements = mp_scratch_grow(build->elements, &build->elements_capacity, at + 1,
                                      sizeof(*build->elements));
    build->parents =
        mp_scratch_grow(build->parents, &build->parents_capacity, at + 1, sizeof(*build->parents));
    build->nodes =
        mp_scratch_grow(build->nodes, &build->nodes_capacity, at + 1, sizeof(*build->nodes));
    build->elements[at] = *element;
    build->parents[at] = parent;
    build->nodes[at] = nodes;
    return at;
}

static uint32_t *new_nodes(struct build *build)
{
    return mp_arena_take(build->arena, build->count * sizeof(uint32_t));
}

/* ---- where an input has what ----------------------------------------------------------------- */

/* A child of a struct. *ret 0: the file lacks it. */
static enum mp_code find_field(const struct mp_parquet_footer *footer, uint32_t parent,
                               int32_t field_id, struct mp_err *err, uint32_t *ret)
{
    uint32_t found = 0;

    for (uint32_t i = parent + 1; i < footer->nodes[parent].end; i = footer->nodes[i].end) {
        const struct mp_parquet_node *node = &footer->nodes[i];

        if (!node->has_field_id)
            return refuse_node(node, "has no field id", err);
        if (node->field_id != field_id)
            continue;
        if (found)
            return refuse_node(node, "has a field id that is there twice", err);
        found = i;
    }
    *ret = found;
    return MP_OK;
}

static enum mp_code check_id(const struct mp_parquet_footer *footer, uint32_t node,
                             int32_t field_id, struct mp_err *err)
{
    const struct mp_parquet_node *at = &footer->nodes[node];

    if (at->leaf >= 0 && !at->has_field_id)
        return refuse_node(at, "has no field id", err);
    if (at->has_field_id && at->field_id != field_id)
        return refuse_node(at, "has another field id than its column", err);
    return MP_OK;
}

/* Gives the repeated node of a list and its element, which in older forms is the same: the one of
 * them that has the field id, or the only one that can be. */
static enum mp_code find_element(const struct mp_parquet_footer *footer, uint32_t list,
                                 int32_t field_id, struct mp_err *err, uint32_t *ret_repeated,
                                 uint32_t *ret)
{
    const struct mp_parquet_node *at = &footer->nodes[list], *repeated = at + 1;
    bool itself;

    if (at->child_count != 1 || repeated->repetition != MP_PARQUET_REPEATED)
        return refuse_node(at, "is no list of a known form", err);
    itself =
        repeated->child_count != 1 || (repeated->has_field_id && repeated->field_id == field_id);
    *ret_repeated = list + 1;
    *ret = itself ? list + 1 : list + 2;
    return check_id(footer, *ret, field_id, err);
}

/* Gives the entries of a map, key and value; *ret_value 0: it has none. */
static enum mp_code find_entry(const struct mp_parquet_footer *footer, uint32_t map,
                               const struct mp_parquet_merge_column *children, struct mp_err *err,
                               uint32_t *ret_repeated, uint32_t *ret_key, uint32_t *ret_value)
{
    const struct mp_parquet_node *at = &footer->nodes[map], *entry = at + 1;
    enum mp_code code;

    if (at->child_count != 1 || entry->repetition != MP_PARQUET_REPEATED ||
        entry->child_count < 1 || entry->child_count > 2)
        return refuse_node(at, "is no map of a known form", err);
    *ret_repeated = map + 1;
    *ret_key = map + 2;
    *ret_value = entry->child_count > 1 ? footer->nodes[map + 2].end : 0;
    code = check_id(footer, *ret_key, children[0].field_id, err);
    if (!code && *ret_value)
        code = check_id(footer, *ret_value, children[1].field_id, err);
    return code;
}

/* ---- variants -------------------------------------------------------------------------------- */

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

/* Whether what is inside two nodes has one shape. */
static bool same_inside(const struct mp_parquet_footer *a, uint32_t a_node,
                        const struct mp_parquet_footer *b, uint32_t b_node)
{
    uint32_t count = a->nodes[a_node].end - a_node;

    if (count != b->nodes[b_node].end - b_node)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct mp_parquet_node *x = &a->nodes[a_node + i], *y = &b->nodes[b_node + i];

        if (x->child_count != y->child_count || (x->leaf < 0) != (y->leaf < 0) ||
            (i && (x->repetition != y->repetition || !mp_str_eq(x->name, y->name))))
            return false;
        if (x->leaf >= 0 ? !same_form(x, y)
                         : annotation_of(a, a_node + i) != annotation_of(b, b_node + i))
            return false;
    }
    return true;
}

static struct mp_schema_element element_of(const struct mp_parquet_footer *footer, uint32_t node)
{
    const struct mp_parquet_node *at = &footer->nodes[node];
    struct mp_schema_element element = {
        .name = at->name,
        .repetition = at->repetition,
        .children = at->child_count,
        .field_id = at->has_field_id ? at->field_id : 0,
        .carried = at->leaf >= 0 ? at : NULL,
    };

    if (at->leaf < 0)
        element.annotation = annotation_of(footer, node);
    if (element.annotation == MP_PARQUET_VARIANT) {
        element.annotation = MP_PARQUET_PLAIN;
        element.type = MP_TYPE(VARIANT);
    }
    return element;
}

/* The parts of a VARIANT that no input has. */
static void add_variant_of_none(struct build *build, uint32_t at)
{
    struct mp_schema_element part = {.type = MP_TYPE(BLOB), .repetition = MP_PARQUET_REQUIRED};

    build->elements[at].children = 2;
    part.name = MP_STR("metadata");
    append(build, &part, at, new_nodes(build));
    part.name = MP_STR("value");
    append(build, &part, at, new_nodes(build));
}

/* Adds what is inside the VARIANT that is element `at`. */
static enum mp_code add_variant_parts(struct build *build, uint32_t at, const uint32_t *nodes)
{
    const struct mp_parquet_footer *footer = NULL;
    uint32_t node = 0;

    for (uint32_t i = build->count; i-- > 0;) {
        if (!nodes[i])
            continue;
        build->fault = i;
        if (node_of(build, i, nodes[i])->logical.kind != MP_PARQUET_VARIANT)
            return refuse_node(node_of(build, i, nodes[i]), "is no variant", build->err);
        if (footer && !same_inside(footer, node, build->inputs[i].footer, nodes[i]))
            return refuse_node(node_of(build, i, nodes[i]), other_shape, build->err);
        footer = footer ? footer : build->inputs[i].footer;
        node = node ? node : nodes[i];
    }
    if (!footer) {
        add_variant_of_none(build, at);
        return MP_OK;
    }
    build->elements[at].children = footer->nodes[node].child_count;
    for (uint32_t k = 1; k < footer->nodes[node].end - node; k++) {
        struct mp_schema_element element = element_of(footer, node + k);
        uint32_t *inside = new_nodes(build);

        for (uint32_t i = 0; i < build->count; i++)
            inside[i] = nodes[i] ? nodes[i] + k : 0;
        append(build, &element, at + (footer->nodes[node + k].parent - node), inside);
    }
    return MP_OK;
}

/* ---- columns --------------------------------------------------------------------------------- */

/* A leaf has the column's type, or that of the newest input. */
static enum mp_code choose_form(struct build *build, uint32_t at, const uint32_t *nodes)
{
    struct mp_schema_element *element = &build->elements[at];
    const struct mp_parquet_node *newest = NULL;
    struct mp_convert convert;

    for (uint32_t i = build->count; i-- > 0 && !newest;)
        if (nodes[i] && node_of(build, i, nodes[i])->logical.kind != MP_PARQUET_UNKNOWN)
            newest = node_of(build, i, nodes[i]);
    if (newest && !mp_convert_of(newest, element->type, &convert))
        element->carried = newest;
    for (uint32_t i = 0; i < build->count; i++) {
        if (!nodes[i] || mp_merge_convert(element, node_of(build, i, nodes[i]), &convert))
            continue;
        build->fault = i;
        return refuse_node(node_of(build, i, nodes[i]), other_shape, build->err);
    }
    return MP_OK;
}

/* Whether every input's node is what such a column is; the one node that may be repeated is that of
 * a list whose element it is at once. */
static enum mp_code check_kinds(struct build *build, const struct mp_parquet_merge_column *column,
                                const uint32_t *around, const uint32_t *nodes)
{
    bool nested = mp_parquet_merge_nested(column);
    uint8_t kind = column->type.id == MP_TYPE_VARIANT ? MP_PARQUET_VARIANT : column->annotation;

    for (uint32_t i = 0; i < build->count; i++) {
        const struct mp_parquet_node *node = node_of(build, i, nodes[i]);

        if (!nodes[i])
            continue;
        build->fault = i;
        if ((node->leaf < 0) != nested || (nested && !node->child_count))
            return refuse_node(node, nested ? "is no group" : "is a group", build->err);
        if ((nested && node->logical.kind != kind) ||
            (node->repetition == MP_PARQUET_REPEATED && (!around || around[i] != nodes[i])))
            return refuse_node(node, "is of another kind than its column", build->err);
    }
    return MP_OK;
}

static enum mp_code add_column(struct build *build, const struct mp_parquet_merge_column *column,
                               uint32_t parent, const uint32_t *nodes, bool key);

static enum mp_code add_fields(struct build *build, const struct mp_parquet_merge_column *column,
                               uint32_t at, const uint32_t *nodes)
{
    enum mp_code code = MP_OK;

    for (uint32_t k = 0; k < column->child_count && !code; k++) {
        uint32_t *found = new_nodes(build);

        for (uint32_t i = 0; i < build->count && !code; i++) {
            build->fault = i;
            if (nodes[i])
                code = find_field(build->inputs[i].footer, nodes[i], column->children[k].field_id,
                                  build->err, &found[i]);
        }
        if (!code)
            code = add_column(build, &column->children[k], at, found, false);
    }
    return code;
}

/* Adds what a list or a map repeats, and what is in it. */
static enum mp_code add_entries(struct build *build, const struct mp_parquet_merge_column *column,
                                uint32_t at, const uint32_t *nodes)
{
    bool map = column->annotation == MP_PARQUET_MAP;
    uint32_t *repeated = new_nodes(build), *first = new_nodes(build), *second = new_nodes(build);
    struct mp_schema_element entry = {.name = map ? MP_STR("key_value") : MP_STR("list"),
                                      .repetition = MP_PARQUET_REPEATED,
                                      .children = column->child_count};
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < build->count && !code; i++) {
        const struct mp_parquet_footer *footer = build->inputs[i].footer;

        build->fault = i;
        if (!nodes[i])
            continue;
        code = map ? find_entry(footer, nodes[i], column->children, build->err, &repeated[i],
                                &first[i], &second[i])
                   : find_element(footer, nodes[i], column->children[0].field_id, build->err,
                                  &repeated[i], &first[i]);
    }
    at = append(build, &entry, at, repeated);
    if (!code)
        code = add_column(build, &column->children[0], at, first, map);
    if (!code && map)
        code = add_column(build, &column->children[1], at, second, false);
    return code;
}

/* Adds a column, or what is inside one; key: of a map. */
static enum mp_code add_column(struct build *build, const struct mp_parquet_merge_column *column,
                               uint32_t parent, const uint32_t *nodes, bool key)
{
    bool top = !build->element_count;
    const uint32_t *around = top ? NULL : build->nodes[parent];
    struct mp_schema_element element = {.name = column->name,
                                        .type = column->type,
                                        .annotation = column->annotation,
                                        .children = column->annotation ? 1 : column->child_count,
                                        .field_id = column->field_id};
    uint32_t expected = column->annotation == MP_PARQUET_MAP ? 2 : 1, at;
    enum mp_code code = check_kinds(build, column, around, nodes);

    if (!code && column->type.id == MP_TYPE_NONE &&
        (column->child_count < expected || (column->annotation && column->child_count > expected)))
        code = mp_err_set(build->err, MP_REFUSED, "column \"%.*s\" has %u fields",
                          MP_STR_ARG(column->name), column->child_count);
    if (code)
        return code;
    element.repetition =
        !top && is_required(build, around, nodes, key) ? MP_PARQUET_REQUIRED : MP_PARQUET_OPTIONAL;
    at = append(build, &element, parent, nodes);
    if (column->type.id == MP_TYPE_VARIANT)
        return add_variant_parts(build, at, nodes);
    if (!mp_parquet_merge_nested(column))
        return choose_form(build, at, nodes);
    return (column->annotation ? add_entries : add_fields)(build, column, at, nodes);
}

/* ---- what is read ---------------------------------------------------------------------------- */

uint32_t mp_merge_deepest(const struct mp_merge_tree *tree, uint32_t element, uint32_t input)
{
    while (element && !tree->nodes[element][input])
        element = tree->of.parents[element];
    return element;
}

static bool can_read(const struct mp_parquet_footer *footer, uint32_t leaf)
{
    struct mp_err err;

    return mp_parquet_reader_check(footer, leaf, &err) == MP_OK;
}

static int64_t bytes_of(const struct mp_parquet_footer *footer, uint32_t leaf)
{
    int64_t bytes = 0;

    for (uint32_t group = 0; group < footer->group_count; group++)
        bytes += footer->groups[group].chunks[leaf].raw_bytes;
    return bytes;
}

/* The smallest leaf below the node; UINT32_MAX: none can be read. */
static uint32_t witness_of(const struct mp_parquet_footer *footer, uint32_t node)
{
    uint32_t best = UINT32_MAX;
    int64_t best_bytes = 0;

    for (uint32_t i = node; i < footer->nodes[node].end; i++) {
        uint32_t leaf = (uint32_t)footer->nodes[i].leaf;
        int64_t bytes;

        if (footer->nodes[i].leaf < 0 || !can_read(footer, leaf))
            continue;
        bytes = bytes_of(footer, leaf);
        if (best == UINT32_MAX || bytes < best_bytes) {
            best = leaf;
            best_bytes = bytes;
        }
    }
    return best;
}

static enum mp_code find_leaf(const struct mp_merge_tree *tree, uint32_t element, uint32_t input,
                              const struct mp_parquet_footer *footer, struct mp_err *err,
                              uint32_t *ret)
{
    uint32_t at = mp_merge_deepest(tree, element, input), node = tree->nodes[at][input];

    if (!node)
        return MP_OK;
    *ret = at == element ? (uint32_t)footer->nodes[node].leaf : witness_of(footer, node);
    if (*ret == UINT32_MAX)
        return refuse_node(&footer->nodes[node], "has nothing that can be read", err);
    return mp_parquet_reader_check(footer, *ret, err);
}

static uint32_t depth_of(const struct mp_parquet_tree *tree, uint32_t element)
{
    uint32_t depth = 1;

    for (; element; element = tree->parents[element])
        depth++;
    return depth;
}

static enum mp_code find_leaves(struct build *build, struct mp_merge_tree *tree)
{
    uint32_t **reads = mp_arena_take(build->arena, tree->of.leaf_count * sizeof(*reads));
    enum mp_code code = MP_OK;

    tree->reads = (const uint32_t *const *)reads;
    for (uint32_t leaf = 0; leaf < tree->of.leaf_count && !code; leaf++) {
        uint32_t element = tree->of.leaves[leaf];

        if (depth_of(&tree->of, element) >= MP_PARQUET_DEPTH_MAX)
            return mp_err_set(build->err, MP_REFUSED, "column \"%.*s\" lies too deep",
                              MP_STR_ARG(tree->of.elements[0].name));
        reads[leaf] = new_nodes(build);
        for (uint32_t i = 0; i < build->count && !code; i++) {
            build->fault = i;
            code =
                find_leaf(tree, element, i, build->inputs[i].footer, build->err, &reads[leaf][i]);
        }
    }
    return code;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static const void *keep(struct mp_arena *arena, const void *from, size_t bytes)
{
    void *kept = mp_arena_take(arena, bytes);

    memcpy(kept, from, bytes);
    return kept;
}

static struct mp_merge_tree *finish(const struct build *build)
{
    struct mp_merge_tree *tree = mp_arena_take(build->arena, sizeof(*tree));
    size_t count = build->element_count;
    uint32_t *leaves = mp_arena_take(build->arena, count * sizeof(*leaves));

    tree->of.elements = keep(build->arena, build->elements, count * sizeof(*build->elements));
    tree->of.parents = keep(build->arena, build->parents, count * sizeof(*build->parents));
    tree->of.leaves = leaves;
    tree->of.count = build->element_count;
    tree->nodes = keep(build->arena, build->nodes, count * sizeof(*build->nodes));
    for (uint32_t i = 0; i < count; i++)
        if (!build->elements[i].children)
            leaves[tree->of.leaf_count++] = i;
    return tree;
}

/* The node of the column in an input; 0: it has none. */
static uint32_t top_of(const struct mp_parquet_merge_input *input,
                       const struct mp_parquet_merge_column *column, uint32_t number)
{
    int32_t leaf = input->leaves[number];

    if (leaf == MP_MERGE_NO_LEAF)
        return 0;
    if (mp_parquet_merge_nested(column)) {
        assert(leaf > 0 && leaf < (int32_t)input->footer->node_count);
        return (uint32_t)leaf;
    }
    assert(leaf < (int32_t)input->footer->leaf_count);
    return input->footer->leaves[leaf];
}

enum mp_code mp_merge_tree_new(struct mp_arena *arena, const struct mp_parquet_merge_input *inputs,
                               uint32_t count, const struct mp_parquet_merge_options *options,
                               uint32_t number, struct mp_err *err, uint32_t *ret_input,
                               const struct mp_merge_tree **ret)
{
    const struct mp_parquet_merge_column *column = &options->columns[number];
    struct build build = {.arena = arena, .inputs = inputs, .count = count, .err = err};
    uint32_t *nodes = new_nodes(&build);
    struct mp_merge_tree *tree;
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < count && !code; i++) {
        build.fault = i;
        nodes[i] = top_of(&inputs[i], column, number);
        if (nodes[i] && inputs[i].footer->nodes[nodes[i]].depth != 1)
            code = refuse_node(&inputs[i].footer->nodes[nodes[i]], "is nested", err);
    }
    if (!code)
        code = add_column(&build, column, 0, nodes, false);
    if (!code) {
        tree = finish(&build);
        code = find_leaves(&build, tree);
        *ret = tree;
    }
    if (code)
        *ret_input = build.fault;
    mp_free(build.elements);
    mp_free(build.parents);
    mp_free(build.nodes);
    return code;
}
