/* lake/ducklake/time.h - a snapshot's time as the text of the catalog. No clock. */
#ifndef MP_LAKE_DUCKLAKE_TIME_H
#define MP_LAKE_DUCKLAKE_TIME_H

#include <stdint.h>

#define MP_DL_TIME_TEXT 48

/* "2024-02-03 10:11:12.000000+00", always six places. */
void mp_dl_time_text(int64_t wall_us, char ret[MP_DL_TIME_TEXT]);

#endif
