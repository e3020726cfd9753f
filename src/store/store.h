/* store/store.h - objects by key: put, get, list, delete.
 *
 * A store is rooted at one place (a directory, s3://bucket/prefix/); keys are relative to it,
 * separated by '/', never beginning with one, without "." and ".." parts. It knows nothing of
 * what is inside an object. Drivers: local, s3, memory (tests).
 *
 * Always   S1 an object is there whole or not at all; put never leaves half of one under its key
 *          S2 after put has answered MP_OK the object survives a crash of machine or process
 *          S3 a key is never written twice by us; what a second put does is not defined
 * Threads  any function from any thread.
 */
#ifndef MP_STORE_STORE_H
#define MP_STORE_STORE_H

#include "base/env.h"
#include "base/err.h"
#include "base/str.h"

/* The bytes of an object as pieces that need not lie together; borrowed for the call. */
struct mp_store_object {
    struct mp_str key;
    const struct mp_str *pieces;
    uint32_t piece_count;
    uint64_t bytes; /* sum of the pieces */
};

struct mp_store_entry {
    struct mp_str key; /* lent for the call of `visit` */
    uint64_t bytes;
};

struct mp_store_driver;

struct mp_store {
    const struct mp_store_driver *driver;
};

struct mp_store_driver {
    const char *name;
    /* Puts all objects, several at once where the driver can, each retried a bounded number of
     * times. ret_done[i] says which are there (also on failure). MP_OK: all are. */
    enum mp_code (*put)(struct mp_store *store, const struct mp_store_object *objects,
                        uint32_t count, bool *ret_done, struct mp_err *err);
    /* Reads bytes [offset, offset + size) into memory of the caller. offset -1: the last `size`
     * bytes. *ret_size is what came, less than asked only where the object ends. */
    enum mp_code (*get)(struct mp_store *store, struct mp_str key, int64_t offset, size_t size,
                        void *memory, size_t *ret_size, struct mp_err *err);
    /* Calls visit for every object whose key begins with prefix, in key order; a visit that gives
     * false ends the walk. */
    enum mp_code (*list)(struct mp_store *store, struct mp_str prefix,
                         bool (*visit)(void *self, const struct mp_store_entry *entry), void *self,
                         struct mp_err *err);
    /* No error where nothing was there. */
    enum mp_code (*remove)(struct mp_store *store, struct mp_str key, struct mp_err *err);
    /* How far the server's clock was ahead of ours at its last answer; false: none came yet, or it
     * did not say. NULL: a store without a clock of its own. */
    bool (*clock_ahead)(struct mp_store *store, int64_t *ret_us);
    void (*close)(struct mp_store *store);
};

/* S3 settings; empty text means not set. Texts are borrowed for the call of open. */
struct mp_store_s3_options {
    struct mp_str endpoint; /* "host:port" or "http(s)://host:port"; empty: AWS by region */
    struct mp_str region;   /* empty: AWS_REGION, AWS_DEFAULT_REGION, profile, else us-east-1 */
    struct mp_str access_key, secret_key, session_token; /* empty: the credential chain */
    struct mp_str ca_file;                               /* empty: the system's */
    bool use_ssl;                                        /* where endpoint names no scheme */
    bool path_style;                                     /* else virtual-host style */
    uint32_t put_concurrency;                            /* requests under way at once; 0: 16 */
    uint32_t request_ms_max;                             /* one request, start to end; 0: 60,000 */
    uint32_t attempts_max;                               /* per request; 0: 5 */
};

/* Opens the store a URL names: "s3://bucket/prefix/" or an absolute directory ("/data/" or
 * "file:///data/"; made when it is not there). env is borrowed until close. s3 may be NULL for a
 * directory. Nothing is sent to S3 before the first call. */
enum mp_code mp_store_open(struct mp_str url, const struct mp_store_s3_options *s3,
                           const struct mp_env *env, struct mp_err *err, struct mp_store **ret);
/* Objects in memory, with faults on demand: see store/memory.h. */

static inline void mp_store_close(struct mp_store *store)
{
    if (store)
        store->driver->close(store);
}

#endif
