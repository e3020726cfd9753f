/* net/http_tls.c - see http_tls.h. */
#include "net/http_tls.h"

#include "base/file.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

enum { PEM_BYTES_MAX = 1024 * 1024, CHAIN_MAX = 32 };

static enum mp_code read_pem(const char *path, struct mp_err *err, struct mp_buf *ret)
{
    if (!mp_file_read(path, ret))
        return mp_err_errno(err, MP_BAD_CONFIG, "read", path);
    if (ret->size + 1 >= PEM_BYTES_MAX)
        return mp_err_set(err, MP_BAD_CONFIG, "read %s: larger than %d bytes", path,
                          PEM_BYTES_MAX - 2);
    mp_buf_c(ret);
    return MP_OK;
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

static enum mp_code check_pair(const char *cert_file, const char *key_file,
                               const struct mp_http_tls *tls, struct mp_err *err)
{
    gnutls_certificate_credentials_t credentials;
    gnutls_datum_t cert = datum(&tls->cert), key = datum(&tls->key);
    int fault = gnutls_certificate_allocate_credentials(&credentials);

    if (fault >= 0) {
        fault = gnutls_certificate_set_x509_key_mem(credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
        gnutls_certificate_free_credentials(credentials);
    }
    return fault < 0 ? mp_err_set(err, MP_BAD_CONFIG, "%s is not the key of the certificate %s: %s",
                                  key_file, cert_file, gnutls_strerror(fault))
                     : MP_OK;
}

enum mp_code mp_http_tls_load(const char *cert_file, const char *key_file, struct mp_err *err,
                              struct mp_http_tls *ret)
{
    struct mp_http_tls tls = {MP_BUF_INIT(PEM_BYTES_MAX), MP_BUF_INIT(PEM_BYTES_MAX)};
    enum mp_code code = read_pem(cert_file, err, &tls.cert);

    if (!code)
        code = read_pem(key_file, err, &tls.key);
    if (!code)
        code = check_cert(cert_file, &tls.cert, err);
    if (!code)
        code = check_key(key_file, &tls.key, err);
    if (!code)
        code = check_pair(cert_file, key_file, &tls, err);
    if (code)
        mp_http_tls_fini(&tls);
    else
        *ret = tls;
    return code;
}

void mp_http_tls_fini(struct mp_http_tls *tls)
{
    if (tls->key.data)
        explicit_bzero(tls->key.data, tls->key.capacity);
    mp_buf_fini(&tls->key);
    mp_buf_fini(&tls->cert);
}
