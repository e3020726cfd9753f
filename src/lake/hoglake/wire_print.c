/* lake/hoglake/wire_print.c - see wire.h: printing. */
#include "base/number.h"
#include "lake/hoglake/wire.h"

void mp_wire_member(struct mp_buf *buf, const char *name)
{
    if (buf->size && buf->data[buf->size - 1] != '{')
        mp_buf_add_byte(buf, ',');
    mp_buf_add_byte(buf, '"');
    mp_buf_add_c(buf, name);
    mp_buf_add(buf, "\":", 2);
}

void mp_wire_member_text(struct mp_buf *buf, const char *name, struct mp_str text)
{
    if (!text.data)
        return; /* W2 */
    mp_wire_member(buf, name);
    mp_buf_add_json(buf, text);
}

void mp_wire_member_int(struct mp_buf *buf, const char *name, int64_t number)
{
    char text[MP_NUMBER_TEXT];
    size_t size = mp_i64_text(number, text);

    mp_wire_member(buf, name);
    mp_buf_add(buf, text, size);
}

void mp_wire_member_bool(struct mp_buf *buf, const char *name, bool value)
{
    mp_wire_member(buf, name);
    mp_buf_add_c(buf, value ? "true" : "false");
}

void mp_wire_member_instant(struct mp_buf *buf, const char *name, int64_t us)
{
    mp_wire_member(buf, name);
    mp_buf_add_byte(buf, '"');
    mp_wire_instant_print(buf, us);
    mp_buf_add_byte(buf, '"');
}

void mp_wire_columns_print(struct mp_buf *buf, const struct mp_wire_column *columns, uint32_t count)
{
    mp_buf_add_byte(buf, '[');
    for (uint32_t i = 0; i < count; i++) {
        const struct mp_wire_column *column = &columns[i];

        mp_buf_add_c(buf, i ? ",{" : "{");
        mp_wire_member_text(buf, "name", column->name);
        mp_wire_member_text(buf, "type", column->type);
        mp_wire_member_bool(buf, "nullable", column->nullable);
        if (column->type_params.data) {
            mp_wire_member(buf, "type_params");
            mp_buf_add_str(buf, column->type_params);
        }
        mp_wire_member_text(buf, "comment", column->comment);
        if (column->field_id) {
            mp_wire_member_int(buf, "field_id", column->field_id);
            mp_wire_member_int(buf, "ordinal", column->ordinal);
        }
        if (column->has_children) {
            mp_wire_member(buf, "children");
            mp_wire_columns_print(buf, column->children, column->child_count);
        }
        mp_buf_add_byte(buf, '}');
    }
    mp_buf_add_byte(buf, ']');
}

void mp_wire_partition_fields_print(struct mp_buf *buf,
                                    const struct mp_wire_partition_field *fields, uint32_t count)
{
    mp_buf_add_byte(buf, '[');
    for (uint32_t i = 0; i < count; i++) {
        mp_buf_add_c(buf, i ? ",{" : "{");
        mp_wire_member_int(buf, "source_field_id", fields[i].source_field_id);
        mp_wire_member_text(buf, "transform", fields[i].transform);
        if (fields[i].has_param)
            mp_wire_member_int(buf, "transform_param", fields[i].param);
        mp_buf_add_byte(buf, '}');
    }
    mp_buf_add_byte(buf, ']');
}

void mp_wire_sort_fields_print(struct mp_buf *buf, const struct mp_wire_sort_field *fields,
                               uint32_t count)
{
    mp_buf_add_byte(buf, '[');
    for (uint32_t i = 0; i < count; i++) {
        mp_buf_add_c(buf, i ? ",{" : "{");
        mp_wire_member_int(buf, "source_field_id", fields[i].source_field_id);
        mp_wire_member_text(buf, "direction", fields[i].direction);
        mp_wire_member_text(buf, "null_order", fields[i].null_order);
        mp_buf_add_byte(buf, '}');
    }
    mp_buf_add_byte(buf, ']');
}

void mp_wire_table_print(struct mp_buf *buf, const struct mp_wire_table *table)
{
    mp_buf_add_byte(buf, '{');
    mp_wire_member_text(buf, "name", table->name);
    mp_wire_member_text(buf, "namespace", table->namespace_name);
    mp_wire_member_text(buf, "table_uuid", table->uuid);
    mp_wire_member(buf, "columns");
    mp_wire_columns_print(buf, table->columns, table->column_count);
    if (table->partition.field_count) {
        mp_wire_member(buf, "partition_spec");
        mp_buf_add_byte(buf, '{');
        mp_wire_member_int(buf, "spec_id", table->partition.spec_id);
        mp_wire_member(buf, "fields");
        mp_wire_partition_fields_print(buf, table->partition.fields, table->partition.field_count);
        mp_buf_add_byte(buf, '}');
    }
    if (table->sort.field_count) {
        mp_wire_member(buf, "sort_spec");
        mp_buf_add_byte(buf, '{');
        mp_wire_member_int(buf, "sort_id", table->sort.sort_id);
        mp_wire_member(buf, "fields");
        mp_wire_sort_fields_print(buf, table->sort.fields, table->sort.field_count);
        mp_buf_add_byte(buf, '}');
    }
    mp_wire_member_text(buf, "comment", table->comment);
    mp_wire_member(buf, "properties");
    mp_buf_add_str(buf, table->properties.size ? table->properties : MP_STR("{}"));
    mp_wire_member_int(buf, "read_snapshot_id", table->read_snapshot_id);
    if (table->has_snapshot_id)
        mp_wire_member_int(buf, "snapshot_id", table->snapshot_id);
    if (table->has_totals) {
        mp_wire_member_int(buf, "record_count", table->record_count);
        mp_wire_member_int(buf, "file_count", table->file_count);
        mp_wire_member_int(buf, "file_size_bytes", table->file_size_bytes);
    }
    mp_buf_add_byte(buf, '}');
}

void mp_wire_commit_result_print(struct mp_buf *buf, const struct mp_wire_commit_result *result)
{
    mp_buf_add_byte(buf, '{');
    mp_wire_member_int(buf, "snapshot_id", result->snapshot_id);
    mp_wire_member_int(buf, "schema_version", result->schema_version);
    mp_buf_add_byte(buf, '}');
}

void mp_wire_error_print(struct mp_buf *buf, const struct mp_wire_error *error)
{
    mp_buf_add_byte(buf, '{');
    mp_wire_member_text(buf, "error", error->error);
    mp_wire_member_text(buf, "detail", error->detail);
    mp_wire_member_text(buf, "reason", error->reason);
    if (error->table_count) {
        mp_wire_member(buf, "tables");
        for (uint32_t i = 0; i < error->table_count; i++) {
            mp_buf_add_byte(buf, i ? ',' : '[');
            mp_buf_add_json(buf, error->tables[i]);
        }
        mp_buf_add_byte(buf, ']');
    }
    if (error->has_read_snapshot)
        mp_wire_member_int(buf, "read_snapshot", error->read_snapshot);
    if (error->re_prepare)
        mp_wire_member_text(buf, "retry", MP_STR("re-prepare"));
    mp_buf_add_byte(buf, '}');
}
