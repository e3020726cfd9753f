/* server/tx/files.c - data files that come in: their rules, their statistics, their rows.
 * See commit.h. */
#include "server/names.h"

#include "base/base64.h"
#include "server/tx/commit.h"

#include <assert.h>

#define RECORDS_MAX (INT64_C(1) << 48)

enum { SPLITS_MAX = 100000, OFFENDERS_SHOWN = 5 };

/* --- types by field id --- */

struct mp_field_types {
    int64_t count; /* ids below it */
    struct {
        const char *path; /* NULL: no such column */
        enum mp_hog_type type;
    } items[];
};

static void note_field(void *self, const struct mp_column_place *place)
{
    struct mp_field_types *types = self;

    if (place->column->field_id >= types->count)
        return;
    types->items[place->column->field_id].path = place->path;
    types->items[place->column->field_id].type = place->type;
}

static int64_t largest_id(struct mp_columns columns)
{
    int64_t largest = 0;

    for (uint32_t i = 0; i < columns.count; i++) {
        int64_t below = largest_id(
            (struct mp_columns){columns.items[i].children, columns.items[i].child_count});

        if (columns.items[i].field_id > largest)
            largest = columns.items[i].field_id;
        if (below > largest)
            largest = below;
    }
    return largest;
}

struct mp_field_types *mp_field_types_new(struct mp_arena *arena, struct mp_columns columns)
{
    int64_t count = largest_id(columns) + 1;
    struct mp_field_types *types =
        mp_arena_take(arena, sizeof(*types) + (size_t)count * sizeof(types->items[0]));

    types->count = count;
    mp_columns_walk(arena, columns, note_field, types);
    return types;
}

/* --- paths --- */

enum mp_code mp_paths_check(struct mp_call *call, struct mp_str data_path,
                            const struct mp_wire_commit *request)
{
    struct mp_buf bad = MP_BUF_INIT(64 * 1024);
    uint32_t count = 0;
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < request->append_count + request->delete_count; i++) {
        bool deletes = i >= request->append_count;
        const struct mp_wire_append *append = deletes ? NULL : &request->appends[i];
        const struct mp_wire_delete *group =
            deletes ? &request->deletes[i - request->append_count] : NULL;
        uint32_t files = deletes ? group->file_count : append->file_count;

        for (uint32_t k = 0; k < files; k++) {
            struct mp_str path = deletes ? group->files[k].path : append->files[k].path;

            if (mp_object_path(data_path, path))
                continue;
            if (count++ < OFFENDERS_SHOWN)
                mp_buf_printf(&bad, "%s\"%.*s\"", count > 1 ? ", " : "",
                              path.size > 200 ? 200 : (int)path.size, path.data);
        }
    }
    if (count)
        code = mp_refuse_invalid(call, "%u paths do not lie below the catalog's data_path: %.*s",
                                 count, MP_STR_ARG(mp_buf_str(&bad)));
    mp_buf_fini(&bad);
    return code;
}

/* --- rules --- */

static enum mp_code check_splits(struct mp_call *call, const struct mp_wire_file *file)
{
    if (!file->has_splits)
        return MP_OK;
    if (file->split_count < 1 || file->split_count > SPLITS_MAX)
        return mp_refuse_invalid(call, "split_offsets must have 1 to %d entries", SPLITS_MAX);
    for (uint32_t i = 0; i < file->split_count; i++)
        if (file->split_offsets[i] < (i ? file->split_offsets[i - 1] + 1 : 0) ||
            file->split_offsets[i] >= file->file_size_bytes)
            return mp_refuse_invalid(
                call, "split_offsets must grow strictly, from 0 on, below file_size_bytes");
    return MP_OK;
}

static enum mp_code check_partition(struct mp_call *call, const struct mp_files_target *target,
                                    const struct mp_wire_file *file)
{
    if (!target->partition_count && file->has_partition)
        return mp_refuse_invalid(call, "partition_values were given, but the table is not "
                                       "partitioned");
    if (target->partition_count && !file->has_partition)
        return mp_refuse_invalid(call,
                                 "partition_values are required: the table is partitioned "
                                 "by %u keys",
                                 target->partition_count);
    if (file->partition_count != target->partition_count)
        return mp_refuse_invalid(call, "%u partition_values were given for %u keys",
                                 file->partition_count, target->partition_count);
    return MP_OK;
}

static bool drop(struct mp_str *bound)
{
    bool had = bound->data;

    *bound = (struct mp_str){NULL, 0};
    return had;
}

/* Statistics are repaired, not refused. True: something was. */
static bool repair(struct mp_arena *arena, enum mp_hog_type type, struct mp_wire_stats *stats)
{
    bool floats = type == MP_HOG_FLOAT || type == MP_HOG_DOUBLE, repaired = false;

    if (stats->null_count > stats->value_count) {
        stats->null_count = stats->value_count;
        repaired = true;
    }
    if (stats->has_nan_count && (stats->nan_count < 0 || !floats)) {
        stats->has_nan_count = false;
        repaired = true;
    }
    if (stats->has_nan_count && stats->nan_count > stats->value_count - stats->null_count) {
        stats->nan_count = stats->value_count - stats->null_count;
        repaired = true;
    }
    if (stats->has_size && stats->size_bytes < 0) {
        stats->has_size = false;
        repaired = true;
    }
    if (stats->value_count == stats->null_count) {
        repaired |= drop(&stats->lower);
        repaired |= drop(&stats->upper);
    }
    if (stats->lower.data && !mp_hog_bound_valid(type, stats->lower))
        repaired |= drop(&stats->lower);
    if (stats->upper.data && !mp_hog_bound_valid(type, stats->upper))
        repaired |= drop(&stats->upper);
    if (stats->lower.data)
        stats->lower = mp_hog_bound_zero(arena, type, stats->lower, false);
    if (stats->upper.data)
        stats->upper = mp_hog_bound_zero(arena, type, stats->upper, true);
    if (stats->lower.data && stats->upper.data &&
        mp_hog_bound_cmp(type, stats->lower, stats->upper) > 0) {
        drop(&stats->lower);
        drop(&stats->upper);
        repaired = true;
    }
    return repaired;
}

static int by_field(const void *a, const void *b)
{
    const struct mp_wire_stats *x = a, *y = b;

    return (x->field_id > y->field_id) - (x->field_id < y->field_id);
}

static enum mp_code check_stats(struct mp_call *call, struct mp_arena *arena,
                                const struct mp_files_target *target, struct mp_wire_file *file,
                                uint32_t *repaired)
{
    const struct mp_field_types *fields = target->fields;

    if (file->stats_count)
        qsort(file->stats, file->stats_count, sizeof(*file->stats), by_field);
    for (uint32_t i = 0; i < file->stats_count; i++) {
        struct mp_wire_stats *stats = &file->stats[i];
        int64_t id = stats->field_id;

        if (id < 1 || id >= fields->count || !fields->items[id].path)
            return mp_refuse_invalid(call, "column_stats: field id %lld is no column of the table",
                                     (long long)id);
        if (i && file->stats[i - 1].field_id == id)
            return mp_refuse_invalid(call, "column_stats: field id %lld stands there twice",
                                     (long long)id);
        if (mp_hog_types[fields->items[id].type].container ||
            fields->items[id].type == MP_HOG_VARIANT)
            return mp_refuse_invalid(call, "column_stats: column %.200s is a %s, which has none",
                                     fields->items[id].path,
                                     mp_hog_types[fields->items[id].type].name);
        if (stats->value_count < 0 || stats->null_count < 0)
            return mp_refuse_invalid(call, "column_stats: counts of column %.200s are negative",
                                     fields->items[id].path);
        *repaired += repair(arena, fields->items[id].type, stats);
    }
    return MP_OK;
}

enum mp_code mp_footer_size_check(struct mp_call *call, const struct mp_wire_file *file)
{
    if (file->has_footer_size &&
        (file->footer_size < 0 || file->footer_size > file->file_size_bytes - 8))
        return mp_refuse_invalid(call, "footer_size %lld does not fit a file of %lld bytes",
                                 (long long)file->footer_size, (long long)file->file_size_bytes);
    return MP_OK;
}

enum mp_code mp_files_check(struct mp_call *call, struct mp_arena *arena,
                            const struct mp_files_target *target, struct mp_wire_file *files,
                            uint32_t count)
{
    uint32_t repaired = 0;
    int64_t records = 0, bytes = 0;
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < count && !code; i++) {
        struct mp_wire_file *file = &files[i];

        if (!file->path.size)
            return mp_refuse_invalid(call, "a file's path is blank");
        if (file->format.data && !mp_str_eq(file->format, MP_STR("parquet")))
            return mp_refuse_invalid(call, "file_format must be parquet");
        if (file->record_count < 0 || file->record_count > RECORDS_MAX)
            return mp_refuse_invalid(call, "record_count %lld is outside of 0 to 2^48",
                                     (long long)file->record_count);
        if (file->file_size_bytes < 0)
            return mp_refuse_invalid(call, "file_size_bytes %lld is negative",
                                     (long long)file->file_size_bytes);
        if (mp_footer_size_check(call, file))
            return MP_REFUSED;
        if (__builtin_add_overflow(records, file->record_count, &records) ||
            __builtin_add_overflow(bytes, file->file_size_bytes, &bytes))
            return mp_refuse_invalid(call, "the sums of the files' records or bytes overflow");
        code = check_splits(call, file);
        if (!code)
            code = check_partition(call, target, file);
        if (!code)
            code = check_stats(call, arena, target, file, &repaired);
    }
    if (!code && repaired) {
        mp_server_metrics_add(call->server->metrics, MP_SM_REPAIRED, "commit", repaired);
        mp_log(call->server->log, MP_LOG_WARN, "hoglake.commit",
               "request %s: %u rows of statistics were repaired", call->request_id, repaired);
    }
    return code;
}

/* --- rows --- */

void mp_file_rows_init(struct mp_file_rows *rows)
{
    *rows = (struct mp_file_rows){0};
    mp_sql_array_init(&rows->ids, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&rows->tables, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&rows->snapshots, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&rows->paths, MP_PG_TEXT_ARRAY);
    mp_sql_array_init(&rows->records, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&rows->sizes, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&rows->footers, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&rows->row_offsets, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&rows->states, MP_PG_TEXT_ARRAY);
    mp_sql_array_init(&rows->specs, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&rows->partitions, MP_PG_TEXT_ARRAY);
    mp_sql_array_init(&rows->splits, MP_PG_TEXT_ARRAY);
    mp_sql_array_init(&rows->stats_ids, MP_PG_INT8_ARRAY);
    mp_sql_array_init(&rows->stats, MP_PG_TEXT_ARRAY);
}

void mp_file_rows_fini(struct mp_file_rows *rows)
{
    struct mp_sql_array *const all[] = {
        &rows->ids,        &rows->tables,  &rows->snapshots,   &rows->paths,  &rows->records,
        &rows->sizes,      &rows->footers, &rows->row_offsets, &rows->states, &rows->specs,
        &rows->partitions, &rows->splits,  &rows->stats_ids,   &rows->stats};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        mp_sql_array_fini(all[i]);
}

static void add_base64(struct mp_buf *buf, struct mp_str bytes)
{
    if (!bytes.data) {
        mp_buf_add_c(buf, ",null");
        return;
    }
    mp_buf_add_c(buf, ",\"");
    mp_base64_print(buf, bytes);
    mp_buf_add_byte(buf, '"');
}

static void add_optional(struct mp_buf *buf, bool has, int64_t number)
{
    if (has)
        mp_buf_printf(buf, ",%lld", (long long)number);
    else
        mp_buf_add_c(buf, ",null");
}

/* The form of hog_file_stats.stats, see migrations/001_catalog.sql. */
void mp_file_stats_text(struct mp_buf *buf, const struct mp_wire_file *file)
{
    mp_buf_add_byte(buf, '[');
    for (uint32_t i = 0; i < file->stats_count; i++) {
        const struct mp_wire_stats *stats = &file->stats[i];

        mp_buf_printf(buf, "%s[%lld,%lld,%lld", i ? "," : "", (long long)stats->field_id,
                      (long long)stats->value_count, (long long)stats->null_count);
        add_optional(buf, stats->has_nan_count, stats->nan_count);
        add_optional(buf, stats->has_size, stats->size_bytes);
        add_base64(buf, stats->lower);
        add_base64(buf, stats->upper);
        mp_buf_add_byte(buf, ']');
    }
    mp_buf_add_byte(buf, ']');
}

/* A list as the text of an array, which is how a list travels inside of one. */
static void add_list(struct mp_sql_array *to, struct mp_sql_array *list, bool has)
{
    if (has)
        mp_sql_array_text(to, mp_sql_array_value(list).text);
    else
        mp_sql_array_null(to);
}

void mp_file_rows_add(struct mp_file_rows *rows, const struct mp_wire_file *file, int64_t file_id,
                      int64_t table_id, int64_t snapshot, int64_t row_offset, int64_t spec_id)
{
    struct mp_sql_array values, splits;

    mp_sql_array_init(&values, MP_PG_TEXT_ARRAY);
    mp_sql_array_init(&splits, MP_PG_INT8_ARRAY);
    for (uint32_t i = 0; i < file->partition_count; i++)
        mp_sql_array_text(&values, file->partition_values[i]);
    for (uint32_t i = 0; i < file->split_count; i++)
        mp_sql_array_int(&splits, file->split_offsets[i]);
    mp_sql_array_int(&rows->ids, file_id);
    mp_sql_array_int(&rows->tables, table_id);
    mp_sql_array_int(&rows->snapshots, snapshot);
    mp_sql_array_text(&rows->paths, file->path);
    mp_sql_array_int(&rows->records, file->record_count);
    mp_sql_array_int(&rows->sizes, file->file_size_bytes);
    if (file->has_footer_size)
        mp_sql_array_int(&rows->footers, file->footer_size);
    else
        mp_sql_array_null(&rows->footers);
    mp_sql_array_int(&rows->row_offsets, row_offset);
    mp_sql_array_text(&rows->states, file->has_stats ? MP_STR("provided") : MP_STR("pending"));
    if (spec_id)
        mp_sql_array_int(&rows->specs, spec_id);
    else
        mp_sql_array_null(&rows->specs);
    add_list(&rows->partitions, &values, file->has_partition);
    add_list(&rows->splits, &splits, file->has_splits);
    rows->count++;
    if (file->stats_count) {
        struct mp_buf text = MP_BUF_INIT(SIZE_MAX / 4);

        mp_file_stats_text(&text, file);
        mp_sql_array_int(&rows->stats_ids, file_id);
        mp_sql_array_text(&rows->stats, mp_buf_str(&text));
        rows->stats_count++;
        mp_buf_fini(&text);
    }
    mp_sql_array_fini(&values);
    mp_sql_array_fini(&splits);
}

void mp_file_rows_send(struct mp_tx *tx, struct mp_file_rows *rows)
{
    if (!rows->count)
        return;
    MP_SQL(tx->sql,
           "INSERT INTO hog_data_file (catalog_id, data_file_id, table_id, begin_snapshot, path,"
           " record_count, file_size_bytes, footer_size, row_id_start, stats_state, spec_id,"
           " partition_values, split_offsets)"
           " SELECT $1, f.id, f.table_id, f.snapshot, f.path, f.records, f.bytes, f.footer,"
           " (SELECT s.next_row_id FROM hog_table_stats s WHERE s.catalog_id = $1"
           "  AND s.table_id = f.table_id) + f.row_offset,"
           " f.state, f.spec, f.parts::text[], f.splits::bigint[]"
           " FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
           " AS f(id, table_id, snapshot, path, records, bytes, footer, row_offset, state, spec,"
           " parts, splits)",
           mp_v_int(tx->catalog_id), mp_sql_array_value(&rows->ids),
           mp_sql_array_value(&rows->tables), mp_sql_array_value(&rows->snapshots),
           mp_sql_array_value(&rows->paths), mp_sql_array_value(&rows->records),
           mp_sql_array_value(&rows->sizes), mp_sql_array_value(&rows->footers),
           mp_sql_array_value(&rows->row_offsets), mp_sql_array_value(&rows->states),
           mp_sql_array_value(&rows->specs), mp_sql_array_value(&rows->partitions),
           mp_sql_array_value(&rows->splits));
    if (rows->stats_count)
        MP_SQL(tx->sql,
               "INSERT INTO hog_file_stats (catalog_id, data_file_id, stats)"
               " SELECT $1, s.id, s.stats FROM unnest($2, $3) AS s(id, stats)",
               mp_v_int(tx->catalog_id), mp_sql_array_value(&rows->stats_ids),
               mp_sql_array_value(&rows->stats));
}

void mp_table_gain_send(struct mp_tx *tx, const struct mp_table_gain *gain)
{
    MP_SQL(tx->sql,
           "UPDATE hog_table_stats SET next_row_id = next_row_id + $3, live_rows = live_rows + $3,"
           " live_files = live_files + $4, live_bytes = live_bytes + $5"
           " WHERE catalog_id = $1 AND table_id = $2",
           mp_v_int(tx->catalog_id), mp_v_int(gain->table_id), mp_v_int(gain->records),
           mp_v_int(gain->files), mp_v_int(gain->bytes));
}
