/* column/cut.c - rows of a batch into files by partition tuple, and into order by sort columns.
 *
 * Every row gets the number of its tuple: field by field, the number so far and the field's value
 * are looked up together in a table, so that a tuple of any length ends as one small number. Rows
 * are then dealt out by counting, which keeps their order; only a sort order compares rows.
 */
#include "base/mem.h"
#include "column/transform_priv.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Where each row's value lies: a view of the segments, row by row. */
struct row_values {
    const struct mp_column *column;
    const char **at; /* NULL: null */
};

static struct row_values row_values_new(const struct mp_column *column)
{
    uint32_t width = mp_type_width(column->type), row = 0;
    struct row_values values = {column, mp_alloc_array(column->rows, sizeof(*values.at))};

    if (column->type.id == MP_TYPE_BOOL)
        width = 1;
    for (struct mp_segment *segment = column->segments.first; segment; segment = segment->next)
        for (uint32_t at = 0; at < segment->used; row++) {
            while (!mp_column_valid(column, row))
                row++;
            values.at[row] = segment->data + at;
            if (width) {
                at += width;
            } else {
                uint32_t size;

                memcpy(&size, segment->data + at, 4);
                at += 4 + size;
            }
        }
    return values;
}

static struct mp_str value_at(const struct row_values *values, uint32_t row)
{
    const char *at = values->at[row];
    uint32_t size = mp_type_width(values->column->type);

    if (mp_type_is_text(values->column->type)) {
        memcpy(&size, at, 4);
        return mp_str_n(at + 4, size);
    }
    return mp_str_n(at, values->column->type.id == MP_TYPE_BOOL ? 1 : size);
}

static const struct mp_column *column_by_id(const struct mp_column *columns, uint32_t count,
                                            int32_t field_id)
{
    for (uint32_t i = 0; i < count; i++)
        if (columns[i].field_id == field_id)
            return &columns[i];
    return NULL;
}

/* One tuple, or the beginning of one: its parent's number and the value of one more field. */
struct tuple {
    uint32_t parent;
    bool null;
    int64_t number;     /* transforms other than identity */
    struct mp_str text; /* identity: the value as it lies */
};

struct tuples {
    struct tuple *items;
    uint32_t count, capacity;
    uint32_t *slots;
    uint32_t slot_count;
};

static bool tuple_eq(const struct tuple *a, const struct tuple *b)
{
    return a->parent == b->parent && a->null == b->null && a->number == b->number &&
           mp_str_eq(a->text, b->text);
}

static uint32_t tuple_hash(const struct tuple *tuple)
{
    uint64_t hash = tuple->parent * 0x9e3779b97f4a7c15u + (uint64_t)tuple->number + tuple->null;

    if (tuple->text.size)
        hash ^= mp_murmur3(tuple->text) * 0xff51afd7ed558ccdu;
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
    return (uint32_t)(hash >> 32);
}

static uint32_t *tuple_slot(const struct tuples *tuples, const struct tuple *tuple)
{
    uint32_t mask = tuples->slot_count - 1, at = tuple_hash(tuple) & mask;

    while (tuples->slots[at] && !tuple_eq(&tuples->items[tuples->slots[at] - 1], tuple))
        at = (at + 1) & mask;
    return &tuples->slots[at];
}

static uint32_t tuple_number(struct tuples *tuples, const struct tuple *tuple)
{
    uint32_t *slot;

    if ((tuples->count + 1) * 2 > tuples->slot_count) {
        mp_free(tuples->slots);
        tuples->slot_count = tuples->slot_count ? tuples->slot_count * 2 : 256;
        tuples->slots = mp_alloc_array(tuples->slot_count, sizeof(*tuples->slots));
        for (uint32_t i = 0; i < tuples->count; i++)
            *tuple_slot(tuples, &tuples->items[i]) = i + 1;
    }
    slot = tuple_slot(tuples, tuple);
    if (*slot)
        return *slot - 1;
    if (tuples->count == tuples->capacity) {
        tuples->capacity = tuples->capacity * 2 + 64;
        tuples->items = mp_realloc(tuples->items, tuples->capacity * sizeof(*tuples->items));
    }
    tuples->items[tuples->count++] = *tuple;
    return *slot = tuples->count, tuples->count - 1;
}

static bool is_nan(struct mp_type type, struct mp_str value)
{
    double wide = 0;
    float narrow = 0;

    if (type.id == MP_TYPE_FLOAT)
        memcpy(&narrow, value.data, sizeof(narrow));
    else if (type.id == MP_TYPE_DOUBLE)
        memcpy(&wide, value.data, sizeof(wide));
    return isnan(wide) || isnan(narrow);
}

/* What a row adds to its tuple in one field. Equal values must be equal bytes, so NaNs are made
 * one: a text without data. */
static struct tuple tuple_of(const struct mp_partition_field *field,
                             const struct row_values *values, uint32_t row)
{
    struct tuple tuple = {.null = !values->at || !values->at[row]};
    struct mp_str value;

    if (tuple.null)
        return tuple;
    value = value_at(values, row);
    if (field->transform != MP_TRANSFORM_IDENTITY)
        tuple.number = mp_transform_number(field, values->column->type, value);
    else if (!is_nan(values->column->type, value))
        tuple.text = value;
    return tuple;
}

/* Brings every row's tuple number on by one field. */
static enum mp_code add_field(const struct mp_partition_field *field,
                              const struct mp_live_column *live, const struct mp_column *column,
                              uint32_t rows, struct tuples *tuples, uint32_t *numbers,
                              struct mp_err *err)
{
    struct row_values values = {.column = column};
    uint32_t last_parent = UINT32_MAX, last_number = 0;
    const char *last_at = NULL;

    if (!live)
        return mp_err_set(err, MP_BAD_CONFIG, "partition column with id %d is gone",
                          field->field_id);
    if (!mp_transform_fits(field->transform, live->type))
        return mp_err_set(err, MP_BAD_CONFIG,
                          "partition column \"%.*s\": its type has no such part",
                          MP_STR_ARG(live->name));
    if (column)
        values = row_values_new(column);
    for (uint32_t row = 0; row < rows; row++) {
        const char *at = values.at ? values.at[row] : NULL;
        struct tuple tuple;

        /* events come in order of time, so most rows repeat the tuple of the row before */
        if (numbers[row] == last_parent && at && last_at && !mp_type_is_text(column->type) &&
            memcmp(at, last_at, value_at(&values, row).size) == 0) {
            numbers[row] = last_number;
            continue;
        }
        tuple = tuple_of(field, &values, row);
        tuple.parent = last_parent = numbers[row];
        last_at = at;
        numbers[row] = last_number = tuple_number(tuples, &tuple);
    }
    mp_free(values.at);
    return MP_OK;
}

/* text: the value as it lies; without data a NaN. */
static struct mp_str identity_text(struct mp_arena *arena, const struct mp_schema *schema,
                                   struct mp_type type, struct mp_str text)
{
    if (!text.data)
        return MP_STR("nan");
    if (schema->spelling == MP_SPELLING_HOGLAKE)
        return mp_value_text_hoglake(arena, type, text);
    return mp_value_text(arena, type, text);
}

/* The values of a whole tuple, from its last field back to its first. */
static struct mp_partition_value *tuple_values(struct mp_arena *arena,
                                               const struct mp_schema *schema,
                                               const struct tuples *tuples, uint32_t number)
{
    struct mp_partition_value *values =
        mp_arena_take(arena, schema->partition_count * sizeof(*values));

    for (uint32_t i = schema->partition_count; i-- > 0;) {
        const struct tuple *tuple = &tuples[i].items[number];
        const struct mp_live_column *live = mp_schema_by_id(schema, schema->partition[i].field_id);

        values[i].null = tuple->null;
        if (!tuple->null && schema->partition[i].transform == MP_TRANSFORM_IDENTITY)
            values[i].text = identity_text(arena, schema, live->type, tuple->text);
        else if (!tuple->null)
            values[i].text = mp_str_c(mp_arena_printf(arena, "%lld", (long long)tuple->number));
        number = tuple->parent;
    }
    return values;
}

/* One sort column, ready to be compared. */
struct sort_key {
    struct row_values values;
    bool descending, nulls_first;
};

static int compare_numbers(struct mp_type type, const char *a, const char *b)
{
    double left, right;
    int64_t x = 0, y = 0;
    uint32_t width = mp_type_width(type);

    if (mp_type_is_float(type) || type.id == MP_TYPE_INT128) {
        if (width == 4) {
            float narrow;

            memcpy(&narrow, a, 4), left = narrow;
            memcpy(&narrow, b, 4), right = narrow;
        } else {
            memcpy(&left, a, 8), memcpy(&right, b, 8);
        }
        if (isnan(left) || isnan(right))
            return isnan(left) - isnan(right);
        return (left > right) - (left < right);
    }
    if (width == 4) {
        int32_t i, j;

        memcpy(&i, a, 4), memcpy(&j, b, 4);
        x = i, y = j;
        if (type.id >= MP_TYPE_UINT8 && type.id <= MP_TYPE_UINT32)
            x = (uint32_t)i, y = (uint32_t)j;
    } else {
        memcpy(&x, a, 8), memcpy(&y, b, 8);
        if (type.id == MP_TYPE_UINT64)
            return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
    }
    return (x > y) - (x < y);
}

static int compare_values(const struct sort_key *key, uint32_t a, uint32_t b)
{
    struct mp_type type = key->values.column->type;
    const char *left = key->values.at[a], *right = key->values.at[b];
    int order;

    if (!left || !right)
        return left == right ? 0 : (left ? 1 : -1) * (key->nulls_first ? 1 : -1);
    if (mp_type_is_text(type) || type.id == MP_TYPE_UUID) {
        order = mp_str_cmp(value_at(&key->values, a), value_at(&key->values, b));
    } else if (type.id == MP_TYPE_BOOL) {
        order = *left - *right;
    } else if (mp_type_width(type) == 16) { /* a wide decimal: big-endian, the sign first */
        order =
            ((signed char)*left > (signed char)*right) - ((signed char)*left < (signed char)*right);
        order = order ? order : memcmp(left, right, 16);
    } else {
        order = compare_numbers(type, left, right);
    }
    return key->descending ? -order : order;
}

struct sort_keys {
    struct sort_key *items;
    uint32_t count;
};

static int compare_rows(const void *a, const void *b, void *self)
{
    const struct sort_keys *keys = self;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    for (uint32_t i = 0; i < keys->count; i++) {
        int order = compare_values(&keys->items[i], left, right);

        if (order)
            return order;
    }
    return (left > right) - (left < right);
}

static struct sort_keys sort_keys_new(const struct mp_column *columns, uint32_t column_count,
                                      const struct mp_schema *schema)
{
    struct sort_keys keys = {mp_alloc_array(schema->sort_count, sizeof(*keys.items)), 0};

    for (uint32_t i = 0; i < schema->sort_count; i++) {
        const struct mp_sort_field *field = &schema->sort[i];
        const struct mp_column *column = column_by_id(columns, column_count, field->field_id);

        if (column && column->type.id != MP_TYPE_VARIANT)
            keys.items[keys.count++] =
                (struct sort_key){row_values_new(column), field->descending, field->nulls_first};
    }
    return keys;
}

static void sort_keys_fini(struct sort_keys *keys)
{
    for (uint32_t i = 0; i < keys->count; i++)
        mp_free(keys->items[i].values.at);
    mp_free(keys->items);
}

/* Deals the rows out to their files, in order of the files' first rows. */
static void deal(struct mp_cut *cut, const uint32_t *numbers, uint32_t rows, uint32_t tuple_count)
{
    uint32_t *file_of = mp_alloc_array(tuple_count, sizeof(*file_of)); /* + 1 */
    uint32_t *next;

    cut->files = mp_alloc_array(tuple_count, sizeof(*cut->files));
    cut->rows = mp_alloc_array(rows, sizeof(*cut->rows));
    for (uint32_t row = 0; row < rows; row++) {
        if (!file_of[numbers[row]])
            file_of[numbers[row]] = ++cut->count;
        cut->files[file_of[numbers[row]] - 1].count++;
    }
    next = mp_alloc_array(cut->count, sizeof(*next));
    for (uint32_t file = 0, first = 0; file < cut->count; file++) {
        cut->files[file].rows = cut->rows + first;
        next[file] = first;
        first += cut->files[file].count;
    }
    for (uint32_t row = 0; row < rows; row++)
        cut->rows[next[file_of[numbers[row]] - 1]++] = row;
    mp_free(next);
    mp_free(file_of);
}

enum mp_code mp_cut_columns(struct mp_arena *arena, const struct mp_column *columns,
                            uint32_t column_count, const struct mp_schema *schema, uint32_t rows,
                            struct mp_err *err, struct mp_cut *ret)
{
    struct tuples *tuples = mp_alloc_array(schema->partition_count, sizeof(*tuples));
    uint32_t *numbers = mp_alloc_array(rows, sizeof(*numbers)), tuple_count = 1;
    struct sort_keys keys = {0};
    struct mp_cut cut = {0};
    enum mp_code code = MP_OK;

    assert(rows > 0);
    for (uint32_t i = 0; i < schema->partition_count && !code; i++) {
        const struct mp_partition_field *field = &schema->partition[i];

        code = add_field(field, mp_schema_by_id(schema, field->field_id),
                         column_by_id(columns, column_count, field->field_id), rows, &tuples[i],
                         numbers, err);
        tuple_count = tuples[i].count;
    }
    if (code)
        goto out;
    deal(&cut, numbers, rows, tuple_count);
    for (uint32_t file = 0; file < cut.count; file++)
        cut.files[file].values =
            tuple_values(arena, schema, tuples, numbers[cut.files[file].rows[0]]);
    keys = sort_keys_new(columns, column_count, schema);
    for (uint32_t file = 0, first = 0; keys.count && file < cut.count; file++) {
        qsort_r(cut.rows + first, cut.files[file].count, sizeof(*cut.rows), compare_rows, &keys);
        first += cut.files[file].count;
    }
    if (cut.count == 1 && keys.count == 0) { /* all rows as they are: nothing to gather */
        cut.files[0].rows = NULL;
        mp_free(cut.rows);
        cut.rows = NULL;
    }
    *ret = cut;
out:
    sort_keys_fini(&keys);
    for (uint32_t i = 0; i < schema->partition_count; i++) {
        mp_free(tuples[i].items);
        mp_free(tuples[i].slots);
    }
    mp_free(tuples);
    mp_free(numbers);
    return code;
}

void mp_cut_fini(struct mp_cut *cut)
{
    mp_free(cut->files);
    mp_free(cut->rows);
    *cut = (struct mp_cut){0};
}
