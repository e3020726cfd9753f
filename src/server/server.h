/* server/server.h - the hoglake catalog service over PostgreSQL.
 *
 * Life     open (connects, brings the schema up to date, listens) -> ... -> close (takes no new
 *          work, finishes what runs)
 * Threads  its own; open and close are called by one.
 */
#ifndef MP_SERVER_SERVER_H
#define MP_SERVER_SERVER_H

#include "base/env.h"
#include "base/err.h"
#include "obs/log.h"
#include "server/settings.h"

struct mp_server;

/* Borrows settings, env and log until close. MP_BAD_CONFIG: the database refuses us, its schema is
 * newer than this program, or the port cannot be had. MP_IO: the database is not there (yet). */
enum mp_code mp_server_open(const struct mp_server_settings *settings, const struct mp_env *env,
                            struct mp_log *log, struct mp_err *err, struct mp_server **ret);
uint16_t mp_server_port(const struct mp_server *server);
/* No-op on NULL. */
void mp_server_close(struct mp_server *server);

#endif
