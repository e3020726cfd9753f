/* kafka/rdkafka_error.c - the client's error codes -> ours. What is not listed may heal. */
#include "kafka/rdkafka_priv.h"

static const struct {
    rd_kafka_resp_err_t fault;
    enum mp_code code;
} table[] = {
    {RD_KAFKA_RESP_ERR__TIMED_OUT, MP_TIMEOUT},
    {RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, MP_TIMEOUT},
    {RD_KAFKA_RESP_ERR__WAIT_COORD, MP_TIMEOUT},
    {RD_KAFKA_RESP_ERR__FATAL, MP_REFUSED},
    {RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE, MP_REFUSED},
    {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, MP_REFUSED},
    {RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, MP_REFUSED},
    {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, MP_REFUSED},
    {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, MP_REFUSED},
    {RD_KAFKA_RESP_ERR_INVALID_GROUP_ID, MP_REFUSED},
    {RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE, MP_REFUSED},
    {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, MP_NOT_FOUND},
    {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, MP_NOT_FOUND},
    {RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, MP_NOT_FOUND},
};

static enum mp_code code_of(rd_kafka_resp_err_t fault)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].fault == fault)
            return table[i].code;
    return MP_IO;
}

bool mp_rdkafka_refuses(rd_kafka_resp_err_t fault)
{
    return code_of(fault) == MP_REFUSED;
}

enum mp_code mp_rdkafka_err(struct mp_err *err, rd_kafka_resp_err_t fault, const char *what)
{
    enum mp_code code = code_of(fault);

    mp_err_set(err, code, "%s: %s", what, rd_kafka_err2str(fault));
    if (err)
        err->retriable = code != MP_REFUSED;
    return code;
}
