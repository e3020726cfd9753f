/* kafka/source_fake.c - see source_fake.h. */
#include "kafka/source_fake.h"

#include "base/mem.h"

#include <assert.h>
#include <pthread.h>

enum { FAULTS_MAX = 64 };

struct stored {
    int64_t offset, timestamp_ms;
    char *key, *value; /* NULL: none */
    size_t key_size, value_size;
};

struct partition {
    struct stored *records;
    size_t count, capacity;
    int64_t low, high;
    struct mp_source_offset committed; /* its text is committed_text */
    char *committed_text;
    uint64_t owner; /* how often it was owned; 0: commits are plain */
    bool away;      /* nobody leads it */
};

struct planned {
    enum mp_fake_log_call call;
    uint64_t at; /* number of the call, from 1 */
    enum mp_code code;
    bool retriable, applied;
};

struct mp_fake_log {
    pthread_mutex_t lock;
    struct partition *partitions;
    uint32_t partition_count;
    bool end, no_owners, slow;
    uint64_t calls[MP_FAKE_LOG_CALLS];
    struct planned faults[FAULTS_MAX];
    uint32_t fault_count;
};

struct fake {
    struct mp_source source; /* first */
    struct mp_fake_log *log;
    uint32_t ordinal, replica_count;
    int32_t *ids;
    int64_t *positions; /* MP_OFFSET_NONE: not sought */
    struct owned {
        int32_t partition;
        uint64_t owner; /* the log's number when it was taken */
    } * owned;
    uint32_t owned_count;
    uint32_t count;
    uint32_t turn; /* the partition that gives first */
    struct mp_record *items;
    uint32_t item_count;
    struct mp_source_lost *lost;
};

static struct fake *of(struct mp_source *source)
{
    return (struct fake *)source;
}

static char *copy(struct mp_str text)
{
    char *bytes = text.data ? mp_alloc(text.size) : NULL;

    if (text.size)
        memcpy(bytes, text.data, text.size);
    return bytes;
}

static struct partition *partition_of(struct mp_fake_log *log, int32_t id)
{
    assert(id >= 0);
    assert((uint32_t)id < log->partition_count);
    return &log->partitions[id];
}

struct mp_fake_log *mp_fake_log_new(uint32_t partition_count)
{
    struct mp_fake_log *log = mp_alloc(sizeof(*log));

    pthread_mutex_init(&log->lock, NULL);
    mp_fake_log_partitions(log, partition_count);
    return log;
}

void mp_fake_log_free(struct mp_fake_log *log)
{
    if (!log)
        return;
    for (uint32_t i = 0; i < log->partition_count; i++) {
        for (size_t k = 0; k < log->partitions[i].count; k++) {
            mp_free(log->partitions[i].records[k].key);
            mp_free(log->partitions[i].records[k].value);
        }
        mp_free(log->partitions[i].records);
        mp_free(log->partitions[i].committed_text);
    }
    mp_free(log->partitions);
    pthread_mutex_destroy(&log->lock);
    mp_free(log);
}

void mp_fake_log_partitions(struct mp_fake_log *log, uint32_t partition_count)
{
    pthread_mutex_lock(&log->lock);
    assert(partition_count >= log->partition_count);
    log->partitions = mp_realloc(log->partitions, partition_count * sizeof(*log->partitions));
    for (uint32_t i = log->partition_count; i < partition_count; i++)
        log->partitions[i] =
            (struct partition){.committed = {.partition = (int32_t)i, .offset = MP_OFFSET_NONE}};
    log->partition_count = partition_count;
    pthread_mutex_unlock(&log->lock);
}

void mp_fake_log_leader(struct mp_fake_log *log, int32_t partition, bool there)
{
    pthread_mutex_lock(&log->lock);
    partition_of(log, partition)->away = !there;
    pthread_mutex_unlock(&log->lock);
}

void mp_fake_log_slow(struct mp_fake_log *log, bool slow)
{
    pthread_mutex_lock(&log->lock);
    log->slow = slow;
    pthread_mutex_unlock(&log->lock);
}

int64_t mp_fake_log_add(struct mp_fake_log *log, int32_t partition, struct mp_str key,
                        struct mp_str value, int64_t timestamp_ms)
{
    struct partition *part;
    int64_t offset;

    pthread_mutex_lock(&log->lock);
    part = partition_of(log, partition);
    if (part->count == part->capacity) {
        part->capacity = part->capacity ? 2 * part->capacity : 16;
        part->records = mp_realloc(part->records, part->capacity * sizeof(*part->records));
    }
    offset = part->high++;
    part->records[part->count++] = (struct stored){.offset = offset,
                                                   .timestamp_ms = timestamp_ms,
                                                   .key = copy(key),
                                                   .value = copy(value),
                                                   .key_size = key.size,
                                                   .value_size = value.size};
    pthread_mutex_unlock(&log->lock);
    return offset;
}

void mp_fake_log_gap(struct mp_fake_log *log, int32_t partition, int64_t offsets)
{
    assert(offsets >= 0);
    pthread_mutex_lock(&log->lock);
    partition_of(log, partition)->high += offsets;
    pthread_mutex_unlock(&log->lock);
}

void mp_fake_log_truncate(struct mp_fake_log *log, int32_t partition, int64_t low)
{
    struct partition *part;

    pthread_mutex_lock(&log->lock);
    part = partition_of(log, partition);
    assert(low >= part->low);
    assert(low <= part->high);
    part->low = low;
    pthread_mutex_unlock(&log->lock);
}

void mp_fake_log_end(struct mp_fake_log *log)
{
    pthread_mutex_lock(&log->lock);
    log->end = true;
    pthread_mutex_unlock(&log->lock);
}

void mp_fake_log_fail(struct mp_fake_log *log, enum mp_fake_log_call call, uint32_t nth,
                      enum mp_code code, bool retriable, bool applied)
{
    assert(nth > 0);
    assert(code != MP_OK);
    pthread_mutex_lock(&log->lock);
    assert(log->fault_count < FAULTS_MAX);
    log->faults[log->fault_count++] = (struct planned){.call = call,
                                                       .at = log->calls[call] + nth,
                                                       .code = code,
                                                       .retriable = retriable,
                                                       .applied = applied};
    pthread_mutex_unlock(&log->lock);
}

uint64_t mp_fake_log_calls(struct mp_fake_log *log, enum mp_fake_log_call call)
{
    uint64_t calls;

    pthread_mutex_lock(&log->lock);
    calls = log->calls[call];
    pthread_mutex_unlock(&log->lock);
    return calls;
}

struct mp_source_offset mp_fake_log_committed(struct mp_fake_log *log, int32_t partition)
{
    struct mp_source_offset committed;

    pthread_mutex_lock(&log->lock);
    committed = partition_of(log, partition)->committed;
    pthread_mutex_unlock(&log->lock);
    return committed;
}

/* Under the lock. */
static void store(struct mp_fake_log *log, const struct mp_source_offset *offset)
{
    struct partition *part = partition_of(log, offset->partition);

    assert(offset->metadata.size <= MP_SOURCE_METADATA_BYTES_MAX);
    mp_free(part->committed_text);
    part->committed_text = copy(offset->metadata);
    part->committed = *offset;
    part->committed.metadata.data = part->committed_text;
}

void mp_fake_log_commit(struct mp_fake_log *log, const struct mp_source_offset *offset)
{
    pthread_mutex_lock(&log->lock);
    store(log, offset);
    pthread_mutex_unlock(&log->lock);
}

void mp_fake_log_steal(struct mp_fake_log *log, int32_t partition)
{
    pthread_mutex_lock(&log->lock);
    partition_of(log, partition)->owner++;
    pthread_mutex_unlock(&log->lock);
}

void mp_fake_log_forbid_owners(struct mp_fake_log *log)
{
    pthread_mutex_lock(&log->lock);
    log->no_owners = true;
    pthread_mutex_unlock(&log->lock);
}

/* Counts the call and finds its planned fault, NULL none. Under the lock. */
static const struct planned *count_call(struct mp_fake_log *log, enum mp_fake_log_call call)
{
    uint64_t number = ++log->calls[call];

    for (uint32_t i = 0; i < log->fault_count; i++)
        if (log->faults[i].call == call && log->faults[i].at == number)
            return &log->faults[i];
    return NULL;
}

/* MP_OK where none was planned. */
static enum mp_code tell(const struct planned *fault, struct mp_err *err)
{
    if (!fault)
        return MP_OK;
    mp_err_set(err, fault->code, "planned fault at call %llu", (unsigned long long)fault->at);
    if (err)
        err->retriable = fault->retriable;
    return fault->code;
}

static enum mp_code fake_partitions(struct mp_source *source, struct mp_err *err,
                                    const int32_t **ret, uint32_t *ret_count)
{
    struct fake *fake = of(source);
    const struct planned *fault;
    uint32_t total, owned;

    pthread_mutex_lock(&fake->log->lock);
    fault = count_call(fake->log, MP_FAKE_LOG_PARTITIONS);
    total = fake->log->partition_count;
    pthread_mutex_unlock(&fake->log->lock);
    if (fault)
        return tell(fault, err);
    owned = total > fake->ordinal ? (total - fake->ordinal - 1) / fake->replica_count + 1 : 0;
    fake->ids = mp_realloc(fake->ids, owned * sizeof(*fake->ids));
    fake->positions = mp_realloc(fake->positions, owned * sizeof(*fake->positions));
    fake->lost = mp_realloc(fake->lost, owned * sizeof(*fake->lost));
    for (uint32_t i = fake->count; i < owned; i++) {
        fake->ids[i] = (int32_t)(fake->ordinal + i * fake->replica_count);
        fake->positions[i] = MP_OFFSET_NONE;
    }
    fake->count = owned;
    *ret = fake->ids;
    *ret_count = owned;
    return MP_OK;
}

static enum mp_code fake_seek(struct mp_source *source, int32_t partition, int64_t offset,
                              struct mp_err *err)
{
    struct fake *fake = of(source);
    const struct planned *fault;
    uint32_t i = 0;

    while (i < fake->count && fake->ids[i] != partition)
        i++;
    if (i == fake->count)
        return mp_err_set(err, MP_NOT_FOUND, "no partition %d of ours", (int)partition);
    pthread_mutex_lock(&fake->log->lock);
    fault = count_call(fake->log, MP_FAKE_LOG_SEEK);
    if (!fault || fault->applied) {
        const struct partition *part = partition_of(fake->log, partition);

        assert(offset >= 0 || offset == MP_OFFSET_EARLIEST || offset == MP_OFFSET_LATEST);
        fake->positions[i] = offset == MP_OFFSET_EARLIEST ? part->low
                             : offset == MP_OFFSET_LATEST ? part->high
                                                          : offset;
    }
    pthread_mutex_unlock(&fake->log->lock);
    return tell(fault, err);
}

static enum mp_code fake_unseek(struct mp_source *source, int32_t partition, struct mp_err *err)
{
    struct fake *fake = of(source);

    (void)err;
    for (uint32_t i = 0; i < fake->count; i++)
        if (fake->ids[i] == partition)
            fake->positions[i] = MP_OFFSET_NONE;
    return MP_OK;
}

static void release(struct fake *fake)
{
    for (uint32_t i = 0; i < fake->item_count; i++) {
        mp_free((char *)(uintptr_t)fake->items[i].key.data);
        mp_free((char *)(uintptr_t)fake->items[i].value.data);
    }
    fake->item_count = 0;
}

/* The index of the first record at or behind offset, count: none. */
static size_t first_at(const struct partition *part, int64_t offset)
{
    size_t low = 0, high = part->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (part->records[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_lost(const struct partition *part, int64_t position)
{
    return position != MP_OFFSET_NONE && (position < part->low || position > part->high);
}

/* Gives the next record of one partition; false: it has none now. */
static bool give_one(struct fake *fake, uint32_t index, struct mp_record *ret)
{
    const struct partition *part = partition_of(fake->log, fake->ids[index]);
    int64_t position = fake->positions[index];
    size_t at = first_at(part, position);
    const struct stored *record;

    if (position == MP_OFFSET_NONE || is_lost(part, position) || at == part->count || part->away)
        return false;
    record = &part->records[at];
    *ret = (struct mp_record){
        .partition = fake->ids[index],
        .has_key = record->key != NULL,
        .has_value = record->value != NULL,
        .offset = record->offset,
        .next_offset = record->offset + 1,
        .timestamp_ms = record->timestamp_ms,
        .key = {copy(mp_str_n(record->key, record->key_size)), record->key_size},
        .value = {copy(mp_str_n(record->value, record->value_size)), record->value_size},
    };
    fake->positions[index] = record->offset + 1;
    return true;
}

/* One record of each partition in turn, until records_max or nothing is left. Under the lock. */
static void give(struct fake *fake, uint32_t records_max)
{
    uint32_t idle = 0;

    while (fake->count && idle < fake->count && fake->item_count < records_max) {
        bool given = give_one(fake, fake->turn % fake->count, &fake->items[fake->item_count]);

        fake->item_count += given;
        idle = given ? 0 : idle + 1;
        fake->turn = (fake->turn + 1) % fake->count;
    }
}

static int64_t fake_reached(struct mp_source *source, int32_t partition)
{
    struct fake *fake = of(source);
    int64_t reached = MP_OFFSET_NONE;

    pthread_mutex_lock(&fake->log->lock);
    for (uint32_t i = 0; i < fake->count; i++) {
        const struct partition *part = partition_of(fake->log, fake->ids[i]);

        if (fake->ids[i] != partition || fake->positions[i] == MP_OFFSET_NONE)
            continue;
        reached = fake->positions[i];
        if (!is_lost(part, reached) && first_at(part, reached) == part->count)
            reached = part->high;
    }
    pthread_mutex_unlock(&fake->log->lock);
    return reached;
}

/* By the partitions that somebody leads. */
static bool everything_given(const struct fake *fake)
{
    for (uint32_t i = 0; i < fake->count; i++) {
        const struct partition *part = partition_of(fake->log, fake->ids[i]);

        if (!part->away &&
            (fake->positions[i] == MP_OFFSET_NONE || is_lost(part, fake->positions[i]) ||
             first_at(part, fake->positions[i]) < part->count))
            return false;
    }
    return true;
}

static enum mp_code fake_poll(struct mp_source *source, uint32_t records_max, uint32_t wait_ms,
                              struct mp_err *err, struct mp_records *ret)
{
    struct fake *fake = of(source);
    const struct planned *fault;
    uint32_t lost_count = 0;
    bool end;

    (void)wait_ms; /* nothing comes while we wait */
    release(fake);
    fake->items = mp_realloc(fake->items, records_max * sizeof(*fake->items));
    pthread_mutex_lock(&fake->log->lock);
    fault = count_call(fake->log, MP_FAKE_LOG_POLL);
    if (!fault)
        give(fake, records_max);
    for (uint32_t i = 0; i < fake->count; i++) {
        const struct partition *part = partition_of(fake->log, fake->ids[i]);

        if (is_lost(part, fake->positions[i]))
            fake->lost[lost_count++] = (struct mp_source_lost){.partition = fake->ids[i],
                                                               .offset = fake->positions[i],
                                                               .low = part->low,
                                                               .high = part->high};
    }
    end = fake->log->end && everything_given(fake);
    pthread_mutex_unlock(&fake->log->lock);
    if (fault)
        return tell(fault, err);
    *ret = (struct mp_records){.items = fake->items,
                               .count = fake->item_count,
                               .end = end,
                               .lost = fake->lost,
                               .lost_count = lost_count};
    return MP_OK;
}

static struct owned *owned_of(struct fake *fake, int32_t partition)
{
    for (uint32_t i = 0; i < fake->owned_count; i++)
        if (fake->owned[i].partition == partition)
            return &fake->owned[i];
    return NULL;
}

static enum mp_code fake_own(struct mp_source *source, const int32_t *partitions, uint32_t count,
                             struct mp_err *err, bool *ret_fenced)
{
    struct fake *fake = of(source);
    const struct planned *fault;

    pthread_mutex_lock(&fake->log->lock);
    fault = count_call(fake->log, MP_FAKE_LOG_OWN);
    for (uint32_t i = 0; i < count && (!fault || fault->applied); i++) {
        if (fake->log->no_owners || owned_of(fake, partitions[i]))
            continue;
        fake->owned = mp_realloc(fake->owned, (fake->owned_count + 1) * sizeof(*fake->owned));
        fake->owned[fake->owned_count++] = (struct owned){
            .partition = partitions[i],
            .owner = ++partition_of(fake->log, partitions[i])->owner,
        };
    }
    *ret_fenced = !fake->log->no_owners;
    pthread_mutex_unlock(&fake->log->lock);
    if (!fault && !*ret_fenced)
        mp_err_set(err, MP_REFUSED, "owners are forbidden");
    return tell(fault, err);
}

static void fake_disown(struct mp_source *source, const int32_t *partitions, uint32_t count)
{
    struct fake *fake = of(source);

    pthread_mutex_lock(&fake->log->lock);
    for (uint32_t i = 0; i < count; i++) {
        struct owned *owned = owned_of(fake, partitions[i]);

        if (owned)
            *owned = fake->owned[--fake->owned_count];
    }
    pthread_mutex_unlock(&fake->log->lock);
}

/* One after the other, as the transactions of a real one: those before a fenced one are stored. */
static enum mp_code fake_commit(struct mp_source *source, const struct mp_source_offset *offsets,
                                uint32_t count, struct mp_err *err)
{
    struct fake *fake = of(source);
    const struct planned *fault;
    enum mp_code code = MP_OK;

    pthread_mutex_lock(&fake->log->lock);
    fault = count_call(fake->log, MP_FAKE_LOG_COMMIT);
    for (uint32_t i = 0; i < count && (!fault || fault->applied) && !code; i++) {
        const struct owned *owned = owned_of(fake, offsets[i].partition);

        assert(offsets[i].offset >= 0);
        if (owned && owned->owner != partition_of(fake->log, offsets[i].partition)->owner)
            code = mp_err_set(err, MP_FENCED, "another process owns partition %d",
                              (int)offsets[i].partition);
        else
            store(fake->log, &offsets[i]);
    }
    pthread_mutex_unlock(&fake->log->lock);
    return code ? code : tell(fault, err);
}

static enum mp_code fake_committed(struct mp_source *source, struct mp_arena *arena,
                                   struct mp_source_offset *offsets, uint32_t count,
                                   struct mp_err *err)
{
    struct fake *fake = of(source);
    const struct planned *fault;

    pthread_mutex_lock(&fake->log->lock);
    fault = count_call(fake->log, MP_FAKE_LOG_COMMITTED);
    for (uint32_t i = 0; i < count && !fault; i++) {
        if ((uint32_t)offsets[i].partition >= fake->log->partition_count) {
            offsets[i].offset = MP_OFFSET_NONE; /* a group may be asked for any */
            offsets[i].metadata = MP_STR("");
            continue;
        }
        offsets[i] = partition_of(fake->log, offsets[i].partition)->committed;
        offsets[i].metadata = mp_arena_str(arena, offsets[i].metadata);
    }
    pthread_mutex_unlock(&fake->log->lock);
    return tell(fault, err);
}

static void fake_watermarks_seen(struct mp_source *source, struct mp_source_watermark *watermarks,
                                 uint32_t count)
{
    struct fake *fake = of(source);

    pthread_mutex_lock(&fake->log->lock);
    for (uint32_t i = 0; i < count; i++) {
        const struct partition *part = partition_of(fake->log, watermarks[i].partition);

        watermarks[i].away = part->away;
        watermarks[i].low = part->low;
        watermarks[i].high = part->high;
    }
    pthread_mutex_unlock(&fake->log->lock);
}

static void wait_while_slow(struct mp_fake_log *log)
{
    const struct timespec moment = {.tv_nsec = 1000000};

    pthread_mutex_lock(&log->lock);
    for (int i = 0; i < 10000 && log->slow; i++) {
        pthread_mutex_unlock(&log->lock);
        nanosleep(&moment, NULL);
        pthread_mutex_lock(&log->lock);
    }
    pthread_mutex_unlock(&log->lock);
}

static enum mp_code fake_watermarks(struct mp_source *source,
                                    struct mp_source_watermark *watermarks, uint32_t count,
                                    struct mp_err *err)
{
    struct fake *fake = of(source);
    const struct planned *fault;
    uint32_t away = 0;

    pthread_mutex_lock(&fake->log->lock);
    fault = count_call(fake->log, MP_FAKE_LOG_WATERMARKS);
    pthread_mutex_unlock(&fake->log->lock);
    wait_while_slow(fake->log);
    if (fault)
        return tell(fault, err);
    fake_watermarks_seen(source, watermarks, count);
    for (uint32_t i = 0; i < count; i++)
        away += watermarks[i].away;
    return count && away == count ? mp_err_set(err, MP_IO, "nobody leads what is asked for")
                                  : MP_OK;
}

static void fake_close(struct mp_source *source)
{
    struct fake *fake = of(source);

    release(fake);
    mp_free(fake->items);
    mp_free(fake->lost);
    mp_free(fake->ids);
    mp_free(fake->positions);
    mp_free(fake->owned);
    mp_free(fake);
}

static const struct mp_source_driver driver = {
    .name = "fake",
    .partitions = fake_partitions,
    .seek = fake_seek,
    .unseek = fake_unseek,
    .poll = fake_poll,
    .reached = fake_reached,
    .own = fake_own,
    .disown = fake_disown,
    .commit = fake_commit,
    .committed = fake_committed,
    .watermarks = fake_watermarks,
    .watermarks_seen = fake_watermarks_seen,
    .close = fake_close,
};

struct mp_source *mp_source_fake_open(struct mp_fake_log *log, uint32_t ordinal,
                                      uint32_t replica_count)
{
    struct fake *fake = mp_alloc(sizeof(*fake));

    assert(replica_count > 0);
    assert(ordinal < replica_count);
    fake->source.driver = &driver;
    fake->log = log;
    fake->ordinal = ordinal;
    fake->replica_count = replica_count;
    return &fake->source;
}
