/* pipeline/include_poll.c - see include_poll.h.
 *
 * Until the first list is accepted in authoritative mode somebody waits for it, so it is asked for
 * at a quicker pace.
 */
#include "pipeline/include_poll.h"

#include "base/mem.h"
#include "net/http_client.h"
#include "pipeline/include.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    BODY_BYTES_MAX = 4 << 20,
    FIRST_AGAIN_MS = 2000, /* while somebody waits for the first list */
    NAP_MS = 50,           /* an end is seen within this */
    TOLD_MAX = 10,         /* more values than this enter in one line */
    SHOWN_BYTES_MAX = 200, /* of a value in a line */
};

static const char logger[] = "millpond.include_values";

struct mp_include_poll {
    struct mp_include_poll_options options;
    const struct mp_env *env;
    struct mp_log *log;
    struct mp_metrics *metrics;

    /* the thread's own */
    struct mp_include *include;
    struct mp_include_list fixed;       /* the static values, sorted */
    struct mp_arena fixed_arena, arena; /* arena: of one poll */
    struct mp_http_client *http;
    struct mp_http_call call;
    struct mp_http_header header;

    pthread_t thread;
    atomic_bool ending;
    pthread_mutex_t lock; /* over what follows */
    bool accepted;
    char why[256]; /* the last list was not accepted; "": there was none */
};

static void tell_value(struct mp_include_poll *p, const char *what, struct mp_str value)
{
    char shown[SHOWN_BYTES_MAX * 4 + 1];
    struct mp_str text = mp_log_sample(value, SHOWN_BYTES_MAX, shown, sizeof(shown));

    mp_log(p->log, MP_LOG_WARN, logger, "Include value %s: %.*s", what, MP_STR_ARG(text));
}

static void tell_changes(struct mp_include_poll *p, const struct mp_include_changes *changes)
{
    if (changes->added_count)
        mp_metric_add(p->metrics, MP_M_INCLUDE_VALUES_CHANGES, "add", changes->added_count);
    if (changes->removed_count)
        mp_metric_add(p->metrics, MP_M_INCLUDE_VALUES_CHANGES, "remove", changes->removed_count);
    for (uint32_t i = 0; i < changes->added_count && changes->added_count <= TOLD_MAX; i++)
        tell_value(p, "added", changes->added[i]);
    if (changes->added_count > TOLD_MAX)
        mp_log(p->log, MP_LOG_WARN, logger, "Include values added: %u", changes->added_count);
    for (uint32_t i = 0; i < changes->removed_count; i++)
        tell_value(p, "removed", changes->removed[i]);
}

static void set_gauges(struct mp_include_poll *p)
{
    struct mp_include_counts counts = mp_include_counts(p->include);
    struct mp_include_list held = mp_include_held(p->include);

    mp_metric_set(p->metrics, MP_M_INCLUDE_VALUES_SIZE, NULL, counts.held);
    mp_metric_set(p->metrics, MP_M_INCLUDE_VALUES_PENDING_REMOVALS, NULL, counts.pending_removals);
    mp_metric_set(p->metrics, MP_M_INCLUDE_VALUES_PINNED, NULL, counts.pinned);
    mp_metric_set(p->metrics, MP_M_INCLUDE_VALUES_PINNED_ONLY, NULL, counts.pinned_only);
    if (p->options.authoritative)
        return;
    mp_metric_set(p->metrics, MP_M_INCLUDE_VALUES_SHADOW_ONLY_STATIC, NULL,
                  mp_include_only(&p->fixed, &held));
    mp_metric_set(p->metrics, MP_M_INCLUDE_VALUES_SHADOW_ONLY_REMOTE, NULL,
                  mp_include_only(&held, &p->fixed));
}

/* Hands the held set out. */
static void give(struct mp_include_poll *p)
{
    struct mp_include_list held = mp_include_held(p->include);
    struct mp_filter_options keep = *p->options.keep;
    int64_t *integers = mp_alloc_array(held.count, sizeof(*integers));

    for (uint32_t i = 0; i < held.count && held.integer; i++)
        integers[i] = strtoll(held.texts[i].data, NULL, 10);
    keep.integer = held.integer;
    keep.integers = integers;
    keep.texts = held.texts;
    keep.count = held.count;
    p->options.on_list(p->options.self, &keep);
    mp_free(integers);
}

static void note(struct mp_include_poll *p, bool accepted, const char *why)
{
    pthread_mutex_lock(&p->lock);
    p->accepted |= accepted;
    snprintf(p->why, sizeof(p->why), "%s", why);
    pthread_mutex_unlock(&p->lock);
}

static void refused(struct mp_include_poll *p, const char *reason, uint32_t served)
{
    char why[96];

    snprintf(why, sizeof(why), "a list of %u values was refused: %s", served, reason);
    note(p, false, why);
    mp_metric_add(p->metrics, MP_M_INCLUDE_VALUES_REFUSED, reason, 1);
    mp_log(p->log, MP_LOG_ERROR, logger, "Include values refused (%s): %u served, %u held", reason,
           served, mp_include_counts(p->include).held);
}

static void take(struct mp_include_poll *p, const struct mp_include_list *served)
{
    struct mp_include_changes changes;
    enum mp_include_answer answer = mp_include_take(p->include, served, &changes);
    const char *reason = mp_include_answer_name(answer);

    if (reason)
        refused(p, reason, served->count);
    else
        mp_metric_set(p->metrics, MP_M_INCLUDE_VALUES_LAST_SUCCESS, NULL,
                      (double)mp_now_wall_us(p->env) / 1e6);
    /* handed out before it is counted: who sees the count may rely on the list */
    if (p->options.authoritative && (changes.added_count || changes.removed_count))
        give(p);
    tell_changes(p, &changes);
    set_gauges(p);
    if (!reason)
        note(p, true, "");
}

/* One request; false: the thread is to end. */
static bool ask(struct mp_include_poll *p)
{
    mp_http_start(p->http, &p->call);
    while (!mp_http_wait(p->http, NAP_MS))
        if (atomic_load(&p->ending)) {
            mp_http_cancel(p->http, &p->call);
            return false;
        }
    return true;
}

static enum mp_code read_answer(struct mp_include_poll *p, struct mp_err *err,
                                struct mp_include_list *ret)
{
    enum mp_code code = mp_http_call_code(&p->call, err);

    if (!code && p->call.status != 200)
        code = mp_err_set(err, MP_BAD_DATA, "the answer is %u, not 200", p->call.status);
    if (!code)
        code = mp_include_parse(&p->arena, mp_buf_str(&p->call.body), err, ret);
    return code;
}

static bool poll_once(struct mp_include_poll *p)
{
    struct mp_include_list served;
    struct mp_err err = {0};

    mp_arena_reset(&p->arena);
    if (!ask(p))
        return false;
    if (!read_answer(p, &err, &served)) {
        take(p, &served);
        return true;
    }
    note(p, false, err.text);
    mp_metric_add(p->metrics, MP_M_INCLUDE_VALUES_POLL_FAILURES, NULL, 1);
    mp_log(p->log, MP_LOG_WARN, logger, "Include values poll failed: %s", err.text);
    return true;
}

/* The interval, give or take a tenth, so that the pods of a fleet do not ask all at once. */
static uint64_t pause_us(struct mp_include_poll *p)
{
    uint64_t us = (uint64_t)p->options.poll_ms * 1000;
    uint64_t jitter = us / 5 ? mp_random_u64(p->env) % (us / 5) : 0;
    bool waited_for;

    pthread_mutex_lock(&p->lock);
    waited_for = p->options.authoritative && !p->accepted;
    pthread_mutex_unlock(&p->lock);
    us = us - us / 10 + jitter;
    return waited_for && us > FIRST_AGAIN_MS * 1000 ? FIRST_AGAIN_MS * 1000 : us;
}

static void *poll_main(void *self)
{
    struct mp_include_poll *p = self;

    while (!atomic_load(&p->ending) && poll_once(p)) {
        uint64_t left = pause_us(p), nap = NAP_MS * 1000;

        for (; left && !atomic_load(&p->ending); left -= nap) {
            nap = left < nap ? left : nap;
            mp_sleep_us(p->env, nap);
        }
    }
    return NULL;
}

static void poll_free(struct mp_include_poll *p)
{
    mp_http_call_fini(&p->call);
    mp_http_client_free(p->http);
    mp_include_free(p->include);
    mp_arena_fini(&p->arena);
    mp_arena_fini(&p->fixed_arena);
    pthread_mutex_destroy(&p->lock);
    mp_free(p);
}

/* The static values, to compare with. */
static void set_fixed(struct mp_include_poll *p)
{
    const struct mp_filter_options *keep = p->options.keep;
    struct mp_include_options only = {
        .pins = {keep->integer, keep->texts, keep->count}, .removal_polls = 1, .uuid = keep->uuid};
    struct mp_include *fixed = mp_include_new(&only);
    struct mp_include_list list = mp_include_held(fixed);
    struct mp_str *texts = mp_arena_take(&p->fixed_arena, (list.count + 1) * sizeof(*texts));

    for (uint32_t i = 0; i < list.count; i++)
        texts[i] = mp_arena_str(&p->fixed_arena, list.texts[i]);
    p->fixed = (struct mp_include_list){list.integer, texts, list.count};
    mp_include_free(fixed);
}

enum mp_code mp_include_poll_open(const struct mp_include_poll_options *options,
                                  const struct mp_env *env, struct mp_log *log,
                                  struct mp_metrics *metrics, struct mp_err *err,
                                  struct mp_include_poll **ret)
{
    struct mp_include_poll *p = mp_alloc(sizeof(*p));
    struct mp_http_client_options http = {.connections_max = 1};
    struct mp_include_options include = {.removal_polls = options->removal_polls,
                                         .uuid = options->keep->uuid};

    assert(!options->authoritative || options->on_list);
    p->options = *options;
    p->env = env;
    p->log = log;
    p->metrics = metrics;
    pthread_mutex_init(&p->lock, NULL);
    mp_arena_init(&p->arena, 0);
    mp_arena_init(&p->fixed_arena, 0);
    set_fixed(p);
    if (options->authoritative)
        include.pins = p->fixed;
    p->include = mp_include_new(&include);
    p->http = mp_http_client_new(&http);
    p->header = (struct mp_http_header){options->header_name, options->header_value};
    p->call = (struct mp_http_call){.method = "GET",
                                    .url = options->url,
                                    .headers = &p->header,
                                    .header_count = options->header_name.size ? 1 : 0,
                                    .total_ms_max = options->request_ms_max,
                                    .body = MP_BUF_INIT(BODY_BYTES_MAX)};
    mp_metric_set(metrics, MP_M_INCLUDE_VALUES_MODE,
                  options->authoritative ? "authoritative" : "shadow", 1);
    set_gauges(p);
    if (pthread_create(&p->thread, NULL, poll_main, p)) {
        poll_free(p);
        return mp_err_set(err, MP_IO, "the system gives no thread");
    }
    *ret = p;
    return MP_OK;
}

enum mp_code mp_include_poll_accepted(struct mp_include_poll *p, struct mp_err *err)
{
    enum mp_code code = MP_OK;

    pthread_mutex_lock(&p->lock);
    if (!p->accepted)
        code = mp_err_set(err, p->why[0] ? MP_IO : MP_TIMEOUT, "%s",
                          p->why[0] ? p->why : "no answer yet");
    pthread_mutex_unlock(&p->lock);
    return code;
}

void mp_include_poll_close(struct mp_include_poll *p)
{
    if (!p)
        return;
    atomic_store(&p->ending, true);
    pthread_join(p->thread, NULL);
    poll_free(p);
}
