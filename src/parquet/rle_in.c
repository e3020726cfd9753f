/* parquet/rle_in.c - the RLE / bit-packing hybrid read back; its form is told in rle.c.
 *
 * A packed run at the end of a page may lack the bytes that would only hold its filling: some old
 * writers leave them out. So values are counted by the bits that are there.
 */
#include "parquet/reader_priv.h"

bool mp_bytes_varint(struct mp_bytes_in *in, uint64_t *ret)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 70 && in->at < in->end; shift += 7) {
        uint8_t part = *in->at++;

        if (shift == 63 && part > 1)
            return false;
        value |= (uint64_t)(part & 0x7f) << shift;
        if (part < 0x80) {
            *ret = value;
            return true;
        }
    }
    return false;
}

uint64_t mp_bits_at(const uint8_t *bytes, size_t size, uint64_t bit, unsigned width)
{
    size_t at = (size_t)(bit / 8), there = size - at < 8 ? size - at : 8;
    unsigned shift = bit & 7;
    uint64_t value = 0;

    assert(width <= 64 && bit + width <= (uint64_t)size * 8);
    if (!width)
        return 0;
    if (there == 8)
        memcpy(&value, bytes + at, 8);
    else
        memcpy(&value, bytes + at, there);
    value >>= shift;
    if (shift + width > 64)
        value |= (uint64_t)bytes[at + 8] << (64 - shift);
    return width == 64 ? value : value & ((UINT64_C(1) << width) - 1);
}

void mp_rle_in_begin(struct mp_rle_in *rle, struct mp_str bytes, unsigned width)
{
    assert(width <= 32);
    *rle = (struct mp_rle_in){.in = mp_bytes_of(bytes), .width = width};
}

static bool begin_packed(struct mp_rle_in *rle, uint64_t groups)
{
    uint64_t there = mp_bytes_left(&rle->in), bytes;

    if (groups > UINT32_MAX / 8)
        return false;
    bytes = groups * rle->width;
    rle->left = (uint32_t)groups * 8;
    if (bytes > there) {
        rle->left = rle->width ? (uint32_t)(there * 8 / rle->width) : rle->left;
        bytes = there;
    }
    rle->packed = true;
    rle->bit = 0;
    rle->from = rle->in.at;
    rle->size = (size_t)bytes;
    rle->in.at += bytes;
    return rle->left > 0;
}

static bool begin_equal(struct mp_rle_in *rle, uint64_t length)
{
    unsigned bytes = (rle->width + 7) / 8;

    if (length > UINT32_MAX || !length || mp_bytes_left(&rle->in) < bytes)
        return false;
    rle->packed = false;
    rle->left = (uint32_t)length;
    rle->value = 0;
    memcpy(&rle->value, rle->in.at, bytes);
    rle->in.at += bytes;
    return rle->width == 32 || rle->value < UINT32_C(1) << rle->width;
}

static void take_packed(struct mp_rle_in *rle, uint32_t count, uint32_t *ret)
{
    uint64_t bit = rle->bit;

    for (uint32_t i = 0; i < count; i++, bit += rle->width)
        ret[i] = (uint32_t)mp_bits_at(rle->from, rle->size, bit, rle->width);
    rle->bit = bit;
}

bool mp_rle_in_take(struct mp_rle_in *rle, uint32_t count, uint32_t *ret)
{
    while (count) {
        uint64_t head;
        uint32_t some;

        if (!rle->left) {
            if (!mp_bytes_varint(&rle->in, &head) ||
                !(head & 1 ? begin_packed(rle, head >> 1) : begin_equal(rle, head >> 1)))
                return false;
        }
        some = count < rle->left ? count : rle->left;
        if (rle->packed)
            take_packed(rle, some, ret);
        else
            for (uint32_t i = 0; i < some; i++)
                ret[i] = rle->value;
        rle->left -= some;
        ret += some;
        count -= some;
    }
    return true;
}
