/* cli/check.c - `millpond check`: is everything there that `run` needs, and does it agree?
 *
 * Asks each part once, in the order in which run would, and goes on after a fault, so that one run
 * names them all: a line each, with what to do. Nothing is left changed: the catalog is only read,
 * and the one object that is put into the store, to see whether it may be, is removed again, with
 * the directories it needed.
 */
#include "cli/cli.h"

#include "base/mem.h"
#include "cli/check_priv.h"
#include "cli/kafka.h"
#include "kafka/source_rdkafka.h"
#include "pipeline/pipeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void mp_check_fine(const char *part, const char *format, ...)
{
    va_list args;

    printf("ok     %-8s ", part);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

void mp_check_fault(struct mp_check *check, const char *part, const struct mp_err *err,
                    const char *advice)
{
    printf("FAULT  %-8s %s: %s\n", part, err->text, advice);
    if (!check->first)
        check->first = err->code;
}

const char *mp_check_advice(const struct mp_check_advice *table, size_t count,
                            const struct mp_err *err, const char *otherwise)
{
    for (size_t i = 0; i < count; i++)
        if (table[i].sys == err->sys)
            return table[i].advice;
    return otherwise;
}

/* What the group has stored. A right that is missing runs out of time here, and is told by poll. */
static enum mp_code committed(struct mp_check *check, struct mp_source_offset *stored,
                              uint32_t count, struct mp_err *err)
{
    struct mp_source *source = check->source;
    struct mp_records none;
    struct mp_err told;
    enum mp_code code = source->driver->committed(source, check->arena, stored, count, err);

    if (code && err->retriable && source->driver->poll(source, 1, 0, &told, &none) == MP_REFUSED) {
        *err = told;
        code = MP_REFUSED;
    }
    return code;
}

static void check_kafka(struct mp_check *check)
{
    const struct mp_config_kafka *kafka = &check->config->kafka;
    struct mp_source_watermark *marks = NULL;
    struct mp_source_offset *stored = NULL;
    struct mp_err err = {0};
    const int32_t *ids;
    uint64_t records = 0;
    char away[64] = "";
    uint32_t count;
    enum mp_code code = mp_open_kafka_source(check->config, 1, &check->env, &err, &check->source);

    if (code) {
        mp_check_fault(check, "kafka", &err, "look at the KAFKA_CONSUMER_* settings");
        return;
    }
    code = check->source->driver->partitions(check->source, &err, &ids, &count);
    if (code) {
        mp_check_fault(check, "kafka", &err,
                       code == MP_NOT_FOUND ? "make the topic, or look at KAFKA_TOPIC"
                       : code == MP_REFUSED ? "let this user read the topic"
                                            : "look at KAFKA_BOOTSTRAP_SERVERS and the way there");
        return;
    }
    marks = mp_alloc_array(count, sizeof(*marks));
    stored = mp_alloc_array(count, sizeof(*stored));
    for (uint32_t i = 0; i < count; i++)
        marks[i].partition = stored[i].partition = ids[i];
    code = check->source->driver->watermarks(check->source, marks, count, &err);
    if (!code)
        code = committed(check, stored, count, &err);
    for (uint32_t i = 0; i < count && !code; i++) {
        if (!marks[i].away)
            records += (uint64_t)(marks[i].high - marks[i].low);
        else /* no fault: run reads the others meanwhile */
            snprintf(away, sizeof(away), "; no leader answers for partition %" PRId32 " now",
                     marks[i].partition);
    }
    check->kafka_answers = !code && count;
    if (code)
        mp_check_fault(check, "kafka", &err,
                       "the topic is there but its offsets cannot be read: look at GROUP_ID and "
                       "what this user may read");
    else if (!count)
        mp_check_fault(check, "kafka",
                       &(struct mp_err){.code = MP_BAD_CONFIG, .text = "no partition is ours"},
                       "look at POD_NAME and REPLICA_COUNT");
    else
        mp_check_fine("kafka",
                      "topic %.*s: %u of %u partitions are ours, with %" PRIu64 " records%s",
                      MP_STR_ARG(kafka->topic), count,
                      mp_source_rdkafka_topic_partitions(check->source), records, away);
    mp_free(marks);
    mp_free(stored);
}

static void catalog_fault(struct mp_check *check, const struct mp_err *err, const char *otherwise)
{
    mp_check_fault(check, "catalog", err,
                   err->code == MP_BAD_CONFIG
                       ? "change the setting or the catalog, so that they agree"
                       : otherwise);
}

/* The table of that name; NULL: there is none, or a fault, which is told. */
static const struct mp_lake_table *check_table(struct mp_check *check, struct mp_str name,
                                               struct mp_err *err)
{
    const struct mp_lake_table *table;
    enum mp_code code = check->lake->driver->resolve(check->lake, name, err, &table);

    if (code && code != MP_NOT_FOUND)
        catalog_fault(check, err, "let this user read the catalog's tables");
    return code ? NULL : table;
}

/* Where they are there: our own columns, as they have to be. */
static void check_tables(struct mp_check *check)
{
    static const char advice[] = "change the column, or name another in the setting";
    const struct mp_config *config = check->config;
    const struct mp_lake_table *table;
    struct mp_err err = {0};

    if (config->quarantine_table.size) {
        table = check_table(check, config->quarantine_table, &err);
        if (err.code && err.code != MP_NOT_FOUND)
            return;
        if (table && mp_pipeline_quarantine_fits(&table->schema, &err)) {
            catalog_fault(check, &err, advice);
            return;
        }
    }
    table = check_table(check, config->table, &err);
    if (table && mp_pipeline_rescued_fits(&table->schema, config->rescued_column, &err))
        catalog_fault(check, &err, advice);
    else if (table)
        mp_check_fine("catalog", "table %.*s: %u columns, snapshot %" PRId64 "%s%.*s",
                      MP_STR_ARG(config->table), table->schema.column_count, table->snapshot,
                      table->warning.size ? "; " : "", MP_STR_ARG(table->warning));
    else if (err.code == MP_NOT_FOUND)
        mp_check_fine("catalog", "the lake is there; table %.*s is not, run makes it",
                      MP_STR_ARG(config->table));
}

static void check_catalog(struct mp_check *check)
{
    static const struct mp_check_advice ducklake[] = {
        {EACCES, "look at user and password in MILLPOND_CATALOG or DUCKLAKE_RDS_*"},
        {ENOENT, "make the database, or look at its name in MILLPOND_CATALOG or DUCKLAKE_RDS_*"},
        {EPROTONOSUPPORT, "use a millpond that knows this version, or another catalog"},
    };
    bool hoglake = check->config->destination == MP_DESTINATION_HOGLAKE;
    struct mp_err err = {0};
    enum mp_code code =
        mp_open_lake(check->config, check->config->kafka.group, check->config->kafka.topic, true,
                     &check->env, &err, &check->lake);

    check->catalog_answers = !code || code == MP_NOT_FOUND ||
                             (code == MP_BAD_CONFIG && err.sys != EACCES && err.sys != ENOENT);
    if (code == MP_NOT_FOUND) {
        mp_check_fine("catalog", "%.*s: no lake yet; run makes it",
                      MP_STR_ARG(hoglake ? check->config->hoglake.catalog
                                         : check->config->ducklake.catalog_name));
        return;
    }
    if (code) {
        const char *otherwise =
            code == MP_BAD_CONFIG ? "change the setting or the catalog, so that they agree"
            : hoglake             ? "look at HOGLAKE_URL and HOGLAKE_CATALOG, and the way there"
                                  : "look at MILLPOND_CATALOG or DUCKLAKE_RDS_*, and the way there";

        mp_check_fault(check, "catalog", &err,
                       mp_check_advice(ducklake, hoglake ? 0 : sizeof(ducklake) / sizeof(*ducklake),
                                       &err, otherwise));
        return;
    }
    check_tables(check);
}

/* Where run would go on, by the book of record: the lake's, or the group's where the lake keeps
 * none. Partitions are set; next is MP_OFFSET_NONE where nothing is recorded. */
static enum mp_code recorded(struct mp_check *check, struct mp_lake_position *positions,
                             uint32_t count, struct mp_err *err)
{
    struct mp_source_offset *stored;
    enum mp_code code;

    if (check->lake->driver->offsets_in_lake)
        return check->lake->driver->positions(check->lake, positions, count, err);
    stored = mp_alloc_array(count, sizeof(*stored));
    for (uint32_t i = 0; i < count; i++)
        stored[i].partition = positions[i].partition;
    code = committed(check, stored, count, err);
    for (uint32_t i = 0; i < count && !code; i++)
        positions[i].next = stored[i].offset;
    mp_free(stored);
    return code;
}

static void check_offsets(struct mp_check *check)
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
    code = recorded(check, positions, count, &err);
    if (!code)
        code = check->source->driver->watermarks(check->source, marks, count, &err);
    for (uint32_t i = 0; i < count && !code; i++) {
        if (positions[i].next < 0 || marks[i].away)
            continue;
        known++;
        lost += positions[i].next < marks[i].low || positions[i].next > marks[i].high;
        behind += marks[i].high - positions[i].next;
    }
    if (code)
        mp_check_fault(check, "offsets", &err,
                       check->lake->driver->offsets_in_lake
                           ? "let this user read the catalog's table millpond_offsets"
                           : "the offsets of the consumer group cannot be read: look at GROUP_ID");
    else if (lost)
        mp_check_fault(
            check, "offsets",
            &(struct mp_err){.code = MP_CHANGED,
                             .text = "recorded offsets are not in the topic any more"},
            "run goes on by KAFKA_AUTO_OFFSET_RESET and counts the gap, or ends and says "
            "what to do where the log was cut");
    else
        mp_check_fine("offsets", "%u of %u partitions are recorded, %" PRId64 " records behind",
                      known, count, behind);
    mp_free(positions);
    mp_free(marks);
}

int mp_cli_check(const struct mp_cli_args *args)
{
    struct mp_arena arena;
    struct mp_check check = {.env = mp_env_real(), .arena = &arena};
    struct mp_err err = {0};
    enum mp_code code;

    if (args->count)
        return mp_cli_bad_argument("check", args->values[0]);
    mp_arena_init(&arena, 0);
    code = mp_config_load(&arena, args->environment, NULL, &err, &check.config);
    if (code) {
        mp_check_fault(&check, "settings", &err, "`millpond config` prints them all");
        goto out;
    }
    mp_check_fine("settings", "topic %.*s to table %.*s, pod %u of %u",
                  MP_STR_ARG(check.config->kafka.topic), MP_STR_ARG(check.config->table),
                  check.config->ordinal, check.config->replica_count);
    for (uint32_t i = 0; i < check.config->warning_count; i++)
        printf("note   settings %.*s\n", MP_STR_ARG(check.config->warnings[i]));
    check_kafka(&check);
    check_catalog(&check);
    if (check.kafka_answers && check.lake)
        check_offsets(&check);
    mp_check_store(&check);
    mp_check_clock(&check);
    mp_check_include(&check);
    mp_check_logs(&check);
out:
    mp_source_close(check.source);
    mp_lake_close(check.lake);
    mp_arena_fini(&arena);
    return mp_exit_of(check.first);
}
