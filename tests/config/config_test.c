#include "config_test.h"

static struct mp_arena arena;
static struct mp_err err;

static enum mp_code load(const char *const *environment, const struct mp_config_options *options,
                         const struct mp_config **ret)
{
    mp_arena_fini(&arena);
    mp_arena_init(&arena, 0);
    err = (struct mp_err){0};
    return mp_config_load(&arena, (char *const *)(uintptr_t)environment, options, &err, ret);
}

const struct mp_config *good(const char *file, int line, const char *const *environment,
                             const struct mp_config_options *options)
{
    const struct mp_config *config = NULL;
    enum mp_code code = load(environment, options, &config);

    if (code)
        test_fail(file, line, "refused: %s", err.text);
    return config;
}

const char *bad(const char *file, int line, const char *const *environment)
{
    const struct mp_config *config = NULL;
    enum mp_code code = load(environment, NULL, &config);

    if (!code)
        test_fail(file, line, "was accepted");
    if (code != MP_BAD_CONFIG || err.code != MP_BAD_CONFIG || err.retriable || config)
        test_fail(file, line, "code %d, retriable %d: %s", (int)code, err.retriable, err.text);
    return err.text;
}

bool warned(const struct mp_config *config, const char *text)
{
    for (uint32_t i = 0; i < config->warning_count; i++)
        if (strstr(config->warnings[i].data, text))
            return true;
    return false;
}
