/* tests/json/number.c - numbers: their kind, their value to the last bit, and their range.
 *
 * Wanted doubles are given as bits worked out apart from the scanner and from strtod (exact
 * integer arithmetic), or are powers of two whose bits can be written down.
 */
#include "help.h"

#include <stdio.h>
#include <stdlib.h>

static void check_int(const char *text, int64_t want)
{
    struct pair pair = pair_new();
    const struct mp_json_field *value = scan_value(&pair, mp_str_c(text));

    CHECK_INT(value->kind, MP_JSON_INT);
    CHECK_INT(value->i64, want);
    CHECK_STR(value->text, mp_str_c(text));
    pair_free(&pair);
}

static void check_bigint(const char *text)
{
    struct pair pair = pair_new();
    const struct mp_json_field *value = scan_value(&pair, mp_str_c(text));

    CHECK_INT(value->kind, MP_JSON_BIGINT);
    CHECK_STR(value->text, mp_str_c(text));
    pair_free(&pair);
}

static void check_double(const char *text, uint64_t want)
{
    struct pair pair = pair_new();
    const struct mp_json_field *value = scan_value(&pair, mp_str_c(text));
    uint64_t bits;

    CHECK_INT(value->kind, MP_JSON_DOUBLE);
    CHECK_STR(value->text, mp_str_c(text));
    memcpy(&bits, &value->f64, sizeof(bits));
    if (bits != want)
        test_fail(__FILE__, __LINE__, "%.60s is %016" PRIx64 ", not %016" PRIx64, text, bits, want);
    pair_free(&pair);
}

/* Refused at the top level and inside. */
static void check_range(const char *text)
{
    struct pair pair = pair_new();
    char *nested = mp_alloc(strlen(text) + 16);

    CHECK_INT(scan_value_fault(&pair, mp_str_c(text)), MP_JSON_NUMBER_RANGE);
    CHECK_INT(pair.at, 5);
    snprintf(nested, strlen(text) + 16, "[{\"x\":%s}]", text);
    CHECK_INT(scan_value_fault(&pair, mp_str_c(nested)), MP_JSON_NUMBER_RANGE);
    CHECK_INT(pair.at, 11);
    mp_free(nested);
    pair_free(&pair);
}

static void number_integers_in_int64(void)
{
    check_int("0", 0);
    check_int("-0", 0);
    check_int("7", 7);
    check_int("-7", -7);
    check_int("12345678", 12345678);
    check_int("123456789", 123456789);
    check_int("-1234567890123456", -1234567890123456);
    check_int("9007199254740993", 9007199254740993);
    check_int("999999999999999999", 999999999999999999);
    check_int("1000000000000000000", 1000000000000000000);
    check_int("-1000000000000000000", -1000000000000000000);
    check_int("9223372036854775806", INT64_MAX - 1);
    check_int("9223372036854775807", INT64_MAX);
    check_int("-9223372036854775807", -INT64_MAX);
    check_int("-9223372036854775808", INT64_MIN);
}

static void number_integers_beyond_int64_keep_their_digits(void)
{
    check_bigint("9223372036854775808");
    check_bigint("-9223372036854775809");
    check_bigint("9999999999999999999");
    check_bigint("10000000000000000000");
    check_bigint("18446744073709551615");
    check_bigint("18446744073709551616");
    check_bigint("-99999999999999999999999999999999999999");
}

/* Those of 308 digits are all doubles, those of 310 none; the border below is exact. */
static void number_integers_beyond_the_doubles_are_refused(void)
{
    char text[512];

    memset(text, '9', 308);
    text[308] = 0;
    check_bigint(text);
    memset(text, '1', 309);
    text[309] = 0;
    check_bigint(text);
    text[0] = '2';
    check_range(text);
    memset(text, '9', 400);
    text[400] = 0;
    check_range(text);
}

/* The same border in all spellings: 2^1024 - 2^970 rounds to infinity, one below does not. */
static void number_border_of_the_doubles_is_exact(void)
{
    static const char half_way[] = /* 2^1024 - 2^970, 309 digits */
        "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017"
        "977"
        "587207096330286416692887910946555547851940402630657488671505820681908902000708383676273854"
        "845"
        "817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711"
        "559"
        "699508093042880177904174497792";
    char text[512];

    CHECK_INT(strlen(half_way), 309);
    check_range(half_way);
    snprintf(text, sizeof(text), "-%s", half_way);
    check_range(text);
    snprintf(text, sizeof(text), "%s.0", half_way);
    check_range(text);
    snprintf(text, sizeof(text), "%se0", half_way);
    check_range(text);
    snprintf(text, sizeof(text), "0.%se309", half_way);
    check_range(text);
    snprintf(text, sizeof(text), "%s000e-3", half_way);
    check_range(text);

    memcpy(text, half_way, sizeof(half_way));
    text[308] = '1'; /* one below */
    check_bigint(text);
    strcat(text, ".9999999999999999999999999999999999999999999999");
    check_double(text, 0x7fefffffffffffff);
    check_double("1.7976931348623157e308", 0x7fefffffffffffff);
    check_double("-1.7976931348623157e308", 0xffefffffffffffff);
    check_double("17976931348623157e292", 0x7fefffffffffffff);
    check_double("0.00017976931348623157e312", 0x7fefffffffffffff);
    check_range("1.7976931348623159e308");
    check_range("1e309");
    check_range("10e308");
    check_range("1e400");
    check_range("-1e400");
    check_range("1E+400");
    check_range("0.1e310");
    check_range("1e9223372036854775807");
    check_range("1e9223372036854775808");
    check_range("1e99999999999999999999999999");
    check_range("1234.56e306");
    check_double("123.456e305", 0x7fb194a9eecfde8b);
}

static void number_zero_with_any_exponent(void)
{
    check_double("0.0", 0);
    check_double("-0.0", 0x8000000000000000);
    check_double("0e400", 0);
    check_double("-0e400", 0x8000000000000000);
    check_double("0.000e99999999999999999999", 0);
    check_double("-0E-5", 0x8000000000000000);
}

static void number_tiny_ones_become_zero_or_the_least(void)
{
    check_double("1e-400", 0);
    check_double("-1e-400", 0x8000000000000000);
    check_double("1e-99999999999999999999", 0);
    check_double("5e-324", 1);
    check_double("4.9406564584124654e-324", 1);
    check_double("3e-324", 1);                                   /* above half of it */
    check_double("2e-324", 0);                                   /* below */
    check_double("2.2250738585072014e-308", 0x0010000000000000); /* least normal */
    check_double("2.225073858507201e-308", 0x000fffffffffffff);  /* largest subnormal */
    check_double("2.2250738585072011e-308", 0x000fffffffffffff); /* hung some readers once */
    check_double("2.2250738585072012e-308", 0x0010000000000000);
}

static void number_easy_doubles(void)
{
    check_double("1.0", 0x3ff0000000000000);
    check_double("1.5", 0x3ff8000000000000);
    check_double("-2.5", 0xc004000000000000);
    check_double("0.1", 0x3fb999999999999a);
    check_double("0.3", 0x3fd3333333333333);
    check_double("1e0", 0x3ff0000000000000);
    check_double("1e5", 0x40f86a0000000000);
    check_double("1E5", 0x40f86a0000000000);
    check_double("1e+5", 0x40f86a0000000000);
    check_double("1e22", 0x4480f0cf064dd592);
    check_double("1e23", 0x44b52d02c7e14af6);
    check_double("100000e-5", 0x3ff0000000000000);
    check_double("3.141592653589793", 0x400921fb54442d18);
    check_double("1772323200.206", 0x41da68e0600d2f1b);
    check_double("1e-7", 0x3e7ad7f29abcaf48);
}

static void number_hard_doubles(void)
{
    /* half way between two: to the even one; any digit more decides */
    check_double("9007199254740993.0", 0x4340000000000000);
    check_double("9007199254740993.0000000000000000000000000000000001", 0x4340000000000001);
    check_double("9007199254740995.0", 0x4340000000000002);
    check_double("9007199254740994.9999999999999999999999999999999999", 0x4340000000000001);
    check_double("123456789012345678901234567890.0", 0x45f8ee90ff6c373e);
    check_double("0.123456789012345678901234567890", 0x3fbf9add3746f65f);
    check_double("123456789012345678901234567890e-30", 0x3fbf9add3746f65f);
    check_double("8.41e21", 0x447c7e83209e90b2);
    check_double("7.3177701707893310e+15", 0x4339ff792393edd3);
    check_double("1.448997445238699", 0x3ff72f17f1f49aad);
    check_double("0.5367808650259945", 0x3fe12d4f108cf7b3);
    check_double("2.0606e-16", 0x3cadb245acc7929e);
}

/* 1 + 2^-53 exactly, the half way between 1 and the next: 53 digits behind the point. */
static void number_rest_beyond_all_digits_still_counts(void)
{
    static const char half[] = "1.00000000000000011102230246251565404236316680908203125";
    char *text = mp_alloc(5000);

    check_double(half, 0x3ff0000000000000);
    snprintf(text, 5000, "%s%0*d", half, 3000, 0);
    check_double(text, 0x3ff0000000000000);
    snprintf(text, 5000, "%s%0*d", half, 3000, 1);
    check_double(text, 0x3ff0000000000001);
    snprintf(text, 5000, "0.%0*de3000", 3000, 1);
    check_double(text, 0x3ff0000000000000);
    snprintf(text, 5000, "1%0*d.5e-3000", 3000, 0);
    check_double(text, 0x3ff0000000000000);
    mp_free(text);
}

static void number_long_digit_strings(void)
{
    size_t size = 1 << 20;
    char *text = mp_alloc(size + 16);
    struct pair pair = pair_new();

    memset(text, '3', size);
    CHECK_INT(scan_value_fault(&pair, mp_str_n(text, size)), MP_JSON_NUMBER_RANGE);
    text[1] = '.';
    CHECK_DOUBLE(scan_value(&pair, mp_str_n(text, size))->f64, 3.3333333333333335);
    memset(text, '0', size);
    text[1] = '.';
    text[size - 1] = '7';
    CHECK_DOUBLE(scan_value(&pair, mp_str_n(text, size))->f64, 0.0);
    memcpy(text + size, "e1048575", 8); /* size - 2 digits behind the point */
    CHECK_DOUBLE(scan_value(&pair, mp_str_n(text, size + 8))->f64, 70.0);
    pair_free(&pair);
    mp_free(text);
}

/* Every power of two that is a double, spelled by printf with all its digits. */
static void number_powers_of_two(void)
{
    char text[1200];

    for (int power = -1074; power < 1024; power++) {
        uint64_t bits =
            power < -1022 ? (uint64_t)1 << (power + 1074) : (uint64_t)(power + 1023) << 52;
        double value;

        memcpy(&value, &bits, sizeof(value));
        snprintf(text, sizeof(text), "%.1080f", value);
        check_double(text, bits);
        snprintf(text, sizeof(text), "%.17e", value);
        check_double(text, bits);
    }
}

/* Random doubles come back from their shortest and their longer spellings. */
static void number_random_doubles_come_back(void)
{
    uint64_t state = 88172645463325252u;
    char text[64];

    for (int k = 0; k < 20000; k++) {
        double value;

        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        memcpy(&value, &state, sizeof(value));
        if ((state >> 52 & 0x7ff) == 0x7ff)
            continue;
        snprintf(text, sizeof(text), "%.*e", 16 + (int)(state % 5), value);
        check_double(text, state);
    }
}

/* Digits and exponents around those the quick way takes, each against strtod. */
static void number_random_decimals_agree_with_strtod(void)
{
    uint64_t state = 0x2545f4914f6cdd1du;
    char text[64];

    for (int k = 0; k < 300000; k++) {
        uint64_t digits, bits;
        double want;

        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        digits = state >> (state & 63);
        snprintf(text, sizeof(text), "%" PRIu64 "e%d", digits,
                 (int)(state >> 40 & 0xff) % 140 - 70);
        want = strtod(text, NULL);
        memcpy(&bits, &want, sizeof(bits));
        check_double(text, bits);
    }
}

/* The numbers half way between two doubles, and their neighbours, at all sizes that 19 digits can
 * spell: the even one is right, and at the neighbours the nearer one. */
static void number_half_ways_are_rounded_to_even(void)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    char text[64];

    for (int k = 0; k < 100000; k++) {
        int up = 1 + k % 10; /* the double is a 53-bit number shifted up so far */
        uint64_t low, half, bits;
        double value;

        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        low = (state >> 11 | (uint64_t)1 << 52) << up;
        half = low + ((uint64_t)1 << (up - 1));
        value = (double)low; /* exact */
        memcpy(&bits, &value, sizeof(bits));
        snprintf(text, sizeof(text), "%" PRIu64 "e0", half - 1);
        check_double(text, bits);
        snprintf(text, sizeof(text), "%" PRIu64 ".0", half);
        check_double(text, bits + (bits & 1));
        snprintf(text, sizeof(text), "%" PRIu64 ".5", half);
        check_double(text, bits + 1);
        snprintf(text, sizeof(text), "%" PRIu64 "000e-3", half);
        check_double(text, bits + (bits & 1));
    }
}

static void number_range_inside_is_exact_too(void)
{
    struct pair pair = pair_new();
    const struct mp_json_field *value;

    value = scan_value(&pair, MP_STR("[1e308,-1e-999,0e999,1.7976931348623157e308,1E5,-0,-0.0]"));
    CHECK_STR(value->text, MP_STR("[1e308,-1e-999,0e999,1.7976931348623157e308,1E5,-0,-0.0]"));
    pair_free(&pair);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(number_integers_in_int64),
        TEST(number_integers_beyond_int64_keep_their_digits),
        TEST(number_integers_beyond_the_doubles_are_refused),
        TEST(number_border_of_the_doubles_is_exact),
        TEST(number_zero_with_any_exponent),
        TEST(number_tiny_ones_become_zero_or_the_least),
        TEST(number_easy_doubles),
        TEST(number_hard_doubles),
        TEST(number_rest_beyond_all_digits_still_counts),
        TEST(number_long_digit_strings),
        TEST(number_powers_of_two),
        TEST(number_random_doubles_come_back),
        TEST(number_random_decimals_agree_with_strtod),
        TEST(number_half_ways_are_rounded_to_even),
        TEST(number_range_inside_is_exact_too),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
