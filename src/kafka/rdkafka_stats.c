/* kafka/rdkafka_stats.c - see rdkafka_stats.h. */
#include "kafka/rdkafka_stats.h"

#include <jansson.h>

struct receiver {
    void (*number)(void *self, enum mp_rdkafka_stat stat, const char *broker, double value);
    void *self;
};

/* object NULL: no such number. */
static void give(const struct receiver *to, const json_t *object, const char *name,
                 enum mp_rdkafka_stat stat, const char *broker)
{
    const json_t *value = json_object_get(object, name);

    if (json_is_number(value) && json_number_value(value) >= 0)
        to->number(to->self, stat, broker, json_number_value(value));
}

enum mp_code mp_rdkafka_stats(struct mp_str json, struct mp_err *err,
                              void (*number)(void *self, enum mp_rdkafka_stat stat,
                                             const char *broker, double value),
                              void *self)
{
    const struct receiver to = {number, self};
    json_error_t fault;
    json_t *root = json_loadb(json.data, json.size, 0, &fault), *broker;
    const char *name;

    if (!root)
        return mp_err_set(err, MP_BAD_DATA, "kafka statistics: %s at byte %d", fault.text,
                          fault.position);
    give(&to, root, "replyq", MP_RDKAFKA_REPLYQ, NULL);
    give(&to, root, "msg_cnt", MP_RDKAFKA_MSG_CNT, NULL);
    give(&to, root, "msg_size", MP_RDKAFKA_MSG_SIZE, NULL);
    json_object_foreach(json_object_get(root, "brokers"), name, broker)
    {
        give(&to, json_object_get(broker, "rtt"), "avg", MP_RDKAFKA_RTT_AVG, name);
        give(&to, json_object_get(broker, "rtt"), "p99", MP_RDKAFKA_RTT_P99, name);
    }
    json_decref(root);
    return MP_OK;
}
