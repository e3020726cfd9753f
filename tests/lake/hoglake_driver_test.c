/* The hoglake driver against a scripted server: what it asks, and what each answer comes to.
 *
 * After  the millpond sheet, 11.3 (bootstrap, reconciling), 11.5 (columns), 11.7 (outcomes of a
 *        commit) and 11.9 (what may be tried again); the hoglake 1.4 sheet, 4.8 (creation in one
 *        step). Bodies are compared with what those say, byte for byte.
 */
#include "harness/http_script.h"
#include "harness/test.h"

#include "lake/hoglake/hoglake.h"
#include "lake/hoglake/priv.h"

#include <stdio.h>
#include <unistd.h>

#define UUID  "0e0b6c8e-0000-0000-0000-000000000001"
#define UUID2 "0e0b6c8e-0000-0000-0000-000000000002"
#define KEY   "a0d4cb64-6463-52e1-9068-d1cd68e685e7"

#define CATALOG(capabilities)                                                                      \
    {                                                                                              \
        .body = "{\"name\":\"millpond\",\"data_path\":\"s3://bucket/lake\","                       \
                "\"head_snapshot_id\":3,\"schema_version\":1,\"capabilities\":[" capabilities      \
                "],\"new_member\":{}}"                                                             \
    }
#define COLUMN(id, name, type)                                                                     \
    "{\"name\":\"" name "\",\"type\":\"" type "\",\"nullable\":true,\"field_id\":" #id             \
    ",\"ordinal\":" #id "}"
#define ID               COLUMN(1, "id", "long")
#define TS               COLUMN(2, "ts", "timestamptz")
#define TAG              COLUMN(3, "tag", "string")
#define SPEC(id, fields) ",\"partition_spec\":{\"spec_id\":" #id ",\"fields\":[" fields "]}"
#define MONTH_TS         "{\"source_field_id\":2,\"transform\":\"month\"}"
#define SORT(fields)     ",\"sort_spec\":{\"sort_id\":1,\"fields\":[" fields "]}"
#define ASC(id)          "{\"source_field_id\":" #id ",\"direction\":\"asc\",\"null_order\":\"nulls_last\"}"
#define TABLE_TEXT(uuid, snapshot, columns, layout)                                                \
    "{\"name\":\"events\",\"namespace\":\"analytics\",\"table_uuid\":\"" uuid                      \
    "\",\"columns\":[" columns "],\"properties\":{},\"read_snapshot_id\":" #snapshot layout "}"
#define TABLE(snapshot, columns, layout)                                                           \
    {                                                                                              \
        .body = TABLE_TEXT(UUID, snapshot, columns, layout)                                        \
    }
#define FOREVER                                                                                    \
    {                                                                                              \
        .body = "{\"consumer_floor\":true,\"earliest_snapshot_id\":0}"                             \
    }
#define RETENTION(seconds)                                                                         \
    {                                                                                              \
        .body = "{\"snapshot_retention_seconds\":" #seconds "}"                                    \
    }
#define REFUSED(code, error)                                                                       \
    {                                                                                              \
        .status = code, .body = "{\"error\":\"" error "\",\"detail\":\"because\"}"                 \
    }
#define NOT_FOUND REFUSED(404, "not_found")
#define DONE(snapshot)                                                                             \
    {                                                                                              \
        .body = "{\"snapshot_id\":" #snapshot ",\"schema_version\":2}"                             \
    }

#define AT          "/v1/catalogs/millpond"
#define AT_TABLE    AT "/namespaces/analytics/tables/events"
#define AT_TABLE_Q  AT_TABLE "?totals=false"
#define AT_PREPARED AT "/commit/prepared"

static struct mp_env_fake clock_state;
static struct mp_env env;
static struct http_script *script;
static struct mp_lake *lake;
static struct mp_err err;

static struct mp_hoglake_options options_of(const char *url)
{
    return (struct mp_hoglake_options){
        .url = mp_str_c(url),
        .catalog = MP_STR("millpond"),
        .namespace_name = MP_STR("analytics"),
        .table = MP_STR("events"),
        .topic = MP_STR("events"),
        .author = MP_STR("millpond/events/3"),
        .version = MP_STR("1.2.3"),
        .program = MP_STR("millpond/0.0"),
        .request_ms_max = 20000,
    };
}

static struct mp_str sort_by[] = {MP_STR_INIT("tag")};

/* The script is answered in order; what is asked beyond it fails the test in `over`. */
static enum mp_code try_open(const struct http_step *steps, uint32_t count,
                             const char *partition_by, uint32_t sort_count, const char *data_path)
{
    struct mp_hoglake_options options;

    clock_state = (struct mp_env_fake){.seed = 1, .wall_us = 1};
    env = mp_env_fake(&clock_state);
    err = (struct mp_err){0};
    script = http_script_start(steps, count, NULL, NULL);
    options = options_of(http_script_url(script));
    options.partition_by = mp_str_c(partition_by);
    options.sort_by = sort_by;
    options.sort_by_count = sort_count;
    options.data_path = mp_str_c(data_path);
    lake = NULL;
    return mp_hoglake_open(&options, &env, &err, &lake);
}

static void opened(const struct http_step *steps, uint32_t count, const char *partition_by,
                   uint32_t sort_count)
{
    CHECK_OK(try_open(steps, count, partition_by, sort_count, ""), err);
}

#define OPEN(steps, partition_by, sort_count)                                                      \
    opened(steps, sizeof(steps) / sizeof(*steps), partition_by, sort_count)

/* Ends a test in which `requests` were sent. */
static void over(uint32_t requests)
{
    uint32_t count = http_script_count(script);

    mp_lake_close(lake);
    lake = NULL;
    http_script_stop(script);
    script = NULL;
    CHECK_INT(count, requests);
}

static void asked(uint32_t i, const char *method, const char *target)
{
    CHECK(i < http_script_count(script));
    CHECK_STR(http_script_request(script, i)->method, mp_str_c(method));
    CHECK_STR(http_script_request(script, i)->target, mp_str_c(target));
}

static void said(uint32_t i, const char *body)
{
    CHECK_STR(http_script_request(script, i)->body, mp_str_c(body));
}

static void mentions(const char *part)
{
    if (!strstr(err.text, part))
        CHECK_STR(mp_str_c(err.text), mp_str_c(part));
}

static void fault(enum mp_code code, enum mp_code want, bool retriable)
{
    CHECK_STR(mp_str_c(mp_code_name(code)), mp_str_c(mp_code_name(want)));
    CHECK_INT(err.code, want);
    CHECK_INT(err.retriable, retriable);
}

static enum mp_code resolve(const struct mp_lake_table **ret)
{
    return lake->driver->resolve(lake, MP_STR("events"), &err, ret);
}

static const struct mp_lake_table *resolved(void)
{
    const struct mp_lake_table *table = NULL;

    CHECK_OK(resolve(&table), err);
    return table;
}

/* --- open --- */

static void open_reads_the_catalog(void)
{
    static const struct http_step steps[] = {CATALOG("")};

    OPEN(steps, "", 0);
    asked(0, "GET", AT);
    CHECK_STR(http_record_header(http_script_request(script, 0), "User-Agent"),
              MP_STR("millpond/0.0"));
    CHECK_STR(lake->driver->data_path(lake), MP_STR("s3://bucket/lake/"));
    CHECK(!lake->driver->offsets_in_lake && !lake->driver->fold_case);
    over(1);
}

static void a_missing_catalog_is_fatal_without_a_data_path(void)
{
    static const struct http_step steps[] = {NOT_FOUND};

    fault(try_open(steps, 1, "", 0, ""), MP_BAD_CONFIG, false);
    mentions("\"millpond\"");
    mentions(http_script_url(script));
    mentions("HOGLAKE_DATA_PATH");
    over(1);
}

static void a_missing_catalog_is_made_where_the_data_path_says(void)
{
    static const struct http_step steps[] = {
        NOT_FOUND, {.status = 201, .body = "{\"name\":\"millpond\",\"data_path\":\"s3://b/x\"}"}};

    CHECK_OK(try_open(steps, 2, "", 0, "s3://b/x"), err);
    asked(1, "POST", "/v1/catalogs");
    said(1, "{\"name\":\"millpond\",\"data_path\":\"s3://b/x\"}");
    CHECK_STR(http_record_header(http_script_request(script, 1), "Content-Type"),
              MP_STR("application/json"));
    CHECK_STR(lake->driver->data_path(lake), MP_STR("s3://b/x/"));
    over(2);
}

/* Whoever was first has fixed the path. */
static void a_catalog_that_another_process_made_is_read(void)
{
    static const struct http_step steps[] = {NOT_FOUND, REFUSED(409, "already_exists"),
                                             CATALOG("")};

    CHECK_OK(try_open(steps, 3, "", 0, "s3://b/x"), err);
    asked(2, "GET", AT);
    CHECK_STR(lake->driver->data_path(lake), MP_STR("s3://bucket/lake/"));
    over(3);
}

static void faults_of_open(void)
{
    static const struct {
        struct http_step step;
        enum mp_code code;
        bool retriable;
    } rows[] = {
        {{.status = 500}, MP_IO, true},
        {{.status = 503, .headers = "Retry-After: 7\r\n"}, MP_IO, true},
        {{.status = 429}, MP_IO, true},
        {{.status = 408}, MP_IO, true},
        {{.fault = HTTP_CUT_BEFORE}, MP_IO, true},
        {{.status = 401}, MP_REFUSED, false},
        {{.status = 403}, MP_REFUSED, false},
        {{.status = 410}, MP_REFUSED, false},
        {{.status = 422}, MP_REFUSED, false},
        {{.status = 301, .headers = "Location: /elsewhere\r\n"}, MP_BAD_CONFIG, false},
        {{.status = 404, .body = "<html>no such route"}, MP_IO, true}, /* not the catalog's words */
        {{.body = "<html>"}, MP_REFUSED, false},
        {{.body = "{\"name\":\"millpond\"}"}, MP_REFUSED, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        fault(try_open(&rows[i].step, 1, "", 0, "s3://b/x"), rows[i].code, rows[i].retriable);
        CHECK_INT(err.wait_ms, rows[i].step.status == 503 ? 7000 : 0);
        mentions("\"millpond\"");
        mentions(http_script_url(script));
        over(1); /* no redirect is followed */
    }
}

static void a_server_that_is_slow_counts_as_away(void)
{
    static const struct http_step steps[] = {{.fault = HTTP_STALL}};
    struct mp_hoglake_options options;

    script = http_script_start(steps, 1, NULL, NULL);
    env = mp_env_fake(&clock_state);
    options = options_of(http_script_url(script));
    options.request_ms_max = 50;
    fault(mp_hoglake_open(&options, &env, &err, &lake), MP_TIMEOUT, true);
    CHECK(http_script_count(script) <= 1); /* the server may hear of it later */
    http_script_stop(script);
    script = NULL;
}

static void a_password_in_the_url_is_not_shown(void)
{
    struct mp_hoglake_options options = options_of("http://me:secret@127.0.0.1:1/p");

    env = mp_env_fake(&clock_state);
    fault(mp_hoglake_open(&options, &env, &err, &lake), MP_IO, true);
    CHECK(!strstr(err.text, "secret"));
    mentions("http://127.0.0.1:1/p");
}

/* And tells a catalog that is not there from a server that knows none. */
static void a_look_changes_nothing(void)
{
    static const struct http_step steps[][2] = {
        {NOT_FOUND, {.body = "[]"}}, {NOT_FOUND, {.status = 404}}, {NOT_FOUND, {.status = 503}}};
    static const enum mp_code codes[] = {MP_NOT_FOUND, MP_BAD_CONFIG, MP_IO};

    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
        struct mp_hoglake_options options;

        script = http_script_start(steps[i], 2, NULL, NULL);
        env = mp_env_fake(&clock_state);
        options = options_of(http_script_url(script));
        options.data_path = MP_STR("s3://b/x");
        options.read_only = true;
        fault(mp_hoglake_open(&options, &env, &err, &lake), codes[i], codes[i] == MP_IO);
        asked(1, "GET", "/v1/catalogs");
        over(2);
    }
}

/* --- resolve --- */

static void a_table_is_read_as_it_is(void)
{
    static const struct http_step steps[] = {
        CATALOG(""),
        /* out of order: ordinals count */
        TABLE(7,
              COLUMN(9, "big",
                     "decimal\",\"type_params\":{\"precision\":10,\"scale\":2},\"x\":"
                     "\"") "," ID "," COLUMN(4, "v", "variant") "," COLUMN(5, "deep", "struct"), ),
        FOREVER};
    const struct mp_lake_table *table;

    OPEN(steps, "", 0);
    table = resolved();
    asked(1, "GET", AT_TABLE_Q);
    asked(2, "GET", AT "/options");
    CHECK_STR(table->name, MP_STR("events"));
    CHECK_STR(table->uuid, MP_STR(UUID));
    CHECK_INT(table->snapshot, 7);
    CHECK_INT(table->schema.column_count, 4);
    CHECK_STR(table->schema.columns[0].name, MP_STR("id"));
    CHECK_INT(table->schema.columns[0].type.id, MP_TYPE_INT64);
    CHECK_INT(table->schema.columns[1].type.id, MP_TYPE_OTHER);
    CHECK_INT(table->schema.columns[2].type.id, MP_TYPE_OTHER);
    CHECK_INT(table->schema.columns[3].type.id, MP_TYPE_DECIMAL);
    CHECK_INT(table->schema.columns[3].type.scale, 2);
    CHECK_INT(table->schema.columns[3].field_id, 9);
    over(3);
}

static void a_table_that_is_not_there(void)
{
    static const struct http_step steps[] = {CATALOG(""), NOT_FOUND};
    const struct mp_lake_table *table;

    OPEN(steps, "", 0);
    fault(resolve(&table), MP_NOT_FOUND, false);
    over(2);
}

/* What something in between answers where it has no way to the catalog says nothing of the table:
 * taken for its end, it would be made anew, and a plan for it be dropped. */
static const struct http_step in_between[] = {
    {.status = 404},
    {.status = 404, .body = "<html>404 page not found</html>"},
    {.status = 404, .body = "{\"message\":\"no Route matched with those values\"}"},
    {.status = 404, .body = "{\"status\":404,\"error\":\"Not Found\"}"},
};
#define IN_BETWEEN (sizeof(in_between) / sizeof(*in_between))

static void a_404_of_something_in_between_may_pass(void)
{
    for (size_t i = 0; i < IN_BETWEEN; i++) {
        const struct http_step steps[] = {CATALOG(""), in_between[i], TABLE(7, ID, ), FOREVER};
        const struct mp_lake_table *table;

        OPEN(steps, "", 0);
        fault(resolve(&table), MP_IO, true);
        CHECK_INT(resolved()->snapshot, 7);
        over(4);
    }
}

/* Keys and plans are made of it: what is none must not come so far. */
static void a_table_without_a_uuid_is_refused(void)
{
#define WITH_UUID(text)                                                                            \
    {                                                                                              \
        .body = TABLE_TEXT(text, 7, ID, )                                                          \
    }
    static const struct http_step rows[] = {WITH_UUID(""),
                                            WITH_UUID("0e0b6c8e 0000-0000-0000-000000000001"),
                                            WITH_UUID(UUID "0"), WITH_UUID(UUID UUID UUID)};

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct http_step steps[] = {CATALOG(""), rows[i], FOREVER};
        const struct mp_lake_table *table;

        OPEN(steps, "", 0);
        fault(resolve(&table), MP_REFUSED, false);
        mentions("table_uuid");
        over(2);
    }
}

/* A quarter of the retention; the options are asked for once. */
static void a_reading_is_good_for_a_quarter_of_the_retention(void)
{
    static const struct {
        struct http_step options;
        uint64_t good_s; /* 0: for ever */
    } rows[] = {
        {RETENTION(4000), 1000},
        {{.status = 500}, 450},
        {{.body = "[]"}, 450},
        {FOREVER, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct http_step steps[] = {CATALOG(""), TABLE(7, ID, ), rows[i].options,
                                          TABLE(8, ID, )};
        uint64_t good_us = rows[i].good_s * 1000000;

        OPEN(steps, "", 0);
        CHECK_INT(resolved()->snapshot, 7);
        clock_state.mono_us += good_us ? good_us - 1 : UINT64_C(1) << 60;
        CHECK_INT(resolved()->snapshot, 7);
        clock_state.mono_us += 1;
        CHECK_INT(resolved()->snapshot, good_us ? 8 : 7);
        CHECK_INT(resolved()->snapshot, good_us ? 8 : 7);
        over(good_us ? 4 : 3);
    }
}

static void after_a_refresh_the_table_is_read_again(void)
{
    static const struct http_step steps[] = {
        CATALOG(""), TABLE(7, ID, ), FOREVER, {.body = TABLE_TEXT(UUID2, 9, ID, )}};

    OPEN(steps, "", 0);
    CHECK_STR(resolved()->uuid, MP_STR(UUID));
    lake->driver->refresh(lake);
    CHECK_STR(resolved()->uuid, MP_STR(UUID2));
    over(4);
}

static void a_layout_that_is_as_wanted(void)
{
    static const struct http_step steps[] = {
        CATALOG(""), TABLE(7, ID "," TS "," TAG, SPEC(1, MONTH_TS) SORT(ASC(3))), FOREVER};
    const struct mp_lake_table *table;

    OPEN(steps, "MONTH( ts )", 1);
    table = resolved();
    CHECK_INT(table->schema.partition_count, 1);
    CHECK_INT(table->schema.partition[0].transform, MP_TRANSFORM_EPOCH_MONTH);
    CHECK_INT(table->schema.partition[0].field_id, 2);
    CHECK(table->schema.columns[1].partition_source);
    CHECK_INT(table->schema.sort_count, 1);
    CHECK_STR(table->warning, MP_STR(""));
    over(3);
}

#define PARTITION_OP "{\"op\":\"set_partition_spec\",\"fields\":[" MONTH_TS "]}"
#define SORT_OP      "{\"op\":\"set_sort_order\",\"sort_fields\":[" ASC(3) "]}"

static void what_a_layout_lacks_is_declared_in_one_alter(void)
{
    static const struct {
        const char *before, *ops;
    } rows[] = {
        {"", "{\"ops\":[" PARTITION_OP "," SORT_OP "]}"},
        {SPEC(1, MONTH_TS), "{\"ops\":[" SORT_OP "]}"},
        {SORT(ASC(3)), "{\"ops\":[" PARTITION_OP "]}"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char before[1000];
        const struct http_step steps[] = {
            CATALOG(""),
            {.body = before},
            TABLE(8, ID "," TS "," TAG, SPEC(1, MONTH_TS) SORT(ASC(3))),
            FOREVER,
        };

        snprintf(before, sizeof(before), "%.*s%s}",
                 (int)sizeof(TABLE_TEXT(UUID, 7, ID "," TS "," TAG, )) - 2,
                 TABLE_TEXT(UUID, 7, ID "," TS "," TAG, ), rows[i].before);
        OPEN(steps, "month(ts)", 1);
        CHECK_INT(resolved()->snapshot, 8);
        CHECK(resolved()->warning.size > 0);
        asked(2, "POST", AT_TABLE "/alter");
        said(2, rows[i].ops);
        over(4);
    }
}

static void another_layout_stops_with_both_printed(void)
{
    static const struct {
        const char *partition_by;
        uint32_t sort_count;
        struct http_step table;
        const char *live, *wanted;
    } rows[] = {
        {"bucket(id, 16),ts", 0, TABLE(7, ID "," TS, SPEC(1, MONTH_TS)), "month(ts)",
         "bucket(id, 16), ts"},
        {"", 0, TABLE(7, ID "," TS, SPEC(1, MONTH_TS)), "month(ts)", "none"},
        {"month(ts),id", 0, TABLE(7, ID "," TS, SPEC(1, MONTH_TS)), "month(ts)", "month(ts), id"},
        {"bucket(id,8)", 0,
         TABLE(7, ID,
               SPEC(1, "{\"source_field_id\":1,\"transform\":\"bucket\",\"transform_param\":16}")),
         "bucket(id, 16)", "bucket(id, 8)"},
        {"", 1, TABLE(7, ID "," TAG, SORT(ASC(1))), "id", "tag"},
        {"", 0, TABLE(7, ID "," TAG, SORT(ASC(1))), "id", "none"},
        {"", 1,
         TABLE(
             7, TAG,
             SORT("{\"source_field_id\":3,\"direction\":\"desc\",\"null_order\":\"nulls_last\"}")),
         "tag desc", "tag"},
        {"month(nope)", 0, TABLE(7, ID, ), "\"nope\"", "HOGLAKE_PARTITION_BY"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct http_step steps[] = {CATALOG(""), rows[i].table};
        const struct mp_lake_table *table;

        OPEN(steps, rows[i].partition_by, rows[i].sort_count);
        fault(resolve(&table), MP_BAD_CONFIG, false);
        mentions(rows[i].live);
        mentions(rows[i].wanted);
        over(2);
    }
}

/* Nothing is asked of the sort order then, whatever it is. */
static void a_missing_sort_column_is_told(void)
{
    static const struct http_step steps[] = {CATALOG(""), TABLE(7, ID, SORT(ASC(1))), FOREVER};

    OPEN(steps, "", 1);
    CHECK(strstr(resolved()->warning.data, "\"tag\""));
    over(3);
}

static void a_lost_declaration_is_read_again(void)
{
    static const struct http_step steps[] = {CATALOG(""), TABLE(7, ID "," TS, ),
                                             REFUSED(409, "commit_conflict"),
                                             TABLE(8, ID "," TS, SPEC(1, MONTH_TS)), FOREVER};

    OPEN(steps, "month(ts)", 0);
    CHECK_INT(resolved()->snapshot, 8);
    asked(3, "GET", AT_TABLE_Q);
    over(5);
}

static void a_declaration_that_was_not_applied_stops(void)
{
    static const struct http_step steps[] = {CATALOG(""), TABLE(7, ID "," TS, ),
                                             TABLE(8, ID "," TS, )};
    const struct mp_lake_table *table;

    OPEN(steps, "month(ts)", 0);
    fault(resolve(&table), MP_BAD_CONFIG, false);
    over(3);
}

static void a_declaration_that_failed_is_met_again(void)
{
    static const struct http_step steps[] = {CATALOG(""),
                                             TABLE(7, ID "," TS, ),
                                             {.status = 500},
                                             TABLE(7, ID "," TS, ),
                                             TABLE(8, ID "," TS, SPEC(1, MONTH_TS)),
                                             FOREVER};
    const struct mp_lake_table *table;

    OPEN(steps, "month(ts)", 0);
    fault(resolve(&table), MP_IO, true);
    CHECK_INT(resolved()->snapshot, 8);
    over(6);
}

/* --- evolve: creation --- */

static const struct mp_lake_new_column new_columns[] = {
    {MP_STR_INIT("id"), {.id = MP_TYPE_INT64}},
    {MP_STR_INIT("ts"), {.id = MP_TYPE_TIMESTAMPTZ}},
    {MP_STR_INIT("tag"), {.id = MP_TYPE_VARCHAR}},
};
static bool refused[3];

static enum mp_code evolve(const struct mp_lake_new_column *add, uint32_t count,
                           const struct mp_lake_table **ret)
{
    static const struct mp_lake_create create; /* the options say what the main table is like */
    struct mp_lake_evolution want = {.add = add, .add_count = count, .ret_refused = refused};

    memset(refused, 0, sizeof(refused));
    return lake->driver->evolve(lake, MP_STR("events"), &want, &create, &err, ret);
}

static const struct mp_lake_table *evolved(uint32_t count)
{
    const struct mp_lake_table *table = NULL;

    CHECK_OK(evolve(new_columns, count, &table), err);
    return table;
}

#define NO_NAMESPACE                                                                               \
    {                                                                                              \
        .body = "[{\"name\":\"other\",\"namespace_id\":1}]"                                        \
    }
#define NAMESPACE                                                                                  \
    {                                                                                              \
        .body = "[{\"name\":\"other\",\"namespace_id\":1},{\"name\":\"analytics\"}]"               \
    }
#define NEW_COLUMNS                                                                                \
    "\"columns\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true},{\"name\":\"ts\","         \
    "\"type\":\"timestamptz\",\"nullable\":true},{\"name\":\"tag\",\"type\":\"string\","           \
    "\"nullable\":true}]"

static void a_table_is_made_with_its_namespace(void)
{
    static const struct http_step steps[] = {CATALOG(""),
                                             NOT_FOUND,
                                             NO_NAMESPACE,
                                             {.status = 201, .body = "{}"},
                                             TABLE(5, ID "," TS "," TAG, ),
                                             RETENTION(4000)};

    OPEN(steps, "", 0);
    CHECK_INT(evolved(3)->snapshot, 5);
    asked(2, "GET", AT "/namespaces");
    asked(3, "POST", AT "/namespaces");
    said(3, "{\"name\":\"analytics\"}");
    asked(4, "POST", AT "/namespaces/analytics/tables");
    said(4, "{\"name\":\"events\"," NEW_COLUMNS "}");
    asked(5, "GET", AT "/options"); /* here, so that the first steady flush asks for nothing */
    over(6);
}

/* At each step another process may be first. */
static void whoever_is_second_takes_what_is_there(void)
{
    static const struct http_step steps[] = {CATALOG(""),
                                             NOT_FOUND,
                                             NO_NAMESPACE,
                                             REFUSED(409, "already_exists"),
                                             REFUSED(409, "already_exists"),
                                             TABLE(6, ID "," TS, ),
                                             TABLE(7, ID "," TS, SPEC(1, MONTH_TS)),
                                             RETENTION(4000)};

    OPEN(steps, "month(ts)", 0);
    CHECK_INT(evolved(3)->snapshot, 7); /* bare as it was found, it was given its layout */
    asked(5, "GET", AT_TABLE_Q);
    asked(6, "POST", AT_TABLE "/alter");
    over(8);
}

static void without_the_capability_a_table_is_made_bare_and_altered(void)
{
    static const struct http_step steps[] = {
        CATALOG("\"atomic-partitioned-table-creation-v1\""), /* sorted is missing */
        NOT_FOUND,
        NAMESPACE,
        {.status = 201, .body = TABLE_TEXT(UUID, 5, ID "," TS "," TAG, )},
        TABLE(6, ID "," TS "," TAG, SPEC(1, MONTH_TS) SORT(ASC(3))),
        RETENTION(4000)};

    OPEN(steps, "month(ts)", 1);
    CHECK_INT(evolved(3)->snapshot, 6);
    said(3, "{\"name\":\"events\"," NEW_COLUMNS "}");
    said(4, "{\"ops\":[" PARTITION_OP "," SORT_OP "]}");
    over(6);
}

static void a_table_is_made_whole_where_the_catalog_can(void)
{
    static const struct {
        const char *partition_by;
        uint32_t sort_count;
        const char *endpoint, *layout, *table;
    } rows[] = {
        {"month(ts)", 0, "/partitioned", ",\"partition_fields\":[" MONTH_TS "]}",
         TABLE_TEXT(UUID, 5, ID "," TS "," TAG, SPEC(1, MONTH_TS))},
        {"month(ts)", 1, "/sorted",
         ",\"partition_fields\":[" MONTH_TS "],\"sort_fields\":[" ASC(3) "]}",
         TABLE_TEXT(UUID, 5, ID "," TS "," TAG, SPEC(1, MONTH_TS) SORT(ASC(3)))},
        {"", 1, "/sorted", ",\"sort_fields\":[" ASC(3) "]}",
         TABLE_TEXT(UUID, 5, ID "," TS "," TAG, SORT(ASC(3)))},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct http_step steps[] = {CATALOG("\"atomic-partitioned-table-creation-v1\","
                                                  "\"atomic-sorted-table-creation-v1\""),
                                          NOT_FOUND,
                                          NAMESPACE,
                                          {.body = "{\"state\":\"prepared\"}"},
                                          {.body = "{\"state\":\"committed\"}"},
                                          {.body = rows[i].table},
                                          RETENTION(4000)};
        struct mp_str prefix = MP_STR(AT "/table-creations/"), target;
        char body[2000], end[64];

        OPEN(steps, rows[i].partition_by, rows[i].sort_count);
        CHECK_INT(evolved(3)->snapshot, 5);
        target = http_script_request(script, 3)->target;
        CHECK_STR(http_script_request(script, 3)->method, MP_STR("PUT"));
        CHECK(mp_str_starts(target, prefix));
        CHECK_STR(mp_str_n(target.data + prefix.size + 36, target.size - prefix.size - 36),
                  mp_str_c(rows[i].endpoint));
        snprintf(body, sizeof(body),
                 "{\"namespace\":\"analytics\",\"name\":\"events\"," NEW_COLUMNS "%s",
                 rows[i].layout);
        said(3, body);
        snprintf(end, sizeof(end), "%.36s/commit", target.data + prefix.size);
        target = http_script_request(script, 4)->target;
        CHECK_STR(mp_str_n(target.data + prefix.size, target.size - prefix.size), mp_str_c(end));
        said(4, "{\"files\":[]}");
        asked(5, "GET", AT_TABLE_Q);
        over(7);
    }
}

static void a_creation_that_is_rejected(void)
{
    static const struct {
        const char *body;
        enum mp_code code; /* MP_OK: the table that is there is taken */
        bool retriable;
    } rows[] = {
        {"{\"state\":\"rejected\",\"reason\":\"target_exists\"}", MP_OK, false},
        {"{\"state\":\"rejected\",\"reason\":\"definition_invalid\"}", MP_REFUSED, false},
        {"[]", MP_REFUSED, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct http_step steps[] = {
            CATALOG("\"atomic-partitioned-table-creation-v1\""),
            NOT_FOUND,
            NAMESPACE,
            {.body = "{\"state\":\"prepared\"}"},
            {.body = rows[i].body},
            TABLE(5, ID "," TS "," TAG, SPEC(1, MONTH_TS)),
            RETENTION(4000),
        };
        const struct mp_lake_table *table;
        enum mp_code code;

        OPEN(steps, "month(ts)", 0);
        code = evolve(new_columns, 3, &table);
        if (rows[i].code)
            fault(code, rows[i].code, rows[i].retriable);
        else
            CHECK_OK(code, err);
        over(rows[i].code ? 5 : 7);
    }
}

static void a_partition_column_that_the_batch_does_not_have_stops(void)
{
    static const struct http_step steps[] = {CATALOG(""), NOT_FOUND, NAMESPACE};
    const struct mp_lake_table *table;

    OPEN(steps, "nope", 0);
    fault(evolve(new_columns, 3, &table), MP_BAD_CONFIG, false);
    mentions("\"nope\"");
    over(3); /* no table is made */
}

/* --- evolve: columns --- */

#define ADD(name, type)                                                                            \
    "{\"op\":\"add_column\",\"column\":{\"name\":\"" name "\",\"type\":\"" type                    \
    "\",\"nullable\":true}}"

static void new_columns_go_into_one_alter(void)
{
    static const struct http_step steps[] = {CATALOG(""), TABLE(7, ID, ), FOREVER, TABLE(7, ID, ),
                                             TABLE(8, ID "," TS "," TAG, )};

    OPEN(steps, "", 0);
    CHECK_INT(evolved(3)->snapshot, 8);
    asked(4, "POST", AT_TABLE "/alter");
    said(4, "{\"ops\":[" ADD("ts", "timestamptz") "," ADD("tag", "string") "]}");
    CHECK_INT(evolved(3)->snapshot, 8); /* nothing is missing: nothing is asked */
    over(5);
}

static void columns_are_added_alone_where_one_spoils_the_alter(void)
{
    static const struct http_step steps[] = {
        CATALOG(""),
        TABLE(7, ID, ),
        FOREVER,
        TABLE(7, ID, ),
        REFUSED(422, "validation"), /* both together */
        TABLE(7, ID, ),
        REFUSED(422, "validation"), /* ts */
        TABLE(7, ID, ),
        TABLE(8, ID "," TAG, ), /* tag */
    };
    const struct mp_lake_table *table;

    OPEN(steps, "", 0);
    table = evolved(3);
    CHECK_INT(table->snapshot, 8);
    CHECK_INT(table->schema.column_count, 2);
    CHECK(!refused[0] && refused[1] && !refused[2]);
    said(6, "{\"ops\":[" ADD("ts", "timestamptz") "]}");
    said(8, "{\"ops\":[" ADD("tag", "string") "]}");
    over(9);
}

static void a_column_that_another_writer_added_is_taken(void)
{
    static const struct http_step steps[] = {CATALOG(""),
                                             TABLE(7, ID, ),
                                             FOREVER,
                                             TABLE(7, ID, ),
                                             REFUSED(409, "commit_conflict"),
                                             TABLE(8, ID "," TS, )};

    OPEN(steps, "", 0);
    CHECK_INT(evolved(2)->snapshot, 8);
    CHECK(!refused[0] && !refused[1]);
    over(6);
}

static void an_outage_is_no_refusal_of_a_column(void)
{
    static const struct {
        struct http_step step;
        enum mp_code code;
        bool retriable;
    } rows[] = {
        {{.status = 503, .headers = "Retry-After: 3\r\n"}, MP_IO, true},
        {{.body = "{\"columns\":[]}", .fault = HTTP_CUT_BODY}, MP_IO, true},
        {{.status = 404}, MP_IO, true},
        {{.status = 403}, MP_REFUSED, false},
        {{.status = 413, .body = "<html>too large</html>"}, MP_REFUSED, false},
        {{.status = 407}, MP_REFUSED, false},
        {{.status = 400, .body = "{\"message\":\"no\"}"}, MP_REFUSED, false},
        {{.status = 422, .body = "{\"detail\":\"no\"}"}, MP_REFUSED, false},
        {{.status = 409, .body = "busy"}, MP_CONFLICT, true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct http_step steps[] = {CATALOG(""), TABLE(7, ID, ), FOREVER, TABLE(7, ID, ),
                                          rows[i].step};
        const struct mp_lake_table *table;

        OPEN(steps, "", 0);
        fault(evolve(new_columns, 2, &table), rows[i].code, rows[i].retriable);
        CHECK(!refused[1]);
        CHECK_INT(err.wait_ms, rows[i].step.status == 503 ? 3000 : 0);
        over(5);
    }
}

static void small_types_are_promoted_and_longs_are_not_widened(void)
{
    static const struct http_step steps[] = {
        CATALOG(""),
        TABLE(7, COLUMN(1, "n", "int") "," COLUMN(2, "f", "float"), ),
        FOREVER,
        TABLE(7, COLUMN(1, "n", "int") "," COLUMN(2, "f", "float"), ),
        TABLE(8, COLUMN(1, "n", "long") "," COLUMN(2, "f", "float"), ),
        REFUSED(422, "validation"),
        TABLE(8, COLUMN(1, "n", "long") "," COLUMN(2, "f", "float"), ),
    };
    static const struct mp_promotion promote[] = {{1, {.id = MP_TYPE_INT64}},
                                                  {2, {.id = MP_TYPE_DOUBLE}}};
    static const struct mp_lake_create create;
    const int32_t widen[] = {1};
    bool widened[] = {true};
    struct mp_lake_evolution want = {.promote = promote,
                                     .promote_count = 2,
                                     .widen = widen,
                                     .widen_count = 1,
                                     .ret_widened = widened};
    const struct mp_lake_table *table;

    OPEN(steps, "", 0);
    CHECK_OK(lake->driver->evolve(lake, MP_STR("events"), &want, &create, &err, &table), err);
    said(4, "{\"ops\":[{\"op\":\"promote_column\",\"name\":\"n\",\"to\":\"long\"}]}");
    said(5, "{\"ops\":[{\"op\":\"promote_column\",\"name\":\"f\",\"to\":\"double\"}]}");
    CHECK_INT(table->schema.columns[0].type.id, MP_TYPE_INT64);
    CHECK_INT(table->schema.columns[1].type.id, MP_TYPE_FLOAT); /* refused, and left */
    CHECK(!widened[0]);
    over(7);
}

/* --- append --- */

static struct mp_lake_result result;

#define OBJECT "data/analytics/events/k/u-0.parquet"

static enum mp_code append_file(const struct mp_lake_table *table, const char *key,
                                const char *object)
{
    struct mp_column_stats stats = {
        .field_id = 1, .type = MP_TYPE(INT64), .rows = 5, .nulls = 5, .compressed_bytes = 9};
    struct mp_lake_file file = {.key = mp_str_c(object),
                                .rows = 5,
                                .bytes = 100,
                                .footer_bytes = 40,
                                .stats = &stats,
                                .stats_count = 1};
    struct mp_lake_append one = {table, &file, 1};
    struct mp_lake_range range = {
        .first = 0, .next = 42, .lowest = 0, .highest = 41, .records = 42, .rows = 5};
    struct mp_lake_commit commit = {.appends = &one,
                                    .append_count = 1,
                                    .ranges = &range,
                                    .range_count = 1,
                                    .trigger = MP_STR("size"),
                                    .key = mp_str_c(key),
                                    .arrow_bytes = 77};

    memset(&result, 0xee, sizeof(result));
    return lake->driver->append(lake, &commit, &err, &result);
}

static enum mp_code append_of(const struct mp_lake_table *table, const char *key)
{
    return append_file(table, key, OBJECT);
}

static enum mp_code append(const struct mp_lake_table *table)
{
    return append_of(table, KEY);
}

/* Opens and resolves: three requests; what follows is the append's. */
#define READY(...)                                                                                 \
    const struct http_step steps[] = {CATALOG(""), TABLE(7, ID, ), FOREVER, __VA_ARGS__};          \
    const struct mp_lake_table *table;                                                             \
    OPEN(steps, "", 0);                                                                            \
    table = resolved()

#define BODY(snapshot)                                                                             \
    "{\"idempotency_key\":\"" KEY "\",\"read_snapshot\":" #snapshot                                \
    ",\"appends\":[{\"namespace\":\"analytics\",\"table\":\"events\",\"expected_table_uuid\":"     \
    "\"" UUID "\",\"files\":[{\"path\":\"s3://bucket/lake/data/analytics/events/k/u-0.parquet\","  \
    "\"record_count\":5,\"file_size_bytes\":100,\"footer_size\":40,\"column_stats\":["             \
    "{\"field_id\":1,\"value_count\":5,\"null_count\":5,\"size_bytes\":9}]}]}],"                   \
    "\"author\":\"millpond/events/3\",\"message\":\"records=5 files=1 partitions=0 "               \
    "arrow_bytes=77 trigger=size millpond=1.2.3 table=" UUID "\\noffsets events p0:0-41 (1)\"}"

static void a_steady_commit_is_one_request(void)
{
    READY(DONE(8), DONE(9));
    CHECK_OK(append(table), err);
    asked(3, "POST", AT_PREPARED);
    said(3, BODY(7));
    CHECK_INT(result.snapshot, 8);
    CHECK(!result.already_published && !result.replayed && !result.orphaned);
    CHECK(resolved() == table);
    CHECK_OK(append_of(table, "b0d4cb64-6463-52e1-9068-d1cd68e685e7"), err);
    CHECK_INT(result.snapshot, 9);
    over(5);
}

static void the_key_is_of_table_and_ranges(void)
{
    READY(DONE(8));
    struct mp_lake_range range = {.next = 42, .lowest = 0, .highest = 41};
    char key[MP_LAKE_KEY_SIZE];

    lake->driver->commit_key(lake, table, &range, 1, key);
    CHECK_STR(mp_str_c(key), MP_STR(KEY)); /* the sheet's first vector, 21.1 */
    over(3);
}

/* No answer, 5xx, 408 and 429 say nothing: the same bytes are sent again. */
static void an_uncertain_answer_holds_the_request(void)
{
    static const struct http_step rows[] = {
        {.body = "{\"snapshot_id\":8,\"schema_version\":2}", .fault = HTTP_CUT_BODY},
        {.status = 500},
        {.status = 502},
        {.status = 503, .headers = "Retry-After: 11\r\n"},
        {.status = 408},
        {.status = 429},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        READY(rows[i], rows[i], DONE(8));
        for (int attempt = 0; attempt < 2; attempt++) {
            fault(append(table), MP_IO, true);
            CHECK_INT(err.wait_ms, rows[i].headers ? 11000 : 0);
            CHECK(!result.orphaned);
        }
        CHECK_OK(append(table), err);
        CHECK_INT(result.snapshot, 8);
        CHECK(result.replayed);
        for (uint32_t request = 3; request < 6; request++)
            said(request, BODY(7));
        over(6);
    }
}

/* A kept connection that turns out dead: libcurl itself sends the request once more, which the key
 * makes harmless. */
static void a_dead_connection_does_not_matter(void)
{
    READY({.fault = HTTP_CUT_BEFORE}, DONE(8));

    CHECK_OK(append(table), err);
    CHECK_INT(result.snapshot, 8);
    CHECK(result.replayed);
    said(3, BODY(7));
    said(4, BODY(7));
    over(5);
}

static void a_commit_that_timed_out_is_sent_again(void)
{
    const struct http_step steps[] = {
        CATALOG(""), TABLE(7, ID, ), FOREVER, {.fault = HTTP_STALL}, DONE(8)};
    struct mp_hoglake_options options;
    struct mp_hoglake *hoglake;
    const struct mp_lake_table *table;

    clock_state = (struct mp_env_fake){.seed = 1};
    env = mp_env_fake(&clock_state);
    script = http_script_start(steps, 5, NULL, NULL);
    options = options_of(http_script_url(script));
    CHECK_OK(mp_hoglake_open(&options, &env, &err, &lake), err);
    table = resolved();
    hoglake = (struct mp_hoglake *)lake;
    hoglake->request_ms_max = 300;
    do { /* the time may be over before it is sent */
        fault(append(table), MP_TIMEOUT, true);
    } while (!hoglake->call.sent);
    while (http_script_count(script) < 4)
        usleep(1000);
    hoglake->request_ms_max = options.request_ms_max;
    CHECK_OK(append(table), err);
    CHECK(result.replayed);
    said(4, BODY(7));
    over(5);
}

static void a_reused_key_means_published(void)
{
    static const struct http_step reused = {
        .status = 422,
        .body = "{\"error\":\"validation\",\"detail\":\"Idempotency_Key REUSED with a different "
                "request\"}"};
    READY(reused, TABLE(9, ID, ), TABLE(9, ID, ));

    CHECK_OK(append(table), err);
    CHECK(result.already_published);
    CHECK_STR(mp_str_c(result.orphaned), MP_STR("already_published"));
    asked(4, "GET", AT_TABLE_Q);
    CHECK_INT(resolved()->snapshot, 9); /* what was kept is not believed any more */
    over(6);
}

static void a_reused_key_of_a_table_that_is_gone_is_no_success(void)
{
    static const struct http_step reused = {
        .status = 422,
        .body = "{\"error\":\"validation\",\"detail\":\"idempotency_key reused with a different "
                "request\"}"};
    static const struct http_step now[] = {{.body = TABLE_TEXT(UUID2, 9, ID, )}, NOT_FOUND};

    for (size_t i = 0; i < 2; i++) {
        READY(reused, now[i]);
        fault(append(table), MP_CHANGED, false);
        CHECK(!result.already_published);
        CHECK_STR(mp_str_c(result.orphaned), MP_STR("table_recreated"));
        over(5);
    }
}

/* The table cannot be read just then: the request stays held, and is settled by asking again. */
static void a_reused_key_is_settled_later_where_it_must(void)
{
    static const struct http_step reused = {
        .status = 422,
        .body = "{\"error\":\"validation\",\"detail\":\"idempotency_key reused with a different "
                "request\"}"};
    READY(reused, {.status = 503}, reused, TABLE(9, ID, ));

    fault(append(table), MP_IO, true);
    CHECK(!result.orphaned);
    CHECK_OK(append(table), err);
    CHECK(result.already_published);
    said(5, BODY(7));
    over(7);
}

/* What something in between says is not what became of the commit. */
static void an_answer_that_is_not_the_catalogs_settles_nothing(void)
{
    static const struct {
        struct http_step step;
        enum mp_code code;
        bool retriable;
    } rows[] = {
        {{.status = 409, .body = "<html>busy</html>"}, MP_CONFLICT, true},
        {{.status = 410, .body = "{\"error\":\"Gone\"}"}, MP_REFUSED, false},
        {{.status = 422, .body = "{\"message\":\"idempotency_key reused\"}"}, MP_REFUSED, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        READY(rows[i].step, DONE(8));

        fault(append(table), rows[i].code, rows[i].retriable);
        CHECK(!result.orphaned && !result.already_published);
        CHECK_OK(append(table), err); /* the same bytes */
        said(4, BODY(7));
        over(5);
    }
}

/* Only a 422 says so. */
static void the_words_alone_are_not_enough(void)
{
    static const struct http_step conflict = {
        .status = 409,
        .body = "{\"error\":\"commit_conflict\",\"detail\":\"idempotency_key reused\"}"};
    READY(conflict);

    fault(append(table), MP_CHANGED, false);
    over(4);
}

/* Something altered the table, or the basis is no longer kept: files that still fit are sent
 * again as they are, under the snapshot of the new reading. */
static void files_that_still_fit_are_sent_again(void)
{
    static const struct http_step rows[] = {REFUSED(409, "ddl_since_read_snapshot"),
                                            REFUSED(410, "expired")};

    for (size_t i = 0; i < 2; i++) {
        READY(rows[i], TABLE(9, COLUMN(1, "renamed", "long") "," TAG, ), DONE(10));
        CHECK_OK(append(table), err);
        CHECK_INT(result.snapshot, 10);
        CHECK(!result.orphaned && !result.replayed);
        asked(4, "GET", AT_TABLE_Q);
        said(5, BODY(9));
        CHECK_STR(table->schema.columns[0].name, MP_STR("id")); /* lent still */
        CHECK_INT(resolved()->snapshot, 9); /* and the next is the new one, without a request */
        over(6);
    }
}

static void files_that_do_not_fit_are_orphans(void)
{
    static const struct {
        struct http_step refusal, now;
        const char *reason;
    } rows[] = {
        {REFUSED(409, "ddl_since_read_snapshot"), TABLE(9, TS, ), "ddl_since_read_snapshot"},
        {REFUSED(409, "ddl_since_read_snapshot"), TABLE(9, COLUMN(1, "id", "double"), ),
         "ddl_since_read_snapshot"},
        {REFUSED(409, "ddl_since_read_snapshot"),
         TABLE(9, ID, SPEC(2, "{\"source_field_id\":1,\"transform\":\"identity\"}")),
         "ddl_since_read_snapshot"},
        {REFUSED(409, "ddl_since_read_snapshot"), TABLE(9, ID, SORT(ASC(1))),
         "ddl_since_read_snapshot"},
        {REFUSED(409, "ddl_since_read_snapshot"), NOT_FOUND, "ddl_since_read_snapshot"},
        {REFUSED(410, "expired"), {.body = TABLE_TEXT(UUID2, 9, ID, )}, "read_snapshot_expired"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        READY(rows[i].refusal, rows[i].now);
        fault(append(table), MP_CHANGED, false);
        CHECK_STR(mp_str_c(result.orphaned), mp_str_c(rows[i].reason));
        over(5);
    }
}

static void a_table_under_alteration_does_not_keep_us_for_ever(void)
{
    static const struct http_step ddl = REFUSED(409, "ddl_since_read_snapshot");
    static const struct http_step now = TABLE(9, ID, );
    READY(ddl, now, ddl, now, ddl, now, ddl, now, ddl, now, ddl, now, ddl, now, ddl, now, DONE(10));

    fault(append(table), MP_CONFLICT, true);
    CHECK(!result.orphaned);
    CHECK_OK(append(table), err);
    over(20);
}

static void a_reading_that_fails_leaves_the_files_in_use(void)
{
    READY(REFUSED(409, "ddl_since_read_snapshot"), {.status = 500},
          REFUSED(409, "ddl_since_read_snapshot"), TABLE(9, ID, ), DONE(10));
    fault(append(table), MP_IO, true);
    CHECK(!result.orphaned);
    CHECK_OK(append(table), err);
    CHECK_INT(result.snapshot, 10);
    over(8);
}

/* The table is not known to be gone: neither is the commit given up, nor taken for done. */
static void a_reading_by_something_in_between_leaves_the_files_in_use(void)
{
    static const struct http_step reused = {
        .status = 422,
        .body = "{\"error\":\"validation\",\"detail\":\"idempotency_key reused with a different "
                "request\"}"};

    for (size_t i = 0; i < IN_BETWEEN; i++) {
        READY(REFUSED(409, "ddl_since_read_snapshot"), in_between[i], reused, in_between[i], reused,
              TABLE(9, ID, ));
        for (int attempt = 0; attempt < 2; attempt++) {
            fault(append(table), MP_IO, true);
            CHECK(!result.orphaned && !result.already_published);
        }
        CHECK_OK(append(table), err);
        CHECK(result.already_published);
        over(9);
    }
}

static void other_refusals(void)
{
    static const struct {
        struct http_step step;
        enum mp_code code;
        bool retriable;
        const char *orphaned; /* NULL: the request is held */
    } rows[] = {
        {REFUSED(409, "table_recreated"), MP_CHANGED, false, "table_recreated"},
        {REFUSED(409, "table_dropped"), MP_CHANGED, false, "commit_refused"},
        {REFUSED(409, "commit_conflict"), MP_CHANGED, false, "commit_refused"},
        {REFUSED(422, "validation"), MP_REFUSED, false, "commit_refused"},
        {REFUSED(400, "bad_request"), MP_REFUSED, false, NULL},
        {REFUSED(401, "unauthorized"), MP_REFUSED, false, NULL},
        {REFUSED(403, "forbidden"), MP_REFUSED, false, NULL},
        {REFUSED(404, "not_found"), MP_IO, true, NULL},
        {{.status = 301, .headers = "Location: /v1\r\n"}, MP_BAD_CONFIG, false, NULL},
        {{.body = "<html>fine</html>"}, MP_REFUSED, false, NULL},
        {{.body = "{\"schema_version\":1}"}, MP_REFUSED, false, NULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        READY(rows[i].step,
              rows[i].orphaned ? (struct http_step)TABLE(9, ID, ) : (struct http_step)DONE(8));
        fault(append(table), rows[i].code, rows[i].retriable);
        if (rows[i].orphaned) {
            CHECK_STR(mp_str_c(result.orphaned), mp_str_c(rows[i].orphaned));
            CHECK_INT(resolved()->snapshot, 9); /* read again */
        } else {
            CHECK(!result.orphaned);
            CHECK_OK(append(table), err);
            CHECK(result.replayed);
            said(4, BODY(7));
        }
        over(5);
    }
}

static void a_table_that_was_made_anew_is_resolved_again(void)
{
    READY(REFUSED(409, "table_recreated"), {.body = TABLE_TEXT(UUID2, 12, ID, )}, DONE(13));
    fault(append(table), MP_CHANGED, false);
    table = resolved();
    CHECK_STR(table->uuid, MP_STR(UUID2));
    CHECK_OK(append_of(table, "b0d4cb64-6463-52e1-9068-d1cd68e685e7"), err);
    CHECK_INT(result.snapshot, 13);
    over(6);
}

/* A commit of other ranges takes the place of one that was never settled. */
static void another_commit_replaces_the_one_held(void)
{
    READY({.status = 500}, DONE(8));
    fault(append(table), MP_IO, true);
    CHECK_OK(append_of(table, "b0d4cb64-6463-52e1-9068-d1cd68e685e7"), err);
    CHECK(!result.replayed);
    CHECK(!mp_str_eq(http_script_request(script, 4)->body, MP_STR(BODY(7))));
    over(5);
}

/* The same ranges, and so the same key, with other files: what is held is not sent for them. */
static void other_files_of_the_same_ranges_are_another_request(void)
{
    static const struct http_step reused = {
        .status = 422,
        .body = "{\"error\":\"validation\",\"detail\":\"idempotency_key reused with a different "
                "request\"}"};
    READY({.status = 500}, reused, TABLE(9, ID, ));

    fault(append(table), MP_IO, true);
    CHECK_OK(append_file(table, KEY, "data/analytics/events/k/v-0.parquet"), err);
    CHECK(result.already_published); /* the first had landed, for all that its answer said */
    CHECK(memmem(http_script_request(script, 4)->body.data,
                 http_script_request(script, 4)->body.size, "v-0.parquet", 11));
    over(6);
}

static void without_files_nothing_is_sent(void)
{
    READY(DONE(8));
    struct mp_lake_append none = {table, NULL, 0};
    struct mp_lake_commit commit = {.appends = &none, .append_count = 1, .key = MP_STR(KEY)};

    CHECK_OK(lake->driver->append(lake, &commit, &err, &result), err);
    CHECK_INT(result.snapshot, -1);
    over(3);
}

static void published_is_what_the_receipt_says(void)
{
    static const struct http_step steps[] = {
        CATALOG(""),
        {.body = "{\"operation_id\":\"" KEY "\",\"snapshot_id\":8}"},
        NOT_FOUND,
        {.status = 503, .headers = "Retry-After: 2\r\n"}};
    bool published = false;

    OPEN(steps, "", 0);
    CHECK_OK(lake->driver->published(lake, MP_STR(KEY), &err, &published), err);
    CHECK(published);
    asked(1, "GET", AT "/commit/receipts/" KEY);
    CHECK_OK(lake->driver->published(lake, MP_STR(KEY), &err, &published), err);
    CHECK(!published);
    fault(lake->driver->published(lake, MP_STR(KEY), &err, &published), MP_IO, true);
    CHECK_INT(err.wait_ms, 2000);
    over(4);
}

/* Offsets move behind what is published: only the catalog's own yes or no counts. */
static void an_answer_that_is_no_receipt_proves_nothing(void)
{
    static const struct http_step rows[] = {
        {.body = "<html>we will be back soon</html>"},
        {.status = 204},
        {.body = "{}"},
        {.body = "[]"},
        {.body = "{\"snapshot_id\":8}"},
        {.body = "{\"operation_id\":\"b0d4cb64-6463-52e1-9068-d1cd68e685e7\",\"snapshot_id\":8}"},
    };
    bool published;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows) + IN_BETWEEN; i++) {
        bool fine = i < sizeof(rows) / sizeof(*rows);
        const struct http_step steps[] = {
            CATALOG(""), fine ? rows[i] : in_between[i - sizeof(rows) / sizeof(*rows)]};

        OPEN(steps, "", 0);
        fault(lake->driver->published(lake, MP_STR(KEY), &err, &published),
              fine ? MP_REFUSED : MP_IO, !fine);
        over(2);
    }
}

static void hear(void *self, int32_t partition, int64_t last)
{
    mp_buf_printf(self, "%d:%lld ", partition, (long long)last);
}

/* The newest message that names a partition counts; other topics and tables do not. */
static void lost_offsets_are_named_by_messages(void)
{
    static const struct http_step steps[] = {
        CATALOG(""),
        {.body = "[{\"data_file_id\":1}]"},
        CATALOG(""),
        {.body = "{\"has_more\":false,\"snapshots\":["
                 "{\"snapshot_id\":3,\"message\":\"records=1\\noffsets events p0:5-9 p2:1-7 (2)\"},"
                 "{\"snapshot_id\":2},{\"snapshot_id\":1,\"message\":\"records=1\\noffsets events "
                 "p0:0-4 p3:0-8 ... (+3 more)\\noffsets eventsx p9:1-1 (1)\"}]}"},
        {.body = "[]"},
        NOT_FOUND,
        {.status = 500},
    };
    struct mp_buf text = MP_BUF_INIT(1000);
    bool rows = false;

    OPEN(steps, "", 0);
    CHECK_OK(lake->driver->written(lake, MP_STR("events"), hear, &text, &err, &rows), err);
    CHECK(rows);
    CHECK_STR(mp_buf_str(&text), MP_STR("0:9 2:7 3:8 "));
    asked(1, "GET", AT_TABLE "/files?limit=1");
    asked(3, "GET", AT "/snapshots?before=4&limit=1000");
    CHECK_OK(lake->driver->written(lake, MP_STR("events"), hear, &text, &err, &rows), err);
    CHECK(!rows);
    fault(lake->driver->written(lake, MP_STR("events"), hear, &text, &err, &rows), MP_NOT_FOUND,
          false);
    fault(lake->driver->written(lake, MP_STR("events"), hear, &text, &err, &rows), MP_IO, true);
    mp_buf_fini(&text);
    over(7);
}

/* "No row" would have everything read into the table once more. */
static void what_is_no_list_does_not_say_that_there_are_no_rows(void)
{
    static const struct http_step rows[][3] = {
        {{.body = "<html>we will be back soon</html>"}},
        {{.body = "{\"files\":[]}"}},
        {{.body = "[{}]"}, {.body = "<html>"}},
        {{.body = "[{}]"}, CATALOG(""), {.body = "<html>"}},
        {{.body = "[{}]"}, CATALOG(""), {.body = "{\"has_more\":false}"}},
    };
    struct mp_buf text = MP_BUF_INIT(1000);
    bool any;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct http_step steps[] = {CATALOG(""), rows[i][0], rows[i][1], rows[i][2]};

        OPEN(steps, "", 0);
        fault(lake->driver->written(lake, MP_STR("events"), hear, &text, &err, &any), MP_REFUSED,
              false);
        over(i < 2 ? 2 : i < 3 ? 3 : 4);
    }
    for (size_t i = 0; i < IN_BETWEEN; i++) {
        const struct http_step steps[] = {CATALOG(""), in_between[i]};

        OPEN(steps, "", 0);
        fault(lake->driver->written(lake, MP_STR("events"), hear, &text, &err, &any), MP_IO, true);
        over(2);
    }
    mp_buf_fini(&text);
}

static void ping_asks_for_the_catalog(void)
{
    static const struct http_step steps[] = {CATALOG(""), CATALOG(""), {.status = 503}};

    OPEN(steps, "", 0);
    CHECK_OK(lake->driver->ping(lake, &err), err);
    fault(lake->driver->ping(lake, &err), MP_IO, true);
    over(3);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(open_reads_the_catalog),
        TEST(a_missing_catalog_is_fatal_without_a_data_path),
        TEST(a_missing_catalog_is_made_where_the_data_path_says),
        TEST(a_catalog_that_another_process_made_is_read),
        TEST(faults_of_open),
        TEST(a_server_that_is_slow_counts_as_away),
        TEST(a_password_in_the_url_is_not_shown),
        TEST(a_look_changes_nothing),
        TEST(a_table_is_read_as_it_is),
        TEST(a_table_that_is_not_there),
        TEST(a_404_of_something_in_between_may_pass),
        TEST(a_table_without_a_uuid_is_refused),
        TEST(a_reading_is_good_for_a_quarter_of_the_retention),
        TEST(after_a_refresh_the_table_is_read_again),
        TEST(a_layout_that_is_as_wanted),
        TEST(what_a_layout_lacks_is_declared_in_one_alter),
        TEST(another_layout_stops_with_both_printed),
        TEST(a_missing_sort_column_is_told),
        TEST(a_lost_declaration_is_read_again),
        TEST(a_declaration_that_was_not_applied_stops),
        TEST(a_declaration_that_failed_is_met_again),
        TEST(a_table_is_made_with_its_namespace),
        TEST(whoever_is_second_takes_what_is_there),
        TEST(without_the_capability_a_table_is_made_bare_and_altered),
        TEST(a_table_is_made_whole_where_the_catalog_can),
        TEST(a_creation_that_is_rejected),
        TEST(a_partition_column_that_the_batch_does_not_have_stops),
        TEST(new_columns_go_into_one_alter),
        TEST(columns_are_added_alone_where_one_spoils_the_alter),
        TEST(a_column_that_another_writer_added_is_taken),
        TEST(an_outage_is_no_refusal_of_a_column),
        TEST(small_types_are_promoted_and_longs_are_not_widened),
        TEST(a_steady_commit_is_one_request),
        TEST(the_key_is_of_table_and_ranges),
        TEST(an_uncertain_answer_holds_the_request),
        TEST(a_dead_connection_does_not_matter),
        TEST(a_commit_that_timed_out_is_sent_again),
        TEST(a_reused_key_means_published),
        TEST(a_reused_key_of_a_table_that_is_gone_is_no_success),
        TEST(a_reused_key_is_settled_later_where_it_must),
        TEST(an_answer_that_is_not_the_catalogs_settles_nothing),
        TEST(the_words_alone_are_not_enough),
        TEST(files_that_still_fit_are_sent_again),
        TEST(files_that_do_not_fit_are_orphans),
        TEST(a_table_under_alteration_does_not_keep_us_for_ever),
        TEST(a_reading_that_fails_leaves_the_files_in_use),
        TEST(a_reading_by_something_in_between_leaves_the_files_in_use),
        TEST(other_refusals),
        TEST(a_table_that_was_made_anew_is_resolved_again),
        TEST(another_commit_replaces_the_one_held),
        TEST(other_files_of_the_same_ranges_are_another_request),
        TEST(without_files_nothing_is_sent),
        TEST(published_is_what_the_receipt_says),
        TEST(an_answer_that_is_no_receipt_proves_nothing),
        TEST(lost_offsets_are_named_by_messages),
        TEST(what_is_no_list_does_not_say_that_there_are_no_rows),
        TEST(ping_asks_for_the_catalog),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
