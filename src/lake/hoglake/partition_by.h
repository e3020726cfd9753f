/* lake/hoglake/partition_by.h - partition transforms as texts, and the setting that asks for them.
 *
 *     HOGLAKE_PARTITION_BY = key ("," key)*
 *     key                  = column | function "(" column ")" | "bucket" "(" column "," digits ")"
 *     function             = "identity" | "year" | "month" | "day" | "hour"
 *
 * Functions in any case, blanks anywhere between, empty keys left out; columns in exact case. The
 * same key twice is refused.
 */
#ifndef MP_LAKE_HOGLAKE_PARTITION_BY_H
#define MP_LAKE_HOGLAKE_PARTITION_BY_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "column/schema.h"

struct mp_hog_partition_key {
    struct mp_str column;
    uint8_t transform; /* enum mp_transform_id: IDENTITY, EPOCH_*, BUCKET_ICEBERG */
    uint32_t buckets;
};

/* Gives count keys in arena; none for an empty setting. MP_BAD_CONFIG says what is wrong. */
enum mp_code mp_hog_partition_by_parse(struct mp_arena *arena, struct mp_str setting,
                                       struct mp_err *err, const struct mp_hog_partition_key **ret,
                                       uint32_t *ret_count);
/* Adds one key in the grammar above. */
void mp_hog_partition_by_print(const struct mp_hog_partition_key *key, struct mp_buf *ret);

/* The catalog's name of a transform: "identity", "month", "bucket". */
struct mp_str mp_hog_transform_name(uint8_t transform);
/* The other way, in any case; false: none that we know. */
bool mp_hog_transform_of_name(struct mp_str name, uint8_t *ret);

#endif
