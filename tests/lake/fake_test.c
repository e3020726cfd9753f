/* The lake in memory behaves as the real one does. */
#include "harness/test.h"

#include "base/buf.h"
#include "lake/fake.h"

static struct mp_env_fake clock_state = {.seed = 1};
static struct mp_env env;

static const struct mp_lake_table *evolve(struct mp_lake *lake, const char *extra)
{
    struct mp_lake_new_column columns[2] = {{MP_STR("id"), MP_TYPE(INT64)},
                                            {mp_str_c(extra), MP_TYPE(VARCHAR)}};
    struct mp_lake_create create = {MP_STR("region"), NULL, 0};
    int32_t widen = 1;
    bool widened = false;
    struct mp_lake_evolution evolution = {columns, extra ? 2 : 1, &widen, 0, &widened};
    const struct mp_lake_table *table;
    struct mp_err err;

    CHECK_OK(lake->driver->evolve(lake, MP_STR("ev"), &evolution, &create, &err, &table), err);
    return table;
}

static void claim(struct mp_lake *lake)
{
    struct mp_lake_position position = {.partition = 3};
    struct mp_lake_claim wanted;
    struct mp_err err;

    CHECK_OK(lake->driver->positions(lake, &position, 1, &err), err);
    wanted = (struct mp_lake_claim){3, position.next, position.epoch,
                                    position.next < 0 ? 0 : position.next};
    CHECK_OK(lake->driver->claim(lake, &wanted, 1, &err), err);
}

static enum mp_code append(struct mp_lake *lake, const struct mp_lake_table *table, int64_t first,
                           int64_t next, uint32_t files, struct mp_lake_result *ret)
{
    struct mp_column_stats stats = {.field_id = 1, .type = MP_TYPE(INT64), .rows = 5};
    struct mp_partition_value value = {false, MP_STR("a b")};
    struct mp_lake_file file = {
        .rows = 5, .bytes = 10, .stats = &stats, .stats_count = 1, .partition = &value};
    struct mp_lake_append one = {table, &file, files};
    struct mp_lake_range range = {.partition = 3, .first = first, .next = next};
    struct mp_lake_commit commit = {.appends = &one,
                                    .append_count = 1,
                                    .ranges = &range,
                                    .range_count = 1,
                                    .trigger = MP_STR("size")};
    struct mp_buf key = MP_BUF_INIT(1000);
    struct mp_err err;
    enum mp_code code;

    lake->driver->object_key(lake, table, &(struct mp_lake_place){.partition = &value}, &key);
    file.key = mp_buf_str(&key);
    code = lake->driver->append(lake, &commit, &err, ret);
    mp_buf_fini(&key);
    return code;
}

static void commits_are_recorded(void)
{
    struct mp_fake_catalog *catalog = mp_fake_catalog_new();
    struct mp_lake *lake = mp_fake_lake_open(catalog, &env);
    const struct mp_lake_table *table = evolve(lake, NULL);
    struct mp_lake_result result;

    CHECK_INT(table->schema.column_count, 2);
    CHECK_INT(table->schema.partition_count, 1);
    claim(lake);
    CHECK_INT(append(lake, table, 0, 5, 1, &result), MP_OK);
    CHECK_INT(append(lake, table, 5, 9, 0, &result), MP_OK);
    CHECK_INT(result.snapshot, -1);
    CHECK_INT(mp_fake_commit_count(catalog), 2);
    CHECK(mp_str_starts(mp_fake_commit(catalog, 0)->appends[0].files[0].key,
                        MP_STR("main/ev/region=a%20b/")));
    CHECK_INT(mp_fake_commit(catalog, 1)->ranges[0].next, 9);
    CHECK_INT(mp_fake_next(catalog, 3), 9);
    mp_lake_close(lake);
    mp_fake_catalog_free(catalog);
}

static void faults_come_when_they_are_due(void)
{
    struct mp_fake_catalog *catalog = mp_fake_catalog_new();
    struct mp_lake *lake = mp_fake_lake_open(catalog, &env);
    const struct mp_lake_table *table = evolve(lake, NULL);
    struct mp_lake_result result;

    claim(lake);
    mp_fake_fail(catalog, MP_FAKE_APPEND, 2, MP_IO, false);
    mp_fake_fail(catalog, MP_FAKE_APPEND, 4, MP_TIMEOUT, true);
    CHECK_INT(append(lake, table, 0, 5, 1, &result), MP_OK);
    CHECK_INT(append(lake, table, 5, 9, 1, &result), MP_IO);
    CHECK_INT(mp_fake_next(catalog, 3), 5);
    CHECK_INT(append(lake, table, 5, 9, 1, &result), MP_OK);
    CHECK(!result.already_published);
    CHECK_INT(append(lake, table, 9, 12, 1, &result), MP_TIMEOUT);
    CHECK_INT(mp_fake_next(catalog, 3), 12); /* landed, the answer was lost */
    CHECK_INT(append(lake, table, 9, 12, 1, &result), MP_OK);
    CHECK(result.already_published);
    CHECK_INT(mp_fake_commit_count(catalog), 3);
    CHECK_INT(mp_fake_calls(catalog, MP_FAKE_APPEND), 5);
    mp_lake_close(lake);
    mp_fake_catalog_free(catalog);
}

static void owners_are_fenced_and_tables_change(void)
{
    struct mp_fake_catalog *catalog = mp_fake_catalog_new();
    struct mp_lake *one = mp_fake_lake_open(catalog, &env), *two = mp_fake_lake_open(catalog, &env);
    const struct mp_lake_table *table = evolve(one, "extra"), *old = table;
    struct mp_lake_result result;

    claim(one);
    CHECK_INT(append(one, table, 0, 5, 1, &result), MP_OK);
    claim(two);
    CHECK_INT(append(one, table, 5, 9, 1, &result), MP_FENCED);
    CHECK_INT(append(two, table, 5, 9, 1, &result), MP_OK);
    mp_fake_steal(catalog, 3);
    CHECK_INT(append(two, table, 9, 12, 1, &result), MP_FENCED);
    claim(two);
    mp_fake_add_column(catalog, MP_STR("EV"), MP_STR("theirs"), MP_TYPE(BOOL));
    CHECK_INT(append(two, old, 9, 12, 1, &result), MP_OK);
    CHECK_INT(evolve(two, "THEIRS")->schema.column_count, 4);
    mp_fake_drop_column(catalog, MP_STR("ev"), MP_STR("id"));
    CHECK_INT(append(two, old, 12, 15, 1, &result), MP_CHANGED);
    mp_fake_drop(catalog, MP_STR("ev"));
    table = evolve(two, NULL);
    CHECK(!mp_str_eq(table->uuid, old->uuid));
    CHECK_INT(append(two, old, 12, 15, 1, &result), MP_CHANGED);
    CHECK_INT(append(two, table, 12, 15, 1, &result), MP_OK);
    mp_lake_close(one);
    mp_lake_close(two);
    mp_fake_catalog_free(catalog);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(commits_are_recorded),
        TEST(faults_come_when_they_are_due),
        TEST(owners_are_fenced_and_tables_change),
    };

    env = mp_env_fake(&clock_state);
    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
