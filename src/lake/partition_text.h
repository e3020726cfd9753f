/* lake/partition_text.h - partition values as catalogs can keep them. */
#ifndef MP_LAKE_PARTITION_TEXT_H
#define MP_LAKE_PARTITION_TEXT_H

#include "base/arena.h"

/* The value; a NUL byte, which no database takes, is replaced by its control picture U+2400. What
 * else is made of the value, such as a directory, is made of this text, so that they agree. */
struct mp_str mp_lake_partition_text(struct mp_arena *arena, struct mp_str value);

#endif
