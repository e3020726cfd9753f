/* parquet/index.c - the page index of a chunk.
 *
 * The ColumnIndex is made with the chunk, since it speaks of values only; the OffsetIndex is made
 * with the file, since it speaks of places in it. Where a page has a NaN, or values but no bound
 * that can be made (a text that nothing of MP_BOUND_PAGE_MAX bytes lies above), the chunk has no
 * ColumnIndex: there is no way to leave out one page.
 *
 * After  Parquet "Page Index"; parquet.thrift: ColumnIndex, OffsetIndex.
 */
#include "parquet/parquet_priv.h"

enum boundary_order { UNORDERED, ASCENDING, DESCENDING };

#define INDEX_BYTES_MAX INT32_MAX /* its length is an i32 */

static bool empty(const struct mp_page_record *page)
{
    return page->nulls == page->entries;
}

static struct mp_str bound_of(const struct mp_page_record *page, int which)
{
    return mp_str_n(page->bounds[which], page->sizes[which]);
}

/* Whether both bounds go one way, as they are written; null pages stand aside. */
static enum boundary_order order_of(struct mp_layout layout, const struct mp_page_record *pages,
                                    uint32_t count)
{
    const struct mp_page_record *last = NULL;
    bool up = true, down = true;

    for (uint32_t i = 0; i < count; i++) {
        if (empty(&pages[i]))
            continue;
        for (int which = 0; last && which < 2; which++) {
            int order = mp_order_compare(layout, bound_of(last, which), bound_of(&pages[i], which));

            up &= order <= 0;
            down &= order >= 0;
        }
        last = &pages[i];
    }
    return up ? ASCENDING : down ? DESCENDING : UNORDERED;
}

void mp_index_columns(struct mp_layout layout, const struct mp_page_record *pages, uint32_t count,
                      struct mp_buf *ret)
{
    struct mp_thrift thrift = {.out = ret};

    for (uint32_t i = 0; i < count; i++)
        if (pages[i].nans || pages[i].bounds_lost)
            return;
    *ret = MP_BUF_INIT(INDEX_BYTES_MAX);
    mp_thrift_begin(&thrift);
    mp_thrift_list(&thrift, 1, MP_THRIFT_TRUE, count);
    for (uint32_t i = 0; i < count; i++)
        mp_thrift_add_bool(&thrift, empty(&pages[i]));
    for (int which = 0; which < 2; which++) {
        mp_thrift_list(&thrift, (int16_t)(2 + which), MP_THRIFT_BINARY, count);
        for (uint32_t i = 0; i < count; i++)
            mp_thrift_add_binary(&thrift, bound_of(&pages[i], which));
    }
    mp_thrift_i32(&thrift, 4, order_of(layout, pages, count));
    mp_thrift_list(&thrift, 5, MP_THRIFT_I64, count);
    for (uint32_t i = 0; i < count; i++)
        mp_thrift_add_i64(&thrift, pages[i].nulls);
    mp_thrift_end(&thrift);
}

void mp_index_offsets(const struct mp_parquet_chunk *chunk, uint64_t offset, struct mp_buf *ret)
{
    struct mp_thrift thrift = {.out = ret};
    int64_t row = 0;

    mp_thrift_begin(&thrift);
    mp_thrift_list(&thrift, 1, MP_THRIFT_STRUCT, chunk->page_count);
    for (uint32_t i = 0; i < chunk->page_count; i++) {
        mp_thrift_begin(&thrift);
        mp_thrift_i64(&thrift, 1, (int64_t)offset);
        mp_thrift_i32(&thrift, 2, (int32_t)chunk->page_bytes[i]);
        mp_thrift_i64(&thrift, 3, row);
        mp_thrift_end(&thrift);
        offset += chunk->page_bytes[i];
        row += chunk->page_rows[i];
    }
    mp_thrift_end(&thrift);
}
