/* server/background/deletion_vector.c - see deletion_vector.h.
 *
 *     puffin    "PFA1", blobs, footer
 *     footer    "PFA1", JSON (which blobs, where), its size (i32, little-endian), flags (4 bytes),
 *               "PFA1"
 *     blob      size (u32, big-endian) of what follows without the checksum, D1 D3 39 64, bitmap,
 *               CRC-32 (u32, big-endian) of magic and bitmap
 *     bitmap    count (u64), then for each: the upper 32 bits (u32), a 32-bit Roaring bitmap
 *     roaring   cookie; bits that say which containers are runs; key and size of each container;
 *               where each lies; the containers, one behind the other
 *
 * Keys and runs must rise, as the format says: so the work is that of the bytes and the rows. Where
 * containers lie is not looked at: they stand in order.
 *
 * Not chosen: a Roaring library. All that is needed is to set bits of bytes that nobody vouches
 * for, and the libraries' readers want bitmaps that somebody does.
 */
#include "server/background/deletion_vector.h"

#include <jansson.h>
#include <zlib.h>

#define MAGIC      MP_STR("PFA1")
#define BLOB_TYPE  "deletion-vector-v1"
#define BLOB_MAGIC MP_STR("\xd1\xd3\x39\x64")

enum {
    FOOTER_TAIL_BYTES = 12,
    COMPRESSED_FOOTER = 1, /* bit 0 of the first byte of flags */
    COOKIE_NO_RUNS = 12346,
    COOKIE_RUNS = 12347,
    OFFSETS_FROM = 4, /* containers of a bitmap with runs: fewer have no offsets */
    ARRAY_MAX = 4096, /* values; larger containers are bitmaps */
    BITMAP_BYTES = 8192,
    CONTAINER_VALUES = 65536,
};

#define BAD(err, ...) mp_err_set(err, MP_BAD_DATA, __VA_ARGS__)

/* ---- bytes ----------------------------------------------------------------------------------- */

static bool take(struct mp_str *in, size_t size, struct mp_str *ret)
{
    if (in->size < size)
        return false;
    *ret = mp_str_n(in->data, size);
    *in = mp_str_n(in->data + size, in->size - size);
    return true;
}

static uint64_t little(struct mp_str bytes)
{
    uint64_t value = 0;

    for (size_t i = bytes.size; i-- > 0;)
        value = value << 8 | (unsigned char)bytes.data[i];
    return value;
}

static uint64_t big(struct mp_str bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < bytes.size; i++)
        value = value << 8 | (unsigned char)bytes.data[i];
    return value;
}

static bool take_number(struct mp_str *in, size_t size, uint64_t *ret)
{
    struct mp_str bytes;

    if (!take(in, size, &bytes))
        return false;
    *ret = little(bytes);
    return true;
}

/* ---- Roaring --------------------------------------------------------------------------------- */

struct bits {
    uint64_t *words;
    uint64_t rows, count;
    struct mp_err *err;
};

static enum mp_code ends_early(struct bits *bits)
{
    return BAD(bits->err, "a bitmap ends early");
}

/* Sets rows first to last. */
static enum mp_code set_rows(struct bits *bits, uint64_t first, uint64_t last)
{
    if (last >= bits->rows)
        return BAD(bits->err, "row %llu is deleted in a file of %llu rows",
                   (unsigned long long)last, (unsigned long long)bits->rows);
    for (uint64_t row = first; row <= last; row++)
        bits->words[row / 64] |= UINT64_C(1) << (row & 63);
    bits->count += last - first + 1;
    return MP_OK;
}

static enum mp_code set_runs(struct bits *bits, struct mp_str *in, uint64_t base)
{
    uint64_t runs, first, more, next = 0;
    enum mp_code code = MP_OK;

    if (!take_number(in, 2, &runs))
        return ends_early(bits);
    for (uint64_t i = 0; i < runs && !code; i++) {
        if (!take_number(in, 2, &first) || !take_number(in, 2, &more))
            return ends_early(bits);
        if (first < next || first + more >= CONTAINER_VALUES)
            return BAD(bits->err, "a run from %llu for %llu behind one to %llu",
                       (unsigned long long)first, (unsigned long long)more + 1,
                       (unsigned long long)next);
        code = set_rows(bits, base + first, base + first + more);
        next = first + more + 1;
    }
    return code;
}

static enum mp_code set_array(struct bits *bits, struct mp_str *in, uint64_t base, uint64_t count)
{
    uint64_t value, next = 0;
    enum mp_code code = MP_OK;

    for (uint64_t i = 0; i < count && !code; i++) {
        if (!take_number(in, 2, &value))
            return ends_early(bits);
        if (value < next)
            return BAD(bits->err, "value %llu of a container stands behind %llu",
                       (unsigned long long)value, (unsigned long long)next - 1);
        code = set_rows(bits, base + value, base + value);
        next = value + 1;
    }
    return code;
}

static enum mp_code set_bitmap(struct bits *bits, struct mp_str *in, uint64_t base, uint64_t count)
{
    uint64_t before = bits->count;
    struct mp_str bytes;
    enum mp_code code = MP_OK;

    if (!take(in, BITMAP_BYTES, &bytes))
        return ends_early(bits);
    for (uint64_t i = 0; i < CONTAINER_VALUES && !code; i++)
        if (bytes.data[i / 8] >> (i & 7) & 1)
            code = set_rows(bits, base + i, base + i);
    if (!code && bits->count - before != count)
        return BAD(bits->err, "a container of %llu values announces %llu",
                   (unsigned long long)(bits->count - before), (unsigned long long)count);
    return code;
}

/* One 32-bit bitmap whose values begin at `base`. */
static enum mp_code set_roaring(struct bits *bits, struct mp_str *in, uint64_t base)
{
    struct mp_str runs = {NULL, 0}, heads, offsets;
    uint64_t cookie, count, last = 0;
    enum mp_code code = MP_OK;

    if (!take_number(in, 4, &cookie))
        return ends_early(bits);
    if ((cookie & 0xffff) == COOKIE_RUNS) {
        count = (cookie >> 16) + 1;
        if (!take(in, (size_t)(count + 7) / 8, &runs))
            return ends_early(bits);
    } else if (cookie != COOKIE_NO_RUNS) {
        return BAD(bits->err, "a bitmap with the cookie %llu", (unsigned long long)cookie);
    } else if (!take_number(in, 4, &count) || count > CONTAINER_VALUES) {
        return ends_early(bits);
    }
    if (!take(in, (size_t)count * 4, &heads) ||
        ((!runs.size || count >= OFFSETS_FROM) && !take(in, (size_t)count * 4, &offsets)))
        return ends_early(bits);
    for (uint64_t i = 0; i < count && !code; i++) {
        uint64_t key = little(mp_str_n(heads.data + i * 4, 2));
        uint64_t values = little(mp_str_n(heads.data + i * 4 + 2, 2)) + 1;
        uint64_t from = base + key * CONTAINER_VALUES;

        if (i && key <= last)
            return BAD(bits->err, "container %llu stands behind %llu", (unsigned long long)key,
                       (unsigned long long)last);
        if (runs.size && runs.data[i / 8] >> (i & 7) & 1)
            code = set_runs(bits, in, from);
        else if (values <= ARRAY_MAX)
            code = set_array(bits, in, from, values);
        else
            code = set_bitmap(bits, in, from, values);
        last = key;
    }
    return code;
}

static enum mp_code set_roaring64(struct bits *bits, struct mp_str in)
{
    uint64_t count, key, last = 0;
    enum mp_code code = MP_OK;

    if (!take_number(&in, 8, &count))
        return ends_early(bits);
    for (uint64_t i = 0; i < count && !code; i++) {
        if (!take_number(&in, 4, &key))
            return ends_early(bits);
        if (i && key <= last)
            return BAD(bits->err, "bitmap %llu stands behind %llu", (unsigned long long)key,
                       (unsigned long long)last);
        code = set_roaring(bits, &in, key << 32);
        last = key;
    }
    if (!code && in.size)
        return BAD(bits->err, "%zu bytes behind the last bitmap", in.size);
    return code;
}

/* ---- the blob -------------------------------------------------------------------------------- */

static enum mp_code read_blob(struct mp_str blob, struct bits *bits)
{
    struct mp_str body;
    uint64_t size, crc;
    uint32_t is;

    if (blob.size < 4 + BLOB_MAGIC.size + 4)
        return BAD(bits->err, "a deletion vector of %zu bytes", blob.size);
    size = big(mp_str_n(blob.data, 4));
    if (size != blob.size - 8)
        return BAD(bits->err, "a deletion vector of %zu bytes says it has %llu", blob.size - 8,
                   (unsigned long long)size);
    body = mp_str_n(blob.data + 4, (size_t)size);
    crc = big(mp_str_n(body.data + body.size, 4));
    if (memcmp(body.data, BLOB_MAGIC.data, BLOB_MAGIC.size) != 0)
        return BAD(bits->err, "a deletion vector without its magic");
    is = (uint32_t)crc32_z(0, (const unsigned char *)body.data, body.size);
    if (is != crc)
        return BAD(bits->err, "the deletion vector's checksum is %08x, it says %08llx", is,
                   (unsigned long long)crc);
    return set_roaring64(bits, mp_str_n(body.data + BLOB_MAGIC.size, body.size - BLOB_MAGIC.size));
}

/* ---- the file -------------------------------------------------------------------------------- */

static enum mp_code read_footer(struct mp_str puffin, struct mp_err *err, json_t **ret)
{
    struct mp_str tail, payload;
    uint64_t size;

    if (puffin.size < 2 * MAGIC.size + FOOTER_TAIL_BYTES ||
        memcmp(puffin.data, MAGIC.data, MAGIC.size) != 0)
        return BAD(err, "%zu bytes are no Puffin file", puffin.size);
    tail = mp_str_n(puffin.data + puffin.size - FOOTER_TAIL_BYTES, FOOTER_TAIL_BYTES);
    size = little(mp_str_n(tail.data, 4));
    if (memcmp(tail.data + 8, MAGIC.data, MAGIC.size) != 0 ||
        size > puffin.size - FOOTER_TAIL_BYTES - 2 * MAGIC.size ||
        memcmp(tail.data - size - MAGIC.size, MAGIC.data, MAGIC.size) != 0)
        return BAD(err, "%zu bytes do not end in the footer of a Puffin file", puffin.size);
    if (tail.data[4] & COMPRESSED_FOOTER)
        return mp_err_set(err, MP_REFUSED, "the footer of a Puffin file is compressed");
    payload = mp_str_n(tail.data - size, (size_t)size);
    *ret = json_loadb(payload.data, payload.size, JSON_REJECT_DUPLICATES, NULL);
    return *ret ? MP_OK : BAD(err, "the footer of a Puffin file is no JSON");
}

/* Whether the blob is a vector for the file; *ret_named: it says for which file it is. */
static bool is_for(const json_t *blob, struct mp_str path, bool *ret_named)
{
    const char *type = json_string_value(json_object_get(blob, "type"));
    const json_t *named =
        json_object_get(json_object_get(blob, "properties"), "referenced-data-file");

    *ret_named = json_is_string(named);
    if (!type || strcmp(type, BLOB_TYPE) != 0)
        return false;
    return !*ret_named ||
           mp_str_eq(mp_str_n(json_string_value(named), json_string_length(named)), path);
}

/* The one blob for the data file. */
static enum mp_code find_blob(const json_t *footer, struct mp_str path, struct mp_err *err,
                              const json_t **ret)
{
    const json_t *blobs = json_object_get(footer, "blobs"), *blob;
    size_t i, count = json_array_size(blobs);
    bool named;

    *ret = NULL;
    json_array_foreach(blobs, i, blob)
    {
        if (!is_for(blob, path, &named) || (!named && count > 1))
            continue;
        if (*ret)
            return BAD(err, "a Puffin file has two vectors for its data file");
        *ret = blob;
    }
    if (!*ret)
        return BAD(err, "a Puffin file of %zu blobs has no vector for its data file", count);
    if (json_object_get(*ret, "compression-codec"))
        return mp_err_set(err, MP_REFUSED, "a deletion vector is compressed");
    return MP_OK;
}

enum mp_code mp_deletion_vector_read(struct mp_arena *arena, struct mp_str puffin,
                                     struct mp_str data_file_path, uint64_t rows,
                                     struct mp_err *err, struct mp_deletion_vector *ret)
{
    struct bits bits = {.rows = rows, .err = err};
    const json_t *blob = NULL;
    json_t *footer = NULL;
    json_int_t offset, length;
    enum mp_code code = read_footer(puffin, err, &footer);

    if (!code)
        code = find_blob(footer, data_file_path, err, &blob);
    if (code)
        goto out;
    offset = json_integer_value(json_object_get(blob, "offset"));
    length = json_integer_value(json_object_get(blob, "length"));
    if (offset < (json_int_t)MAGIC.size || length < 0 || (uint64_t)offset > puffin.size ||
        (uint64_t)length > puffin.size - (uint64_t)offset) {
        code = BAD(err, "a vector of %lld bytes at %lld in a Puffin file of %zu", (long long)length,
                   (long long)offset, puffin.size);
        goto out;
    }
    bits.words = mp_arena_take(arena, (size_t)(rows / 64 + 1) * sizeof(*bits.words));
    code = read_blob(mp_str_n(puffin.data + offset, (size_t)length), &bits);
    if (!code)
        *ret = (struct mp_deletion_vector){bits.words, bits.count};
out:
    json_decref(footer);
    if (code)
        mp_err_add(err, "deletion vector");
    return code;
}
