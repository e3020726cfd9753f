/* json/index_avx512.c - stage one with AVX-512: a block is one vector, a comparison its bitmap.
 *
 * The places of closers come out of one compression of the numbers 0 to 63, without a loop over
 * their bits. UTF-8 is checked in the same pass, by the tables of utf8_pairs.h; a block of ASCII
 * costs one test.
 *
 * Needs VBMI2, so it runs where vectors of this width cost no clock speed (Ice Lake, Zen 4 and
 * later).
 */
#include "json/index.h"
#include "json/utf8_pairs.h"

#ifdef __x86_64__

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vbmi2,bmi,bmi2,popcnt,pclmul")))

bool mp_json_has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt") &&
           __builtin_cpu_supports("pclmul");
}

struct utf8_state {
    __m512i table_lead_high, table_lead_low, table_next_high;
    __m512i last;  /* the block before */
    __m512i wrong; /* not 0: complaints so far */
};

static inline AVX512 __m512i load_table(const uint8_t table[16])
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)table));
}

static inline AVX512 struct utf8_state utf8_begin(void)
{
    return (struct utf8_state){
        .table_lead_high = load_table(mp_json_utf8_lead_high),
        .table_lead_low = load_table(mp_json_utf8_lead_low),
        .table_next_high = load_table(mp_json_utf8_next_high),
        .last = _mm512_setzero_si512(),
        .wrong = _mm512_setzero_si512(),
    };
}

static inline AVX512 __m512i high_halves(__m512i bytes)
{
    return _mm512_and_si512(_mm512_srli_epi16(bytes, 4), _mm512_set1_epi8(0x0f));
}

/* Judges a block, given the one before. */
static inline AVX512 void utf8_block(struct utf8_state *utf8, __m512i bytes)
{
    /* the bytes one, two and three places earlier */
    __m512i middle = _mm512_alignr_epi32(bytes, utf8->last, 12);
    __m512i before1 = _mm512_alignr_epi8(bytes, middle, 15);
    __m512i before2 = _mm512_alignr_epi8(bytes, middle, 14);
    __m512i before3 = _mm512_alignr_epi8(bytes, middle, 13);
    __m512i low = _mm512_and_si512(before1, _mm512_set1_epi8(0x0f));
    __m512i pairs = _mm512_and_si512(
        _mm512_and_si512(_mm512_shuffle_epi8(utf8->table_lead_high, high_halves(before1)),
                         _mm512_shuffle_epi8(utf8->table_lead_low, low)),
        _mm512_shuffle_epi8(utf8->table_next_high, high_halves(bytes)));
    /* the high bit stays where the byte must be the third or fourth of a character */
    __m512i third = _mm512_subs_epu8(before2, _mm512_set1_epi8((char)(0xe0 - 0x80)));
    __m512i fourth = _mm512_subs_epu8(before3, _mm512_set1_epi8((char)(0xf0 - 0x80)));
    __m512i must =
        _mm512_and_si512(_mm512_or_si512(third, fourth), _mm512_set1_epi8((char)MP_UTF8_TWO_CONTS));

    utf8->wrong = _mm512_or_si512(utf8->wrong, _mm512_xor_si512(must, pairs));
    utf8->last = bytes;
}

/* A block of ASCII follows, or the end: the block before must not end inside a character, so its
 * last three bytes are judged with zeros behind them. */
static inline AVX512 void utf8_cut(struct utf8_state *utf8, __m512i ascii)
{
    /* leads that want more bytes than are left: any in the last place, three in the last but one,
     * four in the one before */
    const __m128i most = _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                       (char)(0xf0 - 1), (char)(0xe0 - 1), (char)(0xc0 - 1));
    __m128i end = _mm_subs_epu8(_mm512_extracti32x4_epi32(utf8->last, 3), most);

    utf8->wrong = _mm512_or_si512(utf8->wrong, _mm512_zextsi128_si512(end));
    utf8->last = ascii;
}

/* Bit k becomes the sum, modulo 2, of the bits 0 to k: a carry-less product with all ones. */
static inline AVX512 uint64_t prefix_xor(uint64_t bits)
{
    __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)bits), _mm_set1_epi8((char)0xff), 0);

    return (uint64_t)_mm_cvtsi128_si64(product);
}

/* Writes the places of all bits, in order, and gives the end. Sixteen are written whether there are
 * so many or not (the slack); a block of text has 32 closers at most. */
static inline AVX512 uint32_t *put_places(uint32_t *out, uint64_t bits, uint32_t at)
{
    const __m512i numbers = _mm512_set_epi8(
        63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41,
        40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18,
        17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    __m512i places = _mm512_maskz_compress_epi8(bits, numbers), base = _mm512_set1_epi32((int)at);
    unsigned count = (unsigned)_mm_popcnt_u64(bits);

    _mm512_storeu_si512(
        out, _mm512_add_epi32(base, _mm512_cvtepu8_epi32(_mm512_castsi512_si128(places))));
    if (count > 16)
        _mm512_storeu_si512(
            out + 16,
            _mm512_add_epi32(base, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(places, 1))));
    return out + count;
}

static inline AVX512 void mark_block(struct mp_json_marks *marks, struct utf8_state *utf8,
                                     __m512i block, uint32_t at)
{
    uint64_t quotes = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8('"'));
    uint64_t escapes = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8('\\'));
    uint64_t controls = _mm512_cmplt_epu8_mask(block, _mm512_set1_epi8(0x20));
    uint64_t inside;

    quotes &= ~mp_json_mark_escapes(marks, escapes, at);
    inside = prefix_xor(quotes) ^ marks->in_string;
    marks->closer = put_places(marks->closer, quotes & ~inside, at);
    marks->bad |= controls & inside;
    marks->in_string = (uint64_t)((int64_t)inside >> 63);

    if (_mm512_movepi8_mask(block))
        utf8_block(utf8, block);
    else
        utf8_cut(utf8, block);
}

AVX512 bool mp_json_index_avx512(struct mp_json_index *index, const char *data, size_t size)
{
    struct mp_json_marks marks = mp_json_marks_begin(index);
    struct utf8_state utf8 = utf8_begin();
    size_t at = 0;

    for (; size - at >= MP_JSON_BLOCK; at += MP_JSON_BLOCK)
        mark_block(&marks, &utf8, _mm512_loadu_si512(data + at), (uint32_t)at);
    if (at < size) /* the rest, with spaces behind it: they mean nothing */
        mark_block(&marks, &utf8,
                   _mm512_mask_loadu_epi8(_mm512_set1_epi8(' '),
                                          _bzhi_u64(UINT64_MAX, (unsigned)(size - at)), data + at),
                   (uint32_t)at);
    utf8_cut(&utf8, _mm512_setzero_si512());
    return mp_json_marks_end(&marks) && !_mm512_test_epi8_mask(utf8.wrong, utf8.wrong);
}

#endif
