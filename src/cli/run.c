/* cli/run.c - `millpond run`: the daemon, from the environment. */
#include "cli/cli.h"

#include "cli/engine.h"
#include "cli/kafka.h"

int mp_cli_run(const struct mp_cli_args *args)
{
    struct mp_engine *engine = NULL;
    struct mp_arena arena;
    struct mp_kafka_door kafka = {0};
    struct mp_engine_options options = {.open_source = mp_open_kafka,
                                        .open_whole_source = mp_open_whole_kafka,
                                        .self = &kafka,
                                        .http = true};
    struct mp_err err = {0};
    enum mp_code code;
    int status = MP_EXIT_OK;

    if (args->count)
        return mp_cli_bad_argument("run", args->values[0]);
    mp_arena_init(&arena, 0);
    code = mp_config_load(&arena, args->environment, NULL, &err, &kafka.config);
    if (code)
        goto out;
    options.config = kafka.config;
    options.group = kafka.config->kafka.group;
    options.topic = kafka.config->kafka.topic;
    code = mp_engine_open(&options, &err, &engine);
    if (!code)
        code = mp_engine_run(engine, &err);
out:
    if (code)
        status = mp_cli_fault(&err);
    mp_engine_close(engine);
    mp_arena_fini(&arena);
    return status;
}
