/* server/tx/tx.c - see tx.h. */
#include "server/tx/tx.h"

#include "server/tx/catalog_ids.h"

#include <assert.h>

#define LOCK_KEY "(4740871::bigint << 32) | ($1 & 4294967295)"

enum { RETRY_SLEEP_US = 50 * 1000, RACES_MAX = 5, LOCK_MS_MIN = 1000 };

void mp_tx_init(struct mp_tx *tx, struct mp_call *call, struct mp_str catalog)
{
    *tx = (struct mp_tx){.call = call, .catalog = catalog, .waited_us = call->waited_us};
    mp_sql_array_init(&tx->snapshot_ids, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&tx->snapshot_times, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&tx->schema_versions, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&tx->authors, MP_PG_TEXT_ARRAY);
    mp_sql_array_init(&tx->messages, MP_PG_TEXT_ARRAY);
    mp_sql_array_init(&tx->change_snapshots, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&tx->change_kinds, MP_PG_TEXT_ARRAY);
    mp_sql_array_init(&tx->change_objects, MP_PG_INT8_ARRAY);
}

void mp_tx_fini(struct mp_tx *tx)
{
    mp_sql_array_fini(&tx->snapshot_ids);
    mp_sql_array_fini(&tx->snapshot_times);
    mp_sql_array_fini(&tx->schema_versions);
    mp_sql_array_fini(&tx->authors);
    mp_sql_array_fini(&tx->messages);
    mp_sql_array_fini(&tx->change_snapshots);
    mp_sql_array_fini(&tx->change_kinds);
    mp_sql_array_fini(&tx->change_objects);
}

/* The connection's lock_timeout is for a request that comes at once; of one that waited longer than
 * a moment what is left. */
static void bound_lock_wait(struct mp_tx *tx)
{
    int64_t bound_ms = tx->call->server->settings->HOGLAKE_COMMIT_LOCK_TIMEOUT_MS;
    int64_t waited_ms = (int64_t)(tx->waited_us / 1000), left_ms = bound_ms - waited_ms;

    if (bound_ms <= LOCK_MS_MIN || waited_ms < LOCK_MS_MIN / 10)
        return;
    if (left_ms < LOCK_MS_MIN)
        left_ms = LOCK_MS_MIN;
    MP_SQL(tx->sql, "SELECT set_config('lock_timeout', $1::text, true)", mp_v_int(left_ms));
}

enum mp_code mp_tx_begin_send(struct mp_tx *tx)
{
    enum mp_code code =
        mp_catalog_id(tx->call->server->catalog_ids, tx->call, tx->catalog, &tx->catalog_id);

    if (code)
        return code;
    mp_sql_say(tx->sql, "BEGIN");
    bound_lock_wait(tx);
    MP_SQL(tx->sql, "SELECT pg_advisory_xact_lock(" LOCK_KEY ")", mp_v_int(tx->catalog_id));
    tx->answer = MP_SQL(tx->sql,
                        "SELECT data_path, last_snapshot_id, schema_version,"
                        " earliest_snapshot_id, next_table_id, next_file_id, next_namespace_id,"
                        " next_view_id, greatest(hog_now_us(), last_snapshot_time_us + 1)"
                        " FROM hog_catalog WHERE catalog_id = $1 AND name = $2",
                        mp_v_int(tx->catalog_id), mp_v_text(tx->catalog));
    return MP_OK;
}

enum mp_code mp_tx_begin_read(struct mp_tx *tx)
{
    uint32_t state = tx->answer;

    if (!mp_sql_rows(tx->sql, state)) { /* the next try asks for the id again */
        mp_catalog_id_forget(tx->call->server->catalog_ids, tx->catalog);
        return mp_err_set(&tx->call->err, MP_CONFLICT, "the catalog was dropped or made just now");
    }
    tx->data_path = mp_sql_copy(tx->sql, &tx->call->arena, state, 0, 0);
    tx->head = mp_sql_int(tx->sql, state, 0, 1, 0);
    tx->schema_version = mp_sql_int(tx->sql, state, 0, 2, 0);
    tx->floor = mp_sql_int(tx->sql, state, 0, 3, 0);
    tx->next_table = mp_sql_int(tx->sql, state, 0, 4, 0);
    tx->next_file = mp_sql_int(tx->sql, state, 0, 5, 0);
    tx->next_namespace = mp_sql_int(tx->sql, state, 0, 6, 0);
    tx->next_view = mp_sql_int(tx->sql, state, 0, 7, 0);
    tx->time_us = mp_sql_int(tx->sql, state, 0, 8, 0);
    return MP_OK;
}

int64_t mp_tx_snapshot(struct mp_tx *tx, bool schema_step, struct mp_str author,
                       struct mp_str message)
{
    tx->head++;
    tx->schema_version += schema_step;
    if (!tx->first_snapshot) {
        tx->first_snapshot = tx->head;
        tx->token = (int64_t)mp_random_u64(tx->call->server->env);
    }
    mp_sql_array_int(&tx->snapshot_ids, tx->head);
    mp_sql_array_int(&tx->snapshot_times, tx->time_us++); /* X2 */
    mp_sql_array_int(&tx->schema_versions, tx->schema_version);
    mp_sql_array_text(&tx->authors, author);
    mp_sql_array_text(&tx->messages, message);
    tx->snapshot_count++;
    return tx->head;
}

void mp_tx_change(struct mp_tx *tx, const char *kind, int64_t object)
{
    assert(tx->first_snapshot);
    mp_sql_array_int(&tx->change_snapshots, tx->head);
    mp_sql_array_text(&tx->change_kinds, mp_str_c(kind));
    mp_sql_array_int(&tx->change_objects, object);
}

enum mp_code mp_tx_sync(struct mp_tx *tx)
{
    return mp_sql_sync(tx->sql, &tx->call->err);
}

static void send_snapshots(struct mp_tx *tx)
{
    MP_SQL(tx->sql,
           "UPDATE hog_catalog SET last_snapshot_id = $2, last_snapshot_time_us = $3,"
           " schema_version = $4, next_table_id = $5, next_file_id = $6, next_namespace_id = $7,"
           " next_view_id = $8 WHERE catalog_id = $1",
           mp_v_int(tx->catalog_id), mp_v_int(tx->head), mp_v_int(tx->time_us - 1),
           mp_v_int(tx->schema_version), mp_v_int(tx->next_table), mp_v_int(tx->next_file),
           mp_v_int(tx->next_namespace), mp_v_int(tx->next_view));
    MP_SQL(tx->sql,
           "INSERT INTO hog_snapshot (catalog_id, snapshot_id, snapshot_time_us, schema_version,"
           " author, commit_message, token)"
           " SELECT $1, s.id, s.time_us, s.version, s.author, s.message, $7"
           " FROM unnest($2, $3, $4, $5, $6) AS s(id, time_us, version, author, message)",
           mp_v_int(tx->catalog_id), mp_sql_array_value(&tx->snapshot_ids),
           mp_sql_array_value(&tx->snapshot_times), mp_sql_array_value(&tx->schema_versions),
           mp_sql_array_value(&tx->authors), mp_sql_array_value(&tx->messages),
           mp_v_int(tx->token));
    MP_SQL(tx->sql,
           "INSERT INTO hog_snapshot_change (catalog_id, snapshot_id, kind, object_id)"
           " SELECT $1, c.snapshot, c.kind, c.object"
           " FROM unnest($2, $3, $4) AS c(snapshot, kind, object)",
           mp_v_int(tx->catalog_id), mp_sql_array_value(&tx->change_snapshots),
           mp_sql_array_value(&tx->change_kinds), mp_sql_array_value(&tx->change_objects));
}

enum mp_code mp_tx_finish(struct mp_tx *tx)
{
    if (tx->first_snapshot)
        send_snapshots(tx);
    mp_sql_say(tx->sql, "COMMIT");
    return mp_tx_sync(tx);
}

void mp_tx_rollback(struct mp_tx *tx)
{
    struct mp_err ignored;

    if (!tx->sql || !mp_sql_alive(tx->sql))
        return;
    mp_sql_drop_batch(tx->sql);
    if (!mp_sql_alive(tx->sql))
        return;
    mp_sql_say(tx->sql, "ROLLBACK");
    mp_sql_sync(tx->sql, &ignored);
}

bool mp_tx_transient(const struct mp_tx *tx, enum mp_code code)
{
    return code == MP_CONFLICT ||
           ((code == MP_IO || code == MP_TIMEOUT) && tx->sql && !mp_sql_alive(tx->sql)) ||
           (code == MP_IO && !tx->sql);
}

enum mp_tx_outcome mp_tx_follow_up(const struct mp_tx *tx)
{
    struct mp_call *call = tx->call;
    const struct mp_env *env = call->server->env;
    uint64_t deadline_us =
        mp_now_mono_us(env) + (uint64_t)call->server->settings->HOGLAKE_DB_RECOVERY_MS * 1000;
    enum mp_tx_outcome outcome = MP_TX_UNKNOWN;

    while (outcome == MP_TX_UNKNOWN && mp_now_mono_us(env) < deadline_us) {
        struct mp_err err;
        struct mp_sql *sql = NULL;
        enum mp_code code = mp_sql_take(call->server->pool, &err, &sql);

        if (!code) {
            uint32_t number;

            /* The lock is free once the lost transaction has ended, one way or the other. */
            mp_sql_say(sql, "BEGIN");
            MP_SQL(sql, "SELECT pg_advisory_xact_lock(" LOCK_KEY ")", mp_v_int(tx->catalog_id));
            number =
                MP_SQL(sql,
                       "SELECT 1 FROM hog_snapshot WHERE catalog_id = $1 AND snapshot_id = $2"
                       " AND token = $3",
                       mp_v_int(tx->catalog_id), mp_v_int(tx->first_snapshot), mp_v_int(tx->token));
            mp_sql_say(sql, "COMMIT");
            code = mp_sql_sync(sql, &err);
            if (!code)
                outcome = mp_sql_rows(sql, number) ? MP_TX_IN : MP_TX_NOT_IN;
        }
        mp_sql_give(call->server->pool, &sql);
        if (outcome == MP_TX_UNKNOWN)
            mp_sleep_us(env, RETRY_SLEEP_US);
    }
    mp_server_metrics_add(call->server->metrics, MP_SM_FOLLOWED_UP,
                          outcome == MP_TX_IN       ? "committed"
                          : outcome == MP_TX_NOT_IN ? "not_committed"
                                                    : "unknown",
                          1);
    return outcome;
}

/* One try. *ret_lost: the connection was lost at COMMIT. */
static enum mp_code try_once(struct mp_tx *tx, mp_tx_work *work, void *context, bool *ret_lost)
{
    uint64_t began_us = mp_now_mono_us(tx->call->server->env);
    enum mp_code code = mp_call_sql(tx->call);

    *ret_lost = false;
    if (code)
        return code;
    tx->sql = tx->call->sql;
    code = mp_tx_begin_send(tx);
    if (!code)
        code = mp_tx_sync(tx);
    mp_server_metrics_observe(tx->call->server->metrics, MP_SM_LOCK_WAIT, NULL,
                              mp_now_mono_us(tx->call->server->env) - began_us);
    if (!code)
        code = mp_tx_begin_read(tx);
    if (!code)
        code = work(tx, context);
    if (code) {
        mp_tx_rollback(tx);
        return code;
    }
    code = mp_tx_finish(tx);
    *ret_lost = code && !mp_sql_alive(tx->sql);
    if (code && !*ret_lost)
        mp_tx_rollback(tx);
    return code;
}

enum mp_code mp_tx_run(struct mp_call *call, struct mp_str catalog, mp_tx_work *work, void *context)
{
    const struct mp_env *env = call->server->env;
    uint64_t deadline_us =
        mp_now_mono_us(env) + (uint64_t)call->server->settings->HOGLAKE_DB_RECOVERY_MS * 1000;
    uint32_t races = 0;

    for (;;) {
        struct mp_tx tx;
        bool lost, transient;
        enum mp_code code;

        mp_tx_init(&tx, call, catalog);
        code = try_once(&tx, work, context, &lost);
        transient = code && code != MP_REFUSED && mp_tx_transient(&tx, code);
        if (lost && tx.first_snapshot) { /* X3 */
            mp_sql_give(call->server->pool, &call->sql);
            switch (mp_tx_follow_up(&tx)) {
            case MP_TX_IN:
                code = MP_OK;
                break;
            case MP_TX_NOT_IN:
                break;
            case MP_TX_UNKNOWN:
                code = mp_refuse(call, 500, "internal_error",
                                 "the database was lost at the commit; whether it is in is not "
                                 "known");
                transient = false;
                break;
            }
        }
        mp_tx_fini(&tx);
        if (!code || !transient || mp_now_mono_us(env) > deadline_us ||
            (code == MP_CONFLICT && races++ == RACES_MAX) || atomic_load(&call->server->stopping))
            return code;
        mp_sql_give(call->server->pool, &call->sql);
        mp_sleep_us(env, RETRY_SLEEP_US);
    }
}
