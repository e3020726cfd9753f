/* kafka/rdkafka_offsets.c - stored offsets and watermarks.
 *
 * May run in another thread than poll: uses only the client handle, which is safe for any thread,
 * and what never changes after open.
 */
#include "kafka/rdkafka_priv.h"

#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

enum {
    COMMIT_WAIT_MS = 10000,
    COMMITTED_WAIT_MS = 10000,
    RETRY_WAIT_MS = 100,
    LEADER_WAIT_MS = 5000, /* for all that one leader is asked */
    LEADERS_WAIT_MS = 3000,
    LEADERS_TRIES = 3,
};

#define NOBODY (-1) /* leads a partition; as the client says it */

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

/* --- watermarks ---
 *
 * The client answers for all partitions or for none. So those that have no leader are left out, and
 * each leader is asked for its own, all at the same time: one that does not answer, although the
 * cluster still names it, holds up no other.
 */

/* A question to one leader. */
struct ask {
    const struct mp_rdkafka *rdk;
    struct mp_source_watermark *watermarks;
    const int32_t *leaders; /* beside watermarks */
    uint32_t count;
    int32_t leader;
    uint64_t until_us;
    rd_kafka_resp_err_t fault;
    pthread_t thread;
    bool runs;
};

/* Asks for one end of the log: in a request for offsets the two logical offsets stand where a time
 * may stand. (Kafka protocol, ListOffsets, "timestamp") */
static rd_kafka_resp_err_t list_ends(const struct ask *ask, int64_t end,
                                     rd_kafka_topic_partition_list_t **ret)
{
    const struct mp_rdkafka *rdk = ask->rdk;
    uint64_t now = mp_now_mono_us(rdk->env);
    int wait_ms = now < ask->until_us ? (int)((ask->until_us - now) / 1000) : 0;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)ask->count);
    rd_kafka_resp_err_t fault;

    for (uint32_t i = 0; i < ask->count; i++)
        if (ask->leaders[i] == ask->leader)
            rd_kafka_topic_partition_list_add(list, rdk->topic, ask->watermarks[i].partition)
                ->offset = end;
    fault = rd_kafka_offsets_for_times(rdk->rk, list, wait_ms);
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

static void *ask_leader(void *self)
{
    struct ask *ask = self;
    rd_kafka_topic_partition_list_t *lows = NULL, *highs = NULL;

    ask->fault = list_ends(ask, RD_KAFKA_OFFSET_BEGINNING, &lows);
    if (!ask->fault)
        ask->fault = list_ends(ask, RD_KAFKA_OFFSET_END, &highs);
    for (uint32_t i = 0; i < ask->count && !ask->fault; i++) {
        struct mp_source_watermark *mark = &ask->watermarks[i];

        if (ask->leaders[i] != ask->leader)
            continue;
        mark->low = offset_in(lows, ask->rdk, mark->partition);
        mark->high = offset_in(highs, ask->rdk, mark->partition);
        mark->away = false;
    }
    if (highs)
        rd_kafka_topic_partition_list_destroy(highs);
    if (lows)
        rd_kafka_topic_partition_list_destroy(lows);
    return NULL;
}

static bool is_asked(const struct ask *asks, uint32_t count, int32_t leader)
{
    for (uint32_t i = 0; i < count; i++)
        if (asks[i].leader == leader)
            return true;
    return false;
}

/* Asks each leader once. Gives the worst fault: what no retry mends before what may pass. */
static rd_kafka_resp_err_t ask_leaders(const struct mp_rdkafka *rdk,
                                       struct mp_source_watermark *watermarks,
                                       const int32_t *leaders, uint32_t count)
{
    uint64_t until_us = mp_now_mono_us(rdk->env) + (uint64_t)LEADER_WAIT_MS * 1000;
    struct ask *asks = mp_alloc_array(count, sizeof(*asks));
    rd_kafka_resp_err_t fault = RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
    uint32_t asked = 0;

    for (uint32_t i = 0; i < count; i++)
        if (leaders[i] != NOBODY && !is_asked(asks, asked, leaders[i]))
            asks[asked++] = (struct ask){.rdk = rdk,
                                         .watermarks = watermarks,
                                         .leaders = leaders,
                                         .count = count,
                                         .leader = leaders[i],
                                         .until_us = until_us};
    for (uint32_t i = 1; i < asked; i++)
        asks[i].runs = pthread_create(&asks[i].thread, NULL, ask_leader, &asks[i]) == 0;
    for (uint32_t i = 0; i < asked; i++)
        if (!asks[i].runs)
            ask_leader(&asks[i]);
    for (uint32_t i = 0; i < asked; i++) {
        if (asks[i].runs)
            pthread_join(asks[i].thread, NULL);
        if (!i || mp_rdkafka_refuses(asks[i].fault))
            fault = asks[i].fault;
    }
    mp_free(asks);
    return fault;
}

static int32_t leader_in(const struct rd_kafka_metadata_topic *topic, int32_t partition)
{
    for (int i = 0; i < topic->partition_cnt; i++)
        if (topic->partitions[i].id == partition)
            return topic->partitions[i].leader;
    return NOBODY;
}

static rd_kafka_resp_err_t read_leaders(const struct mp_rdkafka *rdk,
                                        const struct mp_source_watermark *watermarks,
                                        uint32_t count, int32_t *leaders)
{
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_resp_err_t fault = RD_KAFKA_RESP_ERR__TIMED_OUT;

    /* a question to a broker that has just gone stays with it; the next one goes to another */
    for (int i = 0; i < LEADERS_TRIES && fault == RD_KAFKA_RESP_ERR__TIMED_OUT; i++)
        fault = rd_kafka_metadata(rdk->rk, 0, rdk->rkt, &metadata, LEADERS_WAIT_MS);
    if (!fault && metadata->topic_cnt != 1)
        fault = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    if (!fault)
        fault = metadata->topics[0].err;
    for (uint32_t i = 0; i < count && !fault; i++)
        leaders[i] = leader_in(&metadata->topics[0], watermarks[i].partition);
    if (metadata)
        rd_kafka_metadata_destroy(metadata);
    return fault;
}

enum mp_code mp_rdkafka_watermarks(struct mp_source *source, struct mp_source_watermark *watermarks,
                                   uint32_t count, struct mp_err *err)
{
    const struct mp_rdkafka *rdk = of(source);
    int32_t *leaders = mp_alloc_array(count, sizeof(*leaders));
    uint32_t away = count;
    rd_kafka_resp_err_t fault = RD_KAFKA_RESP_ERR_NO_ERROR;

    for (uint32_t i = 0; i < count; i++)
        watermarks[i].away = true;
    if (count)
        fault = read_leaders(rdk, watermarks, count, leaders);
    if (!fault && count)
        fault = ask_leaders(rdk, watermarks, leaders, count);
    mp_free(leaders);
    for (uint32_t i = 0; i < count; i++)
        away -= !watermarks[i].away;
    if (fault && (away == count || mp_rdkafka_refuses(fault)))
        return mp_rdkafka_err(err, fault, "kafka watermarks");
    return MP_OK;
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
