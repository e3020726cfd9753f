/* parquet/footer_priv.h - parquet.thrift as tables: what footer_thrift.c reads, footer.c checks.
 *
 * The structs are those of parquet.thrift, field by field, as far as we use them.
 */
#ifndef MP_PARQUET_FOOTER_PRIV_H
#define MP_PARQUET_FOOTER_PRIV_H

#include "parquet/footer.h"
#include "parquet/thrift_in.h"

struct mp_raw_decimal {
    uint32_t has;
    int32_t scale, precision;
};

struct mp_raw_time { /* TimeType, TimestampType */
    uint32_t has;
    bool utc;
    uint32_t unit; /* the union TimeUnit: its bits */
};

struct mp_raw_integer {
    uint32_t has;
    int8_t bits;
    bool is_signed;
};

struct mp_raw_logical {
    uint32_t has;
    struct mp_raw_decimal decimal;
    struct mp_raw_time time, timestamp;
    struct mp_raw_integer integer;
};

struct mp_raw_element { /* SchemaElement */
    uint32_t has;
    int32_t type, type_length, repetition, child_count, converted, scale, precision, field_id;
    struct mp_str name;
    struct mp_raw_logical logical;
    struct mp_str logical_raw;
};

struct mp_raw_column { /* ColumnMetaData */
    uint32_t has;
    int32_t type, codec, bloom_filter_bytes;
    int64_t value_count, raw_bytes, bytes, data_page_offset, dictionary_page_offset,
        bloom_filter_offset;
    struct mp_parquet_statistics statistics;
};

struct mp_raw_chunk { /* ColumnChunk */
    uint32_t has;
    int64_t offset_index_offset, column_index_offset;
    int32_t offset_index_bytes, column_index_bytes;
    struct mp_raw_column column;
    struct mp_str column_raw;
};

struct mp_raw_group { /* RowGroup */
    uint32_t has;
    struct mp_raw_chunk *chunks;
    uint32_t chunk_count;
    int64_t rows, raw_bytes;
    struct mp_str sorting_columns;
};

struct mp_raw_pair {
    uint32_t has;
    struct mp_str key, value;
};

struct mp_raw_order { /* ColumnOrder */
    uint32_t has;
};

struct mp_raw_file { /* FileMetaData */
    uint32_t has;
    int32_t version;
    int64_t rows;
    struct mp_raw_element *elements;
    struct mp_raw_group *groups;
    struct mp_raw_pair *pairs;
    struct mp_raw_order *orders;
    uint32_t element_count, group_count, pair_count, order_count;
    struct mp_str created_by, schema_raw, pairs_raw, orders_raw;
};

extern const struct mp_thrift_shape mp_raw_file_shape;

/* Says what is wrong with a footer. */
#define MP_BAD_FOOTER(err, ...) mp_err_set(err, MP_BAD_DATA, __VA_ARGS__)

/* Makes the tree of the elements (F1). */
enum mp_code mp_footer_schema(struct mp_arena *arena, const struct mp_raw_file *file,
                              struct mp_err *err, struct mp_parquet_footer *ret);

#endif
