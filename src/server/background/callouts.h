/* server/background/callouts.h - where the catalog's tasks need to look into Parquet files.
 *
 * The SQL side (which files, what becomes of their rows) is the tasks'; what is in a file is
 * behind these two doors.
 */
#ifndef MP_SERVER_BACKGROUND_CALLOUTS_H
#define MP_SERVER_BACKGROUND_CALLOUTS_H

#include "server/background/background.h"
#include "server/columns.h"

/* What a footer tells. */
struct mp_footer {
    struct mp_wire_stats *stats; /* by field id, ascending; in the arena */
    uint32_t stats_count;
    int64_t *split_offsets; /* start of each row group */
    uint32_t split_count;
    bool missing_field_ids; /* a leaf has none */
};

struct mp_footer_request {
    struct mp_str path;
    int64_t file_size_bytes;
    bool has_footer_size;
    int64_t footer_size;
    struct mp_columns columns; /* of the table, to tell types */
};

/* MP_BAD_DATA: the object is no Parquet file that could be read, now or later. MP_IO, MP_TIMEOUT:
 * try again later. MP_NOT_FOUND: this program cannot read footers. */
enum mp_code mp_callout_footer(struct mp_objects *objects, struct mp_arena *arena,
                               const struct mp_footer_request *request, struct mp_err *err,
                               struct mp_footer *ret);

struct mp_compaction_result {
    int64_t groups_compacted, files_in, files_out, bytes_in, bytes_out, skipped_conflicts,
        dv_superseded, unconvertible_schema, invalid_data, heap_budget_exceeded, failed_groups;
};

/* Compacts at most `groups` groups of the catalog. */
enum mp_code mp_callout_compact(struct mp_call *call, struct mp_str catalog, int64_t groups,
                                struct mp_compaction_result *ret);

#endif
