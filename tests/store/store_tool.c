/* tests/store/store_tool.c - a store by hand, for the judges.
 *
 *     store_tool put KEY FILE [KEY FILE ...]    all in one put; each file as many pieces
 *     store_tool get KEY OFFSET SIZE            to standard output; OFFSET -1: the last SIZE bytes
 *     store_tool list PREFIX                    lines of size, blank, key
 *     store_tool rm KEY
 *     store_tool bench COUNT BYTES              puts COUNT objects of BYTES at once, tells the rate
 *
 * Settings from the environment: STORE_URL, STORE_ENDPOINT, STORE_REGION, STORE_ACCESS_KEY,
 * STORE_SECRET_KEY, STORE_SESSION_TOKEN, STORE_CA_FILE, STORE_PATH_STYLE=1, STORE_USE_SSL=1,
 * STORE_CONCURRENCY, STORE_ATTEMPTS, STORE_REQUEST_MS.
 */
#include "base/mem.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define PIECE 99991 /* a prime: pieces and parts do not end together */

static struct mp_env env;
static struct mp_err err;

static struct mp_str setting(const char *name)
{
    const char *value = getenv(name);

    return mp_str_c(value ? value : "");
}

static uint32_t setting_number(const char *name)
{
    return (uint32_t)strtoul(setting(name).data, NULL, 10);
}

static struct mp_store_object read_object(const char *key, const char *path)
{
    FILE *file = fopen(path, "rb");
    struct mp_store_object object = {.key = mp_str_c(key)};
    struct mp_str *pieces;
    char *bytes;
    long size;

    if (!file || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(2);
    }
    rewind(file);
    bytes = mp_alloc((size_t)size);
    if (fread(bytes, 1, (size_t)size, file) != (size_t)size)
        exit(2);
    fclose(file);
    pieces = mp_alloc_array((size_t)size / PIECE + 1, sizeof(*pieces));
    for (size_t at = 0; at == 0 || at < (size_t)size; at += PIECE) {
        size_t left = (size_t)size - at;

        pieces[object.piece_count++] = mp_str_n(bytes + at, left < PIECE ? left : PIECE);
    }
    object.pieces = pieces;
    object.bytes = (uint64_t)size;
    return object;
}

static enum mp_code put(struct mp_store *store, int argc, char **argv)
{
    uint32_t count = (uint32_t)argc / 2;
    struct mp_store_object *objects = mp_alloc_array(count, sizeof(*objects));
    bool *done = mp_alloc_array(count, sizeof(*done));
    enum mp_code code;

    for (uint32_t i = 0; i < count; i++)
        objects[i] = read_object(argv[2 * i], argv[2 * i + 1]);
    code = store->driver->put(store, objects, count, done, &err);
    for (uint32_t i = 0; i < count; i++) {
        if (!done[i])
            fprintf(stderr, "not done: %s\n", argv[2 * i]);
        mp_free((char *)(uintptr_t)objects[i].pieces[0].data);
        mp_free((struct mp_str *)(uintptr_t)objects[i].pieces);
    }
    mp_free(objects);
    mp_free(done);
    return code;
}

static enum mp_code get(struct mp_store *store, const char *key, const char *offset,
                        const char *size_text)
{
    size_t size = strtoul(size_text, NULL, 10), have = 0;
    char *memory = mp_alloc(size);
    enum mp_code code = store->driver->get(store, mp_str_c(key), strtoll(offset, NULL, 10), size,
                                           memory, &have, &err);

    if (!code && fwrite(memory, 1, have, stdout) != have)
        code = MP_IO;
    mp_free(memory);
    return code;
}

static bool print_entry(void *self, const struct mp_store_entry *entry)
{
    (void)self;
    printf("%llu %.*s\n", (unsigned long long)entry->bytes, MP_STR_ARG(entry->key));
    return true;
}

static double cpu_seconds(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static enum mp_code bench(struct mp_store *store, uint32_t count, uint64_t bytes)
{
    struct mp_store_object *objects = mp_alloc_array(count, sizeof(*objects));
    bool *done = mp_alloc_array(count, sizeof(*done));
    char *memory = mp_alloc(bytes), (*keys)[64] = mp_alloc_array(count, sizeof(*keys));
    struct mp_str piece = mp_str_n(memory, bytes);
    double cpu, seconds, mega = (double)count * (double)bytes / 1e6;
    uint64_t begin_us;
    enum mp_code code;

    for (uint64_t i = 0; i < bytes; i += 4096)
        memcpy(memory + i, &i, bytes - i < sizeof(i) ? bytes - i : sizeof(i));
    for (uint32_t i = 0; i < count; i++) {
        snprintf(keys[i], sizeof(keys[i]), "bench/%u-%llx", i,
                 (unsigned long long)mp_random_u64(&env));
        objects[i] = (struct mp_store_object){mp_str_c(keys[i]), &piece, 1, bytes};
    }
    cpu = cpu_seconds();
    begin_us = mp_now_mono_us(&env);
    code = store->driver->put(store, objects, count, done, &err);
    seconds = (double)(mp_now_mono_us(&env) - begin_us) / 1e6;
    cpu = cpu_seconds() - cpu;
    printf("%u x %llu bytes: %.3f s, %.1f MB/s, %.1f objects/s, %.3f cpu s, %.0f MB per cpu s\n",
           count, (unsigned long long)bytes, seconds, mega / seconds, (double)count / seconds, cpu,
           mega / cpu);
    mp_free(objects);
    mp_free(done);
    mp_free(memory);
    mp_free(keys);
    return code;
}

static enum mp_code run(struct mp_store *store, int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";

    if (strcmp(verb, "put") == 0 && argc >= 4 && argc % 2 == 0)
        return put(store, argc - 2, argv + 2);
    if (strcmp(verb, "get") == 0 && argc == 5)
        return get(store, argv[2], argv[3], argv[4]);
    if (strcmp(verb, "list") == 0 && argc == 3)
        return store->driver->list(store, mp_str_c(argv[2]), print_entry, NULL, &err);
    if (strcmp(verb, "rm") == 0 && argc == 3)
        return store->driver->remove(store, mp_str_c(argv[2]), &err);
    if (strcmp(verb, "bench") == 0 && argc == 4)
        return bench(store, (uint32_t)strtoul(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
    return mp_err_set(&err, MP_BAD_CONFIG, "use: put, get, list, rm or bench");
}

int main(int argc, char **argv)
{
    struct mp_store_s3_options options = {
        .endpoint = setting("STORE_ENDPOINT"),
        .region = setting("STORE_REGION"),
        .access_key = setting("STORE_ACCESS_KEY"),
        .secret_key = setting("STORE_SECRET_KEY"),
        .session_token = setting("STORE_SESSION_TOKEN"),
        .ca_file = setting("STORE_CA_FILE"),
        .use_ssl = setting_number("STORE_USE_SSL") == 1,
        .path_style = setting_number("STORE_PATH_STYLE") == 1,
        .put_concurrency = setting_number("STORE_CONCURRENCY"),
        .request_ms_max = setting_number("STORE_REQUEST_MS"),
        .attempts_max = setting_number("STORE_ATTEMPTS"),
    };
    struct mp_store *store = NULL;
    enum mp_code code;

    env = mp_env_real();
    code = mp_store_open(setting("STORE_URL"), &options, &env, &err, &store);
    if (!code)
        code = run(store, argc, argv);
    if (code)
        fprintf(stderr, "%s: %s\n", mp_code_name(code), err.text);
    mp_store_close(store);
    return code ? 1 : 0;
}
