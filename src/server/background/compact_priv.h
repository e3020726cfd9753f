/* server/background/compact_priv.h - inner door of compaction.
 *
 *     compact          which files go together: buckets, classes of one schema, what is left over
 *     compact_files    the files of a bucket: their rows, footers, deletion vectors
 *     compact_columns  the table's columns in a new file, and where a file has them
 *     compact_group    one group: claim, make, upload, commit
 *     compact_make     the new file: joined byte for byte, or decoded and encoded again
 *
 * A group ends in one of the ways of enum mp_group_end; where it was left alone, nothing of it is
 * in the catalog.
 */
#ifndef MP_SERVER_BACKGROUND_COMPACT_PRIV_H
#define MP_SERVER_BACKGROUND_COMPACT_PRIV_H

#include "parquet/join.h"
#include "parquet/merge.h"
#include "server/background/callouts.h"
#include "server/tables.h"

#include <stdio.h>

#define MP_ROW_ID_NAME     MP_STR("_hog_row_id")
#define MP_ROW_ID_FIELD_ID 2147483646

struct mp_compact_file {
    struct mp_footer_request request;
    int64_t file_id, records, row_id_start, begin_snapshot;
    bool explicit_row_ids;
    const struct mp_parquet_footer *footer;
    /* its deletion vector */
    int64_t vector_id; /* 0: none */
    int64_t vector_rows, vector_bytes;
    struct mp_str vector_path;
    const uint64_t *deleted; /* bit a row; NULL: none */
    /* what may become of it */
    bool joins;  /* byte for byte, with its equals */
    bool merges; /* decoded */
    bool done;   /* in a group already, or not to be read */
    bool seen;   /* its class was looked at */
    bool apart;  /* its carried columns or variants are others than of those it could go with */
    const int32_t *leaves; /* of the columns of a new file; see merge.h */
    int32_t row_id_leaf;
};

/* No row of it is left: it ends, and is not read. */
static inline bool mp_compact_is_empty(const struct mp_compact_file *file)
{
    return file->vector_rows == file->records;
}

/* The files of a bucket that are looked at, smallest first. */
struct mp_compact_files {
    struct mp_compact_file *items;
    uint32_t count;
    struct mp_arena arena;
};

/* Files of one table, partition spec and partition. */
struct mp_compact_group {
    struct mp_call *call;
    struct mp_str catalog;
    int64_t catalog_id, table_id;
    int64_t head; /* the snapshot that the table was read at */
    struct mp_columns columns;
    struct mp_parquet_merge_options options; /* of a merge; columns none: there can be none */
    bool merge;                              /* else a join */
    struct mp_compact_file **files;          /* in the order of their row ids */
    uint32_t count;
    struct mp_arena *arena;
};

enum mp_group_end {
    MP_GROUP_COMPACTED,
    MP_GROUP_CLAIMED,  /* another server works on one of the files */
    MP_GROUP_CONFLICT, /* a file, the table or its columns changed meanwhile */
    MP_GROUP_DELETED,  /* a file got another deletion vector meanwhile */
    MP_GROUP_SCHEMA,   /* a file holds what is not read, or what its column cannot hold */
    MP_GROUP_INVALID,  /* a file contradicts itself */
    MP_GROUP_MEMORY,   /* a merge needed more than HOGLAKE_COMPACTION_SORTED_HEAP_BYTES */
    MP_GROUP_FAILED,   /* the store or the disk failed */
};

/* How a group ended. */
struct mp_group_result {
    enum mp_group_end end;
    uint32_t fault; /* SCHEMA, INVALID, MEMORY: the file that it was, or UINT32_MAX */
    int64_t bytes;  /* COMPACTED: of the new file */
    bool made_file; /* COMPACTED: false where no row was left */
};

/* --- compact_files.c --- */

/* Says that files or groups were left alone. */
void mp_compact_left_alone(struct mp_server *server, const char *reason, int64_t count);
/* Reads the rows of the files with these ids (an array as text): those that go together by their
 * sizes; too few: count 0. lone: one file, whatever its size. */
enum mp_code mp_compact_files_find(struct mp_call *call, int64_t catalog_id, struct mp_str file_ids,
                                   bool lone, struct mp_compact_files *ret);
/* The smallest group worth its while: fewer files where few of them reach the target. */
uint32_t mp_compact_files_min(const struct mp_server_settings *settings, int64_t largest_bytes);
/* Reads footers and deletion vectors. Files that cannot be read are done, and counted in
 * *ret_invalid; MP_IO and such: the store did not answer. */
enum mp_code mp_compact_files_open(struct mp_server *server, struct mp_compact_files *files,
                                   struct mp_err *err, int64_t *ret_invalid);

/* --- compact_columns.c --- */

/* Makes the table's columns and sort order those of a merge. MP_REFUSED: it cannot be merged. */
enum mp_code mp_compact_columns(struct mp_arena *arena, const struct mp_table *table,
                                struct mp_err *err, struct mp_parquet_merge_options *ret);
/* Finds the columns in a file: by field id; a column without one by the name that it had in
 * `then`, the table's columns when the file began. MP_REFUSED: it has one that nothing is known
 * of. */
enum mp_code mp_compact_leaves(struct mp_arena *arena,
                               const struct mp_parquet_merge_options *options,
                               struct mp_columns then, struct mp_err *err,
                               struct mp_compact_file *file);

/* --- compact_make.c --- */

struct mp_compact_made {
    const struct mp_parquet_footer *footer; /* NULL: no row is left, and no file */
    const struct mp_column_stats *stats;    /* of its columns; NULL: it was joined */
    uint32_t stats_count;
    uint64_t bytes;
};

/* What a join of these files is asked for. */
struct mp_parquet_join_options mp_compact_join_options(const struct mp_server *server);
struct mp_parquet_join_input mp_compact_join_input(const struct mp_compact_file *file);
struct mp_parquet_merge_input mp_compact_merge_input(const struct mp_compact_file *file);
/* Puts the new file into spool. *ret_fault: as in struct mp_group_result. */
enum mp_code mp_compact_make(struct mp_compact_group *group, FILE *spool, struct mp_err *err,
                             uint32_t *ret_fault, struct mp_compact_made *ret);
/* What the catalog keeps of the new file: what its footer tells, and of floats what it does not. */
void mp_compact_tell(const struct mp_compact_group *group, const struct mp_compact_made *made,
                     struct mp_footer *ret);

/* --- compact_group.c --- */

/* Compacts one group. Fails only where the database did. */
enum mp_code mp_compact_group(struct mp_compact_group *group, struct mp_group_result *ret);

#endif
