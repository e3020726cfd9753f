/* json/diagnose.c - what is wrong with a record, and at which byte.
 *
 * The two stages only say that a record is not good. This reader, plain and slow, goes through it
 * from the first byte and stops at the first fault, so that all scanners give the same answer. It
 * shares no code with the stages but escapes and the range of numbers, and so is their judge in
 * the tests too.
 */
#include "json/json_priv.h"
#include "json/number.h"
#include "json/text.h"
#include "json/utf8.h"

struct reader {
    const char *data;
    size_t at, size;
};

/* The byte at hand, or -1 at the end. */
static int peek(const struct reader *reader)
{
    return reader->at < reader->size ? (unsigned char)reader->data[reader->at] : -1;
}

static void skip_space(struct reader *reader)
{
    while (reader->at < reader->size && mp_json_is_space(reader->data[reader->at]))
        reader->at++;
}

/* The byte at hand cannot stand here: not JSON, and maybe not even text. */
static enum mp_json_fault unexpected(const struct reader *reader)
{
    if (peek(reader) >= 0 &&
        !mp_json_utf8_length(reader->data + reader->at, reader->size - reader->at))
        return MP_JSON_UTF8;
    return MP_JSON_SYNTAX;
}

static enum mp_json_fault read_string(struct reader *reader)
{
    reader->at++; /* the opening quote */
    while (reader->at < reader->size) {
        const char *here = reader->data + reader->at, *end = reader->data + reader->size;
        enum mp_json_fault fault;
        uint32_t character;
        unsigned length;

        if (*here == '"') {
            reader->at++;
            return MP_JSON_OK;
        }
        if ((unsigned char)*here < 0x20)
            return MP_JSON_CONTROL;
        if (*here == '\\') {
            length = mp_json_escape_read(here, end, &character, &fault);
            if (!length)
                return fault;
        } else {
            length = mp_json_utf8_length(here, (size_t)(end - here));
            if (!length)
                return MP_JSON_UTF8;
        }
        reader->at += length;
    }
    return MP_JSON_SYNTAX; /* never closed */
}

static size_t read_digits(struct reader *reader)
{
    size_t from = reader->at;

    while (peek(reader) >= '0' && peek(reader) <= '9')
        reader->at++;
    return reader->at - from;
}

static enum mp_json_fault read_number(struct reader *reader)
{
    size_t from = reader->at;

    if (peek(reader) == '-')
        reader->at++;
    if (peek(reader) == '0')
        reader->at++;
    else if (!read_digits(reader))
        return unexpected(reader);
    if (peek(reader) == '.') {
        reader->at++;
        if (!read_digits(reader))
            return unexpected(reader);
    }
    if (peek(reader) == 'e' || peek(reader) == 'E') {
        reader->at++;
        if (peek(reader) == '+' || peek(reader) == '-')
            reader->at++;
        if (!read_digits(reader))
            return unexpected(reader);
    }
    if (mp_json_number_overflows(mp_str_n(reader->data + from, reader->at - from))) {
        reader->at = from;
        return MP_JSON_NUMBER_RANGE;
    }
    return MP_JSON_OK;
}

static enum mp_json_fault read_word(struct reader *reader, struct mp_str word)
{
    for (size_t k = 0; k < word.size; k++, reader->at++)
        if (peek(reader) != word.data[k])
            return unexpected(reader);
    return MP_JSON_OK;
}

/* Reads a value that is no object or array. */
static enum mp_json_fault read_scalar(struct reader *reader)
{
    switch (peek(reader)) {
    case '"':
        return read_string(reader);
    case 't':
        return read_word(reader, MP_STR("true"));
    case 'f':
        return read_word(reader, MP_STR("false"));
    case 'n':
        return read_word(reader, MP_STR("null"));
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
        return read_number(reader);
    default:
        return unexpected(reader);
    }
}

/* Reads "key": and the white space around. */
static enum mp_json_fault read_key(struct reader *reader)
{
    enum mp_json_fault fault;

    skip_space(reader);
    if (peek(reader) != '"')
        return unexpected(reader);
    fault = read_string(reader);
    if (fault)
        return fault;
    skip_space(reader);
    if (peek(reader) != ':')
        return unexpected(reader);
    reader->at++;
    return MP_JSON_OK;
}

/* Reads one value with all that is in it. closers has the bracket that each open level waits for.
 */
static enum mp_json_fault read_value(struct reader *reader)
{
    char closers[MP_JSON_DEPTH_MAX];
    unsigned depth = 0;
    enum mp_json_fault fault;
    bool fresh; /* just opened: the bracket may close at once */

    for (;;) {
        skip_space(reader);
        fresh = peek(reader) == '{' || peek(reader) == '[';
        if (fresh) {
            if (depth == MP_JSON_DEPTH_MAX)
                return MP_JSON_DEPTH;
            closers[depth++] = peek(reader) == '{' ? '}' : ']';
            reader->at++;
        } else {
            fault = read_scalar(reader);
            if (fault)
                return fault;
        }
        /* close what closes here, then go on to the next value */
        for (;; fresh = false) {
            if (!depth)
                return MP_JSON_OK;
            skip_space(reader);
            if (peek(reader) != closers[depth - 1])
                break;
            depth--;
            reader->at++;
        }
        if (!fresh) {
            if (peek(reader) != ',')
                return unexpected(reader);
            reader->at++;
        }
        if (closers[depth - 1] == '}') {
            fault = read_key(reader);
            if (fault)
                return fault;
        }
    }
}

enum mp_json_fault mp_json_diagnose(struct mp_str record, size_t *ret_at)
{
    struct reader reader = {.data = record.data, .size = record.size};
    enum mp_json_fault fault;
    size_t from;

    skip_space(&reader);
    from = *ret_at = reader.at;
    if (reader.at == reader.size)
        return MP_JSON_EMPTY;
    fault = read_value(&reader);
    *ret_at = reader.at;
    if (fault)
        return fault;
    skip_space(&reader);
    *ret_at = reader.at;
    if (reader.at < reader.size)
        return unexpected(&reader);
    *ret_at = record.data[from] == '{' ? 0 : from;
    return record.data[from] == '{' ? MP_JSON_OK : MP_JSON_NOT_OBJECT;
}
