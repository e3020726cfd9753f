/* server/background/expiry.c - snapshots that have had their time, and file rows behind them.
 *
 * Phase A moves the floor under the catalog's lock and deletes the history below it. Phase B,
 * without the lock and in pages, deletes file rows that ended at or below the floor: no retained
 * snapshot shows them. Their paths are queued for removal in the same statement.
 */
#include "server/background/background.h"
#include "server/tx/tx.h"

struct expiry {
    int64_t batch;
    int64_t snapshots, floor, offsets_released;
    struct mp_str consumer;
};

static const char release_offsets[] =
    "DELETE FROM hog_consumer_offset o USING hog_table old, hog_table new"
    " WHERE o.catalog_id = $1 AND old.catalog_id = $1 AND new.catalog_id = $1"
    " AND o.table_uuid = old.table_uuid AND new.replaced_table_id = old.table_id"
    " AND EXISTS (SELECT 1 FROM hog_consumer_offset n WHERE n.catalog_id = $1"
    " AND n.consumer_id = o.consumer_id AND n.table_uuid = new.table_uuid"
    " AND n.committed_snapshot >= new.created_snapshot)";

/* 3 of the rules: the oldest snapshot that is to be kept by age, the head, and the consumers. A
 * retention above 3,000 years counts as that, so that its microseconds fit. */
static const char find_floor[] =
    "SELECT c.snapshot_retention_seconds, c.consumer_floor,"
    " (SELECT min(s.snapshot_id) FROM hog_snapshot s WHERE s.catalog_id = $1"
    "  AND s.snapshot_time_us >="
    "   hog_now_us() - least(c.snapshot_retention_seconds, 100000000000) * 1000000),"
    " o.committed_snapshot, o.consumer_id"
    " FROM hog_catalog c LEFT JOIN LATERAL (SELECT o.committed_snapshot, o.consumer_id"
    "  FROM hog_consumer_offset o JOIN hog_table t USING (catalog_id, table_uuid)"
    "  WHERE o.catalog_id = c.catalog_id ORDER BY o.committed_snapshot LIMIT 1) o ON true"
    " WHERE c.catalog_id = $1";

static void send_history(struct mp_tx *tx, int64_t floor)
{
    MP_SQL(tx->sql, "DELETE FROM hog_snapshot_change WHERE catalog_id = $1 AND snapshot_id < $2",
           mp_v_int(tx->catalog_id), mp_v_int(floor));
    MP_SQL(tx->sql, "DELETE FROM hog_snapshot WHERE catalog_id = $1 AND snapshot_id < $2",
           mp_v_int(tx->catalog_id), mp_v_int(floor));
    MP_SQL(tx->sql,
           "UPDATE hog_catalog SET earliest_snapshot_id = $2, earliest_snapshot_time_us ="
           " (SELECT snapshot_time_us FROM hog_snapshot WHERE catalog_id = $1 AND snapshot_id = $2)"
           " WHERE catalog_id = $1",
           mp_v_int(tx->catalog_id), mp_v_int(floor));
    MP_SQL(tx->sql, "DELETE FROM hog_table_version WHERE catalog_id = $1 AND end_snapshot <= $2",
           mp_v_int(tx->catalog_id), mp_v_int(floor));
    MP_SQL(tx->sql, "DELETE FROM hog_column WHERE catalog_id = $1 AND end_snapshot <= $2",
           mp_v_int(tx->catalog_id), mp_v_int(floor));
    MP_SQL(tx->sql, "DELETE FROM hog_partition_spec WHERE catalog_id = $1 AND end_snapshot <= $2",
           mp_v_int(tx->catalog_id), mp_v_int(floor));
    MP_SQL(tx->sql, "DELETE FROM hog_sort_spec WHERE catalog_id = $1 AND end_snapshot <= $2",
           mp_v_int(tx->catalog_id), mp_v_int(floor));
    MP_SQL(tx->sql, "DELETE FROM hog_view WHERE catalog_id = $1 AND end_snapshot <= $2",
           mp_v_int(tx->catalog_id), mp_v_int(floor));
}

static enum mp_code advance(struct mp_tx *tx, void *context)
{
    struct expiry *expiry = context;
    uint32_t released, state;
    int64_t floor, by_consumer;
    bool consumers;
    enum mp_code code;

    released = MP_SQL(tx->sql, release_offsets, mp_v_int(tx->catalog_id));
    state = MP_SQL(tx->sql, find_floor, mp_v_int(tx->catalog_id));
    code = mp_tx_sync(tx);
    if (code)
        return code;
    expiry->offsets_released = mp_sql_changed(tx->sql, released);
    expiry->snapshots = 0;
    expiry->floor = tx->floor;
    if (mp_sql_null(tx->sql, state, 0, 0))
        return MP_OK; /* nothing ever expires here */
    floor = mp_sql_int(tx->sql, state, 0, 2, tx->head);
    by_consumer = mp_sql_int(tx->sql, state, 0, 3, INT64_MAX);
    consumers = mp_sql_true(tx->sql, state, 0, 1);
    if (floor > tx->head)
        floor = tx->head;
    if (floor - tx->floor > expiry->batch)
        floor = tx->floor + expiry->batch;
    if (consumers && by_consumer < floor) {
        floor = by_consumer;
        expiry->consumer = mp_sql_copy(tx->sql, &tx->call->arena, state, 0, 4);
    }
    if (floor <= tx->floor)
        return MP_OK;
    expiry->snapshots = floor - tx->floor;
    expiry->floor = floor;
    send_history(tx, floor);
    return MP_OK;
}

/* --- phase B --- */

struct purge {
    int64_t data_files, delete_files, pages;
    bool truncated;
};

static const char purge_data[] =
    "WITH gone AS (SELECT data_file_id, path FROM hog_data_file WHERE catalog_id = $1"
    "  AND end_snapshot <= $2 ORDER BY end_snapshot LIMIT $3 FOR UPDATE SKIP LOCKED),"
    " vectors AS (DELETE FROM hog_delete_file d USING gone WHERE d.catalog_id = $1"
    "  AND d.data_file_id = gone.data_file_id RETURNING d.path),"
    " stats AS (DELETE FROM hog_file_stats s USING gone WHERE s.catalog_id = $1"
    "  AND s.data_file_id = gone.data_file_id),"
    " files AS (DELETE FROM hog_data_file f USING gone WHERE f.catalog_id = $1"
    "  AND f.data_file_id = gone.data_file_id),"
    " queued AS (INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason, scheduled_us)"
    "  SELECT $1, q.path, q.kind, 'snapshot_expiry', hog_now_us()"
    "  FROM (SELECT path, 'data' AS kind FROM gone UNION ALL SELECT path, 'delete' FROM vectors) q)"
    " SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM vectors)";

static const char purge_vectors[] =
    "WITH gone AS (DELETE FROM hog_delete_file WHERE catalog_id = $1 AND delete_file_id IN"
    "  (SELECT delete_file_id FROM hog_delete_file WHERE catalog_id = $1 AND end_snapshot <= $2"
    "   ORDER BY end_snapshot LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING path),"
    " queued AS (INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason, scheduled_us)"
    "  SELECT $1, path, 'delete', 'snapshot_expiry', hog_now_us() FROM gone)"
    " SELECT 0, (SELECT count(*) FROM gone)";

static enum mp_code purge_pages(struct mp_call *call, const char *statement, int64_t catalog_id,
                                int64_t floor, struct purge *purge)
{
    const struct mp_server_settings *settings = call->server->settings;
    uint64_t until_us = mp_now_mono_us(call->server->env) +
                        (uint64_t)settings->HOGLAKE_EXPIRY_PURGE_BUDGET_MS * 1000;

    for (;;) {
        uint32_t number = MP_SQL(call->sql, statement, mp_v_int(catalog_id), mp_v_int(floor),
                                 mp_v_int(settings->HOGLAKE_EXPIRY_PURGE_PAGE));
        enum mp_code code = mp_sql_sync(call->sql, &call->err);
        int64_t rows;

        if (code)
            return code;
        rows = mp_sql_int(call->sql, number, 0, 0, 0) + mp_sql_int(call->sql, number, 0, 1, 0);
        purge->data_files += mp_sql_int(call->sql, number, 0, 0, 0);
        purge->delete_files += mp_sql_int(call->sql, number, 0, 1, 0);
        purge->pages += rows > 0;
        if (!rows)
            return MP_OK;
        if (mp_now_mono_us(call->server->env) > until_us || atomic_load(&call->server->stopping)) {
            purge->truncated = true;
            return MP_OK;
        }
    }
}

static enum mp_code purge(struct mp_call *call, struct mp_str catalog, struct purge *ret)
{
    int64_t catalog_id, floor;
    uint32_t number;
    enum mp_code code = mp_call_sql(call);

    if (code)
        return code;
    number = MP_SQL(call->sql,
                    "SELECT catalog_id, earliest_snapshot_id FROM hog_catalog WHERE name = $1",
                    mp_v_text(catalog));
    code = mp_sql_sync(call->sql, &call->err);
    if (code || !mp_sql_rows(call->sql, number))
        return code;
    catalog_id = mp_sql_int(call->sql, number, 0, 0, 0);
    floor = mp_sql_int(call->sql, number, 0, 1, 0);
    code = purge_pages(call, purge_data, catalog_id, floor, ret);
    if (!code)
        code = purge_pages(call, purge_vectors, catalog_id, floor, ret);
    return code;
}

enum mp_code mp_task_expiry(struct mp_call *call, struct mp_str catalog, int64_t batch,
                            struct mp_buf *result)
{
    struct expiry expiry = {.batch = batch ? batch : call->server->settings->HOGLAKE_EXPIRY_BATCH};
    struct purge purged = {0};
    struct mp_server_metrics *metrics = call->server->metrics;
    enum mp_code code = mp_tx_run(call, catalog, advance, &expiry);

    if (code && code != MP_REFUSED)
        mp_server_metrics_add(metrics, MP_SM_ADVANCE_FAILURES, NULL, 1);
    if (code)
        return code;
    mp_server_metrics_add(metrics, MP_SM_EXPIRED, NULL, (double)expiry.snapshots);
    code = purge(call, catalog, &purged);
    mp_server_metrics_add(metrics, MP_SM_PURGED, NULL,
                          (double)(purged.data_files + purged.delete_files));
    mp_server_metrics_add(metrics, MP_SM_PURGE_FAILURES, NULL, code != MP_OK);
    mp_server_metrics_add(metrics, MP_SM_PURGE_TRUNCATED, NULL, purged.truncated);
    if (code)
        return code;
    mp_buf_add_byte(result, '{');
    mp_wire_member_int(result, "snapshots_expired", expiry.snapshots);
    mp_wire_member_int(result, "data_files_queued", purged.data_files);
    mp_wire_member_int(result, "delete_files_queued", purged.delete_files);
    mp_wire_member_int(result, "new_earliest_snapshot_id", expiry.floor);
    mp_wire_member_text(result, "floored_by_consumer", expiry.consumer);
    mp_wire_member_int(result, "offsets_released", expiry.offsets_released);
    mp_wire_member_int(result, "data_files_purged", purged.data_files);
    mp_wire_member_int(result, "purge_pages", purged.pages);
    mp_wire_member_int(result, "purge_failures", 0);
    mp_wire_member_bool(result, "purge_truncated", purged.truncated);
    mp_buf_add_byte(result, '}');
    return MP_OK;
}
