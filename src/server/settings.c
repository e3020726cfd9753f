/* server/settings.c - see settings.h. */
#include "server/settings.h"

#include "base/utf8.h"
#include "config/text.h"
#include "server/database_url.h"

#include <assert.h>

enum kind { KIND_TEXT, KIND_SECRET, KIND_BOOL, KIND_INT };

struct setting {
    const char *name;
    enum kind kind;
    int64_t low, high;
    const char *value, *meaning;
    size_t offset; /* of the member */
};

#define TEXT           KIND_TEXT, 0, 0
#define SECRET         KIND_SECRET, 0, 0
#define BOOL           KIND_BOOL, 0, 0
#define INT(low, high) KIND_INT, low, high

static const struct setting settings[] = {
#define MP_SERVER_SETTING(name, kind, value, meaning)                                              \
    {#name, kind, value, meaning, offsetof(struct mp_server_settings, name)},
#include "server/settings.def"
#undef MP_SERVER_SETTING
};

enum { SETTINGS = sizeof(settings) / sizeof(*settings) };

static enum mp_code read_one(const struct setting *setting, struct mp_str value, struct mp_err *err,
                             void *ret)
{
    bool given_bool = mp_str_eq(value, MP_STR("true")), fits;
    int64_t number;

    switch (setting->kind) {
    case KIND_TEXT:
    case KIND_SECRET:
        if (!mp_utf8_is(value))
            return mp_err_set(err, MP_BAD_CONFIG, "%s is no UTF-8 text", setting->name);
        *(struct mp_str *)ret = value;
        break;
    case KIND_BOOL:
        if (!given_bool && !mp_str_eq(value, MP_STR("false")))
            return mp_err_set(err, MP_BAD_CONFIG, "%s is \"%.*s\": allowed is true or false",
                              setting->name, MP_STR_ARG(value));
        *(bool *)ret = given_bool;
        break;
    case KIND_INT:
        if (!mp_text_integer(value, &number, &fits) || !fits || number < setting->low ||
            number > setting->high)
            return mp_err_set(err, MP_BAD_CONFIG,
                              "%s is \"%.*s\": allowed is an integer from %lld to %lld",
                              setting->name, MP_STR_ARG(value), (long long)setting->low,
                              (long long)setting->high);
        *(int64_t *)ret = number;
        break;
    }
    return MP_OK;
}

/* Settings that the original refuses at start: they would promise what is not done. */
static enum mp_code check_refused(char *const *environment, struct mp_err *err)
{
    struct mp_str verify = mp_env_find(environment, "HOGLAKE_VERIFY_INTERVAL_MS");

    if (mp_env_find(environment, "HOGLAKE_COMPACTION_TIER_TARGET").size)
        return mp_err_set(err, MP_BAD_CONFIG,
                          "HOGLAKE_COMPACTION_TIER_TARGET is no setting any more: take it out; "
                          "HOGLAKE_COMPACTION_TARGET_BYTES says how large files become");
    if (verify.size && !mp_str_eq(verify, MP_STR("0")))
        return mp_err_set(err, MP_BAD_CONFIG,
                          "HOGLAKE_VERIFY_INTERVAL_MS is \"%.*s\": nothing is verified by the "
                          "clock; take it out or set it to 0",
                          MP_STR_ARG(verify));
    return MP_OK;
}

/* In small letters. */
static bool known_codec(struct mp_str *name)
{
    static const char *const names[] = {"zstd", "snappy", "gzip", "lz4_raw", "uncompressed"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (mp_str_eq_fold(*name, mp_str_c(names[i]))) {
            *name = mp_str_c(names[i]);
            return true;
        }
    return false;
}

static enum mp_code check_together(struct mp_server_settings *made, struct mp_err *err)
{
    static const struct {
        const char *name;
        int level;
    } levels[] = {{"DEBUG", 10}, {"INFO", 20}, {"WARNING", 30}, {"ERROR", 40}};

    for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++)
        if (mp_str_eq_fold(made->HOGLAKE_LOG_LEVEL, mp_str_c(levels[i].name)))
            made->log_level = levels[i].level;
    if (!made->log_level)
        return mp_err_set(err, MP_BAD_CONFIG,
                          "HOGLAKE_LOG_LEVEL is \"%.*s\": allowed is DEBUG, INFO, WARNING or ERROR",
                          MP_STR_ARG(made->HOGLAKE_LOG_LEVEL));
    if (made->HOGLAKE_RECEIPT_RETENTION_SECONDS > 0 &&
        made->HOGLAKE_RECEIPT_RETENTION_SECONDS < 3600)
        return mp_err_set(err, MP_BAD_CONFIG,
                          "HOGLAKE_RECEIPT_RETENTION_SECONDS is %lld: a replay could come later; "
                          "allowed is at least 3600, or 0 for ever",
                          (long long)made->HOGLAKE_RECEIPT_RETENTION_SECONDS);
    if (!made->HOGLAKE_TLS_CERT_FILE.size != !made->HOGLAKE_TLS_KEY_FILE.size)
        return mp_err_set(
            err, MP_BAD_CONFIG, "%s is set and %s is not",
            made->HOGLAKE_TLS_CERT_FILE.size ? "HOGLAKE_TLS_CERT_FILE" : "HOGLAKE_TLS_KEY_FILE",
            made->HOGLAKE_TLS_CERT_FILE.size ? "HOGLAKE_TLS_KEY_FILE" : "HOGLAKE_TLS_CERT_FILE");
    if (made->HOGLAKE_REQUEST_BODIES_BYTES_MAX < made->HOGLAKE_REQUEST_BYTES_MAX)
        return mp_err_set(err, MP_BAD_CONFIG,
                          "HOGLAKE_REQUEST_BODIES_BYTES_MAX is %lld: allowed is at least "
                          "HOGLAKE_REQUEST_BYTES_MAX, %lld",
                          (long long)made->HOGLAKE_REQUEST_BODIES_BYTES_MAX,
                          (long long)made->HOGLAKE_REQUEST_BYTES_MAX);
    if (!known_codec(&made->HOGLAKE_COMPACTION_CODEC))
        return mp_err_set(err, MP_BAD_CONFIG,
                          "HOGLAKE_COMPACTION_CODEC is \"%.*s\": allowed is zstd, snappy, gzip, "
                          "lz4_raw or uncompressed",
                          MP_STR_ARG(made->HOGLAKE_COMPACTION_CODEC));
    if (made->HOGLAKE_COMPACTION_MIN_INPUT_FILES > made->HOGLAKE_COMPACTION_MAX_INPUT_FILES)
        return mp_err_set(err, MP_BAD_CONFIG,
                          "HOGLAKE_COMPACTION_MIN_INPUT_FILES is above "
                          "HOGLAKE_COMPACTION_MAX_INPUT_FILES");
    return MP_OK;
}

enum mp_code mp_server_settings_load(struct mp_arena *arena, char *const *environment,
                                     struct mp_err *err, struct mp_server_settings *ret)
{
    struct mp_server_settings made = {0};
    enum mp_code code = check_refused(environment, err);

    for (int i = 0; i < SETTINGS && !code; i++) {
        struct mp_str value = mp_env_find(environment, settings[i].name);

        if (!value.size)
            value = mp_str_c(settings[i].value);
        code = read_one(&settings[i], value, err, (char *)&made + settings[i].offset);
    }
    if (!code)
        code = check_together(&made, err);
    if (!code)
        code = mp_database_url(arena, made.HOGLAKE_JDBC_URL, made.HOGLAKE_DB_USER,
                               made.HOGLAKE_DB_PASSWORD, err, &made.database);
    if (!code)
        *ret = made;
    return code;
}

/* --- slips --- */

/* Of the original, without effect here; and one that check_refused looks at. */
static const char *const without_effect[] = {
    "HOGLAKE_NETTY_CALL_GROUP_SIZE",
    "HOGLAKE_CLEANUP_SUB_BATCH",
    "HOGLAKE_CLEANUP_WORKERS",
    "HOGLAKE_CLEANUP_STAGING_GRACE_SECONDS",
    "HOGLAKE_COMPACTION_MAX_FAN_IN",
    "HOGLAKE_COMPACTION_PARALLEL_GROUPS",
    "HOGLAKE_COMPACTION_PARALLEL_INPUT_OPENS",
    "HOGLAKE_COMPACTION_CLAIMS_ENABLED",
    "HOGLAKE_COMPACTION_COMMITTED_CLAIM_TTL_SECONDS",
    "HOGLAKE_COMPACTION_NESTED_SORT_EXPANSION",
    "HOGLAKE_COMPACTION_MAX_NODES_PER_ROW",
    "HOGLAKE_COMPACTION_CANDIDATE_HEADROOM",
    "HOGLAKE_COMPACTION_MAX_CANDIDATES",
    "HOGLAKE_MAINTENANCE_SUMMARY_INTERVAL_MS",
    "HOGLAKE_MAINTENANCE_SUMMARY_BATCH",
    "HOGLAKE_MAINTENANCE_SUMMARY_REFRESH_SECONDS",
    "HOGLAKE_REINDEX_INTERVAL_MS",
    "HOGLAKE_VERIFY_INTERVAL_MS",
};

static const char *name_of(unsigned i)
{
    return settings[i].name;
}

static bool known(struct mp_str name)
{
    for (int i = 0; i < SETTINGS; i++)
        if (mp_str_eq(name, mp_str_c(settings[i].name)))
            return true;
    for (size_t i = 0; i < sizeof(without_effect) / sizeof(*without_effect); i++)
        if (mp_str_eq(name, mp_str_c(without_effect[i])))
            return true;
    return false;
}

bool mp_server_settings_slip(char *const *environment, size_t *at, struct mp_str *ret_name,
                             const char **ret_meant)
{
    for (; environment[*at]; ++*at) {
        const char *entry = environment[*at], *equal = strchr(entry, '=');
        struct mp_str name = mp_str_n(entry, equal ? (size_t)(equal - entry) : 0);
        const char *meant = mp_str_starts(name, MP_STR("HOGLAKE_")) && !known(name)
                                ? mp_text_meant(name, name_of, SETTINGS)
                                : NULL;

        if (!meant)
            continue;
        *ret_name = name;
        *ret_meant = meant;
        ++*at;
        return true;
    }
    return false;
}

void mp_server_settings_print(const struct mp_server_settings *loaded, struct mp_buf *ret)
{
    for (int i = 0; i < SETTINGS; i++) {
        const void *member = (const char *)loaded + settings[i].offset;

        mp_buf_printf(ret, "%s=", settings[i].name);
        switch (settings[i].kind) {
        case KIND_TEXT:
            if (strcmp(settings[i].name, "HOGLAKE_JDBC_URL") == 0 &&
                (memchr(((const struct mp_str *)member)->data, '@',
                        ((const struct mp_str *)member)->size) ||
                 memmem(((const struct mp_str *)member)->data,
                        ((const struct mp_str *)member)->size, "password", 8)))
                mp_buf_add_c(ret, "(hidden: it holds a password)");
            else
                mp_buf_add_str(ret, *(const struct mp_str *)member);
            break;
        case KIND_SECRET:
            mp_buf_add_c(ret, ((const struct mp_str *)member)->size ? "(hidden)" : "");
            break;
        case KIND_BOOL:
            mp_buf_add_c(ret, *(const bool *)member ? "true" : "false");
            break;
        case KIND_INT:
            mp_buf_printf(ret, "%lld", (long long)*(const int64_t *)member);
            break;
        }
        mp_buf_printf(ret, "  # %s\n", settings[i].meaning);
    }
}
