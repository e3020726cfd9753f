/* Partitions that nobody leads, and leaders that do not answer: the others' watermarks are known.
 */
#include "kafka/mock.h"

#include <stdio.h>

enum { API_LIST_OFFSETS = 2 };

static struct mp_source *source_of(struct mock *mock)
{
    struct mp_source_rdkafka_options options = mock_options(mock);
    struct mp_source *source = mock_source(mock, &options);
    const int32_t *ids;
    uint32_t count;

    mock_partitions(source, &ids, &count);
    return source;
}

/* Three partitions of 10, 20 and 30 records with the leaders 1, 2 and 1. */
static void fill(struct mock *mock)
{
    mock_open(mock, 2, 3);
    for (int32_t p = 0; p < 3; p++) {
        rd_kafka_mock_partition_set_leader(mock->cluster, "events", p, p == 1 ? 2 : 1);
        mock_fill(mock, p, 0, (unsigned)(p + 1) * 10);
    }
    mock_flush(mock);
}

/* Asked again where the cluster is slow, as its caller does. */
static void look(struct mp_source *source, struct mp_source_watermark *marks)
{
    struct mp_err err = {0};
    enum mp_code code = MP_TIMEOUT;

    for (int i = 0; i < 10 && code == MP_TIMEOUT; i++)
        code = source->driver->watermarks(source, marks, 3, &err);
    CHECK_OK(code, err);
}

/* Whether one of ten looks takes less: a slow machine has not ten slow moments in turn. */
static bool answers_within(struct mock *mock, struct mp_source *source,
                           struct mp_source_watermark *marks, uint64_t us)
{
    uint64_t took_us = UINT64_MAX;

    for (int i = 0; i < 10 && took_us >= us; i++) {
        uint64_t began = mp_now_mono_us(&mock->env);

        look(source, marks);
        took_us = mp_now_mono_us(&mock->env) - began;
    }
    return took_us < us;
}

static void check_others(const struct mp_source_watermark *marks)
{
    CHECK(!marks[0].away && marks[0].low == 0 && marks[0].high == 10);
    CHECK(marks[1].away);
    CHECK(!marks[2].away && marks[2].low == 0 && marks[2].high == 30);
}

/* The one that was away is told of again, when somebody leads it. */
static void check_it_returns(struct mp_source *source, struct mp_source_watermark *marks)
{
    for (int i = 0; i < 20 && marks[1].away; i++)
        look(source, marks);
    CHECK(!marks[1].away && marks[1].low == 0 && marks[1].high == 20);
}

static void a_partition_without_a_leader_is_told(void)
{
    struct mp_source_watermark marks[3] = {{.partition = 0}, {.partition = 1}, {.partition = 2}};
    struct mock mock;
    struct mp_source *source;
    struct mp_err err = {0};

    fill(&mock);
    rd_kafka_mock_partition_set_leader(mock.cluster, "events", 1, -1);
    source = source_of(&mock);
    /* Nothing is waited for: it would be for five seconds, each time. */
    CHECK(answers_within(&mock, source, marks, 3000000));
    check_others(marks);
    CHECK(source->driver->watermarks(source, &marks[1], 1, &err) != MP_OK); /* all that is asked */
    CHECK(err.retriable);
    rd_kafka_mock_partition_set_leader(mock.cluster, "events", 1, 1);
    check_it_returns(source, marks);
    mp_source_close(source);
    mock_close(&mock);
}

/* The cluster still names a leader that is gone. */
static void a_leader_that_does_not_answer_is_waited_for_alone(void)
{
    struct mp_source_watermark marks[3] = {{.partition = 0}, {.partition = 1}, {.partition = 2}};
    struct mock mock;
    struct mp_source *source;

    fill(&mock);
    source = source_of(&mock);
    rd_kafka_mock_broker_set_down(mock.cluster, 2);
    /* for five seconds, however many partitions and leaders there are */
    CHECK(answers_within(&mock, source, marks, 8000000));
    check_others(marks);
    rd_kafka_mock_broker_set_up(mock.cluster, 2);
    check_it_returns(source, marks);
    mp_source_close(source);
    mock_close(&mock);
}

static void a_refusal_is_not_an_absence(void)
{
    struct mp_source_watermark marks[3] = {{.partition = 0}, {.partition = 1}, {.partition = 2}};
    struct mock mock;
    struct mp_source *source;
    struct mp_err err = {0};

    fill(&mock);
    rd_kafka_mock_partition_set_leader(mock.cluster, "events", 1, -1);
    source = source_of(&mock);
    rd_kafka_mock_push_request_errors(mock.cluster, API_LIST_OFFSETS, 1,
                                      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    CHECK_INT(source->driver->watermarks(source, marks, 3, &err), MP_REFUSED);
    CHECK(!err.retriable);
    mp_source_close(source);
    mock_close(&mock);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_partition_without_a_leader_is_told),
        TEST(a_leader_that_does_not_answer_is_waited_for_alone),
        TEST(a_refusal_is_not_an_absence),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
