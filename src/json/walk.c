/* json/walk.c - stage two: the grammar in order, byte by byte between the strings.
 *
 * Strings are stepped over by the index; what lies between is read one byte after the other, and
 * white space only where the wanted byte is missing, so that compact records pay nothing for it.
 *
 * W1  the last byte of data is '}'. No state passes a '}' without looking how many bytes are left,
 *     so no other byte needs a bounds check.
 * W2  every quote outside a string is met here in order, so the next closer is its own (I1).
 */
#include "json/cursor.h"

#include "base/mem.h"
#include "json/number.h"

#define LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Steps over white space inside a nested value, which compact text does not have: a cut. */
static inline size_t cut_space(const char *data, size_t at, uint32_t **cut)
{
    *(*cut)++ = (uint32_t)at;
    return mp_json_skip_space(data, at);
}

/* Steps over the escapes of a nested string that ends at closer; NULL when one is wrong. Those that
 * compact text spells otherwise are cuts. */
static const uint32_t *skip_escapes(const char *data, size_t closer, const uint32_t *escape,
                                    uint32_t **cut)
{
    while (*escape < closer) {
        const char *at = data + *escape;
        enum mp_json_fault fault;
        uint32_t character;
        unsigned length;

        if (mp_json_escape_value[(unsigned char)at[1]] && at[1] != '/') {
            escape++;
            continue;
        }
        length = mp_json_escape_read(at, data + closer, &character, &fault);
        if (!length)
            return NULL;
        if (!mp_json_escape_minimal(at, length, character))
            *(*cut)++ = *escape;
        escape += length == 12 ? 2 : 1;
    }
    return escape;
}

/* Steps over the nested string whose turn it is; gives the position behind it or 0. */
static inline size_t skip_string(const char *data, const uint32_t **closer, const uint32_t **escape,
                                 uint32_t **cut)
{
    size_t end = *(*closer)++;

    if (UNLIKELY(**escape < end)) {
        *escape = skip_escapes(data, end, *escape, cut);
        if (!*escape)
            return 0;
    }
    return end + 1;
}

/* Steps over the object or array at `at`, a value of the top level. Gives the position behind it
 * or 0 when it is wrong, and in *ret_cut the end of the cuts, which begin at cursor->cuts.
 * object says of each open level which of the two it is; the labels are the states of the grammar
 * (RFC 8259, sections 4 and 5). */
static size_t skip_nested(struct mp_json_cursor *cursor, size_t at, uint32_t **ret_cut)
{
    const char *data = cursor->data;
    size_t size = cursor->size;
    const uint32_t *closer = cursor->closer, *escape = cursor->escape;
    bool object[MP_JSON_DEPTH_MAX];
    unsigned depth = 0; /* levels open here; the record itself is one more */
    uint32_t *cut = cursor->cuts;

open:
    if (depth == MP_JSON_DEPTH_MAX - 1)
        return 0;
    if (data[at] == '[')
        goto open_array;
    object[depth] = true;
    depth++;
    at++;
    if (mp_json_is_space(data[at]))
        at = cut_space(data, at, &cut);
    if (data[at] == '"')
        goto key;
    if (data[at] == '}')
        goto close;
    return 0;

open_array:
    object[depth] = false;
    depth++;
    at++;
    if (mp_json_is_space(data[at]))
        at = cut_space(data, at, &cut);
    if (data[at] == ']')
        goto close;
    goto value;

key:
    at = skip_string(data, &closer, &escape, &cut);
    if (UNLIKELY(!at))
        return 0;
    if (UNLIKELY(data[at] != ':')) {
        at = cut_space(data, at, &cut);
        if (data[at] != ':')
            return 0;
    }
    at++;

value:
    switch (data[at]) {
    case '"':
        at = skip_string(data, &closer, &escape, &cut);
        break;
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        at = mp_json_number_skip(data, at, size);
        break;
    case 't':
        at = mp_json_skip_word(data, at, size, MP_STR("true"));
        break;
    case 'f':
        at = mp_json_skip_word(data, at, size, MP_STR("false"));
        break;
    case 'n':
        at = mp_json_skip_word(data, at, size, MP_STR("null"));
        break;
    case '{':
    case '[':
        goto open;
    case ' ':
    case '\t':
    case '\n':
    case '\r':
        at = cut_space(data, at, &cut);
        goto value;
    default:
        return 0;
    }
    if (UNLIKELY(!at))
        return 0;

after:
    if (object[depth - 1])
        goto after_in_object;

after_in_array:
    if (data[at] == ',') {
        at++;
        goto value;
    }
    if (data[at] == ']')
        goto close;
    if (!mp_json_is_space(data[at]))
        return 0;
    at = cut_space(data, at, &cut);
    goto after_in_array;

after_in_object:
    if (LIKELY(data[at] == ',')) {
        at++;
        if (UNLIKELY(data[at] != '"')) {
            at = cut_space(data, at, &cut);
            if (data[at] != '"')
                return 0;
        }
        goto key;
    }
    if (data[at] == '}')
        goto close;
    if (!mp_json_is_space(data[at]))
        return 0;
    at = cut_space(data, at, &cut);
    goto after_in_object;

close:
    at++;
    if (at == size) /* W1: the record itself is open still */
        return 0;
    depth--;
    if (depth)
        goto after;
    cursor->closer = closer;
    cursor->escape = escape;
    *ret_cut = cut;
    return at;
}

/* Reads an object or array of the top level into the field. */
static size_t read_nested(struct mp_json_cursor *cursor, size_t at, struct mp_json_field *field)
{
    uint32_t *cut;
    size_t end = skip_nested(cursor, at, &cut), written;

    if (!end)
        return 0;
    field->kind = MP_JSON_NESTED;
    field->nested_object = cursor->data[at] == '{';
    field->text = mp_str_n(cursor->data + at, end - at);
    if (UNLIKELY(cut != cursor->cuts)) {
        *cut = (uint32_t)end;
        written =
            mp_json_text_compact(cursor->data, at, end, cursor->size, cursor->cuts, cursor->out);
        assert(written <= end - at);
        field->text = mp_str_n(cursor->out, written);
        cursor->out += written;
    }
    return end;
}

/* Reads a value of the top level into the field; gives the position behind it or 0. */
static inline size_t read_value(struct mp_json_cursor *cursor, size_t at,
                                struct mp_json_field *field)
{
    const char *data = cursor->data;

    field->nested_object = false;
    field->text = (struct mp_str){0};
    field->i64 = 0;
    switch (data[at]) {
    case '"':
        field->kind = MP_JSON_STRING;
        return mp_json_read_string(cursor, at, &field->text);
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        return mp_json_number_read(data, at, cursor->size, field);
    case 't':
        field->kind = MP_JSON_TRUE;
        return mp_json_skip_word(data, at, cursor->size, MP_STR("true"));
    case 'f':
        field->kind = MP_JSON_FALSE;
        return mp_json_skip_word(data, at, cursor->size, MP_STR("false"));
    case 'n':
        field->kind = MP_JSON_NULL;
        return mp_json_skip_word(data, at, cursor->size, MP_STR("null"));
    case '{':
    case '[':
        return read_nested(cursor, at, field);
    default:
        return 0;
    }
}

/* Gives the number of a key that is not the one guessed, or NONE when the record turns out to be
 * wrong: a new name is interned only from a record that is good to its end (S1). */
static uint32_t find_key(struct mp_json *json, struct mp_str record, struct mp_str name,
                         uint32_t previous, bool *known_good)
{
    uint32_t key = mp_json_keys_guess_further(&json->keys, previous, name);
    size_t at;

    if (key != MP_JSON_KEY_NONE)
        return key;
    key = mp_json_keys_find(&json->keys, name);
    if (key == MP_JSON_KEY_NONE) {
        if (!*known_good && mp_json_diagnose(record, &at) != MP_JSON_OK)
            return MP_JSON_KEY_NONE;
        *known_good = true;
        key = mp_json_keys_intern(&json->keys, name);
    }
    mp_json_keys_follow(&json->keys, previous, key);
    return key;
}

/* The place for a value of the key: its own from before in this record, else the next one. */
static inline struct mp_json_field *field_place(struct mp_json *json, uint32_t key)
{
    struct mp_json_key *entry = &json->keys.keys[key];

    if (UNLIKELY(entry->serial == json->serial))
        return &json->fields[entry->field];
    if (UNLIKELY(json->field_count == json->field_capacity)) {
        json->field_capacity *= 2;
        json->fields = mp_realloc(json->fields, json->field_capacity * sizeof(*json->fields));
    }
    entry->serial = json->serial;
    entry->field = json->field_count;
    json->fields[json->field_count].key = key;
    return &json->fields[json->field_count++];
}

bool mp_json_walk(struct mp_json *json, const char *data, size_t from, size_t size)
{
    struct mp_json_cursor cursor = {.data = data,
                                    .size = size,
                                    .closer = json->index.closers,
                                    .escape = json->index.escapes,
                                    .cuts = json->cuts,
                                    .out = json->scratch};
    uint32_t previous = MP_JSON_KEY_NONE;
    bool known_good = false;
    size_t at = mp_json_skip_space(data, from + 1);

    assert(data[from] == '{');
    assert(data[size - 1] == '}');
    if (data[at] == '}')
        return at + 1 == size;
    for (;;) {
        struct mp_str name;
        uint32_t key;

        if (data[at] != '"')
            return false;
        at = mp_json_read_string(&cursor, at, &name);
        if (!at)
            return false;
        key = mp_json_keys_next(&json->keys, previous);
        if (UNLIKELY(!mp_json_keys_is(&json->keys, key, name))) {
            key = find_key(json, mp_str_n(data, size), name, previous, &known_good);
            if (key == MP_JSON_KEY_NONE)
                return false;
        }
        previous = key;

        at = mp_json_skip_space(data, at);
        if (data[at] != ':')
            return false;
        at = mp_json_skip_space(data, at + 1);
        at = read_value(&cursor, at, field_place(json, key));
        if (!at)
            return false;
        at = mp_json_skip_space(data, at);
        if (data[at] == '}')
            return at + 1 == size;
        if (data[at] != ',')
            return false;
        at = mp_json_skip_space(data, at + 1);
    }
}
