/* lake/hoglake/wire.h - the shapes of the hoglake REST interface, as structs and as JSON.
 *
 * Shared by the catalog service and by the destination that writes to one: pure, no I/O, no
 * clock. Reading a request is strict (unknown members are refused, numbers are numbers), reading
 * an answer leaves unknown members alone; printing leaves out what is absent.
 *
 * Memory   structs lie in the arena given to read; texts are borrowed from the JSON value, which
 *          outlives them, or lie in the arena too.
 * Always   W1 no text in a struct holds a NUL byte
 *          W2 optional texts that are absent have data NULL
 */
#ifndef MP_LAKE_HOGLAKE_WIRE_H
#define MP_LAKE_HOGLAKE_WIRE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <jansson.h>

/* --- shapes --- */

/* A column as defined or as it is: field_id and ordinal are 0 in a definition. */
struct mp_wire_column {
    struct mp_str name, type;
    struct mp_str type_params; /* JSON text of the object; absent: none */
    struct mp_str comment;
    struct mp_wire_column *children;
    uint32_t child_count;
    bool has_children; /* the member was there, were it empty */
    bool nullable;
    int64_t field_id, ordinal;
};

struct mp_wire_partition_field {
    int64_t source_field_id;
    struct mp_str transform;
    bool has_param;
    int64_t param;
};

struct mp_wire_sort_field {
    int64_t source_field_id;
    struct mp_str direction, null_order;
};

struct mp_wire_partition_spec {
    int64_t spec_id;
    struct mp_wire_partition_field *fields;
    uint32_t field_count; /* 0: unpartitioned */
};

struct mp_wire_sort_spec {
    int64_t sort_id;
    struct mp_wire_sort_field *fields;
    uint32_t field_count; /* 0: unsorted */
};

struct mp_wire_table {
    struct mp_str name, namespace_name, uuid, comment;
    struct mp_str properties; /* JSON text of the object; absent: {} */
    struct mp_wire_column *columns;
    uint32_t column_count;
    struct mp_wire_partition_spec partition;
    struct mp_wire_sort_spec sort;
    int64_t read_snapshot_id;
    bool has_snapshot_id, has_totals;
    int64_t snapshot_id;
    int64_t record_count, file_count, file_size_bytes;
};

/* Statistics of one column of one file. Bounds are the raw bytes. */
struct mp_wire_stats {
    int64_t field_id, value_count, null_count, nan_count, size_bytes;
    struct mp_str lower, upper; /* data NULL: none */
    bool has_nan_count, has_size;
};

struct mp_wire_file {
    struct mp_str path;
    struct mp_str format; /* absent: parquet */
    int64_t record_count, file_size_bytes, footer_size;
    struct mp_wire_stats *stats;
    struct mp_str *partition_values; /* data NULL: SQL NULL */
    int64_t *split_offsets;
    uint32_t stats_count, partition_count, split_count;
    bool has_footer_size, has_stats, has_partition, has_splits;
};

struct mp_wire_append {
    struct mp_str namespace_name, table, expected_uuid;
    struct mp_wire_file *files;
    uint32_t file_count;
};

struct mp_wire_delete_file {
    int64_t data_file_id, delete_count, file_size_bytes;
    struct mp_str path, data_file_path;
};

struct mp_wire_delete {
    struct mp_str namespace_name, table, expected_uuid;
    struct mp_wire_delete_file *files;
    uint32_t file_count;
};

struct mp_wire_commit {
    struct mp_str key; /* canonical UUID; absent: none */
    struct mp_str author, message;
    bool has_read_snapshot;
    int64_t read_snapshot;
    struct mp_wire_append *appends;
    struct mp_wire_delete *deletes;
    uint32_t append_count, delete_count;
};

struct mp_wire_commit_result {
    int64_t snapshot_id, schema_version;
};

struct mp_wire_catalog {
    struct mp_str name, data_path;
    struct mp_str *capabilities;
    uint32_t capability_count;
};

struct mp_wire_options {
    bool has_retention; /* absent: nothing expires */
    int64_t retention_s;
};

/* Where a two-phase creation stands: "prepared", "committed", "rejected" or "aborted". */
struct mp_wire_creation {
    struct mp_str state, reason;
};

struct mp_wire_error {
    struct mp_str error, detail, reason;
    struct mp_str *tables;
    uint32_t table_count;
    bool has_read_snapshot, re_prepare;
    int64_t read_snapshot;
};

/* --- reading --- */

/* Where a reader stands: the first fault is kept, and everything after it does nothing. */
struct mp_wire_reader {
    struct mp_arena *arena;
    bool failed;
    bool nul;    /* the fault is a NUL byte in a text: well-formed, but nothing we can keep */
    bool answer; /* set by the caller: what a server says; columns have ids then */
    char fault[256];
};

void mp_wire_fault(struct mp_wire_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Fails unless value is an object that has no member beside those in `known` (ends with NULL);
 * an answer may have others. */
bool mp_wire_object(struct mp_wire_reader *reader, const json_t *value, const char *what,
                    const char *const *known);
/* Members. A missing or null one is a fault where required, else the *ret is not written. */
void mp_wire_text(struct mp_wire_reader *reader, const json_t *object, const char *name,
                  bool required, struct mp_str *ret);
/* The value itself. False: a fault; what: the name in its text. */
bool mp_wire_text_item(struct mp_wire_reader *reader, const json_t *value, const char *what,
                       struct mp_str *ret);
void mp_wire_int(struct mp_wire_reader *reader, const json_t *object, const char *name,
                 bool required, int64_t *ret, bool *ret_has);
void mp_wire_bool(struct mp_wire_reader *reader, const json_t *object, const char *name, bool *ret);
/* A UUID in canonical lower case, in the arena. */
void mp_wire_uuid(struct mp_wire_reader *reader, const json_t *object, const char *name,
                  bool required, struct mp_str *ret);
/* The member as an array; NULL: absent or a fault. */
const json_t *mp_wire_array(struct mp_wire_reader *reader, const json_t *object, const char *name,
                            bool required);
/* The member, an object, as compact JSON text in the arena. */
void mp_wire_json_text(struct mp_wire_reader *reader, const json_t *object, const char *name,
                       struct mp_str *ret);

void mp_wire_columns_read(struct mp_wire_reader *reader, const json_t *array,
                          struct mp_wire_column **ret, uint32_t *ret_count);
void mp_wire_column_read(struct mp_wire_reader *reader, const json_t *value,
                         struct mp_wire_column *ret);
void mp_wire_partition_fields_read(struct mp_wire_reader *reader, const json_t *array,
                                   struct mp_wire_partition_field **ret, uint32_t *ret_count);
void mp_wire_sort_fields_read(struct mp_wire_reader *reader, const json_t *array,
                              struct mp_wire_sort_field **ret, uint32_t *ret_count);
void mp_wire_files_read(struct mp_wire_reader *reader, const json_t *array,
                        struct mp_wire_file **ret, uint32_t *ret_count);
void mp_wire_commit_read(struct mp_wire_reader *reader, const json_t *value,
                         struct mp_wire_commit *ret);

/* --- reading answers (wire_answer.c); reader->answer is set --- */

void mp_wire_catalog_read(struct mp_wire_reader *reader, const json_t *value,
                          struct mp_wire_catalog *ret);
/* Whether an array of objects holds one with this "name". */
bool mp_wire_names_hold(struct mp_wire_reader *reader, const json_t *array, struct mp_str name);
/* Columns in the order of their ordinals, at every level. */
void mp_wire_table_read(struct mp_wire_reader *reader, const json_t *value,
                        struct mp_wire_table *ret);
void mp_wire_options_read(struct mp_wire_reader *reader, const json_t *value,
                          struct mp_wire_options *ret);
void mp_wire_creation_read(struct mp_wire_reader *reader, const json_t *value,
                           struct mp_wire_creation *ret);
void mp_wire_commit_result_read(struct mp_wire_reader *reader, const json_t *value,
                                struct mp_wire_commit_result *ret);
/* The receipt of a commit; ret: its key. */
void mp_wire_receipt_read(struct mp_wire_reader *reader, const json_t *value, struct mp_str *ret);
/* Never fails: what is no error object leaves the texts absent. */
void mp_wire_error_read(const json_t *value, struct mp_wire_error *ret);

/* --- printing --- */

void mp_wire_columns_print(struct mp_buf *buf, const struct mp_wire_column *columns,
                           uint32_t count);
void mp_wire_partition_fields_print(struct mp_buf *buf,
                                    const struct mp_wire_partition_field *fields, uint32_t count);
void mp_wire_sort_fields_print(struct mp_buf *buf, const struct mp_wire_sort_field *fields,
                               uint32_t count);
void mp_wire_table_print(struct mp_buf *buf, const struct mp_wire_table *table);
void mp_wire_commit_result_print(struct mp_buf *buf, const struct mp_wire_commit_result *result);
void mp_wire_error_print(struct mp_buf *buf, const struct mp_wire_error *error);
/* A member of an object: `,"name":`, without the comma at the beginning. */
void mp_wire_member(struct mp_buf *buf, const char *name);
void mp_wire_member_text(struct mp_buf *buf, const char *name, struct mp_str text);
void mp_wire_member_int(struct mp_buf *buf, const char *name, int64_t number);
void mp_wire_member_bool(struct mp_buf *buf, const char *name, bool value);
void mp_wire_member_instant(struct mp_buf *buf, const char *name, int64_t us);

/* --- texts --- */

/* 36 hexadecimal digits and hyphens, made lower case in place of ret. False: no UUID. */
bool mp_wire_uuid_read(struct mp_str text, char ret[37]);
/* Microseconds since 1970 of an ISO 8601 instant with an offset or Z. False: none. */
bool mp_wire_instant_read(struct mp_str text, int64_t *ret_us);
/* 2026-09-05T12:00:00Z, with 3 or 6 digits of a fraction where there is one. */
void mp_wire_instant_print(struct mp_buf *buf, int64_t us);

#endif
