#include "harness/test.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static jmp_buf failed_test;
static char directories[128][64];
static size_t directory_count;

void test_fail(const char *file, int line, const char *format, ...)
{
    va_list args;

    printf("    %s:%d: ", file, line);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    longjmp(failed_test, 1);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path);
}

static void remove_directories(void)
{
    for (size_t i = 0; i < directory_count; i++)
        nftw(directories[i], remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *test_directory(void)
{
    char *path = directories[directory_count];

    if (directory_count == sizeof(directories) / sizeof(*directories))
        test_fail(__FILE__, __LINE__, "more than %zu directories", directory_count);
    if (directory_count == 0)
        atexit(remove_directories);
    snprintf(path, sizeof(directories[0]), "/tmp/millpond-test-XXXXXX");
    if (!mkdtemp(path))
        test_fail(__FILE__, __LINE__, "mkdtemp %s failed", path);
    directory_count++;
    return path;
}

static bool chosen(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (strstr(name, argv[i]))
            return true;
    return argc < 2;
}

int test_main(int argc, char **argv, const struct test *tests, size_t count)
{
    volatile unsigned passed = 0, failed = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (volatile size_t i = 0; i < count; i++) {
        if (!chosen(argc, argv, tests[i].name))
            continue;
        if (setjmp(failed_test) == 0) {
            tests[i].run();
            passed++;
        } else {
            failed++;
            printf("FAILED %s\n", tests[i].name);
        }
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed || !passed;
}
