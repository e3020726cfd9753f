/* server/background/objects.c - stores by bucket, opened at first use. See background.h. */
#include "server/background/background.h"

#include "base/mem.h"

#include <pthread.h>

struct bucket {
    struct bucket *next;
    struct mp_store *store;
    size_t size;
    char name[];
};

struct mp_objects {
    struct mp_server *server;
    pthread_mutex_t lock;
    struct bucket *buckets;
};

struct mp_objects *mp_objects_new(struct mp_server *server)
{
    struct mp_objects *objects = mp_alloc(sizeof(*objects));

    objects->server = server;
    pthread_mutex_init(&objects->lock, NULL);
    return objects;
}

void mp_objects_free(struct mp_objects *objects)
{
    if (!objects)
        return;
    while (objects->buckets) {
        struct bucket *next = objects->buckets->next;

        mp_store_close(objects->buckets->store);
        mp_free(objects->buckets);
        objects->buckets = next;
    }
    pthread_mutex_destroy(&objects->lock);
    mp_free(objects);
}

static enum mp_code open_bucket(struct mp_objects *objects, struct mp_str name, struct mp_err *err,
                                struct bucket **ret)
{
    const struct mp_server_settings *settings = objects->server->settings;
    struct mp_store_s3_options options = {
        .endpoint = settings->HOGLAKE_S3_ENDPOINT,
        .region = settings->HOGLAKE_S3_REGION,
        .access_key = settings->HOGLAKE_S3_ACCESS_KEY,
        .secret_key = settings->HOGLAKE_S3_SECRET_KEY,
        .use_ssl = true,
        .path_style = settings->HOGLAKE_S3_PATH_STYLE,
        .request_ms_max = 30000,
        .attempts_max = 3,
    };
    struct bucket *bucket = mp_alloc(sizeof(*bucket) + name.size);
    struct mp_buf url = MP_BUF_INIT(4096);
    enum mp_code code;

    mp_buf_printf(&url, "s3://%.*s/", MP_STR_ARG(name));
    code = mp_store_open(mp_buf_str(&url), &options, objects->server->env, err, &bucket->store);
    mp_buf_fini(&url);
    if (code) {
        mp_free(bucket);
        return code;
    }
    memcpy(bucket->name, name.data, name.size);
    bucket->size = name.size;
    bucket->next = objects->buckets;
    objects->buckets = bucket;
    *ret = bucket;
    return MP_OK;
}

enum mp_code mp_objects_find(struct mp_objects *objects, struct mp_str path, struct mp_err *err,
                             struct mp_store **ret_store, struct mp_str *ret_key)
{
    struct mp_str scheme = MP_STR("s3://"), rest, name;
    struct bucket *bucket;
    const char *slash;
    enum mp_code code = MP_OK;

    if (!mp_str_starts(path, scheme))
        return mp_err_set(err, MP_BAD_DATA, "path does not begin with s3://");
    rest = mp_str_n(path.data + scheme.size, path.size - scheme.size);
    slash = rest.size ? memchr(rest.data, '/', rest.size) : NULL;
    if (!slash)
        return mp_err_set(err, MP_BAD_DATA, "path has no key");
    name = mp_str_n(rest.data, (size_t)(slash - rest.data));
    pthread_mutex_lock(&objects->lock);
    for (bucket = objects->buckets; bucket; bucket = bucket->next)
        if (mp_str_eq(mp_str_n(bucket->name, bucket->size), name))
            break;
    if (!bucket)
        code = open_bucket(objects, name, err, &bucket);
    pthread_mutex_unlock(&objects->lock);
    if (code)
        return code;
    *ret_store = bucket->store;
    *ret_key = mp_str_n(slash + 1, rest.size - name.size - 1);
    return MP_OK;
}
