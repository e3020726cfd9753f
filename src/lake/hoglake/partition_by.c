#include "lake/hoglake/partition_by.h"

#include <assert.h>

static const struct {
    uint8_t transform;
    struct mp_str name;
} names[] = {
    {MP_TRANSFORM_IDENTITY, MP_STR_INIT("identity")},
    {MP_TRANSFORM_EPOCH_YEAR, MP_STR_INIT("year")},
    {MP_TRANSFORM_EPOCH_MONTH, MP_STR_INIT("month")},
    {MP_TRANSFORM_EPOCH_DAY, MP_STR_INIT("day")},
    {MP_TRANSFORM_EPOCH_HOUR, MP_STR_INIT("hour")},
    {MP_TRANSFORM_BUCKET_ICEBERG, MP_STR_INIT("bucket")},
};
#define NAMES (sizeof(names) / sizeof(*names))

struct mp_str mp_hog_transform_name(uint8_t transform)
{
    size_t i = 0;

    while (i < NAMES && names[i].transform != transform)
        i++;
    assert(i < NAMES);
    return names[i].name;
}

bool mp_hog_transform_of_name(struct mp_str name, uint8_t *ret)
{
    for (size_t i = 0; i < NAMES; i++)
        if (mp_str_eq_fold(names[i].name, name)) {
            *ret = names[i].transform;
            return true;
        }
    return false;
}

void mp_hog_partition_by_print(const struct mp_hog_partition_key *key, struct mp_buf *ret)
{
    if (key->transform == MP_TRANSFORM_IDENTITY) {
        mp_buf_add_str(ret, key->column);
        return;
    }
    mp_buf_add_str(ret, mp_hog_transform_name(key->transform));
    mp_buf_printf(ret, "(%.*s", MP_STR_ARG(key->column));
    if (key->transform == MP_TRANSFORM_BUCKET_ICEBERG)
        mp_buf_printf(ret, ", %u", key->buckets);
    mp_buf_add_byte(ret, ')');
}

static struct mp_str trim(struct mp_str text)
{
    while (text.size && memchr(" \t\r\n", text.data[0], 4))
        text.data++, text.size--;
    while (text.size && memchr(" \t\r\n", text.data[text.size - 1], 4))
        text.size--;
    return text;
}

/* Takes what stands in front of the first comma outside of parentheses. */
static struct mp_str take_key(struct mp_str *text)
{
    struct mp_str key = *text;
    size_t at = 0;
    int depth = 0;

    for (; at < text->size; at++) {
        depth += (text->data[at] == '(') - (text->data[at] == ')');
        if (text->data[at] == ',' && depth <= 0)
            break;
    }
    key.size = at;
    if (at < text->size)
        at++;
    *text = mp_str_n(text->data + at, text->size - at);
    return trim(key);
}

/* 1 to INT32_MAX, digits only. */
static bool parse_buckets(struct mp_str text, uint32_t *ret)
{
    uint64_t value = 0;

    if (!text.size || text.size > 10)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    *ret = (uint32_t)value;
    return value >= 1 && value <= INT32_MAX;
}

/* NULL, or what is wrong. */
static const char *parse_key(struct mp_str text, struct mp_hog_partition_key *ret)
{
    const char *open = memchr(text.data, '(', text.size), *comma;
    struct mp_str inside;

    *ret = (struct mp_hog_partition_key){.column = text, .transform = MP_TRANSFORM_IDENTITY};
    if (!open)
        return NULL;
    if (text.data[text.size - 1] != ')')
        return "has no closing parenthesis";
    if (!mp_hog_transform_of_name(trim(mp_str_n(text.data, (size_t)(open - text.data))),
                                  &ret->transform))
        return "has a transform that is none of identity, year, month, day, hour and bucket";
    inside = mp_str_n(open + 1, (size_t)(text.data + text.size - 1 - (open + 1)));
    comma = memchr(inside.data, ',', inside.size);
    if (ret->transform == MP_TRANSFORM_BUCKET_ICEBERG) {
        size_t column_size = comma ? (size_t)(comma - inside.data) : 0;

        if (!comma || !parse_buckets(trim(mp_str_n(comma + 1, inside.size - column_size - 1)),
                                     &ret->buckets))
            return "wants a column and a number of buckets, 1 or more";
        inside.size = column_size;
    } else if (comma) {
        return "wants one column";
    }
    ret->column = trim(inside);
    return ret->column.size ? NULL : "names no column";
}

static bool same_key(const struct mp_hog_partition_key *a, const struct mp_hog_partition_key *b)
{
    return a->transform == b->transform && a->buckets == b->buckets &&
           mp_str_eq(a->column, b->column);
}

enum mp_code mp_hog_partition_by_parse(struct mp_arena *arena, struct mp_str setting,
                                       struct mp_err *err, const struct mp_hog_partition_key **ret,
                                       uint32_t *ret_count)
{
    struct mp_str rest = mp_arena_str(arena, setting);
    struct mp_hog_partition_key *keys =
        mp_arena_take(arena, sizeof(*keys) * (setting.size / 2 + 1));
    uint32_t count = 0;

    while (rest.size) {
        struct mp_str text = take_key(&rest);
        const char *wrong;

        if (!text.size)
            continue;
        wrong = parse_key(text, &keys[count]);
        for (uint32_t i = 0; i < count && !wrong; i++)
            if (same_key(&keys[i], &keys[count]))
                wrong = "is there twice";
        if (wrong)
            return mp_err_set(err, MP_BAD_CONFIG, "partition by \"%.*s\": key \"%.*s\" %s",
                              MP_STR_ARG(setting), MP_STR_ARG(text), wrong);
        count++;
    }
    *ret = keys;
    *ret_count = count;
    return MP_OK;
}
