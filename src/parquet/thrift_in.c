/* parquet/thrift_in.c - see thrift_in.h. */
#include "parquet/thrift_in.h"

#include "parquet/parquet_priv.h"

#include <stdarg.h>
#include <stdio.h>

/* The types that our writer has no use for. */
enum { TYPE_STOP = 0, TYPE_DOUBLE = 7, TYPE_SET = 10, TYPE_MAP = 11, TYPE_UUID = 13 };

void mp_thrift_in_begin(struct mp_thrift_in *in, struct mp_str bytes, struct mp_err *err)
{
    *in = (struct mp_thrift_in){bytes.data, bytes.data, bytes.data + bytes.size, MP_OK, err};
}

/* ---- faults ---------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void fault(struct mp_thrift_in *in, const char *format,
                                                        ...)
{
    char text[128];
    va_list args;

    if (in->code)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    in->code = mp_err_set(in->err, MP_BAD_DATA, "%s at byte %zu of %zu", text,
                          (size_t)(in->at - in->begin), (size_t)(in->end - in->begin));
    in->end = in->at;
}

static size_t left(const struct mp_thrift_in *in)
{
    return (size_t)(in->end - in->at);
}

/* ---- single values --------------------------------------------------------------------------- */

static uint8_t byte(struct mp_thrift_in *in)
{
    if (in->at == in->end) {
        fault(in, "a byte is missing");
        return 0;
    }
    return (uint8_t)*in->at++;
}

static uint64_t varint(struct mp_thrift_in *in)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t part = byte(in);

        if (shift == 63 && part > 1)
            break;
        value |= (uint64_t)(part & 0x7f) << shift;
        if (part < 0x80)
            return in->code ? 0 : value;
    }
    fault(in, "a varint of more than 64 bits");
    return 0;
}

int64_t mp_thrift_in_int(struct mp_thrift_in *in)
{
    uint64_t value = varint(in);

    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

static int64_t ranged(struct mp_thrift_in *in, int64_t min, int64_t max)
{
    int64_t value = mp_thrift_in_int(in);

    if (value >= min && value <= max)
        return value;
    fault(in, "a number %lld that is too large for its type", (long long)value);
    return 0;
}

static struct mp_str take(struct mp_thrift_in *in, uint64_t size)
{
    struct mp_str taken = {in->at, (size_t)size};

    if (size > left(in)) {
        fault(in, "%llu bytes announced, %zu are left", (unsigned long long)size, left(in));
        return (struct mp_str){in->at, 0};
    }
    in->at += size;
    return taken;
}

bool mp_thrift_in_field(struct mp_thrift_in *in, struct mp_thrift_field *field)
{
    uint8_t head = byte(in);
    int64_t id;

    if (in->code || head == TYPE_STOP)
        return false;
    id = head >> 4 ? field->id + (head >> 4) : ranged(in, INT16_MIN, INT16_MAX);
    if (id > INT16_MAX || (head & 15) == TYPE_STOP)
        fault(in, "a field %lld of type %d", (long long)id, head & 15);
    field->id = (int16_t)id;
    field->type = head & 15;
    return !in->code;
}

static uint64_t list_head(struct mp_thrift_in *in, uint8_t *type)
{
    uint8_t head = byte(in);

    *type = head & 15;
    return head >> 4 == 15 ? varint(in) : head >> 4;
}

uint32_t mp_thrift_in_list(struct mp_thrift_in *in, uint8_t element_type, size_t element_bytes_min)
{
    uint8_t type;
    uint64_t count = list_head(in, &type);

    assert(element_bytes_min > 0);
    if (count && type != element_type)
        fault(in, "a list of type %d, not %d", type, element_type);
    else if (count > left(in) / element_bytes_min || count > INT32_MAX)
        fault(in, "a list of %llu elements in %zu bytes", (unsigned long long)count, left(in));
    return in->code ? 0 : (uint32_t)count;
}

/* ---- skipping -------------------------------------------------------------------------------- */

/* What is being skipped: a struct, or `elements` values of alternating types. */
struct frame {
    bool is_struct;
    uint8_t types[2];
    uint64_t elements;
    struct mp_thrift_field field;
};

static void skip_scalar(struct mp_thrift_in *in, uint8_t type)
{
    switch (type) {
    case MP_THRIFT_TRUE: /* of a list: in a struct it is all header */
    case MP_THRIFT_FALSE:
    case MP_THRIFT_BYTE:
        take(in, 1);
        break;
    case MP_THRIFT_I16:
    case MP_THRIFT_I32:
    case MP_THRIFT_I64:
        varint(in);
        break;
    case TYPE_DOUBLE:
        take(in, 8);
        break;
    case MP_THRIFT_BINARY:
        take(in, varint(in));
        break;
    case TYPE_UUID:
        take(in, 16);
        break;
    default:
        fault(in, "an unknown type %d", type);
    }
}

/* Whether the type holds others; its header is taken then. */
static bool open_frame(struct mp_thrift_in *in, uint8_t type, struct frame *ret)
{
    uint8_t types;

    *ret = (struct frame){.is_struct = type == MP_THRIFT_STRUCT};
    switch (type) {
    case MP_THRIFT_STRUCT:
        return true;
    case MP_THRIFT_LIST:
    case TYPE_SET:
        ret->elements = list_head(in, &ret->types[0]);
        ret->types[1] = ret->types[0];
        break;
    case TYPE_MAP:
        ret->elements = varint(in);
        types = ret->elements ? byte(in) : 0;
        ret->types[0] = types >> 4;
        ret->types[1] = types & 15;
        break;
    default:
        return false;
    }
    if (ret->elements > left(in)) /* each takes a byte at least */
        fault(in, "%llu elements in %zu bytes", (unsigned long long)ret->elements, left(in));
    else if (type == TYPE_MAP)
        ret->elements *= 2;
    return true;
}

/* The type of the frame's next value that takes bytes; false at its end. */
static bool next_of(struct mp_thrift_in *in, struct frame *frame, uint8_t *type)
{
    if (!frame->is_struct) {
        *type = frame->types[frame->elements & 1]; /* maps: an even number is left before a key */
        return frame->elements-- > 0;
    }
    while (mp_thrift_in_field(in, &frame->field)) {
        *type = frame->field.type;
        if (*type != MP_THRIFT_TRUE && *type != MP_THRIFT_FALSE)
            return true;
    }
    return false;
}

struct mp_str mp_thrift_in_skip(struct mp_thrift_in *in, uint8_t type)
{
    struct frame frames[MP_THRIFT_SKIP_DEPTH_MAX];
    const char *begin = in->at;
    unsigned depth = 0;

    if (type == MP_THRIFT_TRUE || type == MP_THRIFT_FALSE)
        return (struct mp_str){begin, 0};
    do {
        if (depth == MP_THRIFT_SKIP_DEPTH_MAX)
            fault(in, "values nested more than %u deep", depth);
        else if (open_frame(in, type, &frames[depth]))
            depth++;
        else
            skip_scalar(in, type);
        while (!in->code && depth && !next_of(in, &frames[depth - 1], &type))
            depth--;
    } while (!in->code && depth);
    return (struct mp_str){begin, in->code ? 0 : (size_t)(in->at - begin)};
}

/* ---- structs --------------------------------------------------------------------------------- */

static const uint8_t wire_types[] = {
    [MP_THRIFT_TO_BOOL] = MP_THRIFT_TRUE,     [MP_THRIFT_TO_I8] = MP_THRIFT_BYTE,
    [MP_THRIFT_TO_I16] = MP_THRIFT_I16,       [MP_THRIFT_TO_I32] = MP_THRIFT_I32,
    [MP_THRIFT_TO_I64] = MP_THRIFT_I64,       [MP_THRIFT_TO_TEXT] = MP_THRIFT_BINARY,
    [MP_THRIFT_TO_STRUCT] = MP_THRIFT_STRUCT, [MP_THRIFT_TO_LIST] = MP_THRIFT_LIST,
    [MP_THRIFT_TO_NONE] = TYPE_STOP,
};

static const struct mp_thrift_rule *rule_of(const struct mp_thrift_shape *shape, int16_t id)
{
    for (uint32_t i = 0; i < shape->rule_count; i++)
        if (shape->rules[i].id == id)
            return &shape->rules[i];
    return NULL;
}

static void read_list(struct mp_thrift_in *in, struct mp_arena *arena,
                      const struct mp_thrift_rule *rule, char *ret)
{
    uint32_t count = mp_thrift_in_list(in, MP_THRIFT_STRUCT, rule->of->bytes_min);
    char *items;

    if (rule->count_max && count > rule->count_max) {
        fault(in, "%u of %s, at most %u are read", count, rule->of->name, rule->count_max);
        return;
    }
    items = mp_arena_take(arena, (size_t)count * rule->of->size);
    for (uint32_t i = 0; i < count && !in->code; i++)
        mp_thrift_in_struct(in, arena, rule->of, items + (size_t)i * rule->of->size);
    memcpy(ret + rule->offset, &items, sizeof(items));
    memcpy(ret + rule->count_offset, &count, sizeof(count));
}

static void read_value(struct mp_thrift_in *in, struct mp_arena *arena,
                       const struct mp_thrift_rule *rule, uint8_t type, char *ret)
{
    char *to = ret + rule->offset;
    struct mp_str text;
    int64_t value;

    switch (rule->kind) {
    case MP_THRIFT_TO_BOOL:
        *(bool *)(void *)to = type == MP_THRIFT_TRUE;
        break;
    case MP_THRIFT_TO_I8:
        *to = (char)byte(in);
        break;
    case MP_THRIFT_TO_I16:
        *(int16_t *)(void *)to = (int16_t)ranged(in, INT16_MIN, INT16_MAX);
        break;
    case MP_THRIFT_TO_I32:
        *(int32_t *)(void *)to = (int32_t)ranged(in, INT32_MIN, INT32_MAX);
        break;
    case MP_THRIFT_TO_I64:
        value = mp_thrift_in_int(in);
        memcpy(to, &value, sizeof(value));
        break;
    case MP_THRIFT_TO_TEXT:
        text = take(in, varint(in));
        memcpy(to, &text, sizeof(text));
        break;
    case MP_THRIFT_TO_STRUCT:
        memset(to, 0, rule->of->size);
        mp_thrift_in_struct(in, arena, rule->of, to);
        break;
    case MP_THRIFT_TO_LIST:
        read_list(in, arena, rule, ret);
        break;
    default:
        mp_thrift_in_skip(in, type);
    }
}

static void read_field(struct mp_thrift_in *in, struct mp_arena *arena,
                       const struct mp_thrift_shape *shape, const struct mp_thrift_rule *rule,
                       uint8_t type, char *ret)
{
    uint8_t want = wire_types[rule->kind];
    const char *begin = in->at;
    struct mp_str raw;

    if (want != TYPE_STOP && type != want && !(want == MP_THRIFT_TRUE && type == MP_THRIFT_FALSE)) {
        fault(in, "field %d of %s has type %d, not %d", rule->id, shape->name, type, want);
        return;
    }
    read_value(in, arena, rule, type, ret);
    raw = (struct mp_str){begin, (size_t)(in->at - begin)};
    if (rule->raw_offset)
        memcpy(ret + rule->raw_offset, &raw, sizeof(raw));
}

void mp_thrift_in_struct(struct mp_thrift_in *in, struct mp_arena *arena,
                         const struct mp_thrift_shape *shape, void *ret)
{
    struct mp_thrift_field field = {0};
    uint32_t has = 0, missing;

    while (mp_thrift_in_field(in, &field)) {
        const struct mp_thrift_rule *rule = rule_of(shape, field.id);

        if (!rule) {
            mp_thrift_in_skip(in, field.type);
            continue;
        }
        read_field(in, arena, shape, rule, field.type, ret);
        has |= UINT32_C(1) << rule->id;
    }
    missing = shape->required & ~has;
    if (missing)
        fault(in, "a %s without its field %d", shape->name, __builtin_ctz(missing));
    memcpy(ret, &has, sizeof(has));
}
