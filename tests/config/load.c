/* Every rule of the settings: what comes out of a good value, and what a bad one is told. */
#include "config_test.h"

#include <stdio.h>

/* --- core ------------------------------------------------------------------------------------ */

static void defaults_are_those_of_the_documentation(void)
{
    const struct mp_config *c = GOOD(DUCKLAKE);

    CHECK_INT(c->destination, MP_DESTINATION_DUCKLAKE);
    CHECK_TEXT(c->destination_name, "ducklake");
    CHECK_INT(c->flush_bytes, 104857600);
    CHECK_INT(c->flush_interval_ms, 60000);
    CHECK_INT(c->kafka.fetch_bytes_min, 1048576);
    CHECK_INT(c->kafka.fetch_wait_ms_max, 500);
    CHECK_INT(c->kafka.consume_batch, 1000);
    CHECK_INT(c->kafka.stats_interval_ms, 5000);
    CHECK_INT(c->kafka.reset, MP_RESET_EARLIEST);
    CHECK_INT(c->kafka.passthrough_count, 0);
    CHECK_INT(c->http_port, 8000);
    CHECK_INT(c->log_level, 20);
    CHECK(c->log_json);
    CHECK_TEXT(c->broker_source, "");
    CHECK_TEXT(c->schema, "main");
    CHECK_TEXT(c->rescued_column, "_rescued_data");
    CHECK_TEXT(c->quarantine_table, "");
    CHECK_INT(c->columns_max, 1000);
    CHECK_INT(c->outage_ms_max, 900000);
    CHECK_INT(c->compression, MP_COMPRESSION_ZSTD);
    CHECK_INT(c->compression_level, 1);
    CHECK(c->encode_threads >= 1);
    CHECK_INT(c->ducklake.race_retries_max, 100);
    CHECK_INT(c->ducklake.offsets_from, MP_OFFSETS_FROM_LAKE);
    CHECK(c->s3.use_ssl);
    CHECK(!c->s3.path_style);
    CHECK_TEXT(c->s3.endpoint, "");
    CHECK_TEXT(c->keep.field, "");
    CHECK_TEXT(c->drop.field, "");
    CHECK_INT(c->sort_by_count, 0);
    CHECK_INT(c->pin_count, 0);
    CHECK_TEXT(c->include.url, "");
    CHECK_TEXT(c->telemetry.token, "");
    CHECK_TEXT(c->telemetry.endpoint, "https://us.i.posthog.com/i/v1/logs");
    CHECK_TEXT(c->telemetry.namespace_name, "millpond");
    CHECK_TEXT(c->telemetry.version, MP_VERSION);
    CHECK_TEXT(c->kafka.aws_role_session_name, "millpond");
    CHECK_INT(c->warning_count, 0);
}

static void required_settings_are_named_when_missing_or_empty(void)
{
    CHECK_HAS(BAD("KAFKA_TOPIC=", DUCKLAKE), "KAFKA_TOPIC is not set");
    CHECK_HAS(BAD("A=b"), "KAFKA_TOPIC is not set");
    CHECK_HAS(BAD("KAFKA_BOOTSTRAP_SERVERS=", DUCKLAKE), "KAFKA_BOOTSTRAP_SERVERS is not set");
    CHECK_HAS(BAD("REPLICA_COUNT=", DUCKLAKE), "REPLICA_COUNT is not set");
    CHECK_HAS(BAD("DUCKLAKE_TABLE=", DUCKLAKE), "DUCKLAKE_TABLE is not set");
    CHECK_HAS(BAD("DUCKLAKE_DATA_PATH=", DUCKLAKE), "DUCKLAKE_DATA_PATH is not set");
    CHECK_HAS(BAD("DUCKLAKE_RDS_HOST=", DUCKLAKE), "DUCKLAKE_RDS_HOST is not set");
    CHECK_HAS(BAD("DUCKLAKE_RDS_PASSWORD=", DUCKLAKE), "DUCKLAKE_RDS_PASSWORD is not set");
    CHECK_HAS(BAD("HOGLAKE_URL=", HOGLAKE), "HOGLAKE_URL is not set");
    CHECK_HAS(BAD("HOGLAKE_CATALOG=", HOGLAKE), "HOGLAKE_CATALOG is not set");
    CHECK_HAS(BAD("HOGLAKE_NAMESPACE=", HOGLAKE), "HOGLAKE_NAMESPACE is not set");
    CHECK_HAS(BAD("HOGLAKE_TABLE=", HOGLAKE), "HOGLAKE_TABLE is not set");
}

static void topics_are_named_as_brokers_take_them(void)
{
    static const char *const wrong[] = {"a b", " a", "a/b", ".", "..", "\303\251", "a:b", "^a.*"};
    char text[300] = "KAFKA_TOPIC=";

    CHECK_TEXT(GOOD("KAFKA_TOPIC=a.B_c-9", DUCKLAKE)->kafka.topic, "a.B_c-9");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        snprintf(text + 12, sizeof(text) - 12, "%s", wrong[i]);
        CHECK_HAS(BAD(text, DUCKLAKE), "KAFKA_TOPIC is \"");
    }
    memset(text + 12, 'x', 250);
    text[12 + 250] = 0;
    CHECK_HAS(BAD(text, DUCKLAKE), "249");
    text[12 + 249] = 0;
    CHECK_INT(GOOD(text, DUCKLAKE)->kafka.topic.size, 249);
}

static void data_paths_are_directories_or_s3(void)
{
    static const char *const right[] = {"s3://bucket/x/", "/data/",  "data", "file:///data/",
                                        "a/b:c/",         "./s3:/x", "x:y"};
    static const char *const wrong[] = {"gs://bucket/", "S3://bucket/",  "s3:/bucket/x", "s3a://b/",
                                        "http://x/",    "file://host/x", "abfss://a@b/"};
    char text[64];

    for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++) {
        snprintf(text, sizeof(text), "DUCKLAKE_DATA_PATH=%s", right[i]);
        CHECK_TEXT(GOOD(text, DUCKLAKE)->data_path, right[i]);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        snprintf(text, sizeof(text), "DUCKLAKE_DATA_PATH=%s", wrong[i]);
        CHECK_HAS(BAD(text, DUCKLAKE), "DUCKLAKE_DATA_PATH is \"");
        CHECK_HAS(BAD(text, DUCKLAKE), "s3://bucket/prefix/ or a directory");
    }
}

static void names_have_an_end(void)
{
    static const char *const settings[] = {"DUCKLAKE_TABLE", "DUCKLAKE_SCHEMA",
                                           "MILLPOND_QUARANTINE_TABLE", "DUCKLAKE_PARTITION_BY",
                                           "MILLPOND_SORT_BY"};
    char text[400];

    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
        int size = snprintf(text, sizeof(text), "%s=", settings[i]);

        memset(text + size, 'x', 256);
        text[size + 256] = 0;
        CHECK_HAS(BAD(text, DUCKLAKE), settings[i]);
        text[size + 255] = 0;
        GOOD(text, DUCKLAKE);
    }
}

static void destination_is_one_of_two(void)
{
    CHECK_INT(GOOD("MILLPOND_DESTINATION= DuckLake ", DUCKLAKE)->destination,
              MP_DESTINATION_DUCKLAKE);
    CHECK_INT(GOOD("MILLPOND_DESTINATION= ", DUCKLAKE)->destination, MP_DESTINATION_DUCKLAKE);
    CHECK_TEXT(GOOD(HOGLAKE)->destination_name, "hoglake");
    CHECK_HAS(BAD("MILLPOND_DESTINATION=iceberg", DUCKLAKE),
              "MILLPOND_DESTINATION is \"iceberg\": allowed is one of ducklake, hoglake");
}

static void ordinal_comes_from_the_pods_name(void)
{
    CHECK_INT(GOOD(DUCKLAKE)->ordinal, 3);
    CHECK_INT(GOOD(DUCKLAKE)->replica_count, 4);
    CHECK_INT(GOOD("POD_NAME=x-002", DUCKLAKE)->ordinal, 2);
    CHECK_INT(GOOD("POD_NAME=a-b-c-0", DUCKLAKE)->ordinal, 0);
    CHECK_INT(GOOD("POD_NAME=", "HOSTNAME=host-1", DUCKLAKE)->ordinal, 1);
    CHECK_INT(GOOD("POD_NAME=", "HOSTNAME=", DUCKLAKE)->ordinal, 0);
    CHECK_TEXT(GOOD("POD_NAME=", DUCKLAKE)->pod, "millpond-0");
    CHECK_HAS(BAD("POD_NAME=events3", DUCKLAKE), "POD_NAME is \"events3\"");
    CHECK_HAS(BAD("POD_NAME=events-3a", DUCKLAKE), "ends in a hyphen and the ordinal");
    CHECK_HAS(BAD("POD_NAME=3", DUCKLAKE), "POD_NAME is \"3\"");
    CHECK_HAS(BAD("POD_NAME=x-", DUCKLAKE), "POD_NAME is \"x-\"");
    CHECK_HAS(BAD("POD_NAME=x-99999999999999999999", DUCKLAKE), "POD_NAME is");
    CHECK_HAS(BAD("POD_NAME=", "HOSTNAME=laptop", DUCKLAKE), "HOSTNAME is \"laptop\"");
    CHECK_HAS(BAD("POD_NAME=millpond-4", DUCKLAKE),
              "ordinal 4, from POD_NAME \"millpond-4\", is not below REPLICA_COUNT 4");
    CHECK_HAS(BAD("REPLICA_COUNT=0", DUCKLAKE), "REPLICA_COUNT is \"0\": allowed is an integer");
    CHECK_HAS(BAD("REPLICA_COUNT=two", DUCKLAKE), "REPLICA_COUNT is \"two\"");
}

static void names_are_derived_as_before(void)
{
    const struct mp_config *c = GOOD(DUCKLAKE);

    CHECK_TEXT(c->kafka.group, "millpond-events-events");
    CHECK_TEXT(c->kafka.client_id, "millpond-events-events-3");
    CHECK_TEXT(c->pipeline, "events-events");
    CHECK_TEXT(c->author, "millpond/events/3");
    CHECK_TEXT(GOOD(HOGLAKE)->kafka.group, "millpond-hoglake-events-events");
    CHECK_TEXT(GOOD("GROUP_ID=g", DUCKLAKE)->kafka.group, "g");
    CHECK_TEXT(GOOD("GROUP_ID=", DUCKLAKE)->kafka.group, "millpond-events-events");
}

static void numbers_are_range_checked(void)
{
    CHECK_INT(GOOD("FLUSH_SIZE=0", DUCKLAKE)->flush_bytes, 0);
    CHECK_INT(GOOD("FLUSH_SIZE= 1_000_000 ", DUCKLAKE)->flush_bytes, 1000000);
    CHECK_INT(GOOD("FLUSH_INTERVAL_MS=0", DUCKLAKE)->flush_interval_ms, 0);
    CHECK_INT(GOOD("CONSUME_BATCH_SIZE=1", DUCKLAKE)->kafka.consume_batch, 10);
    CHECK_INT(GOOD("CONSUME_BATCH_SIZE=1000000", DUCKLAKE)->kafka.consume_batch, 1000000);
    CHECK_INT(GOOD("MILLPOND_OUTAGE_MS_MAX=0", DUCKLAKE)->outage_ms_max, 0);
    CHECK_INT(GOOD("MILLPOND_ENCODE_THREADS=7", DUCKLAKE)->encode_threads, 7);
    CHECK_INT(GOOD("MILLPOND_MAX_COLUMNS=2000", DUCKLAKE)->columns_max, 2000);
    CHECK_HAS(BAD("FLUSH_SIZE=-1", DUCKLAKE),
              "FLUSH_SIZE is \"-1\": allowed is an integer from 0 to 1099511627776");
    CHECK_HAS(BAD("FLUSH_SIZE=100MB", DUCKLAKE), "FLUSH_SIZE is \"100MB\"");
    CHECK_HAS(BAD("FLUSH_SIZE=", DUCKLAKE), "FLUSH_SIZE is set but empty: allowed is an integer");
    CHECK_HAS(BAD("FLUSH_SIZE=99999999999999999999", DUCKLAKE), "FLUSH_SIZE is \"9999");
    CHECK_HAS(BAD("FLUSH_INTERVAL_MS=-5", DUCKLAKE), "FLUSH_INTERVAL_MS is \"-5\"");
    CHECK_HAS(BAD("FLUSH_INTERVAL_MS=1.5", DUCKLAKE), "FLUSH_INTERVAL_MS is \"1.5\"");
    CHECK_HAS(BAD("CONSUME_BATCH_SIZE=1000001", DUCKLAKE), "CONSUME_BATCH_SIZE is \"1000001\"");
    CHECK_HAS(BAD("FETCH_MIN_BYTES=0", DUCKLAKE), "FETCH_MIN_BYTES is \"0\"");
    CHECK_HAS(BAD("FETCH_MAX_WAIT_MS=x", DUCKLAKE), "FETCH_MAX_WAIT_MS is \"x\"");
    CHECK_HAS(BAD("STATS_INTERVAL_MS=-1", DUCKLAKE), "STATS_INTERVAL_MS is \"-1\"");
    CHECK_HAS(BAD("MILLPOND_MAX_COLUMNS=0", DUCKLAKE), "MILLPOND_MAX_COLUMNS is \"0\"");
    CHECK_HAS(BAD("MILLPOND_ENCODE_THREADS=0", DUCKLAKE), "MILLPOND_ENCODE_THREADS is \"0\"");
    CHECK_HAS(BAD("MILLPOND_OUTAGE_MS_MAX=soon", DUCKLAKE), "MILLPOND_OUTAGE_MS_MAX is \"soon\"");
}

static void cores_decide_the_encode_threads(void)
{
    const struct mp_config_options options = {.cores = 12};
    const char *const environment[] = {DUCKLAKE, NULL};

    CHECK_INT(good(__FILE__, __LINE__, environment, &options)->encode_threads, 12);
}

static void compression_is_one_of_four(void)
{
    CHECK_INT(GOOD("MILLPOND_COMPRESSION=ZSTD", DUCKLAKE)->compression, MP_COMPRESSION_ZSTD);
    CHECK_INT(GOOD("MILLPOND_COMPRESSION=snappy", DUCKLAKE)->compression, MP_COMPRESSION_SNAPPY);
    CHECK_INT(GOOD("MILLPOND_COMPRESSION=lz4", DUCKLAKE)->compression, MP_COMPRESSION_LZ4);
    CHECK_INT(GOOD("MILLPOND_COMPRESSION=none", DUCKLAKE)->compression, MP_COMPRESSION_NONE);
    CHECK_INT(GOOD("MILLPOND_COMPRESSION_LEVEL=9", DUCKLAKE)->compression_level, 9);
    CHECK(warned(GOOD("MILLPOND_COMPRESSION=lz4", "MILLPOND_COMPRESSION_LEVEL=9", DUCKLAKE),
                 "only zstd has levels"));
    CHECK_HAS(BAD("MILLPOND_COMPRESSION=gzip", DUCKLAKE),
              "MILLPOND_COMPRESSION is \"gzip\": allowed is one of zstd, snappy, lz4, none");
    CHECK_HAS(BAD("MILLPOND_COMPRESSION_LEVEL=23", DUCKLAKE), "an integer from 1 to 22");
}

static void offset_reset_is_earliest_or_latest(void)
{
    CHECK_INT(GOOD("KAFKA_AUTO_OFFSET_RESET= Latest", DUCKLAKE)->kafka.reset, MP_RESET_LATEST);
    CHECK_HAS(BAD("KAFKA_AUTO_OFFSET_RESET=error", DUCKLAKE),
              "KAFKA_AUTO_OFFSET_RESET is \"error\": allowed is one of earliest, latest");
}

static void http_port_may_be_blank_or_zero(void)
{
    CHECK_INT(GOOD("MILLPOND_HTTP_PORT=", DUCKLAKE)->http_port, 8000);
    CHECK_INT(GOOD("MILLPOND_HTTP_PORT=  ", DUCKLAKE)->http_port, 8000);
    CHECK_INT(GOOD("MILLPOND_HTTP_PORT=0", DUCKLAKE)->http_port, 0);
    CHECK_INT(GOOD("MILLPOND_HTTP_PORT=65535", DUCKLAKE)->http_port, 65535);
    CHECK_HAS(BAD("MILLPOND_HTTP_PORT=65536", DUCKLAKE),
              "MILLPOND_HTTP_PORT is \"65536\": allowed is an integer from 0 to 65535");
    CHECK_HAS(BAD("MILLPOND_HTTP_PORT=http", DUCKLAKE), "MILLPOND_HTTP_PORT is \"http\"");
}

static void log_settings_have_pythons_names(void)
{
    CHECK_INT(GOOD("LOG_LEVEL=debug", DUCKLAKE)->log_level, 10);
    CHECK_INT(GOOD("LOG_LEVEL=WARN", DUCKLAKE)->log_level, 30);
    CHECK_INT(GOOD("LOG_LEVEL=warning", DUCKLAKE)->log_level, 30);
    CHECK_INT(GOOD("LOG_LEVEL=error", DUCKLAKE)->log_level, 40);
    CHECK_INT(GOOD("LOG_LEVEL=critical", DUCKLAKE)->log_level, 50);
    CHECK_INT(GOOD("LOG_LEVEL=notset", DUCKLAKE)->log_level, 0);
    CHECK_HAS(BAD("LOG_LEVEL=chatty", DUCKLAKE), "LOG_LEVEL is \"chatty\"");
    CHECK(GOOD("MILLPOND_LOG_FORMAT=JSON", DUCKLAKE)->log_json);
    CHECK(!GOOD("MILLPOND_LOG_FORMAT=text", DUCKLAKE)->log_json);
    CHECK_INT(GOOD("MILLPOND_LOG_FORMAT=text", DUCKLAKE)->warning_count, 0);
    CHECK(warned(GOOD("MILLPOND_LOG_FORMAT=jsno", DUCKLAKE), "\"jsno\""));
    CHECK_TEXT(GOOD("BROKER_SOURCE= MSK ", DUCKLAKE)->broker_source, "msk");
}

/* --- Kafka client settings ------------------------------------------------------------------- */

static void passthrough_becomes_client_keys(void)
{
    const struct mp_config *c =
        GOOD("KAFKA_CONSUMER_SECURITY_PROTOCOL=SASL_SSL", "KAFKA_CONSUMER_SASL_PASSWORD=a=b",
             DUCKLAKE, "KAFKA_CONSUMER_CHECK_CRCS=");

    CHECK_INT(c->kafka.passthrough_count, 3);
    CHECK_TEXT(c->kafka.passthrough[0].key, "security.protocol");
    CHECK_TEXT(c->kafka.passthrough[0].value, "SASL_SSL");
    CHECK_TEXT(c->kafka.passthrough[1].key, "sasl.password");
    CHECK_TEXT(c->kafka.passthrough[1].value, "a=b");
    CHECK_TEXT(c->kafka.passthrough[2].key, "check.crcs");
    CHECK_TEXT(c->kafka.passthrough[2].value, "");
}

static void passthrough_of_our_own_keys_has_no_effect(void)
{
    const struct mp_config *c =
        GOOD("KAFKA_CONSUMER_GROUP_ID=x", "KAFKA_CONSUMER_FETCH_MIN_BYTES=1",
             "KAFKA_CONSUMER_ENABLE_AUTO_COMMIT=true", DUCKLAKE);

    CHECK_INT(c->kafka.passthrough_count, 0);
    CHECK_INT(c->warning_count, 3);
    CHECK(warned(c, "KAFKA_CONSUMER_GROUP_ID has no effect: set GROUP_ID"));
    CHECK(warned(c, "KAFKA_CONSUMER_FETCH_MIN_BYTES has no effect: set FETCH_MIN_BYTES"));
    CHECK_HAS(BAD("KAFKA_CONSUMER_AUTO_OFFSET_RESET=latest", DUCKLAKE), "KAFKA_AUTO_OFFSET_RESET");
    CHECK_HAS(BAD("KAFKA_CONSUMER_=1", DUCKLAKE), "KAFKA_CONSUMER_");
}

static void sasl_mechanism_alone_is_pointed_out(void)
{
    CHECK(warned(GOOD("KAFKA_CONSUMER_SASL_MECHANISM=PLAIN", DUCKLAKE), "SASL_MECHANISMS"));
    CHECK_INT(GOOD("KAFKA_CONSUMER_SASL_MECHANISM=PLAIN", "KAFKA_CONSUMER_SASL_MECHANISMS=PLAIN",
                   DUCKLAKE)
                  ->warning_count,
              0);
}

/* --- DuckLake -------------------------------------------------------------------------------- */

static void conninfo_is_built_and_quoted(void)
{
    const struct mp_config *c =
        GOOD("DUCKLAKE_RDS_PASSWORD=it's \\ a 'secret'", "DUCKLAKE_RDS_HOST=db host", DUCKLAKE);

    CHECK_TEXT(c->ducklake.catalog,
               "postgres:host='db host' port='5432' dbname='ducklake' user='ducklake' "
               "password='it\\'s \\\\ a \\'secret\\''");
    CHECK_TEXT(c->ducklake.catalog_name, "db host:5432/ducklake");
    c = GOOD("DUCKLAKE_RDS_PORT=6000", "DUCKLAKE_RDS_DATABASE=d", "DUCKLAKE_RDS_USERNAME=u",
             DUCKLAKE);
    CHECK_TEXT(c->ducklake.catalog, "postgres:host='db' port='6000' dbname='d' user='u' "
                                    "password='hunter2-of-the-database'");
    CHECK_TEXT(GOOD("DUCKLAKE_RDS_PORT=", DUCKLAKE)->ducklake.catalog_name, "db:5432/ducklake");
    CHECK_HAS(BAD("DUCKLAKE_RDS_PORT=pg", DUCKLAKE), "DUCKLAKE_RDS_PORT is \"pg\"");
}

static void catalog_may_be_named_whole(void)
{
    const struct mp_config *c = GOOD("MILLPOND_CATALOG=sqlite:/data/lake.sqlite",
                                     "DUCKLAKE_RDS_HOST=", "DUCKLAKE_RDS_PASSWORD=", DUCKLAKE);

    CHECK_TEXT(c->ducklake.catalog, "sqlite:/data/lake.sqlite");
    CHECK_TEXT(c->ducklake.catalog_name, "sqlite:/data/lake.sqlite");
    c = GOOD("MILLPOND_CATALOG=postgres:postgresql://u:pw@h/d", DUCKLAKE);
    CHECK_TEXT(c->ducklake.catalog, "postgres:postgresql://u:pw@h/d");
    CHECK_TEXT(c->ducklake.catalog_name, "postgres (from MILLPOND_CATALOG)");
    CHECK_HAS(BAD("MILLPOND_CATALOG=mysql:x", DUCKLAKE), "sqlite:PATH or postgres:CONNINFO");
    CHECK_HAS(BAD("MILLPOND_CATALOG=sqlite:", DUCKLAKE), "sqlite:PATH or postgres:CONNINFO");
    CHECK_HAS(BAD("MILLPOND_CATALOG=/data/lake.sqlite", DUCKLAKE), "MILLPOND_CATALOG");
}

static void table_and_schema_are_identifiers(void)
{
    CHECK_TEXT(GOOD("DUCKLAKE_SCHEMA= ", DUCKLAKE)->schema, "main");
    CHECK_TEXT(GOOD("DUCKLAKE_SCHEMA=s1", DUCKLAKE)->schema, "s1");
    CHECK_HAS(BAD("DUCKLAKE_TABLE=my-table", DUCKLAKE), "DUCKLAKE_TABLE is \"my-table\": allowed");
    CHECK_HAS(BAD("DUCKLAKE_TABLE=t; drop table t", DUCKLAKE), "DUCKLAKE_TABLE is");
    CHECK_HAS(BAD("DUCKLAKE_SCHEMA=a.b", DUCKLAKE), "DUCKLAKE_SCHEMA is \"a.b\"");
}

static void ducklake_numbers_and_keys(void)
{
    CHECK_INT(GOOD("DUCKLAKE_MAX_RETRY_COUNT=1", DUCKLAKE)->ducklake.race_retries_max, 1);
    CHECK_HAS(BAD("DUCKLAKE_MAX_RETRY_COUNT=0", DUCKLAKE), "DUCKLAKE_MAX_RETRY_COUNT is \"0\"");
    CHECK_TEXT(GOOD("DUCKLAKE_PARTITION_BY= year(ts), month(ts) ", DUCKLAKE)->partition_by,
               "year(ts), month(ts)");
    CHECK_TEXT(GOOD("DUCKLAKE_PARTITION_BY=", DUCKLAKE)->partition_by, "");
    CHECK_HAS(BAD("DUCKLAKE_PARTITION_BY=a;b", DUCKLAKE), "DUCKLAKE_PARTITION_BY is \"a;b\"");
    CHECK_HAS(BAD("DUCKLAKE_PARTITION_BY=truncate(3, a)", DUCKLAKE), "unknown transform");
    CHECK_INT(GOOD("MILLPOND_OFFSETS_FROM=kafka", DUCKLAKE)->ducklake.offsets_from,
              MP_OFFSETS_FROM_KAFKA);
    CHECK_HAS(BAD("MILLPOND_OFFSETS_FROM=zookeeper", DUCKLAKE), "one of lake, kafka");
}

static void duckdb_s3_settings_are_taken_over(void)
{
    const struct mp_config *c =
        GOOD("DUCKDB_S3_ENDPOINT=minio:9000", "DUCKDB_S3_ACCESS_KEY_ID=AKIA",
             "DUCKDB_S3_SECRET_ACCESS_KEY=s3cr3t+/=", "DUCKDB_S3_USE_SSL=False",
             "DUCKDB_S3_URL_STYLE=path", "DUCKDB_S3_REGION=eu-west-1", DUCKLAKE);

    CHECK_TEXT(c->s3.endpoint, "minio:9000");
    CHECK_TEXT(c->s3.access_key, "AKIA");
    CHECK_TEXT(c->s3.secret_key, "s3cr3t+/=");
    CHECK_TEXT(c->s3.region, "eu-west-1");
    CHECK(!c->s3.use_ssl);
    CHECK(c->s3.path_style);
    CHECK_HAS(BAD("DUCKDB_S3_ENDPOINT=", DUCKLAKE), "DUCKDB_S3_ENDPOINT is set but empty");
    CHECK_HAS(BAD("DUCKDB_S3_ENDPOINT=a'b", DUCKLAKE), "DUCKDB_S3_ENDPOINT is \"a'b\"");
    CHECK_HAS(BAD("DUCKDB_S3_USE_SSL=maybe", DUCKLAKE), "DUCKDB_S3_USE_SSL is \"maybe\"");
    CHECK_HAS(BAD("DUCKDB_S3_URL_STYLE=virtual", DUCKLAKE), "one of vhost, path");
    CHECK_HAS(BAD("DUCKDB_S3_ACCESS_KEY_ID=AKIA", DUCKLAKE), "DUCKDB_S3_SECRET_ACCESS_KEY");
    CHECK_HAS(
        BAD("DUCKDB_S3_SECRET_ACCESS_KEY=x", DUCKLAKE),
        "DUCKDB_S3_SECRET_ACCESS_KEY is \"(hidden)\", but DUCKDB_S3_ACCESS_KEY_ID is not set");
}

static void duckdb_settings_without_effect_are_one_notice(void)
{
    const struct mp_config *c =
        GOOD("DUCKLAKE_CONNECTION=:memory:", "DUCKDB_MEMORY_LIMIT=6GB", DUCKLAKE);

    CHECK_INT(c->warning_count, 1);
    CHECK(warned(c, "DUCKLAKE_CONNECTION, DUCKDB_MEMORY_LIMIT"));
}

/* --- hoglake --------------------------------------------------------------------------------- */

static void hoglake_settings_are_taken_over(void)
{
    const struct mp_config *c =
        GOOD("HOGLAKE_URL=https://hog.example/", "HOGLAKE_DATA_PATH=s3://bucket-1/a/b",
             "HOGLAKE_S3_ENDPOINT=http://minio:9000", "HOGLAKE_S3_ACCESS_KEY=k",
             "HOGLAKE_S3_SECRET_KEY=s", "HOGLAKE_S3_REGION=us-east-1",
             "HOGLAKE_PARTITION_BY=team_id, month(_inserted_at)", HOGLAKE);

    CHECK_TEXT(c->hoglake.url, "https://hog.example");
    CHECK_TEXT(c->hoglake.catalog, "millpond");
    CHECK_TEXT(c->schema, "analytics");
    CHECK_TEXT(c->table, "events");
    CHECK_TEXT(c->data_path, "s3://bucket-1/a/b");
    CHECK_TEXT(c->partition_by, "team_id, month(_inserted_at)");
    CHECK_TEXT(c->s3.endpoint, "http://minio:9000");
    CHECK_TEXT(c->s3.access_key, "k");
    CHECK_TEXT(c->s3.secret_key, "s");
    CHECK(c->s3.path_style);
    CHECK_INT(c->hoglake.attempts_max, 6);
    CHECK_INT(c->hoglake.request_ms_max, 45000);
    CHECK_INT(c->hoglake.upload_concurrency, 64);
    CHECK_INT(c->hoglake.plan_age_s_max, 6 * 86400);
    CHECK(!GOOD(HOGLAKE)->s3.path_style);
    CHECK_TEXT(GOOD(HOGLAKE)->data_path, "");
}

static void hoglake_names_have_their_own_rules(void)
{
    CHECK_TEXT(GOOD("HOGLAKE_TABLE=a-b", HOGLAKE)->table, "a-b");
    CHECK_TEXT(GOOD("HOGLAKE_NAMESPACE=_x", HOGLAKE)->schema, "_x");
    CHECK_HAS(BAD("HOGLAKE_CATALOG=Millpond", HOGLAKE), "HOGLAKE_CATALOG is \"Millpond\"");
    CHECK_HAS(BAD("HOGLAKE_CATALOG=1m", HOGLAKE), "HOGLAKE_CATALOG is \"1m\"");
    CHECK_HAS(BAD("HOGLAKE_NAMESPACE=9x", HOGLAKE), "HOGLAKE_NAMESPACE is \"9x\"");
    CHECK_HAS(BAD("HOGLAKE_TABLE=a b", HOGLAKE), "HOGLAKE_TABLE is \"a b\"");
    CHECK_HAS(BAD("HOGLAKE_URL=hog:8080", HOGLAKE), "HOGLAKE_URL is \"hog:8080\"");
    CHECK_HAS(BAD("HOGLAKE_DATA_PATH=/data", HOGLAKE), "HOGLAKE_DATA_PATH is \"/data\"");
    CHECK_HAS(BAD("HOGLAKE_DATA_PATH=s3://ab/x", HOGLAKE), "s3://bucket");
    CHECK_HAS(BAD("HOGLAKE_DATA_PATH=s3://Bucket/x", HOGLAKE), "s3://bucket");
    CHECK_HAS(BAD("HOGLAKE_DATA_PATH=s3://bucket-/x", HOGLAKE), "s3://bucket");
}

static void hoglake_key_pair_goes_together(void)
{
    CHECK_TEXT(GOOD("HOGLAKE_S3_ACCESS_KEY= ", "HOGLAKE_S3_SECRET_KEY=", HOGLAKE)->s3.access_key,
               "");
    CHECK_HAS(BAD("HOGLAKE_S3_ACCESS_KEY=k", HOGLAKE),
              "HOGLAKE_S3_ACCESS_KEY is \"k\", but HOGLAKE_S3_SECRET_KEY is not set");
    CHECK_HAS(BAD("HOGLAKE_S3_SECRET_KEY=k", HOGLAKE), "but HOGLAKE_S3_ACCESS_KEY is not set");
}

static void hoglake_cross_checks(void)
{
    CHECK_HAS(BAD("DUCKLAKE_PARTITION_BY=a", HOGLAKE), "HOGLAKE_PARTITION_BY");
    CHECK_TEXT(GOOD("DUCKLAKE_PARTITION_BY=a", "HOGLAKE_PARTITION_BY=b", HOGLAKE)->partition_by,
               "b");
    CHECK_HAS(BAD("HOGLAKE_PARTITION_BY=", HOGLAKE), "it names no key");
    CHECK_HAS(BAD("HOGLAKE_PARTITION_BY=bucket(4, a)", HOGLAKE), "positive number of buckets");
    CHECK_HAS(BAD("HOGLAKE_PARTITION_BY=bucket(a, +4)", HOGLAKE), "positive number of buckets");
    CHECK_HAS(BAD("DUCKLAKE_PARTITION_BY=bucket(1_6, a)", DUCKLAKE), "positive number of buckets");
    CHECK_HAS(BAD("MILLPOND_VARIANT_COLUMNS=properties", HOGLAKE), "MILLPOND_VARIANT_COLUMNS");
    /* the other destination's settings are not even looked at */
    GOOD("DUCKLAKE_TABLE=no-name", "DUCKLAKE_MAX_RETRY_COUNT=0", "DUCKDB_S3_ENDPOINT=", HOGLAKE);
    GOOD("HOGLAKE_TABLE=1", "HOGLAKE_MAX_RETRY_COUNT=x", "HOGLAKE_S3_ACCESS_KEY=k", DUCKLAKE);
}

static void hoglake_liveness_budget(void)
{
    GOOD("HOGLAKE_MAX_RETRY_COUNT=6", "HOGLAKE_REQUEST_TIMEOUT_S=45", HOGLAKE);  /* 428.75 */
    GOOD("HOGLAKE_MAX_RETRY_COUNT=7", "HOGLAKE_REQUEST_TIMEOUT_S=30", HOGLAKE);  /* 426.25 */
    GOOD("HOGLAKE_MAX_RETRY_COUNT=5", "HOGLAKE_REQUEST_TIMEOUT_S=60", HOGLAKE);  /* 418.75 */
    GOOD("HOGLAKE_MAX_RETRY_COUNT=1", "HOGLAKE_REQUEST_TIMEOUT_S=460", HOGLAKE); /* 480 */
    CHECK_HAS(BAD("HOGLAKE_MAX_RETRY_COUNT=8", HOGLAKE),
              "HOGLAKE_MAX_RETRY_COUNT 8 with HOGLAKE_REQUEST_TIMEOUT_S 45 makes one write last up "
              "to 633.75 s");
    CHECK_HAS(BAD("HOGLAKE_MAX_RETRY_COUNT=7", HOGLAKE), "531.25 s");
    CHECK_HAS(BAD("HOGLAKE_MAX_RETRY_COUNT=8", "HOGLAKE_REQUEST_TIMEOUT_S=30", HOGLAKE),
              "513.75 s");
    CHECK_HAS(BAD("HOGLAKE_MAX_RETRY_COUNT=0", HOGLAKE), "HOGLAKE_MAX_RETRY_COUNT is \"0\"");
    CHECK_HAS(BAD("HOGLAKE_REQUEST_TIMEOUT_S=0", HOGLAKE), "HOGLAKE_REQUEST_TIMEOUT_S is \"0\"");
    CHECK_HAS(BAD("HOGLAKE_REQUEST_TIMEOUT_S=nan", HOGLAKE),
              "HOGLAKE_REQUEST_TIMEOUT_S is \"nan\"");
    CHECK_HAS(BAD("PYHOGLAKE_UPLOAD_CONCURRENCY=0", HOGLAKE),
              "PYHOGLAKE_UPLOAD_CONCURRENCY is \"0\"");
}

static void what_nobody_knows_halts_unless_said_otherwise(void)
{
    CHECK_INT(GOOD(HOGLAKE)->hoglake.unsettled_plan, MP_UNSETTLED_HALT);
    CHECK_INT(GOOD("MILLPOND_HOGLAKE_UNSETTLED_PLAN=again", HOGLAKE)->hoglake.unsettled_plan,
              MP_UNSETTLED_AGAIN);
    CHECK_INT(GOOD("MILLPOND_HOGLAKE_UNSETTLED_PLAN=skip", HOGLAKE)->hoglake.unsettled_plan,
              MP_UNSETTLED_SKIP);
    CHECK(!GOOD(HOGLAKE)->hoglake.lost_offsets_reset);
    CHECK(GOOD("MILLPOND_HOGLAKE_LOST_OFFSETS=reset", HOGLAKE)->hoglake.lost_offsets_reset);
    CHECK_HAS(BAD("MILLPOND_HOGLAKE_UNSETTLED_PLAN=retry", HOGLAKE),
              "MILLPOND_HOGLAKE_UNSETTLED_PLAN is \"retry\": allowed is one of halt, again, skip");
}

static void plan_age_is_a_duration(void)
{
    CHECK_INT(GOOD("MILLPOND_HOGLAKE_PLAN_AGE_MAX=90", HOGLAKE)->hoglake.plan_age_s_max, 90);
    CHECK_INT(GOOD("MILLPOND_HOGLAKE_PLAN_AGE_MAX=90s", HOGLAKE)->hoglake.plan_age_s_max, 90);
    CHECK_INT(GOOD("MILLPOND_HOGLAKE_PLAN_AGE_MAX=15m", HOGLAKE)->hoglake.plan_age_s_max, 900);
    CHECK_INT(GOOD("MILLPOND_HOGLAKE_PLAN_AGE_MAX=12h", HOGLAKE)->hoglake.plan_age_s_max, 43200);
    CHECK_HAS(BAD("MILLPOND_HOGLAKE_PLAN_AGE_MAX=6w", HOGLAKE), "\"6w\"");
    CHECK_HAS(BAD("MILLPOND_HOGLAKE_PLAN_AGE_MAX=d", HOGLAKE), "\"d\"");
    CHECK_HAS(BAD("MILLPOND_HOGLAKE_PLAN_AGE_MAX=0", HOGLAKE), "\"0\"");
}

/* --- records --------------------------------------------------------------------------------- */

static void filter_of_integers_is_typed(void)
{
    const struct mp_config *c = GOOD("MILLPOND_FILTER_KEEP_FIELD_NAME=team_id",
                                     "MILLPOND_FILTER_VALUES= 2, +3 ,, 1_000,-4", DUCKLAKE);

    CHECK_TEXT(c->keep.field, "team_id");
    CHECK(c->keep.integer);
    CHECK_INT(c->keep.count, 4);
    CHECK_INT(c->keep.integers[0], 2);
    CHECK_INT(c->keep.integers[1], 3);
    CHECK_INT(c->keep.integers[2], 1000);
    CHECK_INT(c->keep.integers[3], -4);
    CHECK_TEXT(c->keep.texts[2], "1000");
}

static void filter_of_mixed_values_is_text(void)
{
    const struct mp_config *c = GOOD("MILLPOND_FILTER_DROP_FIELD_NAME=event",
                                     "MILLPOND_FILTER_DROP_VALUES=+1,$pageview", DUCKLAKE);

    CHECK_TEXT(c->keep.field, "");
    CHECK(!c->drop.integer);
    CHECK_INT(c->drop.count, 2);
    CHECK_TEXT(c->drop.texts[0], "+1");
    CHECK_TEXT(c->drop.texts[1], "$pageview");
    c = GOOD("MILLPOND_FILTER_DROP_FIELD_NAME=event",
             "MILLPOND_FILTER_DROP_VALUES=1,18446744073709551616", DUCKLAKE);
    CHECK(!c->drop.integer);
    CHECK_TEXT(c->drop.texts[1], "18446744073709551616");
}

static void filter_settings_go_together(void)
{
    CHECK_HAS(BAD("MILLPOND_FILTER_KEEP_FIELD_NAME=a", DUCKLAKE), "MILLPOND_FILTER_VALUES");
    CHECK_HAS(BAD("MILLPOND_FILTER_VALUES=a", DUCKLAKE),
              "MILLPOND_FILTER_VALUES is \"a\", but MILLPOND_FILTER_KEEP_FIELD_NAME is not set");
    CHECK_HAS(BAD("MILLPOND_FILTER_DROP_FIELD_NAME=a", DUCKLAKE), "MILLPOND_FILTER_DROP_VALUES");
    CHECK_HAS(BAD("MILLPOND_FILTER_DROP_VALUES=a", DUCKLAKE), "MILLPOND_FILTER_DROP_FIELD_NAME");
    CHECK_HAS(BAD("MILLPOND_FILTER_KEEP_FIELD_NAME=a", "MILLPOND_FILTER_VALUES= , ,", DUCKLAKE),
              "names no value for MILLPOND_FILTER_KEEP_FIELD_NAME");
    CHECK_HAS(BAD("MILLPOND_FILTER_KEEP_FIELD_NAME=$a", "MILLPOND_FILTER_VALUES=1", DUCKLAKE),
              "MILLPOND_FILTER_KEEP_FIELD_NAME is \"$a\"");
}

static void filter_on_a_uuid_column_wants_uuids(void)
{
    const struct mp_config *c =
        GOOD("MILLPOND_TYPED_COLUMNS=id:uuid", "MILLPOND_FILTER_KEEP_FIELD_NAME=id",
             "MILLPOND_FILTER_VALUES=00000000000000000000000000000001,"
             "{0e0b6c8e-0000-0000-0000-00000000000a}",
             DUCKLAKE);

    CHECK(!c->keep.integer);
    CHECK_INT(c->keep.count, 2);
    CHECK_TEXT(c->keep.texts[0], "00000000000000000000000000000001");
    /* all of them digits: still texts */
    c = GOOD("MILLPOND_TYPED_COLUMNS=id:uuid", "MILLPOND_FILTER_KEEP_FIELD_NAME=id",
             "MILLPOND_FILTER_VALUES=00000000000000000000000000000001", DUCKLAKE);
    CHECK(!c->keep.integer);
    CHECK_TEXT(c->keep.texts[0], "00000000000000000000000000000001");
    CHECK_HAS(BAD("MILLPOND_TYPED_COLUMNS=id:uuid", "MILLPOND_FILTER_DROP_FIELD_NAME=id",
                  "MILLPOND_FILTER_DROP_VALUES=17", DUCKLAKE),
              "MILLPOND_FILTER_DROP_VALUES has \"17\"");
}

static void sort_columns_are_identifiers_once_each(void)
{
    const struct mp_config *c = GOOD("MILLPOND_SORT_BY= team_id,,timestamp , team_id", DUCKLAKE);

    CHECK_INT(c->sort_by_count, 2);
    CHECK_TEXT(c->sort_by[0], "team_id");
    CHECK_TEXT(c->sort_by[1], "timestamp");
    CHECK_HAS(BAD("MILLPOND_SORT_BY=a,b desc", DUCKLAKE), "MILLPOND_SORT_BY is \"a,b desc\"");
}

static void pins_are_typed(void)
{
    const struct mp_config *c =
        GOOD("MILLPOND_TYPED_COLUMNS=ts:timestamptz, id:UUID,n:bigint,d:double,b:boolean,"
             "$s:varchar,n:bigint",
             DUCKLAKE);
    static const struct {
        const char *name;
        enum mp_type_id type;
    } want[] = {{"ts", MP_TYPE_TIMESTAMPTZ}, {"id", MP_TYPE_UUID}, {"n", MP_TYPE_INT64},
                {"d", MP_TYPE_DOUBLE},       {"b", MP_TYPE_BOOL},  {"$s", MP_TYPE_VARCHAR}};

    CHECK_INT(c->pin_count, 6);
    for (uint32_t i = 0; i < 6; i++) {
        CHECK_TEXT(c->pins[i].name, want[i].name);
        CHECK_INT(c->pins[i].type.id, want[i].type);
        CHECK_INT(c->pins[i].type.precision, 0);
    }
}

static void pins_are_refused_with_the_types_there_are(void)
{
    CHECK_HAS(BAD("MILLPOND_TYPED_COLUMNS=a", DUCKLAKE), "MILLPOND_TYPED_COLUMNS has \"a\"");
    CHECK_HAS(BAD("MILLPOND_TYPED_COLUMNS=a:int", DUCKLAKE),
              "\"a:int\": the type is not known; allowed types are bigint, boolean, double, "
              "timestamptz, uuid, varchar");
    CHECK_HAS(BAD("MILLPOND_TYPED_COLUMNS=:bigint", DUCKLAKE), "there is no column name");
    CHECK_HAS(BAD("MILLPOND_TYPED_COLUMNS=a:bigint,a:double", DUCKLAKE),
              "gives column \"a\" two types");
    CHECK_HAS(BAD("MILLPOND_TYPED_COLUMNS=a:bigint,A:double", DUCKLAKE), "two types");
    CHECK_INT(GOOD("MILLPOND_TYPED_COLUMNS=a:bigint,A:double", HOGLAKE)->pin_count, 2);
    CHECK_HAS(BAD("MILLPOND_TYPED_COLUMNS=_inserted_at:bigint", DUCKLAKE), "_inserted_at");
    CHECK_INT(GOOD("MILLPOND_TYPED_COLUMNS=_inserted_at:timestamptz", DUCKLAKE)->pin_count, 0);
    CHECK_HAS(BAD("MILLPOND_TYPED_COLUMNS=_rescued_data:varchar", DUCKLAKE),
              "MILLPOND_RESCUED_COLUMN");
}

static void variant_columns_are_checked(void)
{
    const struct mp_config *c = GOOD("MILLPOND_VARIANT_COLUMNS=properties, person", DUCKLAKE);

    CHECK_INT(c->ducklake.variant_count, 2);
    CHECK_TEXT(c->ducklake.variants[1].source, "person");
    CHECK_TEXT(c->ducklake.variants[1].name, "person_variant");
    CHECK_TEXT(c->ducklake.variant_key_prefix, "$");
    CHECK_INT(c->ducklake.variant_key_count, 0);
    c = GOOD("MILLPOND_VARIANT_COLUMNS=a,A,b", "MILLPOND_VARIANT_KEYS=x, y",
             "MILLPOND_VARIANT_KEY_PREFIX=", DUCKLAKE);
    CHECK_INT(c->ducklake.variant_count, 2); /* a and A are one column */
    CHECK_TEXT(c->ducklake.variant_key_prefix, "");
    CHECK_INT(c->ducklake.variant_key_count, 2);
    CHECK_TEXT(c->ducklake.variant_keys[1], "y");
    CHECK_HAS(BAD("MILLPOND_VARIANT_COLUMNS=a,b_VARIANT", DUCKLAKE),
              "MILLPOND_VARIANT_COLUMNS is \"a,b_VARIANT\"");
    CHECK_HAS(BAD("MILLPOND_VARIANT_COLUMNS=_inserted_at", DUCKLAKE), "the pipeline's own");
    CHECK_HAS(BAD("MILLPOND_VARIANT_COLUMNS=_rescued_data", DUCKLAKE), "the pipeline's own");
    CHECK_HAS(BAD("MILLPOND_VARIANT_COLUMNS=a", "MILLPOND_RESCUED_COLUMN=a_variant", DUCKLAKE),
              "the pipeline's own");
    CHECK_HAS(
        BAD("MILLPOND_VARIANT_COLUMNS=a", "MILLPOND_TYPED_COLUMNS=A_Variant:bigint", DUCKLAKE),
        "MILLPOND_TYPED_COLUMNS pins \"a_variant\"");
    CHECK_HAS(BAD("MILLPOND_VARIANT_COLUMNS=a\nb", DUCKLAKE), "MILLPOND_VARIANT_COLUMNS");
}

static void rescued_column_may_be_turned_off_or_named(void)
{
    CHECK_TEXT(GOOD("MILLPOND_RESCUED_COLUMN=", DUCKLAKE)->rescued_column, "");
    CHECK_TEXT(GOOD("MILLPOND_RESCUED_COLUMN=rest of it", DUCKLAKE)->rescued_column, "rest of it");
    CHECK_HAS(BAD("MILLPOND_RESCUED_COLUMN=_inserted_at", DUCKLAKE), "MILLPOND_RESCUED_COLUMN");
    CHECK_HAS(BAD("MILLPOND_RESCUED_COLUMN=_ducklake_internal_x", DUCKLAKE),
              "MILLPOND_RESCUED_COLUMN");
    CHECK_HAS(BAD("MILLPOND_RESCUED_COLUMN=a\nb", DUCKLAKE), "\"a\\x0ab\"");
    CHECK_HAS(BAD("MILLPOND_RESCUED_COLUMN=rest of it", HOGLAKE), "MILLPOND_RESCUED_COLUMN");
    CHECK_HAS(BAD("MILLPOND_RESCUED_COLUMN=_Hog_x", HOGLAKE), "MILLPOND_RESCUED_COLUMN");
}

static void quarantine_table_is_another_table(void)
{
    CHECK_TEXT(GOOD("MILLPOND_QUARANTINE_TABLE=bad_events", DUCKLAKE)->quarantine_table,
               "bad_events");
    CHECK_HAS(BAD("MILLPOND_QUARANTINE_TABLE=events", DUCKLAKE), "allowed is another one");
    CHECK_HAS(BAD("MILLPOND_QUARANTINE_TABLE=EVENTS", DUCKLAKE), "allowed is another one");
    CHECK_HAS(BAD("MILLPOND_QUARANTINE_TABLE=a b", DUCKLAKE),
              "MILLPOND_QUARANTINE_TABLE is \"a b\"");
}

/* --- include list ---------------------------------------------------------------------------- */

#define KEEP "MILLPOND_FILTER_KEEP_FIELD_NAME=team_id", "MILLPOND_FILTER_VALUES=1"
#define URL  "MILLPOND_INCLUDE_VALUES_URL=http://flags/values"

static void include_list_settings(void)
{
    const struct mp_config *c = GOOD(KEEP, URL, DUCKLAKE);

    CHECK_TEXT(c->include.url, "http://flags/values");
    CHECK_INT(c->include.mode, MP_INCLUDE_SHADOW);
    CHECK_INT(c->include.poll_ms, 60000);
    CHECK_INT(c->include.removal_polls, 5);
    CHECK_INT(c->include.request_ms_max, 10000);
    CHECK_INT(c->include.start_ms_max, 60000);
    c = GOOD(KEEP, URL, "MILLPOND_INCLUDE_VALUES_MODE=Authoritative",
             "MILLPOND_INCLUDE_VALUES_POLL_INTERVAL_S=0.25",
             "MILLPOND_INCLUDE_VALUES_REMOVAL_POLLS=1",
             "MILLPOND_INCLUDE_VALUES_AUTH_HEADER_NAME=X-Token",
             "MILLPOND_INCLUDE_VALUES_AUTH_TOKEN=t", DUCKLAKE);
    CHECK_INT(c->include.mode, MP_INCLUDE_AUTHORITATIVE);
    CHECK_INT(c->include.poll_ms, 250);
    CHECK_TEXT(c->include.header_name, "X-Token");
    CHECK_TEXT(c->include.header_value, "t");
    CHECK(warned(c, "MILLPOND_INCLUDE_VALUES_REMOVAL_POLLS is 1"));
}

static void log_export_is_checked_when_it_is_on(void)
{
    CHECK_TEXT(GOOD("POSTHOG_LOGS_ENDPOINT=nowhere", DUCKLAKE)->telemetry.token, "");
    CHECK_HAS(BAD("POSTHOG_PROJECT_TOKEN=t", "POSTHOG_LOGS_ENDPOINT=nowhere", DUCKLAKE),
              "begins with http:// or https://");
}

static void include_list_is_refused(void)
{
    CHECK_HAS(BAD(URL, DUCKLAKE), "MILLPOND_FILTER_KEEP_FIELD_NAME");
    CHECK_HAS(BAD("MILLPOND_INCLUDE_VALUES_MODE=shadow", DUCKLAKE),
              "MILLPOND_INCLUDE_VALUES_MODE is \"shadow\", but MILLPOND_INCLUDE_VALUES_URL is not");
    CHECK_HAS(BAD("MILLPOND_INCLUDE_VALUES_AUTH_TOKEN=x", DUCKLAKE),
              "AUTH_TOKEN is \"(hidden)\", but");
    CHECK_HAS(BAD(KEEP, URL, "MILLPOND_INCLUDE_VALUES_AUTH_TOKEN=x", DUCKLAKE), "both or neither");
    CHECK_HAS(BAD(KEEP, URL, "MILLPOND_INCLUDE_VALUES_AUTH_HEADER_NAME=X", DUCKLAKE),
              "both or neither");
    CHECK_HAS(BAD(KEEP, URL, "MILLPOND_INCLUDE_VALUES_MODE=both", DUCKLAKE), "\"both\"");
    CHECK_HAS(BAD(KEEP, URL, "MILLPOND_INCLUDE_VALUES_POLL_INTERVAL_S=0", DUCKLAKE), "\"0\"");
    CHECK_HAS(BAD(KEEP, URL, "MILLPOND_INCLUDE_VALUES_REMOVAL_POLLS=0", DUCKLAKE), "\"0\"");
    CHECK_HAS(BAD(KEEP, URL, "MILLPOND_INCLUDE_VALUES_REQUEST_TIMEOUT_S=-1", DUCKLAKE), "\"-1\"");
    CHECK_HAS(BAD(KEEP, URL, "MILLPOND_INCLUDE_VALUES_STARTUP_TIMEOUT_S=x", DUCKLAKE), "\"x\"");
    CHECK_HAS(BAD(KEEP, "MILLPOND_INCLUDE_VALUES_URL=flags", DUCKLAKE), "http://");
    CHECK_HAS(BAD(KEEP, URL, "MILLPOND_INCLUDE_VALUES_AUTH_HEADER_NAME=a b",
                  "MILLPOND_INCLUDE_VALUES_AUTH_TOKEN=x", DUCKLAKE),
              "HTTP header");
    CHECK_HAS(BAD(KEEP, URL, "MILLPOND_INCLUDE_VALUES_AUTH_HEADER_NAME=X",
                  "MILLPOND_INCLUDE_VALUES_AUTH_TOKEN=x\r\nY: z", DUCKLAKE),
              "HTTP header");
}

/* --- order, slips, unsafe values ------------------------------------------------------------- */

static void first_fault_in_order_is_reported(void)
{
    CHECK_HAS(BAD("FLUSH_SIZE=x", "MILLPOND_SORT_BY=a b", "POD_NAME=x",
                  "KAFKA_TOPIC=", "MILLPOND_DESTINATION=y", DUCKLAKE),
              "KAFKA_TOPIC");
    CHECK_HAS(BAD("FLUSH_SIZE=x", "MILLPOND_SORT_BY=a b", "POD_NAME=x", "MILLPOND_DESTINATION=y",
                  DUCKLAKE),
              "MILLPOND_DESTINATION");
    CHECK_HAS(
        BAD("FLUSH_SIZE=x", "MILLPOND_SORT_BY=a b", "POD_NAME=x", "DUCKLAKE_TABLE=", DUCKLAKE),
        "POD_NAME");
    CHECK_HAS(BAD("FLUSH_SIZE=x", "MILLPOND_SORT_BY=a b", "DUCKLAKE_TABLE=", DUCKLAKE),
              "DUCKLAKE_TABLE");
    CHECK_HAS(BAD("FLUSH_SIZE=x", "MILLPOND_SORT_BY=a b", "MILLPOND_FILTER_VALUES=1",
                  "KAFKA_CONSUMER_AUTO_OFFSET_RESET=x", DUCKLAKE),
              "KAFKA_CONSUMER_AUTO_OFFSET_RESET");
    CHECK_HAS(BAD("FLUSH_SIZE=x", "MILLPOND_SORT_BY=a b", "MILLPOND_FILTER_VALUES=1", DUCKLAKE),
              "MILLPOND_FILTER_VALUES");
    CHECK_HAS(BAD("FLUSH_SIZE=x", "MILLPOND_SORT_BY=a b", "MILLPOND_TYPED_COLUMNS=x", DUCKLAKE),
              "MILLPOND_SORT_BY");
    CHECK_HAS(BAD("FLUSH_SIZE=x", "KAFKA_BOOTSTRAP_SERVERS=", DUCKLAKE), "KAFKA_BOOTSTRAP_SERVERS");
    CHECK_HAS(BAD("MILLPOND_HTTP_PORT=x", "KAFKA_AUTO_OFFSET_RESET=x", "FLUSH_SIZE=x", DUCKLAKE),
              "FLUSH_SIZE");
    CHECK_HAS(BAD("MILLPOND_HTTP_PORT=x", "KAFKA_AUTO_OFFSET_RESET=x", DUCKLAKE),
              "KAFKA_AUTO_OFFSET_RESET");
    CHECK_HAS(BAD("MILLPOND_HTTP_PORT=x", "MILLPOND_INCLUDE_VALUES_MODE=x", DUCKLAKE),
              "MILLPOND_HTTP_PORT");
}

static void slips_are_pointed_out(void)
{
    CHECK(warned(GOOD("MILLPOND_FLUSH_SIZE=1", DUCKLAKE),
                 "MILLPOND_FLUSH_SIZE has no effect: did you mean FLUSH_SIZE?"));
    CHECK(
        warned(GOOD("MILLPOND_FLUSH_INTERVAL_MS=1", DUCKLAKE), "did you mean FLUSH_INTERVAL_MS?"));
    CHECK(warned(GOOD("KAFKA_TOPICS=a,b", DUCKLAKE), "did you mean KAFKA_TOPIC?"));
    CHECK(
        warned(GOOD("MILLPOND_TYPED_COLUMN=x", DUCKLAKE), "did you mean MILLPOND_TYPED_COLUMNS?"));
    CHECK(warned(GOOD("DUCKLAKE_PARTITON_BY=x", DUCKLAKE), "did you mean DUCKLAKE_PARTITION_BY?"));
    CHECK(warned(GOOD("FLUSH_SZIE=5", DUCKLAKE), "did you mean FLUSH_SIZE?"));
    CHECK(warned(GOOD("BUFFER_MAX_BYTES=5", DUCKLAKE), "replaced by FLUSH_SIZE"));
    CHECK(warned(GOOD("MILLPOND_TIMESTAMP_COLUMNS=ts", DUCKLAKE), "MILLPOND_TYPED_COLUMNS"));
}

static void foreign_names_are_left_alone(void)
{
    const struct mp_config *c =
        GOOD("MILLPOND_SERVICE_HOST=10.0.0.1", "MILLPOND_PORT=tcp://10.0.0.1:8000",
             "MILLPOND_PORT_8000_TCP_PORT=8000", "KAFKA_PORT=9092", "KAFKA_HOME=/opt/kafka",
             "PATH=/bin", "LOG_DIR=/tmp", "HOME=/root", "=odd", "odd", DUCKLAKE);

    CHECK_INT(c->warning_count, 0);
}

static void unsafe_values_are_escaped_and_cut(void)
{
    char long_value[700] = "FLUSH_SIZE=";
    const char *text;

    memset(long_value + 11, 'x', 600);
    CHECK(strlen(BAD(long_value, DUCKLAKE)) < 400);
    text = BAD("FLUSH_SIZE=\x1b[2J\n\x7f", DUCKLAKE);
    CHECK_HAS(text, "\\x1b[2J\\x0a\\x7f");
    CHECK_HAS(BAD("KAFKA_TOPIC=\xff", DUCKLAKE), "UTF-8");
}

static void first_of_two_values_counts(void)
{
    CHECK_INT(GOOD("FLUSH_SIZE=1", "FLUSH_SIZE=2", DUCKLAKE)->flush_bytes, 1);
}

static void load_needs_no_kafka(void)
{
    const struct mp_config_options options = {.without_kafka = true};
    const char *const environment[] = {"MILLPOND_CATALOG=sqlite:/l", "DUCKLAKE_TABLE=events",
                                       "DUCKLAKE_DATA_PATH=/d", "HOSTNAME=laptop", NULL};
    const struct mp_config *c = good(__FILE__, __LINE__, environment, &options);

    CHECK_TEXT(c->kafka.topic, "load");
    CHECK_TEXT(c->kafka.group, "millpond-load-events");
    CHECK_TEXT(c->kafka.bootstrap_servers, "");
    CHECK_INT(c->replica_count, 1);
    CHECK_INT(c->ordinal, 0);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(defaults_are_those_of_the_documentation),
        TEST(required_settings_are_named_when_missing_or_empty),
        TEST(topics_are_named_as_brokers_take_them),
        TEST(data_paths_are_directories_or_s3),
        TEST(names_have_an_end),
        TEST(destination_is_one_of_two),
        TEST(ordinal_comes_from_the_pods_name),
        TEST(names_are_derived_as_before),
        TEST(numbers_are_range_checked),
        TEST(cores_decide_the_encode_threads),
        TEST(compression_is_one_of_four),
        TEST(offset_reset_is_earliest_or_latest),
        TEST(http_port_may_be_blank_or_zero),
        TEST(log_settings_have_pythons_names),
        TEST(passthrough_becomes_client_keys),
        TEST(passthrough_of_our_own_keys_has_no_effect),
        TEST(sasl_mechanism_alone_is_pointed_out),
        TEST(conninfo_is_built_and_quoted),
        TEST(catalog_may_be_named_whole),
        TEST(table_and_schema_are_identifiers),
        TEST(ducklake_numbers_and_keys),
        TEST(duckdb_s3_settings_are_taken_over),
        TEST(duckdb_settings_without_effect_are_one_notice),
        TEST(hoglake_settings_are_taken_over),
        TEST(hoglake_names_have_their_own_rules),
        TEST(hoglake_key_pair_goes_together),
        TEST(hoglake_cross_checks),
        TEST(hoglake_liveness_budget),
        TEST(what_nobody_knows_halts_unless_said_otherwise),
        TEST(plan_age_is_a_duration),
        TEST(filter_of_integers_is_typed),
        TEST(filter_of_mixed_values_is_text),
        TEST(filter_settings_go_together),
        TEST(filter_on_a_uuid_column_wants_uuids),
        TEST(sort_columns_are_identifiers_once_each),
        TEST(pins_are_typed),
        TEST(pins_are_refused_with_the_types_there_are),
        TEST(variant_columns_are_checked),
        TEST(rescued_column_may_be_turned_off_or_named),
        TEST(quarantine_table_is_another_table),
        TEST(include_list_settings),
        TEST(include_list_is_refused),
        TEST(log_export_is_checked_when_it_is_on),
        TEST(first_fault_in_order_is_reported),
        TEST(slips_are_pointed_out),
        TEST(foreign_names_are_left_alone),
        TEST(unsafe_values_are_escaped_and_cut),
        TEST(first_of_two_values_counts),
        TEST(load_needs_no_kafka),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
