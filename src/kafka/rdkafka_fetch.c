/* kafka/rdkafka_fetch.c - seek and poll.
 *
 * Seek. Each seek is a version barrier in the client: rd_kafka_seek raises the partition's version
 * in the calling thread before anything else, and rd_kafka_consume_batch_queue drops what carries
 * an older one, whether it was waiting already or comes from an answer still under way. Seek and
 * poll being one thread's, nothing old can be handed out in between (R1). The check against `next`
 * in keep_record is R2 and catches what the barrier does not: repeats.
 *
 * Out of range. With auto.offset.reset=error the client raises __AUTO_OFFSET_RESET once and stops
 * that partition's fetcher. The event carries no version, so it may also come from before a seek;
 * either way the fetcher is stopped. So it is only taken as "stopped", and the watermarks decide:
 * the position is in the log -> start again there; it is not -> lost, as source.h says (R3).
 *
 * Waking. Up to 2.1 the thread of a broker sleeps up to a second once a fetched-ahead limit is met,
 * and nobody wakes it when we take records away: a reader of 60 MB/s gets 39. Any request wakes
 * it, so after each quarter of a limit one is sent whose answer is not waited for. Later versions
 * have fetch.queue.backoff.ms (rdkafka_conf.c).
 */
#include "kafka/rdkafka_priv.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>

enum {
    SEEK_WAIT_MS = 10000,
    SERVE_MS_MAX = 250, /* callbacks wait no longer behind records */
    PROBE_WAIT_MS = 1000,
    SETTLE_WAIT_MS = 1000,
    AGAIN_MS = 1000,       /* between probes, and between looks at stopped partitions */
    UNANSWERED_MS = 10000, /* the same after a look that nobody answered */
};

static struct mp_rdkafka *of(struct mp_source *source)
{
    return (struct mp_rdkafka *)source;
}

static struct mp_rdkafka_part *part_of(struct mp_rdkafka *rdk, int32_t partition)
{
    const struct mp_source_rdkafka_options *options = &rdk->options;
    uint32_t index;

    if (partition < 0 || (uint32_t)partition % options->replica_count != options->ordinal)
        return NULL;
    index = (uint32_t)partition / options->replica_count;
    return index < rdk->part_count ? &rdk->parts[index] : NULL;
}

static int64_t client_offset(int64_t offset)
{
    if (offset == MP_OFFSET_EARLIEST)
        return RD_KAFKA_OFFSET_BEGINNING;
    if (offset == MP_OFFSET_LATEST)
        return RD_KAFKA_OFFSET_END;
    assert(offset >= 0);
    return offset;
}

static rd_kafka_topic_partition_list_t *list_of_one(const struct mp_rdkafka *rdk, int32_t partition,
                                                    int64_t offset)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

    rd_kafka_topic_partition_list_add(list, rdk->topic, partition)->offset = offset;
    return list;
}

/* Takes the client's error. */
static enum mp_code take_error(rd_kafka_error_t *error, const char *what, struct mp_err *err)
{
    enum mp_code code;

    if (!error)
        return MP_OK;
    code = mp_rdkafka_err(err, rd_kafka_error_code(error), what);
    mp_err_add(err, "%s", rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    return code;
}

static enum mp_code assign(const struct mp_rdkafka *rdk, struct mp_rdkafka_part *part,
                           int64_t offset, struct mp_err *err)
{
    rd_kafka_topic_partition_list_t *list = list_of_one(rdk, part->id, client_offset(offset));
    enum mp_code code = take_error(rd_kafka_incremental_assign(rdk->rk, list), "assign", err);

    rd_kafka_topic_partition_list_destroy(list);
    part->assigned = !code;
    return code;
}

static enum mp_code unassign(const struct mp_rdkafka *rdk, struct mp_rdkafka_part *part,
                             struct mp_err *err)
{
    rd_kafka_topic_partition_list_t *list = list_of_one(rdk, part->id, 0);
    enum mp_code code = take_error(rd_kafka_incremental_unassign(rdk->rk, list), "unassign", err);

    rd_kafka_topic_partition_list_destroy(list);
    part->assigned = part->assigned && code;
    return code;
}

/* Fetches from offset on, wherever it was before. */
static enum mp_code start(const struct mp_rdkafka *rdk, struct mp_rdkafka_part *part,
                          int64_t offset, struct mp_err *err)
{
    rd_kafka_resp_err_t fault;
    enum mp_code code = MP_OK;

    if (part->assigned) {
        fault = rd_kafka_seek(rdk->rkt, part->id, client_offset(offset), SEEK_WAIT_MS);
        if (fault && fault != RD_KAFKA_RESP_ERR__STATE)
            return mp_rdkafka_err(err, fault, "seek");
        if (fault) /* its fetcher is stopped, or not yet started: begin anew */
            code = unassign(rdk, part, err);
    }
    if (!code && !part->assigned)
        code = assign(rdk, part, offset, err);
    if (code)
        return code;
    part->stopped = part->lost = false;
    part->start = offset;
    part->next = offset >= 0 ? offset : 0;
    part->ended = -1;
    return MP_OK;
}

enum mp_code mp_rdkafka_seek(struct mp_source *source, int32_t partition, int64_t offset,
                             struct mp_err *err)
{
    struct mp_rdkafka *rdk = of(source);
    struct mp_rdkafka_part *part = part_of(rdk, partition);
    enum mp_code code;

    if (!part)
        return mp_err_set(err, MP_NOT_FOUND, "topic %s has no partition %d of ours", rdk->topic,
                          (int)partition);
    code = start(rdk, part, offset, err);
    if (code)
        mp_err_add(err, "topic %s partition %d to offset %lld", rdk->topic, (int)partition,
                   (long long)offset);
    return code;
}

enum mp_code mp_rdkafka_unseek(struct mp_source *source, int32_t partition, struct mp_err *err)
{
    struct mp_rdkafka *rdk = of(source);
    struct mp_rdkafka_part *part = part_of(rdk, partition);

    if (!part || !part->assigned)
        return MP_OK;
    part->stopped = part->lost = false;
    part->next = INT64_MAX; /* what is still on its way is below it: R2 drops it */
    return unassign(rdk, part, err);
}

int64_t mp_rdkafka_reached(struct mp_source *source, int32_t partition)
{
    const struct mp_rdkafka_part *part = part_of(of(source), partition);

    if (!part || !part->assigned)
        return MP_OFFSET_NONE;
    return part->ended > part->next ? part->ended : part->next;
}

void mp_rdkafka_release(struct mp_rdkafka *rdk)
{
    for (uint32_t i = 0; i < rdk->message_count; i++)
        rd_kafka_message_destroy(rdk->messages[i]);
    rdk->message_count = rdk->item_count = rdk->lost_count = 0;
}

static void keep_error(struct mp_rdkafka *rdk, const rd_kafka_message_t *message)
{
    struct mp_rdkafka_part *part = message->rkt ? part_of(rdk, message->partition) : NULL;
    char text[256];

    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) { /* only where it is asked for */
        if (part)
            part->ended = message->offset;
        return;
    }
    if (message->rkt)
        snprintf(text, sizeof(text), "%s [%d]: %s", rdk->topic, (int)message->partition,
                 rd_kafka_message_errstr(message));
    else
        snprintf(text, sizeof(text), "group %s: %s", rdk->group, rd_kafka_message_errstr(message));
    mp_rdkafka_note_error(rdk, text);
    switch (message->err) {
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
        if (part)
            part->stopped = true;
        break;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        if (!rdk->unknown_since_us)
            rdk->unknown_since_us = mp_now_mono_us(rdk->env);
        break;
    default:
        if (mp_rdkafka_refuses(message->err))
            snprintf(rdk->refused, sizeof(rdk->refused), "%s", text);
        break;
    }
}

/* True where the record is given; its memory is then the message's. */
static bool keep_record(struct mp_rdkafka *rdk, const rd_kafka_message_t *message)
{
    struct mp_rdkafka_part *part = part_of(rdk, message->partition);
    rd_kafka_timestamp_type_t type;

    if (!part || message->offset < part->next) /* R2 */
        return false;
    part->next = message->offset + 1;
    rdk->given_bytes += message->len + message->key_len;
    rdk->given_records++;
    rdk->items[rdk->item_count++] = (struct mp_record){
        .partition = message->partition,
        .has_key = message->key != NULL,
        .has_value = message->payload != NULL,
        .offset = message->offset,
        .next_offset = message->offset + 1,
        .timestamp_ms = rd_kafka_message_timestamp(message, &type),
        .key = mp_str_n(message->key, message->key ? message->key_len : 0),
        .value = mp_str_n(message->payload, message->payload ? message->len : 0),
    };
    return true;
}

/* Takes up to `max` events behind those there, waiting for the first one only. */
static void take(struct mp_rdkafka *rdk, uint32_t max, uint32_t wait_ms)
{
    rd_kafka_message_t **end = rdk->messages + rdk->message_count;
    ssize_t count = rd_kafka_consume_batch_queue(rdk->queue, 0, end, max);

    if (count <= 0 && wait_ms) { /* the call would wait until it has all it may have: ask for one */
        count = rd_kafka_consume_batch_queue(rdk->queue, (int)wait_ms, end, 1);
        if (count == 1 && max > 1)
            count += rd_kafka_consume_batch_queue(rdk->queue, 0, end + 1, max - 1);
    }
    for (ssize_t i = 0; i < count; i++) {
        rd_kafka_message_t *message = end[i];

        if (message->err)
            keep_error(rdk, message);
        if (!message->err && keep_record(rdk, message))
            rdk->messages[rdk->message_count++] = message; /* never above i: holes are filled */
        else
            rd_kafka_message_destroy(message);
    }
}

/* Waits for records, serving callbacks now and then; ends early for whatever needs a look. */
static void wait_for_records(struct mp_rdkafka *rdk, uint32_t records_max, uint32_t wait_ms)
{
    uint64_t now = mp_now_mono_us(rdk->env), until = now + (uint64_t)wait_ms * 1000;

    if (rdk->messages_max < records_max) {
        rdk->messages = mp_realloc(rdk->messages, records_max * sizeof(*rdk->messages));
        rdk->items = mp_realloc(rdk->items, records_max * sizeof(*rdk->items));
        rdk->messages_max = records_max;
    }
    for (;;) {
        uint64_t left_ms = now < until ? (until - now + 999) / 1000 : 0;

        take(rdk, records_max, (uint32_t)(left_ms < SERVE_MS_MAX ? left_ms : SERVE_MS_MAX));
        rd_kafka_poll(rdk->rk, 0);
        now = mp_now_mono_us(rdk->env);
        if (rdk->item_count || rdk->refused[0] || now >= until)
            break;
    }
}

static void wake_fetchers(struct mp_rdkafka *rdk)
{
    rd_kafka_topic_partition_list_t *list;

    if (rdk->given_bytes < rdk->wake_bytes && rdk->given_records < rdk->wake_records)
        return;
    rdk->given_bytes = rdk->given_records = 0;
    list = rd_kafka_topic_partition_list_new((int)rdk->part_count);
    for (uint32_t i = 0; i < rdk->part_count; i++)
        if (rdk->parts[i].assigned)
            rd_kafka_topic_partition_list_add(list, rdk->topic, rdk->parts[i].id)->offset =
                RD_KAFKA_OFFSET_END;
    if (list->cnt)
        rd_kafka_offsets_for_times(rdk->rk, list, 0); /* sent, not waited for */
    rd_kafka_topic_partition_list_destroy(list);
}

/* Starts a stopped partition again or finds that its position is lost; false: nobody answered. */
static bool settle(struct mp_rdkafka *rdk, struct mp_rdkafka_part *part)
{
    int64_t want = part->next > 0 || part->start >= 0 ? part->next : part->start;
    int64_t low = 0, high = 0;
    rd_kafka_resp_err_t fault;

    fault = rd_kafka_query_watermark_offsets(rdk->rk, rdk->topic, part->id, &low, &high,
                                             SETTLE_WAIT_MS);
    if (fault)
        return false;
    if (want < 0 || (want >= low && want <= high))
        return start(rdk, part, want, NULL) == MP_OK;
    part->lost = true;
    part->low = low;
    part->high = high;
    return true;
}

/* Looks at stopped partitions, now and then, and tells the lost ones, each time. */
static void settle_stopped(struct mp_rdkafka *rdk)
{
    bool due = !rdk->down && mp_now_mono_us(rdk->env) >= rdk->settle_due_us;

    for (uint32_t i = 0; i < rdk->part_count; i++) {
        struct mp_rdkafka_part *part = &rdk->parts[i];

        if (!part->stopped)
            continue;
        if (due) { /* one that does not answer is waited for once, the others at the next look */
            due = settle(rdk, part);
            rdk->settle_due_us =
                mp_now_mono_us(rdk->env) + (uint64_t)(due ? AGAIN_MS : UNANSWERED_MS) * 1000;
        }
        if (part->lost)
            rdk->lost[rdk->lost_count++] = (struct mp_source_lost){
                .partition = part->id, .offset = part->next, .low = part->low, .high = part->high};
    }
}

/* What keeps the whole source from giving records, MP_OK nothing does. Asks the brokers, now and
 * then, whether it has passed: the client tells when it goes down, not when it is back. */
static enum mp_code trouble(struct mp_rdkafka *rdk, struct mp_err *err)
{
    char text[256];
    uint64_t now;
    uint32_t count;

    if (rd_kafka_fatal_error(rdk->rk, text, sizeof(text)))
        return mp_err_set(err, MP_REFUSED, "kafka client: %s", text);
    if (rdk->refused[0])
        return mp_err_set(err, MP_REFUSED, "%s", rdk->refused);
    if (!rdk->down && !rdk->unknown_since_us)
        return MP_OK;
    now = mp_now_mono_us(rdk->env);
    if (now >= rdk->probe_due_us) {
        enum mp_code code = mp_rdkafka_read_topic(rdk, PROBE_WAIT_MS, err, &count);

        rdk->probe_due_us = mp_now_mono_us(rdk->env) + (uint64_t)AGAIN_MS * 1000;
        if (!code || !rdk->down) /* somebody answered, well or not */
            return code;
    }
    if (rdk->unknown_since_us && !rdk->down) {
        mp_err_set(err, MP_NOT_FOUND, "topic %s is unknown", rdk->topic);
        if (err)
            err->retriable = true;
        return MP_NOT_FOUND;
    }
    return mp_err_set(err, MP_IO, "no broker can be reached: %s", rdk->last_error);
}

enum mp_code mp_rdkafka_poll(struct mp_source *source, uint32_t records_max, uint32_t wait_ms,
                             struct mp_err *err, struct mp_records *ret)
{
    struct mp_rdkafka *rdk = of(source);
    enum mp_code code = MP_OK;

    mp_rdkafka_release(rdk);
    rd_kafka_poll(rdk->rk, records_max ? 0 : (int)wait_ms);
    if (records_max)
        wait_for_records(rdk, records_max, wait_ms);
    wake_fetchers(rdk);
    settle_stopped(rdk);
    assert(rdk->item_count == rdk->message_count);
    if (!rdk->item_count && !rdk->lost_count)
        code = trouble(rdk, err);
    else
        rdk->refused[0] = 0;
    if (code)
        return code;
    *ret = (struct mp_records){.items = rdk->items,
                               .count = rdk->item_count,
                               .lost = rdk->lost,
                               .lost_count = rdk->lost_count};
    return MP_OK;
}
