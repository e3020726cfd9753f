/* json/index_avx2.c - stage one with AVX2: a block is two vectors of 32 bytes.
 *
 * UTF-8 is checked in the same pass, by the tables of utf8_pairs.h; a block of ASCII costs one
 * test.
 */
#include "json/index.h"
#include "json/utf8_pairs.h"

#ifdef __x86_64__

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt,pclmul")))

bool mp_json_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt") &&
           __builtin_cpu_supports("pclmul");
}

struct utf8_state {
    __m256i table_lead_high, table_lead_low, table_next_high;
    __m256i last;  /* the vector before */
    __m256i wrong; /* not 0: complaints so far */
};

static inline AVX2 __m256i load_table(const uint8_t table[16])
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
}

static inline AVX2 struct utf8_state utf8_begin(void)
{
    return (struct utf8_state){
        .table_lead_high = load_table(mp_json_utf8_lead_high),
        .table_lead_low = load_table(mp_json_utf8_lead_low),
        .table_next_high = load_table(mp_json_utf8_next_high),
        .last = _mm256_setzero_si256(),
        .wrong = _mm256_setzero_si256(),
    };
}

static inline AVX2 __m256i high_halves(__m256i bytes)
{
    return _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(0x0f));
}

/* Judges 32 bytes, given the 32 before. */
static inline AVX2 void utf8_vector(struct utf8_state *utf8, __m256i bytes)
{
    /* the bytes one, two and three places earlier */
    __m256i middle = _mm256_permute2x128_si256(utf8->last, bytes, 0x21);
    __m256i before1 = _mm256_alignr_epi8(bytes, middle, 15);
    __m256i before2 = _mm256_alignr_epi8(bytes, middle, 14);
    __m256i before3 = _mm256_alignr_epi8(bytes, middle, 13);
    __m256i low = _mm256_and_si256(before1, _mm256_set1_epi8(0x0f));
    __m256i pairs = _mm256_and_si256(
        _mm256_and_si256(_mm256_shuffle_epi8(utf8->table_lead_high, high_halves(before1)),
                         _mm256_shuffle_epi8(utf8->table_lead_low, low)),
        _mm256_shuffle_epi8(utf8->table_next_high, high_halves(bytes)));
    /* the high bit stays where the byte must be the third or fourth of a character */
    __m256i third = _mm256_subs_epu8(before2, _mm256_set1_epi8((char)(0xe0 - 0x80)));
    __m256i fourth = _mm256_subs_epu8(before3, _mm256_set1_epi8((char)(0xf0 - 0x80)));
    __m256i must =
        _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8((char)MP_UTF8_TWO_CONTS));

    utf8->wrong = _mm256_or_si256(utf8->wrong, _mm256_xor_si256(must, pairs));
    utf8->last = bytes;
}

/* The vector before ended inside a character, and no continuation comes: wrong. */
static inline AVX2 void utf8_cut(struct utf8_state *utf8)
{
    /* leads that want more bytes than are left: any in the last place, three in the last but one,
     * four in the one before */
    const __m256i most = _mm256_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                          -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                          -1, (char)(0xf0 - 1), (char)(0xe0 - 1), (char)(0xc0 - 1));

    utf8->wrong = _mm256_or_si256(utf8->wrong, _mm256_subs_epu8(utf8->last, most));
}

static inline AVX2 uint64_t equal_bytes(__m256i low, __m256i high, char byte)
{
    __m256i wanted = _mm256_set1_epi8(byte);
    uint32_t a = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted));
    uint32_t b = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted));

    return (uint64_t)b << 32 | a;
}

/* Bytes below 0x20. Most blocks have none, which the smaller of each two bytes tells. */
static inline AVX2 uint64_t control_bytes(__m256i low, __m256i high)
{
    __m256i top = _mm256_set1_epi8(0x1f);
    __m256i least = _mm256_min_epu8(low, high);
    uint32_t a, b;

    if (!_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(least, top), top)))
        return 0;
    a = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(low, top), top));
    b = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(high, top), top));
    return (uint64_t)b << 32 | a;
}

/* Bit k becomes the sum, modulo 2, of the bits 0 to k: a carry-less product with all ones. */
static inline AVX2 uint64_t prefix_xor(uint64_t bits)
{
    __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)bits), _mm_set1_epi8((char)0xff), 0);

    return (uint64_t)_mm_cvtsi128_si64(product);
}

static inline AVX2 void mark_block(struct mp_json_marks *marks, struct utf8_state *utf8,
                                   const char *block, uint32_t at)
{
    __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)block);
    __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(block + 32));
    uint64_t quotes = equal_bytes(low, high, '"');
    uint64_t inside;

    quotes &= ~mp_json_mark_escapes(marks, equal_bytes(low, high, '\\'), at);
    inside = prefix_xor(quotes) ^ marks->in_string;
    marks->closer = mp_json_put_places(marks->closer, quotes & ~inside, at);
    marks->bad |= control_bytes(low, high) & inside;
    marks->in_string = (uint64_t)((int64_t)inside >> 63);

    if (_mm256_movemask_epi8(_mm256_or_si256(low, high))) {
        utf8_vector(utf8, low);
        utf8_vector(utf8, high);
    } else {
        utf8_cut(utf8);
        utf8->last = high;
    }
}

AVX2 bool mp_json_index_avx2(struct mp_json_index *index, const char *data, size_t size)
{
    struct mp_json_marks marks = mp_json_marks_begin(index);
    struct utf8_state utf8 = utf8_begin();
    char tail[MP_JSON_BLOCK];

    for (size_t at = 0; at < size; at += MP_JSON_BLOCK)
        mark_block(&marks, &utf8, mp_json_block(data, at, size, tail), (uint32_t)at);
    utf8_cut(&utf8);
    return mp_json_marks_end(&marks) && _mm256_testz_si256(utf8.wrong, utf8.wrong);
}

#endif
