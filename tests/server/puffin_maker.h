/* tests/server/puffin_maker.h - a Puffin file of one deletion vector around any bytes as bitmap. */
#ifndef MP_TESTS_PUFFIN_MAKER_H
#define MP_TESTS_PUFFIN_MAKER_H

#include "base/buf.h"

#include <zlib.h>

static inline void add_big(struct mp_buf *file, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        mp_buf_add_byte(file, (char)(value >> shift));
}

/* members: more of the blob's JSON, each with a comma behind it. crc_bits: turned round. */
static inline void make_puffin(struct mp_buf *file, struct mp_str bitmap, const char *members,
                               uint32_t crc_bits)
{
    size_t body, json;
    uint32_t size;

    mp_buf_add_c(file, "PFA1");
    add_big(file, (uint32_t)bitmap.size + 4);
    body = file->size;
    mp_buf_add(file, "\xd1\xd3\x39\x64", 4);
    mp_buf_add_str(file, bitmap);
    add_big(file,
            (uint32_t)crc32_z(0, (unsigned char *)file->data + body, file->size - body) ^ crc_bits);
    mp_buf_add_c(file, "PFA1");
    json = file->size;
    mp_buf_printf(file,
                  "{\"blobs\": [{\"type\": \"deletion-vector-v1\", %s \"offset\": 4,"
                  " \"length\": %zu}]}",
                  members, bitmap.size + 12);
    size = (uint32_t)(file->size - json);
    mp_buf_add(file, &size, 4);
    mp_buf_add(file, "\0\0\0\0PFA1", 8);
}

#endif
