/* lake/ducklake/db_sqlite.c - the catalog as one SQLite file.
 *
 * Statements run at once; a failure is kept until sync, and the rest of the batch is skipped.
 *
 * S1  writers take the write lock at BEGIN (IMMEDIATE): a transaction that reads first and writes
 *     later cannot wait for it and would fail at once
 * S2  synchronous is FULL, so a commit that was answered survives a power cut
 * S3  a file that we make is in WAL mode, where open readers do not hold up a commit; a file made
 *     by others keeps its mode, and COMMIT itself is tried again while readers hold it up
 * S4  a lock is asked for every few milliseconds, at odd moments. SQLite's own busy_timeout comes
 * to sleep 100 ms at a time, and a writer among eight was seen to starve for seconds
 *
 * After  sqlite.org "Write-Ahead Logging", "Result Codes"; DuckLake sheet, section 14.5.
 */
#include "lake/ducklake/db_priv.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMMIT_ROUNDS 2 /* of one busy timeout each */

struct sqlite_self {
    sqlite3 *handle;
    sqlite3_stmt *rows; /* between rows_begin and rows_end */
    uint64_t busy_since_us;
    enum mp_db_class failed;
    struct mp_err err;
};

static struct sqlite_self *self_of(struct mp_db *db)
{
    if (!db->self)
        db->self = mp_alloc(sizeof(struct sqlite_self));
    return db->self;
}

static enum mp_db_class class_of(int result)
{
    switch (result & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CONSTRAINT:
        return MP_DB_RACE;
    case SQLITE_IOERR:
    case SQLITE_FULL:
    case SQLITE_CANTOPEN:
    case SQLITE_PROTOCOL:
    case SQLITE_NOMEM:
    case SQLITE_INTERRUPT:
        return MP_DB_OUTAGE;
    default:
        return MP_DB_REFUSED;
    }
}

static enum mp_db_class fail(struct mp_db *db, struct mp_err *err, int result, const char *what)
{
    struct sqlite_self *self = self_of(db);
    const char *text = self->handle ? sqlite3_errmsg(self->handle) : sqlite3_errstr(result);

    return mp_db_fail(err, class_of(result), "%s: sqlite %d (%s)", what, result, text);
}

/* Runs text without values. */
static int run(struct sqlite_self *self, const char *sql)
{
    return sqlite3_exec(self->handle, sql, NULL, NULL, NULL);
}

static void sqlite_shut(struct mp_db *db)
{
    struct sqlite_self *self = self_of(db);

    sqlite3_finalize(self->rows);
    sqlite3_close_v2(self->handle); /* an open transaction is rolled back */
    self->rows = NULL;
    self->handle = NULL;
    self->failed = MP_DB_OK;
}

/* Changing to WAL needs the file for a moment; several of us may be starting. */
static int set_wal(struct mp_db *db)
{
    struct sqlite_self *self = self_of(db);
    int result = SQLITE_BUSY;

    for (int i = 0; i < 200 && result == SQLITE_BUSY; i++) {
        result = run(self, "PRAGMA journal_mode=WAL");
        if (result == SQLITE_BUSY)
            mp_sleep_us(db->env, 5000 + mp_random_u64(db->env) % 10000);
    }
    return result;
}

/* Why no catalog can be at this path, however often it is tried; NULL: it can. */
static const char *no_place(const char *path)
{
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX] = ".";
    struct stat info;

    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return "it is a directory";
    if (slash)
        snprintf(directory, sizeof(directory), "%.*s", slash == path ? 1 : (int)(slash - path),
                 path);
    if (access(directory, W_OK | X_OK) == 0)
        return NULL;
    return errno == ENOENT || errno == ENOTDIR ? "its directory does not exist"
           : errno == EACCES || errno == EROFS ? "its directory cannot be written to"
                                               : NULL;
}

/* S4 */
static int busy(void *self_of_any, int count)
{
    struct mp_db *db = self_of_any;
    struct sqlite_self *self = self_of(db);
    uint64_t now_us = mp_now_mono_us(db->env);

    if (count == 0)
        self->busy_since_us = now_us;
    if (now_us - self->busy_since_us >= (uint64_t)db->statement_ms_max * 1000)
        return 0;
    mp_sleep_us(db->env, 500 + mp_random_u64(db->env) % 4500);
    return 1;
}

static enum mp_db_class sqlite_open(struct mp_db *db, struct mp_err *err)
{
    struct sqlite_self *self = self_of(db);
    struct stat info;
    bool fresh = stat(db->target.data, &info) != 0 || info.st_size == 0;
    int flags = db->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    const char *why = no_place(db->target.data);
    enum mp_db_class class;
    int result;

    self->failed = MP_DB_OK;
    if (fresh && db->read_only && !why) {
        mp_err_set(err, MP_NOT_FOUND, "there is no catalog file %s", db->target.data);
        return MP_DB_REFUSED;
    }
    result = sqlite3_open_v2(db->target.data, &self->handle, flags, NULL);
    if (result)
        goto out;
    sqlite3_extended_result_codes(self->handle, 1);
    sqlite3_busy_handler(self->handle, busy, db);
    if (fresh)
        result = set_wal(db); /* S3 */
    if (!result && !db->read_only)
        result = run(self, "PRAGMA synchronous=FULL"); /* S2 */
out:
    if (!result)
        return MP_DB_OK;
    class = fail(db, err, result, "open");
    if (why) {
        mp_err_set(err, MP_BAD_CONFIG, "%s", why);
        class = MP_DB_REFUSED;
    }
    mp_err_add(err, "catalog %s", db->target.data);
    sqlite_shut(db);
    return class;
}

/* Keeps the first failure of the batch for sync. */
static bool note(struct mp_db *db, int result, const char *what)
{
    struct sqlite_self *self = self_of(db);

    if (result == SQLITE_OK || result == SQLITE_DONE || result == SQLITE_ROW)
        return true;
    self->failed = fail(db, &self->err, result, what);
    return false;
}

static void sqlite_begin(struct mp_db *db, enum mp_db_mode mode)
{
    struct sqlite_self *self = self_of(db);

    if (!self->failed) /* S1 */
        note(db, run(self, mode == MP_DB_WRITE ? "BEGIN IMMEDIATE" : "BEGIN"), "begin");
}

static int bind(sqlite3_stmt *statement, int place, const struct mp_db_value *value)
{
    if (value->null)
        return sqlite3_bind_null(statement, place);
    if (value->kind == MP_DB_INT || value->kind == MP_DB_BOOL)
        return sqlite3_bind_int64(statement, place, value->number);
    return sqlite3_bind_text64(statement, place, value->text.data ? value->text.data : "",
                               value->text.size, SQLITE_TRANSIENT, SQLITE_UTF8);
}

/* Steps to the end; rows, if any, are copied. */
static int collect(struct mp_db *db, sqlite3_stmt *statement, struct mp_db_result *ret)
{
    uint32_t columns = (uint32_t)sqlite3_column_count(statement), room = 0;
    struct mp_db_result made = {.columns = columns};
    struct mp_str *cells = NULL;
    int result;

    while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
        if (made.rows == room) {
            uint32_t more = room ? room * 2 : 4;
            struct mp_str *grown = mp_arena_take(&db->arena, sizeof(*grown) * columns * more);

            if (room)
                memcpy(grown, cells, sizeof(*grown) * columns * room);
            cells = grown;
            room = more;
        }
        for (uint32_t i = 0; i < columns; i++) {
            struct mp_str cell = {(const char *)sqlite3_column_text(statement, (int)i), 0};

            cell.size = (size_t)sqlite3_column_bytes(statement, (int)i);
            if (sqlite3_column_type(statement, (int)i) == SQLITE_NULL)
                cells[(size_t)made.rows * columns + i] = (struct mp_str){NULL, 0};
            else
                cells[(size_t)made.rows * columns + i] = mp_arena_str(&db->arena, cell);
        }
        made.rows++;
    }
    made.changed =
        sqlite3_stmt_readonly(statement) ? 0 : sqlite3_changes64(sqlite3_db_handle(statement));
    made.cells = cells;
    *ret = made;
    return result;
}

static void sqlite_send(struct mp_db *db, const char *sql, const struct mp_db_value *values,
                        uint32_t count)
{
    struct sqlite_self *self = self_of(db);
    struct mp_db_result answer = {0};
    sqlite3_stmt *statement = NULL;
    int result;

    if (self->failed)
        return;
    result = sqlite3_prepare_v2(self->handle, sql, -1, &statement, NULL);
    for (uint32_t i = 0; !result && i < count; i++) {
        char name[16];
        int place;

        snprintf(name, sizeof(name), "$%u", i + 1);
        place = sqlite3_bind_parameter_index(statement, name);
        assert(place > 0); /* every value is used */
        result = bind(statement, place, &values[i]);
    }
    if (!result)
        result = collect(db, statement, &answer);
    if (note(db, result, "statement"))
        mp_db_result_put(db, db->result_count, answer);
    sqlite3_finalize(statement);
}

static void sqlite_rows_begin(struct mp_db *db)
{
    struct sqlite_self *self = self_of(db);
    struct mp_buf sql = MP_BUF_INIT(65536);

    if (self->failed)
        return;
    mp_buf_printf(&sql, "INSERT INTO %s (", db->rows_table);
    for (uint32_t i = 0; i < db->rows_column_count; i++)
        mp_buf_printf(&sql, "%s%s", i ? ", " : "", db->rows_columns[i].name);
    mp_buf_add_c(&sql, ") VALUES (");
    for (uint32_t i = 0; i < db->rows_column_count; i++)
        mp_buf_add_c(&sql, i ? ", ?" : "?");
    mp_buf_add_c(&sql, ")");
    note(db, sqlite3_prepare_v2(self->handle, mp_buf_c(&sql), -1, &self->rows, NULL), "prepare");
    mp_buf_fini(&sql);
}

static void sqlite_rows_add(struct mp_db *db, const struct mp_db_value *values)
{
    struct sqlite_self *self = self_of(db);
    int result = SQLITE_OK;

    if (self->failed)
        return;
    for (uint32_t i = 0; !result && i < db->rows_column_count; i++)
        result = bind(self->rows, (int)i + 1, &values[i]);
    if (!result)
        result = sqlite3_step(self->rows);
    note(db, result, db->rows_table);
    sqlite3_reset(self->rows);
}

static void sqlite_rows_end(struct mp_db *db)
{
    struct sqlite_self *self = self_of(db);

    sqlite3_finalize(self->rows);
    self->rows = NULL;
}

static enum mp_db_class sqlite_sync(struct mp_db *db, struct mp_err *err)
{
    struct sqlite_self *self = self_of(db);
    enum mp_db_class class = self->failed;

    sqlite_rows_end(db);
    if (class)
        *err = self->err;
    self->failed = MP_DB_OK;
    return class;
}

static enum mp_db_class sqlite_commit(struct mp_db *db, struct mp_err *err)
{
    struct sqlite_self *self = self_of(db);
    int result = SQLITE_BUSY;
    enum mp_db_class class;

    for (int i = 0; i < COMMIT_ROUNDS && (result & 0xff) == SQLITE_BUSY; i++)
        result = run(self, "COMMIT"); /* S3: the transaction stays open while it is busy */
    if (!result)
        return MP_DB_OK;
    class = fail(db, err, result, "commit");
    if (class == MP_DB_RACE) /* readers, not writers: doing it all again would not help */
        class = mp_db_fail(err, MP_DB_OUTAGE, "commit: readers hold the catalog file %s",
                           db->target.data);
    else /* after a disk error nobody knows: read it again with a new handle */
        class = mp_db_fail(err, MP_DB_LOST, "commit: sqlite %d (%s)", result,
                           sqlite3_errmsg(self->handle));
    return class;
}

static void sqlite_rollback(struct mp_db *db)
{
    struct sqlite_self *self = self_of(db);

    self->failed = MP_DB_OK;
    if (!sqlite3_get_autocommit(self->handle))
        run(self, "ROLLBACK");
}

static void sqlite_free(struct mp_db *db)
{
    mp_free(db->self);
}

const struct mp_db_ops mp_db_sqlite_ops = {
    .open = sqlite_open,
    .shut = sqlite_shut,
    .begin = sqlite_begin,
    .send = sqlite_send,
    .rows_begin = sqlite_rows_begin,
    .rows_add = sqlite_rows_add,
    .rows_end = sqlite_rows_end,
    .sync = sqlite_sync,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .free = sqlite_free,
};
