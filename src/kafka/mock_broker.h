/* kafka/mock_broker.h - librdkafka's own broker, inside this process, for demonstrations.
 *
 * It speaks the real protocol on a free loopback port and keeps records in memory only, a few MB
 * of each partition: whoever produces more must let a reader keep up.
 *
 * Threads  produce from one thread.
 * After    rdkafka_mock.h of librdkafka 2.0.2.
 */
#ifndef MP_KAFKA_MOCK_BROKER_H
#define MP_KAFKA_MOCK_BROKER_H

#include "base/err.h"
#include "base/str.h"

struct mp_mock_broker;

enum mp_code mp_mock_broker_open(const char *topic, uint32_t partitions, struct mp_err *err,
                                 struct mp_mock_broker **ret);
/* "127.0.0.1:PORT", lent until close. */
const char *mp_mock_broker_bootstrap(const struct mp_mock_broker *broker);
/* Copies the value. Waits while the producer's queue is full. */
enum mp_code mp_mock_broker_produce(struct mp_mock_broker *broker, int32_t partition,
                                    struct mp_str value, struct mp_err *err);
/* Waits until all that was produced is with the broker. */
enum mp_code mp_mock_broker_flush(struct mp_mock_broker *broker, struct mp_err *err);
/* No-op on NULL. */
void mp_mock_broker_close(struct mp_mock_broker *broker);

#endif
