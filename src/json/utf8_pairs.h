/* json/utf8_pairs.h - strict UTF-8 by pairs of bytes, for vectors with table lookup.
 *
 * Every byte is judged with the one before it: three lookups (by the high and the low half of the
 * byte before, and by the high half of the byte itself) give each a set of complaints, and what
 * all three share is wrong. Third and fourth bytes of a character are told by looking two and
 * three bytes back for a lead that calls for them; exactly there TWO_CONTS is right.
 *
 * After  Keiser, Lemire: Validating UTF-8 In Less Than One Instruction Per Byte. Software:
 *        Practice and Experience 51 (2021), section 6.
 */
#ifndef MP_JSON_UTF8_PAIRS_H
#define MP_JSON_UTF8_PAIRS_H

#include <stdint.h>

/* The complaints about a pair. */
enum {
    MP_UTF8_TOO_SHORT = 1 << 0,  /* 11______ then no continuation */
    MP_UTF8_TOO_LONG = 1 << 1,   /* 0_______ then a continuation */
    MP_UTF8_OVERLONG_2 = 1 << 2, /* 1100000_ then a continuation: fits one byte */
    MP_UTF8_OVERLONG_3 = 1 << 3, /* 11100000 100_____: fits two */
    MP_UTF8_OVERLONG_4 = 1 << 4, /* 11110000 1000____: fits three */
    MP_UTF8_SURROGATE = 1 << 5,  /* 11101101 101_____: U+D800 to U+DFFF */
    MP_UTF8_TOO_LARGE = 1 << 6,  /* 11110100 and up, 1001____ or 101_____: beyond U+10FFFF */
    MP_UTF8_TWO_CONTS = 1 << 7,  /* two continuations, unless a lead before calls for them */
    /* 11110101 and up, 1000____: beyond U+10FFFF too. The second byte is that of OVERLONG_4 and the
     * leads differ, so the two share a bit. */
    MP_UTF8_TOO_LARGE_1000 = MP_UTF8_OVERLONG_4,
};

/* Shorter names for the tables, undone below. */
#define SHORT  MP_UTF8_TOO_SHORT
#define LONG   MP_UTF8_TOO_LONG
#define TWO    MP_UTF8_OVERLONG_2
#define THREE  MP_UTF8_OVERLONG_3
#define FOUR   MP_UTF8_OVERLONG_4
#define SURR   MP_UTF8_SURROGATE
#define LARGE  MP_UTF8_TOO_LARGE
#define BEYOND (MP_UTF8_TOO_LARGE | MP_UTF8_TOO_LARGE_1000)
#define CONTS  MP_UTF8_TWO_CONTS
#define ANY    (SHORT | LONG | CONTS) /* complaints that do not ask for the low half */
#define CONT   (LONG | CONTS | TWO)   /* complaints about every continuation */

/* clang-format off */
/* By the high half of the byte before. */
static const uint8_t mp_json_utf8_lead_high[16] = {
    LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG,                   /* 0_______ */
    CONTS, CONTS, CONTS, CONTS,                                       /* 10______ */
    SHORT | TWO, SHORT, SHORT | THREE | SURR, SHORT | FOUR | BEYOND,  /* C D E F */
};
/* By its low half. */
static const uint8_t mp_json_utf8_lead_low[16] = {
    ANY | TWO | THREE | FOUR, ANY | TWO, ANY, ANY,              /* 0 1 2 3 */
    ANY | LARGE, ANY | BEYOND, ANY | BEYOND, ANY | BEYOND,      /* 4 5 6 7 */
    ANY | BEYOND, ANY | BEYOND, ANY | BEYOND, ANY | BEYOND,     /* 8 9 A B */
    ANY | BEYOND, ANY | BEYOND | SURR, ANY | BEYOND, ANY | BEYOND, /* C D E F */
};
/* By the high half of the byte itself. */
static const uint8_t mp_json_utf8_next_high[16] = {
    SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT,     /* 0_______ */
    CONT | THREE | FOUR, CONT | THREE | LARGE, CONT | SURR | LARGE, CONT | SURR | LARGE,
    SHORT, SHORT, SHORT, SHORT,                                 /* 11______ */
};
/* clang-format on */

#undef SHORT
#undef LONG
#undef TWO
#undef THREE
#undef FOUR
#undef SURR
#undef LARGE
#undef BEYOND
#undef CONTS
#undef ANY
#undef CONT

#endif
