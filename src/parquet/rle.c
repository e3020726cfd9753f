/* parquet/rle.c - the RLE / bit-packing hybrid, for definition levels and dictionary indices.
 *
 *     run of equal values   varint(length << 1), then the value in whole bytes
 *     packed values         varint(groups << 1 | 1), then groups of 8 values, `width` bits each,
 *                           the lowest bit first
 *
 * Only the last packed run of a page may end inside a group; it is filled up with zeros.
 *
 * After  Parquet "Encodings": "Run Length Encoding / Bit-Packing Hybrid (RLE = 3)".
 */
#include "parquet/parquet_priv.h"

static uint8_t *varint(uint8_t *at, uint32_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static uint8_t *equal_run(uint8_t *at, uint32_t length, uint32_t value, unsigned width)
{
    at = varint(at, length << 1);
    for (unsigned bit = 0; bit < width; bit += 8)
        *at++ = (uint8_t)(value >> bit);
    return at;
}

/* ---- levels: one bit each -------------------------------------------------------------------- */

enum word_kind { WORD_ZEROS, WORD_ONES, WORD_MIXED };

/* The kind of word `i`, of whose bits only those below count matter. */
static enum word_kind kind_of(const uint64_t *bits, uint32_t count, uint32_t i)
{
    uint32_t left = count - i * 64;
    uint64_t ones = left >= 64 ? UINT64_MAX : (UINT64_C(1) << left) - 1;

    return bits[i] == 0 ? WORD_ZEROS : bits[i] == ones ? WORD_ONES : WORD_MIXED;
}

static uint8_t *packed_bits(uint8_t *at, const uint64_t *words, uint32_t count)
{
    uint32_t groups = (count + 7) / 8;

    at = varint(at, groups << 1 | 1);
    memcpy(at, words, groups); /* little-endian, as the rest of the format */
    return at + groups;
}

size_t mp_rle_bits(const uint64_t *bits, uint32_t count, uint8_t *ret)
{
    uint32_t words = (count + 63) / 64;
    uint8_t *at = ret;

    for (uint32_t i = 0, end; i < words; i = end) {
        enum word_kind kind = kind_of(bits, count, i);
        uint32_t length;

        for (end = i + 1; end < words && kind_of(bits, count, end) == kind;)
            end++;
        length = (end == words ? count : end * 64) - i * 64;
        if (kind == WORD_MIXED)
            at = packed_bits(at, bits + i, length);
        else
            at = equal_run(at, length, kind == WORD_ONES, 1);
    }
    assert((size_t)(at - ret) <= mp_rle_bits_max(count));
    return (size_t)(at - ret);
}

size_t mp_rle_bits_max(uint32_t count)
{
    /* a packed word costs 8 bytes and at most one of header, a word that is a run at most 3 */
    return ((size_t)count + 63) / 64 * 9;
}

/* ---- indices --------------------------------------------------------------------------------- */

static uint8_t *pack_values(uint8_t *at, const uint32_t *values, uint32_t count, unsigned width)
{
    uint64_t word = 0;
    unsigned filled = 0;

    for (uint32_t i = 0; i < count; i++) {
        word |= (uint64_t)values[i] << filled;
        filled += width;
        if (filled >= 32) {
            uint32_t low = (uint32_t)word;

            memcpy(at, &low, 4);
            at += 4;
            word >>= 32;
            filled -= 32;
        }
    }
    for (; filled > 0; filled = filled > 8 ? filled - 8 : 0) {
        *at++ = (uint8_t)word;
        word >>= 8;
    }
    return at;
}

static uint8_t *packed_run(uint8_t *at, const uint32_t *values, uint32_t count, unsigned width)
{
    uint32_t groups = (count + 7) / 8;
    uint8_t *end;

    if (!count)
        return at;
    at = varint(at, groups << 1 | 1);
    end = pack_values(at, values, count, width);
    for (at += (size_t)groups * width; end < at;)
        *end++ = 0;
    return at;
}

size_t mp_rle_indices(const uint32_t *values, uint32_t count, unsigned width, uint8_t *ret)
{
    uint32_t run_min, packed_from = 0;
    uint8_t *at = ret;

    assert(width >= 1 && width <= 32);
    /* a run must be worth the headers it costs: whole groups of at least 8 bytes packed; where it
     * begins, the packed values in front of it are whole groups */
    run_min = 8 * ((8 + width - 1) / width);
    for (uint32_t i = 0; i < count;) {
        uint32_t end = i + 1;

        while (end < count && values[end] == values[i])
            end++;
        if (end - i >= run_min) {
            at = packed_run(at, values + packed_from, i - packed_from, width);
            at = equal_run(at, end - i, values[i], width);
            packed_from = i = end;
        } else {
            i = count - i < 8 ? count : i + 8;
        }
    }
    at = packed_run(at, values + packed_from, count - packed_from, width);
    assert((size_t)(at - ret) <= mp_rle_indices_max(count, width));
    return (size_t)(at - ret);
}

size_t mp_rle_indices_max(uint32_t count, unsigned width)
{
    /* all packed, or runs which are never larger than what they replace */
    return ((size_t)count + 7) / 8 * width + 16;
}

unsigned mp_rle_width(uint32_t count)
{
    unsigned width = 1;

    while (width < 32 && (UINT64_C(1) << width) < count)
        width++;
    return width;
}
