/* parquet/levels.c - definition levels of a leaf inside groups.
 *
 * After  Parquet "Nested Encoding"; "Encodings": RLE / Bit-Packing Hybrid.
 */
#include "parquet/parquet_priv.h"

size_t mp_levels_write(const struct mp_nest *nest, const uint64_t *bits, uint32_t from,
                       uint32_t count, uint32_t *scratch, uint8_t *ret)
{
    unsigned width = mp_rle_width(nest->groups + 2);

    assert(count <= MP_PAGE_ROWS_MAX);
    assert(4 + mp_rle_indices_max(count, width) <= MP_LEVELS_ROOM);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t around = nest->around[from + i], bit = bits[i / 64] >> (i & 63) & 1;

        assert(!bit || around >= nest->groups); /* a value is inside all its groups */
        scratch[i] = bit + (around < nest->groups ? around : nest->groups);
    }
    return mp_rle_indices(scratch, count, width, ret);
}
