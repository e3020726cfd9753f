#include "base/mem.h"
#include "base/number.h"
#include "column/batch_priv.h"
#include "column/cast.h"

#include <assert.h>
#include <math.h>

void mp_bits_grow(struct mp_bits *bits, uint32_t at)
{
    uint32_t want = bits->capacity + bits->capacity / 2 + 16;

    if (want < at / 64 + 1)
        want = at / 64 + 1;
    bits->words = mp_realloc(bits->words, want * sizeof(uint64_t));
    memset(bits->words + bits->capacity, 0, (want - bits->capacity) * sizeof(uint64_t));
    bits->capacity = want;
}

/* mp_segment_append, counted. */
static char *append_slow(struct mp_batch *batch, struct mp_segment_list *list, size_t bytes)
{
    const struct mp_segment *last = list->last;
    char *place = mp_segment_append(batch->pool, list, bytes);

    if (list->last != last)
        batch->segment_bytes += sizeof(*last) + list->last->capacity;
    return place;
}

static void put_list(struct mp_batch *batch, struct mp_segment_list *list)
{
    for (const struct mp_segment *at = list->first; at; at = at->next)
        batch->segment_bytes -= sizeof(*at) + at->capacity;
    mp_segment_put_list(batch->pool, list);
}

/* The same with its common case in line; the current row's value. */
static char *append(struct mp_batch *batch, struct mp_builder *builder, size_t bytes)
{
    struct mp_segment *last = builder->list.last;
    char *place;

    mp_bit_set(&builder->validity, batch->rows);
    builder->values++;
    if (__builtin_expect(!last || last->capacity - last->used < bytes, 0))
        return append_slow(batch, &builder->list, bytes);
    place = last->data + last->used;
    last->used += (uint32_t)bytes;
    last->count++;
    return place;
}

void mp_builder_put_fixed(struct mp_batch *batch, struct mp_builder *builder, const void *value,
                          uint32_t width)
{
    memcpy(append(batch, builder, width), value, width);
}

void mp_builder_put_text(struct mp_batch *batch, struct mp_builder *builder, struct mp_str text)
{
    uint32_t size = (uint32_t)text.size;
    char *place;

    assert(text.size <= UINT32_MAX - 4); /* a record's limit is far below */
    place = append(batch, builder, text.size + 4);
    memcpy(place, &size, 4);
    memcpy(place + 4, text.data, text.size);
    builder->text_bytes += text.size;
}

/* Walks the values of a lane of 8-byte numbers (or 1-byte booleans) in row order. */
struct walk {
    struct mp_segment *segment;
    uint32_t at, value, row;
};

static bool walk_next(const struct mp_builder *builder, struct walk *walk, uint32_t width,
                      void **ret)
{
    while (walk->segment && walk->at == walk->segment->used) {
        walk->segment = walk->segment->next;
        walk->at = 0;
    }
    if (!walk->segment)
        return false;
    for (walk->row += walk->value > 0; !mp_bit(&builder->validity, walk->row);)
        walk->row++;
    *ret = walk->segment->data + walk->at;
    walk->at += width;
    walk->value++;
    return true;
}

static struct mp_json_field number_field(const struct mp_builder *builder, uint32_t value,
                                         const void *place, char *scratch)
{
    struct mp_json_field field = {.kind = MP_JSON_INT};

    if (builder->lane == MP_LANE_BOOL) {
        field.kind = *(const unsigned char *)place ? MP_JSON_TRUE : MP_JSON_FALSE;
    } else {
        memcpy(&field.i64, place, 8);
        if (builder->lane == MP_LANE_DOUBLE ||
            (builder->lane == MP_LANE_MIXED && !mp_bit(&builder->integers, value)))
            field.kind = MP_JSON_DOUBLE;
    }
    field.text = mp_cast_text(&field, scratch);
    return field;
}

/* Spells every value so far as JSON does, and goes on as texts. */
static void to_text(struct mp_batch *batch, struct mp_builder *builder)
{
    struct mp_builder old = *builder;
    uint32_t width = old.lane == MP_LANE_BOOL ? 1 : 8;
    struct walk walk = {.segment = old.list.first};
    char scratch[MP_NUMBER_TEXT];
    void *place;

    builder->list = (struct mp_segment_list){0};
    while (walk_next(&old, &walk, width, &place)) {
        struct mp_json_field field = number_field(&old, walk.value - 1, place, scratch);
        uint32_t size = (uint32_t)field.text.size;
        char *text = append_slow(batch, &builder->list, size + 4);

        memcpy(text, &size, 4);
        memcpy(text + 4, field.text.data, size);
        builder->text_bytes += size;
    }
    assert(walk.value == builder->values);
    put_list(batch, &old.list);
    builder->lane = MP_LANE_TEXT;
}

/* From now on each value has a bit that says whether it is an int64. */
static void to_mixed(struct mp_builder *builder)
{
    if (builder->lane == MP_LANE_INT)
        for (uint32_t value = 0; value < builder->values; value++)
            mp_bit_set(&builder->integers, value);
    builder->lane = MP_LANE_MIXED;
}

/* The lane an undecided column needs for a value of this kind. */
static uint8_t lane_for(uint8_t kind)
{
    static const unsigned char lanes[] = {
        [MP_JSON_FALSE] = MP_LANE_BOOL,    [MP_JSON_TRUE] = MP_LANE_BOOL,
        [MP_JSON_INT] = MP_LANE_INT,       [MP_JSON_BIGINT] = MP_LANE_TEXT,
        [MP_JSON_DOUBLE] = MP_LANE_DOUBLE, [MP_JSON_STRING] = MP_LANE_TEXT,
        [MP_JSON_NESTED] = MP_LANE_TEXT,
    };

    return lanes[kind];
}

/* Brings an undecided column to the join of what it has and what comes. */
static void join_lane(struct mp_batch *batch, struct mp_builder *builder, uint8_t lane)
{
    uint8_t have = builder->lane;
    bool numbers = have == MP_LANE_INT || have == MP_LANE_DOUBLE || have == MP_LANE_MIXED;

    if (have == MP_LANE_NONE)
        builder->lane = lane;
    else if (have == lane || have == MP_LANE_TEXT)
        ;
    else if (numbers && (lane == MP_LANE_INT || lane == MP_LANE_DOUBLE))
        to_mixed(builder);
    else
        to_text(batch, builder);
}

static void put_number(struct mp_batch *batch, struct mp_builder *builder, bool integer,
                       const void *value)
{
    if (builder->lane == MP_LANE_MIXED && integer)
        mp_bit_set(&builder->integers, builder->values);
    mp_builder_put_fixed(batch, builder, value, 8);
}

static bool unfit(struct mp_unfit *ret, enum mp_rescue reason)
{
    *ret = (struct mp_unfit){reason, 0};
    return false;
}

/* A live BIGINT: integers in any spelling; fractions wait for the decision on widening. */
static bool put_bigint(struct mp_batch *batch, struct mp_builder *builder,
                       const struct mp_json_field *field, struct mp_unfit *ret)
{
    int64_t value;

    if (field->kind == MP_JSON_DOUBLE) {
        to_mixed(builder);
        put_number(batch, builder, false, &field->f64);
        *ret = (struct mp_unfit){MP_RESCUE_TYPE, (uint32_t)(builder - batch->builders) + 1};
        return false;
    }
    if (mp_cast_fixed(field, builder->type, builder->pinned, &value) != MP_CAST_OK)
        return unfit(ret, MP_RESCUE_TYPE);
    put_number(batch, builder, true, &value);
    return true;
}

/* Whether the type that the builder's may be promoted to holds the number. */
static bool fits_promoted(const struct mp_builder *builder, const struct mp_json_field *field)
{
    struct mp_type promoted = mp_type_promoted(builder->type);

    if (promoted.id == MP_TYPE_INT64)
        return field->kind == MP_JSON_INT;
    return promoted.id == MP_TYPE_DOUBLE && field->kind == MP_JSON_DOUBLE;
}

static bool put_cast(struct mp_batch *batch, struct mp_builder *builder,
                     const struct mp_json_field *field, struct mp_unfit *ret)
{
    unsigned char value[16];
    enum mp_cast cast = mp_cast_fixed(field, builder->type, builder->pinned, value);

    if (cast != MP_CAST_REFUSED)
        mp_builder_put_fixed(batch, builder, value, mp_type_width(builder->type));
    if (cast != MP_CAST_OK && builder->live && batch->options.promote)
        builder->too_small |= fits_promoted(builder, field);
    if (cast == MP_CAST_OK)
        return true;
    return unfit(ret, cast == MP_CAST_ROUNDED ? MP_RESCUE_ROUNDED : MP_RESCUE_TYPE);
}

/* A live JSON column takes any value's JSON text; of a string its content, if that is JSON. */
static bool put_json(struct mp_batch *batch, struct mp_builder *builder,
                     const struct mp_json_field *field, struct mp_unfit *ret)
{
    struct mp_json_record record;
    size_t at;

    mp_buf_clear(&batch->scratch);
    mp_cast_rescue(field, &batch->scratch);
    if (field->kind == MP_JSON_STRING) {
        if (!batch->checker)
            batch->checker = mp_json_new();
        mp_buf_clear(&batch->scratch);
        mp_buf_add_c(&batch->scratch, "{\"v\":[");
        mp_buf_add_str(&batch->scratch, field->text);
        mp_buf_add_c(&batch->scratch, "]}");
        if (mp_json_scan(batch->checker, mp_buf_str(&batch->scratch), &record, &at) ||
            record.count != 1 || record.fields[0].text.size < 3)
            return unfit(ret, MP_RESCUE_TYPE);
        /* one value, not "1,2": a top-level comma would have made two elements */
        mp_buf_clear(&batch->scratch);
        mp_buf_add_c(&batch->scratch, "{\"v\":");
        mp_buf_add_str(&batch->scratch, field->text);
        mp_buf_add_c(&batch->scratch, "}");
        if (mp_json_scan(batch->checker, mp_buf_str(&batch->scratch), &record, &at) ||
            record.count != 1)
            return unfit(ret, MP_RESCUE_TYPE);
        mp_builder_put_text(batch, builder, field->text);
        return true;
    }
    mp_builder_put_text(batch, builder, mp_buf_str(&batch->scratch));
    return true;
}

bool mp_builder_put(struct mp_batch *batch, struct mp_builder *builder,
                    const struct mp_json_field *field, struct mp_unfit *ret)
{
    char scratch[MP_NUMBER_TEXT];
    unsigned char truth;

    if (builder->pinned)
        builder->kinds |= (uint8_t)(1u << field->kind);
    if (builder->lane == MP_LANE_TEXT &&
        (field->kind == MP_JSON_STRING || field->kind == MP_JSON_NESTED)) {
        mp_builder_put_text(batch, builder, field->text); /* most values of events */
        return true;
    }
    if (builder->type.id == MP_TYPE_NONE)
        join_lane(batch, builder, lane_for(field->kind));
    switch (builder->lane) {
    case MP_LANE_TEXT:
        mp_builder_put_text(batch, builder, mp_cast_text(field, scratch));
        return true;
    case MP_LANE_INT:
    case MP_LANE_MIXED:
        if (builder->type.id != MP_TYPE_NONE)
            return put_bigint(batch, builder, field, ret);
        put_number(batch, builder, field->kind == MP_JSON_INT, &field->i64);
        return true;
    case MP_LANE_DOUBLE:
        put_number(batch, builder, false, &field->f64);
        return true;
    case MP_LANE_BOOL:
        truth = field->kind == MP_JSON_TRUE;
        mp_builder_put_fixed(batch, builder, &truth, 1);
        return true;
    case MP_LANE_CAST:
        return put_cast(batch, builder, field, ret);
    case MP_LANE_JSON:
        return put_json(batch, builder, field, ret);
    case MP_LANE_BLOB:
        if (field->kind != MP_JSON_STRING)
            return unfit(ret, MP_RESCUE_TYPE);
        mp_builder_put_text(batch, builder, field->text);
        return true;
    default:
        assert(builder->lane == MP_LANE_REFUSE);
        return unfit(ret, MP_RESCUE_TYPE);
    }
}

struct mp_type mp_builder_type(const struct mp_builder *builder)
{
    static const unsigned char types[] = {
        [MP_LANE_NONE] = MP_TYPE_NONE,    [MP_LANE_BOOL] = MP_TYPE_BOOL,
        [MP_LANE_INT] = MP_TYPE_INT64,    [MP_LANE_DOUBLE] = MP_TYPE_DOUBLE,
        [MP_LANE_MIXED] = MP_TYPE_DOUBLE, [MP_LANE_TEXT] = MP_TYPE_VARCHAR,
    };

    if (builder->type.id != MP_TYPE_NONE)
        return builder->type;
    return (struct mp_type){.id = types[builder->lane]};
}

/* The next rescue that waits for this builder, from *at on. */
static struct mp_rescued *waiting(struct mp_batch *batch, const struct mp_builder *builder,
                                  uint32_t *at)
{
    uint32_t waits = (uint32_t)(builder - batch->builders) + 1;

    while (*at < batch->rescued_count)
        if (batch->rescued[(*at)++].waits == waits)
            return &batch->rescued[*at - 1];
    return NULL;
}

/* Nobody needs the text any more: the value has its place. */
static void drop_rescued(struct mp_rescued *rescued)
{
    rescued->waits = UINT32_MAX;
}

void mp_builder_to_double(struct mp_batch *batch, struct mp_builder *builder)
{
    struct walk walk = {.segment = builder->list.first};
    struct mp_rescued *rescued;
    char scratch[MP_NUMBER_TEXT];
    uint32_t at = 0;
    void *place;

    assert(builder->lane == MP_LANE_INT || builder->lane == MP_LANE_MIXED);
    while ((rescued = waiting(batch, builder, &at)))
        drop_rescued(rescued);
    while (walk_next(builder, &walk, 8, &place)) {
        int64_t integer;
        double value;

        if (builder->lane == MP_LANE_MIXED && !mp_bit(&builder->integers, walk.value - 1))
            continue;
        memcpy(&integer, place, 8);
        value = (double)integer;
        if ((mp_int128)value != integer) {
            struct mp_json_field field = {.kind = MP_JSON_INT, .i64 = integer};

            field.text = mp_cast_text(&field, scratch);
            builder->refused++;
            mp_batch_rescue(batch, walk.row, builder->key, MP_RESCUE_ROUNDED, 0, &field);
        }
        memcpy(place, &value, 8);
    }
    builder->lane = MP_LANE_DOUBLE;
    builder->type = MP_TYPE(DOUBLE);
}

void mp_builder_to_int(struct mp_batch *batch, struct mp_builder *builder)
{
    struct mp_builder old = *builder;
    struct walk walk = {.segment = old.list.first};
    uint32_t rows = batch->rows, at = 0;
    void *place;

    assert(builder->lane == MP_LANE_MIXED);
    builder->list = (struct mp_segment_list){0};
    builder->validity = builder->integers = (struct mp_bits){0};
    builder->lane = MP_LANE_INT;
    builder->values = 0;
    while (walk_next(&old, &walk, 8, &place)) {
        struct mp_rescued *rescued = NULL;
        int64_t value;

        memcpy(&value, place, 8);
        if (!mp_bit(&old.integers, walk.value - 1)) {
            struct mp_json_field field = {.kind = MP_JSON_DOUBLE};

            memcpy(&field.f64, place, 8);
            rescued = waiting(batch, builder, &at);
            assert(rescued && rescued->row == walk.row);
            field.text = rescued->text;
            if (mp_cast_fixed(&field, builder->type, false, &value) != MP_CAST_OK) {
                rescued->waits = 0;
                builder->refused++;
                batch->rescued_by[rescued->reason]++;
                continue;
            }
            drop_rescued(rescued);
        }
        batch->rows = walk.row; /* put_fixed fills the current row */
        mp_builder_put_fixed(batch, builder, &value, 8);
    }
    batch->rows = rows;
    put_list(batch, &old.list);
    mp_free(old.validity.words);
    mp_free(old.integers.words);
}
