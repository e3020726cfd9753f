/* net/http_client.c - libcurl's multi interface behind plain structs.
 *
 * A client is one curl multi handle (the connection cache and the event loop) and a few idle easy
 * handles (each a request's settings and its TLS session cache). start takes an easy handle, sets
 * everything on it anew, and adds it to the multi handle; wait drives the multi handle until
 * something is done, translates what curl says into an outcome, and puts the easy handle back.
 *
 * Bodies are read straight from the caller's pieces into curl's upload buffer, and answers are
 * written straight to the caller's memory where it gave some: one copy each way.
 *
 * Not chosen: curl_easy_perform in a thread a request (threads by the dozen to move bytes that one
 * can move), curl_multi_socket_action with our own epoll (worth it for thousands of connections,
 * not for sixteen).
 */
#include "net/http_client.h"

#include "base/mem.h"

#include <assert.h>
#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

_Static_assert(sizeof(((struct mp_http_call *)0)->text) >= CURL_ERROR_SIZE, "curl writes there");

#define CONNECTIONS_DEFAULT 16
#define CONNECT_MS_DEFAULT  10000
#define UPLOAD_BYTES        (256L * 1024) /* what curl reads from us at once */
#define DOWNLOAD_BYTES      (128L * 1024)
#define IDLE_MAX            64  /* easy handles kept */
#define SHOWN_MAX           160 /* bytes of a URL in an error text: the reason is to have room */

struct mp_http_client {
    CURLM *multi;
    CURL *idle[IDLE_MAX];
    uint32_t idle_count, under_way;
    char *ca_file; /* NULL: the system's */
};

/* Memory of libcurl's; like base/mem.h, being out of it ends the process. */
static void *need(void *memory)
{
    if (!memory) {
        fprintf(stderr, "out of memory in libcurl\n");
        exit(MP_EXIT_MEMORY);
    }
    return memory;
}

/* --- SIGPIPE (H4) --------------------------------------------------------------------------- */

/* With CURLOPT_NOSIGNAL curl leaves SIGPIPE alone, and OpenSSL writes with write(2). So the signal
 * is blocked for this thread while curl runs, and one that became pending meanwhile is eaten. */
struct pipe_guard {
    sigset_t before;
    bool was_pending;
};

static void pipe_set(sigset_t *ret)
{
    sigemptyset(ret);
    sigaddset(ret, SIGPIPE);
}

static void pipe_block(struct pipe_guard *guard)
{
    sigset_t pipe, pending;

    pipe_set(&pipe);
    sigpending(&pending);
    guard->was_pending = sigismember(&pending, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &guard->before);
}

static void pipe_unblock(const struct pipe_guard *guard)
{
    struct timespec now = {0, 0};
    sigset_t pipe;

    pipe_set(&pipe);
    if (!guard->was_pending)
        while (sigtimedwait(&pipe, NULL, &now) > 0)
            ;
    pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
}

/* --- what curl calls ------------------------------------------------------------------------ */

static size_t read_body(char *place, size_t size, size_t count, void *self)
{
    struct mp_http_call *call = self;
    size_t room = size * count, used = 0;

    while (call->piece < call->piece_count && used < room) {
        struct mp_str piece = call->pieces[call->piece];
        size_t take = piece.size - call->piece_at;

        if (take > room - used)
            take = room - used;
        if (take)
            memcpy(place + used, piece.data + call->piece_at, take);
        used += take;
        call->piece_at += take;
        if (call->piece_at == piece.size) {
            call->piece++;
            call->piece_at = 0;
        }
    }
    return used;
}

/* curl rewinds a body when it has to send it again on a fresh connection (H1). */
static int seek_body(void *self, curl_off_t offset, int origin)
{
    struct mp_http_call *call = self;

    if (origin != SEEK_SET)
        return CURL_SEEKFUNC_CANTSEEK;
    call->resent = true;
    call->piece = 0;
    call->piece_at = (size_t)offset;
    while (call->piece < call->piece_count && call->piece_at >= call->pieces[call->piece].size)
        call->piece_at -= call->pieces[call->piece++].size;
    return CURL_SEEKFUNC_OK;
}

static size_t write_head(char *data, size_t size, size_t count, void *self)
{
    struct mp_http_call *call = self;
    struct mp_str line = {data, size * count};

    if (mp_str_starts(line, MP_STR("HTTP/")))
        mp_buf_clear(&call->head); /* an interim answer, such as 100, had come before */
    else if (line.size <= call->head.max - call->head.size)
        mp_buf_add_str(&call->head, line);
    return line.size;
}

static size_t write_body(char *data, size_t size, size_t count, void *self)
{
    struct mp_http_call *call = self;
    size_t bytes = size * count, room;
    long status = 0;
    bool good;

    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    good = status >= 200 && status < 300;
    if (good && call->memory)
        room = call->memory_size - call->memory_used;
    else
        room = call->body.max - call->body.size;
    if (good && bytes > room) {
        call->too_large = true;
        return 0; /* ends the transfer */
    }
    if (good && call->memory) {
        memcpy((char *)call->memory + call->memory_used, data, bytes);
        call->memory_used += bytes;
    } else {
        mp_buf_add(&call->body, data, bytes < room ? bytes : room);
    }
    return bytes;
}

/* --- start ---------------------------------------------------------------------------------- */

static struct curl_slist *add_line(struct curl_slist *lines, const char *line)
{
    return need(curl_slist_append(lines, line));
}

static struct curl_slist *header_lines(const struct mp_http_call *call)
{
    struct curl_slist *lines = NULL;
    struct mp_buf line = MP_BUF_INIT(1 << 20);

    for (uint32_t i = 0; i < call->header_count; i++) {
        const struct mp_http_header *header = &call->headers[i];

        assert(header->name.size > 0);
        assert(!memchr(header->value.data ? header->value.data : "", '\n', header->value.size));
        mp_buf_clear(&line);
        mp_buf_add_str(&line, header->name);
        /* a name with ';' is how curl is told of a header without a value */
        mp_buf_add_c(&line, header->value.size ? ": " : ";");
        mp_buf_add_str(&line, header->value);
        lines = add_line(lines, mp_buf_c(&line));
    }
    mp_buf_fini(&line);
    return add_line(lines, call->expect_continue ? "Expect: 100-continue" : "Expect:");
}

static uint64_t body_bytes(const struct mp_http_call *call)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < call->piece_count; i++)
        bytes += call->pieces[i].size;
    return bytes;
}

/* The parts of a request that all of them share. */
static void set_common(const struct mp_http_client *client, CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L); /* H2 */
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);     /* a signed path is sent as it was signed */
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_DNS_SHUFFLE_ADDRESSES, 1L);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BYTES);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, DOWNLOAD_BYTES);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "millpond/" MP_VERSION);
    if (client->ca_file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, client->ca_file);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, write_head);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write_body);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_body);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek_body);
}

/* A request with a body, even an empty one, is an upload of known size under its method's name;
 * this is the form in which curl adds no header of its own. */
static void set_method(CURL *easy, const struct mp_http_call *call)
{
    bool upload = call->piece_count > 0 || strcmp(call->method, "PUT") == 0 ||
                  strcmp(call->method, "POST") == 0;

    if (strcmp(call->method, "HEAD") == 0) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
        return;
    }
    if (upload) {
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)body_bytes(call));
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method);
}

static void set_call(CURL *easy, struct mp_http_call *call)
{
    curl_easy_setopt(easy, CURLOPT_URL, call->url);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, (struct curl_slist *)call->lines);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)(call->connect_ms_max ? call->connect_ms_max : CONNECT_MS_DEFAULT));
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)call->total_ms_max);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, (long)call->slow_bytes_s);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)call->slow_s);
    if (call->direct)
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->text);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(easy, CURLOPT_READDATA, call);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, call);
}

void mp_http_start(struct mp_http_client *client, struct mp_http_call *call)
{
    struct pipe_guard guard;
    CURL *easy;

    assert(!call->easy);
    pipe_block(&guard);
    easy = client->idle_count ? client->idle[--client->idle_count] : need(curl_easy_init());
    mp_buf_clear(&call->body);
    mp_buf_clear(&call->head);
    call->head.max = MP_HTTP_HEAD_BYTES_MAX;
    call->outcome = MP_HTTP_PENDING;
    call->status = 0;
    call->sent = call->resent = call->too_large = false;
    call->memory_used = call->piece_at = call->piece = 0;
    call->text[0] = 0;
    call->lines = header_lines(call);
    call->easy = easy;
    set_common(client, easy);
    set_method(easy, call);
    set_call(easy, call);
    if (curl_multi_add_handle(client->multi, easy) != CURLM_OK)
        need(NULL);
    client->under_way++;
    pipe_unblock(&guard);
}

/* --- wait ----------------------------------------------------------------------------------- */

/* libcurl-errors(3) */
static enum mp_http_outcome outcome_of(CURLcode result, const struct mp_http_call *call)
{
    static const struct {
        CURLcode result;
        enum mp_http_outcome outcome;
    } table[] = {
        {CURLE_OK, MP_HTTP_ANSWERED},
        {CURLE_COULDNT_RESOLVE_PROXY, MP_HTTP_UNREACHED},
        {CURLE_COULDNT_RESOLVE_HOST, MP_HTTP_UNREACHED},
        {CURLE_COULDNT_CONNECT, MP_HTTP_UNREACHED},
        {CURLE_SSL_CONNECT_ERROR, MP_HTTP_UNREACHED},
        {CURLE_PROXY, MP_HTTP_UNREACHED},
        {CURLE_OPERATION_TIMEDOUT, MP_HTTP_TIMED_OUT},
        {CURLE_PEER_FAILED_VERIFICATION, MP_HTTP_UNTRUSTED},
        {CURLE_SSL_CACERT_BADFILE, MP_HTTP_UNTRUSTED},
        {CURLE_SSL_CERTPROBLEM, MP_HTTP_UNTRUSTED},
        {CURLE_SSL_ISSUER_ERROR, MP_HTTP_UNTRUSTED},
        {CURLE_URL_MALFORMAT, MP_HTTP_UNUSABLE},
    };

    if (call->too_large)
        return MP_HTTP_TOO_LARGE;
    if (result == CURLE_UNSUPPORTED_PROTOCOL && !call->sent)
        return MP_HTTP_UNUSABLE; /* after sending it means an answer that is not HTTP */
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].result == result)
            return table[i].outcome;
    return call->sent ? MP_HTTP_CUT : MP_HTTP_UNREACHED;
}

static void finish(struct mp_http_client *client, struct mp_http_call *call, CURLcode result)
{
    CURL *easy = call->easy;
    long status = 0, request_bytes = 0;

    if (result == CURLE_OUT_OF_MEMORY)
        need(NULL);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &request_bytes);
    call->status = (unsigned)status;
    call->sent = request_bytes > 0 || result == CURLE_OK;
    call->outcome = outcome_of(result, call);
    if (call->outcome == MP_HTTP_TOO_LARGE)
        snprintf(call->text, sizeof(call->text), "answer %u has more than %zu bytes", call->status,
                 call->memory ? call->memory_size : call->body.max);
    else if (result != CURLE_OK && !call->text[0])
        snprintf(call->text, sizeof(call->text), "%s", curl_easy_strerror(result));
    curl_multi_remove_handle(client->multi, easy);
    curl_easy_reset(easy); /* its connections and TLS sessions stay */
    curl_slist_free_all(call->lines);
    call->easy = call->lines = NULL;
    client->under_way--;
    if (client->idle_count < IDLE_MAX)
        client->idle[client->idle_count++] = easy;
    else
        curl_easy_cleanup(easy);
}

static struct mp_http_call *take_finished(struct mp_http_client *client)
{
    struct mp_http_call *call = NULL;
    int running, left;
    CURLMsg *message;
    CURLMcode multi_code = curl_multi_perform(client->multi, &running);

    assert(multi_code == CURLM_OK);
    (void)multi_code;
    do {
        message = curl_multi_info_read(client->multi, &left);
    } while (message && message->msg != CURLMSG_DONE);
    if (message) {
        CURLcode result = message->data.result; /* message is gone after remove_handle */

        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
        finish(client, call, result);
    }
    return call;
}

struct mp_http_call *mp_http_wait(struct mp_http_client *client, uint32_t wait_ms)
{
    struct pipe_guard guard;
    struct mp_http_call *call;

    if (client->under_way == 0)
        return NULL;
    pipe_block(&guard);
    call = take_finished(client);
    if (!call && wait_ms) {
        curl_multi_poll(client->multi, NULL, 0, wait_ms < INT32_MAX ? (int)wait_ms : INT32_MAX,
                        NULL);
        call = take_finished(client);
    }
    pipe_unblock(&guard);
    return call;
}

uint32_t mp_http_under_way(const struct mp_http_client *client)
{
    return client->under_way;
}

void mp_http_cancel(struct mp_http_client *client, struct mp_http_call *call)
{
    struct pipe_guard guard;

    if (!call->easy)
        return;
    pipe_block(&guard);
    finish(client, call, CURLE_ABORTED_BY_CALLBACK);
    call->outcome = MP_HTTP_CUT;
    pipe_unblock(&guard);
}

void mp_http_run(struct mp_http_client *client, struct mp_http_call *calls, uint32_t count,
                 uint32_t at_once)
{
    uint32_t started = 0, finished = 0;

    assert(at_once > 0);
    assert(client->under_way == 0);
    while (finished < count) {
        while (started < count && client->under_way < at_once)
            mp_http_start(client, &calls[started++]);
        if (mp_http_wait(client, 1000))
            finished++;
    }
    assert(client->under_way == 0);
}

void mp_http_one(struct mp_http_client *client, struct mp_http_call *call)
{
    mp_http_run(client, call, 1, 1);
}

/* --- reading an answer ---------------------------------------------------------------------- */

/* H3: scheme, host and path. */
static void add_place(struct mp_err *err, const struct mp_http_call *call)
{
    const char *host = strstr(call->url, "://"), *at;
    size_t size, scheme_size;

    host = host ? host + 3 : call->url;
    scheme_size = (size_t)(host - call->url);
    size = strcspn(host, "/?#");
    at = memrchr(host, '@', size);
    if (at)
        host = at + 1;
    size = strcspn(host, "?#");
    mp_err_add(err, "%s %.*s%.*s%s", call->method, (int)scheme_size, call->url,
               (int)(size < SHOWN_MAX ? size : SHOWN_MAX), host, size < SHOWN_MAX ? "" : "...");
}

enum mp_code mp_http_call_code(const struct mp_http_call *call, struct mp_err *err)
{
    static const struct {
        enum mp_code code;
        const char *what;
    } table[] = {
        [MP_HTTP_ANSWERED] = {MP_OK, ""},
        [MP_HTTP_UNREACHED] = {MP_IO, "not reached"},
        [MP_HTTP_TIMED_OUT] = {MP_TIMEOUT, "timed out"},
        [MP_HTTP_CUT] = {MP_IO, "cut off"},
        [MP_HTTP_TOO_LARGE] = {MP_BAD_DATA, "too large"},
        [MP_HTTP_UNTRUSTED] = {MP_BAD_CONFIG, "not trusted"},
        [MP_HTTP_UNUSABLE] = {MP_BAD_CONFIG, "not usable"},
    };

    assert(call->outcome != MP_HTTP_PENDING);
    if (call->outcome == MP_HTTP_ANSWERED)
        return MP_OK;
    mp_err_set(err, table[call->outcome].code, "%s: %s", table[call->outcome].what, call->text);
    add_place(err, call);
    return table[call->outcome].code;
}

static struct mp_str trim(struct mp_str text)
{
    while (text.size > 0 && strchr(" \t\r\n", text.data[text.size - 1]))
        text.size--;
    while (text.size > 0 && (*text.data == ' ' || *text.data == '\t'))
        text = (struct mp_str){text.data + 1, text.size - 1};
    return text;
}

struct mp_str mp_http_call_header(const struct mp_http_call *call, struct mp_str name)
{
    struct mp_str rest = mp_buf_str(&call->head);

    while (rest.size > 0) {
        const char *end = memchr(rest.data, '\n', rest.size);
        size_t size = end ? (size_t)(end - rest.data) + 1 : rest.size;
        const char *colon = memchr(rest.data, ':', size);

        if (colon && mp_str_eq_fold((struct mp_str){rest.data, (size_t)(colon - rest.data)}, name))
            return trim((struct mp_str){colon + 1, size - (size_t)(colon - rest.data) - 1});
        rest = (struct mp_str){rest.data + size, rest.size - size};
    }
    return (struct mp_str){NULL, 0};
}

/* An HTTP date (RFC 9110, 5.6.7) as seconds since 1970; -1: it is none. */
static int64_t parse_date(struct mp_str text)
{
    char copy[64];

    if (text.size == 0 || text.size >= sizeof(copy))
        return -1;
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    return (int64_t)curl_getdate(copy, NULL);
}

uint32_t mp_http_call_retry_ms(const struct mp_http_call *call, int64_t now_wall_us)
{
    struct mp_str text = mp_http_call_header(call, MP_STR("Retry-After"));
    uint64_t seconds = 0;
    size_t digits = 0;
    int64_t date;

    for (; digits < text.size && text.data[digits] >= '0' && text.data[digits] <= '9'; digits++)
        if (seconds < UINT32_MAX)
            seconds = seconds * 10 + (uint64_t)(text.data[digits] - '0');
    if (digits < text.size) {
        date = parse_date(text);
        seconds = date > now_wall_us / 1000000 ? (uint64_t)(date - now_wall_us / 1000000) : 0;
    }
    return seconds < UINT32_MAX / 1000 ? (uint32_t)seconds * 1000 : UINT32_MAX;
}

bool mp_http_call_date(const struct mp_http_call *call, int64_t *ret_wall_us)
{
    int64_t date = parse_date(mp_http_call_header(call, MP_STR("Date")));

    if (date < 0)
        return false;
    *ret_wall_us = date * 1000000;
    return true;
}

void mp_http_call_fini(struct mp_http_call *call)
{
    assert(!call->easy);
    mp_buf_fini(&call->body);
    mp_buf_fini(&call->head);
}

void mp_http_escape(struct mp_buf *buf, struct mp_str text, bool keep_slash)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '.' || c == '_' || c == '~' || (c == '/' && keep_slash);

        if (plain) {
            mp_buf_add_byte(buf, (char)c);
        } else {
            char three[3] = {'%', hex[c >> 4], hex[c & 15]};
            mp_buf_add(buf, three, 3);
        }
    }
}

/* --- life ----------------------------------------------------------------------------------- */

static void curl_init(void)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        need(NULL);
}

struct mp_http_client *mp_http_client_new(const struct mp_http_client_options *options)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct mp_http_client *client = mp_alloc(sizeof(*client));

    pthread_once(&once, curl_init);
    client->multi = need(curl_multi_init());
    curl_multi_setopt(
        client->multi, CURLMOPT_MAXCONNECTS,
        (long)(options->connections_max ? options->connections_max : CONNECTIONS_DEFAULT));
    if (options->ca_file && *options->ca_file) {
        size_t size = strlen(options->ca_file) + 1;

        client->ca_file = mp_alloc(size);
        memcpy(client->ca_file, options->ca_file, size);
    }
    return client;
}

void mp_http_client_free(struct mp_http_client *client)
{
    struct pipe_guard guard;

    if (!client)
        return;
    assert(client->under_way == 0);
    pipe_block(&guard);
    while (client->idle_count)
        curl_easy_cleanup(client->idle[--client->idle_count]);
    curl_multi_cleanup(client->multi);
    pipe_unblock(&guard);
    mp_free(client->ca_file);
    mp_free(client);
}
