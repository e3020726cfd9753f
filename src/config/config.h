/* config/config.h - the environment, read once, checked, and laid out as plain structs.
 *
 * Everything that can be set stands in settings.def; parsing, checks, `millpond config` and
 * docs/settings.md come from that table. Nothing is opened here: a configuration fault is found
 * before the first socket.
 *
 * Order    settings are read in a fixed order, so of several faults always the same is reported:
 *          topic, destination, ordinal and replicas, the destination's own, group,
 * KAFKA_CONSUMER_*, filters, sort, pins, variants, bootstrap servers, numbers, offset reset, HTTP
 * port, include list, telemetry. Memory   all texts lie in the arena given to load, each with a NUL
 * behind it. Secrets  no function of this room puts a secret into an error, a warning or a printed
 * table.
 */
#ifndef MP_CONFIG_CONFIG_H
#define MP_CONFIG_CONFIG_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "column/type.h"

enum mp_destination { MP_DESTINATION_DUCKLAKE, MP_DESTINATION_HOGLAKE };
enum mp_offset_reset { MP_RESET_EARLIEST, MP_RESET_LATEST };
enum mp_unsettled_plan { MP_UNSETTLED_HALT, MP_UNSETTLED_AGAIN, MP_UNSETTLED_SKIP };
enum mp_offsets_from { MP_OFFSETS_FROM_LAKE, MP_OFFSETS_FROM_KAFKA };
enum mp_compression {
    MP_COMPRESSION_ZSTD,
    MP_COMPRESSION_SNAPPY,
    MP_COMPRESSION_LZ4,
    MP_COMPRESSION_NONE
};
enum mp_include_mode { MP_INCLUDE_SHADOW, MP_INCLUDE_AUTHORITATIVE };

struct mp_config_pair {
    struct mp_str key, value;
};

/* A keep or drop filter. A list is one of integers when every value reads as one (and fits int64);
 * texts then holds their plain decimal spelling, for columns of text. */
struct mp_config_filter {
    struct mp_str field; /* empty: no filter */
    bool integer;
    const int64_t *integers;    /* [count] where integer */
    const struct mp_str *texts; /* [count] */
    uint32_t count;
};

struct mp_config_pin {
    struct mp_str name;
    struct mp_type type;
};

/* Empty text: not set. */
struct mp_config_s3 {
    struct mp_str endpoint, region, access_key, secret_key;
    bool use_ssl;    /* where endpoint names no scheme */
    bool path_style; /* else virtual-host style */
};

struct mp_config_kafka {
    struct mp_str bootstrap_servers, topic, group;
    struct mp_str client_id;                  /* "millpond-{topic}-{table}-{ordinal}" */
    const struct mp_config_pair *passthrough; /* client keys, in the order of the environment */
    uint32_t passthrough_count;
    int32_t fetch_bytes_min, fetch_wait_ms_max, stats_interval_ms;
    uint32_t consume_batch; /* at least 10 */
    enum mp_offset_reset reset;
    struct mp_str aws_region, aws_role_session_name;
};

/* A column that is made of another one's values. */
struct mp_config_variant {
    struct mp_str source, name;
};

struct mp_config_ducklake {
    struct mp_str catalog;      /* "sqlite:PATH" or "postgres:CONNINFO"; holds the password */
    struct mp_str catalog_name; /* the same for people, without any secret */
    uint32_t race_retries_max;
    enum mp_offsets_from offsets_from;
    const struct mp_config_variant *variants;
    uint32_t variant_count;
    struct mp_str variant_key_prefix; /* may be empty */
    const struct mp_str *variant_keys;
    uint32_t variant_key_count;
};

struct mp_config_hoglake {
    struct mp_str url; /* root, without a '/' at its end and without "/v1" */
    struct mp_str catalog;
    uint32_t attempts_max, request_ms_max, upload_concurrency;
    uint64_t plan_age_s_max;
    enum mp_unsettled_plan unsettled_plan;
    bool lost_offsets_reset;
};

/* The polled include list; url empty: none. */
struct mp_config_include {
    struct mp_str url, header_name, header_value;
    enum mp_include_mode mode;
    uint32_t poll_ms, request_ms_max, start_ms_max, removal_polls;
};

struct mp_config_telemetry {
    struct mp_str token; /* empty: no export */
    struct mp_str endpoint, namespace_name, instance_id, version, attributes;
};

#define MP_CONFIG_WARNINGS_MAX 64

struct mp_config {
    enum mp_destination destination;
    struct mp_str destination_name; /* "ducklake" or "hoglake" */
    uint32_t ordinal, replica_count;
    struct mp_str pod; /* the name the ordinal was taken from */

    struct mp_str table;
    struct mp_str schema;       /* DuckLake schema or hoglake namespace */
    struct mp_str data_path;    /* may be empty for hoglake: the catalog knows it */
    struct mp_str partition_by; /* in the destination's own grammar; empty: none */
    struct mp_str pipeline;     /* metric label, "{topic}-{table}" */
    struct mp_str author;       /* "millpond/{table}/{ordinal}" */

    struct mp_config_kafka kafka;
    struct mp_config_s3 s3; /* of the chosen destination */
    struct mp_config_ducklake ducklake;
    struct mp_config_hoglake hoglake;

    struct mp_config_filter keep, drop;
    struct mp_config_include include;
    const struct mp_str *sort_by;
    uint32_t sort_by_count;
    const struct mp_config_pin *pins;
    uint32_t pin_count;
    struct mp_str rescued_column;   /* empty: off */
    struct mp_str quarantine_table; /* empty: none */
    uint32_t columns_max;

    uint64_t flush_bytes; /* 0: every batch that has rows is flushed */
    uint32_t flush_interval_ms;
    uint64_t outage_ms_max; /* 0: for ever */
    enum mp_compression compression;
    uint32_t compression_level;
    uint32_t encode_threads;

    uint16_t http_port;
    struct mp_str broker_source;
    int log_level; /* as in Python's logging module: 10, 20, 30, 40, 50; 0: all */
    bool log_json;
    struct mp_config_telemetry telemetry;

    /* What looks like a slip, or has no effect; for the log, once, at start. */
    struct mp_str warnings[MP_CONFIG_WARNINGS_MAX];
    uint32_t warning_count;
};

struct mp_config_options {
    bool without_kafka; /* `load`: topic, brokers and replicas are not required; topic "load" */
    uint32_t cores;     /* for MILLPOND_ENCODE_THREADS; 0: asked from the system */
};

/* Reads environment ("NAME=value" texts, NULL at the end). MP_BAD_CONFIG: the error names the
 * variable, its value (unless it is a secret) and what is allowed. options may be NULL. */
enum mp_code mp_config_load(struct mp_arena *arena, char *const *environment,
                            const struct mp_config_options *options, struct mp_err *err,
                            const struct mp_config **ret);

/* The table for people: every setting with its meaning, default and effective value. config NULL
 * (it did not load): values as they stand in the environment. */
void mp_config_print(char *const *environment, const struct mp_config *config, struct mp_buf *ret);
/* docs/settings.md. */
void mp_config_print_markdown(struct mp_buf *ret);

#endif
