/* The memory driver: the same doors as the others, and faults where they were asked for. */
#include "harness/test.h"

#include "store/memory.h"

#include <stdio.h>

static struct mp_err err;

static enum mp_code put_count(struct mp_store *store, const char *const *keys, uint32_t count,
                              bool *done)
{
    struct mp_str pieces[2] = {MP_STR("he"), MP_STR("llo")};
    struct mp_store_object objects[8];

    CHECK(count <= 8);
    for (uint32_t i = 0; i < count; i++)
        objects[i] = (struct mp_store_object){mp_str_c(keys[i]), pieces, 2, 5};
    return store->driver->put(store, objects, count, done, &err);
}

static bool see(void *self, const struct mp_store_entry *entry)
{
    char *text = self;

    snprintf(text + strlen(text), 256 - strlen(text), "%.*s ", MP_STR_ARG(entry->key));
    return true;
}

static void memory_puts_gets_lists_removes(void)
{
    static const char *const keys[] = {"b/2", "a", "b/1", "c"};
    struct mp_memory_disk *disk = mp_memory_disk_new();
    struct mp_store *store = mp_memory_store_open(disk);
    char text[256] = "", memory[8];
    bool done[4];
    size_t have;

    CHECK_OK(put_count(store, keys, 4, done), err);
    CHECK(done[0] && done[1] && done[2] && done[3]);
    CHECK_OK(store->driver->get(store, MP_STR("a"), -1, 3, memory, &have, &err), err);
    CHECK_STR(mp_str_n(memory, have), MP_STR("llo"));
    CHECK_OK(store->driver->get(store, MP_STR("a"), 1, 2, memory, &have, &err), err);
    CHECK_STR(mp_str_n(memory, have), MP_STR("el"));
    CHECK_OK(store->driver->get(store, MP_STR("a"), 9, 2, memory, &have, &err), err);
    CHECK_INT(have, 0);
    CHECK_INT(store->driver->get(store, MP_STR("z"), 0, 2, memory, &have, &err), MP_NOT_FOUND);
    CHECK_OK(store->driver->list(store, MP_STR(""), see, text, &err), err);
    CHECK_STR(mp_str_c(text), MP_STR("a b/1 b/2 c "));
    *text = 0;
    CHECK_OK(store->driver->list(store, MP_STR("b/"), see, text, &err), err);
    CHECK_STR(mp_str_c(text), MP_STR("b/1 b/2 "));
    CHECK_OK(store->driver->remove(store, MP_STR("b/1"), &err), err);
    CHECK_OK(store->driver->remove(store, MP_STR("b/1"), &err), err);
    mp_store_close(store);
    CHECK_INT(mp_memory_counts(disk).objects, 3);
    CHECK_INT(mp_memory_counts(disk).bytes, 15);
    CHECK_INT(mp_memory_counts(disk).put_calls, 1);
    CHECK_INT(mp_memory_counts(disk).ops[MP_MEMORY_PUT], 4);
    store = mp_memory_store_open(disk); /* the disk outlived its store */
    CHECK_OK(store->driver->get(store, MP_STR("c"), 0, 8, memory, &have, &err), err);
    CHECK_INT(have, 5);
    mp_store_close(store);
    mp_memory_disk_free(disk);
}

static void memory_faults_hit_the_nth(void)
{
    static const char *const keys[] = {"a", "b", "c", "d"};
    static const struct {
        enum mp_memory_fault fault;
        enum mp_code code;
        bool retriable, there;
        unsigned done; /* a bit an object */
    } cases[] = {
        {MP_MEMORY_FAIL, MP_IO, true, false, 0xd},
        {MP_MEMORY_TIME_OUT, MP_TIMEOUT, true, false, 0xd},
        {MP_MEMORY_REFUSE, MP_REFUSED, false, false, 0xd},
        {MP_MEMORY_LOSE_ANSWER, MP_IO, true, true, 0xd},
        {MP_MEMORY_CUT, MP_IO, true, false, 0x1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct mp_memory_disk *disk = mp_memory_disk_new();
        struct mp_store *store = mp_memory_store_open(disk);
        bool done[4];

        mp_memory_fault_nth(disk, MP_MEMORY_PUT, 2, cases[i].fault);
        CHECK_INT(put_count(store, keys, 4, done), cases[i].code);
        CHECK_INT(err.retriable, cases[i].retriable);
        for (unsigned j = 0; j < 4; j++)
            CHECK_INT(done[j], cases[i].done >> j & 1);
        CHECK_INT(mp_memory_peek(disk, MP_STR("b")).data != NULL, cases[i].there);
        CHECK_INT(mp_memory_counts(disk).faults[MP_MEMORY_PUT], 1);
        CHECK_OK(put_count(store, keys, 4, done), err);
        CHECK_INT(mp_memory_counts(disk).objects, 4);
        CHECK_INT(mp_memory_counts(disk).rewrites, 0);
        mp_store_close(store);
        mp_memory_disk_free(disk);
    }
}

static enum mp_memory_fault refuse_b(void *self, enum mp_memory_op op, struct mp_str key,
                                     uint64_t ordinal)
{
    (void)self, (void)ordinal;
    return op == MP_MEMORY_GET && mp_str_eq(key, MP_STR("b")) ? MP_MEMORY_FAIL : MP_MEMORY_NO_FAULT;
}

static void memory_faults_are_decided_by_a_function(void)
{
    static const char *const keys[] = {"a", "b"};
    struct mp_memory_disk *disk = mp_memory_disk_new();
    struct mp_store *store = mp_memory_store_open(disk);
    char memory[8];
    bool done[2];
    size_t have;

    mp_memory_fault_decide(disk, refuse_b, NULL);
    CHECK_OK(put_count(store, keys, 2, done), err);
    CHECK_OK(store->driver->get(store, MP_STR("a"), 0, 8, memory, &have, &err), err);
    CHECK_INT(store->driver->get(store, MP_STR("b"), 0, 8, memory, &have, &err), MP_IO);
    mp_memory_fault_none(disk);
    CHECK_OK(store->driver->get(store, MP_STR("b"), 0, 8, memory, &have, &err), err);
    mp_store_close(store);
    mp_memory_disk_free(disk);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(memory_puts_gets_lists_removes),
        TEST(memory_faults_hit_the_nth),
        TEST(memory_faults_are_decided_by_a_function),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
