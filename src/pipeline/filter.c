#include "pipeline/filter.h"

#include "base/mem.h"
#include "column/cast.h"

#include <stdlib.h>

struct entry {
    int64_t integer;
    struct mp_str text;
    unsigned char uuid[16];
    uint32_t value; /* place in the list */
};

struct mp_filter {
    struct mp_filter_options options;
    struct entry *entries; /* sorted by what is compared */
    uint32_t count;        /* without the unusable */
    struct entry *by_text; /* where integer: the same by their digits */
    uint32_t keys_seen;    /* keys of the scanner that were compared with the field's name */
    uint32_t key;          /* of the field; UINT32_MAX: not met yet */
};

static int by_integer(const void *a, const void *b)
{
    int64_t x = ((const struct entry *)a)->integer, y = ((const struct entry *)b)->integer;

    return (x > y) - (x < y);
}

static int by_text(const void *a, const void *b)
{
    return mp_str_cmp(((const struct entry *)a)->text, ((const struct entry *)b)->text);
}

static int by_uuid(const void *a, const void *b)
{
    return memcmp(((const struct entry *)a)->uuid, ((const struct entry *)b)->uuid, 16);
}

struct mp_filter *mp_filter_new(const struct mp_filter_options *options)
{
    struct mp_filter *filter = mp_alloc(sizeof(*filter));
    size_t size = sizeof(*filter->entries);

    filter->options = *options;
    filter->key = UINT32_MAX;
    filter->entries = mp_alloc_array(options->count, size);
    for (uint32_t i = 0; i < options->count; i++) {
        struct entry *entry = &filter->entries[filter->count];

        *entry = (struct entry){.text = options->texts[i], .value = i};
        if (options->integer)
            entry->integer = options->integers[i];
        if (!options->uuid || mp_uuid_of_text(entry->text, entry->uuid))
            filter->count++;
    }
    if (options->integer && !options->uuid) {
        filter->by_text = mp_alloc_array(options->count, size);
        memcpy(filter->by_text, filter->entries, options->count * size);
        qsort(filter->by_text, options->count, size, by_text);
    }
    qsort(filter->entries, filter->count, size,
          options->uuid      ? by_uuid
          : options->integer ? by_integer
                             : by_text);
    return filter;
}

void mp_filter_free(struct mp_filter *filter)
{
    if (!filter)
        return;
    mp_free(filter->entries);
    mp_free(filter->by_text);
    mp_free(filter);
}

uint32_t mp_filter_unusable(const struct mp_filter *filter)
{
    return filter->options.count - filter->count;
}

void mp_filter_keys_reset(struct mp_filter *filter)
{
    if (!filter)
        return;
    filter->keys_seen = 0;
    filter->key = UINT32_MAX;
}

static const struct mp_json_field *field_of(struct mp_filter *filter, const struct mp_json *json,
                                            const struct mp_json_record *record)
{
    uint32_t count = mp_json_key_count(json);

    for (; filter->keys_seen < count; filter->keys_seen++)
        if (mp_str_eq(mp_json_key_name(json, filter->keys_seen), filter->options.field))
            filter->key = filter->keys_seen;
    for (uint32_t i = 0; i < record->count; i++)
        if (record->fields[i].key == filter->key)
            return &record->fields[i];
    return NULL;
}

enum mp_filter_answer mp_filter_ask(struct mp_filter *filter, const struct mp_json *json,
                                    const struct mp_json_record *record, uint32_t *ret_value)
{
    const struct mp_json_field *field = field_of(filter, json, record);
    struct entry wanted = {0}, *found = NULL;
    const size_t size = sizeof(wanted);

    if (!field || (field->kind != MP_JSON_INT && field->kind != MP_JSON_STRING))
        return MP_FILTER_MISSING;
    wanted.text = field->text;
    wanted.integer = field->i64;
    if (filter->options.uuid) {
        if (field->kind != MP_JSON_STRING || !mp_uuid_of_text(field->text, wanted.uuid))
            return MP_FILTER_MISSING;
        found = bsearch(&wanted, filter->entries, filter->count, size, by_uuid);
    } else if (field->kind == MP_JSON_STRING) {
        found = bsearch(&wanted, filter->by_text ? filter->by_text : filter->entries, filter->count,
                        size, by_text);
    } else if (filter->options.integer) {
        found = bsearch(&wanted, filter->entries, filter->count, size, by_integer);
    } else {
        return MP_FILTER_MISSING; /* texts cannot be compared with an integer */
    }
    if (!found)
        return MP_FILTER_OTHER;
    *ret_value = found->value;
    return MP_FILTER_MATCH;
}
