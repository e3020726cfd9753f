/* lake/ducklake/stats_text.h - a column bound as the text the extension reads. No I/O. */
#ifndef MP_LAKE_DUCKLAKE_STATS_TEXT_H
#define MP_LAKE_DUCKLAKE_STATS_TEXT_H

#include "base/buf.h"
#include "parquet/stats.h"

/* Adds the text of the lower or upper bound. False, nothing added: there is no such text (no
 * bounds, a type without them, a NUL byte, a year outside 1 to 9999), which the catalog holds as
 * NULL.
 *
 * Texts over 256 bytes become shorter bounds: a lower one is cut, an upper one is cut and its
 * last character raised; both stay UTF-8. Floats are the shortest text that reads back the same
 * double, also for FLOAT columns, so that the bound still holds after a promotion to DOUBLE. */
bool mp_dl_bound_text(struct mp_buf *ret, const struct mp_column_stats *stats, bool upper);

#endif
