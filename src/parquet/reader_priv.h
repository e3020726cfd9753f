/* parquet/reader_priv.h - what the files of the reader know of each other.
 *
 *     page_in    page headers and codecs: bytes of a chunk -> the body of a page
 *     rle_in     levels and dictionary indices
 *     delta_in   the streams of integers of the DELTA encodings
 *     decode     one pair of functions an encoding: a page's values -> a batch
 *     reader     the main line: pages, levels, batches
 *
 * A decoder is begun with the values of a page and then asked for so many of them, never for more
 * than the page's levels allow; it fails where the page holds fewer.
 */
#ifndef MP_PARQUET_READER_PRIV_H
#define MP_PARQUET_READER_PRIV_H

#include "parquet/parquet_priv.h"
#include "parquet/reader.h"

/* Says what is wrong with a page. */
#define MP_BAD_PAGE(err, ...) mp_err_set(err, MP_BAD_DATA, __VA_ARGS__)

/* ---- bytes ----------------------------------------------------------------------------------- */

struct mp_bytes_in {
    const uint8_t *at, *end;
};

static inline struct mp_bytes_in mp_bytes_of(struct mp_str bytes)
{
    return (struct mp_bytes_in){(const uint8_t *)bytes.data,
                                (const uint8_t *)bytes.data + bytes.size};
}

static inline size_t mp_bytes_left(const struct mp_bytes_in *in)
{
    return (size_t)(in->end - in->at);
}

/* Takes a varint of at most 64 bits; false: there is none. */
bool mp_bytes_varint(struct mp_bytes_in *in, uint64_t *ret);
/* Reads `width` (0 to 64) bits from bit `bit` of bytes on; they must be there. */
uint64_t mp_bits_at(const uint8_t *bytes, size_t size, uint64_t bit, unsigned width);

/* ---- rle_in ---------------------------------------------------------------------------------- */

struct mp_rle_in {
    struct mp_bytes_in in;
    unsigned width; /* of a value, 0 to 32 */
    uint32_t left;  /* values left in the run */
    bool packed;
    uint32_t value;      /* of a run of equal values */
    uint64_t bit;        /* packed: the next value's, from packed_at on */
    const uint8_t *from; /* packed: where the run's bytes begin */
    size_t size;         /* packed: bytes of the run */
};

void mp_rle_in_begin(struct mp_rle_in *rle, struct mp_str bytes, unsigned width);
/* Takes `count` values. False: the bytes do not hold so many. */
bool mp_rle_in_take(struct mp_rle_in *rle, uint32_t count, uint32_t *ret);

/* ---- delta_in -------------------------------------------------------------------------------- */

struct mp_delta_in {
    struct mp_bytes_in in;
    uint64_t mini_values; /* values of a miniblock */
    uint32_t minis;       /* miniblocks of a block */
    uint64_t total, left; /* values of the stream, and those not taken */
    uint64_t value;       /* the next one */
    uint64_t min_delta;
    const uint8_t *widths; /* of the block's miniblocks */
    uint32_t mini;         /* the current one; minis: a new block comes */
    uint64_t mini_left;    /* values left in it */
    uint64_t bit;          /* the next delta's, from in.at on */
};

/* Begins a stream. Gives the bytes behind it in *ret_rest where that is not NULL. */
enum mp_code mp_delta_in_begin(struct mp_delta_in *delta, struct mp_str bytes, struct mp_err *err,
                               struct mp_str *ret_rest);
/* Takes `count` values. */
enum mp_code mp_delta_in_take(struct mp_delta_in *delta, uint32_t count, struct mp_err *err,
                              uint64_t *ret);

/* ---- page_in --------------------------------------------------------------------------------- */

enum { MP_PAGE_INDEX = 1, MP_PAGE_DATA_V2 = 3 };

struct mp_page_in {
    int32_t kind;                                     /* enum mp_page_kind, or one of the above */
    int32_t encoding;                                 /* of the values */
    int32_t definition_encoding, repetition_encoding; /* of the levels */
    uint32_t count;                         /* values, nulls included; entries of a dictionary */
    struct mp_str definitions, repetitions; /* levels without a length; V2 only */
    struct mp_str body;                     /* decompressed; V1: levels and values, V2: values */
};

/* A buffer that grows with the largest page. */
struct mp_room {
    char *data;
    size_t capacity;
};

struct mp_unpacker {
    void *zstd; /* ZSTD_DCtx; made when it is needed */
    uint64_t bytes_max;
};

void mp_unpacker_fini(struct mp_unpacker *unpacker);
/* NULL where the codec is not read; else its name. codec: Parquet's enum CompressionCodec. */
const char *mp_codec_in_name(int32_t codec);
/* Takes the next page of the chunk. Its body is lent by the chunk or by room. */
enum mp_code mp_page_in_take(struct mp_unpacker *unpacker, struct mp_str *chunk, int32_t codec,
                             struct mp_room *room, struct mp_err *err, struct mp_page_in *ret);

/* ---- decode ---------------------------------------------------------------------------------- */

struct mp_dictionary {
    bool has;
    uint32_t count;
    struct mp_str bytes;  /* fixed values side by side */
    struct mp_str *texts; /* of a BYTE_ARRAY */
    size_t texts_capacity;
    struct mp_room room; /* of the page */
};

/* What a decoder works on: the values of a page, and where a batch's go. */
struct mp_decode {
    int8_t physical;
    uint32_t width; /* of a value in a batch; 0: texts */
    uint64_t bytes_max;
    struct mp_bytes_in in;
    struct mp_rle_in rle;
    struct mp_delta_in delta, prefixes;
    uint64_t bit;  /* PLAIN booleans */
    size_t stride; /* BYTE_STREAM_SPLIT: values of the page */
    size_t next;   /* and the next of them */
    struct mp_dictionary dictionary;
    /* the batch */
    const char *fixed;
    struct mp_str texts[MP_PARQUET_BATCH_ROWS];
    uint32_t numbers[MP_PARQUET_BATCH_ROWS];
    uint64_t wide[2][MP_PARQUET_BATCH_ROWS];
    struct mp_room values; /* that are not lent by the page */
    struct mp_room last;   /* DELTA_BYTE_ARRAY: the value before this batch */
    size_t last_size;
};

struct mp_decoder {
    const char *name;
    uint16_t physicals; /* bits 1 << enum mp_physical */
    enum mp_code (*begin)(struct mp_decode *decode, struct mp_str values, struct mp_err *err);
    enum mp_code (*take)(struct mp_decode *decode, uint32_t count, struct mp_err *err);
};

/* The decoder of Parquet's enum Encoding; NULL: none for values of that type. */
const struct mp_decoder *mp_decoder_of(int32_t encoding, int8_t physical);
/* Takes the page of a dictionary of `count` entries, whose body lies in its room. */
enum mp_code mp_dictionary_begin(struct mp_decode *decode, struct mp_str body, uint32_t count,
                                 struct mp_err *err);
void mp_decode_fini(struct mp_decode *decode);

#endif
