/* net/http_server.c - see http_server.h. libmicrohttpd does the protocol.
 *
 * Its threads wait on many connections at once, so a slow client holds a descriptor and no
 * thread; a connection on which nothing moves for IDLE_S seconds is closed.
 *
 * Life of a request  uri_seen -> access (headers) -> access* (body pieces) -> access (end: the
 *                    handler runs) -> completed
 * With workers       ... -> access (end: suspended and queued) -> a worker runs the handler and
 *                    resumes -> access (the answer is there) -> completed
 * A stream           ... -> hand_out* -> (the piece is used up: suspended and queued) -> a worker
 *                    makes the next and resumes -> hand_out* ... -> completed
 * Close              no new requests -> those that are queued get their answers -> answers leave ->
 *                    cut: no more pieces, so nobody is suspended when the workers have ended
 * After  RFC 9110, sections 9.3.2 (HEAD) and 15.5.14 (413).
 */
#include "net/http_server.h"

#include "base/mem.h"
#include "net/http_idle.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <gnutls/abstract.h>
#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    IDLE_S = 30,
    CONNECTIONS_MAX = 1000,
    CONNECTIONS_SPARE = 10, /* one in so many is kept free, while others wait for their clients */
    HEADER_BYTES_MAX = 64 * 1024, /* a connection's memory in libmicrohttpd */
    CLOSE_WAIT_MS = 5000,
    BLOCK_BYTES = 32 * 1024, /* of a whole answer, copied at a time */
};

#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

enum phase { READING, QUEUED, ANSWERED };

struct link { /* a connection */
    struct mp_http_place *place;
    struct mp_http_pair *pair; /* NULL: plain HTTP */
};

struct request {
    struct mp_http_server *server;
    char *uri; /* as sent */
    const char *method;
    struct MHD_Connection *connection;
    struct mp_http_place *place; /* the connection's */
    struct mp_buf body;
    struct mp_http_response response; /* its body: the answer, or the piece that is being taken */
    size_t taken, held;               /* of the body; counted in answers_bytes */
    struct request *next;             /* in the queue */
    uint64_t headers_us, queued_us, answered_us, bytes_out;
    enum phase phase;
    enum mp_http_end end; /* MP_HTTP_SENT: nothing has gone wrong yet */
    bool last;            /* no piece follows */
    unsigned refusal;     /* status; the body is read and dropped, for the answer's sake. 0: none */
    bool started, running;
};

struct mp_http_server {
    struct mp_http_server_options options;
    struct MHD_Daemon *daemon;
    uint16_t port;
    struct mp_http_idle idle;
    struct mp_env env;
    atomic_size_t bodies_bytes, answers_bytes;
    atomic_int running; /* handlers called whose answers are not yet sent */
    int idle_fd;        /* eventfd, written when running falls to 0 */
    pthread_t *workers;
    uint32_t worker_count; /* started */
    pthread_mutex_t lock;  /* everything below */
    pthread_cond_t wake, answered;
    struct request *first, *last; /* the queue: requests, and streams that want their next piece */
    uint32_t queued, unanswered;  /* requests alone: in the queue, and with those at a worker */
    bool closing, cut;            /* no new requests; no new pieces either */
};

static struct link *open_link(struct mp_http_server *server, struct MHD_Connection *connection)
{
    struct link *link = mp_alloc(sizeof(*link));
    struct mp_http_tls *tls = server->options.tls;

    link->place = mp_http_idle_open(
        &server->idle,
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
    if (tls)
        link->pair = mp_http_tls_begin(
            tls,
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session);
    return link;
}

static void close_link(struct mp_http_server *server, struct link *link)
{
    mp_http_idle_close(&server->idle, link->place);
    if (link->pair)
        mp_http_tls_end(server->options.tls, link->pair);
    mp_free(link);
}

/* Started: before the handshake. Closed: the session has ended, or has never shaken hands. */
static void connection_seen(void *self, struct MHD_Connection *connection, void **link,
                            enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        *link = open_link(self, connection);
    else
        close_link(self, *link);
}

static void *uri_seen(void *self, const char *uri, struct MHD_Connection *connection)
{
    struct mp_http_server *server = self;
    struct request *request = mp_alloc(sizeof(*request));
    const struct link *link =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    size_t size = strlen(uri);

    request->uri = mp_alloc(size + 1);
    memcpy(request->uri, uri, size);
    request->body = MP_BUF_INIT(server->options.body_bytes_max);
    request->connection = connection;
    request->place = link->place;
    request->server = server;
    return request;
}

static void free_body(struct mp_http_server *server, struct request *request)
{
    atomic_fetch_sub(&server->bodies_bytes, request->body.capacity);
    mp_buf_fini(&request->body);
}

static void count_held(struct request *request, size_t bytes)
{
    atomic_fetch_add(&request->server->answers_bytes, bytes - request->held);
    request->held = bytes;
}

static void free_answer(struct request *request)
{
    mp_buf_fini(&request->response.body);
    count_held(request, 0);
}

static enum mp_http_end end_of(const struct request *request, enum MHD_RequestTerminationCode code)
{
    if (request->end)
        return request->end;
    switch (code) {
    case MHD_REQUEST_TERMINATED_COMPLETED_OK:
        return MP_HTTP_SENT;
    case MHD_REQUEST_TERMINATED_TIMEOUT_REACHED:
        return MP_HTTP_LATE;
    case MHD_REQUEST_TERMINATED_DAEMON_SHUTDOWN:
        return MP_HTTP_STOPPED;
    default:
        return MP_HTTP_GONE;
    }
}

static void completed(void *self, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode code)
{
    struct mp_http_server *server = self;
    struct request *request = *state;
    enum mp_http_end end;
    uint64_t one = 1;

    (void)connection;
    if (!request)
        return;
    end = end_of(request, code);
    if (request->response.stream.next)
        request->response.stream.done(request->response.stream.self, end, request->bytes_out);
    if (end && request->answered_us && server->options.cut)
        server->options.cut(server->options.self, end);
    if (request->running && atomic_fetch_sub(&server->running, 1) == 1 &&
        write(server->idle_fd, &one, sizeof(one)) < 0)
        assert(errno == EAGAIN); /* the counter is full: close sees it all the same */
    mp_http_idle_rest(&server->idle, request->place);
    free_body(server, request);
    free_answer(request);
    mp_free(request->uri);
    mp_free(request);
    *state = NULL;
}

struct mp_str mp_http_request_header(const struct mp_http_request *request, const char *name)
{
    struct MHD_Connection *connection = (struct MHD_Connection *)(uintptr_t)request->exchange;

    return mp_str_c(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name));
}

void mp_http_response_header(struct mp_http_response *response, const char *name, const char *value)
{
    struct mp_http_header *header;

    assert(response->header_count < MP_HTTP_HEADERS_MAX);
    header = &response->headers[response->header_count++];
    header->name = name;
    snprintf(header->value, sizeof(header->value), "%s", value);
}

/* --- answers --- */

static bool later_than(const struct mp_http_server *server, uint64_t began_us, uint32_t ms_max)
{
    return ms_max && mp_now_mono_us(&server->env) - began_us > (uint64_t)ms_max * 1000;
}

/* In order, behind what waits already. */
static void queue_up(struct mp_http_server *server, struct request *request)
{
    MHD_suspend_connection(request->connection);
    request->next = NULL;
    if (server->first)
        server->last->next = request;
    else
        server->first = request;
    server->last = request;
    pthread_cond_signal(&server->wake);
}

/* Has the next piece made. It was admitted with its request: no queue is too full for it. */
static bool enqueue_piece(struct mp_http_server *server, struct request *request)
{
    bool cut;

    pthread_mutex_lock(&server->lock);
    cut = server->cut;
    if (!cut)
        queue_up(server, request);
    pthread_mutex_unlock(&server->lock);
    return !cut;
}

/* libmicrohttpd asks for the next bytes. */
static ssize_t hand_out(void *self, uint64_t at, char *data, size_t room)
{
    struct request *request = self;
    struct mp_http_server *server = request->server;
    struct mp_buf *body = &request->response.body;
    size_t size = body->size - request->taken;

    (void)at;
    if (!request->end && later_than(server, request->answered_us, server->options.answer_ms_max))
        request->end = MP_HTTP_LATE; /* A4 */
    if (!request->end && !size && !request->last) {
        if (enqueue_piece(server, request))
            return 0;
        request->end = MP_HTTP_STOPPED;
    }
    if (request->end)
        return MHD_CONTENT_READER_END_WITH_ERROR; /* A6 */
    if (!size)
        return MHD_CONTENT_READER_END_OF_STREAM;
    size = size < room ? size : room;
    memcpy(data, body->data + request->taken, size);
    request->taken += size;
    request->bytes_out += size;
    if (request->last && request->taken == body->size) {
        request->taken = 0;
        free_answer(request); /* A2 */
    }
    return (ssize_t)size;
}

static struct MHD_Response *make_response(struct request *request)
{
    size_t size = request->response.body.size;

    if (!request->last)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, hand_out, request,
                                                 NULL);
    if (!size)
        return MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
    return MHD_create_response_from_callback(size, size < BLOCK_BYTES ? size : BLOCK_BYTES,
                                             hand_out, request, NULL);
}

static enum MHD_Result answer(struct request *request)
{
    const struct mp_http_response *from = &request->response;
    struct MHD_Response *response;
    enum MHD_Result result;

    assert(from->status >= 200 && from->status < 600);
    request->answered_us = mp_now_mono_us(&request->server->env);
    response = make_response(request);
    if (!response)
        return MHD_NO;
    if (!request->last && strcmp(request->method, "HEAD") == 0) /* A5; else a last chunk is sent */
        MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    if (from->content_type)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, from->content_type);
    for (uint32_t i = 0; i < from->header_count; i++)
        MHD_add_response_header(response, from->headers[i].name, from->headers[i].value);
    result = MHD_queue_response(request->connection, from->status, response);
    MHD_destroy_response(response);
    return result;
}

/* An answer was made in response: counts what it holds. */
static void made(struct request *request)
{
    const struct mp_http_response *response = &request->response;

    assert(!response->stream.next || request->server->options.workers);
    request->last = !response->stream.next;
    count_held(request, response->body.capacity + response->stream.bytes);
}

static void make_piece(struct request *request, bool cut)
{
    struct mp_http_stream *stream = &request->response.stream;
    struct mp_buf *piece = &request->response.body;

    mp_buf_clear(piece);
    request->taken = 0;
    if (cut)
        request->end = MP_HTTP_STOPPED;
    else if (!stream->next(stream->self, piece, &request->last))
        request->end = MP_HTTP_BROKEN;
    count_held(request, piece->capacity + stream->bytes);
}

static struct mp_http_request seen(const struct request *request)
{
    const char *query = strchr(request->uri, '?');
    size_t path_size = query ? (size_t)(query - request->uri) : strlen(request->uri);

    return (struct mp_http_request){
        .method = mp_str_c(strcmp(request->method, "HEAD") == 0 ? "GET" : request->method),
        .path = mp_str_n(request->uri, path_size),
        .query = query ? mp_str_c(query + 1) : MP_STR(""),
        .body = mp_buf_str(&request->body),
        .queued_us = request->queued_us,
        .exchange = (const struct mp_http_exchange *)request->connection,
    };
}

static void run_handler(struct mp_http_server *server, struct request *request)
{
    struct mp_http_request shown = seen(request);

    request->response = (struct mp_http_response){.status = 500, .body = {.max = SIZE_MAX / 4}};
    server->options.handle(server->options.self, &shown, &request->response);
    made(request);
    free_body(server, request); /* B4 */
}

/* An answer of the server's own. */
static enum MHD_Result refuse(struct mp_http_server *server, struct request *request,
                              unsigned status)
{
    struct mp_http_request shown = seen(request);

    request->response = (struct mp_http_response){.status = status, .body = {.max = SIZE_MAX / 4}};
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
        mp_http_response_header(&request->response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (server->options.refuse)
        server->options.refuse(server->options.self, &shown, &request->response);
    request->response.status = status;
    made(request);
    return answer(request);
}

static void *work(void *self)
{
    struct mp_http_server *server = self;

    pthread_mutex_lock(&server->lock);
    for (;;) {
        struct request *request = server->first;
        bool piece, cut = server->cut;

        if (!request && cut)
            break;
        if (!request) {
            pthread_cond_wait(&server->wake, &server->lock);
            continue;
        }
        server->first = request->next;
        piece = request->phase == ANSWERED;
        server->queued -= !piece;
        pthread_mutex_unlock(&server->lock);
        if (piece)
            make_piece(request, cut);
        else
            run_handler(server, request);
        request->phase = ANSWERED;
        MHD_resume_connection(request->connection);
        pthread_mutex_lock(&server->lock);
        if (!piece && --server->unanswered == 0)
            pthread_cond_signal(&server->answered);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

/* False: there is no room, or no time left. */
static bool enqueue(struct mp_http_server *server, struct request *request)
{
    size_t max = server->options.answers_bytes_max;
    bool room = !max || atomic_load(&server->answers_bytes) <= max; /* A3 */

    pthread_mutex_lock(&server->lock);
    room = room && !server->closing && server->queued < server->options.queue_max;
    if (room) {
        request->phase = QUEUED;
        queue_up(server, request);
        server->queued++;
        server->unanswered++;
    }
    pthread_mutex_unlock(&server->lock);
    return room;
}

static enum MHD_Result handle(struct mp_http_server *server, struct request *request)
{
    struct mp_http_request shown = seen(request);

    if (server->options.workers &&
        !(server->options.at_once && server->options.at_once(server->options.self, &shown))) {
        request->queued_us = mp_now_mono_us(&server->env);
        if (!request->running)
            atomic_fetch_add(&server->running, 1);
        request->running = true;
        return enqueue(server, request) ? MHD_YES
                                        : refuse(server, request, MHD_HTTP_SERVICE_UNAVAILABLE);
    }
    request->running = true;
    atomic_fetch_add(&server->running, 1);
    run_handler(server, request);
    return answer(request);
}

static bool declared_too_large(struct MHD_Connection *connection, size_t bytes_max)
{
    const char *length =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);

    return length && strtoull(length, NULL, 10) > bytes_max;
}

/* Keeps a piece of the body, or notes why it cannot be kept and frees what came before. */
static void take_piece(struct mp_http_server *server, struct request *request, const char *data,
                       size_t size)
{
    size_t before = request->body.capacity, grown, max = server->options.bodies_bytes_max;

    if (request->refusal)
        return;
    if (size > request->body.max - request->body.size) {
        request->refusal = MHD_HTTP_CONTENT_TOO_LARGE; /* B1 */
        free_body(server, request);
        return;
    }
    mp_buf_add(&request->body, data, size);
    grown = request->body.capacity - before;
    if (grown && atomic_fetch_add(&server->bodies_bytes, grown) + grown > max && max) {
        request->refusal = MHD_HTTP_SERVICE_UNAVAILABLE; /* B2 */
        free_body(server, request);
    }
}

static enum MHD_Result access_request(void *self, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version,
                                      const char *data, size_t *data_size, void **state)
{
    struct mp_http_server *server = self;
    struct request *request = *state;

    (void)url, (void)version;
    if (!request)
        return MHD_NO;
    if (request->phase == ANSWERED)
        return answer(request);
    if (!request->started) { /* the headers are there */
        request->started = true;
        mp_http_idle_busy(&server->idle, request->place);
        request->method = method;
        request->headers_us = mp_now_mono_us(&server->env);
        return declared_too_large(connection, request->body.max)
                   ? refuse(server, request, MHD_HTTP_CONTENT_TOO_LARGE)
                   : MHD_YES;
    }
    if (*data_size) {
        if (later_than(server, request->headers_us, server->options.body_ms_max))
            return MHD_NO; /* B3 */
        take_piece(server, request, data, *data_size);
        *data_size = 0;
        return MHD_YES;
    }
    return request->refusal ? refuse(server, request, request->refusal) : handle(server, request);
}

/* Gives a bound, listening socket. All interfaces: IPv6 with IPv4 inside it, else IPv4 alone. */
static enum mp_code listen_on(const char *address, uint16_t port, struct mp_err *err, int *ret)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV | AI_NUMERICHOST};
    struct addrinfo *found = NULL;
    const int on = 1, off = 0;
    char service[8];
    int fd = -1, fault = 0;

    snprintf(service, sizeof(service), "%u", (unsigned)port);
    if (getaddrinfo(address ? address : "::", service, &hints, &found) != 0)
        return mp_err_set(err, MP_BAD_CONFIG, "listen on %s: not an address", address);
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 && !address) { /* no IPv6 on this machine */
        freeaddrinfo(found);
        return listen_on("0.0.0.0", port, err, ret);
    }
    if (fd < 0)
        fault = errno;
    else if (found->ai_family == AF_INET6 && !address)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (!fault)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (!fault && (bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 256)))
        fault = errno;
    freeaddrinfo(found);
    if (fault) {
        if (fd >= 0)
            close(fd);
        mp_err_set(err, MP_BAD_CONFIG, "listen on port %u: %s", (unsigned)port, strerror(fault));
        if (err)
            err->sys = fault;
        return MP_BAD_CONFIG;
    }
    *ret = fd;
    return MP_OK;
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    struct sockaddr_in in;
    struct sockaddr_in6 in6;

    if (getsockname(fd, (struct sockaddr *)&address, &size))
        return 0;
    if (address.ss_family == AF_INET6) {
        memcpy(&in6, &address, sizeof(in6));
        return ntohs(in6.sin6_port);
    }
    memcpy(&in, &address, sizeof(in));
    return ntohs(in.sin_port);
}

/* From here on no request is taken; gives back when all those that were have their answers. */
static void answer_the_last(struct mp_http_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->closing = true;
    while (server->unanswered)
        pthread_cond_wait(&server->answered, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

static void wait_until_sent(struct mp_http_server *server)
{
    struct pollfd idle = {.fd = server->idle_fd, .events = POLLIN};

    while (atomic_load(&server->running) && poll(&idle, 1, CLOSE_WAIT_MS) > 0) {
        uint64_t count;

        if (read(server->idle_fd, &count, sizeof(count)) < 0)
            break;
    }
}

/* Streams that still want a piece are told that there is none. */
static void end_workers(struct mp_http_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->cut = true;
    pthread_cond_broadcast(&server->wake);
    pthread_mutex_unlock(&server->lock);
    for (uint32_t i = 0; i < server->worker_count; i++)
        pthread_join(server->workers[i], NULL);
}

static void release(struct mp_http_server *server)
{
    if (server->idle_fd >= 0)
        close(server->idle_fd);
    pthread_cond_destroy(&server->answered);
    pthread_cond_destroy(&server->wake);
    pthread_mutex_destroy(&server->lock);
    mp_http_idle_fini(&server->idle);
    mp_free(server->workers);
    mp_free(server);
}

/* The daemon has no certificate, its connections have: so nobody is asked. */
static int no_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                          gnutls_pcert_st **certs, unsigned *count, gnutls_ocsp_data_st **ocsp,
                          unsigned *ocsp_count, gnutls_privkey_t *key, unsigned *flags)
{
    (void)session, (void)info, (void)certs, (void)count, (void)ocsp, (void)ocsp_count, (void)key,
        (void)flags;
    return -1;
}

static struct MHD_Daemon *start_daemon(struct mp_http_server *server, int fd)
{
    const struct mp_http_server_options *options = &server->options;
    struct MHD_OptionItem items[12] = {
        {MHD_OPTION_LISTEN_SOCKET, fd, NULL},
        {MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)uri_seen, server},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)completed, server},
        {MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, options->connections_max, NULL},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)connection_seen, server},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, HEADER_BYTES_MAX, NULL},
    };
    unsigned flags = MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC;
    uint32_t count = 7;

    if (options->workers)
        flags |= MHD_ALLOW_SUSPEND_RESUME;
    if (options->threads > 1) /* a pool of one is refused */
        items[count++] =
            (struct MHD_OptionItem){MHD_OPTION_THREAD_POOL_SIZE, options->threads, NULL};
    if (options->tls) {
        flags |= MHD_USE_TLS;
        items[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_CERT_CALLBACK2, 0,
                                                 (void *)(uintptr_t)no_certificate};
        items[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0,
                                                 (void *)(uintptr_t)TLS_PRIORITIES};
    }
    items[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    return MHD_start_daemon(flags, 0, NULL, NULL, access_request, server, MHD_OPTION_ARRAY, items,
                            MHD_OPTION_END);
}

enum mp_code mp_http_server_open(const struct mp_http_server_options *options, struct mp_err *err,
                                 struct mp_http_server **ret)
{
    struct mp_http_server *server;
    int fd = -1;
    enum mp_code code = listen_on(options->address, options->port, err, &fd);

    if (code)
        return code;
    server = mp_alloc(sizeof(*server));
    server->options = *options;
    server->env = options->env ? *options->env : mp_env_real();
    if (!server->options.connections_max)
        server->options.connections_max = CONNECTIONS_MAX;
    mp_http_idle_init(&server->idle, server->options.connections_max -
                                         server->options.connections_max / CONNECTIONS_SPARE);
    server->port = port_of(fd);
    server->idle_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->wake, NULL);
    pthread_cond_init(&server->answered, NULL);
    server->workers = mp_alloc_array(options->workers + 1, sizeof(*server->workers));
    while (server->worker_count < options->workers &&
           pthread_create(&server->workers[server->worker_count], NULL, work, server) == 0)
        server->worker_count++;
    *ret = server; /* before there is a request whose handler looks at it */
    if (server->idle_fd >= 0 && server->worker_count == options->workers)
        server->daemon = start_daemon(server, fd);
    if (!server->daemon) {
        *ret = NULL;
        mp_err_set(err, MP_IO, "http server on port %u: %s", (unsigned)server->port,
                   errno ? strerror(errno) : "did not start");
        close(fd);
        end_workers(server);
        release(server);
        return MP_IO;
    }
    return MP_OK;
}

uint16_t mp_http_server_port(const struct mp_http_server *server)
{
    return server->port;
}

uint32_t mp_http_server_queued(struct mp_http_server *server)
{
    uint32_t queued;

    pthread_mutex_lock(&server->lock);
    queued = server->queued;
    pthread_mutex_unlock(&server->lock);
    return queued;
}

uint32_t mp_http_server_active(struct mp_http_server *server)
{
    uint32_t active;

    pthread_mutex_lock(&server->lock);
    active = server->unanswered - server->queued;
    pthread_mutex_unlock(&server->lock);
    return active;
}

size_t mp_http_server_bodies_bytes(const struct mp_http_server *server)
{
    return atomic_load(&server->bodies_bytes);
}

size_t mp_http_server_answers_bytes(const struct mp_http_server *server)
{
    return atomic_load(&server->answers_bytes);
}

void mp_http_server_close(struct mp_http_server *server)
{
    int fd;

    if (!server)
        return;
    fd = MHD_quiesce_daemon(server->daemon); /* no new connections from here */
    answer_the_last(server);
    wait_until_sent(server);
    end_workers(server);
    MHD_stop_daemon(server->daemon);
    if (fd != MHD_INVALID_SOCKET)
        close(fd);
    release(server);
}
