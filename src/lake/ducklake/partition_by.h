/* lake/ducklake/partition_by.h - partition transforms as texts, and the setting that asks for them.
 *
 *     DUCKLAKE_PARTITION_BY = field ("," field)*
 *     field                 = name | function "(" name ")" | "bucket" "(" digits "," name ")"
 *     function              = "year" | "month" | "day" | "hour"
 *     name                  = letters, digits, '_' and bytes above 127, not beginning with a digit,
 *                             or any text in double quotes (a quote inside doubled)
 *
 * Functions in any case, blanks anywhere between. A name without a parenthesis is a column, even
 * if it is called year. The same transform of the same column twice is refused.
 */
#ifndef MP_LAKE_DUCKLAKE_PARTITION_BY_H
#define MP_LAKE_DUCKLAKE_PARTITION_BY_H

#include "base/arena.h"
#include "base/err.h"
#include "column/schema.h"

#define MP_DL_TRANSFORM_TEXT 24

struct mp_dl_partition_key {
    struct mp_str column; /* as written; compared without ASCII case */
    uint8_t transform;    /* enum mp_transform_id */
    uint32_t buckets;
};

/* Gives count keys in arena; none for an empty setting. MP_BAD_CONFIG says what is wrong where. */
enum mp_code mp_dl_partition_by_parse(struct mp_arena *arena, struct mp_str setting,
                                      struct mp_err *err, const struct mp_dl_partition_key **ret,
                                      uint32_t *ret_count);

/* "identity", "year", ..., "bucket(16)": as ducklake_partition_column.transform holds it. */
void mp_dl_transform_text(uint8_t transform, uint32_t buckets, char ret[MP_DL_TRANSFORM_TEXT]);
/* The other way; false: none that we know. */
bool mp_dl_transform_parse(struct mp_str text, uint8_t *ret, uint32_t *ret_buckets);
/* The directory's name of each key of a spec: the column of an identity, else the transform's
 * name, with "_column" behind it where that was used before. */
struct mp_str mp_dl_transform_directory(struct mp_arena *arena, uint8_t transform,
                                        struct mp_str column, const struct mp_str *used,
                                        uint32_t used_count);

#endif
