/* parquet/page.c - a page: its body through the codec, and its header.
 *
 * Data pages are V1: levels and values are compressed together, so values are copied behind their
 * levels first. V2 leaves the levels out and would save that copy, 2 % of the codec's time; V1 is
 * what every reader knows.
 *
 * After  Parquet "Data Pages", "Compression"; parquet.thrift: PageHeader.
 */
#include "parquet/parquet_priv.h"

#include "base/mem.h"

#include <lz4.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

int mp_codec_number(uint8_t codec)
{
    static const int numbers[] = {
        [MP_CODEC_NONE] = 0, [MP_CODEC_SNAPPY] = 1,  [MP_CODEC_GZIP] = 2,
        [MP_CODEC_ZSTD] = 6, [MP_CODEC_LZ4_RAW] = 7,
    };

    assert(codec < sizeof(numbers) / sizeof(*numbers));
    return numbers[codec];
}

/* Bytes that the codec may need for so many; 0: it takes no input of that size. */
static size_t packed_max(const struct mp_parquet_encoder *encoder, size_t size)
{
    switch (encoder->codec) {
    case MP_CODEC_SNAPPY:
        return snappy_max_compressed_length(size);
    case MP_CODEC_ZSTD:
        return ZSTD_compressBound(size);
    case MP_CODEC_LZ4_RAW:
        return size <= LZ4_MAX_INPUT_SIZE ? (size_t)LZ4_compressBound((int)size) : 0;
    case MP_CODEC_GZIP:
        return deflateBound(encoder->gzip, (uLong)size);
    default:
        return 0;
    }
}

/* One gzip member. The stream is new before and behind it, as deflateBound wants it. */
static size_t pack_gzip(z_stream *stream, struct mp_str body, char *ret, size_t size)
{
    int state;

    stream->next_in = (unsigned char *)(uintptr_t)body.data;
    stream->avail_in = (uInt)body.size;
    stream->next_out = (unsigned char *)ret;
    stream->avail_out = size < UINT32_MAX ? (uInt)size : UINT32_MAX;
    state = deflate(stream, Z_FINISH);
    size = (size_t)((char *)stream->next_out - ret);
    return deflateReset(stream) == Z_OK && state == Z_STREAM_END ? size : 0;
}

/* Gives the bytes of the packed body, 0 where the codec failed. */
static size_t pack(struct mp_parquet_encoder *encoder, struct mp_str body)
{
    size_t size = encoder->body_capacity;

    switch (encoder->codec) {
    case MP_CODEC_SNAPPY:
        if (snappy_compress(body.data, body.size, encoder->body, &size) != SNAPPY_OK)
            size = 0;
        return size;
    case MP_CODEC_ZSTD:
        size = ZSTD_compress2(encoder->zstd, encoder->body, size, body.data, body.size);
        return ZSTD_isError(size) ? 0 : size;
    case MP_CODEC_LZ4_RAW:
        size = size < INT32_MAX ? size : INT32_MAX;
        return (size_t)LZ4_compress_default(body.data, encoder->body, (int)body.size, (int)size);
    case MP_CODEC_GZIP:
        return pack_gzip(encoder->gzip, body, encoder->body, size);
    default:
        return 0;
    }
}

static void write_header(const struct mp_page_head *head, size_t raw, size_t packed,
                         struct mp_buf *ret)
{
    struct mp_thrift thrift = {.out = ret};
    bool data = head->kind == MP_PAGE_DATA;

    mp_thrift_begin(&thrift);
    mp_thrift_i32(&thrift, 1, head->kind);
    mp_thrift_i32(&thrift, 2, (int32_t)raw);
    mp_thrift_i32(&thrift, 3, (int32_t)packed);
    mp_thrift_struct(&thrift, data ? 5 : 7);
    mp_thrift_i32(&thrift, 1, (int32_t)head->count);
    mp_thrift_i32(&thrift, 2, head->encoding);
    if (data) {
        mp_thrift_i32(&thrift, 3, MP_ENCODING_RLE); /* definition levels */
        mp_thrift_i32(&thrift, 4, MP_ENCODING_RLE); /* repetition levels, if any */
    }
    mp_thrift_end(&thrift);
    mp_thrift_end(&thrift);
}

static enum mp_code too_large(size_t size, struct mp_err *err)
{
    return mp_err_set(err, MP_BAD_DATA, "a page of %zu bytes, at most 2147483647 fit", size);
}

enum mp_code mp_page_pack(struct mp_parquet_encoder *encoder, const struct mp_page_head *head,
                          struct mp_str body, struct mp_err *err, struct mp_packed_page *ret)
{
    struct mp_buf header = MP_BUF_INIT(MP_PAGE_HEAD_MAX);
    struct mp_str packed = body;
    enum mp_code code = MP_OK;
    size_t max, total;

    if (body.size > INT32_MAX)
        return too_large(body.size, err);
    if (encoder->codec != MP_CODEC_NONE) {
        max = packed_max(encoder, body.size);
        if (!max)
            return too_large(body.size, err);
        encoder->body = mp_scratch_grow(encoder->body, &encoder->body_capacity, max, 1);
        packed = mp_str_n(encoder->body, pack(encoder, body));
        if (!packed.size)
            return mp_err_set(err, MP_BAD_DATA, "the codec failed on %zu bytes", body.size);
    }
    write_header(head, body.size, packed.size, &header);
    total = header.size + packed.size;
    if (total > INT32_MAX) { /* the offset index counts the header too */
        code = too_large(total, err);
        goto out;
    }
    memcpy(encoder->head, header.data, header.size);
    *ret = (struct mp_packed_page){mp_str_n(encoder->head, header.size), packed, (uint32_t)total};
out:
    mp_buf_fini(&header);
    return code;
}
