/* SigV4 against AWS's published examples: those of the S3 API reference ("Signature calculation
 * examples") and of the SigV4 test suite ("service" in us-east-1). The signatures were worked out
 * again with Python's hmac and hashlib; both agree. */
#include "harness/test.h"

#include "store/s3_sign.h"

#include <stdio.h>

#define EMPTY_HASH   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define WELCOME_HASH "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"
#define FORM_HASH    "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e"
#define S3_HOST      "examplebucket.s3.amazonaws.com"
#define SESSION                                                                                    \
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSP" \
    "fIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT" \
    "7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlz" \
    "m8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="

struct vector {
    const char *what, *method, *path, *query, *payload_hash;
    const char *headers[5][2];
    const char *names, *signature;
};

static void check_vectors(const struct vector *vectors, size_t count, struct mp_s3_sign base,
                          const char *scope)
{
    for (size_t i = 0; i < count; i++) {
        const struct vector *v = &vectors[i];
        struct mp_http_header headers[5];
        struct mp_s3_sign sign = base;
        struct mp_buf got = MP_BUF_INIT(2048), want = MP_BUF_INIT(2048);

        sign.method = mp_str_c(v->method);
        sign.path = mp_str_c(v->path);
        sign.query = mp_str_c(v->query);
        sign.payload_hash = mp_str_c(v->payload_hash);
        sign.headers = headers;
        for (; sign.header_count < 5 && v->headers[sign.header_count][0]; sign.header_count++)
            headers[sign.header_count] =
                (struct mp_http_header){mp_str_c(v->headers[sign.header_count][0]),
                                        mp_str_c(v->headers[sign.header_count][1])};
        mp_s3_sign(&sign, &got);
        mp_buf_printf(&want, "AWS4-HMAC-SHA256 Credential=%.*s/%s,SignedHeaders=%s,Signature=%s",
                      MP_STR_ARG(base.access_key), scope, v->names, v->signature);
        CHECK_STR(mp_buf_str(&got), mp_buf_str(&want));
        mp_buf_fini(&got);
        mp_buf_fini(&want);
    }
}

static void sign_agrees_with_the_s3_reference(void)
{
    static const struct vector vectors[] = {
        {"get with range",
         "GET",
         "/test.txt",
         "",
         EMPTY_HASH,
         {{"host", S3_HOST},
          {"range", "bytes=0-9"},
          {"x-amz-content-sha256", EMPTY_HASH},
          {"x-amz-date", "20130524T000000Z"}},
         "host;range;x-amz-content-sha256;x-amz-date",
         "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
        {"put",
         "PUT",
         "/test%24file.text",
         "",
         WELCOME_HASH,
         {{"x-amz-date", "20130524T000000Z"},
          {"x-amz-storage-class", "REDUCED_REDUNDANCY"},
          {"date", "Fri, 24 May 2013 00:00:00 GMT"},
          {"x-amz-content-sha256", WELCOME_HASH},
          {"host", S3_HOST}},
         "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
         "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
        {"a query name without a value",
         "GET",
         "/",
         "lifecycle=",
         EMPTY_HASH,
         {{"host", S3_HOST},
          {"x-amz-content-sha256", EMPTY_HASH},
          {"x-amz-date", "20130524T000000Z"}},
         "host;x-amz-content-sha256;x-amz-date",
         "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
        {"list",
         "GET",
         "/",
         "max-keys=2&prefix=J",
         EMPTY_HASH,
         {{"host", S3_HOST},
          {"x-amz-content-sha256", EMPTY_HASH},
          {"x-amz-date", "20130524T000000Z"}},
         "host;x-amz-content-sha256;x-amz-date",
         "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
    };
    struct mp_s3_sign base = {
        .access_key = MP_STR("AKIAIOSFODNN7EXAMPLE"),
        .secret_key = MP_STR("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        .region = MP_STR("us-east-1"),
        .service = MP_STR("s3"),
        .wall_us = 1369353600 * 1000000LL,
    };

    check_vectors(vectors, sizeof(vectors) / sizeof(*vectors), base,
                  "20130524/us-east-1/s3/aws4_request");
}

static void sign_agrees_with_the_test_suite(void)
{
#define HOST                                                                                       \
    {                                                                                              \
        "host", "example.amazonaws.com"                                                            \
    }
#define DATE                                                                                       \
    {                                                                                              \
        "x-amz-date", "20150830T123600Z"                                                           \
    }
    static const struct vector vectors[] = {
        {"get-vanilla",
         "GET",
         "/",
         "",
         EMPTY_HASH,
         {HOST, DATE},
         "host;x-amz-date",
         "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
        {"get-vanilla-query-order-key-case",
         "GET",
         "/",
         "Param1=value1&Param2=value2",
         EMPTY_HASH,
         {HOST, DATE},
         "host;x-amz-date",
         "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
        {"get-header-value-trim",
         "GET",
         "/",
         "",
         EMPTY_HASH,
         {HOST, {"my-header1", " value1"}, {"my-header2", " \"a   b   c\""}, DATE},
         "host;my-header1;my-header2;x-amz-date",
         "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
        {"get-utf8",
         "GET",
         "/%E1%88%B4",
         "",
         EMPTY_HASH,
         {HOST, DATE},
         "host;x-amz-date",
         "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
        {"post-x-www-form-urlencoded",
         "POST",
         "/",
         "",
         FORM_HASH,
         {{"content-type", "application/x-www-form-urlencoded"}, HOST, DATE},
         "content-type;host;x-amz-date",
         "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
        {"post-sts-header-before",
         "POST",
         "/",
         "",
         EMPTY_HASH,
         {HOST, DATE, {"x-amz-security-token", SESSION}},
         "host;x-amz-date;x-amz-security-token",
         "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
    };
    struct mp_s3_sign base = {
        .access_key = MP_STR("AKIDEXAMPLE"),
        .secret_key = MP_STR("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
        .region = MP_STR("us-east-1"),
        .service = MP_STR("service"),
        .wall_us = 1440938160 * 1000000LL + 999999,
    };

    check_vectors(vectors, sizeof(vectors) / sizeof(*vectors), base,
                  "20150830/us-east-1/service/aws4_request");
}

static void sign_hashes_pieces_as_one(void)
{
    const struct mp_str pieces[] = {MP_STR("Welcome "), MP_STR(""), MP_STR("to Amazon"),
                                    MP_STR(" S3.")};
    char hash[MP_S3_HASH_TEXT];

    mp_s3_hash(pieces, 4, hash);
    CHECK_STR(mp_str_c(hash), MP_STR(WELCOME_HASH));
    mp_s3_hash(NULL, 0, hash);
    CHECK_STR(mp_str_c(hash), MP_STR(EMPTY_HASH));
}

static void sign_writes_times(void)
{
    static const struct {
        int64_t wall_s;
        const char *text;
    } cases[] = {
        {0, "19700101T000000Z"},
        {951827696, "20000229T123456Z"},
        {4102444799, "20991231T235959Z"},
    };
    char text[MP_S3_TIME_TEXT];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        mp_s3_time(cases[i].wall_s * 1000000, text);
        CHECK_STR(mp_str_c(text), mp_str_c(cases[i].text));
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(sign_agrees_with_the_s3_reference),
        TEST(sign_agrees_with_the_test_suite),
        TEST(sign_hashes_pieces_as_one),
        TEST(sign_writes_times),
    };

    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
