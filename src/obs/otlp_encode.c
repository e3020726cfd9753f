/* obs/otlp_encode.c - see otlp_encode.h.
 *
 * A nested message is written behind its tag; its length, whose own size depends on it, is put in
 * front of it when it is closed.
 */
#include "obs/otlp_encode.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, VARINT_BYTES_MAX = 10 };

/* Field numbers, message by message. */
enum { REQUEST_RESOURCE_LOGS = 1 };
enum { RESOURCE_LOGS_RESOURCE = 1, RESOURCE_LOGS_SCOPE_LOGS = 2 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_LOGS_SCOPE = 1, SCOPE_LOGS_RECORDS = 2 };
enum { SCOPE_NAME = 1 };
enum {
    RECORD_TIME = 1,
    RECORD_SEVERITY = 2,
    RECORD_SEVERITY_TEXT = 3,
    RECORD_BODY = 5,
    RECORD_ATTRIBUTES = 6,
    RECORD_OBSERVED_TIME = 11
};
enum { PAIR_KEY = 1, PAIR_VALUE = 2 };
enum { ANY_TEXT = 1, ANY_INTEGER = 3, ANY_DOUBLE = 4 };

static size_t varint_bytes(uint64_t value, char ret[VARINT_BYTES_MAX])
{
    size_t size = 0;

    for (; value >= 0x80; value >>= 7)
        ret[size++] = (char)(value | 0x80);
    ret[size++] = (char)value;
    return size;
}

static void add_varint(struct mp_buf *buf, uint64_t value)
{
    char bytes[VARINT_BYTES_MAX];

    mp_buf_add(buf, bytes, varint_bytes(value, bytes));
}

static void add_tag(struct mp_buf *buf, unsigned field, unsigned wire)
{
    add_varint(buf, field << 3 | wire);
}

static void add_fixed64(struct mp_buf *buf, unsigned field, uint64_t value)
{
    add_tag(buf, field, WIRE_FIXED64);
    for (int shift = 0; shift < 64; shift += 8)
        mp_buf_add_byte(buf, (char)(value >> shift));
}

static size_t open_field(struct mp_buf *buf, unsigned field)
{
    add_tag(buf, field, WIRE_BYTES);
    return buf->size;
}

/* Puts the length of all that came since in front of it. */
static void close_field(struct mp_buf *buf, size_t at)
{
    char length[VARINT_BYTES_MAX];
    size_t bytes = buf->size - at, size = varint_bytes(bytes, length);

    mp_buf_reserve(buf, size);
    memmove(buf->data + at + size, buf->data + at, bytes);
    memcpy(buf->data + at, length, size);
    buf->size += size;
}

static void add_text(struct mp_buf *buf, unsigned field, struct mp_str text)
{
    size_t at = open_field(buf, field), left = text.size;
    const unsigned char *bytes = (const unsigned char *)text.data;

    while (left) {
        uint32_t point;
        size_t length = mp_utf8_read(mp_str_n(bytes, left), &point);

        if (length)
            mp_buf_add(buf, bytes, length);
        else
            mp_buf_add_c(buf, "\xef\xbf\xbd");
        bytes += length ? length : 1;
        left -= length ? length : 1;
    }
    close_field(buf, at);
}

/* An AnyValue: a number that is one, else a text. */
static void add_value(struct mp_buf *buf, unsigned field, bool number, struct mp_str text)
{
    size_t at = open_field(buf, field);
    char digits[64], *end = digits;
    long long integer;
    double real;

    if (number && text.size > 0 && text.size < sizeof(digits)) {
        memcpy(digits, text.data, text.size);
        digits[text.size] = 0;
        errno = 0;
        integer = strtoll(digits, &end, 10);
        if (!*end && !errno) {
            add_tag(buf, ANY_INTEGER, WIRE_VARINT);
            add_varint(buf, (uint64_t)integer);
            goto out;
        }
        real = strtod(digits, &end);
        if (!*end) {
            uint64_t bits;

            memcpy(&bits, &real, sizeof(bits));
            add_fixed64(buf, ANY_DOUBLE, bits);
            goto out;
        }
    }
    add_text(buf, ANY_TEXT, text);
out:
    close_field(buf, at);
}

static void add_pair(struct mp_buf *buf, unsigned field, struct mp_str key, bool number,
                     struct mp_str value)
{
    size_t at = open_field(buf, field);

    add_text(buf, PAIR_KEY, key);
    add_value(buf, PAIR_VALUE, number, value);
    close_field(buf, at);
}

/* SeverityNumber of the OpenTelemetry log data model, and its short name. */
static const struct severity {
    enum mp_log_level least;
    unsigned number;
    struct mp_str name;
} severities[] = {
    {MP_LOG_ERROR, 17, MP_STR_INIT("ERROR")},
    {MP_LOG_WARN, 13, MP_STR_INIT("WARN")},
    {MP_LOG_INFO, 9, MP_STR_INIT("INFO")},
    {0, 5, MP_STR_INIT("DEBUG")},
};

void mp_otlp_add_record(struct mp_buf *buf, const struct mp_otlp_record *record)
{
    const struct severity *severity = severities;

    while (record->level < severity->least)
        severity++;
    add_fixed64(buf, RECORD_TIME, (uint64_t)record->time_us * 1000);
    add_tag(buf, RECORD_SEVERITY, WIRE_VARINT);
    add_varint(buf, severity->number);
    add_text(buf, RECORD_SEVERITY_TEXT, severity->name);
    add_value(buf, RECORD_BODY, false, record->body);
    for (uint32_t i = 0; i < record->field_count; i++)
        add_pair(buf, RECORD_ATTRIBUTES, mp_str_c(record->fields[i].name), record->fields[i].number,
                 record->fields[i].text);
    add_fixed64(buf, RECORD_OBSERVED_TIME, (uint64_t)record->observed_us * 1000);
}

size_t mp_otlp_request_open(struct mp_buf *buf, const struct mp_otlp_attribute *resource,
                            uint32_t count)
{
    size_t at = open_field(buf, REQUEST_RESOURCE_LOGS);
    size_t resource_at = open_field(buf, RESOURCE_LOGS_RESOURCE);

    for (uint32_t i = 0; i < count; i++)
        add_pair(buf, RESOURCE_ATTRIBUTES, resource[i].key, false, resource[i].value);
    close_field(buf, resource_at);
    return at;
}

size_t mp_otlp_scope_open(struct mp_buf *buf, struct mp_str name)
{
    size_t at = open_field(buf, RESOURCE_LOGS_SCOPE_LOGS);
    size_t scope_at = open_field(buf, SCOPE_LOGS_SCOPE);

    add_text(buf, SCOPE_NAME, name);
    close_field(buf, scope_at);
    return at;
}

void mp_otlp_scope_add(struct mp_buf *buf, struct mp_str record)
{
    add_tag(buf, SCOPE_LOGS_RECORDS, WIRE_BYTES);
    add_varint(buf, record.size);
    mp_buf_add_str(buf, record);
}

void mp_otlp_part_close(struct mp_buf *buf, size_t opened)
{
    close_field(buf, opened);
}
