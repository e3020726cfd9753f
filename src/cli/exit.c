/* cli/exit.c - faults as exit codes and as lines on standard error. */
#include "cli/cli.h"

#include <stdio.h>

enum mp_exit mp_exit_of(enum mp_code code)
{
    switch (code) {
    case MP_OK:
    case MP_STOPPED:
        return MP_EXIT_OK;
    case MP_BAD_CONFIG:
    case MP_NOT_FOUND:
        return MP_EXIT_CONFIG;
    case MP_FENCED:
        return MP_EXIT_FENCED;
    case MP_CHANGED:
    case MP_REFUSED:
    case MP_BAD_DATA:
        return MP_EXIT_CHANGED;
    case MP_IO:
    case MP_TIMEOUT:
    case MP_CONFLICT:
        return MP_EXIT_OUTAGE;
    case MP_FULL:
        return MP_EXIT_BUG;
    }
    return MP_EXIT_BUG;
}

int mp_cli_bad_argument(const char *verb, const char *argument)
{
    fprintf(stderr, "millpond %s: \"%s\" is not understood; see `millpond %s --help`\n", verb,
            argument, verb);
    return MP_EXIT_CONFIG;
}

int mp_cli_fault(const struct mp_err *err)
{
    fprintf(stderr, "millpond: %s\n", err->text);
    return mp_exit_of(err->code);
}
