/* server/types.c - see types.h: the table, names and promotions. */
#include "server/types.h"

#include <string.h>

#define INT32 MP_HOG_BOUND_INT32, false
#define INT64 MP_HOG_BOUND_INT64, false

const struct mp_hog_type_info mp_hog_types[MP_HOG_TYPES] = {
    [MP_HOG_BOOLEAN] = {"boolean", MP_HOG_BOUND_BOOLEAN, false, false, false,
                        "it has two values only"},
    [MP_HOG_INT8] = {"int8", INT32, true, false, NULL},
    [MP_HOG_INT16] = {"int16", INT32, true, false, NULL},
    [MP_HOG_INT] = {"int", INT32, true, false, NULL},
    [MP_HOG_LONG] = {"long", INT64, true, false, NULL},
    [MP_HOG_UINT8] = {"uint8", INT32, true, false, NULL},
    [MP_HOG_UINT16] = {"uint16", INT32, true, false, NULL},
    [MP_HOG_UINT32] = {"uint32", INT64, false, false, "engines disagree about its hash"},
    [MP_HOG_UINT64] = {"uint64", MP_HOG_BOUND_BIG, false, false, false,
                       "engines disagree about its hash"},
    [MP_HOG_FLOAT] = {"float", MP_HOG_BOUND_FLOAT, false, false, false,
                      "equal numbers may differ in their bytes"},
    [MP_HOG_DOUBLE] = {"double", MP_HOG_BOUND_DOUBLE, false, false, false,
                       "equal numbers may differ in their bytes"},
    [MP_HOG_DECIMAL] = {"decimal", MP_HOG_BOUND_BIG, false, true, false, NULL},
    [MP_HOG_DATE] = {"date", INT32, true, true, NULL},
    [MP_HOG_TIME] = {"time", INT64, true, false, NULL},
    [MP_HOG_TIMESTAMP_S] = {"timestamp_s", INT64, false, true, "its unit is not microseconds"},
    [MP_HOG_TIMESTAMP_MS] = {"timestamp_ms", INT64, false, true, "its unit is not microseconds"},
    [MP_HOG_TIMESTAMP] = {"timestamp", INT64, true, true, NULL},
    [MP_HOG_TIMESTAMP_NS] = {"timestamp_ns", INT64, false, true, "its unit is not microseconds"},
    [MP_HOG_TIMESTAMPTZ] = {"timestamptz", INT64, true, true, NULL},
    [MP_HOG_STRING] = {"string", MP_HOG_BOUND_BYTES, false, true, false, NULL},
    [MP_HOG_JSON] = {"json", MP_HOG_BOUND_BYTES, false, false, false,
                     "equal documents may differ in their text"},
    [MP_HOG_UUID] = {"uuid", MP_HOG_BOUND_UUID, false, true, false, NULL},
    [MP_HOG_BINARY] = {"binary", MP_HOG_BOUND_BYTES, false, true, false, NULL},
    [MP_HOG_VARIANT] = {"variant", MP_HOG_BOUND_NONE, false, false, false, NULL},
    [MP_HOG_LIST] = {"list", MP_HOG_BOUND_NONE, true, false, false, NULL},
    [MP_HOG_STRUCT] = {"struct", MP_HOG_BOUND_NONE, true, false, false, NULL},
    [MP_HOG_MAP] = {"map", MP_HOG_BOUND_NONE, true, false, false, NULL},
};

static const struct {
    const char *name, *why;
} refused[] = {
    {"int128", "128-bit integers have no Parquet form that readers share; use decimal"},
    {"uint128", "128-bit integers have no Parquet form that readers share; use decimal"},
    {"timetz", "a time of day with a zone has no Parquet form"},
    {"interval", "intervals have no Parquet form that readers share"},
    {"point", "geometry is not supported; store WKB in a binary column"},
    {"linestring", "geometry is not supported; store WKB in a binary column"},
    {"polygon", "geometry is not supported; store WKB in a binary column"},
    {"multipoint", "geometry is not supported; store WKB in a binary column"},
    {"multilinestring", "geometry is not supported; store WKB in a binary column"},
    {"multipolygon", "geometry is not supported; store WKB in a binary column"},
    {"linestring_z", "geometry is not supported; store WKB in a binary column"},
    {"geometrycollection", "geometry is not supported; store WKB in a binary column"},
};

enum mp_code mp_hog_type_read(struct mp_str name, struct mp_err *err, enum mp_hog_type *ret)
{
    for (int i = 0; i < MP_HOG_TYPES; i++)
        if (mp_str_eq_fold(name, mp_str_c(mp_hog_types[i].name))) {
            *ret = (enum mp_hog_type)i;
            return MP_OK;
        }
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        if (mp_str_eq_fold(name, mp_str_c(refused[i].name)))
            return mp_err_set(err, MP_BAD_DATA, "column type %s is refused: %s", refused[i].name,
                              refused[i].why);
    return mp_err_set(err, MP_BAD_DATA, "unknown column type \"%.*s\"",
                      name.size > 60 ? 60 : (int)name.size, name.data);
}

bool mp_hog_type_promotes(enum mp_hog_type from, enum mp_hog_type to)
{
    static const struct {
        enum mp_hog_type from, to;
    } allowed[] = {
        {MP_HOG_INT8, MP_HOG_INT16},    {MP_HOG_INT8, MP_HOG_INT},
        {MP_HOG_INT8, MP_HOG_LONG},     {MP_HOG_INT16, MP_HOG_INT},
        {MP_HOG_INT16, MP_HOG_LONG},    {MP_HOG_INT, MP_HOG_LONG},
        {MP_HOG_UINT8, MP_HOG_UINT16},  {MP_HOG_UINT8, MP_HOG_UINT32},
        {MP_HOG_UINT16, MP_HOG_UINT32}, {MP_HOG_FLOAT, MP_HOG_DOUBLE},
    };

    for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
        if (allowed[i].from == from && allowed[i].to == to)
            return true;
    return false;
}
