/* lake/hoglake/layout.c - partition spec and sort order: as wanted, as live, compared.
 *
 *     live         wanted               result
 *     spec, equal                       fine
 *     spec         another one or none  MP_BAD_CONFIG, with both in the setting's grammar
 *     no spec      a spec               declare it
 *
 * and the same for the sort order, of which nothing is asked where the table has not all of its
 * columns. Equality is of ordered (field id, transform, buckets) and (field id, direction, nulls).
 *
 * After  the millpond sheet, 11.2 and 11.3.
 */
#include "lake/hoglake/priv.h"

#include <assert.h>
#include <stdio.h>

static const struct mp_live_column *column_of(const struct mp_schema *schema, struct mp_str name)
{
    for (uint32_t i = 0; i < schema->column_count; i++)
        if (mp_str_eq(schema->columns[i].name, name))
            return &schema->columns[i];
    return NULL;
}

/* --- printing --- */

static struct mp_str name_of(const struct mp_schema *schema, int32_t field_id, char scratch[32])
{
    const struct mp_live_column *column = mp_schema_by_id(schema, field_id);

    if (column)
        return column->name;
    snprintf(scratch, 32, "<field %d>", field_id);
    return mp_str_c(scratch);
}

void mp_hog_layout_print_partition(const struct mp_schema *schema, struct mp_buf *ret)
{
    char scratch[32];

    if (!schema->partition_count)
        mp_buf_add_c(ret, "none");
    for (uint32_t i = 0; i < schema->partition_count; i++) {
        const struct mp_partition_field *field = &schema->partition[i];
        struct mp_hog_partition_key key = {name_of(schema, field->field_id, scratch),
                                           field->transform, field->buckets};

        if (i)
            mp_buf_add_byte(ret, ',');
        mp_hog_partition_by_print(&key, ret);
    }
}

static void print_sort(const struct mp_schema *schema, struct mp_buf *ret)
{
    char scratch[32];

    if (!schema->sort_count)
        mp_buf_add_c(ret, "none");
    for (uint32_t i = 0; i < schema->sort_count; i++) {
        const struct mp_sort_field *field = &schema->sort[i];
        struct mp_str name = name_of(schema, field->field_id, scratch);

        mp_buf_printf(ret, "%s%.*s%s%s", i ? "," : "", MP_STR_ARG(name),
                      field->descending ? " desc" : "", field->nulls_first ? " nulls first" : "");
    }
}

static void print_wanted_partition(const struct mp_hog_layout *want, struct mp_buf *ret)
{
    if (!want->key_count)
        mp_buf_add_c(ret, "none");
    for (uint32_t i = 0; i < want->key_count; i++) {
        if (i)
            mp_buf_add_byte(ret, ',');
        mp_hog_partition_by_print(&want->keys[i], ret);
    }
}

static void print_wanted_sort(const struct mp_hog_layout *want, struct mp_buf *ret)
{
    if (!want->sort_count)
        mp_buf_add_c(ret, "none");
    for (uint32_t i = 0; i < want->sort_count; i++)
        mp_buf_printf(ret, "%s%.*s", i ? "," : "", MP_STR_ARG(want->sort[i]));
}

/* --- comparing --- */

static bool partition_eq(const struct mp_partition_field *a, const struct mp_partition_field *b,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i].field_id != b[i].field_id || a[i].transform != b[i].transform ||
            a[i].buckets != b[i].buckets)
            return false;
    return true;
}

static bool sort_eq(const struct mp_sort_field *a, const struct mp_sort_field *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i].field_id != b[i].field_id || a[i].descending != b[i].descending ||
            a[i].nulls_first != b[i].nulls_first)
            return false;
    return true;
}

static bool wanted_partition_is_live(const struct mp_hog_layout *want,
                                     const struct mp_schema *schema)
{
    if (want->key_count != schema->partition_count)
        return false;
    for (uint32_t i = 0; i < want->key_count; i++) {
        const struct mp_live_column *column = column_of(schema, want->keys[i].column);
        struct mp_partition_field field = {
            .field_id = column ? column->field_id : 0,
            .transform = want->keys[i].transform,
            .buckets = want->keys[i].buckets,
        };

        if (!partition_eq(&field, &schema->partition[i], 1))
            return false;
    }
    return true;
}

static bool wanted_sort_is_live(const struct mp_hog_layout *want, const struct mp_schema *schema)
{
    if (want->sort_count != schema->sort_count)
        return false;
    for (uint32_t i = 0; i < want->sort_count; i++) {
        struct mp_sort_field field = {.field_id = column_of(schema, want->sort[i])->field_id};

        if (!sort_eq(&field, &schema->sort[i], 1))
            return false;
    }
    return true;
}

static enum mp_code other_layout(const char *what, const char *setting,
                                 const struct mp_hog_layout *want, const struct mp_schema *schema,
                                 void (*print_live)(const struct mp_schema *, struct mp_buf *),
                                 void (*print_want)(const struct mp_hog_layout *, struct mp_buf *),
                                 struct mp_err *err)
{
    struct mp_buf live = MP_BUF_INIT(1 << 20), wanted = MP_BUF_INIT(1 << 20);
    enum mp_code code;

    print_live(schema, &live);
    print_want(want, &wanted);
    code = mp_err_set(err, MP_BAD_CONFIG, "the table's %s is %.180s, %s asks for %.180s", what,
                      mp_buf_c(&live), setting, mp_buf_c(&wanted));
    mp_buf_fini(&live);
    mp_buf_fini(&wanted);
    return code;
}

enum mp_code mp_hog_layout_compare(const struct mp_hog_layout *want, const struct mp_schema *schema,
                                   struct mp_err *err, unsigned *ret_declare,
                                   struct mp_str *ret_missing_sort)
{
    unsigned declare = 0;
    struct mp_str missing = {NULL, 0};

    if (schema->partition_count && !wanted_partition_is_live(want, schema))
        return other_layout("partition spec", "HOGLAKE_PARTITION_BY", want, schema,
                            mp_hog_layout_print_partition, print_wanted_partition, err);
    for (uint32_t i = 0; i < want->key_count; i++)
        if (!column_of(schema, want->keys[i].column))
            return mp_err_set(err, MP_BAD_CONFIG,
                              "HOGLAKE_PARTITION_BY names column \"%.*s\", which the table does not"
                              " have: pin its type in MILLPOND_TYPED_COLUMNS",
                              MP_STR_ARG(want->keys[i].column));
    if (want->key_count && !schema->partition_count)
        declare |= MP_HOG_DECLARE_PARTITION;
    for (uint32_t i = 0; i < want->sort_count && !missing.data; i++)
        if (!column_of(schema, want->sort[i]))
            missing = want->sort[i];
    if (!missing.data && schema->sort_count && !wanted_sort_is_live(want, schema))
        return other_layout("sort order", "MILLPOND_SORT_BY", want, schema, print_sort,
                            print_wanted_sort, err);
    if (!missing.data && want->sort_count && !schema->sort_count)
        declare |= MP_HOG_DECLARE_SORT;
    *ret_declare = declare;
    *ret_missing_sort = missing;
    return MP_OK;
}

bool mp_hog_layout_fits(const struct mp_lake_table *made, const struct mp_lake_table *now)
{
    const struct mp_schema *a = &made->schema, *b = &now->schema;

    if (!mp_str_eq(made->uuid, now->uuid) || a->partition_count != b->partition_count ||
        a->sort_count != b->sort_count || !partition_eq(a->partition, b->partition, a->partition_count) ||
        !sort_eq(a->sort, b->sort, a->sort_count))
        return false;
    for (uint32_t i = 0; i < a->column_count; i++) {
        const struct mp_live_column *column = mp_schema_by_id(b, a->columns[i].field_id);

        if (!column || !mp_type_eq(column->type, a->columns[i].type))
            return false;
    }
    return true;
}

/* --- to and from the wire --- */

void mp_hog_layout_fields(struct mp_arena *arena, const struct mp_hog_layout *want,
                          const struct mp_schema *schema,
                          struct mp_wire_partition_spec *ret_partition,
                          struct mp_wire_sort_spec *ret_sort)
{
    struct mp_wire_partition_field *keys = mp_arena_take(arena, sizeof(*keys) * (want->key_count + 1));
    struct mp_wire_sort_field *sort = mp_arena_take(arena, sizeof(*sort) * (want->sort_count + 1));
    uint32_t sort_count = 0;

    for (uint32_t i = 0; i < want->key_count; i++) {
        const struct mp_live_column *column = column_of(schema, want->keys[i].column);

        assert(column);
        keys[i] = (struct mp_wire_partition_field){
            .source_field_id = column->field_id,
            .transform = mp_hog_transform_name(want->keys[i].transform),
            .has_param = want->keys[i].transform == MP_TRANSFORM_BUCKET_ICEBERG,
            .param = want->keys[i].buckets,
        };
    }
    for (uint32_t i = 0; i < want->sort_count; i++) {
        const struct mp_live_column *column = column_of(schema, want->sort[i]);

        if (!column)
            break;
        sort[sort_count++] = (struct mp_wire_sort_field){column->field_id, MP_STR("asc"),
                                                         MP_STR("nulls_last")};
    }
    *ret_partition = (struct mp_wire_partition_spec){.fields = keys, .field_count = want->key_count};
    *ret_sort = (struct mp_wire_sort_spec){
        .fields = sort, .field_count = sort_count == want->sort_count ? sort_count : 0};
}

bool mp_hog_layout_read(struct mp_arena *arena, const struct mp_wire_table *wire,
                        struct mp_schema *ret, const char **ret_wrong)
{
    uint32_t key_count = wire->partition.field_count, sort_count = wire->sort.field_count;
    struct mp_partition_field *keys = mp_arena_take(arena, sizeof(*keys) * (key_count + 1));
    struct mp_sort_field *sort = mp_arena_take(arena, sizeof(*sort) * (sort_count + 1));

    for (uint32_t i = 0; i < key_count; i++) {
        const struct mp_wire_partition_field *field = &wire->partition.fields[i];

        *ret_wrong = "partition spec";
        if (field->source_field_id <= 0 || field->source_field_id > INT32_MAX ||
            !mp_hog_transform_of_name(field->transform, &keys[i].transform))
            return false;
        keys[i].field_id = (int32_t)field->source_field_id;
        if (keys[i].transform != MP_TRANSFORM_BUCKET_ICEBERG)
            continue;
        if (!field->has_param || field->param < 1 || field->param > INT32_MAX)
            return false;
        keys[i].buckets = (uint32_t)field->param;
    }
    for (uint32_t i = 0; i < sort_count; i++) {
        const struct mp_wire_sort_field *field = &wire->sort.fields[i];
        bool descending = mp_str_eq_fold(field->direction, MP_STR("desc"));
        bool first = mp_str_eq_fold(field->null_order, MP_STR("nulls_first"));

        *ret_wrong = "sort order";
        if (field->source_field_id <= 0 || field->source_field_id > INT32_MAX ||
            (!descending && !mp_str_eq_fold(field->direction, MP_STR("asc"))) ||
            (!first && !mp_str_eq_fold(field->null_order, MP_STR("nulls_last"))))
            return false;
        sort[i] = (struct mp_sort_field){(int32_t)field->source_field_id, descending, first};
    }
    ret->partition = keys;
    ret->partition_count = key_count;
    ret->sort = sort;
    ret->sort_count = sort_count;
    return true;
}
