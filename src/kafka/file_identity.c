/* kafka/file_identity.c - which file is this? See source_file.h. */
#include "kafka/source_file.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

enum { HASHED_BYTES_MAX = 64 * 1024 };

/* Reads up to size leading bytes. */
static enum mp_code read_head(const char *path, char *data, size_t size, struct mp_err *err,
                              size_t *ret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got = 1;

    if (fd < 0)
        return mp_err_errno(err, MP_IO, "open", path);
    while (used < size && got != 0) {
        got = read(fd, data + used, size - used);
        if (got < 0 && errno != EINTR)
            break;
        used += got > 0 ? (size_t)got : 0;
    }
    if (got < 0)
        mp_err_errno(err, MP_IO, "read", path);
    close(fd);
    *ret = used;
    return got < 0 ? MP_IO : MP_OK;
}

/* Names the file by its first `wanted` bytes, or all it has. */
static enum mp_code name_by(const char *path, size_t wanted, struct mp_err *err, struct mp_buf *ret)
{
    char *data = mp_alloc(HASHED_BYTES_MAX), *canonical = realpath(path, NULL);
    size_t size = 0;
    enum mp_code code = canonical ? MP_OK : mp_err_errno(err, MP_IO, "resolve", path);

    if (!code)
        code = read_head(path, data, wanted, err, &size);
    if (!code) {
        XXH128_hash_t hash = XXH3_128bits(data, size);

        mp_buf_printf(ret, "%s#%zu-%016llx%016llx", canonical, size,
                      (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    }
    free(canonical);
    mp_free(data);
    return code;
}

enum mp_code mp_source_file_identity(const char *path, struct mp_err *err, struct mp_buf *ret)
{
    return name_by(path, HASHED_BYTES_MAX, err, ret);
}

/* The number between the last '#' and the '-' behind it; false: not a name of ours. */
static bool hashed_bytes(struct mp_str identity, size_t *ret)
{
    const char *hash = memrchr(identity.data, '#', identity.size);
    size_t value = 0, left = hash ? identity.size - (size_t)(hash + 1 - identity.data) : 0;

    while (left && hash[1] >= '0' && hash[1] <= '9' && value <= HASHED_BYTES_MAX) {
        value = value * 10 + (size_t)(hash[1] - '0');
        hash++;
        left--;
    }
    *ret = value;
    return left && hash[1] == '-' && value <= HASHED_BYTES_MAX;
}

enum mp_code mp_source_file_is(const char *path, struct mp_str identity, struct mp_err *err,
                               bool *ret)
{
    struct mp_buf now = MP_BUF_INIT(PATH_MAX + 128);
    size_t wanted;
    enum mp_code code;

    if (!hashed_bytes(identity, &wanted)) {
        *ret = false;
        return MP_OK;
    }
    code = name_by(path, wanted, err, &now);
    if (!code)
        *ret = mp_str_eq(mp_buf_str(&now), identity);
    mp_buf_fini(&now);
    return code;
}
