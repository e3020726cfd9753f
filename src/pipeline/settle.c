/* pipeline/settle.c - plans that somebody else left, settled before anything is read.
 *
 * A plan (plan.h) beside an offset says: a commit under this key, of this partition's range and of
 * other members' ranges, was about to be sent, may have been sent, may have landed. Whoever takes a
 * member over finds it, and settles it whole:
 *
 *     its table is gone (uuid)     void: its rows went with the table; read again into the new one
 *     its key is published         the offsets of all members that carry it move behind it
 *     all members carry it         exactly its ranges are read again and published under its key;
 *                                  then as if it had been published before
 *     one does not carry it        it was never sent (K3 of book.c): void, read again from there
 *
 * T1  our own partitions are owned before they are looked at, so that their plans stay as seen
 * T2  "one does not carry it" is believed only while every member is owned: nobody else can write
 *     the missing piece any more, and so nobody can send it. (Its owner, if it lives, is fenced by
 *     that, ends and starts again. To publish a whole plan needs no such thing: a commit under its
 *     key lands once, whoever sends it.)
 * T3  void means: the plan is taken away where it stands, the offset stays
 * T4  everything here may be done twice or stop anywhere: the plan is there until it is settled
 *
 * What cannot be settled (the log does not have the records any more, a member is no partition of
 * the topic, the plan is older than the lake remembers its key) waits for as long as a commit may
 * be under way, asks for the key once more, and then halts unless the settings say what to do.
 */
#include "base/mem.h"
#include "pipeline/pipeline_priv.h"
#include "pipeline/plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum { ROUNDS_MAX = 1000 };

static const char logger[] = "millpond.settle";

/* One partition of the plan that is being settled. */
struct member {
    struct mp_source_offset stored;
    struct mp_plan plan; /* where it carries it */
    bool carries, ours;  /* ours: one of those that are being taken over */
};

struct settle {
    struct mp_pipeline *p;
    struct mp_arena *arena;
    const struct mp_source_offset *taken; /* what is being taken over, as stored now */
    uint32_t taken_count;
    struct mp_plan plan; /* as found at partition */
    int32_t partition;
    struct member *members; /* [plan.member_count] */
    struct mp_source *whole;
};

/* --- what is known of a plan ---------------------------------------------------------------- */

/* Reads what the members carry now. */
static enum mp_code look(struct settle *settle, struct mp_err *err)
{
    struct mp_pipeline *p = settle->p;
    uint32_t count = settle->plan.member_count;
    struct mp_source_offset *stored = mp_alloc_array(count, sizeof(*stored));
    enum mp_code code;

    for (uint32_t i = 0; i < count; i++)
        stored[i].partition = settle->plan.members[i];
    code = p->source->driver->committed(p->source, settle->arena, stored, count, err);
    for (uint32_t i = 0; i < count && !code; i++) {
        struct member *member = &settle->members[i];

        member->stored = stored[i];
        member->carries = mp_plan_read(settle->arena, stored[i].partition, stored[i].metadata,
                                       &member->plan) == MP_PLAN_FOUND &&
                          strcmp(member->plan.key, settle->plan.key) == 0;
    }
    mp_free(stored);
    return code;
}

static bool all_carry(const struct settle *settle)
{
    for (uint32_t i = 0; i < settle->plan.member_count; i++)
        if (!settle->members[i].carries)
            return false;
    return true;
}

static enum mp_code ask_published(struct settle *settle, struct mp_err *err, bool *ret)
{
    struct mp_pipeline *p = settle->p;
    enum mp_code code;

    pthread_mutex_lock(&p->lake_lock);
    code = p->lake->driver->published(p->lake, mp_str_c(settle->plan.key), err, ret);
    pthread_mutex_unlock(&p->lake_lock);
    return code;
}

/* Whether the plan's table is still one that we write to. */
static enum mp_code ask_table(struct settle *settle, struct mp_err *err, bool *ret)
{
    struct mp_pipeline *p = settle->p;
    struct mp_str names[] = {p->options.table, p->options.quarantine_table};
    const struct mp_lake_table *table;
    enum mp_code code = MP_OK;

    *ret = false;
    pthread_mutex_lock(&p->lake_lock);
    if (p->lake->driver->refresh) /* a table made anew meanwhile must not pass for the plan's */
        p->lake->driver->refresh(p->lake);
    for (size_t i = 0; i < 2 && names[i].size && !*ret && (!code || code == MP_NOT_FOUND); i++) {
        code = p->lake->driver->resolve(p->lake, names[i], err, &table);
        *ret = !code && mp_str_eq(table->uuid, settle->plan.uuid);
    }
    pthread_mutex_unlock(&p->lake_lock);
    return code == MP_NOT_FOUND ? MP_OK : code;
}

/* The source that has every partition of the topic. */
static enum mp_code open_whole(struct settle *settle, struct mp_err *err)
{
    struct mp_pipeline *p = settle->p;
    const int32_t *ids;
    uint32_t count;
    enum mp_code code = MP_OK;

    if (!p->doors.open_whole_source)
        settle->whole = p->source;
    if (!settle->whole)
        code = p->doors.open_whole_source(p->doors.self, err, &settle->whole);
    return code ? code : settle->whole->driver->partitions(settle->whole, err, &ids, &count);
}

/* The first member that is no partition of the topic; -1: there is none. */
static enum mp_code find_missing(struct settle *settle, struct mp_err *err, int32_t *ret)
{
    const int32_t *ids;
    uint32_t count, at = 0;
    enum mp_code code = open_whole(settle, err);

    if (!code)
        code = settle->whole->driver->partitions(settle->whole, err, &ids, &count);
    *ret = -1;
    for (uint32_t i = 0; i < settle->plan.member_count && !code && *ret < 0; i++) {
        while (at < count && ids[at] < settle->plan.members[i])
            at++;
        if (at == count || ids[at] != settle->plan.members[i])
            *ret = settle->plan.members[i];
    }
    return code;
}

static bool too_old(const struct settle *settle)
{
    const struct mp_pipeline *p = settle->p;
    int64_t now = mp_now_wall_us(p->world.env) / 1000000;

    return p->options.plan_age_s_max && now > settle->plan.seconds &&
           (uint64_t)(now - settle->plan.seconds) > p->options.plan_age_s_max;
}

/* --- what becomes of it --------------------------------------------------------------------- */

static bool chosen(const struct member *member, bool ours)
{
    return member->carries && member->ours == ours;
}

/* Takes the plan away from those of the members; forward: the offsets move behind it. */
static enum mp_code store(struct settle *settle, bool ours, bool forward, struct mp_err *err)
{
    struct mp_pipeline *p = settle->p;
    uint32_t count = 0;
    struct mp_source_offset *offsets = mp_alloc_array(settle->plan.member_count, sizeof(*offsets));
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < settle->plan.member_count; i++)
        if (chosen(&settle->members[i], ours))
            offsets[count++] = (struct mp_source_offset){
                .partition = settle->members[i].stored.partition,
                .offset = forward ? settle->members[i].plan.next : settle->members[i].stored.offset,
            };
    if (count)
        code = p->source->driver->commit(p->source, offsets, count, err);
    mp_free(offsets);
    return code;
}

/* The members that are not ours to read; gives how many. */
static uint32_t others(const struct settle *settle, bool carrying, int32_t *ret)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < settle->plan.member_count; i++)
        if (!settle->members[i].ours && (!carrying || settle->members[i].carries))
            ret[count++] = settle->plan.members[i];
    return count;
}

/* The same for the others: taken over, looked at once more, given back. Whoever takes one over
 * meanwhile settles the plan himself. */
static enum mp_code store_others(struct settle *settle, bool forward, struct mp_err *err)
{
    const struct mp_source_driver *driver = settle->p->source->driver;
    int32_t *ids = mp_alloc_array(settle->plan.member_count, sizeof(*ids));
    uint32_t count = others(settle, true, ids);
    bool fenced;
    enum mp_code code = MP_OK;

    if (count) {
        code = driver->own(settle->p->source, ids, count, err, &fenced);
        if (!code)
            code = look(settle, err);
        if (!code)
            code = store(settle, false, forward, err);
        driver->disown(settle->p->source, ids, count);
    }
    mp_free(ids);
    return code == MP_FENCED ? MP_OK : code;
}

static enum mp_code finish(struct settle *settle, bool forward, struct mp_err *err)
{
    enum mp_code code = look(settle, err);

    if (!code)
        code = store(settle, true, forward, err);
    return code ? code : store_others(settle, forward, err);
}

static enum mp_code is_done(struct settle *settle, const char *how, struct mp_err *err)
{
    mp_log(settle->p->world.log, MP_LOG_WARN, logger,
           "an earlier process left commit %s of %u partitions: %s", settle->plan.key,
           settle->plan.member_count, how);
    return finish(settle, true, err);
}

static void tell_void(const struct settle *settle, const char *why)
{
    mp_log(settle->p->world.log, MP_LOG_WARN, logger,
           "an earlier process left commit %s of %u partitions: %s; its records are read again",
           settle->plan.key, settle->plan.member_count, why);
}

static enum mp_code is_void(struct settle *settle, const char *why, struct mp_err *err)
{
    tell_void(settle, why);
    return finish(settle, false, err);
}

/* Nobody can say whether it was carried out. Whatever is still under way is waited for. */
static enum mp_code unsettled(struct settle *settle, const char *why, struct mp_err *err)
{
    struct mp_pipeline *p = settle->p;
    bool published = false;
    enum mp_code code;

    mp_log(p->world.log, MP_LOG_WARN, logger,
           "an earlier process left commit %s, which cannot be carried out again: %s; waiting %.0f "
           "s for what may be under way",
           settle->plan.key, why, p->options.unsure_ms / 1e3);
    for (uint32_t waited = 0; waited < p->options.unsure_ms; waited += 100) {
        mp_health_beat(p->world.health);
        if (mp_pipeline_stopping(p) || !mp_pipeline_wait(p, 100))
            return mp_err_set(err, MP_STOPPED, "stopped before it began");
    }
    code = ask_published(settle, err, &published);
    if (code)
        return code;
    if (published)
        return is_done(settle, "it had landed", err);
    if (p->options.unsettled == MP_PIPELINE_AGAIN)
        return is_void(settle, "nobody knows whether it landed", err);
    if (p->options.unsettled == MP_PIPELINE_SKIP)
        return is_done(settle, "nobody knows whether it landed, it counts as published", err);
    return mp_err_set(err, MP_REFUSED,
                      "partition %" PRId32 ", offsets %" PRId64 " to %" PRId64
                      ": nobody knows whether commit %s landed: %s; look for its rows, then set "
                      "MILLPOND_HOGLAKE_UNSETTLED_PLAN to skip (they are there) or again",
                      settle->partition, settle->plan.first, settle->plan.next - 1,
                      settle->plan.key, why);
}

/* All members carry it and it was not published: that is done now. */
static enum mp_code carry_out(struct settle *settle, struct mp_err *err)
{
    struct mp_pipeline *p = settle->p;
    uint32_t count = settle->plan.member_count;
    struct mp_lake_range *ranges = mp_alloc_array(count, sizeof(*ranges));
    struct mp_job *job = NULL;
    char why[sizeof(err->text)];
    enum mp_code code = open_whole(settle, err);

    for (uint32_t i = 0; i < count; i++)
        ranges[i] = (struct mp_lake_range){
            .partition = settle->plan.members[i],
            .first = settle->members[i].plan.first,
            .next = settle->members[i].plan.next,
            .lowest = settle->members[i].plan.lowest,
            .highest = settle->members[i].plan.highest,
        };
    if (!code)
        code = mp_reread(p, settle->whole, ranges, count, err, &job);
    mp_free(ranges);
    if (code == MP_NOT_FOUND && !err->retriable) {
        memcpy(why, err->text, sizeof(why));
        return unsettled(settle, why, err);
    }
    if (code)
        return code;
    memcpy(job->key, settle->plan.key, sizeof(job->key));
    code = mp_publish_now(p, job, err);
    mp_job_free(p, job);
    if (code == MP_CHANGED)
        return MP_OK; /* nothing landed: everything is looked at again */
    return code ? code : is_done(settle, "it is carried out now", err);
}

/* Not all members carry it, as it seemed. */
static enum mp_code abandon(struct settle *settle, struct mp_err *err)
{
    const struct mp_source_driver *driver = settle->p->source->driver;
    int32_t *ids = mp_alloc_array(settle->plan.member_count, sizeof(*ids)), missing;
    uint32_t count = others(settle, false, ids);
    bool fenced, published = false;
    char why[64];
    enum mp_code code = find_missing(settle, err, &missing);

    if (!code && missing >= 0) {
        snprintf(why, sizeof(why), "the topic has no partition %" PRId32, missing);
        code = unsettled(settle, why, err);
        goto out;
    }
    if (!code && count)
        code = driver->own(settle->p->source, ids, count, err, &fenced); /* T2 */
    if (!code)
        code = look(settle, err);
    if (!code)
        code = ask_published(settle, err, &published);
    if (!code && published)
        code = is_done(settle, "it had landed", err);
    else if (!code && !all_carry(settle))
        code = too_old(settle) ? unsettled(settle, "its plan is too old", err)
                               : is_void(settle, "it was never sent", err);
    if (count)
        driver->disown(settle->p->source, ids, count);
out:
    mp_free(ids);
    return code;
}

static enum mp_code settle_plan(struct settle *settle, struct mp_err *err)
{
    bool live, published = false;
    enum mp_code code = ask_table(settle, err, &live);

    if (!code)
        code = look(settle, err);
    if (code)
        return code;
    if (!live) { /* it cannot land any more: others may see to theirs */
        tell_void(settle, "its table is gone, and its rows with it");
        return store(settle, true, false, err);
    }
    code = ask_published(settle, err, &published);
    if (code)
        return code;
    if (published)
        return is_done(settle, "it had landed", err);
    if (!all_carry(settle))
        return abandon(settle, err);
    return too_old(settle) ? unsettled(settle, "its plan is too old", err) : carry_out(settle, err);
}

/* --- one after the other -------------------------------------------------------------------- */

static bool is_taken(const struct settle *settle, int32_t partition)
{
    for (uint32_t i = 0; i < settle->taken_count; i++)
        if (settle->taken[i].partition == partition)
            return true;
    return mp_pipeline_part(settle->p, partition) != NULL;
}

static enum mp_code settle_found(struct settle *settle, struct mp_err *err)
{
    enum mp_code code;

    settle->members = mp_alloc_array(settle->plan.member_count, sizeof(*settle->members));
    for (uint32_t i = 0; i < settle->plan.member_count; i++)
        settle->members[i].ours = is_taken(settle, settle->plan.members[i]);
    code = settle_plan(settle, err);
    if (settle->whole != settle->p->source)
        mp_source_close(settle->whole);
    settle->whole = NULL;
    mp_free(settle->members);
    return code;
}

/* Beside our own partition stands what begins like a plan and is none that we understand. */
static enum mp_code settle_unreadable(struct mp_pipeline *p, const struct mp_source_offset *stored,
                                      struct mp_err *err)
{
    struct mp_source_offset offset = {.partition = stored->partition, .offset = stored->offset};

    if (p->options.unsettled != MP_PIPELINE_AGAIN)
        return mp_err_set(err, MP_REFUSED,
                          "partition %" PRId32 ", offset %" PRId64
                          ": a plan stands beside it that this version cannot read (\"%.*s\"); run "
                          "the version that wrote it, or set MILLPOND_HOGLAKE_UNSETTLED_PLAN=again",
                          stored->partition, stored->offset,
                          stored->metadata.size < 200 ? (int)stored->metadata.size : 200,
                          stored->metadata.data);
    mp_log(p->world.log, MP_LOG_WARN, logger,
           "partition %" PRId32
           ": a plan that cannot be read is dropped; its records are read again",
           stored->partition);
    return p->source->driver->commit(p->source, &offset, 1, err);
}

/* Settles the first plan among what is stored. *ret_none: there is none. */
static enum mp_code settle_first(struct mp_pipeline *p, struct mp_arena *arena,
                                 const struct mp_source_offset *stored, uint32_t count,
                                 struct mp_err *err, bool *ret_none)
{
    struct settle settle = {.p = p, .arena = arena, .taken = stored, .taken_count = count};

    *ret_none = false;
    for (uint32_t i = 0; i < count; i++) {
        settle.partition = stored[i].partition;
        switch (mp_plan_read(arena, stored[i].partition, stored[i].metadata, &settle.plan)) {
        case MP_PLAN_FOUND:
            return settle_found(&settle, err);
        case MP_PLAN_UNREADABLE:
            return settle_unreadable(p, &stored[i], err);
        case MP_PLAN_NONE:
            break;
        }
    }
    *ret_none = true;
    return MP_OK;
}

static enum mp_code own(struct mp_pipeline *p, const struct mp_source_offset *stored,
                        uint32_t count, struct mp_err *err)
{
    int32_t *ids = mp_alloc_array(count, sizeof(*ids));
    bool fenced = true;
    enum mp_code code;

    for (uint32_t i = 0; i < count; i++)
        ids[i] = stored[i].partition;
    code = p->source->driver->own(p->source, ids, count, err, &fenced);
    mp_free(ids);
    if (!code && !fenced && !p->told_plain) {
        p->told_plain = true;
        mp_log(p->world.log, MP_LOG_WARN, logger,
               "%s: offsets are stored without a transaction, so two processes that own the same "
               "partitions at the same time may publish records twice",
               err->text);
    }
    return code;
}

enum mp_code mp_settle(struct mp_pipeline *p, struct mp_arena *arena,
                       struct mp_source_offset *stored, uint32_t count, struct mp_err *err)
{
    bool none = false;
    enum mp_code code;

    if (!p->source->driver->own)
        return mp_err_set(err, MP_BAD_CONFIG,
                          "neither the lake nor the source keeps offsets: they need a place");
    code = own(p, stored, count, err); /* T1 */
    for (uint32_t round = 0; !code && !none; round++) {
        if (round == ROUNDS_MAX)
            return mp_err_set(err, MP_CONFLICT, "plans do not come to rest: others write them");
        code = p->source->driver->committed(p->source, arena, stored, count, err);
        if (!code)
            code = settle_first(p, arena, stored, count, err, &none);
    }
    return code;
}
