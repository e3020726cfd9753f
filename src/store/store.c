/* store/store.c - what a URL names, and what a key is. */
#include "store/credentials.h"
#include "store/store_driver.h"

static enum mp_code parts_check(struct mp_str key, bool whole, struct mp_err *err)
{
    size_t begin = 0;

    for (size_t i = 0; i <= key.size; i++) {
        struct mp_str part = {key.data + begin, i - begin};
        bool last = i == key.size;

        if (!last && key.data[i] == 0)
            return mp_err_set(err, MP_BAD_DATA, "key holds a NUL at byte %zu", i);
        if (!last && key.data[i] != '/')
            continue;
        if (last && !whole)
            break; /* a prefix may end inside a part */
        if (part.size == 0)
            return mp_err_set(err, MP_BAD_DATA,
                              "key " MP_STORE_SHOWN " has an empty part at byte %zu",
                              MP_STORE_SHOWN_ARG(key), begin);
        if (mp_str_eq(part, MP_STR(".")) || mp_str_eq(part, MP_STR("..")))
            return mp_err_set(err, MP_BAD_DATA, "key " MP_STORE_SHOWN " has the part %.*s",
                              MP_STORE_SHOWN_ARG(key), MP_STR_ARG(part));
        begin = i + 1;
    }
    return MP_OK;
}

enum mp_code mp_store_key_check(struct mp_str key, struct mp_err *err)
{
    return parts_check(key, true, err);
}

enum mp_code mp_store_prefix_check(struct mp_str prefix, struct mp_err *err)
{
    return parts_check(prefix, false, err);
}

enum mp_code mp_store_open(struct mp_str url, const struct mp_store_s3_options *s3,
                           const struct mp_env *env, struct mp_err *err, struct mp_store **ret)
{
    struct mp_str file = MP_STR("file://");
    struct mp_aws_environ environment;

    if (mp_str_starts(url, MP_STR("s3://"))) {
        mp_aws_environ_read(&environment);
        return mp_store_s3_open(url, s3, &environment, env, err, ret);
    }
    if (mp_str_starts(url, file))
        url = (struct mp_str){url.data + file.size, url.size - file.size};
    if (url.size > 0 && url.data[0] == '/')
        return mp_store_local_open(url, env, err, ret);
    return mp_err_set(err, MP_BAD_CONFIG,
                      MP_STORE_SHOWN " is neither an absolute directory nor s3://bucket/prefix/",
                      MP_STORE_SHOWN_ARG(url));
}
