/* tests/fuzz/json_fuzz.c - any bytes through the scanner, and all that json.h promises about them.
 *
 * With libFuzzer, from the top of the tree:
 *
 *     clang -O1 -g -std=gnu11 -D_GNU_SOURCE -DMP_LIBFUZZER -Isrc \
 *         -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
 *         tests/fuzz/json_fuzz.c src/json/[a-z]*.c src/base/mem.c src/base/arena.c -lm -o json-fuzz
 *     ./json-fuzz -max_len=4096 corpus/
 *
 * Without it (no -DMP_LIBFUZZER, any compiler) the program runs the files it is given, once each.
 *
 * For every input:
 *   Z1  vector and plain code say the same, with new names and with names that are known already
 *       (with new ones the plain reader is asked before the walk has finished: see walk.c)
 *   Z2  texts and names are UTF-8; doubles are finite and what strtod makes of their spelling
 *   Z3  nested text is compact: scanned again it is the same, and nothing is copied
 *   Z4  a decoded string, escaped and scanned again, is the same
 *   Z5  no name appears twice; a refused record interns none
 */
#include "fuzz/fuzz.h"
#include "base/mem.h"
#include "json/json.h"
#include "json/json_priv.h"
#include "json/utf8.h"

#include <math.h>

struct answer {
    enum mp_json_fault fault;
    size_t at;
    struct mp_json_record record;
};

static struct answer scan(struct mp_json *json, struct mp_str bytes)
{
    struct answer answer = {.at = SIZE_MAX};

    answer.fault = mp_json_scan(json, bytes, &answer.record, &answer.at);
    MUST(answer.at <= bytes.size);
    if (answer.fault)
        MUST(answer.record.fields == NULL);
    return answer;
}

/* Gives a copy of the text between two others, of exactly its size. */
static char *wrap(const char *before, struct mp_str text, const char *after, size_t *ret_size)
{
    size_t head = strlen(before), tail = strlen(after);
    char *bytes = mp_alloc(head + text.size + tail);

    memcpy(bytes, before, head);
    if (text.size)
        memcpy(bytes + head, text.data, text.size);
    memcpy(bytes + head + text.size, after, tail);
    *ret_size = head + text.size + tail;
    return bytes;
}

/* Interns whatever looks like a string in the bytes: scans {"it":0}, good or not. */
static void prime(struct mp_json *json, struct mp_str bytes)
{
    for (size_t from = 0; from < bytes.size; from++) {
        size_t end = from + 1, size;
        char *named;

        if (bytes.data[from] != '"')
            continue;
        while (end < bytes.size && bytes.data[end] != '"')
            end += bytes.data[end] == '\\' ? 2 : 1;
        if (end >= bytes.size)
            return;
        named = wrap("{", mp_str_n(bytes.data + from, end - from + 1), ":0}", &size);
        scan(json, mp_str_n(named, size));
        mp_free(named);
        from = end;
    }
}

/* Z1: a is of scanner x, b of y; the numbers of keys may differ. */
static void must_be_same(const struct mp_json *x_json, const struct answer *a,
                         const struct mp_json *y_json, const struct answer *b)
{
    MUST(a->fault == b->fault);
    MUST(a->at == b->at);
    MUST(a->record.count == b->record.count);
    for (uint32_t k = 0; k < a->record.count; k++) {
        const struct mp_json_field *x = &a->record.fields[k], *y = &b->record.fields[k];

        MUST(mp_str_eq(mp_json_key_name(x_json, x->key), mp_json_key_name(y_json, y->key)));
        MUST(x->kind == y->kind && x->nested_object == y->nested_object);
        MUST(x->i64 == y->i64); /* the bits of a double too */
        MUST(mp_str_eq(x->text, y->text));
    }
}

/* Z3 */
static void must_be_compact(struct mp_str text, bool object)
{
    struct mp_json *json = mp_json_new();
    size_t size;
    char *bytes = wrap("{\"k\":", text, "}", &size);
    struct answer answer = scan(json, mp_str_n(bytes, size));

    MUST(answer.fault == MP_JSON_OK);
    MUST(answer.record.count == 1);
    MUST(answer.record.fields[0].kind == MP_JSON_NESTED);
    MUST(answer.record.fields[0].nested_object == object);
    MUST(answer.record.fields[0].text.data == bytes + 5);
    MUST(answer.record.fields[0].text.size == text.size);
    mp_free(bytes);
    mp_json_free(json);
}

/* Z4: every byte that may be is escaped, so that the decoder has work. */
static void must_come_back(struct mp_str text)
{
    struct mp_json *json = mp_json_new();
    char *spelled = mp_alloc(text.size * 6 + 1);
    size_t used = 0, size;
    struct answer answer;
    char *bytes;

    for (size_t k = 0; k < text.size; k++) {
        unsigned char c = (unsigned char)text.data[k];

        if (c < 0x80)
            used += (size_t)snprintf(spelled + used, 7, "\\u%04x", c);
        else
            spelled[used++] = (char)c;
    }
    bytes = wrap("{\"k\":\"", mp_str_n(spelled, used), "\"}", &size);
    answer = scan(json, mp_str_n(bytes, size));
    MUST(answer.fault == MP_JSON_OK);
    MUST(answer.record.fields[0].kind == MP_JSON_STRING);
    MUST(mp_str_eq(answer.record.fields[0].text, text));
    mp_free(bytes);
    mp_free(spelled);
    mp_json_free(json);
}

/* Z2 */
static void must_be_double(const struct mp_json_field *field)
{
    size_t size;
    char *text = wrap("", field->text, "", &size);
    double want;

    text = mp_realloc(text, size + 1);
    text[size] = 0;
    want = strtod(text, NULL);
    MUST(isfinite(field->f64));
    MUST(memcmp(&want, &field->f64, sizeof(want)) == 0);
    mp_free(text);
}

static void check_fields(struct mp_json *json, const struct mp_json_record *record)
{
    for (uint32_t k = 0; k < record->count; k++) {
        const struct mp_json_field *field = &record->fields[k];
        struct mp_str name = mp_json_key_name(json, field->key);

        MUST(mp_json_utf8_valid(name.data, name.size));
        MUST(mp_json_utf8_valid(field->text.data, field->text.size));
        for (uint32_t other = 0; other < k && other < 100; other++) /* Z5 */
            MUST(record->fields[other].key != field->key);
        if (field->kind == MP_JSON_DOUBLE)
            must_be_double(field);
        if (field->kind == MP_JSON_NESTED)
            must_be_compact(field->text, field->nested_object);
        if (field->kind == MP_JSON_STRING)
            must_come_back(field->text);
    }
}

enum { SCANNERS_MAX = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mp_json *json[2 * SCANNERS_MAX]; /* every scanner twice: as it is, and primed */
    struct answer answers[2 * SCANNERS_MAX];
    unsigned count = 0;
    size_t copied, at;
    char *bytes = wrap("", mp_str_n(data, size), "", &copied);
    struct mp_str record = mp_str_n(bytes, copied);

    for (; count < 2 * SCANNERS_MAX && (json[count] = mp_json_new_nth(count / 2)); count++)
        if (count & 1)
            prime(json[count], record);
    MUST(count > 0);
    for (unsigned k = 0; k < count; k++) {
        answers[k] = scan(json[k], record);
        must_be_same(json[0], &answers[0], json[k], &answers[k]);
    }
    MUST(mp_json_diagnose(record, &at) == answers[0].fault);
    MUST(at == answers[0].at);
    if (answers[0].fault)
        MUST(mp_json_key_count(json[0]) == 0);
    else
        check_fields(json[0], &answers[0].record);
    for (unsigned k = 0; k < count; k++)
        mp_json_free(json[k]);
    mp_free(bytes);
    return 0;
}

#include "fuzz/replay.h"
