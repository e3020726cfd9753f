/* obs/otlp_encode.h - log records as an OTLP export request, in protobuf's wire format.
 *
 * Pure: the same values give the same bytes. A record is encoded when it is logged, a request is
 * put together of encoded records when it is sent:
 *
 *     ExportLogsServiceRequest
 *         ResourceLogs          one: who we are
 *             ScopeLogs         one a logger
 *                 LogRecord     time, severity, body, attributes
 *
 * Texts that are not UTF-8 get U+FFFD for each wrong byte: a protobuf string must be UTF-8, and one
 * such byte would make the receiver refuse the whole request.
 *
 * After    opentelemetry-proto 1.x, collector/logs/v1 and logs/v1 (field numbers); "Protocol
 * Buffers Encoding" (varint, fixed64, length-delimited).
 */
#ifndef MP_OBS_OTLP_ENCODE_H
#define MP_OBS_OTLP_ENCODE_H

#include "base/buf.h"
#include "obs/log.h"

struct mp_otlp_attribute {
    struct mp_str key, value;
};

struct mp_otlp_record {
    int64_t time_us, observed_us; /* since 1970 */
    enum mp_log_level level;
    struct mp_str body;
    const struct mp_log_field *fields; /* attributes: integers, doubles or texts */
    uint32_t field_count;
};

/* Adds one LogRecord, without tag and length. */
void mp_otlp_add_record(struct mp_buf *buf, const struct mp_otlp_record *record);

/* A request is opened, its scopes are opened, filled and closed one behind the other, and it is
 * closed. What open gives goes to close. */
size_t mp_otlp_request_open(struct mp_buf *buf, const struct mp_otlp_attribute *resource,
                            uint32_t count);
size_t mp_otlp_scope_open(struct mp_buf *buf, struct mp_str name);
void mp_otlp_scope_add(struct mp_buf *buf, struct mp_str record);
void mp_otlp_part_close(struct mp_buf *buf, size_t opened);

#endif
