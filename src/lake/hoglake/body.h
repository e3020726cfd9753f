/* lake/hoglake/body.h - what the hoglake destination says of a commit: its key, its message, where
 * objects go, what columns are called, and the request itself.
 *
 * Pure: no I/O, no clock (object keys take their chance from the environment given). The same
 * values give the same bytes, so that a request can be sent again as it was.
 *
 * After  the millpond sheet, 11.4 to 11.8 and 12.3 to 12.4; the hoglake sheet, 8, 15.2, 23 and 24.
 */
#ifndef MP_LAKE_HOGLAKE_BODY_H
#define MP_LAKE_HOGLAKE_BODY_H

#include "base/buf.h"
#include "base/env.h"
#include "lake/hoglake/wire.h"
#include "lake/lake.h"

/* --- names --- */

/* Whether a payload field may become a column: a letter or '_', then letters, digits and '_', 128
 * bytes at most, and not beginning with "_hog" in any case, which the catalog keeps for itself. */
bool mp_hog_name_ok(struct mp_str name);

/* The catalog's name of a type: "long", "decimal". NULL: it has no such type (HUGEINT, and those
 * that lie otherwise in its files), or there is none (NONE, OTHER). */
const char *mp_hog_type_name(struct mp_type type);
/* The other way. params is the JSON text of type_params, which only decimals need; absent where
 * data is NULL. False, and MP_TYPE_OTHER in ret: a type that cannot be written (list, struct, map,
 * variant, a name or parameters unknown here); its values are rescued. */
bool mp_hog_type_of_name(struct mp_str name, struct mp_str params, struct mp_type *ret);
/* A new nullable column as a creation or an add_column states it; type has a name. Texts lie in
 * arena, except name. */
struct mp_wire_column mp_hog_column(struct mp_arena *arena, struct mp_str name,
                                    struct mp_type type);

/* --- partition specs --- */

/* A field of a live spec as schemas have it. False: a transform or number unknown here. Whether it
 * goes with the column's type is mp_transform_fits's to say. */
bool mp_hog_partition_read(const struct mp_wire_partition_field *field,
                           struct mp_partition_field *ret);
/* The other way; texts are constants. */
struct mp_wire_partition_field mp_hog_partition_field(const struct mp_partition_field *field);
/* The spec that HOGLAKE_PARTITION_BY asks for of a table with these columns, in arena.
 * MP_BAD_CONFIG: the grammar, a column that is not there, a transform that its type has not. */
enum mp_code mp_hog_partition_wanted(struct mp_arena *arena, struct mp_str setting,
                                     const struct mp_schema *schema, struct mp_err *err,
                                     struct mp_partition_field **ret, uint32_t *ret_count);
/* Adds a spec in the setting's grammar: "team_id, day(at), bucket(id, 16)"; without fields "none".
 */
void mp_hog_partition_print(const struct mp_schema *schema, const struct mp_partition_field *fields,
                            uint32_t count, struct mp_buf *ret);

/* --- the commit --- */

/* The key under which these ranges of topic land at most once in the table: a UUID version 5 over
 * the names and, per range with a record that has a value, its first and last such offset. Ranges
 * ascend by partition. */
void mp_hog_key(struct mp_str catalog, struct mp_str namespace_name, struct mp_str table,
                struct mp_str uuid, struct mp_str topic, const struct mp_lake_range *ranges,
                uint32_t count, char ret[MP_LAKE_KEY_SIZE]);

#define MP_HOG_MESSAGE_LINE_MAX 16384 /* bytes of its line of ranges */

/* Adds the message of a commit: a line of counts, of the first of the appends (the main table), and
 * a line of ranges where there are any. Ranges that do not fit are counted; of the topic, white
 * space and control characters become '_' and what is not UTF-8 U+FFFD. version is this program's.
 */
void mp_hog_message(const struct mp_lake_commit *commit, struct mp_str topic, struct mp_str version,
                    struct mp_str uuid, struct mp_buf *ret);

/* Adds a new object's key below the catalog's data path:
 * data/{namespace}/{table}/{commit's key}/{random UUID}-{index}.parquet. */
void mp_hog_object_key(struct mp_str namespace_name, struct mp_str table,
                       const struct mp_lake_place *place, const struct mp_env *env,
                       struct mp_buf *ret);

/* A prepared commit. Texts are UTF-8. */
struct mp_hog_body {
    const struct mp_lake_commit *commit; /* at least one file; its key is the request's */
    struct mp_str namespace_name;
    struct mp_str data_path; /* of the catalog, with '/' at its end or without */
    int64_t read_snapshot;   /* the tables were read at it */
    struct mp_str author, message;
};

/* Adds the request's body. Appends without files are left out. Of a file's columns those are
 * listed that lie in it. */
void mp_hog_body_print(const struct mp_hog_body *body, struct mp_buf *ret);

/* Adds a bound's bytes as an Iceberg single value. False, nothing added: there is none (no bounds,
 * or a text that was cut: it would be taken for a value of the column). */
bool mp_hog_bound(const struct mp_column_stats *stats, bool upper, struct mp_buf *ret);

#endif
