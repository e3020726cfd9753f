/* cli/doors.c - from settings to the catalog, the store, and the options of other rooms. */
#include "cli/engine.h"

#include "lake/ducklake/ducklake.h"
#include "lake/ducklake/layout.h"
#include "lake/hoglake/hoglake.h"

#include <limits.h>
#include <unistd.h>

static struct mp_ducklake_options ducklake_options(const struct mp_config *config)
{
    return (struct mp_ducklake_options){
        .catalog = config->ducklake.catalog,
        .data_path = config->data_path,
        .schema = config->schema,
        .author = config->author,
        .version = MP_STR(MP_VERSION),
        .race_retries_max = config->ducklake.race_retries_max,
    };
}

static enum mp_code open_ducklake(const struct mp_config *config, struct mp_str group,
                                  struct mp_str topic, bool read_only, const struct mp_env *env,
                                  struct mp_err *err, struct mp_lake **ret)
{
    struct mp_ducklake_options options = ducklake_options(config);
    enum mp_code code;

    options.group = group;
    options.topic = topic;
    options.read_only = read_only;
    code = mp_ducklake_open(&options, env, err, ret);
    if (code)
        mp_err_add(err, "catalog %.*s", MP_STR_ARG(config->ducklake.catalog_name));
    return code;
}

enum mp_code mp_catalog_clock(const struct mp_config *config, const struct mp_env *env,
                              struct mp_err *err, int64_t *ret_wall_us)
{
    struct mp_ducklake_options options = ducklake_options(config);

    return mp_ducklake_clock(&options, env, err, ret_wall_us);
}

static enum mp_code open_hoglake(const struct mp_config *config, struct mp_str topic,
                                 bool read_only, const struct mp_env *env, struct mp_err *err,
                                 struct mp_lake **ret)
{
    struct mp_hoglake_options options = {
        .url = config->hoglake.url,
        .catalog = config->hoglake.catalog,
        .namespace_name = config->schema,
        .data_path = config->data_path,
        .table = config->table,
        .partition_by = config->partition_by,
        .sort_by = config->sort_by,
        .sort_by_count = config->sort_by_count,
        .topic = topic,
        .author = config->author,
        .version = config->telemetry.version,
        .program = MP_STR("millpond/" MP_VERSION),
        .request_ms_max = config->hoglake.request_ms_max,
        .read_only = read_only,
    };

    return mp_hoglake_open(&options, env, err, ret);
}

enum mp_code mp_open_lake(const struct mp_config *config, struct mp_str group, struct mp_str topic,
                          bool read_only, const struct mp_env *env, struct mp_err *err,
                          struct mp_lake **ret)
{
    return config->destination == MP_DESTINATION_HOGLAKE
               ? open_hoglake(config, topic, read_only, env, err, ret)
               : open_ducklake(config, group, topic, read_only, env, err, ret);
}

struct mp_str mp_data_path(const struct mp_config *config, struct mp_arena *arena)
{
    char directory[PATH_MAX];

    if (!getcwd(directory, sizeof(directory)))
        return config->data_path;
    return mp_dl_data_path(arena, config->data_path, mp_str_c(directory));
}

enum mp_code mp_open_store(const struct mp_config *config, struct mp_str data_path,
                           const struct mp_env *env, struct mp_err *err, struct mp_store **ret)
{
    struct mp_store_s3_options s3 = {
        .endpoint = config->s3.endpoint,
        .region = config->s3.region,
        .access_key = config->s3.access_key,
        .secret_key = config->s3.secret_key,
        .use_ssl = config->s3.use_ssl,
        .path_style = config->s3.path_style,
        .put_concurrency = config->hoglake.upload_concurrency, /* 0 for DuckLake: the default */
    };
    enum mp_code code = mp_store_open(data_path, &s3, env, err, ret);

    if (code)
        mp_err_add(err, "store %.*s", MP_STR_ARG(data_path));
    return code;
}

struct mp_filter_options mp_filter_options_of(const struct mp_config *config,
                                              const struct mp_config_filter *filter)
{
    struct mp_filter_options options = {
        .field = filter->field,
        .integer = filter->integer,
        .integers = filter->integers,
        .texts = filter->texts,
        .count = filter->count,
    };

    for (uint32_t i = 0; i < config->pin_count; i++)
        if (config->pins[i].type.id == MP_TYPE_UUID &&
            mp_str_eq(config->pins[i].name, filter->field))
            options.uuid = true;
    return options;
}

struct mp_include_poll_options mp_include_options_of(const struct mp_config *config,
                                                     const struct mp_filter_options *keep)
{
    const struct mp_config_include *include = &config->include;

    return (struct mp_include_poll_options){
        .url = include->url.data,
        .header_name = include->header_name,
        .header_value = include->header_value,
        .authoritative = include->mode == MP_INCLUDE_AUTHORITATIVE,
        .poll_ms = include->poll_ms,
        .request_ms_max = include->request_ms_max,
        .removal_polls = include->removal_polls,
        .keep = keep,
    };
}

struct mp_otlp_options mp_otlp_options_of(const struct mp_config *config, struct mp_str topic,
                                          struct mp_str group,
                                          struct mp_otlp_attribute resource[MP_OTLP_RESOURCE])
{
    const struct mp_config_telemetry *telemetry = &config->telemetry;
    const struct mp_otlp_attribute who[MP_OTLP_RESOURCE] = {
        {MP_STR("service.name"), MP_STR("millpond")},
        {MP_STR("service.namespace"), telemetry->namespace_name},
        {MP_STR("service.version"), telemetry->version},
        {MP_STR("service.instance.id"), telemetry->instance_id},
        {MP_STR("messaging.system"), MP_STR("kafka")},
        {MP_STR("messaging.destination.name"), topic},
        {MP_STR("messaging.kafka.consumer.group"), group},
        {MP_STR("millpond.ducklake.table"), config->table},
        {MP_STR("millpond.ducklake.data_path"), config->data_path},
    };

    memcpy(resource, who, sizeof(who));
    return (struct mp_otlp_options){
        .url = telemetry->endpoint.data,
        .token = telemetry->token,
        .resource = resource,
        .resource_count = MP_OTLP_RESOURCE,
        .more = telemetry->attributes,
    };
}
