/* lake/ducklake/layout.h - where things are: data path, directories, quoted names. No I/O.
 *
 * After  DuckLake sheet, sections 4 (data_path), 6.1 (table directories), 11.3 (partitions).
 */
#ifndef MP_LAKE_DUCKLAKE_LAYOUT_H
#define MP_LAKE_DUCKLAKE_LAYOUT_H

#include "base/arena.h"
#include "base/buf.h"
#include "lake/lake.h"

/* A data path as it is stored: absolute (against `directory`), without "//", "." and "..", closed
 * with one '/'. A URL keeps its inside. Empty where there is no path. Made in arena. */
struct mp_str mp_dl_data_path(struct mp_arena *arena, struct mp_str path, struct mp_str directory);

/* Adds the name in double quotes, its own doubled. */
void mp_dl_quote(struct mp_buf *ret, struct mp_str name);

/* A name as a directory: itself where it is plain, else the uuid; with '/'. */
struct mp_str mp_dl_directory(struct mp_arena *arena, struct mp_str name, const char *uuid);

/* Adds "name=value/": both percent-encoded except A-Z a-z 0-9 - _ . ~, NULL as
 * __HIVE_DEFAULT_PARTITION__. A name or value of more than 200 bytes encoded is cut and closed with
 * '~' and a hash of the whole, and where both together are longer than a file system can name, the
 * hash alone is the value; reading does not look at directories. */
void mp_dl_partition_directory(struct mp_buf *ret, struct mp_str name,
                               const struct mp_partition_value *value);
/* All of a file's, one in the other; one with a hash of them where a store could not name them. */
void mp_dl_partition_directories(struct mp_buf *ret, const struct mp_str *names,
                                 const struct mp_partition_value *values, uint32_t count);

#endif
