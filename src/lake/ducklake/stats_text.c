#include "lake/ducklake/stats_text.h"
#include "base/utf8.h"
#include "base/civil.h"
#include "column/transform.h"

#include <assert.h>
#include <math.h>

#define TEXT_BOUND_MAX 256u

/* The extension reads dates of the years 1 to 9999; a bound that it cannot read drops the file.
 * Nor does it read the first day that nanoseconds reach. */
static bool readable(struct mp_type type, struct mp_str bytes)
{
    static const int64_t units_per_us[MP_TYPE_COUNT] = {
        [MP_TYPE_TIMESTAMP_S] = 1, /* lies in microseconds */
        [MP_TYPE_TIMESTAMP] = 1,
        [MP_TYPE_TIMESTAMPTZ] = 1,
    };
    const int64_t day_min = -719162, day_max = 2932896; /* 0001-01-01, 9999-12-31 */
    int64_t days, value;

    if (type.id == MP_TYPE_TIMESTAMP_NS)
        return mp_value_i64(bytes) >= -9223286400000000000 && mp_value_i64(bytes) != INT64_MAX;
    if (type.id != MP_TYPE_DATE && type.id != MP_TYPE_TIMESTAMP_MS && !units_per_us[type.id])
        return true;
    value = mp_value_i64(bytes);
    days =
        type.id == MP_TYPE_DATE
            ? value
            : mp_floor_div(value, type.id == MP_TYPE_TIMESTAMP_MS ? MP_DAY_US / 1000 : MP_DAY_US);
    return days >= day_min && days <= day_max;
}

/* Fixed types, as DuckDB spells them; booleans are 0 and 1 here, a FLOAT the double that it is, so
 * that the bound still holds after a promotion. */
static bool add_fixed(struct mp_buf *ret, struct mp_type type, struct mp_str bytes)
{
    struct mp_arena arena;
    double wide = 0;
    float narrow;

    if (type.id == MP_TYPE_INT128 || !readable(type, bytes))
        return false;
    if (type.id == MP_TYPE_BOOL) {
        mp_buf_add_byte(ret, bytes.data[0] ? '1' : '0');
        return true;
    }
    if (type.id == MP_TYPE_FLOAT) {
        memcpy(&narrow, bytes.data, sizeof(narrow));
        wide = narrow;
        type = MP_TYPE(DOUBLE);
        bytes = mp_str_n(&wide, sizeof(wide));
    } else if (type.id == MP_TYPE_DOUBLE) {
        memcpy(&wide, bytes.data, sizeof(wide));
    }
    if (type.id == MP_TYPE_DOUBLE && isnan(wide))
        return false; /* never a bound */
    mp_arena_init(&arena, 128);
    mp_buf_add_str(ret, mp_value_text(&arena, type, bytes));
    mp_arena_fini(&arena);
    return true;
}

static void add_hex(struct mp_buf *ret, struct mp_str bytes)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < bytes.size; i++) {
        mp_buf_add_byte(ret, hex[(unsigned char)bytes.data[i] >> 4]);
        mp_buf_add_byte(ret, hex[(unsigned char)bytes.data[i] & 15]);
    }
}

/* Adds the next character in code point order, which is byte order. False: it was the last. */
static bool raise_character(struct mp_buf *ret, struct mp_str character)
{
    uint32_t point;
    char bytes[4];

    mp_utf8_read(character, &point);
    if (point == 0x10ffff)
        return false;
    mp_buf_add(ret, bytes, mp_utf8_write(point == 0xd7ff ? 0xe000 : point + 1, bytes));
    return true;
}

static bool add_text(struct mp_buf *ret, struct mp_str bytes, bool upper)
{
    size_t starts[TEXT_BOUND_MAX], count = 0, used = 0, size;
    uint32_t point;

    for (size_t at = 0; at < bytes.size; at += size) {
        size = mp_utf8_read(mp_str_n(bytes.data + at, bytes.size - at), &point);
        if (size == 0 || point == 0)
            return false;
        if (at + size <= TEXT_BOUND_MAX) {
            starts[count++] = at;
            used = at + size;
        }
    }
    if (used == bytes.size || !upper) {
        mp_buf_add(ret, bytes.data, used);
        return true;
    }
    while (count-- > 0) {
        size_t before = ret->size;

        mp_buf_add(ret, bytes.data, starts[count]);
        if (raise_character(ret, mp_str_n(bytes.data + starts[count], used - starts[count])))
            return true;
        ret->size = before;
        used = starts[count];
    }
    return false;
}

static bool add_blob(struct mp_buf *ret, struct mp_str bytes, bool upper)
{
    unsigned char copy[TEXT_BOUND_MAX];
    size_t size = TEXT_BOUND_MAX;

    if (bytes.size <= TEXT_BOUND_MAX) {
        add_hex(ret, bytes);
        return true;
    }
    memcpy(copy, bytes.data, size);
    while (upper && size > 0 && copy[size - 1] == 0xff)
        size--;
    if (size == 0)
        return false;
    if (upper)
        copy[size - 1]++;
    add_hex(ret, mp_str_n(copy, size));
    return true;
}

bool mp_dl_bound_text(struct mp_buf *ret, const struct mp_column_stats *stats, bool upper)
{
    struct mp_str bytes = upper ? stats->max : stats->min;
    uint8_t id = stats->type.id;

    if (!stats->has_bounds)
        return false;
    if (id == MP_TYPE_VARCHAR || id == MP_TYPE_JSON)
        return add_text(ret, bytes, upper);
    if (id == MP_TYPE_BLOB)
        return add_blob(ret, bytes, upper);
    assert(bytes.size == (id == MP_TYPE_BOOL ? 1 : mp_type_width(stats->type)));
    return add_fixed(ret, stats->type, bytes);
}
