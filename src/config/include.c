/* config/include.c - the polled include list. */
#include "config/config_priv.h"

static enum mp_code check_include_alone(struct mp_reader *r)
{
    static const enum mp_setting_id ids[] = {MP_SET_MILLPOND_INCLUDE_VALUES_MODE,
                                             MP_SET_MILLPOND_INCLUDE_VALUES_AUTH_HEADER_NAME,
                                             MP_SET_MILLPOND_INCLUDE_VALUES_AUTH_TOKEN};

    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
        if (mp_read_given(r, ids[i]))
            return mp_read_alone(r, ids[i], MP_SET_MILLPOND_INCLUDE_VALUES_URL);
    return MP_OK;
}

bool mp_header_ok(struct mp_str name, struct mp_str value)
{
    bool ok = true;

    for (size_t i = 0; i < name.size; i++)
        ok &= name.data[i] > 0x20 && name.data[i] < 0x7f &&
              !strchr("()<>@,;:\\\"/[]?={}", name.data[i]);
    for (size_t i = 0; i < value.size; i++)
        ok &= (unsigned char)value.data[i] >= 0x20 && value.data[i] != 0x7f;
    return ok;
}

enum mp_code mp_read_include(struct mp_reader *r)
{
    struct mp_config_include *include = &r->config->include;
    double seconds;
    int64_t polls;
    unsigned mode;
    enum mp_code code = mp_read_text(r, MP_SET_MILLPOND_INCLUDE_VALUES_URL, &include->url);

    if (code)
        return code;
    if (!include->url.size)
        return check_include_alone(r);
    if (!mp_str_starts(include->url, MP_STR("http://")) &&
        !mp_str_starts(include->url, MP_STR("https://")))
        return mp_read_fault(r, MP_SET_MILLPOND_INCLUDE_VALUES_URL,
                             "an address that begins with http:// or https://");
    if (!r->config->keep.field.size)
        return mp_read_alone(r, MP_SET_MILLPOND_INCLUDE_VALUES_URL,
                             MP_SET_MILLPOND_FILTER_KEEP_FIELD_NAME);
    code = mp_read_choice(r, MP_SET_MILLPOND_INCLUDE_VALUES_MODE, &mode);
    if (!code)
        code = mp_read_seconds(r, MP_SET_MILLPOND_INCLUDE_VALUES_POLL_INTERVAL_S, &seconds,
                               &include->poll_ms);
    if (!code)
        code = mp_read_int(r, MP_SET_MILLPOND_INCLUDE_VALUES_REMOVAL_POLLS, &polls);
    if (!code)
        code = mp_read_seconds(r, MP_SET_MILLPOND_INCLUDE_VALUES_REQUEST_TIMEOUT_S, &seconds,
                               &include->request_ms_max);
    if (!code)
        code = mp_read_seconds(r, MP_SET_MILLPOND_INCLUDE_VALUES_STARTUP_TIMEOUT_S, &seconds,
                               &include->start_ms_max);
    if (!code)
        code =
            mp_read_text(r, MP_SET_MILLPOND_INCLUDE_VALUES_AUTH_HEADER_NAME, &include->header_name);
    if (!code)
        code = mp_read_text(r, MP_SET_MILLPOND_INCLUDE_VALUES_AUTH_TOKEN, &include->header_value);
    if (code)
        return code;
    if (!include->header_name.size && include->header_value.size)
        return mp_read_alone(r, MP_SET_MILLPOND_INCLUDE_VALUES_AUTH_TOKEN,
                             MP_SET_MILLPOND_INCLUDE_VALUES_AUTH_HEADER_NAME);
    if (include->header_name.size && !include->header_value.size)
        return mp_read_alone(r, MP_SET_MILLPOND_INCLUDE_VALUES_AUTH_HEADER_NAME,
                             MP_SET_MILLPOND_INCLUDE_VALUES_AUTH_TOKEN);
    if (!mp_header_ok(include->header_name, include->header_value))
        return mp_err_set(r->err, MP_BAD_CONFIG,
                          "MILLPOND_INCLUDE_VALUES_AUTH_HEADER_NAME or its token (whose value is "
                          "not shown) cannot stand in an HTTP header");
    include->mode = mode ? MP_INCLUDE_AUTHORITATIVE : MP_INCLUDE_SHADOW;
    include->removal_polls = (uint32_t)polls;
    if (polls == 1)
        mp_config_warn(r, "MILLPOND_INCLUDE_VALUES_REMOVAL_POLLS is 1: one poll without a value "
                          "removes it");
    return MP_OK;
}
