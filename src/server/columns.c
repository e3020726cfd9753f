/* server/columns.c - see columns.h. */
#include "server/columns.h"

#include "server/names.h"

#include <assert.h>
#include <stdio.h>

enum { PATH_BYTES_MAX = 1200 }; /* eight names of 128 and their dots */

enum mp_hog_type mp_column_type(const struct mp_wire_column *column)
{
    enum mp_hog_type type = MP_HOG_TYPES;
    enum mp_code code = mp_hog_type_read(column->type, NULL, &type);

    assert(!code); /* checked when it came in */
    return type;
}

static int64_t decimal_param(const struct mp_wire_column *column, const char *name,
                             int64_t otherwise)
{
    json_t *params = column->type_params.data
                         ? json_loadb(column->type_params.data, column->type_params.size, 0, NULL)
                         : NULL;
    const json_t *param = json_object_get(params, name);
    int64_t number = json_is_integer(param) ? json_integer_value(param) : otherwise;

    json_decref(params);
    return number;
}

int64_t mp_column_scale(const struct mp_wire_column *column)
{
    return decimal_param(column, "scale", 0);
}

int64_t mp_column_precision(const struct mp_wire_column *column)
{
    return decimal_param(column, "precision", 38);
}

static const char *path_of(struct mp_arena *arena, const char *prefix, struct mp_str name)
{
    return *prefix ? mp_arena_printf(arena, "%s.%.*s", prefix, MP_STR_ARG(name))
                   : mp_arena_printf(arena, "%.*s", MP_STR_ARG(name));
}

static enum mp_code check_decimal(const json_t *params, const char *path, struct mp_err *err)
{
    const json_t *precision = json_object_get(params, "precision");
    const json_t *scale = json_object_get(params, "scale");
    json_int_t digits = 38;

    if (precision && !json_is_null(precision)) {
        digits = json_integer_value(precision);
        if (!json_is_integer(precision) || digits < 1 || digits > 38)
            return mp_err_set(err, MP_BAD_DATA, "column %s: precision must be 1 to 38", path);
    }
    if (scale && !json_is_null(scale) &&
        (!json_is_integer(scale) || json_integer_value(scale) < 0 ||
         json_integer_value(scale) > digits))
        return mp_err_set(err, MP_BAD_DATA, "column %s: scale must be 0 to the precision", path);
    return MP_OK;
}

enum mp_code mp_column_params_check(const struct mp_wire_column *column, enum mp_hog_type type,
                                    bool top, const char *path, struct mp_err *err)
{
    json_t *params;
    const json_t *shredding;
    enum mp_code code = MP_OK;

    if (!column->type_params.data)
        return MP_OK;
    if (mp_hog_types[type].container)
        return mp_err_set(err, MP_BAD_DATA, "column %s: a %s has no type_params", path,
                          mp_hog_types[type].name);
    params = json_loadb(column->type_params.data, column->type_params.size, 0, NULL);
    assert(params); /* printed from one */
    shredding = json_object_get(params, "shredding");
    if (type == MP_HOG_DECIMAL)
        code = check_decimal(params, path, err);
    if (!code && shredding && type != MP_HOG_VARIANT)
        code = mp_err_set(err, MP_BAD_DATA, "column %s: shredding belongs to a variant", path);
    if (!code && type == MP_HOG_VARIANT && json_object_size(params) > (shredding ? 1 : 0))
        code = mp_err_set(err, MP_BAD_DATA,
                          "column %s: a variant's type_params hold shredding only", path);
    if (!code && shredding && !json_is_null(shredding) && !top)
        code = mp_err_set(err, MP_BAD_DATA,
                          "column %s: shredding may be declared on a top-level variant only", path);
    if (!code && shredding && !json_is_null(shredding))
        code = mp_variant_check(shredding, path, err);
    json_decref(params);
    return code;
}

static enum mp_code check_children(const struct mp_wire_column *column, enum mp_hog_type type,
                                   const char *path, struct mp_err *err)
{
    static const char *const list_names[] = {"element"};
    static const char *const map_names[] = {"key", "value"};
    const char *const *names = type == MP_HOG_LIST ? list_names : map_names;
    uint32_t wanted = type == MP_HOG_LIST ? 1 : 2;

    if (!mp_hog_types[type].container)
        return column->has_children
                   ? mp_err_set(err, MP_BAD_DATA, "column %s: a %s has no children", path,
                                mp_hog_types[type].name)
                   : MP_OK;
    if (!column->child_count)
        return mp_err_set(err, MP_BAD_DATA, "column %s: a %s needs children", path,
                          mp_hog_types[type].name);
    if (type == MP_HOG_STRUCT)
        return MP_OK;
    if (column->child_count != wanted)
        return mp_err_set(err, MP_BAD_DATA, "column %s: a %s has %u children, not %u", path,
                          mp_hog_types[type].name, wanted, column->child_count);
    for (uint32_t i = 0; i < wanted; i++)
        if (!mp_str_eq(column->children[i].name, mp_str_c(names[i])))
            return mp_err_set(err, MP_BAD_DATA, "column %s: child %u of a %s must be called %s",
                              path, i, mp_hog_types[type].name, names[i]);
    if (type == MP_HOG_MAP && column->children[0].nullable)
        return mp_err_set(err, MP_BAD_DATA, "column %s: a map's key must not be nullable", path);
    return MP_OK;
}

static enum mp_code check_all(struct mp_columns_check *check, struct mp_columns columns,
                              const char *prefix, bool of_map, struct mp_err *err);

static enum mp_code check_one(struct mp_columns_check *check, struct mp_wire_column *column,
                              const char *path, bool map_key, struct mp_err *err)
{
    enum mp_hog_type type;
    enum mp_code code = mp_name_column(column->name, path, err);

    if (!code && ++check->nodes > MP_COLUMNS_MAX)
        code = mp_err_set(err, MP_BAD_DATA, "a table has at most %d columns", MP_COLUMNS_MAX);
    if (!code)
        code = mp_hog_type_read(column->type, err, &type);
    if (code)
        return code;
    column->type = mp_str_c(mp_hog_types[type].name);
    if (check->added && !column->nullable && !map_key)
        return mp_err_set(
            err, MP_BAD_DATA,
            "cannot add column '%s': it must be nullable, since hoglake has no column "
            "defaults",
            path);
    if (column->comment.data && check->no_comments)
        return mp_err_set(err, MP_BAD_DATA, "column %s: a comment cannot be given here", path);
    if (column->comment.data)
        code = mp_comment(column->comment, err);
    if (!code)
        code = mp_column_params_check(column, type, check->depth == 1, path, err);
    if (!code)
        code = check_children(column, type, path, err);
    if (!code && column->child_count)
        code = check_all(check, (struct mp_columns){column->children, column->child_count}, path,
                         type == MP_HOG_MAP, err);
    return code;
}

/* of_map: they are a map's key and value. */
static enum mp_code check_all(struct mp_columns_check *check, struct mp_columns columns,
                              const char *prefix, bool of_map, struct mp_err *err)
{
    enum mp_code code = MP_OK;

    if (++check->depth > MP_COLUMN_DEPTH_MAX)
        return mp_err_set(err, MP_BAD_DATA, "columns nest deeper than %d levels below \"%.200s\"",
                          MP_COLUMN_DEPTH_MAX, prefix);
    for (uint32_t i = 0; i < columns.count && !code; i++) {
        const char *path = path_of(check->arena, prefix, columns.items[i].name);

        for (uint32_t k = 0; k < i && !code; k++)
            if (mp_str_eq(columns.items[k].name, columns.items[i].name))
                code = mp_err_set(err, MP_BAD_DATA, "column \"%.200s\" already exists", path);
        if (!code)
            code = check_one(check, &columns.items[i], path, of_map && i == 0, err);
    }
    check->depth--;
    return code;
}

enum mp_code mp_columns_check(struct mp_columns_check *check, struct mp_columns columns,
                              const char *prefix, struct mp_err *err)
{
    return check_all(check, columns, prefix, false, err);
}

void mp_columns_assign(struct mp_columns columns, int64_t first_ordinal, int64_t *next_field_id)
{
    for (uint32_t i = 0; i < columns.count; i++) {
        struct mp_wire_column *column = &columns.items[i];

        column->field_id = (*next_field_id)++;
        column->ordinal = first_ordinal + i;
        mp_columns_assign((struct mp_columns){column->children, column->child_count}, 0,
                          next_field_id);
    }
}

uint32_t mp_columns_nodes(struct mp_columns columns)
{
    uint32_t nodes = columns.count;

    for (uint32_t i = 0; i < columns.count; i++)
        nodes += mp_columns_nodes(
            (struct mp_columns){columns.items[i].children, columns.items[i].child_count});
    return nodes;
}

static bool find(struct mp_arena *arena, struct mp_columns columns, int64_t field_id,
                 const struct mp_column_place *parent, struct mp_column_place *ret)
{
    for (uint32_t i = 0; i < columns.count; i++) {
        struct mp_wire_column *column = &columns.items[i];
        struct mp_column_place place = {
            .column = column,
            .parent = parent ? parent->column : NULL,
            .type = mp_column_type(column),
            .repeated = parent && (parent->repeated || parent->type == MP_HOG_LIST ||
                                   parent->type == MP_HOG_MAP),
            .depth = parent ? parent->depth + 1 : 1,
        };

        if (column->field_id != field_id && !column->child_count)
            continue;
        place.path = path_of(arena, parent ? parent->path : "", column->name);
        if (column->field_id == field_id) {
            *ret = place;
            return true;
        }
        if (find(arena, (struct mp_columns){column->children, column->child_count}, field_id,
                 &place, ret))
            return true;
    }
    return false;
}

bool mp_columns_find(struct mp_arena *arena, struct mp_columns columns, int64_t field_id,
                     struct mp_column_place *ret)
{
    return find(arena, columns, field_id, NULL, ret);
}

enum mp_code mp_columns_path(struct mp_arena *arena, struct mp_columns columns, struct mp_str path,
                             struct mp_err *err, struct mp_column_place *ret)
{
    struct mp_column_place place = {0};
    struct mp_str rest = path;
    int shown = path.size > 200 ? 200 : (int)path.size;

    for (;;) {
        const char *dot = rest.size ? memchr(rest.data, '.', rest.size) : NULL;
        struct mp_str name = mp_str_n(rest.data, dot ? (size_t)(dot - rest.data) : rest.size);
        struct mp_wire_column *found = NULL;

        if (place.column && place.type != MP_HOG_STRUCT)
            return mp_err_set(err, MP_BAD_DATA, "column path \"%.*s\": %s is no struct", shown,
                              path.data, place.path);
        for (uint32_t i = 0; i < columns.count; i++)
            if (mp_str_eq(columns.items[i].name, name))
                found = &columns.items[i];
        if (!found)
            return mp_err_set(err, MP_BAD_DATA, "unknown column \"%.*s\"", shown, path.data);
        place = (struct mp_column_place){
            .parent = place.column,
            .column = found,
            .type = mp_column_type(found),
            .depth = place.depth + 1,
            .path = path_of(arena, place.path ? place.path : "", name),
        };
        if (!dot)
            break;
        columns = (struct mp_columns){found->children, found->child_count};
        rest = mp_str_n(dot + 1, rest.size - name.size - 1);
    }
    *ret = place;
    return MP_OK;
}

static void walk(struct mp_arena *arena, struct mp_columns columns,
                 const struct mp_column_place *parent,
                 void (*visit)(void *self, const struct mp_column_place *place), void *self)
{
    for (uint32_t i = 0; i < columns.count; i++) {
        struct mp_column_place place = {
            .column = &columns.items[i],
            .parent = parent ? parent->column : NULL,
            .type = mp_column_type(&columns.items[i]),
            .repeated = parent && (parent->repeated || parent->type == MP_HOG_LIST ||
                                   parent->type == MP_HOG_MAP),
            .depth = parent ? parent->depth + 1 : 1,
            .path = path_of(arena, parent ? parent->path : "", columns.items[i].name),
        };

        visit(self, &place);
        walk(arena, (struct mp_columns){place.column->children, place.column->child_count}, &place,
             visit, self);
    }
}

void mp_columns_walk(struct mp_arena *arena, struct mp_columns columns,
                     void (*visit)(void *self, const struct mp_column_place *place), void *self)
{
    walk(arena, columns, NULL, visit, self);
}

static void count_leaf(void *self, const struct mp_column_place *place)
{
    *(uint32_t *)self += !mp_hog_types[place->type].container && place->type != MP_HOG_VARIANT;
}

uint32_t mp_columns_leaves(struct mp_arena *arena, struct mp_columns columns)
{
    uint32_t count = 0;

    mp_columns_walk(arena, columns, count_leaf, &count);
    return count;
}
