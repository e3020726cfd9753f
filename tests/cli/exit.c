/* Each code has its exit code; operators' scripts go by the numbers. */
#include "cli/cli.h"
#include "harness/test.h"

static void every_code_has_its_number(void)
{
    static const struct {
        enum mp_code code;
        int exit;
    } table[] = {
        {MP_OK, 0},      {MP_STOPPED, 0},  {MP_BAD_CONFIG, 2}, {MP_NOT_FOUND, 2},
        {MP_FENCED, 3},  {MP_CHANGED, 4},  {MP_REFUSED, 4},    {MP_IO, 5},
        {MP_TIMEOUT, 5}, {MP_CONFLICT, 5}, {MP_FULL, 70},      {MP_BAD_DATA, 4},
    };

    CHECK_INT(sizeof(table) / sizeof(*table), MP_STOPPED + 1); /* none is left out */
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        CHECK_INT(mp_exit_of(table[i].code), table[i].exit);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(every_code_has_its_number)};

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
