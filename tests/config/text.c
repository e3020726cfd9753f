/* The small grammars, each with values that are right and values that nearly are. */
#include "config/config_priv.h"
#include "harness/test.h"

static bool integer(const char *text, int64_t want)
{
    int64_t got = ~want;
    bool fits = false;

    return mp_text_integer(mp_str_c(text), &got, &fits) && fits && got == want;
}

static bool no_integer(const char *text)
{
    int64_t got;
    bool fits;

    return !mp_text_integer(mp_str_c(text), &got, &fits);
}

static void integers_have_pythons_grammar(void)
{
    CHECK(integer("0", 0));
    CHECK(integer("-0", 0));
    CHECK(integer("+7", 7));
    CHECK(integer(" 42\n", 42));
    CHECK(integer("007", 7));
    CHECK(integer("1_000_000", 1000000));
    CHECK(integer("9223372036854775807", INT64_MAX));
    CHECK(integer("-9223372036854775808", INT64_MIN));
    CHECK(no_integer(""));
    CHECK(no_integer(" "));
    CHECK(no_integer("-"));
    CHECK(no_integer("1.0"));
    CHECK(no_integer("1e3"));
    CHECK(no_integer("0x10"));
    CHECK(no_integer("_1"));
    CHECK(no_integer("1_"));
    CHECK(no_integer("1__0"));
    CHECK(no_integer("- 1"));
    CHECK(no_integer("12a"));
}

static void integer_beyond_int64_is_one_that_does_not_fit(void)
{
    static const char *const texts[] = {"9223372036854775808", "-9223372036854775809",
                                        "99999999999999999999999999999999"};

    for (size_t i = 0; i < 3; i++) {
        int64_t got = 5;
        bool fits = true;

        CHECK(mp_text_integer(mp_str_c(texts[i]), &got, &fits));
        CHECK(!fits);
        CHECK_INT(got, 5);
    }
}

static void reals_are_finite_decimals(void)
{
    double got = 0;

    CHECK(mp_text_real(MP_STR("45.0"), &got));
    CHECK_DOUBLE(got, 45.0);
    CHECK(mp_text_real(MP_STR(" 1e2 "), &got));
    CHECK_DOUBLE(got, 100.0);
    CHECK(mp_text_real(MP_STR(".5"), &got));
    CHECK_DOUBLE(got, 0.5);
    CHECK(!mp_text_real(MP_STR("inf"), &got));
    CHECK(!mp_text_real(MP_STR("nan"), &got));
    CHECK(!mp_text_real(MP_STR("1e400"), &got));
    CHECK(!mp_text_real(MP_STR("0x1p3"), &got));
    CHECK(!mp_text_real(MP_STR("4 5"), &got));
    CHECK(!mp_text_real(MP_STR(""), &got));
}

static void identifiers_are_ascii_words(void)
{
    CHECK(mp_text_identifier(MP_STR("a")));
    CHECK(mp_text_identifier(MP_STR("_Ab9")));
    CHECK(!mp_text_identifier(MP_STR("")));
    CHECK(!mp_text_identifier(MP_STR("9a")));
    CHECK(!mp_text_identifier(MP_STR("a-b")));
    CHECK(!mp_text_identifier(MP_STR("a b")));
    CHECK(!mp_text_identifier(MP_STR("na\xc3\xafve")));
    CHECK(!mp_text_identifier(MP_STR("a;drop table x")));
}

static void uuids_come_in_four_spellings(void)
{
    CHECK(mp_text_uuid(MP_STR("0e0b6c8e-0000-0000-0000-00000000000A")));
    CHECK(mp_text_uuid(MP_STR("0e0b6c8e00000000000000000000000a")));
    CHECK(mp_text_uuid(MP_STR("12345678901234567890123456789012")));
    CHECK(mp_text_uuid(MP_STR("{0e0b6c8e-0000-0000-0000-00000000000a}")));
    CHECK(mp_text_uuid(MP_STR("urn:uuid:0e0b6c8e-0000-0000-0000-00000000000a")));
    CHECK(!mp_text_uuid(MP_STR("URN:UUID:0e0b6c8e-0000-0000-0000-00000000000a")));
    CHECK(!mp_text_uuid(MP_STR("0e0b6c8e-0000-0000-0000-00000000000g")));
    CHECK(!mp_text_uuid(MP_STR("0e0b6c8e-00000-000-0000-00000000000a")));
    CHECK(!mp_text_uuid(MP_STR("0e0b6c8e000000000000-000000000000000")));
    CHECK(!mp_text_uuid(MP_STR("{0e0b6c8e-0000-0000-0000-00000000000a")));
    CHECK(!mp_text_uuid(MP_STR("")));
}

static void split_respects_parentheses_and_drops_blanks(void)
{
    struct mp_arena arena;
    struct mp_str *parts;
    uint32_t count;

    mp_arena_init(&arena, 0);
    parts = mp_text_split(&arena, MP_STR(" a,, bucket(4, b) ,c, "), ',', &count);
    CHECK_INT(count, 3);
    CHECK_STR(parts[0], MP_STR("a"));
    CHECK_STR(parts[1], MP_STR("bucket(4, b)"));
    CHECK_STR(parts[2], MP_STR("c"));
    mp_text_split(&arena, MP_STR(" , "), ',', &count);
    CHECK_INT(count, 0);
    mp_text_split(&arena, MP_STR(""), ',', &count);
    CHECK_INT(count, 0);
    mp_arena_fini(&arena);
}

static const char *port_or_part(unsigned i)
{
    return i ? "PART" : "PORT";
}

static void the_nearest_name_is_meant(void)
{
    CHECK_STR(mp_str_c(mp_text_meant(MP_STR("PROT"), port_or_part, 2)), MP_STR("PORT"));
    CHECK_STR(mp_str_c(mp_text_meant(MP_STR("PARTS"), port_or_part, 2)), MP_STR("PART"));
    CHECK(!mp_text_meant(MP_STR("PARENT"), port_or_part, 1));
}

static void distance_counts_changes_and_swaps(void)
{
    CHECK_INT(mp_text_distance(MP_STR("KAFKA_TOPICS"), MP_STR("KAFKA_TOPIC"), 2), 1);
    CHECK_INT(mp_text_distance(MP_STR("FLUSH_SZIE"), MP_STR("FLUSH_SIZE"), 2), 1);
    CHECK_INT(mp_text_distance(MP_STR("FLUSH_SIZE"), MP_STR("FLUSH_SIZE"), 2), 0);
    CHECK_INT(mp_text_distance(MP_STR("FLUSH"), MP_STR("FLUSH_SIZE"), 2), 3);
    CHECK_INT(mp_text_distance(MP_STR(""), MP_STR("ab"), 2), 2);
    CHECK_INT(mp_text_distance(MP_STR("ab"), MP_STR(""), 2), 2);
}

static void conninfo_is_quoted_as_libpq_wants(void)
{
    struct mp_buf buf = MP_BUF_INIT(1000);

    mp_text_conninfo(&buf, "host", MP_STR("db"));
    mp_text_conninfo(&buf, "password", MP_STR("it's a \\ 'pass word"));
    CHECK_STR(mp_buf_str(&buf), MP_STR("host='db' password='it\\'s a \\\\ \\'pass word'"));
    mp_buf_fini(&buf);
}

static const char *partition_fault(const char *text, bool ducklake)
{
    static char copy[300];
    struct mp_arena arena;
    const char *fault = "";

    mp_arena_init(&arena, 0);
    if (mp_partition_check(&arena, mp_str_c(text), ducklake, &fault))
        fault = "";
    strncpy(copy, fault, sizeof(copy) - 1);
    mp_arena_fini(&arena);
    return copy;
}

static void ducklake_partition_keys(void)
{
    static const char *const good[] = {"region", "year(ts),month(ts), day( ts )", "HOUR(ts)",
                                       "bucket(16, team_id)", "bucket(4,id),name,hour(ts)"};
    static const struct {
        const char *text, *fault;
    } bad[] = {{"", "it names no key"},
               {" , ", "it names no key"},
               {"year(ts", "closing parenthesis"},
               {"truncate(4, s)", "unknown transform"},
               {"identity(a)", "unknown transform"},
               {"bucket(team_id, 16)", "positive number"},
               {"bucket(0, a)", "positive number"},
               {"bucket(16)", "a column and a number"},
               {"year(a, b)", "needs one column"},
               {"year()", "needs one column"},
               {"a b", "is no column name"},
               {"a,a", "is there twice"},
               {"a;drop", "is no column name"}};

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        CHECK_STR(mp_str_c(partition_fault(good[i], true)), MP_STR(""));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        CHECK(strstr(partition_fault(bad[i].text, true), bad[i].fault));
        CHECK(strstr(partition_fault(bad[i].text, true), "bucket(N, column)"));
    }
}

static void hoglake_partition_keys(void)
{
    CHECK_STR(mp_str_c(partition_fault("team_id, month(_inserted_at)", false)), MP_STR(""));
    CHECK_STR(mp_str_c(partition_fault("Identity(a), bucket(b, 16)", false)), MP_STR(""));
    CHECK(strstr(partition_fault("bucket(16, b)", false), "positive number"));
    CHECK(strstr(partition_fault("a, identity(a)", false), "is there twice"));
    CHECK(strstr(partition_fault("YEAR(a), year(a)", false), "is there twice"));
    CHECK_STR(mp_str_c(partition_fault("bucket(b, 16), bucket(b, 8)", false)), MP_STR(""));
    CHECK(strstr(partition_fault("truncate(a, 3)", false), "bucket(column, N)"));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(integers_have_pythons_grammar),
        TEST(integer_beyond_int64_is_one_that_does_not_fit),
        TEST(reals_are_finite_decimals),
        TEST(identifiers_are_ascii_words),
        TEST(uuids_come_in_four_spellings),
        TEST(split_respects_parentheses_and_drops_blanks),
        TEST(distance_counts_changes_and_swaps),
        TEST(the_nearest_name_is_meant),
        TEST(conninfo_is_quoted_as_libpq_wants),
        TEST(ducklake_partition_keys),
        TEST(hoglake_partition_keys),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
