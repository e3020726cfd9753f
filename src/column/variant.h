/* column/variant.h - JSON texts as Parquet's VARIANT: metadata and value, and fields stored apart.
 *
 * A VARIANT is two runs of bytes: the names of all members inside it, and the value, which refers
 * to them by number. Members of the outermost object may be stored apart ("shredded"), each in
 * columns of its own, so that a reader finds one without the rest; a shape says which, with the
 * type each is wanted in. What is of another type is kept beside as a value of its own.
 *
 * Numbers  an integer in int64 is the smallest of int8 to int64 that holds it; one beyond of up to
 *          38 digits is decimal16 with scale 0; everything else is a double, as DuckDB's own cast
 *          makes it. Nothing else is rounded.
 * Members  names are sorted, by their bytes. Of members with one name the last wins, since a
 *          VARIANT has no duplicates; names that differ in case are two.
 * Limits   depth as in json/tree.h; values and names up to MP_VARIANT_BYTES_MAX.
 * Memory   all of it the encoder's, used again from text to text; grows to the largest one. Names
 *          are remembered up to some MiB.
 * Threads  an encoder belongs to one thread at a time.
 * After    apache/parquet-format, VariantEncoding.md (version 1) and VariantShredding.md.
 */
#ifndef MP_COLUMN_VARIANT_H
#define MP_COLUMN_VARIANT_H

#include "base/str.h"
#include "column/type.h"

#include <stdbool.h>

#define MP_VARIANT_BYTES_MAX (UINT32_C(1) << 30)

/* A member of the outermost object that is stored apart: as BOOL, INT64, DOUBLE or VARCHAR. */
struct mp_variant_field {
    struct mp_str name;
    struct mp_type type;
};

struct mp_variant_shape {
    const struct mp_variant_field *fields;
    uint32_t count; /* 0: nothing is stored apart */
};

enum mp_variant_place {
    MP_VARIANT_ABSENT, /* the object has no such member */
    MP_VARIANT_TYPED,  /* as the field's type */
    MP_VARIANT_VALUE,  /* as an encoded value: of another type, or null */
};

struct mp_variant_part {
    uint8_t place;       /* enum mp_variant_place */
    bool truth;          /* TYPED BOOL */
    struct mp_str bytes; /* TYPED VARCHAR: the text; VALUE: the encoded value */
    union {              /* TYPED INT64, DOUBLE */
        int64_t i64;
        double f64;
    };
};

/* What one text has become; good until the encoder's next text. */
struct mp_variant_row {
    struct mp_str metadata;
    struct mp_str value;                 /* size 0: all of it is stored apart */
    bool rounded;                        /* an integer of more than 38 digits is a double now */
    bool object;                         /* of a shape with fields: parts is there */
    const struct mp_variant_part *parts; /* [shape.count], in its order */
};

struct mp_variant; /* the encoder; opaque */

struct mp_variant *mp_variant_new(void);
/* No-op on NULL. */
void mp_variant_free(struct mp_variant *variant);

/* The shape of all texts to come; borrowed until the next one. A new encoder has none. */
void mp_variant_set_shape(struct mp_variant *variant, const struct mp_variant_shape *shape);
/* Encodes a JSON text. False: it is not JSON, holds a number beyond the doubles, is too deep or
 * too large. */
bool mp_variant_encode(struct mp_variant *variant, struct mp_str json, struct mp_variant_row *ret);
/* Encodes a text as a string, whatever it says. False: too large. */
bool mp_variant_encode_string(struct mp_variant *variant, struct mp_str text,
                              struct mp_variant_row *ret);

/* ---- which fields to store apart ------------------------------------------------------------- */

#define MP_VARIANT_SURVEY_MIN 100u

/* Members that may be stored apart: whose name begins with prefix (empty: none does) or is listed.
 */
struct mp_variant_allow {
    struct mp_str prefix;
    const struct mp_str *names;
    uint32_t name_count;
};

struct mp_variant_survey; /* what the texts of a sample have in common; opaque */

struct mp_variant_survey *mp_variant_survey_new(const struct mp_variant_allow *allow);
/* No-op on NULL. */
void mp_variant_survey_free(struct mp_variant_survey *survey);
/* Looks at one text; what is no JSON object counts as nothing. */
void mp_variant_survey_add(struct mp_variant_survey *survey, struct mp_str json);
/* Gives the members that are stable, in order of their names: in at least a twentieth of the
 * objects, and nine times in ten, nulls aside, of one type that can be stored apart; at most
 * fields_max of them, the most frequent. None where there were fewer than MP_VARIANT_SURVEY_MIN
 * objects. Good until free. */
struct mp_variant_shape mp_variant_survey_shape(struct mp_variant_survey *survey,
                                                uint32_t fields_max);

#endif
