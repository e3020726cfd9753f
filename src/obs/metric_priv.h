/* obs/metric_priv.h - inner door between metric.c (the series), metric_print.c (the page) and
 * process.c (the process_* part of it). */
#ifndef MP_OBS_METRIC_PRIV_H
#define MP_OBS_METRIC_PRIV_H

#include "obs/metric.h"
#include "obs/metric_text.h"

#include <pthread.h>

enum mp_metric_type { MP_METRIC_COUNTER, MP_METRIC_GAUGE, MP_METRIC_HISTOGRAM };

/* One line of metrics.def. */
struct mp_metric_info {
    const char *name;
    enum mp_metric_type type;
    const char *label;     /* NULL: none */
    const double *buckets; /* upper bounds, ascending; +Inf is understood */
    uint32_t bucket_count;
    const char *help;
};

struct mp_metric_series {
    struct mp_metric_series *next;      /* of the metric, in order of first use */
    struct mp_metric_series *next_hash; /* of the hash chain */
    enum mp_metric id;
    double value;     /* histogram: sum */
    uint64_t count;   /* histogram: observations */
    uint64_t *counts; /* histogram: per bucket, not cumulated; one more for +Inf */
    double created_s; /* Unix time */
    char label[];     /* value; "" where the metric has no label */
};

enum { MP_METRIC_CHAINS = 1024 };

struct mp_metrics {
    const struct mp_env *env;
    char *labels; /* pipeline="...",broker_source="...", escaped; const after new */
    pthread_mutex_t lock;
    struct mp_metric_series *first[MP_M_COUNT], *last[MP_M_COUNT];
    struct mp_metric_series *chains[MP_METRIC_CHAINS];
    uint32_t series_count;
};

extern const struct mp_metric_info mp_metric_infos[MP_M_COUNT];

#endif
