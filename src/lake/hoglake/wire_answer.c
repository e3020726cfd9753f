/* lake/hoglake/wire_answer.c - see wire.h: what a server answers, read.
 *
 * Members that are not asked for are not looked at: a newer server may say more.
 */
#include "lake/hoglake/wire.h"

#include <assert.h>
#include <stdlib.h>

/* True where value is an object. */
static bool open_object(struct mp_wire_reader *reader, const json_t *value, const char *what)
{
    assert(reader->answer);
    return mp_wire_object(reader, value, what, NULL);
}

void mp_wire_catalog_read(struct mp_wire_reader *reader, const json_t *value,
                          struct mp_wire_catalog *ret)
{
    const json_t *list;

    *ret = (struct mp_wire_catalog){0};
    if (!open_object(reader, value, "a catalog"))
        return;
    mp_wire_text(reader, value, "name", true, &ret->name);
    mp_wire_text(reader, value, "data_path", true, &ret->data_path);
    list = mp_wire_array(reader, value, "capabilities", false);
    if (!list)
        return;
    ret->capabilities =
        mp_arena_take(reader->arena, (json_array_size(list) + 1) * sizeof(*ret->capabilities));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);

        if (json_is_string(one))
            ret->capabilities[ret->capability_count++] =
                mp_str_n(json_string_value(one), json_string_length(one));
    }
}

bool mp_wire_names_hold(struct mp_wire_reader *reader, const json_t *array, struct mp_str name)
{
    if (!json_is_array(array)) {
        mp_wire_fault(reader, "a listing must be an array");
        return false;
    }
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *value = json_array_get(array, i);
        struct mp_str one = {NULL, 0};

        if (!open_object(reader, value, "an entry of a listing"))
            return false;
        mp_wire_text(reader, value, "name", true, &one);
        if (mp_str_eq(one, name))
            return true;
    }
    return false;
}

static int by_ordinal(const void *a, const void *b)
{
    const struct mp_wire_column *left = a, *right = b;

    return (left->ordinal > right->ordinal) - (left->ordinal < right->ordinal);
}

static void sort_columns(struct mp_wire_column *columns, uint32_t count)
{
    if (count)
        qsort(columns, count, sizeof(*columns), by_ordinal);
    for (uint32_t i = 0; i < count; i++)
        sort_columns(columns[i].children, columns[i].child_count);
}

static const json_t *spec_of(struct mp_wire_reader *reader, const json_t *table, const char *name,
                             const char *id, int64_t *ret_id, const char *what)
{
    const json_t *spec = json_object_get(table, name);

    if (!spec || json_is_null(spec) || !open_object(reader, spec, what))
        return NULL;
    mp_wire_int(reader, spec, id, true, ret_id, NULL);
    return mp_wire_array(reader, spec, "fields", true);
}

void mp_wire_table_read(struct mp_wire_reader *reader, const json_t *value,
                        struct mp_wire_table *ret)
{
    const json_t *list;

    *ret = (struct mp_wire_table){0};
    if (!open_object(reader, value, "a table"))
        return;
    mp_wire_text(reader, value, "name", true, &ret->name);
    mp_wire_text(reader, value, "namespace", true, &ret->namespace_name);
    mp_wire_text(reader, value, "table_uuid", true, &ret->uuid);
    mp_wire_int(reader, value, "read_snapshot_id", true, &ret->read_snapshot_id, NULL);
    mp_wire_int(reader, value, "snapshot_id", false, &ret->snapshot_id, &ret->has_snapshot_id);
    list = mp_wire_array(reader, value, "columns", false);
    if (list)
        mp_wire_columns_read(reader, list, &ret->columns, &ret->column_count);
    list = spec_of(reader, value, "partition_spec", "spec_id", &ret->partition.spec_id,
                   "a partition spec");
    if (list)
        mp_wire_partition_fields_read(reader, list, &ret->partition.fields,
                                      &ret->partition.field_count);
    list = spec_of(reader, value, "sort_spec", "sort_id", &ret->sort.sort_id, "a sort spec");
    if (list)
        mp_wire_sort_fields_read(reader, list, &ret->sort.fields, &ret->sort.field_count);
    if (!reader->failed)
        sort_columns(ret->columns, ret->column_count);
}

void mp_wire_options_read(struct mp_wire_reader *reader, const json_t *value,
                          struct mp_wire_options *ret)
{
    *ret = (struct mp_wire_options){0};
    if (open_object(reader, value, "the options"))
        mp_wire_int(reader, value, "snapshot_retention_seconds", false, &ret->retention_s,
                    &ret->has_retention);
}

void mp_wire_creation_read(struct mp_wire_reader *reader, const json_t *value,
                           struct mp_wire_creation *ret)
{
    *ret = (struct mp_wire_creation){0};
    if (!open_object(reader, value, "a creation"))
        return;
    mp_wire_text(reader, value, "state", true, &ret->state);
    mp_wire_text(reader, value, "reason", false, &ret->reason);
}

void mp_wire_commit_result_read(struct mp_wire_reader *reader, const json_t *value,
                                struct mp_wire_commit_result *ret)
{
    *ret = (struct mp_wire_commit_result){0};
    if (!open_object(reader, value, "a commit's result"))
        return;
    mp_wire_int(reader, value, "snapshot_id", true, &ret->snapshot_id, NULL);
    mp_wire_int(reader, value, "schema_version", false, &ret->schema_version, NULL);
}

void mp_wire_receipt_read(struct mp_wire_reader *reader, const json_t *value, struct mp_str *ret)
{
    if (open_object(reader, value, "a receipt"))
        mp_wire_text(reader, value, "operation_id", true, ret);
}

static struct mp_str plain_text(const json_t *object, const char *name)
{
    const json_t *text = json_object_get(object, name);

    return json_is_string(text) ? mp_str_n(json_string_value(text), json_string_length(text))
                                : (struct mp_str){NULL, 0};
}

void mp_wire_error_read(const json_t *value, struct mp_wire_error *ret)
{
    *ret = (struct mp_wire_error){
        .error = plain_text(value, "error"),
        .detail = plain_text(value, "detail"),
        .reason = plain_text(value, "reason"),
    };
}
