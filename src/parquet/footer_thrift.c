/* parquet/footer_thrift.c - the structs of parquet.thrift that a footer is made of, as tables.
 *
 * After  parquet.thrift: FileMetaData and what it holds.
 */
#include "parquet/footer_priv.h"

enum { PAIRS_MAX = 100000 };

#define AT(kind, T, id, member)                                                                    \
    {                                                                                              \
        id, MP_THRIFT_TO_##kind, offsetof(T, member), 0, 0, NULL                                   \
    }
#define INSIDE(T, id, member, of)                                                                  \
    {                                                                                              \
        id, MP_THRIFT_TO_STRUCT, offsetof(T, member), 0, 0, of                                     \
    }
#define INSIDE_RAW(T, id, member, of, raw)                                                         \
    {                                                                                              \
        id, MP_THRIFT_TO_STRUCT, offsetof(T, member), 0, offsetof(T, raw), of                      \
    }
#define LIST(T, id, member, of)                                                                    \
    {                                                                                              \
        id, MP_THRIFT_TO_LIST, offsetof(T, member##s), offsetof(T, member##_count), 0, of          \
    }
#define LIST_RAW(T, id, member, of, raw, max)                                                      \
    {                                                                                              \
        id, MP_THRIFT_TO_LIST, offsetof(T, member##s), offsetof(T, member##_count),                \
            offsetof(T, raw), of, max                                                              \
    }
#define RAW(T, id, raw)                                                                            \
    {                                                                                              \
        id, MP_THRIFT_TO_NONE, 0, 0, offsetof(T, raw), NULL                                        \
    }
#define THERE(id)                                                                                  \
    {                                                                                              \
        id, MP_THRIFT_TO_NONE, 0, 0, 0, NULL                                                       \
    }
#define BIT(id) (UINT32_C(1) << (id))
#define SHAPE(name, T, rules, required, bytes_min)                                                 \
    {                                                                                              \
        name, rules, sizeof(rules) / sizeof(*(rules)), required, sizeof(T), bytes_min              \
    }

/* ---- logical types --------------------------------------------------------------------------- */

static const struct mp_thrift_rule decimal_rules[] = {
    AT(I32, struct mp_raw_decimal, 1, scale),
    AT(I32, struct mp_raw_decimal, 2, precision),
};
static const struct mp_thrift_shape decimal_shape =
    SHAPE("DecimalType", struct mp_raw_decimal, decimal_rules, BIT(1) | BIT(2), 5);

static const struct mp_thrift_rule unit_rules[] = {THERE(1), THERE(2), THERE(3)};
static const struct mp_thrift_shape unit_shape = SHAPE("TimeUnit", uint32_t, unit_rules, 0, 1);

static const struct mp_thrift_rule time_rules[] = {
    AT(BOOL, struct mp_raw_time, 1, utc),
    INSIDE(struct mp_raw_time, 2, unit, &unit_shape),
};
static const struct mp_thrift_shape time_shape =
    SHAPE("TimeType", struct mp_raw_time, time_rules, BIT(1) | BIT(2), 4);

static const struct mp_thrift_rule integer_rules[] = {
    AT(I8, struct mp_raw_integer, 1, bits),
    AT(BOOL, struct mp_raw_integer, 2, is_signed),
};
static const struct mp_thrift_shape integer_shape =
    SHAPE("IntType", struct mp_raw_integer, integer_rules, BIT(1) | BIT(2), 4);

static const struct mp_thrift_rule logical_rules[] = {
    THERE(MP_PARQUET_STRING),
    THERE(MP_PARQUET_MAP),
    THERE(MP_PARQUET_LIST),
    THERE(MP_PARQUET_ENUM),
    INSIDE(struct mp_raw_logical, MP_PARQUET_DECIMAL, decimal, &decimal_shape),
    THERE(MP_PARQUET_DATE),
    INSIDE(struct mp_raw_logical, MP_PARQUET_TIME, time, &time_shape),
    INSIDE(struct mp_raw_logical, MP_PARQUET_TIMESTAMP, timestamp, &time_shape),
    INSIDE(struct mp_raw_logical, MP_PARQUET_INTEGER, integer, &integer_shape),
    THERE(MP_PARQUET_UNKNOWN),
    THERE(MP_PARQUET_JSON),
    THERE(MP_PARQUET_BSON),
    THERE(MP_PARQUET_UUID),
    THERE(MP_PARQUET_FLOAT16),
    THERE(MP_PARQUET_VARIANT),
    THERE(MP_PARQUET_GEOMETRY),
    THERE(MP_PARQUET_GEOGRAPHY),
};
static const struct mp_thrift_shape logical_shape =
    SHAPE("LogicalType", struct mp_raw_logical, logical_rules, 0, 1);

/* ---- schema ---------------------------------------------------------------------------------- */

static const struct mp_thrift_rule element_rules[] = {
    AT(I32, struct mp_raw_element, 1, type),
    AT(I32, struct mp_raw_element, 2, type_length),
    AT(I32, struct mp_raw_element, 3, repetition),
    AT(TEXT, struct mp_raw_element, 4, name),
    AT(I32, struct mp_raw_element, 5, child_count),
    AT(I32, struct mp_raw_element, 6, converted),
    AT(I32, struct mp_raw_element, 7, scale),
    AT(I32, struct mp_raw_element, 8, precision),
    AT(I32, struct mp_raw_element, 9, field_id),
    INSIDE_RAW(struct mp_raw_element, 10, logical, &logical_shape, logical_raw),
};
static const struct mp_thrift_shape element_shape =
    SHAPE("SchemaElement", struct mp_raw_element, element_rules, BIT(4), 3);

/* ---- row groups ------------------------------------------------------------------------------ */

static const struct mp_thrift_rule statistics_rules[] = {
    AT(TEXT, struct mp_parquet_statistics, 1, max_old),
    AT(TEXT, struct mp_parquet_statistics, 2, min_old),
    AT(I64, struct mp_parquet_statistics, 3, null_count),
    AT(I64, struct mp_parquet_statistics, 4, distinct_count),
    AT(TEXT, struct mp_parquet_statistics, 5, max),
    AT(TEXT, struct mp_parquet_statistics, 6, min),
    AT(BOOL, struct mp_parquet_statistics, 7, max_exact),
    AT(BOOL, struct mp_parquet_statistics, 8, min_exact),
};
static const struct mp_thrift_shape statistics_shape =
    SHAPE("Statistics", struct mp_parquet_statistics, statistics_rules, 0, 1);

static const struct mp_thrift_rule column_rules[] = {
    AT(I32, struct mp_raw_column, 1, type),
    THERE(2),
    THERE(3),
    AT(I32, struct mp_raw_column, 4, codec),
    AT(I64, struct mp_raw_column, 5, value_count),
    AT(I64, struct mp_raw_column, 6, raw_bytes),
    AT(I64, struct mp_raw_column, 7, bytes),
    AT(I64, struct mp_raw_column, 9, data_page_offset),
    AT(I64, struct mp_raw_column, 11, dictionary_page_offset),
    INSIDE(struct mp_raw_column, 12, statistics, &statistics_shape),
    AT(I64, struct mp_raw_column, 14, bloom_filter_offset),
    AT(I32, struct mp_raw_column, 15, bloom_filter_bytes),
};
static const struct mp_thrift_shape column_shape =
    SHAPE("ColumnMetaData", struct mp_raw_column, column_rules,
          BIT(1) | BIT(2) | BIT(3) | BIT(4) | BIT(5) | BIT(6) | BIT(7) | BIT(9), 17);

static const struct mp_thrift_rule chunk_rules[] = {
    THERE(1), /* file_path */
    INSIDE_RAW(struct mp_raw_chunk, 3, column, &column_shape, column_raw),
    AT(I64, struct mp_raw_chunk, 4, offset_index_offset),
    AT(I32, struct mp_raw_chunk, 5, offset_index_bytes),
    AT(I64, struct mp_raw_chunk, 6, column_index_offset),
    AT(I32, struct mp_raw_chunk, 7, column_index_bytes),
    THERE(8), /* crypto_metadata */
};
static const struct mp_thrift_shape chunk_shape =
    SHAPE("ColumnChunk", struct mp_raw_chunk, chunk_rules, BIT(3), 19);

static const struct mp_thrift_rule group_rules[] = {
    LIST(struct mp_raw_group, 1, chunk, &chunk_shape),
    AT(I64, struct mp_raw_group, 2, raw_bytes),
    AT(I64, struct mp_raw_group, 3, rows),
    RAW(struct mp_raw_group, 4, sorting_columns),
};
static const struct mp_thrift_shape group_shape =
    SHAPE("RowGroup", struct mp_raw_group, group_rules, BIT(1) | BIT(2) | BIT(3), 7);

/* ---- the file -------------------------------------------------------------------------------- */

static const struct mp_thrift_rule pair_rules[] = {
    AT(TEXT, struct mp_raw_pair, 1, key),
    AT(TEXT, struct mp_raw_pair, 2, value),
};
static const struct mp_thrift_shape pair_shape =
    SHAPE("KeyValue", struct mp_raw_pair, pair_rules, BIT(1), 3);

static const struct mp_thrift_rule order_rules[] = {
    THERE(MP_PARQUET_ORDER_TYPE),
    THERE(MP_PARQUET_ORDER_IEEE754),
};
static const struct mp_thrift_shape order_shape =
    SHAPE("ColumnOrder", struct mp_raw_order, order_rules, 0, 1);

static const struct mp_thrift_rule file_rules[] = {
    AT(I32, struct mp_raw_file, 1, version),
    LIST_RAW(struct mp_raw_file, 2, element, &element_shape, schema_raw, MP_PARQUET_NODES_MAX),
    AT(I64, struct mp_raw_file, 3, rows),
    LIST(struct mp_raw_file, 4, group, &group_shape),
    LIST_RAW(struct mp_raw_file, 5, pair, &pair_shape, pairs_raw, PAIRS_MAX),
    AT(TEXT, struct mp_raw_file, 6, created_by),
    LIST_RAW(struct mp_raw_file, 7, order, &order_shape, orders_raw, MP_PARQUET_NODES_MAX),
    THERE(8), /* encryption_algorithm */
};
const struct mp_thrift_shape mp_raw_file_shape =
    SHAPE("FileMetaData", struct mp_raw_file, file_rules, BIT(1) | BIT(2) | BIT(3) | BIT(4), 9);
