/* server/background/planner.c - tells PostgreSQL's planner how large our tables are.
 *
 * Plans are kept, and one made for a table that was nearly empty may read all of it when it has
 * grown. Autovacuum tells of growth, but late, and where it is on. ANALYZE makes plans anew and is
 * cheap here: it counts on a sample of pages and looks at no column (migrations/002_plans.sql).
 * Several servers take turns: who does not get the lock leaves it to the other.
 */
#include "server/background/background.h"

static const char analyze_grown[] =
    "DO 'DECLARE place record; BEGIN"
    " IF pg_try_advisory_xact_lock(4740875) THEN"
    " FOR place IN SELECT c.oid::regclass AS name FROM pg_class c"
    "  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = ''r''"
    "  AND left(c.relname, 4) = ''hog_''"
    "  AND pg_relation_size(c.oid) > (2 * c.relpages + 8)"
    "   * current_setting(''block_size'')::bigint"
    " LOOP EXECUTE format(''ANALYZE %s'', place.name); END LOOP;"
    " END IF; END'";

void mp_planner_refresh(struct mp_server *server)
{
    struct mp_sql *sql = NULL;
    struct mp_err err;
    enum mp_code code = mp_sql_take(server->pool, &err, &sql);

    if (!code) {
        mp_sql_script(sql, analyze_grown);
        code = mp_sql_sync(sql, &err);
    }
    if (code)
        mp_log(server->log, MP_LOG_WARN, "hoglake.background", "tell the planner: %s", err.text);
    mp_sql_give(server->pool, &sql);
}
