/* tests/fuzz/config_fuzz.c - any environment is either a configuration or a refusal that says why.
 *
 * The input is a list of "NAME=value" texts with a NUL behind each; behind them stand settings that
 * suffice, so that an empty input is good. A secret among those must not come out anywhere.
 */
#include "fuzz/fuzz.h"
#include "config/config.h"

enum { ENTRIES_MAX = 64 };

static const char secret[] = "hunter2-never-shown";
static const char *const suffice[] = {"KAFKA_TOPIC=t",
                                      "REPLICA_COUNT=4",
                                      "POD_NAME=p-1",
                                      "KAFKA_BOOTSTRAP_SERVERS=k",
                                      "DUCKLAKE_TABLE=t",
                                      "DUCKLAKE_DATA_PATH=/d",
                                      "DUCKLAKE_RDS_HOST=h",
                                      "HOGLAKE_URL=http://h",
                                      "HOGLAKE_CATALOG=c",
                                      "HOGLAKE_NAMESPACE=n",
                                      "HOGLAKE_TABLE=t",
                                      "DUCKLAKE_RDS_PASSWORD=hunter2-never-shown",
                                      "POSTHOG_PROJECT_TOKEN=hunter2-never-shown"};

static void must(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

/* The input may spell it out by chance, and names of Kafka settings are shown in small letters. */
static bool holds_secret(const uint8_t *data, size_t size)
{
    struct mp_str wanted = mp_str_c(secret);

    for (size_t at = 0; at + wanted.size <= size; at++)
        if (mp_str_eq_fold(mp_str_n((const char *)data + at, wanted.size), wanted))
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t more = sizeof(suffice) / sizeof(*suffice);
    char *environment[ENTRIES_MAX + sizeof(suffice) / sizeof(*suffice) + 1];
    char *copy = malloc(size + 1);
    struct mp_buf page = MP_BUF_INIT(64u << 20);
    const struct mp_config *config = NULL;
    struct mp_arena arena;
    struct mp_err err = {0};
    enum mp_code code;
    size_t count = 0;
    bool holds;

    memcpy(copy, data, size);
    copy[size] = 0;
    for (size_t at = 0; at < size && count < ENTRIES_MAX; at += strlen(copy + at) + 1)
        environment[count++] = copy + at;
    holds = holds_secret(data, size);
    for (size_t i = 0; i < more; i++)
        environment[count++] = (char *)(uintptr_t)suffice[i];
    environment[count] = NULL;
    mp_arena_init(&arena, 0);
    code = mp_config_load(&arena, environment, NULL, &err, &config);
    mp_config_print(environment, config, &page);
    must(code == MP_OK || code == MP_BAD_CONFIG, "another code");
    must((code == MP_OK) == (config != NULL), "a refusal gives no configuration");
    must(code == MP_OK || err.text[0], "a refusal says why");
    must(holds || !strstr(mp_buf_c(&page), secret), "the table shows a secret");
    must(holds || !strstr(err.text, secret), "the error shows a secret");
    for (uint32_t i = 0; config && i < config->warning_count; i++)
        must(holds || !strstr(config->warnings[i].data, secret), "a warning shows a secret");
    mp_buf_fini(&page);
    mp_arena_fini(&arena);
    free(copy);
    return 0;
}

#include "fuzz/replay.h"
