/* pipeline/start.c - where to begin: the lake's book of record, the source's mirror, and the log.
 *
 * For each partition:
 *     no row in the lake           what the source stores, else the reset policy
 *     a row, and no stored offset  the lake
 *     stored with our marker       the lake (the mirror lags by a flush at most)
 *     stored without it, ahead     another program went on meanwhile: adopted, and told
 *     stored without it, behind    the lake, with a warning; offsets_from_source rewinds on purpose
 * A position that the log does not have any more is moved by the reset policy, and the gap is told;
 * but a log that is shorter than its position is not read again while the source stores an offset
 * of it: Kafka drops those with their topic, so the topic is the same, its log was cut (as by an
 * unclean leader election), and what is left of it is in the lake but for an end that nobody can
 * tell. A partition that the topic got later, while we run or since the lake has rows of the
 * others, is read from its first record, whatever the policy. A partition that nobody leads is left
 * for later, and told; it joins when somebody does, as one that the topic got later would (look.c).
 * Others are not held up by it. Only where nothing says where it begins but the policy, and
 * the policy is the log's end as of now, are all waited for. The claim raises the owner's epoch by
 * compare-and-swap, so that an earlier owner is fenced.
 *
 * Where the lake keeps no offsets, what the source stores is all there is: partitions are taken
 * over there, plans found beside the offsets are settled (settle.c), and where each partition
 * begins is stored before anything is read, so that the next process begins there too.
 */
#include "base/mem.h"
#include "pipeline/pipeline_priv.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char logger[] = "millpond.start";

/* Calls `attempt` until it works, with the ladder; faults of `part` show in the readiness, until
 * the caller says that it is there. */
static enum mp_code with_ladder(struct mp_pipeline *p, enum mp_health_part part, const char *what,
                                enum mp_code (*attempt)(struct mp_pipeline *p, struct mp_err *err),
                                struct mp_err *err)
{
    struct mp_retry retry = {.env = p->world.env, .outage_ms_max = p->options.outage_ms_max};
    uint32_t wait_ms;
    enum mp_code code;

    while ((code = attempt(p, err)) != MP_OK) {
        mp_health_beat(p->world.health);
        mp_health_part(p->world.health, part, err->text);
        if (!mp_retry_again(&retry, err, &wait_ms)) {
            mp_err_add(err, "%s", what);
            return code;
        }
        mp_status_fault(p, err, what, wait_ms);
        for (uint32_t waited = 0; waited < wait_ms; waited += 100)
            if (mp_pipeline_stopping(p) || !mp_pipeline_wait(p, 100))
                return mp_err_set(err, MP_STOPPED, "stopped before it began");
    }
    return MP_OK;
}

/* A quarantine table that is there takes what would be put into it. */
static enum mp_code look_at_quarantine(struct mp_pipeline *p, struct mp_err *err)
{
    struct mp_str name = p->options.quarantine_table;
    const struct mp_lake_table *table;
    enum mp_code code;

    if (!name.size)
        return MP_OK;
    code = p->lake->driver->resolve(p->lake, name, err, &table);
    if (code)
        return code == MP_NOT_FOUND ? MP_OK : code;
    return mp_own_columns_fit(p, table, name, err);
}

/* Opens the lake (once) and looks at its tables; where the table is there and laid out otherwise
 * than the settings say, that is told: what is there counts. */
static enum mp_code open_lake(struct mp_pipeline *p, struct mp_err *err)
{
    const struct mp_lake_evolution nothing = {0};
    const struct mp_lake_table *table;
    enum mp_code code = MP_OK;

    if (!p->lake)
        code = p->doors.open_lake(p->doors.self, err, &p->lake);
    if (code)
        return code;
    code = look_at_quarantine(p, err);
    if (code)
        return code;
    code = p->lake->driver->resolve(p->lake, p->options.table, err, &table);
    if (!code)
        code = mp_own_columns_fit(p, table, p->options.table, err);
    if (!code)
        code = p->lake->driver->evolve(p->lake, p->options.table, &nothing, &p->options.create, err,
                                       &table);
    if (code && code != MP_NOT_FOUND)
        return code;
    mp_pipeline_set_live(p, code ? NULL : table);
    if (!code && table->warning.size)
        mp_log(p->world.log, MP_LOG_WARN, logger, "%.*s", MP_STR_ARG(table->warning));
    return MP_OK;
}

static enum mp_code prove_store(struct mp_pipeline *p, struct mp_err *err)
{
    return p->doors.prove_store ? p->doors.prove_store(p->doors.self, err) : MP_OK;
}

static enum mp_code open_store(struct mp_pipeline *p, struct mp_err *err)
{
    return p->doors.open_store(p->doors.self, p->lake->driver->data_path(p->lake), err, &p->store);
}

static enum mp_code open_source(struct mp_pipeline *p, struct mp_err *err)
{
    const int32_t *ids;
    uint32_t count;
    enum mp_code code = MP_OK;

    if (!p->source)
        code = p->doors.open_source(p->doors.self, err, &p->source);
    return code ? code : p->source->driver->partitions(p->source, err, &ids, &count);
}

/* What the client hears meanwhile it tells in poll only, a right that is missing for instance,
 * while the call that waits for it just runs out of time. Nothing is read yet, so no record can
 * come. */
static enum mp_code claim_all(struct mp_pipeline *p, struct mp_err *err)
{
    struct mp_records none;
    struct mp_err told;
    enum mp_code code = mp_start_partitions(p, err);

    if (code && err->retriable && !p->part_count &&
        p->source->driver->poll(p->source, 1, 0, &told, &none) == MP_REFUSED) {
        *err = told;
        code = MP_REFUSED;
    }
    return code;
}

enum mp_code mp_start_open(struct mp_pipeline *p, struct mp_err *err)
{
    enum mp_code code;

    code = with_ladder(p, MP_HEALTH_STORE, "prove the store", prove_store, err);
    if (code)
        return code;
    code = with_ladder(p, MP_HEALTH_LAKE, "open the lake", open_lake, err);
    if (code)
        return code;
    mp_health_part(p->world.health, MP_HEALTH_LAKE, NULL);
    code = with_ladder(p, MP_HEALTH_STORE, "open the store", open_store, err);
    if (code)
        return code;
    mp_health_part(p->world.health, MP_HEALTH_STORE, NULL);
    code = with_ladder(p, MP_HEALTH_SOURCE, "open the source", open_source, err);
    if (code)
        return code;
    code = with_ladder(p, MP_HEALTH_SOURCE, "take the partitions over", claim_all, err);
    if (!code)
        mp_start_source_answers(p);
    return code;
}

void mp_start_source_answers(struct mp_pipeline *p)
{
    mp_health_part(p->world.health, MP_HEALTH_SOURCE, p->away[0] ? p->away : NULL);
}

/* Everything that is known of one partition when it is taken over. */
struct takeover {
    int32_t id;
    struct mp_lake_position lake;
    struct mp_source_offset stored;
    struct mp_source_watermark log;
    int64_t next;
};

static bool is_ours(const struct mp_source_offset *stored)
{
    return mp_str_starts(stored->metadata, MP_STR("mp1 "));
}

static int64_t by_policy(const struct mp_pipeline *p, const struct takeover *takeover)
{
    return p->options.reset == MP_PIPELINE_EARLIEST ? takeover->log.low : takeover->log.high;
}

/* The offset to go on from, before the log's limits are looked at; -1: the policy decides. */
static int64_t decide(struct mp_pipeline *p, const struct takeover *t)
{
    bool lake = t->lake.next >= 0, stored = t->stored.offset >= 0;

    if (p->options.from_start)
        return t->log.low;
    if (!lake || (stored && p->options.offsets_from_source))
        return stored ? t->stored.offset : MP_OFFSET_NONE;
    if (!stored || is_ours(&t->stored) || t->stored.offset == t->lake.next)
        return t->lake.next;
    if (t->stored.offset > t->lake.next) {
        mp_log(p->world.log, MP_LOG_WARN, logger,
               "partition %" PRId32 ": another program committed offset %" PRId64
               ", the lake has %" PRId64 ": going on from %" PRId64,
               t->id, t->stored.offset, t->lake.next, t->stored.offset);
        return t->stored.offset;
    }
    mp_log(p->world.log, MP_LOG_WARN, logger,
           "partition %" PRId32 ": another program committed offset %" PRId64
           ", but the lake holds all up to %" PRId64
           ": going on from there (MILLPOND_OFFSETS_FROM=kafka would read them again)",
           t->id, t->stored.offset, t->lake.next);
    return t->lake.next;
}

static void tell_gap(struct mp_pipeline *p, int32_t id, int64_t wanted, int64_t low, int64_t high,
                     int64_t next)
{
    char label[16];

    snprintf(label, sizeof(label), "%" PRId32, id);
    mp_log(p->world.log, MP_LOG_WARN, logger,
           "Stale committed offset on %.*s [%" PRId32 "]: %" PRId64 " is outside the log [%" PRId64
           ", %" PRId64 "), going on from %" PRId64 "%s",
           MP_STR_ARG(p->options.topic), id, wanted, low, high, next,
           next > wanted ? "; the records between are gone" : "");
    if (next > wanted)
        mp_metric_add(p->world.metrics, MP_M_OFFSET_GAP, label, (double)(next - wanted));
}

static enum mp_code cut_short(const struct mp_pipeline *p, const struct takeover *t, int64_t next,
                              struct mp_err *err)
{
    return mp_err_set(
        err, MP_CHANGED,
        "topic %.*s partition %" PRId32 ": its log ends at %" PRId64 ", %" PRId64
        " was to be next, and the group still has offset %" PRId64
        " of it: the log was cut; start once with KAFKA_AUTO_OFFSET_RESET=latest to go on at its "
        "end, or delete the group's offsets of the topic to read it again from %" PRId64,
        MP_STR_ARG(p->options.topic), t->id, t->log.high, next, t->stored.offset, t->log.low);
}

/* Where to go on instead of *next. later: the topic had others before it, so nobody chose to leave
 * out what it holds. */
static enum mp_code within_log(struct mp_pipeline *p, const struct takeover *t, bool later,
                               int64_t *next, struct mp_err *err)
{
    if (*next < 0) {
        *next = later ? t->log.low : by_policy(p, t);
        return MP_OK;
    }
    if (t->log.low < 0 || t->log.high < 0 || (*next >= t->log.low && *next <= t->log.high))
        return MP_OK; /* a mark that is not known refuses nothing */
    if (*next > t->log.high && t->stored.offset >= 0 && p->options.reset == MP_PIPELINE_EARLIEST)
        return cut_short(p, t, *next, err);
    tell_gap(p, t->id, *next, t->log.low, t->log.high, by_policy(p, t));
    *next = by_policy(p, t);
    return MP_OK;
}

static void add_part(struct mp_pipeline *p, const struct takeover *t)
{
    uint32_t at = p->part_count;
    char label[16];

    pthread_mutex_lock(&p->lock);
    p->parts = mp_realloc(p->parts, (p->part_count + 1) * sizeof(*p->parts));
    for (; at > 0 && p->parts[at - 1].id > t->id; at--)
        p->parts[at] = p->parts[at - 1];
    p->parts[at] = (struct mp_part){
        .id = t->id,
        .lowest = -1,
        .highest = -1,
        .start = t->next,
        .next = t->next,
        .timestamp_ms = -1,
        .published_ms = -1,
        .epoch = t->lake.epoch + 1,
    };
    p->part_count++;
    pthread_mutex_unlock(&p->lock);
    snprintf(label, sizeof(label), "%" PRId32, t->id);
    mp_metric_set(p->world.metrics, MP_M_LAST_COMMITTED_OFFSET, label, (double)t->next);
    mp_status_lag(p, t->id, t->log.high, t->next);
}

/* What the lake has, and what the source stores. */
static enum mp_code ask_offsets(struct mp_pipeline *p, struct mp_arena *arena,
                                struct mp_lake_position *positions, struct mp_source_offset *stored,
                                uint32_t count, struct mp_err *err)
{
    enum mp_code code;

    if (!p->lake->driver->offsets_in_lake) {
        for (uint32_t i = 0; i < count; i++)
            positions[i].next = MP_OFFSET_NONE;
        code = mp_settle(p, arena, stored, count, err);
        return code ? code : mp_lost_offsets(p, stored, count, err);
    }
    pthread_mutex_lock(&p->lake_lock);
    code = p->lake->driver->positions(p->lake, positions, count, err);
    pthread_mutex_unlock(&p->lake_lock);
    return code ? code : p->source->driver->committed(p->source, arena, stored, count, err);
}

/* Asks lake, source and log about partitions; texts lie in arena. */
static enum mp_code look_up(struct mp_pipeline *p, struct mp_arena *arena,
                            struct takeover *takeovers, uint32_t count, struct mp_err *err)
{
    struct mp_lake_position *positions = mp_alloc_array(count, sizeof(*positions));
    struct mp_source_offset *stored = mp_alloc_array(count, sizeof(*stored));
    struct mp_source_watermark *marks = mp_alloc_array(count, sizeof(*marks));
    enum mp_code code;

    for (uint32_t i = 0; i < count; i++)
        positions[i].partition = stored[i].partition = marks[i].partition = takeovers[i].id;
    code = ask_offsets(p, arena, positions, stored, count, err);
    if (code)
        goto out;
    code = p->source->driver->watermarks(p->source, marks, count, err);
    if (code)
        goto out;
    for (uint32_t i = 0; i < count; i++) {
        takeovers[i].lake = positions[i];
        takeovers[i].stored = stored[i];
        takeovers[i].log = marks[i];
    }
out:
    mp_free(positions);
    mp_free(stored);
    mp_free(marks);
    return code;
}

/* Stores where each partition begins, unless it is stored already. */
static enum mp_code store_begin(struct mp_pipeline *p, const struct takeover *takeovers,
                                uint32_t count, struct mp_err *err)
{
    struct mp_source_offset *offsets = mp_alloc_array(count, sizeof(*offsets));
    uint32_t changed = 0;
    enum mp_code code;

    for (uint32_t i = 0; i < count; i++)
        if (takeovers[i].stored.offset != takeovers[i].next)
            offsets[changed++] = (struct mp_source_offset){.partition = takeovers[i].id,
                                                           .offset = takeovers[i].next};
    code = changed ? p->source->driver->commit(p->source, offsets, changed, err) : MP_OK;
    mp_free(offsets);
    return code;
}

static enum mp_code claim(struct mp_pipeline *p, const struct takeover *takeovers, uint32_t count,
                          struct mp_err *err)
{
    struct mp_lake_claim *claims = mp_alloc_array(count, sizeof(*claims));
    enum mp_code code;

    for (uint32_t i = 0; i < count; i++)
        claims[i] = (struct mp_lake_claim){
            .partition = takeovers[i].id,
            .read_next = takeovers[i].lake.next,
            .read_epoch = takeovers[i].lake.epoch,
            .next = takeovers[i].next,
        };
    pthread_mutex_lock(&p->lake_lock);
    code = p->lake->driver->claim(p->lake, claims, count, err);
    pthread_mutex_unlock(&p->lake_lock);
    mp_free(claims);
    return code;
}

/* A process that died between its commit to the lake and the mirror's has left the mirror behind.
 * It is put right here, since a partition may stay without another record, and another program may
 * go on from it. What others committed is not touched before there is something to tell. */
static void mend_mirror(struct mp_pipeline *p, const struct takeover *takeovers, uint32_t count)
{
    struct mp_source_offset *offsets = mp_alloc_array(count, sizeof(*offsets));
    uint32_t behind = 0;
    struct mp_arena arena;
    struct mp_err err;

    mp_arena_init(&arena, 0);
    for (uint32_t i = 0; i < count; i++) {
        const struct takeover *t = &takeovers[i];

        if (t->lake.next < 0 || t->next != t->lake.next || t->stored.offset == t->next ||
            (t->stored.offset >= 0 && !is_ours(&t->stored)))
            continue;
        offsets[behind] = (struct mp_source_offset){.partition = t->id, .offset = t->next};
        mp_pipeline_mark(&arena, &offsets[behind++], t->lake.epoch + 1);
    }
    if (behind && p->source->driver->commit(p->source, offsets, behind, &err)) {
        mp_metric_add(p->world.metrics, MP_M_ERRORS, "offset_commit", 1);
        mp_log(p->world.log, MP_LOG_WARN, logger,
               "Offset commit failed: %s; the lake holds the offsets", err.text);
    }
    mp_arena_fini(&arena);
    mp_free(offsets);
}

/* The lake's uuid text is lent until its next call: looked at before anything else is asked. */
static void tell_recreated(struct mp_pipeline *p, const struct takeover *takeovers, uint32_t count)
{
    const struct mp_lake_table *table;
    char uuid[64] = "";
    struct mp_err err;

    for (uint32_t i = 0; i < count && !*uuid; i++)
        if (takeovers[i].lake.next >= 0)
            snprintf(uuid, sizeof(uuid), "%.*s", MP_STR_ARG(takeovers[i].lake.table_uuid));
    if (!*uuid)
        return;
    pthread_mutex_lock(&p->lake_lock);
    if (!p->lake->driver->resolve(p->lake, p->options.table, &err, &table) &&
        !mp_str_eq(table->uuid, mp_str_c(uuid)))
        mp_log(p->world.log, MP_LOG_WARN, logger,
               "table %.*s was made anew since these offsets were written: going on from the "
               "recorded offsets, into the new table",
               MP_STR_ARG(p->options.table));
    pthread_mutex_unlock(&p->lake_lock);
}

/* Keeps in p->away which partitions nobody leads, and tells it when that changes. */
static void tell_away(struct mp_pipeline *p, const struct takeover *takeovers, uint32_t count)
{
    char before[sizeof(p->away)];
    size_t used = 0;
    uint32_t away = 0;

    memcpy(before, p->away, sizeof(before));
    p->away[0] = 0;
    for (uint32_t i = 0; i < count && used < sizeof(p->away) / 2; i++)
        if (takeovers[i].log.away)
            used += (size_t)snprintf(p->away + used, sizeof(p->away) - used, "%s%" PRId32,
                                     used ? ", " : "partition ", takeovers[i].id);
    for (uint32_t i = 0; i < count; i++)
        away += takeovers[i].log.away;
    if (away)
        snprintf(p->away + used, sizeof(p->away) - used,
                 ": no leader answers for %" PRIu32 " of ours, the others are read", away);
    if (away && strcmp(before, p->away) != 0)
        mp_log(p->world.log, MP_LOG_WARN, logger, "Topic %.*s %s", MP_STR_ARG(p->options.topic),
               p->away);
    mp_start_source_answers(p);
}

/* Leaves those that nobody leads for later. */
static enum mp_code leave_away(struct mp_pipeline *p, struct takeover *takeovers, bool later,
                               uint32_t *count, struct mp_err *err)
{
    bool end_counts = !later && !p->options.from_start && p->options.reset == MP_PIPELINE_LATEST;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < *count; i++)
        if (end_counts && takeovers[i].log.away && takeovers[i].lake.next < 0 &&
            takeovers[i].stored.offset < 0)
            return mp_err_set(
                err, MP_IO, "no leader answers for partition %" PRId32 ", which begins at its end",
                takeovers[i].id);
    tell_away(p, takeovers, *count);
    for (uint32_t i = 0; i < *count; i++)
        if (!takeovers[i].log.away)
            takeovers[kept++] = takeovers[i];
    *count = kept;
    return MP_OK;
}

/* there: so many of them, the first ones, may have somebody who answers. */
static enum mp_code take_over(struct mp_pipeline *p, struct mp_arena *arena,
                              struct takeover *takeovers, uint32_t there, uint32_t count,
                              struct mp_err *err)
{
    bool later = p->publisher_runs;
    enum mp_code code = there ? look_up(p, arena, takeovers, there, err) : MP_OK;

    if (code)
        return code;
    tell_recreated(p, takeovers, there);
    for (uint32_t i = 0; i < count; i++)
        later = later || takeovers[i].lake.next >= 0; /* all are claimed at once */
    code = leave_away(p, takeovers, later, &count, err);
    if (code || !count)
        return code;
    for (uint32_t i = 0; i < count && !code; i++) {
        takeovers[i].next = decide(p, &takeovers[i]);
        code = within_log(p, &takeovers[i], later, &takeovers[i].next, err);
    }
    if (code)
        return code;
    code = p->lake->driver->offsets_in_lake ? claim(p, takeovers, count, err)
                                            : store_begin(p, takeovers, count, err);
    if (code)
        return code;
    for (uint32_t i = 0; i < count; i++) {
        code = p->source->driver->seek(p->source, takeovers[i].id, takeovers[i].next, err);
        if (code)
            return code;
        add_part(p, &takeovers[i]);
    }
    mend_mirror(p, takeovers, count);
    return MP_OK;
}

static enum mp_code take_over_told(struct mp_pipeline *p, struct takeover *takeovers,
                                   uint32_t there, uint32_t count, struct mp_err *err)
{
    uint32_t before = p->part_count;
    struct mp_arena arena;
    enum mp_code code;

    mp_arena_init(&arena, 0);
    code = take_over(p, &arena, takeovers, there, count, err);
    mp_arena_fini(&arena);
    if (!code && p->part_count > before)
        mp_log(p->world.log, MP_LOG_INFO, logger, "Assigned partitions: %u of %.*s", p->part_count,
               MP_STR_ARG(p->options.topic));
    return code;
}

enum mp_code mp_start_partitions(struct mp_pipeline *p, struct mp_err *err)
{
    struct takeover *takeovers;
    const int32_t *ids;
    uint32_t count, fresh = 0;
    enum mp_code code;

    p->parts_asked_us = mp_now_mono_us(p->world.env);
    code = p->source->driver->partitions(p->source, err, &ids, &count);
    if (code)
        return code;
    takeovers = mp_alloc_array(count, sizeof(*takeovers));
    for (uint32_t i = 0; i < count; i++)
        if (!mp_pipeline_part(p, ids[i])) /* an earlier try may have come half way */
            takeovers[fresh++].id = ids[i];
    if (fresh)
        code = take_over_told(p, takeovers, fresh, fresh, err);
    mp_free(takeovers);
    return code;
}

enum mp_code mp_start_looked(struct mp_pipeline *p, struct mp_err *err)
{
    struct mp_source_watermark *marks;
    struct takeover *takeovers;
    uint32_t count, there = 0, at = 0;
    enum mp_code code = mp_look_end(p, err, &marks, &count);

    if (code)
        return code;
    takeovers = mp_alloc_array(count, sizeof(*takeovers));
    for (uint32_t i = 0; i < count; i++)
        there += !marks[i].away;
    for (int away = 0; away < 2; away++)
        for (uint32_t i = 0; i < count; i++)
            if (marks[i].away == (away == 1))
                takeovers[at++] = (struct takeover){.id = marks[i].partition, .log = marks[i]};
    mp_free(marks);
    code = take_over_told(p, takeovers, there, count, err);
    mp_free(takeovers);
    return code;
}

enum mp_code mp_start_lost(struct mp_pipeline *p, const struct mp_source_lost *lost,
                           struct mp_err *err)
{
    struct mp_part *part = mp_pipeline_part(p, lost->partition);
    struct takeover takeover = {.log = {.low = lost->low, .high = lost->high}};
    int64_t next = by_policy(p, &takeover);

    assert(part);
    /* Going back cannot lie in a range that only grows: the next process takes it over with a
     * claim, and knows whether the log was made anew or cut. */
    if (next < part->next)
        return mp_err_set(err, MP_CHANGED,
                          "topic %.*s partition %" PRId32
                          " was made anew, or its log was cut: it ends "
                          "at %" PRId64 ", %" PRId64 " was to be next; start again to go on",
                          MP_STR_ARG(p->options.topic), part->id, lost->high, part->next);
    if (!part->lost)
        tell_gap(p, lost->partition, lost->offset, lost->low, lost->high, next);
    part->lost = true;
    part->next = next;
    part->lost = false;
    return p->source->driver->seek(p->source, lost->partition, next, err);
}
