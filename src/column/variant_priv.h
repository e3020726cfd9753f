/* column/variant_priv.h - the inner door: an encoder of VARIANTs, for the files that make it up.
 *
 *     variant.c         sizes, then bytes
 *     variant_names.c   the names of a text: their numbers, and the metadata
 *     variant_survey.c  which members are worth being stored apart
 */
#ifndef MP_COLUMN_VARIANT_PRIV_H
#define MP_COLUMN_VARIANT_PRIV_H

#include "base/buf.h"
#include "column/variant.h"
#include "json/tree.h"

/* The names of one text, or of all texts that show the same names in the same order. */
struct mp_variant_names {
    uint64_t hash;
    uint32_t count;      /* different names */
    uint32_t *keys;      /* the scanner's, by first appearance */
    uint32_t *ids;       /* of each, its place among the sorted names */
    struct mp_buf bytes; /* the metadata */
};

#define MP_VARIANT_NAMES_KEPT 128u /* a power of two */

/* What is known of a key of the scanner. */
struct mp_variant_key {
    uint32_t serial; /* of the last text that had it */
    uint32_t at;     /* its place among the names by first appearance */
    uint32_t object; /* serial of the last object that had it */
    uint32_t node;   /* its value there */
    uint32_t field;  /* of the shape, plus 1; 0: none */
};

struct mp_variant {
    struct mp_json *json;
    struct mp_variant_shape shape;
    struct mp_variant_part *parts;
    uint32_t *shape_keys;  /* [shape.count], by the scanner */
    bool shape_keys_known; /* the scanner has not forgotten its keys since */

    struct mp_variant_key *keys;
    uint32_t key_capacity;
    uint32_t serial;        /* of the text */
    uint32_t object_serial; /* of the object that is looked at */

    struct mp_variant_names kept[MP_VARIANT_NAMES_KEPT];
    struct mp_variant_names last; /* too many to be kept */
    size_t kept_bytes;
    uint32_t *order; /* names of the text, by first appearance */
    uint32_t order_capacity;

    uint32_t *sizes; /* of each node, encoded; DROPPED or APART instead in the outer object */
    uint32_t size_capacity;
    uint64_t *members; /* of one object: id, then offset */
    uint32_t member_capacity;
    struct mp_buf out;
};

/* Gives the names of the tree: the ids by which its values refer to them. NULL: too large. */
const struct mp_variant_names *mp_variant_names_of(struct mp_variant *variant,
                                                   const struct mp_json_tree *tree);
void mp_variant_names_fini(struct mp_variant *variant);
/* Reads a text; makes room for its keys and nodes. */
bool mp_variant_read(struct mp_variant *variant, struct mp_str json, struct mp_json_tree *ret);

static inline bool mp_variant_is_object(const struct mp_json_tree *tree)
{
    return tree->nodes[0].value.kind == MP_JSON_NESTED && tree->nodes[0].value.nested_object;
}

/* Writes the low bytes of a number, little-endian, and gives the end; up to 8 may be written. */
static inline char *mp_variant_put(char *at, uint64_t value, unsigned bytes)
{
    memcpy(at, &value, 8);
    return at + bytes;
}

/* Bytes that hold the number: 1 to 4. */
static inline unsigned mp_variant_width(uint32_t value)
{
    return value < 0x100 ? 1 : value < 0x10000 ? 2 : value < 0x1000000 ? 3 : 4;
}

#endif
