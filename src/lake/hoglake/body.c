/* lake/hoglake/body.c - see body.h: the prepared commit as JSON. */
#include "lake/hoglake/body.h"

#include "base/base64.h"

#include "lake/partition_text.h"

#include <assert.h>

static void print_bound(struct mp_buf *buf, const char *name, const struct mp_column_stats *stats,
                        bool upper)
{
    struct mp_buf bytes = MP_BUF_INIT(SIZE_MAX);

    if (mp_hog_bound(stats, upper, &bytes)) {
        mp_wire_member(buf, name);
        mp_buf_add_byte(buf, '"');
        mp_base64_print(buf, mp_buf_str(&bytes));
        mp_buf_add_byte(buf, '"');
    }
    mp_buf_fini(&bytes);
}

/* Columns of the table that no record named are no part of the file, and so have no bytes in it. */
static bool in_file(const struct mp_column_stats *stats)
{
    return stats->compressed_bytes > 0;
}

static void print_stats(struct mp_buf *buf, const struct mp_lake_file *file)
{
    bool first = true;

    mp_buf_add_byte(buf, '[');
    for (uint32_t i = 0; i < file->stats_count; i++) {
        const struct mp_column_stats *stats = &file->stats[i];

        if (!in_file(stats))
            continue;
        assert(stats->rows == file->rows && stats->nulls <= stats->rows);
        mp_buf_add_c(buf, first ? "{" : ",{");
        first = false;
        mp_wire_member_int(buf, "field_id", stats->field_id);
        mp_wire_member_int(buf, "value_count", (int64_t)stats->rows);
        mp_wire_member_int(buf, "null_count", (int64_t)stats->nulls);
        mp_wire_member_int(buf, "size_bytes", (int64_t)stats->compressed_bytes);
        print_bound(buf, "lower_bound", stats, false);
        print_bound(buf, "upper_bound", stats, true);
        mp_buf_add_byte(buf, '}');
    }
    mp_buf_add_byte(buf, ']');
}

static void print_partition(struct mp_buf *buf, const struct mp_partition_value *values,
                            uint32_t count)
{
    struct mp_arena arena;

    mp_arena_init(&arena, 1024);
    for (uint32_t i = 0; i < count; i++) {
        mp_buf_add_byte(buf, i ? ',' : '[');
        if (values[i].null)
            mp_buf_add_c(buf, "null");
        else
            mp_buf_add_json(buf, mp_lake_partition_text(&arena, values[i].text));
    }
    mp_buf_add_byte(buf, ']');
    mp_arena_fini(&arena);
}

static void print_file(struct mp_buf *buf, struct mp_str data_path, uint32_t partition_count,
                       const struct mp_lake_file *file)
{
    struct mp_buf path = MP_BUF_INIT(SIZE_MAX);

    while (data_path.size && data_path.data[data_path.size - 1] == '/')
        data_path.size--;
    mp_buf_printf(&path, "%.*s/%.*s", MP_STR_ARG(data_path), MP_STR_ARG(file->key));
    mp_buf_add_byte(buf, '{');
    mp_wire_member_text(buf, "path", mp_buf_str(&path));
    mp_wire_member_int(buf, "record_count", (int64_t)file->rows);
    mp_wire_member_int(buf, "file_size_bytes", (int64_t)file->bytes);
    mp_wire_member_int(buf, "footer_size", file->footer_bytes);
    mp_wire_member(buf, "column_stats");
    print_stats(buf, file);
    if (partition_count) {
        mp_wire_member(buf, "partition_values");
        print_partition(buf, file->partition, partition_count);
    }
    mp_buf_add_byte(buf, '}');
    mp_buf_fini(&path);
}

static void print_append(struct mp_buf *buf, const struct mp_hog_body *body,
                         const struct mp_lake_append *append)
{
    const struct mp_lake_table *table = append->table;

    mp_buf_add_byte(buf, '{');
    mp_wire_member_text(buf, "namespace", body->namespace_name);
    mp_wire_member_text(buf, "table", table->name);
    mp_wire_member_text(buf, "expected_table_uuid", table->uuid);
    mp_wire_member(buf, "files");
    for (uint32_t i = 0; i < append->file_count; i++) {
        mp_buf_add_byte(buf, i ? ',' : '[');
        print_file(buf, body->data_path, table->schema.partition_count, &append->files[i]);
    }
    mp_buf_add_c(buf, "]}");
}

void mp_hog_body_print(const struct mp_hog_body *body, struct mp_buf *ret)
{
    const struct mp_lake_commit *commit = body->commit;
    uint32_t printed = 0;

    assert(commit->key.size + 1 == MP_LAKE_KEY_SIZE);
    mp_buf_add_byte(ret, '{');
    mp_wire_member_text(ret, "idempotency_key", commit->key);
    mp_wire_member_int(ret, "read_snapshot", body->read_snapshot);
    mp_wire_member(ret, "appends");
    for (uint32_t i = 0; i < commit->append_count; i++) {
        if (!commit->appends[i].file_count)
            continue;
        mp_buf_add_byte(ret, printed++ ? ',' : '[');
        print_append(ret, body, &commit->appends[i]);
    }
    assert(printed > 0);
    mp_buf_add_byte(ret, ']');
    mp_wire_member_text(ret, "author", body->author);
    mp_wire_member_text(ret, "message", body->message);
    mp_buf_add_byte(ret, '}');
}
