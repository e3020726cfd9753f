/* obs/log.c - see log.h.
 *
 * A line is put together in memory and written in one call under a lock, so that lines of several
 * threads never mix. A line is also really one line: control bytes of a message are escaped in
 * both formats, since messages may quote what a stranger sent.
 *
 * Not chosen: a queue with a thread of its own. A log that is read slowly may then be lost at a
 * crash, which is when it is wanted.
 */
#include "obs/log.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* A message or a field is cut here; six bytes a byte is the worst an escape makes of it. */
enum { TEXT_BYTES_MAX = 64 * 1024, ESCAPE_BYTES_MAX = 6, HEAD_BYTES_MAX = 4096 };

struct mp_log {
    struct mp_log_options options;
    const struct mp_env *env;
    char *ordinal;
    pthread_mutex_t lock; /* held for the write, and over what follows */
    const struct mp_log_sink *sink;
};

static const char *level_name(enum mp_log_level level)
{
    if (level >= MP_LOG_ERROR)
        return "ERROR";
    if (level >= MP_LOG_WARN)
        return "WARNING";
    return level >= MP_LOG_INFO ? "INFO" : "DEBUG";
}

struct mp_log *mp_log_new(const struct mp_log_options *options, const struct mp_env *env)
{
    struct mp_log *log = mp_alloc(sizeof(*log));

    log->options = *options;
    log->env = env;
    log->ordinal = mp_alloc(options->ordinal.size + 1);
    if (options->ordinal.size)
        memcpy(log->ordinal, options->ordinal.data, options->ordinal.size);
    log->options.ordinal.data = log->ordinal;
    pthread_mutex_init(&log->lock, NULL);
    tzset(); /* for localtime_r in text lines */
    return log;
}

void mp_log_free(struct mp_log *log)
{
    if (!log)
        return;
    pthread_mutex_destroy(&log->lock);
    mp_free(log->ordinal);
    mp_free(log);
}

/* A JSON string of ASCII only; a byte that is no UTF-8 becomes U+FFFD. (RFC 8259, section 7) */
static void add_json(struct mp_buf *buf, struct mp_str text)
{
    const unsigned char *at = (const unsigned char *)text.data;
    size_t left = text.size;

    mp_buf_add_byte(buf, '"');
    while (left) {
        uint32_t point = 0;
        size_t length = mp_utf8_read(mp_str_n(at, left), &point);

        if (!length) {
            mp_buf_add_c(buf, "\\ufffd");
            length = 1;
        } else if (point == '"' || point == '\\') {
            mp_buf_printf(buf, "\\%c", (int)point);
        } else if (point == '\n' || point == '\r' || point == '\t') {
            mp_buf_printf(buf, "\\%c", point == '\n' ? 'n' : point == '\r' ? 'r' : 't');
        } else if (point >= 0x20 && point < 0x80) {
            mp_buf_add_byte(buf, (char)point);
        } else if (point < 0x10000) {
            mp_buf_printf(buf, "\\u%04x", (unsigned)point);
        } else {
            mp_buf_printf(buf, "\\u%04x\\u%04x", 0xd800 + (unsigned)((point - 0x10000) >> 10),
                          0xdc00 + (unsigned)(point & 0x3ff));
        }
        at += length;
        left -= length;
    }
    mp_buf_add_byte(buf, '"');
}

/* UTF-8 as it is; control bytes and what is no UTF-8 as \xNN. */
static void add_plain(struct mp_buf *buf, struct mp_str text)
{
    const unsigned char *at = (const unsigned char *)text.data;
    size_t left = text.size;

    while (left) {
        uint32_t point = 0;
        size_t length = mp_utf8_read(mp_str_n(at, left), &point);

        if (!length || point < 0x20 || point == 0x7f) {
            length = 1;
            mp_buf_printf(buf, "\\x%02x", *at);
        } else {
            mp_buf_add(buf, at, length);
        }
        at += length;
        left -= length;
    }
}

static struct mp_str cut(struct mp_str text)
{
    return (struct mp_str){text.data, text.size < TEXT_BYTES_MAX ? text.size : TEXT_BYTES_MAX};
}

static void add_json_line(struct mp_buf *buf, int64_t wall_us, enum mp_log_level level,
                          const char *logger, struct mp_str message,
                          const struct mp_log_field *fields, uint32_t field_count)
{
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm utc;
    char stamp[32];

    gmtime_r(&seconds, &utc);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
    mp_buf_printf(buf, "{\"ts\": \"%s.%06d+00:00\", \"level\": \"%s\", \"logger\": ", stamp,
                  (int)(wall_us % 1000000), level_name(level));
    add_json(buf, mp_str_c(logger));
    mp_buf_add_c(buf, ", \"msg\": ");
    add_json(buf, message);
    for (uint32_t i = 0; i < field_count; i++) {
        mp_buf_add_c(buf, ", ");
        add_json(buf, mp_str_c(fields[i].name));
        mp_buf_add_c(buf, ": ");
        if (fields[i].number)
            mp_buf_add_str(buf, cut(fields[i].text));
        else
            add_json(buf, cut(fields[i].text));
    }
    mp_buf_add_c(buf, "}\n");
}

static void add_text_line(struct mp_buf *buf, int64_t wall_us, enum mp_log_level level,
                          const char *logger, struct mp_str ordinal, struct mp_str message)
{
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm local;
    char stamp[32];

    localtime_r(&seconds, &local);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &local);
    mp_buf_printf(buf, "%s %-5s [", stamp, level_name(level));
    add_plain(buf, ordinal);
    mp_buf_printf(buf, "][%s] ", logger);
    add_plain(buf, message);
    mp_buf_add_byte(buf, '\n');
}

/* A log that cannot be written has nobody to tell: the line is gone. Under the lock. */
static void write_line(struct mp_log *log, const char *data, size_t size)
{
    while (size) {
        ssize_t written = write(log->options.fd, data, size);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            break;
        data += written;
        size -= (size_t)written;
    }
}

void mp_log_set_sink(struct mp_log *log, const struct mp_log_sink *sink)
{
    pthread_mutex_lock(&log->lock);
    log->sink = sink;
    pthread_mutex_unlock(&log->lock);
}

__attribute__((format(printf, 6, 0))) static void
log_line(struct mp_log *log, enum mp_log_level level, const char *logger,
         const struct mp_log_field *fields, uint32_t field_count, const char *format, va_list args)
{
    struct mp_buf message = MP_BUF_INIT(TEXT_BYTES_MAX);
    struct mp_buf line =
        MP_BUF_INIT((size_t)TEXT_BYTES_MAX * ESCAPE_BYTES_MAX * (field_count + 1) + HEAD_BYTES_MAX);
    int64_t now_us = mp_now_wall_us(log->env);
    va_list again;
    int length;

    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, args);
    if (length >= TEXT_BYTES_MAX)
        length = TEXT_BYTES_MAX - 1;
    if (length > 0) {
        vsnprintf(mp_buf_reserve(&message, (size_t)length + 1), (size_t)length + 1, format, again);
        message.size = (size_t)length;
    }
    va_end(again);
    if (log->options.json)
        add_json_line(&line, now_us, level, logger, mp_buf_str(&message), fields, field_count);
    else
        add_text_line(&line, now_us, level, logger, log->options.ordinal, mp_buf_str(&message));
    pthread_mutex_lock(&log->lock);
    write_line(log, line.data, line.size);
    if (log->sink)
        log->sink->line(log->sink->self,
                        &(struct mp_log_line){now_us, level, logger, mp_buf_str(&message), fields,
                                              field_count});
    pthread_mutex_unlock(&log->lock);
    mp_buf_fini(&line);
    mp_buf_fini(&message);
}

void mp_log(struct mp_log *log, enum mp_log_level level, const char *logger, const char *format,
            ...)
{
    va_list args;

    if (!log || level < log->options.level)
        return;
    va_start(args, format);
    log_line(log, level, logger, NULL, 0, format, args);
    va_end(args);
}

void mp_log_with(struct mp_log *log, enum mp_log_level level, const char *logger,
                 const struct mp_log_field *fields, uint32_t field_count, const char *format, ...)
{
    va_list args;

    if (!log || level < log->options.level)
        return;
    va_start(args, format);
    log_line(log, level, logger, fields, field_count, format, args);
    va_end(args);
}

/* A bucket of `burst` that loses one a second. */
bool mp_log_limit_pass(struct mp_log_limit *limit, uint64_t now_mono_us, uint64_t *ret_dropped)
{
    uint64_t seconds = (now_mono_us - limit->since_us) / 1000000;

    assert(limit->burst > 0);
    if (limit->used <= seconds) {
        limit->used = 0;
        limit->since_us = now_mono_us;
    } else {
        limit->used -= (uint32_t)seconds;
        limit->since_us += seconds * 1000000;
    }
    if (limit->used == limit->burst) {
        limit->dropped++;
        return false;
    }
    limit->used++;
    *ret_dropped = limit->dropped;
    limit->dropped = 0;
    return true;
}

struct mp_str mp_log_sample(struct mp_str data, size_t bytes_max, char *ret, size_t ret_size)
{
    static const char hex[] = "0123456789abcdef";
    size_t count = data.size < bytes_max ? data.size : bytes_max, used = 0;

    for (size_t i = 0; i < count && used + 5 <= ret_size; i++) {
        unsigned char c = (unsigned char)data.data[i];

        if (c == '\\') {
            ret[used++] = '\\';
            ret[used++] = '\\';
        } else if (c >= 0x20 && c < 0x7f) {
            ret[used++] = (char)c;
        } else {
            ret[used++] = '\\';
            ret[used++] = 'x';
            ret[used++] = hex[c >> 4];
            ret[used++] = hex[c & 15];
        }
    }
    if (used < ret_size)
        ret[used] = 0;
    return (struct mp_str){ret, used};
}
