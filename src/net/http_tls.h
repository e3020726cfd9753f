/* net/http_tls.h - a certificate and its key for the HTTP server, read from PEM files.
 *
 * What is wrong with them is found here and named, before anything listens: GnuTLS, which the
 * server uses, is asked whether it can read both and whether they belong together. A key that is
 * encrypted is refused. A certificate that has run out is not: the client is the one to judge.
 *
 * Memory  its own; the key is wiped by fini.
 */
#ifndef MP_NET_HTTP_TLS_H
#define MP_NET_HTTP_TLS_H

#include "base/buf.h"
#include "base/err.h"

struct mp_http_tls {
    struct mp_buf cert, key; /* PEM, each with a NUL behind it */
};

/* cert_file: the server's certificate, those between it and the root behind it. MP_BAD_CONFIG: the
 * text names the file. */
enum mp_code mp_http_tls_load(const char *cert_file, const char *key_file, struct mp_err *err,
                              struct mp_http_tls *ret);
/* No-op on zeroes. */
void mp_http_tls_fini(struct mp_http_tls *tls);

#endif
