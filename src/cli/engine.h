/* cli/engine.h - everything around a pipeline that runs: log, metrics, health, HTTP, signals, and
 * the doors to lake and store as the configuration names them.
 *
 * The verb brings the source. One engine runs one pipeline.
 */
#ifndef MP_CLI_ENGINE_H
#define MP_CLI_ENGINE_H

#include "config/config.h"
#include "obs/otlp.h"
#include "pipeline/include_poll.h"
#include "pipeline/pipeline.h"

struct mp_engine; /* opaque, see engine.c */

/* All borrowed for the engine's life. */
struct mp_engine_options {
    const struct mp_config *config;
    struct mp_str group, topic; /* the book of record's key */
    enum mp_code (*open_source)(void *self, struct mp_engine *engine, struct mp_err *err,
                                struct mp_source **ret);
    /* A second one with every partition, where the first may not have them all; else NULL. */
    enum mp_code (*open_whole_source)(void *self, struct mp_engine *engine, struct mp_err *err,
                                      struct mp_source **ret);
    void *self;
    bool http;       /* serve probes and metrics */
    bool until_end;  /* stop at the source's end */
    bool from_start; /* begin at the source's first record, whatever is recorded */
    bool quiet;      /* only warnings are logged */
    /* Called about ten times a second while the pipeline runs; NULL: not. */
    void (*progress)(void *self, const struct mp_pipeline_counts *counts);
};

/* Makes log, metrics, health and, if wanted, the HTTP server. */
enum mp_code mp_engine_open(const struct mp_engine_options *options, struct mp_err *err,
                            struct mp_engine **ret);
/* Runs until it is stopped by SIGTERM or SIGINT, at the source's end, or by a fault. */
enum mp_code mp_engine_run(struct mp_engine *engine, struct mp_err *err);
/* Asks run to publish what it has and return; from any thread. */
void mp_engine_stop(struct mp_engine *engine);
struct mp_pipeline_counts mp_engine_counts(const struct mp_engine *engine);
/* No-op on NULL. */
void mp_engine_close(struct mp_engine *engine);

/* For the verb's open_source. */
const struct mp_env *mp_engine_env(const struct mp_engine *engine);
struct mp_log *mp_engine_log(const struct mp_engine *engine);
struct mp_metrics *mp_engine_metrics(const struct mp_engine *engine);

/* The destination's catalog and its object store, as the configuration names them. */
enum mp_code mp_open_lake(const struct mp_config *config, struct mp_str group, struct mp_str topic,
                          bool read_only, const struct mp_env *env, struct mp_err *err,
                          struct mp_lake **ret);
/* Where a DuckLake's objects go, as its catalog would say it; made in arena. */
struct mp_str mp_data_path(const struct mp_config *config, struct mp_arena *arena);
enum mp_code mp_open_store(const struct mp_config *config, struct mp_str data_path,
                           const struct mp_env *env, struct mp_err *err, struct mp_store **ret);
/* What time the catalog's server has, microseconds since 1970. MP_NOT_FOUND: it has no clock. */
enum mp_code mp_catalog_clock(const struct mp_config *config, const struct mp_env *env,
                              struct mp_err *err, int64_t *ret_wall_us);

/* Settings as the rooms take them; texts are borrowed of config. */
struct mp_filter_options mp_filter_options_of(const struct mp_config *config,
                                              const struct mp_config_filter *filter);
/* Without on_list, which is the caller's. Borrows keep. */
struct mp_include_poll_options mp_include_options_of(const struct mp_config *config,
                                                     const struct mp_filter_options *keep);
#define MP_OTLP_RESOURCE 9 /* attributes */
struct mp_otlp_options mp_otlp_options_of(const struct mp_config *config, struct mp_str topic,
                                          struct mp_str group,
                                          struct mp_otlp_attribute resource[MP_OTLP_RESOURCE]);

#endif
