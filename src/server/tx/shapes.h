/* server/tx/shapes.h - what a commit has to know of a table, kept between commits.
 *
 * A shape is good while its catalog's schema_version has not moved: every change of any table's
 * definition moves it, and it is read under the lock with every commit.
 *
 * Threads  any; a shape that was got is constant and lives until it is put back.
 */
#ifndef MP_SERVER_TX_SHAPES_H
#define MP_SERVER_TX_SHAPES_H

#include "server/tx/commit.h"

enum mp_shape_state { MP_SHAPE_LIVE, MP_SHAPE_DROPPED, MP_SHAPE_UNKNOWN };

struct mp_shape {
    enum mp_shape_state state; /* only live ones are kept */
    struct mp_str namespace_name, name, uuid;
    int64_t catalog_id, schema_version, table_id;
    int64_t last_ddl; /* snapshot of the last alter or drop; 0: none */
    int64_t dropped_snapshot;
    struct mp_files_target target;
    struct mp_arena arena;
    uint32_t users; /* the cache counts too */
    struct mp_shape *next;
};

struct mp_shapes;

struct mp_shapes *mp_shapes_new(void);
void mp_shapes_free(struct mp_shapes *shapes);
/* Gives a shape that is good for the transaction, read with its connection where none is kept.
 * Only names that the namespace and table have in the request. */
enum mp_code mp_shapes_get(struct mp_shapes *shapes, struct mp_tx *tx, int64_t head,
                           struct mp_str namespace_name, struct mp_str table,
                           struct mp_shape **ret);
/* No-op on NULL. */
void mp_shapes_put(struct mp_shapes *shapes, struct mp_shape **shape);

#endif
