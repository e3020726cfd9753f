/* tests/fuzz/parquet_reader_fuzz.c - any bytes as a column chunk.
 *
 * The input begins with eight bytes: physical type, codec, flags of the leaf (enum flag, and in how
 * many lists it lies), entries in two bytes, the type of a column, its logical type, width of fixed
 * values. The rest is the chunk. What is read must be as many entries as the footer says, and what
 * is said of each batch must be so; then the file is merged into a column of that type, sorted by
 * it or not, or into a nested one, which may have a field that the file lacks, and the new file is
 * read again and has the same number of rows and of nulls.
 *
 * With -DMP_LIBFUZZER clang's fuzzer feeds it; without, it replays the files it is given.
 */
#include "fuzz/fuzz.h"
#include "base/buf.h"
#include "parquet/merge.h"
#include "parquet/reader.h"

#include <assert.h>

enum { HEAD_BYTES = 8, GROUPS_MAX = 8, BYTES_MAX = 16 << 20, FILE_BYTES_MAX = 256 << 20 };

enum flag {
    OPTIONAL = 1,
    LISTS = 6, /* two bits: their number */
    NESTED = 8,
    IN_STRUCT = 16, /* the innermost element is a struct with the leaf; without lists it is so */
    ASKED_FOR = 32, /* or else only the field that it lacks is */
    UNSORTED = 64,
};

enum { LEAF_ID = 5, LACKED_ID = 6, ELEMENT_ID = 10 };

/* A file of one leaf and one row group, as a footer would tell it. */
struct file {
    struct mp_parquet_node nodes[2 + GROUPS_MAX];
    uint32_t leaves[1];
    struct mp_parquet_column_chunk chunks[1];
    struct mp_parquet_row_group groups[1];
    uint8_t orders[1];
    struct mp_parquet_footer footer;
};

/* Adds a group inside the last one. */
static void add_group(struct file *file, uint8_t repetition, uint8_t kind, int32_t field_id)
{
    uint32_t at = file->footer.node_count++;
    const struct mp_parquet_node *around = &file->nodes[at - 1];

    assert(at <= GROUPS_MAX);
    file->nodes[at] = (struct mp_parquet_node){
        .name = MP_STR("x"),
        .parent = at - 1,
        .child_count = 1,
        .leaf = -1,
        .physical = -1,
        .depth = (uint16_t)at,
        .repetition = repetition,
        .logical = {.kind = kind},
        .field_id = field_id,
        .has_field_id = field_id > 0,
        .definition_max = (uint16_t)(around->definition_max + (repetition != MP_PARQUET_REQUIRED)),
        .repetition_max = (uint16_t)(around->repetition_max + (repetition == MP_PARQUET_REPEATED)),
    };
}

/* Puts the leaf into lists of lists, or into a struct, or into both. */
static void nest(struct file *file, uint8_t flags)
{
    uint32_t lists = (flags & LISTS) / 2, at;
    bool in_struct = !lists || flags & IN_STRUCT;
    struct mp_parquet_node leaf = file->nodes[1];

    file->footer.node_count = 1;
    for (uint32_t i = 0; i < lists; i++) {
        add_group(file, i ? MP_PARQUET_REQUIRED : MP_PARQUET_OPTIONAL, MP_PARQUET_LIST,
                  i ? ELEMENT_ID + (int32_t)i : 1);
        add_group(file, MP_PARQUET_REPEATED, MP_PARQUET_PLAIN, 0);
    }
    if (in_struct)
        add_group(file, MP_PARQUET_OPTIONAL, MP_PARQUET_PLAIN,
                  lists ? ELEMENT_ID + (int32_t)lists : 1);
    at = file->footer.node_count++;
    leaf.parent = at - 1;
    leaf.depth = (uint16_t)at;
    leaf.definition_max += file->nodes[at - 1].definition_max;
    leaf.repetition_max = file->nodes[at - 1].repetition_max;
    leaf.field_id = in_struct ? LEAF_ID : ELEMENT_ID + (int32_t)lists;
    leaf.has_field_id = true;
    file->nodes[at] = leaf;
    for (uint32_t i = 0; i <= at; i++)
        file->nodes[i].end = at + 1;
    file->leaves[0] = at;
}

/* What a merge is asked for where the file has that; columns has room for all of it. */
static void ask(struct mp_parquet_merge_column *columns, uint8_t flags, struct mp_type type)
{
    uint32_t lists = flags & NESTED ? (flags & LISTS) / 2 : 0;
    bool in_struct = flags & NESTED && (!lists || flags & IN_STRUCT);
    struct mp_parquet_merge_column *at = columns;

    *at = (struct mp_parquet_merge_column){MP_STR("x"), type, 1, 0, 0, NULL};
    for (uint32_t i = 0; i < lists; i++, at++) {
        at[1] = (struct mp_parquet_merge_column){
            MP_STR("element"), type, ELEMENT_ID + 1 + (int32_t)i, 0, 0, NULL};
        at->type = MP_TYPE(NONE);
        at->annotation = MP_PARQUET_LIST;
        at->children = at + 1;
        at->child_count = 1;
    }
    if (!in_struct)
        return;
    at->type = MP_TYPE(NONE);
    at->children = flags & ASKED_FOR ? at + 1 : at + 2;
    at->child_count = flags & ASKED_FOR ? 2 : 1;
    at[1] = (struct mp_parquet_merge_column){MP_STR("a"), type, LEAF_ID, 0, 0, NULL};
    at[2] = (struct mp_parquet_merge_column){MP_STR("b"), MP_TYPE(VARCHAR), LACKED_ID, 0, 0, NULL};
}

static void make_file(struct file *file, const uint8_t *head, size_t bytes)
{
    int64_t rows = head[3] | head[4] << 8;

    *file = (struct file){
        .nodes = {{.child_count = 1, .end = 2, .leaf = -1, .physical = -1},
                  {.name = MP_STR_INIT("x"),
                   .end = 2,
                   .depth = 1,
                   .physical = (int8_t)(head[0] & 7),
                   .repetition = head[2] & OPTIONAL,
                   .definition_max = head[2] & OPTIONAL,
                   .converted = -1,
                   .type_length = 1 + head[7],
                   .logical = {.kind = head[6] & 31,
                               .unit = 1 + head[6] / 32 % 3,
                               .bits = 16,
                               .is_signed = head[6] >> 7}}},
        .leaves = {1},
        .chunks = {{.start = 4,
                    .bytes = (int64_t)bytes,
                    .value_count = rows,
                    .codec = head[1] & 7,
                    .raw_bytes = (int64_t)bytes}},
        .groups = {{.chunks = file->chunks, .rows = rows}},
    };
    file->footer = (struct mp_parquet_footer){
        .rows = rows,
        .file_bytes = bytes + 100,
        .footer_bytes = 80,
        .nodes = file->nodes,
        .node_count = 2,
        .leaves = file->leaves,
        .leaf_count = 1,
        .groups = file->groups,
        .group_count = 1,
        .orders = file->orders,
    };
    if (head[2] & NESTED)
        nest(file, head[2]);
}

static uint32_t count_bits(const struct mp_parquet_batch *batch)
{
    uint32_t bits = 0;

    for (uint32_t i = 0; i < MP_PARQUET_BATCH_ROWS / 64; i++)
        bits += (uint32_t)__builtin_popcountll(batch->validity[i]);
    return bits;
}

/* Looks at every byte of every value; gives the rows and the nulls. */
static enum mp_code read_all(struct mp_parquet_reader *reader,
                             const struct mp_parquet_footer *footer, struct mp_str chunk,
                             struct mp_err *err, int64_t *ret_rows, int64_t *ret_nulls)
{
    const struct mp_parquet_node *leaf = &footer->nodes[footer->leaves[0]];
    uint32_t width = mp_parquet_leaf_width(leaf);
    struct mp_parquet_batch batch;
    int64_t entries = 0, rows = 0, values = 0;
    unsigned seen = 0;
    enum mp_code code = mp_parquet_reader_open(reader, footer, 0, 0, chunk, err);

    do {
        if (!code)
            code = mp_parquet_reader_next(reader, err, &batch);
        if (code)
            return code;
        assert(batch.rows <= MP_PARQUET_BATCH_ROWS && batch.values <= batch.rows);
        assert(!batch.rows || count_bits(&batch) == batch.values);
        for (uint32_t i = 0; i < batch.values; i++) {
            struct mp_str value =
                batch.texts ? batch.texts[i] : mp_str_n(batch.fixed + (size_t)i * width, width);

            if (value.size)
                seen += (unsigned char)value.data[0] + (unsigned char)value.data[value.size - 1];
        }
        for (uint32_t i = 0; i < batch.rows; i++) {
            assert(batch.repetitions[i] <= leaf->repetition_max);
            assert(batch.definitions[i] <= leaf->definition_max);
            rows += batch.repetitions[i] == 0;
        }
        entries += batch.rows;
        values += batch.values;
    } while (batch.rows);
    assert(entries == footer->groups[0].chunks[0].value_count && seen <= UINT32_MAX);
    *ret_rows = rows;
    *ret_nulls = entries - values;
    return MP_OK;
}

static enum mp_code write_out(void *context, struct mp_str bytes, struct mp_err *err)
{
    struct mp_buf *out = context;

    if (bytes.size > out->max - out->size)
        return mp_err_set(err, MP_IO, "too large for this test");
    mp_buf_add_str(out, bytes);
    return MP_OK;
}

static void merge(struct mp_arena *arena, const struct file *file, struct mp_str bytes,
                  uint8_t flags, struct mp_type type, int64_t nulls)
{
    bool nested = flags & NESTED;
    bool lacks = nested && file->nodes[file->leaves[0]].field_id == LEAF_ID && !(flags & ASKED_FOR);
    struct mp_parquet_merge_column columns[GROUPS_MAX];
    struct mp_sort_field sort = {.field_id = 1, .descending = true};
    struct mp_parquet_merge_options options = {
        .columns = columns,
        .column_count = 1,
        .sort = &sort,
        .sort_count = !nested && !(flags & UNSORTED),
        .created_by = MP_STR("fuzz"),
        .row_id_name = MP_STR("id"),
        .row_id_field_id = 2,
        .bytes_max = BYTES_MAX,
        .group_bytes = 1000,
    };
    int32_t leaf = nested; /* its node there */
    struct mp_parquet_merge_input input = {
        .footer = &file->footer, .bytes = bytes, .leaves = &leaf, .row_id_leaf = MP_MERGE_NO_LEAF};
    struct mp_buf out = MP_BUF_INIT(FILE_BYTES_MAX);
    struct mp_parquet_output output = {write_out, &out};
    struct mp_parquet_merged merged;
    struct mp_parquet_reader *reader = mp_parquet_reader_new(BYTES_MAX);
    struct mp_err err;
    uint32_t fault;

    ask(columns, flags, type);
    if (mp_parquet_merge(arena, &input, 1, &options, &output, &err, &fault, &merged) == MP_OK &&
        merged.footer) {
        const struct mp_parquet_footer *footer = merged.footer;
        int64_t left = nulls;

        assert(merged.bytes == out.size && footer->rows == file->footer.rows);
        for (uint32_t group = 0; group < footer->group_count; group++) {
            const struct mp_parquet_column_chunk *chunk = &footer->groups[group].chunks[0];
            struct mp_parquet_batch batch = {.rows = 1};
            enum mp_code code = mp_parquet_reader_open(
                reader, footer, group, 0, mp_parquet_chunk_in(mp_buf_str(&out), chunk), &err);

            while (!code && batch.rows) {
                code = mp_parquet_reader_next(reader, &err, &batch);
                left -= batch.rows - batch.values;
                assert(!lacks || !batch.values);
            }
            assert(code == MP_OK);
        }
        assert(lacks || left == 0);
    }
    mp_parquet_reader_free(reader);
    mp_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mp_parquet_reader *reader;
    struct mp_arena arena;
    struct mp_err err;
    struct file file;
    struct mp_str bytes;
    int64_t rows, nulls;

    if (size < HEAD_BYTES)
        return 0;
    make_file(&file, data, size - HEAD_BYTES);
    bytes = mp_str_n(data + HEAD_BYTES - 4, size - HEAD_BYTES + 4); /* the chunk begins at 4 */
    mp_arena_init(&arena, 0);
    reader = mp_parquet_reader_new(BYTES_MAX);
    if (read_all(reader, &file.footer, mp_str_n(bytes.data + 4, bytes.size - 4), &err, &rows,
                 &nulls) == MP_OK) {
        struct mp_type type = {.id = data[5] % MP_TYPE_COUNT, .precision = 1 + data[6] % 38};

        file.nodes[file.leaves[0]].logical.precision = type.precision;
        file.groups[0].rows = file.footer.rows = rows;
        if (type.id == MP_TYPE_NONE || type.id == MP_TYPE_VARIANT || type.id == MP_TYPE_OTHER)
            type = MP_TYPE(BLOB);
        merge(&arena, &file, bytes, data[2], type, nulls);
    } else {
        assert(err.text[0] &&
               (err.code == MP_BAD_DATA || err.code == MP_REFUSED || err.code == MP_FULL));
    }
    mp_parquet_reader_free(reader);
    mp_arena_fini(&arena);
    return 0;
}

#include "fuzz/replay.h"
