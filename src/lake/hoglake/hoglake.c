/* lake/hoglake/hoglake.c - the driver's table of functions, open and close. */
#include "lake/hoglake/hoglake.h"

#include "base/mem.h"
#include "lake/hoglake/priv.h"
#include "lake/partition_by.h"

#include <assert.h>

#define REQUEST_MS_MAX 45000 /* the server waits 30 s for its commit lock before it says 503 */

static const struct mp_lake_driver driver;

static struct mp_hoglake *of(struct mp_lake *lake)
{
    assert(lake->driver == &driver);
    return (struct mp_hoglake *)lake;
}

static struct mp_str data_path(struct mp_lake *lake)
{
    return of(lake)->data_path;
}

static enum mp_code ping(struct mp_lake *self, struct mp_err *err)
{
    struct mp_hoglake *lake = of(self);
    enum mp_code code;

    mp_hog_url(lake, MP_HOG_CATALOG, (struct mp_str){NULL, 0}, "");
    code = mp_hog_ask(lake, "GET", (struct mp_str){NULL, 0}, err);
    if (!code && !mp_hog_fine(&lake->answer))
        code = mp_hog_refusal(lake, err);
    return code;
}

static void refresh(struct mp_lake *lake)
{
    mp_hog_distrust(of(lake));
}

static void object_key(struct mp_lake *self, const struct mp_lake_table *table,
                       const struct mp_lake_place *place, struct mp_buf *ret)
{
    struct mp_hoglake *lake = of(self);

    mp_hog_object_key(lake->namespace_name, table->name, place, lake->env, ret);
}

static void commit_key(struct mp_lake *self, const struct mp_lake_table *table,
                       const struct mp_lake_range *ranges, uint32_t count,
                       char ret[MP_LAKE_KEY_SIZE])
{
    struct mp_hoglake *lake = of(self);

    mp_hog_key(lake->catalog, lake->namespace_name, table->name, table->uuid, lake->topic, ranges,
               count, ret);
}

static void close_lake(struct mp_lake *self)
{
    struct mp_hoglake *lake = of(self);

    while (lake->tables) {
        struct mp_hog_table *next = lake->tables->next;

        mp_hog_table_free(lake->tables);
        lake->tables = next;
    }
    json_decref(lake->answer.json);
    mp_http_call_fini(&lake->call);
    mp_http_client_free(lake->http);
    mp_buf_fini(&lake->url);
    mp_buf_fini(&lake->held.body);
    mp_buf_fini(&lake->held.object);
    mp_arena_fini(&lake->texts);
    mp_arena_fini(&lake->scratch);
    mp_free(lake);
}

static const struct mp_lake_driver driver = {
    .name = "hoglake",
    .promotes = true,
    .name_ok = mp_hog_name_ok,
    .data_path = data_path,
    .ping = ping,
    .resolve = mp_hog_resolve,
    .refresh = refresh,
    .evolve = mp_hog_evolve,
    .object_key = object_key,
    .commit_key = commit_key,
    .published = mp_hog_published,
    .append = mp_hog_append,
    .written = mp_hog_written,
    .close = close_lake,
};

/* Bytes of the URL up to its path: what may hold a user and a password. */
static size_t root_size(struct mp_str url)
{
    const char *scheme = memmem(url.data, url.size, "://", 3);
    const char *path;

    if (!scheme)
        return 0;
    scheme += 3;
    path = memchr(scheme, '/', url.size - (size_t)(scheme - url.data));
    return path ? (size_t)(path - url.data) : url.size;
}

/* The URL without user and password. */
static struct mp_str plain_url(struct mp_arena *arena, struct mp_str url)
{
    size_t root = root_size(url);
    const char *scheme = memmem(url.data, root, "://", 3);
    const char *at = scheme ? memrchr(url.data, '@', root) : NULL;

    if (!at)
        return url;
    return mp_str_c(mp_arena_printf(arena, "%.*s%.*s", (int)(scheme + 3 - url.data), url.data,
                                    (int)(url.data + url.size - at - 1), at + 1));
}

static enum mp_code copy_options(struct mp_hoglake *lake, const struct mp_hoglake_options *options,
                                 struct mp_err *err)
{
    const struct {
        struct mp_str from;
        struct mp_str *to;
    } texts[] = {
        {options->catalog, &lake->catalog}, {options->namespace_name, &lake->namespace_name},
        {options->table, &lake->table},     {options->topic, &lake->topic},
        {options->author, &lake->author},   {options->version, &lake->version},
        {options->program, &lake->program},
    };
    const struct mp_partition_key *keys;
    uint32_t key_count;
    struct mp_str *sort = mp_arena_take(&lake->texts, (options->sort_by_count + 1) * sizeof(*sort));

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        *texts[i].to = mp_arena_str(&lake->texts, texts[i].from);
    lake->base =
        mp_str_c(mp_arena_printf(&lake->texts, "%.*s/v1/catalogs", MP_STR_ARG(options->url)));
    lake->root_size = root_size(lake->base);
    for (uint32_t i = 0; i < options->sort_by_count; i++)
        sort[i] = mp_arena_str(&lake->texts, options->sort_by[i]);
    lake->layout.sort = sort;
    lake->layout.sort_count = options->sort_by_count;
    lake->request_ms_max = options->request_ms_max ? options->request_ms_max : REQUEST_MS_MAX;
    lake->read_only = options->read_only;
    lake->layout.partition_by = mp_arena_str(&lake->texts, options->partition_by);
    return mp_partition_by_parse(&lake->scratch, lake->layout.partition_by, MP_PARTITION_BY_HOGLAKE,
                                 err, &keys, &key_count);
}

enum mp_code mp_hoglake_open(const struct mp_hoglake_options *options, const struct mp_env *env,
                             struct mp_err *err, struct mp_lake **ret)
{
    struct mp_hoglake *lake = mp_alloc(sizeof(*lake));
    struct mp_http_client_options http = {.connections_max = 1};
    struct mp_str url;
    enum mp_code code;

    lake->lake.driver = &driver;
    lake->env = env;
    mp_arena_init(&lake->texts, 4096);
    mp_arena_init(&lake->scratch, 0);
    lake->url.max = 1 << 20;
    lake->http = mp_http_client_new(&http);
    code = copy_options(lake, options, err);
    if (!code)
        code = mp_hog_catalog_found(lake, options->data_path, err);
    if (code) {
        url = plain_url(&lake->scratch, options->url);
        mp_err_add(err, "hoglake catalog \"%.*s\" at %.*s", MP_STR_ARG(options->catalog),
                   MP_STR_ARG(url));
        close_lake(&lake->lake);
    } else {
        *ret = &lake->lake;
    }
    return code;
}
