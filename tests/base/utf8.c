#include "base/utf8.h"
#include "harness/test.h"

#include <stdio.h>

static void utf8_is_strict(void)
{
    CHECK(mp_utf8_is(MP_STR("plain, na\xc3\xafve, \xe6\x9d\xb1, \xf0\x9f\x98\x80")));
    CHECK(!mp_utf8_is(MP_STR("\xff")));
    CHECK(!mp_utf8_is(MP_STR("\xc0\x80")));
    CHECK(!mp_utf8_is(MP_STR("\xe2\x82")));
    CHECK(!mp_utf8_is(MP_STR("\xed\xa0\x80")));
    CHECK(!mp_utf8_is(MP_STR("\xf4\x90\x80\x80")));
    CHECK(!mp_utf8_is(MP_STR("\xe0\x80\x80")));
}

static void repair_takes_out_what_a_cut_left(void)
{
    static const struct {
        const char *text, *repaired;
    } cases[] = {
        {"", ""},
        {"na\xc3\xafve", "na\xc3\xafve"},
        {"cut \xf0\x9f\x98", "cut "},
        {"cut \xe6\x9d\" there", "cut \" there"},
        {"\x80\xffx\xc3", "x"},
        {"\xf0\x9f\x98\x80\xf0", "\xf0\x9f\x98\x80"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[16];

        snprintf(text, sizeof(text), "%s", cases[i].text);
        mp_utf8_repair(text);
        CHECK_STR(mp_str_c(text), mp_str_c(cases[i].repaired));
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(utf8_is_strict),
                                        TEST(repair_takes_out_what_a_cut_left)};

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
