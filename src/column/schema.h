/* column/schema.h - a live table as its readers and writers see it.
 *
 * Given by lake, borrowed by the batch that is filled against it. Never changed in place: a new
 * resolve gives a new one.
 */
#ifndef MP_COLUMN_SCHEMA_H
#define MP_COLUMN_SCHEMA_H

#include "base/arena.h"
#include "column/type.h"

#include <stdbool.h>

struct mp_live_column {
    struct mp_str name;
    struct mp_type type;
    int32_t field_id;
    bool required;         /* NOT NULL in the catalog */
    bool default_not_null; /* absent from a file it would read as a value: write its nulls */
    bool partition_source; /* a widening would change partition values */
};

enum mp_transform_id {
    MP_TRANSFORM_IDENTITY,
    MP_TRANSFORM_YEAR, /* calendar fields in UTC, as DuckLake: day is 1 to 31 */
    MP_TRANSFORM_MONTH,
    MP_TRANSFORM_DAY,
    MP_TRANSFORM_HOUR,
    MP_TRANSFORM_EPOCH_YEAR, /* whole units since 1970, floored, as Iceberg */
    MP_TRANSFORM_EPOCH_MONTH,
    MP_TRANSFORM_EPOCH_DAY,
    MP_TRANSFORM_EPOCH_HOUR,
    MP_TRANSFORM_BUCKET,         /* murmur3 of the value's bytes as DuckLake takes them */
    MP_TRANSFORM_BUCKET_ICEBERG, /* the same with Iceberg's bytes (decimal, uuid, unsigned differ)
                                  */
};

struct mp_partition_field {
    int32_t field_id; /* of the source column */
    uint8_t transform;
    uint32_t buckets; /* BUCKET only */
};

/* A wish: the column of that id with a type that holds every value of its own. */
struct mp_promotion {
    int32_t field_id;
    struct mp_type type;
};

/* How a catalog spells the values of identity partitions. */
enum mp_spelling {
    MP_SPELLING_DUCKLAKE, /* as DuckDB's cast to VARCHAR */
    MP_SPELLING_HOGLAKE,  /* ISO 8601, doubles and decimals as Python, bytes in base64 */
};

/* A row's value of one partition field, as catalogs spell it: 2024, 3, n0, 1.5, true. */
struct mp_partition_value {
    bool null;
    struct mp_str text;
};

struct mp_sort_field {
    int32_t field_id;
    bool descending, nulls_first;
};

struct mp_schema {
    const struct mp_live_column *columns;
    uint32_t column_count;
    const struct mp_partition_field *partition;
    uint32_t partition_count;
    const struct mp_sort_field *sort;
    uint32_t sort_count;
    uint8_t spelling; /* enum mp_spelling */
};

/* Gives NULL where the schema has no such column. */
static inline const struct mp_live_column *mp_schema_by_id(const struct mp_schema *schema,
                                                           int32_t field_id)
{
    for (uint32_t i = 0; i < schema->column_count; i++)
        if (schema->columns[i].field_id == field_id)
            return &schema->columns[i];
    return NULL;
}

/* The same by name, every byte; NULL where there is none. */
static inline const struct mp_live_column *mp_schema_by_name(const struct mp_schema *schema,
                                                             struct mp_str name)
{
    for (uint32_t i = 0; i < schema->column_count; i++)
        if (mp_str_eq(schema->columns[i].name, name))
            return &schema->columns[i];
    return NULL;
}

/* Copies the schema and its names into arena. */
void mp_schema_copy(struct mp_arena *arena, const struct mp_schema *schema, struct mp_schema *ret);

#endif
