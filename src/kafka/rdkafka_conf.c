/* kafka/rdkafka_conf.c - options -> the client's configuration.
 *
 * The order is the Python program's: what it always set wins over what is passed through, which
 * wins over the rest. Two things differ on purpose:
 *
 *   auto.offset.reset  is `error`: a position that the log does not have is told to the pipeline,
 *                      which applies the policy, counts the gap and says so.
 *   fetch sizes        are small, since the client checks the fetched-ahead limits only before it
 *                      asks for more: each broker may overshoot them by one answer. The limit in
 *                      records is for small ones, whose bookkeeping outweighs their bytes: 20,000
 *                      of 40 bytes make 25 MB resident, the client's 100,000 make 52.
 */
#include "kafka/rdkafka_priv.h"

#include <stdio.h>
#include <stdlib.h>

#define FETCH_BYTES_MAX           (2 * 1024 * 1024)
#define PARTITION_FETCH_BYTES_MAX (1024 * 1024)
#define AHEAD_KBYTES_MAX          16384
#define AHEAD_RECORDS_MAX         20000
#define TRANSACTION_MS_MAX        30000
#define FULL_QUEUE_WAIT_MS        50 /* asked again so soon after the fetched-ahead limit was met */

static enum mp_code set(rd_kafka_conf_t *conf, const char *name, const char *value,
                        struct mp_err *err)
{
    char text[384];

    if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) != RD_KAFKA_CONF_OK)
        return mp_err_set(err, MP_BAD_CONFIG, "kafka setting %s: %s", name, text);
    return MP_OK;
}

static enum mp_code set_number(rd_kafka_conf_t *conf, const char *name, uint64_t value,
                               struct mp_err *err)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    return set(conf, name, text, err);
}

static bool passed(const struct mp_source_rdkafka_options *options, const char *name)
{
    for (uint32_t i = 0; i < options->setting_count; i++)
        if (strcmp(options->settings[i].name, name) == 0)
            return true;
    return false;
}

uint64_t mp_rdkafka_conf_number(const rd_kafka_conf_t *conf, const char *name)
{
    char text[32] = "";
    size_t size = sizeof(text);

    if (rd_kafka_conf_get(conf, name, text, &size) != RD_KAFKA_CONF_OK)
        return 0;
    return strtoull(text, NULL, 10);
}

/* The client refuses a fetch.max.bytes below message.max.bytes, which may be passed through. */
static uint64_t fetch_bytes_max(const rd_kafka_conf_t *conf)
{
    uint64_t message_bytes_max = mp_rdkafka_conf_number(conf, "message.max.bytes");

    return message_bytes_max > FETCH_BYTES_MAX ? message_bytes_max : FETCH_BYTES_MAX;
}

/* Sizes and pace that are ours unless passed through. */
static enum mp_code set_unless_passed(const struct mp_source_rdkafka_options *options,
                                      rd_kafka_conf_t *conf, struct mp_err *err)
{
    const struct {
        const char *name, *alias;
        uint64_t value;
    } ours[] = {
        {"fetch.max.bytes", "", fetch_bytes_max(conf)},
        {"max.partition.fetch.bytes", "fetch.message.max.bytes", PARTITION_FETCH_BYTES_MAX},
        {"queued.max.messages.kbytes", "", AHEAD_KBYTES_MAX},
        {"queued.min.messages", "", AHEAD_RECORDS_MAX},
        {"topic.metadata.refresh.interval.ms", "", options->metadata_interval_ms},
    };
    enum mp_code code = MP_OK;

    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours) && !code; i++)
        if (!passed(options, ours[i].name) && !passed(options, ours[i].alias))
            code = set_number(conf, ours[i].name, ours[i].value, err);
    if (!code && !passed(options, "fetch.queue.backoff.ms")) /* since 2.2.0; older: not known */
        set_number(conf, "fetch.queue.backoff.ms", FULL_QUEUE_WAIT_MS, NULL);
    return code;
}

/* What both clients have: where the brokers are, and what is passed through. */
static enum mp_code set_common(rd_kafka_conf_t *conf,
                               const struct mp_source_rdkafka_options *options, struct mp_err *err)
{
    enum mp_code code = set(conf, "bootstrap.servers", options->bootstrap, err);

    if (!code)
        code = set(conf, "client.id", options->client_id, err);
    for (uint32_t i = 0; i < options->setting_count && !code; i++)
        code = set(conf, options->settings[i].name, options->settings[i].value, err);
    return code;
}

enum mp_code mp_rdkafka_conf(const struct mp_source_rdkafka_options *options, struct mp_err *err,
                             rd_kafka_conf_t **ret)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    enum mp_code code = set_common(conf, options, err);

    if (!code)
        code = set(conf, "group.id", options->group, err);
    if (!code)
        code = set(conf, "auto.offset.reset", "error", err);
    if (!code)
        code = set(conf, "enable.auto.commit", "false", err);
    if (!code)
        code = set(conf, "enable.auto.offset.store", "false", err);
    if (!code && options->sees_ends)
        code = set(conf, "enable.partition.eof", "true", err);
    if (!code)
        code = set_number(conf, "fetch.min.bytes", options->fetch_bytes_min, err);
    if (!code)
        code = set_number(conf, "fetch.wait.max.ms", options->fetch_wait_ms_max, err);
    if (!code)
        code = set(conf, "max.poll.interval.ms", "600000", err);
    if (!code)
        code = set_number(conf, "statistics.interval.ms", options->stats_interval_ms, err);
    if (!code)
        code = set_unless_passed(options, conf, err);
    if (code) {
        rd_kafka_conf_destroy(conf);
        return code;
    }
    *ret = conf;
    return MP_OK;
}

enum mp_code mp_rdkafka_owner_conf(const struct mp_source_rdkafka_options *options,
                                   struct mp_err *err, rd_kafka_conf_t **ret)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    enum mp_code code = set_common(conf, options, err);

    if (!code)
        code = set_number(conf, "statistics.interval.ms", 0, err);
    if (!code)
        code = set_number(conf, "transaction.timeout.ms", TRANSACTION_MS_MAX, err);
    /* The client refuses these two above the transaction's. */
    if (!code)
        code = set_number(conf, "message.timeout.ms", TRANSACTION_MS_MAX, err);
    if (!code)
        code = set_number(conf, "socket.timeout.ms", TRANSACTION_MS_MAX / 3, err);
    if (code)
        rd_kafka_conf_destroy(conf);
    else
        *ret = conf;
    return code;
}
