/* store/s3.c - opening an S3 store, and reading, walking and removing.
 *
 * Where a bucket is found: "https://BUCKET.HOST/KEY" (virtual-host style) or "https://HOST/BUCKET/
 * KEY" (path style, as asked, and wherever the name cannot be part of the host: an address
 * instead of a name, a bucket with upper case or '_', a bucket with '.' under TLS, whose wildcard
 * certificate covers one label).
 *
 * After    "Virtual hosting of general purpose buckets", "ListObjectsV2" and "GetObject", Amazon S3
 *          user guide and API reference.
 */
#include "store/s3.h"

#include "store/s3_xml.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define PUT_CONCURRENCY_DEFAULT 16
#define REQUEST_MS_DEFAULT      60000
#define ATTEMPTS_DEFAULT        5
#define REGION_DEFAULT          "us-east-1"
#define REGION_MAX              63
#define HOST_MAX                255  /* RFC 1035, 2.3.4, and a port */
#define TOKEN_MAX               4096 /* a continuation token */
#define LISTED_KEY_MAX          4096 /* 1,024 bytes, three each when escaped */

/* --- get ------------------------------------------------------------------------------------ */

static enum mp_code s3_get(struct mp_store *store, struct mp_str key, int64_t offset, size_t size,
                           void *memory, size_t *ret_size, struct mp_err *err)
{
    struct mp_s3 *s3 = (struct mp_s3 *)store;
    struct mp_arena arena;
    char range[64];
    struct mp_s3_op op = {.method = size ? "GET" : "HEAD", .memory = memory, .memory_size = size};
    bool outside;
    enum mp_code code;

    assert(offset >= -1);
    mp_arena_init(&arena, 2048);
    code = mp_store_key_check(key, err);
    if (!code)
        code = mp_s3_full_key(s3, key, &arena, err, &op.key);
    if (code)
        goto out;
    if (offset < 0)
        snprintf(range, sizeof(range), "bytes=-%zu", size);
    else
        snprintf(range, sizeof(range), "bytes=%lld-%llu", (long long)offset,
                 (unsigned long long)offset + size - 1);
    op.range = mp_str_c(size ? range : "");
    mp_s3_one(s3, &op);
    outside = op.call.outcome == MP_HTTP_ANSWERED && op.call.status == 416;
    code = outside ? MP_OK : op.code;
    if (!code && !outside && size && op.call.status != 206 && offset > 0)
        code =
            mp_err_set(&op.err, MP_BAD_DATA, "s3://%.*s/" MP_STORE_SHOWN ": answered %u to a range",
                       MP_STR_ARG(s3->bucket), MP_STORE_SHOWN_ARG(op.key), op.call.status);
    if (code && err)
        *err = op.err;
    if (!code)
        *ret_size = outside ? 0 : op.call.memory_used;
    mp_s3_op_fini(&op);
out:
    mp_arena_fini(&arena);
    return code;
}

/* --- list ----------------------------------------------------------------------------------- */

struct page {
    const struct mp_s3 *s3;
    bool (*visit)(void *self, const struct mp_store_entry *entry);
    void *self;
    bool is_escaped; /* keys come as in a URL */
    bool more, ended, bad_key;
    struct mp_buf key; /* of the entry that is open */
    uint64_t bytes;
    char token[TOKEN_MAX]; /* of the next page */
};

static int hex_value(char c)
{
    unsigned char lower = mp_ascii_lower((unsigned char)c);

    return lower >= '0' && lower <= '9'   ? lower - '0'
           : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                          : -1;
}

/* As in a form: "%41" and "+". False where it is not. */
static bool unescape(struct mp_buf *buf)
{
    size_t to = 0;

    for (size_t from = 0; from < buf->size; from++) {
        char c = buf->data[from];

        if (c == '+')
            c = ' ';
        if (c == '%') {
            int high = from + 2 < buf->size ? hex_value(buf->data[from + 1]) : -1;
            int low = from + 2 < buf->size ? hex_value(buf->data[from + 2]) : -1;

            if (high < 0 || low < 0)
                return false;
            c = (char)(high << 4 | low);
            from += 2;
        }
        buf->data[to++] = c;
    }
    buf->size = to;
    return true;
}

static void end_entry(struct page *page)
{
    const struct mp_s3 *s3 = page->s3;
    struct mp_str key;
    struct mp_store_entry entry;

    if (page->is_escaped && !unescape(&page->key))
        page->bad_key = true;
    key = mp_buf_str(&page->key);
    if (!mp_str_starts(key, s3->prefix))
        page->bad_key = true;
    if (page->bad_key)
        return;
    key = (struct mp_str){key.data + s3->prefix.size, key.size - s3->prefix.size};
    if (key.size == 0 || key.data[key.size - 1] == '/')
        return; /* the empty object by which some tools mark a folder */
    entry = (struct mp_store_entry){.key = key, .bytes = page->bytes};
    page->ended = !page->visit(page->self, &entry);
}

/* The scalar elements come in any order, but whether keys are escaped must be known before the
 * first of them: read_page asks for that in a walk of its own. */
static bool visit_element(void *self, struct mp_str path, struct mp_str text)
{
    struct page *page = self;
    struct mp_str root = MP_STR("ListBucketResult/");

    if (!mp_str_starts(path, root))
        return true;
    path = (struct mp_str){path.data + root.size, path.size - root.size};
    if (mp_str_eq(path, MP_STR("Contents/Key"))) {
        page->bad_key = text.size > page->key.max;
        mp_buf_clear(&page->key);
        mp_buf_add(&page->key, text.data, page->bad_key ? 0 : text.size);
    } else if (mp_str_eq(path, MP_STR("Contents/Size"))) {
        page->bytes = 0;
        for (size_t i = 0; i < text.size && text.data[i] >= '0' && text.data[i] <= '9'; i++)
            page->bytes = page->bytes * 10 + (uint64_t)(text.data[i] - '0');
    } else if (mp_str_eq(path, MP_STR("Contents"))) {
        end_entry(page);
    }
    return !page->ended && !page->bad_key;
}

static enum mp_code read_page(struct page *page, struct mp_str body, struct mp_err *err)
{
    char text[16] = "";
    enum mp_code code;

    mp_xml_text(body, MP_STR("ListBucketResult/EncodingType"), text, sizeof(text));
    page->is_escaped = strcmp(text, "url") == 0;
    code = mp_xml_walk(body, visit_element, page, err);
    if (!code && page->bad_key)
        code = mp_err_set(err, MP_BAD_DATA, "a key that cannot be read");
    *text = 0;
    mp_xml_text(body, MP_STR("ListBucketResult/IsTruncated"), text, sizeof(text));
    page->more = strcmp(text, "true") == 0;
    *page->token = 0;
    if (page->more && !mp_xml_text(body, MP_STR("ListBucketResult/NextContinuationToken"),
                                   page->token, sizeof(page->token)))
        page->more = false;
    return code;
}

static enum mp_code s3_list(struct mp_store *store, struct mp_str prefix,
                            bool (*visit)(void *self, const struct mp_store_entry *entry),
                            void *self, struct mp_err *err)
{
    struct mp_s3 *s3 = (struct mp_s3 *)store;
    struct page page = {
        .s3 = s3, .visit = visit, .self = self, .more = true, .key = MP_BUF_INIT(LISTED_KEY_MAX)};
    struct mp_arena arena;
    struct mp_str full;
    enum mp_code code;

    mp_arena_init(&arena, 2048);
    code = mp_store_prefix_check(prefix, err);
    if (!code)
        code = mp_s3_full_key(s3, prefix, &arena, err, &full);
    while (!code && page.more && !page.ended) {
        struct mp_str token = mp_arena_str(&arena, mp_str_c(page.token));
        struct mp_s3_op op = {.method = "GET", .root = "ListBucketResult"};

        if (token.size)
            op.params[op.param_count++] = (struct mp_s3_param){"continuation-token", token};
        op.params[op.param_count++] = (struct mp_s3_param){"encoding-type", MP_STR("url")};
        op.params[op.param_count++] = (struct mp_s3_param){"list-type", MP_STR("2")};
        op.params[op.param_count++] = (struct mp_s3_param){"prefix", full};
        mp_s3_one(s3, &op);
        code = op.code;
        if (code && err)
            *err = op.err;
        if (!code)
            code = read_page(&page, mp_buf_str(&op.call.body), err);
        if (!code && page.more && mp_str_eq(token, mp_str_c(page.token)))
            code = mp_err_set(err, MP_BAD_DATA, "the token of the next page is that of this one");
        mp_s3_op_fini(&op);
    }
    if (code)
        mp_err_add(err, "list");
    mp_buf_fini(&page.key);
    mp_arena_fini(&arena);
    return code;
}

/* --- remove and close ----------------------------------------------------------------------- */

static enum mp_code s3_remove(struct mp_store *store, struct mp_str key, struct mp_err *err)
{
    struct mp_s3 *s3 = (struct mp_s3 *)store;
    struct mp_s3_op op = {.method = "DELETE"};
    struct mp_arena arena;
    enum mp_code code;

    mp_arena_init(&arena, 2048);
    code = mp_store_key_check(key, err);
    if (!code)
        code = mp_s3_full_key(s3, key, &arena, err, &op.key);
    if (code)
        goto out;
    mp_s3_one(s3, &op);
    code = op.code;
    if (op.call.status == 404 && strcmp(op.s3_code, "NoSuchBucket") != 0)
        code = MP_OK;
    if (code && err)
        *err = op.err;
    mp_s3_op_fini(&op);
out:
    mp_arena_fini(&arena);
    return code;
}

static bool s3_clock_ahead(struct mp_store *store, int64_t *ret_us)
{
    struct mp_s3 *s3 = (struct mp_s3 *)store;

    if (!atomic_load(&s3->seen))
        return false;
    *ret_us = atomic_load(&s3->seen_us);
    return true;
}

static void s3_close(struct mp_store *store)
{
    struct mp_s3 *s3 = (struct mp_s3 *)store;

    while (s3->idle_count)
        mp_http_client_free(s3->idle[--s3->idle_count]);
    pthread_mutex_destroy(&s3->lock);
    mp_credentials_free(s3->credentials);
    mp_arena_fini(&s3->memory);
    mp_free(s3);
}

static const struct mp_store_driver s3_driver = {
    .name = "s3",
    .put = mp_s3_put,
    .get = s3_get,
    .list = s3_list,
    .remove = s3_remove,
    .clock_ahead = s3_clock_ahead,
    .close = s3_close,
};

/* --- open ----------------------------------------------------------------------------------- */

static struct mp_str skip(struct mp_str text, size_t size)
{
    return (struct mp_str){text.data + size, text.size - size};
}

/* "s3://bucket/prefix" */
static enum mp_code set_place(struct mp_s3 *s3, struct mp_str url, struct mp_err *err)
{
    struct mp_str rest = skip(url, strlen("s3://"));
    size_t size = 0;
    bool good = true;

    for (; size < rest.size && rest.data[size] != '/'; size++) {
        char c = rest.data[size];

        good = good && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_');
    }
    if (!good || size < 3 || size > 255)
        return mp_err_set(err, MP_BAD_CONFIG,
                          "%.*s does not begin with s3://bucket/, the bucket 3 to 255 of letters, "
                          "digits, '.', '-' and '_'",
                          MP_STR_ARG(url));
    s3->bucket = mp_arena_str(&s3->memory, (struct mp_str){rest.data, size});
    rest = skip(rest, size);
    while (rest.size > 0 && *rest.data == '/')
        rest = skip(rest, 1);
    while (rest.size > 0 && rest.data[rest.size - 1] == '/')
        rest.size--;
    if (rest.size > 900)
        return mp_err_set(err, MP_BAD_CONFIG, "prefix in %.*s has %zu bytes, 900 at most",
                          MP_STR_ARG(s3->bucket), rest.size);
    s3->prefix = mp_str_c(rest.size ? mp_arena_printf(&s3->memory, "%.*s/", MP_STR_ARG(rest)) : "");
    return MP_OK;
}

/* A region becomes part of host names and of every signature. */
static enum mp_code set_region(struct mp_s3 *s3, struct mp_str region,
                               const struct mp_aws_environ *environment, struct mp_err *err)
{
    char found[REGION_MAX + 1];
    bool good;

    if (region.size == 0)
        region =
            mp_str_c(mp_aws_region(environment, found, sizeof(found)) ? found : REGION_DEFAULT);
    good = region.size <= REGION_MAX;
    for (size_t i = 0; good && i < region.size; i++)
        good = (region.data[i] >= 'a' && region.data[i] <= 'z') ||
               (region.data[i] >= 'A' && region.data[i] <= 'Z') ||
               (region.data[i] >= '0' && region.data[i] <= '9') || region.data[i] == '-' ||
               region.data[i] == '_';
    if (!good)
        return mp_err_set(
            err, MP_BAD_CONFIG, "region %.*s has %zu bytes, %d at most, or an odd one",
            (int)(region.size < 80 ? region.size : 80), region.data, region.size, REGION_MAX);
    s3->region = mp_arena_str(&s3->memory, region);
    return MP_OK;
}

/* An address, or a name without a dot, has no names below it. */
static bool is_address(struct mp_str host)
{
    size_t name = 0;
    bool is_number = true, has_dot = false;

    if (host.size > 0 && host.data[0] == '[')
        return true;
    for (; name < host.size && host.data[name] != ':'; name++) {
        has_dot |= host.data[name] == '.';
        is_number &= host.data[name] == '.' || (host.data[name] >= '0' && host.data[name] <= '9');
    }
    return is_number || !has_dot;
}

static bool is_host_label(struct mp_str bucket, bool tls)
{
    for (size_t i = 0; i < bucket.size; i++) {
        char c = bucket.data[i];

        if ((c >= 'A' && c <= 'Z') || c == '_' || (c == '.' && tls))
            return false;
    }
    return true;
}

/* The default port is not part of the Host header (RFC 9110, 7.2). */
static struct mp_str without_default_port(struct mp_str host, bool tls)
{
    struct mp_str port = tls ? MP_STR(":443") : MP_STR(":80");

    if (host.size > port.size &&
        memcmp(host.data + host.size - port.size, port.data, port.size) == 0)
        host.size -= port.size;
    return host;
}

/* For an error text: "user:password@" is not shown. */
static struct mp_str behind_sign_in(struct mp_str host)
{
    const char *at = memrchr(host.data, '@', host.size);

    return at ? skip(host, (size_t)(at - host.data)) : host;
}

static enum mp_code set_endpoint(struct mp_s3 *s3, const struct mp_store_s3_options *options,
                                 struct mp_err *err)
{
    struct mp_str host = options->endpoint, http = MP_STR("http://"), https = MP_STR("https://");
    bool tls = options->use_ssl, path_style = options->path_style;

    if (mp_str_starts(host, http)) {
        host = skip(host, http.size);
        tls = false;
    } else if (mp_str_starts(host, https)) {
        host = skip(host, https.size);
        tls = true;
    }
    while (host.size > 0 && host.data[host.size - 1] == '/')
        host.size--;
    for (size_t i = 0; i < host.size; i++)
        if (host.data[i] <= ' ' || host.data[i] > '~' || strchr("/?#@\\", host.data[i]))
            return mp_err_set(err, MP_BAD_CONFIG, "endpoint %.*s is not host:port",
                              MP_STR_ARG(behind_sign_in(host)));
    if (host.size > HOST_MAX)
        return mp_err_set(err, MP_BAD_CONFIG, "endpoint has %zu bytes, %d at most", host.size,
                          HOST_MAX);
    if (host.size == 0 && options->endpoint.size > 0)
        return mp_err_set(err, MP_BAD_CONFIG, "endpoint %.*s has no host",
                          MP_STR_ARG(options->endpoint));
    if (host.size == 0) {
        tls = true;
        host =
            mp_str_c(mp_arena_printf(&s3->memory, "s3.%.*s.amazonaws.com%s", MP_STR_ARG(s3->region),
                                     mp_str_starts(s3->region, MP_STR("cn-")) ? ".cn" : ""));
    }
    host = without_default_port(host, tls);
    path_style = path_style || is_address(host) || !is_host_label(s3->bucket, tls);
    if (path_style) {
        s3->host = mp_arena_str(&s3->memory, host);
        s3->path = mp_str_c(mp_arena_printf(&s3->memory, "/%.*s", MP_STR_ARG(s3->bucket)));
    } else {
        s3->host = mp_str_c(
            mp_arena_printf(&s3->memory, "%.*s.%.*s", MP_STR_ARG(s3->bucket), MP_STR_ARG(host)));
        s3->path = MP_STR("");
    }
    s3->base = mp_str_c(
        mp_arena_printf(&s3->memory, "http%s://%.*s", tls ? "s" : "", MP_STR_ARG(s3->host)));
    return MP_OK;
}

static enum mp_code set_credentials(struct mp_s3 *s3, const struct mp_store_s3_options *options,
                                    const struct mp_aws_environ *environment, struct mp_err *err)
{
    if (options->access_key.size == 0 && options->secret_key.size == 0) {
        s3->credentials = mp_credentials_chain(environment, s3->region, s3->env);
        return MP_OK;
    }
    if (options->access_key.size == 0 || options->secret_key.size == 0)
        return mp_err_set(err, MP_BAD_CONFIG, "%s key is given and %s key is not",
                          options->access_key.size ? "access" : "secret",
                          options->access_key.size ? "secret" : "access");
    return mp_credentials_given(options->access_key, options->secret_key, options->session_token,
                                err, &s3->credentials);
}

enum mp_code mp_store_s3_open(struct mp_str url, const struct mp_store_s3_options *options,
                              const struct mp_aws_environ *environment, const struct mp_env *env,
                              struct mp_err *err, struct mp_store **ret)
{
    static const struct mp_store_s3_options defaults = {.use_ssl = true};
    struct mp_s3 *s3 = mp_alloc(sizeof(*s3));
    enum mp_code code;

    options = options ? options : &defaults;
    s3->store.driver = &s3_driver;
    s3->env = env;
    s3->put_concurrency =
        options->put_concurrency ? options->put_concurrency : PUT_CONCURRENCY_DEFAULT;
    s3->request_ms_max = options->request_ms_max ? options->request_ms_max : REQUEST_MS_DEFAULT;
    s3->attempts_max = options->attempts_max ? options->attempts_max : ATTEMPTS_DEFAULT;
    pthread_mutex_init(&s3->lock, NULL);
    mp_arena_init(&s3->memory, 4096);
    if (options->ca_file.size)
        s3->ca_file = mp_arena_str(&s3->memory, options->ca_file).data;
    else if (environment->ca_bundle)
        s3->ca_file = mp_arena_str(&s3->memory, mp_str_c(environment->ca_bundle)).data;
    code = set_place(s3, url, err);
    if (code)
        goto out;
    code = set_region(s3, options->region, environment, err);
    if (code)
        goto out;
    code = set_endpoint(s3, options, err);
    if (code)
        goto out;
    code = set_credentials(s3, options, environment, err);
    if (code)
        goto out;
    *ret = &s3->store;
    s3 = NULL;
out:
    if (code)
        mp_err_add(err, "open store");
    if (s3)
        s3_close(&s3->store);
    return code;
}
