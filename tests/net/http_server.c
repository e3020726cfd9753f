/* The HTTP server, spoken to byte by byte. */
#include "net/talk.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_uint calls;

/* Routes as the daemon has them, and an echo. */
static void handle(void *self, const struct mp_http_request *request, struct mp_http_response *ret)
{
    CHECK(self == &calls);
    atomic_fetch_add(&calls, 1);
    if (mp_str_eq(request->path, MP_STR("/echo"))) {
        ret->status = 200;
        ret->content_type = "text/plain";
        mp_buf_printf(&ret->body, "%.*s %.*s?%.*s ", MP_STR_ARG(request->method),
                      MP_STR_ARG(request->path), MP_STR_ARG(request->query));
        mp_buf_add_str(&ret->body, request->body);
    } else if (mp_str_eq(request->path, MP_STR("/read-slowly"))) {
        static char part[1 << 20];

        CHECK_INT(request->body.size, 900);
        ret->status = 200;
        for (int i = 0; i < 32; i++)
            mp_buf_add(&ret->body, part, sizeof(part));
    } else if (!mp_str_eq(request->method, MP_STR("GET"))) {
        ret->status = 501;
    } else if (mp_str_eq(request->path, MP_STR("/healthz")) && !request->query.size) {
        ret->status = 200;
        mp_buf_add_c(&ret->body, "ok poll=0.1s ago flush=never\n");
    } else if (mp_str_eq(request->path, MP_STR("/slow"))) {
        usleep(400000);
        ret->status = 200;
        mp_buf_add_c(&ret->body, "slow");
    } else if (mp_str_eq(request->path, MP_STR("/large"))) {
        ret->status = 200;
        for (int i = 0; i < 100000; i++)
            mp_buf_add_c(&ret->body, "0123456789");
    } else {
        ret->status = 404;
    }
}

static struct mp_http_server *open_server(uint32_t threads)
{
    struct mp_http_server_options options = {.address = "127.0.0.1",
                                             .threads = threads,
                                             .body_bytes_max = 1000,
                                             .handle = handle,
                                             .self = &calls};
    struct mp_http_server *server = NULL;
    struct mp_err err = {0};

    CHECK_OK(mp_http_server_open(&options, &err, &server), err);
    CHECK(mp_http_server_port(server) > 0);
    return server;
}

/* Reads one answer: head, then as many bytes as it promises (none for HEAD). */
static struct mp_str hear(int fd, bool head_only)
{
    static char text[1 << 21];
    size_t used = 0, want = 0;
    char *end;

    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        ssize_t got;

        text[used] = 0;
        end = strstr(text, "\r\n\r\n");
        if (end) {
            const char *length = strcasestr(text, "\r\nContent-Length: ");

            want = (size_t)(end + 4 - text);
            if (length && length < end && !head_only)
                want += strtoul(length + 18, NULL, 10);
            if (used >= want)
                break;
        }
        CHECK_INT(poll(&ready, 1, 60000), 1);
        got = recv(fd, text + used, sizeof(text) - 1 - used, 0);
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    CHECK_INT(used, want);
    text[used] = 0;
    return mp_str_n(text, used);
}

static bool has(struct mp_str text, const char *part)
{
    return strstr(text.data, part) != NULL; /* hear ends it with a NUL */
}

static struct mp_str ask(const struct mp_http_server *server, const char *text)
{
    int fd = dial(server);
    struct mp_str answer;

    say(fd, text);
    answer = hear(fd, strncmp(text, "HEAD", 4) == 0);
    close(fd);
    return answer;
}

static void answers_by_route(void)
{
    struct mp_http_server *server = open_server(2);
    struct mp_str answer;

    answer = ask(server, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(mp_str_starts(answer, MP_STR("HTTP/1.1 200 ")));
    CHECK(has(answer, "\r\n\r\nok poll=0.1s ago flush=never\n"));
    CHECK(!has(answer, "Content-Type"));
    answer = ask(server, "GET /healthz?x=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(mp_str_starts(answer, MP_STR("HTTP/1.1 404 ")));
    CHECK(has(answer, "Content-Length: 0\r\n"));
    answer = ask(server, "GET /healthz/ HTTP/1.0\r\n\r\n");
    CHECK(mp_str_starts(answer, MP_STR("HTTP/1.")));
    CHECK(has(answer, " 404 "));
    answer = ask(server, "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    CHECK(mp_str_starts(answer, MP_STR("HTTP/1.1 501 ")));
    answer = ask(server, "HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(mp_str_starts(answer, MP_STR("HTTP/1.1 200 ")));
    CHECK(has(answer, "Content-Length: 29\r\n"));
    answer = ask(server, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(answer.size > 1000000);
    mp_http_server_close(server);
}

static void hands_on_bodies_and_queries(void)
{
    struct mp_http_server *server = open_server(1);
    struct mp_str answer;
    char text[2048], body[1200];
    unsigned before;

    answer =
        ask(server, "PUT /echo?a=%20b&c HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
    CHECK(has(answer, "Content-Type: text/plain\r\n"));
    CHECK(has(answer, "\r\n\r\nPUT /echo?a=%20b&c hello"));
    answer = ask(server, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n");
    CHECK(has(answer, "\r\n\r\nPOST /echo? abcdefg"));
    memset(body, 'b', sizeof(body));
    before = atomic_load(&calls);
    snprintf(text, sizeof(text),
             "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n%.*s", 1001, body);
    answer = ask(server, text);
    CHECK(mp_str_starts(answer, MP_STR("HTTP/1.1 413 ")));
    snprintf(text, sizeof(text),
             "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n%.*s\r\n"
             "0\r\n\r\n",
             1001, body);
    answer = ask(server, text);
    CHECK(mp_str_starts(answer, MP_STR("HTTP/1.1 413 ")));
    CHECK_INT(atomic_load(&calls), before); /* the handler saw neither */
    snprintf(text, sizeof(text),
             "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n%.*s", 1000, body);
    answer = ask(server, text);
    CHECK(mp_str_starts(answer, MP_STR("HTTP/1.1 200 ")));
    mp_http_server_close(server);
}

static void keeps_a_connection(void)
{
    struct mp_http_server *server = open_server(1);
    int fd = dial(server);

    for (int i = 0; i < 50; i++) {
        say(fd, "GET /echo?i HTTP/1.1\r\nHost: x\r\n\r\n");
        CHECK(has(hear(fd, false), "\r\n\r\nGET /echo?i "));
    }
    say(fd, "GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    hear(fd, false);
    CHECK_INT(recv(fd, (char[1]){0}, 1, 0), 0);
    close(fd);
    mp_http_server_close(server);
}

static void slow_clients_hold_nobody_up(void)
{
    struct mp_http_server *server = open_server(1);
    int slow[40];

    for (int i = 0; i < 40; i++) {
        slow[i] = dial(server);
        say(slow[i],
            i % 2 ? "GET /heal" : "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab");
    }
    for (int i = 0; i < 20; i++)
        CHECK(has(ask(server, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), "\r\n\r\nok "));
    say(slow[1], "thz HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(has(hear(slow[1], false), "\r\n\r\nok "));
    say(slow[0], "cdefghi");
    CHECK(has(hear(slow[0], false), "\r\n\r\nPOST /echo? abcdefghi"));
    for (int i = 0; i < 40; i++)
        close(slow[i]);
    mp_http_server_close(server); /* half requests are no reason to wait */
}

static bool ended(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    return poll(&ready, 1, 0) == 1 && recv(fd, (char[1]){0}, 1, MSG_DONTWAIT) <= 0;
}

/* Of 20 connections two are kept free. */
static void idle_connections_make_room(void)
{
    struct mp_http_server_options options = {.address = "127.0.0.1",
                                             .connections_max = 20,
                                             .body_bytes_max = 1000,
                                             .handle = handle,
                                             .self = &calls};
    struct mp_http_server *server = NULL;
    struct mp_err err = {0};
    int busy, used, idle[100], count = 0;

    CHECK_OK(mp_http_server_open(&options, &err, &server), err);
    busy = dial(server);
    say(busy, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab");
    used = dial(server);
    for (int i = 0; i < 100; i++) {
        idle[i] = dial(server);
        if (i % 3 == 1)
            say(idle[i], "GET /healthz HTTP/1.1\r\nHost:"); /* its headers never end */
        say(used, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
        CHECK(has(hear(used, false), "\r\n\r\nok "));
        CHECK(has(ask(server, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), "\r\n\r\nok "));
    }
    for (int i = 0; i < 100; i++) {
        CHECK(i ? ended(idle[i - 1]) || !ended(idle[i]) : ended(idle[i])); /* the oldest went */
        count += !ended(idle[i]);
    }
    CHECK(count >= 14 && count <= 17);
    say(busy, "cd");
    CHECK(has(hear(busy, false), "\r\n\r\nPOST /echo? abcd"));
    for (int i = 0; i < 100; i++)
        close(idle[i]);
    close(used);
    close(busy);
    mp_http_server_close(server);
}

static void survives_nonsense(void)
{
    struct mp_http_server *server = open_server(1);
    static char long_line[200000];
    int fd;

    memset(long_line, 'a', sizeof(long_line) - 1);
    CHECK_STR(ask(server, "NONSENSE\r\n\r\n"), MP_STR("")); /* closed */
    fd = dial(server);
    if (send(fd, long_line, sizeof(long_line) - 1, MSG_NOSIGNAL) > 0)
        CHECK(hear(fd, false).size == 0 || true);
    close(fd);
    fd = dial(server);
    close(fd);
    CHECK(has(ask(server, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), "\r\n\r\nok "));
    mp_http_server_close(server);
}

/* --- the memory of bodies --- */

static atomic_uint_least64_t clock_us = 1000000;

static uint64_t stepped_mono_us(void *self)
{
    (void)self;
    return atomic_load(&clock_us);
}

static const struct mp_env stepped = {.now_mono_us = stepped_mono_us};

static struct mp_http_server *open_bounded(size_t bodies_bytes_max, uint32_t body_ms_max)
{
    struct mp_http_server_options options = {.address = "127.0.0.1",
                                             .threads = 2,
                                             .body_bytes_max = 1000,
                                             .bodies_bytes_max = bodies_bytes_max,
                                             .body_ms_max = body_ms_max,
                                             .env = &stepped,
                                             .handle = handle,
                                             .self = &calls};
    struct mp_http_server *server = NULL;
    struct mp_err err = {0};

    CHECK_OK(mp_http_server_open(&options, &err, &server), err);
    return server;
}

/* Sends the head of a POST and the first bytes of its body. */
static int begin(const struct mp_http_server *server, const char *path, int declared, int sent)
{
    static char letters[1000];
    char text[1200];
    int fd = dial(server);

    memset(letters, 'b', sizeof(letters));
    snprintf(text, sizeof(text), "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%.*s",
             path, declared, sent, letters);
    say(fd, text);
    return fd;
}

static void wait_for_bodies(const struct mp_http_server *server, size_t low, size_t high)
{
    for (int i = 0; i < 60000; i++) {
        size_t bytes = mp_http_server_bodies_bytes(server);

        if (bytes >= low && bytes <= high)
            return;
        usleep(1000);
    }
    test_fail(__FILE__, __LINE__, "bodies hold %zu bytes, not %zu to %zu",
              mp_http_server_bodies_bytes(server), low, high);
}

static void bodies_share_one_bound(void)
{
    struct mp_http_server *server = open_bounded(1500, 0);
    unsigned before = atomic_load(&calls);
    int slow = begin(server, "/echo", 1000, 990), other;
    struct mp_str answer;

    wait_for_bodies(server, 990, 1000);
    other = begin(server, "/echo", 700, 700);
    answer = hear(other, false);
    CHECK(mp_str_starts(answer, MP_STR("HTTP/1.1 503 ")));
    CHECK(has(answer, "\r\nRetry-After: 1\r\n"));
    CHECK_INT(atomic_load(&calls), before); /* the handler did not see it */
    wait_for_bodies(server, 990, 1000);
    say(other, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); /* what has no body goes on */
    CHECK(has(hear(other, false), "\r\n\r\nok "));
    say(slow, "0123456789");
    CHECK(mp_str_starts(hear(slow, false), MP_STR("HTTP/1.1 200 ")));
    wait_for_bodies(server, 0, 0);
    close(other);
    other = begin(server, "/echo", 700, 700);
    CHECK(mp_str_starts(hear(other, false), MP_STR("HTTP/1.1 200 ")));
    close(other);
    close(slow);
    other = begin(server, "/echo", 700, 600);
    wait_for_bodies(server, 600, 1000);
    close(other); /* gone in the middle */
    wait_for_bodies(server, 0, 0);
    mp_http_server_close(server);
}

static void a_body_that_trickles_ends(void)
{
    struct mp_http_server *server = open_bounded(1500, 1000);
    unsigned before = atomic_load(&calls);
    int fd = begin(server, "/echo", 10, 5);
    struct pollfd closed;

    wait_for_bodies(server, 5, 100);
    atomic_fetch_add(&clock_us, 1000000); /* the last moment */
    say(fd, "67890");
    CHECK(has(hear(fd, false), "\r\n\r\nPOST /echo? bbbbb67890"));
    close(fd);
    fd = begin(server, "/echo", 10, 5);
    wait_for_bodies(server, 5, 100);
    atomic_fetch_add(&clock_us, 1000001);
    say(fd, "6");
    closed = (struct pollfd){.fd = fd, .events = POLLIN};
    CHECK_INT(poll(&closed, 1, 60000), 1);
    CHECK(recv(fd, (char[1]){0}, 1, 0) <= 0);
    wait_for_bodies(server, 0, 0);
    CHECK_INT(atomic_load(&calls), before + 1);
    close(fd);
    mp_http_server_close(server);
}

static void slow_readers_hold_no_body(void)
{
    struct mp_http_server *server = open_bounded(1500, 0);
    unsigned before = atomic_load(&calls);
    int fd = begin(server, "/read-slowly", 900, 900); /* 32 MiB: more than sockets take */

    while (atomic_load(&calls) == before)
        usleep(1000);
    wait_for_bodies(server, 0, 0);
    close(fd);
    mp_http_server_close(server);
}

static void *close_it(void *server)
{
    mp_http_server_close(server);
    return NULL;
}

static void finishes_what_runs_when_closed(void)
{
    struct mp_http_server *server = open_server(2);
    unsigned before = atomic_load(&calls);
    pthread_t thread;
    int fd = dial(server);

    say(fd, "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
    while (atomic_load(&calls) == before)
        usleep(1000);
    CHECK_INT(pthread_create(&thread, NULL, close_it, server), 0);
    CHECK(has(hear(fd, false), "\r\n\r\nslow"));
    pthread_join(thread, NULL);
    close(fd);
    mp_http_server_close(NULL);
}

static void tells_why_it_cannot_listen(void)
{
    struct mp_http_server *server = open_server(1), *second = NULL;
    struct mp_http_server_options options = {.address = "127.0.0.1",
                                             .port = mp_http_server_port(server),
                                             .handle = handle,
                                             .self = &calls};
    struct mp_err err = {0};
    char want[64];

    CHECK_INT(mp_http_server_open(&options, &err, &second), MP_BAD_CONFIG);
    snprintf(want, sizeof(want), "listen on port %u: Address already in use", options.port);
    CHECK_STR(mp_str_c(err.text), mp_str_c(want));
    mp_http_server_close(server);
    options.address = "nowhere";
    CHECK_INT(mp_http_server_open(&options, &err, &second), MP_BAD_CONFIG);
    options.address = NULL; /* all interfaces, IPv4 among them */
    options.port = 0;
    CHECK_OK(mp_http_server_open(&options, &err, &second), err);
    CHECK(has(ask(second, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n"), "\r\n\r\nGET /echo? "));
    mp_http_server_close(second);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(answers_by_route),           TEST(hands_on_bodies_and_queries),
        TEST(keeps_a_connection),         TEST(slow_clients_hold_nobody_up),
        TEST(idle_connections_make_room), TEST(survives_nonsense),
        TEST(bodies_share_one_bound),     TEST(a_body_that_trickles_ends),
        TEST(slow_readers_hold_no_body),  TEST(finishes_what_runs_when_closed),
        TEST(tells_why_it_cannot_listen),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
