/* What the hoglake destination says of a commit. Values are those that pyhoglake and the Python
 * program of the same name gave, and the vectors of the Iceberg specification. */
#include "harness/test.h"

#include "base/base64.h"
#include "column/transform.h"
#include "lake/hoglake/body.h"
#include "lake/partition_by.h"

#include <math.h>
#include <stdio.h>

static struct mp_arena arena;

#define UUID_1 MP_STR("0e0b6c8e-0000-0000-0000-000000000001")
#define UUID_2 MP_STR("0e0b6c8e-0000-0000-0000-000000000002")

static struct mp_lake_range range(int32_t partition, int64_t lowest, int64_t highest)
{
    return (struct mp_lake_range){.partition = partition,
                                  .first = lowest < 0 ? 5 : lowest,
                                  .next = lowest < 0 ? 9 : highest + 1,
                                  .lowest = lowest,
                                  .highest = highest};
}

/* Lent until the arena's end. */
static struct mp_str taken(struct mp_buf *buf)
{
    struct mp_str text = mp_arena_str(&arena, mp_buf_str(buf));

    mp_buf_fini(buf);
    return text;
}

/* --- keys --- */

static struct mp_str key_of(struct mp_str uuid, const struct mp_lake_range *ranges, uint32_t count)
{
    char key[MP_LAKE_KEY_SIZE];

    mp_hog_key(MP_STR("millpond"), MP_STR("analytics"), MP_STR("events"), uuid, MP_STR("events"),
               ranges, count, key);
    CHECK_INT(strlen(key), 36);
    return mp_arena_str(&arena, mp_str_c(key));
}

static void keys_are_those_of_the_python_program(void)
{
    struct mp_lake_range one[] = {range(0, 0, 41)}, later[] = {range(0, 30, 41)};
    struct mp_lake_range three[] = {range(0, 0, 41), range(1, 7, 9), range(10, 3, 4)};

    CHECK_STR(key_of(UUID_1, one, 1), MP_STR("a0d4cb64-6463-52e1-9068-d1cd68e685e7"));
    CHECK_STR(key_of(UUID_1, later, 1), MP_STR("2593dc20-14cd-59bf-aa00-97e6599e6970"));
    CHECK_STR(key_of(UUID_1, three, 3), MP_STR("ff3cbba5-2640-5938-9887-ad45f490eb2b"));
    CHECK_STR(key_of(UUID_2, one, 1), MP_STR("d9be1bc6-d2ee-56df-8da0-4b970511f499"));
}

static void a_partition_without_values_is_not_in_the_key(void)
{
    struct mp_lake_range ranges[] = {range(0, 0, 41), range(3, -1, -1)};
    struct mp_lake_range other[] = {range(0, 0, 41)};

    ranges[0].next = 77; /* tombstones behind the last value */
    CHECK_STR(key_of(UUID_1, ranges, 2), key_of(UUID_1, other, 1));
    CHECK_STR(key_of(UUID_1, ranges, 2), MP_STR("a0d4cb64-6463-52e1-9068-d1cd68e685e7"));
}

static void objects_lie_below_the_key(void)
{
    struct mp_lake_place place = {.key = MP_STR("a0d4cb64-6463-52e1-9068-d1cd68e685e7"),
                                  .index = 12};
    struct mp_env_fake fake = {.seed = 1};
    struct mp_env env = mp_env_fake(&fake);
    struct mp_buf buf = MP_BUF_INIT(1024), again = MP_BUF_INIT(1024);
    struct mp_str head = MP_STR("data/analytics/events/a0d4cb64-6463-52e1-9068-d1cd68e685e7/");
    struct mp_str tail = MP_STR("-12.parquet"), key;

    mp_hog_object_key(MP_STR("analytics"), MP_STR("events"), &place, &env, &buf);
    mp_hog_object_key(MP_STR("analytics"), MP_STR("events"), &place, &env, &again);
    CHECK(!mp_str_eq(mp_buf_str(&buf), mp_buf_str(&again)));
    mp_buf_fini(&again);
    key = taken(&buf);
    CHECK_INT(key.size, head.size + 36 + tail.size);
    CHECK(mp_str_starts(key, head));
    CHECK_INT(key.data[head.size + 14], '4'); /* a random UUID */
    CHECK_STR(mp_str_n(key.data + head.size + 36, tail.size), tail);
}

/* --- messages --- */

static struct mp_str message_of(struct mp_lake_commit *commit, struct mp_str topic,
                                struct mp_str version)
{
    struct mp_buf buf = MP_BUF_INIT(1 << 20);

    mp_hog_message(commit, topic, version, UUID_1, &buf);
    return taken(&buf);
}

static void the_message_counts_and_names_ranges(void)
{
    static struct mp_partition_field field = {1, MP_TRANSFORM_IDENTITY, 0};
    static struct mp_lake_file files[31];
    struct mp_lake_table table = {.schema = {.partition = &field, .partition_count = 1}};
    struct mp_lake_append append = {&table, files, 31};
    struct mp_lake_range ranges[] = {range(3, 4128819, 4155470), range(4, -1, -1),
                                     range(19, 4130021, 4156802)};
    struct mp_lake_commit commit = {.appends = &append,
                                    .append_count = 1,
                                    .ranges = ranges,
                                    .range_count = 3,
                                    .trigger = MP_STR("size"),
                                    .arrow_bytes = 268435456};

    files[0].rows = 26372;
    for (int i = 1; i < 31; i++)
        files[i].rows = 1;
    CHECK_STR(message_of(&commit, MP_STR("clickhouse_events_json"), MP_STR("1.2.3")),
              MP_STR("records=26402 files=31 partitions=31 arrow_bytes=268435456 trigger=size "
                     "millpond=1.2.3 table=0e0b6c8e-0000-0000-0000-000000000001\n"
                     "offsets clickhouse_events_json p3:4128819-4155470 p19:4130021-4156802 (2)"));
    commit.trigger = MP_STR("time");
    commit.range_count = 0;
    table.schema.partition_count = 0;
    append.file_count = 1;
    CHECK_STR(message_of(&commit, MP_STR("t"), MP_STR("1 2\n")),
              MP_STR("records=26372 files=1 partitions=0 arrow_bytes=268435456 trigger=interval "
                     "millpond=1_2_ table=0e0b6c8e-0000-0000-0000-000000000001"));
    commit.trigger = MP_STR("final");
    CHECK(strstr(message_of(&commit, MP_STR("t"), MP_STR("")).data,
                 "trigger=final millpond=unknown table="));
}

static void an_odd_topic_stays_a_word_of_utf8(void)
{
    struct mp_lake_range one[] = {range(0, 1, 2)};
    struct mp_lake_table table = {0};
    struct mp_lake_append append = {&table, NULL, 0};
    struct mp_lake_commit commit = {
        .appends = &append, .append_count = 1, .ranges = one, .range_count = 1};

    CHECK_STR(mp_str_c(strchr(
                  message_of(&commit, MP_STR("/a b\n\xff/\xc3\xa9\xc3"), MP_STR("1")).data, '\n')),
              MP_STR("\noffsets /a_b_\xef\xbf\xbd/\xc3\xa9\xef\xbf\xbd p0:1-2 (1)"));
}

static void too_many_ranges_are_counted(void)
{
    enum { RANGES = 2000 };
    static struct mp_lake_range ranges[RANGES];
    struct mp_lake_table table = {0};
    struct mp_lake_append append = {&table, NULL, 0};
    struct mp_lake_commit commit = {.appends = &append, .append_count = 1, .ranges = ranges};
    unsigned more = 0, kept;
    struct mp_str line;

    for (int i = 0; i < RANGES; i++) /* each " p1000:1-2", 10 bytes */
        ranges[i] = range(1000 + i, 1, 2);
    /* "offsets t" has 9 bytes, " (1636)" 7: 1636 ranges end at 16376, 1637 at 16386 */
    commit.range_count = 1636;
    line = message_of(&commit, MP_STR("t"), MP_STR("1"));
    line.data = strchr(line.data, '\n') + 1;
    CHECK_INT(strlen(line.data), 16376);
    CHECK(!strcmp(strchr(line.data, '('), "(1636)"));
    commit.range_count = 1637;
    line = message_of(&commit, MP_STR("t"), MP_STR("1"));
    line.data = strchr(line.data, '\n') + 1;
    CHECK(sscanf(strstr(line.data, " ... "), " ... (+%u more)", &more) == 1);
    /* 9 + 10 * 1635 + 14 is 16373, one more would be 16383 and fits */
    CHECK_INT(more, 1);
    CHECK_INT(strlen(line.data), 16383);
    commit.range_count = RANGES;
    line = message_of(&commit, MP_STR("t"), MP_STR("1"));
    line.data = strchr(line.data, '\n') + 1;
    CHECK(sscanf(strstr(line.data, " ... "), " ... (+%u more)", &more) == 1);
    kept = (unsigned)(strstr(line.data, " ... ") - line.data - 9) / 10;
    CHECK_INT(kept + more, RANGES);
    CHECK_INT(kept, 1635); /* 9 + 16350 + 16 is 16375; one more would be 16385 */
}

/* --- names --- */

static void column_names_are_identifiers(void)
{
    static const char *const good[] = {"a", "_", "_inserted_at", "A9", "year", "hog", "_ho_g"};
    static const char *const bad[] = {"",    "9a",       "a-b",  "$x",       "a.b",
                                      "a b", "\xc3\xbc", "_hog", "_HoG_row", "_hogwarts"};
    char name[130];

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        CHECK(mp_hog_name_ok(mp_str_c(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (mp_hog_name_ok(mp_str_c(bad[i])))
            test_fail(__FILE__, __LINE__, "\"%s\" is taken", bad[i]);
    memset(name, 'a', sizeof(name));
    CHECK(mp_hog_name_ok(mp_str_n(name, 128)));
    CHECK(!mp_hog_name_ok(mp_str_n(name, 129)));
    CHECK(!mp_hog_name_ok(mp_str_n("a\0b", 3)));
}

static void types_have_the_catalogs_names(void)
{
    /* all 27, in the order of the catalog's list */
    static const struct {
        const char *name;
        uint8_t id;
    } types[] = {
        {"boolean", MP_TYPE_BOOL},
        {"int8", MP_TYPE_INT8},
        {"int16", MP_TYPE_INT16},
        {"int", MP_TYPE_INT32},
        {"long", MP_TYPE_INT64},
        {"uint8", MP_TYPE_UINT8},
        {"uint16", MP_TYPE_UINT16},
        {"uint32", MP_TYPE_UINT32_LONG},
        {"uint64", MP_TYPE_UINT64},
        {"float", MP_TYPE_FLOAT},
        {"double", MP_TYPE_DOUBLE},
        {"decimal", MP_TYPE_DECIMAL},
        {"date", MP_TYPE_DATE},
        {"time", MP_TYPE_TIME},
        {"timestamp_s", MP_TYPE_TIMESTAMP_S_MS},
        {"timestamp_ms", MP_TYPE_TIMESTAMP_MS},
        {"timestamp", MP_TYPE_TIMESTAMP},
        {"timestamp_ns", MP_TYPE_TIMESTAMP_NS},
        {"timestamptz", MP_TYPE_TIMESTAMPTZ},
        {"string", MP_TYPE_VARCHAR},
        {"json", MP_TYPE_JSON},
        {"uuid", MP_TYPE_UUID},
        {"binary", MP_TYPE_BLOB},
        {"variant", MP_TYPE_OTHER},
        {"list", MP_TYPE_OTHER},
        {"struct", MP_TYPE_OTHER},
        {"map", MP_TYPE_OTHER},
    };

    CHECK_INT(sizeof(types) / sizeof(*types), 27);
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        struct mp_str params = types[i].id == MP_TYPE_DECIMAL
                                   ? MP_STR("{\"scale\":2,\"precision\":10}")
                                   : mp_str_n(NULL, 0);
        struct mp_type type;

        CHECK(mp_hog_type_of_name(mp_str_c(types[i].name), params, &type) ==
              (types[i].id != MP_TYPE_OTHER));
        CHECK_INT(type.id, types[i].id);
        if (type.id != MP_TYPE_OTHER)
            CHECK_STR(mp_str_c(mp_hog_type_name(type)), mp_str_c(types[i].name));
        if (type.id == MP_TYPE_DECIMAL)
            CHECK(type.precision == 10 && type.scale == 2);
    }
    CHECK(!mp_hog_type_name(MP_TYPE(INT128)));
    CHECK(!mp_hog_type_name(MP_TYPE(OTHER)));
    CHECK(!mp_hog_type_name(MP_TYPE(NONE)));
}

static void odd_decimals_cannot_be_written(void)
{
    static const char *const bad[] = {
        "",
        "{}",
        "{\"precision\":10}",
        "{\"precision\":39,\"scale\":0}",
        "{\"precision\":0,\"scale\":0}",
        "{\"precision\":4,\"scale\":5}",
        "{\"precision\":4,\"scale\":-1}",
        "{\"precision\":\"4\",\"scale\":1}",
        "[1]",
    };
    struct mp_type type;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        CHECK(!mp_hog_type_of_name(MP_STR("decimal"), mp_str_c(bad[i]), &type));
        CHECK_INT(type.id, MP_TYPE_OTHER);
    }
    CHECK(!mp_hog_type_of_name(MP_STR("decimal"), mp_str_n(NULL, 0), &type));
    CHECK(mp_hog_type_of_name(MP_STR("LONG"), mp_str_n(NULL, 0), &type));
    CHECK_INT(type.id, MP_TYPE_INT64);
}

static void new_columns_state_their_parameters(void)
{
    struct mp_wire_column columns[2];
    struct mp_buf buf = MP_BUF_INIT(1024);

    columns[0] = mp_hog_column(&arena, MP_STR("a"), MP_TYPE(VARCHAR));
    columns[1] = mp_hog_column(&arena, MP_STR("b"), (struct mp_type){MP_TYPE_DECIMAL, 38, 6});
    mp_wire_columns_print(&buf, columns, 2);
    CHECK_STR(taken(&buf), MP_STR("[{\"name\":\"a\",\"type\":\"string\",\"nullable\":true},"
                                  "{\"name\":\"b\",\"type\":\"decimal\",\"nullable\":true,"
                                  "\"type_params\":{\"precision\":38,\"scale\":6}}]"));
}

/* --- partition specs --- */

static const struct mp_live_column live[] = {
    {.name = MP_STR_INIT("team_id"), .type = {.id = MP_TYPE_INT64}, .field_id = 4},
    {.name = MP_STR_INIT("at"), .type = {.id = MP_TYPE_TIMESTAMPTZ}, .field_id = 7},
    {.name = MP_STR_INIT("on"), .type = {.id = MP_TYPE_DATE}, .field_id = 8},
    {.name = MP_STR_INIT("x"), .type = {.id = MP_TYPE_DOUBLE}, .field_id = 9},
};
static const struct mp_schema schema = {.columns = live, .column_count = 4};

static struct mp_str wanted(const char *setting)
{
    struct mp_partition_field *fields;
    struct mp_buf buf = MP_BUF_INIT(1024);
    struct mp_err err;
    uint32_t count;

    if (mp_hog_partition_wanted(&arena, mp_str_c(setting), &schema, &err, &fields, &count)) {
        CHECK_INT(err.code, MP_BAD_CONFIG);
        return mp_arena_str(&arena, mp_str_c(err.text));
    }
    mp_hog_partition_print(&schema, fields, count, &buf);
    return taken(&buf);
}

static void the_setting_becomes_a_spec_and_text_again(void)
{
    static const char *const cases[][2] = {
        {"team_id", "team_id"},
        {" Identity( team_id ) ", "team_id"},
        {"YEAR(at),month(at), day(at) ,hour( at )", "year(at), month(at), day(at), hour(at)"},
        {",team_id,, bucket( at , 16 ),", "team_id, bucket(at, 16)"},
        {"bucket(team_id,16),bucket(team_id,8)", "bucket(team_id, 16), bucket(team_id, 8)"},
        {"day(on), identity(x)", "day(on), x"},
        {"", "none"},
    };
    static const char *const refused[][2] = {
        {"gone", "\"gone\""},
        {"Team_ID", "\"Team_ID\""},
        {"hour(on)", "\"on\" cannot be partitioned by hour: its type is date"},
        {"bucket(x, 4)", "\"x\" cannot be partitioned by bucket: its type is double"},
        {"day(team_id)", "its type is long"},
        {"truncate(team_id, 4)", "an unknown function"},
        {"bucket(4, team_id)", "no column name"},
        {"bucket(team_id)", "bucket wants a comma"},
        {"bucket(team_id, 0)", "no number of buckets"},
        {"bucket(team_id, +4)", "no number of buckets"},
        {"team_id, identity(team_id)", "the same key twice"},
        {"\"team_id\"", "no column name"},
        {"t\xc3\xa9", "not a comma"},
        {"day(at", "no closing parenthesis"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        CHECK_STR(wanted(cases[i][0]), mp_str_c(cases[i][1]));
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        if (!strstr(wanted(refused[i][0]).data, refused[i][1]))
            test_fail(__FILE__, __LINE__, "%s: %s", refused[i][0], wanted(refused[i][0]).data);
}

static void live_specs_are_read_and_written(void)
{
    static const struct {
        const char *name;
        uint8_t transform;
    } transforms[] = {
        {"identity", MP_TRANSFORM_IDENTITY}, {"year", MP_TRANSFORM_EPOCH_YEAR},
        {"month", MP_TRANSFORM_EPOCH_MONTH}, {"day", MP_TRANSFORM_EPOCH_DAY},
        {"hour", MP_TRANSFORM_EPOCH_HOUR},   {"BUCKET", MP_TRANSFORM_BUCKET_ICEBERG},
    };
    struct mp_wire_partition_field wire = {.source_field_id = 7, .has_param = true, .param = 16};
    struct mp_partition_field field;
    struct mp_buf buf = MP_BUF_INIT(1024);

    for (size_t i = 0; i < sizeof(transforms) / sizeof(*transforms); i++) {
        struct mp_wire_partition_field back;

        wire.transform = mp_str_c(transforms[i].name);
        CHECK(mp_hog_partition_read(&wire, &field));
        CHECK_INT(field.transform, transforms[i].transform);
        CHECK_INT(field.field_id, 7);
        back = mp_hog_partition_field(&field);
        CHECK(mp_str_eq_fold(back.transform, wire.transform));
        CHECK(back.has_param == (field.transform == MP_TRANSFORM_BUCKET_ICEBERG));
        CHECK_INT(back.source_field_id, 7);
        if (back.has_param)
            CHECK_INT(back.param, 16);
    }
    field.field_id = 99;
    mp_hog_partition_print(&schema, &field, 1, &buf);
    CHECK_STR(taken(&buf), MP_STR("bucket(field id 99, 16)"));
    wire.param = 0;
    CHECK(!mp_hog_partition_read(&wire, &field));
    wire.has_param = false;
    CHECK(!mp_hog_partition_read(&wire, &field));
    wire.transform = MP_STR("truncate");
    CHECK(!mp_hog_partition_read(&wire, &field));
    wire = (struct mp_wire_partition_field){.source_field_id = 1l << 40,
                                            .transform = MP_STR("identity")};
    CHECK(!mp_hog_partition_read(&wire, &field));
}

/* --- bounds --- */

static struct mp_str hex(struct mp_str bytes)
{
    char *text = mp_arena_take(&arena, bytes.size * 2 + 1);

    for (size_t i = 0; i < bytes.size; i++)
        sprintf(text + 2 * i, "%02x", (unsigned char)bytes.data[i]);
    return mp_str_n(text, bytes.size * 2);
}

/* The upper bound in hexadecimal. "-": none. */
static struct mp_str bound(struct mp_type type, const void *value, size_t size)
{
    struct mp_column_stats stats = {.type = type,
                                    .has_bounds = true,
                                    .min_exact = true,
                                    .max_exact = true,
                                    .min = mp_str_n(value, size),
                                    .max = mp_str_n(value, size)};
    struct mp_buf buf = MP_BUF_INIT(1 << 16);

    if (!mp_hog_bound(&stats, true, &buf))
        return MP_STR("-");
    return hex(taken(&buf));
}

static struct mp_str bound_32(uint8_t id, int32_t value)
{
    return bound((struct mp_type){.id = id}, &value, sizeof(value));
}

static struct mp_str bound_64(uint8_t id, int64_t value)
{
    return bound((struct mp_type){.id = id}, &value, sizeof(value));
}

static struct mp_str bound_decimal(uint8_t precision, mp_int128 unscaled)
{
    struct mp_type type = {MP_TYPE_DECIMAL, precision, 2};
    unsigned char bytes[16];

    for (int i = 15; precision > 18 && i >= 0; i--, unscaled >>= 8)
        bytes[i] = (unsigned char)unscaled;
    if (precision <= 18)
        memcpy(bytes, &unscaled, 8);
    return bound(type, bytes, mp_type_width(type));
}

static void bounds_are_single_values(void)
{
    double half = 1.5, tenth = 0.1, infinite = INFINITY;
    float one = 1.0f, low = -2.5f;
    unsigned char no = 0, yes = 1;
    mp_int128 nines = 1;

    CHECK_STR(bound(MP_TYPE(BOOL), &no, 1), MP_STR("00"));
    CHECK_STR(bound(MP_TYPE(BOOL), &yes, 1), MP_STR("01"));
    CHECK_STR(bound_32(MP_TYPE_INT8, -128), MP_STR("80ffffff"));
    CHECK_STR(bound_32(MP_TYPE_INT16, 32767), MP_STR("ff7f0000"));
    CHECK_STR(bound_32(MP_TYPE_INT32, 305419896), MP_STR("78563412"));
    CHECK_STR(bound_32(MP_TYPE_UINT8, 255), MP_STR("ff000000"));
    CHECK_STR(bound_32(MP_TYPE_UINT16, 65535), MP_STR("ffff0000"));
    CHECK_STR(bound_64(MP_TYPE_INT64, 1), MP_STR("0100000000000000"));
    CHECK_STR(bound_64(MP_TYPE_INT64, INT64_MIN), MP_STR("0000000000000080"));
    CHECK_STR(bound_64(MP_TYPE_UINT32_LONG, 4294967295), MP_STR("ffffffff00000000"));
    CHECK_STR(bound_64(MP_TYPE_UINT64, 0), MP_STR("00"));
    CHECK_STR(bound_64(MP_TYPE_UINT64, 127), MP_STR("7f"));
    CHECK_STR(bound_64(MP_TYPE_UINT64, 128), MP_STR("0080"));
    CHECK_STR(bound_64(MP_TYPE_UINT64, INT64_MAX), MP_STR("7fffffffffffffff"));
    CHECK_STR(bound_64(MP_TYPE_UINT64, INT64_MIN), MP_STR("008000000000000000"));
    CHECK_STR(bound_64(MP_TYPE_UINT64, -1), MP_STR("00ffffffffffffffff"));
    CHECK_STR(bound(MP_TYPE(FLOAT), &one, 4), MP_STR("0000803f"));
    CHECK_STR(bound(MP_TYPE(FLOAT), &low, 4), MP_STR("000020c0"));
    CHECK_STR(bound(MP_TYPE(DOUBLE), &half, 8), MP_STR("000000000000f83f"));
    CHECK_STR(bound(MP_TYPE(DOUBLE), &tenth, 8), MP_STR("9a9999999999b93f"));
    CHECK_STR(bound(MP_TYPE(DOUBLE), &infinite, 8), MP_STR("000000000000f07f"));
    for (uint8_t precision = 9; precision <= 38; precision += precision == 9 ? 9 : 20) {
        CHECK_STR(bound_decimal(precision, 0), MP_STR("00"));
        CHECK_STR(bound_decimal(precision, 127), MP_STR("7f"));
        CHECK_STR(bound_decimal(precision, 128), MP_STR("0080"));
        CHECK_STR(bound_decimal(precision, -128), MP_STR("80"));
        CHECK_STR(bound_decimal(precision, -129), MP_STR("ff7f"));
        CHECK_STR(bound_decimal(precision, 1234), MP_STR("04d2"));
        CHECK_STR(bound_decimal(precision, -1234), MP_STR("fb2e"));
    }
    for (int i = 0; i < 38; i++)
        nines *= 10;
    CHECK_STR(bound_decimal(38, nines - 1), MP_STR("4b3b4ca85a86c47a098a223fffffffff"));
    CHECK_STR(bound_32(MP_TYPE_DATE, -1), MP_STR("ffffffff"));
    CHECK_STR(bound_32(MP_TYPE_DATE, 20701), MP_STR("dd500000")); /* 2026-09-05 */
    CHECK_STR(bound_64(MP_TYPE_TIME, 49062123456), MP_STR("c097546c0b000000"));
    CHECK_STR(bound_64(MP_TYPE_TIMESTAMP_S_MS, 1788609600000), MP_STR("0090d91fbb5a0600"));
    CHECK_STR(bound_64(MP_TYPE_TIMESTAMP_MS, 1788609600123), MP_STR("7870db1fbb5a0600"));
    CHECK_STR(bound_64(MP_TYPE_TIMESTAMP_MS, INT64_MAX), MP_STR("-"));
    CHECK_STR(bound_64(MP_TYPE_TIMESTAMP, -1), MP_STR("ffffffffffffffff"));
    CHECK_STR(bound_64(MP_TYPE_TIMESTAMP_NS, 1788609600123456789), MP_STR("154d3671f46ad218"));
    CHECK_STR(bound_64(MP_TYPE_TIMESTAMPTZ, 1704067200000000), MP_STR("00202110d70d0600"));
    CHECK_STR(bound(MP_TYPE(VARCHAR), "", 0), MP_STR(""));
    CHECK_STR(bound(MP_TYPE(VARCHAR), "h\xc3\xa9llo", 6), MP_STR("68c3a96c6c6f"));
    CHECK_STR(bound(MP_TYPE(JSON), "{}", 2), MP_STR("7b7d"));
    CHECK_STR(bound(MP_TYPE(BLOB), "\0\1\xff", 3), MP_STR("0001ff"));
    CHECK_STR(bound(MP_TYPE(UUID),
                    "\xf7\x9c\x3e\x09\x67\x7c\x4b\xbd\xa4\x79\x3f\x34\x9c\xb7\x85"
                    "\xe7",
                    16),
              MP_STR("f79c3e09677c4bbda4793f349cb785e7"));
}

static void a_bound_that_was_cut_is_left_out(void)
{
    struct mp_column_stats stats = {.type = MP_TYPE(VARCHAR),
                                    .has_bounds = true,
                                    .min_exact = true,
                                    .min = MP_STR("a"),
                                    .max = MP_STR("c")};
    struct mp_buf buf = MP_BUF_INIT(64);

    CHECK(mp_hog_bound(&stats, false, &buf));
    CHECK(!mp_hog_bound(&stats, true, &buf));
    CHECK_STR(mp_buf_str(&buf), MP_STR("a"));
    stats.has_bounds = false;
    CHECK(!mp_hog_bound(&stats, false, &buf));
    mp_buf_fini(&buf);
}

/* --- the body --- */

static void the_body_is_printed_whole(void)
{
    double low = -0.0, high = 0.0;
    int64_t one = 1;
    struct mp_column_stats stats[] = {
        {.field_id = 4,
         .type = MP_TYPE(INT64),
         .rows = 2,
         .compressed_bytes = 92,
         .has_bounds = true,
         .min = mp_str_n(&one, 8),
         .max = mp_str_n(&one, 8)},
        {.field_id = 9,
         .type = MP_TYPE(DOUBLE),
         .rows = 2,
         .nulls = 1,
         .compressed_bytes = 106,
         .has_bounds = true,
         .min = mp_str_n(&low, 8),
         .max = mp_str_n(&high, 8)},
        {.field_id = 8, .type = MP_TYPE(DATE), .rows = 2, .nulls = 2, .compressed_bytes = 45},
        {.field_id = 7, .type = MP_TYPE(TIMESTAMPTZ), .rows = 2, .nulls = 2}, /* no part of it */
    };
    struct mp_partition_value values[] = {
        {.text = MP_STR("a\"\0\n")}, {.null = true}, {.text = MP_STR("")}};
    struct mp_partition_field fields[3] = {{0}};
    struct mp_lake_file file = {.key = MP_STR("data/n/t/k/u-0.parquet"),
                                .rows = 2,
                                .bytes = 2143,
                                .footer_bytes = 1693,
                                .stats = stats,
                                .stats_count = 4,
                                .partition = values};
    struct mp_lake_file plain = {.key = MP_STR("data/n/q/k/u-0.parquet"), .rows = 1, .bytes = 9};
    struct mp_lake_table table = {
        .name = MP_STR("t"), .uuid = UUID_1, .schema = {.partition = fields, .partition_count = 3}};
    struct mp_lake_table empty = {.name = MP_STR("e")};
    struct mp_lake_table bad = {.name = MP_STR("q"), .uuid = UUID_2};
    struct mp_lake_append appends[] = {{&table, &file, 1}, {&empty, NULL, 0}, {&bad, &plain, 1}};
    struct mp_lake_commit commit = {.appends = appends,
                                    .append_count = 3,
                                    .key = MP_STR("a0d4cb64-6463-52e1-9068-d1cd68e685e7")};
    struct mp_hog_body body = {.commit = &commit,
                               .namespace_name = MP_STR("n"),
                               .data_path = MP_STR("s3://b/p//"),
                               .read_snapshot = 7,
                               .author = MP_STR("me"),
                               .message = MP_STR("hello\nworld")};
    struct mp_buf buf = MP_BUF_INIT(1 << 16);

    mp_hog_body_print(&body, &buf);
    CHECK_STR(
        taken(&buf),
        MP_STR("{\"idempotency_key\":\"a0d4cb64-6463-52e1-9068-d1cd68e685e7\",\"read_snapshot\":7,"
               "\"appends\":[{\"namespace\":\"n\",\"table\":\"t\","
               "\"expected_table_uuid\":\"0e0b6c8e-0000-0000-0000-000000000001\",\"files\":["
               "{\"path\":\"s3://b/p/data/n/t/k/u-0.parquet\",\"record_count\":2,"
               "\"file_size_bytes\":2143,\"footer_size\":1693,\"column_stats\":["
               "{\"field_id\":4,\"value_count\":2,\"null_count\":0,\"size_bytes\":92,"
               "\"lower_bound\":\"AQAAAAAAAAA=\",\"upper_bound\":\"AQAAAAAAAAA=\"},"
               "{\"field_id\":9,\"value_count\":2,\"null_count\":1,\"size_bytes\":106,"
               "\"lower_bound\":\"AAAAAAAAAIA=\",\"upper_bound\":\"AAAAAAAAAAA=\"},"
               "{\"field_id\":8,\"value_count\":2,\"null_count\":2,\"size_bytes\":45}],"
               "\"partition_values\":[\"a\\\"\xe2\x90\x80\\n\",null,\"\"]}]},"
               "{\"namespace\":\"n\",\"table\":\"q\","
               "\"expected_table_uuid\":\"0e0b6c8e-0000-0000-0000-000000000002\",\"files\":["
               "{\"path\":\"s3://b/p/data/n/q/k/u-0.parquet\",\"record_count\":1,"
               "\"file_size_bytes\":9,\"footer_size\":0,\"column_stats\":[]}]}],"
               "\"author\":\"me\",\"message\":\"hello\\nworld\"}"));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(keys_are_those_of_the_python_program),
        TEST(a_partition_without_values_is_not_in_the_key),
        TEST(objects_lie_below_the_key),
        TEST(the_message_counts_and_names_ranges),
        TEST(an_odd_topic_stays_a_word_of_utf8),
        TEST(too_many_ranges_are_counted),
        TEST(column_names_are_identifiers),
        TEST(types_have_the_catalogs_names),
        TEST(odd_decimals_cannot_be_written),
        TEST(new_columns_state_their_parameters),
        TEST(the_setting_becomes_a_spec_and_text_again),
        TEST(live_specs_are_read_and_written),
        TEST(bounds_are_single_values),
        TEST(a_bound_that_was_cut_is_left_out),
        TEST(the_body_is_printed_whole),
    };
    int status;

    mp_arena_init(&arena, 0);
    status = test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
    mp_arena_fini(&arena);
    return status;
}
