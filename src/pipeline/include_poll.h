/* pipeline/include_poll.h - asks for an include list again and again, in a thread of its own.
 *
 * GET with one header of the caller's, no redirects, an answer of at most 4 MiB, every poll_ms give
 * or take a tenth. What an answer does to the held set stands in include.h.
 *
 *     shadow         the list only moves gauges: what it has and the static one has not, and so on
 *     authoritative  the held set (static values are its pins) is handed out whenever it changes
 *
 * An answer that does not come, or is not such a list, is a failed poll: counted, warned of, and
 * nothing changes.
 *
 * Threads  on_list is called from the poller's thread; everything else from any.
 * Always   V1 the header's value is in no log line and no error
 */
#ifndef MP_PIPELINE_INCLUDE_POLL_H
#define MP_PIPELINE_INCLUDE_POLL_H

#include "base/env.h"
#include "base/err.h"
#include "obs/log.h"
#include "obs/metric.h"
#include "pipeline/filter.h"

/* All borrowed until free. */
struct mp_include_poll_options {
    const char *url;
    struct mp_str header_name, header_value; /* empty: none */
    bool authoritative;                      /* else shadow */
    uint32_t poll_ms, request_ms_max;
    uint32_t removal_polls;
    const struct mp_filter_options *keep; /* field and static values */
    void *self;
    /* A new list for the field; its memory is good during the call. Not called in shadow. */
    void (*on_list)(void *self, const struct mp_filter_options *keep);
};

struct mp_include_poll;

/* Starts to poll at once. log and metrics may be NULL. MP_IO: the system gives no thread. */
enum mp_code mp_include_poll_open(const struct mp_include_poll_options *options,
                                  const struct mp_env *env, struct mp_log *log,
                                  struct mp_metrics *metrics, struct mp_err *err,
                                  struct mp_include_poll **ret);
/* Whether a list has been accepted yet. MP_TIMEOUT: there was no answer yet. MP_IO: there was none
 * that could be accepted, and why the last one could not. */
enum mp_code mp_include_poll_accepted(struct mp_include_poll *poll, struct mp_err *err);
/* Ends a request under way, and the thread. No-op on NULL. */
void mp_include_poll_close(struct mp_include_poll *poll);

#endif
