/* cli/kafka.c - the Kafka source as the configuration names it, with its logs and numbers. */
#include "cli/kafka.h"

#include "base/mem.h"
#include "cli/msk_iam.h"
#include "kafka/rdkafka_stats.h"
#include "kafka/source_rdkafka.h"

static void stat_number(void *self, enum mp_rdkafka_stat stat, const char *broker, double value)
{
    static const struct {
        enum mp_metric metric;
        double scale;
    } gauges[] = {
        [MP_RDKAFKA_REPLYQ] = {MP_M_RDKAFKA_REPLYQ, 1},
        [MP_RDKAFKA_MSG_CNT] = {MP_M_RDKAFKA_MSG_CNT, 1},
        [MP_RDKAFKA_MSG_SIZE] = {MP_M_RDKAFKA_MSG_SIZE, 1},
        [MP_RDKAFKA_RTT_AVG] = {MP_M_RDKAFKA_BROKER_RTT_AVG, 1e-6},
        [MP_RDKAFKA_RTT_P99] = {MP_M_RDKAFKA_BROKER_RTT_P99, 1e-6},
    };

    mp_metric_set(self, gauges[stat].metric, broker, value * gauges[stat].scale);
}

static void on_stats(void *self, struct mp_str json)
{
    struct mp_kafka_door *door = self;

    (void)mp_rdkafka_stats(json, NULL, stat_number, mp_engine_metrics(door->engine));
}

static void on_error(void *self, const char *text)
{
    struct mp_kafka_door *door = self;

    mp_metric_add(mp_engine_metrics(door->engine), MP_M_ERRORS, "kafka", 1);
    mp_log(mp_engine_log(door->engine), MP_LOG_WARN, "millpond.consumer", "Kafka error: %s", text);
}

static void on_log(void *self, int level, const char *text)
{
    struct mp_kafka_door *door = self;

    if (level <= 4) /* syslog's warning */
        mp_log(mp_engine_log(door->engine), MP_LOG_WARN, "millpond.rdkafka", "%s", text);
}

static void drop_log(void *self, int level, const char *text)
{
    (void)self, (void)level, (void)text;
}

/* whole: every partition of the topic, whoever else reads them, and nothing is counted. */
static enum mp_code open_source(const struct mp_config *config, struct mp_kafka_door *door,
                                bool whole, uint32_t topic_grace_ms, const struct mp_env *env,
                                struct mp_err *err, struct mp_source **ret)
{
    const struct mp_config_kafka *kafka = &config->kafka;
    struct mp_source_setting *settings =
        mp_alloc_array(kafka->passthrough_count, sizeof(*settings));
    struct mp_source_rdkafka_options options = {
        .bootstrap = kafka->bootstrap_servers.data,
        .topic = kafka->topic.data,
        .group = kafka->group.data,
        .client_id = kafka->client_id.data,
        .ordinal = whole ? 0 : config->ordinal,
        .replica_count = whole ? 1 : config->replica_count,
        .sees_ends = whole,
        .fetch_bytes_min = (uint32_t)kafka->fetch_bytes_min,
        .fetch_wait_ms_max = (uint32_t)kafka->fetch_wait_ms_max,
        .stats_interval_ms = whole ? 0 : (uint32_t)kafka->stats_interval_ms,
        .metadata_interval_ms = 30000,
        .topic_grace_ms = topic_grace_ms,
        .settings = settings,
        .setting_count = kafka->passthrough_count,
        .self = door,
        .on_stats = door && !whole ? on_stats : NULL,
        .on_error = door ? on_error : NULL,
        .on_log = door ? on_log : drop_log,
    };
    enum mp_code code = MP_OK;

    if (mp_msk_iam_wanted(kafka))
        code = mp_msk_iam_open(kafka, env, err, &options.token);
    for (uint32_t i = 0; i < kafka->passthrough_count; i++)
        settings[i] = (struct mp_source_setting){kafka->passthrough[i].key.data,
                                                 kafka->passthrough[i].value.data};
    if (!code)
        code = mp_source_rdkafka_open(&options, env, err, ret); /* takes options.token */
    mp_free(settings);
    return code;
}

enum mp_code mp_open_kafka(void *self, struct mp_engine *engine, struct mp_err *err,
                           struct mp_source **ret)
{
    struct mp_kafka_door *door = self;

    door->engine = engine;
    return open_source(door->config, door, false, 0, mp_engine_env(engine), err, ret);
}

enum mp_code mp_open_whole_kafka(void *self, struct mp_engine *engine, struct mp_err *err,
                                 struct mp_source **ret)
{
    struct mp_kafka_door *door = self;

    return open_source(door->config, door, true, 0, mp_engine_env(engine), err, ret);
}

enum mp_code mp_open_kafka_source(const struct mp_config *config, uint32_t topic_grace_ms,
                                  const struct mp_env *env, struct mp_err *err,
                                  struct mp_source **ret)
{
    return open_source(config, NULL, false, topic_grace_ms, env, err, ret);
}
