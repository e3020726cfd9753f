/* store/local.c - objects as files below one directory.
 *
 * A put writes a file of another name beside its place, makes its bytes durable, renames it and
 * makes the name durable. POSIX promises that rename is seen whole or not at all; only fsync of
 * the directory promises that it outlives a power cut, and a directory that is itself new needs
 * the same from the one above it. So:
 *
 *   L1  bytes are written and fsynced under a name that list hides and no reader asks for
 *   L2  the key appears by rename, after L1
 *   L3  MP_OK comes after every directory from the object's up to the root was fsynced since L2
 *
 * L3 is done for the whole chain and not only for directories we made: one made a moment ago by
 * another process may not be durable yet either. An fsync of a clean directory costs next to
 * nothing beside that of the file, and a put of many objects does it once a directory.
 *
 * A process killed between L1 and L2 leaves its temporary file. It is not swept here, since it
 * cannot be told from one that another live process is writing.
 *
 * Not chosen: O_TMPFILE with linkat, which leaves nothing behind, but is missing on NFS and on
 * some overlay file systems; a cache of known directories, which goes stale when somebody else
 * removes one.
 */
#include "store/store_driver.h"

#include "base/arena.h"
#include "base/mem.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define IOV_COUNT 64 /* pieces a writev takes; POSIX allows at least 16, Linux 1,024 */

struct local {
    struct mp_store store;
    const struct mp_env *env;
    char *root; /* absolute, without a '/' at its end ("" is the root directory itself) */
};

/* A full disk may be emptied and a busy one may recover; a name or a permission stays wrong. */
static enum mp_code sys_error(struct mp_err *err, const char *what, const char *path, int sys)
{
    static const int permanent[] = {EACCES, EPERM, EROFS, ENOTDIR,
                                    EISDIR, ELOOP, EFBIG, ENAMETOOLONG};
    enum mp_code code = MP_IO;

    for (size_t i = 0; i < sizeof(permanent) / sizeof(*permanent); i++)
        if (sys == permanent[i])
            code = MP_REFUSED;
    mp_err_set(err, code, "%s " MP_STORE_SHOWN ": %s", what, MP_STORE_SHOWN_ARG(mp_str_c(path)),
               strerror(sys));
    if (err)
        err->sys = sys;
    return code;
}

static enum mp_code path_of(const struct local *local, struct mp_str key, char ret[PATH_MAX],
                            struct mp_err *err)
{
    int size = snprintf(ret, PATH_MAX, "%s/%.*s", local->root, MP_STR_ARG(key));

    if (size >= 0 && size < PATH_MAX)
        return MP_OK;
    return mp_err_set(err, MP_REFUSED, "path of key " MP_STORE_SHOWN " has %d bytes, %d at most",
                      MP_STORE_SHOWN_ARG(key), size, PATH_MAX - 1);
}

/* --- put ------------------------------------------------------------------------------------ */

/* Makes every directory above path, below the first `keep` bytes of it. */
static enum mp_code make_parents(const char *path, size_t keep, struct mp_err *err)
{
    char part[PATH_MAX];

    for (const char *end = strchr(path + keep, '/'); end; end = strchr(end + 1, '/')) {
        size_t size = (size_t)(end - path);

        if (size == keep)
            continue;
        memcpy(part, path, size);
        part[size] = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return sys_error(err, "make directory", part, errno);
    }
    return MP_OK;
}

/* Writes all pieces; a write that took less than it was given goes on behind that. */
static enum mp_code write_pieces(int fd, const struct mp_store_object *object, const char *path,
                                 struct mp_err *err)
{
    uint32_t next = 0;
    size_t skip = 0; /* bytes of piece `next` that are written */
    uint64_t total = 0;

    while (next < object->piece_count) {
        struct iovec iov[IOV_COUNT];
        int count = 0;
        ssize_t wrote;

        for (uint32_t i = next; i < object->piece_count && count < IOV_COUNT; i++) {
            size_t begin = i == next ? skip : 0;

            iov[count].iov_base = (char *)(uintptr_t)object->pieces[i].data + begin;
            iov[count++].iov_len = object->pieces[i].size - begin;
        }
        wrote = writev(fd, iov, count);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return sys_error(err, "write", path, errno);
        total += (uint64_t)wrote;
        skip += (size_t)wrote;
        while (next < object->piece_count && skip >= object->pieces[next].size)
            skip -= object->pieces[next++].size;
    }
    assert(total == object->bytes);
    return MP_OK;
}

static int open_new(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

/* L1 and L2 for one object. */
static enum mp_code put_one(const struct local *local, const struct mp_store_object *object,
                            struct mp_err *err)
{
    char path[PATH_MAX], temp[PATH_MAX], uuid[MP_UUID_TEXT];
    bool temp_made = false;
    enum mp_code code;
    int fd = -1, size;

    code = mp_store_key_check(object->key, err);
    if (code)
        goto out;
    code = path_of(local, object->key, path, err);
    if (code)
        goto out;
    mp_uuid4(local->env, uuid);
    size = snprintf(temp, sizeof(temp), "%.*s/" MP_STORE_TEMP_PREFIX "%s",
                    (int)(strrchr(path, '/') - path), path, uuid);
    if (size >= (int)sizeof(temp)) {
        code = sys_error(err, "make", path, ENAMETOOLONG);
        goto out;
    }
    fd = open_new(temp);
    if (fd < 0 && errno == ENOENT) {
        code = make_parents(temp, strlen(local->root), err);
        if (code)
            goto out;
        fd = open_new(temp);
    }
    if (fd < 0) {
        code = sys_error(err, "make", temp, errno);
        goto out;
    }
    temp_made = true;
    code = write_pieces(fd, object, path, err);
    if (code)
        goto out;
    if (fsync(fd) != 0) {
        code = sys_error(err, "fsync", path, errno);
        goto out;
    }
    if (close(fd) != 0) {
        fd = -1;
        code = sys_error(err, "close", path, errno);
        goto out;
    }
    fd = -1;
    if (rename(temp, path) != 0) {
        code = sys_error(err, "rename to", path, errno);
        goto out;
    }
    temp_made = false;
out:
    if (fd >= 0)
        close(fd);
    if (temp_made)
        unlink(temp);
    return code;
}

static enum mp_code sync_directory(const char *path, struct mp_err *err)
{
    int fd = open(*path ? path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum mp_code code = MP_OK;

    if (fd < 0)
        return sys_error(err, "open directory", path, errno);
    /* EINVAL: a file system without fsync of directories; there is nothing more to do there */
    if (fsync(fd) != 0 && errno != EINVAL)
        code = sys_error(err, "fsync directory", path, errno);
    close(fd);
    return code;
}

/* L3: the directories above path, deepest first, down to one of `keep` bytes. */
static enum mp_code sync_parents(char *path, size_t keep, struct mp_err *err)
{
    enum mp_code code = MP_OK;

    for (char *end = strrchr(path, '/'); !code && end && (size_t)(end - path) >= keep;
         end = strrchr(path, '/')) {
        *end = 0;
        code = sync_directory(path, err);
    }
    return code;
}

static struct mp_str directory_of(struct mp_str key)
{
    while (key.size > 0 && key.data[key.size - 1] != '/')
        key.size--;
    return key;
}

static enum mp_code local_put(struct mp_store *store, const struct mp_store_object *objects,
                              uint32_t count, bool *ret_done, struct mp_err *err)
{
    struct local *local = (struct local *)store;
    enum mp_code code = MP_OK, sync_code = MP_OK;
    uint32_t renamed = 0;

    memset(ret_done, 0, count * sizeof(*ret_done));
    while (renamed < count && !code) {
        code = put_one(local, &objects[renamed], err);
        if (code)
            mp_err_add(err, "put");
        else
            renamed++;
    }
    for (uint32_t i = 0; i < renamed && !sync_code; i++) {
        char path[PATH_MAX];

        if (i == 0 || !mp_str_eq(directory_of(objects[i].key), directory_of(objects[i - 1].key))) {
            struct mp_err *sync_err = code ? NULL : err; /* the first fault is the one told */

            sync_code = path_of(local, objects[i].key, path, sync_err);
            if (!sync_code)
                sync_code = sync_parents(path, strlen(local->root), sync_err);
        }
        ret_done[i] = !sync_code;
    }
    return code ? code : sync_code;
}

/* --- get, list, remove ---------------------------------------------------------------------- */

static enum mp_code local_get(struct mp_store *store, struct mp_str key, int64_t offset,
                              size_t size, void *memory, size_t *ret_size, struct mp_err *err)
{
    struct local *local = (struct local *)store;
    char path[PATH_MAX];
    enum mp_code code;
    struct stat info;
    size_t have = 0;
    int fd = -1;

    assert(offset >= -1);
    code = mp_store_key_check(key, err);
    if (code)
        goto out;
    code = path_of(local, key, path, err);
    if (code)
        goto out;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT && errno != ENOTDIR) {
        code = sys_error(err, "open", path, errno);
        goto out;
    }
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        code = mp_err_set(err, MP_NOT_FOUND, MP_STORE_SHOWN " is not there",
                          MP_STORE_SHOWN_ARG(mp_str_c(path)));
        goto out;
    }
    if (offset < 0)
        offset = info.st_size > (off_t)size ? info.st_size - (off_t)size : 0;
    while (have < size) {
        ssize_t got = pread(fd, (char *)memory + have, size - have, (off_t)(offset + (off_t)have));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            code = sys_error(err, "read", path, errno);
            goto out;
        }
        if (got == 0)
            break;
        have += (size_t)got;
    }
    *ret_size = have;
out:
    if (fd >= 0)
        close(fd);
    return code;
}

struct name {
    const char *text; /* a directory's ends with '/', which puts it where its keys sort */
    uint64_t bytes;
};

/* A walk below the root. `path` is the place it is at, `root_size` bytes of it are not the key. */
struct walk {
    char path[PATH_MAX];
    size_t root_size;
    bool (*visit)(void *self, const struct mp_store_entry *entry);
    void *self;
    bool ended;
    struct mp_err *err;
};

static int name_order(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

/* Gives the entries of the directory at walk->path that begin with `begin`, sorted. What went
 * away meanwhile is left out, and so are links: they could lead round in circles. */
static enum mp_code read_names(struct walk *walk, struct mp_str begin, struct mp_arena *arena,
                               struct name **ret, size_t *ret_count)
{
    size_t count = 0, capacity = 0;
    struct name *names = NULL;
    enum mp_code code = MP_OK;
    struct dirent *entry;
    DIR *directory = opendir(walk->path);

    if (!directory && errno != ENOENT && errno != ENOTDIR)
        code = sys_error(walk->err, "open directory", walk->path, errno);
    while (directory && (errno = 0, entry = readdir(directory))) {
        struct mp_str name = mp_str_c(entry->d_name);
        struct stat info;

        if (!mp_str_starts(name, begin) || mp_str_starts(name, MP_STR(MP_STORE_TEMP_PREFIX)) ||
            mp_str_eq(name, MP_STR(".")) || mp_str_eq(name, MP_STR("..")))
            continue;
        if (fstatat(dirfd(directory), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
            continue;
        if (count == capacity) {
            capacity = capacity ? capacity * 2 : 64;
            names = mp_realloc(names, capacity * sizeof(*names));
        }
        names[count++] = (struct name){
            .text = mp_arena_printf(arena, "%s%s", entry->d_name, S_ISDIR(info.st_mode) ? "/" : ""),
            .bytes = (uint64_t)info.st_size,
        };
    }
    if (directory && errno)
        code = sys_error(walk->err, "read directory", walk->path, errno);
    if (directory)
        closedir(directory);
    if (count)
        qsort(names, count, sizeof(*names), name_order);
    *ret = names;
    *ret_count = count;
    return code;
}

/* Walks the directory at walk->path, which ends with '/'. As deep as a path has parts. */
static enum mp_code walk_directory(struct walk *walk, struct mp_str begin)
{
    size_t count = 0, size = strlen(walk->path);
    struct name *names = NULL;
    struct mp_arena arena;
    enum mp_code code;

    mp_arena_init(&arena, 0);
    code = read_names(walk, begin, &arena, &names, &count);
    for (size_t i = 0; i < count && !code && !walk->ended; i++) {
        size_t name_size = strlen(names[i].text);

        if (size + name_size >= PATH_MAX) {
            code = sys_error(walk->err, "walk", walk->path, ENAMETOOLONG);
            break;
        }
        memcpy(walk->path + size, names[i].text, name_size + 1);
        if (names[i].text[name_size - 1] == '/') {
            code = walk_directory(walk, MP_STR(""));
        } else {
            struct mp_store_entry entry = {
                .key = mp_str_c(walk->path + walk->root_size),
                .bytes = names[i].bytes,
            };
            walk->ended = !walk->visit(walk->self, &entry);
        }
        walk->path[size] = 0;
    }
    mp_free(names);
    mp_arena_fini(&arena);
    return code;
}

static enum mp_code local_list(struct mp_store *store, struct mp_str prefix,
                               bool (*visit)(void *self, const struct mp_store_entry *entry),
                               void *self, struct mp_err *err)
{
    struct local *local = (struct local *)store;
    struct mp_str directory = directory_of(prefix);
    struct mp_str begin = {prefix.data + directory.size, prefix.size - directory.size};
    struct walk walk = {
        .root_size = strlen(local->root) + 1, .visit = visit, .self = self, .err = err};
    enum mp_code code = mp_store_prefix_check(prefix, err);

    if (!code)
        code = path_of(local, directory, walk.path, err);
    if (!code)
        code = walk_directory(&walk, begin);
    return code;
}

static enum mp_code local_remove(struct mp_store *store, struct mp_str key, struct mp_err *err)
{
    struct local *local = (struct local *)store;
    char path[PATH_MAX];
    enum mp_code code = mp_store_key_check(key, err);

    if (!code)
        code = path_of(local, key, path, err);
    if (!code && unlink(path) != 0 && errno != ENOENT && errno != ENOTDIR)
        code = sys_error(err, "remove", path, errno);
    return code;
}

/* --- open and close ------------------------------------------------------------------------- */

static void local_close(struct mp_store *store)
{
    struct local *local = (struct local *)store;

    mp_free(local->root);
    mp_free(local);
}

static const struct mp_store_driver local_driver = {
    .name = "local",
    .put = local_put,
    .get = local_get,
    .list = local_list,
    .remove = local_remove,
    .close = local_close,
};

/* Makes the directory durably, from its deepest part that is there. */
static enum mp_code make_root(struct mp_str root, struct mp_err *err)
{
    char path[PATH_MAX];
    size_t keep = root.size;
    enum mp_code code;
    struct stat info;

    snprintf(path, sizeof(path), "%.*s/", MP_STR_ARG(root));
    if (stat(path, &info) == 0)
        return access(path, W_OK | X_OK) == 0 ? MP_OK
                                              : sys_error(err, "write to directory", path, errno);
    if (errno != ENOENT)
        return sys_error(err, "open directory", path, errno);
    do {
        while (keep > 0 && root.data[--keep] != '/')
            ;
        snprintf(path, sizeof(path), "%.*s", (int)keep, root.data);
    } while (keep > 0 && stat(path, &info) != 0);
    snprintf(path, sizeof(path), "%.*s/", MP_STR_ARG(root));
    code = make_parents(path, keep, err);
    if (!code)
        code = sync_parents(path, keep, err);
    return code;
}

enum mp_code mp_store_local_open(struct mp_str root, const struct mp_env *env, struct mp_err *err,
                                 struct mp_store **ret)
{
    struct local *local;
    enum mp_code code;

    while (root.size > 0 && root.data[root.size - 1] == '/')
        root.size--;
    if (root.size + 2 > PATH_MAX || memchr(root.data, 0, root.size))
        return mp_err_set(err, MP_BAD_CONFIG, "directory has a NUL or %zu bytes, %d at most",
                          root.size, PATH_MAX - 2);
    code = make_root(root, err);
    if (code) {
        mp_err_add(err, "open store");
        return code;
    }
    local = mp_alloc(sizeof(*local));
    local->store.driver = &local_driver;
    local->env = env;
    local->root = mp_alloc(root.size + 1);
    memcpy(local->root, root.data, root.size);
    *ret = &local->store;
    return MP_OK;
}
