#include "harness/test.h"
#include "server/database_url.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

static enum mp_code read_url(struct mp_arena *arena, const char *url, struct mp_err *err,
                             struct mp_str *ret)
{
    return mp_database_url(arena, mp_str_c(url), MP_STR("setting"), MP_STR("secret"), err, ret);
}

/* What libpq reads out of the URL we make, which is what counts. want: "keyword=value
 * keyword=value". */
static void check_read(const char *url, const char *want)
{
    struct mp_arena arena;
    struct mp_err err = {0};
    struct mp_str made = {"", 0};
    PQconninfoOption *options;
    char got[2000] = "";

    mp_arena_init(&arena, 0);
    CHECK(!read_url(&arena, url, &err, &made));
    options = PQconninfoParse(made.data, NULL);
    CHECK(options);
    for (PQconninfoOption *option = options; option && option->keyword; option++)
        if (option->val)
            snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s=%s", *got ? " " : "",
                     option->keyword, option->val);
    if (strcmp(got, want) != 0)
        printf("%s\n  got  %s\n  want %s\n", url, got, want);
    CHECK(strcmp(got, want) == 0);
    PQconninfoFree(options);
    mp_arena_fini(&arena);
}

static void check_refused(const char *url, const char *part)
{
    struct mp_arena arena;
    struct mp_err err = {0};
    struct mp_str made;

    mp_arena_init(&arena, 0);
    CHECK(read_url(&arena, url, &err, &made) == MP_BAD_CONFIG);
    if (!strstr(err.text, part) || !strstr(err.text, "HOGLAKE_JDBC_URL"))
        printf("%s\n  got %s\n", url, err.text);
    CHECK(strstr(err.text, part) && strstr(err.text, "HOGLAKE_JDBC_URL"));
    CHECK(!strstr(err.text, "hush"));
    mp_arena_fini(&arena);
}

static void users_and_passwords_of_the_url_win(void)
{
    check_read("jdbc:postgresql://h:1234/db",
               "user=setting password=secret dbname=db host=h port=1234");
    check_read("jdbc:postgresql://h/db?user=u", "user=u password=secret dbname=db host=h");
    check_read("jdbc:postgresql://h/db?user=u&password=p%26%3D%40%2F%25",
               "user=u password=p&=@/% dbname=db host=h");
    check_read("jdbc:postgresql://h/db?user=u&password=a+b%2B",
               "user=u password=a b+ dbname=db host=h");
    check_read("postgresql://u:a+b@h/db?password=c+d", "user=u password=c+d dbname=db host=h");
    check_read("postgresql://u:p@ss@h/db", "user=u password=p@ss dbname=db host=h");
    check_read("postgresql://u:%C3%A4%20:@h/db", "user=u password=\xc3\xa4 : dbname=db host=h");
    check_read("postgresql://u:@h/db", "user=u password= dbname=db host=h");
    check_read("postgresql://h/db?sslpassword=x",
               "user=setting password=secret dbname=db host=h sslpassword=x");
}

static void hosts_and_databases(void)
{
    check_read("jdbc:postgresql://[::1]:5433/db",
               "user=setting password=secret dbname=db host=::1 port=5433");
    check_read("jdbc:postgresql://[fe80::1%25eth0]/db",
               "user=setting password=secret dbname=db host=fe80::1%eth0");
    check_read("jdbc:postgresql://a:1,b,c:3/db",
               "user=setting password=secret dbname=db host=a,b,c port=1,,3");
    check_read("jdbc:postgresql:db", "user=setting password=secret dbname=db host=localhost");
    check_read("jdbc:postgresql:/", "user=setting password=secret host=localhost");
    check_read("jdbc:postgresql:///db", "user=setting password=secret dbname=db host=localhost");
    check_read("jdbc:postgresql://h/a%20b%2Fc?",
               "user=setting password=secret dbname=a b/c host=h");
    check_read("postgresql:///db?host=/tmp", "user=setting password=secret dbname=db host=/tmp");
    check_read("postgres://h", "user=setting password=secret host=h");
}

static void parameters_of_the_driver_in_the_words_of_libpq(void)
{
    check_read("jdbc:postgresql://h/db?ssl=true",
               "user=setting password=secret dbname=db host=h sslmode=verify-full");
    check_read("jdbc:postgresql://h/db?ssl",
               "user=setting password=secret dbname=db host=h sslmode=verify-full");
    check_read("jdbc:postgresql://h/db?ssl=true&sslmode=require",
               "user=setting password=secret dbname=db host=h sslmode=require");
    check_read("jdbc:postgresql://h/db?ssl=false", "user=setting password=secret dbname=db host=h");
    check_read("postgresql://h/db?ssl=true",
               "user=setting password=secret dbname=db host=h sslmode=require");
    check_read("jdbc:postgresql://h/db?currentSchema=a,b%20c",
               "user=setting password=secret dbname=db host=h options=-csearch_path=a,b\\ c");
    check_read("jdbc:postgresql://h/db?options=-cgeqo%3Doff&currentSchema=a",
               "user=setting password=secret dbname=db host=h options=-cgeqo=off -csearch_path=a");
    check_read("jdbc:postgresql://h/db?ApplicationName=lake&tcpKeepAlive=true&socketTimeout=30",
               "user=setting password=secret dbname=db host=h application_name=lake keepalives=1");
    check_read("jdbc:postgresql://h/db?targetServerType=primary&prepareThreshold=0",
               "user=setting password=secret dbname=db host=h target_session_attrs=primary");
    check_read(
        "jdbc:postgresql://h/db?connect_timeout=3&sslrootcert=/ca.pem",
        "user=setting password=secret connect_timeout=3 dbname=db host=h sslrootcert=/ca.pem");
}

static void what_is_wrong_is_named_and_no_password_is_told(void)
{
    check_refused("mysql://h/db", "begins with jdbc:postgresql://");
    check_refused("jdbc:mysql://h/db", "begins with jdbc:postgresql://");
    check_refused("", "begins with jdbc:postgresql://");
    check_refused("jdbc:postgresql://h:x/db", "port from 1 to 65535");
    check_refused("jdbc:postgresql://h:0/db", "port from 1 to 65535");
    check_refused("jdbc:postgresql://h:65536/db", "port from 1 to 65535");
    check_refused("jdbc:postgresql://h:99999999999999999999/db", "port from 1 to 65535");
    check_refused("jdbc:postgresql://::1/db", "brackets");
    check_refused("jdbc:postgresql://[::1/db", "no ']'");
    check_refused("jdbc:postgresql://[::1]x/db", "port from 1 to 65535");
    check_refused("postgresql://u:hush/hush@h/db", "%2F");
    check_refused("postgresql://u:hush%zz@h/db", "in the password");
    check_refused("postgresql://u:hush%0@h/db", "in the password");
    check_refused("postgresql://u:hush%00@h/db", "in the password");
    check_refused("jdbc:postgresql://h/db?password=hush%2", "in a parameter");
    check_refused("jdbc:postgresql://h/db?bogus=1", "no parameter \"bogus\"");
    check_refused("jdbc:postgresql://h/db?sslMode=require", "no parameter \"sslMode\"");
    check_refused("postgresql://h/db?currentSchema=a", "no parameter \"currentSchema\"");
    check_refused("jdbc:postgresql://h/db?sslmode=on", "sslmode is \"on\"");
    check_refused("jdbc:postgresql://h/db?ssl=yes", "ssl is \"yes\"");
    check_refused("jdbc:postgresql://h/db?targetServerType=leader",
                  "targetServerType is \"leader\"");
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(users_and_passwords_of_the_url_win),
        TEST(hosts_and_databases),
        TEST(parameters_of_the_driver_in_the_words_of_libpq),
        TEST(what_is_wrong_is_named_and_no_password_is_told),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
