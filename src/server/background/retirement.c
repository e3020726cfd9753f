/* server/background/retirement.c - the files of dropped tables, once no snapshot shows them.
 *
 * Works under the catalog's lock, a batch at a time, so a commit waits for one batch at most. */
#include "server/background/background.h"
#include "server/tx/tx.h"

static const char retire[] =
    "WITH gone AS (SELECT f.data_file_id, f.path FROM hog_data_file f JOIN hog_table t"
    "  USING (catalog_id, table_id) WHERE t.catalog_id = $1 AND t.dropped_snapshot <= $2"
    "  AND t.dropped_snapshot IS NOT NULL LIMIT $3),"
    " vectors AS (DELETE FROM hog_delete_file d USING gone WHERE d.catalog_id = $1"
    "  AND d.data_file_id = gone.data_file_id RETURNING d.path),"
    " stats AS (DELETE FROM hog_file_stats s USING gone WHERE s.catalog_id = $1"
    "  AND s.data_file_id = gone.data_file_id),"
    " files AS (DELETE FROM hog_data_file f USING gone WHERE f.catalog_id = $1"
    "  AND f.data_file_id = gone.data_file_id),"
    " queued AS (INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason, scheduled_us)"
    "  SELECT $1, q.path, q.kind, 'table_drop_gc', hog_now_us()"
    "  FROM (SELECT path, 'data' AS kind FROM gone UNION ALL SELECT path, 'delete' FROM vectors) q)"
    " SELECT count(*) FROM gone";

struct retirement {
    int64_t batch, rows;
    bool full; /* the queue of removals is */
};

static enum mp_code work(struct mp_tx *tx, void *context)
{
    const struct mp_server_settings *settings = tx->call->server->settings;
    struct retirement *retirement = context;
    uint32_t queued =
        MP_SQL(tx->sql,
               "SELECT count(*) FROM (SELECT 1 FROM hog_file_removal"
               " WHERE catalog_id = $1 AND drained_us IS NULL LIMIT $2) q",
               mp_v_int(tx->catalog_id), mp_v_int(settings->HOGLAKE_RETIREMENT_QUEUE_CEILING));
    uint32_t number;
    enum mp_code code = mp_tx_sync(tx);

    retirement->rows = 0;
    if (code)
        return code;
    retirement->full =
        mp_sql_int(tx->sql, queued, 0, 0, 0) >= settings->HOGLAKE_RETIREMENT_QUEUE_CEILING;
    if (retirement->full)
        return MP_OK;
    number = MP_SQL(tx->sql, retire, mp_v_int(tx->catalog_id), mp_v_int(tx->floor),
                    mp_v_int(retirement->batch));
    code = mp_tx_sync(tx);
    if (!code)
        retirement->rows = mp_sql_int(tx->sql, number, 0, 0, 0);
    return code;
}

/* Batches until nothing is left, the budget is spent, or the queue is full. */
enum mp_code mp_task_retirement(struct mp_call *call, struct mp_str catalog, int64_t batch,
                                struct mp_buf *result)
{
    const struct mp_server_settings *settings = call->server->settings;
    const struct mp_env *env = call->server->env;
    struct mp_server_metrics *metrics = call->server->metrics;
    uint64_t pause_us = (uint64_t)settings->HOGLAKE_RETIREMENT_PAUSE_MS * 1000;
    uint64_t until_us =
        mp_now_mono_us(env) + (uint64_t)settings->HOGLAKE_RETIREMENT_RUN_BUDGET_MS * 1000;
    struct retirement retirement = {.batch = batch ? batch : settings->HOGLAKE_RETIREMENT_BATCH};
    int64_t rows = 0;
    bool more;
    enum mp_code code;

    for (;;) {
        code = mp_tx_run(call, catalog, work, &retirement);
        rows += retirement.rows;
        mp_server_metrics_add(metrics, MP_SM_RETIRE_BATCHES, NULL, !code && retirement.rows);
        mp_server_metrics_add(metrics, MP_SM_RETIRE_TIMEOUTS, NULL, code == MP_TIMEOUT);
        more = !code && !retirement.full && retirement.rows == retirement.batch;
        if (!more || mp_now_mono_us(env) + pause_us >= until_us ||
            atomic_load(&call->server->stopping))
            break;
        mp_sql_give(call->server->pool, &call->sql);
        mp_sleep_us(env, pause_us);
    }
    mp_server_metrics_add(metrics, MP_SM_RETIRED, NULL, (double)rows);
    if (code)
        return code;
    mp_buf_add_byte(result, '{');
    mp_wire_member_int(result, "rows_retired", rows);
    mp_wire_member_bool(result, "queue_full", retirement.full);
    mp_wire_member_bool(result, "budget_spent", more);
    mp_buf_add_byte(result, '}');
    return MP_OK;
}
