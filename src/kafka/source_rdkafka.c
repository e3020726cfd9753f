/* kafka/source_rdkafka.c - the driver's life: open, partitions, close. See source_rdkafka.h. */
#include "kafka/rdkafka_priv.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>

enum {
    METADATA_INTERVAL_MS = 60000,
    TOPIC_GRACE_MS = 30000,
    FIRST_WAIT_MS = 5000, /* for the first list of partitions; the caller asks again */
    AGAIN_WAIT_MS = 2000, /* for a later one: the thread has records to fetch */
};

static struct mp_rdkafka *of(struct mp_source *source)
{
    return (struct mp_rdkafka *)source;
}

void mp_rdkafka_note_error(struct mp_rdkafka *rdk, const char *text)
{
    snprintf(rdk->last_error, sizeof(rdk->last_error), "%s", text);
    if (rdk->options.on_error)
        rdk->options.on_error(rdk->options.self, text);
}

static void error_event(rd_kafka_t *rk, int code, const char *reason, void *self)
{
    struct mp_rdkafka *rdk = self;

    (void)rk;
    if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
        rdk->down = true; /* last_error keeps the reason of the last one that failed */
        if (rdk->options.on_error)
            rdk->options.on_error(rdk->options.self, reason);
        return;
    }
    mp_rdkafka_note_error(rdk, reason);
}

static int stats_event(rd_kafka_t *rk, char *json, size_t size, void *self)
{
    struct mp_rdkafka *rdk = self;

    (void)rk;
    rdk->options.on_stats(rdk->options.self, mp_str_n(json, size));
    return 0; /* the client frees it */
}

static void log_line(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
    const struct mp_rdkafka *rdk = rd_kafka_opaque(rk);

    (void)facility;
    rdk->options.on_log(rdk->options.self, level, text);
}

/* The owners' clients tell their faults by what their calls answer; their lines are no alarms. */
static void owner_log_line(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
    const struct mp_rdkafka *rdk = rd_kafka_opaque(rk);
    const int notice = 5;

    (void)facility;
    if (rdk->options.on_log)
        rdk->options.on_log(rdk->options.self, level < notice ? notice : level, text);
}

static void token_event(rd_kafka_t *rk, const char *config, void *self)
{
    struct mp_rdkafka *rdk = self;
    const struct mp_source_token *token = &rdk->options.token;
    struct mp_buf text = MP_BUF_INIT(MP_SOURCE_TOKEN_BYTES_MAX);
    const char *principal = "";
    struct mp_err err = {0};
    char fault[384];
    int64_t end_ms = 0;

    (void)config;
    pthread_mutex_lock(&rdk->token_lock);
    if (token->make(token->self, &text, &end_ms, &principal, &err))
        rd_kafka_oauthbearer_set_token_failure(rk, err.text);
    else if (rd_kafka_oauthbearer_set_token(rk, mp_buf_c(&text), end_ms, principal, NULL, 0, fault,
                                            sizeof(fault)))
        rd_kafka_oauthbearer_set_token_failure(rk, fault);
    pthread_mutex_unlock(&rdk->token_lock);
    mp_buf_fini(&text);
}

enum mp_code mp_rdkafka_read_topic(struct mp_rdkafka *rdk, uint32_t wait_ms, struct mp_err *err,
                                   uint32_t *ret)
{
    const struct rd_kafka_metadata *metadata = NULL;
    uint64_t now;
    rd_kafka_resp_err_t fault;
    enum mp_code code = MP_OK;

    fault = rd_kafka_metadata(rdk->rk, 0, rdk->rkt, &metadata, (int)wait_ms);
    if (!fault && metadata->topic_cnt != 1)
        fault = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    if (!fault)
        fault = metadata->topics[0].err;
    if (!fault && metadata->topics[0].partition_cnt <= 0)
        fault = RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
    if (fault) {
        code = mp_rdkafka_err(err, fault, "kafka metadata");
        mp_err_add(err, "topic %s", rdk->topic);
    }
    now = mp_now_mono_us(rdk->env);
    if (metadata)
        rdk->down = false; /* somebody answered */
    if (code == MP_NOT_FOUND) {
        if (!rdk->unknown_since_us)
            rdk->unknown_since_us = now;
        if (now - rdk->unknown_since_us >= (uint64_t)rdk->options.topic_grace_ms * 1000)
            code = mp_err_set(err, MP_REFUSED, "topic %s does not exist", rdk->topic);
    }
    if (!code) {
        rdk->unknown_since_us = 0;
        rdk->topic_partitions = (uint32_t)metadata->topics[0].partition_cnt;
        *ret = rdk->topic_partitions;
    }
    if (metadata)
        rd_kafka_metadata_destroy(metadata);
    return code;
}

/* Adds those of ours that are new; none ever goes away. */
static void add_parts(struct mp_rdkafka *rdk, uint32_t topic_partitions)
{
    uint32_t ordinal = rdk->options.ordinal, replicas = rdk->options.replica_count;
    uint32_t owned =
        topic_partitions > ordinal ? (topic_partitions - ordinal - 1) / replicas + 1 : 0;

    if (owned <= rdk->part_count)
        return;
    rdk->parts = mp_realloc(rdk->parts, owned * sizeof(*rdk->parts));
    rdk->part_ids = mp_realloc(rdk->part_ids, owned * sizeof(*rdk->part_ids));
    rdk->lost = mp_realloc(rdk->lost, owned * sizeof(*rdk->lost));
    for (uint32_t i = rdk->part_count; i < owned; i++) {
        rdk->part_ids[i] = (int32_t)(ordinal + i * replicas);
        rdk->parts[i] = (struct mp_rdkafka_part){.id = rdk->part_ids[i]};
    }
    rdk->part_count = owned;
}

/* A later look that fails is no error: the list known still holds, and poll tells of outages. */
static enum mp_code source_partitions(struct mp_source *source, struct mp_err *err,
                                      const int32_t **ret, uint32_t *ret_count)
{
    struct mp_rdkafka *rdk = of(source);
    bool first = rdk->topic_partitions == 0;
    uint32_t count = 0;

    if (first || mp_now_mono_us(rdk->env) >= rdk->partitions_due_us) {
        enum mp_code code =
            mp_rdkafka_read_topic(rdk, first ? FIRST_WAIT_MS : AGAIN_WAIT_MS, err, &count);

        rd_kafka_poll(rdk->rk, 0); /* errors met on the way */
        if (code && first) {
            if (rdk->last_error[0] && code != MP_REFUSED)
                mp_err_add(err, "%s", rdk->last_error);
            return code;
        }
        if (!code)
            add_parts(rdk, count);
        rdk->partitions_due_us =
            mp_now_mono_us(rdk->env) + (uint64_t)rdk->options.metadata_interval_ms * 1000;
    }
    *ret = rdk->part_ids;
    *ret_count = rdk->part_count;
    return MP_OK;
}

uint32_t mp_source_rdkafka_topic_partitions(const struct mp_source *source)
{
    return ((const struct mp_rdkafka *)source)->topic_partitions;
}

static void source_close(struct mp_source *source)
{
    struct mp_rdkafka *rdk = of(source);

    mp_rdkafka_owners_free(rdk);
    mp_rdkafka_release(rdk);
    if (rdk->queue)
        rd_kafka_queue_destroy(rdk->queue);
    if (rdk->rkt)
        rd_kafka_topic_destroy(rdk->rkt);
    if (rdk->rk)
        rd_kafka_destroy_flags(rdk->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE); /* in no group */
    if (rdk->options.token.free) /* the client, which calls it, is gone */
        rdk->options.token.free(rdk->options.token.self);
    pthread_mutex_destroy(&rdk->token_lock);
    mp_free(rdk->messages);
    mp_free(rdk->items);
    mp_free(rdk->lost);
    mp_free(rdk->parts);
    mp_free(rdk->part_ids);
    mp_free(rdk->topic);
    mp_free(rdk->group);
    mp_free(rdk);
}

static const struct mp_source_driver driver = {
    .name = "rdkafka",
    .partitions = source_partitions,
    .seek = mp_rdkafka_seek,
    .unseek = mp_rdkafka_unseek,
    .poll = mp_rdkafka_poll,
    .reached = mp_rdkafka_reached,
    .own = mp_rdkafka_own,
    .disown = mp_rdkafka_disown,
    .commit = mp_rdkafka_commit,
    .committed = mp_rdkafka_committed,
    .watermarks = mp_rdkafka_watermarks,
    .watermarks_seen = mp_rdkafka_watermarks_seen,
    .close = source_close,
};

/* How often the brokers' threads are woken: a quarter of each limit, see rdkafka_fetch.c. */
static void set_pace(struct mp_rdkafka *rdk, const rd_kafka_conf_t *conf)
{
    rdk->wake_bytes = rdk->wake_records = UINT64_MAX;
    if (mp_rdkafka_conf_number(conf, "fetch.queue.backoff.ms"))
        return; /* this version looks for itself */
    rdk->wake_bytes = mp_rdkafka_conf_number(conf, "queued.max.messages.kbytes") * 1024 / 4;
    rdk->wake_records = mp_rdkafka_conf_number(conf, "queued.min.messages") / 4;
}

static char *copied(const char *text)
{
    size_t size = strlen(text) + 1;

    return memcpy(mp_alloc(size), text, size);
}

/* Which options stand for what is not said. */
static struct mp_source_rdkafka_options completed(const struct mp_source_rdkafka_options *options)
{
    struct mp_source_rdkafka_options full = *options;

    if (!full.metadata_interval_ms)
        full.metadata_interval_ms = METADATA_INTERVAL_MS;
    if (!full.topic_grace_ms)
        full.topic_grace_ms = TOPIC_GRACE_MS;
    return full;
}

enum mp_code mp_source_rdkafka_open(const struct mp_source_rdkafka_options *options,
                                    const struct mp_env *env, struct mp_err *err,
                                    struct mp_source **ret)
{
    struct mp_rdkafka *rdk;
    rd_kafka_conf_t *conf = NULL, *owner_conf = NULL;
    char text[384];
    struct mp_source_rdkafka_options full = completed(options);
    enum mp_code code;

    assert(options->replica_count > 0);
    assert(options->ordinal < options->replica_count);
    code = mp_rdkafka_conf(&full, err, &conf);
    if (!code)
        code = mp_rdkafka_owner_conf(&full, err, &owner_conf);
    if (code) {
        if (conf)
            rd_kafka_conf_destroy(conf);
        if (full.token.free)
            full.token.free(full.token.self);
        return code;
    }
    rdk = mp_alloc(sizeof(*rdk));
    rdk->source.driver = &driver;
    rdk->options = full;
    rdk->env = env;
    rdk->topic = copied(options->topic);
    rdk->group = copied(options->group);
    pthread_mutex_init(&rdk->token_lock, NULL);
    set_pace(rdk, conf);
    rd_kafka_conf_set_opaque(conf, rdk);
    rd_kafka_conf_set_opaque(owner_conf, rdk);
    rd_kafka_conf_set_log_cb(owner_conf, owner_log_line);
    rdk->owners = mp_rdkafka_owners_new(owner_conf, options->group);
    rd_kafka_conf_set_error_cb(conf, error_event);
    if (options->on_stats)
        rd_kafka_conf_set_stats_cb(conf, stats_event);
    if (options->on_log)
        rd_kafka_conf_set_log_cb(conf, log_line);
    if (options->token.make) {
        rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, token_event);
        rd_kafka_conf_enable_sasl_queue(conf, 1);
        rd_kafka_conf_set_oauthbearer_token_refresh_cb(owner_conf, token_event);
        rd_kafka_conf_enable_sasl_queue(owner_conf, 1);
    }
    rdk->rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
    if (!rdk->rk) {
        rd_kafka_conf_destroy(conf);
        source_close(&rdk->source);
        return mp_err_set(err, MP_BAD_CONFIG, "kafka client: %s", text);
    }
    /* Tokens are made in the client's background thread: the first call of ours, for the topic's
     * partitions, already waits for one. */
    if (options->token.make)
        rd_kafka_error_destroy(rd_kafka_sasl_background_callbacks_enable(rdk->rk));
    rdk->rkt = rd_kafka_topic_new(rdk->rk, options->topic, NULL);
    if (!rdk->rkt) {
        source_close(&rdk->source);
        return mp_err_set(err, MP_BAD_CONFIG, "kafka topic %s: %s", options->topic,
                          rd_kafka_err2str(rd_kafka_last_error()));
    }
    rdk->queue = rd_kafka_queue_get_consumer(rdk->rk);
    *ret = &rdk->source;
    return MP_OK;
}
