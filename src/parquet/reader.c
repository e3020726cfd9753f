/* parquet/reader.c - see reader.h. The main line: page after page, levels, then values.
 *
 * Levels decide how many values a batch has; the decoder of the page's encoding gives them.
 */
#include "parquet/reader_priv.h"

#include "base/mem.h"

#define PAGE_BYTES_MAX    ((uint64_t)1 << 30)
#define BATCH_VALUE_BYTES (256u << 10) /* of wide fixed values, where more than one fits */

struct mp_parquet_reader {
    struct mp_unpacker unpacker;
    struct mp_decode decode;
    struct mp_room room; /* of the data page */
    /* the chunk */
    const struct mp_parquet_node *leaf;
    uint32_t group, page; /* number of the current page, dictionaries counted */
    struct mp_str chunk;  /* what is left of it */
    int32_t codec;
    int64_t values_left; /* of the chunk, behind the current page */
    bool at_start;       /* no entry of the chunk was taken */
    /* the page */
    const struct mp_decoder *decoder;
    uint32_t rows_left;
    struct mp_rle_in definitions_in, repetitions_in;
    /* the batch */
    uint64_t validity[MP_PARQUET_BATCH_ROWS / 64];
    uint8_t definitions[MP_PARQUET_BATCH_ROWS], repetitions[MP_PARQUET_BATCH_ROWS];
};

struct mp_parquet_reader *mp_parquet_reader_new(uint64_t page_bytes_max)
{
    struct mp_parquet_reader *reader = mp_alloc(sizeof(*reader));

    reader->unpacker.bytes_max = page_bytes_max ? page_bytes_max : PAGE_BYTES_MAX;
    reader->decode.bytes_max = reader->unpacker.bytes_max;
    return reader;
}

void mp_parquet_reader_free(struct mp_parquet_reader *reader)
{
    if (!reader)
        return;
    mp_unpacker_fini(&reader->unpacker);
    mp_decode_fini(&reader->decode);
    mp_free(reader->room.data);
    mp_free(reader);
}

uint32_t mp_parquet_leaf_width(const struct mp_parquet_node *leaf)
{
    static const uint8_t widths[] = {
        [MP_PHYSICAL_BOOLEAN] = 1,    [MP_PHYSICAL_INT32] = 4, [MP_PHYSICAL_INT64] = 8,
        [MP_PHYSICAL_INT96] = 12,     [MP_PHYSICAL_FLOAT] = 4, [MP_PHYSICAL_DOUBLE] = 8,
        [MP_PHYSICAL_BYTE_ARRAY] = 0,
    };

    return leaf->physical == MP_PHYSICAL_FIXED ? (uint32_t)leaf->type_length
                                               : widths[leaf->physical];
}

static enum mp_code check_codec(int32_t codec, struct mp_err *err)
{
    if (!mp_codec_in_name(codec))
        return mp_err_set(err, MP_REFUSED, "codec %d is not read", codec);
    return MP_OK;
}

static void add_column(struct mp_err *err, const struct mp_parquet_node *leaf)
{
    mp_err_add(err, "column \"%.*s\"", (int)(leaf->name.size < 100 ? leaf->name.size : 100),
               leaf->name.data);
}

enum mp_code mp_parquet_reader_check(const struct mp_parquet_footer *footer, uint32_t leaf,
                                     struct mp_err *err)
{
    const struct mp_parquet_node *node = &footer->nodes[footer->leaves[leaf]];

    for (uint32_t group = 0; group < footer->group_count; group++) {
        if (check_codec(footer->groups[group].chunks[leaf].codec, err) == MP_OK)
            continue;
        mp_err_add(err, "row group %u", group);
        add_column(err, node);
        return MP_REFUSED;
    }
    return MP_OK;
}

enum mp_code mp_parquet_reader_open(struct mp_parquet_reader *reader,
                                    const struct mp_parquet_footer *footer, uint32_t group,
                                    uint32_t leaf, struct mp_str chunk, struct mp_err *err)
{
    const struct mp_parquet_column_chunk *told = &footer->groups[group].chunks[leaf];
    enum mp_code code;

    assert(chunk.size == (uint64_t)told->bytes);
    reader->leaf = &footer->nodes[footer->leaves[leaf]];
    reader->group = group;
    reader->page = 0;
    reader->chunk = chunk;
    reader->codec = told->codec;
    reader->values_left = told->value_count;
    reader->rows_left = 0;
    reader->decode.physical = reader->leaf->physical;
    reader->decode.width = mp_parquet_leaf_width(reader->leaf);
    reader->decode.dictionary.has = false;
    reader->at_start = true;
    code = check_codec(told->codec, err);
    if (code)
        add_column(err, reader->leaf);
    return code;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static enum mp_code open_dictionary(struct mp_parquet_reader *reader, const struct mp_page_in *page,
                                    struct mp_err *err)
{
    struct mp_room *room = &reader->decode.dictionary.room, taken = reader->room;

    if (reader->decode.dictionary.has)
        return MP_BAD_PAGE(err, "a second dictionary");
    if (page->encoding != MP_ENCODING_PLAIN && page->encoding != 2)
        return mp_err_set(err, MP_REFUSED, "dictionaries of encoding %d are not read",
                          page->encoding);
    if (reader->decode.physical == MP_PHYSICAL_BOOLEAN)
        return MP_BAD_PAGE(err, "a dictionary of booleans");
    reader->room = *room; /* its body stays, the next page goes elsewhere */
    *room = taken;
    return mp_dictionary_begin(&reader->decode, page->body, page->count, err);
}

/* V1: takes levels from the front of the body, where their length stands in front of them. */
static enum mp_code split_levels(struct mp_page_in *page, int32_t encoding, struct mp_err *err,
                                 struct mp_str *ret)
{
    uint32_t size;

    if (encoding != MP_ENCODING_RLE)
        return mp_err_set(err, MP_REFUSED, "levels of encoding %d are not read", encoding);
    if (page->body.size < 4)
        return MP_BAD_PAGE(err, "%zu bytes hold no levels", page->body.size);
    memcpy(&size, page->body.data, 4);
    if (size > page->body.size - 4)
        return MP_BAD_PAGE(err, "levels of %u bytes in a page of %zu", size, page->body.size);
    *ret = mp_str_n(page->body.data + 4, size);
    page->body = mp_str_n(ret->data + size, page->body.size - 4 - size);
    return MP_OK;
}

static enum mp_code begin_levels(struct mp_parquet_reader *reader, struct mp_page_in *page,
                                 struct mp_err *err)
{
    const struct mp_parquet_node *leaf = reader->leaf;
    bool v1 = page->kind == MP_PAGE_DATA;
    enum mp_code code = MP_OK;

    if (v1 && leaf->repetition_max)
        code = split_levels(page, page->repetition_encoding, err, &page->repetitions);
    if (!code && v1 && leaf->definition_max)
        code = split_levels(page, page->definition_encoding, err, &page->definitions);
    if (code)
        return code;
    mp_rle_in_begin(&reader->repetitions_in, page->repetitions,
                    mp_rle_width(leaf->repetition_max + 1u));
    mp_rle_in_begin(&reader->definitions_in, page->definitions,
                    mp_rle_width(leaf->definition_max + 1u));
    return MP_OK;
}

static enum mp_code open_data(struct mp_parquet_reader *reader, struct mp_page_in *page,
                              struct mp_err *err)
{
    enum mp_code code;

    if (page->count > (uint64_t)reader->values_left)
        return MP_BAD_PAGE(err, "%u values, %lld are left in the chunk", page->count,
                           (long long)reader->values_left);
    reader->decoder = mp_decoder_of(page->encoding, reader->decode.physical);
    if (!reader->decoder)
        return mp_err_set(err, MP_REFUSED, "values of type %d in encoding %d are not read",
                          reader->decode.physical, page->encoding);
    code = begin_levels(reader, page, err);
    if (code)
        return code;
    code = reader->decoder->begin(&reader->decode, page->body, err);
    if (code) {
        mp_err_add(err, "%s", reader->decoder->name);
        return code;
    }
    reader->rows_left = page->count;
    reader->values_left -= page->count;
    return MP_OK;
}

static enum mp_code next_page(struct mp_parquet_reader *reader, struct mp_err *err)
{
    struct mp_page_in page;
    enum mp_code code;

    if (!reader->chunk.size)
        return MP_BAD_PAGE(err, "%lld values are missing at the end of the chunk",
                           (long long)reader->values_left);
    code = mp_page_in_take(&reader->unpacker, &reader->chunk, reader->codec, &reader->room, err,
                           &page);
    if (code)
        return code;
    switch (page.kind) {
    case MP_PAGE_DICTIONARY:
        return open_dictionary(reader, &page, err);
    case MP_PAGE_INDEX:
        return MP_OK;
    default:
        return open_data(reader, &page, err);
    }
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Rows of the next batch: all of them have room beside each other. */
static uint32_t batch_rows(const struct mp_parquet_reader *reader)
{
    uint32_t rows =
        reader->rows_left < MP_PARQUET_BATCH_ROWS ? reader->rows_left : MP_PARQUET_BATCH_ROWS;
    uint32_t width = reader->decode.width, fit;

    if (!width)
        return rows;
    fit = width < BATCH_VALUE_BYTES ? BATCH_VALUE_BYTES / width : 1;
    return rows < fit ? rows : fit;
}

static void all_valid(uint64_t *validity, uint32_t rows)
{
    memset(validity, 0, MP_PARQUET_BATCH_ROWS / 8);
    for (uint32_t i = 0; i < rows; i += 64)
        validity[i / 64] = rows - i >= 64 ? UINT64_MAX : (UINT64_C(1) << (rows - i)) - 1;
}

/* Makes bits of the definition levels; gives how many are set. */
static uint32_t make_validity(struct mp_parquet_reader *reader, uint32_t rows)
{
    uint32_t values = 0;

    memset(reader->validity, 0, sizeof(reader->validity));
    for (uint32_t i = 0; i < rows; i++) {
        bool has = reader->definitions[i] == reader->leaf->definition_max;

        reader->validity[i / 64] |= (uint64_t)has << (i & 63);
        values += has;
    }
    return values;
}

/* Takes levels of up to `max`. */
static enum mp_code take_levels(struct mp_parquet_reader *reader, struct mp_rle_in *in,
                                uint32_t rows, uint32_t max, struct mp_err *err, uint8_t *ret)
{
    const uint32_t *levels = reader->decode.numbers;

    if (!max) {
        memset(ret, 0, rows);
        return MP_OK;
    }
    if (!mp_rle_in_take(in, rows, reader->decode.numbers))
        return MP_BAD_PAGE(err, "the page's levels end %u rows early", reader->rows_left);
    for (uint32_t i = 0; i < rows; i++) {
        if (levels[i] > max)
            return MP_BAD_PAGE(err, "a level of %u, at most %u are there", levels[i], max);
        ret[i] = (uint8_t)levels[i];
    }
    return MP_OK;
}

static enum mp_code take_all_levels(struct mp_parquet_reader *reader, uint32_t rows,
                                    struct mp_err *err)
{
    const struct mp_parquet_node *leaf = reader->leaf;
    enum mp_code code = take_levels(reader, &reader->repetitions_in, rows, leaf->repetition_max,
                                    err, reader->repetitions);

    if (!code)
        code = take_levels(reader, &reader->definitions_in, rows, leaf->definition_max, err,
                           reader->definitions);
    if (!code && reader->at_start && reader->repetitions[0])
        code = MP_BAD_PAGE(err, "the chunk begins inside a row");
    reader->at_start = false;
    return code;
}

static enum mp_code take_batch(struct mp_parquet_reader *reader, struct mp_err *err,
                               struct mp_parquet_batch *ret)
{
    struct mp_decode *decode = &reader->decode;
    uint32_t rows = batch_rows(reader), values = rows;
    enum mp_code code = take_all_levels(reader, rows, err);

    if (code)
        return code;
    if (!reader->leaf->definition_max)
        all_valid(reader->validity, rows);
    else
        values = make_validity(reader, rows);
    decode->fixed = NULL;
    code = reader->decoder->take(decode, values, err);
    if (code) {
        mp_err_add(err, "%s", reader->decoder->name);
        return code;
    }
    reader->rows_left -= rows;
    *ret = (struct mp_parquet_batch){
        .rows = rows,
        .values = values,
        .validity = reader->validity,
        .definitions = reader->definitions,
        .repetitions = reader->repetitions,
        .fixed = decode->width ? decode->fixed : NULL,
        .texts = decode->width ? NULL : decode->texts,
    };
    return MP_OK;
}

enum mp_code mp_parquet_reader_next(struct mp_parquet_reader *reader, struct mp_err *err,
                                    struct mp_parquet_batch *ret)
{
    enum mp_code code = MP_OK;

    *ret = (struct mp_parquet_batch){0};
    while (!code && !reader->rows_left && reader->values_left) {
        code = next_page(reader, err);
        reader->page++;
    }
    if (!code && reader->rows_left)
        code = take_batch(reader, err, ret);
    if (code) {
        mp_err_add(err, "row group %u, page %u", reader->group,
                   reader->page ? reader->page - 1 : 0);
        add_column(err, reader->leaf);
    }
    return code;
}
