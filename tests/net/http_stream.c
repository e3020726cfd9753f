/* Answers of the HTTP server that come in pieces, and answers that nobody reads.
 *
 *     GET /stream/PIECES/BYTES[/BROKEN_AT[/MS]]   "<n>xxx...;" for n = 0 ... PIECES - 1
 *     GET /whole/BYTES                            one answer
 *     GET /ok
 */
#include "base/mem.h"
#include "net/talk.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { STATE_BYTES = 5000, ENDS = MP_HTTP_GONE + 1 };

static atomic_uint pieces_made, streams_open, ends[ENDS], cuts[ENDS];
static atomic_uint_least64_t bytes_done, clock_us = 1000000;

struct numbers {
    int at, pieces, bytes, broken_at, ms;
};

static void add_piece(struct mp_buf *body, int number, int bytes)
{
    size_t end = body->size + (size_t)bytes;

    mp_buf_printf(body, "<%d>", number);
    while (body->size < end - 1)
        mp_buf_add_byte(body, 'x');
    mp_buf_add_byte(body, ';');
}

static bool next(void *self, struct mp_buf *piece, bool *ret_last)
{
    struct numbers *numbers = self;

    CHECK_INT(piece->size, 0);
    atomic_fetch_add(&pieces_made, 1);
    if (numbers->ms)
        usleep((useconds_t)numbers->ms * 1000);
    if (numbers->at == numbers->broken_at)
        return false;
    add_piece(piece, numbers->at++, numbers->bytes);
    *ret_last = numbers->at == numbers->pieces;
    return true;
}

static void done(void *self, enum mp_http_end end, uint64_t bytes)
{
    atomic_fetch_add(&bytes_done, bytes);
    atomic_fetch_add(&ends[end], 1);
    atomic_fetch_sub(&streams_open, 1);
    mp_free(self);
}

static void cut(void *self, enum mp_http_end end)
{
    (void)self;
    atomic_fetch_add(&cuts[end], 1);
}

static void handle(void *self, const struct mp_http_request *request, struct mp_http_response *ret)
{
    struct numbers numbers = {.broken_at = -1};
    char path[100];

    (void)self;
    snprintf(path, sizeof(path), "%.*s", MP_STR_ARG(request->path));
    ret->status = 200;
    if (sscanf(path, "/stream/%d/%d/%d/%d", &numbers.pieces, &numbers.bytes, &numbers.broken_at,
               &numbers.ms) >= 2) {
        /* the first piece is empty: what is held is what next made */
        ret->stream = (struct mp_http_stream){next, done, mp_alloc(sizeof(numbers)), STATE_BYTES};
        *(struct numbers *)ret->stream.self = numbers;
        atomic_fetch_add(&streams_open, 1);
    } else if (sscanf(path, "/whole/%d", &numbers.bytes) == 1) {
        add_piece(&ret->body, 0, numbers.bytes);
    } else {
        mp_buf_add_c(&ret->body, "ok");
    }
}

static uint64_t stepped_mono_us(void *self)
{
    (void)self;
    return atomic_load(&clock_us);
}

static const struct mp_env stepped = {.now_mono_us = stepped_mono_us};

static struct mp_http_server *open_server(uint32_t workers, size_t answers_bytes_max)
{
    struct mp_http_server_options options = {.address = "127.0.0.1",
                                             .threads = 2,
                                             .body_bytes_max = 1000,
                                             .answers_bytes_max = answers_bytes_max,
                                             .answer_ms_max = 1000,
                                             .env = &stepped,
                                             .handle = handle,
                                             .workers = workers,
                                             .queue_max = 100,
                                             .cut = cut};
    struct mp_http_server *server = NULL;
    struct mp_err err = {0};

    atomic_store(&pieces_made, 0);
    atomic_store(&bytes_done, 0);
    for (int i = 0; i < ENDS; i++) {
        atomic_store(&ends[i], 0);
        atomic_store(&cuts[i], 0);
    }
    CHECK_OK(mp_http_server_open(&options, &err, &server), err);
    return server;
}

static void wait_for(const char *what, atomic_uint *count, unsigned want)
{
    for (int i = 0; i < 60000 && atomic_load(count) != want; i++)
        usleep(1000);
    if (atomic_load(count) != want)
        test_fail(__FILE__, __LINE__, "%s are %u, not %u", what, atomic_load(count), want);
}

static void wait_for_answers(const struct mp_http_server *server, size_t low, size_t high)
{
    size_t bytes = 0;

    for (int i = 0; i < 60000; i++) {
        bytes = mp_http_server_answers_bytes(server);
        if (bytes >= low && bytes <= high)
            return;
        usleep(1000);
    }
    test_fail(__FILE__, __LINE__, "answers hold %zu bytes, not %zu to %zu", bytes, low, high);
}

/* --- what a client reads --- */

struct heard {
    struct mp_buf head, body;
    bool whole; /* the last chunk came, or, without chunks, as much as was promised */
    bool closed;
};

static void heard_free(struct heard *heard)
{
    mp_buf_fini(&heard->head);
    mp_buf_fini(&heard->body);
}

/* False: the connection has ended. */
static bool more(int fd, struct mp_buf *raw)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    char part[65536];
    ssize_t got;

    CHECK_INT(poll(&ready, 1, 60000), 1);
    got = recv(fd, part, sizeof(part), 0);
    if (got <= 0)
        return false;
    mp_buf_add(raw, part, (size_t)got);
    return true;
}

/* Takes what is there of a chunked body apart. (RFC 9112, section 7.1) */
static void take_chunks(struct mp_buf *raw, struct heard *heard)
{
    size_t at = 0;

    while (!heard->whole) {
        const char *end = memmem(raw->data + at, raw->size - at, "\r\n", 2);
        size_t size, begin;

        if (!end)
            break;
        size = strtoul(raw->data + at, NULL, 16);
        begin = (size_t)(end + 2 - raw->data);
        if (begin + size + 2 > raw->size)
            break;
        mp_buf_add(&heard->body, raw->data + begin, size);
        at = begin + size + 2;
        heard->whole = !size;
    }
    memmove(raw->data, raw->data + at, raw->size - at);
    raw->size -= at;
}

static struct heard hear(int fd, bool head_only)
{
    struct heard heard = {.head = MP_BUF_INIT(100000), .body = MP_BUF_INIT(1u << 30)};
    struct mp_buf raw = MP_BUF_INIT(1u << 30);
    const char *end = NULL, *length;
    bool chunked;

    while (!end && more(fd, &raw))
        end = memmem(raw.data, raw.size, "\r\n\r\n", 4);
    CHECK(end);
    mp_buf_add(&heard.head, raw.data, (size_t)(end + 4 - raw.data));
    memmove(raw.data, end + 4, raw.size - heard.head.size);
    raw.size -= heard.head.size;
    chunked = strcasestr(mp_buf_c(&heard.head), "\r\nTransfer-Encoding: chunked\r\n");
    length = strcasestr(mp_buf_c(&heard.head), "\r\nContent-Length: ");
    CHECK(!chunked || !length);
    while (!head_only && !heard.whole && !heard.closed) {
        if (chunked)
            take_chunks(&raw, &heard);
        else if (length)
            heard.whole = raw.size == strtoul(length + 18, NULL, 10);
        if (!heard.whole)
            heard.closed = !more(fd, &raw);
    }
    if (head_only) /* nothing may come behind it */
        heard.closed = !more(fd, &raw);
    if (!chunked)
        mp_buf_add(&heard.body, raw.data, raw.size);
    else
        CHECK(heard.closed || !raw.size);
    mp_buf_fini(&raw);
    return heard;
}

static struct heard ask(const struct mp_http_server *server, const char *text)
{
    int fd = dial(server);
    struct heard heard;

    say(fd, text);
    heard = hear(fd, strncmp(text, "HEAD", 4) == 0);
    close(fd);
    return heard;
}

static void check_pieces(const struct heard *heard, int pieces, int bytes)
{
    struct mp_buf want = MP_BUF_INIT(1u << 30);

    for (int i = 0; i < pieces; i++)
        add_piece(&want, i, bytes);
    CHECK_INT(heard->body.size, want.size);
    CHECK(!want.size || memcmp(heard->body.data, want.data, want.size) == 0);
    mp_buf_fini(&want);
}

static void check_ok(const struct mp_http_server *server)
{
    struct heard heard = ask(server, "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n");

    CHECK_STR(mp_buf_str(&heard.body), MP_STR("ok"));
    heard_free(&heard);
}

/* --- tests --- */

static void a_stream_comes_whole_on_a_kept_connection(void)
{
    struct mp_http_server *server = open_server(1, 0);
    int fd = dial(server);

    for (int i = 0; i < 3; i++) {
        struct heard heard;

        say(fd, "GET /stream/20/100000 HTTP/1.1\r\nHost: x\r\n\r\n");
        heard = hear(fd, false);
        CHECK(heard.whole && !heard.closed);
        check_pieces(&heard, 20, 100000);
        heard_free(&heard);
    }
    wait_for("good ends", &ends[MP_HTTP_SENT], 3);
    CHECK_INT(atomic_load(&pieces_made), 3 * 20);
    CHECK_INT(atomic_load(&bytes_done), 3 * 2000000);
    wait_for_answers(server, 0, 0);
    for (int i = 0; i < ENDS; i++)
        CHECK_INT(atomic_load(&cuts[i]), 0);
    close(fd);
    mp_http_server_close(server);
}

static void a_broken_stream_is_seen(void)
{
    struct mp_http_server *server = open_server(1, 0);
    struct heard heard = ask(server, "GET /stream/20/1000/7 HTTP/1.1\r\nHost: x\r\n\r\n");

    CHECK(heard.closed && !heard.whole);
    check_pieces(&heard, 7, 1000);
    heard_free(&heard);
    wait_for("broken ends", &ends[MP_HTTP_BROKEN], 1);
    wait_for("cuts", &cuts[MP_HTTP_BROKEN], 1);
    CHECK_INT(atomic_load(&pieces_made), 8);
    CHECK_INT(atomic_load(&bytes_done), 7000);
    wait_for_answers(server, 0, 0);
    mp_http_server_close(server);
}

static void head_makes_no_more_pieces(void)
{
    struct mp_http_server *server = open_server(1, 0);
    struct heard heard = ask(server, "HEAD /stream/20/1000 HTTP/1.1\r\nHost: x\r\n\r\n");

    CHECK(mp_str_starts(mp_buf_str(&heard.head), MP_STR("HTTP/1.1 200 ")));
    CHECK(!strcasestr(mp_buf_c(&heard.head), "\r\nContent-Length:"));
    CHECK_INT(heard.body.size, 0);
    CHECK(heard.closed);
    heard_free(&heard);
    wait_for("good ends", &ends[MP_HTTP_SENT], 1);
    CHECK_INT(atomic_load(&pieces_made), 0);
    CHECK_INT(atomic_load(&bytes_done), 0);
    mp_http_server_close(server);
}

static void http_1_0_gets_it_without_chunks(void)
{
    struct mp_http_server *server = open_server(1, 0);
    struct heard heard = ask(server, "GET /stream/20/30000 HTTP/1.0\r\n\r\n");

    CHECK(heard.closed);
    CHECK(!strcasestr(mp_buf_c(&heard.head), "chunked"));
    check_pieces(&heard, 20, 30000);
    heard_free(&heard);
    wait_for("good ends", &ends[MP_HTTP_SENT], 1);
    mp_http_server_close(server);
}

/* Ten that do not read, one worker: each holds a piece, and nothing of the worker. */
static void slow_readers_hold_a_piece_each(void)
{
    enum { READERS = 10, PIECE = 200000, HELD = 2 * PIECE + STATE_BYTES };
    struct mp_http_server *server = open_server(1, 0);
    unsigned before, after;
    int fds[READERS];

    for (int i = 0; i < READERS; i++) {
        fds[i] = dial(server);
        say(fds[i], "GET /stream/100000/200000 HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    wait_for("streams", &streams_open, READERS);
    do { /* until no socket takes any more */
        before = atomic_load(&pieces_made);
        usleep(300000);
        after = atomic_load(&pieces_made);
    } while (before != after);
    CHECK(after < 1000); /* of a million */
    wait_for_answers(server, READERS * (PIECE + STATE_BYTES), READERS * HELD);
    CHECK_INT(mp_http_server_queued(server), 0);
    for (int i = 0; i < 20; i++)
        check_ok(server);
    for (int i = 0; i < READERS; i++)
        close(fds[i]);
    wait_for("ends of those who went", &ends[MP_HTTP_GONE], READERS);
    wait_for_answers(server, 0, 0);
    mp_http_server_close(server);
}

/* Reads on until the connection ends; whether the answer did, too, is nobody's to know. */
static void read_to_the_end(int fd)
{
    struct mp_buf raw = MP_BUF_INIT(1u << 30);

    while (more(fd, &raw))
        mp_buf_clear(&raw);
    mp_buf_fini(&raw);
    close(fd);
}

static void what_is_not_taken_in_time_ends(void)
{
    struct mp_http_server *server = open_server(1, 0);
    int fd = dial(server), whole = dial(server);
    struct pollfd begun[2] = {{.fd = fd, .events = POLLIN}, {.fd = whole, .events = POLLIN}};

    say(fd, "GET /stream/100000/200000 HTTP/1.1\r\nHost: x\r\n\r\n");
    say(whole, "GET /whole/50000000 HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for_answers(server, 50200000, 200000000);
    CHECK_INT(poll(&begun[0], 1, 60000), 1); /* the time of an answer counts from here on */
    CHECK_INT(poll(&begun[1], 1, 60000), 1);
    atomic_fetch_add(&clock_us, 1000000); /* the last moment */
    usleep(100000);
    CHECK_INT(atomic_load(&ends[MP_HTTP_LATE]), 0);
    atomic_fetch_add(&clock_us, 1);
    read_to_the_end(fd);
    read_to_the_end(whole);
    wait_for("late streams", &ends[MP_HTTP_LATE], 1);
    wait_for("late answers", &cuts[MP_HTTP_LATE], 2);
    wait_for_answers(server, 0, 0);
    check_ok(server);
    mp_http_server_close(server);
}

static void answers_share_one_bound(void)
{
    struct mp_http_server *server = open_server(2, 1000000);
    int fd = dial(server);
    struct heard heard;

    check_ok(server);
    say(fd, "GET /whole/50000000 HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for_answers(server, 50000000, 100000000);
    heard = ask(server, "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(mp_str_starts(mp_buf_str(&heard.head), MP_STR("HTTP/1.1 503 ")));
    CHECK(strstr(mp_buf_c(&heard.head), "\r\nRetry-After: 1\r\n"));
    heard_free(&heard);
    heard = hear(fd, false); /* the large one itself comes whole */
    CHECK(heard.whole);
    check_pieces(&heard, 1, 50000000);
    heard_free(&heard);
    wait_for_answers(server, 0, 0);
    check_ok(server);
    close(fd);
    mp_http_server_close(server);
}

static void *close_it(void *server)
{
    mp_http_server_close(server);
    return NULL;
}

static void streams_are_finished_when_closed(void)
{
    struct mp_http_server *server = open_server(2, 0);
    int fd = dial(server);
    struct heard heard;
    pthread_t thread;

    say(fd, "GET /stream/20/1000/-1/50 HTTP/1.1\r\nHost: x\r\n\r\n"); /* takes a second */
    wait_for("streams", &streams_open, 1);
    CHECK_INT(pthread_create(&thread, NULL, close_it, server), 0);
    heard = hear(fd, false);
    CHECK(heard.whole);
    check_pieces(&heard, 20, 1000);
    heard_free(&heard);
    pthread_join(thread, NULL);
    close(fd);
    CHECK_INT(atomic_load(&ends[MP_HTTP_SENT]), 1);
}

/* One whose pieces do not end, one that does not read, several that wait for a piece. */
static void streams_are_cut_when_the_wait_is_over(void)
{
    enum { OTHERS = 5 };
    struct mp_http_server *server = open_server(1, 0);
    int endless = dial(server), deaf = dial(server), others[OTHERS];
    struct heard heard;
    pthread_t thread;

    say(deaf, "GET /stream/100000/200000 HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for("streams", &streams_open, 1);
    say(endless, "GET /stream/1000000/10/-1/20 HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < OTHERS; i++) {
        others[i] = dial(server);
        say(others[i], "GET /stream/1000000/10/-1/20 HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    wait_for("streams", &streams_open, 2 + OTHERS);
    CHECK_INT(pthread_create(&thread, NULL, close_it, server), 0);
    heard = hear(endless, false);
    CHECK(heard.closed && !heard.whole && heard.body.size >= 10);
    heard_free(&heard);
    pthread_join(thread, NULL);
    CHECK_INT(atomic_load(&streams_open), 0);
    CHECK_INT(atomic_load(&ends[MP_HTTP_STOPPED]), 2 + OTHERS);
    close(endless);
    close(deaf);
    for (int i = 0; i < OTHERS; i++)
        close(others[i]);
}

static void *read_ten(void *server)
{
    for (int i = 0; i < 10; i++) {
        char text[100];
        struct heard heard;

        snprintf(text, sizeof(text), "GET /stream/%d/%d HTTP/1.1\r\nHost: x\r\n\r\n", 2 + i, 70000);
        heard = ask(server, text);
        CHECK(heard.whole);
        check_pieces(&heard, 2 + i, 70000);
        heard_free(&heard);
    }
    return NULL;
}

static void many_streams_run_at_once(void)
{
    enum { CLIENTS = 12 };
    struct mp_http_server *server = open_server(4, 0);
    pthread_t threads[CLIENTS];

    for (int i = 0; i < CLIENTS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, read_ten, server), 0);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    wait_for("good ends", &ends[MP_HTTP_SENT], 10 * CLIENTS);
    wait_for_answers(server, 0, 0);
    mp_http_server_close(server);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_stream_comes_whole_on_a_kept_connection),
        TEST(a_broken_stream_is_seen),
        TEST(head_makes_no_more_pieces),
        TEST(http_1_0_gets_it_without_chunks),
        TEST(slow_readers_hold_a_piece_each),
        TEST(what_is_not_taken_in_time_ends),
        TEST(answers_share_one_bound),
        TEST(streams_are_finished_when_closed),
        TEST(streams_are_cut_when_the_wait_is_over),
        TEST(many_streams_run_at_once),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
