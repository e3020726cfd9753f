/* json/tree.c - see tree.h: the grammar in order over an index of the strings, as walk.c does it
 * for records, but every value becomes a node.
 *
 * T1  the last byte of data closes the outermost value. No state passes a closing bracket without
 *     looking how many bytes are left, so no other byte needs a bounds check.
 */
#include "json/tree.h"

#include "base/mem.h"
#include "json/cursor.h"
#include "json/number.h"

enum { NODES_FIRST = 256, NODES_KEPT = 1 << 17 };

/* A reader in the middle of a text. */
struct reader {
    struct mp_json *json;
    struct mp_json_cursor cursor;
    uint32_t open[MP_JSON_DEPTH_MAX]; /* nodes that are not closed yet */
    unsigned depth;
    uint32_t key;      /* of the value to come */
    uint32_t previous; /* key, for the guess */
};

static struct mp_json_node *add_node(struct reader *reader)
{
    struct mp_json *json = reader->json;
    struct mp_json_node *node;

    if (json->node_count == json->node_capacity) {
        json->node_capacity = json->node_capacity ? json->node_capacity * 2 : NODES_FIRST;
        json->nodes = mp_realloc(json->nodes, json->node_capacity * sizeof(*json->nodes));
    }
    if (reader->depth)
        json->nodes[reader->open[reader->depth - 1]].count++;
    node = &json->nodes[json->node_count++];
    *node = (struct mp_json_node){.value.key = reader->key, .end = json->node_count};
    reader->key = MP_JSON_NO_KEY;
    return node;
}

/* Reads the name of a member and its colon; gives the position of the value, or 0. */
static size_t read_key(struct reader *reader, size_t at)
{
    struct mp_json_keys *keys = &reader->json->keys;
    const char *data = reader->cursor.data;
    struct mp_str name;
    uint32_t key;

    at = mp_json_read_string(&reader->cursor, at, &name);
    if (!at)
        return 0;
    key = mp_json_keys_next(keys, reader->previous);
    if (!mp_json_keys_is(keys, key, name)) {
        key = mp_json_keys_guess_further(keys, reader->previous, name);
        if (key == MP_JSON_KEY_NONE) {
            key = mp_json_keys_find(keys, name);
            if (key == MP_JSON_KEY_NONE)
                key = mp_json_keys_intern(keys, name);
            mp_json_keys_follow(keys, reader->previous, key);
        }
    }
    reader->key = reader->previous = key;
    at = mp_json_skip_space(data, at);
    return data[at] == ':' ? mp_json_skip_space(data, at + 1) : 0;
}

/* Reads a value that is no object or array; gives the position behind it, or 0. */
static size_t read_leaf(struct reader *reader, size_t at)
{
    struct mp_json_cursor *cursor = &reader->cursor;
    struct mp_json_field *value = &add_node(reader)->value;

    switch (cursor->data[at]) {
    case '"':
        value->kind = MP_JSON_STRING;
        return mp_json_read_string(cursor, at, &value->text);
    case 't':
        value->kind = MP_JSON_TRUE;
        return mp_json_skip_word(cursor->data, at, cursor->size, MP_STR("true"));
    case 'f':
        value->kind = MP_JSON_FALSE;
        return mp_json_skip_word(cursor->data, at, cursor->size, MP_STR("false"));
    case 'n':
        value->kind = MP_JSON_NULL;
        return mp_json_skip_word(cursor->data, at, cursor->size, MP_STR("null"));
    default: /* what is no number is refused there */
        return mp_json_number_read(cursor->data, at, cursor->size, value);
    }
}

/* Reads the object or array at `at` with all inside it; gives the position behind it, or 0. The
 * labels are the states of the grammar (RFC 8259, sections 4 and 5). */
static size_t read_nested(struct reader *reader, size_t at)
{
    const char *data = reader->cursor.data;
    struct mp_json_node *node;
    bool object;

open:
    if (reader->depth == MP_JSON_DEPTH_MAX)
        return 0;
    object = data[at] == '{';
    node = add_node(reader);
    node->value.kind = MP_JSON_NESTED;
    node->value.nested_object = object;
    reader->open[reader->depth++] = reader->json->node_count - 1;
    at = mp_json_skip_space(data, at + 1);
    if (data[at] == (object ? '}' : ']'))
        goto close;

member:
    if (object) {
        if (data[at] != '"')
            return 0;
        at = read_key(reader, at);
        if (!at)
            return 0;
    }
    if (data[at] == '{' || data[at] == '[')
        goto open;
    at = read_leaf(reader, at);
    if (!at)
        return 0;

after:
    at = mp_json_skip_space(data, at);
    if (data[at] == ',') {
        at = mp_json_skip_space(data, at + 1);
        goto member;
    }
    if (data[at] != (object ? '}' : ']'))
        return 0;

close:
    at++;
    reader->json->nodes[reader->open[--reader->depth]].end = reader->json->node_count;
    if (!reader->depth)
        return at;
    if (at == reader->cursor.size) /* T1 */
        return 0;
    object = reader->json->nodes[reader->open[reader->depth - 1]].value.nested_object;
    goto after;
}

/* A number or word alone has no byte behind it that ends it, so it is read from a copy that has. */
static bool read_alone(struct reader *reader, struct mp_str text)
{
    struct mp_json_cursor *cursor = &reader->cursor;
    char *copy = reader->json->scratch;

    memcpy(copy, text.data, text.size);
    copy[text.size] = ' ';
    cursor->data = copy;
    cursor->size = text.size + 1;
    return read_leaf(reader, 0) == text.size;
}

static struct mp_str trimmed(struct mp_str text)
{
    size_t from = 0, end = text.size;

    while (end > 0 && mp_json_is_space(text.data[end - 1]))
        end--;
    while (from < end && mp_json_is_space(text.data[from]))
        from++;
    return mp_str_n(text.data + from, end - from);
}

static void drop_outsized(struct mp_json *json)
{
    if (json->node_capacity <= NODES_KEPT)
        return;
    mp_free(json->nodes);
    json->nodes = NULL;
    json->node_capacity = 0;
}

bool mp_json_tree(struct mp_json *json, struct mp_str text, struct mp_json_tree *ret)
{
    struct reader reader;
    size_t end;
    char last;

    assert(text.size < UINT32_MAX);
    text = trimmed(text);
    if (!text.size)
        return false;
    drop_outsized(json);
    mp_json_make_room(json, text.size + 1);
    json->node_count = 0;
    reader.json = json;
    reader.cursor = (struct mp_json_cursor){text.data,           text.size,  json->index.closers,
                                            json->index.escapes, json->cuts, json->scratch};
    reader.depth = 0;
    reader.key = reader.previous = MP_JSON_NO_KEY;
    last = text.data[text.size - 1];
    switch (text.data[0]) {
    case '{':
    case '[':
        if (last != (text.data[0] == '{' ? '}' : ']') ||
            !json->fill_index(&json->index, text.data, text.size))
            return false;
        end = read_nested(&reader, 0);
        break;
    case '"':
        if (text.size < 2 || last != '"' || !json->fill_index(&json->index, text.data, text.size))
            return false;
        end = read_leaf(&reader, 0);
        break;
    default:
        end = read_alone(&reader, text) ? text.size : 0;
    }
    if (end != text.size)
        return false;
    assert(json->nodes[0].end == json->node_count);
    *ret = (struct mp_json_tree){json->nodes, json->node_count};
    return true;
}
