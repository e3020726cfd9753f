/* store/profile.h - the shared files of AWS tools: an INI dialect.
 *
 * Sections "[name]" in the credentials file, "[profile name]" or "[default]" in the config file,
 * "key = value" lines, '#' and ';' comments. Indented lines belong to the value above them and are
 * stepped over: nothing we read has any.
 *
 * After    "Shared config and credentials files", AWS SDKs and Tools Reference Guide.
 */
#ifndef MP_STORE_PROFILE_H
#define MP_STORE_PROFILE_H

#include "store/credentials.h"

#include "base/buf.h"

#define MP_PROFILE_FILE_MAX (1024 * 1024)

struct mp_profile {
    bool found; /* the profile is in one of the files */
    char access_key[MP_AWS_KEY_MAX], secret_key[MP_AWS_KEY_MAX];
    char token[MP_AWS_TOKEN_MAX];
    char region[64];
    char role_arn[2048], web_identity_token_file[4096], role_session_name[128];
    const char *unsupported; /* a setting that asks for a source we do not have; NULL: none */
};

/* Reads the profile that environment names from both files; what the credentials file says wins. A
 * file that is not there is empty. */
void mp_profile_read(const struct mp_aws_environ *environment, struct mp_profile *ret);
/* What one file says of the profile. in_config: sections are called "profile name". */
void mp_profile_parse(struct mp_str text, struct mp_str name, bool in_config,
                      struct mp_profile *ret);
#endif
