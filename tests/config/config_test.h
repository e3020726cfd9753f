/* tests/config/config_test.h - environments for the tests of the config room. */
#ifndef MP_TESTS_CONFIG_TEST_H
#define MP_TESTS_CONFIG_TEST_H

#include "config/config.h"
#include "harness/test.h"

/* Settings that suffice for DuckLake or hoglake; a test puts its own in front, where they win. */
#define DUCKLAKE                                                                                   \
    "KAFKA_TOPIC=events", "REPLICA_COUNT=4", "POD_NAME=millpond-3",                                \
        "KAFKA_BOOTSTRAP_SERVERS=kafka:9092", "DUCKLAKE_TABLE=events",                             \
        "DUCKLAKE_DATA_PATH=s3://lake/events/", "DUCKLAKE_RDS_HOST=db",                            \
        "DUCKLAKE_RDS_PASSWORD=hunter2-of-the-database"
#define HOGLAKE                                                                                    \
    "MILLPOND_DESTINATION=hoglake", "KAFKA_TOPIC=events", "REPLICA_COUNT=4",                       \
        "POD_NAME=millpond-3", "KAFKA_BOOTSTRAP_SERVERS=kafka:9092",                               \
        "HOGLAKE_URL=http://hog:8080", "HOGLAKE_CATALOG=millpond", "HOGLAKE_NAMESPACE=analytics",  \
        "HOGLAKE_TABLE=events"

/* The configuration of an environment that must be good. */
#define GOOD(...) good(__FILE__, __LINE__, (const char *const[]){__VA_ARGS__, NULL}, NULL)
/* The error of one that must be refused; both stay until the next call. */
#define BAD(...) bad(__FILE__, __LINE__, (const char *const[]){__VA_ARGS__, NULL})

const struct mp_config *good(const char *file, int line, const char *const *environment,
                             const struct mp_config_options *options);
const char *bad(const char *file, int line, const char *const *environment);

#define CHECK_HAS(text, part)                                                                      \
    do {                                                                                           \
        const char *text_ = (text), *part_ = (part);                                               \
        if (!strstr(text_, part_))                                                                 \
            test_fail(__FILE__, __LINE__, "\"%s\" does not hold \"%s\"", text_, part_);            \
    } while (0)
#define CHECK_LACKS(text, part)                                                                    \
    do {                                                                                           \
        const char *text_ = (text), *part_ = (part);                                               \
        if (strstr(text_, part_))                                                                  \
            test_fail(__FILE__, __LINE__, "\"%s\" holds \"%s\"", text_, part_);                    \
    } while (0)
#define CHECK_TEXT(got, want) CHECK_STR(got, mp_str_c(want))

/* Whether one of the warnings holds the text. */
bool warned(const struct mp_config *config, const char *text);

#endif
