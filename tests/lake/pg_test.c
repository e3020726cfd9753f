/* The libpq wrapper: what it does when the world does not answer, and, where MP_TEST_POSTGRES is
 * a connection string, that it says what a real server says.
 */
#include "harness/test.h"

#include "base/buf.h"
#include "net/pg.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct mp_env env;

static struct mp_pg_options options_of(const char *conninfo)
{
    return (struct mp_pg_options){mp_str_c(conninfo), "test", 400, 400};
}

/* A listening socket on a free port of this machine. */
static int listener(unsigned *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    CHECK(fd >= 0);
    CHECK(bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 5) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static void silent_server_is_a_timeout(void)
{
    struct mp_pg *pg;
    struct mp_err err;
    char conninfo[128];
    unsigned port;
    int fd = listener(&port);
    uint64_t start_us = mp_now_mono_us(&env);
    struct mp_pg_options options;

    snprintf(conninfo, sizeof(conninfo), "host=127.0.0.1 port=%u sslmode=disable user=u", port);
    options = options_of(conninfo);
    CHECK_INT(mp_pg_open(&options, &env, &err, &pg), MP_TIMEOUT);
    CHECK(err.retriable);
    CHECK(mp_now_mono_us(&env) - start_us < 20000000); /* of 400 ms; else for ever */
    close(fd);
    CHECK_INT(mp_pg_open(&options, &env, &err, &pg), MP_IO); /* nobody listens now */
    CHECK(err.retriable);
}

/* Says what PostgreSQL says to a client it lets in without a password, and not a word more. */
static void *greet(void *argument)
{
    static const unsigned char hello[] = {'R', 0, 0, 0, 8, 0,  0, 0, 0, /* AuthenticationOk */
                                          'Z', 0, 0, 0, 5, 'I'};        /* ReadyForQuery */
    int fd = accept(*(int *)argument, NULL, NULL);
    char bytes[1024];

    if (read(fd, bytes, sizeof(bytes)) > 0 && write(fd, hello, sizeof(hello)) > 0)
        while (read(fd, bytes, sizeof(bytes)) > 0)
            ;
    close(fd);
    return NULL;
}

static void server_that_falls_silent_is_a_timeout(void)
{
    struct mp_pg *pg;
    struct mp_err err;
    char conninfo[128];
    unsigned port;
    int fd = listener(&port);
    uint64_t start_us = mp_now_mono_us(&env);
    struct mp_pg_options options;
    pthread_t thread;

    snprintf(conninfo, sizeof(conninfo), "host=127.0.0.1 port=%u sslmode=disable user=u", port);
    options = options_of(conninfo);
    CHECK_INT(pthread_create(&thread, NULL, greet, &fd), 0);
    CHECK_INT(mp_pg_open(&options, &env, &err, &pg), MP_TIMEOUT);
    CHECK(mp_now_mono_us(&env) - start_us < 20000000);
    pthread_join(thread, NULL);
    close(fd);
}

static void broken_conninfo_is_not_quoted(void)
{
    static const char *const broken[] = {
        "host=x password=geheim nonsense",  "password='geheim",
        "postgresql://user:geheim@[::1/db", "postgresql://user:geheim@host:1/db?nonsense=geheim",
        "host=127.0.0.1 port=geheim",
    };

    for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
        struct mp_pg_options options = options_of(broken[i]);
        struct mp_pg *pg;
        struct mp_err err;
        enum mp_code code = mp_pg_open(&options, &env, &err, &pg);

        CHECK(code == MP_BAD_CONFIG || i == 4);
        CHECK(i == 4 || !strstr(err.text, "geheim")); /* a port is no secret */
    }
}

/* --- with a server --- */

static struct mp_pg *connect_real(void)
{
    struct mp_pg_options options = options_of(getenv("MP_TEST_POSTGRES"));
    struct mp_pg *pg;
    struct mp_err err;

    options.connect_ms_max = options.statement_ms_max = 60000;
    CHECK_OK(mp_pg_open(&options, &env, &err, &pg), err);
    return pg;
}

static void values_come_back(void)
{
    struct mp_pg *pg = connect_real();
    struct mp_pg_value values[3] = {
        {MP_STR("12"), MP_PG_INT8}, {MP_STR(""), MP_PG_TEXT}, {{NULL, 0}, MP_PG_UUID}};
    struct mp_err err;

    mp_pg_send(pg, "SELECT $1 + 1, $2, $3, current_setting('TimeZone')", values, 3);
    mp_pg_send(pg, "SELECT generate_series(1, 3)", NULL, 0);
    CHECK_OK(mp_pg_sync(pg, &err), err);
    CHECK_INT(mp_pg_answer(pg, 0).rows, 1);
    CHECK_INT(mp_pg_answer(pg, 0).columns, 4);
    CHECK_STR(mp_pg_cell(pg, 0, 0, 0), MP_STR("13"));
    CHECK_STR(mp_pg_cell(pg, 0, 0, 1), MP_STR(""));
    CHECK(mp_pg_cell(pg, 0, 0, 1).data);
    CHECK(!mp_pg_cell(pg, 0, 0, 2).data);
    CHECK_STR(mp_pg_cell(pg, 0, 0, 3), MP_STR("UTC"));
    CHECK_INT(mp_pg_answer(pg, 1).rows, 3);
    CHECK_STR(mp_pg_cell(pg, 1, 2, 0), MP_STR("3"));
    mp_pg_close(pg);
}

static void first_failure_ends_the_batch(void)
{
    struct mp_pg *pg = connect_real();
    struct mp_err err;

    mp_pg_send(pg, "CREATE TEMPORARY TABLE once (i INT PRIMARY KEY)", NULL, 0);
    mp_pg_send(pg, "INSERT INTO once VALUES (1), (2)", NULL, 0);
    CHECK_OK(mp_pg_sync(pg, &err), err);
    CHECK_INT(mp_pg_answer(pg, 1).changed, 2);
    mp_pg_send(pg, "INSERT INTO once VALUES (3)", NULL, 0);
    mp_pg_send(pg, "INSERT INTO once VALUES (1)", NULL, 0);
    mp_pg_send(pg, "SELECT nonsense", NULL, 0);
    CHECK_INT(mp_pg_sync(pg, &err), MP_REFUSED);
    CHECK_STR(mp_str_c(mp_pg_sqlstate(pg)), MP_STR("23505"));
    CHECK(mp_pg_alive(pg));
    mp_pg_send(pg, "SELECT count(*) FROM once", NULL, 0);
    CHECK_OK(mp_pg_sync(pg, &err), err);
    CHECK_STR(mp_pg_cell(pg, 0, 0, 0), MP_STR("2"));
    mp_pg_close(pg);
}

static void large_batches_do_not_lock_up(void)
{
    struct mp_pg *pg = connect_real();
    struct mp_buf text = MP_BUF_INIT((size_t)1 << 24);
    struct mp_pg_value value = {.type = MP_PG_TEXT};
    struct mp_err err;

    memset(mp_buf_reserve(&text, 1000000), 'x', 1000000);
    text.size = 1000000;
    value.text = mp_buf_str(&text);
    for (int i = 0; i < 30; i++) /* far more than both sockets hold, in both directions */
        mp_pg_send(pg, "SELECT $1 || $1", &value, 1);
    for (int i = 0; i < 3000; i++)
        mp_pg_send(pg, "SELECT 1", NULL, 0);
    CHECK_OK(mp_pg_sync(pg, &err), err);
    CHECK_INT(mp_pg_cell(pg, 29, 0, 0).size, 2000000);
    CHECK_STR(mp_pg_cell(pg, 3029, 0, 0), MP_STR("1"));
    mp_buf_fini(&text);
    mp_pg_close(pg);
}

static void slow_statement_is_cancelled_by_the_server(void)
{
    struct mp_pg_options options = options_of(getenv("MP_TEST_POSTGRES"));
    struct mp_pg *pg;
    struct mp_err err;

    options.connect_ms_max = 60000;
    options.statement_ms_max = 1000;
    CHECK_OK(mp_pg_open(&options, &env, &err, &pg), err);
    mp_pg_send(pg, "SELECT pg_sleep(20)", NULL, 0);
    CHECK(mp_pg_sync(pg, &err) != MP_OK);
    CHECK_STR(mp_str_c(mp_pg_sqlstate(pg)), MP_STR("57014"));
    CHECK(mp_pg_alive(pg));
    mp_pg_close(pg);
}

static void ended_backend_is_a_lost_connection(void)
{
    struct mp_pg *pg = connect_real();
    struct mp_err err;

    mp_pg_send(pg, "SELECT pg_terminate_backend(pg_backend_pid())", NULL, 0);
    CHECK_INT(mp_pg_sync(pg, &err), MP_IO);
    CHECK(err.retriable);
    CHECK(!mp_pg_alive(pg));
    CHECK_INT(mp_pg_sync(pg, &err), MP_IO);
    mp_pg_close(pg);
    mp_pg_close(NULL);
}

static void refused_logins_are_configuration(void)
{
    char conninfo[512];
    struct mp_pg_options options;
    struct mp_pg *pg;
    struct mp_err err;

    snprintf(conninfo, sizeof(conninfo), "%s dbname=nowhere_at_all password=geheim",
             getenv("MP_TEST_POSTGRES"));
    options = options_of(conninfo);
    options.connect_ms_max = 60000;
    CHECK_INT(mp_pg_open(&options, &env, &err, &pg), MP_BAD_CONFIG);
    CHECK(!err.retriable);
    CHECK(strstr(err.text, "nowhere_at_all") && !strstr(err.text, "geheim"));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(silent_server_is_a_timeout),
        TEST(server_that_falls_silent_is_a_timeout),
        TEST(broken_conninfo_is_not_quoted),
        TEST(values_come_back),
        TEST(first_failure_ends_the_batch),
        TEST(large_batches_do_not_lock_up),
        TEST(slow_statement_is_cancelled_by_the_server),
        TEST(ended_backend_is_a_lost_connection),
        TEST(refused_logins_are_configuration),
    };
    size_t without_server = 3;

    env = mp_env_real();
    return test_main(argc, argv, tests,
                     getenv("MP_TEST_POSTGRES") ? sizeof(tests) / sizeof(*tests) : without_server);
}
