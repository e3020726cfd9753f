#include "lake/ducklake/layout.h"

#include <stdio.h>

#define NAME_SIZE_MAX   255 /* of one directory, where file systems stop */
#define COMPONENT_MAX   200 /* bytes of an encoded name or value */
#define COMPONENT_CUT   160
#define DIRECTORIES_MAX 640 /* all of a file's: S3 stops at 1,024 for the whole key */

static size_t scheme_size(struct mp_str path)
{
    for (size_t i = 0; i + 2 < path.size; i++)
        if (memcmp(path.data + i, "://", 3) == 0)
            return i ? i + 3 : 0;
    return 0;
}

/* Adds path's components to text, "." and ".." taken literally. */
static size_t add_components(char *text, size_t size, struct mp_str path)
{
    for (size_t at = 0; at < path.size;) {
        const char *part = path.data + at;
        const char *slash = memchr(part, '/', path.size - at);
        size_t part_size = slash ? (size_t)(slash - part) : path.size - at;

        at += part_size + 1;
        if (part_size == 0 || (part_size == 1 && part[0] == '.'))
            continue;
        if (part_size == 2 && part[0] == '.' && part[1] == '.') {
            while (size > 1 && text[size - 2] != '/')
                size--;
            if (size > 1)
                size--;
            continue;
        }
        memcpy(text + size, part, part_size);
        size += part_size;
        text[size++] = '/';
    }
    return size;
}

struct mp_str mp_dl_data_path(struct mp_arena *arena, struct mp_str path, struct mp_str directory)
{
    size_t scheme = scheme_size(path), size = 0;
    char *text;

    if (path.size == 0)
        return path;
    text = mp_arena_take(arena, path.size + directory.size + 4);
    if (scheme) {
        while (path.size > scheme && path.data[path.size - 1] == '/')
            path.size--;
        memcpy(text, path.data, path.size);
        text[path.size] = '/';
        return (struct mp_str){text, path.size == scheme ? path.size : path.size + 1};
    }
    text[size++] = '/';
    if (path.data[0] != '/')
        size = add_components(text, size, directory);
    size = add_components(text, size, path);
    return (struct mp_str){text, size};
}

void mp_dl_quote(struct mp_buf *ret, struct mp_str name)
{
    mp_buf_add_byte(ret, '"');
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == '"')
            mp_buf_add_byte(ret, '"');
        mp_buf_add_byte(ret, name.data[i]);
    }
    mp_buf_add_byte(ret, '"');
}

struct mp_str mp_dl_directory(struct mp_arena *arena, struct mp_str name, const char *uuid)
{
    bool plain = name.size > 0;

    for (size_t i = 0; i < name.size; i++) {
        unsigned char c = mp_ascii_lower((unsigned char)name.data[i]);

        plain = plain && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-');
    }
    if (plain)
        return mp_str_c(mp_arena_printf(arena, "%.*s/", MP_STR_ARG(name)));
    return mp_str_c(mp_arena_printf(arena, "%s/", uuid));
}

/* FNV-1a, 64 bits (Fowler, Noll, Vo) */
static uint64_t hash_of(struct mp_str text)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ (unsigned char)text.data[i]) * 0x100000001b3u;
    return hash;
}

/* Adds text percent-encoded, stopping once it is longer than `max`. Gives the size of what was
 * added up to `cut` bytes, in whole bytes of text. */
static size_t add_encoded(struct mp_buf *ret, struct mp_str text, size_t max, size_t cut)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t start = ret->size, within = 0;

    for (size_t i = 0; i < text.size && ret->size - start <= max; i++) {
        unsigned char c = (unsigned char)text.data[i], low = mp_ascii_lower(c);

        if ((low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
            c == '.' || c == '~') {
            mp_buf_add_byte(ret, (char)c);
        } else {
            char three[3] = {'%', hex[c >> 4], hex[c & 15]};
            mp_buf_add(ret, three, 3);
        }
        if (ret->size - start <= cut)
            within = ret->size - start;
    }
    return within;
}

/* The same, but what is longer than COMPONENT_MAX is cut and closed with a hash of the whole. */
static void add_component(struct mp_buf *ret, struct mp_str text)
{
    size_t start = ret->size, cut = add_encoded(ret, text, COMPONENT_MAX, COMPONENT_CUT);

    if (ret->size - start > COMPONENT_MAX) {
        ret->size = start + cut;
        mp_buf_printf(ret, "~%016llx", (unsigned long long)hash_of(text));
    }
}

void mp_dl_partition_directory(struct mp_buf *ret, struct mp_str name,
                               const struct mp_partition_value *value)
{
    size_t begin = ret->size, start;

    add_component(ret, name);
    mp_buf_add_byte(ret, '=');
    start = ret->size;
    if (value->null)
        mp_buf_add_c(ret, "__HIVE_DEFAULT_PARTITION__");
    else
        add_component(ret, value->text);
    if (ret->size - begin > NAME_SIZE_MAX) {
        ret->size = start;
        mp_buf_printf(ret, "~%016llx",
                      (unsigned long long)hash_of(value->null ? MP_STR("") : value->text));
    }
    mp_buf_add_byte(ret, '/');
}

void mp_dl_partition_directories(struct mp_buf *ret, const struct mp_str *names,
                                 const struct mp_partition_value *values, uint32_t count)
{
    struct mp_buf all = MP_BUF_INIT(SIZE_MAX);

    for (uint32_t i = 0; i < count; i++)
        mp_dl_partition_directory(&all, names[i], &values[i]);
    if (all.size <= DIRECTORIES_MAX)
        mp_buf_add_str(ret, mp_buf_str(&all));
    else
        mp_buf_printf(ret, "~%016llx/", (unsigned long long)hash_of(mp_buf_str(&all)));
    mp_buf_fini(&all);
}
