/* tests/parquet/merge_tool.c - the values that we read, and files merged, for judge_reader.py.
 *
 *     parquet-merge-tool values FILE...
 *     parquet-merge-tool merge OUT [OPTION...] COLUMN... -- FILE[:ID[:ROW,ROW...]]...
 *
 * values prints one JSON object a file: {"columns": [[value, ...], ...]}, where a value is null or
 * the hex of its bytes as PLAIN has them (texts without their length), of a leaf inside groups an
 * entry [repetition level, definition level, value], and instead of the list of a column that
 * cannot be read, a text that says why. merge takes columns as ID:TYPE:NAME, types by DuckLake's
 * names or list<COLUMN>, map<COLUMN,COLUMN>, struct<COLUMN,...>, and finds their leaves by field
 * id; a file may say where its row ids begin and which rows are deleted. It prints {"rows",
 * "bytes"} or the error. Options: --sort ID[:desc][:first], --group-bytes N, --bytes-max N, --codec
 * N.
 */
#include "parquet/merge.h"
#include "parquet/reader.h"
#include "parquet/tool_file.h"

#include <sys/mman.h>

enum { INPUTS_MAX = 256, COLUMNS_MAX = 256, ROW_ID_FIELD = 2147483646 };

static struct mp_str map_file(const struct opened *file)
{
    char *bytes = mmap(NULL, file->bytes, PROT_READ, MAP_PRIVATE, file->fd, 0);

    assert(bytes != MAP_FAILED);
    return mp_str_n(bytes, file->bytes);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void print_batch(const struct mp_parquet_batch *batch, uint32_t width, bool nested,
                        bool *first)
{
    uint32_t value = 0;

    for (uint32_t row = 0; row < batch->rows; row++) {
        bool has = batch->validity[row / 64] >> (row & 63) & 1;

        printf(*first ? "" : ",");
        *first = false;
        if (nested)
            printf("[%u,%u,", batch->repetitions[row], batch->definitions[row]);
        assert(!has || value < batch->values);
        if (has)
            print_hex(batch->texts ? batch->texts[value]
                                   : mp_str_n(batch->fixed + (size_t)value * width, width));
        else
            printf("null");
        printf(nested ? "]" : "");
        value += has;
    }
    assert(value == batch->values);
}

/* Reads a leaf to its end, printing or not. */
static enum mp_code read_leaf(struct mp_parquet_reader *reader, const struct opened *file,
                              struct mp_str bytes, uint32_t leaf, bool print, struct mp_err *err)
{
    const struct mp_parquet_footer *footer = file->footer;
    const struct mp_parquet_node *node = &footer->nodes[footer->leaves[leaf]];
    uint32_t width = mp_parquet_leaf_width(node);
    bool first = true;
    enum mp_code code = mp_parquet_reader_check(footer, leaf, err);

    for (uint32_t group = 0; group < footer->group_count && !code; group++) {
        const struct mp_parquet_column_chunk *chunk = &footer->groups[group].chunks[leaf];
        struct mp_parquet_batch batch = {.rows = 1};

        code = mp_parquet_reader_open(reader, footer, group, leaf,
                                      mp_parquet_chunk_in(bytes, chunk), err);
        while (!code && batch.rows) {
            code = mp_parquet_reader_next(reader, err, &batch);
            if (!code && print)
                print_batch(&batch, width, mp_parquet_leaf_nested(node), &first);
        }
    }
    return code;
}

/* A column that ends in an error has no values: it is read once before it is printed. */
static void print_leaf(struct mp_parquet_reader *reader, const struct opened *file,
                       struct mp_str bytes, uint32_t leaf)
{
    struct mp_err err;

    if (read_leaf(reader, file, bytes, leaf, false, &err)) {
        print_hex(mp_str_c(err.text));
        return;
    }
    putchar('[');
    read_leaf(reader, file, bytes, leaf, true, &err);
    putchar(']');
}

static int values(char **paths, int count)
{
    struct mp_parquet_reader *reader = mp_parquet_reader_new(64 << 20);

    for (int i = 0; i < count; i++) {
        struct opened file = {.fd = -1};
        struct mp_arena arena;
        struct mp_str bytes;
        struct mp_err err;

        mp_arena_init(&arena, 0);
        if (open_file(&arena, paths[i], &err, &file)) {
            print_error(&err);
        } else {
            bytes = map_file(&file);
            printf("{\"columns\":[");
            for (uint32_t leaf = 0; leaf < file.footer->leaf_count; leaf++) {
                printf(leaf ? "," : "");
                print_leaf(reader, &file, bytes, leaf);
            }
            printf("]}\n");
            munmap((void *)(uintptr_t)bytes.data, bytes.size);
        }
        close_file(&file);
        mp_arena_fini(&arena);
    }
    mp_parquet_reader_free(reader);
    return 0;
}

/* ---- merge ----------------------------------------------------------------------------------- */

static struct opened files[INPUTS_MAX];
static struct mp_parquet_merge_input inputs[INPUTS_MAX];
static struct mp_parquet_merge_column columns[COLUMNS_MAX];
static struct mp_sort_field sort[COLUMNS_MAX];
static struct mp_parquet_merge_options options = {
    .columns = columns,
    .sort = sort,
    .created_by = MP_STR_INIT("millpond test"),
    .row_id_name = MP_STR_INIT("_hog_row_id"),
    .row_id_field_id = ROW_ID_FIELD,
    .codec = MP_CODEC_ZSTD,
};

static bool take_option(char ***at)
{
    char *name = (*at)[0], *value = (*at)[1];

    if (strcmp(name, "--sort") == 0)
        sort[options.sort_count++] = (struct mp_sort_field){
            .field_id = atoi(value),
            .descending = strstr(value, ":desc"),
            .nulls_first = strstr(value, ":first"),
        };
    else if (strcmp(name, "--group-bytes") == 0)
        options.group_bytes = strtoull(value, NULL, 10);
    else if (strcmp(name, "--bytes-max") == 0)
        options.bytes_max = strtoull(value, NULL, 10);
    else if (strcmp(name, "--codec") == 0)
        options.codec = (enum mp_codec)atoi(value);
    else
        return false;
    *at += 2;
    return true;
}

static bool take_word(const char **at, const char *word)
{
    bool there = strncmp(*at, word, strlen(word)) == 0;

    *at += there ? strlen(word) : 0;
    return there;
}

/* Takes ID:TYPE:NAME, the name up to one of `ends`. */
static struct mp_parquet_merge_column take_column(struct mp_arena *arena, const char **at,
                                                  const char *ends)
{
    struct mp_parquet_merge_column column = {.field_id = (int32_t)strtol(*at, (char **)at, 10)};
    struct mp_parquet_merge_column *children = mp_arena_take(arena, 64 * sizeof(*children));
    bool list, map, nested;
    size_t size;

    ++*at;
    list = take_word(at, "list<");
    map = !list && take_word(at, "map<");
    nested = list || map || take_word(at, "struct<");
    column.annotation = list ? MP_PARQUET_LIST : map ? MP_PARQUET_MAP : MP_PARQUET_PLAIN;
    for (bool more = nested; more; more = *(*at)++ == ',') {
        assert(column.child_count < 64);
        children[column.child_count++] = take_column(arena, at, ",>");
    }
    column.children = children;
    if (!nested) {
        size = strcspn(*at, ":");
        column.type = mp_type_of_ducklake_name(mp_str_n(*at, size));
        *at += size;
    }
    ++*at;
    size = strcspn(*at, ends);
    column.name = mp_str_n(*at, size);
    *at += size;
    return column;
}

static int32_t leaf_of(const struct mp_parquet_footer *footer, int32_t field_id)
{
    for (uint32_t leaf = 0; leaf < footer->leaf_count; leaf++) {
        const struct mp_parquet_node *node = &footer->nodes[footer->leaves[leaf]];

        if (node->has_field_id && node->field_id == field_id)
            return (int32_t)leaf;
    }
    return MP_MERGE_NO_LEAF;
}

/* Where the file has a column: its leaf, of a nested one its node. */
static int32_t place_of(const struct mp_parquet_footer *footer,
                        const struct mp_parquet_merge_column *column)
{
    if (!mp_parquet_merge_nested(column))
        return leaf_of(footer, column->field_id);
    for (uint32_t i = 1; i < footer->node_count; i = footer->nodes[i].end)
        if (footer->nodes[i].has_field_id && footer->nodes[i].field_id == column->field_id)
            return (int32_t)i;
    return MP_MERGE_NO_LEAF;
}

static enum mp_code take_file(struct mp_arena *arena, char *text, uint32_t i, struct mp_err *err)
{
    char *id = strchr(text, ':'), *rows = id ? strchr(id + 1, ':') : NULL;
    int32_t *leaves = mp_arena_take(arena, sizeof(*leaves) * (options.column_count + 1));
    bool deletes = rows;
    uint64_t *deleted;
    enum mp_code code;

    if (id)
        *id = 0;
    files[i].fd = -1;
    code = open_file(arena, text, err, &files[i]);
    if (code)
        return code;
    for (uint32_t k = 0; k < options.column_count; k++)
        leaves[k] = place_of(files[i].footer, &columns[k]);
    deleted = mp_arena_take(arena, (size_t)files[i].footer->rows / 8 + 8);
    while (rows && rows[0] && rows[1]) {
        uint64_t number = strtoull(rows + 1, &rows, 10);

        assert(number < (uint64_t)files[i].footer->rows);
        deleted[number / 64] |= UINT64_C(1) << (number & 63);
    }
    inputs[i] = (struct mp_parquet_merge_input){
        .footer = files[i].footer,
        .bytes = map_file(&files[i]),
        .leaves = leaves,
        .deleted = deletes ? deleted : NULL,
        .row_id_leaf = leaf_of(files[i].footer, ROW_ID_FIELD),
        .row_id_start = id ? atoll(id + 1) : 0,
    };
    return MP_OK;
}

static int merge(char **at, char **end)
{
    struct mp_parquet_merged merged = {0};
    struct mp_arena arena;
    struct mp_err err;
    FILE *out = fopen(*at++, "wb");
    uint32_t count = 0, fault;
    enum mp_code code = MP_OK;

    if (!out)
        return 2;
    mp_arena_init(&arena, 0);
    while (end - at > 1 && take_option(&at))
        ;
    for (; at < end && strcmp(*at, "--") != 0; at++) {
        const char *text = *at;

        assert(options.column_count < COLUMNS_MAX);
        columns[options.column_count++] = take_column(&arena, &text, "");
    }
    for (at += at < end; at < end && !code && count < INPUTS_MAX; at++, count++)
        code = take_file(&arena, *at, count, &err);
    if (!code)
        code = mp_parquet_merge(&arena, inputs, count, &options,
                                &(struct mp_parquet_output){write_out, out}, &err, &fault, &merged);
    fclose(out);
    if (code)
        print_error(&err);
    else
        printf("{\"rows\":%" PRIu64 ",\"bytes\":%" PRIu64 "}\n", merged.rows, merged.bytes);
    while (count) {
        close_file(&files[--count]);
        if (inputs[count].bytes.data)
            munmap((void *)(uintptr_t)inputs[count].bytes.data, inputs[count].bytes.size);
    }
    mp_arena_fini(&arena);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "values") == 0)
        return values(argv + 2, argc - 2);
    if (argc > 3 && strcmp(argv[1], "merge") == 0)
        return merge(argv + 2, argv + argc);
    fprintf(stderr, "usage: parquet-merge-tool values FILE... | merge OUT [OPTION...] COLUMN... -- "
                    "FILE[:ID[:ROW,ROW...]]...\n");
    return 2;
}
