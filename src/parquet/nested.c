/* parquet/nested.c - a leaf inside groups, entry by entry -> its chunks.
 *
 * A page holds whole rows, so that an offset index can name its first one: it takes rows until
 * page_bytes of values or MP_PAGE_ROWS_MAX entries, and a row that is larger than that is a page by
 * itself. Values are PLAIN.
 *
 * After  Parquet "Nested Encoding"; "Data Pages" (V1); parquet.thrift: OffsetIndex.
 */
#include "parquet/parquet_priv.h"

#include "base/mem.h"

struct work {
    struct mp_parquet_encoder *encoder;
    const struct mp_entries *entries;
    struct mp_layout layout;
    const char **places; /* of each entry's value; NULL: it has none */
    uint32_t *levels;    /* scratch, of a page */
    size_t levels_capacity;
};

/* What goes into a page. */
struct extent {
    uint32_t rows, entries, values;
    size_t bytes; /* of the values as PLAIN has them, booleans a byte each */
};

static uint32_t row_at(const struct mp_parquet_rows *file, uint32_t i)
{
    return file->rows ? file->rows[i] : i;
}

static size_t value_bytes(const struct work *work, uint32_t entry)
{
    const char *place = work->places[entry];

    return !place ? 0 : work->layout.width ? work->layout.width : 4 + mp_text_bytes(place);
}

static struct extent extent_of_row(const struct work *work, uint32_t row)
{
    const uint32_t *starts = work->entries->starts;
    struct extent extent = {.rows = 1, .entries = starts[row + 1] - starts[row]};

    for (uint32_t i = starts[row]; i < starts[row + 1]; i++) {
        extent.values += work->places[i] != NULL;
        extent.bytes += value_bytes(work, i);
    }
    return extent;
}

/* The rows of the next page: from row `first` of the file on, at most `count`. */
static struct extent next_extent(const struct work *work, const struct mp_parquet_rows *file,
                                 uint32_t first, uint32_t count)
{
    struct extent page = extent_of_row(work, row_at(file, first));

    while (page.rows < count) {
        struct extent row = extent_of_row(work, row_at(file, first + page.rows));

        if (page.bytes + row.bytes > work->encoder->options.page_bytes ||
            (uint64_t)page.entries + row.entries > MP_PAGE_ROWS_MAX)
            break;
        page.rows++;
        page.entries += row.entries;
        page.values += row.values;
        page.bytes += row.bytes;
    }
    return page;
}

/* Puts levels of the rows, their length in front; gives where they end. */
static char *put_levels(struct work *work, const uint8_t *levels, uint32_t max,
                        const struct mp_parquet_rows *file, uint32_t first,
                        const struct extent *page, char *at)
{
    const uint32_t *starts = work->entries->starts;
    uint32_t count = 0, size;

    if (!max)
        return at;
    work->levels =
        mp_scratch_grow(work->levels, &work->levels_capacity, page->entries, sizeof(*work->levels));
    for (uint32_t i = 0; i < page->rows; i++) {
        uint32_t row = row_at(file, first + i);

        for (uint32_t entry = starts[row]; entry < starts[row + 1]; entry++)
            work->levels[count++] = levels[entry];
    }
    assert(count == page->entries);
    size = (uint32_t)mp_rle_indices(work->levels, count, mp_rle_width(max + 1), (uint8_t *)at + 4);
    memcpy(at, &size, 4);
    return at + 4 + size;
}

/* Puts the values of the rows and looks for their bounds. */
static void put_values(const struct work *work, const struct mp_parquet_rows *file, uint32_t first,
                       const struct extent *page, char *at, struct mp_bounds *bounds)
{
    const uint32_t *starts = work->entries->starts;
    enum mp_order order = work->layout.order;
    const char *begin = at;

    for (uint32_t i = 0; i < page->rows; i++) {
        uint32_t row = row_at(file, first + i);

        for (uint32_t entry = starts[row]; entry < starts[row + 1]; entry++) {
            size_t bytes = value_bytes(work, entry);

            if (!bytes)
                continue;
            memcpy(at, work->places[entry], bytes);
            if (!work->layout.width && order != MP_ORDER_NONE)
                mp_bounds_add_text(bounds, mp_str_n(at + 4, bytes - 4));
            at += bytes;
        }
    }
    assert((size_t)(at - begin) == page->bytes);
    if (work->layout.width && order != MP_ORDER_NONE)
        mp_bounds_add_fixed(bounds, order, begin, page->values);
    mp_bounds_close(bounds, order);
}

static size_t levels_room(uint32_t entries, uint32_t max)
{
    return max ? 4 + mp_rle_indices_max(entries, mp_rle_width(max + 1)) : 0;
}

static enum mp_code put_page(struct work *work, const struct mp_parquet_rows *file, uint32_t first,
                             const struct extent *page, struct mp_err *err)
{
    struct mp_parquet_encoder *encoder = work->encoder;
    const struct mp_entries *entries = work->entries;
    struct mp_page_head head = {MP_PAGE_DATA, MP_ENCODING_PLAIN, page->entries};
    size_t bytes = page->bytes, room = levels_room(page->entries, entries->repetition_max) +
                                       levels_room(page->entries, entries->definition_max);
    struct mp_bounds bounds = {0};
    struct mp_page_record *record;
    char *at;

    if (room + bytes > INT32_MAX)
        return mp_err_set(err, MP_BAD_DATA, "a row of %zu bytes, at most %d fit in a page",
                          room + bytes, INT32_MAX);
    encoder->page.room =
        mp_scratch_grow(encoder->page.room, &encoder->page.capacity, room + bytes + 1, 1);
    at = put_levels(work, entries->repetitions, entries->repetition_max, file, first, page,
                    encoder->page.room);
    at = put_levels(work, entries->definitions, entries->definition_max, file, first, page, at);
    put_values(work, file, first, page, at, &bounds);
    if (work->layout.physical == MP_PHYSICAL_BOOLEAN)
        bytes = mp_plain_pack_bools(at, page->values);
    mp_extremes_add(&encoder->extremes, work->layout, &bounds);
    record = mp_chunk_record(encoder, page->rows, 0);
    record->entries = page->entries;
    record->nulls = page->entries - page->values;
    mp_chunk_record_bounds(record, work->layout, &bounds);
    return mp_chunk_page(encoder, &head,
                         mp_str_n(encoder->page.room, (size_t)(at - encoder->page.room) + bytes),
                         encoder->record_count == 1, err, &record->bytes);
}

static enum mp_code encode_group(struct work *work, const struct mp_parquet_rows *file,
                                 uint32_t first, uint32_t count, struct mp_err *err,
                                 struct mp_parquet_chunk **ret)
{
    struct mp_cursor from = mp_chunk_begin(work->encoder);
    uint32_t end = first + count;
    enum mp_code code = MP_OK;

    while (first < end && !code) {
        struct extent page = next_extent(work, file, first, end - first);

        code = put_page(work, file, first, &page, err);
        first += page.rows;
    }
    if (code)
        return code;
    *ret = mp_chunk_new(work->encoder, work->entries->column.type, work->layout, from, 0);
    assert((*ret)->rows == count);
    return MP_OK;
}

enum mp_code mp_nested_encode(struct mp_parquet_encoder *encoder, struct mp_segment_pool *pool,
                              const struct mp_entries *entries, const struct mp_parquet_cut *cut,
                              struct mp_err *err, struct mp_parquet_chunk **ret)
{
    const struct mp_parquet_rows *file = cut->files;
    struct work work = {.encoder = encoder, .entries = entries, .layout = entries->layout};
    uint32_t at = 0;
    enum mp_code code = MP_OK;

    assert(cut->file_count == 1 && file->count <= entries->rows);
    work.places = mp_column_places(&entries->column, work.layout.width);
    encoder->out = mp_packed_new(pool);
    for (uint32_t first = 0, count; first < file->count && !code; first += count) {
        count = file->count - first;
        if (count > cut->group_rows_max)
            count = cut->group_rows_max;
        code = encode_group(&work, file, first, count, err, &ret[at]);
        at += !code;
    }
    if (code)
        mp_err_add(err, "column %.*s", MP_STR_ARG(entries->column.name));
    while (code && at)
        mp_parquet_chunk_free(ret[--at]);
    mp_packed_drop(encoder->out);
    encoder->out = NULL;
    encoder->codec = encoder->options.codec;
    mp_free(work.places);
    mp_free(work.levels);
    mp_encoder_trim(encoder);
    return code;
}

/* ---- the leaves together --------------------------------------------------------------------- */

struct mp_parquet_chunk *mp_nested_chunk_new(uint32_t leaf_count)
{
    struct mp_parquet_chunk *chunk = mp_alloc(sizeof(*chunk));

    chunk->group = mp_alloc(sizeof(*chunk->group));
    mp_arena_init(&chunk->group->arena, 0);
    chunk->group->leaves = mp_alloc_array(leaf_count, sizeof(*chunk->group->leaves));
    chunk->group->count = leaf_count;
    return chunk;
}

void mp_nested_chunk_put(struct mp_parquet_chunk *chunk, uint32_t leaf, struct mp_parquet_chunk *of)
{
    assert(leaf < chunk->group->count && !chunk->group->leaves[leaf]);
    chunk->group->leaves[leaf] = of;
    chunk->rows = of->rows;
    chunk->bytes += of->bytes;
}
