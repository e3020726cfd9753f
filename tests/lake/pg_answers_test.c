/* What a catalog's database may answer although it should not: a scripted server of PostgreSQL's
 * protocol says it, in place of a pooler or a server that is something else.
 *
 * After  PostgreSQL documentation, "Message Formats"; "COMMIT" (a failed transaction is rolled
 * back, and the answer says ROLLBACK)
 */
#include "harness/test.h"

#include "lake/ducklake/db.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct mp_env env;

struct server {
    int listener;
    unsigned port;
    const char *commit_tag; /* what COMMIT is answered with */
    unsigned answers;       /* to one execution */
    pthread_t thread;
};

/* The client may have gone: it leaves at an answer that does not fit. */
static void say(int fd, char type, const char *body, size_t size)
{
    unsigned char bytes[64] = {(unsigned char)type, 0, 0, 0, (unsigned char)(4 + size)};

    memcpy(bytes + 5, body, size);
    send(fd, bytes, 5 + size, MSG_NOSIGNAL);
}

static bool take(int fd, void *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t got = read(fd, (char *)bytes + at, size - at);

        if (got <= 0)
            return false;
        at += (size_t)got;
    }
    return true;
}

/* The length that leads a body, then the body, with a NUL. */
static bool take_body(int fd, char body[4096])
{
    unsigned char head[4];
    size_t size;

    if (!take(fd, head, 4))
        return false;
    size = ((size_t)head[2] << 8 | head[3]) - 4;
    CHECK(size < 4096);
    body[size] = 0;
    return take(fd, body, size);
}

static void answer(const struct server *server, int fd, char type, const char *sql)
{
    const char *tag = strcmp(sql, "COMMIT") == 0 ? server->commit_tag : "ROLLBACK";

    if (type == 'P')
        say(fd, '1', "", 0);
    if (type == 'B')
        say(fd, '2', "", 0);
    if (type == 'D')
        say(fd, 'n', "", 0);
    for (unsigned i = 0; type == 'E' && i < server->answers; i++)
        say(fd, 'C', tag, strlen(tag) + 1);
    if (type == 'S')
        say(fd, 'Z', "I", 1);
}

/* One connection: everything is let in and answered without a row. */
static void *serve(void *of_any)
{
    const struct server *server = of_any;
    int fd = accept(server->listener, NULL, NULL);
    char body[4096], sql[4096] = "", type;

    CHECK(take_body(fd, body));
    say(fd, 'R', "\0\0\0\0", 4);
    say(fd, 'Z', "I", 1);
    while (take(fd, &type, 1) && take_body(fd, body)) {
        if (type == 'P') /* the statement's name, which is empty, stands first */
            snprintf(sql, sizeof(sql), "%s", body + 1);
        answer(server, fd, type, sql);
    }
    close(fd);
    return NULL;
}

static struct mp_db *open_at(struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    struct mp_db_options options = {.statement_ms_max = 60000, .connect_ms_max = 60000};
    struct mp_db *db;
    struct mp_err err;
    char catalog[128];

    server->listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(server->listener, (struct sockaddr *)&address, size) == 0);
    CHECK(listen(server->listener, 1) == 0);
    CHECK(getsockname(server->listener, (struct sockaddr *)&address, &size) == 0);
    CHECK_INT(pthread_create(&server->thread, NULL, serve, server), 0);
    snprintf(catalog, sizeof(catalog), "postgres:host=127.0.0.1 port=%u sslmode=disable user=u",
             ntohs(address.sin_port));
    options.catalog = mp_str_c(catalog);
    CHECK_OK(mp_db_new(&options, &env, &err, &db), err);
    return db;
}

static void end(struct server *server, struct mp_db *db)
{
    mp_db_free(db);
    pthread_join(server->thread, NULL);
    close(server->listener);
}

/* Gives the class of a transaction's COMMIT. */
static enum mp_db_class commit_answered(const char *tag, struct mp_err *err)
{
    struct server server = {.commit_tag = tag, .answers = 1};
    struct mp_db *db = open_at(&server);
    enum mp_db_class class;
    enum mp_code code;

    CHECK_OK(mp_db_ready(db, err), *err);
    mp_db_begin(db, MP_DB_READ);
    CHECK_OK(mp_db_sync(db, err), *err);
    code = mp_db_commit(db, err);
    class = mp_db_class(db);
    CHECK((code == MP_OK) == (class == MP_DB_OK));
    end(&server, db);
    return class;
}

static void commit_is_what_the_answer_says(void)
{
    struct mp_err err;

    CHECK_INT(commit_answered("COMMIT", &err), MP_DB_OK);
    CHECK_INT(commit_answered("ROLLBACK", &err), MP_DB_RACE); /* nothing was done: run it again */
    CHECK(err.retriable);
    CHECK(strstr(err.text, "ROLLBACK"));
    CHECK_INT(commit_answered("SET", &err), MP_DB_LOST); /* nobody knows what was done */
    CHECK(err.retriable);
    CHECK(strstr(err.text, "SET"));
}

static void answers_that_do_not_fit_the_statements_end_the_connection(void)
{
    static const unsigned answers[] = {0, 2, 3};

    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        struct server server = {.commit_tag = "COMMIT", .answers = answers[i]};
        struct mp_db *db = open_at(&server);
        struct mp_err err;

        CHECK(mp_db_ready(db, &err) != MP_OK); /* it sets the session up */
        CHECK(err.retriable);
        end(&server, db);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(commit_is_what_the_answer_says),
        TEST(answers_that_do_not_fit_the_statements_end_the_connection),
    };

    env = mp_env_real();
    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
