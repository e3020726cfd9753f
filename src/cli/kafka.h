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

#endif
