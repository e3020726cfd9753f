/* server/background/footers.c - footers of registered files, read from the end of their objects.
 * See callouts.h.
 *
 * What is registered of an object (size, footer size) is a claim: an object that ends elsewhere has
 * no Parquet tail where it should be, and is no file that could be read.
 */
#include "server/background/callouts.h"

#include "parquet/footer_stats.h"

#include <stdlib.h>

enum { TAIL_GUESS_BYTES = 64 * 1024 };

enum mp_code mp_object_read(struct mp_objects *objects, struct mp_str path, uint64_t offset,
                            size_t size, char *ret, struct mp_err *err)
{
    struct mp_store *store;
    struct mp_str key;
    size_t got = 0;
    enum mp_code code = mp_objects_find(objects, path, err, &store, &key);

    if (!code)
        code = store->driver->get(store, key, (int64_t)offset, size, ret, &got, err);
    if (!code && got < size)
        code = mp_err_set(err, MP_BAD_DATA, "the object ends at byte %llu, not at %llu",
                          (unsigned long long)offset + got, (unsigned long long)offset + size);
    return code;
}

enum mp_code mp_footer_read(struct mp_objects *objects, struct mp_arena *arena,
                            const struct mp_footer_request *request, struct mp_err *err,
                            const struct mp_parquet_footer **ret)
{
    uint64_t file_bytes = (uint64_t)request->file_size_bytes, guess = TAIL_GUESS_BYTES;
    uint32_t footer_bytes;
    struct mp_str footer;
    char *tail;
    enum mp_code code;

    if (file_bytes < MP_PARQUET_TAIL_BYTES)
        return mp_err_set(err, MP_BAD_DATA, "%llu bytes are no Parquet file",
                          (unsigned long long)file_bytes);
    if (request->has_footer_size && request->footer_size >= 0 &&
        request->footer_size <= (int64_t)MP_PARQUET_FOOTER_BYTES_MAX)
        guess = (uint64_t)request->footer_size + MP_PARQUET_TAIL_BYTES;
    if (guess > file_bytes)
        guess = file_bytes;
    tail = mp_arena_take(arena, guess);
    code = mp_object_read(objects, request->path, file_bytes - guess, guess, tail, err);
    if (!code)
        code = mp_parquet_footer_bytes(
            mp_str_n(tail + guess - MP_PARQUET_TAIL_BYTES, MP_PARQUET_TAIL_BYTES), file_bytes, err,
            &footer_bytes);
    if (code)
        return code;
    if (footer_bytes + MP_PARQUET_TAIL_BYTES <= guess) {
        footer = mp_str_n(tail + guess - MP_PARQUET_TAIL_BYTES - footer_bytes, footer_bytes);
    } else {
        char *whole = mp_arena_take(arena, footer_bytes);

        code = mp_object_read(objects, request->path,
                              file_bytes - MP_PARQUET_TAIL_BYTES - footer_bytes, footer_bytes,
                              whole, err);
        if (code)
            return code;
        footer = mp_str_n(whole, footer_bytes);
    }
    return mp_parquet_footer_read(arena, footer, file_bytes, err, ret);
}

/* --- statistics --- */

/* The catalog's type whose bounds look like the footer's. */
static const enum mp_hog_type footer_types[] = {
    [MP_PARQUET_BOUND_BOOLEAN] = MP_HOG_BOOLEAN, [MP_PARQUET_BOUND_I32] = MP_HOG_INT,
    [MP_PARQUET_BOUND_I64] = MP_HOG_LONG,        [MP_PARQUET_BOUND_FLOAT] = MP_HOG_FLOAT,
    [MP_PARQUET_BOUND_DOUBLE] = MP_HOG_DOUBLE,   [MP_PARQUET_BOUND_BIG] = MP_HOG_DECIMAL,
    [MP_PARQUET_BOUND_BYTES] = MP_HOG_BINARY,    [MP_PARQUET_BOUND_UUID] = MP_HOG_UUID,
};

/* Kinds whose values mean something else than their bytes as a number or a text. */
static uint8_t kind_of_column(enum mp_hog_type type)
{
    switch (type) {
    case MP_HOG_DATE:
        return MP_PARQUET_DATE;
    case MP_HOG_TIME:
        return MP_PARQUET_TIME;
    case MP_HOG_TIMESTAMP_S:
    case MP_HOG_TIMESTAMP_MS:
    case MP_HOG_TIMESTAMP:
    case MP_HOG_TIMESTAMP_NS:
    case MP_HOG_TIMESTAMPTZ:
        return MP_PARQUET_TIMESTAMP;
    case MP_HOG_DECIMAL:
        return MP_PARQUET_DECIMAL;
    default:
        return MP_PARQUET_PLAIN;
    }
}

static uint8_t kind_of_file(const struct mp_parquet_logical *logical)
{
    return logical->kind == MP_PARQUET_DATE || logical->kind == MP_PARQUET_TIME ||
                   logical->kind == MP_PARQUET_TIMESTAMP || logical->kind == MP_PARQUET_DECIMAL
               ? logical->kind
               : MP_PARQUET_PLAIN;
}

/* Whether values of the file mean the same in the column: same kind, same unit, same scale. */
static bool same_meaning(const struct mp_parquet_logical *file,
                         const struct mp_column_place *column)
{
    uint8_t kind = kind_of_column(column->type);

    if (kind != kind_of_file(file))
        return false;
    if (kind == MP_PARQUET_TIME || kind == MP_PARQUET_TIMESTAMP)
        return (file->unit == MP_PARQUET_NANOS) == (column->type == MP_HOG_TIMESTAMP_NS);
    return kind != MP_PARQUET_DECIMAL || file->scale == mp_column_scale(column->column);
}

/* The bound in the column's encoding; data NULL: none. */
static struct mp_str bound_of(struct mp_arena *arena, const struct mp_parquet_node *node,
                              uint8_t kind, const struct mp_parquet_bound *bound,
                              const struct mp_column_place *column)
{
    const struct mp_str none = {NULL, 0};
    struct mp_str bytes = bound->bytes;
    enum mp_hog_type from, to = column->type;

    if (!bound->has || kind == MP_PARQUET_BOUND_NONE || !same_meaning(&node->logical, column))
        return none;
    from = footer_types[kind];
    if (mp_hog_types[from].bound != mp_hog_types[to].bound &&
        !(from == MP_HOG_BINARY && to == MP_HOG_UUID)) {
        /* The column was promoted after the file was written. */
        bool wider = (from == MP_HOG_INT && mp_hog_types[to].bound == MP_HOG_BOUND_INT64) ||
                     (from == MP_HOG_FLOAT && to == MP_HOG_DOUBLE);

        if (!wider || !mp_hog_bound_promote(arena, from, to, bytes, &bytes))
            return none;
    }
    if (!bytes.data)
        bytes = MP_STR("");
    return mp_hog_bound_valid(to, bytes) ? bytes : none;
}

static int by_field(const void *a, const void *b)
{
    const struct mp_wire_stats *x = a, *y = b;

    return (x->field_id > y->field_id) - (x->field_id < y->field_id);
}

static void tell_stats(struct mp_arena *arena, const struct mp_parquet_footer *footer,
                       struct mp_columns columns, struct mp_footer *ret)
{
    uint32_t leaf_count, count = 0, kept = 0;
    const struct mp_parquet_leaf_stats *leaves =
        mp_parquet_footer_stats(arena, footer, &leaf_count);
    struct mp_wire_stats *stats = mp_arena_take(arena, (leaf_count + 1) * sizeof(*stats));

    for (uint32_t i = 0; i < leaf_count; i++) {
        const struct mp_parquet_leaf_stats *leaf = &leaves[i];
        const struct mp_parquet_node *node = &footer->nodes[footer->leaves[leaf->leaf]];
        struct mp_column_place place;

        if (!leaf->has_field_id || !leaf->has_null_count ||
            !mp_columns_find(arena, columns, leaf->field_id, &place) ||
            mp_hog_types[place.type].container || place.type == MP_HOG_VARIANT)
            continue;
        stats[count++] = (struct mp_wire_stats){
            .field_id = leaf->field_id,
            .value_count = (int64_t)leaf->value_count,
            .null_count = (int64_t)leaf->null_count,
            .has_size = true,
            .size_bytes = (int64_t)leaf->size_bytes,
            .lower = bound_of(arena, node, leaf->bound_kind, &leaf->lower, &place),
            .upper = bound_of(arena, node, leaf->bound_kind, &leaf->upper, &place),
        };
    }
    qsort(stats, count, sizeof(*stats), by_field);
    for (uint32_t i = 0; i < count; i++) /* an id that stands there twice says nothing */
        if ((!i || stats[i - 1].field_id != stats[i].field_id) &&
            (i + 1 == count || stats[i + 1].field_id != stats[i].field_id))
            stats[kept++] = stats[i];
    ret->stats = stats;
    ret->stats_count = footer->rows ? kept : 0;
}

static void tell_splits(struct mp_arena *arena, const struct mp_parquet_footer *footer,
                        struct mp_footer *ret)
{
    ret->split_offsets = mp_arena_take(arena, (footer->group_count + 1) * sizeof(int64_t));
    ret->split_count = 0;
    for (uint32_t i = 0; i < footer->group_count; i++) {
        int64_t start = footer->groups[i].start;

        if (!footer->groups[i].rows)
            continue;
        if (start < 0 || (ret->split_count && start <= ret->split_offsets[ret->split_count - 1])) {
            ret->split_count = 0;
            return;
        }
        ret->split_offsets[ret->split_count++] = start;
    }
}

void mp_footer_tell(struct mp_arena *arena, const struct mp_parquet_footer *footer,
                    struct mp_columns columns, struct mp_footer *ret)
{
    *ret = (struct mp_footer){.missing_field_ids = mp_parquet_misses_field_ids(footer)};
    tell_stats(arena, footer, columns, ret);
    tell_splits(arena, footer, ret);
}

enum mp_code mp_callout_footer(struct mp_objects *objects, struct mp_arena *arena,
                               const struct mp_footer_request *request, struct mp_err *err,
                               struct mp_footer *ret)
{
    const struct mp_parquet_footer *footer;
    enum mp_code code = mp_footer_read(objects, arena, request, err, &footer);

    if (!code)
        mp_footer_tell(arena, footer, request->columns, ret);
    return code;
}
