/* lake/ducklake/priv.h - inner door of the DuckLake driver.
 *
 *     db          two databases, one way to talk to them
 *     tx          a transaction that claims a snapshot, run again after a lost race
 *     ddl         the empty lake, the side table, a namespace
 *     table       a table as it is now
 *     evolve      tables and columns made, columns widened
 *     append      files and ranges committed
 *     offsets     the side table
 *     layout, stats_text, partition_by, time, utf8   texts, no I/O
 *
 * Always  L1 a writing transaction claims its snapshot first and reads afterwards: from then on
 *            nobody else can commit one
 *         L2 every claim that is committed has its row in ducklake_snapshot_changes
 *         L3 every change of tables or columns raises schema_version and has its row in
 *            ducklake_schema_versions (except namespaces, as the extension does)
 */
#ifndef MP_LAKE_DUCKLAKE_PRIV_H
#define MP_LAKE_DUCKLAKE_PRIV_H

#include "base/arena.h"
#include "base/buf.h"
#include "lake/ducklake/db.h"
#include "lake/ducklake/ducklake.h"

/* A table with what the driver needs beside the front door's view. */
struct mp_dl_table {
    struct mp_lake_table view; /* first: the front door's pointer is this one's */
    struct mp_arena arena;     /* all texts and arrays */
    struct mp_dl_table *next;
    int64_t schema_version; /* no change of tables or columns since: columns are as in view */
    int64_t partition_id;   /* of the live spec; -1: none */
    struct mp_str prefix;   /* schema path + table path below data_path, with its '/' */
    bool hive;              /* partition directories, else one flat directory */
    bool settled;           /* our append has left table statistics as they shall be */
    const struct mp_str *transform_names; /* of the spec, as directories are named */
    int64_t sort_id;                      /* of the live sort spec; -1: none */
};

/* What this process last wrote of a partition: the expected value of the next swap. */
struct mp_dl_claim {
    int32_t partition;
    int64_t next, epoch;
};

struct mp_ducklake {
    struct mp_lake lake; /* first */
    const struct mp_env *env;
    struct mp_db *db;
    struct mp_arena texts;   /* copies of the options */
    struct mp_arena scratch; /* of one call */
    struct mp_arena lent;    /* uuids of the last positions call */
    struct mp_str directory; /* the process's, at open; for relative paths */
    struct mp_str data_path, schema, group, topic, author, version;
    uint32_t race_retries_max, race_ms_max;
    bool read_only;
    bool side; /* the side table is there; always, but for a lake that is only looked at */
    struct mp_dl_table *tables; /* the last resolve of each name */
    struct mp_dl_claim *claims; /* ascending partitions */
    uint32_t claim_count, claim_room;
};

/* --- ducklake.c --- */

/* A lake that is not connected; mp_dl_found is the rest of open. Closed as any lake is. */
enum mp_code mp_dl_new(const struct mp_ducklake_options *options, const struct mp_env *env,
                       struct mp_err *err, struct mp_ducklake **ret);

/* --- tx.c --- */

/* The snapshot a transaction has claimed. Counters are raised by the work and written at its end.
 */
struct mp_dl_snapshot {
    int64_t id, schema_version, next_catalog, next_file;
};

/* The work of one attempt: begins the transaction and leaves it open with every answer read.
 * Not keeping it (*ret_keep false, true before) rolls back and is a success. Run again from its
 * start after a race, so it keeps nothing from the attempt before. */
typedef enum mp_code mp_dl_work(struct mp_ducklake *lake, void *context, struct mp_err *err,
                                bool *ret_keep);
enum mp_code mp_dl_transact(struct mp_ducklake *lake, mp_dl_work *work, void *context,
                            struct mp_err *err);

/* Queues the claim (L1) of a snapshot with `files` new file ids; gives its number. */
uint32_t mp_dl_snapshot_send(struct mp_ducklake *lake, uint32_t files);
/* Reads it after sync. next_file is the first of the new ids. */
enum mp_code mp_dl_snapshot_read(struct mp_ducklake *lake, uint32_t number, uint32_t files,
                                 struct mp_err *err, struct mp_dl_snapshot *ret);
/* Queues the claimed row's new counters; after changes of tables or columns only. */
void mp_dl_counters_send(struct mp_ducklake *lake, const struct mp_dl_snapshot *snapshot);
/* Queues the row of ducklake_snapshot_changes (L2). extra: JSON, empty: NULL. */
void mp_dl_changes_send(struct mp_ducklake *lake, int64_t snapshot, struct mp_str changes,
                        struct mp_str message, struct mp_str extra);

/* --- ddl.c --- */

/* Makes the empty lake and the side table where they are missing, checks version, encryption and
 * data path (lake->data_path may be empty then and is filled), makes the namespace. */
enum mp_code mp_dl_found(struct mp_ducklake *lake, struct mp_err *err);
/* Makes the namespace where it is missing, in a snapshot of its own. */
enum mp_code mp_dl_namespace_ensure(struct mp_ducklake *lake, struct mp_err *err);

/* --- table.c --- */

/* Reads the table in the open transaction. MP_NOT_FOUND: no such table. Gives an owned table. */
enum mp_code mp_dl_table_read(struct mp_ducklake *lake, struct mp_str name, struct mp_err *err,
                              struct mp_dl_table **ret);
/* The same in a transaction of its own. */
enum mp_code mp_dl_table_now(struct mp_ducklake *lake, struct mp_str name, struct mp_err *err,
                             struct mp_dl_table **ret);
void mp_dl_table_free(struct mp_dl_table *table);
/* Lends the table, in place of what was lent for its name before. Takes it. */
const struct mp_lake_table *mp_dl_table_keep(struct mp_ducklake *lake, struct mp_dl_table **table);
/* Live column of this name, ASCII case aside; NULL: none. */
const struct mp_live_column *mp_dl_column(const struct mp_schema *schema, struct mp_str name);
/* The namespace: live schema row. MP_NOT_FOUND: none. */
struct mp_dl_namespace {
    int64_t id;
    struct mp_str name; /* as it is stored */
    struct mp_str path; /* below data_path */
};
enum mp_code mp_dl_namespace_read(struct mp_ducklake *lake, struct mp_arena *arena,
                                  struct mp_err *err, struct mp_dl_namespace *ret);
enum mp_code mp_dl_resolve(struct mp_lake *lake, struct mp_str table, struct mp_err *err,
                           const struct mp_lake_table **ret);

/* --- evolve.c, append.c, offsets.c: the driver's functions --- */

enum mp_code mp_dl_evolve(struct mp_lake *lake, struct mp_str table,
                          const struct mp_lake_evolution *evolution,
                          const struct mp_lake_create *create, struct mp_err *err,
                          const struct mp_lake_table **ret);
/* Queues data_inlining_row_limit 0 for the table; force: over another value too. */
void mp_dl_inlining_off_send(struct mp_ducklake *lake, int64_t table_id, bool force);

enum mp_code mp_dl_append(struct mp_lake *lake, const struct mp_lake_commit *commit,
                          struct mp_err *err, struct mp_lake_result *ret);

enum mp_code mp_dl_positions(struct mp_lake *lake, struct mp_lake_position *positions,
                             uint32_t count, struct mp_err *err);
enum mp_code mp_dl_topics(struct mp_lake *lake, void (*visit)(void *self, struct mp_str topic),
                          void *visit_self, struct mp_err *err);
enum mp_code mp_dl_claim(struct mp_lake *lake, const struct mp_lake_claim *claims, uint32_t count,
                         struct mp_err *err);
/* Queues the compare-and-swap of all ranges; gives its number. table may be NULL (offsets only,
 * where snapshot is not looked at). */
uint32_t mp_dl_swap_send(struct mp_ducklake *lake, const struct mp_lake_range *ranges,
                         uint32_t count, const struct mp_dl_table *table);
/* What fewer swapped rows than ranges mean: reads the rows in the open transaction.
 * MP_OK: this commit had landed before, ret_snapshot is its snapshot; else MP_FENCED. */
enum mp_code mp_dl_swap_settle(struct mp_ducklake *lake, const struct mp_lake_range *ranges,
                               uint32_t count, struct mp_err *err, int64_t *ret_snapshot);
/* Remembers what was committed. */
void mp_dl_swap_done(struct mp_ducklake *lake, const struct mp_lake_range *ranges, uint32_t count);

#endif
