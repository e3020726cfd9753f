/* config/records.c - what is done with records: filters, order, pinned types, where odd values and
 * records go. */
#include "config/config_priv.h"

#include <assert.h>

static enum mp_code read_filter(struct mp_reader *r, enum mp_setting_id field_id,
                                enum mp_setting_id values_id, struct mp_config_filter *ret)
{
    struct mp_str values;
    struct mp_str *texts;
    int64_t *integers;
    uint32_t count;
    enum mp_code code;

    if (!mp_read_given(r, field_id) && !mp_read_given(r, values_id))
        return MP_OK;
    if (!mp_read_given(r, field_id))
        return mp_read_alone(r, values_id, field_id);
    if (!mp_read_given(r, values_id))
        return mp_read_alone(r, field_id, values_id);
    code = mp_read_text(r, field_id, &ret->field);
    if (!code)
        code = mp_read_text(r, values_id, &values);
    if (code)
        return code;
    texts = mp_text_split(r->arena, values, ',', &count);
    if (!count)
        return mp_err_set(r->err, MP_BAD_CONFIG,
                          "%s is \"%s\" and names no value for %s: allowed "
                          "is a list separated by commas",
                          mp_setting_name(values_id), mp_setting_shown(r->arena, values_id, values),
                          mp_setting_name(field_id));
    integers = mp_arena_take(r->arena, count * sizeof(*integers));
    ret->integer = true;
    for (uint32_t i = 0; i < count; i++) {
        bool fits;

        ret->integer &= mp_text_integer(texts[i], &integers[i], &fits) && fits;
    }
    for (uint32_t i = 0; i < count && ret->integer; i++)
        texts[i] = mp_str_c(mp_arena_printf(r->arena, "%lld", (long long)integers[i]));
    ret->integers = integers;
    ret->texts = texts;
    ret->count = count;
    return MP_OK;
}

enum mp_code mp_read_filters(struct mp_reader *r)
{
    enum mp_code code = read_filter(r, MP_SET_MILLPOND_FILTER_KEEP_FIELD_NAME,
                                    MP_SET_MILLPOND_FILTER_VALUES, &r->config->keep);

    if (!code)
        code = read_filter(r, MP_SET_MILLPOND_FILTER_DROP_FIELD_NAME,
                           MP_SET_MILLPOND_FILTER_DROP_VALUES, &r->config->drop);
    return code;
}

static bool list_has(const struct mp_str *list, uint32_t count, struct mp_str text)
{
    for (uint32_t i = 0; i < count; i++)
        if (mp_str_eq(list[i], text))
            return true;
    return false;
}

enum mp_code mp_read_sort(struct mp_reader *r)
{
    struct mp_config *config = r->config;
    struct mp_str value, *list;
    uint32_t count, kept = 0;
    enum mp_code code = mp_read_text(r, MP_SET_MILLPOND_SORT_BY, &value);

    if (code)
        return code;
    list = mp_text_split(r->arena, value, ',', &count);
    for (uint32_t i = 0; i < count; i++) {
        if (!mp_text_identifier(list[i]))
            return mp_read_fault(r, MP_SET_MILLPOND_SORT_BY,
                                 "column names (a letter or '_', then at most 254 letters, digits "
                                 "and '_'), separated "
                                 "by commas");
        if (!list_has(list, kept, list[i]))
            list[kept++] = list[i];
    }
    config->sort_by = list;
    config->sort_by_count = kept;
    return MP_OK;
}

static enum mp_type_id pin_type(struct mp_str name)
{
    for (uint8_t id = 0; id < MP_TYPE_COUNT; id++) {
        const char *known = mp_type_sql_name((struct mp_type){.id = id});

        if (known && mp_str_eq_fold(name, mp_str_c(known)))
            return (enum mp_type_id)id;
    }
    return MP_TYPE_NONE;
}

/* DuckLake has one column for two spellings that differ in case, hoglake two. */
static bool same_column(const struct mp_config *config, struct mp_str a, struct mp_str b)
{
    return config->destination == MP_DESTINATION_DUCKLAKE ? mp_str_eq_fold(a, b) : mp_str_eq(a, b);
}

static enum mp_code pin_add(struct mp_reader *r, struct mp_config_pin *pins, struct mp_str entry)
{
    struct mp_config *config = r->config;
    const enum mp_setting_id id = MP_SET_MILLPOND_TYPED_COLUMNS;
    struct mp_str name, type_name;
    const char *colon = NULL;
    enum mp_type_id type;

    for (size_t i = 0; i < entry.size; i++)
        if (entry.data[i] == ':')
            colon = entry.data + i; /* the last one: a name may hold a colon, a type may not */
    if (!colon)
        return mp_err_set(r->err, MP_BAD_CONFIG,
                          "%s has \"%s\": allowed is column:type, separated by commas",
                          mp_setting_name(id), mp_setting_shown(r->arena, id, entry));
    name = mp_text_trim(mp_str_n(entry.data, (size_t)(colon - entry.data)));
    type_name = mp_text_trim(mp_str_n(colon + 1, (size_t)(entry.data + entry.size - (colon + 1))));
    type = pin_type(type_name);
    if (!name.size || type == MP_TYPE_NONE)
        return mp_err_set(r->err, MP_BAD_CONFIG,
                          "%s has \"%s\": %s; allowed types are bigint, boolean, double, "
                          "timestamptz, uuid, varchar",
                          mp_setting_name(id), mp_setting_shown(r->arena, id, entry),
                          name.size ? "the type is not known" : "there is no column name");
    if (mp_str_eq_fold(name, MP_STR("_inserted_at"))) {
        if (type != MP_TYPE_TIMESTAMPTZ)
            return mp_err_set(r->err, MP_BAD_CONFIG,
                              "%s has \"%s\": _inserted_at is written by millpond itself, as "
                              "timestamptz",
                              mp_setting_name(id), mp_setting_shown(r->arena, id, entry));
        mp_config_warn(r, "%s: the pin of _inserted_at has no effect, it always is a timestamptz",
                       mp_setting_name(id));
        return MP_OK;
    }
    for (uint32_t i = 0; i < config->pin_count; i++)
        if (same_column(config, pins[i].name, name)) {
            if (pins[i].type.id == type)
                return MP_OK;
            return mp_err_set(r->err, MP_BAD_CONFIG,
                              "%s gives column \"%s\" two types: allowed is one",
                              mp_setting_name(id), mp_setting_shown(r->arena, id, name));
        }
    pins[config->pin_count++] =
        (struct mp_config_pin){mp_arena_str(r->arena, name), {.id = (uint8_t)type}};
    return MP_OK;
}

enum mp_code mp_read_pins(struct mp_reader *r)
{
    struct mp_config *config = r->config;
    struct mp_config_pin *pins;
    struct mp_str value, *list;
    uint32_t count;
    enum mp_code code = mp_read_text(r, MP_SET_MILLPOND_TYPED_COLUMNS, &value);

    if (code)
        return code;
    list = mp_text_split(r->arena, value, ',', &count);
    pins = mp_arena_take(r->arena, (count + 1) * sizeof(*pins));
    config->pins = pins;
    for (uint32_t i = 0; i < count && !code; i++)
        code = pin_add(r, pins, list[i]);
    return code;
}

static bool pinned_uuid(const struct mp_config *config, struct mp_str field)
{
    for (uint32_t i = 0; i < config->pin_count; i++)
        if (same_column(config, config->pins[i].name, field))
            return config->pins[i].type.id == MP_TYPE_UUID;
    return false;
}

/* A filter on a uuid column keeps its values as they are written (32 digits are an integer to
 * everybody else), and each must be a UUID. */
static enum mp_code check_uuid_filter(struct mp_reader *r, enum mp_setting_id values_id,
                                      struct mp_config_filter *filter)
{
    struct mp_str values;
    uint32_t count;
    enum mp_code code;

    if (!filter->field.size || !pinned_uuid(r->config, filter->field))
        return MP_OK;
    code = mp_read_text(r, values_id, &values);
    if (code)
        return code;
    filter->texts = mp_text_split(r->arena, values, ',', &count);
    filter->integer = false;
    assert(count == filter->count);
    for (uint32_t i = 0; i < count; i++)
        if (!mp_text_uuid(filter->texts[i]))
            return mp_err_set(r->err, MP_BAD_CONFIG,
                              "%s has \"%s\", but column %.*s is pinned as uuid: allowed are UUIDs",
                              mp_setting_name(values_id),
                              mp_setting_shown(r->arena, values_id, filter->texts[i]),
                              MP_STR_ARG(filter->field));
    return MP_OK;
}

enum mp_code mp_read_uuid_filters(struct mp_reader *r)
{
    enum mp_code code = check_uuid_filter(r, MP_SET_MILLPOND_FILTER_VALUES, &r->config->keep);

    if (!code)
        code = check_uuid_filter(r, MP_SET_MILLPOND_FILTER_DROP_VALUES, &r->config->drop);
    return code;
}

/* A column name that the destination can have. */
static bool column_ok(const struct mp_config *config, struct mp_str name)
{
    bool ok = name.size <= 255;

    if (config->destination == MP_DESTINATION_HOGLAKE)
        return mp_text_identifier(name) && name.size <= 128 &&
               !(name.size >= 4 && mp_str_eq_fold(mp_str_n(name.data, 4), MP_STR("_hog")));
    for (size_t i = 0; i < name.size; i++)
        ok &= (unsigned char)name.data[i] >= 0x20 && name.data[i] != 0x7f;
    return ok && !mp_str_starts(name, MP_STR("_ducklake_internal_"));
}

/* A text for which "set but empty" is not the default, but empty. */
static enum mp_code read_clearable(struct mp_reader *r, enum mp_setting_id id, struct mp_str *ret)
{
    bool off = mp_env_find(r->environment, mp_setting_name(id)).data && !mp_read_given(r, id);
    enum mp_code code = mp_read_text(r, id, ret);

    if (!code && off)
        *ret = MP_STR("");
    return code;
}

enum mp_code mp_read_rescue(struct mp_reader *r)
{
    struct mp_config *config = r->config;
    const enum mp_setting_id id = MP_SET_MILLPOND_RESCUED_COLUMN;
    enum mp_code code = read_clearable(r, id, &config->rescued_column);

    if (code)
        return code;
    if (mp_str_eq_fold(config->rescued_column, MP_STR("_inserted_at")) ||
        !(!config->rescued_column.size || column_ok(config, config->rescued_column)))
        return mp_read_fault(
            r, id, "a column name that the destination can have, other than _inserted_at");
    for (uint32_t i = 0; i < config->pin_count; i++)
        if (same_column(config, config->pins[i].name, config->rescued_column))
            return mp_err_set(r->err, MP_BAD_CONFIG,
                              "MILLPOND_TYPED_COLUMNS pins \"%.*s\", which is the column for "
                              "rescued values (MILLPOND_RESCUED_COLUMN)",
                              MP_STR_ARG(config->rescued_column));
    return MP_OK;
}

/* Whether the column can have a companion, whose name is given. */
static bool variant_source_ok(const struct mp_config *config, struct mp_str source,
                              struct mp_str name)
{
    static const struct mp_str suffix = MP_STR_INIT("_variant");

    if (source.size >= suffix.size &&
        mp_str_eq_fold(mp_str_n(source.data + source.size - suffix.size, suffix.size), suffix))
        return false;
    return column_ok(config, source) && column_ok(config, name) &&
           !same_column(config, source, MP_STR("_inserted_at")) &&
           !same_column(config, source, config->rescued_column) &&
           !same_column(config, name, config->rescued_column);
}

/* Adds the column with the name of its companion, unless it is there. */
static enum mp_code add_variant(struct mp_reader *r, struct mp_str source,
                                struct mp_config_variant *variants, uint32_t *count)
{
    const char *name = mp_arena_printf(r->arena, "%.*s_variant", MP_STR_ARG(source));

    for (uint32_t i = 0; i < *count; i++)
        if (same_column(r->config, variants[i].source, source))
            return MP_OK;
    if (!variant_source_ok(r->config, source, mp_str_c(name)))
        return mp_read_fault(r, MP_SET_MILLPOND_VARIANT_COLUMNS,
                             "source columns that the destination can have, whose names do not end "
                             "in _variant and are not the pipeline's own");
    for (uint32_t i = 0; i < r->config->pin_count; i++)
        if (same_column(r->config, r->config->pins[i].name, mp_str_c(name)))
            return mp_err_set(r->err, MP_BAD_CONFIG,
                              "MILLPOND_TYPED_COLUMNS pins \"%s\", which is the companion of a "
                              "column in MILLPOND_VARIANT_COLUMNS",
                              name);
    variants[(*count)++] = (struct mp_config_variant){source, mp_str_c(name)};
    return MP_OK;
}

enum mp_code mp_read_variants(struct mp_reader *r)
{
    struct mp_config_ducklake *ducklake = &r->config->ducklake;
    struct mp_config_variant *variants;
    struct mp_str value, *list;
    uint32_t count;
    enum mp_code code = mp_read_text(r, MP_SET_MILLPOND_VARIANT_COLUMNS, &value);

    if (code)
        return code;
    list = mp_text_split(r->arena, value, ',', &count);
    if (!count)
        return MP_OK;
    if (r->config->destination == MP_DESTINATION_HOGLAKE)
        return mp_err_set(r->err, MP_BAD_CONFIG,
                          "MILLPOND_VARIANT_COLUMNS is set, but the destination is hoglake, which "
                          "has no VARIANT columns");
    ducklake->variants = variants = mp_arena_take(r->arena, count * sizeof(*variants));
    for (uint32_t i = 0; i < count && !code; i++)
        code = add_variant(r, list[i], variants, &ducklake->variant_count);
    if (!code)
        code = read_clearable(r, MP_SET_MILLPOND_VARIANT_KEY_PREFIX, &ducklake->variant_key_prefix);
    if (!code)
        code = mp_read_text(r, MP_SET_MILLPOND_VARIANT_KEYS, &value);
    if (!code)
        ducklake->variant_keys = mp_text_split(r->arena, value, ',', &ducklake->variant_key_count);
    return code;
}

enum mp_code mp_read_quarantine(struct mp_reader *r)
{
    struct mp_config *config = r->config;
    const enum mp_setting_id id = MP_SET_MILLPOND_QUARANTINE_TABLE;
    bool hoglake = config->destination == MP_DESTINATION_HOGLAKE;
    struct mp_str table;
    enum mp_code code = mp_read_text(r, id, &table);

    if (code)
        return code;
    if (table.size && !(hoglake ? mp_text_hoglake_name(table) : mp_text_identifier(table)))
        return mp_read_fault(r, id, mp_setting_allowed(r->arena, MP_SET_DUCKLAKE_TABLE));
    if (table.size && same_column(config, table, config->table))
        return mp_err_set(
            r->err, MP_BAD_CONFIG,
            "MILLPOND_QUARANTINE_TABLE is \"%.*s\", the table of the rows themselves: "
            "allowed is another one",
            MP_STR_ARG(table));
    config->quarantine_table = table;
    return MP_OK;
}
