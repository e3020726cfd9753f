/* base/civil.h - calendar arithmetic in UTC, the proleptic Gregorian calendar, no time zones.
 *
 * After  Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms" (eras of 400 years that
 *        begin in March).
 */
#ifndef MP_BASE_CIVIL_H
#define MP_BASE_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

struct mp_civil {
    int64_t year;        /* 0 is 1 BC */
    unsigned month, day; /* from 1 */
};

#define MP_DAY_US INT64_C(86400000000)

/* Days since 1970-01-01. The date must be valid. */
int64_t mp_days_of_civil(struct mp_civil date);
struct mp_civil mp_civil_of_days(int64_t days);
/* Whether month and day exist in that year. */
bool mp_civil_valid(struct mp_civil date);

/* Division that rounds towards minus infinity. */
static inline int64_t mp_floor_div(int64_t value, int64_t by)
{
    int64_t quotient = value / by;

    return quotient - (value % by != 0 && (value < 0) != (by < 0));
}

/* What that division leaves: from 0 up to by - 1. Unlike value - quotient * by it cannot overflow.
 */
static inline int64_t mp_floor_mod(int64_t value, int64_t by)
{
    int64_t rest = value % by;

    return rest < 0 ? rest + by : rest;
}

#endif
