/* lake/ducklake/ducklake.c - the driver's table of functions, open and close. */
#include "lake/ducklake/ducklake.h"
#include "lake/ducklake/layout.h"
#include "lake/ducklake/priv.h"

#include "base/utf8.h"
#include "base/mem.h"
#include "lake/partition_text.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <unistd.h>

static const struct mp_lake_driver driver;

static struct mp_ducklake *of(struct mp_lake *lake)
{
    assert(lake->driver == &driver);
    return (struct mp_ducklake *)lake;
}

/* 1 to 255 bytes of UTF-8 without control characters (C0, DEL, C1). The extension keeps row and
 * snapshot ids of merged files in columns of the one refused prefix. */
static bool name_ok(struct mp_str name)
{
    struct mp_str internal = MP_STR("_ducklake_internal_");
    uint32_t point;
    size_t size;

    if (name.size == 0 || name.size > 255)
        return false;
    if (name.size >= internal.size && mp_str_eq_fold(mp_str_n(name.data, internal.size), internal))
        return false;
    for (size_t at = 0; at < name.size; at += size) {
        size = mp_utf8_read(mp_str_n(name.data + at, name.size - at), &point);
        if (size == 0 || point < 0x20 || (point >= 0x7f && point < 0xa0))
            return false;
    }
    return true;
}

static struct mp_str data_path(struct mp_lake *lake)
{
    return of(lake)->data_path;
}

static enum mp_code ping(struct mp_lake *self, struct mp_err *err)
{
    struct mp_ducklake *lake = of(self);
    enum mp_code code = MP_OK;

    for (int i = 0; i < 2; i++) { /* a connection that died while idle is made anew */
        code = mp_db_ready(lake->db, err);
        if (code)
            break;
        mp_db_send(lake->db, "SELECT 1", NULL, 0);
        code = mp_db_sync(lake->db, err);
        if (mp_db_class(lake->db) != MP_DB_LOST)
            break;
    }
    if (code)
        mp_err_add(err, "ping catalog");
    return code;
}

static void object_key(struct mp_lake *self, const struct mp_lake_table *view,
                       const struct mp_lake_place *place, struct mp_buf *ret)
{
    struct mp_ducklake *lake = of(self);
    const struct mp_dl_table *table = (const struct mp_dl_table *)view;
    char uuid[MP_UUID_TEXT];

    mp_buf_add_str(ret, table->prefix);
    if (table->hive && view->schema.partition_count) {
        uint32_t count = view->schema.partition_count;
        struct mp_partition_value *values = mp_alloc_array(count, sizeof(*values));
        struct mp_arena arena;

        mp_arena_init(&arena, 1024);
        for (uint32_t i = 0; i < count; i++) {
            values[i] = place->partition[i];
            if (!values[i].null)
                values[i].text = mp_lake_partition_text(&arena, values[i].text);
        }
        mp_dl_partition_directories(ret, table->transform_names, values, count);
        mp_arena_fini(&arena);
        mp_free(values);
    }
    mp_uuid7(lake->env, uuid);
    mp_buf_printf(ret, "ducklake-%s.parquet", uuid);
}

static void close_lake(struct mp_lake *self)
{
    struct mp_ducklake *lake = of(self);

    while (lake->tables) {
        struct mp_dl_table *next = lake->tables->next;

        mp_dl_table_free(lake->tables);
        lake->tables = next;
    }
    mp_db_free(lake->db);
    mp_arena_fini(&lake->texts);
    mp_arena_fini(&lake->scratch);
    mp_arena_fini(&lake->lent);
    mp_free(lake->claims);
    mp_free(lake);
}

static const struct mp_lake_driver driver = {
    .name = "ducklake",
    .offsets_in_lake = true,
    .fold_case = true,
    .name_ok = name_ok,
    .data_path = data_path,
    .ping = ping,
    .resolve = mp_dl_resolve,
    .evolve = mp_dl_evolve,
    .object_key = object_key,
    .append = mp_dl_append,
    .positions = mp_dl_positions,
    .topics = mp_dl_topics,
    .claim = mp_dl_claim,
    .close = close_lake,
};

/* A text option that goes into the catalog: NUL bytes would be cut there, so there are none. */
static enum mp_code copy_text(struct mp_ducklake *lake, const char *name, struct mp_str text,
                              struct mp_err *err, struct mp_str *ret)
{
    if (text.size && memchr(text.data, 0, text.size))
        return mp_err_set(err, MP_BAD_CONFIG, "%s holds a NUL byte", name);
    *ret = mp_arena_str(&lake->texts, text);
    return MP_OK;
}

static enum mp_code copy_options(struct mp_ducklake *lake,
                                 const struct mp_ducklake_options *options, struct mp_err *err)
{
    const struct {
        const char *name;
        struct mp_str from;
        struct mp_str *to;
    } texts[] = {
        {"data path", options->data_path, &lake->data_path},
        {"schema", options->schema.size ? options->schema : MP_STR("main"), &lake->schema},
        {"group", options->group, &lake->group},
        {"topic", options->topic, &lake->topic},
        {"author", options->author, &lake->author},
        {"version", options->version, &lake->version},
    };
    char directory[PATH_MAX];
    enum mp_code code = MP_OK;

    for (size_t i = 0; !code && i < sizeof(texts) / sizeof(*texts); i++)
        code = copy_text(lake, texts[i].name, texts[i].from, err, texts[i].to);
    if (code)
        return code;
    if (!getcwd(directory, sizeof(directory)))
        return mp_err_set(err, MP_IO, "working directory: errno %d", errno);
    lake->directory = mp_arena_str(&lake->texts, mp_str_c(directory));
    lake->data_path = mp_dl_data_path(&lake->texts, lake->data_path, lake->directory);
    if (!name_ok(lake->schema))
        return mp_err_set(err, MP_BAD_CONFIG, "\"%.*s\" cannot be the name of a schema",
                          MP_STR_ARG(lake->schema));
    lake->race_retries_max = options->race_retries_max ? options->race_retries_max : 100;
    lake->race_ms_max = 4 * (options->statement_ms_max ? options->statement_ms_max : 30000);
    lake->read_only = options->read_only;
    return MP_OK;
}

enum mp_code mp_dl_new(const struct mp_ducklake_options *options, const struct mp_env *env,
                       struct mp_err *err, struct mp_ducklake **ret)
{
    struct mp_db_options db_options = {
        .catalog = options->catalog,
        .statement_ms_max = options->statement_ms_max,
        .connect_ms_max = options->connect_ms_max,
        .read_only = options->read_only,
    };
    struct mp_ducklake *lake = mp_alloc(sizeof(*lake));
    enum mp_code code;

    lake->lake.driver = &driver;
    lake->env = env;
    mp_arena_init(&lake->texts, 4096);
    mp_arena_init(&lake->scratch, 0);
    mp_arena_init(&lake->lent, 4096);
    code = copy_options(lake, options, err);
    if (!code)
        code = mp_db_new(&db_options, env, err, &lake->db);
    if (code)
        close_lake(&lake->lake);
    else
        *ret = lake;
    return code;
}

enum mp_code mp_ducklake_open(const struct mp_ducklake_options *options, const struct mp_env *env,
                              struct mp_err *err, struct mp_lake **ret)
{
    struct mp_ducklake *lake;
    enum mp_code code = mp_dl_new(options, env, err, &lake);

    if (code)
        goto out;
    code = mp_dl_found(lake, err);
    if (code)
        close_lake(&lake->lake);
    else
        *ret = &lake->lake;
out:
    if (code)
        mp_err_add(err, "open lake");
    return code;
}

enum mp_code mp_ducklake_clock(const struct mp_ducklake_options *options, const struct mp_env *env,
                               struct mp_err *err, int64_t *ret_wall_us)
{
    static const char sql[] = "SELECT floor(extract(epoch FROM now()) * 1000000)::bigint";
    struct mp_ducklake *lake;
    uint32_t number;
    enum mp_code code = mp_dl_new(options, env, err, &lake);

    if (code)
        return code;
    if (mp_db_is_sqlite(lake->db)) {
        code = mp_err_set(err, MP_NOT_FOUND, "a file has no clock");
        goto out;
    }
    code = mp_db_ready(lake->db, err);
    if (code)
        goto out;
    number = mp_db_send(lake->db, sql, NULL, 0);
    code = mp_db_sync(lake->db, err);
    if (!code)
        *ret_wall_us = mp_db_number(mp_db_result(lake->db, number), 0, 0, 0);
out:
    close_lake(&lake->lake);
    return code;
}
