/* config/text.c - the small grammars that settings are written in. Pure. */
#include "config/text.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

static bool blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

struct mp_str mp_text_trim(struct mp_str text)
{
    while (text.size && blank(text.data[0]))
        text.data++, text.size--;
    while (text.size && blank(text.data[text.size - 1]))
        text.size--;
    return text;
}

bool mp_text_identifier(struct mp_str text)
{
    if (!text.size || text.size > 255 || digit(text.data[0]))
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (!letter(text.data[i]) && !digit(text.data[i]) && text.data[i] != '_')
            return false;
    return true;
}

bool mp_text_name(struct mp_str name, const char *first, const char *rest, size_t more)
{
    bool ok = name.size && name.size <= more + 1 && name.data[0] && strchr(first, name.data[0]);

    for (size_t i = 1; i < name.size && ok; i++)
        ok = name.data[i] && strchr(rest, name.data[i]);
    return ok;
}

bool mp_text_hoglake_name(struct mp_str name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789-";

    return mp_text_name(name, first, rest, 127);
}

bool mp_text_integer(struct mp_str text, int64_t *ret, bool *ret_fits)
{
    bool negative = false, fits = true;
    uint64_t value = 0, limit;

    text = mp_text_trim(text);
    if (text.size && (text.data[0] == '+' || text.data[0] == '-')) {
        negative = text.data[0] == '-';
        text.data++, text.size--;
    }
    limit = (uint64_t)INT64_MAX + negative;
    if (!text.size || !digit(text.data[0]) || !digit(text.data[text.size - 1]))
        return false;
    for (size_t i = 0; i < text.size; i++) {
        unsigned next = (unsigned)(text.data[i] - '0');

        if (text.data[i] == '_' && text.data[i - 1] != '_')
            continue;
        if (!digit(text.data[i]))
            return false;
        if (value > (limit - next) / 10)
            fits = false;
        else
            value = value * 10 + next;
    }
    *ret_fits = fits;
    if (fits)
        *ret = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool mp_text_real(struct mp_str text, double *ret)
{
    char copy[64], *end;
    double value;

    text = mp_text_trim(text);
    if (!text.size || text.size >= sizeof(copy))
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (!digit(text.data[i]) && !strchr("+-.eE", text.data[i]))
            return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    value = strtod(copy, &end);
    if (*end || !isfinite(value))
        return false;
    *ret = value;
    return true;
}

bool mp_text_uuid(struct mp_str text)
{
    static const struct mp_str urn = {"urn:uuid:", 9};
    bool hyphens;

    if (mp_str_starts(text, urn)) {
        text.data += urn.size, text.size -= urn.size;
    } else if (text.size >= 2 && text.data[0] == '{' && text.data[text.size - 1] == '}') {
        text.data++, text.size -= 2;
    }
    hyphens = text.size == 36;
    if (!hyphens && text.size != 32)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        bool hyphen = hyphens && (i == 8 || i == 13 || i == 18 || i == 23);

        if (hyphen ? text.data[i] != '-' : !isxdigit((unsigned char)text.data[i]))
            return false;
    }
    return true;
}

struct mp_str mp_text_lower(struct mp_arena *arena, struct mp_str text)
{
    struct mp_str copy = mp_arena_str(arena, text);
    char *bytes = mp_arena_take(arena, text.size + 1);

    for (size_t i = 0; i < copy.size; i++)
        bytes[i] = (char)mp_ascii_lower((unsigned char)copy.data[i]);
    return (struct mp_str){bytes, copy.size};
}

bool mp_text_next(struct mp_str *rest, char separator, struct mp_str *ret)
{
    int depth = 0;
    size_t i = 0;

    if (!rest->data)
        return false;
    for (; i < rest->size; i++) {
        char c = rest->data[i];

        depth += (c == '(') - (c == ')');
        if (c == separator && depth <= 0)
            break;
    }
    *ret = (struct mp_str){rest->data, i};
    if (i == rest->size)
        *rest = (struct mp_str){NULL, 0};
    else
        *rest = (struct mp_str){rest->data + i + 1, rest->size - i - 1};
    return true;
}

struct mp_str *mp_text_split(struct mp_arena *arena, struct mp_str text, char separator,
                             uint32_t *ret_count)
{
    uint32_t count = 0, room = 1;
    struct mp_str *list, part;

    for (size_t i = 0; i < text.size; i++)
        room += text.data[i] == separator;
    list = mp_arena_take(arena, room * sizeof(*list));
    while (mp_text_next(&text, separator, &part)) {
        part = mp_text_trim(part);
        if (part.size)
            list[count++] = mp_arena_str(arena, part);
    }
    assert(count <= room);
    *ret_count = count;
    return list;
}

/* Optimal string alignment (Damerau): three rows of the matrix. */
unsigned mp_text_distance(struct mp_str a, struct mp_str b, unsigned most)
{
    enum { SIZE = 96 };
    unsigned rows[3][SIZE + 1];
    unsigned *above2 = rows[0], *above = rows[1], *row = rows[2];

    if (a.size > SIZE || b.size > SIZE || a.size > b.size + most || b.size > a.size + most)
        return most + 1;
    for (unsigned j = 0; j <= b.size; j++)
        above[j] = j;
    for (unsigned i = 1; i <= a.size; i++) {
        unsigned *spare = above2;

        row[0] = i;
        for (unsigned j = 1; j <= b.size; j++) {
            unsigned best = above[j - 1] + (a.data[i - 1] != b.data[j - 1]);

            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] &&
                a.data[i - 2] == b.data[j - 1] && above2[j - 2] + 1 < best)
                best = above2[j - 2] + 1;
            row[j] = best;
        }
        above2 = above;
        above = row;
        row = spare;
    }
    return above[b.size] <= most ? above[b.size] : most + 1;
}

const char *mp_text_meant(struct mp_str name, const char *(*name_of)(unsigned i), unsigned count)
{
    const char *found = NULL;
    unsigned most = 2;

    for (unsigned i = 0; i < count; i++) {
        unsigned distance = mp_text_distance(name, mp_str_c(name_of(i)), most);

        if (distance <= most && (!found || distance < most)) {
            found = name_of(i);
            most = distance;
        }
    }
    return found;
}

/* libpq, "Connection Strings", keyword/value form. */
void mp_text_conninfo(struct mp_buf *buf, const char *keyword, struct mp_str value)
{
    if (buf->size)
        mp_buf_add_byte(buf, ' ');
    mp_buf_add_c(buf, keyword);
    mp_buf_add_c(buf, "='");
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] == '\'' || value.data[i] == '\\')
            mp_buf_add_byte(buf, '\\');
        mp_buf_add_byte(buf, value.data[i]);
    }
    mp_buf_add_byte(buf, '\'');
}
