/* lake/hoglake/bounds.c - see body.h: bounds of columns as Iceberg single values.
 *
 * Most lie so already: what differs are the widths of unsigned numbers, units other than the
 * microsecond, and decimals.
 *
 * After  Apache Iceberg specification, "Appendix D: Single-value serialization".
 */
#include "lake/hoglake/body.h"

#include <assert.h>

static void add_i64(struct mp_buf *ret, int64_t number)
{
    mp_buf_add(ret, &number, sizeof(number)); /* little-endian, as every machine we build for */
}

static void add_big(struct mp_buf *ret, mp_int128 number)
{
    unsigned char bytes[16];

    mp_buf_add(ret, bytes, mp_i128_bytes(number, bytes));
}

bool mp_hog_bound(const struct mp_column_stats *stats, bool upper, struct mp_buf *ret)
{
    struct mp_str bytes = upper ? stats->max : stats->min;
    int64_t number;

    if (!stats->has_bounds)
        return false;
    switch (stats->type.id) {
    case MP_TYPE_VARCHAR:
    case MP_TYPE_JSON:
    case MP_TYPE_BLOB:
        if (!(upper ? stats->max_exact : stats->min_exact))
            return false;
        mp_buf_add_str(ret, bytes);
        return true;
    case MP_TYPE_UINT64:
        add_big(ret, (mp_int128)(uint64_t)mp_value_i64(bytes));
        return true;
    case MP_TYPE_DECIMAL:
        add_big(ret, mp_value_i128(bytes));
        return true;
    case MP_TYPE_TIMESTAMP_S_MS:
    case MP_TYPE_TIMESTAMP_MS: /* the catalog's instants are in microseconds */
        if (__builtin_mul_overflow(mp_value_i64(bytes), INT64_C(1000), &number))
            return false;
        add_i64(ret, number);
        return true;
    default:
        assert(mp_hog_type_name(stats->type));
        mp_buf_add_str(ret, bytes);
        return true;
    }
}
