/* server/background/background.c - see background.h: the threads and the ledger. */
#include "server/background/background.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <pthread.h>
#include <time.h>

enum {
    PROBE_EVERY_MS = 1000,
    LOOP_EVERY_MS = 200,
    PLANNER_EVERY_MS = 10000,
    RENEW_EVERY_MS = 2000,
    THREADS_MAX = 4,
};

struct mp_background {
    struct mp_server *server;
    struct mp_objects *objects;
    pthread_t threads[THREADS_MAX];
    uint32_t thread_count; /* started */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
    uint64_t due_us[MP_TASKS];
};

const char *const mp_task_names[MP_TASKS] = {
    [MP_TASK_HYDRATOR] = "hydrator",     [MP_TASK_EXPIRY] = "expiry",
    [MP_TASK_CLEANUP] = "cleanup",       [MP_TASK_COMPACTION] = "compaction",
    [MP_TASK_RETIREMENT] = "retirement",
};

static mp_task_run *const task_runs[MP_TASKS] = {
    [MP_TASK_HYDRATOR] = mp_task_hydrator,     [MP_TASK_EXPIRY] = mp_task_expiry,
    [MP_TASK_CLEANUP] = mp_task_cleanup,       [MP_TASK_COMPACTION] = mp_task_compaction,
    [MP_TASK_RETIREMENT] = mp_task_retirement,
};

int64_t mp_background_interval_ms(const struct mp_server *server, enum mp_task task)
{
    const struct mp_server_settings *settings = server->settings;

    switch (task) {
    case MP_TASK_HYDRATOR:
        return settings->HOGLAKE_HYDRATOR_INTERVAL_MS;
    case MP_TASK_EXPIRY:
        return settings->HOGLAKE_EXPIRY_INTERVAL_MS;
    case MP_TASK_CLEANUP:
        return settings->HOGLAKE_CLEANUP_INTERVAL_MS;
    case MP_TASK_COMPACTION:
        return settings->HOGLAKE_COMPACTION_INTERVAL_MS;
    case MP_TASK_RETIREMENT:
        return settings->HOGLAKE_RETIREMENT_INTERVAL_MS;
    case MP_TASKS:
        break;
    }
    return 0;
}

struct mp_objects *mp_background_objects(struct mp_server *server)
{
    return server->background->objects;
}

/* --- one run --- */

/* Loop runs that found nothing to do are not worth a row. */
static bool quiet(struct mp_str result)
{
    for (size_t i = 0; i + 1 < result.size; i++)
        if (result.data[i] == ':' && result.data[i + 1] >= '1' && result.data[i + 1] <= '9')
            return false;
    return true;
}

static void write_ledger(struct mp_call *call, enum mp_task task, struct mp_str catalog,
                         int64_t took_us, bool manual, enum mp_code code, struct mp_str result)
{
    struct mp_err ignored;

    if ((!manual && !code && quiet(result)) || mp_call_sql(call))
        return;
    mp_utf8_repair(call->err.text); /* PostgreSQL would not take the row */
    MP_SQL(
        call->sql,
        "INSERT INTO hog_maintenance_run (catalog_id, task, run_trigger, started_us,"
        " finished_us, status, error, result) SELECT catalog_id, $2, $3, now_us - $4, now_us, $5,"
        " $6, $7::text::json FROM hog_catalog CROSS JOIN hog_now_us() AS now_us WHERE name = $1",
        mp_v_text(catalog), mp_v_c(mp_task_names[task]), mp_v_c(manual ? "manual" : "loop"),
        mp_v_int(took_us), mp_v_c(code ? "failed" : "ok"),
        code ? mp_v_c(call->err.text) : mp_v_null(MP_PG_TEXT),
        code ? mp_v_null(MP_PG_TEXT) : mp_v_text(result));
    mp_sql_sync(call->sql, &ignored);
}

enum mp_code mp_background_run(struct mp_call *call, enum mp_task task, struct mp_str catalog,
                               int64_t batch, bool manual, struct mp_buf *ret)
{
    uint64_t began_us = mp_now_mono_us(call->server->env);
    enum mp_code code = task_runs[task](call, catalog, batch, ret);

    if (code != MP_REFUSED)
        write_ledger(call, task, catalog, (int64_t)(mp_now_mono_us(call->server->env) - began_us),
                     manual, code, mp_buf_str(ret));
    return code;
}

/* --- the loop --- */

static bool stopping(struct mp_background *background)
{
    bool stop;

    pthread_mutex_lock(&background->lock);
    stop = background->stop;
    pthread_mutex_unlock(&background->lock);
    return stop;
}

static struct mp_str *list_catalogs(struct mp_call *call, uint32_t *ret_count)
{
    struct mp_str *names = NULL;
    uint32_t number;

    *ret_count = 0;
    if (mp_call_sql(call))
        return NULL;
    number = mp_sql_say(call->sql, "SELECT name FROM hog_catalog ORDER BY name");
    if (mp_sql_sync(call->sql, &call->err))
        return NULL;
    *ret_count = mp_sql_rows(call->sql, number);
    names = mp_arena_take(&call->arena, (*ret_count + 1) * sizeof(*names));
    for (uint32_t i = 0; i < *ret_count; i++)
        names[i] = mp_sql_copy(call->sql, &call->arena, number, i, 0);
    return names;
}

static void run_task(struct mp_background *background, enum mp_task task)
{
    struct mp_server *server = background->server;
    struct mp_call list;
    struct mp_str *names;
    uint32_t count;

    mp_call_init(&list, server);
    names = list_catalogs(&list, &count);
    mp_sql_give(server->pool, &list.sql);
    for (uint32_t i = 0; i < count && !stopping(background); i++) {
        struct mp_call call;
        enum mp_code code;

        mp_call_init(&call, server);
        code = mp_background_run(&call, task, names[i], 0, false, &call.out);
        if (code && code != MP_REFUSED) {
            mp_server_metrics_add(server->metrics, MP_SM_LOOP_FAILURES, mp_task_names[task], 1);
            mp_log(server->log, MP_LOG_WARN, "hoglake.background", "%s of %.*s: %s",
                   mp_task_names[task], MP_STR_ARG(names[i]), call.err.text);
        }
        mp_call_fini(&call);
    }
    mp_call_fini(&list);
}

/* Sleeps; false: it is time to stop. */
static bool rest(struct mp_background *background, uint32_t ms)
{
    struct timespec until;
    bool stop;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&background->lock);
    if (!background->stop)
        pthread_cond_timedwait(&background->wake, &background->lock, &until);
    stop = background->stop;
    pthread_mutex_unlock(&background->lock);
    return !stop;
}

static void *loop(void *self)
{
    struct mp_background *background = self;
    const struct mp_env *env = background->server->env;
    uint64_t planner_due_us = 0;

    for (int task = 0; task < MP_TASKS; task++)
        background->due_us[task] =
            mp_now_mono_us(env) +
            (uint64_t)mp_background_interval_ms(background->server, (enum mp_task)task) * 1000;
    while (rest(background, LOOP_EVERY_MS)) {
        if (mp_now_mono_us(env) >= planner_due_us) {
            mp_planner_refresh(background->server);
            planner_due_us = mp_now_mono_us(env) + PLANNER_EVERY_MS * 1000;
        }
        for (int task = 0; task < MP_TASKS; task++) {
            int64_t every_ms = mp_background_interval_ms(background->server, (enum mp_task)task);

            if (!every_ms || mp_now_mono_us(env) < background->due_us[task])
                continue;
            run_task(background, (enum mp_task)task);
            background->due_us[task] = mp_now_mono_us(env) + (uint64_t)every_ms * 1000;
        }
    }
    return NULL;
}

/* --- the probe --- */

static enum mp_code probe_once(struct mp_server *server, struct mp_pg **pg)
{
    uint32_t ms = (uint32_t)server->settings->HOGLAKE_HEALTH_PROBE_TIMEOUT_MS;
    struct mp_pg_options options = {.conninfo = server->settings->database,
                                    .application_name = "hoglaked probe",
                                    .connect_ms_max = ms,
                                    .statement_ms_max = ms};
    struct mp_err err;
    enum mp_code code = *pg ? MP_OK : mp_pg_open(&options, server->env, &err, pg);

    if (code) {
        *pg = NULL;
        return code;
    }
    mp_pg_send(*pg, "SELECT 1", NULL, 0);
    code = mp_pg_sync(*pg, &err);
    if (code) {
        mp_pg_close(*pg);
        *pg = NULL;
    }
    return code;
}

static void *prober(void *self)
{
    struct mp_background *background = self;
    struct mp_server *server = background->server;
    struct mp_pg *pg = NULL;
    uint32_t hung = 0;

    do {
        enum mp_code code = probe_once(server, &pg);
        bool up = !code;

        hung = code == MP_TIMEOUT ? hung + 1 : 0;
        mp_server_metrics_set(server->metrics, MP_SM_PROBES_HUNG, hung);
        if (up != atomic_exchange(&server->database_up, up))
            mp_log(server->log, up ? MP_LOG_INFO : MP_LOG_ERROR, "hoglake.probe", "the database %s",
                   up ? "answers again" : "does not answer");
    } while (rest(background, PROBE_EVERY_MS));
    mp_pg_close(pg);
    return NULL;
}

/* --- the sampler --- */

static void *sampler(void *self)
{
    struct mp_background *background = self;
    struct mp_server *server = background->server;
    uint32_t every_ms = (uint32_t)server->settings->HOGLAKE_METRICS_INTERVAL_MS;

    do
        mp_sample(server);
    while (rest(background, every_ms));
    return NULL;
}

/* --- the certificate --- */

static void *renewer(void *self)
{
    struct mp_background *background = self;
    struct mp_server *server = background->server;

    while (rest(background, RENEW_EVERY_MS)) {
        struct mp_err err;
        bool renewed;

        if (mp_http_tls_renew(server->tls, &err, &renewed)) {
            mp_log(server->log, MP_LOG_WARN, "hoglake.tls",
                   "the certificate stays as it was: the files cannot be used: %s", err.text);
            mp_server_metrics_add(server->metrics, MP_SM_TLS_FAILURES, NULL, 1);
        } else if (renewed) {
            mp_log(server->log, MP_LOG_INFO, "hoglake.tls",
                   "new connections get the certificate that %s holds now",
                   server->settings->HOGLAKE_TLS_CERT_FILE.data);
            mp_server_metrics_add(server->metrics, MP_SM_TLS_RENEWED, NULL, 1);
        }
    }
    return NULL;
}

/* --- life --- */

static bool start(struct mp_background *background, void *(*run)(void *))
{
    pthread_t *thread = &background->threads[background->thread_count];
    bool started = pthread_create(thread, NULL, run, background) == 0;

    background->thread_count += started;
    return started;
}

enum mp_code mp_background_open(struct mp_server *server, struct mp_err *err,
                                struct mp_background **ret)
{
    struct mp_background *background = mp_alloc(sizeof(*background));
    bool sampled = server->settings->HOGLAKE_METRICS_INTERVAL_MS > 0;
    pthread_condattr_t monotonic;

    background->server = server;
    background->objects = mp_objects_new(server);
    pthread_mutex_init(&background->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&background->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *ret = background;
    if (!start(background, prober) || !start(background, loop) ||
        (sampled && !start(background, sampler)) || (server->tls && !start(background, renewer)))
        return mp_err_set(err, MP_IO, "the background threads did not start");
    return MP_OK;
}

void mp_background_close(struct mp_background *background)
{
    if (!background)
        return;
    pthread_mutex_lock(&background->lock);
    background->stop = true;
    pthread_cond_broadcast(&background->wake);
    pthread_mutex_unlock(&background->lock);
    for (uint32_t i = 0; i < background->thread_count; i++)
        pthread_join(background->threads[i], NULL);
    mp_objects_free(background->objects);
    pthread_cond_destroy(&background->wake);
    pthread_mutex_destroy(&background->lock);
    mp_free(background);
}
