/* server/tx/commit.c - see commit.h: the queues, and one transaction of a group. */
#include "server/tx/commit_priv.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    RETRY_SLEEP_US = 50 * 1000,
    RACES_MAX = 5,
    GROUP_MAX = 1000,
    PART_SLACK_US = 100 * 1000 /* a wait that ends so soon is over */
};

/* The waiting commits of one catalog. It goes with the last call that uses it. */
struct queue {
    struct queue *next;
    struct mp_member *first, *last;
    bool led;
    uint32_t users;
    size_t name_size;
    char name[];
};

struct mp_commits {
    struct mp_server *server;
    struct mp_shapes *shapes;
    pthread_mutex_t lock; /* queues and every member's done */
    struct queue *queues;
};

struct mp_commits *mp_commits_open(struct mp_server *server)
{
    struct mp_commits *commits = mp_alloc(sizeof(*commits));

    commits->server = server;
    commits->shapes = mp_shapes_new();
    pthread_mutex_init(&commits->lock, NULL);
    return commits;
}

void mp_commits_close(struct mp_commits *commits)
{
    if (!commits)
        return;
    assert(!commits->queues);
    mp_shapes_free(commits->shapes);
    pthread_mutex_destroy(&commits->lock);
    mp_free(commits);
}

/* --- one transaction --- */

static void group_init(struct mp_group *group)
{
    mp_file_rows_init(&group->rows);
    mp_sql_array_init(&group->receipt_keys, MP_PG_UUID_ARRAY);
    mp_sql_array_init(&group->receipt_prints, MP_PG_BYTEA_ARRAY);
    mp_sql_array_init(&group->receipt_snapshots, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&group->receipt_versions, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&group->used_claims, MP_PG_TEXT_ARRAY);
    for (uint32_t i = 0; i < group->count; i++) {
        group->members[i]->state = MP_MEMBER_NEW;
        group->members[i]->rests = group->members[i]->again = false;
        group->members[i]->code = MP_OK;
        mp_plan_tables(group->members[i]);
    }
}

static void group_fini(struct mp_group *group)
{
    mp_file_rows_fini(&group->rows);
    mp_sql_array_fini(&group->receipt_keys);
    mp_sql_array_fini(&group->receipt_prints);
    mp_sql_array_fini(&group->receipt_snapshots);
    mp_sql_array_fini(&group->receipt_versions);
    mp_sql_array_fini(&group->used_claims);
    for (uint32_t i = 0; i < group->count; i++)
        for (uint32_t k = 0; k < group->members[i]->table_count; k++)
            mp_shapes_put(group->commits->shapes, &group->members[i]->tables[k].shape);
}

struct reads {
    bool has_receipts;
    uint32_t receipts, hits;
};

/* Queues what can be asked before anything is known. Key by key, so that each is one descent of the
 * right index, however the planner guesses the length of the list. */
static struct reads send_reads(struct mp_group *group)
{
    struct mp_sql_array keys, paths;
    struct mp_sql *sql = group->tx->sql;
    struct reads reads = {0};

    mp_sql_array_init(&keys, MP_PG_UUID_ARRAY);
    mp_sql_array_init(&paths, MP_PG_TEXT_ARRAY);
    for (uint32_t i = 0; i < group->count; i++) {
        const struct mp_member *member = group->members[i];

        if (member->request->key.data)
            mp_sql_array_text(&keys, member->request->key);
        for (uint32_t t = 0; t < member->table_count; t++) {
            for (uint32_t k = 0; k < member->tables[t].file_count; k++)
                mp_sql_array_text(&paths, member->tables[t].files[k].path);
            for (uint32_t k = 0; k < member->tables[t].delete_count; k++)
                mp_sql_array_text(&paths, member->tables[t].deletes[k].path);
        }
    }
    reads.has_receipts = keys.count;
    if (keys.count)
        reads.receipts = MP_SQL(sql,
                                "SELECT r.* FROM unnest($2) AS k(key) CROSS JOIN LATERAL"
                                " (SELECT idempotency_key, fingerprint, snapshot_id,"
                                " schema_version FROM hog_commit_receipt WHERE catalog_id = $1"
                                " AND idempotency_key = k.key OFFSET 0) r",
                                mp_v_int(group->tx->catalog_id), mp_sql_array_value(&keys));
    reads.hits = MP_SQL(sql,
                        "SELECT h.* FROM unnest($2) AS k(path) CROSS JOIN LATERAL"
                        " (SELECT path, NULL::uuid, NULL, NULL, false FROM hog_file_removal"
                        " WHERE path = k.path AND " MP_SQL_NULL(
                            "drained_us") " AND catalog_id + 0 = $1"
                                          " UNION ALL SELECT path, owner, state, file_kind,"
                                          " expires_us < hog_now_us() FROM hog_upload"
                                          " WHERE catalog_id = $1 AND path = k.path OFFSET 0) h",
                        mp_v_int(group->tx->catalog_id), mp_sql_array_value(&paths));
    mp_sql_array_fini(&keys);
    mp_sql_array_fini(&paths);
    return reads;
}

static void reused(struct mp_member *member)
{
    member->state = MP_MEMBER_REFUSED;
    mp_refuse_invalid(member->call, "idempotency_key reused with a different request");
}

/* Whether the stored print (hexadecimal, as PostgreSQL writes it) is the member's. One of another
 * version cannot be compared and counts as equal. */
static bool same_print(struct mp_member *member, struct mp_str stored)
{
    char own[2 * MP_FINGERPRINT_BYTES + 3] = "\\x";

    for (int i = 0; i < MP_FINGERPRINT_BYTES; i++)
        sprintf(own + 2 + 2 * i, "%02x", member->fingerprint[i]);
    if (stored.size < 4 || memcmp(stored.data, own, 4) != 0) {
        mp_server_metrics_add(member->call->server->metrics, MP_SM_UNKNOWN_DIGEST, NULL, 1);
        return true;
    }
    return mp_str_eq(stored, mp_str_c(own));
}

static void read_receipts(struct mp_group *group, uint32_t number)
{
    struct mp_sql *sql = group->tx->sql;

    for (uint32_t row = 0; row < mp_sql_rows(sql, number); row++)
        for (uint32_t i = 0; i < group->count; i++) {
            struct mp_member *member = group->members[i];

            if (!member->request->key.data ||
                !mp_str_eq(member->request->key, mp_sql_cell(sql, number, row, 0)))
                continue;
            if (!same_print(member, mp_sql_cell(sql, number, row, 1))) {
                reused(member);
                continue;
            }
            member->state = MP_MEMBER_REPLAYED;
            member->result.snapshot_id = mp_sql_int(sql, number, row, 2, 0);
            member->result.schema_version = mp_sql_int(sql, number, row, 3, 0);
        }
}

static int by_path(const void *a, const void *b)
{
    return mp_str_cmp(((const struct mp_path_hit *)a)->path, ((const struct mp_path_hit *)b)->path);
}

static void read_hits(struct mp_group *group, uint32_t number)
{
    struct mp_arena *arena = &group->tx->call->arena;
    struct mp_sql *sql = group->tx->sql;

    group->hit_count = mp_sql_rows(sql, number);
    group->hits = mp_arena_take(arena, sizeof(*group->hits) * (group->hit_count + 1));
    for (uint32_t i = 0; i < group->hit_count; i++)
        group->hits[i] = (struct mp_path_hit){
            .path = mp_sql_copy(sql, arena, number, i, 0),
            .owner = mp_sql_copy(sql, arena, number, i, 1),
            .state = mp_sql_copy(sql, arena, number, i, 2),
            .kind = mp_sql_copy(sql, arena, number, i, 3),
            .expired = mp_sql_true(sql, number, i, 4),
        };
    qsort(group->hits, group->hit_count, sizeof(*group->hits), by_path);
}

/* The same key twice in one group: the second is a replay of the first. */
static bool replays_member(struct mp_group *group, uint32_t index)
{
    struct mp_member *member = group->members[index];

    for (uint32_t i = 0; i < index && member->request->key.data; i++) {
        const struct mp_member *other = group->members[i];

        if (other->state != MP_MEMBER_PLANNED || !other->request->key.data ||
            !mp_str_eq(other->request->key, member->request->key))
            continue;
        member->rests = true;
        if (memcmp(other->fingerprint, member->fingerprint, MP_FINGERPRINT_BYTES) != 0) {
            reused(member);
            return true;
        }
        member->state = MP_MEMBER_REPLAYED;
        member->result = other->result;
        return true;
    }
    return false;
}

static enum mp_code plan_all(struct mp_group *group)
{
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < group->count && !code; i++) {
        struct mp_member *member = group->members[i];

        if (member->state != MP_MEMBER_NEW || replays_member(group, i))
            continue;
        for (uint32_t t = 0; t < member->table_count && !code; t++)
            code = mp_shapes_get(group->commits->shapes, group->tx, group->head,
                                 member->tables[t].namespace_name, member->tables[t].name,
                                 &member->tables[t].shape);
        if (!code)
            code = mp_plan_member(group, member);
    }
    return code;
}

static void send_writes(struct mp_group *group)
{
    struct mp_tx *tx = group->tx;

    mp_file_rows_send(tx, &group->rows);
    for (uint32_t i = 0; i < group->gain_count; i++)
        mp_table_gain_send(tx, &group->gains[i]);
    if (group->claim_count)
        MP_SQL(tx->sql,
               "UPDATE hog_upload SET state = 'registered' WHERE catalog_id = $1"
               " AND path = ANY ($2)",
               mp_v_int(tx->catalog_id), mp_sql_array_value(&group->used_claims));
    if (group->receipt_count)
        MP_SQL(tx->sql,
               "INSERT INTO hog_commit_receipt (catalog_id, idempotency_key, fingerprint,"
               " snapshot_id, schema_version, created_us) SELECT $1, r.*, $6"
               " FROM unnest($2, $3, $4, $5) AS r(key, print, snapshot, version)",
               mp_v_int(tx->catalog_id), mp_sql_array_value(&group->receipt_keys),
               mp_sql_array_value(&group->receipt_prints),
               mp_sql_array_value(&group->receipt_snapshots),
               mp_sql_array_value(&group->receipt_versions), mp_v_int(tx->time_us));
}

static bool any_planned(const struct mp_group *group)
{
    for (uint32_t i = 0; i < group->count; i++)
        if (group->members[i]->state == MP_MEMBER_PLANNED)
            return true;
    return false;
}

/* One try. *ret_lost: the connection was lost at COMMIT. */
static enum mp_code try_group(struct mp_group *group, bool *ret_lost)
{
    struct mp_tx *tx = group->tx;
    struct mp_server *server = tx->call->server;
    uint64_t began_us = mp_now_mono_us(server->env);
    struct reads reads;
    enum mp_code code = mp_call_sql(tx->call);

    *ret_lost = false;
    if (code)
        return code;
    tx->sql = tx->call->sql;
    code = mp_tx_begin_send(tx);
    if (code)
        return code;
    reads = send_reads(group);
    code = mp_tx_sync(tx);
    mp_server_metrics_observe(server->metrics, MP_SM_LOCK_WAIT, NULL,
                              mp_now_mono_us(server->env) - began_us);
    if (!code)
        code = mp_tx_begin_read(tx);
    if (!code) {
        group->head = tx->head;
        if (reads.has_receipts)
            read_receipts(group, reads.receipts);
        read_hits(group, reads.hits);
        code = plan_all(group);
    }
    if (code || !any_planned(group)) {
        mp_tx_rollback(tx);
        return code;
    }
    send_writes(group);
    code = mp_tx_finish(tx);
    *ret_lost = code && !mp_sql_alive(tx->sql);
    if (code && !*ret_lost)
        mp_tx_rollback(tx);
    return code;
}

/* The lock did not come in time: who has waited long enough is refused, the others wait again. */
static void part(struct mp_group *group)
{
    const struct mp_server *server = group->commits->server;
    uint64_t now_us = mp_now_mono_us(server->env);
    uint64_t bound_us = (uint64_t)server->settings->HOGLAKE_COMMIT_LOCK_TIMEOUT_MS * 1000;

    for (uint32_t i = 0; i < group->count; i++)
        group->members[i]->again = now_us - group->members[i]->since_us + PART_SLACK_US < bound_us;
}

/* Gives every member that has no answer of its own the group's. */
static void spread(struct mp_call *leader, struct mp_member **members, uint32_t count,
                   enum mp_code code)
{
    for (uint32_t i = 0; i < count; i++) {
        struct mp_member *member = members[i];

        if (member->again)
            continue;
        if (!code || (!member->rests && member->state != MP_MEMBER_NEW &&
                      member->state != MP_MEMBER_PLANNED)) {
            member->code = member->state == MP_MEMBER_REFUSED ? MP_REFUSED : MP_OK;
            continue;
        }
        member->code = code;
        if (member->call == leader)
            continue;
        if (code == MP_REFUSED)
            mp_refuse(member->call, leader->refusal.status, leader->refusal.wire.error.data, "%.*s",
                      MP_STR_ARG(leader->refusal.wire.detail));
        else
            member->call->err = leader->err;
    }
}

static void run_group(struct mp_commits *commits, struct mp_call *leader, struct mp_str catalog,
                      struct mp_member **members, uint32_t count)
{
    struct mp_server *server = commits->server;
    uint64_t began_us = mp_now_mono_us(server->env);
    uint64_t deadline_us = began_us + (uint64_t)server->settings->HOGLAKE_DB_RECOVERY_MS * 1000;
    uint32_t races = 0;

    for (;;) {
        struct mp_tx tx;
        struct mp_group group = {.commits = commits, .tx = &tx, .members = members, .count = count};
        bool lost, transient;
        enum mp_code code;

        mp_tx_init(&tx, leader, catalog);
        tx.waited_us = mp_now_mono_us(server->env) - members[0]->since_us; /* the longest of all */
        group_init(&group);
        code = try_group(&group, &lost);
        transient = code && code != MP_REFUSED && mp_tx_transient(&tx, code);
        if (lost && tx.first_snapshot) {
            mp_sql_give(server->pool, &leader->sql);
            switch (mp_tx_follow_up(&tx)) {
            case MP_TX_IN:
                code = MP_OK;
                transient = false;
                break;
            case MP_TX_NOT_IN:
                break;
            case MP_TX_UNKNOWN:
                code = mp_refuse(leader, 500, "internal_error",
                                 "the database was lost at the commit; whether it is in is not "
                                 "known; with an idempotency_key, send the same request again");
                transient = false;
                break;
            }
        }
        if (code == MP_TIMEOUT && leader->err.sys == EBUSY)
            part(&group);
        group_fini(&group);
        mp_tx_fini(&tx);
        if (!transient || mp_now_mono_us(server->env) > deadline_us ||
            (code == MP_CONFLICT && races++ == RACES_MAX)) {
            if ((code == MP_BAD_DATA || code == MP_FULL) && count > 1) {
                for (uint32_t i = 0; i < count; i++) /* who of them was it? */
                    run_group(commits, leader, catalog, &members[i], 1);
                return;
            }
            spread(leader, members, count, code);
            break;
        }
        mp_sql_give(server->pool, &leader->sql);
        mp_sleep_us(server->env, RETRY_SLEEP_US);
    }
    mp_server_metrics_add(server->metrics, MP_SM_COMMIT_GROUP, NULL, 1);
    mp_server_metrics_observe(server->metrics, MP_SM_COMMIT_TIME, NULL,
                              mp_now_mono_us(server->env) - began_us);
}

/* --- queues --- */

static struct queue *queue_of(struct mp_commits *commits, struct mp_str catalog)
{
    struct queue *queue;

    for (queue = commits->queues; queue; queue = queue->next)
        if (mp_str_eq(mp_str_n(queue->name, queue->name_size), catalog))
            return queue;
    queue = mp_alloc(sizeof(*queue) + catalog.size);
    memcpy(queue->name, catalog.data, catalog.size);
    queue->name_size = catalog.size;
    queue->next = commits->queues;
    commits->queues = queue;
    return queue;
}

static void drop_queue(struct mp_commits *commits, struct queue *queue)
{
    struct queue **link = &commits->queues;

    while (*link != queue)
        link = &(*link)->next;
    *link = queue->next;
    mp_free(queue);
}

/* Takes the next members off: deletes go alone. */
static uint32_t take_group(struct queue *queue, uint32_t most, struct mp_member **ret)
{
    uint32_t count = 0;

    while (queue->first && count < most) {
        struct mp_member *member = queue->first;

        if (count && member->request->delete_count)
            break;
        ret[count++] = member;
        queue->first = member->next;
        if (member->request->delete_count)
            break;
    }
    return count;
}

/* In front of the others, where it came from. */
static void put_back(struct queue *queue, struct mp_member *member)
{
    member->next = queue->first;
    if (!queue->first)
        queue->last = member;
    queue->first = member;
}

/* Called and left with the lock held. */
static void lead(struct mp_commits *commits, struct queue *queue, struct mp_call *call,
                 struct mp_str catalog)
{
    struct mp_member *members[GROUP_MAX];
    uint32_t count =
        take_group(queue, (uint32_t)commits->server->settings->HOGLAKE_COMMIT_GROUP_MAX, members);

    queue->led = true;
    pthread_mutex_unlock(&commits->lock);
    run_group(commits, call, catalog, members, count);
    pthread_mutex_lock(&commits->lock);
    queue->led = false;
    for (uint32_t i = count; i-- > 0;) {
        if (members[i]->again) {
            put_back(queue, members[i]);
            continue;
        }
        members[i]->done = true;
        pthread_cond_signal(&members[i]->wake);
    }
    if (queue->first)
        pthread_cond_signal(&queue->first->wake); /* leads next */
}

static void count_result(struct mp_call *call, struct mp_str catalog,
                         const struct mp_member *member)
{
    struct mp_str error = call->refusal.wire.error;
    const char *result = "error";
    char labels[128];

    if (!member->code)
        result = "committed";
    else if (member->code == MP_TIMEOUT)
        result = "timeout";
    else if (member->code == MP_FULL ||
             (member->code == MP_REFUSED && mp_str_eq(error, MP_STR("validation"))))
        result = "validation";
    else if (member->code == MP_REFUSED && (mp_str_eq(error, MP_STR("commit_conflict")) ||
                                            mp_str_eq(error, MP_STR("table_dropped"))))
        result = "conflict";
    else if (member->code == MP_REFUSED &&
             (mp_str_eq(error, MP_STR("expired")) || mp_str_eq(error, MP_STR("not_found"))))
        return;
    else if (member->code == MP_REFUSED && !mp_str_eq(error, MP_STR("internal_error")))
        result = error.data;
    snprintf(labels, sizeof(labels), "%.*s,%s", catalog.size > 63 ? 63 : (int)catalog.size,
             catalog.data, result);
    mp_server_metrics_add(call->server->metrics, MP_SM_COMMITS, labels, 1);
    if (member->code)
        return;
    if (member->request->key.data)
        mp_server_metrics_add(call->server->metrics, MP_SM_RECEIPTS,
                              member->state == MP_MEMBER_REPLAYED ? "replayed" : "written", 1);
    if (member->state == MP_MEMBER_PLANNED)
        for (uint32_t i = 0; i < member->table_count; i++) {
            mp_server_metrics_add(call->server->metrics, MP_SM_FILES, "data",
                                  member->tables[i].file_count);
            mp_server_metrics_add(call->server->metrics, MP_SM_FILES, "delete",
                                  member->tables[i].delete_count);
        }
}

enum mp_code mp_commits_run(struct mp_call *call, struct mp_str catalog,
                            const struct mp_wire_commit *request,
                            const struct mp_commit_rules *rules, struct mp_wire_commit_result *ret)
{
    struct mp_commits *commits = call->server->commits;
    struct mp_member member = {
        .call = call,
        .request = request,
        .rules = rules,
        .since_us = mp_now_mono_us(call->server->env) - call->waited_us,
    };
    struct queue *queue;

    mp_fingerprint(request, rules, member.fingerprint);
    pthread_cond_init(&member.wake, NULL);
    pthread_mutex_lock(&commits->lock);
    queue = queue_of(commits, catalog);
    queue->users++;
    if (queue->first)
        queue->last->next = &member;
    else
        queue->first = &member;
    queue->last = &member;
    while (!member.done) {
        if (queue->led)
            pthread_cond_wait(&member.wake, &commits->lock);
        else
            lead(commits, queue, call, catalog);
    }
    if (--queue->users == 0)
        drop_queue(commits, queue);
    pthread_mutex_unlock(&commits->lock);
    pthread_cond_destroy(&member.wake);
    mp_sql_give(call->server->pool, &call->sql);
    count_result(call, catalog, &member);
    *ret = member.result;
    return member.code;
}
