#include "column/temporal.h"

#include "base/civil.h"

/* Takes exactly `count` digits off the front; false leaves text as it was. */
static bool take_digits(struct mp_str *text, unsigned count, unsigned *ret)
{
    unsigned value = 0;

    if (text->size < count)
        return false;
    for (unsigned i = 0; i < count; i++) {
        unsigned digit = (unsigned)(unsigned char)text->data[i] - '0';

        if (digit > 9)
            return false;
        value = value * 10 + digit;
    }
    *text = mp_str_n(text->data + count, text->size - count);
    *ret = value;
    return true;
}

static bool take_byte(struct mp_str *text, char byte)
{
    if (text->size == 0 || text->data[0] != byte)
        return false;
    *text = mp_str_n(text->data + 1, text->size - 1);
    return true;
}

static bool take_date(struct mp_str *text, int64_t *ret_days)
{
    struct mp_civil date;
    unsigned year;

    if (!take_digits(text, 4, &year) || !take_byte(text, '-') ||
        !take_digits(text, 2, &date.month) || !take_byte(text, '-') ||
        !take_digits(text, 2, &date.day))
        return false;
    date.year = year;
    if (year == 0 || !mp_civil_valid(date))
        return false;
    *ret_days = mp_days_of_civil(date);
    return true;
}

/* Nine digits at most count; what is behind them is cut but must be digits. */
static bool take_fraction(struct mp_str *text, unsigned *ret_ns, bool *ret_finer)
{
    unsigned ns = 0, digits = 0, digit;

    while (take_digits(text, 1, &digit)) {
        if (digits < 9) {
            ns = ns * 10 + digit;
            digits++;
        } else if (digit) {
            *ret_finer = true;
        }
    }
    if (digits == 0)
        return false;
    for (; digits < 9; digits++)
        ns *= 10;
    *ret_ns = ns;
    return true;
}

/* HH[:MM[:SS[.f]]] in nanoseconds of the day. */
static bool take_clock(struct mp_str *text, int64_t *ret_ns, bool *ret_finer)
{
    unsigned hour, minute = 0, second = 0, ns = 0;

    if (!take_digits(text, 2, &hour))
        return false;
    if (take_byte(text, ':')) {
        if (!take_digits(text, 2, &minute))
            return false;
        if (take_byte(text, ':')) {
            if (!take_digits(text, 2, &second))
                return false;
            if (take_byte(text, '.') && !take_fraction(text, &ns, ret_finer))
                return false;
        }
    }
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    *ret_ns = ((int64_t)hour * 3600 + minute * 60 + second) * 1000000000 + ns;
    return true;
}

/* 'Z', +hh, +hhmm, +hh:mm or nothing; seconds to take off. */
static bool take_zone(struct mp_str *text, int64_t *ret_seconds)
{
    unsigned hour, minute = 0;
    int sign;

    *ret_seconds = 0;
    if (text->size == 0 || take_byte(text, 'Z'))
        return true;
    sign = text->data[0] == '-' ? -1 : 1;
    if (!take_byte(text, '+') && !take_byte(text, '-'))
        return false;
    if (!take_digits(text, 2, &hour))
        return false;
    if (text->size && (take_byte(text, ':') || text->data[0] != ':') &&
        !take_digits(text, 2, &minute))
        return false;
    if (hour > 23 || minute > 59)
        return false;
    *ret_seconds = sign * ((int64_t)hour * 3600 + minute * 60);
    return true;
}

bool mp_timestamp_of_text(struct mp_str text, struct mp_timestamp *ret)
{
    int64_t days, ns = 0, zone = 0, us;
    bool finer = false;

    if (!take_date(&text, &days))
        return false;
    if (text.size) {
        if (!take_byte(&text, 'T') && !take_byte(&text, ' '))
            return false;
        if (!take_clock(&text, &ns, &finer) || !take_zone(&text, &zone))
            return false;
    }
    us = days * MP_DAY_US + ns / 1000 - zone * 1000000;
    if (text.size || us < MP_TIMESTAMP_US_MIN || us > MP_TIMESTAMP_US_MAX)
        return false;
    *ret = (struct mp_timestamp){.us = us, .below_ns = (uint32_t)(ns % 1000), .finer = finer};
    return true;
}

bool mp_date_of_text(struct mp_str text, int32_t *ret)
{
    int64_t days;

    if (!take_date(&text, &days) || text.size)
        return false;
    *ret = (int32_t)days;
    return true;
}

bool mp_time_of_text(struct mp_str text, int64_t *ret)
{
    bool finer = false;
    int64_t ns;

    if (text.size < 5 || !take_clock(&text, &ns, &finer) || text.size || ns % 1000 || finer)
        return false;
    *ret = ns / 1000;
    return true;
}
