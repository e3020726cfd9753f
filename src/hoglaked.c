/* hoglaked.c - main of the catalog service: settings -> server -> wait for a signal -> stop.
 *
 * Exit codes: 0 stopped in good order, 2 a setting is wrong or the database refuses us, 5 the
 * database was not there within the time it was given.
 */
#include "base/mem.h"
#include "server/server.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { EXIT_CONFIG = 2, EXIT_OUTAGE = 5, START_MS_MAX = 60000, MEMORY_POOLS_MAX = 2 };

static int help(void)
{
    printf("hoglaked serves hoglake catalogs over HTTP; it keeps them in PostgreSQL.\n"
           "\n"
           "Usage: hoglaked [--settings | --version | --help]\n"
           "\n"
           "  --settings  print every setting with its meaning and effective value\n"
           "\n"
           "All settings are environment variables.\n");
    return 0;
}

/* log NULL: to standard error. */
static void tell_slips(struct mp_log *log)
{
    struct mp_str name;
    const char *meant;
    size_t at = 0;

    while (mp_server_settings_slip(environ, &at, &name, &meant))
        if (log)
            mp_log(log, MP_LOG_WARN, "hoglake.main", "%.*s has no effect: did you mean %s?",
                   MP_STR_ARG(name), meant);
        else
            fprintf(stderr, "hoglaked: %.*s has no effect: did you mean %s?\n", MP_STR_ARG(name),
                    meant);
}

static int print_settings(const struct mp_server_settings *settings)
{
    struct mp_buf buf = MP_BUF_INIT(1024 * 1024);

    mp_server_settings_print(settings, &buf);
    fwrite(buf.data, 1, buf.size, stdout);
    mp_buf_fini(&buf);
    tell_slips(NULL);
    return 0;
}

/* A database that starts beside us may need a moment. *ret NULL after MP_OK: one of the signals in
 * `stop` came first. */
static enum mp_code open_patiently(const struct mp_server_settings *settings,
                                   const struct mp_env *env, const sigset_t *stop,
                                   struct mp_log *log, struct mp_err *err, struct mp_server **ret)
{
    const struct timespec pause = {.tv_sec = 1};
    uint64_t began_us = mp_now_mono_us(env);

    for (;;) {
        enum mp_code code = mp_server_open(settings, env, log, err, ret);

        if (!code || !err->retriable ||
            mp_now_mono_us(env) - began_us > (uint64_t)START_MS_MAX * 1000)
            return code;
        mp_log(log, MP_LOG_WARN, "hoglake.main", "not yet: %s", err->text);
        if (sigtimedwait(stop, NULL, &pause) > 0)
            return MP_OK;
    }
}

static int serve(const struct mp_server_settings *settings)
{
    struct mp_env env = mp_env_real();
    struct mp_log_options options = {.fd = 1, .level = settings->log_level, .json = true};
    struct mp_log *log = mp_log_new(&options, &env);
    struct mp_server *server = NULL;
    struct mp_err err = {0};
    sigset_t stop;
    enum mp_code code;
    int number;

    mp_mem_pools(MEMORY_POOLS_MAX);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    sigprocmask(SIG_BLOCK, &stop, NULL); /* before there are threads */
    signal(SIGPIPE, SIG_IGN);
    tell_slips(log);
    code = open_patiently(settings, &env, &stop, log, &err, &server);
    if (code) {
        mp_log(log, MP_LOG_ERROR, "hoglake.main", "%s", err.text);
    } else if (!server) {
        mp_log(log, MP_LOG_INFO, "hoglake.main", "stopped before the database was there");
    } else {
        mp_log(log, MP_LOG_INFO, "hoglake.main", "hoglaked %s listens on port %u", MP_VERSION,
               (unsigned)mp_server_port(server));
        sigwait(&stop, &number);
        mp_log(log, MP_LOG_INFO, "hoglake.main", "stopping because of signal %d", number);
        mp_server_close(server);
        mp_log(log, MP_LOG_INFO, "hoglake.main", "stopped");
    }
    mp_log_free(log);
    if (!code)
        return 0;
    return code == MP_BAD_CONFIG || code == MP_BAD_DATA ? EXIT_CONFIG : EXIT_OUTAGE;
}

int main(int argc, char **argv)
{
    struct mp_server_settings settings;
    struct mp_arena arena;
    struct mp_err err = {0};
    int exit_code;

    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return help();
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("hoglaked %s\n", MP_VERSION);
        return 0;
    }
    if (argc > 2 || (argc == 2 && strcmp(argv[1], "--settings") != 0)) {
        fprintf(stderr, "hoglaked: unexpected argument; try --help\n");
        return EXIT_CONFIG;
    }
    mp_arena_init(&arena, 0);
    if (mp_server_settings_load(&arena, environ, &err, &settings)) {
        fprintf(stderr, "hoglaked: %s\n", err.text);
        exit_code = EXIT_CONFIG;
    } else {
        exit_code = argc == 2 ? print_settings(&settings) : serve(&settings);
    }
    mp_arena_fini(&arena);
    return exit_code;
}
