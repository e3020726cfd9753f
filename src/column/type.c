/* column/type.c - the table of types. */
#include "column/type.h"

#include <assert.h>
#include <stdio.h>

enum type_kind { KIND_NONE, KIND_BOOL, KIND_INTEGER, KIND_FLOAT, KIND_TEXT, KIND_OTHER };

static const struct type_row {
    const char *name; /* DuckLake's, lower case; NULL: it has none */
    uint8_t width;    /* DECIMAL: by its digits */
    uint8_t kind;
} table[MP_TYPE_COUNT] = {
    [MP_TYPE_NONE] = {NULL, 0, KIND_NONE},
    [MP_TYPE_BOOL] = {"boolean", 1, KIND_BOOL},
    [MP_TYPE_INT8] = {"int8", 4, KIND_INTEGER},
    [MP_TYPE_INT16] = {"int16", 4, KIND_INTEGER},
    [MP_TYPE_INT32] = {"int32", 4, KIND_INTEGER},
    [MP_TYPE_INT64] = {"int64", 8, KIND_INTEGER},
    [MP_TYPE_UINT8] = {"uint8", 4, KIND_INTEGER},
    [MP_TYPE_UINT16] = {"uint16", 4, KIND_INTEGER},
    [MP_TYPE_UINT32] = {"uint32", 4, KIND_INTEGER},
    [MP_TYPE_UINT32_LONG] = {NULL, 8, KIND_INTEGER},
    [MP_TYPE_UINT64] = {"uint64", 8, KIND_INTEGER},
    [MP_TYPE_INT128] = {"int128", 8, KIND_OTHER},
    [MP_TYPE_FLOAT] = {"float32", 4, KIND_FLOAT},
    [MP_TYPE_DOUBLE] = {"float64", 8, KIND_FLOAT},
    [MP_TYPE_DECIMAL] = {NULL, 0, KIND_OTHER},
    [MP_TYPE_DATE] = {"date", 4, KIND_OTHER},
    [MP_TYPE_TIME] = {"time", 8, KIND_OTHER},
    [MP_TYPE_TIMESTAMP_S] = {"timestamp_s", 8, KIND_OTHER},
    [MP_TYPE_TIMESTAMP_S_MS] = {NULL, 8, KIND_OTHER},
    [MP_TYPE_TIMESTAMP_MS] = {"timestamp_ms", 8, KIND_OTHER},
    [MP_TYPE_TIMESTAMP] = {"timestamp", 8, KIND_OTHER},
    [MP_TYPE_TIMESTAMP_NS] = {"timestamp_ns", 8, KIND_OTHER},
    [MP_TYPE_TIMESTAMPTZ] = {"timestamptz", 8, KIND_OTHER},
    [MP_TYPE_VARCHAR] = {"varchar", 0, KIND_TEXT},
    [MP_TYPE_JSON] = {"json", 0, KIND_TEXT},
    [MP_TYPE_BLOB] = {"blob", 0, KIND_TEXT},
    [MP_TYPE_UUID] = {"uuid", 16, KIND_OTHER},
    [MP_TYPE_VARIANT] = {"variant", 0, KIND_OTHER},
    [MP_TYPE_OTHER] = {NULL, 0, KIND_OTHER},
};

static const struct type_row *row_of(struct mp_type type)
{
    assert(type.id < MP_TYPE_COUNT);
    return &table[type.id];
}

static uint32_t decimal_width(unsigned digits)
{
    assert(digits >= 1 && digits <= 38);
    return digits <= 9 ? 4 : digits <= 18 ? 8 : 16;
}

uint32_t mp_type_width(struct mp_type type)
{
    return type.id == MP_TYPE_DECIMAL ? decimal_width(type.precision) : row_of(type)->width;
}

struct mp_type mp_type_promoted(struct mp_type type)
{
    bool small = type.id == MP_TYPE_INT8 || type.id == MP_TYPE_INT16 || type.id == MP_TYPE_INT32;

    return small ? MP_TYPE(INT64) : type.id == MP_TYPE_FLOAT ? MP_TYPE(DOUBLE) : MP_TYPE(NONE);
}

bool mp_type_is_text(struct mp_type type)
{
    return row_of(type)->kind == KIND_TEXT;
}

bool mp_type_is_integer(struct mp_type type)
{
    return row_of(type)->kind == KIND_INTEGER;
}

bool mp_type_is_float(struct mp_type type)
{
    return row_of(type)->kind == KIND_FLOAT;
}

mp_int128 mp_value_i128(struct mp_str value)
{
    mp_uint128 wide = 0;

    if (value.size != 16)
        return mp_value_i64(value);
    for (int i = 0; i < 16; i++)
        wide = wide << 8 | (unsigned char)value.data[i];
    return (mp_int128)wide;
}

size_t mp_i128_bytes(mp_int128 number, unsigned char ret[16])
{
    unsigned char bytes[16];
    size_t skip = 0;

    for (int i = 15; i >= 0; i--, number >>= 8)
        bytes[i] = (unsigned char)number;
    while (skip < 15 && ((bytes[skip] == 0 && bytes[skip + 1] < 0x80) ||
                         (bytes[skip] == 0xff && bytes[skip + 1] >= 0x80)))
        skip++;
    memcpy(ret, bytes + skip, 16 - skip);
    return 16 - skip;
}

void mp_type_ducklake_name(struct mp_type type, char ret[24])
{
    const char *name = row_of(type)->name;

    if (type.id == MP_TYPE_DECIMAL)
        snprintf(ret, 24, "decimal(%u,%u)", type.precision, type.scale);
    else
        snprintf(ret, 24, "%s", name ? name : "unknown");
}

/* Reads digits, with spaces around them, up to and with `end`. */
static bool number_before(struct mp_str *rest, char end, unsigned *ret)
{
    size_t at = 0, digits = 0;
    unsigned value = 0;

    while (at < rest->size && rest->data[at] == ' ')
        at++;
    for (; at < rest->size && rest->data[at] >= '0' && rest->data[at] <= '9' && digits < 4; at++) {
        value = value * 10 + (unsigned)(rest->data[at] - '0');
        digits++;
    }
    while (at < rest->size && rest->data[at] == ' ')
        at++;
    if (!digits || at == rest->size || rest->data[at] != end)
        return false;
    *rest = mp_str_n(rest->data + at + 1, rest->size - at - 1);
    *ret = value;
    return true;
}

/* "decimal(p,s)" with 1 <= p <= 38 and s <= p. */
static bool decimal_of_name(struct mp_str name, struct mp_type *ret)
{
    static const struct mp_str head = {"decimal(", 8};
    struct mp_str rest;
    unsigned precision, scale;

    if (name.size < head.size || !mp_str_eq_fold(mp_str_n(name.data, head.size), head))
        return false;
    rest = mp_str_n(name.data + head.size, name.size - head.size);
    if (!number_before(&rest, ',', &precision) || !number_before(&rest, ')', &scale) || rest.size)
        return false;
    if (precision < 1 || precision > 38 || scale > precision)
        return false;
    *ret = (struct mp_type){MP_TYPE_DECIMAL, (uint8_t)precision, (uint8_t)scale};
    return true;
}

struct mp_type mp_type_of_ducklake_name(struct mp_str name)
{
    struct mp_type type;

    for (unsigned id = 0; id < MP_TYPE_COUNT; id++)
        if (table[id].name && mp_str_eq_fold(name, mp_str_c(table[id].name)))
            return (struct mp_type){.id = (uint8_t)id};
    if (mp_str_eq_fold(name, MP_STR("timestamp_us"))) /* another spelling of the same */
        return MP_TYPE(TIMESTAMP);
    if (decimal_of_name(name, &type))
        return type;
    return MP_TYPE(OTHER);
}
