/* No secret ever leaves the config room in a text for people: not in the table of `millpond
 * config`, not in a warning, not in an error, whatever else is wrong. */
#include "config_test.h"

#include "config/config_priv.h"

#include <stdio.h>

/* One word stands in all of them, so that one search finds any leak. */
#define WORD "hunter2"

static const char *const secrets[] = {
    "DUCKLAKE_RDS_PASSWORD=" WORD "a",
    "DUCKDB_S3_ACCESS_KEY_ID=AKIAEXAMPLE",
    "DUCKDB_S3_SECRET_ACCESS_KEY=" WORD "b",
    "HOGLAKE_S3_ACCESS_KEY=AKIAEXAMPLE",
    "HOGLAKE_S3_SECRET_KEY=" WORD "c",
    "MILLPOND_FILTER_KEEP_FIELD_NAME=team_id",
    "MILLPOND_FILTER_VALUES=1",
    "MILLPOND_INCLUDE_VALUES_URL=https://user:" WORD "d@flags/values?key=" WORD,
    "MILLPOND_INCLUDE_VALUES_AUTH_HEADER_NAME=X-Token",
    "MILLPOND_INCLUDE_VALUES_AUTH_TOKEN=" WORD "e",
    "POSTHOG_PROJECT_TOKEN=" WORD "f",
    "KAFKA_CONSUMER_SASL_PASSWORD=" WORD "g",
    "KAFKA_CONSUMER_SASL_OAUTHBEARER_CONFIG=" WORD "h",
    "KAFKA_CONSUMER_SSL_KEY_PASSWORD=" WORD "i",
    "KAFKA_CONSUMER_SSL_KEY_PEM=" WORD "j",
    "KAFKA_CONSUMER_SECURITY_PROTOCOL=SASL_SSL",
};

enum { SECRETS = sizeof(secrets) / sizeof(*secrets), MORE = 16 };

/* The secrets, behind what the test adds. */
static void environment(const char *const *first, const char *const *base, const char **ret)
{
    size_t count = 0;

    for (; *first; first++)
        ret[count++] = *first;
    for (size_t i = 0; i < SECRETS; i++)
        ret[count++] = secrets[i];
    for (; *base; base++)
        ret[count++] = *base;
    ret[count] = NULL;
}

static const char *const ducklake[] = {DUCKLAKE, NULL};
static const char *const hoglake[] = {HOGLAKE, NULL};
static const char *const none[] = {NULL};

static void check_page(const char *const *texts, const struct mp_config *config)
{
    struct mp_buf page = MP_BUF_INIT(1u << 20);

    mp_config_print((char *const *)(uintptr_t)texts, config, &page);
    CHECK_LACKS(mp_buf_c(&page), WORD);
    CHECK_HAS(mp_buf_c(&page), "(hidden)");
    mp_buf_fini(&page);
}

static void table_of_a_good_configuration_hides_them(void)
{
    const char *texts[SECRETS + MORE];
    const struct mp_config *config;
    struct mp_buf page = MP_BUF_INIT(1u << 20);

    environment(none, ducklake, texts);
    config = good(__FILE__, __LINE__, texts, NULL);
    check_page(texts, config);
    mp_config_print((char *const *)(uintptr_t)texts, config, &page);
    CHECK_HAS(mp_buf_c(&page), "DUCKLAKE_RDS_PASSWORD = (hidden)");
    CHECK_HAS(mp_buf_c(&page), "https://(hidden)@flags/values?(hidden)");
    CHECK_HAS(mp_buf_c(&page), "security.protocol = SASL_SSL");
    CHECK_HAS(mp_buf_c(&page), "sasl.password = (hidden)");
    CHECK_HAS(mp_buf_c(&page), "GROUP_ID = millpond-events-events");
    CHECK_HAS(mp_buf_c(&page), "HOGLAKE_URL = (not read: another destination)");
    mp_buf_fini(&page);
    environment(none, hoglake, texts);
    check_page(texts, good(__FILE__, __LINE__, texts, NULL));
}

static void table_of_a_refused_configuration_hides_them(void)
{
    const char *const first[] = {"KAFKA_TOPIC=", NULL};
    const char *texts[SECRETS + MORE];

    environment(first, ducklake, texts);
    bad(__FILE__, __LINE__, texts);
    check_page(texts, NULL);
}

static void errors_about_a_secret_do_not_show_it(void)
{
    static const char *const faults[][2] = {
        {"DUCKDB_S3_SECRET_ACCESS_KEY=" WORD " with blanks", NULL},
        {"MILLPOND_CATALOG=postgresql://u:" WORD "@h/d", NULL},
        {"MILLPOND_CATALOG=host=h password=" WORD, NULL},
        {"MILLPOND_INCLUDE_VALUES_AUTH_TOKEN=" WORD "\n", NULL},
        {"DUCKLAKE_RDS_PASSWORD=" WORD "\xff", NULL},
        {"POSTHOG_PROJECT_TOKEN=" WORD "\xff", NULL},
        {"POSTHOG_PROJECT_TOKEN=" WORD "\n", NULL},
        {"MILLPOND_INCLUDE_VALUES_URL=ftp://u:" WORD "@h", NULL},
        {"MILLPOND_INCLUDE_VALUES_URL=ftp://u:" WORD "/" WORD "@h/p", NULL},
        {"MILLPOND_INCLUDE_VALUES_URL=u:" WORD "@h/p", NULL},
        {"MILLPOND_INCLUDE_VALUES_URL=ftp://h/p?key=" WORD, NULL},
        {"DUCKDB_S3_ENDPOINT=u:" WORD "@h!", NULL},
    };
    const char *texts[SECRETS + MORE];

    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
        environment(faults[i], ducklake, texts);
        CHECK_LACKS(bad(__FILE__, __LINE__, texts), WORD);
    }
}

static void warnings_do_not_show_them(void)
{
    const char *const first[] = {"DUCKLAKE_RDS_PASWORD=" WORD, "KAFKA_CONSUMER_GROUP_ID=" WORD,
                                 "HOGLAKE_S3_SECRET_KEYS=" WORD, NULL};
    const char *texts[SECRETS + MORE];
    const struct mp_config *config;

    environment(first, ducklake, texts);
    config = good(__FILE__, __LINE__, texts, NULL);
    CHECK_INT(config->warning_count, 3);
    CHECK(!warned(config, WORD));
    CHECK(warned(config, "DUCKLAKE_RDS_PASSWORD"));
    check_page(texts, config);
}

static void what_holds_no_secret_is_shown(void)
{
    static const char *const plain[] = {"s3://bucket/a@b/c",
                                        "host:9000",
                                        "http://host:9000/a@b",
                                        "[::1]:9000",
                                        "a@b",
                                        "ada@example.org,bob@example.org",
                                        "http://[::1]:80/a@b",
                                        "b-1:9092,b-2:9092"};
    struct mp_arena arena;

    mp_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        CHECK_STR(mp_str_c(mp_setting_shown(&arena, MP_SET_HOGLAKE_URL, mp_str_c(plain[i]))),
                  mp_str_c(plain[i]));
    mp_arena_fini(&arena);
}

static void catalog_of_a_file_is_shown_that_of_a_server_is_not(void)
{
    struct mp_buf page = MP_BUF_INIT(1u << 20);
    const char *texts[SECRETS + MORE];
    const char *const file[] = {"MILLPOND_CATALOG=sqlite:/data/lake.sqlite", NULL};
    const char *const server[] = {"MILLPOND_CATALOG=postgres:host=h password=" WORD, NULL};
    const struct mp_config *config;

    environment(file, ducklake, texts);
    config = good(__FILE__, __LINE__, texts, NULL);
    mp_config_print((char *const *)(uintptr_t)texts, config, &page);
    CHECK_HAS(mp_buf_c(&page), "MILLPOND_CATALOG = sqlite:/data/lake.sqlite");
    mp_buf_fini(&page);
    environment(server, ducklake, texts);
    config = good(__FILE__, __LINE__, texts, NULL);
    check_page(texts, config);
    CHECK_LACKS(config->ducklake.catalog_name.data, WORD);
}

static void page_of_the_documentation_names_every_setting(void)
{
    static const char *const names[] = {
#define MP_SETTING(name, kind, value, where, flags, section, meaning) #name,
#include "config/settings.def"
#undef MP_SETTING
    };
    struct mp_buf page = MP_BUF_INIT(1u << 20);

    mp_config_print_markdown(&page);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char cell[80];

        snprintf(cell, sizeof(cell), "| `%s` |", names[i]);
        CHECK_HAS(mp_buf_c(&page), cell);
    }
    mp_buf_fini(&page);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(table_of_a_good_configuration_hides_them),
        TEST(table_of_a_refused_configuration_hides_them),
        TEST(errors_about_a_secret_do_not_show_it),
        TEST(warnings_do_not_show_them),
        TEST(what_holds_no_secret_is_shown),
        TEST(catalog_of_a_file_is_shown_that_of_a_server_is_not),
        TEST(page_of_the_documentation_names_every_setting),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
