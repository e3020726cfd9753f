/* server/tx/commit.h - data commits, grouped.
 *
 * Commits of one catalog that wait at the same time go into one database transaction: each is
 * validated against the state the one before it left and gets its own snapshot, changes, files and
 * receipt; one round trip reads, one writes and commits, one disk flush is shared. What is refused
 * is refused before anything is written, so it takes nothing from the others. When the database
 * refuses a group as a whole, its members run again alone.
 *
 * Life     open -> run (from any worker) -> close
 * Threads  any. The thread of one waiting commit works for the group, the others sleep.
 */
#ifndef MP_SERVER_TX_COMMIT_H
#define MP_SERVER_TX_COMMIT_H

#include "server/columns.h"
#include "server/tx/tx.h"

struct mp_commits;

struct mp_commit_rules {
    bool unchanged_targets; /* delete targets must not have changed since read_snapshot */
    bool data_file_paths;   /* deletes may name a file of the same commit by its path */
};

struct mp_commits *mp_commits_open(struct mp_server *server);
void mp_commits_close(struct mp_commits *commits);
/* Commits the request, which is well-formed, to the catalog. The answer is for the one caller. */
enum mp_code mp_commits_run(struct mp_call *call, struct mp_str catalog,
                            const struct mp_wire_commit *request,
                            const struct mp_commit_rules *rules, struct mp_wire_commit_result *ret);

/* --- parts that two-phase creation uses too (tx/files.c) --- */

/* What a file is checked against. */
struct mp_files_target {
    struct mp_columns columns;
    struct mp_field_types *fields; /* by field id; see mp_field_types_new */
    int64_t spec_id;
    uint32_t partition_count; /* 0: unpartitioned */
};

struct mp_field_types;
struct mp_field_types *mp_field_types_new(struct mp_arena *arena, struct mp_columns columns);

/* 422 for what a file must not be; statistics are repaired in place. */
enum mp_code mp_files_check(struct mp_call *call, struct mp_arena *arena,
                            const struct mp_files_target *target, struct mp_wire_file *files,
                            uint32_t count);
enum mp_code mp_footer_size_check(struct mp_call *call, const struct mp_wire_file *file);
/* 422 where a path does not lie below the catalog's. paths of files and delete files. */
enum mp_code mp_paths_check(struct mp_call *call, struct mp_str data_path,
                            const struct mp_wire_commit *request);

/* Rows of hog_data_file and hog_file_stats on their way. */
struct mp_file_rows {
    struct mp_sql_array ids, tables, snapshots, paths, records, sizes, footers, row_offsets, states,
        specs, partitions, splits;
    struct mp_sql_array stats_ids, stats;
    uint32_t count, stats_count;
};
void mp_file_rows_init(struct mp_file_rows *rows);
void mp_file_rows_fini(struct mp_file_rows *rows);
/* row_offset: behind the table's next_row_id as it is before this transaction. */
void mp_file_rows_add(struct mp_file_rows *rows, const struct mp_wire_file *file, int64_t file_id,
                      int64_t table_id, int64_t snapshot, int64_t row_offset, int64_t spec_id);
void mp_file_rows_send(struct mp_tx *tx, struct mp_file_rows *rows);
/* What a table gains, all its files of the transaction together. */
struct mp_table_gain {
    int64_t table_id, records, files, bytes;
};
/* Behind the rows, which take their row ids from the sums as they were. */
void mp_table_gain_send(struct mp_tx *tx, const struct mp_table_gain *gain);
/* Adds the form of hog_file_stats.stats. */
void mp_file_stats_text(struct mp_buf *buf, const struct mp_wire_file *file);

/* The SHA-256 of a request in canonical form behind a version byte (tx/fingerprint.c). */
enum { MP_FINGERPRINT_BYTES = 33 };
void mp_fingerprint(const struct mp_wire_commit *request, const struct mp_commit_rules *rules,
                    unsigned char ret[MP_FINGERPRINT_BYTES]);

#endif
