#include "cli/engine.h"

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/http.h"
#include "cli/probe.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum {
    ALIVE_MS_MAX = 480000,    /* also of one flush, where a destination bounds it */
    ADMISSION_MS_MAX = 30000, /* a hoglake server lets a commit wait for its turn so long */
    APART_MAX = 64, /* members of a VARIANT in columns of their own: two Parquet columns each */
};

struct mp_engine {
    struct mp_engine_options options;
    const struct mp_config *config;
    struct mp_env env;
    struct mp_log *log;
    struct mp_otlp *otlp; /* NULL: lines go to the log's descriptor only */
    struct mp_metrics *metrics;
    struct mp_health *health;
    struct mp_pipeline *pipeline;
    struct mp_http_parts parts;
    struct mp_http_server *http;
    struct mp_pin *pins;
    struct mp_companion *companions;
    struct mp_filter_options keep, drop;
    struct mp_include_poll *include; /* NULL: the keep list stays as it was set */
    pthread_t signals, ticker;
    bool signals_run, ticker_runs;
    atomic_bool stopping; /* asked to stop before the pipeline ran */
    atomic_bool ending;
};

/* Is there a hoglake catalog, or none that can be asked? Then it says itself where its store is. */
static bool has_catalog(struct mp_engine *engine)
{
    struct mp_lake *lake = NULL;
    enum mp_code code = mp_open_lake(engine->config, engine->options.group, engine->options.topic,
                                     true, &engine->env, NULL, &lake);

    mp_lake_close(lake);
    return code != MP_NOT_FOUND;
}

/* A directory is made when it is opened; S3 says nothing before it is asked. */
static enum mp_code door_prove(void *self, struct mp_err *err)
{
    struct mp_engine *engine = self;
    bool hoglake = engine->config->destination == MP_DESTINATION_HOGLAKE;
    struct mp_store *store = NULL;
    struct mp_arena arena;
    struct mp_str path;
    enum mp_code code;

    if (hoglake && has_catalog(engine))
        return MP_OK;
    mp_arena_init(&arena, 0);
    path = mp_data_path(engine->config, &arena);
    code = mp_open_store(engine->config, path, &engine->env, err, &store);
    if (!code && hoglake)
        code = mp_probe_store(engine->config, path, store, engine->log, err);
    else if (!code && strcmp(store->driver->name, "s3") == 0)
        code = mp_prove_store(store, engine->log, err);
    mp_store_close(store);
    mp_arena_fini(&arena);
    return code;
}

static enum mp_code door_lake(void *self, struct mp_err *err, struct mp_lake **ret)
{
    struct mp_engine *engine = self;

    return mp_open_lake(engine->config, engine->options.group, engine->options.topic, false,
                        &engine->env, err, ret);
}

static enum mp_code door_store(void *self, struct mp_str data_path, struct mp_err *err,
                               struct mp_store **ret)
{
    struct mp_engine *engine = self;
    struct mp_store *store;
    enum mp_code code = mp_open_store(engine->config, data_path, &engine->env, err, &store);

    if (code)
        return code;
    if (engine->config->destination == MP_DESTINATION_HOGLAKE)
        code = mp_probe_store(engine->config, data_path, store, engine->log, err);
    if (code)
        mp_store_close(store);
    else
        *ret = store;
    return code;
}

static enum mp_code door_source(void *self, struct mp_err *err, struct mp_source **ret)
{
    struct mp_engine *engine = self;

    return engine->options.open_source(engine->options.self, engine, err, ret);
}

static enum mp_code door_whole_source(void *self, struct mp_err *err, struct mp_source **ret)
{
    struct mp_engine *engine = self;

    return engine->options.open_whole_source(engine->options.self, engine, err, ret);
}

static struct mp_parquet_options parquet_options(const struct mp_config *config)
{
    static const enum mp_codec codecs[] = {
        [MP_COMPRESSION_ZSTD] = MP_CODEC_ZSTD,
        [MP_COMPRESSION_SNAPPY] = MP_CODEC_SNAPPY,
        [MP_COMPRESSION_LZ4] = MP_CODEC_LZ4_RAW,
        [MP_COMPRESSION_NONE] = MP_CODEC_NONE,
    };

    return (struct mp_parquet_options){.codec = codecs[config->compression],
                                       .level = (int)config->compression_level};
}

static struct mp_pipeline *pipeline_of(struct mp_engine *engine)
{
    static const enum mp_pipeline_unsettled unsettled[] = {
        [MP_UNSETTLED_HALT] = MP_PIPELINE_HALT,
        [MP_UNSETTLED_AGAIN] = MP_PIPELINE_AGAIN,
        [MP_UNSETTLED_SKIP] = MP_PIPELINE_SKIP,
    };
    const struct mp_config *config = engine->config;
    const struct mp_config_hoglake *hoglake = &config->hoglake;
    struct mp_pipeline_options options = {
        .topic = engine->options.topic,
        .table = config->table,
        .quarantine_table = config->quarantine_table,
        .create = {.partition_by = config->partition_by,
                   .sort_by = config->sort_by,
                   .sort_by_count = config->sort_by_count},
        .pins = engine->pins,
        .pin_count = config->pin_count,
        .rescued_column = config->rescued_column,
        .companions = engine->companions,
        .companion_count = config->ducklake.variant_count,
        .variant = {.apart = {.prefix = config->ducklake.variant_key_prefix,
                              .names = config->ducklake.variant_keys,
                              .name_count = config->ducklake.variant_key_count},
                    .apart_max = APART_MAX},
        .columns_max = config->columns_max,
        .keep = engine->keep.field.size ? &engine->keep : NULL,
        .drop = engine->drop.field.size ? &engine->drop : NULL,
        .created_by = MP_STR("millpond version " MP_VERSION),
        .parquet = parquet_options(config),
        .flush_bytes = config->flush_bytes,
        .flush_interval_ms = config->flush_interval_ms,
        .poll_records_max = config->kafka.consume_batch,
        .workers = config->encode_threads,
        .outage_ms_max = config->outage_ms_max,
        .reset = config->kafka.reset == MP_RESET_LATEST ? MP_PIPELINE_LATEST : MP_PIPELINE_EARLIEST,
        .offsets_from_source = config->ducklake.offsets_from == MP_OFFSETS_FROM_KAFKA,
        .plan_age_s_max = hoglake->plan_age_s_max,
        .unsettled = unsettled[hoglake->unsettled_plan],
        .lost_offsets_reset = hoglake->lost_offsets_reset,
        .until_end = engine->options.until_end,
        .from_start = engine->options.from_start,
    };
    struct mp_pipeline_doors doors = {engine,
                                      door_lake,
                                      door_store,
                                      door_source,
                                      engine->options.open_whole_source ? door_whole_source : NULL,
                                      door_prove};
    struct mp_pipeline_world world = {&engine->env, engine->log, engine->metrics, engine->health};

    if (config->destination == MP_DESTINATION_HOGLAKE) {
        options.attempts_max = hoglake->attempts_max;
        options.flush_ms_max = ALIVE_MS_MAX;
        options.unsure_ms = hoglake->request_ms_max + ADMISSION_MS_MAX;
    }
    return mp_pipeline_new(&options, &doors, &world);
}

/* Waits for the signals that stop the pipeline; main has them blocked in every thread. */
static void *signals_main(void *self)
{
    struct mp_engine *engine = self;
    sigset_t set;
    int number;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR1); /* the engine's own: it is over */
    while (sigwait(&set, &number) == 0 && !atomic_load(&engine->ending)) {
        mp_log(engine->log, MP_LOG_INFO, "millpond.main", "Received signal %s, shutting down",
               number == SIGINT ? "SIGINT" : "SIGTERM");
        mp_engine_stop(engine);
    }
    return NULL;
}

static void *ticker_main(void *self)
{
    struct mp_engine *engine = self;

    while (!atomic_load(&engine->ending)) {
        struct mp_pipeline_counts counts = mp_pipeline_counts(engine->pipeline);

        engine->options.progress(engine->options.self, &counts);
        mp_sleep_us(&engine->env, 100000);
    }
    return NULL;
}

static void block_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void tell_variants(struct mp_engine *engine)
{
    const struct mp_config_ducklake *ducklake = &engine->config->ducklake;
    struct mp_buf names = MP_BUF_INIT(SIZE_MAX);

    for (uint32_t i = 0; i < ducklake->variant_count; i++)
        mp_buf_printf(&names, "%s%.*s", i ? ", " : "", MP_STR_ARG(ducklake->variants[i].source));
    if (names.size)
        mp_log(engine->log, MP_LOG_INFO, "millpond.main", "Dual-write VARIANT columns: %.*s",
               MP_STR_ARG(mp_buf_str(&names)));
    mp_buf_fini(&names);
}

static void tell_settings(struct mp_engine *engine)
{
    const struct mp_config *config = engine->config;

    mp_log(engine->log, MP_LOG_INFO, "millpond.main", "millpond %s starting", MP_VERSION);
    mp_log(engine->log, MP_LOG_INFO, "millpond.main",
           "Config: destination=%.*s topic=%.*s schema=%.*s table=%.*s ordinal=%u/%u group_id=%.*s",
           MP_STR_ARG(config->destination_name), MP_STR_ARG(engine->options.topic),
           MP_STR_ARG(config->schema), MP_STR_ARG(config->table), config->ordinal,
           config->replica_count, MP_STR_ARG(engine->options.group));
    tell_variants(engine);
    for (uint32_t i = 0; i < config->warning_count; i++)
        mp_log(engine->log, MP_LOG_WARN, "millpond.config", "%.*s",
               MP_STR_ARG(config->warnings[i]));
}

/* --- log export ----------------------------------------------------------------------------- */

static enum mp_code open_otlp(struct mp_engine *engine, struct mp_err *err)
{
    const struct mp_config *config = engine->config;
    struct mp_otlp_attribute resource[MP_OTLP_RESOURCE];
    struct mp_otlp_options options =
        mp_otlp_options_of(config, engine->options.topic, engine->options.group, resource);
    enum mp_code code;

    if (!config->telemetry.token.size)
        return MP_OK;
    code = mp_otlp_open(&options, &engine->env, engine->log, engine->metrics, err, &engine->otlp);
    if (!code)
        mp_log_set_sink(engine->log, mp_otlp_sink(engine->otlp));
    return code;
}

static enum mp_code open_http(struct mp_engine *engine, struct mp_err *err)
{
    enum mp_code code;

    engine->parts = (struct mp_http_parts){engine->metrics, engine->health, engine->pipeline};
    code = mp_cli_http_open(engine->config->http_port, &engine->parts, err, &engine->http);
    if (!code)
        mp_log(engine->log, MP_LOG_INFO, "millpond.server",
               "HTTP server listening on port %u (/metrics, /healthz, /readyz)",
               mp_http_server_port(engine->http));
    return code;
}

enum mp_code mp_engine_open(const struct mp_engine_options *options, struct mp_err *err,
                            struct mp_engine **ret)
{
    const struct mp_config *config = options->config;
    struct mp_engine *engine = mp_alloc(sizeof(*engine));
    char ordinal[16];
    int length = snprintf(ordinal, sizeof(ordinal), "%u", config->ordinal);
    struct mp_log_options log = {
        .fd = STDOUT_FILENO,
        .level = options->quiet ? MP_LOG_WARN : (enum mp_log_level)config->log_level,
        .json = config->log_json,
        .ordinal = mp_str_n(ordinal, (size_t)length),
    };
    enum mp_code code;

    block_signals();
    if (options->quiet)
        log.fd = STDERR_FILENO;
    engine->options = *options;
    engine->config = config;
    engine->env = mp_env_real();
    engine->log = mp_log_new(&log, &engine->env);
    engine->metrics = mp_metrics_new(config->pipeline, config->broker_source, &engine->env);
    engine->health = mp_health_new(ALIVE_MS_MAX, &engine->env);
    engine->pins = mp_alloc_array(config->pin_count, sizeof(*engine->pins));
    for (uint32_t i = 0; i < config->pin_count; i++)
        engine->pins[i] = (struct mp_pin){config->pins[i].name, config->pins[i].type};
    engine->companions =
        mp_alloc_array(config->ducklake.variant_count, sizeof(*engine->companions));
    for (uint32_t i = 0; i < config->ducklake.variant_count; i++)
        engine->companions[i] = (struct mp_companion){config->ducklake.variants[i].source,
                                                      config->ducklake.variants[i].name};
    engine->keep = mp_filter_options_of(config, &config->keep);
    engine->drop = mp_filter_options_of(config, &config->drop);
    engine->pipeline = pipeline_of(engine);
    code = open_otlp(engine, err);
    tell_settings(engine);
    if (!code && options->http)
        code = open_http(engine, err);
    if (code)
        mp_engine_close(engine);
    else
        *ret = engine;
    return code;
}

/* --- include list --------------------------------------------------------------------------- */

static void new_list(void *self, const struct mp_filter_options *keep)
{
    struct mp_engine *engine = self;

    mp_pipeline_set_keep(engine->pipeline, keep);
}

/* Nothing is read before the list that decides what is kept is there. */
static enum mp_code await_list(struct mp_engine *engine, struct mp_err *err)
{
    const uint32_t start_ms_max = engine->config->include.start_ms_max;
    uint64_t until = mp_now_mono_us(&engine->env) + (uint64_t)start_ms_max * 1000;
    enum mp_code code;

    while ((code = mp_include_poll_accepted(engine->include, err)) != MP_OK) {
        if (atomic_load(&engine->stopping))
            return mp_err_set(err, MP_STOPPED, "stopped before it began");
        if (mp_now_mono_us(&engine->env) >= until) {
            mp_err_add(err,
                       "MILLPOND_INCLUDE_VALUES_URL gave no list that could be accepted within "
                       "%g s",
                       start_ms_max / 1e3);
            return code;
        }
        mp_health_beat(engine->health);
        mp_sleep_us(&engine->env, 20000);
    }
    return MP_OK;
}

static enum mp_code open_include(struct mp_engine *engine, struct mp_err *err)
{
    struct mp_include_poll_options options = mp_include_options_of(engine->config, &engine->keep);
    enum mp_code code;

    if (!engine->config->include.url.size) {
        if (engine->keep.field.size)
            mp_metric_set(engine->metrics, MP_M_INCLUDE_VALUES_MODE, "static", 1);
        return MP_OK;
    }
    options.self = engine;
    options.on_list = new_list;
    code = mp_include_poll_open(&options, &engine->env, engine->log, engine->metrics, err,
                                &engine->include);
    return code || !options.authoritative ? code : await_list(engine, err);
}

enum mp_code mp_engine_run(struct mp_engine *engine, struct mp_err *err)
{
    enum mp_code code;

    engine->signals_run = !pthread_create(&engine->signals, NULL, signals_main, engine);
    if (engine->options.progress)
        engine->ticker_runs = !pthread_create(&engine->ticker, NULL, ticker_main, engine);
    code = open_include(engine, err);
    if (!code)
        code = mp_pipeline_run(engine->pipeline, err);
    if (code && code != MP_STOPPED)
        mp_log(engine->log, MP_LOG_ERROR, "millpond.main", "Fatal error in main loop: %s",
               err->text);
    mp_log(engine->log, MP_LOG_INFO, "millpond.main", "millpond shutdown complete");
    return code;
}

void mp_engine_stop(struct mp_engine *engine)
{
    atomic_store(&engine->stopping, true);
    mp_pipeline_stop(engine->pipeline);
}

struct mp_pipeline_counts mp_engine_counts(const struct mp_engine *engine)
{
    return mp_pipeline_counts(engine->pipeline);
}

void mp_engine_close(struct mp_engine *engine)
{
    if (!engine)
        return;
    atomic_store(&engine->ending, true);
    if (engine->signals_run) {
        pthread_kill(engine->signals, SIGUSR1);
        pthread_join(engine->signals, NULL);
    }
    if (engine->ticker_runs)
        pthread_join(engine->ticker, NULL);
    mp_include_poll_close(engine->include);
    mp_http_server_close(engine->http);
    mp_pipeline_free(engine->pipeline);
    mp_log_set_sink(engine->log, NULL);
    mp_otlp_close(engine->otlp);
    mp_health_free(engine->health);
    mp_metrics_free(engine->metrics);
    mp_log_free(engine->log);
    mp_free(engine->companions);
    mp_free(engine->pins);
    mp_free(engine);
}

const struct mp_env *mp_engine_env(const struct mp_engine *engine)
{
    return &engine->env;
}

struct mp_log *mp_engine_log(const struct mp_engine *engine)
{
    return engine->log;
}

struct mp_metrics *mp_engine_metrics(const struct mp_engine *engine)
{
    return engine->metrics;
}
