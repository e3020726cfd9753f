/* server/background/sample.c - gauges that the database knows, sampled by the clock so that
 * /metrics waits for nothing. Counts end at COUNTED_MAX a catalog, so that a sample stays cheap.
 */
#include "server/background/background.h"

#include <stdlib.h>

enum { COUNTED_MAX = 100000 };

/* In the order of the columns. */
static const enum mp_server_metric gauges[] = {
    MP_SM_LIVE_ROWS,    MP_SM_LIVE_BYTES,  MP_SM_LIVE_FILES,      MP_SM_PENDING_FILES,
    MP_SM_FAILED_FILES, MP_SM_NO_ID_FILES, MP_SM_PURGE_REMAINING,
};

static const char ask[] =
    "SELECT sum(s.rows), sum(s.bytes), sum(s.files), sum(p.count), sum(a.failed), sum(a.no_ids),"
    " sum(f.count) + sum(d.count) FROM hog_catalog c"
    " CROSS JOIN LATERAL (SELECT sum(live_rows) AS rows, sum(live_bytes) AS bytes,"
    "  sum(live_files) AS files FROM hog_table_stats s JOIN hog_table t USING (catalog_id, "
    "table_id)"
    "  WHERE s.catalog_id = c.catalog_id AND t.dropped_snapshot IS NULL) s"
    " CROSS JOIN LATERAL (SELECT count(*) FROM (SELECT 1 FROM hog_data_file"
    "  WHERE catalog_id = c.catalog_id AND stats_state = 'pending' AND end_snapshot IS NULL"
    "  LIMIT $1) q) p"
    " CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE stats_state = 'failed') AS failed,"
    "  count(*) FILTER (WHERE missing_field_ids) AS no_ids FROM"
    "  (SELECT stats_state, missing_field_ids FROM hog_data_file WHERE catalog_id = c.catalog_id"
    "   AND (missing_field_ids OR stats_state = 'failed') AND end_snapshot IS NULL LIMIT $1) q) a"
    " CROSS JOIN LATERAL (SELECT count(*) FROM (SELECT 1 FROM hog_data_file"
    "  WHERE catalog_id = c.catalog_id AND end_snapshot <= c.earliest_snapshot_id LIMIT $1) q) f"
    " CROSS JOIN LATERAL (SELECT count(*) FROM (SELECT 1 FROM hog_delete_file"
    "  WHERE catalog_id = c.catalog_id AND end_snapshot <= c.earliest_snapshot_id LIMIT $1) q) d";

void mp_sample(struct mp_server *server)
{
    struct mp_sql *sql = NULL;
    struct mp_err err;
    uint32_t number = 0;
    enum mp_code code = mp_sql_take(server->pool, &err, &sql);

    if (!code) {
        number = MP_SQL(sql, ask, mp_v_int(COUNTED_MAX));
        code = mp_sql_sync(sql, &err);
    }
    if (code)
        mp_log(server->log, MP_LOG_WARN, "hoglake.background", "sample: %s", err.text);
    for (uint32_t i = 0; !code && i < sizeof(gauges) / sizeof(*gauges); i++) {
        struct mp_str cell = mp_sql_cell(sql, number, 0, i);

        mp_server_metrics_set(server->metrics, gauges[i], cell.data ? strtod(cell.data, NULL) : 0);
    }
    mp_sql_give(server->pool, &sql);
}
