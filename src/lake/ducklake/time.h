/* lake/ducklake/time.h - days and microseconds as the texts of the catalog. No clock. */
#ifndef MP_LAKE_DUCKLAKE_TIME_H
#define MP_LAKE_DUCKLAKE_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MP_DL_TIME_TEXT 48

/* "2024-02-03". False: outside of the years 1 to 9999, which have no such text, or one that the
 * extension reads inexactly. */
bool mp_dl_date_text(int64_t days, char ret[MP_DL_TIME_TEXT]);
/* "10:11:12", with a fraction of at most `digits` places without trailing zeros. `units` counts
 * 10^-digits seconds of the day. */
void mp_dl_clock_text(int64_t units, unsigned digits, char ret[MP_DL_TIME_TEXT]);
/* Both, with a blank between; false as mp_dl_date_text. `units` since 1970. */
bool mp_dl_stamp_text(int64_t units, unsigned digits, char ret[MP_DL_TIME_TEXT]);
/* A snapshot_time: "2024-02-03 10:11:12.000000+00", always six places. */
void mp_dl_time_text(int64_t wall_us, char ret[MP_DL_TIME_TEXT]);

#endif
