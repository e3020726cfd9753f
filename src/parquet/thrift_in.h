/* parquet/thrift_in.h - Thrift's compact protocol, reading bytes that nobody vouches for.
 *
 * A struct is described by a table (which field goes where) and read by one function; what the
 * table does not name is skipped. The depth of calls is that of our tables, never that of the
 * input: skipping keeps its own stack of MP_THRIFT_SKIP_DEPTH_MAX.
 *
 * Memory   texts are borrowed from the input; lists are taken from the arena. A list may not claim
 *          more elements than the bytes behind it can hold, so memory is a small multiple of the
 *          input.
 * Errors   the first fault stays: it is kept in `code` and the caller's err, and every later call
 *          reads nothing. So a caller checks once, at its end.
 * After    Thrift "Compact protocol encoding" (thrift-compact-protocol.md).
 */
#ifndef MP_PARQUET_THRIFT_IN_H
#define MP_PARQUET_THRIFT_IN_H

#include "base/arena.h"
#include "base/err.h"

#define MP_THRIFT_SKIP_DEPTH_MAX 32u

struct mp_thrift_in {
    const char *begin, *at, *end;
    enum mp_code code;
    struct mp_err *err;
};

/* Begins as {0}: the id is that of the field before. */
struct mp_thrift_field {
    int16_t id;
    uint8_t type; /* as in the bytes */
};

void mp_thrift_in_begin(struct mp_thrift_in *in, struct mp_str bytes, struct mp_err *err);
/* Takes the next field's header. False behind the last one, and after a fault. */
bool mp_thrift_in_field(struct mp_thrift_in *in, struct mp_thrift_field *field);
/* Takes the value behind a field's header; lends its bytes (none for a bool). */
struct mp_str mp_thrift_in_skip(struct mp_thrift_in *in, uint8_t type);
/* Takes a list's header; element_bytes_min: what the smallest element takes. */
uint32_t mp_thrift_in_list(struct mp_thrift_in *in, uint8_t element_type, size_t element_bytes_min);
int64_t mp_thrift_in_int(struct mp_thrift_in *in);

enum mp_thrift_kind {
    MP_THRIFT_TO_BOOL,   /* bool */
    MP_THRIFT_TO_I8,     /* int8_t */
    MP_THRIFT_TO_I16,    /* int16_t */
    MP_THRIFT_TO_I32,    /* int32_t */
    MP_THRIFT_TO_I64,    /* int64_t */
    MP_THRIFT_TO_TEXT,   /* struct mp_str */
    MP_THRIFT_TO_STRUCT, /* a struct of shape `of`, in place */
    MP_THRIFT_TO_LIST,   /* a pointer to structs of shape `of`, and a uint32_t count */
    MP_THRIFT_TO_NONE,   /* only that it is there */
};

struct mp_thrift_shape;

struct mp_thrift_rule {
    int16_t id; /* 1 to 31 */
    uint8_t kind;
    uint16_t offset, count_offset; /* in the struct read into */
    uint16_t raw_offset;           /* where the value's bytes go as a struct mp_str; 0: nowhere */
    const struct mp_thrift_shape *of;
    uint32_t count_max; /* elements of a list; 0: as many as its bytes can hold */
};

/* A struct read into begins with a uint32_t `has`: bit 1 << id for every field that was there. */
struct mp_thrift_shape {
    const char *name; /* for messages */
    const struct mp_thrift_rule *rules;
    uint32_t rule_count;
    uint32_t required;  /* bits as in `has` */
    uint16_t size;      /* of the struct read into */
    uint16_t bytes_min; /* of the smallest one in the input that has what is required */
};

static inline bool mp_thrift_has(uint32_t has, unsigned id)
{
    return has >> id & 1;
}

/* Reads a struct into ret, which is zero. Of a field that comes twice the last one counts. */
void mp_thrift_in_struct(struct mp_thrift_in *in, struct mp_arena *arena,
                         const struct mp_thrift_shape *shape, void *ret);

#endif
