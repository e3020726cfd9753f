/* obs/log.h - log lines on one file descriptor, JSON or text.
 *
 * JSON: one object a line: ts (UTC, ISO 8601 with offset and microseconds), level, logger, msg,
 * then the extra fields; non-ASCII is escaped. Text: `2024-01-01T00:00:00 INFO  [ordinal][logger]
 * message`, local time. Levels and names are those of Python's logging module.
 *
 * Threads  any; a line is one write.
 */
#ifndef MP_OBS_LOG_H
#define MP_OBS_LOG_H

#include "base/env.h"
#include "base/str.h"

enum mp_log_level { MP_LOG_DEBUG = 10, MP_LOG_INFO = 20, MP_LOG_WARN = 30, MP_LOG_ERROR = 40 };

struct mp_log_options {
    int fd;
    enum mp_log_level level; /* lines below are dropped */
    bool json;
    struct mp_str ordinal; /* for text lines */
};

struct mp_log_field {
    const char *name;
    bool number; /* print text without quotes */
    struct mp_str text;
};

/* One line before it is printed; all borrowed for the call. */
struct mp_log_line {
    int64_t wall_us;
    enum mp_log_level level;
    const char *logger;
    struct mp_str message;
    const struct mp_log_field *fields;
    uint32_t field_count;
};

/* Where lines go beside the descriptor. `line` is called for each line that is written, one at a
 * time, from the thread that logs: it neither waits nor logs. */
struct mp_log_sink {
    void *self;
    void (*line)(void *self, const struct mp_log_line *line);
};

struct mp_log;

/* Borrows env until free. */
struct mp_log *mp_log_new(const struct mp_log_options *options, const struct mp_env *env);
void mp_log_free(struct mp_log *log);
/* One more place for lines; NULL: no more. When it returns, the one before is not called any more.
 * Borrows sink until then. */
void mp_log_set_sink(struct mp_log *log, const struct mp_log_sink *sink);

/* logger: "millpond.main" and the like. log NULL drops the line. */
void mp_log(struct mp_log *log, enum mp_log_level level, const char *logger, const char *format,
            ...) __attribute__((format(printf, 4, 5)));
void mp_log_with(struct mp_log *log, enum mp_log_level level, const char *logger,
                 const struct mp_log_field *fields, uint32_t field_count, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* A bound on lines of one kind: so many at once, then one a second; says how many it kept back
 * when the next goes through. Belongs to one thread. */
struct mp_log_limit {
    uint32_t burst; /* set by the owner */
    uint32_t used;
    uint64_t since_us, dropped;
};
/* True where the line may be written; *ret_dropped lines were kept back since the last one. */
bool mp_log_limit_pass(struct mp_log_limit *limit, uint64_t now_mono_us, uint64_t *ret_dropped);

/* Copies at most bytes_max bytes of data as printable ASCII: control and high bytes as \xNN. */
struct mp_str mp_log_sample(struct mp_str data, size_t bytes_max, char *ret, size_t ret_size);

#endif
