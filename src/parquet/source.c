/* parquet/source.c - the values of a column in the order of a file.
 *
 * In place   one file whose rows stand as they are: a cursor over the segments, which go back to
 *            the pool as soon as it has passed them.
 * Gathered   anything else: one walk makes an index by row (texts: where each lies; fixed values:
 *            the values themselves, after which their segments go back at once), so that all files
 *            together cost one look-up a row, whatever their number.
 */
#include "parquet/parquet_priv.h"

#include "base/mem.h"

/* A walk over texts jumps from length to length and would wait for memory at each. It fetches every
 * line of what lies so far ahead instead, which is one stream to the memory. */
enum { AHEAD_BYTES = 1536, AHEAD_MAX = 4096, LINE_BYTES = 64 };

void *mp_scratch_grow(void *memory, size_t *capacity, size_t need, size_t element_bytes)
{
    size_t grown = *capacity + *capacity / 2;

    if (need <= *capacity)
        return memory;
    grown = grown > need ? grown : need;
    assert(grown <= SIZE_MAX / element_bytes);
    *capacity = grown;
    return mp_realloc(memory, grown * element_bytes);
}

/* Widths that the compiler knows cost no call. */
static inline void copy_fixed(char *to, const char *from, uint32_t width)
{
    switch (width) {
    case 4:
        memcpy(to, from, 4);
        return;
    case 8:
        memcpy(to, from, 8);
        return;
    default:
        memcpy(to, from, width);
    }
}

static inline void fetch_ahead(const char *text, uint32_t bytes)
{
    uint32_t end = bytes < AHEAD_MAX ? bytes : AHEAD_MAX;

    for (uint32_t at = 0; at < end; at += LINE_BYTES)
        __builtin_prefetch(text + AHEAD_BYTES + at);
}

/* ---- the index by row ------------------------------------------------------------------------ */

static void index_texts(struct mp_source *source)
{
    struct mp_column *column = source->column;
    struct mp_segment *segment = column->segments.first;
    uint32_t offset = 0;

    source->texts = mp_scratch_grow(source->texts, &source->texts_capacity, column->rows,
                                    sizeof(*source->texts));
    for (uint32_t row = 0; row < column->rows; row++) {
        const char *text;
        uint32_t bytes;

        if (!mp_column_valid(column, row)) {
            source->texts[row] = NULL;
            continue;
        }
        while (offset == segment->used) {
            segment = segment->next;
            offset = 0;
        }
        text = segment->data + offset;
        bytes = 4 + mp_text_bytes(text);
        fetch_ahead(text, bytes);
        source->texts[row] = text;
        offset += bytes;
    }
}

static void index_fixed(struct mp_source *source)
{
    struct mp_column *column = source->column;
    uint32_t width = source->layout.width;
    size_t need = (size_t)column->rows * width;
    uint32_t row = 0;

    source->fixed = mp_scratch_grow(source->fixed, &source->fixed_capacity, need, 1);
    for (struct mp_segment *s = column->segments.first; s; s = s->next) {
        if (!column->validity) {
            memcpy(source->fixed + (size_t)row * width, s->data, s->used);
            row += s->count;
            continue;
        }
        for (uint32_t i = 0; i < s->count; i++, row++) {
            while (!mp_column_valid(column, row))
                row++;
            copy_fixed(source->fixed + (size_t)row * width, s->data + (size_t)i * width, width);
        }
    }
    assert(row <= column->rows);
    mp_segment_put_list(source->pool, &column->segments);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void check_column(const struct mp_column *column, uint32_t width)
{
    uint64_t values = 0;

    for (const struct mp_segment *s = column->segments.first; s; s = s->next) {
        values += s->count;
        assert(s->used <= s->capacity);
        assert(!width || s->used == (uint64_t)s->count * width);
    }
    assert(values == column->values);
    assert(column->values <= column->rows);
    assert(column->validity || column->values == column->rows);
}

void mp_source_open(struct mp_source *source, struct mp_segment_pool *pool,
                    struct mp_column *column, const struct mp_parquet_cut *cut)
{
    source->pool = pool;
    source->column = column;
    source->layout = mp_layout_of(column->type);
    source->direct = cut->file_count == 1 && !cut->files[0].rows;
    source->cursor = (struct mp_cursor){column->segments.first, 0};
    check_column(column, source->layout.width);
    if (!source->direct && source->layout.width)
        index_fixed(source);
    else if (!source->direct)
        index_texts(source);
}

void mp_source_close(struct mp_source *source)
{
    mp_segment_put_list(source->pool, &source->column->segments);
    source->pool = NULL;
    source->column = NULL;
}

void mp_source_fini(struct mp_source *source)
{
    mp_free(source->fixed);
    mp_free(source->texts);
}

void mp_source_chunk(struct mp_source *source, const struct mp_parquet_rows *rows, uint32_t first,
                     uint32_t count)
{
    assert(count && (uint64_t)first + count <= rows->count);
    assert(rows->count <= source->column->rows);
    source->rows = rows->rows;
    source->first = first;
    source->count = count;
    source->next = 0;
    source->start = source->cursor;
}

void mp_source_rewind(struct mp_source *source)
{
    source->next = 0;
    source->cursor = source->start;
}

void mp_source_release(struct mp_source *source)
{
    struct mp_segment_list *list = &source->column->segments;
    struct mp_cursor *cursor = &source->cursor;

    if (!source->direct)
        return;
    while (cursor->segment && cursor->offset == cursor->segment->used)
        *cursor = (struct mp_cursor){cursor->segment->next, 0};
    while (list->first && list->first != cursor->segment) {
        struct mp_segment *next = list->first->next;

        mp_segment_put(source->pool, list->first);
        list->first = next;
    }
    if (!list->first)
        list->last = NULL;
}

/* ---- places ------------------------------------------------------------------------------- */

const char **mp_column_places(const struct mp_column *column, uint32_t width)
{
    const char **places = mp_alloc_array(column->rows, sizeof(*places));
    const struct mp_segment *segment = column->segments.first;
    uint32_t offset = 0;

    for (uint32_t row = 0; row < column->rows; row++) {
        if (!mp_column_valid(column, row))
            continue;
        while (offset == segment->used) {
            segment = segment->next;
            offset = 0;
        }
        places[row] = segment->data + offset;
        offset += width ? width : 4 + mp_text_bytes(places[row]);
    }
    return places;
}

/* ---- validity -------------------------------------------------------------------------------- */

static uint64_t low_ones(uint32_t count)
{
    return count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

static void bits_all(uint32_t count, uint64_t *ret)
{
    for (uint32_t i = 0; i < count; i += 64)
        ret[i / 64] = low_ones(count - i);
}

static void bits_shifted(const uint64_t *validity, uint32_t first, uint32_t count, uint64_t *ret)
{
    const uint64_t *from = validity + first / 64;
    unsigned shift = first & 63;

    for (uint32_t i = 0; i < count; i += 64, from++) {
        uint32_t left = count - i < 64 ? count - i : 64;
        uint64_t word = from[0] >> shift;

        if (shift && left > 64 - shift)
            word |= from[1] << (64 - shift);
        ret[i / 64] = word & low_ones(left);
    }
}

static void bits_gathered(const uint64_t *validity, const uint32_t *rows, uint32_t count,
                          uint64_t *ret)
{
    for (uint32_t i = 0; i < count; i += 64) {
        uint32_t left = count - i < 64 ? count - i : 64;
        uint64_t word = 0;

        for (uint32_t k = 0; k < left; k++)
            word |= (validity[rows[i + k] / 64] >> (rows[i + k] & 63) & 1) << k;
        ret[i / 64] = word;
    }
}

uint32_t mp_source_bits(const struct mp_source *source, uint32_t from, uint32_t count,
                        uint64_t *ret)
{
    const uint64_t *validity = source->column->validity;
    uint32_t ones = 0;

    assert(from + count <= source->count);
    if (!validity)
        bits_all(count, ret);
    else if (!source->rows)
        bits_shifted(validity, source->first + from, count, ret);
    else
        bits_gathered(validity, source->rows + source->first + from, count, ret);
    for (uint32_t i = 0; i < (count + 63) / 64; i++)
        ones += (uint32_t)__builtin_popcountll(ret[i]);
    return ones;
}

uint32_t mp_source_count(const struct mp_source *source)
{
    uint64_t bits[MP_PAGE_WORDS];
    uint32_t count = 0;

    for (uint32_t from = 0, rows; from < source->count; from += rows) {
        rows = source->count - from < MP_PAGE_ROWS_MAX ? source->count - from : MP_PAGE_ROWS_MAX;
        count += mp_source_bits(source, from, rows, bits);
    }
    return count;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Stands the cursor on a segment that has a value left. */
static void settle(struct mp_cursor *cursor)
{
    while (cursor->offset == cursor->segment->used) {
        cursor->segment = cursor->segment->next;
        cursor->offset = 0;
        assert(cursor->segment); /* the segments hold every value */
    }
}

/* The next row of the chunk that has a value. */
static uint32_t next_valid_row(struct mp_source *source)
{
    uint32_t row;

    do {
        assert(source->next < source->count);
        row = mp_source_row(source, source->next++);
    } while (!mp_column_valid(source->column, row));
    return row;
}

struct mp_str mp_source_stretch(struct mp_source *source)
{
    struct mp_cursor *cursor = &source->cursor;

    assert(source->direct);
    settle(cursor);
    return mp_str_n(cursor->segment->data + cursor->offset, cursor->segment->used - cursor->offset);
}

void mp_source_skip(struct mp_source *source, size_t bytes)
{
    assert(bytes <= source->cursor.segment->used - source->cursor.offset);
    source->cursor.offset += (uint32_t)bytes;
}

void mp_source_texts(struct mp_source *source, uint32_t count, const char **ret)
{
    struct mp_cursor *cursor = &source->cursor;

    if (!source->direct) {
        for (uint32_t i = 0; i < count; i++) {
            ret[i] = source->texts[next_valid_row(source)];
            __builtin_prefetch(ret[i]);
        }
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bytes;

        settle(cursor);
        ret[i] = cursor->segment->data + cursor->offset;
        bytes = 4 + mp_text_bytes(ret[i]);
        fetch_ahead(ret[i], bytes);
        cursor->offset += bytes;
    }
}

uint32_t mp_source_fixed(struct mp_source *source, uint32_t count, const char **ret)
{
    struct mp_cursor *cursor = &source->cursor;
    uint32_t width = source->layout.width;
    uint32_t left;

    assert(count && width);
    if (!source->direct) {
        count = count < MP_BATCH ? count : MP_BATCH;
        for (uint32_t i = 0; i < count; i++)
            copy_fixed(source->batch + (size_t)i * width,
                       source->fixed + (size_t)next_valid_row(source) * width, width);
        *ret = source->batch;
        return count;
    }
    settle(cursor);
    left = (cursor->segment->used - cursor->offset) / width;
    count = count < left ? count : left;
    *ret = cursor->segment->data + cursor->offset;
    cursor->offset += count * width;
    return count;
}
