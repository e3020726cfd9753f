/* Numbers out of the client's statistics. */
#include "harness/test.h"
#include "kafka/rdkafka_stats.h"

#include <stdio.h>

struct seen {
    char text[1024];
    size_t used;
};

static void number(void *self, enum mp_rdkafka_stat stat, const char *broker, double value)
{
    struct seen *seen = self;

    seen->used += (size_t)snprintf(seen->text + seen->used, sizeof(seen->text) - seen->used,
                                   "%d %s %g\n", (int)stat, broker ? broker : "-", value);
}

static void gives_each_number_once(void)
{
    struct seen seen = {0};
    struct mp_err err = {0};
    struct mp_str json = MP_STR(
        "{\"name\":\"x\",\"replyq\":3,\"msg_cnt\":0,\"msg_size\":17,\"brokers\":{"
        "\"h:1/1\":{\"rtt\":{\"avg\":1500,\"p99\":9000,\"cnt\":3}},"
        "\"h:2/2\":{\"rtt\":{\"avg\":-1,\"p99\":20}},\"h:3/3\":{\"nodeid\":3},\"h:4\":null}}");

    CHECK_OK(mp_rdkafka_stats(json, &err, number, &seen), err);
    CHECK_STR(mp_str_c(seen.text), MP_STR("0 - 3\n1 - 0\n2 - 17\n3 h:1/1 1500\n4 h:1/1 9000\n"
                                          "4 h:2/2 20\n"));
}

static void leaves_out_what_is_missing(void)
{
    struct seen seen = {0};
    struct mp_err err = {0};

    CHECK_OK(mp_rdkafka_stats(MP_STR("{\"brokers\":[],\"replyq\":\"x\"}"), &err, number, &seen),
             err);
    CHECK_OK(mp_rdkafka_stats(MP_STR("[]"), &err, number, &seen), err);
    CHECK_STR(mp_str_c(seen.text), MP_STR(""));
    CHECK_INT(mp_rdkafka_stats(MP_STR("{\"replyq\":"), &err, number, &seen), MP_BAD_DATA);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(gives_each_number_once),
                                        TEST(leaves_out_what_is_missing)};

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
