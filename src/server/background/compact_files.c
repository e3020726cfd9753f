/* server/background/compact_files.c - the files of a bucket, looked at. See compact_priv.h.
 *
 * What a file and its deletion vector say of themselves must be what the catalog says of them; a
 * file that lies is left alone, and the others go on.
 */
#include "server/background/compact_priv.h"

#include "server/background/deletion_vector.h"

#include <assert.h>

#define VECTOR_BYTES_MAX ((int64_t)256 << 20)

static const char list_files[] =
    "SELECT f.data_file_id, f.path, f.record_count, f.file_size_bytes, f.footer_size,"
    " f.row_id_start, f.explicit_row_ids, f.begin_snapshot, d.delete_file_id, d.path,"
    " d.delete_count, d.file_size_bytes FROM hog_data_file f"
    " LEFT JOIN hog_delete_file d ON d.catalog_id = f.catalog_id"
    "  AND d.data_file_id = f.data_file_id AND " MP_SQL_NULL(
        "d.end_snapshot") " WHERE f.catalog_id = $1 AND f.data_file_id = ANY ($2) AND "
                          "f.end_snapshot IS NULL"
                          " ORDER BY f.file_size_bytes, f.data_file_id";

void mp_compact_left_alone(struct mp_server *server, const char *reason, int64_t count)
{
    if (count)
        mp_server_metrics_add(server->metrics, MP_SM_LEFT, reason, (double)count);
}

uint32_t mp_compact_files_min(const struct mp_server_settings *settings, int64_t largest_bytes)
{
    int64_t least = settings->HOGLAKE_COMPACTION_MIN_INPUT_FILES;
    int64_t full = settings->HOGLAKE_COMPACTION_TARGET_BYTES / (largest_bytes ? largest_bytes : 1);

    if (least > full)
        least = full;
    return least < 2 ? 2 : (uint32_t)least;
}

static struct mp_compact_file read_row(struct mp_sql *sql, struct mp_arena *arena, uint32_t number,
                                       uint32_t row)
{
    return (struct mp_compact_file){
        .file_id = mp_sql_int(sql, number, row, 0, 0),
        .request = {.path = mp_sql_copy(sql, arena, number, row, 1),
                    .file_size_bytes = mp_sql_int(sql, number, row, 3, 0),
                    .has_footer_size = !mp_sql_null(sql, number, row, 4),
                    .footer_size = mp_sql_int(sql, number, row, 4, 0)},
        .records = mp_sql_int(sql, number, row, 2, 0),
        .row_id_start = mp_sql_int(sql, number, row, 5, 0),
        .explicit_row_ids = mp_sql_true(sql, number, row, 6),
        .begin_snapshot = mp_sql_int(sql, number, row, 7, 0),
        .vector_id = mp_sql_int(sql, number, row, 8, 0),
        .vector_path = mp_sql_copy(sql, arena, number, row, 9),
        .vector_rows = mp_sql_int(sql, number, row, 10, 0),
        .vector_bytes = mp_sql_int(sql, number, row, 11, 0),
    };
}

/* Keeps those that go together by their sizes, smallest first. */
static void keep_small(const struct mp_server_settings *settings, struct mp_compact_files *files)
{
    int64_t taken = 0, largest = 0;
    uint32_t count = 0;

    for (; count < files->count; count++) {
        int64_t bytes = files->items[count].request.file_size_bytes;

        if (bytes > settings->HOGLAKE_COMPACTION_TARGET_BYTES - taken ||
            (count >= settings->HOGLAKE_COMPACTION_MIN_INPUT_FILES && bytes > taken))
            break;
        taken += bytes;
        largest = bytes;
    }
    files->count = count < mp_compact_files_min(settings, largest) ? 0 : count;
    assert(taken <= settings->HOGLAKE_COMPACTION_TARGET_BYTES);
}

enum mp_code mp_compact_files_find(struct mp_call *call, int64_t catalog_id, struct mp_str file_ids,
                                   bool lone, struct mp_compact_files *ret)
{
    struct mp_v ids = {.type = MP_PG_INT8_ARRAY, .text = file_ids};
    uint32_t number;
    enum mp_code code = mp_call_sql(call);

    if (code)
        return code;
    number = MP_SQL(call->sql, list_files, mp_v_int(catalog_id), ids);
    code = mp_sql_sync(call->sql, &call->err);
    if (code)
        return code;
    ret->count = mp_sql_rows(call->sql, number);
    ret->items = mp_arena_take(&ret->arena, (ret->count + 1) * sizeof(*ret->items));
    for (uint32_t i = 0; i < ret->count; i++)
        ret->items[i] = read_row(call->sql, &ret->arena, number, i);
    if (!lone)
        keep_small(call->server->settings, ret);
    return MP_OK;
}

/* ---- footers and vectors --------------------------------------------------------------------- */

/* What the file says of itself must be what the catalog says of it. */
static enum mp_code check_footer(const struct mp_compact_file *file, struct mp_err *err)
{
    const struct mp_parquet_footer *footer = file->footer;
    const struct mp_parquet_node *last = &footer->nodes[footer->node_count - 1];
    bool own_ids = last->has_field_id && last->field_id == MP_ROW_ID_FIELD_ID && last->leaf >= 0;

    if (footer->rows != file->records)
        return mp_err_set(err, MP_BAD_DATA, "the file has %lld rows, the catalog says %lld",
                          (long long)footer->rows, (long long)file->records);
    if (own_ids != file->explicit_row_ids)
        return mp_err_set(err, MP_BAD_DATA, "the file has %s row ids, the catalog says otherwise",
                          own_ids ? "a column of" : "no column of");
    return MP_OK;
}

static enum mp_code open_vector(struct mp_objects *objects, struct mp_arena *arena,
                                struct mp_compact_file *file, struct mp_err *err)
{
    struct mp_deletion_vector vector;
    char *bytes;
    enum mp_code code;

    if (file->vector_bytes > VECTOR_BYTES_MAX || file->records > UINT32_MAX)
        return mp_err_set(err, MP_REFUSED, "a deletion vector of %lld bytes for %lld rows",
                          (long long)file->vector_bytes, (long long)file->records);
    bytes = mp_arena_take(arena, (size_t)file->vector_bytes + 1);
    code = mp_object_read(objects, file->vector_path, 0, (size_t)file->vector_bytes, bytes, err);
    if (!code)
        code = mp_deletion_vector_read(arena, mp_str_n(bytes, (size_t)file->vector_bytes),
                                       file->request.path, (uint64_t)file->records, err, &vector);
    if (code)
        return code;
    if (vector.count != (uint64_t)file->vector_rows)
        return mp_err_set(err, MP_BAD_DATA,
                          "its deletion vector takes %llu rows, the catalog says "
                          "%lld",
                          (unsigned long long)vector.count, (long long)file->vector_rows);
    file->deleted = vector.rows;
    return MP_OK;
}

static enum mp_code open_file(struct mp_objects *objects, struct mp_arena *arena,
                              struct mp_compact_file *file, struct mp_err *err)
{
    enum mp_code code = mp_footer_read(objects, arena, &file->request, err, &file->footer);

    if (!code)
        code = check_footer(file, err);
    if (!code && file->vector_id)
        code = open_vector(objects, arena, file, err);
    return code;
}

enum mp_code mp_compact_files_open(struct mp_server *server, struct mp_compact_files *files,
                                   struct mp_err *err, int64_t *ret_invalid)
{
    for (uint32_t i = 0; i < files->count; i++) {
        struct mp_compact_file *file = &files->items[i];
        enum mp_code code = open_file(mp_background_objects(server), &files->arena, file, err);

        if (!code)
            continue;
        if (code != MP_BAD_DATA && code != MP_NOT_FOUND && code != MP_REFUSED)
            return code;
        file->done = true;
        ++*ret_invalid;
        mp_compact_left_alone(server, "invalid_data", 1);
        mp_log(server->log, MP_LOG_WARN, "hoglake.compaction", "data file %lld is left alone: %s",
               (long long)file->file_id, err->text);
    }
    return MP_OK;
}
