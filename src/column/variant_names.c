/* column/variant_names.c - the names of a text: their numbers, and the metadata.
 *
 * Events of one kind show the same names in the same order, so what was made of such an order is
 * kept, and a text that shows it again costs one comparison of numbers. Names are sorted, which
 * makes texts that differ only in order share their metadata, byte by byte.
 *
 * An object's metadata has the names of the whole shape, also of members that it lacks:
 * parquet-java puts objects together by looking all of them up.
 *
 * After  VariantEncoding.md, "Metadata encoding".
 */
#include "column/variant_priv.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

enum {
    VERSION = 1,
    SORTED = 1 << 4,  /* the names are sorted and there once */
    NAMES_MAX = 1024, /* longer orders are not kept */
    KEPT_BYTES_MAX = 8 << 20,
};

struct name {
    struct mp_str text;
    uint32_t at; /* by first appearance */
};

static int by_bytes(const void *a, const void *b)
{
    return mp_str_cmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

static void names_clear(struct mp_variant_names *names)
{
    mp_free(names->keys);
    mp_free(names->ids);
    mp_buf_fini(&names->bytes);
    *names = (struct mp_variant_names){0};
}

static size_t names_bytes(const struct mp_variant_names *names)
{
    return names->count * 2 * sizeof(uint32_t) + names->bytes.capacity;
}

void mp_variant_names_fini(struct mp_variant *variant)
{
    for (uint32_t i = 0; i < MP_VARIANT_NAMES_KEPT; i++)
        names_clear(&variant->kept[i]);
    names_clear(&variant->last);
    variant->kept_bytes = 0;
}

/* header, number of names, where each begins and the last ends, then their bytes */
static bool write_metadata(struct mp_buf *out, const struct name *names, uint32_t count)
{
    uint64_t bytes = 0, size;
    unsigned width;
    char *at;

    for (uint32_t i = 0; i < count; i++)
        bytes += names[i].text.size;
    if (bytes > MP_VARIANT_BYTES_MAX)
        return false;
    width = mp_variant_width(bytes > count ? (uint32_t)bytes : count);
    size = 1 + ((uint64_t)count + 2) * width + bytes;
    if (size > MP_VARIANT_BYTES_MAX)
        return false;
    *out = MP_BUF_INIT(SIZE_MAX);
    at = mp_buf_reserve(out, size + 8); /* put writes 8 bytes, whatever counts of them */
    *at++ = (char)(VERSION | SORTED | (width - 1) << 6);
    at = mp_variant_put(at, count, width);
    bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        at = mp_variant_put(at, bytes, width);
        bytes += names[i].text.size;
    }
    at = mp_variant_put(at, bytes, width);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(at, names[i].text.data, names[i].text.size);
        at += names[i].text.size;
    }
    out->size = (size_t)(at - out->data);
    assert(out->size == size);
    return true;
}

/* Makes what is kept of an order of names. */
static bool names_make(struct mp_variant *variant, uint32_t count, uint64_t hash,
                       struct mp_variant_names *ret)
{
    struct name *names = mp_alloc_array(count, sizeof(*names));
    bool made;

    for (uint32_t i = 0; i < count; i++)
        names[i] = (struct name){mp_json_key_name(variant->json, variant->order[i]), i};
    qsort(names, count, sizeof(*names), by_bytes);
    *ret = (struct mp_variant_names){.hash = hash, .count = count};
    made = write_metadata(&ret->bytes, names, count);
    if (made && count) {
        ret->keys = mp_alloc_array(count, sizeof(*ret->keys));
        ret->ids = mp_alloc_array(count, sizeof(*ret->ids));
        memcpy(ret->keys, variant->order, count * sizeof(*ret->keys));
        for (uint32_t i = 0; i < count; i++)
            ret->ids[names[i].at] = i;
    }
    mp_free(names);
    return made;
}

/* Adds a name to the text's, unless it is there. */
static void list_name(struct mp_variant *variant, uint32_t key, uint32_t *count, uint64_t *hash)
{
    if (variant->keys[key].serial == variant->serial)
        return;
    variant->keys[key].serial = variant->serial;
    variant->keys[key].at = *count;
    variant->order[(*count)++] = key;
    *hash = (*hash ^ key) * 0x9e3779b97f4a7c15u;
    *hash ^= *hash >> 29;
}

/* Lists the tree's names by first appearance, then the shape's; gives their number. */
static uint32_t list_names(struct mp_variant *variant, const struct mp_json_tree *tree,
                           uint64_t *ret_hash)
{
    uint64_t hash = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < tree->count; i++)
        if (tree->nodes[i].value.key != MP_JSON_NO_KEY)
            list_name(variant, tree->nodes[i].value.key, &count, &hash);
    for (uint32_t i = 0; i < variant->shape.count && mp_variant_is_object(tree); i++)
        list_name(variant, variant->shape_keys[i], &count, &hash);
    *ret_hash = hash;
    return count;
}

const struct mp_variant_names *mp_variant_names_of(struct mp_variant *variant,
                                                   const struct mp_json_tree *tree)
{
    struct mp_variant_names *names;
    uint64_t hash;
    uint32_t count = list_names(variant, tree, &hash);

    names = &variant->kept[hash & (MP_VARIANT_NAMES_KEPT - 1)];
    if (names->bytes.size && names->hash == hash && names->count == count &&
        (!count || memcmp(names->keys, variant->order, count * sizeof(*names->keys)) == 0))
        return names;
    if (count > NAMES_MAX)
        names = &variant->last;
    if (variant->kept_bytes > KEPT_BYTES_MAX)
        mp_variant_names_fini(variant);
    if (names != &variant->last)
        variant->kept_bytes -= names_bytes(names);
    names_clear(names);
    if (!names_make(variant, count, hash, names))
        return NULL;
    if (names != &variant->last)
        variant->kept_bytes += names_bytes(names);
    return names;
}
