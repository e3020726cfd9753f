/* parquet/footer.c - see footer.h.
 *
 * The bytes are first read into structs that mirror parquet.thrift (footer_thrift.c), then checked
 * and made into what callers want. Nothing that the bytes claim is used as a size or an index
 * before it was checked.
 */
#include "parquet/footer_priv.h"
#include "parquet/parquet_priv.h"

#define MAGIC           MP_STR("PAR1")
#define MAGIC_ENCRYPTED MP_STR("PARE")

enum mp_code mp_parquet_footer_bytes(struct mp_str tail, uint64_t file_bytes, struct mp_err *err,
                                     uint32_t *ret)
{
    struct mp_str magic;
    uint32_t bytes;

    if (file_bytes < MAGIC.size + MP_PARQUET_TAIL_BYTES || tail.size != MP_PARQUET_TAIL_BYTES)
        return MP_BAD_FOOTER(err, "a file of %llu bytes is no Parquet file",
                             (unsigned long long)file_bytes);
    magic = mp_str_n(tail.data + 4, 4);
    if (mp_str_eq(magic, MAGIC_ENCRYPTED))
        return MP_BAD_FOOTER(err, "the footer is encrypted");
    if (!mp_str_eq(magic, MAGIC))
        return MP_BAD_FOOTER(err, "no PAR1 at the end of %llu bytes: no Parquet file",
                             (unsigned long long)file_bytes);
    memcpy(&bytes, tail.data, 4);
    if (bytes > file_bytes - MAGIC.size - MP_PARQUET_TAIL_BYTES)
        return MP_BAD_FOOTER(err, "a footer of %u bytes in a file of %llu", bytes,
                             (unsigned long long)file_bytes);
    if (bytes > MP_PARQUET_FOOTER_BYTES_MAX)
        return MP_BAD_FOOTER(err, "a footer of %u bytes, at most %u are read", bytes,
                             MP_PARQUET_FOOTER_BYTES_MAX);
    *ret = bytes;
    return MP_OK;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* Some writers give 0 for "no dictionary page", pyarrow 0 for "no data page" where a chunk has no
 * values; a dictionary behind the data pages does not say where the chunk begins. */
static int64_t dictionary_offset(const struct mp_raw_column *column)
{
    int64_t offset = column->dictionary_page_offset;

    return offset > 0 && (offset < column->data_page_offset || !column->data_page_offset) ? offset
                                                                                          : 0;
}

static struct mp_parquet_column_chunk make_chunk(const struct mp_raw_chunk *raw)
{
    const struct mp_raw_column *column = &raw->column;
    int64_t dictionary = dictionary_offset(column);

    return (struct mp_parquet_column_chunk){
        .start = dictionary ? dictionary : column->data_page_offset,
        .bytes = column->bytes,
        .raw_bytes = column->raw_bytes,
        .value_count = column->value_count,
        .data_page_offset = column->data_page_offset,
        .dictionary_page_offset = dictionary,
        .column_index_offset = raw->column_index_offset,
        .offset_index_offset = raw->offset_index_offset,
        .bloom_filter_offset = column->bloom_filter_offset,
        .column_index_bytes = raw->column_index_bytes,
        .offset_index_bytes = raw->offset_index_bytes,
        .bloom_filter_bytes = column->bloom_filter_bytes,
        .codec = column->codec,
        .statistics = column->statistics,
        .raw = raw->column_raw,
    };
}

/* F2, F3 and the half of F4 that speaks of chunks. */
static enum mp_code check_chunk(const struct mp_parquet_footer *footer,
                                const struct mp_raw_chunk *raw,
                                const struct mp_parquet_column_chunk *chunk, uint32_t leaf,
                                int64_t rows, struct mp_err *err)
{
    const struct mp_parquet_node *node = &footer->nodes[footer->leaves[leaf]];
    int64_t end = (int64_t)(footer->file_bytes - footer->footer_bytes - MP_PARQUET_TAIL_BYTES);

    if (mp_thrift_has(raw->has, 1))
        return MP_BAD_FOOTER(err, "column %u lies in another file", leaf);
    if (mp_thrift_has(raw->has, 8))
        return MP_BAD_FOOTER(err, "column %u is encrypted", leaf);
    if (raw->column.type != node->physical)
        return MP_BAD_FOOTER(err, "column %u has the physical type %d, its leaf %d", leaf,
                             raw->column.type, node->physical);
    if (chunk->value_count < 0 || chunk->raw_bytes < 0 || chunk->bytes < 0)
        return MP_BAD_FOOTER(err, "column %u has %lld values in %lld bytes, %lld compressed", leaf,
                             (long long)chunk->value_count, (long long)chunk->raw_bytes,
                             (long long)chunk->bytes);
    if (node->repetition_max == 0 && chunk->value_count != rows)
        return MP_BAD_FOOTER(err, "column %u has %lld values in %lld rows", leaf,
                             (long long)chunk->value_count, (long long)rows);
    if (chunk->bytes && (chunk->start < (int64_t)MAGIC.size || chunk->start > end ||
                         chunk->bytes > end - chunk->start))
        return MP_BAD_FOOTER(err, "column %u lies at %lld with %lld bytes in a file of %llu", leaf,
                             (long long)chunk->start, (long long)chunk->bytes,
                             (unsigned long long)footer->file_bytes);
    if (chunk->data_page_offset - chunk->start > chunk->bytes ||
        (chunk->value_count && !chunk->data_page_offset))
        return MP_BAD_FOOTER(err, "column %u has data pages at %lld, outside its %lld bytes", leaf,
                             (long long)chunk->data_page_offset, (long long)chunk->bytes);
    return MP_OK;
}

static enum mp_code make_group(struct mp_arena *arena, const struct mp_parquet_footer *footer,
                               const struct mp_raw_group *raw, struct mp_err *err,
                               struct mp_parquet_row_group *ret)
{
    struct mp_parquet_column_chunk *chunks;
    enum mp_code code = MP_OK;

    if (raw->chunk_count != footer->leaf_count)
        return MP_BAD_FOOTER(err, "%u columns, the schema has %u", raw->chunk_count,
                             footer->leaf_count);
    if (raw->rows < 0 || raw->raw_bytes < 0)
        return MP_BAD_FOOTER(err, "%lld rows in %lld bytes", (long long)raw->rows,
                             (long long)raw->raw_bytes);
    chunks = mp_arena_take(arena, raw->chunk_count * sizeof(*chunks));
    for (uint32_t leaf = 0; leaf < raw->chunk_count && !code; leaf++) {
        chunks[leaf] = make_chunk(&raw->chunks[leaf]);
        code = check_chunk(footer, &raw->chunks[leaf], &chunks[leaf], leaf, raw->rows, err);
    }
    *ret = (struct mp_parquet_row_group){
        .chunks = chunks,
        .rows = raw->rows,
        .raw_bytes = raw->raw_bytes,
        .start = raw->chunk_count ? chunks[0].start : 0,
        .sorting_columns = raw->sorting_columns,
    };
    return code;
}

static enum mp_code make_groups(struct mp_arena *arena, const struct mp_raw_file *file,
                                struct mp_err *err, struct mp_parquet_footer *ret)
{
    struct mp_parquet_row_group *groups = mp_arena_take(arena, file->group_count * sizeof(*groups));
    int64_t left = file->rows;
    enum mp_code code;

    if (file->rows < 0)
        return MP_BAD_FOOTER(err, "a file of %lld rows", (long long)file->rows);
    for (uint32_t i = 0; i < file->group_count; i++) {
        code = make_group(arena, ret, &file->groups[i], err, &groups[i]);
        if (code) {
            mp_err_add(err, "row group %u", i);
            return code;
        }
        left -= groups[i].rows;
        if (left < 0)
            break;
    }
    if (left) /* F4 */
        return MP_BAD_FOOTER(err, "the row groups do not add up to the file's %lld rows",
                             (long long)file->rows);
    ret->groups = groups;
    ret->group_count = file->group_count;
    return MP_OK;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void make_orders(struct mp_arena *arena, const struct mp_raw_file *file,
                        struct mp_parquet_footer *ret)
{
    uint8_t *orders = mp_arena_take(arena, ret->leaf_count);

    ret->has_orders = mp_thrift_has(file->has, 7) && file->order_count == ret->leaf_count;
    for (uint32_t leaf = 0; ret->has_orders && leaf < ret->leaf_count; leaf++)
        orders[leaf] = mp_thrift_has(file->orders[leaf].has, MP_PARQUET_ORDER_TYPE)
                           ? MP_PARQUET_ORDER_TYPE
                       : mp_thrift_has(file->orders[leaf].has, MP_PARQUET_ORDER_IEEE754)
                           ? MP_PARQUET_ORDER_IEEE754
                           : MP_PARQUET_ORDER_LATER;
    ret->orders = orders;
    ret->orders_raw = ret->has_orders ? file->orders_raw : (struct mp_str){0};
}

static void make_pairs(struct mp_arena *arena, const struct mp_raw_file *file,
                       struct mp_parquet_footer *ret)
{
    struct mp_parquet_pair *pairs = mp_arena_take(arena, file->pair_count * sizeof(*pairs));

    for (uint32_t i = 0; i < file->pair_count; i++)
        pairs[i] = (struct mp_parquet_pair){file->pairs[i].key, file->pairs[i].value};
    ret->pairs = pairs;
    ret->pair_count = file->pair_count;
    ret->pairs_raw = file->pairs_raw;
}

enum mp_code mp_parquet_footer_read(struct mp_arena *arena, struct mp_str footer,
                                    uint64_t file_bytes, struct mp_err *err,
                                    const struct mp_parquet_footer **ret)
{
    struct mp_parquet_footer *made = mp_arena_take(arena, sizeof(*made));
    struct mp_raw_file *file = mp_arena_take(arena, sizeof(*file));
    struct mp_thrift_in in;
    enum mp_code code;

    if (footer.size > MP_PARQUET_FOOTER_BYTES_MAX || file_bytes > INT64_MAX ||
        footer.size + MAGIC.size + MP_PARQUET_TAIL_BYTES > file_bytes) {
        code = MP_BAD_FOOTER(err, "%zu bytes in a file of %llu", footer.size,
                             (unsigned long long)file_bytes);
        goto out;
    }
    mp_thrift_in_begin(&in, footer, err);
    mp_thrift_in_struct(&in, arena, &mp_raw_file_shape, file);
    code = in.code;
    if (code)
        goto out;
    if (mp_thrift_has(file->has, 8)) {
        code = MP_BAD_FOOTER(err, "the file is encrypted");
        goto out;
    }
    made->version = file->version;
    made->rows = file->rows;
    made->file_bytes = file_bytes;
    made->footer_bytes = (uint32_t)footer.size;
    made->created_by = file->created_by;
    made->schema_raw = file->schema_raw;
    code = mp_footer_schema(arena, file, err, made);
    if (code)
        goto out;
    code = make_groups(arena, file, err, made);
    if (code)
        goto out;
    make_orders(arena, file, made);
    make_pairs(arena, file, made);
    *ret = made;
out:
    if (code)
        mp_err_add(err, "parquet footer");
    return code;
}

/* ---- questions ------------------------------------------------------------------------------- */

struct mp_str mp_parquet_path(struct mp_arena *arena, const struct mp_parquet_footer *footer,
                              uint32_t node)
{
    const struct mp_parquet_node *nodes = footer->nodes;
    size_t size = 0, at;
    char *path;

    for (uint32_t i = node; i; i = nodes[i].parent)
        size += nodes[i].name.size + (nodes[i].parent != 0);
    path = mp_arena_take(arena, size + 1);
    at = size;
    for (uint32_t i = node; i; i = nodes[i].parent) {
        at -= nodes[i].name.size;
        memcpy(path + at, nodes[i].name.data, nodes[i].name.size);
        if (nodes[i].parent)
            path[--at] = '.';
    }
    assert(at == 0);
    return mp_str_n(path, size);
}

bool mp_parquet_misses_field_ids(const struct mp_parquet_footer *footer)
{
    for (uint32_t i = 1; i < footer->node_count; i++) {
        const struct mp_parquet_node *node = &footer->nodes[i];
        bool counts = node->in_variant ? node->logical.kind == MP_PARQUET_VARIANT : node->leaf >= 0;

        if (counts && !node->has_field_id)
            return true;
    }
    return false;
}
