/* tests/parquet/footer_maker.h - footers written field by field, for tests of what reads them. */
#ifndef MP_TESTS_FOOTER_MAKER_H
#define MP_TESTS_FOOTER_MAKER_H

#include "harness/test.h"
#include "parquet/footer.h"
#include "parquet/parquet_priv.h"

/* One column and one row group; what is 0 is left out where it can be. */
struct footer_spec {
    int physical, type_length, converted; /* converted: ConvertedType + 1 */
    int logical;                          /* field of the union; 0: none */
    int bits, is_signed, unit, utc;       /* of INTEGER, TIME, TIMESTAMP */
    int precision, scale;                 /* of DECIMAL */
    int field_id;
    int repetition;
    int64_t rows, values; /* values 0: rows */
    int64_t start, bytes;
    bool no_orders, no_nulls;
    int64_t nulls;
    struct mp_str min, max, min_old, max_old; /* data NULL: none */
    bool exact;
    const char *name, *pair;
};

static inline void put_time(struct mp_thrift *t, const struct footer_spec *spec)
{
    mp_thrift_bool(t, 1, spec->utc != 0);
    mp_thrift_struct(t, 2);
    mp_thrift_struct(t, (int16_t)spec->unit);
    mp_thrift_end(t);
    mp_thrift_end(t);
}

static inline void put_element(struct mp_thrift *t, const struct footer_spec *spec)
{
    mp_thrift_begin(t);
    mp_thrift_i32(t, 1, spec->physical);
    if (spec->type_length)
        mp_thrift_i32(t, 2, spec->type_length);
    mp_thrift_i32(t, 3, spec->repetition);
    mp_thrift_binary(t, 4, mp_str_c(spec->name ? spec->name : "c"));
    if (spec->converted)
        mp_thrift_i32(t, 6, spec->converted - 1);
    if (spec->field_id)
        mp_thrift_i32(t, 9, spec->field_id);
    if (spec->logical) {
        mp_thrift_struct(t, 10);
        mp_thrift_struct(t, (int16_t)spec->logical);
        if (spec->logical == MP_PARQUET_DECIMAL) {
            mp_thrift_i32(t, 1, spec->scale);
            mp_thrift_i32(t, 2, spec->precision);
        } else if (spec->logical == MP_PARQUET_INTEGER) {
            mp_thrift_byte(t, 1, (int8_t)spec->bits);
            mp_thrift_bool(t, 2, spec->is_signed != 0);
        } else if (spec->unit) {
            put_time(t, spec);
        }
        mp_thrift_end(t);
        mp_thrift_end(t);
    }
    mp_thrift_end(t);
}

static inline void put_statistics(struct mp_thrift *t, const struct footer_spec *spec)
{
    const struct mp_str texts[] = {spec->max_old, spec->min_old};

    mp_thrift_struct(t, 12);
    for (int i = 0; i < 2; i++)
        if (texts[i].data)
            mp_thrift_binary(t, (int16_t)(1 + i), texts[i]);
    if (!spec->no_nulls)
        mp_thrift_i64(t, 3, spec->nulls);
    if (spec->max.data)
        mp_thrift_binary(t, 5, spec->max);
    if (spec->min.data)
        mp_thrift_binary(t, 6, spec->min);
    if (spec->exact) {
        mp_thrift_bool(t, 7, true);
        mp_thrift_bool(t, 8, true);
    }
    mp_thrift_end(t);
}

static inline void put_group(struct mp_thrift *t, const struct footer_spec *spec)
{
    mp_thrift_begin(t);
    mp_thrift_list(t, 1, MP_THRIFT_STRUCT, 1);
    mp_thrift_begin(t);
    mp_thrift_i64(t, 2, 0);
    mp_thrift_struct(t, 3);
    mp_thrift_i32(t, 1, spec->physical);
    mp_thrift_list(t, 2, MP_THRIFT_I32, 1);
    mp_thrift_add_i32(t, MP_ENCODING_PLAIN);
    mp_thrift_list(t, 3, MP_THRIFT_BINARY, 1);
    mp_thrift_add_binary(t, mp_str_c(spec->name ? spec->name : "c"));
    mp_thrift_i32(t, 4, 0);
    mp_thrift_i64(t, 5, spec->values ? spec->values : spec->rows);
    mp_thrift_i64(t, 6, spec->bytes);
    mp_thrift_i64(t, 7, spec->bytes);
    mp_thrift_i64(t, 9, spec->start ? spec->start : 4);
    put_statistics(t, spec);
    mp_thrift_i64(t, 14, 9999); /* a bloom filter */
    mp_thrift_i32(t, 29, 77);   /* a field of a later format */
    mp_thrift_end(t);
    mp_thrift_end(t);
    mp_thrift_i64(t, 2, spec->bytes);
    mp_thrift_i64(t, 3, spec->rows);
    mp_thrift_end(t);
}

/* Row groups: one for each of the specs, whose first one gives the schema. */
static inline struct mp_str make_footer(struct mp_buf *out, const struct footer_spec *specs,
                                        int count)
{
    struct mp_thrift t = {.out = out};
    int64_t rows = 0;

    for (int i = 0; i < count; i++)
        rows += specs[i].rows;
    mp_thrift_begin(&t);
    mp_thrift_i32(&t, 1, 2);
    mp_thrift_list(&t, 2, MP_THRIFT_STRUCT, 2);
    mp_thrift_begin(&t);
    mp_thrift_binary(&t, 4, MP_STR("root"));
    mp_thrift_i32(&t, 5, 1);
    mp_thrift_end(&t);
    put_element(&t, &specs[0]);
    mp_thrift_i64(&t, 3, rows);
    mp_thrift_list(&t, 4, MP_THRIFT_STRUCT, (size_t)count);
    for (int i = 0; i < count; i++)
        put_group(&t, &specs[i]);
    if (specs[0].pair) {
        mp_thrift_list(&t, 5, MP_THRIFT_STRUCT, 1);
        mp_thrift_begin(&t);
        mp_thrift_binary(&t, 1, MP_STR("key"));
        mp_thrift_binary(&t, 2, mp_str_c(specs[0].pair));
        mp_thrift_end(&t);
    }
    mp_thrift_binary(&t, 6, MP_STR("maker"));
    if (!specs[0].no_orders) {
        mp_thrift_list(&t, 7, MP_THRIFT_STRUCT, 1);
        mp_thrift_begin(&t);
        mp_thrift_struct(&t, 1);
        mp_thrift_end(&t);
        mp_thrift_end(&t);
    }
    mp_thrift_end(&t);
    return mp_buf_str(out);
}

#endif
