/* parquet/decode.c - the values of a page, one pair of functions an encoding.
 *
 * Fixed values that stand side by side are lent where they lie; texts are lent too, as views. What
 * has to be made (gathered from a dictionary or from streams, summed up from deltas) is made in a
 * buffer of the batch's size.
 *
 * After  Parquet "Encodings".
 */
#include "parquet/reader_priv.h"

#include "base/mem.h"

static char *values_room(struct mp_decode *decode, size_t bytes)
{
    decode->values.data =
        mp_scratch_grow(decode->values.data, &decode->values.capacity, bytes ? bytes : 1, 1);
    return decode->values.data;
}

static enum mp_code too_few(size_t bytes, uint32_t count, struct mp_err *err)
{
    return MP_BAD_PAGE(err, "%zu bytes are left for the next %u values", bytes, count);
}

static enum mp_code begin_bytes(struct mp_decode *decode, struct mp_str values, struct mp_err *err)
{
    (void)err;
    decode->in = mp_bytes_of(values);
    decode->bit = 0;
    return MP_OK;
}

/* ---- PLAIN ----------------------------------------------------------------------------------- */

static enum mp_code plain_bools(struct mp_decode *decode, uint32_t count, struct mp_err *err)
{
    char *to = values_room(decode, count);

    if (decode->bit + count > (uint64_t)mp_bytes_left(&decode->in) * 8)
        return too_few(mp_bytes_left(&decode->in) - (size_t)(decode->bit / 8), count, err);
    for (uint32_t i = 0; i < count; i++, decode->bit++)
        to[i] = decode->in.at[decode->bit / 8] >> (decode->bit & 7) & 1;
    decode->fixed = to;
    return MP_OK;
}

static enum mp_code plain_fixed(struct mp_decode *decode, uint32_t count, struct mp_err *err)
{
    uint64_t bytes = (uint64_t)count * decode->width;

    if (bytes > mp_bytes_left(&decode->in))
        return too_few(mp_bytes_left(&decode->in), count, err);
    decode->fixed = (const char *)decode->in.at;
    decode->in.at += bytes;
    return MP_OK;
}

static enum mp_code read_texts(struct mp_bytes_in *in, uint32_t count, struct mp_err *err,
                               struct mp_str *ret)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size;

        if (mp_bytes_left(in) < 4)
            return too_few(mp_bytes_left(in), count - i, err);
        memcpy(&size, in->at, 4);
        in->at += 4;
        if (size > mp_bytes_left(in))
            return MP_BAD_PAGE(err, "a value of %u bytes, %zu are left in the page", size,
                               mp_bytes_left(in));
        ret[i] = mp_str_n(in->at, size);
        in->at += size;
    }
    return MP_OK;
}

static enum mp_code plain_take(struct mp_decode *decode, uint32_t count, struct mp_err *err)
{
    if (decode->physical == MP_PHYSICAL_BOOLEAN)
        return plain_bools(decode, count, err);
    if (decode->width)
        return plain_fixed(decode, count, err);
    return read_texts(&decode->in, count, err, decode->texts);
}

/* ---- RLE: booleans --------------------------------------------------------------------------- */

static enum mp_code rle_begin(struct mp_decode *decode, struct mp_str values, struct mp_err *err)
{
    uint32_t size;

    if (values.size < 4)
        return too_few(values.size, 1, err);
    memcpy(&size, values.data, 4);
    if (size > values.size - 4)
        return MP_BAD_PAGE(err, "booleans of %u bytes, %zu are left in the page", size,
                           values.size - 4);
    mp_rle_in_begin(&decode->rle, mp_str_n(values.data + 4, size), 1);
    return MP_OK;
}

static enum mp_code rle_take(struct mp_decode *decode, uint32_t count, struct mp_err *err)
{
    char *to = values_room(decode, count);

    if (!mp_rle_in_take(&decode->rle, count, decode->numbers))
        return too_few(mp_bytes_left(&decode->rle.in), count, err);
    for (uint32_t i = 0; i < count; i++)
        to[i] = (char)decode->numbers[i];
    decode->fixed = to;
    return MP_OK;
}

/* ---- dictionaries ---------------------------------------------------------------------------- */

enum mp_code mp_dictionary_begin(struct mp_decode *decode, struct mp_str body, uint32_t count,
                                 struct mp_err *err)
{
    struct mp_dictionary *dictionary = &decode->dictionary;
    uint64_t least = (uint64_t)count * (decode->width ? decode->width : 4);

    if (least > body.size)
        return MP_BAD_PAGE(err, "a dictionary of %u values in %zu bytes", count, body.size);
    dictionary->has = true;
    dictionary->count = count;
    dictionary->bytes = body;
    if (!decode->width) {
        struct mp_bytes_in in = mp_bytes_of(body);

        dictionary->texts = mp_scratch_grow(dictionary->texts, &dictionary->texts_capacity,
                                            count ? count : 1, sizeof(*dictionary->texts));
        return read_texts(&in, count, err, dictionary->texts);
    }
    return MP_OK;
}

static enum mp_code dictionary_begin(struct mp_decode *decode, struct mp_str values,
                                     struct mp_err *err)
{
    unsigned width = values.size ? (uint8_t)values.data[0] : 0;

    if (!decode->dictionary.has)
        return MP_BAD_PAGE(err, "indices without a dictionary");
    if (width > 32)
        return MP_BAD_PAGE(err, "indices of %u bits", width);
    /* A page without a value may lack even the width. */
    mp_rle_in_begin(&decode->rle,
                    mp_str_n(values.data + (values.size > 0), values.size - (values.size > 0)),
                    width);
    return MP_OK;
}

/* Widths that the compiler knows cost no call. */
static void gather(const char *from, uint32_t width, const uint32_t *numbers, uint32_t count,
                   char *to)
{
    switch (width) {
    case 4:
        for (uint32_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * 4, from + (size_t)numbers[i] * 4, 4);
        break;
    case 8:
        for (uint32_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * 8, from + (size_t)numbers[i] * 8, 8);
        break;
    default:
        for (uint32_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * width, from + (size_t)numbers[i] * width, width);
    }
}

static enum mp_code dictionary_take(struct mp_decode *decode, uint32_t count, struct mp_err *err)
{
    const struct mp_dictionary *dictionary = &decode->dictionary;
    uint32_t largest = 0;

    if (!count)
        return MP_OK;
    if (!mp_rle_in_take(&decode->rle, count, decode->numbers))
        return too_few(mp_bytes_left(&decode->rle.in), count, err);
    for (uint32_t i = 0; i < count; i++)
        largest = decode->numbers[i] > largest ? decode->numbers[i] : largest;
    if (largest >= dictionary->count)
        return MP_BAD_PAGE(err, "index %u in a dictionary of %u values", largest,
                           dictionary->count);
    if (decode->width) {
        char *to = values_room(decode, (size_t)count * decode->width);

        gather(dictionary->bytes.data, decode->width, decode->numbers, count, to);
        decode->fixed = to;
        return MP_OK;
    }
    for (uint32_t i = 0; i < count; i++)
        decode->texts[i] = dictionary->texts[decode->numbers[i]];
    return MP_OK;
}

/* ---- DELTA_BINARY_PACKED --------------------------------------------------------------------- */

static enum mp_code delta_begin(struct mp_decode *decode, struct mp_str values, struct mp_err *err)
{
    decode->delta = (struct mp_delta_in){0};
    return values.size ? mp_delta_in_begin(&decode->delta, values, err, NULL) : MP_OK;
}

static enum mp_code delta_take(struct mp_decode *decode, uint32_t count, struct mp_err *err)
{
    uint64_t *wide = decode->wide[0];
    char *to = values_room(decode, (size_t)count * decode->width);
    enum mp_code code = mp_delta_in_take(&decode->delta, count, err, wide);

    for (uint32_t i = 0; i < count && !code; i++)
        memcpy(to + (size_t)i * decode->width, &wide[i], decode->width); /* the lower half first */
    decode->fixed = to;
    return code;
}

/* ---- DELTA_LENGTH_BYTE_ARRAY ----------------------------------------------------------------- */

static enum mp_code lengths_begin(struct mp_decode *decode, struct mp_str values,
                                  struct mp_err *err)
{
    struct mp_str rest = mp_str_n(values.data, 0);
    enum mp_code code = MP_OK;

    decode->delta = (struct mp_delta_in){0};
    if (values.size) /* a page without a value may be empty */
        code = mp_delta_in_begin(&decode->delta, values, err, &rest);
    decode->in = mp_bytes_of(rest);
    return code;
}

/* Lends the next texts of the bytes behind the lengths. */
static enum mp_code take_lengths(struct mp_decode *decode, uint32_t count, struct mp_err *err)
{
    uint64_t *sizes = decode->wide[0];
    enum mp_code code = mp_delta_in_take(&decode->delta, count, err, sizes);

    if (code)
        return code;
    for (uint32_t i = 0; i < count; i++) {
        if (sizes[i] > mp_bytes_left(&decode->in))
            return MP_BAD_PAGE(err, "a value of %lld bytes, %zu are left in the page",
                               (long long)sizes[i], mp_bytes_left(&decode->in));
        decode->texts[i] = mp_str_n(decode->in.at, (size_t)sizes[i]);
        decode->in.at += sizes[i];
    }
    return MP_OK;
}

/* ---- DELTA_BYTE_ARRAY ------------------------------------------------------------------------ */

static enum mp_code prefixes_begin(struct mp_decode *decode, struct mp_str values,
                                   struct mp_err *err)
{
    struct mp_str rest = mp_str_n(values.data, 0);
    enum mp_code code = MP_OK;

    decode->prefixes = (struct mp_delta_in){0};
    decode->last_size = 0;
    if (values.size)
        code = mp_delta_in_begin(&decode->prefixes, values, err, &rest);
    return code ? code : lengths_begin(decode, rest, err);
}

/* Sizes of the values that prefixes and suffixes make, before memory is taken for them. */
static enum mp_code whole_sizes(struct mp_decode *decode, const uint64_t *prefixes, uint32_t count,
                                struct mp_err *err, size_t *ret)
{
    uint64_t before = decode->last_size, total = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (prefixes[i] > before)
            return MP_BAD_PAGE(err, "%lld bytes in common with a value of %llu",
                               (long long)prefixes[i], (unsigned long long)before);
        before = prefixes[i] + decode->texts[i].size;
        if (decode->width && before != decode->width)
            return MP_BAD_PAGE(err, "a value of %llu bytes, all have %u",
                               (unsigned long long)before, decode->width);
        total += before;
        if (total > decode->bytes_max)
            return mp_err_set(err, MP_FULL, "%u values of more than %llu bytes", count,
                              (unsigned long long)decode->bytes_max);
    }
    *ret = (size_t)total;
    return MP_OK;
}

static void keep_last(struct mp_decode *decode, struct mp_str text)
{
    decode->last.data =
        mp_scratch_grow(decode->last.data, &decode->last.capacity, text.size ? text.size : 1, 1);
    if (text.size)
        memcpy(decode->last.data, text.data, text.size);
    decode->last_size = text.size;
}

static enum mp_code prefixes_take(struct mp_decode *decode, uint32_t count, struct mp_err *err)
{
    const uint64_t *prefixes = decode->wide[1];
    struct mp_str before;
    size_t total = 0;
    char *to;
    enum mp_code code = mp_delta_in_take(&decode->prefixes, count, err, decode->wide[1]);

    if (!code)
        code = take_lengths(decode, count, err);
    if (!code)
        code = whole_sizes(decode, prefixes, count, err, &total);
    if (code || !count)
        return code;
    to = values_room(decode, total);
    decode->fixed = decode->width ? to : NULL;
    before = mp_str_n(decode->last.data, decode->last_size);
    for (uint32_t i = 0; i < count; i++) {
        struct mp_str suffix = decode->texts[i];

        if (prefixes[i])
            memcpy(to, before.data, (size_t)prefixes[i]);
        if (suffix.size)
            memcpy(to + prefixes[i], suffix.data, suffix.size);
        before = decode->texts[i] = mp_str_n(to, (size_t)prefixes[i] + suffix.size);
        to += before.size;
    }
    keep_last(decode, before);
    return MP_OK;
}

/* ---- BYTE_STREAM_SPLIT ----------------------------------------------------------------------- */

static enum mp_code split_begin(struct mp_decode *decode, struct mp_str values, struct mp_err *err)
{
    if (values.size % decode->width)
        return MP_BAD_PAGE(err, "%zu bytes are no streams of values of %u bytes", values.size,
                           decode->width);
    decode->in = mp_bytes_of(values);
    decode->stride = values.size / decode->width;
    decode->next = 0;
    return MP_OK;
}

static enum mp_code split_take(struct mp_decode *decode, uint32_t count, struct mp_err *err)
{
    uint32_t width = decode->width;
    char *to;

    if (count > decode->stride - decode->next)
        return too_few((decode->stride - decode->next) * width, count, err);
    to = values_room(decode, (size_t)count * width);
    for (uint32_t byte = 0; byte < width; byte++) {
        const uint8_t *from = decode->in.at + byte * decode->stride + decode->next;

        for (uint32_t i = 0; i < count; i++)
            to[(size_t)i * width + byte] = (char)from[i];
    }
    decode->next += count;
    decode->fixed = to;
    return MP_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

#define BIT(physical) (1u << MP_PHYSICAL_##physical)
#define INTEGERS      (BIT(INT32) | BIT(INT64))
#define NUMBERS       (INTEGERS | BIT(FLOAT) | BIT(DOUBLE))
#define ALL           (NUMBERS | BIT(BOOLEAN) | BIT(INT96) | BIT(BYTE_ARRAY) | BIT(FIXED))

static const struct mp_decoder decoders[] = {
    [MP_ENCODING_PLAIN] = {"PLAIN", ALL, begin_bytes, plain_take},
    [2] = {"PLAIN_DICTIONARY", ALL & ~BIT(BOOLEAN), dictionary_begin, dictionary_take},
    [MP_ENCODING_RLE] = {"RLE", BIT(BOOLEAN), rle_begin, rle_take},
    [5] = {"DELTA_BINARY_PACKED", INTEGERS, delta_begin, delta_take},
    [6] = {"DELTA_LENGTH_BYTE_ARRAY", BIT(BYTE_ARRAY), lengths_begin, take_lengths},
    [7] = {"DELTA_BYTE_ARRAY", BIT(BYTE_ARRAY) | BIT(FIXED), prefixes_begin, prefixes_take},
    [MP_ENCODING_RLE_DICTIONARY] = {"RLE_DICTIONARY", ALL & ~BIT(BOOLEAN), dictionary_begin,
                                    dictionary_take},
    [9] = {"BYTE_STREAM_SPLIT", NUMBERS | BIT(FIXED), split_begin, split_take},
};

const struct mp_decoder *mp_decoder_of(int32_t encoding, int8_t physical)
{
    size_t count = sizeof(decoders) / sizeof(*decoders);

    if (encoding < 0 || (size_t)encoding >= count ||
        !(decoders[encoding].physicals >> physical & 1))
        return NULL;
    return &decoders[encoding];
}

void mp_decode_fini(struct mp_decode *decode)
{
    mp_free(decode->dictionary.texts);
    mp_free(decode->dictionary.room.data);
    mp_free(decode->values.data);
    mp_free(decode->last.data);
}
