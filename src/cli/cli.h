/* cli/cli.h - the command line: one file a verb, on top of every room.
 *
 * A verb is given what stands behind its name, reads the environment itself, and answers with the
 * process's exit code. It prints to standard output what was asked for and to standard error what
 * went wrong.
 */
#ifndef MP_CLI_CLI_H
#define MP_CLI_CLI_H

#include "base/err.h"

/* How the process ends. Operators and init systems read these: they do not change. */
enum mp_exit {
    MP_EXIT_OK = 0,      /* done, or stopped in good order */
    MP_EXIT_CONFIG = 2,  /* a setting or an argument; nothing was written */
    MP_EXIT_FENCED = 3,  /* another process owns these partitions now */
    MP_EXIT_CHANGED = 4, /* refused for good, or a topic or destination is not what it was */
    MP_EXIT_OUTAGE = 5,  /* Kafka, catalog or store did not come back in time */
    MP_EXIT_BUG = 70,    /* our own mistake (EX_SOFTWARE of sysexits.h) */
};

/* The exit code that a fault of the named code ends the process with. */
enum mp_exit mp_exit_of(enum mp_code code);

struct mp_cli_args {
    char **values; /* behind the verb */
    int count;
    char *const *environment;
};

int mp_cli_run(const struct mp_cli_args *args);
int mp_cli_check(const struct mp_cli_args *args);
int mp_cli_demo(const struct mp_cli_args *args);
int mp_cli_load(const struct mp_cli_args *args);
int mp_cli_config(const struct mp_cli_args *args);

/* Says on standard error which argument is not understood and where help is. */
int mp_cli_bad_argument(const char *verb, const char *argument);
/* Prints "millpond: " and the fault on standard error; gives its exit code. */
int mp_cli_fault(const struct mp_err *err);

#endif
