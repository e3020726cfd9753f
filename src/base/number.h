/* base/number.h - numbers as text that reads back the same. */
#ifndef MP_BASE_NUMBER_H
#define MP_BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define MP_NUMBER_TEXT 40 /* room for any of these texts and a NUL */

/* The shortest decimal that reads back as the same double, the nearest where several are as short:
 * positional from 1e-4 up to 1e16, else with a two-digit exponent; always with ".0" or an exponent
 * (1.0, 0.1, 1e+16, 1.5e-05, -0.0; nan, inf, -inf). Gives the length. The spelling is that of
 * Python's repr and of DuckDB's cast to VARCHAR. */
size_t mp_double_text(double value, char ret[MP_NUMBER_TEXT]);
/* The same for a float: 0.1f gives 0.1. */
size_t mp_float_text(float value, char ret[MP_NUMBER_TEXT]);
size_t mp_i64_text(int64_t value, char ret[MP_NUMBER_TEXT]);

#endif
