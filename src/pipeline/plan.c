/* pipeline/plan.c - see plan.h. */
#include "pipeline/plan.h"

#include <assert.h>
#include <inttypes.h>

enum { UUID_BYTES_MAX = 64 };

#define TAG "mpplan" /* of all versions */

/* --- writing -------------------------------------------------------------------------------- */

/* How many members from i on lie a constant step apart. */
static uint32_t run_of(const struct mp_plan *plan, uint32_t i)
{
    const int32_t *members = plan->members;
    uint32_t count = 1;

    while (
        i + count < plan->member_count &&
        (count == 1 || members[i + count] - members[i + count - 1] == members[i + 1] - members[i]))
        count++;
    return count;
}

static void print_members(const struct mp_plan *plan, struct mp_buf *ret)
{
    for (uint32_t i = 0; i < plan->member_count && ret->size <= MP_PLAN_BYTES_MAX;) {
        uint32_t count = run_of(plan, i);

        mp_buf_printf(ret, "%s%" PRId32, i ? "," : "", plan->members[i]);
        if (count < 3) { /* a run of two is no shorter than its members */
            i++;
            continue;
        }
        mp_buf_printf(ret, "-%" PRId32, plan->members[i + count - 1]);
        if (plan->members[i + 1] - plan->members[i] > 1)
            mp_buf_printf(ret, "/%" PRId32, plan->members[i + 1] - plan->members[i]);
        i += count;
    }
}

bool mp_plan_print(const struct mp_plan *plan, struct mp_buf *ret)
{
    struct mp_buf text = MP_BUF_INIT(MP_PLAN_BYTES_MAX + 512);
    bool fits;

    assert(plan->member_count > 0 && plan->member_count <= MP_PLAN_MEMBERS_MAX);
    assert(plan->uuid.size > 0 && plan->uuid.size <= UUID_BYTES_MAX);
    mp_buf_printf(&text, TAG "1 %s %.*s %" PRId64 " %" PRId64 " ", plan->key,
                  MP_STR_ARG(plan->uuid), plan->first, plan->next);
    if (plan->lowest < 0)
        mp_buf_add_c(&text, "- - ");
    else
        mp_buf_printf(&text, "%" PRId64 " %" PRId64 " ", plan->lowest, plan->highest);
    mp_buf_printf(&text, "%" PRId64 " ", plan->seconds);
    print_members(plan, &text);
    fits = text.size <= MP_PLAN_BYTES_MAX;
    if (fits)
        mp_buf_add_str(ret, mp_buf_str(&text));
    mp_buf_fini(&text);
    return fits;
}

/* --- reading -------------------------------------------------------------------------------- */

/* Takes the bytes up to `end` (or all) and what ends them. False: there are none. */
static bool take_word(struct mp_str *text, char end, struct mp_str *ret)
{
    const char *at = text->size ? memchr(text->data, end, text->size) : NULL;
    size_t size = at ? (size_t)(at - text->data) : text->size;

    *ret = mp_str_n(text->data, size);
    text->data += size + (at != NULL);
    text->size -= size + (at != NULL);
    return size > 0;
}

/* Takes decimal digits, without a sign or a needless zero. */
static bool take_number(struct mp_str *text, int64_t max, int64_t *ret)
{
    size_t digits = 0;
    int64_t value = 0;

    for (; digits < text->size && text->data[digits] >= '0' && text->data[digits] <= '9';
         digits++) {
        int64_t digit = text->data[digits] - '0';

        if (value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (!digits || (digits > 1 && text->data[0] == '0'))
        return false;
    text->data += digits;
    text->size -= digits;
    *ret = value;
    return true;
}

static bool take_byte(struct mp_str *text, char byte)
{
    if (!text->size || text->data[0] != byte)
        return false;
    text->data++;
    text->size--;
    return true;
}

static bool read_number(struct mp_str *text, int64_t *ret)
{
    struct mp_str word;

    return take_word(text, ' ', &word) && take_number(&word, INT64_MAX, ret) && !word.size;
}

/* A number, or "-" for none. */
static bool read_offset(struct mp_str *text, int64_t *ret)
{
    struct mp_str word = *text, none;

    if (take_word(&word, ' ', &none) && mp_str_eq(none, MP_STR("-"))) {
        *text = word;
        *ret = -1;
        return true;
    }
    return read_number(text, ret);
}

static bool read_key(struct mp_str *text, char ret[MP_LAKE_KEY_SIZE])
{
    struct mp_str word;

    if (!take_word(text, ' ', &word) || word.size != MP_LAKE_KEY_SIZE - 1)
        return false;
    for (size_t i = 0; i < word.size; i++)
        if (!memchr("0123456789abcdef-", word.data[i], 17))
            return false;
    memcpy(ret, word.data, word.size);
    ret[word.size] = 0;
    return true;
}

static bool read_uuid(struct mp_str *text, struct mp_str *ret)
{
    if (!take_word(text, ' ', ret) || ret->size > UUID_BYTES_MAX)
        return false;
    for (size_t i = 0; i < ret->size; i++)
        if (ret->data[i] <= ' ' || ret->data[i] > '~')
            return false;
    return true;
}

/* One run of members, appended to ret unless that is NULL. */
static bool read_run(struct mp_str word, int64_t *last, uint32_t *count, int32_t *ret)
{
    int64_t from, to, step = 1;

    if (!take_number(&word, INT32_MAX, &from))
        return false;
    to = from;
    if (take_byte(&word, '-')) {
        if (!take_number(&word, INT32_MAX, &to))
            return false;
        if (take_byte(&word, '/') && !take_number(&word, INT32_MAX, &step))
            return false;
    }
    if (word.size || from <= *last || to < from || step < 1 || (to - from) % step ||
        (to - from) / step >= (int64_t)(MP_PLAN_MEMBERS_MAX - *count))
        return false;
    for (int64_t member = from; member <= to; member += step, (*count)++)
        if (ret)
            ret[*count] = (int32_t)member;
    *last = to;
    return true;
}

static bool read_members(struct mp_str text, uint32_t *ret_count, int32_t *ret)
{
    int64_t last = -1;
    struct mp_str word;

    *ret_count = 0;
    for (bool more = true; more;) {
        more = text.size && memchr(text.data, ',', text.size);
        if (!take_word(&text, ',', &word) || !read_run(word, &last, ret_count, ret))
            return false;
    }
    return !text.size;
}

static bool makes_sense(const struct mp_plan *plan, int32_t partition)
{
    bool member = false;

    for (uint32_t i = 0; i < plan->member_count; i++)
        member = member || plan->members[i] == partition;
    if (!member || plan->next <= plan->first || (plan->lowest < 0) != (plan->highest < 0))
        return false;
    return plan->lowest < 0 || (plan->first <= plan->lowest && plan->lowest <= plan->highest &&
                                plan->highest < plan->next);
}

enum mp_plan_kind mp_plan_read(struct mp_arena *arena, int32_t partition, struct mp_str text,
                               struct mp_plan *ret)
{
    struct mp_plan plan = {0};
    struct mp_str tag, uuid;
    int32_t *members;

    if (!mp_str_starts(text, MP_STR(TAG)))
        return MP_PLAN_NONE;
    if (text.size > MP_PLAN_BYTES_MAX || !take_word(&text, ' ', &tag) ||
        !mp_str_eq(tag, MP_STR(TAG "1")) || !read_key(&text, plan.key) ||
        !read_uuid(&text, &uuid) || !read_number(&text, &plan.first) ||
        !read_number(&text, &plan.next) || !read_offset(&text, &plan.lowest) ||
        !read_offset(&text, &plan.highest) || !read_number(&text, &plan.seconds) ||
        !read_members(text, &plan.member_count, NULL))
        return MP_PLAN_UNREADABLE;
    members = mp_arena_take(arena, plan.member_count * sizeof(*members));
    read_members(text, &plan.member_count, members);
    plan.members = members;
    plan.uuid = mp_arena_str(arena, uuid);
    if (!makes_sense(&plan, partition))
        return MP_PLAN_UNREADABLE;
    *ret = plan;
    return MP_PLAN_FOUND;
}
