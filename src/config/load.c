/* config/load.c - the environment becomes struct mp_config, one step after the other.
 *
 * The steps stand in a table at the end, in the order that decides which of several faults is
 * reported. A step reads its own settings and the rules between them.
 */
#include "config/config_priv.h"

#include <unistd.h>

/* --- what, who, where ------------------------------------------------------------------------ */

/* What brokers take for a name. */
static bool is_topic(struct mp_str name)
{
    bool good = name.size <= 249 && !mp_str_eq(name, MP_STR(".")) && !mp_str_eq(name, MP_STR(".."));

    for (size_t i = 0; i < name.size && good; i++) {
        char c = name.data[i];

        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '_' || c == '-';
    }
    return good;
}

static enum mp_code read_topic(struct mp_reader *r)
{
    struct mp_str *topic = &r->config->kafka.topic;
    enum mp_code code;

    if (r->options->without_kafka && !mp_read_given(r, MP_SET_KAFKA_TOPIC)) {
        *topic = MP_STR("load");
        return MP_OK;
    }
    code = mp_read_text(r, MP_SET_KAFKA_TOPIC, topic);
    if (!code && !is_topic(*topic))
        code = mp_read_fault(r, MP_SET_KAFKA_TOPIC,
                             "a name of at most 249 letters, digits, '.', '_' and '-'");
    return code;
}

static enum mp_code read_destination(struct mp_reader *r)
{
    struct mp_config *config = r->config;
    unsigned choice;
    enum mp_code code = mp_read_choice(r, MP_SET_MILLPOND_DESTINATION, &choice);

    if (code)
        return code;
    config->destination = choice ? MP_DESTINATION_HOGLAKE : MP_DESTINATION_DUCKLAKE;
    config->destination_name = choice ? MP_STR("hoglake") : MP_STR("ducklake");
    return MP_OK;
}

/* The digits behind the last '-' of the pod's name. */
static enum mp_code read_ordinal(struct mp_reader *r)
{
    struct mp_config *config = r->config;
    enum mp_setting_id id = mp_read_given(r, MP_SET_POD_NAME) ? MP_SET_POD_NAME : MP_SET_HOSTNAME;
    struct mp_str digits;
    int64_t ordinal, replicas;
    size_t start;
    bool fits;
    enum mp_code code;

    if (r->options->without_kafka) {
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
        return mp_read_fault(r, id,
                             "a name that ends in a hyphen and the ordinal, such as millpond-3");
    code = mp_read_int(r, MP_SET_REPLICA_COUNT, &replicas);
    if (code)
        return code;
    if (ordinal >= replicas)
        return mp_err_set(r->err, MP_BAD_CONFIG,
                          "ordinal %lld, from %s \"%s\", is not below REPLICA_COUNT %lld",
                          (long long)ordinal, mp_setting_name(id),
                          mp_setting_shown(r->arena, id, config->pod), (long long)replicas);
    config->ordinal = (uint32_t)ordinal;
    config->replica_count = (uint32_t)replicas;
    return MP_OK;
}

static enum mp_code read_destination_own(struct mp_reader *r)
{
    return r->config->destination == MP_DESTINATION_HOGLAKE ? mp_read_hoglake(r)
                                                            : mp_read_ducklake(r);
}

/* --- group, client settings ------------------------------------------------------------------ */

static enum mp_code read_group(struct mp_reader *r)
{
    struct mp_config *config = r->config;
    bool hoglake = config->destination == MP_DESTINATION_HOGLAKE;
    enum mp_code code = mp_read_text(r, MP_SET_GROUP_ID, &config->kafka.group);

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
static enum mp_code read_passthrough(struct mp_reader *r)
{
    static const struct mp_str prefix = {"KAFKA_CONSUMER_", 15};
    struct mp_config_pair *pairs;
    uint32_t count = 0;
    bool plural = false, singular = false;

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

/* --- the loop -------------------------------------------------------------------------------- */

static enum mp_code read_brokers(struct mp_reader *r)
{
    if (r->options->without_kafka && !mp_read_given(r, MP_SET_KAFKA_BOOTSTRAP_SERVERS)) {
        r->config->kafka.bootstrap_servers = MP_STR("");
        return MP_OK;
    }
    return mp_read_text(r, MP_SET_KAFKA_BOOTSTRAP_SERVERS, &r->config->kafka.bootstrap_servers);
}

static enum mp_code read_numbers(struct mp_reader *r)
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
    long cores = r->options->cores ? (long)r->options->cores : sysconf(_SC_NPROCESSORS_ONLN);
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

static enum mp_code read_reset(struct mp_reader *r)
{
    unsigned choice;
    enum mp_code code = mp_read_choice(r, MP_SET_KAFKA_AUTO_OFFSET_RESET, &choice);

    if (!code)
        r->config->kafka.reset = choice ? MP_RESET_LATEST : MP_RESET_EARLIEST;
    return code;
}

static enum mp_code read_watching(struct mp_reader *r)
{
    static const int levels[] = {10, 20, 30, 30, 40, 50, 50, 0}; /* in the order of settings.def */
    struct mp_config *config = r->config;
    struct mp_str format, source;
    int64_t port;
    unsigned level;
    enum mp_code code = mp_read_int(r, MP_SET_MILLPOND_HTTP_PORT, &port);

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

static enum mp_code read_telemetry(struct mp_reader *r)
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

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts) && !code; i++)
        code = mp_read_text(r, texts[i].id, texts[i].ret);
    if (code || !telemetry->token.size)
        return code;
    if (!mp_header_ok(MP_STR(""), telemetry->token))
        return mp_err_set(
            r->err, MP_BAD_CONFIG,
            "POSTHOG_PROJECT_TOKEN (whose value is not shown) cannot stand in an HTTP "
            "header");
    if (!mp_str_starts(telemetry->endpoint, MP_STR("http://")) &&
        !mp_str_starts(telemetry->endpoint, MP_STR("https://")))
        return mp_read_fault(r, MP_SET_POSTHOG_LOGS_ENDPOINT,
                             "an address that begins with http:// or https://");
    return MP_OK;
}

/* --- without effect -------------------------------------------------------------------------- */

static enum mp_code note_ignored(struct mp_reader *r)
{
    const char *names = "";
    uint32_t count = 0;

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
    static enum mp_code (*const steps[])(struct mp_reader *) = {
        read_topic,         read_destination,     read_ordinal,    read_destination_own,
        read_group,         read_passthrough,     mp_read_filters, mp_read_sort,
        mp_read_pins,       mp_read_uuid_filters, mp_read_rescue,  mp_read_variants,
        mp_read_quarantine, read_brokers,         read_numbers,    read_reset,
        read_watching,      mp_read_include,      read_telemetry,  note_ignored};
    struct mp_reader r = {.arena = arena,
                          .environment = environment,
                          .err = err,
                          .options = options ? options : &no_options,
                          .config = mp_arena_take(arena, sizeof(struct mp_config))};
    enum mp_code code = MP_OK;

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps) && !code; i++)
        code = steps[i](&r);
    if (!code)
        *ret = r.config;
    return code;
}
