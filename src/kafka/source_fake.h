/* kafka/source_fake.h - a topic made up by a test.
 *
 * The log stands for the brokers: records, stored offsets and planned faults live in it, so they
 * outlive a source over it as they outlive a process. A source reads it as the rdkafka driver
 * would: by ordinal, record by record in turn over its partitions, lost positions told.
 *
 * Memory   everything added is copied; what poll gives is a copy too and is freed by the next poll,
 *          so that a view kept too long is found by a checked build.
 * Threads  any; the log has a lock.
 */
#ifndef MP_KAFKA_SOURCE_FAKE_H
#define MP_KAFKA_SOURCE_FAKE_H

#include "kafka/source.h"

enum mp_fake_log_call {
    MP_FAKE_LOG_PARTITIONS,
    MP_FAKE_LOG_SEEK,
    MP_FAKE_LOG_POLL,
    MP_FAKE_LOG_OWN,
    MP_FAKE_LOG_COMMIT,
    MP_FAKE_LOG_COMMITTED,
    MP_FAKE_LOG_WATERMARKS,
    MP_FAKE_LOG_CALLS
};

struct mp_fake_log;

struct mp_fake_log *mp_fake_log_new(uint32_t partition_count);
void mp_fake_log_free(struct mp_fake_log *log);
/* From now on there are so many; the count only grows. */
void mp_fake_log_partitions(struct mp_fake_log *log, uint32_t partition_count);

/* Appends and gives the record's offset. key.data or value.data NULL: none, a tombstone. */
int64_t mp_fake_log_add(struct mp_fake_log *log, int32_t partition, struct mp_str key,
                        struct mp_str value, int64_t timestamp_ms);
/* Leaves so many offsets out, as compaction and transactions do. */
void mp_fake_log_gap(struct mp_fake_log *log, int32_t partition, int64_t offsets);
/* Drops what lies before low, as retention does. */
void mp_fake_log_truncate(struct mp_fake_log *log, int32_t partition, int64_t low);
/* Whether somebody leads the partition; nobody answers for it otherwise. */
void mp_fake_log_leader(struct mp_fake_log *log, int32_t partition, bool there);
/* Whether those who lead answer slowly: who asks for watermarks waits, for ten seconds at most. */
void mp_fake_log_slow(struct mp_fake_log *log, bool slow);
/* The end: after everything added, poll says so (a source without an end goes on waiting). */
void mp_fake_log_end(struct mp_fake_log *log);

/* The nth call of that kind from now on (1: the next) fails with code; applied: its work is done
 * all the same, only the answer is lost. Faults of one kind are planned in order. */
void mp_fake_log_fail(struct mp_fake_log *log, enum mp_fake_log_call call, uint32_t nth,
                      enum mp_code code, bool retriable, bool applied);
/* Calls of that kind so far. */
uint64_t mp_fake_log_calls(struct mp_fake_log *log, enum mp_fake_log_call call);

/* What is stored for a partition; offset MP_OFFSET_NONE: nothing. The text is lent until something
 * else is stored there. */
struct mp_source_offset mp_fake_log_committed(struct mp_fake_log *log, int32_t partition);
/* Stores it, as another program would. Copies. */
void mp_fake_log_commit(struct mp_fake_log *log, const struct mp_source_offset *offset);
/* Somebody else owns the partition from now on. */
void mp_fake_log_steal(struct mp_fake_log *log, int32_t partition);
/* Owning is forbidden from now on: commits are plain. */
void mp_fake_log_forbid_owners(struct mp_fake_log *log);

/* Opens a source over log, which outlives it. */
struct mp_source *mp_source_fake_open(struct mp_fake_log *log, uint32_t ordinal,
                                      uint32_t replica_count);

#endif
