/* parquet/thrift.c - Thrift's compact protocol, writing only.
 *
 * A field's header is one byte where its id follows the last one by 1 to 15: the difference in the
 * high half, the type in the low; otherwise a zero difference and the id as a zigzag varint. A
 * bool field is all header. Lists have their length in the high half while it is below 15.
 *
 * After  Thrift "Compact protocol encoding" (thrift-compact-protocol.md).
 */
#include "parquet/parquet_priv.h"

static void varint(struct mp_thrift *thrift, uint64_t value)
{
    char bytes[10];
    size_t size = 0;

    for (; value >= 0x80; value >>= 7)
        bytes[size++] = (char)(value | 0x80);
    bytes[size++] = (char)value;
    mp_buf_add(thrift->out, bytes, size);
}

static void zigzag(struct mp_thrift *thrift, int64_t value)
{
    varint(thrift, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

static void field(struct mp_thrift *thrift, int16_t id, enum mp_thrift_type type)
{
    int16_t *last;
    int step;

    assert(thrift->depth > 0);
    last = &thrift->last[thrift->depth - 1];
    step = id - *last;
    assert(step > 0); /* in rising order, each once */
    if (step <= 15) {
        mp_buf_add_byte(thrift->out, (char)(step << 4 | (int)type));
    } else {
        mp_buf_add_byte(thrift->out, (char)type);
        zigzag(thrift, id);
    }
    *last = id;
}

void mp_thrift_raw(struct mp_thrift *thrift, int16_t id, enum mp_thrift_type type,
                   struct mp_str raw)
{
    field(thrift, id, type);
    mp_buf_add_str(thrift->out, raw);
}

void mp_thrift_begin(struct mp_thrift *thrift)
{
    assert(thrift->depth < MP_THRIFT_DEPTH_MAX);
    thrift->last[thrift->depth++] = 0;
}

void mp_thrift_end(struct mp_thrift *thrift)
{
    assert(thrift->depth > 0);
    mp_buf_add_byte(thrift->out, 0);
    thrift->depth--;
}

void mp_thrift_struct(struct mp_thrift *thrift, int16_t id)
{
    field(thrift, id, MP_THRIFT_STRUCT);
    mp_thrift_begin(thrift);
}

void mp_thrift_list(struct mp_thrift *thrift, int16_t id, enum mp_thrift_type type, size_t count)
{
    field(thrift, id, MP_THRIFT_LIST);
    if (count < 15) {
        mp_buf_add_byte(thrift->out, (char)(count << 4 | (size_t)type));
    } else {
        mp_buf_add_byte(thrift->out, (char)(0xf0 | (int)type));
        varint(thrift, count);
    }
}

void mp_thrift_bool(struct mp_thrift *thrift, int16_t id, bool value)
{
    field(thrift, id, value ? MP_THRIFT_TRUE : MP_THRIFT_FALSE);
}

void mp_thrift_byte(struct mp_thrift *thrift, int16_t id, int8_t value)
{
    field(thrift, id, MP_THRIFT_BYTE);
    mp_buf_add_byte(thrift->out, (char)value);
}

void mp_thrift_i16(struct mp_thrift *thrift, int16_t id, int16_t value)
{
    field(thrift, id, MP_THRIFT_I16);
    zigzag(thrift, value);
}

void mp_thrift_i32(struct mp_thrift *thrift, int16_t id, int32_t value)
{
    field(thrift, id, MP_THRIFT_I32);
    zigzag(thrift, value);
}

void mp_thrift_i64(struct mp_thrift *thrift, int16_t id, int64_t value)
{
    field(thrift, id, MP_THRIFT_I64);
    zigzag(thrift, value);
}

void mp_thrift_binary(struct mp_thrift *thrift, int16_t id, struct mp_str value)
{
    field(thrift, id, MP_THRIFT_BINARY);
    mp_thrift_add_binary(thrift, value);
}

void mp_thrift_add_bool(struct mp_thrift *thrift, bool value)
{
    mp_buf_add_byte(thrift->out, value ? MP_THRIFT_TRUE : MP_THRIFT_FALSE);
}

void mp_thrift_add_i32(struct mp_thrift *thrift, int32_t value)
{
    zigzag(thrift, value);
}

void mp_thrift_add_i64(struct mp_thrift *thrift, int64_t value)
{
    zigzag(thrift, value);
}

void mp_thrift_add_binary(struct mp_thrift *thrift, struct mp_str value)
{
    varint(thrift, value.size);
    mp_buf_add_str(thrift->out, value);
}
