/* server/priv.h - inner door of the server room.
 *
 *     server      opens everything, turns an HTTP request into a call and a call into an answer
 *     route       the one table of routes
 *     call        a request on its way
 *     pages       lists of any length, a page at a time
 *     sql         connections, values, statements
 *     tx/         writing transactions: the catalog's lock, snapshots, commits
 *     routes/     one file a group of routes
 *     background/ what runs by the clock
 *     names, types, columns, layout, bounds, variant   rules, pure
 */
#ifndef MP_SERVER_PRIV_H
#define MP_SERVER_PRIV_H

#include "base/env.h"
#include "obs/log.h"
#include "server/call.h"
#include "server/metrics.h"
#include "server/server.h"
#include "server/settings.h"

#include <stdatomic.h>

enum mp_body { MP_BODY_NONE, MP_BODY_OPTIONAL, MP_BODY_JSON };

struct mp_route {
    const char *method, *pattern; /* "*": one part, lent to the handler */
    enum mp_body body;
    enum mp_code (*handle)(struct mp_call *call);
    bool at_once;    /* never waits: answered without a worker */
    bool attributed; /* author and message are required where the settings say so */
    bool open;       /* asks for no token */
};

/* The route of a request, its parts decoded into the call; NULL: there is none, and *ret_status is
 * 404, 405 or 400. */
const struct mp_route *mp_route_find(struct mp_call *call, struct mp_str method, struct mp_str path,
                                     unsigned *ret_status);
/* Whether the raw request belongs to a route that is answered at once. */
bool mp_route_at_once(struct mp_str method, struct mp_str path);
/* Decodes %XX and, in a query, '+'. False: broken, a NUL, or no UTF-8. */
bool mp_route_decode(struct mp_arena *arena, struct mp_str text, bool query, struct mp_str *ret);
enum mp_code mp_route_query(struct mp_call *call, struct mp_str query);

struct mp_commits;     /* tx/commit.h */
struct mp_catalog_ids; /* tx/catalog_ids.h */
struct mp_background;  /* background/background.h */

struct mp_server {
    const struct mp_server_settings *settings;
    const struct mp_env *env;
    struct mp_log *log;
    struct mp_server_metrics *metrics;
    struct mp_sql_pool *pool;
    struct mp_http_server *http;
    struct mp_http_tls *tls; /* NULL: plain HTTP */
    struct mp_catalog_ids *catalog_ids;
    struct mp_commits *commits;
    struct mp_background *background;
    atomic_bool database_up; /* as of the last probe, not older than some seconds */
    atomic_bool stopping;
};

/* Applies what is missing of migrations/, under a lock. MP_BAD_CONFIG: the schema is newer than
 * this program. */
enum mp_code mp_migrate(struct mp_sql_pool *pool, struct mp_err *err);

#endif
