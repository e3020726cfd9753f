/* The local driver: whole or not at all, durable directories, sorted walks, clear errors. */
#include "harness/test.h"

#include "base/mem.h"
#include "store/store_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct mp_env env;
static struct mp_err err;

static struct mp_store *open_at(const char *url)
{
    struct mp_store *store = NULL;

    env = mp_env_real();
    CHECK_OK(mp_store_open(mp_str_c(url), NULL, &env, &err, &store), err);
    return store;
}

static struct mp_store_object object_of(const char *key, const struct mp_str *pieces,
                                        uint32_t count)
{
    struct mp_store_object object = {mp_str_c(key), pieces, count, 0};

    for (uint32_t i = 0; i < count; i++)
        object.bytes += pieces[i].size;
    return object;
}

static enum mp_code put_text(struct mp_store *store, const char *key, const char *text)
{
    struct mp_str piece = mp_str_c(text);
    struct mp_store_object object = object_of(key, &piece, 1);
    bool done = true;
    enum mp_code code = store->driver->put(store, &object, 1, &done, &err);

    CHECK(done == (code == MP_OK));
    return code;
}

static struct mp_str get_text(struct mp_store *store, const char *key, int64_t offset, size_t size)
{
    static char memory[256];
    size_t have = 99;

    CHECK(size <= sizeof(memory));
    CHECK_OK(store->driver->get(store, mp_str_c(key), offset, size, memory, &have, &err), err);
    return mp_str_n(memory, have);
}

struct seen {
    char text[4096];
    unsigned count, stop_after;
};

static bool see(void *self, const struct mp_store_entry *entry)
{
    struct seen *seen = self;
    size_t used = strlen(seen->text);

    snprintf(seen->text + used, sizeof(seen->text) - used, "%.*s:%" PRIu64 "\n",
             MP_STR_ARG(entry->key), entry->bytes);
    return ++seen->count != seen->stop_after;
}

static struct mp_str list_text(struct mp_store *store, const char *prefix, unsigned stop_after)
{
    static struct seen seen;

    seen = (struct seen){.stop_after = stop_after};
    CHECK_OK(store->driver->list(store, mp_str_c(prefix), see, &seen, &err), err);
    return mp_str_c(seen.text);
}

static void local_puts_and_gets_ranges(void)
{
    struct mp_store *store = open_at(test_directory());

    CHECK_OK(put_text(store, "a/b/c", "hello world"), err);
    CHECK_STR(get_text(store, "a/b/c", 0, 256), MP_STR("hello world"));
    CHECK_STR(get_text(store, "a/b/c", 6, 3), MP_STR("wor"));
    CHECK_STR(get_text(store, "a/b/c", -1, 3), MP_STR("rld"));
    CHECK_STR(get_text(store, "a/b/c", -1, 100), MP_STR("hello world"));
    CHECK_STR(get_text(store, "a/b/c", 11, 5), MP_STR(""));
    CHECK_STR(get_text(store, "a/b/c", 500, 5), MP_STR(""));
    CHECK_OK(put_text(store, "empty", ""), err);
    CHECK_STR(get_text(store, "empty", -1, 5), MP_STR(""));
    mp_store_close(store);
}

static void local_puts_many_pieces(void)
{
    struct mp_store *store = open_at(test_directory());
    enum { COUNT = 3000 };
    static struct mp_str pieces[COUNT];
    static char numbers[COUNT][8], back[COUNT * 8];
    struct mp_store_object object;
    size_t have = 0, at = 0;
    bool done = false;

    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(numbers[i], sizeof(numbers[i]), "%u", i);
        pieces[i] = i % 7 == 3 ? MP_STR("") : mp_str_c(numbers[i]);
    }
    object = object_of("many", pieces, COUNT);
    CHECK_OK(store->driver->put(store, &object, 1, &done, &err), err);
    CHECK(done);
    CHECK_OK(store->driver->get(store, MP_STR("many"), 0, sizeof(back), back, &have, &err), err);
    CHECK_INT(have, object.bytes);
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK(memcmp(back + at, pieces[i].data, pieces[i].size) == 0);
        at += pieces[i].size;
    }
    mp_store_close(store);
}

static void local_puts_several_objects(void)
{
    struct mp_store *store = open_at(test_directory());
    struct mp_str piece = MP_STR("x");
    struct mp_store_object objects[3] = {
        object_of("d=1/a", &piece, 1),
        object_of("d=1/b", &piece, 1),
        object_of("d=2/a", &piece, 1),
    };
    bool done[3] = {false};

    CHECK_OK(store->driver->put(store, objects, 3, done, &err), err);
    CHECK(done[0] && done[1] && done[2]);
    CHECK_STR(list_text(store, "", 0), MP_STR("d=1/a:1\nd=1/b:1\nd=2/a:1\n"));
    mp_store_close(store);
}

static void local_tells_what_was_done_when_one_fails(void)
{
    struct mp_store *store = open_at(test_directory());
    struct mp_str piece = MP_STR("x");
    struct mp_store_object objects[3] = {
        object_of("a", &piece, 1),
        object_of("a/below-a-file", &piece, 1),
        object_of("c", &piece, 1),
    };
    bool done[3] = {false, true, true};

    CHECK_INT(store->driver->put(store, objects, 3, done, &err), MP_REFUSED);
    CHECK(done[0] && !done[1] && !done[2]);
    CHECK(!err.retriable);
    CHECK(strstr(err.text, "put: ") && strstr(err.text, "a"));
    CHECK(strstr(err.text, strerror(ENOTDIR)) || strstr(err.text, strerror(EEXIST)));
    CHECK_STR(list_text(store, "", 0), MP_STR("a:1\n"));
    mp_store_close(store);
}

static void local_lists_in_key_order(void)
{
    struct mp_store *store = open_at(test_directory());

    CHECK_OK(put_text(store, "a/b", "1"), err);
    CHECK_OK(put_text(store, "a-b", "12"), err);
    CHECK_OK(put_text(store, "a0", "123"), err);
    CHECK_OK(put_text(store, "a/a/z", ""), err);
    CHECK_OK(put_text(store, "b", ""), err);
    CHECK_STR(list_text(store, "", 0), MP_STR("a-b:2\na/a/z:0\na/b:1\na0:3\nb:0\n"));
    CHECK_STR(list_text(store, "a", 0), MP_STR("a-b:2\na/a/z:0\na/b:1\na0:3\n"));
    CHECK_STR(list_text(store, "a/", 0), MP_STR("a/a/z:0\na/b:1\n"));
    CHECK_STR(list_text(store, "a/b", 0), MP_STR("a/b:1\n"));
    CHECK_STR(list_text(store, "none/", 0), MP_STR(""));
    CHECK_STR(list_text(store, "b/x", 0), MP_STR(""));
    CHECK_STR(list_text(store, "", 2), MP_STR("a-b:2\na/a/z:0\n"));
    mp_store_close(store);
}

static void local_hides_temporary_files(void)
{
    const char *root = test_directory();
    struct mp_store *store = open_at(root);
    char path[256];

    CHECK_OK(put_text(store, "d/a", "1"), err);
    snprintf(path, sizeof(path), "%s/d/.tmp-left-over", root);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    CHECK_STR(list_text(store, "", 0), MP_STR("d/a:1\n"));
    mp_store_close(store);
}

static void local_removes_once_and_again(void)
{
    struct mp_store *store = open_at(test_directory());
    char byte;
    size_t have;

    CHECK_OK(put_text(store, "d/a", "1"), err);
    CHECK_OK(store->driver->remove(store, MP_STR("d/a"), &err), err);
    CHECK_OK(store->driver->remove(store, MP_STR("d/a"), &err), err);
    CHECK_OK(store->driver->remove(store, MP_STR("no/such/thing"), &err), err);
    CHECK_INT(store->driver->get(store, MP_STR("d/a"), 0, 1, &byte, &have, &err), MP_NOT_FOUND);
    CHECK_INT(store->driver->get(store, MP_STR("d"), 0, 1, &byte, &have, &err), MP_NOT_FOUND);
    mp_store_close(store);
}

static void local_refuses_bad_keys(void)
{
    static const char *const bad[] = {"",     "/a",  "a/",   "a//b", ".",     "..",
                                      "../a", "a/.", "a/..", "./a",  "a/../b"};
    struct mp_store *store = open_at(test_directory());

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK_INT(put_text(store, bad[i], "x"), MP_BAD_DATA);
    CHECK_INT(mp_store_key_check(MP_STR("a\0b"), &err), MP_BAD_DATA);
    CHECK_INT(store->driver->list(store, MP_STR("a/../"), see, NULL, &err), MP_BAD_DATA);
    CHECK_OK(put_text(store, "...", "x"), err);
    CHECK_OK(put_text(store, "a..b/.c", "x"), err);
    CHECK_OK(put_text(store, "k=a b%2F+\xc3\xbc/f", "x"), err);
    CHECK_STR(get_text(store, "k=a b%2F+\xc3\xbc/f", 0, 9), MP_STR("x"));
    mp_store_close(store);
}

static void local_makes_its_root(void)
{
    char url[256];
    struct mp_store *store;
    struct stat info;

    snprintf(url, sizeof(url), "file://%s/new/deep///", test_directory());
    store = open_at(url);
    CHECK_INT(stat(url + strlen("file://"), &info), 0);
    CHECK_OK(put_text(store, "a", "1"), err);
    mp_store_close(store);
    store = open_at(url);
    CHECK_STR(list_text(store, "", 0), MP_STR("a:1\n"));
    mp_store_close(store);
}

static void local_refuses_bad_urls(void)
{
    static const char *const bad[] = {"", "data", "./data", "http://x/", "file://data"};
    struct mp_store *store;

    env = mp_env_real();
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK_INT(mp_store_open(mp_str_c(bad[i]), NULL, &env, &err, &store), MP_BAD_CONFIG);
    CHECK_INT(mp_store_open(MP_STR("/dev/null/x"), NULL, &env, &err, &store), MP_REFUSED);
    CHECK(strstr(err.text, "/dev/null/x"));
}

/* A limit on file sizes stands in for a full disk: write answers EFBIG where SIGXFSZ is ignored.
 * Runs in a child, whose exit code says which expectation broke. */
static int put_over_limit(const char *root)
{
    struct rlimit limit = {4096, 4096};
    char *bytes = mp_alloc(1 << 20);
    struct mp_str piece = mp_str_n(bytes, 1 << 20);
    struct mp_store_object object = object_of("d/large", &piece, 1);
    struct mp_store *store;
    bool done = true;

    signal(SIGXFSZ, SIG_IGN);
    env = mp_env_real();
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 1;
    if (mp_store_open(mp_str_c(root), NULL, &env, &err, &store))
        return 2;
    if (store->driver->put(store, &object, 1, &done, &err) != MP_REFUSED || done)
        return 3;
    if (!strstr(err.text, root) || !strstr(err.text, strerror(EFBIG)) || err.sys != EFBIG)
        return 4;
    mp_store_close(store);
    mp_free(bytes);
    return 0;
}

static void local_full_disk_is_told_and_leaves_nothing(void)
{
    const char *root = test_directory();
    struct mp_store *store;
    char command[256];
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(put_over_limit(root));
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_INT(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    store = open_at(root);
    CHECK_STR(list_text(store, "", 0), MP_STR(""));
    mp_store_close(store);
    snprintf(command, sizeof(command), "test -z \"$(find %s -type f)\"", root);
    CHECK_INT(system(command), 0);
}

enum { KILL_BYTES = 4 << 20 };

/* Puts objects of one byte value each until it is killed. */
static void put_until_killed(const char *root)
{
    char *bytes = mp_alloc(KILL_BYTES), key[32];
    struct mp_store *store;

    env = mp_env_real();
    if (mp_store_open(mp_str_c(root), NULL, &env, &err, &store))
        _exit(1);
    for (unsigned i = 0;; i++) {
        struct mp_str pieces[2] = {{bytes, KILL_BYTES / 2},
                                   {bytes + KILL_BYTES / 2, KILL_BYTES / 2}};
        struct mp_store_object object;
        bool done;

        memset(bytes, 'a' + (int)(i % 26), KILL_BYTES);
        snprintf(key, sizeof(key), "p=%u/o%u", i % 3, i);
        object = object_of(key, pieces, 2);
        if (store->driver->put(store, &object, 1, &done, &err))
            _exit(1);
    }
}

static bool check_whole(void *self, const struct mp_store_entry *entry)
{
    unsigned *count = self;

    CHECK_INT(entry->bytes, KILL_BYTES);
    *count += 1;
    return true;
}

static void local_killed_put_leaves_whole_objects(void)
{
    const char *root = test_directory();
    unsigned count = 0;

    for (unsigned round = 0; round < 12; round++) {
        pid_t child = fork();
        struct mp_store *store;
        int status;

        CHECK(child >= 0);
        if (child == 0)
            put_until_killed(root);
        usleep(5000 + round * 7919 % 40000);
        kill(child, SIGKILL);
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status));
        store = open_at(root);
        CHECK_OK(store->driver->list(store, MP_STR(""), check_whole, &count, &err), err);
        mp_store_close(store);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(local_puts_and_gets_ranges),
        TEST(local_puts_many_pieces),
        TEST(local_puts_several_objects),
        TEST(local_tells_what_was_done_when_one_fails),
        TEST(local_lists_in_key_order),
        TEST(local_hides_temporary_files),
        TEST(local_removes_once_and_again),
        TEST(local_refuses_bad_keys),
        TEST(local_makes_its_root),
        TEST(local_refuses_bad_urls),
        TEST(local_full_disk_is_told_and_leaves_nothing),
        TEST(local_killed_put_leaves_whole_objects),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
