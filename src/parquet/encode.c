/* parquet/encode.c - one column, for every file and row group: which encoding, where pages end.
 *
 * A chunk is tried with a dictionary first, unless that was turned off. dict.c says early when it
 * does not pay; then the source goes back to the chunk's first value and pages are made of plain
 * values. So a chunk has one encoding for all of its pages.
 *
 * The first plain page says whether the codec is worth its time: where it saves less than an
 * eighth, the whole chunk is written without one (ids in hexadecimal through Snappy: 10 % saved at
 * a third of the usual speed). Pages cannot be told apart, the codec is the chunk's.
 *
 * Segments go back to the pool when their values lie in a page (plain) or in the dictionary.
 */
#include "parquet/parquet_priv.h"

#include "base/mem.h"

#include <zlib.h>
#include <zstd.h>

enum {
    PAGE_BYTES = 1024 * 1024,
    PAGE_BYTES_ZSTD = 2 * PAGE_BYTES, /* its window: 6 % fewer bytes at 7 % less CPU time */
    DICTIONARY_BYTES_MAX = 1024 * 1024,
    JUDGE_BYTES_MIN = 65536, /* a smaller page says too little of those to come */
};

/* ---- the encoder ----------------------------------------------------------------------------- */

static void zstd_set(ZSTD_CCtx *context, ZSTD_cParameter parameter, int value)
{
    size_t result = ZSTD_CCtx_setParameter(context, parameter, value);

    assert(!ZSTD_isError(result));
}

/* Level 1 with a window as long as a page and a table twice as large as its own: on event columns
 * 5 % fewer bytes at the same CPU time, in pages of 2 MiB 7 %. There a table twice as large again
 * costs 2 % more time for 4 % fewer bytes, and a target length, as the negative levels have one,
 * saves 14 % for 45 % more. With pages of 1 MiB level 2 costs 5 % for nothing, level 3 40 %.
 * (bench/parquet_bench.c, zstd 1.5.4. zstd shrinks both for inputs that are small.) */
static void zstd_tune(ZSTD_CCtx *context, const struct mp_parquet_options *options)
{
    int window_log = 10;

    zstd_set(context, ZSTD_c_compressionLevel, options->level);
    if (options->level != 1)
        return;
    while (window_log < 22 && (UINT32_C(1) << window_log) < options->page_bytes)
        window_log++;
    zstd_set(context, ZSTD_c_windowLog, window_log);
    zstd_set(context, ZSTD_c_hashLog, 15);
}

static z_stream *gzip_new(void)
{
    z_stream *stream = mp_alloc(sizeof(*stream));

    if (deflateInit2(stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY))
        mp_out_of_memory(sizeof(*stream));
    return stream;
}

static void gzip_free(z_stream *stream)
{
    if (stream)
        deflateEnd(stream);
    mp_free(stream);
}

struct mp_parquet_encoder *mp_parquet_encoder_new(const struct mp_parquet_options *options)
{
    struct mp_parquet_encoder *encoder = mp_alloc(sizeof(*encoder));

    encoder->options = *options;
    encoder->codec = options->codec;
    if (!encoder->options.level)
        encoder->options.level = 1;
    if (!encoder->options.page_bytes)
        encoder->options.page_bytes =
            options->codec == MP_CODEC_ZSTD ? PAGE_BYTES_ZSTD : PAGE_BYTES;
    if (!encoder->options.dictionary_bytes_max)
        encoder->options.dictionary_bytes_max = DICTIONARY_BYTES_MAX;
    assert(encoder->options.page_bytes <= INT32_MAX - MP_LEVELS_ROOM);
    for (int which = 0; which < 2; which++)
        encoder->extremes.of[which].data = encoder->extreme_bytes[which];
    if (options->codec == MP_CODEC_ZSTD) {
        encoder->zstd = ZSTD_createCCtx();
        assert(encoder->zstd);
        zstd_tune(encoder->zstd, &encoder->options);
    }
    if (options->codec == MP_CODEC_GZIP)
        encoder->gzip = gzip_new();
    return encoder;
}

void mp_parquet_encoder_free(struct mp_parquet_encoder *encoder)
{
    if (!encoder)
        return;
    ZSTD_freeCCtx(encoder->zstd);
    gzip_free(encoder->gzip);
    mp_source_fini(&encoder->source);
    mp_dict_fini(&encoder->dict);
    mp_free(encoder->page.room);
    mp_free(encoder->body);
    mp_free(encoder->records);
    mp_free(encoder->levels);
    mp_variant_free(encoder->variant);
    mp_free(encoder);
}

/* A huge value's page leaves huge buffers, which are not kept. */
void mp_encoder_trim(struct mp_parquet_encoder *encoder)
{
    size_t keep = 4 * ((size_t)encoder->options.page_bytes + MP_LEVELS_ROOM);

    if (encoder->page.capacity > keep) {
        mp_free(encoder->page.room);
        encoder->page.room = NULL;
        encoder->page.capacity = 0;
    }
    if (encoder->body_capacity > keep) {
        mp_free(encoder->body);
        encoder->body = NULL;
        encoder->body_capacity = 0;
    }
}

/* ---- page records ---------------------------------------------------------------------------- */

struct mp_page_record *mp_chunk_record(struct mp_parquet_encoder *encoder, uint32_t rows,
                                       uint32_t values)
{
    struct mp_page_record *record;

    encoder->records = mp_scratch_grow(encoder->records, &encoder->records_capacity,
                                       encoder->record_count + 1, sizeof(*encoder->records));
    record = &encoder->records[encoder->record_count++];
    *record = (struct mp_page_record){.rows = rows, .nulls = rows - values, .entries = rows};
    return record;
}

void mp_chunk_record_bounds(struct mp_page_record *record, struct mp_layout layout,
                            const struct mp_bounds *bounds)
{
    struct mp_bound bound;

    record->nans = (uint32_t)bounds->nans;
    for (int which = 0; which < 2 && bounds->has; which++) {
        struct mp_str value = mp_bounds_value(bounds, layout, which);

        mp_bound_make(layout, which, value, value.size, MP_BOUND_PAGE_MAX, &bound);
        record->bounds_lost |= !bound.has;
        record->sizes[which] = (uint8_t)bound.size;
        memcpy(record->bounds[which], bound.data, bound.size);
    }
}

enum mp_code mp_chunk_page(struct mp_parquet_encoder *encoder, const struct mp_page_head *head,
                           struct mp_str body, bool judge, struct mp_err *err, uint32_t *ret_bytes)
{
    struct mp_packed_page page;
    enum mp_code code = mp_page_pack(encoder, head, body, err, &page);

    if (!code && judge && body.size >= JUDGE_BYTES_MIN &&
        page.body.size > body.size - body.size / 8) {
        encoder->codec = MP_CODEC_NONE;
        code = mp_page_pack(encoder, head, body, err, &page);
    }
    if (code)
        return code;
    mp_packed_add(encoder->out, page.head);
    mp_packed_add(encoder->out, page.body);
    encoder->raw_bytes += page.head.size + body.size;
    *ret_bytes = page.bytes;
    return MP_OK;
}

/* ---- plain pages ----------------------------------------------------------------------------- */

/* Writes the definition levels so that they end where the values begin; gives the whole body. */
static struct mp_str body_with_levels(struct mp_parquet_encoder *encoder, uint32_t from,
                                      uint32_t rows, size_t value_bytes)
{
    struct mp_page *page = &encoder->page;
    uint8_t levels[MP_LEVELS_ROOM - 4];
    uint32_t size;
    char *body;

    assert(mp_rle_bits_max(rows) <= sizeof(levels));
    if (encoder->nest.around)
        size = (uint32_t)mp_levels_write(&encoder->nest, page->bits, from, rows, encoder->levels,
                                         levels);
    else
        size = (uint32_t)mp_rle_bits(page->bits, rows, levels);
    body = mp_page_values(page) - 4 - size;
    memcpy(body, &size, 4);
    memcpy(body + 4, levels, size);
    return mp_str_n(body, 4 + size + value_bytes);
}

static enum mp_code plain_page(struct mp_parquet_encoder *encoder, struct mp_err *err)
{
    struct mp_source *source = &encoder->source;
    struct mp_page *page = &encoder->page;
    struct mp_page_record *record;
    struct mp_page_head head = {MP_PAGE_DATA, MP_ENCODING_PLAIN, 0};
    struct mp_str body;
    size_t bytes;

    if (!mp_plain_fill(page, source, encoder->options.page_bytes))
        return mp_err_set(err, MP_BAD_DATA, "a value of %zu bytes, at most %u fit in a page",
                          page->bytes - 4, INT32_MAX - MP_LEVELS_ROOM - 4);
    mp_source_release(source);
    mp_extremes_add(&encoder->extremes, source->layout, &page->bounds);
    record = mp_chunk_record(encoder, page->rows, page->count);
    mp_chunk_record_bounds(record, source->layout, &page->bounds);
    bytes = page->bytes;
    if (source->layout.order == MP_ORDER_BOOL)
        bytes = mp_plain_pack_bools(mp_page_values(page), page->count);
    body = body_with_levels(encoder, source->next - page->rows, page->rows, bytes);
    head.count = page->rows;
    return mp_chunk_page(encoder, &head, body, encoder->record_count == 1, err, &record->bytes);
}

static enum mp_code plain_pages(struct mp_parquet_encoder *encoder, struct mp_err *err)
{
    enum mp_code code = MP_OK;

    while (!code && encoder->source.next < encoder->source.count)
        code = plain_page(encoder, err);
    return code;
}

/* ---- dictionary pages ------------------------------------------------------------------------ */

/* Makes the dictionary and a record of each page to come. False: it does not pay. */
static bool dictionary_make(struct mp_parquet_encoder *encoder, uint32_t values)
{
    struct mp_source *source = &encoder->source;
    struct mp_dict *dict = &encoder->dict;
    struct mp_bounds bounds;
    uint32_t rows;

    mp_dict_begin(dict, values, encoder->options.dictionary_bytes_max);
    for (uint32_t from = 0; from < source->count; from += rows) {
        uint32_t left = source->count - from, count;

        rows = left < MP_PAGE_ROWS_MAX ? left : MP_PAGE_ROWS_MAX;
        count = mp_source_bits(source, from, rows, encoder->page.bits);
        if (!mp_dict_add(dict, source, count, &bounds))
            return false;
        mp_chunk_record_bounds(mp_chunk_record(encoder, rows, count), source->layout, &bounds);
        mp_extremes_add(&encoder->extremes, source->layout, &bounds);
    }
    assert(dict->value_count == values);
    return true;
}

static enum mp_code dictionary_page(struct mp_parquet_encoder *encoder, struct mp_err *err,
                                    uint32_t *ret_bytes)
{
    const struct mp_dict *dict = &encoder->dict;
    struct mp_page_head head = {MP_PAGE_DICTIONARY, MP_ENCODING_PLAIN, dict->count};

    return mp_chunk_page(encoder, &head, mp_str_n(dict->bytes, dict->size), false, err, ret_bytes);
}

static enum mp_code index_pages(struct mp_parquet_encoder *encoder, struct mp_err *err)
{
    const uint32_t *indices = encoder->dict.indices;
    unsigned width = mp_rle_width(encoder->dict.count);
    struct mp_page *page = &encoder->page;
    enum mp_code code = MP_OK;
    uint32_t from = 0;

    page->room =
        mp_scratch_grow(page->room, &page->capacity,
                        MP_LEVELS_ROOM + 1 + mp_rle_indices_max(MP_PAGE_ROWS_MAX, width), 1);
    for (uint32_t i = 0; !code && i < encoder->record_count; i++) {
        struct mp_page_record *record = &encoder->records[i];
        struct mp_page_head head = {MP_PAGE_DATA, MP_ENCODING_RLE_DICTIONARY, record->rows};
        uint32_t count = mp_source_bits(&encoder->source, from, record->rows, page->bits);
        uint8_t *values = (uint8_t *)mp_page_values(page);
        size_t bytes;

        assert(count == record->rows - record->nulls);
        values[0] = (uint8_t)width;
        bytes = 1 + mp_rle_indices(indices, count, width, values + 1);
        code = mp_chunk_page(encoder, &head, body_with_levels(encoder, from, record->rows, bytes),
                             false, err, &record->bytes);
        indices += count;
        from += record->rows;
    }
    return code;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static void extreme_copy(struct mp_extreme *to, const struct mp_extreme *from)
{
    to->kept = from->kept;
    to->size = from->size;
    to->data = mp_realloc(NULL, from->kept ? from->kept : 1);
    memcpy(to->data, from->data, from->kept);
}

struct mp_cursor mp_chunk_begin(struct mp_parquet_encoder *encoder)
{
    encoder->codec = encoder->options.codec;
    encoder->record_count = 0;
    encoder->raw_bytes = 0;
    encoder->extremes.has = false;
    return mp_packed_end(encoder->out);
}

struct mp_parquet_chunk *mp_chunk_new(struct mp_parquet_encoder *encoder, struct mp_type type,
                                      struct mp_layout layout, struct mp_cursor from,
                                      uint32_t dictionary_bytes)
{
    struct mp_parquet_chunk *chunk = mp_alloc(sizeof(*chunk));
    uint32_t count = encoder->record_count;

    chunk->type = type;
    chunk->layout = layout;
    chunk->codec = encoder->codec;
    chunk->packed = encoder->out;
    chunk->part_count = mp_packed_since(encoder->out, from, &chunk->parts);
    chunk->page_bytes = mp_alloc_array(count, sizeof(*chunk->page_bytes));
    chunk->page_rows = mp_alloc_array(count, sizeof(*chunk->page_rows));
    chunk->page_count = count;
    chunk->dictionary_bytes = dictionary_bytes;
    chunk->raw_bytes = encoder->raw_bytes;
    chunk->bytes = dictionary_bytes;
    for (uint32_t i = 0; i < count; i++) {
        const struct mp_page_record *record = &encoder->records[i];

        chunk->rows += record->rows;
        chunk->entries += record->entries;
        chunk->nulls += record->nulls;
        chunk->nans += record->nans;
        chunk->bytes += record->bytes;
        chunk->page_bytes[i] = record->bytes;
        chunk->page_rows[i] = record->rows;
    }
    chunk->extremes.has = encoder->extremes.has;
    for (int which = 0; which < 2 && chunk->extremes.has; which++)
        extreme_copy(&chunk->extremes.of[which], &encoder->extremes.of[which]);
    if (layout.order != MP_ORDER_NONE)
        mp_index_columns(layout, encoder->records, count, &chunk->column_index);
    return chunk;
}

static enum mp_code encode_chunk(struct mp_parquet_encoder *encoder, struct mp_err *err,
                                 struct mp_parquet_chunk **ret)
{
    struct mp_source *source = &encoder->source;
    struct mp_cursor from = mp_chunk_begin(encoder);
    uint32_t values, dictionary_bytes = 0;
    bool indexed = false;
    enum mp_code code = MP_OK;

    values = mp_source_count(source);
    if (values && !encoder->options.no_dictionary && source->layout.order != MP_ORDER_BOOL)
        indexed = dictionary_make(encoder, values);
    if (indexed) {
        mp_source_release(source);
        code = dictionary_page(encoder, err, &dictionary_bytes);
        if (!code)
            code = index_pages(encoder, err);
    } else {
        encoder->record_count = 0;
        encoder->extremes.has = false;
        mp_source_rewind(source);
        code = plain_pages(encoder, err);
    }
    if (code)
        return code;
    *ret = mp_chunk_new(encoder, source->column->type, source->layout, from, dictionary_bytes);
    assert((*ret)->rows == source->count);
    return MP_OK;
}

uint32_t mp_parquet_groups(const struct mp_parquet_cut *cut, uint32_t file)
{
    uint32_t rows = cut->files[file].count;

    assert(file < cut->file_count && cut->group_rows_max > 0);
    return rows / cut->group_rows_max + (rows % cut->group_rows_max != 0);
}

static enum mp_code encode_file(struct mp_parquet_encoder *encoder,
                                const struct mp_parquet_cut *cut, uint32_t file, struct mp_err *err,
                                struct mp_parquet_chunk **ret)
{
    const struct mp_parquet_rows *rows = &cut->files[file];
    enum mp_code code = MP_OK;

    for (uint32_t first = 0, count; !code && first < rows->count; first += count) {
        count = rows->count - first;
        if (count > cut->group_rows_max)
            count = cut->group_rows_max;
        mp_source_chunk(&encoder->source, rows, first, count);
        code = encode_chunk(encoder, err, ret++);
    }
    return code;
}

enum mp_code mp_parquet_encode(struct mp_parquet_encoder *encoder, struct mp_segment_pool *pool,
                               struct mp_column *column, const struct mp_parquet_cut *cut,
                               struct mp_err *err, struct mp_parquet_chunk **ret)
{
    enum mp_code code = MP_OK;
    uint32_t total = 0, at = 0;

    for (uint32_t file = 0; file < cut->file_count; file++)
        total += mp_parquet_groups(cut, file);
    memset(ret, 0, total * sizeof(*ret));
    encoder->out = mp_packed_new(pool);
    mp_source_open(&encoder->source, pool, column, cut);
    for (uint32_t file = 0; !code && file < cut->file_count; file++) {
        code = encode_file(encoder, cut, file, err, ret + at);
        at += mp_parquet_groups(cut, file);
    }
    if (code)
        mp_err_add(err, "column %.*s", MP_STR_ARG(column->name));
    for (uint32_t i = 0; code && i < total; i++) {
        mp_parquet_chunk_free(ret[i]);
        ret[i] = NULL;
    }
    mp_packed_drop(encoder->out);
    encoder->out = NULL;
    mp_source_close(&encoder->source);
    mp_encoder_trim(encoder);
    return code;
}

uint64_t mp_parquet_chunk_bytes(const struct mp_parquet_chunk *chunk)
{
    return chunk->bytes;
}

enum mp_code mp_parquet_chunk_write(struct mp_parquet_chunk *chunk,
                                    const struct mp_parquet_output *output, struct mp_err *err)
{
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; chunk->group && i < chunk->group->count && !code; i++)
        code = mp_parquet_chunk_write(chunk->group->leaves[i], output, err);
    for (uint32_t i = 0; i < chunk->part_count && !code; i++)
        code = output->write(output->context, chunk->parts[i], err);
    mp_packed_drop(chunk->packed);
    chunk->packed = NULL;
    chunk->part_count = 0;
    return code;
}

void mp_parquet_chunk_free(struct mp_parquet_chunk *chunk)
{
    if (!chunk)
        return;
    mp_parquet_group_free(chunk->group);
    mp_packed_drop(chunk->packed);
    mp_free(chunk->parts);
    mp_free(chunk->page_bytes);
    mp_free(chunk->page_rows);
    mp_free(chunk->extremes.of[0].data);
    mp_free(chunk->extremes.of[1].data);
    mp_buf_fini(&chunk->column_index);
    mp_free(chunk);
}
