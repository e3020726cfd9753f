/* lake/ducklake/db.c - what is the same for both databases: batches, results, faults.
 *
 * The driver's functions are called in a fixed order only: (begin)? send* sync, commit or
 * rollback. Faults are injected here, before or after the driver, so that a test can fail any
 * call of any flow without knowing the flow.
 */
#include "lake/ducklake/db_priv.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum mp_db_class mp_db_fail(struct mp_err *err, enum mp_db_class class, const char *format, ...)
{
    static const enum mp_code codes[] = {
        [MP_DB_RACE] = MP_CONFLICT,
        [MP_DB_LOST] = MP_IO,
        [MP_DB_OUTAGE] = MP_IO,
        [MP_DB_REFUSED] = MP_REFUSED,
    };
    char text[400];
    va_list args;

    assert(class != MP_DB_OK);
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    mp_err_set(err, codes[class], "%s", text);
    return class;
}

static enum mp_code code_of(const struct mp_err *err)
{
    assert(err->code != MP_OK); /* the driver filled it */
    return err->code;
}

enum mp_code mp_db_new(const struct mp_db_options *options, const struct mp_env *env,
                       struct mp_err *err, struct mp_db **ret)
{
    static const struct {
        struct mp_str scheme;
        const struct mp_db_ops *ops;
    } kinds[] = {
        {{"sqlite:", 7}, &mp_db_sqlite_ops},
        {{"postgres:", 9}, &mp_db_pg_ops},
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct mp_str target = options->catalog;
        struct mp_db *db;
        char *copy;

        if (!mp_str_starts(target, kinds[i].scheme))
            continue;
        target.data += kinds[i].scheme.size;
        target.size -= kinds[i].scheme.size;
        if (target.size == 0 || memchr(target.data, 0, target.size))
            return mp_err_set(err, MP_BAD_CONFIG, "nothing behind \"%s\" of the catalog",
                              kinds[i].scheme.data);
        db = mp_alloc(sizeof(*db));
        db->ops = kinds[i].ops;
        db->env = env;
        db->statement_ms_max = options->statement_ms_max ? options->statement_ms_max : 30000;
        db->connect_ms_max = options->connect_ms_max ? options->connect_ms_max : 10000;
        db->read_only = options->read_only;
        copy = mp_alloc(target.size + 1);
        memcpy(copy, target.data, target.size);
        db->target = (struct mp_str){copy, target.size};
        mp_arena_init(&db->arena, 0);
        *ret = db;
        return MP_OK;
    }
    /* the rest is not shown: it may hold a password */
    return mp_err_set(err, MP_BAD_CONFIG,
                      "catalog must be \"sqlite:PATH\" or \"postgres:CONNINFO\"");
}

static void disconnect(struct mp_db *db)
{
    if (db->connected)
        db->ops->shut(db);
    db->connected = false;
    db->in_transaction = false;
}

void mp_db_free(struct mp_db *db)
{
    if (!db)
        return;
    disconnect(db);
    db->ops->free(db);
    mp_arena_fini(&db->arena);
    mp_free(db->results);
    mp_free((char *)db->target.data);
    mp_free(db);
}

bool mp_db_is_sqlite(const struct mp_db *db)
{
    return db->ops == &mp_db_sqlite_ops;
}

struct mp_db_fault *mp_db_fault(struct mp_db *db)
{
    return &db->fault;
}

enum mp_db_class mp_db_class(const struct mp_db *db)
{
    return db->class;
}

/* Counts a call; true: it is the one that shall fail. */
static bool fault_here(struct mp_db *db)
{
    db->fault.calls++;
    return db->fault.countdown && --db->fault.countdown == 0;
}

/* Notes a failure; D3. */
static enum mp_code settle(struct mp_db *db, enum mp_db_class class, const struct mp_err *err)
{
    if (class == MP_DB_OK)
        return MP_OK;
    db->class = class;
    if (class == MP_DB_LOST)
        disconnect(db);
    return code_of(err);
}

enum mp_code mp_db_ready(struct mp_db *db, struct mp_err *err)
{
    struct mp_err local;
    enum mp_db_class class;

    if (!err)
        err = &local;
    db->class = MP_DB_OK;
    if (db->connected)
        return MP_OK;
    if (fault_here(db)) {
        db->class = db->fault.class == MP_DB_LOST ? MP_DB_OUTAGE : db->fault.class;
        mp_db_fail(err, db->class, "injected fault of connect");
        return code_of(err);
    }
    db->batch_open = false;
    db->fault_pending = MP_DB_OK;
    class = db->ops->open(db, err);
    db->connected = class == MP_DB_OK;
    return settle(db, class, err);
}

static void batch_start(struct mp_db *db)
{
    assert(db->connected); /* ready came first */
    if (db->batch_open)
        return;
    mp_arena_reset(&db->arena);
    db->result_count = 0;
    db->batch_open = true;
}

void mp_db_begin(struct mp_db *db, enum mp_db_mode mode)
{
    assert(!db->in_transaction);
    assert(mode == MP_DB_READ || !db->read_only);
    batch_start(db);
    db->class = MP_DB_OK;
    db->in_transaction = true;
    db->ops->begin(db, mode);
}

/* Counts a queued call. True: it must not reach the driver. */
static bool fault_queued(struct mp_db *db)
{
    bool after = db->fault.after;

    if (db->fault_pending)
        return true;
    if (!fault_here(db))
        return false;
    db->fault_pending = db->fault.class;
    return !after;
}

uint32_t mp_db_send(struct mp_db *db, const char *sql, const struct mp_db_value *values,
                    uint32_t count)
{
    batch_start(db);
    assert(count <= MP_DB_PARAMS_MAX);
    for (uint32_t i = 0; i < count; i++)
        assert(!values[i].text.size || !memchr(values[i].text.data, 0, values[i].text.size));
    if (!fault_queued(db))
        db->ops->send(db, sql, values, count);
    return db->result_count++;
}

void mp_db_rows_begin(struct mp_db *db, const char *table, const struct mp_db_column *columns,
                      uint32_t column_count)
{
    batch_start(db);
    assert(!db->rows_table);
    assert(column_count <= MP_DB_PARAMS_MAX);
    db->rows_table = table;
    db->rows_columns = columns;
    db->rows_column_count = column_count;
    if (!fault_queued(db))
        db->ops->rows_begin(db);
}

void mp_db_rows_add(struct mp_db *db, const struct mp_db_value *values)
{
    assert(db->rows_table);
    for (uint32_t i = 0; i < db->rows_column_count; i++)
        assert(values[i].kind == db->rows_columns[i].kind);
    if (!db->fault_pending)
        db->ops->rows_add(db, values);
}

void mp_db_rows_end(struct mp_db *db)
{
    assert(db->rows_table);
    if (!db->fault_pending)
        db->ops->rows_end(db);
    db->rows_table = NULL;
}

void mp_db_result_put(struct mp_db *db, uint32_t number, struct mp_db_result result)
{
    if (db->result_room <= number) {
        db->result_room = number + 16;
        db->results = mp_realloc(db->results, db->result_room * sizeof(*db->results));
    }
    db->results[number] = result;
}

enum mp_code mp_db_sync(struct mp_db *db, struct mp_err *err)
{
    struct mp_err local;
    enum mp_db_class class;

    if (!err)
        err = &local;
    assert(!db->rows_table);
    if (!db->batch_open)
        return MP_OK;
    db->batch_open = false;
    class = db->ops->sync(db, err);
    if (class == MP_DB_OK && db->fault_pending)
        class = mp_db_fail(err, db->fault_pending, "injected fault of a statement");
    db->fault_pending = MP_DB_OK;
    return settle(db, class, err);
}

const struct mp_db_result *mp_db_result(const struct mp_db *db, uint32_t number)
{
    assert(!db->batch_open); /* sync came first */
    assert(number < db->result_count);
    return &db->results[number];
}

enum mp_code mp_db_commit(struct mp_db *db, struct mp_err *err)
{
    struct mp_err local;
    enum mp_db_class class;

    if (!err)
        err = &local;
    assert(db->in_transaction);
    assert(!db->batch_open); /* every answer was looked at before */
    if (fault_here(db)) {
        if (db->fault.after)
            db->ops->commit(db, err);
        class = mp_db_fail(err, db->fault.class, "injected fault of commit");
    } else {
        class = db->ops->commit(db, err);
    }
    if (class != MP_DB_OK && class != MP_DB_LOST)
        db->ops->rollback(db);
    db->in_transaction = false;
    return settle(db, class, err);
}

void mp_db_rollback(struct mp_db *db)
{
    enum mp_db_class class = db->class;

    if (!db->connected)
        return;
    if (db->batch_open)
        mp_db_sync(db, NULL);
    if (db->connected && db->in_transaction)
        db->ops->rollback(db);
    db->in_transaction = false;
    db->class = class;
}

bool mp_db_parse_int(struct mp_str text, int64_t *ret)
{
    char copy[24], *end;
    long long value;

    if (text.size == 0 || text.size >= sizeof(copy))
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    if (copy[0] != '-' && (copy[0] < '0' || copy[0] > '9'))
        return false; /* strtoll would take blanks and '+' */
    errno = 0;
    value = strtoll(copy, &end, 10);
    if (errno || end != copy + text.size)
        return false;
    *ret = value;
    return true;
}

int64_t mp_db_number(const struct mp_db_result *result, uint32_t row, uint32_t column,
                     int64_t missing)
{
    struct mp_str cell = mp_db_cell(result, row, column);
    int64_t value;

    return cell.data && mp_db_parse_int(cell, &value) ? value : missing;
}

bool mp_db_truth(const struct mp_db_result *result, uint32_t row, uint32_t column)
{
    struct mp_str cell = mp_db_cell(result, row, column);

    return cell.size > 0 && (cell.data[0] == 't' || cell.data[0] == 'T' || cell.data[0] == '1');
}
