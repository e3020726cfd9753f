/* cli/check.c - `millpond check`. */
#include "cli/cli.h"

#include <stdio.h>

int mp_cli_check(const struct mp_cli_args *args)
{
    (void)args;
    fprintf(stderr, "millpond check: this build has no pipeline in it yet\n");
    return MP_EXIT_BUG;
}
