/* lake/ducklake/append.c - files and ranges committed, in one transaction, exactly once.
 *
 *     1  begin, claim a snapshot with the file ids, swap the offsets, raise the table statistics
 *     2  (only when schema_version has moved) are table, columns and partition spec still ours?
 *     3  rows of files, column statistics, partition values, changes
 *     4  commit
 *
 * Each line is one round trip in PostgreSQL. What a commit costs depends on its files and their
 * columns: the tables of the catalog have no indexes beside their primary keys, so a look at
 * ducklake_column or the like reads the whole catalog, and is made only after DDL somewhere.
 *
 * A1  a lost race runs 1 to 4 again with the same expected offsets; files stay where they are
 * A2  a lost answer does so too: had the commit landed, the swap finds our own values (O2), or
 *     those of an owner who came after it; then the files tell
 * A3  a table's column statistics are exact or absent. The extension answers min and max from
 *     them and skips tables by them, so our first append to a table removes its rows; the
 *     extension makes none again while there is a row in ducklake_table_stats, which we see to
 */
#include "lake/ducklake/priv.h"
#include "lake/ducklake/layout.h"
#include "lake/ducklake/stats_text.h"
#include "lake/partition_text.h"

#include <assert.h>
#include <stdio.h>

#define STATS_A_TRIP 50000u /* rows of one round trip, and those of one more file */

struct append_context {
    const struct mp_lake_commit *commit;
    uint32_t file_count;
    int64_t snapshot;
    bool already_published;
};

static struct mp_dl_table *table_of(const struct mp_lake_append *append)
{
    /* resolve and evolve lend only tables of this driver */
    return (struct mp_dl_table *)append->table;
}

/* --- what the files say of themselves --- */

/* A file's path as its row has it: relative to the table's directory. *ret_relative false: the
 * object was put elsewhere, as for the table before this one, and the path is absolute. */
static struct mp_str stored_path(struct mp_ducklake *lake, const struct mp_dl_table *table,
                                 struct mp_str key, bool *ret_relative)
{
    *ret_relative = mp_str_starts(key, table->prefix);
    if (*ret_relative)
        return mp_str_n(key.data + table->prefix.size, key.size - table->prefix.size);
    return mp_str_c(
        mp_arena_printf(&lake->scratch, "%.*s%.*s", MP_STR_ARG(lake->data_path), MP_STR_ARG(key)));
}

static void files_send(struct mp_ducklake *lake, const struct mp_lake_append *append,
                       const struct mp_dl_snapshot *snapshot, int64_t file_id, int64_t row_id)
{
    static const struct mp_db_column columns[] = {
        {"data_file_id", MP_DB_INT},      {"table_id", MP_DB_INT},
        {"begin_snapshot", MP_DB_INT},    {"path", MP_DB_TEXT},
        {"path_is_relative", MP_DB_BOOL}, {"file_format", MP_DB_TEXT},
        {"record_count", MP_DB_INT},      {"file_size_bytes", MP_DB_INT},
        {"footer_size", MP_DB_INT},       {"row_id_start", MP_DB_INT},
        {"partition_id", MP_DB_INT},
    };
    const struct mp_dl_table *table = table_of(append);

    mp_db_rows_begin(lake->db, "ducklake_data_file", columns, sizeof(columns) / sizeof(*columns));
    for (uint32_t i = 0; i < append->file_count; i++) {
        const struct mp_lake_file *file = &append->files[i];
        bool relative;
        struct mp_str path = stored_path(lake, table, file->key, &relative);

        mp_db_rows_add(
            lake->db,
            (const struct mp_db_value[]){
                mp_db_int(file_id + i), mp_db_int(table->view.id), mp_db_int(snapshot->id),
                mp_db_text(path), mp_db_bool(relative), mp_db_c("parquet"),
                mp_db_int((int64_t)file->rows), mp_db_int((int64_t)file->bytes),
                mp_db_int(file->footer_bytes), mp_db_int(row_id),
                table->partition_id < 0 ? mp_db_null(MP_DB_INT) : mp_db_int(table->partition_id)});
        row_id += (int64_t)file->rows;
    }
    mp_db_rows_end(lake->db);
}

static struct mp_db_value bound_value(struct mp_buf *buf, const struct mp_column_stats *stats,
                                      bool upper)
{
    mp_buf_clear(buf);
    return mp_dl_bound_text(buf, stats, upper) ? mp_db_text(mp_buf_str(buf))
                                               : mp_db_null(MP_DB_TEXT);
}

/* Many rows are more than one round trip: each has its own time, so that the number of files and
 * columns does not decide whether a commit can land at all. */
static enum mp_code stats_send(struct mp_ducklake *lake, const struct mp_lake_append *append,
                               int64_t file_id, struct mp_err *err)
{
    static const struct mp_db_column columns[] = {
        {"data_file_id", MP_DB_INT},      {"table_id", MP_DB_INT},    {"column_id", MP_DB_INT},
        {"column_size_bytes", MP_DB_INT}, {"value_count", MP_DB_INT}, {"null_count", MP_DB_INT},
        {"min_value", MP_DB_TEXT},        {"max_value", MP_DB_TEXT},  {"contains_nan", MP_DB_BOOL},
    };
    struct mp_buf low = MP_BUF_INIT(4096), high = MP_BUF_INIT(4096);
    uint64_t rows = 0;
    bool begun = false;
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < append->file_count && !code; i++) {
        const struct mp_lake_file *file = &append->files[i];

        if (!begun)
            mp_db_rows_begin(lake->db, "ducklake_file_column_stats", columns,
                             sizeof(columns) / sizeof(*columns));
        for (uint32_t c = 0; c < file->stats_count; c++) {
            const struct mp_column_stats *stats = &file->stats[c];
            bool floats = stats->type.id == MP_TYPE_FLOAT || stats->type.id == MP_TYPE_DOUBLE;

            assert(stats->nulls <= stats->rows);
            assert(stats->rows == file->rows); /* pairs with the writer's own count */
            mp_db_rows_add(lake->db,
                           (const struct mp_db_value[]){
                               mp_db_int(file_id + i), mp_db_int(append->table->id),
                               mp_db_int(stats->field_id),
                               mp_db_int((int64_t)stats->compressed_bytes),
                               mp_db_int((int64_t)(stats->rows - stats->nulls)),
                               mp_db_int((int64_t)stats->nulls), bound_value(&low, stats, false),
                               bound_value(&high, stats, true),
                               floats ? mp_db_bool(stats->nans > 0) : mp_db_null(MP_DB_BOOL)});
        }
        begun = true;
        rows += file->stats_count;
        if (rows < STATS_A_TRIP && i + 1 < append->file_count)
            continue;
        mp_db_rows_end(lake->db);
        if (rows >= STATS_A_TRIP)
            code = mp_db_sync(lake->db, err);
        rows = 0;
        begun = false;
    }
    mp_buf_fini(&low);
    mp_buf_fini(&high);
    return code;
}

static void partitions_send(struct mp_ducklake *lake, const struct mp_lake_append *append,
                            int64_t file_id)
{
    static const struct mp_db_column columns[] = {
        {"data_file_id", MP_DB_INT},
        {"table_id", MP_DB_INT},
        {"partition_key_index", MP_DB_INT},
        {"partition_value", MP_DB_TEXT},
    };
    uint32_t keys = append->table->schema.partition_count;

    if (keys == 0)
        return;
    mp_db_rows_begin(lake->db, "ducklake_file_partition_value", columns,
                     sizeof(columns) / sizeof(*columns));
    for (uint32_t i = 0; i < append->file_count; i++) {
        for (uint32_t k = 0; k < keys; k++) {
            const struct mp_partition_value *value = &append->files[i].partition[k];

            mp_db_rows_add(
                lake->db,
                (const struct mp_db_value[]){
                    mp_db_int(file_id + i), mp_db_int(append->table->id), mp_db_int(k),
                    value->null ? mp_db_null(MP_DB_TEXT)
                                : mp_db_text(mp_lake_partition_text(&lake->scratch, value->text))});
        }
    }
    mp_db_rows_end(lake->db);
}

/* --- is the table still what the files were made for? --- */

static enum mp_code changed(struct mp_err *err, const struct mp_lake_append *append,
                            const char *what)
{
    return mp_err_set(err, MP_CHANGED, "table \"%.*s\" has changed: %s",
                      MP_STR_ARG(append->table->name), what);
}

/* Every column the files hold statistics of, against the columns of schema. Both are in the
 * table's order as a rule, so the search goes on where the last one ended. */
static enum mp_code files_match(const struct mp_lake_append *append, const struct mp_schema *schema,
                                struct mp_err *err)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < append->file_count; i++) {
        for (uint32_t c = 0; c < append->files[i].stats_count; c++) {
            const struct mp_column_stats *stats = &append->files[i].stats[c];
            uint32_t left = schema->column_count;

            for (; left && schema->columns[at].field_id != stats->field_id; left--)
                at = at + 1 < schema->column_count ? at + 1 : 0;
            if (left && mp_type_eq(schema->columns[at].type, stats->type))
                continue;
            return mp_err_set(err, MP_CHANGED, "table \"%.*s\" has changed: column id %d is %s",
                              MP_STR_ARG(append->table->name), (int)stats->field_id,
                              left ? "of another type" : "gone");
        }
    }
    return MP_OK;
}

static enum mp_code still_live(struct mp_ducklake *lake, const struct mp_lake_append *append,
                               struct mp_err *err)
{
    const struct mp_dl_table *table = table_of(append);
    struct mp_dl_table *now = NULL;
    enum mp_code code = mp_dl_table_read(lake, append->table->name, err, &now);

    if (code == MP_NOT_FOUND)
        return changed(err, append, "it is gone");
    if (code == MP_BAD_CONFIG)
        return changed(err, append, "it cannot be written as it is now"); /* resolve says why */
    if (code)
        return code;
    if (now->view.id != append->table->id || !mp_str_eq(now->view.uuid, append->table->uuid))
        code = changed(err, append, "it is another one of the same name");
    else if (now->partition_id != table->partition_id)
        code = changed(err, append, "its partition spec");
    else if (!mp_str_eq(now->prefix, table->prefix))
        code = changed(err, append, "its path");
    else
        code = files_match(append, &now->view.schema, err);
    mp_dl_table_free(now);
    return code;
}

/* --- the transaction --- */

static uint64_t rows_of(const struct mp_lake_append *append)
{
    uint64_t rows = 0;

    for (uint32_t i = 0; i < append->file_count; i++)
        rows += append->files[i].rows;
    return rows;
}

static uint64_t bytes_of(const struct mp_lake_append *append)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < append->file_count; i++)
        bytes += append->files[i].bytes;
    return bytes;
}

/* Raises the table's statistics; the answer holds the first new row id. */
static uint32_t table_stats_send(struct mp_ducklake *lake, const struct mp_lake_append *append)
{
    return MP_DB_SEND(lake->db,
                      "UPDATE ducklake_table_stats SET record_count = record_count + $2,"
                      " next_row_id = next_row_id + $2, file_size_bytes = file_size_bytes + $3"
                      " WHERE table_id = $1 RETURNING next_row_id - $2",
                      mp_db_int(append->table->id), mp_db_int((int64_t)rows_of(append)),
                      mp_db_int((int64_t)bytes_of(append)));
}

/* The first row id where the table had no statistics, which this makes. */
static enum mp_code table_stats_make(struct mp_ducklake *lake, const struct mp_lake_append *append,
                                     struct mp_err *err, int64_t *ret_row_id)
{
    const struct mp_db_result *answer;
    uint32_t number;
    int64_t rows, next, bytes;
    enum mp_code code;

    number = MP_DB_SEND(lake->db,
                        "SELECT SUM(record_count), MAX(row_id_start + record_count),"
                        " SUM(file_size_bytes) FROM ducklake_data_file WHERE table_id = $1",
                        mp_db_int(append->table->id));
    code = mp_db_sync(lake->db, err);
    if (code)
        return code;
    answer = mp_db_result(lake->db, number);
    rows = mp_db_number(answer, 0, 0, 0);
    next = mp_db_number(answer, 0, 1, 0);
    bytes = mp_db_number(answer, 0, 2, 0);
    MP_DB_SEND(lake->db,
               "INSERT INTO ducklake_table_stats (table_id, record_count, next_row_id,"
               " file_size_bytes) VALUES ($1, $2, $3, $4)",
               mp_db_int(append->table->id), mp_db_int(rows + (int64_t)rows_of(append)),
               mp_db_int(next + (int64_t)rows_of(append)),
               mp_db_int(bytes + (int64_t)bytes_of(append)));
    *ret_row_id = next;
    return MP_OK;
}

static void extra_info(struct mp_buf *ret, const struct mp_ducklake *lake,
                       const struct mp_lake_commit *commit)
{
    mp_buf_add_c(ret, "{\"millpond\":");
    mp_buf_add_json(ret, lake->version);
    mp_buf_add_c(ret, ",\"group\":");
    mp_buf_add_json(ret, lake->group);
    mp_buf_add_c(ret, ",\"topic\":");
    mp_buf_add_json(ret, lake->topic);
    mp_buf_add_c(ret, ",\"ranges\":[");
    for (uint32_t i = 0; i < commit->range_count; i++) {
        const struct mp_lake_range *range = &commit->ranges[i];

        mp_buf_printf(ret,
                      "%s{\"partition\":%d,\"first\":%lld,\"next\":%lld,\"records\":%llu,"
                      "\"rows\":%llu,\"skipped\":%llu,\"quarantined\":%llu}",
                      i ? "," : "", (int)range->partition, (long long)range->first,
                      (long long)range->next, (unsigned long long)range->records,
                      (unsigned long long)range->rows, (unsigned long long)range->skipped,
                      (unsigned long long)range->quarantined);
    }
    mp_buf_add_c(ret, "]}");
}

static void changes_send(struct mp_ducklake *lake, const struct append_context *context,
                         int64_t snapshot)
{
    const struct mp_lake_commit *commit = context->commit;
    struct mp_buf changes = MP_BUF_INIT(4096), extra = MP_BUF_INIT((size_t)64 << 20);
    uint64_t rows = 0;
    const char *message;

    for (uint32_t i = 0; i < commit->append_count; i++) {
        rows += rows_of(&commit->appends[i]);
        if (commit->appends[i].file_count)
            mp_buf_printf(&changes, "%sinserted_into_table:%lld", changes.size ? "," : "",
                          (long long)commit->appends[i].table->id);
    }
    message = mp_arena_printf(&lake->scratch, "records=%llu files=%u trigger=%.*s millpond=%.*s",
                              (unsigned long long)rows, context->file_count,
                              MP_STR_ARG(commit->trigger), MP_STR_ARG(lake->version));
    extra_info(&extra, lake, commit);
    mp_dl_changes_send(lake, snapshot, mp_buf_str(&changes), mp_str_c(message), mp_buf_str(&extra));
    mp_buf_fini(&changes);
    mp_buf_fini(&extra);
}

/* Where no side row tells what became of an earlier attempt, the row of a file does. */
static enum mp_code landed_before(struct mp_ducklake *lake, struct append_context *context,
                                  struct mp_err *err)
{
    const struct mp_lake_append *append = context->commit->appends;
    const struct mp_db_result *answer;
    struct mp_str path;
    bool relative;
    uint32_t number;
    enum mp_code code;

    while (append->file_count == 0) /* one of them has files */
        append++;
    path = stored_path(lake, table_of(append), append->files[0].key, &relative);
    number = MP_DB_SEND(lake->db,
                        "SELECT begin_snapshot FROM ducklake_data_file WHERE table_id = $1"
                        " AND path = $2",
                        mp_db_int(append->table->id), mp_db_text(path));
    code = mp_db_sync(lake->db, err);
    if (code)
        return code;
    answer = mp_db_result(lake->db, number);
    context->already_published = answer->rows > 0;
    if (answer->rows)
        context->snapshot = mp_db_number(answer, 0, 0, -1);
    return MP_OK;
}

/* The swap's answer, read before anything else is believed: A2. To call it fenced has the files
 * removed, so that must be true of every attempt. */
static enum mp_code swap_read(struct mp_ducklake *lake, struct append_context *context,
                              uint32_t number, struct mp_err *err)
{
    const struct mp_lake_commit *commit = context->commit;
    struct mp_err fenced;
    enum mp_code code;

    if (mp_db_result(lake->db, number)->changed == (int64_t)commit->range_count)
        return MP_OK;
    code =
        mp_dl_swap_settle(lake, commit->ranges, commit->range_count, &fenced, &context->snapshot);
    context->already_published = code == MP_OK;
    if (code == MP_FENCED && context->file_count) {
        code = landed_before(lake, context, err);
        if (code || context->already_published)
            return code;
        code = MP_FENCED;
    }
    if (code && err)
        *err = fenced;
    return code;
}

static enum mp_code offsets_work(struct mp_ducklake *lake, void *context_of_any, struct mp_err *err,
                                 bool *ret_keep)
{
    struct append_context *context = context_of_any;
    const struct mp_lake_commit *commit = context->commit;
    uint32_t swap;
    enum mp_code code;

    context->already_published = false;
    context->snapshot = -1;
    mp_db_begin(lake->db, MP_DB_WRITE);
    swap = mp_dl_swap_send(lake, commit->ranges, commit->range_count, NULL);
    code = mp_db_sync(lake->db, err);
    if (!code)
        code = swap_read(lake, context, swap, err);
    context->snapshot = -1; /* none is this commit's own */
    *ret_keep = !context->already_published;
    return code;
}

static enum mp_code append_rows(struct mp_ducklake *lake, const struct mp_lake_append *append,
                                const struct mp_dl_snapshot *snapshot, int64_t file_id,
                                int64_t row_id, struct mp_err *err)
{
    const struct mp_dl_table *table = table_of(append);
    enum mp_code code = MP_OK;

    if (row_id < 0)
        code = table_stats_make(lake, append, err, &row_id);
    if (code)
        return code;
    files_send(lake, append, snapshot, file_id, row_id);
    code = stats_send(lake, append, file_id, err);
    if (code)
        return code;
    partitions_send(lake, append, file_id);
    if (!table->settled) {
        MP_DB_SEND(lake->db, "DELETE FROM ducklake_table_column_stats WHERE table_id = $1", /* A3 */
                   mp_db_int(table->view.id));
        mp_dl_inlining_off_send(lake, table->view.id, false);
    }
    return MP_OK;
}

static enum mp_code append_work(struct mp_ducklake *lake, void *context_of_any, struct mp_err *err,
                                bool *ret_keep)
{
    struct append_context *context = context_of_any;
    const struct mp_lake_commit *commit = context->commit;
    struct mp_dl_snapshot snapshot;
    uint32_t claim, swap = 0, *stats;
    int64_t *row_ids, file_id;
    enum mp_code code;

    context->already_published = false;
    stats = mp_arena_take(&lake->scratch, sizeof(*stats) * commit->append_count);
    row_ids = mp_arena_take(&lake->scratch, sizeof(*row_ids) * commit->append_count);

    mp_db_begin(lake->db, MP_DB_WRITE);
    claim = mp_dl_snapshot_send(lake, context->file_count); /* L1 */
    if (commit->range_count)
        swap = mp_dl_swap_send(lake, commit->ranges, commit->range_count,
                               table_of(&commit->appends[0]));
    for (uint32_t i = 0; i < commit->append_count; i++)
        if (commit->appends[i].file_count)
            stats[i] = table_stats_send(lake, &commit->appends[i]);
    code = mp_db_sync(lake->db, err);
    if (!code)
        code = mp_dl_snapshot_read(lake, claim, context->file_count, err, &snapshot);
    if (code)
        return code;
    for (uint32_t i = 0; i < commit->append_count; i++) {
        const struct mp_db_result *answer = mp_db_result(lake->db, stats[i]);

        /* of an append without files the number is 0: read and not used */
        row_ids[i] = answer->rows ? mp_db_number(answer, 0, 0, -1) : -1;
    }
    if (commit->range_count)
        code = swap_read(lake, context, swap, err);
    else
        code = landed_before(lake, context, err);
    if (code || context->already_published) {
        *ret_keep = false;
        return code;
    }

    file_id = snapshot.next_file;
    for (uint32_t i = 0; i < commit->append_count; i++) {
        const struct mp_lake_append *append = &commit->appends[i];
        struct mp_dl_table *table = table_of(append);

        if (append->file_count == 0)
            continue;
        if (table->schema_version != snapshot.schema_version)
            code = still_live(lake, append, err);
        else
            code = files_match(append, &append->table->schema, err);
        if (code)
            return code;
        table->schema_version = snapshot.schema_version; /* true whatever becomes of this commit */
    }
    for (uint32_t i = 0; i < commit->append_count; i++) {
        if (commit->appends[i].file_count == 0)
            continue;
        code = append_rows(lake, &commit->appends[i], &snapshot, file_id, row_ids[i], err);
        if (code)
            return code;
        file_id += commit->appends[i].file_count;
    }
    changes_send(lake, context, snapshot.id);
    code = mp_db_sync(lake->db, err);
    context->snapshot = snapshot.id;
    return code;
}

enum mp_code mp_dl_append(struct mp_lake *self, const struct mp_lake_commit *commit,
                          struct mp_err *err, struct mp_lake_result *ret)
{
    struct mp_ducklake *lake = (struct mp_ducklake *)self;
    struct append_context context = {.commit = commit, .snapshot = -1};
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < commit->append_count; i++)
        context.file_count += commit->appends[i].file_count;
    if (context.file_count)
        code = mp_dl_transact(lake, append_work, &context, err);
    else if (commit->range_count)
        code = mp_dl_transact(lake, offsets_work, &context, err);
    if (code) {
        mp_err_add(err, "commit %u files", context.file_count);
        return code;
    }
    mp_dl_swap_done(lake, commit->ranges, commit->range_count);
    for (uint32_t i = 0; i < commit->append_count; i++)
        if (commit->appends[i].file_count)
            table_of(&commit->appends[i])->settled = true;
    *ret = (struct mp_lake_result){context.snapshot, context.already_published};
    return MP_OK;
}
