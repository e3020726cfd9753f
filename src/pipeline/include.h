/* pipeline/include.h - the rules of a polled include list: what a served list makes of the held
 * one.
 *
 * Pure: bytes and lists in, a held set and its changes out; include_poll.h does the asking.
 *
 *     parse    a JSON array of scalars. Integers only: a list of integers, in decimal digits. Else
 * a list of texts: a number as Python prints it, true and false as True and False. take     what is
 * new enters at once; what is missing leaves after removal_polls accepted lists in a row without
 * it. Pins, the static values, never leave.
 *
 * Always   N1 a refused list removes nothing and brings no removal nearer
 *          N2 values are sorted by their bytes, each is there once
 *          N3 one bad answer cannot empty the list: an empty one is refused while anything but pins
 *             is held, and so are the removals of one that lacks more than half of what is managed
 * Managed  are the held values without the pins that the list at hand does not serve.
 * Threads  one at a time.
 */
#ifndef MP_PIPELINE_INCLUDE_H
#define MP_PIPELINE_INCLUDE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* Texts are sorted and unique. */
struct mp_include_list {
    bool integer; /* every text is the decimal spelling of an int64 */
    const struct mp_str *texts;
    uint32_t count;
};

enum mp_include_answer {
    MP_INCLUDE_ACCEPTED,
    MP_INCLUDE_EMPTY,        /* nothing is taken over */
    MP_INCLUDE_BULK_REMOVAL, /* what is new enters, nothing leaves */
    MP_INCLUDE_TYPE_FLIP, /* integers against held texts or the other way; nothing is taken over */
};

struct mp_include_options {
    struct mp_include_list pins; /* in any order, copied */
    uint32_t removal_polls;      /* at least 1 */
    bool uuid;                   /* the field is a UUID: one spelling for all */
};

struct mp_include_counts {
    uint32_t held;             /* pins included */
    uint32_t pinned;           /* pins */
    uint32_t pinned_only;      /* pins that the last accepted list does not have */
    uint32_t pending_removals; /* held, but missing from the last accepted list; no pins */
};

/* Lent until the next take. */
struct mp_include_changes {
    const struct mp_str *added, *removed;
    uint32_t added_count, removed_count;
};

struct mp_include;

struct mp_include *mp_include_new(const struct mp_include_options *options);
/* No-op on NULL. */
void mp_include_free(struct mp_include *include);
enum mp_include_answer mp_include_take(struct mp_include *include,
                                       const struct mp_include_list *served,
                                       struct mp_include_changes *ret);
/* Lends the held set, good until the next take. */
struct mp_include_list mp_include_held(const struct mp_include *include);
struct mp_include_counts mp_include_counts(const struct mp_include *include);

/* Reads an answer's body; texts lie in arena. MP_BAD_DATA: not JSON, not an array, an element that
 * is null, an object or an array, an integer beyond 64 bits. The error quotes nothing of it. */
enum mp_code mp_include_parse(struct mp_arena *arena, struct mp_str body, struct mp_err *err,
                              struct mp_include_list *ret);
/* How many texts of a, which is sorted, b, which is too, does not have. */
uint32_t mp_include_only(const struct mp_include_list *a, const struct mp_include_list *b);
/* Sorts the texts and drops those that are there twice; gives how many are left. */
uint32_t mp_include_sort(struct mp_str *texts, uint32_t count);
/* "empty", "bulk_removal", "type_flip"; NULL: accepted. */
const char *mp_include_answer_name(enum mp_include_answer answer);

#endif
