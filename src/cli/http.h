/* cli/http.h - what is served: /metrics, /healthz, /readyz, /status.json and a page at /. */
#ifndef MP_CLI_HTTP_H
#define MP_CLI_HTTP_H

#include "net/http_server.h"
#include "obs/health.h"
#include "obs/metric.h"
#include "pipeline/pipeline.h"

/* Borrowed, itself and what it names, until the server is closed. */
struct mp_http_parts {
    struct mp_metrics *metrics;
    struct mp_health *health;
    struct mp_pipeline *pipeline;
};

enum mp_code mp_cli_http_open(uint16_t port, const struct mp_http_parts *parts, struct mp_err *err,
                              struct mp_http_server **ret);

#endif
