#include "lake/ducklake/time.h"

#include "base/civil.h"

#include <stdio.h>

void mp_dl_time_text(int64_t wall_us, char ret[MP_DL_TIME_TEXT])
{
    int64_t days = mp_floor_div(wall_us, MP_DAY_US);
    int64_t us = mp_floor_mod(wall_us, MP_DAY_US), seconds = us / 1000000;
    struct mp_civil date = mp_civil_of_days(days);

    snprintf(ret, MP_DL_TIME_TEXT, "%04lld-%02u-%02u %02d:%02d:%02d.%06d+00", (long long)date.year,
             date.month, date.day, (int)(seconds / 3600), (int)(seconds / 60 % 60),
             (int)(seconds % 60), (int)(us % 1000000));
}
