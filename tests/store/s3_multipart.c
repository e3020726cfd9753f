/* Objects in parts: what is sent, and a loop in which the 1st request fails, then the 2nd, ...
 * until a run meets no fault. Whatever failed, the object is there whole or not at all, put said
 * which, and no upload is left. */
#include "harness/http_script.h"
#include "harness/test.h"

#include "s3_fake.h"

#include "base/mem.h"
#include "store/s3.h"

#include <stdio.h>

#define PART  (8u << 20)
#define BYTES (PART + 12345u)

static struct mp_env_fake fake_env;
static struct mp_env env;
static struct mp_err err;

static struct mp_store *open_on(struct http_script *script, uint32_t attempts_max, uint32_t at_once)
{
    static const struct mp_aws_environ nothing = {.metadata_disabled = "true"};
    struct mp_store_s3_options options = {
        .endpoint = mp_str_c(http_script_url(script)),
        .access_key = MP_STR("a"),
        .secret_key = MP_STR("s"),
        .put_concurrency = at_once,
        .attempts_max = attempts_max,
    };
    struct mp_store *store = NULL;

    fake_env = (struct mp_env_fake){.wall_us = 1700000000 * 1000000LL, .seed = 3};
    env = mp_env_fake(&fake_env);
    CHECK_OK(mp_store_s3_open(MP_STR("s3://bucket/"), &options, &nothing, &env, &err, &store), err);
    return store;
}

/* Bytes that tell their place, in pieces that end nowhere near the parts. */
static struct mp_store_object large_object(const char *key)
{
    static unsigned char bytes[BYTES];
    static struct mp_str pieces[BYTES / 1000003 + 2];
    struct mp_store_object object = {.key = mp_str_c(key), .pieces = pieces, .bytes = BYTES};

    for (size_t i = 0; i < BYTES; i += 4)
        memcpy(bytes + i, &i, BYTES - i < 4 ? BYTES - i : 4);
    for (size_t at = 0; at < BYTES; at += pieces[object.piece_count++].size)
        pieces[object.piece_count] =
            mp_str_n(bytes + at, BYTES - at < 1000003 ? BYTES - at : 1000003);
    return object;
}

static void check_bytes(const struct s3_fake *fake, const char *path)
{
    struct mp_str got = s3_fake_object(fake, path);
    struct mp_store_object want = large_object("x");

    CHECK_INT(got.size, want.bytes);
    for (uint32_t i = 0; i < want.piece_count; got.data += want.pieces[i++].size)
        CHECK(memcmp(got.data, want.pieces[i].data, want.pieces[i].size) == 0);
}

static void multipart_sends_parts_and_completes(void)
{
    struct s3_fake fake = {.next_upload = 7};
    struct http_script *script = http_script_start(NULL, 0, s3_fake_answer, &fake);
    struct mp_store *store = open_on(script, 0, 4);
    struct mp_store_object object = large_object("d/large");
    const struct http_record *last;
    bool done = false;

    CHECK_OK(store->driver->put(store, &object, 1, &done, &err), err);
    CHECK(done);
    check_bytes(&fake, "/bucket/d/large");
    CHECK_INT(http_script_count(script), 4);
    CHECK_STR(http_script_request(script, 0)->method, MP_STR("POST"));
    CHECK_STR(http_script_request(script, 0)->target, MP_STR("/bucket/d/large?uploads="));
    last = http_script_request(script, 3);
    CHECK_STR(last->method, MP_STR("POST"));
    CHECK_STR(last->target, MP_STR("/bucket/d/large?uploadId=u7"));
    CHECK_STR(last->body,
              MP_STR("<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                     "<Part><PartNumber>1</PartNumber><ETag>\"e8388608\"</ETag></Part>"
                     "<Part><PartNumber>2</PartNumber><ETag>\"e12345\"</ETag></Part>"
                     "</CompleteMultipartUpload>"));
    mp_store_close(store);
    http_script_stop(script);
    s3_fake_fini(&fake);
}

static void multipart_begins_above_eight_mebibytes(void)
{
    static char bytes[PART + 1];
    struct s3_fake fake = {0};
    struct http_script *script = http_script_start(NULL, 0, s3_fake_answer, &fake);
    struct mp_store *store = open_on(script, 0, 4);
    struct mp_str piece = mp_str_n(bytes, PART);
    struct mp_store_object object = {MP_STR("a"), &piece, 1, PART};
    bool done = false;

    CHECK_OK(store->driver->put(store, &object, 1, &done, &err), err);
    CHECK_INT(http_script_count(script), 1);
    piece.size = object.bytes = PART + 1;
    CHECK_OK(store->driver->put(store, &object, 1, &done, &err), err);
    CHECK_INT(http_script_count(script), 5); /* create, two parts, complete */
    CHECK_INT(s3_fake_object(&fake, "/bucket/a").size, PART + 1);
    mp_store_close(store);
    http_script_stop(script);
    s3_fake_fini(&fake);
}

static void multipart_sizes_parts(void)
{
    static const uint64_t mebi = 1 << 20;

    CHECK_INT(mp_s3_part_bytes(1), PART);
    CHECK_INT(mp_s3_part_bytes(10000ull * PART), PART);
    CHECK_INT(mp_s3_part_bytes(10000ull * PART + 1), 9 * mebi);
    CHECK_INT(mp_s3_part_bytes(5ull << 40), 525 * mebi);
    CHECK((5ull << 40) / mp_s3_part_bytes(5ull << 40) < 10000);
}

/* One run: the request fault_at, and fault_times from there, meet the fault. False: none did. */
static bool run_with_fault(enum s3_fake_fault fault, uint32_t fault_at, uint32_t fault_times,
                           uint32_t attempts_max)
{
    struct s3_fake fake = {.fault = fault, .fault_at = fault_at, .fault_times = fault_times};
    struct http_script *script = http_script_start(NULL, 0, s3_fake_answer, &fake);
    struct mp_store *store = open_on(script, attempts_max, 4);
    struct mp_str piece = MP_STR("small");
    struct mp_store_object objects[2] = {large_object("large"), {MP_STR("small"), &piece, 1, 5}};
    bool done[2], met;
    enum mp_code code = store->driver->put(store, objects, 2, done, &err);

    CHECK_INT(code == MP_OK, done[0] && done[1]);
    if (code)
        CHECK_INT(err.code, code);
    if (code && fault != S3_DENIED)
        CHECK(err.retriable);
    if (fault == S3_DENIED)
        CHECK_INT(code, fake.faults ? MP_REFUSED : MP_OK);
    if (fault != S3_DENIED && attempts_max > fault_times)
        CHECK_OK(code, err);
    if (done[0])
        check_bytes(&fake, "/bucket/large");
    if (done[1])
        CHECK_STR(s3_fake_object(&fake, "/bucket/small"), MP_STR("small"));
    /* an upload whose CREATE answer was lost has an id that nobody knows */
    if (s3_fake_open_uploads(&fake) != fake.lost_creates)
        test_fail(__FILE__, __LINE__, "fault %d at %u x %u, %u attempts: %u uploads left: %s",
                  (int)fault, fault_at, fault_times, attempts_max, s3_fake_open_uploads(&fake),
                  err.text);
    met = fake.faults > 0;
    mp_store_close(store);
    http_script_stop(script);
    s3_fake_fini(&fake);
    return met;
}

static void loop_with_faults(enum s3_fake_fault fault)
{
    uint32_t at;

    for (at = 1; run_with_fault(fault, at, 1, 1); at++) /* without a second attempt */
        CHECK(at < 50);
    CHECK(at > 5);
    for (at = 1; run_with_fault(fault, at, 1, 3); at++)
        CHECK(at < 50);
    for (at = 1; run_with_fault(fault, at, 2, 2); at++) /* a second one fails too */
        CHECK(at < 50);
}

static void multipart_survives_unavailable(void)
{
    loop_with_faults(S3_UNAVAILABLE);
}

static void multipart_survives_denied(void)
{
    uint32_t at;

    for (at = 1; run_with_fault(S3_DENIED, at, 1, 3); at++)
        CHECK(at < 50);
}

static void multipart_survives_cuts(void)
{
    loop_with_faults(S3_CUT);
}

static void multipart_survives_errors_in_200(void)
{
    loop_with_faults(S3_ERROR_IN_200);
}

static void multipart_survives_lost_answers(void)
{
    uint32_t at;

    for (at = 1; run_with_fault(S3_LOST, at, 1, 1); at++)
        CHECK(at < 50);
    for (at = 1; run_with_fault(S3_LOST, at, 1, 3); at++)
        CHECK(at < 50);
}

/* COMPLETE was done and its answer lost, once or twice; libcurl has a second attempt of its own,
 * since the connection was a kept one. The repeat, or the abort, hears of no such upload. */
static void multipart_looks_after_a_lost_complete(void)
{
    static const char *const last_methods[2][2] = {{"POST", "HEAD"}, {"DELETE", "HEAD"}};

    for (uint32_t times = 1; times <= 2; times++) {
        struct s3_fake fake = {.fault = S3_LOST, .fault_at = 4, .fault_times = times};
        struct http_script *script = http_script_start(NULL, 0, s3_fake_answer, &fake);
        struct mp_store *store = open_on(script, 1, 1);
        struct mp_store_object object = large_object("large");
        bool done = false;

        CHECK_OK(store->driver->put(store, &object, 1, &done, &err), err);
        CHECK(done);
        check_bytes(&fake, "/bucket/large");
        CHECK_INT(http_script_count(script), 5 + times);
        for (uint32_t i = 0; i < 2; i++)
            CHECK_STR(http_script_request(script, 3 + times + i)->method,
                      mp_str_c(last_methods[times - 1][i]));
        mp_store_close(store);
        http_script_stop(script);
        s3_fake_fini(&fake);
    }
}

static void multipart_tells_of_an_upload_it_could_not_abort(void)
{
    struct s3_fake fake = {.fault = S3_BROKEN, .fault_at = 4, .fault_times = 100};
    struct http_script *script = http_script_start(NULL, 0, s3_fake_answer, &fake);
    struct mp_store *store = open_on(script, 2, 4);
    struct mp_store_object object = large_object("large");
    bool done = true;

    CHECK_INT(store->driver->put(store, &object, 1, &done, &err), MP_IO);
    CHECK(!done);
    CHECK(strstr(err.text, "upload u0 could not be aborted"));
    CHECK(strstr(err.text, "answered 500"));
    CHECK_INT(s3_fake_open_uploads(&fake), 1);
    mp_store_close(store);
    http_script_stop(script);
    s3_fake_fini(&fake);
}

static void multipart_minds_odd_answers(void)
{
    static const struct http_step cases[][4] = {
        {{.body = "<InitiateMultipartUploadResult/>"}},
        {{.body = "<html/>"}, {.body = "<html/>"}},
        {{.body = "<InitiateMultipartUploadResult><UploadId>u</UploadId>"
                  "</InitiateMultipartUploadResult>"},
         {.status = 200},
         {.status = 200},
         {.status = 200}}, /* parts without an etag */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct http_script *script = http_script_start(cases[i], 4, NULL, NULL);
        struct mp_store *store = open_on(script, 2, 4);
        struct mp_store_object object = large_object("large");
        bool done = true;

        CHECK_INT(store->driver->put(store, &object, 1, &done, &err), MP_IO);
        CHECK(!done);
        mp_store_close(store);
        http_script_stop(script);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(multipart_sends_parts_and_completes),
        TEST(multipart_begins_above_eight_mebibytes),
        TEST(multipart_sizes_parts),
        TEST(multipart_survives_unavailable),
        TEST(multipart_survives_denied),
        TEST(multipart_survives_cuts),
        TEST(multipart_survives_errors_in_200),
        TEST(multipart_survives_lost_answers),
        TEST(multipart_looks_after_a_lost_complete),
        TEST(multipart_tells_of_an_upload_it_could_not_abort),
        TEST(multipart_minds_odd_answers),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
