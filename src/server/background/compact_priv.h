/* server/background/compact_priv.h - inner door of compaction.
 *
 *     compact        which files go together: buckets, footers, classes of one schema
 *     compact_group  one group: claim, join, upload, commit
 *
 * A group ends in one of the ways of enum mp_group_end; where it was left alone, nothing of it is
 * in the catalog.
 */
#ifndef MP_SERVER_BACKGROUND_COMPACT_PRIV_H
#define MP_SERVER_BACKGROUND_COMPACT_PRIV_H

#include "parquet/join.h"
#include "server/background/callouts.h"

#define MP_ROW_ID_NAME     MP_STR("_hog_row_id")
#define MP_ROW_ID_FIELD_ID 2147483646

struct mp_compact_file {
    struct mp_footer_request request;
    int64_t file_id, records, row_id_start;
    bool explicit_row_ids;
    bool done; /* in a class already, or not to be read */
    const struct mp_parquet_footer *footer;
};

/* Files of one table, partition spec and partition, with one schema. */
struct mp_compact_group {
    struct mp_call *call;
    struct mp_str catalog;
    int64_t catalog_id, table_id;
    struct mp_columns columns;
    struct mp_compact_file **files; /* in the order of their row ids */
    uint32_t count;
    struct mp_arena *arena;
};

enum mp_group_end {
    MP_GROUP_COMPACTED,
    MP_GROUP_CLAIMED,  /* another server works on one of the files */
    MP_GROUP_CONFLICT, /* a file or the table ended meanwhile */
    MP_GROUP_DELETED,  /* a file got a deletion vector meanwhile */
    MP_GROUP_SCHEMA,   /* the join was refused */
    MP_GROUP_INVALID,  /* an input contradicts itself */
    MP_GROUP_FAILED,   /* the store or the disk failed */
};

/* What a join of these files is asked for. */
struct mp_parquet_join_options mp_compact_options(const struct mp_server *server);
struct mp_parquet_join_input mp_compact_input(const struct mp_compact_file *file);
/* Compacts one group. Fails only where the database did; bytes of the new file in *ret_bytes. */
enum mp_code mp_compact_group(struct mp_compact_group *group, enum mp_group_end *ret_end,
                              int64_t *ret_bytes);

#endif
