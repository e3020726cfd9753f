/* millpond.c - main: picks the verb. Without arguments the daemon runs, which is what makes this
 * program a drop-in for the one it replaces.
 */
#include "cli/cli.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

extern char **environ;

struct verb {
    const char *name, *arguments, *summary, *help;
    int (*run)(const struct mp_cli_args *args);
};

static int verb_version(const struct mp_cli_args *args)
{
    if (args->count)
        return mp_cli_bad_argument("version", args->values[0]);
    printf("millpond %s\n", MP_VERSION);
    return MP_EXIT_OK;
}

static const struct verb verbs[] = {
    {"run", "", "read the topic into the table until it is told to stop (the default)",
     "Reads the Kafka topic and appends its records to the lake table, for as long as it runs.\n"
     "Everything is set by environment variables; `millpond config` shows them.\n"
     "\n"
     "SIGTERM and SIGINT flush what is buffered, commit it and end with 0.\n",
     mp_cli_run},
    {"check", "", "see whether Kafka, catalog and store are reachable and agree; change nothing",
     "Reads the settings, then asks Kafka, the catalog, the object store and, where they are set,\n"
     "the include list and the log endpoint, compares the clocks, and says of each what it found: "
     "a\n"
     "line for each fault, with what to do. Leaves nothing changed. Ends with 0 when `run` would\n"
     "start.\n",
     mp_cli_check},
    {"demo", "[--directory DIR] [--events N]",
     "the whole pipeline on this machine, with nothing else installed",
     "Makes a Kafka broker inside this process, writes sample events to it, and runs the pipeline\n"
     "into a SQLite catalog and Parquet files in a directory. Prints the command that reads the\n"
     "table with DuckDB.\n"
     "\n"
     "  --directory DIR  where the lake is made (default: ./millpond-demo)\n"
     "  --events N       how many events (default: 100000)\n",
     mp_cli_demo},
    {"load", "[--again] [--name NAME] [--state FILE] FILE...|-",
     "append files of JSON lines (or standard input) to the table, each line once",
     "Takes newline-delimited JSON through the same pipeline. The place reached in each file is\n"
     "kept in the lake (for hoglake in a file beside): the same command again adds nothing, and\n"
     "of a file that has grown only the new lines. A last line that is still being written is\n"
     "left for the next run. A file that became shorter or different is refused, and so is what\n"
     "is no regular file, or is packed.\n"
     "\n"
     "  -             read standard input\n"
     "  --name NAME   a name for standard input, under which it can be resumed\n"
     "  --again       read files from the start that the lake knows under this name already\n"
     "  --state FILE  where the places reached are kept for a hoglake catalog, which keeps none\n"
     "\n"
     "The settings of the destination are read from the environment; those of Kafka are not "
     "needed.\n",
     mp_cli_load},
    {"config", "[--markdown]", "print every setting: meaning, default and effective value",
     "Reads the environment as `run` would and prints every setting with its meaning, its default\n"
     "and the value that counts. Secrets are not shown. Ends with 2, and says why, when `run` "
     "would\n"
     "refuse these settings.\n"
     "\n"
     "  --markdown  print docs/settings.md instead\n",
     mp_cli_config},
    {"version", "", "print the version", "Prints the version.\n", verb_version},
};

enum { VERBS = sizeof(verbs) / sizeof(*verbs) };

static const char exit_codes[] = "Exit codes:\n"
                                 "  0   done, or stopped in good order\n"
                                 "  2   a setting or an argument is wrong; nothing was written\n"
                                 "  3   fenced: another process owns these partitions now\n"
                                 "  4   refused for good, and an operator has to decide: a right "
                                 "is missing, the topic does not\n"
                                 "      come, or topic or destination are not what they were\n"
                                 "  5   outage: Kafka, catalog or store did not come back in time\n"
                                 "  70  a bug in millpond\n"
                                 "  71  the system gave no memory\n";

static void print_verbs(FILE *to)
{
    for (int i = 0; i < VERBS; i++)
        fprintf(to, "  %-8s %s\n", verbs[i].name, verbs[i].summary);
}

static int print_help(void)
{
    printf("millpond reads JSON events from a Kafka topic and appends them to a lakehouse table,\n"
           "each record once.\n"
           "\n"
           "Usage: millpond [VERB] [ARGUMENTS]\n"
           "\n"
           "Verbs:\n");
    print_verbs(stdout);
    printf("\n`millpond VERB --help` tells more about one of them.\n"
           "\n"
           "All settings are environment variables; `millpond config` lists them.\n"
           "\n%s",
           exit_codes);
    return MP_EXIT_OK;
}

static int print_verb_help(const struct verb *verb)
{
    printf("Usage: millpond %s%s%s\n\n%s\n%s", verb->name, *verb->arguments ? " " : "",
           verb->arguments, verb->help, exit_codes);
    return MP_EXIT_OK;
}

static bool means_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static const struct verb *verb_named(const char *name)
{
    for (int i = 0; i < VERBS; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const struct verb *verb = &verbs[0];
    struct mp_cli_args args = {.values = argv + (argc > 1 ? 2 : 1),
                               .count = argc > 1 ? argc - 2 : 0,
                               .environment = environ};

    if (argc > 1 && (means_help(argv[1]) || strcmp(argv[1], "help") == 0)) {
        verb = argc > 2 ? verb_named(argv[2]) : NULL;
        return verb ? print_verb_help(verb) : print_help();
    }
    if (argc > 1 && strcmp(argv[1], "--version") == 0)
        return verb_version(&args);
    if (argc > 1)
        verb = verb_named(argv[1]);
    if (!verb) {
        fprintf(stderr, "millpond: there is no verb \"%s\"; there are:\n", argv[1]);
        print_verbs(stderr);
        return MP_EXIT_CONFIG;
    }
    for (int i = 0; i < args.count && strcmp(args.values[i], "--") != 0; i++)
        if (means_help(args.values[i]))
            return print_verb_help(verb);
    return verb->run(&args);
}
