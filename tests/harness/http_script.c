#include "harness/http_script.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 512
#define HEAD_BYTES_MAX  (64 * 1024)
#define BODY_BYTES_MAX  (256u * 1024 * 1024)

struct connection {
    struct http_script *script;
    pthread_t thread;
    int fd;
    uint32_t number;
    struct mp_buf in; /* bytes received and not yet used */
};

struct record {
    struct http_record view;
    struct mp_buf head, body;
};

struct http_script {
    const struct http_step *steps;
    uint32_t step_count, step_next;
    void (*answer)(void *self, const struct http_record *request, struct http_answer *ret);
    void *self;

    pthread_mutex_t lock;
    struct record **records;
    uint32_t record_count, record_capacity;
    struct connection connections[CONNECTIONS_MAX];
    uint32_t connection_count;
    bool stopping;

    pthread_t acceptor;
    int listener, wake[2]; /* a byte in the pipe: stop */
    uint16_t port;
    char url[64];
};

/* Waits until fd can be read, the script stops (false) or wait_ms are over (true; -1: never). */
static bool wait_readable(struct http_script *script, int fd, int wait_ms)
{
    struct pollfd fds[2] = {{.fd = script->wake[0], .events = POLLIN},
                            {.fd = fd, .events = POLLIN}};

    while (poll(fds, fd < 0 ? 1 : 2, wait_ms) < 0)
        ;
    return !(fds[0].revents & POLLIN);
}

/* Waits until the client has closed; what it sent is not read. */
static void wait_gone(struct http_script *script, int fd)
{
    struct pollfd fds[2] = {{.fd = script->wake[0], .events = POLLIN},
                            {.fd = fd, .events = POLLRDHUP}};

    while (poll(fds, 2, -1) < 0)
        ;
}

static bool receive_more(struct connection *connection)
{
    char bytes[65536];
    ssize_t got;

    if (!wait_readable(connection->script, connection->fd, -1))
        return false;
    got = recv(connection->fd, bytes, sizeof(bytes), 0);
    if (got <= 0)
        return false;
    mp_buf_add(&connection->in, bytes, (size_t)got);
    return true;
}

static void send_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);

        if (sent <= 0)
            return;
        data += sent;
        size -= (size_t)sent;
    }
}

static void consume(struct mp_buf *in, size_t size)
{
    assert(size <= in->size);
    memmove(in->data, in->data + size, in->size - size);
    in->size -= size;
}

/* --- reading a request ---------------------------------------------------------------------- */

static bool read_head(struct connection *connection, struct record *record)
{
    const char *end;
    struct mp_str method, target;
    size_t line;

    do {
        if (connection->in.size > HEAD_BYTES_MAX ||
            (connection->in.size == 0 && !receive_more(connection)))
            return false;
        end = memmem(connection->in.data, connection->in.size, "\r\n\r\n", 4);
        if (!end && !receive_more(connection))
            return false;
    } while (!end);
    record->head = MP_BUF_INIT(HEAD_BYTES_MAX + 65536 + 8);
    mp_buf_add(&record->head, connection->in.data, (size_t)(end - connection->in.data) + 2);
    consume(&connection->in, record->head.size + 2);

    method.data = record->head.data;
    method.size = strcspn(mp_buf_c(&record->head), " ");
    method.data = record->head.data;
    target.data = method.data + method.size + 1;
    target.size = strcspn(target.data, " ");
    line = (size_t)(strchr(record->head.data, '\n') - record->head.data) + 1;
    record->view.method = method;
    record->view.target = target;
    record->view.head = (struct mp_str){record->head.data + line, record->head.size - line};
    record->view.connection = connection->number;
    return true;
}

static bool read_sized(struct connection *connection, struct record *record, size_t size)
{
    while (record->body.size < size) {
        size_t take = size - record->body.size;

        if (connection->in.size == 0 && !receive_more(connection))
            return false;
        take = take < connection->in.size ? take : connection->in.size;
        mp_buf_add(&record->body, connection->in.data, take);
        consume(&connection->in, take);
    }
    return true;
}

static bool read_body(struct connection *connection, struct record *record)
{
    struct mp_str length = http_record_header(&record->view, "Content-Length");
    struct mp_str expect = http_record_header(&record->view, "Expect");
    char digits[24];

    record->body = MP_BUF_INIT(BODY_BYTES_MAX);
    snprintf(digits, sizeof(digits), "%.*s", MP_STR_ARG(length));
    if (mp_str_eq_fold(expect, MP_STR("100-continue")))
        send_all(connection->fd, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    if (!read_sized(connection, record, strtoull(digits, NULL, 10)))
        return false;
    record->view.body = mp_buf_str(&record->body);
    return true;
}

/* --- answering ------------------------------------------------------------------------------ */

static void keep_record(struct http_script *script, struct record *record)
{
    if (script->record_count == script->record_capacity) {
        script->record_capacity = script->record_capacity ? script->record_capacity * 2 : 64;
        script->records =
            mp_realloc(script->records, script->record_capacity * sizeof(*script->records));
    }
    script->records[script->record_count++] = record;
}

/* Keeps the record and gives its answer, under the lock: requests are answered in the order in
 * which they are counted. */
static void decide(struct http_script *script, struct record *record, struct http_answer *ret)
{
    *ret = (struct http_answer){
        .status = 200,
        .headers = MP_BUF_INIT(HEAD_BYTES_MAX),
        .body = MP_BUF_INIT(BODY_BYTES_MAX),
    };
    pthread_mutex_lock(&script->lock);
    keep_record(script, record);
    if (script->step_next < script->step_count) {
        const struct http_step *step = &script->steps[script->step_next++];

        ret->status = step->status ? step->status : 200;
        mp_buf_add_c(&ret->headers, step->headers ? step->headers : "");
        mp_buf_add_c(&ret->body, step->body ? step->body : "");
        ret->delay_ms = step->delay_ms;
        ret->fault = step->fault;
    } else if (script->answer) {
        script->answer(script->self, &record->view, ret);
    }
    pthread_mutex_unlock(&script->lock);
}

static bool next_is_early(struct http_script *script)
{
    bool early;

    pthread_mutex_lock(&script->lock);
    early = script->step_next < script->step_count && script->steps[script->step_next].early;
    pthread_mutex_unlock(&script->lock);
    return early;
}

/* False: the connection is at its end. */
static bool send_answer(struct connection *connection, const struct record *record,
                        struct http_answer *answer, bool early)
{
    static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    struct http_script *script = connection->script;
    struct mp_buf out = MP_BUF_INIT(HEAD_BYTES_MAX + BODY_BYTES_MAX);
    bool has_length = answer->status >= 200 && answer->status != 204 && answer->status != 304;
    bool has_body = has_length && !mp_str_eq(record->view.method, MP_STR("HEAD"));
    bool go_on = !early;
    size_t head_size;

    if (answer->delay_ms && !wait_readable(script, -1, (int)answer->delay_ms))
        go_on = false;
    mp_buf_printf(&out, "HTTP/1.1 %u Scripted\r\n", answer->status);
    /* a HEAD answer may state the length of what it does not send */
    if (has_length &&
        !memmem(mp_buf_c(&answer->headers), answer->headers.size, "Content-Length", 14))
        mp_buf_printf(&out, "Content-Length: %zu\r\n", answer->body.size);
    if (early)
        mp_buf_add_c(&out, "Connection: close\r\n");
    mp_buf_add_str(&out, mp_buf_str(&answer->headers));
    mp_buf_add_c(&out, "\r\n");
    head_size = out.size;
    if (has_body)
        mp_buf_add_str(&out, mp_buf_str(&answer->body));
    switch (answer->fault) {
    case HTTP_NO_FAULT:
        send_all(connection->fd, out.data, out.size);
        if (early) /* closed at once it would be a reset, which overtakes the answer */
            wait_gone(script, connection->fd);
        break;
    case HTTP_CLOSE_AFTER:
        send_all(connection->fd, out.data, out.size);
        go_on = false;
        break;
    case HTTP_RESET:
        setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        go_on = false;
        break;
    case HTTP_CUT_BEFORE:
        go_on = false;
        break;
    case HTTP_CUT_HEAD:
        send_all(connection->fd, out.data, head_size / 2);
        go_on = false;
        break;
    case HTTP_CUT_BODY:
        send_all(connection->fd, out.data, head_size + (out.size - head_size) / 2);
        go_on = false;
        break;
    case HTTP_STALL_BODY:
        send_all(connection->fd, out.data, head_size + (out.size - head_size) / 2);
        wait_readable(script, -1, -1);
        go_on = false;
        break;
    case HTTP_STALL:
        wait_readable(script, -1, -1);
        go_on = false;
        break;
    }
    mp_buf_fini(&out);
    return go_on;
}

static void *serve(void *self)
{
    struct connection *connection = self;
    bool go_on = true;

    connection->in = MP_BUF_INIT(HEAD_BYTES_MAX + BODY_BYTES_MAX);
    while (go_on) {
        struct record *record = mp_alloc(sizeof(*record));
        struct http_answer answer;
        bool early = false;

        go_on = read_head(connection, record);
        if (go_on) {
            early = next_is_early(connection->script);
            go_on = early || read_body(connection, record);
        }
        if (!go_on) {
            mp_buf_fini(&record->head);
            mp_buf_fini(&record->body);
            mp_free(record);
            break;
        }
        decide(connection->script, record, &answer);
        go_on = send_answer(connection, record, &answer, early);
        mp_buf_fini(&answer.headers);
        mp_buf_fini(&answer.body);
    }
    mp_buf_fini(&connection->in);
    pthread_mutex_lock(&connection->script->lock);
    close(connection->fd);
    connection->fd = -1;
    pthread_mutex_unlock(&connection->script->lock);
    return NULL;
}

static void *accept_all(void *self)
{
    struct http_script *script = self;

    while (wait_readable(script, script->listener, -1)) {
        int fd = accept(script->listener, NULL, NULL);
        struct connection *connection;

        if (fd < 0)
            continue;
        pthread_mutex_lock(&script->lock);
        assert(script->connection_count < CONNECTIONS_MAX);
        connection = &script->connections[script->connection_count];
        *connection =
            (struct connection){.script = script, .fd = fd, .number = script->connection_count++};
        pthread_create(&connection->thread, NULL, serve, connection);
        pthread_mutex_unlock(&script->lock);
    }
    return NULL;
}

/* --- life ----------------------------------------------------------------------------------- */

struct http_script *http_script_start(const struct http_step *steps, uint32_t step_count,
                                      void (*answer)(void *self, const struct http_record *request,
                                                     struct http_answer *ret),
                                      void *self)
{
    struct http_script *script = mp_alloc(sizeof(*script));
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    int failed;

    script->steps = steps;
    script->step_count = step_count;
    script->answer = answer;
    script->self = self;
    pthread_mutex_init(&script->lock, NULL);
    script->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    failed = pipe(script->wake);
    failed |= bind(script->listener, (struct sockaddr *)&address, sizeof(address));
    failed |= listen(script->listener, 128);
    failed |= getsockname(script->listener, (struct sockaddr *)&address, &size);
    assert(!failed);
    (void)failed;
    script->port = ntohs(address.sin_port);
    snprintf(script->url, sizeof(script->url), "http://127.0.0.1:%u", script->port);
    pthread_create(&script->acceptor, NULL, accept_all, script);
    return script;
}

void http_script_stop(struct http_script *script)
{
    ssize_t wrote;

    if (!script)
        return;
    wrote = write(script->wake[1], "", 1);
    assert(wrote == 1);
    (void)wrote;
    pthread_join(script->acceptor, NULL);
    for (uint32_t i = 0; i < script->connection_count; i++) {
        pthread_mutex_lock(&script->lock);
        if (script->connections[i].fd >= 0)
            shutdown(script->connections[i].fd, SHUT_RDWR);
        pthread_mutex_unlock(&script->lock);
        pthread_join(script->connections[i].thread, NULL);
    }
    for (uint32_t i = 0; i < script->record_count; i++) {
        mp_buf_fini(&script->records[i]->head);
        mp_buf_fini(&script->records[i]->body);
        mp_free(script->records[i]);
    }
    mp_free(script->records);
    close(script->listener);
    close(script->wake[0]);
    close(script->wake[1]);
    pthread_mutex_destroy(&script->lock);
    mp_free(script);
}

uint16_t http_script_port(const struct http_script *script)
{
    return script->port;
}

const char *http_script_url(const struct http_script *script)
{
    return script->url;
}

uint32_t http_script_count(struct http_script *script)
{
    uint32_t count;

    pthread_mutex_lock(&script->lock);
    count = script->record_count;
    pthread_mutex_unlock(&script->lock);
    return count;
}

uint32_t http_script_connections(struct http_script *script)
{
    uint32_t count;

    pthread_mutex_lock(&script->lock);
    count = script->connection_count;
    pthread_mutex_unlock(&script->lock);
    return count;
}

const struct http_record *http_script_request(struct http_script *script, uint32_t index)
{
    const struct http_record *record;

    pthread_mutex_lock(&script->lock);
    assert(index < script->record_count);
    record = &script->records[index]->view;
    pthread_mutex_unlock(&script->lock);
    return record;
}

struct mp_str http_record_header(const struct http_record *record, const char *name)
{
    struct mp_str want = mp_str_c(name), rest = record->head;

    while (rest.size > 0) {
        const char *end = memmem(rest.data, rest.size, "\r\n", 2);
        size_t size = end ? (size_t)(end - rest.data) : rest.size;

        if (size > want.size && rest.data[want.size] == ':' &&
            mp_str_eq_fold((struct mp_str){rest.data, want.size}, want)) {
            size_t at = want.size + 1;

            while (at < size && rest.data[at] == ' ')
                at++;
            return (struct mp_str){rest.data + at, size - at};
        }
        rest = end ? (struct mp_str){end + 2, rest.size - size - 2} : (struct mp_str){NULL, 0};
    }
    return (struct mp_str){NULL, 0};
}
