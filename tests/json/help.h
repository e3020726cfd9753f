/* tests/json/help.h - one record through both scanners, which must agree in everything. */
#ifndef MP_TESTS_JSON_HELP_H
#define MP_TESTS_JSON_HELP_H

#include "base/mem.h"
#include "harness/test.h"
#include "json/json.h"

struct pair {
    struct mp_json *fast, *portable;
    struct mp_json_record record; /* of the fast one */
    size_t at;
    char *bytes; /* of scan_value */
};

static inline struct pair pair_new(void)
{
    return (struct pair){.fast = mp_json_new(), .portable = mp_json_new_portable()};
}

static inline void pair_free(struct pair *pair)
{
    mp_json_free(pair->fast);
    mp_json_free(pair->portable);
    mp_free(pair->bytes);
}

static inline void check_same_field(const struct mp_json_field *a, const struct mp_json_field *b)
{
    CHECK_INT(a->key, b->key);
    CHECK_INT(a->kind, b->kind);
    CHECK_INT(a->nested_object, b->nested_object);
    CHECK_STR(a->text, b->text);
    CHECK_INT(a->i64, b->i64); /* the bits of a double too */
}

/* Scans with both, compares all they say, and gives the fault. */
static inline enum mp_json_fault scan(struct pair *pair, struct mp_str bytes)
{
    struct mp_json_record other = {0};
    size_t other_at = 12345;
    enum mp_json_fault fault, other_fault;

    pair->record = (struct mp_json_record){0};
    pair->at = 12345;
    fault = mp_json_scan(pair->fast, bytes, &pair->record, &pair->at);
    other_fault = mp_json_scan(pair->portable, bytes, &other, &other_at);
    CHECK_STR(mp_str_c(mp_json_fault_name(fault)), mp_str_c(mp_json_fault_name(other_fault)));
    CHECK_INT(pair->at, other_at);
    CHECK_INT(pair->record.count, other.count);
    CHECK_INT(mp_json_key_count(pair->fast), mp_json_key_count(pair->portable));
    for (uint32_t k = 0; k < other.count; k++)
        check_same_field(&pair->record.fields[k], &other.fields[k]);
    return fault;
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
