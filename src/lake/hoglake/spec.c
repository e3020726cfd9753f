/* lake/hoglake/spec.c - see body.h: partition specs as the catalog and as the setting have them. */
#include "lake/hoglake/body.h"

#include "column/transform.h"
#include "lake/partition_by.h"

#include <assert.h>

static const struct {
    uint8_t transform;
    struct mp_str name;
} names[] = {
    {MP_TRANSFORM_IDENTITY, MP_STR_INIT("identity")},
    {MP_TRANSFORM_EPOCH_YEAR, MP_STR_INIT("year")},
    {MP_TRANSFORM_EPOCH_MONTH, MP_STR_INIT("month")},
    {MP_TRANSFORM_EPOCH_DAY, MP_STR_INIT("day")},
    {MP_TRANSFORM_EPOCH_HOUR, MP_STR_INIT("hour")},
    {MP_TRANSFORM_BUCKET_ICEBERG, MP_STR_INIT("bucket")},
};
#define NAMES (sizeof(names) / sizeof(*names))

static struct mp_str name_of(uint8_t transform)
{
    size_t i = 0;

    while (i < NAMES && names[i].transform != transform)
        i++;
    assert(i < NAMES);
    return names[i].name;
}

bool mp_hog_partition_read(const struct mp_wire_partition_field *field,
                           struct mp_partition_field *ret)
{
    size_t i = 0;
    bool bucket;

    while (i < NAMES && !mp_str_eq_fold(names[i].name, field->transform))
        i++;
    if (i == NAMES || field->source_field_id < 1 || field->source_field_id > INT32_MAX)
        return false;
    bucket = names[i].transform == MP_TRANSFORM_BUCKET_ICEBERG;
    if (bucket && (!field->has_param || field->param < 1 || field->param > INT32_MAX))
        return false;
    *ret = (struct mp_partition_field){.field_id = (int32_t)field->source_field_id,
                                       .transform = names[i].transform,
                                       .buckets = bucket ? (uint32_t)field->param : 0};
    return true;
}

struct mp_wire_partition_field mp_hog_partition_field(const struct mp_partition_field *field)
{
    return (struct mp_wire_partition_field){
        .source_field_id = field->field_id,
        .transform = name_of(field->transform),
        .has_param = field->transform == MP_TRANSFORM_BUCKET_ICEBERG,
        .param = field->buckets,
    };
}

enum mp_code mp_hog_partition_wanted(struct mp_arena *arena, struct mp_str setting,
                                     const struct mp_schema *schema, struct mp_err *err,
                                     struct mp_partition_field **ret, uint32_t *ret_count)
{
    const struct mp_partition_key *keys;
    struct mp_partition_field *fields;
    enum mp_code code;
    uint32_t count;

    code = mp_partition_by_parse(arena, setting, MP_PARTITION_BY_HOGLAKE, err, &keys, &count);
    if (code)
        return code;
    fields = mp_arena_take(arena, (count + 1) * sizeof(*fields));
    for (uint32_t i = 0; i < count; i++) {
        const struct mp_live_column *column = mp_schema_by_name(schema, keys[i].column);
        struct mp_str transform = name_of(keys[i].transform);

        if (!column)
            return mp_err_set(err, MP_BAD_CONFIG,
                              "the table has no column \"%.*s\" to partition by",
                              MP_STR_ARG(keys[i].column));
        if (!mp_transform_fits(keys[i].transform, column->type))
            return mp_err_set(err, MP_BAD_CONFIG,
                              "column \"%.*s\" cannot be partitioned by %.*s: its type is %s",
                              MP_STR_ARG(keys[i].column), MP_STR_ARG(transform),
                              mp_hog_type_name(column->type) ? mp_hog_type_name(column->type)
                                                             : "none that can be written");
        fields[i] =
            (struct mp_partition_field){column->field_id, keys[i].transform, keys[i].buckets};
    }
    *ret = fields;
    *ret_count = count;
    return MP_OK;
}

void mp_hog_partition_print(const struct mp_schema *schema, const struct mp_partition_field *fields,
                            uint32_t count, struct mp_buf *ret)
{
    if (!count)
        mp_buf_add_c(ret, "none");
    for (uint32_t i = 0; i < count; i++) {
        const struct mp_live_column *column = mp_schema_by_id(schema, fields[i].field_id);
        struct mp_str transform = name_of(fields[i].transform);
        bool call = fields[i].transform != MP_TRANSFORM_IDENTITY;

        mp_buf_add_c(ret, i ? ", " : "");
        if (call)
            mp_buf_printf(ret, "%.*s(", MP_STR_ARG(transform));
        if (column)
            mp_buf_add_str(ret, column->name);
        else
            mp_buf_printf(ret, "field id %d", fields[i].field_id);
        if (fields[i].transform == MP_TRANSFORM_BUCKET_ICEBERG)
            mp_buf_printf(ret, ", %u", fields[i].buckets);
        mp_buf_add_c(ret, call ? ")" : "");
    }
}
