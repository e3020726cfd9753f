/* server/migrate.c - brings the schema up to date.
 *
 * migrations/NNN_name.sql are compiled in. They are applied in order, each in a transaction of its
 * own that also notes its number, under one advisory lock: of several servers that start, one
 * works and the others wait. A database that knows a number we do not is newer than this program
 * and is refused.
 */
#include "server/priv.h"

#include <assert.h>
#include <stdio.h>

/* Line by line; a NULL behind each file. */
static const char *const lines[] = {
#include "migrations.inc"
};

enum { LINES = sizeof(lines) / sizeof(*lines), LOCK_KEY = 4740870 };

static int count_migrations(void)
{
    int count = 0;

    for (int i = 0; i < LINES; i++)
        count += !lines[i];
    return count;
}

/* The text of a migration; numbers start with 1. */
static void read_migration(int number, struct mp_buf *ret)
{
    int i = 0;

    for (int before = 1; before < number; i++)
        before += !lines[i];
    for (; lines[i]; i++)
        mp_buf_add_c(ret, lines[i]);
}

/* Takes one statement off the script: up to a ';' outside of quotes and comments. */
static bool next_statement(const char **script, struct mp_str *ret)
{
    const char *c = *script, *begin;
    bool quoted = false;

    while (*c == ' ' || *c == '\n' || (c[0] == '-' && c[1] == '-'))
        c = *c == '-' ? c + strcspn(c, "\n") : c + 1;
    for (begin = c; *c && (quoted || *c != ';'); c++) {
        if (*c == '\'')
            quoted = !quoted;
        else if (!quoted && c[0] == '-' && c[1] == '-')
            c += strcspn(c, "\n") - 1;
    }
    *ret = mp_str_n(begin, (size_t)(c - begin));
    *script = *c ? c + 1 : c;
    return ret->size > 0;
}

static enum mp_code apply(struct mp_sql *sql, int number, struct mp_arena *arena,
                          struct mp_err *err)
{
    struct mp_buf text = MP_BUF_INIT(16 * 1024 * 1024);
    const char *script;
    struct mp_str statement;
    enum mp_code code;

    read_migration(number, &text);
    script = mp_buf_c(&text);
    mp_sql_say(sql, "BEGIN");
    while (next_statement(&script, &statement))
        mp_sql_script(sql, mp_arena_str(arena, statement).data);
    MP_SQL(sql, "INSERT INTO hog_migration (number, applied_us) VALUES ($1, hog_now_us())",
           mp_v_int(number));
    mp_sql_say(sql, "COMMIT");
    code = mp_sql_sync(sql, err);
    if (code)
        mp_err_add(err, "migration %03d", number);
    mp_buf_fini(&text);
    return code;
}

static enum mp_code read_version(struct mp_sql *sql, struct mp_err *err, int *ret)
{
    uint32_t number;
    enum mp_code code;

    mp_sql_script(sql, "CREATE TABLE IF NOT EXISTS hog_migration"
                       " (number bigint PRIMARY KEY, applied_us bigint NOT NULL)");
    code = mp_sql_sync(sql, err);
    if (code)
        return code;
    number = mp_sql_say(sql, "SELECT max(number) FROM hog_migration");
    code = mp_sql_sync(sql, err);
    if (!code)
        *ret = (int)mp_sql_int(sql, number, 0, 0, 0);
    return code;
}

enum mp_code mp_migrate(struct mp_sql_pool *pool, struct mp_err *err)
{
    struct mp_arena arena;
    struct mp_sql *sql = NULL;
    int version = 0, known = count_migrations();
    enum mp_code code = mp_sql_take(pool, err, &sql);

    mp_arena_init(&arena, 0);
    if (code == MP_BAD_CONFIG)
        mp_err_add(err, "HOGLAKE_JDBC_URL");
    if (code)
        goto out;
    MP_SQL(sql, "SELECT pg_advisory_lock($1)", mp_v_int(LOCK_KEY));
    code = mp_sql_sync(sql, err);
    if (!code)
        code = read_version(sql, err, &version);
    if (!code && version > known)
        code =
            mp_err_set(err, MP_BAD_CONFIG,
                       "the database's schema is number %d, this program knows %d", version, known);
    while (!code && version < known)
        code = apply(sql, ++version, &arena, err);
    if (mp_sql_alive(sql)) {
        struct mp_err ignored;

        if (code && mp_sql_alive(sql)) {
            mp_sql_say(sql, "ROLLBACK");
            mp_sql_sync(sql, &ignored);
        }
        MP_SQL(sql, "SELECT pg_advisory_unlock($1)", mp_v_int(LOCK_KEY));
        mp_sql_sync(sql, &ignored);
    }
out:
    mp_sql_give(pool, &sql);
    mp_arena_fini(&arena);
    return code;
}
