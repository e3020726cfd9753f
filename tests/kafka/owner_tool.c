/* tests/kafka/owner_tool.c - owns and commits offsets through the rdkafka driver, as told.
 *
 *     owner_tool BOOTSTRAP TOPIC GROUP [setting=value]...
 *
 * A command a line on standard input, an answer a line on standard output, as JSON:
 *
 *     own FIRST COUNT                     {"code": "ok", "fenced": true, "text": "", "ms": 12.3}
 *     disown FIRST COUNT
 *     commit FIRST COUNT OFFSET BYTES     with so many bytes of text beside each offset
 *     committed PARTITION                 ... "offset": 5, "metadata": "..."
 *     size                                {"threads": 9, "rss_kb": 9000}
 *
 * The text of partition p at offset o is "p:o:" and as many dots as it takes.
 */
#include "base/mem.h"
#include "kafka/source_rdkafka.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PARTITIONS_MAX = 1024, SETTINGS_MAX = 32 };

struct tool {
    struct mp_env env;
    struct mp_source *source;
};

static void on_log(void *self, int level, const char *text)
{
    (void)self;
    fprintf(stderr, "log %d: %s\n", level, text);
}

static void answer(const struct tool *tool, uint64_t began_us, enum mp_code code, bool fenced,
                   const struct mp_err *err)
{
    printf("{\"code\": \"%s\", \"fenced\": %s, \"text\": \"%s\", \"ms\": %.1f}\n",
           mp_code_name(code), fenced ? "true" : "false", err->text,
           (double)(mp_now_mono_us(&tool->env) - began_us) / 1e3);
}

static void own(struct tool *tool, int first, int count, bool taken)
{
    int32_t ids[PARTITIONS_MAX];
    uint64_t began = mp_now_mono_us(&tool->env);
    struct mp_err err = {0};
    bool fenced = false;
    enum mp_code code = MP_OK;

    for (int i = 0; i < count; i++)
        ids[i] = first + i;
    if (taken)
        code = tool->source->driver->own(tool->source, ids, (uint32_t)count, &err, &fenced);
    else
        tool->source->driver->disown(tool->source, ids, (uint32_t)count);
    answer(tool, began, code, fenced, &err);
}

static void commit(struct tool *tool, int first, int count, int64_t offset, size_t bytes)
{
    static char texts[PARTITIONS_MAX][8192];
    struct mp_source_offset offsets[PARTITIONS_MAX];
    uint64_t began = mp_now_mono_us(&tool->env);
    struct mp_err err = {0};
    enum mp_code code;

    for (int i = 0; i < count; i++) {
        memset(texts[i], '.', sizeof(texts[i]));
        if (bytes)
            texts[i][snprintf(texts[i], 64, "%d:%" PRId64 ":", first + i, offset)] = '.';
        offsets[i] = (struct mp_source_offset){
            .partition = first + i, .offset = offset, .metadata = mp_str_n(texts[i], bytes)};
    }
    code = tool->source->driver->commit(tool->source, offsets, (uint32_t)count, &err);
    answer(tool, began, code, false, &err);
}

static void committed(struct tool *tool, int partition)
{
    struct mp_source_offset stored = {.partition = partition};
    uint64_t began = mp_now_mono_us(&tool->env);
    struct mp_arena arena;
    struct mp_err err = {0};
    enum mp_code code;

    mp_arena_init(&arena, 0);
    code = tool->source->driver->committed(tool->source, &arena, &stored, 1, &err);
    printf("{\"code\": \"%s\", \"offset\": %" PRId64
           ", \"metadata\": \"%.*s\", \"text\": \"%s\", \"ms\": %.1f}\n",
           mp_code_name(code), stored.offset, MP_STR_ARG(stored.metadata), err.text,
           (double)(mp_now_mono_us(&tool->env) - began) / 1e3);
    mp_arena_fini(&arena);
}

static void size(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[128];
    unsigned long kb = 0, threads = 0;

    while (file && fgets(line, sizeof(line), file)) {
        (void)sscanf(line, "VmRSS: %lu", &kb);
        (void)sscanf(line, "Threads: %lu", &threads);
    }
    if (file)
        fclose(file);
    printf("{\"threads\": %lu, \"rss_kb\": %lu}\n", threads, kb);
}

static void obey(struct tool *tool, const char *line)
{
    char verb[16] = "";
    int first = 0, count = 0;
    long long offset = 0;
    size_t bytes = 0;

    if (sscanf(line, "%15s %d %d %lld %zu", verb, &first, &count, &offset, &bytes) < 1)
        return;
    if (strcmp(verb, "own") == 0 || strcmp(verb, "disown") == 0)
        own(tool, first, count, verb[0] == 'o');
    else if (strcmp(verb, "commit") == 0)
        commit(tool, first, count, offset, bytes);
    else if (strcmp(verb, "committed") == 0)
        committed(tool, first);
    else if (strcmp(verb, "size") == 0)
        size();
    else
        printf("{\"code\": \"no such command\"}\n");
}

int main(int argc, char **argv)
{
    struct tool tool = {.env = mp_env_real()};
    struct mp_source_setting settings[SETTINGS_MAX] = {{0}};
    struct mp_source_rdkafka_options options = {
        .replica_count = 1,
        .fetch_bytes_min = 1,
        .fetch_wait_ms_max = 500,
        .settings = settings,
        .on_log = on_log,
    };
    struct mp_err err = {0};
    char line[256];

    if (argc < 4)
        return 2;
    for (int i = 4; i < argc && options.setting_count < SETTINGS_MAX; i++) {
        char *value = strchr(argv[i], '=');

        if (!value)
            return 2;
        *value++ = 0;
        settings[options.setting_count++] = (struct mp_source_setting){argv[i], value};
    }
    options.bootstrap = argv[1];
    options.topic = argv[2];
    options.group = argv[3];
    options.client_id = argv[3];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (mp_source_rdkafka_open(&options, &tool.env, &err, &tool.source)) {
        printf("{\"code\": \"%s\", \"text\": \"%s\"}\n", mp_code_name(err.code), err.text);
        return 1;
    }
    while (fgets(line, sizeof(line), stdin))
        obey(&tool, line);
    mp_source_close(tool.source);
    return 0;
}
