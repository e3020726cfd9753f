#include "store/profile.h"

#include "base/file.h"

#include <limits.h>
#include <stdio.h>

static struct mp_str trim(struct mp_str text)
{
    while (text.size > 0 && strchr(" \t\r", text.data[text.size - 1]))
        text.size--;
    while (text.size > 0 && strchr(" \t", *text.data))
        text = (struct mp_str){text.data + 1, text.size - 1};
    return text;
}

static void take_value(struct mp_profile *profile, struct mp_str key, struct mp_str value)
{
    const struct {
        const char *key;
        char *place;
        size_t size;
    } known[] = {
        {"aws_access_key_id", profile->access_key, sizeof(profile->access_key)},
        {"aws_secret_access_key", profile->secret_key, sizeof(profile->secret_key)},
        {"aws_session_token", profile->token, sizeof(profile->token)},
        {"region", profile->region, sizeof(profile->region)},
        {"role_arn", profile->role_arn, sizeof(profile->role_arn)},
        {"web_identity_token_file", profile->web_identity_token_file,
         sizeof(profile->web_identity_token_file)},
        {"role_session_name", profile->role_session_name, sizeof(profile->role_session_name)},
    };
    static const char *const unsupported[] = {"credential_process", "sso_session", "sso_start_url",
                                              "source_profile", "credential_source"};

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (mp_str_eq_fold(key, mp_str_c(known[i].key)) && value.size < known[i].size) {
            memcpy(known[i].place, value.data, value.size);
            known[i].place[value.size] = 0;
        }
    for (size_t i = 0; i < sizeof(unsupported) / sizeof(*unsupported); i++)
        if (mp_str_eq_fold(key, mp_str_c(unsupported[i])))
            profile->unsupported = unsupported[i];
}

/* "[name]", "[profile name]"; in the config file the prefix may be missing for the default only. */
static bool is_section(struct mp_str line, struct mp_str name, bool in_config)
{
    struct mp_str prefix = MP_STR("profile ");
    const char *end = memchr(line.data, ']', line.size);
    bool prefixed;

    if (!end)
        return false;
    line = trim((struct mp_str){line.data + 1, (size_t)(end - line.data) - 1});
    prefixed = in_config && mp_str_starts(line, prefix);
    if (prefixed)
        line = trim((struct mp_str){line.data + prefix.size, line.size - prefix.size});
    if (in_config && !prefixed && !mp_str_eq(line, MP_STR("default")))
        return false;
    return mp_str_eq(line, name);
}

void mp_profile_parse(struct mp_str text, struct mp_str name, bool in_config,
                      struct mp_profile *ret)
{
    bool inside = false;

    while (text.size > 0) {
        const char *end = memchr(text.data, '\n', text.size);
        size_t size = end ? (size_t)(end - text.data) + 1 : text.size;
        struct mp_str line = {text.data, end ? size - 1 : size};
        const char *equals = memchr(line.data, '=', line.size);

        text = (struct mp_str){text.data + size, text.size - size};
        if (line.size == 0 || strchr("#; \t\r", line.data[0]))
            continue;
        if (line.data[0] == '[') {
            inside = is_section(line, name, in_config);
            ret->found |= inside;
        } else if (inside && equals) {
            size_t key_size = (size_t)(equals - line.data);

            take_value(ret, trim((struct mp_str){line.data, key_size}),
                       trim((struct mp_str){equals + 1, line.size - key_size - 1}));
        }
    }
}

static void read_one(const char *path, const struct mp_aws_environ *environment, const char *tail,
                     struct mp_str name, bool in_config, struct mp_profile *ret)
{
    struct mp_buf text = MP_BUF_INIT(MP_PROFILE_FILE_MAX);
    char in_home[PATH_MAX];

    if (!path && environment->home &&
        snprintf(in_home, sizeof(in_home), "%s/.aws/%s", environment->home, tail) <
            (int)sizeof(in_home))
        path = in_home;
    if (path && mp_file_read(path, &text))
        mp_profile_parse(mp_buf_str(&text), name, in_config, ret);
    if (text.data)
        explicit_bzero(text.data, text.size);
    mp_buf_fini(&text);
}

void mp_profile_read(const struct mp_aws_environ *environment, struct mp_profile *ret)
{
    struct mp_str name = mp_str_c(environment->profile ? environment->profile : "default");

    *ret = (struct mp_profile){.found = false};
    read_one(environment->config_file, environment, "config", name, true, ret);
    read_one(environment->shared_credentials_file, environment, "credentials", name, false, ret);
}
