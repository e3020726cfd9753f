/* store/s3_sign.h - AWS Signature Version 4, as pure functions.
 *
 * No clock, no I/O, no state: the same parts and the same time give the same bytes, which is how
 * AWS's published vectors can pin it (tests/store/s3_sign.c).
 *
 * After    "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)" in
 *          the Amazon S3 API reference.
 */
#ifndef MP_STORE_S3_SIGN_H
#define MP_STORE_S3_SIGN_H

#include "base/buf.h"
#include "net/http_client.h"

#define MP_S3_TIME_TEXT          17 /* "20130524T000000Z" and a NUL */
#define MP_S3_HASH_TEXT          65 /* SHA-256 in lower-case hex and a NUL */
#define MP_S3_SIGNED_HEADERS_MAX 16

/* The parts of one request, all as they are on the wire. */
struct mp_s3_sign {
    struct mp_str method;
    struct mp_str path;                   /* escaped, beginning with '/' */
    struct mp_str query;                  /* escaped, sorted by name, every name with a '=' */
    struct mp_str payload_hash;           /* of mp_s3_hash */
    const struct mp_http_header *headers; /* signed: names in lower case, in any order */
    uint32_t header_count;
    struct mp_str access_key, secret_key, region, service;
    int64_t wall_us;
};

/* Adds the value of the Authorization header. */
void mp_s3_sign(const struct mp_s3_sign *sign, struct mp_buf *ret);
/* The signature alone, for a request that carries it in its query. */
void mp_s3_signature(const struct mp_s3_sign *sign, char ret[MP_S3_HASH_TEXT]);
/* Adds what the signature is good for, "20130524/us-east-1/s3/aws4_request". Reads the time, region
 * and service of sign only. */
void mp_s3_scope(const struct mp_s3_sign *sign, struct mp_buf *ret);
/* The form of x-amz-date. */
void mp_s3_time(int64_t wall_us, char ret[MP_S3_TIME_TEXT]);
/* SHA-256 over all pieces, one behind the other. */
void mp_s3_hash(const struct mp_str *pieces, uint32_t count, char ret[MP_S3_HASH_TEXT]);

#endif
