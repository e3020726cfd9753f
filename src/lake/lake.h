/* lake/lake.h - the lakehouse catalog: tables, their columns, and commits of finished files.
 *
 * "These files, this schema, these source ranges: commit." A lake knows nothing of Kafka clients
 * or of the loop. Drivers: ducklake (PostgreSQL or SQLite), hoglake, fake (tests).
 *
 * Life     open -> positions, claim -> (resolve, evolve?, object_key*, append)* -> close
 * Order    columns come before files: new columns and widenings are committed by evolve, which
 *          reads the ids back; then files are encoded with those ids; then append checks, under
 *          its claim on the catalog, that ids, types and partition spec are still live.
 * Offsets  where `offsets_in_lake`, the lake is the book of record: one row per (group, topic,
 *          partition) with next offset and owner epoch, changed in the same transaction as the
 *          files, compare-and-swap on what this process last wrote. MP_FENCED: somebody else did.
 *          Elsewhere the source keeps the offsets, and a commit carries a key under which it
 *          lands at most once: the caller writes key and ranges down (the plan) before append,
 *          so that whoever comes after a crash can settle them under the same key.
 * Retry    a driver repeats the bounded races of its protocol itself (serialisation failures,
 *          primary key races, a lost COMMIT answer, which it settles by reading the side table).
 *          Outages come up as retriable errors; the same append may then be called again.
 * Threads  one at a time.
 */
#ifndef MP_LAKE_LAKE_H
#define MP_LAKE_LAKE_H

#include "base/buf.h"
#include "base/env.h"
#include "base/err.h"
#include "column/schema.h"
#include "parquet/stats.h"

/* A table as it is now. Lent until the next resolve or evolve of the same table, or close. */
struct mp_lake_table {
    struct mp_str schema_name, name;
    struct mp_str uuid; /* another one after drop and create */
    int64_t id;
    int64_t snapshot; /* the state was read at this snapshot */
    struct mp_schema schema;
    struct mp_str warning; /* by evolve: the live partition spec is not the setting's; else empty */
};

struct mp_lake_new_column {
    struct mp_str name;
    struct mp_type type;
};

/* What a batch needs from the table before it can be encoded. */
struct mp_lake_evolution {
    const struct mp_lake_new_column *add; /* in order; one that is live already is left alone */
    uint32_t add_count;
    const int32_t *widen; /* field ids of BIGINT columns that want to be DOUBLE */
    uint32_t widen_count;
    bool *ret_widened; /* [widen_count]: false where a live value may not fit 2^53 exactly */
    const struct mp_promotion *promote; /* asked for, not promised: look at what came back */
    uint32_t promote_count;
    const int32_t *relax; /* field ids of NOT NULL columns that want to take NULL; not promised */
    uint32_t relax_count;
    bool *ret_refused; /* [add_count], false before: set where the destination will not have the
                        * column, whatever the batch holds; NULL: that is an error */
};

/* How a table is made when it is not there. */
struct mp_lake_create {
    struct mp_str partition_by;   /* in the destination's own grammar; empty: none */
    const struct mp_str *sort_by; /* column names, ascending, nulls last */
    uint32_t sort_by_count;
};

struct mp_lake_file {
    struct mp_str key; /* from object_key */
    uint64_t rows, bytes;
    uint32_t footer_bytes;
    const struct mp_column_stats *stats;
    uint32_t stats_count;
    const struct mp_partition_value *partition; /* [schema.partition_count] */
};

/* Files of one table. `table` is what they were encoded against. */
struct mp_lake_append {
    const struct mp_lake_table *table;
    const struct mp_lake_file *files;
    uint32_t file_count;
};

/* A source range: every offset in [first, next) is settled by this commit. */
struct mp_lake_range {
    int32_t partition;
    int64_t first, next;
    int64_t lowest, highest; /* offsets of its first and last record with a value; -1: none */
    uint64_t records, rows, skipped, quarantined;
};

struct mp_lake_commit {
    const struct mp_lake_append *appends; /* the main table, with files or not; the quarantine */
    uint32_t append_count;
    const struct mp_lake_range *ranges; /* ascending partitions */
    uint32_t range_count;
    struct mp_str trigger; /* "size", "time" or "final" */
    struct mp_str key;     /* the plan's; empty where offsets_in_lake */
    uint64_t arrow_bytes;  /* of the main table's batch, for the commit's message */
};

struct mp_lake_result {
    int64_t snapshot;       /* the new snapshot's id; -1: none was needed (offsets only) */
    bool already_published; /* an earlier attempt had landed */
    bool replayed;          /* sent more than once before the outcome was known */
    const char *orphaned;   /* also on a fault: why no table will ever name these files (the value
                             * of a metric's label); NULL: they may still be, or are, in use */
};

#define MP_LAKE_KEY_SIZE 37 /* a UUID's text and its end */

/* What an object's key is made of. */
struct mp_lake_place {
    const struct mp_partition_value *partition; /* [schema.partition_count] */
    struct mp_str key;                          /* the commit's; empty where offsets_in_lake */
    uint32_t index;                             /* of the file among its table's in this commit */
};

/* One row of the offset side table. */
struct mp_lake_position {
    int32_t partition;
    int64_t next;             /* next offset; -1: the lake has no row */
    int64_t epoch;            /* owner epoch; 0: no row */
    struct mp_str table_uuid; /* the table it was last written for; lent until the next call */
};

/* A claim of one partition: changes the row from what was read to (next, epoch + 1). */
struct mp_lake_claim {
    int32_t partition;
    int64_t read_next, read_epoch; /* as positions gave them; -1 and 0: insert */
    int64_t next;
};

struct mp_lake_driver;

struct mp_lake {
    const struct mp_lake_driver *driver;
};

struct mp_lake_driver {
    const char *name;
    bool offsets_in_lake;
    bool fold_case; /* names that differ in ASCII case only are one column */
    bool promotes;  /* small integers may become INT64, FLOAT may become DOUBLE */
    /* Whether the destination can have a column of this name at all. */
    bool (*name_ok)(struct mp_str name);
    /* Where objects go, "s3://bucket/prefix/" or "/directory/"; the store is rooted here. */
    struct mp_str (*data_path)(struct mp_lake *lake);
    /* One cheap round trip: is the catalog there? */
    enum mp_code (*ping)(struct mp_lake *lake, struct mp_err *err);
    /* MP_NOT_FOUND: there is no such table. */
    enum mp_code (*resolve)(struct mp_lake *lake, struct mp_str table, struct mp_err *err,
                            const struct mp_lake_table **ret);
    /* What is kept of tables is read again before resolve lends it. NULL: nothing is kept. */
    void (*refresh)(struct mp_lake *lake);
    /* Creates the table (create is only looked at then), adds columns, widens; all in DDL
     * transactions of their own, then reads the table back. Nothing to do: the same as resolve.
     * A live column of the same name and another type is left alone: look at what came back. */
    enum mp_code (*evolve)(struct mp_lake *lake, struct mp_str table,
                           const struct mp_lake_evolution *evolution,
                           const struct mp_lake_create *create, struct mp_err *err,
                           const struct mp_lake_table **ret);
    /* Appends a new object key for one file to ret: unique, in the table's layout for this place.
     * Needs no connection. */
    void (*object_key)(struct mp_lake *lake, const struct mp_lake_table *table,
                       const struct mp_lake_place *place, struct mp_buf *ret);
    /* The key of a commit of these ranges to this table: the same for the same table and ranges.
     * NULL where offsets_in_lake, as is the next. Needs no connection. */
    void (*commit_key)(struct mp_lake *lake, const struct mp_lake_table *table,
                       const struct mp_lake_range *ranges, uint32_t count,
                       char ret[MP_LAKE_KEY_SIZE]);
    /* Whether a commit with this key has landed. False proves nothing while a request may still
     * be under way. */
    enum mp_code (*published)(struct mp_lake *lake, struct mp_str key, struct mp_err *err,
                              bool *ret);
    /* Commits files and ranges in one transaction. No file at all: only the offsets move, and no
     * snapshot is made. MP_FENCED, MP_CHANGED (table, column or partition spec): nothing was
     * done, and the same commit will never succeed. Called again after an unknown outcome with
     * the same commit and key, it lands at most once. */
    enum mp_code (*append)(struct mp_lake *lake, const struct mp_lake_commit *commit,
                           struct mp_err *err, struct mp_lake_result *ret);
    /* Reads the side table's rows of the given partitions (partition is set by the caller). This
     * and what follows: NULL where not offsets_in_lake. */
    enum mp_code (*positions)(struct mp_lake *lake, struct mp_lake_position *positions,
                              uint32_t count, struct mp_err *err);
    /* Calls visit with every topic that this group has a position of. */
    enum mp_code (*topics)(struct mp_lake *lake, void (*visit)(void *self, struct mp_str topic),
                           void *self, struct mp_err *err);
    /* Takes partitions over. MP_CONFLICT: a row is not as it was read; read again. The driver
     * remembers next and epoch of what it claimed, for the compare-and-swap of append. */
    enum mp_code (*claim)(struct mp_lake *lake, const struct mp_lake_claim *claims, uint32_t count,
                          struct mp_err *err);
    /* For when the source has lost the offsets of a lake that keeps none: whether the table has
     * rows at all, and by visit, for each partition of this source that the newest commits'
     * messages name, the last offset they name. MP_NOT_FOUND: there is no such table. NULL where
     * offsets_in_lake; elsewhere NULL: the lake cannot tell. */
    enum mp_code (*written)(struct mp_lake *lake, struct mp_str table,
                            void (*visit)(void *self, int32_t partition, int64_t last), void *self,
                            struct mp_err *err, bool *ret_rows);
    void (*close)(struct mp_lake *lake);
};

static inline void mp_lake_close(struct mp_lake *lake)
{
    if (lake)
        lake->driver->close(lake);
}

#endif
