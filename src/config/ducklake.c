/* config/ducklake.c - the settings of the DuckLake destination: table, catalog, object store. */
#include "config/config_priv.h"

#include <stdio.h>

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
        return mp_read_fault(r, MP_SET_MILLPOND_CATALOG, "sqlite:PATH or postgres:CONNINFO");
    config->ducklake.catalog = catalog;
    return MP_OK;
}

/* What the Python program let through to DuckDB. */
static enum mp_code read_s3_text(struct mp_reader *r, enum mp_setting_id id, struct mp_str *ret)
{
    struct mp_str value = mp_env_find(r->environment, mp_setting_name(id));
    enum mp_code code = MP_OK;

    if (value.data && !value.size)
        code = mp_read_fault(r, id, "text, or not to set it at all");
    for (size_t i = 0; i < value.size && !code; i++) {
        char c = value.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!plain && !strchr("_.:/-@+=", c))
            code = mp_read_fault(r, id, "letters, digits and _ . : / - @ + =");
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
        return mp_read_alone(r, MP_SET_DUCKDB_S3_ACCESS_KEY_ID, MP_SET_DUCKDB_S3_SECRET_ACCESS_KEY);
    if (!access_key.size && secret_key.size)
        return mp_read_alone(r, MP_SET_DUCKDB_S3_SECRET_ACCESS_KEY, MP_SET_DUCKDB_S3_ACCESS_KEY_ID);
    s3->access_key = access_key;
    s3->secret_key = secret_key;
    s3->path_style = style == 1;
    return MP_OK;
}

/* A path with something like a scheme in front that is no directory's or S3's: a slip, or a store
 * that we do not know. */
static bool other_scheme(struct mp_str path)
{
    const char *colon = memchr(path.data, ':', path.size),
               *slash = memchr(path.data, '/', path.size);

    return colon && slash && colon < slash && !mp_str_starts(path, MP_STR("s3://")) &&
           !mp_str_starts(path, MP_STR("file:///"));
}

static enum mp_code read_data_path(struct mp_reader *r)
{
    struct mp_str *path = &r->config->data_path;
    enum mp_code code = mp_read_text(r, MP_SET_DUCKLAKE_DATA_PATH, path);

    if (!code && other_scheme(*path))
        code = mp_read_fault(r, MP_SET_DUCKLAKE_DATA_PATH, "s3://bucket/prefix/ or a directory");
    return code;
}

enum mp_code mp_read_ducklake(struct mp_reader *r)
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
        code = read_data_path(r);
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
