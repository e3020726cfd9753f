/* net/pg.c - libpq without its waits.
 *
 * libpq's own waiting functions (PQgetResult on a busy connection, PQconnectdb) wait for ever, so
 * they are never called where they could: poll() with the time that is left stands in front of
 * each read and write.
 *
 * P1  the connection is non-blocking and in pipeline mode from open to close
 * P2  a wait that ran out leaves the connection unusable: what the server did is not known
 * P3  every text of libpq passes clean_text, which takes the password out
 * P4  a prepared statement is used by name once its PREPARE was answered, or behind it in the
 *     same batch; one whose PREPARE failed or was not run is prepared again
 * P5  a batch that went well has one answer to each message; with fewer or more of them, as from
 *     something else in the server's place, it is not known what was done
 */
#include "net/pg.h"

#include "base/arena.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define NETWORK_MS_MAX 5000 /* a sync waits so much longer than the server was told to work */
#define STATEMENTS_MAX 1024 /* prepared on one connection; a power of two */

enum prepare_state { PREPARE_NONE, PREPARE_SENT, PREPARE_DONE };

struct prepared {
    const char *sql; /* NULL: free */
    enum prepare_state state;
    char name[12];
};

/* One queued message: a statement, or the PREPARE in front of one. */
struct slot {
    PGresult *answer;
    struct prepared *prepares; /* NULL: a statement */
};

struct mp_pg {
    PGconn *conn;
    const struct mp_env *env;
    uint32_t statement_ms_max;
    struct slot *slots;
    uint32_t *slot_of; /* by the number of the statement */
    uint32_t slots_used, sent, slot_room;
    struct prepared *prepared; /* [STATEMENTS_MAX], by address, linear probing; NULL: none yet */
    uint32_t prepared_count;
    bool batch_open, dead;
    char sqlstate[6];
    struct mp_arena scratch; /* values of one send */
};

/* How long a sync waits for answers: somewhat longer than the server was told to work. */
static uint32_t answer_ms(uint32_t statement_ms_max)
{
    uint32_t network_ms = statement_ms_max < NETWORK_MS_MAX ? statement_ms_max : NETWORK_MS_MAX;

    return statement_ms_max + network_ms;
}

static uint64_t deadline_in(const struct mp_env *env, uint64_t ms)
{
    return mp_now_mono_us(env) + ms * 1000;
}

/* Waits for the socket. False: the deadline has passed. */
static bool wait_for(const struct mp_env *env, int fd, short events, uint64_t deadline_us)
{
    for (;;) {
        struct pollfd item = {.fd = fd, .events = events};
        uint64_t now_us = mp_now_mono_us(env);
        int ready;

        if (now_us >= deadline_us)
            return false;
        ready = poll(&item, 1, (int)((deadline_us - now_us) / 1000 + 1));
        if (ready > 0)
            return true;
        if (ready == 0)
            return false;
        if (errno != EINTR)
            return true; /* libpq will find out what is wrong with it */
    }
}

/* libpq's text on one line, without the password (P3), its hints and places in the source. */
static void clean_text(PGconn *conn, const char *text, char *ret, size_t room)
{
    const char *password = conn ? PQpass(conn) : NULL;
    size_t used = 0, password_size = password ? strlen(password) : 0;
    bool line_start = true;

    while (*text && used + 4 < room) {
        if (line_start && (*text == '\t' || strncmp(text, "LOCATION:", 9) == 0)) {
            text += strcspn(text, "\n");
            text += *text == '\n';
            continue;
        }
        line_start = *text == '\n';
        if (password_size && strncmp(text, password, password_size) == 0) {
            memcpy(ret + used, "***", 3);
            used += 3;
            text += password_size;
            continue;
        }
        ret[used++] = line_start ? ' ' : *text;
        text++;
    }
    while (used && ret[used - 1] == ' ')
        used--;
    ret[used] = 0;
}

static void note_sqlstate(struct mp_pg *pg, const char *state)
{
    snprintf(pg->sqlstate, sizeof(pg->sqlstate), "%.5s", state ? state : "");
}

static enum mp_code lost(struct mp_pg *pg, struct mp_err *err, const char *what)
{
    char text[300];

    pg->dead = true;
    clean_text(pg->conn, PQerrorMessage(pg->conn), text, sizeof(text));
    return mp_err_set(err, MP_IO, "%s: %s", what, text[0] ? text : "the connection is gone");
}

static enum mp_code late(struct mp_pg *pg, struct mp_err *err, const char *what, uint32_t ms)
{
    pg->dead = true; /* P2 */
    return mp_err_set(err, MP_TIMEOUT, "%s: no answer within %u ms", what, ms);
}

/* --- open --- */

/* Before there is a session libpq gives no SQLSTATE but in its text, as "FATAL:  28P01: ...". */
static void sqlstate_of_text(struct mp_pg *pg)
{
    const char *text = PQerrorMessage(pg->conn);

    for (const char *at = strstr(text, ":  "); at; at = strstr(at + 1, ":  ")) {
        size_t run = strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");

        if (run == 5 && at[8] == ':')
            note_sqlstate(pg, at + 3);
    }
}

static enum mp_code refused_start(struct mp_pg *pg, struct mp_err *err)
{
    enum mp_code code = lost(pg, err, "connect");

    sqlstate_of_text(pg);
    if (strncmp(pg->sqlstate, "28", 2) == 0 || strncmp(pg->sqlstate, "3D", 2) == 0) {
        code = MP_BAD_CONFIG;
        if (err) {
            err->code = code;
            err->retriable = false;
            err->sys = *pg->sqlstate == '2' ? EACCES : ENOENT;
        }
    }
    return code;
}

static void ignore_notice(void *self, const PGresult *notice)
{
    (void)self, (void)notice;
}

/* Whether libpq can read the string. Its own words about that are not shown: they quote what it
 * could not read, and that may be a password. */
static bool parses(const char *conninfo)
{
    bool words = strchr(conninfo, '=') || strncmp(conninfo, "postgres://", 11) == 0 ||
                 strncmp(conninfo, "postgresql://", 13) == 0;
    PQconninfoOption *options;

    if (!words)
        return true; /* the name of a database */
    options = PQconninfoParse(conninfo, NULL);
    PQconninfoFree(options);
    return options;
}

bool mp_pg_knows(struct mp_str keyword)
{
    PQconninfoOption *options = PQconndefaults();
    bool known = false;

    for (const PQconninfoOption *option = options; option && option->keyword && !known; option++)
        known = mp_str_eq(keyword, mp_str_c(option->keyword));
    PQconninfoFree(options);
    return known;
}

/* What libpq says of a value that it will not try to connect with. */
static bool wrong_value(const PGconn *conn)
{
    const char *text = PQerrorMessage(conn);

    return strncmp(text, "invalid ", 8) == 0 || strncmp(text, "could not match ", 16) == 0;
}

static enum mp_code start(struct mp_pg *pg, const struct mp_pg_options *options, struct mp_err *err)
{
    char unanswered[16];
    const char *conninfo = mp_arena_str(&pg->scratch, options->conninfo).data;
    /* Where a keyword stands twice the later one counts: those before dbname are defaults. */
    const char *const words[][2] = {
        {"keepalives", "1"},
        {"keepalives_idle", "30"},
        {"keepalives_interval", "10"},
        {"keepalives_count", "3"},
        {"tcp_user_timeout", unanswered},
        {"fallback_application_name", options->application_name},
        {"dbname", conninfo},
        {"client_encoding", "UTF8"},
    };
    const char *keywords[sizeof(words) / sizeof(*words) + 1] = {NULL};
    const char *values[sizeof(words) / sizeof(*words) + 1] = {NULL};
    uint64_t deadline_us = deadline_in(pg->env, options->connect_ms_max);
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;

    if (!parses(conninfo))
        return mp_err_set(err, MP_BAD_CONFIG, "the connection string does not parse");
    snprintf(unanswered, sizeof(unanswered), "%u", answer_ms(options->statement_ms_max));
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        keywords[i] = words[i][0];
        values[i] = words[i][1];
    }
    pg->conn = PQconnectStartParams(keywords, values, 1);
    if (!pg->conn)
        return mp_err_set(err, MP_IO, "connect: libpq has no memory");
    if (PQstatus(pg->conn) == CONNECTION_BAD) {
        enum mp_code code = lost(pg, err, "connect");

        if (!wrong_value(pg->conn))
            return code;
        if (err) {
            err->code = MP_BAD_CONFIG;
            err->retriable = false;
        }
        return MP_BAD_CONFIG;
    }
    PQsetNoticeReceiver(pg->conn, ignore_notice, NULL);
    PQsetErrorVerbosity(pg->conn, PQERRORS_VERBOSE); /* for sqlstate_of_text */
    while (status != PGRES_POLLING_OK) {
        short events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT;

        if (!wait_for(pg->env, PQsocket(pg->conn), events, deadline_us))
            return late(pg, err, "connect", options->connect_ms_max);
        status = PQconnectPoll(pg->conn);
        if (status == PGRES_POLLING_FAILED)
            return refused_start(pg, err);
    }
    PQsetErrorVerbosity(pg->conn, PQERRORS_DEFAULT);
    if (PQsetnonblocking(pg->conn, 1) || !PQenterPipelineMode(pg->conn)) /* P1 */
        return lost(pg, err, "connect");
    return MP_OK;
}

static enum mp_code set_up(struct mp_pg *pg, struct mp_err *err)
{
    char statement[16], idle[16];

    snprintf(statement, sizeof(statement), "%u", pg->statement_ms_max);
    /* A process that was stopped inside a transaction must not hold the others up for ever. */
    snprintf(idle, sizeof(idle), "%u", 2 * pg->statement_ms_max);
    mp_pg_send(pg,
               "SELECT set_config('TimeZone', 'UTC', false),"
               " set_config('DateStyle', 'ISO, YMD', false),"
               " set_config('client_min_messages', 'error', false),"
               " set_config('statement_timeout', $1, false),"
               " set_config('idle_in_transaction_session_timeout', $2, false)",
               (const struct mp_pg_value[]){{mp_str_c(statement), MP_PG_TEXT},
                                            {mp_str_c(idle), MP_PG_TEXT}},
               2);
    return mp_pg_sync(pg, err);
}

enum mp_code mp_pg_open(const struct mp_pg_options *options, const struct mp_env *env,
                        struct mp_err *err, struct mp_pg **ret)
{
    struct mp_pg *pg = mp_alloc(sizeof(*pg));
    enum mp_code code;

    assert(options->connect_ms_max && options->statement_ms_max);
    pg->env = env;
    pg->statement_ms_max = options->statement_ms_max;
    mp_arena_init(&pg->scratch, 0);
    code = start(pg, options, err);
    if (!code)
        code = set_up(pg, err);
    if (code)
        mp_pg_close(pg);
    else
        *ret = pg;
    return code;
}

void mp_pg_forget(struct mp_pg *pg)
{
    for (uint32_t i = 0; i < pg->slots_used; i++)
        PQclear(pg->slots[i].answer);
    pg->slots_used = pg->sent = 0;
}

void mp_pg_close(struct mp_pg *pg)
{
    if (!pg)
        return;
    mp_pg_forget(pg);
    PQfinish(pg->conn);
    mp_arena_fini(&pg->scratch);
    mp_free(pg->slots);
    mp_free(pg->slot_of);
    mp_free(pg->prepared);
    mp_free(pg);
}

bool mp_pg_alive(const struct mp_pg *pg)
{
    return !pg->dead && PQstatus(pg->conn) == CONNECTION_OK;
}

bool mp_pg_stands(const struct mp_pg *pg)
{
    struct pollfd item = {.fd = PQsocket(pg->conn), .events = POLLIN};

    return mp_pg_alive(pg) && poll(&item, 1, 0) == 0;
}

bool mp_pg_in_transaction(const struct mp_pg *pg)
{
    PGTransactionStatusType status = PQtransactionStatus(pg->conn);

    return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

const char *mp_pg_sqlstate(const struct mp_pg *pg)
{
    return pg->sqlstate;
}

/* --- batches --- */

static void add_slot(struct mp_pg *pg, struct prepared *prepares)
{
    if (pg->slots_used == pg->slot_room) {
        pg->slot_room = pg->slot_room ? pg->slot_room * 2 : 32;
        pg->slots = mp_realloc(pg->slots, pg->slot_room * sizeof(*pg->slots));
        pg->slot_of = mp_realloc(pg->slot_of, pg->slot_room * sizeof(*pg->slot_of));
    }
    pg->slots[pg->slots_used++] = (struct slot){.prepares = prepares};
}

/* The entry of a literal, made where there is none; NULL: the table is full enough. */
static struct prepared *find_prepared(struct mp_pg *pg, const char *sql)
{
    size_t at = ((uintptr_t)sql >> 3) * 0x9e3779b97f4a7c15u >> 40;
    struct prepared *entry;

    if (!pg->prepared)
        pg->prepared = mp_alloc_array(STATEMENTS_MAX, sizeof(*pg->prepared));
    for (;; at++) {
        entry = &pg->prepared[at % STATEMENTS_MAX];
        if (entry->sql == sql)
            return entry;
        if (!entry->sql)
            break;
    }
    if (pg->prepared_count >= STATEMENTS_MAX / 2)
        return NULL;
    entry->sql = sql;
    snprintf(entry->name, sizeof(entry->name), "s%u", pg->prepared_count++);
    return entry;
}

static void send_values(struct mp_pg *pg, const char *sql, bool prepared,
                        const struct mp_pg_value *values, uint32_t count)
{
    struct prepared *entry = prepared ? find_prepared(pg, sql) : NULL;
    const char **texts;
    Oid *types;
    bool sent = true;

    if (!pg->batch_open)
        mp_pg_forget(pg);
    pg->batch_open = true;
    mp_arena_reset(&pg->scratch);
    texts = mp_arena_take(&pg->scratch, sizeof(*texts) * (count + 1));
    types = mp_arena_take(&pg->scratch, sizeof(*types) * (count + 1));
    for (uint32_t i = 0; i < count; i++) {
        struct mp_str text = values[i].text;

        assert(!text.size || !memchr(text.data, 0, text.size));
        texts[i] = text.data ? mp_arena_str(&pg->scratch, text).data : NULL;
        types[i] = values[i].type;
    }
    if (entry && entry->state == PREPARE_NONE) { /* P4 */
        add_slot(pg, entry);
        sent = PQsendPrepare(pg->conn, entry->name, sql, (int)count, types);
        entry->state = PREPARE_SENT;
    }
    add_slot(pg, NULL);
    pg->slot_of[pg->sent++] = pg->slots_used - 1;
    if (sent && entry)
        sent = PQsendQueryPrepared(pg->conn, entry->name, (int)count, texts, NULL, NULL, 0);
    else if (sent)
        sent = PQsendQueryParams(pg->conn, sql, (int)count, types, texts, NULL, NULL, 0);
    if (!sent)
        pg->dead = true; /* sync says so */
}

void mp_pg_send(struct mp_pg *pg, const char *sql, const struct mp_pg_value *values, uint32_t count)
{
    send_values(pg, sql, false, values, count);
}

void mp_pg_send_prepared(struct mp_pg *pg, const char *sql, const struct mp_pg_value *values,
                         uint32_t count)
{
    send_values(pg, sql, true, values, count);
}

static enum mp_code odd(struct mp_pg *pg, struct mp_err *err)
{
    pg->dead = true;
    return mp_err_set(err, MP_IO, "the server's answers do not fit what it was asked");
}

/* Notes the answer to the message in that slot; the first failure is the batch's. */
static void take(struct mp_pg *pg, PGresult *answer, uint32_t number, enum mp_code *code,
                 struct mp_err *err)
{
    ExecStatusType status = PQresultStatus(answer);
    char text[300];

    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        if (number >= pg->slots_used || pg->slots[number].answer) { /* P5 */
            *code = odd(pg, err);
            PQclear(answer);
            return;
        }
        if (pg->slots[number].prepares)
            pg->slots[number].prepares->state = PREPARE_DONE;
        pg->slots[number].answer = answer;
        return;
    }
    if (status != PGRES_PIPELINE_ABORTED && *code == MP_OK) {
        note_sqlstate(pg, PQresultErrorField(answer, PG_DIAG_SQLSTATE));
        clean_text(pg->conn, PQresultErrorMessage(answer), text, sizeof(text));
        *code = mp_err_set(err, MP_REFUSED, "%s (%s)", text, pg->sqlstate);
    }
    PQclear(answer);
}

/* Reads answers that are there; false: more must come first. *done: the batch has ended. */
static void take_ready(struct mp_pg *pg, uint32_t *number, bool *done, enum mp_code *code,
                       struct mp_err *err)
{
    bool ended = false; /* two ends in a row: nothing more is expected */

    while (!*done && !PQisBusy(pg->conn)) {
        PGresult *answer = PQgetResult(pg->conn);

        if (!answer) {
            if (ended || PQstatus(pg->conn) == CONNECTION_BAD)
                return;
            ended = true;
            ++*number; /* of one statement */
            continue;
        }
        ended = false;
        if (PQresultStatus(answer) == PGRES_PIPELINE_SYNC) {
            *done = true;
            PQclear(answer);
        } else {
            take(pg, answer, *number, code, err);
        }
    }
}

/* Writes and reads until the batch has ended, the connection has, or the time has. */
static enum mp_code exchange(struct mp_pg *pg, struct mp_err *err)
{
    uint32_t ms = answer_ms(pg->statement_ms_max), number = 0;
    uint64_t deadline_us = deadline_in(pg->env, ms);
    bool done = false;
    enum mp_code code = MP_OK;

    while (!done) {
        int flushed = PQflush(pg->conn);
        bool there = flushed >= 0;

        if (there && !wait_for(pg->env, PQsocket(pg->conn), flushed ? POLLIN | POLLOUT : POLLIN,
                               deadline_us))
            return late(pg, err, "statement", ms);
        there = there && PQconsumeInput(pg->conn);
        /* also when the connection is gone: what the server said last may be there to be read */
        take_ready(pg, &number, &done, &code, err);
        if (!there || PQstatus(pg->conn) == CONNECTION_BAD)
            return code ? code : lost(pg, err, "statement");
    }
    for (uint32_t i = 0; !code && i < pg->slots_used; i++) /* P5 */
        if (!pg->slots[i].answer)
            code = odd(pg, err);
    return code;
}

enum mp_code mp_pg_sync(struct mp_pg *pg, struct mp_err *err)
{
    enum mp_code code;

    pg->sqlstate[0] = 0;
    if (!pg->batch_open)
        mp_pg_forget(pg); /* nothing was queued: what is there are the answers before */
    pg->batch_open = false;
    if (pg->dead || !PQpipelineSync(pg->conn))
        return lost(pg, err, "send");
    code = exchange(pg, err);
    for (uint32_t i = 0; code && i < pg->slots_used; i++) /* P4 */
        if (pg->slots[i].prepares && pg->slots[i].prepares->state == PREPARE_SENT)
            pg->slots[i].prepares->state = PREPARE_NONE;
    if (code == MP_OK || mp_pg_alive(pg))
        return code;
    pg->dead = true;
    if (code == MP_REFUSED && err) { /* said on the way out, as by a server that shuts down */
        err->code = MP_IO;
        err->retriable = true;
    }
    return code == MP_REFUSED ? MP_IO : code;
}

struct mp_pg_answer mp_pg_answer(const struct mp_pg *pg, uint32_t number)
{
    const PGresult *answer;

    assert(number < pg->sent && pg->slots[pg->slot_of[number]].answer);
    answer = pg->slots[pg->slot_of[number]].answer;
    return (struct mp_pg_answer){
        .rows = (uint32_t)PQntuples(answer),
        .columns = (uint32_t)PQnfields(answer),
        .changed = atoll(PQcmdTuples((PGresult *)answer)),
        .tag = PQcmdStatus((PGresult *)answer),
    };
}

struct mp_str mp_pg_cell(const struct mp_pg *pg, uint32_t number, uint32_t row, uint32_t column)
{
    const PGresult *answer = pg->slots[pg->slot_of[number]].answer;

    if (PQgetisnull(answer, (int)row, (int)column))
        return (struct mp_str){NULL, 0};
    return mp_str_n(PQgetvalue(answer, (int)row, (int)column),
                    (size_t)PQgetlength(answer, (int)row, (int)column));
}
