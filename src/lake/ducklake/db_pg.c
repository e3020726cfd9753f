/* lake/ducklake/db_pg.c - the catalog in a PostgreSQL database.
 *
 * A batch is a batch of libpq's pipeline: one round trip. BEGIN and the lock ride in front of the
 * first batch of their transaction, COMMIT is a batch of its own since every answer is looked at
 * before it.
 *
 * G1  BEGIN for writing takes an advisory lock of the transaction, one per schema of the
 *     database. Our own writers wait there instead of failing on the primary key of
 *     ducklake_snapshot; other writers do not know the lock and meet us at the key
 * G2  many rows are one statement over arrays, so their number does not count as round trips
 */
#include "lake/ducklake/db_priv.h"

#include "base/mem.h"
#include "net/pg.h"

#include <assert.h>
#include <stdio.h>

#define ROWS_MAX 5000u /* of one statement */

struct pg_self {
    struct mp_pg *pg;
    bool *visible; /* of each statement sent: does it have a number outside? */
    uint32_t sent, room;
    struct mp_buf arrays[MP_DB_PARAMS_MAX]; /* of the rows that are being added */
    uint32_t rows;
};

static struct pg_self *self_of(struct mp_db *db)
{
    if (!db->self) {
        struct pg_self *self = mp_alloc(sizeof(*self));

        for (size_t i = 0; i < MP_DB_PARAMS_MAX; i++)
            self->arrays[i] = MP_BUF_INIT(MP_DB_TEXT_MAX);
        db->self = self;
    }
    return db->self;
}

/* SQLSTATE classes and codes, the longer ones first. (PostgreSQL manual, appendix A) */
static const struct {
    const char *state;
    enum mp_db_class class;
} classes[] = {
    {"40001", MP_DB_RACE},   /* serialization_failure */
    {"40P01", MP_DB_RACE},   /* deadlock_detected */
    {"23505", MP_DB_RACE},   /* unique_violation */
    {"42P07", MP_DB_RACE},   /* duplicate_table: two that make the lake */
    {"57P05", MP_DB_LOST},   /* idle_session_timeout */
    {"57P0", MP_DB_LOST},    /* shutdowns, dropped database, cannot_connect_now */
    {"25P03", MP_DB_LOST},   /* idle_in_transaction_session_timeout */
    {"08", MP_DB_LOST},      /* connection exceptions */
    {"25006", MP_DB_LOST},   /* read_only_sql_transaction: a standby; another host may be none */
    {"57014", MP_DB_OUTAGE}, /* query_canceled, as by statement_timeout */
    {"55P03", MP_DB_OUTAGE}, /* lock_not_available */
    {"53", MP_DB_OUTAGE},    /* insufficient resources */
    {"58", MP_DB_OUTAGE},    /* system errors */
};

static enum mp_db_class class_of(const char *state)
{
    for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++)
        if (strncmp(state, classes[i].state, strlen(classes[i].state)) == 0)
            return classes[i].class;
    return MP_DB_REFUSED;
}

/* The class of what mp_pg_sync answered, with the code that goes with it. */
static enum mp_db_class classify(struct pg_self *self, enum mp_code code, struct mp_err *err)
{
    const char *state = mp_pg_sqlstate(self->pg);
    enum mp_db_class class = mp_pg_alive(self->pg) ? class_of(state) : MP_DB_LOST;
    struct mp_err copy;

    if (code == MP_OK)
        return MP_DB_OK;
    copy = *err;
    if (strcmp(state, "42501") == 0) { /* insufficient_privilege */
        mp_err_set(err, MP_BAD_CONFIG, "%s", copy.text);
        return MP_DB_REFUSED;
    }
    if (code == MP_TIMEOUT || strcmp(state, "57014") == 0) {
        mp_err_set(err, MP_TIMEOUT, "%s", copy.text);
        return class;
    }
    return mp_db_fail(err, class, "%s", copy.text);
}

static enum mp_db_class pg_open(struct mp_db *db, struct mp_err *err)
{
    struct pg_self *self = self_of(db);
    struct mp_buf conninfo = MP_BUF_INIT(db->target.size + 16);
    struct mp_pg_options options = {
        .application_name = "millpond",
        .connect_ms_max = db->connect_ms_max,
        .statement_ms_max = db->statement_ms_max,
    };
    enum mp_code code;

    if (mp_str_starts(db->target, MP_STR("//"))) /* the scheme of a URI was our prefix too */
        mp_buf_add_c(&conninfo, "postgres:");
    mp_buf_add_str(&conninfo, db->target);
    options.conninfo = mp_buf_str(&conninfo);
    code = mp_pg_open(&options, db->env, err, &self->pg);
    mp_buf_fini(&conninfo);
    self->sent = 0;
    if (code)
        mp_err_add(err, "catalog");
    if (code == MP_BAD_CONFIG || code == MP_REFUSED)
        return MP_DB_REFUSED;
    return code ? MP_DB_OUTAGE : MP_DB_OK;
}

static void pg_shut(struct mp_db *db)
{
    struct pg_self *self = self_of(db);

    mp_pg_close(self->pg);
    self->pg = NULL;
    self->sent = 0;
}

static void queue(struct pg_self *self, bool visible, const char *sql,
                  const struct mp_pg_value *values, uint32_t count)
{
    if (self->sent == self->room) {
        self->room = self->room ? self->room * 2 : 64;
        self->visible = mp_realloc(self->visible, self->room * sizeof(*self->visible));
    }
    self->visible[self->sent++] = visible;
    mp_pg_send(self->pg, sql, values, count);
}

static void pg_begin(struct mp_db *db, enum mp_db_mode mode)
{
    struct pg_self *self = self_of(db);

    if (mode == MP_DB_READ) {
        queue(self, false, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL, 0);
        return;
    }
    queue(self, false, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", NULL, 0);
    queue(self, false, /* G1 */
          "SELECT pg_advisory_xact_lock(hashtextextended('ducklake ' || current_schema(), 0))",
          NULL, 0);
}

static uint32_t type_of(uint8_t kind)
{
    static const uint32_t types[] = {
        [MP_DB_INT] = MP_PG_INT8,  [MP_DB_TEXT] = MP_PG_TEXT,        [MP_DB_BOOL] = MP_PG_BOOL,
        [MP_DB_UUID] = MP_PG_UUID, [MP_DB_TIME] = MP_PG_TIMESTAMPTZ,
    };

    return types[kind];
}

/* The text of a value; a number's is written into room. */
static struct mp_str text_of(const struct mp_db_value *value, char room[24])
{
    if (value->null)
        return (struct mp_str){NULL, 0};
    if (value->kind == MP_DB_BOOL)
        return value->number ? MP_STR("t") : MP_STR("f");
    if (value->kind != MP_DB_INT)
        return value->text.data ? value->text : MP_STR("");
    snprintf(room, 24, "%lld", (long long)value->number);
    return mp_str_c(room);
}

static void pg_send(struct mp_db *db, const char *sql, const struct mp_db_value *values,
                    uint32_t count)
{
    struct mp_pg_value texts[MP_DB_PARAMS_MAX];
    char room[MP_DB_PARAMS_MAX][24];

    for (uint32_t i = 0; i < count; i++)
        texts[i] = (struct mp_pg_value){text_of(&values[i], room[i]), type_of(values[i].kind)};
    queue(self_of(db), true, sql, texts, count);
}

static void pg_rows_begin(struct mp_db *db)
{
    struct pg_self *self = self_of(db);

    self->rows = 0;
    for (uint32_t i = 0; i < db->rows_column_count; i++)
        mp_buf_clear(&self->arrays[i]);
}

/* Adds an element of an array's text. (PostgreSQL manual, "Array Input and Output Syntax") */
static void add_element(struct mp_buf *array, struct mp_str text, bool quoted)
{
    if (!text.data) {
        mp_buf_add_c(array, "NULL");
        return;
    }
    if (!quoted) {
        mp_buf_add_str(array, text);
        return;
    }
    mp_buf_add_byte(array, '"');
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '"' || text.data[i] == '\\')
            mp_buf_add_byte(array, '\\');
        mp_buf_add_byte(array, text.data[i]);
    }
    mp_buf_add_byte(array, '"');
}

/* G2: INSERT INTO t (a, b) SELECT * FROM unnest($1::bigint[], $2::text[]) */
static void send_arrays(struct mp_db *db)
{
    static const char *const types[] = {
        [MP_DB_INT] = "bigint", [MP_DB_TEXT] = "text",        [MP_DB_BOOL] = "boolean",
        [MP_DB_UUID] = "uuid",  [MP_DB_TIME] = "timestamptz",
    };
    struct pg_self *self = self_of(db);
    struct mp_pg_value values[MP_DB_PARAMS_MAX];
    struct mp_buf sql = MP_BUF_INIT(65536);

    if (self->rows == 0)
        return;
    mp_buf_printf(&sql, "INSERT INTO %s (", db->rows_table);
    for (uint32_t i = 0; i < db->rows_column_count; i++)
        mp_buf_printf(&sql, "%s%s", i ? ", " : "", db->rows_columns[i].name);
    mp_buf_add_c(&sql, ") SELECT * FROM unnest(");
    for (uint32_t i = 0; i < db->rows_column_count; i++) {
        mp_buf_printf(&sql, "%s$%u::%s[]", i ? ", " : "", i + 1, types[db->rows_columns[i].kind]);
        mp_buf_add_byte(&self->arrays[i], '}');
        values[i] = (struct mp_pg_value){mp_buf_str(&self->arrays[i]), 0};
    }
    mp_buf_add_c(&sql, ")");
    queue(self, false, mp_buf_c(&sql), values, db->rows_column_count);
    mp_buf_fini(&sql);
    self->rows = 0;
}

static void pg_rows_add(struct mp_db *db, const struct mp_db_value *values)
{
    struct pg_self *self = self_of(db);
    char room[24];

    for (uint32_t i = 0; i < db->rows_column_count; i++) {
        if (self->rows == 0) {
            mp_buf_clear(&self->arrays[i]);
            mp_buf_add_byte(&self->arrays[i], '{');
        } else {
            mp_buf_add_byte(&self->arrays[i], ',');
        }
        add_element(&self->arrays[i], text_of(&values[i], room), values[i].kind == MP_DB_TEXT);
    }
    if (++self->rows == ROWS_MAX)
        send_arrays(db);
}

static void pg_rows_end(struct mp_db *db)
{
    send_arrays(db);
}

/* Copies the answer to statement `sent` of the batch into the arena of results. */
static struct mp_db_result copy_answer(struct mp_db *db, struct pg_self *self, uint32_t sent)
{
    struct mp_pg_answer answer = mp_pg_answer(self->pg, sent);
    struct mp_db_result made = {answer.rows, answer.columns, answer.changed, NULL};
    struct mp_str *cells = mp_arena_take(&db->arena, sizeof(*cells) * answer.rows * answer.columns);

    for (uint32_t row = 0; row < answer.rows; row++) {
        for (uint32_t column = 0; column < answer.columns; column++) {
            struct mp_str cell = mp_pg_cell(self->pg, sent, row, column);

            if (cell.data)
                cell = mp_arena_str(&db->arena, cell);
            cells[(size_t)row * answer.columns + column] = cell;
        }
    }
    made.cells = cells;
    return made;
}

static enum mp_db_class pg_sync(struct mp_db *db, struct mp_err *err)
{
    struct pg_self *self = self_of(db);
    enum mp_code code = mp_pg_sync(self->pg, err);
    uint32_t number = 0;

    for (uint32_t i = 0; !code && i < self->sent; i++)
        if (self->visible[i])
            mp_db_result_put(db, number++, copy_answer(db, self, i));
    self->sent = 0;
    return classify(self, code, err);
}

/* Only the answer's tag tells what became of a transaction: COMMIT of one that had failed rolls
 * back without an error. A pooler in between may say anything. (PostgreSQL manual, "COMMIT") */
static enum mp_db_class pg_commit(struct mp_db *db, struct mp_err *err)
{
    struct pg_self *self = self_of(db);
    enum mp_db_class class;
    const char *tag;

    assert(self->sent == 0);
    queue(self, false, "COMMIT", NULL, 0);
    class = pg_sync(db, err);
    if (class)
        return class;
    tag = mp_pg_answer(self->pg, 0).tag;
    if (strcmp(tag, "COMMIT") == 0)
        return MP_DB_OK;
    if (strcmp(tag, "ROLLBACK") == 0)
        return mp_db_fail(err, MP_DB_RACE, "COMMIT was answered with ROLLBACK: nothing was done");
    return mp_db_fail(err, MP_DB_LOST,
                      "COMMIT was answered with \"%.20s\": nobody knows what was done", tag);
}

static void pg_rollback(struct mp_db *db)
{
    struct pg_self *self = self_of(db);
    struct mp_err ignored;
    enum mp_db_class class;

    queue(self, false, "ROLLBACK", NULL, 0);
    class = pg_sync(db, &ignored);
    if (class == MP_DB_OK)
        return;
    pg_shut(db); /* the server rolls back what it holds of us */
    db->connected = false;
}

static void pg_free(struct mp_db *db)
{
    struct pg_self *self = db->self;

    if (!self)
        return;
    for (size_t i = 0; i < MP_DB_PARAMS_MAX; i++)
        mp_buf_fini(&self->arrays[i]);
    mp_free(self->visible);
    mp_free(self);
}

const struct mp_db_ops mp_db_pg_ops = {
    .open = pg_open,
    .shut = pg_shut,
    .begin = pg_begin,
    .send = pg_send,
    .rows_begin = pg_rows_begin,
    .rows_add = pg_rows_add,
    .rows_end = pg_rows_end,
    .sync = pg_sync,
    .commit = pg_commit,
    .rollback = pg_rollback,
    .free = pg_free,
};
