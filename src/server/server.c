/* server/server.c - see server.h.
 *
 * A request becomes a call: its route is found, its token, content type and body are looked at,
 * its handler runs, and whatever came of it becomes a status and a JSON body, one log line and one
 * observation. Where the body comes in pieces, the call lives until the last has been taken.
 */
#include "server/background/background.h"
#include "server/pages.h"
#include "server/priv.h"
#include "server/tx/catalog_ids.h"
#include "server/tx/commit.h"

#include "base/mem.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>

/* --- what becomes of a code --- */

static void unavailable(struct mp_call *call, const char *detail)
{
    mp_refuse(call, 503, "commit_queue_timeout", "%s", detail);
}

/* A code that is no refusal: the world failed, or we did. The text goes to the log only. */
static void refuse_fault(struct mp_call *call, enum mp_code code)
{
    if (code == MP_FULL) { /* the request's numbers */
        mp_refuse_invalid(call, "a sum would be above 2^63 - 1");
        return;
    }
    mp_log(call->server->log, MP_LOG_ERROR, "hoglake.request", "request %s: %s: %s",
           call->request_id, mp_code_name(code), call->err.text);
    if (code == MP_TIMEOUT && call->err.sys == EBUSY)
        unavailable(call, "waited too long for the catalog's commit lock; nothing was done; send "
                          "the same request again");
    else if (code == MP_IO || code == MP_TIMEOUT || code == MP_CONFLICT || code == MP_BAD_CONFIG)
        unavailable(call, "the catalog database cannot be used just now; send the same request "
                          "again");
    else
        mp_refuse(call, 500, "internal_error", "an unexpected fault; see the server's log");
}

/* --- before the handler --- */

/* The client's, or a new one. */
static void request_id(const struct mp_server *server, const struct mp_http_request *http,
                       char ret[MP_REQUEST_ID_TEXT])
{
    struct mp_str given = mp_http_request_header(http, "X-Request-Id");
    bool good = given.size >= 1 && given.size <= 128;

    for (size_t i = 0; good && i < given.size; i++)
        good = isalnum((unsigned char)given.data[i]) || strchr("._-", given.data[i]);
    if (good)
        snprintf(ret, MP_REQUEST_ID_TEXT, "%.*s", MP_STR_ARG(given));
    else
        mp_uuid4(server->env, ret);
}

static enum mp_code check_token(struct mp_call *call)
{
    struct mp_str token = call->server->settings->HOGLAKE_BEARER_TOKEN, prefix = MP_STR("Bearer ");
    struct mp_str given = mp_http_request_header(call->http, "Authorization");

    if (!token.size || call->route->open)
        return MP_OK;
    if (given.size == prefix.size + token.size && mp_str_starts(given, prefix) &&
        CRYPTO_memcmp(given.data + prefix.size, token.data, token.size) == 0)
        return MP_OK;
    return mp_refuse(call, 401, "unauthorized", "a bearer token is needed");
}

static enum mp_code take_body(struct mp_call *call)
{
    struct mp_str type, body = call->http->body, wanted = MP_STR("application/json");
    json_error_t fault;

    if (call->route->body == MP_BODY_NONE || (call->route->body == MP_BODY_OPTIONAL && !body.size))
        return MP_OK;
    type = mp_http_request_header(call->http, "Content-Type");
    if (type.size < wanted.size || !mp_str_eq_fold(mp_str_n(type.data, wanted.size), wanted) ||
        (type.size > wanted.size && type.data[wanted.size] != ';' && type.data[wanted.size] != ' '))
        return mp_refuse_bad(call, "the body must be application/json");
    call->body = json_loadb(body.data ? body.data : "", body.size, JSON_ALLOW_NUL, &fault);
    if (!call->body)
        return mp_refuse_bad(call, "the body is no JSON: line %d, column %d: %.100s", fault.line,
                             fault.column, fault.text);
    if (!json_is_object(call->body))
        return mp_refuse_bad(call, "the body must be a JSON object");
    return MP_OK;
}

static enum mp_code run(struct mp_call *call)
{
    const struct mp_http_request *http = call->http;
    int64_t lock_ms = call->server->settings->HOGLAKE_COMMIT_LOCK_TIMEOUT_MS;
    unsigned status = 404;
    enum mp_code code;

    if (http->queued_us) {
        call->waited_us = mp_now_mono_us(call->server->env) - http->queued_us;
        mp_server_metrics_observe(call->server->metrics, MP_SM_QUEUE_WAIT, NULL, call->waited_us);
        if (lock_ms && call->waited_us > (uint64_t)lock_ms * 1000) {
            mp_server_metrics_add(call->server->metrics, MP_SM_SHED, NULL, 1);
            mp_server_metrics_add(call->server->metrics, MP_SM_ABANDONED, NULL, 1);
            unavailable(call, "waited too long for a handler; nothing was done");
            return MP_REFUSED;
        }
    }
    call->route = mp_route_find(call, http->method, http->path, &status);
    if (!call->route)
        return status == 400   ? mp_refuse_bad(call, "the path cannot be decoded")
               : status == 405 ? mp_refuse(call, 405, "method_not_allowed", "no such method here")
                               : mp_refuse_missing(call, "there is nothing at this path");
    code = check_token(call);
    if (!code)
        code = mp_route_query(call, http->query);
    if (!code)
        code = take_body(call);
    if (!code)
        code = call->route->handle(call);
    return code;
}

/* --- behind the handler --- */

/* The log line and the observation of a request whose answer has ended; cut: NULL, or why it did
 * before it was whole. */
static void account(struct mp_call *call, uint64_t body_bytes, const char *cut)
{
    uint64_t us = mp_now_mono_us(call->server->env) - call->began_us;
    enum mp_log_level level = call->status >= 500 || cut ? MP_LOG_WARN : MP_LOG_INFO;
    char status[8], ms[24], bytes_in[24], bytes_out[24], labels[160];
    struct mp_log_field fields[] = {
        {"method", false, call->http->method},
        {"path", false, call->http->path},
        {"status", true, {status, (size_t)snprintf(status, sizeof(status), "%u", call->status)}},
        {"ms", true, {ms, (size_t)snprintf(ms, sizeof(ms), "%.3f", (double)us / 1000)}},
        {"bytes_in",
         true,
         {bytes_in, (size_t)snprintf(bytes_in, sizeof(bytes_in), "%zu", call->http->body.size)}},
        {"bytes_out",
         true,
         {bytes_out,
          (size_t)snprintf(bytes_out, sizeof(bytes_out), "%llu", (unsigned long long)body_bytes)}},
        {"request_id", false, mp_str_c(call->request_id)},
        {NULL}, /* room for three more */
        {NULL},
        {NULL},
    };
    uint32_t count = 7;

    if (cut)
        fields[count++] = (struct mp_log_field){"cut", false, mp_str_c(cut)};
    if (call->refusal.status) {
        fields[count++] = (struct mp_log_field){"error", false, call->refusal.wire.error};
        fields[count++] = (struct mp_log_field){"detail", false, call->refusal.wire.detail};
    }
    snprintf(labels, sizeof(labels), "%s %s,%u", call->route ? call->route->method : "",
             call->route ? call->route->pattern : "none", call->status);
    mp_server_metrics_observe(call->server->metrics, MP_SM_REQUESTS, labels, us);
    mp_log_with(call->server->log, level, "hoglake.request", fields, count, "request");
}

static const char *const cut_names[] = {
    [MP_HTTP_SENT] = NULL,         [MP_HTTP_BROKEN] = "broken", [MP_HTTP_LATE] = "late",
    [MP_HTTP_STOPPED] = "stopped", [MP_HTTP_GONE] = "gone",
};

static void count_cut(void *self, enum mp_http_end end)
{
    struct mp_server *server = self;

    mp_server_metrics_add(server->metrics, MP_SM_CUT, cut_names[end], 1);
}

static bool next_piece(void *self, struct mp_buf *piece, bool *ret_last)
{
    struct mp_call *call = self;
    enum mp_code code;

    call->out = *piece;
    code = mp_pages_print(call);
    if (code && code != MP_REFUSED)
        refuse_fault(call, code);
    mp_sql_give(call->server->pool, &call->sql);
    *piece = call->out;
    call->out = MP_BUF_INIT(0);
    *ret_last = !call->pages;
    return !code;
}

static void end_pieces(void *self, enum mp_http_end end, uint64_t body_bytes)
{
    struct mp_call *call = self;

    account(call, body_bytes, cut_names[end]);
    mp_call_fini(call);
    mp_free(call);
}

/* The call lives on as the stream of what comes behind `out`. Takes it. */
static struct mp_http_stream stream_of(struct mp_call *call)
{
    struct mp_call *kept = mp_alloc(sizeof(*kept));
    struct mp_http_request *http = mp_arena_take(&call->arena, sizeof(*http));

    mp_sql_give(call->server->pool, &call->sql);
    http->method = mp_arena_str(&call->arena, call->http->method);
    http->path = mp_arena_str(&call->arena, call->http->path);
    http->body.size = call->http->body.size; /* for the log; the rest has ended with the handler */
    *kept = *call;
    kept->http = http;
    kept->out = MP_BUF_INIT(0);
    mp_arena_init(&call->arena, 0);
    return (struct mp_http_stream){.next = next_piece,
                                   .done = end_pieces,
                                   .self = kept,
                                   .bytes = sizeof(*kept) + kept->arena.bytes};
}

static void handle(void *self, const struct mp_http_request *http, struct mp_http_response *ret)
{
    struct mp_server *server = self;
    struct mp_call call;
    enum mp_code code;

    mp_call_init(&call, server);
    call.http = http;
    call.began_us = http->queued_us ? http->queued_us : mp_now_mono_us(server->env);
    request_id(server, http, call.request_id);
    code = run(&call);
    if (code && code != MP_REFUSED)
        refuse_fault(&call, code);
    else if (code)
        assert(call.refusal.status);
    if (code) {
        mp_buf_clear(&call.out);
        call.pages = NULL;
        call.status = call.refusal.status;
        call.content_type = "application/json";
        mp_wire_error_print(&call.out, &call.refusal.wire);
        if (call.status == 503)
            mp_http_response_header(ret, "Retry-After", "1");
    } else {
        call.refusal.status = 0;
    }
    mp_http_response_header(ret, "X-Request-Id", call.request_id);
    ret->status = call.status;
    ret->content_type = call.out.size ? call.content_type : NULL;
    mp_buf_fini(&ret->body);
    ret->body = call.out; /* taken */
    if (call.pages)
        ret->stream = stream_of(&call);
    else
        account(&call, call.out.size, NULL);
    call.out = MP_BUF_INIT(0);
    mp_call_fini(&call);
}

static bool at_once(void *self, const struct mp_http_request *http)
{
    (void)self;
    return mp_route_at_once(http->method, http->path);
}

/* The HTTP server's own refusals, in our words. */
static void refuse(void *self, const struct mp_http_request *http, struct mp_http_response *ret)
{
    struct mp_server *server = self;
    struct mp_wire_error error = {.error = MP_STR("commit_queue_timeout"),
                                  .detail = MP_STR("the server is full, or stops; nothing was "
                                                   "done; send the same request again")};
    char id[MP_REQUEST_ID_TEXT];

    request_id(server, http, id);
    mp_http_response_header(ret, "X-Request-Id", id);
    if (ret->status == 413)
        error = (struct mp_wire_error){.error = MP_STR("bad_request"),
                                       .detail = MP_STR("the body is too large")};
    else
        mp_server_metrics_add(server->metrics, MP_SM_SHED, NULL, 1);
    ret->content_type = "application/json";
    mp_wire_error_print(&ret->body, &error);
}

/* --- life --- */

static enum mp_code open_tls(struct mp_server *server, struct mp_err *err)
{
    const struct mp_server_settings *settings = server->settings;
    enum mp_code code;

    if (!settings->HOGLAKE_TLS_CERT_FILE.size)
        return MP_OK;
    code = mp_http_tls_open(settings->HOGLAKE_TLS_CERT_FILE.data,
                            settings->HOGLAKE_TLS_KEY_FILE.data, err, &server->tls);
    if (code)
        mp_err_add(err, "HOGLAKE_TLS_CERT_FILE, HOGLAKE_TLS_KEY_FILE");
    return code;
}

static enum mp_code open_http(struct mp_server *server, struct mp_err *err)
{
    const struct mp_server_settings *settings = server->settings;
    struct mp_http_server_options options = {
        .address = settings->HOGLAKE_ADDRESS.size ? settings->HOGLAKE_ADDRESS.data : NULL,
        .port = (uint16_t)settings->HOGLAKE_PORT,
        .body_bytes_max = (size_t)settings->HOGLAKE_REQUEST_BYTES_MAX,
        .bodies_bytes_max = (size_t)settings->HOGLAKE_REQUEST_BODIES_BYTES_MAX,
        .body_ms_max = (uint32_t)settings->HOGLAKE_REQUEST_BODY_TIMEOUT_MS,
        .answers_bytes_max = (size_t)settings->HOGLAKE_ANSWERS_BYTES_MAX,
        .answer_ms_max = (uint32_t)settings->HOGLAKE_ANSWER_TIMEOUT_MS,
        .tls = server->tls,
        .env = server->env,
        .handle = handle,
        .workers = (uint32_t)settings->HOGLAKE_REQUEST_THREADS,
        .queue_max = (uint32_t)settings->HOGLAKE_REQUEST_QUEUE_MAX,
        .at_once = at_once,
        .refuse = refuse,
        .cut = count_cut,
        .self = server,
    };
    enum mp_code code;

    code = mp_http_server_open(&options, err, &server->http);
    if (code)
        mp_err_add(err, "HOGLAKE_ADDRESS, HOGLAKE_PORT");
    return code;
}

enum mp_code mp_server_open(const struct mp_server_settings *settings, const struct mp_env *env,
                            struct mp_log *log, struct mp_err *err, struct mp_server **ret)
{
    struct mp_server *server = mp_alloc(sizeof(*server));
    struct mp_sql_pool_options pool = {
        .conninfo = settings->database,
        .size = (uint32_t)settings->HOGLAKE_DB_POOL_SIZE,
        .connect_ms_max = 5000,
        .statement_ms_max = (uint32_t)settings->HOGLAKE_DB_STATEMENT_TIMEOUT_MS,
        .take_ms_max = (uint32_t)settings->HOGLAKE_DB_TAKE_TIMEOUT_MS,
        .lock_ms_max = (uint32_t)settings->HOGLAKE_COMMIT_LOCK_TIMEOUT_MS,
        .synchronous_commit = settings->HOGLAKE_SYNCHRONOUS_COMMIT,
    };
    enum mp_code code;

    json_object_seed(0);
    server->settings = settings;
    server->env = env;
    server->log = log;
    server->metrics = mp_server_metrics_new();
    server->pool = mp_sql_pool_open(&pool, env);
    server->catalog_ids = mp_catalog_ids_new();
    server->commits = mp_commits_open(server);
    code = open_tls(server, err);
    if (!code)
        code = mp_migrate(server->pool, err);
    if (code)
        goto out;
    atomic_store(&server->database_up, true);
    code = mp_background_open(server, err, &server->background);
    if (!code)
        code = open_http(server, err);
out:
    if (code)
        mp_server_close(server);
    else
        *ret = server;
    return code;
}

uint16_t mp_server_port(const struct mp_server *server)
{
    return mp_http_server_port(server->http);
}

void mp_server_close(struct mp_server *server)
{
    if (!server)
        return;
    atomic_store(&server->stopping, true);
    mp_http_server_close(server->http);
    mp_background_close(server->background);
    mp_http_tls_close(server->tls);
    mp_commits_close(server->commits);
    mp_catalog_ids_free(server->catalog_ids);
    mp_sql_pool_close(server->pool);
    mp_server_metrics_free(server->metrics);
    mp_free(server);
}
