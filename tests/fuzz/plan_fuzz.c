/* tests/fuzz/plan_fuzz.c - any bytes beside an offset through the reader of plans.
 *
 * The first byte is the partition. For every input:
 *   L1  what does not begin with "mpplan" is no plan, and what does is never taken for none
 *   L2  a plan that is read is one: its range holds what it says, this partition is a member
 *   L3  it is printed so that it reads back the same, where it fits
 */
#include "fuzz/fuzz.h"
#include "pipeline/plan.h"

static void must_be_one(const struct mp_plan *plan, int32_t partition)
{
    uint32_t found = 0;

    MUST(plan->first >= 0 && plan->next > plan->first && plan->seconds >= 0);
    MUST((plan->lowest < 0) == (plan->highest < 0));
    if (plan->lowest >= 0)
        MUST(plan->first <= plan->lowest && plan->lowest <= plan->highest &&
             plan->highest < plan->next);
    MUST(plan->member_count > 0 && plan->member_count <= MP_PLAN_MEMBERS_MAX);
    for (uint32_t i = 0; i < plan->member_count; i++) {
        MUST(plan->members[i] >= 0 && (!i || plan->members[i] > plan->members[i - 1]));
        found += plan->members[i] == partition;
    }
    MUST(found == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int32_t partition = size ? data[0] : 0;
    struct mp_str text = mp_str_n(data + (size > 0), size - (size > 0));
    struct mp_buf buf = MP_BUF_INIT(MP_PLAN_BYTES_MAX);
    struct mp_plan plan, back;
    struct mp_arena arena;
    enum mp_plan_kind kind;

    mp_arena_init(&arena, 0);
    kind = mp_plan_read(&arena, partition, text, &plan);
    MUST((kind == MP_PLAN_NONE) == !mp_str_starts(text, MP_STR("mpplan")));
    if (kind == MP_PLAN_FOUND) {
        must_be_one(&plan, partition);
        if (mp_plan_print(&plan, &buf)) {
            MUST(mp_plan_read(&arena, partition, mp_buf_str(&buf), &back) == MP_PLAN_FOUND);
            MUST(back.first == plan.first && back.next == plan.next && back.lowest == plan.lowest &&
                 back.highest == plan.highest && back.seconds == plan.seconds &&
                 back.member_count == plan.member_count);
            MUST(memcmp(back.members, plan.members, plan.member_count * sizeof(int32_t)) == 0);
            MUST(strcmp(back.key, plan.key) == 0 && mp_str_eq(back.uuid, plan.uuid));
        }
    }
    mp_buf_fini(&buf);
    mp_arena_fini(&arena);
    return 0;
}

#include "fuzz/replay.h"
