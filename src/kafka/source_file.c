/* kafka/source_file.c - see source_file.h.
 *
 *     data   begin        scanned      end      capacity
 *      |------|------------|------------|----------|
 *      given   no '\n' here  not looked   free
 *              ^ position (of the file) is that of data[begin]
 *
 * Bytes are moved to the front only when no whole line is left, so at most one partial line is
 * ever moved; a line that does not fit makes the buffer double. Nothing is searched twice.
 *
 * Not chosen: mmap. A file cut short under the reader would be a signal instead of an error, and
 * a pipe would need the other way all the same.
 */
#include "kafka/source_file.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 256 * 1024, LINE_BYTES_MAX = 256 * 1024 * 1024 };

struct file_source {
    struct mp_source source; /* first */
    char *path;
    int fd;
    bool owned;   /* fd is ours to close */
    bool regular; /* has a size, can be read anywhere */
    bool ended;   /* read to its end */
    bool resting; /* gives nothing until it is sought */
    bool partial; /* ended within a line, which is not given */
    size_t line_bytes_max;

    char *data;
    size_t begin, scanned, end, capacity;
    int64_t position; /* of data[begin] */

    bool (*whole)(void *self, struct mp_str line);
    void *self;

    struct mp_file_state *state; /* NULL: nobody's offsets are kept here */
    char *name;                  /* in the state */

    struct mp_record *items;
    uint32_t items_max;
};

static struct file_source *of(struct mp_source *source)
{
    return (struct file_source *)source;
}

static int64_t size_of(const struct file_source *file)
{
    struct stat info;

    return file->regular && fstat(file->fd, &info) == 0 ? (int64_t)info.st_size : MP_OFFSET_NONE;
}

/* Reads at the end of what is buffered; 0 at the end of the file. */
static ssize_t read_some(struct file_source *file, char *data, size_t size)
{
    int64_t at = file->position + (int64_t)(file->end - file->begin);
    ssize_t got;

    do
        got = file->regular ? pread(file->fd, data, size, at) : read(file->fd, data, size);
    while (got < 0 && errno == EINTR);
    return got;
}

/* Makes room behind `end`: first by moving what is left to the front, then by doubling. */
static enum mp_code make_room(struct file_source *file, struct mp_err *err)
{
    size_t left = file->end - file->begin;

    if (file->begin) {
        memmove(file->data, file->data + file->begin, left);
        file->scanned -= file->begin;
        file->begin = 0;
        file->end = left;
    }
    if (file->end < file->capacity)
        return MP_OK;
    if (left > file->line_bytes_max)
        return mp_err_set(err, MP_BAD_DATA, "%s: the line at offset %lld is longer than %zu bytes",
                          file->path, (long long)file->position, file->line_bytes_max);
    file->capacity *= 2;
    file->data = mp_realloc(file->data, file->capacity);
    return MP_OK;
}

/* Reads more behind what is buffered, waiting at most wait_ms for a pipe. *ret_waited: nothing
 * came in that time. */
static enum mp_code fill(struct file_source *file, uint32_t wait_ms, struct mp_err *err,
                         bool *ret_waited)
{
    struct pollfd ready = {.fd = file->fd, .events = POLLIN};
    enum mp_code code = make_room(file, err);
    ssize_t got;
    int events;

    if (code)
        return code;
    events = file->regular ? 1 : poll(&ready, 1, (int)wait_ms);
    if (events == 0 || (events < 0 && errno == EINTR)) {
        *ret_waited = true;
        return MP_OK;
    }
    got = events < 0 ? -1 : read_some(file, file->data + file->end, file->capacity - file->end);
    if (got < 0)
        return mp_err_errno(err, MP_IO, "read", file->path);
    file->end += (size_t)got;
    file->ended = got == 0;
    return MP_OK;
}

/* The first line of a file without the byte order mark that may stand before it; others keep it. */
static struct mp_str without_mark(const struct file_source *file, struct mp_str line)
{
    if (file->position || !mp_str_starts(line, MP_STR("\xef\xbb\xbf")))
        return line;
    return mp_str_n(line.data + 3, line.size - 3);
}

/* Is what stands behind the last line feed a line? */
static bool rest_is_line(struct file_source *file)
{
    struct mp_str rest = {file->data + file->begin, file->end - file->begin};
    struct mp_str value = without_mark(file, rest);

    if (value.size && !file->partial && file->regular && file->whole)
        file->partial = !file->whole(file->self, value);
    return rest.size && !file->partial;
}

/* Finds the next line: from begin, *ret_size bytes with its line feed. At the file's end the rest
 * may be a line without one. False: there is none yet. */
static bool next_line(struct file_source *file, size_t *ret_size)
{
    const char *feed = NULL;

    if (file->scanned < file->end)
        feed = memchr(file->data + file->scanned, '\n', file->end - file->scanned);
    if (!feed) {
        file->scanned = file->end;
        *ret_size = file->end - file->begin;
        return file->ended && rest_is_line(file);
    }
    *ret_size = (size_t)(feed + 1 - (file->data + file->begin));
    return true;
}

/* Gives the line of `size` bytes at begin, unless it is empty, and goes behind it. */
static bool give_line(struct file_source *file, size_t size, struct mp_record *ret)
{
    struct mp_str line = {file->data + file->begin, size};
    int64_t offset = file->position;

    if (line.size && line.data[line.size - 1] == '\n')
        line.size--;
    if (line.size && line.data[line.size - 1] == '\r')
        line.size--;
    line = without_mark(file, line);
    file->begin += size;
    file->scanned = file->begin;
    file->position += (int64_t)size;
    if (!line.size)
        return false;
    *ret = (struct mp_record){.partition = 0,
                              .has_value = true,
                              .offset = offset,
                              .next_offset = offset + (int64_t)size,
                              .timestamp_ms = MP_OFFSET_NONE,
                              .value = line};
    return true;
}

static enum mp_code file_poll(struct mp_source *source, uint32_t records_max, uint32_t wait_ms,
                              struct mp_err *err, struct mp_records *ret)
{
    struct file_source *file = of(source);
    uint32_t count = 0;
    bool waited = false;
    size_t size;

    if (file->items_max < records_max) {
        file->items = mp_realloc(file->items, records_max * sizeof(*file->items));
        file->items_max = records_max;
    }
    while (count < records_max && !file->resting) {
        if (next_line(file, &size)) {
            if (size > file->line_bytes_max && !count)
                return mp_err_set(err, MP_BAD_DATA,
                                  "%s: the line at offset %lld is longer than %zu bytes",
                                  file->path, (long long)file->position, file->line_bytes_max);
            if (size > file->line_bytes_max)
                break; /* told by the next poll */
            count += give_line(file, size, &file->items[count]);
        } else if (count || file->ended || waited) {
            break; /* views given must not move: reading more is for the next poll */
        } else {
            enum mp_code code = fill(file, wait_ms, err, &waited);

            if (code)
                return code;
        }
    }
    *ret = (struct mp_records){.items = file->items,
                               .count = count,
                               .end = file->ended && (file->partial || file->begin == file->end)};
    return MP_OK;
}

static enum mp_code not_a_line(const struct file_source *file, int64_t offset, struct mp_err *err)
{
    return mp_err_set(err, MP_BAD_DATA, "%s: no line begins at offset %lld", file->path,
                      (long long)offset);
}

/* FL1 for a place in a file of known size. */
static enum mp_code check_place(const struct file_source *file, int64_t offset, struct mp_err *err)
{
    int64_t size = size_of(file);
    char around[3] = {0};
    ssize_t got;

    if (offset > size)
        return mp_err_set(err, MP_BAD_DATA, "%s has %lld bytes, offset %lld is behind its end",
                          file->path, (long long)size, (long long)offset);
    if (offset == 0 || offset == size)
        return MP_OK;
    got = pread(file->fd, around, sizeof(around), offset - 1);
    if (got < 0)
        return mp_err_errno(err, MP_IO, "read", file->path);
    if (got >= 1 && around[0] == '\n')
        return MP_OK;
    if (got >= 2 && around[1] == '\n')
        return MP_OK;
    if (got == 3 && around[1] == '\r' && around[2] == '\n')
        return MP_OK;
    return not_a_line(file, offset, err);
}

static enum mp_code seek_regular(struct file_source *file, int64_t offset, struct mp_err *err)
{
    int64_t to = offset == MP_OFFSET_EARLIEST ? 0
                 : offset == MP_OFFSET_LATEST ? size_of(file)
                                              : offset;
    enum mp_code code = check_place(file, to, err);

    if (code)
        return code;
    file->begin = file->scanned = file->end = 0;
    file->position = to;
    file->ended = file->partial = false;
    return MP_OK;
}

/* Makes at least `want` bytes wait at begin, fewer only at the end. */
static enum mp_code buffer_up_to(struct file_source *file, size_t want, struct mp_err *err)
{
    while (file->end - file->begin < want && !file->ended) {
        bool waited;
        enum mp_code code = fill(file, UINT32_MAX >> 1, err, &waited);

        if (code)
            return code;
    }
    return MP_OK;
}

/* Reads and drops up to offset; FL1 is seen from the bytes around it. */
static enum mp_code seek_pipe(struct file_source *file, int64_t offset, struct mp_err *err)
{
    char before = '\n';
    size_t left;
    enum mp_code code;

    if (offset == MP_OFFSET_EARLIEST)
        offset = 0;
    if (offset < file->position)
        return mp_err_set(err, MP_BAD_CONFIG, "%s cannot go back from offset %lld to %lld",
                          file->path, (long long)file->position, (long long)offset);
    while (file->position < offset) {
        uint64_t more = (uint64_t)(offset - file->position);
        size_t step;

        code = buffer_up_to(file, 1, err);
        if (code)
            return code;
        left = file->end - file->begin;
        if (!left)
            return mp_err_set(err, MP_BAD_DATA, "%s ended at offset %lld, before offset %lld",
                              file->path, (long long)file->position, (long long)offset);
        step = more < left ? (size_t)more : left;
        before = file->data[file->begin + step - 1];
        file->begin += step;
        file->scanned = file->begin;
        file->position += (int64_t)step;
    }
    if (before == '\n')
        return MP_OK;
    code = buffer_up_to(file, 2, err);
    if (code)
        return code;
    left = file->end - file->begin;
    if (!left || file->data[file->begin] == '\n')
        return MP_OK;
    if (left >= 2 && file->data[file->begin] == '\r' && file->data[file->begin + 1] == '\n')
        return MP_OK;
    return not_a_line(file, offset, err);
}

static enum mp_code file_seek(struct mp_source *source, int32_t partition, int64_t offset,
                              struct mp_err *err)
{
    struct file_source *file = of(source);

    if (partition != 0)
        return mp_err_set(err, MP_NOT_FOUND, "%s has no partition %d", file->path, (int)partition);
    file->resting = false;
    if (file->regular)
        return seek_regular(file, offset, err);
    if (offset == MP_OFFSET_LATEST)
        return mp_err_set(err, MP_BAD_CONFIG, "%s has no known end to begin at", file->path);
    return seek_pipe(file, offset, err);
}

static enum mp_code file_partitions(struct mp_source *source, struct mp_err *err,
                                    const int32_t **ret, uint32_t *ret_count)
{
    static const int32_t only = 0;

    (void)source, (void)err;
    *ret = &only;
    *ret_count = 1;
    return MP_OK;
}

static enum mp_code file_unseek(struct mp_source *source, int32_t partition, struct mp_err *err)
{
    (void)partition, (void)err;
    of(source)->resting = true;
    return MP_OK;
}

static int64_t file_reached(struct mp_source *source, int32_t partition)
{
    (void)partition;
    return of(source)->position;
}

/* The state's lock is what keeps others away. */
static enum mp_code file_own(struct mp_source *source, const int32_t *partitions, uint32_t count,
                             struct mp_err *err, bool *ret_fenced)
{
    (void)source, (void)partitions, (void)count, (void)err;
    *ret_fenced = true;
    return MP_OK;
}

static void file_disown(struct mp_source *source, const int32_t *partitions, uint32_t count)
{
    (void)source, (void)partitions, (void)count;
}

static enum mp_code file_commit(struct mp_source *source, const struct mp_source_offset *offsets,
                                uint32_t count, struct mp_err *err)
{
    const struct file_source *file = of(source);
    enum mp_code code = MP_OK;

    for (uint32_t i = 0; i < count && file->state && !code; i++)
        code = mp_file_state_put(file->state, mp_str_c(file->name), offsets[i].offset,
                                 offsets[i].metadata, err);
    return code;
}

static enum mp_code file_committed(struct mp_source *source, struct mp_arena *arena,
                                   struct mp_source_offset *offsets, uint32_t count,
                                   struct mp_err *err)
{
    const struct file_source *file = of(source);
    struct mp_str text;

    (void)err;
    for (uint32_t i = 0; i < count; i++) {
        offsets[i].offset = MP_OFFSET_NONE;
        offsets[i].metadata = MP_STR("");
        if (offsets[i].partition == 0 && file->state &&
            mp_file_state_get(file->state, mp_str_c(file->name), &offsets[i].offset, &text))
            offsets[i].metadata = mp_arena_str(arena, text);
    }
    return MP_OK;
}

static void file_watermarks_seen(struct mp_source *source, struct mp_source_watermark *watermarks,
                                 uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        watermarks[i].low = 0;
        watermarks[i].high = size_of(of(source));
    }
}

static enum mp_code file_watermarks(struct mp_source *source,
                                    struct mp_source_watermark *watermarks, uint32_t count,
                                    struct mp_err *err)
{
    (void)err;
    file_watermarks_seen(source, watermarks, count);
    return MP_OK;
}

static void file_close(struct mp_source *source)
{
    struct file_source *file = of(source);

    if (file->owned && file->fd >= 0)
        close(file->fd);
    mp_free(file->items);
    mp_free(file->data);
    mp_free(file->path);
    mp_free(file->name);
    mp_free(file);
}

static const struct mp_source_driver without_state = {
    .name = "file",
    .partitions = file_partitions,
    .seek = file_seek,
    .unseek = file_unseek,
    .poll = file_poll,
    .reached = file_reached,
    .commit = file_commit,
    .committed = file_committed,
    .watermarks = file_watermarks,
    .watermarks_seen = file_watermarks_seen,
    .close = file_close,
};

static const struct mp_source_driver with_state = {
    .name = "file",
    .partitions = file_partitions,
    .seek = file_seek,
    .unseek = file_unseek,
    .poll = file_poll,
    .reached = file_reached,
    .own = file_own,
    .disown = file_disown,
    .commit = file_commit,
    .committed = file_committed,
    .watermarks = file_watermarks,
    .watermarks_seen = file_watermarks_seen,
    .close = file_close,
};

static char *copy(struct mp_str text)
{
    char *bytes = mp_alloc(text.size + 1);

    if (text.size)
        memcpy(bytes, text.data, text.size);
    return bytes;
}

enum mp_code mp_source_file_open(const struct mp_source_file_options *options, struct mp_err *err,
                                 struct mp_source **ret)
{
    bool standard = strcmp(options->path, "-") == 0;
    const char *name = standard ? "standard input" : options->path;
    struct file_source *file = mp_alloc(sizeof(*file));
    struct stat info = {0};

    file->source.driver = options->state ? &with_state : &without_state;
    file->path = copy(mp_str_c(name));
    file->state = options->state;
    file->name = copy(options->name);
    file->whole = options->whole;
    file->self = options->self;
    file->owned = !standard;
    file->fd = standard ? STDIN_FILENO : open(options->path, O_RDONLY | O_CLOEXEC);
    if (file->fd < 0 || fstat(file->fd, &info) < 0 || S_ISDIR(info.st_mode)) {
        enum mp_code code;

        if (S_ISDIR(info.st_mode))
            errno = EISDIR;
        code = mp_err_errno(err, MP_IO, "open", file->path);
        file_close(&file->source);
        return code;
    }
    file->regular = S_ISREG(info.st_mode);
    file->line_bytes_max = options->line_bytes_max ? options->line_bytes_max : LINE_BYTES_MAX;
    file->capacity = options->buffer_bytes ? options->buffer_bytes : BUFFER_BYTES;
    file->data = mp_realloc(NULL, file->capacity); /* not zeroed: pages come when used */
    *ret = &file->source;
    return MP_OK;
}
