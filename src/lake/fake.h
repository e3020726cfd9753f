/* lake/fake.h - a lake in memory, for tests of what stands above it.
 *
 * The catalog is the world: tables, offsets, commits. Handles are processes: each has its own
 * claims, and a crash is closing one and opening another. Behaves as the ducklake driver does
 * (compare-and-swap on next and epoch, columns checked by id and type, ASCII case folded), but
 * reads no file and knows no SQL.
 *
 * Life     catalog_new -> (open -> ... -> mp_lake_close)* -> catalog_free
 * Memory   everything a test can look at stays until catalog_free; a table that was lent goes when
 *          lake.h says so, so that a look at it afterwards is found.
 * Threads  one at a time, over all handles of a catalog.
 */
#ifndef MP_LAKE_FAKE_H
#define MP_LAKE_FAKE_H

#include "lake/lake.h"

struct mp_fake_catalog;

enum mp_fake_call {
    MP_FAKE_PING,
    MP_FAKE_RESOLVE,
    MP_FAKE_EVOLVE,
    MP_FAKE_APPEND,
    MP_FAKE_POSITIONS,
    MP_FAKE_CLAIM,
    MP_FAKE_PUBLISHED,
    MP_FAKE_CALLS
};

/* A commit that is in the lake: all of its files and ranges. */
struct mp_fake_commit {
    int64_t snapshot;                     /* -1: offsets only */
    const struct mp_lake_append *appends; /* table: a copy with names, id and uuid, no schema */
    uint32_t append_count;
    const struct mp_lake_range *ranges;
    uint32_t range_count;
    struct mp_str trigger;
    struct mp_str key; /* empty: by a handle that keeps the offsets */
};

struct mp_fake_catalog *mp_fake_catalog_new(void);
void mp_fake_catalog_free(struct mp_fake_catalog *catalog);
/* A process's handle. Borrows catalog and env until close. */
struct mp_lake *mp_fake_lake_open(struct mp_fake_catalog *catalog, const struct mp_env *env);

/* The same as a lake that keeps no offsets: commits land once under their key, names that differ in
 * case are two. A process has handles of one kind only. */
struct mp_lake *mp_fake_keyed_lake_open(struct mp_fake_catalog *catalog, const struct mp_env *env);
/* What was published until now is not known by its key any more. */
void mp_fake_forget_keys(struct mp_fake_catalog *catalog);

/* The nth call of this kind from now (1: the next), of any handle, fails with code. landed: it is
 * done all the same and only its answer is lost (APPEND, EVOLVE and CLAIM). Up to 64 at a time. */
void mp_fake_fail(struct mp_fake_catalog *catalog, enum mp_fake_call call, uint32_t nth,
                  enum mp_code code, bool landed);
/* Calls so far. */
uint32_t mp_fake_calls(const struct mp_fake_catalog *catalog, enum mp_fake_call call);

uint32_t mp_fake_commit_count(const struct mp_fake_catalog *catalog);
const struct mp_fake_commit *mp_fake_commit(const struct mp_fake_catalog *catalog, uint32_t i);
/* Next offset of a partition; -1: no row. */
int64_t mp_fake_next(const struct mp_fake_catalog *catalog, int32_t partition);

/* What somebody else does to the lake meanwhile. */
void mp_fake_steal(struct mp_fake_catalog *catalog, int32_t partition); /* another owner: fences */
void mp_fake_drop(struct mp_fake_catalog *catalog, struct mp_str table);
void mp_fake_add_column(struct mp_fake_catalog *catalog, struct mp_str table, struct mp_str name,
                        struct mp_type type);
void mp_fake_drop_column(struct mp_fake_catalog *catalog, struct mp_str table, struct mp_str name);
/* The column may not be NULL from now on. */
void mp_fake_set_not_null(struct mp_fake_catalog *catalog, struct mp_str table, struct mp_str name);
/* No table gets a new column of this name from now on; one name at a time. Borrowed. */
void mp_fake_refuse_column(struct mp_fake_catalog *catalog, struct mp_str name);
/* False: no BIGINT fits a DOUBLE from now on. */
void mp_fake_allow_widening(struct mp_fake_catalog *catalog, bool allowed);

#endif
