/* tests/lake/hoglake_tool.c - rows and a live hoglake table in, files and the request's body out.
 *
 * hoglake-tool DIRECTORY < QUESTION > BODY, the question a JSON object:
 *
 *     catalog, data_path, topic, version, author, trigger   texts
 *     table                    the catalog's answer to a GET of the table
 *     arrow_bytes, group_rows  numbers; rows of a row group
 *     ranges                   [[partition, lowest, highest], ...]
 *     rows                     [[value, ...], ...]: a value of each column as it lies in memory, in
 *                              hexadecimal, or null
 *     absent                   [index, ...]: columns of the table that no row names
 *
 * Writes each file as DIRECTORY/0, DIRECTORY/1 ... and prints the body that commits them. Driven by
 * judge_hoglake_values.py.
 */
#include "base/mem.h"
#include "column/batch.h"
#include "column/transform.h"
#include "lake/hoglake/body.h"
#include "parquet/writer.h"

#include <stdio.h>
#include <stdlib.h>

static struct mp_arena arena;
static json_t *question;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "hoglake-tool: %s\n", what);
    exit(1);
}

static struct mp_str text_of(const json_t *object, const char *name)
{
    const json_t *item = json_object_get(object, name);

    if (!json_is_string(item))
        fail(name);
    return mp_str_n(json_string_value(item), json_string_length(item));
}

static int64_t number_of(const json_t *object, const char *name)
{
    const json_t *item = json_object_get(object, name);

    if (!json_is_integer(item))
        fail(name);
    return json_integer_value(item);
}

/* --- the table --- */

static int by_ordinal(const void *a, const void *b)
{
    const json_t *left = *(json_t *const *)a, *right = *(json_t *const *)b;

    return number_of(left, "ordinal") < number_of(right, "ordinal") ? -1 : 1;
}

static void columns_read(const json_t *list, struct mp_schema *ret)
{
    uint32_t count = (uint32_t)json_array_size(list);
    struct mp_live_column *columns = mp_arena_take(&arena, (count + 1) * sizeof(*columns));
    json_t **sorted = mp_arena_take(&arena, (count + 1) * sizeof(json_t *));

    for (uint32_t i = 0; i < count; i++)
        sorted[i] = json_array_get(list, i);
    qsort(sorted, count, sizeof(*sorted), by_ordinal);
    for (uint32_t i = 0; i < count; i++) {
        const json_t *params = json_object_get(sorted[i], "type_params");
        char *dumped = params ? json_dumps(params, JSON_COMPACT) : NULL;

        columns[i].name = text_of(sorted[i], "name");
        columns[i].field_id = (int32_t)number_of(sorted[i], "field_id");
        if (!mp_hog_type_of_name(text_of(sorted[i], "type"), mp_str_c(dumped), &columns[i].type))
            fail("a column's type cannot be written");
        free(dumped);
    }
    ret->columns = columns;
    ret->column_count = count;
}

static void partition_read(const json_t *spec, struct mp_schema *ret)
{
    const json_t *list = json_object_get(spec, "fields");
    uint32_t count = (uint32_t)json_array_size(list);
    struct mp_partition_field *fields = mp_arena_take(&arena, (count + 1) * sizeof(*fields));

    for (uint32_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        struct mp_wire_partition_field wire = {
            .source_field_id = number_of(item, "source_field_id"),
            .transform = text_of(item, "transform"),
            .has_param = json_is_integer(json_object_get(item, "transform_param")),
            .param = json_integer_value(json_object_get(item, "transform_param"))};

        if (!mp_hog_partition_read(&wire, &fields[i]))
            fail("an unknown transform");
    }
    ret->partition = fields;
    ret->partition_count = count;
    ret->spelling = MP_SPELLING_HOGLAKE;
}

static struct mp_lake_table table_read(const json_t *object)
{
    struct mp_lake_table table = {.schema_name = text_of(object, "namespace"),
                                  .name = text_of(object, "name"),
                                  .uuid = text_of(object, "table_uuid"),
                                  .snapshot = number_of(object, "read_snapshot_id")};

    columns_read(json_object_get(object, "columns"), &table.schema);
    partition_read(json_object_get(object, "partition_spec"), &table.schema);
    return table;
}

/* --- the rows --- */

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static struct mp_str bytes_of(const json_t *hex)
{
    size_t size = json_string_length(hex) / 2;
    const char *text = json_string_value(hex);
    char *bytes = mp_arena_take(&arena, size + 16);

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    return mp_str_n(bytes, size);
}

/* at: each column's number in the batch. */
static void rows_add(struct mp_batch *batch, const struct mp_schema *schema, const uint32_t *at,
                     const json_t *row)
{
    for (uint32_t i = 0; i < schema->column_count; i++) {
        const json_t *item = json_array_get(row, i);
        struct mp_type type = schema->columns[i].type;
        struct mp_str value;

        if (!json_is_string(item))
            continue;
        value = bytes_of(item);
        if (mp_type_is_text(type))
            mp_batch_set_text(batch, at[i], value);
        else if (value.size != mp_type_width(type))
            fail("a value of another width");
        else
            mp_batch_set(batch, at[i], value.data);
    }
    mp_batch_row_end(batch);
}

static bool absent(size_t column)
{
    const json_t *list = json_object_get(question, "absent"), *item;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        if ((size_t)json_integer_value(item) == column)
            return true;
    }
    return false;
}

/* The batch sealed against the table. */
static struct mp_batch *rows_read(struct mp_segment_pool *pool, const struct mp_schema *schema,
                                  const json_t *rows)
{
    struct mp_batch_options options = {.columns_max = UINT32_MAX, .name_ok = mp_hog_name_ok};
    struct mp_batch *batch = mp_batch_new(pool, &options);
    uint32_t *at = mp_arena_take(&arena, (schema->column_count + 1) * sizeof(*at));
    struct mp_batch_plan plan;
    struct mp_err err;
    json_t *row;
    size_t i;

    for (i = 0; i < schema->column_count; i++)
        if (!absent(i))
            at[i] = mp_batch_declare(batch, schema->columns[i].name, schema->columns[i].type);
    json_array_foreach((json_t *)(uintptr_t)rows, i, row)
    {
        rows_add(batch, schema, at, row);
    }
    if (mp_batch_plan(batch, schema, &err, &plan))
        fail(err.text);
    if (plan.add_count || plan.widen_count)
        fail("the table lacks something");
    mp_batch_seal(batch, schema, 0);
    return batch;
}

/* --- files --- */

static void file_write(const char *directory, uint32_t index, const struct mp_parquet_file *file)
{
    FILE *out = fopen(mp_arena_printf(&arena, "%s/%u", directory, index), "wb");

    if (!out)
        fail(directory);
    for (uint32_t i = 0; i < file->piece_count; i++)
        if (fwrite(file->pieces[i].data, 1, file->pieces[i].size, out) != file->pieces[i].size)
            fail("write");
    if (fclose(out))
        fail("close");
}

struct files {
    struct mp_parquet_chunk **chunks;
    struct mp_parquet_file **parquet;
    struct mp_lake_file *lake;
    uint32_t chunk_count, count;
};

/* Encodes the cut and writes its files. */
static struct files files_make(struct mp_segment_pool *pool, struct mp_column *columns,
                               uint32_t column_count, const struct mp_cut *cut,
                               const char *directory)
{
    struct mp_parquet_options options = {.codec = MP_CODEC_ZSTD};
    struct mp_parquet_encoder *encoder = mp_parquet_encoder_new(&options);
    struct mp_parquet_rows *rows = mp_arena_take(&arena, cut->count * sizeof(*rows));
    struct mp_parquet_cut parquet_cut = {.files = rows,
                                         .file_count = cut->count,
                                         .group_rows_max =
                                             (uint32_t)number_of(question, "group_rows")};
    struct mp_parquet_field *fields = mp_arena_take(&arena, column_count * sizeof(*fields));
    struct files files = {.count = cut->count};
    uint32_t groups = 0, first = 0;
    struct mp_err err;

    for (uint32_t i = 0; i < cut->count; i++)
        rows[i] = (struct mp_parquet_rows){cut->files[i].rows, cut->files[i].count};
    for (uint32_t i = 0; i < cut->count; i++)
        groups += mp_parquet_groups(&parquet_cut, i);
    files.chunk_count = groups * column_count;
    files.chunks = mp_arena_take(&arena, files.chunk_count * sizeof(struct mp_parquet_chunk *));
    files.parquet = mp_arena_take(&arena, cut->count * sizeof(struct mp_parquet_file *));
    files.lake = mp_arena_take(&arena, cut->count * sizeof(*files.lake));
    for (uint32_t i = 0; i < column_count; i++)
        if (mp_parquet_encode(encoder, pool, &columns[i], &parquet_cut, &err,
                              files.chunks + (size_t)i * groups))
            fail(err.text);
    for (uint32_t file = 0; file < cut->count; file++) {
        uint32_t file_groups = mp_parquet_groups(&parquet_cut, file);

        for (uint32_t i = 0; i < column_count; i++)
            fields[i] =
                (struct mp_parquet_field){columns[i].name, columns[i].type, columns[i].field_id,
                                          files.chunks + (size_t)i * groups + first};
        files.parquet[file] =
            mp_parquet_file_new(fields, column_count, file_groups, MP_STR("millpond test"));
        file_write(directory, file, files.parquet[file]);
        files.lake[file] = (struct mp_lake_file){.rows = files.parquet[file]->rows,
                                                 .bytes = files.parquet[file]->bytes,
                                                 .footer_bytes = files.parquet[file]->footer_bytes,
                                                 .stats = files.parquet[file]->stats,
                                                 .stats_count = files.parquet[file]->stats_count,
                                                 .partition = cut->files[file].values};
        first += file_groups;
    }
    mp_parquet_encoder_free(encoder);
    return files;
}

static void files_free(struct files *files)
{
    for (uint32_t i = 0; i < files->count; i++)
        mp_parquet_file_free(files->parquet[i]);
    for (uint32_t i = 0; i < files->chunk_count; i++)
        mp_parquet_chunk_free(files->chunks[i]);
}

/* --- the commit --- */

static void print_body(const struct mp_lake_table *table, struct mp_lake_append *append)
{
    const json_t *list = json_object_get(question, "ranges");
    uint32_t count = (uint32_t)json_array_size(list);
    struct mp_lake_range *ranges = mp_arena_take(&arena, (count + 1) * sizeof(*ranges));
    struct mp_lake_commit commit = {.appends = append,
                                    .append_count = 1,
                                    .ranges = ranges,
                                    .range_count = count,
                                    .trigger = text_of(question, "trigger"),
                                    .arrow_bytes = (uint64_t)number_of(question, "arrow_bytes")};
    struct mp_lake_file *files = (struct mp_lake_file *)(uintptr_t)append->files;
    struct mp_buf message = MP_BUF_INIT(SIZE_MAX), body = MP_BUF_INIT(SIZE_MAX);
    struct mp_env env = mp_env_real();
    char key[MP_LAKE_KEY_SIZE];

    for (uint32_t i = 0; i < count; i++) {
        const json_t *range = json_array_get(list, i);

        ranges[i].partition = (int32_t)json_integer_value(json_array_get(range, 0));
        ranges[i].lowest = json_integer_value(json_array_get(range, 1));
        ranges[i].highest = json_integer_value(json_array_get(range, 2));
    }
    mp_hog_key(text_of(question, "catalog"), table->schema_name, table->name, table->uuid,
               text_of(question, "topic"), ranges, count, key);
    commit.key = mp_str_c(key);
    for (uint32_t i = 0; i < append->file_count; i++) {
        struct mp_lake_place place = {files[i].partition, commit.key, i};
        struct mp_buf object = MP_BUF_INIT(4096);

        mp_hog_object_key(table->schema_name, table->name, &place, &env, &object);
        files[i].key = mp_arena_str(&arena, mp_buf_str(&object));
        mp_buf_fini(&object);
    }
    mp_hog_message(&commit, text_of(question, "topic"), text_of(question, "version"), table->uuid,
                   &message);
    mp_hog_body_print(&(struct mp_hog_body){.commit = &commit,
                                            .namespace_name = table->schema_name,
                                            .data_path = text_of(question, "data_path"),
                                            .read_snapshot = table->snapshot,
                                            .author = text_of(question, "author"),
                                            .message = mp_buf_str(&message)},
                      &body);
    fwrite(body.data, 1, body.size, stdout);
    mp_buf_fini(&message);
    mp_buf_fini(&body);
}

int main(int argc, char **argv)
{
    struct mp_segment_pool *pool = mp_segment_pool_new(0);
    struct mp_lake_append append = {0};
    struct mp_lake_table table;
    struct mp_column *columns;
    struct mp_batch *batch;
    uint32_t column_count;
    json_error_t wrong;
    struct mp_err err;
    struct files files;
    struct mp_cut cut;

    if (argc != 2)
        fail("DIRECTORY");
    question = json_loadf(stdin, 0, &wrong);
    if (!question)
        fail(wrong.text);
    mp_arena_init(&arena, 0);
    table = table_read(json_object_get(question, "table"));
    batch = rows_read(pool, &table.schema, json_object_get(question, "rows"));
    columns = mp_batch_columns(batch, &column_count);
    if (mp_cut_columns(&arena, columns, column_count, &table.schema, mp_batch_rows(batch), &err,
                       &cut))
        fail(err.text);
    files = files_make(pool, columns, column_count, &cut, argv[1]);
    append = (struct mp_lake_append){&table, files.lake, files.count};
    print_body(&table, &append);
    files_free(&files);
    mp_cut_fini(&cut);
    mp_batch_free(batch);
    mp_segment_pool_free(pool);
    mp_arena_fini(&arena);
    json_decref(question);
    return 0;
}
