/* config/read.c - one setting at a time: find it, check it against the table, say what is wrong. */
#include "config/config_priv.h"

#include "base/utf8.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

struct mp_str mp_env_find(char *const *environment, const char *name)
{
    size_t size = strlen(name);

    for (char *const *entry = environment; *entry; entry++)
        if (strncmp(*entry, name, size) == 0 && (*entry)[size] == '=')
            return mp_str_c(*entry + size + 1);
    return (struct mp_str){NULL, 0};
}

/* Whether what stands in place of a host has a ':' that begins no port: then it is a user's name
 * and the beginning of a password. */
static bool is_sign_in(struct mp_str host)
{
    const char *colon = memchr(host.data, ':', host.size);
    const char *end = host.data + host.size;

    if (!colon || *host.data == '[')
        return false;
    while (++colon < end && *colon >= '0' && *colon <= '9')
        ;
    return colon < end;
}

/* An address may hold "user:password@", with a scheme in front of it or without, and a '/' in the
 * password; what stands behind '?' may be a key. A catalog that is a file has no secret. */
static struct mp_str without_secrets(struct mp_arena *arena, struct mp_str value)
{
    size_t begin = 0, end, at = 0;
    const char *query = NULL;

    if (!value.size)
        return value;
    for (size_t i = 0; i + 2 < value.size && !begin; i++)
        if (memcmp(value.data + i, "://", 3) == 0)
            begin = i + 3;
    for (end = begin; end < value.size && !strchr("/?#", value.data[end]); end++)
        if (value.data[end] == '@')
            at = end;
    at = begin ? at : 0; /* without a scheme an '@' alone says nothing */
    if (!at && is_sign_in(mp_str_n(value.data + begin, end - begin)))
        for (size_t i = begin; i < value.size; i++)
            at = value.data[i] == '@' ? i : at;
    if (at)
        value = mp_str_c(mp_arena_printf(arena, "%.*s(hidden)%.*s", (int)begin, value.data,
                                         (int)(value.size - at), value.data + at));
    if (begin)
        query = memchr(value.data, '?', value.size);
    if (query)
        value = mp_str_c(
            mp_arena_printf(arena, "%.*s?(hidden)", (int)(query - value.data), value.data));
    return value;
}

const char *mp_setting_shown(struct mp_arena *arena, enum mp_setting_id id, struct mp_str value)
{
    enum { SHOWN_MAX = 200 };
    char *text, *place;

    if (id == MP_SET_MILLPOND_CATALOG && mp_str_starts(value, MP_STR("sqlite:")))
        ; /* a path: no secret */
    else if (mp_settings[id].flags & MP_FLAG_SECRET)
        return value.size ? "(hidden)" : "";
    value = without_secrets(arena, value);
    text = place = mp_arena_take(arena, 4 * SHOWN_MAX + 8);
    for (size_t i = 0; i < value.size && i < SHOWN_MAX; i++) {
        unsigned char c = (unsigned char)value.data[i];

        if (c >= 0x20 && c != 0x7f)
            *place++ = (char)c;
        else
            place += sprintf(place, "\\x%02x", c);
    }
    if (value.size > SHOWN_MAX)
        memcpy(place, "...", 3);
    return text;
}

const char *mp_setting_allowed(struct mp_arena *arena, enum mp_setting_id id)
{
    const struct mp_setting *setting = &mp_settings[id];
    struct mp_str rest = mp_str_c(setting->choices), choice;
    const char *list = "";

    switch (setting->kind) {
    case MP_KIND_INT:
        return mp_arena_printf(arena, "an integer from %lld to %lld", (long long)setting->low,
                               (long long)setting->high);
    case MP_KIND_REAL:
        return "a positive number of seconds";
    case MP_KIND_IDENT:
        return "a letter or '_', then at most 254 letters, digits and '_'";
    case MP_KIND_CHOICE:
        while (mp_text_next(&rest, '|', &choice))
            list = mp_arena_printf(arena, "%s%s%.*s", list, *list ? ", " : "", MP_STR_ARG(choice));
        return mp_arena_printf(arena, "one of %s", list);
    case MP_KIND_BOOL:
        return "true or false";
    case MP_KIND_DURATION:
        return "a positive number of seconds, or one with s, m, h or d behind it";
    case MP_KIND_LIST:
        return "a list separated by commas";
    case MP_KIND_TEXT:
        break;
    }
    return "text";
}

enum mp_code mp_setting_fault(struct mp_reader *r, enum mp_setting_id id, struct mp_str value,
                              const char *allowed)
{
    const char *shown = mp_setting_shown(r->arena, id, value);

    if (!allowed)
        allowed = mp_setting_allowed(r->arena, id);
    if (!value.size)
        return mp_err_set(r->err, MP_BAD_CONFIG, "%s is set but empty: allowed is %s",
                          mp_settings[id].name, allowed);
    if (mp_settings[id].flags & MP_FLAG_SECRET)
        return mp_err_set(r->err, MP_BAD_CONFIG, "%s (its value is not shown): allowed is %s",
                          mp_settings[id].name, allowed);
    return mp_err_set(r->err, MP_BAD_CONFIG, "%s is \"%s\": allowed is %s", mp_settings[id].name,
                      shown, allowed);
}

enum mp_code mp_read_fault(struct mp_reader *r, enum mp_setting_id id, const char *allowed)
{
    return mp_setting_fault(r, id, mp_env_find(r->environment, mp_settings[id].name), allowed);
}

enum mp_code mp_read_alone(struct mp_reader *r, enum mp_setting_id given,
                           enum mp_setting_id missing)
{
    const char *shown =
        mp_setting_shown(r->arena, given, mp_env_find(r->environment, mp_setting_name(given)));

    return mp_err_set(r->err, MP_BAD_CONFIG,
                      "%s is \"%s\", but %s is not set: allowed are both or neither",
                      mp_setting_name(given), shown, mp_setting_name(missing));
}

void mp_config_warn(struct mp_reader *r, const char *format, ...)
{
    struct mp_config *config = r->config;
    char text[512];
    va_list args;

    if (config->warning_count == MP_CONFIG_WARNINGS_MAX)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    config->warnings[config->warning_count++] = mp_arena_str(r->arena, mp_str_c(text));
}

bool mp_read_given(struct mp_reader *r, enum mp_setting_id id)
{
    return mp_env_find(r->environment, mp_settings[id].name).size > 0;
}

enum mp_code mp_read_text(struct mp_reader *r, enum mp_setting_id id, struct mp_str *ret)
{
    const struct mp_setting *setting = &mp_settings[id];
    struct mp_str value = mp_env_find(r->environment, setting->name);

    if (!value.size && setting->flags & MP_FLAG_REQUIRED)
        return mp_err_set(r->err, MP_BAD_CONFIG, "required environment variable %s is not set",
                          setting->name);
    if (!mp_utf8_is(value))
        return mp_setting_fault(r, id, value, "UTF-8 text");
    if (setting->kind == MP_KIND_IDENT) {
        value = mp_text_trim(value);
        if (value.size && !mp_text_identifier(value))
            return mp_setting_fault(r, id, value, NULL);
    }
    if (!value.size)
        value = mp_str_c(setting->value);
    *ret = mp_arena_str(r->arena, value);
    return MP_OK;
}

/* The value of a number, a choice or a switch; *ret is empty where there is neither value nor
 * default. */
static enum mp_code read_plain(struct mp_reader *r, enum mp_setting_id id, struct mp_str *ret)
{
    const struct mp_setting *setting = &mp_settings[id];
    struct mp_str value = mp_env_find(r->environment, setting->name);
    bool blank = mp_text_trim(value).size == 0;
    bool blank_is_default = setting->flags & MP_FLAG_BLANK || setting->kind == MP_KIND_CHOICE;

    if (blank && setting->flags & MP_FLAG_REQUIRED)
        return mp_err_set(r->err, MP_BAD_CONFIG, "required environment variable %s is not set",
                          setting->name);
    if (value.data && blank && !blank_is_default)
        return mp_setting_fault(r, id, mp_text_trim(value), NULL);
    *ret = blank ? mp_str_c(setting->value) : value;
    return MP_OK;
}

enum mp_code mp_read_int(struct mp_reader *r, enum mp_setting_id id, int64_t *ret)
{
    const struct mp_setting *setting = &mp_settings[id];
    struct mp_str value;
    int64_t number;
    bool fits;
    enum mp_code code = read_plain(r, id, &value);

    assert(setting->kind == MP_KIND_INT);
    if (code)
        return code;
    if (!value.size) {
        *ret = 0;
        return MP_OK;
    }
    if (!mp_text_integer(value, &number, &fits) || !fits || number < setting->low ||
        number > setting->high)
        return mp_setting_fault(r, id, value, NULL);
    *ret = number;
    return MP_OK;
}

enum mp_code mp_read_seconds(struct mp_reader *r, enum mp_setting_id id, double *ret_s,
                             uint32_t *ret_ms)
{
    const double most_s = 86400;
    struct mp_str value;
    double number;
    enum mp_code code = read_plain(r, id, &value);

    assert(mp_settings[id].kind == MP_KIND_REAL);
    if (code)
        return code;
    if (!mp_text_real(value, &number) || number <= 0 || number > most_s)
        return mp_setting_fault(r, id, value, "a positive number of seconds, at most 86400");
    *ret_s = number;
    *ret_ms = number < 0.001 ? 1 : (uint32_t)lround(number * 1000);
    return MP_OK;
}

enum mp_code mp_read_choice(struct mp_reader *r, enum mp_setting_id id, unsigned *ret)
{
    const struct mp_setting *setting = &mp_settings[id];
    struct mp_str value, rest = mp_str_c(setting->choices), choice;
    enum mp_code code = read_plain(r, id, &value);
    unsigned index = 0;

    assert(setting->kind == MP_KIND_CHOICE);
    assert(setting->value);
    if (code)
        return code;
    for (; mp_text_next(&rest, '|', &choice); index++)
        if (mp_str_eq_fold(mp_text_trim(value), choice)) {
            *ret = index;
            return MP_OK;
        }
    return mp_setting_fault(r, id, value, NULL);
}

enum mp_code mp_read_bool(struct mp_reader *r, enum mp_setting_id id, bool *ret)
{
    static const struct {
        struct mp_str text;
        bool value;
    } words[] = {{{"true", 4}, true}, {{"false", 5}, false}, {{"1", 1}, true},  {{"0", 1}, false},
                 {{"yes", 3}, true},  {{"no", 2}, false},    {{"on", 2}, true}, {{"off", 3}, false},
                 {{"t", 1}, true},    {{"f", 1}, false}};
    struct mp_str value;
    enum mp_code code = read_plain(r, id, &value);

    assert(mp_settings[id].kind == MP_KIND_BOOL);
    if (code)
        return code;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (mp_str_eq_fold(mp_text_trim(value), words[i].text)) {
            *ret = words[i].value;
            return MP_OK;
        }
    return mp_setting_fault(r, id, value, NULL);
}

enum mp_code mp_read_duration(struct mp_reader *r, enum mp_setting_id id, uint64_t *ret_s)
{
    const int64_t most_s = 3650 * (int64_t)86400;
    struct mp_str value, number;
    int64_t count, unit = 1;
    bool fits;
    enum mp_code code = read_plain(r, id, &value);

    assert(mp_settings[id].kind == MP_KIND_DURATION);
    if (code)
        return code;
    number = mp_text_trim(value);
    if (number.size)
        switch (number.data[number.size - 1]) {
        case 'd':
            unit = 86400;
            break;
        case 'h':
            unit = 3600;
            break;
        case 'm':
            unit = 60;
            break;
        case 's':
            break;
        default:
            unit = 0; /* a bare number */
        }
    if (unit)
        number.size--;
    else
        unit = 1;
    if (!mp_text_integer(number, &count, &fits) || !fits || count < 1 || count > most_s / unit)
        return mp_setting_fault(r, id, value, NULL);
    *ret_s = (uint64_t)(count * unit);
    return MP_OK;
}
