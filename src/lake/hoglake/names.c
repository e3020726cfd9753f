/* lake/hoglake/names.c - see body.h: names of columns and of types. */
#include "lake/hoglake/body.h"

#include <assert.h>

#define COLUMN_NAME_MAX 128

bool mp_hog_name_ok(struct mp_str name)
{
    struct mp_str kept = MP_STR("_hog");

    if (name.size == 0 || name.size > COLUMN_NAME_MAX)
        return false;
    if (name.size >= kept.size && mp_str_eq_fold(mp_str_n(name.data, kept.size), kept))
        return false;
    for (size_t i = 0; i < name.size; i++) {
        unsigned char c = mp_ascii_lower((unsigned char)name.data[i]);

        if (!(c >= 'a' && c <= 'z') && c != '_' && !(i > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return true;
}

/* uint32 and timestamp_s lie in the catalog's files as a plain INT64 and as milliseconds: they are
 * types of their own. */
static const char *const names[MP_TYPE_COUNT] = {
    [MP_TYPE_BOOL] = "boolean",
    [MP_TYPE_INT8] = "int8",
    [MP_TYPE_INT16] = "int16",
    [MP_TYPE_INT32] = "int",
    [MP_TYPE_INT64] = "long",
    [MP_TYPE_UINT8] = "uint8",
    [MP_TYPE_UINT16] = "uint16",
    [MP_TYPE_UINT32_LONG] = "uint32",
    [MP_TYPE_UINT64] = "uint64",
    [MP_TYPE_FLOAT] = "float",
    [MP_TYPE_DOUBLE] = "double",
    [MP_TYPE_DECIMAL] = "decimal",
    [MP_TYPE_DATE] = "date",
    [MP_TYPE_TIME] = "time",
    [MP_TYPE_TIMESTAMP_S_MS] = "timestamp_s",
    [MP_TYPE_TIMESTAMP_MS] = "timestamp_ms",
    [MP_TYPE_TIMESTAMP] = "timestamp",
    [MP_TYPE_TIMESTAMP_NS] = "timestamp_ns",
    [MP_TYPE_TIMESTAMPTZ] = "timestamptz",
    [MP_TYPE_VARCHAR] = "string",
    [MP_TYPE_JSON] = "json",
    [MP_TYPE_BLOB] = "binary",
    [MP_TYPE_UUID] = "uuid",
};

const char *mp_hog_type_name(struct mp_type type)
{
    assert(type.id < MP_TYPE_COUNT);
    return names[type.id];
}

/* {"precision":p,"scale":s} with 1 <= p <= 38 and s <= p. */
static bool decimal_read(struct mp_str params, struct mp_type *ret)
{
    json_t *object = params.data ? json_loadb(params.data, params.size, 0, NULL) : NULL;
    json_t *precision = json_object_get(object, "precision");
    json_t *scale = json_object_get(object, "scale");
    json_int_t p = json_integer_value(precision), s = json_integer_value(scale);
    bool good = json_is_integer(precision) && json_is_integer(scale) && p >= 1 && p <= 38 &&
                s >= 0 && s <= p;

    if (good)
        *ret = (struct mp_type){MP_TYPE_DECIMAL, (uint8_t)p, (uint8_t)s};
    json_decref(object);
    return good;
}

bool mp_hog_type_of_name(struct mp_str name, struct mp_str params, struct mp_type *ret)
{
    *ret = MP_TYPE(OTHER);
    for (unsigned id = 0; id < MP_TYPE_COUNT; id++) {
        if (!names[id] || !mp_str_eq_fold(name, mp_str_c(names[id])))
            continue;
        if (id == MP_TYPE_DECIMAL)
            return decimal_read(params, ret);
        *ret = (struct mp_type){.id = (uint8_t)id};
        return true;
    }
    return false;
}

struct mp_wire_column mp_hog_column(struct mp_arena *arena, struct mp_str name, struct mp_type type)
{
    struct mp_wire_column column = {
        .name = name, .type = mp_str_c(mp_hog_type_name(type)), .nullable = true};

    assert(column.type.data);
    if (type.id == MP_TYPE_DECIMAL)
        column.type_params = mp_str_c(
            mp_arena_printf(arena, "{\"precision\":%u,\"scale\":%u}", type.precision, type.scale));
    return column;
}
