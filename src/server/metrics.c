/* server/metrics.c - see metrics.h. Numbers, escapes and the process_* part are obs's. */
#include "server/metrics.h"

#include "base/mem.h"
#include "obs/metric_text.h"

#include <assert.h>
#include <pthread.h>

enum { CHAINS = 512, SERIES_MAX = 2000 };

enum type { COUNTER, GAUGE, HISTOGRAM };

static const struct {
    const char *name;
    enum type type;
    const char *label, *help;
} infos[MP_SM_COUNT] = {
#define MP_SERVER_METRIC(id, type, name, label, help) [MP_SM_##id] = {name, type, label, help},
#include "server/metrics.def"
#undef MP_SERVER_METRIC
};

static const uint64_t bucket_us[] = {250,     500,     1000,    2000,     4000,    8000,
                                     16000,   32000,   64000,   125000,   250000,  500000,
                                     1000000, 2500000, 5000000, 10000000, 30000000};

enum { BUCKETS = sizeof(bucket_us) / sizeof(*bucket_us) };

struct series {
    struct series *next, *next_hash;
    double value;
    uint64_t count, counts[BUCKETS + 1];
    enum mp_server_metric id;
    char labels[];
};

struct mp_server_metrics {
    pthread_mutex_t lock;
    struct series *first[MP_SM_COUNT], *last[MP_SM_COUNT], *chains[CHAINS];
    uint32_t counts[MP_SM_COUNT];
};

static struct series *series_of(struct mp_server_metrics *metrics, enum mp_server_metric id,
                                const char *labels)
{
    uint32_t hash = mp_str_hash(MP_STR_HASH, mp_str_n(&id, sizeof(id)));
    struct series *series;

    assert((labels != NULL) == (infos[id].label != NULL));
    labels = labels ? labels : "";
    hash = mp_str_hash(hash, mp_str_c(labels));
    for (series = metrics->chains[hash % CHAINS]; series; series = series->next_hash)
        if (series->id == id && strcmp(series->labels, labels) == 0)
            return series;
    if (metrics->counts[id] >= SERIES_MAX && strcmp(labels, "other,other") != 0)
        return series_of(metrics, id, "other,other");
    series = mp_alloc(sizeof(*series) + strlen(labels) + 1);
    memcpy(series->labels, labels, strlen(labels) + 1);
    series->id = id;
    series->next_hash = metrics->chains[hash % CHAINS];
    metrics->chains[hash % CHAINS] = series;
    if (metrics->last[id])
        metrics->last[id]->next = series;
    else
        metrics->first[id] = series;
    metrics->last[id] = series;
    metrics->counts[id]++;
    return series;
}

struct mp_server_metrics *mp_server_metrics_new(void)
{
    struct mp_server_metrics *metrics = mp_alloc(sizeof(*metrics));

    pthread_mutex_init(&metrics->lock, NULL);
    for (int id = 0; id < MP_SM_COUNT; id++)
        if (!infos[id].label)
            series_of(metrics, (enum mp_server_metric)id, NULL);
    return metrics;
}

void mp_server_metrics_free(struct mp_server_metrics *metrics)
{
    if (!metrics)
        return;
    for (int id = 0; id < MP_SM_COUNT; id++)
        for (struct series *series = metrics->first[id], *next; series; series = next) {
            next = series->next;
            mp_free(series);
        }
    pthread_mutex_destroy(&metrics->lock);
    mp_free(metrics);
}

double mp_server_metrics_add(struct mp_server_metrics *metrics, enum mp_server_metric id,
                             const char *labels, double value)
{
    double sum;

    pthread_mutex_lock(&metrics->lock);
    sum = series_of(metrics, id, labels)->value += value;
    pthread_mutex_unlock(&metrics->lock);
    return sum;
}

void mp_server_metrics_set(struct mp_server_metrics *metrics, enum mp_server_metric id,
                           double value)
{
    pthread_mutex_lock(&metrics->lock);
    series_of(metrics, id, NULL)->value = value;
    pthread_mutex_unlock(&metrics->lock);
}

void mp_server_metrics_observe(struct mp_server_metrics *metrics, enum mp_server_metric id,
                               const char *labels, uint64_t us)
{
    struct series *series;
    uint32_t bucket = 0;

    while (bucket < BUCKETS && us > bucket_us[bucket])
        bucket++;
    pthread_mutex_lock(&metrics->lock);
    series = series_of(metrics, id, labels);
    series->value += (double)us / 1e6;
    series->count++;
    series->counts[bucket]++;
    pthread_mutex_unlock(&metrics->lock);
}

/* name_suffix{a="x",b="y",le="..."} */
static void print_name(struct mp_buf *ret, const struct series *series, const char *suffix,
                       double le)
{
    struct mp_str names = mp_str_c(infos[series->id].label), values = mp_str_c(series->labels);
    const char *before = "{";

    mp_buf_printf(ret, "%s%s", infos[series->id].name, suffix);
    while (names.size) {
        const char *name_end = memchr(names.data, ',', names.size);
        const char *value_end =
            name_end && values.size ? memchr(values.data, ',', values.size) : NULL;
        size_t name_size = name_end ? (size_t)(name_end - names.data) : names.size;
        size_t value_size = value_end ? (size_t)(value_end - values.data) : values.size;
        char name[32] = "";

        memcpy(name, names.data, name_size < sizeof(name) ? name_size : sizeof(name) - 1);
        mp_buf_add_c(ret, before);
        mp_metric_print_label(ret, name, mp_str_n(values.data, value_size));
        before = ",";
        names = mp_str_n(names.data + name_size + !!name_end, names.size - name_size - !!name_end);
        values = mp_str_n(values.data + value_size + !!value_end,
                          values.size - value_size - !!value_end);
    }
    if (le > 0) {
        mp_buf_printf(ret, "%sle=\"", before);
        mp_metric_print_number(ret, le);
        mp_buf_add_byte(ret, '"');
        before = ",";
    }
    mp_buf_add_c(ret, *before == ',' ? "} " : " ");
}

static void print_series(struct mp_buf *ret, const struct series *series)
{
    uint64_t sum = 0;

    if (infos[series->id].type != HISTOGRAM) {
        print_name(ret, series, "", 0);
        mp_metric_print_number(ret, series->value);
        mp_buf_add_byte(ret, '\n');
        return;
    }
    for (uint32_t i = 0; i <= BUCKETS; i++) {
        sum += series->counts[i];
        print_name(ret, series, "_bucket",
                   i < BUCKETS ? (double)bucket_us[i] / 1e6 : __builtin_inf());
        mp_buf_printf(ret, "%llu\n", (unsigned long long)sum);
    }
    print_name(ret, series, "_count", 0);
    mp_buf_printf(ret, "%llu\n", (unsigned long long)series->count);
    print_name(ret, series, "_sum", 0);
    mp_metric_print_number(ret, series->value);
    mp_buf_add_byte(ret, '\n');
}

void mp_server_metrics_print(struct mp_server_metrics *metrics, struct mp_buf *ret)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};

    mp_metric_print_process(ret);
    pthread_mutex_lock(&metrics->lock);
    for (int id = 0; id < MP_SM_COUNT; id++) {
        mp_buf_printf(ret, "# HELP %s %s\n# TYPE %s %s\n", infos[id].name, infos[id].help,
                      infos[id].name, types[infos[id].type]);
        for (const struct series *series = metrics->first[id]; series; series = series->next)
            print_series(ret, series);
    }
    pthread_mutex_unlock(&metrics->lock);
}
