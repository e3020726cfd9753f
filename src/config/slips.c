/* config/slips.c - environment variables that look like a setting and are none.
 *
 * A misspelt setting is not seen by anything else: the program runs, with the default. So names
 * that are one or two changes away from a setting, or are known traps, are pointed out. Names that
 * merely begin like ours are left alone: Kubernetes puts MILLPOND_SERVICE_HOST and the like into
 * every pod.
 */
#include "config/config_priv.h"

struct trap {
    const char *name, *text;
};

static const struct trap traps[] = {
    {"KAFKA_GROUP_ID", "the setting is GROUP_ID"},
    {"MILLPOND_GROUP_ID", "the setting is GROUP_ID"},
    {"KAFKA_BROKERS", "the setting is KAFKA_BOOTSTRAP_SERVERS"},
    {"MILLPOND_PARTITION_BY", "the settings are DUCKLAKE_PARTITION_BY and HOGLAKE_PARTITION_BY"},
    {"FILTER_FIELD", "it was replaced by MILLPOND_FILTER_KEEP_FIELD_NAME"},
    {"FILTER_VALUE", "it was replaced by MILLPOND_FILTER_VALUES"},
    {"MILLPOND_TIMESTAMP_COLUMNS",
     "it was replaced by MILLPOND_TYPED_COLUMNS, with type timestamptz"},
    {"BUFFER_MAX_BYTES", "it was replaced by FLUSH_SIZE"},
    {"DUCKLAKE_METADATA_URL", "it was replaced by the DUCKLAKE_RDS_* settings"},
};

static const struct mp_str prefixes[] = {
    {"MILLPOND_", 9}, {"DUCKLAKE_", 9}, {"HOGLAKE_", 8}, {"DUCKDB_", 7},     {"KAFKA_", 6},
    {"FLUSH_", 6},    {"FETCH_", 6},    {"CONSUME_", 8}, {"REPLICA_", 8},    {"STATS_", 6},
    {"POSTHOG_", 8},  {"BROKER_", 7},   {"LOG_", 4},     {"PYHOGLAKE_", 10},
};

static const struct mp_setting *setting_named(struct mp_str name)
{
    for (unsigned i = 0; i < MP_SET_COUNT; i++)
        if (mp_str_eq(name, mp_str_c(mp_settings[i].name)))
            return &mp_settings[i];
    return NULL;
}

static bool ours(struct mp_str name)
{
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
        if (mp_str_starts(name, prefixes[i]))
            return true;
    return false;
}

/* "MILLPOND_FLUSH_SIZE" for FLUSH_SIZE. */
static const char *behind_prefix(struct mp_str name)
{
    const struct mp_setting *found = NULL;

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes) && !found; i++)
        if (mp_str_starts(name, prefixes[i]))
            found =
                setting_named(mp_str_n(name.data + prefixes[i].size, name.size - prefixes[i].size));
    return found ? found->name : NULL;
}

static const char *name_of(unsigned i)
{
    return mp_settings[i].name;
}

static void look_at(struct mp_reader *r, struct mp_str name)
{
    const char *meant;

    if (setting_named(name) || mp_str_starts(name, MP_STR("KAFKA_CONSUMER_")))
        return;
    for (size_t i = 0; i < sizeof(traps) / sizeof(*traps); i++)
        if (mp_str_eq(name, mp_str_c(traps[i].name))) {
            mp_config_warn(r, "%s has no effect: %s", traps[i].name, traps[i].text);
            return;
        }
    meant = behind_prefix(name);
    if (!meant && ours(name))
        meant = mp_text_meant(name, name_of, MP_SET_COUNT);
    if (meant)
        mp_config_warn(r, "%.*s has no effect: did you mean %s?", MP_STR_ARG(name), meant);
}

void mp_config_slips(struct mp_reader *r)
{
    for (char *const *entry = r->environment; *entry; entry++) {
        const char *equal = strchr(*entry, '=');

        if (equal)
            look_at(r, mp_str_n(*entry, (size_t)(equal - *entry)));
    }
}
