#include "lake/partition_by.h"

bool mp_partition_buckets(struct mp_str text, uint32_t *ret)
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

/* What a name in front of a parenthesis means in each grammar; -1: nothing. */
static const struct {
    struct mp_str name;
    int transform[2]; /* enum mp_partition_grammar */
} functions[] = {
    {MP_STR_INIT("identity"), {-1, MP_TRANSFORM_IDENTITY}},
    {MP_STR_INIT("year"), {MP_TRANSFORM_YEAR, MP_TRANSFORM_EPOCH_YEAR}},
    {MP_STR_INIT("month"), {MP_TRANSFORM_MONTH, MP_TRANSFORM_EPOCH_MONTH}},
    {MP_STR_INIT("day"), {MP_TRANSFORM_DAY, MP_TRANSFORM_EPOCH_DAY}},
    {MP_STR_INIT("hour"), {MP_TRANSFORM_HOUR, MP_TRANSFORM_EPOCH_HOUR}},
    {MP_STR_INIT("bucket"), {MP_TRANSFORM_BUCKET, MP_TRANSFORM_BUCKET_ICEBERG}},
};

/* A position in the setting. */
struct cursor {
    struct mp_str text;
    size_t at;
    enum mp_partition_grammar grammar;
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

static bool is_word(const struct cursor *c, unsigned char byte)
{
    unsigned char low = mp_ascii_lower(byte);

    if (byte >= 0x80)
        return c->grammar == MP_PARTITION_BY_DUCKLAKE;
    return (low >= 'a' && low <= 'z') || (byte >= '0' && byte <= '9') || byte == '_';
}

/* A run of word bytes; empty: there is none. */
static struct mp_str take_word(struct cursor *c)
{
    size_t start = c->at;
    struct mp_str word;

    while (c->at < c->text.size && is_word(c, (unsigned char)c->text.data[c->at]))
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

    if (c->grammar == MP_PARTITION_BY_DUCKLAKE && c->at < c->text.size &&
        c->text.data[c->at] == '"')
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

static enum mp_code take_buckets(struct cursor *c, struct mp_err *err, uint32_t *ret)
{
    if (mp_partition_buckets(take_word(c), ret))
        return MP_OK;
    return wrong(c, err, "no number of buckets of 1 or more");
}

static enum mp_code take_column(struct cursor *c, struct mp_arena *arena, struct mp_err *err,
                                struct mp_str *ret)
{
    *ret = take_name(c, arena);
    return ret->size ? MP_OK : wrong(c, err, "no column name");
}

/* "16, column" in DuckLake's grammar, "column, 16" in hoglake's. */
static enum mp_code parse_bucket(struct cursor *c, struct mp_arena *arena, struct mp_err *err,
                                 struct mp_partition_key *ret)
{
    bool count_first = c->grammar == MP_PARTITION_BY_DUCKLAKE;
    enum mp_code code = count_first ? take_buckets(c, err, &ret->buckets)
                                    : take_column(c, arena, err, &ret->column);

    if (code)
        return code;
    if (!take(c, ','))
        return wrong(c, err, "bucket wants a comma");
    return count_first ? take_column(c, arena, err, &ret->column)
                       : take_buckets(c, err, &ret->buckets);
}

/* What stands in the parentheses of function. */
static enum mp_code parse_call(struct cursor *c, struct mp_arena *arena, struct mp_str function,
                               struct mp_err *err, struct mp_partition_key *ret)
{
    int transform = -1;
    enum mp_code code;

    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
        if (mp_str_eq_fold(function, functions[i].name))
            transform = functions[i].transform[c->grammar];
    if (transform < 0)
        return wrong(c, err, "an unknown function");
    *ret = (struct mp_partition_key){.transform = (uint8_t)transform};
    if (transform == MP_TRANSFORM_BUCKET || transform == MP_TRANSFORM_BUCKET_ICEBERG)
        code = parse_bucket(c, arena, err, ret);
    else
        code = take_column(c, arena, err, &ret->column);
    if (!code && !take(c, ')'))
        code = wrong(c, err, "no closing parenthesis");
    return code;
}

static enum mp_code parse_key(struct cursor *c, struct mp_arena *arena, struct mp_err *err,
                              struct mp_partition_key *ret)
{
    bool quoted = c->at < c->text.size && c->text.data[c->at] == '"';
    struct mp_str name;
    enum mp_code code = take_column(c, arena, err, &name);

    if (code)
        return code;
    if (!quoted && take(c, '('))
        return parse_call(c, arena, name, err, ret);
    *ret = (struct mp_partition_key){.column = name, .transform = MP_TRANSFORM_IDENTITY};
    return MP_OK;
}

/* DuckLake takes a column once with a transform, however its name is spelled. */
static bool same_key(const struct cursor *c, const struct mp_partition_key *a,
                     const struct mp_partition_key *b)
{
    if (a->transform != b->transform)
        return false;
    if (c->grammar == MP_PARTITION_BY_DUCKLAKE)
        return mp_str_eq_fold(a->column, b->column);
    return mp_str_eq(a->column, b->column) && a->buckets == b->buckets;
}

/* Blank keys are dropped in hoglake's grammar, so a comma may stand anywhere between. */
static void skip_commas(struct cursor *c)
{
    while (c->grammar == MP_PARTITION_BY_HOGLAKE && take(c, ','))
        ;
}

enum mp_code mp_partition_by_parse(struct mp_arena *arena, struct mp_str setting,
                                   enum mp_partition_grammar grammar, struct mp_err *err,
                                   const struct mp_partition_key **ret, uint32_t *ret_count)
{
    struct cursor c = {setting, 0, grammar};
    struct mp_partition_key *keys;
    uint32_t count = 0;

    skip_blanks(&c);
    skip_commas(&c);
    keys = mp_arena_take(arena, sizeof(*keys) * (setting.size / 2 + 1));
    while (c.at < setting.size || count) {
        struct mp_partition_key *key = &keys[count];
        enum mp_code code = parse_key(&c, arena, err, key);

        if (code)
            return code;
        for (uint32_t i = 0; i < count; i++)
            if (same_key(&c, &keys[i], key))
                return wrong(&c, err, "the same key twice");
        count++;
        if (c.at == setting.size)
            break;
        if (!take(&c, ','))
            return wrong(&c, err, "something that is not a comma");
        skip_commas(&c);
        if (c.at == setting.size && grammar == MP_PARTITION_BY_HOGLAKE)
            break;
    }
    *ret = keys;
    *ret_count = count;
    return MP_OK;
}
