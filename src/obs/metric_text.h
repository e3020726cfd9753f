/* obs/metric_text.h - parts of a metrics page in the Prometheus text format, for every program that
 * has one. Pure, but for process.
 */
#ifndef MP_OBS_METRIC_TEXT_H
#define MP_OBS_METRIC_TEXT_H

#include "base/buf.h"

/* Adds name="value" with the value escaped. (Prometheus text format, "Comments, help text, and
 * type information") */
void mp_metric_print_label(struct mp_buf *ret, const char *name, struct mp_str value);
/* Adds a number as the Python client spells it: 0.0, 17.0, 0.005, 1e+06, +Inf. */
void mp_metric_print_number(struct mp_buf *ret, double value);
/* Adds the process_* part; what the kernel does not tell is left out. */
void mp_metric_print_process(struct mp_buf *ret);

#endif
