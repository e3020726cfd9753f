#include "kafka/mock_broker.h"

#include "base/mem.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

enum { FLUSH_MS = 10000, QUEUE_FULL_MS = 10, CLOSE_MS = 1000 };

struct mp_mock_broker {
    rd_kafka_t *client; /* hosts the cluster, and produces to it */
    rd_kafka_mock_cluster_t *cluster;
    rd_kafka_topic_t *topic;
};

static enum mp_code open_client(struct mp_mock_broker *broker, struct mp_err *err)
{
    static const char *const settings[][2] = {
        {"test.mock.num.brokers", "1"}, {"linger.ms", "20"}, {"log_level", "3"}};
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[256] = "";

    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
        if (rd_kafka_conf_set(conf, settings[i][0], settings[i][1], text, sizeof(text))) {
            rd_kafka_conf_destroy(conf);
            return mp_err_set(err, MP_BAD_CONFIG, "%s: %s", settings[i][0], text);
        }
    broker->client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    if (!broker->client) {
        rd_kafka_conf_destroy(conf);
        return mp_err_set(err, MP_IO, "mock broker: %s", text);
    }
    return MP_OK;
}

enum mp_code mp_mock_broker_open(const char *topic, uint32_t partitions, struct mp_err *err,
                                 struct mp_mock_broker **ret)
{
    struct mp_mock_broker *broker = mp_alloc(sizeof(*broker));
    enum mp_code code = open_client(broker, err);

    if (!code) {
        broker->cluster = rd_kafka_handle_mock_cluster(broker->client);
        if (rd_kafka_mock_topic_create(broker->cluster, topic, (int)partitions, 1))
            code = mp_err_set(err, MP_IO, "mock broker: no topic %s", topic);
    }
    if (code) {
        mp_mock_broker_close(broker);
        return code;
    }
    broker->topic = rd_kafka_topic_new(broker->client, topic, NULL);
    *ret = broker;
    return MP_OK;
}

const char *mp_mock_broker_bootstrap(const struct mp_mock_broker *broker)
{
    return rd_kafka_mock_cluster_bootstraps(broker->cluster);
}

enum mp_code mp_mock_broker_produce(struct mp_mock_broker *broker, int32_t partition,
                                    struct mp_str value, struct mp_err *err)
{
    /* rdkafka copies the payload and does not write to it */
    while (rd_kafka_produce(broker->topic, partition, RD_KAFKA_MSG_F_COPY,
                            (void *)(uintptr_t)value.data, value.size, NULL, 0, NULL)) {
        if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            return mp_err_set(err, MP_IO, "mock broker: %s",
                              rd_kafka_err2str(rd_kafka_last_error()));
        rd_kafka_poll(broker->client, QUEUE_FULL_MS);
    }
    rd_kafka_poll(broker->client, 0);
    return MP_OK;
}

enum mp_code mp_mock_broker_flush(struct mp_mock_broker *broker, struct mp_err *err)
{
    if (rd_kafka_flush(broker->client, FLUSH_MS))
        return mp_err_set(err, MP_TIMEOUT, "mock broker: not all records arrived in %d ms",
                          FLUSH_MS);
    return MP_OK;
}

void mp_mock_broker_close(struct mp_mock_broker *broker)
{
    if (!broker)
        return;
    if (broker->topic)
        rd_kafka_topic_destroy(broker->topic);
    if (broker->client) {
        rd_kafka_purge(broker->client, RD_KAFKA_PURGE_F_QUEUE);
        rd_kafka_flush(broker->client, CLOSE_MS);
        rd_kafka_destroy(broker->client);
    }
    mp_free(broker);
}
