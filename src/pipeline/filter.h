/* pipeline/filter.h - which records are kept: a list of values of one top-level field.
 *
 * A value matches by its kind: an integer against a list of integers, a text against the list's
 * texts (integers of the list by their decimal digits), a field pinned as UUID in any spelling of
 * it. The keep filter fails closed (a missing field, null or another kind is no match), the drop
 * filter open.
 */
#ifndef MP_PIPELINE_FILTER_H
#define MP_PIPELINE_FILTER_H

#include "base/str.h"
#include "json/json.h"

struct mp_filter_options {
    struct mp_str field; /* borrowed, as all the texts */
    bool integer;
    const int64_t *integers;    /* [count] where integer */
    const struct mp_str *texts; /* [count] */
    uint32_t count;
    bool uuid; /* the field is pinned as UUID */
};

enum mp_filter_answer {
    MP_FILTER_MATCH,   /* *ret_value says which value of the list */
    MP_FILTER_OTHER,   /* a value that is not in the list */
    MP_FILTER_MISSING, /* no such field, null, or a kind that cannot be compared */
};

struct mp_filter;

struct mp_filter *mp_filter_new(const struct mp_filter_options *options);
/* No-op on NULL. */
void mp_filter_free(struct mp_filter *filter);
enum mp_filter_answer mp_filter_ask(struct mp_filter *filter, const struct mp_json *json,
                                    const struct mp_json_record *record, uint32_t *ret_value);
/* The scanner's keys were reset. No-op on NULL. */
void mp_filter_keys_reset(struct mp_filter *filter);
/* Values of the list that are no UUIDs where the field is one. */
uint32_t mp_filter_unusable(const struct mp_filter *filter);

#endif
