/* server/routes/health.c - what PostgreSQL says of itself, and what an operator has to act on.
 *
 * Each part is asked for by itself: one that privileges hide becomes a blind spot, and the others
 * are told all the same. A role with pg_monitor sees everything.
 */
#include "server/routes/routes.h"

struct part {
    const char *name;
    const char *look;     /* one row: the part as JSON, and whether some of it was hidden */
    const char *findings; /* rows of JSON; NULL: none */
    const char *unseen;   /* in place of a part that is hidden */
};

#define WAL_AT                                                                                     \
    "(SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()"                          \
    " ELSE pg_current_wal_lsn() END AS lsn) w"

static const struct part parts[] = {
    {
        "server",
        "SELECT json_build_object('version', current_setting('server_version'),"
        " 'size_bytes', pg_database_size(d.oid),"
        " 'synchronous_commit', current_setting('synchronous_commit'),"
        " 'fsync', current_setting('fsync'), 'transaction_id_age', age(d.datfrozenxid)), false"
        " FROM pg_database d WHERE d.datname = current_database()",
        "SELECT json_build_object('kind', 'transaction_id_age', 'object', d.datname, 'detail',"
        "  format('the oldest row that is not frozen is %s transactions old; writing stops near"
        " 2100000000: find out what keeps vacuum from it', age(d.datfrozenxid)))"
        " FROM pg_database d WHERE d.datname = current_database()"
        " AND age(d.datfrozenxid) > 1000000000"
        " UNION ALL SELECT json_build_object('kind', 'fsync_off', 'object', 'fsync', 'detail',"
        "  'a crash of the machine may lose commits and break the database')"
        " WHERE current_setting('fsync') = 'off'",
        "{}",
    },
    {
        "activity",
        "SELECT json_build_object('connections', count(*),"
        " 'connections_max', current_setting('max_connections')::int,"
        " 'active', count(*) FILTER (WHERE a.state = 'active'),"
        " 'idle_in_transaction', count(*) FILTER (WHERE a.state LIKE 'idle in transaction%')),"
        " count(*) FILTER (WHERE a.query = '<insufficient privilege>') > 0"
        " FROM pg_stat_activity a WHERE a.datname = current_database()",
        "SELECT json_build_object('kind', 'idle_in_transaction', 'object', a.pid::text, 'detail',"
        "  format('user %s (%s) has left a transaction open for %s s without a statement: it holds"
        " back vacuum and keeps its locks', a.usename, a.application_name,"
        "   extract(epoch FROM clock_timestamp() - a.state_change)::bigint))"
        " FROM pg_stat_activity a WHERE a.datname = current_database()"
        " AND a.state LIKE 'idle in transaction%'"
        " AND a.state_change < clock_timestamp() - interval '60 seconds' ORDER BY a.pid",
        "{}",
    },
    {
        "commit_locks",
        "SELECT json_build_object('held', count(*) FILTER (WHERE l.granted),"
        " 'waiting', count(*) FILTER (WHERE NOT l.granted)), false FROM pg_locks l"
        " JOIN pg_database d ON d.oid = l.database"
        " WHERE l.locktype = 'advisory' AND d.datname = current_database()",
        NULL,
        "{}",
    },
    {
        "replication_slots",
        "SELECT coalesce(json_agg(json_strip_nulls(json_build_object('name', s.slot_name,"
        " 'type', s.slot_type, 'database', s.database, 'plugin', s.plugin, 'active', s.active,"
        " 'wal_status', s.wal_status,"
        " 'retained_wal_bytes', pg_wal_lsn_diff(w.lsn, s.restart_lsn)::bigint))"
        " ORDER BY s.slot_name), '[]'), false FROM pg_replication_slots s CROSS JOIN " WAL_AT,
        "SELECT json_build_object('kind', 'inactive_replication_slot', 'object', s.slot_name,"
        "  'detail', format('nobody reads it, and %s bytes of WAL are kept for it until somebody"
        " does or it is dropped', pg_wal_lsn_diff(w.lsn, s.restart_lsn)))"
        " FROM pg_replication_slots s CROSS JOIN " WAL_AT
        " WHERE NOT s.active AND s.restart_lsn IS NOT NULL ORDER BY s.slot_name",
        "[]",
    },
    {
        "tables",
        "SELECT coalesce(json_agg(json_build_object('name', t.relname,"
        " 'live_rows', t.n_live_tup, 'dead_rows', t.n_dead_tup) ORDER BY t.relname), '[]'), false"
        " FROM pg_stat_user_tables t WHERE t.relname LIKE 'hog\\_%'",
        NULL,
        "[]",
    },
    {
        "indexes",
        "SELECT coalesce(json_agg(json_build_object('name', s.indexrelname, 'table', s.relname,"
        " 'size_bytes', pg_relation_size(s.indexrelid), 'scans', s.idx_scan,"
        " 'valid', i.indisvalid) ORDER BY s.indexrelname), '[]'), false"
        " FROM pg_stat_user_indexes s JOIN pg_index i USING (indexrelid)"
        " WHERE s.relname LIKE 'hog\\_%'",
        "SELECT json_build_object('kind', 'invalid_index', 'object', s.indexrelname, 'detail',"
        "  format('no statement on %s may use it: rebuild it with REINDEX INDEX CONCURRENTLY',"
        "   s.relname))"
        " FROM pg_stat_user_indexes s JOIN pg_index i USING (indexrelid)"
        " WHERE s.relname LIKE 'hog\\_%' AND NOT i.indisvalid ORDER BY s.indexrelname",
        "[]",
    },
};

/* *ret_hidden: privileges do not let us. */
static enum mp_code ask(struct mp_call *call, const char *statement, uint32_t *ret_number,
                        bool *ret_hidden)
{
    enum mp_code code;

    *ret_number = mp_sql_say(call->sql, statement);
    code = mp_sql_sync(call->sql, &call->err);
    *ret_hidden = code == MP_BAD_DATA && mp_sql_state_is(call->sql, "42501");
    return *ret_hidden ? MP_OK : code;
}

static enum mp_code print_part(struct mp_call *call, const struct part *part,
                               struct mp_buf *findings, bool *ret_blind)
{
    uint32_t number;
    bool hidden;
    enum mp_code code = ask(call, part->look, &number, &hidden);

    if (code)
        return code;
    mp_wire_member(&call->out, part->name);
    mp_buf_add_str(&call->out,
                   hidden ? mp_str_c(part->unseen) : mp_sql_cell(call->sql, number, 0, 0));
    *ret_blind = hidden || mp_sql_true(call->sql, number, 0, 1);
    if (hidden || !part->findings)
        return MP_OK;
    code = ask(call, part->findings, &number, &hidden);
    for (uint32_t i = 0; !code && !hidden && i < mp_sql_rows(call->sql, number); i++) {
        mp_buf_add_c(findings, findings->size ? "," : "");
        mp_buf_add_str(findings, mp_sql_cell(call->sql, number, i, 0));
    }
    return code;
}

enum mp_code mp_route_database_health(struct mp_call *call)
{
    struct mp_buf findings = MP_BUF_INIT(SIZE_MAX / 4), blind_spots = MP_BUF_INIT(1024);
    struct mp_buf *out = &call->out;
    enum mp_code code = mp_call_sql(call);

    mp_buf_add_byte(out, '{');
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && !code; i++) {
        bool blind = false;

        code = print_part(call, &parts[i], &findings, &blind);
        if (!code && blind) {
            mp_buf_add_c(&blind_spots, blind_spots.size ? "," : "");
            mp_buf_add_json(&blind_spots, mp_str_c(parts[i].name));
        }
    }
    mp_buf_printf(out, ",\"findings\":[%.*s],\"blind_spots\":[%.*s]}",
                  MP_STR_ARG(mp_buf_str(&findings)), MP_STR_ARG(mp_buf_str(&blind_spots)));
    mp_buf_fini(&findings);
    mp_buf_fini(&blind_spots);
    return code;
}
