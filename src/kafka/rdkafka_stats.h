/* kafka/rdkafka_stats.h - the few numbers of the client's statistics that are watched.
 *
 * After  librdkafka STATISTICS.md. Pure: text in, numbers out.
 */
#ifndef MP_KAFKA_RDKAFKA_STATS_H
#define MP_KAFKA_RDKAFKA_STATS_H

#include "base/err.h"
#include "base/str.h"

enum mp_rdkafka_stat {
    MP_RDKAFKA_REPLYQ,   /* events waiting for us */
    MP_RDKAFKA_MSG_CNT,  /* messages in producer queues */
    MP_RDKAFKA_MSG_SIZE, /* their bytes */
    MP_RDKAFKA_RTT_AVG,  /* of a broker, microseconds */
    MP_RDKAFKA_RTT_P99,  /* of a broker, microseconds */
};

/* Calls number for each; broker is NULL where the number is the client's own. What is missing or
 * negative (no sample yet) is left out. */
enum mp_code mp_rdkafka_stats(struct mp_str json, struct mp_err *err,
                              void (*number)(void *self, enum mp_rdkafka_stat stat,
                                             const char *broker, double value),
                              void *self);

#endif
