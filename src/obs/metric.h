/* obs/metric.h - counters, gauges and histograms, in the Prometheus text format.
 *
 * What exists stands in metrics.def, one line each; nothing is registered at run time. Every
 * series carries the labels pipeline and broker_source first. Label-free series are there (0)
 * from the start, labelled ones once used, as with the Python client. Counters have a _created
 * gauge beside them.
 *
 * Threads  any. Callers on the hot path add once per batch, not once per record.
 */
#ifndef MP_OBS_METRIC_H
#define MP_OBS_METRIC_H

#include "base/buf.h"
#include "base/env.h"
#include "base/str.h"

enum mp_metric {
#define MP_METRIC(id, type, name, label, buckets, help) MP_M_##id,
#include "obs/metrics.def"
#undef MP_METRIC
    MP_M_COUNT
};

#define MP_METRICS_CONTENT_TYPE "text/plain; version=1.0.0; charset=utf-8"
/* A good max for the page's buffer. */
#define MP_METRICS_PAGE_BYTES_MAX ((size_t)64 * 1024 * 1024)

struct mp_metrics;

struct mp_metrics *mp_metrics_new(struct mp_str pipeline, struct mp_str broker_source,
                                  const struct mp_env *env);
void mp_metrics_free(struct mp_metrics *metrics);

/* label: the value of the metric's own label, NULL where it has none. metrics NULL: no-op. */
void mp_metric_add(struct mp_metrics *metrics, enum mp_metric id, const char *label, double value);
void mp_metric_set(struct mp_metrics *metrics, enum mp_metric id, const char *label, double value);
void mp_metric_observe(struct mp_metrics *metrics, enum mp_metric id, const char *label,
                       double value);
/* A counter's or gauge's value; 0 where the series is not there. */
double mp_metric_value(struct mp_metrics *metrics, enum mp_metric id, const char *label);
/* The whole page, process_* series included; what has no room up to ret's max is left out. */
void mp_metrics_print(struct mp_metrics *metrics, struct mp_buf *ret);

#endif
