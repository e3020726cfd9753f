/* kafka/rdkafka_owners.c - stored offsets with one owner a partition: Kafka transactions.
 *
 * For each owned partition there is a transactional producer that never produces. Its
 * transactional.id is GROUP/TOPIC/PARTITION (a topic's name holds no slash, so no two are alike),
 * whoever owns the partition; init_transactions raises its epoch at the coordinator: what the owner
 * before had under way is completed or aborted by then, and whatever it sends later is refused.
 * (KIP-98 "Transaction Coordinator", KIP-447 for offsets without a consumer's membership)
 *
 * W1  a producer is initialised once, by own, and never again: one that is fenced, or fails for
 *     good, stays so. To make it anew would take the partition back from its next owner
 * W2  a call that was not answered in time is taken up where it was: the transaction stays open,
 *     and the next commit of the partition goes into it. (To abort one of which the coordinator
 *     never heard is an error that 2.0.2 makes fatal.)
 * W3  every wait is bounded. (Not by -1, "the remaining transaction timeout": without a broker
 *     2.0.2 waits for ever then.) The transaction's timeout is short, since one that its owner
 *     left open holds back who asks for the offsets, other than the next owner
 *
 * A client has a thread for itself and one for each broker it heard of, so many partitions mean
 * many threads, nearly all asleep. Where transactions are not allowed, or brokers do not know them,
 * own says so, and commits are plain.
 *
 * Errors (INTRODUCTION.md of librdkafka 2.0.2, "Transactional producer"): retriable ones repeat the
 * call; those that require an abort abort and begin again; what is fatal ends the producer.
 *
 * Threads  any: `owners_lock` guards the table; a producer is used by one call at a time, since own
 *          makes new ones only and commits are one thread's.
 */
#include "kafka/rdkafka_priv.h"

#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    AT_ONCE_MAX = 16,       /* partitions that are worked on at the same time */
    INIT_WAIT_MS = 10000,   /* of one call; it goes on in the background and is taken up again */
    CALL_WAIT_MS = 5000,    /* of any other call */
    COMMIT_WAIT_MS = 20000, /* after that a commit is not begun once more */
    AGAIN_MS = 50,
};

struct mp_rdkafka_owner {
    int32_t partition;
    rd_kafka_t *producer;
    bool ready;         /* initialised */
    bool open;          /* a transaction is */
    bool committing;    /* and was asked to be committed */
    bool aborting;      /* or aborted */
    enum mp_code ended; /* MP_OK: it is not */
    char why[256];
};

struct mp_rdkafka_owners {
    pthread_mutex_t lock;
    struct mp_rdkafka_owner **items; /* ascending partitions */
    uint32_t count;
    rd_kafka_conf_t *conf; /* of every producer, without its transactional.id */
    char *group;
    bool plain; /* transactions are not allowed */
    char why[256];
};

static struct mp_rdkafka *of(struct mp_source *source)
{
    return (struct mp_rdkafka *)source;
}

struct mp_rdkafka_owners *mp_rdkafka_owners_new(rd_kafka_conf_t *conf, const char *group)
{
    struct mp_rdkafka_owners *owners = mp_alloc(sizeof(*owners));

    pthread_mutex_init(&owners->lock, NULL);
    owners->conf = conf;
    owners->group = mp_alloc(strlen(group) + 1);
    memcpy(owners->group, group, strlen(group));
    return owners;
}

/* --- several at once ------------------------------------------------------------------------ */

struct work {
    struct mp_rdkafka *rdk;
    struct mp_rdkafka_owner **owners;
    const struct mp_source_offset **offsets; /* beside owners; NULL: none are needed */
    uint32_t count;
    enum mp_code (*one)(struct mp_rdkafka *rdk, struct mp_rdkafka_owner *owner,
                        const struct mp_source_offset *offset, struct mp_err *err);
    atomic_uint_least32_t next;
    pthread_mutex_t lock; /* guards the rest */
    enum mp_code code;    /* of the worst: what cannot heal before what may */
    struct mp_err err;
};

static void *work_main(void *self)
{
    struct work *work = self;
    uint32_t i;

    while ((i = atomic_fetch_add(&work->next, 1)) < work->count) {
        struct mp_err err = {0};
        enum mp_code code =
            work->one(work->rdk, work->owners[i], work->offsets ? work->offsets[i] : NULL, &err);

        pthread_mutex_lock(&work->lock);
        if (code && (!work->code || (work->err.retriable && !err.retriable))) {
            work->code = code;
            work->err = err;
        }
        pthread_mutex_unlock(&work->lock);
    }
    return NULL;
}

static enum mp_code run(struct work *work, struct mp_err *err)
{
    pthread_t threads[AT_ONCE_MAX];
    uint32_t count = 0;

    pthread_mutex_init(&work->lock, NULL);
    while (count + 1 < work->count && count + 1 < AT_ONCE_MAX &&
           pthread_create(&threads[count], NULL, work_main, work) == 0)
        count++;
    work_main(work);
    for (uint32_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&work->lock);
    if (work->code && err)
        *err = work->err;
    return work->code;
}

/* --- the client's errors -------------------------------------------------------------------- */

static bool is_fenced(rd_kafka_resp_err_t fault)
{
    return fault == RD_KAFKA_RESP_ERR__FENCED || fault == RD_KAFKA_RESP_ERR_PRODUCER_FENCED ||
           fault == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH;
}

static bool is_forbidden(rd_kafka_resp_err_t fault)
{
    return fault == RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED ||
           fault == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED ||
           fault == RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE;
}

/* The reason behind an error: of a fatal one, what made it so. */
static rd_kafka_resp_err_t reason(const struct mp_rdkafka_owner *owner,
                                  const rd_kafka_error_t *error)
{
    rd_kafka_resp_err_t first = rd_kafka_fatal_error(owner->producer, NULL, 0);

    return first ? first : rd_kafka_error_code(error);
}

/* What the caller is told of it; the producer's end is kept (W1). */
static enum mp_code tell_error(struct mp_rdkafka_owner *owner, const rd_kafka_error_t *error,
                               struct mp_err *err)
{
    rd_kafka_resp_err_t fault = reason(owner, error);
    enum mp_code code;

    if (is_fenced(fault))
        code = mp_err_set(err, MP_FENCED, "another process owns partition %d", owner->partition);
    else if (rd_kafka_error_is_fatal(error)) {
        code = mp_err_set(err, MP_IO, "kafka transaction, partition %d: %s", owner->partition,
                          rd_kafka_error_string(error));
        err->retriable = false; /* by another producer only, and another owner: W1 */
    } else {
        code = mp_rdkafka_err(err, fault, "kafka transaction");
        mp_err_add(err, "partition %d", owner->partition);
        return code;
    }
    owner->ended = code;
    snprintf(owner->why, sizeof(owner->why), "%s", err->text);
    return code;
}

/* --- one transaction ------------------------------------------------------------------------ */

static bool is_over(const struct mp_rdkafka *rdk, uint64_t until)
{
    return mp_now_mono_us(rdk->env) >= until;
}

/* Repeats a call of the client while that is what its error asks for. Gives the last error, NULL
 * none. */
static rd_kafka_error_t *persist(const struct mp_rdkafka *rdk, rd_kafka_t *producer,
                                 rd_kafka_error_t *(*call)(rd_kafka_t *producer, int wait_ms),
                                 uint64_t until)
{
    rd_kafka_error_t *error;

    while ((error = call(producer, CALL_WAIT_MS)) != NULL && rd_kafka_error_is_retriable(error) &&
           !rd_kafka_error_txn_requires_abort(error) && !is_over(rdk, until)) {
        rd_kafka_error_destroy(error);
        mp_sleep_us(rdk->env, AGAIN_MS * UINT64_C(1000));
    }
    return error;
}

static rd_kafka_error_t *send_offset(struct mp_rdkafka *rdk, struct mp_rdkafka_owner *owner,
                                     const struct mp_source_offset *offset)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_t *item =
        rd_kafka_topic_partition_list_add(list, rdk->topic, offset->partition);
    rd_kafka_consumer_group_metadata_t *group =
        rd_kafka_consumer_group_metadata_new(rdk->owners->group);
    rd_kafka_error_t *error;

    item->offset = offset->offset;
    if (offset->metadata.size) { /* freed with the list */
        item->metadata = strndup(offset->metadata.data, offset->metadata.size);
        item->metadata_size = offset->metadata.size;
    }
    error = rd_kafka_send_offsets_to_transaction(owner->producer, list, group, CALL_WAIT_MS);
    rd_kafka_consumer_group_metadata_destroy(group);
    rd_kafka_topic_partition_list_destroy(list);
    return error;
}

/* One attempt, which goes on where the one before was left (W2). NULL: it is stored. */
static rd_kafka_error_t *attempt(struct mp_rdkafka *rdk, struct mp_rdkafka_owner *owner,
                                 const struct mp_source_offset *offset, uint64_t until)
{
    rd_kafka_error_t *error = NULL;

    if (owner->committing)
        error = persist(rdk, owner->producer, rd_kafka_commit_transaction, until);
    if (error)
        return error;
    if (owner->committing)
        owner->open = owner->committing = false;
    if (!owner->open)
        error = rd_kafka_begin_transaction(owner->producer);
    if (error)
        return error;
    owner->open = true;
    while ((error = send_offset(rdk, owner, offset)) != NULL &&
           rd_kafka_error_is_retriable(error) && !rd_kafka_error_txn_requires_abort(error) &&
           !is_over(rdk, until)) {
        rd_kafka_error_destroy(error);
        mp_sleep_us(rdk->env, AGAIN_MS * UINT64_C(1000));
    }
    if (error)
        return error;
    owner->committing = true;
    error = persist(rdk, owner->producer, rd_kafka_commit_transaction, until);
    if (!error)
        owner->open = owner->committing = false;
    return error;
}

/* The client wants it: nothing of what is open is stored then. */
static enum mp_code abort_open(struct mp_rdkafka *rdk, struct mp_rdkafka_owner *owner,
                               uint64_t until, struct mp_err *err)
{
    rd_kafka_error_t *error = persist(rdk, owner->producer, rd_kafka_abort_transaction, until);
    enum mp_code code = error ? tell_error(owner, error, err) : MP_OK;

    owner->aborting = error != NULL;
    if (!error)
        owner->open = owner->committing = false;
    if (error)
        rd_kafka_error_destroy(error);
    return code;
}

static enum mp_code commit_one(struct mp_rdkafka *rdk, struct mp_rdkafka_owner *owner,
                               const struct mp_source_offset *offset, struct mp_err *err)
{
    uint64_t until = mp_now_mono_us(rdk->env) + COMMIT_WAIT_MS * UINT64_C(1000);
    enum mp_code code = MP_OK;

    assert(offset->offset >= 0);
    assert(owner->ready);
    if (owner->ended) {
        mp_err_set(err, owner->ended, "%s", owner->why);
        err->retriable = false;
        return owner->ended;
    }
    if (owner->aborting)
        code = abort_open(rdk, owner, until, err);
    while (!code) {
        rd_kafka_error_t *error = attempt(rdk, owner, offset, until);
        bool abortable;

        if (!error)
            return MP_OK;
        abortable = rd_kafka_error_txn_requires_abort(error);
        code = tell_error(owner, error, err);
        rd_kafka_error_destroy(error);
        if (abortable && !owner->ended) {
            struct mp_err ending;
            enum mp_code ended = abort_open(rdk, owner, until, &ending);

            if (ended) {
                code = ended;
                *err = ending;
            } else if (err->retriable && !is_over(rdk, until)) {
                code = MP_OK; /* once more, from the beginning */
                mp_sleep_us(rdk->env, AGAIN_MS * UINT64_C(1000));
            }
        }
    }
    return code;
}

/* --- owners --------------------------------------------------------------------------------- */

/* Where the partition stands, or would. */
static uint32_t place_of(const struct mp_rdkafka_owners *owners, int32_t partition)
{
    uint32_t low = 0, high = owners->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (owners->items[middle]->partition < partition)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct mp_rdkafka_owner *owner_of(const struct mp_rdkafka_owners *owners, int32_t partition)
{
    uint32_t at = place_of(owners, partition);

    return at < owners->count && owners->items[at]->partition == partition ? owners->items[at]
                                                                           : NULL;
}

static enum mp_code free_one(struct mp_rdkafka *rdk, struct mp_rdkafka_owner *owner,
                             const struct mp_source_offset *offset, struct mp_err *err)
{
    (void)rdk, (void)offset, (void)err;
    if (owner->producer)
        rd_kafka_destroy(owner->producer);
    mp_free(owner);
    return MP_OK;
}

static void free_all(struct mp_rdkafka *rdk, struct mp_rdkafka_owner **owners, uint32_t count)
{
    struct work work = {.rdk = rdk, .owners = owners, .count = count, .one = free_one};

    if (count)
        run(&work, NULL);
}

void mp_rdkafka_owners_free(struct mp_rdkafka *rdk)
{
    struct mp_rdkafka_owners *owners = rdk->owners;

    if (!owners)
        return;
    free_all(rdk, owners->items, owners->count);
    rd_kafka_conf_destroy(owners->conf);
    pthread_mutex_destroy(&owners->lock);
    mp_free(owners->items);
    mp_free(owners->group);
    mp_free(owners);
}

static enum mp_code make_producer(struct mp_rdkafka *rdk, struct mp_rdkafka_owner *owner,
                                  struct mp_err *err)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_dup(rdk->owners->conf);
    struct mp_buf id = MP_BUF_INIT((size_t)1 << 16);
    char text[384] = "";

    mp_buf_printf(&id, "%s/%s/%d", rdk->owners->group, rdk->topic, (int)owner->partition);
    if (rd_kafka_conf_set(conf, "transactional.id", mp_buf_c(&id), text, sizeof(text)) ==
        RD_KAFKA_CONF_OK)
        owner->producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    mp_buf_fini(&id);
    if (!owner->producer) {
        rd_kafka_conf_destroy(conf);
        return mp_err_set(err, MP_BAD_CONFIG, "kafka transactions: %s", text);
    }
    if (rdk->options.token.make)
        rd_kafka_error_destroy(rd_kafka_sasl_background_callbacks_enable(owner->producer));
    return MP_OK;
}

static enum mp_code init_one(struct mp_rdkafka *rdk, struct mp_rdkafka_owner *owner,
                             const struct mp_source_offset *offset, struct mp_err *err)
{
    rd_kafka_error_t *error;
    enum mp_code code = owner->producer ? MP_OK : make_producer(rdk, owner, err);

    (void)offset;
    if (code || owner->ready)
        return code;
    error = rd_kafka_init_transactions(owner->producer, INIT_WAIT_MS);
    if (!error) {
        owner->ready = true;
        return MP_OK;
    }
    if (is_forbidden(reason(owner, error))) {
        pthread_mutex_lock(&rdk->owners->lock);
        rdk->owners->plain = true;
        snprintf(rdk->owners->why, sizeof(rdk->owners->why), "kafka transactions %s/%s/*: %s",
                 rdk->owners->group, rdk->topic, rd_kafka_err2str(reason(owner, error)));
        pthread_mutex_unlock(&rdk->owners->lock);
    } else {
        code = tell_error(owner, error, err);
    }
    rd_kafka_error_destroy(error);
    return code;
}

/* The owners of these partitions, new ones among them. */
static struct mp_rdkafka_owner **gather(struct mp_rdkafka_owners *owners, const int32_t *partitions,
                                        uint32_t count)
{
    struct mp_rdkafka_owner **ret = mp_alloc_array(count, sizeof(struct mp_rdkafka_owner *));

    pthread_mutex_lock(&owners->lock);
    owners->items = mp_realloc(owners->items, (owners->count + count) * sizeof(*ret));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = place_of(owners, partitions[i]);

        if (at == owners->count || owners->items[at]->partition != partitions[i]) {
            memmove(&owners->items[at + 1], &owners->items[at],
                    (owners->count - at) * sizeof(*ret));
            owners->items[at] = mp_alloc(sizeof(**ret));
            owners->items[at]->partition = partitions[i];
            owners->count++;
        }
        ret[i] = owners->items[at];
    }
    pthread_mutex_unlock(&owners->lock);
    return ret;
}

enum mp_code mp_rdkafka_own(struct mp_source *source, const int32_t *partitions, uint32_t count,
                            struct mp_err *err, bool *ret_fenced)
{
    struct mp_rdkafka *rdk = of(source);
    struct work work = {.rdk = rdk, .count = count, .one = init_one};
    bool plain;
    enum mp_code code = MP_OK;

    if (!rdk->owners->plain && count) {
        work.owners = gather(rdk->owners, partitions, count);
        code = run(&work, err);
        mp_free(work.owners);
    }
    pthread_mutex_lock(&rdk->owners->lock);
    plain = rdk->owners->plain;
    pthread_mutex_unlock(&rdk->owners->lock);
    if (plain) {
        mp_rdkafka_disown(source, partitions, count);
        mp_err_set(err, MP_REFUSED, "%s", rdk->owners->why);
        code = MP_OK;
    }
    if (!code)
        *ret_fenced = !plain;
    return code;
}

void mp_rdkafka_disown(struct mp_source *source, const int32_t *partitions, uint32_t count)
{
    struct mp_rdkafka *rdk = of(source);
    struct mp_rdkafka_owners *owners = rdk->owners;
    struct mp_rdkafka_owner **gone = mp_alloc_array(count, sizeof(struct mp_rdkafka_owner *));
    uint32_t gone_count = 0;

    pthread_mutex_lock(&owners->lock);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = place_of(owners, partitions[i]);

        if (at == owners->count || owners->items[at]->partition != partitions[i])
            continue;
        gone[gone_count++] = owners->items[at];
        owners->count--;
        memmove(&owners->items[at], &owners->items[at + 1],
                (owners->count - at) * sizeof(struct mp_rdkafka_owner *));
    }
    pthread_mutex_unlock(&owners->lock);
    free_all(rdk, gone, gone_count);
    mp_free(gone);
}

enum mp_code mp_rdkafka_commit(struct mp_source *source, const struct mp_source_offset *offsets,
                               uint32_t count, struct mp_err *err)
{
    struct mp_rdkafka *rdk = of(source);
    struct work work = {.rdk = rdk, .one = commit_one};
    struct mp_source_offset *plain = mp_alloc_array(count, sizeof(*plain));
    uint32_t plain_count = 0;
    enum mp_code code = MP_OK;

    work.owners = mp_alloc_array(count, sizeof(struct mp_rdkafka_owner *));
    work.offsets = mp_alloc_array(count, sizeof(const struct mp_source_offset *));
    pthread_mutex_lock(&rdk->owners->lock);
    for (uint32_t i = 0; i < count; i++) {
        struct mp_rdkafka_owner *owner = owner_of(rdk->owners, offsets[i].partition);

        if (owner && owner->ready) {
            work.owners[work.count] = owner;
            work.offsets[work.count++] = &offsets[i];
        } else {
            plain[plain_count++] = offsets[i];
        }
    }
    pthread_mutex_unlock(&rdk->owners->lock);
    if (work.count)
        code = run(&work, err);
    if (!code && plain_count)
        code = mp_rdkafka_commit_plain(source, plain, plain_count, err);
    mp_free(work.owners);
    mp_free(work.offsets);
    mp_free(plain);
    return code;
}
