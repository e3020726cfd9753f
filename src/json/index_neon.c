/* json/index_neon.c - stage one with NEON: a block is four vectors of 16 bytes.
 *
 * The same steps as index_avx2.c, in the vectors of 64-bit ARM, which every such machine has.
 */
#include "json/index.h"
#include "json/utf8_pairs.h"

#ifdef __aarch64__

#include <arm_neon.h>

struct utf8_state {
    uint8x16_t lead_high, lead_low, next_high; /* the tables */
    uint8x16_t last;                           /* the vector before */
    uint8x16_t wrong;                          /* not 0: complaints so far */
};

static inline struct utf8_state utf8_begin(void)
{
    return (struct utf8_state){
        .lead_high = vld1q_u8(mp_json_utf8_lead_high),
        .lead_low = vld1q_u8(mp_json_utf8_lead_low),
        .next_high = vld1q_u8(mp_json_utf8_next_high),
        .last = vdupq_n_u8(0),
        .wrong = vdupq_n_u8(0),
    };
}

/* Judges 16 bytes, given the 16 before. */
static inline void utf8_vector(struct utf8_state *utf8, uint8x16_t bytes)
{
    uint8x16_t before1 = vextq_u8(utf8->last, bytes, 15);
    uint8x16_t before2 = vextq_u8(utf8->last, bytes, 14);
    uint8x16_t before3 = vextq_u8(utf8->last, bytes, 13);
    uint8x16_t low = vandq_u8(before1, vdupq_n_u8(0x0f));
    uint8x16_t pairs = vandq_u8(vandq_u8(vqtbl1q_u8(utf8->lead_high, vshrq_n_u8(before1, 4)),
                                         vqtbl1q_u8(utf8->lead_low, low)),
                                vqtbl1q_u8(utf8->next_high, vshrq_n_u8(bytes, 4)));
    /* the high bit stays where the byte must be the third or fourth of a character */
    uint8x16_t third = vqsubq_u8(before2, vdupq_n_u8(0xe0 - 0x80));
    uint8x16_t fourth = vqsubq_u8(before3, vdupq_n_u8(0xf0 - 0x80));
    uint8x16_t must = vandq_u8(vorrq_u8(third, fourth), vdupq_n_u8(MP_UTF8_TWO_CONTS));

    utf8->wrong = vorrq_u8(utf8->wrong, veorq_u8(must, pairs));
    utf8->last = bytes;
}

/* The vector before ended inside a character, and no continuation comes: wrong. */
static inline void utf8_cut(struct utf8_state *utf8)
{
    static const uint8_t most[16] = {255, 255, 255, 255, 255, 255,      255,      255,
                                     255, 255, 255, 255, 255, 0xf0 - 1, 0xe0 - 1, 0xc0 - 1};

    utf8->wrong = vorrq_u8(utf8->wrong, vqsubq_u8(utf8->last, vld1q_u8(most)));
}

/* Gathers four vectors of all-ones and all-zeros bytes into bits. */
static inline uint64_t gather(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d)
{
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t weight = vld1q_u8(bits);
    uint8x16_t ab = vpaddq_u8(vandq_u8(a, weight), vandq_u8(b, weight));
    uint8x16_t cd = vpaddq_u8(vandq_u8(c, weight), vandq_u8(d, weight));
    uint8x16_t abcd = vpaddq_u8(ab, cd);

    abcd = vpaddq_u8(abcd, abcd);
    return vgetq_lane_u64(vreinterpretq_u64_u8(abcd), 0);
}

static inline uint64_t equal_bytes(const uint8x16_t v[4], char byte)
{
    uint8x16_t wanted = vdupq_n_u8((uint8_t)byte);

    return gather(vceqq_u8(v[0], wanted), vceqq_u8(v[1], wanted), vceqq_u8(v[2], wanted),
                  vceqq_u8(v[3], wanted));
}

/* Bytes below 0x20. */
static inline uint64_t control_bytes(const uint8x16_t v[4])
{
    uint8x16_t space = vdupq_n_u8(0x20);

    return gather(vcltq_u8(v[0], space), vcltq_u8(v[1], space), vcltq_u8(v[2], space),
                  vcltq_u8(v[3], space));
}

static inline void mark_block(struct mp_json_marks *marks, struct utf8_state *utf8,
                              const char *block, uint32_t at)
{
    const uint8_t *bytes = (const uint8_t *)block;
    uint8x16_t v[4] = {vld1q_u8(bytes), vld1q_u8(bytes + 16), vld1q_u8(bytes + 32),
                       vld1q_u8(bytes + 48)};
    uint64_t quotes = equal_bytes(v, '"');
    uint64_t inside;

    quotes &= ~mp_json_mark_escapes(marks, equal_bytes(v, '\\'), at);
    inside = mp_json_prefix_xor(quotes) ^ marks->in_string;
    marks->closer = mp_json_put_places(marks->closer, quotes & ~inside, at);
    marks->bad |= control_bytes(v) & inside;
    marks->in_string = (uint64_t)((int64_t)inside >> 63);

    if (vmaxvq_u8(vorrq_u8(vorrq_u8(v[0], v[1]), vorrq_u8(v[2], v[3]))) >= 0x80) {
        for (int k = 0; k < 4; k++)
            utf8_vector(utf8, v[k]);
    } else {
        utf8_cut(utf8);
        utf8->last = v[3];
    }
}

bool mp_json_index_neon(struct mp_json_index *index, const char *data, size_t size)
{
    struct mp_json_marks marks = mp_json_marks_begin(index);
    struct utf8_state utf8 = utf8_begin();
    char tail[MP_JSON_BLOCK];

    for (size_t at = 0; at < size; at += MP_JSON_BLOCK)
        mark_block(&marks, &utf8, mp_json_block(data, at, size, tail), (uint32_t)at);
    utf8_cut(&utf8);
    return mp_json_marks_end(&marks) && vmaxvq_u8(utf8.wrong) == 0;
}

#endif
