/* parquet/plain.c - values side by side in a page buffer, as PLAIN lays them out.
 *
 * Segments hold values in that form already, so a page is filled by copying stretches. Texts are
 * copied first and walked afterwards, where they are in the cache: each length leads to the next,
 * and a walk through cold memory would wait for every one of them.
 *
 * After  Parquet "Encodings": "Plain (PLAIN = 0)".
 */
#include "parquet/parquet_priv.h"

/* A gather fetches memory for rows ahead of it: the line with a text's length first, the lines
 * behind it when the length is there. */
enum { AHEAD_ROWS = 24, AHEAD_REST_ROWS = 4, AHEAD_LINES = 12, LINE_BYTES = 64 };

static void reserve(struct mp_page *page, size_t bytes)
{
    page->room = mp_scratch_grow(page->room, &page->capacity, MP_LEVELS_ROOM + bytes, 1);
}

/* Rows before the one that holds value number `count` (from 0); that value must be there. */
static uint32_t rows_before_value(const uint64_t *bits, uint32_t count)
{
    for (uint32_t i = 0;; i++) {
        uint32_t ones = (uint32_t)__builtin_popcountll(bits[i]);
        uint64_t word = bits[i];

        assert(i < MP_PAGE_WORDS);
        if (count >= ones) {
            count -= ones;
            continue;
        }
        for (; count; count--)
            word &= word - 1;
        return i * 64 + (uint32_t)__builtin_ctzll(word);
    }
}

static void cut_bits(uint64_t *bits, uint32_t count)
{
    if (count & 63)
        bits[count / 64] &= (UINT64_C(1) << (count & 63)) - 1;
}

/* Walks the texts that were copied behind the page's values; gives the bytes of the whole ones. */
static size_t walk_texts(struct mp_page *page, size_t size, uint32_t count_max)
{
    const char *begin = mp_page_values(page) + page->bytes;
    const char *at = begin, *end = begin + size;

    while (page->count < count_max && end - at >= 4) {
        struct mp_str text = {at + 4, mp_text_bytes(at)};

        if (text.size > (size_t)(end - text.data))
            break;
        mp_bounds_add_text(&page->bounds, text);
        page->count++;
        at = text.data + text.size;
    }
    page->bytes += (size_t)(at - begin);
    return (size_t)(at - begin);
}

static void copy_texts(struct mp_page *page, struct mp_source *source, size_t page_bytes,
                       uint32_t count_max)
{
    while (page->count < count_max) {
        struct mp_str stretch = mp_source_stretch(source);
        size_t first = 4 + (size_t)mp_text_bytes(stretch.data);
        size_t room = page_bytes > page->bytes ? page_bytes - page->bytes : 0;

        if (first > room && page->count)
            return;
        if (first > room) {
            room = first; /* a page of its own */
            reserve(page, room);
        }
        if (stretch.size > room)
            stretch.size = room;
        memcpy(mp_page_values(page) + page->bytes, stretch.data, stretch.size);
        mp_source_skip(source, walk_texts(page, stretch.size, count_max));
    }
}

static void fetch_ahead(const struct mp_source *source, uint32_t row)
{
    const char *text;

    if (row + AHEAD_ROWS < source->count)
        __builtin_prefetch(source->texts[mp_source_row(source, row + AHEAD_ROWS)]);
    if (row + AHEAD_REST_ROWS >= source->count)
        return;
    text = source->texts[mp_source_row(source, row + AHEAD_REST_ROWS)];
    if (!text)
        return;
    for (uint32_t line = 1, size = mp_text_bytes(text);
         line <= AHEAD_LINES && line * LINE_BYTES < size + LINE_BYTES; line++)
        __builtin_prefetch(text + (size_t)line * LINE_BYTES);
}

static void gather_texts(struct mp_page *page, struct mp_source *source, size_t page_bytes,
                         uint32_t rows_max)
{
    const char **texts = source->texts;

    for (uint32_t i = 0; i < rows_max; i++) {
        const char *text = texts[mp_source_row(source, source->next + i)];
        size_t size;

        fetch_ahead(source, source->next + i);
        if (!text)
            continue;
        size = 4 + (size_t)mp_text_bytes(text);
        if (page->bytes + size > page_bytes) {
            if (page->count)
                return;
            reserve(page, size);
        }
        memcpy(mp_page_values(page) + page->bytes, text, size);
        mp_bounds_add_text(&page->bounds,
                           mp_str_n(mp_page_values(page) + page->bytes + 4, size - 4));
        page->bytes += size;
        page->count++;
    }
}

static void copy_fixed(struct mp_page *page, struct mp_source *source, size_t page_bytes,
                       uint32_t count_max)
{
    uint32_t width = source->layout.width;
    size_t fit = page_bytes / width ? page_bytes / width : 1;

    count_max = count_max < fit ? count_max : (uint32_t)fit;
    while (page->count < count_max) {
        const char *values;
        uint32_t count = mp_source_fixed(source, count_max - page->count, &values);

        memcpy(mp_page_values(page) + page->bytes, values, (size_t)count * width);
        page->bytes += (size_t)count * width;
        page->count += count;
    }
    mp_bounds_add_fixed(&page->bounds, source->layout.order, mp_page_values(page), page->count);
}

/* Bytes of the chunk's next text; 0 where no value follows. */
static size_t next_text_bytes(struct mp_source *source, uint32_t rows_max, uint32_t count_max)
{
    if (!count_max)
        return 0;
    if (source->direct)
        return 4 + (size_t)mp_text_bytes(mp_source_stretch(source).data);
    for (uint32_t i = 0; i < rows_max; i++) {
        const char *text = source->texts[mp_source_row(source, source->next + i)];

        if (text)
            return 4 + (size_t)mp_text_bytes(text);
    }
    return 0;
}

bool mp_plain_fill(struct mp_page *page, struct mp_source *source, size_t page_bytes)
{
    uint32_t from = source->next;
    uint32_t left = source->count - from;
    uint32_t rows_max = left < MP_PAGE_ROWS_MAX ? left : MP_PAGE_ROWS_MAX;
    uint32_t count_max = mp_source_bits(source, from, rows_max, page->bits);

    assert(rows_max > 0);
    page->bytes = 0;
    page->count = 0;
    page->bounds = (struct mp_bounds){0};
    reserve(page, page_bytes < 16 ? 16 : page_bytes);
    if (source->layout.width) {
        copy_fixed(page, source, page_bytes, count_max);
    } else {
        page->bytes = next_text_bytes(source, rows_max, count_max);
        if (page->bytes > INT32_MAX - MP_LEVELS_ROOM)
            return false;
        page->bytes = 0;
        if (source->direct)
            copy_texts(page, source, page_bytes, count_max);
        else
            gather_texts(page, source, page_bytes, rows_max);
    }
    page->rows = page->count < count_max ? rows_before_value(page->bits, page->count) : rows_max;
    cut_bits(page->bits, page->rows);
    source->next = from + page->rows;
    mp_bounds_close(&page->bounds, source->layout.order);
    return true;
}

size_t mp_plain_pack_bools(char *values, uint32_t count)
{
    uint32_t bytes = (count + 7) / 8;

    for (uint32_t i = 0; i < bytes; i++) {
        unsigned packed = 0;

        for (uint32_t bit = 0; bit < 8 && i * 8 + bit < count; bit++)
            packed |= (unsigned)(values[i * 8 + bit] & 1) << bit;
        values[i] = (char)packed;
    }
    return bytes;
}
