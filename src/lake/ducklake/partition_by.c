#include "lake/ducklake/partition_by.h"

#include <assert.h>
#include <stdio.h>

static const char *const names[] = {
    [MP_TRANSFORM_IDENTITY] = "identity", [MP_TRANSFORM_YEAR] = "year",
    [MP_TRANSFORM_MONTH] = "month",       [MP_TRANSFORM_DAY] = "day",
    [MP_TRANSFORM_HOUR] = "hour",         [MP_TRANSFORM_BUCKET] = "bucket",
};
#define NAMES (sizeof(names) / sizeof(*names))

static const char *name_of(uint8_t transform)
{
    assert(transform < NAMES && names[transform]);
    return names[transform];
}

void mp_dl_transform_text(uint8_t transform, uint32_t buckets, char ret[MP_DL_TRANSFORM_TEXT])
{
    if (transform == MP_TRANSFORM_BUCKET)
        snprintf(ret, MP_DL_TRANSFORM_TEXT, "bucket(%u)", buckets);
    else
        snprintf(ret, MP_DL_TRANSFORM_TEXT, "%s", name_of(transform));
}

/* 1 to INT32_MAX, digits only. */
static bool parse_buckets(struct mp_str text, uint32_t *ret)
{
    uint64_t value = 0;

    if (text.size == 0 || text.size > 10)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    *ret = (uint32_t)value;
    return value >= 1 && value <= INT32_MAX;
}

bool mp_dl_transform_parse(struct mp_str text, uint8_t *ret, uint32_t *ret_buckets)
{
    struct mp_str bucket = MP_STR("bucket(");

    *ret_buckets = 0;
    for (uint8_t i = 0; i < NAMES; i++) {
        if (!names[i] || i == MP_TRANSFORM_BUCKET || !mp_str_eq_fold(text, mp_str_c(names[i])))
            continue;
        *ret = i;
        return true;
    }
    if (text.size < bucket.size + 2 || text.data[text.size - 1] != ')' ||
        !mp_str_eq_fold(mp_str_n(text.data, bucket.size), bucket))
        return false;
    *ret = MP_TRANSFORM_BUCKET;
    return parse_buckets(mp_str_n(text.data + bucket.size, text.size - bucket.size - 1),
                         ret_buckets);
}

struct mp_str mp_dl_transform_directory(struct mp_arena *arena, uint8_t transform,
                                        struct mp_str column, const struct mp_str *used,
                                        uint32_t used_count)
{
    struct mp_str name = transform == MP_TRANSFORM_IDENTITY ? column : mp_str_c(name_of(transform));

    for (uint32_t i = 0; i < used_count; i++)
        if (mp_str_eq(used[i], name))
            return mp_str_c(
                mp_arena_printf(arena, "%.*s_%.*s", MP_STR_ARG(name), MP_STR_ARG(column)));
    return mp_arena_str(arena, name);
}

/* A position in the setting. */
struct cursor {
    struct mp_str text;
    size_t at;
};

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->text.size && memchr(" \t\r\n", c->text.data[c->at], 4))
        c->at++;
}

/* Steps over the byte, and the blanks behind it, when it is next. */
static bool take(struct cursor *c, char byte)
{
    if (c->at == c->text.size || c->text.data[c->at] != byte)
        return false;
    c->at++;
    skip_blanks(c);
    return true;
}

static bool is_word(unsigned char c)
{
    unsigned char low = mp_ascii_lower(c);

    return (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '_' || c >= 0x80;
}

/* A run of word bytes; empty: there is none. */
static struct mp_str take_word(struct cursor *c)
{
    size_t start = c->at;
    struct mp_str word;

    while (c->at < c->text.size && is_word((unsigned char)c->text.data[c->at]))
        c->at++;
    word = mp_str_n(c->text.data + start, c->at - start);
    skip_blanks(c);
    return word;
}

/* A quoted name in arena; empty: it is not closed or holds nothing. */
static struct mp_str take_quoted(struct cursor *c, struct mp_arena *arena)
{
    char *name = mp_arena_take(arena, c->text.size);
    size_t size = 0;

    for (c->at++; c->at < c->text.size; c->at++) {
        if (c->text.data[c->at] == '"') {
            c->at++;
            if (c->at == c->text.size || c->text.data[c->at] != '"') {
                skip_blanks(c);
                return (struct mp_str){name, size};
            }
        }
        name[size++] = c->text.data[c->at];
    }
    return (struct mp_str){NULL, 0};
}

static struct mp_str take_name(struct cursor *c, struct mp_arena *arena)
{
    struct mp_str name;

    if (c->at < c->text.size && c->text.data[c->at] == '"')
        return take_quoted(c, arena);
    name = take_word(c);
    if (name.size && name.data[0] >= '0' && name.data[0] <= '9')
        return (struct mp_str){NULL, 0};
    return name;
}

static enum mp_code wrong(const struct cursor *c, struct mp_err *err, const char *what)
{
    return mp_err_set(err, MP_BAD_CONFIG, "partition by \"%.*s\": %s at byte %zu",
                      MP_STR_ARG(c->text), what, c->at);
}

/* What stands in the parentheses of function. */
static enum mp_code parse_call(struct cursor *c, struct mp_arena *arena, struct mp_str function,
                               struct mp_err *err, struct mp_dl_partition_key *ret)
{
    uint8_t transform;
    uint32_t buckets = 0;

    if (mp_str_eq_fold(function, MP_STR("bucket"))) {
        transform = MP_TRANSFORM_BUCKET;
        if (!parse_buckets(take_word(c), &buckets))
            return wrong(c, err, "bucket wants (count, column) with a count of 1 or more");
        if (!take(c, ','))
            return wrong(c, err, "bucket wants a comma behind its count");
    } else if (!mp_dl_transform_parse(function, &transform, &buckets) ||
               transform == MP_TRANSFORM_IDENTITY) {
        return wrong(c, err, "a function that is none of year, month, day, hour and bucket");
    }
    ret->column = take_name(c, arena);
    if (ret->column.size == 0)
        return wrong(c, err, "no column name");
    if (!take(c, ')'))
        return wrong(c, err, "no closing parenthesis");
    ret->transform = transform;
    ret->buckets = buckets;
    return MP_OK;
}

static enum mp_code parse_key(struct cursor *c, struct mp_arena *arena, struct mp_err *err,
                              struct mp_dl_partition_key *ret)
{
    bool quoted = c->at < c->text.size && c->text.data[c->at] == '"';
    struct mp_str name = take_name(c, arena);

    if (name.size == 0)
        return wrong(c, err, "no column name");
    if (!quoted && take(c, '('))
        return parse_call(c, arena, name, err, ret);
    *ret = (struct mp_dl_partition_key){.column = name, .transform = MP_TRANSFORM_IDENTITY};
    return MP_OK;
}

enum mp_code mp_dl_partition_by_parse(struct mp_arena *arena, struct mp_str setting,
                                      struct mp_err *err, const struct mp_dl_partition_key **ret,
                                      uint32_t *ret_count)
{
    struct cursor c = {setting, 0};
    struct mp_dl_partition_key *keys;
    uint32_t count = 0;

    skip_blanks(&c);
    keys = mp_arena_take(arena, sizeof(*keys) * (setting.size / 2 + 1));
    while (c.at < setting.size || count) {
        struct mp_dl_partition_key *key = &keys[count];
        enum mp_code code = parse_key(&c, arena, err, key);

        if (code)
            return code;
        for (uint32_t i = 0; i < count; i++)
            if (keys[i].transform == key->transform && mp_str_eq_fold(keys[i].column, key->column))
                return wrong(&c, err, "the same key twice");
        count++;
        if (c.at == setting.size)
            break;
        if (!take(&c, ','))
            return wrong(&c, err, "something that is not a comma");
    }
    *ret = keys;
    *ret_count = count;
    return MP_OK;
}
