/* kafka/rdkafka_offsets.c - stored offsets and watermarks.
 *
 * May run in another thread than poll: uses only the client handle, which is safe for any thread,
 * and what never changes after open.
 */
#include "kafka/rdkafka_priv.h"

#include <assert.h>
#include <stdlib.h>

enum {
    COMMIT_WAIT_MS = 10000,
    COMMITTED_WAIT_MS = 10000,
    RETRY_WAIT_MS = 100,
    WATERMARKS_WAIT_MS = 10000,
};

static const struct mp_rdkafka *of(const struct mp_source *source)
{
    return (const struct mp_rdkafka *)source;
}

/* The first fault of a list, 0 none. */
static rd_kafka_resp_err_t first_fault(const rd_kafka_topic_partition_list_t *list)
{
    for (int i = 0; list && i < list->cnt; i++)
        if (list->elems[i].err)
            return list->elems[i].err;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

enum mp_code mp_rdkafka_commit_plain(struct mp_source *source,
                                     const struct mp_source_offset *offsets, uint32_t count,
                                     struct mp_err *err)
{
    const struct mp_rdkafka *rdk = of(source);
    rd_kafka_topic_partition_list_t *list;
    rd_kafka_queue_t *queue;
    rd_kafka_event_t *event = NULL;
    rd_kafka_resp_err_t fault;
    enum mp_code code = MP_OK;

    if (!count)
        return MP_OK;
    list = rd_kafka_topic_partition_list_new((int)count);
    for (uint32_t i = 0; i < count; i++) {
        rd_kafka_topic_partition_t *item =
            rd_kafka_topic_partition_list_add(list, rdk->topic, offsets[i].partition);

        assert(offsets[i].offset >= 0);
        item->offset = offsets[i].offset;
        if (offsets[i].metadata.size) { /* freed with the list */
            item->metadata = strndup(offsets[i].metadata.data, offsets[i].metadata.size);
            item->metadata_size = offsets[i].metadata.size;
        }
    }
    /* A queue of its own bounds the wait. After a timeout the commit may still come through; a
     * later one cannot be overtaken by it, both go to one coordinator in order. */
    queue = rd_kafka_queue_new(rdk->rk);
    fault = rd_kafka_commit_queue(rdk->rk, list, queue, NULL, NULL);
    if (!fault) {
        event = rd_kafka_queue_poll(queue, COMMIT_WAIT_MS);
        fault = event ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT;
    }
    if (!fault)
        fault = first_fault(rd_kafka_event_topic_partition_list(event));
    if (fault)
        code = mp_rdkafka_err(err, fault, "kafka offset commit");
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_topic_partition_list_destroy(list);
    return code;
}

/* The group's coordinator is not ready: passes by itself, often within a second of its start. */
static bool coordinator_is_coming(rd_kafka_resp_err_t fault)
{
    switch (fault) {
    case RD_KAFKA_RESP_ERR_NOT_COORDINATOR:
    case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
    case RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT:
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__WAIT_COORD:
        return true;
    default:
        return false;
    }
}

enum mp_code mp_rdkafka_committed(struct mp_source *source, struct mp_arena *arena,
                                  struct mp_source_offset *offsets, uint32_t count,
                                  struct mp_err *err)
{
    const struct mp_rdkafka *rdk = of(source);
    uint64_t until = mp_now_mono_us(rdk->env) + (uint64_t)COMMITTED_WAIT_MS * 1000, now;
    rd_kafka_topic_partition_list_t *list;
    rd_kafka_resp_err_t fault;

    if (!count)
        return MP_OK;
    list = rd_kafka_topic_partition_list_new((int)count);
    for (uint32_t i = 0; i < count; i++)
        rd_kafka_topic_partition_list_add(list, rdk->topic, offsets[i].partition);
    for (;;) {
        now = mp_now_mono_us(rdk->env);
        fault = rd_kafka_committed(rdk->rk, list, now < until ? (int)((until - now) / 1000) : 0);
        if (!fault)
            fault = first_fault(list);
        if (!coordinator_is_coming(fault) || mp_now_mono_us(rdk->env) >= until)
            break;
        mp_sleep_us(rdk->env, (uint64_t)RETRY_WAIT_MS * 1000);
    }
    for (uint32_t i = 0; i < count && !fault; i++) {
        const rd_kafka_topic_partition_t *item =
            rd_kafka_topic_partition_list_find(list, rdk->topic, offsets[i].partition);

        assert(item);
        offsets[i].offset = item->offset >= 0 ? item->offset : MP_OFFSET_NONE;
        offsets[i].metadata =
            mp_arena_str(arena, mp_str_n(item->metadata, item->metadata ? item->metadata_size : 0));
    }
    rd_kafka_topic_partition_list_destroy(list);
    return fault ? mp_rdkafka_err(err, fault, "kafka committed offsets") : MP_OK;
}

/* Asks every leader at once for one end of the log: in a request for offsets the two logical
 * offsets stand where a time may stand. (Kafka protocol, ListOffsets, "timestamp") */
static rd_kafka_resp_err_t list_ends(const struct mp_rdkafka *rdk, int64_t end,
                                     const struct mp_source_watermark *watermarks, uint32_t count,
                                     rd_kafka_topic_partition_list_t **ret)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)count);
    rd_kafka_resp_err_t fault;

    for (uint32_t i = 0; i < count; i++)
        rd_kafka_topic_partition_list_add(list, rdk->topic, watermarks[i].partition)->offset = end;
    fault = rd_kafka_offsets_for_times(rdk->rk, list, WATERMARKS_WAIT_MS);
    if (!fault)
        fault = first_fault(list);
    if (fault) {
        rd_kafka_topic_partition_list_destroy(list);
        return fault;
    }
    *ret = list;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static int64_t offset_in(rd_kafka_topic_partition_list_t *list, const struct mp_rdkafka *rdk,
                         int32_t partition)
{
    const rd_kafka_topic_partition_t *item =
        rd_kafka_topic_partition_list_find(list, rdk->topic, partition);

    assert(item);
    return item->offset >= 0 ? item->offset : MP_OFFSET_NONE;
}

enum mp_code mp_rdkafka_watermarks(struct mp_source *source, struct mp_source_watermark *watermarks,
                                   uint32_t count, struct mp_err *err)
{
    const struct mp_rdkafka *rdk = of(source);
    rd_kafka_topic_partition_list_t *lows = NULL, *highs = NULL;
    rd_kafka_resp_err_t fault;

    if (!count)
        return MP_OK;
    fault = list_ends(rdk, RD_KAFKA_OFFSET_BEGINNING, watermarks, count, &lows);
    if (!fault)
        fault = list_ends(rdk, RD_KAFKA_OFFSET_END, watermarks, count, &highs);
    for (uint32_t i = 0; i < count && !fault; i++) {
        watermarks[i].low = offset_in(lows, rdk, watermarks[i].partition);
        watermarks[i].high = offset_in(highs, rdk, watermarks[i].partition);
    }
    if (highs)
        rd_kafka_topic_partition_list_destroy(highs);
    if (lows)
        rd_kafka_topic_partition_list_destroy(lows);
    return fault ? mp_rdkafka_err(err, fault, "kafka watermarks") : MP_OK;
}

void mp_rdkafka_watermarks_seen(struct mp_source *source, struct mp_source_watermark *watermarks,
                                uint32_t count)
{
    const struct mp_rdkafka *rdk = of(source);

    for (uint32_t i = 0; i < count; i++) {
        int64_t low = -1, high = -1;

        if (rd_kafka_get_watermark_offsets(rdk->rk, rdk->topic, watermarks[i].partition, &low,
                                           &high))
            low = high = -1;
        watermarks[i].low = low >= 0 ? low : MP_OFFSET_NONE;
        watermarks[i].high = high >= 0 ? high : MP_OFFSET_NONE;
    }
}
