/* server/alter.c - alter operations on a table in memory. See tables.h.
 *
 * Operations apply in order, each to what the one before left. Their shape (400) is looked at for
 * all of them before anything is read; what they mean (422) when they run.
 */
#include "server/names.h"
#include "server/tables.h"

#include <assert.h>

static enum mp_code invalid(struct mp_call *call, const struct mp_err *err)
{
    return mp_refuse_invalid(call, "%s", err->text);
}

/* --- shape --- */

struct op_shape {
    const char *op;
    const char *texts[2]; /* required texts */
    const char *other;    /* a required object or array */
    const char *known[6];
};

static const struct op_shape shapes[] = {
    {"add_column", {NULL}, "column", {"op", "column", "parent"}},
    {"add_column_with_metadata", {NULL}, "column", {"op", "column", "parent"}},
    {"drop_column", {"name"}, NULL, {"op", "name"}},
    {"rename_column", {"from", "to"}, NULL, {"op", "from", "to"}},
    {"promote_column", {"name", "to"}, NULL, {"op", "name", "to"}},
    {"rename_table", {"new_name"}, NULL, {"op", "new_name"}},
    {"set_partition_spec", {NULL}, "fields", {"op", "fields"}},
    {"set_sort_order", {NULL}, "sort_fields", {"op", "sort_fields"}},
    {"set_table_comment", {NULL}, NULL, {"op", "comment"}},
    {"set_column_comment", {"name"}, NULL, {"op", "name", "comment"}},
    {"set_properties", {NULL}, "properties", {"op", "properties"}},
};

static const struct op_shape *shape_of(const json_t *op)
{
    const char *name = json_string_value(json_object_get(op, "op"));

    for (size_t i = 0; name && i < sizeof(shapes) / sizeof(*shapes); i++)
        if (strcmp(shapes[i].op, name) == 0)
            return &shapes[i];
    return NULL;
}

static void check_shape(struct mp_wire_reader *reader, const json_t *op)
{
    const struct op_shape *shape = shape_of(op);
    struct mp_str text;

    if (!json_is_object(op) || !shape) {
        mp_wire_fault(reader, json_is_object(op) ? "unknown alter op" : "an op must be an object");
        return;
    }
    if (!mp_wire_object(reader, op, shape->op, shape->known))
        return;
    for (int i = 0; i < 2 && shape->texts[i]; i++)
        mp_wire_text(reader, op, shape->texts[i], true, &text);
    mp_wire_text(reader, op, "comment", false, &text);
    mp_wire_text(reader, op, "parent", false, &text);
    if (!shape->other || reader->failed)
        return;
    if (strcmp(shape->other, "column") == 0) {
        struct mp_wire_column column;

        mp_wire_column_read(reader, json_object_get(op, "column"), &column);
    } else if (strcmp(shape->other, "properties") == 0) {
        if (!json_is_object(json_object_get(op, "properties")))
            mp_wire_fault(reader, "\"properties\" must be an object");
    } else {
        const json_t *list = mp_wire_array(reader, op, shape->other, true);
        struct mp_wire_partition_field *fields;
        struct mp_wire_sort_field *sort;
        uint32_t count;

        if (list && strcmp(shape->other, "fields") == 0)
            mp_wire_partition_fields_read(reader, list, &fields, &count);
        else if (list)
            mp_wire_sort_fields_read(reader, list, &sort, &count);
    }
}

enum mp_code mp_alter_shape(struct mp_call *call, const json_t *ops)
{
    struct mp_wire_reader reader = {.arena = &call->arena};

    if (!json_is_array(ops) || !json_array_size(ops))
        return mp_refuse_bad(call, "\"ops\" must be an array with at least one op");
    for (size_t i = 0; i < json_array_size(ops) && !reader.failed; i++)
        check_shape(&reader, json_array_get(ops, i));
    return mp_call_read_end(call, &reader);
}

/* --- texts of an op: there and texts, by the shape --- */

static struct mp_str text_of(const json_t *op, const char *name)
{
    const json_t *member = json_object_get(op, name);

    return json_is_string(member) ? mp_str_n(json_string_value(member), json_string_length(member))
                                  : (struct mp_str){NULL, 0};
}

/* --- columns --- */

/* The array that a column lies in. */
static struct mp_columns siblings_of(struct mp_table *table, const struct mp_column_place *place)
{
    return place->parent ? (struct mp_columns){place->parent->children, place->parent->child_count}
                         : table->columns;
}

static void set_siblings(struct mp_table *table, struct mp_wire_column *parent,
                         struct mp_columns columns)
{
    if (parent) {
        parent->children = columns.items;
        parent->child_count = columns.count;
    } else {
        table->columns = columns;
    }
}

static enum mp_code add_column(struct mp_call *call, const json_t *op, struct mp_table *table)
{
    struct mp_wire_reader reader = {.arena = &call->arena};
    struct mp_str parent_path = text_of(op, "parent");
    struct mp_column_place parent = {0};
    struct mp_columns columns, more;
    struct mp_columns_check check = {
        .arena = &call->arena,
        .added = true,
        .nodes = mp_columns_nodes(table->columns),
        .no_comments = strcmp(shape_of(op)->op, "add_column") == 0,
    };
    struct mp_wire_column column;
    int64_t ordinal = 0;
    struct mp_err err;
    enum mp_code code = MP_OK;

    mp_wire_column_read(&reader, json_object_get(op, "column"), &column);
    code = mp_call_read_end(call, &reader);
    if (code)
        return code;
    if (parent_path.data) {
        code = mp_columns_path(&call->arena, table->columns, parent_path, &err, &parent);
        if (code)
            return invalid(call, &err);
        if (parent.type != MP_HOG_STRUCT)
            return mp_refuse_invalid(call, "parent %s is no struct", parent.path);
    }
    check.depth = parent.depth;
    code = mp_columns_check(&check, (struct mp_columns){&column, 1}, parent.path ? parent.path : "",
                            &err);
    if (code)
        return invalid(call, &err);
    columns = parent.column
                  ? (struct mp_columns){parent.column->children, parent.column->child_count}
                  : table->columns;
    for (uint32_t i = 0; i < columns.count; i++) {
        if (mp_str_eq(columns.items[i].name, column.name))
            return mp_refuse_invalid(call, "column \"%.*s\" already exists",
                                     MP_STR_ARG(column.name));
        if (columns.items[i].ordinal >= ordinal)
            ordinal = columns.items[i].ordinal + 1;
    }
    mp_columns_assign((struct mp_columns){&column, 1}, ordinal, &table->next_field_id);
    more = (struct mp_columns){mp_arena_take(&call->arena, sizeof(column) * (columns.count + 1)),
                               columns.count + 1};
    if (columns.count)
        memcpy(more.items, columns.items, sizeof(column) * columns.count);
    more.items[columns.count] = column;
    set_siblings(table, parent.column, more);
    return MP_OK;
}

static bool holds(struct mp_arena *arena, struct mp_wire_column *column, int64_t field_id)
{
    struct mp_column_place place;

    return mp_columns_find(arena, (struct mp_columns){column, 1}, field_id, &place);
}

static enum mp_code drop_column(struct mp_call *call, const json_t *op, struct mp_table *table)
{
    struct mp_column_place place;
    struct mp_columns columns, less;
    struct mp_err err;

    if (mp_columns_path(&call->arena, table->columns, text_of(op, "name"), &err, &place))
        return invalid(call, &err);
    columns = siblings_of(table, &place);
    if (columns.count == 1)
        return mp_refuse_invalid(call, "column %s is the last %s", place.path,
                                 place.parent ? "field of its struct" : "column of the table");
    for (uint32_t i = 0; i < table->partition.field_count; i++)
        if (holds(&call->arena, place.column, table->partition.fields[i].source_field_id))
            return mp_refuse_invalid(call, "column %s is a source of the partition spec",
                                     place.path);
    for (uint32_t i = 0; i < table->sort.field_count; i++)
        if (holds(&call->arena, place.column, table->sort.fields[i].source_field_id))
            return mp_refuse_invalid(call, "column %s is a source of the sort order", place.path);
    less = (struct mp_columns){mp_arena_take(&call->arena, sizeof(*less.items) * columns.count), 0};
    for (uint32_t i = 0; i < columns.count; i++)
        if (&columns.items[i] != place.column)
            less.items[less.count++] = columns.items[i];
    set_siblings(table, place.parent, less);
    return MP_OK;
}

static enum mp_code rename_column(struct mp_call *call, const json_t *op, struct mp_table *table)
{
    struct mp_str to = text_of(op, "to");
    struct mp_column_place place;
    struct mp_columns columns;
    struct mp_err err;

    if (mp_columns_path(&call->arena, table->columns, text_of(op, "from"), &err, &place))
        return invalid(call, &err);
    if (mp_name_column(to, mp_arena_printf(&call->arena, "%.*s", MP_STR_ARG(to)), &err))
        return invalid(call, &err);
    columns = siblings_of(table, &place);
    for (uint32_t i = 0; i < columns.count; i++)
        if (&columns.items[i] != place.column && mp_str_eq(columns.items[i].name, to))
            return mp_refuse_invalid(call, "column \"%.*s\" already exists", MP_STR_ARG(to));
    place.column->name = to;
    return MP_OK;
}

static enum mp_code promote_column(struct mp_call *call, const json_t *op, struct mp_table *table,
                                   struct mp_alter_effects *ret)
{
    enum mp_hog_type to;
    struct mp_column_place place;
    struct mp_err err;

    if (mp_columns_path(&call->arena, table->columns, text_of(op, "name"), &err, &place) ||
        mp_hog_type_read(text_of(op, "to"), &err, &to))
        return invalid(call, &err);
    if (!mp_hog_type_promotes(place.type, to))
        return mp_refuse_invalid(call, "column %s cannot be promoted from %s to %s", place.path,
                                 mp_hog_types[place.type].name, mp_hog_types[to].name);
    place.column->type = mp_str_c(mp_hog_types[to].name);
    ret->promoted[ret->promoted_count++] =
        (struct mp_alter_promotion){place.column->field_id, place.type, to};
    return MP_OK;
}

static enum mp_code comment_column(struct mp_call *call, const json_t *op, struct mp_table *table)
{
    struct mp_str comment = text_of(op, "comment");
    struct mp_column_place place;
    struct mp_err err;

    if (mp_columns_path(&call->arena, table->columns, text_of(op, "name"), &err, &place) ||
        mp_comment(comment, &err))
        return invalid(call, &err);
    place.column->comment = comment;
    return MP_OK;
}

/* --- the table --- */

static enum mp_code rename_table(struct mp_call *call, const json_t *op, struct mp_table *table,
                                 struct mp_alter_effects *ret)
{
    struct mp_str name = text_of(op, "new_name");
    struct mp_err err;

    if (mp_name_object("table", name, &err))
        return invalid(call, &err);
    ret->new_name = table->name = name;
    return MP_OK;
}

static enum mp_code set_partition(struct mp_call *call, const json_t *op, struct mp_table *table)
{
    struct mp_wire_reader reader = {.arena = &call->arena};
    struct mp_wire_partition_spec spec = {.spec_id = table->spec_id_max + 1};
    struct mp_err err;

    mp_wire_partition_fields_read(&reader, json_object_get(op, "fields"), &spec.fields,
                                  &spec.field_count);
    assert(!reader.failed);
    if (mp_partition_fields_check(&call->arena, table->columns, spec.fields, spec.field_count,
                                  &err))
        return invalid(call, &err);
    table->partition = spec;
    table->spec_id_max = spec.spec_id;
    return MP_OK;
}

static enum mp_code set_sort(struct mp_call *call, const json_t *op, struct mp_table *table)
{
    struct mp_wire_reader reader = {.arena = &call->arena};
    struct mp_wire_sort_spec spec = {.sort_id = table->sort_id_max + 1};
    struct mp_err err;

    mp_wire_sort_fields_read(&reader, json_object_get(op, "sort_fields"), &spec.fields,
                             &spec.field_count);
    assert(!reader.failed);
    if (mp_sort_fields_check(&call->arena, table->columns, spec.fields, spec.field_count, &err))
        return invalid(call, &err);
    table->sort = spec;
    table->sort_id_max = spec.sort_id;
    return MP_OK;
}

enum mp_code mp_properties_read(struct mp_call *call, const json_t *object, struct mp_str *ret)
{
    struct mp_err err;
    const char *key;
    json_t *value;
    char *text;

    if (json_object_size(object) > MP_PROPERTIES_MAX)
        return mp_refuse_invalid(call, "a table has at most %d properties", MP_PROPERTIES_MAX);
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        struct mp_str text_value = mp_str_n(json_string_value(value), json_string_length(value));

        if (!json_is_string(value))
            return mp_refuse_bad(call, "a property must be a string");
        if (mp_property(mp_str_c(key), text_value, &err))
            return invalid(call, &err);
        if (memchr(text_value.data, 0, text_value.size))
            return mp_refuse_invalid(call, "a property must not hold a NUL character");
    }
    text = json_dumps(object, JSON_COMPACT);
    if (!text)
        return mp_refuse_bad(call, "the properties cannot be kept");
    *ret = mp_arena_str(&call->arena, mp_str_c(text));
    free(text);
    return MP_OK;
}

static enum mp_code apply_one(struct mp_call *call, const json_t *op, struct mp_table *table,
                              struct mp_alter_effects *ret)
{
    const char *name = shape_of(op)->op;
    struct mp_err err;

    if (strncmp(name, "add_column", 10) == 0) {
        ret->adds_or_renames = true;
        return add_column(call, op, table);
    }
    if (strcmp(name, "rename_column") == 0) {
        ret->adds_or_renames = true;
        return rename_column(call, op, table);
    }
    if (strcmp(name, "drop_column") == 0)
        return drop_column(call, op, table);
    if (strcmp(name, "promote_column") == 0)
        return promote_column(call, op, table, ret);
    if (strcmp(name, "set_column_comment") == 0)
        return comment_column(call, op, table);
    if (strcmp(name, "rename_table") == 0)
        return rename_table(call, op, table, ret);
    if (strcmp(name, "set_partition_spec") == 0)
        return set_partition(call, op, table);
    if (strcmp(name, "set_sort_order") == 0)
        return set_sort(call, op, table);
    if (strcmp(name, "set_properties") == 0)
        return mp_properties_read(call, json_object_get(op, "properties"), &table->properties);
    assert(strcmp(name, "set_table_comment") == 0);
    if (mp_comment(text_of(op, "comment"), &err))
        return invalid(call, &err);
    table->comment = text_of(op, "comment");
    return MP_OK;
}

enum mp_code mp_alter_apply(struct mp_call *call, const json_t *ops, struct mp_table *table,
                            struct mp_alter_effects *ret)
{
    enum mp_code code = MP_OK;

    *ret = (struct mp_alter_effects){
        .promoted = mp_arena_take(&call->arena, json_array_size(ops) * sizeof(*ret->promoted)),
    };
    for (size_t i = 0; i < json_array_size(ops) && !code; i++)
        code = apply_one(call, json_array_get(ops, i), table, ret);
    return code;
}
