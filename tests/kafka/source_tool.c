/* tests/kafka/source_tool.c - reads a topic through the rdkafka driver and says what it saw.
 *
 *     source_tool BOOTSTRAP TOPIC GROUP [name=value]...
 *
 *     start=committed|earliest|latest   where there is no stored offset: earliest
 *     records=N   stop after so many, or else
 *     idle_ms=N   when nothing came for so long, and   least=N   so many were there
 *     commit=1    store positions and metadata at the end    committed=1  print them at the start
 *     print=1     a line a record       watch=1     look for new partitions while running
 *     seeks=N     seek about so often in a topic without gaps and check each record, no more
 *     batch=N ordinal=N replicas=N pause_us=N (after each poll) grace_ms=N (for an unknown topic)
 *     anything with a dot is a setting of the client
 *
 * Output: JSON objects, a line each; the last one is the summary. Exit 0, or 1 after an error that
 * cannot heal; others are waited out.
 */
#include "kafka/source_rdkafka.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <xxhash.h>

enum { PARTITIONS_MAX = 1024, SETTINGS_MAX = 32 };

struct tally {
    bool sought;
    uint64_t count, bytes, tombstones, keys, digest;
    int64_t first, last, next;
};

struct tool {
    struct mp_env env;
    struct mp_arena arena; /* texts beside offsets */
    struct mp_source *source;
    const char *start;
    uint64_t records_max, records_min, idle_ms, batch, pause_us, seeks;
    bool commit, committed, print, watch;
    struct tally tallies[PARTITIONS_MAX];
    uint64_t count, lost, errors, transient, polls, paused_us;
};

static void on_error(void *self, const char *text)
{
    ((struct tool *)self)->errors++;
    fprintf(stderr, "error: %s\n", text);
}

static void on_log(void *self, int level, const char *text)
{
    (void)self;
    fprintf(stderr, "log %d: %s\n", level, text);
}

static _Noreturn void fail(const struct mp_err *err)
{
    printf("{\"error\": \"%s\", \"code\": \"%s\"}\n", err->text, mp_code_name(err->code));
    exit(1);
}

/* Waits out what may heal; ends for what cannot. */
static void again(struct tool *tool, const struct mp_err *err)
{
    fprintf(stderr, "%s: %s\n", mp_code_name(err->code), err->text);
    if (!err->retriable)
        fail(err);
    tool->transient++;
    mp_sleep_us(&tool->env, 50000);
}

/* Begins partitions not yet begun. */
static void begin(struct tool *tool)
{
    const int32_t *ids;
    uint32_t count;
    struct mp_err err = {0};

    while (tool->source->driver->partitions(tool->source, &err, &ids, &count))
        again(tool, &err);
    for (uint32_t i = 0; i < count; i++) {
        struct mp_source_offset stored = {.partition = ids[i], .offset = MP_OFFSET_NONE};
        struct tally *tally = &tool->tallies[ids[i]];
        int64_t to = strcmp(tool->start, "latest") == 0 ? MP_OFFSET_LATEST : MP_OFFSET_EARLIEST;

        if (tally->sought)
            continue;
        if (strcmp(tool->start, "committed") == 0)
            while (tool->source->driver->committed(tool->source, &tool->arena, &stored, 1, &err))
                again(tool, &err);
        if (tool->committed)
            printf("{\"committed\": %d, \"offset\": %" PRId64 ", \"metadata\": \"%.*s\"}\n",
                   (int)ids[i], stored.offset, MP_STR_ARG(stored.metadata));
        while (tool->source->driver->seek(tool->source, ids[i],
                                          stored.offset >= 0 ? stored.offset : to, &err))
            again(tool, &err);
        tally->sought = true;
        tally->first = tally->last = tally->next = MP_OFFSET_NONE;
    }
}

static void see(struct tool *tool, const struct mp_record *record)
{
    struct tally *tally = &tool->tallies[record->partition];

    if (tally->next > record->offset) {
        printf("{\"error\": \"offset %" PRId64 " of partition %d after %" PRId64 "\"}\n",
               record->offset, (int)record->partition, tally->last);
        exit(1);
    }
    if (tally->first == MP_OFFSET_NONE)
        tally->first = record->offset;
    tally->last = record->offset;
    tally->next = record->next_offset;
    tally->count++;
    tally->tombstones += !record->has_value;
    tally->keys += record->has_key;
    tally->bytes += record->value.size;
    tally->digest ^= XXH3_64bits_withSeed(record->value.data ? record->value.data : "",
                                          record->value.size, (uint64_t)record->offset);
    tool->count++;
    if (tool->print)
        printf("{\"partition\": %d, \"offset\": %" PRId64 ", \"time\": %" PRId64
               ", \"key\": %s, \"value\": %s, \"size\": %zu, \"text\": \"%.*s\"}\n",
               (int)record->partition, record->offset, record->timestamp_ms,
               record->has_key ? "true" : "false", record->has_value ? "true" : "false",
               record->value.size, record->value.size < 64 ? (int)record->value.size : 0,
               record->value.data ? record->value.data : "");
}

static void see_lost(struct tool *tool, const struct mp_source_lost *lost)
{
    struct mp_err err = {0};

    printf("{\"lost\": %d, \"offset\": %" PRId64 ", \"low\": %" PRId64 ", \"high\": %" PRId64 "}\n",
           (int)lost->partition, lost->offset, lost->low, lost->high);
    tool->lost++;
    while (tool->source->driver->seek(tool->source, lost->partition, lost->low, &err))
        again(tool, &err);
}

static void run(struct tool *tool)
{
    uint64_t quiet_since = mp_now_mono_us(&tool->env);

    while (tool->count < tool->records_max) {
        struct mp_records records;
        struct mp_err err = {0};

        if (tool->watch)
            begin(tool);
        tool->polls++;
        if (tool->source->driver->poll(tool->source, (uint32_t)tool->batch, 100, &err, &records)) {
            again(tool, &err);
            records = (struct mp_records){0};
        }
        for (uint32_t i = 0; i < records.count; i++)
            see(tool, &records.items[i]);
        for (uint32_t i = 0; i < records.lost_count; i++)
            see_lost(tool, &records.lost[i]);
        if (records.count || records.lost_count)
            quiet_since = mp_now_mono_us(&tool->env);
        else if (tool->records_max == UINT64_MAX && tool->count >= tool->records_min &&
                 mp_now_mono_us(&tool->env) - quiet_since > tool->idle_ms * 1000)
            break;
        if (tool->pause_us) {
            uint64_t began = mp_now_mono_us(&tool->env);

            mp_sleep_us(&tool->env, tool->pause_us);
            tool->paused_us += mp_now_mono_us(&tool->env) - began;
        }
    }
}

/* Jumps at random under prefetch; the topic has no gaps, so each record's offset is known. */
static void seek_about(struct tool *tool)
{
    static struct mp_source_watermark marks[PARTITIONS_MAX];
    static int64_t next[PARTITIONS_MAX];
    struct mp_env_fake dice = {.seed = 1};
    struct mp_env chance = mp_env_fake(&dice);
    struct mp_err err = {0};
    const int32_t *ids;
    uint32_t count;

    if (tool->source->driver->partitions(tool->source, &err, &ids, &count))
        fail(&err);
    for (uint32_t i = 0; i < count; i++)
        marks[i].partition = ids[i];
    if (tool->source->driver->watermarks(tool->source, marks, count, &err))
        fail(&err);
    for (uint64_t turn = 0; turn < tool->seeks; turn++) {
        const struct mp_source_watermark *mark = &marks[mp_random_u64(&chance) % count];
        uint64_t polls = mp_random_u64(&chance) % 5;
        struct mp_records records;

        next[mark->partition] =
            mark->low + (int64_t)(mp_random_u64(&chance) % (uint64_t)(mark->high - mark->low));
        if (tool->source->driver->seek(tool->source, mark->partition, next[mark->partition], &err))
            fail(&err);
        for (uint64_t k = 0; k <= polls; k++) {
            uint32_t max = (uint32_t)(1 + mp_random_u64(&chance) % 2000);

            if (tool->source->driver->poll(tool->source, max, turn % 2 ? 0 : 5, &err, &records))
                fail(&err);
            for (uint32_t i = 0; i < records.count; i++) {
                const struct mp_record *record = &records.items[i];

                if (record->offset != next[record->partition]) {
                    printf("{\"error\": \"stale\", \"code\": \"%" PRId64 ", not %" PRId64 "\"}\n",
                           record->offset, next[record->partition]);
                    exit(1);
                }
                next[record->partition]++;
            }
            tool->count += records.count;
        }
    }
}

static void store(struct tool *tool)
{
    struct mp_source_offset offsets[PARTITIONS_MAX];
    struct mp_err err = {0};
    uint32_t count = 0;

    for (int32_t i = 0; i < PARTITIONS_MAX; i++) {
        struct mp_source_offset *offset = &offsets[count];

        if (!tool->tallies[i].sought || tool->tallies[i].next < 0)
            continue;
        *offset = (struct mp_source_offset){.partition = i, .offset = tool->tallies[i].next};
        offset->metadata =
            mp_str_c(mp_arena_printf(&tool->arena, "mp1 7 %" PRId64, offset->offset));
        count++;
    }
    while (tool->source->driver->commit(tool->source, offsets, count, &err))
        again(tool, &err);
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* Largest resident size since exec; getrusage would tell the parent's where that was larger. */
static unsigned long resident_max_kb(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[128];
    unsigned long kb = 0;

    while (file && !kb && fgets(line, sizeof(line), file))
        if (sscanf(line, "VmHWM: %lu", &kb) != 1)
            kb = 0;
    if (file)
        fclose(file);
    return kb;
}

static void summary(const struct tool *tool, uint64_t wall_us)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    for (int i = 0; i < PARTITIONS_MAX; i++) {
        const struct tally *tally = &tool->tallies[i];

        if (tally->sought)
            printf("{\"partition\": %d, \"count\": %" PRIu64 ", \"bytes\": %" PRIu64
                   ", \"tombstones\": %" PRIu64 ", \"keys\": %" PRIu64 ", \"first\": %" PRId64
                   ", \"last\": %" PRId64 ", \"digest\": \"%016" PRIx64 "\"}\n",
                   i, tally->count, tally->bytes, tally->tombstones, tally->keys, tally->first,
                   tally->last, tally->digest);
    }
    printf("{\"count\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"errors\": %" PRIu64
           ", \"transient\": %" PRIu64 ", \"polls\": %" PRIu64
           ", \"wall_s\": %.3f, \"paused_s\": %.3f, \"cpu_s\": %.3f, \"rss_max_kb\": %lu}\n",
           tool->count, tool->lost, tool->errors, tool->transient, tool->polls,
           (double)wall_us / 1e6, (double)tool->paused_us / 1e6,
           seconds(usage.ru_utime) + seconds(usage.ru_stime), resident_max_kb());
}

static void set(struct tool *tool, struct mp_source_rdkafka_options *options,
                struct mp_source_setting *settings, char *argument)
{
    char *value = strchr(argument, '=');
    const struct {
        const char *name;
        uint64_t *number;
        bool *flag;
        uint32_t *option;
    } known[] = {
        {"records", &tool->records_max, NULL, NULL},
        {"least", &tool->records_min, NULL, NULL},
        {"idle_ms", &tool->idle_ms, NULL, NULL},
        {"seeks", &tool->seeks, NULL, NULL},
        {"batch", &tool->batch, NULL, NULL},
        {"pause_us", &tool->pause_us, NULL, NULL},
        {"commit", NULL, &tool->commit, NULL},
        {"committed", NULL, &tool->committed, NULL},
        {"print", NULL, &tool->print, NULL},
        {"watch", NULL, &tool->watch, NULL},
        {"grace_ms", NULL, NULL, &options->topic_grace_ms},
        {"ordinal", NULL, NULL, &options->ordinal},
        {"replicas", NULL, NULL, &options->replica_count},
    };

    if (!value) {
        fprintf(stderr, "%s is not name=value\n", argument);
        exit(2);
    }
    *value++ = 0;
    if (strchr(argument, '.')) {
        settings[options->setting_count++] = (struct mp_source_setting){argument, value};
        return;
    }
    if (strcmp(argument, "start") == 0) {
        tool->start = value;
        return;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        if (strcmp(argument, known[i].name) != 0)
            continue;
        if (known[i].number)
            *known[i].number = strtoull(value, NULL, 10);
        if (known[i].flag)
            *known[i].flag = *value == '1';
        if (known[i].option)
            *known[i].option = (uint32_t)strtoul(value, NULL, 10);
        return;
    }
    fprintf(stderr, "no option %s\n", argument);
    exit(2);
}

int main(int argc, char **argv)
{
    static struct tool tool = {.arena = {.block_bytes = 4096},
                               .start = "earliest",
                               .records_max = UINT64_MAX,
                               .idle_ms = 3000,
                               .batch = 1000};
    struct mp_source_setting settings[SETTINGS_MAX] = {{0}};
    struct mp_source_rdkafka_options options = {
        .replica_count = 1,
        .fetch_bytes_min = 1024 * 1024,
        .fetch_wait_ms_max = 500,
        .stats_interval_ms = 5000,
        .metadata_interval_ms = 500,
        .settings = settings,
        .self = &tool,
        .on_error = on_error,
        .on_log = on_log,
    };
    struct mp_err err = {0};
    uint64_t began;

    if (argc < 4) {
        fprintf(stderr, "source_tool BOOTSTRAP TOPIC GROUP [name=value]...\n");
        return 2;
    }
    for (int i = 4; i < argc && i < SETTINGS_MAX; i++)
        set(&tool, &options, settings, argv[i]);
    tool.env = mp_env_real();
    options.bootstrap = argv[1];
    options.topic = argv[2];
    options.group = argv[3];
    options.client_id = argv[3];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (mp_source_rdkafka_open(&options, &tool.env, &err, &tool.source))
        fail(&err);
    began = mp_now_mono_us(&tool.env);
    begin(&tool);
    if (tool.seeks)
        seek_about(&tool);
    else
        run(&tool);
    if (tool.commit)
        store(&tool);
    summary(&tool, mp_now_mono_us(&tool.env) - began);
    mp_source_close(tool.source);
    return 0;
}
