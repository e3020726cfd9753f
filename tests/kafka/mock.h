/* tests/kafka/mock.h - librdkafka's own mock cluster, in process, and a producer for it. */
#ifndef MP_TESTS_KAFKA_MOCK_H
#define MP_TESTS_KAFKA_MOCK_H

#include "harness/test.h"
#include "kafka/source_rdkafka.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

struct mock {
    rd_kafka_t *producer;
    rd_kafka_mock_cluster_t *cluster;
    const char *bootstrap;
    struct mp_env env;
    unsigned errors; /* on_error calls */
    char last_error[256];
};

void mock_open(struct mock *mock, int brokers, int partitions);
void mock_close(struct mock *mock);
/* Produces one record; key or value NULL: none. */
void mock_add(struct mock *mock, int32_t partition, const char *key, const void *value,
              size_t value_size, int64_t timestamp_ms);
/* Produces values "p<partition> o<offset>", count of them. */
void mock_fill(struct mock *mock, int32_t partition, unsigned first, unsigned count);
void mock_flush(struct mock *mock);
struct mp_source_rdkafka_options mock_options(struct mock *mock);
/* The partitions of a source; asked again where the cluster is slow, as its caller does. */
void mock_partitions(struct mp_source *source, const int32_t **ret, uint32_t *ret_count);
struct mp_source *mock_source(struct mock *mock, const struct mp_source_rdkafka_options *options);

#endif
