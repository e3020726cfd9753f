/* server/background/compact_group.c - one group of files becomes one file. See compact_priv.h.
 *
 * In this order, so that a crash anywhere leaves no half work and no object that nobody knows:
 *     claim   a row says that these files are taken; it runs out by itself
 *     make    the new file, in a temporary file that has no name
 *     ticket  the new object's path is queued for removal, in the future
 *     upload
 *     commit  under the catalog's lock: the inputs are looked at again; ticket and claim go, the
 *             inputs and their deletion vectors end, the new file begins, all in one snapshot
 *
 * Where all rows are deleted there is no new file, and so no ticket and no upload.
 *
 * Always  C1 an object that cleanup may already have taken is never committed: the commit deletes
 *            the ticket, and only while it still lies in the future
 *         C2 live totals move by what the files differ in: rows by those that were deleted
 *         C3 what was made is only committed for what it was made from: the same deletion vectors,
 *            the same columns (their types decide how bounds are written)
 */
#include "server/background/compact_priv.h"

#include "server/tx/commit.h"

#include <assert.h>
#include <stdio.h>
#include <sys/mman.h>

/* --- claim and ticket --- */

static void add_ids(const struct mp_compact_group *group, struct mp_sql_array *ids,
                    struct mp_sql_array *vectors)
{
    mp_sql_array_init(ids, MP_PG_INT8_ARRAY);
    mp_sql_array_init(vectors, MP_PG_INT8_ARRAY);
    for (uint32_t i = 0; i < group->count; i++) {
        mp_sql_array_int(ids, group->files[i]->file_id);
        mp_sql_array_int(vectors, group->files[i]->vector_id);
    }
}

/* What the transactions of a group share. */
struct work {
    struct mp_compact_group *group;
    struct mp_sql_array ids, vectors;
    struct mp_v ids_value, vectors_value;
    int64_t claim_id; /* 0: the files are another's */
    struct mp_str path;
    struct mp_compact_made made;
    struct mp_footer told;
    int64_t rows, bytes, deleted; /* of the inputs */
    struct mp_group_result *result;
};

static enum mp_code claim(struct mp_tx *tx, void *context)
{
    struct work *work = context;
    int64_t seconds = tx->call->server->settings->HOGLAKE_COMPACTION_CLAIM_TTL_SECONDS;
    uint32_t number;
    enum mp_code code;

    MP_SQL(tx->sql,
           "DELETE FROM hog_compaction_claim WHERE catalog_id = $1 AND expires_us < hog_now_us()",
           mp_v_int(tx->catalog_id));
    number = MP_SQL(tx->sql,
                    "INSERT INTO hog_compaction_claim (catalog_id, table_id, data_file_ids,"
                    " expires_us) SELECT $1, $2, $3, hog_now_us() + $4 * 1000000"
                    " WHERE NOT EXISTS (SELECT 1 FROM hog_compaction_claim c"
                    "  WHERE c.catalog_id = $1 AND c.table_id = $2 AND c.data_file_ids && $3)"
                    " RETURNING claim_id",
                    mp_v_int(tx->catalog_id), mp_v_int(work->group->table_id), work->ids_value,
                    mp_v_int(seconds));
    code = mp_tx_sync(tx);
    work->claim_id =
        !code && mp_sql_rows(tx->sql, number) ? mp_sql_int(tx->sql, number, 0, 0, 0) : 0;
    return code;
}

static enum mp_code queue_ticket(struct work *work)
{
    struct mp_call *call = work->group->call;
    enum mp_code code = mp_call_sql(call);

    if (code)
        return code;
    MP_SQL(call->sql,
           "INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason, scheduled_us,"
           " claimed_us) VALUES ($1, $2, 'data', 'compaction_staging', hog_now_us(),"
           " hog_now_us() + $3 * 1000000)",
           mp_v_int(work->group->catalog_id), mp_v_text(work->path),
           mp_v_int(call->server->settings->HOGLAKE_COMPACTION_CLAIM_TTL_SECONDS));
    code = mp_sql_sync(call->sql, &call->err);
    mp_sql_give(call->server->pool, &call->sql);
    return code;
}

/* The files are free again; an object that was not committed may be removed at once. Both would
 * come by themselves, later. */
static void release(struct work *work)
{
    struct mp_call *call = work->group->call;
    struct mp_err ignored;

    if (mp_call_sql(call))
        return;
    MP_SQL(call->sql, "DELETE FROM hog_compaction_claim WHERE catalog_id = $1 AND claim_id = $2",
           mp_v_int(work->group->catalog_id), mp_v_int(work->claim_id));
    if (work->path.data)
        MP_SQL(
            call->sql,
            "UPDATE hog_file_removal SET claimed_us = NULL WHERE catalog_id + 0 = $1 AND path = $2"
            " AND " MP_SQL_NULL("drained_us") " AND claimed_us > hog_now_us()",
            mp_v_int(work->group->catalog_id), mp_v_text(work->path));
    mp_sql_sync(call->sql, &ignored);
}

/* --- upload --- */

/* Beside the first input, which lies where files of its partition lie. */
static struct mp_str new_path(const struct mp_compact_group *group)
{
    struct mp_str path = group->files[0]->request.path;
    size_t size = path.size;
    char uuid[MP_UUID_TEXT];

    while (size && path.data[size - 1] != '/')
        size--;
    mp_uuid7(group->call->server->env, uuid);
    return mp_str_c(
        mp_arena_printf(group->arena, "%.*scompacted-%s.parquet", (int)size, path.data, uuid));
}

static enum mp_code upload(struct work *work, FILE *spool, uint64_t bytes, struct mp_err *err)
{
    void *memory = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fileno(spool), 0);
    struct mp_str piece = mp_str_n(memory, bytes);
    struct mp_store_object object = {.pieces = &piece, .piece_count = 1, .bytes = bytes};
    struct mp_store *store;
    bool done = false;
    enum mp_code code;

    if (memory == MAP_FAILED)
        return mp_err_set(err, MP_IO, "the temporary file: %llu bytes could not be mapped",
                          (unsigned long long)bytes);
    code = mp_objects_find(mp_background_objects(work->group->call->server), work->path, err,
                           &store, &object.key);
    if (!code)
        code = store->driver->put(store, &object, 1, &done, err);
    munmap(memory, bytes);
    return code;
}

/* --- commit --- */

/* What a commit looks at again, as numbers of statements. */
struct checks {
    uint32_t inputs, columns, ticket;
};

static void send_checks(struct mp_tx *tx, const struct work *work, struct checks *ret)
{
    ret->inputs =
        MP_SQL(tx->sql,
               "SELECT count(*), count(*) FILTER (WHERE coalesce(d.delete_file_id, 0) <> x.vector)"
               " FROM unnest($2, $3) AS x(id, vector)"
               " JOIN hog_data_file f ON f.catalog_id = $1 AND f.data_file_id = x.id"
               " JOIN hog_table t USING (catalog_id, table_id)"
               " LEFT JOIN hog_delete_file d ON d.catalog_id = f.catalog_id"
               "  AND d.data_file_id = f.data_file_id AND " MP_SQL_NULL(
                   "d.end_snapshot") " WHERE f.end_snapshot IS NULL AND t.dropped_snapshot IS NULL",
               mp_v_int(tx->catalog_id), work->ids_value, work->vectors_value);
    ret->columns = MP_SQL(tx->sql,
                          "SELECT 1 FROM hog_column WHERE catalog_id = $1 AND table_id = $2"
                          " AND (begin_snapshot > $3 OR end_snapshot > $3) LIMIT 1",
                          mp_v_int(tx->catalog_id), mp_v_int(work->group->table_id),
                          mp_v_int(work->group->head));
    if (work->made.footer)
        ret->ticket =
            MP_SQL(tx->sql,
                   "DELETE FROM hog_file_removal WHERE catalog_id + 0 = $1 AND path = $2"
                   " AND " MP_SQL_NULL("drained_us") " AND claimed_us > hog_now_us()", /* C1 */
                   mp_v_int(tx->catalog_id), mp_v_text(work->path));
}

/* Looks at the inputs again, under the lock. MP_CHANGED: the group is left alone, see end. */
static enum mp_code check_inputs(struct mp_tx *tx, struct work *work)
{
    struct checks checks = {0};
    enum mp_group_end end = MP_GROUP_COMPACTED;
    enum mp_code code;

    send_checks(tx, work, &checks);
    code = mp_tx_sync(tx);
    if (code)
        return code;
    if (mp_sql_int(tx->sql, checks.inputs, 0, 0, 0) != work->group->count ||
        mp_sql_rows(tx->sql, checks.columns)) /* C3 */
        end = MP_GROUP_CONFLICT;
    else if (mp_sql_int(tx->sql, checks.inputs, 0, 1, 0))
        end = MP_GROUP_DELETED;
    else if (work->made.footer && mp_sql_changed(tx->sql, checks.ticket) != 1)
        end = MP_GROUP_FAILED;
    work->result->end = end;
    return end == MP_GROUP_COMPACTED
               ? MP_OK
               : mp_err_set(&tx->call->err, MP_CHANGED, "the files of a compaction changed");
}

static void send_file(struct mp_tx *tx, struct work *work, int64_t file_id)
{
    const struct mp_compact_file *first = work->group->files[0];
    struct mp_wire_file shown = {.stats = work->told.stats, .stats_count = work->told.stats_count};
    struct mp_sql_array splits;

    mp_sql_array_init(&splits, MP_PG_INT8_ARRAY);
    for (uint32_t i = 0; i < work->told.split_count; i++)
        mp_sql_array_int(&splits, work->told.split_offsets[i]);
    MP_SQL(tx->sql,
           "INSERT INTO hog_data_file (catalog_id, data_file_id, table_id, begin_snapshot, path,"
           " record_count, file_size_bytes, footer_size, row_id_start, stats_state, spec_id,"
           " partition_values, explicit_row_ids, compacted, split_offsets)"
           " SELECT catalog_id, $3, table_id, $4, $5, $6, $7, $8, row_id_start, 'provided',"
           " spec_id, partition_values, true, true, CASE WHEN $10 THEN $9 END"
           " FROM hog_data_file WHERE catalog_id = $1 AND data_file_id = $2",
           mp_v_int(tx->catalog_id), mp_v_int(first->file_id), mp_v_int(file_id),
           mp_v_int(tx->head), mp_v_text(work->path), mp_v_int(work->rows - work->deleted),
           mp_v_int((int64_t)work->made.bytes), mp_v_int((int64_t)work->made.footer->footer_bytes),
           mp_sql_array_value(&splits), mp_v_bool(work->told.split_count > 0));
    mp_sql_array_fini(&splits);
    if (shown.stats_count) {
        struct mp_buf text = MP_BUF_INIT(SIZE_MAX / 4);

        mp_file_stats_text(&text, &shown);
        MP_SQL(tx->sql,
               "INSERT INTO hog_file_stats (catalog_id, data_file_id, stats) VALUES ($1, $2, $3)",
               mp_v_int(tx->catalog_id), mp_v_int(file_id), mp_v_text(mp_buf_str(&text)));
        mp_buf_fini(&text);
    }
}

static enum mp_code commit(struct mp_tx *tx, void *context)
{
    struct work *work = context;
    enum mp_code code = check_inputs(tx, work);

    if (code)
        return code;
    mp_tx_snapshot(tx, false, (struct mp_str){NULL, 0}, (struct mp_str){NULL, 0});
    mp_tx_change(tx, "table_compacted", work->group->table_id);
    MP_SQL(tx->sql,
           "UPDATE hog_data_file SET end_snapshot = $2 WHERE catalog_id = $1"
           " AND data_file_id = ANY ($3)",
           mp_v_int(tx->catalog_id), mp_v_int(tx->head), work->ids_value);
    if (work->deleted)
        MP_SQL(tx->sql,
               "UPDATE hog_delete_file SET end_snapshot = $2 WHERE catalog_id = $1"
               " AND data_file_id = ANY ($3) AND " MP_SQL_NULL("end_snapshot"),
               mp_v_int(tx->catalog_id), mp_v_int(tx->head), work->ids_value);
    if (work->made.footer)
        send_file(tx, work, tx->next_file++);
    MP_SQL(tx->sql, /* C2 */
           "UPDATE hog_table_stats SET live_rows = live_rows - $5,"
           " live_files = live_files + $6 - $3, live_bytes = live_bytes + $4"
           " WHERE catalog_id = $1 AND table_id = $2",
           mp_v_int(tx->catalog_id), mp_v_int(work->group->table_id), mp_v_int(work->group->count),
           mp_v_int((int64_t)work->made.bytes - work->bytes), mp_v_int(work->deleted),
           mp_v_int(work->made.footer ? 1 : 0));
    MP_SQL(tx->sql, "DELETE FROM hog_compaction_claim WHERE catalog_id = $1 AND claim_id = $2",
           mp_v_int(tx->catalog_id), mp_v_int(work->claim_id));
    return mp_tx_sync(tx);
}

/* --- all of it --- */

static enum mp_group_end end_of(enum mp_code code)
{
    switch (code) {
    case MP_REFUSED:
        return MP_GROUP_SCHEMA;
    case MP_BAD_DATA:
    case MP_NOT_FOUND:
        return MP_GROUP_INVALID;
    case MP_FULL:
        return MP_GROUP_MEMORY;
    default:
        return MP_GROUP_FAILED;
    }
}

/* The object, whole in the store before the catalog hears of it. MP_OK and end FAILED: the store
 * did not take it. */
static enum mp_code put_object(struct work *work, FILE *spool, struct mp_err *err)
{
    enum mp_code code;

    mp_compact_tell(work->group, &work->made, &work->told);
    work->path = new_path(work->group);
    code = queue_ticket(work);
    if (!code && upload(work, spool, work->made.bytes, err))
        work->result->end = MP_GROUP_FAILED;
    return code;
}

static void log_left(const struct work *work, const struct mp_err *err)
{
    const struct mp_compact_group *group = work->group;
    uint32_t fault = work->result->fault;
    char file[48] = "";

    if (fault < group->count)
        snprintf(file, sizeof(file), ", because of data file %lld",
                 (long long)group->files[fault]->file_id);
    mp_log(group->call->server->log, MP_LOG_WARN, "hoglake.compaction",
           "%u files of table %lld are left alone%s: %s", group->count, (long long)group->table_id,
           file, err->text);
}

static enum mp_code make_and_commit(struct work *work)
{
    struct mp_compact_group *group = work->group;
    FILE *spool = tmpfile();
    struct mp_err err;
    enum mp_code code;

    if (!spool)
        mp_err_set(&err, MP_IO, "no temporary file could be made");
    code = spool ? mp_compact_make(group, spool, &err, &work->result->fault, &work->made) : MP_IO;
    work->result->end = code ? end_of(code) : MP_GROUP_COMPACTED;
    if (work->result->end == MP_GROUP_FAILED)
        work->result->fault = UINT32_MAX; /* no file's fault */
    code = MP_OK;
    if (work->result->end == MP_GROUP_COMPACTED) {
        /* the inputs' footers and vectors were compared with the catalog */
        assert((work->made.footer ? work->made.footer->rows : 0) == work->rows - work->deleted);
        if (work->made.footer)
            code = put_object(work, spool, &err);
    }
    if (!code && work->result->end != MP_GROUP_COMPACTED)
        log_left(work, &err);
    else if (!code)
        code = mp_tx_run(group->call, group->catalog, commit, work);
    work->result->bytes = (int64_t)work->made.bytes;
    work->result->made_file = work->made.footer;
    if (spool)
        fclose(spool);
    return code == MP_CHANGED ? MP_OK : code;
}

enum mp_code mp_compact_group(struct mp_compact_group *group, struct mp_group_result *ret)
{
    struct mp_group_result result = {.end = MP_GROUP_CLAIMED, .fault = UINT32_MAX};
    struct work work = {.group = group, .result = &result};
    enum mp_code code;

    assert(group->count > 0);
    for (uint32_t i = 0; i < group->count; i++) {
        work.rows += group->files[i]->records;
        work.deleted += group->files[i]->vector_rows;
        work.bytes += group->files[i]->request.file_size_bytes;
    }
    add_ids(group, &work.ids, &work.vectors);
    work.ids_value = mp_sql_array_value(&work.ids);
    work.vectors_value = mp_sql_array_value(&work.vectors);
    code = mp_tx_run(group->call, group->catalog, claim, &work);
    mp_sql_give(group->call->server->pool, &group->call->sql);
    if (!code && work.claim_id) {
        code = make_and_commit(&work);
        if (code || result.end != MP_GROUP_COMPACTED)
            release(&work);
    }
    if (!code)
        *ret = result;
    mp_sql_array_fini(&work.ids);
    mp_sql_array_fini(&work.vectors);
    return code;
}
