/* obs/otlp.c - see otlp.h.
 *
 * The sink encodes a line and puts it into a ring under the queue's lock, which is never held
 * around anything that waits. The thread naps in short steps until a batch is due, takes it out,
 * and from then on is alone with it.
 *
 * Not chosen: a queue without a bound in bytes. A line may have 64 KiB and more, and 4096 of them
 * were more memory than the batch of events.
 */
#include "obs/otlp.h"

#include "base/arena.h"
#include "base/mem.h"
#include "net/http_client.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum {
    ATTEMPTS_MAX = 4,
    AGAIN_MS_MAX = 30000,
    NAP_MS = 50,
    RECORD_BYTES_MAX = 1 << 20,
    QUEUE_BYTES_MAX = 16 << 20,
    BATCH_BYTES_MAX = 4 << 20, /* a batch is closed by the line that passes it */
    ANSWER_BYTES_MAX = 4096,
    ATTRIBUTES_MAX = 128,
};

static const char own_logger[] = "millpond.otlp";

struct line {
    char *logger;
    struct mp_buf record;
    uint64_t mono_us; /* when it came */
};

struct mp_otlp {
    struct mp_otlp_options options; /* numbers; its texts are not kept */
    const struct mp_env *env;
    struct mp_log *log;
    struct mp_metrics *metrics;
    struct mp_log_sink sink;

    struct mp_arena arena; /* of url, headers, attributes */
    struct mp_otlp_attribute attributes[ATTRIBUTES_MAX];
    uint32_t attribute_count;

    /* the thread's own */
    struct mp_http_client *http;
    struct mp_http_call call;
    struct mp_http_header headers[2];
    struct mp_str piece;
    struct mp_buf request;
    struct line *batch; /* [batch_max] */
    uint32_t batch_count;
    bool failing;
    uint64_t lost; /* since it began to fail */

    pthread_t thread;
    atomic_bool ending;
    atomic_uint_least64_t deadline_us; /* monotonic; set before ending */
    pthread_mutex_t lock;              /* over what follows */
    struct line *queue;                /* [queue_max], a ring */
    uint32_t first, count;
    size_t queue_bytes;
};

/* --- the log's side ------------------------------------------------------------------------- */

static void line_free(struct line *line)
{
    mp_free(line->logger);
    mp_buf_fini(&line->record);
    *line = (struct line){0};
}

static void dropped(struct mp_otlp *o, const char *reason, uint32_t count)
{
    if (count)
        mp_metric_add(o->metrics, MP_M_LOG_EXPORT_DROPPED, reason, count);
}

/* Takes the line; false: there is no room. */
static bool enqueue(struct mp_otlp *o, const struct line *line)
{
    bool room;

    pthread_mutex_lock(&o->lock);
    room = o->count < o->options.queue_max && o->queue_bytes + line->record.size <= QUEUE_BYTES_MAX;
    if (room) {
        o->queue[(o->first + o->count) % o->options.queue_max] = *line;
        o->count++;
        o->queue_bytes += line->record.size;
    }
    pthread_mutex_unlock(&o->lock);
    return room;
}

/* Bytes that the record cannot pass: three for each that is no UTF-8, and some around each text. */
static size_t record_bytes(const struct mp_log_line *line)
{
    size_t bytes = line->message.size * 3 + 256;

    for (uint32_t i = 0; i < line->field_count; i++)
        bytes += (strlen(line->fields[i].name) + line->fields[i].text.size) * 3 + 128;
    return bytes;
}

static void sink_line(void *self, const struct mp_log_line *from)
{
    struct mp_otlp *o = self;
    struct mp_otlp_record record = {
        .time_us = from->wall_us,
        .observed_us = from->wall_us,
        .level = from->level,
        .body = from->message,
        .fields = from->fields,
        .field_count = from->field_count,
    };
    struct line line = {.mono_us = mp_now_mono_us(o->env)};
    size_t bytes = record_bytes(from), logger_size = strlen(from->logger) + 1;

    if (strcmp(from->logger, own_logger) == 0)
        return; /* P4 */
    if (bytes > RECORD_BYTES_MAX) {
        dropped(o, "too_large", 1);
        return;
    }
    line.record.max = bytes;
    mp_otlp_add_record(&line.record, &record);
    line.logger = mp_alloc(logger_size);
    memcpy(line.logger, from->logger, logger_size);
    if (enqueue(o, &line))
        return;
    line_free(&line);
    dropped(o, "queue_full", 1); /* P1 */
}

/* --- the thread's side ---------------------------------------------------------------------- */

/* False: closing, and its time is over. */
static bool in_time(struct mp_otlp *o)
{
    return !atomic_load(&o->ending) || mp_now_mono_us(o->env) < atomic_load(&o->deadline_us);
}

/* Moves the oldest lines from the queue to the batch. Under the lock. */
static void take_batch(struct mp_otlp *o)
{
    size_t bytes = 0;

    while (o->count && o->batch_count < o->options.batch_max && bytes < BATCH_BYTES_MAX) {
        struct line *line = &o->queue[o->first];

        bytes += line->record.size;
        o->queue_bytes -= line->record.size;
        o->batch[o->batch_count++] = *line;
        *line = (struct line){0};
        o->first = (o->first + 1) % o->options.queue_max;
        o->count--;
    }
}

/* Waits for a batch that is due. False: closing, and nothing waits. */
static bool gather(struct mp_otlp *o)
{
    uint64_t batch_us = (uint64_t)o->options.batch_ms * 1000;

    assert(o->batch_count == 0);
    for (;;) {
        bool ending = atomic_load(&o->ending); /* before the look: what came before it is seen */
        uint64_t now = mp_now_mono_us(o->env);

        pthread_mutex_lock(&o->lock);
        if (o->count && (ending || o->count >= o->options.batch_max ||
                         now - o->queue[o->first].mono_us >= batch_us))
            take_batch(o);
        pthread_mutex_unlock(&o->lock);
        if (o->batch_count)
            return true;
        if (ending)
            return false;
        mp_sleep_us(o->env, NAP_MS * 1000);
    }
}

static void build_request(struct mp_otlp *o)
{
    size_t request;

    mp_buf_clear(&o->request);
    request = mp_otlp_request_open(&o->request, o->attributes, o->attribute_count);
    for (uint32_t i = 0; i < o->batch_count; i++) {
        const char *logger = o->batch[i].logger;
        bool told = false;
        size_t scope;

        for (uint32_t k = 0; k < i && !told; k++)
            told = strcmp(o->batch[k].logger, logger) == 0;
        if (told)
            continue;
        scope = mp_otlp_scope_open(&o->request, mp_str_c(logger));
        for (uint32_t k = i; k < o->batch_count; k++)
            if (strcmp(o->batch[k].logger, logger) == 0)
                mp_otlp_scope_add(&o->request, mp_buf_str(&o->batch[k].record));
        mp_otlp_part_close(&o->request, scope);
    }
    mp_otlp_part_close(&o->request, request);
}

static bool nap(struct mp_otlp *o, uint32_t ms)
{
    for (uint32_t left = ms; left && in_time(o);) {
        uint32_t step = left < NAP_MS ? left : NAP_MS;

        mp_sleep_us(o->env, (uint64_t)step * 1000);
        left -= step;
    }
    return in_time(o);
}

/* False: cut short by the end. */
static bool ask(struct mp_otlp *o)
{
    o->piece = mp_buf_str(&o->request);
    mp_http_start(o->http, &o->call);
    while (!mp_http_wait(o->http, NAP_MS))
        if (!in_time(o)) {
            mp_http_cancel(o->http, &o->call);
            return false;
        }
    return true;
}

/* MP_OK: taken. retriable says whether the same request may be taken later. */
static enum mp_code judge(const struct mp_http_call *call, struct mp_err *err)
{
    enum mp_code code = mp_http_call_code(call, err);

    if (code || (call->status >= 200 && call->status < 300))
        return code;
    code = mp_err_set(err, MP_REFUSED, "the answer is %u", call->status);
    err->sys = (int)call->status;
    err->retriable = call->status == 429 || call->status >= 500;
    return code;
}

static enum mp_code send_batch(struct mp_otlp *o, struct mp_err *err)
{
    uint32_t again_ms = o->options.again_ms;
    enum mp_code code = mp_err_set(err, MP_TIMEOUT, "closed before it was sent");

    build_request(o);
    for (uint32_t attempt = 0; attempt < ATTEMPTS_MAX && in_time(o); attempt++) {
        uint32_t wait_ms = again_ms / 2 + (uint32_t)(mp_random_u64(o->env) % (again_ms / 2 + 1));
        uint32_t asked_ms;

        if (!ask(o))
            return mp_err_set(err, MP_TIMEOUT, "not answered before the end");
        code = judge(&o->call, err);
        if (!code || !err->retriable)
            break;
        asked_ms = mp_http_call_retry_ms(&o->call, mp_now_wall_us(o->env));
        if (asked_ms > wait_ms)
            wait_ms = asked_ms;
        if (attempt + 1 == ATTEMPTS_MAX || !nap(o, wait_ms < AGAIN_MS_MAX ? wait_ms : AGAIN_MS_MAX))
            break;
        again_ms = again_ms < AGAIN_MS_MAX / 2 ? again_ms * 2 : AGAIN_MS_MAX;
    }
    return code;
}

/* Says when it begins to fail and when it works again, not each time in between. */
static void tell(struct mp_otlp *o, enum mp_code code, const struct mp_err *err)
{
    if (code) {
        dropped(o, "unsent", o->batch_count);
        o->lost += o->batch_count;
        if (!o->failing)
            mp_log(o->log, MP_LOG_WARN, own_logger, "Log export fails, lines are lost: %s",
                   err->text);
    } else {
        mp_metric_add(o->metrics, MP_M_LOG_EXPORTED, NULL, o->batch_count);
        if (o->failing)
            mp_log(o->log, MP_LOG_INFO, own_logger, "Log export works again; %llu lines were lost",
                   (unsigned long long)o->lost);
        o->lost = 0;
    }
    o->failing = code != MP_OK;
}

static void *otlp_main(void *self)
{
    struct mp_otlp *o = self;

    while (gather(o)) {
        struct mp_err err = {0};

        tell(o, send_batch(o, &err), &err);
        while (o->batch_count)
            line_free(&o->batch[--o->batch_count]);
    }
    return NULL;
}

/* --- attributes ----------------------------------------------------------------------------- */

static struct mp_str trimmed(struct mp_str text)
{
    while (text.size && (*text.data == ' ' || *text.data == '\t'))
        text.data++, text.size--;
    while (text.size && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'f')
        return (c | 32) - 'a' + 10;
    return -1;
}

/* A copy with %XX decoded. (RFC 3986, 2.1) */
static struct mp_str decoded(struct mp_arena *arena, struct mp_str text)
{
    char *bytes = mp_arena_take(arena, text.size + 1);
    size_t size = 0;

    for (size_t i = 0; i < text.size; i++) {
        int high = -1, low = -1;

        if (text.data[i] == '%' && i + 2 < text.size) {
            high = hex_value(text.data[i + 1]);
            low = hex_value(text.data[i + 2]);
        }
        if (high >= 0 && low >= 0) {
            bytes[size++] = (char)(high << 4 | low);
            i += 2;
        } else {
            bytes[size++] = text.data[i];
        }
    }
    return (struct mp_str){bytes, size};
}

/* Sets an attribute, in place of one of the same key. */
static void set_attribute(struct mp_otlp *o, struct mp_str key, struct mp_str value)
{
    uint32_t at = 0;

    while (at < o->attribute_count && !mp_str_eq(o->attributes[at].key, key))
        at++;
    if (at == ATTRIBUTES_MAX)
        return;
    o->attributes[at] = (struct mp_otlp_attribute){mp_arena_str(&o->arena, key), value};
    if (at == o->attribute_count)
        o->attribute_count++;
}

/* "key=value,key=value"; a part that is not of this form is told of and left out. */
static void set_more(struct mp_otlp *o, struct mp_str more)
{
    while (more.size) {
        const char *comma = memchr(more.data, ',', more.size), *equals;
        size_t size = comma ? (size_t)(comma - more.data) : more.size;
        struct mp_str part = trimmed(mp_str_n(more.data, size)), key;

        more.data += comma ? size + 1 : size;
        more.size -= comma ? size + 1 : size;
        if (!part.size)
            continue;
        equals = memchr(part.data, '=', part.size);
        key = trimmed(mp_str_n(part.data, equals ? (size_t)(equals - part.data) : 0));
        if (!key.size) {
            mp_log(o->log, MP_LOG_WARN, own_logger,
                   "A resource attribute is not of the form key=value and is left out: %.*s",
                   MP_STR_ARG(part));
            continue;
        }
        part.size -= (size_t)(equals + 1 - part.data);
        part.data = equals + 1;
        set_attribute(o, key, decoded(&o->arena, trimmed(part)));
    }
}

/* --- life ----------------------------------------------------------------------------------- */

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value ? value : otherwise;
}

static struct mp_otlp_options completed(const struct mp_otlp_options *options)
{
    struct mp_otlp_options full = *options;

    full.queue_max = or_default(full.queue_max, 4096);
    full.batch_max = or_default(full.batch_max, 512);
    full.batch_ms = or_default(full.batch_ms, 5000);
    full.request_ms_max = or_default(full.request_ms_max, 10000);
    full.close_ms_max = or_default(full.close_ms_max, 5000);
    full.again_ms = or_default(full.again_ms, 1000);
    return full;
}

static void otlp_free(struct mp_otlp *o)
{
    for (; o->count; o->count--, o->first = (o->first + 1) % o->options.queue_max)
        line_free(&o->queue[o->first]);
    mp_free(o->queue);
    mp_free(o->batch);
    mp_buf_fini(&o->request);
    mp_http_call_fini(&o->call);
    mp_http_client_free(o->http);
    mp_arena_fini(&o->arena);
    pthread_mutex_destroy(&o->lock);
    mp_free(o);
}

/* All but the thread. */
static struct mp_otlp *otlp_new(const struct mp_otlp_options *options, const struct mp_env *env,
                                struct mp_log *log, struct mp_metrics *metrics)
{
    struct mp_otlp *o = mp_alloc(sizeof(*o));
    struct mp_http_client_options http = {.connections_max = 1};

    o->options = completed(options);
    o->env = env;
    o->log = log;
    o->metrics = metrics;
    o->sink = (struct mp_log_sink){o, sink_line};
    pthread_mutex_init(&o->lock, NULL);
    mp_arena_init(&o->arena, 0);
    o->queue = mp_alloc_array(o->options.queue_max, sizeof(*o->queue));
    o->batch = mp_alloc_array(o->options.batch_max, sizeof(*o->batch));
    o->request.max = 2 * (BATCH_BYTES_MAX + RECORD_BYTES_MAX);
    set_more(o, options->more);
    for (uint32_t i = 0; i < options->resource_count; i++)
        if (options->resource[i].value.size)
            set_attribute(o, options->resource[i].key,
                          mp_arena_str(&o->arena, options->resource[i].value));
    o->http = mp_http_client_new(&http);
    o->headers[0] =
        (struct mp_http_header){MP_STR("Content-Type"), MP_STR("application/x-protobuf")};
    o->headers[1] = (struct mp_http_header){
        MP_STR("Authorization"),
        mp_str_c(mp_arena_printf(&o->arena, "Bearer %.*s", MP_STR_ARG(options->token)))};
    o->call = (struct mp_http_call){.method = "POST",
                                    .url = mp_arena_str(&o->arena, mp_str_c(options->url)).data,
                                    .headers = o->headers,
                                    .header_count = 2,
                                    .pieces = &o->piece,
                                    .piece_count = 1,
                                    .total_ms_max = o->options.request_ms_max,
                                    .body = MP_BUF_INIT(ANSWER_BYTES_MAX)};
    return o;
}

enum mp_code mp_otlp_open(const struct mp_otlp_options *options, const struct mp_env *env,
                          struct mp_log *log, struct mp_metrics *metrics, struct mp_err *err,
                          struct mp_otlp **ret)
{
    struct mp_otlp *o = otlp_new(options, env, log, metrics);

    if (pthread_create(&o->thread, NULL, otlp_main, o)) {
        otlp_free(o);
        return mp_err_set(err, MP_IO, "log export: the system gives no thread");
    }
    *ret = o;
    return MP_OK;
}

enum mp_code mp_otlp_probe(const struct mp_otlp_options *options, const struct mp_env *env,
                           struct mp_log *log, struct mp_err *err)
{
    struct mp_otlp *o = otlp_new(options, env, log, NULL);
    struct mp_err local;
    enum mp_code code;

    build_request(o);
    o->piece = mp_buf_str(&o->request);
    mp_http_one(o->http, &o->call);
    code = judge(&o->call, err ? err : &local);
    otlp_free(o);
    return code;
}

const struct mp_log_sink *mp_otlp_sink(const struct mp_otlp *otlp)
{
    return &otlp->sink;
}

void mp_otlp_close(struct mp_otlp *o)
{
    if (!o)
        return;
    atomic_store(&o->deadline_us,
                 mp_now_mono_us(o->env) + (uint64_t)o->options.close_ms_max * 1000);
    atomic_store(&o->ending, true);
    pthread_join(o->thread, NULL);
    otlp_free(o);
}
