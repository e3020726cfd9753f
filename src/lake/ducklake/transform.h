/* lake/ducklake/transform.h - partition transforms as the catalog spells them. No I/O. */
#ifndef MP_LAKE_DUCKLAKE_TRANSFORM_H
#define MP_LAKE_DUCKLAKE_TRANSFORM_H

#include "base/arena.h"
#include "column/schema.h"

#define MP_DL_TRANSFORM_TEXT 24

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
