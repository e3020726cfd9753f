#include "lake/ducklake/time.h"

#include <assert.h>
#include <stdio.h>

#define SECONDS_DAY 86400

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Proleptic Gregorian calendar, counted in eras of 400 years that begin on 1 March. */
static int64_t civil(int64_t days, unsigned *ret_month, unsigned *ret_day)
{
    int64_t shifted = days + 719468; /* days from 0000-03-01 to 1970-01-01 */
    int64_t era = floor_div(shifted, 146097);
    int64_t of_era = shifted - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t march = (5 * of_year + 2) / 153; /* 0 is March */

    *ret_day = (unsigned)(of_year - (153 * march + 2) / 5 + 1);
    *ret_month = (unsigned)(march < 10 ? march + 3 : march - 9);
    return year + era * 400 + (*ret_month <= 2);
}

bool mp_dl_date_text(int64_t days, char ret[MP_DL_TIME_TEXT])
{
    unsigned month, day;
    int64_t year = civil(days, &month, &day);

    if (year < 1 || year > 9999)
        return false;
    snprintf(ret, MP_DL_TIME_TEXT, "%04lld-%02u-%02u", (long long)year, month, day);
    return true;
}

static int64_t power10(unsigned digits)
{
    int64_t power = 1;

    while (digits--)
        power *= 10;
    return power;
}

void mp_dl_clock_text(int64_t units, unsigned digits, char ret[MP_DL_TIME_TEXT])
{
    int64_t scale = power10(digits);
    int64_t seconds = units / scale, fraction = units % scale;
    int used = snprintf(ret, MP_DL_TIME_TEXT, "%02d:%02d:%02d", (int)(seconds / 3600),
                        (int)(seconds / 60 % 60), (int)(seconds % 60));

    assert(units >= 0);
    if (fraction == 0)
        return;
    while (fraction % 10 == 0) {
        fraction /= 10;
        digits--;
    }
    snprintf(ret + used, MP_DL_TIME_TEXT - (size_t)used, ".%0*lld", (int)digits,
             (long long)fraction);
}

bool mp_dl_stamp_text(int64_t units, unsigned digits, char ret[MP_DL_TIME_TEXT])
{
    int64_t day_units = SECONDS_DAY * power10(digits);
    int64_t days = floor_div(units, day_units);
    char clock[MP_DL_TIME_TEXT], date[MP_DL_TIME_TEXT];

    if (!mp_dl_date_text(days, date))
        return false;
    mp_dl_clock_text(units - days * day_units, digits, clock);
    snprintf(ret, MP_DL_TIME_TEXT, "%.24s %.20s", date, clock);
    return true;
}

void mp_dl_time_text(int64_t wall_us, char ret[MP_DL_TIME_TEXT])
{
    int64_t days = floor_div(wall_us, SECONDS_DAY * (int64_t)1000000);
    int64_t us = wall_us - days * SECONDS_DAY * 1000000;
    int64_t seconds = us / 1000000;
    char date[MP_DL_TIME_TEXT];

    if (!mp_dl_date_text(days, date))
        snprintf(date, sizeof(date), "0001-01-01");
    snprintf(ret, MP_DL_TIME_TEXT, "%.20s %02d:%02d:%02d.%06d+00", date, (int)(seconds / 3600),
             (int)(seconds / 60 % 60), (int)(seconds % 60), (int)(us % 1000000));
}
