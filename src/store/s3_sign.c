/* store/s3_sign.c - canonical request -> string to sign -> signature, over OpenSSL. */
#include "store/s3_sign.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DIGEST         32
#define CANONICAL_MAX  (64u * 1024) /* session tokens are the large part; see credentials.h */
#define ALGORITHM      "AWS4-HMAC-SHA256"
#define SCOPE_TERMINAL "aws4_request"

static void hex(const unsigned char digest[DIGEST], char ret[MP_S3_HASH_TEXT])
{
    static const char digits[] = "0123456789abcdef";

    for (unsigned i = 0; i < DIGEST; i++) {
        ret[2 * i] = digits[digest[i] >> 4];
        ret[2 * i + 1] = digits[digest[i] & 15];
    }
    ret[2 * DIGEST] = 0;
}

void mp_s3_hash(const struct mp_str *pieces, uint32_t count, char ret[MP_S3_HASH_TEXT])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned char digest[DIGEST];
    int good = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL);

    for (uint32_t i = 0; i < count; i++)
        good = good && EVP_DigestUpdate(context, pieces[i].data, pieces[i].size);
    good = good && EVP_DigestFinal_ex(context, digest, NULL);
    assert(good); /* SHA-256 in memory has no way to fail but a broken OpenSSL */
    (void)good;
    EVP_MD_CTX_free(context);
    hex(digest, ret);
}

static void hmac(const void *key, size_t key_size, struct mp_str text, unsigned char ret[DIGEST])
{
    unsigned char digest[DIGEST]; /* key may lie in ret */
    const unsigned char *good = HMAC(EVP_sha256(), key, (int)key_size,
                                     (const unsigned char *)text.data, text.size, digest, NULL);

    assert(good);
    (void)good;
    memcpy(ret, digest, DIGEST);
}

void mp_s3_time(int64_t wall_us, char ret[MP_S3_TIME_TEXT])
{
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm utc;

    gmtime_r(&seconds, &utc);
    snprintf(ret, MP_S3_TIME_TEXT, "%04d%02d%02dT%02d%02d%02dZ", (utc.tm_year + 1900) % 10000,
             utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

static int by_name(const void *a, const void *b)
{
    return mp_str_cmp(((const struct mp_http_header *)a)->name,
                      ((const struct mp_http_header *)b)->name);
}

/* A header value without blanks around it, and one blank for each run of them inside. */
static void add_trimmed(struct mp_buf *buf, struct mp_str value)
{
    bool gap = false, begun = false;

    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] == ' ' || value.data[i] == '\t') {
            gap = true;
            continue;
        }
        if (gap && begun)
            mp_buf_add_byte(buf, ' ');
        mp_buf_add_byte(buf, value.data[i]);
        gap = false;
        begun = true;
    }
}

static void add_names(struct mp_buf *buf, const struct mp_http_header *headers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            mp_buf_add_byte(buf, ';');
        mp_buf_add_str(buf, headers[i].name);
    }
}

/* The canonical request; headers are sorted. */
static void add_canonical(struct mp_buf *buf, const struct mp_s3_sign *sign,
                          const struct mp_http_header *headers)
{
    mp_buf_add_str(buf, sign->method);
    mp_buf_add_byte(buf, '\n');
    mp_buf_add_str(buf, sign->path);
    mp_buf_add_byte(buf, '\n');
    mp_buf_add_str(buf, sign->query);
    mp_buf_add_byte(buf, '\n');
    for (uint32_t i = 0; i < sign->header_count; i++) {
        mp_buf_add_str(buf, headers[i].name);
        mp_buf_add_byte(buf, ':');
        add_trimmed(buf, headers[i].value);
        mp_buf_add_byte(buf, '\n');
    }
    mp_buf_add_byte(buf, '\n');
    add_names(buf, headers, sign->header_count);
    mp_buf_add_byte(buf, '\n');
    mp_buf_add_str(buf, sign->payload_hash);
}

/* The key of the day, region and service. */
static void signing_key(const struct mp_s3_sign *sign, struct mp_str day, unsigned char ret[DIGEST])
{
    struct mp_buf first = MP_BUF_INIT(8192);

    mp_buf_add_c(&first, "AWS4");
    mp_buf_add_str(&first, sign->secret_key);
    hmac(first.data, first.size, day, ret);
    hmac(ret, DIGEST, sign->region, ret);
    hmac(ret, DIGEST, sign->service, ret);
    hmac(ret, DIGEST, MP_STR(SCOPE_TERMINAL), ret);
    OPENSSL_cleanse(first.data, first.size);
    mp_buf_fini(&first);
}

static void sort_headers(const struct mp_s3_sign *sign, struct mp_http_header *ret)
{
    assert(sign->header_count <= MP_S3_SIGNED_HEADERS_MAX);
    memcpy(ret, sign->headers, sign->header_count * sizeof(*ret));
    qsort(ret, sign->header_count, sizeof(*ret), by_name);
}

void mp_s3_scope(const struct mp_s3_sign *sign, struct mp_buf *ret)
{
    char time_text[MP_S3_TIME_TEXT];

    mp_s3_time(sign->wall_us, time_text);
    mp_buf_printf(ret, "%.8s/%.*s/%.*s/" SCOPE_TERMINAL, time_text, MP_STR_ARG(sign->region),
                  MP_STR_ARG(sign->service));
}

void mp_s3_signature(const struct mp_s3_sign *sign, char ret[MP_S3_HASH_TEXT])
{
    struct mp_http_header headers[MP_S3_SIGNED_HEADERS_MAX];
    struct mp_buf text = MP_BUF_INIT(CANONICAL_MAX);
    char time_text[MP_S3_TIME_TEXT], hash[MP_S3_HASH_TEXT];
    unsigned char key[DIGEST], digest[DIGEST];
    struct mp_str canonical;

    sort_headers(sign, headers);
    mp_s3_time(sign->wall_us, time_text);
    add_canonical(&text, sign, headers);
    canonical = mp_buf_str(&text);
    mp_s3_hash(&canonical, 1, hash);
    mp_buf_clear(&text);
    mp_buf_printf(&text, ALGORITHM "\n%s\n", time_text);
    mp_s3_scope(sign, &text);
    mp_buf_printf(&text, "\n%s", hash);
    signing_key(sign, (struct mp_str){time_text, 8}, key);
    hmac(key, DIGEST, mp_buf_str(&text), digest);
    hex(digest, ret);
    OPENSSL_cleanse(key, sizeof(key));
    mp_buf_fini(&text);
}

void mp_s3_sign(const struct mp_s3_sign *sign, struct mp_buf *ret)
{
    struct mp_http_header headers[MP_S3_SIGNED_HEADERS_MAX];
    char signature[MP_S3_HASH_TEXT];

    sort_headers(sign, headers);
    mp_s3_signature(sign, signature);
    mp_buf_add_c(ret, ALGORITHM " Credential=");
    mp_buf_add_str(ret, sign->access_key);
    mp_buf_add_byte(ret, '/');
    mp_s3_scope(sign, ret);
    mp_buf_add_c(ret, ",SignedHeaders=");
    add_names(ret, headers, sign->header_count);
    mp_buf_add_c(ret, ",Signature=");
    mp_buf_add_c(ret, signature);
}
