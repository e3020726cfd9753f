/* kafka/file_state.c - see file_state.h. */
#include "kafka/file_state.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

static const char format[] = "millpond state 1";

struct mp_file_state {
    char *path, *next_path, *lock_path;
    int lock;
    json_t *root;
};

static char *with_ending(const char *path, const char *ending)
{
    size_t size = strlen(path) + strlen(ending) + 1;
    char *text = mp_alloc(size);

    snprintf(text, size, "%s%s", path, ending);
    return text;
}

static json_t *sources_of(const struct mp_file_state *state)
{
    return json_object_get(state->root, "sources");
}

/* The lock lies beside the state, whose own file is replaced by each change. */
static enum mp_code lock(struct mp_file_state *state, struct mp_err *err)
{
    state->lock = open(state->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (state->lock < 0)
        return mp_err_errno(err, MP_IO, "open", state->lock_path);
    if (flock(state->lock, LOCK_EX | LOCK_NB) == 0)
        return MP_OK;
    if (errno != EWOULDBLOCK)
        return mp_err_errno(err, MP_IO, "lock", state->lock_path);
    mp_err_set(err, MP_CONFLICT, "state %s is in use by another process", state->path);
    if (err)
        err->retriable = false;
    return MP_CONFLICT;
}

static bool is_state(const json_t *root)
{
    const char *name;
    json_t *item;

    if (!json_is_object(root) || !json_is_string(json_object_get(root, "format")) ||
        strcmp(json_string_value(json_object_get(root, "format")), format) != 0 ||
        !json_is_object(json_object_get(root, "sources")))
        return false;
    json_object_foreach(json_object_get(root, "sources"), name, item)
    {
        const json_t *offset = json_object_get(item, "offset");

        if (!json_is_integer(offset) || json_integer_value(offset) < 0 ||
            !json_is_string(json_object_get(item, "metadata")))
            return false;
    }
    return true;
}

static enum mp_code load(struct mp_file_state *state, struct mp_err *err)
{
    FILE *file = fopen(state->path, "re");
    json_error_t why;

    if (!file && errno == ENOENT) {
        state->root = json_pack("{s:s, s:{}}", "format", format, "sources");
        return MP_OK;
    }
    if (!file)
        return mp_err_errno(err, MP_IO, "open", state->path);
    state->root = json_loadf(file, JSON_REJECT_DUPLICATES, &why);
    fclose(file);
    if (!state->root)
        return mp_err_set(err, MP_BAD_DATA, "state %s, line %d: %s", state->path, why.line,
                          why.text);
    if (!is_state(state->root))
        return mp_err_set(err, MP_BAD_DATA, "%s is no \"%s\"", state->path, format);
    return MP_OK;
}

enum mp_code mp_file_state_open(const char *path, struct mp_err *err, struct mp_file_state **ret)
{
    struct mp_file_state *state = mp_alloc(sizeof(*state));
    enum mp_code code;

    state->path = with_ending(path, "");
    state->next_path = with_ending(path, ".next");
    state->lock_path = with_ending(path, ".lock");
    code = lock(state, err);
    if (!code)
        code = load(state, err);
    if (code)
        mp_file_state_close(state);
    else
        *ret = state;
    return code;
}

void mp_file_state_close(struct mp_file_state *state)
{
    if (!state)
        return;
    json_decref(state->root);
    if (state->lock >= 0)
        close(state->lock); /* the lock ends with it; its file stays, for the next */
    mp_free(state->path);
    mp_free(state->next_path);
    mp_free(state->lock_path);
    mp_free(state);
}

bool mp_file_state_get(const struct mp_file_state *state, struct mp_str source, int64_t *ret_offset,
                       struct mp_str *ret_metadata)
{
    const json_t *item = json_object_getn(sources_of(state), source.data, source.size);
    const json_t *metadata = json_object_get(item, "metadata");

    if (!item)
        return false;
    *ret_offset = json_integer_value(json_object_get(item, "offset"));
    *ret_metadata = mp_str_n(json_string_value(metadata), json_string_length(metadata));
    return true;
}

static enum mp_code write_all(int fd, const char *path, struct mp_str text, struct mp_err *err)
{
    while (text.size) {
        ssize_t done = write(fd, text.data, text.size);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return mp_err_errno(err, MP_IO, "write", path);
        text.data += done;
        text.size -= (size_t)done;
    }
    return fsync(fd) < 0 ? mp_err_errno(err, MP_IO, "sync", path) : MP_OK;
}

static enum mp_code sync_folder(const char *path, struct mp_err *err)
{
    char *copy = with_ending(path, "");
    const char *folder = dirname(copy);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum mp_code code = fd < 0 || fsync(fd) < 0 ? mp_err_errno(err, MP_IO, "sync", folder) : MP_OK;

    if (fd >= 0)
        close(fd);
    mp_free(copy);
    return code;
}

static enum mp_code save(const struct mp_file_state *state, struct mp_err *err)
{
    char *text = json_dumps(state->root, JSON_INDENT(1));
    int fd = open(state->next_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    enum mp_code code;

    if (!text)
        mp_out_of_memory(0);
    code = fd < 0 ? mp_err_errno(err, MP_IO, "open", state->next_path)
                  : write_all(fd, state->next_path, mp_str_c(text), err);
    if (fd >= 0 && close(fd) < 0 && !code)
        code = mp_err_errno(err, MP_IO, "close", state->next_path);
    if (!code && rename(state->next_path, state->path) < 0)
        code = mp_err_errno(err, MP_IO, "rename to", state->path);
    if (!code)
        code = sync_folder(state->path, err);
    free(text);
    return code;
}

enum mp_code mp_file_state_put(struct mp_file_state *state, struct mp_str source, int64_t offset,
                               struct mp_str metadata, struct mp_err *err)
{
    json_t *text = json_stringn(metadata.data ? metadata.data : "", metadata.size), *item;

    assert(offset >= 0);
    if (!text) /* jansson's only other reason: not UTF-8 */
        return mp_err_set(err, MP_BAD_DATA, "the text beside offset %lld is not UTF-8",
                          (long long)offset);
    item = json_pack("{s:I, s:o}", "offset", (json_int_t)offset, "metadata", text);
    if (!item || json_object_setn_new(sources_of(state), source.data, source.size, item) < 0)
        return mp_err_set(err, MP_BAD_DATA, "source \"%.*s\": the name is not UTF-8",
                          MP_STR_ARG(source));
    return save(state, err);
}

void mp_file_state_visit(const struct mp_file_state *state,
                         void (*visit)(void *self, struct mp_str source), void *self)
{
    const char *name;
    json_t *item;

    json_object_foreach(sources_of(state), name, item) visit(self, mp_str_c(name));
}
