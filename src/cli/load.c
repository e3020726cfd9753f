/* cli/load.c - `millpond load`. */
#include "cli/cli.h"

#include <stdio.h>

int mp_cli_load(const struct mp_cli_args *args)
{
    (void)args;
    fprintf(stderr, "millpond load: this build has no pipeline in it yet\n");
    return MP_EXIT_BUG;
}
