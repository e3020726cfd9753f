/* server/tables.h - a table with everything that defines it, read from and written to PostgreSQL.
 *
 * A definition is read at a snapshot, changed in memory, and written as the difference: rows that
 * changed are ended at the new snapshot and begin again there, rows that did not are untouched.
 */
#ifndef MP_SERVER_TABLES_H
#define MP_SERVER_TABLES_H

#include "server/columns.h"
#include "server/tx/tx.h"

struct mp_table {
    int64_t table_id, namespace_id;
    struct mp_str namespace_name, name, uuid, comment, properties;
    int64_t next_field_id;
    struct mp_columns columns;
    struct mp_wire_partition_spec partition; /* the live one; field_count 0: none */
    struct mp_wire_sort_spec sort;
    int64_t spec_id_max, sort_id_max;          /* ever given; 0: none */
    int64_t live_rows, live_files, live_bytes; /* at head */
};

/* Which snapshot a read looks at. */
struct mp_at {
    int64_t catalog_id, head, floor, schema_version;
    int64_t snapshot;
    bool pinned;
    struct mp_str data_path;
};

/* Reads the catalog and resolves ?snapshot and ?at_timestamp: 404, 422, 410. Begins a transaction,
 * which ends with the call: what is read afterwards is of the same moment, whatever expiry takes
 * away meanwhile. */
enum mp_code mp_at_read(struct mp_call *call, struct mp_at *ret);
/* The same at the head, whatever pins the query holds: for what has no time travel. */
enum mp_code mp_at_head(struct mp_call *call, struct mp_at *ret);
/* Finds a live namespace: 404. */
enum mp_code mp_namespace_find(struct mp_call *call, struct mp_sql *sql, int64_t catalog_id,
                               struct mp_str name, int64_t *ret);
/* Catalog, snapshot, live namespace and the table of that name at the snapshot, from the parts of
 * the path. Only ids, names and texts are filled; definition reads the rest. */
enum mp_code mp_table_find(struct mp_call *call, struct mp_at *ret_at, struct mp_table *ret);
/* The same at the head, whatever the query says. */
enum mp_code mp_table_find_head(struct mp_call *call, struct mp_at *ret_at, struct mp_table *ret);
/* Columns, partition spec and sort order at the snapshot. */
enum mp_code mp_table_definition(struct mp_call *call, struct mp_sql *sql, int64_t catalog_id,
                                 int64_t snapshot, struct mp_table *table);
/* Under the lock: the live table of that name with its definition. *ret_found false: none. */
enum mp_code mp_table_live(struct mp_tx *tx, int64_t namespace_id, struct mp_str name,
                           struct mp_table *ret, bool *ret_found);
/* Sums over the data files visible at the snapshot. */
enum mp_code mp_table_totals(struct mp_call *call, struct mp_sql *sql, int64_t catalog_id,
                             int64_t snapshot, int64_t table_id, struct mp_wire_table *ret);

/* Queues the rows of a table that is made at the snapshot; its ids are given already. */
void mp_table_create_send(struct mp_tx *tx, const struct mp_table *table, int64_t snapshot,
                          int64_t replaced_table_id);
/* Queues the difference. Both definitions are of the same table. */
void mp_table_alter_send(struct mp_tx *tx, const struct mp_table *before,
                         const struct mp_table *after, int64_t snapshot);
/* Queues the end of its version and definition; files are left for retirement. */
void mp_table_drop_send(struct mp_tx *tx, int64_t table_id, int64_t snapshot);

struct mp_wire_table mp_table_wire(const struct mp_table *table, int64_t read_snapshot);

struct mp_alter_promotion {
    int64_t field_id;
    enum mp_hog_type from, to;
};

/* Runs alter operations on the table in memory (server/alter.c): 400 and 422. What has to happen
 * outside the definition is noted. */
struct mp_alter_effects {
    bool adds_or_renames;                /* columns: refused while files lack field ids */
    struct mp_str new_name;              /* data NULL: not renamed */
    struct mp_alter_promotion *promoted; /* in their order */
    uint32_t promoted_count;
};
enum mp_code mp_alter_shape(struct mp_call *call, const json_t *ops);
enum mp_code mp_alter_apply(struct mp_call *call, const json_t *ops, struct mp_table *table,
                            struct mp_alter_effects *ret);
/* Reads properties of a body and checks them: 400, 422. Gives compact JSON text. */
enum mp_code mp_properties_read(struct mp_call *call, const json_t *object, struct mp_str *ret);

#endif
