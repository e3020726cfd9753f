/* parquet/writer.c - chunks and names -> a file.
 *
 *     "PAR1"
 *     row group 1: leaf 1 (dictionary page, data pages), leaf 2, ...
 *     row group 2 ...
 *     ColumnIndex of every chunk that has one, OffsetIndex of every chunk
 *     FileMetaData, its length in 4 bytes, "PAR1"
 *
 * The chunks' bytes stay where they are: a file is a list of pieces, and only its first four bytes
 * and what comes after the last page are its own. So another footer over the same chunks is cheap.
 *
 * After  Parquet "File Format", "Metadata"; parquet.thrift: FileMetaData.
 */
#include "parquet/parquet_priv.h"

#include "base/arena.h"
#include "base/mem.h"

enum { FORMAT_VERSION = 2 };

#define TAIL_BYTES_MAX ((size_t)INT32_MAX) /* the footer's length is an i32 */
#define MAGIC          MP_STR("PAR1")

/* A field at the top, or one inside a VARIANT or another nested column. */
struct leaf {
    const struct mp_parquet_field *field;
    uint32_t inside; /* of the column's leaves; NOT_INSIDE: the field itself */
};

#define NOT_INSIDE UINT32_MAX

/* Where the parts of a chunk lie in the file. */
struct place {
    uint64_t offset; /* of its first page */
    uint64_t column_index, offset_index;
    uint32_t column_index_bytes, offset_index_bytes;
};

struct file {
    struct mp_parquet_file door; /* what the caller sees */
    const struct mp_parquet_field *fields;
    uint32_t field_count, group_count;
    struct leaf *leaves; /* in the order of the schema */
    uint32_t leaf_count;
    struct place *places; /* group by group, leaf by leaf */
    struct mp_buf tail;
    struct mp_arena arena;
};

static bool is_nested(const struct mp_parquet_field *field)
{
    return field->tree || field->type.id == MP_TYPE_VARIANT;
}

/* A nested column's leaves; NULL: the field is flat. They are the same in every row group. */
static const struct mp_parquet_group *inside(const struct mp_parquet_field *field)
{
    return is_nested(field) ? field->chunks[0]->group : NULL;
}

static void list_leaves(struct file *file)
{
    struct leaf *at;

    for (uint32_t i = 0; i < file->field_count; i++) {
        const struct mp_parquet_group *group;

        assert(file->group_count || !is_nested(&file->fields[i]));
        group = inside(&file->fields[i]);
        file->leaf_count += group ? group->count : 1;
    }
    at = file->leaves = mp_alloc_array(file->leaf_count, sizeof(*file->leaves));
    for (uint32_t i = 0; i < file->field_count; i++) {
        const struct mp_parquet_group *group = inside(&file->fields[i]);

        if (!group)
            *at++ = (struct leaf){&file->fields[i], NOT_INSIDE};
        for (uint32_t k = 0; group && k < group->count; k++)
            *at++ = (struct leaf){&file->fields[i], k};
    }
}

static const struct mp_parquet_chunk *chunk_of(const struct file *file, uint32_t group,
                                               uint32_t leaf)
{
    const struct leaf *at = &file->leaves[leaf];
    const struct mp_parquet_chunk *chunk = at->field->chunks[group];

    return at->inside == NOT_INSIDE ? chunk : chunk->group->leaves[at->inside];
}

static struct place *place_of(const struct file *file, uint32_t group, uint32_t leaf)
{
    return &file->places[(size_t)group * file->leaf_count + leaf];
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static void check_chunks(const struct file *file)
{
    for (uint32_t group = 0; group < file->group_count; group++)
        for (uint32_t leaf = 0; leaf < file->leaf_count; leaf++) {
            const struct leaf *at = &file->leaves[leaf];
            const struct mp_parquet_chunk *first = chunk_of(file, 0, leaf);

            assert(mp_type_eq(at->field->chunks[group]->type, at->field->type));
            assert(mp_type_eq(chunk_of(file, group, leaf)->type, first->type));
            assert(chunk_of(file, group, leaf)->rows == chunk_of(file, group, 0)->rows);
            assert(!inside(at->field) ||
                   at->field->chunks[group]->group->count == inside(at->field)->count);
        }
}

static uint32_t count_pieces(const struct file *file)
{
    uint32_t count = 2; /* the magic in front, the tail */

    for (uint32_t group = 0; group < file->group_count; group++)
        for (uint32_t leaf = 0; leaf < file->leaf_count; leaf++) {
            const struct mp_parquet_chunk *chunk = chunk_of(file, group, leaf);

            count += chunk->part_count;
        }
    return count;
}

/* Lays the chunks out; gives the offset behind the last one. */
static uint64_t lay_out(struct file *file, struct mp_str *pieces)
{
    struct mp_str *at = pieces;
    uint64_t offset = MAGIC.size;

    *at++ = MAGIC;
    for (uint32_t group = 0; group < file->group_count; group++)
        for (uint32_t leaf = 0; leaf < file->leaf_count; leaf++) {
            const struct mp_parquet_chunk *chunk = chunk_of(file, group, leaf);

            place_of(file, group, leaf)->offset = offset;
            offset += chunk->bytes;
            memcpy(at, chunk->parts, chunk->part_count * sizeof(*at));
            at += chunk->part_count;
        }
    assert(at == pieces + file->door.piece_count - 1);
    return offset;
}

/* ---- page indexes ---------------------------------------------------------------------------- */

static void write_indexes(struct file *file, uint64_t offset)
{
    struct mp_buf *tail = &file->tail;

    for (uint32_t group = 0; group < file->group_count; group++)
        for (uint32_t leaf = 0; leaf < file->leaf_count; leaf++) {
            const struct mp_parquet_chunk *chunk = chunk_of(file, group, leaf);
            struct place *place = place_of(file, group, leaf);

            place->column_index = offset + tail->size;
            place->column_index_bytes = (uint32_t)chunk->column_index.size;
            if (chunk->column_index.size)
                mp_buf_add_str(tail, mp_buf_str(&chunk->column_index));
        }
    for (uint32_t group = 0; group < file->group_count; group++)
        for (uint32_t leaf = 0; leaf < file->leaf_count; leaf++) {
            const struct mp_parquet_chunk *chunk = chunk_of(file, group, leaf);
            struct place *place = place_of(file, group, leaf);

            place->offset_index = offset + tail->size;
            mp_index_offsets(chunk, place->offset + chunk->dictionary_bytes, tail);
            place->offset_index_bytes = (uint32_t)(offset + tail->size - place->offset_index);
        }
}

/* ---- footer ---------------------------------------------------------------------------------- */

static const struct mp_str value_name = {"value", 5}, typed_name = {"typed_value", 11};

static uint32_t count_elements(const struct mp_parquet_field *field)
{
    const struct mp_parquet_group *group = inside(field);
    uint32_t members = group ? group->shape.count : 0;

    if (field->tree)
        return field->tree->count;
    return !group ? 1 : members ? 4 + 3 * members : 3;
}

static void write_leaf_element(struct mp_thrift *thrift, struct mp_str name, struct mp_type type,
                               enum mp_parquet_repetition repetition)
{
    mp_layout_schema_element(
        thrift, &(struct mp_schema_element){.name = name, .type = type, .repetition = repetition});
}

/* What is inside a VARIANT: see variant.c. */
static void write_variant_elements(struct mp_thrift *thrift, const struct mp_variant_shape *shape)
{
    write_leaf_element(thrift, MP_STR("metadata"), MP_TYPE(BLOB), MP_PARQUET_REQUIRED);
    write_leaf_element(thrift, value_name, MP_TYPE(BLOB),
                       shape->count ? MP_PARQUET_OPTIONAL : MP_PARQUET_REQUIRED);
    if (!shape->count)
        return;
    mp_layout_schema_element(thrift, &(struct mp_schema_element){.name = typed_name,
                                                                 .repetition = MP_PARQUET_OPTIONAL,
                                                                 .children = shape->count});
    for (uint32_t i = 0; i < shape->count; i++) {
        mp_layout_schema_element(thrift,
                                 &(struct mp_schema_element){.name = shape->fields[i].name,
                                                             .repetition = MP_PARQUET_REQUIRED,
                                                             .children = 2});
        write_leaf_element(thrift, value_name, MP_TYPE(BLOB), MP_PARQUET_OPTIONAL);
        write_leaf_element(thrift, typed_name, shape->fields[i].type, MP_PARQUET_OPTIONAL);
    }
}

static void write_field_elements(struct mp_thrift *thrift, const struct mp_parquet_field *field)
{
    const struct mp_parquet_group *group = inside(field);
    struct mp_schema_element element = {.name = field->name,
                                        .type = field->type,
                                        .repetition = MP_PARQUET_OPTIONAL,
                                        .field_id = field->field_id};

    for (uint32_t i = 0; field->tree && i < field->tree->count; i++)
        mp_layout_schema_element(thrift, &field->tree->elements[i]);
    if (field->tree)
        return;
    if (group)
        element.children = group->shape.count ? 3 : 2;
    mp_layout_schema_element(thrift, &element);
    if (group)
        write_variant_elements(thrift, &group->shape);
}

static void write_schema(struct mp_thrift *thrift, const struct file *file)
{
    size_t elements = 1;

    for (uint32_t field = 0; field < file->field_count; field++)
        elements += count_elements(&file->fields[field]);
    mp_thrift_list(thrift, 2, MP_THRIFT_STRUCT, elements);
    mp_thrift_begin(thrift);
    mp_thrift_binary(thrift, 4, MP_STR("schema"));
    mp_thrift_i32(thrift, 5, (int32_t)file->field_count);
    mp_thrift_end(thrift);
    for (uint32_t field = 0; field < file->field_count; field++)
        write_field_elements(thrift, &file->fields[field]);
}

static void write_tree_path(struct mp_thrift *thrift, const struct mp_parquet_tree *tree,
                            uint32_t leaf)
{
    uint32_t at[MP_PARQUET_DEPTH_MAX], depth = 0;

    for (uint32_t i = tree->leaves[leaf]; i; i = tree->parents[i]) {
        assert(depth < MP_PARQUET_DEPTH_MAX);
        at[depth++] = i;
    }
    mp_thrift_list(thrift, 3, MP_THRIFT_BINARY, depth + 1);
    mp_thrift_add_binary(thrift, tree->elements[0].name);
    while (depth)
        mp_thrift_add_binary(thrift, tree->elements[at[--depth]].name);
}

/* The names from the top to the leaf. */
static void write_path(struct mp_thrift *thrift, const struct leaf *leaf)
{
    const struct mp_parquet_group *group = inside(leaf->field);
    uint32_t member;

    if (leaf->field->tree) {
        write_tree_path(thrift, leaf->field->tree, leaf->inside);
        return;
    }
    if (!group) {
        mp_thrift_list(thrift, 3, MP_THRIFT_BINARY, 1);
        mp_thrift_add_binary(thrift, leaf->field->name);
        return;
    }
    mp_thrift_list(thrift, 3, MP_THRIFT_BINARY, leaf->inside < 2 ? 2 : 4);
    mp_thrift_add_binary(thrift, leaf->field->name);
    if (leaf->inside < 2) {
        mp_thrift_add_binary(thrift, leaf->inside ? value_name : MP_STR("metadata"));
        return;
    }
    member = (leaf->inside - 2) / 2;
    mp_thrift_add_binary(thrift, typed_name);
    mp_thrift_add_binary(thrift, group->shape.fields[member].name);
    mp_thrift_add_binary(thrift, leaf->inside % 2 ? typed_name : value_name);
}

static void write_statistics(struct mp_thrift *thrift, const struct mp_parquet_chunk *chunk)
{
    struct mp_layout layout = chunk->layout;
    const struct mp_extreme *of = chunk->extremes.of;
    struct mp_bound low, high;

    low.has = high.has = false;
    if (chunk->extremes.has && !chunk->nans) {
        mp_bound_make(layout, 0, mp_str_n(of[0].data, of[0].kept), of[0].size, MP_BOUND_CHUNK_MAX,
                      &low);
        mp_bound_make(layout, 1, mp_str_n(of[1].data, of[1].kept), of[1].size, MP_BOUND_CHUNK_MAX,
                      &high);
    }
    mp_thrift_struct(thrift, 12);
    mp_thrift_i64(thrift, 3, chunk->nulls);
    if (high.has)
        mp_thrift_binary(thrift, 5, mp_str_n(high.data, high.size));
    if (low.has)
        mp_thrift_binary(thrift, 6, mp_str_n(low.data, low.size));
    if (high.has)
        mp_thrift_bool(thrift, 7, high.exact);
    if (low.has)
        mp_thrift_bool(thrift, 8, low.exact);
    mp_thrift_end(thrift);
}

static void write_page_count(struct mp_thrift *thrift, enum mp_page_kind kind,
                             enum mp_encoding encoding, uint32_t count)
{
    mp_thrift_begin(thrift);
    mp_thrift_i32(thrift, 1, kind);
    mp_thrift_i32(thrift, 2, encoding);
    mp_thrift_i32(thrift, 3, (int32_t)count);
    mp_thrift_end(thrift);
}

static void write_encodings(struct mp_thrift *thrift, bool indexed)
{
    mp_thrift_list(thrift, 2, MP_THRIFT_I32, indexed ? 3 : 2);
    mp_thrift_add_i32(thrift, MP_ENCODING_PLAIN);
    mp_thrift_add_i32(thrift, MP_ENCODING_RLE);
    if (indexed)
        mp_thrift_add_i32(thrift, MP_ENCODING_RLE_DICTIONARY);
}

static void write_column_meta(struct mp_thrift *thrift, const struct leaf *leaf,
                              const struct mp_parquet_chunk *chunk, const struct place *place)
{
    bool indexed = chunk->dictionary_bytes != 0;

    mp_thrift_struct(thrift, 3);
    mp_thrift_i32(thrift, 1, chunk->layout.physical);
    write_encodings(thrift, indexed);
    write_path(thrift, leaf);
    mp_thrift_i32(thrift, 4, mp_codec_number(chunk->codec));
    mp_thrift_i64(thrift, 5, chunk->entries);
    mp_thrift_i64(thrift, 6, (int64_t)chunk->raw_bytes);
    mp_thrift_i64(thrift, 7, (int64_t)chunk->bytes);
    mp_thrift_i64(thrift, 9, (int64_t)(place->offset + chunk->dictionary_bytes));
    if (indexed)
        mp_thrift_i64(thrift, 11, (int64_t)place->offset);
    write_statistics(thrift, chunk);
    mp_thrift_list(thrift, 13, MP_THRIFT_STRUCT, indexed ? 2 : 1);
    if (indexed)
        write_page_count(thrift, MP_PAGE_DICTIONARY, MP_ENCODING_PLAIN, 1);
    write_page_count(thrift, MP_PAGE_DATA, indexed ? MP_ENCODING_RLE_DICTIONARY : MP_ENCODING_PLAIN,
                     chunk->page_count);
    mp_thrift_end(thrift);
}

static void write_column(struct mp_thrift *thrift, const struct file *file, uint32_t group,
                         uint32_t leaf)
{
    const struct place *place = place_of(file, group, leaf);

    mp_thrift_begin(thrift);
    mp_thrift_i64(thrift, 2, 0); /* file_offset: no ColumnMetaData stands outside the footer */
    write_column_meta(thrift, &file->leaves[leaf], chunk_of(file, group, leaf), place);
    mp_thrift_i64(thrift, 4, (int64_t)place->offset_index);
    mp_thrift_i32(thrift, 5, (int32_t)place->offset_index_bytes);
    if (place->column_index_bytes) {
        mp_thrift_i64(thrift, 6, (int64_t)place->column_index);
        mp_thrift_i32(thrift, 7, (int32_t)place->column_index_bytes);
    }
    mp_thrift_end(thrift);
}

static void write_group(struct mp_thrift *thrift, const struct file *file, uint32_t group)
{
    uint64_t raw = 0, bytes = 0;

    for (uint32_t leaf = 0; leaf < file->leaf_count; leaf++) {
        raw += chunk_of(file, group, leaf)->raw_bytes;
        bytes += chunk_of(file, group, leaf)->bytes;
    }
    mp_thrift_begin(thrift);
    mp_thrift_list(thrift, 1, MP_THRIFT_STRUCT, file->leaf_count);
    for (uint32_t leaf = 0; leaf < file->leaf_count; leaf++)
        write_column(thrift, file, group, leaf);
    mp_thrift_i64(thrift, 2, (int64_t)raw);
    mp_thrift_i64(thrift, 3, chunk_of(file, group, 0)->rows);
    mp_thrift_i64(thrift, 5, (int64_t)place_of(file, group, 0)->offset);
    mp_thrift_i64(thrift, 6, (int64_t)bytes);
    if (group <= INT16_MAX)
        mp_thrift_i16(thrift, 7, (int16_t)group);
    mp_thrift_end(thrift);
}

static void write_column_orders(struct mp_thrift *thrift, uint32_t count)
{
    mp_thrift_list(thrift, 7, MP_THRIFT_STRUCT, count);
    for (uint32_t leaf = 0; leaf < count; leaf++) {
        mp_thrift_begin(thrift);
        mp_thrift_struct(thrift, 1); /* TypeDefinedOrder */
        mp_thrift_end(thrift);
        mp_thrift_end(thrift);
    }
}

static void write_footer(struct file *file, struct mp_str created_by)
{
    struct mp_thrift thrift = {.out = &file->tail};
    size_t before = file->tail.size;
    uint32_t bytes;

    mp_thrift_begin(&thrift);
    mp_thrift_i32(&thrift, 1, FORMAT_VERSION);
    write_schema(&thrift, file);
    mp_thrift_i64(&thrift, 3, (int64_t)file->door.rows);
    mp_thrift_list(&thrift, 4, MP_THRIFT_STRUCT, file->group_count);
    for (uint32_t group = 0; group < file->group_count; group++)
        write_group(&thrift, file, group);
    mp_thrift_binary(&thrift, 6, created_by);
    write_column_orders(&thrift, file->leaf_count);
    mp_thrift_end(&thrift);
    bytes = (uint32_t)(file->tail.size - before);
    mp_buf_add(&file->tail, &bytes, 4);
    mp_buf_add_str(&file->tail, MAGIC);
    file->door.footer_bytes = bytes;
}

/* ---- statistics for the catalog -------------------------------------------------------------- */

static struct mp_str bound_str(struct mp_arena *arena, struct mp_layout layout, int which,
                               const struct mp_extreme *extreme, struct mp_bound *bound)
{
    mp_bound_make(layout, which, mp_str_n(extreme->data, extreme->kept), extreme->size,
                  MP_STATS_TEXT_MAX, bound);
    return mp_arena_str(arena, mp_str_n(bound->data, bound->has ? bound->size : 0));
}

static void column_stats(struct file *file, uint32_t field, struct mp_column_stats *ret)
{
    bool nested = is_nested(&file->fields[field]); /* has no bounds */
    struct mp_layout layout = {0};
    char bytes[2][MP_STATS_TEXT_MAX];
    struct mp_extremes extremes = {.of = {{.data = bytes[0]}, {.data = bytes[1]}}};
    struct mp_bound low, high;

    if (!nested)
        layout = mp_layout_of(file->fields[field].type);
    *ret = (struct mp_column_stats){.field_id = file->fields[field].field_id,
                                    .type = file->fields[field].type};
    for (uint32_t group = 0; group < file->group_count; group++) {
        const struct mp_parquet_chunk *chunk = file->fields[field].chunks[group];

        ret->rows += chunk->rows;
        ret->nulls += chunk->nulls;
        ret->nans += chunk->nans;
        ret->compressed_bytes += chunk->bytes;
        if (!nested)
            mp_extremes_merge(&extremes, layout, &chunk->extremes);
    }
    assert(ret->rows == file->door.rows);
    if (!extremes.has)
        return;
    ret->min = bound_str(&file->arena, layout, 0, &extremes.of[0], &low);
    ret->max = bound_str(&file->arena, layout, 1, &extremes.of[1], &high);
    ret->has_bounds = low.has && high.has;
    ret->min_exact = ret->has_bounds && low.exact;
    ret->max_exact = ret->has_bounds && high.exact;
}

/* ---- the door -------------------------------------------------------------------------------- */

struct mp_parquet_file *mp_parquet_file_new(const struct mp_parquet_field *fields,
                                            uint32_t field_count, uint32_t group_count,
                                            struct mp_str created_by)
{
    struct file *file = mp_alloc(sizeof(*file));
    struct mp_column_stats *stats;
    struct mp_str *pieces;
    uint64_t offset;

    assert(field_count > 0);
    file->fields = fields;
    file->field_count = field_count;
    file->group_count = group_count;
    file->tail = MP_BUF_INIT(TAIL_BYTES_MAX);
    mp_arena_init(&file->arena, 0);
    list_leaves(file);
    check_chunks(file);
    for (uint32_t group = 0; group < group_count; group++)
        file->door.rows += chunk_of(file, group, 0)->rows;
    file->places = mp_alloc_array((size_t)group_count * file->leaf_count, sizeof(*file->places));
    file->door.piece_count = count_pieces(file);
    pieces = mp_arena_take(&file->arena, file->door.piece_count * sizeof(*pieces));
    offset = lay_out(file, pieces);
    write_indexes(file, offset);
    write_footer(file, created_by);
    pieces[file->door.piece_count - 1] = mp_buf_str(&file->tail);
    file->door.pieces = pieces;
    file->door.bytes = offset + file->tail.size;
    stats = mp_arena_take(&file->arena, field_count * sizeof(*stats));
    for (uint32_t field = 0; field < field_count; field++)
        column_stats(file, field, &stats[field]);
    file->door.stats = stats;
    file->door.stats_count = field_count;
    mp_free(file->places);
    mp_free(file->leaves);
    file->places = NULL;
    file->leaves = NULL;
    file->fields = NULL; /* borrowed for the making only */
    return &file->door;
}

void mp_parquet_file_free(struct mp_parquet_file *door)
{
    struct file *file = (struct file *)(void *)door; /* its first member */

    if (!file)
        return;
    mp_buf_fini(&file->tail);
    mp_arena_fini(&file->arena);
    mp_free(file);
}
