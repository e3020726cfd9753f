/* parquet/join_footer.c - the footer of a joined file.
 *
 * What a footer says of a chunk is copied field by field as it stands, since a value's bytes in the
 * compact protocol do not depend on what is around them: so fields that this code does not know
 * stay. Written anew are the path (names may be those of another input) and the offsets; left out
 * is what points to bytes that are not copied: index page, bloom filter, page indexes.
 *
 * After  parquet.thrift: FileMetaData, RowGroup, ColumnChunk, ColumnMetaData.
 */
#include "parquet/join_priv.h"
#include "parquet/thrift_in.h"

enum { FORMAT_VERSION = 2, FIELDS_MAX = 32, PAIRS_MAX = 1000 };

#define MAGIC            MP_STR("PAR1")
#define BUF_BYTES_MAX    ((size_t)1 << 30)
#define ARROW_SCHEMA_KEY MP_STR("ARROW:schema")

static const struct mp_parquet_footer *names_of(const struct mp_join *join)
{
    return join->inputs[join->options->names_from].footer;
}

static bool adds_ids(const struct mp_join *join, uint32_t input)
{
    return join->ids && !mp_row_ids_there(join->inputs[input].footer, join->options);
}

/* Leaves that are not row ids: the same in every input. */
static uint32_t data_leaves(const struct mp_join *join)
{
    const struct mp_parquet_footer *footer = join->inputs[0].footer;

    return footer->leaf_count - mp_row_ids_there(footer, join->options);
}

/* ---- schema ---------------------------------------------------------------------------------- */

static void put_row_id_element(struct mp_thrift *thrift, const struct mp_join *join)
{
    mp_thrift_begin(thrift);
    mp_thrift_i32(thrift, 1, MP_PHYSICAL_INT64);
    mp_thrift_i32(thrift, 3, join->optional_ids ? MP_PARQUET_OPTIONAL : MP_PARQUET_REQUIRED);
    mp_thrift_binary(thrift, 4, join->options->row_id_name);
    mp_thrift_i32(thrift, 9, join->options->row_id_field_id);
    mp_thrift_end(thrift);
}

static void put_schema(struct mp_thrift *thrift, const struct mp_join *join)
{
    const struct mp_parquet_footer *names = names_of(join);
    bool own_ids = mp_row_ids_there(names, join->options);
    uint32_t elements = names->node_count - own_ids;
    struct mp_thrift_in in;

    mp_thrift_in_begin(&in, names->schema_raw, NULL);
    mp_thrift_in_list(&in, MP_THRIFT_STRUCT, 1);
    mp_thrift_in_skip(&in, MP_THRIFT_STRUCT); /* the root */
    mp_thrift_list(thrift, 2, MP_THRIFT_STRUCT, elements + (join->ids != NULL));
    mp_thrift_begin(thrift);
    mp_thrift_binary(thrift, 4, names->nodes[0].name);
    mp_thrift_i32(thrift, 5,
                  (int32_t)(names->nodes[0].child_count - own_ids + (join->ids != NULL)));
    mp_thrift_end(thrift);
    for (uint32_t i = 1; i < elements; i++)
        mp_buf_add_str(thrift->out, mp_thrift_in_skip(&in, MP_THRIFT_STRUCT));
    assert(in.code == MP_OK); /* it was read before */
    if (join->ids)
        put_row_id_element(thrift, join);
}

static void put_path(struct mp_thrift *thrift, const struct mp_parquet_footer *names, uint32_t node)
{
    uint32_t path[MP_PARQUET_DEPTH_MAX + 1];
    uint32_t size = 0;

    for (; node; node = names->nodes[node].parent) {
        assert(size < sizeof(path) / sizeof(*path));
        path[size++] = node;
    }
    mp_thrift_list(thrift, 3, MP_THRIFT_BINARY, size);
    while (size)
        mp_thrift_add_binary(thrift, names->nodes[path[--size]].name);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

struct field {
    uint8_t type; /* 0: not there */
    struct mp_str raw;
};

static void take_fields(struct mp_str meta, struct field *ret)
{
    struct mp_thrift_field field = {0};
    struct mp_thrift_in in;

    mp_thrift_in_begin(&in, meta, NULL);
    while (mp_thrift_in_field(&in, &field)) {
        struct mp_str raw = mp_thrift_in_skip(&in, field.type);

        if (field.id > 0 && field.id < FIELDS_MAX)
            ret[field.id] = (struct field){field.type, raw};
    }
    assert(in.code == MP_OK); /* it was read before */
}

/* A chunk that was copied to `offset`. node: its leaf in the schema that gives the names. */
static void put_copied(struct mp_thrift *thrift, const struct mp_parquet_footer *names,
                       uint32_t node, const struct mp_parquet_column_chunk *chunk, int64_t offset)
{
    struct field fields[FIELDS_MAX] = {0};

    take_fields(chunk->raw, fields);
    mp_thrift_struct(thrift, 3);
    for (int16_t id = 1; id < FIELDS_MAX; id++) {
        switch (id) {
        case 3:
            put_path(thrift, names, node);
            break;
        case 9:
            mp_thrift_i64(thrift, id,
                          chunk->data_page_offset ? chunk->data_page_offset - chunk->start + offset
                                                  : 0);
            break;
        case 11:
            if (chunk->dictionary_page_offset)
                mp_thrift_i64(thrift, id, chunk->dictionary_page_offset - chunk->start + offset);
            break;
        case 10: /* index_page_offset, bloom_filter_offset, bloom_filter_length */
        case 14:
        case 15:
            break;
        default:
            if (fields[id].type)
                mp_thrift_raw(thrift, id, fields[id].type, fields[id].raw);
        }
    }
    mp_thrift_end(thrift);
}

static void put_id_statistics(struct mp_thrift *thrift, int64_t first, int64_t rows)
{
    int64_t last = first + rows - 1;

    mp_thrift_struct(thrift, 12);
    mp_thrift_i64(thrift, 3, 0);
    mp_thrift_binary(thrift, 5, mp_str_n(&last, 8));
    mp_thrift_binary(thrift, 6, mp_str_n(&first, 8));
    mp_thrift_bool(thrift, 7, true);
    mp_thrift_bool(thrift, 8, true);
    mp_thrift_end(thrift);
}

/* A chunk of row ids that was made. */
static void put_made(struct mp_thrift *thrift, const struct mp_join *join,
                     const struct mp_row_ids *ids, int64_t rows, int64_t offset)
{
    mp_thrift_struct(thrift, 3);
    mp_thrift_i32(thrift, 1, MP_PHYSICAL_INT64);
    mp_thrift_list(thrift, 2, MP_THRIFT_I32, 2);
    mp_thrift_add_i32(thrift, MP_ENCODING_PLAIN);
    mp_thrift_add_i32(thrift, MP_ENCODING_RLE);
    mp_thrift_list(thrift, 3, MP_THRIFT_BINARY, 1);
    mp_thrift_add_binary(thrift, join->options->row_id_name);
    mp_thrift_i32(thrift, 4, mp_codec_number((uint8_t)join->options->codec));
    mp_thrift_i64(thrift, 5, rows);
    mp_thrift_i64(thrift, 6, (int64_t)ids->raw_bytes);
    mp_thrift_i64(thrift, 7, (int64_t)ids->bytes);
    mp_thrift_i64(thrift, 9, offset);
    put_id_statistics(thrift, ids->first, rows);
    mp_thrift_list(thrift, 13, MP_THRIFT_STRUCT, 1);
    mp_thrift_begin(thrift);
    mp_thrift_i32(thrift, 1, MP_PAGE_DATA);
    mp_thrift_i32(thrift, 2, MP_ENCODING_PLAIN);
    mp_thrift_i32(thrift, 3, (int32_t)ids->page_count);
    mp_thrift_end(thrift);
    mp_thrift_end(thrift);
}

/* A chunk of row ids that the input has. Its path is ours, as the schema's last element. */
static void put_own_ids(struct mp_thrift *thrift, const struct mp_join *join,
                        const struct mp_parquet_column_chunk *chunk, int64_t offset)
{
    struct mp_parquet_node nodes[2] = {[1] = {.name = join->options->row_id_name}};
    struct mp_parquet_footer names = {.nodes = nodes, .node_count = 2};

    put_copied(thrift, &names, 1, chunk, offset);
}

/* ---- row groups ------------------------------------------------------------------------------ */

struct place {
    uint64_t offset;  /* of the next chunk */
    uint32_t ordinal; /* of the next row group */
};

static void put_chunks(struct mp_thrift *thrift, const struct mp_join *join, uint32_t input,
                       const struct mp_parquet_row_group *group, struct place *place)
{
    const struct mp_parquet_footer *names = names_of(join);
    uint32_t data = data_leaves(join);
    const struct mp_row_ids *ids = join->ids ? &join->ids[place->ordinal] : NULL;

    mp_thrift_list(thrift, 1, MP_THRIFT_STRUCT, data + (ids != NULL));
    for (uint32_t leaf = 0; leaf < data + (ids != NULL); leaf++) {
        bool made = leaf == data && adds_ids(join, input);
        int64_t offset = (int64_t)place->offset;

        mp_thrift_begin(thrift);
        mp_thrift_i64(thrift, 2, 0); /* file_offset: no ColumnMetaData stands outside the footer */
        if (made)
            put_made(thrift, join, ids, group->rows, offset);
        else if (leaf == data)
            put_own_ids(thrift, join, &group->chunks[leaf], offset);
        else
            put_copied(thrift, names, names->leaves[leaf], &group->chunks[leaf], offset);
        mp_thrift_end(thrift);
        place->offset += made ? ids->bytes : (uint64_t)group->chunks[leaf].bytes;
    }
}

static void put_group(struct mp_thrift *thrift, const struct mp_join *join, uint32_t input,
                      const struct mp_parquet_row_group *group, struct place *place)
{
    uint64_t start = place->offset;
    uint64_t raw = (uint64_t)group->raw_bytes;

    if (adds_ids(join, input))
        raw += join->ids[place->ordinal].raw_bytes;
    mp_thrift_begin(thrift);
    put_chunks(thrift, join, input, group, place);
    mp_thrift_i64(thrift, 2, (int64_t)raw);
    mp_thrift_i64(thrift, 3, group->rows);
    if (group->sorting_columns.size)
        mp_thrift_raw(thrift, 4, MP_THRIFT_LIST, group->sorting_columns);
    mp_thrift_i64(thrift, 5, (int64_t)start);
    mp_thrift_i64(thrift, 6, (int64_t)(place->offset - start));
    if (place->ordinal <= INT16_MAX)
        mp_thrift_i16(thrift, 7, (int16_t)place->ordinal);
    mp_thrift_end(thrift);
    place->ordinal++;
}

static uint32_t count_groups(const struct mp_join *join)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < join->count; i++)
        for (uint32_t group = 0; group < join->inputs[i].footer->group_count; group++)
            count += join->inputs[i].footer->groups[group].rows > 0;
    return count;
}

static enum mp_code put_groups(struct mp_thrift *thrift, const struct mp_join *join,
                               struct mp_err *err)
{
    struct place place = {.offset = MAGIC.size};

    mp_thrift_list(thrift, 4, MP_THRIFT_STRUCT, count_groups(join));
    for (uint32_t i = 0; i < join->count; i++) {
        const struct mp_parquet_footer *footer = join->inputs[i].footer;

        for (uint32_t group = 0; group < footer->group_count; group++) {
            if (thrift->out->size > MP_PARQUET_FOOTER_BYTES_MAX)
                return mp_err_set(err, MP_REFUSED, "a footer of more than %u bytes",
                                  MP_PARQUET_FOOTER_BYTES_MAX);
            if (footer->groups[group].rows)
                put_group(thrift, join, i, &footer->groups[group], &place);
        }
    }
    return MP_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

static bool has_pair(const struct mp_parquet_footer *footer, const struct mp_parquet_pair *pair)
{
    for (uint32_t i = 0; i < footer->pair_count && i < PAIRS_MAX; i++)
        if (mp_str_eq(footer->pairs[i].key, pair->key))
            return mp_str_eq(footer->pairs[i].value, pair->value);
    return false;
}

static bool keeps_pair(const struct mp_join *join, const struct mp_parquet_pair *pair)
{
    for (uint32_t i = 0; i < join->count; i++)
        if (!has_pair(join->inputs[i].footer, pair) ||
            (adds_ids(join, i) && mp_str_eq(pair->key, ARROW_SCHEMA_KEY)))
            return false;
    return true;
}

static void put_pairs(struct mp_thrift *thrift, const struct mp_join *join)
{
    const struct mp_parquet_footer *first = join->inputs[0].footer;
    bool keeps[PAIRS_MAX];
    uint32_t count = 0;

    if (first->pair_count > PAIRS_MAX)
        return;
    for (uint32_t i = 0; i < first->pair_count; i++) {
        keeps[i] = keeps_pair(join, &first->pairs[i]);
        count += keeps[i];
    }
    if (!count)
        return;
    mp_thrift_list(thrift, 5, MP_THRIFT_STRUCT, count);
    for (uint32_t i = 0; i < first->pair_count; i++)
        if (keeps[i]) {
            mp_thrift_begin(thrift);
            mp_thrift_binary(thrift, 1, first->pairs[i].key);
            mp_thrift_binary(thrift, 2, first->pairs[i].value);
            mp_thrift_end(thrift);
        }
}

/* Orders that are known and the same everywhere; else none, and readers believe no bound. */
static bool keeps_orders(const struct mp_join *join)
{
    const struct mp_parquet_footer *first = join->inputs[0].footer;
    uint32_t data = data_leaves(join);

    for (uint32_t i = 0; i < join->count; i++) {
        const struct mp_parquet_footer *footer = join->inputs[i].footer;

        if (!footer->has_orders || (data && memcmp(footer->orders, first->orders, data) != 0))
            return false;
        if (footer->leaf_count > data && footer->orders[data] != MP_PARQUET_ORDER_TYPE)
            return false;
    }
    for (uint32_t leaf = 0; leaf < data; leaf++)
        if (first->orders[leaf] == MP_PARQUET_ORDER_LATER)
            return false;
    return true;
}

static void put_orders(struct mp_thrift *thrift, const struct mp_join *join)
{
    uint32_t data = data_leaves(join);
    uint32_t count = data + (join->ids != NULL);

    if (!keeps_orders(join))
        return;
    mp_thrift_list(thrift, 7, MP_THRIFT_STRUCT, count);
    for (uint32_t leaf = 0; leaf < count; leaf++) {
        mp_thrift_begin(thrift);
        mp_thrift_struct(thrift, leaf < data ? join->inputs[0].footer->orders[leaf]
                                             : MP_PARQUET_ORDER_TYPE);
        mp_thrift_end(thrift);
        mp_thrift_end(thrift);
    }
}

enum mp_code mp_join_footer(const struct mp_join *join, struct mp_err *err, struct mp_buf *ret)
{
    struct mp_thrift thrift = {.out = ret};
    int64_t rows = 0;
    uint32_t bytes;
    enum mp_code code;

    *ret = MP_BUF_INIT(BUF_BYTES_MAX);
    for (uint32_t i = 0; i < join->count; i++)
        if (__builtin_add_overflow(rows, join->inputs[i].footer->rows, &rows))
            return mp_err_set(err, MP_BAD_DATA, "more than %lld rows", (long long)INT64_MAX);
    mp_thrift_begin(&thrift);
    mp_thrift_i32(&thrift, 1, FORMAT_VERSION);
    put_schema(&thrift, join);
    mp_thrift_i64(&thrift, 3, rows);
    code = put_groups(&thrift, join, err);
    if (code)
        return code;
    put_pairs(&thrift, join);
    mp_thrift_binary(&thrift, 6, join->options->created_by);
    put_orders(&thrift, join);
    mp_thrift_end(&thrift);
    bytes = (uint32_t)ret->size;
    mp_buf_add(ret, &bytes, 4);
    mp_buf_add_str(ret, MAGIC);
    return MP_OK;
}
