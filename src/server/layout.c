/* server/layout.c - see columns.h: partition specs and sort orders. */
#include "base/civil.h"
#include "config/text.h"
#include "server/columns.h"

static const struct transform {
    const char *name;
    bool temporal;
} transforms[] = {{"identity", false}, {"bucket", false}, {"year", true},
                  {"month", true},     {"day", true},     {"hour", true}};

static enum mp_code check_source(struct mp_arena *arena, struct mp_columns columns,
                                 int64_t field_id, const char *what, struct mp_err *err,
                                 struct mp_column_place *ret)
{
    struct mp_column_place place;

    if (!mp_columns_find(arena, columns, field_id, &place))
        return mp_err_set(err, MP_BAD_DATA, "%s: field id %lld is no live column", what,
                          (long long)field_id);
    if (mp_hog_types[place.type].container || place.type == MP_HOG_VARIANT)
        return mp_err_set(err, MP_BAD_DATA, "%s: column %s is a %s", what, place.path,
                          mp_hog_types[place.type].name);
    if (place.repeated)
        return mp_err_set(err, MP_BAD_DATA, "%s: column %s lies below a list or a map", what,
                          place.path);
    *ret = place;
    return MP_OK;
}

static enum mp_code check_transform(struct mp_wire_partition_field *field,
                                    const struct mp_column_place *source, struct mp_err *err)
{
    const struct mp_hog_type_info *type = &mp_hog_types[source->type];
    const struct transform *transform = NULL;

    for (size_t i = 0; i < sizeof(transforms) / sizeof(*transforms); i++)
        if (mp_str_eq_fold(field->transform, mp_str_c(transforms[i].name)))
            transform = &transforms[i];
    if (!transform)
        return mp_err_set(err, MP_BAD_DATA, "unknown partition transform \"%.*s\"",
                          field->transform.size > 60 ? 60 : (int)field->transform.size,
                          field->transform.data);
    field->transform = mp_str_c(transform->name);
    if (strcmp(transform->name, "bucket") != 0) {
        if (field->has_param)
            return mp_err_set(err, MP_BAD_DATA, "partition transform %s takes no transform_param",
                              transform->name);
        if (transform->temporal && !type->temporal)
            return mp_err_set(err, MP_BAD_DATA, "partition transform %s: column %s is a %s",
                              transform->name, source->path, type->name);
        return MP_OK;
    }
    if (!field->has_param || field->param < 1 || field->param > INT32_MAX)
        return mp_err_set(err, MP_BAD_DATA,
                          "partition transform bucket needs a transform_param "
                          "of at least 1");
    if (!type->bucket)
        return mp_err_set(err, MP_BAD_DATA, "partition transform bucket: column %s is a %s: %s",
                          source->path, type->name,
                          type->not_bucket ? type->not_bucket : "it cannot be bucketed");
    return MP_OK;
}

enum mp_code mp_partition_fields_check(struct mp_arena *arena, struct mp_columns columns,
                                       struct mp_wire_partition_field *fields, uint32_t count,
                                       struct mp_err *err)
{
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < count && !code; i++) {
        struct mp_column_place source;

        code =
            check_source(arena, columns, fields[i].source_field_id, "partition spec", err, &source);
        if (!code)
            code = check_transform(&fields[i], &source, err);
    }
    return code;
}

/* Brings a word to the spelling of the table. */
static bool canonical(struct mp_str *word, const char *a, const char *b)
{
    const char *found = mp_str_eq_fold(*word, mp_str_c(a))   ? a
                        : mp_str_eq_fold(*word, mp_str_c(b)) ? b
                                                             : NULL;

    if (found)
        *word = mp_str_c(found);
    return found;
}

enum mp_code mp_sort_fields_check(struct mp_arena *arena, struct mp_columns columns,
                                  struct mp_wire_sort_field *fields, uint32_t count,
                                  struct mp_err *err)
{
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < count && !code; i++) {
        struct mp_column_place source;

        code = check_source(arena, columns, fields[i].source_field_id, "sort order", err, &source);
        if (code)
            break;
        if (!canonical(&fields[i].direction, "asc", "desc"))
            return mp_err_set(err, MP_BAD_DATA, "sort order: direction must be asc or desc");
        if (!canonical(&fields[i].null_order, "nulls_first", "nulls_last"))
            return mp_err_set(err, MP_BAD_DATA,
                              "sort order: null_order must be nulls_first or nulls_last");
        for (uint32_t k = 0; k < i; k++)
            if (fields[k].source_field_id == fields[i].source_field_id)
                return mp_err_set(err, MP_BAD_DATA, "sort order: column %s stands in it twice",
                                  source.path);
    }
    return code;
}

/* Count of a unit since 1970 as a bound of a type that has a calendar. */
static void print_count(struct mp_buf *buf, enum mp_hog_type type, int64_t count)
{
    struct mp_str bytes = {(const char *)&count, type == MP_HOG_DATE ? 4 : 8};

    mp_hog_bound_print(buf, type, 0, bytes); /* little endian, as we are */
}

void mp_partition_value_print(struct mp_buf *buf, struct mp_str transform, enum mp_hog_type type,
                              struct mp_str raw)
{
    const int64_t count_max = INT64_C(2000000000), hour_us = INT64_C(3600000000);
    bool identity = mp_str_eq(transform, MP_STR("identity")), fits = false;
    int64_t count = 0;

    if (raw.data && identity && type != MP_HOG_TIMESTAMP_NS) {
        mp_buf_add_json(buf, raw);
        return;
    }
    if (!raw.data || !mp_text_integer(raw, &count, &fits) || !fits ||
        (!identity && (count > count_max || count < -count_max)))
        mp_buf_add_c(buf, "null");
    else if (identity)
        print_count(buf, MP_HOG_TIMESTAMP_NS, count);
    else if (mp_str_eq(transform, MP_STR("year")))
        mp_buf_printf(buf, "\"%04lld\"", (long long)(1970 + count));
    else if (mp_str_eq(transform, MP_STR("month")))
        mp_buf_printf(buf, "\"%04lld-%02lld\"", (long long)(1970 + mp_floor_div(count, 12)),
                      (long long)(mp_floor_mod(count, 12) + 1));
    else if (mp_str_eq(transform, MP_STR("day")))
        print_count(buf, MP_HOG_DATE, count);
    else if (mp_str_eq(transform, MP_STR("hour")))
        print_count(buf, MP_HOG_TIMESTAMP, count * hour_us);
    else
        mp_buf_printf(buf, "%lld", (long long)count);
}
