/* cli/demo.c - `millpond demo`. */
#include "cli/cli.h"

#include <stdio.h>

int mp_cli_demo(const struct mp_cli_args *args)
{
    (void)args;
    fprintf(stderr, "millpond demo: this build has no pipeline in it yet\n");
    return MP_EXIT_BUG;
}
