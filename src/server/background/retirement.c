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
};

static enum mp_code work(struct mp_tx *tx, void *context)
{
    struct retirement *retirement = context;
    uint32_t number = MP_SQL(tx->sql, retire, mp_v_int(tx->catalog_id), mp_v_int(tx->floor),
                             mp_v_int(retirement->batch));
    enum mp_code code = mp_tx_sync(tx);

    if (!code)
        retirement->rows = mp_sql_int(tx->sql, number, 0, 0, 0);
    return code;
}

enum mp_code mp_task_retirement(struct mp_call *call, struct mp_str catalog, int64_t batch,
                                struct mp_buf *result)
{
    struct retirement retirement = {
        .batch = batch ? batch : call->server->settings->HOGLAKE_RETIREMENT_BATCH};
    int64_t rows = 0;
    enum mp_code code;

    do {
        code = mp_tx_run(call, catalog, work, &retirement);
        rows += code ? 0 : retirement.rows;
    } while (!code && retirement.rows == retirement.batch && !atomic_load(&call->server->stopping));
    if (code)
        return code;
    mp_server_metrics_add(call->server->metrics, MP_SM_RETIRED, NULL, (double)rows);
    mp_buf_add_byte(result, '{');
    mp_wire_member_int(result, "rows_retired", rows);
    mp_buf_add_byte(result, '}');
    return MP_OK;
}
