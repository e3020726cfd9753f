/* column/variant.c - sizes first, then bytes.
 *
 * A VARIANT's containers say in front where each value inside begins, so the sizes must be known
 * before the first byte is written. The nodes of a text are walked twice: from the last to the
 * first, which meets what is inside a container before the container, for the sizes; then forwards,
 * where every byte is written once, at its place. Neither walk is recursive.
 *
 *     V1  after the first walk, sizes[node] is what the second writes for it
 *     V2  values stand in the order of the text; the list of offsets in front of an object is by
 *         name, so the offsets need not ascend
 *
 * After  VariantEncoding.md, "Value encoding"; VariantShredding.md, "Objects".
 */
#include "column/variant_priv.h"

#include "base/mem.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* The basic types, in the low two bits of a value's first byte. */
enum { PRIMITIVE = 0, SHORT_STRING = 1, OBJECT = 2, ARRAY = 3 };

/* Primitive types. */
enum {
    PRIMITIVE_NULL = 0,
    PRIMITIVE_TRUE = 1,
    PRIMITIVE_FALSE = 2,
    PRIMITIVE_INT8 = 3,
    PRIMITIVE_INT16 = 4,
    PRIMITIVE_INT32 = 5,
    PRIMITIVE_INT64 = 6,
    PRIMITIVE_DOUBLE = 7,
    PRIMITIVE_DECIMAL16 = 10,
    PRIMITIVE_STRING = 16,
};

enum {
    SHORT_STRING_MAX = 63,
    DECIMAL_DIGITS_MAX = 38,
    KEY_BYTES_MAX = 4 << 20, /* of the scanner's names; then they are forgotten */
    OUT_KEPT = 4 << 20,      /* what an outsized text needed beyond goes back */
    SLACK = 16,              /* bytes that may be written behind the last one */
};

/* In place of a size: the node counts as not there. */
#define DROPPED UINT32_MAX       /* a later member has the same name */
#define APART   (UINT32_MAX - 1) /* stored apart; it is a member of the outermost object */

/* ---- the encoder ----------------------------------------------------------------------------- */

struct mp_variant *mp_variant_new(void)
{
    struct mp_variant *variant = mp_alloc(sizeof(*variant));

    variant->json = mp_json_new();
    variant->out = MP_BUF_INIT(SIZE_MAX);
    return variant;
}

void mp_variant_free(struct mp_variant *variant)
{
    if (!variant)
        return;
    mp_variant_names_fini(variant);
    mp_json_free(variant->json);
    mp_buf_fini(&variant->out);
    mp_free(variant->parts);
    mp_free(variant->shape_keys);
    mp_free(variant->keys);
    mp_free(variant->order);
    mp_free(variant->sizes);
    mp_free(variant->members);
    mp_free(variant);
}

void mp_variant_set_shape(struct mp_variant *variant, const struct mp_variant_shape *shape)
{
    variant->shape = *shape;
    mp_free(variant->parts);
    mp_free(variant->shape_keys);
    variant->parts = mp_alloc_array(shape->count, sizeof(*variant->parts));
    variant->shape_keys = mp_alloc_array(shape->count, sizeof(*variant->shape_keys));
    variant->shape_keys_known = false;
    for (uint32_t key = 0; key < variant->key_capacity; key++)
        variant->keys[key].field = 0;
}

/* Forgets all names, of which the texts may bring ever new ones. */
static void forget_names(struct mp_variant *variant)
{
    mp_json_keys_reset(variant->json);
    mp_variant_names_fini(variant);
    mp_free(variant->keys);
    variant->keys = NULL;
    variant->key_capacity = 0;
    variant->shape_keys_known = false;
}

static void grow_keys(struct mp_variant *variant)
{
    uint32_t count = mp_json_key_count(variant->json), old = variant->key_capacity;

    if (count <= old)
        return;
    variant->key_capacity = count + count / 2 + 64;
    variant->keys = mp_realloc(variant->keys, variant->key_capacity * sizeof(*variant->keys));
    memset(variant->keys + old, 0, (variant->key_capacity - old) * sizeof(*variant->keys));
}

/* Makes the names of the shape known to the scanner: it reads an object that has them all. */
static void learn_shape(struct mp_variant *variant)
{
    struct mp_buf text = MP_BUF_INIT(SIZE_MAX);
    struct mp_json_tree tree;
    bool read;

    mp_buf_add_byte(&text, '{');
    for (uint32_t i = 0; i < variant->shape.count; i++) {
        mp_buf_add_c(&text, i ? "," : "");
        mp_buf_add_json(&text, variant->shape.fields[i].name);
        mp_buf_add_c(&text, ":0");
    }
    mp_buf_add_byte(&text, '}');
    read = mp_json_tree(variant->json, mp_buf_str(&text), &tree);
    assert(read && tree.count == 1 + variant->shape.count);
    grow_keys(variant);
    for (uint32_t i = 0; i < variant->shape.count; i++) {
        variant->shape_keys[i] = tree.nodes[1 + i].value.key;
        variant->keys[variant->shape_keys[i]].field = i + 1;
    }
    variant->shape_keys_known = true;
    mp_buf_fini(&text);
}

/* Room for what is kept of each node; goes back after an outsized text. */
static uint32_t *grow_u32(uint32_t *array, uint32_t *capacity, uint32_t count)
{
    if (count <= *capacity && (*capacity <= OUT_KEPT / 4 || count > OUT_KEPT / 4))
        return array;
    mp_free(array);
    *capacity = count + count / 2 + 64;
    return mp_alloc_array(*capacity, sizeof(*array));
}

static void next_serial(struct mp_variant *variant)
{
    if (++variant->serial && variant->object_serial < UINT32_MAX / 2)
        return;
    for (uint32_t key = 0; key < variant->key_capacity; key++)
        variant->keys[key].serial = variant->keys[key].object = 0;
    variant->serial = 1;
    variant->object_serial = 0;
}

bool mp_variant_read(struct mp_variant *variant, struct mp_str json, struct mp_json_tree *ret)
{
    if (mp_json_key_bytes(variant->json) > KEY_BYTES_MAX)
        forget_names(variant);
    if (!variant->shape_keys_known)
        learn_shape(variant);
    if (json.size > MP_VARIANT_BYTES_MAX || !mp_json_tree(variant->json, json, ret))
        return false;
    grow_keys(variant);
    variant->order =
        grow_u32(variant->order, &variant->order_capacity, ret->count + variant->shape.count);
    variant->sizes = grow_u32(variant->sizes, &variant->size_capacity, ret->count);
    next_serial(variant);
    return true;
}

/* ---- leaves ---------------------------------------------------------------------------------- */

/* Digits of an integer without its sign; no leading zeros. */
static struct mp_str digits_of(struct mp_str number)
{
    size_t sign = number.data[0] == '-';

    return mp_str_n(number.data + sign, number.size - sign);
}

static bool fits_decimal(struct mp_str number)
{
    return digits_of(number).size <= DECIMAL_DIGITS_MAX;
}

static unsigned integer_bytes(int64_t value)
{
    if (value == (int8_t)value)
        return 1;
    if (value == (int16_t)value)
        return 2;
    return value == (int32_t)value ? 4 : 8;
}

static uint64_t leaf_size(const struct mp_json_field *value)
{
    switch (value->kind) {
    case MP_JSON_INT:
        return 1 + integer_bytes(value->i64);
    case MP_JSON_BIGINT:
        return fits_decimal(value->text) ? 1 + 1 + 16 : 1 + 8;
    case MP_JSON_DOUBLE:
        return 1 + 8;
    case MP_JSON_STRING:
        return value->text.size <= SHORT_STRING_MAX ? 1 + value->text.size
                                                    : 1 + 4 + (uint64_t)value->text.size;
    default:
        return 1;
    }
}

static char *put_type(char *at, unsigned primitive)
{
    *at = (char)(PRIMITIVE | primitive << 2);
    return at + 1;
}

static char *put_integer(char *at, int64_t value)
{
    unsigned bytes = integer_bytes(value);
    unsigned type = bytes == 1   ? PRIMITIVE_INT8
                    : bytes == 2 ? PRIMITIVE_INT16
                    : bytes == 4 ? PRIMITIVE_INT32
                                 : PRIMITIVE_INT64;

    return mp_variant_put(put_type(at, type), (uint64_t)value, bytes);
}

static char *put_double(char *at, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return mp_variant_put(put_type(at, PRIMITIVE_DOUBLE), bits, 8);
}

/* An integer outside int64: exact as far as a decimal goes, then as its nearest double. */
static char *put_big(char *at, struct mp_str number)
{
    struct mp_str digits = digits_of(number);
    bool negative = digits.size != number.size;
    mp_uint128 value = 0;
    char text[320]; /* what is longer is beyond the doubles, which the scanner refuses */

    if (!fits_decimal(number)) {
        assert(number.size < sizeof(text));
        memcpy(text, number.data, number.size);
        text[number.size] = 0;
        return put_double(at, strtod(text, NULL)); /* digits only: no locale matters */
    }
    for (size_t i = 0; i < digits.size; i++)
        value = value * 10 + (unsigned)(digits.data[i] - '0');
    if (negative)
        value = -value;
    at = put_type(at, PRIMITIVE_DECIMAL16);
    *at++ = 0; /* scale */
    at = mp_variant_put(at, (uint64_t)value, 8);
    return mp_variant_put(at, (uint64_t)(value >> 64), 8);
}

static char *put_string(char *at, struct mp_str text)
{
    if (text.size <= SHORT_STRING_MAX)
        *at++ = (char)(SHORT_STRING | text.size << 2);
    else
        at = mp_variant_put(put_type(at, PRIMITIVE_STRING), text.size, 4);
    if (text.size)
        memcpy(at, text.data, text.size);
    return at + text.size;
}

static char *put_leaf(char *at, const struct mp_json_field *value)
{
    switch (value->kind) {
    case MP_JSON_INT:
        return put_integer(at, value->i64);
    case MP_JSON_BIGINT:
        return put_big(at, value->text);
    case MP_JSON_DOUBLE:
        return put_double(at, value->f64);
    case MP_JSON_STRING:
        return put_string(at, value->text);
    case MP_JSON_TRUE:
        return put_type(at, PRIMITIVE_TRUE);
    case MP_JSON_FALSE:
        return put_type(at, PRIMITIVE_FALSE);
    default:
        assert(value->kind == MP_JSON_NULL);
        return put_type(at, PRIMITIVE_NULL);
    }
}

/* ---- containers ------------------------------------------------------------------------------ */

/* What stands in front of the values of an object or array. */
struct head {
    uint32_t count;
    unsigned count_bytes, id_bytes, offset_bytes;
    uint64_t values; /* bytes of all values */
    uint64_t size;   /* of the head */
};

static void head_close(struct head *head, bool object, uint32_t id_max)
{
    head->count_bytes = head->count > 255 ? 4 : 1;
    head->offset_bytes = mp_variant_width((uint32_t)head->values);
    head->id_bytes = object ? mp_variant_width(id_max) : 0;
    head->size = 1 + head->count_bytes + (uint64_t)head->count * head->id_bytes +
                 ((uint64_t)head->count + 1) * head->offset_bytes;
}

static uint32_t id_of(const struct mp_variant *variant, const struct mp_variant_names *names,
                      const struct mp_json_node *node)
{
    return names->ids[variant->keys[node->value.key].at];
}

/* Is the node's size a size, that is, does its container hold it? */
static bool held(uint32_t size)
{
    return size < APART;
}

/* Measures a container whose nodes are measured. */
static struct head measure(const struct mp_variant *variant, const struct mp_variant_names *names,
                           const struct mp_json_tree *tree, uint32_t node)
{
    const struct mp_json_node *nodes = tree->nodes;
    bool object = nodes[node].value.nested_object;
    struct head head = {0};
    uint32_t id_max = 0;

    for (uint32_t at = node + 1; at < nodes[node].end; at = nodes[at].end) {
        if (!held(variant->sizes[at]))
            continue;
        head.count++;
        head.values += variant->sizes[at];
        if (object && id_of(variant, names, &nodes[at]) > id_max)
            id_max = id_of(variant, names, &nodes[at]);
    }
    if (head.values <= MP_VARIANT_BYTES_MAX)
        head_close(&head, object, id_max);
    return head;
}

/* Of members with one name, all but the last are dropped. */
static void drop_duplicates(struct mp_variant *variant, const struct mp_json_tree *tree,
                            uint32_t node)
{
    const struct mp_json_node *nodes = tree->nodes;
    uint32_t serial = ++variant->object_serial;

    for (uint32_t at = node + 1; at < nodes[node].end; at = nodes[at].end) {
        struct mp_variant_key *key = &variant->keys[nodes[at].value.key];

        if (key->object == serial)
            variant->sizes[key->node] = DROPPED;
        key->object = serial;
        key->node = at;
    }
}

/* Fills the sizes of all nodes (V1). False: one is too large. */
static bool measure_all(struct mp_variant *variant, const struct mp_variant_names *names,
                        const struct mp_json_tree *tree, bool *ret_rounded)
{
    for (uint32_t node = tree->count; node-- > 0;) {
        const struct mp_json_field *value = &tree->nodes[node].value;
        uint64_t size;

        if (value->kind == MP_JSON_NESTED) {
            struct head head;

            if (value->nested_object)
                drop_duplicates(variant, tree, node);
            head = measure(variant, names, tree, node);
            size = head.size + head.values;
        } else {
            size = leaf_size(value);
            *ret_rounded |= value->kind == MP_JSON_BIGINT && !fits_decimal(value->text);
        }
        if (size > MP_VARIANT_BYTES_MAX)
            return false;
        variant->sizes[node] = (uint32_t)size;
    }
    return true;
}

static int by_number(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

/* Most objects have few members, or have them nearly in order. */
static void sort_members(uint64_t *members, uint32_t count)
{
    if (count > 64) {
        qsort(members, count, sizeof(*members), by_number);
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        uint64_t member = members[i];
        uint32_t at = i;

        for (; at && members[at - 1] > member; at--)
            members[at] = members[at - 1];
        members[at] = member;
    }
}

/* Lists the held members of an object by name, as id << 32 | offset. */
static void list_members(struct mp_variant *variant, const struct mp_variant_names *names,
                         const struct mp_json_tree *tree, uint32_t node, uint32_t count)
{
    const struct mp_json_node *nodes = tree->nodes;
    uint32_t offset = 0, n = 0;

    if (count > variant->member_capacity) {
        mp_free(variant->members);
        variant->member_capacity = count + count / 2 + 64;
        variant->members = mp_alloc_array(variant->member_capacity, sizeof(*variant->members));
    }
    for (uint32_t at = node + 1; at < nodes[node].end; at = nodes[at].end) {
        if (!held(variant->sizes[at]))
            continue;
        variant->members[n++] = (uint64_t)id_of(variant, names, &nodes[at]) << 32 | offset;
        offset += variant->sizes[at];
    }
    assert(n == count);
    sort_members(variant->members, count);
}

/* Writes what stands in front of an object's or array's values. */
static char *put_head(struct mp_variant *variant, const struct mp_variant_names *names,
                      const struct mp_json_tree *tree, uint32_t node, char *at)
{
    const struct mp_json_node *nodes = tree->nodes;
    struct head head = measure(variant, names, tree, node);
    unsigned large = head.count_bytes == 4;
    char *end = at + head.size;
    uint64_t offset = 0;

    if (nodes[node].value.nested_object) {
        *at++ =
            (char)(OBJECT | (head.offset_bytes - 1) << 2 | (head.id_bytes - 1) << 4 | large << 6);
        at = mp_variant_put(at, head.count, head.count_bytes);
        list_members(variant, names, tree, node, head.count);
        for (uint32_t i = 0; i < head.count; i++)
            at = mp_variant_put(at, variant->members[i] >> 32, head.id_bytes);
        for (uint32_t i = 0; i < head.count; i++)
            at = mp_variant_put(at, variant->members[i] & UINT32_MAX, head.offset_bytes);
    } else {
        *at++ = (char)(ARRAY | (head.offset_bytes - 1) << 2 | large << 4);
        at = mp_variant_put(at, head.count, head.count_bytes);
        for (uint32_t child = node + 1; child < nodes[node].end; child = nodes[child].end) {
            at = mp_variant_put(at, offset, head.offset_bytes);
            offset += variant->sizes[child];
        }
    }
    at = mp_variant_put(at, head.values, head.offset_bytes);
    assert(at == end);
    return at;
}

/* Writes the node and all inside it that is held. */
static char *put_node(struct mp_variant *variant, const struct mp_variant_names *names,
                      const struct mp_json_tree *tree, uint32_t node, char *at)
{
    const struct mp_json_node *nodes = tree->nodes;
    uint32_t end = nodes[node].end;

    for (uint32_t i = node; i < end;) {
        if (i != node && !held(variant->sizes[i])) {
            i = nodes[i].end;
            continue;
        }
        if (nodes[i].value.kind == MP_JSON_NESTED)
            at = put_head(variant, names, tree, i, at);
        else
            at = put_leaf(at, &nodes[i].value);
        i++;
    }
    return at;
}

/* ---- members stored apart -------------------------------------------------------------------- */

/* Takes a value as the field's type; false: it is of another. */
static bool take_typed(struct mp_variant_part *part, struct mp_type type,
                       const struct mp_json_field *value)
{
    part->place = MP_VARIANT_TYPED;
    switch (type.id) {
    case MP_TYPE_BOOL:
        part->truth = value->kind == MP_JSON_TRUE;
        return value->kind == MP_JSON_TRUE || value->kind == MP_JSON_FALSE;
    case MP_TYPE_INT64:
        part->i64 = value->i64;
        return value->kind == MP_JSON_INT;
    case MP_TYPE_DOUBLE:
        part->f64 = value->f64;
        return value->kind == MP_JSON_DOUBLE;
    default:
        assert(type.id == MP_TYPE_VARCHAR);
        part->bytes = value->text;
        return value->kind == MP_JSON_STRING;
    }
}

/* Takes the outermost object's members of the shape out of it, into the parts; those of another
 * type than wanted are written to `at` and lent from there. */
static char *take_apart(struct mp_variant *variant, const struct mp_variant_names *names,
                        const struct mp_json_tree *tree, char *at)
{
    const struct mp_json_node *nodes = tree->nodes;

    for (uint32_t i = 0; i < variant->shape.count; i++)
        variant->parts[i] = (struct mp_variant_part){.place = MP_VARIANT_ABSENT};
    for (uint32_t node = 1; node < tree->count; node = nodes[node].end) {
        uint32_t field = variant->keys[nodes[node].value.key].field; /* plus 1 */
        struct mp_variant_part *part;
        char *begin = at;

        if (!field || !held(variant->sizes[node]))
            continue;
        part = &variant->parts[field - 1];
        if (!take_typed(part, variant->shape.fields[field - 1].type, &nodes[node].value)) {
            at = put_node(variant, names, tree, node, at);
            assert((size_t)(at - begin) == variant->sizes[node]); /* V1 */
            *part = (struct mp_variant_part){.place = MP_VARIANT_VALUE,
                                             .bytes = mp_str_n(begin, (size_t)(at - begin))};
        }
        variant->sizes[node] = APART;
    }
    return at;
}

/* ---- the door -------------------------------------------------------------------------------- */

/* Room for so many bytes, in one piece. */
static char *out_room(struct mp_variant *variant, size_t bytes)
{
    if (variant->out.capacity > OUT_KEPT && bytes <= OUT_KEPT)
        mp_buf_fini(&variant->out);
    mp_buf_clear(&variant->out);
    return mp_buf_reserve(&variant->out, bytes + SLACK);
}

bool mp_variant_encode(struct mp_variant *variant, struct mp_str json, struct mp_variant_row *ret)
{
    const struct mp_variant_names *names;
    struct mp_variant_row row = {0};
    struct mp_json_tree tree;
    struct head head;
    char *begin, *at;

    if (!mp_variant_read(variant, json, &tree))
        return false;
    names = mp_variant_names_of(variant, &tree);
    if (!names || !measure_all(variant, names, &tree, &row.rounded))
        return false;
    row.metadata = mp_buf_str(&names->bytes);
    begin = at = out_room(variant, variant->sizes[0]); /* the parts are no larger than the whole */
    row.object = variant->shape.count && mp_variant_is_object(&tree);
    if (row.object) {
        begin = at = take_apart(variant, names, &tree, at);
        row.parts = variant->parts;
        head = measure(variant, names, &tree, 0);
    }
    if (!row.object || head.count) {
        at = put_node(variant, names, &tree, 0, at);
        row.value = mp_str_n(begin, (size_t)(at - begin));
        assert(row.object ? row.value.size == head.size + head.values
                          : row.value.size == variant->sizes[0]); /* V1 */
    }
    *ret = row;
    return true;
}

bool mp_variant_encode_string(struct mp_variant *variant, struct mp_str text,
                              struct mp_variant_row *ret)
{
    static const char no_names[] = {0x11, 0, 0};
    char *begin;

    if (text.size > MP_VARIANT_BYTES_MAX - 5)
        return false;
    begin = out_room(variant, text.size + 5);
    *ret = (struct mp_variant_row){
        .metadata = mp_str_n(no_names, sizeof(no_names)),
        .value = mp_str_n(begin, (size_t)(put_string(begin, text) - begin)),
    };
    return true;
}
