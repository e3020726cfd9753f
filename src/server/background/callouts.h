/* server/background/callouts.h - where the catalog's tasks look into Parquet files.
 *
 * The SQL side (which files, what becomes of their rows) is the tasks'; what is in a file is
 * behind these doors (footers.c, compact.c).
 *
 * Errors  MP_BAD_DATA, MP_NOT_FOUND: the object is no Parquet file that could be read, or is not
 *         there; no later try will mend it. Any other: the store did not answer, try again later.
 */
#ifndef MP_SERVER_BACKGROUND_CALLOUTS_H
#define MP_SERVER_BACKGROUND_CALLOUTS_H

#include "parquet/footer.h"
#include "server/background/background.h"
#include "server/columns.h"

/* --- footers (footers.c) --- */

struct mp_footer_request {
    struct mp_str path;
    int64_t file_size_bytes;
    bool has_footer_size; /* a hint: how much to read at once */
    int64_t footer_size;
    struct mp_columns columns; /* of the table, to tell types; not looked at by mp_footer_read */
};

/* What a footer tells the catalog. */
struct mp_footer {
    struct mp_wire_stats *stats; /* by field id, ascending; of live leaves only; in the arena */
    uint32_t stats_count;
    int64_t *split_offsets; /* start of each row group; none where they make no sense */
    uint32_t split_count;
    bool missing_field_ids; /* a leaf has none */
};

/* Reads a part of the object, all of it or nothing. */
enum mp_code mp_object_read(struct mp_objects *objects, struct mp_str path, uint64_t offset,
                            size_t size, char *ret, struct mp_err *err);
/* Reads the footer from the end of the object. */
enum mp_code mp_footer_read(struct mp_objects *objects, struct mp_arena *arena,
                            const struct mp_footer_request *request, struct mp_err *err,
                            const struct mp_parquet_footer **ret);
/* Turns it into what the catalog keeps. Bounds are left out where the file's type does not fit the
 * column's. */
void mp_footer_tell(struct mp_arena *arena, const struct mp_parquet_footer *footer,
                    struct mp_columns columns, struct mp_footer *ret);
/* Both. */
enum mp_code mp_callout_footer(struct mp_objects *objects, struct mp_arena *arena,
                               const struct mp_footer_request *request, struct mp_err *err,
                               struct mp_footer *ret);

/* --- compaction (compact.c) --- */

struct mp_compaction_result {
    int64_t groups_compacted, files_in, files_out, bytes_in, bytes_out, skipped_conflicts,
        dv_superseded, unconvertible_schema, invalid_data, heap_budget_exceeded, failed_groups;
};

/* Compacts at most `groups` groups of the catalog. */
enum mp_code mp_callout_compact(struct mp_call *call, struct mp_str catalog, int64_t groups,
                                struct mp_compaction_result *ret);

#endif
