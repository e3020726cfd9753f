/* store/s3.h - inside the S3 driver: what its files share.
 *
 *     s3.c            opening, get, list, delete
 *     s3_multipart.c  put: many objects, each in one request or in parts
 *     s3_request.c    one request and its retries; many of them at once
 *     s3_sign.[ch]    the signature       s3_xml.[ch]  what comes back
 *
 * An operation (mp_s3_op) is one request that is retried until it is done. A source gives
 * operations as long as it has some and is told of each when it is done; mp_s3_run keeps so many
 * of them under way at once. An operation that waits for its next attempt keeps its place, so a
 * server that says SlowDown gets fewer requests at once, not the same number.
 */
#ifndef MP_STORE_S3_H
#define MP_STORE_S3_H

#include "store/credentials.h"
#include "store/s3_sign.h"
#include "store/store_driver.h"

#include "base/arena.h"
#include "net/http_client.h"

#include <pthread.h>
#include <stdatomic.h>

#define MP_S3_PART_BYTES  (8ull << 20) /* the largest object put in one request, and a part */
#define MP_S3_PARTS_MAX   10000u       /* Amazon S3 multipart upload limits */
#define MP_S3_KEY_MAX     1024u        /* bytes of a key, prefix included; Amazon S3 naming rules */
#define MP_S3_PARAMS_MAX  6
#define MP_S3_ANSWER_MAX  (4u << 20) /* XML answers; a page of 1,000 keys is below 2 MiB */
#define MP_S3_CODE_MAX    64
#define MP_S3_CLIENTS_MAX 16 /* idle HTTP clients kept, each with its connections */

struct mp_s3 {
    struct mp_store store;
    const struct mp_env *env;
    struct mp_arena memory;               /* of the texts below */
    struct mp_str base;                   /* "https://host" */
    struct mp_str host;                   /* as in the Host header */
    struct mp_str path;                   /* "" or "/bucket", escaped */
    struct mp_str bucket, prefix, region; /* prefix: "" or ending with '/' */
    const char *ca_file;                  /* NULL: the system's */
    uint32_t put_concurrency, request_ms_max, attempts_max;
    struct mp_credentials *credentials;
    _Atomic int64_t skew_us; /* the server's clock minus ours, as last learnt */
    _Atomic int64_t seen_us; /* the same by its last answer, whether requests go by it or not */
    atomic_bool seen;
    pthread_mutex_t lock; /* over the idle clients */
    struct mp_http_client *idle[MP_S3_CLIENTS_MAX];
    uint32_t idle_count;
};

struct mp_s3_param {
    const char *name; /* plain ASCII */
    struct mp_str value;
};

struct mp_s3_op {
    /* --- set by the source, borrowed until it is done --- */
    const char *method;
    struct mp_str key; /* in the bucket, prefix included; empty: the bucket itself */
    struct mp_s3_param params[MP_S3_PARAMS_MAX]; /* sorted by name */
    uint32_t param_count;
    struct mp_str range; /* value of the Range header; empty: none */
    const struct mp_str *pieces;
    uint32_t piece_count;
    const char *root; /* root element of a good answer; NULL: the body is not looked at */
    bool patient;     /* the server may work for long without a sign of life */
    void *memory;     /* for the body of a good answer; NULL: op.call.body */
    size_t memory_size;
    void *owner; /* the source's own, like the number */
    uint32_t number;
    char number_text[12]; /* room for a param */

    /* --- set when it is done --- */
    enum mp_code code;
    struct mp_err err;            /* where code is not MP_OK */
    char s3_code[MP_S3_CODE_MAX]; /* such as "NoSuchUpload"; "": none came */
    struct mp_http_call call;     /* status, headers and body of the last answer */

    /* --- the engine's own --- */
    enum { MP_S3_FREE, MP_S3_WAITING, MP_S3_UNDER_WAY } state;
    uint64_t due_us; /* monotonic */
    uint32_t attempts;
    bool skew_learnt, keys_renewed, expect;
    uint64_t generation; /* of the keys it was signed with */
    char payload_hash[MP_S3_HASH_TEXT];
    char time_text[MP_S3_TIME_TEXT];
    struct mp_buf url, authorization, token;
    struct mp_http_header headers[8];
    struct mp_str *slices; /* memory for the source to cut pieces into */
    uint32_t slice_capacity;
};

struct mp_s3_source {
    /* Fills op, which is zeroed but for its memory; false: nothing to do now. Asked again after
     * every done. */
    bool (*next)(void *self, struct mp_s3_op *op);
    void (*done)(void *self, struct mp_s3_op *op);
    void *self;
};

/* Parts of 8 MiB, or so much larger that there are no more than the limit. */
uint64_t mp_s3_part_bytes(uint64_t object_bytes);

/* Runs until the source gives nothing more and everything it gave is done. */
void mp_s3_run(struct mp_s3 *s3, const struct mp_s3_source *source, uint32_t at_once);
/* Runs one operation; op is zeroed and filled by the caller, who frees it with op_fini. */
void mp_s3_one(struct mp_s3 *s3, struct mp_s3_op *op);
void mp_s3_op_fini(struct mp_s3_op *op);
/* The key in the bucket, in memory of the arena. MP_BAD_DATA: too long (the prefix of a walk has
 * the same limit). */
enum mp_code mp_s3_full_key(const struct mp_s3 *s3, struct mp_str key, struct mp_arena *arena,
                            struct mp_err *err, struct mp_str *ret);

enum mp_code mp_s3_put(struct mp_store *store, const struct mp_store_object *objects,
                       uint32_t count, bool *ret_done, struct mp_err *err);

#endif
