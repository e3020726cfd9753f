/* Offsets of files in a file: durable, whole, one process at a time. */
#include "harness/test.h"
#include "kafka/source_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[512];

static void name_state(void)
{
    snprintf(path, sizeof(path), "%s/state.json", test_directory());
    unlink(path);
}

static struct mp_file_state *open_state(void)
{
    struct mp_file_state *state = NULL;
    struct mp_err err = {0};

    CHECK_OK(mp_file_state_open(path, &err, &state), err);
    return state;
}

static void write_text(const char *text)
{
    FILE *file = fopen(path, "w");

    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    fclose(file);
}

static void keeps_what_was_put(void)
{
    struct mp_file_state *state;
    struct mp_str text;
    int64_t offset;
    struct mp_err err = {0};

    name_state();
    state = open_state();
    CHECK(!mp_file_state_get(state, MP_STR("/a#1-2"), &offset, &text));
    CHECK_OK(mp_file_state_put(state, MP_STR("/a#1-2"), 4711, MP_STR("mpplan1 \"x\""), &err), err);
    CHECK_OK(mp_file_state_put(state, MP_STR("/b \"q\""), 0, MP_STR(""), &err), err);
    CHECK_OK(mp_file_state_put(state, MP_STR("/b \"q\""), 9223372036854775807, MP_STR(""), &err),
             err);
    mp_file_state_close(state);
    state = open_state();
    CHECK(mp_file_state_get(state, MP_STR("/a#1-2"), &offset, &text));
    CHECK_INT(offset, 4711);
    CHECK_STR(text, MP_STR("mpplan1 \"x\""));
    CHECK(mp_file_state_get(state, MP_STR("/b \"q\""), &offset, &text));
    CHECK_INT(offset, 9223372036854775807);
    CHECK_STR(text, MP_STR(""));
    mp_file_state_close(state);
}

static void is_for_one_process(void)
{
    struct mp_file_state *state, *other = NULL;
    struct mp_err err = {0};

    name_state();
    state = open_state();
    CHECK_INT(mp_file_state_open(path, &err, &other), MP_CONFLICT);
    CHECK(!err.retriable);
    CHECK(strstr(err.text, "another process") != NULL);
    mp_file_state_close(state);
    state = open_state();
    mp_file_state_close(state);
}

static void refuses_what_is_no_state(void)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"format\": \"millpond state 2\", \"sources\": {}}",
        "{\"format\": \"millpond state 1\"}",
        "{\"format\": \"millpond state 1\", \"sources\": {\"a\": 1}}",
        "{\"format\": \"millpond state 1\", \"sources\": {\"a\": {\"offset\": 1}}}",
        "{\"format\": \"millpond state 1\", \"sources\": {\"a\": {\"offset\": -1, \"metadata\": "
        "\"\"}}}",
        "{\"format\": \"millpond state 1\", \"sources\": {\"a\": {\"offset\": 1.5, \"metadata\": "
        "\"\"}}}",
    };
    struct mp_file_state *state = NULL;
    struct mp_err err = {0};

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        name_state();
        write_text(texts[i]);
        if (mp_file_state_open(path, &err, &state) != MP_BAD_DATA)
            test_fail(__FILE__, __LINE__, "read: %s", texts[i]);
        CHECK(strstr(err.text, "state.json") != NULL);
    }
    name_state();
    write_text("{\"format\": \"millpond state 1\", \"sources\": {\"a\": {\"offset\": 5, "
               "\"metadata\": \"\"}}}");
    state = open_state();
    mp_file_state_close(state);
}

static void a_change_that_fails_leaves_the_old_state(void)
{
    struct mp_file_state *state;
    struct mp_str text;
    int64_t offset;
    struct mp_err err = {0};
    char folder[600];

    name_state();
    state = open_state();
    CHECK_OK(mp_file_state_put(state, MP_STR("a"), 1, MP_STR(""), &err), err);
    snprintf(folder, sizeof(folder), "mkdir %s.next", path); /* nothing can be written there */
    CHECK(system(folder) == 0);
    CHECK_INT(mp_file_state_put(state, MP_STR("a"), 2, MP_STR(""), &err), MP_IO);
    CHECK(strstr(err.text, "state.json.next") != NULL);
    mp_file_state_close(state);
    state = open_state();
    CHECK(mp_file_state_get(state, MP_STR("a"), &offset, &text));
    CHECK_INT(offset, 1);
    mp_file_state_close(state);
}

static void a_file_source_stores_its_offset_there(void)
{
    struct mp_arena arena;
    struct mp_source_file_options options = {.path = path, .name = MP_STR("n")};
    struct mp_source_offset offset = {.partition = 0, .offset = 7, .metadata = MP_STR("text")};
    struct mp_source *source = NULL;
    int32_t id = 0;
    bool fenced = false;
    struct mp_err err = {0};

    mp_arena_init(&arena, 0);
    name_state();
    options.state = open_state();
    CHECK_OK(mp_file_state_put(options.state, MP_STR("other"), 1, MP_STR(""), &err), err);
    CHECK_OK(mp_source_file_open(&options, &err, &source), err);
    CHECK_OK(source->driver->own(source, &id, 1, &err, &fenced), err);
    CHECK(fenced);
    CHECK_OK(source->driver->commit(source, &offset, 1, &err), err);
    offset = (struct mp_source_offset){0};
    CHECK_OK(source->driver->committed(source, &arena, &offset, 1, &err), err);
    CHECK_INT(offset.offset, 7);
    CHECK_STR(offset.metadata, MP_STR("text"));
    mp_source_close(source);
    mp_file_state_close(options.state);
    mp_arena_fini(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(keeps_what_was_put),
        TEST(is_for_one_process),
        TEST(refuses_what_is_no_state),
        TEST(a_change_that_fails_leaves_the_old_state),
        TEST(a_file_source_stores_its_offset_there),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
