/* The rules of a polled include list. */
#include "pipeline/include.h"
#include "harness/test.h"

#include "base/env.h"

#include <stdio.h>

static struct mp_include *include;
static struct mp_include_changes changes;

static struct mp_include_list list_of(struct mp_arena *arena, const char *json)
{
    struct mp_include_list list;
    struct mp_err err = {0};

    CHECK_OK(mp_include_parse(arena, mp_str_c(json), &err, &list), err);
    return list;
}

static void start(const char *pins, uint32_t removal_polls)
{
    struct mp_arena arena;
    struct mp_include_options options = {.removal_polls = removal_polls};

    mp_arena_init(&arena, 0);
    options.pins = list_of(&arena, pins);
    include = mp_include_new(&options);
    mp_arena_fini(&arena);
}

static void end(void)
{
    mp_include_free(include);
    include = NULL;
}

static enum mp_include_answer take(const char *json)
{
    struct mp_arena arena;
    struct mp_include_list list;
    enum mp_include_answer answer;

    mp_arena_init(&arena, 0);
    list = list_of(&arena, json);
    answer = mp_include_take(include, &list, &changes);
    mp_arena_fini(&arena);
    return answer;
}

static void check_texts(const struct mp_str *texts, uint32_t count, const char *want)
{
    char got[512];
    size_t used = 0;

    got[0] = 0;
    for (uint32_t i = 0; i < count; i++)
        used += (size_t)snprintf(got + used, sizeof(got) - used, "%s%.*s", i ? "," : "",
                                 MP_STR_ARG(texts[i]));
    CHECK_STR(mp_str_n(got, used), mp_str_c(want));
}

static void check_held(const char *want)
{
    struct mp_include_list held = mp_include_held(include);

    check_texts(held.texts, held.count, want);
}

static void parses_integers_and_texts(void)
{
    struct mp_arena arena;
    struct mp_include_list list;

    mp_arena_init(&arena, 0);
    list = list_of(&arena, "[3, 1, -2, 3, 9223372036854775807]");
    CHECK(list.integer);
    check_texts(list.texts, list.count, "-2,1,3,9223372036854775807");
    list = list_of(&arena, "[true, false, 1, 1.5, 1e16, 1.0, \"b\", \"\\u00e9\", \"\"]");
    CHECK(!list.integer);
    check_texts(list.texts, list.count, ",1,1.0,1.5,1e+16,False,True,b,\xc3\xa9");
    list = list_of(&arena, "[true]");
    CHECK(!list.integer); /* true is no integer */
    list = list_of(&arena, "[]");
    CHECK_INT(list.count, 0);
    mp_arena_fini(&arena);
}

static void parse_refuses_what_is_no_list_of_scalars(void)
{
    static const char *const bodies[] = {"",
                                         "{}",
                                         "\"a\"",
                                         "[1",
                                         "[null]",
                                         "[[1]]",
                                         "[{\"a\":1}]",
                                         "[1] [2]",
                                         "[NaN]",
                                         "[1,,2]",
                                         "1",
                                         "[92233720368547758080]",
                                         "[\"\\u0000\"]",
                                         "[\"\xff\"]"};
    struct mp_arena arena;

    mp_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
        struct mp_include_list list;
        struct mp_err err = {0};

        CHECK_INT(mp_include_parse(&arena, mp_str_c(bodies[i]), &err, &list), MP_BAD_DATA);
        CHECK(err.text[0]);
    }
    mp_arena_fini(&arena);
}

static void parse_error_quotes_nothing(void)
{
    struct mp_arena arena;
    struct mp_include_list list;
    struct mp_err err = {0};

    mp_arena_init(&arena, 0);
    CHECK_INT(mp_include_parse(&arena, MP_STR("hunter2 is here"), &err, &list), MP_BAD_DATA);
    CHECK(!strstr(err.text, "hunter2"));
    CHECK_INT(mp_include_parse(&arena, MP_STR("[{\"hunter2\":1}]"), &err, &list), MP_BAD_DATA);
    CHECK(!strstr(err.text, "hunter2"));
    mp_arena_fini(&arena);
}

static void additions_enter_at_once_and_removals_wait(void)
{
    start("[1]", 3);
    CHECK_INT(take("[1,2,3]"), MP_INCLUDE_ACCEPTED);
    check_texts(changes.added, changes.added_count, "2,3");
    check_held("1,2,3");
    CHECK_INT(take("[1,2]"), MP_INCLUDE_ACCEPTED);
    CHECK_INT(mp_include_counts(include).pending_removals, 1);
    CHECK_INT(take("[1,2]"), MP_INCLUDE_ACCEPTED);
    check_held("1,2,3");
    CHECK_INT(take("[1,2]"), MP_INCLUDE_ACCEPTED);
    check_texts(changes.removed, changes.removed_count, "3");
    check_held("1,2");
    CHECK_INT(mp_include_counts(include).pending_removals, 0);
    end();
}

static void a_value_that_comes_back_starts_anew(void)
{
    start("[1]", 2);
    take("[1,2,3]");
    take("[1,2]");
    take("[1,2,3]");
    CHECK_INT(mp_include_counts(include).pending_removals, 0);
    take("[1,2]");
    check_held("1,2,3");
    take("[1,2]");
    check_held("1,2");
    end();
}

static void pins_never_leave(void)
{
    start("[1,2]", 1);
    CHECK_INT(take("[2,3]"), MP_INCLUDE_ACCEPTED);
    CHECK_INT(mp_include_counts(include).pinned, 2);
    CHECK_INT(mp_include_counts(include).pinned_only, 1);
    CHECK_INT(take("[3]"), MP_INCLUDE_ACCEPTED);
    CHECK_INT(mp_include_counts(include).pinned_only, 2);
    CHECK_INT(mp_include_counts(include).pending_removals, 0);
    check_held("1,2,3");
    end();
}

static void empty_is_refused_unless_only_pins_are_held(void)
{
    start("[1]", 1);
    CHECK_INT(take("[]"), MP_INCLUDE_ACCEPTED);
    check_held("1");
    CHECK_INT(take("[5]"), MP_INCLUDE_ACCEPTED);
    CHECK_INT(take("[]"), MP_INCLUDE_EMPTY);
    CHECK_INT(changes.removed_count, 0);
    check_held("1,5");
    end();
}

static void bulk_removal_keeps_what_it_lacks_and_takes_what_is_new(void)
{
    start("[1]", 1);
    CHECK_INT(take("[10,11,12,13]"), MP_INCLUDE_ACCEPTED);
    CHECK_INT(take("[10,20]"), MP_INCLUDE_BULK_REMOVAL); /* lacks 3 of 4 */
    check_texts(changes.added, changes.added_count, "20");
    CHECK_INT(changes.removed_count, 0);
    CHECK_INT(mp_include_counts(include).pending_removals, 0);
    check_held("1,10,11,12,13,20");
    end();
}

static void half_may_leave(void)
{
    start("[1]", 1);
    take("[10,11,12,13]");
    CHECK_INT(take("[10,11]"), MP_INCLUDE_ACCEPTED); /* 2 of 4 */
    check_held("1,10,11");
    CHECK_INT(take("[10,99]"), MP_INCLUDE_ACCEPTED); /* 1 of 2 */
    check_held("1,10,99");
    CHECK_INT(take("[77]"), MP_INCLUDE_BULK_REMOVAL); /* 2 of 2 */
    check_held("1,10,77,99");
    end();
}

static void one_managed_value_may_be_replaced(void)
{
    start("[1]", 1);
    take("[10]");
    CHECK_INT(take("[11]"), MP_INCLUDE_ACCEPTED);
    check_held("1,11");
    end();
}

/* Served pins count among the managed: 1 and 2 make it 2 of 4 that leave. */
static void served_pins_are_managed(void)
{
    start("[1,2]", 1);
    take("[1,2,3,4]");
    CHECK_INT(take("[1,2]"), MP_INCLUDE_ACCEPTED);
    check_held("1,2");
    take("[1,2,3,4]");
    CHECK_INT(take("[1]"), MP_INCLUDE_BULK_REMOVAL); /* 2 of 3 */
    end();
}

static void refused_lists_bring_no_removal_nearer(void)
{
    start("[1]", 2);
    take("[10,11,12,13]");
    take("[10,11,12]");
    for (int i = 0; i < 5; i++) {
        CHECK_INT(take("[10]"), MP_INCLUDE_BULK_REMOVAL);
        CHECK_INT(take("[]"), MP_INCLUDE_EMPTY);
        CHECK_INT(take("[\"x\"]"), MP_INCLUDE_TYPE_FLIP);
    }
    check_held("1,10,11,12,13");
    CHECK_INT(mp_include_counts(include).pending_removals, 1);
    take("[10,11,12]");
    check_held("1,10,11,12");
    end();
}

static void types_do_not_flip(void)
{
    start("[1]", 1);
    CHECK_INT(take("[\"a\"]"), MP_INCLUDE_TYPE_FLIP); /* pins count */
    CHECK_INT(take("[1,\"2\"]"), MP_INCLUDE_TYPE_FLIP);
    check_held("1");
    end();
    start("[\"a\"]", 1);
    CHECK_INT(take("[1]"), MP_INCLUDE_TYPE_FLIP);
    CHECK_INT(take("[1,\"2\"]"), MP_INCLUDE_ACCEPTED);
    check_held("1,2,a");
    end();
}

static void the_first_list_without_pins_sets_the_type(void)
{
    start("[]", 1);
    CHECK_INT(take("[]"), MP_INCLUDE_ACCEPTED);
    CHECK_INT(take("[\"a\"]"), MP_INCLUDE_ACCEPTED);
    CHECK_INT(take("[1]"), MP_INCLUDE_TYPE_FLIP);
    CHECK(!mp_include_held(include).integer);
    end();
}

static void uuids_have_one_spelling(void)
{
    static const struct mp_str pin[] = {MP_STR_INIT("F79C3E09677C4BBDA4793F349CB785E7")};
    struct mp_include_options options = {.pins = {false, pin, 1}, .removal_polls = 1, .uuid = true};

    include = mp_include_new(&options);
    check_held("f79c3e09-677c-4bbd-a479-3f349cb785e7");
    CHECK_INT(take("[\"{f79c3e09-677c-4bbd-a479-3f349cb785e7}\",\"no uuid\"]"),
              MP_INCLUDE_ACCEPTED);
    check_held("f79c3e09-677c-4bbd-a479-3f349cb785e7,no uuid");
    CHECK_INT(mp_include_counts(include).pinned_only, 0);
    end();
}

static void compares_lists(void)
{
    static const struct mp_str a[] = {MP_STR_INIT("1"), MP_STR_INIT("2"), MP_STR_INIT("4")};
    static const struct mp_str b[] = {MP_STR_INIT("2"), MP_STR_INIT("3")};
    struct mp_include_list left = {true, a, 3}, right = {true, b, 2}, none = {0};

    CHECK_INT(mp_include_only(&left, &right), 2);
    CHECK_INT(mp_include_only(&right, &left), 1);
    CHECK_INT(mp_include_only(&left, &none), 3);
    CHECK_INT(mp_include_only(&none, &left), 0);
}

/* Against a plain model: arrays of flags. */
static void agrees_with_a_plain_model(void)
{
    enum { VALUES = 12, PINS = 3, ROUNDS = 3000, POLLS = 3 };
    struct mp_env_fake dice = {.seed = 7};
    struct mp_env chance = mp_env_fake(&dice);
    bool held[VALUES] = {true, true, true};
    uint32_t missed[VALUES] = {0};

    start("[\"a\",\"b\",\"c\"]", POLLS);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t bits = mp_random_u64(&chance) | mp_random_u64(&chance);
        char json[128], want[128];
        size_t used = 1;
        uint32_t managed = 0, missing = 0, served = 0;
        enum mp_include_answer answer = MP_INCLUDE_ACCEPTED;

        if (round % 17 == 0)
            bits = 0;
        json[0] = '[';
        for (int v = 0; v < VALUES; v++) {
            bool has = bits >> v & 1;

            managed += held[v] && (v >= PINS || has);
            missing += held[v] && v >= PINS && !has;
            if (has)
                used += (size_t)snprintf(json + used, sizeof(json) - used, "%s\"%c\"",
                                         served++ ? "," : "", 'a' + v);
        }
        snprintf(json + used, sizeof(json) - used, "]");
        if (!served && managed)
            answer = MP_INCLUDE_EMPTY;
        else if (managed > 1 && missing > (managed / 2 > 1 ? managed / 2 : 1))
            answer = MP_INCLUDE_BULK_REMOVAL;
        CHECK_INT(take(json), answer);
        used = 0;
        for (int v = 0; v < VALUES; v++) {
            bool has = bits >> v & 1;

            if (answer != MP_INCLUDE_EMPTY && has) {
                held[v] = true;
                missed[v] = 0;
            } else if (answer == MP_INCLUDE_ACCEPTED && held[v] && v >= PINS &&
                       ++missed[v] == POLLS) {
                held[v] = false;
                missed[v] = 0;
            }
            if (held[v])
                used += (size_t)snprintf(want + used, sizeof(want) - used, "%s%c", used ? "," : "",
                                         'a' + v);
        }
        check_held(want);
    }
    end();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(parses_integers_and_texts),
        TEST(parse_refuses_what_is_no_list_of_scalars),
        TEST(parse_error_quotes_nothing),
        TEST(additions_enter_at_once_and_removals_wait),
        TEST(a_value_that_comes_back_starts_anew),
        TEST(pins_never_leave),
        TEST(empty_is_refused_unless_only_pins_are_held),
        TEST(bulk_removal_keeps_what_it_lacks_and_takes_what_is_new),
        TEST(half_may_leave),
        TEST(one_managed_value_may_be_replaced),
        TEST(served_pins_are_managed),
        TEST(refused_lists_bring_no_removal_nearer),
        TEST(types_do_not_flip),
        TEST(the_first_list_without_pins_sets_the_type),
        TEST(uuids_have_one_spelling),
        TEST(compares_lists),
        TEST(agrees_with_a_plain_model),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
