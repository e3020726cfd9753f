/* server/types.h - the 27 types of a column and what holds for each: one table. Pure. */
#ifndef MP_SERVER_TYPES_H
#define MP_SERVER_TYPES_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum mp_hog_type {
    MP_HOG_BOOLEAN,
    MP_HOG_INT8,
    MP_HOG_INT16,
    MP_HOG_INT,
    MP_HOG_LONG,
    MP_HOG_UINT8,
    MP_HOG_UINT16,
    MP_HOG_UINT32,
    MP_HOG_UINT64,
    MP_HOG_FLOAT,
    MP_HOG_DOUBLE,
    MP_HOG_DECIMAL,
    MP_HOG_DATE,
    MP_HOG_TIME,
    MP_HOG_TIMESTAMP_S,
    MP_HOG_TIMESTAMP_MS,
    MP_HOG_TIMESTAMP,
    MP_HOG_TIMESTAMP_NS,
    MP_HOG_TIMESTAMPTZ,
    MP_HOG_STRING,
    MP_HOG_JSON,
    MP_HOG_UUID,
    MP_HOG_BINARY,
    MP_HOG_VARIANT,
    MP_HOG_LIST,
    MP_HOG_STRUCT,
    MP_HOG_MAP,
    MP_HOG_TYPES
};

/* How bounds are encoded and ordered. */
enum mp_hog_bound {
    MP_HOG_BOUND_NONE,
    MP_HOG_BOUND_BOOLEAN,
    MP_HOG_BOUND_INT32,  /* 4 bytes, little endian, signed */
    MP_HOG_BOUND_INT64,  /* 8 bytes */
    MP_HOG_BOUND_FLOAT,  /* 4 bytes IEEE */
    MP_HOG_BOUND_DOUBLE, /* 8 bytes IEEE */
    MP_HOG_BOUND_BIG,    /* shortest big-endian two's complement */
    MP_HOG_BOUND_BYTES,  /* as they are, unsigned order */
    MP_HOG_BOUND_UUID,   /* 16 bytes, unsigned order */
};

struct mp_hog_type_info {
    const char *name;
    enum mp_hog_bound bound;
    bool container, bucket, temporal;
    const char *not_bucket; /* why not, where one could expect it */
};

extern const struct mp_hog_type_info mp_hog_types[MP_HOG_TYPES];

/* Any case. MP_BAD_DATA: refused for good, with the reason, or unknown. */
enum mp_code mp_hog_type_read(struct mp_str name, struct mp_err *err, enum mp_hog_type *ret);
/* Whether a column may be promoted so. */
bool mp_hog_type_promotes(enum mp_hog_type from, enum mp_hog_type to);
/* Rewrites a bound from the one type's encoding to the other's; false: it is the same. */
bool mp_hog_bound_promote(struct mp_arena *arena, enum mp_hog_type from, enum mp_hog_type to,
                          struct mp_str bound, struct mp_str *ret);

/* Whether the bytes are a bound of that type. NaN is none. */
bool mp_hog_bound_valid(enum mp_hog_type type, struct mp_str bound);
/* Order of two valid bounds. */
int mp_hog_bound_cmp(enum mp_hog_type type, struct mp_str a, struct mp_str b);
/* Zeros of floats by their role: lower -0.0, upper +0.0; gives the bound or a copy in arena. */
struct mp_str mp_hog_bound_zero(struct mp_arena *arena, enum mp_hog_type type, struct mp_str bound,
                                bool upper);
/* The bound as a JSON value for people; null where there is none or it does not decode. scale:
 * of a decimal. */
void mp_hog_bound_print(struct mp_buf *buf, enum mp_hog_type type, int64_t scale,
                        struct mp_str bound);

#endif
