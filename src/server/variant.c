/* server/variant.c - see columns.h: the grammar of a variant's shredding declaration.
 *
 *     node   = { type: object, fields: [named node, ...] } | { type: array, element: node }
 *            | { type: variant } | { type: a primitive } | { type: decimalN, precision, scale }
 *     A named node has a name besides; names are unique in their object, whatever their case: the
 *     one-to-one lower case of Unicode. (A capital sigma, whose lower case depends on what is
 *     around it, equals itself alone.)
 */
#include "base/utf8.h"
#include "server/columns.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <wctype.h>

enum { DEPTH_MAX = 16, NODES_MAX = 1000, NAME_PATH_BYTES_MAX = 1024 };

struct variant_check {
    const char *column;
    struct mp_err *err;
    struct mp_arena arena;
    locale_t locale; /* of Unicode; 0: there is none, ASCII is folded alone */
    uint32_t nodes;
    size_t name_bytes;                                  /* of the names in path */
    char path[NAME_PATH_BYTES_MAX + 4 * DEPTH_MAX + 8]; /* $.price, $.tags[*] */
};

static const char *const primitives[] = {
    "boolean",        "int8",   "int16",  "int32",     "int64",        "float",
    "double",         "date",   "time",   "timestamp", "timestamp_ns", "timestamptz",
    "timestamptz_ns", "binary", "string", "uuid"};

static enum mp_code fault(struct variant_check *check, const char *what)
{
    return mp_err_set(check->err, MP_BAD_DATA, "column %.100s, shredding %.200s: %s", check->column,
                      check->path, what);
}

/* Whether the node has no member beside name (where it is named) and the given ones. */
static bool only(const json_t *node, bool named, const char *a, const char *b)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)node, key, value)
    {
        if (strcmp(key, "type") != 0 && !(named && strcmp(key, "name") == 0) &&
            !(a && strcmp(key, a) == 0) && !(b && strcmp(key, b) == 0))
            return false;
    }
    return true;
}

static enum mp_code check_node(struct variant_check *check, const json_t *node, bool named,
                               uint32_t depth);

enum { CAPITAL_I_WITH_DOT = 0x130, CAPITAL_SIGMA = 0x3a3, DOT_ABOVE = 0x307 };

/* The name in lower case; UTF-8, as JSON is. */
static struct mp_str lower(struct variant_check *check, const char *name)
{
    struct mp_str rest = mp_str_c(name);
    char *made = mp_arena_take(&check->arena, 2 * rest.size + 8); /* no character grows to more */
    size_t size = 0, step;
    uint32_t point;

    for (; rest.size; rest = mp_str_n(rest.data + step, rest.size - step)) {
        step = mp_utf8_read(rest, &point);
        if (!step)
            break;
        if (point == CAPITAL_I_WITH_DOT) {
            made[size++] = 'i';
            point = DOT_ABOVE;
        } else if (point < 0x80) {
            point = mp_ascii_lower((unsigned char)point);
        } else if (check->locale && point != CAPITAL_SIGMA) {
            point = (uint32_t)towlower_l((wint_t)point, check->locale);
        }
        size += mp_utf8_write(point, made + size);
    }
    return mp_str_n(made, size);
}

static int by_text(const void *a, const void *b)
{
    return mp_str_cmp(*(const struct mp_str *)a, *(const struct mp_str *)b);
}

static enum mp_code check_fields(struct variant_check *check, const json_t *fields, uint32_t depth)
{
    size_t size = strlen(check->path), names_above = check->name_bytes;
    size_t count = json_array_size(fields);
    struct mp_str *names;

    if (!json_is_array(fields) || !count)
        return fault(check, "an object needs fields");
    if (count > NODES_MAX - check->nodes)
        return fault(check, "there are more than 1000 fields and arrays");
    check->nodes += (uint32_t)count;
    names = mp_arena_take(&check->arena, count * sizeof(*names));
    for (size_t i = 0; i < count; i++) {
        const json_t *field = json_array_get(fields, i);
        const char *name = json_string_value(json_object_get(field, "name"));

        if (!json_is_object(field) || !name || !*name)
            return fault(check, "a field needs a name");
        if (strlen(name) != json_string_length(json_object_get(field, "name")))
            return fault(check, "a name must not hold a NUL character");
        if (names_above + strlen(name) > NAME_PATH_BYTES_MAX)
            return fault(check, "a name and those above it have more than 1024 bytes");
        names[i] = lower(check, name);
    }
    qsort(names, count, sizeof(*names), by_text);
    for (size_t i = 1; i < count; i++)
        if (mp_str_eq(names[i - 1], names[i]))
            return fault(check, "two fields have the same name");
    for (size_t i = 0; i < count; i++) {
        const json_t *field = json_array_get(fields, i);
        const char *name = json_string_value(json_object_get(field, "name"));
        enum mp_code code;

        sprintf(check->path + size, ".%s", name);
        check->name_bytes = names_above + strlen(name);
        code = check_node(check, field, true, depth);
        if (code)
            return code;
        check->path[size] = 0;
        check->name_bytes = names_above;
    }
    return MP_OK;
}

static enum mp_code check_decimal(struct variant_check *check, const json_t *node, bool named,
                                  json_int_t digits_max)
{
    const json_t *precision = json_object_get(node, "precision");
    const json_t *scale = json_object_get(node, "scale");

    if (!only(node, named, "precision", "scale"))
        return fault(check, "a member does not belong to this type");
    if (!json_is_integer(precision) || json_integer_value(precision) < 1 ||
        json_integer_value(precision) > digits_max)
        return fault(check, "precision does not fit the type");
    if (!json_is_integer(scale) || json_integer_value(scale) < 0 ||
        json_integer_value(scale) > json_integer_value(precision))
        return fault(check, "scale must be 0 to the precision");
    return MP_OK;
}

static enum mp_code check_node(struct variant_check *check, const json_t *node, bool named,
                               uint32_t depth)
{
    static const struct {
        const char *name;
        json_int_t digits;
    } decimals[] = {{"decimal4", 9}, {"decimal8", 18}, {"decimal16", 38}};
    const char *type = json_string_value(json_object_get(node, "type"));
    size_t size = strlen(check->path);
    enum mp_code code;

    if (!json_is_object(node) || !type)
        return fault(check, "a node is an object with a type");
    if (strcmp(type, "object") == 0 || strcmp(type, "array") == 0) {
        bool array = *type == 'a';

        if (depth >= DEPTH_MAX)
            return fault(check, "it nests deeper than 16 levels");
        if (!only(node, named, array ? "element" : "fields", NULL))
            return fault(check, "a member does not belong to this type");
        if (!array)
            return check_fields(check, json_object_get(node, "fields"), depth + 1);
        if (++check->nodes > NODES_MAX)
            return fault(check, "there are more than 1000 fields and arrays");
        memcpy(check->path + size, "[*]", 4);
        if (!json_object_get(node, "element"))
            return fault(check, "an array needs an element");
        code = check_node(check, json_object_get(node, "element"), false, depth + 1);
        if (!code)
            check->path[size] = 0;
        return code;
    }
    for (size_t i = 0; i < sizeof(decimals) / sizeof(*decimals); i++)
        if (strcmp(type, decimals[i].name) == 0)
            return check_decimal(check, node, named, decimals[i].digits);
    if (!only(node, named, NULL, NULL))
        return fault(check, "a member does not belong to this type");
    if (strcmp(type, "variant") == 0)
        return MP_OK;
    for (size_t i = 0; i < sizeof(primitives) / sizeof(*primitives); i++)
        if (strcmp(type, primitives[i]) == 0)
            return MP_OK;
    return fault(check, "unknown type");
}

enum mp_code mp_variant_check(const json_t *shredding, const char *column, struct mp_err *err)
{
    struct variant_check check = {.column = column, .err = err, .path = "$"};
    enum mp_code code;

    mp_arena_init(&check.arena, 0);
    check.locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    code = check_node(&check, shredding, false, 0);
    if (check.locale)
        freelocale(check.locale);
    mp_arena_fini(&check.arena);
    return code;
}
