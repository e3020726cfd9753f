/* The text of a plan: as documented, there and back, and what is none. */
#include "harness/test.h"
#include "pipeline/plan.h"

#include <stdio.h>

static struct mp_arena arena = {.block_bytes = 65536};

#define KEY  "a0d4cb64-6463-52e1-9068-d1cd68e685e7"
#define UUID "0e0b6c8e-0000-0000-0000-000000000001"

static struct mp_plan plan_of(const int32_t *members, uint32_t count)
{
    struct mp_plan plan = {
        .uuid = MP_STR(UUID),
        .first = 40,
        .next = 100,
        .lowest = 41,
        .highest = 99,
        .seconds = 1764521000,
        .members = members,
        .member_count = count,
    };

    memcpy(plan.key, KEY, sizeof(plan.key));
    return plan;
}

static void check_members(const int32_t *members, uint32_t count, const char *text)
{
    struct mp_plan plan = plan_of(members, count), back;
    struct mp_buf buf = MP_BUF_INIT(MP_PLAN_BYTES_MAX);
    char whole[512];

    CHECK(mp_plan_print(&plan, &buf));
    if (text) {
        snprintf(whole, sizeof(whole), "mpplan1 " KEY " " UUID " 40 100 41 99 1764521000 %s", text);
        CHECK_STR(mp_buf_str(&buf), mp_str_c(whole));
    }
    CHECK_INT(mp_plan_read(&arena, members[count - 1], mp_buf_str(&buf), &back), MP_PLAN_FOUND);
    CHECK_STR(mp_str_c(back.key), MP_STR(KEY));
    CHECK_STR(back.uuid, MP_STR(UUID));
    CHECK_INT(back.first, 40);
    CHECK_INT(back.next, 100);
    CHECK_INT(back.lowest, 41);
    CHECK_INT(back.highest, 99);
    CHECK_INT(back.seconds, 1764521000);
    CHECK_INT(back.member_count, count);
    for (uint32_t i = 0; i < count; i++)
        CHECK_INT(back.members[i], members[i]);
    mp_buf_fini(&buf);
}

static void members_are_runs(void)
{
    check_members((int32_t[]){3}, 1, "3");
    check_members((int32_t[]){0, 1}, 2, "0,1");
    check_members((int32_t[]){0, 1, 2, 3}, 4, "0-3");
    check_members((int32_t[]){1, 4, 7, 10, 12}, 5, "1-10/3,12");
    check_members((int32_t[]){0, 5, 6, 7, 2147483647}, 5, "0,5-7,2147483647");
}

static void many_members_fit(void)
{
    static int32_t members[4096];
    struct mp_plan plan;
    struct mp_buf buf = MP_BUF_INIT(MP_PLAN_BYTES_MAX);

    for (int i = 0; i < 4096; i++)
        members[i] = 1 + 3 * i;
    check_members(members, 4096, "1-12286/3");
    for (int i = 0; i < 500; i++) /* no two steps alike */
        members[i] = i * i;
    check_members(members, 500, NULL);
    for (int i = 0; i < 700; i++)
        members[i] = 10000 + i * i;
    plan = plan_of(members, 700);
    mp_buf_add_c(&buf, "x");
    CHECK(!mp_plan_print(&plan, &buf));
    CHECK_STR(mp_buf_str(&buf), MP_STR("x"));
    mp_buf_fini(&buf);
}

static void a_partition_may_have_nothing_to_publish(void)
{
    struct mp_plan plan = plan_of((int32_t[]){5}, 1), back;
    struct mp_buf buf = MP_BUF_INIT(MP_PLAN_BYTES_MAX);

    plan.lowest = plan.highest = -1;
    CHECK(mp_plan_print(&plan, &buf));
    CHECK_STR(mp_buf_str(&buf), MP_STR("mpplan1 " KEY " " UUID " 40 100 - - 1764521000 5"));
    CHECK_INT(mp_plan_read(&arena, 5, mp_buf_str(&buf), &back), MP_PLAN_FOUND);
    CHECK_INT(back.lowest, -1);
    CHECK_INT(back.highest, -1);
    mp_buf_fini(&buf);
}

static void what_others_write_is_no_plan(void)
{
    static const char *const texts[] = {"", "mp1 7 4711", "mpplam", "{\"a\":1}", " mpplan1 "};
    struct mp_plan plan;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        CHECK_INT(mp_plan_read(&arena, 0, mp_str_c(texts[i]), &plan), MP_PLAN_NONE);
}

static void what_is_not_understood_is_not_taken_for_none(void)
{
#define HEAD "mpplan1 " KEY " " UUID " "
    static const char nul[] = "mpplan1 " KEY " 0e0b\0c8e 0 1 0 0 1 0";
    static const char *const texts[] = {
        "mpplan",
        "mpplan2 " KEY,
        "mpplan1",
        "mpplan1 ",
        "mpplan1 short " UUID " 0 1 0 0 1 0",
        "mpplan1 A0D4CB64-6463-52e1-9068-d1cd68e685e7 " UUID " 0 1 0 0 1 0", /* no hex of ours */
        "mpplan1 " KEY "  0 1 0 0 1 0",                                      /* no uuid */
        HEAD "0 1 0 0 1",                                                    /* no members */
        HEAD "0 1 0 0 1 ",                                                   /* the same */
        HEAD "0 1 0 0 1 0,",                                                 /* one is missing */
        HEAD "0 1 0 0 1 1",     /* not of this partition */
        HEAD "0 1 0 0 1 0,0",   /* not ascending */
        HEAD "0 1 0 0 1 0-4/3", /* does not end there */
        HEAD "0 1 0 0 1 0-4/0",
        HEAD "0 1 0 0 1 4-0",
        HEAD "0 1 0 0 1 0-2147483647", /* too many */
        HEAD "0 1 0 0 1 0-2147483648",
        HEAD "0 1 0 0 1 0 ", /* more behind it */
        HEAD "0 1 0 0 1 00",
        HEAD "1 1 1 1 1 0", /* an empty range */
        HEAD "2 9 1 3 1 0", /* lowest before first */
        HEAD "2 9 3 9 1 0", /* highest not before next */
        HEAD "2 9 4 3 1 0",
        HEAD "2 9 - 3 1 0",
        HEAD "2 9 3 - 1 0",
        HEAD "-2 9 3 3 1 0",
        HEAD "0 9223372036854775808 0 0 1 0",
    };
    struct mp_plan plan;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if (mp_plan_read(&arena, 0, mp_str_c(texts[i]), &plan) != MP_PLAN_UNREADABLE)
            test_fail(__FILE__, __LINE__, "read: %s", texts[i]);
    CHECK_INT(mp_plan_read(&arena, 0, mp_str_n(nul, sizeof(nul) - 1), &plan), MP_PLAN_UNREADABLE);
    CHECK_INT(mp_plan_read(&arena, 0, mp_str_c(HEAD "0 9223372036854775807 0 0 1 0"), &plan),
              MP_PLAN_FOUND);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(members_are_runs),
        TEST(many_members_fit),
        TEST(a_partition_may_have_nothing_to_publish),
        TEST(what_others_write_is_no_plan),
        TEST(what_is_not_understood_is_not_taken_for_none),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
