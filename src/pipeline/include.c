/* pipeline/include.c - see include.h.
 *
 * The held set is an array sorted by text; a served list is sorted as well, so that taking it is
 * one walk over both. Each take builds the next array in the arena that the last but one lay in:
 * its texts are copied over, and nothing is left of values that are gone.
 */
#include "pipeline/include.h"

#include "base/mem.h"
#include "base/number.h"
#include "column/cast.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

struct value {
    struct mp_str text;
    bool pin;
    bool served;     /* by the last accepted list */
    uint32_t missed; /* accepted lists in a row that did not have it */
};

struct set {
    struct mp_arena arena; /* of everything below */
    struct value *values;
    struct mp_str *texts; /* the same, for lending */
    uint32_t count;
};

struct mp_include {
    struct mp_include_options options;
    bool integer; /* of what is held; without meaning where nothing is */
    struct set sets[2];
    struct set *held;
};

/* What one served list would do. */
struct plan {
    uint32_t managed, missing;
};

static int by_text(const void *a, const void *b)
{
    return mp_str_cmp(*(const struct mp_str *)a, *(const struct mp_str *)b);
}

uint32_t mp_include_sort(struct mp_str *texts, uint32_t count)
{
    uint32_t kept = 0;

    if (count)
        qsort(texts, count, sizeof(*texts), by_text);
    for (uint32_t i = 0; i < count; i++)
        if (!kept || !mp_str_eq(texts[kept - 1], texts[i]))
            texts[kept++] = texts[i];
    return kept;
}

/* The canonical spelling where the text is a UUID, else the text. */
static struct mp_str uuid_spelling(struct mp_arena *arena, struct mp_str text)
{
    unsigned char bytes[16];
    char digits[33];

    if (!mp_uuid_of_text(text, bytes))
        return text;
    for (int i = 0; i < 16; i++)
        snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
    return mp_str_c(mp_arena_printf(arena, "%.8s-%.4s-%.4s-%.4s-%.12s", digits, digits + 8,
                                    digits + 12, digits + 16, digits + 20));
}

/* A copy of the list as the rules want it: one spelling, N2. */
static struct mp_include_list orderly(struct mp_arena *arena, const struct mp_include_list *list,
                                      bool uuid)
{
    struct mp_str *texts = mp_arena_take(arena, (list->count + 1) * sizeof(*texts));

    for (uint32_t i = 0; i < list->count; i++)
        texts[i] = uuid ? uuid_spelling(arena, list->texts[i]) : list->texts[i];
    return (struct mp_include_list){list->integer, texts, mp_include_sort(texts, list->count)};
}

static void set_reset(struct set *set, uint32_t room)
{
    mp_arena_reset(&set->arena);
    set->count = 0;
    set->values = mp_arena_take(&set->arena, (room + 1) * sizeof(*set->values));
    set->texts = mp_arena_take(&set->arena, (room + 1) * sizeof(*set->texts));
}

static void set_add(struct set *set, struct value value)
{
    value.text = mp_arena_str(&set->arena, value.text);
    assert(!set->count || mp_str_cmp(set->texts[set->count - 1], value.text) < 0); /* N2 */
    set->texts[set->count] = value.text;
    set->values[set->count++] = value;
}

struct mp_include *mp_include_new(const struct mp_include_options *options)
{
    struct mp_include *include = mp_alloc(sizeof(*include));
    struct mp_include_list pins;

    assert(options->removal_polls > 0);
    include->options = *options;
    include->integer = options->pins.integer;
    for (int i = 0; i < 2; i++)
        mp_arena_init(&include->sets[i].arena, 0);
    include->held = &include->sets[0];
    pins = orderly(&include->sets[1].arena, &options->pins, options->uuid);
    set_reset(include->held, pins.count);
    for (uint32_t i = 0; i < pins.count; i++)
        set_add(include->held, (struct value){.text = pins.texts[i], .pin = true});
    include->options.pins = (struct mp_include_list){0}; /* borrowed no longer */
    return include;
}

void mp_include_free(struct mp_include *include)
{
    if (!include)
        return;
    for (int i = 0; i < 2; i++)
        mp_arena_fini(&include->sets[i].arena);
    mp_free(include);
}

/* The next pair of a walk over two sorted lists: what has the smaller text, or both. */
static int next_pair(const struct set *held, uint32_t h, const struct mp_include_list *served,
                     uint32_t s)
{
    if (h == held->count)
        return 1;
    if (s == served->count)
        return -1;
    return mp_str_cmp(held->texts[h], served->texts[s]);
}

static struct plan plan_of(const struct set *held, const struct mp_include_list *served)
{
    struct plan plan = {0};

    for (uint32_t h = 0, s = 0; h < held->count || s < served->count;) {
        int order = next_pair(held, h, served, s);

        plan.managed += order == 0 || (order < 0 && !held->values[h].pin);
        plan.missing += order < 0 && !held->values[h].pin;
        h += order <= 0;
        s += order >= 0;
    }
    return plan;
}

static enum mp_include_answer judge(const struct mp_include *include, const struct plan *plan,
                                    const struct mp_include_list *served)
{
    uint32_t most = plan->managed / 2 > 1 ? plan->managed / 2 : 1;

    if (!served->count)
        return plan->managed ? MP_INCLUDE_EMPTY : MP_INCLUDE_ACCEPTED;
    if (include->held->count && served->integer != include->integer)
        return MP_INCLUDE_TYPE_FLIP;
    if (plan->managed > 1 && plan->missing > most)
        return MP_INCLUDE_BULK_REMOVAL;
    return MP_INCLUDE_ACCEPTED;
}

/* A held value after a list that has it or not. False: it leaves. */
static bool held_on(struct value *value, bool served, bool accepted, uint32_t removal_polls)
{
    if (served)
        value->missed = 0;
    else if (accepted && !value->pin)
        value->missed++;
    if (accepted)
        value->served = served;
    return value->missed < removal_polls;
}

enum mp_include_answer mp_include_take(struct mp_include *include,
                                       const struct mp_include_list *served_as_it_is,
                                       struct mp_include_changes *ret)
{
    struct set *held = include->held;
    struct set *next = held == &include->sets[0] ? &include->sets[1] : &include->sets[0];
    struct mp_arena scratch;
    struct mp_include_list served;
    struct mp_str *added, *removed;
    struct plan plan;
    enum mp_include_answer answer;

    *ret = (struct mp_include_changes){0};
    mp_arena_init(&scratch, 0);
    served = orderly(&scratch, served_as_it_is, include->options.uuid);
    plan = plan_of(held, &served);
    answer = judge(include, &plan, &served);
    if (answer == MP_INCLUDE_EMPTY || answer == MP_INCLUDE_TYPE_FLIP)
        goto out;
    set_reset(next, held->count + served.count);
    added = mp_arena_take(&next->arena, (served.count + 1) * sizeof(*added));
    removed = mp_arena_take(&next->arena, (held->count + 1) * sizeof(*removed));
    for (uint32_t h = 0, s = 0; h < held->count || s < served.count;) {
        int order = next_pair(held, h, &served, s);
        struct value value =
            order <= 0 ? held->values[h] : (struct value){.text = served.texts[s], .served = true};

        if (order > 0 || held_on(&value, order == 0, answer == MP_INCLUDE_ACCEPTED,
                                 include->options.removal_polls))
            set_add(next, value);
        else
            removed[ret->removed_count++] = mp_arena_str(&next->arena, value.text);
        if (order > 0)
            added[ret->added_count++] = next->texts[next->count - 1];
        h += order <= 0;
        s += order >= 0;
    }
    if (served.count)
        include->integer = served.integer;
    ret->added = added;
    ret->removed = removed;
    include->held = next;
out:
    mp_arena_fini(&scratch);
    return answer;
}

struct mp_include_list mp_include_held(const struct mp_include *include)
{
    return (struct mp_include_list){include->integer, include->held->texts, include->held->count};
}

struct mp_include_counts mp_include_counts(const struct mp_include *include)
{
    struct mp_include_counts counts = {.held = include->held->count};

    for (uint32_t i = 0; i < include->held->count; i++) {
        const struct value *value = &include->held->values[i];

        counts.pinned += value->pin;
        counts.pinned_only += value->pin && !value->served;
        counts.pending_removals += value->missed > 0;
    }
    return counts;
}

uint32_t mp_include_only(const struct mp_include_list *a, const struct mp_include_list *b)
{
    uint32_t only = 0;

    for (uint32_t i = 0, k = 0; i < a->count; i++) {
        while (k < b->count && mp_str_cmp(b->texts[k], a->texts[i]) < 0)
            k++;
        only += k == b->count || !mp_str_eq(b->texts[k], a->texts[i]);
    }
    return only;
}

static bool element_text(struct mp_arena *arena, const json_t *element, struct mp_str *ret)
{
    char digits[MP_NUMBER_TEXT];

    switch (json_typeof(element)) {
    case JSON_INTEGER:
        mp_i64_text(json_integer_value(element), digits);
        break;
    case JSON_REAL:
        mp_double_text(json_real_value(element), digits);
        break;
    case JSON_STRING:
        *ret =
            mp_arena_str(arena, mp_str_n(json_string_value(element), json_string_length(element)));
        return true;
    case JSON_TRUE:
    case JSON_FALSE:
        *ret = json_is_true(element) ? MP_STR("True") : MP_STR("False");
        return true;
    default:
        return false;
    }
    *ret = mp_arena_str(arena, mp_str_c(digits));
    return true;
}

enum mp_code mp_include_parse(struct mp_arena *arena, struct mp_str body, struct mp_err *err,
                              struct mp_include_list *ret)
{
    json_error_t fault;
    json_t *root = json_loadb(body.data ? body.data : "", body.size, 0, &fault);
    struct mp_str *texts;
    size_t count;
    bool integer = true;
    enum mp_code code = MP_OK;

    if (!root || !json_is_array(root)) {
        code = root ? mp_err_set(err, MP_BAD_DATA, "the answer is JSON, but not an array")
                    : mp_err_set(err, MP_BAD_DATA,
                                 "the answer is not JSON that can be read, at byte %d",
                                 fault.position);
        goto out;
    }
    count = json_array_size(root);
    texts = mp_arena_take(arena, (count + 1) * sizeof(*texts));
    for (size_t i = 0; i < count; i++) {
        const json_t *element = json_array_get(root, i);

        integer &= json_is_integer(element);
        if (!element_text(arena, element, &texts[i])) {
            code = mp_err_set(err, MP_BAD_DATA,
                              "element %zu of the answer is no text, number, true "
                              "or false",
                              i);
            goto out;
        }
    }
    *ret = (struct mp_include_list){integer, texts, mp_include_sort(texts, (uint32_t)count)};
out:
    json_decref(root);
    return code;
}

const char *mp_include_answer_name(enum mp_include_answer answer)
{
    static const char *const names[] = {
        [MP_INCLUDE_ACCEPTED] = NULL,
        [MP_INCLUDE_EMPTY] = "empty",
        [MP_INCLUDE_BULK_REMOVAL] = "bulk_removal",
        [MP_INCLUDE_TYPE_FLIP] = "type_flip",
    };

    return names[answer];
}
