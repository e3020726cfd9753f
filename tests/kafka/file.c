/* The file driver: every place a buffer may end at, seeks, pipes, names. */
#include "base/env.h"
#include "harness/test.h"
#include "kafka/source_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct mp_arena arena = {.block_bytes = 4096}; /* texts beside offsets */

static const char *write_file(const char *name, struct mp_str text)
{
    static char path[256];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", test_directory(), name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);
    CHECK_INT(write(fd, text.data, text.size), (int64_t)text.size);
    close(fd);
    return path;
}

static void append_file(const char *path, struct mp_str text)
{
    int fd = open(path, O_WRONLY | O_APPEND);

    CHECK(fd >= 0);
    CHECK_INT(write(fd, text.data, text.size), (int64_t)text.size);
    close(fd);
}

static struct mp_source *open_path(const char *path, size_t buffer_bytes, size_t line_bytes_max)
{
    struct mp_source_file_options options = {path, buffer_bytes, line_bytes_max};
    struct mp_source *source = NULL;
    struct mp_err err = {0};

    CHECK_OK(mp_source_file_open(&options, &err, &source), err);
    return source;
}

/* Lines as a slow and simple reader finds them; checks that the source gives the same. */
static void check_lines(struct mp_source *source, struct mp_str text, size_t from, uint32_t batch)
{
    struct mp_err err = {0};
    size_t at = from;
    bool end = false;

    while (!end) {
        struct mp_records records;

        CHECK_OK(source->driver->poll(source, batch, 1000, &err, &records), err);
        CHECK(records.count <= batch);
        CHECK(records.count || records.end);
        for (uint32_t i = 0; i < records.count; i++) {
            const struct mp_record *record = &records.items[i];
            size_t length = 0, size, mark;

            for (;;) { /* the next line that is not empty */
                const char *feed;

                CHECK(at < text.size);
                feed = memchr(text.data + at, '\n', text.size - at);
                size = feed ? (size_t)(feed + 1 - (text.data + at)) : text.size - at;
                length = feed ? size - 1 : size;
                length -= length && text.data[at + length - 1] == '\r';
                mark = at == 0 && mp_str_starts(text, MP_STR("\xef\xbb\xbf")) ? 3 : 0;
                length -= mark;
                if (length)
                    break;
                at += size;
            }
            CHECK_INT(record->partition, 0);
            CHECK_INT(record->offset, (int64_t)at);
            CHECK_INT(record->next_offset, (int64_t)(at + size));
            CHECK_STR(record->value, mp_str_n(text.data + at + mark, length));
            CHECK(record->has_value);
            CHECK(!record->has_key);
            CHECK_INT(record->timestamp_ms, MP_OFFSET_NONE);
            at += size;
        }
        end = records.end;
    }
    if (at == 0 && mp_str_starts(text, MP_STR("\xef\xbb\xbf")))
        at = 3;
    for (; at < text.size; at++) /* nothing but empty lines is left */
        CHECK(text.data[at] == '\n' || text.data[at] == '\r');
}

#define TEXT(literal)                                                                              \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }

static const struct mp_str texts[] = {
    TEXT(""),
    TEXT("\n"),
    TEXT("\n\r\n\n"),
    TEXT("a"),
    TEXT("a\n"),
    TEXT("a\r\n"),
    TEXT("a\r"),
    TEXT("a\nbb\nccc\n"),
    TEXT("a\nbb\nccc"),
    TEXT("\n\na\n\n\nbb\n\n"),
    TEXT("0123456789abcdef\n0123456789abcde\n"),
    TEXT("0123456789abcdef0123456789abcdef0123456789abcdef\nx\n"),
    TEXT("{\"a\":\"\0\"}\n{\"b\":1}\r\n\r\n{\"c\":2}"),
    TEXT("\xef\xbb\xbf"), /* a byte order mark is no part of the first line */
    TEXT("\xef\xbb\xbf\r\n"),
    TEXT("\xef\xbb\xbf{\"a\":1}"),
    TEXT("\xef\xbb\xbf{\"a\":1}\r\n\xef\xbb\xbf{\"b\":1}\n"), /* of another one it is */
    TEXT("\xef\xbb"),
};

static void gives_lines_at_every_buffer_size(void)
{
    for (size_t t = 0; t < sizeof(texts) / sizeof(*texts); t++) {
        const char *path = write_file("lines", texts[t]);

        for (size_t buffer = 1; buffer < 40; buffer++)
            for (uint32_t batch = 1; batch < 5; batch++) {
                struct mp_source *source = open_path(path, buffer, 0);

                check_lines(source, texts[t], 0, batch);
                mp_source_close(source);
            }
    }
}

static void random_text(struct mp_env *chance, struct mp_buf *ret)
{
    size_t lines = mp_random_u64(chance) % 30;

    for (size_t i = 0; i < lines; i++) {
        size_t length = mp_random_u64(chance) % 4 ? mp_random_u64(chance) % 50 : 0;

        for (size_t k = 0; k < length; k++)
            mp_buf_add_byte(ret, (char)('a' + mp_random_u64(chance) % 26));
        if (mp_random_u64(chance) % 3 == 0)
            mp_buf_add_byte(ret, '\r');
        if (i + 1 < lines || mp_random_u64(chance) % 2)
            mp_buf_add_byte(ret, '\n');
    }
}

static bool line_may_begin(struct mp_str text, size_t at)
{
    if (at == 0 || at == text.size || text.data[at - 1] == '\n' || text.data[at] == '\n')
        return true;
    return text.data[at] == '\r' && at + 1 < text.size && text.data[at + 1] == '\n';
}

static void seeks_where_a_line_begins(void)
{
    struct mp_env_fake dice = {.seed = 7};
    struct mp_env chance = mp_env_fake(&dice);

    for (int round = 0; round < 40; round++) {
        struct mp_buf text = MP_BUF_INIT(1 << 16);
        struct mp_source *source;
        struct mp_err err = {0};
        const char *path;

        random_text(&chance, &text);
        path = write_file("seek", mp_buf_str(&text));
        source = open_path(path, 16, 0);
        for (size_t at = 0; at <= text.size; at++) {
            enum mp_code code = source->driver->seek(source, 0, (int64_t)at, &err);

            CHECK_INT(code, line_may_begin(mp_buf_str(&text), at) ? MP_OK : MP_BAD_DATA);
            if (!code)
                check_lines(source, mp_buf_str(&text), at, 3);
        }
        CHECK_INT(source->driver->seek(source, 0, (int64_t)text.size + 1, &err), MP_BAD_DATA);
        CHECK_INT(source->driver->seek(source, 1, 0, &err), MP_NOT_FOUND);
        CHECK_OK(source->driver->seek(source, 0, MP_OFFSET_EARLIEST, &err), err);
        check_lines(source, mp_buf_str(&text), 0, 100);
        CHECK_OK(source->driver->seek(source, 0, MP_OFFSET_LATEST, &err), err);
        check_lines(source, mp_buf_str(&text), text.size, 100);
        mp_source_close(source);
        mp_buf_fini(&text);
    }
}

static void takes_what_was_appended(void)
{
    const char *path = write_file("grows", MP_STR("{\"a\":1}\n{\"a\":2}"));
    struct mp_source *source = open_path(path, 0, 0);
    struct mp_source_watermark mark = {.partition = 0};
    struct mp_err err = {0};
    struct mp_records records;

    CHECK_OK(source->driver->poll(source, 10, 0, &err, &records), err);
    CHECK_INT(records.count, 1);
    CHECK(!records.end); /* that line might go on: seen only by reading once more */
    CHECK_OK(source->driver->poll(source, 10, 0, &err, &records), err);
    CHECK_INT(records.count, 1);
    CHECK(records.end);
    CHECK_INT(records.items[0].next_offset, 15);
    CHECK_OK(source->driver->watermarks(source, &mark, 1, &err), err);
    CHECK_INT(mark.low, 0);
    CHECK_INT(mark.high, 15);
    append_file(path, MP_STR("\n{\"a\":3}\n"));
    source->driver->watermarks_seen(source, &mark, 1);
    CHECK_INT(mark.high, 24);
    CHECK_OK(source->driver->seek(source, 0, 15, &err), err);
    CHECK_OK(source->driver->poll(source, 10, 0, &err, &records), err);
    CHECK_INT(records.count, 1);
    CHECK_INT(records.items[0].offset, 16);
    CHECK_STR(records.items[0].value, MP_STR("{\"a\":3}"));
    mp_source_close(source);
    /* What was taken for the last line went on: no line begins there. */
    source = open_path(write_file("half", MP_STR("{\"a\":1}")), 0, 0);
    CHECK_OK(source->driver->poll(source, 10, 0, &err, &records), err);
    CHECK_INT(records.items[0].next_offset, 7);
    mp_source_close(source);
    source = open_path(write_file("half", MP_STR("{\"a\":1}x\n")), 0, 0);
    CHECK_INT(source->driver->seek(source, 0, 7, &err), MP_BAD_DATA);
    mp_source_close(source);
}

static bool ends_with_brace(void *self, struct mp_str line)
{
    ++*(int *)self;
    return line.data[line.size - 1] == '}';
}

/* What stands behind the last line feed is asked about, and left where it is no line yet. */
static void leaves_a_line_that_is_not_whole(void)
{
    const char *path = write_file("growing", MP_STR("{\"a\":1}\n{\"a\""));
    int asked = 0;
    struct mp_source_file_options options = {
        .path = path, .buffer_bytes = 4, .whole = ends_with_brace, .self = &asked};
    struct mp_source *source = NULL;
    struct mp_err err = {0};
    struct mp_records records;
    int64_t at = 0;

    for (int run = 0; run < 3; run++) {
        static const struct mp_str more[] = {MP_STR_INIT(":2}\n{\"a\":3}"), MP_STR_INIT("\n"),
                                             MP_STR_INIT("")};
        static const int64_t reached[] = {8, 23, 24};
        static const int counts[] = {1, 2, 0};
        int count = 0;

        CHECK_OK(mp_source_file_open(&options, &err, &source), err);
        CHECK_OK(source->driver->seek(source, 0, at, &err), err);
        do {
            CHECK_OK(source->driver->poll(source, 10, 0, &err, &records), err);
            count += (int)records.count;
            for (uint32_t i = 0; i < records.count; i++)
                at = records.items[i].next_offset;
        } while (!records.end);
        CHECK_INT(count, counts[run]);
        CHECK_INT(source->driver->reached(source, 0), reached[run]);
        CHECK_OK(source->driver->poll(source, 10, 0, &err, &records), err);
        CHECK(records.end);
        CHECK_INT(records.count, 0);
        mp_source_close(source);
        append_file(path, more[run]);
    }
    CHECK_INT(asked, 2); /* once a run that ends within a line */
}

/* Whether the rest is whole is asked of it without the mark. */
static void the_mark_is_no_part_of_a_rest(void)
{
    static const struct {
        struct mp_str text;
        int asked;
        uint32_t given;
    } rows[] = {
        {MP_STR_INIT("\xef\xbb\xbf{a}"), 1, 1},
        {MP_STR_INIT("\xef\xbb\xbf{a"), 1, 0},
        {MP_STR_INIT("\xef\xbb\xbf"), 0, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        int asked = 0;
        struct mp_source_file_options options = {
            .path = write_file("mark", rows[i].text), .whole = ends_with_brace, .self = &asked};
        struct mp_source *source;
        struct mp_records records;
        struct mp_err err = {0};
        uint32_t given = 0;

        CHECK_OK(mp_source_file_open(&options, &err, &source), err);
        for (bool end = false; !end; end = records.end) {
            CHECK_OK(source->driver->poll(source, 10, 0, &err, &records), err);
            given += records.count;
        }
        CHECK_INT(given, rows[i].given);
        CHECK_INT(asked, rows[i].asked);
        mp_source_close(source);
    }
}

static void names_a_line_that_is_too_long(void)
{
    const char *path =
        write_file("long", MP_STR("ok\n0123456789012345678901234567890123456789\nz\n"));
    struct mp_err err = {0};
    struct mp_records records;

    for (size_t buffer = 1; buffer < 64; buffer++) {
        struct mp_source *source = open_path(path, buffer, 20);

        CHECK_OK(source->driver->poll(source, 10, 0, &err, &records), err);
        CHECK_INT(records.count, 1);
        for (int i = 0; i < 2; i++) {
            CHECK_INT(source->driver->poll(source, 10, 0, &err, &records), MP_BAD_DATA);
            CHECK(!err.retriable);
            CHECK(strstr(err.text, "offset 3 ") != NULL);
        }
        mp_source_close(source);
    }
}

struct feeder {
    int fd;
    struct mp_str text;
    size_t piece;
};

static void *feed(void *self)
{
    struct feeder *feeder = self;

    for (size_t at = 0; at < feeder->text.size; at += feeder->piece) {
        size_t size = feeder->text.size - at;

        if (size > feeder->piece)
            size = feeder->piece;
        if (write(feeder->fd, feeder->text.data + at, size) < 0)
            break;
        usleep(200);
    }
    close(feeder->fd);
    return NULL;
}

/* Puts a pipe in the place of standard input. */
static void check_pipe(struct mp_str text, size_t piece, size_t from, enum mp_code want)
{
    int ends[2], kept = dup(STDIN_FILENO);
    struct feeder feeder = {.text = text, .piece = piece};
    struct mp_source_watermark mark = {.partition = 0};
    pthread_t thread;
    struct mp_source *source;
    struct mp_err err = {0};

    CHECK_INT(pipe(ends), 0);
    feeder.fd = ends[1];
    CHECK(dup2(ends[0], STDIN_FILENO) >= 0);
    close(ends[0]);
    CHECK_INT(pthread_create(&thread, NULL, feed, &feeder), 0);
    source = open_path("-", 16, 0);
    source->driver->watermarks_seen(source, &mark, 1);
    CHECK_INT(mark.high, MP_OFFSET_NONE);
    if (from)
        CHECK_INT(source->driver->seek(source, 0, (int64_t)from, &err), want);
    if (!from || !want) {
        struct mp_records records;
        size_t at = from;

        for (bool end = false; !end;) { /* a poll that waits in vain gives nothing and no end */
            CHECK_OK(source->driver->poll(source, 2, 1, &err, &records), err);
            for (uint32_t i = 0; i < records.count; i++) {
                CHECK(records.items[i].offset >= (int64_t)at);
                at = (size_t)records.items[i].next_offset;
                CHECK_INT(memcmp(records.items[i].value.data, text.data + records.items[i].offset,
                                 records.items[i].value.size),
                          0);
            }
            end = records.end;
        }
        CHECK_INT(source->driver->seek(source, 0, 0, &err), text.size ? MP_BAD_CONFIG : MP_OK);
        CHECK_INT(source->driver->seek(source, 0, MP_OFFSET_LATEST, &err), MP_BAD_CONFIG);
    }
    close(STDIN_FILENO); /* the feeder is told */
    pthread_join(thread, NULL);
    mp_source_close(source);
    dup2(kept, STDIN_FILENO);
    close(kept);
}

static void reads_a_pipe(void)
{
    static const struct mp_str text = TEXT("one\ntwo\n\nthree\r\nfour");

    for (size_t piece = 1; piece < 25; piece += 4) {
        check_pipe(text, piece, 0, MP_OK);
        check_pipe(text, piece, 4, MP_OK);
        check_pipe(text, piece, 9, MP_OK);
        check_pipe(text, piece, 20, MP_OK);
        check_pipe(text, piece, 7, MP_OK);  /* before a line feed */
        check_pipe(text, piece, 14, MP_OK); /* before CR LF */
        check_pipe(text, piece, 5, MP_BAD_DATA);
        check_pipe(text, piece, 21, MP_BAD_DATA);
    }
    check_pipe(MP_STR(""), 1, 0, MP_OK);
}

static void keeps_no_offsets(void)
{
    struct mp_source *source = open_path(write_file("one", MP_STR("a\n")), 0, 0);
    struct mp_source_offset offset = {.partition = 0, .offset = 2, .metadata = MP_STR("x")};
    struct mp_err err = {0};
    const int32_t *ids;
    uint32_t count;

    CHECK_OK(source->driver->partitions(source, &err, &ids, &count), err);
    CHECK_INT(count, 1);
    CHECK_INT(ids[0], 0);
    CHECK_OK(source->driver->commit(source, &offset, 1, &err), err);
    CHECK_OK(source->driver->committed(source, &arena, &offset, 1, &err), err);
    CHECK_INT(offset.offset, MP_OFFSET_NONE);
    CHECK_STR(offset.metadata, MP_STR(""));
    mp_source_close(source);
}

static void tells_why_it_cannot_open(void)
{
    struct mp_source_file_options options = {.path = "/nowhere/at/all"};
    struct mp_source *source = NULL;
    struct mp_err err = {0};

    CHECK_INT(mp_source_file_open(&options, &err, &source), MP_IO);
    CHECK(strstr(err.text, "/nowhere/at/all") != NULL);
    options.path = "/";
    CHECK_INT(mp_source_file_open(&options, &err, &source), MP_IO);
    mp_source_close(source);
}

static void names_a_file_by_place_and_content(void)
{
    struct mp_buf large = MP_BUF_INIT(1 << 20), name = MP_BUF_INIT(8192), other = MP_BUF_INIT(8192);
    struct mp_err err = {0};
    const char *path;
    bool same;

    path = write_file("named", MP_STR("{\"a\":1}\n"));
    CHECK_OK(mp_source_file_identity(path, &err, &name), err);
    CHECK(name.data[0] == '/');
    CHECK(memmem(name.data, name.size, "/named#8-", 9) != NULL);
    CHECK_OK(mp_source_file_is(path, mp_buf_str(&name), &err, &same), err);
    CHECK(same);
    append_file(path, MP_STR("{\"a\":2}\n")); /* grown: another name, the same file */
    CHECK_OK(mp_source_file_identity(path, &err, &other), err);
    CHECK(!mp_str_eq(mp_buf_str(&name), mp_buf_str(&other)));
    CHECK_OK(mp_source_file_is(path, mp_buf_str(&name), &err, &same), err);
    CHECK(same);
    CHECK_INT(truncate(path, 5), 0); /* shorter */
    CHECK_OK(mp_source_file_is(path, mp_buf_str(&name), &err, &same), err);
    CHECK(!same);
    CHECK_INT(truncate(path, 0), 0);
    append_file(path, MP_STR("{\"b\":1}\n")); /* different */
    CHECK_OK(mp_source_file_is(path, mp_buf_str(&name), &err, &same), err);
    CHECK(!same);
    CHECK_OK(mp_source_file_is(path, MP_STR("anything"), &err, &same), err);
    CHECK(!same);
    CHECK_INT(mp_source_file_is("/nowhere", mp_buf_str(&name), &err, &same), MP_IO);

    for (int i = 0; i < 70000; i++)
        mp_buf_add_byte(&large, (char)('a' + i % 26));
    path = write_file("large", mp_buf_str(&large));
    mp_buf_clear(&name);
    CHECK_OK(mp_source_file_identity(path, &err, &name), err);
    append_file(path, MP_STR("more\n")); /* beyond what is hashed: the same name */
    mp_buf_clear(&other);
    CHECK_OK(mp_source_file_identity(path, &err, &other), err);
    CHECK_STR(mp_buf_str(&other), mp_buf_str(&name));
    mp_buf_fini(&large);
    mp_buf_fini(&name);
    mp_buf_fini(&other);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(gives_lines_at_every_buffer_size),
        TEST(seeks_where_a_line_begins),
        TEST(takes_what_was_appended),
        TEST(leaves_a_line_that_is_not_whole),
        TEST(the_mark_is_no_part_of_a_rest),
        TEST(names_a_line_that_is_too_long),
        TEST(reads_a_pipe),
        TEST(keeps_no_offsets),
        TEST(tells_why_it_cannot_open),
        TEST(names_a_file_by_place_and_content),
    };

    signal(SIGPIPE, SIG_IGN); /* a pipe nobody reads to its end */
    return test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
