/* server/sql.c - see sql.h. */
#include "server/sql.h"

#include "base/mem.h"
#include "base/number.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct mp_sql {
    struct mp_sql *next; /* in the pool's idle list */
    struct mp_pg *pg;
    struct mp_arena scratch; /* texts of numbers of one send */
    uint32_t sent;           /* statements of the batch being queued */
    bool open_batch;
};

struct mp_sql_pool {
    struct mp_sql_pool_options options;
    char *conninfo;
    const struct mp_env *env;
    pthread_mutex_t lock; /* everything below */
    pthread_cond_t given;
    struct mp_sql *idle;
    uint32_t open, idle_count, waiting;
};

/* --- pool --- */

struct mp_sql_pool *mp_sql_pool_open(const struct mp_sql_pool_options *options,
                                     const struct mp_env *env)
{
    struct mp_sql_pool *pool = mp_alloc(sizeof(*pool));
    pthread_condattr_t monotonic;

    assert(options->size);
    pool->options = *options;
    pool->conninfo = mp_alloc(options->conninfo.size + 1);
    memcpy(pool->conninfo, options->conninfo.data, options->conninfo.size);
    pool->env = env;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->given, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return pool;
}

static void close_one(struct mp_sql *sql)
{
    mp_pg_close(sql->pg);
    mp_arena_fini(&sql->scratch);
    mp_free(sql);
}

void mp_sql_pool_close(struct mp_sql_pool *pool)
{
    if (!pool)
        return;
    assert(pool->open == pool->idle_count);
    while (pool->idle) {
        struct mp_sql *next = pool->idle->next;

        close_one(pool->idle);
        pool->idle = next;
    }
    pthread_cond_destroy(&pool->given);
    pthread_mutex_destroy(&pool->lock);
    mp_free(pool->conninfo);
    mp_free(pool);
}

struct mp_sql_pool_state mp_sql_pool_state(struct mp_sql_pool *pool)
{
    struct mp_sql_pool_state state;

    pthread_mutex_lock(&pool->lock);
    state =
        (struct mp_sql_pool_state){pool->options.size, pool->open, pool->idle_count, pool->waiting};
    pthread_mutex_unlock(&pool->lock);
    return state;
}

/* Plans are made once a statement and must stay good while tables grow from nothing: every
 * statement and every join has an index to go by, so indexes are what the planner shall take, and
 * the planner is told nothing of what columns hold (migrations/002_plans.sql). A bitmap for each
 * row that is looked up by its key, and a memory of keys that do not come twice, are a third of the
 * time of a page (pages.h). */
static enum mp_code set_up(struct mp_sql_pool *pool, struct mp_sql *sql, struct mp_err *err)
{
    char lock_ms[16];

    snprintf(lock_ms, sizeof(lock_ms), "%u", pool->options.lock_ms_max);
    mp_pg_send(sql->pg,
               "SELECT set_config('lock_timeout', $1, false),"
               " set_config('plan_cache_mode', 'force_generic_plan', false),"
               " set_config('enable_seqscan', 'off', false),"
               " set_config('enable_hashjoin', 'off', false),"
               " set_config('enable_mergejoin', 'off', false),"
               " set_config('enable_bitmapscan', 'off', false),"
               " set_config('enable_memoize', 'off', false),"
               " set_config('jit', 'off', false),"
               " set_config('work_mem', '32MB', false),"
               " set_config('synchronous_commit', $2, false)",
               (const struct mp_pg_value[]){
                   {mp_str_c(lock_ms), MP_PG_TEXT},
                   {pool->options.synchronous_commit ? MP_STR("on") : MP_STR("off"), MP_PG_TEXT}},
               2);
    return mp_pg_sync(sql->pg, err);
}

static enum mp_code open_one(struct mp_sql_pool *pool, struct mp_err *err, struct mp_sql **ret)
{
    struct mp_pg_options options = {
        .conninfo = mp_str_c(pool->conninfo),
        .application_name = "hoglaked",
        .connect_ms_max = pool->options.connect_ms_max,
        .statement_ms_max = pool->options.statement_ms_max,
    };
    struct mp_sql *sql = mp_alloc(sizeof(*sql));
    enum mp_code code;

    mp_arena_init(&sql->scratch, 0);
    code = mp_pg_open(&options, pool->env, err, &sql->pg);
    if (!code)
        code = set_up(pool, sql, err);
    if (code)
        close_one(sql);
    else
        *ret = sql;
    return code;
}

static struct timespec in_ms(uint32_t ms)
{
    struct timespec when;

    clock_gettime(CLOCK_MONOTONIC, &when);
    when.tv_sec += ms / 1000;
    when.tv_nsec += (long)(ms % 1000) * 1000000;
    if (when.tv_nsec >= 1000000000)
        when.tv_sec++, when.tv_nsec -= 1000000000;
    return when;
}

/* One that the server has left (it was restarted, say) would fail the next statement. */
static void close_left(struct mp_sql_pool *pool)
{
    while (pool->idle && !mp_pg_stands(pool->idle->pg)) {
        struct mp_sql *left = pool->idle;

        pool->idle = left->next;
        pool->idle_count--;
        pool->open--;
        close_one(left);
    }
}

enum mp_code mp_sql_take(struct mp_sql_pool *pool, struct mp_err *err, struct mp_sql **ret)
{
    struct timespec deadline = in_ms(pool->options.take_ms_max);
    struct mp_sql *sql = NULL;
    enum mp_code code = MP_OK;
    bool room = true;

    pthread_mutex_lock(&pool->lock);
    pool->waiting++;
    while (room && !pool->idle && pool->open == pool->options.size)
        room = pthread_cond_timedwait(&pool->given, &pool->lock, &deadline) == 0;
    pool->waiting--;
    close_left(pool);
    if (pool->idle) {
        sql = pool->idle;
        pool->idle = sql->next;
        pool->idle_count--;
    } else if (room || pool->open < pool->options.size) {
        pool->open++; /* the place of the one that is opened below */
    } else {
        code =
            mp_err_set(err, MP_TIMEOUT, "all %u database connections are busy", pool->options.size);
    }
    pthread_mutex_unlock(&pool->lock);
    if (!code && !sql) {
        code = open_one(pool, err, &sql);
        if (code) {
            pthread_mutex_lock(&pool->lock);
            pool->open--;
            pthread_cond_signal(&pool->given);
            pthread_mutex_unlock(&pool->lock);
        }
    }
    if (!code)
        *ret = sql;
    return code;
}

void mp_sql_give(struct mp_sql_pool *pool, struct mp_sql **taken)
{
    struct mp_sql *sql = *taken;

    if (!sql)
        return;
    *taken = NULL;
    mp_sql_drop_batch(sql);
    if (mp_sql_alive(sql) && mp_pg_in_transaction(sql->pg)) {
        mp_sql_say(sql, "ROLLBACK");
        mp_sql_drop_batch(sql);
    }
    if (!mp_sql_alive(sql) || mp_pg_in_transaction(sql->pg)) {
        close_one(sql);
        sql = NULL;
    }
    if (sql)
        mp_pg_forget(sql->pg); /* one that is idle holds no rows */
    pthread_mutex_lock(&pool->lock);
    if (sql) {
        sql->next = pool->idle;
        pool->idle = sql;
        pool->idle_count++;
    } else {
        pool->open--;
    }
    pthread_cond_signal(&pool->given);
    pthread_mutex_unlock(&pool->lock);
}

/* --- arrays --- */

void mp_sql_array_init(struct mp_sql_array *array, uint32_t type)
{
    *array = (struct mp_sql_array){.type = type, .buf = MP_BUF_INIT(SIZE_MAX / 4)};
}

void mp_sql_array_fini(struct mp_sql_array *array)
{
    mp_buf_fini(&array->buf);
}

static void next_item(struct mp_sql_array *array)
{
    mp_buf_add_byte(&array->buf, array->count++ ? ',' : '{');
}

void mp_sql_array_int(struct mp_sql_array *array, int64_t number)
{
    char text[MP_NUMBER_TEXT];
    size_t size = mp_i64_text(number, text);

    next_item(array);
    mp_buf_add(&array->buf, text, size);
}

void mp_sql_array_text(struct mp_sql_array *array, struct mp_str text)
{
    if (!text.data) {
        mp_sql_array_null(array);
        return;
    }
    next_item(array);
    mp_buf_add_byte(&array->buf, '"');
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '"' || text.data[i] == '\\')
            mp_buf_add_byte(&array->buf, '\\');
        mp_buf_add_byte(&array->buf, text.data[i]);
    }
    mp_buf_add_byte(&array->buf, '"');
}

void mp_sql_array_bytes(struct mp_sql_array *array, struct mp_str bytes)
{
    static const char digits[] = "0123456789abcdef";

    next_item(array);
    mp_buf_add_c(&array->buf, "\"\\\\x");
    for (size_t i = 0; i < bytes.size; i++) {
        mp_buf_add_byte(&array->buf, digits[(unsigned char)bytes.data[i] >> 4]);
        mp_buf_add_byte(&array->buf, digits[(unsigned char)bytes.data[i] & 15]);
    }
    mp_buf_add_byte(&array->buf, '"');
}

void mp_sql_array_null(struct mp_sql_array *array)
{
    next_item(array);
    mp_buf_add_c(&array->buf, "NULL");
}

struct mp_v mp_sql_array_value(struct mp_sql_array *array)
{
    if (!array->closed) {
        if (!array->count)
            mp_buf_add_byte(&array->buf, '{');
        mp_buf_add_byte(&array->buf, '}');
        array->closed = true;
    }
    return (struct mp_v){.type = array->type, .text = mp_buf_str(&array->buf)};
}

/* --- statements --- */

static struct mp_pg_value *values_of(struct mp_sql *sql, const struct mp_v *values, uint32_t count)
{
    struct mp_pg_value *texts;

    mp_arena_reset(&sql->scratch);
    texts = mp_arena_take(&sql->scratch, sizeof(*texts) * (count + 1));
    for (uint32_t i = 0; i < count; i++) {
        texts[i].type = values[i].type;
        if (values[i].null)
            continue;
        texts[i].text = values[i].text;
        if (values[i].numeric) {
            char *text = mp_arena_take(&sql->scratch, MP_NUMBER_TEXT);
            size_t size = mp_i64_text(values[i].number, text);

            texts[i].text = mp_str_n(text, size);
        }
    }
    return texts;
}

uint32_t mp_sql_send(struct mp_sql *sql, const char *statement, const struct mp_v *values,
                     uint32_t count)
{
    if (!sql->open_batch)
        sql->sent = 0;
    sql->open_batch = true;
    mp_pg_send_prepared(sql->pg, statement, values_of(sql, values, count), count);
    return sql->sent++;
}

uint32_t mp_sql_say(struct mp_sql *sql, const char *statement)
{
    return mp_sql_send(sql, statement, NULL, 0);
}

void mp_sql_script(struct mp_sql *sql, const char *text)
{
    if (!sql->open_batch)
        sql->sent = 0;
    sql->open_batch = true;
    mp_pg_send(sql->pg, text, NULL, 0);
    sql->sent++;
}

enum mp_code mp_sql_sync(struct mp_sql *sql, struct mp_err *err)
{
    static const struct {
        const char *state;
        enum mp_code code;
        int sys;
    } classes[] = {{"40001", MP_CONFLICT, 0},
                   {"40P01", MP_CONFLICT, 0},
                   {"55P03", MP_TIMEOUT, EBUSY},
                   {"57014", MP_TIMEOUT, 0},
                   {"22003", MP_FULL, 0}};
    enum mp_code code;

    sql->open_batch = false;
    code = mp_pg_sync(sql->pg, err);
    if (code != MP_REFUSED)
        return code;
    code = MP_BAD_DATA;
    for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
        if (!mp_sql_state_is(sql, classes[i].state))
            continue;
        code = classes[i].code;
        if (err)
            err->sys = classes[i].sys;
    }
    if (err)
        err->code = code;
    return code;
}

void mp_sql_drop_batch(struct mp_sql *sql)
{
    struct mp_err ignored;

    if (sql->open_batch)
        mp_sql_sync(sql, &ignored);
}

bool mp_sql_alive(const struct mp_sql *sql)
{
    return mp_pg_alive(sql->pg);
}

const char *mp_sql_state(const struct mp_sql *sql)
{
    return mp_pg_sqlstate(sql->pg);
}

bool mp_sql_state_is(const struct mp_sql *sql, const char *state)
{
    return strcmp(mp_pg_sqlstate(sql->pg), state) == 0;
}

uint32_t mp_sql_rows(const struct mp_sql *sql, uint32_t number)
{
    return mp_pg_answer(sql->pg, number).rows;
}

int64_t mp_sql_changed(const struct mp_sql *sql, uint32_t number)
{
    return mp_pg_answer(sql->pg, number).changed;
}

struct mp_str mp_sql_cell(const struct mp_sql *sql, uint32_t number, uint32_t row, uint32_t column)
{
    return mp_pg_cell(sql->pg, number, row, column);
}

struct mp_str mp_sql_copy(const struct mp_sql *sql, struct mp_arena *arena, uint32_t number,
                          uint32_t row, uint32_t column)
{
    struct mp_str cell = mp_pg_cell(sql->pg, number, row, column);

    return cell.data ? mp_arena_str(arena, cell) : cell;
}

bool mp_sql_null(const struct mp_sql *sql, uint32_t number, uint32_t row, uint32_t column)
{
    return !mp_pg_cell(sql->pg, number, row, column).data;
}

int64_t mp_sql_int(const struct mp_sql *sql, uint32_t number, uint32_t row, uint32_t column,
                   int64_t missing)
{
    struct mp_str cell = mp_pg_cell(sql->pg, number, row, column);

    return cell.data ? strtoll(cell.data, NULL, 10) : missing; /* libpq puts a NUL behind it */
}

bool mp_sql_true(const struct mp_sql *sql, uint32_t number, uint32_t row, uint32_t column)
{
    struct mp_str cell = mp_pg_cell(sql->pg, number, row, column);

    return cell.data && cell.data[0] == 't';
}

/* After  PostgreSQL documentation, "Array Input and Output Syntax". */
bool mp_sql_items_next(struct mp_sql_items *items, struct mp_buf *item, bool *ret_null)
{
    struct mp_str text = items->text;
    size_t i = items->at + 1; /* behind '{' or ',' */
    bool quoted;

    if (i >= text.size || text.data[i] == '}')
        return false;
    quoted = text.data[i] == '"';
    mp_buf_clear(item);
    for (i += quoted; i < text.size; i++) {
        char c = text.data[i];

        if (quoted ? c == '"' : c == ',' || c == '}')
            break;
        if (c == '\\')
            c = text.data[++i];
        mp_buf_add_byte(item, c);
    }
    items->at = i + quoted;
    *ret_null = !quoted && mp_str_eq(mp_buf_str(item), MP_STR("NULL"));
    return true;
}
