/* cli/run.c - `millpond run`: the daemon, from the environment. */
#include "cli/cli.h"

#include "cli/engine.h"
#include "base/mem.h"
#include "kafka/rdkafka_stats.h"
#include "kafka/source_rdkafka.h"

#include <stdio.h>

struct run {
    const struct mp_config *config;
    struct mp_engine *engine;
};

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
    struct run *run = self;

    (void)mp_rdkafka_stats(json, NULL, stat_number, mp_engine_metrics(run->engine));
}

static void on_error(void *self, const char *text)
{
    struct run *run = self;

    mp_metric_add(mp_engine_metrics(run->engine), MP_M_ERRORS, "kafka", 1);
    mp_log(mp_engine_log(run->engine), MP_LOG_WARN, "millpond.consumer", "Kafka error: %s", text);
}

static void on_log(void *self, int level, const char *text)
{
    struct run *run = self;

    if (level <= 4) /* syslog's warning */
        mp_log(mp_engine_log(run->engine), MP_LOG_WARN, "millpond.rdkafka", "%s", text);
}

static enum mp_code open_source(void *self, struct mp_engine *engine, struct mp_err *err,
                                struct mp_source **ret)
{
    struct run *run = self;
    const struct mp_config_kafka *kafka = &run->config->kafka;
    struct mp_source_setting *settings =
        mp_alloc_array(kafka->passthrough_count, sizeof(*settings));
    struct mp_source_rdkafka_options options = {
        .bootstrap = kafka->bootstrap_servers.data,
        .topic = kafka->topic.data,
        .group = kafka->group.data,
        .client_id = kafka->client_id.data,
        .ordinal = run->config->ordinal,
        .replica_count = run->config->replica_count,
        .fetch_bytes_min = (uint32_t)kafka->fetch_bytes_min,
        .fetch_wait_ms_max = (uint32_t)kafka->fetch_wait_ms_max,
        .stats_interval_ms = (uint32_t)kafka->stats_interval_ms,
        .metadata_interval_ms = 30000,
        .settings = settings,
        .setting_count = kafka->passthrough_count,
        .self = run,
        .on_stats = on_stats,
        .on_error = on_error,
        .on_log = on_log,
    };
    enum mp_code code;

    run->engine = engine;
    for (uint32_t i = 0; i < kafka->passthrough_count; i++)
        settings[i] = (struct mp_source_setting){kafka->passthrough[i].key.data,
                                                 kafka->passthrough[i].value.data};
    code = mp_source_rdkafka_open(&options, mp_engine_env(engine), err, ret);
    mp_free(settings);
    return code;
}

int mp_cli_run(const struct mp_cli_args *args)
{
    struct mp_engine *engine = NULL;
    struct mp_arena arena;
    struct run run = {0};
    struct mp_engine_options options = {.open_source = open_source, .self = &run, .http = true};
    struct mp_err err = {0};
    enum mp_code code;
    int status = MP_EXIT_OK;

    if (args->count)
        return mp_cli_bad_argument("run", args->values[0]);
    mp_arena_init(&arena, 0);
    code = mp_config_load(&arena, args->environment, NULL, &err, &run.config);
    if (!code)
        code = mp_refuse_unserved(run.config, &err);
    if (code)
        goto out;
    options.config = run.config;
    options.group = run.config->kafka.group;
    options.topic = run.config->kafka.topic;
    code = mp_engine_open(&options, &err, &engine);
    if (!code)
        code = mp_engine_run(engine, &err);
out:
    if (code)
        status = mp_cli_fault(&err);
    mp_engine_close(engine);
    mp_arena_fini(&arena);
    return status;
}
