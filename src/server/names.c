/* server/names.c - see names.h. */
#include "server/names.h"

#include <string.h>

enum { SHOWN_MAX = 80 };

static bool lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool letter(char c)
{
    return lower(c) || (c >= 'A' && c <= 'Z');
}

static int shown(struct mp_str text)
{
    return text.size > SHOWN_MAX ? SHOWN_MAX : (int)text.size;
}

enum mp_code mp_name_catalog(struct mp_str name, struct mp_err *err)
{
    bool good = name.size >= 1 && name.size <= 63 && (lower(name.data[0]) || digit(name.data[0]));

    for (size_t i = 0; good && i < name.size; i++)
        good = lower(name.data[i]) || digit(name.data[i]) || name.data[i] == '_' ||
               name.data[i] == '-';
    if (!good)
        return mp_err_set(err, MP_BAD_DATA,
                          "catalog name \"%.*s\" does not match ^[a-z0-9][a-z0-9_-]{0,62}$",
                          shown(name), name.data);
    return MP_OK;
}

static bool plain_name(struct mp_str name)
{
    bool good = name.size >= 1 && name.size <= 128 && (letter(name.data[0]) || name.data[0] == '_');

    for (size_t i = 0; good && i < name.size; i++)
        good = letter(name.data[i]) || digit(name.data[i]) || name.data[i] == '_' ||
               name.data[i] == '-';
    return good;
}

enum mp_code mp_name_object(const char *what, struct mp_str name, struct mp_err *err)
{
    if (!plain_name(name))
        return mp_err_set(err, MP_BAD_DATA,
                          "%s name \"%.*s\" does not match ^[A-Za-z_][A-Za-z0-9_-]{0,127}$", what,
                          shown(name), name.data);
    return MP_OK;
}

enum mp_code mp_name_column(struct mp_str name, const char *path, struct mp_err *err)
{
    if (!plain_name(name))
        return mp_err_set(err, MP_BAD_DATA,
                          "column name \"%.200s\" does not match ^[A-Za-z_][A-Za-z0-9_-]{0,127}$",
                          path);
    if (mp_str_starts(name, MP_STR("_hog")))
        return mp_err_set(err, MP_BAD_DATA, "column name \"%.200s\": the prefix _hog is reserved",
                          path);
    return MP_OK;
}

struct mp_str mp_data_path_trim(struct mp_str path)
{
    while (path.size && path.data[path.size - 1] == '/')
        path.size--;
    return path;
}

/* White space and control characters, those of Unicode's Latin-1 block and its wide spaces
 * included. */
static bool clean(struct mp_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        unsigned char next = i + 1 < text.size ? (unsigned char)text.data[i + 1] : 0;
        unsigned char third = i + 2 < text.size ? (unsigned char)text.data[i + 2] : 0;

        if (c <= 0x20 || c == 0x7f)
            return false;
        if (c == 0xc2 && next >= 0x80 && next <= 0xa0) /* U+0080 to U+00A0 */
            return false;
        if (c == 0xe2 && next == 0x80 &&
            (third <= 0x8a || third == 0xa8 || third == 0xa9 || third == 0xaf))
            return false;
        if ((c == 0xe3 && next == 0x80 && third == 0x80) ||
            (c == 0xe1 && next == 0x9a && third == 0x80) ||
            (c == 0xe2 && next == 0x81 && third == 0x9f))
            return false;
    }
    return true;
}

/* No segment is empty, "." or "..". */
static bool good_segments(struct mp_str text)
{
    size_t begin = 0;

    for (size_t i = 0; i <= text.size; i++) {
        struct mp_str segment;

        if (i < text.size && text.data[i] != '/')
            continue;
        segment = mp_str_n(text.data + begin, i - begin);
        if (!segment.size || mp_str_eq(segment, MP_STR(".")) || mp_str_eq(segment, MP_STR("..")))
            return false;
        begin = i + 1;
    }
    return true;
}

enum mp_code mp_data_path(struct mp_str path, struct mp_err *err)
{
    struct mp_str scheme = MP_STR("s3://"), rest;

    if (mp_chars(path) > MP_DATA_PATH_CHARS_MAX)
        return mp_err_set(err, MP_BAD_DATA, "data_path has more than %d characters",
                          MP_DATA_PATH_CHARS_MAX);
    if (!mp_str_starts(path, scheme))
        return mp_err_set(err, MP_BAD_DATA,
                          "data_path \"%.*s\" is not of the form s3://bucket/prefix", shown(path),
                          path.data);
    rest = mp_str_n(path.data + scheme.size, path.size - scheme.size);
    if (!clean(rest))
        return mp_err_set(err, MP_BAD_DATA, "data_path holds white space or control characters");
    if (!rest.size || rest.data[0] == '/')
        return mp_err_set(err, MP_BAD_DATA, "data_path names no bucket");
    if (!good_segments(mp_data_path_trim(rest)))
        return mp_err_set(err, MP_BAD_DATA, "data_path has an empty, \".\" or \"..\" segment");
    return MP_OK;
}

bool mp_data_paths_overlap(struct mp_str a, struct mp_str b)
{
    a = mp_data_path_trim(a);
    b = mp_data_path_trim(b);
    if (a.size > b.size) {
        struct mp_str swap = a;

        a = b;
        b = swap;
    }
    return mp_str_starts(b, a) && (b.size == a.size || b.data[a.size] == '/');
}

bool mp_object_path(struct mp_str data_path, struct mp_str path)
{
    data_path = mp_data_path_trim(data_path);
    if (!mp_str_starts(path, data_path) || path.size < data_path.size + 2 ||
        path.data[data_path.size] != '/')
        return false;
    path = mp_str_n(path.data + data_path.size + 1, path.size - data_path.size - 1);
    return clean(path) && good_segments(path);
}

bool mp_blank(struct mp_str text)
{
    static const char *const wide[] = {
        "\xc2\x85",     "\xc2\xa0",     "\xe2\x80\x80", "\xe2\x80\x81", "\xe2\x80\x82",
        "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86", "\xe2\x80\x87",
        "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8", "\xe2\x80\xa9",
        "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};
    size_t at = 0;

    while (at < text.size) {
        size_t step = strchr(" \t\r\n\v\f", text.data[at]) ? 1 : 0;

        for (size_t i = 0; !step && i < sizeof(wide) / sizeof(*wide); i++)
            if (mp_str_starts(mp_str_n(text.data + at, text.size - at), mp_str_c(wide[i])))
                step = strlen(wide[i]);
        if (!step)
            return false;
        at += step;
    }
    return true;
}

size_t mp_chars(struct mp_str text)
{
    size_t chars = 0;

    for (size_t i = 0; i < text.size; i++)
        chars += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return chars;
}

enum mp_code mp_comment(struct mp_str comment, struct mp_err *err)
{
    if (mp_chars(comment) > MP_COMMENT_CHARS_MAX)
        return mp_err_set(err, MP_BAD_DATA, "a comment has more than %d characters",
                          MP_COMMENT_CHARS_MAX);
    return MP_OK;
}

enum mp_code mp_property(struct mp_str key, struct mp_str value, struct mp_err *err)
{
    static const char *const taken[] = {"partitioning", "sorted_by", "location", "format",
                                        "comment"};
    bool good = key.size >= 1 && key.size <= 128 && lower(key.data[0]);

    for (size_t i = 0; good && i < key.size; i++)
        good = lower(key.data[i]) || digit(key.data[i]) || strchr("_.-", key.data[i]);
    if (!good)
        return mp_err_set(err, MP_BAD_DATA,
                          "property \"%.*s\" does not match ^[a-z][a-z0-9_.-]{0,127}$", shown(key),
                          key.data);
    if (mp_str_starts(key, MP_STR("hoglake.")) || mp_str_starts(key, MP_STR("trino.")))
        good = false;
    for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
        good = good && !mp_str_eq(key, mp_str_c(taken[i]));
    if (!good)
        return mp_err_set(err, MP_BAD_DATA, "property \"%.*s\" is reserved", shown(key), key.data);
    if (mp_chars(value) > MP_PROPERTY_VALUE_CHARS_MAX)
        return mp_err_set(err, MP_BAD_DATA, "property \"%.*s\" has more than %d characters",
                          shown(key), key.data, MP_PROPERTY_VALUE_CHARS_MAX);
    return MP_OK;
}
