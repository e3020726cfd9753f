/* cli/kafka.h - the door to Kafka that `run` and `demo` give their engine. */
#ifndef MP_CLI_KAFKA_H
#define MP_CLI_KAFKA_H

#include "cli/engine.h"

struct mp_kafka_door {
    const struct mp_config *config; /* borrowed */
    struct mp_engine *engine;       /* set by the first open */
};

/* open_source of an engine whose self is a struct mp_kafka_door. */
enum mp_code mp_open_kafka(void *self, struct mp_engine *engine, struct mp_err *err,
                           struct mp_source **ret);

/* open_whole_source of the same: every partition of the topic. */
enum mp_code mp_open_whole_kafka(void *self, struct mp_engine *engine, struct mp_err *err,
                                 struct mp_source **ret);

/* The same source without an engine around it: nothing is logged or counted. A topic that is still
 * unknown after topic_grace_ms is refused. */
enum mp_code mp_open_kafka_source(const struct mp_config *config, uint32_t topic_grace_ms,
                                  const struct mp_env *env, struct mp_err *err,
                                  struct mp_source **ret);

#endif
