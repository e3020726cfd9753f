/* tests/harness/test.h - a small test harness: a process a file, a function a test.
 *
 *     static void batch_refuses_row_over_bytes_max(void) { CHECK(...); }
 *     int main(int argc, char **argv)
 *     {
 *         static const struct test tests[] = {TEST(batch_refuses_row_over_bytes_max)};
 *         return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
 *     }
 *
 * A failed check ends its test and is printed with both values; the others go on. Arguments
 * choose tests by a part of their name. The last line is "N passed, N failed".
 */
#ifndef MP_TESTS_TEST_H
#define MP_TESTS_TEST_H

#include "base/str.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct test {
    const char *name;
    void (*run)(void);
};

#define TEST(function)                                                                             \
    {                                                                                              \
#function, function                                                                        \
    }

int test_main(int argc, char **argv, const struct test *tests, size_t count);
_Noreturn void test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Gives a new empty directory, removed when the process ends. */
const char *test_directory(void);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            test_fail(__FILE__, __LINE__, "%s", #condition);                                       \
    } while (0)
#define CHECK_INT(got, want)                                                                       \
    do {                                                                                           \
        int64_t got_ = (int64_t)(got), want_ = (int64_t)(want);                                    \
        if (got_ != want_)                                                                         \
            test_fail(__FILE__, __LINE__, "%s is %" PRId64 ", not %" PRId64, #got, got_, want_);   \
    } while (0)
#define CHECK_DOUBLE(got, want)                                                                    \
    do {                                                                                           \
        double got_ = (got), want_ = (want);                                                       \
        if (memcmp(&got_, &want_, sizeof(got_)) != 0)                                              \
            test_fail(__FILE__, __LINE__, "%s is %.17g, not %.17g", #got, got_, want_);            \
    } while (0)
#define CHECK_STR(got, want)                                                                       \
    do {                                                                                           \
        struct mp_str got_ = (got), want_ = (want);                                                \
        if (!mp_str_eq(got_, want_))                                                               \
            test_fail(__FILE__, __LINE__, "%s is \"%.*s\", not \"%.*s\"", #got, MP_STR_ARG(got_),  \
                      MP_STR_ARG(want_));                                                          \
    } while (0)
#define CHECK_OK(code, err)                                                                        \
    do {                                                                                           \
        enum mp_code code_ = (code);                                                               \
        if (code_)                                                                                 \
            test_fail(__FILE__, __LINE__, "%s: %s: %s", #code, mp_code_name(code_), (err).text);   \
    } while (0)

#endif
