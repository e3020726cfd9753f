/* lake/hoglake/key.c - see body.h: the commit's key, its message, and where objects go.
 *
 * After  RFC 9562, section 5.5 (UUID version 5: SHA-1 over a namespace and a name).
 */
#include "lake/hoglake/body.h"

#include "base/utf8.h"
#include "column/transform.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdio.h>

/* 6f1b6d2e-4c5a-5f3e-9b7a-2d8c1e0a4f77, the namespace that the Python program's keys are made in:
 * another one would let a commit of its last moments land twice. */
static const unsigned char key_namespace[16] = {0x6f, 0x1b, 0x6d, 0x2e, 0x4c, 0x5a, 0x5f, 0x3e,
                                                0x9b, 0x7a, 0x2d, 0x8c, 0x1e, 0x0a, 0x4f, 0x77};

static void uuid5(const unsigned char space[16], struct mp_str name, char ret[MP_LAKE_KEY_SIZE])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned char digest[EVP_MAX_MD_SIZE];
    int good = context && EVP_DigestInit_ex(context, EVP_sha1(), NULL) &&
               EVP_DigestUpdate(context, space, 16) &&
               EVP_DigestUpdate(context, name.data, name.size) &&
               EVP_DigestFinal_ex(context, digest, NULL);
    struct mp_arena arena;

    assert(good); /* in memory it has no way to fail but a broken OpenSSL */
    (void)good;
    EVP_MD_CTX_free(context);
    digest[6] = (unsigned char)((digest[6] & 0x0f) | 0x50);
    digest[8] = (unsigned char)((digest[8] & 0x3f) | 0x80);
    mp_arena_init(&arena, 128);
    memcpy(ret, mp_value_text(&arena, MP_TYPE(UUID), mp_str_n(digest, 16)).data,
           MP_LAKE_KEY_SIZE - 1);
    ret[MP_LAKE_KEY_SIZE - 1] = 0;
    mp_arena_fini(&arena);
}

void mp_hog_key(struct mp_str catalog, struct mp_str namespace_name, struct mp_str table,
                struct mp_str uuid, struct mp_str topic, const struct mp_lake_range *ranges,
                uint32_t count, char ret[MP_LAKE_KEY_SIZE])
{
    struct mp_buf name = MP_BUF_INIT(SIZE_MAX);

    mp_buf_printf(&name, "%.*s/%.*s/%.*s/%.*s", MP_STR_ARG(catalog), MP_STR_ARG(namespace_name),
                  MP_STR_ARG(table), MP_STR_ARG(uuid));
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            assert(ranges[i - 1].partition < ranges[i].partition);
        if (ranges[i].lowest < 0)
            continue;
        mp_buf_printf(&name, "\n%.*s:%d:%lld-%lld", MP_STR_ARG(topic), ranges[i].partition,
                      (long long)ranges[i].lowest, (long long)ranges[i].highest);
    }
    uuid5(key_namespace, mp_buf_str(&name), ret);
    mp_buf_fini(&name);
}

void mp_hog_object_key(struct mp_str namespace_name, struct mp_str table,
                       const struct mp_lake_place *place, const struct mp_env *env,
                       struct mp_buf *ret)
{
    char uuid[MP_UUID_TEXT];

    assert(place->key.size > 0);
    mp_uuid4(env, uuid);
    mp_buf_printf(ret, "data/%.*s/%.*s/%.*s/%s-%u.parquet", MP_STR_ARG(namespace_name),
                  MP_STR_ARG(table), MP_STR_ARG(place->key), uuid, place->index);
}

/* --- the message --- */

static const char *trigger_text(struct mp_str trigger)
{
    static const struct {
        struct mp_str ours;
        const char *theirs;
    } names[] = {
        {MP_STR_INIT("size"), "size"},
        {MP_STR_INIT("time"), "interval"},
        {MP_STR_INIT("final"), "final"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (mp_str_eq(trigger, names[i].ours))
            return names[i].theirs;
    return "unknown";
}

/* A word of the line of counts: no white space, never empty. */
static void add_word(struct mp_buf *ret, struct mp_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];

        mp_buf_add_byte(ret, c == ' ' || (c >= '\t' && c <= '\r') ? '_' : c);
    }
    if (text.size == 0)
        mp_buf_add_c(ret, "unknown");
}

static void add_counts(const struct mp_lake_commit *commit, struct mp_str version,
                       struct mp_str uuid, struct mp_buf *ret)
{
    const struct mp_lake_append *append = &commit->appends[0];
    unsigned long long rows = 0;

    for (uint32_t i = 0; i < append->file_count; i++)
        rows += append->files[i].rows;
    mp_buf_printf(ret,
                  "records=%llu files=%u partitions=%u arrow_bytes=%llu trigger=%s millpond=", rows,
                  append->file_count,
                  append->table->schema.partition_count ? append->file_count : 0, /* one a tuple */
                  (unsigned long long)commit->arrow_bytes, trigger_text(commit->trigger));
    add_word(ret, version);
    mp_buf_add_c(ret, " table=");
    add_word(ret, uuid);
}

/* A topic is a path where files are loaded, which may be any bytes: what is not UTF-8 becomes
 * U+FFFD, what would end the line or the word '_'. */
static void add_topic(struct mp_buf *ret, struct mp_str topic)
{
    uint32_t point;

    for (size_t at = 0, size; at < topic.size; at += size ? size : 1) {
        size = mp_utf8_read(mp_str_n(topic.data + at, topic.size - at), &point);
        if (!size)
            mp_buf_add(ret, "\xef\xbf\xbd", 3);
        else if (point <= ' ' || point == 0x7f)
            mp_buf_add_byte(ret, '_');
        else
            mp_buf_add(ret, topic.data + at, size);
    }
}

static uint32_t ranges_with_values(const struct mp_lake_commit *commit)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < commit->range_count; i++)
        count += commit->ranges[i].lowest >= 0;
    return count;
}

/* " ... (+7 more)" */
static size_t more_text(uint32_t more, char ret[32])
{
    return (size_t)snprintf(ret, 32, " ... (+%u more)", more);
}

static void add_ranges(const struct mp_lake_commit *commit, struct mp_str topic, struct mp_buf *ret)
{
    const size_t begin = ret->size;
    uint32_t total = ranges_with_values(commit), count = 0, fitting = 0;
    char end[32];
    size_t fitting_end;

    mp_buf_add_c(ret, "offsets ");
    add_topic(ret, topic);
    fitting_end = ret->size;
    for (uint32_t i = 0; i < commit->range_count; i++) {
        const struct mp_lake_range *range = &commit->ranges[i];

        if (range->lowest < 0)
            continue;
        mp_buf_printf(ret, " p%d:%lld-%lld", range->partition, (long long)range->lowest,
                      (long long)range->highest);
        count++;
        if (ret->size - begin + more_text(total - count, end) <= MP_HOG_MESSAGE_LINE_MAX) {
            fitting = count;
            fitting_end = ret->size;
        }
    }
    snprintf(end, sizeof(end), " (%u)", total);
    if (ret->size - begin + strlen(end) > MP_HOG_MESSAGE_LINE_MAX) {
        ret->size = fitting_end;
        more_text(total - fitting, end);
    }
    mp_buf_add_c(ret, end);
}

void mp_hog_message(const struct mp_lake_commit *commit, struct mp_str topic, struct mp_str version,
                    struct mp_str uuid, struct mp_buf *ret)
{
    assert(commit->append_count > 0);
    add_counts(commit, version, uuid, ret);
    if (ranges_with_values(commit)) {
        mp_buf_add_byte(ret, '\n');
        add_ranges(commit, topic, ret);
    }
}
