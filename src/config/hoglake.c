/* config/hoglake.c - the settings of the hoglake destination, and whether its longest write fits
 * the time after which a process counts as dead. */
#include "config/config_priv.h"

#define SMALL  "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

static enum mp_code read_hoglake_name(struct mp_reader *r, enum mp_setting_id id,
                                      struct mp_str *ret)
{
    enum mp_code code = mp_read_text(r, id, ret);

    if (!code && !mp_text_hoglake_name(*ret))
        code = mp_read_fault(r, id,
                             "a letter or '_', then at most 127 of letters, digits, '_' and '-'");
    return code;
}

/* s3://bucket or s3://bucket/prefix, the bucket 3 to 63 characters. */
static bool hoglake_data_path_ok(struct mp_str path)
{
    static const struct mp_str scheme = {"s3://", 5};
    struct mp_str bucket;
    const char *slash;

    if (!mp_str_starts(path, scheme))
        return false;
    bucket = mp_str_n(path.data + scheme.size, path.size - scheme.size);
    slash = memchr(bucket.data, '/', bucket.size);
    if (slash)
        bucket.size = (size_t)(slash - bucket.data);
    return bucket.size >= 3 && mp_text_name(bucket, SMALL DIGITS, SMALL DIGITS ".-", 62) &&
           strchr(SMALL DIGITS, bucket.data[bucket.size - 1]);
}

static enum mp_code read_hoglake_url(struct mp_reader *r, struct mp_str *ret)
{
    struct mp_str url;
    enum mp_code code = mp_read_text(r, MP_SET_HOGLAKE_URL, &url);

    if (code)
        return code;
    url = mp_text_trim(url);
    while (url.size && url.data[url.size - 1] == '/')
        url.size--;
    if (!mp_str_starts(url, MP_STR("http://")) && !mp_str_starts(url, MP_STR("https://")))
        return mp_read_fault(r, MP_SET_HOGLAKE_URL,
                             "an address that begins with http:// or https://");
    *ret = mp_arena_str(r->arena, url);
    return MP_OK;
}

/* Blank counts as not set here; one of the pair alone is refused. */
static enum mp_code read_hoglake_s3(struct mp_reader *r)
{
    struct mp_config_s3 *s3 = &r->config->s3;
    enum mp_code code;

    code = mp_read_text(r, MP_SET_HOGLAKE_S3_ENDPOINT, &s3->endpoint);
    if (!code)
        code = mp_read_text(r, MP_SET_HOGLAKE_S3_REGION, &s3->region);
    if (!code)
        code = mp_read_text(r, MP_SET_HOGLAKE_S3_ACCESS_KEY, &s3->access_key);
    if (!code)
        code = mp_read_text(r, MP_SET_HOGLAKE_S3_SECRET_KEY, &s3->secret_key);
    if (code)
        return code;
    s3->access_key = mp_text_trim(s3->access_key);
    s3->secret_key = mp_text_trim(s3->secret_key);
    if (s3->access_key.size && !s3->secret_key.size)
        return mp_read_alone(r, MP_SET_HOGLAKE_S3_ACCESS_KEY, MP_SET_HOGLAKE_S3_SECRET_KEY);
    if (!s3->access_key.size && s3->secret_key.size)
        return mp_read_alone(r, MP_SET_HOGLAKE_S3_SECRET_KEY, MP_SET_HOGLAKE_S3_ACCESS_KEY);
    s3->use_ssl = true;
    s3->path_style = s3->endpoint.size > 0;
    return MP_OK;
}

/* Only n - 1 waits lie between n attempts; each at most 30 s, a quarter more by jitter. */
static double longest_write_s(int64_t attempts, double request_s)
{
    const double encode_and_upload_s = 20;
    double waits = 0, wait = 1;

    for (int64_t i = 0; i + 1 < attempts; i++) {
        waits += wait;
        wait = wait * 2 < 30 ? wait * 2 : 30;
    }
    return (double)attempts * (request_s + encode_and_upload_s) + 1.25 * waits;
}

static enum mp_code read_hoglake_budget(struct mp_reader *r)
{
    const double alive_s_max = 480; /* /healthz turns red after that */
    struct mp_config_hoglake *hoglake = &r->config->hoglake;
    int64_t attempts, uploads;
    double request_s, worst;
    unsigned unsettled = 0, lost = 0;
    enum mp_code code;

    code = mp_read_int(r, MP_SET_HOGLAKE_MAX_RETRY_COUNT, &attempts);
    if (!code)
        code = mp_read_seconds(r, MP_SET_HOGLAKE_REQUEST_TIMEOUT_S, &request_s,
                               &hoglake->request_ms_max);
    if (!code)
        code = mp_read_int(r, MP_SET_PYHOGLAKE_UPLOAD_CONCURRENCY, &uploads);
    if (!code)
        code = mp_read_duration(r, MP_SET_MILLPOND_HOGLAKE_PLAN_AGE_MAX, &hoglake->plan_age_s_max);
    if (!code)
        code = mp_read_choice(r, MP_SET_MILLPOND_HOGLAKE_UNSETTLED_PLAN, &unsettled);
    if (!code)
        code = mp_read_choice(r, MP_SET_MILLPOND_HOGLAKE_LOST_OFFSETS, &lost);
    if (code)
        return code;
    worst = longest_write_s(attempts, request_s);
    if (worst > alive_s_max)
        return mp_err_set(
            r->err, MP_BAD_CONFIG,
            "HOGLAKE_MAX_RETRY_COUNT %lld with HOGLAKE_REQUEST_TIMEOUT_S %g makes one "
            "write last up to %.2f s, above the %.0f s after which the process counts "
            "as dead: lower one of them",
            (long long)attempts, request_s, worst, alive_s_max);
    hoglake->attempts_max = (uint32_t)attempts;
    hoglake->unsettled_plan = (enum mp_unsettled_plan)unsettled;
    hoglake->lost_offsets_reset = lost != 0;
    hoglake->upload_concurrency = (uint32_t)uploads;
    return MP_OK;
}

enum mp_code mp_read_hoglake(struct mp_reader *r)
{
    struct mp_config *config = r->config;
    struct mp_str partition =
        mp_env_find(r->environment, mp_setting_name(MP_SET_HOGLAKE_PARTITION_BY));
    const char *wrong;
    enum mp_code code;

    code = read_hoglake_url(r, &config->hoglake.url);
    if (!code)
        code = mp_read_text(r, MP_SET_HOGLAKE_CATALOG, &config->hoglake.catalog);
    if (!code && !mp_text_name(config->hoglake.catalog, SMALL, SMALL DIGITS "_-", 62))
        code =
            mp_read_fault(r, MP_SET_HOGLAKE_CATALOG,
                          "a small letter, then at most 62 of small letters, digits, '_' and '-'");
    if (!code)
        code = read_hoglake_name(r, MP_SET_HOGLAKE_NAMESPACE, &config->schema);
    if (!code)
        code = read_hoglake_name(r, MP_SET_HOGLAKE_TABLE, &config->table);
    if (!code)
        code = mp_read_text(r, MP_SET_HOGLAKE_DATA_PATH, &config->data_path);
    if (!code && config->data_path.size && !hoglake_data_path_ok(config->data_path))
        code = mp_read_fault(
            r, MP_SET_HOGLAKE_DATA_PATH,
            "s3://bucket or s3://bucket/prefix, the bucket 3 to 63 of a-z, 0-9, '.' and '-'");
    if (!code)
        code = read_hoglake_s3(r);
    if (code)
        return code;
    if (!partition.data && mp_read_given(r, MP_SET_DUCKLAKE_PARTITION_BY))
        return mp_err_set(r->err, MP_BAD_CONFIG,
                          "DUCKLAKE_PARTITION_BY is set, but the destination is hoglake and "
                          "HOGLAKE_PARTITION_BY is not: the table would not be partitioned");
    if (partition.data && !mp_partition_check(r->arena, partition, false, &wrong))
        return mp_err_set(r->err, MP_BAD_CONFIG, "HOGLAKE_PARTITION_BY is \"%s\": %s",
                          mp_setting_shown(r->arena, MP_SET_HOGLAKE_PARTITION_BY, partition),
                          wrong);
    config->partition_by = mp_arena_str(r->arena, mp_text_trim(partition));
    return read_hoglake_budget(r);
}
