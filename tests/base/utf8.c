#include "base/utf8.h"
#include "harness/test.h"

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

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(utf8_is_strict)};

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
