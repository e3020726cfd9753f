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

static void print_sort(const struct mp_schema *schema, struct mp_buf *ret)
{
    if (!schema->sort_count)
        mp_buf_add_c(ret, "none");
    for (uint32_t i = 0; i < schema->sort_count; i++) {
        const struct mp_sort_field *field = &schema->sort[i];
        const struct mp_live_column *column = mp_schema_by_id(schema, field->field_id);

        mp_buf_add_c(ret, i ? ", " : "");
        if (column)
            mp_buf_add_str(ret, column->name);
        else
            mp_buf_printf(ret, "field id %d", field->field_id);
        mp_buf_printf(ret, "%s%s", field->descending ? " desc" : "",
                      field->nulls_first ? " nulls first" : "");
    }
}

static void print_wanted_sort(const struct mp_hog_layout *want, struct mp_buf *ret)
{
    if (!want->sort_count)
        mp_buf_add_c(ret, "none");
    for (uint32_t i = 0; i < want->sort_count; i++)
        mp_buf_printf(ret, "%s%.*s", i ? ", " : "", MP_STR_ARG(want->sort[i]));
}

/* --- comparing --- */

static bool partition_eq(const struct mp_partition_field *a, uint32_t a_count,
                         const struct mp_partition_field *b, uint32_t b_count)
{
    bool same = a_count == b_count;

    for (uint32_t i = 0; i < a_count && same; i++)
        same = a[i].field_id == b[i].field_id && a[i].transform == b[i].transform &&
               a[i].buckets == b[i].buckets;
    return same;
}

static bool sort_eq(const struct mp_sort_field *a, uint32_t a_count, const struct mp_sort_field *b,
                    uint32_t b_count)
{
    bool same = a_count == b_count;

    for (uint32_t i = 0; i < a_count && same; i++)
        same = a[i].field_id == b[i].field_id && a[i].descending == b[i].descending &&
               a[i].nulls_first == b[i].nulls_first;
    return same;
}

/* Takes both texts. */
static enum mp_code otherwise(const char *how, struct mp_buf *live, const char *setting,
                              struct mp_buf *wanted, struct mp_err *err)
{
    enum mp_code code =
        mp_err_set(err, MP_BAD_CONFIG, "the table is %s by %.180s, %s asks for %.180s", how,
                   mp_buf_c(live), setting, mp_buf_c(wanted));

    mp_buf_fini(live);
    mp_buf_fini(wanted);
    return code;
}

static enum mp_code compare_partition(struct mp_arena *arena, const struct mp_hog_layout *want,
                                      const struct mp_schema *schema, struct mp_err *err,
                                      struct mp_hog_declaration *ret)
{
    struct mp_buf live = MP_BUF_INIT(1 << 20), wanted = MP_BUF_INIT(1 << 20);
    struct mp_partition_field *fields;
    struct mp_wire_partition_field *wire;
    uint32_t count;
    enum mp_code code =
        mp_hog_partition_wanted(arena, want->partition_by, schema, err, &fields, &count);

    if (code) {
        mp_err_add(err, "HOGLAKE_PARTITION_BY");
        return code;
    }
    if (partition_eq(fields, count, schema->partition, schema->partition_count))
        return MP_OK;
    if (schema->partition_count) {
        mp_hog_partition_print(schema, schema->partition, schema->partition_count, &live);
        mp_hog_partition_print(schema, fields, count, &wanted);
        code =
            mp_err_set(err, MP_BAD_CONFIG,
                       "the table is partitioned by %.180s, HOGLAKE_PARTITION_BY asks for %.180s",
                       mp_buf_c(&live), mp_buf_c(&wanted));
        mp_buf_fini(&live);
        mp_buf_fini(&wanted);
        return code;
    }
    wire = mp_arena_take(arena, sizeof(*wire) * (count + 1));
    for (uint32_t i = 0; i < count; i++)
        wire[i] = mp_hog_partition_field(&fields[i]);
    ret->what |= MP_HOG_DECLARE_PARTITION;
    ret->partition = (struct mp_wire_partition_spec){.fields = wire, .field_count = count};
    return MP_OK;
}

static enum mp_code compare_sort(struct mp_arena *arena, const struct mp_hog_layout *want,
                                 const struct mp_schema *schema, struct mp_err *err,
                                 struct mp_hog_declaration *ret)
{
    uint32_t count = want->sort_count;
    struct mp_buf live = MP_BUF_INIT(1 << 20), wanted = MP_BUF_INIT(1 << 20);
    struct mp_sort_field *fields = mp_arena_take(arena, sizeof(*fields) * (count + 1));
    struct mp_wire_sort_field *wire;

    for (uint32_t i = 0; i < count; i++) {
        const struct mp_live_column *column = mp_schema_by_name(schema, want->sort[i]);

        if (!column) {
            ret->missing_sort = want->sort[i];
            return MP_OK;
        }
        fields[i].field_id = column->field_id;
    }
    if (sort_eq(fields, count, schema->sort, schema->sort_count))
        return MP_OK;
    if (schema->sort_count) {
        print_sort(schema, &live);
        print_wanted_sort(want, &wanted);
        return otherwise("sorted", &live, "MILLPOND_SORT_BY", &wanted, err);
    }
    wire = mp_arena_take(arena, sizeof(*wire) * (count + 1));
    for (uint32_t i = 0; i < count; i++)
        wire[i] =
            (struct mp_wire_sort_field){fields[i].field_id, MP_STR("asc"), MP_STR("nulls_last")};
    ret->what |= MP_HOG_DECLARE_SORT;
    ret->sort = (struct mp_wire_sort_spec){.fields = wire, .field_count = count};
    return MP_OK;
}

enum mp_code mp_hog_layout_compare(struct mp_arena *arena, const struct mp_hog_layout *want,
                                   const struct mp_schema *schema, struct mp_err *err,
                                   struct mp_hog_declaration *ret)
{
    enum mp_code code;

    *ret = (struct mp_hog_declaration){0};
    code = compare_partition(arena, want, schema, err, ret);
    return code ? code : compare_sort(arena, want, schema, err, ret);
}

bool mp_hog_layout_fits(const struct mp_lake_table *made, const struct mp_lake_table *now)
{
    const struct mp_schema *a = &made->schema, *b = &now->schema;

    if (!mp_str_eq(made->uuid, now->uuid) ||
        !partition_eq(a->partition, a->partition_count, b->partition, b->partition_count) ||
        !sort_eq(a->sort, a->sort_count, b->sort, b->sort_count))
        return false;
    for (uint32_t i = 0; i < a->column_count; i++) {
        const struct mp_live_column *column = mp_schema_by_id(b, a->columns[i].field_id);

        if (!column || !mp_type_eq(column->type, a->columns[i].type))
            return false;
    }
    return true;
}

bool mp_hog_layout_read(struct mp_arena *arena, const struct mp_wire_table *wire,
                        struct mp_schema *ret, const char **ret_wrong)
{
    uint32_t key_count = wire->partition.field_count, sort_count = wire->sort.field_count;
    struct mp_partition_field *keys = mp_arena_take(arena, sizeof(*keys) * (key_count + 1));
    struct mp_sort_field *sort = mp_arena_take(arena, sizeof(*sort) * (sort_count + 1));

    *ret_wrong = "partition spec";
    for (uint32_t i = 0; i < key_count; i++)
        if (!mp_hog_partition_read(&wire->partition.fields[i], &keys[i]))
            return false;
    *ret_wrong = "sort order";
    for (uint32_t i = 0; i < sort_count; i++) {
        const struct mp_wire_sort_field *field = &wire->sort.fields[i];
        bool descending = mp_str_eq_fold(field->direction, MP_STR("desc"));
        bool first = mp_str_eq_fold(field->null_order, MP_STR("nulls_first"));

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
    ret->spelling = MP_SPELLING_HOGLAKE;
    return true;
}
