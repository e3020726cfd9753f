#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum mp_code mp_err_set(struct mp_err *err, enum mp_code code, const char *format, ...)
{
    va_list args;

    if (!err)
        return code;
    *err = (struct mp_err){
        .code = code,
        .retriable = code == MP_IO || code == MP_TIMEOUT || code == MP_CONFLICT,
    };
    va_start(args, format);
    vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    return code;
}

enum mp_code mp_err_errno(struct mp_err *err, enum mp_code code, const char *what, const char *path)
{
    int sys = errno;

    mp_err_set(err, code, "%s %s: %s", what, path, strerror(sys));
    if (err)
        err->sys = sys;
    return code;
}

void mp_err_add(struct mp_err *err, const char *format, ...)
{
    char text[sizeof(err->text)];
    va_list args;
    int used;

    if (!err)
        return;
    va_start(args, format);
    used = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (used < 0)
        return;
    if ((size_t)used < sizeof(text))
        snprintf(text + used, sizeof(text) - (size_t)used, ": %s", err->text);
    memcpy(err->text, text, sizeof(text));
    err->text[sizeof(text) - 1] = 0;
}

const char *mp_code_name(enum mp_code code)
{
    static const char *const names[] = {
        [MP_OK] = "ok",
        [MP_FULL] = "full",
        [MP_IO] = "io",
        [MP_TIMEOUT] = "timeout",
        [MP_CONFLICT] = "conflict",
        [MP_NOT_FOUND] = "not found",
        [MP_BAD_DATA] = "bad data",
        [MP_BAD_CONFIG] = "bad configuration",
        [MP_REFUSED] = "refused",
        [MP_FENCED] = "fenced",
        [MP_CHANGED] = "destination changed",
        [MP_STOPPED] = "stopped",
    };

    return names[code];
}
