/* obs/otlp.h - log lines to an OTLP endpoint, beside the log's own descriptor.
 *
 * OTLP over HTTP with binary protobuf: POST, Authorization: Bearer, one request for up to batch_max
 * lines, sent when so many wait or batch_ms after the first of them. A request that is not
 * answered, or answered with 429 or 5xx, is sent again a few times; any other answer but 2xx gives
 * its lines up.
 *
 *     log  --line-->  queue (bounded)  --thread-->  endpoint
 *
 * Always   P1 logging never waits for the network: a line that has no room is dropped and counted
 *          P2 closing waits at most close_ms_max for what is queued
 *          P3 the token is in no log line and no error
 *          P4 what this room logs about itself goes to the descriptor only
 * Threads  the sink's line is called by the log, from any thread; open and close from one.
 * After    "OTLP Specification" 1.x, OTLP/HTTP: paths, content type, retryable answers.
 */
#ifndef MP_OBS_OTLP_H
#define MP_OBS_OTLP_H

#include "base/err.h"
#include "obs/log.h"
#include "obs/metric.h"
#include "obs/otlp_encode.h"

/* Texts are copied. Numbers of 0 stand for what is said behind them. */
struct mp_otlp_options {
    const char *url;
    struct mp_str token;
    const struct mp_otlp_attribute *resource; /* who we are; an empty value leaves its key out */
    uint32_t resource_count;
    struct mp_str more;      /* further ones, "key=value,..." with %XX; resource wins */
    uint32_t queue_max;      /* lines; 4096 */
    uint32_t batch_max;      /* lines; 512 */
    uint32_t batch_ms;       /* 5000 */
    uint32_t request_ms_max; /* 10000 */
    uint32_t close_ms_max;   /* 5000 */
    uint32_t again_ms;       /* before the second attempt, doubled for each further one; 1000 */
};

struct mp_otlp;

/* Starts the thread. Borrows env, log and metrics until close; metrics may be NULL. The caller
 * makes it a sink of log with mp_log_set_sink, and takes it out before close. MP_IO: no thread to
 * be had. */
enum mp_code mp_otlp_open(const struct mp_otlp_options *options, const struct mp_env *env,
                          struct mp_log *log, struct mp_metrics *metrics, struct mp_err *err,
                          struct mp_otlp **ret);
/* Lends the sink, good until close. */
const struct mp_log_sink *mp_otlp_sink(const struct mp_otlp *otlp);
/* Sends one request that says who we are and holds no line, to see whether the endpoint takes ours;
 * not open's business. MP_REFUSED: it answered, and not with 2xx (err->sys). log may be NULL. */
enum mp_code mp_otlp_probe(const struct mp_otlp_options *options, const struct mp_env *env,
                           struct mp_log *log, struct mp_err *err);
/* Sends what waits (P2) and ends. No-op on NULL. */
void mp_otlp_close(struct mp_otlp *otlp);

#endif
