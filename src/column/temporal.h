/* column/temporal.h - dates and times from text.
 *
 * ISO 8601 / RFC 3339, strictly: YYYY-MM-DD, then optionally 'T' or a blank and HH, HH:MM or
 * HH:MM:SS, then optionally a fraction of any length, then optionally 'Z', +hh, +hhmm or +hh:mm
 * (a missing zone is UTC). Years 0001 to 9999. No leap second, no 24:00, no blanks around.
 */
#ifndef MP_COLUMN_TEMPORAL_H
#define MP_COLUMN_TEMPORAL_H

#include "base/str.h"

/* 0001-01-01T00:00:00Z and the last microsecond of 9999-12-31. */
#define MP_TIMESTAMP_US_MIN INT64_C(-62135596800000000)
#define MP_TIMESTAMP_US_MAX INT64_C(253402300799999999)

struct mp_timestamp {
    int64_t us;        /* microseconds since 1970-01-01 UTC, cut */
    uint32_t below_ns; /* nanoseconds behind the microsecond, cut: 0 to 999 */
    bool finer;        /* what was cut there is not 0 */
};

/* False: not a timestamp, or out of range once its zone is taken off. */
bool mp_timestamp_of_text(struct mp_str text, struct mp_timestamp *ret);
/* YYYY-MM-DD only; days since 1970-01-01. */
bool mp_date_of_text(struct mp_str text, int32_t *ret);
/* HH:MM[:SS[.fraction]], at most six significant digits of fraction; microseconds. */
bool mp_time_of_text(struct mp_str text, int64_t *ret);

#endif
