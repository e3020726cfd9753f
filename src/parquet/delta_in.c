/* parquet/delta_in.c - the stream of integers that the DELTA encodings are made of.
 *
 *     stream      varint(values of a block), varint(miniblocks of a block), varint(values),
 *                 zigzag(first value), blocks
 *     block       zigzag(least delta), one byte of bit width a miniblock, miniblocks
 *     miniblock   deltas less the least one, packed, the lowest bit first
 *
 * Miniblocks behind the last value have a width that means nothing and no bytes; the last one that
 * has values is filled up. Sums wrap around, in the type's own width: 64 bits here, of which an
 * INT32 takes the lower half.
 *
 * After  Parquet "Encodings": "Delta Encoding (DELTA_BINARY_PACKED = 5)".
 */
#include "parquet/reader_priv.h"

enum { BLOCK_VALUES_MAX = 1 << 24 };

static uint64_t unzigzag(uint64_t value)
{
    return value >> 1 ^ (0 - (value & 1));
}

static uint64_t mini_bytes(const struct mp_delta_in *delta, uint8_t width)
{
    return delta->mini_values / 8 * width; /* a multiple of 8 values: checked at begin */
}

/* Opens the next block: its least delta and its widths. */
static enum mp_code open_block(struct mp_delta_in *delta, struct mp_err *err)
{
    uint64_t least;

    if (!mp_bytes_varint(&delta->in, &least) || mp_bytes_left(&delta->in) < delta->minis)
        return MP_BAD_PAGE(err, "a block of deltas ends early");
    delta->min_delta = unzigzag(least);
    delta->widths = delta->in.at;
    delta->in.at += delta->minis;
    delta->mini = 0;
    return MP_OK;
}

static enum mp_code check_mini(const struct mp_delta_in *delta, uint32_t mini, struct mp_err *err)
{
    uint8_t width = delta->widths[mini];

    if (width > 64)
        return MP_BAD_PAGE(err, "deltas of %u bits", width);
    if (mini_bytes(delta, width) > mp_bytes_left(&delta->in))
        return MP_BAD_PAGE(err, "%llu deltas of %u bits in %zu bytes",
                           (unsigned long long)delta->mini_values, width,
                           mp_bytes_left(&delta->in));
    return MP_OK;
}

/* Walks over the blocks of a copy; what is left of its bytes lies behind the stream. */
static enum mp_code find_end(struct mp_delta_in delta, struct mp_err *err, struct mp_str *ret)
{
    uint64_t left = delta.total ? delta.total - 1 : 0;

    while (left) {
        enum mp_code code = open_block(&delta, err);

        for (uint32_t mini = 0; !code && left && mini < delta.minis; mini++) {
            code = check_mini(&delta, mini, err);
            if (code)
                break;
            delta.in.at += mini_bytes(&delta, delta.widths[mini]);
            left -= left < delta.mini_values ? left : delta.mini_values;
        }
        if (code)
            return code;
    }
    *ret = mp_str_n(delta.in.at, mp_bytes_left(&delta.in));
    return MP_OK;
}

enum mp_code mp_delta_in_begin(struct mp_delta_in *delta, struct mp_str bytes, struct mp_err *err,
                               struct mp_str *ret_rest)
{
    struct mp_bytes_in in = mp_bytes_of(bytes);
    uint64_t block, minis, total, first;

    if (!mp_bytes_varint(&in, &block) || !mp_bytes_varint(&in, &minis) ||
        !mp_bytes_varint(&in, &total) || !mp_bytes_varint(&in, &first))
        return MP_BAD_PAGE(err, "a stream of deltas of %zu bytes has no head", bytes.size);
    if (!block || block > BLOCK_VALUES_MAX || !minis || minis > block || block % minis ||
        block / minis % 8)
        return MP_BAD_PAGE(err, "blocks of %llu deltas in %llu miniblocks",
                           (unsigned long long)block, (unsigned long long)minis);
    *delta = (struct mp_delta_in){
        .in = in,
        .mini_values = block / minis,
        .minis = (uint32_t)minis,
        .total = total,
        .left = total,
        .value = unzigzag(first),
        .mini = (uint32_t)minis,
    };
    return ret_rest ? find_end(*delta, err, ret_rest) : MP_OK;
}

/* Stands on a miniblock that has a delta left. */
static enum mp_code settle(struct mp_delta_in *delta, struct mp_err *err)
{
    enum mp_code code;

    if (delta->mini < delta->minis) { /* it is done */
        delta->in.at += mini_bytes(delta, delta->widths[delta->mini]);
        delta->mini++;
    }
    if (delta->mini == delta->minis) {
        code = open_block(delta, err);
        if (code)
            return code;
    }
    code = check_mini(delta, delta->mini, err);
    delta->mini_left = delta->mini_values;
    delta->bit = 0;
    return code;
}

enum mp_code mp_delta_in_take(struct mp_delta_in *delta, uint32_t count, struct mp_err *err,
                              uint64_t *ret)
{
    if (count > delta->left)
        return MP_BAD_PAGE(err, "%llu deltas are fewer than the values of the page",
                           (unsigned long long)delta->total);
    for (uint32_t i = 0; i < count; i++) {
        unsigned width;

        ret[i] = delta->value;
        if (!--delta->left) /* no delta stands behind the last value */
            break;
        if (!delta->mini_left) {
            enum mp_code code = settle(delta, err);

            if (code)
                return code;
        }
        width = delta->widths[delta->mini];
        delta->value += delta->min_delta +
                        mp_bits_at(delta->in.at, mp_bytes_left(&delta->in), delta->bit, width);
        delta->bit += width;
        delta->mini_left--;
    }
    return MP_OK;
}
