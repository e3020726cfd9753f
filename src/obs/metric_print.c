/* obs/metric_print.c - the metrics page.
 *
 * Spelled as the Python client spells it (numbers, escapes, _created gauges), so that a scraper
 * sees no difference but the order of labels, which has no meaning.
 * After  Prometheus documentation, "Exposition formats", text-based format. */
#include "obs/metric_priv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* No line is longer: a name, three labels of which two may be escaped twofold, a number. */
enum { LINE_BYTES_MAX = 2048 };

void mp_metric_print_label(struct mp_buf *ret, const char *name, struct mp_str value)
{
    mp_buf_printf(ret, "%s=\"", name);
    for (size_t i = 0; i < value.size; i++) {
        char c = value.data[i];

        if (c == '\\' || c == '"')
            mp_buf_add_byte(ret, '\\');
        if (c == '\n')
            mp_buf_add_c(ret, "\\n");
        else
            mp_buf_add_byte(ret, c);
    }
    mp_buf_add_byte(ret, '"');
}

/* The shortest digits that read back the same, then Python's layout with the one change its
 * client makes: a number of a million and above is written with an exponent, as Go does. */
void mp_metric_print_number(struct mp_buf *ret, double value)
{
    char digits[32], *end, *exponent_text;
    int precision = 0, exponent, length;

    if (isnan(value) || isinf(value)) {
        mp_buf_add_c(ret, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
        return;
    }
    do
        snprintf(digits, sizeof(digits), "%.*e", precision, value);
    while (strtod(digits, &end) != value && ++precision < 17);
    if (signbit(value))
        mp_buf_add_byte(ret, '-');
    memmove(digits, digits + signbit(value), strlen(digits) + 1 - (size_t)signbit(value));
    exponent_text = strchr(digits, 'e');
    exponent = atoi(exponent_text + 1);
    *exponent_text = 0;
    if (precision > 0) /* d.ddd -> dddd */
        memmove(digits + 1, digits + 2, strlen(digits + 1));
    length = precision + 1;
    if (exponent < -4 || exponent >= 16 || (value > 0 && exponent >= 6)) {
        mp_buf_add_byte(ret, digits[0]);
        if (length > 1)
            mp_buf_printf(ret, ".%s", digits + 1);
        mp_buf_printf(ret, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    } else if (exponent < 0) {
        mp_buf_printf(ret, "0.%.*s%s", -exponent - 1, "000", digits);
    } else if (length > exponent + 1) {
        mp_buf_printf(ret, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
    } else {
        mp_buf_printf(ret, "%s%.*s.0", digits, exponent + 1 - length, "000000000000000");
    }
}

static void print_head(struct mp_buf *ret, struct mp_str name, const char *suffix, const char *type,
                       const char *help)
{
    mp_buf_printf(ret, "# HELP %.*s%s %s\n# TYPE %.*s%s %s\n", MP_STR_ARG(name), suffix, help,
                  MP_STR_ARG(name), suffix, type);
}

/* name suffix {labels} value; le NULL: no bucket. */
static void print_sample(struct mp_buf *ret, const struct mp_metrics *metrics, struct mp_str name,
                         const char *suffix, const struct mp_metric_series *series,
                         const double *le, double value)
{
    const char *label = mp_metric_infos[series->id].label;

    mp_buf_printf(ret, "%.*s%s{%s", MP_STR_ARG(name), suffix, metrics->labels);
    if (label) {
        mp_buf_add_byte(ret, ',');
        mp_metric_print_label(ret, label, mp_str_c(series->label));
    }
    if (le) {
        mp_buf_add_c(ret, ",le=\"");
        mp_metric_print_number(ret, *le);
        mp_buf_add_byte(ret, '"');
    }
    mp_buf_add_c(ret, "} ");
    mp_metric_print_number(ret, value);
    mp_buf_add_byte(ret, '\n');
}

static void print_histogram(struct mp_buf *ret, const struct mp_metrics *metrics,
                            struct mp_str name, const struct mp_metric_series *series)
{
    const struct mp_metric_info *info = &mp_metric_infos[series->id];
    const double infinite = INFINITY;
    uint64_t sum = 0;

    for (uint32_t i = 0; i <= info->bucket_count; i++) {
        const double *le = i < info->bucket_count ? &info->buckets[i] : &infinite;

        sum += series->counts[i];
        print_sample(ret, metrics, name, "_bucket", series, le, (double)sum);
    }
    print_sample(ret, metrics, name, "_count", series, NULL, (double)series->count);
    print_sample(ret, metrics, name, "_sum", series, NULL, series->value);
}

/* Bytes that one series of the metric takes at most. */
static size_t series_bytes_max(const struct mp_metrics *metrics, const struct mp_metric_info *info)
{
    return (info->bucket_count + 4) * (LINE_BYTES_MAX + strlen(metrics->labels));
}

static void print_metric(struct mp_buf *ret, const struct mp_metrics *metrics, enum mp_metric id)
{
    static const char *const types[] = {[MP_METRIC_COUNTER] = "counter",
                                        [MP_METRIC_GAUGE] = "gauge",
                                        [MP_METRIC_HISTOGRAM] = "histogram"};
    const struct mp_metric_info *info = &mp_metric_infos[id];
    size_t line_max = series_bytes_max(metrics, info);
    struct mp_str name = mp_str_c(info->name);
    const struct mp_metric_series *series;

    if (ret->max - ret->size < line_max)
        return;
    print_head(ret, name, "", types[info->type], info->help);
    for (series = metrics->first[id]; series && ret->max - ret->size > line_max;
         series = series->next) {
        if (info->type == MP_METRIC_HISTOGRAM)
            print_histogram(ret, metrics, name, series);
        else
            print_sample(ret, metrics, name, "", series, NULL, series->value);
    }
    if (info->type == MP_METRIC_GAUGE || !metrics->first[id] || ret->max - ret->size < line_max)
        return;
    if (info->type == MP_METRIC_COUNTER)
        name.size -= strlen("_total");
    print_head(ret, name, "_created", "gauge", info->help);
    for (series = metrics->first[id]; series && ret->max - ret->size > line_max;
         series = series->next)
        print_sample(ret, metrics, name, "_created", series, NULL, series->created_s);
}

void mp_metrics_print(struct mp_metrics *metrics, struct mp_buf *ret)
{
    if (ret->max - ret->size > (size_t)12 * LINE_BYTES_MAX)
        mp_metric_print_process(ret);
    pthread_mutex_lock(&metrics->lock);
    for (int id = 0; id < MP_M_COUNT; id++)
        print_metric(ret, metrics, (enum mp_metric)id);
    pthread_mutex_unlock(&metrics->lock);
}
