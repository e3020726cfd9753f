/* tests/fuzz/parquet_encode_fuzz.c - bytes -> columns -> files: no crash, nothing kept, and the
 * same bytes whether rows are read in place or gathered.
 *
 * With libFuzzer, from the top of the tree:
 *
 *     clang -O1 -g -std=gnu11 -D_GNU_SOURCE -DMP_LIBFUZZER -Isrc \
 *         -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
 *         tests/fuzz/parquet_encode_fuzz.c src/parquet/[a-z]*.c src/column/[a-z]*.c \
 *         src/json/[a-z]*.c src/base/[a-z]*.c -lzstd -llz4 -lsnappy -lpthread -lm -o parquet-fuzz
 *     ./parquet-fuzz -max_len=4096 corpus/
 *
 * Without it (no -DMP_LIBFUZZER, any compiler) the program runs the files it is given, once each.
 */
#include "fuzz/fuzz.h"
#include "base/mem.h"
#include "parquet/writer.h"

#include <assert.h>

enum { ROWS_MAX = 4000, GROUPS_MAX = 64 };

struct input {
    const uint8_t *at, *end;
};

static uint8_t take(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

struct shape {
    struct mp_parquet_options options;
    struct mp_type type;
    uint32_t group_rows_max;
};

static struct shape take_shape(struct input *in)
{
    static const uint32_t page_bytes[] = {0, 1, 40, 500};
    static const uint32_t dictionary_bytes[] = {0, 1, 30, 400};
    struct shape shape = {0};
    uint8_t knobs = take(in);

    shape.options.codec = knobs & 3;
    shape.options.no_dictionary = knobs >> 2 & 1;
    shape.options.page_bytes = page_bytes[knobs >> 3 & 3];
    shape.options.dictionary_bytes_max = dictionary_bytes[knobs >> 5 & 3];
    shape.type.id = (uint8_t)(MP_TYPE_BOOL + take(in) % (MP_TYPE_UUID - MP_TYPE_BOOL + 1));
    if (shape.type.id == MP_TYPE_DECIMAL) {
        shape.type.precision = (uint8_t)(1 + take(in) % 38);
        shape.type.scale = (uint8_t)(take(in) % (shape.type.precision + 1));
    }
    shape.group_rows_max = 1u + take(in) * 8u;
    return shape;
}

/* Texts that are not BLOBs must be UTF-8; ASCII and a few longer code points will do. */
static uint32_t put_text(struct input *in, bool blob, uint32_t length, char *ret)
{
    static const char *const points[] = {"\xc2\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf", "\x7f"};
    uint32_t size = 0;

    for (uint32_t i = 0; i < length; i++) {
        uint8_t byte = take(in);
        size_t bytes = 1;

        if (blob || byte < 0x80) {
            ret[size] = (char)byte;
        } else {
            bytes = strlen(points[byte & 3]);
            memcpy(ret + size, points[byte & 3], bytes);
        }
        size += (uint32_t)bytes;
    }
    return size;
}

static void fill(struct input in, struct mp_segment_pool *pool, const struct shape *shape,
                 uint64_t *validity, struct mp_column *ret)
{
    char value[4 + 4 * 1024];
    uint32_t width = mp_type_width(shape->type);

    memset(validity, 0, (ROWS_MAX / 64 + 1) * sizeof(*validity));
    *ret = (struct mp_column){.name = MP_STR("c"), .type = shape->type, .validity = validity};
    for (; in.at < in.end && ret->rows < ROWS_MAX; ret->rows++) {
        uint8_t kind = take(&in);
        uint32_t size = width;

        if (kind % 5 == 0) /* a null */
            continue;
        memset(value, 0, 16);
        if (!width) {
            uint32_t length = kind & 0x80 ? (kind & 0x7f) * 8 : kind & 15;

            size = put_text(&in, shape->type.id == MP_TYPE_BLOB, length, value + 4);
            memcpy(value, &size, 4);
            size += 4;
        } else {
            for (uint32_t i = 0; i < width && i <= (uint32_t)(kind & 15); i++)
                value[i] = (char)take(&in);
            if (shape->type.id == MP_TYPE_BOOL)
                value[0] &= 1;
        }
        memcpy(mp_segment_append(pool, &ret->segments, size), value, size);
        validity[ret->rows / 64] |= UINT64_C(1) << (ret->rows & 63);
        ret->values++;
    }
}

/* Gives the file's bytes in memory of their own. */
static struct mp_str encode(struct input in, const struct shape *shape, bool gather)
{
    static uint64_t validity[ROWS_MAX / 64 + 1];
    static uint32_t identity[ROWS_MAX];
    struct mp_segment_pool *pool = mp_segment_pool_new(0);
    struct mp_parquet_encoder *encoder = mp_parquet_encoder_new(&shape->options);
    struct mp_parquet_rows rows = {0};
    struct mp_parquet_cut cut = {&rows, 1, shape->group_rows_max};
    struct mp_parquet_chunk **chunks;
    struct mp_parquet_file *file;
    struct mp_column column;
    struct mp_parquet_field field;
    uint32_t groups;
    char *bytes;
    size_t at = 0;
    enum mp_code code;

    fill(in, pool, shape, validity, &column);
    for (uint32_t i = 0; i < column.rows; i++)
        identity[i] = i;
    rows = (struct mp_parquet_rows){gather ? identity : NULL, column.rows};
    groups = mp_parquet_groups(&cut, 0);
    chunks = mp_alloc_array(groups, sizeof(*chunks));
    code = mp_parquet_encode(encoder, pool, &column, &cut, NULL, chunks);
    assert(code == MP_OK);
    assert(!column.segments.first);
    field = (struct mp_parquet_field){MP_STR("c"), shape->type, 1, chunks};
    file = mp_parquet_file_new(&field, 1, groups, MP_STR("fuzz"));
    assert(file->rows == column.rows);
    assert(file->stats[0].nulls == column.rows - column.values);
    bytes = mp_alloc(file->bytes);
    for (uint32_t i = 0; i < file->piece_count; i++) {
        memcpy(bytes + at, file->pieces[i].data, file->pieces[i].size);
        at += file->pieces[i].size;
    }
    assert(at == file->bytes);
    mp_parquet_file_free(file);
    for (uint32_t i = 0; i < groups; i++)
        mp_parquet_chunk_free(chunks[i]);
    mp_free(chunks);
    mp_parquet_encoder_free(encoder);
    mp_segment_pool_free(pool);
    return mp_str_n(bytes, at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, data + size};
    struct shape shape = take_shape(&in);
    struct mp_str in_place = encode(in, &shape, false);
    struct mp_str gathered = encode(in, &shape, true);

    assert(mp_str_eq(in_place, gathered));
    mp_free((void *)(uintptr_t)in_place.data);
    mp_free((void *)(uintptr_t)gathered.data);
    return 0;
}

#include "fuzz/replay.h"
