/* config/setting.c - settings.def as a table. */
#include "config/config_priv.h"

#define TEXT            MP_KIND_TEXT, 0, 0, NULL
#define IDENT           MP_KIND_IDENT, 0, 0, NULL
#define INT(low, high)  MP_KIND_INT, low, high, NULL
#define REAL            MP_KIND_REAL, 0, 0, NULL
#define CHOICE(choices) MP_KIND_CHOICE, 0, 0, choices
#define BOOL            MP_KIND_BOOL, 0, 0, NULL
#define LIST            MP_KIND_LIST, 0, 0, NULL
#define DURATION        MP_KIND_DURATION, 0, 0, NULL
#define REQUIRED        MP_FLAG_REQUIRED
#define SECRET          MP_FLAG_SECRET
#define BLANK           MP_FLAG_BLANK
#define IGNORED         MP_FLAG_IGNORED

const struct mp_setting mp_settings[MP_SET_COUNT] = {
#define MP_SETTING(name, kind, value, where, flags, section, meaning)                              \
    [MP_SET_##name] = {#name, kind, value, MP_WHERE_##where, flags, MP_SECTION_##section, meaning},
#include "config/settings.def"
#undef MP_SETTING
};
