/* tests/server/values_tool.c - our rules for values, asked line by line by judge_values.py.
 *
 * Each line of standard input is a JSON object with "op"; each answer is one line of JSON.
 *
 *     bound   type scale hex             -> valid, value (as people read it)
 *     order   type a b                   -> order: -1, 0, 1
 *     zero    type hex upper             -> hex
 *     bucket  type precision scale hex   -> hash; hex is the value as Parquet's PLAIN lays it
 *     number  type transform hex         -> number of a temporal transform
 *     text    type precision scale hex   -> text of the identity
 *     stats   columns file               -> stats, as a commit would register them
 *     variant declaration                -> fault (null: none)
 */
#include "base/file.h"
#include "base/mem.h"
#include "column/transform.h"
#include "column/transform_priv.h"
#include "server/background/callouts.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { FILE_BYTES_MAX = 64 * 1024 * 1024 };

static struct mp_arena arena;
static struct mp_buf out;

static const char *text_of(const json_t *ask, const char *name)
{
    const char *text = json_string_value(json_object_get(ask, name));

    assert(text);
    return text;
}

static struct mp_str hex_of(const json_t *ask, const char *name)
{
    const char *hex = text_of(ask, name);
    size_t size = strlen(hex) / 2;
    char *bytes = mp_arena_take(&arena, size + 1);

    for (size_t i = 0; i < size; i++) {
        char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};

        bytes[i] = (char)strtoul(pair, NULL, 16);
    }
    return mp_str_n(bytes, size);
}

static enum mp_hog_type hog_type(const json_t *ask)
{
    enum mp_hog_type type = MP_HOG_TYPES;

    mp_hog_type_read(mp_str_c(text_of(ask, "type")), NULL, &type);
    assert(type != MP_HOG_TYPES);
    return type;
}

/* The writer's type of the same name. */
static struct mp_type writer_type(const json_t *ask)
{
    static const uint8_t types[MP_HOG_TYPES] = {
        [MP_HOG_BOOLEAN] = MP_TYPE_BOOL,
        [MP_HOG_INT8] = MP_TYPE_INT8,
        [MP_HOG_INT16] = MP_TYPE_INT16,
        [MP_HOG_INT] = MP_TYPE_INT32,
        [MP_HOG_LONG] = MP_TYPE_INT64,
        [MP_HOG_UINT8] = MP_TYPE_UINT8,
        [MP_HOG_UINT16] = MP_TYPE_UINT16,
        [MP_HOG_UINT32] = MP_TYPE_UINT32,
        [MP_HOG_UINT64] = MP_TYPE_UINT64,
        [MP_HOG_FLOAT] = MP_TYPE_FLOAT,
        [MP_HOG_DOUBLE] = MP_TYPE_DOUBLE,
        [MP_HOG_DECIMAL] = MP_TYPE_DECIMAL,
        [MP_HOG_DATE] = MP_TYPE_DATE,
        [MP_HOG_TIME] = MP_TYPE_TIME,
        [MP_HOG_TIMESTAMP_S] = MP_TYPE_TIMESTAMP_S,
        [MP_HOG_TIMESTAMP_MS] = MP_TYPE_TIMESTAMP_MS,
        [MP_HOG_TIMESTAMP] = MP_TYPE_TIMESTAMP,
        [MP_HOG_TIMESTAMP_NS] = MP_TYPE_TIMESTAMP_NS,
        [MP_HOG_TIMESTAMPTZ] = MP_TYPE_TIMESTAMPTZ,
        [MP_HOG_STRING] = MP_TYPE_VARCHAR,
        [MP_HOG_JSON] = MP_TYPE_JSON,
        [MP_HOG_UUID] = MP_TYPE_UUID,
        [MP_HOG_BINARY] = MP_TYPE_BLOB,
    };
    struct mp_type type = {.id = types[hog_type(ask)]};

    assert(type.id);
    type.precision = (uint8_t)json_integer_value(json_object_get(ask, "precision"));
    type.scale = (uint8_t)json_integer_value(json_object_get(ask, "scale"));
    return type;
}

static void print_hex(struct mp_str bytes)
{
    mp_buf_add_byte(&out, '"');
    for (size_t i = 0; i < bytes.size; i++)
        mp_buf_printf(&out, "%02x", (unsigned char)bytes.data[i]);
    mp_buf_add_byte(&out, '"');
}

static void say_bound(const json_t *ask)
{
    struct mp_str bytes = hex_of(ask, "hex");

    mp_buf_printf(&out, "{\"valid\":%s,\"value\":",
                  mp_hog_bound_valid(hog_type(ask), bytes) ? "true" : "false");
    mp_hog_bound_print(&out, hog_type(ask), json_integer_value(json_object_get(ask, "scale")),
                       bytes);
    mp_buf_add_byte(&out, '}');
}

static void say_order(const json_t *ask)
{
    int order = mp_hog_bound_cmp(hog_type(ask), hex_of(ask, "a"), hex_of(ask, "b"));

    mp_buf_printf(&out, "{\"order\":%d}", (order > 0) - (order < 0));
}

static void say_zero(const json_t *ask)
{
    mp_buf_add_c(&out, "{\"hex\":");
    print_hex(mp_hog_bound_zero(&arena, hog_type(ask), hex_of(ask, "hex"),
                                json_is_true(json_object_get(ask, "upper"))));
    mp_buf_add_byte(&out, '}');
}

static void say_bucket(const json_t *ask)
{
    mp_buf_printf(&out, "{\"hash\":%d}",
                  (int)mp_bucket_hash(writer_type(ask), hex_of(ask, "hex"), true));
}

static void say_number(const json_t *ask)
{
    static const struct {
        const char *name;
        uint8_t transform;
    } names[] = {{"year", MP_TRANSFORM_EPOCH_YEAR},
                 {"month", MP_TRANSFORM_EPOCH_MONTH},
                 {"day", MP_TRANSFORM_EPOCH_DAY},
                 {"hour", MP_TRANSFORM_EPOCH_HOUR}};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(names[i].name, text_of(ask, "transform")) == 0) {
            struct mp_partition_field field = {.transform = names[i].transform};

            mp_buf_printf(
                &out, "{\"number\":%lld}",
                (long long)mp_transform_number(&field, writer_type(ask), hex_of(ask, "hex")));
        }
}

static void say_text(const json_t *ask)
{
    mp_buf_add_c(&out, "{\"text\":");
    mp_buf_add_json(&out, mp_value_text_hoglake(&arena, writer_type(ask), hex_of(ask, "hex")));
    mp_buf_add_byte(&out, '}');
}

static void say_stats(const json_t *ask)
{
    struct mp_wire_reader reader = {.arena = &arena};
    struct mp_buf file = MP_BUF_INIT(FILE_BYTES_MAX);
    const struct mp_parquet_footer *footer;
    struct mp_columns columns;
    struct mp_wire_file told = {.has_stats = true};
    struct mp_footer stats;
    struct mp_err err = {0};
    uint32_t size;
    int64_t next = 1;

    mp_wire_columns_read(&reader, json_object_get(ask, "columns"), &columns.items, &columns.count);
    assert(!reader.failed);
    assert(!mp_columns_check(&(struct mp_columns_check){.arena = &arena}, columns, "", &err));
    mp_columns_assign(columns, 0, &next);
    if (!mp_file_read(text_of(ask, "file"), &file) || file.size < MP_PARQUET_TAIL_BYTES ||
        mp_parquet_footer_bytes(
            mp_str_n(file.data + file.size - MP_PARQUET_TAIL_BYTES, MP_PARQUET_TAIL_BYTES),
            file.size, &err, &size) ||
        mp_parquet_footer_read(&arena,
                               mp_str_n(file.data + file.size - MP_PARQUET_TAIL_BYTES - size, size),
                               file.size, &err, &footer)) {
        mp_buf_printf(&out, "{\"error\":\"%s\"}", err.text);
    } else {
        mp_footer_tell(&arena, footer, columns, &stats);
        told.stats = stats.stats;
        told.stats_count = stats.stats_count;
        mp_buf_add_c(&out, "{\"stats\":[");
        for (uint32_t i = 0; i < told.stats_count; i++) {
            const struct mp_wire_stats *one = &told.stats[i];

            mp_buf_printf(&out,
                          "%s{\"field_id\":%lld,\"value_count\":%lld,\"null_count\":%lld,"
                          "\"size_bytes\":%lld,\"lower\":",
                          i ? "," : "", (long long)one->field_id, (long long)one->value_count,
                          (long long)one->null_count, (long long)one->size_bytes);
            if (one->lower.data)
                print_hex(one->lower);
            else
                mp_buf_add_c(&out, "null");
            mp_buf_add_c(&out, ",\"upper\":");
            if (one->upper.data)
                print_hex(one->upper);
            else
                mp_buf_add_c(&out, "null");
            mp_buf_add_byte(&out, '}');
        }
        mp_buf_add_c(&out, "]}");
    }
    mp_buf_fini(&file);
}

static void say_variant(const json_t *ask)
{
    struct mp_err err = {0};

    mp_buf_add_c(&out, "{\"fault\":");
    if (mp_variant_check(json_object_get(ask, "declaration"), "v", &err))
        mp_buf_add_json(&out, mp_str_c(err.text));
    else
        mp_buf_add_c(&out, "null");
    mp_buf_add_byte(&out, '}');
}

static const struct {
    const char *op;
    void (*say)(const json_t *ask);
} ops[] = {
    {"bound", say_bound},   {"order", say_order}, {"zero", say_zero},   {"bucket", say_bucket},
    {"number", say_number}, {"text", say_text},   {"stats", say_stats}, {"variant", say_variant},
};

int main(void)
{
    char *line = NULL;
    size_t room = 0;

    out = MP_BUF_INIT(FILE_BYTES_MAX);
    while (getline(&line, &room, stdin) > 0) {
        json_t *ask = json_loads(line, JSON_ALLOW_NUL, NULL);

        mp_arena_init(&arena, 0);
        mp_buf_clear(&out);
        if (!ask) /* the service refuses it before any rule is asked */
            mp_buf_add_c(&out, "{\"fault\":\"no JSON\"}");
        for (size_t i = 0; ask && i < sizeof(ops) / sizeof(*ops); i++)
            if (strcmp(ops[i].op, text_of(ask, "op")) == 0)
                ops[i].say(ask);
        assert(out.size);
        mp_buf_add_byte(&out, '\n');
        fwrite(out.data, 1, out.size, stdout);
        mp_arena_fini(&arena);
        json_decref(ask);
    }
    mp_buf_fini(&out);
    free(line);
    return 0;
}
