/* tests/json/help.h - one record through all scanners of this machine, which must agree in
 * everything.
 *
 * Before a scanner interns a new name it has the record checked by the plain reader (diagnose.c),
 * so a record with new names says little about the walk. One more scanner is therefore told the
 * record's names first; whether the record is good it must find out by itself.
 */
#ifndef MP_TESTS_JSON_HELP_H
#define MP_TESTS_JSON_HELP_H

#include "base/mem.h"
#include "harness/test.h"
#include "json/json.h"

enum { OTHERS_MAX = 3 };

struct pair {
    struct mp_json *fast, *primed;
    struct mp_json *others[OTHERS_MAX]; /* the last one is the portable one */
    unsigned other_count;
    struct mp_json_record record; /* of the fast one */
    size_t at;
    char *bytes; /* of scan_value */
};

static inline struct pair pair_new(void)
{
    struct pair pair = {.fast = mp_json_new(), .primed = mp_json_new()};
    struct mp_json *other;

    while ((other = mp_json_new_nth(pair.other_count + 1))) {
        CHECK(pair.other_count < OTHERS_MAX);
        pair.others[pair.other_count++] = other;
    }
    if (!pair.other_count) /* the fast one is the portable one */
        pair.others[pair.other_count++] = mp_json_new();
    return pair;
}

static inline void pair_free(struct pair *pair)
{
    mp_json_free(pair->fast);
    for (unsigned i = 0; i < pair->other_count; i++)
        mp_json_free(pair->others[i]);
    mp_json_free(pair->primed);
    mp_free(pair->bytes);
}

static inline void check_same_field(const struct mp_json_field *a, const struct mp_json_field *b)
{
    CHECK_INT(a->kind, b->kind);
    CHECK_INT(a->nested_object, b->nested_object);
    CHECK_STR(a->text, b->text);
    CHECK_INT(a->i64, b->i64); /* the bits of a double too */
}

/* Interns whatever looks like a string in the bytes: scans {"it":0}, good or not. */
static inline void prime(struct mp_json *json, struct mp_str bytes)
{
    for (size_t from = 0; from < bytes.size; from++) {
        struct mp_json_record record;
        size_t end = from + 1, at;
        char *named;

        if (bytes.data[from] != '"')
            continue;
        while (end < bytes.size && bytes.data[end] != '"')
            end += bytes.data[end] == '\\' ? 2 : 1;
        if (end >= bytes.size)
            return;
        named = mp_alloc(end - from + 5);
        memcpy(named, "{", 1);
        memcpy(named + 1, bytes.data + from, end - from + 1);
        memcpy(named + 1 + (end - from + 1), ":0}", 3);
        mp_json_scan(json, mp_str_n(named, end - from + 5), &record, &at);
        mp_free(named);
        from = end;
    }
}

/* Compares the answer of another scanner with the pair's. */
static inline void check_same_answer(const struct pair *pair, enum mp_json_fault fault,
                                     struct mp_json *other, struct mp_str bytes)
{
    struct mp_json_record record = {0};
    size_t at = 12345;
    enum mp_json_fault other_fault = mp_json_scan(other, bytes, &record, &at);

    CHECK_STR(mp_str_c(mp_json_fault_name(fault)), mp_str_c(mp_json_fault_name(other_fault)));
    CHECK_INT(pair->at, at);
    CHECK_INT(pair->record.count, record.count);
    for (uint32_t k = 0; k < record.count; k++) {
        CHECK_STR(mp_json_key_name(pair->fast, pair->record.fields[k].key),
                  mp_json_key_name(other, record.fields[k].key));
        check_same_field(&pair->record.fields[k], &record.fields[k]);
    }
}

/* Scans with all, compares all they say, and gives the fault. */
static inline enum mp_json_fault scan(struct pair *pair, struct mp_str bytes)
{
    enum mp_json_fault fault;

    pair->record = (struct mp_json_record){0};
    pair->at = 12345;
    fault = mp_json_scan(pair->fast, bytes, &pair->record, &pair->at);
    for (unsigned i = 0; i < pair->other_count; i++) {
        check_same_answer(pair, fault, pair->others[i], bytes);
        CHECK_INT(mp_json_key_count(pair->fast), mp_json_key_count(pair->others[i]));
    }
    if (mp_json_key_count(pair->primed) > 5000)
        mp_json_keys_reset(pair->primed);
    prime(pair->primed, bytes);
    check_same_answer(pair, fault, pair->primed, bytes);
    return fault;
}

/* All forget their names but the primed one. */
static inline void forget_keys(struct pair *pair)
{
    mp_json_keys_reset(pair->fast);
    for (unsigned i = 0; i < pair->other_count; i++)
        mp_json_keys_reset(pair->others[i]);
}

/* The field of a name in the last record, or NULL. */
static inline const struct mp_json_field *field(const struct pair *pair, const char *name)
{
    for (uint32_t k = 0; k < pair->record.count; k++)
        if (mp_str_eq(mp_json_key_name(pair->fast, pair->record.fields[k].key), mp_str_c(name)))
            return &pair->record.fields[k];
    return NULL;
}

/* Scans {"k":text} in memory of exactly its size, which the pair keeps until the next one. */
static inline enum mp_json_fault scan_value_fault(struct pair *pair, struct mp_str text)
{
    size_t size = text.size + 6;

    mp_free(pair->bytes);
    pair->bytes = mp_alloc(size);
    memcpy(pair->bytes, "{\"k\":", 5);
    memcpy(pair->bytes + 5, text.data, text.size);
    pair->bytes[size - 1] = '}';
    return scan(pair, mp_str_n(pair->bytes, size));
}

/* The same for a value that must be good; gives its field. */
static inline const struct mp_json_field *scan_value(struct pair *pair, struct mp_str text)
{
    enum mp_json_fault fault = scan_value_fault(pair, text);

    if (fault)
        test_fail(__FILE__, __LINE__, "{\"k\":%.*s}: %s at %zu", MP_STR_ARG(text),
                  mp_json_fault_name(fault), pair->at);
    CHECK_INT(pair->record.count, 1);
    return &pair->record.fields[0];
}

#define CHECK_FAULT(pair, bytes, want)                                                             \
    do {                                                                                           \
        enum mp_json_fault fault_ = scan((pair), (bytes));                                         \
        if (fault_ != (want))                                                                      \
            test_fail(__FILE__, __LINE__, "%s: %s at %zu, not %s", #bytes,                         \
                      mp_json_fault_name(fault_), (pair)->at, mp_json_fault_name(want));           \
    } while (0)

#endif
