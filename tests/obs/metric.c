/* The metrics page, letter by letter. */
#include "base/utf8.h"
#include "harness/test.h"
#include "obs/metric.h"
#include "obs/metric_priv.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct mp_env_fake clock_of_tests = {.wall_us = 1700000000500000};

static struct mp_metrics *new_metrics(struct mp_env *env)
{
    *env = mp_env_fake(&clock_of_tests);
    return mp_metrics_new(MP_STR("events-t"), MP_STR("msk"), env);
}

/* The part of the page about one metric: from its HELP line to the next metric's. */
static struct mp_str part(struct mp_buf *page, struct mp_metrics *metrics, const char *name)
{
    char head[128], created[128];
    const char *begin, *end;
    size_t size;

    mp_buf_clear(page);
    mp_metrics_print(metrics, page);
    snprintf(head, sizeof(head), "# HELP %s ", name);
    size = strlen(name);
    if (size > 6 && strcmp(name + size - 6, "_total") == 0)
        size -= 6;
    snprintf(created, sizeof(created), "# HELP %.*s_created ", (int)size, name);
    begin = strstr(mp_buf_c(page), head);
    CHECK(begin != NULL);
    end = begin;
    do
        end = strstr(end + 1, "# HELP ");
    while (end && strncmp(end, created, strlen(created)) == 0);
    if (!end)
        end = page->data + page->size;
    return mp_str_n(begin, (size_t)(end - begin));
}

static void prints_a_page(void)
{
    struct mp_env env;
    struct mp_metrics *metrics = new_metrics(&env);
    struct mp_buf page = MP_BUF_INIT(MP_METRICS_PAGE_BYTES_MAX);

    mp_metric_add(metrics, MP_M_RECORDS_CONSUMED, "3", 1000);
    mp_metric_add(metrics, MP_M_RECORDS_CONSUMED, "0", 1);
    mp_metric_add(metrics, MP_M_RECORDS_CONSUMED, "3", 1500000);
    CHECK_STR(part(&page, metrics, "millpond_records_consumed_total"),
              MP_STR("# HELP millpond_records_consumed_total Records taken from Kafka, tombstones "
                     "included\n"
                     "# TYPE millpond_records_consumed_total counter\n"
                     "millpond_records_consumed_total{pipeline=\"events-t\",broker_source=\"msk\","
                     "partition=\"3\"} 1.501e+06\n"
                     "millpond_records_consumed_total{pipeline=\"events-t\",broker_source=\"msk\","
                     "partition=\"0\"} 1.0\n"
                     "# HELP millpond_records_consumed_created Records taken from Kafka, "
                     "tombstones included\n"
                     "# TYPE millpond_records_consumed_created gauge\n"
                     "millpond_records_consumed_created{pipeline=\"events-t\",broker_source="
                     "\"msk\",partition=\"3\"} 1.7000000005e+09\n"
                     "millpond_records_consumed_created{pipeline=\"events-t\",broker_source="
                     "\"msk\",partition=\"0\"} 1.7000000005e+09\n"));
    CHECK_STR(part(&page, metrics, "millpond_records_written_total"),
              MP_STR("# HELP millpond_records_written_total Rows the destination holds because of "
                     "this process\n"
                     "# TYPE millpond_records_written_total counter\n"
                     "millpond_records_written_total{pipeline=\"events-t\",broker_source=\"msk\"} "
                     "0.0\n"
                     "# HELP millpond_records_written_created Rows the destination holds because "
                     "of this process\n"
                     "# TYPE millpond_records_written_created gauge\n"
                     "millpond_records_written_created{pipeline=\"events-t\",broker_source=\"msk\"}"
                     " 1.7000000005e+09\n"));
    mp_metric_set(metrics, MP_M_CONSUMER_LAG, "7", 12);
    CHECK_STR(part(&page, metrics, "millpond_consumer_lag"),
              MP_STR("# HELP millpond_consumer_lag Records between the position and the "
                     "partition's end\n"
                     "# TYPE millpond_consumer_lag gauge\n"
                     "millpond_consumer_lag{pipeline=\"events-t\",broker_source=\"msk\","
                     "partition=\"7\"} 12.0\n"));
    CHECK_STR(part(&page, metrics, "millpond_errors_total"), /* labelled: not there until used */
              MP_STR("# HELP millpond_errors_total Faults met, by kind\n"
                     "# TYPE millpond_errors_total counter\n"));
    mp_buf_fini(&page);
    mp_metrics_free(metrics);
}

static void prints_histograms(void)
{
    static const double seen[] = {0.5e6, 1e6, 1.1e6, 7e8, 2e9};
    struct mp_env env;
    struct mp_metrics *metrics = new_metrics(&env);
    struct mp_buf page = MP_BUF_INIT(MP_METRICS_PAGE_BYTES_MAX);
    struct mp_buf want = MP_BUF_INIT(65536);
    static const struct {
        const char *le, *count;
    } buckets[] = {{"1e+06", "2.0"}, {"5e+06", "3.0"}, {"1e+07", "3.0"},   {"2.5e+07", "3.0"},
                   {"5e+07", "3.0"}, {"1e+08", "3.0"}, {"2.5e+08", "3.0"}, {"5e+08", "3.0"},
                   {"1e+09", "4.0"}, {"+Inf", "5.0"}};

    for (int i = 0; i < 5; i++)
        mp_metric_observe(metrics, MP_M_FLUSH_SIZE_BYTES, NULL, seen[i]);
    mp_buf_add_c(&want, "# HELP millpond_flush_size_bytes Arrow-equivalent bytes of a flush\n"
                        "# TYPE millpond_flush_size_bytes histogram\n");
    for (int i = 0; i < 10; i++)
        mp_buf_printf(&want,
                      "millpond_flush_size_bytes_bucket{pipeline=\"events-t\",broker_source="
                      "\"msk\",le=\"%s\"} %s\n",
                      buckets[i].le, buckets[i].count);
    mp_buf_add_c(
        &want, "millpond_flush_size_bytes_count{pipeline=\"events-t\",broker_source=\"msk\"} 5.0\n"
               "millpond_flush_size_bytes_sum{pipeline=\"events-t\",broker_source=\"msk\"} "
               "2.7026e+09\n"
               "# HELP millpond_flush_size_bytes_created Arrow-equivalent bytes of a flush\n"
               "# TYPE millpond_flush_size_bytes_created gauge\n"
               "millpond_flush_size_bytes_created{pipeline=\"events-t\",broker_source=\"msk\"} "
               "1.7000000005e+09\n");
    CHECK_STR(part(&page, metrics, "millpond_flush_size_bytes"), mp_buf_str(&want));
    CHECK(strstr(mp_buf_c(&page), "millpond_flush_duration_seconds_bucket{pipeline=\"events-t\","
                                  "broker_source=\"msk\",le=\"0.005\"} 0.0\n") != NULL);
    mp_buf_fini(&want);
    mp_buf_fini(&page);
    mp_metrics_free(metrics);
}

static void escapes_labels(void)
{
    struct mp_env env = mp_env_fake(&clock_of_tests);
    struct mp_metrics *metrics = mp_metrics_new(MP_STR("a\"b"), MP_STR(""), &env);
    struct mp_buf page = MP_BUF_INIT(MP_METRICS_PAGE_BYTES_MAX);
    char endless[1000];

    mp_metric_add(metrics, MP_M_FILTER_MATCHED, "x\\y\"z\nw\xc3\xa9", 2);
    CHECK(strstr(part(&page, metrics, "millpond_filter_matched_total").data,
                 "millpond_filter_matched_total{pipeline=\"a\\\"b\",broker_source=\"\",value="
                 "\"x\\\\y\\\"z\\nw\xc3\xa9\"} 2.0\n") != NULL);
    CHECK_DOUBLE(mp_metric_value(metrics, MP_M_FILTER_MATCHED, "x\\y\"z\nw\xc3\xa9"), 2);
    CHECK_DOUBLE(mp_metric_value(metrics, MP_M_FILTER_MATCHED, "never"), 0);
    memset(endless, 'v', sizeof(endless));
    endless[sizeof(endless) - 1] = 0;
    mp_metric_add(metrics, MP_M_FILTER_MATCHED, endless, 1); /* cut, and still one series */
    mp_metric_add(metrics, MP_M_FILTER_MATCHED, endless, 1);
    mp_metric_add(NULL, MP_M_FILTER_MATCHED, "x", 1);
    mp_metric_set(NULL, MP_M_PENDING_BYTES, NULL, 1);
    mp_metric_observe(NULL, MP_M_FLUSH_FILES, NULL, 1);
    CHECK_DOUBLE(mp_metric_value(NULL, MP_M_FILTER_MATCHED, "x"), 0);
    mp_buf_fini(&page);
    mp_metrics_free(metrics);
}

static void spells_numbers_as_the_python_client_does(void)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0.0"},
                 {-0.0, "-0.0"},
                 {1, "1.0"},
                 {-1, "-1.0"},
                 {17, "17.0"},
                 {100000, "100000.0"},
                 {123456.5, "123456.5"},
                 {999999, "999999.0"},
                 {1e6, "1e+06"},
                 {1234567, "1.234567e+06"},
                 {1234567.25, "1.23456725e+06"},
                 {2.5e8, "2.5e+08"},
                 {-1e6, "-1000000.0"},
                 {-123456789, "-123456789.0"},
                 {0.005, "0.005"},
                 {0.1 + 0.2, "0.30000000000000004"},
                 {0.0001, "0.0001"},
                 {0.00001, "1e-05"},
                 {1.5e-7, "1.5e-07"},
                 {1e16, "1e+16"},
                 {1e22, "1e+22"},
                 {9007199254740993.0, "9.007199254740992e+15"},
                 {1.7976931348623157e308, "1.7976931348623157e+308"},
                 {5e-324, "5e-324"},
                 {INFINITY, "+Inf"},
                 {-INFINITY, "-Inf"},
                 {NAN, "NaN"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct mp_buf buf = MP_BUF_INIT(64);

        mp_metric_print_number(&buf, cases[i].value);
        CHECK_STR(mp_buf_str(&buf), mp_str_c(cases[i].text));
        mp_buf_fini(&buf);
    }
}

static double number_after(struct mp_buf *page, const char *name)
{
    const char *at = strstr(mp_buf_c(page), name);

    CHECK(at != NULL);
    return strtod(at + strlen(name), NULL);
}

static void knows_the_process(void)
{
    struct mp_env env;
    struct mp_metrics *metrics = new_metrics(&env);
    struct mp_buf page = MP_BUF_INIT(MP_METRICS_PAGE_BYTES_MAX);
    double resident, started;

    mp_metrics_print(metrics, &page);
    resident = number_after(&page, "\nprocess_resident_memory_bytes ");
    CHECK(resident > 100000);
    CHECK(number_after(&page, "\nprocess_virtual_memory_bytes ") >= resident);
    started = number_after(&page, "\nprocess_start_time_seconds ");
    CHECK(started > 1.6e9);
    CHECK(number_after(&page, "\nprocess_cpu_seconds_total ") < 1000);
    CHECK(number_after(&page, "\nprocess_open_fds ") >= 3);
    CHECK(number_after(&page, "\nprocess_max_fds ") >= number_after(&page, "\nprocess_open_fds "));
    CHECK(strstr(page.data, "# TYPE process_cpu_seconds_total counter\n") != NULL);
    mp_buf_fini(&page);
    mp_metrics_free(metrics);
}

static void a_small_page_ends_between_lines(void)
{
    struct mp_env env;
    struct mp_metrics *metrics = new_metrics(&env);

    for (size_t max = 0; max < 200000; max += 4999) {
        struct mp_buf page = MP_BUF_INIT(max);

        mp_metrics_print(metrics, &page);
        CHECK(page.size <= max);
        CHECK(page.size == 0 || page.data[page.size - 1] == '\n');
        mp_buf_fini(&page);
    }
    mp_metrics_free(metrics);
}

static void series_have_an_end(void)
{
    struct mp_env env;
    struct mp_metrics *metrics = new_metrics(&env);
    struct mp_buf page = MP_BUF_INIT(MP_METRICS_PAGE_BYTES_MAX);
    char label[32];

    for (int i = 0; i < 25000; i++) {
        snprintf(label, sizeof(label), "v%d", i);
        mp_metric_add(metrics, MP_M_FILTER_MATCHED, label, 1);
    }
    CHECK_DOUBLE(mp_metric_value(metrics, MP_M_FILTER_MATCHED, "v0"), 1);
    CHECK_DOUBLE(mp_metric_value(metrics, MP_M_FILTER_MATCHED, "v24999"), 0);
    CHECK(mp_metric_value(metrics, MP_M_FILTER_MATCHED, "other") > 4999);
    mp_metric_add(metrics, MP_M_ERRORS, "kafka", 1); /* another metric has its own "other" */
    CHECK_DOUBLE(mp_metric_value(metrics, MP_M_ERRORS, "other"), 1);
    mp_metrics_print(metrics, &page);
    CHECK(page.size < MP_METRICS_PAGE_BYTES_MAX);
    mp_buf_fini(&page);
    mp_metrics_free(metrics);
}

static void *add_many(void *self)
{
    for (int i = 0; i < 20000; i++) {
        mp_metric_add(self, MP_M_RECORDS_WRITTEN, NULL, 1);
        mp_metric_add(self, MP_M_RECORDS_CONSUMED, i % 2 ? "1" : "0", 1);
        mp_metric_observe(self, MP_M_FLUSH_DURATION, NULL, 0.3);
    }
    return NULL;
}

static void counts_from_several_threads(void)
{
    struct mp_env env;
    struct mp_metrics *metrics = new_metrics(&env);
    struct mp_buf page = MP_BUF_INIT(MP_METRICS_PAGE_BYTES_MAX);
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, add_many, metrics), 0);
    mp_metrics_print(metrics, &page);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK_DOUBLE(mp_metric_value(metrics, MP_M_RECORDS_WRITTEN, NULL), 80000);
    CHECK_DOUBLE(mp_metric_value(metrics, MP_M_RECORDS_CONSUMED, "1"), 40000);
    mp_buf_fini(&page);
    mp_metrics_free(metrics);
}

/* Names and labels are a contract: dashboards rest on them. */
static void the_table_is_sound(void)
{
    for (int i = 0; i < MP_M_COUNT; i++) {
        const struct mp_metric_info *info = &mp_metric_infos[i];
        size_t size = strlen(info->name);

        CHECK(mp_str_starts(mp_str_c(info->name), MP_STR("millpond_")));
        CHECK_INT(info->type == MP_METRIC_COUNTER, strcmp(info->name + size - 6, "_total") == 0);
        CHECK_INT(info->type == MP_METRIC_HISTOGRAM, info->bucket_count > 0);
        CHECK(strlen(info->help) > 10);
        CHECK(!strpbrk(info->help, "\n\\"));
        for (uint32_t k = 1; k < info->bucket_count; k++)
            CHECK(info->buckets[k - 1] < info->buckets[k]);
        for (int k = 0; k < i; k++)
            CHECK(strcmp(info->name, mp_metric_infos[k].name) != 0);
    }
}

/* A page with one label that is not UTF-8 is refused as a whole. */
static void a_long_label_is_cut_between_characters(void)
{
    struct mp_env env;
    struct mp_metrics *metrics = new_metrics(&env);
    struct mp_buf page = MP_BUF_INIT(MP_METRICS_PAGE_BYTES_MAX);
    char label[302] = "x";

    for (int i = 0; i < 150; i++)
        memcpy(label + 1 + 2 * i, "\xc3\xa9", 3);
    mp_metric_add(metrics, MP_M_FILTER_MATCHED, label, 7);
    mp_metrics_print(metrics, &page);
    CHECK(mp_utf8_is(mp_buf_str(&page)));
    label[255] = 0;
    CHECK_INT(mp_metric_value(metrics, MP_M_FILTER_MATCHED, label), 7);
    mp_buf_fini(&page);
    mp_metrics_free(metrics);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(prints_a_page),      TEST(prints_histograms),
        TEST(escapes_labels),     TEST(spells_numbers_as_the_python_client_does),
        TEST(knows_the_process),  TEST(a_small_page_ends_between_lines),
        TEST(series_have_an_end), TEST(counts_from_several_threads),
        TEST(the_table_is_sound), TEST(a_long_label_is_cut_between_characters),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
