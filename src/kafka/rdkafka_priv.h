/* kafka/rdkafka_priv.h - inner door between the files of the rdkafka driver:
 *
 *   source_rdkafka.c   open, close, partitions; the driver's table
 *   rdkafka_conf.c     options -> the client's configuration
 *   rdkafka_fetch.c    seek and poll
 *   rdkafka_offsets.c  plain commits, committed, watermarks: one thread or another, no shared state
 *   rdkafka_owners.c   own and commit: a transactional producer for each owned partition
 *   rdkafka_error.c    the client's error codes -> ours
 */
#ifndef MP_KAFKA_RDKAFKA_PRIV_H
#define MP_KAFKA_RDKAFKA_PRIV_H

#include "kafka/source_rdkafka.h"

#include <librdkafka/rdkafka.h>
#include <pthread.h>

/* One owned partition. */
struct mp_rdkafka_part {
    int32_t id;
    bool assigned; /* the client has it in its assignment */
    bool stopped;  /* its fetcher gave up: position out of range, as it seemed */
    bool lost;     /* stopped, and the log does have only [low, high) */
    int64_t low, high;
    int64_t start; /* as last sought; may be one of the logical offsets */
    int64_t next;  /* least offset that may be given next: R2 */
    int64_t ended; /* the log ended here when it was read to its end; -1: not since sought */
};

struct mp_rdkafka {
    struct mp_source source;                  /* first */
    struct mp_source_rdkafka_options options; /* numbers and callbacks; its texts are not kept */
    const struct mp_env *env;
    char *topic, *group;
    rd_kafka_t *rk;
    rd_kafka_topic_t *rkt;
    struct mp_rdkafka_owners *owners;
    pthread_mutex_t token_lock; /* several clients, each with a thread that wants tokens */
    rd_kafka_queue_t *queue;    /* records and errors of the owned partitions */
    uint32_t topic_partitions;

    struct mp_rdkafka_part *parts; /* ascending: ordinal, ordinal + replica_count, ... */
    int32_t *part_ids;
    uint32_t part_count;
    uint64_t partitions_due_us; /* when the topic is asked for new partitions */

    rd_kafka_message_t **messages; /* of the last poll; items borrow from them */
    struct mp_record *items;
    struct mp_source_lost *lost;
    uint32_t message_count, messages_max, item_count, lost_count;
    uint64_t given_bytes, given_records; /* since the brokers' threads were last woken */
    uint64_t wake_bytes, wake_records;   /* woken after so many; UINT64_MAX: no need to */

    /* Troubles of the whole source, cleared by an answered probe. */
    bool down;                 /* no broker could be reached */
    uint64_t unknown_since_us; /* the topic is unknown; 0: it is not */
    uint64_t probe_due_us;
    uint64_t settle_due_us; /* when stopped partitions are looked at again */
    char last_error[256];
    char refused[256]; /* "": not refused */
};

/* Gives a configuration that the caller hands on or destroys. */
enum mp_code mp_rdkafka_conf(const struct mp_source_rdkafka_options *options, struct mp_err *err,
                             rd_kafka_conf_t **ret);
/* The same for the producers of rdkafka_owners.c. */
enum mp_code mp_rdkafka_owner_conf(const struct mp_source_rdkafka_options *options,
                                   struct mp_err *err, rd_kafka_conf_t **ret);

/* A numeric setting's value, 0 where there is none of that name. */
uint64_t mp_rdkafka_conf_number(const rd_kafka_conf_t *conf, const char *name);

/* Fills err from a client's error; what: the thing asked for. */
enum mp_code mp_rdkafka_err(struct mp_err *err, rd_kafka_resp_err_t fault, const char *what);
/* True for what no retry mends. */
bool mp_rdkafka_refuses(rd_kafka_resp_err_t fault);

/* Asks how many partitions the topic has. MP_NOT_FOUND: unknown, so far. */
enum mp_code mp_rdkafka_read_topic(struct mp_rdkafka *rdk, uint32_t wait_ms, struct mp_err *err,
                                   uint32_t *ret);
/* Keeps and counts one more error. */
void mp_rdkafka_note_error(struct mp_rdkafka *rdk, const char *text);

enum mp_code mp_rdkafka_seek(struct mp_source *source, int32_t partition, int64_t offset,
                             struct mp_err *err);
enum mp_code mp_rdkafka_unseek(struct mp_source *source, int32_t partition, struct mp_err *err);
int64_t mp_rdkafka_reached(struct mp_source *source, int32_t partition);
enum mp_code mp_rdkafka_poll(struct mp_source *source, uint32_t records_max, uint32_t wait_ms,
                             struct mp_err *err, struct mp_records *ret);
/* Gives the last poll's messages back to the client. */
void mp_rdkafka_release(struct mp_rdkafka *rdk);

/* Takes conf. */
struct mp_rdkafka_owners *mp_rdkafka_owners_new(rd_kafka_conf_t *conf, const char *group);
/* Ends the producers. No-op where there is no table. */
void mp_rdkafka_owners_free(struct mp_rdkafka *rdk);
enum mp_code mp_rdkafka_own(struct mp_source *source, const int32_t *partitions, uint32_t count,
                            struct mp_err *err, bool *ret_fenced);
void mp_rdkafka_disown(struct mp_source *source, const int32_t *partitions, uint32_t count);
enum mp_code mp_rdkafka_commit_plain(struct mp_source *source,
                                     const struct mp_source_offset *offsets, uint32_t count,
                                     struct mp_err *err);
enum mp_code mp_rdkafka_commit(struct mp_source *source, const struct mp_source_offset *offsets,
                               uint32_t count, struct mp_err *err);
enum mp_code mp_rdkafka_committed(struct mp_source *source, struct mp_arena *arena,
                                  struct mp_source_offset *offsets, uint32_t count,
                                  struct mp_err *err);
enum mp_code mp_rdkafka_watermarks(struct mp_source *source, struct mp_source_watermark *watermarks,
                                   uint32_t count, struct mp_err *err);
void mp_rdkafka_watermarks_seen(struct mp_source *source, struct mp_source_watermark *watermarks,
                                uint32_t count);

#endif
