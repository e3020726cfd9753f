/* store/store_driver.h - inner door of the room: what the drivers share, and how each is opened.
 *
 * Only files of src/store and its tests include it; other rooms see store.h (and, in tests,
 * memory.h).
 */
#ifndef MP_STORE_DRIVER_H
#define MP_STORE_DRIVER_H

#include "store/store.h"

/* Temporary files of the local driver begin so; list does not show them. */
#define MP_STORE_TEMP_PREFIX ".tmp-"

/* For "%.*s%s" in an error text: a key or path, so much of it that the reason behind it still has
 * room. */
#define MP_STORE_SHOWN_MAX 250
#define MP_STORE_SHOWN     "%.*s%s"
#define MP_STORE_SHOWN_ARG(s)                                                                      \
    (int)((s).size < MP_STORE_SHOWN_MAX ? (s).size : MP_STORE_SHOWN_MAX), (s).data,                \
        (s).size < MP_STORE_SHOWN_MAX ? "" : "..."

/* MP_BAD_DATA where a key is empty, begins with '/', has an empty, "." or ".." part, or holds a
 * NUL. Every driver asks before it touches anything, so all of them know the same keys. */
enum mp_code mp_store_key_check(struct mp_str key, struct mp_err *err);
/* The same for the prefix of a walk, which may be empty and may end anywhere. */
enum mp_code mp_store_prefix_check(struct mp_str prefix, struct mp_err *err);

/* root: an absolute directory; made, parents included, where it is not there. */
enum mp_code mp_store_local_open(struct mp_str root, const struct mp_env *env, struct mp_err *err,
                                 struct mp_store **ret);

struct mp_aws_environ;

/* url: "s3://bucket/prefix/". environment is read during the call only. */
enum mp_code mp_store_s3_open(struct mp_str url, const struct mp_store_s3_options *options,
                              const struct mp_aws_environ *environment, const struct mp_env *env,
                              struct mp_err *err, struct mp_store **ret);

#endif
