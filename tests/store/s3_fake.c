#include "s3_fake.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

#define PARTS_MAX 64

/* An object, or an upload under way. */
struct s3_fake_thing {
    struct s3_fake_thing *next;
    char *path; /* an upload's: path?id */
    struct mp_buf bytes;
    struct mp_buf parts[PARTS_MAX];
};

static struct mp_str path_of(const struct http_record *request)
{
    struct mp_str path = request->target;
    const char *query = memchr(path.data, '?', path.size);

    if (query)
        path.size = (size_t)(query - path.data);
    return path;
}

/* The value of a query parameter; data NULL: it is not there. */
static struct mp_str param_of(const struct http_record *request, const char *name)
{
    struct mp_str path = path_of(request), want = mp_str_c(name);
    const char *at = path.data + path.size, *end = request->target.data + request->target.size;

    while (at < end) {
        const char *next = memchr(at + 1, '&', (size_t)(end - at - 1));
        struct mp_str pair = {at + 1, (size_t)((next ? next : end) - at - 1)};

        if (mp_str_starts(pair, want) && pair.size > want.size && pair.data[want.size] == '=')
            return (struct mp_str){pair.data + want.size + 1, pair.size - want.size - 1};
        at = next ? next : end;
    }
    return (struct mp_str){NULL, 0};
}

static struct s3_fake_thing **find(struct s3_fake_thing **list, struct mp_str path)
{
    while (*list && !mp_str_eq(mp_str_c((*list)->path), path))
        list = &(*list)->next;
    return list;
}

static struct s3_fake_thing *add(struct s3_fake_thing **list, struct mp_str path)
{
    struct s3_fake_thing *thing = mp_alloc(sizeof(*thing));

    thing->path = mp_alloc(path.size + 1);
    memcpy(thing->path, path.data, path.size);
    thing->bytes.max = SIZE_MAX / 2;
    for (unsigned i = 0; i < PARTS_MAX; i++)
        thing->parts[i].max = SIZE_MAX / 2;
    thing->next = *list;
    *list = thing;
    return thing;
}

static void drop(struct s3_fake_thing **place)
{
    struct s3_fake_thing *thing = *place;

    *place = thing->next;
    mp_buf_fini(&thing->bytes);
    for (unsigned i = 0; i < PARTS_MAX; i++)
        mp_buf_fini(&thing->parts[i]);
    mp_free(thing->path);
    mp_free(thing);
}

static void refuse(struct http_answer *ret, unsigned status, const char *code)
{
    ret->status = status;
    mp_buf_printf(&ret->body,
                  "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>as asked"
                  "</Message></Error>",
                  code);
}

static struct s3_fake_thing **upload_of(struct s3_fake *fake, const struct http_record *request)
{
    struct mp_str path = path_of(request), id = param_of(request, "uploadId");
    char name[2048];

    snprintf(name, sizeof(name), "%.*s?%.*s", MP_STR_ARG(path), MP_STR_ARG(id));
    return find(&fake->uploads, mp_str_c(name));
}

static void put_bytes(struct mp_buf *buf, struct mp_str bytes, struct http_answer *ret)
{
    mp_buf_clear(buf);
    mp_buf_add_str(buf, bytes);
    mp_buf_printf(&ret->headers, "ETag: \"e%zu\"\r\n", bytes.size);
}

static void put(struct s3_fake *fake, const struct http_record *request, struct http_answer *ret)
{
    struct mp_str number = param_of(request, "partNumber");
    struct s3_fake_thing **place;
    unsigned part;

    if (!number.data) {
        place = find(&fake->objects, path_of(request));
        put_bytes(&(*place ? *place : add(&fake->objects, path_of(request)))->bytes, request->body,
                  ret);
        return;
    }
    place = upload_of(fake, request);
    part = (unsigned)strtoul(number.data, NULL, 10);
    if (!*place)
        refuse(ret, 404, "NoSuchUpload");
    else if (part < 1 || part > PARTS_MAX)
        refuse(ret, 400, "InvalidArgument");
    else
        put_bytes(&(*place)->parts[part - 1], request->body, ret);
}

static void create(struct s3_fake *fake, const struct http_record *request, struct http_answer *ret)
{
    struct mp_str path = path_of(request);
    char name[2048];

    snprintf(name, sizeof(name), "%.*s?u%u", MP_STR_ARG(path), fake->next_upload);
    add(&fake->uploads, mp_str_c(name));
    mp_buf_printf(&ret->body,
                  "<InitiateMultipartUploadResult><Bucket>b</Bucket><UploadId>u%u"
                  "</UploadId></InitiateMultipartUploadResult>",
                  fake->next_upload++);
}

static void complete(struct s3_fake *fake, const struct http_record *request,
                     struct http_answer *ret)
{
    struct s3_fake_thing **place = upload_of(fake, request), *object, **old;
    struct mp_buf want = MP_BUF_INIT(1 << 16);

    if (!*place) {
        refuse(ret, 404, "NoSuchUpload");
        return;
    }
    for (unsigned i = 0; i < PARTS_MAX && (*place)->parts[i].size; i++)
        mp_buf_printf(&want, "<Part><PartNumber>%u</PartNumber><ETag>\"e%zu\"</ETag></Part>", i + 1,
                      (*place)->parts[i].size);
    if (!memmem(request->body.data, request->body.size, want.data, want.size)) {
        refuse(ret, 400, "InvalidPart");
    } else {
        old = find(&fake->objects, path_of(request));
        object = *old ? *old : add(&fake->objects, path_of(request));
        mp_buf_clear(&object->bytes);
        for (unsigned i = 0; i < PARTS_MAX; i++)
            mp_buf_add_str(&object->bytes, mp_buf_str(&(*place)->parts[i]));
        drop(place);
        mp_buf_add_c(&ret->body, "  \n<CompleteMultipartUploadResult><ETag>x</ETag>"
                                 "</CompleteMultipartUploadResult>");
    }
    mp_buf_fini(&want);
}

static void get(struct s3_fake *fake, const struct http_record *request, struct http_answer *ret)
{
    struct s3_fake_thing *object = *find(&fake->objects, path_of(request));
    struct mp_str range = http_record_header(request, "range");
    unsigned long long begin = 0, end = 0;

    if (!object) {
        refuse(ret, 404, "NoSuchKey");
        return;
    }
    if (mp_str_eq(request->method, MP_STR("HEAD"))) {
        mp_buf_printf(&ret->headers, "Content-Length: %zu\r\n", object->bytes.size);
        return;
    }
    if (sscanf(range.data ? range.data : "", "bytes=-%llu", &end) == 1) {
        begin = end < object->bytes.size ? object->bytes.size - end : 0;
        end = object->bytes.size;
    } else if (sscanf(range.data ? range.data : "", "bytes=%llu-%llu", &begin, &end) == 2) {
        end = end + 1 < object->bytes.size ? end + 1 : object->bytes.size;
    } else {
        end = object->bytes.size;
    }
    if (begin >= object->bytes.size) {
        refuse(ret, 416, "InvalidRange");
        return;
    }
    ret->status = range.data ? 206 : 200;
    mp_buf_add(&ret->body, object->bytes.data + begin, end - begin);
}

static void serve(struct s3_fake *fake, const struct http_record *request, struct http_answer *ret)
{
    struct mp_str method = request->method;
    struct s3_fake_thing **place;

    if (mp_str_eq(method, MP_STR("PUT"))) {
        put(fake, request, ret);
    } else if (mp_str_eq(method, MP_STR("POST"))) {
        if (param_of(request, "uploads").data)
            create(fake, request, ret);
        else
            complete(fake, request, ret);
    } else if (mp_str_eq(method, MP_STR("DELETE"))) {
        bool is_upload = param_of(request, "uploadId").data != NULL;

        place = is_upload ? upload_of(fake, request) : find(&fake->objects, path_of(request));
        ret->status = 204;
        if (*place)
            drop(place);
        else if (is_upload)
            refuse(ret, 404, "NoSuchUpload");
    } else {
        get(fake, request, ret);
    }
}

void s3_fake_answer(void *self, const struct http_record *request, struct http_answer *ret)
{
    struct s3_fake *fake = self;
    uint32_t ordinal = ++fake->requests, times = fake->fault_times ? fake->fault_times : 1;
    enum s3_fake_fault fault = S3_NO_FAULT;

    if (fake->fault_at && ordinal >= fake->fault_at && ordinal - fake->fault_at < times)
        fault = fake->fault;
    fake->faults += fault != S3_NO_FAULT;
    ret->delay_ms = fake->delay_ms;
    if (fault == S3_ERROR_IN_200 && !mp_str_eq(request->method, MP_STR("POST")))
        fault = S3_UNAVAILABLE;
    switch (fault) {
    case S3_NO_FAULT:
        serve(fake, request, ret);
        break;
    case S3_UNAVAILABLE:
        refuse(ret, 503, "SlowDown");
        break;
    case S3_BROKEN:
        ret->status = 500;
        break;
    case S3_DENIED:
        refuse(ret, 403, "AccessDenied");
        break;
    case S3_CUT:
        ret->fault = HTTP_CUT_BEFORE;
        break;
    case S3_LOST:
        serve(fake, request, ret);
        ret->fault = HTTP_CUT_BEFORE;
        fake->lost_creates += param_of(request, "uploads").data != NULL;
        break;
    case S3_ERROR_IN_200:
        refuse(ret, 200, "InternalError");
        break;
    }
}

struct mp_str s3_fake_object(const struct s3_fake *fake, const char *path)
{
    struct s3_fake_thing *list = fake->objects, *object = *find(&list, mp_str_c(path));

    return object
               ? (struct mp_str){object->bytes.data ? object->bytes.data : "", object->bytes.size}
               : (struct mp_str){NULL, 0};
}

uint32_t s3_fake_open_uploads(const struct s3_fake *fake)
{
    uint32_t count = 0;

    for (const struct s3_fake_thing *upload = fake->uploads; upload; upload = upload->next)
        count++;
    return count;
}

void s3_fake_fini(struct s3_fake *fake)
{
    while (fake->objects)
        drop(&fake->objects);
    while (fake->uploads)
        drop(&fake->uploads);
}
