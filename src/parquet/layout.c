/* parquet/layout.c - our types as Parquet names them.
 *
 * Logical and converted types are both written, as the DuckDB extension does, so that old readers
 * see the same columns; local times carry the converted type too (LogicalTypes.md, "TIMESTAMP":
 * writers must annotate local time with legacy annotations). HUGEINT and BLOB have neither.
 *
 * A leaf that a merge carries is written as the input has it, annotations by their bytes.
 *
 * After  Parquet "LogicalTypes"; parquet.thrift: SchemaElement, LogicalType, ConvertedType.
 */
#include "parquet/parquet_priv.h"
#include "parquet/reader.h"

/* Field numbers of the union LogicalType. */
enum logical {
    LOGICAL_NONE = 0,
    LOGICAL_STRING = 1,
    LOGICAL_MAP = 2,
    LOGICAL_LIST = 3,
    LOGICAL_DECIMAL = 5,
    LOGICAL_DATE = 6,
    LOGICAL_TIME = 7,
    LOGICAL_TIMESTAMP = 8,
    LOGICAL_INTEGER = 10,
    LOGICAL_JSON = 12,
    LOGICAL_UUID = 14,
    LOGICAL_VARIANT = 16,
};

/* Field numbers of the union TimeUnit. */
enum unit { UNIT_NONE, UNIT_MILLIS, UNIT_MICROS, UNIT_NANOS };

/* enum ConvertedType */
enum converted {
    CONVERTED_NONE = -1,
    CONVERTED_UTF8 = 0,
    CONVERTED_MAP = 1,
    CONVERTED_LIST = 3,
    CONVERTED_DECIMAL = 5,
    CONVERTED_DATE = 6,
    CONVERTED_TIME_MICROS = 8,
    CONVERTED_TIMESTAMP_MILLIS = 9,
    CONVERTED_TIMESTAMP_MICROS = 10,
    CONVERTED_UINT_8 = 11,
    CONVERTED_UINT_16 = 12,
    CONVERTED_UINT_32 = 13,
    CONVERTED_UINT_64 = 14,
    CONVERTED_INT_8 = 15,
    CONVERTED_INT_16 = 16,
    CONVERTED_INT_32 = 17,
    CONVERTED_INT_64 = 18,
    CONVERTED_JSON = 19,
};

enum { VARIANT_VERSION = 1 };

static const struct layout_row {
    bool known;
    uint8_t physical, order, logical;
    int8_t converted;
    uint8_t bits; /* INTEGER */
    bool sign;    /* INTEGER: signed; TIME and TIMESTAMP: adjusted to UTC */
    uint8_t unit; /* TIME and TIMESTAMP */
} table[MP_TYPE_COUNT] = {
#define ROW(physical, order, logical, converted)                                                   \
    true, MP_PHYSICAL_##physical, MP_ORDER_##order, LOGICAL_##logical, CONVERTED_##converted
    [MP_TYPE_BOOL] = {ROW(BOOLEAN, BOOL, NONE, NONE)},
    [MP_TYPE_INT8] = {ROW(INT32, I32, INTEGER, INT_8), .bits = 8, .sign = true},
    [MP_TYPE_INT16] = {ROW(INT32, I32, INTEGER, INT_16), .bits = 16, .sign = true},
    [MP_TYPE_INT32] = {ROW(INT32, I32, INTEGER, INT_32), .bits = 32, .sign = true},
    [MP_TYPE_INT64] = {ROW(INT64, I64, INTEGER, INT_64), .bits = 64, .sign = true},
    [MP_TYPE_UINT8] = {ROW(INT32, U32, INTEGER, UINT_8), .bits = 8},
    [MP_TYPE_UINT16] = {ROW(INT32, U32, INTEGER, UINT_16), .bits = 16},
    [MP_TYPE_UINT32] = {ROW(INT32, U32, INTEGER, UINT_32), .bits = 32},
    [MP_TYPE_UINT32_LONG] = {ROW(INT64, I64, NONE, NONE)},
    [MP_TYPE_UINT64] = {ROW(INT64, U64, INTEGER, UINT_64), .bits = 64},
    [MP_TYPE_INT128] = {ROW(DOUBLE, F64, NONE, NONE)},
    [MP_TYPE_FLOAT] = {ROW(FLOAT, F32, NONE, NONE)},
    [MP_TYPE_DOUBLE] = {ROW(DOUBLE, F64, NONE, NONE)},
    [MP_TYPE_DECIMAL] = {ROW(FIXED, DECIMAL16, DECIMAL, DECIMAL)}, /* the widest; see below */
    [MP_TYPE_DATE] = {ROW(INT32, I32, DATE, DATE)},
    [MP_TYPE_TIME] = {ROW(INT64, I64, TIME, TIME_MICROS), .unit = UNIT_MICROS},
    [MP_TYPE_TIMESTAMP_S] = {ROW(INT64, I64, TIMESTAMP, TIMESTAMP_MICROS), .unit = UNIT_MICROS},
    [MP_TYPE_TIMESTAMP_S_MS] = {ROW(INT64, I64, TIMESTAMP, TIMESTAMP_MILLIS), .unit = UNIT_MILLIS},
    [MP_TYPE_TIMESTAMP_MS] = {ROW(INT64, I64, TIMESTAMP, TIMESTAMP_MILLIS), .unit = UNIT_MILLIS},
    [MP_TYPE_TIMESTAMP] = {ROW(INT64, I64, TIMESTAMP, TIMESTAMP_MICROS), .unit = UNIT_MICROS},
    [MP_TYPE_TIMESTAMP_NS] = {ROW(INT64, I64, TIMESTAMP, NONE), .unit = UNIT_NANOS},
    [MP_TYPE_TIMESTAMPTZ] = {ROW(INT64, I64, TIMESTAMP, TIMESTAMP_MICROS), .unit = UNIT_MICROS,
                             .sign = true},
    [MP_TYPE_VARCHAR] = {ROW(BYTE_ARRAY, UTF8, STRING, UTF8)},
    [MP_TYPE_JSON] = {ROW(BYTE_ARRAY, UTF8, JSON, JSON)},
    [MP_TYPE_BLOB] = {ROW(BYTE_ARRAY, BINARY, NONE, NONE)},
    [MP_TYPE_UUID] = {ROW(FIXED, BYTES16, UUID, NONE)},
#undef ROW
};

struct mp_layout mp_layout_of(struct mp_type type)
{
    uint32_t width = mp_type_width(type);
    struct mp_layout layout;

    assert(table[type.id].known);
    layout = (struct mp_layout){table[type.id].physical, table[type.id].order, width};
    if (type.id == MP_TYPE_DECIMAL && width < 16) {
        layout.physical = width == 4 ? MP_PHYSICAL_INT32 : MP_PHYSICAL_INT64;
        layout.order = width == 4 ? MP_ORDER_I32 : MP_ORDER_I64;
    }
    assert((width == 0) == (layout.physical == MP_PHYSICAL_BYTE_ARRAY));
    return layout;
}

/* ---- leaves that are carried ------------------------------------------------------------------
 */

/* How values of the leaf compare (LogicalTypes.md says so of each type). Decimals as bytes have an
 * order that is not worked out here, later types one that is not known. */
static uint8_t order_of(const struct mp_parquet_node *leaf)
{
    const struct mp_parquet_logical *logical = &leaf->logical;
    bool is_unsigned = logical->kind == MP_PARQUET_INTEGER && !logical->is_signed;

    switch (logical->kind) {
    case MP_PARQUET_FLOAT16:
        return leaf->physical == MP_PHYSICAL_FIXED && leaf->type_length == 2 ? MP_ORDER_F16
                                                                             : MP_ORDER_NONE;
    case MP_PARQUET_STRING:
    case MP_PARQUET_ENUM:
    case MP_PARQUET_JSON:
        return leaf->physical == MP_PHYSICAL_BYTE_ARRAY ? MP_ORDER_UTF8 : MP_ORDER_NONE;
    case MP_PARQUET_PLAIN:
    case MP_PARQUET_BSON:
    case MP_PARQUET_DECIMAL:
    case MP_PARQUET_DATE:
    case MP_PARQUET_TIME:
    case MP_PARQUET_TIMESTAMP:
    case MP_PARQUET_INTEGER:
    case MP_PARQUET_UUID:
        break;
    default:
        return MP_ORDER_NONE;
    }
    switch (leaf->physical) {
    case MP_PHYSICAL_BOOLEAN:
        return MP_ORDER_BOOL;
    case MP_PHYSICAL_INT32:
        return is_unsigned ? MP_ORDER_U32 : MP_ORDER_I32;
    case MP_PHYSICAL_INT64:
        return is_unsigned ? MP_ORDER_U64 : MP_ORDER_I64;
    case MP_PHYSICAL_FLOAT:
        return MP_ORDER_F32;
    case MP_PHYSICAL_DOUBLE:
        return MP_ORDER_F64;
    case MP_PHYSICAL_BYTE_ARRAY:
        return logical->kind == MP_PARQUET_DECIMAL ? MP_ORDER_NONE : MP_ORDER_BINARY;
    case MP_PHYSICAL_FIXED:
        return leaf->type_length != 16               ? MP_ORDER_NONE
               : logical->kind == MP_PARQUET_DECIMAL ? MP_ORDER_DECIMAL16
                                                     : MP_ORDER_BYTES16;
    default: /* INT96 */
        return MP_ORDER_NONE;
    }
}

struct mp_layout mp_layout_of_leaf(const struct mp_schema_element *element)
{
    const struct mp_parquet_node *leaf = element->carried;

    if (!leaf)
        return mp_layout_of(element->type);
    return (struct mp_layout){(uint8_t)leaf->physical, order_of(leaf), mp_parquet_leaf_width(leaf)};
}

static void carried_element(struct mp_thrift *thrift, const struct mp_schema_element *element)
{
    const struct mp_parquet_node *leaf = element->carried;

    mp_thrift_begin(thrift);
    mp_thrift_i32(thrift, 1, leaf->physical);
    if (leaf->physical == MP_PHYSICAL_FIXED)
        mp_thrift_i32(thrift, 2, leaf->type_length);
    mp_thrift_i32(thrift, 3, element->repetition);
    mp_thrift_binary(thrift, 4, element->name);
    if (leaf->converted >= 0)
        mp_thrift_i32(thrift, 6, leaf->converted);
    if (leaf->logical.kind == MP_PARQUET_DECIMAL) {
        mp_thrift_i32(thrift, 7, leaf->logical.scale);
        mp_thrift_i32(thrift, 8, leaf->logical.precision);
    }
    if (element->field_id)
        mp_thrift_i32(thrift, 9, element->field_id);
    if (leaf->logical.raw.size)
        mp_thrift_raw(thrift, 10, MP_THRIFT_STRUCT, leaf->logical.raw);
    mp_thrift_end(thrift);
}

/* ---- elements -------------------------------------------------------------------------------- */

static void time_type(struct mp_thrift *thrift, const struct layout_row *row)
{
    mp_thrift_bool(thrift, 1, row->sign);
    mp_thrift_struct(thrift, 2);
    mp_thrift_struct(thrift, row->unit);
    mp_thrift_end(thrift);
    mp_thrift_end(thrift);
}

/* The union LogicalType: a struct of one field, which is a struct again. */
static void logical_type(struct mp_thrift *thrift, struct mp_type type,
                         const struct layout_row *row)
{
    mp_thrift_struct(thrift, 10);
    mp_thrift_struct(thrift, row->logical);
    if (row->logical == LOGICAL_DECIMAL) {
        mp_thrift_i32(thrift, 1, type.scale);
        mp_thrift_i32(thrift, 2, type.precision);
    } else if (row->logical == LOGICAL_TIME || row->logical == LOGICAL_TIMESTAMP) {
        time_type(thrift, row);
    } else if (row->logical == LOGICAL_INTEGER) {
        mp_thrift_byte(thrift, 1, (int8_t)row->bits);
        mp_thrift_bool(thrift, 2, row->sign);
    }
    mp_thrift_end(thrift);
    mp_thrift_end(thrift);
}

static void group_element(struct mp_thrift *thrift, const struct mp_schema_element *element)
{
    bool map = element->annotation == MP_PARQUET_MAP;
    bool annotated = map || element->annotation == MP_PARQUET_LIST;

    assert(annotated || !element->annotation);
    mp_thrift_begin(thrift);
    mp_thrift_i32(thrift, 3, element->repetition);
    mp_thrift_binary(thrift, 4, element->name);
    mp_thrift_i32(thrift, 5, (int32_t)element->children);
    if (annotated)
        mp_thrift_i32(thrift, 6, map ? CONVERTED_MAP : CONVERTED_LIST);
    if (element->field_id)
        mp_thrift_i32(thrift, 9, element->field_id);
    if (annotated) {
        mp_thrift_struct(thrift, 10);
        mp_thrift_struct(thrift, map ? LOGICAL_MAP : LOGICAL_LIST);
        mp_thrift_end(thrift);
        mp_thrift_end(thrift);
    }
    if (element->type.id == MP_TYPE_VARIANT) {
        mp_thrift_struct(thrift, 10);
        mp_thrift_struct(thrift, LOGICAL_VARIANT);
        mp_thrift_byte(thrift, 1, VARIANT_VERSION);
        mp_thrift_end(thrift);
        mp_thrift_end(thrift);
    }
    mp_thrift_end(thrift);
}

void mp_layout_schema_element(struct mp_thrift *thrift, const struct mp_schema_element *element)
{
    const struct layout_row *row = &table[element->type.id];
    struct mp_layout layout;

    if (element->children) {
        group_element(thrift, element);
        return;
    }
    if (element->carried) {
        carried_element(thrift, element);
        return;
    }
    layout = mp_layout_of(element->type);
    mp_thrift_begin(thrift);
    mp_thrift_i32(thrift, 1, layout.physical);
    if (layout.physical == MP_PHYSICAL_FIXED)
        mp_thrift_i32(thrift, 2, layout.width);
    mp_thrift_i32(thrift, 3, element->repetition);
    mp_thrift_binary(thrift, 4, element->name);
    if (row->converted != CONVERTED_NONE)
        mp_thrift_i32(thrift, 6, row->converted);
    if (element->type.id == MP_TYPE_DECIMAL) {
        mp_thrift_i32(thrift, 7, element->type.scale);
        mp_thrift_i32(thrift, 8, element->type.precision);
    }
    if (element->field_id)
        mp_thrift_i32(thrift, 9, element->field_id);
    if (row->logical != LOGICAL_NONE)
        logical_type(thrift, element->type, row);
    mp_thrift_end(thrift);
}
