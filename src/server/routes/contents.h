/* server/routes/contents.h - what is in a table, as it is printed: files, deletion vectors,
 * statistics. For the routes that list them.
 */
#ifndef MP_SERVER_ROUTES_CONTENTS_H
#define MP_SERVER_ROUTES_CONTENTS_H

#include "server/pages.h"
#include "server/routes/routes.h"
#include "server/tables.h"

/* The columns that a statement about data files f begins with. */
#define MP_FILE_COLUMNS                                                                            \
    "f.data_file_id, f.path, f.record_count, f.file_size_bytes, f.footer_size, f.row_id_start,"    \
    " f.stats_state, f.spec_id, f.partition_values, f.explicit_row_ids, f.begin_snapshot"
enum { MP_FILE_ID = 0, MP_FILE_STATS_STATE = 6, MP_FILE_COLUMN_COUNT = 11 };
#define MP_DELETE_COLUMNS                                                                          \
    "d.delete_file_id, d.path, d.delete_count, d.file_size_bytes, d.begin_snapshot"
enum { MP_DELETE_COLUMN_COUNT = 5 };
/* The row is there at snapshot $3. */
#define MP_VISIBLE(row)                                                                            \
    row ".begin_snapshot <= $3 AND (" row ".end_snapshot IS NULL OR $3 < " row ".end_snapshot)"
/* A page of data files, see pages.h; more: columns, joins: behind the files. */
#define MP_FILE_PAGE(more, joins)                                                                  \
    "SELECT " MP_FILE_COLUMNS more " FROM " MP_PAGES_ROWS_OF("hog_data_file", "f", "data_file_id") \
        joins " ORDER BY p.n"
#define MP_FILE_STATS                                                                              \
    ", (SELECT s.stats FROM hog_file_stats s"                                                      \
    "  WHERE s.catalog_id = $1 AND s.data_file_id = p.id)"

/* Opens the object and leaves it open. */
void mp_file_print(struct mp_buf *out, const struct mp_sql *sql, uint32_t number, uint32_t row);
/* column: where MP_DELETE_COLUMNS begin. */
void mp_delete_print(struct mp_buf *out, const struct mp_sql *sql, uint32_t number, uint32_t row,
                     uint32_t column, int64_t data_file_id);
/* A bound as hog_file_stats keeps it. */
void mp_bound_member(struct mp_buf *out, const char *name, struct mp_arena *scratch,
                     const struct mp_column_place *place, const json_t *text);
/* How many rows a page of files has that come with the statistics of so many columns. */
static inline uint32_t mp_stats_page_rows(uint32_t columns)
{
    return columns < 4000 ? 4000 / (4 + columns) + 1 : 1;
}

struct mp_stats_fields {
    struct mp_columns columns;
    const int64_t *wanted; /* NULL: all */
    uint32_t wanted_count;
};

/* The array of what a row of hog_file_stats says of the visible columns; full: as in FileStats. */
void mp_stats_print(struct mp_buf *out, const struct mp_stats_fields *fields,
                    struct mp_arena *scratch, struct mp_str text, bool full);

#endif
