/* config/load.c - the environment becomes struct mp_config, one step after the other.
 *
 * The steps stand in a table at the end, in the order that decides which of several faults is
 * reported. A step reads its own settings and the rules between them.
 */
#include "config/config_priv.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

static enum mp_code fault(struct mp_reader *r, enum mp_setting_id id, const char *allowed)
{
    return mp_setting_fault(r, id, mp_env_find(r->environment, mp_settings[id].name), allowed);
}

static const char *name_of(enum mp_setting_id id)
{
    return mp_settings[id].name;
}

/* One of two settings that go together. */
static enum mp_code alone(struct mp_reader *r, enum mp_setting_id given, enum mp_setting_id missing)
{
    const char *shown =
        mp_setting_shown(r->arena, given, mp_env_find(r->environment, name_of(given)));

    return mp_err_set(r->err, MP_BAD_CONFIG,
                      "%s is \"%s\", but %s is not set: allowed are both or neither",
                      name_of(given), shown, name_of(missing));
}

/* --- what, who, where ------------------------------------------------------------------------ */

static enum mp_code read_topic(struct mp_reader *r, const struct mp_config_options *options)
{
    if (options->without_kafka && !mp_read_given(r, MP_SET_KAFKA_TOPIC)) {
        r->config->kafka.topic = MP_STR("load");
        return MP_OK;
    }
    return mp_read_text(r, MP_SET_KAFKA_TOPIC, &r->config->kafka.topic);
}

static enum mp_code read_destination(struct mp_reader *r, const struct mp_config_options *options)
{
    struct mp_config *config = r->config;
    unsigned choice;
    enum mp_code code = mp_read_choice(r, MP_SET_MILLPOND_DESTINATION, &choice);

    (void)options;
    if (code)
        return code;
    config->destination = choice ? MP_DESTINATION_HOGLAKE : MP_DESTINATION_DUCKLAKE;
    config->destination_name = choice ? MP_STR("hoglake") : MP_STR("ducklake");
    return MP_OK;
}

/* The digits behind the last '-' of the pod's name. */
static enum mp_code read_ordinal(struct mp_reader *r, const struct mp_config_options *options)
{
    struct mp_config *config = r->config;
    enum mp_setting_id id = mp_read_given(r, MP_SET_POD_NAME) ? MP_SET_POD_NAME : MP_SET_HOSTNAME;
    struct mp_str digits;
    int64_t ordinal, replicas;
    size_t start;
    bool fits;
    enum mp_code code;

    if (options->without_kafka) {
        config->replica_count = 1;
        config->pod = MP_STR("millpond-0");
        return MP_OK;
    }
    config->pod = MP_STR("millpond-0");
    if (mp_read_given(r, id))
        code = mp_read_text(r, id, &config->pod);
    else
        code = MP_OK;
    if (code)
        return code;
    for (start = config->pod.size; start > 0; start--)
        if (config->pod.data[start - 1] < '0' || config->pod.data[start - 1] > '9')
            break;
    digits = mp_str_n(config->pod.data + start, config->pod.size - start);
    if (!start || config->pod.data[start - 1] != '-' || !mp_text_integer(digits, &ordinal, &fits) ||
        !fits || ordinal > INT32_MAX)
        return fault(r, id, "a name that ends in a hyphen and the ordinal, such as millpond-3");
    code = mp_read_int(r, MP_SET_REPLICA_COUNT, &replicas);
    if (code)
        return code;
    if (ordinal >= replicas)
        return mp_err_set(r->err, MP_BAD_CONFIG,
                          "ordinal %lld, from %s \"%s\", is not below REPLICA_COUNT %lld",
                          (long long)ordinal, name_of(id),
                          mp_setting_shown(r->arena, id, config->pod), (long long)replicas);
    config->ordinal = (uint32_t)ordinal;
    config->replica_count = (uint32_t)replicas;
    return MP_OK;
}

/* --- DuckLake -------------------------------------------------------------------------------- */

static enum mp_code read_rds(struct mp_reader *r)
{
    struct mp_config *config = r->config;
    struct mp_buf conninfo = MP_BUF_INIT(1u << 20);
    struct mp_str host, database, user, password;
    char port_text[16];
    int64_t port;
    enum mp_code code;

    code = mp_read_text(r, MP_SET_DUCKLAKE_RDS_HOST, &host);
    if (!code && !host.size)
        code = mp_err_set(r->err, MP_BAD_CONFIG,
                          "required environment variable DUCKLAKE_RDS_HOST is not set (nor is "
                          "MILLPOND_CATALOG, which can stand for it)");
    if (!code)
        code = mp_read_int(r, MP_SET_DUCKLAKE_RDS_PORT, &port);
    if (!code)
        code = mp_read_text(r, MP_SET_DUCKLAKE_RDS_DATABASE, &database);
    if (!code)
        code = mp_read_text(r, MP_SET_DUCKLAKE_RDS_USERNAME, &user);
    if (!code)
        code = mp_read_text(r, MP_SET_DUCKLAKE_RDS_PASSWORD, &password);
    if (!code && !password.size)
        code = mp_err_set(r->err, MP_BAD_CONFIG,
                          "required environment variable DUCKLAKE_RDS_PASSWORD is not set");
    if (code)
        return code;
    snprintf(port_text, sizeof(port_text), "%lld", (long long)port);
    mp_text_conninfo(&conninfo, "host", host);
    mp_text_conninfo(&conninfo, "port", mp_str_c(port_text));
    mp_text_conninfo(&conninfo, "dbname", database);
    mp_text_conninfo(&conninfo, "user", user);
    mp_text_conninfo(&conninfo, "password", password);
    config->ducklake.catalog =
        mp_str_c(mp_arena_printf(r->arena, "postgres:%.*s", (int)conninfo.size, conninfo.data));
    config->ducklake.catalog_name = mp_str_c(mp_arena_printf(
        r->arena, "%s:%s/%s", mp_setting_shown(r->arena, MP_SET_DUCKLAKE_RDS_HOST, host), port_text,
        mp_setting_shown(r->arena, MP_SET_DUCKLAKE_RDS_DATABASE, database)));
    mp_buf_fini(&conninfo);
    return MP_OK;
}

static enum mp_code read_catalog(struct mp_reader *r)
{
    static const struct mp_str sqlite = {"sqlite:", 7}, postgres = {"postgres:", 9};
    struct mp_config *config = r->config;
    struct mp_str catalog;
    enum mp_code code;

    if (!mp_read_given(r, MP_SET_MILLPOND_CATALOG))
        return read_rds(r);
    code = mp_read_text(r, MP_SET_MILLPOND_CATALOG, &catalog);
    if (code)
        return code;
    if (mp_str_starts(catalog, sqlite) && catalog.size > sqlite.size)
        config->ducklake.catalog_name = catalog;
    else if (mp_str_starts(catalog, postgres) && catalog.size > postgres.size)
        config->ducklake.catalog_name = MP_STR("postgres (from MILLPOND_CATALOG)");
    else
        return fault(r, MP_SET_MILLPOND_CATALOG, "sqlite:PATH or postgres:CONNINFO");
    config->ducklake.catalog = catalog;
    return MP_OK;
}

/* What the Python program let through to DuckDB. */
static enum mp_code read_s3_text(struct mp_reader *r, enum mp_setting_id id, struct mp_str *ret)
{
    struct mp_str value = mp_env_find(r->environment, name_of(id));
    enum mp_code code = MP_OK;

    if (value.data && !value.size)
        code = fault(r, id, "text, or not to set it at all");
    for (size_t i = 0; i < value.size && !code; i++) {
        char c = value.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!plain && !strchr("_.:/-@+=", c))
            code = fault(r, id, "letters, digits and _ . : / - @ + =");
    }
    if (!code)
        code = mp_read_text(r, id, ret);
    return code;
}

static enum mp_code read_ducklake_s3(struct mp_reader *r)
{
    struct mp_config_s3 *s3 = &r->config->s3;
    struct mp_str access_key, secret_key;
    unsigned style;
    enum mp_code code;

    code = read_s3_text(r, MP_SET_DUCKDB_S3_ENDPOINT, &s3->endpoint);
    if (!code)
        code = read_s3_text(r, MP_SET_DUCKDB_S3_REGION, &s3->region);
    if (!code)
        code = read_s3_text(r, MP_SET_DUCKDB_S3_ACCESS_KEY_ID, &access_key);
    if (!code)
        code = read_s3_text(r, MP_SET_DUCKDB_S3_SECRET_ACCESS_KEY, &secret_key);
    if (!code)
        code = mp_read_bool(r, MP_SET_DUCKDB_S3_USE_SSL, &s3->use_ssl);
    if (!code)
        code = mp_read_choice(r, MP_SET_DUCKDB_S3_URL_STYLE, &style);
    if (code)
        return code;
    if (access_key.size && !secret_key.size)
        return alone(r, MP_SET_DUCKDB_S3_ACCESS_KEY_ID, MP_SET_DUCKDB_S3_SECRET_ACCESS_KEY);
    if (!access_key.size && secret_key.size)
        return alone(r, MP_SET_DUCKDB_S3_SECRET_ACCESS_KEY, MP_SET_DUCKDB_S3_ACCESS_KEY_ID);
    s3->access_key = access_key;
    s3->secret_key = secret_key;
    s3->path_style = style == 1;
    return MP_OK;
}

static enum mp_code read_ducklake(struct mp_reader *r)
{
    struct mp_config *config = r->config;
    const char *wrong;
    int64_t retries;
    unsigned from;
    enum mp_code code;

    code = mp_read_text(r, MP_SET_DUCKLAKE_TABLE, &config->table);
    if (!code)
        code = mp_read_text(r, MP_SET_DUCKLAKE_SCHEMA, &config->schema);
    if (!code)
        code = mp_read_text(r, MP_SET_DUCKLAKE_DATA_PATH, &config->data_path);
    if (!code)
        code = read_catalog(r);
    if (!code)
        code = mp_read_text(r, MP_SET_DUCKLAKE_PARTITION_BY, &config->partition_by);
    if (code)
        return code;
    config->partition_by = mp_text_trim(config->partition_by);
    if (config->partition_by.size &&
        !mp_partition_check(r->arena, config->partition_by, true, &wrong))
        return mp_err_set(
            r->err, MP_BAD_CONFIG, "DUCKLAKE_PARTITION_BY is \"%s\": %s",
            mp_setting_shown(r->arena, MP_SET_DUCKLAKE_PARTITION_BY, config->partition_by), wrong);
    code = mp_read_int(r, MP_SET_DUCKLAKE_MAX_RETRY_COUNT, &retries);
    if (!code)
        code = read_ducklake_s3(r);
    if (!code)
        code = mp_read_choice(r, MP_SET_MILLPOND_OFFSETS_FROM, &from);
    if (code)
        return code;
    config->ducklake.race_retries_max = (uint32_t)retries;
    config->ducklake.offsets_from = from ? MP_OFFSETS_FROM_KAFKA : MP_OFFSETS_FROM_LAKE;
    return MP_OK;
}

/* --- hoglake --------------------------------------------------------------------------------- */

/* `first` then at most `more` of `rest`, each a set of characters. */
static bool name_ok(struct mp_str name, const char *first, const char *rest, size_t more)
{
    bool ok = name.size && name.size <= more + 1 && strchr(first, name.data[0]);

    for (size_t i = 1; i < name.size && ok; i++)
        ok = name.data[i] && strchr(rest, name.data[i]);
    return ok;
}

#define SMALL  "abcdefghijklmnopqrstuvwxyz"
#define LARGE  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool hoglake_name_ok(struct mp_str name)
{
    return name_ok(name, SMALL LARGE "_", SMALL LARGE DIGITS "_-", 127);
}

static enum mp_code read_hoglake_name(struct mp_reader *r, enum mp_setting_id id,
                                      struct mp_str *ret)
{
    enum mp_code code = mp_read_text(r, id, ret);

    if (!code && !hoglake_name_ok(*ret))
        code = fault(r, id, "a letter or '_', then at most 127 of letters, digits, '_' and '-'");
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
    return bucket.size >= 3 && name_ok(bucket, SMALL DIGITS, SMALL DIGITS ".-", 62) &&
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
        return fault(r, MP_SET_HOGLAKE_URL, "an address that begins with http:// or https://");
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
        return alone(r, MP_SET_HOGLAKE_S3_ACCESS_KEY, MP_SET_HOGLAKE_S3_SECRET_KEY);
    if (!s3->access_key.size && s3->secret_key.size)
        return alone(r, MP_SET_HOGLAKE_S3_SECRET_KEY, MP_SET_HOGLAKE_S3_ACCESS_KEY);
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
    enum mp_code code;

    code = mp_read_int(r, MP_SET_HOGLAKE_MAX_RETRY_COUNT, &attempts);
    if (!code)
        code = mp_read_seconds(r, MP_SET_HOGLAKE_REQUEST_TIMEOUT_S, &request_s,
                               &hoglake->request_ms_max);
    if (!code)
        code = mp_read_int(r, MP_SET_PYHOGLAKE_UPLOAD_CONCURRENCY, &uploads);
    if (!code)
        code = mp_read_duration(r, MP_SET_MILLPOND_HOGLAKE_PLAN_AGE_MAX, &hoglake->plan_age_s_max);
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
    hoglake->upload_concurrency = (uint32_t)uploads;
    return MP_OK;
}

static enum mp_code read_hoglake(struct mp_reader *r)
{
    struct mp_config *config = r->config;
    struct mp_str partition = mp_env_find(r->environment, name_of(MP_SET_HOGLAKE_PARTITION_BY));
    const char *wrong;
    enum mp_code code;

    code = read_hoglake_url(r, &config->hoglake.url);
    if (!code)
        code = mp_read_text(r, MP_SET_HOGLAKE_CATALOG, &config->hoglake.catalog);
    if (!code && !name_ok(config->hoglake.catalog, SMALL, SMALL DIGITS "_-", 62))
        code = fault(r, MP_SET_HOGLAKE_CATALOG,
                     "a small letter, then at most 62 of small letters, digits, '_' and '-'");
    if (!code)
        code = read_hoglake_name(r, MP_SET_HOGLAKE_NAMESPACE, &config->schema);
    if (!code)
        code = read_hoglake_name(r, MP_SET_HOGLAKE_TABLE, &config->table);
    if (!code)
        code = mp_read_text(r, MP_SET_HOGLAKE_DATA_PATH, &config->data_path);
    if (!code && config->data_path.size && !hoglake_data_path_ok(config->data_path))
        code = fault(r, MP_SET_HOGLAKE_DATA_PATH, "s3://bucket or s3://bucket/prefix");
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

static enum mp_code read_destination_own(struct mp_reader *r,
                                         const struct mp_config_options *options)
{
    (void)options;
    return r->config->destination == MP_DESTINATION_HOGLAKE ? read_hoglake(r) : read_ducklake(r);
}

/* --- group, client settings ------------------------------------------------------------------ */

static enum mp_code read_group(struct mp_reader *r, const struct mp_config_options *options)
{
    struct mp_config *config = r->config;
    bool hoglake = config->destination == MP_DESTINATION_HOGLAKE;
    enum mp_code code = mp_read_text(r, MP_SET_GROUP_ID, &config->kafka.group);

    (void)options;
    if (code)
        return code;
    if (!config->kafka.group.size)
        config->kafka.group =
            mp_str_c(mp_arena_printf(r->arena, "millpond-%s%.*s-%.*s", hoglake ? "hoglake-" : "",
                                     MP_STR_ARG(config->kafka.topic), MP_STR_ARG(config->table)));
    config->kafka.client_id =
        mp_str_c(mp_arena_printf(r->arena, "millpond-%.*s-%.*s-%u", MP_STR_ARG(config->kafka.topic),
                                 MP_STR_ARG(config->table), (unsigned)config->ordinal));
    config->pipeline = mp_str_c(mp_arena_printf(
        r->arena, "%.*s-%.*s", MP_STR_ARG(config->kafka.topic), MP_STR_ARG(config->table)));
    config->author = mp_str_c(mp_arena_printf(
        r->arena, "millpond/%.*s/%u", MP_STR_ARG(config->table), (unsigned)config->ordinal));
    return MP_OK;
}

/* Client keys that this program sets itself, and what sets them instead. */
static const struct {
    const char *key, *instead;
} own_keys[] = {
    {"group.id", "set GROUP_ID"},
    {"enable.auto.commit", "offsets are committed after the lake has them"},
    {"enable.auto.offset.store", "offsets are committed after the lake has them"},
    {"fetch.min.bytes", "set FETCH_MIN_BYTES"},
    {"fetch.wait.max.ms", "set FETCH_MAX_WAIT_MS"},
    {"max.poll.interval.ms", "it is fixed"},
    {"statistics.interval.ms", "set STATS_INTERVAL_MS"},
};

static const char *own_key(struct mp_str key)
{
    for (size_t i = 0; i < sizeof(own_keys) / sizeof(*own_keys); i++)
        if (mp_str_eq(key, mp_str_c(own_keys[i].key)))
            return own_keys[i].instead;
    return NULL;
}

/* KAFKA_CONSUMER_SECURITY_PROTOCOL is security.protocol. */
static enum mp_code read_passthrough(struct mp_reader *r, const struct mp_config_options *options)
{
    static const struct mp_str prefix = {"KAFKA_CONSUMER_", 15};
    struct mp_config_pair *pairs;
    uint32_t count = 0;
    bool plural = false, singular = false;

    (void)options;
    for (char *const *entry = r->environment; *entry; entry++)
        count += mp_str_starts(mp_str_c(*entry), prefix);
    pairs = mp_arena_take(r->arena, (count + 1) * sizeof(*pairs));
    count = 0;
    for (char *const *entry = r->environment; *entry; entry++) {
        const char *equal = strchr(*entry, '=');
        struct mp_str name = mp_str_n(*entry, equal ? (size_t)(equal - *entry) : 0), key;
        char *bytes;

        if (!mp_str_starts(name, prefix))
            continue;
        if (mp_str_eq(name, MP_STR("KAFKA_CONSUMER_AUTO_OFFSET_RESET")))
            return mp_err_set(r->err, MP_BAD_CONFIG,
                              "KAFKA_CONSUMER_AUTO_OFFSET_RESET is not allowed: set "
                              "KAFKA_AUTO_OFFSET_RESET");
        key = mp_text_lower(r->arena, mp_str_n(name.data + prefix.size, name.size - prefix.size));
        bytes = mp_arena_take(r->arena, key.size + 1);
        for (size_t i = 0; i < key.size; i++)
            bytes[i] = key.data[i] == '_' ? '.' : key.data[i];
        key.data = bytes;
        if (!key.size)
            return mp_err_set(r->err, MP_BAD_CONFIG,
                              "KAFKA_CONSUMER_ names no client setting behind its last '_'");
        if (own_key(key)) {
            mp_config_warn(r, "%.*s has no effect: %s", MP_STR_ARG(name), own_key(key));
            continue;
        }
        plural |= mp_str_eq(key, MP_STR("sasl.mechanisms"));
        singular |= mp_str_eq(key, MP_STR("sasl.mechanism"));
        pairs[count++] = (struct mp_config_pair){key, mp_arena_str(r->arena, mp_str_c(equal + 1))};
    }
    if (singular && !plural)
        mp_config_warn(r,
                       "KAFKA_CONSUMER_SASL_MECHANISM is the older spelling: AWS sign-in is only "
                       "looked for in KAFKA_CONSUMER_SASL_MECHANISMS");
    r->config->kafka.passthrough = pairs;
    r->config->kafka.passthrough_count = count;
    return MP_OK;
}

/* --- records --------------------------------------------------------------------------------- */

static enum mp_code read_filter(struct mp_reader *r, enum mp_setting_id field_id,
                                enum mp_setting_id values_id, struct mp_config_filter *ret)
{
    struct mp_str values;
    struct mp_str *texts;
    int64_t *integers;
    uint32_t count;
    enum mp_code code;

    if (!mp_read_given(r, field_id) && !mp_read_given(r, values_id))
        return MP_OK;
    if (!mp_read_given(r, field_id))
        return alone(r, values_id, field_id);
    if (!mp_read_given(r, values_id))
        return alone(r, field_id, values_id);
    code = mp_read_text(r, field_id, &ret->field);
    if (!code)
        code = mp_read_text(r, values_id, &values);
    if (code)
        return code;
    texts = mp_text_split(r->arena, values, ',', &count);
    if (!count)
        return mp_err_set(r->err, MP_BAD_CONFIG,
                          "%s is \"%s\" and names no value for %s: allowed "
                          "is a list separated by commas",
                          name_of(values_id), mp_setting_shown(r->arena, values_id, values),
                          name_of(field_id));
    integers = mp_arena_take(r->arena, count * sizeof(*integers));
    ret->integer = true;
    for (uint32_t i = 0; i < count; i++) {
        bool fits;

        ret->integer &= mp_text_integer(texts[i], &integers[i], &fits) && fits;
    }
    for (uint32_t i = 0; i < count && ret->integer; i++)
        texts[i] = mp_str_c(mp_arena_printf(r->arena, "%lld", (long long)integers[i]));
    ret->integers = integers;
    ret->texts = texts;
    ret->count = count;
    return MP_OK;
}

static enum mp_code read_filters(struct mp_reader *r, const struct mp_config_options *options)
{
    enum mp_code code = read_filter(r, MP_SET_MILLPOND_FILTER_KEEP_FIELD_NAME,
                                    MP_SET_MILLPOND_FILTER_VALUES, &r->config->keep);

    (void)options;
    if (!code)
        code = read_filter(r, MP_SET_MILLPOND_FILTER_DROP_FIELD_NAME,
                           MP_SET_MILLPOND_FILTER_DROP_VALUES, &r->config->drop);
    return code;
}

static bool list_has(const struct mp_str *list, uint32_t count, struct mp_str text)
{
    for (uint32_t i = 0; i < count; i++)
        if (mp_str_eq(list[i], text))
            return true;
    return false;
}

static enum mp_code read_sort(struct mp_reader *r, const struct mp_config_options *options)
{
    struct mp_config *config = r->config;
    struct mp_str value, *list;
    uint32_t count, kept = 0;
    enum mp_code code = mp_read_text(r, MP_SET_MILLPOND_SORT_BY, &value);

    (void)options;
    if (code)
        return code;
    list = mp_text_split(r->arena, value, ',', &count);
    for (uint32_t i = 0; i < count; i++) {
        if (!mp_text_identifier(list[i]))
            return fault(r, MP_SET_MILLPOND_SORT_BY,
                         "column names (a letter or '_', then letters, digits and '_'), separated "
                         "by commas");
        if (!list_has(list, kept, list[i]))
            list[kept++] = list[i];
    }
    config->sort_by = list;
    config->sort_by_count = kept;
    return MP_OK;
}

static const struct {
    const char *name;
    enum mp_type_id type;
} pin_types[] = {{"bigint", MP_TYPE_INT64},  {"boolean", MP_TYPE_BOOL},
                 {"double", MP_TYPE_DOUBLE}, {"timestamptz", MP_TYPE_TIMESTAMPTZ},
                 {"uuid", MP_TYPE_UUID},     {"varchar", MP_TYPE_VARCHAR}};

static enum mp_type_id pin_type(struct mp_str name)
{
    for (size_t i = 0; i < sizeof(pin_types) / sizeof(*pin_types); i++)
        if (mp_str_eq_fold(name, mp_str_c(pin_types[i].name)))
            return pin_types[i].type;
    return MP_TYPE_NONE;
}

/* DuckLake has one column for two spellings that differ in case, hoglake two. */
static bool same_column(const struct mp_config *config, struct mp_str a, struct mp_str b)
{
    return config->destination == MP_DESTINATION_DUCKLAKE ? mp_str_eq_fold(a, b) : mp_str_eq(a, b);
}

static enum mp_code pin_add(struct mp_reader *r, struct mp_config_pin *pins, struct mp_str entry)
{
    struct mp_config *config = r->config;
    const enum mp_setting_id id = MP_SET_MILLPOND_TYPED_COLUMNS;
    struct mp_str name, type_name;
    const char *colon = NULL;
    enum mp_type_id type;

    for (size_t i = 0; i < entry.size; i++)
        if (entry.data[i] == ':')
            colon = entry.data + i; /* the last one: a name may hold a colon, a type may not */
    if (!colon)
        return mp_err_set(r->err, MP_BAD_CONFIG,
                          "%s has \"%s\": allowed is column:type, separated by commas", name_of(id),
                          mp_setting_shown(r->arena, id, entry));
    name = mp_text_trim(mp_str_n(entry.data, (size_t)(colon - entry.data)));
    type_name = mp_text_trim(mp_str_n(colon + 1, (size_t)(entry.data + entry.size - (colon + 1))));
    type = pin_type(type_name);
    if (!name.size || type == MP_TYPE_NONE)
        return mp_err_set(r->err, MP_BAD_CONFIG,
                          "%s has \"%s\": %s; allowed types are bigint, boolean, double, "
                          "timestamptz, uuid, varchar",
                          name_of(id), mp_setting_shown(r->arena, id, entry),
                          name.size ? "the type is not known" : "there is no column name");
    if (mp_str_eq_fold(name, MP_STR("_inserted_at"))) {
        if (type != MP_TYPE_TIMESTAMPTZ)
            return mp_err_set(r->err, MP_BAD_CONFIG,
                              "%s has \"%s\": _inserted_at is written by millpond itself, as "
                              "timestamptz",
                              name_of(id), mp_setting_shown(r->arena, id, entry));
        mp_config_warn(r, "%s: the pin of _inserted_at has no effect, it always is a timestamptz",
                       name_of(id));
        return MP_OK;
    }
    for (uint32_t i = 0; i < config->pin_count; i++)
        if (same_column(config, pins[i].name, name)) {
            if (pins[i].type.id == type)
                return MP_OK;
            return mp_err_set(r->err, MP_BAD_CONFIG,
                              "%s gives column \"%s\" two types: allowed is one", name_of(id),
                              mp_setting_shown(r->arena, id, name));
        }
    pins[config->pin_count++] =
        (struct mp_config_pin){mp_arena_str(r->arena, name), {.id = (uint8_t)type}};
    return MP_OK;
}

static enum mp_code read_pins(struct mp_reader *r, const struct mp_config_options *options)
{
    struct mp_config *config = r->config;
    struct mp_config_pin *pins;
    struct mp_str value, *list;
    uint32_t count;
    enum mp_code code = mp_read_text(r, MP_SET_MILLPOND_TYPED_COLUMNS, &value);

    (void)options;
    if (code)
        return code;
    list = mp_text_split(r->arena, value, ',', &count);
    pins = mp_arena_take(r->arena, (count + 1) * sizeof(*pins));
    config->pins = pins;
    for (uint32_t i = 0; i < count && !code; i++)
        code = pin_add(r, pins, list[i]);
    return code;
}

static bool pinned_uuid(const struct mp_config *config, struct mp_str field)
{
    for (uint32_t i = 0; i < config->pin_count; i++)
        if (same_column(config, config->pins[i].name, field))
            return config->pins[i].type.id == MP_TYPE_UUID;
    return false;
}

/* A filter on a uuid column keeps its values as they are written (32 digits are an integer to
 * everybody else), and each must be a UUID. */
static enum mp_code check_uuid_filter(struct mp_reader *r, enum mp_setting_id values_id,
                                      struct mp_config_filter *filter)
{
    struct mp_str values;
    uint32_t count;
    enum mp_code code;

    if (!filter->field.size || !pinned_uuid(r->config, filter->field))
        return MP_OK;
    code = mp_read_text(r, values_id, &values);
    if (code)
        return code;
    filter->texts = mp_text_split(r->arena, values, ',', &count);
    filter->integer = false;
    assert(count == filter->count);
    for (uint32_t i = 0; i < count; i++)
        if (!mp_text_uuid(filter->texts[i]))
            return mp_err_set(r->err, MP_BAD_CONFIG,
                              "%s has \"%s\", but column %.*s is pinned as uuid: allowed are UUIDs",
                              name_of(values_id),
                              mp_setting_shown(r->arena, values_id, filter->texts[i]),
                              MP_STR_ARG(filter->field));
    return MP_OK;
}

static enum mp_code check_uuid_filters(struct mp_reader *r, const struct mp_config_options *options)
{
    enum mp_code code = check_uuid_filter(r, MP_SET_MILLPOND_FILTER_VALUES, &r->config->keep);

    (void)options;
    if (!code)
        code = check_uuid_filter(r, MP_SET_MILLPOND_FILTER_DROP_VALUES, &r->config->drop);
    return code;
}

static enum mp_code read_variants(struct mp_reader *r, const struct mp_config_options *options)
{
    static const struct mp_str suffix = {"_variant", 8};
    struct mp_config_ducklake *ducklake = &r->config->ducklake;
    struct mp_str value, *list;
    uint32_t count;
    enum mp_code code = mp_read_text(r, MP_SET_MILLPOND_VARIANT_COLUMNS, &value);

    (void)options;
    if (code)
        return code;
    list = mp_text_split(r->arena, value, ',', &count);
    if (!count)
        return MP_OK;
    if (r->config->destination == MP_DESTINATION_HOGLAKE)
        return mp_err_set(r->err, MP_BAD_CONFIG,
                          "MILLPOND_VARIANT_COLUMNS is set, but the destination is hoglake, which "
                          "has no VARIANT columns");
    for (uint32_t i = 0; i < count; i++)
        if (list[i].size >= suffix.size &&
            mp_str_eq_fold(mp_str_n(list[i].data + list[i].size - suffix.size, suffix.size),
                           suffix))
            return fault(r, MP_SET_MILLPOND_VARIANT_COLUMNS,
                         "source columns, whose names do not end in _variant");
    mp_config_warn(r, "MILLPOND_VARIANT_COLUMNS: companion columns are not written by this "
                      "version; the columns themselves are");
    ducklake->variant_columns = list;
    ducklake->variant_column_count = count;
    return MP_OK;
}

/* A column name that the destination can have. */
static bool column_ok(const struct mp_config *config, struct mp_str name)
{
    bool ok = name.size <= 255;

    if (config->destination == MP_DESTINATION_HOGLAKE)
        return mp_text_identifier(name) && name.size <= 128 &&
               !(name.size >= 4 && mp_str_eq_fold(mp_str_n(name.data, 4), MP_STR("_hog")));
    for (size_t i = 0; i < name.size; i++)
        ok &= (unsigned char)name.data[i] >= 0x20 && name.data[i] != 0x7f;
    return ok && !mp_str_starts(name, MP_STR("_ducklake_internal_"));
}

static enum mp_code read_rescue(struct mp_reader *r, const struct mp_config_options *options)
{
    struct mp_config *config = r->config;
    const enum mp_setting_id id = MP_SET_MILLPOND_RESCUED_COLUMN;
    bool off = mp_env_find(r->environment, name_of(id)).data && !mp_read_given(r, id);
    enum mp_code code = mp_read_text(r, id, &config->rescued_column);

    (void)options;
    if (code)
        return code;
    if (off)
        config->rescued_column = MP_STR("");
    if (mp_str_eq_fold(config->rescued_column, MP_STR("_inserted_at")) ||
        !(off || column_ok(config, config->rescued_column)))
        return fault(r, id, "a column name that the destination can have, other than _inserted_at");
    for (uint32_t i = 0; i < config->pin_count; i++)
        if (same_column(config, config->pins[i].name, config->rescued_column))
            return mp_err_set(r->err, MP_BAD_CONFIG,
                              "MILLPOND_TYPED_COLUMNS pins \"%.*s\", which is the column for "
                              "rescued values (MILLPOND_RESCUED_COLUMN)",
                              MP_STR_ARG(config->rescued_column));
    return MP_OK;
}

static enum mp_code read_quarantine(struct mp_reader *r, const struct mp_config_options *options)
{
    struct mp_config *config = r->config;
    const enum mp_setting_id id = MP_SET_MILLPOND_QUARANTINE_TABLE;
    bool hoglake = config->destination == MP_DESTINATION_HOGLAKE;
    struct mp_str table;
    enum mp_code code = mp_read_text(r, id, &table);

    (void)options;
    if (code)
        return code;
    if (table.size && !(hoglake ? hoglake_name_ok(table) : mp_text_identifier(table)))
        return fault(r, id, mp_setting_allowed(r->arena, MP_SET_DUCKLAKE_TABLE));
    if (table.size && same_column(config, table, config->table))
        return mp_err_set(
            r->err, MP_BAD_CONFIG,
            "MILLPOND_QUARANTINE_TABLE is \"%.*s\", the table of the rows themselves: "
            "allowed is another one",
            MP_STR_ARG(table));
    config->quarantine_table = table;
    return MP_OK;
}

/* --- the loop -------------------------------------------------------------------------------- */

static enum mp_code read_brokers(struct mp_reader *r, const struct mp_config_options *options)
{
    if (options->without_kafka && !mp_read_given(r, MP_SET_KAFKA_BOOTSTRAP_SERVERS)) {
        r->config->kafka.bootstrap_servers = MP_STR("");
        return MP_OK;
    }
    return mp_read_text(r, MP_SET_KAFKA_BOOTSTRAP_SERVERS, &r->config->kafka.bootstrap_servers);
}

static enum mp_code read_numbers(struct mp_reader *r, const struct mp_config_options *options)
{
    static const enum mp_setting_id ids[] = {MP_SET_FLUSH_SIZE,
                                             MP_SET_FLUSH_INTERVAL_MS,
                                             MP_SET_FETCH_MIN_BYTES,
                                             MP_SET_FETCH_MAX_WAIT_MS,
                                             MP_SET_CONSUME_BATCH_SIZE,
                                             MP_SET_STATS_INTERVAL_MS,
                                             MP_SET_MILLPOND_MAX_COLUMNS,
                                             MP_SET_MILLPOND_OUTAGE_MS_MAX,
                                             MP_SET_MILLPOND_COMPRESSION_LEVEL,
                                             MP_SET_MILLPOND_ENCODE_THREADS};
    struct mp_config *config = r->config;
    int64_t numbers[sizeof(ids) / sizeof(*ids)];
    long cores = options->cores ? (long)options->cores : sysconf(_SC_NPROCESSORS_ONLN);
    unsigned codec;
    enum mp_code code = MP_OK;

    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids) && !code; i++)
        code = mp_read_int(r, ids[i], &numbers[i]);
    if (!code)
        code = mp_read_choice(r, MP_SET_MILLPOND_COMPRESSION, &codec);
    if (code)
        return code;
    config->flush_bytes = (uint64_t)numbers[0];
    config->flush_interval_ms = (uint32_t)numbers[1];
    config->kafka.fetch_bytes_min = (int32_t)numbers[2];
    config->kafka.fetch_wait_ms_max = (int32_t)numbers[3];
    config->kafka.consume_batch = numbers[4] < 10 ? 10 : (uint32_t)numbers[4];
    config->kafka.stats_interval_ms = (int32_t)numbers[5];
    config->columns_max = (uint32_t)numbers[6];
    config->outage_ms_max = (uint64_t)numbers[7];
    config->compression_level = (uint32_t)numbers[8];
    config->encode_threads = (uint32_t)(numbers[9] ? numbers[9] : cores < 1 ? 1 : cores);
    config->compression = (enum mp_compression)codec; /* in the order of settings.def */
    if (config->compression != MP_COMPRESSION_ZSTD &&
        mp_read_given(r, MP_SET_MILLPOND_COMPRESSION_LEVEL))
        mp_config_warn(r, "MILLPOND_COMPRESSION_LEVEL has no effect: only zstd has levels");
    return MP_OK;
}

static enum mp_code read_reset(struct mp_reader *r, const struct mp_config_options *options)
{
    unsigned choice;
    enum mp_code code = mp_read_choice(r, MP_SET_KAFKA_AUTO_OFFSET_RESET, &choice);

    (void)options;
    if (!code)
        r->config->kafka.reset = choice ? MP_RESET_LATEST : MP_RESET_EARLIEST;
    return code;
}

static enum mp_code read_watching(struct mp_reader *r, const struct mp_config_options *options)
{
    static const int levels[] = {10, 20, 30, 30, 40, 50, 50, 0}; /* in the order of settings.def */
    struct mp_config *config = r->config;
    struct mp_str format, source;
    int64_t port;
    unsigned level;
    enum mp_code code = mp_read_int(r, MP_SET_MILLPOND_HTTP_PORT, &port);

    (void)options;
    if (!code)
        code = mp_read_text(r, MP_SET_BROKER_SOURCE, &source);
    if (!code)
        code = mp_read_choice(r, MP_SET_LOG_LEVEL, &level);
    if (!code)
        code = mp_read_text(r, MP_SET_MILLPOND_LOG_FORMAT, &format);
    if (code)
        return code;
    config->http_port = (uint16_t)port;
    config->broker_source = mp_text_lower(r->arena, mp_text_trim(source));
    config->log_level = levels[level];
    config->log_json = mp_str_eq_fold(format, MP_STR("json"));
    if (!config->log_json && !mp_str_eq_fold(format, MP_STR("text")))
        mp_config_warn(r,
                       "MILLPOND_LOG_FORMAT is \"%s\", which is neither json nor text: lines are "
                       "plain text",
                       mp_setting_shown(r->arena, MP_SET_MILLPOND_LOG_FORMAT, format));
    return MP_OK;
}

/* --- include list, telemetry ----------------------------------------------------------------- */

static enum mp_code check_include_alone(struct mp_reader *r)
{
    static const enum mp_setting_id ids[] = {MP_SET_MILLPOND_INCLUDE_VALUES_MODE,
                                             MP_SET_MILLPOND_INCLUDE_VALUES_AUTH_HEADER_NAME,
                                             MP_SET_MILLPOND_INCLUDE_VALUES_AUTH_TOKEN};

    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
        if (mp_read_given(r, ids[i]))
            return alone(r, ids[i], MP_SET_MILLPOND_INCLUDE_VALUES_URL);
    return MP_OK;
}

static bool header_ok(struct mp_str name, struct mp_str value)
{
    bool ok = true;

    for (size_t i = 0; i < name.size; i++)
        ok &= name.data[i] > 0x20 && name.data[i] < 0x7f &&
              !strchr("()<>@,;:\\\"/[]?={}", name.data[i]);
    for (size_t i = 0; i < value.size; i++)
        ok &= (unsigned char)value.data[i] >= 0x20 && value.data[i] != 0x7f;
    return ok;
}

static enum mp_code read_include(struct mp_reader *r, const struct mp_config_options *options)
{
    struct mp_config_include *include = &r->config->include;
    double seconds;
    int64_t polls;
    unsigned mode;
    enum mp_code code = mp_read_text(r, MP_SET_MILLPOND_INCLUDE_VALUES_URL, &include->url);

    (void)options;
    if (code)
        return code;
    if (!include->url.size)
        return check_include_alone(r);
    if (!mp_str_starts(include->url, MP_STR("http://")) &&
        !mp_str_starts(include->url, MP_STR("https://")))
        return fault(r, MP_SET_MILLPOND_INCLUDE_VALUES_URL,
                     "an address that begins with http:// or https://");
    if (!r->config->keep.field.size)
        return alone(r, MP_SET_MILLPOND_INCLUDE_VALUES_URL, MP_SET_MILLPOND_FILTER_KEEP_FIELD_NAME);
    code = mp_read_choice(r, MP_SET_MILLPOND_INCLUDE_VALUES_MODE, &mode);
    if (!code)
        code = mp_read_seconds(r, MP_SET_MILLPOND_INCLUDE_VALUES_POLL_INTERVAL_S, &seconds,
                               &include->poll_ms);
    if (!code)
        code = mp_read_int(r, MP_SET_MILLPOND_INCLUDE_VALUES_REMOVAL_POLLS, &polls);
    if (!code)
        code = mp_read_seconds(r, MP_SET_MILLPOND_INCLUDE_VALUES_REQUEST_TIMEOUT_S, &seconds,
                               &include->request_ms_max);
    if (!code)
        code = mp_read_seconds(r, MP_SET_MILLPOND_INCLUDE_VALUES_STARTUP_TIMEOUT_S, &seconds,
                               &include->start_ms_max);
    if (!code)
        code =
            mp_read_text(r, MP_SET_MILLPOND_INCLUDE_VALUES_AUTH_HEADER_NAME, &include->header_name);
    if (!code)
        code = mp_read_text(r, MP_SET_MILLPOND_INCLUDE_VALUES_AUTH_TOKEN, &include->header_value);
    if (code)
        return code;
    if (!include->header_name.size && include->header_value.size)
        return alone(r, MP_SET_MILLPOND_INCLUDE_VALUES_AUTH_TOKEN,
                     MP_SET_MILLPOND_INCLUDE_VALUES_AUTH_HEADER_NAME);
    if (include->header_name.size && !include->header_value.size)
        return alone(r, MP_SET_MILLPOND_INCLUDE_VALUES_AUTH_HEADER_NAME,
                     MP_SET_MILLPOND_INCLUDE_VALUES_AUTH_TOKEN);
    if (!header_ok(include->header_name, include->header_value))
        return mp_err_set(r->err, MP_BAD_CONFIG,
                          "MILLPOND_INCLUDE_VALUES_AUTH_HEADER_NAME or its token (whose value is "
                          "not shown) cannot stand in an HTTP header");
    include->mode = mode ? MP_INCLUDE_AUTHORITATIVE : MP_INCLUDE_SHADOW;
    include->removal_polls = (uint32_t)polls;
    if (polls == 1)
        mp_config_warn(r, "MILLPOND_INCLUDE_VALUES_REMOVAL_POLLS is 1: one poll without a value "
                          "removes it");
    return MP_OK;
}

static enum mp_code read_telemetry(struct mp_reader *r, const struct mp_config_options *options)
{
    struct mp_config_telemetry *telemetry = &r->config->telemetry;
    const struct {
        enum mp_setting_id id;
        struct mp_str *ret;
    } texts[] = {
        {MP_SET_POSTHOG_PROJECT_TOKEN, &telemetry->token},
        {MP_SET_POSTHOG_LOGS_ENDPOINT, &telemetry->endpoint},
        {MP_SET_MILLPOND_SERVICE_NAMESPACE, &telemetry->namespace_name},
        {MP_SET_MILLPOND_SERVICE_INSTANCE_ID, &telemetry->instance_id},
        {MP_SET_MILLPOND_SERVICE_VERSION, &telemetry->version},
        {MP_SET_OTEL_RESOURCE_ATTRIBUTES, &telemetry->attributes},
        {mp_read_given(r, MP_SET_AWS_REGION) ? MP_SET_AWS_REGION : MP_SET_AWS_DEFAULT_REGION,
         &r->config->kafka.aws_region},
        {MP_SET_AWS_ROLE_SESSION_NAME, &r->config->kafka.aws_role_session_name}};
    enum mp_code code = MP_OK;

    (void)options;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts) && !code; i++)
        code = mp_read_text(r, texts[i].id, texts[i].ret);
    return code;
}

/* --- without effect -------------------------------------------------------------------------- */

static enum mp_code note_ignored(struct mp_reader *r, const struct mp_config_options *options)
{
    const char *names = "";
    uint32_t count = 0;

    (void)options;
    for (unsigned i = 0; i < MP_SET_COUNT; i++)
        if (mp_settings[i].flags & MP_FLAG_IGNORED && mp_read_given(r, i) &&
            r->config->destination == MP_DESTINATION_DUCKLAKE) {
            names =
                mp_arena_printf(r->arena, "%s%s%s", names, count ? ", " : "", mp_settings[i].name);
            count++;
        }
    if (count)
        mp_config_warn(r,
                       "%s: accepted, but without effect, since there is no DuckDB in this "
                       "process",
                       names);
    mp_config_slips(r);
    return MP_OK;
}

enum mp_code mp_config_load(struct mp_arena *arena, char *const *environment,
                            const struct mp_config_options *options, struct mp_err *err,
                            const struct mp_config **ret)
{
    static const struct mp_config_options no_options;
    static enum mp_code (*const steps[])(struct mp_reader *, const struct mp_config_options *) = {
        read_topic,      read_destination,   read_ordinal,   read_destination_own,
        read_group,      read_passthrough,   read_filters,   read_sort,
        read_pins,       check_uuid_filters, read_variants,  read_rescue,
        read_quarantine, read_brokers,       read_numbers,   read_reset,
        read_watching,   read_include,       read_telemetry, note_ignored};
    struct mp_reader r = {.arena = arena,
                          .environment = environment,
                          .err = err,
                          .config = mp_arena_take(arena, sizeof(struct mp_config))};
    enum mp_code code = MP_OK;

    if (!options)
        options = &no_options;
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps) && !code; i++)
        code = steps[i](&r, options);
    if (!code)
        *ret = r.config;
    return code;
}
