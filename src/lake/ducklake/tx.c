/* lake/ducklake/tx.c - a transaction that claims a snapshot, and is run again after a lost race.
 *
 * The primary key of ducklake_snapshot is the lake's concurrency control: whoever inserts
 * max + 1 first wins, everybody else waits on that row and fails when it is committed. Claiming
 * first (L1) makes the rest of the transaction sequential, so READ COMMITTED is enough and what
 * is read after the claim is the newest state.
 *
 * Not chosen: REPEATABLE READ. Its snapshot would be taken before the wait for the lock, so each
 * writer that had to wait would fail once for nothing.
 */
#include "lake/ducklake/priv.h"
#include "lake/ducklake/time.h"

#include <assert.h>

#define LOST_RETRIES_MAX    3
#define RACE_SLEEP_US_FIRST 2000
#define RACE_SLEEP_US_MAX   200000

/* Half to the whole of 2 ms, 4 ms, ... 200 ms. */
static void race_sleep(const struct mp_env *env, uint32_t attempt)
{
    uint64_t us = RACE_SLEEP_US_MAX;

    if (attempt < 7)
        us = (uint64_t)RACE_SLEEP_US_FIRST << attempt;
    mp_sleep_us(env, us / 2 + mp_random_u64(env) % (us / 2 + 1));
}

enum mp_code mp_dl_transact(struct mp_ducklake *lake, mp_dl_work *work, void *context,
                            struct mp_err *err)
{
    uint64_t start_us = mp_now_mono_us(lake->env);
    uint32_t races = 0, lost = 0;

    assert(!lake->read_only);
    for (;;) {
        bool keep = true;
        enum mp_code code;

        mp_arena_reset(&lake->scratch);
        code = mp_db_ready(lake->db, err);
        if (code)
            return code;
        code = work(lake, context, err, &keep);
        if (!code && keep)
            code = mp_db_commit(lake->db, err);
        if (!code || mp_db_class(lake->db) == MP_DB_OK) {
            mp_db_rollback(lake->db); /* no-op after commit */
            return code;
        }
        mp_db_rollback(lake->db);
        if (mp_db_class(lake->db) == MP_DB_LOST && lost++ < LOST_RETRIES_MAX)
            continue; /* also after a commit: the work finds out what has landed */
        if (mp_db_class(lake->db) != MP_DB_RACE)
            return code;
        if (races == lake->race_retries_max ||
            mp_now_mono_us(lake->env) - start_us > (uint64_t)lake->race_ms_max * 1000) {
            mp_err_add(err, "gave up after %u lost races", races + 1);
            return code;
        }
        race_sleep(lake->env, races++);
    }
}

/* snapshot_time grows strictly, since time travel sorts by nothing else. PostgreSQL's own clock
 * is everybody's clock there. In SQLite it is ours, and times are texts: two milliseconds are
 * added to the first three digits of the fraction, which is as far as strftime goes. */
static const char claim_pg[] =
    "INSERT INTO ducklake_snapshot"
    " (snapshot_id, snapshot_time, schema_version, next_catalog_id, next_file_id)"
    " SELECT snapshot_id + 1,"
    " GREATEST(clock_timestamp(), snapshot_time + interval '1 microsecond'),"
    " schema_version, next_catalog_id, next_file_id + $1"
    " FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1"
    " RETURNING snapshot_id, schema_version, next_catalog_id, next_file_id";
static const char claim_sqlite[] =
    "INSERT INTO ducklake_snapshot"
    " (snapshot_id, snapshot_time, schema_version, next_catalog_id, next_file_id)"
    " SELECT snapshot_id + 1,"
    " CASE WHEN snapshot_time < $2 THEN $2 ELSE COALESCE("
    "strftime('%Y-%m-%d %H:%M:%f', substr(snapshot_time, 1, 23), '+0.002 seconds') || '000+00',"
    " $2) END,"
    " schema_version, next_catalog_id, next_file_id + $1"
    " FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1"
    " RETURNING snapshot_id, schema_version, next_catalog_id, next_file_id";

uint32_t mp_dl_snapshot_send(struct mp_ducklake *lake, uint32_t files)
{
    char now[MP_DL_TIME_TEXT];

    if (!mp_db_is_sqlite(lake->db))
        return MP_DB_SEND(lake->db, claim_pg, mp_db_int(files));
    mp_dl_time_text(mp_now_wall_us(lake->env), now);
    return MP_DB_SEND(lake->db, claim_sqlite, mp_db_int(files), mp_db_c(now));
}

enum mp_code mp_dl_snapshot_read(struct mp_ducklake *lake, uint32_t number, uint32_t files,
                                 struct mp_err *err, struct mp_dl_snapshot *ret)
{
    const struct mp_db_result *answer = mp_db_result(lake->db, number);
    struct mp_dl_snapshot made;

    if (answer->rows != 1)
        return mp_err_set(err, MP_BAD_CONFIG, "the lake has no snapshot at all");
    made.id = mp_db_number(answer, 0, 0, -1);
    made.schema_version = mp_db_number(answer, 0, 1, -1);
    made.next_catalog = mp_db_number(answer, 0, 2, -1);
    made.next_file = mp_db_number(answer, 0, 3, -1) - (int64_t)files;
    if (made.id < 1 || made.schema_version < 0 || made.next_catalog < 0 || made.next_file < 0)
        return mp_err_set(err, MP_BAD_CONFIG, "snapshot %lld has counters that are missing",
                          (long long)made.id - 1);
    *ret = made;
    return MP_OK;
}

void mp_dl_counters_send(struct mp_ducklake *lake, const struct mp_dl_snapshot *snapshot)
{
    MP_DB_SEND(lake->db,
               "UPDATE ducklake_snapshot SET schema_version = $2, next_catalog_id = $3,"
               " next_file_id = $4 WHERE snapshot_id = $1",
               mp_db_int(snapshot->id), mp_db_int(snapshot->schema_version),
               mp_db_int(snapshot->next_catalog), mp_db_int(snapshot->next_file));
}

void mp_dl_changes_send(struct mp_ducklake *lake, int64_t snapshot, struct mp_str changes,
                        struct mp_str message, struct mp_str extra)
{
    MP_DB_SEND(lake->db,
               "INSERT INTO ducklake_snapshot_changes"
               " (snapshot_id, changes_made, author, commit_message, commit_extra_info)"
               " VALUES ($1, $2, $3, $4, $5)",
               mp_db_int(snapshot), mp_db_text(changes), mp_db_text(lake->author),
               mp_db_text(message), extra.size ? mp_db_text(extra) : mp_db_null(MP_DB_TEXT));
}
