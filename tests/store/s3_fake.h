/* tests/store/s3_fake.h - as much of an S3 server as a put, a get and a delete need, with faults.
 *
 * Answers requests of http_script.h: PUT, GET with a range, HEAD, DELETE, multipart uploads. It
 * checks what a real one would: an upload must exist, a part list must name every part with its
 * ETag. It does not check signatures; the judge does that against a real server.
 */
#ifndef MP_TESTS_S3_FAKE_H
#define MP_TESTS_S3_FAKE_H

#include "harness/http_script.h"

enum s3_fake_fault {
    S3_NO_FAULT,
    S3_UNAVAILABLE, /* 503 SlowDown, nothing is done */
    S3_BROKEN,      /* 500 without a body, nothing is done */
    S3_DENIED,      /* 403 AccessDenied, nothing is done */
    S3_CUT,         /* nothing is done, the connection ends */
    S3_LOST,        /* it is done, and the connection ends before the answer */
    S3_ERROR_IN_200 /* 200 with an InternalError in the body, where the answer has one; nothing is
                     * done. Elsewhere S3_UNAVAILABLE */
};

struct s3_fake {
    /* the nth request (1, ...) meets the fault; 0: none does */
    uint32_t fault_at, fault_times; /* so many from there on; 0: 1 */
    enum s3_fake_fault fault;
    uint32_t delay_ms;

    uint32_t requests, faults;
    struct s3_fake_thing *objects, *uploads;
    uint32_t next_upload;
    uint32_t lost_creates; /* uploads whose id was in an answer that was lost */
};

/* The function for http_script_start; self is a struct s3_fake. */
void s3_fake_answer(void *self, const struct http_record *request, struct http_answer *ret);
/* Lends an object's bytes by its path, "/bucket/key"; data NULL: it is not there. */
struct mp_str s3_fake_object(const struct s3_fake *fake, const char *path);
/* Uploads begun and neither completed nor aborted. */
uint32_t s3_fake_open_uploads(const struct s3_fake *fake);
void s3_fake_fini(struct s3_fake *fake);

#endif
