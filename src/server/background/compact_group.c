/* server/background/compact_group.c - one group of files becomes one file. See compact_priv.h.
 *
 * In this order, so that a crash anywhere leaves no half work and no object that nobody knows:
 *     claim   a row says that these files are taken; it runs out by itself
 *     join    into a temporary file, which has no name
 *     ticket  the new object's path is queued for removal, in the future
 *     upload
 *     commit  under the catalog's lock: the inputs are looked at again; ticket and claim go, the
 *             inputs end, the new file begins, all in one snapshot
 *
 * Always  C1 an object that cleanup may already have taken is never committed: the commit deletes
 *            the ticket, and only while it still lies in the future
 *         C2 live totals move by what the files differ in; the row count stays
 */
#include "server/background/compact_priv.h"

#include "server/tx/commit.h"

#include <assert.h>
#include <stdio.h>
#include <sys/mman.h>

/* --- what a join is asked for --- */

static enum mp_codec codec_of(struct mp_str name)
{
    static const struct {
        const char *name;
        enum mp_codec codec;
    } codecs[] = {{"zstd", MP_CODEC_ZSTD},
                  {"snappy", MP_CODEC_SNAPPY},
                  {"lz4_raw", MP_CODEC_LZ4_RAW},
                  {"uncompressed", MP_CODEC_NONE}};

    for (size_t i = 0; i < sizeof(codecs) / sizeof(*codecs); i++)
        if (mp_str_eq(name, mp_str_c(codecs[i].name)))
            return codecs[i].codec;
    assert(!"settings.c lets no other through");
    return MP_CODEC_ZSTD;
}

struct mp_parquet_join_options mp_compact_options(const struct mp_server *server)
{
    return (struct mp_parquet_join_options){
        .created_by = MP_STR("hoglaked"),
        .row_ids = true,
        .row_id_name = MP_ROW_ID_NAME,
        .row_id_field_id = MP_ROW_ID_FIELD_ID,
        .codec = codec_of(server->settings->HOGLAKE_COMPACTION_CODEC),
        .level = (int)server->settings->HOGLAKE_COMPACTION_ZSTD_LEVEL,
    };
}

struct mp_parquet_join_input mp_compact_input(const struct mp_compact_file *file)
{
    return (struct mp_parquet_join_input){.footer = file->footer,
                                          .row_id_start = file->row_id_start};
}

/* --- claim and ticket --- */

static void add_ids(const struct mp_compact_group *group, struct mp_sql_array *ids)
{
    mp_sql_array_init(ids, MP_PG_INT8_ARRAY);
    for (uint32_t i = 0; i < group->count; i++)
        mp_sql_array_int(ids, group->files[i]->file_id);
}

/* What the transactions of a group share. */
struct work {
    struct mp_compact_group *group;
    struct mp_sql_array ids;
    struct mp_v ids_value;
    int64_t claim_id; /* 0: the files are another's */
    struct mp_str path;
    const struct mp_parquet_joined *joined;
    struct mp_footer told;
    int64_t rows, bytes; /* of the inputs */
    enum mp_group_end end;
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
        MP_SQL(call->sql,
               "UPDATE hog_file_removal SET claimed_us = NULL WHERE catalog_id = $1 AND path = $2"
               " AND drained_us IS NULL AND claimed_us > hog_now_us()",
               mp_v_int(work->group->catalog_id), mp_v_text(work->path));
    mp_sql_sync(call->sql, &ignored);
}

/* --- join and upload --- */

struct source {
    struct mp_objects *objects;
    struct mp_str path;
};

static enum mp_code read_source(void *context, uint64_t offset, size_t size, char *ret,
                                struct mp_err *err)
{
    struct source *source = context;

    return mp_object_read(source->objects, source->path, offset, size, ret, err);
}

static enum mp_code write_spool(void *context, struct mp_str bytes, struct mp_err *err)
{
    if (fwrite(bytes.data, 1, bytes.size, context) != bytes.size)
        return mp_err_set(err, MP_IO, "the temporary file: write failed");
    return MP_OK;
}

static enum mp_code join(struct work *work, FILE *spool, struct mp_err *err,
                         struct mp_parquet_joined *ret)
{
    struct mp_compact_group *group = work->group;
    struct mp_parquet_join_options options = mp_compact_options(group->call->server);
    struct mp_parquet_join_output output = {write_spool, spool};
    struct mp_parquet_join_input *inputs =
        mp_arena_take(group->arena, group->count * sizeof(*inputs));
    struct source *sources = mp_arena_take(group->arena, group->count * sizeof(*sources));
    enum mp_code code;

    for (uint32_t i = 0; i < group->count; i++) {
        sources[i] = (struct source){mp_background_objects(group->call->server),
                                     group->files[i]->request.path};
        inputs[i] = mp_compact_input(group->files[i]);
        inputs[i].read = read_source;
        inputs[i].context = &sources[i];
        if (group->files[i]->file_id > group->files[options.names_from]->file_id)
            options.names_from = i; /* the newest has the newest names */
    }
    code = mp_parquet_join(group->arena, inputs, group->count, &options, &output, err, ret);
    if (!code && fflush(spool))
        code = mp_err_set(err, MP_IO, "the temporary file: write failed");
    return code;
}

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

/* Looks at the inputs again, under the lock. MP_CHANGED: the group is left alone, see end. */
static enum mp_code check_inputs(struct mp_tx *tx, struct work *work)
{
    uint32_t state, ticket;
    enum mp_code code;

    state =
        MP_SQL(tx->sql,
               "SELECT count(*), count(d.delete_file_id) FROM hog_data_file f"
               " JOIN hog_table t USING (catalog_id, table_id)"
               " LEFT JOIN hog_delete_file d ON d.catalog_id = f.catalog_id"
               "  AND d.data_file_id = f.data_file_id AND " MP_SQL_NULL(
                   "d.end_snapshot") " WHERE f.catalog_id = $1 AND f.data_file_id = ANY ($2)"
                                     " AND f.end_snapshot IS NULL AND t.dropped_snapshot IS NULL",
               mp_v_int(tx->catalog_id), work->ids_value);
    ticket = MP_SQL(tx->sql,
                    "DELETE FROM hog_file_removal WHERE catalog_id = $1 AND path = $2"
                    " AND drained_us IS NULL AND claimed_us > hog_now_us()", /* C1 */
                    mp_v_int(tx->catalog_id), mp_v_text(work->path));
    code = mp_tx_sync(tx);
    if (code)
        return code;
    work->end = MP_GROUP_COMPACTED;
    if (mp_sql_int(tx->sql, state, 0, 0, 0) != work->group->count)
        work->end = MP_GROUP_CONFLICT;
    else if (mp_sql_int(tx->sql, state, 0, 1, 0))
        work->end = MP_GROUP_DELETED;
    else if (mp_sql_changed(tx->sql, ticket) != 1)
        work->end = MP_GROUP_FAILED;
    return work->end == MP_GROUP_COMPACTED
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
           mp_v_int(tx->head), mp_v_text(work->path), mp_v_int(work->rows),
           mp_v_int((int64_t)work->joined->bytes),
           mp_v_int((int64_t)work->joined->footer->footer_bytes), mp_sql_array_value(&splits),
           mp_v_bool(work->told.split_count > 0));
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
    send_file(tx, work, tx->next_file++);
    MP_SQL(tx->sql, /* C2 */
           "UPDATE hog_table_stats SET live_files = live_files + 1 - $3,"
           " live_bytes = live_bytes + $4 WHERE catalog_id = $1 AND table_id = $2",
           mp_v_int(tx->catalog_id), mp_v_int(work->group->table_id), mp_v_int(work->group->count),
           mp_v_int((int64_t)work->joined->bytes - work->bytes));
    MP_SQL(tx->sql, "DELETE FROM hog_compaction_claim WHERE catalog_id = $1 AND claim_id = $2",
           mp_v_int(tx->catalog_id), mp_v_int(work->claim_id));
    return mp_tx_sync(tx);
}

/* --- all of it --- */

static enum mp_group_end end_of(enum mp_code code)
{
    return code == MP_REFUSED                            ? MP_GROUP_SCHEMA
           : code == MP_BAD_DATA || code == MP_NOT_FOUND ? MP_GROUP_INVALID
                                                         : MP_GROUP_FAILED;
}

static enum mp_code join_and_commit(struct work *work, int64_t *ret_bytes)
{
    struct mp_compact_group *group = work->group;
    struct mp_call *call = group->call;
    FILE *spool = tmpfile();
    struct mp_parquet_joined joined;
    struct mp_err err;
    enum mp_code code;

    if (!spool)
        mp_err_set(&err, MP_IO, "no temporary file could be made");
    code = spool ? join(work, spool, &err, &joined) : MP_IO;
    if (code) {
        work->end = end_of(code);
        goto left;
    }
    assert(joined.footer->rows == work->rows); /* the inputs' footers were compared with it */
    work->joined = &joined;
    mp_footer_tell(group->arena, joined.footer, group->columns, &work->told);
    work->path = new_path(group);
    code = queue_ticket(work);
    if (code)
        goto out;
    code = upload(work, spool, joined.bytes, &err);
    if (code) {
        work->end = MP_GROUP_FAILED;
        goto left;
    }
    code = mp_tx_run(call, group->catalog, commit, work);
    *ret_bytes = (int64_t)joined.bytes;
    if (code == MP_CHANGED)
        code = MP_OK;
    goto out;
left:
    mp_log(call->server->log, MP_LOG_WARN, "hoglake.compaction",
           "%u files of table %lld are left alone: %s", group->count, (long long)group->table_id,
           err.text);
    code = MP_OK;
out:
    if (spool)
        fclose(spool);
    return code;
}

enum mp_code mp_compact_group(struct mp_compact_group *group, enum mp_group_end *ret_end,
                              int64_t *ret_bytes)
{
    struct work work = {.group = group, .end = MP_GROUP_CLAIMED};
    enum mp_code code;

    assert(group->count >= 2);
    for (uint32_t i = 0; i < group->count; i++) {
        work.rows += group->files[i]->records;
        work.bytes += group->files[i]->request.file_size_bytes;
    }
    add_ids(group, &work.ids);
    work.ids_value = mp_sql_array_value(&work.ids);
    code = mp_tx_run(group->call, group->catalog, claim, &work);
    mp_sql_give(group->call->server->pool, &group->call->sql);
    if (!code && work.claim_id) {
        code = join_and_commit(&work, ret_bytes);
        if (code || work.end != MP_GROUP_COMPACTED)
            release(&work);
    }
    if (!code)
        *ret_end = work.end;
    mp_sql_array_fini(&work.ids);
    return code;
}
