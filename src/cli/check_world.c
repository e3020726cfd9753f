/* cli/check_world.c - store, clock, include list and log endpoint, each asked once. */
#include "cli/check_priv.h"

#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

enum { CLOCK_S_MAX = 60, ASK_AGAIN_MS = 20 };

/* --- store ---------------------------------------------------------------------------------- */

static const struct mp_check_advice ducklake_advice[] = {
    {404, "make the bucket, or look at DUCKLAKE_DATA_PATH"},
    {401, "look at DUCKDB_S3_ACCESS_KEY_ID and DUCKDB_S3_SECRET_ACCESS_KEY"},
    {403, "look at DUCKDB_S3_ACCESS_KEY_ID and DUCKDB_S3_SECRET_ACCESS_KEY, and let them put "
          "and delete below DUCKLAKE_DATA_PATH"},
    {301, "look at DUCKDB_S3_REGION and DUCKDB_S3_ENDPOINT"},
    {400, "look at DUCKDB_S3_REGION and DUCKDB_S3_URL_STYLE"},
    {EACCES, "let this user write below DUCKLAKE_DATA_PATH"},
    {EPERM, "let this user write below DUCKLAKE_DATA_PATH"},
    {EROFS, "name a directory in DUCKLAKE_DATA_PATH that can be written to"},
    {ENOTDIR, "name a directory in DUCKLAKE_DATA_PATH"},
    {ENOSPC, "make room there"},
};

static const struct mp_check_advice hoglake_advice[] = {
    {404, "make the bucket of the catalog's data path, or look at HOGLAKE_S3_ENDPOINT"},
    {401, "look at HOGLAKE_S3_ACCESS_KEY and HOGLAKE_S3_SECRET_KEY"},
    {403, "look at HOGLAKE_S3_ACCESS_KEY and HOGLAKE_S3_SECRET_KEY, and let them put and delete "
          "below the catalog's data path"},
    {301, "look at HOGLAKE_S3_REGION and HOGLAKE_S3_ENDPOINT"},
    {400, "look at HOGLAKE_S3_REGION"},
};

static void store_fault(struct mp_check *check, const struct mp_err *err)
{
    const char *advice = check->config->destination == MP_DESTINATION_HOGLAKE
                             ? mp_check_advice(hoglake_advice, COUNT(hoglake_advice), err,
                                               "look at HOGLAKE_S3_ENDPOINT, and the way there")
                             : mp_check_advice(ducklake_advice, COUNT(ducklake_advice), err,
                                               "look at DUCKLAKE_DATA_PATH, DUCKDB_S3_ENDPOINT and "
                                               "DUCKDB_S3_USE_SSL, and the way there");

    mp_check_fault(check, "store", err, advice);
}

/* Where run would put objects; empty: nobody says so. */
static struct mp_str data_path(struct mp_check *check)
{
    return check->lake ? check->lake->driver->data_path(check->lake)
                       : mp_data_path(check->config, check->arena);
}

/* Bytes of path that are directories which are there. */
static size_t there_already(const char *path)
{
    size_t size = strlen(path);
    char *part = mp_alloc(size + 1);
    struct stat info;

    for (memcpy(part, path, size + 1); size > 1 && stat(part, &info) != 0; part[size] = 0)
        for (size--; size > 1 && path[size] != '/';)
            size--;
    mp_free(part);
    return size;
}

/* Takes away the directories that a probe below path has made, but for the first `keep` bytes;
 * one in which somebody else has put something meanwhile stays. */
static void remove_directories(char *path, size_t keep)
{
    for (size_t size = strlen(path); size > keep; size--)
        if (path[size] == '/' || path[size] == 0) {
            path[size] = 0;
            rmdir(path);
        }
}

static void probe(struct mp_check *check, struct mp_store *store, struct mp_str path)
{
    char uuid[MP_UUID_TEXT], key[96];
    struct mp_str piece = MP_STR("millpond check");
    struct mp_store_object object = {.pieces = &piece, .piece_count = 1, .bytes = piece.size};
    struct mp_err err = {0};
    bool done = false;
    enum mp_code code;

    mp_uuid7(&check->env, uuid);
    object.key = mp_str_n(key, (size_t)snprintf(key, sizeof(key), "_millpond/check-%s", uuid));
    code = store->driver->put(store, &object, 1, &done, &err);
    if (code) {
        store_fault(check, &err);
        return;
    }
    code = store->driver->remove(store, object.key, &err);
    if (code)
        mp_check_fault(check, "store", &err,
                       "what is put cannot be removed: allow it, and remove this object");
    else
        mp_check_fine("store", "%.*s: an object can be put and removed", MP_STR_ARG(path));
}

void mp_check_store(struct mp_check *check)
{
    struct mp_str path = data_path(check);
    struct mp_store *store = NULL;
    struct mp_err err = {0};
    char *local = NULL;
    size_t keep = 0;

    if (!path.size)
        return; /* the catalog would have said where */
    if (path.data[0] == '/') {
        local = mp_arena_printf(check->arena, "%.*s_millpond", MP_STR_ARG(path));
        keep = there_already(local);
    }
    if (mp_open_store(check->config, path, &check->env, &err, &store)) {
        store_fault(check, &err);
    } else {
        probe(check, store, path);
        if (store->driver->clock_ahead)
            check->store_knows_time = store->driver->clock_ahead(store, &check->store_ahead_us);
    }
    mp_store_close(store);
    if (local)
        remove_directories(local, keep);
}

/* --- clock ---------------------------------------------------------------------------------- */

/* Adds "N s ahead of WHOSE clock" to the text; gives whether that is too much. */
static bool compare(struct mp_buf *text, const char *whose, int64_t their_ahead_us)
{
    int64_t seconds = (their_ahead_us < 0 ? -their_ahead_us : their_ahead_us) / 1000000;

    mp_buf_printf(text, "%s%" PRId64 " s %s %s", text->size ? ", " : "", seconds,
                  their_ahead_us > 0 ? "behind" : "ahead of", whose);
    return seconds > CLOCK_S_MAX;
}

/* Time stamps, partitions of _inserted_at and S3 signatures are made with our clock. */
void mp_check_clock(struct mp_check *check)
{
    struct mp_buf text = MP_BUF_INIT(256);
    struct mp_err err = {0};
    int64_t catalog_us, before_us = mp_now_wall_us(&check->env);
    bool off = false;

    if (check->catalog_answers && check->config->destination == MP_DESTINATION_DUCKLAKE &&
        !mp_catalog_clock(check->config, &check->env, &err, &catalog_us)) {
        int64_t now_us = before_us + (mp_now_wall_us(&check->env) - before_us) / 2;

        off = compare(&text, "the catalog's", catalog_us - now_us);
    }
    if (check->store_knows_time)
        off |= compare(&text, "the store's", check->store_ahead_us);
    if (off) {
        mp_err_set(&err, MP_BAD_CONFIG, "ours is %s", mp_buf_c(&text));
        mp_check_fault(check, "clock", &err, "set it right: _inserted_at is taken from it");
    } else if (text.size) {
        mp_check_fine("clock", "ours is %s", mp_buf_c(&text));
    }
    mp_buf_fini(&text);
}

/* --- include list --------------------------------------------------------------------------- */

static void drop_list(void *self, const struct mp_filter_options *keep)
{
    (void)self, (void)keep;
}

void mp_check_include(struct mp_check *check)
{
    const struct mp_config *config = check->config;
    struct mp_filter_options keep = mp_filter_options_of(config, &config->keep);
    struct mp_include_poll_options options = mp_include_options_of(config, &keep);
    struct mp_include_poll *poll = NULL;
    struct mp_err err = {0};
    enum mp_code code;

    if (!config->include.url.size)
        return;
    options.on_list = drop_list;
    code = mp_include_poll_open(&options, &check->env, NULL, NULL, &err, &poll);
    if (!code) /* a request has a limit of its own, so an answer comes, if only that */
        while ((code = mp_include_poll_accepted(poll, &err)) == MP_TIMEOUT)
            mp_sleep_us(&check->env, ASK_AGAIN_MS * 1000);
    mp_err_add(&err, "MILLPOND_INCLUDE_VALUES_URL");
    if (code)
        mp_check_fault(check, "include", &err,
                       "look at it, and at MILLPOND_INCLUDE_VALUES_AUTH_HEADER_NAME and _TOKEN");
    else
        mp_check_fine("include", "the endpoint gives a list that is accepted");
    mp_include_poll_close(poll);
}

/* --- log endpoint --------------------------------------------------------------------------- */

void mp_check_logs(struct mp_check *check)
{
    static const struct mp_check_advice advice[] = {
        {401, "look at POSTHOG_PROJECT_TOKEN"},
        {403, "look at POSTHOG_PROJECT_TOKEN"},
    };
    const struct mp_config *config = check->config;
    struct mp_otlp_attribute resource[MP_OTLP_RESOURCE];
    struct mp_otlp_options options =
        mp_otlp_options_of(config, config->kafka.topic, config->kafka.group, resource);
    struct mp_err err = {0};
    enum mp_code code;

    if (!config->telemetry.token.size)
        return;
    code = mp_otlp_probe(&options, &check->env, NULL, &err);
    mp_err_add(&err, "POSTHOG_LOGS_ENDPOINT");
    if (code)
        mp_check_fault(
            check, "logs", &err,
            mp_check_advice(advice, COUNT(advice), &err, "look at it and the way there"));
    else
        mp_check_fine("logs", "the endpoint takes our requests");
}
