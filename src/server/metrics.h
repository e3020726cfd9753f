/* server/metrics.h - counters, gauges and histograms of the service, Prometheus text format.
 *
 * What exists stands in metrics.def. Label values beyond 2,000 series of one metric are taken
 * together as "other", so no request can make the page grow without end.
 *
 * Threads  any.
 */
#ifndef MP_SERVER_METRICS_H
#define MP_SERVER_METRICS_H

#include "base/buf.h"

enum mp_server_metric {
#define MP_SERVER_METRIC(id, type, name, label, help) MP_SM_##id,
#include "server/metrics.def"
#undef MP_SERVER_METRIC
    MP_SM_COUNT
};

struct mp_server_metrics;

struct mp_server_metrics *mp_server_metrics_new(void);
void mp_server_metrics_free(struct mp_server_metrics *metrics);
/* labels: values in the order of the table, separated by ','; NULL where there are none. Gives the
 * sum. */
double mp_server_metrics_add(struct mp_server_metrics *metrics, enum mp_server_metric id,
                             const char *labels, double value);
void mp_server_metrics_set(struct mp_server_metrics *metrics, enum mp_server_metric id,
                           double value);
void mp_server_metrics_observe(struct mp_server_metrics *metrics, enum mp_server_metric id,
                               const char *labels, uint64_t us);
void mp_server_metrics_print(struct mp_server_metrics *metrics, struct mp_buf *ret);

#endif
