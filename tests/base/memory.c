#include "base/arena.h"
#include "base/buf.h"
#include "base/env.h"
#include "base/err.h"
#include "base/segment.h"
#include "harness/test.h"

static void arena_keeps_blocks_over_a_reset(void)
{
    struct mp_arena arena;
    size_t held;

    mp_arena_init(&arena, 256);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 50; i++) {
            char *memory = mp_arena_take(&arena, 40);

            for (int b = 0; b < 40; b++)
                CHECK(memory[b] == 0);
            memset(memory, 0xff, 40);
        }
        if (round == 0)
            held = arena.bytes;
        CHECK_INT(arena.bytes, held);
        mp_arena_reset(&arena);
    }
    CHECK_STR(mp_str_c(mp_arena_printf(&arena, "%d-%s", 7, "x")), MP_STR("7-x"));
    mp_arena_fini(&arena);
}

static void buf_escapes_json(void)
{
    struct mp_buf buf = MP_BUF_INIT(4096);

    mp_buf_add_json(&buf, mp_str_n("a\"\\\n\x01\0/\xc3\xa9", 9));
    CHECK_STR(mp_buf_str(&buf), MP_STR("\"a\\\"\\\\\\n\\u0001\\u0000/\xc3\xa9\""));
    mp_buf_clear(&buf);
    mp_buf_printf(&buf, "%s=%d", "k", 12);
    CHECK_STR(mp_str_c(mp_buf_c(&buf)), MP_STR("k=12"));
    mp_buf_fini(&buf);
}

static void err_puts_what_was_done_in_front(void)
{
    struct mp_err err;

    CHECK_INT(mp_err_set(&err, MP_IO, "no answer in %d ms", 5), MP_IO);
    CHECK(err.retriable);
    mp_err_add(&err, "put %s", "k");
    CHECK_STR(mp_str_c(err.text), MP_STR("put k: no answer in 5 ms"));
    CHECK(!(mp_err_set(&err, MP_REFUSED, "no"), err.retriable));
    for (int i = 0; i < 200; i++)
        mp_err_add(&err, "a long way up");
    CHECK_INT(strlen(err.text), sizeof(err.text) - 1);
}

static void segments_grow_stepwise_and_come_back(void)
{
    struct mp_segment_pool *pool = mp_segment_pool_new(1 << 20);
    struct mp_segment_list list = {0};
    size_t values = 0, segments = 0;

    for (int i = 0; i < 500000; i++)
        memset(mp_segment_append(pool, &list, 8), i & 0xff, 8);
    for (struct mp_segment *segment = list.first; segment; segment = segment->next) {
        CHECK(segment->used <= segment->capacity);
        CHECK_INT(segment->used, segment->count * 8);
        values += segment->count;
        segments++;
    }
    CHECK_INT(values, 500000);
    CHECK(segments <= 10 + 4);
    CHECK(mp_segment_pool_bytes(pool) < 500000 * 8 + 2 * MP_SEGMENT_LARGE);
    mp_segment_put_list(pool, &list);
    CHECK_INT(mp_segment_pool_bytes(pool), 0);
    /* a value beyond the largest size gets a segment of its own */
    memset(mp_segment_append(pool, &list, 3 * MP_SEGMENT_LARGE), 1, 3 * MP_SEGMENT_LARGE);
    CHECK_INT(list.first->capacity, 3 * MP_SEGMENT_LARGE);
    mp_segment_put_list(pool, &list);
    mp_segment_pool_free(pool);
}

static void fake_env_steps_by_sleeping_only(void)
{
    struct mp_env_fake fake = {.wall_us = 1700000000000000, .seed = 7};
    struct mp_env env = mp_env_fake(&fake);
    char a[MP_UUID_TEXT], b[MP_UUID_TEXT];

    CHECK_INT(mp_now_mono_us(&env), 0);
    mp_sleep_us(&env, 250);
    CHECK_INT(mp_now_mono_us(&env), 250);
    CHECK_INT(mp_now_wall_us(&env), 1700000000000250);
    mp_uuid7(&env, a);
    mp_uuid7(&env, b);
    /* 1700000000000 ms is 0x18bcfe56800 */
    CHECK(memcmp(a, "018bcfe5-6800-7", 15) == 0);
    CHECK(strcmp(a, b) != 0);
    CHECK(strchr("89ab", a[19]) != NULL);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(arena_keeps_blocks_over_a_reset), TEST(buf_escapes_json),
        TEST(err_puts_what_was_done_in_front), TEST(segments_grow_stepwise_and_come_back),
        TEST(fake_env_steps_by_sleeping_only),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
