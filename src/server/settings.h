/* server/settings.h - the environment of hoglaked as one plain struct, read once.
 *
 * One member a line of settings.def, by its name. Texts are borrowed from the environment, and so
 * is what the table gives as default.
 */
#ifndef MP_SERVER_SETTINGS_H
#define MP_SERVER_SETTINGS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct mp_server_settings {
#define TEXT                                          struct mp_str
#define SECRET                                        struct mp_str
#define BOOL                                          bool
#define INT(low, high)                                int64_t
#define MP_SERVER_SETTING(name, kind, value, meaning) kind name;
#include "server/settings.def"
#undef MP_SERVER_SETTING
#undef TEXT
#undef SECRET
#undef BOOL
#undef INT
    struct mp_str database; /* URI for libpq, user and password in it; secret */
    int log_level;
};

/* MP_BAD_CONFIG: the error names the variable and what is allowed, never a secret. */
enum mp_code mp_server_settings_load(struct mp_arena *arena, char *const *environment,
                                     struct mp_err *err, struct mp_server_settings *ret);
/* Names that are nearly a setting and are none: gives the next one and the setting that is meant;
 * false: there is none. at starts with 0. */
bool mp_server_settings_slip(char *const *environment, size_t *at, struct mp_str *ret_name,
                             const char **ret_meant);
/* The table for people: name, default, value (secrets hidden), meaning. */
void mp_server_settings_print(const struct mp_server_settings *settings, struct mp_buf *ret);

#endif
