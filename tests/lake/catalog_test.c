/* The driver against a catalog: SQLite, or PostgreSQL where MP_TEST_POSTGRES is a connection
 * string (tests/lake/pg_server.sh sets it). No object is read or written; files are made up.
 */
#include "harness/test.h"

#include "lake/ducklake/priv.h"

#include <ftw.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

static struct mp_env env;
static struct mp_arena arena;
static char directory[64]; /* of SQLite files; in memory where that can be had: all wait for disk */

/* --- a catalog of its own for each test --- */

static const char *new_catalog(void)
{
    static unsigned number;
    const char *server = getenv("MP_TEST_POSTGRES");
    struct mp_db_options options = {.catalog = MP_STR("")};
    struct mp_db *db;
    struct mp_err err;
    char *schema;

    number++;
    if (!server)
        return mp_arena_printf(&arena, "sqlite:%s/%u.sqlite", directory, number);
    schema = mp_arena_printf(&arena, "t%u_%llx", number, (unsigned long long)mp_random_u64(&env));
    options.catalog = mp_str_c(mp_arena_printf(&arena, "postgres:%s", server));
    CHECK_OK(mp_db_new(&options, &env, &err, &db), err);
    CHECK_OK(mp_db_ready(db, &err), err);
    mp_db_send(db, mp_arena_printf(&arena, "CREATE SCHEMA %s", schema), NULL, 0);
    CHECK_OK(mp_db_sync(db, &err), err);
    mp_db_free(db);
    return mp_arena_printf(&arena, "postgres:%s options='-csearch_path=%s'", server, schema);
}

static struct mp_ducklake_options options_of(const char *catalog)
{
    return (struct mp_ducklake_options){
        .catalog = mp_str_c(catalog),
        .data_path = MP_STR("/data/"),
        .schema = MP_STR("app"),
        .group = MP_STR("g"),
        .topic = MP_STR("t"),
        .author = MP_STR("test"),
        .version = MP_STR("1"),
        .statement_ms_max = 60000,
    };
}

static struct mp_ducklake *open_lake(const char *catalog)
{
    struct mp_ducklake_options options = options_of(catalog);
    struct mp_lake *lake;
    struct mp_err err;

    CHECK_OK(mp_ducklake_open(&options, &env, &err, &lake), err);
    return (struct mp_ducklake *)lake;
}

/* A connection that looks, kept for as long as the catalog is the same. */
static struct {
    const char *catalog;
    struct mp_db *db;
} looker;

static struct mp_db *look_at(const char *catalog)
{
    struct mp_db_options options = {.catalog = mp_str_c(catalog)};
    struct mp_err err;

    if (looker.catalog != catalog) {
        mp_db_free(looker.db);
        looker.catalog = NULL;
        looker.db = NULL;
    }
    if (!catalog)
        return NULL;
    if (!looker.db)
        CHECK_OK(mp_db_new(&options, &env, &err, &looker.db), err);
    looker.catalog = catalog;
    CHECK_OK(mp_db_ready(looker.db, &err), err);
    return looker.db;
}

/* The single number a query answers with. */
static int64_t ask(const char *catalog, const char *sql)
{
    struct mp_db *db = look_at(catalog);
    struct mp_err err;
    uint32_t number = mp_db_send(db, sql, NULL, 0);

    CHECK_OK(mp_db_sync(db, &err), err);
    return mp_db_number(mp_db_result(db, number), 0, 0, INT64_MIN);
}

static void run_sql(const char *catalog, const char *sql)
{
    struct mp_db *db = look_at(catalog);
    struct mp_err err;

    mp_db_send(db, sql, NULL, 0);
    CHECK_OK(mp_db_sync(db, &err), err);
}

/* --- what the tests do to a lake --- */

static enum mp_code evolve(struct mp_ducklake *lake, const char *extra, struct mp_err *err,
                           const struct mp_lake_table **ret)
{
    struct mp_lake_new_column columns[3] = {
        {MP_STR("id"), MP_TYPE(INT64)},
        {MP_STR("name"), MP_TYPE(VARCHAR)},
        {mp_str_c(extra), MP_TYPE(DOUBLE)},
    };
    struct mp_str sort = MP_STR("id");
    struct mp_lake_create create = {MP_STR("name"), &sort, 1};
    struct mp_lake_evolution evolution = {columns, extra ? 3 : 2, NULL, 0, NULL};

    return lake->lake.driver->evolve(&lake->lake, MP_STR("events"), &evolution, &create, err, ret);
}

static enum mp_code claim(struct mp_ducklake *lake, int32_t partition, struct mp_err *err)
{
    struct mp_lake_position position = {.partition = partition};
    struct mp_lake_claim wanted;
    enum mp_code code = lake->lake.driver->positions(&lake->lake, &position, 1, err);

    if (code)
        return code;
    wanted = (struct mp_lake_claim){partition, position.next, position.epoch,
                                    position.next < 0 ? 0 : position.next};
    return lake->lake.driver->claim(&lake->lake, &wanted, 1, err);
}

static bool same_files; /* append names the files of the call before */

/* Two files of `rows` rows each, and the range [first, first + 2 * rows). rows 0: offsets only. */
static enum mp_code append(struct mp_ducklake *lake, const struct mp_lake_table *table,
                           int64_t first, uint32_t rows, int64_t next, struct mp_err *err,
                           struct mp_lake_result *ret)
{
    static const int64_t low = 1, high = 500;
    static struct mp_str keys[2];
    struct mp_column_stats stats[2] = {
        {.field_id = 1,
         .type = MP_TYPE(INT64),
         .rows = rows,
         .has_bounds = true,
         .min = {(const char *)&low, 8},
         .max = {(const char *)&high, 8}},
        {.field_id = 2, .type = MP_TYPE(VARCHAR), .rows = rows, .nulls = rows},
    };
    struct mp_partition_value values[2] = {{false, MP_STR("a/b")}, {true, MP_STR("")}};
    struct mp_lake_file files[2];
    struct mp_lake_append append = {table, files, rows ? 2 : 0};
    struct mp_lake_range range = {
        .partition = 0, .first = first, .next = next, .records = rows * 2, .rows = rows * 2};
    struct mp_lake_commit commit = {.appends = &append,
                                    .append_count = 1,
                                    .ranges = &range,
                                    .range_count = 1,
                                    .trigger = MP_STR("size")};

    for (int i = 0; i < 2; i++) {
        struct mp_buf key = MP_BUF_INIT(4096);

        lake->lake.driver->object_key(&lake->lake, table,
                                      &(struct mp_lake_place){.partition = &values[i]}, &key);
        if (!same_files)
            keys[i] = mp_arena_str(&arena, mp_buf_str(&key));
        files[i] = (struct mp_lake_file){keys[i], rows, 1000, 100, stats, 2, &values[i]};
        mp_buf_fini(&key);
    }
    return lake->lake.driver->append(&lake->lake, &commit, err, ret);
}

/* Whatever happened, the lake is one that commits have made whole: no query counts anything. */
static void check_whole(const char *catalog)
{
    static const char *const broken[] = {
        "SELECT (SELECT COUNT(*) FROM ducklake_snapshot) -"
        " (SELECT COUNT(*) FROM ducklake_snapshot_changes)",
        "SELECT MAX(snapshot_id) + 1 - COUNT(*) FROM ducklake_snapshot",
        "SELECT COUNT(*) FROM ducklake_snapshot a JOIN ducklake_snapshot b"
        " ON b.snapshot_id = a.snapshot_id + 1 WHERE b.snapshot_time <= a.snapshot_time",
        "SELECT COUNT(*) FROM ducklake_data_file f WHERE NOT EXISTS (SELECT 1"
        " FROM ducklake_snapshot s WHERE s.snapshot_id = f.begin_snapshot AND"
        " s.next_file_id > f.data_file_id)",
        "SELECT (SELECT COALESCE(SUM(record_count), 0) FROM ducklake_data_file) -"
        " (SELECT COALESCE(SUM(record_count), 0) FROM ducklake_table_stats)",
        "SELECT (SELECT COALESCE(SUM(record_count), 0) FROM ducklake_data_file) -"
        " (SELECT COALESCE(SUM(next_row_id), 0) FROM ducklake_table_stats)",
        "SELECT (SELECT COUNT(*) FROM ducklake_file_column_stats) -"
        " 2 * (SELECT COUNT(*) FROM ducklake_data_file)",
        "SELECT (SELECT COUNT(*) FROM ducklake_file_partition_value) -"
        " (SELECT COUNT(*) FROM ducklake_data_file)",
        "SELECT (SELECT COUNT(*) FROM ducklake_table) -"
        " (SELECT COUNT(*) FROM ducklake_partition_info)",
        "SELECT COUNT(*) - COUNT(DISTINCT column_name) FROM ducklake_column",
    };
    struct mp_db *db = look_at(catalog);
    uint32_t numbers[sizeof(broken) / sizeof(*broken)];
    struct mp_err err;

    for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++)
        numbers[i] = mp_db_send(db, broken[i], NULL, 0);
    CHECK_OK(mp_db_sync(db, &err), err);
    for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
        int64_t count = mp_db_number(mp_db_result(db, numbers[i]), 0, 0, -1);

        if (count)
            test_fail(__FILE__, __LINE__, "%lld from %s", (long long)count, broken[i]);
    }
}

/* --- tests --- */

static void open_makes_a_lake_once(void)
{
    const char *catalog = new_catalog();
    struct mp_ducklake *one = open_lake(catalog), *two = open_lake(catalog);

    CHECK_STR(two->lake.driver->data_path(&two->lake), MP_STR("/data/"));
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_schema"), 2);
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_metadata"), 4);
    CHECK_INT(ask(catalog, "SELECT MAX(snapshot_id) FROM ducklake_snapshot"), 1);
    check_whole(catalog);
    mp_lake_close(&one->lake);
    mp_lake_close(&two->lake);
}

static void open_refuses_what_it_cannot_keep(void)
{
    const char *catalog = new_catalog();
    struct mp_ducklake_options options = options_of(catalog);
    struct mp_lake *lake;
    struct mp_err err;

    options.read_only = true;
    CHECK_INT(mp_ducklake_open(&options, &env, &err, &lake), MP_NOT_FOUND);
    options.read_only = false;
    options.data_path = MP_STR("");
    CHECK_INT(mp_ducklake_open(&options, &env, &err, &lake), MP_BAD_CONFIG);
    mp_lake_close(&open_lake(catalog)->lake);
    CHECK_OK(mp_ducklake_open(&options, &env, &err, &lake), err); /* the stored path is taken */
    CHECK_STR(lake->driver->data_path(lake), MP_STR("/data/"));
    mp_lake_close(lake);
    options.data_path = MP_STR("/other");
    CHECK_INT(mp_ducklake_open(&options, &env, &err, &lake), MP_BAD_CONFIG);
    CHECK(strstr(err.text, "\"/data/\"") && strstr(err.text, "\"/other/\""));
    options = options_of("oracle:scott/tiger@db");
    CHECK_INT(mp_ducklake_open(&options, &env, &err, &lake), MP_BAD_CONFIG);
    CHECK(!strstr(err.text, "tiger"));
    run_sql(catalog, "UPDATE ducklake_metadata SET value = '0.4' WHERE key = 'version'");
    options = options_of(catalog);
    CHECK_INT(mp_ducklake_open(&options, &env, &err, &lake), MP_BAD_CONFIG);
    CHECK(strstr(err.text, "0.4"));
}

static void names_are_checked(void)
{
    struct mp_ducklake *lake = open_lake(new_catalog());
    bool (*ok)(struct mp_str) = lake->lake.driver->name_ok;
    char bytes[256];

    memset(bytes, 'x', sizeof(bytes));
    CHECK(ok(MP_STR("$session_id")) && ok(MP_STR("month-of-year")) && ok(MP_STR("a\"b")));
    CHECK(ok(MP_STR("\xc3\xbc")) && ok(MP_STR(" ")) && ok(MP_STR("\xf0\x9f\x98\x80")));
    CHECK(ok(mp_str_n(bytes, 255)) && ok(MP_STR("row_id")) && ok(MP_STR("_ducklake_internal")));
    CHECK(!ok(MP_STR("")) && !ok(mp_str_n(bytes, 256)));
    CHECK(!ok(MP_STR("a\0b")) && !ok(MP_STR("a\tb")) && !ok(MP_STR("\x7f")));
    CHECK(!ok(MP_STR("\xc2\x85")));                                /* a C1 control */
    CHECK(!ok(MP_STR("\xed\xa0\x80")) && !ok(MP_STR("\xc0\xaf"))); /* a surrogate, overlong */
    CHECK(!ok(MP_STR("\xe2\x82")) && !ok(MP_STR("\xff")));
    CHECK(!ok(MP_STR("\xe0\x80\xaf")) && !ok(MP_STR("\xf4\x90\x80\x80")));
    CHECK(!ok(MP_STR("_DuckLake_internal_row_id")));
    mp_lake_close(&lake->lake);
}

static void columns_are_added_once(void)
{
    const char *catalog = new_catalog();
    struct mp_ducklake *one = open_lake(catalog), *two = open_lake(catalog);
    const struct mp_lake_table *table;
    struct mp_err err;

    CHECK_INT(one->lake.driver->resolve(&one->lake, MP_STR("events"), &err, &table), MP_NOT_FOUND);
    CHECK_OK(evolve(one, NULL, &err, &table), err);
    CHECK_INT(table->schema.column_count, 2);
    CHECK_INT(table->schema.partition_count, 1);
    CHECK_INT(table->schema.sort_count, 1);
    CHECK_INT(table->warning.size, 0);
    CHECK_OK(evolve(two, "Extra", &err, &table), err);
    CHECK_OK(evolve(one, "eXTRA", &err, &table), err);
    CHECK_INT(table->schema.column_count, 3);
    CHECK_INT(table->schema.columns[2].field_id, 3);
    CHECK_STR(table->schema.columns[2].name, MP_STR("Extra"));
    run_sql(catalog, "UPDATE ducklake_column SET end_snapshot = 99 WHERE column_id = 3");
    CHECK_OK(evolve(one, "later", &err, &table), err);
    CHECK_INT(table->schema.columns[2].field_id, 4); /* behind all that ever was */
    CHECK_INT(ask(catalog, "SELECT MAX(schema_version) FROM ducklake_snapshot"), 4);
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_schema_versions"), 3);
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_metadata WHERE scope = 'table'"), 1);
    mp_lake_close(&one->lake);
    mp_lake_close(&two->lake);
}

static void appends_move_offsets_with_files(void)
{
    const char *catalog = new_catalog();
    struct mp_ducklake *lake = open_lake(catalog);
    const struct mp_lake_table *table;
    struct mp_lake_result result;
    struct mp_lake_position position = {0};
    struct mp_err err;

    CHECK_OK(evolve(lake, NULL, &err, &table), err);
    CHECK_OK(claim(lake, 0, &err), err);
    CHECK_OK(append(lake, table, 0, 5, 10, &err, &result), err);
    CHECK_INT(result.snapshot, 3);
    CHECK(!result.already_published);
    CHECK_OK(append(lake, table, 10, 0, 25, &err, &result), err);
    CHECK_INT(result.snapshot, -1);
    CHECK_OK(append(lake, table, 25, 5, 35, &err, &result), err);
    CHECK_INT(result.snapshot, 4);
    CHECK_OK(lake->lake.driver->positions(&lake->lake, &position, 1, &err), err);
    CHECK_INT(position.next, 35);
    CHECK_INT(position.epoch, 1);
    CHECK_STR(position.table_uuid, table->uuid);
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_data_file"), 4);
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_data_file WHERE path LIKE"
                           " 'name=a%2Fb/ducklake-%.parquet'"),
              2);
    CHECK_INT(ask(catalog, "SELECT MAX(row_id_start) FROM ducklake_data_file"), 15);
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_file_column_stats WHERE min_value = '1'"
                           " AND max_value = '500' AND value_count = 5 AND null_count = 0"),
              4);
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_file_column_stats WHERE min_value IS NULL"
                           " AND value_count = 0 AND null_count = 5"),
              4);
    check_whole(catalog);
    mp_lake_close(&lake->lake);
}

/* Every statement has its time, however many a commit takes: one of many files would never come
 * through otherwise, and neither would what comes behind it. */
static void a_commit_of_many_files_has_the_time_it_takes(void)
{
    enum { COLUMNS = 400, FILES = 1200 };
    const char *catalog = new_catalog();
    struct mp_ducklake_options options = options_of(catalog);
    struct mp_lake_new_column columns[COLUMNS];
    struct mp_column_stats stats[COLUMNS];
    struct mp_lake_file files[FILES];
    struct mp_lake_create create = {MP_STR(""), NULL, 0};
    struct mp_lake_evolution evolution = {columns, COLUMNS, NULL, 0, NULL};
    struct mp_lake_append append = {NULL, files, FILES};
    struct mp_lake_range range = {.next = FILES, .records = FILES, .rows = FILES};
    struct mp_lake_commit commit = {&append, 1, &range, 1, .trigger = MP_STR("size")};
    struct mp_lake_result result;
    struct mp_lake *lake;
    struct mp_err err;
    enum mp_code code = MP_TIMEOUT;

    options.statement_ms_max = 500;
    CHECK_OK(mp_ducklake_open(&options, &env, &err, &lake), err);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        columns[i] = (struct mp_lake_new_column){mp_str_c(mp_arena_printf(&arena, "c%u", i)),
                                                 MP_TYPE(VARCHAR)};
        stats[i] = (struct mp_column_stats){.field_id = (int32_t)i + 1,
                                            .type = MP_TYPE(VARCHAR),
                                            .rows = 1,
                                            .has_bounds = true,
                                            .min = MP_STR("some text, as bounds go"),
                                            .max = MP_STR("some text, as bounds go")};
    }
    CHECK_OK(lake->driver->evolve(lake, MP_STR("events"), &evolution, &create, &err, &append.table),
             err);
    CHECK_OK(claim((struct mp_ducklake *)lake, 0, &err), err);
    for (uint32_t i = 0; i < FILES; i++)
        files[i] =
            (struct mp_lake_file){mp_str_c(mp_arena_printf(&arena, "app/events/%u.parquet", i)),
                                  1,
                                  1000,
                                  100,
                                  stats,
                                  COLUMNS,
                                  NULL};
    for (int i = 0; i < 10 && code == MP_TIMEOUT; i++) /* one statement may have bad luck */
        code = lake->driver->append(lake, &commit, &err, &result);
    CHECK_OK(code, err);
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_file_column_stats"), COLUMNS * FILES);
    CHECK_INT(ask(catalog, "SELECT COUNT(DISTINCT data_file_id) FROM ducklake_file_column_stats"),
              FILES);
    mp_lake_close(lake);
}

static void second_owner_fences_the_first(void)
{
    const char *catalog = new_catalog();
    struct mp_ducklake *one = open_lake(catalog), *two = open_lake(catalog);
    const struct mp_lake_table *table;
    struct mp_lake_claim late = {0, 0, 1, 0};
    struct mp_lake_result result;
    struct mp_err err;

    CHECK_OK(evolve(one, NULL, &err, &table), err);
    CHECK_OK(claim(one, 0, &err), err);
    CHECK_OK(claim(two, 0, &err), err);
    CHECK_INT(append(one, table, 0, 5, 10, &err, &result), MP_FENCED);
    CHECK_INT(append(one, table, 0, 0, 10, &err, &result), MP_FENCED);
    CHECK_INT(one->lake.driver->claim(&one->lake, &late, 1, &err), MP_CONFLICT);
    late.read_next = -1;
    CHECK_INT(one->lake.driver->claim(&one->lake, &late, 1, &err), MP_CONFLICT);
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_data_file"), 0);
    CHECK_INT(ask(catalog, "SELECT MAX(snapshot_id) FROM ducklake_snapshot"), 2);
    CHECK_OK(claim(one, 0, &err), err);
    CHECK_OK(append(one, table, 0, 5, 10, &err, &result), err);
    mp_lake_close(&one->lake);
    mp_lake_close(&two->lake);
}

/* Asks for "id" as DOUBLE; true: it is one now. */
static bool widened(struct mp_ducklake *lake)
{
    int32_t id = 1;
    bool done = false;
    struct mp_lake_evolution evolution = {NULL, 0, &id, 1, &done};
    const struct mp_lake_table *table;
    struct mp_err err;

    CHECK_OK(
        lake->lake.driver->evolve(&lake->lake, MP_STR("events"), &evolution, NULL, &err, &table),
        err);
    CHECK_INT(mp_schema_by_id(&table->schema, 1)->type.id, done ? MP_TYPE_DOUBLE : MP_TYPE_INT64);
    return done;
}

static void widening_asks_every_live_file(void)
{
    static const char *const doubts[] = {
        "UPDATE ducklake_file_column_stats SET max_value = '9007199254740993' WHERE column_id = 1"
        " AND data_file_id = 1",
        "UPDATE ducklake_file_column_stats SET max_value = '5', min_value = '-9007199254740993'"
        " WHERE column_id = 1 AND data_file_id = 1",
        "UPDATE ducklake_file_column_stats SET min_value = NULL WHERE column_id = 1"
        " AND data_file_id = 1",
        "UPDATE ducklake_file_column_stats SET min_value = '1.0' WHERE column_id = 1"
        " AND data_file_id = 1",
        "DELETE FROM ducklake_file_column_stats WHERE column_id = 1 AND data_file_id = 1",
    };
    const char *catalog = new_catalog();
    struct mp_ducklake *lake = open_lake(catalog);
    const struct mp_lake_table *table;
    struct mp_lake_result result;
    struct mp_err err;

    CHECK_OK(evolve(lake, NULL, &err, &table), err);
    CHECK_OK(claim(lake, 0, &err), err);
    CHECK_OK(append(lake, table, 0, 5, 10, &err, &result), err);
    for (size_t i = 0; i < sizeof(doubts) / sizeof(*doubts); i++) {
        run_sql(catalog, doubts[i]);
        CHECK(!widened(lake));
    }
    CHECK_INT(ask(catalog, "SELECT MAX(snapshot_id) FROM ducklake_snapshot"), 3);
    run_sql(catalog, "UPDATE ducklake_data_file SET end_snapshot = 3 WHERE data_file_id = 1");
    CHECK(widened(lake)); /* a file that is gone has no say */
    CHECK(widened(lake)); /* is one already */
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_column WHERE column_id = 1"
                           " AND end_snapshot = 4 AND column_type = 'int64'"),
              1);
    /* the table is sorted by it: its spec is written anew */
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_sort_info"), 2);
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_sort_info WHERE end_snapshot IS NULL"),
              1);
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_sort_expression"), 2);
    mp_lake_close(&lake->lake);
}

/* A snapshot with a higher schema version, as any DDL leaves one. */
static void bump(const char *catalog)
{
    run_sql(catalog, "INSERT INTO ducklake_snapshot SELECT snapshot_id + 1, snapshot_time,"
                     " schema_version + 1, next_catalog_id, next_file_id FROM ducklake_snapshot"
                     " ORDER BY snapshot_id DESC LIMIT 1");
}

static void changed_tables_are_refused(void)
{
    static const struct {
        const char *sql, *back, *text;
    } changes[] = {
        {"UPDATE ducklake_column SET column_name = 'x' WHERE column_id = 1", NULL, NULL},
        {"UPDATE ducklake_column SET column_type = 'int32' WHERE column_id = 1",
         "UPDATE ducklake_column SET column_type = 'int64' WHERE column_id = 1", "another type"},
        {"UPDATE ducklake_column SET end_snapshot = 3 WHERE column_id = 1",
         "UPDATE ducklake_column SET end_snapshot = NULL WHERE column_id = 1", "is gone"},
        {"UPDATE ducklake_partition_info SET partition_id = 70",
         "UPDATE ducklake_partition_info SET partition_id = 3", "partition spec"},
        {"UPDATE ducklake_table SET path = 'elsewhere/'",
         "UPDATE ducklake_table SET path = 'events/'", "path"},
        {"UPDATE ducklake_table SET table_name = 'moved'",
         "UPDATE ducklake_table SET table_name = 'events'", "gone"},
        {"UPDATE ducklake_table SET table_uuid = '00000000-0000-7000-8000-000000000000'", NULL,
         "another one"},
    };
    const char *catalog = new_catalog();
    struct mp_ducklake *lake = open_lake(catalog);
    const struct mp_lake_table *table;
    struct mp_lake_result result;
    struct mp_err err;
    int64_t next = 0;

    CHECK_OK(evolve(lake, NULL, &err, &table), err);
    CHECK_OK(claim(lake, 0, &err), err);
    run_sql(catalog, "UPDATE ducklake_partition_column SET partition_id = 3");
    run_sql(catalog, "INSERT INTO ducklake_partition_column SELECT 70, table_id,"
                     " partition_key_index, column_id, transform FROM ducklake_partition_column");
    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        enum mp_code code;

        run_sql(catalog, changes[i].sql);
        bump(catalog);
        code = append(lake, table, next, 5, next + 10, &err, &result);
        if (changes[i].text) {
            CHECK_INT(code, MP_CHANGED);
            CHECK(strstr(err.text, changes[i].text));
            CHECK(!err.retriable);
        } else {
            CHECK_OK(code, err);
            next += 10;
        }
        if (changes[i].back)
            run_sql(catalog, changes[i].back);
    }
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_data_file"), 2);
    mp_lake_close(&lake->lake);
}

/* Arms a fault for the driver's connection: call number n from now. */
static void arm(struct mp_ducklake *lake, uint32_t n, enum mp_db_class class, bool after)
{
    *mp_db_fault(lake->db) = (struct mp_db_fault){.countdown = n, .class = class, .after = after};
}

/* How many calls an append makes up to and with its commit. */
static uint32_t calls_of_append(void)
{
    struct mp_ducklake *lake = open_lake(new_catalog());
    const struct mp_lake_table *table;
    struct mp_lake_result result;
    struct mp_err err;
    uint32_t calls;

    CHECK_OK(evolve(lake, NULL, &err, &table), err);
    CHECK_OK(claim(lake, 0, &err), err);
    CHECK_OK(append(lake, table, 0, 5, 10, &err, &result), err);
    arm(lake, 0, MP_DB_OK, false);
    CHECK_OK(append(lake, table, 10, 5, 20, &err, &result), err);
    calls = mp_db_fault(lake->db)->calls;
    mp_lake_close(&lake->lake);
    return calls;
}

static void lost_answer_is_settled_from_the_side_table(void)
{
    uint32_t last = calls_of_append();
    const char *catalog = new_catalog();
    struct mp_ducklake *lake = open_lake(catalog), *other = open_lake(catalog);
    const struct mp_lake_table *table;
    struct mp_lake_result result;
    struct mp_err err;

    CHECK_OK(evolve(lake, NULL, &err, &table), err);
    CHECK_OK(claim(lake, 0, &err), err);
    CHECK_OK(append(lake, table, 0, 5, 10, &err, &result), err);
    arm(lake, last, MP_DB_LOST, true); /* landed */
    CHECK_OK(append(lake, table, 10, 5, 20, &err, &result), err);
    CHECK(result.already_published);
    CHECK_INT(result.snapshot, 4);
    arm(lake, last, MP_DB_LOST, false); /* not landed: run again */
    CHECK_OK(append(lake, table, 20, 5, 30, &err, &result), err);
    CHECK(!result.already_published);
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_data_file"), 6);
    arm(lake, 2, MP_DB_LOST, true); /* offsets only */
    CHECK_OK(append(lake, table, 30, 0, 40, &err, &result), err);
    CHECK_INT(result.snapshot, -1);
    /* landed, and then the table changed: still a success */
    arm(lake, last, MP_DB_LOST, true);
    CHECK_OK(append(lake, table, 40, 5, 50, &err, &result), err);
    CHECK(result.already_published);
    CHECK_OK(claim(other, 0, &err), err);
    CHECK_INT(append(lake, table, 50, 5, 60, &err, &result), MP_FENCED);
    check_whole(catalog);
    mp_lake_close(&lake->lake);
    mp_lake_close(&other->lake);
}

static void answer_lost_for_good_is_found_by_the_next_call(void)
{
    uint32_t last = calls_of_append();
    const char *catalog = new_catalog();
    struct mp_ducklake *lake = open_lake(catalog);
    const struct mp_lake_table *table;
    struct mp_lake_result result;
    struct mp_err err;

    CHECK_OK(evolve(lake, NULL, &err, &table), err);
    CHECK_OK(claim(lake, 0, &err), err);
    CHECK_OK(append(lake, table, 0, 5, 10, &err, &result), err);
    arm(lake, last, MP_DB_OUTAGE, true); /* the commit landed, the error goes up */
    CHECK_INT(append(lake, table, 10, 5, 20, &err, &result), MP_IO);
    CHECK(err.retriable);
    CHECK_OK(append(lake, table, 10, 5, 20, &err, &result), err);
    CHECK(result.already_published);
    CHECK_OK(append(lake, table, 20, 5, 30, &err, &result), err);
    CHECK(!result.already_published);
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_data_file"), 6);
    check_whole(catalog);
    mp_lake_close(&lake->lake);
}

/* What landed stays landed, whoever has taken the partition over since and however far it is: to
 * call it fenced would have its files removed. */
static void what_landed_before_another_owner_came_is_found(void)
{
    uint32_t last = calls_of_append();

    for (int further = 0; further < 2; further++) {
        const char *catalog = new_catalog();
        struct mp_ducklake *one = open_lake(catalog), *two = open_lake(catalog);
        const struct mp_lake_table *table, *theirs;
        struct mp_lake_result result;
        struct mp_err err;

        CHECK_OK(evolve(one, NULL, &err, &table), err);
        CHECK_OK(evolve(two, NULL, &err, &theirs), err);
        CHECK_OK(claim(one, 0, &err), err);
        CHECK_OK(append(one, table, 0, 5, 10, &err, &result), err);
        arm(one, last, MP_DB_OUTAGE, true); /* the commit landed, the error goes up */
        CHECK_INT(append(one, table, 10, 5, 20, &err, &result), MP_IO);
        same_files = true;
        CHECK_OK(claim(two, 0, &err), err);
        if (further)
            CHECK_OK(append(two, theirs, 20, 0, 30, &err, &result), err);
        CHECK_OK(append(one, table, 10, 5, 20, &err, &result), err);
        CHECK(result.already_published);
        CHECK_INT(result.snapshot, ask(catalog, "SELECT MAX(begin_snapshot)"
                                                " FROM ducklake_data_file"));
        same_files = false;
        CHECK_INT(append(one, table, 20, 5, 40, &err, &result), MP_FENCED);
        CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_data_file"), 4);
        check_whole(catalog);
        mp_lake_close(&one->lake);
        mp_lake_close(&two->lake);
    }
}

/* Something is forced into the lake whenever the driver sleeps before another attempt. */
struct forced {
    struct mp_env real;
    struct mp_ducklake *lake;
    uint32_t left, sleeps;
};

static void forced_sleep(void *self, uint64_t us)
{
    struct forced *forced = self;

    (void)us;
    forced->sleeps++;
    if (forced->left && forced->left--)
        arm(forced->lake, 3, MP_DB_RACE, false);
}

static uint64_t forced_mono(void *self)
{
    struct forced *forced = self;

    return forced->real.now_mono_us(forced->real.self) / 1000; /* time-outs do not count here */
}

static int64_t forced_wall(void *self)
{
    return mp_now_wall_us(&((struct forced *)self)->real);
}

static uint64_t forced_random(void *self)
{
    return mp_random_u64(&((struct forced *)self)->real);
}

static void lost_races_cost_no_memory(void)
{
    struct forced forced = {.real = env};
    struct mp_env forcing = {forced_mono, forced_wall, forced_random, forced_sleep, &forced};
    const char *catalog = new_catalog();
    struct mp_ducklake_options options = options_of(catalog);
    const struct mp_lake_table *table;
    struct mp_lake_result result;
    struct mp_lake *lake;
    struct mp_err err;
    size_t before, after;

    options.race_retries_max = 3000;
    CHECK_OK(mp_ducklake_open(&options, &forcing, &err, &lake), err);
    forced.lake = (struct mp_ducklake *)lake;
    CHECK_OK(evolve(forced.lake, NULL, &err, &table), err);
    CHECK_OK(claim(forced.lake, 0, &err), err);
    forced.left = 50;
    arm(forced.lake, 3, MP_DB_RACE, false);
    CHECK_OK(append(forced.lake, table, 0, 5, 10, &err, &result), err);
    CHECK_INT(forced.sleeps, 51);
    before = mallinfo2().uordblks;
    forced.left = 2000;
    arm(forced.lake, 3, MP_DB_RACE, false);
    CHECK_OK(append(forced.lake, table, 10, 5, 20, &err, &result), err);
    after = mallinfo2().uordblks;
    CHECK_INT(forced.sleeps, 2052);
    CHECK(after < before + 20000);
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_data_file"), 4);
    forced.left = UINT32_MAX;
    arm(forced.lake, 3, MP_DB_RACE, false);
    CHECK_INT(append(forced.lake, table, 20, 5, 30, &err, &result), MP_CONFLICT);
    CHECK(err.retriable);
    check_whole(catalog);
    mp_lake_close(lake);
}

/* --- the fault loop --- */

/* Calls step until it succeeds, as the pipeline would: errors that are retriable are retried. */
#define STEP(call)                                                                                 \
    do {                                                                                           \
        enum mp_code step_code;                                                                    \
        int step_tries = 0;                                                                        \
        do {                                                                                       \
            check_whole_or_nothing(catalog);                                                       \
            step_code = (call);                                                                    \
        } while (step_code && err.retriable && step_tries++ < 5);                                  \
        if (step_code && refusing && err.code == MP_REFUSED) {                                     \
            check_whole_or_nothing(catalog);                                                       \
            step_code = (call); /* the fault is spent */                                           \
        }                                                                                          \
        CHECK_OK(step_code, err);                                                                  \
    } while (0)

static void check_whole_or_nothing(const char *catalog)
{
    bool sqlite = mp_str_starts(mp_str_c(catalog), MP_STR("sqlite:"));

    if (ask(catalog, sqlite ? "SELECT COUNT(*) FROM sqlite_master WHERE name = 'ducklake_metadata'"
                            : "SELECT CASE WHEN to_regclass('ducklake_metadata') IS NULL THEN 0"
                              " ELSE 1 END"))
        check_whole(catalog);
}

/* One life of a lake with a fault at call n. Gives false once n is past its last call. */
static bool live_with_fault(uint32_t n, enum mp_db_class class, bool after)
{
    const char *catalog = new_catalog();
    struct mp_ducklake_options options = options_of(catalog);
    bool refusing = class == MP_DB_REFUSED, met;
    const struct mp_lake_table *table = NULL;
    struct mp_ducklake *lake;
    struct mp_lake_result result;
    struct mp_err err = {MP_OK};

    CHECK_OK(mp_dl_new(&options, &env, &err, &lake), err);
    arm(lake, n, class, after);
    STEP(mp_dl_found(lake, &err));
    STEP(evolve(lake, NULL, &err, &table));
    STEP(claim(lake, 0, &err));
    STEP(append(lake, table, 0, 5, 10, &err, &result));
    STEP(evolve(lake, "extra", &err, &table));
    STEP(append(lake, table, 10, 5, 20, &err, &result));
    STEP(append(lake, table, 20, 0, 30, &err, &result));
    met = mp_db_fault(lake->db)->countdown == 0;
    check_whole(catalog);
    CHECK_INT(ask(catalog, "SELECT next_offset FROM millpond_offsets"), 30);
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_data_file"), 4);
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_table"), 1);
    CHECK_INT(ask(catalog, "SELECT COUNT(*) FROM ducklake_column"), 3);
    CHECK_INT(ask(catalog, "SELECT MAX(snapshot_id) FROM ducklake_snapshot"), 5);
    mp_lake_close(&lake->lake);
    return met;
}

static void fault_loop(enum mp_db_class class, bool after)
{
    uint32_t n = 1, step = getenv("MP_TEST_POSTGRES") ? 3 : 1;

    while (live_with_fault(n, class, after))
        n += step;
    CHECK(n > 60);
}

static void race_at_any_call_is_run_again(void)
{
    fault_loop(MP_DB_RACE, false);
}

static void loss_at_any_call_leaves_old_or_new(void)
{
    fault_loop(MP_DB_LOST, false);
}

static void loss_after_any_call_leaves_old_or_new(void)
{
    fault_loop(MP_DB_LOST, true);
}

static void outage_at_any_call_leaves_old_or_new(void)
{
    fault_loop(MP_DB_OUTAGE, false);
}

static void refusal_at_any_call_leaves_old_or_new(void)
{
    fault_loop(MP_DB_REFUSED, false);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path);
}

static void make_directory(void)
{
    snprintf(directory, sizeof(directory), "/dev/shm/lake-test-XXXXXX");
    if (mkdtemp(directory))
        return;
    snprintf(directory, sizeof(directory), "/tmp/lake-test-XXXXXX");
    if (!mkdtemp(directory))
        abort();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(open_makes_a_lake_once),
        TEST(open_refuses_what_it_cannot_keep),
        TEST(names_are_checked),
        TEST(columns_are_added_once),
        TEST(appends_move_offsets_with_files),
        TEST(a_commit_of_many_files_has_the_time_it_takes),
        TEST(second_owner_fences_the_first),
        TEST(widening_asks_every_live_file),
        TEST(changed_tables_are_refused),
        TEST(lost_answer_is_settled_from_the_side_table),
        TEST(answer_lost_for_good_is_found_by_the_next_call),
        TEST(what_landed_before_another_owner_came_is_found),
        TEST(lost_races_cost_no_memory),
        TEST(race_at_any_call_is_run_again),
        TEST(loss_at_any_call_leaves_old_or_new),
        TEST(loss_after_any_call_leaves_old_or_new),
        TEST(outage_at_any_call_leaves_old_or_new),
        TEST(refusal_at_any_call_leaves_old_or_new),
    };
    int status;

    env = mp_env_real();
    make_directory();
    mp_arena_init(&arena, 0);
    status = test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
    look_at(NULL);
    nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    mp_arena_fini(&arena);
    return status;
}
