/* lake/hoglake/wire.c - see wire.h: reading, and the texts. */
#include "lake/hoglake/wire.h"

#include "base/base64.h"
#include "base/civil.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

/* --- reading --- */

void mp_wire_fault(struct mp_wire_reader *reader, const char *format, ...)
{
    va_list args;

    if (reader->failed)
        return;
    reader->failed = true;
    va_start(args, format);
    vsnprintf(reader->fault, sizeof(reader->fault), format, args);
    va_end(args);
}

bool mp_wire_object(struct mp_wire_reader *reader, const json_t *value, const char *what,
                    const char *const *known)
{
    const char *name;
    json_t *member;

    if (!json_is_object(value)) {
        mp_wire_fault(reader, "%s must be an object", what);
        return false;
    }
    if (reader->answer)
        return !reader->failed;
    json_object_foreach((json_t *)(uintptr_t)value, name, member)
    {
        const char *const *k = known;

        while (*k && strcmp(*k, name) != 0)
            k++;
        if (!*k) {
            mp_wire_fault(reader, "%s has an unknown field \"%.100s\"", what, name);
            return false;
        }
    }
    return !reader->failed;
}

/* The member; NULL where it is absent or null, which is a fault where it is required. */
static const json_t *member_of(struct mp_wire_reader *reader, const json_t *object,
                               const char *name, bool required)
{
    const json_t *member;

    if (reader->failed)
        return NULL;
    member = json_object_get(object, name);
    if (member && !json_is_null(member))
        return member;
    if (required)
        mp_wire_fault(reader, "the field \"%s\" is required", name);
    return NULL;
}

bool mp_wire_text_item(struct mp_wire_reader *reader, const json_t *value, const char *what,
                       struct mp_str *ret)
{
    if (!json_is_string(value)) {
        mp_wire_fault(reader, "\"%s\" must be a string", what);
        return false;
    }
    *ret = mp_str_n(json_string_value(value), json_string_length(value));
    if (ret->size && memchr(ret->data, 0, ret->size)) { /* W1 */
        mp_wire_fault(reader, "\"%s\" must not hold a NUL character", what);
        reader->nul = true;
        return false;
    }
    return true;
}

void mp_wire_text(struct mp_wire_reader *reader, const json_t *object, const char *name,
                  bool required, struct mp_str *ret)
{
    const json_t *member = member_of(reader, object, name, required);
    struct mp_str text;

    if (member && mp_wire_text_item(reader, member, name, &text))
        *ret = text;
}

void mp_wire_int(struct mp_wire_reader *reader, const json_t *object, const char *name,
                 bool required, int64_t *ret, bool *ret_has)
{
    const json_t *member = member_of(reader, object, name, required);

    if (!member)
        return;
    if (!json_is_integer(member)) {
        mp_wire_fault(reader, "\"%s\" must be an integer", name);
        return;
    }
    *ret = json_integer_value(member);
    if (ret_has)
        *ret_has = true;
}

void mp_wire_bool(struct mp_wire_reader *reader, const json_t *object, const char *name, bool *ret)
{
    const json_t *member = member_of(reader, object, name, false);

    if (!member)
        return;
    if (!json_is_boolean(member))
        mp_wire_fault(reader, "\"%s\" must be true or false", name);
    else
        *ret = json_is_true(member);
}

void mp_wire_uuid(struct mp_wire_reader *reader, const json_t *object, const char *name,
                  bool required, struct mp_str *ret)
{
    struct mp_str text = {NULL, 0};
    char canonical[37];

    mp_wire_text(reader, object, name, required, &text);
    if (reader->failed || !text.data)
        return;
    if (!mp_wire_uuid_read(text, canonical))
        mp_wire_fault(reader, "\"%s\" must be a UUID", name);
    else
        *ret = mp_arena_str(reader->arena, mp_str_c(canonical));
}

const json_t *mp_wire_array(struct mp_wire_reader *reader, const json_t *object, const char *name,
                            bool required)
{
    const json_t *member = member_of(reader, object, name, required);

    if (member && !json_is_array(member)) {
        mp_wire_fault(reader, "\"%s\" must be an array", name);
        return NULL;
    }
    return member;
}

void mp_wire_json_text(struct mp_wire_reader *reader, const json_t *object, const char *name,
                       struct mp_str *ret)
{
    const json_t *member = member_of(reader, object, name, false);
    char *text;

    if (!member)
        return;
    if (!json_is_object(member)) {
        mp_wire_fault(reader, "\"%s\" must be an object", name);
        return;
    }
    text = json_dumps(member, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!text) {
        mp_wire_fault(reader, "\"%s\" cannot be kept", name);
        return;
    }
    if (strstr(text, "\\u0000")) {
        mp_wire_fault(reader, "\"%s\" must not hold a NUL character", name);
        reader->nul = true;
    }
    *ret = mp_arena_str(reader->arena, mp_str_c(text));
    free(text);
}

static void *items(struct mp_wire_reader *reader, const json_t *array, size_t item_size,
                   uint32_t *ret_count)
{
    *ret_count = (uint32_t)json_array_size(array);
    return mp_arena_take(reader->arena, item_size * (*ret_count + 1));
}

void mp_wire_column_read(struct mp_wire_reader *reader, const json_t *value,
                         struct mp_wire_column *ret)
{
    static const char *const known[] = {"name",    "type",     "nullable", "type_params",
                                        "comment", "children", NULL};
    const json_t *children;

    *ret = (struct mp_wire_column){.nullable = true};
    if (!mp_wire_object(reader, value, "a column", known))
        return;
    mp_wire_text(reader, value, "name", true, &ret->name);
    mp_wire_text(reader, value, "type", true, &ret->type);
    mp_wire_bool(reader, value, "nullable", &ret->nullable);
    mp_wire_json_text(reader, value, "type_params", &ret->type_params);
    mp_wire_text(reader, value, "comment", false, &ret->comment);
    if (reader->answer) {
        mp_wire_int(reader, value, "field_id", true, &ret->field_id, NULL);
        mp_wire_int(reader, value, "ordinal", true, &ret->ordinal, NULL);
    }
    children = mp_wire_array(reader, value, "children", false);
    if (!children)
        return;
    ret->has_children = true;
    mp_wire_columns_read(reader, children, &ret->children, &ret->child_count);
}

void mp_wire_columns_read(struct mp_wire_reader *reader, const json_t *array,
                          struct mp_wire_column **ret, uint32_t *ret_count)
{
    struct mp_wire_column *columns = items(reader, array, sizeof(*columns), ret_count);

    for (uint32_t i = 0; i < *ret_count && !reader->failed; i++)
        mp_wire_column_read(reader, json_array_get(array, i), &columns[i]);
    *ret = columns;
}

void mp_wire_partition_fields_read(struct mp_wire_reader *reader, const json_t *array,
                                   struct mp_wire_partition_field **ret, uint32_t *ret_count)
{
    static const char *const known[] = {"source_field_id", "transform", "transform_param", NULL};
    struct mp_wire_partition_field *fields = items(reader, array, sizeof(*fields), ret_count);

    for (uint32_t i = 0; i < *ret_count && !reader->failed; i++) {
        const json_t *value = json_array_get(array, i);

        if (!mp_wire_object(reader, value, "a partition field", known))
            return;
        mp_wire_int(reader, value, "source_field_id", true, &fields[i].source_field_id, NULL);
        mp_wire_text(reader, value, "transform", true, &fields[i].transform);
        mp_wire_int(reader, value, "transform_param", false, &fields[i].param,
                    &fields[i].has_param);
    }
    *ret = fields;
}

void mp_wire_sort_fields_read(struct mp_wire_reader *reader, const json_t *array,
                              struct mp_wire_sort_field **ret, uint32_t *ret_count)
{
    static const char *const known[] = {"source_field_id", "direction", "null_order", NULL};
    struct mp_wire_sort_field *fields = items(reader, array, sizeof(*fields), ret_count);

    for (uint32_t i = 0; i < *ret_count && !reader->failed; i++) {
        const json_t *value = json_array_get(array, i);

        if (!mp_wire_object(reader, value, "a sort field", known))
            return;
        mp_wire_int(reader, value, "source_field_id", true, &fields[i].source_field_id, NULL);
        mp_wire_text(reader, value, "direction", true, &fields[i].direction);
        mp_wire_text(reader, value, "null_order", true, &fields[i].null_order);
    }
    *ret = fields;
}

static void bound_read(struct mp_wire_reader *reader, const json_t *object, const char *name,
                       struct mp_str *ret)
{
    struct mp_str text = {NULL, 0};

    mp_wire_text(reader, object, name, false, &text);
    if (text.data && !reader->failed && !mp_base64_read(reader->arena, text, ret))
        mp_wire_fault(reader, "\"%s\" is no base64", name);
}

static void stats_read(struct mp_wire_reader *reader, const json_t *array,
                       struct mp_wire_file *file)
{
    static const char *const known[] = {"field_id",   "value_count", "null_count",  "nan_count",
                                        "size_bytes", "lower_bound", "upper_bound", NULL};

    file->has_stats = true;
    file->stats = items(reader, array, sizeof(*file->stats), &file->stats_count);
    for (uint32_t i = 0; i < file->stats_count && !reader->failed; i++) {
        const json_t *value = json_array_get(array, i);
        struct mp_wire_stats *stats = &file->stats[i];

        if (!mp_wire_object(reader, value, "column_stats", known))
            return;
        mp_wire_int(reader, value, "field_id", true, &stats->field_id, NULL);
        mp_wire_int(reader, value, "value_count", true, &stats->value_count, NULL);
        mp_wire_int(reader, value, "null_count", true, &stats->null_count, NULL);
        mp_wire_int(reader, value, "nan_count", false, &stats->nan_count, &stats->has_nan_count);
        mp_wire_int(reader, value, "size_bytes", false, &stats->size_bytes, &stats->has_size);
        bound_read(reader, value, "lower_bound", &stats->lower);
        bound_read(reader, value, "upper_bound", &stats->upper);
    }
}

static void partition_values_read(struct mp_wire_reader *reader, const json_t *array,
                                  struct mp_wire_file *file)
{
    file->has_partition = true;
    file->partition_values =
        items(reader, array, sizeof(*file->partition_values), &file->partition_count);
    for (uint32_t i = 0; i < file->partition_count && !reader->failed; i++) {
        const json_t *value = json_array_get(array, i);

        if (!json_is_null(value))
            mp_wire_text_item(reader, value, "partition_values", &file->partition_values[i]);
    }
}

static void splits_read(struct mp_wire_reader *reader, const json_t *array,
                        struct mp_wire_file *file)
{
    file->has_splits = true;
    file->split_offsets = items(reader, array, sizeof(*file->split_offsets), &file->split_count);
    for (uint32_t i = 0; i < file->split_count && !reader->failed; i++) {
        const json_t *value = json_array_get(array, i);

        if (!json_is_integer(value))
            mp_wire_fault(reader, "\"split_offsets\" must hold integers");
        else
            file->split_offsets[i] = json_integer_value(value);
    }
}

void mp_wire_files_read(struct mp_wire_reader *reader, const json_t *array,
                        struct mp_wire_file **ret, uint32_t *ret_count)
{
    static const char *const known[] = {
        "path",        "file_format",  "record_count",     "file_size_bytes",
        "footer_size", "column_stats", "partition_values", "split_offsets",
        NULL};
    struct mp_wire_file *files = items(reader, array, sizeof(*files), ret_count);

    for (uint32_t i = 0; i < *ret_count && !reader->failed; i++) {
        const json_t *value = json_array_get(array, i), *list;
        struct mp_wire_file *file = &files[i];

        if (!mp_wire_object(reader, value, "a file", known))
            return;
        mp_wire_text(reader, value, "path", true, &file->path);
        mp_wire_text(reader, value, "file_format", false, &file->format);
        mp_wire_int(reader, value, "record_count", true, &file->record_count, NULL);
        mp_wire_int(reader, value, "file_size_bytes", true, &file->file_size_bytes, NULL);
        mp_wire_int(reader, value, "footer_size", false, &file->footer_size,
                    &file->has_footer_size);
        list = mp_wire_array(reader, value, "column_stats", false);
        if (list)
            stats_read(reader, list, file);
        list = mp_wire_array(reader, value, "partition_values", false);
        if (list)
            partition_values_read(reader, list, file);
        list = mp_wire_array(reader, value, "split_offsets", false);
        if (list)
            splits_read(reader, list, file);
    }
    *ret = files;
}

static void append_read(struct mp_wire_reader *reader, const json_t *value,
                        struct mp_wire_append *ret)
{
    static const char *const known[] = {"namespace", "table", "expected_table_uuid", "files", NULL};
    const json_t *files;

    if (!mp_wire_object(reader, value, "an append", known))
        return;
    mp_wire_text(reader, value, "namespace", true, &ret->namespace_name);
    mp_wire_text(reader, value, "table", true, &ret->table);
    mp_wire_uuid(reader, value, "expected_table_uuid", false, &ret->expected_uuid);
    files = mp_wire_array(reader, value, "files", true);
    if (files)
        mp_wire_files_read(reader, files, &ret->files, &ret->file_count);
}

static void delete_read(struct mp_wire_reader *reader, const json_t *value,
                        struct mp_wire_delete *ret)
{
    static const char *const known[] = {"namespace", "table", "expected_table_uuid", "files", NULL};
    static const char *const known_file[] = {"data_file_id",    "path",           "delete_count",
                                             "file_size_bytes", "data_file_path", NULL};
    const json_t *files;

    if (!mp_wire_object(reader, value, "a delete", known))
        return;
    mp_wire_text(reader, value, "namespace", true, &ret->namespace_name);
    mp_wire_text(reader, value, "table", true, &ret->table);
    mp_wire_uuid(reader, value, "expected_table_uuid", false, &ret->expected_uuid);
    files = mp_wire_array(reader, value, "files", true);
    if (!files)
        return;
    ret->files = items(reader, files, sizeof(*ret->files), &ret->file_count);
    for (uint32_t i = 0; i < ret->file_count && !reader->failed; i++) {
        const json_t *file = json_array_get(files, i);

        if (!mp_wire_object(reader, file, "a delete file", known_file))
            return;
        mp_wire_int(reader, file, "data_file_id", true, &ret->files[i].data_file_id, NULL);
        mp_wire_text(reader, file, "path", true, &ret->files[i].path);
        mp_wire_int(reader, file, "delete_count", true, &ret->files[i].delete_count, NULL);
        mp_wire_int(reader, file, "file_size_bytes", true, &ret->files[i].file_size_bytes, NULL);
        mp_wire_text(reader, file, "data_file_path", false, &ret->files[i].data_file_path);
    }
}

void mp_wire_commit_read(struct mp_wire_reader *reader, const json_t *value,
                         struct mp_wire_commit *ret)
{
    static const char *const known[] = {"idempotency_key", "read_snapshot", "appends", "deletes",
                                        "author",          "message",       NULL};
    const json_t *list;

    *ret = (struct mp_wire_commit){0};
    if (!mp_wire_object(reader, value, "the request", known))
        return;
    mp_wire_uuid(reader, value, "idempotency_key", false, &ret->key);
    mp_wire_int(reader, value, "read_snapshot", false, &ret->read_snapshot,
                &ret->has_read_snapshot);
    mp_wire_text(reader, value, "author", false, &ret->author);
    mp_wire_text(reader, value, "message", false, &ret->message);
    list = mp_wire_array(reader, value, "appends", false);
    if (list) {
        ret->appends = items(reader, list, sizeof(*ret->appends), &ret->append_count);
        for (uint32_t i = 0; i < ret->append_count && !reader->failed; i++)
            append_read(reader, json_array_get(list, i), &ret->appends[i]);
    }
    list = mp_wire_array(reader, value, "deletes", false);
    if (list) {
        ret->deletes = items(reader, list, sizeof(*ret->deletes), &ret->delete_count);
        for (uint32_t i = 0; i < ret->delete_count && !reader->failed; i++)
            delete_read(reader, json_array_get(list, i), &ret->deletes[i]);
    }
}

/* --- texts --- */

bool mp_wire_uuid_read(struct mp_str text, char ret[37])
{
    if (text.size != 36)
        return false;
    for (int i = 0; i < 36; i++) {
        unsigned char c = mp_ascii_lower((unsigned char)text.data[i]);
        bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;

        if (hyphen ? c != '-' : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        ret[i] = (char)c;
    }
    ret[36] = 0;
    return true;
}

/* Takes `digits` digits; false where there are fewer. */
static bool take_number(struct mp_str *text, unsigned digits, int64_t *ret)
{
    int64_t number = 0;

    if (text->size < digits)
        return false;
    for (unsigned i = 0; i < digits; i++) {
        if (text->data[i] < '0' || text->data[i] > '9')
            return false;
        number = number * 10 + (text->data[i] - '0');
    }
    text->data += digits, text->size -= digits;
    *ret = number;
    return true;
}

static bool take_char(struct mp_str *text, char c)
{
    if (!text->size || mp_ascii_lower((unsigned char)text->data[0]) != (unsigned char)c)
        return false;
    text->data++, text->size--;
    return true;
}

/* "." and up to nine digits, as microseconds (cut). */
static bool take_fraction(struct mp_str *text, int64_t *ret_us)
{
    unsigned count = 0;
    int64_t us = 0;

    *ret_us = 0;
    if (!take_char(text, '.'))
        return true;
    for (; text->size && text->data[0] >= '0' && text->data[0] <= '9' && count < 9; count++) {
        if (count < 6)
            us = us * 10 + (text->data[0] - '0');
        text->data++, text->size--;
    }
    for (unsigned i = count; i < 6; i++)
        us *= 10;
    *ret_us = us;
    return count > 0;
}

/* Z or +hh:mm or -hh:mm, as seconds. */
static bool take_offset(struct mp_str *text, int64_t *ret_s)
{
    int64_t sign = 1, hours, minutes = 0;

    *ret_s = 0;
    if (take_char(text, 'z'))
        return true;
    if (take_char(text, '-'))
        sign = -1;
    else if (!take_char(text, '+'))
        return false;
    if (!take_number(text, 2, &hours))
        return false;
    if (text->size && (!take_char(text, ':') || !take_number(text, 2, &minutes)))
        return false;
    *ret_s = sign * (hours * 3600 + minutes * 60);
    return hours < 24 && minutes < 60;
}

bool mp_wire_instant_read(struct mp_str text, int64_t *ret_us)
{
    int64_t year, month, day, hour, minute, second = 0, us = 0, offset;
    struct mp_civil date;

    if (!take_number(&text, 4, &year) || !take_char(&text, '-') || !take_number(&text, 2, &month) ||
        !take_char(&text, '-') || !take_number(&text, 2, &day) || !take_char(&text, 't') ||
        !take_number(&text, 2, &hour) || !take_char(&text, ':') || !take_number(&text, 2, &minute))
        return false;
    if (take_char(&text, ':') && (!take_number(&text, 2, &second) || !take_fraction(&text, &us)))
        return false;
    if (!take_offset(&text, &offset) || text.size)
        return false;
    date = (struct mp_civil){year, (unsigned)month, (unsigned)day};
    if (!mp_civil_valid(date) || hour > 23 || minute > 59 || second > 59)
        return false;
    *ret_us = mp_days_of_civil(date) * MP_DAY_US +
              ((hour * 60 + minute) * 60 + second - offset) * 1000000 + us;
    return true;
}

void mp_wire_instant_print(struct mp_buf *buf, int64_t us)
{
    int64_t days = mp_floor_div(us, MP_DAY_US), rest = mp_floor_mod(us, MP_DAY_US);
    struct mp_civil date = mp_civil_of_days(days);
    int64_t seconds = rest / 1000000, fraction = rest % 1000000;

    mp_buf_printf(buf, "%04lld-%02u-%02uT%02lld:%02lld:%02lld", (long long)date.year, date.month,
                  date.day, (long long)seconds / 3600, (long long)seconds / 60 % 60,
                  (long long)seconds % 60);
    if (fraction % 1000)
        mp_buf_printf(buf, ".%06lld", (long long)fraction);
    else if (fraction)
        mp_buf_printf(buf, ".%03lld", (long long)fraction / 1000);
    mp_buf_add_byte(buf, 'Z');
}
