/* server/background/cleanup.c - objects that no row names any more are removed from the store.
 *
 * A queued path is no proof that it may go: it is looked up again, in data files, deletion vectors
 * and upload claims, right before. Rows are taken for a lease, so two runs never work on the same.
 */
#include "server/background/background.h"

struct cleanup {
    int64_t removed, missing, still_referenced, failures, receipts;
};

struct ticket {
    int64_t id;
    struct mp_str path;
    bool referenced;
    bool staged; /* queued before it was uploaded, so it may never have been there */
};

static const char take_tickets[] =
    "WITH taken AS (UPDATE hog_file_removal SET claimed_us = hog_now_us(),"
    "  attempts = attempts + 1, last_attempt_us = hog_now_us() WHERE removal_id IN"
    "  (SELECT removal_id FROM hog_file_removal WHERE catalog_id = $1 AND drained_us IS NULL"
    "   AND (claimed_us IS NULL OR claimed_us < hog_now_us() - $3 * 1000000)"
    "   ORDER BY removal_id LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING removal_id, path, reason)"
    " SELECT t.removal_id, t.path, EXISTS (SELECT 1 FROM hog_data_file f WHERE f.catalog_id = $1"
    "  AND f.path = t.path) OR EXISTS (SELECT 1 FROM hog_delete_file d WHERE d.catalog_id = $1"
    "  AND d.path = t.path) OR EXISTS (SELECT 1 FROM hog_upload u WHERE u.catalog_id = $1"
    "  AND u.path = t.path AND u.state = 'active' AND u.expires_us > hog_now_us()),"
    " t.reason IN ('compaction_staging', 'trino_upload')"
    " FROM taken t ORDER BY t.removal_id";

/* Removes the object. MP_NOT_FOUND: a staged one is not there. */
static enum mp_code remove_object(struct mp_objects *objects, const struct ticket *ticket,
                                  struct mp_err *err)
{
    struct mp_store *store;
    struct mp_str key;
    size_t none;
    enum mp_code code = mp_objects_find(objects, ticket->path, err, &store, &key);

    if (!code && ticket->staged)
        code = store->driver->get(store, key, 0, 0, NULL, &none, err);
    return code ? code : store->driver->remove(store, key, err);
}

static enum mp_code drain(struct mp_call *call, const struct ticket *tickets, uint32_t count,
                          struct cleanup *cleanup)
{
    struct mp_objects *objects = mp_background_objects(call->server);
    struct mp_sql_array deleted, absent, registered;
    enum mp_code code;

    mp_sql_array_init(&deleted, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&absent, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&registered, MP_PG_INT8_ARRAY);
    for (uint32_t i = 0; i < count && !atomic_load(&call->server->stopping); i++) {
        struct mp_err err;

        if (tickets[i].referenced) {
            mp_sql_array_int(&registered, tickets[i].id);
            cleanup->still_referenced++;
            continue;
        }
        code = remove_object(objects, &tickets[i], &err);
        if (code == MP_NOT_FOUND) {
            mp_sql_array_int(&absent, tickets[i].id);
            cleanup->missing++;
        } else if (code) {
            mp_log(call->server->log, MP_LOG_WARN, "hoglake.cleanup", "%s", err.text);
            cleanup->failures++; /* its lease runs out, and another run tries again */
        } else {
            mp_sql_array_int(&deleted, tickets[i].id);
            cleanup->removed++;
        }
    }
    MP_SQL(call->sql,
           "UPDATE hog_file_removal SET drained_us = hog_now_us(), drained_outcome ="
           " CASE WHEN removal_id = ANY ($1) THEN 'deleted' WHEN removal_id = ANY ($2)"
           " THEN 'absent' ELSE 'registered' END"
           " WHERE removal_id = ANY ($1) OR removal_id = ANY ($2) OR removal_id = ANY ($3)",
           mp_sql_array_value(&deleted), mp_sql_array_value(&absent),
           mp_sql_array_value(&registered));
    code = mp_sql_sync(call->sql, &call->err);
    mp_sql_array_fini(&deleted);
    mp_sql_array_fini(&absent);
    mp_sql_array_fini(&registered);
    return code;
}

/* Receipts must outlive every replay: twice the snapshots' retention (30 days at most), and the
 * setting. */
static enum mp_code purge_ledgers(struct mp_call *call, int64_t catalog_id, struct cleanup *cleanup)
{
    const struct mp_server_settings *settings = call->server->settings;
    uint32_t receipts =
        MP_SQL(call->sql,
               "DELETE FROM hog_commit_receipt r USING hog_catalog c WHERE r.catalog_id = $1"
               " AND c.catalog_id = $1 AND $2 > 0 AND r.created_us < hog_now_us() - 1000000 *"
               " greatest($2, 2 * least(coalesce(c.snapshot_retention_seconds, 0), 1296000))",
               mp_v_int(catalog_id), mp_v_int(settings->HOGLAKE_RECEIPT_RETENTION_SECONDS));
    enum mp_code code;

    MP_SQL(call->sql, "DELETE FROM hog_file_removal WHERE drained_us < hog_now_us() - $1 * 1000000",
           mp_v_int(settings->HOGLAKE_REMOVAL_LEDGER_RETENTION_SECONDS));
    MP_SQL(call->sql,
           "DELETE FROM hog_maintenance_run WHERE catalog_id = $1"
           " AND finished_us < hog_now_us() - $2 * 1000000",
           mp_v_int(catalog_id), mp_v_int(settings->HOGLAKE_MAINTENANCE_LEDGER_RETENTION_SECONDS));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        mp_server_metrics_add(call->server->metrics, MP_SM_RECEIPT_FAILURES, NULL, 1);
    else
        cleanup->receipts = mp_sql_changed(call->sql, receipts);
    return code;
}

enum mp_code mp_task_cleanup(struct mp_call *call, struct mp_str catalog, int64_t batch,
                             struct mp_buf *result)
{
    const struct mp_server_settings *settings = call->server->settings;
    struct cleanup cleanup = {0};
    struct ticket *tickets;
    int64_t catalog_id;
    uint32_t number, count;
    enum mp_code code = mp_call_sql(call);

    if (code)
        return code;
    number =
        MP_SQL(call->sql, "SELECT catalog_id FROM hog_catalog WHERE name = $1", mp_v_text(catalog));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    if (!mp_sql_rows(call->sql, number))
        return mp_refuse_missing(call, "catalog \"%.*s\" does not exist", MP_STR_ARG(catalog));
    catalog_id = mp_sql_int(call->sql, number, 0, 0, 0);
    number = MP_SQL(call->sql, take_tickets, mp_v_int(catalog_id),
                    mp_v_int(batch ? batch : settings->HOGLAKE_CLEANUP_BATCH),
                    mp_v_int(settings->HOGLAKE_CLEANUP_CLAIM_LEASE_SECONDS));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    count = mp_sql_rows(call->sql, number);
    tickets = mp_arena_take(&call->arena, (count + 1) * sizeof(*tickets));
    for (uint32_t i = 0; i < count; i++)
        tickets[i] = (struct ticket){mp_sql_int(call->sql, number, i, 0, 0),
                                     mp_sql_copy(call->sql, &call->arena, number, i, 1),
                                     mp_sql_true(call->sql, number, i, 2),
                                     mp_sql_true(call->sql, number, i, 3)};
    if (count)
        code = drain(call, tickets, count, &cleanup);
    if (!code)
        code = purge_ledgers(call, catalog_id, &cleanup);
    if (code)
        return code;
    mp_server_metrics_add(call->server->metrics, MP_SM_REMOVED, NULL, (double)cleanup.removed);
    mp_buf_add_byte(result, '{');
    mp_wire_member_int(result, "removed", cleanup.removed);
    mp_wire_member_int(result, "missing", cleanup.missing);
    mp_wire_member_int(result, "still_referenced", cleanup.still_referenced);
    mp_wire_member_int(result, "objects_removed", cleanup.removed);
    mp_wire_member_int(result, "deadline_skipped", 0);
    mp_wire_member_int(result, "receipts_purged", cleanup.receipts);
    mp_buf_add_byte(result, '}');
    return MP_OK;
}
