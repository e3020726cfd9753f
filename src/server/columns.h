/* server/columns.h - the tree of a table's columns: rules, ids, look-up. Pure.
 *
 * A tree is an array of struct mp_wire_column with their children. Types in it are lower case
 * once it has been checked.
 */
#ifndef MP_SERVER_COLUMNS_H
#define MP_SERVER_COLUMNS_H

#include "lake/hoglake/wire.h"
#include "server/types.h"

enum { MP_COLUMNS_MAX = 10000, MP_COLUMN_DEPTH_MAX = 8 };

struct mp_columns {
    struct mp_wire_column *items;
    uint32_t count;
};

struct mp_columns_check {
    struct mp_arena *arena;
    bool added;       /* for add_column: no node may be required, but a map's key */
    bool no_comments; /* refuse comments */
    uint32_t depth;   /* of the parent the columns hang on; 0: they are the table's own */
    uint32_t nodes;   /* counted; starts with those that are there already */
};

/* Checks definitions and brings their types to canonical form. MP_BAD_DATA: 422. */
enum mp_code mp_columns_check(struct mp_columns_check *check, struct mp_columns columns,
                              const char *prefix, struct mp_err *err);
/* The rules of type_params. top: the column is no other's child. */
enum mp_code mp_column_params_check(const struct mp_wire_column *column, enum mp_hog_type type,
                                    bool top, const char *path, struct mp_err *err);
/* Gives field ids, depth first, parent before children, and ordinals from first_ordinal on. */
void mp_columns_assign(struct mp_columns columns, int64_t first_ordinal, int64_t *next_field_id);
uint32_t mp_columns_nodes(struct mp_columns columns);

struct mp_column_place {
    struct mp_wire_column *column;
    struct mp_wire_column *parent; /* NULL: a column of the table */
    enum mp_hog_type type;
    bool repeated; /* below a list or a map */
    uint32_t depth;
    const char *path; /* dotted */
};

/* By field id. False: there is none. path needs the arena. */
bool mp_columns_find(struct mp_arena *arena, struct mp_columns columns, int64_t field_id,
                     struct mp_column_place *ret);
/* By a dotted path through structs. MP_BAD_DATA: there is none, or it leads into a list or map. */
enum mp_code mp_columns_path(struct mp_arena *arena, struct mp_columns columns, struct mp_str path,
                             struct mp_err *err, struct mp_column_place *ret);
/* Calls visit for every node, parents first. */
void mp_columns_walk(struct mp_arena *arena, struct mp_columns columns,
                     void (*visit)(void *self, const struct mp_column_place *place), void *self);

/* How many can have statistics: no containers, no variants. */
uint32_t mp_columns_leaves(struct mp_arena *arena, struct mp_columns columns);

enum mp_hog_type mp_column_type(const struct mp_wire_column *column);
/* scale of a decimal; 0 where it is not said. */
int64_t mp_column_scale(const struct mp_wire_column *column);
/* precision of a decimal; 38 where it is not said. */
int64_t mp_column_precision(const struct mp_wire_column *column);

/* Checks a variant's declaration (type_params.shredding). (server/variant.c) */
enum mp_code mp_variant_check(const json_t *shredding, const char *column, struct mp_err *err);

/* --- layouts: partition specs and sort orders (server/layout.c) --- */

/* Checks fields against the tree and brings transforms to lower case. */
enum mp_code mp_partition_fields_check(struct mp_arena *arena, struct mp_columns columns,
                                       struct mp_wire_partition_field *fields, uint32_t count,
                                       struct mp_err *err);
/* A partition value for people, as JSON: the calendar unit that a temporal transform counted
 * ("2026", "2026-09", "2026-09-05", "2026-09-05T01:00"), a bucket's number, else the value's text.
 * null where it is none. type: of the source. */
void mp_partition_value_print(struct mp_buf *buf, struct mp_str transform, enum mp_hog_type type,
                              struct mp_str raw);
enum mp_code mp_sort_fields_check(struct mp_arena *arena, struct mp_columns columns,
                                  struct mp_wire_sort_field *fields, uint32_t count,
                                  struct mp_err *err);

#endif
