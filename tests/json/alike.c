/* tests/json/alike.c - the vector code and the plain code, on very many inputs; and no byte past
 * the end of a record is ever read.
 *
 * Records are put against a page that may not be touched, so a read outside ends the process.
 */
#include "help.h"

#include "json/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Two pages may be written, the third not. */
#define ROOM 8192u

static char *guarded_new(void)
{
    char *pages =
        mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(pages != MAP_FAILED);
    CHECK_INT(sysconf(_SC_PAGESIZE), 4096);
    CHECK_INT(mprotect(pages + ROOM, 4096, PROT_NONE), 0);
    return pages;
}

static void guarded_free(char *pages)
{
    munmap(pages, ROOM + 4096);
}

/* Scans a copy whose last byte is the last one before the guard. */
static enum mp_json_fault scan_at_guard(struct pair *pair, char *pages, struct mp_str bytes)
{
    CHECK(bytes.size <= ROOM);
    memcpy(pages + ROOM - bytes.size, bytes.data, bytes.size);
    return scan(pair, mp_str_n(pages + ROOM - bytes.size, bytes.size));
}

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint32_t dice(uint32_t sides)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)((state >> 32) % sides);
}

/* Objects of every size from 2 to 400, the string, number or array filling them up. */
static void no_read_past_the_end_of_a_good_record(void)
{
    char *pages = guarded_new();
    struct pair pair = pair_new();
    char bytes[512];

    CHECK_INT(scan_at_guard(&pair, pages, MP_STR("")), MP_JSON_EMPTY);
    CHECK_INT(scan_at_guard(&pair, pages, MP_STR("{}")), MP_JSON_OK);
    for (size_t size = 8; size < 400; size++) {
        memcpy(bytes, "{\"k\":\"", 6);
        memset(bytes + 6, 'x', size - 8);
        memcpy(bytes + size - 2, "\"}", 2);
        CHECK_INT(scan_at_guard(&pair, pages, mp_str_n(bytes, size)), MP_JSON_OK);
        CHECK_INT(pair.record.fields[0].text.size, size - 8);
        if (size > 9) { /* an escape last */
            memcpy(bytes + size - 4, "\\n\"}", 4);
            CHECK_INT(scan_at_guard(&pair, pages, mp_str_n(bytes, size)), MP_JSON_OK);
            CHECK_INT(pair.record.fields[0].text.size, size - 9);
        }
        memcpy(bytes, "{\"k\": ", 6);
        memset(bytes + 6, '7', size - 6);
        bytes[size - 1] = '}';
        CHECK_INT(scan_at_guard(&pair, pages, mp_str_n(bytes, size)),
                  size - 7 < 309 ? MP_JSON_OK : MP_JSON_NUMBER_RANGE);
        memcpy(bytes, "{\"k\":[1", 7);
        memset(bytes + 7, ' ', size - 7);
        memcpy(bytes + size - 1, "}", 1);
        CHECK_INT(scan_at_guard(&pair, pages, mp_str_n(bytes, size)), MP_JSON_SYNTAX);
        if (size > 8) {
            memcpy(bytes + size - 2, "]}", 2);
            CHECK_INT(scan_at_guard(&pair, pages, mp_str_n(bytes, size)), MP_JSON_OK);
            CHECK_STR(pair.record.fields[0].text, MP_STR("[1]"));
        }
        memset(bytes, ' ', size);
        memcpy(bytes, "{}", 2);
        CHECK_INT(scan_at_guard(&pair, pages, mp_str_n(bytes, size)), MP_JSON_OK);
        memset(bytes, ' ', size);
        memcpy(bytes + size - 2, "{}", 2);
        CHECK_INT(scan_at_guard(&pair, pages, mp_str_n(bytes, size)), MP_JSON_OK);
    }
    pair_free(&pair);
    guarded_free(pages);
}

static const char *const seeds[] = {
    "{\"uuid\":\"6fb58ee0-57a2-77ce\",\"event\":\"$autocapture\",\"team_id\":42847,\"properties\":"
    "{\"$os\":\"Windows\",\"price\":940.8,\"is_trial\":false,\"coupon\":null,\"tags\":[\"alpha\"],"
    "\"geo\":{\"lat\":87.050441,\"lon\":-153.785563,\"city\":\"Lyon\"}},\"ip\":\"88.244.107.94\"}",
    "{\"title\":\"quartz quote\\\"d na\xc3\xafve \xe6\x9d\xb1\xe4\xba\xac emoji\xf0\x9f\x98\x80 "
    "tab\\there\",\"p\":{\"\\u00e9\":\"\\ud83d\\ude00\",\"s\":\"\\/\"},\"n\":null}",
    "{ \"a\" : [ 1 , 2.5e3 , -0 , true , { \"b\" : [ ] } ] , \"a\" : { } }\r\n",
    "{\"chain\":\"a.nav-link.btn:attr__class=\\\"nav-link "
    "btn\\\"attr__href=\\\"/search\\\"nth-child=\\\"1\\\"\"}",
    "{\"i\":9223372036854775807,\"b\":9223372036854775808,\"d\":1.7976931348623157e308,\"z\":-0.0}",
    "{\"\\\\\":\"\\\\\\\\\\\\\",\"\\\"\":\"\\\\\\\"\",\"[\":\"{\",\":\":\",\"}",
    "{\"a\":[[[[[[{\"b\":{\"c\":{\"d\":[[]]}}}]]]]]],\"t\":true,\"f\":false,\"n\":null}",
};
#define SEEDS (sizeof(seeds) / sizeof(*seeds))

/* Every record cut at every byte, against the guard. */
static void cut_records_are_refused_alike(void)
{
    char *pages = guarded_new();
    struct pair pair = pair_new();

    for (size_t k = 0; k < SEEDS; k++)
        for (size_t size = 0; size <= strlen(seeds[k]); size++) {
            enum mp_json_fault fault = scan_at_guard(&pair, pages, mp_str_n(seeds[k], size));

            if (strchr(seeds[k] + size, '}'))
                CHECK(fault != MP_JSON_OK);
            else
                CHECK_INT(fault, MP_JSON_OK);
            scan_at_guard(&pair, pages, mp_str_n(seeds[k] + size, strlen(seeds[k]) - size));
        }
    pair_free(&pair);
    guarded_free(pages);
}

/* Bytes that matter, and some that do not. */
static char any_byte(void)
{
    static const char chosen[] =
        "\"\"\"\"\\\\\\\\{}[]:,,:  \n\t0123456789-+.eEtrufalsn/bx\x01\x1f\x7f"
        "\x80\x9f\xa0\xbf\xc0\xc2\xe0\xe2\xed\xef\xf0\xf4\xf5\xff";

    return dice(8) ? chosen[dice(sizeof(chosen) - 1)] : (char)dice(256);
}

/* Changes some bytes, takes some out, puts some in, repeats a piece. */
static size_t mutate(char *bytes, size_t size, size_t most)
{
    for (uint32_t changes = 1 + dice(4); changes; changes--) {
        size_t at = dice((uint32_t)size + 1), length = dice(1 + dice(70));

        switch (dice(5)) {
        case 0:
        case 1:
            if (at < size)
                bytes[at] = any_byte();
            break;
        case 2:
            if (size < most) {
                memmove(bytes + at + 1, bytes + at, size - at);
                bytes[at] = any_byte();
                size++;
            }
            break;
        case 3:
            if (at + length <= size) {
                memmove(bytes + at, bytes + at + length, size - at - length);
                size -= length;
            }
            break;
        default:
            if (at + length <= size && size + length <= most) {
                memmove(bytes + at + length, bytes + at, size - at);
                size += length;
            }
        }
    }
    return size;
}

static void mutated_records_are_answered_alike(void)
{
    char *pages = guarded_new();
    struct pair pair = pair_new();
    char bytes[1024];
    uint32_t good = 0, rounds = 150000;

    for (uint32_t round = 0; round < rounds; round++) {
        const char *seed = seeds[dice(SEEDS)];
        size_t size = strlen(seed);

        memcpy(bytes, seed, size);
        size = mutate(bytes, size, sizeof(bytes));
        good += scan_at_guard(&pair, pages, mp_str_n(bytes, size)) == MP_JSON_OK;
        if (mp_json_key_count(pair.fast) > 5000)
            forget_keys(&pair);
    }
    CHECK(good > rounds / 50); /* both answers were tried */
    CHECK(good < rounds / 2);
    pair_free(&pair);
    guarded_free(pages);
}

/* Strings of quotes, backslashes and little else, of all sizes around the blocks. */
static void random_quotes_and_backslashes_are_answered_alike(void)
{
    char *pages = guarded_new();
    struct pair pair = pair_new();
    char bytes[256];

    for (int round = 0; round < 150000; round++) {
        size_t size = 8 + dice(200), fill = size - 8;
        static const char few[] = "\\\\\\\\\\\"n x";

        memcpy(bytes, "{\"k\":\"", 6);
        for (size_t k = 0; k < fill; k++)
            bytes[6 + k] = few[dice(sizeof(few) - 1 - dice(3))];
        if (dice(2))
            memset(bytes + 6, '\\', dice((uint32_t)fill + 1));
        memcpy(bytes + size - 2, "\"}", 2);
        scan_at_guard(&pair, pages, mp_str_n(bytes, size));
    }
    pair_free(&pair);
    guarded_free(pages);
}

/* A run of n backslashes is closed by the quote exactly when n is even. */
static void runs_of_backslashes_over_block_borders(void)
{
    struct pair pair = pair_new();
    char bytes[512];

    for (size_t fill = 0; fill < 140; fill++)
        for (size_t run = 0; run < 140; run++) {
            size_t size = 6;

            memcpy(bytes, "{\"k\":\"", 6);
            memset(bytes + size, 'x', fill);
            size += fill;
            memset(bytes + size, '\\', run);
            size += run;
            memcpy(bytes + size, "\"}", 2);
            size += 2;
            CHECK_FAULT(&pair, mp_str_n(bytes, size), run % 2 ? MP_JSON_SYNTAX : MP_JSON_OK);
            if (run % 2 == 0)
                CHECK_INT(pair.record.fields[0].text.size, fill + run / 2);
        }
    pair_free(&pair);
}

/* Strict UTF-8 of one to four bytes, from the ranges of the standard's table 3-7. */
static bool is_utf8(const unsigned char *b, size_t size)
{
    static const unsigned char rows[][8] = {
        {0xc2, 0xdf, 0x80, 0xbf, 0, 0, 0, 0},
        {0xe0, 0xe0, 0xa0, 0xbf, 0x80, 0xbf, 0, 0},
        {0xe1, 0xec, 0x80, 0xbf, 0x80, 0xbf, 0, 0},
        {0xed, 0xed, 0x80, 0x9f, 0x80, 0xbf, 0, 0},
        {0xee, 0xef, 0x80, 0xbf, 0x80, 0xbf, 0, 0},
        {0xf0, 0xf0, 0x90, 0xbf, 0x80, 0xbf, 0x80, 0xbf},
        {0xf1, 0xf3, 0x80, 0xbf, 0x80, 0xbf, 0x80, 0xbf},
        {0xf4, 0xf4, 0x80, 0x8f, 0x80, 0xbf, 0x80, 0xbf},
    };
    size_t at = 0;

    while (at < size) {
        size_t row, length = 1;

        if (b[at] < 0x80) {
            at++;
            continue;
        }
        for (row = 0; row < 8; row++)
            if (b[at] >= rows[row][0] && b[at] <= rows[row][1])
                break;
        if (row == 8)
            return false;
        for (; length < 4 && rows[row][2 * length]; length++)
            if (at + length >= size || b[at + length] < rows[row][2 * length] ||
                b[at + length] > rows[row][2 * length + 1])
                return false;
        at += length;
    }
    return true;
}

/* Bytes worth trying: the edges of every range above, and their neighbours. */
static const unsigned char edges[] = {
    0x20, 0x41, 0x7f, 0x80, 0x81, 0x8f, 0x90, 0x91, 0x9f, 0xa0, 0xa1,
    0xbf, 0xc0, 0xc1, 0xc2, 0xc3, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
    0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf7, 0xf8, 0xfb, 0xfc, 0xff,
};
#define EDGES (sizeof(edges) / sizeof(*edges))

static void check_utf8(struct pair *pair, const unsigned char *b, size_t size, size_t fill)
{
    char bytes[256];
    bool good = is_utf8(b, size);

    memcpy(bytes, "{\"k\":\"", 6);
    memset(bytes + 6, 'x', fill);
    memcpy(bytes + 6 + fill, b, size);
    memcpy(bytes + 6 + fill + size, "\"}", 2);
    CHECK_FAULT(pair, mp_str_n(bytes, 8 + fill + size), good ? MP_JSON_OK : MP_JSON_UTF8);
}

static void utf8_every_pair_of_bytes(void)
{
    struct pair pair = pair_new();

    for (unsigned a = 0x80; a < 0x100; a++)
        for (unsigned b = 0x5d; b < 0x100; b++) {
            unsigned char bytes[2] = {(unsigned char)a, (unsigned char)b};

            for (size_t fill = 54; fill < 60; fill++) /* the border of a block is at 58 */
                check_utf8(&pair, bytes, 2, fill);
            check_utf8(&pair, bytes, 2, 25);
        }
    pair_free(&pair);
}

static void utf8_triples_and_quadruples_of_edges(void)
{
    struct pair pair = pair_new();

    for (size_t a = 0; a < EDGES; a++)
        for (size_t b = 0; b < EDGES; b++)
            for (size_t c = 0; c < EDGES; c++) {
                unsigned char bytes[4] = {edges[a], edges[b], edges[c], 0};

                check_utf8(&pair, bytes, 3, 56);
                for (size_t d = 0; edges[a] >= 0x80 && d < EDGES; d++) {
                    bytes[3] = edges[d];
                    check_utf8(&pair, bytes, 4, 55 + d % 4);
                }
            }
    pair_free(&pair);
}

/* Every character of Unicode, and every surrogate, spelled plain at a border of blocks. */
static void utf8_every_character(void)
{
    struct pair pair = pair_new();

    for (uint32_t c = 0x80; c < 0x110100; c += c < 0x10000 ? 1 : 7) {
        unsigned char b[4];
        size_t size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

        for (size_t k = size - 1; k > 0; k--)
            b[k] = (unsigned char)(0x80 | (c >> 6 * (size - 1 - k) & 0x3f));
        b[0] = (unsigned char)((0xf00 >> size & 0xff) | c >> 6 * (size - 1));
        CHECK_INT(is_utf8(b, size), (c < 0xd800 || c > 0xdfff) && c < 0x110000);
        check_utf8(&pair, b, size, 55 + c % 4);
    }
    pair_free(&pair);
}

/* A character cut by the end of the record, at every size around a block. */
static void utf8_cut_by_the_end(void)
{
    char *pages = guarded_new();
    struct pair pair = pair_new();
    char bytes[256];

    for (size_t fill = 0; fill < 140; fill++)
        for (size_t length = 1; length < 4; length++) {
            memcpy(bytes, "{\"k\":\"", 6);
            memset(bytes + 6, 'x', fill);
            memcpy(bytes + 6 + fill, "\xf0\x9f\x98\x80", length);
            CHECK_INT(scan_at_guard(&pair, pages, mp_str_n(bytes, 6 + fill + length)),
                      MP_JSON_UTF8);
            CHECK_INT(pair.at, 6 + fill);
        }
    pair_free(&pair);
    guarded_free(pages);
}

#if defined(__x86_64__) || defined(__aarch64__)
/* Stage one alone, on bytes that are nothing in particular: the same verdict, and the same places
 * where it is good. */
static void index_is_alike(mp_json_index_fn *fill)
{
    uint32_t places[4][256];
    struct mp_json_index fast = {places[0], places[1]}, plain = {places[2], places[3]};
    char *pages = guarded_new();
    uint32_t good = 0;

    for (int round = 0; round < 200000; round++) {
        size_t size = dice(200);
        char *bytes = pages + ROOM - size;
        bool verdict;

        memset(bytes, 'x', size);
        for (uint32_t changes = dice(12); size && changes; changes--)
            bytes[dice(8) ? dice((uint32_t)size) : size - 1] = any_byte();
        verdict = fill(&fast, bytes, size);
        CHECK_INT(verdict, mp_json_index_portable(&plain, bytes, size));
        good += verdict;
        for (size_t k = 0; verdict && (k == 0 || fast.escapes[k - 1] != UINT32_MAX); k++)
            CHECK_INT(fast.escapes[k], plain.escapes[k]);
        for (size_t k = 0; verdict && (k == 0 || fast.closers[k - 1] != UINT32_MAX); k++)
            CHECK_INT(fast.closers[k], plain.closers[k]);
    }
    CHECK(good > 20000);
    guarded_free(pages);
}

static void index_is_alike_on_raw_bytes(void)
{
#ifdef __x86_64__
    if (mp_json_has_avx512())
        index_is_alike(mp_json_index_avx512);
    if (mp_json_has_avx2())
        index_is_alike(mp_json_index_avx2);
#else
    index_is_alike(mp_json_index_neon);
#endif
}
#endif

int main(int argc, char **argv)
{
    static const struct test tests[] = {
#if defined(__x86_64__) || defined(__aarch64__)
        TEST(index_is_alike_on_raw_bytes),
#endif
        TEST(no_read_past_the_end_of_a_good_record),
        TEST(cut_records_are_refused_alike),
        TEST(mutated_records_are_answered_alike),
        TEST(random_quotes_and_backslashes_are_answered_alike),
        TEST(runs_of_backslashes_over_block_borders),
        TEST(utf8_every_pair_of_bytes),
        TEST(utf8_triples_and_quadruples_of_edges),
        TEST(utf8_every_character),
        TEST(utf8_cut_by_the_end),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
