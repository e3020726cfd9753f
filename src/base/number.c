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

/* Takes "d.ddde+xx" apart, without trailing zeros. */
static struct digits digits_of(const char *text)
{
    struct digits digits = {.count = 0};
    const char *exponent = strchr(text, 'e');

    for (const char *at = text; at < exponent; at++)
        if (*at >= '0' && *at <= '9')
            digits.text[digits.count++] = *at;
    while (digits.count > 1 && digits.text[digits.count - 1] == '0')
        digits.count--;
    digits.power = atoi(exponent + 1) + 1;
    return digits;
}

static bool reads_back(const char *text, double value, bool single)
{
    return single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value;
}

/* Makes the next larger text of as many digits; false where it would need one more. */
static bool raise_last_digit(char *text)
{
    for (char *at = strchr(text, 'e'); at-- > text;) {
        if (*at == '.')
            continue;
        if (*at < '9') {
            ++*at;
            return true;
        }
        *at = '0';
    }
    return false;
}

/* A normal number's shortest text is its correctly rounded one of 15 (6) digits without trailing
 * zeros, whenever that reads back; subnormals have fewer digits to give, so they begin at one.
 * Above a power of two lie twice as many reals that read back as below it, so there it may be that
 * the nearest text, which is below, does not, and the next one does. */
static struct digits shortest(double value, bool single)
{
    double smallest = single ? 1.17549435e-38 : 2.2250738585072014e-308;
    int first = single ? 6 : 15, last = single ? 9 : 17, count = first, exponent;
    bool power_of_two = frexp(value, &exponent) == 0.5;
    char text[40];

    if (value < smallest)
        count = 1;
    for (;; count++) {
        snprintf(text, sizeof(text), "%.*e", count - 1, value);
        if (count == last || reads_back(text, value, single))
            break;
        if (power_of_two && raise_last_digit(text) && reads_back(text, value, single))
            break;
    }
    return digits_of(text);
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
    digits = shortest(fabs(value), single);
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
