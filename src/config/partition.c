/* config/partition.c - the two grammars of partition keys, checked and not kept: the destination
 * reads its own again when it makes a table. */
#include "config/config_priv.h"

static const char ducklake_forms[] =
    "allowed are column, year(column), month(column), day(column), hour(column), "
    "bucket(N, column)";
static const char hoglake_forms[] =
    "allowed are column, identity(column), year(column), month(column), day(column), "
    "hour(column), bucket(column, N)";

struct key {
    struct mp_str transform, column;
    int64_t buckets;
};

static bool transform_known(struct mp_str name, bool ducklake)
{
    static const struct mp_str names[] = {{"year", 4}, {"month", 5}, {"day", 3}, {"hour", 4}};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (mp_str_eq_fold(name, names[i]))
            return true;
    return mp_str_eq_fold(name, MP_STR("identity")) && !ducklake;
}

/* As the destinations read the number again: no sign and no '_'. */
static bool digits_only(struct mp_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    return true;
}

/* Takes "name(inside)" apart; a bare column has no transform. */
static const char *key_parse(struct mp_arena *arena, struct mp_str text, bool ducklake,
                             struct key *ret)
{
    const char *open = memchr(text.data, '(', text.size);
    struct mp_str name, inside, number, *parts;
    uint32_t count;
    bool fits;

    *ret = (struct key){.transform = MP_STR("identity"), .column = text};
    if (!open)
        return mp_text_identifier(text) ? NULL : "is no column name";
    name = mp_text_trim(mp_str_n(text.data, (size_t)(open - text.data)));
    if (text.data[text.size - 1] != ')')
        return "has no closing parenthesis";
    inside = mp_str_n(open + 1, (size_t)(text.data + text.size - 1 - (open + 1)));
    parts = mp_text_split(arena, inside, ',', &count);
    ret->transform = mp_text_lower(arena, name);
    if (mp_str_eq_fold(name, MP_STR("bucket"))) {
        if (count != 2)
            return "needs a column and a number of buckets";
        number = parts[ducklake ? 0 : 1];
        ret->column = parts[ducklake ? 1 : 0];
        if (!digits_only(number) || !mp_text_integer(number, &ret->buckets, &fits) || !fits ||
            ret->buckets < 1 || ret->buckets > INT32_MAX)
            return "needs a positive number of buckets";
    } else if (transform_known(name, ducklake)) {
        if (count != 1)
            return "needs one column";
        ret->column = parts[0];
    } else {
        return "has an unknown transform";
    }
    return mp_text_identifier(ret->column) ? NULL : "has no column name in its parentheses";
}

static bool key_eq(const struct key *a, const struct key *b)
{
    return mp_str_eq(a->transform, b->transform) && mp_str_eq(a->column, b->column) &&
           a->buckets == b->buckets;
}

bool mp_partition_check(struct mp_arena *arena, struct mp_str text, bool ducklake, const char **ret)
{
    const char *forms = ducklake ? ducklake_forms : hoglake_forms;
    uint32_t count;
    struct mp_str *texts = mp_text_split(arena, text, ',', &count);
    struct key *keys = mp_arena_take(arena, (count + 1) * sizeof(*keys));

    if (!count) {
        *ret = mp_arena_printf(arena, "it names no key; %s", forms);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const char *fault = key_parse(arena, texts[i], ducklake, &keys[i]);

        for (uint32_t j = 0; j < i && !fault; j++)
            if (key_eq(&keys[i], &keys[j]))
                fault = "is there twice";
        if (fault) {
            *ret =
                mp_arena_printf(arena, "key \"%.*s\" %s; %s", MP_STR_ARG(texts[i]), fault, forms);
            return false;
        }
    }
    return true;
}
