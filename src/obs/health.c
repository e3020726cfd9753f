/* obs/health.c - see health.h. The bodies begin as the Python program words them; what it does not
 * tell, why not, stands behind on the same line. */
#include "obs/health.h"

#include "base/mem.h"
#include "obs/log.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

enum { REASON_BYTES_MAX = 512 };

struct mp_health {
    const struct mp_env *env;
    uint64_t alive_us_max;
    pthread_mutex_t lock; /* everything below */
    uint64_t beat_us, flushed_us;
    bool flushed;
    char reason[MP_HEALTH_PARTS][REASON_BYTES_MAX]; /* "": the part is there */
};

/* What the probes tell, taken under the lock at one instant. */
struct view {
    double poll_s, flush_s, alive_s_max;
    bool flushed, alive, ready;
    char reason[MP_HEALTH_PARTS][REASON_BYTES_MAX];
};

static const char *const part_names[MP_HEALTH_PARTS] = {
    [MP_HEALTH_SOURCE] = "source", [MP_HEALTH_LAKE] = "lake", [MP_HEALTH_STORE] = "store"};

struct mp_health *mp_health_new(uint64_t alive_ms_max, const struct mp_env *env)
{
    struct mp_health *health = mp_alloc(sizeof(*health));

    health->env = env;
    health->alive_us_max = alive_ms_max * 1000;
    pthread_mutex_init(&health->lock, NULL);
    health->beat_us = mp_now_mono_us(env);
    for (int i = 0; i < MP_HEALTH_PARTS; i++)
        snprintf(health->reason[i], REASON_BYTES_MAX, "not yet reached");
    return health;
}

void mp_health_free(struct mp_health *health)
{
    if (!health)
        return;
    pthread_mutex_destroy(&health->lock);
    mp_free(health);
}

void mp_health_beat(struct mp_health *health)
{
    if (!health)
        return;
    pthread_mutex_lock(&health->lock);
    health->beat_us = mp_now_mono_us(health->env);
    pthread_mutex_unlock(&health->lock);
}

void mp_health_flushed(struct mp_health *health)
{
    if (!health)
        return;
    pthread_mutex_lock(&health->lock);
    health->flushed = true;
    health->flushed_us = mp_now_mono_us(health->env);
    pthread_mutex_unlock(&health->lock);
}

void mp_health_part(struct mp_health *health, enum mp_health_part part, const char *reason)
{
    if (!health)
        return;
    char text[REASON_BYTES_MAX] = "";

    assert(part < MP_HEALTH_PARTS);
    if (reason) /* text of others: made printable, for a line and for JSON alike */
        mp_log_sample(mp_str_c(*reason ? reason : "no answer"), sizeof(text), text, sizeof(text));
    pthread_mutex_lock(&health->lock);
    memcpy(health->reason[part], text, sizeof(text));
    pthread_mutex_unlock(&health->lock);
}

static struct view look(struct mp_health *health)
{
    struct view view;
    uint64_t now, poll_us;

    pthread_mutex_lock(&health->lock);
    now = mp_now_mono_us(health->env);
    poll_us = now - health->beat_us;
    view = (struct view){
        .poll_s = (double)poll_us / 1e6,
        .flush_s = health->flushed ? (double)(now - health->flushed_us) / 1e6 : 0,
        .alive_s_max = (double)health->alive_us_max / 1e6,
        .flushed = health->flushed,
        .alive = poll_us < health->alive_us_max,
    };
    memcpy(view.reason, health->reason, sizeof(view.reason));
    pthread_mutex_unlock(&health->lock);
    view.ready = view.alive;
    for (int i = 0; i < MP_HEALTH_PARTS; i++)
        view.ready = view.ready && !view.reason[i][0];
    return view;
}

bool mp_health_alive(struct mp_health *health)
{
    return look(health).alive;
}

bool mp_health_ready(struct mp_health *health)
{
    return look(health).ready;
}

static void print_ages(struct mp_buf *ret, const char *word, const struct view *view)
{
    mp_buf_printf(ret, "%s poll=%.1fs ago flush=", word, view->poll_s);
    if (view->flushed)
        mp_buf_printf(ret, "%.1fs ago", view->flush_s);
    else
        mp_buf_add_c(ret, "never");
}

static void print_reasons(struct mp_buf *ret, const struct view *view)
{
    size_t begin = ret->size;

    if (!view->alive)
        mp_buf_printf(ret, " loop: no turn for %.1f s, at most %.1f", view->poll_s,
                      view->alive_s_max);
    for (int i = 0; i < MP_HEALTH_PARTS; i++)
        if (view->reason[i][0])
            mp_buf_printf(ret, "%s %s: %s", ret->size > begin ? ";" : "", part_names[i],
                          view->reason[i]);
}

void mp_health_print_alive(struct mp_health *health, struct mp_buf *ret)
{
    struct view view = look(health);

    print_ages(ret, view.alive ? "ok" : "unhealthy", &view);
    if (!view.alive)
        print_reasons(ret, &view);
    mp_buf_add_byte(ret, '\n');
}

void mp_health_print_ready(struct mp_health *health, struct mp_buf *ret)
{
    struct view view = look(health);

    print_ages(ret, view.ready ? "ok" : "not ready", &view);
    if (!view.ready)
        print_reasons(ret, &view);
    mp_buf_add_byte(ret, '\n');
}

void mp_health_print_json(struct mp_health *health, struct mp_buf *ret)
{
    struct view view = look(health);

    mp_buf_printf(ret, "\"alive\": %s, \"ready\": %s, \"poll_seconds\": %.1f, \"flush_seconds\": ",
                  view.alive ? "true" : "false", view.ready ? "true" : "false", view.poll_s);
    if (view.flushed)
        mp_buf_printf(ret, "%.1f", view.flush_s);
    else
        mp_buf_add_c(ret, "null");
    for (int i = 0; i < MP_HEALTH_PARTS; i++) {
        mp_buf_printf(ret, ", \"%s\": ", part_names[i]);
        mp_buf_add_json(ret, mp_str_c(view.reason[i][0] ? view.reason[i] : "ok"));
    }
}
