#include "base/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Decimal digits of a number: 0.d1d2d3... times ten to the power. */
struct digits {
    char text[20];
    int count;
    int power; /* of the first digit's place: 1 for 1 to 9.99 */
};

/* Takes %.*e of value apart, without trailing zeros. */
static struct digits digits_of(double value, int count)
{
    char text[40];
    struct digits digits = {.count = 0};
    char *exponent;

    snprintf(text, sizeof(text), "%.*e", count - 1, fabs(value));
    exponent = strchr(text, 'e');
    for (const char *at = text; at < exponent; at++)
        if (*at >= '0' && *at <= '9')
            digits.text[digits.count++] = *at;
    while (digits.count > 1 && digits.text[digits.count - 1] == '0')
        digits.count--;
    digits.power = atoi(exponent + 1) + 1;
    return digits;
}

static bool reads_back(double value, int count, bool single)
{
    char text[40];

    snprintf(text, sizeof(text), "%.*e", count - 1, value);
    return single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value;
}

/* A normal number's shortest text is its correctly rounded one of 15 (6) digits without trailing
 * zeros, whenever that reads back; subnormals have fewer digits to give, so they begin at one. */
static struct digits shortest(double value, bool single)
{
    double smallest = single ? 1.17549435e-38 : 2.2250738585072014e-308;
    int first = single ? 6 : 15, last = single ? 9 : 17, count = first;

    if (fabs(value) < smallest)
        count = 1;
    while (count < last && !reads_back(value, count, single))
        count++;
    return digits_of(value, count);
}

static size_t number_text(double value, bool single, char ret[MP_NUMBER_TEXT])
{
    struct digits digits;
    char *at = ret;
    int place = 0;

    if (isnan(value))
        return (size_t)snprintf(ret, MP_NUMBER_TEXT, "nan");
    if (isinf(value))
        return (size_t)snprintf(ret, MP_NUMBER_TEXT, value < 0 ? "-inf" : "inf");
    if (signbit(value))
        *at++ = '-';
    if (value == 0)
        return (size_t)(at - ret) + (size_t)snprintf(at, 4, "0.0");
    digits = shortest(value, single);
    if (digits.power > 16 || digits.power < -3) { /* 1e16 has power 17, 1e-5 has -4 */
        *at++ = digits.text[0];
        if (digits.count > 1)
            *at++ = '.';
        memcpy(at, digits.text + 1, (size_t)digits.count - 1);
        at += digits.count - 1;
        at += snprintf(at, 8, "e%+03d", digits.power - 1);
        return (size_t)(at - ret);
    }
    if (digits.power <= 0) {
        *at++ = '0';
        *at++ = '.';
        for (int zero = digits.power; zero < 0; zero++)
            *at++ = '0';
    }
    for (; place < digits.count || place < digits.power; place++) {
        if (place == digits.power && place > 0)
            *at++ = '.';
        *at++ = place < digits.count ? digits.text[place] : '0';
    }
    if (digits.power >= digits.count) {
        *at++ = '.';
        *at++ = '0';
    }
    *at = 0;
    return (size_t)(at - ret);
}

size_t mp_double_text(double value, char ret[MP_NUMBER_TEXT])
{
    return number_text(value, false, ret);
}

size_t mp_float_text(float value, char ret[MP_NUMBER_TEXT])
{
    return number_text(value, true, ret);
}

size_t mp_i64_text(int64_t value, char ret[MP_NUMBER_TEXT])
{
    char digits[24];
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    size_t count = 0, length = 0;

    do
        digits[count++] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        ret[length++] = '-';
    while (count)
        ret[length++] = digits[--count];
    ret[length] = 0;
    return length;
}
