/* parquet/page_in.c - a page of a chunk: its header read, its checksum looked at, its body
 * decompressed.
 *
 * A header's sizes are claims. Where the codec's own bytes tell how much comes out, the two must
 * agree before memory is taken; and never more is taken than the reader's bytes_max.
 *
 * After  Parquet "Data Pages", "Compression", "Checksumming"; parquet.thrift: PageHeader.
 */
#include "parquet/reader_priv.h"

#include "base/mem.h"
#include "parquet/thrift_in.h"

#include <lz4.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

/* ---- the header ------------------------------------------------------------------------------ */

struct raw_data { /* DataPageHeader */
    uint32_t has;
    int32_t count, encoding, definition_encoding, repetition_encoding;
};

struct raw_data_v2 { /* DataPageHeaderV2 */
    uint32_t has;
    int32_t count, null_count, row_count, encoding, definition_bytes, repetition_bytes;
    bool is_compressed;
};

struct raw_dictionary { /* DictionaryPageHeader */
    uint32_t has;
    int32_t count, encoding;
};

struct raw_page { /* PageHeader */
    uint32_t has;
    int32_t kind, raw_bytes, bytes, crc;
    struct raw_data data;
    struct raw_dictionary dictionary;
    struct raw_data_v2 data_v2;
};

#define I32(T, id, member)                                                                         \
    {                                                                                              \
        id, MP_THRIFT_TO_I32, offsetof(T, member), 0, 0, NULL, 0                                   \
    }
#define INSIDE(id, member, shape)                                                                  \
    {                                                                                              \
        id, MP_THRIFT_TO_STRUCT, offsetof(struct raw_page, member), 0, 0, shape, 0                 \
    }
#define BIT(id) (UINT32_C(1) << (id))
#define SHAPE(name, T, rules, required)                                                            \
    {                                                                                              \
        name, rules, sizeof(rules) / sizeof(*(rules)), required, sizeof(T), 1                      \
    }

static const struct mp_thrift_rule data_rules[] = {
    I32(struct raw_data, 1, count),
    I32(struct raw_data, 2, encoding),
    I32(struct raw_data, 3, definition_encoding),
    I32(struct raw_data, 4, repetition_encoding),
};
static const struct mp_thrift_shape data_shape =
    SHAPE("DataPageHeader", struct raw_data, data_rules, BIT(1) | BIT(2) | BIT(3) | BIT(4));

static const struct mp_thrift_rule data_v2_rules[] = {
    I32(struct raw_data_v2, 1, count),
    I32(struct raw_data_v2, 2, null_count),
    I32(struct raw_data_v2, 3, row_count),
    I32(struct raw_data_v2, 4, encoding),
    I32(struct raw_data_v2, 5, definition_bytes),
    I32(struct raw_data_v2, 6, repetition_bytes),
    {7, MP_THRIFT_TO_BOOL, offsetof(struct raw_data_v2, is_compressed), 0, 0, NULL, 0},
};
static const struct mp_thrift_shape data_v2_shape =
    SHAPE("DataPageHeaderV2", struct raw_data_v2, data_v2_rules,
          BIT(1) | BIT(2) | BIT(3) | BIT(4) | BIT(5) | BIT(6));

static const struct mp_thrift_rule dictionary_rules[] = {
    I32(struct raw_dictionary, 1, count),
    I32(struct raw_dictionary, 2, encoding),
};
static const struct mp_thrift_shape dictionary_shape =
    SHAPE("DictionaryPageHeader", struct raw_dictionary, dictionary_rules, BIT(1) | BIT(2));

static const struct mp_thrift_rule page_rules[] = {
    I32(struct raw_page, 1, kind),      I32(struct raw_page, 2, raw_bytes),
    I32(struct raw_page, 3, bytes),     I32(struct raw_page, 4, crc),
    INSIDE(5, data, &data_shape),       INSIDE(7, dictionary, &dictionary_shape),
    INSIDE(8, data_v2, &data_v2_shape),
};
static const struct mp_thrift_shape page_shape =
    SHAPE("PageHeader", struct raw_page, page_rules, BIT(1) | BIT(2) | BIT(3));

/* ---- codecs ---------------------------------------------------------------------------------- */

/* Each gives whether exactly `size` bytes came out of the packed ones. */
typedef bool unpack_function(struct mp_unpacker *unpacker, struct mp_str packed, char *ret,
                             size_t size);

static bool unpack_snappy(struct mp_unpacker *unpacker, struct mp_str packed, char *ret,
                          size_t size)
{
    size_t got = size;

    (void)unpacker;
    return snappy_uncompress(packed.data, packed.size, ret, &got) == SNAPPY_OK && got == size;
}

/* One or more gzip members, or a zlib stream, as zlib tells them apart. */
static bool unpack_gzip(struct mp_unpacker *unpacker, struct mp_str packed, char *ret, size_t size)
{
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)packed.data,
                       .avail_in = (uInt)packed.size,
                       .next_out = (unsigned char *)ret,
                       .avail_out = (uInt)size};
    int state;

    (void)unpacker;
    if (inflateInit2(&stream, 15 + 32) != Z_OK)
        mp_out_of_memory(sizeof(stream));
    do {
        state = inflate(&stream, Z_FINISH);
    } while (state == Z_STREAM_END && stream.avail_in && stream.avail_out &&
             inflateReset(&stream) == Z_OK);
    inflateEnd(&stream);
    return state == Z_STREAM_END && !stream.avail_out;
}

static bool unpack_zstd(struct mp_unpacker *unpacker, struct mp_str packed, char *ret, size_t size)
{
    if (!unpacker->zstd) {
        unpacker->zstd = ZSTD_createDCtx();
        if (!unpacker->zstd)
            mp_out_of_memory(1);
    }
    return ZSTD_decompressDCtx(unpacker->zstd, ret, size, packed.data, packed.size) == size;
}

static bool unpack_lz4(struct mp_unpacker *unpacker, struct mp_str packed, char *ret, size_t size)
{
    (void)unpacker;
    return (size_t)LZ4_decompress_safe(packed.data, ret, (int)packed.size, (int)size) == size;
}

static bool snappy_tells(struct mp_str packed, size_t size)
{
    size_t told;

    return snappy_uncompressed_length(packed.data, packed.size, &told) == SNAPPY_OK && told == size;
}

static bool gzip_tells(struct mp_str packed, size_t size)
{
    return size / 1100 <= packed.size; /* deflate makes at most 1032 bytes of one */
}

static bool zstd_tells(struct mp_str packed, size_t size)
{
    unsigned long long told = ZSTD_getFrameContentSize(packed.data, packed.size);

    return told == ZSTD_CONTENTSIZE_UNKNOWN || (told != ZSTD_CONTENTSIZE_ERROR && told <= size);
}

static bool lz4_tells(struct mp_str packed, size_t size)
{
    return size / 256 <= packed.size; /* LZ4 makes at most 255 bytes of one */
}

static const struct codec {
    const char *name;
    unpack_function *unpack;                          /* NULL: bytes stand as they are */
    bool (*tells)(struct mp_str packed, size_t size); /* whether so many can come out */
} codecs[] = {
    [0] = {"uncompressed", NULL, NULL},       [1] = {"snappy", unpack_snappy, snappy_tells},
    [2] = {"gzip", unpack_gzip, gzip_tells},  [6] = {"zstd", unpack_zstd, zstd_tells},
    [7] = {"lz4_raw", unpack_lz4, lz4_tells},
};

const char *mp_codec_in_name(int32_t codec)
{
    size_t count = sizeof(codecs) / sizeof(*codecs);

    return codec >= 0 && (size_t)codec < count ? codecs[codec].name : NULL;
}

void mp_unpacker_fini(struct mp_unpacker *unpacker)
{
    ZSTD_freeDCtx(unpacker->zstd);
    unpacker->zstd = NULL;
}

static enum mp_code unpack(struct mp_unpacker *unpacker, int32_t codec, struct mp_str packed,
                           size_t size, struct mp_room *room, struct mp_err *err,
                           struct mp_str *ret)
{
    const struct codec *by = &codecs[codec];

    if (!by->unpack) {
        if (packed.size != size)
            return MP_BAD_PAGE(err, "%zu bytes that are not compressed, %zu announced", packed.size,
                               size);
        *ret = packed;
        return MP_OK;
    }
    if (!size && !packed.size) {
        *ret = packed;
        return MP_OK;
    }
    if (!by->tells(packed, size))
        return MP_BAD_PAGE(err, "%zu bytes of %s are not the %zu announced", packed.size, by->name,
                           size);
    room->data = mp_scratch_grow(room->data, &room->capacity, size + 1, 1);
    if (!by->unpack(unpacker, packed, room->data, size))
        return MP_BAD_PAGE(err, "%s does not make %zu bytes of %zu", by->name, size, packed.size);
    *ret = mp_str_n(room->data, size);
    return MP_OK;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static enum mp_code check_head(const struct raw_page *page, size_t there, uint64_t bytes_max,
                               struct mp_err *err)
{
    static const uint8_t heads[] = {
        [MP_PAGE_DATA] = 5, [MP_PAGE_DICTIONARY] = 7, [MP_PAGE_DATA_V2] = 8};

    if (page->kind < 0 || page->kind > MP_PAGE_DATA_V2)
        return mp_err_set(err, MP_REFUSED, "pages of kind %d are not read", page->kind);
    if (heads[page->kind] && !mp_thrift_has(page->has, heads[page->kind]))
        return MP_BAD_PAGE(err, "a page of kind %d without the header of one", page->kind);
    if (page->bytes < 0 || page->raw_bytes < 0 || (size_t)page->bytes > there)
        return MP_BAD_PAGE(err, "%d bytes that become %d, %zu are left in the chunk", page->bytes,
                           page->raw_bytes, there);
    if ((uint64_t)page->raw_bytes > bytes_max)
        return mp_err_set(err, MP_FULL, "a page of %d bytes, at most %llu are read",
                          page->raw_bytes, (unsigned long long)bytes_max);
    if (page->data.count < 0 || page->data_v2.count < 0 || page->dictionary.count < 0)
        return MP_BAD_PAGE(err, "a page of less than no values");
    return MP_OK;
}

static enum mp_code check_crc(const struct raw_page *page, struct mp_str bytes, struct mp_err *err)
{
    uint32_t told = (uint32_t)page->crc, is;

    if (!mp_thrift_has(page->has, 4))
        return MP_OK;
    is = (uint32_t)crc32_z(0, (const unsigned char *)bytes.data, bytes.size);
    return is == told ? MP_OK
                      : MP_BAD_PAGE(err, "its checksum is %08x, its header says %08x", is, told);
}

/* Levels stand in front of the values and are never compressed. */
static enum mp_code take_v2(struct mp_unpacker *unpacker, const struct raw_page *page,
                            struct mp_str bytes, int32_t codec, struct mp_room *room,
                            struct mp_err *err, struct mp_page_in *ret)
{
    const struct raw_data_v2 *head = &page->data_v2;
    bool packed = !mp_thrift_has(head->has, 7) || head->is_compressed;
    uint64_t levels = (uint64_t)head->definition_bytes + (uint64_t)head->repetition_bytes;

    if (head->definition_bytes < 0 || head->repetition_bytes < 0 || levels > bytes.size ||
        levels > (uint64_t)page->raw_bytes)
        return MP_BAD_PAGE(err, "levels of %d and %d bytes in a page of %zu",
                           head->repetition_bytes, head->definition_bytes, bytes.size);
    ret->count = (uint32_t)head->count;
    ret->encoding = head->encoding;
    ret->definition_encoding = ret->repetition_encoding = MP_ENCODING_RLE;
    ret->repetitions = mp_str_n(bytes.data, (size_t)head->repetition_bytes);
    ret->definitions =
        mp_str_n(bytes.data + head->repetition_bytes, (size_t)head->definition_bytes);
    return unpack(unpacker, packed ? codec : 0,
                  mp_str_n(bytes.data + levels, bytes.size - (size_t)levels),
                  (size_t)page->raw_bytes - (size_t)levels, room, err, &ret->body);
}

enum mp_code mp_page_in_take(struct mp_unpacker *unpacker, struct mp_str *chunk, int32_t codec,
                             struct mp_room *room, struct mp_err *err, struct mp_page_in *ret)
{
    struct raw_page page = {0};
    struct mp_thrift_in in;
    struct mp_str bytes;
    enum mp_code code;

    mp_thrift_in_begin(&in, *chunk, err);
    mp_thrift_in_struct(&in, NULL, &page_shape, &page); /* no rule of it is a list */
    if (in.code)
        return in.code;
    code = check_head(&page, (size_t)(in.end - in.at), unpacker->bytes_max, err);
    if (code)
        return code;
    bytes = mp_str_n(in.at, (size_t)page.bytes);
    *chunk = mp_str_n(in.at + page.bytes, (size_t)(in.end - in.at) - bytes.size);
    code = check_crc(&page, bytes, err);
    if (code)
        return code;
    *ret = (struct mp_page_in){.kind = page.kind};
    if (page.kind == MP_PAGE_INDEX)
        return MP_OK;
    if (page.kind == MP_PAGE_DATA_V2)
        return take_v2(unpacker, &page, bytes, codec, room, err, ret);
    ret->count = (uint32_t)(page.kind == MP_PAGE_DATA ? page.data.count : page.dictionary.count);
    ret->encoding = page.kind == MP_PAGE_DATA ? page.data.encoding : page.dictionary.encoding;
    ret->definition_encoding = page.data.definition_encoding;
    ret->repetition_encoding = page.data.repetition_encoding;
    return unpack(unpacker, codec, bytes, (size_t)page.raw_bytes, room, err, &ret->body);
}
