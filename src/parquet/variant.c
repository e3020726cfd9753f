/* parquet/variant.c - a VARIANT: rows of another column -> the leaves of a group.
 *
 *     optional group NAME (VARIANT(1))            around: 1 and more where the row is not null
 *         required binary metadata
 *         required binary value               optional where members are stored apart; then also:
 *         optional group typed_value          around: 2, an object
 *             required group MEMBER           for each of them, in order of their names
 *                 optional binary value
 *                 optional TYPE typed_value
 *
 * The rows of a row group become columns in segments of the pool, which are encoded as any others
 * and go back on the way; so at most one row group is there twice.
 *
 * After  VariantShredding.md; LogicalTypes.md, "VARIANT".
 */
#include "parquet/parquet_priv.h"

#include "base/mem.h"
#include "column/transform.h"

enum { SAMPLE_ROWS = 1000 };

/* What stands around a row's values. */
enum { AROUND_NOTHING = 0, AROUND_VARIANT = 1, AROUND_OBJECT = 2 };

enum { LEAF_METADATA, LEAF_VALUE, LEAF_MEMBERS };

/* One leaf of a row group while it is filled. */
struct leaf {
    struct mp_column column;
    uint64_t *validity;
};

struct work {
    struct mp_parquet_encoder *encoder;
    struct mp_segment_pool *pool;
    const struct mp_column *source;
    const char **places; /* of each row's value in the source; NULL: null */
    struct mp_variant_shape shape;
    struct mp_parquet_variant_counts counts;
    /* the row group */
    uint32_t rows;
    uint8_t *around;
    struct leaf *leaves;
    uint32_t leaf_count;
};

/* ---- the source ------------------------------------------------------------------------------ */

static struct mp_str text_at(const char *place)
{
    return mp_str_n(place + 4, mp_text_bytes(place));
}

/* Types whose texts are JSON numbers or words. */
static bool spells_json(struct mp_type type)
{
    return type.id == MP_TYPE_BOOL || mp_type_is_integer(type) || mp_type_is_float(type) ||
           type.id == MP_TYPE_INT128 || type.id == MP_TYPE_DECIMAL;
}

static bool encode_fixed(struct mp_variant *variant, struct mp_type type, const char *place,
                         struct mp_variant_row *ret)
{
    struct mp_arena arena;
    struct mp_str text;
    bool fits;

    mp_arena_init(&arena, 128);
    text = mp_value_text(&arena, type, mp_str_n(place, mp_type_width(type)));
    if (spells_json(type))
        fits = mp_variant_encode(variant, text, ret);
    else
        fits = mp_variant_encode_string(variant, text, ret);
    mp_arena_fini(&arena);
    return fits;
}

static bool encode_row(const struct work *work, const char *place, struct mp_variant_row *ret)
{
    struct mp_variant *variant = work->encoder->variant;
    struct mp_type type = work->source->type;

    if (mp_type_width(type))
        return encode_fixed(variant, type, place, ret);
    if (type.id == MP_TYPE_BLOB)
        return mp_variant_encode_string(variant, text_at(place), ret);
    return mp_variant_encode(variant, text_at(place), ret);
}

/* Looks at rows all over the source for members to store apart. */
static struct mp_variant_survey *survey_rows(const struct work *work,
                                             const struct mp_parquet_variant_options *options)
{
    struct mp_variant_survey *survey = mp_variant_survey_new(&options->apart);
    uint32_t step = work->source->rows / SAMPLE_ROWS + 1;

    for (uint32_t row = 0; row < work->source->rows; row += step)
        if (work->places[row])
            mp_variant_survey_add(survey, text_at(work->places[row]));
    return survey;
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static struct mp_type leaf_type(const struct mp_variant_shape *shape, uint32_t leaf)
{
    bool typed = leaf >= LEAF_MEMBERS && (leaf - LEAF_MEMBERS) % 2;

    return typed ? shape->fields[(leaf - LEAF_MEMBERS) / 2].type : MP_TYPE(BLOB);
}

static char *append(struct work *work, uint32_t at, uint32_t row, size_t bytes)
{
    struct leaf *leaf = &work->leaves[at];

    leaf->validity[row / 64] |= UINT64_C(1) << (row & 63);
    leaf->column.values++;
    return mp_segment_append(work->pool, &leaf->column.segments, bytes);
}

static void append_text(struct work *work, uint32_t at, uint32_t row, struct mp_str text)
{
    uint32_t size = (uint32_t)text.size;
    char *place = append(work, at, row, text.size + 4);

    memcpy(place, &size, 4);
    if (size)
        memcpy(place + 4, text.data, size);
}

static void append_part(struct work *work, uint32_t field, uint32_t row,
                        const struct mp_variant_part *part)
{
    uint32_t value = LEAF_MEMBERS + field * 2, typed = value + 1;

    if (part->place == MP_VARIANT_ABSENT)
        return;
    if (part->place == MP_VARIANT_VALUE)
        append_text(work, value, row, part->bytes);
    else if (work->shape.fields[field].type.id == MP_TYPE_VARCHAR)
        append_text(work, typed, row, part->bytes);
    else if (work->shape.fields[field].type.id == MP_TYPE_BOOL)
        *append(work, typed, row, 1) = part->truth;
    else
        memcpy(append(work, typed, row, 8), &part->i64, 8); /* f64 lies there too */
}

static void append_row(struct work *work, uint32_t row, const struct mp_variant_row *variant)
{
    work->around[row] = variant->object ? AROUND_OBJECT : AROUND_VARIANT;
    work->counts.rounded += variant->rounded;
    append_text(work, LEAF_METADATA, row, variant->metadata);
    if (variant->value.size)
        append_text(work, LEAF_VALUE, row, variant->value);
    for (uint32_t field = 0; variant->object && field < work->shape.count; field++)
        append_part(work, field, row, &variant->parts[field]);
}

static void leaves_begin(struct work *work, uint32_t rows)
{
    work->rows = rows;
    work->around = mp_alloc(rows);
    work->leaf_count = LEAF_MEMBERS + work->shape.count * 2;
    work->leaves = mp_alloc_array(work->leaf_count, sizeof(*work->leaves));
    for (uint32_t i = 0; i < work->leaf_count; i++) {
        struct leaf *leaf = &work->leaves[i];

        leaf->validity = mp_alloc_array((size_t)rows / 64 + 1, sizeof(*leaf->validity));
        leaf->column = (struct mp_column){.name = work->source->name,
                                          .type = leaf_type(&work->shape, i),
                                          .rows = rows,
                                          .validity = leaf->validity};
    }
}

static void leaves_end(struct work *work)
{
    for (uint32_t i = 0; i < work->leaf_count; i++) {
        mp_segment_put_list(work->pool, &work->leaves[i].column.segments);
        mp_free(work->leaves[i].validity);
    }
    mp_free(work->leaves);
    mp_free(work->around);
    work->leaves = NULL;
    work->leaf_count = 0;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

void mp_parquet_group_free(struct mp_parquet_group *group)
{
    if (!group)
        return;
    for (uint32_t i = 0; i < group->count; i++)
        mp_parquet_chunk_free(group->leaves[i]);
    mp_free(group->leaves);
    mp_arena_fini(&group->arena);
    mp_free(group);
}

static struct mp_parquet_group *group_new(const struct mp_variant_shape *shape)
{
    struct mp_parquet_group *group = mp_alloc(sizeof(*group));
    struct mp_variant_field *fields;

    mp_arena_init(&group->arena, 1024);
    fields = mp_arena_take(&group->arena, (shape->count + 1) * sizeof(*fields));
    for (uint32_t i = 0; i < shape->count; i++)
        fields[i] = (struct mp_variant_field){mp_arena_str(&group->arena, shape->fields[i].name),
                                              shape->fields[i].type};
    group->shape = (struct mp_variant_shape){fields, shape->count};
    group->count = LEAF_MEMBERS + shape->count * 2;
    group->leaves = mp_alloc_array(group->count, sizeof(*group->leaves));
    return group;
}

/* Optional groups around a leaf that are not those of a column at the top: of an unshredded VARIANT
 * none, since there is a value exactly where the VARIANT is. */
static struct mp_nest nest_of(const struct work *work, uint32_t leaf)
{
    struct mp_nest nest = {0};

    if (leaf == LEAF_METADATA || !work->shape.count)
        return nest;
    nest.around = work->around;
    nest.groups = leaf == LEAF_VALUE ? AROUND_VARIANT : AROUND_OBJECT;
    return nest;
}

static enum mp_code encode_leaf(struct work *work, uint32_t at, struct mp_err *err,
                                struct mp_parquet_chunk **ret)
{
    struct mp_parquet_encoder *encoder = work->encoder;
    struct mp_parquet_rows all = {NULL, work->rows};
    struct mp_parquet_cut cut = {&all, 1, work->rows};
    enum mp_code code;

    encoder->nest = nest_of(work, at);
    if (encoder->nest.around && !encoder->levels)
        encoder->levels = mp_alloc_array(MP_PAGE_ROWS_MAX, sizeof(*encoder->levels));
    code = mp_parquet_encode(encoder, work->pool, &work->leaves[at].column, &cut, err, ret);
    encoder->nest = (struct mp_nest){0};
    return code;
}

/* Encodes one row group: rows first to first + count - 1 of the file's. */
static enum mp_code encode_group(struct work *work, const struct mp_parquet_rows *file,
                                 uint32_t first, uint32_t count, struct mp_err *err,
                                 struct mp_parquet_chunk **ret)
{
    struct mp_parquet_chunk *chunk = mp_alloc(sizeof(*chunk));
    enum mp_code code = MP_OK;

    leaves_begin(work, count);
    for (uint32_t i = 0; i < count; i++) {
        const char *place = work->places[file->rows ? file->rows[first + i] : first + i];
        struct mp_variant_row row;

        if (!place)
            continue;
        if (encode_row(work, place, &row))
            append_row(work, i, &row);
        else
            work->counts.unfit++;
    }
    chunk->type = MP_TYPE(VARIANT);
    chunk->rows = count;
    chunk->nulls = count - work->leaves[LEAF_METADATA].column.values;
    chunk->group = group_new(&work->shape);
    for (uint32_t i = 0; !code && i < work->leaf_count; i++) {
        code = encode_leaf(work, i, err, &chunk->group->leaves[i]);
        if (!code)
            chunk->bytes += chunk->group->leaves[i]->bytes;
    }
    leaves_end(work);
    if (code)
        mp_parquet_chunk_free(chunk);
    else
        *ret = chunk;
    return code;
}

enum mp_code mp_parquet_encode_variant(struct mp_parquet_encoder *encoder,
                                       struct mp_segment_pool *pool, const struct mp_column *source,
                                       const struct mp_parquet_cut *cut,
                                       const struct mp_parquet_variant_options *options,
                                       struct mp_err *err, struct mp_parquet_chunk **ret,
                                       struct mp_parquet_variant_counts *counts)
{
    struct work work = {.encoder = encoder, .pool = pool, .source = source};
    struct mp_variant_survey *survey = NULL;
    enum mp_code code = MP_OK;
    uint32_t at = 0;

    if (!encoder->variant)
        encoder->variant = mp_variant_new();
    work.places = mp_column_places(source, mp_type_width(source->type));
    if (options->apart_max && !mp_type_width(source->type)) {
        survey = survey_rows(&work, options);
        work.shape = mp_variant_survey_shape(survey, options->apart_max);
    }
    mp_variant_set_shape(encoder->variant, &work.shape);
    for (uint32_t file = 0; !code && file < cut->file_count; file++) {
        const struct mp_parquet_rows *rows = &cut->files[file];

        for (uint32_t first = 0, count; !code && first < rows->count; first += count) {
            count = rows->count - first;
            if (count > cut->group_rows_max)
                count = cut->group_rows_max;
            code = encode_group(&work, rows, first, count, err, &ret[at]);
            at += !code;
        }
    }
    for (uint32_t i = 0; code && i < at; i++) {
        mp_parquet_chunk_free(ret[i]);
        ret[i] = NULL;
    }
    if (!code) {
        counts->unfit += work.counts.unfit;
        counts->rounded += work.counts.rounded;
    }
    mp_variant_set_shape(encoder->variant, &(struct mp_variant_shape){0}); /* its names go */
    mp_variant_survey_free(survey);
    mp_free(work.places);
    return code;
}
