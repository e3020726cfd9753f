/* cli/check.c - `millpond check`: is everything there that `run` needs, and does it agree?
 *
 * Asks each part once, in the order in which run would, and goes on after a fault, so that one run
 * names them all: a line each, with what to do. Nothing is left changed: the catalog is only read,
 * and the one object that is put into the store, to see whether it may be, is removed again.
 */
#include "cli/cli.h"

#include "base/mem.h"
#include "cli/engine.h"
#include "cli/kafka.h"
#include "kafka/source_rdkafka.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct check {
    const struct mp_config *config;
    struct mp_env env;
    struct mp_source *source;
    struct mp_lake *lake;
    bool lake_missing; /* run would make it */
    enum mp_code first;
};

static void fine(const char *part, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void fine(const char *part, const char *format, ...)
{
    va_list args;

    printf("ok     %-8s ", part);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

static void fault(struct check *check, const char *part, const struct mp_err *err,
                  const char *advice)
{
    printf("FAULT  %-8s %s: %s\n", part, err->text, advice);
    if (!check->first)
        check->first = err->code;
}

static void check_kafka(struct check *check)
{
    const struct mp_config_kafka *kafka = &check->config->kafka;
    struct mp_source_watermark *marks = NULL;
    struct mp_err err = {0};
    const int32_t *ids;
    uint64_t records = 0;
    uint32_t count;
    enum mp_code code = mp_open_kafka_source(check->config, 1, &check->env, &err, &check->source);

    if (code) {
        fault(check, "kafka", &err, "look at the KAFKA_CONSUMER_* settings");
        return;
    }
    code = check->source->driver->partitions(check->source, &err, &ids, &count);
    if (code) {
        fault(check, "kafka", &err,
              code == MP_REFUSED ? "make the topic, or look at KAFKA_TOPIC and its permissions"
                                 : "look at KAFKA_BOOTSTRAP_SERVERS and the way there");
        return;
    }
    marks = mp_alloc_array(count, sizeof(*marks));
    for (uint32_t i = 0; i < count; i++)
        marks[i].partition = ids[i];
    code = check->source->driver->watermarks(check->source, marks, count, &err);
    for (uint32_t i = 0; i < count && !code; i++)
        records += (uint64_t)(marks[i].high - marks[i].low);
    if (code)
        fault(check, "kafka", &err, "the topic is there but its offsets cannot be read");
    else if (!count)
        fault(check, "kafka",
              &(struct mp_err){.code = MP_BAD_CONFIG, .text = "no partition is ours"},
              "look at POD_NAME and REPLICA_COUNT");
    else
        fine("kafka", "topic %.*s: %u of %u partitions are ours, with %" PRIu64 " records",
             MP_STR_ARG(kafka->topic), count, mp_source_rdkafka_topic_partitions(check->source),
             records);
    mp_free(marks);
}

static void check_catalog(struct check *check)
{
    bool hoglake = check->config->destination == MP_DESTINATION_HOGLAKE;
    const struct mp_lake_table *table;
    struct mp_err err = {0};
    enum mp_code code =
        mp_open_lake(check->config, check->config->kafka.group, check->config->kafka.topic, true,
                     &check->env, &err, &check->lake);

    if (code == MP_NOT_FOUND) {
        check->lake_missing = true;
        fine("catalog", "%.*s: no lake yet; run makes it",
             MP_STR_ARG(hoglake ? check->config->hoglake.catalog
                                : check->config->ducklake.catalog_name));
        return;
    }
    if (code) {
        fault(check, "catalog", &err,
              code == MP_BAD_CONFIG ? "settings and catalog do not fit together"
              : hoglake             ? "look at HOGLAKE_URL and HOGLAKE_CATALOG"
                                    : "look at MILLPOND_CATALOG or DUCKLAKE_RDS_*");
        return;
    }
    code = check->lake->driver->resolve(check->lake, check->config->table, &err, &table);
    if (code == MP_NOT_FOUND)
        fine("catalog", "the lake is there; table %.*s is not, run makes it",
             MP_STR_ARG(check->config->table));
    else if (code)
        fault(check, "catalog", &err, "the table cannot be read");
    else
        fine("catalog", "table %.*s: %u columns, snapshot %" PRId64 "%s%.*s",
             MP_STR_ARG(check->config->table), table->schema.column_count, table->snapshot,
             table->warning.size ? "; " : "", MP_STR_ARG(table->warning));
}

/* Where run would go on, by the book of record. */
static void check_offsets(struct check *check)
{
    const int32_t *ids;
    struct mp_lake_position *positions = NULL;
    struct mp_source_watermark *marks = NULL;
    struct mp_err err = {0};
    int64_t behind = 0;
    uint32_t count, known = 0, lost = 0;
    enum mp_code code = check->source->driver->partitions(check->source, &err, &ids, &count);

    if (code)
        return; /* told already */
    positions = mp_alloc_array(count, sizeof(*positions));
    marks = mp_alloc_array(count, sizeof(*marks));
    for (uint32_t i = 0; i < count; i++)
        positions[i].partition = marks[i].partition = ids[i];
    code = check->lake->driver->positions(check->lake, positions, count, &err);
    if (!code)
        code = check->source->driver->watermarks(check->source, marks, count, &err);
    for (uint32_t i = 0; i < count && !code; i++) {
        if (positions[i].next < 0)
            continue;
        known++;
        lost += positions[i].next < marks[i].low || positions[i].next > marks[i].high;
        behind += marks[i].high - positions[i].next;
    }
    if (code)
        fault(check, "offsets", &err, "the catalog's side table millpond_offsets cannot be read");
    else if (lost)
        fault(check, "offsets",
              &(struct mp_err){.code = MP_CHANGED,
                               .text = "recorded offsets are not in the topic any more"},
              "run goes on by KAFKA_AUTO_OFFSET_RESET and counts the gap");
    else
        fine("offsets", "%u of %u partitions are recorded, %" PRId64 " records behind", known,
             count, behind);
    mp_free(positions);
    mp_free(marks);
}

static void check_store(struct check *check)
{
    char uuid[MP_UUID_TEXT], key[96];
    struct mp_str piece = MP_STR("millpond check");
    struct mp_store_object probe = {.pieces = &piece, .piece_count = 1, .bytes = piece.size};
    struct mp_store *store = NULL;
    struct mp_str path =
        check->lake ? check->lake->driver->data_path(check->lake) : check->config->data_path;
    struct mp_err err = {0};
    bool done = false;
    enum mp_code code = mp_open_store(check->config, path, &check->env, &err, &store);

    if (code) {
        fault(check, "store", &err,
              check->config->destination == MP_DESTINATION_HOGLAKE
                  ? "look at the catalog's data path and HOGLAKE_S3_*"
                  : "look at DUCKLAKE_DATA_PATH and DUCKDB_S3_*");
        return;
    }
    mp_uuid7(&check->env, uuid);
    probe.key = mp_str_n(key, (size_t)snprintf(key, sizeof(key), "_millpond/check-%s", uuid));
    code = store->driver->put(store, &probe, 1, &done, &err);
    if (!code)
        code = store->driver->remove(store, probe.key, &err);
    if (code)
        fault(check, "store", &err,
              done ? "what is put cannot be removed" : "look at bucket, keys and permissions");
    else
        fine("store", "%.*s: an object can be put and removed", MP_STR_ARG(path));
    mp_store_close(store);
}

int mp_cli_check(const struct mp_cli_args *args)
{
    struct check check = {.env = mp_env_real()};
    struct mp_arena arena;
    struct mp_err err = {0};
    enum mp_code code;

    if (args->count)
        return mp_cli_bad_argument("check", args->values[0]);
    mp_arena_init(&arena, 0);
    code = mp_config_load(&arena, args->environment, NULL, &err, &check.config);
    if (!code)
        code = mp_refuse_unserved(check.config, &err);
    if (code) {
        fault(&check, "settings", &err, "`millpond config` prints them all");
        goto out;
    }
    fine("settings", "topic %.*s to table %.*s, pod %u of %u",
         MP_STR_ARG(check.config->kafka.topic), MP_STR_ARG(check.config->table),
         check.config->ordinal, check.config->replica_count);
    for (uint32_t i = 0; i < check.config->warning_count; i++)
        printf("note   settings %.*s\n", MP_STR_ARG(check.config->warnings[i]));
    check_kafka(&check);
    check_catalog(&check);
    if (check.source && check.lake && check.lake->driver->offsets_in_lake)
        check_offsets(&check);
    if (check.lake || check.lake_missing)
        check_store(&check);
out:
    mp_source_close(check.source);
    mp_lake_close(check.lake);
    mp_arena_fini(&arena);
    return mp_exit_of(check.first);
}
