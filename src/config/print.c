/* config/print.c - the settings for people: `millpond config` and docs/settings.md. */
#include "config/config_priv.h"

static const char *const section_names[MP_SECTION_COUNT] = {
    [MP_SECTION_CORE] = "Core",
    [MP_SECTION_DUCKLAKE] = "DuckLake",
    [MP_SECTION_HOGLAKE] = "hoglake",
    [MP_SECTION_RECORDS] = "Records",
    [MP_SECTION_INCLUDE] = "Include list",
    [MP_SECTION_TELEMETRY] = "Telemetry and AWS",
};

/* Client keys whose values are no secret; those of all others are hidden. */
static const struct mp_str plain_keys[] = {
    {"security.protocol", 17},
    {"sasl.mechanism", 14},
    {"client.", 7},
    {"fetch.", 6},
    {"max.", 4},
    {"queued.", 7},
    {"socket.", 7},
    {"session.", 8},
    {"heartbeat.", 10},
    {"metadata.", 9},
    {"reconnect.", 10},
    {"topic.", 6},
    {"broker.", 7},
    {"api.", 4},
    {"debug", 5},
    {"isolation.level", 15},
    {"check.crcs", 10},
    {"group.instance.id", 17},
    {"test.mock.", 10},
    {"retry.", 6},
    {"bootstrap.servers", 17},
    {"ssl.ca.location", 15},
    {"log.", 4},
    {"message.", 8},
};

static bool plain_key(struct mp_str key)
{
    for (size_t i = 0; i < sizeof(plain_keys) / sizeof(*plain_keys); i++)
        if (mp_str_starts(key, plain_keys[i]))
            return true;
    return false;
}

static const char *default_text(enum mp_setting_id id)
{
    if (mp_settings[id].value)
        return mp_settings[id].value;
    return mp_settings[id].flags & MP_FLAG_REQUIRED ? "(required)" : "(not set)";
}

/* Values that follow from others. */
static struct mp_str derived(struct mp_arena *arena, const struct mp_config *config,
                             enum mp_setting_id id)
{
    if (id == MP_SET_GROUP_ID)
        return config->kafka.group;
    if (id == MP_SET_POD_NAME)
        return config->pod;
    if (id == MP_SET_MILLPOND_ENCODE_THREADS)
        return mp_str_c(mp_arena_printf(arena, "%u", (unsigned)config->encode_threads));
    return mp_str_c(mp_settings[id].value);
}

static const char *effective(struct mp_arena *arena, char *const *environment,
                             const struct mp_config *config, enum mp_setting_id id)
{
    const struct mp_setting *setting = &mp_settings[id];
    struct mp_str value = mp_env_find(environment, setting->name);
    bool other =
        config &&
        ((setting->where == MP_WHERE_DUCKLAKE && config->destination != MP_DESTINATION_DUCKLAKE) ||
         (setting->where == MP_WHERE_HOGLAKE && config->destination != MP_DESTINATION_HOGLAKE));

    if (other)
        return "(not read: another destination)";
    if (setting->flags & MP_FLAG_IGNORED)
        return value.size ? "(without effect)" : "(not set)";
    if (!value.size && config)
        value = derived(arena, config, id);
    if (!value.size)
        value = mp_str_c(setting->value);
    if (id == MP_SET_MILLPOND_RESCUED_COLUMN && config && !config->rescued_column.size)
        return "(off)";
    return value.size ? mp_setting_shown(arena, id, value) : "(not set)";
}

void mp_config_print(char *const *environment, const struct mp_config *config, struct mp_buf *ret)
{
    struct mp_arena arena;

    mp_arena_init(&arena, 0);
    for (unsigned section = 0; section < MP_SECTION_COUNT; section++) {
        mp_buf_printf(ret, "%s%s\n", section ? "\n" : "", section_names[section]);
        for (unsigned i = 0; i < MP_SET_COUNT; i++)
            if (mp_settings[i].section == section) {
                mp_buf_printf(ret, "\n  %s = %s\n", mp_settings[i].name,
                              effective(&arena, environment, config, i));
                mp_buf_printf(ret, "      %s\n      default: %s; allowed: %s\n",
                              mp_settings[i].meaning, default_text(i),
                              mp_setting_allowed(&arena, i));
            }
    }
    mp_buf_add_c(ret, "\nKafka client (KAFKA_CONSUMER_*)\n\n");
    for (uint32_t i = 0; config && i < config->kafka.passthrough_count; i++) {
        const struct mp_config_pair *pair = &config->kafka.passthrough[i];

        mp_buf_printf(ret, "  %.*s = %.*s\n", MP_STR_ARG(pair->key),
                      MP_STR_ARG(plain_key(pair->key) ? pair->value : MP_STR("(hidden)")));
    }
    if (!config || !config->kafka.passthrough_count)
        mp_buf_add_c(ret, "  (none)\n");
    for (uint32_t i = 0; config && i < config->warning_count; i++)
        mp_buf_printf(ret, "%swarning: %.*s\n", i ? "" : "\n", MP_STR_ARG(config->warnings[i]));
    mp_arena_fini(&arena);
}

/* Bars would end a table cell. */
static void add_cell(struct mp_buf *buf, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            mp_buf_add_byte(buf, '\\');
        mp_buf_add_byte(buf, *text);
    }
}

void mp_config_print_markdown(struct mp_buf *ret)
{
    struct mp_arena arena;

    mp_arena_init(&arena, 0);
    mp_buf_add_c(ret,
                 "# Settings\n\nAll settings are environment variables. This page is printed by "
                 "`millpond config --markdown` from\n`src/config/settings.def`; a test "
                 "compares the two.\n\n"
                 "Every `KAFKA_CONSUMER_*` variable goes to the Kafka client: the prefix is "
                 "taken off, the rest is\nlower-cased and each `_` becomes a `.` "
                 "(`KAFKA_CONSUMER_SECURITY_PROTOCOL` is `security.protocol`).\n"
                 "`KAFKA_CONSUMER_AUTO_OFFSET_RESET` is refused: set "
                 "`KAFKA_AUTO_OFFSET_RESET`.\n\n"
                 "An empty text counts as not set, except where it is said. A number may not "
                 "be empty. The settings\nof the destination that was not chosen are not "
                 "read.\n");
    for (unsigned section = 0; section < MP_SECTION_COUNT; section++) {
        mp_buf_printf(ret, "\n## %s\n\n| Name | Default | Allowed | Meaning |\n|---|---|---|---|\n",
                      section_names[section]);
        for (unsigned i = 0; i < MP_SET_COUNT; i++) {
            const struct mp_setting *setting = &mp_settings[i];
            const char *value = i == MP_SET_MILLPOND_SERVICE_VERSION ? "the program's version"
                                : setting->value                     ? setting->value
                                : setting->flags & MP_FLAG_REQUIRED  ? "required"
                                                                     : "";

            if (setting->section != section)
                continue;
            mp_buf_printf(ret, "| `%s` | ", setting->name);
            add_cell(ret, value);
            mp_buf_add_c(ret, " | ");
            add_cell(ret, mp_setting_allowed(&arena, i));
            mp_buf_add_c(ret, " | ");
            add_cell(ret, setting->meaning);
            mp_buf_add_c(ret, setting->flags & MP_FLAG_SECRET ? " Never printed. |\n" : " |\n");
        }
    }
    mp_arena_fini(&arena);
}
