/* store/credentials.h - whose keys a request to AWS is signed with, and fresh ones in time.
 *
 * Either keys that were given, or the first of these sources that the environment names:
 *
 *     environment   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
 *     web identity  AWS_ROLE_ARN + AWS_WEB_IDENTITY_TOKEN_FILE (STS AssumeRoleWithWebIdentity)
 *     profile       AWS_PROFILE in the shared files: keys, or a role with a web identity
 *     container     AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI (ECS, EKS pod identity)
 *     instance      the instance metadata service, version 2 (unless AWS_EC2_METADATA_DISABLED)
 *
 * A source that is named and does not work is an error, not a reason to try the next: quietly
 * becoming somebody else is worse than stopping.
 *
 * Always   C1 keys with an end are replaced five minutes before it, or at half of their life where
 *             that is shorter than ten minutes; token and profile files are read again each time
 *          C2 while old keys are still good, a source that does not answer is no error
 *          C3 no secret, token or signature is in any error text
 * Threads  any. One thread replaces the keys while others wait for it: bounded by short time
 *          limits, and rare.
 * After    "AWS SDKs and Tools Reference Guide", standardized credential providers.
 */
#ifndef MP_STORE_CREDENTIALS_H
#define MP_STORE_CREDENTIALS_H

#include "base/env.h"
#include "base/err.h"
#include "base/str.h"

#define MP_AWS_KEY_MAX   256
#define MP_AWS_TOKEN_MAX (16 * 1024)

/* Every variable of the environment that this room reads; NULL: not set, or empty. */
struct mp_aws_environ {
    const char *access_key_id, *secret_access_key, *session_token;
    const char *role_arn, *web_identity_token_file, *role_session_name;
    const char *endpoint_url_sts, *ca_bundle;
    const char *profile, *shared_credentials_file, *config_file, *home;
    const char *region, *default_region;
    const char *container_full_uri, *container_relative_uri;
    const char *container_token, *container_token_file;
    const char *metadata_disabled, *metadata_endpoint;
    const char *container_host; /* of no variable: what a relative URI is relative to, for tests */
    uint32_t metadata_ms_max;   /* neither: a request to container or instance, 0: 2000 */
};

/* The only reader of the environment in this room. The texts belong to the environment. */
void mp_aws_environ_read(struct mp_aws_environ *ret);

/* The region that the environment or the profile names, as a copy in ret; false: neither does. */
bool mp_aws_region(const struct mp_aws_environ *environment, char *ret, size_t ret_size);

struct mp_aws_keys {
    char access_key[MP_AWS_KEY_MAX], secret_key[MP_AWS_KEY_MAX];
    char token[MP_AWS_TOKEN_MAX]; /* "": none */
    int64_t end_wall_us;          /* INT64_MAX: no end known */
    uint64_t generation;          /* counts replacements */
};

struct mp_credentials;

/* Keys that were given; token may be empty. Copies. MP_BAD_CONFIG where one is too long. */
enum mp_code mp_credentials_given(struct mp_str access_key, struct mp_str secret_key,
                                  struct mp_str token, struct mp_err *err,
                                  struct mp_credentials **ret);
/* The chain. Copies environment and region; borrows env until free. Asks nobody yet. */
struct mp_credentials *mp_credentials_chain(const struct mp_aws_environ *environment,
                                            struct mp_str region, const struct mp_env *env);
void mp_credentials_free(struct mp_credentials *credentials);

/* Copies keys that are good now, having fetched new ones where it is time. skew_us is added to our
 * clock to get the server's. MP_BAD_CONFIG: no source, or one that cannot work; MP_REFUSED: the
 * source says no; MP_IO, MP_TIMEOUT: it does not answer. */
enum mp_code mp_credentials_get(struct mp_credentials *credentials, int64_t skew_us,
                                struct mp_aws_keys *ret, struct mp_err *err);
/* The server has called keys of this generation expired: the next get fetches new ones, unless
 * somebody has already. False: there are no others to be had. */
bool mp_credentials_renew(struct mp_credentials *credentials, uint64_t generation);
/* "given", "environment", "web identity", "profile", "container", "instance" or "none". */
const char *mp_credentials_source(struct mp_credentials *credentials);

/* ISO 8601 in UTC, "2013-05-24T00:00:00Z", with or without a fraction. */
bool mp_aws_time(const char *text, int64_t *ret_wall_us);

#endif
