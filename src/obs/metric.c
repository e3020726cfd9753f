/* obs/metric.c - see metric.h; metric_print.c writes the page.
 *
 * A series is found by (metric, label value) in one hash table and hangs on its metric's list in
 * the order of first use, which is the order on the page. One lock guards all: callers add once a
 * batch, so that nobody waits for long.
 *
 * Always  M1 a label-free metric has its one series from the start
 *         M2 at most SERIES_MAX series: label values beyond are taken together as "other", so that
 *            no payload can make the page grow without end
 */
#include "obs/metric_priv.h"

#include "base/mem.h"

#include <assert.h>

enum { SERIES_MAX = 20000, LABEL_BYTES_MAX = 256 };

static const double seconds[] = {.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10};
static const double bytes[] = {1e6, 5e6, 1e7, 2.5e7, 5e7, 1e8, 2.5e8, 5e8, 1e9};
static const double rows[] = {100, 500, 1000, 5000, 10000, 50000, 100000, 500000, 1000000};
static const double files[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048};
static const double file_rows[] = {1,    5,    10,    25,    50,     100,    500,
                                   1000, 5000, 10000, 50000, 100000, 500000, 1000000};

#define LIST(array)    array, sizeof(array) / sizeof(*array)
#define LIST_NONE      NULL, 0
#define LIST_SECONDS   LIST(seconds)
#define LIST_BYTES     LIST(bytes)
#define LIST_ROWS      LIST(rows)
#define LIST_FILES     LIST(files)
#define LIST_FILE_ROWS LIST(file_rows)

const struct mp_metric_info mp_metric_infos[MP_M_COUNT] = {
#define MP_METRIC(id, type, name, label, buckets, help)                                            \
    [MP_M_##id] = {name, MP_METRIC_##type, label, LIST_##buckets, help},
#include "obs/metrics.def"
#undef MP_METRIC
};

/* FNV-1a */
static uint32_t chain_of(enum mp_metric id, struct mp_str label)
{
    uint32_t hash = (2166136261u ^ (uint32_t)id) * 16777619u;

    for (size_t i = 0; i < label.size; i++)
        hash = (hash ^ (unsigned char)label.data[i]) * 16777619u;
    return hash % MP_METRIC_CHAINS;
}

static struct mp_metric_series *find(struct mp_metrics *metrics, enum mp_metric id,
                                     struct mp_str label)
{
    struct mp_metric_series *series = metrics->chains[chain_of(id, label)];

    while (series && (series->id != id || !mp_str_eq(mp_str_c(series->label), label)))
        series = series->next_hash;
    return series;
}

static struct mp_metric_series *make(struct mp_metrics *metrics, enum mp_metric id,
                                     struct mp_str label)
{
    struct mp_metric_series *series = mp_alloc(sizeof(*series) + label.size + 1);
    uint32_t chain = chain_of(id, label);

    if (label.size)
        memcpy(series->label, label.data, label.size);
    series->id = id;
    series->created_s = (double)mp_now_wall_us(metrics->env) / 1e6;
    if (mp_metric_infos[id].type == MP_METRIC_HISTOGRAM)
        series->counts = mp_alloc_array(mp_metric_infos[id].bucket_count + 1, sizeof(uint64_t));
    series->next_hash = metrics->chains[chain];
    metrics->chains[chain] = series;
    if (metrics->last[id])
        metrics->last[id]->next = series;
    else
        metrics->first[id] = series;
    metrics->last[id] = series;
    metrics->series_count++;
    return series;
}

/* A label value, cut between two characters: a page that is not UTF-8 is refused as a whole. */
static struct mp_str value_of(const char *label)
{
    struct mp_str value = mp_str_n(label, strnlen(label, LABEL_BYTES_MAX));

    if (label[value.size])
        while (value.size && ((unsigned char)label[value.size] & 0xc0) == 0x80)
            value.size--;
    return value;
}

static struct mp_metric_series *find_or_make(struct mp_metrics *metrics, enum mp_metric id,
                                             const char *label)
{
    struct mp_str value = label ? value_of(label) : MP_STR("");
    struct mp_metric_series *series;

    assert(id < MP_M_COUNT);
    assert((label != NULL) == (mp_metric_infos[id].label != NULL));
    series = find(metrics, id, value);
    if (!series && metrics->series_count >= SERIES_MAX) { /* M2 */
        value = MP_STR("other");
        series = find(metrics, id, value);
    }
    return series ? series : make(metrics, id, value);
}

struct mp_metrics *mp_metrics_new(struct mp_str pipeline, struct mp_str broker_source,
                                  const struct mp_env *env)
{
    struct mp_metrics *metrics = mp_alloc(sizeof(*metrics));
    struct mp_buf labels = MP_BUF_INIT(2 * (pipeline.size + broker_source.size) + 64);

    mp_metric_print_label(&labels, "pipeline", pipeline);
    mp_buf_add_byte(&labels, ',');
    mp_metric_print_label(&labels, "broker_source", broker_source);
    mp_buf_add_byte(&labels, 0);
    metrics->labels = labels.data; /* taken */
    metrics->env = env;
    pthread_mutex_init(&metrics->lock, NULL);
    for (int id = 0; id < MP_M_COUNT; id++)
        if (!mp_metric_infos[id].label)
            make(metrics, (enum mp_metric)id, MP_STR("")); /* M1 */
    return metrics;
}

void mp_metrics_free(struct mp_metrics *metrics)
{
    if (!metrics)
        return;
    for (int id = 0; id < MP_M_COUNT; id++)
        while (metrics->first[id]) {
            struct mp_metric_series *next = metrics->first[id]->next;

            mp_free(metrics->first[id]->counts);
            mp_free(metrics->first[id]);
            metrics->first[id] = next;
        }
    pthread_mutex_destroy(&metrics->lock);
    mp_free(metrics->labels);
    mp_free(metrics);
}

void mp_metric_add(struct mp_metrics *metrics, enum mp_metric id, const char *label, double value)
{
    if (!metrics)
        return;
    assert(mp_metric_infos[id].type != MP_METRIC_HISTOGRAM);
    assert(mp_metric_infos[id].type == MP_METRIC_GAUGE || value >= 0);
    pthread_mutex_lock(&metrics->lock);
    find_or_make(metrics, id, label)->value += value;
    pthread_mutex_unlock(&metrics->lock);
}

void mp_metric_set(struct mp_metrics *metrics, enum mp_metric id, const char *label, double value)
{
    if (!metrics)
        return;
    assert(mp_metric_infos[id].type == MP_METRIC_GAUGE);
    pthread_mutex_lock(&metrics->lock);
    find_or_make(metrics, id, label)->value = value;
    pthread_mutex_unlock(&metrics->lock);
}

void mp_metric_observe(struct mp_metrics *metrics, enum mp_metric id, const char *label,
                       double value)
{
    const struct mp_metric_info *info = &mp_metric_infos[id];
    struct mp_metric_series *series;
    uint32_t bucket = 0;

    if (!metrics)
        return;
    assert(info->type == MP_METRIC_HISTOGRAM);
    while (bucket < info->bucket_count && value > info->buckets[bucket])
        bucket++;
    pthread_mutex_lock(&metrics->lock);
    series = find_or_make(metrics, id, label);
    series->counts[bucket]++;
    series->count++;
    series->value += value;
    pthread_mutex_unlock(&metrics->lock);
}

double mp_metric_value(struct mp_metrics *metrics, enum mp_metric id, const char *label)
{
    struct mp_metric_series *series;
    double value;

    if (!metrics)
        return 0;
    pthread_mutex_lock(&metrics->lock);
    series = find(metrics, id, mp_str_c(label ? label : ""));
    value = series ? series->value : 0;
    pthread_mutex_unlock(&metrics->lock);
    return value;
}
