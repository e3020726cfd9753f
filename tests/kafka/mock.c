#include "kafka/mock.h"

#include <stdio.h>

static const char topic[] = "events";

void mock_open(struct mock *mock, int brokers, int partitions)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[256];

    *mock = (struct mock){.env = mp_env_real()};
    /* The cluster belongs to a client; a first one without brokers holds it. */
    CHECK(rd_kafka_conf_set(conf, "linger.ms", "1", text, sizeof(text)) == RD_KAFKA_CONF_OK);
    CHECK(rd_kafka_conf_set(conf, "log_level", "0", text, sizeof(text)) == RD_KAFKA_CONF_OK);
    snprintf(text, sizeof(text), "%d", brokers);
    CHECK(rd_kafka_conf_set(conf, "test.mock.num.brokers", text, text, sizeof(text)) ==
          RD_KAFKA_CONF_OK);
    mock->producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    CHECK(mock->producer != NULL);
    mock->cluster = rd_kafka_handle_mock_cluster(mock->producer);
    mock->bootstrap = rd_kafka_mock_cluster_bootstraps(mock->cluster);
    CHECK_INT(rd_kafka_mock_topic_create(mock->cluster, topic, partitions, 1), 0);
}

void mock_close(struct mock *mock)
{
    rd_kafka_destroy(mock->producer);
}

void mock_add(struct mock *mock, int32_t partition, const char *key, const void *value,
              size_t value_size, int64_t timestamp_ms)
{
    const rd_kafka_vu_t fields[] = {
        {.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = topic},
        {.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = partition},
        {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {(void *)(uintptr_t)key, key ? strlen(key) : 0}},
        {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {(void *)(uintptr_t)value, value_size}},
        {.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = timestamp_ms},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
    };
    rd_kafka_resp_err_t fault;

    do {
        rd_kafka_error_t *error =
            rd_kafka_produceva(mock->producer, fields, sizeof(fields) / sizeof(*fields));

        fault = error ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR_NO_ERROR;
        if (error)
            rd_kafka_error_destroy(error);
        if (fault == RD_KAFKA_RESP_ERR__QUEUE_FULL)
            rd_kafka_poll(mock->producer, 10);
    } while (fault == RD_KAFKA_RESP_ERR__QUEUE_FULL);
    CHECK_INT(fault, 0);
}

void mock_fill(struct mock *mock, int32_t partition, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++) {
        char value[64];
        int size = snprintf(value, sizeof(value), "p%d o%u", (int)partition, i);

        mock_add(mock, partition, NULL, value, (size_t)size, 1000 + i);
    }
}

void mock_flush(struct mock *mock)
{
    CHECK_INT(rd_kafka_flush(mock->producer, 30000), 0);
}

static void on_error(void *self, const char *text)
{
    struct mock *mock = self;

    mock->errors++;
    snprintf(mock->last_error, sizeof(mock->last_error), "%s", text);
}

static void on_log(void *self, int level, const char *text)
{
    (void)self, (void)level, (void)text;
}

struct mp_source_rdkafka_options mock_options(struct mock *mock)
{
    return (struct mp_source_rdkafka_options){
        .bootstrap = mock->bootstrap,
        .topic = topic,
        .group = "millpond-events-t",
        .client_id = "millpond-events-t-0",
        .replica_count = 1,
        .fetch_bytes_min = 1,
        .fetch_wait_ms_max = 50,
        .self = mock,
        .on_error = on_error,
        .on_log = on_log,
    };
}

struct mp_source *mock_source(struct mock *mock, const struct mp_source_rdkafka_options *options)
{
    struct mp_err err = {0};
    struct mp_source *source = NULL;

    CHECK_OK(mp_source_rdkafka_open(options, &mock->env, &err, &source), err);
    return source;
}

void mock_partitions(struct mp_source *source, const int32_t **ret, uint32_t *ret_count)
{
    struct mp_err err = {0};
    enum mp_code code = MP_TIMEOUT;

    for (int i = 0; i < 20 && code == MP_TIMEOUT; i++)
        code = source->driver->partitions(source, &err, ret, ret_count);
    CHECK_OK(code, err);
}
