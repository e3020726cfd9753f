/* net/http_tls.h - the HTTP server's certificate and key, from PEM files, and again from those when
 * they are renewed.
 *
 * What is wrong with them is found here and named: GnuTLS, which libmicrohttpd uses, is asked
 * whether it can read both and whether they belong together. A key that is encrypted is refused. A
 * certificate that has run out is not: the client is the one to judge.
 *
 * Life     open -> (renew | begin -> end a connection)* -> close
 * Always   T1 a pair that cannot serve is never taken into use; the one before goes on
 *          T2 a connection keeps the pair it began with, which is freed with the last that has it
 *          T3 a fault is told once, and not before two looks in a row have found the same: files
 *             that are being replaced one by one, or half written, are no fault
 * Memory   the key is held by GnuTLS alone; what was read of its file is wiped.
 * Threads  begin and end any; renew one at a time.
 *
 * Not chosen: libmicrohttpd's callbacks (MHD_OPTION_HTTPS_CERT_CALLBACK, _CALLBACK2) take no
 * pointer of ours, and GnuTLS uses what they give after they have returned. Behind the first it
 * frees nothing, so nobody knows when a pair has had its time; behind the second it can, where each
 * handshake is given copies. A session's own credentials (gnutls_credentials_set) cost nothing and
 * end with the connection, of which the server hears after the session is gone.
 */
#ifndef MP_NET_HTTP_TLS_H
#define MP_NET_HTTP_TLS_H

#include "base/err.h"

#include <stdint.h>

struct mp_http_tls;
struct mp_http_pair; /* a certificate with its key */

/* cert_file: the server's certificate, those between it and the root behind it. Borrows the names
 * until close. MP_BAD_CONFIG: the text names the file. */
enum mp_code mp_http_tls_open(const char *cert_file, const char *key_file, struct mp_err *err,
                              struct mp_http_tls **ret);
/* After the last connection. No-op on NULL. */
void mp_http_tls_close(struct mp_http_tls *tls);

/* Looks at the files; connections that begin from now on get what they hold. MP_BAD_CONFIG: T3, the
 * text names the file. */
enum mp_code mp_http_tls_renew(struct mp_http_tls *tls, struct mp_err *err, bool *ret_renewed);
/* When the certificate that is served runs out, in seconds since 1970. */
int64_t mp_http_tls_end_s(struct mp_http_tls *tls);

/* A connection begins: gives its session (a gnutls_session_t) the pair of now, before it shakes
 * hands. */
struct mp_http_pair *mp_http_tls_begin(struct mp_http_tls *tls, void *session);
/* Its session has ended. */
void mp_http_tls_end(struct mp_http_tls *tls, struct mp_http_pair *pair);

#endif
