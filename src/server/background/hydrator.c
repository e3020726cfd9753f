/* server/background/hydrator.c - statistics of files that were registered without.
 *
 * For each pending file the footer is read (callouts.h) and its row becomes `provided`, with
 * statistics where the file is large enough to be worth them, or `failed` where it is no Parquet
 * file or not there. A store that does not answer leaves it pending; after some such files in a row
 * the run ends. Every run begins at a random file and goes round, so files that stay pending do not
 * stand in front of the others.
 */
#include "server/background/callouts.h"
#include "server/tables.h"
#include "server/tx/commit.h"

#include <stdlib.h>

enum { FILES_MAX = 500, TRANSIENT_IN_A_ROW_MAX = 5 };

struct pending {
    int64_t file_id, table_id;
    struct mp_footer_request request;
};

struct counts {
    int64_t hydrated, failed, transient;
    uint32_t transient_in_a_row;
};

static const char list_pending[] =
    "SELECT f.data_file_id, f.table_id, f.path, f.file_size_bytes, f.footer_size"
    " FROM hog_data_file f WHERE f.catalog_id = $1 AND f.stats_state = 'pending'"
    " AND f.end_snapshot IS NULL ORDER BY f.data_file_id < $2, f.data_file_id LIMIT $3";

static enum mp_code store_footer(struct mp_call *call, int64_t catalog_id,
                                 const struct pending *file, const struct mp_footer *footer)
{
    bool large =
        file->request.file_size_bytes >= call->server->settings->HOGLAKE_HYDRATOR_MIN_FILE_BYTES;
    struct mp_buf text = MP_BUF_INIT(SIZE_MAX / 4);
    struct mp_sql_array splits;
    enum mp_code code;

    mp_sql_array_init(&splits, MP_PG_INT8_ARRAY);
    for (uint32_t i = 0; i < footer->split_count; i++)
        mp_sql_array_int(&splits, footer->split_offsets[i]);
    mp_sql_say(call->sql, "BEGIN");
    MP_SQL(call->sql,
           "UPDATE hog_data_file SET stats_state = 'provided', missing_field_ids = $3,"
           " split_offsets = coalesce(split_offsets, CASE WHEN $5 THEN $4 END)"
           " WHERE catalog_id = $1 AND data_file_id = $2 AND stats_state = 'pending'",
           mp_v_int(catalog_id), mp_v_int(file->file_id), mp_v_bool(footer->missing_field_ids),
           mp_sql_array_value(&splits), mp_v_bool(footer->split_count > 0));
    if (large && footer->stats_count) {
        struct mp_wire_file shown = {.stats = footer->stats, .stats_count = footer->stats_count};

        mp_file_stats_text(&text, &shown);
        MP_SQL(call->sql,
               "INSERT INTO hog_file_stats (catalog_id, data_file_id, stats)"
               " SELECT $1, $2, $3 WHERE EXISTS (SELECT 1 FROM hog_data_file f"
               " WHERE f.catalog_id = $1 AND f.data_file_id = $2)"
               " ON CONFLICT (catalog_id, data_file_id) DO UPDATE SET stats = excluded.stats",
               mp_v_int(catalog_id), mp_v_int(file->file_id), mp_v_text(mp_buf_str(&text)));
    }
    mp_sql_say(call->sql, "COMMIT");
    code = mp_sql_sync(call->sql, &call->err);
    mp_sql_array_fini(&splits);
    mp_buf_fini(&text);
    return code;
}

static enum mp_code store_failure(struct mp_call *call, int64_t catalog_id,
                                  const struct pending *file)
{
    MP_SQL(call->sql,
           "UPDATE hog_data_file SET stats_state = 'failed' WHERE catalog_id = $1"
           " AND data_file_id = $2 AND stats_state = 'pending'",
           mp_v_int(catalog_id), mp_v_int(file->file_id));
    return mp_sql_sync(call->sql, &call->err);
}

/* The columns at head: field ids never change their meaning. */
static enum mp_code read_columns(struct mp_call *call, int64_t catalog_id, int64_t head,
                                 struct pending *file)
{
    struct mp_table table = {.table_id = file->table_id};
    enum mp_code code = mp_call_sql(call);

    if (!code)
        code = mp_table_definition(call, call->sql, catalog_id, head, &table);
    file->request.columns = table.columns;
    return code;
}

static enum mp_code hydrate(struct mp_call *call, int64_t catalog_id, struct pending *file,
                            struct counts *counts)
{
    struct mp_server *server = call->server;
    struct mp_footer footer = {0};
    struct mp_arena arena;
    struct mp_err err;
    enum mp_code code;

    mp_arena_init(&arena, 64 * 1024);
    mp_sql_give(server->pool, &call->sql); /* others may use it while the store is read */
    code = mp_callout_footer(mp_background_objects(server), &arena, &file->request, &err, &footer);
    if (code && code != MP_BAD_DATA && code != MP_NOT_FOUND) {
        counts->transient++;
        counts->transient_in_a_row++;
        mp_server_metrics_add(server->metrics, MP_SM_TRANSIENT, NULL, 1);
        mp_log(server->log, MP_LOG_WARN, "hoglake.hydrator", "data file %lld stays pending: %s",
               (long long)file->file_id, err.text);
        mp_arena_fini(&arena);
        return MP_OK;
    }
    counts->transient_in_a_row = 0;
    if (code) {
        counts->failed++;
        mp_log(server->log, MP_LOG_WARN, "hoglake.hydrator", "data file %lld: %s",
               (long long)file->file_id, err.text);
    } else {
        counts->hydrated++;
    }
    mp_server_metrics_add(server->metrics, MP_SM_HYDRATED, code ? "failed" : "provided", 1);
    if (mp_call_sql(call))
        code = call->err.code;
    else
        code = code ? store_failure(call, catalog_id, file)
                    : store_footer(call, catalog_id, file, &footer);
    mp_arena_fini(&arena);
    return code;
}

enum mp_code mp_task_hydrator(struct mp_call *call, struct mp_str catalog, int64_t batch,
                              struct mp_buf *result)
{
    struct counts counts = {0};
    struct pending *files;
    int64_t catalog_id, head, first;
    uint32_t number, count;
    enum mp_code code = mp_call_sql(call);

    if (code)
        return code;
    number =
        MP_SQL(call->sql,
               "SELECT catalog_id, last_snapshot_id, next_file_id FROM hog_catalog WHERE name = $1",
               mp_v_text(catalog));
    code = mp_sql_sync(call->sql, &call->err);
    if (code || !mp_sql_rows(call->sql, number))
        return code;
    catalog_id = mp_sql_int(call->sql, number, 0, 0, 0);
    head = mp_sql_int(call->sql, number, 0, 1, 0);
    first = (int64_t)(mp_random_u64(call->server->env) %
                      (uint64_t)mp_sql_int(call->sql, number, 0, 2, 1));
    number = MP_SQL(call->sql, list_pending, mp_v_int(catalog_id), mp_v_int(first),
                    mp_v_int(batch ? batch : FILES_MAX));
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    count = mp_sql_rows(call->sql, number);
    files = mp_arena_take(&call->arena, (count + 1) * sizeof(*files));
    for (uint32_t i = 0; i < count; i++)
        files[i] = (struct pending){
            .file_id = mp_sql_int(call->sql, number, i, 0, 0),
            .table_id = mp_sql_int(call->sql, number, i, 1, 0),
            .request = {.path = mp_sql_copy(call->sql, &call->arena, number, i, 2),
                        .file_size_bytes = mp_sql_int(call->sql, number, i, 3, 0),
                        .has_footer_size = !mp_sql_null(call->sql, number, i, 4),
                        .footer_size = mp_sql_int(call->sql, number, i, 4, 0)},
        };
    for (uint32_t i = 0; i < count && !code && !atomic_load(&call->server->stopping); i++) {
        if (counts.transient_in_a_row >= TRANSIENT_IN_A_ROW_MAX)
            break;
        if (i && files[i].table_id == files[i - 1].table_id)
            files[i].request.columns = files[i - 1].request.columns;
        else
            code = read_columns(call, catalog_id, head, &files[i]);
        if (!code)
            code = hydrate(call, catalog_id, &files[i], &counts);
    }
    if (code)
        return code;
    mp_buf_add_byte(result, '{');
    mp_wire_member_int(result, "hydrated", counts.hydrated);
    mp_wire_member_int(result, "failed", counts.failed);
    mp_wire_member_int(result, "transient", counts.transient);
    mp_buf_add_byte(result, '}');
    return MP_OK;
}
