/* cli/run.c - `millpond run`. */
#include "cli/cli.h"

#include <stdio.h>

int mp_cli_run(const struct mp_cli_args *args)
{
    (void)args;
    fprintf(stderr, "millpond run: this build has no pipeline in it yet\n");
    return MP_EXIT_BUG;
}
