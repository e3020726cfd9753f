/* cli/probe.c - may objects be put where the catalog wants them?
 *
 * An empty object under a fixed key, put again at each start through the store that files go
 * through later, never read, and for hoglake never removed: so that a bucket, region or key that is
 * wrong is known before the first record is read, and before a new lake names it for ever.
 *
 * After  the millpond sheet, 11.3.
 */
#include "cli/probe.h"

static const struct mp_str key = MP_STR_INIT("_millpond/probe");

/* What to look at, by what the service says. */
static const char *advice(const struct mp_config *config, const struct mp_err *err)
{
    static const struct {
        const char *says, *advice;
    } table[] = {
        {"NoSuchBucket", "the bucket of the catalog's data path does not exist: make it, or set "
                         "HOGLAKE_S3_ENDPOINT to where it is"},
        {"AuthorizationHeaderMalformed", "set HOGLAKE_S3_REGION to the bucket's region"},
        {"PermanentRedirect", "set HOGLAKE_S3_REGION to the bucket's region"},
        {"the bucket is in region", "set HOGLAKE_S3_REGION to the bucket's region"},
    };
    static const char *const of_keys[] = {"InvalidAccessKeyId", "SignatureDoesNotMatch"};

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (strstr(err->text, table[i].says))
            return table[i].advice;
    for (size_t i = 0; i < sizeof(of_keys) / sizeof(*of_keys); i++)
        if (strstr(err->text, of_keys[i]))
            return config->s3.access_key.size
                       ? "HOGLAKE_S3_ACCESS_KEY and HOGLAKE_S3_SECRET_KEY are not those of the "
                         "store"
                       : "the credentials of the AWS chain are not those of the store";
    return "are bucket and permissions right? s3:PutObject and s3:AbortMultipartUpload are needed";
}

enum mp_code mp_probe_store(const struct mp_config *config, struct mp_str data_path,
                            struct mp_store *store, struct mp_log *log, struct mp_err *err)
{
    struct mp_store_object probe = {.key = key};
    const struct mp_config_s3 *s3 = &config->s3;
    struct mp_err why = {0};
    bool done;
    enum mp_code code = store->driver->put(store, &probe, 1, &done, &why);

    if (code) {
        const char *what = advice(config, &why);

        if (err) {
            *err = why;
            mp_err_add(err, "the store cannot be written to (%s)", what);
        }
        return code;
    }
    mp_log(log, MP_LOG_INFO, "millpond.hoglake",
           "Object store probe: %.*s%.*s written with %s, endpoint %.*s, region %.*s",
           MP_STR_ARG(data_path), MP_STR_ARG(key),
           s3->access_key.size ? "static HOGLAKE_S3_* keys" : "the AWS default credential chain",
           MP_STR_ARG(s3->endpoint.size ? s3->endpoint : MP_STR("AWS default")),
           MP_STR_ARG(s3->region.size ? s3->region : MP_STR("unset")));
    return MP_OK;
}

enum mp_code mp_prove_store(struct mp_store *store, struct mp_log *log, struct mp_err *err)
{
    struct mp_store_object probe = {.key = key};
    struct mp_err why = {0};
    bool done;
    enum mp_code code = store->driver->put(store, &probe, 1, &done, err);

    if (code) {
        mp_err_add(err, "the store cannot be written to");
        return code;
    }
    if (store->driver->remove(store, key, &why))
        mp_log(log, MP_LOG_WARN, "millpond.main",
               "what is put into the store cannot be removed again: %s", why.text);
    return MP_OK;
}
