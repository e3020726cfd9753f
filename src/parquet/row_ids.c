/* parquet/row_ids.c - the column of row ids that compaction adds.
 *
 * Ids count up, so PLAIN values through the codec are enough: what every reader knows. Pages are
 * V1.
 */
#include "parquet/join_priv.h"

#include "base/mem.h"

enum { PAGE_ROWS = 65536, LEVELS_BYTES = 16 };

bool mp_row_ids_there(const struct mp_parquet_footer *footer,
                      const struct mp_parquet_join_options *options)
{
    const struct mp_parquet_node *last = &footer->nodes[footer->node_count - 1];

    return options->row_ids && footer->node_count > 1 && last->parent == 0 && last->has_field_id &&
           last->field_id == options->row_id_field_id && last->physical == MP_PHYSICAL_INT64 &&
           last->repetition != MP_PARQUET_REPEATED && last->logical.kind == MP_PARQUET_PLAIN;
}

/* Definition levels that are all 1, as one run: its length in 4 bytes, the run's count, the level.
 * (Parquet "Encodings", Run Length Encoding / Bit-Packing Hybrid) */
static size_t put_levels(char *at, uint32_t rows)
{
    uint32_t size = 0;
    char *run = at + 4;

    for (uint64_t count = (uint64_t)rows << 1; count || !size; count >>= 7)
        run[size++] = (char)(count >= 0x80 ? count | 0x80 : count);
    run[size++] = 1;
    memcpy(at, &size, 4);
    return 4 + size;
}

static size_t put_page(const struct mp_join *join, char *room, int64_t first, uint32_t rows)
{
    size_t size = join->optional_ids ? put_levels(room, rows) : 0;

    for (uint32_t i = 0; i < rows; i++, size += 8) {
        int64_t id = first + i;

        memcpy(room + size, &id, 8);
    }
    return size;
}

enum mp_code mp_row_ids_write(const struct mp_join *join, struct mp_parquet_encoder *encoder,
                              int64_t first, uint32_t rows, const struct mp_parquet_output *output,
                              struct mp_err *err, struct mp_row_ids *ret)
{
    char *room = mp_alloc(LEVELS_BYTES + (size_t)PAGE_ROWS * 8);
    struct mp_row_ids made = {.first = first};
    enum mp_code code = MP_OK;

    for (uint32_t row = 0; row < rows && !code; row += PAGE_ROWS) {
        uint32_t count = rows - row < PAGE_ROWS ? rows - row : PAGE_ROWS;
        struct mp_page_head head = {MP_PAGE_DATA, MP_ENCODING_PLAIN, count};
        size_t size = put_page(join, room, first + row, count);
        struct mp_packed_page page;

        code = mp_page_pack(encoder, &head, mp_str_n(room, size), err, &page);
        if (!code)
            code = output->write(output->context, page.head, err);
        if (!code)
            code = output->write(output->context, page.body, err);
        if (code)
            break;
        made.raw_bytes += page.head.size + size;
        made.bytes += page.bytes;
        made.page_count++;
    }
    if (!code)
        *ret = made;
    mp_free(room);
    return code;
}
