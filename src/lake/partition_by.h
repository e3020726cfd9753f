/* lake/partition_by.h - the settings that ask for a partition spec.
 *
 *     DUCKLAKE_PARTITION_BY = field ("," field)*
 *     field                 = name | function "(" name ")" | "bucket" "(" digits "," name ")"
 *     function              = "year" | "month" | "day" | "hour"
 *     name                  = letters, digits, '_' and bytes above 127, not beginning with a digit,
 *                             or any text in double quotes (a quote inside doubled)
 *
 *     HOGLAKE_PARTITION_BY  = field? ("," field?)*
 *     field                 = name | function "(" name ")" | "bucket" "(" name "," digits ")"
 *     function              = "identity" | "year" | "month" | "day" | "hour"
 *     name                  = letters, digits and '_', not beginning with a digit
 *
 * Functions in any case, blanks anywhere between. A name without a parenthesis is a column, even
 * if it is called year. The same key twice is refused: for DuckLake names are compared without
 * ASCII case, for hoglake as they are, and there buckets of different counts are different keys.
 */
#ifndef MP_LAKE_PARTITION_BY_H
#define MP_LAKE_PARTITION_BY_H

#include "base/arena.h"
#include "base/err.h"
#include "column/schema.h"

enum mp_partition_grammar { MP_PARTITION_BY_DUCKLAKE, MP_PARTITION_BY_HOGLAKE };

struct mp_partition_key {
    struct mp_str column; /* as written */
    uint8_t transform;    /* enum mp_transform_id: calendar fields for DuckLake, EPOCH and ICEBERG
                             ones for hoglake */
    uint32_t buckets;
};

/* Gives count keys in arena; none for an empty setting. MP_BAD_CONFIG says what is wrong where. */
enum mp_code mp_partition_by_parse(struct mp_arena *arena, struct mp_str setting,
                                   enum mp_partition_grammar grammar, struct mp_err *err,
                                   const struct mp_partition_key **ret, uint32_t *ret_count);
/* A number of buckets: digits only, 1 to INT32_MAX. */
bool mp_partition_buckets(struct mp_str text, uint32_t *ret);

#endif
