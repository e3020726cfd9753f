/* tests/parquet/reader.c - values of each encoding, by the format's own examples; and what is wrong
 * with a chunk is said with its column, row group and page. */
#include "parquet/reader.h"

#include "base/buf.h"
#include "harness/test.h"
#include "parquet/reader_priv.h"

enum { TYPE_INT32 = 1, TYPE_BYTES = 6 };

static struct mp_err err;
static struct mp_parquet_batch batch;
static struct mp_buf chunk;
static struct mp_parquet_reader *reader;

/* ---- a file of one leaf ---------------------------------------------------------------------- */

static struct mp_parquet_node nodes[2];
static struct mp_parquet_column_chunk told;
static struct mp_parquet_row_group group = {.chunks = &told};
static const uint32_t leaves[] = {1};
static const struct mp_parquet_footer footer = {.nodes = nodes,
                                                .node_count = 2,
                                                .leaves = leaves,
                                                .leaf_count = 1,
                                                .groups = &group,
                                                .group_count = 1};

static void begin(int8_t physical, bool optional, int64_t rows)
{
    mp_buf_fini(&chunk);
    chunk = MP_BUF_INIT(1 << 20);
    nodes[1] = (struct mp_parquet_node){
        .name = MP_STR("x"), .physical = physical, .definition_max = optional, .type_length = 4};
    told = (struct mp_parquet_column_chunk){.value_count = rows};
    group.rows = rows;
    if (!reader)
        reader = mp_parquet_reader_new(1 << 16);
}

/* A page that is not compressed. raw_bytes -1: what it has. */
static void add_page(int kind, int encoding, int count, struct mp_str body, int raw_bytes)
{
    struct mp_thrift thrift = {.out = &chunk};
    bool data = kind == MP_PAGE_DATA;

    mp_thrift_begin(&thrift);
    mp_thrift_i32(&thrift, 1, kind);
    mp_thrift_i32(&thrift, 2, raw_bytes < 0 ? (int32_t)body.size : raw_bytes);
    mp_thrift_i32(&thrift, 3, (int32_t)body.size);
    mp_thrift_struct(&thrift, data ? 5 : 7);
    mp_thrift_i32(&thrift, 1, count);
    mp_thrift_i32(&thrift, 2, encoding);
    if (data) {
        mp_thrift_i32(&thrift, 3, MP_ENCODING_RLE);
        mp_thrift_i32(&thrift, 4, MP_ENCODING_RLE);
    }
    mp_thrift_end(&thrift);
    mp_thrift_end(&thrift);
    mp_buf_add_str(&chunk, body);
}

#define BYTES(...) mp_str_n((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static enum mp_code next(void)
{
    told.bytes = (int64_t)chunk.size;
    return mp_parquet_reader_next(reader, &err, &batch);
}

static enum mp_code open_and_next(void)
{
    enum mp_code code;

    told.bytes = (int64_t)chunk.size;
    code = mp_parquet_reader_open(reader, &footer, 0, 0, mp_buf_str(&chunk), &err);
    return code ? code : next();
}

static int32_t number(uint32_t i)
{
    int32_t value;

    memcpy(&value, batch.fixed + (size_t)i * 4, 4);
    return value;
}

static void fails(enum mp_code code, const char *text)
{
    CHECK_INT(open_and_next(), code);
    CHECK(strstr(err.text, text));
    CHECK(strstr(err.text, "column \"x\": row group 0, page "));
}

/* ---- encodings, by the examples of "Encodings" ----------------------------------------------- */

static void bit_packed_values_begin_at_the_lowest_bit(void)
{
    struct mp_rle_in rle;
    uint32_t values[8];

    mp_rle_in_begin(&rle, BYTES(0x03, 0x88, 0xc6, 0xfa), 3);
    CHECK(mp_rle_in_take(&rle, 8, values));
    for (uint32_t i = 0; i < 8; i++)
        CHECK_INT(values[i], i);
    CHECK(!mp_rle_in_take(&rle, 1, values));
}

static void runs_follow_each_other(void)
{
    struct mp_rle_in rle;
    uint32_t values[12];

    mp_rle_in_begin(&rle, BYTES(0x06, 0x05, 0x03, 0x88, 0xc6, 0xfa, 0x02, 0x07), 3);
    CHECK(mp_rle_in_take(&rle, 12, values));
    CHECK_INT(values[2], 5);
    CHECK_INT(values[3], 0);
    CHECK_INT(values[10], 7);
    CHECK_INT(values[11], 7);
}

static void a_run_of_a_value_that_its_width_cannot_hold_is_no_run(void)
{
    struct mp_rle_in rle;
    uint32_t value;

    mp_rle_in_begin(&rle, BYTES(0x02, 0x08), 3);
    CHECK(!mp_rle_in_take(&rle, 1, &value));
}

#define DELTAS                                                                                     \
    0x80, 0x01, 0x04, 0x08, 0x0e, 0x03, 0x02, 0x00, 0x00, 0x00, 0xc0, 0x3f, 0x00, 0x00, 0x00,      \
        0x00, 0x00, 0x00

static void deltas_are_summed_up(void)
{
    static const int32_t want[] = {7, 5, 3, 1, 2, 3, 4, 5};

    begin(TYPE_INT32, false, 8);
    add_page(MP_PAGE_DATA, 5, 8, BYTES(DELTAS), -1);
    CHECK_OK(open_and_next(), err);
    CHECK_INT(batch.values, 8);
    for (uint32_t i = 0; i < 8; i++)
        CHECK_INT(number(i), want[i]);
    CHECK_OK(next(), err);
    CHECK_INT(batch.rows, 0);
}

static void deltas_that_are_too_few_are_told(void)
{
    begin(TYPE_INT32, false, 9);
    add_page(MP_PAGE_DATA, 5, 9, BYTES(DELTAS), -1);
    fails(MP_BAD_DATA, "8 deltas are fewer than the values");
    begin(TYPE_INT32, false, 8);
    add_page(MP_PAGE_DATA, 5, 8, BYTES(0x80, 0x01, 0x04, 0x08, 0x0e, 0x03, 0x41, 0, 0, 0), -1);
    fails(MP_BAD_DATA, "deltas of 65 bits");
    begin(TYPE_INT32, false, 8);
    add_page(MP_PAGE_DATA, 5, 8, BYTES(0x80, 0x01, 0x03, 0x08, 0x0e), -1);
    fails(MP_BAD_DATA, "blocks of 128 deltas in 3 miniblocks");
}

/* Lengths 5, 5, 6, 6: deltas 0, 1, 0. */
#define LENGTHS 0x80, 0x01, 0x04, 0x04, 0x0a, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00

static void texts_lie_behind_their_lengths(void)
{
    begin(TYPE_BYTES, false, 4);
    add_page(MP_PAGE_DATA, 6, 4,
             BYTES(LENGTHS, 'H', 'e', 'l', 'l', 'o', 'W', 'o', 'r', 'l', 'd', 'F', 'o', 'o', 'b',
                   'a', 'r', 'A', 'B', 'C', 'D', 'E', 'F'),
             -1);
    CHECK_OK(open_and_next(), err);
    CHECK_STR(batch.texts[0], MP_STR("Hello"));
    CHECK_STR(batch.texts[1], MP_STR("World"));
    CHECK_STR(batch.texts[2], MP_STR("Foobar"));
    CHECK_STR(batch.texts[3], MP_STR("ABCDEF"));
    begin(TYPE_BYTES, false, 4);
    add_page(MP_PAGE_DATA, 6, 4, BYTES(LENGTHS, 'H', 'e', 'l', 'l', 'o', 'W'), -1);
    fails(MP_BAD_DATA, "a value of 5 bytes, 1 are left");
}

static void texts_share_what_they_begin_with(void)
{
    /* axis, axle, babble, babyhood: prefixes 0, 2, 0, 3 and suffixes of 4, 2, 6, 5 bytes */
    begin(TYPE_BYTES, false, 4);
    add_page(MP_PAGE_DATA, 7, 4,
             BYTES(0x80, 0x01, 0x04, 0x04, 0x00, 0x03, 0x03, 0, 0, 0, 0x44, 0x01, 0, 0, 0, 0, 0, 0,
                   0, 0, 0, 0, /* deltas 2, -2, 3 less -2: 4, 0, 5 */
                   0x80, 0x01, 0x04, 0x04, 0x08, 0x03, 0x03, 0, 0, 0, 0x70, 0x00, 0, 0, 0, 0, 0, 0,
                   0, 0, 0, 0, /* deltas -2, 4, -1 less -2: 0, 6, 1 */
                   'a', 'x', 'i', 's', 'l', 'e', 'b', 'a', 'b', 'b', 'l', 'e', 'y', 'h', 'o', 'o',
                   'd'),
             -1);
    CHECK_OK(open_and_next(), err);
    CHECK_STR(batch.texts[0], MP_STR("axis"));
    CHECK_STR(batch.texts[1], MP_STR("axle"));
    CHECK_STR(batch.texts[2], MP_STR("babble"));
    CHECK_STR(batch.texts[3], MP_STR("babyhood"));
}

static void streams_are_put_together(void)
{
    begin(MP_PHYSICAL_FLOAT, false, 3);
    add_page(MP_PAGE_DATA, 9, 3,
             BYTES(0xaa, 0x00, 0xa3, 0xbb, 0x11, 0xb4, 0xcc, 0x22, 0xc5, 0xdd, 0x33, 0xd6), -1);
    CHECK_OK(open_and_next(), err);
    CHECK_STR(mp_str_n(batch.fixed, 12),
              BYTES(0xaa, 0xbb, 0xcc, 0xdd, 0x00, 0x11, 0x22, 0x33, 0xa3, 0xb4, 0xc5, 0xd6));
}

static void nulls_have_no_value(void)
{
    begin(TYPE_INT32, true, 5);
    add_page(MP_PAGE_DATA, 0, 5,
             BYTES(2, 0, 0, 0, 0x03, 0x12, /* levels: packed 0, 1, 0, 0, 1 */
                   1, 0, 0, 0, 2, 0, 0, 0),
             -1);
    CHECK_OK(open_and_next(), err);
    CHECK_INT(batch.rows, 5);
    CHECK_INT(batch.values, 2);
    CHECK_INT(batch.validity[0], 0x12);
    CHECK_INT(number(1), 2);
}

/* ---- what is wrong --------------------------------------------------------------------------- */

static void pages_that_contradict_themselves_are_told(void)
{
    begin(TYPE_INT32, false, 3);
    add_page(MP_PAGE_DATA, 0, 2, BYTES(1, 0, 0, 0, 2, 0, 0, 0), -1);
    CHECK_OK(open_and_next(), err);
    CHECK_INT(next(), MP_BAD_DATA);
    CHECK(strstr(err.text, "page 1: 1 values are missing at the end of the chunk"));

    begin(TYPE_INT32, false, 1);
    add_page(MP_PAGE_DATA, 0, 2, BYTES(1, 0, 0, 0, 2, 0, 0, 0), -1);
    fails(MP_BAD_DATA, "2 values, 1 are left in the chunk");

    begin(TYPE_INT32, false, 2);
    add_page(MP_PAGE_DATA, 0, 2, BYTES(1, 0, 0, 0, 2, 0, 0), -1);
    fails(MP_BAD_DATA, "PLAIN: 7 bytes are left for the next 2 values");

    begin(TYPE_INT32, false, 1);
    add_page(MP_PAGE_DATA, 0, 1, BYTES(1, 0, 0, 0), 5);
    fails(MP_BAD_DATA, "4 bytes that are not compressed, 5 announced");

    begin(TYPE_INT32, true, 9);
    add_page(MP_PAGE_DATA, 0, 9, BYTES(2, 0, 0, 0, 0x03, 0x00), -1);
    fails(MP_BAD_DATA, "levels end 9 rows early");

    begin(TYPE_INT32, true, 1);
    add_page(MP_PAGE_DATA, 0, 1, BYTES(9, 0, 0, 0, 0x03, 0x00), -1);
    fails(MP_BAD_DATA, "levels of 9 bytes in a page of 6");

    begin(TYPE_BYTES, false, 1);
    add_page(MP_PAGE_DATA, 0, 1, BYTES(5, 0, 0, 0, 'a', 'b'), -1);
    fails(MP_BAD_DATA, "a value of 5 bytes, 2 are left in the page");

    begin(TYPE_INT32, false, 1);
    mp_buf_add(&chunk, "\x15\x00\x15\x08", 4);
    fails(MP_BAD_DATA, "a byte is missing");
}

static void a_chunk_without_bytes_lies_nowhere(void)
{
    begin(TYPE_INT32, false, 1);
    mp_buf_add(&chunk, "", 1);
    told.start = INT64_MAX; /* not checked where there are no bytes: F3 of footer.h */
    CHECK(mp_parquet_chunk_in(mp_buf_str(&chunk), &told).data == chunk.data);
    mp_buf_clear(&chunk);
    fails(MP_BAD_DATA, "1 values are missing at the end of the chunk");
}

static void dictionaries_that_do_not_fit_are_told(void)
{
    begin(TYPE_INT32, false, 2);
    add_page(MP_PAGE_DICTIONARY, 0, 1, BYTES(7, 0, 0, 0), -1);
    add_page(MP_PAGE_DATA, 8, 2, BYTES(1, 0x04, 0x00), -1);
    CHECK_OK(open_and_next(), err);
    CHECK_INT(number(1), 7);

    begin(TYPE_INT32, false, 2);
    add_page(MP_PAGE_DICTIONARY, 0, 1, BYTES(7, 0, 0, 0), -1);
    add_page(MP_PAGE_DATA, 8, 2, BYTES(1, 0x04, 0x01), -1);
    fails(MP_BAD_DATA, "page 1: RLE_DICTIONARY: index 1 in a dictionary of 1 values");

    begin(TYPE_INT32, false, 2);
    add_page(MP_PAGE_DATA, 8, 2, BYTES(1, 0x04, 0x00), -1);
    fails(MP_BAD_DATA, "indices without a dictionary");

    begin(TYPE_INT32, false, 2);
    add_page(MP_PAGE_DICTIONARY, 0, 2, BYTES(7, 0, 0, 0), -1);
    fails(MP_BAD_DATA, "a dictionary of 2 values in 4 bytes");

    begin(TYPE_INT32, false, 2);
    add_page(MP_PAGE_DICTIONARY, 0, 1, BYTES(7, 0, 0, 0), -1);
    add_page(MP_PAGE_DICTIONARY, 0, 1, BYTES(7, 0, 0, 0), -1);
    fails(MP_BAD_DATA, "a second dictionary");
}

static void forms_that_are_not_read_are_refused(void)
{
    begin(TYPE_INT32, false, 1);
    add_page(MP_PAGE_DATA, 6, 1, BYTES(0), -1);
    fails(MP_REFUSED, "values of type 1 in encoding 6 are not read");

    begin(TYPE_INT32, false, 1);
    add_page(MP_PAGE_DATA, 0, 1, BYTES(1, 0, 0, 0), 1 << 20);
    fails(MP_FULL, "a page of 1048576 bytes, at most 65536 are read");

    begin(TYPE_INT32, false, 1);
    told.codec = 4;
    CHECK_INT(mp_parquet_reader_check(&footer, 0, &err), MP_REFUSED);
    CHECK(strstr(err.text, "codec 4 is not read"));
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* [[1, null], null, [], [2]]: optional, repeated, optional. */
static void lists(uint16_t definition_max)
{
    begin(TYPE_INT32, false, 5);
    nodes[1].repetition_max = 1;
    nodes[1].definition_max = definition_max;
    group.rows = 4;
}

static void levels_tell_rows_and_nulls(void)
{
    static const uint8_t repetitions[] = {0, 1, 0, 0, 0}, definitions[] = {3, 2, 0, 1, 3};

    lists(3);
    add_page(MP_PAGE_DATA, 0, 5,
             BYTES(2, 0, 0, 0, 3, 0x02, 3, 0, 0, 0, 3, 0x4b, 0x03, 7, 0, 0, 0, 8, 0, 0, 0), -1);
    CHECK_INT(open_and_next(), MP_OK);
    CHECK_INT(batch.rows, 5);
    CHECK_INT(batch.values, 2);
    CHECK_INT(batch.validity[0], 0x11);
    CHECK(memcmp(batch.repetitions, repetitions, 5) == 0);
    CHECK(memcmp(batch.definitions, definitions, 5) == 0);
    CHECK(memcmp(batch.fixed, "\7\0\0\0\10\0\0\0", 8) == 0);
    CHECK_INT(next(), MP_OK);
    CHECK_INT(batch.rows, 0);
}

static void levels_that_cannot_be_are_refused(void)
{
    lists(2); /* two bits hold a 3 too */
    add_page(MP_PAGE_DATA, 0, 5,
             BYTES(2, 0, 0, 0, 3, 0x02, 3, 0, 0, 0, 3, 0x4b, 0x03, 7, 0, 0, 0, 8, 0, 0, 0), -1);
    fails(MP_BAD_DATA, "a level of 3, at most 2 are there");

    lists(3);
    add_page(MP_PAGE_DATA, 0, 5,
             BYTES(2, 0, 0, 0, 3, 0x03, 3, 0, 0, 0, 3, 0x4b, 0x03, 7, 0, 0, 0, 8, 0, 0, 0), -1);
    fails(MP_BAD_DATA, "the chunk begins inside a row");

    lists(3);
    add_page(MP_PAGE_DATA, 0, 5, BYTES(2, 0, 0, 0, 3, 0x02, 1, 0, 0, 0, 3), -1);
    fails(MP_BAD_DATA, "the page's levels end 5 rows early");

    lists(3);
    add_page(MP_PAGE_DATA, 0, 5, BYTES(2, 0, 0, 0, 3, 0x02, 1, 0, 0), -1);
    fails(MP_BAD_DATA, "3 bytes hold no levels");
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(bit_packed_values_begin_at_the_lowest_bit),
        TEST(levels_tell_rows_and_nulls),
        TEST(levels_that_cannot_be_are_refused),
        TEST(runs_follow_each_other),
        TEST(a_run_of_a_value_that_its_width_cannot_hold_is_no_run),
        TEST(deltas_are_summed_up),
        TEST(deltas_that_are_too_few_are_told),
        TEST(texts_lie_behind_their_lengths),
        TEST(texts_share_what_they_begin_with),
        TEST(streams_are_put_together),
        TEST(nulls_have_no_value),
        TEST(pages_that_contradict_themselves_are_told),
        TEST(a_chunk_without_bytes_lies_nowhere),
        TEST(dictionaries_that_do_not_fit_are_told),
        TEST(forms_that_are_not_read_are_refused),
    };
    int code = test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));

    mp_parquet_reader_free(reader);
    mp_buf_fini(&chunk);
    return code;
}
