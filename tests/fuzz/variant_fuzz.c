/* tests/fuzz/variant_fuzz.c - any bytes as a JSON text: the VARIANT that they become says the same.
 *
 * With libFuzzer, from the top of the tree: `tests/run fuzz -k variant`. Without it (no
 * -DMP_LIBFUZZER, any compiler) the program runs the files it is given, once each.
 *
 * For every input:
 *   V1  the encoder takes what the reader of trees takes
 *   V2  metadata and value, read by a reader that shares nothing with the encoder, are sound to the
 *       last byte: names sorted and there once, members by name, no offset or length too many
 *   V3  what they say is what the tree says, the last of equal members taken
 *   V4  with members stored apart, all parts together say the same
 *
 * After  VariantEncoding.md, VariantShredding.md.
 */
#include "fuzz/fuzz.h"
#include "base/buf.h"
#include "base/mem.h"
#include "column/variant.h"
#include "json/tree.h"

/* ---- what a tree says, as one text ----------------------------------------------------------- */

struct member {
    struct mp_str name;
    uint32_t node;
};

static int by_name(const void *a, const void *b)
{
    const struct member *left = a, *right = b;
    int order = mp_str_cmp(left->name, right->name);

    return order ? order : (left->node > right->node) - (left->node < right->node);
}

static void say_name(struct mp_buf *out, struct mp_str name)
{
    mp_buf_add_json(out, name);
    mp_buf_add_byte(out, ':');
}

static void say_double(struct mp_buf *out, double value)
{
    mp_buf_printf(out, "d%a", value);
}

static void say_big(struct mp_buf *out, struct mp_str digits)
{
    if (digits.size - (digits.data[0] == '-') <= 38) {
        mp_buf_add_str(out, digits);
    } else {
        char *text = mp_alloc(digits.size + 1);

        memcpy(text, digits.data, digits.size);
        say_double(out, strtod(text, NULL));
        mp_free(text);
    }
}

static void say_tree(struct mp_buf *out, struct mp_json *json, const struct mp_json_node *nodes,
                     uint32_t node)
{
    const struct mp_json_field *value = &nodes[node].value;
    struct member *members;
    uint32_t count = 0;
    bool first = true;

    switch (value->kind) {
    case MP_JSON_NULL:
        mp_buf_add_c(out, "null");
        return;
    case MP_JSON_FALSE:
    case MP_JSON_TRUE:
        mp_buf_add_c(out, value->kind == MP_JSON_TRUE ? "true" : "false");
        return;
    case MP_JSON_INT:
        mp_buf_printf(out, "%lld", (long long)value->i64);
        return;
    case MP_JSON_BIGINT:
        say_big(out, value->text);
        return;
    case MP_JSON_DOUBLE:
        say_double(out, value->f64);
        return;
    case MP_JSON_STRING:
        mp_buf_add_json(out, value->text);
        return;
    default:
        break;
    }
    members = mp_alloc_array(nodes[node].count, sizeof(*members));
    for (uint32_t at = node + 1; at < nodes[node].end; at = nodes[at].end)
        members[count++] = (struct member){
            value->nested_object ? mp_json_key_name(json, nodes[at].value.key) : MP_STR(""), at};
    MUST(count == nodes[node].count);
    if (value->nested_object)
        qsort(members, count, sizeof(*members), by_name);
    mp_buf_add_byte(out, value->nested_object ? '{' : '[');
    for (uint32_t i = 0; i < count; i++) {
        if (value->nested_object && i + 1 < count &&
            mp_str_eq(members[i].name, members[i + 1].name))
            continue;
        if (!first)
            mp_buf_add_byte(out, ',');
        first = false;
        if (value->nested_object)
            say_name(out, members[i].name);
        say_tree(out, json, nodes, members[i].node);
    }
    mp_buf_add_byte(out, value->nested_object ? '}' : ']');
    mp_free(members);
}

/* ---- what a VARIANT says --------------------------------------------------------------------- */

static uint64_t number(const char *at, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)(unsigned char)at[i] << (8 * i);
    return value;
}

static uint32_t name_count(struct mp_str metadata, unsigned *ret_width)
{
    *ret_width = ((unsigned char)metadata.data[0] >> 6) + 1u;
    return (uint32_t)number(metadata.data + 1, *ret_width);
}

static struct mp_str name_of(struct mp_str metadata, uint32_t id)
{
    unsigned width;
    uint32_t count = name_count(metadata, &width);
    const char *offsets = metadata.data + 1 + width;
    const char *bytes = offsets + ((size_t)count + 1) * width;
    uint64_t from, end;

    MUST(id < count);
    from = number(offsets + (size_t)id * width, width);
    end = number(offsets + ((size_t)id + 1) * width, width);
    MUST(from <= end && (size_t)(metadata.data + metadata.size - bytes) >= end);
    return mp_str_n(bytes + from, end - from);
}

static void check_metadata(struct mp_str metadata)
{
    unsigned width;
    uint32_t count;
    size_t total = 0;

    MUST(metadata.size >= 3 && (metadata.data[0] & 0x3f) == 0x11);
    count = name_count(metadata, &width);
    for (uint32_t i = 0; i < count; i++) {
        total += name_of(metadata, i).size;
        if (i)
            MUST(mp_str_cmp(name_of(metadata, i - 1), name_of(metadata, i)) < 0);
    }
    MUST(metadata.size == 1 + ((size_t)count + 2) * width + total);
}

static void say_decimal(struct mp_buf *out, const char *at)
{
    mp_uint128 value = (mp_uint128)number(at + 9, 8) << 64 | number(at + 1, 8);
    bool negative = value >> 127;
    char text[40], *digit = text + sizeof(text);

    MUST(at[0] == 0);
    if (negative)
        value = -value;
    for (; value; value /= 10)
        *--digit = (char)('0' + (int)(value % 10));
    if (negative)
        *--digit = '-';
    mp_buf_add(out, digit, (size_t)(text + sizeof(text) - digit));
}

static void say_primitive(struct mp_buf *out, struct mp_str value)
{
    static const unsigned sizes[] = {0, 0, 0, 1, 2, 4, 8, 8, 0, 0, 17};
    unsigned type = (unsigned char)value.data[0] >> 2;
    const char *at = value.data + 1;
    uint64_t bits;
    double real;

    if (type == 16) {
        MUST(value.size >= 5 && value.size - 5 == number(at, 4) && value.size > 5 + 63);
        mp_buf_add_json(out, mp_str_n(at + 4, value.size - 5));
        return;
    }
    MUST(type < sizeof(sizes) / sizeof(*sizes) && value.size == 1 + sizes[type]);
    switch (type) {
    case 0:
        mp_buf_add_c(out, "null");
        return;
    case 1:
    case 2:
        mp_buf_add_c(out, type == 1 ? "true" : "false");
        return;
    case 3:
    case 4:
    case 5:
    case 6:
        bits = number(at, sizes[type]);
        if (sizes[type] < 8 && bits >> (8 * sizes[type] - 1))
            bits |= UINT64_MAX << (8 * sizes[type]);
        mp_buf_printf(out, "%lld", (long long)bits);
        return;
    case 7:
        bits = number(at, 8);
        memcpy(&real, &bits, 8);
        say_double(out, real);
        return;
    default:
        MUST(type == 10);
        say_decimal(out, at);
    }
}

static void say_value(struct mp_buf *out, struct mp_str metadata, struct mp_str value);

/* Says the values of an object or array. */
static void say_nested(struct mp_buf *out, struct mp_str metadata, struct mp_str value)
{
    unsigned head = (unsigned char)value.data[0];
    bool object = (head & 3) == 2;
    unsigned offset_bytes = (head >> 2 & 3) + 1, id_bytes = object ? (head >> 4 & 3) + 1 : 0;
    unsigned count_bytes = head >> (object ? 6 : 4) & 1 ? 4 : 1;
    uint32_t count = (uint32_t)number(value.data + 1, count_bytes);
    const char *ids = value.data + 1 + count_bytes, *offsets = ids + (size_t)count * id_bytes;
    const char *values = offsets + ((size_t)count + 1) * offset_bytes;
    size_t total = (size_t)(value.data + value.size - values), seen = 0;

    MUST(number(offsets + (size_t)count * offset_bytes, offset_bytes) == total);
    mp_buf_add_byte(out, object ? '{' : '[');
    for (uint32_t i = 0; i < count; i++) {
        size_t from = number(offsets + (size_t)i * offset_bytes, offset_bytes), end = total;

        /* it ends where the next one in the order of the bytes begins */
        for (uint32_t k = 0; k < count; k++) {
            size_t other = number(offsets + (size_t)k * offset_bytes, offset_bytes);

            if (other > from && other < end)
                end = other;
            MUST(k == i || other != from);
        }
        MUST(from < end);
        seen += end - from;
        if (i)
            mp_buf_add_byte(out, ',');
        if (object) {
            struct mp_str name = name_of(metadata, (uint32_t)number(ids + i * id_bytes, id_bytes));

            if (i)
                MUST(mp_str_cmp(
                         name_of(metadata, (uint32_t)number(ids + (i - 1) * id_bytes, id_bytes)),
                         name) < 0);
            say_name(out, name);
        }
        say_value(out, metadata, mp_str_n(values + from, end - from));
    }
    MUST(seen == total);
    mp_buf_add_byte(out, object ? '}' : ']');
}

static void say_value(struct mp_buf *out, struct mp_str metadata, struct mp_str value)
{
    unsigned head = (unsigned char)value.data[0];

    MUST(value.size > 0);
    switch (head & 3) {
    case 0:
        say_primitive(out, value);
        return;
    case 1:
        MUST(value.size == 1 + (head >> 2));
        mp_buf_add_json(out, mp_str_n(value.data + 1, value.size - 1));
        return;
    default:
        say_nested(out, metadata, value);
    }
}

/* ---- members stored apart -------------------------------------------------------------------- */

static const struct mp_variant_field fields[] = {{MP_STR_INIT(""), {.id = MP_TYPE_VARCHAR}},
                                                 {MP_STR_INIT("a"), {.id = MP_TYPE_INT64}},
                                                 {MP_STR_INIT("b"), {.id = MP_TYPE_DOUBLE}},
                                                 {MP_STR_INIT("c"), {.id = MP_TYPE_BOOL}}};

static void say_part(struct mp_buf *out, struct mp_str metadata, uint32_t field,
                     const struct mp_variant_part *part)
{
    if (part->place == MP_VARIANT_VALUE)
        say_value(out, metadata, part->bytes);
    else if (fields[field].type.id == MP_TYPE_VARCHAR)
        mp_buf_add_json(out, part->bytes);
    else if (fields[field].type.id == MP_TYPE_INT64)
        mp_buf_printf(out, "%lld", (long long)part->i64);
    else if (fields[field].type.id == MP_TYPE_DOUBLE)
        say_double(out, part->f64);
    else
        mp_buf_add_c(out, part->truth ? "true" : "false");
}

/* The whole object, with the parts at the place of their names. The rest is taken member by member
 * out of the tree, whose value of it was compared before. */
static void check_apart(struct mp_variant *variant, struct mp_json *json, struct mp_str text)
{
    struct mp_buf whole = MP_BUF_INIT(SIZE_MAX), rest = MP_BUF_INIT(SIZE_MAX);
    struct mp_buf want = MP_BUF_INIT(SIZE_MAX), want_rest = MP_BUF_INIT(SIZE_MAX);
    const struct mp_json_node *nodes;
    struct mp_json_tree tree;
    struct mp_variant_row row;

    MUST(mp_json_tree(json, text, &tree));
    nodes = tree.nodes;
    mp_variant_set_shape(variant, &(struct mp_variant_shape){fields, 4});
    MUST(mp_variant_encode(variant, text, &row));
    MUST(row.object == (nodes[0].value.kind == MP_JSON_NESTED && nodes[0].value.nested_object));
    check_metadata(row.metadata);
    if (row.value.size)
        say_value(&rest, row.metadata, row.value);
    else
        mp_buf_add_c(&rest, "{}");
    for (uint32_t field = 0; row.object && field < 4; field++) {
        uint32_t found = 0; /* the last member of the name */

        for (uint32_t at = 1; at < tree.count; at = nodes[at].end)
            if (mp_str_eq(mp_json_key_name(json, nodes[at].value.key), fields[field].name))
                found = at;
        MUST((found == 0) == (row.parts[field].place == MP_VARIANT_ABSENT));
        if (!found)
            continue;
        say_part(&whole, row.metadata, field, &row.parts[field]);
        say_tree(&want, json, nodes, found);
    }
    MUST(mp_str_eq(mp_buf_str(&whole), mp_buf_str(&want)));
    /* the rest is the tree without these members */
    say_tree(&want_rest, json, nodes, 0);
    for (uint32_t field = 0; row.object && field < 4; field++) {
        struct mp_buf named = MP_BUF_INIT(SIZE_MAX);

        if (row.parts[field].place != MP_VARIANT_ABSENT) {
            say_name(&named, fields[field].name);
            say_part(&named, row.metadata, field, &row.parts[field]);
            MUST(memmem(want_rest.data, want_rest.size, named.data, named.size));
            MUST(row.value.size || rest.size == 2);
            MUST(rest.size < want_rest.size);
        }
        mp_buf_fini(&named);
    }
    mp_buf_fini(&whole);
    mp_buf_fini(&rest);
    mp_buf_fini(&want);
    mp_buf_fini(&want_rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mp_buf want = MP_BUF_INIT(SIZE_MAX), got = MP_BUF_INIT(SIZE_MAX);
    struct mp_variant *variant = mp_variant_new();
    struct mp_json *json = mp_json_new();
    struct mp_str text = mp_str_n(data, size);
    struct mp_json_tree tree;
    struct mp_variant_row row;
    bool good = mp_json_tree(json, text, &tree);

    MUST(mp_variant_encode(variant, text, &row) == good); /* V1 */
    if (good) {
        check_metadata(row.metadata);
        say_value(&got, row.metadata, row.value);
        say_tree(&want, json, tree.nodes, 0);
        MUST(mp_str_eq(mp_buf_str(&got), mp_buf_str(&want)));
        check_apart(variant, json, text);
    }
    mp_buf_fini(&want);
    mp_buf_fini(&got);
    mp_json_free(json);
    mp_variant_free(variant);
    return 0;
}

#include "fuzz/replay.h"
