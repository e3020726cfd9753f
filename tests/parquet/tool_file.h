/* tests/parquet/tool_file.h - files for the tools that the judges drive: opened, and their footers.
 */
#ifndef MP_TESTS_TOOL_FILE_H
#define MP_TESTS_TOOL_FILE_H

#include "base/buf.h"
#include "base/mem.h"
#include "parquet/footer.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct opened {
    int fd;
    uint64_t bytes;
    char *footer_bytes;
    const struct mp_parquet_footer *footer;
};

static inline enum mp_code read_at(void *context, uint64_t offset, size_t size, char *ret,
                                   struct mp_err *err)
{
    const struct opened *file = context;

    if (pread(file->fd, ret, size, (off_t)offset) != (ssize_t)size)
        return mp_err_set(err, MP_IO, "%zu bytes at %" PRIu64 " cannot be read", size, offset);
    return MP_OK;
}

static inline enum mp_code open_file(struct mp_arena *arena, const char *path, struct mp_err *err,
                                     struct opened *ret)
{
    char tail[MP_PARQUET_TAIL_BYTES];
    struct stat stat;
    uint32_t size;
    enum mp_code code;

    ret->fd = open(path, O_RDONLY);
    if (ret->fd < 0 || fstat(ret->fd, &stat))
        return mp_err_set(err, MP_IO, "%s cannot be opened", path);
    ret->bytes = (uint64_t)stat.st_size;
    if (ret->bytes < sizeof(tail))
        return mp_err_set(err, MP_BAD_DATA, "%s has %" PRIu64 " bytes", path, ret->bytes);
    code = read_at(ret, ret->bytes - sizeof(tail), sizeof(tail), tail, err);
    if (!code)
        code = mp_parquet_footer_bytes(mp_str_n(tail, sizeof(tail)), ret->bytes, err, &size);
    if (code)
        return code;
    ret->footer_bytes = mp_alloc(size);
    code = read_at(ret, ret->bytes - sizeof(tail) - size, size, ret->footer_bytes, err);
    if (code)
        return code;
    return mp_parquet_footer_read(arena, mp_str_n(ret->footer_bytes, size), ret->bytes, err,
                                  &ret->footer);
}

static inline void close_file(struct opened *file)
{
    if (file->fd >= 0)
        close(file->fd);
    mp_free(file->footer_bytes);
}

/* ---- answers --------------------------------------------------------------------------------- */

static inline void print_hex(struct mp_str bytes)
{
    putchar('"');
    for (size_t i = 0; i < bytes.size; i++)
        printf("%02x", (unsigned char)bytes.data[i]);
    putchar('"');
}

static inline void print_error(const struct mp_err *err)
{
    printf("{\"error\":");
    print_hex(mp_str_c(err->text));
    printf(",\"code\":\"%s\"}\n", mp_code_name(err->code));
}

static inline enum mp_code write_out(void *context, struct mp_str bytes, struct mp_err *err)
{
    if (fwrite(bytes.data, 1, bytes.size, context) != bytes.size)
        return mp_err_set(err, MP_IO, "%zu bytes cannot be written", bytes.size);
    return MP_OK;
}

#endif
