#include "base/civil.h"
#include "base/number.h"
#include "harness/test.h"

#include <math.h>

/* Expected texts are Python's repr of the same doubles, and DuckDB's of floats. */
static void double_text_is_shortest_and_reads_back(void)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {1.0, "1.0"},
        {-0.0, "-0.0"},
        {0.1, "0.1"},
        {1.5, "1.5"},
        {100.0, "100.0"},
        {123456789.0, "123456789.0"},
        {1e15, "1000000000000000.0"},
        {9999999999999998.0, "9999999999999998.0"},
        {1e16, "1e+16"},
        {1e22, "1e+22"},
        {1.5e300, "1.5e+300"},
        {0.0001, "0.0001"},
        {0.00012345, "0.00012345"},
        {0.00001, "1e-05"},
        {0.000015, "1.5e-05"},
        {1e-7, "1e-07"},
        {5e-324, "5e-324"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {0.30000000000000004, "0.30000000000000004"},
        {2.0 / 3.0, "0.6666666666666666"},
        {9007199254740993.0, "9007199254740992.0"},
        {-123.456, "-123.456"},
        /* powers of two whose nearest text of 16 digits is another double's */
        {0x1p-1017, "7.120236347223045e-307"},
        {0x1p-1007, "7.291122019556398e-304"},
        {-0x1p-957, "-8.209073602596753e-289"},
        {0x1p-44, "5.684341886080802e-14"},
        {0x1p89, "6.189700196426902e+26"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
    };
    char text[MP_NUMBER_TEXT];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        size_t length = mp_double_text(cases[i].value, text);

        CHECK_STR(mp_str_n(text, length), mp_str_c(cases[i].text));
    }
    CHECK_STR(mp_str_n(text, mp_double_text(NAN, text)), MP_STR("nan"));
}

static void float_text_is_of_the_float(void)
{
    char text[MP_NUMBER_TEXT];

    CHECK_STR(mp_str_n(text, mp_float_text(0.1f, text)), MP_STR("0.1"));
    CHECK_STR(mp_str_n(text, mp_float_text(16777216.0f, text)), MP_STR("16777216.0"));
    CHECK_STR(mp_str_n(text, mp_float_text(1e-45f, text)), MP_STR("1e-45"));
    CHECK_STR(mp_str_n(text, mp_float_text(0x1p-96f, text)), MP_STR("1.2621775e-29"));
    CHECK_STR(mp_str_n(text, mp_float_text(-0x1p87f, text)), MP_STR("-1.5474251e+26"));
    CHECK_STR(mp_str_n(text, mp_float_text(3.4028235e38f, text)), MP_STR("3.4028235e+38"));
}

static void i64_text_covers_both_ends(void)
{
    char text[MP_NUMBER_TEXT];

    CHECK_STR(mp_str_n(text, mp_i64_text(0, text)), MP_STR("0"));
    CHECK_STR(mp_str_n(text, mp_i64_text(INT64_MIN, text)), MP_STR("-9223372036854775808"));
    CHECK_STR(mp_str_n(text, mp_i64_text(INT64_MAX, text)), MP_STR("9223372036854775807"));
}

/* Day numbers by Python's datetime.date.toordinal() - 719163. */
static void civil_days_go_both_ways(void)
{
    static const struct {
        struct mp_civil date;
        int64_t days;
    } cases[] = {
        {{1970, 1, 1}, 0},      {{1969, 12, 31}, -1},  {{2000, 2, 29}, 11016},
        {{2024, 2, 29}, 19782}, {{1, 1, 1}, -719162},  {{9999, 12, 31}, 2932896},
        {{1900, 3, 1}, -25508}, {{2026, 3, 1}, 20513},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct mp_civil back = mp_civil_of_days(cases[i].days);

        CHECK_INT(mp_days_of_civil(cases[i].date), cases[i].days);
        CHECK_INT(back.year, cases[i].date.year);
        CHECK_INT(back.month, cases[i].date.month);
        CHECK_INT(back.day, cases[i].date.day);
    }
    for (int64_t days = -800000; days < 3000000; days += 97)
        CHECK_INT(mp_days_of_civil(mp_civil_of_days(days)), days);
    CHECK(!mp_civil_valid((struct mp_civil){2026, 2, 30}));
    CHECK(!mp_civil_valid((struct mp_civil){1900, 2, 29}));
    CHECK(mp_civil_valid((struct mp_civil){2000, 2, 29}));
    CHECK(!mp_civil_valid((struct mp_civil){2026, 0, 1}));
    CHECK(!mp_civil_valid((struct mp_civil){2026, 13, 1}));
    CHECK(!mp_civil_valid((struct mp_civil){2026, 4, 31}));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(double_text_is_shortest_and_reads_back),
        TEST(float_text_is_of_the_float),
        TEST(i64_text_covers_both_ends),
        TEST(civil_days_go_both_ways),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
