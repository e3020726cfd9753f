/* json/json.h - one JSON object in, its top-level fields out, in one pass.
 *
 * The scanner checks the whole record (RFC 8259, strict UTF-8) before it gives anything, so a
 * refused record leaves no trace. It builds no tree and allocates nothing per record: the fields
 * lie in an array that is used again, their texts point into the record where they can (strings
 * without escapes, numbers, nested values that are compact already) and into the scanner's
 * scratch where they cannot.
 *
 * Keys     are interned: the same name has the same small number in every record until
 *          mp_json_keys_reset. Events repeat their key order, so the scanner guesses the next key
 *          from the one before and compares bytes; only a wrong guess is hashed.
 * Numbers  an integer in int64 is INT; one beyond is BIGINT; anything with '.', 'e' or 'E' is
 *          DOUBLE, correctly rounded. "-0" is the integer 0. A number beyond the doubles is
 *          refused at any depth.
 * Nested   objects and arrays come as compact text: white space out, key order and inner
 *          duplicate keys kept, numbers as sent, strings escaped minimally: only the quote, the
 *          backslash and bytes below 0x20 (\b \t \n \f \r, else \u00xx lower case), the rest plain
 *          UTF-8.
 * Limits   depth MP_JSON_DEPTH_MAX (the record itself is level 1); no recursion. A record is below
 *          4 GiB (asserted; Kafka's own limit is 2).
 * Threads  a scanner belongs to one thread.
 */
#ifndef MP_JSON_JSON_H
#define MP_JSON_JSON_H

#include "base/str.h"

#define MP_JSON_DEPTH_MAX 1024u

enum mp_json_kind {
    MP_JSON_NULL,
    MP_JSON_FALSE,
    MP_JSON_TRUE,
    MP_JSON_INT,    /* i64 */
    MP_JSON_BIGINT, /* text: the digits, outside int64 */
    MP_JSON_DOUBLE, /* f64, finite */
    MP_JSON_STRING, /* text: decoded UTF-8, may hold NUL */
    MP_JSON_NESTED, /* text: compact JSON */
};

struct mp_json_field {
    uint32_t key;       /* of mp_json_key_name */
    uint8_t kind;       /* enum mp_json_kind */
    bool nested_object; /* NESTED: an object, else an array */
    struct mp_str text; /* numbers: the spelling as sent */
    union {
        int64_t i64;
        double f64;
    };
};

/* Top-level duplicates are resolved: the last value stands at the place of the first. */
struct mp_json_record {
    const struct mp_json_field *fields;
    uint32_t count;
};

enum mp_json_fault {
    MP_JSON_OK,
    MP_JSON_EMPTY,        /* no byte but white space */
    MP_JSON_SYNTAX,       /* not JSON: grammar, BOM, NaN, trailing comma, text after the value */
    MP_JSON_UTF8,         /* bytes that are not UTF-8 */
    MP_JSON_CONTROL,      /* a raw byte below 0x20 in a string */
    MP_JSON_ESCAPE,       /* an unknown or cut escape */
    MP_JSON_SURROGATE,    /* a lone surrogate escape */
    MP_JSON_NUMBER_RANGE, /* a number beyond the doubles */
    MP_JSON_DEPTH,        /* deeper than MP_JSON_DEPTH_MAX */
    MP_JSON_NOT_OBJECT,   /* valid JSON, but an array, text, number, true, false or null */
    MP_JSON_FAULTS
};

struct mp_json; /* opaque, see json.c */

struct mp_json *mp_json_new(void);
void mp_json_free(struct mp_json *json);
/* Scans one record. *ret is written on MP_JSON_OK only and is good until the next scan or reset;
 * record must stay as it is that long. *ret_at is the byte where the fault was seen (0 on OK), the
 * record's size when it ends too early; for an escape its backslash, for a number its first byte.
 */
enum mp_json_fault mp_json_scan(struct mp_json *json, struct mp_str record,
                                struct mp_json_record *ret, size_t *ret_at);
/* Gives a constant snake_case name of a fault, for logs and the quarantine table. */
const char *mp_json_fault_name(enum mp_json_fault fault);

/* Names of the interned keys, 0 to count - 1, decoded UTF-8; good until keys_reset. */
uint32_t mp_json_key_count(const struct mp_json *json);
struct mp_str mp_json_key_name(const struct mp_json *json, uint32_t key);
/* Memory of the key table: grows with the number of different names ever seen. */
size_t mp_json_key_bytes(const struct mp_json *json);
/* Forgets all names. */
void mp_json_keys_reset(struct mp_json *json);

/* Which of the scanners this is: "avx512", "avx2", "neon" or "portable". */
const char *mp_json_isa(const struct mp_json *json);
/* For tests and benches, which compare them: the scanners that run on this machine, from the
 * fastest (0, that of mp_json_new) to the portable one; NULL behind it. */
struct mp_json *mp_json_new_nth(unsigned nth);

#endif
