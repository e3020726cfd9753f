/* parquet/footer.h - what a Parquet file says of itself. Bytes in, facts out; no I/O.
 *
 * Reading takes two steps, since a file ends in the length of its footer:
 *
 *     the last MP_PARQUET_TAIL_BYTES -> mp_parquet_footer_bytes -> so many bytes in front of them
 *     -> mp_parquet_footer_read
 *
 * Every length, count and offset was checked before a footer is given:
 *     F1  the schema is one tree, every node in it once, its leaves numbered as they stand
 *     F2  every row group has one chunk per leaf, of the leaf's physical type
 *     F3  a chunk's bytes lie between the file's magic and its footer
 *     F4  rows of the groups add up to the file's; a flat chunk has as many values as its group
 * rows Statistics are not checked here: they are claims (see footer_stats.h).
 *
 * Memory   everything is in the arena given; texts and `raw` bytes are borrowed from the footer's
 *          bytes, which must stay as long.
 * Errors   MP_BAD_DATA says what is wrong and where: no later try will mend it.
 * After    Parquet format 2.11, "File Format", "Metadata"; parquet.thrift: FileMetaData; "Nested
 *          Encoding" for levels.
 */
#ifndef MP_PARQUET_FOOTER_H
#define MP_PARQUET_FOOTER_H

#include "base/arena.h"
#include "base/err.h"

#define MP_PARQUET_TAIL_BYTES       8u
#define MP_PARQUET_FOOTER_BYTES_MAX (64u << 20)
#define MP_PARQUET_NODES_MAX        100000u
#define MP_PARQUET_DEPTH_MAX        64u /* of the schema, its root counted */

enum mp_parquet_repetition { MP_PARQUET_REQUIRED, MP_PARQUET_OPTIONAL, MP_PARQUET_REPEATED };

/* Numbers of the union LogicalType. Where a file has only the older ConvertedType, its equal is
 * given. */
enum mp_parquet_logical_kind {
    MP_PARQUET_PLAIN = 0, /* no annotation, or one that says what the physical type says anyway */
    MP_PARQUET_STRING = 1,
    MP_PARQUET_MAP = 2,
    MP_PARQUET_LIST = 3,
    MP_PARQUET_ENUM = 4,
    MP_PARQUET_DECIMAL = 5,
    MP_PARQUET_DATE = 6,
    MP_PARQUET_TIME = 7,
    MP_PARQUET_TIMESTAMP = 8,
    MP_PARQUET_INTERVAL = 9, /* a ConvertedType only */
    MP_PARQUET_INTEGER = 10,
    MP_PARQUET_UNKNOWN = 11, /* always null */
    MP_PARQUET_JSON = 12,
    MP_PARQUET_BSON = 13,
    MP_PARQUET_UUID = 14,
    MP_PARQUET_FLOAT16 = 15,
    MP_PARQUET_VARIANT = 16,
    MP_PARQUET_GEOMETRY = 17,
    MP_PARQUET_GEOGRAPHY = 18,
    MP_PARQUET_LATER = 31, /* one that this code does not know; see `raw` */
};

enum mp_parquet_unit { MP_PARQUET_MILLIS = 1, MP_PARQUET_MICROS = 2, MP_PARQUET_NANOS = 3 };

struct mp_parquet_logical {
    uint8_t kind;             /* enum mp_parquet_logical_kind */
    uint8_t unit;             /* TIME, TIMESTAMP: enum mp_parquet_unit */
    uint8_t bits;             /* INTEGER */
    bool is_signed;           /* INTEGER */
    bool utc;                 /* TIME, TIMESTAMP */
    int32_t precision, scale; /* DECIMAL */
    struct mp_str raw;        /* the LogicalType as it stands; empty where there is none */
};

/* One element of the schema; nodes[0] is the root, the others follow depth first. */
struct mp_parquet_node {
    struct mp_str name;
    struct mp_parquet_logical logical;
    uint32_t parent; /* of the root: 0 */
    uint32_t child_count;
    uint32_t end;                            /* the first node behind this one's descendants */
    int32_t leaf;                            /* its number; -1: a group */
    int8_t physical;                         /* Parquet's enum Type; -1: a group */
    uint8_t repetition;                      /* enum mp_parquet_repetition */
    uint16_t depth;                          /* of the root: 0 */
    uint16_t definition_max, repetition_max; /* levels */
    int32_t type_length;                     /* of FIXED_LEN_BYTE_ARRAY */
    int32_t converted;                       /* Parquet's enum ConvertedType; -1: none */
    int32_t field_id;
    bool has_field_id;
    bool in_variant; /* below a group that is a VARIANT, or that group */
};

/* As the footer has it: bits of `has` are 1 << field id in parquet.thrift. */
struct mp_parquet_statistics {
    uint32_t has;
    struct mp_str max_old, min_old; /* 1, 2: deprecated, signed order whatever the type */
    int64_t null_count;             /* 3 */
    int64_t distinct_count;         /* 4 */
    struct mp_str max, min;         /* 5, 6 */
    bool max_exact, min_exact;      /* 7, 8 */
};

struct mp_parquet_column_chunk {
    int64_t start, bytes; /* all its pages: where they lie, with their headers */
    int64_t raw_bytes;    /* before compression */
    int64_t value_count;  /* nulls and empty lists included */
    int64_t data_page_offset;
    int64_t dictionary_page_offset;                                        /* 0: none */
    int64_t column_index_offset, offset_index_offset, bloom_filter_offset; /* 0: none */
    int32_t column_index_bytes, offset_index_bytes;
    int32_t bloom_filter_bytes; /* 0 where it is not told */
    int32_t codec;              /* Parquet's enum CompressionCodec */
    struct mp_parquet_statistics statistics;
    struct mp_str raw; /* the ColumnMetaData */
};

struct mp_parquet_row_group {
    const struct mp_parquet_column_chunk *chunks; /* one per leaf */
    int64_t rows, raw_bytes;
    int64_t start;                 /* of its first page */
    struct mp_str sorting_columns; /* the list as it stands; empty: none */
};

struct mp_parquet_pair {
    struct mp_str key, value;
};

/* How a leaf's min and max are ordered (the union ColumnOrder). */
enum mp_parquet_column_order {
    MP_PARQUET_ORDER_NONE = 0,    /* not told: min and max mean nothing, the deprecated ones may */
    MP_PARQUET_ORDER_TYPE = 1,    /* by the type */
    MP_PARQUET_ORDER_IEEE754 = 2, /* the total order of floats */
    MP_PARQUET_ORDER_LATER = 3,
};

struct mp_parquet_footer {
    int32_t version;
    int64_t rows;
    uint64_t file_bytes;
    uint32_t footer_bytes; /* without the last eight bytes of the file */
    const struct mp_parquet_node *nodes;
    uint32_t node_count;
    const uint32_t *leaves; /* leaf -> node */
    uint32_t leaf_count;
    const struct mp_parquet_row_group *groups;
    uint32_t group_count;
    const struct mp_parquet_pair *pairs; /* key-value metadata */
    uint32_t pair_count;
    struct mp_str created_by;
    const uint8_t *orders; /* leaf -> enum mp_parquet_column_order */
    bool has_orders;
    struct mp_str schema_raw, pairs_raw, orders_raw; /* the lists as they stand; empty: none */
};

/* From the file's last MP_PARQUET_TAIL_BYTES: how many bytes in front of them are the footer. */
enum mp_code mp_parquet_footer_bytes(struct mp_str tail, uint64_t file_bytes, struct mp_err *err,
                                     uint32_t *ret);
/* Reads the footer of a file of file_bytes. */
enum mp_code mp_parquet_footer_read(struct mp_arena *arena, struct mp_str footer,
                                    uint64_t file_bytes, struct mp_err *err,
                                    const struct mp_parquet_footer **ret);

/* The names from the root to a node, with dots between, in the arena. */
struct mp_str mp_parquet_path(struct mp_arena *arena, const struct mp_parquet_footer *footer,
                              uint32_t node);
/* A leaf has no field id; inside a VARIANT the group's counts. */
bool mp_parquet_misses_field_ids(const struct mp_parquet_footer *footer);

#endif
