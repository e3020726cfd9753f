#include "column/batch_priv.h"

#include "base/mem.h"
#include "column/cast.h"

#include <assert.h>
#include <stdlib.h>

/* The slot of a key: no column yet, a reason to rescue, or a builder. */
enum { KEY_NEW = 0, KEY_RESCUE = 1, KEY_BUILDER = KEY_RESCUE + MP_RESCUE_REASONS };

const char *mp_rescue_name(enum mp_rescue reason)
{
    static const char *const names[] = {
        [MP_RESCUE_TYPE] = "type", [MP_RESCUE_ROUNDED] = "rounded",
        [MP_RESCUE_NAME] = "name", [MP_RESCUE_RESERVED] = "reserved",
        [MP_RESCUE_CASE] = "case", [MP_RESCUE_BUDGET] = "column_budget",
    };

    return names[reason];
}

/* FNV-1a over the folded name: names are looked up once a batch. */
static uint32_t name_hash(struct mp_str name)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < name.size; i++)
        hash = (hash ^ mp_ascii_lower((unsigned char)name.data[i])) * 16777619u;
    return hash;
}

/* The slot of a name: of its builder, or the empty one where it would go. */
static uint32_t *name_slot(const struct mp_batch *batch, struct mp_str name)
{
    uint32_t mask = batch->name_capacity - 1, at = name_hash(name) & mask;

    while (batch->by_name[at] &&
           !mp_batch_same_name(batch, batch->builders[batch->by_name[at] - 1].name, name))
        at = (at + 1) & mask;
    return &batch->by_name[at];
}

struct mp_builder *mp_batch_find(const struct mp_batch *batch, struct mp_str name)
{
    uint32_t found = *name_slot(batch, name);

    return found ? &batch->builders[found - 1] : NULL;
}

static void grow_names(struct mp_batch *batch)
{
    batch->name_capacity = batch->name_capacity ? batch->name_capacity * 2 : 64;
    mp_free(batch->by_name);
    batch->by_name = mp_alloc_array(batch->name_capacity, sizeof(*batch->by_name));
    for (uint32_t i = 0; i < batch->builder_count; i++)
        *name_slot(batch, batch->builders[i].name) = i + 1;
}

/* How values of a decided type are taken. */
static uint8_t lane_of_type(const struct mp_batch *batch, struct mp_type type)
{
    if (type.id == MP_TYPE_NONE)
        return MP_LANE_NONE;
    if (type.id == MP_TYPE_INT64 && batch->options.widen)
        return MP_LANE_INT;
    if (type.id == MP_TYPE_VARCHAR)
        return MP_LANE_TEXT;
    if (type.id == MP_TYPE_JSON)
        return MP_LANE_JSON;
    if (type.id == MP_TYPE_BLOB)
        return MP_LANE_BLOB;
    return type.id == MP_TYPE_VARIANT || type.id == MP_TYPE_OTHER ? MP_LANE_REFUSE : MP_LANE_CAST;
}

struct mp_builder *mp_batch_add(struct mp_batch *batch, struct mp_str name, struct mp_type type)
{
    struct mp_builder *builder;

    if ((batch->builder_count + 1) * 2 > batch->name_capacity)
        grow_names(batch);
    if (batch->builder_count == batch->builder_capacity) {
        batch->builder_capacity += batch->builder_capacity / 2 + 32;
        batch->builders =
            mp_realloc(batch->builders, batch->builder_capacity * sizeof(*batch->builders));
    }
    builder = &batch->builders[batch->builder_count];
    *builder = (struct mp_builder){
        .name = mp_arena_str(&batch->arena, name),
        .type = type,
        .lane = lane_of_type(batch, type),
        .claim_row = UINT32_MAX,
    };
    *name_slot(batch, name) = ++batch->builder_count;
    return builder;
}

static bool is_refused(const struct mp_batch *batch, struct mp_str name)
{
    for (uint32_t i = 0; i < batch->options.refused_count; i++)
        if (mp_batch_same_name(batch, batch->options.refused[i], name))
            return true;
    return false;
}

struct mp_batch *mp_batch_new(struct mp_segment_pool *pool, const struct mp_batch_options *options)
{
    struct mp_batch *batch = mp_alloc(sizeof(*batch));

    batch->pool = pool;
    batch->options = *options;
    batch->scratch = MP_BUF_INIT(UINT32_MAX);
    mp_arena_init(&batch->arena, 65536);
    grow_names(batch);
    for (uint32_t i = 0; options->live && i < options->live->column_count; i++) {
        const struct mp_live_column *live = &options->live->columns[i];
        struct mp_builder *builder = mp_batch_add(batch, live->name, live->type);

        builder->live = true;
        builder->field_id = live->field_id;
    }
    for (uint32_t i = 0; i < options->pin_count; i++) {
        struct mp_builder *builder = mp_batch_find(batch, options->pins[i].name);

        if (!builder && is_refused(batch, options->pins[i].name))
            continue;
        if (!builder)
            builder = mp_batch_add(batch, options->pins[i].name, options->pins[i].type);
        /* the looser pinned rules hold where the live type is the pinned one */
        builder->pinned = mp_type_eq(builder->type, options->pins[i].type);
        if (builder->pinned && builder->type.id == MP_TYPE_INT64)
            builder->lane = MP_LANE_CAST; /* a pin is not widened */
    }
    return batch;
}

void mp_batch_free(struct mp_batch *batch)
{
    if (!batch)
        return;
    for (uint32_t i = 0; i < batch->column_count; i++)
        mp_segment_put_list(batch->pool, &batch->columns[i].segments);
    for (uint32_t i = 0; i < batch->builder_count; i++) {
        mp_segment_put_list(batch->pool, &batch->builders[i].list);
        mp_free(batch->builders[i].validity.words);
        mp_free(batch->builders[i].integers.words);
    }
    mp_json_free(batch->checker);
    mp_buf_fini(&batch->scratch);
    mp_free(batch->builders);
    mp_free(batch->keys);
    mp_free(batch->by_name);
    mp_free(batch->rescued);
    mp_free(batch->add);
    mp_free(batch->widen);
    mp_free(batch->promote);
    mp_free(batch->columns);
    mp_arena_fini(&batch->arena);
    mp_free(batch);
}

void mp_batch_rescue(struct mp_batch *batch, uint32_t row, struct mp_str name,
                     enum mp_rescue reason, uint32_t waits, const struct mp_json_field *field)
{
    struct mp_rescued *last =
        batch->rescued_count ? &batch->rescued[batch->rescued_count - 1] : NULL;

    if (!waits)
        batch->rescued_by[reason]++;
    if (!batch->options.rescued_name.size && !waits)
        return;
    if (batch->rescued_count == batch->rescued_capacity) {
        batch->rescued_capacity += batch->rescued_capacity / 2 + 64;
        batch->rescued =
            mp_realloc(batch->rescued, batch->rescued_capacity * sizeof(*batch->rescued));
        last = batch->rescued_count ? &batch->rescued[batch->rescued_count - 1] : NULL;
    }
    if (last && last->row > row)
        batch->rescued_disorder = true;
    mp_buf_clear(&batch->scratch);
    mp_cast_rescue(field, &batch->scratch);
    batch->rescued_bytes += batch->scratch.size + name.size;
    batch->rescued[batch->rescued_count++] = (struct mp_rescued){
        .row = row,
        .waits = waits,
        .reason = (uint8_t)reason,
        .name = mp_arena_str(&batch->arena, name),
        .text = mp_arena_str(&batch->arena, mp_buf_str(&batch->scratch)),
    };
}

static bool is_own_name(const struct mp_batch *batch, struct mp_str name)
{
    const struct mp_batch_options *options = &batch->options;

    return (options->rescued_name.size && mp_batch_same_name(batch, name, options->rescued_name)) ||
           (options->inserted_at_name.size &&
            mp_batch_same_name(batch, name, options->inserted_at_name)) ||
           mp_batch_companion(batch, name);
}

/* The pipeline's own columns that the table has not yet: they have their place in the budget. */
static uint32_t own_columns(const struct mp_batch *batch)
{
    const struct mp_batch_options *options = &batch->options;

    return (options->rescued_name.size && !mp_batch_find(batch, options->rescued_name)) +
           (options->inserted_at_name.size && !mp_batch_find(batch, options->inserted_at_name)) +
           mp_batch_companions_missing(batch);
}

static uint32_t refuse_name(struct mp_batch *batch, struct mp_str name)
{
    if (batch->names_refused_count < MP_BATCH_NAMES_KEPT)
        batch->names_refused[batch->names_refused_count] = mp_arena_str(&batch->arena, name);
    batch->names_refused_count++;
    return KEY_RESCUE + MP_RESCUE_NAME;
}

/* Looks a key up that this batch has not met: its builder, a new one, or why there is none. A key
 * that has only had nulls gets no builder yet. */
static uint32_t look_up(struct mp_batch *batch, struct mp_str name, bool null)
{
    struct mp_builder *builder;
    bool same;

    builder = mp_batch_find(batch, name);
    if (mp_batch_companion(batch, name) || (builder && builder->type.id == MP_TYPE_VARIANT))
        batch->variant_keys++;
    if (is_own_name(batch, name))
        return KEY_RESCUE + MP_RESCUE_RESERVED;
    if (!builder) {
        if ((batch->options.name_ok && !batch->options.name_ok(name)) || is_refused(batch, name))
            return refuse_name(batch, name);
        if (null)
            return KEY_NEW;
        if (batch->builder_count + own_columns(batch) >= batch->options.columns_max)
            return KEY_RESCUE + MP_RESCUE_BUDGET;
        builder = mp_batch_add(batch, name, MP_TYPE(NONE));
    }
    same = mp_str_eq(builder->name, name);
    batch->aliases = batch->aliases || !same;
    builder->key = same || builder->keyed ? builder->name : mp_arena_str(&batch->arena, name);
    builder->keyed = true;
    return KEY_BUILDER + (uint32_t)(builder - batch->builders);
}

static void grow_keys(struct mp_batch *batch, uint32_t key)
{
    uint32_t want = batch->key_capacity * 2 + 64;

    if (want <= key)
        want = key + 1;
    batch->keys = mp_realloc(batch->keys, want * sizeof(*batch->keys));
    memset(batch->keys + batch->key_capacity, 0,
           (want - batch->key_capacity) * sizeof(*batch->keys));
    batch->key_capacity = want;
}

/* Where two fields of the record want one column, says which of them gets it: the one that spells
 * the name as the column does, else the later. */
static void claim_columns(struct mp_batch *batch, const struct mp_json *json,
                          const struct mp_json_record *record)
{
    for (uint32_t i = 0; i < record->count; i++) {
        uint32_t key = record->fields[i].key;
        uint32_t slot = key < batch->key_capacity ? batch->keys[key].slot : KEY_NEW;
        struct mp_builder *builder;

        if (slot < KEY_BUILDER)
            continue;
        builder = &batch->builders[slot - KEY_BUILDER];
        if (builder->claim_row == batch->rows &&
            mp_str_eq(mp_json_key_name(json, record->fields[builder->claim_field].key),
                      builder->name))
            continue;
        builder->claim_row = batch->rows;
        builder->claim_field = i;
    }
}

/* Looks a key up and remembers when the batch first saw it, if only with a null: new columns come
 * in that order. */
static void meet_key(struct mp_batch *batch, struct mp_str name, const struct mp_json_field *field)
{
    struct mp_batch_key *key = &batch->keys[field->key];

    key->slot = look_up(batch, name, field->kind == MP_JSON_NULL);
    key->absent = batch->builder_count + 1;
    if (!key->sight)
        key->sight = ++batch->sight_count;
    if (key->slot >= KEY_BUILDER && !batch->builders[key->slot - KEY_BUILDER].sight)
        batch->builders[key->slot - KEY_BUILDER].sight = key->sight;
}

/* Whether a key must be looked up for this field. One that keeps coming with nulls and has no
 * column is looked up again only when columns have come. */
static bool is_new(const struct mp_batch *batch, const struct mp_json_field *field)
{
    const struct mp_batch_key *key = &batch->keys[field->key];

    return key->slot == KEY_NEW &&
           (field->kind != MP_JSON_NULL || key->absent != batch->builder_count + 1);
}

/* Finds every key's slot before any value is stored, so that two spellings of one column are seen
 * in time. */
static void look_up_keys(struct mp_batch *batch, const struct mp_json *json,
                         const struct mp_json_record *record)
{
    for (uint32_t i = 0; i < record->count; i++) {
        const struct mp_json_field *field = &record->fields[i];

        if (__builtin_expect(field->key >= batch->key_capacity, 0))
            grow_keys(batch, field->key);
        if (__builtin_expect(is_new(batch, field), 0))
            meet_key(batch, mp_json_key_name(json, field->key), field);
    }
}

static void append_field(struct mp_batch *batch, const struct mp_json *json, uint32_t at,
                         const struct mp_json_field *field)
{
    uint32_t slot = batch->keys[field->key].slot;
    struct mp_builder *builder;
    struct mp_unfit unfit;

    if (slot < KEY_BUILDER) {
        if (slot != KEY_NEW) /* KEY_NEW: a null of a column that is not there yet */
            mp_batch_rescue(batch, batch->rows, mp_json_key_name(json, field->key),
                            (enum mp_rescue)(slot - KEY_RESCUE), 0, field);
        return;
    }
    builder = &batch->builders[slot - KEY_BUILDER];
    builder->seen = true;
    if (batch->aliases && builder->claim_field != at) {
        mp_batch_rescue(batch, batch->rows, mp_json_key_name(json, field->key), MP_RESCUE_CASE, 0,
                        field);
        return;
    }
    if (field->kind == MP_JSON_NULL)
        return;
    if (!mp_builder_put(batch, builder, field, &unfit)) {
        builder->refused += !unfit.waits;
        mp_batch_rescue(batch, batch->rows, mp_json_key_name(json, field->key), unfit.reason,
                        unfit.waits, field);
    }
}

void mp_batch_append(struct mp_batch *batch, const struct mp_json *json,
                     const struct mp_json_record *record)
{
    assert(!batch->sealed);
    assert(batch->rows < UINT32_MAX - 1);
    look_up_keys(batch, json, record);
    if (batch->aliases)
        claim_columns(batch, json, record);
    for (uint32_t i = 0; i < record->count; i++)
        append_field(batch, json, i, &record->fields[i]);
    batch->rows++;
}

uint32_t mp_batch_declare(struct mp_batch *batch, struct mp_str name, struct mp_type type)
{
    struct mp_builder *builder = mp_batch_find(batch, name);

    if (!builder)
        builder = mp_batch_add(batch, name, type);
    builder->seen = builder->pinned = true;
    return (uint32_t)(builder - batch->builders);
}

void mp_batch_set(struct mp_batch *batch, uint32_t column, const void *value)
{
    struct mp_builder *builder = &batch->builders[column];

    mp_builder_put_fixed(batch, builder, value, mp_type_width(builder->type));
}

void mp_batch_set_text(struct mp_batch *batch, uint32_t column, struct mp_str text)
{
    assert(mp_type_is_text(batch->builders[column].type));
    mp_builder_put_text(batch, &batch->builders[column], text);
}

void mp_batch_row_end(struct mp_batch *batch)
{
    assert(!batch->sealed);
    batch->rows++;
}

uint32_t mp_batch_rows(const struct mp_batch *batch)
{
    return batch->rows;
}

size_t mp_batch_own_bytes(const struct mp_batch *batch)
{
    size_t bytes = batch->arena.bytes + batch->rescued_bytes +
                   batch->rescued_capacity * sizeof(*batch->rescued) +
                   batch->builder_capacity * sizeof(*batch->builders) +
                   batch->key_capacity * sizeof(*batch->keys) +
                   batch->name_capacity * sizeof(*batch->by_name);

    for (uint32_t i = 0; i < batch->builder_count; i++)
        bytes += (batch->builders[i].validity.capacity + batch->builders[i].integers.capacity) *
                 sizeof(uint64_t);
    return bytes;
}

size_t mp_batch_bytes(const struct mp_batch *batch)
{
    return mp_batch_own_bytes(batch) + batch->segment_bytes;
}

size_t mp_batch_arrow_bytes(const struct mp_batch *batch)
{
    uint64_t bits_a_row = 0, bytes = 0;

    for (uint32_t i = 0; i < batch->builder_count; i++) {
        const struct mp_builder *builder = &batch->builders[i];
        struct mp_type type = mp_builder_type(builder);

        if (!builder->values)
            continue;
        if (mp_type_is_text(type))
            bits_a_row += 32;
        else
            bits_a_row += type.id == MP_TYPE_BOOL ? 1 : mp_type_width(type) * 8;
        bits_a_row += builder->values < batch->rows;
        bytes += builder->text_bytes;
    }
    return bytes + (bits_a_row * batch->rows + 7) / 8;
}

uint64_t mp_batch_rescued(const struct mp_batch *batch, enum mp_rescue reason)
{
    return batch->rescued_by[reason];
}

uint32_t mp_batch_column_count(const struct mp_batch *batch)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < batch->builder_count; i++)
        count += batch->builders[i].values > 0;
    return count;
}
