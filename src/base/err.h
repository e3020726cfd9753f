/* base/err.h - one error type, one way up.
 *
 * What can fail returns enum mp_code and fills a caller-owned struct mp_err (on the stack, NULL
 * allowed). Who saw the fault sets `retriable`; only pipeline owns the retry ladder and only it
 * logs the fault, once. Messages are lower case, name the thing and give the number that was
 * wrong, and never hold a secret.
 */
#ifndef MP_BASE_ERR_H
#define MP_BASE_ERR_H

#include <stdbool.h>

enum mp_code {
    MP_OK,
    MP_FULL,       /* flush first; nothing was changed */
    MP_IO,         /* the world failed: disk, socket, server */
    MP_TIMEOUT,    /* the world did not answer in time */
    MP_CONFLICT,   /* somebody else won a race; reading again and retrying helps */
    MP_NOT_FOUND,  /* the named thing is not there */
    MP_BAD_DATA,   /* bytes that do not parse or do not fit */
    MP_BAD_CONFIG, /* a setting, or a thing outside that no retry will mend */
    MP_REFUSED,    /* an answered refusal; permanent */
    MP_FENCED,     /* another process owns these partitions now */
    MP_CHANGED,    /* the destination changed under the batch; read its ranges again */
    MP_STOPPED,    /* asked to stop */
};

struct mp_err {
    enum mp_code code;
    bool retriable;   /* the same call may succeed later */
    int sys;          /* errno, HTTP status or 0 */
    unsigned wait_ms; /* what the other side asked us to wait at least, 0 none */
    char text[512];
};

/* Fills err (when not NULL) and returns code, so that `return mp_err_set(...)` reads well.
 * retriable is set for MP_IO, MP_TIMEOUT and MP_CONFLICT; change it afterwards where that is wrong.
 */
enum mp_code mp_err_set(struct mp_err *err, enum mp_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What a system call told of a path: "what path: why" and sys, from errno. */
enum mp_code mp_err_errno(struct mp_err *err, enum mp_code code, const char *what,
                          const char *path);
/* Puts "what: " in front of the text. */
void mp_err_add(struct mp_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Gives a constant lower-case name, such as "conflict". */
const char *mp_code_name(enum mp_code code);

#endif
