/* The HTTP server's certificate while its files change; GnuTLS makes them, and is the client. */
#include "net/talk.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

/* A pair is known by the day on which it runs out. */
#define END_S(pair) (2000000000 + (pair)*86400)

static struct {
    char cert[4096], key[4096];
} pairs[3];

static char cert_file[256], key_file[256];

static void make_pairs(void)
{
    const char *directory = test_directory();

    snprintf(cert_file, sizeof(cert_file), "%s/tls.crt", directory);
    snprintf(key_file, sizeof(key_file), "%s/tls.key", directory);
    for (int i = 0; i < 3; i++) {
        size_t cert_size = sizeof(pairs[i].cert), key_size = sizeof(pairs[i].key);
        gnutls_x509_privkey_t key;
        gnutls_x509_crt_t cert;

        CHECK(gnutls_x509_privkey_init(&key) >= 0 && gnutls_x509_crt_init(&cert) >= 0);
        CHECK(gnutls_x509_privkey_generate(
                  key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0) >= 0);
        CHECK(gnutls_x509_crt_set_version(cert, 3) >= 0 &&
              gnutls_x509_crt_set_serial(cert, &(char){(char)(i + 1)}, 1) >= 0 &&
              gnutls_x509_crt_set_activation_time(cert, 1000000000) >= 0 &&
              gnutls_x509_crt_set_expiration_time(cert, END_S(i)) >= 0 &&
              gnutls_x509_crt_set_key(cert, key) >= 0 &&
              gnutls_x509_crt_sign2(cert, cert, key, GNUTLS_DIG_SHA256, 0) >= 0);
        CHECK(gnutls_x509_crt_export(cert, GNUTLS_X509_FMT_PEM, pairs[i].cert, &cert_size) >= 0 &&
              gnutls_x509_privkey_export(key, GNUTLS_X509_FMT_PEM, pairs[i].key, &key_size) >= 0);
        gnutls_x509_crt_deinit(cert);
        gnutls_x509_privkey_deinit(key);
    }
}

static void write_file(const char *path, const char *text, size_t size)
{
    FILE *file = fopen(path, "we");

    CHECK(file);
    CHECK_INT(fwrite(text, 1, size, file), (int64_t)size);
    CHECK_INT(fclose(file), 0);
}

static void write_pair(int cert, int key)
{
    write_file(cert_file, pairs[cert].cert, strlen(pairs[cert].cert));
    write_file(key_file, pairs[key].key, strlen(pairs[key].key));
}

static void handle(void *self, const struct mp_http_request *request, struct mp_http_response *ret)
{
    (void)self, (void)request;
    ret->status = 200;
    mp_buf_add_c(&ret->body, "here");
}

static struct mp_http_tls *open_tls(void)
{
    struct mp_http_tls *tls = NULL;
    struct mp_err err = {0};

    if (!*cert_file)
        make_pairs();
    write_pair(0, 0);
    CHECK_OK(mp_http_tls_open(cert_file, key_file, &err, &tls), err);
    CHECK_INT(mp_http_tls_end_s(tls), END_S(0));
    return tls;
}

static struct mp_http_server *open_server(struct mp_http_tls *tls)
{
    struct mp_http_server_options options = {
        .address = "127.0.0.1", .threads = 2, .body_bytes_max = 1000, .tls = tls, .handle = handle};
    struct mp_http_server *server = NULL;
    struct mp_err err = {0};

    CHECK_OK(mp_http_server_open(&options, &err, &server), err);
    return server;
}

/* --- the client --- */

struct client {
    gnutls_certificate_credentials_t credentials;
    gnutls_session_t session;
    int fd;
    int64_t end_s; /* of the certificate it was shown */
};

static struct client shake_hands(const struct mp_http_server *server)
{
    struct client client = {.fd = dial(server)};
    const gnutls_datum_t *shown;
    unsigned count;
    gnutls_x509_crt_t cert;
    int done;

    CHECK(gnutls_certificate_allocate_credentials(&client.credentials) >= 0);
    CHECK(gnutls_init(&client.session, GNUTLS_CLIENT) >= 0);
    CHECK(gnutls_set_default_priority(client.session) >= 0);
    gnutls_credentials_set(client.session, GNUTLS_CRD_CERTIFICATE, client.credentials);
    gnutls_transport_set_int(client.session, client.fd);
    do
        done = gnutls_handshake(client.session);
    while (done < 0 && !gnutls_error_is_fatal(done));
    if (done < 0)
        test_fail(__FILE__, __LINE__, "handshake: %s", gnutls_strerror(done));
    shown = gnutls_certificate_get_peers(client.session, &count);
    CHECK(shown && count == 1);
    CHECK(gnutls_x509_crt_init(&cert) >= 0);
    CHECK(gnutls_x509_crt_import(cert, shown, GNUTLS_X509_FMT_DER) >= 0);
    client.end_s = gnutls_x509_crt_get_expiration_time(cert);
    gnutls_x509_crt_deinit(cert);
    return client;
}

static void ask(struct client *client)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    char text[1024] = "";
    size_t used = 0;

    CHECK_INT(gnutls_record_send(client->session, request, sizeof(request) - 1),
              sizeof(request) - 1);
    while (!strstr(text, "\r\n\r\nhere")) {
        ssize_t got = gnutls_record_recv(client->session, text + used, sizeof(text) - 1 - used);

        if (got < 0 && !gnutls_error_is_fatal((int)got))
            continue;
        CHECK(got > 0);
        used += (size_t)got;
        text[used] = 0;
    }
    CHECK(strncmp(text, "HTTP/1.1 200 ", 13) == 0);
}

static void leave(struct client *client)
{
    gnutls_deinit(client->session);
    gnutls_certificate_free_credentials(client->credentials);
    close(client->fd);
}

static int64_t shown(const struct mp_http_server *server)
{
    struct client client = shake_hands(server);

    leave(&client);
    return client.end_s;
}

/* --- the cases --- */

static bool renewed(struct mp_http_tls *tls)
{
    struct mp_err err = {0};
    bool renewed = false;

    CHECK_OK(mp_http_tls_renew(tls, &err, &renewed), err);
    return renewed;
}

static void a_renewed_pair_is_for_new_connections(void)
{
    struct mp_http_tls *tls = open_tls();
    struct mp_http_server *server = open_server(tls);
    struct client before = shake_hands(server), between;

    CHECK_INT(before.end_s, END_S(0));
    CHECK(!renewed(tls));
    write_pair(1, 1);
    CHECK_INT(shown(server), END_S(0)); /* nobody has looked */
    CHECK(renewed(tls));
    CHECK_INT(mp_http_tls_end_s(tls), END_S(1));
    CHECK(!renewed(tls));
    between = shake_hands(server);
    CHECK_INT(between.end_s, END_S(1));
    write_pair(2, 2);
    CHECK(renewed(tls));
    CHECK_INT(shown(server), END_S(2));
    ask(&before);
    ask(&between);
    leave(&between);
    ask(&before);
    leave(&before);
    mp_http_server_close(server);
    mp_http_tls_close(tls);
}

/* The first look at a fault says nothing, the second tells it, the third does not. */
static void check_told(struct mp_http_tls *tls, const char *text)
{
    struct mp_err err = {0};
    bool now = true;

    CHECK(!renewed(tls));
    CHECK_INT(mp_http_tls_renew(tls, &err, &now), MP_BAD_CONFIG);
    CHECK(!now);
    if (!strstr(err.text, text))
        test_fail(__FILE__, __LINE__, "\"%s\" is not in \"%s\"", text, err.text);
    CHECK(!renewed(tls));
    CHECK_INT(mp_http_tls_end_s(tls), END_S(0));
}

static void files_that_cannot_serve_are_told_once(void)
{
    struct mp_http_tls *tls = open_tls();
    struct mp_http_server *server = open_server(tls);

    write_pair(1, 0);
    check_told(tls, "is not the key of the certificate");
    write_pair(1, 2); /* another fault of the same words */
    check_told(tls, "is not the key of the certificate");
    write_file(cert_file, pairs[1].cert, strlen(pairs[1].cert) / 2);
    check_told(tls, "holds no certificate in PEM");
    write_pair(1, 1);
    write_file(key_file, "", 0);
    check_told(tls, "holds no private key in PEM");
    CHECK_INT(unlink(key_file), 0);
    check_told(tls, "No such file or directory");
    CHECK_INT(shown(server), END_S(0));
    write_pair(1, 0);
    CHECK(!renewed(tls)); /* one of two was written when somebody looked */
    write_pair(1, 1);
    CHECK(renewed(tls));
    CHECK_INT(shown(server), END_S(1));
    mp_http_server_close(server);
    mp_http_tls_close(tls);
}

static atomic_bool stop;
static atomic_uint seen[3];

static void *keep_coming(void *self)
{
    struct mp_http_server *server = self;

    while (!atomic_load(&stop)) {
        struct client kept = shake_hands(server), other = shake_hands(server);

        atomic_fetch_add(&seen[(other.end_s - END_S(0)) / 86400], 1);
        ask(&other);
        leave(&other);
        ask(&kept);
        leave(&kept);
    }
    return NULL;
}

static void handshakes_go_on_while_pairs_come_and_go(void)
{
    enum { CLIENTS = 4, ROUNDS = 60 };
    struct mp_http_tls *tls = open_tls();
    struct mp_http_server *server = open_server(tls);
    pthread_t threads[CLIENTS];

    for (int i = 0; i < CLIENTS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, keep_coming, server), 0);
    for (int i = 1; i <= ROUNDS; i++) {
        write_pair(i % 3, i % 3);
        CHECK(renewed(tls));
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000000}, NULL);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++)
        CHECK(atomic_load(&seen[i]) > 0);
    mp_http_server_close(server);
    mp_http_tls_close(tls);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_renewed_pair_is_for_new_connections),
        TEST(files_that_cannot_serve_are_told_once),
        TEST(handshakes_go_on_while_pairs_come_and_go),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
