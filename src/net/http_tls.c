/* net/http_tls.c - see http_tls.h. */
#include "net/http_tls.h"

#include "base/file.h"
#include "base/mem.h"

#include <assert.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <pthread.h>

enum { PEM_BYTES = 16 * 1024, PEM_BYTES_MAX = 1024 * 1024, CHAIN_MAX = 32, DIGEST_BYTES = 32 };

struct mp_http_pair {
    gnutls_certificate_credentials_t credentials;
    int64_t end_s;
    uint32_t holders; /* connections, and the holder below while it is the one of now */
};

struct mp_http_tls {
    const char *cert_file, *key_file;
    unsigned char seen[DIGEST_BYTES]; /* of the files at the last look */
    bool settled;                     /* what was seen is served, or its fault was told */
    pthread_mutex_t lock;             /* holders, and what follows */
    struct mp_http_pair *pair;        /* of now */
};

/* The two files as they are read, each with a NUL behind it. */
struct files {
    struct mp_buf cert, key;
};

static enum mp_code read_pem(const char *path, struct mp_err *err, struct mp_buf *ret)
{
    *ret = MP_BUF_INIT(PEM_BYTES_MAX);
    mp_buf_reserve(ret, PEM_BYTES); /* a key does not move, and so is wiped whole */
    if (!mp_file_read(path, ret))
        return mp_err_errno(err, MP_BAD_CONFIG, "read", path);
    if (ret->size + 1 >= PEM_BYTES_MAX)
        return mp_err_set(err, MP_BAD_CONFIG, "read %s: larger than %d bytes", path,
                          PEM_BYTES_MAX - 2);
    mp_buf_c(ret);
    return MP_OK;
}

static enum mp_code read_files(const struct mp_http_tls *tls, struct mp_err *err, struct files *ret)
{
    enum mp_code code = read_pem(tls->cert_file, err, &ret->cert);

    return code ? code : read_pem(tls->key_file, err, &ret->key);
}

static void wipe(struct files *files)
{
    if (files->key.data)
        explicit_bzero(files->key.data, files->key.capacity);
    mp_buf_fini(&files->key);
    mp_buf_fini(&files->cert);
}

/* fault: why they could not be read; "": they could. */
static void digest(const struct files *files, const char *fault, unsigned char ret[DIGEST_BYTES])
{
    gnutls_hash_hd_t hash;

    assert(gnutls_hash_get_len(GNUTLS_DIG_SHA256) == DIGEST_BYTES);
    memset(ret, 0, DIGEST_BYTES);
    if (gnutls_hash_init(&hash, GNUTLS_DIG_SHA256) < 0)
        return;
    gnutls_hash(hash, fault, strlen(fault) + 1);
    if (files->cert.size)
        gnutls_hash(hash, files->cert.data, files->cert.size);
    gnutls_hash(hash, "", 1);
    if (files->key.size)
        gnutls_hash(hash, files->key.data, files->key.size);
    gnutls_hash_deinit(hash, ret);
}

static gnutls_datum_t datum(const struct mp_buf *pem)
{
    return (gnutls_datum_t){(unsigned char *)pem->data, (unsigned)pem->size};
}

static enum mp_code check_cert(const char *path, const struct mp_buf *pem, struct mp_err *err)
{
    gnutls_x509_crt_t chain[CHAIN_MAX];
    unsigned count = CHAIN_MAX;
    gnutls_datum_t data = datum(pem);
    int fault = gnutls_x509_crt_list_import(chain, &count, &data, GNUTLS_X509_FMT_PEM,
                                            GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED);

    if (fault < 0)
        return mp_err_set(err, MP_BAD_CONFIG, "%s holds no certificate in PEM: %s", path,
                          gnutls_strerror(fault));
    for (unsigned i = 0; i < count; i++)
        gnutls_x509_crt_deinit(chain[i]);
    return MP_OK;
}

static enum mp_code check_key(const char *path, const struct mp_buf *pem, struct mp_err *err)
{
    gnutls_x509_privkey_t key;
    gnutls_datum_t data = datum(pem);
    int fault = gnutls_x509_privkey_init(&key);

    if (fault >= 0) {
        fault =
            gnutls_x509_privkey_import2(key, &data, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN);
        gnutls_x509_privkey_deinit(key);
    }
    return fault < 0 ? mp_err_set(err, MP_BAD_CONFIG,
                                  "%s holds no private key in PEM, or an encrypted one: %s", path,
                                  gnutls_strerror(fault))
                     : MP_OK;
}

/* Of the certificate that is sent first. */
static int64_t end_of(gnutls_certificate_credentials_t credentials)
{
    gnutls_x509_crt_t *chain;
    unsigned count;
    int64_t end_s;

    if (gnutls_certificate_get_x509_crt(credentials, 0, &chain, &count) < 0)
        return 0;
    assert(count);
    end_s = gnutls_x509_crt_get_expiration_time(chain[0]);
    for (unsigned i = 0; i < count; i++)
        gnutls_x509_crt_deinit(chain[i]);
    gnutls_free(chain);
    return end_s;
}

static void free_pair(struct mp_http_pair *pair)
{
    gnutls_certificate_free_credentials(pair->credentials);
    mp_free(pair);
}

static enum mp_code make_pair(const struct mp_http_tls *tls, const struct files *files,
                              struct mp_err *err, struct mp_http_pair **ret)
{
    gnutls_datum_t cert = datum(&files->cert), key = datum(&files->key);
    enum mp_code code = check_cert(tls->cert_file, &files->cert, err);
    struct mp_http_pair *pair;
    int fault;

    if (!code)
        code = check_key(tls->key_file, &files->key, err);
    if (code)
        return code;
    pair = mp_alloc(sizeof(*pair));
    pair->holders = 1;
    fault = gnutls_certificate_allocate_credentials(&pair->credentials);
    if (fault < 0) {
        mp_free(pair);
        return mp_err_set(err, MP_IO, "GnuTLS: %s", gnutls_strerror(fault));
    }
    fault =
        gnutls_certificate_set_x509_key_mem(pair->credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
    if (fault < 0) {
        free_pair(pair);
        return mp_err_set(err, MP_BAD_CONFIG, "%s is not the key of the certificate %s: %s",
                          tls->key_file, tls->cert_file, gnutls_strerror(fault));
    }
    pair->end_s = end_of(pair->credentials);
    *ret = pair;
    return MP_OK;
}

/* --- connections --- */

struct mp_http_pair *mp_http_tls_begin(struct mp_http_tls *tls, void *session)
{
    struct mp_http_pair *pair;

    pthread_mutex_lock(&tls->lock);
    pair = tls->pair;
    pair->holders++;
    pthread_mutex_unlock(&tls->lock);
    /* without memory for it the session has no certificate at all, and the handshake fails */
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, pair->credentials);
    return pair;
}

void mp_http_tls_end(struct mp_http_tls *tls, struct mp_http_pair *pair)
{
    bool last;

    pthread_mutex_lock(&tls->lock);
    assert(pair->holders);
    last = --pair->holders == 0;
    pthread_mutex_unlock(&tls->lock);
    if (last)
        free_pair(pair); /* T2 */
}

int64_t mp_http_tls_end_s(struct mp_http_tls *tls)
{
    int64_t end_s;

    pthread_mutex_lock(&tls->lock);
    end_s = tls->pair->end_s;
    pthread_mutex_unlock(&tls->lock);
    return end_s;
}

/* --- the files --- */

/* Takes pair. */
static void use(struct mp_http_tls *tls, struct mp_http_pair *pair)
{
    struct mp_http_pair *before;

    pthread_mutex_lock(&tls->lock);
    before = tls->pair;
    tls->pair = pair;
    pthread_mutex_unlock(&tls->lock);
    if (before)
        mp_http_tls_end(tls, before);
}

enum mp_code mp_http_tls_renew(struct mp_http_tls *tls, struct mp_err *err, bool *ret_renewed)
{
    struct mp_err fault = {0};
    struct files files = {0};
    struct mp_http_pair *pair;
    unsigned char now[DIGEST_BYTES];
    enum mp_code code = read_files(tls, &fault, &files);
    bool same;

    *ret_renewed = false;
    digest(&files, fault.text, now);
    same = memcmp(now, tls->seen, sizeof(now)) == 0;
    if (same && tls->settled) {
        code = MP_OK;
        goto out;
    }
    if (!code)
        code = make_pair(tls, &files, &fault, &pair);
    if (!code) {
        use(tls, pair);
        *ret_renewed = true;
    }
    memcpy(tls->seen, now, sizeof(now));
    tls->settled = !code || same;
    if (code && !same)
        code = MP_OK; /* T3: not yet */
    if (code && err)
        *err = fault;
out:
    wipe(&files);
    return code;
}

enum mp_code mp_http_tls_open(const char *cert_file, const char *key_file, struct mp_err *err,
                              struct mp_http_tls **ret)
{
    struct mp_http_tls *tls = mp_alloc(sizeof(*tls));
    struct files files = {0};
    enum mp_code code;

    tls->cert_file = cert_file;
    tls->key_file = key_file;
    pthread_mutex_init(&tls->lock, NULL);
    code = read_files(tls, err, &files);
    if (!code)
        code = make_pair(tls, &files, err, &tls->pair);
    if (!code) {
        digest(&files, "", tls->seen);
        tls->settled = true;
        *ret = tls;
    } else {
        mp_http_tls_close(tls);
    }
    wipe(&files);
    return code;
}

void mp_http_tls_close(struct mp_http_tls *tls)
{
    if (!tls)
        return;
    assert(!tls->pair || tls->pair->holders == 1);
    if (tls->pair)
        free_pair(tls->pair);
    pthread_mutex_destroy(&tls->lock);
    mp_free(tls);
}
