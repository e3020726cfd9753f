/* kafka/source_rdkafka.h - a Kafka topic, read through librdkafka.
 *
 * The partitions p with p mod replica_count == ordinal are ours; nothing is subscribed, no group
 * is joined, the group id only names the stored offsets. New partitions are found while running.
 *
 * Always  R1 a record of a former position is never given after seek returned
 *         R2 the offsets given for a partition grow
 *         R3 the client never jumps by itself: a position the log does not have any more is told
 *            as lost (source.h)
 *         R4 what is fetched ahead stays within queued.max.messages.kbytes (16 MiB unless set
 *            otherwise) and one answer of each broker; one record may be larger than all of it
 * Errors  MP_BAD_CONFIG from open. Later MP_REFUSED for a fatal client error, a refused topic or
 *         group, a topic that is still unknown after topic_grace_ms; MP_IO and MP_TIMEOUT for all
 *         that may heal by itself.
 * Threads as source.h says. on_stats and on_error are called from within partitions, seek and
 *         poll; on_log also from the client's own threads, several at once; token.make from one of
 *         them.
 * After   librdkafka 2.0.2 CONFIGURATION.md and rdkafka.h.
 */
#ifndef MP_KAFKA_SOURCE_RDKAFKA_H
#define MP_KAFKA_SOURCE_RDKAFKA_H

#include "base/buf.h"
#include "base/env.h"
#include "kafka/source.h"

/* One of the client's own settings, e.g. "security.protocol". */
struct mp_source_setting {
    const char *name, *value;
};

/* Who makes tokens where the client signs in by SASL/OAUTHBEARER. `make` is called whenever one is
 * wanted, from a thread of the client's own: it adds the token's text and says when it ends
 * (milliseconds since 1970) and whose it is (good until the next call). After a fault the client
 * asks again in 10 s. */
struct mp_source_token {
    void *self;
    enum mp_code (*make)(void *self, struct mp_buf *ret_text, int64_t *ret_end_ms,
                         const char **ret_principal, struct mp_err *err);
    void (*free)(void *self); /* NULL: nothing to free */
};

#define MP_SOURCE_TOKEN_BYTES_MAX (128 * 1024)

/* What is set, later ones win: bootstrap and client id; settings; group id, no automatic commit,
 * fetch_bytes_min, fetch_wait_ms_max, max.poll.interval.ms, stats_interval_ms. The sizes of a
 * fetch and of what is fetched ahead are ours unless settings has them. All is copied. */
struct mp_source_rdkafka_options {
    const char *bootstrap, *topic, *group, *client_id;
    uint32_t ordinal, replica_count; /* ordinal < replica_count */
    uint32_t fetch_bytes_min, fetch_wait_ms_max;
    uint32_t stats_interval_ms;    /* 0: no statistics */
    uint32_t metadata_interval_ms; /* partitions looks for new ones no more often; 0: 60 s */
    bool sees_ends;                /* reached also counts what the log ends with and never gives */
    uint32_t topic_grace_ms;       /* an unknown topic may still come; 0: 30 s */
    const struct mp_source_setting *settings;
    uint32_t setting_count;
    struct mp_source_token token; /* make NULL: none. Taken by open, also where that fails. */
    void *self;                   /* for the three below, each may be NULL */
    void (*on_stats)(void *self, struct mp_str json);        /* see rdkafka_stats.h */
    void (*on_error)(void *self, const char *text);          /* one more error, for counting */
    void (*on_log)(void *self, int level, const char *text); /* level: syslog(3), 0 to 7 */
};

/* Connects to nobody yet. Borrows env until close. */
enum mp_code mp_source_rdkafka_open(const struct mp_source_rdkafka_options *options,
                                    const struct mp_env *env, struct mp_err *err,
                                    struct mp_source **ret);
/* Partitions of the whole topic, owned or not, as last heard; 0: not yet heard. From the thread
 * that polls. */
uint32_t mp_source_rdkafka_topic_partitions(const struct mp_source *source);

#endif
