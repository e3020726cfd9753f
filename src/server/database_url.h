/* server/database_url.h - where the database is, from a JDBC URL or one of libpq's.
 *
 *     jdbc:postgresql://host:port,host:port/database?name=value&name=value
 *     jdbc:postgresql:database
 *     postgresql://user:password@host/database?name=value
 *
 * Both come out as one that libpq reads, with user and password in it: those of the URL, and where
 * it has none, those of the settings. Parameters of the JDBC driver are told in libpq's words;
 * those that tune the driver alone are left out, and one that nobody knows is refused, since it may
 * be what keeps a connection safe. Pure.
 *
 * After  pgjdbc documentation, "Initializing the Driver"; PostgreSQL manual, "Connection URIs".
 */
#ifndef MP_SERVER_DATABASE_URL_H
#define MP_SERVER_DATABASE_URL_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* MP_BAD_CONFIG: the text names HOGLAKE_JDBC_URL and what is wrong in it, never a password. */
enum mp_code mp_database_url(struct mp_arena *arena, struct mp_str url, struct mp_str user,
                             struct mp_str password, struct mp_err *err, struct mp_str *ret);

#endif
