/* tests/column/variant.c - VARIANTs byte by byte, worked out by hand from VariantEncoding.md. */
#include "column/variant.h"

#include "base/buf.h"
#include "harness/test.h"

#include <stdio.h>

/* "0c01" for what a text becomes; "-" for none. */
static const char *hex(struct mp_str bytes)
{
    static char text[4][4096];
    static unsigned turn;
    char *at = text[++turn % 4];

    if (!bytes.size)
        return "-";
    CHECK(bytes.size * 2 < sizeof(text[0]));
    for (size_t i = 0; i < bytes.size; i++)
        snprintf(at + 2 * i, 3, "%02x", (unsigned char)bytes.data[i]);
    return at;
}

#define CHECK_HEX(bytes, want) CHECK_STR(mp_str_c(hex(bytes)), mp_str_c(want))

static struct mp_variant_row encode(struct mp_variant *variant, const char *json)
{
    struct mp_variant_row row;

    if (!mp_variant_encode(variant, mp_str_c(json), &row))
        test_fail(__FILE__, __LINE__, "refused: %s", json);
    return row;
}

/* clang-format off */
static const struct {
    const char *json, *metadata, *value;
} vectors[] = {
    {"null", "110000", "00"}, {"true", "110000", "04"}, {" false ", "110000", "08"},
    {"0", "110000", "0c00"}, {"-0", "110000", "0c00"}, {"1", "110000", "0c01"}, {"-1", "110000", "0cff"},
    {"127", "110000", "0c7f"}, {"-128", "110000", "0c80"}, {"128", "110000", "108000"},
    {"-129", "110000", "107fff"}, {"-32768", "110000", "100080"}, {"32768", "110000", "1400800000"},
    {"-2147483648", "110000", "1400000080"}, {"2147483648", "110000", "180000008000000000"},
    {"9223372036854775807", "110000", "18ffffffffffffff7f"},
    {"-9223372036854775808", "110000", "180000000000000080"},
    /* decimal16, scale 0 */
    {"9223372036854775808", "110000", "280000000000000000800000000000000000"},
    {"-9223372036854775809", "110000", "2800ffffffffffffff7fffffffffffffffff"},
    {"18446744073709551616", "110000", "280000000000000000000100000000000000"},
    {"99999999999999999999999999999999999999", "110000", "2800ffffffff3f228a097ac4865aa84c3b4b"},
    /* 39 digits: a double, 1e38 */
    {"100000000000000000000000000000000000000", "110000", "1cb1a1162ad3ced247"},
    {"1.5", "110000", "1c000000000000f83f"}, {"-0.0", "110000", "1c0000000000000080"},
    {"1e0", "110000", "1c000000000000f03f"}, {"1E-400", "110000", "1c0000000000000000"},
    {"\"\"", "110000", "01"}, {"\"abc\"", "110000", "0d616263"}, {"\"\\u0000\\u00e9\"", "110000", "0d00c3a9"},
    {"[]", "110000", "030000"}, {"{}", "110000", "020000"},
    {"[1,[true]]", "110000", "0302" "000207" "0c01" "0301000104"},
    {"{\"a\":1}", "1101" "0001" "61", "0201" "00" "0002" "0c01"},
    /* ids and offsets by name, values as they came */
    {"{\"b\":2,\"a\":1}", "1102" "000102" "6162", "0202" "0001" "020004" "0c02" "0c01"},
    {"{\"\":null,\"a\":{\"\":[]}}", "1102" "000001" "61", "0202" "0001" "000109" "00" "0201" "00" "0003" "030000"},
    /* one name, deep and shallow */
    {"{\"x\":{\"x\":{}}}", "1101" "0001" "78", "0201" "00" "0008" "0201" "00" "0003" "020000"},
    /* by bytes: upper case before lower case, 'z' before what is not ASCII */
    {"{\"\xc3\xa9\":0,\"z\":1,\"a\":2,\"A\":3}", "1104" "0001020305" "41617ac3a9",
     "0204" "00010203" "0604020008" "0c00" "0c01" "0c02" "0c03"},
    /* the last of equal names, at its place */
    {"{\"a\":1,\"b\":2,\"a\":\"x\"}", "1102" "000102" "6162", "0202" "0001" "020004" "0c02" "0578"},
    {"{\"a\":{\"b\":[1]},\"a\":0}", "1102" "000102" "6162", "0201" "00" "0002" "0c00"},
};
/* clang-format on */

static void bytes_are_those_of_the_specification(void)
{
    struct mp_variant *variant = mp_variant_new();

    for (unsigned again = 0; again < 2; again++) /* the names of each order are kept */
        for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
            struct mp_variant_row row = encode(variant, vectors[i].json);

            CHECK_HEX(row.metadata, vectors[i].metadata);
            CHECK_HEX(row.value, vectors[i].value);
            CHECK(!row.object);
            CHECK_INT(row.rounded, strlen(vectors[i].json) == 39);
        }
    mp_variant_free(variant);
}

static void lengths_take_the_room_they_need(void)
{
    struct mp_variant *variant = mp_variant_new();
    struct mp_buf text = MP_BUF_INIT(1 << 24);
    struct mp_variant_row row;

    mp_buf_printf(&text, "\"%063d\"", 0);
    row = encode(variant, mp_buf_c(&text));
    CHECK(row.value.size == 64 && (unsigned char)row.value.data[0] == 0xfd);
    mp_buf_clear(&text);
    mp_buf_printf(&text, "\"%064d\"", 0);
    row = encode(variant, mp_buf_c(&text));
    CHECK_INT(row.value.size, 1 + 4 + 64);
    CHECK_HEX(mp_str_n(row.value.data, 6), "404000000030");
    for (unsigned count = 255; count <= 256; count++) {
        mp_buf_clear(&text);
        for (unsigned i = 0; i < count; i++)
            mp_buf_add_c(&text, i ? ",null" : "[null");
        mp_buf_add_c(&text, "]");
        row = encode(variant, mp_buf_c(&text));
        CHECK_INT(row.value.size, count == 255 ? 1 + 1 + 256 + 255 : 1 + 4 + 257 * 2 + 256);
        CHECK_HEX(mp_str_n(row.value.data, 5), count == 255 ? "03ff000102" : "1700010000");
    }
    mp_buf_clear(&text);
    for (unsigned i = 0; i < 70000; i++)
        mp_buf_printf(&text, "%s\"k%05u\":0", i ? "," : "{", 69999 - i);
    mp_buf_add_c(&text, "}");
    row = encode(variant, mp_buf_c(&text));
    /* 420,000 bytes of names and 140,000 of values: three bytes for each offset and id */
    CHECK_INT(row.metadata.size, 1 + 3 + 70001 * 3 + 420000);
    CHECK_HEX(mp_str_n(row.metadata.data, 10), "91701101000000060000");
    CHECK_INT(row.value.size, 1 + 4 + 70000 * 3 + 70001 * 3 + 140000);
    CHECK_HEX(mp_str_n(row.value.data, 11), "6a70110100000000010000");
    /* the first name came last */
    CHECK_HEX(mp_str_n(row.value.data + 5 + 70000 * 3, 6), "de2202dc2202");
    mp_buf_fini(&text);
    mp_variant_free(variant);
}

static void what_is_no_json_is_refused_and_strings_are_taken_as_they_are(void)
{
    static const char *const wrong[] = {"",    "x",   "{",     "[1,]",
                                        "1 2", "NaN", "1e400", "{\"a\":[1e400]}"};
    struct mp_variant *variant = mp_variant_new();
    struct mp_variant_row row;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        CHECK(!mp_variant_encode(variant, mp_str_c(wrong[i]), &row));
    CHECK(mp_variant_encode_string(variant, MP_STR("{\"a"), &row));
    CHECK_HEX(row.metadata, "110000");
    CHECK_HEX(row.value, "0d7b2261");
    CHECK(mp_variant_encode_string(variant, MP_STR(""), &row));
    CHECK_HEX(row.value, "01");
    mp_variant_free(variant);
}

static void members_are_stored_apart(void)
{
    static const struct mp_variant_field fields[] = {{MP_STR_INIT("a"), {.id = MP_TYPE_INT64}},
                                                     {MP_STR_INIT("b"), {.id = MP_TYPE_BOOL}},
                                                     {MP_STR_INIT("d"), {.id = MP_TYPE_DOUBLE}},
                                                     {MP_STR_INIT("s"), {.id = MP_TYPE_VARCHAR}}};
    struct mp_variant *variant = mp_variant_new();
    struct mp_variant_row row;

    mp_variant_set_shape(variant, &(struct mp_variant_shape){fields, 4});
    row = encode(variant, "{\"x\":true,\"s\":\"t\",\"a\":300,\"d\":-0.5,\"b\":false}");
    CHECK(row.object);
    CHECK_HEX(row.metadata, "11050001020304056162647378");
    CHECK_HEX(row.value, "020104000104"); /* x alone is left */
    for (unsigned i = 0; i < 4; i++)
        CHECK_INT(row.parts[i].place, MP_VARIANT_TYPED);
    CHECK_INT(row.parts[0].i64, 300);
    CHECK(!row.parts[1].truth);
    CHECK_DOUBLE(row.parts[2].f64, -0.5);
    CHECK_STR(row.parts[3].bytes, MP_STR("t"));

    /* nothing is left; of another type, null, not there; the last of equal names */
    row = encode(variant, "{\"a\":1,\"s\":null,\"b\":1,\"a\":1.5}");
    CHECK(row.object);
    CHECK_HEX(row.value, "-");
    CHECK_INT(row.parts[0].place, MP_VARIANT_VALUE);
    CHECK_HEX(row.parts[0].bytes, "1c000000000000f83f");
    CHECK_INT(row.parts[1].place, MP_VARIANT_VALUE);
    CHECK_HEX(row.parts[1].bytes, "0c01");
    CHECK_INT(row.parts[2].place, MP_VARIANT_ABSENT);
    CHECK_INT(row.parts[3].place, MP_VARIANT_VALUE);
    CHECK_HEX(row.parts[3].bytes, "00");

    /* a value inside refers to the names of the whole */
    row = encode(variant, "{\"s\":{\"z\":{\"a\":[]}},\"y\":0}");
    CHECK_HEX(row.metadata, "11060001020304050661626473797a");
    CHECK_HEX(row.parts[3].bytes, "02010500080201000003030000");
    CHECK_HEX(row.value, "02010400020c00");

    row = encode(variant, "{}"); /* readers look all of the shape's names up */
    CHECK(row.object && row.parts[0].place == MP_VARIANT_ABSENT);
    CHECK_HEX(row.metadata, "1104000102030461626473");
    CHECK_HEX(row.value, "-");
    row = encode(variant, "[{\"a\":1}]"); /* members of the outermost object only */
    CHECK(!row.object);
    CHECK_HEX(row.metadata, "1101000161");
    CHECK_HEX(row.value, "0301000702010000020c01");
    mp_variant_set_shape(variant, &(struct mp_variant_shape){0});
    row = encode(variant, "{\"a\":1}");
    CHECK(!row.object);
    CHECK_HEX(row.value, "02010000020c01");
    mp_variant_free(variant);
}

static void ever_new_names_do_not_pile_up(void)
{
    struct mp_variant *variant = mp_variant_new();
    struct mp_buf text = MP_BUF_INIT(4096);
    struct mp_variant_row row;

    for (unsigned i = 0; i < 150000; i++) { /* some 15 MiB of names */
        mp_buf_clear(&text);
        mp_buf_printf(&text, "{\"%0100u\":1,\"b\":{\"%0100u\":2}}", i, i);
        row = encode(variant, mp_buf_c(&text));
        CHECK_INT(row.metadata.size, 1 + 1 + 3 + 101);
        CHECK_HEX(row.value, "020200010002090c0102010000020c02");
    }
    mp_buf_fini(&text);
    mp_variant_free(variant);
}

/* ---- which members to store apart ------------------------------------------------------------ */

static void add(struct mp_variant_survey *survey, unsigned count, const char *json)
{
    while (count--)
        mp_variant_survey_add(survey, mp_str_c(json));
}

static void stable_members_are_chosen(void)
{
    static const struct mp_str listed[] = {MP_STR_INIT("n"), MP_STR_INIT("other")};
    struct mp_variant_allow allow = {MP_STR("$"), listed, 2};
    struct mp_variant_survey *survey = mp_variant_survey_new(&allow);
    struct mp_variant_shape shape;

    add(survey, 99, "{\"$a\":1}");
    add(survey, 50, "[{\"$a\":1}]"); /* no object */
    add(survey, 50, "no JSON");
    CHECK_INT(mp_variant_survey_shape(survey, 64).count, 0); /* too few */
    mp_variant_survey_free(survey);

    survey = mp_variant_survey_new(&allow);
    /* of 200: $t and n nearly always, $nul null or text, $rare 9, $mixed 89 % of one type */
    add(survey, 9, "{\"$t\":\"x\",\"n\":1,\"$rare\":true}");
    add(survey, 10, "{\"$t\":\"x\",\"n\":1,\"$often\":true}");
    add(survey, 41, "{\"$t\":\"x\",\"n\":1,\"$nul\":null,\"free\":1}");
    add(survey, 40, "{\"$t\":\"x\",\"n\":1,\"$nul\":\"y\",\"$deep\":{\"$t\":1}}");
    add(survey, 89, "{\"$t\":\"x\",\"n\":0,\"$mixed\":1,\"$d\":0.5}");
    add(survey, 11, "{\"$t\":7,\"n\":1.5,\"$mixed\":\"x\",\"$big\":9223372036854775808}");
    shape = mp_variant_survey_shape(survey, 64);
    CHECK_INT(shape.count, 5);
    CHECK_STR(shape.fields[0].name, MP_STR("$d"));
    CHECK_INT(shape.fields[0].type.id, MP_TYPE_DOUBLE);
    CHECK_STR(shape.fields[1].name, MP_STR("$nul"));
    CHECK_INT(shape.fields[1].type.id, MP_TYPE_VARCHAR);
    CHECK_STR(shape.fields[2].name, MP_STR("$often"));
    CHECK_INT(shape.fields[2].type.id, MP_TYPE_BOOL);
    CHECK_STR(shape.fields[3].name, MP_STR("$t"));
    CHECK_INT(shape.fields[3].type.id, MP_TYPE_VARCHAR);
    CHECK_STR(shape.fields[4].name, MP_STR("n"));
    CHECK_INT(shape.fields[4].type.id, MP_TYPE_INT64);
    shape = mp_variant_survey_shape(survey, 2); /* the most frequent, by name */
    CHECK_INT(shape.count, 2);
    CHECK_STR(shape.fields[0].name, MP_STR("$t"));
    CHECK_STR(shape.fields[1].name, MP_STR("n"));
    mp_variant_survey_free(survey);

    allow.prefix = MP_STR(""); /* none by its prefix */
    survey = mp_variant_survey_new(&allow);
    add(survey, 100, "{\"$t\":\"x\",\"n\":1}");
    shape = mp_variant_survey_shape(survey, 64);
    CHECK_INT(shape.count, 1);
    CHECK_STR(shape.fields[0].name, MP_STR("n"));
    mp_variant_survey_free(survey);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(bytes_are_those_of_the_specification),
        TEST(lengths_take_the_room_they_need),
        TEST(what_is_no_json_is_refused_and_strings_are_taken_as_they_are),
        TEST(members_are_stored_apart),
        TEST(ever_new_names_do_not_pile_up),
        TEST(stable_members_are_chosen),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
