/* lake/ducklake/ddl.c - the empty lake, the side table, the namespace.
 *
 * A lake is 28 tables whose names, column names and physical column order are fixed: the
 * extension inserts whole rows without column lists. Ours always have column lists, so a later
 * version's trailing columns do not break them.
 *
 * Several processes may start at once on nothing. Each makes everything in one transaction that
 * holds the catalog's lock (D2) and looks again inside.
 *
 * After  DuckLake 1.0 "Tables"; sheet, sections 3 and 4.
 */
#include "lake/ducklake/priv.h"
#include "lake/ducklake/layout.h"
#include "lake/ducklake/time.h"

#include <errno.h>
#include <stdio.h>

#define LAKE_VERSION "1.0"

/* %T %U %B: moments, UUIDs and truths, which SQLite keeps as text, text and numbers. */
static const struct {
    const char *name, *columns;
} lake_tables[] = {
    {"ducklake_metadata",
     "key VARCHAR NOT NULL, value VARCHAR NOT NULL, scope VARCHAR, scope_id BIGINT"},
    {"ducklake_snapshot", "snapshot_id BIGINT PRIMARY KEY, snapshot_time %T, schema_version BIGINT,"
                          " next_catalog_id BIGINT, next_file_id BIGINT"},
    {"ducklake_snapshot_changes",
     "snapshot_id BIGINT PRIMARY KEY, changes_made VARCHAR, author VARCHAR,"
     " commit_message VARCHAR, commit_extra_info VARCHAR"},
    {"ducklake_schema", "schema_id BIGINT PRIMARY KEY, schema_uuid %U, begin_snapshot BIGINT,"
                        " end_snapshot BIGINT, schema_name VARCHAR, path VARCHAR,"
                        " path_is_relative %B"},
    {"ducklake_table", "table_id BIGINT, table_uuid %U, begin_snapshot BIGINT, end_snapshot BIGINT,"
                       " schema_id BIGINT, table_name VARCHAR, path VARCHAR, path_is_relative %B"},
    {"ducklake_view", "view_id BIGINT, view_uuid %U, begin_snapshot BIGINT, end_snapshot BIGINT,"
                      " schema_id BIGINT, view_name VARCHAR, dialect VARCHAR, sql VARCHAR,"
                      " column_aliases VARCHAR"},
    {"ducklake_tag", "object_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, key VARCHAR,"
                     " value VARCHAR"},
    {"ducklake_column_tag", "table_id BIGINT, column_id BIGINT, begin_snapshot BIGINT,"
                            " end_snapshot BIGINT, key VARCHAR, value VARCHAR"},
    {"ducklake_data_file",
     "data_file_id BIGINT PRIMARY KEY, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT,"
     " file_order BIGINT, path VARCHAR, path_is_relative %B, file_format VARCHAR,"
     " record_count BIGINT, file_size_bytes BIGINT, footer_size BIGINT, row_id_start BIGINT,"
     " partition_id BIGINT, encryption_key VARCHAR, mapping_id BIGINT, partial_max BIGINT"},
    {"ducklake_file_column_stats",
     "data_file_id BIGINT, table_id BIGINT, column_id BIGINT, column_size_bytes BIGINT,"
     " value_count BIGINT, null_count BIGINT, min_value VARCHAR, max_value VARCHAR,"
     " contains_nan %B, extra_stats VARCHAR"},
    {"ducklake_file_variant_stats",
     "data_file_id BIGINT, table_id BIGINT, column_id BIGINT, variant_path VARCHAR,"
     " shredded_type VARCHAR, column_size_bytes BIGINT, value_count BIGINT, null_count BIGINT,"
     " min_value VARCHAR, max_value VARCHAR, contains_nan %B, extra_stats VARCHAR"},
    {"ducklake_delete_file",
     "delete_file_id BIGINT PRIMARY KEY, table_id BIGINT, begin_snapshot BIGINT,"
     " end_snapshot BIGINT, data_file_id BIGINT, path VARCHAR, path_is_relative %B,"
     " format VARCHAR, delete_count BIGINT, file_size_bytes BIGINT, footer_size BIGINT,"
     " encryption_key VARCHAR, partial_max BIGINT"},
    {"ducklake_column",
     "column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, table_id BIGINT,"
     " column_order BIGINT, column_name VARCHAR, column_type VARCHAR, initial_default VARCHAR,"
     " default_value VARCHAR, nulls_allowed %B, parent_column BIGINT, default_value_type VARCHAR,"
     " default_value_dialect VARCHAR"},
    {"ducklake_table_stats",
     "table_id BIGINT, record_count BIGINT, next_row_id BIGINT, file_size_bytes BIGINT"},
    {"ducklake_table_column_stats",
     "table_id BIGINT, column_id BIGINT, contains_null %B, contains_nan %B, min_value VARCHAR,"
     " max_value VARCHAR, extra_stats VARCHAR"},
    {"ducklake_partition_info",
     "partition_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT"},
    {"ducklake_partition_column", "partition_id BIGINT, table_id BIGINT,"
                                  " partition_key_index BIGINT, column_id BIGINT,"
                                  " transform VARCHAR"},
    {"ducklake_file_partition_value", "data_file_id BIGINT, table_id BIGINT,"
                                      " partition_key_index BIGINT, partition_value VARCHAR"},
    {"ducklake_files_scheduled_for_deletion",
     "data_file_id BIGINT, path VARCHAR, path_is_relative %B, schedule_start %T"},
    {"ducklake_inlined_data_tables", "table_id BIGINT, table_name VARCHAR, schema_version BIGINT"},
    {"ducklake_column_mapping", "mapping_id BIGINT, table_id BIGINT, type VARCHAR"},
    {"ducklake_name_mapping",
     "mapping_id BIGINT, column_id BIGINT, source_name VARCHAR, target_field_id BIGINT,"
     " parent_column BIGINT, is_partition %B"},
    {"ducklake_schema_versions", "begin_snapshot BIGINT, schema_version BIGINT, table_id BIGINT"},
    {"ducklake_macro", "schema_id BIGINT, macro_id BIGINT, macro_name VARCHAR,"
                       " begin_snapshot BIGINT, end_snapshot BIGINT"},
    {"ducklake_macro_impl",
     "macro_id BIGINT, impl_id BIGINT, dialect VARCHAR, sql VARCHAR, type VARCHAR"},
    {"ducklake_macro_parameters",
     "macro_id BIGINT, impl_id BIGINT, column_id BIGINT, parameter_name VARCHAR,"
     " parameter_type VARCHAR, default_value VARCHAR, default_value_type VARCHAR"},
    {"ducklake_sort_info",
     "sort_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT"},
    {"ducklake_sort_expression",
     "sort_id BIGINT, table_id BIGINT, sort_key_index BIGINT, expression VARCHAR,"
     " dialect VARCHAR, sort_direction VARCHAR, null_order VARCHAR"},
};

/* One row a partition; see offsets.c. */
static const char side_columns[] =
    "group_id VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition BIGINT NOT NULL,"
    " next_offset BIGINT NOT NULL, epoch BIGINT NOT NULL, table_id BIGINT, table_uuid VARCHAR,"
    " snapshot_id BIGINT, updated_at %T NOT NULL, PRIMARY KEY (group_id, topic, partition)";

static void create_table_send(struct mp_ducklake *lake, const char *name, const char *columns)
{
    bool sqlite = mp_db_is_sqlite(lake->db);
    struct mp_buf sql = MP_BUF_INIT(8192);

    mp_buf_printf(&sql, "CREATE TABLE %s (", name);
    for (const char *at = columns; *at; at++) {
        if (*at != '%') {
            mp_buf_add_byte(&sql, *at);
            continue;
        }
        at++;
        if (*at == 'B')
            mp_buf_add_c(&sql, sqlite ? "BIGINT" : "BOOLEAN");
        else if (sqlite)
            mp_buf_add_c(&sql, "VARCHAR");
        else
            mp_buf_add_c(&sql, *at == 'T' ? "TIMESTAMP WITH TIME ZONE" : "UUID");
    }
    mp_buf_add_c(&sql, ")");
    mp_db_send(lake->db, mp_buf_c(&sql), NULL, 0);
    mp_buf_fini(&sql);
}

/* Which of the two are there? */
struct present {
    bool lake, side;
};

static enum mp_code look(struct mp_ducklake *lake, struct mp_err *err, struct present *ret)
{
    static const char *const sql[2] = {
        "SELECT to_regclass('ducklake_metadata') IS NOT NULL,"
        " to_regclass('millpond_offsets') IS NOT NULL",
        "SELECT (SELECT count(*) FROM sqlite_master WHERE type = 'table'"
        " AND name = 'ducklake_metadata'),"
        " (SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'millpond_offsets')"};
    uint32_t number = mp_db_send(lake->db, sql[mp_db_is_sqlite(lake->db)], NULL, 0);
    enum mp_code code = mp_db_sync(lake->db, err);

    if (code)
        return code;
    ret->lake = mp_db_truth(mp_db_result(lake->db, number), 0, 0);
    ret->side = mp_db_truth(mp_db_result(lake->db, number), 0, 1);
    return MP_OK;
}

static void metadata_send(struct mp_ducklake *lake, const char *key, struct mp_str value)
{
    MP_DB_SEND(lake->db, "INSERT INTO ducklake_metadata (key, value) VALUES ($1, $2)", mp_db_c(key),
               mp_db_text(value));
}

static void lake_send(struct mp_ducklake *lake)
{
    char uuid[MP_UUID_TEXT], now[MP_DL_TIME_TEXT];

    for (size_t i = 0; i < sizeof(lake_tables) / sizeof(*lake_tables); i++)
        create_table_send(lake, lake_tables[i].name, lake_tables[i].columns);
    /* Not the extension's, which works with it: every append looks one row up here. */
    mp_db_send(lake->db,
               "CREATE INDEX ducklake_table_stats_table_id ON ducklake_table_stats (table_id)",
               NULL, 0);
    mp_dl_time_text(mp_now_wall_us(lake->env), now);
    mp_uuid4(lake->env, uuid);
    MP_DB_SEND(lake->db,
               "INSERT INTO ducklake_snapshot (snapshot_id, snapshot_time, schema_version,"
               " next_catalog_id, next_file_id) VALUES (0, $1, 0, 1, 0)",
               (struct mp_db_value){.kind = MP_DB_TIME, .text = mp_str_c(now)});
    MP_DB_SEND(lake->db,
               "INSERT INTO ducklake_snapshot_changes (snapshot_id, changes_made) VALUES (0, $1)",
               mp_db_c("created_schema:\"main\""));
    MP_DB_SEND(lake->db,
               "INSERT INTO ducklake_schema (schema_id, schema_uuid, begin_snapshot, schema_name,"
               " path, path_is_relative) VALUES (0, $1, 0, 'main', 'main/', $2)",
               mp_db_uuid(uuid), mp_db_bool(true));
    metadata_send(lake, "version", MP_STR(LAKE_VERSION));
    metadata_send(
        lake, "created_by",
        mp_str_c(mp_arena_printf(&lake->scratch, "millpond %.*s", MP_STR_ARG(lake->version))));
    metadata_send(lake, "data_path", lake->data_path);
    metadata_send(lake, "encrypted", MP_STR("false"));
}

static enum mp_code create_work(struct mp_ducklake *lake, void *context, struct mp_err *err,
                                bool *ret_keep)
{
    struct present present;
    enum mp_code code;

    (void)context;
    mp_db_begin(lake->db, MP_DB_WRITE);
    code = look(lake, err, &present);
    if (code)
        return code;
    *ret_keep = !present.lake || !present.side;
    if (!present.lake)
        lake_send(lake);
    if (!present.side)
        create_table_send(lake, "millpond_offsets", side_columns);
    return mp_db_sync(lake->db, err);
}

/* The stored path and the configured one are one path, or there is no configured one. */
static enum mp_code adopt_data_path(struct mp_ducklake *lake, struct mp_str stored,
                                    struct mp_err *err)
{
    struct mp_str path = mp_dl_data_path(&lake->texts, stored, lake->directory);

    if (lake->data_path.size && !mp_str_eq(path, lake->data_path))
        return mp_err_set(err, MP_BAD_CONFIG,
                          "the lake's data path is \"%.*s\", the configured one is \"%.*s\"",
                          MP_STR_ARG(stored), MP_STR_ARG(lake->data_path));
    lake->data_path = path;
    return MP_OK;
}

/* The lake's settings that are not a table's or a namespace's. */
static enum mp_code check_metadata(struct mp_ducklake *lake, struct mp_err *err)
{
    struct mp_str version = {NULL, 0}, encrypted = MP_STR("false"), data_path = {NULL, 0};
    const struct mp_db_result *answer;
    uint32_t number;
    enum mp_code code;

    number = mp_db_send(lake->db,
                        "SELECT key, value FROM ducklake_metadata WHERE scope IS NULL AND"
                        " key IN ('version', 'encrypted', 'data_path')",
                        NULL, 0);
    code = mp_db_sync(lake->db, err);
    if (code)
        return code;
    answer = mp_db_result(lake->db, number);
    for (uint32_t i = 0; i < answer->rows; i++) {
        struct mp_str key = mp_db_cell(answer, i, 0);

        if (mp_str_eq(key, MP_STR("version")))
            version = mp_db_cell(answer, i, 1);
        else if (mp_str_eq(key, MP_STR("encrypted")))
            encrypted = mp_db_cell(answer, i, 1);
        else
            data_path = mp_db_cell(answer, i, 1);
    }
    if (!mp_str_eq(version, MP_STR(LAKE_VERSION))) {
        code = mp_err_set(err, MP_BAD_CONFIG,
                          "the catalog is a lake of version \"%.*s\", not " LAKE_VERSION,
                          MP_STR_ARG(version));
        if (err)
            err->sys = EPROTONOSUPPORT;
        return code;
    }
    if (mp_str_eq_fold(encrypted, MP_STR("true")))
        return mp_err_set(err, MP_BAD_CONFIG, "the lake is encrypted, which is not supported");
    if (data_path.size == 0)
        return mp_err_set(err, MP_BAD_CONFIG, "the lake has no data_path");
    return adopt_data_path(lake, data_path, err);
}

static enum mp_code namespace_work(struct mp_ducklake *lake, void *context, struct mp_err *err,
                                   bool *ret_keep)
{
    struct mp_dl_namespace there;
    struct mp_dl_snapshot snapshot;
    struct mp_buf changes = MP_BUF_INIT(4096);
    char uuid[MP_UUID_TEXT];
    uint32_t number;
    enum mp_code code;

    (void)context;
    mp_db_begin(lake->db, MP_DB_WRITE);
    number = mp_dl_snapshot_send(lake, 0);
    code = mp_db_sync(lake->db, err);
    if (!code)
        code = mp_dl_snapshot_read(lake, number, 0, err, &snapshot);
    if (code)
        return code;
    code = mp_dl_namespace_read(lake, &lake->scratch, err, &there);
    if (code != MP_NOT_FOUND) {
        *ret_keep = false;
        return code;
    }
    mp_uuid7(lake->env, uuid);
    MP_DB_SEND(lake->db,
               "INSERT INTO ducklake_schema (schema_id, schema_uuid, begin_snapshot, schema_name,"
               " path, path_is_relative) VALUES ($1, $2, $3, $4, $5, $6)",
               mp_db_int(snapshot.next_catalog), mp_db_uuid(uuid), mp_db_int(snapshot.id),
               mp_db_text(lake->schema),
               mp_db_text(mp_dl_directory(&lake->scratch, lake->schema, uuid)), mp_db_bool(true));
    snapshot.next_catalog++;
    snapshot.schema_version++;
    mp_dl_counters_send(lake, &snapshot);
    mp_buf_add_c(&changes, "created_schema:");
    mp_dl_quote(&changes, lake->schema);
    mp_dl_changes_send(lake, snapshot.id, mp_buf_str(&changes), MP_STR("namespace"),
                       (struct mp_str){NULL, 0});
    code = mp_db_sync(lake->db, err);
    mp_buf_fini(&changes);
    return code;
}

enum mp_code mp_dl_namespace_ensure(struct mp_ducklake *lake, struct mp_err *err)
{
    struct mp_dl_namespace there;
    enum mp_code code = mp_dl_namespace_read(lake, &lake->scratch, err, &there);

    if (code != MP_NOT_FOUND)
        return code;
    code = mp_dl_transact(lake, namespace_work, NULL, err);
    if (code)
        mp_err_add(err, "create schema \"%.*s\"", MP_STR_ARG(lake->schema));
    return code;
}

enum mp_code mp_dl_found(struct mp_ducklake *lake, struct mp_err *err)
{
    struct present present;
    enum mp_code code;

    code = mp_db_ready(lake->db, err);
    if (!code)
        code = look(lake, err, &present);
    if (code)
        return code;
    if (!present.lake && lake->read_only)
        return mp_err_set(err, MP_NOT_FOUND, "there is no lake in the catalog database yet");
    if (!present.lake && lake->data_path.size == 0)
        return mp_err_set(err, MP_BAD_CONFIG, "a new lake needs a data path");
    if (present.lake) /* before anything is put beside it */
        code = check_metadata(lake, err);
    if (code)
        return code;
    if ((!present.lake || !present.side) && !lake->read_only)
        code = mp_dl_transact(lake, create_work, NULL, err);
    lake->side = present.side || !lake->read_only;
    if (code) {
        mp_err_add(err, "create %s", present.lake ? "millpond_offsets" : "the lake");
        return code;
    }
    if (!present.lake) /* made just now, by us or by another process */
        code = check_metadata(lake, err);
    if (!code && !lake->read_only)
        code = mp_dl_namespace_ensure(lake, err);
    return code;
}
