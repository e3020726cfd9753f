/* cli/demo.c - `millpond demo`: a broker, a producer and the pipeline in one process.
 *
 * The producer keeps a bounded lead over the pipeline, since the mock broker keeps little.
 */
#include "cli/cli.h"

#include "base/mem.h"
#include "cli/engine.h"
#include "cli/kafka.h"
#include "kafka/mock_broker.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARTITIONS = 4, LEAD_MAX = 20000, EVENTS_DEFAULT = 100000, SETTINGS_MAX = 16 };

struct demo {
    struct mp_kafka_door kafka; /* first: it is the engine's self */
    struct mp_mock_broker *broker;
    struct mp_engine *engine;
    struct mp_env env;
    uint64_t events;
    atomic_uint_least64_t taken; /* records the pipeline has seen */
    atomic_bool over;
    bool stopped; /* progress's own: a second stop would cut the last flush short */
};

/* One event of a web shop, about 350 bytes. Chance comes from a fixed seed: each demo is alike. */
static void make_event(struct mp_env *chance, uint64_t number, struct mp_buf *ret)
{
    static const char *const names[] = {"pageview", "pageview",      "pageview", "click",
                                        "click",    "add to basket", "search",   "checkout"};
    static const char *const cities[] = {"Lyon", "São Paulo", "大阪", "Omaha", "Zürich"};
    static const char *const pages[] = {"/", "/search", "/basket", "/tea/green", "/tea/black"};
    uint64_t a = mp_random_u64(chance), b = mp_random_u64(chance);
    uint64_t second = number / 500;

    mp_buf_printf(ret,
                  "{\"uuid\":\"%08x-%04x-4%03x-8%03x-%012" PRIx64 "\",\"event\":\"%s\","
                  "\"timestamp\":\"2026-03-%02" PRIu64 "T%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64
                  ".%03" PRIu64 "Z\",\"shop_id\":%u,\"user\":\"user-%u\",",
                  (unsigned)(a >> 32), (unsigned)a & 0xffff, (unsigned)(a >> 16) & 0xfff,
                  (unsigned)b & 0xfff, b >> 16, names[a % 8], 1 + second / 86400 % 28,
                  second / 3600 % 24, second / 60 % 60, second % 60, number * 2 % 1000,
                  (unsigned)(a >> 20) % 50, (unsigned)(b >> 20) % 5000);
    mp_buf_printf(ret,
                  "\"properties\":{\"page\":\"%s\",\"city\":\"%s\",\"browser\":{\"name\":\"%s\","
                  "\"width\":%u},\"tags\":[\"spring\",\"%s\"]},",
                  pages[b % 5], cities[a / 8 % 5], b % 3 ? "Firefox" : "Chromium",
                  800 + (unsigned)(a % 40) * 16, b % 2 ? "new" : "sale");
    if (a % 8 == 7)
        mp_buf_printf(ret, "\"price\":%u.%02u,", (unsigned)(b % 90), (unsigned)(b >> 8) % 100);
    mp_buf_printf(ret, "\"trial\":%s}", b % 7 ? "false" : "true");
}

static void *produce_main(void *self)
{
    struct demo *demo = self;
    struct mp_env_fake fake = {.seed = 1};
    struct mp_env chance = mp_env_fake(&fake);
    struct mp_buf event = MP_BUF_INIT(4096);
    struct mp_err err = {0};
    enum mp_code code = MP_OK;

    for (uint64_t i = 0; i < demo->events && !code && !atomic_load(&demo->over); i++) {
        while (i > atomic_load(&demo->taken) + LEAD_MAX && !atomic_load(&demo->over))
            mp_sleep_us(&demo->env, 5000);
        mp_buf_clear(&event);
        make_event(&chance, i, &event);
        code = mp_mock_broker_produce(demo->broker, (int32_t)(i % PARTITIONS), mp_buf_str(&event),
                                      &err);
    }
    if (!code)
        code = mp_mock_broker_flush(demo->broker, &err);
    if (code)
        fprintf(stderr, "millpond demo: %s\n", err.text);
    mp_buf_fini(&event);
    return NULL;
}

static void progress(void *self, const struct mp_pipeline_counts *counts)
{
    struct demo *demo = self;

    atomic_store(&demo->taken, counts->records);
    if (counts->records >= demo->events && !demo->stopped) {
        demo->stopped = true;
        mp_engine_stop(demo->engine);
    }
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " events ", counts->records, demo->events);
}

/* The settings of the demonstration; the caller's own do not reach it. */
static char **settings_of(struct mp_arena *arena, const struct demo *demo, const char *directory)
{
    char **settings = mp_arena_take(arena, SETTINGS_MAX * sizeof(*settings));
    uint32_t count = 0;

    settings[count++] = mp_arena_printf(arena, "KAFKA_BOOTSTRAP_SERVERS=%s",
                                        mp_mock_broker_bootstrap(demo->broker));
    settings[count++] = mp_arena_printf(arena, "MILLPOND_CATALOG=sqlite:%s/lake.sqlite", directory);
    settings[count++] = mp_arena_printf(arena, "DUCKLAKE_DATA_PATH=%s/data/", directory);
    settings[count++] = mp_arena_printf(arena, "KAFKA_TOPIC=demo");
    settings[count++] = mp_arena_printf(arena, "REPLICA_COUNT=1");
    settings[count++] = mp_arena_printf(arena, "POD_NAME=millpond-0");
    settings[count++] = mp_arena_printf(arena, "DUCKLAKE_TABLE=events");
    settings[count++] = mp_arena_printf(arena, "MILLPOND_TYPED_COLUMNS=timestamp:timestamptz");
    settings[count++] = mp_arena_printf(
        arena, "DUCKLAKE_PARTITION_BY=year(timestamp),month(timestamp),day(timestamp)");
    settings[count++] = mp_arena_printf(arena, "FLUSH_SIZE=8388608");
    settings[count++] = mp_arena_printf(arena, "FLUSH_INTERVAL_MS=2000");
    settings[count++] = mp_arena_printf(arena, "FETCH_MAX_WAIT_MS=50");
    settings[count++] = mp_arena_printf(arena, "MILLPOND_HTTP_PORT=0");
    return settings;
}

static int parse(const struct mp_cli_args *args, const char **ret_directory, uint64_t *ret_events)
{
    for (int i = 0; i < args->count; i++) {
        char *end = NULL;

        if (strcmp(args->values[i], "--directory") == 0 && i + 1 < args->count) {
            *ret_directory = args->values[++i];
        } else if (strcmp(args->values[i], "--events") == 0 && i + 1 < args->count) {
            *ret_events = strtoull(args->values[++i], &end, 10);
            if (*end || *ret_events == 0 || *ret_events > 100000000) {
                fprintf(stderr, "millpond demo: --events %s: 1 to 100000000\n", args->values[i]);
                return MP_EXIT_CONFIG;
            }
        } else {
            return mp_cli_bad_argument("demo", args->values[i]);
        }
    }
    return MP_EXIT_OK;
}

static enum mp_code absolute(struct mp_arena *arena, const char *directory, struct mp_err *err,
                             const char **ret)
{
    char *path;

    if (mkdir(directory, 0777) && errno != EEXIST)
        return mp_err_errno(err, MP_BAD_CONFIG, "directory", directory);
    path = realpath(directory, NULL);
    if (!path)
        return mp_err_errno(err, MP_BAD_CONFIG, "directory", directory);
    *ret = mp_arena_printf(arena, "%s", path);
    free(path); /* realpath's own malloc */
    return MP_OK;
}

static void tell(const struct demo *demo, const char *directory)
{
    struct mp_pipeline_counts counts = mp_engine_counts(demo->engine);

    printf("%s%" PRIu64 " events became %" PRIu64 " rows in %" PRIu64
           " Parquet files (%.1f MB of JSON, %.1f MB of Parquet).\n"
           "Catalog: %s/lake.sqlite   Files: %s/data/\n"
           "Read it with DuckDB:\n"
           "  INSTALL ducklake; INSTALL sqlite; ATTACH 'ducklake:sqlite:%s/lake.sqlite' AS lake;\n"
           "  SELECT event, count(*) FROM lake.events GROUP BY event;\n",
           isatty(STDERR_FILENO) ? "\n" : "", counts.records, counts.rows, counts.files,
           (double)counts.json_bytes / 1e6, (double)counts.parquet_bytes / 1e6, directory,
           directory, directory);
}

int mp_cli_demo(const struct mp_cli_args *args)
{
    struct demo demo = {.env = mp_env_real(), .events = EVENTS_DEFAULT};
    const char *directory = "millpond-demo";
    struct mp_engine_options options = {
        .open_source = mp_open_kafka, .self = &demo, .quiet = true, .progress = progress};
    struct mp_arena arena;
    pthread_t producer;
    bool producing = false;
    struct mp_err err = {0};
    int status = parse(args, &directory, &demo.events);
    enum mp_code code;

    if (status)
        return status;
    mp_arena_init(&arena, 0);
    code = absolute(&arena, directory, &err, &directory);
    if (!code)
        code = mp_mock_broker_open("demo", PARTITIONS, &err, &demo.broker);
    if (!code)
        code = mp_config_load(&arena, settings_of(&arena, &demo, directory), NULL, &err,
                              &demo.kafka.config);
    if (code)
        goto out;
    options.config = demo.kafka.config;
    options.group = demo.kafka.config->kafka.group;
    options.topic = demo.kafka.config->kafka.topic;
    options.from_start = true; /* the broker is new each time */
    code = mp_engine_open(&options, &err, &demo.engine);
    if (code)
        goto out;
    producing = !pthread_create(&producer, NULL, produce_main, &demo);
    code = mp_engine_run(demo.engine, &err);
    if (!code)
        tell(&demo, directory);
out:
    atomic_store(&demo.over, true);
    if (producing)
        pthread_join(producer, NULL);
    if (code)
        status = mp_cli_fault(&err);
    mp_engine_close(demo.engine);
    mp_mock_broker_close(demo.broker);
    mp_arena_fini(&arena);
    return status;
}
