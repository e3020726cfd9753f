/* cli/config.c - `millpond config`: every setting as this process would see it. */
#include "cli/cli.h"

#include "config/config.h"

#include <stdio.h>

static int put(struct mp_buf *page)
{
    int code = MP_EXIT_OK;

    if (fwrite(page->data, 1, page->size, stdout) != page->size || fflush(stdout)) {
        fprintf(stderr, "millpond config: standard output cannot be written\n");
        code = MP_EXIT_OUTAGE;
    }
    mp_buf_fini(page);
    return code;
}

int mp_cli_config(const struct mp_cli_args *args)
{
    struct mp_buf page = MP_BUF_INIT(16u << 20);
    const struct mp_config *config = NULL;
    struct mp_arena arena;
    struct mp_err err;
    enum mp_code fault;
    int code;

    if (args->count == 1 && mp_str_eq(mp_str_c(args->values[0]), MP_STR("--markdown"))) {
        mp_config_print_markdown(&page);
        return put(&page);
    }
    if (args->count)
        return mp_cli_bad_argument("config", args->values[0]);
    mp_arena_init(&arena, 0);
    fault = mp_config_load(&arena, args->environment, NULL, &err, &config);
    mp_config_print(args->environment, config, &page);
    code = put(&page);
    if (fault) /* the table was shown all the same: it helps to find the fault */
        code = mp_cli_fault(&err);
    mp_arena_fini(&arena);
    return code;
}
