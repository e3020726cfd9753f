/* tests/lake/lake_tool.c - a lake on a string: a JSON command a line in, a JSON answer a line out.
 *
 * For tests that are driven from outside. "op" chooses the command; see the functions. An answer
 * has "code" ("ok" or the error's name) and, on an error, "text" and "retriable".
 */
#include "base/arena.h"
#include "lake/ducklake/ducklake.h"
#include "lake/hoglake/hoglake.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mp_env env;
static struct mp_lake *lake;
static struct mp_arena arena; /* of one command */

static struct mp_str text_of(json_t *command, const char *key)
{
    json_t *item = json_object_get(command, key);

    return json_is_string(item) ? mp_str_n(json_string_value(item), json_string_length(item))
                                : MP_STR("");
}

static int64_t number_of(json_t *command, const char *key)
{
    return json_integer_value(json_object_get(command, key));
}

static json_t *string(struct mp_str text)
{
    return json_stringn(text.data ? text.data : "", text.size);
}

/* Tables as they were last lent, by name (a copy: what was lent before is gone by then). */
static struct {
    char name[256];
    const struct mp_lake_table *table;
} tables[16];

static size_t slot_of(struct mp_str name)
{
    for (size_t i = 0; i < 16; i++)
        if (!tables[i].table || mp_str_eq_fold(mp_str_c(tables[i].name), name))
            return i;
    abort();
}

static void lend(const struct mp_lake_table *table)
{
    size_t i = slot_of(table->name);

    snprintf(tables[i].name, sizeof(tables[i].name), "%.*s", MP_STR_ARG(table->name));
    tables[i].table = table;
}

static const struct mp_lake_table *lent(struct mp_str name)
{
    size_t i = slot_of(name);

    if (tables[i].table)
        return tables[i].table;
    fprintf(stderr, "table %.*s was not resolved\n", MP_STR_ARG(name));
    abort();
}

static struct mp_str *texts_of(json_t *list)
{
    struct mp_str *texts = mp_arena_take(&arena, sizeof(*texts) * (json_array_size(list) + 1));

    for (size_t i = 0; i < json_array_size(list); i++)
        texts[i] = mp_str_c(json_string_value(json_array_get(list, i)));
    return texts;
}

/* The hoglake driver, where "url" is given. */
static enum mp_code open_hoglake(json_t *command, struct mp_err *err)
{
    json_t *sort = json_object_get(command, "sort_by");
    struct mp_hoglake_options options = {
        .url = text_of(command, "url"),
        .catalog = text_of(command, "catalog"),
        .namespace_name = text_of(command, "namespace"),
        .data_path = text_of(command, "data_path"),
        .table = text_of(command, "table"),
        .partition_by = text_of(command, "partition_by"),
        .sort_by = texts_of(sort),
        .sort_by_count = (uint32_t)json_array_size(sort),
        .topic = text_of(command, "topic"),
        .author = MP_STR("millpond/test/0"),
        .version = MP_STR(MP_VERSION),
        .program = MP_STR("millpond/" MP_VERSION),
        .request_ms_max = (uint32_t)number_of(command, "request_ms_max"),
        .read_only = json_is_true(json_object_get(command, "read_only")),
    };

    return mp_hoglake_open(&options, &env, err, &lake);
}

static enum mp_code do_open(json_t *command, struct mp_err *err, json_t *answer)
{
    struct mp_ducklake_options options = {
        .catalog = text_of(command, "catalog"),
        .data_path = text_of(command, "data_path"),
        .schema = text_of(command, "schema"),
        .group = text_of(command, "group"),
        .topic = text_of(command, "topic"),
        .author = MP_STR("millpond/test/0"),
        .version = MP_STR(MP_VERSION),
        .statement_ms_max = (uint32_t)number_of(command, "statement_ms_max"),
        .connect_ms_max = (uint32_t)number_of(command, "connect_ms_max"),
        .race_retries_max = (uint32_t)number_of(command, "race_retries_max"),
        .read_only = json_is_true(json_object_get(command, "read_only")),
    };
    enum mp_code code;

    mp_lake_close(lake);
    lake = NULL;
    memset(tables, 0, sizeof(tables));
    code = text_of(command, "url").size ? open_hoglake(command, err)
                                        : mp_ducklake_open(&options, &env, err, &lake);
    if (!code)
        json_object_set_new(answer, "data_path", string(lake->driver->data_path(lake)));
    return code;
}

static json_t *describe(const struct mp_lake_table *table)
{
    json_t *columns = json_array(), *partition = json_array(), *sort = json_array();

    for (uint32_t i = 0; i < table->schema.column_count; i++) {
        const struct mp_live_column *column = &table->schema.columns[i];
        char type[24] = "other";

        if (column->type.id != MP_TYPE_OTHER)
            mp_type_ducklake_name(column->type, type);
        json_array_append_new(columns,
                              json_pack("{s:o,s:s,s:i,s:b,s:b,s:b}", "name", string(column->name),
                                        "type", type, "id", (int)column->field_id, "required",
                                        column->required, "default", column->default_not_null,
                                        "source", column->partition_source));
    }
    for (uint32_t i = 0; i < table->schema.partition_count; i++)
        json_array_append_new(partition,
                              json_pack("[i,i,i]", (int)table->schema.partition[i].field_id,
                                        (int)table->schema.partition[i].transform,
                                        (int)table->schema.partition[i].buckets));
    for (uint32_t i = 0; i < table->schema.sort_count; i++)
        json_array_append_new(sort, json_pack("[i,b,b]", (int)table->schema.sort[i].field_id,
                                              table->schema.sort[i].descending,
                                              table->schema.sort[i].nulls_first));
    return json_pack("{s:o,s:o,s:o,s:I,s:I,s:o,s:o,s:o,s:o}", "schema", string(table->schema_name),
                     "name", string(table->name), "uuid", string(table->uuid), "id",
                     (json_int_t)table->id, "snapshot", (json_int_t)table->snapshot, "columns",
                     columns, "partition", partition, "sort", sort, "warning",
                     string(table->warning));
}

static enum mp_code do_resolve(json_t *command, struct mp_err *err, json_t *answer)
{
    const struct mp_lake_table *table;
    enum mp_code code;

    code = lake->driver->resolve(lake, text_of(command, "table"), err, &table);
    if (code)
        return code;
    lend(table);
    json_object_set_new(answer, "table", describe(table));
    return MP_OK;
}

static enum mp_code do_evolve(json_t *command, struct mp_err *err, json_t *answer)
{
    json_t *add = json_object_get(command, "add"), *widen = json_object_get(command, "widen");
    json_t *sort = json_object_get(command, "sort_by"), *widened = json_array();
    json_t *promote = json_object_get(command, "promote"), *turned_down = json_array();
    size_t add_count = json_array_size(add), widen_count = json_array_size(widen);
    size_t sort_count = json_array_size(sort), promote_count = json_array_size(promote);
    struct mp_lake_new_column *columns = mp_arena_take(&arena, sizeof(*columns) * (add_count + 1));
    struct mp_promotion *promotions =
        mp_arena_take(&arena, sizeof(*promotions) * (promote_count + 1));
    struct mp_str *sort_by = texts_of(sort);
    int32_t *ids = mp_arena_take(&arena, sizeof(*ids) * (widen_count + 1));
    bool *ret_widened = mp_arena_take(&arena, widen_count + 1);
    bool *ret_refused = mp_arena_take(&arena, add_count + 1);
    struct mp_lake_evolution evolution = {
        .add = columns,
        .add_count = (uint32_t)add_count,
        .widen = ids,
        .widen_count = (uint32_t)widen_count,
        .ret_widened = ret_widened,
        .promote = promotions,
        .promote_count = (uint32_t)promote_count,
        .ret_refused = ret_refused,
    };
    struct mp_lake_create create = {text_of(command, "partition_by"), sort_by,
                                    (uint32_t)sort_count};
    const struct mp_lake_table *table;
    enum mp_code code;

    for (size_t i = 0; i < add_count; i++) {
        json_t *pair = json_array_get(add, i);

        columns[i].name = mp_str_c(json_string_value(json_array_get(pair, 0)));
        columns[i].type =
            mp_type_of_ducklake_name(mp_str_c(json_string_value(json_array_get(pair, 1))));
    }
    for (size_t i = 0; i < widen_count; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(widen, i));
    for (size_t i = 0; i < promote_count; i++) {
        json_t *pair = json_array_get(promote, i);

        promotions[i] = (struct mp_promotion){
            (int32_t)json_integer_value(json_array_get(pair, 0)),
            mp_type_of_ducklake_name(mp_str_c(json_string_value(json_array_get(pair, 1))))};
    }
    code = lake->driver->evolve(
        lake, text_of(command, "table"), &evolution,
        json_is_true(json_object_get(command, "no_create")) ? NULL : &create, err, &table);
    if (!code) {
        lend(table);
        for (size_t i = 0; i < widen_count; i++)
            json_array_append_new(widened, json_boolean(ret_widened[i]));
        json_object_set(answer, "widened", widened);
        for (size_t i = 0; i < add_count; i++)
            json_array_append_new(turned_down, json_boolean(ret_refused[i]));
        json_object_set(answer, "refused", turned_down);
        json_object_set_new(answer, "table", describe(table));
    }
    json_decref(widened);
    json_decref(turned_down);
    return code;
}

static const struct mp_partition_value *values_of(json_t *list)
{
    struct mp_partition_value *values =
        mp_arena_take(&arena, sizeof(*values) * (json_array_size(list) + 1));

    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *item = json_array_get(list, i);

        values[i].null = json_is_null(item);
        if (!values[i].null)
            values[i].text = mp_str_n(json_string_value(item), json_string_length(item));
    }
    return values;
}

static enum mp_code do_key(json_t *command, struct mp_err *err, json_t *answer)
{
    struct mp_buf key = MP_BUF_INIT(65536);
    struct mp_lake_place place = {.partition = values_of(json_object_get(command, "partition")),
                                  .key = text_of(command, "commit")};

    (void)err;
    lake->driver->object_key(lake, lent(text_of(command, "table")), &place, &key);
    json_object_set_new(answer, "key", string(mp_buf_str(&key)));
    mp_buf_fini(&key);
    return MP_OK;
}

static struct mp_str bytes_of_hex(struct mp_str hex)
{
    char *bytes = mp_arena_take(&arena, hex.size / 2 + 1);

    for (size_t i = 0; i < hex.size / 2; i++) {
        char two[3] = {hex.data[2 * i], hex.data[2 * i + 1], 0};

        bytes[i] = (char)strtol(two, NULL, 16);
    }
    return mp_str_n(bytes, hex.size / 2);
}

static void take_file(json_t *from, struct mp_lake_file *file)
{
    json_t *stats = json_object_get(from, "stats");
    struct mp_column_stats *columns =
        mp_arena_take(&arena, sizeof(*columns) * (json_array_size(stats) + 1));

    for (size_t i = 0; i < json_array_size(stats); i++) {
        json_t *item = json_array_get(stats, i);

        columns[i] = (struct mp_column_stats){
            .field_id = (int32_t)number_of(item, "id"),
            .type = mp_type_of_ducklake_name(text_of(item, "type")),
            .rows = (uint64_t)number_of(from, "rows"),
            .nulls = (uint64_t)number_of(item, "nulls"),
            .nans = (uint64_t)number_of(item, "nans"),
            .compressed_bytes = (uint64_t)number_of(item, "bytes"),
            .has_bounds = json_is_string(json_object_get(item, "min")),
            .min_exact = true,
            .max_exact = true,
            .min = bytes_of_hex(text_of(item, "min")),
            .max = bytes_of_hex(text_of(item, "max")),
        };
    }
    *file = (struct mp_lake_file){
        .key = text_of(from, "key"),
        .rows = (uint64_t)number_of(from, "rows"),
        .bytes = (uint64_t)number_of(from, "bytes"),
        .footer_bytes = (uint32_t)number_of(from, "footer"),
        .stats = columns,
        .stats_count = (uint32_t)json_array_size(stats),
        .partition = values_of(json_object_get(from, "partition")),
    };
}

static struct mp_lake_range *ranges_of(json_t *from)
{
    size_t count = json_array_size(from);
    struct mp_lake_range *ranges = mp_arena_take(&arena, sizeof(*ranges) * (count + 1));

    for (size_t i = 0; i < count; i++) {
        json_t *item = json_array_get(from, i);
        int64_t at[7] = {0};

        for (size_t k = 0; k < json_array_size(item) && k < 7; k++)
            at[k] = json_integer_value(json_array_get(item, k));
        ranges[i] = (struct mp_lake_range){
            .partition = (int32_t)at[0],
            .first = at[1],
            .next = at[2],
            .lowest = at[1],
            .highest = at[2] - 1,
            .records = (uint64_t)at[3],
            .rows = (uint64_t)at[4],
            .skipped = (uint64_t)at[5],
            .quarantined = (uint64_t)at[6],
        };
    }
    return ranges;
}

static enum mp_code do_commit_key(json_t *command, struct mp_err *err, json_t *answer)
{
    json_t *from = json_object_get(command, "ranges");
    char key[MP_LAKE_KEY_SIZE];

    (void)err;
    lake->driver->commit_key(lake, lent(text_of(command, "table")), ranges_of(from),
                             (uint32_t)json_array_size(from), key);
    json_object_set_new(answer, "key", json_string(key));
    return MP_OK;
}

static enum mp_code do_published(json_t *command, struct mp_err *err, json_t *answer)
{
    bool published = false;
    enum mp_code code = lake->driver->published(lake, text_of(command, "key"), err, &published);

    json_object_set_new(answer, "published", json_boolean(published));
    return code;
}

static void hear_written(void *self, int32_t partition, int64_t last)
{
    json_array_append_new(self, json_pack("[i,I]", (int)partition, (json_int_t)last));
}

static enum mp_code do_written(json_t *command, struct mp_err *err, json_t *answer)
{
    json_t *told = json_array();
    bool rows = false;
    enum mp_code code =
        lake->driver->written(lake, text_of(command, "table"), hear_written, told, err, &rows);

    json_object_set_new(answer, "told", told);
    json_object_set_new(answer, "rows", json_boolean(rows));
    return code;
}

static enum mp_code do_append(json_t *command, struct mp_err *err, json_t *answer)
{
    json_t *list = json_object_get(command, "appends"), *from = json_object_get(command, "ranges");
    size_t count = json_array_size(list), range_count = json_array_size(from);
    struct mp_lake_append *appends = mp_arena_take(&arena, sizeof(*appends) * (count + 1));
    struct mp_lake_commit commit = {.appends = appends,
                                    .append_count = (uint32_t)count,
                                    .ranges = ranges_of(from),
                                    .range_count = (uint32_t)range_count,
                                    .trigger = text_of(command, "trigger"),
                                    .key = text_of(command, "key")};
    struct mp_lake_result result = {0};
    uint64_t start_us;
    enum mp_code code;

    for (size_t i = 0; i < count; i++) {
        json_t *item = json_array_get(list, i), *files = json_object_get(item, "files");
        struct mp_lake_file *made =
            mp_arena_take(&arena, sizeof(*made) * (json_array_size(files) + 1));

        for (size_t f = 0; f < json_array_size(files); f++)
            take_file(json_array_get(files, f), &made[f]);
        appends[i] = (struct mp_lake_append){lent(text_of(item, "table")), made,
                                             (uint32_t)json_array_size(files)};
    }
    start_us = mp_now_mono_us(&env);
    code = lake->driver->append(lake, &commit, err, &result);
    json_object_set_new(answer, "us", json_integer((json_int_t)(mp_now_mono_us(&env) - start_us)));
    if (result.orphaned)
        json_object_set_new(answer, "orphaned", json_string(result.orphaned));
    if (code)
        return code;
    json_object_set_new(answer, "snapshot", json_integer(result.snapshot));
    json_object_set_new(answer, "already", json_boolean(result.already_published));
    json_object_set_new(answer, "replayed", json_boolean(result.replayed));
    return MP_OK;
}

static enum mp_code do_positions(json_t *command, struct mp_err *err, json_t *answer)
{
    json_t *list = json_object_get(command, "partitions"), *rows = json_array();
    size_t count = json_array_size(list);
    struct mp_lake_position *positions = mp_arena_take(&arena, sizeof(*positions) * (count + 1));
    enum mp_code code;

    for (size_t i = 0; i < count; i++)
        positions[i].partition = (int32_t)json_integer_value(json_array_get(list, i));
    code = lake->driver->positions(lake, positions, (uint32_t)count, err);
    for (size_t i = 0; !code && i < count; i++)
        json_array_append_new(
            rows, json_pack("[i,I,I,o]", (int)positions[i].partition, (json_int_t)positions[i].next,
                            (json_int_t)positions[i].epoch, string(positions[i].table_uuid)));
    json_object_set_new(answer, "positions", rows);
    return code;
}

static enum mp_code do_claim(json_t *command, struct mp_err *err, json_t *answer)
{
    json_t *list = json_object_get(command, "claims");
    size_t count = json_array_size(list);
    struct mp_lake_claim *claims = mp_arena_take(&arena, sizeof(*claims) * (count + 1));

    (void)answer;
    for (size_t i = 0; i < count; i++) {
        json_t *item = json_array_get(list, i);

        claims[i] = (struct mp_lake_claim){
            (int32_t)json_integer_value(json_array_get(item, 0)),
            json_integer_value(json_array_get(item, 1)),
            json_integer_value(json_array_get(item, 2)),
            json_integer_value(json_array_get(item, 3)),
        };
    }
    return lake->driver->claim(lake, claims, (uint32_t)count, err);
}

static enum mp_code do_ping(json_t *command, struct mp_err *err, json_t *answer)
{
    (void)command, (void)answer;
    return lake->driver->ping(lake, err);
}

/* Resident kilobytes, to see growth. */
static enum mp_code do_memory(json_t *command, struct mp_err *err, json_t *answer)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    (void)command, (void)err;
    if (file && fscanf(file, "%*d %ld", &pages) == 1)
        json_object_set_new(answer, "kb", json_integer(pages * 4));
    if (file)
        fclose(file);
    return MP_OK;
}

static const struct {
    const char *op;
    enum mp_code (*run)(json_t *command, struct mp_err *err, json_t *answer);
} commands[] = {
    {"open", do_open},           {"resolve", do_resolve},
    {"evolve", do_evolve},       {"key", do_key},
    {"append", do_append},       {"positions", do_positions},
    {"claim", do_claim},         {"ping", do_ping},
    {"memory", do_memory},       {"commit_key", do_commit_key},
    {"published", do_published}, {"written", do_written},
};

static void run(json_t *command, json_t *answer)
{
    struct mp_str op = text_of(command, "op");
    struct mp_err err = {MP_OK};
    enum mp_code code = MP_NOT_FOUND;

    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        if (mp_str_eq(op, mp_str_c(commands[i].op)))
            code = commands[i].run(command, &err, answer);
    json_object_set_new(answer, "code", json_string(mp_code_name(code)));
    if (code) {
        json_object_set_new(answer, "text", string(mp_str_c(err.text)));
        json_object_set_new(answer, "retriable", json_boolean(err.retriable));
    }
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t size;

    env = mp_env_real();
    mp_arena_init(&arena, 0);
    while ((size = getline(&line, &room, stdin)) > 0) {
        json_error_t error;
        json_t *command = json_loadb(line, (size_t)size, JSON_ALLOW_NUL, &error);
        json_t *answer = json_object();

        if (!command) {
            fprintf(stderr, "not JSON: %s\n", error.text);
            return 2;
        }
        mp_arena_reset(&arena);
        run(command, answer);
        json_dumpf(answer, stdout, JSON_COMPACT);
        printf("\n");
        fflush(stdout);
        json_decref(answer);
        json_decref(command);
    }
    mp_lake_close(lake);
    mp_arena_fini(&arena);
    free(line);
    return 0;
}
