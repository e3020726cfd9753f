#include "base/civil.h"

int64_t mp_days_of_civil(struct mp_civil date)
{
    int64_t year = date.year - (date.month <= 2);
    int64_t era = mp_floor_div(year, 400);
    int64_t year_of_era = year - era * 400;
    int64_t month = date.month > 2 ? date.month - 3 : date.month + 9; /* March is 0 */
    int64_t day_of_year = (153 * month + 2) / 5 + date.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * 146097 + day_of_era - 719468;
}

struct mp_civil mp_civil_of_days(int64_t days)
{
    int64_t shifted = days + 719468;
    int64_t era = mp_floor_div(shifted, 146097);
    int64_t day_of_era = shifted - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;
    struct mp_civil date = {
        .year = year_of_era + era * 400,
        .month = (unsigned)(month < 10 ? month + 3 : month - 9),
        .day = (unsigned)(day_of_year - (153 * month + 2) / 5 + 1),
    };

    date.year += date.month <= 2;
    return date;
}

bool mp_civil_valid(struct mp_civil date)
{
    static const unsigned char days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (date.year % 4 == 0 && date.year % 100 != 0) || date.year % 400 == 0;

    if (date.month < 1 || date.month > 12 || date.day < 1 || date.day > days[date.month - 1])
        return false;
    return date.month != 2 || date.day < 29 || leap;
}
