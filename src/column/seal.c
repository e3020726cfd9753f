/* column/seal.c - the end of a batch: what the table lacks, then columns as they are written. */
#include "base/mem.h"
#include "column/batch_priv.h"
#include "column/transform.h"

#include <assert.h>
#include <stdlib.h>

const struct mp_live_column *mp_batch_live(const struct mp_batch *batch,
                                           const struct mp_schema *live, struct mp_str name)
{
    for (uint32_t i = 0; live && i < live->column_count; i++)
        if (mp_batch_same_name(batch, live->columns[i].name, name))
            return &live->columns[i];
    return NULL;
}

/* Whether the builder's values can become the live type as they lie. */
static bool fits(const struct mp_builder *builder, struct mp_type live)
{
    if (mp_type_eq(mp_builder_type(builder), live))
        return true;
    return live.id == MP_TYPE_DOUBLE &&
           (builder->lane == MP_LANE_INT || builder->lane == MP_LANE_MIXED);
}

/* No more values come, so what is to be DOUBLE becomes it now, before the rescued column is asked
 * for: an integer may be rounded by it. */
static void settle_double(struct mp_batch *batch, struct mp_builder *builder,
                          const struct mp_live_column *column)
{
    bool number = builder->lane == MP_LANE_INT || builder->lane == MP_LANE_MIXED;

    if (column ? number && column->type.id == MP_TYPE_DOUBLE
               : builder->lane == MP_LANE_MIXED && builder->type.id == MP_TYPE_NONE)
        mp_builder_to_double(batch, builder);
}

static bool wants_stamp(const struct mp_batch *batch)
{
    return batch->options.inserted_at_name.size > 0;
}

static bool rescues_something(const struct mp_batch *batch)
{
    if (!batch->options.rescued_name.size)
        return false;
    for (uint32_t i = 0; i < batch->rescued_count; i++)
        if (!batch->rescued[i].waits)
            return true;
    return false;
}

/* Seen first comes first; what was not seen (sight 0, which wraps) comes last, as it was pinned. */
static int by_sight(const void *a, const void *b)
{
    const struct mp_builder *left = *(const struct mp_builder *const *)a;
    const struct mp_builder *right = *(const struct mp_builder *const *)b;
    uint32_t left_sight = left->sight - 1, right_sight = right->sight - 1;

    if (left_sight != right_sight)
        return left_sight < right_sight ? -1 : 1;
    return left < right ? -1 : left > right;
}

/* Writes the new columns that the batch's fields and pins want; gives their number. */
static uint32_t add_in_order(struct mp_batch *batch, const struct mp_schema *live)
{
    const struct mp_builder **order = mp_alloc_array(batch->builder_count, sizeof(*order));
    uint32_t count = 0;

    for (uint32_t i = 0; i < batch->builder_count; i++) {
        const struct mp_builder *builder = &batch->builders[i];

        if (!builder->live && (builder->values || (builder->pinned && !live)) &&
            !mp_batch_live(batch, live, builder->name))
            order[count++] = builder;
    }
    qsort(order, count, sizeof(*order), by_sight);
    for (uint32_t i = 0; i < count; i++)
        batch->add[i] = (struct mp_pin){order[i]->name, mp_builder_type(order[i])};
    mp_free(order);
    return count;
}

enum mp_code mp_batch_plan(struct mp_batch *batch, const struct mp_schema *live, struct mp_err *err,
                           struct mp_batch_plan *ret)
{
    struct mp_batch_plan plan = {0};
    const struct mp_live_column *column;

    assert(!batch->sealed);
    mp_free(batch->add);
    mp_free(batch->widen);
    mp_free(batch->promote);
    batch->add = mp_alloc_array(batch->builder_count + batch->options.companion_count + 2,
                                sizeof(*batch->add));
    batch->widen = mp_alloc_array(batch->builder_count, sizeof(*batch->widen));
    batch->promote = mp_alloc_array(batch->builder_count, sizeof(*batch->promote));
    for (uint32_t i = 0; i < batch->builder_count; i++) {
        struct mp_builder *builder = &batch->builders[i];

        column = mp_batch_live(batch, live, builder->name);
        if (builder->live && (!column || column->field_id != builder->field_id)) {
            if (builder->values)
                return mp_err_set(err, MP_CHANGED, "column \"%.*s\" (id %d) is gone",
                                  MP_STR_ARG(builder->name), builder->field_id);
            continue;
        }
        if (column && (builder->values || builder->too_small) && !fits(builder, column->type))
            return mp_err_set(err, MP_CHANGED, "column \"%.*s\" has another type now",
                              MP_STR_ARG(builder->name));
        if (column && builder->too_small)
            batch->promote[plan.promote_count++] =
                (struct mp_promotion){column->field_id, mp_type_promoted(column->type)};
        settle_double(batch, builder, column);
        if (column && builder->lane == MP_LANE_MIXED && column->type.id == MP_TYPE_INT64)
            batch->widen[plan.widen_count++] = column->field_id;
        else if (column)
            builder->field_id = column->field_id;
    }
    plan.add_count = add_in_order(batch, live);
    plan.add_count += mp_batch_companions_plan(batch, live, batch->add + plan.add_count);
    if (wants_stamp(batch) && !mp_batch_live(batch, live, batch->options.inserted_at_name))
        batch->add[plan.add_count++] =
            (struct mp_pin){batch->options.inserted_at_name, MP_TYPE(TIMESTAMPTZ)};
    if (rescues_something(batch) && !mp_batch_live(batch, live, batch->options.rescued_name))
        batch->add[plan.add_count++] =
            (struct mp_pin){batch->options.rescued_name, MP_TYPE(VARCHAR)};
    plan.add = batch->add;
    plan.widen = batch->widen;
    plan.promote = batch->promote;
    *ret = plan;
    return MP_OK;
}

void mp_batch_keep_bigint(struct mp_batch *batch, int32_t field_id)
{
    for (uint32_t i = 0; i < batch->builder_count; i++)
        if (batch->builders[i].field_id == field_id && batch->builders[i].lane == MP_LANE_MIXED)
            mp_builder_to_int(batch, &batch->builders[i]);
}

static int by_row(const void *a, const void *b)
{
    const struct mp_rescued *left = a, *right = b;

    return (left->row > right->row) - (left->row < right->row);
}

/* One JSON object a row, of everything rescued from it. */
static void build_rescued(struct mp_batch *batch, struct mp_builder *builder)
{
    struct mp_buf text = MP_BUF_INIT(UINT32_MAX);
    uint32_t rows = batch->rows;

    if (batch->rescued_disorder) /* glibc's qsort keeps the order of equals; names differ anyhow */
        qsort(batch->rescued, batch->rescued_count, sizeof(*batch->rescued), by_row);
    for (uint32_t i = 0; i < batch->rescued_count;) {
        uint32_t row = batch->rescued[i].row;

        mp_buf_clear(&text);
        for (; i < batch->rescued_count && batch->rescued[i].row == row; i++) {
            if (batch->rescued[i].waits)
                continue;
            mp_buf_add_byte(&text, text.size ? ',' : '{');
            mp_buf_add_json(&text, batch->rescued[i].name);
            mp_buf_add_byte(&text, ':');
            mp_buf_add_str(&text, batch->rescued[i].text);
        }
        if (!text.size)
            continue;
        mp_buf_add_byte(&text, '}');
        batch->rows = row; /* put_text fills the current row */
        mp_builder_put_text(batch, builder, mp_buf_str(&text));
    }
    batch->rows = rows;
    mp_buf_fini(&text);
}

/* The stamp as a live column's type has it, rounded down; 0 bytes: it has none. */
static uint32_t stamp_as(struct mp_type type, int64_t us, int64_t *ret)
{
    switch ((enum mp_type_id)type.id) {
    case MP_TYPE_TIMESTAMPTZ:
    case MP_TYPE_TIMESTAMP:
        *ret = us;
        return 8;
    case MP_TYPE_TIMESTAMP_S:
        *ret = us - us % 1000000;
        return 8;
    case MP_TYPE_TIMESTAMP_S_MS:
        *ret = us / 1000000 * 1000;
        return 8;
    case MP_TYPE_TIMESTAMP_MS:
        *ret = us / 1000;
        return 8;
    case MP_TYPE_TIMESTAMP_NS:
        *ret = us * 1000;
        return 8;
    case MP_TYPE_DATE:
        *ret = us / 86400000000; /* little-endian: the first four bytes are the days */
        return 4;
    default:
        return 0;
    }
}

/* The stamp in every row: as a time where the live type is one, as its text where that is text,
 * else null. */
static void build_stamp(struct mp_batch *batch, struct mp_builder *builder, int64_t stamp)
{
    int64_t value;
    uint32_t rows = batch->rows, width = stamp_as(builder->type, stamp, &value);
    struct mp_str text = {0};

    if (builder->type.id == MP_TYPE_VARCHAR)
        text = mp_value_text(&batch->arena, MP_TYPE(TIMESTAMPTZ),
                             mp_str_n((const char *)&stamp, sizeof(stamp)));
    for (batch->rows = 0; batch->rows < rows; batch->rows++)
        if (width)
            mp_builder_put_fixed(batch, builder, &value, width);
        else if (text.size)
            mp_builder_put_text(batch, builder, text);
    batch->rows = rows;
}

/* The builder of one of the pipeline's own columns, which no payload field fills. */
static struct mp_builder *own_builder(struct mp_batch *batch, struct mp_str name,
                                      struct mp_type type)
{
    struct mp_builder *builder = mp_batch_find(batch, name);

    if (!builder)
        builder = mp_batch_add(batch, name, type);
    assert(builder->values == 0);
    builder->seen = true;
    return builder;
}

void mp_batch_seal(struct mp_batch *batch, const struct mp_schema *live, int64_t inserted_at_us)
{
    struct mp_builder *builder;

    assert(!batch->sealed);
    if (wants_stamp(batch)) {
        builder = own_builder(batch, batch->options.inserted_at_name, MP_TYPE(TIMESTAMPTZ));
        build_stamp(batch, builder, inserted_at_us);
    }
    if (rescues_something(batch)) {
        builder = own_builder(batch, batch->options.rescued_name, MP_TYPE(VARCHAR));
        if (mp_type_is_text(builder->type))
            build_rescued(batch, builder);
    }
    batch->columns = mp_alloc_array(live->column_count, sizeof(*batch->columns));
    for (uint32_t i = 0; i < live->column_count; i++) {
        const struct mp_live_column *column = &live->columns[i];

        builder = mp_batch_companion_source(batch, column);
        if (builder) {
            batch->columns[batch->column_count++] = (struct mp_column){
                .name = mp_arena_str(&batch->arena, column->name),
                .type = column->type,
                .field_id = column->field_id,
                .rows = batch->rows,
                .values = builder->values,
            };
            continue;
        }
        builder = mp_batch_find(batch, column->name);
        if (column->type.id == MP_TYPE_VARIANT || column->type.id == MP_TYPE_OTHER ||
            !((builder && builder->seen) || column->default_not_null))
            continue;
        if (!builder)
            builder = mp_batch_add(batch, column->name, column->type);
        assert(builder->values == 0 || mp_type_eq(mp_builder_type(builder), column->type));
        if (builder->values)
            mp_bit_set(&builder->validity, batch->rows), /* room for all rows */
                builder->validity.words[batch->rows / 64] &= ~((uint64_t)1 << (batch->rows & 63));
        else
            mp_bits_grow(&builder->validity, batch->rows);
        batch->columns[batch->column_count++] = (struct mp_column){
            .name = builder->name,
            .type = column->type,
            .field_id = column->field_id,
            .rows = batch->rows,
            .values = builder->values,
            .validity = builder->values == batch->rows ? NULL : builder->validity.words,
            .segments = builder->list,
        };
        builder->list = (struct mp_segment_list){0};
    }
    mp_batch_companions_link(batch);
    batch->sealed = true;
}

struct mp_column *mp_batch_columns(struct mp_batch *batch, uint32_t *ret_count)
{
    assert(batch->sealed);
    *ret_count = batch->column_count;
    return batch->columns;
}

void mp_batch_check(const struct mp_batch *batch)
{
    size_t segment_bytes = 0;

    for (uint32_t i = 0; i < batch->builder_count; i++) {
        const struct mp_builder *builder = &batch->builders[i];
        uint32_t counted = 0, valid = 0;

        for (const struct mp_segment *at = builder->list.first; at; at = at->next)
            counted += at->count, segment_bytes += sizeof(*at) + at->capacity;
        for (uint32_t word = 0; word < builder->validity.capacity; word++)
            valid += (uint32_t)__builtin_popcountll(builder->validity.words[word]);
        assert(batch->sealed || counted == builder->values);
        assert(valid == builder->values);
        assert(valid <= batch->rows);
        for (uint32_t row = batch->rows; row / 64 < builder->validity.capacity; row++)
            assert(!mp_bit(&builder->validity, row));
    }
    assert(batch->sealed || segment_bytes == batch->segment_bytes);
}
