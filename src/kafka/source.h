/* kafka/source.h - where records come from.
 *
 * A source has partitions; a partition has records with growing offsets (gaps allowed). It knows
 * nothing of what a record means. Drivers: rdkafka (a real topic), file (NDJSON files or standard
 * input: offset = byte position of the line's first byte), fake (a test's script).
 *
 * Life     open -> partitions -> seek each -> (poll, commit)* -> close
 * Owners   stored offsets may be the book of record of several processes. own makes this one the
 *          only writer of a partition's: what an earlier owner had under way is stored before own
 *          returns, or never will be, and its later commits fail with MP_FENCED. So what committed
 *          gives after own stays until this process, or a later owner, changes it.
 * Threads  partitions, seek, unseek, poll and reached from one thread; the others from any.
 */
#ifndef MP_KAFKA_SOURCE_H
#define MP_KAFKA_SOURCE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* Offsets that are not numbers. */
#define MP_OFFSET_NONE     ((int64_t)-1) /* committed: never; watermark: not known */
#define MP_OFFSET_EARLIEST ((int64_t)-2) /* seek: the log's first record */
#define MP_OFFSET_LATEST   ((int64_t)-3) /* seek: behind the log's last record */

/* A borrowed view, good until the next poll. */
struct mp_record {
    int32_t partition;
    bool has_key, has_value; /* a tombstone has no value; an empty value has size 0 */
    int64_t offset;
    int64_t next_offset;  /* where the following record begins at the earliest */
    int64_t timestamp_ms; /* since 1970 UTC; MP_OFFSET_NONE: none */
    struct mp_str key, value;
};

/* A partition whose position is not in the log any more: retention or DeleteRecords went past it
 * (offset < low), or the log was cut or made anew (offset > high). It gives nothing until it is
 * sought again and is told in every poll until then; nothing is skipped by itself. */
struct mp_source_lost {
    int32_t partition;
    int64_t offset;    /* the next record wanted */
    int64_t low, high; /* what the log keeps now: [low, high) */
};

struct mp_records {
    const struct mp_record *items;
    uint32_t count;
    bool end;                          /* a source with an end (file) has given everything */
    const struct mp_source_lost *lost; /* borrowed like the records */
    uint32_t lost_count;
};

/* One partition's position as stored with the source's own book-keeping. */
struct mp_source_offset {
    int32_t partition;
    int64_t offset;         /* next to read; MP_OFFSET_NONE: none stored */
    struct mp_str metadata; /* text stored beside it, empty: none */
};

/* Longest text beside an offset: Kafka's offset.metadata.max.bytes, unless a broker sets it. */
#define MP_SOURCE_METADATA_BYTES_MAX 4096

struct mp_source_watermark {
    int32_t partition;
    bool away;         /* nobody answers for it now; low and high are not known */
    int64_t low, high; /* first kept offset; one behind the last */
};

struct mp_source_driver;

struct mp_source {
    const struct mp_source_driver *driver;
};

/* Every call that waits has a bound of its own. Errors are retriable unless the driver knows that
 * they cannot heal (authorisation, unknown topic, a fatal client error: MP_REFUSED). */
struct mp_source_driver {
    const char *name;
    /* The partitions this process owns, ascending, as of now; a later call may give more. The
     * array is lent until the next call. */
    enum mp_code (*partitions)(struct mp_source *source, struct mp_err *err, const int32_t **ret,
                               uint32_t *ret_count);
    /* The next record of the partition will be the first at or behind offset. Starts fetching a
     * partition that was not read before; drops what was fetched ahead of a former position. */
    enum mp_code (*seek)(struct mp_source *source, int32_t partition, int64_t offset,
                         struct mp_err *err);
    /* The partition gives nothing more until it is sought again. */
    enum mp_code (*unseek)(struct mp_source *source, int32_t partition, struct mp_err *err);
    /* Gives up to records_max records, waiting at most wait_ms for the first one. Zero records is
     * no error. With records_max 0 it only serves the client (callbacks, keep-alive). An error
     * says that the source as a whole is away now (retriable) or for good (MP_REFUSED); the
     * positions stay and the next poll goes on. */
    enum mp_code (*poll)(struct mp_source *source, uint32_t records_max, uint32_t wait_ms,
                         struct mp_err *err, struct mp_records *ret);
    /* Every record of a sought partition before this offset has been given, or is not in the log;
     * grows with poll. */
    int64_t (*reached)(struct mp_source *source, int32_t partition);
    /* Makes this process the only writer of the stored offsets of these partitions, whether
     * partitions gave them or not; what is owned already is left as it is. NULL: this driver knows
     * no other owners. *ret_fenced false: the source forbids it, err has the reason, and commits
     * stay as plain as they are without owners. */
    enum mp_code (*own)(struct mp_source *source, const int32_t *partitions, uint32_t count,
                        struct mp_err *err, bool *ret_fenced);
    /* Gives back what own took for these partitions; the next owner need not wait for anything.
     * NULL where own is. */
    void (*disown)(struct mp_source *source, const int32_t *partitions, uint32_t count);
    /* Stores positions (and their metadata, borrowed) with the source; all, or an error after
     * which each may be stored or not, so that the same call is made again. MP_FENCED: another
     * process owns one of them since. */
    enum mp_code (*commit)(struct mp_source *source, const struct mp_source_offset *offsets,
                           uint32_t count, struct mp_err *err);
    /* Fills offset and metadata of each given partition, owned or not; texts lie in arena. What is
     * being stored at the moment is waited for. */
    enum mp_code (*committed)(struct mp_source *source, struct mp_arena *arena,
                              struct mp_source_offset *offsets, uint32_t count, struct mp_err *err);
    /* Asks for low and high of each given partition. Where some are away that is told of each; all
     * of them away is an error. */
    enum mp_code (*watermarks)(struct mp_source *source, struct mp_source_watermark *watermarks,
                               uint32_t count, struct mp_err *err);
    /* The same as last heard with fetched records; never waits. MP_OFFSET_NONE: not heard of. */
    void (*watermarks_seen)(struct mp_source *source, struct mp_source_watermark *watermarks,
                            uint32_t count);
    void (*close)(struct mp_source *source);
};

static inline void mp_source_close(struct mp_source *source)
{
    if (source)
        source->driver->close(source);
}

#endif
