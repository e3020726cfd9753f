#include "harness/test.h"

#include "base/base64.h"
#include "server/priv.h"
#include "server/tx/commit.h"

static void instants_go_both_ways(void)
{
    static const struct {
        const char *text, *printed;
        int64_t us;
    } cases[] = {
        {"1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", 0},
        {"2026-09-05T12:00:00.123456Z", "2026-09-05T12:00:00.123456Z", INT64_C(1788609600123456)},
        {"2026-09-05T14:00:00.5+02:00", "2026-09-05T12:00:00.500Z", INT64_C(1788609600500000)},
        {"1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z", -1},
    };
    static const char *const bad[] = {"",
                                      "2026-09-05",
                                      "2026-09-05T12:00:00",
                                      "2026-02-30T00:00:00Z",
                                      "2026-09-05T25:00:00Z",
                                      "2026-09-05T12:00:00Zx"};
    struct mp_buf buf = MP_BUF_INIT(100);
    int64_t us;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        CHECK(mp_wire_instant_read(mp_str_c(cases[i].text), &us));
        CHECK_INT(us, cases[i].us);
        mp_buf_clear(&buf);
        mp_wire_instant_print(&buf, us);
        CHECK_STR(mp_buf_str(&buf), mp_str_c(cases[i].printed));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK(!mp_wire_instant_read(mp_str_c(bad[i]), &us));
    mp_buf_fini(&buf);
}

static void base64_goes_both_ways_and_refuses_the_rest(void)
{
    struct mp_buf buf = MP_BUF_INIT(100);
    struct mp_arena arena;
    struct mp_str bytes;
    char uuid[37];

    mp_arena_init(&arena, 0);
    for (size_t size = 0; size < 9; size++) {
        mp_buf_clear(&buf);
        mp_base64_print(&buf, mp_str_n("\x00\xff\x10zyx\x80\x7f!", size));
        CHECK(mp_base64_read(&arena, mp_buf_str(&buf), &bytes));
        CHECK_STR(bytes, mp_str_n("\x00\xff\x10zyx\x80\x7f!", size));
    }
    CHECK(!mp_base64_read(&arena, MP_STR("A"), &bytes));
    CHECK(!mp_base64_read(&arena, MP_STR("A==="), &bytes));
    CHECK(!mp_base64_read(&arena, MP_STR("AA=A"), &bytes));
    CHECK(!mp_base64_read(&arena, MP_STR("A_-="), &bytes));
    CHECK(mp_wire_uuid_read(MP_STR("F79C3E09-677c-4bbd-a479-3f349cb785e7"), uuid));
    CHECK_STR(mp_str_c(uuid), MP_STR("f79c3e09-677c-4bbd-a479-3f349cb785e7"));
    CHECK(!mp_wire_uuid_read(MP_STR("f79c3e09677c4bbda4793f349cb785e7"), uuid));
    mp_buf_fini(&buf);
    mp_arena_fini(&arena);
}

static void paths_are_decoded_a_part_at_a_time(void)
{
    struct mp_call call = {0};
    const struct mp_route *route;
    struct mp_str decoded;
    unsigned status;

    mp_arena_init(&call.arena, 0);
    route = mp_route_find(&call, MP_STR("GET"), MP_STR("/v1/catalogs/c/consumers/con%2F1/offsets"),
                          &status);
    CHECK(route);
    CHECK_STR(call.parts[1], MP_STR("con/1"));
    route =
        mp_route_find(&call, MP_STR("GET"), MP_STR("/v1/catalogs/c/snapshots/resolve"), &status);
    CHECK(route && strstr(route->pattern, "resolve"));
    CHECK(!mp_route_find(&call, MP_STR("PUT"), MP_STR("/v1/catalogs"), &status));
    CHECK_INT(status, 405);
    CHECK(!mp_route_find(&call, MP_STR("GET"), MP_STR("/healthz/"), &status));
    CHECK_INT(status, 404);
    CHECK(!mp_route_find(&call, MP_STR("GET"), MP_STR("/v1/catalogs/%00"), &status));
    CHECK_INT(status, 400);
    CHECK(!mp_route_find(&call, MP_STR("GET"), MP_STR("/v1/catalogs/%ff"), &status));
    CHECK_INT(status, 400);
    CHECK(mp_route_decode(&call.arena, MP_STR("a+b%2B"), true, &decoded));
    CHECK_STR(decoded, MP_STR("a b+"));
    CHECK(!mp_route_decode(&call.arena, MP_STR("%4"), true, &decoded));
    CHECK(mp_route_at_once(MP_STR("GET"), MP_STR("/healthz")));
    CHECK(!mp_route_at_once(MP_STR("GET"), MP_STR("/v1/catalogs")));
    mp_arena_fini(&call.arena);
}

/* Gives the JSON that the request borrows from. */
static json_t *read_commit(struct mp_arena *arena, const char *text, struct mp_wire_commit *ret)
{
    struct mp_wire_reader reader = {.arena = arena};
    json_t *json = json_loads(text, 0, NULL);

    CHECK(json);
    mp_wire_commit_read(&reader, json, ret);
    CHECK(!reader.failed);
    return json;
}

#define FILE_A                                                                                     \
    "{\"path\":\"a\",\"record_count\":1,\"file_size_bytes\":2,\"column_stats\":"                   \
    "[{\"field_id\":1,\"value_count\":1,\"null_count\":0},"                                        \
    "{\"field_id\":2,\"value_count\":1,\"null_count\":0}]}"
#define FILE_A_TURNED                                                                              \
    "{\"column_stats\":[{\"null_count\":0,\"field_id\":2,\"value_count\":1},"                      \
    "{\"field_id\":1,\"value_count\":1,\"null_count\":0,\"nan_count\":null}],"                     \
    "\"path\":\"a\",\"record_count\":1,\"file_size_bytes\":2}"
#define FILE_B        "{\"path\":\"b\",\"record_count\":1,\"file_size_bytes\":2}"
#define FILE_B_EMPTY  "{\"path\":\"b\",\"record_count\":1,\"file_size_bytes\":2,\"column_stats\":[]}"
#define COMMIT(files) "{\"appends\":[{\"namespace\":\"n\",\"table\":\"t\",\"files\":[" files "]}]}"

static bool same(const char *a, const char *b)
{
    static const struct mp_commit_rules rules = {0};
    unsigned char x[MP_FINGERPRINT_BYTES], y[MP_FINGERPRINT_BYTES];
    struct mp_wire_commit first, second;
    struct mp_arena arena;
    json_t *one, *other;

    mp_arena_init(&arena, 0);
    one = read_commit(&arena, a, &first);
    other = read_commit(&arena, b, &second);
    mp_fingerprint(&first, &rules, x);
    mp_fingerprint(&second, &rules, y);
    json_decref(one);
    json_decref(other);
    mp_arena_fini(&arena);
    return memcmp(x, y, sizeof(x)) == 0;
}

static void fingerprints_ignore_order_and_nothing_else(void)
{
    CHECK(same(COMMIT(FILE_A "," FILE_B), COMMIT(FILE_B "," FILE_A_TURNED)));
    CHECK(!same(COMMIT(FILE_A), COMMIT(FILE_A "," FILE_A)));
    CHECK(!same(COMMIT(FILE_B), COMMIT(FILE_B_EMPTY)));
    CHECK(!same(COMMIT(FILE_A), COMMIT(FILE_B)));
    CHECK(!same("{\"author\":\"\"}", "{}"));
    CHECK(same("{\"author\":null}", "{}"));
    CHECK(!same("{\"author\":\"a\"}", "{\"message\":\"a\"}"));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(instants_go_both_ways),
        TEST(base64_goes_both_ways_and_refuses_the_rest),
        TEST(paths_are_decoded_a_part_at_a_time),
        TEST(fingerprints_ignore_order_and_nothing_else),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
