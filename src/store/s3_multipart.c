/* store/s3_multipart.c - putting many objects, each in one request or in parts.
 *
 * A put is a source of operations (s3.h). Objects are opened in order, never more at once than
 * there are requests under way at once, and each is a small state machine:
 *
 *     WHOLE ------------------------------------------------> DONE | FAILED    up to 8 MiB
 *     CREATE -> PARTS -> COMPLETE --------------------------> DONE             above
 *                 |          |-- "no such upload" -> CHECK -> DONE | FAILED
 *                 |          v
 *                 '------> ABORT ---------------------------> FAILED
 *                            '-- "no such upload" -> CHECK -> DONE | FAILED
 *
 * M1  a failed object's upload is aborted once none of its requests is under way, so that no part
 *     arrives behind the abort and is kept, and paid for, for ever
 * M2  the answer to COMPLETE may be lost although it was done; the repeat (ours, or libcurl's own
 *     of which we do not hear) is then told that there is no such upload, and so is the abort.
 *     Whoever hears that looks whether an object of the right size is there: keys are never
 *     written twice (S3), so it is ours
 * M3  the first fault of an object is the one told
 *
 * What cannot be undone: an upload whose CREATE answer was lost has an id that nobody knows. A
 * lifecycle rule of the bucket (AbortIncompleteMultipartUpload) removes such.
 *
 * After    "Uploading and copying objects using multipart upload", Amazon S3 user guide.
 */
#include "store/s3.h"

#include "store/s3_xml.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define UPLOAD_ID_MAX    1024
#define ETAG_MAX         128
#define OBJECT_BYTES_MAX (5ull << 40) /* 5 TiB */
#define PART_BYTES_STEP  (1ull << 20)

enum state { NONE, WHOLE, CREATE, PARTS, COMPLETE, CHECK, ABORT };

struct upload {
    enum state state; /* NONE: the place is free */
    bool asked;       /* the request of this state (other than PARTS) is under way */
    bool completing;  /* COMPLETE was sent (M2) */
    uint32_t index;   /* of the object */
    struct mp_str key;
    const struct mp_store_object *object;
    char id[UPLOAD_ID_MAX];
    uint64_t part_bytes;
    uint32_t part_count, part_next, parts_under_way;
    char (*etags)[ETAG_MAX];
    uint32_t piece; /* where the next part begins */
    size_t piece_at;
    struct mp_buf body; /* of COMPLETE */
    struct mp_str body_piece;
    enum mp_code code; /* M3 */
    struct mp_err err;
};

struct put {
    struct mp_s3 *s3;
    const struct mp_store_object *objects;
    uint32_t count, next;
    bool *done;
    struct upload *open;
    uint32_t open_count;
    struct mp_arena keys; /* of full keys */
    enum mp_code code;    /* of the first object that failed */
    struct mp_err *err;
};

/* --- opening and closing an object ---------------------------------------------------------- */

uint64_t mp_s3_part_bytes(uint64_t bytes)
{
    uint64_t least = (bytes + MP_S3_PARTS_MAX - 1) / MP_S3_PARTS_MAX;

    if (least <= MP_S3_PART_BYTES)
        return MP_S3_PART_BYTES;
    return (least + PART_BYTES_STEP - 1) / PART_BYTES_STEP * PART_BYTES_STEP;
}

/* What a put answers with is the fault that came first. */
static void keep_fault(struct put *put, enum mp_code code, const struct mp_err *err)
{
    if (put->code)
        return;
    put->code = code;
    if (put->err)
        *put->err = *err;
}

static enum mp_code check(struct put *put, const struct mp_store_object *object,
                          struct mp_str *ret_key, struct mp_err *err)
{
    enum mp_code code = mp_store_key_check(object->key, err);

    if (!code)
        code = mp_s3_full_key(put->s3, object->key, &put->keys, err, ret_key);
    if (!code && object->bytes > OBJECT_BYTES_MAX)
        code = mp_err_set(
            err, MP_BAD_DATA, "object " MP_STORE_SHOWN " has %llu bytes, %llu at most",
            MP_STORE_SHOWN_ARG(object->key), (unsigned long long)object->bytes, OBJECT_BYTES_MAX);
    return code;
}

static void open_upload(struct put *put, struct upload *upload, uint32_t index, struct mp_str key)
{
    const struct mp_store_object *object = &put->objects[index];
    uint64_t bytes = object->bytes;

    *upload = (struct upload){
        .state = bytes <= MP_S3_PART_BYTES ? WHOLE : CREATE,
        .index = index,
        .object = object,
        .key = key,
    };
    if (upload->state == WHOLE)
        return;
    upload->part_bytes = mp_s3_part_bytes(bytes);
    upload->part_count = (uint32_t)((bytes + upload->part_bytes - 1) / upload->part_bytes);
    assert(upload->part_count <= MP_S3_PARTS_MAX);
    upload->etags = mp_alloc_array(upload->part_count, ETAG_MAX);
    upload->body = MP_BUF_INIT((size_t)upload->part_count * (ETAG_MAX + 80) + 512);
}

/* The object is there, or its fault is told. */
static void close_upload(struct put *put, struct upload *upload)
{
    assert(!upload->asked && upload->parts_under_way == 0); /* M1 */
    if (upload->code)
        keep_fault(put, upload->code, &upload->err);
    put->done[upload->index] = !upload->code;
    mp_free(upload->etags);
    mp_buf_fini(&upload->body);
    upload->state = NONE;
}

/* --- asking --------------------------------------------------------------------------------- */

static void add_param(struct mp_s3_op *op, const char *name, struct mp_str value)
{
    op->params[op->param_count++] = (struct mp_s3_param){name, value};
}

/* Cuts the next part out of the object's pieces. */
static void set_part(struct upload *upload, struct mp_s3_op *op)
{
    const struct mp_store_object *object = upload->object;
    uint64_t begin = upload->part_next * upload->part_bytes;
    uint64_t left = object->bytes - begin;
    uint32_t count = 0;

    if (left > upload->part_bytes)
        left = upload->part_bytes;
    while (left > 0) {
        struct mp_str piece = object->pieces[upload->piece];
        size_t take = piece.size - upload->piece_at;

        assert(upload->piece < object->piece_count);
        take = take < left ? take : (size_t)left;
        if (count == op->slice_capacity) {
            op->slice_capacity = count ? count * 2 : 16;
            op->slices = mp_realloc(op->slices, op->slice_capacity * sizeof(*op->slices));
        }
        op->slices[count++] = (struct mp_str){piece.data + upload->piece_at, take};
        left -= take;
        upload->piece_at += take;
        if (upload->piece_at == piece.size) {
            upload->piece++;
            upload->piece_at = 0;
        }
    }
    op->pieces = op->slices;
    op->piece_count = count;
    op->number = upload->part_next++;
    upload->parts_under_way++;
}

static void add_xml_text(struct mp_buf *buf, const char *text)
{
    for (; *text; text++) {
        if (*text == '&' || *text == '<' || *text == '>')
            mp_buf_printf(buf, "&#%d;", *text);
        else
            mp_buf_add_byte(buf, *text);
    }
}

static void write_complete(struct upload *upload)
{
    mp_buf_clear(&upload->body);
    mp_buf_add_c(&upload->body, "<CompleteMultipartUpload "
                                "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for (uint32_t i = 0; i < upload->part_count; i++) {
        assert(*upload->etags[i]);
        mp_buf_printf(&upload->body, "<Part><PartNumber>%u</PartNumber><ETag>", i + 1);
        add_xml_text(&upload->body, upload->etags[i]);
        mp_buf_add_c(&upload->body, "</ETag></Part>");
    }
    mp_buf_add_c(&upload->body, "</CompleteMultipartUpload>");
    upload->body_piece = mp_buf_str(&upload->body);
}

static struct mp_str part_number(struct mp_s3_op *op)
{
    snprintf(op->number_text, sizeof(op->number_text), "%u", op->number + 1);
    return mp_str_c(op->number_text);
}

/* Fills op with the next request of this object; false: there is none to send now. */
static bool next_request(struct upload *upload, struct mp_s3_op *op)
{
    if (upload->state == NONE || upload->asked)
        return false;
    if (upload->state == PARTS && (upload->code || upload->part_next == upload->part_count))
        return false;
    upload->asked = upload->state != PARTS;
    op->owner = upload;
    op->key = upload->key;
    switch (upload->state) {
    case NONE:
        break;
    case WHOLE:
        op->method = "PUT";
        op->pieces = upload->object->pieces;
        op->piece_count = upload->object->piece_count;
        break;
    case CREATE:
        op->method = "POST";
        op->root = "InitiateMultipartUploadResult";
        add_param(op, "uploads", MP_STR(""));
        break;
    case PARTS:
        op->method = "PUT";
        set_part(upload, op);
        add_param(op, "partNumber", part_number(op));
        add_param(op, "uploadId", mp_str_c(upload->id));
        break;
    case COMPLETE:
        op->method = "POST";
        op->root = "CompleteMultipartUploadResult";
        op->patient = true; /* minutes for large objects */
        op->pieces = &upload->body_piece;
        op->piece_count = 1;
        add_param(op, "uploadId", mp_str_c(upload->id));
        break;
    case CHECK:
        op->method = "HEAD";
        break;
    case ABORT:
        op->method = "DELETE";
        add_param(op, "uploadId", mp_str_c(upload->id));
        break;
    }
    return true;
}

static bool put_next(void *self, struct mp_s3_op *op)
{
    struct put *put = self;
    struct upload *free_place = NULL;

    for (uint32_t i = 0; i < put->open_count; i++) {
        if (next_request(&put->open[i], op))
            return true;
        if (put->open[i].state == NONE && !free_place)
            free_place = &put->open[i];
    }
    while (free_place && put->next < put->count) {
        uint32_t index = put->next++;
        struct mp_err err;
        struct mp_str key;
        enum mp_code code = check(put, &put->objects[index], &key, &err);

        if (code) {
            keep_fault(put, code, &err);
            continue;
        }
        open_upload(put, free_place, index, key);
        return next_request(free_place, op);
    }
    return false;
}

/* --- hearing -------------------------------------------------------------------------------- */

static void fail(struct upload *upload, enum mp_code code, const struct mp_err *err)
{
    if (upload->code)
        return; /* M3 */
    upload->code = code;
    upload->err = *err;
}

static bool no_such_upload(const struct mp_s3_op *op)
{
    return op->call.outcome == MP_HTTP_ANSWERED && op->call.status == 404 &&
           strcmp(op->s3_code, "NoSuchBucket") != 0;
}

static void created(struct put *put, struct upload *upload, struct mp_s3_op *op)
{
    if (!op->code &&
        !mp_xml_text(mp_buf_str(&op->call.body), MP_STR("InitiateMultipartUploadResult/UploadId"),
                     upload->id, sizeof(upload->id)))
        op->code = mp_err_set(&op->err, MP_IO, "no upload id for s3://%.*s/" MP_STORE_SHOWN,
                              MP_STR_ARG(put->s3->bucket), MP_STORE_SHOWN_ARG(upload->key));
    if (op->code) {
        fail(upload, op->code, &op->err);
        close_upload(put, upload);
    } else {
        upload->state = PARTS;
    }
}

static void part_put(struct put *put, struct upload *upload, struct mp_s3_op *op)
{
    struct mp_str etag = mp_http_call_header(&op->call, MP_STR("ETag"));

    upload->parts_under_way--;
    if (!op->code && (etag.size == 0 || etag.size >= ETAG_MAX))
        op->code = mp_err_set(&op->err, MP_IO,
                              "part %u of s3://%.*s/" MP_STORE_SHOWN " has an etag of %zu bytes",
                              op->number + 1, MP_STR_ARG(put->s3->bucket),
                              MP_STORE_SHOWN_ARG(upload->key), etag.size);
    if (op->code)
        fail(upload, op->code, &op->err);
    else
        memcpy(upload->etags[op->number], etag.data, etag.size);
    if (upload->parts_under_way > 0)
        return; /* M1 */
    if (upload->code) {
        upload->state = ABORT;
    } else if (upload->part_next == upload->part_count) {
        write_complete(upload);
        upload->state = COMPLETE;
    }
}

static void completed(struct put *put, struct upload *upload, struct mp_s3_op *op)
{
    upload->completing = true;
    if (!op->code) {
        close_upload(put, upload);
        return;
    }
    fail(upload, op->code, &op->err);
    upload->state = no_such_upload(op) ? CHECK : ABORT;
}

static void aborted(struct put *put, struct upload *upload, struct mp_s3_op *op)
{
    assert(upload->code);
    if (no_such_upload(op) && upload->completing) {
        upload->state = CHECK;
        return;
    }
    if (op->code && !no_such_upload(op))
        mp_err_add(&upload->err, "upload %.64s could not be aborted and keeps its parts",
                   upload->id);
    close_upload(put, upload);
}

/* M2 */
static void checked(struct put *put, struct upload *upload, struct mp_s3_op *op)
{
    struct mp_str length = mp_http_call_header(&op->call, MP_STR("Content-Length"));
    char want[24];

    snprintf(want, sizeof(want), "%llu", (unsigned long long)upload->object->bytes);
    if (!op->code && mp_str_eq(length, mp_str_c(want))) {
        upload->code = MP_OK;
    } else {
        upload->code = upload->err.code = MP_IO; /* the upload is gone: all of it again */
        upload->err.retriable = true;
    }
    close_upload(put, upload);
}

static void put_done(void *self, struct mp_s3_op *op)
{
    struct put *put = self;
    struct upload *upload = op->owner;

    if (upload->state != PARTS) {
        assert(upload->asked);
        upload->asked = false;
    }
    switch (upload->state) {
    case NONE:
        assert(!"an answer for an object that is closed");
        break;
    case WHOLE:
        if (op->code)
            fail(upload, op->code, &op->err);
        close_upload(put, upload);
        break;
    case CREATE:
        created(put, upload, op);
        break;
    case PARTS:
        part_put(put, upload, op);
        break;
    case COMPLETE:
        completed(put, upload, op);
        break;
    case CHECK:
        checked(put, upload, op);
        break;
    case ABORT:
        aborted(put, upload, op);
        break;
    }
}

enum mp_code mp_s3_put(struct mp_store *store, const struct mp_store_object *objects,
                       uint32_t count, bool *ret_done, struct mp_err *err)
{
    struct mp_s3 *s3 = (struct mp_s3 *)store;
    struct put put = {
        .s3 = s3,
        .objects = objects,
        .count = count,
        .done = ret_done,
        .open_count = s3->put_concurrency,
        .err = err,
    };
    struct mp_s3_source source = {put_next, put_done, &put};

    memset(ret_done, 0, count * sizeof(*ret_done));
    mp_arena_init(&put.keys, 0);
    put.open = mp_alloc_array(put.open_count, sizeof(*put.open));
    mp_s3_run(s3, &source, s3->put_concurrency);
    for (uint32_t i = 0; i < put.open_count; i++)
        assert(put.open[i].state == NONE);
    assert(put.next == count);
    mp_free(put.open);
    mp_arena_fini(&put.keys);
    return put.code;
}
