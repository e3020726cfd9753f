/* tests/parquet/join.c - bytes are moved and offsets follow; what cannot be joined is refused. */
#include "parquet/join.h"

#include "base/mem.h"
#include "parquet/footer_maker.h"

enum { FILES_MAX = 3, ROOM = 4096 };

struct file {
    char bytes[ROOM];
    struct mp_buf footer;
    struct footer_spec specs[2];
    unsigned reads, fail_at; /* the read that fails; 0: none */
};

static struct file files[FILES_MAX];
static struct mp_parquet_join_input inputs[FILES_MAX];
static struct mp_parquet_join_options options;
static struct mp_parquet_joined joined;
static struct mp_arena arena;
static struct mp_buf out;
static struct mp_err err;
static unsigned writes, write_fails_at;

static enum mp_code read_file(void *context, uint64_t offset, size_t size, char *ret,
                              struct mp_err *error)
{
    struct file *file = context;

    if (++file->reads == file->fail_at)
        return mp_err_set(error, MP_IO, "the store is away");
    CHECK(offset + size <= ROOM);
    memcpy(ret, file->bytes + offset, size);
    return MP_OK;
}

static enum mp_code write_out(void *context, struct mp_str bytes, struct mp_err *error)
{
    (void)context;
    if (++writes == write_fails_at)
        return mp_err_set(error, MP_IO, "the disk is full");
    mp_buf_add_str(&out, bytes);
    return MP_OK;
}

/* Files of two row groups whose chunks are letters, 100 and 50 bytes, with a gap in between. */
static void begin(void)
{
    mp_arena_fini(&arena);
    mp_arena_init(&arena, 0);
    options = (struct mp_parquet_join_options){.created_by = MP_STR("test"), .read_bytes = 64};
    writes = write_fails_at = 0;
    for (int i = 0; i < FILES_MAX; i++) {
        mp_buf_fini(&files[i].footer);
        files[i] = (struct file){
            .footer = {0},
            .specs = {{.physical = MP_PHYSICAL_INT32,
                       .field_id = 1,
                       .rows = 10,
                       .start = 200,
                       .bytes = 100,
                       .pair = "alike",
                       .min = {"\1\0\0\0", 4},
                       .max = {"\2\0\0\0", 4}},
                      {.physical = MP_PHYSICAL_INT32, .rows = 5, .start = 1000, .bytes = 50}}};
        memset(files[i].bytes + 200, 'a' + i, 100);
        memset(files[i].bytes + 1000, 'A' + i, 50);
    }
}

static enum mp_code join(uint32_t count)
{
    struct mp_parquet_output output = {write_out, NULL};

    for (uint32_t i = 0; i < count; i++) {
        mp_buf_fini(&files[i].footer);
        files[i].footer = MP_BUF_INIT(1 << 16);
        inputs[i].read = read_file;
        inputs[i].context = &files[i];
        CHECK_OK(mp_parquet_footer_read(&arena, make_footer(&files[i].footer, files[i].specs, 2),
                                        ROOM, &err, &inputs[i].footer),
                 err);
    }
    mp_buf_fini(&out);
    out = MP_BUF_INIT(1 << 24);
    return mp_parquet_join(&arena, inputs, count, &options, &output, &err, &joined);
}

static void check_bytes(int64_t offset, int64_t size, char letter)
{
    for (int64_t i = 0; i < size; i++)
        CHECK_INT(out.data[offset + i], letter);
}

static void chunks_are_moved_as_they_are(void)
{
    begin();
    CHECK_OK(join(3), err);
    CHECK_INT(joined.bytes, out.size);
    CHECK_INT(joined.footer->rows, 45);
    CHECK_INT(joined.footer->group_count, 6);
    for (int g = 0; g < 6; g++) {
        const struct mp_parquet_row_group *group = &joined.footer->groups[g];
        const struct mp_parquet_column_chunk *chunk = &group->chunks[0];

        CHECK_INT(group->rows, g % 2 ? 5 : 10);
        CHECK_INT(chunk->bytes, g % 2 ? 50 : 100);
        CHECK_INT(chunk->data_page_offset, 4 + g / 2 * 150 + g % 2 * 100);
        CHECK_INT(chunk->bloom_filter_offset, 0);
        CHECK(memmem(chunk->raw.data, chunk->raw.size, "\x9a\1", 2)); /* the later format's 77 */
        check_bytes(chunk->start, chunk->bytes, (char)((g % 2 ? 'A' : 'a') + g / 2));
    }
    CHECK_STR(joined.footer->groups[4].chunks[0].statistics.max, mp_str_n("\2\0\0\0", 4));
    CHECK(joined.footer->has_orders);
    CHECK_INT(joined.footer->pair_count, 1);
    CHECK_STR(joined.footer->created_by, MP_STR("test"));
    CHECK(files[0].reads <= 6); /* windows of 64 bytes over 150 */
}

static void row_ids_are_added(void)
{
    const struct mp_parquet_node *node;
    int64_t id;

    begin();
    options.row_ids = true;
    options.row_id_name = MP_STR("_id");
    options.row_id_field_id = 77;
    inputs[0].row_id_start = 1000;
    inputs[1].row_id_start = 5;
    CHECK_OK(join(2), err);
    CHECK_INT(joined.footer->leaf_count, 2);
    node = &joined.footer->nodes[2];
    CHECK_STR(node->name, MP_STR("_id"));
    CHECK(node->field_id == 77 && node->repetition == MP_PARQUET_REQUIRED);
    for (int g = 0; g < 4; g++) {
        static const int64_t first[] = {1000, 1010, 5, 15};
        const struct mp_parquet_column_chunk *chunk = &joined.footer->groups[g].chunks[1];

        memcpy(&id, chunk->statistics.min.data, 8);
        CHECK_INT(id, first[g]);
        memcpy(&id, chunk->statistics.max.data, 8);
        CHECK_INT(id, first[g] + joined.footer->groups[g].rows - 1);
        /* without a codec the values end the chunk */
        memcpy(&id, out.data + chunk->start + chunk->bytes - 8, 8);
        CHECK_INT(id, first[g] + joined.footer->groups[g].rows - 1);
        check_bytes(joined.footer->groups[g].chunks[0].start, 50, (char)("aAbB"[g]));
    }
}

static void a_column_with_the_name_of_row_ids_is_refused(void)
{
    begin();
    options.row_ids = true;
    options.row_id_name = MP_STR("c"); /* the files have one */
    options.row_id_field_id = 77;
    CHECK_INT(join(2), MP_REFUSED);
}

static void what_differs_is_refused(void)
{
    static const struct {
        struct footer_spec spec;
        const char *says;
    } cases[] = {
        {{.physical = MP_PHYSICAL_INT64, .field_id = 1}, "has another physical type"},
        {{.physical = MP_PHYSICAL_INT32, .field_id = 2}, "has another field id"},
        {{.physical = MP_PHYSICAL_INT32}, "a column has no field id"},
        {{.physical = MP_PHYSICAL_INT32, .field_id = 1, .converted = 7},
         "has another logical type"},
        {{.physical = MP_PHYSICAL_INT32, .field_id = 1, .repetition = 1}, "has another repetition"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        begin();
        files[1].specs[0] = cases[i].spec;
        files[1].specs[0].rows = 1;
        files[1].specs[1].physical = cases[i].spec.physical;
        CHECK_INT(join(2), MP_REFUSED);
        CHECK_INT(out.size, 0);
        if (!strstr(err.text, cases[i].says) || !strstr(err.text, "join of 2 files: input 1: "))
            test_fail(__FILE__, __LINE__, "case %zu: %s", i, err.text);
    }
    begin();
    options.sorted = true;
    CHECK_INT(join(2), MP_REFUSED);
    begin();
    inputs[1].deleted_rows = 3;
    CHECK_INT(join(2), MP_REFUSED);
    CHECK(strstr(err.text, "a deletion vector takes 3 rows"));
    inputs[1].deleted_rows = 0;
}

static void only_what_all_have_alike_is_kept(void)
{
    begin();
    files[1].specs[0].pair = "other";
    CHECK_OK(join(2), err);
    CHECK_INT(joined.footer->pair_count, 0);

    begin();
    files[1].specs[0].no_orders = true; /* nobody may believe its bounds */
    CHECK_OK(join(2), err);
    CHECK(!joined.footer->has_orders);

    begin(); /* renamed: the ids say what is meant */
    files[1].specs[0].name = "renamed";
    options.names_from = 1;
    CHECK_OK(join(2), err);
    CHECK_STR(joined.footer->nodes[1].name, MP_STR("renamed"));
}

static void chunks_that_overlap_are_refused(void)
{
    begin();
    files[0].specs[0].start = files[0].specs[1].start = 4;
    files[0].specs[0].bytes = files[0].specs[1].bytes = 2500;
    CHECK_INT(join(1), MP_BAD_DATA);
}

static void faults_of_the_store_come_up(void)
{
    unsigned read_faults = 0, write_faults = 0;

    for (unsigned at = 1;; at++, read_faults++) {
        begin();
        files[1].fail_at = at;
        if (join(2) == MP_OK)
            break;
        CHECK_INT(err.code, MP_IO);
        CHECK(strstr(err.text, "input 1, row group ") && err.retriable);
    }
    for (unsigned at = 1;; at++, write_faults++) {
        begin();
        write_fails_at = at;
        options.row_ids = true;
        options.row_id_name = MP_STR("_id");
        options.row_id_field_id = 77;
        if (join(2) == MP_OK)
            break;
        CHECK_INT(err.code, MP_IO);
    }
    CHECK(read_faults >= 3 && write_faults >= 10);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(chunks_are_moved_as_they_are),
        TEST(row_ids_are_added),
        TEST(a_column_with_the_name_of_row_ids_is_refused),
        TEST(what_differs_is_refused),
        TEST(only_what_all_have_alike_is_kept),
        TEST(chunks_that_overlap_are_refused),
        TEST(faults_of_the_store_come_up),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
