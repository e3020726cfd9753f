/* json/index_portable.c - stage one in plain C, eight bytes at a time.
 *
 * Bytes are compared inside a 64-bit word; a multiplication gathers the eight answers.
 * (H. Warren, Hacker's Delight, 2nd ed., section 6-1 "Find First 0-Byte".)
 */
#include "json/index.h"

#include "json/utf8.h"

#define EVERY(byte) (0x0101010101010101u * (uint64_t)(byte))

/* Byte 0 of memory in the lowest bits, whatever the machine. */
static inline uint64_t load_word(const char *data)
{
    uint64_t word;

    memcpy(&word, data, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* Bit k is set when byte k of the word is zero. */
static inline uint64_t zero_bytes(uint64_t word)
{
    uint64_t high = ~(((word & EVERY(0x7f)) + EVERY(0x7f)) | word | EVERY(0x7f));

    return ((high >> 7) * 0x0102040810204080u) >> 56;
}

/* The answer for bytes equal to `byte`. */
static inline uint64_t equal_bytes(uint64_t word, char byte)
{
    return zero_bytes(word ^ EVERY(byte));
}

/* Marks one block; gives the or of its bytes' high bits. */
static uint64_t mark_block(struct mp_json_marks *marks, const char *block, uint32_t at)
{
    uint64_t quotes = 0, backslashes = 0, controls = 0, high = 0, inside;

    for (unsigned k = 0; k < MP_JSON_BLOCK; k += 8) {
        uint64_t word = load_word(block + k);

        quotes |= equal_bytes(word, '"') << k;
        backslashes |= equal_bytes(word, '\\') << k;
        controls |= zero_bytes(word & EVERY(0xe0)) << k;
        high |= word & EVERY(0x80);
    }
    quotes &= ~mp_json_mark_escapes(marks, backslashes, at);
    inside = mp_json_prefix_xor(quotes) ^ marks->in_string;
    marks->closer = mp_json_put_places(marks->closer, quotes & ~inside, at);
    marks->bad |= controls & inside;
    marks->in_string = (uint64_t)((int64_t)inside >> 63);
    return high;
}

bool mp_json_index_portable(struct mp_json_index *index, const char *data, size_t size)
{
    struct mp_json_marks marks = mp_json_marks_begin(index);
    char tail[MP_JSON_BLOCK];
    uint64_t high = 0;

    for (size_t at = 0; at < size; at += MP_JSON_BLOCK)
        high |= mark_block(&marks, mp_json_block(data, at, size, tail), (uint32_t)at);
    return mp_json_marks_end(&marks) && (!high || mp_json_utf8_valid(data, size));
}
