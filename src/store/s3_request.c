/* store/s3_request.c - one request to S3 until it is done, and many of them at once.
 *
 * What an attempt came to is judged in one place (judge), by the outcome of the HTTP client, the
 * error code of S3, and the status code. A judgement is one of:
 *
 *     good       done
 *     wait       again after a while: exponential, full jitter, not before Retry-After
 *     skewed     our clock is off: learn from the Date header, sign anew, once
 *     expired    our keys are: fetch new ones, sign anew, once
 *     refused    done, with an error that no retry will mend
 *
 * A request whose answer was lost is sent again as it was: putting the same bytes under the same
 * key twice is putting them once.
 *
 * After    "Error responses" in the Amazon S3 API reference; "Exponential Backoff And Jitter", AWS
 *          Architecture Blog, 2015.
 */
#include "store/s3.h"

#include "store/s3_xml.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>

#define BACKOFF_MS_BASE   100u
#define BACKOFF_MS_MAX    5000u
#define RETRY_AFTER_MAX   30000u
#define CONNECT_MS_MAX    10000u
#define SLOW_BYTES_S      1000u /* slower than this for SLOW_S is stalled */
#define SLOW_S            20u
#define URL_MAX           (24u * 1024) /* a key and a continuation token, three bytes for each */
#define AUTHORIZATION_MAX 2048u
#define SERVICE           "s3"

enum verdict { GOOD, WAIT, SKEWED, EXPIRED, REFUSED };

/* --- building a request --------------------------------------------------------------------- */

/* Adds "a=b&c=d", escaped as it is signed and sent. */
static void add_query(struct mp_buf *buf, const struct mp_s3_op *op)
{
    for (uint32_t i = 0; i < op->param_count; i++) {
        assert(i == 0 || strcmp(op->params[i - 1].name, op->params[i].name) < 0);
        if (i)
            mp_buf_add_byte(buf, '&');
        mp_http_escape(buf, mp_str_c(op->params[i].name), false);
        mp_buf_add_byte(buf, '=');
        mp_http_escape(buf, op->params[i].value, false);
    }
}

/* Sets the headers that are signed and gives their number. */
static uint32_t set_headers(struct mp_s3 *s3, struct mp_s3_op *op)
{
    uint32_t count = 0;

    op->headers[count++] = (struct mp_http_header){MP_STR("host"), s3->host};
    op->headers[count++] =
        (struct mp_http_header){MP_STR("x-amz-content-sha256"), mp_str_c(op->payload_hash)};
    op->headers[count++] = (struct mp_http_header){MP_STR("x-amz-date"), mp_str_c(op->time_text)};
    if (op->token.size)
        op->headers[count++] =
            (struct mp_http_header){MP_STR("x-amz-security-token"), mp_buf_str(&op->token)};
    if (op->range.size)
        op->headers[count++] = (struct mp_http_header){MP_STR("range"), op->range};
    return count;
}

/* Writes URL and signature for an attempt at this time with these keys. */
static void sign(struct mp_s3 *s3, struct mp_s3_op *op, const struct mp_aws_keys *keys)
{
    int64_t wall_us = mp_now_wall_us(s3->env) + atomic_load(&s3->skew_us);
    size_t path, query;
    uint32_t count;
    struct mp_s3_sign parts;

    mp_buf_clear(&op->url);
    mp_buf_add_str(&op->url, s3->base);
    path = op->url.size;
    mp_buf_add_str(&op->url, s3->path);
    mp_buf_add_byte(&op->url, '/');
    mp_http_escape(&op->url, op->key, true);
    query = op->url.size;
    if (op->param_count) {
        mp_buf_add_byte(&op->url, '?');
        add_query(&op->url, op);
    }
    op->call.url = mp_buf_c(&op->url);

    mp_s3_time(wall_us, op->time_text);
    mp_buf_clear(&op->token);
    mp_buf_add_c(&op->token, keys->token);
    count = set_headers(s3, op);
    parts = (struct mp_s3_sign){
        .method = mp_str_c(op->method),
        .path = {op->url.data + path, query - path},
        .query = {op->url.data + query + (op->param_count ? 1 : 0),
                  op->url.size - query - (op->param_count ? 1 : 0)},
        .payload_hash = mp_str_c(op->payload_hash),
        .headers = op->headers,
        .header_count = count,
        .access_key = mp_str_c(keys->access_key),
        .secret_key = mp_str_c(keys->secret_key),
        .region = s3->region,
        .service = MP_STR(SERVICE),
        .wall_us = wall_us,
    };
    mp_buf_clear(&op->authorization);
    mp_s3_sign(&parts, &op->authorization);
    op->headers[count++] =
        (struct mp_http_header){MP_STR("Authorization"), mp_buf_str(&op->authorization)};
    op->call.headers = op->headers;
    op->call.header_count = count;
    op->generation = keys->generation;
}

/* Sets what all attempts of an operation share; its bytes are hashed here, once. */
static void prepare(struct mp_s3 *s3, struct mp_s3_op *op)
{
    assert(op->param_count <= MP_S3_PARAMS_MAX);
    mp_s3_hash(op->pieces, op->piece_count, op->payload_hash);
    op->url.max = URL_MAX;
    op->authorization.max = AUTHORIZATION_MAX;
    op->token.max = MP_AWS_TOKEN_MAX;
    op->call.body.max = MP_S3_ANSWER_MAX;
    op->call.method = op->method;
    op->call.pieces = op->pieces;
    op->call.piece_count = op->piece_count;
    op->call.connect_ms_max =
        s3->request_ms_max < CONNECT_MS_MAX ? s3->request_ms_max : CONNECT_MS_MAX;
    op->call.total_ms_max = s3->request_ms_max;
    op->call.slow_bytes_s = op->patient ? 0 : SLOW_BYTES_S;
    op->call.slow_s = op->patient ? 0 : SLOW_S;
    op->call.memory = op->memory;
    op->call.memory_size = op->memory_size;
    op->call.owner = op;
    op->due_us = 0;
    op->state = MP_S3_WAITING;
}

/* --- judging an attempt --------------------------------------------------------------------- */

static enum verdict verdict_of_s3_code(const char *s3_code, unsigned status)
{
    static const struct {
        const char *s3_code;
        enum verdict verdict;
    } table[] = {
        {"SlowDown", WAIT},
        {"ServiceUnavailable", WAIT},
        {"InternalError", WAIT},
        {"RequestTimeout", WAIT},
        {"Throttling", WAIT},
        {"ThrottlingException", WAIT},
        {"TooManyRequests", WAIT},
        {"BandwidthLimitExceeded", WAIT},
        {"OperationAborted", WAIT}, /* another operation on the same thing */
        {"IncompleteBody", WAIT},   /* these three: bytes were lost on the way */
        {"BadDigest", WAIT},
        {"XAmzContentSHA256Mismatch", WAIT},
        {"RequestTimeTooSkewed", SKEWED},
        {"ExpiredToken", EXPIRED},
        {"ExpiredTokenException", EXPIRED},
        {"TokenRefreshRequired", EXPIRED},
        {"InvalidToken", EXPIRED},
        {"InvalidAccessKeyId", EXPIRED}, /* keys that were replaced, and the old ones deleted */
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (strcmp(s3_code, table[i].s3_code) == 0)
            return table[i].verdict;
    if (status == 501 || status == 505)
        return REFUSED; /* what the server does not know it will not learn meanwhile */
    /* 408, 520 and the like are said by gateways in front of a store */
    return status == 408 || status == 429 || (status >= 500 && status < 600) ? WAIT : REFUSED;
}

static enum mp_code code_of(enum verdict verdict, const struct mp_s3_op *op)
{
    if (verdict == WAIT || strcmp(op->s3_code, "NoSuchUpload") == 0)
        return MP_IO; /* an upload that somebody aborted may be begun anew */
    /* of a put or a walk, "not found" means bucket or upload: nothing the caller can look for */
    if (op->call.status == 404 && op->key.size > 0 && strcmp(op->s3_code, "NoSuchBucket") != 0 &&
        (strcmp(op->method, "GET") == 0 || strcmp(op->method, "HEAD") == 0))
        return MP_NOT_FOUND;
    return MP_REFUSED;
}

/* Printable ASCII stays, so that a text of the server cannot forge log lines. */
static void make_plain(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || (unsigned char)*text > '~')
            *text = '?';
}

static enum verdict judge_error(struct mp_s3 *s3, struct mp_s3_op *op)
{
    struct mp_str body = mp_buf_str(&op->call.body);
    struct mp_str region = mp_http_call_header(&op->call, MP_STR("x-amz-bucket-region"));
    char message[256] = "";
    enum verdict verdict;

    op->s3_code[0] = 0;
    mp_xml_text(body, MP_STR("Error/Code"), op->s3_code, sizeof(op->s3_code));
    mp_xml_text(body, MP_STR("Error/Message"), message, sizeof(message));
    make_plain(op->s3_code);
    make_plain(message);
    verdict = verdict_of_s3_code(op->s3_code, op->call.status);
    op->code = mp_err_set(&op->err, code_of(verdict, op), "answered %u%s%s%s%s", op->call.status,
                          *op->s3_code ? " " : "", op->s3_code, *message ? ": " : "", message);
    if (region.size && !mp_str_eq(region, s3->region))
        mp_err_add(&op->err, "the bucket is in region %.*s, not %.*s", MP_STR_ARG(region),
                   MP_STR_ARG(s3->region));
    op->err.sys = (int)op->call.status;
    return verdict;
}

/* What the last attempt came to; fills op->code and op->err unless it is GOOD. */
static enum verdict judge(struct mp_s3 *s3, struct mp_s3_op *op)
{
    unsigned status = op->call.status;
    struct mp_str root;

    op->code = mp_http_call_code(&op->call, &op->err);
    if (op->code) {
        op->expect |= op->call.outcome == MP_HTTP_CUT;
        return op->err.retriable ? WAIT : REFUSED;
    }
    if (status < 200 || status > 299)
        return judge_error(s3, op);
    if (!op->root)
        return GOOD;
    /* "200 OK" is sent before the work is done, so an error may still follow it as the body */
    root = mp_xml_root(mp_buf_str(&op->call.body));
    if (mp_str_eq(root, mp_str_c(op->root)))
        return GOOD;
    if (mp_str_eq(root, MP_STR("Error")))
        return judge_error(s3, op);
    op->code =
        mp_err_set(&op->err, MP_IO, "answered %u with <%.*s>, not <%s>", status,
                   (int)(root.size < 40 ? root.size : 40), root.data ? root.data : "", op->root);
    return WAIT;
}

/* Milliseconds until the next attempt. */
static uint64_t backoff_ms(struct mp_s3 *s3, const struct mp_s3_op *op, uint32_t floor_ms)
{
    uint32_t most = BACKOFF_MS_MAX;
    uint64_t wait_ms;

    if (op->attempts <= 6)
        most = BACKOFF_MS_BASE << (op->attempts - 1);
    if (most > BACKOFF_MS_MAX)
        most = BACKOFF_MS_MAX;
    wait_ms = mp_random_u64(s3->env) % (most + 1);
    if (floor_ms > RETRY_AFTER_MAX)
        floor_ms = RETRY_AFTER_MAX;
    return wait_ms > floor_ms ? wait_ms : floor_ms;
}

static bool learn_skew(struct mp_s3 *s3, struct mp_s3_op *op)
{
    int64_t date_us;

    if (op->skew_learnt || !mp_http_call_date(&op->call, &date_us))
        return false;
    op->skew_learnt = true;
    atomic_store(&s3->skew_us, date_us - mp_now_wall_us(s3->env));
    return true;
}

static void note_clock(struct mp_s3 *s3, const struct mp_s3_op *op)
{
    int64_t date_us;

    if (op->call.outcome != MP_HTTP_ANSWERED || !mp_http_call_date(&op->call, &date_us))
        return;
    atomic_store(&s3->seen_us, date_us - mp_now_wall_us(s3->env));
    atomic_store(&s3->seen, true);
}

static bool renew_keys(struct mp_s3 *s3, struct mp_s3_op *op)
{
    if (op->keys_renewed)
        return false;
    op->keys_renewed = true;
    return mp_credentials_renew(s3->credentials, op->generation);
}

/* Puts the last touches to the error of an operation that is done. */
static void finish_error(const struct mp_s3 *s3, struct mp_s3_op *op, uint32_t retry_ms)
{
    op->err.wait_ms = retry_ms < RETRY_AFTER_MAX ? retry_ms : RETRY_AFTER_MAX;
    mp_err_add(&op->err, "%s s3://%.*s/" MP_STORE_SHOWN, op->method, MP_STR_ARG(s3->bucket),
               MP_STORE_SHOWN_ARG(op->key));
    if (op->attempts > 1) {
        size_t used = strlen(op->err.text);

        snprintf(op->err.text + used, sizeof(op->err.text) - used, " (attempt %u of %u)",
                 op->attempts, s3->attempts_max);
    }
}

/* True: the operation is done. False: it waits for its next attempt. */
static bool settle(struct mp_s3 *s3, struct mp_s3_op *op)
{
    enum verdict verdict = judge(s3, op);
    uint64_t now_us = mp_now_mono_us(s3->env);
    int64_t wall_us = mp_now_wall_us(s3->env) + atomic_load(&s3->skew_us);
    uint32_t retry_ms = mp_http_call_retry_ms(&op->call, wall_us);

    note_clock(s3, op);
    op->due_us = now_us;
    op->state = MP_S3_WAITING;
    if (verdict == GOOD)
        return true;
    if ((verdict == SKEWED && learn_skew(s3, op)) || (verdict == EXPIRED && renew_keys(s3, op))) {
        op->attempts--; /* it was our own fault, and is mended */
        return false;
    }
    if (verdict == WAIT && op->attempts < s3->attempts_max) {
        op->due_us = now_us + backoff_ms(s3, op, retry_ms) * 1000;
        return false;
    }
    finish_error(s3, op, retry_ms);
    return true;
}

/* --- running -------------------------------------------------------------------------------- */

static struct mp_http_client *take_client(struct mp_s3 *s3)
{
    struct mp_http_client_options options = {
        .connections_max = s3->put_concurrency,
        .ca_file = s3->ca_file,
    };
    struct mp_http_client *client = NULL;

    pthread_mutex_lock(&s3->lock);
    if (s3->idle_count)
        client = s3->idle[--s3->idle_count];
    pthread_mutex_unlock(&s3->lock);
    return client ? client : mp_http_client_new(&options);
}

static void give_client(struct mp_s3 *s3, struct mp_http_client *client)
{
    pthread_mutex_lock(&s3->lock);
    if (s3->idle_count < MP_S3_CLIENTS_MAX) {
        s3->idle[s3->idle_count++] = client;
        client = NULL;
    }
    pthread_mutex_unlock(&s3->lock);
    mp_http_client_free(client);
}

/* Readies a place for its next operation; buffers stay for it. */
static void reset(struct mp_s3_op *op)
{
    struct mp_s3_op next = {
        .call = {.body = op->call.body, .head = op->call.head},
        .url = op->url,
        .authorization = op->authorization,
        .token = op->token,
        .slices = op->slices,
        .slice_capacity = op->slice_capacity,
    };

    *op = next;
}

void mp_s3_op_fini(struct mp_s3_op *op)
{
    mp_http_call_fini(&op->call);
    mp_buf_fini(&op->url);
    mp_buf_fini(&op->authorization);
    mp_buf_fini(&op->token);
    mp_free(op->slices);
    op->slices = NULL;
    op->slice_capacity = 0;
}

/* Starts an attempt. False: there are no keys to sign it with, and the operation is done. */
static bool attempt(struct mp_s3 *s3, struct mp_http_client *client, struct mp_s3_op *op)
{
    struct mp_aws_keys *keys = mp_alloc(sizeof(*keys));

    op->code = mp_credentials_get(s3->credentials, atomic_load(&s3->skew_us), keys, &op->err);
    if (!op->code) {
        sign(s3, op, keys);
        op->attempts++;
        op->call.expect_continue = op->expect && op->piece_count > 0;
        op->state = MP_S3_UNDER_WAY;
        mp_http_start(client, &op->call);
    } else {
        finish_error(s3, op, 0);
    }
    explicit_bzero(keys, sizeof(*keys));
    mp_free(keys);
    return !op->code;
}

static void finish(const struct mp_s3_source *source, struct mp_s3_op *op)
{
    source->done(source->self, op);
    reset(op);
}

/* Starts the first operation that is due, filling its place where it is free. Gives when to call
 * again: 0 at once (one was started, there may be more), else the time at which the next waiting
 * one is due, UINT64_MAX: none is. One at a time, since preparing hashes megabytes, and the
 * connections are to be served in between. */
static uint64_t start_one(struct mp_s3 *s3, struct mp_http_client *client,
                          const struct mp_s3_source *source, struct mp_s3_op *ops, uint32_t count)
{
    uint64_t now_us = mp_now_mono_us(s3->env), next_us = UINT64_MAX;
    bool dry = false; /* the source has nothing to do now */

    for (uint32_t i = 0; i < count; i++) {
        struct mp_s3_op *op = &ops[i];

        if (op->state == MP_S3_FREE && !dry) {
            dry = !source->next(source->self, op);
            if (!dry)
                prepare(s3, op);
        }
        if (op->state != MP_S3_WAITING)
            continue;
        if (op->due_us > now_us) {
            next_us = op->due_us < next_us ? op->due_us : next_us;
            continue;
        }
        if (!attempt(s3, client, op))
            finish(source, op);
        return 0;
    }
    return next_us;
}

void mp_s3_run(struct mp_s3 *s3, const struct mp_s3_source *source, uint32_t at_once)
{
    struct mp_http_client *client = take_client(s3);
    struct mp_s3_op *ops = mp_alloc_array(at_once, sizeof(*ops));

    for (;;) {
        uint64_t next_us = start_one(s3, client, source, ops, at_once);
        uint64_t now_us = mp_now_mono_us(s3->env);
        uint64_t wait_us = next_us > now_us ? next_us - now_us : 0;
        struct mp_http_call *call;

        if (mp_http_under_way(client) == 0) {
            if (next_us == UINT64_MAX)
                break;
            if (wait_us)
                mp_sleep_us(s3->env, wait_us);
            continue;
        }
        call = mp_http_wait(client, wait_us < 1000000 ? (uint32_t)(wait_us + 999) / 1000 : 1000);
        for (; call; call = mp_http_wait(client, 0))
            if (settle(s3, call->owner))
                finish(source, call->owner);
    }
    for (uint32_t i = 0; i < at_once; i++)
        mp_s3_op_fini(&ops[i]);
    mp_free(ops);
    give_client(s3, client);
}

/* A source of one: the operation lies with the caller, and its answer stays there. */
void mp_s3_one(struct mp_s3 *s3, struct mp_s3_op *op)
{
    struct mp_http_client *client = take_client(s3);
    bool done = false;

    prepare(s3, op);
    while (!done) {
        uint64_t now_us = mp_now_mono_us(s3->env);

        if (op->state == MP_S3_UNDER_WAY)
            done = mp_http_wait(client, 1000) && settle(s3, op);
        else if (op->due_us > now_us)
            mp_sleep_us(s3->env, op->due_us - now_us);
        else
            done = !attempt(s3, client, op);
    }
    give_client(s3, client);
}

enum mp_code mp_s3_full_key(const struct mp_s3 *s3, struct mp_str key, struct mp_arena *arena,
                            struct mp_err *err, struct mp_str *ret)
{
    size_t size = s3->prefix.size + key.size;
    char *text;

    if (size > MP_S3_KEY_MAX)
        return mp_err_set(err, MP_BAD_DATA, "key " MP_STORE_SHOWN " has %zu bytes, %u at most",
                          MP_STORE_SHOWN_ARG(key), size, MP_S3_KEY_MAX);
    text = mp_arena_take(arena, size + 1);
    if (s3->prefix.size)
        memcpy(text, s3->prefix.data, s3->prefix.size);
    if (key.size)
        memcpy(text + s3->prefix.size, key.data, key.size);
    *ret = (struct mp_str){text, size};
    return MP_OK;
}
